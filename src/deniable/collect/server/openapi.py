"""The OpenAPI document, made from the tables that the routes are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

import deniable
from deniable.collect.server.api import Answer, Call, Operation, Parameter, json_response, resources
from deniable.collect.server.problems import KINDS, MEDIA_TYPE, PREFIX, Document
from deniable.collect.wire import JSON

RETRIED = ("rateLimited", "overloaded")


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Everything that the service does, and every way in which it refuses."""
    types = [
        schema
        for operation in operations
        for content in (*(answer.content for answer in operation.answers.values()), operation.bodies)
        for schema in content.values()
        if not isinstance(schema, Mapping)
    ]
    unique = list(dict.fromkeys([*types, Document]))
    found, components = msgspec.json.schema_components(unique, ref_template="#/components/schemas/{name}")
    schemas = dict(zip(unique, found, strict=True))
    paths = {
        path: {operation.method.lower(): _operation(operation, schemas) for operation in some}
        for path, some in resources(operations).items()
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "deniable collection service",
            "version": deniable.__version__,
            "description": "Devices send randomized answers, the service adds them up, analysts read estimates. "
            "Refusals are application/problem+json. Send the same bytes again after 429, 5xx and lost connections; "
            "drop them after any other 4xx.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": _common(components),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "dn_..."}},
        },
    }


def _operation(operation: Operation, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.help.partition(". ")[0].rstrip("."),
        "description": operation.help,
        "security": [{"token": []}] if operation.role else [{}, {"token": []}] if operation.keyed else [],
    }
    if operation.role:
        described["description"] += f" Needs a token with the role {operation.role}."
    if operation.parameters:
        described["parameters"] = [_parameter(operation, parameter) for parameter in operation.parameters]
    if operation.bodies:
        content = {kind: {"schema": _schema(schema, schemas)} for kind, schema in operation.bodies.items()}
        described["requestBody"] = {"required": True, "content": content}
    answers = {str(status): _answer(answer, schemas) for status, answer in operation.answers.items()}
    described["responses"] = answers | _problems(operation, schemas)
    return described


def _parameter(operation: Operation, parameter: Parameter) -> dict[str, Any]:
    place = "path" if operation.in_path(parameter.name) else "query"
    schema = {"type": "array", "items": dict(parameter.schema)} if parameter.many else dict(parameter.schema)
    head = {"name": parameter.name, "in": place, "required": place == "path"}
    many = {"style": "form", "explode": True} if parameter.many else {}
    return head | {"description": parameter.help, "schema": schema} | many


def _answer(answer: Answer, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": answer.help}
    if answer.content:
        described["content"] = {kind: {"schema": _schema(own, schemas)} for kind, own in answer.content.items()}
    if answer.headers:
        described["headers"] = {
            name: {"description": text, "schema": {"type": "string"}} for name, text in answer.headers.items()
        }
    return described


def _problems(operation: Operation, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for name in operation.all_problems:
        by_status.setdefault(KINDS[name].status, []).append(name)
    described = {}
    for status, names in sorted(by_status.items()):
        text = " ".join(f"{PREFIX}{name}: {KINDS[name].title}" for name in names)
        one: dict[str, Any] = {"description": text, "content": {MEDIA_TYPE: {"schema": schemas[Document]}}}
        if any(name in RETRIED for name in names):
            one["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
        described[str(status)] = one
    return described


def _common(schema: Any) -> Any:
    """Lists of fixed parts as lists of any of these parts, because few programs that read the document know more."""
    if isinstance(schema, list):
        return [_common(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    plain = {key: _common(part) for key, part in schema.items() if key != "prefixItems"}
    if "prefixItems" in schema:
        parts = [dict(kind) for kind in dict.fromkeys(tuple(part.items()) for part in schema["prefixItems"])]
        plain["items"] = parts[0] if len(parts) == 1 else {"anyOf": parts}
    return plain


def _schema(schema: Any, schemas: Mapping[Any, Any]) -> Any:
    return dict(schema) if isinstance(schema, Mapping) else schemas[schema]


def operation(operations: Sequence[Operation]) -> Operation:
    """Serves the document of these operations and of itself."""

    async def serve(call: Call) -> Response:
        return json_response(document([*operations, itself]))

    itself = Operation(
        "GET",
        "/openapi.json",
        "getInterface",
        "This document.",
        serve,
        {200: Answer("An OpenAPI document.", {JSON: {"type": "object"}})},
        public=True,
    )
    return itself

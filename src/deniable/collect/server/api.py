"""What the service offers, as tables: routes, parameter checks and the OpenAPI document are all built from them.

Operation   one method of one path: who may call it, its parameters, bodies, answers and problems
Parameter   its schema in the document is also the check on its value
Resource    all operations of one path; answers preflights, other methods and every refusal
Headers     no content sniffing, framing, referrer or caching unless an answer asks for it
"""

from __future__ import annotations

import asyncio
import gzip
import re
import time
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

import deniable
from deniable.collect.server.problems import (
    KINDS,
    MEDIA_TYPE,
    PREFIX,
    Gone,
    Headers,
    Problem,
    ProblemDetails,
    announced,
    answer_and_close,
    deleted,
    header,
    media_type,
    overloaded,
)
from deniable.collect.server.registry import Entry
from deniable.collect.server.service import Service
from deniable.collect.server.telemetry import log
from deniable.collect.stores.base import CountedElsewhere, InUse, NoShares, StorageFull, StoreError, SurveyDeleted
from deniable.collect.wire import JSON
from deniable.errors import DeniableError, MissingExtra

LEVEL = 4
"""Compression level: half the time of the default, for a tenth more bytes."""
RETRIED = ("rateLimited", "overloaded")
"""Problems that are sent with Retry-After."""
SAFE = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Fixed:
    """Headers that are added to an answer unless it sets them itself."""

    def __init__(self, headers: dict[str, str]) -> None:
        self._raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    def add(self, response: Response) -> None:
        own = {name for name, _ in response.raw_headers}
        response.raw_headers.extend([pair for pair in self._raw if pair[0] not in own])


PRIVATE = Fixed(SAFE | {"Cross-Origin-Resource-Policy": "same-origin"})
PUBLIC = Fixed(
    SAFE
    | {
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": "ETag, Retry-After",
    }
)

FINGERPRINT = "^[0-9a-f]{64}$"


@dataclass(frozen=True)
class Parameter:
    """Part of a path or of a query."""

    name: str
    schema: Mapping[str, Any]
    help: str
    many: bool = False
    missing: str = "notFound"
    """The problem if this part of the path is not valid."""

    def read(self, text: str) -> Any:
        """Parse the text; the value must match the schema."""
        schema = self.schema
        kind = schema["type"]
        if kind == "string":
            if "enum" in schema and text not in schema["enum"]:
                raise self._wrong(f"one of {', '.join(schema['enum'])}")
            if "pattern" in schema and not re.fullmatch(schema["pattern"].strip("^$"), text):
                raise self._wrong(self.help)
            if not schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 1 << 16):
                raise self._wrong(f"text of {schema.get('minLength', 0)} to {schema.get('maxLength')} characters")
            return text
        if kind == "boolean":
            if text not in ("true", "false"):
                raise self._wrong("true or false")
            return text == "true"
        try:
            # Plain digits only: Python alone would accept 1_000, spaces and digits of other scripts.
            if not re.fullmatch(r"-?[0-9]{1,18}" if kind == "integer" else r"-?[0-9.eE+-]{1,40}", text):
                raise ValueError
            value: float = int(text) if kind == "integer" else float(text)
        except ValueError:
            raise self._wrong("a number") from None
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        above, below = schema.get("exclusiveMinimum", value - 1), schema.get("exclusiveMaximum", value + 1)
        if not (low <= value <= high and above < value < below):
            raise self._wrong(self.help)
        return value

    def _wrong(self, wanted: str) -> Problem:
        return Problem("malformed", f'"{self.name}" is {wanted}')


@dataclass(frozen=True)
class Answer:
    """One successful answer: media types with their schemas (a type that msgspec knows, or a schema)."""

    help: str
    content: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """Header names and what they mean."""


@dataclass
class Call:
    """One request."""

    service: Service
    scope: Scope
    receive: Receive
    path: dict[str, Any]
    query: dict[str, Any]

    @property
    def headers(self) -> Headers:
        return self.scope["headers"]  # type: ignore[no-any-return]

    async def entry(self) -> Entry:
        """The survey that the path names."""
        return await self.service.registry.find(self.path["fingerprint"])

    async def body(self) -> bytes:
        announced(self.headers, self.service.settings.max_body)
        return await self.service.receiving.read(self.receive)

    async def json(self, kind: Any) -> Any:
        """A small JSON body of a known type."""
        if media_type(self.headers) != "application/json":
            raise Problem("unsupportedMediaType", "send application/json", close=True)
        try:
            return msgspec.json.decode(await self.body(), type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as wrong:
            reason = str(wrong) if isinstance(wrong, msgspec.ValidationError) else "it is not JSON"
            raise Problem("malformed", f"the body cannot be read: {reason}") from None


Handler = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True)
class Operation:
    """One operation of the service."""

    method: str
    path: str
    name: str
    help: str
    handler: Handler
    answers: Mapping[int, Answer]
    role: str | None = None
    problems: Sequence[str] = ()
    parameters: Sequence[Parameter] = ()
    bodies: Mapping[str, Any] = field(default_factory=dict)
    """Accepted media types, with schemas."""
    public: bool = False
    """Whether pages of any origin may call this."""
    needs_token: bool = False
    """Whether the service can be configured to require an ingest key."""
    beyond: bool = False
    """Whether it also reads other surveys than the one in its path, so that a token for that survey is not enough."""

    @property
    def all_problems(self) -> list[str]:
        """The problems listed in the table, and those that follow from its other columns."""
        named = set(self.problems)
        if self.role is not None or self.needs_token:
            named |= {"unauthorized", "expiredToken", "forbidden"}
        if "{fingerprint}" in self.path:
            named |= {"unknownSurvey", "surveyDeleted", "overloaded"}
        if self.bodies:
            named |= {"malformed", "tooLarge", "tooSlow", "unsupportedMediaType", "overloaded", "storageFull"}
        if self.parameters:
            named |= {"malformed"}
        return sorted(named)

    def in_path(self, name: str) -> bool:
        return f"{{{name}}}" in self.path


class Resource:
    """One path, as an ASGI application."""

    def __init__(self, service: Service, operations: Sequence[Operation]) -> None:
        self._service = service
        self._by_method = {operation.method: operation for operation in operations}
        if "GET" in self._by_method:
            self._by_method.setdefault("HEAD", self._by_method["GET"])
        self._allow = ", ".join(sorted({*self._by_method, "OPTIONS"}))
        self._public = {method: one for method, one in self._by_method.items() if one.public}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = self._by_method.get(scope["method"])
        name, close = "other" if operation is None else operation.name, False
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(self._service.settings.request_seconds):
                response = await self._answer(operation, scope, receive)
        except Gone:
            return
        except TimeoutError:
            log("error", where=name, kind="deadline")
            response = overloaded("this took too long: send the same bytes again later", 2.0).response()
        except Problem as problem:
            response, close = problem.response(), problem.close
        except SurveyDeleted:
            response = deleted().response()
        except InUse as needed:
            response = Problem("inUse", str(needed)).response()
        except StorageFull:
            response = Problem("storageFull", "there is no room left to store this").response()
        except StoreError as error:
            log("error", where=name, kind=type(error).__name__, code=error.code)
            response = overloaded("the store cannot be used now").response()
        except NoShares as wrong:
            response = Problem("noShares", str(wrong)).response()
        except MissingExtra as missing:
            response = Problem("notInstalled", str(missing)).response()
        except CountedElsewhere as elsewhere:
            response = Problem("countedElsewhere", str(elsewhere)).response()
        except DeniableError as wrong:
            response = Problem("malformed", str(wrong)).response()
        except Exception as error:
            log("error", where=name, kind=type(error).__name__)
            response = Problem("internal", "this is a bug in the service: its log has the kind of error").response()
        self._service.metrics.request(name, response.status_code, time.perf_counter() - begun)
        public = operation.public if operation is not None else scope["method"] == "OPTIONS" and self._public
        (PUBLIC if public else PRIVATE).add(response)
        if scope["method"] != "HEAD":
            compress(response, scope["headers"])
        if close:
            await answer_and_close(response, scope, receive, send)
        else:
            await response(scope, receive, send)

    async def _answer(self, operation: Operation | None, scope: Scope, receive: Receive) -> Response:
        if operation is None:
            if scope["method"] == "OPTIONS":
                return self._preflight()
            raise Problem("methodNotAllowed", f"this takes {self._allow}", {"Allow": self._allow})
        path, query = scope.get("path_params", {}), dict[str, Any]()
        role = "ingest" if operation.needs_token and self._service.settings.needs_token else operation.role
        if role is not None:
            survey = None if operation.beyond else path.get("fingerprint")
            await self._service.authorize(role, scope["headers"], survey)
        if operation.parameters:
            path, query = _parameters(operation, path, scope["query_string"])
        return await operation.handler(Call(self._service, scope, receive, path, query))

    def _preflight(self) -> Response:
        headers = {"Allow": self._allow}
        if self._public:
            needs_token = any(operation.needs_token for operation in self._public.values())
            headers |= {
                "Access-Control-Allow-Methods": ", ".join(sorted({*self._public, "OPTIONS"})),
                "Access-Control-Allow-Headers": "Content-Type, Authorization" if needs_token else "Content-Type",
                "Access-Control-Max-Age": "86400",
            }
        return Response(None, 204, headers)


def _parameters(operation: Operation, path: dict[str, str], query: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=10_000)
    except ValueError:
        raise Problem("malformed", "the query cannot be read") from None
    known = {parameter.name: parameter for parameter in operation.parameters}
    for name, _ in pairs:
        if name not in known or operation.in_path(name):
            raise Problem("malformed", f"this takes {', '.join(n for n in known if not operation.in_path(n))} only")
    in_path, in_query = dict[str, Any](), dict[str, Any]()
    for name, parameter in known.items():
        if operation.in_path(name):
            try:
                in_path[name] = parameter.read(path[name])
            except Problem as wrong:
                raise Problem(parameter.missing, wrong.detail) from None
            continue
        given = [text for key, text in pairs if key == name]
        if len(given) > 1 and not parameter.many:
            raise Problem("malformed", f'"{name}" is given more than once')
        if parameter.many:
            in_query[name] = [parameter.read(text) for text in given]
        elif given:
            in_query[name] = parameter.read(given[0])
        else:
            in_query[name] = parameter.schema.get("default")
    return in_path, in_query


PACKED = ("application/json", "text/csv")
SMALLEST = 1_024
"""Smallest body, in bytes, that is worth compressing."""


def compress(response: Response, headers: Headers) -> None:
    """Compress JSON and CSV if the client accepts it; streams are compressed piece by piece."""
    if b"gzip" not in header(headers, b"accept-encoding") or "content-encoding" in response.headers:
        return
    # An ETag names the uncompressed bytes.
    if "etag" in response.headers:
        return
    if response.headers.get("content-type", "").partition(";")[0] not in PACKED:
        return
    if isinstance(response, StreamingResponse):
        response.body_iterator = _packed(response.body_iterator)
    elif len(response.body) >= SMALLEST:
        response.body = gzip.compress(response.body, LEVEL, mtime=0)
        response.headers["Content-Length"] = str(len(response.body))
    else:
        return
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding"


async def _packed(pieces: AsyncIterable[Any]) -> AsyncIterator[bytes]:
    packer = zlib.compressobj(LEVEL, wbits=zlib.MAX_WBITS | 16)
    async for piece in pieces:
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()


def resources(operations: Sequence[Operation]) -> dict[str, list[Operation]]:
    """The operations by path, in the order of the table."""
    found: dict[str, list[Operation]] = {}
    for operation in operations:
        found.setdefault(operation.path, []).append(operation)
    return found


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(content), status, dict(headers or {}), "application/json")


# -- the OpenAPI document ---------------------------------------------------------------------------


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Everything that the service does, and every way in which it refuses."""
    types = [
        schema
        for operation in operations
        for content in (*(answer.content for answer in operation.answers.values()), operation.bodies)
        for schema in content.values()
        if not isinstance(schema, Mapping)
    ]
    unique = list(dict.fromkeys([*types, ProblemDetails]))
    found, components = msgspec.json.schema_components(unique, ref_template="#/components/schemas/{name}")
    schemas = dict(zip(unique, found, strict=True))
    paths = {
        path: {operation.method.lower(): _operation_spec(operation, schemas) for operation in some}
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


def _operation_spec(operation: Operation, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.help.partition(". ")[0].rstrip("."),
        "description": operation.help,
        "security": [{"token": []}] if operation.role else [{}, {"token": []}] if operation.needs_token else [],
    }
    if operation.role:
        described["description"] += f" Needs a token with the role {operation.role}"
        named = "{fingerprint}" in operation.path and not operation.beyond
        described["description"] += ", of this survey or of all." if named else ", of all surveys."
    if operation.parameters:
        described["parameters"] = [_parameter_spec(operation, parameter) for parameter in operation.parameters]
    if operation.bodies:
        content = {kind: {"schema": _schema(schema, schemas)} for kind, schema in operation.bodies.items()}
        described["requestBody"] = {"required": True, "content": content}
    answers = {str(status): _answer_spec(answer, schemas) for status, answer in operation.answers.items()}
    described["responses"] = answers | _problem_specs(operation, schemas)
    return described


def _parameter_spec(operation: Operation, parameter: Parameter) -> dict[str, Any]:
    place = "path" if operation.in_path(parameter.name) else "query"
    schema = {"type": "array", "items": dict(parameter.schema)} if parameter.many else dict(parameter.schema)
    head = {"name": parameter.name, "in": place, "required": place == "path"}
    many = {"style": "form", "explode": True} if parameter.many else {}
    return head | {"description": parameter.help, "schema": schema} | many


def _answer_spec(answer: Answer, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": answer.help}
    if answer.content:
        described["content"] = {kind: {"schema": _schema(own, schemas)} for kind, own in answer.content.items()}
    if answer.headers:
        described["headers"] = {
            name: {"description": text, "schema": {"type": "string"}} for name, text in answer.headers.items()
        }
    return described


def _problem_specs(operation: Operation, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for name in operation.all_problems:
        by_status.setdefault(KINDS[name].status, []).append(name)
    described = {}
    for status, names in sorted(by_status.items()):
        text = " ".join(f"{PREFIX}{name}: {KINDS[name].title}" for name in names)
        one: dict[str, Any] = {"description": text, "content": {MEDIA_TYPE: {"schema": schemas[ProblemDetails]}}}
        if any(name in RETRIED for name in names):
            one["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
        described[str(status)] = one
    return described


def _common(schema: Any) -> Any:
    """Turn tuples into lists of any of their parts, because few OpenAPI tools understand tuples."""
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


def interface(operations: Sequence[Operation]) -> Operation:
    """The operation that serves the document of these operations and of itself."""

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

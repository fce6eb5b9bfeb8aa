"""Tokens over HTTP, for admins. The first admin's token is made on the machine: deniable token create --role admin."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from starlette.responses import Response

from deniable.collect.server.api import Answer, Call, Operation, Parameter, json_response
from deniable.collect.server.log import log
from deniable.collect.server.problems import Problem
from deniable.collect.stores.base import Token
from deniable.collect.tokens import hashed, new_token
from deniable.collect.wire import JSON


class Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """A token to be made."""

    role: Literal["admin", "analyst", "ingest"]
    label: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """What it is for, in the operator's words."""


class Known(msgspec.Struct):
    """A token as it is kept: its SHA-256 is its id."""

    id: str
    role: str
    label: str


class Made(msgspec.Struct):
    """A new token; this is the only time that it is shown."""

    token: str
    id: str
    role: str
    label: str


class Tokens(msgspec.Struct):
    """All tokens."""

    tokens: list[Known]


async def create(call: Call) -> Response:
    wanted: Wanted = await call.json(Wanted)
    token = new_token()
    kept = Token(hashed(token), wanted.role, wanted.label)
    await call.service.writer.run(lambda store: store.add_token(kept))
    await call.service.registry.refresh()
    log("token created", role=wanted.role)
    return json_response(Made(token, kept.sha256, kept.role, kept.label), 201)


async def show(call: Call) -> Response:
    tokens = await call.service.readers.run(lambda store: store.tokens())
    return json_response(Tokens([Known(token.sha256, token.role, token.label) for token in tokens]))


async def revoke(call: Call) -> Response:
    id: str = call.path["id"]
    if not await call.service.writer.run(lambda store: store.remove_token(id)):
        raise Problem("unknownToken", "GET /v1/tokens lists those there are")
    await call.service.registry.refresh()
    log("token revoked")
    return Response(None, 204)


ID = Parameter("id", {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "the token's SHA-256", missing="unknownToken")

OPERATIONS = (
    Operation(
        "GET",
        "/v1/tokens",
        "listTokens",
        "List the tokens by their hashes.",
        show,
        {200: Answer("The tokens.", {JSON: Tokens})},
        role="admin",
    ),
    Operation(
        "POST",
        "/v1/tokens",
        "createToken",
        "Make a token.",
        create,
        {201: Answer("The token, shown once.", {JSON: Made})},
        role="admin",
        bodies={JSON: Wanted},
    ),
    Operation(
        "DELETE",
        "/v1/tokens/{id}",
        "revokeToken",
        "Revoke a token.",
        revoke,
        {204: Answer("The token is of no use any more.")},
        role="admin",
        problems=("unknownToken",),
        parameters=(ID,),
    ),
)

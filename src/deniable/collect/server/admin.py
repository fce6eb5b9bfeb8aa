"""For whoever runs the service: tokens, whether the process lives and can take reports, and its figures.

The first admin's token is made on the machine: deniable token create --role admin.
"""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Literal

import msgspec
from starlette.responses import Response

from deniable.collect.server.api import Answer, Call, Operation, Parameter, json_response
from deniable.collect.server.problems import Problem, overloaded
from deniable.collect.server.telemetry import log
from deniable.collect.stores.base import StoreError, Token
from deniable.collect.wire import JSON, hashed, new_token

METRICS = "text/plain; version=0.0.4"
STALLED_SECONDS = 10.0
PING_SECONDS = 3.0
FRESH_SECONDS = 0.5
"""Whoever asks may ask often: a store that could be written so long ago is not written again for it."""


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


# -- health -----------------------------------------------------------------------------------------


class Health(msgspec.Struct):
    """ "ok"."""

    status: str


async def alive(call: Call) -> Response:
    return json_response(Health("ok"))


async def ready(call: Call) -> Response:
    """The store can be written, the writer gets on, and nobody is shutting down."""
    service = call.service
    if service.stopping or not service.writer.alive or service.writer.lag > STALLED_SECONDS:
        raise overloaded("the service is being restarted, or its store is stuck")
    if time.monotonic() - service.pinged > FRESH_SECONDS:
        try:
            async with asyncio.timeout(PING_SECONDS):
                await service.readers.run(lambda store: store.ping())
        except (StoreError, TimeoutError, Problem):
            raise overloaded("the store cannot be written") from None
        service.pinged = time.monotonic()
    # Submissions are counted all the same, so it is ready.
    failing = ", ".join(f"{step} ({code})" for step, code in sorted(service.failing.items()))
    said = f"ok, but housekeeping fails: {failing}" if failing else "ok"
    return json_response(Health("; ".join(filter(None, (said, service.clock_doubt)))))


async def metrics(call: Call) -> Response:
    service = call.service
    gauges = {
        "deniable_worker": ("Which worker answers: each has its own figures.", service.settings.shard),
        "deniable_queue_requests": ("Requests that wait for a commit.", service.writer.items),
        "deniable_queue_bytes": ("Bytes of bodies that wait for a commit.", service.writer.bytes),
        "deniable_arriving_bytes": ("Bytes of bodies that are not whole yet.", service.receiving.bytes),
        "deniable_lag_seconds": ("Age of the transaction of this moment.", service.writer.lag),
        "deniable_untidied_seconds": ("Age of traces of order that wait to be removed.", service.untidied),
        "deniable_listeners": ("Streams of events.", service.listeners),
        "deniable_surveys": ("Published surveys.", len(service.registry.entries)),
    }
    return Response(service.metrics.text(gauges), 200, None, METRICS)


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
    Operation("GET", "/healthz", "isAlive", "The process lives.", alive, {200: Answer("It does.", {JSON: Health})}),
    Operation(
        "GET",
        "/readyz",
        "isReady",
        "Reports can be taken.",
        ready,
        {200: Answer("They can.", {JSON: Health})},
        problems=("overloaded",),
    ),
    Operation(
        "GET",
        "/metrics",
        "getMetrics",
        "Figures of this process for Prometheus. They grow with each submission, and so tell when it came.",
        metrics,
        {200: Answer("The figures.", {"text/plain": {"type": "string"}})},
        role="analyst",
    ),
)

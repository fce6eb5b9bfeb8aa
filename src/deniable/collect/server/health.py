"""Whether the process lives, whether it can take reports, and its figures."""

from __future__ import annotations

import asyncio
import time

import msgspec
from starlette.responses import Response

from deniable.collect.server.api import Answer, Call, Operation, json_response
from deniable.collect.server.problems import Problem, overloaded
from deniable.collect.stores.base import StoreError
from deniable.collect.wire import JSON

METRICS = "text/plain; version=0.0.4"
STALLED_SECONDS = 10.0
PING_SECONDS = 3.0
FRESH_SECONDS = 0.5
"""Whoever asks may ask often: a store that could be written so long ago is not written again for it."""


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
    return json_response(Health("ok"))


async def metrics(call: Call) -> Response:
    service = call.service
    gauges = {
        "deniable_worker": ("Which worker answers: each has its own figures.", service.settings.shard),
        "deniable_queue_requests": ("Requests that wait for a commit.", service.writer.items),
        "deniable_queue_bytes": ("Bytes of bodies that wait for a commit.", service.writer.bytes),
        "deniable_arriving_bytes": ("Bytes of bodies that are not whole yet.", service.receiving.bytes),
        "deniable_lag_seconds": ("Age of the transaction of this moment.", service.writer.lag),
        "deniable_listeners": ("Streams of events.", service.listeners),
        "deniable_surveys": ("Published surveys.", len(service.registry.entries)),
    }
    return Response(service.metrics.text(gauges), 200, None, METRICS)


OPERATIONS = (
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

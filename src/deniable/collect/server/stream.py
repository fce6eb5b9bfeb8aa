"""News of a survey as server-sent events: {epoch, n, version} whenever an epoch's count changes.

Resuming   the last event of each round carries the version as its id; a client that comes back with Last-Event-ID gets
           a round only if the version is another one now. A round that broke off has no id and is sent again
Polling    each process asks the store at most once a second a survey, so workers need not know of one another
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
from starlette.background import BackgroundTask
from starlette.responses import Response, StreamingResponse

from deniable.collect.server.api import Answer, Call, Operation
from deniable.collect.server.body import header
from deniable.collect.server.ingest import SURVEY
from deniable.collect.server.problems import Problem, overloaded
from deniable.collect.server.service import Service
from deniable.collect.server.versions import Progress
from deniable.collect.stores.base import StoreError

EVENTS = "text/event-stream"


class News(msgspec.Struct):
    """An epoch that changed."""

    epoch: int
    n: int
    version: int


async def stream(call: Call) -> Response:
    service, entry = call.service, await call.entry()
    if call.scope["method"] == "HEAD":
        return Response(None, 200, media_type=EVENTS)
    if service.listeners >= service.settings.listeners:
        raise overloaded("too many listen already", 30)
    text = header(call.headers, b"last-event-id")
    seen = int(text) if text.isdigit() and len(text) < 20 else None
    progress = await service.versions.recent(entry.fingerprint)
    service.listeners += 1

    def leave() -> None:
        service.listeners -= 1

    return _Listening(_events(service, entry.fingerprint, seen, progress), leave)


class _Listening(StreamingResponse):
    """A stream that gives its place back, however it ends."""

    def __init__(self, events: AsyncIterator[bytes], leave: BackgroundTask | object) -> None:
        super().__init__(events, 200, media_type=EVENTS)
        self._leave = leave

    async def __call__(self, *arguments: object) -> None:
        try:
            await super().__call__(*arguments)  # type: ignore[arg-type]
        finally:
            self._leave()  # type: ignore[operator]


async def _events(service: Service, fingerprint: str, seen: int | None, progress: Progress) -> AsyncIterator[bytes]:
    yield b"retry: 2000\n\n"
    known: dict[int, tuple[int, str]] = {}
    quiet_since = time.monotonic()
    while True:
        if progress.version != seen:
            changed = [one for one in progress.epochs if known.get(one.epoch) != (one.n, one.state)]
            for place, one in enumerate(changed, start=1):
                news = msgspec.json.encode(News(one.epoch, one.n, progress.version)).decode()
                id = f"id: {progress.version}\n" if place == len(changed) else ""
                yield f"{id}event: tally\ndata: {news}\n\n".encode()
            quiet_since = time.monotonic()
        seen, known = progress.version, {one.epoch: (one.n, one.state) for one in progress.epochs}
        while progress.version == seen:
            if service.stopping:
                return
            if time.monotonic() - quiet_since >= service.settings.heartbeat_seconds:
                quiet_since = time.monotonic()
                yield b": still here\n\n"
            await asyncio.sleep(service.settings.refresh_seconds)
            try:
                progress = await service.versions.recent(fingerprint)
            except (Problem, StoreError):
                continue  # the heart beats on; news comes when the store is back


OPERATIONS = (
    Operation(
        "GET",
        "/v1/surveys/{fingerprint}/stream",
        "streamNews",
        "Server-sent events, one for each epoch whose count changed; data is {epoch, n, version}. Takes Last-Event-ID, "
        "the last id that came and not a version: of epochs that change at once only the last event has an id.",
        stream,
        {200: Answer("Events without end.", {EVENTS: {"type": "string"}})},
        role="analyst",
        problems=("overloaded",),
        parameters=(SURVEY,),
    ),
)

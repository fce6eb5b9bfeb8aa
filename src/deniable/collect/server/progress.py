"""How far a collection has come: its epochs, what was counted and refused, the sums themselves, and news of them.

Tallies    the sufficient statistic as JSON, CSV or Arrow, streamed: what `deniable estimate` takes as a file
News       server-sent events {epoch, n, version} whenever an epoch's count changes. The last event of each round
           carries the version as its id; a client that comes back with Last-Event-ID gets a round only if the version
           is another one now. A round that broke off has no id and is sent again
Polling    each process asks the store at most once per second and survey, so workers need not know of one another
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator

import msgspec
from starlette.background import BackgroundTask
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse

from deniable._extras import require
from deniable.collect.server.api import Answer, Call, Operation, Parameter, json_response
from deniable.collect.server.ingest import SURVEY
from deniable.collect.server.problems import Problem, header, overloaded
from deniable.collect.server.registry import Entry, Progress
from deniable.collect.server.service import Bounds, Service
from deniable.collect.server.telemetry import log
from deniable.collect.stores.base import CLOSED, Epoch, Store, StoreError
from deniable.collect.wire import JSON
from deniable.surveys import SurveyTally
from deniable.surveys.terms import LAST_EPOCH, read_time

CSV = "text/csv"
EVENTS = "text/event-stream"
ARROW = "application/vnd.apache.arrow.stream"
AT_ONCE = 65_536
"""Counters in one piece."""

Form = Callable[[SurveyTally], Iterator[bytes]]
RANGE = Parameter(
    "epochs",
    {"type": "string", "pattern": r"^[0-9]{0,10}\.\.[0-9]{0,10}$|^[0-9]{1,10}$"},
    'a range "a..b", "a..", "..b", or one epoch; both ends are included',
)


class EpochState(msgspec.Struct):
    """One epoch: open or closed, how many submissions it has, and the hash of its final tally."""

    epoch: int
    state: str
    n: int
    sha256: str | None


def described(one: Epoch) -> EpochState:
    return EpochState(one.epoch, one.state, one.n, one.sha256)


def epoch_range(text: str | None) -> tuple[int, int | None]:
    """First and last epoch.

    >>> epoch_range("3..5"), epoch_range("7"), epoch_range("2.."), epoch_range(None)
    ((3, 5), (7, 7), (2, None), (0, None))
    """
    if text is None:
        return 0, None
    low, dots, high = text.partition("..")
    first, last = int(low or 0), int(high) if high else None
    if not dots:
        last = first
    if first > LAST_EPOCH or (last is not None and (last > LAST_EPOCH or last < first)):
        raise Problem("malformed", f"a range of epochs goes upwards, to {LAST_EPOCH} at most")
    return first, last


def inside(epochs: tuple[Epoch, ...], first: int, last: int | None) -> list[Epoch]:
    return [one for one in epochs if one.epoch >= first and (last is None or one.epoch <= last)]


def taken(entry: Entry, progress: Progress, now: Bounds) -> list[int]:
    """The epochs whose reports are counted if they come now, ascending."""
    terms, at = entry.terms, entry.terms.epochs.at
    if entry.state == CLOSED:
        return []
    first = max(terms.first, at(now.earliest) - terms.epochs.late)
    last = min(terms.last, at(now.latest) + terms.epochs.early)
    return [epoch for epoch in range(first, last + 1) if epoch not in progress.closed]


class DeletedReports(msgspec.Struct):
    """How many kept reports were there and are gone now."""

    deleted: int


async def delete_reports(call: Call) -> Response:
    service, entry = call.service, await call.entry()
    if entry.terms.retention != "reports" and entry.terms.delete_days is None:
        raise Problem("notKept", "this survey keeps sums only: there are no reports to delete")
    epochs, before = call.query["epochs"], call.query["before"]
    if epochs is None and before is None:
        raise Problem("malformed", 'say which: "epochs" is a range (".." is all), "before" a time by which they ended')
    first, last = epoch_range(epochs)
    if before is not None:
        ended = entry.terms.epochs.at(read_time(before)) - 1
        last = ended if last is None else min(last, ended)
    deleted = await service.change(lambda store: store.drop_reports(entry.fingerprint, first, last))
    service.untidy()
    log("deleted reports", survey=entry.fingerprint, n=deleted)
    return json_response(DeletedReports(deleted))


async def close_epoch(call: Call) -> Response:
    service, entry, epoch = call.service, await call.entry(), call.path["epoch"]
    if not entry.terms.first <= epoch <= entry.terms.last:
        raise Problem("unknownEpoch", f"the epochs of this survey are {entry.terms.first} to {entry.terms.last}")
    return json_response(described(await service.close_epoch(entry, epoch)))


# -- status -----------------------------------------------------------------------------------------


class Rejected(msgspec.Struct):
    """Submissions that were refused on one day (days since 1970, UTC)."""

    day: int
    reason: str
    n: int


class Lag(msgspec.Struct):
    """What waits for a commit in the process that answers."""

    requests: int
    bytes: int
    seconds: float


class Status(msgspec.Struct):
    """The state of a survey."""

    survey: str
    state: str
    version: int
    """Grows with every change of the tally."""
    accepted: int
    """In the tally now."""
    deleted: int
    """Counted once, and taken out again by whoever had sent them."""
    duplicates: int
    rejected: dict[str, int]
    """By reason."""
    rejected_by_day: list[Rejected]
    current_epoch: int
    taken_epochs: list[int]
    """The epochs whose reports are counted if they come now: those of the calendar that are not closed."""
    epochs: list[EpochState]
    """Those with reports, and those that are closed."""
    lag: Lag
    clock: str | None
    """Why no epoch is closed at this time; null where the service trusts its clock."""


async def status(call: Call) -> Response:
    service, entry = call.service, await call.entry()
    first, last = epoch_range(call.query["epochs"])
    fingerprint, now = entry.fingerprint, service.clock.bounds()
    progress = await service.versions.read(fingerprint)

    def read(store: Store) -> tuple[int, list[tuple[int, str, int]]]:
        return store.duplicates(fingerprint), store.rejections(fingerprint)

    duplicates, rejections = await service.readers.run(read)
    reasons: Counter[str] = Counter()
    for _, reason, n in rejections:
        reasons[reason] += n
    writer = service.writer
    return json_response(
        Status(
            fingerprint,
            entry.phase(now.guess),
            progress.version,
            sum(one.n for one in progress.epochs),
            sum(one.deleted for one in progress.epochs),
            duplicates,
            dict(reasons),
            [Rejected(*row) for row in rejections],
            entry.terms.epochs.at(now.guess),
            taken(entry, progress, now),
            [described(one) for one in inside(progress.epochs, first, last)],
            Lag(writer.items, writer.bytes, round(writer.lag, 3)),
            service.clock_doubt,
        )
    )


# -- sums -------------------------------------------------------------------------------------------


def as_json(tally: SurveyTally) -> Iterator[bytes]:
    """The very bytes of `SurveyTally.to_json`, in pieces."""
    head = tally.spec() | {"tallies": {}}
    yield json.dumps(head, separators=(",", ":"), ensure_ascii=False)[:-2].encode()
    for place, (id, own) in enumerate(tally.tallies.items()):
        small = {key: value for key, value in own.spec().items() if key != "counts"} | {"counts": []}
        opening = json.dumps({id: small}, separators=(",", ":"), ensure_ascii=False)[1:-3]
        yield ("," if place else "").encode() + opening.encode()
        for at in range(0, own.counts.size, AT_ONCE):
            piece = json.dumps(own.counts[at : at + AT_ONCE].tolist(), separators=(",", ":"))[1:-1]
            yield ("," if at else "").encode() + piece.encode()
        yield b"]}"
    yield b"}}\n"


def as_csv(tally: SurveyTally) -> Iterator[bytes]:
    """question, n, counter, count."""
    yield b"question,n,counter,count\n"
    for id, own in tally.tallies.items():
        for at in range(0, own.counts.size, AT_ONCE):
            counts = own.counts[at : at + AT_ONCE].tolist()
            yield "".join(f"{id},{own.n},{at + i},{count}\n" for i, count in enumerate(counts)).encode()


def as_arrow(tally: SurveyTally) -> Iterator[bytes]:
    """An Arrow stream of question, counter and count; the schema's metadata has the rest, without the counts."""
    pa = require("pyarrow", "files")
    heads = {
        id: {key: value for key, value in own.spec().items() if key != "counts"} for id, own in tally.tallies.items()
    }
    note = json.dumps(tally.spec() | {"tallies": heads}).encode()
    fields = [("question", pa.string()), ("counter", pa.int64()), ("count", pa.int64())]
    schema = pa.schema(fields, metadata={b"deniable.survey-tally": note})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for id, own in tally.tallies.items():
            for at in range(0, own.counts.size, AT_ONCE):
                counts = own.counts[at : at + AT_ONCE]
                places = pa.array(range(at, at + counts.size), pa.int64())
                columns = [pa.array([id] * counts.size, pa.string()), places, pa.array(counts, pa.int64())]
                writer.write_batch(pa.record_batch(columns, schema))
    yield sink.getvalue().to_pybytes()


def _tally_handler(form: Form, kind: str) -> Callable[[Call], object]:
    async def handle(call: Call) -> Response:
        entry = await call.entry()
        first, last = epoch_range(call.query["epochs"])
        tally = await call.service.readers.run(lambda store: store.tally(entry.fingerprint, first, last))
        pieces = form(tally)
        begin = await call.service.readers.compute(lambda: next(pieces))

        async def stream() -> object:
            yield begin
            async for piece in iterate_in_threadpool(pieces):
                yield piece

        return StreamingResponse(stream(), 200, media_type=kind)  # type: ignore[arg-type]

    return handle


def _tally_operation(suffix: str, form: Form, kind: str, help: str, problems: tuple[str, ...] = ()) -> Operation:
    return Operation(
        "GET",
        f"/v1/surveys/{{fingerprint}}/tally.{suffix}",
        f"getTally{suffix.capitalize()}",
        f"The counters, {help}.",
        _tally_handler(form, kind),  # type: ignore[arg-type]
        {200: Answer("The tally.", {kind: {"type": "object"} if kind == JSON else {"type": "string"}})},
        role="analyst",
        problems=("countedElsewhere", *problems),
        parameters=(SURVEY, RANGE),
    )


# -- news -------------------------------------------------------------------------------------------


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
            if service.stopping or service.registry.get(fingerprint) is None:
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
    _tally_operation("json", as_json, JSON, "in the form of a tally file"),
    _tally_operation("csv", as_csv, CSV, "one per line"),
    _tally_operation("arrow", as_arrow, ARROW, "as an Arrow stream", ("notInstalled",)),
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
    Operation(
        "GET",
        "/v1/surveys/{fingerprint}/status",
        "getStatus",
        "How the collection goes.",
        status,
        {200: Answer("The state.", {JSON: Status})},
        role="analyst",
        parameters=(SURVEY, RANGE),
    ),
    Operation(
        "DELETE",
        "/v1/surveys/{fingerprint}/reports",
        "deleteReports",
        "Delete the kept reports of closed epochs. The sums stay, and such an epoch cannot be opened again. Refused if "
        "one of the epochs is open: whoever has sent a report of it may still have it taken out of the sums.",
        delete_reports,
        {200: Answer("They are gone.", {JSON: DeletedReports})},
        role="admin",
        problems=("notKept", "inUse", "storageFull"),
        parameters=(
            SURVEY,
            RANGE,
            Parameter(
                "before",
                {"type": "string", "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"},
                "a time in UTC, 2026-11-01T00:00:00Z: only epochs that ended by then",
            ),
        ),
    ),
    Operation(
        "POST",
        "/v1/surveys/{fingerprint}/epochs/{epoch}/close",
        "closeEpoch",
        "Take no more reports of an epoch, hash its tally and, days later, forget its ids. Closing again changes "
        "nothing.",
        close_epoch,
        {200: Answer("The epoch is closed.", {JSON: EpochState})},
        role="admin",
        problems=("unknownEpoch",),
        parameters=(
            SURVEY,
            Parameter(
                "epoch", {"type": "integer", "minimum": 0, "maximum": LAST_EPOCH}, "a number", missing="unknownEpoch"
            ),
        ),
    ),
)

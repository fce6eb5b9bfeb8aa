"""The progress of a collection: its epochs, counted and refused submissions, the sums themselves, and change events.

Tallies    the sufficient statistic as JSON, CSV or Arrow, streamed: the file that `deniable estimate` reads
News       server-sent events {epoch, n, version} whenever an epoch's count changes. The last event of each round
           carries the version as its id; a client that reconnects with Last-Event-ID gets a round only if the version
           has changed. A round that broke off has no id and is sent again
Polling    each process asks the store at most once per second and survey, so workers need not know of one another
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import msgspec
import numpy as np
from starlette.background import BackgroundTask
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse

from deniable._extras import require
from deniable.collect.server.api import Answer, Call, Handler, Operation, Parameter, json_response
from deniable.collect.server.ingest import SURVEY
from deniable.collect.server.problems import Problem, header, overloaded
from deniable.collect.server.registry import Entry, Progress
from deniable.collect.server.service import Bounds, Service
from deniable.collect.server.telemetry import log
from deniable.collect.stores.base import CLOSED, SETTLED, Epoch, Store, StoreError
from deniable.collect.stores.batches import share_digest
from deniable.collect.wire import ID_BYTES, JSON, from_text, to_text
from deniable.surveys import SurveyTally
from deniable.surveys.terms import LAST_EPOCH, read_time

CSV = "text/csv"
EVENTS = "text/event-stream"
ARROW = "application/vnd.apache.arrow.stream"
AT_ONCE = 65_536
"""Counters per piece."""

Form = Callable[[SurveyTally], Iterator[bytes]]
RANGE = Parameter(
    "epochs",
    {"type": "string", "pattern": r"^[0-9]{0,10}\.\.[0-9]{0,10}$|^[0-9]{1,10}$"},
    'a range "a..b", "a..", "..b", or one epoch; both ends are included',
)


class EpochState(msgspec.Struct):
    """One epoch: open or closed, the number of its submissions, and the hash of its final tally."""

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
    """The epochs whose reports are counted if they arrive now, ascending."""
    terms, at = entry.terms, entry.terms.epochs.at
    if entry.state == CLOSED:
        return []
    first = max(terms.first, at(now.earliest) - terms.epochs.late)
    last = min(terms.last, at(now.latest) + terms.epochs.early)
    return [epoch for epoch in range(first, last + 1) if epoch not in progress.closed]


class DeletedReports(msgspec.Struct):
    """How many kept reports existed and are now deleted."""

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
    entry = await call.entry()
    return json_response(described(await call.service.close_epoch(entry, _epoch_of(call, entry))))


# -- shares -----------------------------------------------------------------------------------------


class ShareList(msgspec.Struct):
    """The shares of an epoch before they are summed."""

    state: str
    """open, closed, summed (their sum is here), or settled (the sum over all collectors is in the tally)."""
    n: int
    ids: str | None
    """Closed epochs: the ids, 16 bytes each, ascending, in base64url."""
    people: str | None
    """The name of this set of people, 16 bytes in base64url: all collectors must name the same set before they sum."""
    total: str | None
    """Settled epochs: the sum over all collectors, 8 bytes per counter, little-endian, in base64url."""


class LeftOut(msgspec.Struct, forbid_unknown_fields=True):
    """Ids whose shares are erased because other collectors lack them, 16 bytes each, in base64url."""

    ids: str


class Erased(msgspec.Struct):
    """How many shares were erased."""

    erased: int


class Agreed(msgspec.Struct, forbid_unknown_fields=True):
    """The name of the set of people whose shares are summed."""

    people: str


class ShareSum(msgspec.Struct):
    """This collector's sum, 8 bytes per counter, little-endian, in base64url: on its own, random numbers."""

    total: str


class Settled(msgspec.Struct, forbid_unknown_fields=True):
    """The sum over all collectors; n = 0 erases the shares without a result."""

    n: int
    total: str


def _epoch_of(call: Call, entry: Entry) -> int:
    epoch: int = call.path["epoch"]
    if not entry.terms.first <= epoch <= entry.terms.last:
        raise Problem("unknownEpoch", f"the epochs of this survey are {entry.terms.first} to {entry.terms.last}")
    return epoch


def _least(entry: Entry) -> int:
    """The number of people whose noise suffices for every question."""
    asked = [question.protocol.law().sum for question in entry.survey]
    return max(one.enough for one in asked if one is not None)


async def _of_shares(call: Call) -> tuple[Entry, int]:
    entry = await call.entry()
    if not entry.terms.collectors:
        raise Problem("noShares", "this survey has one collector, who gets reports and no shares")
    return entry, _epoch_of(call, entry)


def _given(text: str, width: int, what: str) -> bytes:
    raw = from_text(text, len(text) * 3 // 4)
    if raw is None or len(raw) % width:
        raise Problem("malformed", f"{what} in base64url, without padding")
    return raw


async def list_shares(call: Call) -> Response:
    entry, epoch = await _of_shares(call)
    found = await call.service.readers.run(lambda store: store.shares(entry.fingerprint, epoch))
    ids = to_text(found.ids.tobytes()) if found.state == CLOSED else None
    people = share_digest(found.ids) if found.state == CLOSED else found.ids.tobytes()
    total = to_text(found.counts.astype("<i8").tobytes()) if found.state == SETTLED else None
    return json_response(ShareList(found.state, found.n, ids, to_text(people) or None, total))


async def leave_out(call: Call) -> Response:
    entry, epoch = await _of_shares(call)
    raw = _given((await call.json(LeftOut)).ids, ID_BYTES, '"ids" is ids of 16 bytes each')
    ids = np.frombuffer(raw, dtype=np.uint8).reshape(-1, ID_BYTES)
    erased = await call.service.change(lambda store: store.leave_out(entry.fingerprint, epoch, ids))
    call.service.untidy()
    return json_response(Erased(erased))


async def sum_shares(call: Call) -> Response:
    entry, epoch = await _of_shares(call)
    people = from_text((await call.json(Agreed)).people, ID_BYTES)
    if people is None:
        raise Problem("malformed", '"people" is 16 bytes in base64url')
    least = _least(entry)
    total = await call.service.change(lambda store: store.sum_shares(entry.fingerprint, epoch, people, least))
    call.service.untidy()
    log("added up shares", survey=entry.fingerprint, epoch=epoch)
    return json_response(ShareSum(to_text(total.astype("<i8").tobytes())))


async def settle_shares(call: Call) -> Response:
    entry, epoch = await _of_shares(call)
    given: Settled = await call.json(Settled)
    raw = from_text(given.total, 8 * entry.counter.size)
    if raw is None or (given.n and given.n < _least(entry)):
        raise Problem("malformed", "the sum has 8 bytes per counter, of as many people as the noise suffices for, or 0")
    counts = np.frombuffer(raw, dtype="<i8").astype(np.int64)
    tally = entry.counter.tally(given.n, counts)
    for question in entry.survey if given.n else ():
        question.protocol.estimate(tally[question.id])  # refuses impossible sums
    settled = await call.service.change(lambda store: store.settle_shares(entry.fingerprint, epoch, given.n, counts))
    call.service.untidy()
    log("settled shares", survey=entry.fingerprint, epoch=epoch, n=given.n)
    return json_response(described(settled))


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
    """Submissions in the tally now."""
    deleted: int
    """Submissions that were counted and later deleted by their senders."""
    duplicates: int
    rejected: dict[str, int]
    """By reason."""
    rejected_by_day: list[Rejected]
    current_epoch: int
    taken_epochs: list[int]
    """The epochs whose reports are counted if they arrive now: those of the calendar that are not closed."""
    epochs: list[EpochState]
    """Epochs with reports, and closed epochs."""
    lag: Lag
    clock: str | None
    """Why no epoch is closed now; null if the service trusts its clock."""


async def status(call: Call) -> Response:
    service, entry = call.service, await call.entry()
    first, last = epoch_range(call.query["epochs"])
    progress = await service.versions.read(entry.fingerprint)
    return json_response(await status_of(service, entry, progress, first, last))


async def status_of(
    service: Service, entry: Entry, progress: Progress, first: int = 0, last: int | None = None
) -> Status:
    """The state of a survey, with the epochs of a range."""
    fingerprint, now = entry.fingerprint, service.clock.bounds()

    def read(store: Store) -> tuple[int, list[tuple[int, str, int]]]:
        return store.duplicates(fingerprint), store.rejections(fingerprint)

    duplicates, rejections = await service.readers.run(read)
    reasons: Counter[str] = Counter()
    for _, reason, n in rejections:
        reasons[reason] += n
    writer = service.writer
    return Status(
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


# -- sums -------------------------------------------------------------------------------------------


def as_json(tally: SurveyTally) -> Iterator[bytes]:
    """Exactly the bytes of `SurveyTally.to_json`, in pieces."""
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
    """An Arrow stream of question, counter and count; the schema's metadata has everything else."""
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
    """A stream that frees its place, however it ends."""

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
                continue  # keep the connection alive; news comes when the store is back


EPOCH = Parameter("epoch", {"type": "integer", "minimum": 0, "maximum": LAST_EPOCH}, "a number", missing="unknownEpoch")


def _share_operation(
    method: str, path: str, name: str, help: str, handler: Handler, answer: Any, body: Any = None
) -> Operation:
    return Operation(
        method,
        f"/v1/surveys/{{fingerprint}}/epochs/{{epoch}}/shares{path}",
        name,
        help,
        handler,
        {200: Answer("What is there now.", {JSON: answer})},
        role="admin",
        problems=("unknownEpoch", "noShares"),
        parameters=(SURVEY, EPOCH),
        bodies={} if body is None else {JSON: body},
    )


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
        "one of the epochs is open: the senders of its reports may still have them taken out of the sums.",
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
        parameters=(SURVEY, EPOCH),
    ),
    _share_operation(
        "GET",
        "",
        "listShares",
        "For surveys with several collectors: the ids whose shares this one has, once the epoch is closed, and how far "
        "the shares are on their way to a sum. Never a share.",
        list_shares,
        ShareList,
    ),
    _share_operation(
        "POST",
        "/leave-out",
        "leaveOutShares",
        "Erase the shares of people whom other collectors do not have.",
        leave_out,
        Erased,
        LeftOut,
    ),
    _share_operation(
        "POST",
        "/sum",
        "sumShares",
        "Add up the shares that are left and erase them. Only over the people that are named, if they are enough for "
        "the noise, and only once: later requests get the same sum.",
        sum_shares,
        ShareSum,
        Agreed,
    ),
    _share_operation(
        "POST",
        "/settle",
        "settleShares",
        "Take the sum over all collectors as the tally of the epoch, and erase what is left of the shares; n = 0 is no "
        "result.",
        settle_shares,
        EpochState,
        Settled,
    ),
)

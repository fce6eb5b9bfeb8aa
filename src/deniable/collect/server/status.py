"""How a collection goes: what was counted, came again or was refused, and which epochs take reports."""

from __future__ import annotations

from collections import Counter

import msgspec
from starlette.responses import Response

from deniable.collect.server.api import Answer, Call, Operation, json_response
from deniable.collect.server.epochs import RANGE, EpochState, described, epoch_range, inside, taken
from deniable.collect.server.ingest import SURVEY
from deniable.collect.stores.base import Store
from deniable.collect.wire import JSON


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


async def status(call: Call) -> Response:
    service, entry = call.service, await call.entry()
    first, last = epoch_range(call.query["epochs"])
    fingerprint, now = entry.fingerprint, service.now()
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
            entry.phase(now),
            progress.version,
            sum(one.n for one in progress.epochs),
            sum(one.deleted for one in progress.epochs),
            duplicates,
            dict(reasons),
            [Rejected(*row) for row in rejections],
            entry.terms.epochs.at(now),
            taken(entry, progress, now),
            [described(one) for one in inside(progress.epochs, first, last)],
            Lag(writer.items, writer.bytes, round(writer.lag, 3)),
        )
    )


OPERATIONS = (
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
)

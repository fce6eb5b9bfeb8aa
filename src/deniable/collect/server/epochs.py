"""Epochs over HTTP: how a range of them is written, and closing one by hand."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from deniable.collect.server.api import Answer, Call, Operation, Parameter, json_response
from deniable.collect.server.ingest import SURVEY
from deniable.collect.server.problems import Problem
from deniable.collect.server.registry import Entry
from deniable.collect.server.versions import Progress
from deniable.collect.stores.base import CLOSED, Epoch
from deniable.collect.wire import JSON
from deniable.surveys.terms import LAST_EPOCH

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


def taken(entry: Entry, progress: Progress, now: float) -> list[int]:
    """The epochs whose reports are counted if they come now, ascending."""
    terms, current = entry.terms, entry.terms.epochs.at(now)
    if entry.state == CLOSED:
        return []
    first, last = max(terms.first, current - terms.epochs.late), min(terms.last, current + terms.epochs.early)
    return [epoch for epoch in range(first, last + 1) if epoch not in progress.closed]


async def close(call: Call) -> Response:
    service, entry, epoch = call.service, await call.entry(), call.path["epoch"]
    if not entry.terms.first <= epoch <= entry.terms.last:
        raise Problem("unknownEpoch", f"the epochs of this survey are {entry.terms.first} to {entry.terms.last}")
    return json_response(described(await service.close_epoch(entry, epoch)))


OPERATIONS = (
    Operation(
        "POST",
        "/v1/surveys/{fingerprint}/epochs/{epoch}/close",
        "closeEpoch",
        "Take no more reports of an epoch, hash its tally and forget the ids of its submissions. Closing again changes "
        "nothing.",
        close,
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

"""Many requests as one transaction: their submissions sorted by survey and epoch, checked all at once, and told apart
again when the store has answered.

Cost       per request only its header is looked at; plausibility is checked and sums are made over whole groups
Verdicts   a submission is rejected by its epoch, or as implausible, or because its epoch is closed; all others are
           accepted, duplicates included, because a device cannot know that its first attempt was counted
"""

from __future__ import annotations

import asyncio
from collections import Counter as Tallied
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.collect import wire
from deniable.collect.server.problems import Problem
from deniable.collect.server.registry import Entry
from deniable.collect.stores.base import Added, Batch
from deniable.collect.wire import BAD_PAYLOAD, EPOCH_CLOSED, HEADER_BYTES, ID_BYTES, MAGIC
from deniable.protocols.reports import Bytes

DAY = 86_400


@dataclass(slots=True)
class Reply:
    """What a request is told."""

    accepted: int = 0
    rejected: list[tuple[int, str, str]] = field(default_factory=list)
    """(place, id, reason)."""


@dataclass(slots=True)
class Parcel:
    """The body of one request, and who waits for the reply."""

    entry: Entry
    binary: bool
    body: bytes
    future: asyncio.Future[Reply | Problem]
    outcome: Reply | Problem | None = None


@dataclass(slots=True)
class _Share:
    """Rows of a pile that belong to one request."""

    reply: Reply
    start: int
    n: int
    places: NDArray[np.int64] | None


class _Pile:
    """Submissions of one survey and epoch."""

    __slots__ = ("entry", "epoch", "good", "rows", "shares", "size", "taken")

    def __init__(self, entry: Entry, epoch: int) -> None:
        self.entry, self.epoch = entry, epoch
        self.rows: list[bytes] = []
        self.shares: list[_Share] = []
        self.size = 0
        self.taken: Bytes = np.empty((0, ID_BYTES + entry.width), dtype=np.uint8)
        self.good: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)

    def put(self, reply: Reply, rows: bytes, n: int, places: NDArray[np.int64] | None) -> None:
        self.rows.append(rows)
        self.shares.append(_Share(reply, self.size, n, places))
        self.size += n

    def batch(self) -> Batch:
        """The plausible ones; `good` says which those are."""
        self.taken = np.frombuffer(b"".join(self.rows), dtype=np.uint8).reshape(self.size, -1)
        ids, answers = (np.ascontiguousarray(part) for part in np.split(self.taken, [ID_BYTES], axis=1))
        self.good = self.entry.counter.plausible(answers)
        if not self.good.all():
            ids, answers = ids[self.good], answers[self.good]
        return Batch(self.entry.fingerprint, self.epoch, ids, answers)

    def accept(self) -> None:
        """Tell each request how many of its submissions were counted now or before."""
        if self.good.all():
            for share in self.shares:
                share.reply.accepted += share.n
            return
        for share in self.shares:
            good = self.good[share.start : share.start + share.n]
            share.reply.accepted += int(good.sum())
            self._reject(share, np.flatnonzero(~good), BAD_PAYLOAD)

    def reject(self, reason: str) -> None:
        """Tell each request that none of these was taken; the implausible ones are that first."""
        if not self.taken.size:
            self.taken = np.frombuffer(b"".join(self.rows), dtype=np.uint8).reshape(self.size, -1)
            self.good = np.ones(self.size, dtype=np.bool_)
        for share in self.shares:
            good = self.good[share.start : share.start + share.n]
            self._reject(share, np.flatnonzero(~good), BAD_PAYLOAD)
            self._reject(share, np.flatnonzero(good), reason)

    def _reject(self, share: _Share, which: NDArray[Any], reason: str) -> None:
        for i in which.tolist():
            id = wire.to_text(self.taken[share.start + i, :ID_BYTES].tobytes())
            place = i if share.places is None else int(share.places[i])
            share.reply.rejected.append((place, id, reason))


class Group:
    """One transaction's worth of requests."""

    def __init__(self, parcels: Sequence[Parcel], now: float, most: int) -> None:
        self.parcels = parcels
        self._day = int(now // DAY)
        self._piles: dict[tuple[str, int], _Pile] = {}
        self.rejected: Tallied[tuple[str, int, str]] = Tallied()
        """For the store: by survey, day and reason."""
        self.late: Tallied[tuple[str, int, str]] = Tallied()
        """The same of what the store itself refused, for the next transaction."""
        for parcel in parcels:
            try:
                parcel.outcome = self._sort(parcel, most)
            except wire.TooMany as wrong:
                parcel.outcome = Problem("tooLarge", str(wrong))
            except wire.MalformedBody as wrong:
                parcel.outcome = Problem("malformed", str(wrong))
        self._open: list[_Pile] = []
        self.batches: list[Batch] = []
        for pile in self._piles.values():
            reason = pile.entry.terms.refusal(pile.epoch, now)
            if reason is not None:
                pile.reject(reason)
                self._count(self.rejected, pile, reason, pile.size)
                continue
            batch = pile.batch()
            self._count(self.rejected, pile, BAD_PAYLOAD, pile.size - len(batch.ids))
            self._open.append(pile)
            self.batches.append(batch)

    def _sort(self, parcel: Parcel, most: int) -> Reply:
        entry, body, reply = parcel.entry, parcel.body, Reply()
        if parcel.binary:
            size = ID_BYTES + entry.width
            n, rest = divmod(len(body) - HEADER_BYTES, size)
            if rest or not 0 < n <= most or not body.startswith(MAGIC):
                wire.decode(body, entry.width, most)  # says what is wrong
            epoch = int.from_bytes(body[4:HEADER_BYTES], "little")
            self._pile(entry, epoch).put(reply, body[HEADER_BYTES:], n, None)
            return reply
        found = wire.decode_json(body, entry.width, most)
        reply.rejected.extend(found.rejected)
        self.rejected[entry.fingerprint, self._day, BAD_PAYLOAD] += len(found.rejected)
        for epoch, some in found.by_epoch():
            rows = np.concatenate([some.ids, some.answers], axis=1)
            self._pile(entry, epoch).put(reply, rows.tobytes(), len(some), some.places)
        return reply

    def _pile(self, entry: Entry, epoch: int) -> _Pile:
        key = entry.fingerprint, epoch
        pile = self._piles.get(key)
        if pile is None:
            pile = self._piles[key] = _Pile(entry, epoch)
        return pile

    def _count(self, where: Tallied[tuple[str, int, str]], pile: _Pile, reason: str, n: int) -> None:
        if n:
            where[pile.entry.fingerprint, self._day, reason] += n

    def settle(self, added: Sequence[Added]) -> None:
        """Fill in the replies, given what the store made of the batches."""
        for pile, batch, one in zip(self._open, self.batches, added, strict=True):
            if one.closed:
                pile.reject(EPOCH_CLOSED)
                self._count(self.late, pile, EPOCH_CLOSED, len(batch.ids))
            else:
                pile.accept()
        for parcel in self.parcels:
            if isinstance(parcel.outcome, Reply):
                parcel.outcome.rejected.sort()

    def fail(self, problem: Problem) -> None:
        """Nothing was counted; what cannot be read stays unreadable."""
        for parcel in self.parcels:
            if isinstance(parcel.outcome, Reply):
                parcel.outcome = problem

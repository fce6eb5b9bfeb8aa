"""From the answers of submissions to a survey's tallies: which are plausible at all, and their sums."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable.protocols import Protocol, Tally
from deniable.protocols.reports import Bytes
from deniable.protocols.tally import Counts
from deniable.surveys import Survey, SurveyTally


@dataclass(frozen=True)
class Part:
    """Where a question's report lies in the answers, and its counters in the sum."""

    id: str
    protocol: Protocol
    bytes: slice
    counters: slice


BLOCK = 480
"""Counters of a block: two bytes each, and SQLite still keeps the block within a page of its tree."""


@dataclass(frozen=True)
class Blocks:
    """The counters that are not zero, as rows of `BLOCK`: a sum that costs what it touches, not what it could touch."""

    places: NDArray[np.int64]
    """Ascending: row i holds the counters from `places[i] * BLOCK` on. Never empty: block 0 is always there."""
    rows: Counts

    def __neg__(self) -> Blocks:
        return Blocks(self.places, -self.rows)

    def whole(self, size: int) -> Counts:
        """The vector of so many counters."""
        total = np.zeros((-(-size // BLOCK), BLOCK), dtype=np.int64)
        total[self.places] = self.rows
        return total.reshape(-1)[:size]

    @classmethod
    def of(cls, counts: Counts) -> Blocks:
        padded = np.zeros((-(-counts.size // BLOCK), BLOCK), dtype=np.int64)
        padded.reshape(-1)[: counts.size] = counts
        if len(padded) == 1:
            return cls(np.zeros(1, dtype=np.int64), padded)
        places = np.union1d([0], np.flatnonzero(padded.any(axis=1)))
        return cls(places, padded[places])


@dataclass(frozen=True)
class SurveyCounter:
    """A survey as one vector of counters: its questions' tallies one after the other."""

    survey: Survey

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        parts, at, counter = [], 0, 0
        for question in self.survey:
            width, size = question.protocol.report_bytes, question.protocol.tally_size
            parts.append(Part(question.id, question.protocol, slice(at, at + width), slice(counter, counter + size)))
            at, counter = at + width, counter + size
        return tuple(parts)

    @property
    def width(self) -> int:
        """Bytes of one submission's answers."""
        return self.parts[-1].bytes.stop  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """Counters in all."""
        return self.parts[-1].counters.stop  # type: ignore[no-any-return]

    def plausible(self, answers: Bytes) -> NDArray[np.bool_]:
        """Which submissions could have come from devices; the others are not counted."""
        good = np.ones(len(answers), dtype=np.bool_)
        for part in self.parts:
            good &= part.protocol.plausible(np.ascontiguousarray(answers[:, part.bytes]))
        return good

    def count(self, answers: Bytes) -> Counts:
        """The sum of plausible submissions."""
        total = np.zeros(self.size, dtype=np.int64)
        for part in self.parts:
            total[part.counters] = part.protocol.tally(np.ascontiguousarray(answers[:, part.bytes])).counts
        return total

    def blocks(self, answers: Bytes) -> Blocks:
        """The same sum, as those blocks of counters that it touches."""
        if self.size <= 4 * BLOCK:
            return Blocks.of(self.count(answers))
        found: list[tuple[int, Counts, NDArray[np.int64]]] = []
        for part in self.parts:
            for offset, counts in part.protocol.pieces(np.ascontiguousarray(answers[:, part.bytes])):
                start = part.counters.start + offset
                cuts = np.arange(start // BLOCK * BLOCK, start + counts.size, BLOCK)
                cuts[0] = start
                found.append((start, counts, cuts[np.bitwise_or.reduceat(counts, cuts - start) != 0]))
        places = np.union1d([0], np.concatenate([cuts for _, _, cuts in found]) // BLOCK)
        rows = np.zeros((places.size, BLOCK), dtype=np.int64)
        row_of = {place: row for row, place in enumerate(places.tolist())}
        for start, counts, cuts in found:
            for first in cuts.tolist():
                begin = first % BLOCK
                size = min(start + counts.size - first, BLOCK - begin)
                rows[row_of[first // BLOCK], begin : begin + size] = counts[first - start : first - start + size]
        return Blocks(places, rows)

    def tally(self, n: int, counts: Counts) -> SurveyTally:
        """The counters as tallies with names."""
        source = self.survey.source
        tallies = {p.id: Tally(p.protocol.fingerprint, n, counts[p.counters], source(p.id)) for p in self.parts}
        return SurveyTally(self.survey.fingerprint, tallies)


def digest(n: int, counts: Counts) -> str:
    """SHA-256 of a tally: n and the counters as 8 bytes each, little-endian."""
    raw = n.to_bytes(8, "little") + np.ascontiguousarray(counts, dtype="<i8").tobytes()
    return hashlib.sha256(raw).hexdigest()

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


@dataclass(frozen=True)
class Counter:
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

    def tally(self, n: int, counts: Counts) -> SurveyTally:
        """The counters as tallies with names."""
        source = self.survey.source
        tallies = {p.id: Tally(p.protocol.fingerprint, n, counts[p.counters], source(p.id)) for p in self.parts}
        return SurveyTally(self.survey.fingerprint, tallies)


def digest(n: int, counts: Counts) -> str:
    """SHA-256 of a tally: n and the counters as 8 bytes each, little-endian."""
    raw = n.to_bytes(8, "little") + np.ascontiguousarray(counts, dtype="<i8").tobytes()
    return hashlib.sha256(raw).hexdigest()

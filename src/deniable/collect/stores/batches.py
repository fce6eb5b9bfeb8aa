"""What a store adds up: batches by survey and epoch, each id once, and their sums as packed counters.

Order      ascending ids everywhere: neighbours in the index, no two workers that wait for each other, and nothing left
           of the order of arrival
Repeats    of an id within a group the submission with the smallest answers stands, and the others are duplicates, or
           conflicts if their answers are others
Sums       counters are kept in blocks, each in the narrowest integers that hold all of its counters

From the answers of submissions to a survey's tallies: which are plausible at all, and their sums.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable.collect.stores.base import Added, Batch, StoreError
from deniable.collect.wire import ID_BYTES
from deniable.errors import ReportError
from deniable.protocols import Protocol, Tally
from deniable.protocols.reports import Bytes
from deniable.protocols.tally import Counts
from deniable.surveys import Survey, SurveyTally

# -- from the answers of submissions to tallies -------------------------------------------------------


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


Flags = NDArray[np.bool_]
Keys = NDArray[np.bytes_]

MOST = 1 << 16
"""Answers read at a time, at most."""
WIDTHS = {kind: (np.iinfo(kind).min, np.iinfo(kind).max) for kind in ("<i1", "<i2", "<i4", "<i8")}
"""How the counters of a block are written: in the narrowest of these that holds all of them."""


@dataclass(frozen=True)
class StoredSurvey:
    """A published survey: the key that its rows have, and how it is counted."""

    key: int
    survey: Survey
    counter: SurveyCounter

    @classmethod
    def read(cls, key: int, canonical: bytes) -> StoredSurvey:
        """The survey of its published bytes; raises SpecError or ValueError if they are not a survey."""
        survey = Survey.from_spec(json.loads(canonical))
        return cls(key, survey, SurveyCounter(survey))

    @property
    def keeps(self) -> bool:
        """Whether reports are kept beside the tally."""
        return self.survey.terms is not None and self.survey.terms.retention == "reports"

    @property
    def page(self) -> int:
        """How many answers are read at a time: some megabytes."""
        return max(1, min(MOST, (1 << 24) // self.counter.width))

    def zero(self) -> Counts:
        return np.zeros(self.counter.size, dtype=np.int64)

    def _cells(self, place: int) -> int:
        """Counters of a block; the last may have fewer."""
        return min(BLOCK, self.counter.size - place * BLOCK)

    def packed(self, blocks: Blocks) -> list[bytes]:
        """Each block as bytes."""
        low, high = blocks.rows.min(axis=1), blocks.rows.max(axis=1)
        if len(blocks.rows) == 1:  # nearly all surveys, many times per second
            kind = next(kind for kind, (least, most) in WIDTHS.items() if least <= low[0] and high[0] <= most)
            return [blocks.rows[0, : self._cells(int(blocks.places[0]))].astype(kind).tobytes()]
        found = [b""] * len(blocks.places)
        left = np.ones(len(found), dtype=np.bool_)
        for kind, (least, most) in WIDTHS.items():
            fits = np.flatnonzero(left & (low >= least) & (high <= most))
            left[fits] = False
            raw, width = blocks.rows[fits].astype(kind).tobytes(), int(kind[-1])
            for at, which in enumerate(fits.tolist()):
                begin = at * BLOCK * width
                found[which] = raw[begin : begin + self._cells(int(blocks.places[which])) * width]
        return found

    def add_packed(self, total: Counts, rows: Sequence[int], places: Sequence[int], raws: Sequence[bytes]) -> None:
        """Add the bytes of blocks, each place once, to these rows of `total`."""
        kinds: dict[int, list[int]] = {}
        whole = self.counter.size // BLOCK
        for which, (place, raw) in enumerate(zip(places, raws, strict=True)):
            cells = BLOCK if place < whole else self._cells(place)
            width, rest = divmod(len(raw), cells) if cells > 0 else (0, 1)
            if rest or width not in (1, 2, 4, 8):
                raise StoreError(
                    f"a tally of survey {self.survey.fingerprint} has a block of the wrong size: "
                    "the store is damaged, restore a backup"
                )
            if len(raws) == 1:
                total[rows[0], :cells] += np.frombuffer(raw, dtype=f"<i{width}")
                return
            kinds.setdefault(width, []).append(which)
        for width, some in kinds.items():
            raw = b"".join(raws[which].ljust(BLOCK * width, b"\0") for which in some)
            total[[rows[which] for which in some]] += np.frombuffer(raw, dtype=f"<i{width}").reshape(-1, BLOCK)


@dataclass(frozen=True)
class EpochGroup:
    """The distinct submissions of one survey and epoch, by ascending id."""

    survey: str
    epoch: int
    ids: Bytes
    answers: Bytes
    batch: NDArray[np.int64]
    """Which batch each of them came in."""
    batches: tuple[int, ...]
    conflicts: NDArray[np.int64]
    """The batches of submissions that have the id of another and other answers."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass
class BatchResults:
    """What becomes of each batch while its groups are written."""

    batches: Sequence[Batch]
    added: list[Added] = field(init=False)

    def __post_init__(self) -> None:
        self.added = [Added()] * len(self.batches)

    def closed(self, group: EpochGroup) -> None:
        for place in group.batches:
            self.added[place] = Added(closed=True)

    def counted(self, group: EpochGroup, fresh: Flags, kept: Mapping[bytes, bytes]) -> int:
        """Note which of a group's submissions were new; returns the number of duplicates.

        `kept` has the answers of ids that are not new, as far as they are kept.
        """
        new = np.bincount(group.batch[fresh], minlength=len(self.batches)).tolist()
        conflicts = np.bincount(group.conflicts, minlength=len(self.batches)).tolist()
        for place in np.flatnonzero(~fresh).tolist() if kept else ():
            answers = group.answers[place].tobytes()
            conflicts[group.batch[place]] += kept.get(group.ids[place].tobytes(), answers) != answers
        duplicates = 0
        for place in group.batches:
            self.added[place] = Added(new[place], len(self.batches[place].ids) - new[place], conflicts[place])
            duplicates += self.added[place].duplicates
        return duplicates


def grouped(batches: Sequence[Batch]) -> Iterator[EpochGroup]:
    """The groups by survey and epoch, in an order that all workers share.

    >>> ids = np.arange(48, dtype=np.uint8).reshape(3, 16)[[2, 0, 2]]
    >>> group, = grouped([Batch("s", 0, ids, np.array([[7], [8], [9]], dtype=np.uint8))])
    >>> group.ids[:, 0].tolist(), group.answers.tolist()
    ([0, 32], [[8], [7]])
    >>> group.conflicts.tolist()
    [0]
    """
    members: dict[tuple[str, int], list[int]] = {}
    for place, batch in enumerate(batches):
        if batch.ids.shape != (len(batch.answers), ID_BYTES) or batch.answers.ndim != 2:
            raise ReportError(f"a batch has an id of {ID_BYTES} bytes and the answers for each submission")
        members.setdefault((batch.survey, batch.epoch), []).append(place)
    for survey, epoch in sorted(members):
        yield _group(survey, epoch, batches, members[survey, epoch])


def _group(survey: str, epoch: int, batches: Sequence[Batch], places: list[int]) -> EpochGroup:
    ids = np.concatenate([batches[place].ids for place in places])
    answers = np.concatenate([batches[place].answers for place in places])
    batch = np.repeat(places, [len(batches[place].ids) for place in places]).astype(np.int64)
    high, low = np.ascontiguousarray(ids).view(">u8").reshape(-1, 2).T
    order = np.lexsort((low, high))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (high[order[1:]] != high[order[:-1]]) | (low[order[1:]] != low[order[:-1]])
    conflicts: list[int] = []
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], len(order))
    several = ends - starts > 1
    for start, end in zip(starts[several].tolist(), ends[several].tolist(), strict=True):
        members = order[start:end]
        given = [answers[place].tobytes() for place in members]
        least = given.index(min(given))
        conflicts += [place for place, raw in zip(members.tolist(), given, strict=True) if raw != given[least]]
        members[[0, least]] = members[[least, 0]]  # in `order`, of which this is a part
    order = order[first]
    others = batch[np.array(conflicts, dtype=np.int64)]
    return EpochGroup(survey, epoch, ids[order], answers[order], batch[order], tuple(places), others)


def keys(ids: Bytes) -> Keys:
    """Ids as numpy compares them: byte by byte. (Taken out one by one they would lose zeros at their end.)"""
    return np.ascontiguousarray(ids).view(f"S{ID_BYTES}").reshape(-1)


def found(known: Keys, wanted: Keys) -> Flags:
    """Which of the wanted ids are among the known ones, which ascend."""
    if not len(known):
        return np.zeros(len(wanted), dtype=np.bool_)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return known[at] == wanted  # type: ignore[no-any-return]


def rows(array: Bytes) -> list[bytes]:
    """Each row's bytes."""
    raw, width = array.tobytes(), array.shape[1]
    return [raw[at : at + width] for at in range(0, len(raw), width)]


def joined(parts: Sequence[bytes], width: int) -> Bytes:
    """Rows of bytes as an array again."""
    return np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(-1, width)

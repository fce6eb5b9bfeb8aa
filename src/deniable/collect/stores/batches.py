"""How a store counts: batches by survey and epoch, each id once, with sorted runs of ids and blocks of sums.

Order      ascending ids everywhere: neighbours in the index, no two workers that wait for each other, and no trace of
           the order of arrival
Repeats    if an id repeats within a group, the submission with the smallest answers counts, and the others are
           duplicates, or conflicts if their answers differ
Sums       counters are kept in blocks, each in the narrowest integers that hold all of its counters

From the answers of submissions to a survey's tallies: which are plausible at all, and their sums.

The ids of an epoch lie in sorted runs: few pages are written per commit, and no row shows an order.

Pool       a commit merges its new ids into the pool, a sorted row that is rewritten: a reader of the table sees ids in
           the order of their bytes, and not which of them came last
Runs       a full pool keeps half of its ids, chosen at random; the others become a run that never changes. Sixteen
           runs of about the same size are merged into one. All that is visible about an id is its run: that it came
           in a period of some hundred or thousand submissions, later of some hundred thousand
Parts      a merge holds up commits, so it is kept short: from `split` ids on, a run is written as up to sixteen parts,
           by the first four bits of ids. From then on only parts with the same bits are merged, until they are large.
           A commit makes at most one merge, of about `MERGED` ids
Chunks     a run lies in rows of many ids, found by their first id: 17 bytes per id in all
Filter     a filter in memory, 4 bytes per id, rules out ids that are not in a run; only the rest is looked up in the
           table. A filter knows all ids of its runs and a few others, so it errs in one direction only. Many runs
           share one, so that there are few to ask; runs with other first bits than the id are skipped
Others     writes of another connection are noticed by the table's version, and its runs are read then. A commit reads
           at most `READ` ids of others: beyond that it gives up its turn (`BehindError`), so that its connection
           reads the rest while nobody waits for it. A commit that has read many ids merges no runs
"""

from __future__ import annotations

import hashlib
import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable.collect.stores.base import Added, Batch, NoShares, StoreError
from deniable.collect.wire import ID_BYTES, public_number
from deniable.errors import ReportError
from deniable.protocols import Protocol, Tally
from deniable.protocols.reports import Bytes
from deniable.protocols.tally import Counts
from deniable.surveys import Survey, SurveyTally

# -- from the answers of submissions to tallies -------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """The position of a question's report in the answers, and of its counters in the sum."""

    id: str
    protocol: Protocol
    bytes: slice
    counters: slice


BLOCK = 480
"""Counters per block: two bytes each, and SQLite still keeps the block within a page of its tree."""


@dataclass(frozen=True)
class Blocks:
    """The nonzero counters, as rows of `BLOCK`: the sum costs what it touches, not what it could touch."""

    places: NDArray[np.int64]
    """Ascending: row i holds the counters from `places[i] * BLOCK` on. Never empty: block 0 is always there."""
    rows: Counts

    def __neg__(self) -> Blocks:
        return Blocks(self.places, -self.rows)

    def whole(self, size: int) -> Counts:
        """The vector of `size` counters."""
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
        """Total number of counters."""
        return self.parts[-1].counters.stop  # type: ignore[no-any-return]

    def plausible(self, answers: Bytes, ids: Bytes | None = None) -> NDArray[np.bool_]:
        """Which submissions could have come from devices; the others are not counted."""
        good = np.ones(len(answers), dtype=np.bool_)
        for part in self.parts:
            reports = np.ascontiguousarray(answers[:, part.bytes])
            law = part.protocol.law()
            good &= law.plausible(reports)
            if ids is not None and law.public is not None and self._is_fresh:
                good[good] &= law.public(reports[good], self._public_numbers(part.id, ids[good]))
        return good

    @property
    def _is_fresh(self) -> bool:
        """Whether every submission is drawn afresh: a report that is repeated cannot follow from several ids."""
        return self.survey.terms is not None and not self.survey.terms.longitudinal.keeps

    def _public_numbers(self, question: str, ids: Bytes) -> NDArray[np.uint64]:
        survey = self.survey.fingerprint
        return np.array([public_number(survey, question, id.tobytes()) for id in ids], dtype=np.uint64)

    @cached_property
    def is_shared(self) -> bool:
        """Whether submissions are shares, which are summed when the epoch is over and not as they arrive."""
        return self.survey.terms is not None and bool(self.survey.terms.collectors)

    def count(self, answers: Bytes) -> Counts:
        """The sum of plausible submissions."""
        total = np.zeros(self.size, dtype=np.int64)
        if self.is_shared:
            return total
        for part in self.parts:
            total[part.counters] = part.protocol.tally(np.ascontiguousarray(answers[:, part.bytes])).counts
        return total

    def blocks(self, answers: Bytes) -> Blocks:
        """The same sum, as the blocks of counters that it touches."""
        if self.size <= 4 * BLOCK or self.is_shared:
            return Blocks.of(self.count(answers))
        found: list[tuple[int, Counts, NDArray[np.int64]]] = []
        for part in self.parts:
            for offset, counts in part.protocol.kernel().pieces(np.ascontiguousarray(answers[:, part.bytes])):
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


def share_sum(answers: Bytes) -> Counts:
    """The sum of shares, modulo 2^64: counters of all questions, one after the other."""
    words = np.ascontiguousarray(answers).view("<u8").reshape(len(answers), -1)
    total: Counts = words.sum(axis=0, dtype=np.uint64).view(np.int64)
    return total


def share_digest(ids: Bytes) -> bytes:
    """The name of a set of people, given by their ascending ids."""
    return hashlib.sha256(b"deniable-shares-v1\0" + np.ascontiguousarray(ids).tobytes()).digest()[:ID_BYTES]


def check_people(ids: Bytes, digest: bytes, least: int) -> None:
    """Raise NoShares unless these are the people on whom all have agreed, and enough of them."""
    if share_digest(ids) != digest:
        raise NoShares("here are shares of other people than those that were agreed on: begin again")
    if len(ids) < least:
        raise NoShares(
            f"{len(ids):,} people are complete, and at least {least:,} are needed: the noise does not suffice, and "
            "nothing is added up"
        )


def digest(n: int, counts: Counts) -> str:
    """SHA-256 of a tally: n and the counters as 8 bytes each, little-endian."""
    raw = n.to_bytes(8, "little") + np.ascontiguousarray(counts, dtype="<i8").tobytes()
    return hashlib.sha256(raw).hexdigest()


Flags = NDArray[np.bool_]
Keys = NDArray[np.bytes_]

MOST = 1 << 16
"""Maximum number of answers read at a time."""
WIDTHS = {kind: (np.iinfo(kind).min, np.iinfo(kind).max) for kind in ("<i1", "<i2", "<i4", "<i8")}
"""The integer types of a block: the narrowest that holds all of its counters is used."""


@dataclass(frozen=True)
class StoredSurvey:
    """A published survey: the key of its rows, and how it is counted."""

    key: int
    survey: Survey
    counter: SurveyCounter

    @classmethod
    def read(cls, key: int, canonical: bytes) -> StoredSurvey:
        """The survey from its published bytes; raises SpecError or ValueError if they are not a survey."""
        survey = Survey.from_spec(json.loads(canonical))
        return cls(key, survey, SurveyCounter(survey))

    @property
    def keeps(self) -> bool:
        """Whether reports are kept in addition to the tally."""
        return self.counter.is_shared or (self.survey.terms is not None and self.survey.terms.retention == "reports")

    @property
    def page(self) -> int:
        """Number of answers that are read at a time: some megabytes."""
        return max(1, min(MOST, (1 << 24) // self.counter.width))

    def zero(self) -> Counts:
        return np.zeros(self.counter.size, dtype=np.int64)

    def _cells(self, place: int) -> int:
        """Number of counters in a block; the last may have fewer."""
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
    """The batch of each submission."""
    batches: tuple[int, ...]
    conflicts: NDArray[np.int64]
    """The batches of submissions that share an id with another but have other answers."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass
class BatchResults:
    """The outcome of each batch while its groups are written."""

    batches: Sequence[Batch]
    added: list[Added] = field(init=False)

    def __post_init__(self) -> None:
        self.added = [Added()] * len(self.batches)

    def closed(self, group: EpochGroup) -> None:
        for place in group.batches:
            self.added[place] = Added(closed=True)

    def counted(self, group: EpochGroup, fresh: Flags, kept: Mapping[bytes, bytes]) -> int:
        """Record which of a group's submissions were new; returns the number of duplicates.

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
        members[[0, least]] = members[[least, 0]]  # a view: this changes `order`
    order = order[first]
    others = batch[np.array(conflicts, dtype=np.int64)]
    return EpochGroup(survey, epoch, ids[order], answers[order], batch[order], tuple(places), others)


def keys(ids: Bytes) -> Keys:
    """Ids as numpy compares them: byte by byte. (Single elements would lose trailing zeros.)"""
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


# -- ids in sorted runs -------------------------------------------------------------------------------


Words = NDArray[np.uint64]

RATIO = 16
"""Number of runs of one size that are merged into one."""
MERGED = 1 << 15
"""From this many ids on, fewer runs are merged, too."""
READ = 1 << 16
"""Approximate number of other connections' ids that one commit reads: more than one merge of theirs writes."""
TURNS = 3
"""After giving up this many turns, a connection reads everything in the next, so that it does not wait for ever."""
ROOM_SMALL, ROOM_LARGE = 1 << 16, 1 << 22
"""Number of ids that a new filter has room for: one filter for runs that will be merged, and one for others."""
_SLICE = 1 << 14
"""Ids processed at a time: their words fit into the processor's cache."""
_KIND = f"S{ID_BYTES}"


class RunTable(ABC):
    """The rows of one survey and epoch in a database; every call happens within the caller's transaction."""

    pool: int
    """Ids that stay in the pool when it is full, that is, when it holds twice as many."""
    chunk: int
    """Maximum number of ids per row."""
    split: int
    """Runs from this size on are written in parts."""
    largest: int
    """Parts from this size on are not merged."""

    @abstractmethod
    def version(self) -> object:
        """A value that differs whenever another connection has changed something."""

    @abstractmethod
    def runs(self) -> set[int]:
        """The numbers of all runs, without the pool."""

    @abstractmethod
    def read(self, run: int) -> list[bytes]:
        """The rows of a run, ascending; those of the pool for `POOL`."""

    @abstractmethod
    def known(self, pairs: Sequence[tuple[bytes, int]]) -> set[bytes]:
        """Which of these ids are in the run given with them."""

    @abstractmethod
    def drop(self, run: int) -> None: ...

    @abstractmethod
    def write(self, run: int, chunks: Iterable[tuple[bytes, bytes]]) -> None:
        """Add the rows of a run: first id and ids."""

    @abstractmethod
    def write_pool(self, ids: bytes) -> object:
        """Replace the pool; returns the table's version from then on."""


POOL = 0
"""The pool's number; a run has a random one."""


class Hashes:
    """Where filters look for ids: two places, each as a fraction of 2^32, and four bits at each.

    The factors are random, so that nobody can construct ids that collide.
    """

    def __init__(self, ids: Keys, factors: Words) -> None:
        high, low = np.ascontiguousarray(ids).view(">u8").reshape(-1, 2).astype(np.uint64).T
        self.places, self.masks = [], []
        for factor in factors:
            mixed = (high * factor[0] + low) * factor[1]
            mixed = (mixed ^ mixed >> np.uint64(29)) * factor[2]
            mask = np.zeros_like(mixed)
            for shift in (26, 20, 14, 8):
                mask |= np.uint64(1) << (mixed >> np.uint64(shift) & np.uint64(63))
            self.places.append(mixed >> np.uint64(32))
            self.masks.append(mask)

    @staticmethod
    def factors() -> Words:
        return np.frombuffer(secrets.token_bytes(48), dtype=np.uint64).reshape(2, 3) | np.uint64(1)


class Filter:
    """Which ids may be in some runs: a Bloom filter with a fixed capacity, four bytes per id.

    >>> ids, factors = np.frombuffer(bytes(range(160)), dtype="S16"), Hashes.factors()
    >>> filter = Filter(5)
    >>> filter.add(1, ids[:5], factors)
    >>> filter.may_hold(Hashes(ids[:5], factors)).tolist(), len(filter.may_hold(Hashes(ids[5:], factors))) < 5
    ([0, 1, 2, 3, 4], True)
    """

    def __init__(self, room: int) -> None:
        self.large = room >= ROOM_LARGE
        size = room * 16 // 64 + 4
        self._size = np.uint64(size)
        self._words = np.zeros((2, size), dtype=np.uint64)
        self.room = room
        self.runs: set[int] = set()

    def add(self, run: int, ids: Keys, factors: Words) -> None:
        self.runs.add(run)
        self.room -= len(ids)
        for at in range(0, len(ids), _SLICE):
            hashes = Hashes(ids[at : at + _SLICE], factors)
            for words, place, mask in zip(self._words, hashes.places, hashes.masks, strict=True):
                np.bitwise_or.at(words, self._at(place), mask)

    def _at(self, places: Words) -> Words:
        return places * self._size >> np.uint64(32)

    def may_hold(self, hashes: Hashes) -> NDArray[np.intp]:
        """The indices of the ids that may be in one of the runs."""
        (first, second), masks = self._words, hashes.masks
        which = np.flatnonzero((first[self._at(hashes.places[0])] & masks[0]) == masks[0])
        if which.size:
            mask = masks[1][which]
            which = which[(second[self._at(hashes.places[1][which])] & mask) == mask]
        return which


class BehindError(StoreError):
    """Other connections have written more ids than one commit may read."""

    def __init__(self, runs: SortedRuns) -> None:
        super().__init__("others have stored many ids meanwhile: try again")
        self.runs = runs


class SortedRuns:
    """The ids of one survey and epoch, for one connection."""

    def __init__(self, table: RunTable) -> None:
        self._table = table
        self._version: object = None
        self._pool: Keys = np.empty(0, dtype=_KIND)
        self._sizes: dict[int, int] = {}
        self._parts: dict[int, int | None] = {}
        """The first four bits of all ids of a run; None if they differ."""
        self._factors = Hashes.factors()
        self._filters: list[Filter] = []
        self._given_up = 0
        """Number of consecutive turns given up."""

    def claim(self, ids: Keys) -> Flags:
        """Insert ids, which ascend; returns which of them were new. Nobody else claims until the transaction ends.

        Raises BehindError, with nothing inserted, if it would have to read too many ids first.
        """
        read = self.catch_up(READ if self._given_up < TURNS else None)
        self._given_up = 0
        fresh = ~self._known(ids)
        new = ids if fresh.all() else ids[fresh]
        if len(new):
            self._put_pool(np.sort(np.concatenate([self._pool, new]), kind="stable"))
            if read < READ // 4:
                self._merge()
        return fresh

    def undone(self) -> None:
        """The transaction was rolled back: what is known here may be wrong."""
        self._version = None

    # -- finding -----------------------------------------------------------------------------------

    def catch_up(self, most: int | None = None) -> int:
        """Read what others have written; returns how many ids of runs. Raises BehindError after `most` of them."""
        version, read = self._table.version(), 0
        if version == self._version:
            return 0
        runs = self._table.runs()
        self._pool = self._read(POOL)
        for run in self._sizes.keys() - runs:
            self._forget(run)
        for run in runs - self._sizes.keys():
            if most is not None and read >= most:
                self._given_up += 1
                raise BehindError(self)
            ids = self._read(run)
            self._remember(run, ids)
            read += len(ids)
        self._version = version
        return read

    def _known(self, ids: Keys) -> Flags:
        known, hashes = found(self._pool, ids), Hashes(ids, self._factors)
        for filter in self._filters:
            maybe = filter.may_hold(hashes)
            maybe = maybe[~known[maybe]]
            if maybe.size:
                wanted = [ids[place : place + 1].tobytes() for place in maybe.tolist()]
                runs = [(run, self._parts[run]) for run in sorted(filter.runs)]
                held = self._table.known(
                    [(id, run) for id in wanted for run, part in runs if part in (None, id[0] >> 4)]
                )
                known[maybe] = [id in held for id in wanted]
        return known

    # -- writing -----------------------------------------------------------------------------------

    def _put_pool(self, pool: Keys) -> None:
        if len(pool) >= 2 * self._table.pool:
            stays = np.zeros(len(pool), dtype=np.bool_)
            stays[np.random.default_rng().permutation(len(pool))[: self._table.pool]] = True
            self._put_runs(pool[~stays])
            pool = pool[stays]
        self._version = self._table.write_pool(pool.tobytes())
        self._pool = pool

    def _put_runs(self, ids: Keys) -> None:
        """Write ascending ids as one run, or as its parts."""
        bits = _first_bits(ids)
        whole = len(ids) < self._table.split or bits[0] == bits[-1]
        for part in [ids] if whole else np.split(ids, np.searchsorted(bits, range(1, 16))):
            if len(part):
                run = secrets.randbits(62) + 1
                self._table.write(run, chunks(part, self._table.chunk))
                self._remember(run, part)

    def _remember(self, run: int, ids: Keys) -> None:
        bits = _first_bits(ids)
        self._sizes[run], self._parts[run] = len(ids), int(bits[0]) if bits[0] == bits[-1] else None
        large = not self._is_merged(run)
        with_room = (filter for filter in self._filters if filter.large == large and filter.room >= len(ids))
        filter = next(with_room, None)
        if filter is None:
            filter = Filter(max(len(ids), ROOM_LARGE if large else ROOM_SMALL))
            self._filters.append(filter)
        filter.add(run, ids, self._factors)

    def _forget(self, run: int) -> None:
        del self._sizes[run], self._parts[run]
        for filter in self._filters:
            filter.runs.discard(run)
        self._filters = [filter for filter in self._filters if filter.runs]

    def _is_merged(self, run: int) -> bool:
        """Whether a run will be merged with others."""
        return self._sizes[run] < (self._table.split if self._parts[run] is None else self._table.largest)

    def _merge(self) -> None:
        """Merge some runs if it is time. A commit waits for it, so further merges wait for the next commit."""
        some = self._due()
        if some:
            merged = np.sort(np.concatenate([self._read(run) for run in some]), kind="stable")
            # Before the merged run is written, which then takes their pages.
            for run in some:
                self._table.drop(run)
                self._forget(run)
            self._put_runs(merged)

    def _due(self) -> list[int]:
        """Runs to merge now: the smallest of those of about the same size, if there are enough."""
        alike: dict[tuple[int | None, int], list[int]] = {}
        for run, size in self._sizes.items():
            if self._is_merged(run):
                level, least = 0, self._table.pool * RATIO
                while self._parts[run] is None and size >= least:
                    level, least = level + 1, least * RATIO
                alike.setdefault((self._parts[run], level), []).append(run)
        for some in sorted(alike.values(), key=len, reverse=True):
            some.sort(key=self._sizes.__getitem__)
            total, chosen = 0, list[int]()
            for run in some[:RATIO]:
                if total < MERGED:
                    chosen.append(run)
                    total += self._sizes[run]
            if len(chosen) >= RATIO or total >= MERGED:
                return chosen
        return []

    def _read(self, run: int) -> Keys:
        return np.frombuffer(b"".join(self._table.read(run)), dtype=_KIND)


def _first_bits(ids: Keys) -> NDArray[np.uint8]:
    """The first four bits of each id."""
    return np.ascontiguousarray(ids).view(np.uint8).reshape(-1, ID_BYTES)[:, 0] >> np.uint8(4)


def select_runs(table: str, where: str = "true") -> str:
    """The numbers of all runs: from one to the next by the index, because there are far more rows."""
    following = f"SELECT MIN(run) FROM {table} WHERE {where} AND run > "
    others = f"SELECT ({following} known.run) FROM known WHERE known.run IS NOT NULL"
    walk = f"WITH RECURSIVE known (run) AS ({following} {POOL} UNION ALL {others})"
    return f"{walk} SELECT run FROM known WHERE run IS NOT NULL"


def chunks(ids: Keys, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The rows for ascending ids: the first id, and all ids."""
    raw = ids.tobytes()
    for at in range(0, len(raw), size * ID_BYTES):
        yield raw[at : at + ID_BYTES], raw[at : at + size * ID_BYTES]

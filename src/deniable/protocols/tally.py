"""Tallies: the sum of any number of reports, one vector of integers that adds up; and studies of its law.

Tallies of one protocol form a commutative monoid: the tally of all reports is the sum of the tallies of the
parts, in any order and grouping, to the last bit. Reports need never be kept.

Batches    a `Counter` counts them as if they had come at once. A family whose counters are cheaper to finish once than
           after each batch has an adder of its own (`Kernel.adder`)
Halves     the reports of several groups are counted together, without separating them: finding the rows of each group
           costs more than counting them. A report is cut into its lowest bits and the bits above them. One table for
           all groups counts the lower halves, the upper halves and, if a group needs it, lower xor upper. Each
           protocol computes its counters from these, and says whether any of the reports is invalid
Studies    repeat a whole collection many times. Where the joint law of the counters is known, they are drawn from it in
           about as many draws as there are counters, whatever the number of people: binomials and a multinomial for
           GRR, two binomials per counter for unary encodings, splits bit by bit for Hadamard. Every other protocol
           draws all reports in blocks, with `Simulation(seed)`
Caution    these laws are drawn with numpy's generator, whose binomials work in floats: right for studies (errors near
           1e-16), no basis for a privacy claim. Neither is random to anyone who knows the seed
"""

from __future__ import annotations

import json
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable._extras import require
from deniable._files import atomic_write, load_json, parse_json
from deniable.domains import ListedDomain
from deniable.errors import MismatchError, NumberError, ShapeError, SpecError
from deniable.protocols.reports import Bytes, Reports
from deniable.randomness import Simulation

if TYPE_CHECKING:
    from deniable.protocols.protocol import Protocol

if typing.TYPE_CHECKING:
    from deniable.protocols.protocol import Protocol


Counts = NDArray[np.int64]

_LARGEST = np.iinfo(np.int64).max
_NOTE = b"deniable.tally"


@dataclass(frozen=True, eq=False)
class Tally:
    """Sum of reports: the protocol's fingerprint, the number of reports n, and an int64 vector.

    Args:
        fingerprint: Fingerprint of the protocol.
        n: Number of reports.
        counts: The sum, as integers.
        source: Survey and question that the reports answer, where there is one; tallies of different sources do not
            add.

    Raises:
        SpecError: The counts are not a flat vector, or n is negative.

    >>> a, b = Tally("f", 2, [1, 1]), Tally("f", 1, [0, 1])
    >>> (a + b).n, (a + b).counts.tolist()
    (3, [1, 2])
    """

    fingerprint: str
    n: int
    counts: Counts
    source: str | None = None

    def __init__(self, fingerprint: str, n: int, counts: ArrayLike, source: str | None = None) -> None:
        vector = np.array(counts, dtype=np.int64)
        if vector.ndim != 1 or n < 0:
            raise SpecError("a tally is a number of reports and a flat vector of integers")
        vector.flags.writeable = False
        object.__setattr__(self, "fingerprint", str(fingerprint))
        object.__setattr__(self, "n", int(n))
        object.__setattr__(self, "counts", vector)
        object.__setattr__(self, "source", source)

    def __add__(self, other: Any) -> Tally:
        if isinstance(other, int) and other == 0:
            return self  # so that sum(tallies) works
        if not isinstance(other, Tally):
            return NotImplemented
        self._check(other)
        # No count exceeds what one report can add times n, but the check is on the numbers themselves.
        total = self.counts + other.counts
        overflow = ((self.counts >= 0) == (other.counts >= 0)) & ((total >= 0) != (self.counts >= 0))
        if overflow.any() or self.n + other.n > _LARGEST:
            raise OverflowError("the sum of these tallies does not fit in 64 bits")
        return Tally(self.fingerprint, self.n + other.n, total, self.source)

    __radd__ = __add__

    def _check(self, other: Tally) -> None:
        if self.fingerprint != other.fingerprint:
            raise MismatchError(
                f"tallies of different protocols do not add: {self.fingerprint[:16]} and {other.fingerprint[:16]}"
            )
        if self.source != other.source:
            raise MismatchError(f"tallies of different sources do not add: {self.source} and {other.source}")
        if self.counts.size != other.counts.size:
            raise MismatchError(f"one tally has {self.counts.size} counters, the other {other.counts.size}")

    @staticmethod
    def sum(tallies: Iterable[Tally]) -> Tally:
        """The sum of at least one tally."""
        total: Any = 0
        for tally in tallies:
            total = total + tally
        if not isinstance(total, Tally):
            raise MismatchError("there is no tally to add: start from protocol.empty()")
        return total

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        same = (self.fingerprint, self.n, self.source) == (other.fingerprint, other.n, other.source)
        return same and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<tally of {self.n} reports, {self.counts.size} counters, protocol {self.fingerprint[:12]}>"

    def spec(self) -> dict[str, Any]:
        head = {"kind": "tally", "version": 1, "fingerprint": self.fingerprint, "n": self.n}
        return head | ({"source": self.source} if self.source else {}) | {"counts": self.counts.tolist()}

    @classmethod
    def from_spec(cls, spec: Any) -> Tally:
        match spec:
            case {"kind": "tally", "version": 1, "fingerprint": str(name), "n": int(n), "counts": list(counts)}:
                if all(type(count) is int for count in counts):
                    return cls(name, n, counts, spec.get("source"))
            case {"kind": "tally", "version": version} if version != 1:
                raise SpecError(f"tallies of version {version!r} are unknown here: only 1 is")
        raise SpecError("this is not a tally: it needs kind, version, fingerprint, n and integer counts")

    def to_arrow(self) -> Any:
        """A pyarrow table with one column of counts; the rest is in the schema's metadata."""
        pa = require("pyarrow", "files")
        head = {key: value for key, value in self.spec().items() if key != "counts"}
        return pa.table({"count": self.counts}).replace_schema_metadata({_NOTE: json.dumps(head).encode()})

    @classmethod
    def from_arrow(cls, table: Any) -> Tally:
        notes = table.schema.metadata or {}
        head = parse_json(notes[_NOTE], "the table's metadata") if _NOTE in notes else None
        if not isinstance(head, dict) or "count" not in table.column_names:
            raise SpecError("this table is not a tally: it needs a column of counts, and the rest in its metadata")
        return cls.from_spec(head | {"counts": table.column("count").to_pylist()})

    def save(self, path: str | Path) -> None:
        """Write JSON, or Parquet when the name ends in .parquet; the file appears whole or not at all."""
        with atomic_write(path) as file:
            if Path(path).suffix == ".parquet":
                require("pyarrow.parquet", "files").write_table(self.to_arrow(), file)
            else:
                file.write(json.dumps(self.spec(), separators=(",", ":")).encode() + b"\n")

    @classmethod
    def load(cls, path: str | Path) -> Tally:
        if Path(path).suffix == ".parquet":
            pa = require("pyarrow", "files")
            try:
                return cls.from_arrow(require("pyarrow.parquet", "files").read_table(path))
            except pa.ArrowInvalid as broken:
                raise SpecError(f"{path} is not a readable Parquet file: {broken}") from None
        return load_json(path, cls.from_spec)


# -- reports that come in batches, counted as if they had come at once --------------------------------


class Adder(typing.Protocol):
    """The counters of a tally while reports still come."""

    def add(self, reports: Bytes) -> None:
        """Count these too; the array may be reused afterwards."""

    def counts(self) -> Counts:
        """The counters so far."""


class PlainAdder:
    """Counts each batch by itself, and sums."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._total = np.zeros(protocol.tally_size, dtype=np.int64)

    def add(self, reports: Bytes) -> None:
        self._total += self._protocol.count(reports)

    def counts(self) -> Counts:
        return self._total.copy()


WORTH_A_TABLE = 1 << 12
"""From this number of reports on, the tables of halves are worth their cost."""
_ROWS_AT_ONCE = 1 << 16
_GROUP_BITS = 8
_MOST_GROUPS, _MOST_HALF = 8, 13
"""The most groups, and the most bits of a half, that are counted by numbers of 16 bits."""


class Halves(NamedTuple):
    """How the reports of one protocol are counted by their halves."""

    bits: int
    """The number of bits of the lower half."""
    read: Callable[[list[Counts]], Counts | None]
    """The counts of each lower half, each upper half and, if `mixed`, each lower xor upper, for every number of `bits`
    bits or more -> the counters, or None if one of the reports is invalid."""
    mixed: bool = False
    ones: int | None = None
    """The number of bits that are set in each report, if it is known."""


class HalvesCounter:
    """Counts the reports of several groups, whose number is the lowest byte of a report."""

    def __init__(self, halves: Sequence[Halves]) -> None:
        self._halves = halves
        self._width = max(one.bits for one in halves)
        self._lengths = np.uint32(sum(one.bits << 4 * place for place, one in enumerate(halves)))
        self._kinds = 3 if any(one.mixed for one in halves) else 2
        self._weighed = [(place, one.ones) for place, one in enumerate(halves) if one.ones is not None]

    @classmethod
    def of(cls, halves: Sequence[Halves | None]) -> HalvesCounter | None:
        known = [one for one in halves if one is not None and one.bits <= _MOST_HALF]
        return cls(known) if len(known) == len(halves) <= _MOST_GROUPS else None

    def counts(self, reports: NDArray[np.uint32]) -> list[tuple[int, Counts]] | None:
        """The number of reports of each group and its counters; None if one of the reports is invalid."""
        groups = len(self._halves)
        tables: Counts = np.zeros((self._kinds, groups << self._width), dtype=np.int64)
        for start in range(0, reports.size, _ROWS_AT_ONCE):
            if not self._add(reports[start : start + _ROWS_AT_ONCE], tables):
                return None
        found = []
        for place, one in enumerate(self._halves):
            own = list(tables.reshape(self._kinds, groups, -1)[:, place])
            counters = one.read(own)
            if counters is None:
                return None
            found.append((int(own[0].sum()), counters))
        return found

    def _add(self, reports: NDArray[np.uint32], tables: Counts) -> bool:
        group = reports.astype(np.uint8)
        if int(group.max(initial=0)) >= len(self._halves):
            return False
        body = reports >> np.uint32(_GROUP_BITS)
        if self._weighed:
            ones = np.bitwise_count(body)
            if any(((ones != own) & (group == place)).any() for place, own in self._weighed):
                return False
        length = group.astype(np.uint32)
        length <<= np.uint32(2)
        np.right_shift(self._lengths, length, out=length)
        length &= np.uint32(15)
        above = body >> length
        if int(above.max(initial=0)) >> self._width:
            return False
        upper = above.astype(np.uint16)
        above <<= length
        body ^= above
        lower, own = body.astype(np.uint16), group.astype(np.uint16)
        own <<= np.uint16(self._width)
        mixed = lower ^ upper
        for half, table in zip((lower, upper, mixed), tables, strict=False):
            half |= own
            table += np.bincount(half, minlength=table.size)
        return True


class Counter:
    """Adds up batches of reports; `tally` is what `Protocol.tally` of all of them would be.

    >>> from deniable.protocols import OUE
    >>> protocol = OUE(8, epsilon=1)
    >>> counter = protocol.counter()
    >>> for answers in ([0, 1], [7]):
    ...     counter.add(protocol.privatize(answers))
    >>> counter.tally().n
    3
    """

    def __init__(self, protocol: Protocol, source: str | None = None) -> None:
        self._protocol, self._source = protocol, source
        self._adder, self._n = protocol.kernel().adder(), 0

    def add(self, reports: Reports | Bytes) -> None:
        """Count a batch, or refuse all of it."""
        array = self._protocol._rows(reports)
        self._protocol._add_checked(self._adder, array)
        self._n += len(array)

    def tally(self) -> Tally:
        return Tally(self._protocol.fingerprint, self._n, self._adder.counts(), self._source)


# -- studies ------------------------------------------------------------------------------------------

_BLOCK_BYTES = 1 << 25


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Study:
    """Tallies of repeated collections from the same people."""

    protocol: Protocol
    n: int
    truth: NDArray[np.float64]
    """The figures of these people, without noise."""
    tallies: Counts
    """One run per row."""
    exact: bool
    """Whether the tallies were drawn from their joint law, without reports."""
    method: str

    def __len__(self) -> int:
        return len(self.tallies)

    def tally(self, run: int) -> Tally:
        return Tally(self.protocol.fingerprint, self.n, self.tallies[run])

    def figures(self) -> NDArray[np.float64]:
        """The estimated figures, such as shares or a mean, one run per row."""
        return np.stack([self.protocol.estimate(self.tally(run)).table().value for run in range(len(self))])

    def __repr__(self) -> str:
        return f"<{len(self)} runs of {self.protocol.name} with {self.n:,} people, {self.method}>"


def study(protocol: Protocol, values: Any, counts: Any, runs: int, seed: int) -> Study:
    """`runs` collections from the same people: `Protocol.simulate`."""
    if isinstance(runs, bool) or not isinstance(runs, int | np.integer) or runs < 1:
        raise NumberError(f"the number of runs is a positive whole number, not {runs!r}")
    if not isinstance(protocol.domain, ListedDomain):
        if values is None:
            raise NumberError("the answers cannot be listed: give the values, one per person or with their counts")
        if counts is not None:
            values = [
                one for one, often in zip(values, _people(counts, len(values)), strict=True) for _ in range(often)
            ]
        encoded = protocol.domain.encode(values)
        if not len(encoded):
            raise NumberError("a study needs at least one person")
        truth, n = protocol.worth().truth(values), len(encoded)
        blocks = partial(_slices, encoded, _block(protocol))
    else:
        size = protocol.domain.size
        if values is None:
            people = _people(counts, size)
        else:
            places = protocol.domain.encode(values)
            weights = np.ones(len(places), dtype=np.int64) if counts is None else _people(counts, len(places))
            people = np.zeros(size, dtype=np.int64)
            np.add.at(people, places, weights)
            people = _people(people, size)
        truth, n = protocol.worth().truth(protocol.domain.labels, people), int(people.sum())
        simulate = protocol.kernel().simulate
        if simulate is not None:
            tallies = simulate(people, int(runs), np.random.default_rng(seed))
            return Study(protocol, n, truth, tallies, True, "drawn from the law of the tally")
        blocks = partial(_in_order, people, _block(protocol))
    bits = Simulation(seed)
    drawn = np.stack([_by_reports(protocol, blocks(), bits) for _ in range(runs)])
    return Study(protocol, n, truth, drawn, False, "every report drawn and tallied")


def _people(counts: ArrayLike, size: int) -> Counts:
    given = np.asarray(counts)
    if given.ndim != 1 or given.size != size:
        raise ShapeError(f"give how many people hold each of the {size} answers, not an array of shape {given.shape}")
    if given.dtype.kind not in "iu":
        raise NumberError("people are counted in whole numbers")
    if (given < 0).any() or not 1 <= int(given.sum(dtype=object)) < 1 << 62:
        raise NumberError("the numbers of people are not negative and add up to at least one, at most 2^62")
    return given.astype(np.int64)


def _block(protocol: Protocol) -> int:
    """How many people are drawn at once."""
    return max(1, _BLOCK_BYTES // (protocol.report_bytes + 16))


def _slices(encoded: Any, block: int) -> Iterator[Any]:
    return (encoded[start : start + block] for start in range(0, len(encoded), block))


def _in_order(counts: Counts, block: int) -> Iterator[Counts]:
    """People in order of their answers, a block at a time; the tally does not depend on the order."""
    ends = np.cumsum(counts)
    for start in range(0, int(ends[-1]), block):
        yield np.searchsorted(ends, np.arange(start, min(start + block, int(ends[-1]))), side="right")


def _by_reports(protocol: Protocol, blocks: Iterable[Any], bits: Simulation) -> Counts:
    total = np.zeros(protocol.tally_size, dtype=np.int64)
    for values in blocks:
        if len(values) == 1:
            one = values[0].item() if isinstance(values, np.ndarray) else values[0]
            rows = np.frombuffer(protocol.draw(one, bits), dtype=np.uint8).reshape(1, -1)
        else:
            rows = protocol.draw_many(values, bits)
        total += protocol.count(rows)
    return total


def kept_or_uniform(truth: Counts, keep: float, runs: int, random: np.random.Generator) -> tuple[Counts, Counts]:
    """How many of each answer are kept, and how many are not in all; one run per row."""
    kept: Counts = random.binomial(truth, keep, (runs, truth.size))
    return kept, truth.sum() - kept.sum(axis=1)


def spread_evenly(people: Counts, size: int, random: np.random.Generator) -> Counts:
    """People of each run among `size` equally likely places."""
    spread: Counts = random.multinomial(people, np.full(size, 1 / size))
    return spread


def independent_bits(truth: Counts, p: float, q: float, runs: int, random: np.random.Generator) -> Counts:
    """How often each bit is set: with probability p by its own people, with q by all others."""
    shape = (runs, truth.size)
    bits: Counts = random.binomial(truth, p, shape) + random.binomial(truth.sum() - truth, q, shape)
    return bits


def even_columns(people: Counts, random: np.random.Generator) -> Counts:
    """Each of people[..., i], i > 0, picks a uniform column j with even popcount(i & j); how many pick each j.

    The bits of j are settled from the top. What is left to know of a person is the rest of i and the parity that the
    rest of i & j must have: either value of a bit is then equally likely, except that when the rest of i is zero
    nothing can mend the parity any more. So each of log2(b) rounds splits 2 b groups of people by fair coins.
    """
    batch, size = people.shape[:-1], people.shape[-1]
    # Axes: batch, the bits of j so far, the parity still needed, the rest of i.
    groups: NDArray[Any] = np.stack([people, np.zeros_like(people)], axis=-2)[..., None, :, :]
    half = size // 2
    while half:
        clear, lit = groups[..., :half], groups[..., half:]
        clear_ones = random.binomial(clear, 0.5)
        lit_ones = random.binomial(lit, 0.5)
        # Rest zero and top bit of i set: the parity decides the bit.
        lit_ones[..., 0, 0] = 0
        lit_ones[..., 1, 0] = lit[..., 1, 0]
        zeros = (clear - clear_ones) + (lit - lit_ones)
        ones = clear_ones + lit_ones[..., ::-1, :]  # a one where i has a one turns the parity
        groups = np.stack([zeros, ones], axis=-3).reshape(*batch, -1, 2, half)
        half //= 2
    return groups[..., 0, 0]

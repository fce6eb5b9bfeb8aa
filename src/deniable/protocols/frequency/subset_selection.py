"""Subset selection: report w of the d answers, the true one more often among them than not.

Law        the truth is in the subset with probability p = T / 2^64, T = floor(2^64 w e / (w e + d - w)), e = e^epsilon;
           given that, the subset is uniform among those of size w that contain the truth, or that do not
Privacy    P(S | v in S) / P(S | v not in S) = p (d - w) / ((1 - p) w) <= e
Support    q = (w - p) / (d - 1): a subset has w members, p of them the truth on average
Error      n q (1 - q) / (p - q)^2 + n f (1 - p - q) / (p - q), the smallest of all for w near d / (e + 1)
Size       without one, the w with the smallest error of an answer that nobody gave. More members are better for common
           answers: about d / (e^(epsilon / 2) + 1) of them where the error is to be small for every share
Report     the shorter of a bitmap of d bits (padding zero) and w positions in ascending order, little-endian
Cost       about w words on the device for one report; a carry-save adder or a histogram on the server
Source     Ye and Barg 2018; Wang et al. 2016
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.channels.closed_forms import best_subset_size
from deniable.domains import DomainLike, Integers
from deniable.errors import ChannelError, NumberError
from deniable.exact import Dyadic, Number, as_epsilon
from deniable.protocols.frequency.bit_rows import (
    BitCounter,
    positional_popcount,
    random_subsets,
    row_weights,
)
from deniable.protocols.frequency.grr import GRR
from deniable.protocols.frequency.histogram import PureProtocol, in_order
from deniable.protocols.frequency.local_hashing import OLH
from deniable.protocols.frequency.unary import bitmap_operations, padding_is_zero
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import Law
from deniable.protocols.protocol import Positions, Protocol, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, from_bytes, histogram, to_bytes, width_of
from deniable.protocols.tally import Adder, Counts, Halves
from deniable.protocols.traits import Ask, Traits
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits, listed_bits
from deniable.randomness.kernels import BLOCK, integers_below
from deniable.words import Fact, word

MOST_MEMBERS = 1 << 20
"""The largest subset: a device draws it in a few seconds."""
_FEW_ANSWERS = 16
"""Up to here there is a table of all subsets."""
_MANY = 1 << 12
"""Reports, from which on it is worth building."""
_TUNED = 1 << 10
"""Answers, up to which the planner compares sizes: of more, unary encodings are as good, with less work."""
_SHARES = (0.02, 0.05, 0.1, 0.2, 0.35)
"""Shares of an answer for which a size of the planner's candidates is the best, beside the extremes."""


@dataclass(frozen=True)
class Subsets:
    """How a subset of a fixed size is written, read and counted: as a bitmap, or as a list if that is shorter.

    >>> Subsets(1024, 275).report_bytes, Subsets(1024, 3).report_bytes
    (128, 6)
    """

    size: int
    """The size of the whole set."""
    members: int

    @property
    def _width(self) -> int:
        return width_of(self.size)

    @property
    def _bitmap_bytes(self) -> int:
        return -(-self.size // 8)

    @property
    def listed(self) -> bool:
        """Whether a list of positions is shorter than a bitmap."""
        return self.members * self._width < self._bitmap_bytes

    @property
    def report_bytes(self) -> int:
        return self.members * self._width if self.listed else self._bitmap_bytes

    @property
    def forms(self) -> int:
        return math.comb(self.size, self.members)

    @property
    def operations(self) -> float:
        """The operations for counting one report."""
        return min(float(self.members), bitmap_operations(self.size))

    @property
    def everything(self) -> int:
        """The whole set, as a number with a bit per element."""
        return (1 << self.size) - 1

    def written(self, members: int) -> bytes:
        """The report of one subset, whose members are the bits that are set."""
        return listed_bits(members, self._width) if self.listed else members.to_bytes(self._bitmap_bytes, "little")

    def written_flags(self, flags: NDArray[Any]) -> Bytes:
        """The reports of subsets that are given by a flag per element, one subset per row."""
        if not self.listed:
            return np.packbits(flags, axis=1, bitorder="little")
        return to_bytes(np.nonzero(flags)[1], self._width).reshape(len(flags), -1)

    def written_maps(self, maps: Bytes) -> Bytes:
        """The same of bitmaps."""
        return self.written_flags(np.unpackbits(maps, axis=1, bitorder="little")) if self.listed else maps

    @cached_property
    def _maps(self) -> NDArray[np.uint16] | None:
        """All bitmaps, where they are few."""
        if self.listed or self.size > _FEW_ANSWERS:
            return None
        maps = np.arange(1 << self.size, dtype=np.uint32)
        few: NDArray[np.uint16] = maps[np.bitwise_count(maps) == self.members].astype(np.uint16)
        return few

    @cached_property
    def _lanes(self) -> NDArray[np.int64]:
        """Whether each element is a member, one row per element and one column per bitmap."""
        assert self._maps is not None
        elements = np.arange(self.size, dtype=np.uint16)[:, None]
        return (self._maps >> elements & np.uint16(1)).astype(np.int64)

    @cached_property
    def few(self) -> NDArray[np.uint16] | None:
        """All bitmaps, a row of them per element: those without it, then those with it; None where they are many."""
        return None if self._maps is None else self._maps[np.argsort(self._lanes, axis=1, kind="stable")]

    def drawn(self, elements: NDArray[Any], held: NDArray[np.bool_], bits: Bits) -> NDArray[np.uint16]:
        """A uniform one of `few`, with each element exactly where it is held."""
        assert self.few is not None
        without, flat = math.comb(self.size - 1, self.members), self.few.reshape(-1)
        # How many more there are with the element than without it, modulo 2^32.
        more = np.uint32((self.forms - 2 * without) % (1 << 32))
        drawn = np.empty(elements.size, dtype=np.uint16)
        for start in range(0, elements.size, BLOCK):
            own = held[start : start + BLOCK].astype(np.uint32)
            index = elements[start : start + BLOCK].astype(np.uint32)
            index *= np.uint32(self.forms)
            index += own * np.uint32(without)
            own *= more
            own += np.uint32(without)
            index += integers_below(bits, own)
            np.take(flat, index, out=drawn[start : start + BLOCK], mode="clip")
        return drawn

    def _positions(self, reports: Bytes) -> NDArray[Any]:
        return from_bytes(reports.reshape(-1, self._width)).reshape(len(reports), -1)

    def valid_maps(self, maps: NDArray[Any]) -> NDArray[np.bool_]:
        """Which bitmaps, given as numbers, are valid."""
        valid: NDArray[np.bool_] = np.bitwise_count(maps) == self.members
        valid &= maps <= maps.dtype.type((1 << self.size) - 1)
        return valid

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        if self.listed:
            members = self._positions(reports).astype(np.int64)
            fits = members[:, -1:] < self.size
            return np.asarray(np.hstack([np.diff(members, axis=1) > 0, fits]).all(axis=1))
        weight = row_weights(reports)
        valid: NDArray[np.bool_] = padding_is_zero(reports, self.size) & (weight == self.members)
        return valid

    def count(self, reports: Bytes) -> Counts:
        """How many of the subsets have each element."""
        if self.listed:
            return np.bincount(self._positions(reports).reshape(-1), minlength=self.size)
        if self._maps is not None and len(reports) >= _MANY:
            return self.count_maps(from_bytes(reports))
        return positional_popcount(reports)[: self.size]

    def count_maps(self, maps: NDArray[Any]) -> Counts:
        """The same of bitmaps that are numbers, where there is a table of all."""
        assert self._maps is not None
        counts: Counts = self._lanes @ histogram(maps, 1 << self.size)[self._maps]
        return counts

    @property
    def halves(self) -> Halves | None:
        """Bitmaps are cut in the middle."""
        bits = -(-self.size // 2)
        rest = self.size - bits

        def read(found: list[Counts]) -> Counts | None:
            lower, upper = found[:2]
            if upper[1 << rest :].any():
                return None
            return np.concatenate([_by_bit(lower, bits), _by_bit(upper, rest)])

        return None if self.listed else Halves(bits, read, ones=self.members)

    def adder(self) -> Adder | None:
        """What counts batch after batch faster than one by one, if anything does."""
        return None if self.listed or self.few is not None else BitCounter(self.report_bytes, self.size)

    def flags(self, reports: Bytes) -> NDArray[np.bool_]:
        """Whether each element is a member, one row per report."""
        if not self.listed:
            return np.unpackbits(reports, axis=1, count=self.size, bitorder="little").view(np.bool_)
        members = np.zeros((len(reports), self.size), dtype=np.bool_)
        np.put_along_axis(members, self._positions(reports).astype(np.int64), True, axis=1)
        return members


@lru_cache(maxsize=16)
def _flags(bits: int) -> NDArray[np.int64]:
    """Which numbers of `bits` bits have each bit set, one row per bit."""
    return np.arange(1 << bits) >> np.arange(bits)[:, None] & 1


def _by_bit(counts: Counts, bits: int) -> Counts:
    """How often each bit is set in numbers that are counted."""
    found: Counts = _flags(bits) @ counts[: 1 << bits]
    return found


def spreads(answers: int, epsilon: float, sizes: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """The noise of one report about an answer of share 0 and of share 1, for subsets of each size."""
    odds = math.exp(epsilon)
    weight = sizes * odds + answers - sizes
    p = sizes * odds / weight
    q = sizes * (weight - odds) / ((answers - 1) * weight)
    gap = sizes * (answers - sizes) * (odds - 1) / ((answers - 1) * weight)
    return q * (1 - q) / gap**2, p * (1 - p) / gap**2


@lru_cache(maxsize=1024)
def best_size(answers: int, epsilon: float) -> int:
    """The size with the smallest error of an answer that nobody gave: near answers / (e^epsilon + 1), often below.

    >>> best_size(8, 1.5), best_size(1024, 1.0)
    (1, 275)
    """
    ideal = answers / (math.exp(epsilon) + 1)
    sizes = np.arange(max(1, math.floor(ideal) - 2), max(1, min(answers - 1, math.ceil(ideal) + 1)) + 1.0)
    return int(sizes[np.argmin(spreads(answers, epsilon, sizes)[0])])


def best_sizes(answers: int, epsilon: float) -> list[int]:
    """The sizes with the smallest error for answers of several shares, the mean of all shares, and the worst of them.

    >>> best_sizes(16, 2.0), best_sizes(2, 1.0)
    ([2, 3, 4, 5], [1])
    """
    least, even = best_size(answers, epsilon), best_subset_size(answers, epsilon)
    if answers > _TUNED:
        return sorted({least, even})
    most = max(least, even, min(answers - 1, math.ceil(answers / (math.exp(epsilon / 2) + 1)) + 1))
    sizes = np.arange(min(least, even), most + 1.0)
    none, everyone = spreads(answers, epsilon, sizes)
    # With people drawn from a population the variance bends: its largest value lies between the ends, if not at one.
    worst = np.clip((everyone - none + 1) / 2, 0.0, 1.0)
    between = none + worst * (everyone - none) + worst * (1 - worst)
    named = [none + share * (everyone - none) for share in _SHARES]
    found = {int(sizes[np.argmin(one)]) for one in (none, *named, np.maximum(none, everyone), between)}
    return sorted({even, *found})


@dataclass(frozen=True)
class SubsetSelection(PureProtocol):
    """Subset selection; without a size, the one with the smallest error of an answer that nobody gave.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Largest epsilon of a report.
        subset_size: Number of answers in a report; the best number if 0.

    Raises:
        NumberError: The size is out of range.

    >>> protocol = SubsetSelection(1024, epsilon=1)
    >>> protocol.subset_size, protocol.report_bytes
    (275, 128)
    """

    name: ClassVar[str] = "SubsetSelection"
    traits: ClassVar[Traits] = Traits(
        candidates=lambda kind, ask: kind._offered(ask),
    )

    subset_size: int = 0

    if TYPE_CHECKING:

        def __init__(self, domain: DomainLike, epsilon: Number, subset_size: int = 0) -> None: ...

    def __post_init__(self) -> None:
        self._settle()
        size = self.domain.size
        subset = self.subset_size or best_size(size, float(as_epsilon(self.epsilon)))
        if isinstance(subset, bool) or not isinstance(subset, int) or not 1 <= subset < size:
            raise NumberError(f"a subset has between 1 and {size - 1} of the {size} answers")
        if subset > MOST_MEMBERS:
            raise ChannelError(
                f"a subset of {subset:,} of the {size:,} answers takes too long to draw, and {MOST_MEMBERS:,} are the "
                "most: give a smaller subset_size, ask for fewer answers, or use OLH"
            )
        object.__setattr__(self, "subset_size", subset)
        super().__post_init__()

    def parameters(self) -> dict[str, Any]:
        return {"subset_size": self.subset_size}

    @cached_property
    def holds(self) -> Dyadic:
        """P(the subset contains the truth)."""
        w, rest = self.subset_size, self.domain.size - self.subset_size
        return Dyadic.floor_of(lambda e: w * e / (w * e + rest), self.epsilon)

    @property
    def p(self) -> Fraction:
        return self.holds.value

    @property
    def q(self) -> Fraction:
        return (self.subset_size - self.p) / (self.domain.size - 1)

    def _ratio(self) -> Fraction:
        rest = self.domain.size - self.subset_size
        return self.p * rest / ((1 - self.p) * self.subset_size)

    @property
    def _third(self) -> Fraction | None:
        d, w = self.domain.size, self.subset_size
        if d < 3:
            return None
        return (self.p * (w - 1) * (d - w) + (1 - self.p) * w * (d - 1 - w)) / ((d - 1) * (d - 2))

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        chance = percent(float(self.holds))
        return [
            word("story.subset", members=self.subset_size, n=self.domain.size, chance=chance),
            word("story.subset.rest"),
        ]

    @property
    def _support_size(self) -> int:
        return self.subset_size

    @classmethod
    def _offered(cls, ask: Ask) -> Iterator[Protocol]:
        """The usual size first, then those that are better for other shares."""
        if isinstance(ask.domain, cls.traits.takes):
            usual = cls(ask.domain, ask.epsilon)
            yield usual
            sizes = best_sizes(usual.domain.size, float(usual.epsilon))
            yield from (replace(usual, subset_size=size) for size in sizes if size != usual.subset_size)

    def _in_order(self, n: int, read: str | None, population: bool) -> dict[str, Any]:
        """Over numbers in order their shares also add up to those of ranges, with errors that repel each other."""
        if not isinstance(self.domain, Integers):
            return {}
        return in_order(self, n, read, self.domain.size - 1, population=population) or {}

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(5, 1, subset_size=2)
        yield cls(9, 1, subset_size=1)
        yield cls(17, 1, subset_size=2)

    @cached_property
    def subsets(self) -> Subsets:
        """What a report is."""
        return Subsets(self.domain.size, self.subset_size)

    def draw(self, value: int, bits: Bits) -> bytes:
        held = bits.bernoulli(self.holds)
        others = bits.subset(self.subsets.everything ^ 1 << value, self.subset_size - held)
        return self.subsets.written(others | held << value)

    def draw_many(self, values: Positions, bits: Bits) -> Bytes:
        if self.subsets.few is not None and values.size >= _MANY:
            return to_bytes(SubsetSelection._many_numbers(self, values, bits), self.report_bytes)
        held = bits.bernoulli(self.holds, values.size)
        maps = random_subsets(bits, self.domain.size, self.subset_size, values, held)
        return self.subsets.written_maps(maps)

    def _many_numbers(self, values: Positions, bits: Bits) -> NDArray[Any]:
        if self.subsets.few is None or values.size < _MANY:
            return from_bytes(self.draw_many(values, bits))
        return self.subsets.drawn(values, bits.bernoulli(self.holds, values.size), bits)

    def _valid_numbers(self, numbers: NDArray[Any]) -> NDArray[np.bool_]:
        return (
            self.valid(to_bytes(numbers, self.report_bytes))
            if self.subsets.listed
            else self.subsets.valid_maps(numbers)
        )

    def _count_numbers(self, numbers: NDArray[Any]) -> Counts:
        if self.subsets.few is None or numbers.size < _MANY:
            return self.count(to_bytes(numbers, self.report_bytes))
        return self.subsets.count_maps(numbers)

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return self.subsets.valid(reports)

    def count(self, reports: Bytes) -> Counts:
        return self.subsets.count(reports)

    def _forgeries(self, answers: Any) -> Bytes:
        """These answers, as many as fit, and others: beginning at four places, as it may matter which."""
        found, size = [], self.domain.size
        for begin in range(0, size, max(1, -(-size // 4))):
            others = ((begin + step) % size for step in range(size))
            listed = list(dict.fromkeys([*np.asarray(answers).tolist(), *others]))
            found.append(self.subsets.written(sum(1 << one for one in listed[: self.subset_size])))
        return np.frombuffer(b"".join(found), dtype=np.uint8).reshape(len(found), -1)

    def _support(self, reports: Bytes) -> NDArray[np.bool_]:
        return self.subsets.flags(reports)

    @remembered
    def kernel(self) -> Kernel:
        base = super().kernel()
        return base.but(
            draw_numbers=self._many_numbers,
            count_numbers=self._count_numbers,
            valid_numbers=self._valid_numbers,
            halves=lambda: self.subsets.halves,
            adder=lambda: self.subsets.adder() or base.adder(),
        )

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            cost=lambda: Cost(WORD_BYTES * (1 + self.subset_size - float(self.p)), self.subsets.operations),
            # Guess any member of the subset.
            guess=lambda: float(self.p / self.subset_size),
            forgeries=self._forgeries,
            **self._in_order(n, read, population),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            ratio=self._ratio,
            width=lambda: self.subsets.report_bytes,
            forms=lambda: self.subsets.forms,
            counters=lambda: self.domain.size,
            likeliest=lambda: float(self.p / math.comb(self.domain.size - 1, self.subset_size - 1)),
        )


EXCHANGEABLE = (GRR, SubsetSelection, OLH)
"""Protocols whose reports support any two other answers together equally likely, so that covariances are known."""

"""Subset mechanism for sets: the report is k of the items and dummies, often with an element of the set.

Law        the set is padded to m = at_most elements with different dummies, D = items + m in all. M of the C(D, k)
           subsets of size k meet it, N = C(D - m, k) do not. One that meets it with T / 2^64 in all,
           T = floor(2^64 e M / (e M + N)), e = e^epsilon; given that, each is equally likely
Privacy    of whole sets: T N / ((2^64 - T) M) <= e, because every padded set has m different elements
Support    p = T C(D - 1, k - 1) / M over 2^64; q the same for an element outside, whatever the set is
Error      q (1 - q) / (n (p - q)^2) for a rare item, with the best k. With k = 1 it is randomized response of one
           element drawn from the padded set
Report     the shorter of a bitmap of D bits (padding zero) and k positions in ascending order, little-endian
Cost       about k + 2 random words on the device; D counters
Source     Wang et al. 2018 (PrivSet); k = 1: Wang, Li and Jha 2018 (padding and sampling)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.domains import Sets
from deniable.errors import NumberError
from deniable.exact import Dyadic, Number, as_epsilon
from deniable.labels import text
from deniable.protocols.blanket import Blanket, supporting
from deniable.protocols.frequency.subset_selection import Subsets
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import Law
from deniable.protocols.protocol import Positions, Protocol, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, to_bytes
from deniable.protocols.sets.collision import cut_steps
from deniable.protocols.sets.law import Joint, SetProtocol
from deniable.protocols.tally import Counts, Tally
from deniable.protocols.traits import Traits, not_offered
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits, IntegerWeights
from deniable.results import Floats, Weights
from deniable.words import Fact, Figure, Joined, word

MOST_ELEMENTS, MOST_SINGLE = 1 << 12, 1 << 20
"""The most items and dummies for drawing subsets, and for drawing one element."""
_ROWS = 1 << 14


def subset_variances(elements: int, most: int, epsilon: Fraction) -> Floats:
    """The noise of one report about an element of the average share, for k = 1, 2, ..., elements - at_most."""
    e, count, share = math.exp(min(float(epsilon), 500.0)), elements - most, most / elements
    k = np.arange(1, count + 1)
    # The share of the subsets that do not meet the set; of those with one given other element, r k / (elements - most).
    r = np.cumprod((elements - most - k + 1) / (elements - k + 1))
    total = e * (1 - r) + r
    p, apart = e * k / elements / total, r * k / count
    q = (e * (k / elements - apart) + apart) / total
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(p > q, (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2, np.inf)
    return found


@dataclass(frozen=True)
class SubsetSets(SetProtocol):
    """Shares of items of sets from a subset of the items each; without a size the one with the smallest error.

    Args:
        domain: The sets.
        epsilon: Largest epsilon of a report.
        subset_size: Number of items in a report; the best number if 0.

    Raises:
        NumberError: There are too many items, or the size is out of range.

    >>> protocol = SubsetSets(Sets(["mail", "maps", "music", "news", "notes"], at_most=2), epsilon=1)
    >>> protocol.subset_size, protocol.report_bytes
    (1, 1)
    """

    name: ClassVar[str] = "SubsetSets"
    traits: ClassVar[Traits] = Traits(
        candidates=not_offered,
        says=lambda protocol, report: protocol._says(report),
    )

    domain: Sets

    subset_size: int = 0

    if TYPE_CHECKING:

        def __init__(self, domain: Sets, epsilon: Number, subset_size: int = 0) -> None: ...

    def __post_init__(self) -> None:
        self._settle()
        most, elements = self.domain.at_most, self.elements
        if elements > (MOST_SINGLE if self.subset_size == 1 else MOST_ELEMENTS):
            raise NumberError(f"{elements:,} items and dummies are too many for subsets: use CollisionSets")
        subset = self.subset_size
        if subset == 0:
            subset = 1 + int(np.argmin(subset_variances(elements, most, as_epsilon(self.epsilon))))
        if isinstance(subset, bool) or not isinstance(subset, int) or not 1 <= subset <= elements - most:
            raise NumberError(f"a subset has between 1 and {elements - most} items and dummies")
        object.__setattr__(self, "subset_size", subset)
        super().__post_init__()

    def parameters(self) -> dict[str, Any]:
        return {"subset_size": self.subset_size}

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(Sets(["mail", "maps", "music"], at_most=2), 1, subset_size=2)
        yield cls(Sets(4, at_most=4), 2, subset_size=1)
        yield cls(Sets(8, at_most=1), 2, subset_size=1)

    # -- the law -----------------------------------------------------------------------------------

    @cached_property
    def _ways(self) -> tuple[int, int]:
        """How many subsets meet a padded set, and how many do not."""
        elements, most, k = self.elements, self.domain.at_most, self.subset_size
        apart = math.comb(elements - most, k)
        return math.comb(elements, k) - apart, apart

    @cached_property
    def meets(self) -> Dyadic:
        """P(the subset has an element of the set)."""
        met, apart = self._ways
        return Dyadic.floor_of(lambda e: e * met / (e * met + apart), self.epsilon)

    @cached_property
    def _common(self) -> IntegerWeights:
        """How many elements of the set are in a subset that meets it: one more than the outcome."""
        elements, most, k = self.elements, self.domain.at_most, self.subset_size
        counts = range(1, min(most, k) + 1)
        return IntegerWeights([math.comb(most, j) * math.comb(elements - most, k - j) for j in counts])

    def _holding(self, given: int, outside: bool) -> Fraction:
        """P(the subset has `given` given elements): of the set, or with `outside` of the rest."""
        elements, most, k = self.elements, self.domain.at_most, self.subset_size
        met, apart = self._ways
        every = _comb(elements - given, k - given)
        without = _comb(elements - most - given, k - given) if outside else 0
        share = self.meets.value
        return share * Fraction(every - without, met) + (1 - share) * Fraction(without, apart)

    @property
    def p(self) -> Fraction:
        return self._holding(1, False)

    @property
    def q(self) -> Fraction:
        return self._holding(1, True)

    def _blankets(self) -> tuple[Blanket, ...]:
        met, apart = self._ways
        return (supporting((1 - self.meets.value) * (met + apart) / apart, self.ratio),)

    @property
    def joint(self) -> Joint:
        met = float(self._holding(2, False))
        return Joint(met, met, float(self._holding(2, True)))

    def _ratio(self) -> Fraction:
        met, apart = self._ways
        return self.meets.value * apart / ((1 - self.meets.value) * met)

    @cached_property
    def subsets(self) -> Subsets:
        """What a report is."""
        return Subsets(self.elements, self.subset_size)

    def _one_own(self, own: int, bits: Bits) -> bytes:
        shared = 0
        if bits.bernoulli(self.meets):
            shared = 1 + bits.draw(self._common)
        mine = bits.subset(own, shared)
        others = bits.subset(self.subsets.everything ^ own, self.subset_size - shared)
        return self.subsets.written(mine | others)

    def _many_padded(self, elements: Positions, bits: Bits) -> Bytes:
        out = np.empty((len(elements), self.report_bytes), dtype=np.uint8)
        for start in range(0, len(elements), _ROWS):
            out[start : start + _ROWS] = self._some(elements[start : start + _ROWS], bits)
        return out

    def _some(self, elements: Positions, bits: Bits) -> Bytes:
        n, most = elements.shape
        if self.subset_size == 1 and self.subsets.listed:
            own, other = elements[np.arange(n), bits.integers(most, n)], bits.integers(self.elements - most, n)
            for place in range(most):
                other += other >= elements[:, place]
            return to_bytes(np.where(bits.bernoulli(self.meets, n), own, other), self.report_bytes)
        shared = np.where(bits.bernoulli(self.meets, n), 1 + bits.draw(self._common, n), 0)
        flags = np.zeros((n, self.elements), dtype=np.bool_)
        for count in np.unique(shared).tolist():
            rows = np.flatnonzero(shared == count)
            own = elements[rows]
            for chosen in _random_places(bits, most, count, rows.size):
                flags[rows, own[np.arange(rows.size), chosen]] = True
            for chosen in _random_places(bits, self.elements - most, self.subset_size - count, rows.size):
                other = chosen.copy()
                for place in range(most):
                    other += other >= own[:, place]
                flags[rows, other] = True
        return self.subsets.written_flags(flags)

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        items, most = self.domain.items.size, self.domain.at_most
        return [
            *cut_steps(len(encoded), most),
            word("story.set.subset", most=str(most), members=self.subset_size, n=items),
            word("story.set.something", chance=percent(float(self.meets))),
            word("story.set.much"),
        ]

    def _says(self, report: bytes) -> Fact:
        rows = np.frombuffer(report, dtype=np.uint8).reshape(1, -1)
        labels, size = self.domain.items.labels, self.domain.items.size
        places = np.flatnonzero(self.subsets.flags(rows)[0]).tolist()
        named: list[Fact] = [text(labels[place]) for place in places if place < size]
        made_up = sum(place >= size for place in places)
        more = [word("says.made", n=Figure(str(made_up), grouped=False))] if made_up else []
        return word("report.set", answers=Joined([*named, *more], ", "))

    def forged(self, elements: Positions) -> Bytes:
        """As many of them as fit, then made-up items: they favour nobody else."""
        last = self.elements - 1
        listed = list(dict.fromkeys([*elements.tolist(), *range(last, -1, -1)]))[: self.subset_size]
        return np.frombuffer(self.subsets.written(sum(1 << one for one in listed)), dtype=np.uint8).reshape(1, -1)

    # -- the collector -----------------------------------------------------------------------------

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return self.subsets.valid(reports)

    def count(self, reports: Bytes) -> Counts:
        return self.subsets.count(reports)

    def read(self, tally: Tally, elements: Positions) -> tuple[Floats, Floats, Weights]:
        counts: Floats = (tally.counts[elements].astype(np.float64) - tally.n * float(self.q)) / self._spreads[2]
        noise = self.variance(tally.n, np.clip(counts / tally.n, 0.0, 1.0), population=False)
        return counts, noise, Weights(self.worth().leverage - self.worth().moved, self.worth().leverage)

    @remembered
    def kernel(self) -> Kernel:
        base = super().kernel()
        return base.but(adder=lambda: self.subsets.adder() or base.adder())

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            cost=lambda: Cost(WORD_BYTES * (2.0 + self.subset_size), self.subsets.operations),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            blankets=self._blankets,
            ratio=self._ratio,
            width=lambda: self.subsets.report_bytes,
            forms=lambda: self.subsets.forms,
            counters=lambda: self.elements,
            likeliest=lambda: float(self.p / _comb(self.elements - 1, self.subset_size - 1)),
            checks=lambda tally, worth: self._outside(
                tally.counts.astype(np.float64) * worth, tally.n * worth, self.elements
            ),
        )


def _comb(n: int, k: int) -> int:
    return math.comb(n, k) if n >= 0 and k >= 0 else 0


def _random_places(bits: Bits, size: int, count: int, rows: int) -> Iterator[Positions]:
    """Floyd's algorithm for many rows: `count` different positions below `size` for each, one column at a time."""
    taken = np.zeros((rows, size), dtype=np.bool_)
    for last in range(size - count, size):
        drawn = bits.integers(last + 1, rows)
        drawn = np.where(taken[np.arange(rows), drawn], last, drawn)
        taken[np.arange(rows), drawn] = True
        yield drawn

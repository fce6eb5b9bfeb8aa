"""What the two laws for sets share: subsampling, padding with dummies, and the read-out of items and set sizes.

Elements   the items and at_most dummies after them. A set with fewer than at_most items is padded with the first
           dummies, each a different one: dummy i is in the padded set exactly if the set has fewer than at_most - i
           items. So the shares of the dummies are those of set sizes, from the same reports. One dummy that stands for
           all would break the level: a padded set would hold it several times
Subsample  of a larger set at_most items are drawn on the device, each equally likely
Pure       a report supports an element of the padded set with p, any other with q, whatever the set is
Estimate   share(v) = (C_v / n - q) / (p - q), with C_v the number of reports that support v: unbiased
Noise      n [f p (1 - p) + (1 - f) q (1 - q)] / (p - q)^2 for the respondents as they are
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.domains import Domain, SetColumn, Sets
from deniable.errors import ChannelError, DomainError
from deniable.exact import Number
from deniable.protocols.base import Positions
from deniable.protocols.frequency.histogram import PureLaw
from deniable.protocols.reports import Bytes
from deniable.protocols.tally import Tally
from deniable.randomness import Bits, floyd
from deniable.results import Estimate, Floats, ItemShares, Weights, quantile
from deniable.results.bounds import Numbers
from deniable.results.sets import OF_REPORTED

_LISTED = 1 << 20
"""Items, up to which all of them are read out."""


class Joint(NamedTuple):
    """How likely a report supports both of two elements: both in the padded set, one of them, none."""

    both: float
    one: float
    none: float


@dataclass(frozen=True)
class SetProtocol(PureLaw):
    """Shares of the items of sets; a subclass writes what is done with a padded set."""

    domain: Sets

    if TYPE_CHECKING:

        def __init__(self, domain: Sets, epsilon: Number) -> None: ...

    takes: ClassVar[tuple[type[Domain], ...]] = (Sets,)
    advice: ClassVar[str] = "it needs dn.Sets(items, at_most)"
    formula_for: ClassVar[str] = ""

    @property
    def reads(self) -> str:
        return "one law of items"

    @property
    def elements(self) -> int:
        return self.domain.items.size + self.domain.at_most

    @property
    def usual_share(self) -> float:
        """The share of an element on average: at_most of them are in a padded set. Laws are chosen for it."""
        return self.domain.at_most / self.elements

    @property
    def usual_variance(self) -> float:
        """The noise of one report about an element of that share."""
        return float(self.variance(1, self.usual_share, False))

    # -- written by each law -----------------------------------------------------------------------

    @property
    @abstractmethod
    def joint(self) -> Joint: ...

    @abstractmethod
    def _one_padded(self, elements: Sequence[int], bits: Bits) -> bytes: ...

    @abstractmethod
    def _one_own(self, own: int, bits: Bits) -> bytes:
        """The part of a report that depends on the answer, given what is its own as a number with a bit for each."""

    @property
    @abstractmethod
    def own_sizes(self) -> tuple[range, int]:
        """How many of how many are an answer's own."""

    @abstractmethod
    def _many_padded(self, elements: Positions, bits: Bits) -> Bytes:
        """The same for one padded set per row."""

    @abstractmethod
    def read(self, tally: Tally, elements: Positions) -> tuple[Floats, Floats, Weights]:
        """Estimated counts of some elements, their variances for the respondents, and the weights of a report."""

    def shares(self, tally: Tally, elements: Positions) -> tuple[Floats, Floats]:
        """Estimated counts of some elements, and their variances for the respondents as they are."""
        return self.read(tally, elements)[:2]

    @abstractmethod
    def forged(self, elements: Positions) -> Bytes:
        """One report that says most for these elements together."""

    def forgeries(self, answers: Any) -> Bytes:
        return self.forged(np.unique(answers.items))

    # -- the device --------------------------------------------------------------------------------

    def padded(self, value: Sequence[int], bits: Bits) -> list[int]:
        """at_most different elements, ascending."""
        most = self.domain.at_most
        if len(value) > most:
            value = sorted(value[place] for place in floyd(bits.integers, len(value), most))
        first = self.domain.items.size
        if value and not (value[0] >= 0 and value[-1] < first and all(a < b for a, b in pairwise(value))):
            raise DomainError("the items of a set are different ones of those that are listed, in their order")
        return [*value, *range(first, first + most - len(value))]

    def padded_many(self, values: SetColumn, bits: Bits) -> Positions:
        """The same for a column, one row each."""
        most, first, sizes = self.domain.at_most, self.domain.items.size, values.sizes
        if (sizes > most).any():
            values = _subsampled(values, most, bits)
            sizes = values.sizes
        places = np.arange(values.items.size) - np.repeat(values.starts[:-1], sizes)
        out: Positions = first + np.arange(most)[None, :] - sizes[:, None]
        out[values.rows, places] = values.items
        return out

    def _one(self, value: Any, bits: Bits) -> bytes:
        return self._one_padded(self.padded(value, bits), bits)

    def _many(self, values: SetColumn, bits: Bits) -> Bytes:
        return self._many_padded(self.padded_many(values, bits), bits)

    def _inputs(self) -> Iterator[tuple[Any, Any]]:
        """Every set of at most at_most items: the law of a larger one is a mixture of these."""
        labels = self.domain.items.labels
        for size in range(self.domain.at_most + 1):
            for chosen in combinations(range(self.domain.items.size), size):
                yield tuple(labels[place] for place in chosen), chosen

    def _input_count(self) -> int:
        return sum(math.comb(self.domain.items.size, size) for size in range(self.domain.at_most + 1))

    # -- the analyst -------------------------------------------------------------------------------

    def noise(self, n: int) -> float:
        return math.sqrt(self.variance(n, 0.0, False)) / n

    def error(self, n: int, population: bool = True) -> float:
        """Of the share of an item, where it is largest."""
        shares = np.linspace(0, 1, 1001)
        return math.sqrt(float(self.variance(n, shares, population).max())) / n

    def visible(self, n: int, level: float = 0.95, population: bool = True) -> float | None:
        reach, shares = quantile(level, self.tests), np.linspace(0, 1, 10_001)[1:]
        clear = shares * n > reach * np.sqrt(self.variance(n, shares, population))
        return float(shares[np.argmax(clear)]) if clear.any() else None

    @property
    def tests(self) -> int:
        return self.domain.items.size

    def _estimate(self, tally: Tally) -> ItemShares:
        domain, most = self.domain, self.domain.at_most
        if domain.items.size > _LISTED:
            raise ChannelError(
                f"{domain.items.size:,} items are too many to read all of them: shares(tally, positions) reads some"
            )
        counts, noise, weights = self.read(tally, np.arange(self.elements))
        size = domain.items.size
        return ItemShares(
            labels=domain.items.labels,
            n=tally.n,
            counts=counts[:size],
            noise=noise[:size],
            protocol=self.name,
            sizes=self._sizes(tally.n, counts[size:], noise[size:]),
            at_most=most if most < size else 0,
            method=f"{OF_REPORTED}, unbiased" if most < size else "unbiased",
            weights=weights.of(slice(size)),
            bounds=Numbers.between(*weights.of(slice(size))[:2], counts[:size] / tally.n, tally.n),
        )

    def _nothing(self) -> ItemShares:
        nothing = ItemShares.nothing(self.domain.items.labels, self.name)
        return nothing.with_sizes(Estimate.nothing(self._size_labels, self.name))

    @property
    def _size_labels(self) -> list[Any]:
        most = self.domain.at_most
        return [*range(most), most if most == self.domain.items.size else f"{most} or more"]

    def _sizes(self, n: int, counts: Floats, noise: Floats) -> Estimate:
        """How many people have each number of items: dummy i has the people with fewer than at_most - i."""
        up_to = np.concatenate([counts[::-1], [n]])  # of sizes 0, 1, ..., at_most
        held = np.diff(up_to, prepend=0.0)
        shares = np.clip(up_to / n, 0.0, 1.0)
        below = np.concatenate([[0.0], shares[:-1]])
        own, other, gap = self._spreads
        both, one, none = self._covariances
        exact = np.maximum(shares - below, 0.0)
        rest = np.clip(1 - shares, 0.0, 1.0)
        spread = below * 2 * (own - both) + exact * (own + other - 2 * one) + rest * 2 * (other - none)
        spread = n * spread / gap**2
        spread[0], spread[-1] = noise[-1], noise[0]
        # The difference of two dummies, of which a report may support one alone; the first and the last are less.
        weights = Weights(-self.poisoning, self.poisoning)
        return Estimate(self._size_labels, n, held, spread, self.name, weights=weights)

    @cached_property
    def _covariances(self) -> Joint:
        """Of the supports of two elements, by how many of them are in the padded set."""
        p, q = float(self.p), float(self.q)
        return Joint(self.joint.both - p * p, self.joint.one - p * q, self.joint.none - q * q)

    def truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The share of each item, where larger sets count with the items that a draw keeps on average."""
        column = self.domain.encode(answers)
        held = np.ones(len(column)) if people is None else np.asarray(people, dtype=np.float64)
        kept = held * np.minimum(1.0, self.domain.at_most / np.maximum(column.sizes, 1))
        counts = np.bincount(column.items, np.repeat(kept, column.sizes), minlength=self.domain.items.size)
        shares: NDArray[np.float64] = counts / held.sum()
        return shares

    def figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        n = len(answers) if people is None else int(np.sum(people))
        found: NDArray[np.float64] = np.asarray(self.variance(n, self.truth(answers, people), population=False)) / n**2
        return found

    def figure_spreads(self, answers: Any) -> NDArray[np.float64]:
        shares = self.truth(answers)
        return shares * (1 - shares)

    @property
    def figure_scales(self) -> NDArray[np.float64]:
        return np.ones(self.domain.items.size)

    def _misfits(self, tally: Tally, worth: float) -> list[float]:
        return []


def _subsampled(values: SetColumn, most: int, bits: Bits) -> SetColumn:
    """At most so many items of each set: those with the smallest of random numbers, one for each item."""
    sizes, rows = values.sizes, values.rows
    keys = np.zeros(values.items.size, dtype=np.uint64)
    large = sizes[rows] > most
    keys[large] = bits.words(int(large.sum()))
    order = np.lexsort((keys, rows))
    places = np.arange(values.items.size) - np.repeat(values.starts[:-1], sizes)
    kept = np.sort(order[places < most])
    starts = np.concatenate([[0], np.cumsum(np.minimum(sizes, most))])
    return SetColumn(starts, values.items[kept])

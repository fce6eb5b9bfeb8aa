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
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.domains import SetColumn, Sets
from deniable.errors import ChannelError
from deniable.exact import Number
from deniable.protocols.frequency.histogram import PureLaw
from deniable.protocols.law import Law
from deniable.protocols.protocol import Positions
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes
from deniable.protocols.structures import Members
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Traits
from deniable.protocols.worth import Worth
from deniable.randomness import Bits
from deniable.results import Estimate, Floats, ItemShares, Weights, quantile
from deniable.results.bounds import Numbers, PairLaw
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

    traits: ClassVar[Traits] = Traits(
        takes=(Sets,),
        advice="it needs dn.Sets(items, at_most)",
        reads=("one law of items",),
    )

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
    def _one_own(self, own: int, bits: Bits) -> bytes:
        """The part of a report that depends on the answer, given what is its own as a number with a bit for each."""

    @abstractmethod
    def _many_padded(self, elements: Positions, bits: Bits) -> Bytes:
        """Whole reports, for one padded set per row."""

    @abstractmethod
    def read(self, tally: Tally, elements: Positions) -> tuple[Floats, Floats, Weights]:
        """Estimated counts of some elements, their variances for the respondents, and the weights of a report."""

    def shares(self, tally: Tally, elements: Positions) -> tuple[Floats, Floats]:
        """Estimated counts of some elements, and their variances for the respondents as they are."""
        return self.read(tally, elements)[:2]

    @abstractmethod
    def forged(self, elements: Positions) -> Bytes:
        """One report that says most for these elements together."""

    # -- the device --------------------------------------------------------------------------------

    def _structure(self) -> Members:
        return Members(self.domain.items.size, self.domain.at_most, self._one_own)

    def padded_many(self, values: SetColumn, bits: Bits) -> Positions:
        """at_most different elements for each set of a column, one row each; `Members.padded` for many."""
        most, first, sizes = self.domain.at_most, self.domain.items.size, values.sizes
        if (sizes > most).any():
            values = _subsampled(values, most, bits)
            sizes = values.sizes
        places = np.arange(values.items.size) - np.repeat(values.starts[:-1], sizes)
        out: Positions = first + np.arange(most)[None, :] - sizes[:, None]
        out[values.rows, places] = values.items
        return out

    def draw_many(self, values: SetColumn, bits: Bits) -> Bytes:
        return self._many_padded(self.padded_many(values, bits), bits)

    def _inputs(self) -> Iterator[tuple[Any, Any]]:
        """Every set of at most at_most items: the law of a larger one is a mixture of these."""
        labels = self.domain.items.labels
        for size in range(self.domain.at_most + 1):
            for chosen in combinations(range(self.domain.items.size), size):
                yield tuple(labels[place] for place in chosen), chosen

    # -- the analyst -------------------------------------------------------------------------------

    def _error(self, n: int, population: bool = True) -> float:
        """The error of the share of an item, where it is largest."""
        shares = np.linspace(0, 1, 1001)
        return math.sqrt(float(self.variance(n, shares, population).max())) / n

    def _visible(self, n: int, level: float = 0.95, population: bool = True) -> float | None:
        reach, shares = quantile(level, self.worth().tests), np.linspace(0, 1, 10_001)[1:]
        clear = shares * n > reach * np.sqrt(self.variance(n, shares, population))
        return float(shares[np.argmax(clear)]) if clear.any() else None

    def infer(self, tally: Tally) -> ItemShares:
        if not tally.n:
            return self._nothing()
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
        exact = np.maximum(shares - below, 0.0)
        spread = n * self._size_noise(below, exact)
        spread[0], spread[-1] = noise[-1], noise[0]
        # The difference of two dummies, and a report may support only one of them; the first and the last are less.
        weights = Weights(-self.worth().moved, self.worth().moved)
        found = Estimate(self._size_labels, n, held, spread, self.name, weights=weights)
        return replace(found, bounds=self._size_numbers(n, counts[::-1] / n, below, exact))

    def _size_noise(self, below: Floats, exact: Floats) -> Floats:
        """The noise of the share of each size in one report; `below` have fewer items, `exact` this number."""
        own, other, gap = self._spreads
        both, one, none = self._covariances
        rest = np.clip(1 - below - exact, 0.0, 1.0)
        spread = below * 2 * (own - both) + exact * (own + other - 2 * one) + rest * 2 * (other - none)
        spread[0], spread[-1] = (held * own + (1 - held) * other for held in (exact[0], below[-1]))
        found: Floats = spread / gap**2
        return found

    def _size_numbers(self, n: int, up_to: Floats, below: Floats, exact: Floats) -> Numbers:
        """What reports add to the shares of the sizes: 1 - q, or -q, over p - q, for one dummy and against another.

        The errors are those of supports alone: where hash functions collide, a report is worth less.
        """
        law, supported = self.pair_law, self.pair_law.supports(up_to, n)
        said = law.counted(n, np.append(supported, n), np.append(0.0, supported), below, exact)
        said[0], said[-1] = 0.0, 0.0
        said[0, :2] = n - supported[0], supported[0]  # the first size has one dummy, and so has the last
        said[-1, ::2] = n - supported[-1], supported[-1]
        values = np.tile(np.array([0.0, 1.0, -1.0, 0.0]) / (law.p - law.q), (len(said), 1))
        values[0] = np.array([-law.q, 1 - law.q, -law.q, -law.q]) / (law.p - law.q)
        values[-1] = 1 - np.array([-law.q, -law.q, 1 - law.q, -law.q]) / (law.p - law.q)
        return Numbers(values, said, np.sqrt(self._size_noise(below, exact) / n + exact * (1 - exact) / n))

    @property
    def pair_law(self) -> PairLaw:
        return PairLaw(float(self.p), float(self.q), *self.joint)

    @cached_property
    def _covariances(self) -> Joint:
        """The covariances of the supports of two elements, by how many of them are in the padded set."""
        p, q = float(self.p), float(self.q)
        return Joint(self.joint.both - p * p, self.joint.one - p * q, self.joint.none - q * q)

    def _truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The share of each item, where larger sets count with the items that a draw keeps on average."""
        column = self.domain.encode(answers)
        held = np.ones(len(column)) if people is None else np.asarray(people, dtype=np.float64)
        kept = held * np.minimum(1.0, self.domain.at_most / np.maximum(column.sizes, 1))
        counts = np.bincount(column.items, np.repeat(kept, column.sizes), minlength=self.domain.items.size)
        shares: NDArray[np.float64] = counts / held.sum()
        return shares

    def _figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        n = len(answers) if people is None else int(np.sum(people))
        found: NDArray[np.float64] = (
            np.asarray(self.variance(n, self.worth().truth(answers, people), population=False)) / n**2
        )
        return found

    def _figure_spreads(self, answers: Any) -> NDArray[np.float64]:
        shares = self.worth().truth(answers)
        return shares * (1 - shares)

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            formula_for="",
            forgeries=lambda answers: self.forged(np.unique(answers.items)),
            noise=lambda: math.sqrt(self.variance(n, 0.0, False)) / n,
            error=lambda: self._error(n, population),
            visible=lambda level=0.95: self._visible(n, level, population),
            tests=lambda: self.domain.items.size,
            truth=self._truth,
            variances=self._figure_variances,
            spreads=self._figure_spreads,
            scales=lambda: np.ones(self.domain.items.size),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            structure=self._structure,
            inputs=self._inputs,
            input_count=lambda: sum(math.comb(self.domain.items.size, size) for size in range(self.domain.at_most + 1)),
            checks=lambda tally, worth: [],
        )


def _subsampled(values: SetColumn, most: int, bits: Bits) -> SetColumn:
    """At most `most` items of each set: each item gets a random number, and the smallest are kept."""
    sizes, rows = values.sizes, values.rows
    keys = np.zeros(values.items.size, dtype=np.uint64)
    large = sizes[rows] > most
    keys[large] = bits.words(int(large.sum()))
    order = np.lexsort((keys, rows))
    places = np.arange(values.items.size) - np.repeat(values.starts[:-1], sizes)
    kept = np.sort(order[places < most])
    starts = np.concatenate([[0], np.cumsum(np.minimum(sizes, most))])
    return SetColumn(starts, values.items[kept])

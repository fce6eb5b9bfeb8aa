"""Ranges of an ordered answer: a tree of coarser and finer cells, where each person reports one level.

Law        a level is chosen by chance, each equally likely; the report is about the node of that level that the answer
           lies under, by the level's own protocol: randomized response, subset selection or local hashing
Privacy    the largest ratio of a level's protocol: the level does not depend on the answer, and one is reported
Error      of any range, exact: `tree.py`. For the typical one: error(n), the root mean square over ranges with uniform
           ends where all cells are equally common
Report     the number of the level, one byte; the level's own report; zeros up to the longest one
Cost       one random word more than the level's report; fanout / (fanout - 1) counters per cell
Source     hierarchical histograms: Hay et al. 2010; under local privacy Cormode, Kulkarni and Srivastava 2019

Cells      whole numbers: each one. An interval: `cells` of equal width (`cells.py`)
Fan-outs   one per level, with a product of at least the cells; unless they are given, those with the smallest typical
           error. Nodes beyond the last cell are counted like others, and nobody is in them
Read-out   least squares over all levels for intervals, which hold whatever the distribution is. For values a fit
           without negative shares, as smooth and as spiky as the levels say (`fit.py`): half the error or less
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.domains import Domain, Integers, Interval
from deniable.errors import NumberError, SpecError
from deniable.protocols.law import Law
from deniable.protocols.protocol import Protocol
from deniable.protocols.ranges.cells import FORGED_AMONG, Cells, Cuts, best_protocol, law_of, part_of_many
from deniable.protocols.ranges.tree import Level, SupportLaw, Tree
from deniable.protocols.record import remembered
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Traits
from deniable.protocols.worth import Worth
from deniable.results import Floats, quantile
from deniable.results.distribution import BINS, Readings, median_error, true_figures
from deniable.results.ranges import METHOD, RangeShares, cell_edges
from deniable.words import Fact, word

RANGES = "ranges"
CELLS = 1024
MOST_CELLS = 1 << 20

_FANOUTS = range(3, 9)
"""The fan-outs that are compared; in a small tree, all of them are."""
_SMALL = 64
_MOST_LEAVES = 1 << 21
_PEOPLE = 100_000
"""The number of people for which fan-outs are chosen; the choice hardly depends on it."""
_SAMPLE = 16
"""Ranges over which the typical error is averaged."""
_ALIKE = 1.02
"""Errors of fan-outs this close, in variance, count as equal: then the fewest levels win."""


@dataclass(frozen=True, init=False, repr=False)
class Ranges(Cuts):
    """Ranges and quantiles of a number; without a fan-out the one with the smallest error.

    Args:
        domain: Integers or an interval.
        epsilon: Largest epsilon of a report.
        fanout: Number of children of a node, or one number per level; the best ones if None.
        cells: Number of cells that an interval is cut into; the usual number if None.

    >>> ages = Ranges(Integers(0, 99), epsilon=1)
    >>> ages.fanouts
    (4, 5, 5)
    >>> found = ages.estimate(ages.tally(ages.privatize([20, 30, 40, 50] * 25_000)))
    >>> low, high = found.range(25, 45).interval(0.999999)
    >>> low < 0.5 < high
    True
    """

    name: ClassVar[str] = "Ranges"
    traits: ClassVar[Traits] = Traits(
        takes=(Integers, Interval),
        advice="it needs numbers, dn.Integers(low, high) or dn.Interval(low, high)",
        reads=(RANGES,),
        serves=("distribution",),
    )
    cut: ClassVar[str] = "level"
    told: ClassVar[tuple[str, str]] = ("story.range", "story.range.node")

    fanouts: tuple[int, ...] = ()
    cells: int = 0

    def __init__(
        self,
        domain: Any,
        epsilon: exact.Number,
        fanout: int | Sequence[int] | None = None,
        cells: int | None = None,
    ) -> None:
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", epsilon)
        self._settle()
        count = Cells.usual(self.domain, cells, CELLS, MOST_CELLS).count
        fanouts = best_fanouts(count, self.epsilon) if fanout is None else _given_fanouts(fanout, count)
        levels = [(1, best_protocol(size, self.epsilon)) for size in accumulate(fanouts, operator.mul)]
        self._set(levels, domain=self.domain, epsilon=self.epsilon, fanouts=fanouts, cells=count)

    def parameters(self) -> dict[str, Any]:
        return {"cells": self.cells, "fanouts": list(self.fanouts)} | super().parameters()

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> Ranges:
        match parameters:
            case {"groups": list(groups), "fanouts": list(fanouts), "cells": cells, **rest} if not rest:
                made = cls.__new__(cls)
                count = Cells.usual(domain, cells, CELLS, MOST_CELLS).count
                given = _given_fanouts(fanouts, count)
                made._set(cls._written(groups), domain=domain, epsilon=epsilon, fanouts=given, cells=count)
                return made
        raise SpecError("ranges need cells, fanouts and groups, each with a weight and a protocol, and nothing else")

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(Integers(0, 3), 1, fanout=2)
        yield cls(Interval(0, 1), 2, fanout=(2, 3), cells=5)

    # -- the law -----------------------------------------------------------------------------------

    @cached_property
    def _spans(self) -> tuple[int, ...]:
        """Cells under a node of each level."""
        return tuple(math.prod(self.fanouts[place + 1 :]) for place in range(len(self.fanouts)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Nodes of each level."""
        return tuple(accumulate(self.fanouts, operator.mul))

    @property
    def group_names(self) -> tuple[str, ...]:
        return tuple(f"{size:,} ranges" for size in self.sizes)

    @cached_property
    def _cells(self) -> Cells:
        return Cells(self.domain, self.cells)

    def project(self, value: Any, group: int) -> Any:
        return self._cells.of(value) // self._spans[group]

    def _ready(self, values: Any) -> NDArray[Any]:
        return self._cells.narrow(np.asarray(values))

    def project_many(self, values: Any, group: int, rows: NDArray[np.intp]) -> Any:
        return part_of_many(values.take(rows), self._spans[group])

    def _told_names(self) -> Sequence[Fact]:
        return [word("level.ranges", n=size) for size in self.sizes]

    # -- the read-out ------------------------------------------------------------------------------

    def tree(self, tally: Tally) -> Tree:
        """The levels of a tally, made consistent by least squares."""
        return Tree(self.fanouts, self._seen(tally))

    def estimate(self, tally: Tally) -> RangeShares:
        """Ranges, quantiles and the rest of a distribution."""
        found: RangeShares = super().estimate(tally)
        return found

    @property
    def _points(self) -> Floats:
        return self._cells.points

    @property
    def is_whole(self) -> bool:
        return self._cells.is_whole

    def infer(self, tally: Tally) -> RangeShares:
        if not tally.n:
            return self._nothing()
        tree = self.tree(tally)
        shares = tree.positive(self.cells)
        return replace(
            self._nothing(),
            frequencies=shares[: self.cells],
            n=tally.n,
            evidence=replace(tree, at=shares),
            edges=self._edges(tally.n),
        )

    def _nothing(self) -> RangeShares:
        unknown, edges = np.full(self.cells, np.nan), self._round_edges(2)
        unit = getattr(self.domain, "unit", "")
        return RangeShares(self._points, unknown, 0, None, edges, self.name, METHOD, unit, self.is_whole)

    def _round_edges(self, bins: int) -> Floats:
        return cell_edges(self._points, bins, self.is_whole)

    @lru_cache(maxsize=64)  # noqa: B019  # a protocol is a small frozen value
    def _edges(self, n: int) -> Floats:
        """The edges of the most bins whose even share n people can distinguish from zero."""
        tree = self._even(n)
        for bins in BINS:
            edges = self._round_edges(bins)
            cells = np.round((edges - self._points[0]) / (self._points[1] - self._points[0])).astype(int)
            middle = (edges.size - 1) // 2
            found = tree.ranges([cells[middle]], [cells[middle + 1]])
            if edges.size < 3 or 2 * math.sqrt(found.noise[0] + found.people[0]) <= 1 / (edges.size - 1):
                break
        return edges

    def _even(self, n: int) -> Tree:
        """What n people would show whose cells are all equally common, without noise."""
        return Tree(self.fanouts, self._evenly(n))

    def _truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The figures of a distribution, of these answers."""
        encoded = self.domain.encode(answers)
        numbers = encoded + float(self._points[0]) if self.is_whole else encoded
        held = np.ones(len(numbers)) if people is None else np.asarray(people, dtype=float)
        return true_figures(numbers, held, self._edges(int(held.sum())))

    # -- what it is worth --------------------------------------------------------------------------

    @lru_cache(maxsize=64)  # noqa: B019
    def _typical(self, n: int, population: bool) -> float:
        found = typical_range(self._even(n), self.cells)
        return math.sqrt(float(np.mean(found.noise + (found.people if population else 0.0))))

    @cached_property
    def _forged(self) -> tuple[float, float]:
        return self._even(FORGED_AMONG * len(self.groups)).most_moved(self.cells)

    @lru_cache(maxsize=64)  # noqa: B019
    def _median_error(self, n: int, population: bool) -> float:
        leaves = np.zeros(math.prod(self.fanouts))
        leaves[: self.cells] = 1 / self.cells
        levels = (level._replace(shares=leaves.reshape(level.shares.size, -1).sum(axis=1)) for level in self._evenly(n))
        tree = Tree(self.fanouts, tuple(levels), at=leaves)
        even = replace(self._nothing(), frequencies=leaves[: self.cells], n=n, evidence=tree)
        return median_error(even, population)

    def _remark(self, n: int, level: float = 0.95, population: bool = True) -> str:
        """How exact ranges are, and what to read instead where the numbers are spread smoothly."""
        reach = quantile(level) * self.worth(n, population=population).error
        return (
            f"The share of a range comes within +-{100 * reach:.2g} percentage points, if all numbers are equally "
            f'common; each person reports one of {len(self.groups)} levels. Read "distribution" where the numbers are '
            "spread smoothly: its shares and its median are nearer then."
        )

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        if read in self.traits.serves:
            # Ranges also have quantiles: of the median half its interval by z, if all numbers are equally common.
            own, unit = partial(self._median_error, n), getattr(self.domain, "unit", "")
            return self.worth(n, population=population).but(
                answers=True, noise=lambda: own(False), error=lambda: own(population), unit=unit
            )
        return base.but(
            unit="",
            scale=1.0,
            truth=self._truth,
            remark=lambda level=0.95: self._remark(n, level, population),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            inputs=lambda: self._cells.inputs(),
            input_count=lambda: self.cells,
        )


# -- choosing ------------------------------------------------------------------------------------------


def _given_fanouts(fanout: Any, cells: int) -> tuple[int, ...]:
    """One fan-out for all levels, or one per level; with a product of at least the cells."""
    each = [fanout] * 64 if isinstance(fanout, int) else list(fanout)
    if not each or any(isinstance(one, bool) or not isinstance(one, int) or one < 2 for one in each):
        raise NumberError("a fan-out is a whole number of at least 2")
    products = list(accumulate(each, operator.mul))
    enough = next((place for place, product in enumerate(products) if product >= cells), None)
    if enough is None:
        raise SpecError(f"a tree with {products[-1]:,} leaves is too small for {cells:,} cells")
    if not isinstance(fanout, int) and enough < len(each) - 1:
        raise SpecError(f"{enough + 1} levels are enough for {cells:,} cells: leave the last fan-outs out")
    if products[enough] > _MOST_LEAVES:
        raise NumberError(f"a tree has at most {_MOST_LEAVES:,} leaves, not {products[enough]:,}")
    return tuple(each[: enough + 1])


@lru_cache(maxsize=64)
def best_fanouts(cells: int, epsilon: Fraction) -> tuple[int, ...]:
    """The fan-outs with the smallest typical error; the fewest levels among equals.

    >>> best_fanouts(1024, Fraction(1)), best_fanouts(100, Fraction(1))
    ((4, 4, 4, 4, 4), (4, 5, 5))
    """
    options = []
    for levels in range(1, cells.bit_length() + 1):
        fanouts = _even_fanouts(cells, levels)
        if fanouts[0] in _FANOUTS or cells <= _SMALL:
            laws = tuple(law_of(best_protocol(size, epsilon)) for size in accumulate(fanouts, operator.mul))
            found = typical_range(even_tree(fanouts, laws, _PEOPLE), cells)
            options.append((float(np.mean(found.noise + found.people)), fanouts))
    least = min(options)[0]
    return min((one for one in options if one[0] <= _ALIKE * least), key=lambda one: len(one[1]))[1]


def _even_fanouts(cells: int, levels: int) -> tuple[int, ...]:
    """So many fan-outs that differ by one at most, the smaller first, with the smallest product that will do.

    >>> _even_fanouts(100, 3), _even_fanouts(1024, 5), _even_fanouts(2, 1)
    ((4, 5, 5), (4, 4, 4, 4, 4), (2,))
    """
    small = max(2, math.floor(cells ** (1 / levels) + 1e-9))
    for many in range(levels + 1):
        if small ** (levels - many) * (small + 1) ** many >= cells:
            return (small,) * (levels - many) + (small + 1,) * many
    return (small + 1,) * levels


def even_tree(fanouts: tuple[int, ...], laws: tuple[SupportLaw, ...], n: int) -> Tree:
    """The tree of n people whose cells are all equally common, a part of them per level."""
    sizes = accumulate(fanouts, operator.mul)
    people = max(1, n // len(fanouts))
    return Tree(
        fanouts, tuple(Level(people, np.full(size, 1 / size), law) for size, law in zip(sizes, laws, strict=True))
    )


def typical_range(tree: Tree, cells: int) -> Readings:
    """Ranges whose ends are spread over all cells, the same ones each time."""
    random = np.random.default_rng(1)
    ends = np.sort(random.integers(0, cells + 1, size=(_SAMPLE, 2)), axis=1)
    return tree.ranges(ends[:, 0].tolist(), ends[:, 1].tolist())

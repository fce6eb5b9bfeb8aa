"""Rectangles of two ordered numbers: coarse and fine grids over both, and each number by itself, one per person.

Law        a grid is chosen by chance, each equally likely; the report is about the rectangle of that grid in which the
           two numbers lie, by the grid's own protocol: randomized response, subset selection or local hashing
Privacy    the largest ratio of a grid's protocol, over both numbers together: the grid does not depend on the answer,
           and one rectangle is reported
Error      of any rectangle whose ends the grids know, exact: `grids.py`. For the typical one: error(n), over rectangles
           with uniform ends where all cells are equally common; what lies inside of the grids' rectangles is not in it
Report     the number of the grid, one byte; the grid's own report; zeros up to the longest one
Cost       one random word more than the grid's report; one counter per rectangle of every grid
Source     grids of one and two attributes: Yang et al. 2020 (HDG); hierarchies of them: Wang et al. 2019 (HIO)

Cells      of each number as in `cells.py`; whole numbers: each one, an interval: 64 of equal width
Sizes      by default, those of the grids with the smallest error model for this number of `people`: the variance of a
           typical rectangle, plus the square of how much of it no grid knows, as a share of the plane. What depends
           on one number alone counts three times there: single numbers are less even than pairs. Compared are g x g,
           with g/2 x g/2 and g/4 x g/4 above it, and each number by itself in all its cells, for g = 2, 4, 8, ...
Read-out   least squares over all grids for intervals; the fit without negative shares for values
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.domains import Domain, Integers, Interval, Records
from deniable.domains.records import RecordColumns
from deniable.errors import DomainError, NumberError, SpecError
from deniable.protocols.law import Law
from deniable.protocols.protocol import Protocol
from deniable.protocols.ranges.cells import FORGED_AMONG, Cells, Cuts, best_protocol, law_of, part_of_many
from deniable.protocols.ranges.grids import EvenGrids, Grids, Layout
from deniable.protocols.ranges.tree import Level
from deniable.protocols.record import remembered
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Ask, Traits
from deniable.protocols.worth import Worth
from deniable.results import Floats, quantile
from deniable.results.ranges import RectangleShares, Side
from deniable.words import Fact, word

RECTANGLES = "rectangles"
CELLS = 64
MOST_CELLS = 1 << 16
MOST_NODES = 1 << 16
"""Rectangles of one grid."""

_PEOPLE = 100_000
"""The number of people for which sizes are chosen, if it is not given."""
_FINEST = 64
_ALONE = 3.0
_ALIKE = 1.02
"""Errors of sizes this close, in variance, count as equal: then the fewest grids win."""
_MOST_SHOWN = 8
"""Rows and columns of a table at first."""


@dataclass(frozen=True, init=False, repr=False)
class Rectangles(Cuts):
    """Shares of rectangles of two numbers; by default with the `grids` of the smallest error for `people` people.

    Args:
        domain: A record of two numbers.
        epsilon: Largest epsilon of a report.
        people: Expected number of respondents, for the choice of the grids.
        cells: Number of cells of each number; the usual numbers if None.
        grids: Rows and columns of each grid; the best ones if None.

    >>> work = Rectangles(Records({"age": Integers(17, 90), "hours": Integers(1, 99)}), epsilon=1, people=30_000)
    >>> work.grids
    ((4, 4), (8, 8), (80, 1), (1, 104))
    >>> answers = [{"age": 30, "hours": 40}, {"age": 70, "hours": 10}] * 20_000
    >>> found = work.estimate(work.tally(work.privatize(answers)))
    >>> low, high = found.rectangle((17, 56), (1, 52)).interval(0.999999)
    >>> low < 0.5 < high
    True
    """

    name: ClassVar[str] = "Rectangles"
    traits: ClassVar[Traits] = Traits(
        takes=(Records,),
        advice='it needs two numbers, dn.Records({"age": dn.Integers(0, 99), "hours": dn.Interval(0, 80)})',
        reads=(RECTANGLES,),
        slow=True,
        candidates=lambda kind, ask: kind._offered(ask),
    )
    cut: ClassVar[str] = "grid"
    told: ClassVar[tuple[str, str]] = ("story.rectangle", "story.rectangle.node")

    domain: Records
    cells: tuple[int, int] = (0, 0)
    grids: tuple[tuple[int, int], ...] = ()

    def __init__(
        self,
        domain: Any,
        epsilon: exact.Number,
        people: int | None = None,
        cells: Sequence[int | None] | None = None,
        grids: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self._settle_record(domain, epsilon, people)
        counts = _cells(self.domain, cells)
        if grids is None:
            chosen = best_grids(counts, self.epsilon, int(people or _PEOPLE))
        else:
            chosen = _given_grids(grids, counts)
        groups = [(1, best_protocol(rows * columns, self.epsilon)) for rows, columns in chosen]
        self._set(groups, domain=self.domain, epsilon=self.epsilon, cells=counts, grids=chosen)

    def parameters(self) -> dict[str, Any]:
        return {"cells": list(self.cells), "grids": [list(grid) for grid in self.grids]} | super().parameters()

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> Rectangles:
        match parameters:
            case {"groups": list(groups), "grids": list(grids), "cells": list(cells), **rest} if not rest:
                if not isinstance(domain, cls.traits.takes):
                    raise SpecError(f"{cls.name} cannot ask for {domain}: {cls.traits.advice}")
                made = cls.__new__(cls)
                counts = _cells(domain, cells)
                given = _given_grids(grids, counts)
                made._set(cls._written(groups), domain=domain, epsilon=epsilon, cells=counts, grids=given)
                return made
        raise SpecError("rectangles need cells, grids and groups, each with a weight and a protocol, and nothing else")

    @classmethod
    def _offered(cls, ask: Ask) -> Iterator[Protocol]:
        if isinstance(ask.domain, cls.traits.takes) and _are_numbers(ask.domain):
            yield cls(ask.domain, ask.epsilon, ask.n)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls({"x": Integers(0, 1), "y": Integers(5, 7)}, 1, grids=[(1, 3), (2, 3)])
        yield cls({"x": Integers(1, 4), "y": Interval(0, 1)}, 2, cells=(4, 3), grids=[(2, 1), (2, 2), (4, 1)])

    # -- the law -----------------------------------------------------------------------------------

    @cached_property
    def layout(self) -> Layout:
        return Layout.of(self.cells, self.grids)

    @cached_property
    def _axes(self) -> tuple[Cells, Cells]:
        first, second = (
            Cells(domain, count) for (_, domain), count in zip(self.domain.columns, self.cells, strict=True)
        )
        return first, second

    @cached_property
    def _spans(self) -> tuple[tuple[int, int], ...]:
        """Cells in a rectangle of each grid, of either number."""
        first, second = (axis.length for axis in self.layout.axes)
        return tuple((first // rows, second // columns) for rows, columns in self.grids)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rectangles of each grid."""
        return tuple(rows * columns for rows, columns in self.grids)

    @property
    def group_names(self) -> tuple[str, ...]:
        return tuple(f"{rows} x {columns} rectangles" for rows, columns in self.grids)

    def project(self, value: Any, group: int) -> Any:
        row, column = (
            axis.of(one) // span for axis, one, span in zip(self._axes, value, self._spans[group], strict=True)
        )
        return row * self.grids[group][1] + column

    def _ready(self, values: RecordColumns) -> tuple[NDArray[Any], ...]:
        return tuple(axis.narrow(np.asarray(one)) for axis, one in zip(self._axes, values.columns, strict=True))

    def project_many(self, values: tuple[NDArray[Any], ...], group: int, rows: NDArray[np.intp]) -> Any:
        spans = self._spans[group]
        nodes: NDArray[np.uint32] = np.zeros(rows.size, dtype=np.uint32)
        for cells, span, count in zip(values, spans, self.grids[group], strict=True):
            if count > 1:
                nodes *= np.uint32(count)
                nodes += part_of_many(cells.take(rows), span)
        return nodes

    def _inputs(self) -> Iterator[tuple[Any, Any]]:
        each = product(*(axis.inputs() for axis in self._axes))
        return ((tuple(label for label, _ in row), tuple(value for _, value in row)) for row in each)

    def _told_names(self) -> Sequence[Fact]:
        return [word("level.rectangles", sides=f"{rows} x {columns}") for rows, columns in self.grids]

    # -- the read-out ------------------------------------------------------------------------------

    def seen(self, tally: Tally) -> Grids:
        """What each grid of a tally says."""
        return Grids(self.layout, self._seen(tally))

    def estimate(self, tally: Tally) -> RectangleShares:
        """The share of any rectangle."""
        found: RectangleShares = super().estimate(tally)
        return found

    def infer(self, tally: Tally) -> RectangleShares:
        if not tally.n:
            return self._nothing()
        return self._result(tally.n, self.seen(tally))

    def _nothing(self) -> RectangleShares:
        return self._result(0, None)

    def _result(self, n: int, evidence: Grids | None) -> RectangleShares:
        sides = []
        for (name, domain), axis in zip(self.domain.columns, self._axes, strict=True):
            points, unit = axis.points, getattr(domain, "unit", "")
            sides.append(Side(name, float(points[0]), float(points[1] - points[0]), axis.count, unit, axis.is_whole))
        return RectangleShares((sides[0], sides[1]), n, evidence, self._edges(n), self._shown, self.name)

    @cached_property
    def _shown(self) -> tuple[tuple[Floats, Floats], ...]:
        """The edges of the grids of both numbers, in cells; parts beyond the last cell are left out."""
        found = []
        for rows, columns in sorted(grid for grid in self.grids if min(grid) > 1):
            edges = []
            for axis, size in zip(self.layout.axes, (rows, columns), strict=True):
                step = axis.length // size
                edges.append(np.unique(np.minimum(np.arange(0, axis.length + 1, step), axis.cells)).astype(float))
            found.append((edges[0], edges[1]))
        return tuple(found)

    @lru_cache(maxsize=64)  # noqa: B019  # a protocol is a small frozen value
    def _edges(self, n: int) -> tuple[Floats, Floats]:
        """The edges of the finest grid whose even share n people can distinguish from zero, or of the coarsest."""
        planes = sorted((grid, place) for place, grid in enumerate(self.grids) if min(grid) > 1)
        levels = self._evenly(n)
        best = self._shown[0]
        for ((rows, columns), place), edges in zip(planes, self._shown, strict=True):
            if 2 * math.sqrt(levels[place].variance) * rows * columns <= 1 and max(rows, columns) <= _MOST_SHOWN:
                best = edges
        return best

    def _truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The shares of the rectangles of the table, of these answers."""
        columns = self.domain.encode(answers).columns
        first, second = (axis.of_many(np.asarray(one)) for axis, one in zip(self._axes, columns, strict=True))
        held = np.ones(len(first)) if people is None else np.asarray(people, dtype=float)
        rows, second_edges = self._edges(int(held.sum()))
        counted, _, _ = np.histogram2d(first, second, (rows, second_edges), weights=held)
        found: Floats = counted.reshape(-1) / held.sum()
        return found

    # -- what it is worth --------------------------------------------------------------------------

    @lru_cache(maxsize=64)  # noqa: B019
    def _typical(self, n: int, population: bool) -> float:
        variance, _, _ = self.layout.typical([level.variance for level in self._evenly(n)])
        first, second = (float(axis.typical()[-1]) / axis.length for axis in self.layout.axes)
        sampling = 0.0 if population else first * second * (1 - first * second) / max(1, n)
        return math.sqrt(max(variance - sampling, variance * 1e-3))

    @cached_property
    def _forged(self) -> tuple[float, float]:
        """Over all rectangles if they can be listed; else from those in one corner: any other one is made of four."""
        among = FORGED_AMONG * len(self.groups)
        grids, listed = EvenGrids(self.layout, self._evenly(among)), self.layout.rectangles
        raised, apart = 0.0, 0.0
        for terms, ends in [(1, listed)] if listed is not None else self.layout.corners:
            down, up = grids.moves(ends)
            most, least = (float(one.max()) for one in (down, up))
            raised = max(raised, among * (most if terms == 1 else terms / 2 * (most + least)))
            apart = max(apart, among * terms * float((down + up).max()))
        return raised, apart

    def _remark(self, n: int, level: float = 0.95, population: bool = True) -> str:
        """How exact rectangles are, and which ones."""
        reach = quantile(level) * self.worth(n, population=population).error
        rows, columns = max((grid for grid in self.grids if min(grid) > 1), key=math.prod)
        return (
            f"The share of a rectangle comes within +-{100 * reach:.2g} percentage points, if all numbers are equally "
            f"common and its ends are those of {rows} x {columns} rectangles; others lie between two of these. Each "
            f"person reports one of {len(self.groups)} grids."
        )

    def __repr__(self) -> str:
        return f"Rectangles({self.domain!r}, epsilon={exact.literal(self.epsilon)}, grids={list(self.grids)!r})"

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            tests=1,
            truth=self._truth,
            remark=lambda level=0.95: self._remark(n, level, population),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            inputs=self._inputs,
            input_count=lambda: math.prod(self.cells),
        )


# -- choosing ------------------------------------------------------------------------------------------


def _are_numbers(domain: Domain) -> bool:
    return len(domain.columns) == 2 and all(isinstance(own, Integers | Interval) for _, own in domain.columns)


def _cells(domain: Domain, cells: Any) -> tuple[int, int]:
    """The numbers of cells of the two columns, as given or as usual."""
    if not _are_numbers(domain):
        raise DomainError(f"rectangles cannot be asked for {domain}: {Rectangles.traits.advice}")
    given = (None, None) if cells is None else tuple(cells)
    if len(given) != 2:
        raise NumberError("cells are given for both numbers: (rows, columns)")
    each = zip(domain.columns, given, strict=True)
    first, second = (Cells.usual(own, count, CELLS, MOST_CELLS).count for (_, own), count in each)
    return first, second


def _given_grids(grids: Any, cells: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Grids whose cuts lie inside each other; at least one of them is of both numbers."""
    found = []
    for grid in grids:
        match list(grid):
            case [int(rows), int(columns)] if not (isinstance(rows, bool) or isinstance(columns, bool)):
                found.append((rows, columns))
            case _:
                raise NumberError("a grid is two whole numbers: (rows, columns)")
    if len(set(found)) < len(found):
        raise SpecError("two grids are the same")
    if not any(min(grid) > 1 for grid in found):
        raise SpecError("one grid at least cuts both numbers")
    for rows, columns in found:
        if min(rows, columns) < 1 or rows * columns < 2 or rows * columns > MOST_NODES:
            raise NumberError(f"a grid has 2 to 2^16 rectangles, not {rows} x {columns}")
    for place, count in enumerate(cells):
        sizes = sorted({1} | {grid[place] for grid in found})
        if any(fine % coarse for coarse, fine in pairwise(sizes)):
            raise SpecError(f"the cuts of one number lie inside each other, and {sizes} do not divide each other")
        if sizes[-1] >= 2 * count:
            raise NumberError(f"{count} cells cannot be cut into {sizes[-1]} parts")
    return tuple(found)


@lru_cache(maxsize=64)
def best_grids(cells: tuple[int, int], epsilon: Fraction, people: int) -> tuple[tuple[int, int], ...]:
    """The grids with the smallest error; the fewest among equals.

    >>> best_grids((100, 100), Fraction(1), 100_000), best_grids((5, 5), Fraction(1), 1000)
    (((4, 4), (8, 8), (104, 1), (1, 104)), ((2, 2), (6, 1), (1, 6)))
    """
    options = []
    for grids in _compared(cells):
        levels = []
        for rows, columns in grids:
            size = rows * columns
            law = law_of(best_protocol(size, epsilon))
            levels.append(Level(max(1, people // len(grids)), np.broadcast_to(1 / size, size), law))
        noise, both, alone = Layout.of(cells, grids).typical([level.variance for level in levels])
        options.append((noise + (both + _ALONE * alone) ** 2, grids))
    least = min(options)[0]
    return min((one for one in options if one[0] <= _ALIKE * least), key=lambda one: (len(one[1]), one[0]))[1]


def _compared(cells: tuple[int, int]) -> Iterator[tuple[tuple[int, int], ...]]:
    """The candidate sets of grids; one is chosen."""
    seen = set()
    powers = [1 << (count - 1).bit_length() for count in cells]
    for finest in (2**k for k in range(1, _FINEST.bit_length())):
        for above in range(3):
            chain = [finest >> k for k in range(above, -1, -1) if finest >> k > 1]
            # One cut may fit the cells; several, each inside the one before, are powers of two.
            most = [min(finest, count) for count in cells] if len(chain) == 1 else powers
            planes = list(dict.fromkeys(tuple(min(size, one) for one in most) for size in chain))
            fine = planes[-1]
            alone = [size * -(-count // size) for size, count in zip(fine, cells, strict=True)]
            margins = []
            if cells[0] > fine[0]:
                margins.append((alone[0], 1))
            if cells[1] > fine[1]:
                margins.append((1, alone[1]))
            for grids in (tuple(planes), (*planes, *margins)):
                if grids not in seen:
                    seen.add(grids)
                    yield grids

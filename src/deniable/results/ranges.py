"""Shares of any range of a number, or of any rectangle of two numbers, each with its exact standard error.

Values     non-negative shares of the cells (`method` names the fit); the least-squares shares behind them are
           unbiased
Intervals  the least-squares share and its standard error, which is exact for every range and for every rectangle
           aligned with the grids; cut to [0, 1] and widened to contain the value, if that lies outside
Cells      integers, or parts of an interval. A range that ends inside a cell is bracketed by the ranges
           without and with that cell; so is a rectangle that is not aligned with the grids
Rare       in addition to z standard errors the interval of a rectangle reaches z^2 / 6 of the largest effect of one
           report (Bernstein)
Rectangles their table has the rectangles of one grid: the finest one with an even share that n people can distinguish
           from zero; `binned` gives others
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from deniable._extras import require
from deniable.errors import NumberError
from deniable.results.base import Difference, Quantity, Result, no_reports, quantile
from deniable.results.distribution import (
    KNOTS,
    MOST_BINS,
    Distribution,
    Ends,
    Evidence,
    Readings,
    round_edges,
    with_fakes,
)
from deniable.results.render.plot import INK
from deniable.results.rows import Drawing, Floats, Rows, View, number

METHOD = "fitted to all levels, not negative"


class RangeEvidence(Evidence, Protocol):
    """The source of the shares of ranges of cells."""

    @property
    def leaves(self) -> int: ...

    def ranges(self, begin: Sequence[int], end: Sequence[int], forged: bool) -> Readings: ...


@dataclass(frozen=True, eq=False, repr=False)
class RangeShares(Distribution):
    """Shares of cells, and of any range of them."""

    kind: ClassVar[str] = "ranges"

    evidence: RangeEvidence | None

    @property
    def ends(self) -> tuple[float, float]:
        low, high = float(self.points[0]), float(self.points[-1])
        return low, high if self.is_whole else high + self.step

    @property
    def _boundaries(self) -> Floats:
        return self._places

    def _error_of_bin(self) -> float | None:
        if self.assumed is not None:
            return None
        found = self._bracket_of(*(np.array([self._boundary(float(edge))]) for edge in self.edges))
        return math.sqrt(max(float(self._spread(one, True)[0]) for one in found))

    def _boundary(self, number: float) -> float:
        """The position of a number among the beginnings of the cells."""
        place = (number - float(self.points[0])) / self.step
        return round(place) if abs(place - round(place)) < 1e-9 else place

    @cached_property
    def _places(self) -> Floats:
        return np.arange(self.points.size + 1.0)

    @cached_property
    def _totals(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.frequencies)])

    def _bracket_of(self, *ends: Any) -> tuple[Readings, Readings]:
        """The ranges of whole cells inside and around some ranges."""
        assert self.evidence is not None
        begin, end = (np.atleast_1d(one) for one in ends)
        inner = np.ceil(begin).astype(int), np.floor(end).astype(int)
        outer = np.floor(begin).astype(int), np.ceil(end).astype(int)
        forged = self.fakes > 0
        return self.evidence.ranges(*inner, forged), self.evidence.ranges(*outer, forged)

    def _interval(
        self, value: Floats, ends: tuple[Floats, Floats], z: float, population: bool
    ) -> tuple[Floats, Floats]:
        """Intervals of the shares of ranges of cells."""
        inner, outer = self._bracket_of(*ends)
        down, up = self._reach(inner, z, population, -1), self._reach(outer, z, population, 1)
        free = Ends.of(inner.value - down, outer.value + up, value - down, value + up)
        return self._chosen(free, value, ends, z, population)

    # -- the interface of a distribution -----------------------------------------------------------

    def _place(self, number: float) -> float:
        if not math.isfinite(number):
            raise NumberError(f"a distribution is about finite numbers, not {number!r}")
        return min(max(self._boundary(number), -1.0), float(self.points.size) - self.is_whole)

    def _cumulative(self, places: Floats) -> Floats:
        whole = np.floor(places) + 1 if self.is_whole else places
        return np.interp(whole, self._places, self._totals)

    def _quantile(self, q: float) -> float:
        if self.is_whole:
            return super()._quantile(q)
        after = min(max(int(np.searchsorted(self._totals, q)), 1), self.points.size)
        rise = self._totals[after] - self._totals[after - 1]
        part = (q - self._totals[after - 1]) / rise if rise > 0 else 0.0
        return self.ends[0] + self.step * float(after - 1 + part)

    def _up_to(self, places: Floats, z: float, population: bool) -> tuple[Floats, Floats]:
        ends = np.clip(np.floor(places) + 1 if self.is_whole else places, 0.0, self.points.size)
        value = np.interp(ends, self._places, self._totals)
        low, high = self._interval(value, (np.zeros(ends.size), ends), z, population)
        # Everybody is below the upper end, whatever the reports about leaves beyond the last cell are.
        return np.where(ends >= self.points.size, 1.0, low), np.where(ends <= 0, 0.0, high)

    def _crossings(self, shares: Sequence[float], z: float, population: bool) -> list[tuple[float, float]]:
        if self.assumed is not None:
            return super()._crossings(shares, z, population)
        last = self.points.size - (1 if self.is_whole else 0)
        knots = np.unique(np.round(np.linspace(0, last, KNOTS)))
        low, high = self._up_to(knots, z, population)
        found = []
        for q in shares:
            first = self._refined(knots, high >= q, lambda at, q=q: self._up_to(at, z, population)[1] >= q)  # type: ignore[misc]
            end = self._refined(knots, low >= q, lambda at, q=q: self._up_to(at, z, population)[0] >= q)  # type: ignore[misc]
            begin = first if self.is_whole else max(0, first - 1)
            value = self._quantile(q)
            low_end, high_end = (self.ends[0] + self.step * one for one in (begin, end))
            found.append((min(low_end, value), max(high_end, value)))
        return found

    def _shares_of_bins(self, z: float, population: bool) -> tuple[Floats, Floats, Floats]:
        if not self.n:
            return super()._shares_of_bins(z, population)
        edges = np.array([self._boundary(float(edge)) for edge in self.edges])
        value = np.diff(np.interp(edges, self._places, self._totals))
        low, high = self._interval(value, (edges[:-1], edges[1:]), z, population)
        return value, low, high

    @cached_property
    def mean(self) -> Quantity:
        """The mean; for an interval accurate up to half a cell."""
        play = 0.0 if self.is_whole else self.step / 2
        return self._fitted(self.points + play, play)

    @cached_property
    def variance(self) -> Quantity:
        """The variance of the numbers, in the square of the unit; in an interval as if all were in cell centres."""
        half = 0.0 if self.is_whole else self.step / 2
        # The slack of an interval: everybody may move within a cell.
        play = half * (self.ends[1] - self.ends[0]) + self._moved_mean(self._padded(self.points))
        return self._fitted((self.points + half - float(self.mean)) ** 2, play, lowest=0.0)

    def _fitted(self, weights: Floats, play: float, lowest: float = math.inf) -> Quantity:
        """The mean of weights of the cells: from the non-negative shares, with the interval of least squares."""
        found = self._smooth_figure(self._padded(weights), 0.0, (play, play))
        if self.evidence is None:
            return found
        value = float(weights @ self.frequencies)

        def interval(level: float, population: bool) -> tuple[float, float]:
            low, high = found.interval(level, population)
            # Around an estimated mean the smallest square is above zero, although all numbers may be equal.
            least, most = min(float(weights.min()), lowest) - play, float(weights.max()) + play
            return min(max(low, least), value), max(min(high, most), value)

        return Quantity(value, interval, found.stderr)

    def _padded(self, weights: Floats) -> Floats:
        """Weights of the cells and of the empty leaves beyond the last one, which get the weight of the last cell."""
        if self.evidence is None:
            return weights
        return np.pad(weights, (0, self.evidence.leaves - weights.size), mode="edge")

    def binned(self, bins: int) -> RangeShares:
        if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or not 1 <= bins <= MOST_BINS:
            raise NumberError(f"the number of bins is a whole number from 1 to {MOST_BINS:,}, not {bins!r}")
        return replace(self, edges=cell_edges(self.points, int(bins), self.is_whole))

    def _compared(self, wanted: Floats) -> tuple[Floats, Floats]:
        return super()._compared(np.vstack([self._padded(row) for row in wanted]))


def cell_edges(points: Floats, bins: int, is_whole: bool) -> Floats:
    """About `bins` bins over cells that begin at the points, with round numbers as edges.

    >>> cell_edges(np.arange(0.0, 24, 0.25), 5, False).tolist(), cell_edges(np.arange(18.0, 100), 4, True).tolist()
    ([0.0, 5.0, 10.0, 15.0, 20.0, 24.0], [18.0, 50.0, 100.0])
    """
    step = float(points[1] - points[0])
    return round_edges(points if is_whole else np.append(points, points[-1] + step), bins, is_whole)


FITTED = "maximum entropy, not negative"
UNBIASED = "least squares"


class Side(NamedTuple):
    """One of the two numbers."""

    name: str
    low: float
    step: float
    """The width of a cell."""
    cells: int
    unit: str = ""
    is_whole: bool = False

    @property
    def high(self) -> float:
        """The last integer, or the upper end."""
        return self.low + self.step * (self.cells - self.is_whole)

    @property
    def title(self) -> str:
        return f"{self.name}, {self.unit}" if self.unit else self.name

    def written(self, begin: float, end: float) -> str:
        """A range of cells, in words."""
        first, last = self.at(begin), self.at(end) - (self.step if self.is_whole else 0.0)
        span = f"{first:.6g}" if last <= first else f"{first:.6g} to {last:.6g}"
        return f"{self.name} {span}"

    def at(self, cell: float) -> float:
        return self.low + self.step * min(cell, self.cells)

    @property
    def before(self) -> float:
        """How far before its beginning a cell is drawn: integers are in the middle of theirs."""
        return self.step / 2 if self.is_whole else 0.0

    def places(self, span: tuple[float, float] | None) -> tuple[float, float]:
        """A range of numbers, both included, as cells: its begin and its end; None is the whole range."""
        if span is None:
            return 0.0, float(self.cells)
        low, high = (float(end) for end in span)
        if not math.isfinite(low) or not math.isfinite(high) or low > high:
            raise NumberError(f"a range goes from a number to one that is not smaller, not from {low!r} to {high!r}")
        if self.is_whole:
            low, high = math.ceil(low), math.floor(high) + 1.0
        first, last = ((end - self.low) / self.step for end in (low, high))
        first, last = (round(end) if abs(end - round(end)) < 1e-9 else end for end in (first, last))
        return min(max(0.0, first), float(self.cells)), min(max(0.0, last), float(self.cells))


class RectangleEvidence(Protocol):
    """The source of the shares of rectangles of cells; rectangles are rows of (begin, end, begin, end)."""

    def fitted(self, ends: Floats) -> Floats:
        """Non-negative shares."""

    def thinned(self, fakes: int) -> float: ...

    def bracket(self, ends: Floats, sharp: bool = False) -> tuple[Readings, Readings]:
        """Unbiased figures of a lower bound of the shares, and of an upper bound.

        `sharp` requests the shares themselves, wherever they are known, whatever the noise.
        """


@dataclass(frozen=True, eq=False, repr=False)
class RectangleShares(Result):
    """Shares of rectangles of two numbers."""

    kind: ClassVar[str] = "rectangles"
    heading: ClassVar[str] = "share"

    sides: tuple[Side, Side]
    n: int
    evidence: RectangleEvidence | None
    """None if there are no reports."""
    edges: tuple[Floats, Floats]
    """Where the rows and the columns of the table begin and end, in cells."""
    grids: tuple[tuple[Floats, Floats], ...]
    """The edges of the possible grids of a table, from coarse to fine."""
    protocol: str
    method: str = FITTED
    noise: float = 1.0
    """Factor by which the variance of the noise exceeds that of n reports of different people."""
    people: float = 1.0
    """The same factor for the sampling error."""
    unheard: float = 0.0
    """The part of the sampling error that also applies to those who answered, because only some of them count."""

    def rectangle(
        self, first: tuple[float, float] | None = None, second: tuple[float, float] | None = None
    ) -> Quantity:
        """The share of the people whose numbers lie in both ranges, ends included; None is any number."""
        spans = zip(self.sides, (first, second), strict=True)
        ends = np.array([[end for side, span in spans for end in side.places(span)]])
        if not self.n:
            return Quantity(math.nan, lambda level, population: (0.0, 1.0), math.nan)
        if ends[0, 0] >= ends[0, 1] or ends[0, 2] >= ends[0, 3]:
            return Quantity(0.0, lambda level, population: (0.0, 0.0), 0.0)

        def interval(level: float, population: bool) -> tuple[float, float]:
            low, high = self._interval(ends, quantile(level), population)
            return float(low[0]), float(high[0])

        error = math.sqrt(max(float(self._spread(one, True)[0]) for one in self._bracket(ends)))
        return Quantity(float(self._values(ends)[0]), interval, error)

    def _bracket(self, ends: Floats) -> tuple[Readings, Readings]:
        assert self.evidence is not None
        return self.evidence.bracket(ends, self.method == UNBIASED)

    def _values(self, ends: Floats) -> Floats:
        assert self.evidence is not None
        if self.method != UNBIASED:
            return self.evidence.fitted(ends)
        below, above = self._bracket(ends)
        return (below.value + above.value) / 2

    def _spread(self, found: Readings, population: bool) -> Floats:
        spread: Floats = self.noise * found.noise + (self.people if population else self.unheard) * found.people
        return spread

    def _robust(self, fakes: int) -> Self:
        return replace(self, fakes=fakes)

    def _interval(self, ends: Floats, z: float, population: bool) -> tuple[Floats, Floats]:
        value, (below, above) = self._values(ends), self._bracket(ends)
        rare = z**2 / 6 * max(self.noise, 1.0)
        reach = [z * np.sqrt(self._spread(one, population)) + rare * one.most for one in (below, above)]
        low = below.value - with_fakes(self, below, reach[0], -1)
        high = above.value + with_fakes(self, above, reach[1], 1)
        return np.minimum(np.clip(low, 0.0, 1.0), value), np.maximum(np.clip(high, 0.0, 1.0), value)

    # -- tables ------------------------------------------------------------------------------------

    @cached_property
    def _shown(self) -> Floats:
        """The rectangles of the table, row by row."""
        rows, columns = self.edges
        first, second = np.stack([rows[:-1], rows[1:]], axis=1), np.stack([columns[:-1], columns[1:]], axis=1)
        return np.hstack([np.repeat(first, len(second), axis=0), np.tile(second, (len(first), 1))])

    def _rows(self, ends: Floats, labels: list[str], level: float, tests: int, population: bool) -> Rows:
        size, z = len(ends), quantile(level, tests)
        places = [[side.at(end) for end in column] for side, column in zip(self._four, ends.T, strict=True)]
        more = dict(zip(("begin", "end", "second_begin", "second_end"), map(np.array, places), strict=True))
        if not self.n:
            unknown = np.full(size, np.nan)
            value, error, low, high = unknown, unknown, np.zeros(size), np.ones(size)
        else:
            value = self._values(ends)
            error = np.sqrt(np.max([self._spread(one, population) for one in self._bracket(ends)], axis=0))
            low, high = self._interval(ends, z, population)
        return Rows(labels, value, error, low, high, "", level, tests > 1, population, more, is_ordered=True)

    @property
    def _four(self) -> tuple[Side, Side, Side, Side]:
        return self.sides[0], self.sides[0], self.sides[1], self.sides[1]

    def _written(self, ends: Floats) -> list[str]:
        first, second = self.sides
        return [f"{first.written(a, b)}, {second.written(c, d)}" for a, b, c, d in ends.tolist()]

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        ends = self._shown
        return self._rows(ends, self._written(ends), level, len(ends) if simultaneous else 1, population)

    def of_ranges(
        self, asked: Sequence[tuple[float, ...]], level: float = 0.95, population: bool = True
    ) -> Rows | None:
        """The shares of rectangles, each given by four numbers: from and to of the first number, then of the second."""
        wanted = [one for one in asked if len(one) == 4]
        if not wanted:
            return None
        found = [self.rectangle((a, b), (c, d)) for a, b, c, d in wanted]
        ends = np.array([one.interval(level, population) for one in found]).reshape(-1, 2)
        first, second = (side.name for side in self.sides)
        labels = [f"{first} {a:.6g} to {b:.6g}, {second} {c:.6g} to {d:.6g}" for a, b, c, d in wanted]
        value, error = (np.array(one, dtype=float) for one in (found, [one.stderr for one in found]))
        return Rows(labels, value, error, ends[:, 0], ends[:, 1], "", level, False, population, is_ordered=True)

    def binned(self, bins: int) -> RectangleShares:
        """The same with the finest grid that has at most `bins` rows and columns."""
        if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or not 1 <= bins <= MOST_BINS:
            raise NumberError(f"the number of bins is a whole number from 1 to {MOST_BINS:,}, not {bins!r}")
        few = [grid for grid in self.grids if max(edges.size for edges in grid) <= bins + 1]
        return replace(self, edges=few[-1] if few else self.grids[0])

    @property
    def unbiased(self) -> RectangleShares:
        """The same by least squares: unbiased, and sometimes negative."""
        return replace(self, method=UNBIASED)

    def drawings(self, view: View, rows: Rows, further: bool = True) -> list[Drawing]:
        found = [Drawing("rectangles", "map", rows, self.heading)]
        asked = self.of_ranges(view.ranges, view.level, view.population) if further else None
        return found if asked is None else [*found, Drawing("ranges", "points", asked, "share", True)]

    def finding(self) -> tuple[str, Mapping[str, Any], str] | None:
        """The most common rectangle of the table, with an interval that holds for all of them at once."""
        if not self.n:
            return None
        rows = self.table(simultaneous=True)
        most = int(np.argmax(rows.value))
        share, first, last = (float(one[most]) for one in (rows.value, rows.low, rows.high))
        value, low, high = (number(100 * one, 0) for one in (share, first, last))
        said = f"Most often {rows.labels[most]}: {value} % ({low} to {high}), n = {self.n:,}"
        facts = {"label": str(rows.labels[most]), "value": share, "low": first, "high": last, "n": self.n}
        return "most often", facts, said

    def __sub__(self, other: Result) -> Difference:
        """The differences of the shares of rectangles between two independent groups, in the grid of both."""
        if isinstance(other, RectangleShares) and self.sides == other.sides and len(self.grids) == len(other.grids):
            edges = min(self.edges, other.edges, key=lambda grid: grid[0].size * grid[1].size)
            return Result.__sub__(replace(self, edges=edges), replace(other, edges=edges))
        return super().__sub__(other)

    def repeated(self, noise: float, people: float) -> RectangleShares:
        grown = {"noise": noise * self.noise, "people": people * self.people, "unheard": noise * self.unheard}
        return replace(self, **grown, check=self._check_of(noise))  # type: ignore[arg-type]

    def sampled(self, part: Fraction) -> RectangleShares:
        return replace(self, unheard=float(1 - part) * self.people)

    # -- picture -----------------------------------------------------------------------------------

    def plot(
        self,
        ax: Any = None,
        level: float = 0.95,
        most: int = 40,
        simultaneous: bool = False,
        population: bool = True,
    ) -> Any:
        """A map of the rectangles, darker with more people; a dot if the interval contains zero.

        Returns the axes; `most` is not used.
        """
        rows = self.table(level, simultaneous, population)
        return heat_map(self, rows, ax)

    def __repr__(self) -> str:
        return f"<RectangleShares: {self.headline or no_reports()}, {self.protocol}, {self.method}>"


def heat_map(result: RectangleShares, rows: Rows, ax: Any = None) -> Any:
    """Rectangles coloured by their share per area, so that a narrow one does not look empty."""
    if ax is None:
        ax = require("matplotlib.pyplot", "plot").subplots(figsize=(6.4, 4.8), layout="constrained")[1]
    first, second = result.sides
    begin, end, left, right = (rows.more[name] for name in ("begin", "end", "second_begin", "second_end"))
    shape = tuple(edges.size - 1 for edges in result.edges)
    heights, widths = (
        [side.at(edge) - side.before for edge in edges] for side, edges in zip(result.sides, result.edges, strict=True)
    )
    area = (end - begin) * (right - left)
    density = np.maximum(0.0, np.nan_to_num(rows.value)) / area * area.mean()
    mesh = ax.pcolormesh(
        widths, heights, density.reshape(shape), cmap="Blues", vmin=0.0, edgecolors="white", linewidth=0.4
    )
    ax.figure.colorbar(mesh, ax=ax, label="share, of a rectangle of average size")
    unsure = ~(rows.low > 0)
    along, up = (left + right) / 2 - second.before, (begin + end) / 2 - first.before
    ax.plot(along[unsure], up[unsure], ".", color=INK, markersize=3, label="may be zero")
    if unsure.any() and not unsure.all():
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(0, -0.1), borderaxespad=0.2)
    ax.set(xlabel=second.title, ylabel=first.title)
    if first.unit and (first.unit, first.step) == (second.unit, second.step):
        ax.set_aspect("equal")
    # On separate lines, because a longer one would overlap the colour scale.
    ax.set_title(f"{result.headline or no_reports()}\n{result.title}\n{rows.interval_name}", fontsize="medium")
    return ax

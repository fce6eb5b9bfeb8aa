"""Rectangles of two numbers: the shares of people whose two numbers lie in two ranges, any of them with its error.

Values     shares without negative ones (`method` says which fit); `unbiased` has the least-squares ones behind them
Intervals  the least-squares share and its standard error, which is exact for every rectangle whose ends the grids know;
           one whose ends they do not know lies between the known rectangles inside and around it. Cut to [0, 1] and
           widened to hold the value, where that lies outside
Rare       beside z standard errors an interval reaches z^2 / 6 of the most that one report can do (Bernstein)
Table      the rectangles of one grid: the finest of which an even share can be told from none with n people; `binned`
           gives others
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from deniable._extras import require
from deniable.errors import NumberError
from deniable.results.base import INK, NOTHING, Difference, Floats, Result, Rows, number, quantile
from deniable.results.distribution import MOST_BINS, Figure, Readings

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
        """The last whole number, or the upper end."""
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

    def places(self, span: tuple[float, float] | None) -> tuple[float, float]:
        """A range of numbers, both included, as cells: where it begins, and where it ends; None is all of them."""
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


class Evidence(Protocol):
    """What the shares of rectangles of cells are read from; rectangles are rows of (begin, end, begin, end)."""

    def fitted(self, ends: Floats) -> Floats:
        """Shares that are not negative."""

    def bracket(self, ends: Floats, sharp: bool = False) -> tuple[Readings, Readings]:
        """Unbiased figures of something that is at most as large as the shares, and of something that is at least so.

        `sharp` asks for the shares themselves, wherever they are known, whatever the noise.
        """


@dataclass(frozen=True, eq=False, repr=False)
class RectangleShares(Result):
    """Shares of rectangles of two numbers."""

    kind: ClassVar[str] = "rectangles"
    heading: ClassVar[str] = "share"

    sides: tuple[Side, Side]
    n: int
    evidence: Evidence | None
    """None without reports."""
    edges: tuple[Floats, Floats]
    """Where the rows and the columns of the table begin and end, in cells."""
    grids: tuple[tuple[Floats, Floats], ...]
    """The edges of the grids that a table can have, from coarse to fine."""
    protocol: str
    method: str = FITTED
    noise: float = 1.0
    """By how much the noise is larger, in variance, than that of n reports of different people."""
    people: float = 1.0
    """The same of the sampling error."""
    unheard: float = 0.0
    """The part of the sampling error that is also about those who answered, because not all of them were heard."""

    def rectangle(self, first: tuple[float, float] | None = None, second: tuple[float, float] | None = None) -> Figure:
        """The share of the people whose numbers lie in both ranges, ends included; None is any number."""
        spans = zip(self.sides, (first, second), strict=True)
        ends = np.array([[end for side, span in spans for end in side.places(span)]])
        if not self.n:
            return Figure(math.nan, lambda level, population: (0.0, 1.0), math.nan)
        if ends[0, 0] >= ends[0, 1] or ends[0, 2] >= ends[0, 3]:
            return Figure(0.0, lambda level, population: (0.0, 0.0), 0.0)

        def interval(level: float, population: bool) -> tuple[float, float]:
            low, high = self._interval(ends, quantile(level), population)
            return float(low[0]), float(high[0])

        error = math.sqrt(max(float(self._spread(one, True)[0]) for one in self._bracket(ends)))
        return Figure(float(self._values(ends)[0]), interval, error)

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

    def _interval(self, ends: Floats, z: float, population: bool) -> tuple[Floats, Floats]:
        value, (below, above) = self._values(ends), self._bracket(ends)
        rare = z**2 / 6 * max(self.noise, 1.0)
        low = below.value - z * np.sqrt(self._spread(below, population)) - rare * below.most
        high = above.value + z * np.sqrt(self._spread(above, population)) + rare * above.most
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
        """The shares of rectangles, each of four numbers: from and to of the first number, then of the second."""
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
        """The same with the finest grid that has at most so many rows and columns."""
        if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or not 1 <= bins <= MOST_BINS:
            raise NumberError(f"the number of bins is a whole number from 1 to {MOST_BINS:,}, not {bins!r}")
        few = [grid for grid in self.grids if max(edges.size for edges in grid) <= bins + 1]
        return replace(self, edges=few[-1] if few else self.grids[0])

    @property
    def unbiased(self) -> RectangleShares:
        """The same by least squares: unbiased, and negative now and then."""
        return replace(self, method=UNBIASED)

    @property
    def headline(self) -> str:
        """The most common rectangle of the table, with an interval that holds for all of them at once."""
        if not self.n:
            return ""
        rows = self.table(simultaneous=True)
        most = int(np.argmax(rows.value))
        value, low, high = (number(100 * one[most], 0) for one in (rows.value, rows.low, rows.high))
        return f"Most often {rows.labels[most]}: {value} % ({low} to {high}), n = {self.n:,}"

    def __sub__(self, other: Result) -> Difference:
        """How the shares of rectangles differ between two independent groups; in the grid that both can show."""
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
        """A map of the rectangles, darker where more people are; a dot where the interval contains zero.

        Returns the axes; `most` is not used.
        """
        rows = self.table(level, simultaneous, population)
        return heat_map(self, rows, ax)

    def __repr__(self) -> str:
        return f"<RectangleShares: {self.headline or NOTHING}, {self.protocol}, {self.method}>"


def heat_map(result: RectangleShares, rows: Rows, ax: Any = None) -> Any:
    """Rectangles coloured by their share per area, so that a narrow one does not look empty."""
    if ax is None:
        ax = require("matplotlib.pyplot", "plot").subplots(figsize=(6.4, 4.8), layout="constrained")[1]
    first, second = result.sides
    begin, end, left, right = (rows.more[name] for name in ("begin", "end", "second_begin", "second_end"))
    shape = tuple(edges.size - 1 for edges in result.edges)
    heights, widths = (
        [side.at(edge) for edge in edges] for side, edges in zip(result.sides, result.edges, strict=True)
    )
    area = (end - begin) * (right - left)
    density = np.maximum(0.0, np.nan_to_num(rows.value)) / area * area.mean()
    mesh = ax.pcolormesh(
        widths, heights, density.reshape(shape), cmap="Blues", vmin=0.0, edgecolors="white", linewidth=0.4
    )
    ax.figure.colorbar(mesh, ax=ax, label="share, of a rectangle of average size")
    unsure = ~(rows.low > 0)
    ax.plot(
        ((left + right) / 2)[unsure], ((begin + end) / 2)[unsure], ".", color=INK, markersize=3, label="may be zero"
    )
    if unsure.any() and not unsure.all():
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(0, -0.1), borderaxespad=0.2)
    ax.set(xlabel=second.title, ylabel=first.title)
    if first.unit and (first.unit, first.step) == (second.unit, second.step):
        ax.set_aspect("equal")
    ax.set_title(f"{result.headline or NOTHING}\n{result.title}: {rows.interval_name}", fontsize="medium")
    return ax

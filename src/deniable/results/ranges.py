"""Ranges of a number: the distribution that a tree of cells gives, in which any range has its exact standard error.

Values     shares of the cells without negative ones; the least-squares shares behind them are unbiased
Intervals  of ranges, cumulative shares and bins: the least-squares share and its standard error, which is exact for
           every range; cut to [0, 1] and widened to hold the value, where that lies outside
Cells      whole numbers, or parts of an interval. A range of an interval whose end lies inside a cell is bracketed by
           the ranges without and with that cell
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from deniable.errors import NumberError
from deniable.results.base import Floats
from deniable.results.distribution import KNOTS, MOST_BINS, Distribution, Evidence, Figure, Readings, round_edges

METHOD = "least squares, not negative"


class RangeEvidence(Evidence, Protocol):
    """What the shares of ranges of cells are read from."""

    @property
    def leaves(self) -> int: ...

    def ranges(self, begin: Sequence[int], end: Sequence[int]) -> Readings: ...


@dataclass(frozen=True, eq=False, repr=False)
class RangeShares(Distribution):
    """Shares of cells, and of any range of them."""

    kind: ClassVar[str] = "ranges"

    evidence: RangeEvidence | None

    @property
    def ends(self) -> tuple[float, float]:
        low, high = float(self.points[0]), float(self.points[-1])
        return low, high if self.is_whole else high + self.step

    def _error_of_bin(self) -> float | None:
        found = self._bracket_of(*(np.array([self._boundary(float(edge))]) for edge in self.edges))
        return math.sqrt(max(float(self._spread(one, True)[0]) for one in found))

    def _boundary(self, number: float) -> float:
        """Where a number lies among the beginnings of the cells."""
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
        return self.evidence.ranges(*inner), self.evidence.ranges(*outer)

    def _interval(
        self, value: Floats, inner: Readings, outer: Readings, z: float, population: bool
    ) -> tuple[Floats, Floats]:
        low = inner.value - self._reach(inner, z, population)
        high = outer.value + self._reach(outer, z, population)
        return np.minimum(np.clip(low, 0.0, 1.0), value), np.maximum(np.clip(high, 0.0, 1.0), value)

    # -- what a distribution asks for --------------------------------------------------------------

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
        found = self._bracket_of(np.zeros(ends.size), ends)
        return self._interval(np.interp(ends, self._places, self._totals), *found, z, population)

    def _crossings(self, shares: Sequence[float], z: float, population: bool) -> list[tuple[float, float]]:
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
        found = self._bracket_of(edges[:-1], edges[1:])
        return (value, *self._interval(value, *found, z, population))

    @cached_property
    def mean(self) -> Figure:
        """Of an interval up to half a cell."""
        play = 0.0 if self.is_whole else self.step / 2
        return self._fitted(self.points + play, play)

    @cached_property
    def variance(self) -> Figure:
        """Of the numbers, in the square of the unit; of an interval as if each stood in the middle of its cell."""
        half = 0.0 if self.is_whole else self.step / 2
        # The play of an interval: everybody moves within a cell.
        return self._fitted(
            (self.points + half - float(self.mean)) ** 2, half * (self.ends[1] - self.ends[0]), lowest=0.0
        )

    def _fitted(self, weights: Floats, play: float, lowest: float = math.inf) -> Figure:
        """The mean of weights of the cells: of the shares that are not negative, in the interval of least squares."""
        found = self._smooth_figure(self._padded(weights), 0.0, (play, play))
        if self.evidence is None:
            return found
        value = float(weights @ self.frequencies)

        def interval(level: float, population: bool) -> tuple[float, float]:
            low, high = found.interval(level, population)
            # Around an estimated mean the smallest square is above zero, though all numbers may be the same.
            least, most = min(float(weights.min()), lowest) - play, float(weights.max()) + play
            return min(max(low, least), value), max(min(high, most), value)

        return Figure(value, interval, found.stderr)

    def _padded(self, weights: Floats) -> Floats:
        """Of the cells and of the leaves beyond the last one, in which nobody is: they weigh like the last cell."""
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
    """About so many bins over cells that begin at the points, with round numbers for edges.

    >>> cell_edges(np.arange(0.0, 24, 0.25), 5, False).tolist(), cell_edges(np.arange(18.0, 100), 4, True).tolist()
    ([0.0, 5.0, 10.0, 15.0, 20.0, 24.0], [18.0, 50.0, 100.0])
    """
    step = float(points[1] - points[0])
    return round_edges(points if is_whole else np.append(points, points[-1] + step), bins, is_whole)

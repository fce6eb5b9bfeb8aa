"""The distribution of a number: quantiles, mean, histogram and cumulative shares, all with intervals.

Values     from the fitted distribution over the positions (`method` names the fit); mean and variance from
           unbiased figures
Intervals  hold for any distribution: they come from unbiased figures and not from the fit. The share of the
           numbers up to x is at least the mean of a ramp that ends at x, and at most that of one that begins there. A
           wide ramp has little noise, a narrow one little slack: the width with the shortest expected interval at the
           fitted distribution is used, for each end separately. Quantiles are where the cumulative shares' intervals
           cross; the shares of bins lie between two trapezoids
Rare       in addition to z standard errors an interval reaches z^2 / 6 of the largest effect of one report (Bernstein)
Smooth     `assuming("smooth")` has shorter intervals of quantiles, ranges and bins, which hold for smooth
           distributions only and are marked wherever they appear: `smooth.py`
Bins       as many as allow an even share to be distinguished from zero with n people, for any answers; `binned` gives
           others
Table      quantiles, mean and standard deviation in the unit, then the bins. The standard error of a figure whose
           interval is not symmetric is half its interval divided by z
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from deniable._extras import require
from deniable.errors import MismatchError, NumberError, ShapeError
from deniable.results.base import Difference, Quantity, Result, no_reports, quantile
from deniable.results.render.plot import INK, SEEN, UNSEEN
from deniable.results.rows import Drawing, Floats, Rows, View, number
from deniable.results.significance import FIT as FIT_TEST, Measured, SignificanceTest, compare, nothing
from deniable.results.smooth import Linear, Smooth, critical, read_assumption

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
MEDIAN = "median"
KNOTS = 33
MOST_BINS = 1000
BINS = (100, 50, 40, 25, 20, 16, 12, 10, 8, 6, 5, 4, 3, 2)
"""Numbers of bins to try, until an even share can be distinguished from zero."""

_WIDENING = math.sqrt(2)


class Readings(NamedTuple):
    """Unbiased figures, one entry each."""

    value: Floats
    noise: Floats
    """The variance that the protocol adds."""
    people: Floats
    """The sampling variance."""
    most: Floats
    """The largest change of the figure by one report."""
    down: Floats
    """The largest decrease if one of the reports is left out; for few reports, times `Evidence.thinned`."""
    up: Floats
    """The largest increase."""


class Evidence(Protocol):
    """The source of unbiased figures. Rows of `wanted` are weights of the positions."""

    def read(self, wanted: Floats) -> Readings: ...

    def covariance(self, wanted: Floats) -> Floats: ...

    def linear(self, cells: int) -> Linear:
        """The observations on `cells` cells, for intervals that assume a smooth distribution."""

    def thinned(self, fakes: int) -> float:
        """Factor by which removing `fakes` reports exceeds `fakes * down` and `fakes * up`; infinite if all go."""


def with_fakes(result: Any, found: Readings, reach: Floats, side: int) -> Floats:
    """The reach of an interval to one side if some of the reports may be forged; both results of readings need it.

    Infinite once all reports of a group may be forged.
    """
    if not result.fakes:
        return reach
    thinned = result.evidence.thinned(result.fakes)
    if not math.isfinite(thinned):
        return np.full(reach.shape, np.inf)
    moved: Floats = result.fakes * thinned * (found.down if side < 0 else found.up)
    return moved + math.sqrt(thinned) * reach


class Ends(NamedTuple):
    """Intervals of shares, and their expected lengths at the fitted distribution."""

    low: Floats
    high: Floats
    length: Floats

    @classmethod
    def of(cls, low: Floats, high: Floats, expected_low: Floats, expected_high: Floats) -> Ends:
        """Cut to the range of a share."""
        first, last, begin, end = (np.clip(one, 0.0, 1.0) for one in (low, high, expected_low, expected_high))
        return cls(first, last, end - begin)


class _Ramps(NamedTuple):
    """Where the inner weights of some ranges are zero and the outer ones are one, as places among the positions."""

    zero_from: Floats
    zero_to: Floats
    one_from: Floats
    one_to: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Distribution(Result):
    """An estimated distribution of a number.

    Args:
        points: The positions, as numbers.
        frequencies: The fitted share of each position.
        n: Number of reports.
        evidence: The tally and the law behind the intervals; None if there are no reports.
        edges: The edges of the bins; the last one is the upper end, or for integers the first number beyond it.
        protocol: Name of the protocol.
        method: Name of the estimator.
        unit: Unit of the number.
        is_whole: Whether the positions are all possible answers: integers, not rounded.
        smoothness: The smooth part of the fitted distribution, from 0 (EM alone) to 1 (EMS alone).
        noise: Factor by which the variance of the noise exceeds that of n reports of different people.
        people: The same factor for the sampling error.
        unheard: The part of the sampling error that also applies to those who answered, because only some of them
            count.
        assumed: The assumption behind the intervals of quantiles, ranges and bins, if any.
    """

    kind: ClassVar[str] = "distribution"
    family: ClassVar[str] = "distribution"
    heading: ClassVar[str] = "value"

    points: Floats
    frequencies: Floats
    n: int
    evidence: Evidence | None
    edges: Floats
    protocol: str
    method: str = "EM"
    unit: str = ""
    is_whole: bool = False
    smoothness: float = 0.0
    noise: float = 1.0
    people: float = 1.0
    unheard: float = 0.0
    assumed: Smooth | None = None

    # -- figures -----------------------------------------------------------------------------------

    @property
    def step(self) -> float:
        return float(self.points[1] - self.points[0])

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the domain."""
        return float(self.points[0]), float(self.points[-1])

    @cached_property
    def cdf(self) -> Floats:
        """The share of the numbers up to each of the `points`; in an interval, a position represents all near it."""
        return np.array(self._cumulative(np.arange(self.points.size, dtype=float)))

    def _cumulative(self, places: Floats) -> Floats:
        total = np.cumsum(self.frequencies)
        if self.is_whole:
            found: Floats = total[np.clip(np.floor(places).astype(np.int64), 0, total.size - 1)]
            return np.where(places < 0, 0.0, found)
        where = np.concatenate([[0.0], np.arange(self.points.size - 1) + 0.5, [self.points.size - 1.0]])
        between: Floats = np.interp(places, where, np.concatenate([[0.0], total[:-1], [1.0]]))
        return between

    def cdf_at(self, number: float) -> Quantity:
        """The share of the numbers up to this one."""
        place = np.array([self._place(number)])
        if not self.n:
            return Quantity(math.nan, lambda level, population: (0.0, 1.0), math.nan)

        def interval(level: float, population: bool) -> tuple[float, float]:
            low, high = self._up_to(place, quantile(level), population)
            return float(low[0]), float(high[0])

        return Quantity(float(self._cumulative(place)[0]), interval, None)

    def range(self, low: float, high: float) -> Quantity:
        """The share of the numbers from one to another, both included."""
        if not math.isfinite(low) or not math.isfinite(high) or low > high:
            raise NumberError(f"a range goes from a number to one that is not smaller, not from {low!r} to {high!r}")
        if not self.n:
            return Quantity(math.nan, lambda level, population: (0.0, 1.0), math.nan)
        first, last = self.ends
        begin, end = min(max(low, first), last), min(max(high, first), last)
        if self.is_whole:
            begin, end = math.ceil(begin), math.floor(end) + 1
        if begin > end or low > last or high < first or (self.is_whole and begin == end):
            return Quantity(0.0, lambda level, population: (0.0, 0.0), 0.0)
        one = replace(self, edges=np.array([begin, end], dtype=float))

        def interval(level: float, population: bool) -> tuple[float, float]:
            _, low, high = one._shares_of_bins(quantile(level), population)
            return float(low[0]), float(high[0])

        return Quantity(float(one._shares_of_bins(1.0, True)[0][0]), interval, one._error_of_bin())

    def _error_of_bin(self) -> float | None:
        """The standard error of the share of the only bin, if it is known apart from its interval."""
        return None

    def _place(self, number: float) -> float:
        if not math.isfinite(number):
            raise NumberError(f"a distribution is about finite numbers, not {number!r}")
        return min(max((number - self.ends[0]) / self.step, -1.0), self.points.size - 1.0)

    def quantile(self, q: float) -> Quantity:
        """The smallest number that a share q of the numbers does not exceed."""
        if not 0 < q < 1:
            raise NumberError(f"a quantile is asked for at a share between 0 and 1, not at {q!r}")
        if not self.n:
            return Quantity(math.nan, lambda level, population: self.ends, math.nan)

        def interval(level: float, population: bool) -> tuple[float, float]:
            ((low, high),) = self._crossings([q], quantile(level), population)
            return float(low), float(high)

        return Quantity(self._quantile(q), interval, None)

    @property
    def median(self) -> Quantity:
        return self.quantile(0.5)

    def _quantile(self, q: float) -> float:
        total = np.cumsum(self.frequencies)
        if self.is_whole:
            return float(self.points[min(int(np.searchsorted(total, q * (1 - 1e-12))), total.size - 1)])
        where = np.concatenate([[0.0], np.arange(self.points.size - 1) + 0.5, [self.points.size - 1.0]])
        known = np.concatenate([[0.0], total[:-1], [1.0]])
        after = min(max(int(np.searchsorted(known, q)), 1), known.size - 1)
        rise = known[after] - known[after - 1]
        part = (q - known[after - 1]) / rise if rise > 0 else 0.0
        return self.ends[0] + self.step * float(where[after - 1] + part * (where[after] - where[after - 1]))

    @cached_property
    def mean(self) -> Quantity:
        """Unbiased; noise may put it outside the domain."""
        return self._smooth_figure(self.points, 0.0, (0.0, 0.0))

    @cached_property
    def variance(self) -> Quantity:
        """The variance of the numbers, in the square of the unit, corrected for rounding to the positions."""
        play = 0.0 if self.is_whole else self.step**2
        moved = self._moved_mean(self.points)
        return self._smooth_figure((self.points - float(self.mean)) ** 2, play / 6, (play / 12 + moved, play / 6))

    def _moved_mean(self, points: Floats) -> float:
        """Increase of squares around a mean other than that of the honest reports, if some reports are forged."""
        if not self.fakes or self.evidence is None:
            return 0.0
        found, thinned = self.evidence.read(points[None, :]), self.evidence.thinned(self.fakes)
        return float((self.fakes * thinned * max(found.down[0], found.up[0])) ** 2)

    @cached_property
    def sd(self) -> Quantity:
        """The standard deviation of the numbers; it is at most half of the width of the domain."""
        most = (self.ends[1] - self.ends[0]) / 2

        def root(variance: float) -> float:
            return min(most, math.sqrt(max(0.0, variance)))

        def interval(level: float, population: bool) -> tuple[float, float]:
            low, high = self.variance.interval(level, population)
            return (root(low), root(high)) if self.n else (0.0, most)

        value = root(self.variance) if self.n else math.nan
        return Quantity(value, interval, None if self.n else math.nan)

    def _smooth_figure(self, weights: Floats, bias: float, play: tuple[float, float]) -> Quantity:
        """The mean of weights of the positions, minus a bias that is known up to some slack."""
        if self.evidence is None:
            least, most = float(weights.min()), float(weights.max())
            return Quantity(math.nan, lambda level, population: (least, most), math.nan)
        found = self.evidence.read(weights[None, :])
        value = float(found.value[0]) - bias

        def interval(level: float, population: bool) -> tuple[float, float]:
            down, up = (float(self._reach(found, quantile(level), population, side)[0]) for side in (-1, 1))
            return value - down - play[0], value + up + play[1]

        return Quantity(value, interval, math.sqrt(float(self._spread(found, True)[0])))

    def _spread(self, found: Readings, population: bool) -> Floats:
        spread: Floats = self.noise * found.noise + (self.people if population else self.unheard) * found.people
        return spread

    def _reach(self, found: Readings, z: float, population: bool, side: int) -> Floats:
        """How far an interval reaches below the figure, or above it."""
        rare = z**2 / 6 * max(self.noise, 1.0) * found.most
        return with_fakes(self, found, z * np.sqrt(self._spread(found, population)) + rare, side)

    def _robust(self, fakes: int) -> Self:
        return replace(self, fakes=fakes)

    # -- intervals that assume a smooth distribution -----------------------------------------------

    def assuming(self, what: str = "smooth") -> Self:
        """The same with shorter intervals of quantiles, ranges and bins, which hold if the distribution is smooth.

        what  "smooth", or "smooth:S": the density bends no more than that of a normal distribution whose standard
              deviation is S of the range (0.1 where it is not said); "" assumes nothing again

        The values stay. The name of the assumption is shown with the intervals.
        """
        if what == "":
            return replace(self, assumed=None)
        width = read_assumption(what)
        if self.evidence is None:
            return self
        cells = self.evidence.linear(self.points.size)
        return replace(self, assumed=Smooth(width, cells, self._boundaries, self.frequencies))

    @property
    def _boundaries(self) -> Floats:
        """Where the numbers of each position begin and end, in steps."""
        if self.is_whole:
            return np.arange(self.points.size + 1.0)
        return np.concatenate([[0.0], np.arange(self.points.size - 1) + 0.5, [self.points.size - 1.0]])

    def _chosen(
        self, free: Ends, value: Floats, ends: tuple[Floats, Floats], z: float, population: bool
    ) -> tuple[Floats, Floats]:
        """The ends of intervals that hold for any distribution, or of those of the same ranges under an assumption, if
        these are expected to be shorter; widened to contain the value."""
        low, high, length = free
        if self.assumed is not None:
            other = self._assumed_between(value, *ends, z, population)
            shorter = other.length < length
            low, high = np.where(shorter, other.low, low), np.where(shorter, other.high, high)
        return np.minimum(low, value), np.maximum(high, value)

    def _assumed_between(self, value: Floats, start: Floats, stop: Floats, z: float, population: bool) -> Ends:
        """Intervals of the shares of ranges of places."""
        assert self.assumed is not None
        found = self.assumed.read(self.assumed.between(start, stop), self.fakes > 0)
        most, down, up = found.moved
        people = np.maximum(0.0, found.people)
        read = Readings(found.value, found.everything - found.people, people, most, down, up)
        error = np.sqrt(np.maximum(self._spread(read, population), np.finfo(float).tiny))
        rare = z**2 / 6 * max(self.noise, 1.0) * most
        reach = critical(found.bias / error, z) * error + rare
        down, up = (with_fakes(self, read, reach, side) for side in (-1, 1))
        return Ends.of(found.value - down, found.value + up, value - down, value + up)

    def _assumed_crossings(self, shares: Sequence[float], z: float, population: bool) -> list[tuple[float, float]]:
        """Quantiles may lie at any of the knots whose interval contains their share, and up to the next one."""
        assert self.assumed is not None
        knots = self.assumed.knots
        low, high = self._up_to(knots - self.is_whole, z, population)
        found = []
        for q in shares:
            first = int(np.argmax(high >= q))
            last = int(np.flatnonzero(low <= q)[-1])
            begin, end = knots[max(0, first - 1)], knots[min(last + 1, knots.size - 1)]
            # An integer is the step up to the knot behind it.
            begin, end = (self.ends[0] + self.step * float(at) for at in (begin, end - self.is_whole))
            value = self._quantile(q)
            found.append((min(begin, value), max(end, value)))
        return found

    def _names(self, count: int) -> Sequence[str]:
        """The assumption, for `count` rows."""
        return () if self.assumed is None else [self.assumed.name] * count

    # -- intervals of shares -----------------------------------------------------------------------

    @property
    def _widths(self) -> list[float]:
        """The widths of the ramps to try, in steps."""
        most = self.points.size - 1
        count = 1 + math.floor(math.log(most) / math.log(_WIDENING)) if most > 1 else 1
        return sorted({float(round(_WIDENING**k)) for k in range(count)})

    def _ramps(self, start: Floats, stop: Floats) -> _Ramps:
        """The ramps of ranges from a place to a place, both included; an end of the domain needs no ramp."""
        last = self.points.size - 1.0
        if self.is_whole:
            inner, outer = (np.floor(start) - 1, np.floor(stop) + 1), (np.floor(start), np.floor(stop))
        else:
            inner, outer = (np.ceil(start), np.floor(stop)), (np.floor(start), np.ceil(stop))
        first, whole = start <= 0, stop >= last
        return _Ramps(
            np.where(first, -np.inf, inner[0]),
            np.where(whole, np.inf, inner[1]),
            np.where(first, -np.inf, outer[0]),
            np.where(whole, np.inf, outer[1]),
        )

    def _inner(self, ramps: _Ramps, width: Floats) -> Floats:
        """Weights that are at most one everywhere and zero outside the ranges."""
        at, width = np.arange(self.points.size), width[:, None]
        rise, fall = at - ramps.zero_from[:, None], ramps.zero_to[:, None] - at
        return np.clip(np.minimum(rise, fall) / width, 0.0, 1.0)

    def _outer(self, ramps: _Ramps, width: Floats) -> Floats:
        """Weights that are one in the ranges and at least zero everywhere."""
        at, width = np.arange(self.points.size), width[:, None]
        rise, fall = at - ramps.one_from[:, None] + width, ramps.one_to[:, None] - at + width
        return np.clip(np.minimum(rise, fall) / width, 0.0, 1.0)

    def _best_widths(self, ramps: _Ramps, z: float, population: bool) -> tuple[Floats, Floats]:
        """The widths of the inner and the outer ramps with the shortest expected intervals at the fit."""
        assert self.evidence is not None
        rows = ramps.zero_from.size
        best = np.full((2, rows), np.inf), np.ones((2, rows))
        for width in self._widths:
            each = np.full(rows, width)
            for side, weights in enumerate((self._inner(ramps, each), self._outer(ramps, each))):
                reach = self._reach(self.evidence.read(weights), z, population, 2 * side - 1)
                expected = (1 - 2 * side) * -(weights @ self.frequencies) + reach
                better = expected < best[0][side]
                best[0][side][better], best[1][side][better] = expected[better], width
        return best[1][0], best[1][1]

    def _bracket(self, ramps: _Ramps, widths: tuple[Floats, Floats], z: float, population: bool) -> Ends:
        assert self.evidence is not None
        inner, outer = self._inner(ramps, widths[0]), self._outer(ramps, widths[1])
        below, above = self.evidence.read(inner), self.evidence.read(outer)
        down, up = self._reach(below, z, population, -1), self._reach(above, z, population, 1)
        expected = inner @ self.frequencies - down, outer @ self.frequencies + up
        return Ends.of(below.value - down, above.value + up, *expected)

    def _up_to(self, places: Floats, z: float, population: bool) -> tuple[Floats, Floats]:
        """Intervals of the cumulative shares at these places."""
        knots, widths = self._knots(population)
        near = np.searchsorted((knots[1:] + knots[:-1]) / 2, places)
        ramps = self._ramps(np.full(places.size, -1.0), places)
        free = self._bracket(ramps, (widths[0][near], widths[1][near]), z, population)
        value, last = self._cumulative(places), self.points.size - 1.0
        ends = np.zeros(places.size), np.floor(places) + 1 if self.is_whole else places
        low, high = self._chosen(free, value, ends, z, population)
        known = places >= last
        return np.where(known, 1.0, np.where(places < 0, 0.0, low)), np.where(places < 0, 0.0, high)

    def _knots(self, population: bool) -> tuple[Floats, tuple[Floats, Floats]]:
        """Some places, and the best widths of their ramps at 95 %; in between and at other levels they are similar."""
        kept: dict[bool, Any] = self.__dict__.setdefault("_kept", {})
        if population not in kept:
            knots = np.unique(np.round(np.linspace(0, self.points.size - 1, KNOTS)))
            ramps = self._ramps(np.full(knots.size, -1.0), knots)
            kept[population] = knots, self._best_widths(ramps, quantile(0.95), population)
        found: tuple[Floats, tuple[Floats, Floats]] = kept[population]
        return found

    def _crossings(self, shares: Sequence[float], z: float, population: bool) -> list[tuple[float, float]]:
        """The places where the intervals of the cumulative shares first reach each of some shares, and leave it."""
        if self.assumed is not None:
            return self._assumed_crossings(shares, z, population)
        knots = self._knots(population)[0]
        low, high = self._up_to(knots, z, population)
        found = []
        for q in shares:
            first = self._refined(knots, high >= q, lambda places, q=q: self._up_to(places, z, population)[1] >= q)  # type: ignore[misc]
            last = self._refined(knots, low >= q, lambda places, q=q: self._up_to(places, z, population)[0] >= q)  # type: ignore[misc]
            begin = first if self.is_whole else max(0, first - 1)
            value = self._quantile(q)
            found.append((min(float(self.points[begin]), value), max(float(self.points[last]), value)))
        return found

    @staticmethod
    def _refined(knots: Floats, reached: Any, test: Callable[[Floats], Any]) -> int:
        """The first position at which a test holds that stays true along the positions; it holds at the last one."""
        while True:
            after = int(np.argmax(reached))
            if after == 0:
                return int(knots[0])
            low, high = knots[after - 1], knots[after]
            if high - low <= 1:
                return int(high)
            knots = np.unique(np.round(np.linspace(low, high, KNOTS)))
            reached = np.concatenate([[False], test(knots[1:-1]), [True]])

    # -- tables ------------------------------------------------------------------------------------

    def cumulative(self, level: float = 0.95, population: bool = True) -> Rows:
        """The shares of the numbers up to some numbers, with intervals that hold for all numbers at once.

        Between two of the numbers the share lies between the lower end at the first and the upper end at the second.
        """
        knots = np.unique(np.round(np.linspace(0, self.points.size - 1, KNOTS)))
        places = self.points[knots.astype(np.int64)]
        labels, more = [f"up to {_short(place)}" for place in places], {"end": places}
        if not self.n:
            nothing = np.full(knots.size, np.nan)
            low, high = np.zeros(knots.size), np.ones(knots.size)
            return Rows(labels, nothing, nothing, low, high, "", level, True, population, more, is_ordered=True)
        z = quantile(level, knots.size)
        low, high = self._up_to(knots, z, population)
        low, high = np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]
        value, error = self._cumulative(knots), (high - low) / (2 * z)
        named = self._names(len(labels))
        return Rows(labels, value, error, low, high, "", level, True, population, more, is_ordered=True, assumed=named)

    def of_ranges(
        self, asked: Sequence[tuple[float, ...]], level: float = 0.95, population: bool = True
    ) -> Rows | None:
        wanted = [(one[0], one[1]) for one in asked if len(one) == 2]
        if not wanted:
            return None
        found = [self.range(low, high) for low, high in wanted]
        ends = np.array([one.interval(level, population) for one in found]).reshape(-1, 2)
        labels = [f"{_short(low)} to {_short(high)}" for low, high in wanted]
        value, error = (np.array(one, dtype=float) for one in (found, [one.stderr for one in found]))
        named = self._names(len(labels))
        low_high = ends[:, 0], ends[:, 1]
        return Rows(labels, value, error, *low_high, "", level, False, population, is_ordered=True, assumed=named)

    def binned(self, bins: int) -> Distribution:
        """The same with about `bins` bins, with round numbers as edges."""
        if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or not 1 <= bins <= MOST_BINS:
            raise NumberError(f"the number of bins is a whole number from 1 to {MOST_BINS:,}, not {bins!r}")
        return replace(self, edges=round_edges(self.points, int(bins), self.is_whole))

    @property
    def bin_names(self) -> list[str]:
        names = []
        for begin, end in zip(self.edges[:-1], self.edges[1:], strict=True):
            last = end - self.step if self.is_whole else end
            names.append(_short(begin) if last <= begin else f"{_short(begin)} to {_short(last)}")
        return names

    def histogram(
        self, bins: int | None = None, level: float = 0.95, simultaneous: bool = False, population: bool = True
    ) -> Rows:
        """The shares of the bins."""
        if bins is not None:
            return self.binned(bins).histogram(None, level, simultaneous, population)
        z = quantile(level, self.edges.size - 1 if simultaneous else 1)
        value, low, high = self._shares_of_bins(z, population)
        error = (high - low) / (2 * z) if self.n else np.full(value.size, np.nan)
        more = {"begin": self.edges[:-1], "end": self.edges[1:]}
        named = self._names(value.size)
        return Rows(self.bin_names, value, error, low, high, "", level, simultaneous, population, more, assumed=named)

    def half_width_of_bin(self, begin: float, end: float) -> float:
        """Half the 95 % interval of the share from one number to another; for integers, to the one before it."""
        low, high = replace(self, edges=np.array([begin, end]))._shares_of_bins(quantile(0.95), True)[1:]
        return float(high[0] - low[0]) / 2

    def _shares_of_bins(self, z: float, population: bool) -> tuple[Floats, Floats, Floats]:
        if not self.n:
            size = self.edges.size - 1
            return np.full(size, np.nan), np.zeros(size), np.ones(size)
        start, stop = ((edge - self.ends[0]) / self.step for edge in (self.edges[:-1], self.edges[1:]))
        start, stop = np.round(start, 9), np.round(stop, 9)
        before = self._cumulative(start - 1 if self.is_whole else start)
        if not self.is_whole:
            before[start <= 0] = 0.0
        value = self._cumulative(stop - 1 if self.is_whole else stop) - before
        ramps = self._ramps(start, stop - 1 if self.is_whole else stop)
        free = self._bracket(ramps, self._best_widths(ramps, z, population), z, population)
        low, high = self._chosen(free, value, (start, stop), z, population)
        return value, low, high

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        figures = len(QUANTILES) + 2
        bins = self.edges.size - 1
        tests = figures + bins if simultaneous else 1
        z, own = quantile(level, tests), 1 - (1 - level) / tests
        ends = self._crossings(QUANTILES, z, population) if self.n else [self.ends] * len(QUANTILES)
        low, high = (list(side) for side in zip(*ends, strict=True))
        value = [self._quantile(q) if self.n else math.nan for q in QUANTILES]
        error = [(b - a) / (2 * z) if self.n else math.nan for a, b in ends]
        for figure in (self.mean, self.sd):
            first, last = figure.interval(own, population)
            value.append(float(figure))
            error.append((last - first) / (2 * z) if self.n else math.nan)
            low.append(first)
            high.append(last)
        share, *span = self._shares_of_bins(z, population)
        spread = (span[1] - span[0]) / (2 * z) if self.n else np.full(bins, np.nan)
        none = np.full(figures, np.nan)
        return Rows(
            [*QUANTILE_NAMES, "mean", "standard deviation", *self.bin_names],
            np.concatenate([value, share]),
            np.concatenate([error, spread]),
            np.concatenate([low, span[0]]),
            np.concatenate([high, span[1]]),
            self.unit,
            level,
            simultaneous,
            population,
            {"begin": np.concatenate([none, self.edges[:-1]]), "end": np.concatenate([none, self.edges[1:]])},
            units=[self.unit] * figures + [""] * bins,
            is_ordered=True,
            assumed=[*self._names(len(QUANTILES)), "", "", *self._names(bins)] if self.assumed else (),
        )

    def drawings(self, view: View, rows: Rows, further: bool = True) -> list[Drawing]:
        bins = np.isfinite(rows.more["begin"])
        marks: list[dict[str, Any]] = [{"row": place, "quantile": q} for place, q in enumerate(QUANTILES)]
        others = ({"row": len(QUANTILES) + place, "figure": name} for place, name in enumerate(("mean", "deviation")))
        found = [
            Drawing("figures", "points", replace(rows.some(~bins), more={}), self.heading, marks=[*marks, *others]),
            Drawing("bins", "histogram", rows.some(bins), self.heading),
        ]
        if further:
            crossings = rows.records(json=True)[: len(QUANTILES)]
            at = [
                {"quantile": q, **{name: row[name] for name in ("value", "low", "high")}}
                for q, row in zip(QUANTILES, crossings, strict=True)
            ]
            curve = self.cumulative(view.level, view.population)
            found.append(Drawing("cumulative", "curve", curve, "share", True, at))
            asked = self.of_ranges(view.ranges, view.level, view.population)
            found += [] if asked is None else [Drawing("ranges", "points", asked, "share", True)]
        return found

    def finding(self) -> tuple[str, Mapping[str, Any], str] | None:
        """The median, with its interval."""
        if not self.n:
            return None
        median = self.median
        low, high = median.interval()
        digits = 0 if self.is_whole else max(0, -math.floor(math.log10(max(high - low, 1e-12) / 2)))
        middle, first, last = (number(x, digits) for x in (float(median), low, high))
        unit = f" {self.unit}" if self.unit else ""
        assumed = f", assuming {self.assumed.name}" if self.assumed else ""
        said = f"Median {middle} ({first} to {last}{assumed}){unit}, n = {self.n:,}"
        facts = {"value": float(median), "low": low, "high": high, "digits": digits, "unit": self.unit}
        return "median", facts | {"n": self.n, "assumed": self.assumed.name if self.assumed else ""}, said

    @property
    def notes(self) -> list[str]:
        return [*super().notes, *([self.assumed.sentence] if self.assumed else [])]

    def repeated(self, noise: float, people: float) -> Distribution:
        grown = {"noise": noise * self.noise, "people": people * self.people, "unheard": noise * self.unheard}
        return replace(self, **grown, check=self._check_of(noise))  # type: ignore[arg-type]

    def sampled(self, part: Fraction) -> Distribution:
        return replace(self, unheard=float(1 - part) * self.people)

    # -- two groups --------------------------------------------------------------------------------

    def __sub__(self, other: Result) -> Difference:
        """The difference of the distribution between two independent groups, from unbiased figures.

        Rows: the mean, and the shares up to the edges of the bins, each blurred over a bin. `p_value` belongs to the
        test that all of these shares are the same.
        """
        if not isinstance(other, Distribution):
            return NotImplemented
        edges = self._common_edges([self, other])
        inner = edges[1:-1]
        wanted = np.vstack([self.points, *([self._ramps_at(edges)] if inner.size else [])])
        sides = [one._compared(wanted) for one in (self, other)]
        value, spread = sides[0][0] - sides[1][0], sides[0][1] + sides[1][1]
        error = np.sqrt(np.diagonal(spread))
        whole = np.tile([-1.0, 1.0], (value.size, 1))
        whole[0] *= self.ends[1] - self.ends[0]
        labels = ["mean", *(f"up to {_short(edge)}" for edge in inner)]
        return Difference(labels, value, error, whole, sides[0][0], sides[1][0], compare(self, other))

    def measured(self, edges: Floats | None = None) -> Measured:
        """The shares up to the edges of the bins, each blurred over a bin; with one bin the mean."""
        known = self.edges if edges is None else edges
        value, spread = self._compared(self._ramps_at(known))
        labels = [f"up to {_short(edge)}" for edge in known[1:-1]] or ["mean"]
        return Measured(labels, value, lambda _: spread, self.n, np.eye(len(labels)))

    def measured_with(self, groups: Sequence[Result]) -> list[Measured]:
        edges = self._common_edges(groups)
        return [one.measured(edges) for one in groups if isinstance(one, Distribution)]

    def _common_edges(self, groups: Sequence[Result]) -> Floats:
        """The bins of the result with the fewest; raises MismatchError if one is about other numbers."""
        each = [one for one in groups if isinstance(one, Distribution) and one.unit == self.unit]
        alike = [one.points.shape == self.points.shape and np.allclose(one.points, self.points) for one in each]
        if len(each) < len(groups) or not all(alike):
            raise MismatchError("these estimates are about different answers")
        return min((one.edges for one in each), key=len)

    def test(self, given: Any) -> SignificanceTest:
        """Test whether the numbers have this law (shares of the `points`, or a cumulative function), or this mean.

        A mean is tested by the intervals of the mean, which hold for any distribution.
        """
        if isinstance(given, bool) or not isinstance(given, int | float | Fraction):
            return super().test(given)
        if not math.isfinite(given):
            raise NumberError(f"a mean is tested against a number, not {given!r}")
        if not self.n:
            return nothing(FIT_TEST, (0,))
        p = self.mean.p_value(float(given))
        return SignificanceTest(
            FIT_TEST, p, quantile(1 - p) ** 2 if p < 1 else 0.0, 1, (int(self.n),), "interval of the mean"
        )

    def as_given(self, given: Any) -> Floats:
        """Shares of the `points`, or a function that gives the share of the numbers up to each of some numbers."""
        if callable(given):
            beyond = self.points + (0.0 if self.is_whole else self.step / 2)
            shares = np.diff(np.concatenate([[0.0], np.asarray(given(beyond), dtype=float)[:-1], [1.0]]))
        else:
            shares = np.asarray(given, dtype=float)
        if shares.shape != self.points.shape:
            raise ShapeError(f"give a share for each of the {self.points.size} points, not {shares.size}")
        if not (np.isfinite(shares).all() and shares.min() >= -1e-12 and abs(shares.sum() - 1) < 1e-6):
            raise NumberError(f"shares are not negative and add up to one, not to {shares.sum():.6g}")
        expected: Floats = self._ramps_at(self.edges) @ shares
        return expected

    def _ramps_at(self, edges: Floats) -> Floats:
        """Weights of the positions: one up to each inner edge, falling over the width of a bin."""
        inner = edges[1:-1]
        if not inner.size:
            return self.points[None, :]
        width = max(self.step, float(np.median(np.diff(edges))))
        return np.clip((inner[:, None] + width / 2 - self.points) / width, 0.0, 1.0)

    def _compared(self, wanted: Floats) -> tuple[Floats, Floats]:
        if self.evidence is None:
            return np.full(len(wanted), np.nan), np.full((len(wanted), len(wanted)), np.nan)
        worst = max(self.noise, self.people)
        return self.evidence.read(wanted).value, worst * self.evidence.covariance(wanted)

    # -- pictures ----------------------------------------------------------------------------------

    def plot(
        self,
        ax: Any = None,
        level: float = 0.95,
        most: int = 40,
        simultaneous: bool = False,
        population: bool = True,
    ) -> Any:
        """The histogram, and next to it the cumulative shares in their band with marks at the quantiles.

        Returns the axes of the histogram. With `ax` only the histogram is drawn; `most` is not used.
        """
        both = None
        if ax is None:
            plt = require("matplotlib.pyplot", "plot")
            ax, both = plt.subplots(1, 2, figsize=(10.0, 3.6), layout="constrained")[1]
        self._draw_histogram(ax, level, simultaneous, population)
        if both is not None:
            self._draw_band(both, level, population)
        return ax

    def _draw_histogram(self, ax: Any, level: float, simultaneous: bool, population: bool) -> None:
        rows = self.histogram(None, level, simultaneous, population)
        widths = np.diff(self.edges)
        centre = self.edges[:-1] + widths / 2
        if self.n:
            seen = rows.low > 0
            for which, color, name in ((seen, SEEN, "clear of zero"), (~seen, UNSEEN, "may be zero")):
                if which.any():
                    ax.bar(centre[which], rows.value[which], 0.94 * widths[which], color=color, label=name)
            if seen.any() and not seen.all():
                ax.legend(frameon=False, fontsize="small")
        ax.vlines(centre, rows.low, rows.high, color=INK, linewidth=1)
        ax.axhline(0, color=INK, linewidth=0.6)
        ax.set(xlabel=self.unit, ylabel="share")
        ax.set_title(f"{self.headline or no_reports()}\n{self.title}: {rows.interval_name}", fontsize="medium")

    def _draw_band(self, ax: Any, level: float, population: bool) -> None:
        rows = self.cumulative(level, population)
        places = rows.more["end"]
        # Between two knots the share is at least that of the first and at most that of the second.
        ax.fill_between(
            places, rows.low, np.append(rows.high[1:], 1.0), step="post", color=UNSEEN, alpha=0.6, linewidth=0
        )
        if self.n:
            ax.plot(self.points, self.cdf, color=SEEN, linewidth=1.2)
            ends = self._crossings(QUANTILES, quantile(level), population)
            ax.hlines(QUANTILES, *np.array(ends).T, color=INK, linewidth=1)
            ax.plot([self._quantile(q) for q in QUANTILES], QUANTILES, "o", color=INK, markersize=3)
        ax.set(xlabel=self.unit, ylabel="cumulative share", ylim=(-0.02, 1.02))
        assumed = f", assuming {self.assumed.name}" if self.assumed else ""
        ax.set_title(f"cumulative, {100 * level:g} % band for all numbers at once{assumed}", fontsize="medium")

    def __repr__(self) -> str:
        return f"<Distribution: {self.headline or no_reports()}, {self.protocol}, {self.method}>"


QUANTILE_NAMES = tuple(MEDIAN if q == 0.5 else f"{100 * q:g} % quantile" for q in QUANTILES)


def median_error(found: Distribution, population: bool) -> float:
    """Half the interval of the median, divided by z, in the unit.

    Integers have intervals of whole steps, down to none: the error of the share up to the middle is the minimum.
    """
    low, high = found.median.interval(0.95, population)
    first, last = found.ends
    share = np.ptp(found.cdf_at((first + last) / 2).interval(0.95, population))
    return float(max(high - low, share * (last - first))) / (2 * quantile(0.95))


def true_figures(numbers: Floats, held: Floats, edges: Floats) -> Floats:
    """The figures of a table, if `held` people have each of the numbers."""
    order = np.argsort(numbers, kind="stable")
    numbers, held = numbers[order], held[order]
    total = np.cumsum(held)
    quantiles = numbers[np.searchsorted(total, np.array(QUANTILES) * total[-1] * (1 - 1e-12))]
    mean = float(np.average(numbers, weights=held))
    spread = float(np.average((numbers - mean) ** 2, weights=held))
    bins = np.histogram(numbers, edges, weights=held)[0] / total[-1]
    return np.concatenate([quantiles, [mean, math.sqrt(spread)], bins])


def read_numbers(text: str) -> tuple[float, ...]:
    """Parse a range, or a rectangle: two ranges with a comma between them.

    >>> read_numbers("-1.5..2"), read_numbers("25..45,0..40")
    ((-1.5, 2.0), (25.0, 45.0, 0.0, 40.0))
    """
    found: list[float] = []
    for span in text.split(","):
        low, _, high = span.partition("..")
        try:
            ends = float(low), float(high)
        except ValueError:
            ends = math.nan, math.nan
        if not all(map(math.isfinite, ends)) or ends[0] > ends[1]:
            raise NumberError(f"a range is written like 25..45, the smaller number first, not {text!r}")
        found += ends
    if len(found) > 4:
        raise NumberError(f"a rectangle is two ranges, like 25..45,30..40, not {text!r}")
    return tuple(found)


def round_edges(points: Floats, bins: int, is_whole: bool) -> Floats:
    """About `bins` bins over the points, of equal width with one digit (1, 2 or 5), and round numbers as edges.

    >>> round_edges(np.linspace(0, 24, 97), 5, False).tolist(), round_edges(np.arange(18.0, 100), 9, True).tolist()
    ([0.0, 5.0, 10.0, 15.0, 20.0, 24.0], [18.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0])
    """
    low, step = float(points[0]), float(points[1] - points[0])
    high = float(points[-1]) + (step if is_whole else 0.0)
    wanted = (high - low) / bins
    power = 10.0 ** math.floor(math.log10(wanted))
    width = next(k * power for k in (1, 2, 5, 10) if k * power >= wanted * (1 - 1e-9))
    width = max(width, step)
    inner = width * np.arange(math.floor(low / width), math.ceil(high / width) + 1)
    inner = inner[
        (inner > low + 0.499 * width) & (inner < high - 0.499 * width)
    ]  # bins that are narrower join their neighbour
    return np.concatenate([[low], inner, [high]])


def _short(value: float) -> str:
    return f"{value:.6g}"

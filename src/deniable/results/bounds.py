"""Confidence intervals for means of bounded numbers, from the count of each number, and for known noise.

Bound      the upper one is a quantile of the sum of w v over the reports' numbers v and the largest possible number,
           where the weights w are uniform on all non-negative weights that sum to one; the lower one likewise, with
           the smallest possible number. It needs no estimate of a spread, and no shape of the distribution
Two        if only two numbers are possible, this is the interval of Clopper and Pearson, exactly
Large n    the normal interval, wider by a part of the order of 1 / sqrt(n)
Valid      for two numbers, proven; for more, no distribution with less than the stated coverage is known
Quantile   by the saddle point of a sum of gamma variables (Barndorff-Nielsen's r*)
Noise      for people or graphs that stay fixed: sums of two binomial numbers (`held_ends`), and of Laplace numbers
           (`laplace_reach`)
Source     Gaffke 2005; Learned-Miller and Thomas 2019; Phan, Thomas and Learned-Miller 2021
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_STEPS, _EXACT = 60, 1e-9
_GROUPS, _ROUNDED, _NOBODY = 24, 1e-12, 1e-9
_FAR = 25.0
"""The saddle point is searched for at distances of e^-25 to e^25 times the range from its end."""


class Bounds(Protocol):
    """Computes the interval of a figure."""

    def interval(self, level: float, errors: Any) -> Floats:
        """One row of ends per figure, for figures with these standard errors."""


class TableBounds(Bounds, Protocol):
    """Computes the intervals of the figures of a table."""

    def of(self, places: Any) -> TableBounds:
        """The same for some of the figures, or for all in another order."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """The contributions of reports to figures that are means over reports."""

    values: Floats
    """Every number that a report can contribute, for all figures or one row per figure."""
    counts: Floats
    """Number of reports that contribute each number, one row per figure."""
    errors: Floats | float
    """The standard errors of the figures, as estimated from these reports."""

    @classmethod
    def between(cls, lowest: Any, highest: Any, value: Floats, n: float) -> Numbers:
        """For shares that are means over n reports, if each report contributes one of two numbers.

        Exact for supports of a pure law. An approximation for reports that contribute further numbers in between: then
        the errors of the shares determine the equivalent number of reports with two numbers.
        """
        low, high, share = (np.broadcast_to(one, value.shape) for one in (lowest, highest, np.clip(value, 0.0, 1.0)))
        width = high - low
        upper = np.divide(
            value - low, width, out=np.zeros(value.shape), where=width > 0
        )  # all reports may contribute the same number
        counts = n * np.stack([1 - upper, upper], axis=1)
        errors = np.sqrt(np.maximum((high - share) * (share - low), 0.0) / n)
        return cls(np.stack([low, high], axis=1), np.clip(counts, 0.0, n), errors)

    @classmethod
    def grouped(cls, values: Floats, counts: Floats, ends: tuple[Floats, Floats], errors: Floats) -> Numbers:
        """For many numbers, one row of `values` per figure: close ones are merged into their mean.

        `ends` are the smallest and the largest number that a report can contribute.
        """
        low, high = (np.asarray(end)[:, None] for end in ends)
        places = np.clip(((values - low) / (high - low) * _GROUPS).astype(np.int64), 0, _GROUPS - 1)
        rows, size = len(values), len(values) * _GROUPS
        flat = (places + _GROUPS * np.arange(rows)[:, None]).reshape(-1)
        each = np.broadcast_to(counts, values.shape)
        many, sums = (np.bincount(flat, one.reshape(-1), size).reshape(rows, -1) for one in (each, each * values))
        means = np.divide(sums, many, out=np.broadcast_to(low, many.shape).copy(), where=many > 0)
        none = np.zeros((rows, 2))
        return cls(np.hstack([low, high, means]), np.hstack([none, many]), errors)

    @classmethod
    def joined(cls, parts: Sequence[object]) -> Numbers | None:
        """The figures of several tables, each with its own numbers, as one; None if one table has none."""
        known = [one for one in parts if isinstance(one, Numbers)]
        if len(known) < len(parts):
            return None
        each = zip(*((one.values, one.counts, one.errors) for one in known), strict=True)
        return cls(*(np.concatenate(one) for one in each))

    def of(self, places: Any) -> Numbers:
        """The same for some of the figures."""
        values = self.values if self.values.ndim == 1 else self.values[places]
        return Numbers(values, self.counts[places], np.broadcast_to(self.errors, len(self.counts))[places])

    def counted(self, errors: Floats | float) -> Floats:
        """The counts; if figures have other errors than those of n independent reports, because reports repeat or
        because sampling error is left out, the counts that would have those errors."""
        base, now = np.broadcast_arrays(np.asarray(self.errors, dtype=np.float64), np.asarray(errors, dtype=np.float64))
        worth = np.divide(base, now, out=np.ones_like(now), where=(now > 0) & (base > 0))
        counted: Floats = np.atleast_2d(self.counts) * np.atleast_1d(worth)[:, None] ** 2
        return counted

    def interval(self, level: float, errors: Floats | float) -> Floats:
        """One row of ends per figure, for figures with these errors."""
        return mean_ends(self.values, self.counted(errors), level)

    def above(self, cut: float, level: float, errors: Floats | float) -> Floats:
        """The same for shares that are shown because they exceed `cut`, if a report contributes one of two numbers.

        Given that a count is at least that of the cut, it has a truncated binomial law; each end is the share
        for which this law has the count in its tail. Ends are between 0 and 1.
        """
        low, high = self.values[:, 0], self.values[:, 1]
        rest, seen = self.counted(errors).T
        n = rest + seen
        least = np.clip(n * (cut - low) / (high - low), 0.0, seen)
        next_one = np.minimum(least + 1, seen)  # one of two equal counts may be left out
        tail = (1 - level) / 2
        ends = (0 - low) / (high - low), (1 - low) / (high - low)
        lower, _ = _beyond(seen, next_one, n, tail, *ends)
        _, upper = _beyond(np.minimum(seen + 1, n), least, n, 1 - tail, *ends)
        upper = np.where(seen + 1 > n, ends[1], upper)
        shares = low[:, None] + np.stack([lower, upper], axis=1) * (high - low)[:, None]
        # An end that nothing moved is 0 or 1, whatever rounding makes of it.
        shares = np.where(np.stack([lower == ends[0], upper == ends[1]], axis=1), [0.0, 1.0], shares)
        return np.clip(shares, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Without:
    """Intervals of figures after a known contribution is removed; they also contain the figures as they are."""

    numbers: Numbers
    value: Floats

    def of(self, places: Any) -> Without:
        return Without(self.numbers.of(places), self.value[places])

    def interval(self, level: float, errors: Any) -> Floats:
        ends = self.numbers.interval(level, errors)
        return np.stack([np.minimum(ends[:, 0], self.value), np.maximum(ends[:, 1], self.value)], axis=1)


@dataclass(frozen=True)
class PairLaw:
    """Probability that a report supports something that a person has, p, and has not, q; and the same for two things,
    if the person has both, one or none."""

    p: float
    q: float
    both: float
    one: float
    none: float

    def counted(self, n: float, first: Floats, second: Floats, has_both: Any, has_one: Any) -> Floats:
        """How many of n reports support neither, only the first, only the second, and both; one row per pair.

        A tally has the number of reports that support each. The number that support both is not in it: it is the
        expectation under the law if these shares of the people have both things, or one of them.
        """
        both = n * (has_both * self.both + has_one * self.one + np.maximum(1 - has_both - has_one, 0.0) * self.none)
        both = np.clip(both, np.maximum(0.0, first + second - n), np.minimum(first, second))
        return np.stack([n - first - second + both, first - both, second - both, both], axis=1)

    def supports(self, shares: Floats, n: float) -> Floats:
        """Number of reports that support something with these estimated shares."""
        return np.asarray(np.clip(n * (self.q + (self.p - self.q) * shares), 0.0, n))


def _beyond(count: Floats, least: Floats, n: Floats, tail: float, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bounds of the chance s, between two ends, with P(X >= count | X >= least) = `tail`, X binomial."""
    from scipy.special import betainc

    def at_least(c: Floats, s: Floats) -> Floats:
        return np.where(c > 0, betainc(np.maximum(c, 1e-9), n - c + 1, s), 1.0)

    low, high = low.copy(), high.copy()
    for _ in range(50):
        middle = (low + high) / 2
        base = at_least(least, middle)
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.where(base > 0, at_least(count, middle) / base, np.where(count > least, 0.0, 1.0)) < tail
        low, high = np.where(far, middle, low), np.where(far, high, middle)
    return low, high


def mean_ends(values: ArrayLike, counts: ArrayLike, level: float) -> Floats:
    """One row of ends per row of counts; `counts[..., i]` reports had the number `values[..., i]`.

    All possible numbers are listed, including those without reports. Counts need not be integers.

    >>> (mean_ends([0, 1], [[5, 5], [10, 0]], 0.95).round(3) + 0.0).tolist()
    [[0.187, 0.813], [0.0, 0.308]]
    """
    seen = np.atleast_2d(np.asarray(counts, dtype=np.float64))
    seen = np.where(seen < _NOBODY, 0.0, seen)
    points = np.broadcast_to(np.asarray(values, dtype=np.float64), seen.shape)
    rows, tail = np.arange(len(seen)), (1 - level) / 2
    ends = []
    for sign in (-1.0, 1.0):
        with_end = seen.copy()
        with_end[rows, np.argmax(sign * points, axis=1)] += 1
        ends.append(sign * _upper(sign * points, with_end, tail))
    return np.asarray(np.stack(ends, axis=1) + 0.0)  # no negative zero


def _upper(values: Floats, weights: Floats, tail: float) -> Floats:
    """The value that a mean with Dirichlet weights exceeds with this probability, row by row."""
    from scipy.special import betaincinv

    low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
    at = (values - low) / np.where(high > low, high - low, 1.0)
    at = np.where(at < _ROUNDED, 0.0, np.where(at > 1 - _ROUNDED, 1.0, at))
    above, below = np.where(at >= 1, weights, 0.0).sum(axis=1), np.where(at <= 0, weights, 0.0).sum(axis=1)
    inner = np.where((at > 0) & (at < 1), weights, 0.0).any(axis=1)
    found = np.where(below > 0, betaincinv(above, np.where(below > 0, below, 1.0), 1 - tail), 1.0)
    if inner.any():
        found[inner] = _saddle(at[inner], weights[inner], NormalDist().inv_cdf(1 - tail))
    return np.asarray(low[:, 0] + (high - low)[:, 0] * found)


def _saddle(at: Floats, weights: Floats, reach: float) -> Floats:
    """The mean t with r*(t) = reach, where the weights of each number v, tilted towards 1, are w / (z - v), z > 1."""

    def excess(log_gap: Floats) -> Floats:
        # For far z, r is about proportional to 1 / z: in logarithms the rule of false position converges fast.
        return np.asarray(np.log(np.maximum(_tilted(at, weights, log_gap)[1], 1e-12) / reach))

    near, far = np.full(len(weights), -_FAR), np.full(len(weights), _FAR)
    above, below = excess(near), excess(far)
    side = np.zeros(len(weights))
    for _ in range(_STEPS):
        middle = np.clip((near * below - far * above) / (below - above), near, far)
        found = excess(middle)
        up = found > 0
        # Illinois: an end that stays twice counts half.
        below = np.where(up, np.where(side > 0, below / 2, below), found)
        above = np.where(up, found, np.where(side < 0, above / 2, above))
        near, far = np.where(up, middle, near), np.where(up, far, middle)
        side = np.where(up, 1.0, -1.0)
        if np.abs(found).max() < _EXACT:
            break
    return _tilted(at, weights, middle)[0]


def _tilted(at: Floats, weights: Floats, log_gap: Floats) -> tuple[Floats, Floats]:
    """The tilted mean, and its distance from the mean in standard errors, corrected for the shape of the law (r*)."""
    gap = np.exp(log_gap)[:, None]
    rest = 1 - at  # z - v = gap + rest
    share = weights / (gap + rest)
    below = (share * rest).sum(axis=1) / share.sum(axis=1)  # 1 - t
    distance = gap[:, 0] + below  # z - t = 1 / s
    # 1 - s (v - t) = (z - v) / (z - t)
    logs = np.log1p((rest - below[:, None]) / distance[:, None])
    root = np.sqrt(np.maximum(2 * (weights * logs).sum(axis=1), 1e-300))
    slope = (weights * ((rest - below[:, None]) / (gap + rest)) ** 2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.log(np.sqrt(slope) / root) / root
    return 1 - below, root + np.where(root > 1e-3, np.nan_to_num(shift), 0.0)


# -- fixed people: noise alone --------------------------------------------------------------------------


def held_ends(seen: ArrayLike, n: ArrayLike, p: float, q: float, level: float) -> Floats:
    """How many of n have a property, if `seen` bits are set: each with p for those who have it, else with q.

    One row of ends per count. A sum of two binomial numbers, whose tails are found by the saddle point (Daniels 1987,
    with his second correction for integers); each end is the number that has the count in its tail.

    >>> held_ends([3, 0, 9], 9, 0.9, 0.05, 0.95).round(1).tolist()
    [[0.6, 5.6], [0.0, 1.4], [8.0, 9.0]]
    """
    count, size = np.broadcast_arrays(np.asarray(seen, dtype=np.float64), np.asarray(n, dtype=np.float64))
    tail, found = (1 - level) / 2, []
    for least, wanted in ((count, tail), (count + 1, 1 - tail)):
        ends = np.zeros_like(size), size.copy()
        for _ in range(_HALVINGS):
            middle = (ends[0] + ends[1]) / 2
            below = _at_least(least, middle, size, p, q) < wanted
            ends = np.where(below, middle, ends[0]), np.where(below, ends[1], middle)
        found.append(ends)
    # The outer sides of both brackets: none and all are among them where nothing rules them out.
    return np.stack([found[0][0], found[1][1]], axis=-1)


_HALVINGS = 40


def _at_least(count: Floats, held: Floats, n: Floats, p: float, q: float) -> Floats:
    """P(X >= count), X the sum of a binomial number of `held` with p and one of n - held with q."""
    from scipy.special import ndtr

    x = np.clip(count - 0.5, 1e-9, np.maximum(n - 1e-9, 1e-9))
    # K'(t) = x is quadratic in e^t.
    a = p * q * (n - x)
    b = held * p * (1 - q) + (n - held) * q * (1 - p) - x * (p * (1 - q) + q * (1 - p))
    c = -x * (1 - p) * (1 - q)
    root = np.sqrt(b * b - 4 * a * c)
    with np.errstate(divide="ignore", invalid="ignore"):
        tilt = np.where(b > 0, -2 * c / (b + root), (root - b) / (2 * a))
        t = np.log(tilt)
        first, second = p * tilt / (1 - p + p * tilt), q * tilt / (1 - q + q * tilt)
        total = held * np.log1p(p * (tilt - 1)) + (n - held) * np.log1p(q * (tilt - 1))
        spread = held * first * (1 - first) + (n - held) * second * (1 - second)
        w = np.sign(t) * np.sqrt(np.maximum(2 * (t * x - total), 0.0))
        u = 2 * np.sinh(t / 2) * np.sqrt(spread)
        far = w + np.where(np.abs(w) > 1e-4, np.nan_to_num(np.log(u / w) / w), 0.0)
    found = ndtr(-far)
    return np.asarray(np.where(count <= 0, 1.0, np.where(count > n, 0.0, found)))


def laplace_reach(scales: ArrayLike, level: float, spread: float = 0.0) -> float:
    """Quantile of the size of a sum of Laplace noises of these scales and normal noise of variance `spread`.

    With probability `level` the sum is not farther from zero. By its characteristic function: the product of
    1 / (1 + (b t)^2) over the scales b.

    >>> round(laplace_reach([1.0], 0.95), 3), round(laplace_reach(np.ones(400), 0.95) / 800**0.5, 3)
    (2.996, 1.96)
    """
    each, times = np.unique(np.asarray(scales, dtype=np.float64), return_counts=True)
    variance = float(2 * (times * each**2).sum() + spread)
    if variance <= 0:
        return 0.0
    step = _WIDE * math.sqrt(variance) / _PLACES
    t = np.arange(_PLACES // 2 + 1) * (2 * math.pi / (_PLACES * step))
    logs = -spread * t * t / 2
    for scale, many in zip(each.tolist(), times.tolist(), strict=True):
        logs -= many * np.log1p((scale * t) ** 2)
    chances = np.fft.irfft(np.exp(logs), _PLACES)[: _PLACES // 2]
    inside = 2 * np.cumsum(chances) - chances[0] - chances  # up to the middle of each step
    place = min(int(np.searchsorted(inside, level)), inside.size - 1)
    part = (level - inside[place - 1]) / (inside[place] - inside[place - 1])
    return float((place - 1 + part) * step)


_WIDE, _PLACES = 60.0, 1 << 15
"""Range in standard errors, and number of steps."""


# -- figures shown because they are large ---------------------------------------------------------------


_FARTHEST = 40
"""Distance in standard errors beyond which an end of an interval is not searched for."""


def cut_ends(value: float, error: float, cut: float, wrong: float) -> tuple[float, float]:
    """The means of normal numbers above `cut` for which `value` is in neither tail of wrong / 2."""
    from scipy.optimize import brentq
    from scipy.special import log_ndtr

    if not error > 0:
        return value, value
    if math.isinf(cut):
        reach = NormalDist().inv_cdf(1 - wrong / 2) * error
        return value - reach, value + reach

    def excess(mean: float, tail: float) -> float:
        # log P(X >= value | X >= cut), which grows with the mean.
        above = log_ndtr((mean - value) / error) - log_ndtr((mean - cut) / error)
        return float(above) - math.log(tail)

    least, most = value - _FARTHEST * error, value + _FARTHEST * error
    ends = []
    for tail in (wrong / 2, 1 - wrong / 2):
        outside = excess(least, tail) > 0  # so near the cut that the end lies farther down than matters
        ends.append(least if outside else float(brentq(excess, least, most, args=(tail,))))
    return ends[0], ends[1]


@dataclass(frozen=True, eq=False)
class Ratios:
    """Parts of a group over its size, both estimated, and shown only if the estimated size is above `cut`.

    For each ratio r the difference part - r size has mean zero. Its component along the size is bounded by the interval
    of the size, given that it is above the cut; the rest is normal and does not depend on the selection. Far above the
    cut this is Fieller's interval.
    """

    parts: Floats
    """Estimated parts, on a scale on which a ratio is between 0 and 1."""
    size: float
    noise: tuple[Floats, Floats, float]
    """Variances of the parts due to the protocol, covariances with the size, and the variance of the size."""
    drawn: Callable[[Floats], Floats]
    """The sampling variance of part - r size, for ratios r."""
    drawn_size: float
    errors: Floats
    """Standard errors of the ratios."""
    cut: float = -math.inf
    ends: tuple[float, float] = (0.0, 1.0)
    """The values of a ratio of 0 and of 1."""

    def of(self, places: Any) -> Ratios:
        own, common, whole = self.noise
        return replace(
            self, parts=self.parts[places], noise=(own[places], common[places], whole), errors=self.errors[places]
        )

    def interval(self, level: float, errors: Any) -> Floats:
        z = NormalDist().inv_cdf((1 + level) / 2)
        worth = np.divide(errors, self.errors, out=np.ones_like(self.errors), where=self.errors > 0)
        spread = self.noise[2] + self.drawn_size
        low, high = cut_ends(self.size, math.sqrt(spread), self.cut, 1 - level)
        less, more = self.size - max(low, 0.0), max(high - self.size, 0.0)
        ratios = np.unique(np.concatenate([_RATIOS, self.parts / self.size]))
        own, common, whole = self.noise
        apart = self.parts[:, None] - ratios * self.size
        slope = (common[:, None] - ratios * whole) / spread
        variance = own[:, None] - 2 * ratios * common[:, None] + ratios**2 * whole + self.drawn(ratios)
        rest = z * z * np.maximum(variance - slope**2 * spread, 0.0)
        up = np.hypot(np.sqrt(rest), slope * np.where(slope > 0, less, more))
        down = np.hypot(np.sqrt(rest), slope * np.where(slope > 0, more, less))
        over = np.where(apart > 0, apart / up, -apart / down) / worth[:, None]
        found = np.array([crossings(ratios, row) for row in over])
        first, last = self.ends
        return first + (last - first) * found


_RATIOS = np.linspace(-1.0, 2.0, 601)


def crossings(at: Floats, over: Floats) -> tuple[float, float]:
    """The first and the last position at which a function, given at some positions, is at most one."""
    inside = np.flatnonzero(over <= 1)
    if not inside.size:
        inside = np.array([int(over.argmin())])
    found = []
    for place, beside in ((int(inside[0]), -1), (int(inside[-1]), 1)):
        other = place + beside
        if not 0 <= other < at.size or over[place] > 1:
            found.append(float(at[place]))
            continue
        part = (1 - over[place]) / (over[other] - over[place])
        found.append(float(at[place] + part * (at[other] - at[place])))
    return found[0], found[1]

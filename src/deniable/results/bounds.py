"""Confidence intervals of means of bounded numbers, from how often each number came.

Bound      the upper one is a quantile of the sum of w v over the reports' numbers v and the largest possible number,
           where the weights w are uniform on all that are not negative and add up to one; the lower one likewise, with
           the smallest possible number. It needs no estimate of a spread, and no shape of the distribution
Two        where only two numbers are possible this is the interval of Clopper and Pearson, exactly
Large n    the normal interval, wider by a part of the order of 1 / sqrt(n)
Valid      for two numbers, proven; for more, no distribution is known that is covered less often than stated
Quantile   by the saddle point of a sum of gamma variables (Barndorff-Nielsen's r*)
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
_FAR = 25.0
"""The saddle point is looked for at distances of e^-25 to e^25 times the range from its end."""


class Bounds(Protocol):
    """What gives a figure its interval."""

    def interval(self, level: float, errors: Any) -> Floats:
        """One row of ends per figure, of figures with these standard errors."""


class TableBounds(Bounds, Protocol):
    """What gives the figures of a table their intervals."""

    def of(self, places: Any) -> TableBounds:
        """Of some of the figures, or of all in another order."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """What the reports of a survey add to figures that are means over reports."""

    values: Floats
    """Every number that a report can add, for all figures or one row per figure."""
    counts: Floats
    """How many reports add each number, one row per figure."""
    errors: Floats | float
    """The standard errors of the figures, as estimated from these reports."""

    @classmethod
    def between(cls, lowest: Any, highest: Any, value: Floats, n: float) -> Numbers:
        """Of shares that are means over n reports of which each adds one of two numbers.

        Exact for supports of a pure law. Of reports that add further numbers in between, an approximation: then the
        errors of the shares say how much fewer or more reports of two numbers they are worth.
        """
        low, high, share = (np.broadcast_to(one, value.shape) for one in (lowest, highest, np.clip(value, 0.0, 1.0)))
        counts = n * np.stack([high - value, value - low], axis=1) / (high - low)[:, None]
        errors = np.sqrt(np.maximum((high - share) * (share - low), 0.0) / n)
        return cls(np.stack([low, high], axis=1), np.clip(counts, 0.0, n), errors)

    @classmethod
    def joined(cls, parts: Sequence[Numbers]) -> Numbers:
        """Of the figures of several tables, each with its own numbers, in one."""
        each = zip(*((one.values, one.counts, one.errors) for one in parts), strict=True)
        return cls(*(np.concatenate(one) for one in each))

    def of(self, places: Any) -> Numbers:
        """Of some of the figures."""
        values = self.values if self.values.ndim == 1 else self.values[places]
        return Numbers(values, self.counts[places], np.broadcast_to(self.errors, len(self.counts))[places])

    def counted(self, errors: Floats | float) -> Floats:
        """The counts; where figures have other errors than those of n independent reports, because reports repeat or
        because sampling error is left out, as many as would have those errors."""
        base, now = np.broadcast_arrays(np.asarray(self.errors, dtype=np.float64), np.asarray(errors, dtype=np.float64))
        worth = np.divide(base, now, out=np.ones_like(now), where=(now > 0) & (base > 0))
        counted: Floats = np.atleast_2d(self.counts) * np.atleast_1d(worth)[:, None] ** 2
        return counted

    def interval(self, level: float, errors: Floats | float) -> Floats:
        """One row of ends per figure, of figures with these errors."""
        return mean_ends(self.values, self.counted(errors), level)

    def above(self, cut: float, level: float, errors: Floats | float) -> Floats:
        """The same for shares that are shown because they exceed `cut`, where a report adds one of two numbers.

        Given that a count is at least that of the cut, it is a binomial number cut off there; each end is the share
        for which this law has the count in its tail. Ends are between 0 and 1.
        """
        low, high = self.values[:, 0], self.values[:, 1]
        rest, seen = self.counted(errors).T
        n = rest + seen
        least = np.clip(n * (cut - low) / (high - low), 0.0, seen)
        next_one = np.minimum(least + 1, seen)  # of two equal counts one may be left out
        tail = (1 - level) / 2
        lower = _beyond(seen, next_one, n, tail, (0 - low) / (high - low), (1 - low) / (high - low))
        upper = _beyond(np.minimum(seen + 1, n), least, n, 1 - tail, (0 - low) / (high - low), (1 - low) / (high - low))
        upper = np.where(seen + 1 > n, (1 - low) / (high - low), upper)
        return np.clip(low[:, None] + np.stack([lower, upper], axis=1) * (high - low)[:, None], 0.0, 1.0)


def _beyond(count: Floats, least: Floats, n: Floats, tail: float, low: Floats, high: Floats) -> Floats:
    """The chance s, between two ends, for which P(X >= count | X >= least) is `tail`, X binomial; it grows with s."""
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
    return (low + high) / 2


def mean_ends(values: ArrayLike, counts: ArrayLike, level: float) -> Floats:
    """One row of ends per row of counts; `counts[..., i]` reports had the number `values[..., i]`.

    All numbers that are possible are listed, also those that no report had. Counts need not be whole.

    >>> (mean_ends([0, 1], [[5, 5], [10, 0]], 0.95).round(3) + 0.0).tolist()
    [[0.187, 0.813], [0.0, 0.308]]
    """
    seen = np.atleast_2d(np.asarray(counts, dtype=np.float64))
    points = np.broadcast_to(np.asarray(values, dtype=np.float64), seen.shape)
    rows, tail = np.arange(len(seen)), (1 - level) / 2
    ends = []
    for sign in (-1.0, 1.0):
        with_end = seen.copy()
        with_end[rows, np.argmax(sign * points, axis=1)] += 1
        ends.append(sign * _upper(sign * points, with_end, tail))
    return np.asarray(np.stack(ends, axis=1) + 0.0)  # no negative zero


def _upper(values: Floats, weights: Floats, tail: float) -> Floats:
    """What a mean with Dirichlet weights exceeds with this probability, row by row."""
    from scipy.special import betaincinv

    low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
    at = (values - low) / np.where(high > low, high - low, 1.0)
    above, below = np.where(at >= 1, weights, 0.0).sum(axis=1), np.where(at <= 0, weights, 0.0).sum(axis=1)
    inner = np.where((at > 0) & (at < 1), weights, 0.0).any(axis=1)
    found = np.where(below > 0, betaincinv(above, np.where(below > 0, below, 1.0), 1 - tail), 1.0)
    if inner.any():
        found[inner] = _saddle(at[inner], weights[inner], NormalDist().inv_cdf(1 - tail))
    return np.asarray(low[:, 0] + (high - low)[:, 0] * found)


def _saddle(at: Floats, weights: Floats, reach: float) -> Floats:
    """The mean t with r*(t) = reach, where the weights of each number v, tilted towards 1, are w / (z - v), z > 1."""

    def excess(log_gap: Floats) -> Floats:
        # For far z, r is about proportional to 1 / z: in logarithms the rule of false position is quick.
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
    """The tilted mean, and how many standard errors it is from the mean, corrected for the shape of the law (r*)."""
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


# -- what is shown because it is large ------------------------------------------------------------------


_FARTHEST = 40
"""Standard errors, beyond which an end of an interval is not looked for."""


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
    """Parts of a group over its size, where both are estimated, and shown only if the size came out above `cut`.

    For each ratio r the difference part - r size has mean zero. What it has in common with the size is bounded by the
    interval of the size, given that it is above the cut; the rest is normal and does not depend on the choice. Far
    above the cut this is Fieller's interval.
    """

    parts: Floats
    """Estimated parts, on a scale on which a ratio is between 0 and 1."""
    size: float
    noise: tuple[Floats, Floats, float]
    """Variances of the parts that the protocol adds, covariances with the size, and the variance of the size."""
    drawn: Callable[[Floats], Floats]
    """The sampling variance of part - r size, for ratios r."""
    drawn_size: float
    errors: Floats
    """Standard errors of the ratios."""
    cut: float = -math.inf
    ends: tuple[float, float] = (0.0, 1.0)
    """What a ratio of 0 and of 1 stands for."""

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
        found = np.array([_crossings(ratios, row) for row in over])
        first, last = self.ends
        return first + (last - first) * found


_RATIOS = np.linspace(-1.0, 2.0, 601)


def _crossings(at: Floats, over: Floats) -> tuple[float, float]:
    """The first and the last place where a function that is given at some places is at most one."""
    inside = np.flatnonzero(over <= 1)
    found = []
    for place, beside in ((int(inside[0]), -1), (int(inside[-1]), 1)):
        other = place + beside
        if not 0 <= other < at.size:
            found.append(float(at[place]))
            continue
        part = (1 - over[place]) / (over[other] - over[place])
        found.append(float(at[place] + part * (at[other] - at[place])))
    return found[0], found[1]

"""The best unbiased read-out of a channel from positions on [-1, 1]: the output values with the least variance.

Read-out   a value v_y per output, unbiased at every position: C v = x. Numbers between positions are rounded at random,
           so that it is unbiased there, too, and f = C v^2 is linear between positions
Goal       the smallest largest variance f(x) - x^2 over all x in [-1, 1], or over a range of plausible numbers; with a
           prior over the positions, the smallest mean variance. It stays unbiased for all other numbers
Answer     for weights p of the positions, v = Q^-1 C' (C Q^-1 C')^-1 x with Q = diag(p C) varies least. The worst case
           is that of the weights for which this is largest: a concave problem in as many weights as points
Bound      for any weights, the least weighted variance is below every worst case
Exact      the floats are rounded, and their remaining error is solved for with fractions: C v = x as integers
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from deniable import exact
from deniable.channels import Channel
from deniable.channels.laws import Floats
from deniable.channels.utilities import Distribution, read_prior
from deniable.errors import ChannelError, NumberError

MOST_POSITIONS = 40
"""The fractions of an exact read-out grow with the number of positions."""

_BITS = 40
_ROUNDS = 12
_GAP = 1e-6


@dataclass(frozen=True)
class Readout:
    """Values of the outputs, on a scale from -1 to 1, and their variances.

    Args:
        values: Number that each output stands for.
        variance: The largest variance over the requested numbers; with a prior, the mean variance.
        bound: Lower bound for every unbiased read-out of this channel.
        worst: The largest variance over all of [-1, 1].
    """

    values: tuple[Fraction, ...]
    variance: float
    bound: float
    worst: float

    @property
    def relative_gap(self) -> float:
        return (self.variance - self.bound) / self.variance if self.variance else 0.0


def readout(
    channel: Channel, prior: Distribution | None = None, between: tuple[exact.Number, exact.Number] | None = None
) -> Readout:
    """The unbiased read-out of least variance, for a channel whose inputs are positions evenly spaced on [-1, 1].

    The variance is that of the worst case over all numbers, unless a prior or a range is given.

    Args:
        channel: A channel whose inputs are positions evenly spaced on [-1, 1].
        prior: Probability of each position; the average variance is minimized.
        between: The smallest and the largest plausible number; the worst case over this range is minimized.

    Returns:
        The values of the outputs and their variances.

    Raises:
        ChannelError: No read-out is unbiased.
        NumberError: There are too many positions, or both a prior and a range are given.

    >>> from deniable.protocols import Window
    >>> from deniable.domains import Interval
    >>> channel = Window(Interval(-1, 1), 5, positions=17, width=4).channel()
    >>> round(readout(channel).worst, 4)
    0.0692
    """
    rows = [[int(entry) for entry in row] for row in channel.numerators]
    size = len(rows)
    if not 2 <= size <= MOST_POSITIONS:
        raise NumberError(f"a read-out is solved exactly for 2 to {MOST_POSITIONS} positions, not {size}")
    if prior is not None and between is not None:
        raise NumberError("give a prior or a range of plausible numbers, not both")
    used = [y for y in range(len(rows[0])) if any(row[y] for row in rows)]
    law = channel.rows[:, used]
    if prior is not None:
        weights = read_prior(prior, channel.inputs)
        x = np.linspace(-1.0, 1.0, size)
        floats, least = _best(law, weights, float(weights @ x**2))
        values = _spread(_unbiased(rows, used, floats), used, len(rows[0]))
        moments = second_moments(rows, values)
        share = [Fraction(float(weight)) for weight in weights]
        total = sum(share)
        found = sum(
            (w * (f - position(k, size) ** 2) for k, (w, f) in enumerate(zip(share, moments, strict=True))), Fraction(0)
        )
        return Readout(values, float(found / total), least, float(worst_variance(moments)))
    low, high = (Fraction(-1), Fraction(1)) if between is None else tuple(exact.fraction(e, "an end") for e in between)
    if not -1 <= low < high <= 1:
        raise NumberError("plausible numbers lie between -1 and 1, the low end first")
    floats, bound = _worst_case(law, float(low), float(high))
    values = _spread(_unbiased(rows, used, floats), used, len(rows[0]))
    moments = second_moments(rows, values)
    variance, worst = worst_variance(moments, low, high), worst_variance(moments)
    return Readout(values, float(variance), bound, float(worst))


def _spread(found: Sequence[Fraction], used: Sequence[int], size: int) -> tuple[Fraction, ...]:
    """Outputs that never occur are read as 0."""
    values = [Fraction(0)] * size
    for y, value in zip(used, found, strict=True):
        values[y] = value
    return tuple(values)


def _best(law: Floats, weights: Floats, squares: float) -> tuple[Floats, float]:
    """The values with the least variance for these weights of the positions, and that variance."""
    x = np.linspace(-1.0, 1.0, len(law))
    scale = np.sqrt(weights @ law)
    whitened = law / np.where(scale > 0, scale, 1.0)
    found = np.linalg.lstsq(whitened, x, rcond=1e-13)[0]
    if np.abs(whitened @ found - x).max() > 1e-6:
        raise ChannelError("no read-out of this channel is unbiased: it tells too few of the positions apart")
    values = found / np.where(scale > 0, scale, 1.0)
    return values, float(found @ found - squares)


def _worst_case(law: Floats, low: float, high: float) -> tuple[Floats, float]:
    from scipy.optimize import minimize

    size = len(law)
    x = np.linspace(-1.0, 1.0, size)
    inside = x[(x >= low) & (x <= high)]
    points = np.unique(np.concatenate([[low, high], inside, (inside[:-1] + inside[1:]) / 2]))
    weights = np.full(points.size, 1 / points.size)
    best: tuple[float, Floats] = (math.inf, np.zeros(law.shape[1]))
    bound = -math.inf

    for _ in range(_ROUNDS):
        at = mixtures(points, size)

        def minus(w: Floats, at: Floats = at, points: Floats = points) -> tuple[float, Floats]:
            w = np.maximum(w, 0.0) + 1e-12
            values, reached = _best(law, w @ at, float(w @ points**2))
            return -reached, -(at @ (law @ values**2) - points**2)

        start = weights / weights.sum()
        ones = {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones_like(w)}
        answer = minimize(minus, start, jac=True, method="SLSQP", bounds=[(0, 1)] * points.size, constraints=[ones],
                          options={"maxiter": 200, "ftol": 1e-11})  # fmt: skip
        weights = np.maximum(answer.x, 0.0)
        weights = weights / weights.sum()
        values, reached = _best(law, weights @ at, float(weights @ points**2))
        bound = max(bound, reached)
        worst, peak = _peak(law @ values**2, x, low, high)
        if worst < best[0]:
            best = worst, values
        if best[0] - bound <= _GAP * best[0] or np.abs(points - peak).min() < 1e-10:
            break
        order = np.argsort(np.append(points, peak))
        points, weights = np.append(points, peak)[order], np.append(weights, 1e-3)[order]
    return best[1], bound


def mixtures(points: Floats, size: int) -> Floats:
    """Each point as a mixture of positions, one row per point."""
    place = (points + 1) * (size - 1) / 2
    below = np.clip(np.floor(place).astype(np.int64), 0, size - 2)
    rows = np.zeros((points.size, size))
    rows[np.arange(points.size), below] = 1 - (place - below)
    rows[np.arange(points.size), below + 1] = place - below
    return rows


def _peak(moments: Floats, x: Floats, low: float, high: float) -> tuple[float, float]:
    """The largest variance from low to high, and where it is."""
    slope = np.diff(moments) / np.diff(x)
    left, right = np.maximum(x[:-1], low), np.minimum(x[1:], high)
    inside = left <= right
    at = np.clip(slope / 2, left, np.maximum(left, right))
    found = np.where(inside, moments[:-1] + slope * (at - x[:-1]) - at**2, -np.inf)
    return float(found.max()), float(at[int(np.argmax(found))])


def _unbiased(rows: Sequence[Sequence[int]], used: Sequence[int], floats: Floats) -> list[Fraction]:
    """Fractions near the floats for which C v = x exactly."""
    size, total = len(rows), sum(rows[0])
    step = Fraction(2) ** (math.ceil(math.log2(float(np.abs(floats).max()) or 1.0)) - _BITS)
    values = [round(float(value) / float(step)) * step for value in floats]
    left = [
        total * position(k, size) - sum((row[y] * v for y, v in zip(used, values, strict=True)), Fraction(0))
        for k, row in enumerate(rows)
    ]
    # Elimination with fractions; the pivot is the largest column at each step.
    system = [[Fraction(row[y], total) for y in used] + [rest / total] for row, rest in zip(rows, left, strict=True)]
    chosen: list[int] = []
    for k, row in enumerate(system):
        pivot = max((y for y in range(len(used)) if y not in chosen), key=lambda y: abs(float(row[y])), default=None)
        if pivot is None or not row[pivot]:
            if any(row[:-1]) or row[-1]:
                raise ChannelError("no read-out of this channel is unbiased: it tells too few of the positions apart")
            chosen.append(-1)
            continue
        chosen.append(pivot)
        for other in system[k + 1 :]:
            factor = other[pivot] / row[pivot]
            if factor:
                other[:] = [a - factor * b for a, b in zip(other, row, strict=True)]
    for k in range(size - 1, -1, -1):
        if chosen[k] < 0:
            continue
        row = system[k]
        later = sum((row[chosen[i]] * system[i][-1] for i in range(k + 1, size) if chosen[i] >= 0), Fraction(0))
        row[-1] = (row[-1] - later) / row[chosen[k]]
        values[chosen[k]] += row[-1]
    return values


# -- the variance of a read-out ----------------------------------------------------------------------------


def ceiling(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def floor(value: Fraction) -> float:
    return -ceiling(-value)


def position(place: int, size: int) -> Fraction:
    """Position number `place` of `size` on [-1, 1]."""
    return Fraction(2 * place - size + 1, size - 1)


def second_moments(rows: Sequence[Sequence[int]], values: Sequence[Fraction]) -> list[Fraction]:
    """The mean of the squared read-out at every position, exactly."""
    common = math.lcm(*(value.denominator for value in values))
    squares = [(int(value * common)) ** 2 for value in values]
    bottom = sum(rows[0]) * common**2
    return [Fraction(sum(w * s for w, s in zip(row, squares, strict=True)), bottom) for row in rows]


def bias(rows: Sequence[Sequence[int]], values: Sequence[Fraction]) -> Fraction:
    """The largest bias of a read-out at a position, exactly."""
    common = math.lcm(*(value.denominator for value in values))
    whole, total = [int(value * common) for value in values], sum(rows[0])
    means = [Fraction(sum(w * v for w, v in zip(row, whole, strict=True)), total * common) for row in rows]
    return max(abs(found - position(k, len(rows))) for k, found in enumerate(means))


def worst_variance(moments: Sequence[Fraction], low: Fraction = Fraction(-1), high: Fraction = Fraction(1)) -> Fraction:
    """The largest f(x) - x^2 over x from low to high, with f linear between the positions."""
    size = len(moments)
    largest = None
    for k in range(size - 1):
        left, right = max(low, position(k, size)), min(high, position(k + 1, size))
        if left > right:
            continue
        slope = (moments[k + 1] - moments[k]) * (size - 1) / 2
        x = min(max(slope / 2, left), right)
        found = moments[k] + slope * (x - position(k, size)) - x * x
        largest = found if largest is None else max(largest, found)
    if largest is None:
        raise NumberError("a range of numbers lies within -1 and 1, the low end first")
    return largest

"""The mean of a number with the smallest worst-case variance: channel and read-out found together.

Problem    minimize, over all epsilon-LDP channels from D positions evenly spaced on [-1, 1] and all unbiased read-outs
           of their outputs, the largest variance over all numbers in [-1, 1]. A number between two positions is rounded
           to one of them at random, so that f, the mean of the squared read-out, is linear between positions, and the
           variance f(x) - x^2 may be largest inside a cell
Program    an output is a value v and a column m s with a pattern s in {1, E}^D: minimize T with, for every position k,
           sum m s_k = 1 and sum m s_k v = x_k, and f(x) - x^2 <= T for every x. Columns and points x are added where
           the last solution needs them; prices (p, l, u) of the rows show which column does:
           sum over k of s_k r_k(v), with r_k(v) = p_k v^2 - l_k v - u_k, is a piecewise quadratic in v once every s_k
           is E where r_k < 0. So v is free, and not restricted to a list
Symmetry   x -> -x and v -> -v changes nothing: columns come in pairs, and half of the rows is enough
Exact      values are rounded to short fractions and the program is solved again for them. Rows are rounded to integers;
           in each, two outputs absorb the remainder, so that every row has the same sum and the read-out is unbiased as
           an identity of integers. Ratios hold because the program used slightly less than epsilon
Bound      weights on points x and prices with r >= 0 in the sense above, up to a slack: then the sum of u_k + l_k x_k,
           less the weighted x^2 and the slack, is below the worst case of every mechanism on these positions; for
           weights on positions alone, of every unbiased mechanism for the numbers in [-1, 1], whatever it does between.
           Checked with fractions: between two breakpoints every r_k keeps its sign up to a rest that is charged
Large      at a large epsilon fine positions matter more than the law. With the default positions, the design is below
           the best window up to epsilon 8; above, a window is better
Source     Kairouz, Oh and Viswanath 2014 (patterns); Wang et al. 2019 (piecewise and hybrid mechanism, for comparison)
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels import Channel
from deniable.channels.laws import Floats
from deniable.design.base import Certificate, Check, Design, Verdict, read_number
from deniable.design.readout import bias, ceiling, floor, mixtures, position, second_moments, worst_variance
from deniable.errors import ChannelError, NumberError, SpecError
from deniable.specs import integer_text, read_integer
from deniable.trace import Progress, Watch, highs

MOST_POSITIONS = 65

# For the program: the relative gap at which it counts as solved, and the maximum number of steps.
_GAP = 1e-7
_STEPS = 400
_COLUMNS = 240

# Up to this many positions the program starts from all ranges of positions, with these values.
_FEW = 9
_START = (0.0, 0.15, 0.35, 0.55, 0.75, 0.9, 1.05, 1.2, 1.35)

# The part of e^epsilon that the program leaves for the rounding to integers, tried in this order.
_ROOM = (1e-11, 1e-9, 1e-7)

# Values are multiples of 2^-17 times the largest power of two up to the one-bit mean's value.
_VALUE_BITS = 17
_ROW_BITS = 62

_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}

Patterns = NDArray[np.bool_]


@dataclass(frozen=True, repr=False)
class MeanDesign(Design):
    """A channel from positions on [-1, 1] to outputs, and the unbiased read-out of each output.

    `value` is the largest variance of one report. On an interval of width w it is w^2 / 4 times as large.

    Args:
        values: Number that each output stands for.
    """

    table_kind: ClassVar[str] = "MeanTable"

    values: tuple[Fraction, ...] = ()

    @property
    def positions(self) -> int:
        return len(self.channel.inputs)


def mean(
    epsilon: Any, positions: int | None = None, outputs: int | None = None, progress: Progress | None = None
) -> MeanDesign:
    """The mechanism with the smallest worst-case variance of a mean, on this many positions.

    Args:
        epsilon: The guarantee.
        positions: Number of positions; the number that is worth its cost if None.
        outputs: Maximum number of different reports.
        progress: Called with a description of the current work.

    Returns:
        The mechanism and its read-out.

    Raises:
        NumberError: A size is impossible.

    >>> design = mean(3, positions=9)
    >>> round(design.value, 3), design.positions, design.relative_gap < 1e-5
    (0.316, 9, True)
    """
    level = exact.as_epsilon(epsilon)
    size = default_positions(level) if positions is None else positions
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 2 <= size <= MOST_POSITIONS:
        raise NumberError(f"the positions of a designed mean are a whole number from 2 to {MOST_POSITIONS}")
    if outputs is not None and (isinstance(outputs, bool) or not isinstance(outputs, int) or outputs < 2):
        raise NumberError(f"the number of outputs is a whole number from 2 on, not {outputs!r}")
    if progress is None:
        return _mean(level, int(size), outputs)
    return _designed(level, int(size), outputs, Watch(progress))


def default_positions(epsilon: Fraction) -> int:
    """The number of positions that is worth its time: twice as many lower the worst case by a few percent at most."""
    for most, size in _SIZES:
        if epsilon <= most:
            return size
    raise NumberError(
        f"above epsilon {_SIZES[-1][0]} fine positions matter more than the law: use dn.Window, or give positions"
    )


_SIZES = ((Fraction(1, 10), 3), (Fraction(1, 2), 5), (Fraction(7, 2), 9), (Fraction(6), 17), (Fraction(8), 33))


@lru_cache(maxsize=1024)
def _mean(epsilon: Fraction, positions: int, outputs: int | None) -> MeanDesign:
    return _designed(epsilon, positions, outputs, Watch())


def _designed(epsilon: Fraction, positions: int, outputs: int | None, watch: Watch) -> MeanDesign:
    began = time.perf_counter()
    for room in _ROOM:
        odds = math.exp(float(epsilon)) * (1 - room)
        found = _solved(odds, positions, watch)
        rows, values = _settled(_short(found, watch))
        if outputs is not None and len(values) > outputs:
            rows, values = _few(found, outputs, watch)
        channel = Channel.from_integers(rows, sum(rows[0]), range(positions), range(len(values)))
        if exact.exp_at_least(epsilon, Fraction(channel.ratio)):
            break
    else:
        raise ChannelError("rounding leaves nothing of so small an epsilon: raise it, or use a one-bit mean")
    value = ceiling(worst_variance(second_moments(rows, values)))
    watch.worth(value)
    certify = partial(_certify, epsilon, channel, values, value, found)
    spent = time.perf_counter() - began
    name, inputs = "mean of least worst-case variance", tuple(range(positions))
    return MeanDesign(name, epsilon, value, channel, certify, inputs, tuple(watch.steps), spent, "min", values=values)


# -- the program -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    """The solution of the program, in floats; half of it follows from the other half by symmetry.

    Values and squares are in units of the one-bit mean's value, `unit`.
    """

    odds: float
    size: int
    values: Floats
    high: Patterns
    """[column, position]: whether the pattern is E there."""
    masses: Floats
    points: Floats
    """The points in [0, 1] at which the variance was bounded."""
    weights: Floats
    linear: Floats
    constant: Floats
    """Prices of the unbiasedness and of the sum at each position."""
    worst: float
    bound: float

    @property
    def unit(self) -> float:
        return (self.odds + 1) / (self.odds - 1)


def _solved(odds: float, size: int, watch: Watch) -> _Found:
    """The optimum on `size` positions, started from the optimum on half as many cells, or from ranges of positions."""
    # The columns of the one-bit mean make the program feasible.
    steps = np.arange(size) >= np.arange(1, size)[:, None]
    if size <= _FEW or size % 2 == 0:
        ends = [(a, b) for a in range(size) for b in range(a, size) if a + b >= size - 1] if size <= _FEW else []
        ranges = np.array([(np.arange(size) >= a) & (np.arange(size) <= b) for a, b in ends]).reshape(-1, size)
        values = np.repeat(_START, len(ranges))
        patterns = np.concatenate([steps, *[ranges] * len(_START)])
    else:
        coarse = _solved(odds, (size + 1) // 2, watch)
        used = coarse.masses > 0
        old, values = coarse.high[used], np.tile(coarse.values[used], 2)
        fine = np.repeat(np.repeat(old, 2, axis=1)[None, :, :-1], 2, axis=0)
        fine[0, :, 1::2], fine[1, :, 1::2] = old[:, :-1] & old[:, 1:], old[:, :-1] | old[:, 1:]
        patterns = np.concatenate([steps, *fine])
    return _optimum(odds, size, np.concatenate([np.ones(size - 1), values]), patterns, watch)


def _optimum(
    odds: float,
    size: int,
    values: Floats,
    high: Patterns,
    watch: Watch,
    free: bool = True,
    listed: Floats | None = None,
) -> _Found:
    """Add columns and points until value and bound meet.

    The values of new columns are free, or taken from `listed`; without `free` there are no new columns.
    """
    unit = (odds + 1) / (odds - 1)
    half = np.arange(size // 2, size)  # the non-negative positions
    positive = half if size % 2 == 0 else half[1:]
    x = (2 * np.arange(size) - size + 1) / (size - 1)
    cells = np.arange((size - 1) // 2, size - 1)
    points = np.unique(np.concatenate([x[half], np.maximum((x[cells] + x[cells + 1]) / 2, 0.0)]))
    best, bound = None, -math.inf
    for _ in range(_STEPS):
        both = (high + high[:, ::-1].astype(np.float64)) / 2
        sums = (1 + (odds - 1) * both) * (2 / (1 + odds))
        differ = high.astype(np.float64) - high[:, ::-1]
        squares = values[:, None] ** 2 * sums
        masses_of = np.column_stack([sums[:, -1], both[:, half[:-1]] - both[:, -1:]])
        equal = np.vstack([masses_of.T, (values[:, None] * differ[:, positive]).T])
        target = np.concatenate([[1.0], np.zeros(half.size - 1), x[positive]])
        at = mixtures(points, size)
        limits = np.hstack([(squares @ at.T).T, -np.ones((points.size, 1))])
        cost = np.zeros(values.size + 1)
        cost[-1] = 1.0
        sides = (limits, (points / unit) ** 2), (np.hstack([equal, np.zeros((target.size, 1))]), target)
        for options in (_OPTIONS, {}):  # looser if the solver calls the program infeasible, which it never is
            answer = highs(cost, *sides, (0, None), "highs-ds", options, watch, "solving for the mean")
            if answer.status == 0:
                break
        else:
            raise ChannelError("the solver gave up on this mean: try another epsilon or another number of positions")
        masses, reached = answer.x[:-1], float(answer.x[-1])
        prices, weights = answer.eqlin.marginals, np.maximum(-answer.ineqlin.marginals, 0.0)
        weights = weights / weights.sum()
        square = weights @ at
        square = (square + square[::-1]) / 2
        constant = np.zeros(size)
        constant[-1] += prices[0]
        constant[half[:-1]] += prices[1 : half.size] * (unit / 2)
        constant[-1] -= prices[1 : half.size].sum() * (unit / 2)
        constant = (constant + constant[::-1]) / 2
        linear = np.zeros(size)
        linear[positive] = prices[half.size :] * (unit / 2)
        linear = linear - linear[::-1]
        least, at_values, patterns = _cheapest(square, linear, constant, odds)
        if listed is not None:
            patterns = square * listed[:, None] ** 2 - linear * listed[:, None] - constant < 0
            costs = np.where(patterns, odds, 1.0) * (
                square * listed[:, None] ** 2 - linear * listed[:, None] - constant
            )
            least, at_values = costs.sum(axis=1), listed
        proven = constant.sum() + linear @ x / unit - weights @ (points / unit) ** 2
        proven += min(0.0, least.min()) * size / (size - 1 + odds)
        moments = masses @ squares
        moments = (moments + moments[::-1]) / 2
        worst, places = _peaks(moments, x, cells, unit)
        found = _Found(
            odds, size, values, high, np.where(masses > 1e-13, masses, 0.0), points, weights, linear * unit,
            constant * unit**2, float(worst.max()) * unit**2, float(proven) * unit**2,
        )  # fmt: skip
        if best is None or proven > bound or not free:
            best, bound = found, float(proven)
        if worst.max() - bound <= _GAP * worst.max():
            break
        fresh = places[(worst > reached * (1 + _GAP / 8)) & (np.abs(places[:, None] - points).min(axis=1) > 1e-12)]
        points = np.union1d(points, fresh)
        wanted = least < -1e-14 if free else np.zeros(least.size, dtype=np.bool_)
        if not wanted.any() and not fresh.size:
            break
        if values.size > _COLUMNS:
            spare = (square * values[:, None] ** 2 - linear * values[:, None] - constant) * (1 + (odds - 1) * high)
            kept = (masses > 0) | (np.argsort(np.argsort(spare.sum(axis=1))) < _COLUMNS // 2)
            kept[: size - 1] = True
            values, high = values[kept], high[kept]
        values = np.concatenate([values, at_values[wanted]])
        high = np.concatenate([high, patterns[wanted]])
    assert best is not None
    return _Found(**{**found.__dict__, "bound": bound * unit**2, **_prices(best)})


def _prices(found: _Found) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("points", "weights", "linear", "constant")}


def _peaks(moments: Floats, x: Floats, cells: NDArray[np.int64], unit: float) -> tuple[Floats, Floats]:
    """The largest variance in each cell, and where it is."""
    slope = (moments[cells + 1] - moments[cells]) / (x[cells + 1] - x[cells])
    places = np.clip(slope * unit**2 / 2, np.maximum(x[cells], 0.0), x[cells + 1])
    return moments[cells] + slope * (places - x[cells]) - (places / unit) ** 2, places


def _cheapest(square: Floats, linear: Floats, constant: Floats, odds: float) -> tuple[Floats, Floats, Patterns]:
    """On every piece of v >= 0 the least reduced cost, with its value and its pattern."""
    with np.errstate(all="ignore"):
        root = np.sqrt(linear**2 + 4 * square * constant)
        large = (linear + np.where(linear < 0, -root, root)) / 2
        ends = np.concatenate([large / square, -constant / large, -constant / linear])
    ends = np.unique(np.concatenate([[0.0], ends[np.isfinite(ends) & (ends > 0)]]))
    upper = np.append(ends[1:], np.inf)
    middle = np.where(np.isfinite(upper), (ends + np.where(np.isfinite(upper), upper, 0)) / 2, 2 * ends + 1)
    high = square * middle[:, None] ** 2 - linear * middle[:, None] - constant < 0
    pattern = np.where(high, odds, 1.0)
    a, b, c = pattern @ square, pattern @ linear, pattern @ constant
    values = np.clip(b / np.maximum(2 * a, 1e-300), ends, upper)
    return a * values**2 - b * values - c, values, high


# -- from floats to integers -------------------------------------------------------------------------------


def _step(unit: float) -> Fraction:
    """Values are multiples of this."""
    return Fraction(2) ** (math.floor(math.log2(unit)) - _VALUE_BITS)


def _short(found: _Found, watch: Watch) -> _Found:
    """The same patterns with short fractions as values, solved again.

    Columns with the same pattern are merged at their mean. Each value is rounded to the nearest fraction; if that
    leaves no unbiased mechanism of about the same variance, to the two around it.
    """
    step = float(_step(found.unit)) / found.unit
    sums: dict[bytes, list[float]] = {}
    for value, mass, high in zip(found.values, found.masses, found.high, strict=True):
        if mass > 0:
            whole = sums.setdefault(high.tobytes(), [0.0, 0.0])
            whole[0], whole[1] = whole[0] + mass * value, whole[1] + mass
    patterns = np.array([np.frombuffer(key, dtype=np.bool_) for key in sums])
    places = np.array([total / mass for total, mass in sums.values()]) / step
    with suppress(ChannelError):
        near = _optimum(found.odds, found.size, np.rint(places) * step, patterns, watch, free=False)
        if near.worst <= found.worst * (1 + 1e-6):
            return near
    values = np.concatenate([np.floor(places), np.floor(places) + 1]) * step
    return _optimum(found.odds, found.size, values, np.concatenate([patterns] * 2), watch, free=False)


def _settled(found: _Found) -> tuple[list[list[int]], tuple[Fraction, ...]]:
    """Integer rows with one sum, and values that make the read-out exactly unbiased."""
    step, size = _step(found.unit), found.size
    share = found.masses * 2 / (1 + found.odds)
    columns: dict[int, list[Fraction]] = {}
    for value, mass, high in zip(found.values, share, found.high, strict=True):
        whole, low = round(value * found.unit / float(step)), round(float(mass) * 2 ** (_ROW_BITS - 1))
        if low <= 0:
            continue
        column = [Fraction(math.floor(low * found.odds) if up else low, 1 << _ROW_BITS) for up in high]
        for key, part in ((whole, column), (-whole, column[::-1])):
            columns[key] = [a + b for a, b in zip(columns.get(key, [Fraction(0)] * size), part, strict=True)]
    order = sorted(columns)
    values = tuple(step * key for key in order)
    # The two outputs that absorb the remainder: opposite values with enough mass left.
    top = max((key for key in order if key > 0), key=lambda key: float(min(columns[key])) * key)
    for k in range(size):
        rest = [(step * key, columns[key][k]) for key in order if abs(key) != top]
        left = 1 - sum((weight for _, weight in rest), Fraction(0))
        moment = (position(k, size) - sum((v * weight for v, weight in rest), Fraction(0))) / (step * top)
        columns[top][k], columns[-top][k] = (left + moment) / 2, (left - moment) / 2
    bottom = math.lcm(*(entry.denominator for column in columns.values() for entry in column))
    rows = [[int(columns[key][k] * bottom) for key in order] for k in range(size)]
    if any(entry < 0 for row in rows for entry in row):
        raise ChannelError("rounding leaves nothing of so small an epsilon: raise it, or use a one-bit mean")
    return rows, values


def _few(found: _Found, outputs: int, watch: Watch) -> tuple[list[list[int]], tuple[Fraction, ...]]:
    """The best mechanism with `outputs` outputs whose values are evenly spaced, over a few sizes of the largest one."""
    step, size = float(_step(found.unit)) / found.unit, found.size
    largest = float(found.values[found.masses > 0].max())
    best: tuple[float, _Found] | None = None
    for top in np.unique(np.append(np.linspace(1.0, max(1.0, largest), 6), 1.0)):
        # At least the one-bit mean's value, which an unbiased read-out needs.
        values = np.unique(np.ceil(np.linspace(-top, top, outputs)[(outputs + 1) // 2 - outputs % 2 :] / step) * step)
        values = values[values >= 0] if outputs % 2 else values[values > 0]
        steps = np.arange(size) >= np.arange(1, size)[:, None]
        flat = np.zeros((1, size), dtype=np.bool_)
        start = np.concatenate([np.full(size - 1, values[-1]), values])
        patterns = np.concatenate([steps, *[flat] * len(values)])
        with suppress(ChannelError):
            one = _optimum(found.odds, size, start, patterns, watch, listed=values)
            if best is None or one.worst < best[0]:
                best = one.worst, one
    if best is None:
        raise ChannelError(f"the solver found no mean with {outputs} outputs: allow more")
    return _settled(best[1])


# -- the proof ---------------------------------------------------------------------------------------------


def _certify(
    epsilon: Fraction, channel: Channel, values: tuple[Fraction, ...], value: float, found: _Found
) -> MeanCertificate:
    points, weights = _symmetric_points(found.points, found.weights)
    prices = tuple(found.linear.tolist()), tuple(found.constant.tolist())
    bound = floor(proven_bound(epsilon, found.size, points, weights, *prices))
    return MeanCertificate(epsilon, channel, values, points, weights, *prices, value, bound)


_WEIGHT = 1 << 48


def _symmetric_points(points: Floats, weights: Floats) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Points of [-1, 1] with integer weights that sum to 2^48."""
    half = {float(x): round(float(w) * (_WEIGHT >> 1)) for x, w in zip(points, weights, strict=True) if w > 0}
    heaviest = max(half, key=lambda x: half[x])
    half[heaviest] += (_WEIGHT >> 1) - sum(half.values())
    whole: dict[float, int] = {}
    for x, weight in half.items():
        for point in (x, -x):
            whole[point + 0.0] = whole.get(point + 0.0, 0) + weight
    kept = {x: weight for x, weight in sorted(whole.items()) if weight}
    return tuple(kept), tuple(kept.values())


def proven_bound(
    epsilon: Fraction,
    size: int,
    points: Sequence[float],
    weights: Sequence[int],
    linear: Sequence[float],
    constant: Sequence[float],
) -> Fraction:
    """Lower bound for every unbiased read-out of an epsilon-LDP channel on these positions, for any weights and prices.

    With C the channel, v the read-out and p the weights brought to the positions, the worst case is at least
    sum p_k f_k - sum w x^2 = sum (u_k + l_k x_k) - sum w x^2 + sum over outputs y of sum_k C_ky r_k(v_y). A column is a
    sum of patterns m s, for which sum_k s_k r_k(v) is at least -d, if -d is the least value of
    sum_k min(r_k(v), E r_k(v)) over all v and negative. All columns together sum to D; a pattern that is E somewhere
    sums to D - 1 + E or more; that of the others, all ones, is at least -d / E. So the last sum is at least
    -d D / (D - 1 + E).
    """
    odds = exact.exp_ceil(epsilon)
    total = sum(weights)
    square = [Fraction(0)] * size
    squares = Fraction(0)
    for point, weight in zip(points, weights, strict=True):
        x, share = Fraction(point), Fraction(weight, total)
        place = (x + 1) * (size - 1) / 2
        below = min(math.floor(place), size - 2)
        square[below] += share * (below + 1 - place)
        square[below + 1] += share * (place - below)
        squares += share * x * x
    prices = [(p, Fraction(b), Fraction(c)) for p, b, c in zip(square, linear, constant, strict=True)]
    reached = sum((c + b * position(k, size) for k, (_, b, c) in enumerate(prices)), Fraction(0)) - squares
    return reached + min(Fraction(0), _least(prices, odds)) * size / (size - 1 + odds)


Price = tuple[Fraction, Fraction, Fraction]


def _least(prices: Sequence[Price], odds: Fraction) -> Fraction:
    """A lower bound on sum_k min(r_k(v), E r_k(v)) over all v, with r(v) = p v^2 - l v - u."""
    ends = sorted({Fraction(end) for price in prices for end in _roots(*map(float, price))})
    least = None
    for left, right in pairwise([None, *ends, None]):
        inside = _inside(left, right)
        signs = [p * inside * inside - b * inside - c < 0 for p, b, c in prices]
        factors = [odds if s else Fraction(1) for s in signs]
        sums = [sum((f * r[i] for f, r in zip(factors, prices, strict=True)), Fraction(0)) for i in range(3)]
        # If a rounded root lets a sign change before either end, the error is charged in full.
        charge = (odds - 1) * sum((_wrong(price, s, left, right) for price, s in zip(prices, signs, strict=True)))
        found = _lowest(sums[0], sums[1], sums[2], left, right) - charge
        least = found if least is None else min(least, found)
    assert least is not None
    return Fraction(least)


def _roots(p: float, b: float, c: float) -> list[float]:
    if p <= 0:
        return [-c / b] if b else []
    inside = b * b + 4 * p * c
    if inside <= 0:
        return []
    large = (b + math.copysign(math.sqrt(inside), b)) / 2
    return [large / p] + ([-c / large] if large else [])


def _inside(left: Fraction | None, right: Fraction | None) -> Fraction:
    if left is None:
        return Fraction(0) if right is None else right - 1 - abs(right)
    return left + 1 + abs(left) if right is None else (left + right) / 2


def _lowest(p: Fraction, b: Fraction, c: Fraction, left: Fraction | None, right: Fraction | None) -> Fraction:
    """The minimum of a quadratic with p >= 0 on an interval that may be open to one side."""
    ends = [end for end in (left, right) if end is not None]
    vertex = b / (2 * p) if p else None
    if vertex is not None and (left is None or vertex >= left) and (right is None or vertex <= right):
        ends.append(vertex)
    if p == 0 and ((left is None and b < 0) or (right is None and b > 0)):
        raise SpecError("these prices have no bound: the weights leave positions out")
    return min((p * v * v - b * v - c for v in ends), default=-c)


def _wrong(price: Price, negative: bool, left: Fraction | None, right: Fraction | None) -> Fraction:
    """Upper bound on how far r is on the wrong side of zero, on the interval."""
    p, b, c = price
    if not negative:
        return max(Fraction(0), -_lowest(p, b, c, left, right))
    # r is convex: largest at an end. If it decreases without limit on an open side, it is largest at the other end.
    if p > 0 and (left is None or right is None):
        raise SpecError("the prices of a mean grow without end")
    return max(Fraction(0), *(p * v * v - b * v - c for v in (left, right) if v is not None))


@dataclass(frozen=True)
class MeanCertificate(Certificate):
    """Channel, read-out, and weights and prices that bound every other mechanism: bound <= optimum <= value.

    Args:
        epsilon: The guarantee.
        channel: The mechanism.
        values: Number that each output stands for.
        points: Positions on [-1, 1] at which the bound is computed.
        weights: Integer weights of the points.
        linear: Dual price of unbiasedness at each position.
        constant: Dual price of the row sum at each position.
        value: Largest variance of one report.
        bound: Lower bound for every mechanism.
    """

    kind = "mean"
    table_kind: ClassVar[str] = "MeanTable"

    epsilon: Fraction
    channel: Channel
    values: tuple[Fraction, ...]
    points: tuple[float, ...]
    weights: tuple[int, ...]
    linear: tuple[float, ...]
    constant: tuple[float, ...]
    value: float
    bound: float

    @property
    def rigor(self) -> str:
        return "proved"

    @property
    def mechanism(self) -> Channel:
        return self.channel

    @cached_property
    def rows(self) -> list[list[int]]:
        return [[int(entry) for entry in row] for row in self.channel.numerators]

    def verify(self) -> Verdict:
        size, ratio = len(self.rows), Fraction(self.channel.ratio)
        holds = exact.exp_at_least(self.epsilon, ratio)
        shown = f"largest ratio {float(ratio):.9g}, e^epsilon {math.exp(self.epsilon):.9g}"
        checks = [Check("ratios", holds, f"{shown}, over {size} positions and {len(self.values)} outputs")]
        missed = bias(self.rows, self.values)
        checks.append(Check("unbiased", missed == 0, f"largest bias {float(missed):.3g} at a position"))
        worst = worst_variance(second_moments(self.rows, self.values))
        checks.append(Check("value", worst <= Fraction(self.value), f"largest variance {float(worst):.12g}"))
        inside = all(-1 <= x <= 1 for x in self.points) and all(weight > 0 for weight in self.weights)
        proved = inside and bool(self.points)
        found = proven_bound(self.epsilon, size, *self._dual) if proved else None
        detail = "weights and prices are not usable" if found is None else f"no mechanism is below {float(found):.12g}"
        checks.append(Check("bound", found is not None and Fraction(self.bound) <= found, detail))
        return Verdict(tuple(checks), self.rigor)

    @property
    def _dual(self) -> tuple[tuple[float, ...], tuple[int, ...], tuple[float, ...], tuple[float, ...]]:
        return self.points, self.weights, self.linear, self.constant

    def content(self) -> dict[str, Any]:
        return {
            "epsilon": exact.canonical(self.epsilon),
            "rows": [[integer_text(entry) for entry in row] for row in self.rows],
            "values": [str(value) for value in self.values],
            "points": [repr(x) for x in self.points],
            "weights": [integer_text(weight) for weight in self.weights],
            "linear": [repr(price) for price in self.linear],
            "constant": [repr(price) for price in self.constant],
            "value": repr(self.value),
            "bound": repr(self.bound),
        }

    @classmethod
    def read(cls, content: dict[str, Any]) -> MeanCertificate:
        rows = [[read_integer(entry) for entry in row] for row in content["rows"]]
        values = tuple(exact.fraction(value, "a value of the read-out") for value in content["values"])
        sizes = {len(row) for row in rows}
        if len(rows) < 2 or sizes != {len(values)} or len({sum(row) for row in rows}) != 1:
            raise SpecError("the rows of a mean have one weight per value, and one sum")
        points, linear, constant = (tuple(map(read_number, content[key])) for key in ("points", "linear", "constant"))
        weights = tuple(read_integer(weight) for weight in content["weights"])
        if len(points) != len(weights) or not len(linear) == len(constant) == len(rows):
            raise SpecError("a mean has one weight per point, and two prices per position")
        return cls(
            exact.as_epsilon(content["epsilon"]),
            Channel.from_integers(rows, sum(rows[0]), range(len(rows)), range(len(values))),
            values,
            points,
            weights,
            linear,
            constant,
            read_number(content["value"]),
            read_number(content["bound"]),
        )

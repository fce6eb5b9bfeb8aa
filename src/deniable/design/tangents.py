"""A convex generator f as the family of its tangents, and the worst column for given multipliers.

Tangents   for a column with masses a = <P0, c> and b = <P1, c> the utility is b f(a/b) = sup over z of t(z) a + h(z) b:
           t is a slope of f, h = -f*(t), and z a parameter that resolves both well, ln of the tangent point where f is
           smooth

               kl           t = z                            h = 1 - e^z
               reverse-kl   t = 1 - e^-z                     h = -z
               chi2         t = 2 (e^z - 1)                  h = 1 - e^2z
               hellinger2   t = (1 - e^(-z/2)) / 2           h = (1 - e^(z/2)) / 2
               js           t = -ln((1 + e^-z) / 2) / 2      h = -ln((1 + e^z) / 2) / 2
               tv, yours    t = z                            h = -f*(z)

           f(1) = f'(1) = 0 everywhere, so `sag` = t + h <= 0 is of second order and is computed without cancellation
Sweep      for a tangent z the best of the 2^k patterns switches on the symbols with
           w_x(z) = t P0(x) + h P1(x) - lambda_x > 0. Each w_x is concave in t with its peak at z = ln(P0/P1), so each
           symbol is on for one interval of z: its two ends are bracketed by the peak and the ends of the span, and
           bisected; sorting the 2k ends lists all patterns that can be the worst

Two hypotheses: symbols with the same evidence, and their order by likelihood ratio.

Merging    symbols of equal P0/P1 become one group and symbols with P0 = P1 = 0 join any: both are lossless,
           because a column's utility is convex in the weights and depends on the group's total only
Order      groups ascend by P0/P1; prefix sums are exact before they become floats
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.channels.divergences import DIVERGENCES, FDivergence, exp_gap, find_divergence, log_gap
from deniable.channels.laws import Floats, integer_weights, probability_vector
from deniable.errors import ProbabilityError, ShapeError

# -- two hypotheses -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """P0 and P1 as integers over their sums, symbol by symbol.

    >>> pair = Pair.read([0.5, 0.3, 0.2, 0], [0.25, 0.15, 0.6, 0])
    >>> pair.groups, pair.group.tolist()
    (2, [1, 1, 0, 0])
    """

    weights0: tuple[int, ...]
    weights1: tuple[int, ...]

    @classmethod
    def read(cls, p0: ArrayLike | Sequence[Any], p1: ArrayLike | Sequence[Any]) -> Pair:
        first = probability_vector(p0, what="first hypothesis")
        probability_vector(p1, first.size, what="second hypothesis")
        return cls(integer_weights(p0), integer_weights(p1))

    def __post_init__(self) -> None:
        if len(self.weights0) != len(self.weights1) or not self.weights0:
            raise ShapeError("the two hypotheses need the same number of symbols, at least one")
        for weights in (self.weights0, self.weights1):
            if min(weights) < 0 or sum(weights) == 0:
                raise ProbabilityError("the weights of a hypothesis are not negative and not all zero")

    @property
    def size(self) -> int:
        return len(self.weights0)

    @cached_property
    def totals(self) -> tuple[int, int]:
        return sum(self.weights0), sum(self.weights1)

    @cached_property
    def _grouping(self) -> tuple[NDArray[np.int64], list[int], list[int]]:
        sums: dict[tuple[int, int], list[int]] = {}
        keys: list[tuple[int, int] | None] = []
        for a, b in zip(self.weights0, self.weights1, strict=True):
            common = math.gcd(a, b)
            if common == 0:
                keys.append(None)
                continue
            key = (a // common, b // common)
            keys.append(key)
            entry = sums.setdefault(key, [0, 0])
            entry[0] += a
            entry[1] += b
        n0, n1 = self.totals
        ordered = sorted(sums, key=lambda key: (key[0] * n1) / (key[0] * n1 + key[1] * n0))
        place = {key: i for i, key in enumerate(ordered)}
        group = np.array([0 if key is None else place[key] for key in keys], dtype=np.int64)
        return group, [sums[key][0] for key in ordered], [sums[key][1] for key in ordered]

    @property
    def group(self) -> NDArray[np.int64]:
        """The group of each symbol; a symbol of probability zero is put into the first."""
        return self._grouping[0]

    @property
    def groups(self) -> int:
        return len(self._grouping[1])

    @cached_property
    def merged(self) -> tuple[Floats, Floats, Floats]:
        """P0, P1 and P0 - P1 of the groups, each rounded once."""
        n0, n1 = self.totals
        _, tops, bottoms = self._grouping
        return (
            np.array([a / n0 for a in tops]),
            np.array([b / n1 for b in bottoms]),
            np.array([(a * n1 - b * n0) / (n0 * n1) for a, b in zip(tops, bottoms, strict=True)]),
        )

    @cached_property
    def prefixes(self) -> tuple[Floats, Floats]:
        """P1 and P0 - P1 of the first i groups, for i = 0 .. groups."""
        n0, n1 = self.totals
        _, tops, bottoms = self._grouping
        upper = list(accumulate(tops, initial=0))
        lower = list(accumulate(bottoms, initial=0))
        return (
            np.array([b / n1 for b in lower]),
            np.array([(a * n1 - b * n0) / (n0 * n1) for a, b in zip(upper, lower, strict=True)]),
        )

    def shares(self) -> Floats:
        """Each symbol's fraction of the mass of its group."""
        group, tops, bottoms = self._grouping
        return np.array(
            [
                (a + b) / (tops[g] + bottoms[g])
                for a, b, g in zip(self.weights0, self.weights1, group.tolist(), strict=True)
            ]
        )


_HALVINGS = 64

Function = Callable[[Floats], Floats]

# a/b - 1 is above -1, but beyond epsilon = 36 a float no longer shows it.
LEAST = 2.0**-53 - 1


@dataclass(frozen=True, slots=True)
class Curve:
    """`slope` is t(z), `sag` is t(z) + h(z), `lift` is d -> f(1 + d), `place` is d -> the z of the tangent there."""

    divergence: FDivergence
    slope: Function
    sag: Function
    lift: Function
    place: Function
    built_in: bool

    def column(self, b: Floats, gap: Floats) -> Floats:
        """b f(a/b) for gap = a - b."""
        return np.asarray(b * self.lift(np.maximum(gap / b, LEAST)))

    def tangent_to(self, b: Floats, gap: Floats) -> Floats:
        """The z of the tangent that a column touches."""
        return self.place(np.maximum(gap / b, LEAST))

    def span(self, odds: float) -> tuple[float, float]:
        """The range of z that columns with ratios up to `odds` can touch, a little wider."""
        if self.built_in:
            end = 0.5 if self.divergence.name == "tv" else np.log(odds) * (1 + 1e-9)
            return -end, end
        low, high = self.place(np.array([1 / odds - 1, odds - 1])).tolist()
        return low, high


def _entropy(d: Floats) -> Floats:
    """(1 + d) ln(1 + d) - d."""
    return np.asarray(d * np.log1p(d) - log_gap(d))


def _half_gap(d: Floats) -> Floats:
    return np.asarray((d / (np.sqrt(1 + d) + 1)) ** 2 / 2)


def _js(d: Floats) -> Floats:
    return np.maximum(_entropy(d) / 2 - _entropy(d / 2), 0.0)


def _log_slope(z: Floats) -> Floats:
    return np.asarray(-np.log1p(np.expm1(-z) / 2) / 2)


_PARTS: dict[str, tuple[Function, Function, Function, Function]] = {
    "kl": (lambda z: z, lambda z: -exp_gap(z), _entropy, np.log1p),
    "reverse-kl": (lambda z: -np.expm1(-z), lambda z: -exp_gap(-z), log_gap, np.log1p),
    "chi2": (lambda z: 2 * np.expm1(z), lambda z: -(np.expm1(z) ** 2), lambda d: d**2, np.log1p),
    "hellinger2": (lambda z: -np.expm1(-z / 2) / 2, lambda z: -2 * np.sinh(z / 4) ** 2, _half_gap, np.log1p),
    "js": (_log_slope, lambda z: -np.log1p(np.sinh(z / 2) ** 2) / 2, _js, np.log1p),
    "tv": (lambda z: z, np.zeros_like, lambda d: np.abs(d) / 2, lambda d: np.sign(d) / 2),
}


def curve_of(kind: str | FDivergence) -> Curve:
    """The tangents of a divergence, built in or given."""
    f = find_divergence(kind)
    if DIVERGENCES.get(f.name) is f:
        return Curve(f, *_PARTS[f.name], built_in=True)
    tilt = float(np.asarray(f.derivative(np.array([1.0])), np.float64)[0])
    one = np.ones(1)

    def sag(z: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.asarray(z + tilt - np.asarray(f.conjugate(z + tilt), np.float64))

    def place(d: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.asarray(f.derivative(1 + d), np.float64) - tilt

    return Curve(f, lambda z: z, sag, lambda d: f.terms(1 + d, np.broadcast_to(one, d.shape)), place, built_in=False)


def quick_columns(name: str) -> Callable[[Floats, Floats], Floats] | None:
    """b f(a/b) from (b, a - b) with the fewest operations; loses digits when a is close to b."""
    return _QUICK.get(name)


def _quick_kl(b: Floats, gap: Floats) -> Floats:
    return np.asarray((b + gap) * np.log1p(gap / b) - gap)


def _quick_reverse(b: Floats, gap: Floats) -> Floats:
    return np.asarray(gap - b * np.log1p(gap / b))


def _quick_js(b: Floats, gap: Floats) -> Floats:
    a, total = b + gap, 2 * b + gap
    return np.asarray((a * np.log(2 * a / total) + b * np.log(2 * b / total)) / 2)


_QUICK: dict[str, Callable[[Floats, Floats], Floats]] = {
    "kl": _quick_kl,
    "reverse-kl": _quick_reverse,
    "js": _quick_js,
}


# -- the worst column ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Switches:
    """When each symbol is on: for z in [low, high]; `on` is False for a symbol that is never on."""

    on: NDArray[np.bool_]
    low: Floats
    high: Floats

    def events(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Symbols in the order in which they switch, and +1 for on, -1 for off; on comes first at a tie."""
        live = np.flatnonzero(self.on)
        symbols = np.concatenate([live, live])
        signs = np.repeat(np.array([1, -1]), live.size)
        order = np.lexsort((-signs, np.concatenate([self.low[live], self.high[live]])))
        return symbols[order], signs[order]


@dataclass(frozen=True, slots=True)
class Worst:
    """All patterns of a sweep, one after each event: `utility` is mu, `excess` is mu - lambda . s."""

    symbols: NDArray[np.int64]
    signs: NDArray[np.int64]
    excess: Floats
    utility: Floats

    @property
    def largest(self) -> float:
        return float(self.excess.max(initial=-np.inf))

    def pattern(self, event: int, size: int) -> Floats:
        """Which symbols are on after that event: zeros and ones."""
        state = np.zeros(size)
        np.add.at(state, self.symbols[: event + 1], self.signs[: event + 1])
        return state

    def peaks(self, most: int) -> NDArray[np.int64]:
        """The events with locally largest excess, largest first."""
        padded = np.concatenate([[-np.inf], self.excess, [-np.inf]])
        local = np.flatnonzero((padded[1:-1] >= padded[:-2]) & (padded[1:-1] >= padded[2:]))
        return local[np.argsort(-self.excess[local], kind="stable")[:most]]


def switches(lower: Floats, gaps: Floats, multipliers: Floats, odds: float, curve: Curve) -> Switches:
    """The interval of tangents in which each symbol is on."""
    low_end, high_end = curve.span(1 + odds)

    def rises(z: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.asarray(curve.slope(z) * gaps + curve.sag(z) * lower - multipliers)

    # Clipped before the tangent is evaluated: beyond the span a slope may be infinite.
    reach = np.clip(gaps, (1 / (1 + odds) - 1) * lower, odds * np.maximum(lower, gaps))
    peak = np.clip(curve.tangent_to(np.where(lower > 0, lower, 1.0), reach), low_end, high_end)
    peak = np.where((lower == 0) & (gaps > 0), high_end, peak)
    on = rises(peak) > 0
    ends = np.repeat(np.array([[low_end], [high_end]]), peak.size, axis=1)
    reaches = rises(ends) >= 0
    inner, outer = np.repeat(peak[None, :], 2, axis=0), ends
    for _ in range(_HALVINGS):
        middle = (outer + inner) / 2
        between = (middle != inner) & (middle != outer)
        inside = rises(middle) >= 0
        inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
        if not between.any():
            break  # no float is left between the two
    low, high = np.where(reaches, ends, inner)
    return Switches(on, low, high)


def sweep(lower: Floats, gaps: Floats, multipliers: Floats, odds: float, curve: Curve) -> Worst:
    """Every pattern that can be the worst one, with its excess over the multipliers."""
    symbols, signs = switches(lower, gaps, multipliers, odds, curve).events()
    b = 1 + odds * np.clip(np.cumsum(signs * lower[symbols]), 0.0, 1.0)
    gap = odds * np.cumsum(signs * gaps[symbols])
    utility = curve.column(b, gap)
    price = multipliers.sum() + odds * np.cumsum(signs * multipliers[symbols])
    return Worst(symbols, signs, utility - price, utility)

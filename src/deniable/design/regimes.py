"""Where the two classical mechanisms are optimal: the binary one at high privacy, randomized response at low.

Binary     two blocks, cut where P0 = P1; symbols of that ratio go to the better side
Response   one block for each distinct ratio (with repeated ratios plain randomized response is never optimal)
Optimal    when its value is within 1e-9, relatively, of a proven bound; not optimal when a better mechanism is shown
Threshold  a bracket at most 1e-4 wide around the change nearest to the end of the scale; nothing proves that the
           optimal epsilons form an interval, so a grid is scanned and what contradicts the bracket is reported
Source     Kairouz, Oh and Viswanath 2014
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable import exact
from deniable._extras import require
from deniable.channels.divergences import FDivergence, divergence, find_divergence
from deniable.channels.laws import read_hypotheses
from deniable.design.blocks import Cuts, Partition, best_partition, partition_value
from deniable.design.dual import multipliers, upper_bound
from deniable.design.extremal import rise
from deniable.design.tangents import Curve, Pair, curve_of
from deniable.errors import NumberError
from deniable.trace import Progress, Watch

TOLERANCE = 1e-9
WIDTH = 1e-4

_BEST, _BINARY, _RESPONSE = "#3949ab", "#d08a2e", "#5b9a68"


@dataclass(frozen=True, slots=True)
class ScanPoint:
    """What can be had at one epsilon: values of the best, of the binary mechanism and of randomized response."""

    epsilon: float
    best: float
    binary: float
    response: float
    blocks: int
    binary_optimal: bool
    response_optimal: bool


@dataclass(frozen=True, slots=True)
class Bracket:
    """The threshold lies between `low` and `high`; `high` is infinite (or `low` 0) if the scan did not meet it."""

    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


@dataclass(frozen=True)
class Regimes:
    """The thresholds for one pair of hypotheses and one divergence, and the scan behind them.

    `binary` brackets the largest epsilon up to which the binary mechanism is optimal, `response` the smallest from
    which on randomized response is. The exceptions are scanned epsilons that lie on the other side.
    """

    pair: Pair
    divergence: FDivergence
    binary: Bracket
    response: Bracket
    scan: tuple[ScanPoint, ...]

    @property
    def binary_exceptions(self) -> tuple[float, ...]:
        """Scanned epsilons above the threshold at which the binary mechanism is optimal again."""
        return tuple(at.epsilon for at in self.scan if at.epsilon >= self.binary.high and at.binary_optimal)

    @property
    def response_exceptions(self) -> tuple[float, ...]:
        """Scanned epsilons below the threshold at which randomized response is optimal already."""
        return tuple(at.epsilon for at in self.scan if at.epsilon <= self.response.low and at.response_optimal)

    def __repr__(self) -> str:
        return (
            f"<Regimes of {self.pair.size} symbols ({self.divergence.name}): binary up to epsilon {_ends(self.binary)}"
            f", randomized response from {_ends(self.response)} on; {len(self.scan)} epsilons scanned>"
        )

    def plot(self, axes: Any = None) -> Any:
        """Value and number of outputs over epsilon, with the regimes marked."""
        return plot_regimes(self, axes)


def _ends(bracket: Bracket) -> str:
    return f"{bracket.low:.4f} to {bracket.high:.4f}"


def binary_guarantee(epsilon: Any) -> float:
    """The share of the best KL divergence that the binary mechanism has at least: 1 / (2 (e^epsilon + 1)^2).

    >>> round(1 / binary_guarantee(1), 4)
    27.6512
    """
    return 1 / (2 * (rise(exact.as_epsilon(epsilon)) + 2) ** 2)


def regimes(
    p0: ArrayLike | Sequence[Any] | Mapping[Any, Any],
    p1: ArrayLike | Sequence[Any] | Mapping[Any, Any],
    divergence: str | FDivergence = "kl",
    epsilons: Sequence[float] | None = None,
    progress: Progress | None = None,
) -> Regimes:
    """Thresholds between the regimes; `epsilons` is the grid to scan (49 epsilons from 0.01 to 16 if not given).

    `progress` is called after each epsilon, with the share of the scan that is done, and then with each bracket.

    >>> found = regimes([0.5, 0.3, 0.2], [0.2, 0.2, 0.6], epsilons=[1, 3, 4])
    >>> found.binary.width <= 1e-4, found.binary.low < found.response.high
    (True, True)
    """
    pair = Pair.read(*read_hypotheses(p0, p1)[:2])
    curve = curve_of(divergence)
    grid = np.geomspace(0.01, 16, 49) if epsilons is None else np.unique(np.asarray(epsilons, dtype=np.float64))
    if grid.size < 2 or not np.isfinite(grid).all():
        raise NumberError("the scan needs at least two different epsilons")
    watch, levels = Watch(progress), []
    for done, e in enumerate(grid.tolist(), start=1):
        levels.append(_scan_point(pair, curve, e))
        watch.say(f"epsilon {done} of {grid.size}", done / grid.size)
    scan = tuple(levels)

    def binary_at(e: float) -> bool:
        watch.say(f"where the binary mechanism stops: epsilon {e:.5g}")
        return _scan_point(pair, curve, e, response=False).binary_optimal

    def response_at(e: float) -> bool:
        watch.say(f"where randomized response starts: epsilon {e:.5g}")
        return _scan_point(pair, curve, e, binary=False).response_optimal

    return Regimes(pair, curve.divergence, _first_failure(scan, binary_at), _last_failure(scan, response_at), scan)


def _scan_point(pair: Pair, curve: Curve, epsilon: float, binary: bool = True, response: bool = True) -> ScanPoint:
    level = exact.as_epsilon(epsilon)
    odds = rise(level)
    lower, gaps = pair.prefixes
    best = best_partition(lower, gaps, odds, curve)
    one_bit = max((partition_value(cuts, lower, gaps, odds, curve) for cuts in _binary_cuts(pair)), default=0.0)
    direct = partition_value(np.arange(pair.groups + 1), lower, gaps, odds, curve) if pair.groups > 1 else 0.0
    wanted = [one_bit] * binary + [direct] * response
    reached = [value for value in wanted if best.value <= value * (1 + TOLERANCE)]
    # A better mechanism settles the matter; the proof is needed only where none is found.
    bound = _bound(pair, best, curve, level, odds) if reached else math.inf
    optimal = [value >= bound * (1 - TOLERANCE) for value in (one_bit, direct)]
    return ScanPoint(epsilon, best.value, one_bit, direct, best.blocks, *optimal)


def _bound(pair: Pair, best: Partition, curve: Curve, epsilon: Fraction, odds: float) -> float:
    return upper_bound(curve, pair, multipliers(pair, best, odds, curve), epsilon)


def _binary_cuts(pair: Pair) -> list[Cuts]:
    """Two blocks, with the groups of ratio one on either side."""
    _, _, gaps = pair.merged
    places = {int((gaps < 0).sum()), int((gaps <= 0).sum())}
    return [np.array([0, place, pair.groups]) for place in places if 0 < place < pair.groups]


def _first_failure(scan: Sequence[ScanPoint], optimal: Callable[[float], bool]) -> Bracket:
    failing = [i for i, at in enumerate(scan) if not at.binary_optimal]
    if not failing:
        return Bracket(scan[-1].epsilon, math.inf)
    first = failing[0]
    if first > 0:
        return _bisect(scan[first - 1].epsilon, scan[first].epsilon, optimal, below=True)
    if not optimal(WIDTH):
        return Bracket(0.0, WIDTH)
    return _bisect(WIDTH, scan[0].epsilon, optimal, below=True)


def _last_failure(scan: Sequence[ScanPoint], optimal: Callable[[float], bool]) -> Bracket:
    failing = [i for i, at in enumerate(scan) if not at.response_optimal]
    if not failing:
        return Bracket(0.0, scan[0].epsilon)
    last = failing[-1]
    if last == len(scan) - 1:
        return Bracket(scan[-1].epsilon, math.inf)
    return _bisect(scan[last].epsilon, scan[last + 1].epsilon, optimal, below=False)


def _bisect(low: float, high: float, optimal: Callable[[float], bool], below: bool) -> Bracket:
    while high - low > WIDTH:
        middle = (low + high) / 2
        if optimal(middle) == below:
            low = middle
        else:
            high = middle
    return Bracket(low, high)


def _values_over(
    p0: ArrayLike, p1: ArrayLike, epsilons: Sequence[float], divergence: str | FDivergence = "kl"
) -> tuple[list[float], list[float], list[float]]:
    """Values of the best mechanism, the binary one and randomized response at each epsilon, without proofs."""
    pair, curve = Pair.read(p0, p1), curve_of(divergence)
    rows = [_scan_point(pair, curve, float(e), binary=False, response=False) for e in epsilons]
    return [at.best for at in rows], [at.binary for at in rows], [at.response for at in rows]


def plot_regimes(found: Regimes, axes: Any = None) -> Any:
    """Two panels over epsilon: the share of the optimum that each classical mechanism reaches; number of outputs."""
    pyplot = require("matplotlib.pyplot", "plot")
    if axes is None:
        _, axes = pyplot.subplots(2, 1, figsize=(6.8, 5.4), sharex=True, layout="constrained", height_ratios=(2, 1))
    top, bottom = axes
    levels = np.array([at.epsilon for at in found.scan])
    best = np.array([at.best for at in found.scan])
    for values, colour, name in (
        ([at.binary for at in found.scan], _BINARY, "binary mechanism"),
        ([at.response for at in found.scan], _RESPONSE, "randomized response"),
    ):
        share = np.divide(values, best, out=np.ones_like(best), where=best > 0)
        top.semilogx(levels, share, color=colour, label=name)
    for panel in (top, bottom):
        panel.axvspan(levels[0], min(max(found.binary.low, levels[0]), levels[-1]), color=_BINARY, alpha=0.12)
        panel.axvspan(max(min(found.response.high, levels[-1]), levels[0]), levels[-1], color=_RESPONSE, alpha=0.12)
        panel.grid(True, which="both", alpha=0.2)
    top.set(ylabel="share of the optimum", title=f"who is optimal where ({found.divergence.name})", ylim=(0, 1.05))
    top.legend(loc="lower center")
    bottom.step(levels, [at.blocks for at in found.scan], where="mid", color=_BEST)
    bottom.set(xlabel="epsilon", ylabel="outputs")
    return axes


def plot_value(
    p0: ArrayLike,
    p1: ArrayLike,
    epsilons: Sequence[float] | None = None,
    kind: str | FDivergence = "kl",
    ax: Any = None,
) -> Any:
    """What the best mechanism, the binary one and randomized response are worth over epsilon."""
    pyplot = require("matplotlib.pyplot", "plot")
    levels = np.geomspace(0.05, 10, 60) if epsilons is None else np.sort(np.asarray(epsilons, np.float64))
    best, one_bit, direct = _values_over(p0, p1, levels.tolist(), kind)
    if ax is None:
        _, ax = pyplot.subplots(figsize=(6.4, 4), layout="constrained")
    ax.loglog(levels, best, color=_BEST, linewidth=3, alpha=0.5, label="best mechanism")
    ax.loglog(levels, one_bit, color=_BINARY, label="binary mechanism")
    ax.loglog(levels, direct, color=_RESPONSE, label="randomized response")
    open_answers = divergence(p0, p1, kind)
    if math.isfinite(open_answers):
        ax.axhline(open_answers, color="0.5", linestyle="--", linewidth=1, label="open answers")
    ax.set(xlabel="epsilon", ylabel=f"divergence of reports ({find_divergence(kind).name})")
    ax.grid(True, which="both", alpha=0.2)
    ax.legend()
    return ax

"""The extremal mechanism: the epsilon-LDP mechanism whose reports distinguish two hypotheses best.

Problem    maximize D_f(M0 || M1), the divergence of the laws of reports under P0 and P1
Answer     sort the symbols by P0/P1, cut them into blocks, answer with randomized response on the block; the best cut
           is optimal among all mechanisms, for every f and every epsilon
Value      sum over blocks of mu / (j + E - 1), mu = b f(a/b), a = 1 + (E-1) P0(block), b = 1 + (E-1) P1(block)
Privacy    that of randomized response over j blocks: exact, nothing to repair
Proof      the certificate: multipliers for the dual program, checked over all 2^k columns (see `partitions`)
Regimes    where one of the two classical mechanisms is optimal: the binary one at high privacy (two blocks, cut where
           P0 = P1; symbols of that ratio go to the better side), randomized response at low (one block for each
           distinct ratio; with repeated ratios plain randomized response is never optimal). A mechanism counts as
           optimal if its value is within 1e-9, relatively, of a proven bound, and as not optimal if a better one
           is shown
Threshold  a bracket at most 1e-4 wide around the change nearest to the end of the scale; there is no proof that the
           optimal epsilons form an interval, so a grid is scanned and contradictions of the bracket are reported
Cost       O(k^2) per step and about three steps: milliseconds for k = 100, seconds for k = 10,000
Source     Kairouz, Oh and Viswanath 2014; "Sort, Partition, Randomize", arXiv 2606.07443
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable import exact
from deniable._extras import require
from deniable.channels import Channel
from deniable.channels.divergences import DIVERGENCES, FDivergence, divergence, find_divergence
from deniable.channels.laws import Floats, Laws, read_hypotheses
from deniable.design.base import Certificate, Check, Design, Verdict, read_number
from deniable.design.partitions import (
    BlockResponse,
    Cuts,
    Partition,
    best_partition,
    multipliers,
    partition_value,
    proven_value,
    upper_bound,
)
from deniable.design.tangents import Curve, Pair, curve_of
from deniable.errors import NumberError, SpecError
from deniable.labels import Label, as_labels, label_spec, load_label
from deniable.specs import integer_text, read_integer
from deniable.trace import Progress, Watch

# Relative to the multipliers' sum, per symbol; moving all ends by three floats changes the bound by 1/20 of that.
_ROOM = 2e-14


def extremal(
    p0: ArrayLike | Sequence[Any] | Mapping[Any, Any],
    p1: ArrayLike | Sequence[Any] | Mapping[Any, Any],
    epsilon: Any,
    divergence: str | FDivergence = "kl",
    inputs: Iterable[Any] | None = None,
    progress: Progress | None = None,
) -> Design:
    """The mechanism that maximizes the divergence between reports under `p0` and reports under `p1`.

    Args:
        p0: Law of the answers under the first hypothesis: a list, or {label: probability}.
        p1: Law of the answers under the second hypothesis.
        epsilon: The guarantee.
        divergence: Name of the divergence, or an `FDivergence`.
        inputs: Labels of the answers; 0, 1, 2, ... if neither hypothesis names them.
        progress: Called with a description of the current work, also while the certificate is computed.

    Returns:
        The mechanism.

    >>> design = extremal([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], epsilon=1)
    >>> design.law.block, round(design.value, 9), design.relative_gap < 1e-9
    ((1, 0, 0), 0.03999738, True)
    """
    began = time.perf_counter()
    first, second, listed = read_hypotheses(p0, p1, inputs)
    pair = Pair.read(first, second)
    level = exact.as_epsilon(epsilon)
    names = None if listed is None else as_labels(listed, pair.size, "input")
    curve = curve_of(divergence)
    odds = rise(level)
    watch = Watch(progress)
    partition = best_partition(*pair.prefixes, odds, curve, watch)
    law = block_law(pair, partition, level)
    value = realized_value(curve, pair, law, level)[0]
    certify = partial(_certify, pair, partition, law, level, curve.divergence, odds, value, names, progress)
    spent = time.perf_counter() - began
    laws = Laws.numbered([pair.weights0, pair.weights1], names)
    name, steps = f"extremal ({curve.divergence.name})", tuple(watch.steps)
    return Design(name, level, value, law, certify, names, steps, spent, hypotheses=laws)


def rise(epsilon: Fraction) -> float:
    """e^epsilon - 1 as a float, rounded up: a bound for slightly less privacy is also valid here."""
    above = exact.exp_ceil(epsilon) - 1
    nearest = float(above)
    return nearest if Fraction(nearest) >= above else math.nextafter(nearest, math.inf)


def block_law(pair: Pair, partition: Partition, epsilon: Fraction) -> BlockResponse:
    """Randomized response on the blocks of a partition of the groups."""
    blocks = np.repeat(np.arange(partition.blocks), np.diff(partition.cuts))
    return BlockResponse.at(blocks[pair.group].tolist(), epsilon)


def realized_value(curve: Curve, pair: Pair, law: BlockResponse, epsilon: Fraction) -> tuple[float, float]:
    """Lower and upper bound on the divergence of the reports of the realized, rounded law."""
    m0, m1 = law.push(pair.weights0), law.push(pair.weights1)
    if curve.built_in:
        return proven_value(curve.divergence.name, m0, m1, epsilon)
    b = np.array([float(m) for m in m1])
    gap = np.array([float(a - m) for a, m in zip(m0, m1, strict=True)])
    value = math.fsum(curve.column(b, gap))
    return value * (1 - 1e-12), value * (1 + 1e-12)


def _certify(
    pair: Pair,
    partition: Partition,
    law: BlockResponse,
    epsilon: Fraction,
    divergence: FDivergence,
    odds: float,
    value: float,
    inputs: tuple[Label, ...] | None,
    progress: Progress | None,
) -> ExtremalCertificate:
    curve, watch = curve_of(divergence), Watch(progress)
    prices = multipliers(pair, partition, odds, curve, watch=watch)
    watch.say("proof: all columns, in long decimals")
    bound = _with_room(upper_bound(curve, pair, prices, epsilon), prices)
    return ExtremalCertificate(pair, epsilon, divergence, law, tuple(prices.tolist()), value, bound, inputs)


def _with_room(bound: float, prices: Floats) -> float:
    """A claim that other processors can prove, too: they place the ends of the proof's intervals a few floats away."""
    if bound == 0:
        return bound
    return math.nextafter(bound + _ROOM * (prices.size + 50) * math.fsum(np.abs(prices)), math.inf)


@dataclass(frozen=True)
class ExtremalCertificate(Certificate):
    """Hypotheses, mechanism and multipliers: `value <= divergence <= optimum <= bound`.

    Args:
        pair: The two hypotheses.
        epsilon: The guarantee.
        divergence: The divergence that is maximized.
        law: The mechanism.
        multipliers: Dual multipliers, one per symbol.
        value: Lower bound on what the mechanism attains.
        bound: Upper bound for every mechanism.
        inputs: Names of the symbols, if the design had any.
    """

    kind = "extremal"

    pair: Pair
    epsilon: Fraction
    divergence: FDivergence
    law: BlockResponse
    multipliers: tuple[float, ...]
    value: float
    bound: float
    inputs: tuple[Label, ...] | None = None

    @property
    def rigor(self) -> str:
        return "proved" if DIVERGENCES.get(self.divergence.name) is self.divergence else "numeric"

    @property
    def mechanism(self) -> Channel:
        return self.law.channel(self.inputs)

    @property
    def hypotheses(self) -> Laws:
        return Laws.numbered([self.pair.weights0, self.pair.weights1], self.inputs)

    def verify(self) -> Verdict:
        curve = curve_of(self.divergence)
        row = self.law.true + (self.law.outputs - 1) * self.law.false
        # If some output had probability zero, some marginal would be zero and the ratio infinite.
        fits = len(self.law.block) == self.pair.size == len(self.multipliers) and row == 1 and self.law.false > 0
        fits = fits and (self.inputs is None or len(self.inputs) == self.pair.size)
        checks = [
            Check("rows", fits, f"{len(self.law.block)} rows of {self.law.outputs} outputs sum to {row}"),
            Check(
                "ratios",
                self.law.satisfies(self.epsilon),
                f"largest ratio has logarithm {self.law.epsilon:.12g}, asked {exact.shown(self.epsilon)}",
            ),
        ]
        if fits:
            low, high = realized_value(curve, self.pair, self.law, self.epsilon)
            # A smaller claim would also be true, but it would not be this mechanism's value.
            holds = self.value <= high and self.value >= low - 1e-9 * abs(low)
            checks.append(Check("value", holds, f"{low:.12g} where {self.value:.12g} is claimed"))
            least = upper_bound(curve, self.pair, np.array(self.multipliers), self.epsilon)
            # The claimed bound may be loose, but never tighter than the multipliers prove.
            proves = least <= self.bound + (0.0 if self.rigor == "proved" else 1e-12 * abs(least))
            checks.append(Check("bound", proves, f"the multipliers prove {least:.12g}, {self.bound:.12g} is claimed"))
        return Verdict(tuple(checks), self.rigor)

    def content(self) -> dict[str, Any]:
        named = {} if self.inputs is None else {"inputs": [label_spec(label) for label in self.inputs]}
        return named | {
            "divergence": self.divergence.name,
            "rigor": self.rigor,
            "epsilon": exact.canonical(self.epsilon),
            "weights0": [integer_text(w) for w in self.pair.weights0],
            "weights1": [integer_text(w) for w in self.pair.weights1],
            "mechanism": self.law.spec(),
            "multipliers": [repr(m) for m in self.multipliers],
            "value": repr(self.value),
            "bound": repr(self.bound),
        }

    @classmethod
    def read(cls, content: dict[str, Any], divergence: FDivergence | None = None) -> ExtremalCertificate:
        """From JSON; a user-defined divergence must be given again."""
        name = content["divergence"]
        known = divergence or (DIVERGENCES.get(name) if content["rigor"] == "proved" else None)
        if known is None:
            raise SpecError(
                f"the certificate is about the divergence {name!r}, which is not built in: "
                "ExtremalCertificate.read(content, divergence) takes it"
            )
        return cls(
            Pair(*(tuple(read_integer(w) for w in content[key]) for key in ("weights0", "weights1"))),
            exact.as_epsilon(content["epsilon"]),
            known,
            BlockResponse.load(content["mechanism"]),
            tuple(read_number(m) for m in content["multipliers"]),
            read_number(content["value"]),
            read_number(content["bound"]),
            None if content.get("inputs") is None else _labels(content["inputs"]),
        )


def _labels(written: Any) -> tuple[Label, ...]:
    if not isinstance(written, list):
        raise SpecError('"inputs" of a certificate is a list of labels')
    return as_labels([load_label(label) for label in written], len(written), "input")


# -- where the two classical mechanisms are optimal ---------------------------------------------------


TOLERANCE = 1e-9
WIDTH = 1e-4

_BEST, _BINARY, _RESPONSE = "#3949ab", "#d08a2e", "#5b9a68"


@dataclass(frozen=True, slots=True)
class ScanPoint:
    """Values at one epsilon: of the best, of the binary mechanism and of randomized response.

    Args:
        epsilon: The guarantee.
        best: Value of the best mechanism.
        binary: Value of the binary mechanism.
        response: Value of randomized response.
        blocks: Number of outputs of the best mechanism.
        binary_optimal: Whether the binary mechanism is optimal.
        response_optimal: Whether randomized response is optimal.
    """

    epsilon: float
    best: float
    binary: float
    response: float
    blocks: int
    binary_optimal: bool
    response_optimal: bool


@dataclass(frozen=True, slots=True)
class Bracket:
    """The threshold lies between `low` and `high`; `high` is infinite (or `low` 0) if the scan did not reach it.

    Args:
        low: Lower end.
        high: Upper end.
    """

    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


@dataclass(frozen=True)
class Regimes:
    """The thresholds for one pair of hypotheses and one divergence, and the scan behind them.

    `binary` brackets the largest epsilon up to which the binary mechanism is optimal, `response` the smallest from
    which randomized response is optimal. The exceptions are scanned epsilons that lie on the other side.

    Args:
        pair: The two hypotheses.
        divergence: The divergence.
        binary: Largest epsilon up to which the binary mechanism is optimal.
        response: Smallest epsilon from which randomized response is optimal.
        scan: The values at each epsilon of the grid.
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
    """Lower bound on the binary mechanism's fraction of the best KL divergence: 1 / (2 (e^epsilon + 1)^2).

    Args:
        epsilon: The guarantee.

    Returns:
        The fraction.

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
    """Thresholds between the regimes.

    Args:
        p0: Law of the answers under the first hypothesis.
        p1: Law of the answers under the second hypothesis.
        divergence: Name of the divergence, or an `FDivergence`.
        epsilons: The grid to scan; 49 values from 0.01 to 16 if None.
        progress: Called after each epsilon with the share that is done, then with each bracket.

    Returns:
        The thresholds and the scan.

    Raises:
        NumberError: There are fewer than two different epsilons.

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
    # A better mechanism decides the question; the proof is needed only if none is found.
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
    """Two panels over epsilon: the share of the optimum that each classical mechanism reaches; number of outputs.

    Args:
        found: The result of `regimes`.
        axes: Two axes of matplotlib to draw on; new ones if None.

    Returns:
        The axes.
    """
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
    """The values of the best mechanism, the binary one and randomized response over epsilon.

    Args:
        p0: Law of the answers under the first hypothesis.
        p1: Law of the answers under the second hypothesis.
        epsilons: Where the curves are computed; 60 values from 0.05 to 10 if None.
        kind: Name of the divergence, or an `FDivergence`.
        ax: Axes of matplotlib to draw on; new ones if None.

    Returns:
        The axes.
    """
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

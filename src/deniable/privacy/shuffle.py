"""Privacy amplification by shuffling: (epsilon, delta) of n reports in random order, from the epsilon_0 of each one.

An observer of n reports in random order does not know who sent which. So one person's report hides among those of
others, and the epsilon of all reports together is much smaller than that of one report.

Counted    n is the number of honest reports: from people who follow the protocol, sent in one batch. epsilon_0 is that
           of everything that one person sends in the batch: all questions together
Clones     for any report of epsilon_0: each of the others says the same as one of the two reports in question with
           probability e^-epsilon_0. C ~ Bin(n - 1, e^-epsilon_0), A ~ Bin(C, 1/2), D ~ Bernoulli(e^epsilon_0 /
           (e^epsilon_0 + 1)); delta is that of (A + D, C - A + 1 - D) against (A + 1 - D, C - A + D)
Blanket    for this very protocol (`Law.blankets`): delta = E[(Z_1 + ... + Z_n)_+] / n, Z independent, with the
           mass of each cell at one - e^epsilon other and the rest at 0. The smaller of both bounds holds
Lower      a lower bound from an attack on one crowd: everybody else gave the same third answer (or, without one, the
           second), and the collector counts the reports that support only the first answer and only the second
Rounding   Z is put on a grid by splitting each value between its neighbours so that the mean stays: that is a worse
           law, because (.)_+ is convex. The law of the sum is found by Fourier transforms of the law tilted by e^(theta
           z), whose largest possible rounding error is added to every probability; what lies beyond the grid is
           bounded by Chernoff's inequality. e^epsilon is a fraction below the true one. The incomplete beta function
           that clones and lower bounds need is taken to be right to eight digits
Epochs     fresh reports of several epochs are composed from the whole curve (`composition`). Reports that share a kept
           state can be linked over the epochs, so only the first epoch is amplified
Not used   the bound of Feldman, McMillan and Talwar 2023 for general reports, whose proof was withdrawn in part, and
           the variation ratio of Wang et al. 2024, which exact enumeration violates
Source     Feldman, McMillan and Talwar 2021 (clones); Balle, Bell, Gascon and Nissim 2019 (blanket)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from deniable import exact
from deniable.channels import Channel
from deniable.errors import DeniableError, NumberError
from deniable.privacy.composition import Composition, Floats, Loss, compose
from deniable.protocols.blanket import Blanket, of_laws, product, worst
from deniable.protocols.law import ANY, PureSupport
from deniable.protocols.protocol import Protocol

__all__ = ["CannotShuffle", "Shuffled", "fewest_people", "largest_epsilon", "shuffled"]

MOST_PEOPLE = 10**10
BLANKET, CLONES, ALONE = "blanket", "clones", "one report"

_COARSE, _FINE = 1 << 14, 1 << 18
"""Points of the grid: to look for an epsilon, and to prove it."""
_REACH = 12.0
"""Standard deviations of the tilted sum that the grid covers to either side."""
_UNIT = 2.0**-53
_TRUST = 1e-8
"""The relative error that is allowed for in the incomplete beta function."""
_BLOCKS = 2048
_CLOSE = 1e-7
_POINTS = 12
_NO_GAIN = 0.99


class CannotShuffle(DeniableError, ValueError):
    """What a shuffler does not amplify, or not in this way."""


PairLaw = tuple[Fraction, Fraction, Fraction]
"""How likely a report speaks for the first answer only, for the second only, and otherwise."""


@dataclass(frozen=True)
class Shuffled:
    """The level of n shuffled reports.

    Args:
        n: Number of honest reports.
        delta: Probability up to which the central epsilon holds.
        epsilon_0: The epsilon of everything that one person sends.
        ratio: Its exact likelihood ratio.
        blankets: Lower bounds on the input-independent part of a report.
        attacked: Laws of the first answer, the second and everybody else's, in attacks that lower bounds count.
        fresh: Whether a second batch is independent of the first.
        within: Among whom a report hides, where that is not everybody.

    >>> from deniable.protocols import GRR
    >>> crowd = shuffled(GRR(10, epsilon=1), n=1000, delta=1e-6)
    >>> round(crowd.epsilon, 5), crowd.method, 0.07 < crowd.lower < crowd.epsilon
    (0.08016, 'blanket', True)
    >>> shuffled(4, n=100_000, delta=1e-6).words
    'With 100,000 honest reports in random order, epsilon 4 of one report becomes a central (0.1698, 1e-06).'
    """

    n: int
    delta: Fraction
    epsilon_0: Fraction
    ratio: Fraction
    blankets: tuple[Blanket, ...] = ()
    attacked: tuple[tuple[PairLaw, PairLaw, PairLaw], ...] = ()
    fresh: bool = True
    within: str = ""

    @cached_property
    def _found(self) -> tuple[float, str]:
        alone = _up(self.epsilon_0)
        best, method = alone, ALONE
        for bound, name in ((self._clones_at, CLONES), (self._blanket_at, BLANKET)):
            if name == CLONES or self.blankets:
                level = _smallest(bound, float(self.delta), best)
                if level < best:
                    best, method = level, name
        return best, method

    @property
    def epsilon(self) -> float:
        """The smallest proven epsilon at `delta`, never too small."""
        return self._found[0]

    @property
    def method(self) -> str:
        """Which bound gave it: "blanket", "clones", or "one report" where shuffling gains nothing."""
        return self._found[1]

    @cached_property
    def clones(self) -> float:
        """The epsilon that holds for any report of this epsilon_0."""
        return _smallest(self._clones_at, float(self.delta), _up(self.epsilon_0))

    @cached_property
    def lower(self) -> float:
        """No epsilon below this holds at `delta`: an attack is known. Zero if no attack was looked for."""
        if not self.attacked or self._attack_at(0.0) <= self.delta:
            return 0.0
        low, high = 0.0, self.epsilon
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self._attack_at(middle) > self.delta else (low, middle)
        return low

    def delta_at(self, epsilon: Any) -> float:
        """The delta at an epsilon, never too small."""
        level = exact.fraction(epsilon, "epsilon")
        if level < 0:
            raise NumberError("delta is asked for at an epsilon of 0 or more")
        if exact.exp_at_least(level, self.ratio):
            return 0.0
        found = self._clones_at(float(level), _FINE)
        return min(found, self._blanket_at(float(level), _FINE)) if self.blankets else found

    def over(self, epochs: int) -> Composition:
        """What `epochs` epochs reveal together, each shuffled by itself, with fresh reports. The deltas add up.

        Raises CannotShuffle if devices keep a state, because their reports can be linked.

        >>> year = shuffled(2, n=10_000, delta=1e-8).over(12)
        >>> year.epsilon_at(1e-6) < 0.8
        True
        """
        if not self.fresh and epochs > 1:
            raise CannotShuffle(
                "devices report from a state that they keep, so that reports of one device can be linked over the "
                "epochs: a shuffler amplifies the first epoch only; ask once, or draw each report afresh"
            )
        return compose(self.loss, times=epochs)

    @cached_property
    def loss(self) -> Loss:
        """The whole curve, for compositions: chords between proven points, as the curve is convex in e^epsilon."""
        ends = sorted({self.epsilon * k / _POINTS for k in range(_POINTS + 1)} | {self.epsilon * 1.5})
        points = [(exact.exp_floor(Fraction(level)), Fraction(self.delta_at(Fraction(level)))) for level in ends]
        points = [(ratio, delta) for ratio, delta in points if ratio < self.ratio] + [(self.ratio, Fraction(0))]
        below = [(1 / ratio, 1 - (1 - delta) / ratio) for ratio, delta in reversed(points) if ratio > 1]
        curve = _hull([(Fraction(0), Fraction(1)), *below, *points])
        return Loss(self.epsilon_0, tuple(curve), is_exact=False, fresh=self.fresh)

    @property
    def words(self) -> str:
        """For people."""
        alone = f"epsilon {exact.epsilon_text(self.epsilon_0, 4)} of one report"
        crowd = f"{self.n:,} honest report{'s' * (self.n > 1)}{f' {self.within}' if self.within else ''}"
        if self.epsilon > _NO_GAIN * self.epsilon_0:
            return f"With {crowd} a shuffler adds nothing: {alone} stays what it is."
        pair = f"({rounded_up(self.epsilon)}, {float(self.delta):.3g})"
        first = "" if self.fresh else " This holds for the first epoch only: later reports can be linked with it."
        return f"With {crowd} in random order, {alone} becomes a central {pair}.{first}"

    # -- the bounds --------------------------------------------------------------------------------

    def _blanket_at(self, epsilon: float, points: int = _COARSE) -> float:
        odds = exact.exp_floor(Fraction(epsilon))
        return max(_blanket_delta(cells, self.n, odds, points) for cells in self.blankets)

    def _clones_at(self, epsilon: float, points: int = _COARSE) -> float:
        return _clones_delta(self.n, self.ratio, epsilon)

    def _attack_at(self, epsilon: float) -> float:
        odds = exact.exp_ceil(Fraction(epsilon))
        return max(_attack_delta(self.n, odds, *laws) for laws in self.attacked)


def shuffled(release: Any, n: int, delta: Any) -> Shuffled:
    """The level of n reports in random order.

    Args:
        release: A protocol; a list of protocols, for the questions that one person answers in one submission; a
            channel; or an epsilon, for any report of that level.
        n: Number of honest people who report in one batch.
        delta: Probability up to which the epsilon holds; choose it far below 1 / n.

    Returns:
        The central level.

    Raises:
        CannotShuffle: No bound is known for this release.
        NumberError: `n` or `delta` is out of range.
    """
    people = exact.whole(n, "the number of reports")
    if not 1 <= people <= MOST_PEOPLE:
        raise NumberError(f"the number of honest reports is between 1 and {MOST_PEOPLE:,}, not {people:,}")
    most = exact.fraction(delta, "delta")
    if not 0 < most < 1:
        raise NumberError("delta is a probability between 0 and 1, such as 1e-8")
    if isinstance(release, Iterable) and not isinstance(release, str):
        return _several([shuffled(each, people, most) for each in release])
    if isinstance(release, Protocol):
        return _protocol(release, people, most)
    if isinstance(release, Channel):
        if isinstance(release.ratio, float):
            raise CannotShuffle("this channel can give an input away for certain: no shuffler hides that")
        rows = [[int(entry) for entry in row] for row in release.numerators]
        size = range(len(rows))
        pairs = (({i: Fraction(1)}, {j: Fraction(1)}) for i in size for j in size if i != j)
        level = exact.log_ceil(release.ratio, 10**9)
        return Shuffled(people, most, level, release.ratio, of_laws(rows, pairs))
    level = exact.as_epsilon(release)
    return Shuffled(people, most, level, exact.exp_ceil(level))


def _protocol(protocol: Protocol, n: int, delta: Fraction) -> Shuffled:
    promised = protocol.guarantee
    if promised.relation == "stream":
        raise CannotShuffle(
            f"{protocol.name} promises one epsilon for all reports of a device over the epochs, and each epoch is "
            "shuffled by itself: no bound is known for that"
        )
    if promised.delta:
        raise CannotShuffle(f"{protocol.name} here has a delta of its own, with which no bound is known")
    blankets = protocol.law().blankets
    if promised.relation != ANY and not blankets:
        raise CannotShuffle(
            f"{protocol.name} protects {promised.over}, not any two answers, and its law is too large to list: no "
            "bound is known"
        )
    support = protocol.law().support
    attacked = () if support is None else (_answers(support, protocol.ratio),)
    within = "of one stratum" if protocol.law().clear else ""
    ratio = protocol.ratio
    if promised.relation != ANY:  # what others report may differ by more than what is promised
        ratio = max(max(cell.one, cell.other) for cells in blankets for cell in cells)
    return Shuffled(n, delta, promised.epsilon, ratio, blankets, attacked, protocol.traits.fresh, within)


def _answers(support: PureSupport, ratio: Fraction) -> tuple[PairLaw, PairLaw, PairLaw]:
    """Two answers, and what all others gave."""
    own = support.p / ratio
    alone = own - (support.q - own) / (ratio - 1)
    high, low = ratio * alone, alone
    one, other = (high, low, 1 - high - low), (low, high, 1 - high - low)
    third = support.third
    return one, other, other if third is None else (third, third, 1 - 2 * third)


def _several(each: Sequence[Shuffled]) -> Shuffled:
    """Several questions of one submission, whose reports travel together."""
    if not each:
        raise CannotShuffle("a submission without questions tells nothing")
    if len(each) == 1:
        return each[0]
    whole = product([worst(one.blankets) for one in each]) if all(one.blankets for one in each) else None
    ratio = math.prod((one.ratio for one in each), start=Fraction(1))
    level = sum((one.epsilon_0 for one in each), Fraction(0))
    within = next((one.within for one in each if one.within), "")
    blankets = (whole,) if whole else ()
    # Who sees one question alone can attack it, so the lower bounds of all of them hold.
    attacked = tuple(laws for one in each for laws in one.attacked)
    return Shuffled(each[0].n, each[0].delta, level, ratio, blankets, attacked, all(one.fresh for one in each), within)


# -- the other way round ------------------------------------------------------------------------------


def largest_epsilon(
    n: int, epsilon: Any, delta: Any, build: Callable[[Fraction], Any] | None = None, digits: int = 3
) -> Shuffled:
    """The largest epsilon_0 whose n shuffled reports have a central (epsilon, delta), rounded down to `digits` digits.

    Args:
        n: Number of honest reports.
        epsilon: The central epsilon.
        delta: The central delta.
        build: Makes a release from an epsilon_0; without it the bound for any protocol is used.
        digits: Significant digits of epsilon_0.

    Returns:
        The level at that epsilon_0; it is the central epsilon itself if nothing larger is possible.

    >>> from deniable.protocols import GRR
    >>> float(largest_epsilon(100_000, 1, 1e-8, lambda level: GRR(2, level)).epsilon_0)
    7.38
    """
    make = build or (lambda level: level)
    central = exact.as_epsilon(epsilon)

    def fits(level: Fraction) -> Shuffled | None:
        crowd = shuffled(make(level), n, delta)
        return crowd if crowd.delta_at(central) <= crowd.delta else None

    low, high = central, exact.LARGEST_EPSILON
    if fits(central) is None:
        raise NumberError(
            f"even epsilon_0 {exact.shown(central)} gives more: this build asks for more than it is given"
        )
    found = shuffled(make(central), n, delta)
    step = Fraction(10) ** (math.floor(math.log10(float(central))) + 1 - digits)
    places = [0, math.ceil((high - low) / step)]
    while places[1] - places[0] > 1:
        middle = sum(places) // 2
        # The number of people hides the difference between the answers from about ln(n) on: start low.
        if places[0] == 0:
            middle = min(middle, max(1, math.ceil((Fraction(math.log(n + 1)) + 2) / step)))
        crowd = fits(min(low + middle * step, high))
        if crowd is None:
            places[1] = middle
        else:
            places[0], found = middle, crowd
    return found


def fewest_people(release: Any, epsilon: Any, delta: Any) -> int:
    """The smallest number of honest reports of the release that have a central (epsilon, delta).

    Args:
        release: As for `shuffled`.
        epsilon: The central epsilon.
        delta: The central delta.

    Returns:
        The number of people.

    Raises:
        CannotShuffle: Ten thousand million reports are not enough.

    >>> fewest_people(3, epsilon=1, delta=1e-8) < 20_000
    True
    """
    central = exact.as_epsilon(epsilon)

    def enough(n: int) -> bool:
        crowd = shuffled(release, n, delta)
        return crowd.delta_at(central) <= crowd.delta

    high = 2
    if enough(1):
        return 1
    while not enough(high):
        if high == MOST_PEOPLE:
            raise CannotShuffle(f"even {MOST_PEOPLE:,} honest reports do not give a central {exact.shown(central)}")
        high = min(4 * high, MOST_PEOPLE)
    low = high // 4
    while high - low > max(1, high // 10_000):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


# -- numbers, rounded up ------------------------------------------------------------------------------


def _up(value: Fraction) -> float:
    """A float that is not below."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def rounded_up(epsilon: float) -> str:
    """An epsilon to four digits.

    >>> rounded_up(0.123412), rounded_up(2.0), rounded_up(12345.6)
    ('0.1235', '2', '12350')
    """
    return f"{Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(epsilon).normalize():f}"


def _smallest(bound: Callable[[float, int], float], delta: float, most: float) -> float:
    """An epsilon below `most` at which the bound is at most delta, close to the smallest; else `most`."""
    if bound(0.0, _COARSE) <= delta and bound(0.0, _FINE) <= delta:
        return 0.0

    def excess(epsilon: float, points: int) -> float:
        found = bound(epsilon, points)
        return math.log(found / delta) if found > 0 else -math.inf

    low, high = _between(excess, _COARSE, (0.0, math.inf), (most, -math.inf), 1e-3)
    if high < most and excess(high, _FINE) > 0:
        low, high = high, most
    # The finer grid is the tighter one: the end that is too small for the coarse one may do.
    right = excess(high, _FINE) if high < most else -math.inf
    low = 0.99 * low
    while (left := excess(low, _FINE)) <= 0:
        low, high, right = 0.9 * low, low, left
    return _between(excess, _FINE, (low, left), (high, right), _CLOSE)[1]


def _between(
    excess: Callable[[float, int], float],
    points: int,
    below: tuple[float, float],
    above: tuple[float, float],
    tolerance: float,
) -> tuple[float, float]:
    """A narrower pair of ends with the sign change, by false position; ends are given with their values."""
    (low, left), (high, right), side = below, above, 0
    while high - low > tolerance * high:
        known = math.isfinite(left) and math.isfinite(right)
        share = min(max(left / (left - right), 1e-3), 1 - 1e-3) if known else 0.5
        middle = low + (high - low) * share
        found = excess(middle, points)
        if found > 0:
            low, left, right = middle, found, right / 2 if side > 0 else right
            side = 1
        else:
            high, right, left = middle, found, left / 2 if side < 0 else left
            side = -1
    return low, high


def _blanket_delta(cells: Blanket, n: int, odds: Fraction, points: int) -> float:
    """E[(Z_1 + ... + Z_n)_+] / n, rounded up."""
    values = [(cell.mass, cell.one - odds * cell.other) for cell in cells]
    values.append((1 - sum((mass for mass, _ in values), Fraction(0)), Fraction(0)))
    if max(value for _, value in values) <= 0:
        return 0.0
    rough, weights = np.array([float(z) for _, z in values]), np.array([float(m) for m, _ in values])
    tilt = _tilt(rough, weights)
    spread = weights * np.exp(tilt * rough)
    variance = float(np.dot(spread, rough**2) / spread.sum())
    largest = float(np.abs(rough).max())
    half = min(_REACH * math.sqrt(n * variance) + 2 * largest, 1.01 * n * largest)
    step = Fraction(2 * half / (points - 4))
    # Each value is split between its neighbours on the grid so that its mean stays.
    masses: dict[int, Fraction] = {}
    for mass, value in values:
        place, part = divmod(value, step)
        for where, share in ((int(place), 1 - part / step), (int(place) + 1, part / step)):
            masses[where] = masses.get(where, Fraction(0)) + mass * share
    places = np.array([where for where, mass in masses.items() if mass])
    likely = np.array([_up(mass) for mass in masses.values() if mass])
    width = float(step)
    weighted = likely * np.exp(tilt * width * places)
    total = float(weighted.sum())
    law = np.zeros(points)
    np.add.at(law, places % points, weighted / total)
    transform = np.fft.rfft(law)
    size = np.abs(transform)
    with np.errstate(divide="ignore", under="ignore"):
        whole = np.where(size > 0, np.exp(n * np.log(np.where(size > 0, transform, 1.0))), 0.0)
        heights = np.minimum(size + 1e-13, 1.0) ** max(n - 1, 1)
    # `error` bounds the error of the transform of a law. A product of n transforms is off by n times that, relative to
    # the n - 1 others; the transform back adds the mean of that, and its own rounding.
    error = (8 * math.log2(points) + 32) * _UNIT
    mean = float(2 * heights.sum() / points)
    each = (n + 4) * error * mean * (1 + n * error)
    sums = np.fft.irfft(whole, points)[1 : points // 2]
    at = width * np.arange(1, points // 2)
    scale = math.log(total) * n
    found = float(np.dot(np.maximum(sums, 0.0) + each, at * np.exp(scale - tilt * at)))
    end = width * (points // 2)
    slack = math.exp(min(700.0, n * 64 * _UNIT)) * (1 + 1e-9)
    beyond = _beyond(places * width, likely, n, end, tilt)
    return min(1.0, (found + beyond) * slack / n + 1e-300)


def _tilt(values: Floats, weights: Floats) -> float:
    """The theta at which the law weighted by e^(theta z) has mean 0, roughly: any theta gives a true bound."""
    if float(np.dot(values, weights)) >= 0:
        return 0.0

    def mean(theta: float) -> float:
        return float(np.dot(weights * values, np.exp(theta * (values - values.max()))))

    high = 1.0 / float(values.max())
    while mean(high) < 0 and high < 1e9:
        high *= 2
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if mean(middle) > 0 else (middle, high)
    return low


def _beyond(values: Floats, weights: Floats, n: int, end: float, tilt: float) -> float:
    """At most E[S; S >= end], by Chernoff's inequality with the best of some thetas."""
    if n * float(values.max()) < end:
        return 0.0
    best = math.inf
    for factor in (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0, 40.0):
        theta = max(tilt, 1 / end) * factor
        if theta * end < 1 or theta * float(values.max()) > 600:
            continue
        moment = n * math.log(float(np.dot(weights, np.exp(theta * values)))) - theta * end
        best = min(best, end * math.exp(min(700.0, moment)))
    return best


def _tail(k: Floats, n: Floats, share: float) -> Floats:
    """P(Bin(n, share) > k)."""
    from scipy.special import betainc

    inside = (k >= 0) & (k < n)
    a, b = np.where(inside, k + 1, 1.0), np.where(inside, n - k, 1.0)
    found: Floats = np.where(inside, betainc(a, b, share), np.where(k < 0, 1.0, 0.0))
    return found


def _counts(n: int, share: float, most: int) -> tuple[Floats, Floats, float]:
    """Some blocks of the outcomes of Bin(n, share): their first outcome and probability; and that of the rest."""
    from scipy.special import betainc

    middle, deviation = n * share, math.sqrt(max(n * share * (1 - share), 1e-9))
    low, high = max(0, int(middle - 12 * deviation - 40)), min(n, int(middle + 12 * deviation + 40))
    blocks = min(most, high + 1 - low)
    edges = np.linspace(low, high + 1, blocks + 1).astype(np.int64).astype(np.float64)
    upper = _tail(edges - 1, np.full(edges.size, float(n)), share)
    inside = (edges > 0) & (edges <= n)
    a, b = np.where(inside, n - edges + 1, 1.0), np.where(inside, edges, 1.0)
    under = np.where(inside, betainc(a, b, 1 - share), np.where(edges <= 0, 0.0, 1.0))
    # Differences of the smaller tail: those of the larger one lose their digits.
    masses = np.where(edges[1:] > middle, upper[:-1] - upper[1:], under[1:] - under[:-1])
    return edges[:-1], np.maximum(masses, 0.0), float(under[0] + upper[-1])


def _clones_delta(n: int, ratio: Fraction, epsilon: float) -> float:
    """The delta of the clones, rounded up: with fewer clones it is larger, so blocks count as their fewest."""
    odds, truth = math.exp(epsilon) * (1 - 4 * _UNIT), float(ratio / (ratio + 1))
    if math.exp(epsilon) * (1 - 1e-12) >= ratio:
        return 0.0
    clones, masses, rest = _counts(n - 1, math.nextafter(float(1 / ratio), 0.0), _BLOCKS)
    bound = (clones + 1) * (odds * truth - (1 - truth)) / ((2 * truth - 1) * (1 + odds))
    best = np.zeros(clones.size)
    tails = {shift: _tail(np.floor(bound) + shift, clones, 0.5) for shift in (-2, -1, 0, 1)}
    for k in (-1, 0, 1):  # the collector's best event, whatever the rounding of the bound
        more, less = tails[k - 1] * (1 + _TRUST), tails[k]
        gain = (truth - odds * (1 - truth)) * more - (odds * truth - (1 - truth)) * less * (1 - _TRUST)
        best = np.maximum(best, gain)
    return min(1.0, float(np.dot(masses, best)) * (1 + _TRUST) + rest * (1 + _TRUST) + 1e-300)


def _attack_delta(n: int, odds: Fraction, one: PairLaw, other: PairLaw, rest: PairLaw) -> float:
    """P(E) - odds Q(E), rounded down: E is that enough of the reports for either answer are for the first."""
    gains = [float(p - odds * q) for p, q in zip(one, other, strict=True)]
    plus, minus, none = (gain / float(z) if z else 0.0 for gain, z in zip(gains, rest, strict=True))
    both = float(rest[0] + rest[1])
    reports, masses, beyond = _counts(n - 1, min(both, 1.0), n)

    def needed(number: Floats) -> Floats:
        """So many of the reports for either answer must be for the first, and one more."""
        found: Floats = np.floor((-number * minus - (n - number) * none) / (plus - minus))
        return found

    share = float(rest[0] / (rest[0] + rest[1]))
    likely = (
        _tail(needed(reports + 1) - 1, reports, share),
        _tail(needed(reports + 1), reports, share),
        _tail(needed(reports), reports, share),
    )
    found = sum(
        gain * float(np.dot(masses, chance)) * (1 - 3 * _TRUST if gain > 0 else 1 + 3 * _TRUST)
        for gain, chance in zip(gains, likely, strict=True)
    )
    # The event is about all n reports, and what is cut off here about n - 1 of them.
    cut = beyond + (float(masses[0]) if reports[0] > 0 else 0.0) + (float(masses[-1]) if reports[-1] < n - 1 else 0.0)
    return max(0.0, found - float(odds) * cut)


def _hull(points: Sequence[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """The points on the lower convex hull. Chords between points above a convex curve are above it, too."""
    hull: list[tuple[Fraction, Fraction]] = []
    for x, y in points:
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (x - x0) < (y - y0) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, y))
    return hull

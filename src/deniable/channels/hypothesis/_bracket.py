"""Proven lower and upper bounds on the error of the best test, when it cannot be enumerated.

Bayes      error = P(H1) R(t) at t = ln P(H1)/P(H0), bracketed by `_spectrum`, and cut by classical inequalities:
           Le Cam's and Chernoff's
Level      the least type-II error at type-I error alpha is the maximum over mu of R(mu) - mu alpha, a concave function
           (R(mu) = sum of min(mu P0, P1), Neyman and Pearson). Any mu gives a lower bound. Above, R between two
           thresholds lies under the chords of its neighbours prolonged, and past the outer thresholds it only falls
"""

from __future__ import annotations

import math
from itertools import pairwise

from deniable.channels.hypothesis._pair import EPS, Pair, bisect
from deniable.channels.hypothesis._spectrum import Spectrum, spectrum

FINE = 2**15
COARSE = 2**11
_NUDGE = 0.01
_EXCESSES = tuple(0.05 * 1.5**k for k in range(16))
# Type-II errors below e^-650 are reported as that.
_VANISHED = -650.0


def bayes_bracket(pair: Pair, n: int, prior: float, nodes: int = FINE) -> tuple[float, float, float]:
    """Bounds on the sum over sequences of min(prior P0, (1 - prior) P1), and about the test's type-I error."""
    log0, log1 = math.log(prior), math.log1p(-prior)
    shared = pair.log_shared(n)
    cap = min(log0 + shared[0], log1 + shared[1])
    if pair.llr.size == 0 or cap == -math.inf:
        return 0.0, 0.0, 0.0
    threshold = log1 - log0
    best = bisect(lambda s: n * pair.slope(s) > threshold * math.exp(pair.log_moment(s)), 0.0, 1.0)
    s = _safe_tilt(pair, n, best)
    wave = spectrum(pair, n, s, threshold, nodes, _NUDGE)
    low, high = (scaled(x, log1 + wave.log_scale) for x in wave.bracket())
    chernoff = math.exp(min(s * log0 + (1 - s) * log1 + n * pair.log_moment(s), 0.0))
    ulps = 64 * n * EPS
    lower = max(low, _le_cam(pair, n, prior) * (1 - ulps), _settled(pair, n, log0, log1) * (1 - ulps))
    upper = min(high, chernoff * (1 + ulps), math.exp(cap) * (1 + ulps))
    lower, upper = min(lower, upper), min(max(upper, math.nextafter(0.0, 1.0)), 1.0)
    return lower, upper, min(max(_type_one(wave), 0.0), (lower + upper) / 2 / prior)


def _type_one(wave: Spectrum) -> float:
    """About P0(L < center): the derivative of R in mu = e^-center."""
    near, far = (math.exp(-wave.s * x) * sum(wave.bracket(x)) / 2 for x in (-_NUDGE, _NUDGE))
    return scaled((near - far) / (2 * math.sinh(_NUDGE)), wave.log_scale + wave.center)


def level_bracket(pair: Pair, n: int, level: float, nodes: int = FINE) -> tuple[float, float]:
    """Bounds on the least type-II error of a test whose type-I error is at most `level`."""
    shared0, shared1 = (math.exp(x) for x in pair.log_shared(n))
    if pair.llr.size == 0 or level >= shared0 or shared1 == 0:
        return 0.0, 0.0
    s = _safe_tilt(pair, n, _tilt_for_level(pair, n, level))
    # Chernoff: at the threshold t where rho^n e^((1-s) t) = level, type II is at most rho^n e^(-s t).
    moment = n * pair.log_moment(s)
    chernoff = moment - s * (math.log(level) - moment) / (1 - s)
    if chernoff < _VANISHED:
        return 0.0, math.exp(_VANISHED)
    center = n * pair.mean(s)
    roam = 4 * math.sqrt(n) * pair.deviation(s) + 2
    center += _summit(spectrum(pair, n, s, center, COARSE, roam), level, roam)
    wave = spectrum(pair, n, s, center, nodes, 8.0)
    floor, ceiling = _climb(wave, level)
    lower = scaled(floor, wave.log_scale)
    ulps = 64 * n * EPS * (1 + float(abs(pair.llr).max()))
    caps = (shared1 * (1 - level / shared0), math.exp(min(chernoff, 0.0)))
    upper = min(scaled(ceiling, wave.log_scale), min(caps) * (1 + ulps))
    return min(lower, upper, 1.0), min(max(upper, math.nextafter(0.0, 1.0)), 1.0)


def scaled(x: float, log_scale: float) -> float:
    """x e^log_scale without overflow on the way."""
    if x <= 0 or x == math.inf:
        return max(x, 0.0)
    exponent = math.log(x) + log_scale
    return math.exp(exponent) if exponent < 709 else math.inf


def _climb(wave: Spectrum, level: float) -> tuple[float, float]:
    """Bounds on the maximum of (R(mu) - mu level) / e^log_scale: zoom in on it until rounding blurs the picture."""
    floor, ceiling, shift, step = 0.0, math.inf, 0.0, 0.02
    for _ in range(9):
        low, high, where = _around(wave, level, shift, step)
        floor, ceiling = max(floor, low), min(ceiling, high)
        if high == math.inf and ceiling < math.inf:
            break
        shift = max(-4.0, min(4.0, where))
        step = min(step * 6, 1.0) if high == math.inf else step / 6
    return floor, ceiling


def _around(wave: Spectrum, level: float, middle: float, step: float) -> tuple[float, float, float]:
    """Bounds on the maximum from seven thresholds `step` apart, and the shift where it seems to lie.

    The upper bound is infinite when the maximum may lie outside.
    """
    cost = scaled(1.0, math.log(level) - wave.center - wave.log_scale)
    blur = 8 * EPS * (1 + abs(wave.center) + abs(wave.log_scale))
    places, low, high = [], [], []
    for i in range(-3, 4):
        shift = middle - i * step
        least, most = wave.bracket(shift)
        factor, mu = math.exp(-wave.s * shift), math.exp(-shift)
        places.append(mu)
        low.append(least * factor * (1 - blur) - mu * cost * (1 + blur))
        high.append(most * factor * (1 + blur) - mu * cost * (1 - blur))
    seen = max(range(7), key=lambda j: low[j] + high[j])
    if not (low[1] > high[0] and low[5] > high[6]):
        return max(low), math.inf, -math.log(places[seen])
    ceiling, where = -math.inf, places[seen]
    for j, (left, right) in enumerate(pairwise(places)):
        lines = []
        if j > 0:
            lines.append(_line(places[j - 1], low[j - 1], left, high[j]))
        if j < 5:
            lines.append(_line(places[j + 2], low[j + 2], right, high[j + 1]))
        height, place = _highest(lines, left, right)
        if height > ceiling:
            ceiling, where = height, place
    # The lines are drawn in floats: an ulp of slope over one step, a few times.
    return max(low), max(ceiling, 0.0) + 64 * EPS * max(map(abs, high)), -math.log(where)


def _line(x0: float, y0: float, x1: float, y1: float) -> tuple[float, float]:
    """(slope, value at zero) of the line through two points."""
    slope = (y1 - y0) / (x1 - x0)
    return slope, y1 - slope * x1


def _highest(lines: list[tuple[float, float]], left: float, right: float) -> tuple[float, float]:
    """The maximum over [left, right] of the least of one or two lines, and its place."""
    points = [left, right]
    if len(lines) == 2 and lines[0][0] != lines[1][0]:
        crossing = (lines[1][1] - lines[0][1]) / (lines[0][0] - lines[1][0])
        points.append(min(max(crossing, left), right))
    return max((min(slope * x + base for slope, base in lines), x) for x in points)


def _summit(wave: Spectrum, level: float, roam: float) -> float:
    """Roughly the shift at which R(mu) - mu level is largest (golden section; only the speed depends on it)."""
    cost = math.log(level) - wave.center - wave.log_scale

    def height(shift: float) -> float:
        return math.exp(min(-wave.s * shift, 700.0)) * sum(wave.bracket(shift)) / 2 - math.exp(min(cost - shift, 700.0))

    ratio = (math.sqrt(5) - 1) / 2
    low, high = -roam, roam
    first, second = high - ratio * (high - low), low + ratio * (high - low)
    at_first, at_second = height(first), height(second)
    while high - low > 0.02:
        if at_first > at_second:
            high, second, at_second = second, first, at_first
            first = high - ratio * (high - low)
            at_first = height(first)
        else:
            low, first, at_first = first, second, at_second
            second = low + ratio * (high - low)
            at_second = height(second)
    return (low + high) / 2


def _tilt_for_level(pair: Pair, n: int, level: float) -> float:
    """The s whose tilted mean is a threshold of about that level, by the normal tail at sqrt(2 n KL(w_s || P0))."""

    def lenient(s: float) -> bool:
        exponent = max(-(1 - s) * pair.mean(s) - pair.log_moment(s), 0.0)
        return math.erfc(math.sqrt(n * exponent)) / 2 > level

    return bisect(lenient, 0.0, 1.0)


def _safe_tilt(pair: Pair, n: int, s: float) -> float:
    """Keep both decay rates above one standard deviation of L: a mean off by that much costs nothing."""
    margin = min(0.25, 1 / max(math.sqrt(n) * pair.deviation(s), 1e-300))
    return min(max(s, margin), 1 - margin)


def _settled(pair: Pair, n: int, log0: float, log1: float) -> float:
    """A lower bound that is sharp when open questions nearly all go one way.

    The sum of min is at least prior_1 (P1(open) - P1(L < t)), and a Chernoff bound, s < 0, caps the last; or the same
    with the hypotheses exchanged, s > 1.
    """
    threshold = log1 - log0
    shared0, shared1 = pair.log_shared(n)
    best = 0.0
    for excess in _EXCESSES:
        below = n * pair.log_moment(-excess) + excess * threshold - shared1
        above = n * pair.log_moment(1 + excess) - excess * threshold - shared0
        best = max(
            best,
            math.exp(log1 + shared1) * -math.expm1(min(below, 0.0)),
            math.exp(log0 + shared0) * -math.expm1(min(above, 0.0)),
        )
    return best


def _le_cam(pair: Pair, n: int, prior: float) -> float:
    """(1 - sqrt(1 - 4 prior (1 - prior) BC^2n)) / 2, since BC^2n <= (integral of min) (integral of max)."""
    square = 4 * prior * (1 - prior) * math.exp(2 * n * pair.log_moment(0.5))
    return square / (1 + math.sqrt(max(1 - square, 0.0))) / 2

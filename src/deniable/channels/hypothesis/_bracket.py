"""The log-likelihood ratio of two laws, and proven bounds on the error of the best test with it.

Two laws of one observation are reduced to a `Pair`, which holds all that a test can use. Outputs of equal ratio are
merged (lossless: the ratio is sufficient), impossible ones dropped. Outputs that only one law can produce decide the
question at once, so they are kept as two masses, `only0` and `only1`; the rest have probabilities p, q > 0 and ratios
l = ln(p/q), ascending. The tilted laws w_s = p^s q^(1-s) / rho(s) on the common outputs, 0 <= s <= 1, are the basis of
every bound of this package: -min ln rho is the Chernoff information. All sums are arranged so that laws 1e-9 apart
lose no accuracy.

Proven lower and upper bounds on the error of the best test, when it cannot be enumerated.

Quantity   R(t) = sum over sequences of min(e^-t P0, P1), the unnormalized Bayes error at threshold t
Formula    R(t) = rho^n e^(-s t) E[g(L - t)], with L the sum of n log-likelihood ratios drawn from the tilted law
           w_s, and g(x) = min(e^((1-s) x), e^(-s x)); the tilt makes E[g] moderate even when R is e^-500
Bounds     g lies between two band-limited functions (`majorant`, `minorant`), whose expectations are finite sums
           (1/N) sum over |k| < N of transform(k/N) phi(2 pi k/W)^n e^(-2 pi i k t/W): no rounding of the ratios to a
           grid, so the width does not grow with n. It is about (W/N)^2 / 16 of R
Period     the sums see g repeated with period W. For the majorant that only adds; from the minorant's sum we subtract
           the most that the copies can add: a Chernoff bound puts |L - t| within W/2, where copies are below e^(-sW/2)
Rounding   every float error is bounded and added: in phi, in its n-th power, in the transforms, and (as a relative
           factor) the n roundings of the ratios and weights themselves
Bayes      error = P(H1) R(t) at t = ln P(H1)/P(H0), cut by classical inequalities: Le Cam's and Chernoff's
Level      the least type-II error at type-I error alpha is the maximum over mu of R(mu) - mu alpha, a concave function
           (R(mu) = sum of min(mu P0, P1), Neyman and Pearson). Any mu gives a lower bound. Above, R between two
           thresholds lies under the extended chords of its neighbours, and past the outer thresholds it only falls
Cost       one product of matrices, N r multiplications for r different ratios, independent of n

The functions that bound g are entire of type 2 pi, so their Fourier transforms vanish outside (-1, 1) and an
expectation of them is a finite trigonometric sum. With a and b as decay rates,

    g(x) = e^(-a x) for x >= 0,  e^(b x) for x < 0        with  minorant <= g <= majorant  everywhere

they interpolate g and g' at a lattice, as Graham and Vaaler do:

    F(x) = (sin pi y / pi)^2 sum over k of [ g(k+c) / (y-k)^2 + d_k / (y-k) ],   y = x - c
    F^(u) = e^(-2 pi i u c) [ (1-|u|) sum g(k+c) e^(-2 pi i k u) + sgn(u)/(2 pi i) sum d_k e^(-2 pi i k u) ]

Majorant   c = 0, d_k = g'(k) except d_0, which is chosen so that the d_k sum to zero
Minorant   d_k = g'(k+c), with the c in (0, 1) for which the d_k sum to zero
Why        With B(v) = v / (e^v - 1), and for x > 0, (pi / sin pi y)^2 (F - g) is the Laplace transform in t of
             majorant:  t + B(a) - B(a-t) - B(b) + B(b+t)                 >= 0, as -B' decreases and -B'(v) - B'(-v) = 1
             minorant:  e^(bc) B(b+t) - e^(-ac) B(t-a), zero at t = 0     <= 0, as B is log-concave
           (the second holds for all y > -1, so on 0 <= x < c too); x < 0 is the mirror image
Gap        majorant - minorant integrates to O(a + b) against 1/a + 1/b for g, so relative O(a b)
Source     Graham and Vaaler 1981 (symmetric case and truncated exponential); Vaaler 1985
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.channels.divergences import exp_gap, log_gap
from deniable.channels.laws import Floats, probability_vector

EPS = float(np.finfo(np.float64).eps)
# Ratios that differ by less than this, relative to 1 + |l|, are the same ratio, rounded twice.
SAME = 16 * EPS


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two laws on their common outputs, by ascending log-likelihood ratio."""

    p: Floats
    q: Floats
    llr: Floats
    only0: float
    only1: float

    def log_shared(self, n: int) -> tuple[float, float]:
        """ln of the probability that n observations do not decide the question, under each law."""
        return n * _log1m(self.only0), n * _log1m(self.only1)

    def _mixed(self, s: float) -> Floats:
        """p^s q^(1-s), from the larger of the two, so that nothing overflows for 0 <= s <= 1."""
        with np.errstate(over="ignore", under="ignore"):
            return np.where(self.llr > 0, self.p * np.exp((s - 1) * self.llr), self.q * np.exp(s * self.llr))

    def log_moment(self, s: float) -> float:
        """ln rho(s) = ln sum p^s q^(1-s)."""
        mixed = self._mixed(s)
        whole = float(mixed.sum())
        if not 0.5 < whole < 2:
            return math.log(whole) if whole > 0 else -math.inf
        with np.errstate(all="ignore"):
            near = self.q * (exp_gap(s * self.llr) - s * log_gap((self.p - self.q) / self.q))
        terms = np.where(np.abs(self.llr) < 0.5, near, mixed - s * self.p - (1 - s) * self.q)
        return math.log1p(math.fsum(terms) - s * self.only0 - (1 - s) * self.only1)

    def slope(self, s: float) -> float:
        """rho'(s) = sum p^s q^(1-s) ln(p/q); its sign tells on which side of s the minimum lies."""
        with np.errstate(all="ignore"):
            near = self.q * (np.expm1(s * self.llr) * self.llr - log_gap((self.p - self.q) / self.q))
        far = self._mixed(s) * self.llr - (self.p - self.q)
        return math.fsum(np.where(np.abs(self.llr) < 0.5, near, far)) + self.only1 - self.only0

    def tilted(self, s: float) -> Floats:
        """The law w_s."""
        weights = self._mixed(s)
        return np.asarray(weights / weights.sum(), dtype=np.float64)

    def mean(self, s: float) -> float:
        """The mean of l under w_s, which increases with s."""
        return self.slope(s) * math.exp(-self.log_moment(s))

    def deviation(self, s: float) -> float:
        """The standard deviation of l under w_s."""
        weights = self.tilted(s)
        return math.sqrt(float(weights @ (self.llr - weights @ self.llr) ** 2))


def _log1m(x: float) -> float:
    return math.log1p(-x) if x < 1 else -math.inf


def log_ratio(p: Floats, q: Floats) -> Floats:
    """ln(p/q) for p, q > 0, to relative rounding even when they nearly agree."""
    gap = (p - q) / q
    with np.errstate(all="ignore"):
        ratio = np.log(p / q)
        far = np.where(np.isfinite(ratio), ratio, np.log(p) - np.log(q))
        return np.where(np.abs(gap) < 0.5, np.log1p(np.clip(gap, -0.5, 0.5)), far)


def read_pair(m0: ArrayLike, m1: ArrayLike) -> Pair:
    """Check two laws of one observation and reduce them."""
    first = probability_vector(m0, what="first distribution")
    second = probability_vector(m1, first.size, what="second distribution")
    both = (first > 0) & (second > 0)
    p, q = first[both], second[both]
    llr = log_ratio(p, q)
    order = np.argsort(llr, kind="stable")
    p, q, llr = p[order], q[order], llr[order]
    starts: list[int] = []
    for i, value in enumerate(llr):
        if not starts or value - llr[starts[-1]] > SAME * (1 + abs(value)):
            starts.append(i)
    if starts and len(starts) < llr.size:
        p, q = np.add.reduceat(p, starts), np.add.reduceat(q, starts)
        llr = log_ratio(p, q)
    return Pair(p, q, llr, math.fsum(first[second == 0]), math.fsum(second[first == 0]))


def bisect(rises: Callable[[float], bool], low: float, high: float, steps: int = 60) -> float:
    """The point of [low, high] where the predicate turns from False to True."""
    for _ in range(steps):
        middle = (low + high) / 2
        if rises(middle):
            high = middle
        else:
            low = middle
    return (low + high) / 2


Complexes = NDArray[np.complex128]

# P(|L - center| > reach) is at most twice this under the tilted law.
_STRAY = 1e-14
_SILENCE = 1e-24

FINE = 2**15
COARSE = 2**11
_NUDGE = 0.01
_CHORDS = tuple(1e-5 * 2.0**k for k in range(18))
_EXCESSES = tuple(0.05 * 1.5**k for k in range(16))
# Smaller type-II errors than e^-650 are reported as e^-650.
_VANISHED = -650.0


# -- band-limited functions on both sides of g ----------------------------------------------------------


def _bernoulli(v: float) -> float:
    return v * math.exp(-v) / -math.expm1(-v)


def _log_sinhc(v: float) -> float:
    """ln( sinh(v/2) / (v/2) ), to rounding."""
    if abs(v) < 0.1:
        w = v * v
        return w * (1 / 24 - w * (1 / 2880 - w * (1 / 181440 - w / 9676800)))
    return v / 2 + math.log(-math.expm1(-v) / v)


def _resolvent(rate: float, u: Floats) -> Complexes:
    """1 / (1 - e^(-rate - 2 pi i u)): the sum of e^(-rate k) e^(-2 pi i k u) over k >= 0."""
    return np.asarray(-1 / np.expm1(-(rate + 2j * np.pi * u)), dtype=np.complex128)


def majorant(a: float, b: float, u: Floats) -> Complexes:
    """Transform of the majorant at 0 <= u < 1."""
    right = _resolvent(a, u)
    left = np.conj(_resolvent(b, u))
    bend = a * (1 - right) + b * (left - 1) + _bernoulli(a) - _bernoulli(b)
    return np.asarray((1 - u) * (right + left - 1) + np.where(u > 0, bend, 0) / (2j * np.pi), np.complex128)


def minorant(a: float, b: float, u: Floats) -> Complexes:
    """Transform of the minorant at 0 <= u < 1."""
    c = 0.5 + (_log_sinhc(b) - _log_sinhc(a)) / (a + b)
    right = math.exp(-a * c) * _resolvent(a, u)
    left = math.exp(-b * (1 - c)) * np.exp(2j * np.pi * u) * np.conj(_resolvent(b, u))
    bend = b * left - a * right
    inner = (1 - u) * (right + left) + np.where(u > 0, bend, 0) / (2j * np.pi)
    return np.asarray(np.exp(-2j * np.pi * u * c) * inner, dtype=np.complex128)


def resolution(a: float, b: float, u: Floats) -> Floats:
    """A bound on |transform| condition: rounding in the resolvents is at most a few ulp times this."""
    near = np.minimum(u, 1 - u)
    # |1 - e^(-r - 2 pi i u)| is at least both of these up to a factor of two
    distance = np.minimum(np.maximum(min(a, b, 1.0) / 2, 2 * near), 1.0)
    return np.asarray(4 * (1 + 1 / distance**2), dtype=np.float64)


# -- the tilted n-fold law in the frequency domain ------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """The tilted n-fold law in the frequency domain; `bracket(shift)` reads R at threshold center + shift."""

    s: float
    center: float
    log_scale: float
    period: float
    reach: float
    frequency: Floats
    over: Complexes
    under: Complexes
    noise: float
    tremor: float
    doubt: float

    def bracket(self, shift: float = 0.0) -> tuple[float, float]:
        """Bounds on E[g(L - center - shift)]; R is e^(log_scale - s shift) times it."""
        turn = np.exp(-1j * shift * self.frequency)
        noise = self.noise + self.tremor * abs(shift)
        high = float((self.over * turn).real.sum()) + noise
        low = float((self.under * turn).real.sum()) - noise - self._copies(shift)
        return max(low, 0.0) * math.exp(-self.doubt), min(max(high, 0.0) * math.exp(self.doubt), 1.0)

    def _copies(self, shift: float) -> float:
        """The most that the periodic copies of g can have added."""
        if abs(shift) + self.reach > self.period / 2:
            return math.inf
        return sum(
            (2 * _STRAY + math.exp(-rate * self.period / 2)) / -math.expm1(-rate * self.period)
            for rate in (self.s, 1 - self.s)
        )


def spectrum(pair: Pair, n: int, s: float, center: float, nodes: int, roam: float = 0.0) -> Spectrum:
    """Prepare for thresholds within `roam` of `center`, tilted by 0 < s < 1."""
    weights = pair.tilted(s)
    steps = pair.llr - center / n
    reach = max(_reach(weights, steps, n), _reach(weights, -steps, n))
    period = 2 * max(reach + roam, 28 / min(s, 1 - s))
    a, b = s * period / nodes, (1 - s) * period / nodes
    k = np.arange(nodes)
    phi = _characteristic(weights, steps, 2 * np.pi / period, nodes)
    slip = EPS * (16 + 4 * weights.size + 8 * np.pi / period * k * float(weights @ np.abs(steps)))
    top = np.abs(phi) + slip
    crest = np.exp(n * np.log(top))
    # Both transforms are below 3/a + 3/b + 3 in size, so frequencies that have died out can be skipped.
    audible = crest > _SILENCE
    dropped = 2 / nodes * (3 / a + 3 / b + 3) * float(crest[~audible].sum())
    k, phi, slip, top, crest = k[audible], phi[audible], slip[audible], top[audible], crest[audible]
    with np.errstate(all="ignore"):
        power = np.where(phi == 0, 0, np.exp(n * np.log(phi)))
    slack = crest * (n * slip / top + (8 * n + 1000) * EPS)
    above, below = majorant(a, b, k / nodes), minorant(a, b, k / nodes)
    size = np.maximum(np.abs(above), np.abs(below))
    # Frequencies come in conjugate pairs, except zero.
    share = np.where(k == 0, 1, 2) / nodes
    fuzz = 16 * EPS * resolution(a, b, k / nodes) * crest + size * (slack + 64 * EPS * crest)
    return Spectrum(
        s=s,
        center=center,
        log_scale=n * pair.log_moment(s) - s * center,
        period=period,
        reach=reach,
        frequency=2 * np.pi / period * k,
        over=above * power * share,
        under=below * power * share,
        noise=float(share @ fuzz) + dropped,
        tremor=16 * np.pi * EPS / period * float(share @ (size * crest * k)),
        doubt=2 * n * SAME * (1 + float(np.abs(pair.llr).max())) + 4 * EPS * abs(center),
    )


def _characteristic(weights: Floats, steps: Floats, frequency: float, nodes: int) -> Complexes:
    """E e^(i k frequency step) for 0 <= k < nodes; k = width a + b turns the sums into one matrix product."""
    width = 2 ** (nodes.bit_length() // 2)
    turn = 1j * frequency * steps
    coarse = np.exp(np.outer(width * np.arange(-(-nodes // width)), turn)) * weights
    fine = np.exp(np.outer(turn, np.arange(width)))
    return np.asarray((coarse @ fine).ravel()[:nodes], dtype=np.complex128)


def _reach(weights: Floats, steps: Floats, n: int) -> float:
    """A distance that the sum of n steps exceeds with probability at most _STRAY (Chernoff; any v is valid)."""
    spread = math.sqrt(n * float(weights @ steps**2)) + 1e-300
    best = math.inf
    for v in np.geomspace(0.5, 200, 60) / spread:
        exponent = v * steps
        peak = float(exponent.max())
        moment = peak + math.log(float(weights @ np.exp(exponent - peak)))
        best = min(best, (max(n * moment, 0.0) + n * 8 * EPS - math.log(_STRAY)) / v)
    return best


# -- the brackets ---------------------------------------------------------------------------------------


def bayes_bracket(pair: Pair, n: int, prior: float, nodes: int = FINE) -> tuple[float, float, float]:
    """Bounds on the sum over sequences of min(prior P0, (1 - prior) P1), and the approximate type-I error."""
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
    """Approximate P0(L < center): the derivative of R in mu = e^-center."""
    near, far = (math.exp(-wave.s * x) * sum(wave.bracket(x)) / 2 for x in (-_NUDGE, _NUDGE))
    return scaled((near - far) / (2 * math.sinh(_NUDGE)), wave.log_scale + wave.center)


def level_bracket(pair: Pair, n: int, level: float, nodes: int = FINE) -> tuple[float, float]:
    """Bounds on the smallest type-II error of a test with type-I error at most `level`."""
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


def tail_bracket(pair: Pair, n: int, threshold: float, nodes: int = FINE) -> tuple[float, float]:
    """Bounds on P0(L <= threshold), for a threshold with at most rounding error.

    R(mu) is concave with slope P0(L < -ln mu) to the right of mu and P0(L <= -ln mu) to its left. So chords of R that
    end at the threshold bound the probability, whatever their length; the best of several is used.
    """
    shared0 = math.exp(pair.log_shared(n)[0])
    if pair.llr.size == 0:
        return 0.0, 0.0
    best = bisect(lambda s: n * pair.mean(s) > threshold, 0.0, 1.0)
    s = _safe_tilt(pair, n, best)
    wave = spectrum(pair, n, s, threshold, nodes, 4.0)
    blur = 64 * EPS * (1 + abs(threshold) + n * float(np.abs(pair.llr).max()))
    ulps = 64 * EPS * (1 + abs(wave.center) + abs(wave.log_scale))
    near_low = math.exp(s * blur) * wave.bracket(-blur)[1]
    near_high = math.exp(-s * blur) * wave.bracket(blur)[1]
    floor, ceiling = 0.0, math.inf
    for step in _CHORDS:
        far_low, far_high = wave.bracket(-step)[0], wave.bracket(step)[0]
        rise = math.exp(s * step) * far_low - near_low
        floor = max(floor, rise / (math.expm1(step) - math.expm1(blur)))
        fall = near_high - math.exp(-s * step) * far_high
        ceiling = min(ceiling, fall / (math.expm1(-blur) - math.expm1(-step)))
    scale = wave.log_scale + wave.center
    chernoff = math.exp(min(n * pair.log_moment(s) + (1 - s) * threshold, 0.0))
    upper = min(scaled(max(ceiling, 0.0), scale), chernoff, shared0) * (1 + ulps)
    upper = min(max(upper, math.nextafter(0.0, 1.0)), 1.0)
    return min(scaled(floor, scale) * (1 - ulps), upper), upper


def scaled(x: float, log_scale: float) -> float:
    """x e^log_scale without intermediate overflow."""
    if x <= 0 or x == math.inf:
        return max(x, 0.0)
    exponent = math.log(x) + log_scale
    return math.exp(exponent) if exponent < 709 else math.inf


def _climb(wave: Spectrum, level: float) -> tuple[float, float]:
    """Bounds on the maximum of (R(mu) - mu level) / e^log_scale: zoom in until rounding limits the resolution."""
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
    """Bounds on the maximum from seven thresholds `step` apart, and the shift where it appears to be.

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
    # The lines are computed in floats: allow a few ulps of slope over one step.
    return max(low), max(ceiling, 0.0) + 64 * EPS * max(map(abs, high)), -math.log(where)


def _line(x0: float, y0: float, x1: float, y1: float) -> tuple[float, float]:
    """(slope, value at zero) of the line through two points."""
    slope = (y1 - y0) / (x1 - x0)
    return slope, y1 - slope * x1


def _highest(lines: list[tuple[float, float]], left: float, right: float) -> tuple[float, float]:
    """The maximum over [left, right] of the minimum of one or two lines, and its position."""
    points = [left, right]
    if len(lines) == 2 and lines[0][0] != lines[1][0]:
        crossing = (lines[1][1] - lines[0][1]) / (lines[0][0] - lines[1][0])
        points.append(min(max(crossing, left), right))
    return max((min(slope * x + base for slope, base in lines), x) for x in points)


def _summit(wave: Spectrum, level: float, roam: float) -> float:
    """The approximate shift at which R(mu) - mu level is largest (golden section; it affects only the speed)."""
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
    """Keep both decay rates above one standard deviation of L: an error of that size in the mean does no harm."""
    margin = min(0.25, 1 / max(math.sqrt(n) * pair.deviation(s), 1e-300))
    return min(max(s, margin), 1 - margin)


def _settled(pair: Pair, n: int, log0: float, log1: float) -> float:
    """A lower bound that is sharp if undecided questions nearly all go one way.

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

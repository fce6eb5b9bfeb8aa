"""A proven bracket for the overlap of two n-fold laws, whatever n and however many outputs.

Quantity   R(t) = sum over sequences of min(e^-t P0, P1), the unnormalized Bayes error at threshold t
Formula    R(t) = rho^n e^(-s t) E[g(L - t)], with L the sum of n log-likelihood ratios drawn from the tilted law
           w_s, and g(x) = min(e^((1-s) x), e^(-s x)); the tilt makes E[g] moderate even when R is e^-500
Bounds     g lies between two band-limited functions (`_kernels`), whose expectations are finite sums
           (1/N) sum over |k| < N of transform(k/N) phi(2 pi k/W)^n e^(-2 pi i k t/W): no rounding of the ratios to a
           grid, so the width does not grow with n. It is about (W/N)^2 / 16 of R
Period     the sums see g repeated with period W. For the majorant that only adds; from the minorant's sum we subtract
           what the copies can add: a Chernoff bound puts |L - t| within W/2, where copies are below e^(-sW/2)
Rounding   every float error is bounded and added: in phi, in its n-th power, in the transforms, and (as a relative
           factor) the n roundings of the ratios and weights themselves
Cost       one product of matrices, N r multiplications for r different ratios, independent of n
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deniable.channels._vectors import Floats
from deniable.channels.hypothesis._kernels import Complexes, majorant, minorant, resolution
from deniable.channels.hypothesis._pair import EPS, SAME, Pair

# P(|L - center| > reach) is at most twice this under the tilted law.
_STRAY = 1e-14
_SILENCE = 1e-24


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
    # Both transforms are below 3/a + 3/b + 3 in size, so frequencies that have died out need not be looked at.
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

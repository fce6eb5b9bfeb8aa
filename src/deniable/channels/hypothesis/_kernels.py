"""Band-limited bounds on both sides of the two-sided exponential: the arithmetic behind the bracket.

    g(x) = e^(-a x) for x >= 0,  e^(b x) for x < 0        with  minorant <= g <= majorant  everywhere

Both bounds are entire functions of type 2 pi, so their Fourier transforms vanish outside (-1, 1) and an expectation
of them is a finite trigonometric sum. They interpolate g and g' at a lattice, as Graham and Vaaler do:

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

import numpy as np
from numpy.typing import NDArray

from deniable.channels._vectors import Floats

Complexes = NDArray[np.complex128]


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

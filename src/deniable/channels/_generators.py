"""The built-in f-divergence generators, each with f(1) = f'(1) = 0, vectorised and free of cancellation.

For each: f(u), f'(u), the conjugate f*(t) = sup over u >= 0 of t u - f(u), and terms(p, q) = q f(p/q) for p, q > 0.

    kl           u ln u - u + 1                       e^t - 1
    reverse-kl   u - 1 - ln u                         -ln(1 - t),        t < 1
    tv           |u - 1| / 2                          max(t, -1/2),      t <= 1/2
    chi2         (u - 1)^2                            t + t^2/4,         t >= -2; -1 below
    hellinger2   (sqrt u - 1)^2 / 2                   t / (1 - 2 t),     t < 1/2
    js           (u ln u - (1+u) ln((1+u)/2)) / 2     -ln(2 - e^2t) / 2, t < ln(2) / 2
"""

from __future__ import annotations

import numpy as np

from deniable.channels._vectors import Floats

# Inside |d| < 0.1 the power series below reach rounding with this many terms.
_NEAR = 0.1
_TERMS = 17


def log_gap(d: Floats) -> Floats:
    """d - ln(1 + d) >= 0: the sum of (-d)^k / k over k >= 2 where that is better."""
    with np.errstate(all="ignore"):
        near = np.where(np.abs(d) < _NEAR, d, 0.0)
        series = np.zeros_like(near)
        for k in range(_TERMS, 1, -1):
            series = 1 / k - near * series
        return np.where(np.abs(d) < _NEAR, near**2 * series, d - np.log1p(d))


def exp_gap(v: Floats) -> Floats:
    """e^v - 1 - v >= 0."""
    with np.errstate(all="ignore"):
        near = np.where(np.abs(v) < _NEAR, v, 0.0)
        series = np.ones_like(near)
        for k in range(_TERMS, 2, -1):
            series = 1 + near / k * series
        return np.where(np.abs(v) < _NEAR, near**2 / 2 * series, np.expm1(v) - v)


def _entropy(d: Floats) -> Floats:
    """(1 + d) ln(1 + d) - d >= 0, with value 1 at d = -1."""
    with np.errstate(all="ignore"):
        near = np.where(np.abs(d) < _NEAR, d, 0.0)
        series = np.zeros_like(near)
        for k in range(_TERMS, 1, -1):
            series = 1 / (k * (k - 1)) - near * series
        far = np.where(d > -1, (1 + d) * np.log1p(d) - d, 1.0)
        return np.where(np.abs(d) < _NEAR, near**2 * series, far)


def kl(u: Floats) -> Floats:
    return _entropy(np.asarray(u, np.float64) - 1)


def kl_slope(u: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(u)


def kl_conjugate(t: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.expm1(t)


def kl_terms(p: Floats, q: Floats) -> Floats:
    with np.errstate(all="ignore"):
        gap = (p - q) / q
        ratio = np.log(p / q)
        far = p * np.where(np.isfinite(ratio), ratio, np.log(p) - np.log(q)) - (p - q)
        return np.where(np.abs(gap) < 0.5, q * _entropy(gap), far)


def reverse_kl(u: Floats) -> Floats:
    return log_gap(np.asarray(u, np.float64) - 1)


def reverse_kl_slope(u: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return 1 - 1 / np.asarray(u, np.float64)


def reverse_kl_conjugate(t: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.where(np.asarray(t) < 1, -np.log1p(-np.minimum(t, 1.0)), np.inf)


def reverse_kl_terms(p: Floats, q: Floats) -> Floats:
    return kl_terms(q, p)


def tv(u: Floats) -> Floats:
    return np.abs(np.asarray(u, np.float64) - 1) / 2


def tv_slope(u: Floats) -> Floats:
    return np.sign(np.asarray(u, np.float64) - 1) / 2


def tv_conjugate(t: Floats) -> Floats:
    return np.where(np.asarray(t) <= 0.5, np.maximum(t, -0.5), np.inf)


def tv_terms(p: Floats, q: Floats) -> Floats:
    return np.abs(p - q) / 2


def chi2(u: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return (np.asarray(u, np.float64) - 1) ** 2


def chi2_slope(u: Floats) -> Floats:
    return 2 * (np.asarray(u, np.float64) - 1)


def chi2_conjugate(t: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.where(np.asarray(t) >= -2, t + np.square(t) / 4, -1.0)


def chi2_terms(p: Floats, q: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return (p - q) * ((p - q) / q)


def hellinger2(u: Floats) -> Floats:
    gap: Floats = (u - 1) / (np.sqrt(u) + 1)
    return gap**2 / 2


def hellinger2_slope(u: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return (1 - 1 / np.sqrt(u)) / 2


def hellinger2_conjugate(t: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.where(np.asarray(t) < 0.5, t / (1 - 2 * np.asarray(t, np.float64)), np.inf)


def hellinger2_terms(p: Floats, q: Floats) -> Floats:
    gap: Floats = (p - q) / (np.sqrt(p) + np.sqrt(q))
    return gap**2 / 2


def js(u: Floats) -> Floats:
    d = np.asarray(u, np.float64) - 1
    return np.maximum(_entropy(d) / 2 - _entropy(d / 2), 0.0)


def js_slope(u: Floats) -> Floats:
    with np.errstate(all="ignore"):
        u = np.asarray(u, np.float64)
        return np.where(u < 2, np.log(2 * u / (1 + u)), np.log(2.0) - np.log1p(1 / u)) / 2


def js_conjugate(t: Floats) -> Floats:
    with np.errstate(all="ignore"):
        inside = np.asarray(t) < np.log(2.0) / 2
        return np.where(inside, -np.log1p(-np.expm1(2 * np.minimum(t, 0.35))) / 2, np.inf)


def js_terms(p: Floats, q: Floats) -> Floats:
    total = p + q
    d = (p - q) / total
    return total * (_entropy(d) + _entropy(-d)) / 4

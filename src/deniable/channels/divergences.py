"""f-divergences: how far apart two distributions are, and so how well data distinguish them.

Formula    D_f(p || q) = sum q f(p / q), f convex with f(1) = 0; where q = 0 < p the term is p f'(inf)
Built in   "kl", "reverse-kl", "tv" (1/2 sum |p-q|), "chi2" (sum (p-q)^2/q), "hellinger2"
           (1/2 sum (sqrt p - sqrt q)^2), "js" (weights 1/2); nats throughout
Generators every built-in f also has f'(1) = 0 (so KL is u ln u - u + 1). Adding c (u - 1) to f changes no
           divergence, and without that term nothing cancels: two distributions 1e-9 apart keep full accuracy
Your own   an `FDivergence` is checked when created: f(1) = 0, convexity, limits, f(u) + f*(f'(u)) = u f'(u)
Source     Csiszar 1967; Kairouz, Oh and Viswanath 2014 (f-divergence of privatized marginals as utility)

The built-in f-divergence generators, each with f(1) = f'(1) = 0, vectorised and free of cancellation.

For each: f(u), f'(u), the conjugate f*(t) = sup over u >= 0 of t u - f(u), and terms(p, q) = q f(p/q) for p, q > 0.

    kl           u ln u - u + 1                       e^t - 1
    reverse-kl   u - 1 - ln u                         -ln(1 - t),        t < 1
    tv           |u - 1| / 2                          max(t, -1/2),      t <= 1/2
    chi2         (u - 1)^2                            t + t^2/4,         t >= -2; -1 below
    hellinger2   (sqrt u - 1)^2 / 2                   t / (1 - 2 t),     t < 1/2
    js           (u ln u - (1+u) ln((1+u)/2)) / 2     -ln(2 - e^2t) / 2, t < ln(2) / 2
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from deniable.channels.laws import Floats, probability_vector
from deniable.channels.noise import as_channel
from deniable.errors import LabelError, NumberError

# -- generators ---------------------------------------------------------------------------------------


# Inside |d| < 0.1 the power series below reach rounding with this many terms.
_NEAR = 0.1
_TERMS = 17
_EXP = [1 / math.factorial(k) for k in range(13, 1, -1)]


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
    inside = np.abs(v) < _NEAR
    with np.errstate(all="ignore"):
        far = np.asarray(np.expm1(v) - v)
    if not inside.any():
        return far
    near = np.where(inside, v, 0.0)
    series = np.full_like(near, _EXP[0])
    for coefficient in _EXP[1:]:
        series = series * near + coefficient
    return np.where(inside, near**2 * series, far)


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


Function = Callable[[Floats], Floats]

_GRID = np.sort(np.concatenate([np.logspace(-4, 4, 161), 1 + np.linspace(-0.5, 0.5, 41)]))
# Below this relative difference f(u) is integrated from f' instead of subtracted from its tangent.
_CLOSE = 1e-3


class Pushes(Protocol):
    """Anything that maps a law of inputs to a law of outputs, such as a `Channel`."""

    def push(self, prior: ArrayLike, /) -> Floats: ...


@dataclass(frozen=True, slots=True)
class FDivergence:
    """A convex generator f with the functions that optimization needs; they take and return arrays.

    `at_zero` is f(0) = lim f(u) as u falls to 0 and `slope` is f'(inf) = lim f(u) / u; either may be infinite.
    `conjugate` is f*(t) = sup over u >= 0 of t u - f(u), infinite where the supremum is. `second` is f''(1),
    for the local expansion D_f = f''(1) chi2 / 2, when it exists. `precise(p, q)` may give
    q f(p/q) - f'(1) (p - q) for p, q > 0 in a form that does not cancel.

    Args:
        name: Name of the divergence.
        value: The generator f.
        derivative: f'.
        conjugate: The convex conjugate f*.
        at_zero: f(0).
        slope: f'(inf).
        second: f''(1), if it exists.
        precise: A form of q f(p/q) - f'(1) (p - q) that does not cancel, if there is one.

    >>> squared = FDivergence("neyman", lambda u: (1 - u) ** 2 / u, lambda u: 1 - 1 / u**2,
    ...                       lambda t: 2 - 2 * np.sqrt(1 - t), at_zero=np.inf, slope=1)
    >>> round(divergence([0.5, 0.5], [0.25, 0.75], squared), 12) == divergence([0.25, 0.75], [0.5, 0.5], "chi2")
    True
    """

    name: str
    value: Function
    derivative: Function
    conjugate: Function
    at_zero: float
    slope: float
    second: float | None = None
    precise: Callable[[Floats, Floats], Floats] | None = None

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse a generator that does not define an f-divergence, or whose parts contradict each other."""
        with np.errstate(all="ignore"):
            _check(self)

    @classmethod
    def _built_in(cls, *fields: Any) -> FDivergence:
        """A built-in generator, checked by the tests instead of at every import."""
        built = object.__new__(cls)
        for name, value in zip(cls.__dataclass_fields__, fields, strict=True):
            object.__setattr__(built, name, value)
        return built

    def terms(self, p: ArrayLike, q: ArrayLike) -> Floats:
        """q f(p/q) - f'(1) (p - q), elementwise for p, q >= 0: never negative, and sums to the divergence.

        For measures of equal mass the sum is that of q f(p/q); p and q need not be normalized.
        """
        over, under = np.broadcast_arrays(np.asarray(p, np.float64), np.asarray(q, np.float64))
        tilt = _at(self.derivative, 1.0)
        result = np.zeros(over.shape)
        with np.errstate(all="ignore"):
            absent = (under == 0) & (over > 0)
            result[absent] = over[absent] * (self.slope - tilt)
            unseen = (over == 0) & (under > 0)
            result[unseen] = under[unseen] * (self.at_zero + tilt)
            both = (over > 0) & (under > 0)
            rule = self.precise or self._centred
            result[both] = np.maximum(rule(over[both], under[both]), 0.0)
        return result

    def _centred(self, p: Floats, q: Floats) -> Floats:
        gap = (p - q) / q
        tilt = _at(self.derivative, 1.0)
        ratio = np.minimum(p / q, np.finfo(np.float64).max)
        result = q * (_values(self.value, ratio) - tilt * gap)
        close = np.abs(gap) < _CLOSE
        if close.any():
            step = gap[close]
            # f(1+d) - f'(1) d is the integral of f' - f'(1): it loses 1e-16/d where the difference loses 1e-16/d^2.
            nodes, weights = np.polynomial.legendre.leggauss(4)
            rise = _values(self.derivative, 1 + step[:, None] * (1 + nodes) / 2) - tilt
            part = q[close] * step * (rise @ weights) / 2
            if self.second is not None:
                part = np.where(np.abs(step) < 1e-8, q[close] * self.second * step**2 / 2, part)
            result[close] = part
        return result


def _values(function: Function, where: Floats) -> Floats:
    return np.broadcast_to(np.asarray(function(where), dtype=np.float64), where.shape)


def _at(function: Function, where: float) -> float:
    return float(_values(function, np.array([where]))[0])


def _check(f: FDivergence) -> None:
    """Refuse a generator that does not define an f-divergence, or whose parts contradict each other."""

    def refuse(reason: str) -> NumberError:
        return NumberError(f"{f.name!r} is not an f-divergence as given: {reason}")

    try:
        value, slope = _values(f.value, _GRID), _values(f.derivative, _GRID)
        dual = _values(f.conjugate, slope)
        ends = _values(f.value, np.array([1e-100, 1e-50, 1e50, 1e100]))
        one, tangent = _at(f.value, 1.0), _at(f.derivative, 1.0)
    except (TypeError, ValueError, IndexError) as bad:
        raise refuse(f"its functions must map an array to an array of the same shape ({bad})") from bad
    if not (np.isfinite(value).all() and np.isfinite(slope).all()):
        raise refuse("f and its derivative must be finite for 1e-4 <= u <= 1e4")
    if not abs(one) <= 1e-12:
        raise refuse(f"f(1) is {one:.6g} and must be 0: subtract it from f")
    size = 1 + np.abs(value) + np.abs(_GRID * slope)
    # A convex f lies above every tangent; this checks derivative and convexity at once.
    above = value[None, :] - value[:, None] - slope[:, None] * (_GRID[None, :] - _GRID[:, None])
    worst = np.unravel_index(np.argmin(above / (size[:, None] + size[None, :])), above.shape)
    if above[worst] < -1e-9 * (size[worst[0]] + size[worst[1]]):
        u, v = _GRID[worst[0]], _GRID[worst[1]]
        raise refuse(f"the tangent at u = {u:.4g} passes above f({v:.4g}): f is not convex or f' is not its derivative")
    fenchel = np.abs(value + dual - _GRID * slope)
    broken = ~(fenchel <= 1e-8 * size)
    if broken.any():
        where = _GRID[np.argmax(broken)]
        raise refuse(f"f(u) + f*(f'(u)) = u f'(u) fails at u = {where:.4g}: correct the conjugate")
    _check_limit(refuse, "f(0)", "at_zero", f.at_zero, float(np.max(value - _GRID * slope)), ends[0], ends[1])
    _check_limit(refuse, "f(u)/u at infinity", "slope", f.slope, float(slope[-1]), ends[3] / 1e100, ends[2] / 1e50)
    if f.second is not None:
        around = _values(f.derivative, np.array([1 - 1e-4, 1 + 1e-4]))
        curvature = float(around[1] - around[0]) / 2e-4
        if not abs(curvature - f.second) <= 1e-4 * (1 + abs(f.second)):
            raise refuse(f"f''(1) is about {curvature:.6g}, not {f.second:.6g}")
    if f.precise is not None:
        plain = value - tangent * (_GRID - 1)
        if not (np.abs(f.precise(_GRID, np.ones_like(_GRID)) - plain) <= 1e-8 * size).all():
            raise refuse("precise(u, 1) is not f(u) - f'(1)(u - 1)")


def _check_limit(
    refuse: Callable[[str], NumberError],
    what: str,
    field: str,
    claimed: float,
    floor: float,
    near: float,
    nearer_one: float,
) -> None:
    """Convexity gives a lower bound for each limit; the value at 1e-100 or 1e100 must agree with the claim."""
    if not claimed >= floor - 1e-9 * (1 + abs(floor)):
        raise refuse(f"{what} is at least {floor:.6g}, but {field} says {claimed:.6g}")
    if math.isinf(claimed):
        if not (near == math.inf or near - nearer_one > 0.1):
            raise refuse(f"{what} seems to be {near:.6g}, but {field} says {claimed}")
    elif not abs(near - claimed) <= 0.01 * (1 + abs(claimed)):
        raise refuse(f"{what} seems to be {near:.6g}, but {field} says {claimed:.6g}")


DIVERGENCES: dict[str, FDivergence] = {
    f.name: f
    for f in (
        FDivergence._built_in("kl", kl, kl_slope, kl_conjugate, 1.0, math.inf, 1.0, kl_terms),
        FDivergence._built_in(
            "reverse-kl",
            reverse_kl,
            reverse_kl_slope,
            reverse_kl_conjugate,
            math.inf,
            1.0,
            1.0,
            reverse_kl_terms,
        ),
        FDivergence._built_in("tv", tv, tv_slope, tv_conjugate, 0.5, 0.5, None, tv_terms),
        FDivergence._built_in("chi2", chi2, chi2_slope, chi2_conjugate, 1.0, math.inf, 2.0, chi2_terms),
        FDivergence._built_in(
            "hellinger2",
            hellinger2,
            hellinger2_slope,
            hellinger2_conjugate,
            0.5,
            0.5,
            0.25,
            hellinger2_terms,
        ),
        FDivergence._built_in("js", js, js_slope, js_conjugate, math.log(2) / 2, math.log(2) / 2, 0.25, js_terms),
    )
}


def find_divergence(kind: str | FDivergence) -> FDivergence:
    """The divergence of that name, or the object itself."""
    if isinstance(kind, FDivergence):
        return kind
    if kind not in DIVERGENCES:
        raise LabelError(f"{kind!r} is not a divergence: use one of {', '.join(DIVERGENCES)}, or an FDivergence")
    return DIVERGENCES[kind]


def divergence(p: ArrayLike, q: ArrayLike, kind: str | FDivergence = "kl") -> float:
    """D_f(p || q) = sum q f(p / q).

    Args:
        p: A probability vector.
        q: Another one of the same length.
        kind: Name of the divergence, such as "kl", "chi2", "tv" or "hellinger2", or an `FDivergence`.

    Returns:
        The divergence; may be infinite.

    >>> round(divergence([0.75, 0.25], [0.25, 0.75], "kl"), 12)     # ln(3) / 2
    0.549306144334
    >>> divergence([1, 0], [0.5, 0.5], "reverse-kl"), divergence([1, 0], [0, 1], "tv")
    (inf, 1.0)
    """
    first = probability_vector(p, what="first distribution")
    second = probability_vector(q, first.size, what="second distribution")
    return math.fsum(find_divergence(kind).terms(first, second))


def marginals(channel: Pushes, p0: ArrayLike, p1: ArrayLike) -> tuple[Floats, Floats]:
    """(M0, M1): the law of the reports when the answers have law p0, and when they have law p1."""
    if not hasattr(channel, "push"):
        channel = as_channel(channel)
    return (
        channel.push(probability_vector(p0, what="first distribution")),
        channel.push(probability_vector(p1, what="second distribution")),
    )


def marginal_divergence(channel: Pushes, p0: ArrayLike, p1: ArrayLike, kind: str | FDivergence = "kl") -> float:
    """D_f(M0 || M1) after the channel: the utility that extremal mechanisms maximize.

    Args:
        channel: The channel.
        p0: A distribution of the inputs.
        p1: Another distribution of the inputs.
        kind: Name of the divergence, or an `FDivergence`.

    Returns:
        The divergence between the two distributions of the output.
    """
    return divergence(*marginals(channel, p0, p1), kind)

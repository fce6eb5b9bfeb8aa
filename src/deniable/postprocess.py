"""Post-processing of estimates: explicit, named steps that make them consistent.

`Estimate.consistent(method)` calls `apply(method, frequencies, stderr, n)` with a name from `METHODS`.

Promise    `apply(method, frequencies, stderr, n)` returns new frequencies and touches nothing else
Privacy    costs none: only the estimates are read, never the answers
Bias       every method but "none" and "norm" is biased: rare answers come out too common or too rare. In return the
           total error is smaller, on skewed data by a factor of five and more

base-cut   keeps what exceeds max(0, z) stderr, where z is the normal quantile at 1 - 2/d. If all d true shares
           were zero, each estimate would exceed z standard errors with probability 2/d, so two of them in all: 2
           is the number of answers that nobody gave and that are expected to survive. With up to 4 answers z
           is not positive and the method is "clip"; what survives keeps its unbiased value, so the sum is not one

Source     Wang, Lopuhaa-Zwakenberg, Li, Skoric and Li 2020, which has more methods and finds no best one

Two ways from any numbers to a distribution: projection onto the simplex, or clipping.

Promise    non-negative entries that sum to `total`; a distribution comes back unchanged, to rounding
Projection the nearest point of the simplex: max(v - t, 0) with the one t that makes the sum right
Clipping   negative entries become zero and the rest is scaled: simple, but not the nearest point
Cost       one sort along the last axis; any leading axes are a batch
Source     Held, Wolfe and Crowder 1974; Duchi et al. 2008. The loop published under the name norm-sub ends at
           the projection only when the positive entries sum to at least `total`; elsewhere it differs, and
           it divides by zero when nothing is positive. The sort has no such case.

Shrinking towards a power law: few common answers, a long tail of rare ones.

Model      the shares are draws x from the density ~ x^-s on [1/n, 1], and each estimate is normal around its share
           with its own standard error
Fit        the s between -1 and 5 under which the estimates are most likely (empirical Bayes)
Estimate   the posterior mean of each share: far above the noise the estimate stays as it is, but for s stderr^2 / f;
           in the noise it shrinks to almost nothing
Cost       256 points per share within 8 standard errors of zero, the fit on at most 4,096 shares; 4 s for 10^6 answers
Source     Jia and Gong 2019 and Wang et al. 2020, who choose s so that the prior's mean is 1/d instead
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.errors import LabelError, NumberError, ProbabilityError, ShapeError

Floats = NDArray[np.float64]

SURVIVORS = 2


def none(frequencies: Floats, stderr: Floats, n: int) -> Floats:
    return frequencies.copy()


def clip(frequencies: Floats, stderr: Floats, n: int) -> Floats:
    clipped: Floats = np.maximum(frequencies, 0.0)
    return clipped


def norm(frequencies: Floats, stderr: Floats, n: int) -> Floats:
    shifted: Floats = frequencies + (1 - frequencies.sum()) / frequencies.size
    return shifted


def norm_mul(frequencies: Floats, stderr: Floats, n: int) -> Floats:
    if not (frequencies > 0).any():
        raise ProbabilityError("no estimate is positive, so there is nothing to scale: use 'norm-sub'")
    return clip_renormalize(frequencies)


def norm_sub(frequencies: Floats, stderr: Floats, n: int) -> Floats:
    return project_simplex(frequencies)


def base_cut(frequencies: Floats, stderr: Floats, n: int) -> Floats:
    return np.where(frequencies > cut_quantile(frequencies.size) * stderr, np.maximum(frequencies, 0.0), 0.0)


def cut_quantile(size: int) -> float:
    """How many standard errors an estimate must exceed to survive base-cut.

    >>> cut_quantile(4), round(cut_quantile(1024), 3)
    (0.0, 2.886)
    """
    return max(0.0, NormalDist().inv_cdf(1 - SURVIVORS / size)) if size > SURVIVORS else 0.0


def power(frequencies: Floats, stderr: Floats, n: int) -> Floats:
    return project_simplex(power_shares(frequencies, stderr, n))


@dataclass(frozen=True, slots=True)
class Method:
    """A way to post-process, with what to know before using it."""

    function: Callable[[Floats, Floats, int], Floats]
    use: str
    """When to use it."""
    bias: str
    distribution: bool
    """Whether the result is a distribution: nothing negative, sum one."""


METHODS: dict[str, Method] = {
    "none": Method(
        none,
        "to add, subtract or average estimates, over groups or surveys",
        "unbiased",
        False,
    ),
    "clip": Method(
        clip,
        "to show single shares without negative numbers",
        "rare answers come out too common; the sum exceeds one",
        False,
    ),
    "norm": Method(
        norm,
        "to make the sum one and stay unbiased",
        "unbiased; may be negative",
        False,
    ),
    "norm-mul": Method(
        norm_mul,
        "to keep the ratios of what is positive; not for many rare answers",
        "with many rare answers common ones come out far too rare",
        True,
    ),
    "norm-sub": Method(
        norm_sub,
        "for a distribution without further assumptions: the nearest one",
        "rare answers come out too common, common ones slightly too rare",
        True,
    ),
    "base-cut": Method(
        base_cut,
        "to find the common answers among very many, each with its unbiased share",
        "answers below the noise become zero; the sum is not one",
        False,
    ),
    "power": Method(
        power,
        "for few common answers and a long tail (words, pages, places): usually the smallest total error",
        "answers within the noise come out nearly alike; wrong where all are equally common, just above the noise",
        True,
    ),
}
"""Every method, by name."""


def apply(method: str, frequencies: ArrayLike, stderr: ArrayLike, n: int) -> Floats:
    """Frequencies after the named method.

    >>> apply("norm-sub", [0.7, 0.4, -0.1], [0.1, 0.1, 0.1], n=100).round(12).tolist()
    [0.65, 0.35, 0.0]
    """
    named(method)
    shares = _vector(frequencies, "frequencies")
    errors = _vector(stderr, "standard errors")
    if shares.shape != errors.shape:
        raise ShapeError(f"there are {shares.size} frequencies and {errors.size} standard errors")
    if (errors < 0).any():
        raise NumberError("a standard error is negative")
    if not n >= 1:
        raise NumberError(f"the estimates come from at least one report, not {n!r}")
    return METHODS[method].function(shares, errors, int(n))


def named(method: str) -> str:
    """The name of a method, as it was given; LabelError says which there are."""
    if method not in METHODS:
        raise LabelError(_unknown(method))
    return method


def _unknown(method: Any) -> str:
    if isinstance(method, str) and method.lower() == "mle":
        return (
            "maximum likelihood needs more than the estimate: protocol.mle(reports), "
            "or mle(tally) for GRR and HadamardResponse"
        )
    close = get_close_matches(str(method).lower(), METHODS, n=1)
    if close:
        return f"there is no method {method!r}: did you mean {close[0]!r}? There are {', '.join(map(repr, METHODS))}"
    listed = "; ".join(f"{name!r} {known.use} ({known.bias})" for name, known in METHODS.items())
    return f"there is no method {method!r}; there are {listed}"


def _vector(values: ArrayLike, what: str) -> Floats:
    try:
        vector = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"the {what} are not a flat list of numbers") from None
    if vector.ndim != 1 or vector.size == 0:
        raise ShapeError(f"the {what} are a flat, non-empty list, not an array of shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise NumberError(f"the {what} contain NaN or infinity")
    return vector


# -- power laws ---------------------------------------------------------------------------------------


FAR = 8.0  # standard errors from zero beyond which the prior is a straight line across the noise
POINTS = 256
FIT_ON = 4096
STEEPEST, FLATTEST = 5.0, -1.0
_BLOCK = 1 << 12


def power_shares(shares: Floats, stderr: Floats, n: int) -> Floats:
    """Posterior means under the fitted power law; they need not sum to one."""
    lowest = 1 / max(n, 2)
    noisy = stderr > 0
    near = noisy & (shares <= lowest + FAR * stderr)
    exponent = fitted_exponent(shares[noisy], stderr[noisy], lowest) if noisy.any() else 0.0
    result = shares.copy()
    far = noisy & ~near
    result[far] = shares[far] - exponent * stderr[far] ** 2 / shares[far]
    places = np.flatnonzero(near)
    for start in range(0, places.size, _BLOCK):
        block = places[start : start + _BLOCK]
        logs, weight = _noise_on_grid(shares[block], stderr[block], lowest)
        weight *= np.exp((1 - exponent) * logs)
        result[block] = (weight * np.exp(logs)).sum(axis=1) / weight.sum(axis=1)
    return result


def fitted_exponent(shares: Floats, stderr: Floats, lowest: float) -> float:
    """The s that makes the estimates most likely."""
    from scipy.optimize import minimize_scalar

    if shares.size > FIT_ON:  # every k-th in order of size: the same shape
        chosen = np.argsort(shares)[np.linspace(0, shares.size - 1, FIT_ON).astype(np.int64)]
        shares, stderr = shares[chosen], stderr[chosen]
    near = shares <= lowest + FAR * stderr
    logs, weight = _noise_on_grid(shares[near], stderr[near], lowest)
    far = float(np.log(np.minimum(shares[~near], 1.0)).sum())

    def misfit(exponent: float) -> float:
        within: Any = (weight * np.exp((1 - exponent) * logs)).sum(axis=1)
        return float(exponent * far - np.log(within).sum() + shares.size * _log_mass(exponent, lowest))

    # The likelihood may have two humps, so a coarse look comes first.
    coarse = np.linspace(FLATTEST, STEEPEST, 25)
    best = float(coarse[np.argmin([misfit(exponent) for exponent in coarse])])
    step = float(coarse[1] - coarse[0])
    found = minimize_scalar(misfit, bounds=(best - step, best + step), method="bounded", options={"xatol": 1e-4})
    return min(max(float(found.x), FLATTEST), STEEPEST)


def _noise_on_grid(shares: Floats, stderr: Floats, lowest: float) -> tuple[Floats, Floats]:
    """Logarithms of shares from `lowest` up, and the likelihood of each estimate there, with quadrature weights."""
    top = np.maximum(np.minimum(1.0, np.maximum(shares, 0.0) + FAR * stderr), lowest * (1 + 1e-9))
    span = np.log(top) - math.log(lowest)
    logs = math.log(lowest) + span[:, None] * np.linspace(0.0, 1.0, POINTS)
    exponent = -0.5 * ((shares[:, None] - np.exp(logs)) / stderr[:, None]) ** 2
    weight = np.exp(exponent - exponent.max(axis=1, keepdims=True, initial=-np.inf))
    weight[:, [0, -1]] *= 0.5
    return logs, weight * (span / (POINTS - 1))[:, None]


def _log_mass(exponent: float, lowest: float) -> float:
    """log of the integral of x^-s from `lowest` to 1."""
    k = (1 - exponent) * math.log(lowest)
    return math.log(-math.log(lowest)) + (math.log(math.expm1(k) / k) if abs(k) > 1e-12 else 0.0)


# -- the simplex --------------------------------------------------------------------------------------


def project_simplex(v: ArrayLike, total: float = 1.0) -> Floats:
    """The point of {x >= 0, sum x = total} nearest to `v` in Euclidean distance.

    >>> project_simplex([0.9, 0.4, -0.1]).round(12).tolist()
    [0.75, 0.25, 0.0]
    """
    vector, total = _read(v, total)
    with np.errstate(over="ignore"):  # an entry that overflows to -inf is zero after the projection
        # A shift along (1, ..., 1) does not move the projection; this one keeps every digit of `total`.
        shifted = vector - vector.max(axis=-1, keepdims=True)
        descending = -np.sort(-shifted, axis=-1)
        size = np.arange(1, shifted.shape[-1] + 1)
        excess = np.cumsum(descending, axis=-1) - total
        kept = descending * size > excess
    # The entries that stay positive are a prefix of the sorted ones, never empty.
    support = np.count_nonzero(kept, axis=-1, keepdims=True)
    threshold = np.take_along_axis(excess, support - 1, axis=-1) / support
    projected: Floats = np.maximum(shifted - threshold, 0.0)
    return projected


def clip_renormalize(v: ArrayLike, total: float = 1.0) -> Floats:
    """Set negative entries to zero and scale the rest to `total`.

    A vector without a positive entry has no such scaling and is refused (`project_simplex` takes any vector).

    >>> clip_renormalize([0.9, 0.3, -0.2]).tolist()
    [0.75, 0.25, 0.0]
    """
    vector, total = _read(v, total)
    clipped = np.maximum(vector, 0.0)
    largest = clipped.max(axis=-1, keepdims=True)
    if not (largest > 0).all():
        raise ProbabilityError("no entry is positive, so clipping leaves nothing to scale: use project_simplex")
    # Dividing by the largest entry first keeps the sum of huge or tiny vectors in range.
    share = clipped / largest
    scaled: Floats = share * (total / share.sum(axis=-1, keepdims=True))
    return scaled


def _read(v: ArrayLike, total: float) -> tuple[Floats, float]:
    try:
        vector = np.array(v, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError("a vector of numbers is needed, or a batch of vectors of one length") from None
    if vector.ndim == 0 or vector.shape[-1] == 0:
        raise ShapeError(f"a non-empty vector is needed along the last axis, got shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise NumberError("the vector contains NaN or infinity")
    if not (math.isfinite(total) and total > 0):
        raise NumberError(f"the total must be a positive number, not {total!r}")
    return vector, float(total)

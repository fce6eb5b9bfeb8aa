"""Post-processing of estimates: explicit, named steps that make them consistent.

`Estimate.consistent(method)` calls `apply(method, frequencies, stderr, n)` with a name from `METHODS`.

Promise    `apply(method, frequencies, stderr, n)` returns new frequencies and changes nothing else
Privacy    costs none: only the estimates are read, never the answers
Bias       every method but "none" and "norm" is biased: rare answers come out too common or too rare. In return the
           total error is smaller, on skewed data by a factor of five or more

base-cut   keeps what exceeds max(0, z) stderr, where z is the normal quantile at 1 - 2/d. If all d true shares
           were zero, each estimate would exceed z standard errors with probability 2/d, so two of them in
           total: 2 is the expected number of surviving answers that nobody gave. With up to 4 answers z
           is not positive and the method is "clip"; what survives keeps its unbiased value, so the sum is not one

Source     Wang, Lopuhaa-Zwakenberg, Li, Skoric and Li 2020, which has more methods and finds no best one
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.errors import LabelError, NumberError, ProbabilityError, ShapeError
from deniable.postprocess.power_law import power_shares
from deniable.postprocess.simplex import clip_renormalize, project_simplex

Floats = NDArray[np.float64]

SURVIVORS = 2


def none(frequencies: Floats, stderr: Floats, n: int) -> Floats:
    """Leave the estimates as they are.

    Args:
        frequencies: Estimated shares.
        stderr: Their standard errors.
        n: Number of reports.

    Returns:
        A copy.
    """
    return frequencies.copy()


def clip(frequencies: Floats, stderr: Floats, n: int) -> Floats:
    """Set negative shares to zero.

    Args:
        frequencies: Estimated shares.
        stderr: Their standard errors.
        n: Number of reports.

    Returns:
        Shares of at least zero.
    """
    clipped: Floats = np.maximum(frequencies, 0.0)
    return clipped


def norm(frequencies: Floats, stderr: Floats, n: int) -> Floats:
    """Add the same number to all shares, so that they sum to one.

    Args:
        frequencies: Estimated shares.
        stderr: Their standard errors.
        n: Number of reports.

    Returns:
        Shares that sum to one.
    """
    shifted: Floats = frequencies + (1 - frequencies.sum()) / frequencies.size
    return shifted


def norm_mul(frequencies: Floats, stderr: Floats, n: int) -> Floats:
    """Set negative shares to zero and scale the rest to sum one.

    Args:
        frequencies: Estimated shares.
        stderr: Their standard errors.
        n: Number of reports.

    Returns:
        A distribution.

    Raises:
        ProbabilityError: No share is positive.
    """
    if not (frequencies > 0).any():
        raise ProbabilityError("no estimate is positive, so there is nothing to scale: use 'norm-sub'")
    return clip_renormalize(frequencies)


def norm_sub(frequencies: Floats, stderr: Floats, n: int) -> Floats:
    """The nearest distribution in Euclidean distance.

    Args:
        frequencies: Estimated shares.
        stderr: Their standard errors.
        n: Number of reports.

    Returns:
        A distribution.
    """
    return project_simplex(frequencies)


def base_cut(frequencies: Floats, stderr: Floats, n: int) -> Floats:
    """Set shares to zero that are not significantly positive.

    Args:
        frequencies: Estimated shares.
        stderr: Their standard errors.
        n: Number of reports.

    Returns:
        The shares that are significantly above zero, and zero for the others.
    """
    return np.where(frequencies > cut_quantile(frequencies.size) * stderr, np.maximum(frequencies, 0.0), 0.0)


def cut_quantile(size: int) -> float:
    """Number of standard errors that an estimate must exceed to survive base-cut.

    Args:
        size: Number of answers.

    Returns:
        The threshold, in standard errors.

    >>> cut_quantile(4), round(cut_quantile(1024), 3)
    (0.0, 2.886)
    """
    return max(0.0, NormalDist().inv_cdf(1 - SURVIVORS / size)) if size > SURVIVORS else 0.0


def power(frequencies: Floats, stderr: Floats, n: int) -> Floats:
    """Shrink the shares towards a fitted power law, then project them on the simplex.

    Args:
        frequencies: Estimated shares.
        stderr: Their standard errors.
        n: Number of reports.

    Returns:
        A distribution.
    """
    return project_simplex(power_shares(frequencies, stderr, n))


@dataclass(frozen=True, slots=True)
class Method:
    """A post-processing method, with advice on its use.

    Args:
        function: Maps (frequencies, stderr, n) to frequencies.
        use: When to use it.
        bias: How the result is biased.
        distribution: Whether the result is a distribution: nothing negative, sum one.
    """

    function: Callable[[Floats, Floats, int], Floats]
    use: str
    bias: str
    distribution: bool


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

    Args:
        method: Name of the method, such as "norm-sub".
        frequencies: Estimated shares.
        stderr: Their standard errors.
        n: Number of reports.

    Returns:
        The shares after post-processing.

    Raises:
        LabelError: There is no such method.
        ShapeError: The lengths differ.
        NumberError: A standard error is negative.

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
    """Check the name of a method.

    Args:
        method: Name of a method.

    Returns:
        The same name.

    Raises:
        LabelError: There is no such method; the message lists the names.
    """
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

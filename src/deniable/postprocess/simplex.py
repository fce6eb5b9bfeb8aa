"""Two ways to turn any numbers into a distribution: projection onto the simplex, or clipping.

Promise    non-negative entries that sum to `total`; a distribution is returned unchanged, up to rounding
Projection the nearest point of the simplex: max(v - t, 0) with the one t that makes the sum right
Clipping   negative entries become zero and the rest is scaled: simple, but not the nearest point
Cost       one sort along the last axis; any leading axes are a batch
Source     Held, Wolfe and Crowder 1974; Duchi et al. 2008. The loop published under the name norm-sub ends at
           the projection only when the positive entries sum to at least `total`; elsewhere it differs, and
           it divides by zero when nothing is positive. The sort has no such case.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.errors import NumberError, ProbabilityError, ShapeError

Floats = NDArray[np.float64]


def project_simplex(v: ArrayLike, total: float = 1.0) -> Floats:
    """The point of {x >= 0, sum x = total} nearest to `v` in Euclidean distance.

    Args:
        v: A vector, or several in rows.
        total: Sum of the result.

    Returns:
        The projection, of the same shape.

    >>> project_simplex([0.9, 0.4, -0.1]).round(12).tolist()
    [0.75, 0.25, 0.0]
    """
    vector, total = _read(v, total)
    with np.errstate(over="ignore"):  # an entry that overflows to -inf is zero after the projection
        # A shift along (1, ..., 1) does not change the projection; this one keeps every digit of `total`.
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

    A vector without a positive entry cannot be scaled and is refused (`project_simplex` takes any vector).

    Args:
        v: A vector, or several in rows.
        total: Sum of the result.

    Returns:
        A vector of the same shape.

    Raises:
        ProbabilityError: A vector has no positive entry.

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

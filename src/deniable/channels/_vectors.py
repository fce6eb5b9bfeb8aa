"""Reading probability vectors and matrices for analysis (floats; privacy never depends on them)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.errors import ProbabilityError, ShapeError

Floats = NDArray[np.float64]

# Vectors that people type or load from files are off by rounding; more than this is a mistake.
TOLERANCE = 1e-6


def finite_vector(values: ArrayLike | Sequence[Any], size: int | None = None, what: str = "vector") -> Floats:
    """A one-dimensional float array without NaN or infinities, of the given size."""
    try:
        vector = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"the {what} must be a flat list of numbers") from None
    if vector.ndim != 1 or vector.size == 0:
        raise ShapeError(f"the {what} must be a flat, non-empty list of numbers, got shape {vector.shape}")
    if size is not None and vector.size != size:
        raise ShapeError(f"the {what} has {vector.size} entries where {size} are needed")
    if not np.isfinite(vector).all():
        raise ProbabilityError(f"the {what} contains NaN or infinity")
    return vector


def counts_vector(values: ArrayLike | Sequence[Any], size: int | None = None, what: str = "counts") -> Floats:
    """Non-negative counts."""
    vector = finite_vector(values, size, what)
    if (vector < 0).any():
        raise ProbabilityError(f"the {what} contain a negative number")
    return vector


def probability_vector(values: ArrayLike | Sequence[Any], size: int | None = None, what: str = "prior") -> Floats:
    """A distribution, divided by its sum when that is within rounding of one."""
    vector = finite_vector(values, size, what)
    if (vector < 0).any():
        raise ProbabilityError(f"the {what} contains a negative probability")
    with np.errstate(over="ignore"):
        total = float(vector.sum())
    if abs(total - 1) > TOLERANCE:
        way_out = "divide it by its sum" if total > 0 else "something must be possible"
        raise ProbabilityError(f"the {what} sums to {total:.6g}, not to 1: {way_out}")
    return vector / total

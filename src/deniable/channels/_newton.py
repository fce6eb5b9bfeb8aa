"""Newton's method for a concave function on the simplex, written on its fixed-point equations.

Promise    a candidate point with positive entries and sum one; the caller keeps it only if it is better
Equations  x_i (g_i - x.g) = 0, which expectation-maximization and Blahut-Arimoto iterate on, and which
           hold at the maximum; with H the negative Hessian and s_i = max(x.g - g_i, 0), a step d solves
           (H + diag(s / x) + damping / x) d = g - x.g - l, where l makes the entries of d sum to zero
Why        entries that belong at zero go there in a few steps without being named, and the matrix, scaled by
           sqrt(x) from both sides, has eigenvalues of moderate size however small the entries become
Cost       one product and one solution of a k x k system
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# One step shrinks an entry to no less than this share of itself, so that a wrong step can be undone.
SHRINK = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class NewtonSystem:
    """The equations at one point; `candidate` solves them for a given damping."""

    point: Floats
    scale: Floats
    matrix: Floats
    slope: Floats

    @classmethod
    def at(cls, point: Floats, gradient: Floats, root: Floats) -> Self:
        """`root @ root.T` is the negative Hessian."""
        scaled = np.sqrt(point)[:, None] * root
        return cls._of(point, gradient, scaled @ scaled.T)

    @classmethod
    def at_curvature(cls, point: Floats, gradient: Floats, curvature: Floats) -> Self:
        """`curvature` is the negative Hessian itself."""
        scale = np.sqrt(point)
        return cls._of(point, gradient, curvature * np.outer(scale, scale))

    @classmethod
    def _of(cls, point: Floats, gradient: Floats, matrix: Floats) -> Self:
        scale = np.sqrt(point)
        slope = gradient - point @ gradient
        matrix[np.diag_indices_from(matrix)] += np.maximum(-slope, 0.0)
        return cls(point, scale, matrix, scale * slope)

    def candidate(self, damping: float) -> Floats | None:
        matrix = self.matrix.copy()
        matrix[np.diag_indices_from(matrix)] += damping
        try:
            ascent, normal = np.linalg.solve(matrix, np.stack([self.slope, self.scale], axis=1)).T
        except np.linalg.LinAlgError:
            return None
        with np.errstate(all="ignore"):
            step = self.scale * (ascent - normal * ((self.scale @ ascent) / (self.scale @ normal)))
            moved = np.maximum(self.point + step, SHRINK * self.point)
            moved /= moved.sum()
        return moved if np.isfinite(moved).all() else None

"""Sparse linear programs by HiGHS, with one clear sentence when the solver gives up.

Nothing that a solver returns is trusted: its floats are a proposal that `_repair` makes exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import DeniableError
from deniable.trace import Watch, highs

Floats = NDArray[np.float64]

# Ten times what a program of so many coefficients takes, so that only a solver that cycles is stopped.
_SECONDS, _SECONDS_A_COEFFICIENT = 2.0, 1 / 500


class SolverError(DeniableError, RuntimeError):
    """A linear program that the solver could not finish."""


class Rows:
    """Constraints in the making: rows of (column, coefficient) triplets with a bound each."""

    def __init__(self) -> None:
        self._places: list[tuple[Any, Any, Any]] = []
        self._bounds: list[Floats] = []
        self.count = 0

    def add(self, columns: list[Any], coefficients: list[Any], bounds: Any) -> None:
        """As many rows as there are bounds; columns[i] and coefficients[i] are arrays over these rows, or numbers."""
        limit = np.atleast_1d(np.asarray(bounds, dtype=np.float64))
        rows = self.count + np.arange(limit.size)
        for column, coefficient in zip(columns, coefficients, strict=True):
            where, weight = np.broadcast_to(column, rows.shape), np.broadcast_to(coefficient, rows.shape)
            self._places.append((rows, where, weight))
        self._bounds.append(limit)
        self.count += limit.size

    def copy(self) -> Rows:
        other = Rows()
        other._places, other._bounds, other.count = list(self._places), list(self._bounds), self.count
        return other

    def matrix(self, width: int) -> tuple[Any, Floats]:
        from scipy.sparse import csr_array

        if not self.count:
            return csr_array((0, width)), np.empty(0)
        rows, columns, weights = (np.concatenate(part) for part in zip(*self._places, strict=True))
        return csr_array((weights, (rows, columns)), shape=(self.count, width)), np.concatenate(self._bounds)


def minimize(
    cost: Floats, at_most: Rows, equal: Rows | None, upper: Floats, what: str, watch: Watch | None = None
) -> Floats:
    """min cost x  subject to  at_most rows, equal rows, 0 <= x <= upper."""
    left, right = at_most.matrix(cost.size)
    same, target = (equal or Rows()).matrix(cost.size)
    limits = np.column_stack([np.zeros(cost.size), upper])
    tolerances = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    patience = {"time_limit": _SECONDS + _SECONDS_A_COEFFICIENT * (left.nnz + same.nnz)}
    # Tight tolerances can make the simplex method cycle on near-ties: then the interior-point method has its turn.
    for method, options in (("highs", tolerances), ("highs-ipm", {}), ("highs-ds", {})):
        seen = watch or Watch()
        found = highs(cost, (left, right), (same, target), limits, method, options | patience, seen, what)
        if found.status == 0:
            seen.worth(float(found.fun))
            solution: Floats = np.asarray(found.x)
            return solution
    raise SolverError(
        f"the solver did not finish the program of {what} ({found.message.strip()}): "
        "try a larger epsilon, profiles rounded to fewer digits, or randomized response (KaryResponse)"
    )

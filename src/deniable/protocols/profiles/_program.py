"""Sparse linear programs by HiGHS, with one clear sentence when the solver gives up.

Nothing that a solver returns is trusted: its floats are a proposal, which is made exact here.

From a solver's floats to integers over 2^64 that hold their epsilon exactly.

1. entries are cut to [0, 1], rows divided by their sums and rounded to multiples of 2^-64;
2. every channel of the part is mixed with the uniform one, under which all profiles look the same, by the smallest
   share that leaves room for rounding in every constraint that needs it;
3. the result is verified with integers.

Rounding moves an output's probability by less than d 2^-64, so the room needed is (1 + e^epsilon) d 2^-64.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.errors import DeniableError, InternalError
from deniable.exact import WORD
from deniable.protocols.profiles.graph import Floats, Integers, Part
from deniable.protocols.profiles.verifier import output_laws
from deniable.trace import Watch, highs

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


# -- from a solver's floats to integers that hold their epsilon exactly -------------------------------


# The share of the uniform channel is a multiple of 2^-80: fine enough to cost nothing that 2^-64 would show.
_SHARE_BITS = 80


def holds(part: Part, table: Integers, epsilon: Fraction) -> bool:
    """Whether channels (k, d, m) over one denominator keep epsilon on every edge: no ratio above e^epsilon.

    Decided against a rational just below e^epsilon, so "yes" is certain.
    """
    return not bool((_excess(part, table, exact.exp_floor(epsilon)) > 0).any())


def _excess(part: Part, table: Integers, odds: Fraction) -> Integers:
    """law_i - odds law_j for both directions of each edge, times a positive integer."""
    laws = output_laws(part, table)
    i, j = part.edges[:, 0], part.edges[:, 1]
    first = laws[i] * part.denominators[j][:, None]
    second = laws[j] * part.denominators[i][:, None]
    top, bottom = odds.numerator, odds.denominator
    return np.concatenate([first * bottom - second * top, second * bottom - first * top])


def round_rows(draft: Floats) -> Integers:
    """Floats to rows of integers that sum to 2^64; what rounding leaves goes to the row's largest entry."""
    cut = np.clip(draft, 0.0, 1.0)
    cut = cut / cut.sum(axis=-1, keepdims=True)
    flat = cut.reshape(-1, cut.shape[-1])
    table = np.empty(flat.shape, dtype=object)
    # A float in [0, 1] times 2^64 is a whole number or has its fraction in the float: nothing is lost before the floor.
    table[:] = [[math.floor(math.ldexp(entry, 64)) for entry in row] for row in flat.tolist()]
    return _settled(table, flat.argmax(axis=1)).reshape(draft.shape)


def _settled(rows: Integers, largest: NDArray[np.intp]) -> Integers:
    rows[np.arange(len(rows)), largest] += WORD - rows.sum(axis=1)
    return rows


def repaired(part: Part, draft: Floats, epsilon: Fraction) -> Integers:
    """Channels of floats (k, d, d) made exact, by as little mixing as it takes."""
    table = round_rows(draft)
    if holds(part, table, epsilon):
        return table
    share = _share(part, table, exact.exp_floor(epsilon))
    mixed = _mix(table, share)
    if not holds(part, mixed, epsilon):
        raise InternalError("the repaired channels do not hold their epsilon")
    return mixed


def _share(part: Part, table: Integers, odds: Fraction) -> Fraction:
    """The least share of the uniform channel with which every constraint holds with room for rounding."""
    width = table.shape[2]
    excess = _excess(part, table, odds)
    i, j = part.edges[:, 0], part.edges[:, 1]
    scale = np.concatenate([part.denominators[i] * part.denominators[j]] * 2) * (WORD * odds.denominator)
    slack = (odds - 1) / width
    room = (1 + odds) * width / WORD
    twins = _twins(part, table)
    near = excess > -np.floor_divide(scale * room.numerator, room.denominator)[:, None]
    near[np.concatenate([twins, twins])] = False
    best = Fraction(0)
    for row, y in np.argwhere(near).tolist():
        lack = Fraction(int(excess[row, y]), int(scale[row]))
        need = (lack + room) / (lack + slack)
        best = max(best, need)
    if best >= 1:
        raise InternalError("rounding to 2^-64 leaves no room between these profiles")
    return Fraction(math.ceil(best * (1 << _SHARE_BITS)), 1 << _SHARE_BITS)


def _twins(part: Part, table: Integers) -> NDArray[np.bool_]:
    """Edges between equal profiles with equal channels: they stay equal, whatever is mixed in."""
    i, j = part.edges[:, 0], part.edges[:, 1]
    same = (table[i] == table[j]).all(axis=(1, 2))
    same &= (part.numerators[i] == part.numerators[j]).all(axis=1)
    same &= part.denominators[i] == part.denominators[j]
    return np.asarray(same, dtype=np.bool_)


def _mix(table: Integers, share: Fraction) -> Integers:
    width = table.shape[2]
    bottom = share.denominator * width
    flat = table.reshape(-1, width)
    largest = flat.astype(np.float64).argmax(axis=1)
    tops = flat * ((share.denominator - share.numerator) * width) + WORD * share.numerator
    return _settled(tops // bottom, largest).reshape(table.shape)

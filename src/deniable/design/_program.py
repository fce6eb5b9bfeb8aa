"""The 2^k linear program and its dual multipliers (SciPy's HiGHS), polished on the basis it ends in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.channels._vectors import Floats
from deniable.design._columns import ColumnUtility
from deniable.design.trace import Watch, highs
from deniable.errors import ChannelError


@dataclass(frozen=True)
class Solution:
    """Channel rows in floats, the weights that the members get in the dual, and a multiplier for each symbol."""

    rows: Floats
    weights: Floats
    multipliers: Floats


def bits_of(size: int) -> Floats:
    """Row j holds the binary digits of j, the most significant first."""
    return ((np.arange(1 << size)[:, None] >> np.arange(size - 1, -1, -1)) & 1).astype(np.float64)


def solve(utility: ColumnUtility, odds: float, weights: Floats | None, watch: Watch | None = None) -> Solution:
    """The best staircase mechanism for the weighted sum of the members, or (no weights) for their smallest."""
    seen, what = watch or Watch(), f"staircase columns of {utility.size} symbols"
    # The last pattern is the first one times E.
    columns = 1 + odds * bits_of(utility.size)[:-1]
    table = utility.table(columns)
    scale = float(table.max()) or 1.0
    norm = columns.mean(axis=1)
    height, size = columns.shape
    tolerance = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    if weights is not None:
        answer = highs(
            -(weights @ table) / norm / scale,
            None,
            ((columns / norm[:, None]).T, np.ones(size)),
            (0, None),
            "highs",
            tolerance,
            seen,
            what,
        )
        mixed = weights
    else:
        answer = highs(
            np.concatenate([np.zeros(height), [-1.0]]),
            (np.hstack([-table / norm / scale, np.ones((len(table), 1))]), np.zeros(len(table))),
            (np.hstack([(columns / norm[:, None]).T, np.zeros((size, 1))]), np.ones(size)),
            [(0, None)] * height + [(None, None)],
            "highs",
            tolerance,
            seen,
            what,
        )
        mixed = np.zeros(0)
    if not answer.success:
        raise ChannelError(
            f"the solver did not finish ({answer.message.strip()}): merge rare symbols, or move epsilon a little"
        )
    if weights is None:
        mixed = np.maximum(-answer.ineqlin.marginals, 0.0)
        mixed = mixed / mixed.sum()
    theta = answer.x[:height] / norm
    used = np.flatnonzero(answer.x[:height] > 1e-9)
    prices = -answer.eqlin.marginals * scale
    basis = columns[used]
    if used.size == size and np.linalg.matrix_rank(basis) == size:
        # The solver stops at its tolerance; its basis gives all digits.
        sharper = np.linalg.solve(basis.T, np.ones(size))
        if (sharper >= 0).all() and weights is not None:
            theta = np.zeros(height)
            theta[used] = sharper
            prices = np.linalg.solve(basis, (mixed @ table)[used])
    total = mixed @ table - columns @ prices
    # What is still above is lifted: only the flat column has fewer than k + E - 1, and its utility is zero.
    prices = prices + max(float(total[1:].max(initial=0.0)), 0.0) / (size + odds)
    return Solution(np.asarray((columns[used] * theta[used, None]).T), mixed, prices)

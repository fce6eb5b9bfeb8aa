"""The 2^k linear program and its dual multipliers (SciPy's HiGHS), polished on the basis it ends in.

Columns    up to 4,096 of them the program is solved as it is. Larger ones are solved on a few columns, to which those
           are added that the multipliers price too low, until there is none: each pricing looks at all 2^k
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.channels._vectors import Floats
from deniable.design._columns import ColumnUtility
from deniable.design.trace import Watch, highs
from deniable.errors import ChannelError

ALL_AT_ONCE = 1 << 12
AT_A_TIME = 256
TOLERANCE = 1e-10


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
    scaled, worth = columns / norm[:, None], table / norm / scale
    # The flat column alone is feasible; those of one symbol are where randomized response begins.
    active = np.arange(height) if height <= ALL_AT_ONCE else np.concatenate([[0], 1 << np.arange(size)])
    while True:
        answer = _run(scaled[active], worth[:, active], weights, seen, what)
        if not answer.success:
            break
        mixed = weights if weights is not None else _shares(answer)
        if active.size == height:
            break
        surplus = mixed @ worth + scaled @ answer.eqlin.marginals
        surplus[active] = 0.0
        missing = np.flatnonzero(surplus > TOLERANCE)
        if not missing.size:
            break
        best = missing[np.argsort(-surplus[missing], kind="stable")[:AT_A_TIME]]
        seen.say(f"{what}: {active.size:,} of {height:,} columns, {float(surplus.max()):.1e} above the prices")
        active = np.sort(np.concatenate([active, best]))
    if not answer.success:
        raise ChannelError(
            f"the solver did not finish ({answer.message.strip()}): merge rare symbols, or move epsilon a little"
        )
    found = np.zeros(height)
    found[active] = answer.x[: active.size]
    theta = found / norm
    used = np.flatnonzero(found > 1e-9)
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


def _run(columns: Floats, table: Floats, weights: Floats | None, watch: Watch, what: str) -> Any:
    """max of the weighted sum, or of the smallest, over mixtures of these columns whose sum is one everywhere."""
    height, size = columns.shape
    tolerance = {"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE}
    if weights is not None:
        sums = columns.T, np.ones(size)
        return highs(-(weights @ table), None, sums, (0, None), "highs", tolerance, watch, what)
    return highs(
        np.concatenate([np.zeros(height), [-1.0]]),
        (np.hstack([-table, np.ones((len(table), 1))]), np.zeros(len(table))),
        (np.hstack([columns.T, np.zeros((size, 1))]), np.ones(size)),
        [(0, None)] * height + [(None, None)],
        "highs",
        tolerance,
        watch,
        what,
    )


def _shares(answer: Any) -> Floats:
    """The weights that the dual gives the members, when the smallest is to be large."""
    mixed: Floats = np.maximum(-answer.ineqlin.marginals, 0.0)
    mixed /= mixed.sum()
    return mixed

"""The linear program of a Bayes-optimal mechanism, and a first repair of what the solver returns.

All pairs  c_xy = m_y + d_xy with 0 <= d_xy <= (E - 1) m_y: one row an entry instead of one a pair of inputs
Edges      c_xy = g_xy z_xy with g the geometric law around the guess, solved for z: the entries of an optimal z are of
           like size, where those of c span e^(epsilon n). g stays above e^-17, because the solver drops coefficients
           below 1e-9 and refuses those above 1e15
Settling   entries are raised to the largest c_x e^(-epsilon d) of the others; the rows are then short or long by a
           little, and a little mass, shaped so that the ratios hold, goes to the best blind guess
Source     Ghosh, Roughgarden and Sundararajan 2009 (the program)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.channels._vectors import Floats
from deniable.design._relation import Relation
from deniable.design.trace import Watch, highs
from deniable.errors import ChannelError

# Logarithms of the largest ratio that the solver is told of, and of the largest scale: their sum stays below ln 1e15.
_LARGEST = 30.0
_SCALED = 17.0

# Outputs that happen less often than this for every input are the solver's noise.
_NEVER = 1e-10

# Room for the rounding of floats, so that the exact repair has nothing left to do.
_ROOM = 1e-13


@dataclass(frozen=True, slots=True)
class Answer:
    """Float rows (inputs by guesses), a price for each input, and for edges the multiplier of each ratio."""

    rows: Floats
    prices: Floats
    flows: Floats
    """[direction of an edge, guess]: edge e from its first end is 2e, from its second 2e + 1; empty on a tree."""


def solve(
    cost: Floats, relation: Relation, epsilon: Fraction, centres: list[int] | None, watch: Watch | None = None
) -> Answer | None:
    """Minimize the sum of cost[y, x] c[x, y]; None if the solver fails. `centres` of guesses switch the scaling on."""
    seen = watch or Watch()
    if relation.edges is None:
        return _solve_whole(cost, min(float(epsilon), _LARGEST), seen)
    return _solve_edges(cost, relation, float(epsilon), centres, seen)


def _solve_whole(cost: Floats, epsilon: float, watch: Watch) -> Answer | None:
    from scipy import sparse

    guesses, size = cost.shape
    odds = np.expm1(epsilon)
    # Variables d_xy / (E - 1), row by row, then m_y.
    entries = guesses * size
    limits = sparse.hstack([sparse.eye(entries), -sparse.vstack([sparse.eye(guesses)] * size)]).tocsr()
    rows = sparse.hstack([sparse.kron(sparse.eye(size), np.full((1, guesses), odds)), np.ones((size, guesses))]).tocsr()
    found = _highs(np.concatenate([(odds * cost.T).ravel(), cost.sum(axis=1)]), limits, rows, size, watch)
    if found is None:
        return None
    x, prices, _ = found
    return Answer(odds * x[:entries].reshape(size, guesses) + x[entries:], prices, np.empty((0, guesses)))


def _solve_edges(
    cost: Floats, relation: Relation, epsilon: float, centres: list[int] | None, watch: Watch
) -> Answer | None:
    from scipy import sparse

    guesses, size = cost.shape
    scale = np.ones((size, guesses))
    if centres is not None:
        scale = np.exp(-np.minimum(epsilon * relation.distances[:, centres], _SCALED))
    largest = _LARGEST if centres is None else _SCALED
    edges = relation.edges or ()
    sources = np.array([end for i, j, _ in edges for end in (i, j)], dtype=np.int64)
    targets = np.array([end for i, j, _ in edges for end in (j, i)], dtype=np.int64)
    lengths = np.repeat([min(epsilon * float(d), largest) for _, _, d in edges], 2)
    count = sources.size * guesses
    columns = np.arange(guesses)
    factor = np.exp(lengths)[:, None] * (scale[targets] / scale[sources])
    row = np.arange(count)
    limits = sparse.coo_matrix(
        (
            np.concatenate([np.ones(count), -factor.ravel()]),
            (
                np.concatenate([row, row]),
                np.concatenate([(ends[:, None] * guesses + columns).ravel() for ends in (sources, targets)]),
            ),
        ),
        shape=(count, size * guesses),
    ).tocsr()
    sums = sparse.coo_matrix((scale.ravel(), (np.repeat(np.arange(size), guesses), np.arange(size * guesses)))).tocsr()
    found = _highs((cost.T * scale).ravel(), limits, sums, size, watch)
    if found is None:
        return None
    x, prices, duals = found
    flows = np.maximum(-duals.reshape(sources.size, guesses), 0.0) / scale[sources]
    return Answer(x.reshape(size, guesses) * scale, prices, flows if relation.has_cycle else np.empty((0, guesses)))


def _highs(objective: Floats, limits: Any, sums: Any, size: int, watch: Watch) -> tuple[Floats, Floats, Floats] | None:
    # Losses in thousandths or millions would meet the solver's absolute tolerances.
    unit = float(np.abs(objective).max()) or 1.0
    answer = highs(
        objective / unit,
        (limits, np.zeros(limits.shape[0])) if limits.shape[0] else None,
        (sums, np.ones(size)),
        (0, None),
        "highs-ds",
        {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        watch,
        "solving",
    )
    if answer.status != 0 or answer.x is None or not np.isfinite(answer.x).all():
        return None
    return answer.x, answer.eqlin.marginals * unit, answer.ineqlin.marginals * unit


def settled(rows: Floats, cost: Floats, relation: Relation, epsilon: Fraction) -> tuple[Floats, list[int]]:
    """Rows in which every ratio holds up to the last digits of a float, and the guesses that are in use."""
    level = float(epsilon) - min(_ROOM, 1e-6 * float(epsilon))
    used = np.flatnonzero(rows.max(axis=0) > _NEVER)
    if used.size == 0:
        raise ChannelError("the solver returned no mechanism: try a larger epsilon or fewer inputs")
    fading = np.exp(-level * relation.distances)
    law = np.stack([(fading * column).max(axis=1) for column in np.maximum(rows[:, used].T, 0.0)], axis=1)
    sums = law.sum(axis=1)
    over, under = max(float(sums.max()) - 1, 0.0), max(1 - float(sums.min()), 0.0)
    shortest = min((float(d) for _, _, d in relation.edges or ()), default=1.0)
    odds = np.expm1(min(level * shortest, _LARGEST))
    # The least share that leaves every row a rest whose ratios hold, too.
    share = min(1.1 * (under + (1 + odds) * over) / odds, 1.0)
    blind = int(np.argmin(cost[used].sum(axis=1)))
    law *= 1 - share
    law[:, blind] += np.maximum(1 - law.sum(axis=1), 0.0)
    return law, used.tolist()

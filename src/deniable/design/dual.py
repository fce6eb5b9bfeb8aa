"""Multipliers that prove a partition optimal: one number a symbol, whose sum no private mechanism can exceed.

Theorem    if sum of lambda_x s_x >= mu(s) for every pattern s in {1, E}^k, no epsilon-LDP channel has a divergence
           above sum of lambda_x
First try  lambda_x = hi_x - rho (hi_x - lo_x): hi and lo are the best and second-best tangents of the optimal blocks
           at x, and rho is fixed for each block by making its own column tight; the sum is then exactly the value
Repair     where some other column is above: the rho_x of least total variation that keep the blocks' columns tight
           and all columns found so far below, a small linear program; the sweep adds columns until none is above.
           rho may step at evenly spaced knots only, at more of them when these do not suffice
The rest   is paid for by raising all multipliers in proportion to the mass
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from deniable.channels._vectors import Floats
from deniable.design._curves import Curve
from deniable.design._pair import Pair
from deniable.design._partition import Partition
from deniable.design._sweep import sweep
from deniable.design.trace import Watch, highs

_GOOD = 1e-12
_ROUNDS = 60
_ADDED = 40
_KNOTS = 300


def multipliers(
    pair: Pair, partition: Partition, odds: float, curve: Curve, seconds: float = 20.0, watch: Watch | None = None
) -> Floats:
    """One multiplier for each symbol (not group), nearly feasible: a sweep says by how much it misses."""
    if partition.value <= 0:
        return np.zeros(pair.size)
    deadline = time.monotonic() + seconds
    best, least, seen = np.zeros(0), np.inf, watch or Watch()
    for number, found in enumerate(_drafts(pair, partition, odds, curve, seen, deadline), start=1):
        raised = _raise(found, pair, odds, curve)
        if raised.sum() < least:
            best, least = raised, float(raised.sum())
        seen.say(f"proof: draft {number}, relative gap {max(least / partition.value - 1, 0.0):.0e}")
        if least <= partition.value * (1 + _GOOD) or time.monotonic() > deadline:
            break
    return np.asarray(best[pair.group] * pair.shares())


def _drafts(
    pair: Pair, partition: Partition, odds: float, curve: Curve, watch: Watch, deadline: float
) -> Iterator[Floats]:
    """Better and better multipliers for the groups, all with the value as their sum."""
    _, lower, gaps = pair.merged
    prefix, differences = pair.prefixes
    starts, stops = partition.cuts[:-1], partition.cuts[1:]
    b = 1 + odds * (prefix[stops] - prefix[starts])
    z = curve.tangent_to(b, odds * (differences[stops] - differences[starts]))
    slope, sag = curve.slope(z), curve.sag(z)
    block = np.repeat(np.arange(partition.blocks), stops - starts)
    high = slope[block] * gaps + sag[block] * lower
    # Tangents of a convex function are ordered, so the second best belongs to a neighbouring block.
    low = np.full(high.size, -np.inf)
    for step in (-1, 1):
        valid = (block + step >= 0) & (block + step < partition.blocks)
        near = np.where(valid, block + step, 0)
        low = np.where(valid, np.maximum(low, slope[near] * gaps + sag[near] * lower), low)
    spread = np.maximum(high - low, 0.0)
    room = np.add.reduceat(spread, starts)
    tight = np.where(room > 0, (partition.value - sag) / (odds * np.where(room > 0, room, 1.0)), 0.0)
    found = np.asarray(high - tight[block] * spread)
    yield found

    own = 1 + odds * (block[None, :] == np.arange(partition.blocks)[:, None])
    columns: list[Floats] = []
    utilities: list[float] = []
    knots = min(_KNOTS, found.size)
    for _ in range(_ROUNDS):
        worst = sweep(lower, gaps, found, odds, curve)
        for event in worst.peaks(_ADDED):
            if worst.excess[event] > max(1e-14 * partition.value, 1e-3 * worst.largest):
                columns.append(1 + odds * worst.pattern(int(event), found.size))
                utilities.append(float(worst.utility[event]))
        if not columns:
            return
        above = np.array(columns)
        share = None
        while share is None and time.monotonic() < deadline:
            share = _smoothest(
                above * (spread / partition.value),
                (above @ high - np.array(utilities)) / partition.value,
                own * (spread / partition.value),
                own @ (tight[block] * spread) / partition.value,
                starts,
                block,
                np.linspace(0, found.size - 1, knots).astype(np.int64),
                deadline,
                watch,
            )
            if share is None and knots == found.size:
                return
            knots = knots if share is not None else min(4 * knots, found.size)
        if share is None:
            return
        found = np.asarray(high - share * spread)
        yield found


def _smoothest(
    above: Floats,
    room: Floats,
    own: Floats,
    level: Floats,
    starts: np.ndarray,
    block: np.ndarray,
    knots: np.ndarray,
    deadline: float,
    watch: Watch,
) -> Floats | None:
    """The rho with above @ rho <= room and own @ rho = level whose steps, all at knots, have the least sum."""
    ends = np.append(starts[1:], block.size)[block]
    inner = np.setdiff1d(knots, starts)

    def by_steps(rows: Floats) -> Floats:
        # A step at i moves every rho from i to the end of its block.
        tails = np.zeros((rows.shape[0], block.size + 1))
        tails[:, :-1] = np.cumsum(rows[:, ::-1], axis=1)[:, ::-1]
        moved = tails[:, :-1] - tails[:, ends]
        return np.hstack([moved[:, starts], moved[:, inner], -moved[:, inner]])

    answer = highs(
        np.concatenate([np.zeros(starts.size), np.ones(2 * inner.size)]),
        (by_steps(above), room),
        (by_steps(own), level),
        [(None, None)] * starts.size + [(0, None)] * (2 * inner.size),
        "highs",
        {
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
            "time_limit": max(deadline - time.monotonic(), 0.1),
        },
        watch,
        "proof",
    )
    if not answer.success:
        return None
    steps = np.zeros(block.size)
    steps[inner] = answer.x[starts.size : starts.size + inner.size] - answer.x[starts.size + inner.size :]
    total = np.cumsum(steps)
    return np.asarray(total - (total[starts] - answer.x[: starts.size])[block])


def _raise(found: Floats, pair: Pair, odds: float, curve: Curve) -> Floats:
    """Raise all multipliers in proportion to the mass until no column is above them."""
    _, lower, gaps = pair.merged
    mass = lower + gaps / 2
    for _ in range(6):
        worst = sweep(lower, gaps, found, odds, curve)
        if worst.largest <= 0:
            return found
        gain = 1 + odds * float(worst.pattern(int(np.argmax(worst.excess)), found.size) @ mass)
        found = found + mass * (worst.largest / gain * (1 + 1e-9))
    return found

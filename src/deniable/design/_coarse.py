"""Merging symbols until the 2^k program is small: what merged symbols can do, the separate ones can do too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.design._columns import ColumnUtility, Divergences, Information
from deniable.design._pair import Pair
from deniable.errors import ShapeError

_GROUPS = 12


def coarse_groups(utility: ColumnUtility) -> NDArray[np.int64]:
    """A group for each symbol: of like evidence for a family, of even mass for information."""
    if isinstance(utility, Information):
        # Largest first, each to the lightest group.
        prior, load = utility.prior, np.zeros(_GROUPS)
        groups = np.zeros(utility.size, dtype=np.int64)
        for x in np.argsort(-prior, kind="stable"):
            groups[x] = int(np.argmin(load))
            load[groups[x]] += prior[x]
        return groups
    if not isinstance(utility, Divergences):
        raise ShapeError(f"a utility of your own is optimized over at most 16 symbols, not {utility.size}")
    laws = np.array([[np.array(w, dtype=np.float64) / sum(w) for w in (p.weights0, p.weights1)] for p in utility.pairs])
    total = laws[:, 0] + laws[:, 1]
    share = np.where(total > 0, laws[:, 0] / np.where(total > 0, total, 1.0), 0.5).T
    mass = total.sum(axis=0)
    # Split the group with the most spread at its mean, along its widest direction, until there are enough.
    groups = np.zeros(utility.size, dtype=np.int64)
    for new in range(1, _GROUPS):
        best, cut = 0.0, None
        for g in range(new):
            inside = np.flatnonzero(groups == g)
            weights = mass[inside] + 1e-300
            mean = np.average(share[inside], axis=0, weights=weights)
            spread = weights @ (share[inside] - mean) ** 2
            axis = int(np.argmax(spread))
            if spread[axis] > best:
                best, cut = float(spread[axis]), inside[share[inside, axis] > mean[axis]]
        if cut is None or cut.size == 0:
            break
        groups[cut] = new
    return groups


def merged(utility: ColumnUtility, groups: NDArray[np.int64]) -> ColumnUtility:
    """The same utility for the merged symbols."""
    count = int(groups.max()) + 1

    def add(weights: tuple[int, ...]) -> tuple[int, ...]:
        sums = [0] * count
        for g, weight in zip(groups.tolist(), weights, strict=True):
            sums[g] += weight
        return tuple(sums)

    if isinstance(utility, Information):
        return Information(add(utility.weights))
    if isinstance(utility, Divergences):
        return Divergences(tuple(Pair(add(p.weights0), add(p.weights1)) for p in utility.pairs), utility.divergence)
    raise ShapeError("only built-in utilities can be merged")

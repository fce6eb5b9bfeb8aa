"""Shares of ordered cells without negative ones, from the levels of a tree: as smooth and as spiky as the reports say.

Seen       the shares of each level, whose errors are taken as normal and independent, with the variance of the level
Model      the logarithm of the density of a cell is a spline, as for the tally of a window (`density.py`), and a number
           of the cell's own. The spline has small differences of order 2 or 3; the cells' own numbers are normal and
           independent. So a shape may be smooth, or a few cells may be hundreds of times as common as others, or both
Strengths  one over the variance of the differences, and one over that of the cells' own numbers: powers of 10
Rule       each choice has its evidence, the probability of what was seen under it, by Laplace's approximation. For each
           order the best strengths are looked for step by step; all fits on the way are averaged, weighed by their
           evidence. The rule sees the tally and nothing else
Solving    the information of the levels about the cells is a sum of one product per node, so that the equations of
           Newton's method are solved from the leaves up (Sherman and Morrison at every node), in a time that grows like
           the cells. That all shares add up to one is one more node, known almost exactly
Source     MacKay 1992 (evidence); Aitchison and Shen 1980 (logistic normal shares); Hay et al. 2010 (the tree)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deniable._threads import one_thread
from deniable.protocols.numeric.density import NEAR, Explanation, Prior, prior_of, shares_of, weights_of
from deniable.results import Floats

_ORDERS = (2, 3)
_PIECES = 32
_MOST_STEPS = 30
_STEP = 10.0
_SMOOTH = range(12)
"""Powers by which the spline may be looser than the stiffest one."""
_SPIKY = range(-5, 4)
"""Powers by which the cells' own numbers may be looser than of variance 1."""
_START = (2, -1)
_EXACTLY = 1e4
"""The factor by which the sum of all shares is known better than the best level."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What the levels of a tree say about its cells."""

    fanouts: tuple[int, ...]
    shares: tuple[Floats, ...]
    precisions: tuple[float, ...]
    """One over the variance of a share of each level."""
    sizes: Floats
    """How wide each cell is; 0: nobody can be there."""

    def folded(self) -> Seen:
        """What they say about the nodes of the last level but one."""
        fanout, (*above, own, below) = self.fanouts[-1], self.shares
        *others, precision, finer = self.precisions
        total = precision + finer / fanout
        both = (precision * own + finer / fanout * below.reshape(-1, fanout).sum(axis=1)) / total
        sizes = self.sizes.reshape(-1, fanout).sum(axis=1)
        return Seen(self.fanouts[:-1], (*above, both), (*others, total), sizes)

    def judged(self, cells: Floats) -> tuple[float, Floats]:
        """The log-likelihood of shares of the cells, which add up to one, and its slope by each of them."""
        own = [cells]
        for fanout in reversed(self.fanouts[1:]):
            own.append(own[-1].reshape(-1, fanout).sum(axis=1))
        reached, slope = 0.0, np.zeros(1)
        for fanout, shares, seen, precision in zip(
            self.fanouts, reversed(own), self.shares, self.precisions, strict=True
        ):
            gap = seen - shares
            reached -= precision * float(gap @ gap) / 2
            slope = np.repeat(slope, fanout) + precision * gap
        return reached, slope

    @property
    def exactly(self) -> float:
        """The precision of the sum of all cells."""
        return _EXACTLY * max(self.precisions)

    def solved(self, cells: Floats, strength: float, wanted: Floats) -> tuple[Floats, float]:
        """K^-1 wanted, column by column, and the logarithm of the determinant of K.

        K is `strength` times the identity and the information about the logarithms of the cells: the sum over all nodes
        of their precision times f f', with f the shares of the node's cells.
        """
        diagonal = strength + self.precisions[-1] * cells**2
        found, turned = wanted / diagonal[:, None], cells / diagonal
        size = float(np.log(diagonal).sum())
        nodes = [*(one.size for one in self.shares[-2::-1]), 1]
        for count, precision in zip(nodes, [*self.precisions[-2::-1], self.exactly], strict=True):
            own, each = cells.reshape(count, -1), turned.reshape(count, -1)
            known = 1 + precision * (own * each).sum(axis=1)
            size += float(np.log(known).sum())
            rows = found.reshape(count, -1, wanted.shape[1])
            part = np.einsum("ni,nij->nj", own, rows) * (precision / known)[:, None]
            rows -= each[:, :, None] * part[:, None, :]
            each /= known[:, None]
        return found, size


class _Fit(NamedTuple):
    """The most probable logarithms of densities: basis @ spline + own."""

    spline: Floats
    own: Floats
    evidence: float
    shares: Floats


def _fit(seen: Seen, basis: Floats, precision: Floats, strength: float, spline: Floats, own: Floats) -> _Fit:
    """From a point on. The first column of the basis is a constant, about which the prior says nothing."""

    def judged(spline: Floats, own: Floats) -> tuple[Floats, Floats, float]:
        shares = shares_of(basis @ spline + own, seen.sizes)
        reached, slope = seen.judged(shares)
        return shares, slope, reached - (float(precision @ spline**2) + strength * float(own @ own)) / 2

    shares, slope, reached = judged(spline, own)
    for _ in range(_MOST_STEPS):
        gradient = shares * (slope - float(slope @ shares))
        by_own = gradient - strength * own
        solved, size = seen.solved(shares, strength, np.column_stack([by_own, basis]))
        # The cells' own numbers are eliminated: what is left is a system for the spline.
        left = strength * basis.T @ (basis - strength * solved[:, 1:])
        left[np.diag_indices_from(left)] += precision
        right = basis.T @ (gradient - by_own + strength * solved[:, 0]) - precision * spline
        step = np.linalg.solve(left, right)
        own_step = solved[:, 0] - (basis - strength * solved[:, 1:]) @ step
        gain = float(right @ step + by_own @ solved[:, 0])
        if gain < 2 * NEAR:
            break
        for _ in range(_MOST_STEPS):
            moved = judged(spline + step, own + own_step)
            if moved[2] > reached:
                spline, own, (shares, slope, reached) = spline + step, own + own_step, moved
                break
            step, own_step = step / 2, own_step / 2
        else:
            break
    size += float(np.linalg.slogdet(left)[1]) - math.log(seen.exactly)
    known = own.size * math.log(strength) + float(np.log(precision[1:]).sum())
    return _Fit(spline, own, reached + (known - size) / 2, shares)


def explained(seen: Seen, prior: Prior) -> list[_Fit]:
    """The fits of one order: from the start on, in steps to the best neighbour, until none is better."""
    basis = np.column_stack([np.ones(seen.sizes.size), prior.basis])
    known: dict[tuple[int, int], _Fit] = {}

    def fit(place: tuple[int, int], spline: Floats, own: Floats) -> _Fit:
        if place not in known:
            strength = prior.stiffest / _STEP ** place[0]
            precision = np.append(0.0, prior.free + strength * prior.rough)
            known[place] = _fit(seen, basis, precision, _STEP ** -place[1], spline, own)
        return known[place]

    at, best = _START, fit(_START, np.zeros(basis.shape[1]), np.zeros(seen.sizes.size))
    while True:
        beside = [(at[0] + i, at[1] + j) for i, j in ((0, 1), (0, -1), (1, 0), (-1, 0))]
        each = [(fit(one, best.spline, best.own), one) for one in beside if one[0] in _SMOOTH and one[1] in _SPIKY]
        found, place = max(each, key=lambda one: one[0].evidence)
        if found.evidence <= best.evidence:
            return list(known.values())
        at, best = place, found


@one_thread
def fitted(seen: Seen) -> Floats:
    """Shares of the cells, averaged over all orders and strengths by their evidence."""
    size = seen.sizes.size
    found: list[Explanation] = []
    for order in [order for order in _ORDERS if size >= order + 2] or [1]:
        each = explained(seen, prior_of(size, order, _PIECES))
        found += [Explanation(order, one.evidence, one.shares) for one in each]
    shares: Floats = weights_of(found) @ np.array([one.shares for one in found])
    return shares

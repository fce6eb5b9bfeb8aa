"""Score intervals: the shares that the estimate does not contradict, each judged by the error that it would have.

Statistic  (|r - t| - s)^2 <= z^2 V(t), with r an unbiased estimate that is linear in the counts (inversion, or the
           efficient one at the maximum of the likelihood), V(t) its variance if the share is t and the others are as
           estimated, and s half of what one report moves at most (counts are whole numbers)
Solution   V is quadratic in t, so the ends are the roots of quadratic equations
Why        a Wald interval takes the error at the estimate. Next to zero that error is far too small, or zero, where an
           output never came; here zero counts leave shares up to about z^2 / n. For one count of n this is Wilson's
           interval with the correction for continuity
Source     Rao 1948; Wilson 1927
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from deniable.channels._vectors import Floats


@dataclass(frozen=True, slots=True, eq=False)
class ScoreView:
    """What the intervals of all entries need."""

    centre: Floats
    """r."""
    without: Floats
    """n times the variance of r at t = 0 is this."""
    alone: Floats
    """n times the variance at t = 1 is this, less 1."""
    step: Floats
    """Half of what one report moves r at most."""
    n: float
    determined: NDArray[np.bool_]

    @classmethod
    def of(
        cls, rows: Floats, observed: Floats, frequencies: Floats, influence: Floats, determined: NDArray[np.bool_]
    ) -> ScoreView:
        """`influence[y, v]`: the mean of column v over the reports estimates entry v without bias."""
        n = float(observed.sum())
        shares = np.maximum(frequencies, 0.0)
        shares = shares / shares.sum()
        squares = influence**2
        alone = (rows * squares.T).sum(axis=1)
        mixed = shares @ rows @ squares - shares * alone
        rest = 1 - shares
        # Where everybody gives the one answer, the others are anything: the mean over all of them.
        even = (rows.sum(axis=0) @ squares - alone) / max(1, shares.size - 1)
        without = np.where(rest > 1e-12, mixed / np.maximum(rest, 1e-12), even)
        step = np.ptp(influence, axis=0) / (2 * n)
        return cls(observed @ influence / n, np.maximum(without, 0.0), alone, step, n, determined)

    def interval(self, level: float) -> Floats:
        z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2 / self.n
        low, high = (self._root(self.centre + side * self.step, z2, side) for side in (-1, 1))
        ends = np.stack([low, high], axis=1)
        ends[~self.determined] = [-np.inf, np.inf]
        return ends

    def _root(self, centre: Floats, z2: float, side: int) -> Floats:
        """Of (1 + z2) t^2 - (2 r + z2 (b - a)) t + r^2 - z2 a = 0, to one side."""
        half = centre + z2 * (self.alone - self.without) / 2
        inside = half**2 - (1 + z2) * (centre**2 - z2 * self.without)
        root = (half + side * np.sqrt(np.maximum(inside, 0.0))) / (1 + z2)
        # What is within one step of the estimate is never excluded, also beyond [0, 1], where no variance is known.
        end: Floats = np.minimum(root, centre) if side < 0 else np.maximum(root, centre)
        return end

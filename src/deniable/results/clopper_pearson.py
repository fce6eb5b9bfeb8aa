"""Clopper-Pearson: an interval for a binomial probability that covers it at least as often as promised."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def clopper_pearson(counts: Floats, n: Floats | float, level: float) -> Floats:
    """One row of ends per count out of n, which may differ from count to count.

    >>> clopper_pearson(np.array([0.0, 5.0, 10.0]), 10, 0.95).round(3).tolist()
    [[0.0, 0.308], [0.187, 0.813], [0.692, 1.0]]
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = np.where(counts > 0, betaincinv(np.where(counts > 0, counts, 1.0), n - counts + 1, tail), 0.0)
    high = np.where(counts < n, betaincinv(counts + 1, np.where(counts < n, n - counts, 1.0), 1 - tail), 1.0)
    return np.stack([low, high], axis=1)

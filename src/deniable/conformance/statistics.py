"""Chi-square tests that say how often they are wrong, and how many draws they need to see a wrong law.

ALPHA is the false-positive rate of one test: with a thousand tests, one run in a thousand fails by chance
(and seeds are fixed, so a run that passes goes on passing).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

ALPHA = 1e-6
MISS = 1e-6  # how often the test may overlook the wrong law that it was sized for


def p_value(counts: ArrayLike, law: ArrayLike) -> float:
    """Pearson's chi-square; cells that expect fewer than 10 are pooled, an impossible outcome is fatal."""
    observed, expected = np.asarray(counts, dtype=float), np.asarray(law, dtype=float)
    if (observed[expected == 0] > 0).any():
        return 0.0
    expected = expected / expected.sum() * observed.sum()
    order = np.argsort(expected)
    small = int((np.cumsum(expected[order]) < 10).sum())
    if small:
        pooled = order[: small + 1]
        rest = order[small + 1 :]
        observed = np.append(observed[rest], observed[pooled].sum())
        expected = np.append(expected[rest], expected[pooled].sum())
    if observed.size < 2:
        return 1.0
    keep = expected > 0
    statistic = float(((observed[keep] - expected[keep]) ** 2 / expected[keep]).sum())
    return float(stats.chi2.sf(statistic, keep.sum() - 1))


def accepts(counts: ArrayLike, law: ArrayLike) -> bool:
    return p_value(counts, law) >= ALPHA


def draws_needed(law: ArrayLike, wrong: ArrayLike) -> int:
    """How many draws from `wrong` make the test of `law` fail, except once in a million."""
    p, q = np.asarray(law, dtype=float), np.asarray(wrong, dtype=float)
    cells = p > 0
    distance = float(((p - q)[cells] ** 2 / p[cells]).sum())
    freedom = int(cells.sum()) - 1
    critical = stats.chi2.isf(ALPHA, freedom)
    shift = optimize.brentq(lambda s: stats.ncx2.cdf(critical, freedom, s) - MISS, 1.0, 1e5)
    return int(np.ceil(1.1 * shift / distance))


def tabulate(outcomes: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return np.bincount(outcomes, minlength=size)

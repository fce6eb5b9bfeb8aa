"""Bounds on how much more likely an event is under one input than under another, from counts.

Ratio      ln(p / q) from two counts, with Clopper and Pearson's bounds made as sharp as their order allows (Buehler)
Odds       of a binomial number, right and wrong: one bound of Clopper and Pearson's
Careful    the same bounds far beyond chance, for choosing the best of thousands of events
Source     Clopper and Pearson 1934; Buehler 1957; Berger and Boos 1994
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CELLS, _BLOCKS, _STEP = 96, 512, 2.0**-13
"""Parts of the interval of a probability that are tried, parts of the counts, and how exactly a bound is found."""
SURE = 3.2e-5
"""How rarely a bound is wrong by which events are compared: the best of thousands is chosen."""


def clopper_pearson(count: int, n: int, alpha: float, upper: bool) -> float:
    """A bound of a probability that is wrong with probability alpha at most.

    >>> round(clopper_pearson(0, 1000, 0.05, upper=True), 6)
    0.002991
    """
    from scipy.special import betaincinv

    if upper:
        return 1.0 if count >= n else float(betaincinv(count + 1, n - count, 1 - alpha))
    return 0.0 if count <= 0 else float(betaincinv(count, n - count + 1, alpha))


def _spread(p: Any, n: float) -> Any:
    """The standard error of the logarithm of a share."""
    return np.sqrt((1 - p) / (n * p))


def split_error(p: float, q: float, n: int, alpha: float) -> tuple[float, float]:
    """How to give the error to the bounds of p and q, so that the bound of ln(p / q) is largest."""
    from scipy.special import ndtri

    shares = np.linspace(0.02, 0.98, 97)
    cost = -ndtri(alpha * shares) * _spread(p, n) - ndtri(alpha * (1 - shares)) * _spread(q, n)
    share = float(shares[np.argmin(cost)])
    return alpha * share, alpha * (1 - share)


def lower_bound(count: int, other: int, n: int, alpha: float, split: tuple[float, float] | None = None) -> float:
    """ln(p / q) at least, from two counts of n; wrong with probability alpha at most.

    Clopper and Pearson's bounds of p and q, where either is wrong with probability alpha at most, put all pairs of
    counts into an order. Buehler's bound is the smallest ln(p / q) under which as high a place in that order is not
    too rare, whatever q is: never below theirs, and the best of this order. As in Berger and Boos, q is looked for
    in an interval that holds it but for a fiftieth of alpha. Between two values of q that are tried p is taken at the
    upper one and q at the lower one, which makes high places likelier; so nothing between them is missed.

    >>> round(lower_bound(3655, 1345, 10_000, 0.05), 3)
    0.95
    """
    first, second = split or (alpha / 2, alpha / 2)
    low, high = clopper_pearson(count, n, first, False), clopper_pearson(other, n, second, True)
    if low <= 0:
        return -math.inf
    from scipy.special import bdtr, betainc, betaincinv

    spare = alpha / 50
    ends = clopper_pearson(other, n, spare / 2, False), clopper_pearson(other, n, spare / 2, True)
    grid = np.geomspace(max(ends[0], 1e-9 / n), ends[1], _CELLS + 1)
    below, above = (np.r_[0.0, grid[1:-1]], grid[1:]) if ends[0] == 0 else (grid[:-1], grid[1:])
    # Counts of the second input in blocks; each block is replaced by its smallest count.
    first_count, last_count = _usual(n, below[0], above[-1])
    counts = np.unique(np.linspace(first_count, last_count, _BLOCKS + 1).astype(np.int64))
    held = np.diff(np.where(counts > 0, bdtr(np.maximum(counts - 1.0, 0), n, below[:, None]), 0.0), axis=1)
    missing = 1 - held.sum(axis=1)  # beyond the counts that were looked at: as if always high
    counts = counts[:-1]
    # From which count of the first input on a pair is at least as high as the one that was seen.
    uppers = np.where(counts < n, betaincinv(counts + 1.0, np.maximum(n - counts, 1e-9), 1 - second), 1.0)
    goals = np.minimum(low / high * uppers, 1.0)
    least, most = np.zeros(counts.size, dtype=np.int64), np.full(counts.size, n + 1)
    while (most - least > 1).any():
        middle = (least + most) // 2
        enough = betainc(middle, n - middle + 1.0, goals) <= first * (1 + 1e-12)
        least, most = np.where(enough, least, middle), np.where(enough, middle, most)
    held, lies = held[:, most <= n], n - most[most <= n].astype(np.float64)

    def seldom(size: float) -> bool:
        rows = below * math.exp(size) <= 1  # else p would be above 1
        p = np.minimum(1.0, above[rows] * math.exp(size))
        high_places = (held[rows] * bdtr(lies, n, 1 - p[:, None])).sum(axis=1) + missing[rows]
        return bool(high_places.max(initial=0.0) + spare <= alpha)

    known, unknown = math.log(low / high), math.log((count + 0.5) / (other + 0.5))
    while unknown - known > _STEP:
        middle = (known + unknown) / 2
        known, unknown = (middle, unknown) if seldom(middle) else (known, middle)
    return known


def _usual(n: int, low: float, high: float) -> tuple[int, int]:
    """Outside of these counts there is next to nothing, for any share between two."""
    first, last = n * low - 6 * math.sqrt(n * low) - 20, n * high + 6 * math.sqrt(n * high) + 20
    return max(0, int(first)), min(n, int(last)) + 1


def lower_bound_of_odds(right: int, wrong: int, alpha: float) -> float:
    """The logarithm of the odds at least, from how many of a binomial number are right and wrong.

    >>> round(lower_bound_of_odds(7310, 2690, 0.05), 3)
    0.962
    """
    share = clopper_pearson(right, right + wrong, alpha, False) if right else 0.0
    return math.log(share / (1 - share)) if share else -math.inf


def careful_ends(counts: Any, n: int, alpha: float = SURE) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The logarithms of Clopper and Pearson's bounds of many shares of n; minus infinity for a share that may be zero.

    >>> low, high = careful_ends([0, 500], 1000, alpha=0.05)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([-inf, -0.748], [-5.812, -0.642])
    """
    from scipy.special import betaincinv

    different, places = np.unique(np.rint(counts).astype(np.int64), return_inverse=True)
    low, high = np.zeros(different.size), np.ones(different.size)
    some, missing = different > 0, different < n
    low[some] = betaincinv(different[some], n - different[some] + 1, alpha)
    high[missing] = betaincinv(different[missing] + 1, n - different[missing], 1 - alpha)
    with np.errstate(divide="ignore"):
        return tuple(np.log(end)[places].reshape(np.shape(counts)) for end in (low, high))  # type: ignore[return-value]


def careful_ratio(counts: Any, others: Any, n: int, alpha: float = SURE) -> NDArray[np.float64]:
    """ln(p / q) at least, one by one, from counts of n each: what an event will be judged by, and surer."""
    return careful_ends(counts, n, alpha)[0] - careful_ends(others, n, alpha)[1]


def careful_odds(right: Any, wrong: Any, alpha: float = SURE) -> NDArray[np.float64]:
    """`lower_bound_of_odds` of many counts.

    >>> careful_odds([7310, 0], [2690, 0], alpha=0.05).round(3).tolist()
    [0.962, -inf]
    """
    from scipy.special import betaincinv

    mine, others = (np.asarray(counts, dtype=np.float64) for counts in (right, wrong))
    share = np.where(mine > 0, betaincinv(np.maximum(mine, 1), others + 1, alpha), 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(share / (1 - share)))


def expected_lower(p: float, q: float, n: float, alpha: float, spare: float = 0.0, both: bool = False) -> float:
    """About what the bound will be with n samples of each input, less `spare` standard errors.

    With `both` p and q are the shares of samples that speak for and against their input.
    """
    from scipy.special import ndtri

    spread = math.sqrt((1 / p + 1 / q) / (2 * n)) if both else math.hypot(float(_spread(p, n)), float(_spread(q, n)))
    return math.log(p / q) + (float(ndtri(alpha)) - spare) * spread

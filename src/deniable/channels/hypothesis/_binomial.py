"""Exact tests between two laws with two different likelihood ratios: counts are binomial, for any n.

K counts the output that speaks for the first hypothesis; the best test says "second" when K < k. Binomial tails are
incomplete beta functions: P(K >= k) = I_x(k, n-k+1). A test whose type-I error lies between two k mixes them.
"""

from __future__ import annotations

import math

from deniable.channels.hypothesis._pair import Pair


def _errors(pair: Pair, n: int, k: int) -> tuple[float, float]:
    """Type-I and type-II error of saying "second" when K < k."""
    from scipy.special import betainc

    scale0, scale1 = (math.exp(x) for x in pair.log_shared(n))
    if k <= 0:
        return 0.0, scale1
    if k > n:
        return scale0, 0.0
    one = float(betainc(n - k + 1, k, pair.p[0] / (pair.p[0] + pair.p[1])))
    two = float(betainc(k, n - k + 1, pair.q[1] / (pair.q[0] + pair.q[1])))
    return scale0 * one, scale1 * two


def bayes_by_counts(pair: Pair, n: int, prior: float) -> tuple[float, float]:
    """Type-I and type-II error of the Bayes test; ties go to the first hypothesis."""
    low, high = pair.llr
    threshold = math.log1p(-prior) - math.log(prior)
    k = math.ceil((threshold - n * low) / (high - low))
    return _errors(pair, n, min(max(k, 0), n + 1))


def level_by_counts(pair: Pair, n: int, level: float) -> tuple[float, float]:
    """Type-I and type-II error of the most powerful randomized test of that type-I error."""
    low, high = 0, n + 1
    if _errors(pair, n, high)[0] <= level:
        return _errors(pair, n, high)
    while high - low > 1:
        middle = (low + high) // 2
        if _errors(pair, n, middle)[0] <= level:
            low = middle
        else:
            high = middle
    (one, two), (next_one, next_two) = _errors(pair, n, low), _errors(pair, n, high)
    share = (level - one) / (next_one - one)
    return level, two + share * (next_two - two)

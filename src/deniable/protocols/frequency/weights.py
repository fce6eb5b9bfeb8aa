"""How many ones an honest bitmap has: outside these bounds a report is made up.

A fake report that sets every bit pushes every answer at once; one that keeps to a usual number of ones cannot push more
than an honest device by luck. The number of ones is a binomial variable of m bits at q, plus at most `more` others, so
by Chernoff's bound P(ones >= k) <= exp(-m KL(k / m || q)), and likewise below.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache

SELDOM = 61 * math.log(2)  # 2^-61 on either side


@lru_cache(maxsize=1024)
def usual_weights(m: int, q: float, more: int = 0) -> tuple[int, int]:
    """The smallest and the largest number of ones that are taken; an honest one lies outside with at most 2^-60.

    >>> usual_weights(1023, 0.27, more=1)
    (154, 413)
    >>> usual_weights(4, 0.27, more=1)
    (0, 5)
    """
    mean = m * q
    high = bisect_left(range(m + 1), SELDOM, lo=math.ceil(mean), key=lambda k: _exponent(k, m, q))
    low = bisect_left(range(m + 1), SELDOM, lo=math.ceil(m - mean), key=lambda k: _exponent(k, m, 1 - q))
    # The first unlikely weight upwards, and the first unlikely number of zeros.
    return m - low + 1 if low <= m else 0, high - 1 + more if high <= m else m + more


def _exponent(k: int, m: int, q: float) -> float:
    share = k / m if m else 0.0
    ones = share * math.log(share / q) if share else 0.0
    zeros = (1 - share) * math.log((1 - share) / (1 - q)) if share < 1 else 0.0
    return m * (ones + zeros)

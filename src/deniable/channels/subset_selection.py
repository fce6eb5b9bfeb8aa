"""Subset selection: report w answers, the true one more often among them than not.

Law        the subset contains the truth with probability p = T / 2^64, T = floor(2^64 w e / (w e + k - w));
           given that, it is uniform among the subsets of size w that do (or do not)
Privacy    P(S | x in S) / P(S | x not in S) = p (k - w) / (w (1 - p)) <= e = e^epsilon
Use        the smallest variance of all for w near k / (e + 1); the matrix form is for analysis at small k
Source     Ye and Barg 2018; Wang et al. 2016
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

from deniable import exact
from deniable.channels.channel import Channel
from deniable.channels.compose import MOST_CELLS
from deniable.errors import ChannelError, ShapeError
from deniable.exact import WORD, Dyadic


def subset_selection(k: int, epsilon: Any, w: int | None = None) -> Channel:
    """The channel of subset selection over 0 .. k - 1; outputs are tuples of w answers in ascending order.

    >>> subset_selection(4, epsilon=1).shape
    (4, 4)
    """
    level, k = exact.as_epsilon(epsilon), exact.whole(k, "the number of possible answers")
    if k < 2:
        raise ShapeError(f"subset selection needs at least 2 possible answers, not {k}")
    size = best_subset_size(k, float(level)) if w is None else exact.whole(w, "the size of a subset")
    if not 1 <= size < k:
        raise ShapeError(f"a subset has between 1 and {k - 1} of the {k} answers, not {size}")
    # C(k, size) >= k, so the first test spares the count of subsets where it would take minutes.
    if k * k > MOST_CELLS or math.comb(k, size) * k > MOST_CELLS:
        raise ChannelError(f"there are too many subsets of {size} among {k} answers for a matrix")
    holds = Dyadic.floor_of(lambda e: size * e / (size * e + k - size), level).numerator
    inside, outside = math.comb(k - 1, size - 1), math.comb(k - 1, size)
    subsets = list(combinations(range(k), size))
    weight = {True: holds * outside, False: (WORD - holds) * inside}
    numerators = [[weight[x in subset] for subset in subsets] for x in range(k)]
    return Channel.from_integers(numerators, WORD * inside * outside, None, subsets)


def best_subset_size(k: int, epsilon: float) -> int:
    """The size with the smallest mean squared error: one of the two integers around k / (e^epsilon + 1)."""
    odds = math.exp(epsilon)
    ideal = k / (odds + 1)
    sizes = {min(max(1, s), k - 1) for s in (math.floor(ideal), math.ceil(ideal))}
    return min(sizes, key=lambda w: (w * odds + k - w) ** 2 / (w * (k - w)))

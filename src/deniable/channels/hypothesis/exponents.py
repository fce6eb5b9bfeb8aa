"""How fast errors fall with the number of reports: exponents and an inequality for every n.

Stein      at a fixed type-I error the best type-II error is e^(-n KL(M0 || M1) + o(n))
Chernoff   the Bayes error is e^(-n C + o(n)), and at most e^(-n C): C = -min over s of ln sum M0^s M1^(1-s);
           several hypotheses: the least C over pairs
Le Cam     type I + type II >= 1 - TV(M0^n, M1^n) >= max( 1 - sqrt(1 - BC^2n), (1 - TV)^n ), exact tensorization of the
           Bhattacharyya coefficient BC = sum sqrt(M0 M1) = 1 - hellinger2, and of the overlap 1 - TV
Source     Chernoff 1952; Le Cam 1973; Tsybakov 2009, chapter 2
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from numpy.typing import ArrayLike

from deniable.channels.divergences import (
    divergence,
)
from deniable.channels.hypothesis._bracket import bisect, read_pair
from deniable.channels.hypothesis.ratio_test import read_count
from deniable.errors import ShapeError


@dataclass(frozen=True, slots=True)
class Chernoff:
    """The Chernoff information `value`, the `exponent` s that attains it, and the two laws concerned.

    Args:
        value: The Chernoff information, in nats.
        exponent: The exponent that attains it.
        pair: Positions of the two laws.
    """

    value: float
    exponent: float
    pair: tuple[int, int] = (0, 1)


def stein_exponent(m0: ArrayLike, m1: ArrayLike) -> float:
    """KL(m0 || m1): the rate at which the type-II error falls at a fixed type-I error.

    Args:
        m0: The law of one report under the first hypothesis.
        m1: The law of one report under the second hypothesis.

    Returns:
        The exponent, in nats per report.
    """
    return divergence(m0, m1, "kl")


def chernoff_information(m0: ArrayLike, m1: ArrayLike) -> Chernoff:
    """The rate at which the Bayes error falls.

    Args:
        m0: The law of one report under the first hypothesis.
        m1: The law of one report under the second hypothesis.

    Returns:
        The Chernoff information; infinite if the laws do not overlap.

    >>> result = chernoff_information([0.75, 0.25], [0.25, 0.75])
    >>> round(result.value, 12), round(result.exponent, 12)      # ln(2 / sqrt 3)
    (0.143841036226, 0.5)
    """
    pair = read_pair(m0, m1)
    if pair.llr.size == 0:
        return Chernoff(math.inf, 0.5)
    if pair.llr.size == 1 and pair.only0 == pair.only1:
        return Chernoff(-pair.log_moment(0.5), 0.5)
    ends = [s for s, past in ((0.0, pair.slope(0.0) >= 0), (1.0, pair.slope(1.0) <= 0)) if past]
    s = ends[0] if ends else bisect(lambda s: pair.slope(s) > 0, 0.0, 1.0)
    return Chernoff(max(-pair.log_moment(s), 0.0), s)


def least_chernoff_information(distributions: Sequence[ArrayLike]) -> Chernoff:
    """The rate at which the Bayes error between several laws falls: that of the two hardest to distinguish.

    Args:
        distributions: The law of one report under each hypothesis.

    Returns:
        The smallest Chernoff information, with the pair that has it.

    Raises:
        ShapeError: There are fewer than two distributions.
    """
    if len(distributions) < 2:
        raise ShapeError(f"two or more distributions are needed to tell apart, got {len(distributions)}")
    best = Chernoff(math.inf, 0.5)
    for i, j in combinations(range(len(distributions)), 2):
        found = chernoff_information(distributions[i], distributions[j])
        if found.value <= best.value:
            best = Chernoff(found.value, found.exponent, (i, j))
    return best


def le_cam_bound(m0: ArrayLike, m1: ArrayLike, n: int) -> float:
    """No test on n reports has type-I plus type-II error below this (and none an average error below half of it).

    Args:
        m0: The law of one report under the first hypothesis.
        m1: The law of one report under the second hypothesis.
        n: Number of reports.

    Returns:
        Lower bound on the sum of the two errors.

    >>> le_cam_bound([0.75, 0.25], [0.25, 0.75], 1)
    0.5
    """
    reports = read_count(n)
    overlap = 1 - divergence(m0, m1, "tv")
    square = math.exp(2 * reports * _log1m(divergence(m0, m1, "hellinger2")))
    return float(max(square / (1 + math.sqrt(1 - square)), max(overlap, 0.0) ** reports))


def _log1m(x: float) -> float:
    return math.log1p(-x) if x < 1 else -math.inf

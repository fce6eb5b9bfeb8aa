"""The truncated geometric mechanism: a count that stays in its range.

Law        with a = e^(-epsilon / sensitivity): P(z | y) = a^|z - y| (1 - a) / (1 + a) inside the range, and
           a^|z - y| / (1 + a) at its two ends, which take what would have fallen outside
Privacy    neighbouring counts differ by the factor 1 / a everywhere; a is rounded up to a fraction, so the
           level is never exceeded and every row still sums to one exactly
Use        universally optimal for counting queries, after its Bayes remap (Ghosh, Roughgarden, Sundararajan 2009)
Source     Ghosh et al. 2009
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from deniable import exact
from deniable.channels.adjacency import line
from deniable.channels.channel import Channel
from deniable.errors import ChannelError, ShapeError

# Relative distance of the fraction from e^-epsilon: far below anything that utility can feel.
_CLOSENESS = Fraction(1, 10**12)
_MOST_BITS = 1 << 31


def truncated_geometric(n: int, epsilon: Any, sensitivity: int = 1) -> Channel:
    """The geometric mechanism on {0, ..., n}, for counts that one person changes by at most `sensitivity`.

    >>> channel = truncated_geometric(100, epsilon=1)
    >>> channel.epsilon_under("line") <= 1, bool((channel.numerators > 0).all())
    (True, True)
    """
    largest, reach = exact.whole(n, "n"), exact.whole(sensitivity, "the sensitivity")
    if largest < 1 or reach < 1:
        raise ShapeError("a truncated geometric mechanism needs n >= 1 and a sensitivity of at least 1")
    return clamped_geometric(decay_ceil(exact.as_epsilon(epsilon) / reach), 0, largest, reach)


def decay_ceil(epsilon: Fraction) -> Fraction:
    """The simplest fraction within a factor 1 + 1e-12 above e^-epsilon."""
    upper = exact.exp_ceil(-epsilon)
    # The smaller epsilon is, the closer 1 - a has to be: what counts is the error of epsilon itself.
    return exact.simplest_between(upper, upper * (1 + _CLOSENESS * min(epsilon, Fraction(1))))


def fits(alpha: Fraction, n: int) -> bool:
    """Whether the exact matrix on n + 1 counts stays below a quarter of a gigabyte."""
    return (n + 1) ** 2 * n * alpha.denominator.bit_length() <= _MOST_BITS


def clamped_geometric(alpha: Fraction, low: int, high: int, reach: int) -> Channel:
    """Two-sided geometric noise with decay alpha, clamped to low .. high, on inputs low .. high."""
    n = high - low
    a, b = alpha.numerator, alpha.denominator
    if not fits(alpha, n):
        raise ChannelError(
            f"the exact matrix on {n + 1} counts would not fit in memory: use DiscreteLaplace, or group the counts"
        )
    # Everything over (a + b) b^n: an end weighs a^d b^(n+1-d), an inner point (b - a) a^d b^(n-d).
    up, down = [a**d for d in range(n + 1)], [b**d for d in range(n + 2)]
    end = [up[d] * down[n + 1 - d] for d in range(n + 1)]
    inner = [(b - a) * up[d] * down[n - d] for d in range(n + 1)]
    numerators = np.empty((n + 1, n + 1), dtype=object)
    for y in range(n + 1):
        row = [inner[abs(z - y)] for z in range(n + 1)]
        row[0], row[n] = end[y], end[n - y]
        numerators[y] = row
    labels = range(low, high + 1)
    return Channel.from_integers(numerators, (a + b) * b**n, labels, labels, line(reach))

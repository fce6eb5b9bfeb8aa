"""The exact law of two-sided geometric noise clamped to a range, in integers.

Law        with the decay a / b and n + 1 counts, over (a + b) b^(n-1): an end weighs a^d b^(n-d) and an inner point
           (b - a) a^d b^(n-1-d), where d is the distance of input and output
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, repeat
from operator import mul

import numpy as np
from numpy.typing import NDArray

from deniable import exact

# Relative distance of the fraction from e^-epsilon: too small to affect utility.
_CLOSENESS = Fraction(1, 10**12)
_MOST_BITS = 1 << 31


def decay_ceil(epsilon: Fraction) -> Fraction:
    """The simplest fraction within a factor 1 + 1e-12 above e^-epsilon."""
    upper = exact.exp_ceil(-epsilon)
    # The smaller epsilon is, the closer 1 - a has to be: the relevant error is that of epsilon itself.
    return exact.simplest_between(upper, upper * (1 + _CLOSENESS * min(epsilon, Fraction(1))))


def fits(decay: Fraction, n: int) -> bool:
    """Whether the exact matrix on n + 1 counts is smaller than a quarter of a gigabyte."""
    return matrix_bits(decay, n) <= _MOST_BITS


def matrix_bits(decay: Fraction, n: int) -> int:
    """Approximate size in bits of the exact matrix on n + 1 counts."""
    return (n + 1) ** 2 * n * decay.denominator.bit_length()


def denominator(decay: Fraction, n: int) -> int:
    """The common denominator of all entries."""
    a, b = decay.numerator, decay.denominator
    return (a + b) * int(b ** (n - 1))


def powers(base: int, highest: int) -> list[int]:
    """base^0 .. base^highest."""
    return list(accumulate(repeat(base, highest), mul, initial=1))


def matrix(decay: Fraction, n: int) -> NDArray[np.object_]:
    """The numerators on n + 1 counts; 2 n + 1 different integers, each in many cells."""
    a, b = decay.numerator, decay.denominator
    up, down = powers(a, n), powers(b, n)
    inner = [(b - a) * up[d] * down[n - 1 - d] for d in range(n)]
    end = [up[d] * down[n - d] for d in range(n + 1)]
    table = np.empty((n + 1, n + 1), dtype=object)
    for y in range(n + 1):
        table[y] = [end[y], *(inner[abs(z - y)] for z in range(1, n)), end[n - y]]
    table.flags.writeable = False
    return table

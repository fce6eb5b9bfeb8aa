"""Epsilons as people read them: rounded up in the last digit, so that what is printed holds."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from deniable import exact

DIGITS = 10
_LONGEST_FRACTION = 9


def level_text(ratio: Fraction | float, distance: Fraction = Fraction(1), digits: int = DIGITS) -> str:
    """ln(ratio) / distance: the epsilon of a law whose likelihoods differ by at most that ratio.

    >>> level_text(Fraction(3)), level_text(Fraction(27182818285, 10**10)), level_text(Fraction(3), digits=4)
    ('1.098612289', '1.000000001', '1.099')
    """
    if isinstance(ratio, float):
        return "infinite"
    level = exact.log(ratio) / float(distance) if ratio > 1 else 0.0
    if not 0 < level <= exact.LARGEST_EPSILON:
        return f"{level:.{digits}g}"
    found = Context(digits, ROUND_FLOOR).create_decimal(level)
    while not exact.exp_at_least(Fraction(found) * distance, ratio):
        found = found.next_plus(Context(digits))
    return f"{float(found):.{digits}g}"


def largest_text(epsilon: Fraction) -> str:
    """An epsilon that is a limit: as `epsilon_text` where that is exact, else rounded down, so that it fits.

    >>> largest_text(Fraction("0.4")), largest_text(Fraction(1, 7)), largest_text(Fraction("1.23457") / 7)
    ('0.4', '1/7', '0.1763')
    """
    written = epsilon_text(epsilon)
    if Fraction(written) <= epsilon:
        return written
    found = Context(4, ROUND_FLOOR).divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    return f"{float(found):.4g}"


def epsilon_text(epsilon: Fraction, digits: int = DIGITS) -> str:
    """An epsilon that somebody named: as it is where that is short, as in 0.1 and 1/3.

    >>> epsilon_text(Fraction("0.1")), epsilon_text(Fraction(1, 3)), epsilon_text(Fraction("1.0986122886681098"))
    ('0.1', '1/3', '1.098612289')
    """
    found = Context(digits, ROUND_CEILING).divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    fraction = exact.canonical(epsilon)
    if Fraction(found) != epsilon and len(fraction) <= _LONGEST_FRACTION:
        return fraction
    return f"{float(found):.{digits}g}"

"""Privacy accounting: what several releases about one person give away together, in fractions and never floats.

Sequential  releases about the same person: levels add up. This also holds if each release is chosen after seeing the
            ones before, which is how a device answers
Parallel    releases about different people, each person in one of them at most: the largest level
Ratios      likelihood ratios multiply; the product of exact ratios is the realized loss, at most e^(sum of levels)
Account     a cap and what was spent of it; what would pass the cap is refused, whole
Source      Dwork and Roth 2014, theorem 3.16; McSherry 2009, theorem 4; for levels that are chosen on the way, Rogers,
            Roth, Ullman and Vadhan 2016: for pure levels a cap on the sum is enough
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable import exact
from deniable.errors import DeniableError, NumberError

__all__ = ["Account", "OverBudget", "parallel", "ratios", "sequential"]


class OverBudget(DeniableError, ValueError):
    """Something that costs more than is left."""


def sequential(levels: Iterable[Any]) -> Fraction:
    """The level of all these releases about one person.

    >>> sequential(["0.1"] * 10)
    Fraction(1, 1)
    """
    return sum(map(_level, levels), Fraction(0))


def parallel(levels: Iterable[Any]) -> Fraction:
    """The level of these releases when nobody's data is in two of them.

    >>> parallel([1, "1/2"])
    Fraction(1, 1)
    """
    return max(map(_level, levels), default=Fraction(0))


def ratios(factors: Iterable[Any]) -> Fraction:
    """The likelihood ratio of all these releases about one person.

    >>> ratios([3, "3/2"])
    Fraction(9, 2)
    """
    exactly = [exact.fraction(factor, "a likelihood ratio") for factor in factors]
    if any(factor < 1 for factor in exactly):
        raise NumberError("a likelihood ratio is at least 1: give the larger probability over the smaller")
    return math.prod(exactly, start=Fraction(1))


@dataclass(frozen=True)
class Account:
    """A lifetime cap and what is spent of it. Spending gives a new account, so what was refused changes nothing.

    >>> account = Account(cap="1").spend("0.4").spend("0.6")
    >>> account.left, account.allows("0.0001")
    (Fraction(0, 1), False)
    """

    cap: Fraction
    spent: Fraction = Fraction(0)

    def __init__(self, cap: Any, spent: Any = 0) -> None:
        object.__setattr__(self, "cap", _level(cap))
        object.__setattr__(self, "spent", _level(spent))

    @property
    def left(self) -> Fraction:
        """What may still be spent; zero where more was spent under an earlier, larger cap."""
        return max(self.cap - self.spent, Fraction(0))

    def allows(self, level: Any) -> bool:
        """Whether this much is left. What costs nothing is always allowed."""
        cost = _level(level)
        return cost == 0 or self.spent + cost <= self.cap

    def spend(self, level: Any) -> Account:
        """The account after it, or a refusal that says what is left."""
        if not self.allows(level):
            raise OverBudget(
                f"this costs epsilon {exact.canonical(_level(level))} and {exact.canonical(self.left)} is left "
                f"of {exact.canonical(self.cap)}"
            )
        return Account(self.cap, self.spent + _level(level))


def _level(value: Any) -> Fraction:
    level = exact.fraction(value, "a privacy level")
    if level < 0:
        raise NumberError(f"a privacy level is not negative, and {exact.shown(level)} is")
    return level

"""The privacy blanket of a report: the part of its law that is the same whatever the answer.

Blanket    m(report) = the smallest probability of the report under any answer, or anything below that; its mass is the
           sum over all reports. With that probability a person's report says nothing about the answer, and hides others
Cells      reports with equal likelihoods under two answers, relative to m, count together: (mass, one, other)
Worse      one law of cells is worse than another if E f(s one - t other) is at least as large for every convex f and
           s, t >= 0. Every bound of `privacy.shuffle` then is at least as large too
           - where a likelihood is `ratio` or 1 (the report supports the answer or not), the pair of answers with the
             least common support is the worst: moving equal masses from (ratio, ratio) and (1, 1) to (ratio, 1) and
             (1, ratio) keeps the mean of s one - t other and spreads it, for every s and t
           - where likelihoods lie between 1 and `ratio`, the law with all of it at the ends is the worst, because f is
             convex in both; the same move then leaves as little common support as fits
           - mixtures and products of worse laws are worse: f(s one - t other) is a function of the same form in each
Source     Balle, Bell, Gascon and Nissim 2019; Su, Cheng and Wang 2025 (no decomposition is better than the blanket)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

__all__ = ["Blanket", "Cell", "mixed", "of_laws", "power", "product", "supporting", "worst"]


class Cell(NamedTuple):
    """Reports that are equally telling about two answers."""

    mass: Fraction
    """How likely they are in the blanket."""
    one: Fraction
    """How many times as likely they are under the first answer."""
    other: Fraction
    """The same under the second."""


Blanket = tuple[Cell, ...]

_MOST_PAIRS = 24
_MOST_LISTED = 1 << 14
_MOST_CELLS = 4096
_ONE = Fraction(1)


def _merged(cells: Iterable[Cell]) -> Blanket:
    total: dict[tuple[Fraction, Fraction], Fraction] = {}
    for mass, one, other in cells:
        total[one, other] = total.get((one, other), Fraction(0)) + mass
    return tuple(Cell(mass, *key) for key, mass in sorted(total.items()) if mass)


def supporting(
    mass: Fraction, ratio: Fraction, both: Fraction = Fraction(0), everyone: Fraction = Fraction(0)
) -> Blanket:
    """The worst pair of answers where a report is `ratio` times as likely under the answers that it supports.

    mass       the sum over all reports of their probability under an answer that they do not support
    both       a lower bound on the part of it from reports that support both answers
    everyone   the part from reports that support all answers: they say nothing, whatever their likelihood

    >>> [tuple(map(str, cell)) for cell in supporting(Fraction(2, 4), Fraction(3))]
    [('1/4', '1', '3'), ('1/4', '3', '1')]
    """
    if ratio == 1:
        return (Cell(_ONE, _ONE, _ONE),)
    supported = (1 - mass) / (ratio - 1)
    both = max(both, 2 * supported - mass)
    alone = supported - both
    return _merged(
        [
            Cell(both - everyone, ratio, ratio),
            Cell(everyone * ratio, _ONE, _ONE),
            Cell(alone, ratio, _ONE),
            Cell(alone, _ONE, ratio),
            Cell(mass - 2 * alone - both, _ONE, _ONE),
        ]
    )


def worst(blankets: Sequence[Blanket]) -> Blanket:
    """One blanket that is worse than all of these blankets of one protocol."""
    if len(blankets) == 1:
        return blankets[0]
    mass = min(sum((cell.mass for cell in one), Fraction(0)) for one in blankets)
    return supporting(mass, max(max(cell.one, cell.other) for one in blankets for cell in one))


def mixed(parts: Iterable[tuple[Fraction, Blanket]]) -> Blanket:
    """The blanket where chance, whatever the answer, says which part is reported."""
    return _merged(Cell(share * mass, one, other) for share, cells in parts for mass, one, other in cells)


def product(parts: Sequence[Blanket]) -> Blanket | None:
    """The blanket of independent reports that are sent together; None where it has too many cells."""
    whole: Blanket = (Cell(_ONE, _ONE, _ONE),)
    for part in parts:
        if len(whole) * len(part) > _MOST_CELLS:
            return None
        whole = _merged(Cell(a.mass * b.mass, a.one * b.one, a.other * b.other) for a in whole for b in part)
    return whole


def of_laws(
    rows: Sequence[Sequence[int]], related: Iterable[tuple[Mapping[int, Fraction], Mapping[int, Fraction]]]
) -> tuple[Blanket, ...]:
    """The blankets of a listed law, one for each pair of inputs that differs from the others; of many, a worse one.

    `rows` are those of a channel, as integers of equal sums; an input is the weights of rows. Where some answer cannot
    give a report that others can, the result is empty.
    """
    whole, columns = sum(rows[0]), list(zip(*rows, strict=True))
    if any(min(column) == 0 < max(column) for column in columns):
        return ()
    kept = [column for column in columns if min(column)]
    least = [min(column) for column in kept]

    def likely(mixture: Mapping[int, Fraction]) -> list[Fraction]:
        """How many times as likely as in the blanket the reports are."""
        return [
            sum((weight * column[row] for row, weight in mixture.items()), Fraction(0)) / low
            for column, low in zip(kept, least, strict=True)
        ]

    masses = [Fraction(low, whole) for low in least]
    found: dict[Blanket, None] = {}
    for number, (one, other) in enumerate(related):
        found[_merged(map(Cell, masses, likely(one), likely(other)))] = None
        if len(found) > _MOST_PAIRS or number * len(kept) > _MOST_LISTED:
            ratio = max(Fraction(max(column), low) for column, low in zip(kept, least, strict=True))
            return (supporting(Fraction(sum(least), whole), ratio),)
    return tuple(found)


def power(part: Blanket, times: int) -> Blanket:
    """The product of `times` equal blankets."""
    whole = product([part] * times)
    if whole is not None:
        return whole
    mass = sum((cell.mass for cell in part), Fraction(0)) ** times
    return supporting(mass, max(max(cell.one, cell.other) for cell in part) ** times)

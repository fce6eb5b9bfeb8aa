"""Narrowing: round 1 finds where the numbers are, round 2 asks for their mean on that narrower interval.

Law        round 1 is a `Window` of width 1 with cells + 1 positions, the ends of `cells` equal cells; round 2 is the
           `Window` of the table below on the interval between two of those positions
Rule       from either end, the first position up to which round 1 surely counted somebody: with s reports up to it, of
           n, and Q the probability that a report without an answer falls there, s - n Q > 2 sqrt(n Q (1 - Q)). Then
           `margin` positions more to either side: a margin of 1 takes in everybody who can have been rounded to that
           position. The whole interval is asked again unless more than half of the people are surely inside (3
           standard errors)
Result     both rounds estimate the mean of the numbers clipped to the narrow interval, each without bias: clipping is
           linear between positions, so that random rounding to positions does not change its mean. They are weighted
           by their variances. What clipping leaves out is estimated from round 1 and stated beside the result
Privacy    each round is a `Window` at the question's epsilon; see `campaign`
Error      noise shrinks with the width of the interval: by simulation at epsilon 1, 2,000 people and then 4,000, hours
           around 38 +- 4 on 0 to 100, the root mean square error is 0.6 hours, against 1.4 for 6,000 people in one
           round (2.3 times less, as with 5 times the people). Numbers all over the interval lose 10 to 20 percent
Source     two-round mean estimation, Gaboardi, Rogers and Sheffet 2019
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, cast

import numpy as np

from deniable.domains import Interval
from deniable.errors import DomainError, SpecError
from deniable.protocols import Protocol, Tally, Window
from deniable.results import Mean, Result
from deniable.surveys.campaign import Campaign
from deniable.surveys.question import Question

# Positions and width of the last round, up to an epsilon: within 3 percent of the best worst case up to epsilon 6.5,
# and the same on every machine.
_LAST = (
    (Fraction(1), (2, 1)),
    (Fraction(9, 4), (3, 1)),
    (Fraction(11, 4), (5, 2)),
    (Fraction(7, 2), (6, 2)),
    (Fraction(17, 4), (10, 3)),
    (Fraction(21, 4), (22, 5)),
    (Fraction(27, 4), (42, 7)),
    (Fraction(64), (161, 14)),
)
_SEEN, _INSIDE = 2, 3
"""Standard errors that are needed to detect somebody, and to conclude that more than half are inside."""


@dataclass(frozen=True)
class Narrowing(Campaign):
    """The mean of numbers that lie close together, although nobody knows beforehand where.

    Args:
        cells: Number of equal parts of the interval in round 1: more find a narrower interval, and need more people.
        margin: Number of cells added on either side of where people were detected.

    Raises:
        SpecError: A number is out of range.

    >>> from deniable.surveys import Question
    >>> campaign = Narrowing(cells=8)
    >>> first = campaign._first(Question("hours", "How many hours a week?", Window(Interval(0, 80), epsilon=1)))
    >>> tally = first.protocol.tally(first.protocol.privatize([38.0, 40.0, 41.5] * 10_000))
    >>> narrow = campaign._next(first, tally, 1).protocol.domain
    >>> narrow.low <= 35 and 45 <= narrow.high and narrow.high - narrow.low < 80
    True
    """

    kind: ClassVar[str] = "narrowing"

    cells: int = 8
    margin: int = 1

    def __post_init__(self) -> None:
        for name, value, low, high in (("cells", self.cells, 4, 256), ("margin", self.margin, 1, 64)):
            if type(value) is not int or not low <= value <= high:
                raise SpecError(f"the {name} of a narrowing are a whole number from {low} to {high}")

    @property
    def rounds(self) -> int:
        return 2

    @classmethod
    def examples(cls) -> Iterator[tuple[Campaign, Sequence[Question]]]:
        yield cls(cells=4, margin=2), [Question("x", "Which number?", Window(Interval(0, 8), 2))]
        yield cls(cells=4), [Question("x", "Which number?", Window(Interval("-1/2", "7/2", "hours"), 4))]

    # -- the rounds --------------------------------------------------------------------------------

    def _check(self, question: Question, number: int) -> None:
        protocol = question.protocol
        if type(protocol) is not Window or not isinstance(protocol.domain, Interval):
            raise SpecError(f"question {question.id!r}: a narrowing asks for numbers by Window, not by {protocol.name}")
        if number == 1 and (protocol.positions, protocol.width) != (self.cells + 1, 1):
            raise SpecError(
                f"question {question.id!r}: round 1 of a narrowing with {self.cells} cells has a window of width 1 "
                f"with {self.cells + 1} positions"
            )

    def _first(self, question: Question) -> Question:
        domain, epsilon = question.protocol.domain, question.protocol.epsilon
        if not isinstance(domain, Interval):
            raise SpecError(f'question {question.id!r}: a narrowing asks for a number, {{"number": ...}}, not {domain}')
        first = Window(domain, epsilon, self.cells + 1, 1)
        try:
            for place in range(self.cells):
                _between(first, place, place + 1)
        except DomainError:
            raise SpecError(
                f"question {question.id!r}: the interval cannot be divided into {self.cells} cells: use rounder ends"
            ) from None
        return replace(question, protocol=first)

    def _next(self, question: Question, tally: Tally, number: int) -> Question:
        first = cast(Window, question.protocol)
        low, high = self._inside(first, tally)
        positions, width = next(sizes for most, sizes in _LAST if first.epsilon <= most)
        return replace(question, protocol=Window(_between(first, low, high), first.epsilon, positions, width))

    def _inside(self, first: Window, tally: Tally) -> tuple[int, int]:
        """The positions between which the next round asks."""
        n, counts, last = tally.n, [int(count) for count in tally.counts], first.positions - 1
        everything = 0, last
        t = first.keep.value
        each = (1 - t) / first.outputs
        left = _seen(counts, n, each)
        right = last - _seen(counts[::-1], n, each)
        if left > right:
            return everything
        low, high = max(0, left - self.margin), min(last, right + self.margin)
        chance = (high - low + 1) * each
        above = Fraction(sum(counts[low : high + 1]), n) - chance - t / 2
        sure = above > 0 and above**2 * n > _INSIDE**2 * chance * (1 - chance)
        return (low, high) if sure else everything

    # -- the result --------------------------------------------------------------------------------

    def _combine(self, asked: Sequence[tuple[Protocol, Tally]]) -> Result:
        protocol, tally = asked[-1]
        mean: Mean = protocol.estimate(tally)
        if len(asked) == 1:
            return mean
        low, high = mean.ends
        first, earlier = cast(tuple[Window, Tally], asked[0])
        places = np.array([float(number) for number, _ in first.law().inputs()])
        inside = np.clip(places, low, high)
        value, variance = _linear(first, earlier, inside)
        clipped, error = _linear(first, earlier, places - inside)
        weight = mean.stderr**2 / (mean.stderr**2 + variance) if math.isfinite(variance) else 0.0
        parts = (weight**2 * variance if weight else 0.0), (1 - weight) ** 2
        assert isinstance(first.domain, Interval)
        narrow = f"{low:.6g} to {high:.6g}" + (f" {first.worth().unit}" if first.worth().unit else "")
        notes = [f"of two rounds: {earlier.n:,} reports on the whole interval, then {tally.n:,} on {narrow}"]
        if (low, high) != first.domain.ends:
            unit = f" {first.worth().unit}" if first.worth().unit else ""
            moved = f"{-clipped:.3g}{unit}, with a standard error of {math.sqrt(error):.2g}{unit}"
            notes.append(f"numbers outside {narrow} count as its ends: by round 1 that moves the mean by {moved}")
        return NarrowedMean(
            value=weight * value + (1 - weight) * mean.value,
            n=earlier.n + tally.n,
            stderr=math.sqrt(parts[0] + parts[1] * mean.stderr**2),
            noise=math.sqrt(parts[0] + parts[1] * mean.noise**2),
            ends=(low, high),
            protocol=mean.protocol,
            method="narrowed",
            unit=mean.unit,
            check=mean.check,
            remarks=tuple(notes),
        )


@dataclass(frozen=True, eq=False, repr=False)
class NarrowedMean(Mean):
    """The mean of two rounds, of numbers clipped to `ends`, the interval of the second."""

    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        return [*self.remarks, *super().notes]


def _between(first: Window, low: int, high: int) -> Interval:
    """The interval between two positions, exactly."""
    domain = first.domain
    assert isinstance(domain, Interval)
    step = (domain.high - domain.low) / (first.positions - 1)
    return Interval(domain.low + low * step, domain.low + high * step, domain.unit)


def _seen(counts: Sequence[int], n: int, each: Fraction) -> int:
    """The first position up to which there are surely more reports than those without an answer alone."""
    total, chance = 0, Fraction(0)
    for place, count in enumerate(counts):
        total, chance = total + count, chance + each
        more = total - n * chance
        if more > 0 and more**2 > _SEEN**2 * n * chance * (1 - chance):
            return place
    return len(counts) - 1


def _linear(first: Window, tally: Tally, values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float]:
    """The mean of a figure that is linear between positions, given at the positions, and the variance of that mean."""
    t = float(first.keep)
    parts = (values - (1 - t) * values.mean()) / t
    share = tally.counts / tally.n
    mean = float(share @ parts)
    spread = float(share @ (parts - mean) ** 2)
    return mean, spread / (tally.n - 1) if tally.n > 1 else math.inf

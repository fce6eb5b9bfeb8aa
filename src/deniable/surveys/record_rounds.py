"""Rounds about records: a regression over batches of people, and pairs of columns that a first round has chosen.

Regression round r asks for gradient and curvature at coefficients that it publishes, 0 in round 1; the next round asks
           at the result of one step of Newton's method (`Queries.following`). All rounds give one estimate
           (`results.regression`). The first round of a logistic regression only finds where to ask, and may be small
Screening  round 1 asks for all pairs of columns, or those of the draft. Round 2 asks for the `pairs` of them whose
           tables deviate most from independence, E = RC (sum e^2 - (R - 1)(C - 1) v): e is the excess of a cell of the
           unbiased table over the product of its margins, R and C are the numbers of answers, v is the variance of a
           cell of a rare combination. Pairs that were not chosen keep the tables of round 1. Chosen pairs are read
           from round 2 alone: a pair is chosen partly by chance, and its first table tends to exaggerate
Privacy    a device answers one query or one pair, in one round, at the question's epsilon; see `campaign`
Source     Smith, Thakurta and Upadhyay 2017 (interaction); choice of marginals: Zhang et al. 2018
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from deniable.errors import SpecError
from deniable.protocols import Protocol, Tally
from deniable.results import Result
from deniable.surveys.campaign import MOST_ROUNDS, Campaign
from deniable.surveys.question import Question

if TYPE_CHECKING:
    from deniable.protocols import Attributes, Queries

_FINE = 1 << 40
_LISTED = 32
"""Maximum number of pairs that are named."""


@dataclass(frozen=True)
class RegressionRounds(Campaign):
    """The coefficients of a regression; each round asks where the previous one has led.

    Args:
        batches: The number of rounds.

    Raises:
        SpecError: The number is out of range.

    >>> from deniable.domains import Interval
    >>> from deniable.surveys import Question
    >>> people = {"age": Interval(20, 60), "sport": ["yes", "no"]}
    >>> from deniable.protocols import Queries
    >>> first = Question("q", "About you", Queries(people, epsilon=4, regress={"target": "age"}))
    >>> tally = first.protocol.tally(first.protocol.privatize([{"age": 30, "sport": "no"}] * 900))
    >>> after = RegressionRounds(3)._next(first, tally, 1)
    >>> after.protocol.labels, after.protocol.forms == first.protocol.forms
    (('intercept', 'sport: no'), False)
    """

    kind: ClassVar[str] = "regression"

    batches: int = 3

    def __post_init__(self) -> None:
        if type(self.batches) is not int or not 2 <= self.batches <= MOST_ROUNDS:
            raise SpecError(f"the batches of a regression are a whole number from 2 to {MOST_ROUNDS}")

    @property
    def rounds(self) -> int:
        return self.batches

    @classmethod
    def examples(cls) -> Iterator[tuple[Campaign, Sequence[Question]]]:
        from deniable.protocols import Queries

        people = {"smoke": ["yes", "no"], "sport": ["yes", "no"]}
        for link in ("logistic", "linear"):
            asked = Queries(people, 1, regress={"target": "smoke", "link": link})
            yield cls(2), [Question("q", "About you", asked)]

    def _check(self, question: Question, number: int) -> None:
        if question.protocol.worth().read != "regression":
            name = question.protocol.name
            raise SpecError(f"question {question.id!r}: its rounds are those of a regression, not of {name}")
        if number == 1 and _queries(question.protocol).at.any():
            raise SpecError(f"question {question.id!r}: round 1 of a regression is asked at coefficients of 0")

    def _first(self, question: Question) -> Question:
        self._check(question, 1)
        return question

    def _next(self, question: Question, tally: Tally, number: int) -> Question:
        return replace(question, protocol=_queries(question.protocol).following(tally, number))

    def told(self, protocol: Protocol) -> str:
        own = _queries(protocol)
        each = zip(own.labels, own.at.tolist(), strict=True)
        return "at " + ", ".join(f"{name} {value:.3g}" for name, value in each)

    def _combine(self, asked: Sequence[tuple[Protocol, Tally]]) -> Result:
        batches = [_queries(protocol).batch(tally) for protocol, tally in asked]
        return _queries(asked[-1][0]).regression(batches)


@dataclass(frozen=True)
class Screening(Campaign):
    """Tables of the most strongly associated pairs of columns, out of many: a first round chooses them.

    Args:
        pairs: Maximum number of pairs in round 2.

    Raises:
        SpecError: The number is out of range.

    >>> from deniable.surveys import Question
    >>> from deniable.protocols import Attributes
    >>> ask = Attributes({"a": 2, "b": 2, "c": 2}, epsilon=4, ask="pairs")
    >>> first = Screening(1)._first(Question("q", "About you", ask))
    >>> people = [{"a": i % 2, "b": i % 2, "c": i // 2 % 2} for i in range(3000)]
    >>> tally = first.protocol.tally(first.protocol.privatize(people))
    >>> Screening(1)._next(first, tally, 1).protocol.group_names
    ('a & b',)
    """

    kind: ClassVar[str] = "screening"

    pairs: int = 16

    def __post_init__(self) -> None:
        if type(self.pairs) is not int or not 1 <= self.pairs <= 1024:
            raise SpecError("the pairs of a screening are a whole number from 1 to 1024")

    @property
    def rounds(self) -> int:
        return 2

    @classmethod
    def examples(cls) -> Iterator[tuple[Campaign, Sequence[Question]]]:
        from deniable.protocols import Attributes

        yield cls(1), [Question("q", "About you", Attributes({"a": 2, "b": 2, "c": 2}, 1, ask="pairs"))]

    def _check(self, question: Question, number: int) -> None:
        views = getattr(question.protocol, "views", ())
        if question.protocol.worth().read != "pairs" or not all(len(view) == 2 for view in views):
            raise SpecError(f'question {question.id!r}: a screening asks for pairs of parts, {{"per_device": "pairs"}}')
        if number == 2 and len(views) > self.pairs:
            raise SpecError(f"question {question.id!r}: round 2 of this screening asks for at most {self.pairs} pairs")

    def _first(self, question: Question) -> Question:
        self._check(question, 1)
        return question

    def _next(self, question: Question, tally: Tally, number: int) -> Question:
        protocol = _attributes(question.protocol)
        shapes = [[protocol.cells[column] for column in view] for view in protocol.views]
        each = zip(protocol.groups, protocol.tallies(tally), shapes, strict=True)
        scores = [_beyond(group.protocol, own, shape) for group, own, shape in each]
        best = sorted(sorted(range(len(scores)), key=lambda place: (-scores[place], place))[: self.pairs])
        views = tuple(protocol.views[place] for place in best)
        groups = [protocol.groups[place] for place in best]
        made = protocol._made(protocol.domain, groups, None, views, protocol.cells)
        return replace(question, protocol=made)

    def told(self, protocol: Protocol) -> str:
        names = _attributes(protocol).group_names
        return f"{len(names):,} pairs" + (f": {', '.join(names)}" if len(names) <= _LISTED else "")

    def _combine(self, asked: Sequence[tuple[Protocol, Tally]]) -> Result:
        found: Any = [protocol.estimate(tally) for protocol, tally in asked]
        if len(found) == 1:
            return found[0]  # type: ignore[no-any-return]
        first, last = found
        chosen = ", ".join(last.parts)
        said = f"{len(last.parts)} of {len(first.parts)} pairs were chosen by round 1 and asked in round 2: {chosen}"
        both: Result = replace(
            last, by_name={**first.parts, **last.parts}, n=first.n + last.n, said=(said,), check=None
        )
        return both


def _queries(protocol: Protocol) -> Queries:
    assert protocol.name == "Queries"
    return protocol  # type: ignore[return-value]


def _attributes(protocol: Protocol) -> Attributes:
    assert protocol.name == "Attributes"
    return protocol  # type: ignore[return-value]


def _beyond(protocol: Any, tally: Tally, shape: Sequence[int]) -> Fraction:
    """How far a table deviates from independence, without what the noise adds on average; computed with fractions."""
    if not tally.n:
        return Fraction(0)
    rows, columns = shape
    p, q = protocol.p, protocol.q
    supported = protocol._support_counts(tally.counts)
    shares = [_fine((Fraction(int(one), tally.n) - q) / (p - q)) for one in supported]
    down = [sum(shares[i * columns : (i + 1) * columns], Fraction(0)) for i in range(rows)]
    along = [sum(shares[j::columns], Fraction(0)) for j in range(columns)]
    squares = sum(
        ((shares[i * columns + j] - down[i] * along[j]) ** 2 for i in range(rows) for j in range(columns)), Fraction(0)
    )
    variance = q * (1 - q) / ((p - q) ** 2 * tally.n)
    found: Fraction = rows * columns * (squares - (rows - 1) * (columns - 1) * variance)
    return found


def _fine(value: Fraction) -> Fraction:
    return Fraction(round(value * _FINE), _FINE)

"""Which hypothesis do the reports favour? A verdict that is wrong with a stated probability at most.

Rejected   a hypothesis whose p-value is at most `level`. The p-value says how often, if the hypothesis were true, the
           best other one would be at least as many times likelier than it as it is now (see `evidence`); the
           likeliest hypothesis has p-value 1
Verdict    the likeliest hypothesis, if all others are rejected; else "undecided". "none" if the reports are impossible
           under every hypothesis
Promise    if one of the hypotheses is true, it is rejected with probability `level` at most, whatever their number. So
           a wrong hypothesis is favoured with probability `level` at most
Fit        a verdict compares the hypotheses with each other; the truth may be none of them. Where the likeliest one
           would hardly ever be so little ahead (p-value of the fit below 0.001), a note says so
One look   this holds for a number of reports that was fixed beforehand. Who looks again and again, and stops when
           something is decided, compares `anytime` with the level instead
Floats     p-values are fractions or proven brackets with few digits; what is compared with the level is the upper end.
           Two processors can differ only where many reports lie, to 10 digits, on the edge between two such numbers
More       an undecided study says how many people would decide nine times in ten: between the two remaining hypotheses
           that are the hardest to tell apart
Source     Neyman and Pearson 1933; Ville 1939 for `anytime`
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from deniable import exact
from deniable.channels.channel import Channel
from deniable.channels.hypothesis.evidence import Bounds, Evidence
from deniable.channels.hypothesis.people import chernoff_information, sample_size
from deniable.channels.hypothesis.ratio_test import MOST_REPORTS
from deniable.channels.laws import Laws, read_laws
from deniable.errors import MismatchError, NumberError, ShapeError
from deniable.labels import Label, label_spec, text
from deniable.results import Floats, Result, Rows

LEVEL = Fraction(1, 20)
MISSED = 0.1
"""How often the number of people that an undecided study names would not be enough."""

POOR_FIT = Fraction(1, 1000)
ONE_LOOK = (
    "the p-values are for one look, after a number of reports that was fixed beforehand; only those for any number of "
    "looks hold for somebody who looks again and again"
)


def decide(
    channel: Channel,
    laws: Laws | Mapping[Any, Any] | Sequence[Any],
    counts: Sequence[Any],
    level: exact.Number = LEVEL,
) -> Decision:
    """Which of several laws of the answers the counts of the channel's outputs favour.

    `laws` is {name: law} or a list of laws; a law is a list of probabilities or {input: probability}. `counts` has one
    whole number per output. Raises ShapeError where laws or counts do not fit the channel, NumberError for a level
    that is not between 0 and 1.

    >>> from deniable.channels import randomized_response
    >>> coin = randomized_response(2, "1.1")
    >>> laws = {"rare": [0.9, 0.1], "common": [0.5, 0.5]}
    >>> print(decide(coin, laws, [66, 34]).verdict)
    the reports favour rare: common has a p-value of at most 0.0009 (level 0.05)
    >>> print(decide(coin, laws, [17, 13]).verdict)
    undecided: rare and common are both possible at level 0.05; about 21 more people would decide between them
    """
    found = laws if isinstance(laws, Laws) else read_laws(laws)
    if found.size != len(channel.inputs):
        raise ShapeError(f"the laws have {found.size} answers, the channel {len(channel.inputs)}")
    limit = exact.fraction(level, "the level")
    if not 0 < limit < 1:
        raise NumberError(f"the level lies strictly between 0 and 1, not at {exact.shown(limit)}")
    seen = _counts(counts, len(channel.outputs))
    reports = report_laws(channel, found)
    evidence, places = Evidence(reports, seen), range(found.count)
    bounds = tuple(evidence.p_value(place) for place in places)
    shares = np.array(evidence.posterior())
    anytime = np.array([evidence.anytime(place) for place in places])
    fit = evidence.fit(int(np.argmax(shares)))
    exactly = all(low == high for low, high in bounds)
    method = f"likelihood ratio, {'exact' if exactly else 'proven bounds'}, level {exact.shown(limit)}"
    return Decision(found.names, sum(seen), limit, bounds, shares, anytime, fit, reports, method)


def report_laws(channel: Channel, laws: Laws) -> tuple[tuple[int, ...], ...]:
    """The law of one report under each hypothesis, as integers that all have the same sum."""
    columns = [[int(entry) for entry in column] for column in channel.numerators.T]
    whole = math.lcm(*(sum(law) for law in laws.weights))
    pushed = [
        [sum(w * entry for w, entry in zip(law, column, strict=True)) * (whole // sum(law)) for column in columns]
        for law in laws.weights
    ]
    common = math.gcd(*(entry for law in pushed for entry in law))
    return tuple(tuple(entry // common for entry in law) for law in pushed)


def _counts(given: Sequence[Any], outputs: int) -> list[int]:
    try:
        counts = [exact.whole(count, "a count of reports") for count in given]
    except TypeError:
        raise ShapeError("the counts of reports are a list with one whole number per output") from None
    if len(counts) != outputs:
        raise ShapeError(f"there are {len(counts)} counts for the {outputs} outputs of the channel")
    if min(counts) < 0 or sum(counts) > MOST_REPORTS:
        raise NumberError("counts of reports are not negative, and at most 10^12 in all")
    return counts


@dataclass(frozen=True, eq=False, repr=False)
class Decision(Result):
    """A verdict about hypotheses: per hypothesis a p-value, its posterior (equal priors) and whether it is rejected."""

    kind: ClassVar[str] = "decision"
    heading: ClassVar[str] = "p-value"

    names: tuple[Label, ...]
    n: int
    level: Fraction
    bounds: tuple[Bounds, ...]
    """Each p-value lies between these two fractions, which are equal where it is known exactly."""
    posterior: Floats
    """The probability of each hypothesis, if one of them is true and all were equally likely beforehand."""
    anytime: Floats
    """P-values that hold however often one looks."""
    fit: Bounds
    """How often the likeliest hypothesis, if it were true, would be so little ahead of the next one."""
    reports: tuple[tuple[int, ...], ...]
    """The law of one report under each hypothesis, as integers with one sum."""
    method: str
    protocol: str = "channel"

    @property
    def p_values(self) -> list[float]:
        """The upper ends of the p-values, rounded up."""
        return [_ceil(high) for _, high in self.bounds]

    @property
    def _left(self) -> list[int]:
        return [place for place, (_, high) in enumerate(self.bounds) if high > self.level]

    @property
    def remaining(self) -> tuple[Label, ...]:
        """The hypotheses that are not rejected."""
        return tuple(self.names[place] for place in self._left)

    @property
    def favoured(self) -> Label | None:
        """The one hypothesis that is left, if there is exactly one."""
        return self.remaining[0] if len(self.remaining) == 1 else None

    @property
    def outcome(self) -> str:
        """ "favours", "undecided" or "none"."""
        return {0: "none", 1: "favours"}.get(len(self.remaining), "undecided")

    @cached_property
    def people(self) -> int | None:
        """About how many people decide between the remaining hypotheses nine times in ten; None if no number does."""
        left = [self.reports[place] for place in self._left]
        if len(left) < 2:
            return self.n
        total = sum(left[0])
        pairs = [tuple(tuple(w / total for w in law) for law in pair) for pair in combinations(left, 2)]
        closest = min(pairs, key=lambda pair: chernoff_information(*pair).value)
        level = float(self.level) / (len(self.names) - 1)
        needs = [_people(one, other, level) for one, other in (closest, closest[::-1])]
        return None if None in needs else max(need for need in needs if need is not None)

    @property
    def more(self) -> int | None:
        """About how many people more would decide; None where no number of people does."""
        return None if self.people is None else max(0, self.people - self.n)

    @cached_property
    def verdict(self) -> str:
        """The decision in one sentence."""
        level = exact.shown(self.level)
        if self.favoured is not None:
            others = [place for place in range(len(self.names)) if place not in self._left]
            whose = f"{_called(self.names[others[0]])} has" if len(others) == 1 else "every other hypothesis has"
            largest = max(self.bounds[place][1] for place in others)
            return (
                f"the reports favour {_called(self.favoured)}: {whose} a p-value of {p_text(largest)} (level {level})"
            )
        if not self.remaining:
            return "the reports are impossible under every hypothesis: check the laws, and where the reports come from"
        named = [_called(name) for name in self.remaining]
        both = "both" if len(named) == 2 else "all"
        head = f"undecided: {', '.join(named[:-1])} and {named[-1]} are {both} possible at level {level}"
        them = "between them" if len(named) == 2 else "among them"
        if self.more is None:
            return f"{head}; no number of people decides, because two of them have the same law of reports"
        if self.more == 0:
            return f"{head}, although so many people decide {them} nine times in ten"
        return f"{head}; about {self.more:,} more people would decide {them}"

    @property
    def notes(self) -> list[str]:
        """The verdict, and what one has to know about it."""
        doubt = [] if self.doubt is None else [self.doubt]
        return [self.verdict, *doubt, *([ONE_LOOK] if self.n else [])]

    @property
    def doubt(self) -> str | None:
        """Why none of the hypotheses may be true, if there is a reason."""
        if self.fit[1] >= POOR_FIT or not self.remaining:
            return None
        best = _called(self.names[int(np.argmax(self.posterior))])
        return (
            f"perhaps none of the hypotheses is true: if {best}, the likeliest, were, it would be so little ahead of "
            f"the next with a probability of {p_text(self.fit[1])}"
        )

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        """The p-values with their bounds; a decision has no confidence intervals, and its arguments do not matter."""
        low, value = (np.array([_floor(bound[0]) for bound in self.bounds]), np.array(self.p_values))
        rejected = np.array([float(high <= self.level) for _, high in self.bounds])
        more = {"posterior": self.posterior, "anytime": self.anytime, "rejected": rejected}
        return Rows(self.names, value, np.zeros(len(self.names)), low, value, "", level, False, True, more)

    def cells(self, rows: Rows, most: int = 20) -> tuple[list[str], list[list[str]]]:
        head = ["hypothesis", "p-value", "posterior", "p-value, any number of looks", "verdict"]
        body = []
        for i, bound in enumerate(self.bounds):
            out = "rejected" if bound[1] <= self.level else "possible"
            low, high = (_digits(float(end)) for end in bound)
            span = high if low == high else f"{low} to {high}"
            body.append([text(self.names[i]), span, f"{self.posterior[i]:.4f}", _digits(self.anytime[i]), out])
        return head, body

    def to_dict(self, level: float = 0.95, population: bool = True, simultaneous: bool = False) -> dict[str, Any]:
        """The decision as JSON values; the arguments, which are about confidence intervals, do not matter."""
        favoured = None if self.favoured is None else label_spec(self.favoured)
        return {
            "kind": self.kind,
            "protocol": self.protocol,
            "method": self.method,
            "n": self.n,
            "level": float(self.level),
            "outcome": self.outcome,
            "favoured": favoured,
            "remaining": [label_spec(name) for name in self.remaining],
            "verdict": self.verdict,
            "fit": _ceil(self.fit[1]),
            "doubt": self.doubt,
            "more": self.more if self.outcome == "undecided" else None,
            "rows": self.table().records(json=True),
            "notes": self.notes,
        }

    def repeated(self, noise: float, people: float) -> Decision:
        if noise > 1 or people > 1:
            raise MismatchError("a decision needs reports of different people: decide each epoch by itself")
        return self

    def __repr__(self) -> str:
        return f"<Decision from {self.n} reports: {self.verdict}>"


@lru_cache(maxsize=256)
def _people(one: tuple[float, ...], other: tuple[float, ...], level: float) -> int | None:
    """How many reports reject `one` nine times in ten when `other` is true."""
    try:
        return sample_size(one, other, level, MISSED).n
    except NumberError:
        return None


def _ceil(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _floor(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, 0.0)


def _called(name: Label) -> str:
    """A hypothesis within a sentence: a name of several words is quoted."""
    words = text(name)
    return words if words.isalnum() else f'"{words}"'


def _digits(value: float) -> str:
    return "below 1e-15" if value < 1e-15 else f"{value:.2g}"


def p_text(largest: Fraction) -> str:
    """An upper end for people, rounded up to two digits."""
    if largest < Fraction(1, 10**15):
        return "less than 1e-15"
    unit = Fraction(10) ** (math.floor(math.log10(largest)) - 1)
    return f"at most {float(math.ceil(largest / unit) * unit):.2g}"

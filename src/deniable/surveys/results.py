"""An estimate with everything that belongs beside it: errors, intervals, and how far both can be trusted.

population    errors and intervals are about all whom the respondents were drawn from; `population=False` is about those
              who answered, and the result says so
misfit        a test of the protocol against its tally: `Result.misfit` has the p-value, and a sentence where it is
              below 0.001
noise floor   the half-width of the interval of an answer that nobody gave, in the worst case over what the others gave:
              the smallest share that can be told from none
repeats       one device may stand in several epochs of a sum. Of epochs with n_1, n_2, ... reports at most
              sum min(n_e, n_f) over all pairs (e, f) come from the same device, so that the variance is at most D =
              (sum min(n_e, n_f)) / (sum n_e) times that of as many people: K for K epochs of one size, and never more
              than the number of epochs that a device answers. D applies to the sampling error, and to the noise where
              answers are memoized; fresh noise averages out. Of two stages only the noise of the kept state repeats:
              two reports of one state have n Cov = q1 (1 - q1) / (p1 - q1)^2, with p1 and q1 of the first stage, so
              that the noise grows by 1 + (D - 1) rho, rho that covariance over the variance of one report
decision      where the question was designed for hypotheses: which of them the reports favour, wrong with probability
              1 - level at most. Its p-values need reports of different people, so there is none where devices repeat
poisoning     m forged reports among n move the headline figure by at most m / n times this: see `Protocol.poisoning`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from deniable import exact
from deniable.errors import SpecError
from deniable.labels import cell, numbers_first, text
from deniable.protocols import Protocol, Tally
from deniable.results import Estimate, Result, Rows, Winner, finite, quantile
from deniable.surveys.terms import Longitudinal, Terms

SAME_NOISE = (
    "answers are memoized and repeat their noise, which does not average out over several epochs: the errors allow for "
    "the same devices in all of them"
)
SAME_STATES = (
    "reports are drawn from kept states, whose noise does not average out over several epochs: the errors allow for "
    "the same devices in all of them"
)
SAME_PEOPLE = (
    "one device may answer in several epochs: the errors allow for the same people in all of them, with fresh noise "
    "each time"
)
UNKNOWN_EPOCHS = (
    "answers are memoized and repeat their noise: the errors are those of one epoch, and too small if these reports "
    "are of several"
)
SAME_DEVICES = (
    "no decision between the hypotheses: its p-values need reports of different people, and one device may answer in "
    "several of these epochs; decide each epoch by itself"
)


def _named(row: Mapping[str, Any]) -> Any:
    """What a row of CSV is about: its label, after the answer where it is an epoch of it."""
    return f"{row['group']}: {text(row['label'])}" if row.get("group") else cell(row["label"])


def part_id(id: str, part: str) -> str:
    """How a part of a question is called: "habits.age"; a question without parts by its id."""
    return f"{id}.{part}" if part else id


MOST_COMPARED = 1 << 14
"""Answers among which the most common one is named."""
NUMBERS = ("value", "stderr", "low", "high")
COLUMNS = (
    *("question", "label", *NUMBERS, "unit", "count", "n", "level", "population", "simultaneous", "method"),
    *("protocol", "unlisted", "p_value"),
)


@dataclass(frozen=True)
class Finding:
    """A result, and its table with the errors and intervals that were asked for."""

    result: Result
    table: Rows
    decide: Mapping[str, Callable[[], Result | None]] = field(default_factory=dict)
    """Works the decision of each part out: it costs more than the estimate, and not everybody asks for it."""
    remarks: Sequence[str] = ()
    """What to say beside the result's own notes."""
    asked: Sequence[tuple[float, ...]] = ()
    """Of a distribution: the ranges, or rectangles, whose shares are wanted beside the table."""

    @cached_property
    def decision(self) -> Result | None:
        """Between the hypotheses that the question was designed for, where it was for any."""
        return self.decide[""]() if "" in self.decide else None

    @property
    def winner(self) -> Winner | None:
        """The most common answer, where the figures are shares of answers that are no numbers."""
        result, table = self.result, self.table
        if not isinstance(result, Estimate) or not result.n or not 2 <= len(table) <= MOST_COMPARED:
            return None
        return None if numbers_first(table.labels) else result.winner(table.level, table.population)

    @property
    def notes(self) -> list[str]:
        return [*self.result.notes, *self.remarks]

    def rows(self, id: str) -> list[list[Any]]:
        """One list per row, under the names of `COLUMNS`."""
        result, table = self.result, self.table
        same = [result.n, table.level, table.population, table.simultaneous, result.method, result.protocol]
        same.append(finite(result.facts["unlisted"]) if "unlisted" in result.facts else None)
        return [
            [
                id,
                _named(row),
                *(row[name] for name in NUMBERS),
                row["unit"],
                row.get("count"),
                *same,
                row.get("p_value"),
            ]
            for row in [*table.records(), *(self.ranges.records() if self.ranges is not None else ())]
        ]

    @cached_property
    def ranges(self) -> Rows | None:
        """The shares of the ranges or rectangles that were asked for; None without any, or where it is about others."""
        if not self.asked:
            return None
        return self.result.of_ranges(self.asked, self.table.level, self.table.population)

    @property
    def parts(self) -> dict[str, Finding]:
        """The same for each part of the answers; without parts itself, under no name."""
        table = self.table
        tables = self.result.tables(table.level, table.simultaneous, table.population)
        found = {}
        for name, part in self.result.parts.items():
            decide = {"": self.decide[name]} if name in self.decide else {}
            found[name] = replace(self, result=part, table=tables[name], decide=decide)
        return found

    def description(self, id: str, question: str, part: str = "") -> dict[str, Any]:
        """The finding as JSON values."""
        result, table, misfit = self.result, self.table, self.result.misfit
        named = {"part": part} if part else {}
        content: dict[str, Any] = {"id": id} | named | {"text": question, "kind": result.kind}
        content |= {"protocol": result.protocol, "method": result.method, "n": result.n, "level": table.level}
        content |= {"population": table.population, "rows": table.records(json=True), "notes": self.notes}
        if result.headline:
            content |= {"headline": result.headline}
        if result.crossed:
            content |= {"axes": [{"name": name, "labels": list(labels)} for name, labels in result.crossed]}
        curve = result.cumulative(table.level, table.population)
        if curve is not None:
            content |= {"cumulative": curve.records(json=True)}
        further = result.further(table.level, table.population)
        if further:
            content |= {"further": {name: rows.records(json=True) for name, rows in further.items()}}
        if self.ranges is not None:
            content |= {"ranges": self.ranges.records(json=True)}
        content |= {"misfit": {"p_value": misfit.p_value, "message": misfit.message} if misfit else None}
        content |= {name: finite(fact) for name, fact in result.facts.items()}
        if self.winner is not None:
            content |= {"winner": self.winner.to_dict()}
        if self.decision is not None:
            content |= {"decision": self.decision.to_dict()}
        return content


@dataclass(frozen=True)
class Repeats:
    """By how much variances exceed those of as many reports of different people."""

    noise: float = 1.0
    people: float = 1.0
    stages: bool = False
    """Whether reports are drawn afresh from kept states, so that a part of their noise averages out."""

    @classmethod
    def of(cls, terms: Terms | None, counts: Sequence[int]) -> Repeats:
        """For the sum over epochs with so many reports each.

        >>> from deniable.surveys.terms import Longitudinal
        >>> Repeats.over(Longitudinal("memoize", epochs=30), [500, 500, 500, 500])
        Repeats(noise=4.0, people=4.0, stages=False)
        >>> Repeats.over(Longitudinal("none", epochs=2), [500, 500, 500, 500])
        Repeats(noise=1.0, people=2.0, stages=False)
        """
        return cls() if terms is None else cls.over(terms.longitudinal, counts)

    @classmethod
    def over(cls, rule: Longitudinal, counts: Sequence[int]) -> Repeats:
        total = sum(counts)
        if rule.epochs == 1 or total == 0 or rule.is_evolving:  # a series knows that its devices are the same
            return cls()
        # Of all pairs, the smallest epoch is the smaller one with every other, the largest with itself only.
        pairs = sum((2 * place + 1) * n for place, n in enumerate(sorted(counts, reverse=True)))
        most = min(pairs / total, float(rule.epochs))
        return cls(most if rule.keeps else 1.0, most, rule.is_two_stage)

    def within(self, protocol: Protocol) -> Repeats:
        """The same for one question: of two stages only the noise of the kept state repeats.

        >>> from deniable.protocols import LGRR
        >>> Repeats(4.0, 4.0, stages=True).within(LGRR(["yes", "no"], first="1/2", forever=1)).noise < 2
        True
        """
        return replace(self, noise=1 + (self.noise - 1) * protocol.kept_noise) if self.stages else self

    @property
    def notes(self) -> list[str]:
        """What the errors beside an estimate allow for, in sentences."""
        if self.noise > 1:
            return [SAME_STATES if self.stages else SAME_NOISE]
        return [SAME_PEOPLE] if self.people > 1 else []


ONCE = Repeats()


def find(
    protocol: Protocol,
    tally: Tally,
    level: float = 0.95,
    consistent: str | None = None,
    candidates: Sequence[str] | None = None,
    simultaneous: bool = False,
    population: bool = True,
    repeats: Repeats = ONCE,
    bins: int | None = None,
    ranges: Sequence[tuple[float, ...]] = (),
    values: Sequence[str] | None = None,
    fakes: int = 0,
) -> Finding:
    """Estimate from a tally; open text needs the candidates to look for; a distribution may have `bins` and `ranges`.

    Of answers that are found although nobody listed them, `values` asks for the shares of these and no others.
    Intervals hold for the honest reports even if so many are `fakes`.

    >>> from deniable.protocols import GRR
    >>> smoke = GRR(["yes", "no"], epsilon=1)
    >>> found = find(smoke, Tally(smoke.fingerprint, 1000, [600, 400]))
    >>> [round(found.table.records()[0][name], 2) for name in NUMBERS], round(noise_floor(smoke, 1000, 0.95), 2)
    ([0.72, 0.03, 0.65, 0.78], 0.06)
    """
    if values is not None and protocol.finds:
        estimated: Any = protocol.estimate_of(tally, values)
    elif protocol.takes_candidates and candidates is not None:
        estimated = protocol.estimate(tally, candidates)  # type: ignore[call-arg]
    elif protocol.needs_candidates:
        raise SpecError("the answers are open text: name the texts to look for")
    else:
        estimated = protocol.estimate(tally)
    if repeats != ONCE:
        own = repeats.within(protocol)
        check = estimated._check_of(repeats.noise)  # a test that holds whatever repeats
        estimated = replace(estimated.repeated(own.noise, own.people), check=check)
    if consistent is not None:
        estimated = estimated.consistent(consistent)
    if bins is not None:
        estimated = estimated.binned(bins)
    if fakes:
        estimated = estimated.robust(fakes)
    rows = estimated.table(level, simultaneous, population)
    parts = protocol.part_tallies(tally)
    if repeats != ONCE:
        designed = any(own.hypotheses for own, _ in parts.values())
        return Finding(estimated, rows, remarks=[SAME_DEVICES] if designed else [], asked=ranges)
    wrong = 1 - exact.fraction(level)
    decide = {part: partial(own.verdict, heard, wrong) for part, (own, heard) in parts.items()}
    return Finding(estimated, rows, decide, asked=ranges)


def noise_floor(protocol: Protocol, n: float, level: float, noise: float = 1.0, tests: int = 1) -> float:
    """The smallest share that can be told from none among n reports, whose noise has so many times the variance.

    For so many answers at once.
    """
    return quantile(level, tests) * math.sqrt(noise) * protocol.noise(max(1, int(n)))


def three_digits(value: float) -> str:
    """A number as people write it.

    >>> three_digits(0.01254), three_digits(2.0), three_digits(4337.2)
    ('0.0125', '2', '4,340')
    """
    return f"{value:.3g}" if abs(value) < 1000 else f"{float(f'{value:.3g}'):,.0f}"


def three_digits_up(value: float) -> str:
    """A number that something is at most: never rounded down, but for the error of floats.

    >>> three_digits_up(2.161), three_digits_up(125.0), three_digits_up(4331.0), three_digits_up(0.0)
    ('2.17', '125', '4,340', '0')
    """
    nearest = float(f"{value:.3g}")
    if nearest < value * (1 - 1e-9):
        nearest += 10.0 ** (math.floor(math.log10(value)) - 2)
    return three_digits(nearest)


def outweighs(leverage: float | None) -> str:
    """What one forged report does, in a sentence, from the `leverage` of a question's protocol.

    >>> outweighs(2.164)
    'One forged report outweighs up to 2.17 honest ones.'
    """
    if leverage is None:
        return "Nothing bounds how far one forged report moves the figures."
    return f"One forged report outweighs up to {three_digits_up(leverage)} honest ones."


def trust(protocol: Protocol, n: int, level: float, repeats: Repeats = ONCE, tests: int = 1) -> dict[str, Any]:
    """What stands beside an estimate: its epsilon, what the noise hides, and what forgers can do."""
    noise = repeats.within(protocol).noise
    return {
        "epsilon": exact.canonical(protocol.epsilon),
        "realized_epsilon": protocol.realized_epsilon,
        "noise_floor": finite(noise_floor(protocol, n / protocol.reports_each, level, noise, tests)) if n else None,
        "poisoning": protocol.poisoning,
    }

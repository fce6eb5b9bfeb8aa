"""An estimate with its errors, its intervals, and how far both can be trusted.

population    errors and intervals are about the population that the respondents were drawn from; `population=False` is
              about those who answered, and the result says so
misfit        a test of the protocol against its tally: `Result.misfit` has the p-value, and a sentence if it is below
              0.001
noise floor   the half-width of the interval of an answer that nobody gave, in the worst case over the other answers:
              the smallest share that can be distinguished from zero
repeats       one device may be in several epochs of a sum. For epochs with n_1, n_2, ... reports at most
              sum min(n_e, n_f) over all pairs (e, f) come from the same device, so that the variance is at most D =
              (sum min(n_e, n_f)) / (sum n_e) times that of as many people: K for K epochs of one size, and never more
              than the number of epochs that a device answers. D applies to the sampling error, and to the noise if
              answers are memoized; fresh noise averages out. With two stages only the noise of the kept state repeats:
              two reports of one state have n Cov = q1 (1 - q1) / (p1 - q1)^2, with p1 and q1 of the first stage, so
              that the noise grows by 1 + (D - 1) rho, rho that covariance over the variance of one report
decision      if the question was designed for hypotheses: which of them the reports favour, wrong with probability at
              most 1 - level. Its p-values need reports of different people, so there is no decision if devices repeat
poisoning     m forged reports among n move the headline figure by at most m / n times this: see `Worth.moved`
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from deniable import exact
from deniable._plain import escaped
from deniable._sheets import Shown, as_pandas, as_polars
from deniable.errors import SpecError
from deniable.protocols import Protocol, Tally
from deniable.protocols.traits import needs_candidates
from deniable.results import Document, Result, View, finite, quantile
from deniable.results.document import Trust, chosen, kept
from deniable.results.render.csv import as_arrow
from deniable.surveys.terms import Longitudinal, Terms
from deniable.words import Figure, said

if TYPE_CHECKING:
    from deniable.surveys.survey import Survey
    from deniable.surveys.tally import SurveyTally

SAME_NOISE = said("result.repeats.noise")
SAME_STATES = said("result.repeats.states")
SAME_PEOPLE = said("result.repeats.people")
UNKNOWN_EPOCHS = (
    "answers are memoized and repeat their noise: the errors are those of one epoch, and too small if these reports "
    "are of several"
)
SAME_DEVICES = said("result.repeats.devices")


def epochs_matter(terms: Terms | None) -> bool:
    """Whether the errors depend on the epochs that reports come from, because devices repeat their noise."""
    rule = None if terms is None else terms.longitudinal
    return rule is not None and rule.keeps and not rule.is_evolving and rule.epochs > 1


def part_id(id: str, part: str) -> str:
    """The name of a part of a question: "habits.age"; the id for a question without parts."""
    return f"{id}.{part}" if part else id


@dataclass(frozen=True)
class Repeats:
    """Factors by which variances exceed those of as many reports of different people."""

    noise: float = 1.0
    people: float = 1.0
    stages: bool = False
    """Whether reports are drawn afresh from kept states, so that part of their noise averages out."""

    @classmethod
    def of(cls, terms: Terms | None, counts: Sequence[int]) -> Repeats:
        """For the sum over epochs with these numbers of reports.

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
        if rule.epochs == 1 or total == 0 or rule.is_evolving:  # a series already accounts for repeated devices
            return cls()
        # Over all pairs, the smallest epoch is the smaller one with every other, the largest with itself only.
        pairs = sum((2 * place + 1) * n for place, n in enumerate(sorted(counts, reverse=True)))
        most = min(pairs / total, float(rule.epochs))
        return cls(most if rule.keeps else 1.0, most, rule.is_two_stage)

    def within(self, protocol: Protocol) -> Repeats:
        """The same for one question: with two stages only the noise of the kept state repeats.

        >>> from deniable.protocols import LGRR
        >>> Repeats(4.0, 4.0, stages=True).within(LGRR(["yes", "no"], first="1/2", forever=1)).noise < 2
        True
        """
        return replace(self, noise=1 + (self.noise - 1) * protocol.law().kept.noise) if self.stages else self

    @property
    def notes(self) -> list[str]:
        """What the errors of an estimate allow for, in sentences."""
        if self.noise > 1:
            return [SAME_STATES if self.stages else SAME_NOISE]
        return [SAME_PEOPLE] if self.people > 1 else []


ONCE = Repeats()


def find(
    protocol: Protocol,
    tally: Tally,
    *,
    consistent: str | None = None,
    candidates: Sequence[str] | None = None,
    repeats: Repeats = ONCE,
    bins: int | None = None,
    values: Sequence[str] | None = None,
    fakes: int = 0,
    assume: str = "",
    significant: float | None = None,
) -> Result:
    """Estimate from a tally; open text needs the candidates to look for; a distribution may have `bins`.

    For answers that are found although nobody listed them, `values` asks for the shares of these and no others, and
    `significant` for those of small p-values: with that probability at most, one of them was given by nobody.
    Intervals hold for the honest reports even if up to `fakes` reports are forged. Those of a distribution may `assume`
    "smooth".

    >>> from deniable.protocols import GRR
    >>> smoke = GRR(["yes", "no"], epsilon=1)
    >>> yes, _ = find(smoke, Tally(smoke.fingerprint, 1000, [600, 400])).rows()
    >>> [round(yes[name], 2) for name in ("value", "stderr", "low", "high")], round(noise_floor(smoke, 1000, 0.95), 2)
    ([0.72, 0.03, 0.65, 0.78], 0.06)
    """
    if values is not None and protocol.traits.answers == "found":
        estimated: Any = protocol.estimate(tally, values=values)  # type: ignore[call-arg]
    elif protocol.traits.answers != "all" and candidates is not None:
        estimated = protocol.estimate(tally, candidates)  # type: ignore[call-arg]
    elif needs_candidates(protocol):
        raise SpecError("the answers are open text: name the texts to look for")
    else:
        estimated = protocol.estimate(tally)
    if repeats != ONCE:
        own = repeats.within(protocol)
        check = estimated._check_of(repeats.noise)  # a test that stays valid whatever repeats
        estimated = replace(estimated.repeated(own.noise, own.people), check=check)
    if significant is not None and protocol.traits.answers == "found":
        estimated = estimated.significant(significant)
    if consistent is not None:
        estimated = estimated.consistent(consistent)
    if bins is not None:
        estimated = estimated.binned(bins)
    if fakes:
        estimated = estimated.robust(fakes)
    if assume:
        estimated = estimated.assuming(assume)
    result: Result = estimated
    return result


def documents(
    protocol: Protocol,
    tally: Tally,
    result: Result,
    view: View,
    repeats: Repeats = ONCE,
    id: str = "",
    text: str = "",
    tests: int | None = None,
) -> dict[str, Document]:
    """The documents of a question by part, from the result that `find` gave; without parts one, under the name "".

    Each has how far to trust the protocol, and the decision between the hypotheses that the question was designed for.
    `tests` is the number of answers that are tested at once, if the protocol does not know it.
    """
    found = result.documents(view)
    wrong = 1 - exact.fraction(view.level)
    parts, worth = protocol.worth().split(tally), protocol.worth()
    designed = repeats != ONCE and any(own.worth().hypotheses for own, _ in parts.values())
    misfit = result.misfit
    count = worth.tests if tests is None else tests
    for part, (inner, _) in protocol.worth(tally.n).parts.items():
        document = found[part]
        document.id, document.part, document.text = id, part, text
        document.trust = trust(
            inner, int(document.n), view.level, repeats, max(1, count) if view.simultaneous else 1, worth.leverage
        )
        if misfit is not None:
            document.trust.misfit, document.trust.warning = misfit.p_value, misfit.message
        if designed:
            document.notes = [*document.notes, SAME_DEVICES]
        elif repeats == ONCE and part in parts:
            own, heard = parts[part]
            decided = own.worth().decide(heard, wrong)
            choice = None if decided is None else decided.choice()
            document.decision = None if choice is None else chosen(choice)
        kept(document)
    return found


@dataclass(frozen=True, eq=False, repr=False)
class SurveyEstimate(Mapping[str, Result], Shown):
    """The results of a survey by the id of their question, as one table.

    Args:
        survey: The survey.
        tally: What the results were estimated from.
        results: One result per question.
    """

    survey: Survey
    tally: SurveyTally
    results: Mapping[str, Result]

    def __getitem__(self, id: str) -> Result:
        return self.results[self.survey[id].id]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def documents(self, view: View | None = None) -> list[Document]:
        """The documents of all questions and of their parts."""
        how = View() if view is None else view
        found: list[Document] = []
        for id, result in self.results.items():
            question = self.survey[id]
            found += documents(question.protocol, self.tally[id], result, how, id=id, text=question.text).values()
        return found

    def to_arrow(self, level: float = 0.95, population: bool = True) -> Any:
        """A pyarrow table with the column "question"."""
        return as_arrow(self.documents(View(level, population=population)))

    def to_pandas(self, level: float = 0.95, population: bool = True) -> Any:
        """A pandas data frame with the column "question"."""
        return as_pandas(self.to_arrow(level, population))

    def to_polars(self, level: float = 0.95, population: bool = True) -> Any:
        """A polars data frame with the column "question"."""
        return as_polars(self.to_arrow(level, population))

    def to_latex(self) -> str:
        """One LaTeX tabular per question; they need the package booktabs."""
        return "\n\n".join(result.to_latex() for result in self.results.values())

    def __str__(self) -> str:
        return "\n\n".join(f"{id}: {result}" for id, result in self.results.items())

    def __repr__(self) -> str:
        return f"<SurveyEstimate of {', '.join(self.results)}>"

    def _repr_html_(self) -> str:
        named = [(self.survey[id].text or id, result) for id, result in self.results.items()]
        return "".join(f"<h4>{escape(escaped(name))}</h4>{result._repr_html_()}" for name, result in named)


def noise_floor(protocol: Protocol, n: float, level: float, noise: float = 1.0, tests: int = 1) -> float:
    """The smallest share that can be distinguished from zero among n reports, if `noise` multiplies their variance.

    It holds for `tests` answers simultaneously.
    """
    return quantile(level, tests) * math.sqrt(noise) * protocol.worth(max(1, int(n))).noise


def three_digits(value: float) -> str:
    """A number rounded to three digits, in the form that people write.

    >>> three_digits(0.01254), three_digits(2.0), three_digits(4337.2)
    ('0.0125', '2', '4,340')
    """
    return f"{value:.3g}" if abs(value) < 1000 else f"{float(f'{value:.3g}'):,.0f}"


def three_digits_up(value: float) -> str:
    """An upper bound to three digits: never rounded down, except for the error of floats.

    >>> three_digits_up(2.161), three_digits_up(125.0), three_digits_up(4331.0), three_digits_up(0.0)
    ('2.17', '125', '4,340', '0')
    """
    nearest = float(f"{value:.3g}")
    if nearest < value * (1 - 1e-9):
        nearest += 10.0 ** (math.floor(math.log10(value)) - 2)
    return three_digits(nearest)


def outweighs(leverage: float | None) -> str:
    """The effect of one forged report, in a sentence, from the `leverage` of a question's protocol.

    >>> outweighs(2.164)
    'One forged report outweighs up to 2.17 honest ones.'
    """
    if leverage is None:
        return said("result.forged.unbounded")
    return said("result.forged", n=Figure(three_digits_up(leverage).replace(",", "")))


def trust(
    protocol: Protocol,
    n: int,
    level: float,
    repeats: Repeats = ONCE,
    tests: int = 1,
    leverage: float | None = None,
) -> Trust:
    """What to report with an estimate: its epsilon, what the noise hides, and what forgers can do.

    `leverage` is that of the whole question, of which this may be a part.
    """
    noise = repeats.within(protocol).noise
    hidden = noise_floor(protocol, n / protocol.law().kept.reports, level, noise, tests) if n else math.nan
    return Trust(
        epsilon=exact.canonical(protocol.epsilon),
        realized_epsilon=protocol.realized_epsilon,
        noise_floor=finite(hidden),
        poisoning=protocol.worth().moved,
        leverage=leverage,
        forgery=outweighs(leverage),
    )

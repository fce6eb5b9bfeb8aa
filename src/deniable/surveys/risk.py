"""What an attacker, a forger and the analyst gain from a question, from epsilon 0.1 to 8: words and one table.

Sure       largest certainty that anybody gains about something with a given prior probability: an answer, or what the
           guarantee is about. By one report; by all reports of a device, if the guarantee is about these
Guess      how often the best guess of an answer is right: all answers equally likely, or as common as an estimate says
Year       the best guess between two equally likely answers after a year of reports. A survey says how they are
           related: drawn afresh, repeated, from a kept state, or as differences; without a survey they are fresh
Household  the same, from one report each of several people who share the answer
Analyst    the standard error of the headline figure, sampling included; and what forgers move
Row        at other epsilons: what the planner would choose for the question, else the same kind
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from deniable import planning
from deniable.domains import ListedDomain
from deniable.errors import ChannelError, DeniableError
from deniable.labels import text
from deniable.privacy import Repeated, attack, averaging, surest
from deniable.privacy.composition import CannotCompose
from deniable.protocols import Protocol, Tally
from deniable.protocols.law import ANY, METRIC, PROFILES, STREAM, SUM
from deniable.protocols.traits import scaled
from deniable.surveys.results import outweighs, three_digits, three_digits_up
from deniable.surveys.survey import Survey
from deniable.surveys.terms import MEMOIZE, Longitudinal

LEVELS = tuple(Fraction(level) for level in ("0.1", "0.25", "0.5", "1", "2", "4", "8"))
YEAR = 12
"""Reports per year, if no survey says how often it asks."""
_YEAR_SECONDS = 365 * 86_400
_GUESSES = 20_000
_FORGED = 0.01
_MOST_CELLS = 1 << 12
"""Answers times reports up to which laws are enumerated: a table has many rows."""
_NEVER = Longitudinal()
_SECRETS = {PROFILES: "profile", METRIC: "place", STREAM: "stream of answers"}
"""What is guessed, if a guarantee is not between any two answers."""


@dataclass(frozen=True)
class Known:
    """What somebody knows beforehand: how common each answer is."""

    labels: tuple[str, ...]
    shares: tuple[float, ...]

    @property
    def foremost(self) -> tuple[str, float]:
        """The most common answer, and how common it is."""
        share = max(self.shares)
        return self.labels[self.shares.index(share)], share


@dataclass(frozen=True)
class Risk:
    """One question at one epsilon; None if something is not known."""

    epsilon: float
    protocol: str
    own: bool
    """Whether this is the question itself, and not what the planner would choose."""
    sure_from_half: float
    sure_from_tenth: float
    sure_from_share: float | None
    """The same for the most common answer, with an attacker who knows how common it is."""
    guess: float | None
    """How often the best guess is right if all answers are equally likely."""
    knowing: float | None
    """How often it is right for somebody who knows how common each answer is."""
    knowing_is_exact: bool
    """Whether that is exact; otherwise it was simulated with real reports."""
    year: float | None
    household: float | None
    exact: bool
    """Whether `year` and `household` are exact; otherwise they are upper bounds."""
    error: float
    leverage: float | None
    moved: float | None
    """Upper bound on how far one forged report in a hundred moves the headline figure, in the question's unit."""


@dataclass(frozen=True)
class Risks:
    """A question itself, and at other epsilons."""

    protocol: Protocol
    rows: tuple[Risk, ...]
    people: int
    reports: int
    household: int
    rule: Longitudinal
    known: Known | None

    @property
    def own(self) -> Risk:
        return next(row for row in self.rows if row.own)

    @property
    def words(self) -> list[str]:
        """The question itself, one sentence each."""
        row, protocol = self.own, self.protocol
        told = [self._sure()]
        if row.guess is not None:
            what = "profiles" if protocol.guarantee.relation == PROFILES else "answers"
            # If each report is about one part of an answer, the figure is about a part, too.
            apart = len(protocol.worth(1).parts) > 1 and hasattr(protocol, "groups") and not protocol.law().clear
            part = " of the part that is easiest to guess" if apart else ""
            told.append(
                f"If all {what} were equally likely, the best guess{part} from one report is right in "
                f"{percent(row.guess)} of all cases."
            )
        told += self._knowing()
        if protocol.law().clear:
            are = "is told as it is" if len(protocol.law().clear) == 1 else "are told as they are"
            told.append(f"All this is about the rest of an answer: {' and '.join(protocol.law().clear)} {are}.")
        told += self._several()
        unit = f" {protocol.worth().unit}" if protocol.worth().unit else ""
        told.append(f"With {self.people:,} people the analyst has a standard error of {three_digits(row.error)}{unit}.")
        if not protocol.traits.local:
            told.append(
                "All this holds as long as the collectors do not work together: together they can read every answer. A "
                "forged report can move every figure by any amount."
            )
        if row.leverage is not None:
            told.append(outweighs(row.leverage))
        if row.moved is not None:
            told.append(
                f"One forged report in a hundred moves the figure by {three_digits_up(row.moved)}{unit} at most."
                if row.moved < protocol.worth().scale
                else "One forged report in a hundred can move the figure by more than its whole range."
            )
        return told

    def _sure(self) -> str:
        half, tenth = percent_up(self.own.sure_from_half), percent_up(self.own.sure_from_tenth)
        promised = self.protocol.guarantee
        if promised.relation == ANY:
            said = (
                f"Who thought an answer as likely as not becomes {half} sure of it at most by one report, and who gave "
                f"it one chance in ten {tenth}"
            )
        else:
            by = {STREAM: "all reports of a device", SUM: "these sums"}.get(promised.relation, "one report")
            said = (
                f"Of {promised.over}: who thought both equally likely becomes {half} sure of one at most by {by}, and "
                f"who gave it one chance in ten {tenth}"
            )
        rare = f", up to a probability of {float(promised.delta):.3g}" if promised.delta else ""
        return f"{said}{rare}."

    def _knowing(self) -> list[str]:
        known, row = self.known, self.own
        if known is None:
            return []
        name, share = known.foremost
        told = []
        if row.sure_from_share is not None:
            told.append(
                f"Who knows how common each answer is gave {name} {percent(share)} before, and is "
                f"{percent_up(row.sure_from_share)} sure of it at most afterwards."
            )
        if row.knowing is None:
            told.append(
                "How much one helps somebody who knows how common each answer is cannot be listed for this protocol."
            )
        else:
            about = "" if row.knowing_is_exact else "about "
            told.append(
                f"Somebody who knows how common each answer is guesses right in {percent(share)} of all cases without "
                f"a report, and in {about}{percent(row.knowing)} with one."
            )
        return told

    def _several(self) -> list[str]:
        row, most = self.own, "" if self.own.exact else " of all cases at most"
        share = percent if row.exact else percent_up
        if row.year is None or row.household is None:
            return []
        relation = self.protocol.guarantee.relation
        number = "one report" if self.reports == 1 else f"{self.reports:,} reports"
        if relation == STREAM:
            how = "all reports of one person"
        elif self.rule.rule == MEMOIZE:
            how = f"{number} of one person who never changes the answer, because they repeat one"
        elif self.protocol.traits.fresh:
            how = f"{number.replace('reports', 'fresh reports')} of one person"
        else:
            how = f"{number} of one person who never changes the answer, from one kept state"
        what = "two equally likely answers" if relation == ANY else "two of them"
        each = "report in all epochs" if relation == STREAM else "report once"
        return [
            f"Between {what} the best guess is right in {share(row.year)}{most} after {how}, and in "
            f"{share(row.household)}{most} if {self.household:,} people of a household share the "
            f"{_SECRETS.get(relation, 'answer')} and each {each}."
        ]


def percent(share: float) -> str:
    """
    >>> percent(0.7311), percent(0.99999), percent(1.0)
    ('73.1 %', '> 99.9 %', '> 99.9 %')
    """
    return f"{100 * share:.1f} %" if share < 0.9995 else "> 99.9 %"


def percent_up(share: float) -> str:
    """An upper bound: never rounded down, with enough digits to distinguish it from certainty.

    >>> percent_up(0.7311), percent_up(0.9999), percent_up(1.0)
    ('73.2 %', '99.99 %', '100 %')
    """
    for digits in range(1, 10):
        parts = 10 ** (2 + digits)
        whole = math.ceil(share * parts - 1e-6)
        if whole < parts:
            return f"{100 * whole / parts:.{digits}f} %"
    return "100 %"


def risks(
    protocol: Protocol,
    people: int = 10_000,
    reports: int = YEAR,
    household: int = 4,
    known: Known | None = None,
    rule: Longitudinal = _NEVER,
    levels: Sequence[Fraction] = LEVELS,
) -> Risks:
    """What a question risks at its own epsilon, and at these epsilons.

    >>> from deniable.protocols import GRR
    >>> found = risks(GRR(["yes", "no"], epsilon=1), levels=())
    >>> found.words[1]
    'If all answers were equally likely, the best guess from one report is right in 73.1 % of all cases.'
    """
    others = [_at(protocol, level, people) for level in levels if level != protocol.epsilon]
    rows = [
        _risk(one, people, reports, household, known, rule, own=one is protocol)
        for one in (protocol, *others)
        if one is not None
    ]
    ordered = tuple(sorted(rows, key=lambda row: row.epsilon))
    return Risks(protocol, ordered, people, reports, household, rule, known)


def of_survey(
    survey: Survey,
    people: int = 10_000,
    reports: int | None = None,
    household: int = 4,
    known: Mapping[str, Known] | None = None,
    levels: Sequence[Fraction] = LEVELS,
    question: str | None = None,
) -> dict[str, Risks]:
    """The same for each question of a survey, by its rule for repeated answers, or for one of them."""
    rule = _NEVER if survey.terms is None else survey.terms.longitudinal
    number = reports_in_a_year(survey) if reports is None else reports
    chosen = list(survey) if question is None else [survey[question]]
    return {
        one.id: risks(one.protocol, people, number, household, (known or {}).get(one.id), rule, levels)
        for one in chosen
    }


def reports_in_a_year(survey: Survey) -> int:
    """How many reports of one question a device sends per year."""
    if survey.terms is None:
        return YEAR
    return max(1, min(survey.terms.longitudinal.epochs, _YEAR_SECONDS // survey.terms.epochs.seconds))


def estimated(protocol: Protocol, tally: Tally) -> Known | None:
    """What every reader of the result knows: how common each answer is; None if answers are not listed."""
    if not isinstance(protocol.domain, ListedDomain) or protocol.worth().read != "shares" or not tally.n:
        return None
    found = protocol.estimate(tally).consistent()
    labels = [text(label) for label in protocol.domain.labels]
    if len(found.frequencies) != len(labels):
        return None
    return Known(tuple(labels), tuple(float(share) for share in found.frequencies))


def _at(protocol: Protocol, level: Fraction, people: int) -> Protocol | None:
    """What the planner would choose for the question, else the same kind; None if neither exists at this epsilon."""
    strata = protocol.law().choice
    if strata is not None and strata.asking is not None:
        inner = _at(strata.members[0], level, people)
        return None if inner is None else strata.asking(inner)
    if protocol.traits.fresh and protocol.guarantee.relation == ANY:
        try:
            return planning.build_one(protocol.domain, level, people, protocol.worth().read)
        except DeniableError:
            pass
    try:
        other = scaled(protocol, level / protocol.epsilon)
    except DeniableError:
        return None
    return other if other.epsilon == level else None


def _risk(
    protocol: Protocol,
    people: int,
    reports: int,
    household: int,
    known: Known | None,
    rule: Longitudinal,
    own: bool,
) -> Risk:
    several = _together(protocol, reports, household, rule)
    year, home = (one.success for one in several) if several else (None, None)
    ratio = protocol.law().kept.ratio
    knowing, is_exact = _knowing(protocol, known)
    sure = None
    if (
        known is not None
        and 0 < known.foremost[1] < 1
        and protocol.guarantee.relation == ANY
        and not protocol.law().clear
    ):
        sure = surest(ratio, known.foremost[1])
    return Risk(
        epsilon=float(protocol.epsilon),
        protocol=protocol.name,
        own=own,
        sure_from_half=surest(ratio),
        sure_from_tenth=surest(ratio, "1/10"),
        sure_from_share=sure,
        guess=attack(protocol, most_cells=_MOST_CELLS).success
        if protocol.worth().guess is None
        else protocol.worth().guess,
        knowing=knowing,
        knowing_is_exact=is_exact,
        year=year,
        household=home,
        exact=bool(several) and all(one.is_exact for one in several),
        error=protocol.worth(people).error,
        leverage=protocol.worth().leverage,
        moved=None if protocol.worth().moved is None else _FORGED * protocol.worth().moved,
    )


def _together(protocol: Protocol, reports: int, household: int, rule: Longitudinal) -> list[Repeated]:
    """A year and a household; empty if reports cannot be composed."""
    try:
        times = 1 if rule.rule == MEMOIZE else reports
        return [averaging(protocol, times), averaging(protocol, household, how="group")]
    except CannotCompose:
        return []


def _knowing(protocol: Protocol, known: Known | None) -> tuple[float | None, bool]:
    """How often somebody who knows the shares is right with a report, and whether that is exact."""
    if known is None:
        return None, False
    found = attack(protocol, list(known.shares), _MOST_CELLS)
    if found.success is not None:
        return found.success, True
    try:
        return max(found.simulate(_GUESSES), max(known.shares)), False
    except ChannelError:
        return None, False


def to_dict(found: Mapping[str, Risks]) -> dict[str, Any]:
    """As JSON values: one list of rows per question."""
    return {name: [asdict(row) for row in one.rows] for name, one in found.items()}

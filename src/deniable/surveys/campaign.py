"""Campaigns: several rounds of one collection, each made from the counts of the previous round.

Chain      a round is a survey with its own fingerprint; from round 2 on its terms name the survey of the first round
           and of the previous round, and the digest of the tally that it was made from
Rule       a kind of campaign makes the questions of round r + 1 from the survey and the tally of round r, by integers
           and fractions only: the same integers give the same bytes and the same fingerprint, so that everybody who
           has the published tally can make the round again (`verify`). Only the calendar is the owner's choice
Digest     SHA-256("deniable-survey-tally-v1" + NUL + canonical JSON of the tally), 64 hexadecimal digits
Privacy    a device answers one round. What later rounds ask depends on its report only through the tally, and so is
           post-processing of that report; what earlier rounds counted does not depend on it. All that is ever published
           therefore gives away the epsilon of the round that the device has answered, whatever the other devices send.
           An owner who makes a round in another way gains no more than that round's epsilon either
Budget     all rounds draw on one budget group; no round costs more than the previous one
Ledger     identifies a campaign by the fingerprint of its first survey; a second round is refused before answers are
           read

A kind of campaign is one file. It writes

words      what a next round asks, for people
rounds     how many rounds there are
_check     which questions a round may ask
_first     the questions of round 1, from those of a draft
_next      the questions of the next round
_combine   one result from all rounds, with error bars
told       what a round asks, if that is not visible in the answers
examples   small instances, on which the conformance suite runs

Defining a class with a `kind` registers it; other packages register theirs by an entry point (`deniable._extras`). The
fields of the class are its parameters in the spec.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from deniable._extras import load_plugins
from deniable.errors import MismatchError, SpecError
from deniable.protocols import Protocol, Tally
from deniable.results import Result
from deniable.specs import is_fingerprint, keys, short

if TYPE_CHECKING:
    from deniable.surveys.question import Question
    from deniable.surveys.survey import Survey
    from deniable.surveys.tally import SurveyTally

MOST_ROUNDS = 64
_LINKS = ("first", "before", "tally")
_KINDS: dict[str, type[Campaign]] = {}


@dataclass(frozen=True)
class Campaign(ABC):
    """A rule that makes round after round. Immutable; its fields are the parameters in the spec, whole numbers or text.

    >>> from deniable.surveys import Survey
    >>> hours = {"id": "hours", "text": "How many hours a week?", "answers": {"number": {"low": 0, "high": 80}}}
    >>> draft = {"name": "work", "owner": "Example Institute", "purpose": "To show rounds.", "days": 7, "epsilon": 1,
    ...          "people": 500, "campaign": {"kind": "narrowing"}, "questions": [hours]}
    >>> first = Survey.from_draft(draft)
    >>> tally = first.tally(first.privatize({"hours": [38.0, 40.0, 41.5] * 500}))
    >>> second = next_round(first, tally)
    >>> verify([first, second], [tally])
    >>> second.terms.campaign.number, second.terms.campaign.before == first.fingerprint
    (2, True)
    """

    kind: ClassVar[str]
    """The name of the campaign in a spec."""

    words: ClassVar[str] = ""
    """What a next round asks, for people; empty if the catalogue of words says it, under "campaign." and the kind."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "kind" in cls.__dict__:
            known = _KINDS.setdefault(cls.kind, cls)
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise SpecError(f"there are two kinds of campaigns called {cls.kind!r}: rename one")
            _KINDS[cls.kind] = cls

    # -- the rule, written by each kind ------------------------------------------------------------

    @property
    @abstractmethod
    def rounds(self) -> int:
        """The number of rounds, at least 2."""

    @abstractmethod
    def _check(self, question: Question, number: int) -> None:
        """Raise SpecError unless round `number` may ask this question."""

    @abstractmethod
    def _first(self, question: Question) -> Question:
        """A question of a draft as round 1 asks it; raises SpecError if the rule does not apply to such a question."""

    @abstractmethod
    def _next(self, question: Question, tally: Tally, number: int) -> Question:
        """A question as the round after round `number` asks it, from that round's tally; decided without floats."""

    def told(self, protocol: Protocol) -> str:
        """What a round asks, in a few words, if the rounds differ in more than the answers; "" otherwise."""
        return ""

    def _combine(self, asked: Sequence[tuple[Protocol, Tally]]) -> Result:
        """One result from the rounds that have reports, the first round first; by default that of the last."""
        protocol, tally = asked[-1]
        return protocol.estimate(tally)  # type: ignore[no-any-return]

    @classmethod
    def examples(cls) -> Iterator[tuple[Campaign, Sequence[Question]]]:
        """Small instances with the questions of a draft, all of whose reports can be listed."""
        yield from ()

    # -- rounds ------------------------------------------------------------------------------------

    def begin(self, survey: Survey) -> Survey:
        """Round 1: the survey with the questions that the rule asks. It needs terms under which a device answers once.

        Raises SpecError if the rule does not apply to these questions.
        """
        if survey.terms is None:
            raise SpecError("a campaign is collected over the network: give owner, purpose, and when it ends")
        if survey.terms.campaign is not None:
            raise SpecError("this survey belongs to a campaign already")
        terms = replace(survey.terms, campaign=Round(self))
        return replace(survey, questions=tuple(map(self._first, survey.questions)), terms=terms)

    def parameters(self) -> dict[str, Any]:
        """The contents of the spec besides the kind."""
        return asdict(self)


@dataclass(frozen=True)
class Round:
    """The place of a survey in a campaign."""

    campaign: Campaign
    number: int = 1
    first: str | None = None
    """The fingerprint of the first round's survey; None in the first round."""
    before: str | None = None
    """The fingerprint of the survey of the previous round."""
    tally: str | None = None
    """The digest of that round's tally, from which this round was made."""

    def __post_init__(self) -> None:
        if not 2 <= self.campaign.rounds <= MOST_ROUNDS:
            raise SpecError(f"a campaign has 2 to {MOST_ROUNDS} rounds, not {self.campaign.rounds}")
        if type(self.number) is not int or not 1 <= self.number <= self.campaign.rounds:
            raise SpecError(
                f"a round of this campaign is a number from 1 to {self.campaign.rounds}, not {short(self.number)}"
            )
        links = [getattr(self, link) for link in _LINKS]
        if self.number == 1 and any(link is not None for link in links):
            raise SpecError("round 1 of a campaign comes after no other round")
        if self.number > 1 and not all(map(is_fingerprint, links)):
            raise SpecError(
                f"round {self.number} of a campaign names the first survey, the survey before it and the digest of its "
                "tally, each by 64 hexadecimal digits"
            )
        if self.number > 1 and (self.number == 2) != (self.first == self.before):
            raise SpecError("round 2 of a campaign comes after its first survey, and no other round does")

    @property
    def last(self) -> bool:
        """Whether this is the last round."""
        return self.number == self.campaign.rounds

    def identity(self, fingerprint: str) -> str:
        """The identifier that all rounds of the campaign share, given the survey's own fingerprint."""
        return self.first or fingerprint

    def check(self, survey: Survey) -> None:
        """Raise SpecError unless this round of the campaign may be such a survey."""
        if survey.draws != 1 or survey.terms is None or survey.terms.longitudinal.epochs != 1:
            raise SpecError("a device answers one round of a campaign, and that once: leave longitudinal out")
        for question in survey.questions:
            self.campaign._check(question, self.number)

    def spec(self) -> dict[str, Any]:
        head: dict[str, Any] = {"kind": self.campaign.kind, "parameters": self.campaign.parameters()}
        head |= {"round": self.number, "rounds": self.campaign.rounds}
        return head | {link: getattr(self, link) for link in _LINKS if self.number > 1}

    @classmethod
    def from_spec(cls, spec: Any) -> Round:
        """The place in a campaign that a survey's terms name; unknown kinds are refused by name."""
        if not isinstance(spec, Mapping):
            raise SpecError('"campaign" is not an object')
        later = type(spec.get("round")) is int and spec["round"] > 1
        keys(spec, ("kind", "parameters", "round", "rounds", *(_LINKS if later else ())), '"campaign"')
        made = cls(load_campaign(spec["kind"], spec["parameters"]), spec["round"], *map(spec.get, _LINKS))
        if type(spec["rounds"]) is not int or spec["rounds"] != made.campaign.rounds:
            raise SpecError(f"this campaign has {made.campaign.rounds} rounds, not {short(spec['rounds'])}")
        return made


def registered_campaigns() -> Mapping[str, type[Campaign]]:
    """Every kind of campaign that a spec or a draft may name, including those of installed packages."""
    load_plugins()
    return dict(_KINDS)


def load_campaign(kind: Any, parameters: Any) -> Campaign:
    """The rule of this kind with these parameters; missing parameters have their defaults."""
    known = _KINDS if isinstance(kind, str) and kind in _KINDS else registered_campaigns()
    if not isinstance(kind, str) or kind not in known:
        raise SpecError(f"there is no campaign {short(kind)}; there are {', '.join(sorted(known))}")
    if not isinstance(parameters, Mapping):
        raise SpecError(f"the parameters of the campaign {kind} are not an object")
    keys(parameters, (), f"the campaign {kind}", optional=[field.name for field in fields(known[kind])])
    return known[kind](**parameters)


# -- what owners, reviewers and analysts do ----------------------------------------------------------------


def round_of(survey: Survey) -> Round:
    """The place of a survey in its campaign; raises SpecError if it has none."""
    place = None if survey.terms is None else survey.terms.campaign
    if place is None:
        raise SpecError(f"the survey {survey.name!r} belongs to no campaign")
    return place


def next_round(survey: Survey, tally: SurveyTally, opens: int | None = None, expires: int | None = None) -> Survey:
    """The survey of the next round, from this round's survey and its tally, which must be complete.

    It opens when this round ends, and lasts as long, unless `opens` and `expires` (seconds since 1970) say otherwise.
    Raises MismatchError for a tally of another survey, and for one of fewer answers than the survey shows.
    """
    place = round_of(survey)
    if place.last:
        raise SpecError(f"round {place.number} of {place.campaign.rounds} is the last: no round comes after it")
    tally.check(survey)
    terms = survey.terms
    assert terms is not None
    fewest = min(one.n for one in tally.tallies.values())
    if fewest < terms.min_reports:
        raise MismatchError(
            f"round {place.number} has {fewest} answers, and the survey shows nothing of fewer than {terms.min_reports}"
        )
    begins = terms.expires if opens is None else opens
    ends = begins + (terms.expires - terms.opens) if expires is None else expires
    # A collection of one epoch has one again; the epochs of a longer one go on.
    epochs = replace(terms.epochs, origin=begins, seconds=max(1, ends - begins)) if terms.count == 1 else terms.epochs
    links = (place.identity(survey.fingerprint), survey.fingerprint, tally.digest)
    made = replace(
        survey,
        questions=tuple(place.campaign._next(q, tally[q.id], place.number) for q in survey.questions),
        terms=replace(
            terms,
            epochs=epochs,
            opens=begins,
            expires=ends,
            replaces=None,
            campaign=Round(place.campaign, place.number + 1, *links),
        ),
    )
    if made.epsilon > survey.epsilon:
        raise SpecError(f"round {place.number + 1} would cost more than round {place.number}: no rule may do that")
    return made


def verify(rounds: Sequence[Survey], tallies: Sequence[SurveyTally]) -> None:
    """Check that each round was made from the tally of the previous round, and from nothing else.

    `rounds` begin with the first; `tallies` are of all of them, or of all but the last. Each round is made again, with
    the published opening and closing times. Raises MismatchError with the first thing that is wrong.
    """
    if not rounds or not len(rounds) - 1 <= len(tallies) <= len(rounds):
        raise MismatchError("a campaign is checked from its surveys, and a tally for each but the last")
    if round_of(rounds[0]).number != 1:
        raise MismatchError(f"a campaign is checked from round 1 on, not from round {round_of(rounds[0]).number}")
    for survey, tally, after in zip(rounds, tallies, rounds[1:], strict=False):
        check_round(survey, tally, after)
    if len(tallies) == len(rounds):
        tallies[-1].check(rounds[-1])


def check_round(survey: Survey, tally: SurveyTally, after: Survey) -> None:
    """Raise MismatchError unless the survey `after` is the round that follows from this round and its tally.

    Only its opening and closing times are accepted as they are.
    """
    place, made = round_of(survey), round_of(after)
    if made.before != survey.fingerprint:
        raise MismatchError(f"round {made.number} was made after {made.before}, not after {survey.fingerprint}")
    if made.tally != tally.digest:
        raise MismatchError(
            f"round {made.number} was made from the tally {made.tally}, and this one is {tally.digest}: it was "
            "changed, or it is of another moment"
        )
    assert after.terms is not None
    again = next_round(survey, tally, after.terms.opens, after.terms.expires)
    if again.fingerprint != after.fingerprint:
        raise MismatchError(
            f"round {made.number} does not follow from round {place.number}: its tally gives the survey "
            f"{again.fingerprint}, and this is {after.fingerprint}"
        )


def combine(rounds: Sequence[Survey], tallies: Sequence[SurveyTally]) -> dict[str, Result]:
    """One result for each question from all rounds so far, by id; questions without reports are left out.

    The rounds are verified first: then only the rule has decided what was asked.
    """
    if len(tallies) != len(rounds):
        raise MismatchError(f"results of {len(rounds)} rounds need as many tallies, not {len(tallies)}")
    verify(rounds, tallies)
    found = {}
    for id in (question.id for question in rounds[-1]):
        asked = [(one[id].protocol, tally[id]) for one, tally in zip(rounds, tallies, strict=True) if tally[id].n]
        if asked:
            found[id] = round_of(rounds[0]).campaign._combine(asked)
    return found

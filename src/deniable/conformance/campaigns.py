"""Checks that every kind of campaign must pass, with few devices and all that they can send.

The checks run on the instances of `examples()`: every report of every device, in every round, is enumerated by running
the real code along every branch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from typing import Any

from deniable.conformance.checks import Duty, listed, raises, require
from deniable.errors import MismatchError, SpecError
from deniable.exact import exp_at_least
from deniable.randomness import exhaust
from deniable.surveys import Budget, Campaign, Epochs, Longitudinal, Question, Survey, SurveyTally, Terms
from deniable.surveys.campaign import combine, next_round, registered_campaigns, round_of, verify
from deniable.words import catalogue

DAY = 86_400
START = 20_000 * DAY
DEVICES = 2
"""How many answer each round."""

Reports = tuple[bytes, ...]
"""The reports of the devices of one round, one question after the other."""


@dataclass(frozen=True)
class CampaignCase:
    """A campaign over the questions of a draft."""

    campaign: Campaign
    questions: Sequence[Question]

    @cached_property
    def first(self) -> Survey:
        epsilon = sum((question.protocol.epsilon for question in self.questions), Fraction(0))
        epochs, budget = Epochs(START, 7 * DAY), Budget("tests", epsilon)
        terms = Terms("Example", "To test rounds.", epochs, Longitudinal(), budget, START, START + 7 * DAY)
        return self.campaign.begin(Survey("rounds", self.questions, terms))

    @cached_property
    def answers(self) -> list[dict[str, Any]]:
        """A few different people."""
        listed = {q.id: [q.protocol.domain.answer(label) for label, _ in q.protocol.law().inputs()] for q in self.first}
        return [{id: labels[place] for id, labels in listed.items()} for place in (0, -1, 1)]


def campaign_examples(kind: type[Campaign]) -> list[tuple[str, CampaignCase]]:
    """The instances of a kind that are checked, each with a name; raises SpecError if it gives none."""
    made = [CampaignCase(*example) for example in kind.examples()]
    if not made:
        raise SpecError(f"{kind.__name__} has no examples() to check: yield small campaigns with questions of a draft")
    return [(f"{kind.kind} {number}", case) for number, case in enumerate(made, 1)]


def campaign_duties(kind: type[Campaign] | None = None) -> Iterator[Duty]:
    """Every check of a kind of campaign; without one, of all that are registered."""
    for one in [kind] if kind is not None else [kind for _, kind in sorted(registered_campaigns().items())]:
        found = campaign_examples(one)
        yield from listed(found, CAMPAIGN_CHECKS, lambda case: {})
        yield Duty(one.kind, "adapts", partial(check_adapts, [case for _, case in found]))


def law(survey: Survey, answers: dict[str, Any]) -> dict[bytes, Fraction]:
    """The exact law of one submission, by running the real code along every branch."""
    return exhaust(
        lambda bits: b"".join(question.protocol.report(answers[question.id], bits) for question in survey)
    ).law


def counted(survey: Survey, sent: Reports) -> SurveyTally:
    """The tally of these submissions."""
    total, place = SurveyTally.empty(survey), 0
    tallies = dict(total.tallies)
    for question in survey:
        width = question.protocol.report_bytes
        rows = [list(one[place : place + width]) for one in sent]
        tallies[question.id] = question.protocol.tally(rows, survey.source(question.id))  # type: ignore[arg-type]
        place += width
    return SurveyTally(survey.fingerprint, tallies)


def transcripts(survey: Survey, devices: Sequence[dict[str, Any]]) -> dict[Any, Fraction]:
    """The law of everything that is ever published: reports and surveys of all rounds.

    The first devices answer this round, the others those that follow.
    """
    laws = [law(survey, answers) for answers in devices[:DEVICES]]
    found: dict[Any, Fraction] = {}
    for sent in product(*laws):
        chance = Fraction(1)
        for report, one in zip(sent, laws, strict=True):
            chance *= one[report]
        if round_of(survey).last:
            found[survey.fingerprint, sent] = chance
            continue
        following = _next(survey, tuple(sent))
        for later, more in _remembered(following, tuple(map(_key, devices[DEVICES:])), devices[DEVICES:]).items():
            found[survey.fingerprint, sent, later] = chance * more
    return found


_known: dict[Any, Any] = {}


def _key(answers: dict[str, Any]) -> tuple[Any, ...]:
    return tuple((id, repr(answer)) for id, answer in answers.items())


def _remembered(survey: Survey, key: Any, devices: Sequence[dict[str, Any]]) -> dict[Any, Fraction]:
    # The fingerprint names the tally, and so differs where the questions do not: laws are remembered by questions.
    what = survey.questions, round_of(survey).number, key
    if what not in _known or not round_of(survey).last:
        _known[what] = transcripts(survey, devices)
    return _known[what]  # type: ignore[no-any-return]


_rounds: dict[tuple[str, Reports], Survey] = {}


def _next(survey: Survey, sent: Reports) -> Survey:
    """The round that follows these reports; remembered, and that it depends on nothing else is checked elsewhere."""
    key = survey.fingerprint, sent
    if key not in _rounds:
        _rounds[key] = next_round(survey, counted(survey, sent))
    return _rounds[key]


def check_level(case: CampaignCase) -> None:
    """1. Changing the answer of one device changes no transcript by more than that round's epsilon."""
    rounds = case.campaign.rounds
    one, other = case.answers[:2]
    for place in range(DEVICES * rounds):
        before = [case.answers[(2 * i) % 3] for i in range(DEVICES * rounds)]
        before[place] = one
        after = list(before)
        after[place] = other
        mine, theirs = transcripts(case.first, before), transcripts(case.first, after)
        require(mine.keys() == theirs.keys(), "a transcript rules out an answer")
        require(sum(mine.values()) == 1, "the transcripts are not all there")
        ratio = max(max(mine[one] / theirs[one], theirs[one] / mine[one]) for one in mine)
        require(exp_at_least(case.first.epsilon, ratio), "a device gives away more than the epsilon of one round")


def check_rule(case: CampaignCase) -> None:
    """2. The same counts give the same survey, from files as well, at no higher cost and from the same budget."""
    seen: dict[str, Survey] = {}
    for sent in product(law(case.first, case.answers[0]), repeat=DEVICES):
        tally = counted(case.first, sent)
        made = next_round(case.first, tally)
        require(made.epsilon <= case.first.epsilon, "a later round costs more")
        require(_terms(made).budget == _terms(case.first).budget, "the rounds draw on different budgets")
        same = seen.setdefault(tally.digest, made)
        require(same.fingerprint == made.fingerprint, "the same counts give another survey")
    first = Survey.from_spec(json.loads(case.first.to_json()))
    again = next_round(first, SurveyTally.from_spec(json.loads(tally.to_json())))
    require(again.fingerprint == made.fingerprint, "survey and tally from files give another round")
    require(Survey.from_spec(json.loads(made.to_json())) == made, "a round is not the same when it is loaded")
    known = f"campaign.{case.campaign.kind}" in catalogue().entries
    require(case.campaign.words or known, "there are no words for what a next round asks")


def check_chain(case: CampaignCase) -> None:
    """3. An honest chain is verified; a changed tally, a changed round and a missing one are refused."""
    rounds, tallies = chain(case)
    verify(rounds, tallies)
    verify(rounds, tallies[:-1])
    ids = {question.id for question in case.first}
    require(set(combine(rounds, tallies)) == ids, "a question has no result from all rounds")
    forged = [_forged(tallies[0]), *tallies[1:]]
    require(raises(MismatchError, verify, rounds, forged), "a changed tally is taken for the published one")
    mixed = [tallies[-1], *tallies[1:]]
    require(raises(MismatchError, verify, rounds, mixed), "the tally of another round is taken")
    require(raises(MismatchError, verify, rounds[1:], tallies[1:]), "a chain without its first round is taken")
    last = rounds[-1]
    renamed = [*rounds[:-1], replace(last, name="another")]
    require(raises(MismatchError, verify, renamed, tallies[:-1]), "a changed round is taken for the right one")
    later = next_round(rounds[-2], tallies[-2], _terms(last).opens + DAY, _terms(last).expires + 9 * DAY)
    verify([*rounds[:-1], later], tallies[:-1])  # the calendar is the owner's
    require(raises(SpecError, next_round, last, tallies[-1]), "a round follows the last")
    require(raises(MismatchError, next_round, rounds[0], tallies[-1]), "a round is made from another round's tally")


def chain(case: CampaignCase) -> tuple[list[Survey], list[SurveyTally]]:
    """All rounds, the same devices' answers in each."""
    rounds, tallies = [case.first], []
    while True:
        sent = tuple(next(iter(law(rounds[-1], answers))) for answers in case.answers[:DEVICES])
        tallies.append(counted(rounds[-1], sent))
        if round_of(rounds[-1]).last:
            return rounds, tallies
        rounds.append(next_round(rounds[-1], tallies[-1]))


def _forged(tally: SurveyTally) -> SurveyTally:
    """One report moved from one counter to another."""
    id, one = next(iter(tally.tallies.items()))
    counts = one.counts.copy()
    counts[int(counts.argmax())] -= 1
    counts[int(counts.argmin())] += 1
    return SurveyTally(tally.survey, {**tally.tallies, id: replace(one, counts=counts)})


def _terms(survey: Survey) -> Terms:
    require(survey.terms is not None, "a round has no terms")
    assert survey.terms is not None
    return survey.terms


def check_adapts(cases: Sequence[CampaignCase]) -> None:
    """4. Of at least one example, different counts lead to different questions."""
    for case in cases:
        every = product(law(case.first, case.answers[0]), repeat=DEVICES)
        if len({_next(case.first, sent).questions for sent in every}) > 1:
            return
    require(
        False, "what the next round asks never depends on the counts: it is not a campaign, or too small an example"
    )


CAMPAIGN_CHECKS = (check_level, check_rule, check_chain)

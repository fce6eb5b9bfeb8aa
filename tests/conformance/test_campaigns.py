"""Every registered kind of campaign passes every check; the checks fail on campaigns that break their promise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from deniable.protocols import Window
from deniable.surveys import Campaign, Narrowing, Question
from deniable.surveys import campaign as module
from deniable.surveys.campaign import registered_campaigns
from tests.conformance import campaign_checks
from tests.conformance.campaign_checks import CAMPAIGN_CHECKS, CampaignCase, cases, check_level, check_rule

CASES = dict(cases())


@pytest.mark.parametrize("check", CAMPAIGN_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", CASES)
def test_campaign(name, check):
    check(CASES[name])


def test_no_campaign_escapes():
    ours = [kind for kind, made in registered_campaigns().items() if made.__module__.startswith("deniable.")]
    assert sorted({name.rpartition("-")[0] for name in CASES}) == sorted(ours)


@pytest.fixture
def unregistered(monkeypatch):
    """What a test defines is forgotten after it."""
    monkeypatch.setattr(module, "_KINDS", dict(module._KINDS))


def test_a_rule_that_asks_for_more_epsilon_later_is_caught(unregistered):
    @dataclass(frozen=True)
    class Greedy(Narrowing):
        kind: ClassVar[str] = "greedy"

        def _next(self, question, tally, number):
            made = super()._next(question, tally, number)
            return replace(made, protocol=Window(made.protocol.domain, made.protocol.epsilon * 2))

    _, questions = next(Narrowing.examples())
    with pytest.raises(Exception, match="more"):
        check_rule(CampaignCase(Greedy(), questions))


def test_a_rule_that_does_not_look_at_the_counts_is_caught(unregistered):
    @dataclass(frozen=True)
    class Blind(Campaign):
        kind: ClassVar[str] = "blind"
        rounds = 2  # type: ignore[assignment]

        def _check(self, question, number): ...

        def _first(self, question):
            return question

        def _next(self, question, tally, number) -> Question:
            return question

    _, questions = list(Narrowing.examples())[1]
    with pytest.raises(AssertionError, match="no rule"):
        check_rule(CampaignCase(Blind(), questions))


def test_a_device_that_answers_two_rounds_is_caught(monkeypatch):
    # The first device of round 1 answers in round 2 again: then its answer stands in two reports.
    case = CASES["narrowing-1"]
    sound = campaign_checks.transcripts

    def both(survey, devices):
        twice = [*devices[:2], devices[0], devices[3]] if len(devices) == 4 else devices
        return sound(survey, twice)

    monkeypatch.setattr(campaign_checks, "transcripts", both)
    with pytest.raises(AssertionError, match="gives away more"):
        check_level(case)

"""Every registered kind of campaign passes every check; the checks fail on campaigns that break their promise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from deniable.conformance import campaigns as checks
from deniable.conformance.campaigns import CampaignCase, campaign_duties, campaign_examples, check_adapts, check_level
from deniable.conformance.checks import ConformanceError
from deniable.protocols import Window
from deniable.surveys import Campaign, Narrowing, Question, campaign as module
from deniable.surveys.campaign import registered_campaigns

OURS = {kind: made for kind, made in registered_campaigns().items() if made.__module__.startswith("deniable.")}


@pytest.mark.parametrize("duty", [duty for made in OURS.values() for duty in campaign_duties(made)], ids=str)
def test_campaign(duty):
    duty.call()


def test_there_is_a_campaign_to_check():
    assert "narrowing" in OURS


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
        checks.check_rule(CampaignCase(Greedy(), questions))


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
    with pytest.raises(ConformanceError, match="never depends on the counts"):
        check_adapts([CampaignCase(Blind(), questions)])


def test_a_device_that_answers_two_rounds_is_caught(monkeypatch):
    # The first device of round 1 answers in round 2 again: then its answer stands in two reports.
    case = dict(campaign_examples(Narrowing))["narrowing 2"]
    sound = checks.transcripts

    def both(survey, devices):
        twice = [*devices[:2], devices[0], devices[3]] if len(devices) == 4 else devices
        return sound(survey, twice)

    monkeypatch.setattr(checks, "transcripts", both)
    with pytest.raises(ConformanceError, match="gives away more"):
        check_level(case)

"""Campaigns: rounds in specs and drafts, the rule of `Narrowing`, and results of several rounds."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from deniable.domains import Interval
from deniable.errors import MismatchError, SpecError
from deniable.protocols import GRR, Window
from deniable.randomness import Simulation
from deniable.surveys import Budget, Longitudinal, Narrowing, Question, Survey, SurveyTally
from deniable.surveys.campaign import Round, combine, next_round, round_of, verify
from deniable.surveys.diff import diff
from tests.documents import rows_of
from tests.surveys.rounds import COUNTS, DAY, START, first_round, rounds, tally_of

FIRST, SECOND = rounds()


def with_campaign(survey: Survey, **changes):
    spec = survey.spec()
    entry = {key: value for key, value in {**spec["campaign"], **changes}.items() if value is not ...}
    return {**spec, "campaign": entry}


# -- specs ----------------------------------------------------------------------------------------------


def test_a_round_names_its_campaign_the_survey_before_and_the_digest_of_its_tally():
    assert FIRST.spec()["campaign"] == {
        "kind": "narrowing",
        "parameters": {"cells": 8, "margin": 1},
        "round": 1,
        "rounds": 2,
    }
    tally = tally_of(FIRST, *COUNTS)
    assert SECOND.spec()["campaign"] == FIRST.spec()["campaign"] | {
        "round": 2,
        "first": FIRST.fingerprint,
        "before": FIRST.fingerprint,
        "tally": tally.digest,
    }
    assert round_of(FIRST).identity(FIRST.fingerprint) == round_of(SECOND).identity(SECOND.fingerprint)
    for survey in (FIRST, SECOND):
        assert Survey.from_spec(survey.spec()) == survey


def test_the_digest_of_a_tally_is_pinned():
    # SHA-256 of "deniable-survey-tally-v1", a zero byte and the canonical JSON: others must be able to compute it.
    assert tally_of(FIRST, *COUNTS).digest == "eb024becbb19340484a42b62278cfa03ddceffe6fa567e1d92533b88f82e19a0"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "guessing"}, "there is no campaign 'guessing'; there are narrowing, regression, screening"),
        ({"parameters": {"cells": 8, "margin": 1, "depth": 2}}, "the campaign narrowing has the unknown key 'depth'"),
        ({"parameters": {"cells": 1, "margin": 1}}, "cells of a narrowing are a whole number from 4 to 256"),
        ({"parameters": {"cells": 9, "margin": 1}}, "a window of width 1 with 10 positions"),
        ({"parameters": {"cells": 8}}, "not in canonical form"),
        ({"rounds": 3}, "this campaign has 2 rounds, not 3"),
        ({"round": 3}, "misses first, before, tally"),
        ({"round": 0}, "from 1 to 2, not 0"),
        ({"before": "0" * 64}, "unknown key 'before'"),
        ({"round": True}, "from 1 to 2, not True"),
        ({"parameters": ...}, "misses parameters"),
    ],
)
def test_a_place_that_is_none_is_refused(changes, said):
    with pytest.raises(SpecError, match=said):
        Survey.from_spec(with_campaign(FIRST, **changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"round": 1}, "unknown key 'first'"),
        ({"tally": "short"}, "by 64 hexadecimal digits"),
        ({"first": "0" * 64}, "round 2 of a campaign comes after its first survey"),
        ({"tally": ...}, "misses tally"),
    ],
)
def test_a_link_that_is_none_is_refused(changes, said):
    with pytest.raises(SpecError, match=said):
        Survey.from_spec(with_campaign(SECOND, **changes))


def test_a_device_answers_a_round_once():
    terms = replace(FIRST.terms, longitudinal=Longitudinal(epochs=2), budget=Budget("rounds", Fraction(2)))
    with pytest.raises(SpecError, match="a device answers one round of a campaign, and that once"):
        Survey("work", FIRST.questions, terms)


def test_a_campaign_is_for_the_questions_of_its_rule():
    smoke = Question("smoke", "Do you smoke?", GRR(["yes", "no"], 1))
    with pytest.raises(SpecError, match="question 'smoke': a narrowing asks for a number"):
        Narrowing().begin(Survey("work", [smoke], replace(FIRST.terms, campaign=None)))
    with pytest.raises(SpecError, match="asks for numbers by Window, not by GRR"):
        Survey("work", [smoke], FIRST.terms)
    with pytest.raises(SpecError, match="collected over the network"):
        Narrowing().begin(Survey("work", [FIRST.questions[0]]))
    with pytest.raises(SpecError, match="belongs to a campaign already"):
        Narrowing().begin(FIRST)
    fine = Question("x", "?", Window(Interval(0, Fraction(1, 2**50)), 1))
    with pytest.raises(SpecError, match="cannot be divided into 9 cells: use rounder ends"):
        Narrowing(cells=9).begin(Survey("work", [fine], replace(FIRST.terms, campaign=None)))


def test_a_draft_begins_a_campaign():
    hours = {"id": "hours", "text": "How many hours?", "answers": {"number": {"low": 0, "high": 80, "unit": "hours"}}}
    draft = {"name": "work", "owner": "Example", "purpose": "To test.", "days": 7, "epsilon": 1, "people": 2000}
    made = Survey.from_draft({**draft, "campaign": {"kind": "narrowing", "cells": 16}, "questions": [hours]}, now=START)
    assert round_of(made) == Round(Narrowing(16))
    assert made["hours"].protocol == Window(Interval(0, 80, "hours"), 1, 17, 1)
    assert made.terms.budget.epsilon == 1
    for wrong in ("narrowing", {"cells": 8}):
        with pytest.raises(SpecError, match="an object with the kind of the campaign"):
            Survey.from_draft({**draft, "campaign": wrong, "questions": [hours]}, now=START)


def test_another_round_is_said_by_the_differences():
    assert [change.what for change in diff(FIRST, SECOND) if "campaign" in change.what] == ["campaign"]


# -- the rule -------------------------------------------------------------------------------------------


def test_the_next_round_is_asked_where_most_people_are():
    narrow = SECOND["hours"].protocol
    assert narrow == Window(Interval(20, 50, "hours"), 1, 2, 1)
    assert (SECOND.terms.opens, SECOND.terms.expires) == (FIRST.terms.expires, FIRST.terms.expires + 7 * DAY)
    assert SECOND.terms.epochs.at(SECOND.terms.opens) == 0
    assert SECOND.terms.budget == FIRST.terms.budget
    verify([FIRST, SECOND], [tally_of(FIRST, *COUNTS)])


@pytest.mark.parametrize(
    ("counts", "ends"),
    [
        ((400,) * 9, (0, 80)),  # people everywhere: each position has its share of the noise
        ((4, 3, 5, 4, 6, 4, 3, 5, 4), (0, 80)),  # too few to be sure of anything
        ((100, 100, 100, 100, 200, 100, 100, 100, 100), (0, 80)),  # somebody is seen, but not surely more than half
        ((3000, 300, 300, 300, 300, 300, 300, 300, 300), (0, 10)),  # all at one end
        ((300, 1000, 300, 300, 300, 300, 300, 1000, 300), (0, 80)),  # two groups: the interval takes in both
    ],
)
def test_the_interval_is_whole_unless_people_are_surely_inside(counts, ends):
    made = next_round(FIRST, tally_of(FIRST, *counts))["hours"].protocol.domain
    assert (made.low, made.high) == ends


def test_a_tally_of_another_survey_or_a_changed_one_is_refused():
    other = first_round(epsilon=2)
    with pytest.raises(MismatchError, match="this is a tally of survey"):
        next_round(FIRST, tally_of(other, *COUNTS))
    moved = (301, 309, *COUNTS[2:])
    with pytest.raises(MismatchError, match="it was changed, or it is of another moment"):
        verify([FIRST, SECOND], [tally_of(FIRST, *moved)])
    wide = replace(SECOND, questions=(Question("hours", SECOND["hours"].text, Window(Interval(0, 80, "hours"), 1)),))
    with pytest.raises(MismatchError, match="round 2 does not follow from round 1"):
        verify([FIRST, wide], [tally_of(FIRST, *COUNTS)])
    with pytest.raises(MismatchError, match="round 1 has 0 answers, and the survey shows nothing of fewer than 1"):
        next_round(FIRST, SurveyTally.empty(FIRST))
    with pytest.raises(SpecError, match="round 2 of 2 is the last"):
        next_round(SECOND, SurveyTally.empty(SECOND))


def test_an_owner_chooses_the_calendar_and_nothing_else():
    later = next_round(FIRST, tally_of(FIRST, *COUNTS), START + 30 * DAY, START + 33 * DAY)
    assert (later.terms.opens, later.terms.expires) == (START + 30 * DAY, START + 33 * DAY)
    verify([FIRST, later], [tally_of(FIRST, *COUNTS)])


# -- results --------------------------------------------------------------------------------------------


def asked(people: np.ndarray, first_people: int, seed: int):
    """A whole campaign of simulated people: the result of both rounds, and that of one round with all of them."""
    bits = Simulation(seed)
    first = first_round()
    tally = first.tally(first.privatize({"hours": people[:first_people]}, bits=bits))
    second = next_round(first, tally)
    later = second.tally(second.privatize({"hours": people[first_people:]}, bits=bits))
    alone = Window(Interval(0, 80, "hours"), 1)
    once = alone.estimate(alone.tally(alone.privatize(people, bits)))
    return combine([first, second], [tally, later])["hours"], once


def test_two_rounds_are_better_than_one_and_their_intervals_cover():
    # 200 campaigns. The nominal 95 % interval covers at least 91 % except once in 1,000 (binomial: 181 of 200); with
    # errors of half the size it would cover 67 %. The error is 2.3 times smaller: a ratio under 1.7 comes once in a
    # million.
    draw = np.random.default_rng(20261101)
    runs, covered, errors, once = 200, 0, [], []
    for seed in range(runs):
        people = draw.normal(38, 3, 4500).clip(0, 80)
        both, alone = asked(people, 1500, seed)
        low, high = both.interval()
        covered += low < 38 < high
        errors.append(both.value - 38)
        once.append(alone.value - 38)
    assert covered >= 181
    gain = math.sqrt(np.mean(np.square(once)) / np.mean(np.square(errors)))
    assert gain > 1.7


def test_both_rounds_estimate_the_same_mean_without_bias_by_enumeration():
    # Exactly: what round 1 says about the clipped mean, averaged over its law, is the clipped mean.
    first = first_round()["hours"].protocol
    values = np.clip(np.array([float(place) for place, _ in first.law().inputs()]), 20.0, 50.0)
    t = float(first.keep)
    parts = (values - (1 - t) * values.mean()) / t
    for number in (0.0, 13.0, 20.0, 27.5, 44.0, 50.0, 61.0, 80.0):
        below = int(number // 10)
        up = number / 10 - below
        law = np.full(9, (1 - t) / 9)
        law[below] += t * (1 - up)
        law[min(below + 1, 8)] += t * up
        assert law @ parts == pytest.approx(min(max(number, 20.0), 50.0), abs=1e-9)


def test_the_result_says_what_it_is_about():
    tallies = [tally_of(FIRST, *COUNTS), tally_of(SECOND, 1200, 800)]
    result = combine([FIRST, SECOND], tallies)["hours"]
    assert (result.n, result.kind, result.unit, result.ends) == (6000, "mean", "hours", (20.0, 50.0))
    alone = SECOND["hours"].protocol.estimate(tallies[1]["hours"])
    assert result.stderr < alone.stderr
    assert result.notes[0] == "of two rounds: 4,000 reports on the whole interval, then 2,000 on 20 to 50 hours"
    assert result.notes[1].startswith(
        "numbers outside 20 to 50 hours count as its ends: by round 1 that moves the mean"
    )
    assert rows_of(result.to_dict())[0]["unit"] == "hours"


def test_a_campaign_with_one_round_so_far_has_the_result_of_that_round():
    tally = tally_of(FIRST, *COUNTS)
    alone = FIRST["hours"].protocol.estimate(tally["hours"])
    assert combine([FIRST], [tally])["hours"].value == pytest.approx(alone.value)
    assert combine([FIRST, SECOND], [tally, SurveyTally.empty(SECOND)])["hours"].value == pytest.approx(alone.value)
    assert combine([FIRST], [SurveyTally.empty(FIRST)]) == {}
    with pytest.raises(MismatchError, match="results of 2 rounds need as many tallies, not 1"):
        combine([FIRST, SECOND], [tally])

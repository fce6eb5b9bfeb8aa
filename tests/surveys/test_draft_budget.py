"""Levels that follow from a lifetime budget, and what a draft says about the crowd."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from deniable.errors import SpecError
from deniable.surveys import Survey
from deniable.surveys.draft import crowds, divided
from tests.surveys.test_terms import DRAFT

MEAT: dict[str, Any] = DRAFT["questions"][0]
FISH = MEAT | {"id": "fish"}
NO_LEVEL = {key: value for key, value in DRAFT.items() if key != "epsilon"}
WEEKLY = NO_LEVEL | {"epochs": {"days": 6}, "questions": [MEAT, FISH], "budget": {"epsilon": "4"}}


def test_a_budget_is_divided_over_rounds_and_questions() -> None:
    survey = Survey.from_draft(WEEKLY | {"longitudinal": {"epochs": 5}})
    assert [question.protocol.epsilon for question in survey] == [Fraction(2, 5)] * 2
    assert survey.terms is not None
    assert survey.lifetime_epsilon == survey.terms.budget.epsilon == 4


def test_the_shares_are_exact() -> None:
    survey = Survey.from_draft(WEEKLY | {"longitudinal": {"epochs": 3}, "budget": {"epsilon": 1}})
    assert survey["meat"].protocol.epsilon == Fraction(1, 6)
    assert survey.lifetime_epsilon == 1


def test_memoized_answers_count_once_a_value() -> None:
    survey = Survey.from_draft(WEEKLY | {"longitudinal": {"rule": "memoize", "epochs": 5, "values": 2}})
    assert survey["meat"].protocol.epsilon == 1
    assert survey.budget_epsilon == 4


def test_questions_with_a_level_of_their_own_come_first() -> None:
    whole = Survey.from_draft(NO_LEVEL | {"epsilon": 1, "questions": [MEAT | {"id": "spec", "protocol": "GRR"}]})
    full = {"id": "spec", "text": "?", "protocol": whole["spec"].protocol.spec()}
    draft = WEEKLY | {"questions": [MEAT, FISH | {"epsilon": "1/2"}, full]}
    assert divided(draft) == Fraction(5, 2)
    assert Survey.from_draft(draft).epsilon == 4
    with pytest.raises(SpecError, match="take the whole budget"):
        Survey.from_draft(draft | {"budget": {"epsilon": "3/2"}})


def test_a_level_that_is_named_stays() -> None:
    assert divided(WEEKLY | {"epsilon": "1/4"}) is None
    assert divided(WEEKLY | {"questions": [MEAT | {"epsilon": 1}]}) is None
    assert Survey.from_draft(WEEKLY | {"epsilon": "1/4"}).epsilon == Fraction(1, 2)
    with pytest.raises(SpecError, match=r"epsilon is missing: .* or give a budget to be divided"):
        Survey.from_draft(NO_LEVEL)


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        (
            {"epsilon": 1},
            r"answer 5 times, .* epsilon 10 in all, .* budget of 4: lower epsilon \(0.4 a question fits\)",
        ),
        ({"questions": [MEAT | {"epsilon": 1}, FISH | {"epsilon": 2}]}, r"\(0.8 a submission fits\).*ask less often"),
        ({"epsilon": 3, "longitudinal": {"epochs": 1}}, r"may answer once, .* \(2 a question fits\).* or ask less$"),
        (
            {"epsilon": 1, "longitudinal": {"epochs": 3}, "budget": {"epsilon": "1.23457"}},
            r"\(0.2057 a question fits\)",
        ),
    ],
)
def test_a_survey_above_its_budget_says_what_fits(change: dict[str, Any], advice: str) -> None:
    with pytest.raises(SpecError, match=advice):
        Survey.from_draft(WEEKLY | {"longitudinal": {"epochs": 5}} | change)


@pytest.mark.parametrize("people", ["1500", 1500, 1500.0, "1.5e3"])
def test_people_may_be_written_as_text(people: Any) -> None:
    draft = WEEKLY | {"people": people}
    assert Survey.from_draft(draft) == Survey.from_draft(draft | {"people": 1500})
    assert crowds(draft) == {"meat": 1500, "fish": 1500}
    assert crowds(draft | {"questions": [MEAT | {"people": "7"}]}) == {"meat": 7}
    assert crowds({key: value for key, value in draft.items() if key != "people"}) == {}


@pytest.mark.parametrize("people", ["1,500", "many", 0, "-3", 2.5, True, [7]])
def test_people_that_are_no_number_are_refused(people: Any) -> None:
    for protocol in ("best", "GRR"):
        with pytest.raises(SpecError, match='"people" is a positive whole number such as 1500, not '):
            Survey.from_draft(WEEKLY | {"people": people, "protocol": protocol})


def test_a_comma_is_answered_with_a_point() -> None:
    for change in ({"epsilon": "0,3"}, {"budget": {"epsilon": "0,3"}}):
        with pytest.raises(Exception, match=r"'0,3' has a comma: write a point"):
            Survey.from_draft(WEEKLY | change)

"""Rounds about records: a regression over batches, and pairs that a first round has chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from deniable.errors import SpecError
from deniable.protocols import Attributes, Queries
from deniable.randomness import Simulation
from deniable.surveys import RegressionRounds, Screening, Survey
from deniable.surveys.campaign import combine, next_round, round_of, verify

DRAFT: dict[str, Any] = {
    "name": "records",
    "owner": "Example Institute",
    "purpose": "To test rounds.",
    "opens": "2026-11-01T00:00:00Z",
    "days": 7,
    "epsilon": 4,
    "people": 30_000,
}


def survey(campaign: dict[str, Any], answers: dict[str, Any]) -> Survey:
    question = {"id": "you", "text": "About you", "answers": answers}
    return Survey.from_draft({**DRAFT, "campaign": campaign, "questions": [question]})


def rounds(first: Survey, people: list[dict[str, Any]]) -> tuple[list[Survey], list[Any]]:
    surveys, tallies = [first], []
    for number, table in enumerate(people):
        tallies.append(surveys[-1].tally(surveys[-1].privatize({"you": table}, bits=Simulation(number))))
        if number + 1 < len(people):
            surveys.append(next_round(surveys[-1], tallies[-1]))
    verify(surveys, tallies)
    return surveys, tallies


def test_a_regression_goes_on_where_the_batch_before_has_led() -> None:
    """The slope within 5 standard errors (once in 2 million); the seeds are fixed."""
    random = np.random.default_rng(1)
    record = {"age": {"number": {"low": 20, "high": 60, "unit": "years"}}, "ill": ["no", "yes"]}
    first = survey(
        {"kind": "regression", "batches": 3},
        {"record": record, "regress": {"target": "ill", "link": "logistic", "answer": "yes"}},
    )
    assert round_of(first).campaign == RegressionRounds(3)
    ages = [random.uniform(20, 60, 30_000) for _ in range(3)]
    ill = [np.where(random.random(30_000) < 1 / (1 + np.exp(2 - 0.05 * age)), "yes", "no") for age in ages]
    tables = [{"age": age, "ill": own} for age, own in zip(ages, ill, strict=True)]
    surveys, tallies = rounds(first, tables)
    forms = [one["you"].protocol.forms for one in surveys]  # type: ignore[attr-defined]
    assert forms[0] == ((0, 0, 0),)
    assert len(set(forms)) == 3
    assert {one.epsilon for one in surveys} == {first.epsilon}, "one debit per device, the same in every round"
    found: Any = combine(surveys, tallies)["you"]
    assert found.method == "3 batches"
    assert abs(found.coefficients["age"] - 0.05) < 5 * found.stderr[1] < 0.05


def test_a_screening_asks_for_the_pairs_that_hang_together() -> None:
    """Of 45 pairs of ten columns four hang together; chance would choose them all once in 10^5 times."""
    random, n = np.random.default_rng(1), 20_000
    record = {f"q{place}": ["a", "b", "c"] for place in range(10)}
    first = survey({"kind": "screening", "pairs": 4}, {"record": record, "per_device": "pairs"})
    assert round_of(first).campaign == Screening(4)

    def people() -> dict[str, Any]:
        codes = random.integers(3, size=(10, n))
        for place in (1, 3, 5, 7):
            same = random.random(n) < 0.7
            codes[place] = np.where(same, codes[place - 1], codes[place])
        return {name: np.array(["a", "b", "c"])[own] for name, own in zip(record, codes, strict=True)}

    surveys, tallies = rounds(first, [people(), people()])
    chosen = surveys[1]["you"].protocol
    assert isinstance(chosen, Attributes)
    assert chosen.group_names == ("q0 & q1", "q2 & q3", "q4 & q5", "q6 & q7")
    found: Any = combine(surveys, tallies)["you"]
    assert len(found.parts) == 45
    assert found.n == 2 * n
    near, far = found.table("q0", "q1"), found.table("q0", "q2")
    assert near.n > 5 * far.n
    assert "4 of 45 pairs were chosen by round 1" in found.notes[0]
    assert not found.model("shrink").assumed


def test_rounds_of_other_questions_are_refused() -> None:
    record = {"a": ["x", "y"], "b": ["x", "y"]}
    for campaign, answers, said in (
        ({"kind": "regression"}, {"record": record, "per_device": "pairs"}, "its rounds are those of a regression"),
        ({"kind": "screening"}, {"record": record, "per_device": 1}, "asks for pairs of parts"),
        ({"kind": "regression", "batches": 1}, {"record": record, "regress": {"target": "a"}}, "from 2 to 64"),
        ({"kind": "screening", "pairs": 0}, {"record": record, "per_device": "pairs"}, "from 1 to 1024"),
    ):
        with pytest.raises(SpecError, match=said):
            survey(campaign, answers)
    asked = Queries(record, 1, regress={"target": "a"}, at=[1, 1])
    question = survey({"kind": "regression"}, {"record": record, "regress": {"target": "a"}})["you"]
    with pytest.raises(SpecError, match="at coefficients of 0"):
        RegressionRounds()._check(replace(question, protocol=asked), 1)
    with pytest.raises(SpecError, match='leave "per_device"'):
        survey({"kind": "regression"}, {"record": record, "per_device": 1, "regress": {"target": "a"}})

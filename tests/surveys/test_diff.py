"""What a new version of a survey does to privacy."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from deniable.channels import Channel
from deniable.domains import Categories
from deniable.protocols import GRR, LGRR, OUE, Table
from deniable.protocols.profiles import ProfileGraph, Warner
from deniable.surveys import Budget, Longitudinal, Question, Survey, Terms
from deniable.surveys.diff import LIFETIME, NEUTRAL, NO_BOUND, STRONGER, WEAKER, diff, weaker
from tests.surveys.test_terms import MEAT, SURVEY, TERMS


def changed(**changes: Any) -> Survey:
    return Survey(SURVEY.name, SURVEY.questions, replace(TERMS, **changes))


def asked(*questions: Question, terms: Terms | None = TERMS) -> Survey:
    return Survey(SURVEY.name, questions, terms)


def leaky(delta: str) -> Survey:
    """The same epsilon, up to a delta."""
    channel = Channel.from_integers([[50, 49, 1], [50, 50, 0]], 100, ["yes", "no"], ["yes", "no", "sure"])
    budget = replace(TERMS.budget, delta=Fraction(delta) * TERMS.longitudinal.draws)
    protocol = Table(channel, 1, delta=delta)
    return asked(replace(MEAT, protocol=protocol), terms=replace(TERMS, budget=budget))


MEMOIZED = changed(longitudinal=Longitudinal("memoize", epochs=3))

WORSE = {
    "epsilon": (SURVEY, asked(replace(MEAT, protocol=GRR(["yes", "no"], epsilon="1.01")))),
    "a question more": (SURVEY, asked(MEAT, Question("age", "?", GRR(3, "1/3")))),
    "asked more often": (SURVEY, changed(longitudinal=Longitudinal("none", epochs=4))),
    "a larger budget": (SURVEY, changed(budget=Budget("acme", Fraction(5)))),
    "another budget group": (SURVEY, changed(budget=Budget("acme-2", Fraction(4)))),
    "reports kept": (SURVEY, changed(retention="reports")),
    "reports wait": (SURVEY, changed(delete_days=7)),
    "reports wait longer": (changed(delete_days=7), changed(delete_days=10)),
    "results for everybody": (SURVEY, changed(results="public")),
    "shown from fewer": (SURVEY, changed(min_reports=49)),
    "more than the first answer": (MEMOIZED, changed(longitudinal=Longitudinal("memoize", epochs=3, values=2))),
    "answers whose changes show": (SURVEY, changed(longitudinal=Longitudinal("memoize", epochs=3, values=2))),
    "a delta": (SURVEY, leaky("1/100")),
    "a larger delta": (leaky("1/100"), leaky("1/50")),
    "no memoization": (MEMOIZED, changed(longitudinal=Longitudinal("none", epochs=1))),
}
ALIKE = {
    "a new purpose": (SURVEY, changed(purpose="for fun")),
    "a later end": (SURVEY, changed(expires=TERMS.expires + 5)),
    "another protocol": (SURVEY, asked(replace(MEAT, protocol=OUE(["yes", "no"], epsilon=1)))),
    "another text": (SURVEY, asked(replace(MEAT, text="Meat?"))),
    "more answers": (SURVEY, asked(replace(MEAT, protocol=GRR(["yes", "no", "at times"], epsilon=1)))),
    "over the network": (asked(MEAT, terms=None), changed(longitudinal=Longitudinal("none", epochs=1))),
}


@pytest.mark.parametrize(("old", "new"), WORSE.values(), ids=WORSE)
def test_weaker_privacy_is_called_weaker(old: Survey, new: Survey) -> None:
    assert weaker(diff(old, new))


@pytest.mark.parametrize(("old", "new"), WORSE.values(), ids=WORSE)
def test_and_the_way_back_is_stronger(old: Survey, new: Survey) -> None:
    back = diff(new, old)
    assert any(change.privacy == STRONGER for change in back) or old.terms.budget.group != new.terms.budget.group  # type: ignore[union-attr]


@pytest.mark.parametrize(("old", "new"), ALIKE.values(), ids=ALIKE)
def test_other_changes_are_listed_and_not_weaker(old: Survey, new: Survey) -> None:
    changes = diff(old, new)
    assert changes
    assert not weaker(changes)
    assert {change.privacy for change in changes} == {NEUTRAL}


def test_another_relation_is_called_weaker_both_ways() -> None:
    """Levels between profiles and levels between any two answers cannot be compared."""
    hidden = Table(Warner(ProfileGraph.chain({"north": 0, "south": 1}), 1))
    profiled = asked(
        replace(MEAT, protocol=hidden), terms=replace(TERMS, budget=replace(TERMS.budget, relation="profiles"))
    )
    for old, new in ((SURVEY, profiled), (profiled, SURVEY)):
        assert "relation of the levels" in [change.what for change in weaker(diff(old, new))]


def test_the_same_survey_has_no_changes() -> None:
    assert diff(SURVEY, Survey.from_spec(SURVEY.spec())) == []


def test_every_difference_in_the_bytes_is_listed() -> None:
    for old, new in (WORSE | ALIKE).values():
        assert old.fingerprint != new.fingerprint
        assert all(change.before != change.after for change in diff(old, new))


def test_a_changed_rule_is_in_words_and_counts_no_values_of_none() -> None:
    several = changed(longitudinal=Longitudinal("memoize", epochs=3, values=2))
    (change,) = [change for change in diff(SURVEY, several) if "epsilon" not in change.what]
    assert (change.what, change.before, change.privacy) == ("longitudinal rule", "none", WEAKER)
    assert change.after == "memoize 2 answers, which shows changes and returns"
    (unbounded,) = [change for change in diff(SURVEY, several) if change.what == LIFETIME]
    assert (unbounded.before, unbounded.after, unbounded.privacy) == (Fraction(3), NO_BOUND, WEAKER)
    (back,) = [change for change in diff(several, SURVEY) if change.what == LIFETIME]
    assert (back.after, back.privacy) == (Fraction(3), STRONGER)
    (first,) = [change for change in diff(SURVEY, MEMOIZED) if "epsilon" not in change.what]
    assert (first.after, first.privacy) == ("memoize the first answer", STRONGER)
    (more,) = [change for change in diff(MEMOIZED, several) if "epsilon" not in change.what]
    assert (more.what, more.before, more.after) == ("values that a device memoizes", "1", "2")


def test_which_of_the_four_levels_is_promised_is_in_words() -> None:
    def rule(*given: Any, **more: Any) -> Longitudinal:
        return Longitudinal(*given, **more)

    levels = {"first": Fraction(1, 2), "forever": Fraction(1)}
    held = {
        "any two streams of answers, because the levels of all reports are added": rule("none", 30),
        "any two streams of answers, because one report is repeated": rule("memoize", 30),
        "two answers that never change; other streams of answers are told apart without bound": rule("memoize", 30, 2),
        "any two streams of answers, because all reports come from one state": rule("two-stage", 30, 1, **levels),
        "two streams of answers whose states recur in the same pattern, up to 3 states": rule(
            "two-stage", 30, 3, **levels
        ),
        "any two streams of answers with at most 2 changes": rule("evolving", 30, changes=2),
        "any two answers": rule("none", 1),
    }
    assert [one.promise[1] for one in held.values()] == list(held)
    what = "between what the debited epsilon holds"
    staged = [
        Survey(
            "s",
            [Question("q", "?", LGRR(["yes", "no"], **levels))],
            replace(TERMS, longitudinal=rule("two-stage", 30, values, **levels)),
        )
        for values in (1, 2)
    ]
    for (old, new), privacy in ((staged, WEAKER), (staged[::-1], STRONGER)):
        (change,) = [change for change in diff(old, new) if change.what == what]
        assert change.privacy == privacy
        assert {change.before, change.after} == {old.terms.longitudinal.promise[1], new.terms.longitudinal.promise[1]}


def test_the_order_of_questions_is_a_change() -> None:
    age = Question("age", "?", GRR(3, 1))
    terms = replace(TERMS, budget=Budget("acme", Fraction(6)))
    (change,) = diff(asked(MEAT, age, terms=terms), asked(age, MEAT, terms=terms))
    assert (change.what, change.privacy) == ("order of the questions", NEUTRAL)
    assert change.privacy != WEAKER


def test_what_stands_for_missing_and_unlisted_answers() -> None:
    """The list itself may stay the same."""
    answers = ["yes", "no", "none"]
    old = asked(replace(MEAT, protocol=GRR(answers, epsilon=1)))
    new = asked(replace(MEAT, protocol=GRR(Categories(answers, other="none", missing="none"), epsilon=1)))
    assert [(one.what, one.before, one.after) for one in diff(old, new)] == [
        ("question meat: unlisted answers", "refused", "count as none"),
        ("question meat: missing answers", "refused", "count as none"),
    ]
    long = asked(replace(MEAT, protocol=GRR([f"a{i}" for i in range(30)], epsilon=1)))
    last = asked(replace(MEAT, protocol=GRR([f"a{i}" for i in range(29)] + ["b"], epsilon=1)))
    assert [change.what for change in diff(long, last)] == ["question meat: answers"]

"""The terms of a collection: strict, bounded by the budget, and refused where memoized bytes would track people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from deniable.channels import Channel
from deniable.domains import Strings
from deniable.errors import DeniableError, SpecError
from deniable.protocols import CMS, GRR, LGRR, LOSUE, OLH, OUE, HadamardResponse, Table
from deniable.surveys import Budget, Epochs, Longitudinal, Question, Survey, Terms
from deniable.surveys.draft import plan_draft
from deniable.surveys.terms import read_time, write_time

DAY = 86_400
START = read_time("2026-11-01T00:00:00Z")
TERMS = Terms(
    "Acme",
    "to plan the canteen",
    Epochs(START, DAY, early=1, late=2),
    Longitudinal("none", epochs=3),
    Budget("acme", Fraction(4)),
    START,
    START + 30 * DAY,
    min_reports=50,
)
TWO_STAGES = {"rule": "two-stage", "epochs": 30, "values": 2, "first": "1/2", "forever": "1"}
MEAT = Question("meat", "Do you eat meat?", GRR(["yes", "no"], epsilon=1))
SURVEY = Survey("canteen", [MEAT], TERMS)


def spec(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in {**SURVEY.spec(), **changes}.items() if value is not ...}


def test_the_file_gives_the_survey_again() -> None:
    assert Survey.from_spec(SURVEY.spec()) == SURVEY
    assert SURVEY.spec()["version"] == 2
    assert Survey("canteen", [MEAT]).spec()["version"] == 1
    assert Survey("canteen", [MEAT]).fingerprint != SURVEY.fingerprint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"owner": ...}, "misses owner"),
        ({"owner": " "}, "owner of a survey is empty"),
        ({"sponsor": "x"}, "unknown key 'sponsor'"),
        ({"epochs": 5}, '"epochs" is not an object'),
        ({"epochs": {**TERMS.epochs.spec(), "seconds": 0}}, "length of an epoch"),
        ({"epochs": {**TERMS.epochs.spec(), "seconds": "1"}}, "length of an epoch"),
        ({"epochs": {**TERMS.epochs.spec(), "origin": "2026-12-01T00:00:00Z"}}, "before the origin"),
        ({"longitudinal": {"rule": "often", "epochs": 3}}, "none or memoize or two-stage"),
        ({"longitudinal": {"rule": "two-stage", "epochs": 3}}, "misses values"),
        ({"longitudinal": {"rule": "none", "epochs": 3, "first": "1"}}, "unknown key 'first'"),
        ({"longitudinal": TWO_STAGES}, "which has one stage"),
        ({"longitudinal": {**TWO_STAGES, "epochs": 1}}, "for answers that repeat"),
        ({"longitudinal": {**TWO_STAGES, "first": "2"}}, 'below "forever"'),
        ({"longitudinal": {"rule": "none", "epochs": 3, "values": 2}}, "unknown key 'values'"),
        ({"longitudinal": {"rule": "none", "epochs": True}}, "whole number"),
        ({"longitudinal": {"rule": "none", "epochs": 5}}, "more than its budget of 4"),
        ({"budget": {"group": "Acme!", "epsilon": "4"}}, "budget group"),
        ({"budget": {"group": "acme", "epsilon": "0"}}, "above zero"),
        ({"budget": {"group": "acme", "epsilon": "4", "delta": "1"}}, "probability below 1"),
        ({"budget": {"group": "acme", "epsilon": "4", "delta": "0"}}, "canonical"),
        ({"budget": {"group": "acme", "epsilon": "4", "relation": "any"}}, "canonical"),
        ({"budget": {"group": "acme", "epsilon": "4", "relation": "all"}}, "relation of a budget is any or metric"),
        ({"budget": {"group": "acme", "epsilon": "4", "relation": "profiles"}}, "not the same secret"),
        ({"opens": "2026-11-01"}, "a time is written"),
        ({"opens": 3}, "a time is written"),
        ({"expires": "2026-10-01T00:00:00Z"}, "expires before it opens"),
        ({"retention": "all"}, "tally or reports"),
        ({"retention": "tally", "delete_days": 0}, "a whole number from 1 to 366"),
        ({"retention": "reports", "delete_days": 7}, '"delete_days" goes with'),
        ({"results": "open"}, 'only where it is "public"'),
        ({"results": "private"}, 'only where it is "public"'),
        ({"min_reports": 0}, "smallest number of answers"),
        ({"replaces": "f00"}, "64 hexadecimal digits"),
        ({"version": 1}, "unknown key 'owner'"),
        ({"version": 3}, "version 3 are unknown"),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Survey.from_spec(spec(**changes))


def test_a_number_in_another_form_is_not_canonical() -> None:
    with pytest.raises(DeniableError, match="canonical form"):
        Survey.from_spec(spec(budget={"group": "acme", "epsilon": "8/2"}))


def test_results_are_for_everybody_only_where_the_terms_allow_it() -> None:
    public = replace(SURVEY, terms=replace(TERMS, results="public"))
    assert "results" not in SURVEY.spec()
    assert public.spec()["results"] == "public"
    assert Survey.from_spec(public.spec()) == public
    assert public.fingerprint != SURVEY.fingerprint
    with pytest.raises(SpecError, match="results are private or public"):
        replace(TERMS, results="secret")
    draft = {"name": "n", "owner": "o", "purpose": "p", "days": 1, "epsilon": 1, "people": 100}
    draft["questions"] = [{"id": "meat", "text": "Do you eat meat?", "answers": ["yes", "no"]}]
    for given, made in (({}, "private"), ({"results": "private"}, "private"), ({"results": "public"}, "public")):
        terms = Survey.from_draft(draft | given).terms
        assert terms is not None
        assert terms.results == made


# -- the calendar --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epoch", "day", "verdict"),
    [
        (0, 0, None),
        (1, 0, None),  # a clock that is ahead
        (2, 0, "epochTooEarly"),
        (0, 2, None),  # a device that was offline
        (0, 3, "epochTooOld"),
        (29, 31, None),
        (30, 29, "epochTooEarly"),  # there is no such epoch
        (30, 30, "epochTooEarly"),
        (2**32 - 1, 5, "epochTooEarly"),
    ],
)
def test_which_epochs_are_taken_when(epoch: int, day: int, verdict: str | None) -> None:
    assert TERMS.refusal(epoch, START + day * DAY + 1) == verdict


def test_an_epoch_before_the_opening_is_not_taken() -> None:
    later = replace(TERMS, opens=START + 10 * DAY)
    assert later.refusal(9, START + 10 * DAY) == "notStarted"
    assert later.refusal(10, START + 10 * DAY) is None


def test_the_collection_is_over_when_no_epoch_is_taken() -> None:
    for day in range(28, 40):
        now = START + day * DAY
        assert TERMS.over(now) == all(TERMS.refusal(epoch, now) for epoch in range(40))


def test_times_round_trip() -> None:
    assert read_time(write_time(START + 12345)) == START + 12345


# -- what a lifetime gives away ------------------------------------------------------------------------


def test_fresh_answers_add_up() -> None:
    assert SURVEY.lifetime_epsilon == 3
    assert SURVEY.realized_lifetime_epsilon <= 3


def test_memoized_answers_cost_what_is_drawn() -> None:
    rule = Longitudinal("memoize", epochs=30, values=2)
    survey = Survey("canteen", [MEAT], replace(TERMS, longitudinal=rule))
    assert survey.budget_epsilon == 2
    assert survey.shows_changes
    assert survey.lifetime_epsilon is None, "no number holds over streams"
    assert survey.realized_lifetime_epsilon is None
    first = Survey("canteen", [MEAT], replace(TERMS, longitudinal=Longitudinal("memoize", epochs=30, values=1)))
    assert (first.lifetime_epsilon, first.shows_changes) == (1, False)
    assert replace(TERMS, longitudinal=Longitudinal("memoize", epochs=1, values=2)).longitudinal.draws == 1


MEMOIZE = replace(TERMS, longitudinal=Longitudinal("memoize", epochs=30), budget=Budget("acme", Fraction(100)))


@pytest.mark.parametrize(
    "protocol", [GRR(1024, 1), OUE(10, 1), HadamardResponse(10, 1), OLH(4, 1)], ids=lambda protocol: protocol.name
)
def test_few_forms_may_be_memoized(protocol: Any) -> None:
    Survey("few", [Question("q", "?", protocol)], MEMOIZE)


@pytest.mark.parametrize(
    "protocol", [GRR(1025, 1), OUE(11, 1), OLH(1000, 1), CMS(Strings(cells=64), 1)], ids=lambda protocol: protocol.name
)
def test_a_memoized_report_that_could_track_a_device_is_refused(protocol: Any) -> None:
    with pytest.raises(SpecError, match="tell devices apart"):
        Survey("many", [Question("q", "?", protocol)], MEMOIZE)


def test_the_forms_of_several_questions_multiply() -> None:
    with pytest.raises(SpecError, match="tell devices apart"):
        Survey("two", [Question("a", "?", GRR(64, 1)), Question("b", "?", GRR(17, 1))], MEMOIZE)


@pytest.mark.parametrize("protocol", [GRR(3, 1), OUE(4, 1), OLH(4, 1), HadamardResponse(3, 1)])
def test_forms_bound_the_reports_that_there_are(protocol: Any) -> None:
    assert len(protocol.channel().outputs) <= protocol.law().forms


# -- drafts --------------------------------------------------------------------------------------------

DRAFT: dict[str, Any] = {
    "name": "Canteen 2026",
    "epsilon": "1",
    "people": 1000,
    "owner": "Acme",
    "purpose": "to plan",
    "days": 30,
    "questions": [{"id": "meat", "text": "Do you eat meat?", "answers": ["yes", "no"]}],
}


def test_a_draft_needs_little() -> None:
    survey = Survey.from_draft(DRAFT, now=START + 1000)
    terms = survey.terms
    assert terms is not None
    assert (terms.opens, terms.expires) == (START, START + 30 * DAY)
    assert (terms.first, terms.last) == (0, 29)
    assert terms.budget == Budget("canteen-2026", Fraction(1))
    assert Survey.from_spec(survey.spec()) == survey


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Epochs(START, DAY, late=3)),
        ({"days": 8}, Epochs(START, DAY, late=3)),
        ({"days": 7}, Epochs(START, 7 * DAY)),  # short enough to remember all of it
        ({"epochs": {"late": 1, "early": 0}}, Epochs(START, DAY, early=0, late=1)),
        ({"epochs": {"days": 30}}, Epochs(START, 30 * DAY)),
        ({"epochs": {"days": 10, "late": 2}}, Epochs(START, 10 * DAY, late=2)),
        ({"longitudinal": {"rule": "memoize", "epochs": 1}}, Epochs(START, DAY, late=3)),
        ({"retention": "tally"}, Epochs(START, DAY, late=3)),
        ({"retention": "reports"}, Epochs(START, 30 * DAY)),  # deletion is possible while an epoch is open
    ],
)
def test_a_long_collection_has_epochs_of_a_day(changes: dict[str, Any], expected: Epochs) -> None:
    terms = Survey.from_draft({**DRAFT, **changes}, now=START).terms
    assert terms is not None
    assert terms.epochs == expected
    assert (terms.longitudinal.epochs, terms.longitudinal.draws) == (1, 1), "a device answers once whatever they are"


def test_a_draft_may_say_everything() -> None:
    survey = Survey.from_draft(
        {
            **DRAFT,
            "opens": "2026-11-01T00:00:00Z",
            "epochs": {"days": 1, "late": 7},
            "longitudinal": {"rule": "memoize", "epochs": 30, "values": 2},
            "budget": {"group": "acme"},
            "retention": "reports",
            "min_reports": 100,
            "replaces": "0" * 64,
        }
    )
    assert survey.terms is not None
    assert survey.terms.spec() == {
        "owner": "Acme",
        "purpose": "to plan",
        "epochs": {"origin": "2026-11-01T00:00:00Z", "seconds": DAY, "early": 1, "late": 7},
        "longitudinal": {"rule": "memoize", "epochs": 30, "values": 2},
        "budget": {"group": "acme", "epsilon": "2"},
        "opens": "2026-11-01T00:00:00Z",
        "expires": "2026-12-01T00:00:00Z",
        "retention": "reports",
        "min_reports": 100,
        "replaces": "0" * 64,
    }


def test_a_survey_with_a_delta_needs_a_budget_for_it() -> None:
    leaky = Channel.from_integers([[97, 2, 1], [2, 98, 0]], 100, ["yes", "no"], ["yes", "no", "sure"])
    protocol = Table(leaky, 4, delta="1/100").spec()
    question = {"id": "leak", "text": "Yes or no?", "protocol": protocol}
    draft = {**DRAFT, "questions": [question], "epochs": {"days": 1}, "longitudinal": {"epochs": 3}}
    survey = Survey.from_draft(draft)
    assert survey.terms is not None
    assert (survey.delta, survey.budget_delta, survey.relation) == (Fraction(1, 100), Fraction(3, 100), "any")
    assert survey.terms.spec()["budget"] == {"group": "canteen-2026", "epsilon": "12", "delta": "3/100"}
    assert Survey.from_spec(survey.spec()) == survey
    asked = {"group": "x", "epsilon": "12"}
    assert Survey.from_draft({**draft, "budget": {**asked, "delta": "0.04"}}).terms.budget.delta == Fraction(1, 25)
    with pytest.raises(SpecError, match="3 times, with a delta of 3/100 in all, more than its budget of 1/50"):
        Survey.from_draft({**draft, "budget": {**asked, "delta": "0.02"}})


def test_a_draft_without_terms_is_for_files() -> None:
    plain = {key: DRAFT[key] for key in ("name", "epsilon", "people", "questions")}
    assert Survey.from_draft(plain).terms is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("owner"), "needs owner"),
        (lambda d: d.pop("days"), "either"),
        (lambda d: d.update(expires="2027-01-01T00:00:00Z"), "either"),
        (lambda d: d.update(days=0), "whole number from 1"),
        (lambda d: d.update(budget={"name": "x"}), "unknown key 'name'"),
        (lambda d: d.update(epochs=[1]), "is an object"),
        (lambda d: d.update(longitudinal={"rule": "memoize", "epochs": 2, "often": 1}), "unknown key 'often'"),
        (lambda d: d.update(budget={"group": "x", "epsilon": "1/2"}), "more than its budget"),
        (lambda d: (d.pop("days"), d.update(expires="2020-01-01T00:00:00Z")), "ends at 2020-01-01T00:00:00Z, before"),
        (lambda d: d.update(epochs={"days": 31}), "an epoch of 31 days is longer than the collection of 30 days"),
        (lambda d: d.update(epochs={"days": 31, "origin": "2020-01-01T00:00:00Z"}), "longer than the collection"),
        (lambda d: d.update(longitudinal={"epochs": 2}), "cannot answer in 2 epochs: .* has 1 of 30 days"),
        (lambda d: d.update(longitudinal={"epochs": 6}, epochs={"days": 7}), "has 5 of 7 days"),
        (lambda d: d.update(longitudinal={"rule": "memoize", "epochs": 9}, epochs={"seconds": 540_000}), "150 hours"),
    ],
)
def test_a_bad_draft_is_refused(change: Callable[[dict[str, Any]], Any], message: str) -> None:
    draft = dict(DRAFT)
    change(draft)
    with pytest.raises(SpecError, match=message):
        Survey.from_draft(draft)


def test_an_epoch_as_long_as_the_collection_and_as_many_as_there_are() -> None:
    short = {**DRAFT, "days": 6}
    assert Survey.from_draft({**short, "epochs": {"days": 6}}) == Survey.from_draft(short)
    terms = Survey.from_draft({**DRAFT, "epochs": {"days": 7}, "longitudinal": {"epochs": 5}}).terms
    assert terms is not None
    assert terms.count == 5


def test_a_published_survey_with_long_epochs_still_loads() -> None:
    """What was published before drafts were checked for it."""
    long = replace(TERMS, epochs=Epochs(START, 400 * DAY), longitudinal=Longitudinal("none", 3))
    assert Survey.from_spec(Survey("canteen", [MEAT], long).spec()).terms == long


# -- the planner's choice among protocols that may be memoized -------------------------------------------

MEMOIZED = {**DRAFT, "epochs": {"days": 1}, "longitudinal": {"rule": "memoize", "epochs": 30}}


def questions(*sizes: int, **fixed: str) -> list[dict[str, Any]]:
    """Questions q0, q1, ... with so many answers; `fixed` names the protocols of some."""
    return [
        {"id": f"q{i}", "text": "?", "answers": {"low": 1, "high": size}}
        | ({"protocol": fixed[f"q{i}"]} if f"q{i}" in fixed else {})
        for i, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        (questions(30), ["BLH"]),
        (questions(16, 16), ["BLH", "BLH"]),
        (questions(31, 31), ["HadamardResponse", "HadamardResponse"]),  # the 64 forms of BLH leave the other no room
        (questions(30, 17), ["HadamardResponse", "HadamardResponse"]),
        (questions(16, 30), ["BLH", "HadamardResponse"]),
        (questions(16, 30, 2), ["GRR", "HadamardResponse", "GRR"]),
        (questions(16, 30, q1="GRR"), ["BLH", "GRR"]),
        (questions(1024), ["GRR"]),
    ],
)
def test_the_planner_keeps_to_the_rule(asked: list[dict[str, Any]], chosen: list[str]) -> None:
    survey, plans = plan_draft(Survey, {**MEMOIZED, "questions": asked})
    assert [question.protocol.name for question in survey] == chosen
    assert survey.forms <= 1024
    assert all(plan.reason.startswith("Among the protocols with at most ") for plan in plans.values())
    assert list(plans) == [entry["id"] for entry in asked if "protocol" not in entry]
    # Free to choose, the planner would take reports that may not be memoized.
    free = Survey.from_draft({**DRAFT, "questions": asked})
    with pytest.raises(SpecError, match="tell devices apart"):
        Survey(free.name, free.questions, survey.terms)


@pytest.mark.parametrize(
    "asked",
    [
        questions(1025),
        questions(33, 32),
        questions(30, 30, q1="OLH"),
        [{"id": "word", "text": "?", "answers": "text"}],
    ],
)
def test_what_cannot_be_memoized_at_all_is_said(asked: list[dict[str, Any]]) -> None:
    with pytest.raises(SpecError, match="tell devices apart"):
        Survey.from_draft({**MEMOIZED, "questions": asked})


# -- two stages ------------------------------------------------------------------------------------------

STAGED = {**{key: value for key, value in DRAFT.items() if key != "epsilon"}, "epochs": {"days": 1}}
STAGED |= {"longitudinal": {"rule": "two-stage", "epochs": 5, "values": 2, "first": "1/2", "forever": 1}}


def staged(**changes: Any) -> Survey:
    return Survey.from_draft({**STAGED, "questions": [{"id": "q", "text": "?", "answers": ["a", "b", "c"]}], **changes})


def test_a_draft_of_two_stages_says_both_levels_and_no_other() -> None:
    survey = staged()
    protocol = survey["q"].protocol
    assert protocol == LGRR(["a", "b", "c"], first="1/2", forever=1)
    assert survey.terms is not None
    assert survey.terms.longitudinal.spec() == TWO_STAGES | {"epochs": 5}
    assert (survey.epsilon, survey.debit, survey.budget_epsilon) == (Fraction(1, 2), 1, 2)
    assert survey.terms.budget.epsilon == 2, "what the ledger debits, by default"
    assert survey.lifetime_epsilon == Fraction(1, 2) + 4 * protocol.instant_epsilon  # type: ignore[attr-defined]
    assert Survey.from_spec(survey.spec()) == survey
    first = staged(longitudinal={**STAGED["longitudinal"], "values": 1})
    assert (first.budget_epsilon, first.lifetime_epsilon) == (1, 1)


def test_levels_of_two_stages_are_divided_over_the_questions() -> None:
    own = {"id": "own", "text": "?", "protocol": LGRR(2, first="1/8", forever="1/4").spec()}
    asked = [own, *({"id": f"q{i}", "text": "?", "answers": ["a", "b"]} for i in range(3))]
    survey = staged(questions=asked)
    assert survey["q1"].protocol == LGRR(["a", "b"], first="1/8", forever="1/4") == survey["q2"].protocol
    assert survey.epsilon == Fraction(1, 2)


def test_states_that_work_as_a_cookie_are_said() -> None:
    """With a second stage it is the number of epochs that counts, and a survey may go beyond it in the open."""
    many = {"questions": [{"id": "q", "text": "?", "answers": {"low": 0, "high": 2000}}]}
    assert staged(**many)["q"].protocol.name == "LOLOHA", "few states, however many answers"
    wide = [{"id": "q", "text": "?", "protocol": LOSUE(20, "1/2", 1).spec()}]
    rule = STAGED["longitudinal"] | {"linkable": True}
    survey = staged(questions=wide, longitudinal=rule)
    assert survey.terms is not None
    assert survey.terms.longitudinal.linkable
    assert survey.spec()["longitudinal"]["linkable"] is True
    assert Survey.from_spec(survey.spec()) == survey
    assert "linkable" not in staged().spec()["longitudinal"]
    some = [{"id": "q", "text": "?", "answers": {"low": 0, "high": 39}}]
    assert staged(questions=some, longitudinal=rule)["q"].protocol.name == "LOSUE", (
        "the planner may use wider states then"
    )
    wrong = survey.spec()
    wrong["longitudinal"] |= {"linkable": False}
    with pytest.raises(SpecError, match="only where it is true"):
        Survey.from_spec(wrong)


SEVERAL = {"multiple": ["a", "b", "c"], "at_most": 2}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 1}, "take the place of"),
        ({"questions": [{"id": "q", "text": "?", "answers": ["a", "b"], "epsilon": 1}]}, "take the place of"),
        ({"questions": [{"id": "q", "text": "?", "answers": ["a", "b"], "protocol": "GRR"}]}, "GRR has one stage"),
        ({"questions": [{"id": "q", "text": "?", "answers": SEVERAL}]}, "no protocol in two"),
        ({"questions": [{"id": "q", "text": "?", "answers": "text"}]}, "recognized as its own"),
        ({"questions": [{"id": "q", "text": "?", "protocol": LOSUE(20, "1/2", 1).spec()}]}, "after 4 epochs"),
        ({"longitudinal": {**STAGED["longitudinal"], "linkable": True}}, 'leave "linkable" out'),
        ({"longitudinal": {**STAGED["longitudinal"], "linkable": "yes"}}, "true or false"),
        ({"longitudinal": {"rule": "memoize", "epochs": 5, "linkable": True}}, "true or false"),
        ({"questions": [{"id": "q", "text": "?", "protocol": GRR(2, "1/2").spec()}]}, "which has one stage"),
        ({"questions": [{"id": "q", "text": "?", "protocol": LGRR(2, 1, 2).spec()}]}, "is the sum over the questions"),
        ({"longitudinal": {**STAGED["longitudinal"], "first": 2}}, 'below "forever"'),
        ({"longitudinal": {"rule": "two-stage", "epochs": 5}}, 'needs "first"'),
        ({"longitudinal": {"rule": "memoize", "epochs": 5, "first": 1}}, 'has no "first"'),
        ({"budget": {"epsilon": 1}}, 'lower "forever"'),
    ],
)
def test_two_stages_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        staged(**changes)


def test_a_draft_waits_until_one_figure_is_readable() -> None:
    """Until the 95 % interval of some figure is narrower than its range: 18 answers here, and fewer say nothing."""
    draft = {"name": "habits", "owner": "Guild", "purpose": "To learn.", "days": 7, "epsilon": "1"}
    questions = [{"id": id, "text": "Do you?", "answers": ["yes", "no"], "protocol": "GRR"} for id in ("a", "b")]
    terms = Survey.from_draft(draft | {"questions": questions}).terms
    assert terms is not None
    assert terms.min_reports == 18
    coin = GRR(["yes", "no"], 1)
    assert 2 * 1.96 * coin.worth(18).error < 1 < 2 * 1.96 * coin.worth(17).error
    chosen = Survey.from_draft(draft | {"questions": questions, "min_reports": 3}).terms
    assert chosen is not None
    assert chosen.min_reports == 3

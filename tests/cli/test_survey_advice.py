"""What `deniable survey` tells an author: how exact a survey will be, and its contract in words."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from deniable.planning import half_width
from deniable.protocols import GRR
from deniable.surveys import Budget, Epochs, Question, Survey, SurveyTally
from tests.surveys.test_terms import DAY, DRAFT, MEAT, START, SURVEY, TERMS

ASKED = DRAFT["questions"][0]


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def made(run):
    """What `survey new` prints for the draft with these changes."""

    def make(**changes: Any) -> Any:
        draft = {key: value for key, value in {**DRAFT, **changes}.items() if value is not ...}
        Path("draft.json").write_text(json.dumps(draft))
        return run("survey", "new", "draft.json", "-o", "made.json")

    return make


def test_shares_over_time_are_in_points_and_warned_about_where_they_are_wide(made):
    terms = {"days": 28, "epochs": {"days": 7}, "longitudinal": {"rule": "evolving", "changes": 2, "epochs": 4}}
    ran = made(**terms, budget=..., epsilon=2, people=2000, questions=[ASKED])
    width = half_width(Survey.load("made.json")["meat"].protocol, 2000, 0.95)
    assert f"2,000  +-{100 * width:.1f} points" in ran.out
    assert "the intervals of meat are wider than +-10 points" in ran.err


def test_what_is_expected_of_a_regression_has_a_meaning(made):
    record = {"age": {"number": {"low": 20, "high": 60, "unit": "years"}}, "ill": ["no", "yes"]}
    answers = {"record": record, "regress": {"target": "ill", "link": "logistic", "answer": "yes"}}
    ran = made(epsilon=1, budget=..., people=2000, questions=[{"id": "you", "text": "About you", "answers": answers}])
    width = half_width(Survey.load("made.json")["you"].protocol, 2000, 0.95)
    assert f"2,000  +-{100 * width:.1f} % of a query's range" in ran.out
    assert "reads the coefficients from them" in ran.out


def test_a_new_survey_says_how_exact_it_will_be(made):
    ran = made(epsilon="0.3", people=1500, questions=[ASKED, ASKED | {"id": "named", "protocol": "OUE"}])
    rows = {line.split()[0]: line for line in ran.out.partition("expected:\n")[2].splitlines()[1:3]}
    for id, row in rows.items():
        protocol = Survey.load("made.json")[id].protocol
        width, share = half_width(protocol, 1500, 0.95), protocol.worth(1500).visible(0.95)
        assert f"1,500  +-{100 * width:.1f} points" in row
        assert f"{100 * share:.1f} %" in row
    assert list(rows) == ["meat", "named"]
    assert "warning: the intervals of meat, named are wider than +-10 points: for these, ask about " in ran.err
    assert "fewer questions leave more for each" in ran.err


def test_exact_surveys_and_unknown_crowds_get_no_warning(made):
    assert made(people=20_000).err == ""
    ran = made(people=..., questions=[ASKED | {"protocol": "GRR"}])
    assert "expected" not in ran.out
    assert ran.err == ""


def test_so_many_people_as_the_warning_says_are_enough(made):
    said = made(epsilon="0.3", people=200).err
    needed = int(said.split("ask about ")[1].split()[0].replace(",", ""))
    assert needed > 200
    assert "warning" in made(epsilon="0.3", people=needed * 9 // 10).err
    assert made(epsilon="0.3", people=needed).err == ""


def test_several_rounds_are_judged_one_epoch_at_a_time(made):
    rounds = {"epochs": {"days": 6}, "longitudinal": {"epochs": 5}}
    ran = made(**rounds, epsilon=..., budget={"epsilon": "2"}, people="1500")
    assert "epsilon 0.4 per question: the budget of 2, divided equally over 5 rounds and 1 question\n" in ran.out
    assert "expected in each epoch:" in ran.out
    assert "people in each epoch, or raise epsilon (fewer rounds leave more for each). For answers" in ran.err
    assert 'the rule "memoize"' in ran.err
    memoized = {"rule": "memoize", "epochs": 5}
    ran = made(**rounds | {"longitudinal": memoized}, epsilon=..., budget={"epsilon": "2"}, people=10)
    assert "divided equally over 1 memoized answer and 1 question" in " ".join(ran.out.split())
    assert "warning" in ran.err
    assert "memoize" not in ran.err
    assert "divided" not in made(**rounds).out


@pytest.mark.parametrize(
    ("days", "length", "said"),
    [(35, 8, "5 epochs of 8 days, the last of 3 days\n"), (36, 7, "6 epochs of 7 days, the last of 1 day\n")],
)
def test_a_last_epoch_that_is_cut_is_said(made, run, days, length, said):
    ran = made(days=days, epochs={"days": length}, people=20_000)
    assert said in ran.out
    assert ran.err.startswith("note: the epochs do not divide the collection: the last of ")
    assert said in run("survey", "show", "made.json").out
    assert made(days=35, epochs={"days": 7}, people=20_000).err == ""


def test_of_epochs_that_the_draft_leaves_out_nothing_is_said(made):
    """Each device answers once, so figures are about all epochs together."""
    expires = {"opens": "2026-11-01T00:00:00Z", "expires": "2026-11-15T12:00:00Z", "days": ...}
    ran = made(**expires, people=20_000)
    assert "15 epochs of 1 day, the last of 12 hours" in ran.out
    assert "expected:" in ran.out
    assert ran.err == ""


def test_a_first_epoch_that_is_cut_is_said(run):
    Survey("late", [MEAT], replace(TERMS, opens=START + DAY // 2)).save("late.json")
    assert "30 epochs of 1 day, the first of 12 hours\n" in run("survey", "show", "late.json").out


def test_every_answer_is_listed_unless_the_line_gets_long(run):
    for size, end in ((8, "answer 7)"), (12, "answer 7 and 4 more)"), (45, "answer 7 and 37 more)")):
        labels = [f"answer {i}" for i in range(size)]
        Survey("many", [Question("one", "?", GRR(labels, 1))]).save("many.json")
        assert end in run("survey", "show", "many.json").out


def test_early_and_late_epochs_are_in_words(run):
    for early, late, said in ((1, 2, "1 epoch early and 2 epochs late"), (0, 1, "1 epoch late"), (0, 0, None)):
        Survey("x", [MEAT], replace(TERMS, epochs=Epochs(START, DAY, early, late))).save("x.json")
        out = run("survey", "show", "x.json").out
        assert f"accepted     answers up to {said}\n" in out if said else "accepted" not in out


def test_sizes_say_what_they_are_of(run):
    SURVEY.save("x.json")
    assert "randomized answers 1 byte, 25 sent in all\n" in run("survey", "show", "x.json").out
    Survey("plain", [MEAT]).save("x.json")
    assert "randomized answers 1 byte\n" in run("survey", "show", "x.json").out


def test_levels_are_decimals_for_people_and_exact_in_json(run):
    for name, epsilon in (("old", "0.8"), ("new", "1.3")):
        question = replace(MEAT, protocol=GRR(["yes", "no"], epsilon))
        Survey("x", [question], replace(TERMS, budget=Budget("acme", Fraction(4)))).save(f"{name}.json")
    ran = run("survey", "diff", "old.json", "new.json", "--weaker-privacy")
    assert "epsilon of a lifetime    2.4  3.9  weaker" in ran.out
    assert "/" not in ran.out
    changes = run("survey", "diff", "old.json", "new.json", "--weaker-privacy", "--json").json["changes"]
    assert ("4/5", "13/10") in [(change["before"], change["after"]) for change in changes]


def test_intervals_for_all_answers_at_once_say_so(run):
    tallies = SurveyTally.empty(SURVEY).spec()
    tallies["tallies"]["meat"] |= {"n": 60, "counts": [60, 0]}
    Path("tally.json").write_text(json.dumps(tallies))
    SURVEY.save("survey.json")
    asked = ("estimate", "survey.json", "tally.json")
    assert "95 % intervals, all answers at once" in run(*asked, "--simultaneous").out
    assert "at once" not in run(*asked).out
    for options in ([], ["--simultaneous"]):
        (found,) = run(*asked, "--json", *options).json["questions"]
        assert found["simultaneous"] is bool(options)
    assert "intervals of the unbiased estimate, cut to [0, 1])" in run(*asked, "--consistent", "norm-sub").out

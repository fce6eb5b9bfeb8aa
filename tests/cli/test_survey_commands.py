"""`deniable survey validate` and `diff`: exit codes say what is true."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from deniable.files import tally_files
from deniable.surveys import Epochs, Longitudinal, Survey, SurveyTally
from deniable.surveys.promises import promises
from tests.files.test_proposal import COLUMNS, ROWS, write
from tests.surveys.test_terms import DRAFT, SURVEY, TERMS
from tests.surveys.translated import translated


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SURVEY.save("survey.json")
    Survey(SURVEY.name, SURVEY.questions, replace(TERMS, retention="reports")).save("kept.json")
    Survey(SURVEY.name, SURVEY.questions, replace(TERMS, min_reports=500)).save("careful.json")
    far = replace(TERMS, opens=TERMS.opens + 10**9, expires=TERMS.opens + 10**9 + 10**6)
    Survey(SURVEY.name, SURVEY.questions, far).save("later.json")
    Path("draft.json").write_text(json.dumps(DRAFT))
    return tmp_path


def test_validate_says_valid_and_what_a_lifetime_gives_away(run):
    out = run("survey", "validate", "survey.json").out
    assert out.startswith("valid        canteen\n")
    assert SURVEY.fingerprint in out
    assert "1 (1 realized)" in out
    assert "epsilon 3 at most; a budget of 4 for the group acme" in out
    assert "protection   moderate" in out
    found = run("survey", "validate", "survey.json", "--json").json
    assert (found["valid"], found["lifetime_epsilon"]) == (True, "3")
    Survey(SURVEY.name, SURVEY.questions).save("plain.json")
    assert "epsilon 1 if answered once" in run("survey", "validate", "plain.json").out


def test_memoizing_several_answers_is_within_no_limit(run):
    rule = Longitudinal("memoize", epochs=3, values=2)
    Survey(SURVEY.name, SURVEY.questions, replace(TERMS, longitudinal=rule)).save("several.json")
    ran = run("survey", "validate", "several.json", "--epsilon", "1000", code=1)
    assert ran.err.startswith("over the limit: no epsilon bounds all reports together")
    assert run("survey", "validate", "several.json", "--json").json["lifetime_epsilon"] is None
    assert "no epsilon bounds all reports together" in run("survey", "show", "several.json").out
    assert "epsilon of a lifetime" in run("survey", "diff", "survey.json", "several.json", code=1).out


def test_validate_checks_a_limit(run):
    run("survey", "validate", "survey.json", "--epsilon", "3")
    ran = run("survey", "validate", "survey.json", "--epsilon", "2.999", code=1)
    assert ran.err == "over the limit: a lifetime may give away epsilon 3, more than 2.999\n"
    assert ran.out == ""
    for limit, within in (("1", False), ("3", True)):
        found = run("survey", "validate", "survey.json", "--epsilon", limit, "--json", code=0 if within else 1).json
        assert (found["valid"], found["within"]) == (True, within)
    assert run("survey", "validate", "survey.json", "--json").json["within"] is None


@pytest.mark.parametrize("command", ["validate", "diff"])
def test_help_says_the_exit_codes(run, command):
    assert "exit code is 0 if" in " ".join(run("survey", command, "--help").out.split())


def test_validate_refuses_what_is_no_survey(run):
    spec = json.loads(Path("survey.json").read_text())
    spec["longitudinal"]["epochs"] = 50
    Path("bad.json").write_text(json.dumps(spec))
    assert "more than its budget" in run("survey", "validate", "bad.json", code=2).err


def test_weaker_privacy_fails_unless_it_is_meant(run):
    ran = run("survey", "diff", "survey.json", "kept.json", code=1)
    assert "weaker" in ran.out
    assert ran.err == "privacy gets weaker: retention (if that is meant, say --weaker-privacy)\n"
    run("survey", "diff", "survey.json", "kept.json", "--weaker-privacy")
    run("survey", "diff", "kept.json", "survey.json")
    found = run("survey", "diff", "survey.json", "kept.json", "--json", code=1).json
    assert found["weaker"] is True
    assert [change["what"] for change in found["changes"]] == ["retention"]


def test_other_changes_do_not_fail(run):
    assert "stronger" in run("survey", "diff", "survey.json", "careful.json").out
    assert run("survey", "diff", "survey.json", "survey.json").out == f"the same survey: {SURVEY.fingerprint}\n"


def test_a_draft_with_terms_becomes_a_survey(run):
    run("survey", "new", "draft.json", "-o", "made.json")
    made = Survey.load("made.json")
    assert made.terms is not None
    out = run("survey", "show", "made.json").out
    assert "to plan" in out
    assert "30 epochs of 1 day" in out
    assert "accepted     answers up to 1 epoch early and 3 epochs late\n" in out
    assert "answered     once\n" in out
    assert "answered     once per epoch, 3 times at most\n" in run("survey", "show", "survey.json").out


def test_the_planner_gives_its_reasons(run):
    out = run("survey", "new", "draft.json", "-o", "made.json").out
    assert "the planner's choice:\n  meat: GRR has the least noise" in out
    rule = {"rule": "memoize", "epochs": 2}
    Path("again.json").write_text(json.dumps(DRAFT | {"epochs": {"days": 15}, "longitudinal": rule}))
    out = run("survey", "new", "again.json", "-o", "made.json").out
    assert "of those with few enough different reports to be memoized:\n  meat: Among the protocols with at most" in out
    named = DRAFT["questions"][0] | {"protocol": "GRR"}
    Path("named.json").write_text(json.dumps(DRAFT | {"questions": [named]}))
    assert "planner" not in run("survey", "new", "named.json", "-o", "made.json").out


def test_an_expired_survey_is_not_published(run):
    old = replace(TERMS, opens=TERMS.opens - 10**8, expires=TERMS.opens - 10**8 + 1, epochs=Epochs(0, 10**9))
    Survey(SURVEY.name, SURVEY.questions, old).save("old.json")
    ran = run("survey", "publish", "old.json", "--to", "http://127.0.0.1:9", code=2)
    assert "'old.json' expired at 2023-08-31T14:13:21Z, so nobody could answer it" in ran.err


def test_only_surveys_with_terms_are_published(run):
    Survey(SURVEY.name, SURVEY.questions).save("plain.json")
    ran = run("survey", "publish", "plain.json", "--to", "http://127.0.0.1:9", code=2)
    assert "for files only" in ran.err
    assert "-o FILE" in run("survey", "publish", "draft.json", "--to", "http://127.0.0.1:9", code=2).err


def test_a_service_that_is_not_there_is_one_line(run):
    """A survey that opens later gets as far as the service."""
    ran = run("survey", "publish", "later.json", "--to", "http://127.0.0.1:9", code=2)
    assert "cannot be reached" in ran.err
    ran = run("estimate", "survey.json", "--from", "http://127.0.0.1:9", code=2)
    assert "cannot be reached" in ran.err
    assert "https" in run("estimate", "survey.json", "--from", "http://example.org", code=2).err


def test_estimates_of_few_answers_are_not_shown_unless_asked_for(run):
    """The survey says that estimates are shown from 50 answers on."""
    tallies = SurveyTally.empty(SURVEY).spec()
    for n, shown in ((49, False), (50, True)):
        tallies["tallies"]["meat"] |= {"n": n, "counts": [n, 0]}
        Path("tally.json").write_text(json.dumps(tallies))
        ran = run("estimate", "survey.json", "tally.json", code=0 if shown else 2)
        assert ("shows estimates from 50 on" in ran.err) is not shown
        assert "yes" in run("estimate", "survey.json", "tally.json", "--few").out


def test_repeated_noise_is_warned_of(run):
    rule = Longitudinal("memoize", epochs=30)
    memoized = Survey(SURVEY.name, SURVEY.questions, replace(TERMS, longitudinal=rule))
    memoized.save("memoized.json")
    tallies = SurveyTally.empty(memoized).spec()
    tallies["tallies"]["meat"] |= {"n": 60, "counts": [30, 30]}
    Path("tally.json").write_text(json.dumps(tallies))
    assert "repeat their noise" in run("estimate", "memoized.json", "tally.json").err


def test_a_draft_is_proposed_and_leads_to_reports(run, tmp_path):
    write(Path("my people.csv"), COLUMNS)
    ran = run("survey", "draft", "my people.csv", "-o", "draft.json", "--epsilon", "1/2")
    assert "do-you-smoke  no, yes, no answer" in ran.out
    for sentence in (
        "left out: visit: it looks like a date",
        "one row gives away epsilon 4 in all",
        "answers of fewer than 10 people count as other in town",
        "taken from true data, and everybody can read a survey",
    ):
        assert sentence in ran.err
    following = [shlex.split(line) for line in ran.out.splitlines() if line.startswith("  deniable ")]
    assert [words[:3] for words in following] == [
        ["deniable", "survey", "new"],
        ["deniable", "privatize", "survey.json"],
    ]
    for words in following:
        run(*words[1:])
    assert tally_files(Survey.load("survey.json"), "reports.parquet")["age"].n == ROWS
    assert json.loads(run("survey", "draft", "my people.csv").out)["name"] == "my people"
    write(Path("dates.csv"), {"visit": COLUMNS["visit"]})
    ran = run("survey", "draft", "dates.csv", code=2)
    assert "left out: visit" in ran.err
    assert "no column of 'dates.csv' can be a question" in ran.err


def test_a_survey_is_shown_in_each_of_its_languages(run, tmp_path):
    survey = translated()
    survey.save(tmp_path / "survey.json")
    path = tmp_path / "survey.json"
    assert "en, de, ar" in run("survey", "show", path).out
    out = run("survey", "show", path, "--language", "de").out
    assert "Rauchen Sie?" in out
    assert "ja, nein" in out
    assert promises(survey, language="de")["band"] in " ".join(out.split())
    assert "\\u20" not in run("survey", "show", path, "--language", "ar").out, "marks for pages are left out"
    assert json.loads(run("survey", "show", path, "--json").out)["translations"] == survey.translations
    assert "no texts in 'fr'; it has en, de, ar" in run("survey", "show", path, "--language", "fr", code=2).err

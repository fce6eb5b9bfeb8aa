"""`deniable survey validate` and `diff`: exit codes say what is true."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from deniable.surveys import Longitudinal, Survey, SurveyTally
from tests.surveys.test_terms import DRAFT, SURVEY, TERMS


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SURVEY.save("survey.json")
    Survey(SURVEY.name, SURVEY.questions, replace(TERMS, retention="reports")).save("kept.json")
    Survey(SURVEY.name, SURVEY.questions, replace(TERMS, show_from=500)).save("careful.json")
    Path("draft.json").write_text(json.dumps(DRAFT))
    return tmp_path


def test_validate_shows_what_a_lifetime_gives_away(run):
    out = run("survey", "validate", "survey.json").out
    assert "epsilon 3 at most, of a budget of 4 for the group acme" in out
    assert run("survey", "validate", "survey.json", "--json").json["lifetime_epsilon"] == "3"


def test_validate_checks_a_limit(run):
    run("survey", "validate", "survey.json", "--epsilon", "3")
    ran = run("survey", "validate", "survey.json", "--epsilon", "2.999", code=1)
    assert "a lifetime may give away epsilon 3, more than 2999/1000" in ran.err


def test_validate_refuses_what_is_no_survey(run):
    spec = json.loads(Path("survey.json").read_text())
    spec["longitudinal"]["epochs"] = 50
    Path("bad.json").write_text(json.dumps(spec))
    assert "more than its budget" in run("survey", "validate", "bad.json", code=2).err


def test_weaker_privacy_fails_unless_it_is_meant(run):
    ran = run("survey", "diff", "survey.json", "kept.json", code=1)
    assert "weaker" in ran.out
    assert "--weaker-privacy" in ran.err
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
    assert "to plan" in run("survey", "show", "made.json").out


def test_only_surveys_with_terms_are_published(run):
    Survey(SURVEY.name, SURVEY.questions).save("plain.json")
    ran = run("survey", "publish", "plain.json", "--to", "http://127.0.0.1:9", code=2)
    assert "for files only" in ran.err
    assert "-o FILE" in run("survey", "publish", "draft.json", "--to", "http://127.0.0.1:9", code=2).err


def test_a_service_that_is_not_there_is_one_line(run):
    ran = run("survey", "publish", "survey.json", "--to", "http://127.0.0.1:9", code=2)
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

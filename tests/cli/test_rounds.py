"""Campaigns on the command line: the first round from a draft, the next from a tally, all of them read together."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from deniable.cli import app
from deniable.randomness import Simulation
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.campaign import combine, round_of
from tests.documents import rows_of

DRAFT = {
    "name": "work",
    "owner": "Example Institute",
    "purpose": "To test rounds.",
    "days": 7,
    "epsilon": 3,
    "people": 600,
    "campaign": {"kind": "narrowing", "cells": 8},
    "questions": [
        {
            "id": "hours",
            "text": "How many hours a week do you work?",
            "answers": {"number": {"low": 0, "high": 80, "unit": "hours"}},
        }
    ],
}


def ran(*arguments, code=0):
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Both rounds of a campaign with the tallies of simulated people, and files that do not belong to it."""
    made = tmp_path_factory.mktemp("rounds")
    (made / "draft.json").write_text(json.dumps(DRAFT))
    said = ran("survey", "new", made / "draft.json", "-o", made / "round-1.json").output
    assert "1 of 2, narrowing (cells 8, margin 1); a device answers one round" in said
    counted(made, 1, 600)
    said = ran(
        "survey", "next", made / "round-1.json", made / "tally-1.json", "--days", "14", "-o", made / "round-2.json"
    )
    assert "2 of 2, narrowing (cells 8, margin 1)" in said.output
    counted(made, 2, 900)
    second = Survey.load(made / "round-2.json")
    (made / "protocol.json").write_text(json.dumps(second["hours"].protocol.spec()))
    Survey("plain", second.questions).save(made / "plain.json")
    return made


def counted(folder, number, n):
    survey = Survey.load(folder / f"round-{number}.json")
    people = np.random.default_rng(number).normal(38, 3, n)
    survey.tally(survey.privatize({"hours": people}, bits=Simulation(number))).save(folder / f"tally-{number}.json")


def test_the_next_round_is_made_from_a_tally(folder):
    first, second = (Survey.load(folder / f"round-{number}.json") for number in (1, 2))
    assert round_of(second).before == first.fingerprint
    assert second.terms.expires - second.terms.opens == 14 * 86_400
    assert second["hours"].protocol.domain.high - second["hours"].protocol.domain.low < 80
    shown = ran("survey", "show", folder / "round-2.json").output
    assert f"the tally {round_of(second).tally}" in shown
    again = ran("survey", "next", folder / "round-1.json", folder / "tally-1.json", "--opens", "2026-11-01T00:00:00Z")
    assert Survey.from_spec(json.loads(again.stdout)).questions == second.questions


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("round-2.json", "tally-1.json"), "round 2 of 2 is the last: no round comes after it"),
        (("round-1.json", "tally-2.json"), "this is a tally of survey"),
        (("round-1.json",), "give its file, or a service --from"),
        (("round-1.json", "round-1.json"), 'they need "kind": "survey-tally"'),
        (("round-1.json", "tally-1.json", "--days", "0"), "open for one day at least"),
        (("round-1.json", "tally-1.json", "--opens", "tomorrow"), "a time is written"),
        (("draft.json", "tally-1.json"), "this is a draft"),
        (("protocol.json", "tally-1.json"), "is the spec of a protocol, not a survey"),
        (("plain.json", "tally-1.json"), "belongs to no campaign"),
        (("round-1.json", "tally-1.json", "--from", "http://127.0.0.1:1"), "give its file, or a service --from"),
        (("round-1.json", "tally-1.json", "--publish"), "--publish goes with --from URL and -o FILE"),
    ],
)
def test_what_is_no_next_round_is_refused_in_a_sentence(folder, arguments, said):
    given = [folder / one if one.endswith(".json") else one for one in arguments]
    done = ran("survey", "next", *given, code=2)
    assert said in done.stderr
    assert done.stdout == ""


def test_a_file_that_holds_the_next_round_is_kept_if_it_follows_from_the_tally(folder, tmp_path):
    first, kept = folder / "round-1.json", tmp_path / "round-2.json"
    kept.write_bytes((folder / "round-2.json").read_bytes())
    ran("survey", "next", first, folder / "tally-1.json", "-o", kept)
    assert Survey.load(kept) == Survey.load(folder / "round-2.json")
    survey = Survey.load(first)
    survey.tally(survey.privatize({"hours": [38.0] * 600}, bits=Simulation(9))).save(tmp_path / "other.json")
    done = ran("survey", "next", first, tmp_path / "other.json", "-o", kept, code=2)
    assert "it was changed, or it is of another moment" in done.stderr.replace("\n", " ")
    done = ran("survey", "next", first, folder / "tally-1.json", "-o", folder / "plain.json", code=2)
    assert "holds another survey" in done.stderr
    done = ran("survey", "next", first, folder / "draft.json", code=2)
    assert "draft.json" in done.stderr, "the file that is no tally is named"
    ran("survey", "next", first, folder / "tally-1.json", "--days", "3", "-o", kept)
    assert Survey.load(kept).terms.expires - Survey.load(kept).terms.opens == 3 * 86_400


def test_rounds_are_verified_from_their_files(folder, tmp_path):
    done = ran("survey", "verify-rounds", *(folder / name for name in ("round-2.json", "tally-1.json", "round-1.json")))
    assert "verified: each round follows from the tally of the one before" in done.stdout
    changed = json.loads((folder / "tally-1.json").read_text())
    counts = changed["tallies"]["hours"]["counts"]
    counts[0], counts[1] = counts[0] + 1, counts[1] - 1
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    done = ran(
        "survey", "verify-rounds", folder / "round-1.json", tmp_path / "changed.json", folder / "round-2.json", code=2
    )
    assert "it was changed, or it is of another moment" in done.stderr
    done = ran("survey", "verify-rounds", folder / "round-1.json", folder / "round-2.json", code=2)
    assert "the tally of round 1 is missing" in done.stderr
    done = ran("survey", "verify-rounds", folder / "round-2.json", folder / "tally-1.json", code=2)
    assert "there is a tally of survey" in done.stderr


def test_all_rounds_are_estimated_together(folder):
    files = [folder / name for name in ("round-2.json", "tally-2.json", "round-1.json", "tally-1.json")]
    content = json.loads(ran("estimate", "--combined", *files, "--json").stdout)
    rounds = [Survey.load(folder / f"round-{number}.json") for number in (1, 2)]
    tallies = [SurveyTally.load(folder / f"tally-{number}.json") for number in (1, 2)]
    expected = combine(rounds, tallies)["hours"]
    (hours,) = content["questions"]
    assert rows_of(hours)[0]["value"] == pytest.approx(expected.value)
    assert (hours["n"], hours["method"]) == (1500, "narrowed")
    done = ran("estimate", "--combined", *files)
    assert "of two rounds: 600 reports on the whole interval, then 900 on" in done.stderr.replace("\n", " ")
    assert "mean, hours" in done.stdout
    early = ran("estimate", "--combined", files[0], files[2], files[3])
    assert "reports   600" in early.stdout, "a round that has no tally yet"
    assert "there is no tally of round 2 yet: it is left out" in early.stderr
    assert re.search(r"moves the mean by \S+ hours, with a standard error of \S+ hours", done.stderr.replace("\n", " "))
    assert "--epochs is for one round" in ran("estimate", "--combined", *files, "--epochs", "1", code=2).stderr

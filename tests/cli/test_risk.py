"""`deniable risk`: words, table, JSON, picture and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import deniable as dn
from deniable.privacy import attack, averaging


@pytest.fixture
def survey(write):
    draft = {
        "name": "habits",
        "questions": [
            {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"], "epsilon": 1, "protocol": "GRR"},
            {"id": "sleep", "text": "How long?", "answers": ["short", "fair", "long"], "epsilon": 2, "protocol": "OUE"},
        ],
    }
    return write(dn.Survey.from_draft(draft).to_json(), "survey.json")


def test_words_and_a_table_for_every_question(run, survey):
    told = " ".join(run("risk", survey).out.split())
    assert "Who thought an answer as likely as not becomes 73.2 % sure of it at most by one report" in told
    assert "gave it one chance in ten 23.2 %" in told
    assert "right in 95.2 % after 12 fresh reports of one person" in told
    assert "1 * GRR" in told
    assert "2 * OUE" in told
    assert "gives away epsilon 3 each time" in told


def test_json_and_picture_of_one_question(run, survey, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "risk.png"
    found = run("risk", survey, "--question", "sleep", "--reports", "3", "--plot", picture, "--json").json
    assert picture.read_bytes().startswith(b"\x89PNG")
    (rows,) = found["questions"].values()
    assert [row["epsilon"] for row in rows] == [0.1, 0.25, 0.5, 1, 2, 4, 8]
    (own,) = (row for row in rows if row["own"])
    protocol = dn.OUE(["short", "fair", "long"], 2)
    assert own["protocol"] == "OUE"
    assert own["guess"] == pytest.approx(attack(protocol).success)
    assert own["year"] == pytest.approx(averaging(protocol, 3).success)
    assert own["leverage"] == pytest.approx(protocol.worth().leverage)
    for name in ("sure_from_half", "sure_from_tenth"):
        assert [row[name] for row in rows] == sorted(row[name] for row in rows)


def test_a_year_is_that_of_the_survey(run, write):
    """Memoized reports tell no more in a year than once; fresh ones as many as there are epochs of a year."""
    question = {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"], "epsilon": 1, "protocol": "GRR"}
    draft = {
        "name": "habits",
        "owner": "Institute",
        "purpose": "a study",
        "epochs": {"days": 7},
        "days": 60,
        "questions": [question],
    }
    for rule, says, reports in (("memoize", "73.1 % after 5 reports", 1), ("none", "after 5 fresh reports", 5)):
        made = dn.Survey.from_draft(draft | {"longitudinal": {"rule": rule, "epochs": 5}})
        file = write(made.to_json(), "survey.json")
        told = " ".join(run("risk", file).out.split())
        assert says in told
        assert ("because they repeat one" in told) == (rule == "memoize")
        (own,) = (row for row in run("risk", file, "--json").json["questions"]["smoke"] if row["own"])
        assert own["year"] == pytest.approx(averaging(dn.GRR(2, 1), reports).success)


def test_somebody_who_knows_the_estimate_of_the_survey(run, survey, write):
    read = dn.Survey.from_spec(json.loads(Path(survey).read_text()))
    bits = dn.Simulation(3)
    reports = {
        "smoke": read["smoke"].protocol.privatize(["yes"] * 900 + ["no"] * 2100, bits),
        "sleep": read["sleep"].protocol.privatize(["short"] * 2400 + ["long"] * 600, bits),
    }
    tallies = {name: read[name].protocol.tally(own, read.source(name)) for name, own in reports.items()}
    file = write(dn.SurveyTally(read.fingerprint, tallies).to_json(), "tally.json")
    told = " ".join(run("risk", survey, "--tally", file).out.split())
    smoke = read["smoke"].protocol.estimate(tallies["smoke"]).consistent().frequencies
    assert f"gave no {100 * smoke[1]:.1f} % before" in told
    assert "gave short" in told
    found = run("risk", survey, "--tally", file, "--json").json["questions"]
    (own,) = (row for row in found["smoke"] if row["own"])
    assert own["knowing"] == pytest.approx(attack(dn.GRR(2, 1), smoke).success)
    assert own["sure_from_share"] == pytest.approx(float(dn.privacy.surest(dn.GRR(2, 1).ratio, smoke[1])))
    assert "choose one" in run("risk", survey, "--tally", file, "--shares", "1,0", code=2).err


def test_somebody_who_knows_the_shares(run, survey):
    told = " ".join(run("risk", survey, "--question", "smoke", "--shares", "0.1,0.9").out.split())
    assert "guesses right in 90.0 % of all cases without a report, and in 90.0 % with one." in told
    assert "knowing shares" in told
    rows = run("risk", survey, "--question", "smoke", "--shares", "0.1,0.9", "--json").json["questions"]["smoke"]
    assert [row["knowing"] for row in rows][-1] == pytest.approx(attack(dn.GRR(2, 8)).success, abs=1e-9)
    assert "choose it with --question" in run("risk", survey, "--shares", "1,0", code=2).err
    for wrong in ("1", "x,y", "0.5,0.6"):
        run("risk", survey, "--question", "smoke", "--shares", wrong, code=2)


def test_groups_that_are_told_as_they_are_and_kinds_that_the_planner_does_not_build(run, write):
    grouped = dn.Stratified({"country": ["A", "B"]}, dn.GRR(["yes", "no"], 1), "smoke")
    told = run("risk", write(json.dumps(grouped.spec()), "grouped.json")).out
    assert "country is told as it is" in " ".join(told.split())
    assert "0.25     Stratified" in told


def test_a_number_and_refusals(run, survey, write):
    number = write(json.dumps(dn.plan(dn.Interval(0, 24), epsilon=1, n=1000).best.spec()), "number.json")
    assert "<= " in run("risk", number, "--people", "1000").out
    assert "goes with a survey" in run("risk", number, "--question", "x", code=2).err
    assert "weight" in run("risk", survey, "--question", "weight", code=2).err
    assert "Examples:" in run("risk", "--help").out

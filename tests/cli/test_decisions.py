"""deniable test: from a proof to a verdict, from counts and laws, in every form, every refusal as one line."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from deniable.design import Certificate
from deniable.domains import Interval
from deniable.protocols import GRR, Attributes, Table, Window
from deniable.randomness import Simulation
from deniable.surveys import Question, Survey, SurveyTally
from tests.documents import rows_of

P0, P1 = "well=0.5,so=0.3,badly=0.2", "well=0.2,so=0.3,badly=0.5"


@pytest.fixture
def folder(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("design", "extremal", "--p0", P0, "--p1", P1, "--epsilon", "1", "--save", "proof.json")
    questions = [
        {"id": "effect", "text": "How do you feel?"},
        {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"], "epsilon": "1", "protocol": "GRR"},
    ]
    Path("draft.json").write_text(json.dumps({"name": "drug", "questions": questions}))
    return tmp_path


def collect(run, answers: dict[str, int]) -> None:
    rows = [f"{answer},no" for answer, times in answers.items() for _ in range(times)]
    Path("answers.csv").write_text("effect,smoke\n" + "\n".join(rows) + "\n")
    run("privatize", "survey.json", "answers.csv", "-o", "reports.parquet", "--seed", "8")


def test_from_a_proof_to_a_verdict(run, folder):
    """Both laws are found from 1,000 people each: one seed in about 10^9 would miss one."""
    made = run("survey", "new", "draft.json", "--table", "proof.json", "-o", "survey.json").out
    assert "effect: about 109 people decide between H0 and H1, at level 0.05 nine times in ten" in made
    crowded = json.loads(Path("draft.json").read_text()) | {"people": 400}
    Path("crowded.json").write_text(json.dumps(crowded))
    expected = run("survey", "new", "crowded.json", "--table", "proof.json", "-o", "crowd.json").out
    assert re.search(r"^effect +400 +not determined +-$", expected, re.M), "well and so give the same reports"
    assert re.search(r"^smoke +400 +\+-[0-9.]+ points +[0-9.]+ %$", expected, re.M)
    for name, answers in {"H0": (500, 300, 200), "H1": (200, 300, 500)}.items():
        collect(run, dict(zip(("well", "so", "badly"), answers, strict=True)))
        (found,) = run("test", "survey.json", "reports.parquet", "--json").json["questions"]
        assert (found["id"], found["kind"], found["n"]) == ("effect", "decision", 1000)
        assert found["decision"]["favoured"] == name
        assert f"the reports favour {name}: " in run("test", "survey.json", "reports.parquet").out
        run("tally", "survey.json", "reports.parquet", "-o", "tally.json")
        rows = list(csv.DictReader(io.StringIO(run("test", "survey.json", "tally.json", "--csv").out)))
        assert [row["label"] for row in rows if float(row["value"]) > 0.05] == [name]
        (estimate, _) = run("estimate", "survey.json", "tally.json", "--json").json["questions"]
        assert estimate["decision"]["verdict"] == found["decision"]["verdict"]
        assert f"the reports favour {name}: " in run("estimate", "survey.json", "tally.json").out
    strict = run("test", "survey.json", "tally.json", "--level", "1e-40", "--json").json["questions"][0]
    assert strict["decision"]["outcome"] == "undecided"
    assert f"about {strict['decision']['more']:,} more people" in strict["decision"]["verdict"]


def test_a_designed_table_in_a_record_is_decided_from_its_own_reports(run, folder):
    """At epsilon 4 some 500 people decide: one seed in more than 10^9 would not."""
    run("design", "extremal", "--p0", P0, "--p1", P1, "--epsilon", "4", "--save", "strong.json")
    table = Table(Certificate.load("strong.json"))
    record = Attributes.of({"smoke": GRR(["yes", "no"], 4), "effect": table})
    survey = Survey("drug", [Question("habits", "How are you?", record)])
    survey.save("survey.json")
    answers = ["badly"] * 500 + ["so"] * 300 + ["well"] * 200
    rows = [{"smoke": "no", "effect": answer} for answer in answers]
    tally = SurveyTally(
        survey.fingerprint, {"habits": record.tally(record.privatize(rows, Simulation(3)), survey.source("habits"))}
    )
    Path("tally.json").write_text(json.dumps(tally.spec()))
    (found,) = run("test", "survey.json", "tally.json", "--json").json["questions"]
    assert (found["id"], found["part"], found["decision"]["favoured"]) == ("habits", "effect", "H1")
    assert 400 < found["n"] < 600, "the reports of this part alone"
    assert "habits.effect: How are you?" in run("test", "survey.json", "tally.json", "--question", "habits.effect").out
    parts = run("estimate", "survey.json", "tally.json", "--json").json["questions"]
    assert [one["decision"] and one["decision"]["verdict"] for one in parts] == [None, found["decision"]["verdict"]]
    refused = run("test", "survey.json", "tally.json", "--question", "habits", code=2).err
    assert "there are habits.smoke, habits.effect" in refused


def test_from_counts_and_laws(run, folder):
    by_proof = run("test", "proof.json", "--counts", "510,490", "--json").json
    assert by_proof["decision"]["favoured"] == "H0"
    Path("laws.csv").write_text("answer,before,after\nbadly,0.2,0.5\nso,0.3,0.3\nwell,0.5,0.2\n")
    named = run("test", "proof.json", "--counts", "510,490", "--laws", "laws.csv", "--json").json
    assert named["decision"]["favoured"] == "before"
    assert [row["value"] for row in rows_of(named)] == [row["value"] for row in rows_of(by_proof)]
    Path("laws.json").write_text('{"laws": {"a": [0.5, 0.5], "b": ["4/5", "1/5"], "c": [0, 1]}}')
    Path("counts.csv").write_text("yes,440\nno,460\n")
    out = run("test", "coin", "--counts", "counts.csv", "--laws", "laws.json").out
    assert "the reports favour a: every other hypothesis has a p-value of less than 1e-15" in out
    out = run("test", "coin", "--counts", "yes=30,no=20", "--law", "yes=0.5,no=0.5", "--law", "no=0.2,yes=0.8").out
    assert "undecided: H0 and H1 are both possible" in out


REFUSED = [
    ("test coin --counts 5,5", "no hypotheses"),
    ("test coin --counts 5,5 --law 0.5,0.5", "at least two laws"),
    ("test coin --counts 5,5,5 --law 0.5,0.5 --law 0.1,0.9", "3 numbers are given as counts"),
    ("test coin --counts 5.5,5 --law 0.5,0.5 --law 0.1,0.9", "not a whole number"),
    ("test coin --counts 5,5 --law 0.5,0.6 --law 0.1,0.9", "sums to 1.1"),
    ("test coin --counts 5,5 --law 0.5,0.5 --law 0.1,0.9 --level 2", "strictly between 0 and 1"),
    ("test coin --counts 5,5 --law 0.5,0.5 --laws laws.csv", "not both"),
    ("test coin reports.parquet --counts 5,5 --law 0.5,0.5 --law 0.1,0.9", "--counts goes with a channel"),
    ("test survey.json --counts 5,5", "is a survey, and --counts goes with a channel"),
    ("test survey.json", "nothing to estimate from"),
    ("survey new draft.json --table weight=proof.json", "no question 'weight' in the draft; there are effect, smoke"),
    ("test plain.json plain.parquet", "no question here was designed for hypotheses"),
    ("test survey.json reports.parquet --question smoke", "was not designed for hypotheses"),
    ("test survey.json reports.parquet --question weight", "no question 'weight'"),
    ("test survey.json reports.parquet --json --csv", "exclude each other"),
    ("test survey.json reports.parquet --law 0.5,0.5 --law 0.1,0.9", "but there are 3 answers"),
    ("test broken.json --counts 5,5", "incomplete or malformed"),
    ("survey new proof.json", "is a proof, not a draft"),
    ("survey new draft.json --table smoke=proof.json", "has answers in the draft already"),
    ("survey new draft.json --table effect=missing.json", "No such file"),
    ("survey new survey.json --table proof.json", "which question"),
]


def test_refusals_are_one_line(run, folder):
    run("survey", "new", "draft.json", "--table", "effect=proof.json", "-o", "survey.json")
    collect(run, {"well": 30})
    question = {"id": "s", "text": "?", "answers": ["a", "b"], "epsilon": 1, "protocol": "GRR"}
    Path("plain-draft.json").write_text(json.dumps({"name": "p", "questions": [question]}))
    run("survey", "new", "plain-draft.json", "-o", "plain.json")
    run("privatize", "plain.json", "-", "-o", "plain.parquet", stdin="s\na\nb\n")
    Path("broken.json").write_text('{"format": "deniable-certificate", "version": 1, "kind": "extremal"}')
    for line, words in REFUSED:
        refused = run(*line.split(), code=2)
        assert re.search(words, refused.err), (line, refused.err)


def test_shares_a_mean_and_groups_are_tested(run, tmp_path, monkeypatch):
    """Clear differences of 3,000 people; what is true is rejected at 1e-9 with that probability."""
    monkeypatch.chdir(tmp_path)
    smoke = Question("smoke", "Do you smoke?", GRR(["yes", "no"], 2))
    sleep = Question("sleep", "How long do you sleep?", Window(Interval(0, 24, unit="hours"), 2))
    Survey("habits", [smoke, sleep]).save("survey.json")
    for name, yes, hours in (("here", 600, 8), ("there", 2000, 7)):
        rows = [f"{'yes' if i < yes else 'no'},{hours}" for i in range(3000)]
        Path(f"{name}.csv").write_text("smoke,sleep\n" + "\n".join(rows) + "\n")
        run("privatize", "survey.json", f"{name}.csv", "-o", f"{name}.parquet", "--seed", "3")
    test = ("test", "survey.json", "here.parquet")
    assert "Differs from what was given (p < 0.0001, n = 3,000)." in run(*test, "--shares", "yes=0.5,no=0.5").out
    fits = run(*test, "--shares", "yes=0.2,no=0.8", "--json", "--level", "1e-9").json["questions"][0]["test"]
    assert fits["p_value"] > 1e-9
    assert fits["freedom"] == 1
    assert "Differs from what was given" in run(*test, "--mean", "12").out
    both = run(*test, "--against", "there.parquet", "--json").json["questions"]
    assert [one["test"]["n"] for one in both] == [[3000, 3000], [3000, 3000]]
    assert both[0]["test"]["p_value"] < 1e-9
    rows = list(csv.DictReader(io.StringIO(run(*test, "--against", "there.parquet", "--csv").out)))
    assert [row["question"] for row in rows] == ["smoke", "sleep"]
    assert "add up to one" in run(*test, "--shares", "yes=0.5,no=0.6", code=2).err
    assert "one hypothesis" in run(*test, "--shares", "yes=1,no=0", "--mean", "3", code=2).err
    assert "not about shares" in run(*test, "--shares", "yes=1,no=0", "--question", "sleep", code=2).err

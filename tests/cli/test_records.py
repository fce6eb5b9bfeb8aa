"""A question about a record, from the draft to the estimate, on the command line."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable.surveys.results import outweighs
from tests.documents import rows_of

ROOT = Path(__file__).parents[2]
PARTS = {
    "smoke": ["yes", "no"],
    "town": {"low": 0, "high": 4},
    "sleep": {"number": {"low": 0, "high": 24, "unit": "hours"}},
}
DRAFT = {
    "name": "habits",
    "epsilon": "3",
    "people": 3000,
    "questions": [
        {"id": "habits", "text": "Your habits", "answers": {"record": PARTS, "per_device": 1}},
        {"id": "nap", "text": "Do you nap?", "answers": ["yes", "no"]},
    ],
}
TRUTH = {"habits.smoke": 1 / 3, "habits.town": 0.2, "habits.sleep": 7.0}


def rows(n: int = 3000) -> list[dict[str, Any]]:
    hours = np.random.default_rng(5).normal(7, 1, n).round(2)
    return [{"smoke": "no" if i % 3 else "yes", "town": i % 5, "sleep": float(hours[i])} for i in range(n)]


@pytest.fixture
def folder(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    Path("draft.json").write_text(json.dumps(DRAFT), encoding="utf-8")
    Path("parts.json").write_text(json.dumps(PARTS), encoding="utf-8")
    made = run("survey", "new", "draft.json", "-o", "survey.json").out
    lines = [f"{row['smoke']},{row['town']},{row['sleep']},yes" for row in rows()]
    Path("answers.csv").write_text("\n".join(["smoke,town,sleep,nap", *lines]) + "\n", encoding="utf-8")
    return made


def check(found: dict[str, Any]) -> None:
    named = {f"{one['id']}.{one['part']}": one for one in found["questions"] if one["part"]}
    assert list(named) == list(TRUTH)
    assert [one["kind"] for one in named.values()] == ["shares", "shares", "mean"]
    assert sum(one["n"] for one in named.values()) == 3000
    for name, one in named.items():
        row = rows_of(one)[0]
        assert abs(row["value"] - TRUTH[name]) < 5 * row["stderr"]
    assert rows_of(named["habits.sleep"])[0]["unit"] == "hours"


def test_a_record_from_draft_to_estimate(run, folder):
    assert "Each person reports 1 of 3 columns" in folder
    assert all(name in folder.split("expected")[1] for name in TRUTH)
    run("privatize", "survey.json", "answers.csv", "-o", "reports.parquet")
    run("tally", "survey.json", "reports.parquet", "-o", "tally.json")
    check(run("estimate", "survey.json", "tally.json", "--json").json)
    text = run("estimate", "survey.json", "tally.json", "--consistent", "norm-sub", "--simultaneous").out
    assert "habits.smoke: Your habits" in text
    assert "mean, hours" in text
    lines = run("estimate", "survey.json", "tally.json", "--csv").out.splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == [
        *["habits.smoke"] * 2, *["habits.town"] * 5, "habits.sleep", *["nap"] * 2
    ]  # fmt: skip
    run("estimate", "survey.json", "tally.json", "--plot", "all.png", "--parquet", "all.parquet")
    assert Path("all.png").read_bytes().startswith(b"\x89PNG")
    assert run("estimate", "survey.json", "tally.json", "--question", "habits", "--json").json["questions"][-1]["part"]
    parts = ["--question", "habits.smoke", "--question", "habits.sleep"]
    some = run("estimate", "survey.json", "tally.json", *parts, "--json").json["questions"]
    assert [one["part"] for one in some] == ["smoke", "sleep"]
    refused = run("estimate", "survey.json", "tally.json", "--question", "habits.teeth", code=2).err
    assert "no question 'habits.teeth'; there are habits, habits.smoke, habits.town, habits.sleep, nap" in refused
    Path("gap.csv").write_text("smoke,town,sleep,nap\nyes,1,,no\n", encoding="utf-8")
    gap = run("privatize", "survey.json", "gap.csv", "-o", "gap.parquet", code=2).err
    assert "column 'sleep' is missing" in gap
    assert "leave such rows out" in gap, "a number has no label for missing answers"


def test_a_record_comes_in_one_column_or_in_several(run, folder):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    nap = ["yes"] * 3000
    parts = pa.Table.from_pylist(rows())
    parquet.write_table(parts.append_column("nap", pa.array(nap)), "parts.parquet")
    parquet.write_table(pa.table({"habits": parts.to_struct_array(), "nap": nap}), "structures.parquet")
    cells = [json.dumps(row).replace('"', '""') for row in rows()]
    Path("cells.csv").write_text("habits,nap\n" + "".join(f'"{cell}",yes\n' for cell in cells), encoding="utf-8")
    renamed = "Smoke?,town,sleep,nap\n" + "".join(f"{r['smoke']},{r['town']},{r['sleep']},no\n" for r in rows())
    Path("renamed.csv").write_text(renamed, encoding="utf-8")
    more = {"renamed.csv": ["--column", "habits.smoke=Smoke?", "--column", "nap=nap"]}
    Path("whole.jsonl").write_text("".join(json.dumps({"habits": r, "nap": "no"}) + "\n" for r in rows()))
    Path("flat.jsonl").write_text("\n".join(json.dumps({**r, "nap": "no", "more": [1]}) for r in rows()))
    for name in ("parts.parquet", "structures.parquet", "cells.csv", "renamed.csv", "whole.jsonl", "flat.jsonl"):
        run("privatize", "survey.json", name, "-o", "reports.parquet", *more.get(name, []))
        check(run("estimate", "survey.json", "reports.parquet", "--json").json)
    refused = run("privatize", "survey.json", "cells.csv", "--column", "habits.teeth=x", "-o", "no.parquet", code=2)
    assert "no part" in refused.err


BAD_LINES = [
    ('{"smoke": "no", "town": "S3CRET", "sleep": 7, "nap": "no"}', "row 3 of 'wrong.jsonl', column 'town'"),
    ('{"smoke": "no", "sleep": 7, "nap": "no"}', "row 3 of 'wrong.jsonl', column 'town' is missing"),
    ('["S3CRET"]', "row 3 of 'wrong.jsonl' is no JSON object"),
    ("S3CRET", "row 3 of 'wrong.jsonl' is no JSON object"),
    ('{"smoke": NaN}', "row 3 of 'wrong.jsonl' is no JSON object"),
]


def test_a_bad_line_of_json_is_named_by_its_row(run, folder):
    good = json.dumps({**rows(1)[0], "nap": "yes"})
    for line, words in BAD_LINES:
        Path("wrong.jsonl").write_text(f"{good}\n\n{good}\n{line}\n", encoding="utf-8")
        refused = run("privatize", "survey.json", "wrong.jsonl", "-o", "reports.parquet", code=2).err
        assert words in refused
        assert "S3CRET" not in refused
        assert not Path("reports.parquet").exists()


def test_what_is_no_answer_is_named_by_row_and_part(run, folder):
    bad = [("no,S3CRET,7,yes", "row 2 of 'wrong.csv', column 'town'"), ("no,,7,yes", "column 'town' is missing")]
    for line, words in bad:
        Path("wrong.csv").write_text(f"smoke,town,sleep,nap\nyes,1,7,no\n{line}\n", encoding="utf-8")
        refused = run("privatize", "survey.json", "wrong.csv", "-o", "reports.parquet", code=2).err
        assert words in refused
        assert "S3CRET" not in refused
    Path("few.csv").write_text("smoke,town,nap\nyes,1,no\n", encoding="utf-8")
    assert "no column 'sleep'" in run("privatize", "survey.json", "few.csv", "-o", "reports.parquet", code=2).err


def test_the_planner_compares_sampling_with_splitting(run, folder):
    made = run("plan", "--record", "parts.json", "--epsilon", "1", "--people", "20000", "--json").json
    assert made["best"]["protocol"] == "Attributes"
    words = made["reason"]
    sampled, split = (float(words.split(before)[1].split()[0].strip(".")) for before in ("reaches ", "it would be "))
    assert sampled == pytest.approx(made["within"], rel=0.01)
    assert split > 1.5 * sampled
    solved = run("plan", "--record", "parts.json", "--epsilon", "1", "--within", "0.05", "--json").json
    assert solved["solved"] == "n"
    run("plan", "--record", "parts.json", "--epsilon", "1", "--people", "20000", "--plot", "plan.png")
    for wrong in (
        '["yes", "no"]',
        '{"a": "text"}',
        '{"a": {"record": {"b": 2}}}',
        "{}",
        '{"record": {}, "per_device": 2}',
    ):
        Path("wrong.json").write_text(wrong, encoding="utf-8")
        run("plan", "--record", "wrong.json", "--epsilon", "1", "--people", "20000", code=2)
    run("plan", "--record", "parts.json", "--categories", "3", "--epsilon", "1", "--people", "20000", code=2)


@pytest.mark.slow
def test_whole_collections_of_records_are_repeated(run, folder):
    """Errors as the formulas say, and intervals that hold for those who answered, over all parts."""
    options = ["--protocol", "Attributes", "--epsilon", "2", "--people", "2000", "--runs", "40"]
    (row,) = run("simulate", *options, "--record", "parts.json", "-o", "study.parquet", "--json").json
    assert 0.6 < row["variance"] / row["variance_theory"] < 1.3  # of a mean the formula is the worst case
    assert row["coverage"] > 0.9
    assert (row["distribution"], row["interval"]) == ("usual", "")
    again = run("simulate", *options, "--record", json.dumps(PARTS), "-o", "study.parquet", "--plot", "study.png")
    assert "1 of 1 cells are taken" in again.err
    assert " record " in again.out
    run("simulate", *options, "--record", "parts.json", "--distribution", "uniform,spike:0.3")
    for wrong in (["--protocol", "GRR"], ["--distribution", "zipf"], ["--categories", "4"]):
        run("simulate", *options, "--record", "parts.json", *wrong, code=2)


def test_drafts_that_ask_for_no_record_are_refused(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for answers in (
        {"record": PARTS, "per_device": 2},
        {"record": PARTS, "per_device": "all"},
        {"record": PARTS, "per_device": "pairs", "read": "rectangles"},
        {"record": PARTS, "per_device": [["smoke", "bread"]]},
        {"record": {"a": 3}},
        {"record": {}},
    ):
        asked = [{"id": "habits", "text": "?", "answers": answers}]
        Path("draft.json").write_text(json.dumps(DRAFT | {"questions": asked}), encoding="utf-8")
        run("survey", "new", "draft.json", "-o", "other.json", code=2)


def test_tables_of_pairs_from_draft_to_synthetic_records(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = {"smoke": ["yes", "no"], "age": {"low": 18, "high": 77}, "town": ["a", "b", "c"]}
    answers = {"record": record, "per_device": "pairs", "cells": {"age": 4}}
    asked = [{"id": "habits", "text": "Your habits?", "answers": answers}]
    Path("draft.json").write_text(json.dumps({"name": "h", "epsilon": "4", "people": 3000, "questions": asked}))
    assert "Attributes" in run("survey", "new", "draft.json", "-o", "survey.json").out
    lines = ["smoke,age,town"] + [
        f"{'yes' if i % 3 else 'no'},{20 if i % 3 else 70},{'abc'[i % 2]}" for i in range(3000)
    ]
    Path("answers.csv").write_text("\n".join(lines) + "\n")
    run("privatize", "survey.json", "answers.csv", "-o", "reports.csv", "--seed", "1")
    run("tally", "survey.json", "reports.csv", "-o", "tally.json")
    assert "yes & 18 to 32" in run("estimate", "survey.json", "tally.json").out
    both = ("survey.json", "tally.json")
    listed = run("estimate", *both, "--associations", "--json").json["associations"]
    by_pair = {row["columns"]: row for row in listed}
    assert by_pair["smoke & age"]["p_value"] < 1e-9
    assert by_pair["smoke & age"]["strength"] > 0.8
    assert "which columns are associated" in run("estimate", *both, "--associations", "--plot", "columns.png").out
    (table,) = run("estimate", *both, "--columns", "age,smoke", "--json").json["tables"]
    assert [axis["name"] for axis in table["sections"][0]["axes"]] == ["age", "smoke"]
    assert abs(rows_of(table)[0]["value"] - 2 / 3) < 0.1
    shares = run("estimate", *both, "--columns", "smoke", "--given", "age", "--model", "shrink", "--csv").out
    assert shares.startswith("question,section,label,value")
    made = run("synthesize", *both, "--records", "500", "-o", "people.csv", "--seed", "1", "--json").json
    assert {row["columns"] for row in made["keeps"]} == set(by_pair)
    assert Path("people.csv").read_text().count("\n") == 501
    drawn = [line.split(",") for line in Path("people.csv").read_text().replace('"', "").splitlines()]
    assert all(18 <= int(age) <= 77 for _, age, _ in drawn[1:]), "numbers, drawn within their cells"
    assert len({age for _, age, _ in drawn[1:]}) > 4
    assert "keep nothing that is only in more columns" in run("synthesize", *both, "-o", "people.parquet").out
    said = run("estimate", *both, "--columns", "smoke", "--model", "shrink").out
    assert "whatever the model assumes" in " ".join(said.split())
    compared = ("synthesize", *both, "-o", "more.csv", "--seed", "1", "--compare", "answers.csv", "--target", "smoke")
    if importlib.util.find_spec("sklearn") is None:
        assert "deniable[learn]" in run(*compared, code=2).err
    else:
        judged = run(*compared, "--json").json["learns"]
        assert judged["guess"] == 0.5 < 0.9 < judged["synthetic"] <= judged["raw"] <= 1
    assert "give both" in run(*compared[:-2], code=2).err
    for wrong in (
        ("estimate", *both, "--columns", "age,bread"),
        ("estimate", *both, "--columns", "age", "--given", "smoke"),
        ("estimate", *both, "--columns", "age,smoke,town"),
        ("estimate", *both, "--columns", "age", "--model", "guess"),
        ("estimate", *both, "--associations", "--question", "other"),
        ("estimate", *both, "--associations", "--columns", "age"),
        ("estimate", *both, "--columns", "age", "--robust", "5"),
        ("estimate", *both, "--model", "shrink"),
        ("synthesize", *both, "-o", "people.txt"),
    ):
        run(*wrong, code=2)


def test_a_survey_may_ask_for_one_of_its_questions(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = [{"id": name, "text": f"Your {name}?", "answers": answers} for name, answers in PARTS.items()]
    draft = {"name": "h", "epsilon": "1", "people": 3000, "per_device": 1, "questions": asked}
    Path("draft.json").write_text(json.dumps(draft))
    made = run("survey", "new", "draft.json", "-o", "survey.json").out
    assert "answers.smoke" in made
    assert "with epsilon split over all 3 columns" in " ".join(made.split())
    question = run("survey", "show", "survey.json", "--json").json["questions"][0]
    assert question["text"] == "h"
    assert [column["title"] for column in question["protocol"]["domain"]["columns"]] == [one["text"] for one in asked]
    for wrong in ({"per_device": 4}, {"questions": asked[:1]}, {"questions": [asked[0] | {"epsilon": 1}, *asked[1:]]}):
        Path("draft.json").write_text(json.dumps(draft | wrong))
        run("survey", "new", "draft.json", "-o", "other.json", code=2)


def test_a_plan_of_queries_names_the_error_of_each(run) -> None:
    asked = {"tired smokers": {"times": ["sleep", ["smoke", "yes"]]}, "score": {"weights": [["sleep", 1]], "bound": 2}}
    given = ("plan", "--record", json.dumps(PARTS), "--queries", json.dumps(asked), "--epsilon", "1")
    shown = run(*given, "--people", "20000").out
    assert "tired smokers" in shown
    whole = json.loads(run(*given, "--people", "20000", "--json").out)
    assert outweighs(whole["leverage"]) in " ".join(shown.split())
    found = whole["queries"]
    assert [one["query"] for one in found] == list(asked)
    assert [one["people"] for one in found] == [10_000, 10_000]
    first, second = (one["stderr"] for one in found)
    assert 0.01 < first < 0.03
    assert abs(second - 2 * first) < 1e-9
    assert all(abs(one["within"] / one["stderr"] - 1.96) < 0.001 for one in found)
    refused = run(*given, "--within", "0.01", code=2)
    assert "--queries goes with --record, --epsilon and --people" in refused.err

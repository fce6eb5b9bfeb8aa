"""Sets of items and numbers by key, from the draft to the estimate, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.documents import rows_of, section

DRAFT = {
    "name": "apps",
    "epsilon": "4",
    "people": 3000,
    "questions": [
        {"id": "apps", "text": "Which?", "answers": {"multiple": ["mail", "maps", "music"], "at_most": 2}},
        {
            "id": "stars",
            "text": "How good?",
            "answers": {"keys": ["mail", "maps"], "low": 1, "high": 5, "unit": "stars", "at_most": 2},
        },
    ],
}


@pytest.fixture
def folder(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    Path("draft.json").write_text(json.dumps(DRAFT), encoding="utf-8")
    lines = ["mail; maps,mail: 5; maps: 2", "mail,mail: 4", ","]
    Path("answers.csv").write_text("\n".join(["apps,stars", *lines * 1000]) + "\n", encoding="utf-8")
    return run("survey", "new", "draft.json", "-o", "survey.json").out


def test_sets_from_a_file_to_shares_pairs_and_means(folder, run):
    assert "of which at most 2 are reported" in folder
    assert "stars.mean" in folder
    run("privatize", "survey.json", "answers.csv", "-o", "reports.parquet")
    run("tally", "survey.json", "reports.parquet", "-o", "tally.json")
    told = run("estimate", "survey.json", "tally.json").out
    assert "mail & maps" in told
    assert "2 or more" in told
    assert "lift" in told
    assert "share, of reported items" in told
    assert "of a larger set 2 were drawn" in " ".join(told.split())
    table = run("estimate", "survey.json", "tally.json", "--csv").out.splitlines()
    assert all("of reported items" in line for line in table if line.startswith("apps,m"))
    found = json.loads(run("estimate", "survey.json", "tally.json", "--json").out)
    apps, share, mean = found["questions"]
    assert [apps["kind"], share["kind"], mean["kind"]] == ["items", "shares", "means"]
    truth = {"mail": 2 / 3, "maps": 1 / 3, "music": 0}
    for row in rows_of(apps):
        assert abs(row["value"] - truth[row["label"]]) < 6 * row["stderr"]  # 4e-9 of all runs fail
    assert {row["label"] for row in section(apps, "together")} == {"mail & maps", "mail & music", "maps & music"}
    for row, true in zip(rows_of(mean), (4.5, 2), strict=True):
        assert abs(row["value"] - true) < 6 * row["stderr"]
        assert row["unit"] == "stars"


def test_a_plan_for_several_answers(run):
    plan = run("plan", "--categories", "30", "--at-most", "4", "--epsilon", "1", "--people", "20000").out
    assert "ItemSets" in plan
    assert "people report pairs" in " ".join(plan.split())
    assert "--categories" in run("plan", "--text", "--at-most", "4", "--epsilon", "1", "--people", "9", code=2).err

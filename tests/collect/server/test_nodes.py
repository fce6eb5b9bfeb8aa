"""A service that keeps files: what works, what says which command to run, what two workers and kill -9 leave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deniable.cli import app
from deniable.collect.stores import open_store
from deniable.collect.stores.batches import SurveyCounter
from deniable.collect.wire import to_text
from deniable.files import count_files
from deniable.surveys import Survey
from tests.collect.server.live import Process, body, eventually, in_thread, prepare
from tests.collect.surveys import crowd, current, daily, mixed

SURVEY = mixed(retention="reports")
EPOCH = current(SURVEY)
PEOPLE = crowd(SURVEY, 400)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "node"


def tallied(folder: Path) -> object:
    return count_files(SURVEY, [folder / "parts" / SURVEY.fingerprint / "reports"], dedupe=True).tally.spec()


def expected(n: int) -> object:
    counter = SurveyCounter(SURVEY)
    return counter.tally(n, counter.count(PEOPLE[:n].answers)).spec()


def test_a_node_takes_reports_and_says_who_counts_them(folder: Path) -> None:
    path = f"/v1/surveys/{SURVEY.fingerprint}"
    with in_thread(f"files:///{folder}", SURVEY, tidy_seconds=0.1) as node:
        assert node.send(SURVEY, EPOCH, PEOPLE[:301]).json == {"accepted": 301, "rejected": []}
        assert node.send_json(SURVEY, EPOCH, PEOPLE[:1]).json == {"accepted": 1, "rejected": []}
        (rejected,) = node.send_json(SURVEY, EPOCH + 9, PEOPLE[:1]).json["rejected"]
        assert rejected[2] == "epochTooEarly"
        eventually(lambda: node.get(f"{path}/status", "analyst").json["accepted"] == 302)
        status = node.get(f"{path}/status", "analyst").json
        assert (status["duplicates"], status["rejected"]) == (1, {"epochTooEarly": 1})
        for asked in ("estimates", "estimates.csv", "tally.json", "differences?before=1&after=2"):
            refused = node.get(f"{path}/{asked}", "analyst")
            assert (refused.status, refused.problem) == (409, "countedElsewhere")
            assert f"deniable tally {folder}/parts/{SURVEY.fingerprint}/survey.json" in refused.json["detail"]
        assert node.get("/readyz").status == 200
        assert "deniable_store_bytes" in node.get("/metrics", "analyst").body.decode()
        gone = to_text(PEOPLE.ids[300].tobytes())
        assert [node.ask("DELETE", f"{path}/reports/{gone}").json["deleted"] for _ in (1, 2)] == [True, False]
        refused = node.ask("POST", "/v1/surveys", daily().canonical, "admin", {"Content-Type": "application/json"})
        assert (refused.status, refused.problem) == (400, "malformed")
        assert "delete_days" in refused.json["detail"]
    # A clean stop has made parts of everything.
    assert tallied(folder) == expected(300)


def test_kill_9_two_workers_and_a_clean_stop(folder: Path, tmp_path: Path) -> None:
    url = f"files:///{folder}"
    with open_store(url) as store:
        prepare(store, SURVEY)
    with Process(url) as node:
        for at in range(0, 200, 20):
            assert node.post(SURVEY, body(SURVEY, EPOCH, PEOPLE[at : at + 20])).json["accepted"] == 20
        node.kill()
    assert not list(folder.rglob("*.parquet")), "it had no time for that"
    with Process(url, "--workers", "2") as node:
        for at in range(180, 400, 20):
            assert node.post(SURVEY, body(SURVEY, EPOCH, PEOPLE[at : at + 20])).json["accepted"] == 20
        assert node.stop() == 0
    assert list((folder / "segments").iterdir()) == []
    assert tallied(folder) == expected(400)
    parts = folder / "parts" / SURVEY.fingerprint
    command = [
        "tally",
        str(parts / "survey.json"),
        str(parts / "reports"),
        "--dedupe",
        "-o",
        str(tmp_path / "sum.json"),
    ]
    ran = CliRunner().invoke(app, command)
    assert ran.exit_code == 0, ran.output
    assert json.loads((tmp_path / "sum.json").read_text()) == expected(400)
    assert CliRunner().invoke(app, ["store", "check", "--store", url]).output == "1 survey, nothing is wrong\n"
    refused = CliRunner().invoke(app, ["store", "export", str(tmp_path / "out"), "--store", url])
    assert refused.exit_code == 2
    assert "run deniable tally" in " ".join(refused.output.split())
    missing = CliRunner().invoke(app, ["store", "check", "--store", f"files:///{tmp_path / 'nowhere'}"])
    assert "there is no store" in missing.output
    assert not (tmp_path / "nowhere").exists()
    assert Survey.load(parts / "survey.json") == SURVEY

"""`deniable serve`, `deniable token` and `deniable store`."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from deniable.cli import app
from deniable.collect.counting import Counter
from deniable.collect.stores import open_store
from deniable.engines import tally_files
from deniable.surveys import Survey, SurveyTally
from tests.collect.server.live import Process
from tests.collect.surveys import crowd, current, daily, mixed, plain


def deniable(*arguments: str, code: int = 0) -> str:
    """What a command prints, run in this process."""
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 or done.stdout else done.stderr


@pytest.fixture
def url(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


def test_from_a_survey_file_to_an_estimate(tmp_path, url):
    survey, people = mixed(), crowd(mixed(), 100)
    survey.save(tmp_path / "survey.json")
    token = deniable("token", "create", "--role", "analyst", "--label", "tests", "--store", url).strip()
    with Process(url, "--publish", str(tmp_path / "survey.json")) as service:
        assert service.send(survey, current(survey), people).json["accepted"] == 100
        path = f"/v1/surveys/{survey.fingerprint}/estimates"
        assert service.get(path, Authorization=f"Bearer {token}").json["series"][0]["n"] == 100
        # The store is looked after while the service runs.
        assert "nothing is wrong" in deniable("store", "check", "--store", url)
        deniable("store", "backup", str(tmp_path / "copy.db"), "--store", url)
        assert service.stop() == 0
    with open_store(f"sqlite:///{tmp_path / 'copy.db'}") as copy:
        assert copy.tally(survey.fingerprint)["smoke"].n == 100
    listed = json.loads(deniable("token", "list", "--store", url, "--json"))
    assert [(one["role"], one["label"]) for one in listed] == [("analyst", "tests")]
    assert token not in (tmp_path / "store.db").read_bytes().decode("latin-1")
    deniable("token", "revoke", listed[0]["id"][:12], "--store", url)
    assert json.loads(deniable("token", "list", "--store", url, "--json")) == []


def test_export_writes_files_that_the_other_commands_take(tmp_path, url):
    survey, people = daily(retention="reports"), crowd(daily(), 60)
    epoch = current(survey)
    with open_store(url) as store:
        store.publish(survey)
        store.publish(plain())
        store.add([people[:40].batch(survey, epoch), people[40:].batch(survey, epoch + 1)])
    assert "--survey" in deniable("store", "export", str(tmp_path / "out"), "--store", url, code=2)
    to = tmp_path / "out"
    deniable("store", "export", str(to), "--store", url, "--survey", survey.fingerprint[:10])
    assert Survey.load(to / "survey.json").fingerprint == survey.fingerprint
    counter = Counter(survey)
    exact = counter.tally(60, counter.count(people.answers))
    assert SurveyTally.load(to / "tally.json").to_json() == exact.to_json()
    again = tally_files(survey, [str(to / "reports.parquet")])
    assert again.tallies["smoke"] == exact["smoke"]


def test_close_epoch(url):
    survey, people = daily(), crowd(daily(), 5)
    epoch = current(survey)
    with open_store(url) as store:
        store.publish(survey)
        store.add([people.batch(survey, epoch)])
    out = deniable("store", "close-epoch", str(epoch), "--store", url, "--yes")
    assert "submissions  5" in out
    deniable("store", "close-epoch", "999", "--store", url, code=2)
    with open_store(url) as store:
        assert store.epochs(survey.fingerprint)[0].state == "closed"


def test_check_finds_what_is_wrong(tmp_path, url):
    survey, people = plain(), crowd(plain(), 9)
    with open_store(url) as store:
        store.publish(survey)
        store.add([people.batch(survey, 0)])
    assert "1 surveys, nothing is wrong" in deniable("store", "check", "--store", url)
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("DELETE FROM seen WHERE id = (SELECT id FROM seen LIMIT 1)")
    connection.close()
    assert deniable("store", "check", "--store", url, code=1).startswith("wrong: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("serve", "--store", "memory:"), "memory"),
        (("serve", "--store", "nonsense"), "not the URL of a store"),
        (("serve", "--store", "sqlite:////nowhere/at/all.db"), "cannot be opened"),
        (("token", "create", "--role", "king", "--store", "memory:"), "admin, analyst, ingest"),
        (("token", "revoke", "ab", "--store", "memory:"), "at least 8"),
        (("token", "revoke", "abcdef0123", "--store", "memory:"), "no token"),
        (("store", "export", "x", "--store", "memory:"), "no survey"),
    ],
)
def test_what_is_refused(arguments, words):
    assert words in deniable(*arguments, code=2)


def test_a_survey_without_terms_is_not_served(tmp_path, url):
    Survey("files only", plain().questions).save(tmp_path / "plain.json")
    assert "no terms" in deniable("serve", "--store", url, "--publish", str(tmp_path / "plain.json"), code=2)


def test_an_open_address_is_warned_of(url):
    service = Process(url, "--host", "127.0.0.1")
    with service:
        assert "warning" not in service.log.read_text()
        taken = deniable("serve", "--store", url, "--port", str(service.port), code=2)
        assert "in use" in taken
    command = [sys.executable, "-m", "deniable", "serve", "--store", url, "--port", "0", "--host", "0.0.0.0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("serving: http://0.0.0.0:")
    process.terminate()
    _, errors = process.communicate(timeout=30)
    assert "warning: this address can be reached without encryption" in errors
    assert process.returncode == 0

"""`deniable serve`, `deniable store token` and `deniable store`."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from deniable.cli import app
from deniable.collect.analyst import Analyst, ListedSurvey
from deniable.collect.server import Settings, serve
from deniable.collect.stores import Token, open_store
from deniable.collect.stores.batches import SurveyCounter
from deniable.files import tally_files
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.results import SAME_NOISE, SAME_PEOPLE
from deniable.surveys.terms import read_time, write_time
from tests.collect.server.live import TOKENS, Process, in_thread, token_file
from tests.collect.surveys import Crowd, crowd, current, daily, memoized, mixed, plain
from tests.documents import rows_of


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
    with Process(url, "--publish", str(tmp_path / "survey.json")) as service:
        token = deniable("store", "token", "create", "--role", "analyst", "--label", "tests", "--store", url).strip()
        assert service.send(survey, current(survey), people).json["accepted"] == 100
        path = f"/v1/surveys/{survey.fingerprint}/estimates"
        assert service.get(path, Authorization=f"Bearer {token}").json["series"][0]["n"] == 100
        # The store is looked after while the service runs.
        assert "nothing is wrong" in deniable("store", "check", "--store", url)
        deniable("store", "backup", str(tmp_path / "copy.db"), "--store", url)
        assert service.stop() == 0
    with open_store(f"sqlite:///{tmp_path / 'copy.db'}") as copy:
        assert copy.tally(survey.fingerprint)["smoke"].n == 100
    listed = json.loads(deniable("store", "token", "list", "--store", url, "--json"))
    assert [(one["role"], one["label"]) for one in listed] == [("analyst", "tests")]
    assert token not in (tmp_path / "store.db").read_bytes().decode("latin-1")
    deniable("store", "token", "revoke", listed[0]["id"][:12], "--store", url)
    assert json.loads(deniable("store", "token", "list", "--store", url, "--json")) == []


def test_a_survey_of_the_same_name_is_pointed_out(tmp_path, url):
    before, after = plain(), plain(min_reports=2)
    after.save(tmp_path / "survey.json")
    with in_thread(url, before, mixed()) as live:
        for said in ("published", "was published before"):
            options = ["--to", f"http://127.0.0.1:{live.port}", "--token-file", token_file(tmp_path, "admin")]
            done = CliRunner().invoke(app, ["survey", "publish", str(tmp_path / "survey.json"), *options])
            assert f"\n{said}: " in done.stdout
            assert done.stderr.count("note: ") == 1
            assert f"the service also has {before.fingerprint}, collecting, of the same name" in done.stderr


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
    counter = SurveyCounter(survey)
    exact = counter.tally(60, counter.count(people.answers))
    assert SurveyTally.load(to / "tally.json").to_json() == exact.to_json()
    again = tally_files(survey, [str(to / "reports.parquet")])
    assert again.tallies["smoke"] == exact["smoke"]
    # The directory holds the reports and their sum: whoever names all of it counts both, and is told so.
    done = CliRunner().invoke(app, ["tally", str(to / "survey.json"), str(to), "-o", str(tmp_path / "sum.json")])
    assert done.exit_code == 0
    assert SurveyTally.load(tmp_path / "sum.json")["smoke"] == exact["smoke"] + exact["smoke"]
    assert "counted: 1 file of reports (60 rows) and 1 tally (of 60 reports)\n" in done.stdout


def test_export_of_some_epochs(tmp_path, url):
    survey, people = daily(retention="reports"), crowd(daily(), 60)
    counter = SurveyCounter(survey)
    epoch = current(survey)
    parts = {epoch - 1: people[:10], epoch: people[10:40], epoch + 1: people[40:]}
    with open_store(url) as store:
        store.publish(survey)
        store.add([some.batch(survey, at) for at, some in parts.items()])
    to = tmp_path / "out"

    def export(*options: str, code: int = 0) -> set[str]:
        deniable("store", "export", str(to), "--store", url, "--survey", "daily", *options, code=code)
        return {path.name for path in to.iterdir()} if to.exists() else set()

    def tally(*which: int) -> str:
        answers = np.concatenate([parts[at].answers for at in which])
        return counter.tally(len(answers), counter.count(answers)).to_json()

    assert export("--epochs", f"{epoch + 2}..", code=2) == set()
    assert export("--epochs", f"{epoch}..") == {"survey.json", "tally.json", "reports.parquet"}
    assert (to / "tally.json").read_text() == tally(epoch, epoch + 1)
    assert tally_files(survey, [str(to / "reports.parquet")]).to_json() == tally(epoch, epoch + 1)
    before = {path: path.read_bytes() for path in to.iterdir()}
    (to / "notes.txt").write_text("mine")
    export(code=2)
    assert {path: path.read_bytes() for path in before} == before
    # What an earlier export left would be counted beside what this one writes.
    each = {f"tally-{at}.json" for at in parts}
    assert export("--per-epoch", "--force") == {"survey.json", "reports.parquet", "notes.txt", *each}
    for at in parts:
        assert (to / f"tally-{at}.json").read_text() == tally(at)


def test_exports_with_ids_are_deduplicated(tmp_path, url):
    """Of two stores that share submissions, as after a restore: each counts once."""
    survey, people = daily(retention="reports"), crowd(daily(), 60)
    epoch, counter = current(survey), SurveyCounter(survey)
    other = f"sqlite:///{tmp_path / 'other.db'}"
    for place, some in ((url, people[:40]), (other, people[20:])):
        with open_store(place) as store:
            store.publish(survey)
            # The same ids in another epoch are other submissions.
            store.add([some.batch(survey, epoch), some.batch(survey, epoch - 1)])
    for name, place in (("here", url), ("there", other)):
        run = CliRunner().invoke(app, ["store", "export", str(tmp_path / name), "--with-ids", "--store", place])
        assert run.exit_code == 0
        assert "while its epoch is open" in run.stderr
    names = {"survey.json", "tally.json", f"reports-{epoch - 1}.parquet", f"reports-{epoch}.parquet"}
    assert {path.name for path in (tmp_path / "here").iterdir()} == names
    exact = counter.tally(60, counter.count(people.answers))
    for epochs in ((epoch,), (epoch - 1, epoch)):
        files = [str(tmp_path / name / f"reports-{at}.parquet") for name in ("here", "there") for at in epochs]
        assert tally_files(survey, files)["smoke"].n == 80 * len(epochs)
        sums = tmp_path / f"{len(epochs)}.json"
        deniable("tally", str(tmp_path / "here/survey.json"), *files, "--dedupe", "-o", str(sums))
        counted = SurveyTally.load(sums)["smoke"]
        assert counted == (exact["smoke"] if len(epochs) == 1 else exact["smoke"] + exact["smoke"])
    # What was exported before would be counted beside what this one writes.
    deniable("store", "export", str(tmp_path / "here"), "--force", "--store", url)
    assert {path.name for path in (tmp_path / "here").iterdir()} == {"survey.json", "tally.json", "reports.parquet"}


def test_ids_that_are_not_kept_are_not_exported(tmp_path, url):
    with open_store(url) as store:
        store.publish(daily())
        store.add([crowd(daily(), 5).batch(daily(), current(daily()))])
    said = deniable("store", "export", str(tmp_path / "out"), "--with-ids", "--store", url, code=2)
    assert 'retention "tally"' in said
    assert not (tmp_path / "out").exists()


MISTYPED = [
    ("store", "token", "create", "--role", "admin"),
    ("store", "token", "list"),
    ("store", "token", "revoke", "0123456789"),
    ("store", "check"),
    ("store", "backup", "copy.db"),
    ("store", "close-epoch", "1"),
    ("store", "reopen-epoch", "1"),
    ("store", "trust-clock"),
    ("store", "upgrade"),
    ("store", "export", "out"),
]


@pytest.mark.parametrize("command", MISTYPED, ids=" ".join)
def test_a_mistyped_name_makes_no_store(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    assert "there is no store 'typo.db'" in deniable(*command, "--store", "sqlite:///typo.db", code=2)
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_leaves_no_store(tmp_path, url):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert "in use" in deniable("serve", "--store", url, "--port", str(port), code=2)
    assert list(tmp_path.iterdir()) == []


def test_workers_do_not_share_a_port_with_another_service():
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        settings = Settings(store="postgresql://nowhere/x", port=other.getsockname()[1])
        with pytest.raises(OSError, match="in use"):
            serve(settings, workers=2)


def test_a_survey_by_its_name_or_the_beginning_of_its_fingerprint(tmp_path, monkeypatch, live):
    survey = daily()
    live.send(survey, current(survey), crowd(survey, 5))
    service = ("--from", f"http://127.0.0.1:{live.port}", "--token-file", token_file(tmp_path, "analyst"), "--json")
    monkeypatch.chdir(tmp_path)
    for given in ("daily", survey.fingerprint, survey.fingerprint[:6], survey.fingerprint[:9].upper()):
        assert json.loads(deniable("estimate", given, *service))["survey"] == survey.fingerprint
    refusal = deniable("estimate", survey.fingerprint[:5], *service, code=2)
    assert f"daily ({survey.fingerprint[:12]})" in refusal
    past = CliRunner().invoke(app, ["estimate", "daily", *service, "--epochs", "1..70"])
    assert past.exit_code == 0
    assert "note: the epochs of this survey are 0 to 39: of others there is nothing\n" in past.stderr
    assert "note" not in CliRunner().invoke(app, ["estimate", "daily", *service, "--epochs", "0..39"]).stderr
    # A file of that name comes first.
    plain().save("daily")
    assert json.loads(deniable("estimate", "daily", *service))["survey"] == plain().fingerprint


def test_a_service_that_names_surveys_falsely(tmp_path, monkeypatch, live):
    monkeypatch.chdir(tmp_path)
    lie = ListedSurvey(plain().fingerprint, "daily", "collecting")
    monkeypatch.setattr(Analyst, "surveys", lambda self: iter([lie]))
    refusal = deniable("estimate", "daily", "--from", f"http://127.0.0.1:{live.port}", code=2)
    assert "which it is not" in refusal


def test_without_a_token_the_way_to_one_is_shown(live, tmp_path):
    service = ("estimate", plain().fingerprint, "--from", f"http://127.0.0.1:{live.port}")
    missing = deniable(*service, code=2)
    for words in ("needs a token", "deniable store token create --role analyst", "--token-file", "DENIABLE_TOKEN"):
        assert words in missing
    (tmp_path / "guess").write_text("dn_guess\n", encoding="utf-8")
    refused = deniable(*service, "--token-file", str(tmp_path / "guess"), code=2)
    assert "is not accepted" in refused
    given = deniable(*service, "--token-file", TOKENS["analyst"], code=2)
    assert "everybody on this machine can read a command line" in given
    assert TOKENS["analyst"] not in given
    assert "No such option" in deniable(*service, "--token", TOKENS["analyst"], code=2)
    assert "Bearer" not in missing + refused


def test_close_epoch(url):
    survey, people = daily(), crowd(daily(), 5)
    epoch = current(survey)
    with open_store(url) as store:
        store.publish(survey)
        store.add([people.batch(survey, epoch)])
    out = deniable("store", "close-epoch", str(epoch), "--store", url, "--yes")
    assert "submissions  5" in out
    again = CliRunner().invoke(app, ["store", "close-epoch", str(epoch), "--store", url])
    assert (again.exit_code, again.stdout) == (0, out)
    assert again.stderr == f"note: epoch {epoch} was closed already: nothing has changed\n"
    deniable("store", "close-epoch", "999", "--store", url, code=2)
    with open_store(url) as store:
        assert store.epochs(survey.fingerprint)[0].state == "closed"


def test_delete_reports(url, tmp_path):
    survey = daily(retention="reports")
    people, epoch, where = crowd(survey, 5), current(survey), ("--store", url)
    with open_store(url) as store:
        store.publish(survey)
        for at in (epoch - 1, epoch):
            store.add([people.batch(survey, at)])
        store.close_epoch(survey.fingerprint, epoch - 1)
        sums = store.tally(survey.fingerprint).spec()
    assert f"epoch {epoch} is open" in deniable("store", "delete-reports", *where, code=2)
    asked = deniable("store", "delete-reports", "--epochs", str(epoch - 1), *where, code=2)
    assert re.search(r"reports +5\n", asked)
    with open_store(url) as store:
        assert sum(len(batch.ids) for batch in store.reports(survey.fingerprint)) == 10
    day = write_time(survey.terms.epochs.start(epoch))[:10]
    assert "deleted: 5 reports" in deniable("store", "delete-reports", "--before", day, "--yes", *where)
    reading = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    reading.execute("BEGIN")
    reading.execute("SELECT COUNT(*) FROM report").fetchone()
    with open_store(url) as store:
        store.confirm_time(1.0)  # something is in the log
    blocked = CliRunner().invoke(app, ["store", "delete-reports", "--before", day, "--yes", *where])
    assert "there is nothing to delete" in blocked.stdout
    assert "another process reads the store, so its files still hold what was deleted" in blocked.stderr
    reading.close()
    again = CliRunner().invoke(app, ["store", "delete-reports", "--before", day, "--yes", *where])
    assert ("there is nothing to delete" in again.stdout, again.stderr) == (True, "")
    exported = CliRunner().invoke(app, ["store", "export", str(tmp_path / "out"), *where])
    assert f"the reports of epochs {epoch - 1} were deleted: of these there are sums only" in exported.stderr
    assert "a date is written" in deniable("store", "delete-reports", "--before", "yesterday", *where, code=2)
    with open_store(url) as store:
        assert {batch.epoch for batch in store.reports(survey.fingerprint)} == {epoch}
        assert store.tally(survey.fingerprint).spec() == sums
        store.publish(plain())
    sums_only = deniable("store", "delete-reports", "--survey", "plain", *where, code=2)
    assert "keeps sums only" in sums_only


def test_delete_survey(url, tmp_path):
    survey, where = daily(), ("--survey", "daily", "--store", url)
    with open_store(url) as store:
        for one in (survey, plain()):
            store.publish(one)
            store.add([crowd(one, 5).batch(one, current(one))])
    asked = CliRunner().invoke(app, ["store", "delete-survey", *where])
    assert asked.exit_code == 2
    assert "this deletes what cannot be restored: if that is meant, say --yes" in asked.stderr
    assert "it still takes reports: devices that answer after it is gone" in asked.stderr
    assert re.search(r"submissions +5\n", asked.stdout)
    assert f"deleted: {survey.fingerprint}" in deniable("store", "delete-survey", *where, "--yes")
    assert "no survey there is called 'daily'" in deniable("store", "delete-survey", *where, code=2)
    assert "1 survey, nothing is wrong" in deniable("store", "check", "--store", url)
    survey.save(tmp_path / "survey.json")
    again = deniable("serve", "--store", url, "--publish", str(tmp_path / "survey.json"), code=2)
    assert "was deleted with all that was collected" in again


def test_tokens_of_a_survey_that_end(url):
    with open_store(url) as store:
        store.publish(plain())
        store.add_token(Token("ab" * 32, "ingest", "old", None, 1_000_000_000))
    create = ("store", "token", "create", "--role", "analyst", "--store", url, "--json")
    made = json.loads(deniable(*create, "--survey", "plain", "--expires", "30d"))
    assert made["survey"] == plain().fingerprint
    # Within the minute that this test may take.
    assert abs(read_time(made["expires"]) - time.time() - 30 * 86_400) < 60
    assert json.loads(deniable(*create, "--expires", "2100-01-01"))["expires"] == "2100-01-01T00:00:00Z"
    listed = deniable("store", "token", "list", "--store", url)
    assert re.search(rf"analyst +{plain().fingerprint[:12]} +20", listed)
    assert re.search(r"ingest +all +expired 2001-09-09T01:46:40Z +old", listed)
    assert "a token ends later than that" in deniable(*create, "--expires", "2020-01-01", code=2)
    assert "a date is written" in deniable(*create, "--expires", "soon", code=2)
    assert "no survey there is called" in deniable(*create, "--survey", "other", code=2)


def test_a_backup_replaces_nothing_unless_told_to(tmp_path, url):
    with open_store(url) as store:
        store.publish(plain())
        mine = tmp_path / "survey.json"
        mine.write_text("mine")
        assert "--force" in deniable("store", "backup", str(mine), "--store", url, code=2)
        assert mine.read_text() == "mine"
        (tmp_path / "link.db").hardlink_to(tmp_path / "store.db")
        for name in ("store.db", "store.db-wal", "link.db"):
            own = tmp_path / name
            before = own.stat()
            assert "the store itself" in deniable("store", "backup", str(own), "--store", url, "--force", code=2)
            assert (own.stat().st_ino, own.stat().st_size) == (before.st_ino, before.st_size)
        deniable("store", "backup", str(mine), "--store", url, "--force")
    with open_store(f"sqlite:///{mine}") as copy:
        assert [one.fingerprint for one in copy.surveys()] == [plain().fingerprint]


def test_check_finds_what_is_wrong(tmp_path, url):
    survey, people = plain(), crowd(plain(), 9)
    with open_store(url) as store:
        store.publish(survey)
        store.add([people.batch(survey, 0)])
    assert "1 survey, nothing is wrong" in deniable("store", "check", "--store", url)
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("UPDATE seen SET ids = SUBSTR(ids, 17)")
    connection.close()
    assert deniable("store", "check", "--store", url, code=1).startswith("wrong: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("serve", "--store", "nonsense"), "not the URL of a store"),
        (("serve", "--store", "sqlite:////nowhere/at/all.db"), "cannot be opened"),
        (("store", "token", "create", "--role", "king", "--store", "sqlite:///x.db"), "admin, analyst, ingest"),
        (("store", "token", "revoke", "ab", "--store", "sqlite:///x.db"), "at least 8"),
        (("store", "token", "revoke", "abcdef0123", "--store", "sqlite:///x.db"), "no token"),
        (("store", "export", "x", "--store", "sqlite:///x.db"), "no survey"),
        (("store", "restore", "nothing.db", "--store", "sqlite:///y.db"), "there is no copy 'nothing.db'"),
        (("store", "restore", __file__, "--store", "sqlite:///y.db"), "not a database"),
    ],
)
def test_what_is_refused(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:///x.db").close()
    assert words in deniable(*arguments, code=2)


def test_a_survey_without_terms_is_not_served(tmp_path, url):
    Survey("files only", plain().questions).save(tmp_path / "plain.json")
    assert "for files only" in deniable("serve", "--store", url, "--publish", str(tmp_path / "plain.json"), code=2)


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
    _, errors = process.communicate(timeout=90)
    assert "warning: this address can be reached without encryption" in errors
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("survey", "note"), [(memoized(), SAME_NOISE), (daily(), SAME_PEOPLE)], ids=["memoize", "fresh"]
)
def test_several_epochs_are_estimated_as_the_service_does(url, tmp_path, survey, note):
    """With the same errors and in the same words; over a single epoch there is nothing to be said."""
    now, before = current(survey), current(survey) - 1
    with in_thread(url, survey) as live:
        for epoch in (before, now):
            live.send(survey, epoch, Crowd(crowd(survey, 300, seed=epoch).ids, crowd(survey, 300).answers))
        service = ["--from", f"http://127.0.0.1:{live.port}", "--token-file", token_file(tmp_path, "analyst"), "--json"]
        path, errors = f"/v1/surveys/{survey.fingerprint}/estimates", {}
        for epochs in (f"{before}..{now}", str(now)):
            run = CliRunner().invoke(app, ["estimate", survey.fingerprint, *service, "--epochs", epochs])
            (theirs,) = live.get(f"{path}?epochs={epochs}", "analyst").json["series"]
            assert ([note] if note in " ".join(run.stderr.split()) else []) == theirs["notes"]
            assert (theirs["notes"] == [note]) is (".." in epochs)
            for own, other in zip(json.loads(run.stdout)["questions"], theirs["questions"], strict=True):
                for name in ("value", "stderr", "low", "high"):
                    assert [one[name] for one in rows_of(own)] == pytest.approx([one[name] for one in rows_of(other)])
                errors[epochs] = rows_of(own)[0]["stderr"]
        several, one = errors.values()
        assert (several == pytest.approx(one)) is (note is SAME_NOISE)


@pytest.mark.parametrize("command", [("serve", "--print-config"), ("relay", "serve", "none.json", "--collector", "x")])
def test_misspelt_variables_are_refused_by_name(command, monkeypatch):
    monkeypatch.setenv("DENIABLE_SERVE_RATES" if command[0] == "serve" else "DENIABLE_RELAY_TOKENS", "1")
    done = CliRunner().invoke(app, list(command))
    assert done.exit_code != 0
    said = " ".join(f"{done.output} {done.exception}".split())
    assert "DENIABLE_SERVE_RATE meant" in said or "DENIABLE_RELAY_TOKEN meant" in said

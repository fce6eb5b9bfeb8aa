"""`deniable answer` and `deniable ledger`."""

from __future__ import annotations

import json
import os
import time

import pytest
import typer
from typer.testing import CliRunner

from deniable.cli import _Guarded, answer, ledger
from deniable.collect.client import Ledger
from deniable.protocols import GRR
from deniable.surveys import Question, Survey
from deniable.surveys.terms import Longitudinal
from tests.cli.conftest import Ran, sane
from tests.collect.surveys import daily, mixed, plain, terms, text

app = typer.Typer(cls=_Guarded, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command(name="answer", epilog=answer.EXAMPLES)(answer.answer)
app.add_typer(ledger.app, name="ledger")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("DENIABLE_LEDGER", str(tmp_path / "ledger.sqlite"))

    def invoke(*args, stdin=None, code=0):
        result = CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)
        ran = sane(Ran(result.exit_code, result.stdout, result.stderr))
        assert ran.code == code, (ran.code, ran.out, ran.err)
        return ran

    return invoke


@pytest.fixture
def address(server):
    survey = mixed()
    server.publish(survey)
    return ["answer", server.url, survey.fingerprint]


MIXED = ["smoke=no", "drink=3", "age=42", "town=7"]


def test_answering(run, server, address):
    out = run(*address, *MIXED).out
    (body,) = server.posts
    assert "anyone's odds about it change by at most a factor of 54.6." in out
    assert body[:4].hex() in out
    assert body[8:24].hex() in out
    assert body[24:].hex() in out
    assert "sent" in out
    assert "4 of 100 spent in the group tests" in out
    again = run(*address).out
    assert "answered before" in again
    assert len(server.posts) == 1


def test_json(run, server, address):
    made = run(*address, *MIXED, "--json").json
    assert (bytes.fromhex(made["bytes"]), made["state"], made["fresh"]) == (server.posts[0], "sent", True)
    assert made["budget"]["spent"] == "4"


def test_a_rehearsal_records_and_sends_nothing(run, server, address, tmp_path):
    out = run(*address, *MIXED, "--dry-run").out
    assert "throw-away randomness" in out
    assert "sends 00" in out
    assert "0.7311" in out
    first = run(*address, *MIXED, "--dry-run", "--json").json["example"]
    assert first != run(*address, *MIXED, "--dry-run", "--json").json["example"]
    assert server.posts == []
    assert list(tmp_path.iterdir()) == []
    run(*address, *MIXED)
    assert server.posts[0].hex() != first


def test_open_text_in_a_rehearsal(run, server):
    survey = text()
    server.publish(survey)
    out = run("answer", server.url, survey.fingerprint, "bread=rye", "--dry-run").out
    assert "times as likely under one answer as another" in out


def test_text_becomes_the_survey_s_labels(run, server):
    questions = [Question("sure", "Sure?", GRR([True, False], epsilon=1)), Question("n", "?", GRR([1, 2], epsilon=1))]
    survey = Survey("typed", questions, terms())
    server.publish(survey)
    run("answer", server.url, survey.fingerprint, "sure=true", "n=2")
    assert len(server.posts) == 1


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["smoke=no"], "add drink=..., age=..., town=..."),
        (["smoke=secret", *MIXED[1:]], "question 'smoke': the answer"),
        (["secret"], "written ID=ANSWER"),
        (["secret=no"], "the questions are smoke, drink, age, town"),
        ([*MIXED, "smoke=secret"], "answered twice"),
    ],
)
def test_refusals_do_not_repeat_the_answer(run, server, address, given, complaint):
    ran = run(*address, *given, code=2)
    assert complaint in ran.err
    assert "secret" not in ran.err
    assert server.posts == []


def test_not_sent_yet_and_dropped(run, server):
    survey = daily()
    server.publish(survey)
    server.script = [(503, {})]
    ran = run("answer", server.url, survey.fingerprint, "smoke=yes")
    assert "run the command again" in ran.err
    assert "state   queued" in ran.out
    server.script = [(410, {}, "surveyClosed")]
    assert "dropped: status 410 surveyClosed" in run("answer", server.url, survey.fingerprint, code=1).out


def test_the_ledger(run, server, address, tmp_path):
    assert run("ledger", "show", "--json").json["submissions"] == []
    run(*address, *MIXED)
    (body,) = server.posts
    shown = run("ledger", "show").out
    assert body.hex() in shown
    assert "mixed, " in shown
    (known,) = run("ledger", "show", address[2], "--json").json["submissions"]
    assert (known["bytes"], known["state"], known["epsilon"]) == (body.hex(), "sent", "4")
    assert run("ledger", "show", "ab" * 32, "--json").json["submissions"] == []
    (budget,) = run("ledger", "budget", "--json").json["budgets"]
    assert (budget["cap"], budget["spent"], budget["left"]) == ("100", "4", "96")
    table = run("ledger", "budget").out
    assert "tests" in table
    assert "mixed" in table
    assert "withdraw" in run("ledger").out


def test_opting_out_and_withdrawing(run, server, address, tmp_path):
    run(*address, *MIXED)
    run("ledger", "optout")
    run("ledger", "optout", address[2])
    run("ledger", "optout", "--undo")
    assert "add --yes" in run("ledger", "withdraw", code=2).err
    assert "withdrawn" in run("ledger", "withdraw", "--yes").out
    assert not Ledger(tmp_path / "ledger.sqlite").secret_path.exists()
    assert "deleted" in run("ledger", "show").out
    other = plain()
    server.publish(other)
    requests = len(server.requests)
    assert "opted out" in run("answer", server.url, other.fingerprint, "smoke=yes", code=2).err
    assert len(server.requests) == requests


def test_a_lifetime_in_the_promise():
    survey = Survey("two", [Question("q", "?", GRR(2, epsilon=1))], terms(longitudinal=Longitudinal(epochs=2)))
    assert answer.promise(survey) == (
        "Whatever you answer, anyone's odds about it change by at most a factor of 2.72 each time, and 7.39 in all, "
        "however often you take part."
    )


@pytest.mark.skipif(os.name == "nt", reason="terminals as on Unix")
def test_at_a_terminal(server, tmp_path):
    """The person is asked, a wrong answer is asked for again, and the bytes are shown."""
    import pty
    import subprocess
    import sys

    survey = plain()
    server.publish(survey)
    code = "from tests.collect.client.test_commands import app; app(prog_name='deniable')"
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code, "answer", server.url, survey.fingerprint, "--ledger", tmp_path / "l.sqlite"],
        stdin=child,
        stdout=child,
        stderr=child,
        cwd=os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__)))),
        env={**os.environ, "NO_COLOR": "1", "TERM": "dumb"},
    )
    os.close(child)
    seen, answers = b"", [b"maybe\n", b"yes\n"]
    deadline = time.time() + 30
    while time.time() < deadline:
        try:
            seen += os.read(parent, 4096)
        except OSError:
            break
        if answers and seen.count(b"yes, no: ") == 3 - len(answers):
            os.write(parent, answers.pop(0))
    os.close(parent)
    assert process.wait(timeout=10) == 0, seen
    shown = seen.decode()
    assert "Do you smoke?" in shown
    assert "Example Institute" in shown
    assert "please: question 'smoke': the answer" in shown
    assert server.posts[0][24:].hex() in shown


def test_json_is_one_document(run, address):
    assert json.loads(run(*address, *MIXED, "--dry-run", "--json").out)["sent"] is False

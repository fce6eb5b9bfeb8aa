"""`deniable answer` and `deniable ledger`."""

from __future__ import annotations

import json
import os
import time

import pytest
import typer
from typer.testing import CliRunner

from deniable.cli import _Guarded, answer, answer_view, ledger
from deniable.collect.client import Ledger
from deniable.protocols import GRR
from deniable.surveys import Question, Survey
from deniable.surveys.terms import Longitudinal, write_time
from tests.cli.conftest import Ran, sane
from tests.collect.surveys import DAY, TODAY, daily, mixed, plain, terms, text

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
    ran = run(*address, *MIXED)
    out = ran.out
    (body,) = server.posts
    assert "anyone's odds about it change by at most a factor of 54.6." in out
    assert body[:4].hex() in out
    assert body[8:24].hex() in out
    assert body[24:].hex() in out
    assert "sent" in out
    assert "4 of 100 spent in the group tests" in out
    assert f"{len(body)} bytes in all" in out
    assert f"{body[24:].hex()} ({len(body) - 24} bytes, randomized)" in out
    assert f"a new device ledger was made: {os.environ['DENIABLE_LEDGER']}" in ran.err
    again = run(*address)
    assert "answered already, and nothing new was drawn or sent" in again.out
    assert "earlier submission  sent" in again.out
    assert "bytes" not in again.out
    assert again.err == ""
    assert len(server.posts) == 1


def told(run, survey, code=0):
    """What a second answer in the same epoch says, on one line."""
    return " ".join(run("answer", *survey, code=code).out.split())


def test_answering_again_tells_what_became_of_the_first(run, server):
    survey = daily()
    server.publish(survey)
    address = [server.url, survey.fingerprint]
    tomorrow = f"The next epoch begins at {write_time(TODAY + DAY)}."
    server.script = [(503, {}), (503, {})]
    run("answer", *address, "smoke=yes", code=75)
    waits = told(run, address, code=75)
    assert waits.startswith("This epoch was answered already, and nothing new was drawn or sent. " + tomorrow)
    assert "earlier submission waiting to be sent (status 503)" in waits
    assert "nothing new was drawn; what was waiting was sent now. " + tomorrow in told(run, address)
    assert "earlier submission sent budget 1 of 5 spent" in told(run, address)
    document = run("answer", *address, "--json").json
    assert (document["fresh"], document["next_epoch"]) == (False, write_time(TODAY + DAY))
    run("ledger", "withdraw", "--yes")
    run("ledger", "optout", "--undo")
    assert "earlier submission withdrawn" in told(run, address, code=1)
    assert len(set(server.posts)) == 1


def test_the_last_epoch_has_no_next(run, server):
    survey = plain()
    server.publish(survey)
    run("answer", server.url, survey.fingerprint, "smoke=yes")
    assert "takes no more answers from this device" in told(run, [server.url, survey.fingerprint])
    assert run("answer", server.url, survey.fingerprint, "--json").json["next_epoch"] is None


def test_answering_again_after_opting_out(run, server, tmp_path):
    survey = daily()
    server.publish(survey)
    server.script = [(503, {})]
    address = ["answer", server.url, survey.fingerprint]
    run(*address, "smoke=yes", code=75)
    run("ledger", "optout")
    requests = len(server.requests)
    err = run(*address, "--ledger", tmp_path / "ledger.sqlite", code=2).err
    command = f"deniable ledger optout {survey.fingerprint} --undo --ledger {tmp_path / 'ledger.sqlite'}"
    assert f"opted out, so nothing was recorded or sent: `{command}` takes part again" in err
    assert len(server.requests) == requests
    run(*command.split()[1:])
    assert "dropped, because this device opted out" in run(*address, code=1).out
    assert "dropped, because this device opted out" in run("ledger", "show").out


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
        (["smoke=no"], "add drink=... age=... town=..."),
        (["smoke=maybe", *MIXED[1:]], "question 'smoke': 'maybe' is not one of the 2 categories (yes, no)"),
        (["smoke=", *MIXED[1:]], "question 'smoke': '' is not one of the 2 categories (yes, no)"),
        ([*MIXED[:2], "age=old", "town=7"], "question 'age': 'old' is not one of the whole numbers from 0 to 99"),
        ([*MIXED[:2], "age=142", "town=7"], "question 'age': '142' is not one of the whole numbers from 0 to 99"),
        (["no"], "'no' is not written ID=ANSWER, where ID is a question of the survey (smoke, drink, age, town)"),
        (["smok=no"], "the survey has no question 'smok': its questions are smoke, drink, age, town"),
        ([*MIXED, "smoke=yes"], "question 'smoke' is answered twice"),
    ],
)
def test_what_is_no_answer_is_repeated_with_the_choices(run, server, address, tmp_path, given, complaint):
    """To the person who typed it, and to nobody else."""
    assert complaint in run(*address, *given, code=2).err
    assert server.posts == []
    assert list(tmp_path.iterdir()) == []


def test_of_many_choices_a_few_are_shown(run, server):
    survey = Survey("many", [Question("q", "?", GRR([f"c{i}" for i in range(30)], epsilon=1))], terms())
    server.publish(survey)
    err = run("answer", server.url, survey.fingerprint, "q=x", code=2).err
    assert "'x' is not one of the 30 categories (c0, c1, c2, c3, c4, c5, c6, c7, ...)" in err


def test_not_sent_yet_and_dropped(run, server):
    survey = daily()
    server.publish(survey)
    server.script = [(503, {})]
    ran = run("answer", server.url, survey.fingerprint, "smoke=yes", code=75)
    assert "it waits in the ledger: run the same command again to send the same bytes" in ran.err
    assert "state    waiting to be sent (status 503)" in ran.out
    assert "waiting to be sent" in run("ledger", "show").out
    server.script = [(503, {})]
    waits = run("answer", server.url, survey.fingerprint, "--json", code=75).json
    assert (waits["state"], waits["reason"]) == ("queued", "status 503")
    server.script = [(410, {}, "surveyClosed")]
    refused = run("answer", server.url, survey.fingerprint, code=1).out
    assert "refused by the service (status 410 surveyClosed)" in refused
    help = " ".join(run("answer", "--help").out.split())
    assert "exit code is 0 if the submission was sent, now or before; 75 while it waits in the ledger" in help


def test_the_ledger(run, server, address, tmp_path):
    run(*address, *MIXED)
    (body,) = server.posts
    shown = run("ledger", "show").out
    assert f"{body.hex()} ({len(body)} bytes)" in shown
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


@pytest.mark.parametrize(
    "command", [["show"], ["show", "--json"], ["budget"], ["withdraw", "--yes"], ["optout", "--undo"]], ids=" ".join
)
def test_a_mistyped_ledger_is_no_new_device(run, tmp_path, command):
    err = run("ledger", *command, "--ledger", tmp_path / "leger.sqlite", code=2).err
    assert f"there is no ledger '{tmp_path / 'leger.sqlite'}'" in err
    assert list(tmp_path.iterdir()) == []


def test_opting_out_before_anything_else_makes_a_ledger_and_says_so(run, tmp_path):
    assert f"a new device ledger was made: {tmp_path / 'ledger.sqlite'}" in run("ledger", "optout").err
    assert run("ledger", "optout").err == ""


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
    assert answer_view.promise(survey) == (
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
    assert "please: question 'smoke': 'maybe' is not one of the 2 categories (yes, no)" in shown
    assert server.posts[0][24:].hex() in shown


def test_json_is_one_document(run, address):
    assert json.loads(run(*address, *MIXED, "--dry-run", "--json").out)["sent"] is False

"""Telemetry of an application: off where it is unwanted, announced first, one report per epoch, and silent."""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import replace

import pytest

from deniable.collect.client import AsyncTelemetry, Ledger, ManualClock, Telemetry, default_path, why_off
from deniable.collect.client.telemetry import BUILD_SERVERS, explained, notice, on_terminal
from deniable.errors import DomainError, SpecError
from deniable.protocols import GRR, Stratified
from deniable.surveys import Question, Survey
from deniable.surveys.promises import promises
from tests.collect.client.test_recording import MINUTES, reported, usage
from tests.collect.surveys import TODAY

OFF = [{"DO_NOT_TRACK": "1"}, {"DO_NOT_TRACK": "true", "CI": "0"}, *({name: "true"} for name in BUILD_SERVERS)]


@pytest.fixture
def shown():
    return []


@pytest.fixture
def application(server, clock, tmp_path, shown):
    """Telemetry of one device; its notice is seen."""

    def make(survey=None, environ=None, seen=True, **options):
        asked = usage() if survey is None else survey
        given = {"idle": {"minutes": 0}, "clock": clock, "environ": environ or {}}
        ledger = tmp_path / "ledger.sqlite"
        return Telemetry(asked, server.url, ledger, notice=lambda text: shown.append(text) or seen, **given | options)

    return make


# -- off ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("environ", OFF, ids=lambda one: next(iter(one)))
def test_off_is_decided_before_anything_is_read_or_written(environ, server, tmp_path, shown, application):
    telemetry = application(tmp_path / "no-such-survey.json", environ)
    assert telemetry.off == next(iter(environ))
    assert telemetry.record("minutes", 5) is False
    assert telemetry.settle() == []
    telemetry.close()
    assert (list(tmp_path.iterdir()), server.requests, shown) == ([], [], [])


def test_off_opens_no_file(monkeypatch, tmp_path):
    """Not even for reading: every opened file is listed by the interpreter itself."""
    opened, armed = [], [True]
    sys.addaudithook(lambda event, args: opened.append(args[0]) if armed[0] and event in WATCHED else None)
    telemetry = Telemetry(tmp_path / "survey.json", "https://collect.example.org", environ={"CI": "1"})
    telemetry.record("minutes", 1)
    telemetry.settle()
    opened_while_off = list(opened)
    with pytest.raises(OSError, match="survey"):
        Telemetry(tmp_path / "survey.json", "https://collect.example.org", environ={}).record("minutes", 1)
    armed[0] = False
    assert opened_while_off == []
    assert any("survey.json" in str(one) for one in opened), "the check can fail"


WATCHED = ("open", "sqlite3.connect", "socket.connect", "os.listdir", "os.scandir")


@pytest.mark.parametrize("value", ["", "0", "false", "No", " off "])
def test_a_variable_that_says_no_turns_nothing_off(value):
    assert why_off({"DO_NOT_TRACK": value, "CI": value}) is None


def test_the_environment_of_the_process_decides(monkeypatch, tmp_path):
    for name in BUILD_SERVERS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    assert why_off() is None
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    assert why_off() == "DO_NOT_TRACK"
    assert Telemetry(tmp_path / "none.json", "https://collect.example.org").record("minutes", 1) is False


# -- the notice --------------------------------------------------------------------------------------------------


def test_the_notice_comes_first_and_once(application, shown, server, clock, tmp_path):
    survey = usage()
    telemetry = application(survey)
    assert shown == []
    assert telemetry.record("minutes", 3)
    assert telemetry.record("minutes", 4)
    assert shown == [notice(survey, ledger=tmp_path / "ledger.sqlite")]
    assert f"optout {survey.fingerprint} --ledger {tmp_path / 'ledger.sqlite'}" in shown[0]
    assert "--ledger" not in notice(survey, ledger=default_path())
    assert application(survey).record("minutes", 5), "the next start of the application"
    assert len(shown) == 1
    clock.days(1)
    telemetry.settle()
    assert reported(server, survey) == [(0, 5)]


def test_nothing_is_recorded_if_nobody_can_see_the_notice(application, shown, server, tmp_path):
    telemetry = application(seen=False)
    assert telemetry.record("minutes", 3) is False
    assert telemetry.settle() == []
    assert len(shown) == 2, "it is shown again until somebody can see it"
    assert (list(tmp_path.iterdir()), server.requests) == ([], [])


def test_a_terminal_shows_the_notice_and_a_pipe_does_not(monkeypatch, capsys):
    assert on_terminal("hello") is False
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert on_terminal("hello") is True
    assert capsys.readouterr().err == "hello\n"
    monkeypatch.setattr(sys, "stderr", None)
    assert on_terminal("hello") is False


def test_a_device_that_opted_out_sees_and_sends_nothing(application, shown, server, clock):
    telemetry = application()
    telemetry.record("minutes", 3)
    telemetry.client.opt_out()
    clock.days(1)
    again = application()
    assert again.record("minutes", 4) is False
    assert again.settle() == telemetry.settle() == []
    assert len(shown) == 1
    assert server.requests == []


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_notice_says_who_what_and_how_to_stop(language):
    survey = usage()
    text = notice(survey, language)
    said = promises(survey, language=language)
    facts = (survey.terms.owner, survey.terms.purpose, MINUTES.text, "DO_NOT_TRACK=1", survey.fingerprint)
    assert all(one in text for one in (*facts, said["line"], said["guess"]))
    sentences = [one for _, part in explained(survey, language) for one in part]
    assert said["sure"] in " ".join(sentences)
    assert any(str(24 + survey.report_bytes) in one for one in sentences)


def test_the_notice_says_what_is_sent_in_clear():
    protocol = Stratified({"country": ["here", "there"]}, GRR(["yes", "no"], epsilon=1))
    survey = Survey("usage", [Question("smoke", "Do you smoke?", protocol)], usage().terms)
    assert promises(survey)["clear"] in notice(survey)
    listed = Survey("usage", [Question("smoke", "Do you smoke?", protocol.inner)], usage().terms)
    assert "Do you smoke? (yes, no)" in explained(listed, "de")[0][1]


def test_a_survey_for_files_is_no_telemetry():
    with pytest.raises(SpecError, match="for files"):
        explained(Survey("usage", [MINUTES]))


# -- reports -----------------------------------------------------------------------------------------------------


def test_a_clock_of_the_tests_moves_the_epochs(application, server):
    survey, clock = usage(), ManualClock(TODAY + 3600.0)
    telemetry = application(survey, clock=clock)
    for day in range(3):
        telemetry.record("minutes", day)
        clock.advance(days=1)
        (receipt,) = telemetry.settle()
        assert (receipt.fresh, receipt.state) == (True, "sent")
        assert telemetry.settle() == []
    clock.advance(-86_400)
    assert reported(server, survey) == [(0, 0), (1, 1), (2, 2)]


def test_a_receipt_says_whether_the_epoch_was_answered_before(application, clock):
    client = application().client
    client.ledger.pin(usage())
    assert client.answer({"minutes": 3}).fresh
    assert not client.answer({"minutes": 4}).fresh


def test_asyncio(application, server, clock):
    survey = usage()

    async def session():
        telemetry = AsyncTelemetry(application(survey))
        assert await telemetry.record("minutes", 2)
        await asyncio.gather(*(telemetry.record("minutes", 1, add=True) for _ in range(5)))
        clock.days(1)
        made = await telemetry.settle()
        await telemetry.close()
        return made

    (receipt,) = asyncio.run(session())
    assert receipt.fresh
    assert reported(server, survey) == [(0, 7)]


def test_nothing_is_logged_and_no_error_repeats_a_value(application, clock, caplog, capfd):
    caplog.set_level(0)
    logging.disable(logging.NOTSET)
    telemetry = application()
    telemetry.record("minutes", 17)
    with pytest.raises(DomainError) as wrong:
        telemetry.record("minutes", 987_654)
    clock.days(1)
    telemetry.settle()
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
    assert "987" not in str(wrong.value)


def test_a_survey_that_replaces_another_waits_for_consent(application, server, shown, clock):
    first = usage()
    application(first).record("minutes", 1)
    second = Survey("usage", first.questions, replace(first.terms, purpose="To plan more.", replaces=first.fingerprint))
    telemetry = application(second)
    assert telemetry.record("minutes", 2)
    assert len(shown) == 2
    clock.days(1)
    assert telemetry.settle() == []
    assert server.posts == []
    telemetry.client.answer({"minutes": 3}, accept_changes=True)
    clock.days(1)
    telemetry.record("minutes", 4)
    clock.days(1)
    assert [receipt.state for receipt in telemetry.settle()] == ["sent"]
    assert len(server.posts) >= 2


def test_the_ledger_may_be_shared(application, tmp_path):
    telemetry = application()
    telemetry.record("minutes", 1)
    survey = usage()
    assert Ledger(tmp_path / "ledger.sqlite").pinned(survey.fingerprint) == survey.canonical

"""Campaigns on a device: one round is answered and paid for, and the second is refused before answers are looked at."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace
from fractions import Fraction

import pytest
from typer.testing import CliRunner

from deniable.cli import app
from deniable.collect.client import Client, Ledger, TookPart
from deniable.collect.client.ledger import STEPS
from deniable.domains import Interval
from deniable.protocols import Window
from deniable.surveys import Budget, Narrowing, Question, Survey
from deniable.surveys.campaign import next_round, verify
from deniable.surveys.promises import promises
from tests.collect.client.hooks import hooked
from tests.collect.surveys import TODAY
from tests.surveys.rounds import COUNTS, DAY, first_round, tally_of

FIRST = first_round(start=TODAY - DAY)
SECOND = next_round(FIRST, tally_of(FIRST, *COUNTS), TODAY - DAY, TODAY + 6 * DAY)
"""Both are open, so that nothing but the ledger keeps a device from answering twice."""
ANSWER = {"hours": 38.5}
SAID = "you took part in round 1, and this is round 2 of the same collection: one device answers one round"


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite")


def spent(ledger):
    return [one.spent for one in ledger.budgets()]


def test_a_device_answers_one_round_and_is_told_so_kindly(device):
    first, second = device(FIRST), device(SECOND)
    assert first.answer(ANSWER).state == "sent"
    with pytest.raises(TookPart, match=SAID) as refused:
        second.answer(ANSWER)
    assert (refused.value.answered, refused.value.asked) == (1, 2)
    assert second.history() == []
    assert spent(first.ledger) == [1], "the debit is once"
    assert first.answer(ANSWER).fresh is False, "the receipt of the first time"


def test_the_refusal_does_not_look_at_the_answers(ledger):
    ledger.submit(FIRST, 0, ANSWER)
    for answer in (38.5, "not a number", None, float("nan")):
        with pytest.raises(TookPart, match=SAID):
            ledger.submit(SECOND, 0, {"hours": answer})


def test_the_page_says_what_the_ledger_does(ledger):
    first, second = (promises(survey)["round"] for survey in (FIRST, SECOND))
    assert first == (
        "This is round 1 of 2 of one collection. The sums of this round decide what round 2 asks, by a published rule: "
        "the same numbers, on a narrower interval if most people surely lie inside it. This device answers one round: "
        "once it has made a report for one, it makes none for another."
    )
    assert "The survey names the sums of round 1 that it was made from, so that whoever has them can check" in second
    ledger.submit(FIRST, 0, ANSWER)
    with pytest.raises(TookPart):
        ledger.submit(SECOND, 0, ANSWER)
    assert SECOND.terms.campaign.tally == tally_of(FIRST, *COUNTS).digest
    verify([FIRST, SECOND], [tally_of(FIRST, *COUNTS)])
    forgets = promises(FIRST, "browser", lasting=False)["round"]
    assert "This browser answers one round, as far as it remembers" in forgets


def test_the_second_round_keeps_a_device_from_the_first(ledger):
    ledger.submit(SECOND, 0, ANSWER)
    with pytest.raises(TookPart, match="you took part in round 2, and this is round 1"):
        ledger.submit(FIRST, 0, ANSWER)


def test_a_device_that_has_only_looked_at_a_round_may_answer_another(ledger):
    ledger.pin(FIRST)
    assert ledger.submit(SECOND, 0, ANSWER)[1]


def test_a_large_budget_does_not_let_a_device_answer_twice(ledger):
    # What refuses is the campaign, not the budget group: this one would have room for ten rounds.
    hours = Question("hours", "?", Window(Interval(0, 80, "hours"), 1))
    terms = replace(FIRST.terms, campaign=None, budget=Budget("large", Fraction(10)))
    first = Narrowing(cells=8).begin(Survey("work", [hours], terms))
    second = next_round(first, tally_of(first, *COUNTS))
    ledger.submit(first, 0, ANSWER)
    with pytest.raises(TookPart):
        ledger.submit(second, 0, ANSWER)
    other = Narrowing(cells=8).begin(Survey("another", [hours], terms))
    assert ledger.submit(other, 0, ANSWER)[1], "another campaign of the same owner is another campaign"


@pytest.mark.parametrize("leave", ["opt_out", "withdraw"])
def test_coming_back_is_no_second_round(ledger, leave):
    ledger.submit(FIRST, 0, ANSWER)
    getattr(ledger, leave)()
    ledger.opt_in()
    with pytest.raises(TookPart, match=SAID):
        ledger.submit(SECOND, 0, ANSWER)
    assert spent(ledger) == [1]


def test_a_report_that_the_service_refused_still_was_an_answer(device, server):
    first = device(FIRST)
    server.script = [(410, {})]
    assert first.answer(ANSWER).state == "dropped"
    with pytest.raises(TookPart, match=SAID):
        device(SECOND).answer(ANSWER)


def test_a_crash_leaves_all_of_a_round_or_nothing(tmp_path):
    # Killed before the commit the device has answered nothing and may take part in round 2; after it, it may not.
    for step in STEPS:
        path = tmp_path / f"{step}.sqlite"
        pid = os.fork()
        if not pid:

            def stop(reached, step=step):
                if reached == step:
                    os.kill(os.getpid(), signal.SIGKILL)

            client = hooked(Client("http://127.0.0.1:9", FIRST.fingerprint, path, clock=lambda: TODAY + 1.0), stop)
            client.ledger.submit(FIRST, 0, ANSWER)
            os._exit(1)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        ledger = Ledger(path)
        if step == "committed":
            with pytest.raises(TookPart):
                ledger.submit(SECOND, 0, ANSWER)
        else:
            assert ledger.submit(SECOND, 0, ANSWER)[1]
        assert spent(ledger) == [1]


def test_a_restored_copy_forgets_a_round_as_it_forgets_an_epoch(ledger, tmp_path):
    # As the ledger says of itself: what was done since the copy is forgotten, debit and round alike.
    ledger.pin(FIRST)
    copy = tmp_path / "copy.sqlite"
    shutil.copy2(ledger.path, copy)
    ledger.submit(FIRST, 0, ANSWER)
    shutil.copy2(copy, ledger.path)
    assert ledger.submit(SECOND, 0, ANSWER)[1]
    shutil.copy2(copy, ledger.path)
    ledger.submit(FIRST, 0, ANSWER)
    shutil.copy2(ledger.path, copy)
    shutil.copy2(copy, ledger.path)
    with pytest.raises(TookPart):
        ledger.submit(SECOND, 0, ANSWER)


def test_the_command_line_refuses_before_it_asks(server, tmp_path, monkeypatch):
    monkeypatch.setenv("DENIABLE_LEDGER", str(tmp_path / "ledger.sqlite"))

    def ran(survey, *more, code):
        server.publish(survey)
        done = CliRunner().invoke(app, ["answer", server.url, survey.fingerprint, *more])
        assert done.exit_code == code, done.output
        return done

    said = ran(FIRST, "hours=38.5", code=0).stdout
    assert "This is round 1 of 2 of one collection." in said.replace("\n", " ")
    refused = ran(SECOND, code=2).stderr.replace("\n", " ")
    assert SAID in refused
    assert "every question needs an answer" not in refused
    assert len(server.posts) == 1

"""kill -9 at every step, processes and threads on one ledger, forks: one submission an epoch, the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from deniable.collect.client import Client, Ledger
from deniable.collect.client.ledger import STEPS
from tests.collect.client.crashing import ANSWERS
from tests.collect.surveys import daily, memoized, mixed

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks as on Unix")

EVERY_STEP = (*STEPS, "sending", "replied", "marked")
BEFORE_THE_COMMIT = STEPS[: STEPS.index("committed")]


def run(*args):
    done = subprocess.run(
        [sys.executable, "-m", "tests.collect.client.crashing", *map(str, args)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def wrong(server, survey, folder, now, steps) -> list[str]:
    """What devices that died at these steps have done wrong, after they have come back and answered again."""
    found, bodies = [], set()
    ledgers = [Ledger(folder / f"{step}.sqlite") for step in steps]
    written = {known.body for ledger in ledgers for known in ledger.submissions()}
    if not set(server.posts) <= written:
        found.append("other bytes were sent than were written down")
    for ledger in ledgers:
        before = ledger.submissions()
        with Client(server.url, survey.fingerprint, ledger, clock=lambda: now) as client:
            client.answer(ANSWERS, wait=None)
            client.flush()
            (after,) = client.history()
            bodies.add(after.body)
            if before and before[0].body != after.body:
                found.append("the bytes have changed")
            if client.budget().spent != survey.epsilon:
                found.append("not paid for exactly once")
    if len(server.counted) != len(steps) or server.conflicts or set(server.posts) != bodies:
        found.append("a second sample was sent")
    return found


def test_kill_9_at_every_step(server, clock, tmp_path):
    survey = mixed()
    server.publish(survey)
    ended = run("crash", server.url, survey.fingerprint, tmp_path, clock.now, "sound", *EVERY_STEP)
    assert ended == dict.fromkeys(EVERY_STEP, -9)
    assert len(server.posts) == 2, "of the devices that died at 'replied' and at 'marked'"
    for step in EVERY_STEP:
        known = Ledger(tmp_path / f"{step}.sqlite").submissions()
        assert len(known) == (step not in BEFORE_THE_COMMIT)
        assert [submission.state for submission in known] == ["sent" if step == "marked" else "queued"] * len(known)
    assert wrong(server, survey, tmp_path, clock.now, EVERY_STEP) == []


@pytest.mark.parametrize(
    ("variant", "step", "complaint"),
    [("debits afterwards", "replied", "written down"), ("draws again", "replied", "a second sample")],
)
def test_broken_clients_are_caught(server, clock, tmp_path, variant, step, complaint):
    survey = mixed()
    server.publish(survey)
    assert run("crash", server.url, survey.fingerprint, tmp_path, clock.now, variant, step) == {step: -9}
    assert complaint in " ".join(wrong(server, survey, tmp_path, clock.now, [step]))


def test_a_withdrawal_that_dies_half_way_is_finished_later(tmp_path):
    class Died(BaseException):
        pass

    def die(step):
        if step == "forgotten":
            raise Died

    path = tmp_path / "ledger.sqlite"
    Ledger(path).submit(daily(), 0, {"smoke": "yes"})
    old = Ledger(path).secret_path.read_bytes()
    dying = Ledger(path)
    dying._step = die
    with pytest.raises(Died):
        dying.withdraw()
    ledger = Ledger(path)
    assert ledger.secret_path.exists()
    ledger.opt_in()
    ledger.submit(daily(), 1, {"smoke": "yes"})
    assert ledger.secret_path.read_bytes() != old


def test_processes_that_race(server, clock, tmp_path):
    survey = daily()
    server.publish(survey)
    assert run("race", server.url, survey.fingerprint, tmp_path, clock.now, 5, 7) == [0] * 5
    ledger = Ledger(tmp_path / "ledger.sqlite")
    known = ledger.submissions()
    assert [submission.epoch for submission in known] == [10, 11, 12, 13, 14]
    assert {submission.state for submission in known} == {"sent"}
    assert sorted(server.counted.values()) == sorted(submission.body for submission in known)
    assert server.conflicts == 0
    assert ledger.budgets()[0].spent == 5


def test_a_ledger_and_its_secret_that_appear_while_one_looks(tmp_path, monkeypatch):
    """Another process makes both between two looks: that is no lost ledger."""
    from deniable.collect.client import database

    path = tmp_path / "ledger.sqlite"
    looked = []

    def exists(where):
        looked.append(os.path.lexists(where))
        if len(looked) == 1:
            monkeypatch.setattr(database.secret, "exists", os.path.lexists)
            Ledger(path).submit(daily(), 0, {"smoke": "yes"})
        return looked[0]

    monkeypatch.setattr(database.secret, "exists", exists)
    assert database.present(path)
    assert looked == [False]


def test_threads_that_race(server, device, clock):
    client = device(memoized())
    receipts, moods = [], ["good", "fair", "bad"] * 4
    barrier = threading.Barrier(len(moods))

    def work(mood):
        barrier.wait()
        receipts.append(client.answer({"mood": mood}, wait=None))

    threads = [threading.Thread(target=work, args=(mood,)) for mood in moods]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(receipts) == len(moods)
    assert len({receipt.body for receipt in receipts}) == 1
    assert sum(receipt.fresh for receipt in receipts) == 1
    assert set(server.posts) == {receipts[0].body}


def test_a_fork_in_the_middle_of_a_submission(server, clock, tmp_path):
    survey = daily()
    server.publish(survey)
    assert run("fork", server.url, survey.fingerprint, tmp_path, clock.now) == [0, True]
    assert len(server.counted) == 2
    assert server.conflicts == 0

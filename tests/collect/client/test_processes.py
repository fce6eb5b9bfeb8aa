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
    found = []
    ledgers = [Ledger(folder / f"{step}.sqlite") for step in steps]
    known = [known for ledger in ledgers for known in ledger.submissions()]
    waiting, erased = {one.body for one in known if one.body}, sum(one.erased for one in known)
    if len(set(server.posts) - waiting) > erased:
        found.append("other bytes were sent than were written down")
    for ledger in ledgers:
        before, sent = ledger.submissions(), len(server.posts)
        with Client(server.url, survey.fingerprint, ledger, clock=lambda: now) as client:
            client.answer(ANSWERS, wait=None)
            client.flush()
            if before and set(server.posts[sent:]) - {before[0].body}:
                found.append("the bytes have changed")
            if client.budget().spent != survey.epsilon:
                found.append("not paid for exactly once")
            if [after.state for after in client.history()] != ["sent"] or not client.history()[0].erased:
                found.append("what was sent is not erased")
    if not len(server.counted) == len(set(server.posts)) == len(steps) or server.conflicts:
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


def test_processes_that_race(server, clock, tmp_path):
    survey = daily()
    server.publish(survey)
    assert run("race", server.url, survey.fingerprint, tmp_path, clock.now, 5, 7) == [0] * 5
    ledger = Ledger(tmp_path / "ledger.sqlite")
    known = ledger.submissions()
    assert [submission.epoch for submission in known] == [10, 11, 12, 13, 14]
    assert {submission.state for submission in known} == {"sent"}
    assert all(submission.erased for submission in known)
    assert len(server.counted) == len(set(server.posts)) == 5
    assert server.conflicts == 0
    assert ledger.budgets()[0].spent == 5


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
    (first,) = [receipt for receipt in receipts if receipt.fresh]
    assert {receipt.body for receipt in receipts} <= {first.body, b""}
    assert set(server.posts) == {first.body}


def test_a_fork_in_the_middle_of_a_submission(server, clock, tmp_path):
    survey = daily()
    server.publish(survey)
    assert run("fork", server.url, survey.fingerprint, tmp_path, clock.now) == [0, True]
    assert len(server.counted) == 2
    assert server.conflicts == 0

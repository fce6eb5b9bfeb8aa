"""Devices in processes of their own, forked from one that has everything imported: run as `python -m`.

crash URL FINGERPRINT FOLDER NOW VARIANT STEP...   kill -9 at each step of an answer; prints how each process ended
race URL FINGERPRINT FOLDER NOW CHILDREN DAYS      children answer the same days on one ledger
fork URL FINGERPRINT FOLDER NOW                    fork while another thread is in the middle of a submission
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path

from deniable.collect.client import BudgetSpent, Client
from deniable.collect.client.client import judged
from deniable.collect.client.records import preview
from tests.collect.client.hooks import hooked

ANSWERS = {"smoke": "yes", "drink": 3, "age": 42, "town": 7}


class DebitsAfterwards(Client):
    """A broken client: it sends first and writes it down when it has arrived."""

    def answer(self, answers, *, wait=0.0):
        survey, epoch = self.survey(), self.epoch()
        body = preview(survey, epoch, answers)
        self._step("sending")
        judged(self._transport.post(f"/v1/surveys/{self.fingerprint}/reports", body, {}))
        self._step("replied")
        return super().answer(answers, wait=wait)


class DrawsAgain(Client):
    """A broken client: every attempt draws new randomness, under the same id."""

    def _attempt(self, submission):
        self._step("sending")
        drawn = preview(self.survey(), submission.epoch, ANSWERS)
        body = submission.body[:24] + drawn[24:]
        attempt = judged(self._transport.post(f"/v1/surveys/{self.fingerprint}/reports", body, {}))
        self._step("replied")
        return attempt


VARIANTS = {"sound": Client, "debits afterwards": DebitsAfterwards, "draws again": DrawsAgain}


def answers(client: Client) -> dict:
    return {question.id: ANSWERS[question.id] for question in client.survey()}


def child(work) -> int:
    """A process that does this and nothing after it; its id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def crash(url, fingerprint, folder, now, variant, *steps):
    ended = {}
    for step in steps:

        def stop(reached, step=step):
            if reached == step:
                os.kill(os.getpid(), signal.SIGKILL)

        def work(step=step, stop=stop):
            path = Path(folder) / f"{step}.sqlite"
            made = hooked(VARIANTS[variant](url, fingerprint, path, clock=lambda: float(now)), stop)
            made.answer(answers(made))

        _, status = os.waitpid(child(work), 0)
        ended[step] = os.waitstatus_to_exitcode(status)
    return ended


def race(url, fingerprint, folder, now, children, days):
    start, moments = time.time() + 0.1, [float(now) + 86_400 * day for day in range(int(days))]

    def work():
        clock = {"now": moments[0]}
        client = Client(url, fingerprint, Path(folder) / "ledger.sqlite", clock=lambda: clock["now"])
        time.sleep(max(0.0, start - time.time()))
        for moment in moments:
            clock["now"] = moment
            with suppress(BudgetSpent):
                client.answer(answers(client), wait=20)

    started = [child(work) for _ in range(int(children))]
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in started]


def fork(url, fingerprint, folder, now):
    inside, done = threading.Event(), []

    def slow(step):
        if step == "drawn":
            inside.set()
            time.sleep(0.3)

    path = Path(folder) / "ledger.sqlite"
    first = hooked(Client(url, fingerprint, path, clock=lambda: float(now)), slow)
    given = answers(first)
    thread = threading.Thread(target=lambda: done.append(first.answer(given)))
    thread.start()
    inside.wait()

    def work():
        # The child uses the very objects that its parent was using, and new ones.
        first.ledger._step = lambda step: None
        assert first.answer(given).fresh is False
        client = Client(url, fingerprint, path, clock=lambda: float(now) + 86_400)
        assert client.answer(given).fresh is True
        assert first.flush(timeout=20).queued == 0

    _, status = os.waitpid(child(work), 0)
    thread.join()
    return [os.waitstatus_to_exitcode(status), done[0].fresh]


if __name__ == "__main__":
    print(json.dumps({"crash": crash, "race": race, "fork": fork}[sys.argv[1]](*sys.argv[2:])))

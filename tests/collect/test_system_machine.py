"""Devices, wire, service and store together, under every fault that we could think of, in any order.

A hypothesis state machine over real parts: `deniable serve` as a process that is killed and started again, real clients
with ledgers on disk, a wire that loses requests and responses. What must hold, on SQLite and on PostgreSQL:

- every acknowledged submission is counted exactly once unless it was deleted, nothing is counted that no device has
  sent or that was deleted, and the tallies are the sums of the counted reports, integer for integer
- one device and epoch give one submission; no ledger spends more than its cap
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from deniable.collect import wire
from deniable.collect.client import BudgetSpent, Client, Ledger, NotOpen
from deniable.collect.client.records import SENT
from deniable.collect.stores import open_store
from deniable.collect.stores.batches import SurveyCounter
from deniable.surveys import Longitudinal, Question, Survey
from tests.collect import surveys
from tests.collect.client.hooks import hooked
from tests.collect.conftest import new_url
from tests.collect.server.live import Process, prepare
from tests.collect.wire_faults import DROP_REQUEST, DROP_RESPONSE, TEAR_REQUEST, Wire

DEVICES = st.integers(0, 2)
VALUES = st.sampled_from(["yes", "no"])
STEPS = st.sampled_from(["begun", "checked", "drawn", "keyed", "written", "committed", "sending", "replied", "marked"])
CAP = 4


def the_survey() -> Survey:
    """Hours as epochs, of which many are taken at once, so that devices' clocks may run wild."""
    question = Question("smoke", "Do you smoke?", surveys.SMOKE.protocol)
    return Survey(
        "machine",
        [question],
        surveys.terms(
            time.time(),
            seconds=86_400,
            longitudinal=Longitudinal(epochs=CAP),
            budget=CAP,
            retention="reports",
            early=20,
            late=20,
        ),
    )


class System(RuleBasedStateMachine):
    """`store_kind` and `urls` are given by the tests."""

    store_kind = "sqlite"
    urls: Iterator[str] | None = None

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="deniable-machine-"))
        self.notes = self.folder / "notes"
        self.notes.mkdir()
        self.survey = the_survey()
        self.url = f"sqlite:///{self.folder / 'store.db'}" if self.urls is None else next(self.urls)
        with open_store(self.url) as store:
            prepare(store, self.survey)
        self.server = Process(self.url)
        self.wire = Wire(self.server.port)
        self.offered: dict[bytes, set[bytes]] = {}
        self.acknowledged: set[bytes] = set()
        self.deleted: set[bytes] = set()
        self.closed: set[int] = set()
        self.days = [0, 0, 0]
        self.copies: dict[int, Path] = {}
        self.restored: set[int] = set()

    def client(self, device: int, step: Any = lambda step: None) -> Client:
        def noting(reached: str) -> None:
            if reached == "committed":
                self.note(device)
            step(reached)

        client = Client(
            self.wire.url,
            self.survey.fingerprint,
            self.ledger(device),
            clock=lambda: time.time() + 86_400 * self.days[device],
            timeout=10,
        )
        return hooked(client, noting)

    def ledger(self, device: int) -> Path:
        return self.folder / f"device-{device}" / "ledger.sqlite"

    def take_stock(self, device: int) -> None:
        """What a ledger was going to send, and what it says was acknowledged."""
        if not self.ledger(device).exists():
            return
        for path in self.notes.iterdir():
            body = path.read_bytes()
            self.offered.setdefault(body[8:24], set()).add(body)
        for submission in Ledger(self.ledger(device)).submissions(self.survey.fingerprint):
            if submission.state == SENT:
                self.acknowledged.add(submission.id)

    def note(self, device: int) -> None:
        """Keep what waits: a ledger erases it once it is acknowledged, perhaps in a process that dies then."""
        for submission in Ledger(self.ledger(device)).submissions(self.survey.fingerprint):
            if submission.body:
                (self.notes / hashlib.sha256(submission.body).hexdigest()).write_bytes(submission.body)

    # -- what devices do ---------------------------------------------------------------------------

    @rule(device=DEVICES, value=VALUES)
    def answer(self, device: int, value: str) -> None:
        self.ledger(device).parent.mkdir(exist_ok=True)
        with suppress(BudgetSpent, NotOpen, ConnectionError):
            self.client(device).answer({"smoke": value})
        self.take_stock(device)

    @rule(device=DEVICES, value=VALUES, at=STEPS)
    def answer_and_die(self, device: int, value: str, at: str) -> None:
        """kill -9 of the device's process at a step of its ledger or its sending."""
        self.ledger(device).parent.mkdir(exist_ok=True)

        def step(reached: str) -> None:
            if reached == at:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            try:
                self.client(device, step).answer({"smoke": value})
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        self.take_stock(device)

    @rule(device=DEVICES)
    def flush(self, device: int) -> None:
        if self.ledger(device).exists():
            with suppress(ConnectionError):
                self.client(device).flush(timeout=0)
        self.take_stock(device)

    @rule(device=DEVICES, days=st.integers(-3, 3))
    def set_the_clock(self, device: int, days: int) -> None:
        self.days[device] = days

    @rule(device=DEVICES)
    def copy_the_ledger(self, device: int) -> None:
        if self.ledger(device).exists():
            copy = self.folder / f"copy-{device}"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.ledger(device).parent, copy)
            self.copies[device] = copy

    @rule(device=DEVICES)
    def restore_the_copy(self, device: int) -> None:
        if device in self.copies:
            self.take_stock(device)
            shutil.rmtree(self.ledger(device).parent)
            shutil.copytree(self.copies[device], self.ledger(device).parent)
            self.restored.add(device)

    # -- what the wire and the service do ----------------------------------------------------------

    @rule(fault=st.sampled_from([DROP_REQUEST, DROP_RESPONSE, TEAR_REQUEST]))
    def lose(self, fault: str) -> None:
        self.wire.next_fault = fault

    @rule()
    def kill_the_server(self) -> None:
        self.server.close()
        self.server.kill()
        self.server.start()

    @rule(choose=st.randoms(use_true_random=False))
    def replay(self, choose: Any) -> None:
        """Somebody sends again what they have seen."""
        if self.offered:
            bodies = sorted(body for some in self.offered.values() for body in some)
            answered = self.server.post(self.survey, choose.choice(bodies))
            assert answered.status == 200

    @rule(choose=st.randoms(use_true_random=False))
    def mix_good_and_bad(self, choose: Any) -> None:
        """A batch with one bad record: the good one is taken."""
        if not self.offered:
            return
        body = choose.choice(sorted(body for some in self.offered.values() for body in some))
        epoch, id, raw = int.from_bytes(body[4:8], "little"), body[8:24], body[24:]
        records = [(id, epoch, raw), (os.urandom(16), epoch, b"\xff" * len(raw))]
        answered = self.server.post(self.survey, wire.encode_json(records), wire.JSON)
        assert answered.status == 200
        assert [1, wire.to_text(records[1][0]), wire.BAD_PAYLOAD] in [list(one) for one in answered.json["rejected"]]

    @rule(choose=st.randoms(use_true_random=False))
    def delete_a_report(self, choose: Any) -> None:
        """Somebody who knows an id has its report deleted; what is sent again later is not counted again."""
        if self.offered:
            id = choose.choice(sorted(self.offered))
            path = f"/v1/surveys/{self.survey.fingerprint}/reports/{wire.to_text(id)}"
            answered = self.server.ask("DELETE", path)
            assert answered.status == 200
            if answered.json["deleted"]:
                assert id not in self.deleted
                self.deleted.add(id)

    @rule(epoch=st.integers(8, 12))
    def close_an_epoch(self, epoch: int) -> None:
        path = f"/v1/surveys/{self.survey.fingerprint}/epochs/{epoch}/close"
        assert self.server.ask("POST", path, b"", role="admin").status in (200, 404)

    # -- what must hold ----------------------------------------------------------------------------

    @invariant()
    def everything_adds_up(self) -> None:
        if not hasattr(self, "url"):
            return
        counter = SurveyCounter(self.survey)
        with open_store(self.url) as store:
            tally = store.tally(self.survey.fingerprint)["smoke"]
            counted: dict[bytes, bytes] = {}
            for batch in store.reports(self.survey.fingerprint):
                for id, raw in zip(batch.ids, batch.answers, strict=True):
                    assert id.tobytes() not in counted
                    counted[id.tobytes()] = raw.tobytes()
            assert store.check() == []
        assert self.acknowledged - self.deleted <= set(counted)
        assert not self.deleted & set(counted)
        for id, raw in counted.items():
            assert raw in {body[24:] for body in self.offered[id]}
        rows = np.frombuffer(b"".join(counted.values()), dtype=np.uint8).reshape(-1, self.survey.report_bytes)
        expected = counter.tally(len(rows), counter.count(rows))["smoke"]
        assert tally == expected

    @invariant()
    def ledgers_keep_their_word(self) -> None:
        for device in range(3):
            if not hasattr(self, "url") or not self.ledger(device).exists():
                continue
            book = Ledger(self.ledger(device))
            if book.pinned(self.survey.fingerprint) is None:
                continue
            assert book.spending(self.survey.terms).spent <= CAP  # type: ignore[arg-type]
            epochs = [submission.epoch for submission in book.submissions(self.survey.fingerprint)]
            assert len(epochs) == len(set(epochs)) <= CAP
        if not getattr(self, "restored", True):
            assert all(len(bodies) == 1 for bodies in self.offered.values())

    def teardown(self) -> None:
        if not hasattr(self, "url"):
            return
        try:
            for device in range(3):
                if self.ledger(device).exists():
                    self.wire.next_fault = None
                    self.client(device).flush(timeout=5)
                    self.take_stock(device)
            self.everything_adds_up()
        finally:
            self.wire.close()
            self.server.__exit__()
            shutil.rmtree(self.folder, ignore_errors=True)


def play(machine: type[System], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            derandomize=True,
        ),
    )


def machine_on(kind: str, request: pytest.FixtureRequest, folder: Path) -> type[System]:
    def databases() -> Iterator[str]:
        while True:
            yield request.getfixturevalue("postgres_server").new_database()

    found = databases() if kind == "postgres" else None
    if kind == "postgres":
        new_url(kind, request, folder)  # skips, or fails, where there is no PostgreSQL
    return type("On" + kind.title(), (System,), {"store_kind": kind, "urls": found})


STORY = [
    ("answer", 0, "yes"),
    ("copy_the_ledger", 0),
    ("lose", DROP_RESPONSE),
    ("answer", 1, "no"),
    ("answer_and_die", 2, "yes", "sending"),
    ("set_the_clock", 0, 1),
    ("answer", 0, "no"),
    ("kill_the_server",),
    ("flush", 2),
    ("replay", Random(1)),
    ("mix_good_and_bad", Random(2)),
    ("delete_a_report", Random(3)),
    ("replay", Random(4)),
    ("restore_the_copy", 0),
    ("answer", 0, "no"),
    ("lose", TEAR_REQUEST),
    ("set_the_clock", 1, -1),
    ("answer", 1, "yes"),
    ("close_an_epoch", 10),
    ("flush", 1),
    ("replay", Random(5)),
]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_one_story_in_which_everything_happens(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Every rule at least once, and what must hold after each step."""
    rules = {name for name, member in vars(System).items() if hasattr(member, "hypothesis_stateful_rule")}
    assert rules == {name for name, *_ in STORY}
    machine = machine_on(kind, request, tmp_path)()
    machine.begin()
    try:
        for name, *given in STORY:
            getattr(machine, name)(*given)
            machine.everything_adds_up()
            machine.ledgers_keep_their_word()
        assert len(machine.acknowledged) >= 4
        assert len(machine.deleted) == 1
    finally:
        machine.teardown()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_many_stories(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    play(machine_on(kind, request, tmp_path), examples=2, steps=20)


def test_the_machine_notices_an_acknowledgement_that_was_not_earned() -> None:
    """A device that believes in an acknowledgement that never came: the invariant fails."""

    class Gullible(System):
        def take_stock(self, device: int) -> None:
            super().take_stock(device)
            self.acknowledged |= set(self.offered)

    machine = Gullible()
    machine.begin()
    try:
        machine.wire.next_fault = DROP_REQUEST
        machine.answer(0, "yes")
        with pytest.raises(AssertionError):
            machine.everything_adds_up()
    finally:
        machine.teardown()

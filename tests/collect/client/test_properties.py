"""Any sequence of answers, clock moves, crashes, lost replies, restored copies: caps hold, what waits never changes."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import Phase, settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from deniable.collect.client import Client, NotOpen, Refused
from deniable.collect.client.client import send
from deniable.collect.client.ledger import STEPS
from deniable.collect.client.records import preview
from deniable.protocols import GRR, OUE
from deniable.surveys import Question, Survey
from deniable.surveys.terms import Longitudinal
from tests.collect.client.conftest import SHM, Clock
from tests.collect.client.hooks import hooked
from tests.collect.client.server import DROP_REQUEST, DROP_RESPONSE, OK, PORTAL, TORN, Server
from tests.collect.surveys import terms

CAP = 4
RULE, MEMO = Longitudinal(epochs=3), Longitudinal("memoize", epochs=6, values=3)
FRESH = Survey("fresh", [Question("q", "?", OUE(30, epsilon=1))], terms(longitudinal=RULE, budget=CAP))
KEPT = Survey("kept", [Question("q", "?", GRR(30, epsilon="1/2"))], terms(longitudinal=MEMO, budget=CAP))
TROUBLE = (OK, DROP_REQUEST, DROP_RESPONSE, PORTAL, TORN, (503, {}), (400, {}), ("reject", "epochTooOld"))
EVERY_STEP = (None, *STEPS, "sending", "replied", "marked")

surveys = st.sampled_from([FRESH, KEPT])


class Died(BaseException):
    """The process ends here."""


class DrawsAgain(Client):
    """A broken client: every attempt draws new randomness, under the same id."""

    def _attempt(self, submission):
        drawn = preview(self.survey(), submission.epoch, {"q": 0})
        return send(self._transport, replace(submission, body=submission.body[:24] + drawn[24:]))


class Device(RuleBasedStateMachine):
    """One device, two surveys of one budget group, a server that may misbehave."""

    kind = Client
    both_ways = True

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=SHM if SHM.is_dir() else None)
        self.path = Path(self.folder.name) / "ledger.sqlite"
        self.server, self.clock = Server(), Clock()
        for survey in (FRESH, KEPT):
            self.server.publish(survey)
        # A person who is asked again about the same epoch says the same.
        self.said: dict[tuple[str, int], int] = {}
        self.written: set[bytes] = set()

    def teardown(self) -> None:
        self.server.close()
        self.folder.cleanup()

    def client(self, survey: Survey, step=lambda step: None) -> Client:
        client = self.kind(self.server.url, survey.fingerprint, self.path, clock=self.clock)
        return hooked(client, step, self.clock.sleep, self.clock.timer)

    @rule(survey=surveys, value=st.integers(0, 29), step=st.sampled_from(EVERY_STEP))
    def answer(self, survey, value, step):
        def die(reached):
            if reached == "committed":
                self.written |= {known.body for known in self.client(survey).ledger.submissions()}
            if reached == step:
                raise Died

        client = self.client(survey, die)
        with suppress(NotOpen):
            said = self.said.setdefault((survey.fingerprint, client.epoch()), value)
            with suppress(Refused, Died):
                client.answer({"q": said})

    @rule(days=st.integers(-3, 3))
    def move_the_clock(self, days):
        self.clock.days(days if self.both_ways else abs(days))

    @rule(trouble=st.lists(st.sampled_from(TROUBLE), max_size=3))
    def trouble(self, trouble):
        self.server.script[:] = trouble

    @rule(survey=surveys)
    def flush(self, survey):
        self.client(survey).flush(timeout=60)

    @rule(survey=surveys)
    def opt_out_and_in(self, survey):
        client = self.client(survey)
        client.opt_out()
        client.opt_in()

    @invariant()
    def the_ledger_is_within_its_caps(self):
        ledger = self.client(FRESH).ledger
        assert sum((known.spent for known in ledger.budgets()), Fraction(0)) <= CAP
        for survey in (FRESH, KEPT):
            known = ledger.submissions(survey.fingerprint)
            assert len(known) <= survey.terms.longitudinal.epochs
            assert len({submission.epoch for submission in known}) == len(known)
            assert sum(submission.epsilon for submission in known) <= survey.budget_epsilon

    @invariant()
    def bytes_never_change(self):
        assert self.server.conflicts == 0

    @invariant()
    def what_was_sent_is_what_was_written(self):
        assert set(self.server.posts) <= self.written

    @invariant()
    def what_is_settled_is_erased(self):
        for known in self.client(FRESH).ledger.submissions():
            assert known.erased == (known.state != "queued")
            assert bool(known.id) == (known.state == "queued")

    @invariant()
    def one_survey_and_epoch_have_one_id(self):
        ids: dict[tuple[bytes, bytes], set[bytes]] = {}
        for raw in self.server.requests:
            if raw.startswith(b"POST"):
                body = raw.partition(b"\r\n\r\n")[2]
                ids.setdefault((raw.split(b" ")[1], body[4:8]), set()).add(body[8:24])
        assert all(len(found) == 1 for found in ids.values())


class Restored(Device):
    """The same with copies of the ledger that are put back: what was sent may be forgotten and drawn again.

    It counts once, since the ids are the same. Without clocks that are set back and without leaving, after which the
    keys of the ids are erased.
    """

    both_ways = False
    copies = Bundle("copies")

    @rule(target=copies)
    def copy(self):
        for survey in (FRESH, KEPT):
            self.client(survey).survey()
        return self.path.read_bytes()

    @rule(copy=copies)
    def restore(self, copy):
        self.path.write_bytes(copy)

    @rule(survey=surveys, value=st.integers(0, 29))
    def answer_twice(self, survey, value):
        copy = self.copy()
        self.answer(survey, value, None)
        self.path.write_bytes(copy)
        self.answer(survey, value, None)

    def opt_out_and_in(self):
        """Not here."""

    def bytes_never_change(self):
        """Not after a restore."""


class Renewed(Restored):
    """What must be caught: a device whose ids are random, so that a second sample counts twice."""

    def client(self, survey, step=lambda step: None):
        client = super().client(survey, step)
        submit = client.ledger.submit

        def renewed(survey, *rest):
            with client.ledger._transaction() as connection:
                connection.execute("UPDATE id_key SET key = randomblob(32)")
            return submit(survey, *rest)

        client.ledger.submit = renewed
        return client


class Forgetful(Device):
    """What must be caught."""

    kind = DrawsAgain


def check(machine, examples: int = 12, **more) -> None:
    chosen = settings(max_examples=examples, stateful_step_count=20, deadline=None, derandomize=True, **more)
    run_state_machine_as_test(machine, settings=chosen)


def test_any_sequence():
    check(Device)


def test_any_sequence_with_restored_copies():
    check(Restored)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [Device, Restored])
def test_many_sequences(machine):
    check(machine, examples=60)


def test_a_client_that_draws_again_is_caught():
    with pytest.raises(AssertionError):
        check(Forgetful, phases=[Phase.generate], report_multiple_bugs=False)


def test_ids_that_a_restored_copy_does_not_repeat_are_caught():
    with pytest.raises(AssertionError):
        check(Renewed, phases=[Phase.generate], report_multiple_bugs=False)

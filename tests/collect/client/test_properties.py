"""Any sequence of answers, clock moves, crashes, lost replies and restored copies: caps, one an epoch, the same bytes."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from deniable.collect.client import Client, NotOpen, Refused
from deniable.collect.client.ledger import STEPS
from deniable.protocols import GRR, OUE
from deniable.surveys import Question, Survey
from deniable.surveys.terms import Longitudinal
from tests.collect.client.conftest import SHM, Clock
from tests.collect.client.server import DROP_REQUEST, DROP_RESPONSE, OK, PORTAL, TORN, Server
from tests.collect.surveys import terms

CAP = 4
FRESH = Survey(
    "fresh", [Question("q", "?", OUE(30, epsilon=1))], terms(longitudinal=Longitudinal(epochs=3), budget=CAP)
)
KEPT = Survey(
    "kept", [Question("q", "?", GRR(30, epsilon="1/2"))], terms(longitudinal=Longitudinal("memoize", 6, 3), budget=CAP)
)
SURVEYS = st.sampled_from([FRESH, KEPT])
TROUBLE = st.sampled_from(
    [OK, DROP_REQUEST, DROP_RESPONSE, PORTAL, TORN, (503, {}), (400, {}), ("reject", "epochTooOld")]
)


class Died(BaseException):
    """The process ends here."""


class Device(RuleBasedStateMachine):
    """One device, two surveys of one budget group, a server that may misbehave."""

    copies = Bundle("copies")
    kind = Client

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=SHM if SHM.is_dir() else None)
        self.path = Path(self.folder.name) / "ledger.sqlite"
        self.server, self.clock = Server(), Clock()
        for survey in (FRESH, KEPT):
            self.server.publish(survey)
        self.values: dict[tuple[str, int], int] = {}
        """What was answered first in each epoch: a person who is asked again after a restore says the same."""

    def teardown(self) -> None:
        self.server.close()
        self.folder.cleanup()

    def client(self, survey: Survey, step=lambda step: None) -> Client:
        clock = self.clock
        return self.kind(
            self.server.url,
            survey.fingerprint,
            self.path,
            clock=clock,
            _sleep=clock.sleep,
            _timer=clock.timer,
            _step=step,
        )

    @rule(
        survey=SURVEYS, value=st.integers(0, 29), step=st.sampled_from([None, *STEPS, "sending", "replied", "marked"])
    )
    def answer(self, survey, value, step):
        def die(reached):
            if reached == step:
                raise Died

        client = self.client(survey, die)
        with suppress(NotOpen):
            epoch = client.epoch()
            said = self.values.setdefault((survey.fingerprint, epoch), value)
            with suppress(Refused, Died):
                client.answer({"q": said})

    @rule(days=st.integers(-3, 3))
    def move_the_clock(self, days):
        self.clock.days(days)

    @rule(trouble=st.lists(TROUBLE, max_size=3))
    def trouble(self, trouble):
        self.server.script[:] = trouble

    @rule(survey=SURVEYS)
    def flush(self, survey):
        self.client(survey).flush(timeout=60)

    @rule(survey=SURVEYS)
    def opt_out_and_in(self, survey):
        client = self.client(survey)
        client.opt_out()
        client.opt_in()

    @invariant()
    def the_ledger_is_within_its_caps(self):
        ledger = self.client(FRESH).ledger
        spent = sum((known.spent for known in ledger.budgets()), Fraction(0))
        assert spent <= CAP
        for survey in (FRESH, KEPT):
            known = ledger.submissions(survey.fingerprint)
            assert len(known) <= survey.terms.longitudinal.epochs
            assert len({submission.epoch for submission in known}) == len(known)
            assert sum(submission.epsilon for submission in known) <= survey.lifetime_epsilon

    @invariant()
    def what_was_sent_is_what_was_written(self):
        written = {known.body for known in self.client(FRESH).ledger.submissions()}
        assert set(self.server.posts) <= written
        assert self.server.conflicts == 0


class Restored(Device):
    """The same with copies of the ledger that are put back: what was sent may be forgotten, but never changes."""

    copies = Bundle("copies")

    @rule(target=copies)
    def copy(self):
        self.client(FRESH).survey()
        return self.path.read_bytes()

    @rule(copy=copies)
    def restore(self, copy):
        self.path.write_bytes(copy)

    def what_was_sent_is_what_was_written(self):
        assert self.server.conflicts == 0


class Forgetful(Device):
    """A broken client, which draws again for every attempt."""

    class kind(Client):
        def _attempt(self, submission):
            from deniable.collect.client import outbox
            from deniable.collect.client.preview import preview

            drawn = preview(self.survey(), submission.epoch, {"q": 0})
            body = submission.body[:24] + drawn[24:]
            return outbox.judged(self._transport.post(f"/v1/surveys/{self.fingerprint}/reports", body, {}))


def check(machine, examples: int = 12) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=20, deadline=None, derandomize=True)
    )


def test_any_sequence():
    check(Device)


def test_any_sequence_with_restored_copies():
    check(Restored)


def test_a_client_that_draws_again_is_caught():
    import pytest

    with pytest.raises(AssertionError):
        check(Forgetful)

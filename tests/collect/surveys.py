"""Surveys that tests collect, open at `now`, and submissions to them with simulated randomness."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from deniable.collect.stores.base import Batch
from deniable.collect.wire import ID_BYTES
from deniable.domains import Strings
from deniable.protocols import CMS, GRR, OLH, OUE, SubsetSelection
from deniable.protocols.reports import Bytes
from deniable.randomness import Bits, Simulation
from deniable.surveys import Question, Survey
from deniable.surveys.terms import Budget, Epochs, Longitudinal, Terms

DAY = 86_400
TODAY = int(time.time()) // DAY * DAY
"""The midnight before this process began: a survey that is asked for twice is the same survey."""

SMOKE = Question("smoke", "Do you smoke?", GRR(["yes", "no"], epsilon=1))
WORDS = ("sourdough", "rye", "spelt", "pumpernickel")


def terms(
    now: float = TODAY,
    *,
    seconds: int = DAY,
    longitudinal: Longitudinal | None = None,
    budget: Fraction | int = 100,
    retention: str = "tally",
    min_reports: int = 1,
    early: int = 1,
    late: int = 1,
) -> Terms:
    """Open for 10 epochs before and 30 after `now`, which lies in epoch 10."""
    start = int(now) // DAY * DAY - 10 * seconds
    return Terms(
        owner="Example Institute",
        purpose="To test the collection.",
        epochs=Epochs(start, seconds, early, late),
        longitudinal=longitudinal or Longitudinal(),
        budget=Budget("tests", Fraction(budget)),
        opens=start,
        expires=start + 40 * seconds,
        retention=retention,
        min_reports=min_reports,
    )


def plain(now: float = TODAY, retention: str = "tally", min_reports: int = 1) -> Survey:
    """One question with two answers, and one epoch of two months: 0."""
    start = int(now) // DAY * DAY - 30 * DAY
    once = Terms(
        owner="Example Institute",
        purpose="To test the collection.",
        epochs=Epochs(start, 60 * DAY, early=0, late=0),
        longitudinal=Longitudinal(),
        budget=Budget("tests", Fraction(10)),
        opens=start,
        expires=start + 60 * DAY,
        retention=retention,
        min_reports=min_reports,
    )
    return Survey("plain", [SMOKE], once)


def mixed(now: float = TODAY, retention: str = "tally") -> Survey:
    """Four questions with reports of different shapes; epochs are days."""
    questions = [
        SMOKE,
        Question("drink", "What do you drink?", OUE(20, epsilon=1)),
        Question("age", "How old are you?", OLH(100, epsilon=1)),
        Question("town", "Where do you live?", SubsetSelection(16, epsilon=1)),
    ]
    return Survey("mixed", questions, terms(now, retention=retention))


def memoized(now: float = TODAY) -> Survey:
    """An answer that is asked for daily and drawn once a value, for at most three values."""
    question = Question("mood", "How are you today?", GRR(["good", "fair", "bad"], epsilon=1))
    rule = Longitudinal("memoize", epochs=30, values=3)
    return Survey("memoized", [question], terms(now, longitudinal=rule, budget=3))


def daily(now: float = TODAY, retention: str = "tally") -> Survey:
    """A fresh answer a day, for at most five days."""
    return Survey("daily", [SMOKE], terms(now, longitudinal=Longitudinal(epochs=5), budget=5, retention=retention))


def text(now: float = TODAY, cells: int = 256, cohorts: int = 64, retention: str = "tally") -> Survey:
    """Open text: so many counters that a store does not rewrite them for each submission (128 KiB and more)."""
    protocol = CMS(Strings(cells=cells, cohorts=cohorts, key="text/bread"), epsilon=4)
    return Survey("text", [Question("bread", "Your favourite bread?", protocol)], terms(now, retention=retention))


def all_surveys(now: float = TODAY) -> list[Survey]:
    return [plain(now), mixed(now), memoized(now), daily(now), text(now)]


# -- submissions -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Crowd:
    """Submissions of one survey: ids, and answers in the order of the survey's questions."""

    ids: Bytes
    answers: Bytes

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, which: slice | Iterable[int]) -> Crowd:
        chosen = which if isinstance(which, slice) else list(which)
        return Crowd(self.ids[chosen], self.answers[chosen])

    def batch(self, survey: Survey, epoch: int) -> Batch:
        return Batch(survey.fingerprint, epoch, self.ids, self.answers)


def current(survey: Survey, now: float = TODAY) -> int:
    """The epoch that `now` lies in."""
    assert survey.terms is not None
    return survey.terms.epochs.at(now)


def crowd(survey: Survey, n: int, seed: int = 0) -> Crowd:
    """People with random ids who answer whatever comes to their minds, the same for the same seed."""
    bits = Simulation(seed)
    ids = bits.words(2 * n).view(np.uint8).reshape(n, ID_BYTES).copy()
    reports = [_reports(question, n, bits) for question in survey]
    return Crowd(ids, np.concatenate(reports, axis=1))


def _reports(question: Question, n: int, bits: Bits) -> Bytes:
    labels = WORDS if isinstance(question.protocol.domain, Strings) else question.protocol.domain.labels
    values = [labels[int(word) % len(labels)] for word in bits.words(n)]
    return np.asarray(question.protocol.privatize(values, bits))

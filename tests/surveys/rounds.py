"""A campaign of two rounds that tests ask, with counts that nobody has to draw."""

from __future__ import annotations

from fractions import Fraction

from deniable.domains import Interval
from deniable.protocols import Tally, Window
from deniable.surveys import Budget, Epochs, Longitudinal, Narrowing, Question, Survey, SurveyTally, Terms
from deniable.surveys.campaign import next_round

DAY = 86_400
START = 1_793_491_200
"""2026-11-01."""
COUNTS = (300, 310, 290, 900, 1000, 320, 295, 305, 280)
"""Round 1 of 4,000 people, of whom most are in the middle."""


def first_round(epsilon: int | str = 1, start: int = START, days: int = 7, retention: str = "tally") -> Survey:
    """Hours from 0 to 80, in cells of ten hours."""
    terms = Terms(
        "Example Institute",
        "To test rounds.",
        Epochs(start, days * DAY, early=0, late=0),
        Longitudinal(),
        Budget("rounds", Fraction(epsilon)),
        opens=start,
        expires=start + days * DAY,
        retention=retention,
    )
    hours = Question("hours", "How many hours a week do you work?", Window(Interval(0, 80, "hours"), epsilon))
    return Narrowing(cells=8).begin(Survey("work", [hours], terms))


def tally_of(survey: Survey, *counts: int) -> SurveyTally:
    """A tally of the survey's one question."""
    (question,) = survey.questions
    own = Tally(question.protocol.fingerprint, sum(counts), counts, survey.source(question.id))
    return SurveyTally(survey.fingerprint, {question.id: own})


def rounds(epsilon: int | str = 1, start: int = START) -> tuple[Survey, Survey]:
    """Both rounds; the second asks for 20 to 50 hours."""
    first = first_round(epsilon, start)
    return first, next_round(first, tally_of(first, *COUNTS))

"""The hash function of a report on sets follows from its submission's id: a forger cannot choose it freely."""

from __future__ import annotations

import secrets
from fractions import Fraction

import numpy as np
import pytest

from deniable.collect import wire
from deniable.collect.client.records import drawn
from deniable.collect.stores.batches import SurveyCounter
from deniable.domains import Interval, Sets
from deniable.protocols import CollisionSets, ItemSets, KeyValue
from deniable.randomness import Tied, exhaust
from deniable.surveys import Question, Survey
from deniable.surveys.terms import Longitudinal
from tests.collect.surveys import terms

ANSWERS = {"apps": {3, 5}, "stars": {7: 2.0}}


def survey(**more) -> Survey:
    items = Question("apps", "Which?", ItemSets(Sets(20_000, at_most=3), epsilon=1, largest=2))
    stars = Question("stars", "How good?", KeyValue(20_000, Interval(0, 5), epsilon=1, at_most=2))
    return Survey("apps", [items, stars], terms=terms(**more))


def sent(asked: Survey, n: int):
    ids = [secrets.token_bytes(wire.ID_BYTES) for _ in range(n)]
    rows = b"".join(drawn(asked, ANSWERS, id) for id in ids)
    width = asked.report_bytes
    return np.frombuffer(rows, np.uint8).reshape(n, width), np.frombuffer(b"".join(ids), np.uint8).reshape(n, -1)


def test_submissions_with_another_hash_function_than_their_id_gives_are_refused():
    asked = survey()
    counter = SurveyCounter(asked)
    answers, ids = sent(asked, 60)
    assert counter.plausible(answers, ids).all()
    # One in thousands of hash functions fits another id by chance: less than 1 in 100 runs of this test.
    assert not counter.plausible(answers, np.roll(ids, 1, axis=0)).any()
    elsewhere = SurveyCounter(survey(early=0))
    assert not elsewhere.plausible(answers, ids).any(), "ids that were chosen for one survey are no use in another"


def test_reports_that_are_repeated_are_not_tied_to_an_id():
    law = CollisionSets(Sets(30, at_most=2), 1, cells=4, cohorts=64)
    rule = Longitudinal("memoize", epochs=3, values=1)
    kept = Survey("apps", [Question("apps", "Which?", law)], terms=terms(longitudinal=rule))
    rows = law.privatize([{1, 2}] * 50).array
    assert SurveyCounter(kept).plausible(rows, np.zeros((50, wire.ID_BYTES), np.uint8)).all()


@pytest.mark.parametrize("public", [0, 7])
def test_a_tied_report_has_the_law_of_its_cohort_and_the_same_epsilon(public):
    """Exactly, over all sets: given its public number a report tells no more than epsilon."""
    law = CollisionSets(Sets(3, at_most=2), 1, cells=5, cohorts=3)
    laws = []
    for items in ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)):
        found = exhaust(lambda bits, items=items: law.report_encoded(items, Tied(bits, public)))
        weights = {report: Fraction(chance) for report, chance in found.law.items()}
        assert {report[0] for report in weights} == {public % 3}
        assert law.law().public(np.array([list(one) for one in weights], np.uint8), np.full(5, public, np.uint64)).all()
        laws.append(weights)
    assert sum(laws[0].values()) == 1
    ratios = [one[report] / other[report] for one in laws for other in laws for report in one]
    assert max(ratios) <= law.ratio

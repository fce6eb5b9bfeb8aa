"""Numbers in a survey are short and questions are few, so that reading a hostile one costs nothing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from deniable.domains import Integers
from deniable.errors import DeniableError, SpecError
from deniable.protocols import GRR, OLH, OUE, THE, SecureSum, SubsetSelection, load
from deniable.surveys import Budget, Longitudinal, Question, Survey
from tests.surveys.test_terms import TERMS

DIGITS = "more than 100 digits above or below the line: round it"


def question(place: int, epsilon: Any) -> Question:
    return Question(f"q{place}", "Do you?", GRR(["yes", "no"], epsilon))


def near(digits: int, place: int = 0) -> Fraction:
    return Fraction(10**digits + 2 * place + 1, 10**digits)


def spec(*epsilons: Any) -> dict[str, Any]:
    """A survey's spec with these epsilons, as an attacker writes it."""
    one = question(0, 1).spec()
    questions = [
        one | {"id": f"q{place}", "protocol": one["protocol"] | {"epsilon": str(epsilon)}}
        for place, epsilon in enumerate(epsilons)
    ]
    return {"kind": "survey", "version": 1, "name": "hostile", "questions": questions}


def test_numbers_of_a_hundred_digits_are_read_and_longer_ones_refused() -> None:
    assert Survey.from_spec(spec(near(99), near(99, 1))).epsilon == near(99) + near(99, 1)
    with pytest.raises(SpecError, match=f"question 'q0': epsilon has {DIGITS}"):
        Survey.from_spec(spec(near(100)))
    # The survey that kept a browser busy for forty seconds.
    with pytest.raises(SpecError, match=DIGITS):
        Survey.from_spec(spec(*(near(900, place) for place in range(60))))
    with pytest.raises(DeniableError, match=f"the threshold has {DIGITS}"):
        THE(4, 1, threshold=Fraction(10**100 - 1, 10**100))
    with pytest.raises(DeniableError, match=f"the lifetime epsilon has {DIGITS}"):
        Budget("guild", near(100))


def test_a_sum_of_short_numbers_is_refused_before_it_grows_long() -> None:
    epsilons = [Fraction(2**place, 2**place - 1) for place in range(41, 90, 6)]
    with pytest.raises(SpecError, match=f"the sum of the questions' epsilons has {DIGITS}"):
        Survey("long", [question(place, epsilon) for place, epsilon in enumerate(epsilons)])


def test_questions_are_counted_before_they_are_read() -> None:
    broken = spec(1)
    broken["questions"] = [{}] * 1001
    with pytest.raises(SpecError, match="a survey has at most 1000 questions"):
        Survey.from_spec(broken)
    assert len(Survey("many", [question(place, "1/1000") for place in range(1000)])) == 1000


def test_categories_have_at_most_a_hundred_digits() -> None:
    assert GRR([0, 10**100 - 1], 1).domain.size == 2
    with pytest.raises(DeniableError, match="more than 100 digits"):
        GRR([0, 10**100], 1)


def test_the_forms_of_many_wide_reports_are_not_multiplied_out() -> None:
    # Together they would be a number of 2^(10 * 2^24) digits.
    wide = OUE(Integers(0, 2**24), 1)
    questions = [Question(f"q{place}", "Where?", wide) for place in range(10)]
    with pytest.raises(SpecError, match="memoized answers would tell devices apart"):
        Survey("wide", questions, replace(TERMS, longitudinal=Longitudinal("memoize", 3), budget=Budget("guild", 100)))


TOO_MUCH = {
    "report": (lambda: OUE(10**9, 1), "125,000,000 bytes, and 4,194,304 are the most"),
    "tally": (lambda: OLH(10**12, 1), "1,099,511,627,776 counters, and 268,435,456"),
    "subset": (lambda: SubsetSelection(2**27, "1e-6"), "a subset of 67,108,8.. of the 134,217,728 answers"),
    "noise": (lambda: SecureSum(["yes", "no"], "1e-6", people=1000), r"may have [0-9,]+ weights, and 262,144"),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_a_protocol_that_nobody_could_run_is_refused_when_it_is_made(case: str) -> None:
    make, figure = TOO_MUCH[case]
    with pytest.raises(DeniableError, match=figure):
        make()


def test_so_is_its_spec() -> None:
    small = OUE(8, 1).spec()
    with pytest.raises(DeniableError, match="125,000,000 bytes"):
        load(small | {"domain": Integers(0, 10**9 - 1).spec()})
    assert OLH(2**24, 1).tally_size == 2**24

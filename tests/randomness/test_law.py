"""The choice from a law of integers is exactly the choice by a real number in [0, 1)."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, strategies as st

from deniable.errors import ProbabilityError
from deniable.exact import WORD
from deniable.randomness import IntegerWeights, exhaust

weights = st.lists(st.integers(0, 2**80), min_size=1, max_size=8).filter(any)


def by_definition(law: IntegerWeights, digits: list[int]) -> int:
    """The outcome for the number 0.digits in base 2^64, followed by zeros."""
    number = sum(Fraction(digit, WORD ** (i + 1)) for i, digit in enumerate(digits))
    return sum(Fraction(s, law.total) <= number for s in list(accumulate(law.weights))[:-1])


def interesting_words(law: IntegerWeights) -> set[int]:
    near = {0, WORD - 1}
    for s in accumulate(law.weights):
        boundary = s * WORD // law.total
        near |= {min(max(boundary + step, 0), WORD - 1) for step in (-1, 0, 1)}
    return near


@given(weights, st.integers(0, WORD - 1))
def test_choice_is_that_of_the_real_number(given_weights: list[int], second: int) -> None:
    law = IntegerWeights(given_weights)
    for word in interesting_words(law):
        tail = iter([second, 12345, 678])
        used = [word]

        def more(tail: object = tail, used: list[int] = used) -> int:
            used.append(next(tail))  # type: ignore[call-overload]
            return used[-1]

        assert law.choose(word, more) == by_definition(law, used)


@given(weights)
def test_array_choice_agrees_with_single_choice(given_weights: list[int]) -> None:
    law = IntegerWeights(given_weights)
    firsts = sorted(interesting_words(law))
    many = law.choose_many(np.array(firsts, dtype=np.uint64), lambda: 99)
    assert many.tolist() == [law.choose(word, lambda: 99) for word in firsts]


def test_a_tie_is_settled_by_further_words() -> None:
    law = IntegerWeights([1, 2])  # the boundary 1/3 is no multiple of 2^-64
    word = WORD // 3
    assert law.choose(word, lambda: 0) == 0
    assert law.choose(word, lambda: WORD - 1) == 1
    drawn = iter([WORD // 3, 0])
    assert law.choose(word, lambda: next(drawn)) == 0


def test_outcomes_of_weight_zero_never_come_up() -> None:
    law = IntegerWeights([0, 1, 0, 1, 0])
    chosen = {law.choose(word, lambda: WORD - 1) for word in interesting_words(law)}
    assert chosen == {1, 3}


def test_a_dropped_remainder_would_be_seen() -> None:
    # The law that 64-bit thresholds alone would give differs from the real one at the tie.
    law = IntegerWeights([1, 2])
    assert by_definition(law, [WORD // 3, 0]) != by_definition(law, [WORD // 3, WORD - 1])


@given(weights)
def test_exhaustive_gives_the_weights(given_weights: list[int]) -> None:
    law = IntegerWeights(given_weights)
    found = exhaust(lambda bits: bits.draw(law)).law
    assert found == {i: Fraction(w, law.total) for i, w in enumerate(law.weights) if w}


@pytest.mark.parametrize("bad", [[], [0, 0], [1, -1]])
def test_bad_weights_are_refused(bad: list[int]) -> None:
    with pytest.raises(ProbabilityError):
        IntegerWeights(bad)

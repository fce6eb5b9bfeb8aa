"""The explorer itself: all branches, exact weights, and honest about what it left out."""

from __future__ import annotations

from fractions import Fraction
from itertools import count

import numpy as np
import pytest

from deniable.errors import NumberError
from deniable.exact import WORD, Dyadic
from deniable.randomness import Bits, IntegerWeights, exhaust

THIRD = Dyadic.floor(Fraction(1, 3))


def two_throws(bits: Bits) -> int:
    return bits.integers(6) + bits.integers(6) + 2


def test_two_dice() -> None:
    law = exhaust(two_throws).law
    assert law[7] == Fraction(6, 36)
    assert sum(law.values()) == 1


def test_branches_may_depend_on_earlier_ones() -> None:
    def walk(bits: Bits) -> str:
        return "stop" if bits.bernoulli(THIRD) else f"go {bits.integers(3)}"

    law = exhaust(walk).law
    assert law["stop"] == THIRD.value
    assert law["go 2"] == THIRD.complement.value / 3


def test_every_sampler_has_its_law() -> None:
    p = THIRD.value
    assert exhaust(lambda b: tuple(b.bernoulli(THIRD, 2).tolist())).law[(True, False)] == p * (1 - p)
    assert exhaust(lambda b: tuple(b.integers(3, 2).tolist())).law[(2, 0)] == Fraction(1, 9)
    assert exhaust(lambda b: bytes(b.packed(THIRD, 3))).law[b"\x05"] == p**2 * (1 - p)
    assert exhaust(lambda b: b.packed(THIRD, 2, 2).tobytes()).law[b"\x03\x00"] == p**2 * (1 - p) ** 2
    assert exhaust(lambda b: tuple(b.draw(IntegerWeights([1, 2, 0]), 2).tolist())).law == {
        (0, 0): Fraction(1, 9),
        (0, 1): Fraction(2, 9),
        (1, 0): Fraction(2, 9),
        (1, 1): Fraction(4, 9),
    }
    assert exhaust(lambda b: b.take(1)[0] // 128).law == {0: Fraction(1, 2), 1: Fraction(1, 2)}
    assert exhaust(lambda b: int(b.uniform(1, np.uint8)[0]) % 4).law[3] == Fraction(1, 4)


def test_certain_and_impossible_outcomes_are_not_branches() -> None:
    assert exhaust(lambda b: b.bernoulli(Dyadic(WORD))).law == {True: 1}
    assert exhaust(lambda b: b.bernoulli(Dyadic(0))).law == {False: 1}
    assert exhaust(lambda b: b.integers(1)).runs == 1


def test_endless_loops_are_cut_and_accounted_for() -> None:
    def wait(bits: Bits) -> int:
        return next(i for i in count() if bits.bernoulli(Dyadic(WORD // 2)))

    found = exhaust(wait, smallest=Fraction(1, 1000))
    assert found.law[0] == Fraction(1, 2)
    assert sum(found.law.values()) + found.missing == 1
    assert 0 < found.missing < Fraction(1, 500)


def test_code_that_draws_elsewhere_is_noticed() -> None:
    calls = count()
    with pytest.raises(NumberError, match="random bits alone"):
        exhaust(lambda bits: bits.integers(2 + next(calls)))


def test_too_many_branches_are_refused() -> None:
    with pytest.raises(NumberError, match="branches"):
        exhaust(lambda bits: tuple(bits.integers(10, 6)), most_runs=1000)
    with pytest.raises(NumberError, match="no integer"):
        exhaust(lambda bits: bits.integers(0))

"""Computing together: exact accuracies, and no protocol of more rounds that is better."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

from deniable import exact
from deniable.design import best_of_rounds, together
from deniable.errors import LabelError, NumberError, ShapeError
from deniable.randomness import exhaust

GOLDEN = {
    ("xor", 2): (0.5, 0.60678, 0.73106, 0.73106),
    ("xor", 3): (0.5, 0.54934, 0.60678, 0.73106),
    ("and", 2): (0.75, 0.76722, 0.86553, 0.77356),
}


@pytest.mark.parametrize(("name", "parties"), GOLDEN)
def test_accuracies_at_epsilon_one(name, parties):
    made = together(name, 1, parties)
    found = made.blind, made.outsider, made.parties[0], made.curator.value
    assert [round(float(value), 5) for value in found] == list(GOLDEN[name, parties])
    assert made.curator.value <= made.curator.bound <= made.curator.value + 1e-8


@pytest.mark.parametrize("epsilons", [(1, 1), (Fraction(1, 2), 2)])
@pytest.mark.parametrize("name", ["xor", "and", "or"])
def test_the_accuracies_are_those_of_what_is_published_and_guessed(name, epsilons):
    """The real code, along every branch of its randomness."""
    made = together(name, epsilons, prior=["1/2", "1/3"])
    right = [Fraction(0)] * 3
    for x in product((0, 1), repeat=2):
        prior = Fraction(1, 2) * (Fraction(1, 3) if x[1] else Fraction(2, 3))
        law = exhaust(lambda bits, x=x: made.publish(x, bits)).law
        for y, weight in law.items():
            truth = made.values[2 * x[0] + x[1]]
            for place, own in enumerate((None, {0: x[0]}, {1: x[1]})):
                right[place] += prior * weight * (made.guess(y, own) == truth)
    assert right == [made.outsider, *made.parties]


def test_published_bits_keep_each_partys_epsilon():
    made = together("xor", [1, "1/3", 4])
    laws = {x: exhaust(lambda bits, x=x: made.publish(x, bits)).law for x in product((0, 1), repeat=3)}
    for place, epsilon in enumerate(made.epsilons):
        worst = max(laws[x][y] / laws[(*x[:place], 1 - x[place], *x[place + 1 :])][y] for x in laws for y in laws[x])
        assert worst == made.ratios[place]
        assert exact.exp_at_least(epsilon, worst)
        assert not exact.exp_at_least(epsilon - Fraction(1, 10**12), worst)


def test_xor_follows_its_formula_and_a_curator_is_never_worse():
    for parties in (1, 2, 4, 7):
        made = together("xor", "0.8", parties)
        assert float(made.outsider) == pytest.approx((1 + math.tanh(0.4) ** parties) / 2)
        assert made.blind <= made.outsider <= made.parties[0]
        assert made.curator.value == pytest.approx(1 / (1 + math.exp(-0.8)), abs=1e-8)
    assert together("majority", 1, 3).curator.value >= together("majority", 1, 3).outsider


def test_a_curators_program_by_sums_is_the_one_by_inputs():
    by_sums, by_inputs = together("majority", 1, 3), together("majority", [1, 1, "1.0000001"])
    assert by_sums.curator.value == pytest.approx(by_inputs.curator.value, abs=1e-6)
    assert len(by_sums.curator.channel.inputs) == 4
    assert len(by_inputs.curator.channel.inputs) == 8


@pytest.mark.parametrize("listener", [None, 0, 1])
@pytest.mark.parametrize("name", ["xor", "and"])
def test_no_protocol_of_three_messages_is_better(name, listener):
    made = together(name, 1, 2)
    alone = float(made.outsider if listener is None else made.parties[listener])
    assert best_of_rounds(name, 1, (0, 1, 0), 4, listener) == pytest.approx(alone, abs=1e-9)
    # The search sees what more epsilon would bring, and what silence costs.
    assert best_of_rounds(name, "1.1", (0, 1), 2, listener) > alone + 0.001
    if listener is None:
        assert best_of_rounds("xor", 1, (0, 0), 4) == pytest.approx(0.5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xor", "and"])
def test_no_protocol_of_two_rounds_is_better(name):
    assert best_of_rounds(name, 1, (0, 1, 0, 1), 6) == pytest.approx(float(together(name, 1, 2).outsider), abs=1e-9)


def test_any_function_can_be_given():
    assert together([0, 0, 0, 1], 1).outsider == together("and", 1, 2).outsider
    assert together(lambda bits: all(bits), 1, 2).outsider == together("and", 1, 2).outsider
    assert together(["no", "no", "no", "yes"], 1).guess([1, 1], {0: 1, 1: 1}) == "yes"
    assert together("sum", 1, 3).blind == Fraction(3, 8)
    assert "epsilon 1, 2" in str(together("and", [1, 2]))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: together("nand", 1, 2), LabelError, "xor, and"),
        (lambda: together("xor", 1), ShapeError, "parties=2"),
        (lambda: together("xor", [1, 1], 3), ShapeError, "2 epsilons"),
        (lambda: together("xor", 1, 40), ShapeError, "1 to 12"),
        (lambda: together([0, 1, 1], 1), ShapeError, "4 values"),
        (lambda: together("xor", 1, 2, prior=2), NumberError, "probability"),
        (lambda: together("xor", 1, 2).publish([1]), ShapeError, "each 0 or 1"),
    ],
)
def test_what_makes_no_sense_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()

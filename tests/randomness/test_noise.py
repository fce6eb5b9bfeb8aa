"""Bernoulli(e^-x) and the discrete Laplace law: by enumeration as deep as it pays, and by chi-square."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from deniable.conformance.checks import accepts, draws_needed, tabulate
from deniable.errors import NumberError
from deniable.exact import exp_bounds
from deniable.randomness import Simulation, exhaust

REACH = 12  # cells -12 .. 12 and the two tails


def laplace_law(scale: Fraction) -> np.ndarray:
    a = math.exp(-1 / scale)
    inner = (1 - a) / (1 + a) * a ** np.abs(np.arange(-REACH, REACH + 1))
    tail = a ** (REACH + 1) / (1 + a)
    return np.concatenate([[tail], inner, [tail]])


def cells(values: np.ndarray) -> np.ndarray:
    return tabulate(np.clip(values, -REACH - 1, REACH + 1) + REACH + 1, 2 * REACH + 3)


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(7, 3)])
def test_bernoulli_exp_lies_between_its_enumerated_bounds(x: Fraction) -> None:
    found = exhaust(lambda bits: bits.bernoulli_exp(x), smallest=Fraction(1, 10**7))
    true = found.law.get(True, Fraction(0))
    lower, upper = exp_bounds(-x)
    assert true <= upper
    assert lower <= true + found.missing
    assert found.missing < Fraction(1, 10**4)


def test_the_enumeration_would_see_a_wrong_rate() -> None:
    found = exhaust(lambda bits: bits.bernoulli_exp(Fraction(3, 8)), smallest=Fraction(1, 10**5))
    lower, _ = exp_bounds(-Fraction(1, 3))
    assert found.law[True] + found.missing < lower


def test_discrete_laplace_lies_between_its_enumerated_bounds() -> None:
    scale = Fraction(1)
    found = exhaust(lambda bits: bits.discrete_laplace(scale), smallest=Fraction(1, 10**5))
    a = math.exp(-1 / scale)
    assert found.missing < Fraction(1, 20)
    for z in (-2, -1, 0, 1, 2):
        law = (1 - a) / (1 + a) * a ** abs(z)
        assert float(found.law[z]) <= law + 1e-12
        assert law <= float(found.law[z] + found.missing) + 1e-12


@pytest.mark.parametrize(
    "scale", [Fraction(10, 7), Fraction(1, 3), *(pytest.param(Fraction(n), marks=pytest.mark.slow) for n in (1, 5))]
)
def test_discrete_laplace_arrays(scale: Fraction) -> None:
    # One test a scale at a false-positive rate of 1e-6; the same test refuses epsilon +- 2 percent.
    law = laplace_law(scale)
    wrong = {factor: scale / Fraction(factor) for factor in ("0.98", "1.02")}
    n = max(draws_needed(law, laplace_law(other)) for other in wrong.values())
    assert accepts(cells(Simulation(11).discrete_laplace(scale, n)), law)
    for other in wrong.values():
        assert not accepts(cells(Simulation(12).discrete_laplace(other, n)), law)


def test_single_draws_have_the_law_of_arrays() -> None:
    bits = Simulation(13)
    singles = np.array([bits.discrete_laplace(Fraction(3, 2)) for _ in range(8_000)])
    assert accepts(cells(singles), laplace_law(Fraction(3, 2)))
    assert not accepts(cells(singles), laplace_law(Fraction(2)))
    coins = np.array([bits.bernoulli_exp(Fraction(4, 3)) for _ in range(8_000)])
    for exponent, right in ((4 / 3, True), (1, False)):
        p = math.exp(-exponent)
        assert accepts([coins.sum(), (~coins).sum()], [p, 1 - p]) == right


@pytest.mark.parametrize("x", [Fraction(1, 3), Fraction(4, 3), Fraction(5), Fraction(1, 1 << 50)])
def test_bernoulli_exp_arrays(x: Fraction) -> None:
    size = 300_000 if x.denominator < 1 << 40 else 200
    coins = Simulation(14).bernoulli_exp(x, size)
    p = math.exp(-x)
    assert accepts([coins.sum(), (~coins).sum()], [p, 1 - p])


def test_huge_scales_fall_back_to_single_draws() -> None:
    values = Simulation(15).discrete_laplace(Fraction(1 << 50, 3), 20)
    assert np.abs(values).max() > 1 << 40


def test_senseless_parameters_are_refused() -> None:
    with pytest.raises(NumberError, match="x >= 0"):
        Simulation(1).bernoulli_exp(Fraction(-1))
    with pytest.raises(NumberError, match="positive"):
        Simulation(1).discrete_laplace(Fraction(0))

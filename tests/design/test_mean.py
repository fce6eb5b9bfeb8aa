"""The designed mean: exactly private, exactly unbiased, of the variance that is claimed, and proved to be the best."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from deniable import exact
from deniable.channels import Channel
from deniable.design import Certificate, MeanCertificate, MeanDesign, mean, readout
from deniable.design.mean import _least
from deniable.design.readout import bias, position, second_moments, worst_variance
from deniable.domains import Interval
from deniable.errors import ChannelError, NumberError, SpecError
from deniable.protocols import OneBitMean, Window

UNIT = Interval(-1, 1)
SLOW = pytest.mark.slow


def rows(design: MeanDesign) -> list[list[int]]:
    return [[int(entry) for entry in row] for row in design.channel.numerators]


def hybrid(epsilon: float) -> float:
    odds, root = math.exp(epsilon), math.exp(epsilon / 2)
    if epsilon <= 0.609352:
        return ((odds + 1) / (odds - 1)) ** 2
    return (root + 3) / (3 * root * (root - 1)) + (odds + 1) ** 2 / (root * (odds - 1) ** 2)


def by_hand(epsilon: float, positions: int, values: np.ndarray[Any, Any], inside: int) -> float:
    """The same problem with values from a list, as one linear program: its answer is never below the design's."""
    size, odds = len(values), math.exp(epsilon)
    x = np.linspace(-1, 1, positions)
    count = positions * size
    cost = np.zeros(count + size + 1)
    cost[-1] = 1
    equal, right, limits, most = [], [], [], []
    for k in range(positions):
        for weights, total in ((np.ones(size), 1.0), (values, x[k])):
            row = np.zeros(cost.size)
            row[k * size : (k + 1) * size] = weights
            equal.append(row)
            right.append(total)
        for y in range(size):
            for sign, factor in ((1, odds), (-1, 1)):
                row = np.zeros(cost.size)
                row[k * size + y], row[count + y] = sign, -sign * factor
                limits.append(row)
                most.append(0.0)
    for point in np.linspace(-1, 1, (positions - 1) * inside + 1):
        place = (point + 1) * (positions - 1) / 2
        below = min(int(place), positions - 2)
        row = np.zeros(cost.size)
        row[below * size : (below + 1) * size] = (1 - place + below) * values**2
        row[(below + 1) * size : (below + 2) * size] = (place - below) * values**2
        row[-1] = -1
        limits.append(row)
        most.append(point**2)
    answer = linprog(cost, limits, most, equal, right, bounds=(0, None))
    assert answer.status == 0
    return float(answer.x[-1])


@pytest.mark.parametrize(
    ("epsilon", "most"), [(1, 4.006), pytest.param(2, 0.880, marks=SLOW), (3, 0.318), (4, 0.141), (5, 0.070)]
)
def test_worst_cases_are_below_what_was_known(epsilon: int, most: float) -> None:
    """The figures of a program with nine positions and 33 listed values, and of the hybrid mechanism."""
    design = mean(epsilon, positions=9)
    assert design.value <= most
    assert design.value < hybrid(epsilon)
    assert design.relative_gap < 1e-5
    assert design.certificate.verify()
    assert design.outputs <= 40


@pytest.mark.parametrize(
    ("epsilon", "positions"),
    [("0.01", 2), ("0.01", 3), ("1/10", 3), (1, 5), (2, 4), (3, 9), (8, 9)],
)
def test_channels_are_exact_from_small_to_large_epsilon(epsilon: Any, positions: int) -> None:
    design = mean(epsilon, positions)
    law, level = rows(design), exact.as_epsilon(epsilon)
    assert exact.exp_at_least(level, Fraction(design.ratio))
    assert design.realized_epsilon > float(level) * (1 - 1e-5)
    assert bias(law, design.values) == 0
    assert all(entry > 0 for row in law for entry in row)
    assert Fraction(design.value) >= worst_variance(second_moments(law, design.values))
    assert design.value <= OneBitMean(UNIT, epsilon).worst_variance(1) * (1 + 1e-5)
    assert 0 <= design.relative_gap < 2e-5
    assert [-value for value in design.values] == list(design.values)[::-1]


def test_no_listed_values_do_better() -> None:
    """A program with the values in a list, written down here, comes close to the design and never below it."""
    design = mean(2, positions=5)
    listed = by_hand(2, 5, np.linspace(-2.2, 2.2, 45), 8)
    assert design.value * (1 - 1e-6) <= listed <= design.value * 1.02


@pytest.mark.parametrize(
    ("epsilon", "positions", "width"),
    [
        (3, 6, 2),
        pytest.param(4, 10, 3, marks=SLOW),
        pytest.param(5, 17, 4, marks=SLOW),
        pytest.param(6, 33, 6, marks=SLOW),
    ],
)
def test_the_best_window_with_its_best_readout_is_no_better(epsilon: int, positions: int, width: int) -> None:
    window = Window(UNIT, epsilon, positions, width)
    found = readout(window.channel())
    assert found.worst < window.worst_variance(1) * (1 + 1e-9)
    assert mean(epsilon).value < found.worst


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.01", "0.3", 1, "2.5", 5, 7, 8])
def test_no_window_is_better_at_any_epsilon(epsilon: Any) -> None:
    assert mean(epsilon).value <= Window(UNIT, epsilon).worst_variance(1) * (1 + 1e-6)


def test_the_least_value_of_prices_is_below_every_value() -> None:
    """At prices of which some have no square: a bound that looked at the wrong side would be above."""
    random = np.random.default_rng(4)
    odds = exact.exp_ceil(Fraction(2))
    for case in range(30):
        square = random.dirichlet(np.ones(5)) * (random.random(5) < 0.6)
        if not square.any():
            continue
        linear, constant = random.normal(0, 1, 5), random.normal(0, 1, 5)
        prices = [
            tuple(Fraction(float(number)) for number in price) for price in zip(square, linear, constant, strict=True)
        ]
        v = np.linspace(-200, 200, 40_001)
        parts = square * v[:, None] ** 2 - linear * v[:, None] - constant
        brute = float(np.minimum(parts, float(odds) * parts).sum(axis=1).min())
        found = float(_least(prices, odds))  # type: ignore[arg-type]
        assert found <= brute + 1e-9 * abs(brute), case
        assert found >= brute - 1e-3 * max(1.0, abs(brute)), case


@pytest.mark.parametrize("outputs", [2, 3, 4, 8, 9])
def test_fewer_outputs_cost_variance(outputs: int) -> None:
    few, free = mean(2, positions=5, outputs=outputs), mean(2, positions=5)
    assert few.outputs <= outputs < free.outputs
    assert bias(rows(few), few.values) == 0
    assert exact.exp_at_least(Fraction(2), Fraction(few.ratio))
    assert free.value < few.value <= OneBitMean(UNIT, 2).worst_variance(1) * (1 + 1e-4)
    assert few.certificate.verify()
    if outputs >= 8:
        assert few.value < 1.1 * free.value


def test_a_finer_grid_is_never_worse_and_its_bound_is_below() -> None:
    coarse, fine = mean(3, positions=5), mean(3, positions=9)
    assert fine.value < coarse.value
    assert fine.bound < coarse.bound
    assert mean(1, positions=17).certificate.verify()  # some positions have no weight in its proof


def test_the_bound_refuses_every_other_proof(tmp_path: Path) -> None:
    """Prices, weights, rows and values that were changed prove less, or nothing."""
    found = mean(1, positions=5).certificate
    assert isinstance(found, MeanCertificate)
    found.save(tmp_path / "proof.json")
    again = Certificate.load(tmp_path / "proof.json")
    assert again == found
    assert again.verify()

    def failed(changed: MeanCertificate) -> list[str]:
        return [check.name for check in changed.verify().checks if not check.holds]

    assert failed(replace(found, bound=found.value * 1.0001)) == ["bound"]
    assert failed(replace(found, constant=tuple(u * 1.001 for u in found.constant))) == ["bound"]
    assert failed(replace(found, linear=tuple(-price for price in found.linear))) == ["bound"]
    assert failed(replace(found, weights=(*found.weights[:-1], 10 * found.weights[-1]))) == ["bound"]
    assert failed(replace(found, weights=(*found.weights[:-1], 0))) == ["bound"]
    assert failed(replace(found, value=found.value * 0.999)) == ["value"]
    assert failed(replace(found, epsilon=Fraction(99, 100))) == ["ratios"]
    values = (found.values[0] + Fraction(1, 10**6), *found.values[1:])
    assert "unbiased" in failed(replace(found, values=values))


@pytest.mark.parametrize("key", ["rows", "values", "points", "weights", "linear", "constant", "epsilon", "value"])
def test_a_broken_proof_is_refused(key: str) -> None:
    content = json.loads(json.dumps(mean(1, positions=3).certificate.spec()))
    with pytest.raises(SpecError):
        Certificate.load({name: value for name, value in content.items() if name != key})
    if isinstance(content[key], list):
        with pytest.raises(SpecError):
            Certificate.load(content | {key: content[key][:-1]})


@pytest.mark.parametrize("wrong", [{"positions": 1}, {"positions": 1000}, {"positions": True}, {"outputs": 1}])
def test_sizes_that_cannot_be_had_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(NumberError):
        mean(1, **wrong)


# -- read-outs of given channels -----------------------------------------------------------------------


def test_a_readout_is_exact_and_the_best_there_is() -> None:
    """With four outputs for three positions one number is free: no choice of it has a smaller worst case."""
    channel = Channel.from_integers([[5, 3, 1, 1], [3, 2, 2, 3], [1, 1, 3, 5]], 10, range(3), range(4))
    found = readout(channel)
    law = [[int(entry) for entry in row] for row in channel.numerators]
    assert bias(law, found.values) == 0
    assert found.relative_gap < 1e-6
    null = np.linalg.svd(channel.rows)[2][-1]
    values = np.array([float(value) for value in found.values])
    for step in np.linspace(-1, 1, 201):
        other = values + step * null
        moments = [Fraction(float(moment)) for moment in channel.rows @ other**2]
        assert float(worst_variance(moments)) >= found.worst * (1 - 1e-9)


def test_a_prior_and_a_range_of_plausible_numbers_lower_the_variance_where_they_say() -> None:
    channel = Window(UNIT, 4, 10, 3).channel()
    law = [[int(entry) for entry in row] for row in channel.numerators]
    everywhere, near = readout(channel), readout(channel, between=("-0.5", "0.5"))
    weights = np.exp(-8 * np.linspace(-1, 1, 10) ** 2)
    believed = readout(channel, prior=weights / weights.sum())
    assert bias(law, near.values) == bias(law, believed.values) == 0
    moments = second_moments(law, everywhere.values)
    assert near.variance < float(worst_variance(moments, Fraction(-1, 2), Fraction(1, 2)))
    assert near.worst > everywhere.worst
    usual = sum(
        w * float(f - position(k, 10) ** 2)
        for k, (w, f) in enumerate(zip(weights / weights.sum(), moments, strict=True))
    )
    assert believed.variance < usual
    assert believed.variance == pytest.approx(believed.bound, rel=1e-9)


def test_channels_without_an_unbiased_readout_are_refused() -> None:
    with pytest.raises(ChannelError, match="unbiased"):
        readout(Channel.from_integers([[1, 1], [1, 1], [1, 1]], 2, range(3), range(2)))
    with pytest.raises(ChannelError, match="unbiased"):
        readout(Channel([["3/4", "1/4"], ["3/5", "2/5"], ["1/4", "3/4"]]))
    with pytest.raises(NumberError, match="positions"):
        readout(Channel([[1, 0]]))
    two = Channel([["3/4", "1/4"], ["1/4", "3/4"]])
    with pytest.raises(NumberError, match="not both"):
        readout(two, prior=[0.5, 0.5], between=(0, 1))
    with pytest.raises(NumberError, match="low end first"):
        readout(two, between=(1, 0))

"""Leakage is never negative, post-processing never adds to it, and capacity is the most there is."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from deniable.channels.capacities import capacity, information_gain
from deniable.channels.channel import Channel
from deniable.channels.closed_forms import randomized_response
from deniable.channels.leakages import (
    leakage,
    min_capacity,
    mutual_information,
    posterior_vulnerability,
    prior_vulnerability,
)
from deniable.errors import NumberError

pytestmark = pytest.mark.floats

SLACK = 1e-12


@st.composite
def channels(draw, inputs=None, outputs=None):
    k = inputs or draw(st.integers(1, 5))
    m = outputs or draw(st.integers(1, 5))
    rows = draw(st.lists(st.lists(st.integers(0, 9), min_size=m, max_size=m).filter(any), min_size=k, max_size=k))
    return Channel([[Fraction(entry, sum(row)) for entry in row] for row in rows])


@st.composite
def settings(draw):
    channel = draw(channels())
    k = channel.shape[0]
    weights = draw(st.lists(st.integers(0, 20), min_size=k, max_size=k).filter(any))
    gain = draw(st.lists(st.lists(st.integers(0, 5), min_size=k, max_size=k), min_size=1, max_size=4))
    return channel, np.array(weights) / sum(weights), np.array(gain, dtype=float)


@given(settings(), st.data())
def test_leakage_and_data_processing(setting, data):
    channel, prior, gain = setting
    after = channel >> data.draw(channels(inputs=channel.shape[1]))
    for function in ("identity", gain):
        before_leak, after_leak = leakage(channel, prior, function), leakage(after, prior, function)
        assert before_leak.additive >= -SLACK
        assert after_leak.posterior <= before_leak.posterior + SLACK
        assert before_leak.prior == pytest.approx(prior_vulnerability(prior, _table(function, prior)))
        assert before_leak.posterior == posterior_vulnerability(channel, prior, function)
        if before_leak.prior > 0:
            # Every gain function leaks at most the min-capacity (and no level of privacy allows more).
            assert before_leak.min_entropy <= min_capacity(channel) + SLACK
    assert mutual_information(after, prior) <= mutual_information(channel, prior) + SLACK
    most = capacity(channel)
    assert most.converged
    assert most.upper + SLACK >= mutual_information(channel, prior)
    assert mutual_information(channel, most.prior) == pytest.approx(most.value, abs=1e-9)
    assert most.value <= min_capacity(channel) + SLACK


def _table(function, prior):
    return np.eye(prior.size) if isinstance(function, str) else function


def test_the_inequalities_can_fail():
    """Swap the two sides: the properties above do not hold by accident."""
    sharp, flat = randomized_response(3, 3), randomized_response(3, 1)
    prior = [0.5, 0.3, 0.2]
    assert leakage(sharp, prior).posterior > leakage(sharp >> flat, prior).posterior + 0.05
    assert mutual_information(sharp, prior) > mutual_information(sharp >> flat, prior) + 0.05
    assert capacity(sharp).value > mutual_information(sharp, prior) + 0.01


def test_a_coin():
    coin = Channel([["3/4", "1/4"], ["1/4", "3/4"]])
    leak = leakage(coin, [0.5, 0.5])
    assert (leak.prior, leak.posterior) == (0.5, 0.75)
    assert leak.multiplicative == 1.5
    assert leak.additive == 0.25
    assert leak.min_entropy == pytest.approx(math.log(1.5))
    assert min_capacity(coin) == pytest.approx(math.log(1.5), rel=1e-15)
    # A confident adversary learns nothing from it.
    assert leakage(coin, [0.9, 0.1]).multiplicative == pytest.approx(1)


def test_gains_without_a_ratio():
    leak = leakage(randomized_response(2, 1), [0.5, 0.5], [[1, -3], [-3, 1]])
    assert leak.prior == -1
    assert leak.additive > 0
    assert math.isnan(leak.multiplicative)
    assert math.isnan(leak.min_entropy)


def entropy(*law):
    return -sum(p * math.log(p) for p in law if p > 0)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1, 5])
@pytest.mark.parametrize("k", [2, 3, 17])
def test_capacity_of_randomized_response(k, epsilon):
    channel = randomized_response(k, epsilon)
    result = capacity(channel)
    assert result.converged
    assert result.gap <= 1e-12
    assert result.value == pytest.approx(math.log(k) - entropy(*channel.rows[0]), abs=1e-12)
    assert result.bits == pytest.approx(result.value / math.log(2))


def test_capacity_closed_forms():
    erasure = Channel([["7/10", 0, "3/10"], [0, "7/10", "3/10"]])
    assert capacity(erasure).value == pytest.approx(0.7 * math.log(2), abs=1e-12)
    z = Channel([[1, 0], ["1/2", "1/2"]])
    assert capacity(z).value == pytest.approx(math.log(5 / 4), abs=1e-12)
    assert capacity(z).prior == pytest.approx([0.6, 0.4], abs=1e-5)
    assert capacity(Channel([[1, 0], [0, 1], ["1/2", "1/2"]])).prior == pytest.approx([0.5, 0.5, 0], abs=1e-6)
    assert capacity(Channel([["1/3", "2/3", 0]])).value == pytest.approx(0, abs=1e-15)


def test_capacity_beats_every_prior_on_random_channels():
    rng = np.random.default_rng(0)
    for _ in range(30):
        k, m = rng.integers(2, 15, 2)
        channel = Channel.from_floats(rng.dirichlet(np.full(m, rng.choice([0.3, 1, 10])), size=k))
        result = capacity(channel)
        assert result.converged
        assert result.iterations < 200
        for prior in rng.dirichlet(np.full(k, 0.5), size=20):
            assert mutual_information(channel, prior) <= result.upper


def test_the_gain_of_a_step_is_the_difference_in_information():
    rng = np.random.default_rng(1)
    channel = Channel.from_floats(rng.dirichlet(np.ones(6), size=4))
    old, new = rng.dirichlet(np.ones(4), size=2)
    marginal = channel.push(old)
    divergence = (channel.rows * np.log(channel.rows / marginal)).sum(axis=1)
    difference = mutual_information(channel, new) - mutual_information(channel, old)
    assert information_gain(channel.rows, old, new, marginal, divergence) == pytest.approx(difference, abs=1e-12)


def test_an_early_stop_still_bounds():
    channel = Channel([[1, 0], ["1/2", "1/2"]])
    early = capacity(channel, max_iterations=2)
    assert not early.converged
    assert early.value < math.log(5 / 4) < early.upper
    with pytest.raises(NumberError):
        capacity(channel, tolerance=0)


def test_mutual_information_ignores_inputs_that_never_occur():
    channel = Channel([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert mutual_information(channel, [0.5, 0.5, 0]) == pytest.approx(math.log(2))
    assert mutual_information(channel, {0: 1.0}) == 0

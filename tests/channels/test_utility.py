"""Utility is the best expected gain over all remaps."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from deniable.channels.channel import Channel
from deniable.channels.closed_forms import randomized_response
from deniable.channels.compose import Query
from deniable.channels.noise import truncated_geometric
from deniable.channels.utilities import utility
from deniable.errors import LabelError, NumberError, ProbabilityError, ShapeError

pytestmark = pytest.mark.floats


@pytest.mark.parametrize(("n", "epsilon"), [(100, 1), (100, 0.1), (7, 2), (1, 1)])
def test_geometric_mechanism_with_a_uniform_prior(n, epsilon):
    a = math.exp(-epsilon)
    expected = (2 + (n - 1) * (1 - a)) / ((n + 1) * (1 + a))
    result = utility(truncated_geometric(n, epsilon), np.full(n + 1, 1 / (n + 1)), "identity")
    assert result.value == pytest.approx(expected, rel=1e-9)
    assert result.direct == pytest.approx(expected, rel=1e-9)
    assert result.remap == tuple(range(n + 1))
    assert result.blind == pytest.approx(1 / (n + 1))


def test_the_published_value():
    assert utility(truncated_geometric(100, 1), np.full(101, 1 / 101)).value == pytest.approx(0.46744, abs=5e-6)


@pytest.mark.parametrize(("epsilon", "excess"), [(0.1, 0.27), (0.3, 0.058)])
def test_absolute_loss_needs_the_remap(epsilon, excess):
    result = utility(truncated_geometric(20, epsilon), np.full(21, 1 / 21), loss="absolute")
    assert result.direct / result.value - 1 == pytest.approx(excess, abs=0.005)
    assert result.is_loss
    assert result.value < result.blind


def brute_force(channel, prior, gain, truths):
    best = -np.inf
    guesses, outputs = gain.shape[0], channel.shape[1]
    for remap in itertools.product(range(guesses), repeat=outputs):
        total = sum(
            prior[x] * channel.rows[x, z] * gain[remap[z], truths[x]]
            for x in range(channel.shape[0])
            for z in range(outputs)
        )
        best = max(best, total)
    return best


@given(st.integers(0, 2**32 - 1))
def test_equals_the_maximum_over_all_remaps(seed):
    rng = np.random.default_rng(seed)
    databases, outputs, answers, guesses = rng.integers(2, 5, 4)
    channel = Channel.from_floats(rng.dirichlet(np.ones(outputs), size=databases))
    prior = rng.dirichlet(np.ones(databases))
    truths = np.concatenate([np.arange(answers), rng.integers(0, answers, databases)])[:databases]
    gain = rng.normal(size=(guesses, len(set(truths))))
    result = utility(channel, prior, gain, query=list(truths))
    assert result.value == pytest.approx(brute_force(channel, prior, gain, truths), abs=1e-12)
    assert utility(channel, prior, gain, query=list(truths), remap=result.remap).value == pytest.approx(result.value)
    assert result.value >= result.blind - 1e-12
    worst = utility(channel, prior, loss=gain, query=list(truths))
    assert worst.value == pytest.approx(-brute_force(channel, prior, -gain, truths), abs=1e-12)


def test_a_fixed_remap_is_worse():
    channel, prior = randomized_response(3, 1), [0.9, 0.05, 0.05]
    best = utility(channel, prior)
    assert best.remap == (0, 0, 0)
    assert best.value == pytest.approx(0.9)
    literal = utility(channel, prior, remap=lambda output: output)
    assert literal.value == pytest.approx(channel.rows[0, 0])
    assert literal.value == best.direct < best.value
    swapped = utility(channel, prior, remap={0: 1, 1: 0, 2: 2})
    assert swapped.value < literal.value


def test_oblivious_and_general_agree():
    query = Query.on_records(3, [0, 1], sum)
    noise = truncated_geometric(3, 1)
    prior = np.random.default_rng(0).dirichlet(np.ones(8))
    on_answers = utility(noise, prior, query=query)
    on_databases = utility(query.oblivious(noise), prior, query=query)
    by_function = utility(query.oblivious(noise), prior, query=sum)
    assert on_answers.value == pytest.approx(on_databases.value)
    assert on_answers.remap == on_databases.remap == by_function.remap
    pushed = [sum(p for p, v in zip(prior, query.values, strict=True) if v == answer) for answer in range(4)]
    assert utility(noise, pushed).value == pytest.approx(on_answers.value)
    # A channel that peeks at the database does better than one that sees only the answer.
    peeking = Channel(np.eye(8, dtype=int), inputs=query.databases, outputs=query.databases)
    assert utility(peeking, prior, query=query).value == pytest.approx(1)


def test_post_processing_never_helps_and_may_hurt():
    noise = truncated_geometric(4, 1)
    prior = np.full(5, 0.2)
    merged = Channel([[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]], inputs=range(5), outputs=["low", "high"])
    assert utility(noise >> merged, prior).value < utility(noise, prior).value - 0.05


def test_ways_to_give_the_same_thing():
    channel = Channel([["3/4", "1/4"], ["1/4", "3/4"]], inputs=["yes", "no"], outputs=["yes", "no"])
    expected = utility(channel, [0.4, 0.6], "identity")
    assert expected.value == pytest.approx(0.75)
    assert expected.guess("yes") == "yes"
    assert utility(channel, {"no": 0.6, "yes": 0.4}).value == expected.value
    assert utility(channel, [0.4, 0.6], [[1, 0], [0, 1]]) == expected
    assert utility(channel, [0.4, 0.6], lambda guess, truth: float(guess == truth)) == expected
    assert utility(channel, [0.4, 0.6], query={"yes": "yes", "no": "no"}) == expected
    assert utility(channel, [0.4, 0.6], loss="zero-one").value == pytest.approx(0.25)
    cautious = utility(channel, [0.4, 0.6], [[1, -9], [-9, 1], [0, 0]], guesses=["yes", "no", "pass"])
    assert cautious.remap == ("pass", "pass")
    assert cautious.value == 0
    assert "yes -> pass" in str(cautious)
    assert str(expected) == "expected gain 0.75 (0.6 blind, 0.75 at face value); remap none"


def test_equally_good_guesses_leave_the_output_alone():
    hopeless = Channel([["1/2", "1/2"], ["1/2", "1/2"]])
    assert utility(hopeless, [0.5, 0.5]).remap == (0, 1)
    assert utility(hopeless, [0.4, 0.6]).remap == (1, 1)
    never = Channel([[1, 0, 0], [0, 1, 0]], inputs=[0, 1])
    assert utility(never, [0.5, 0.5]).remap == (0, 1, 0)


def test_labels_that_python_confuses_stay_apart():
    channel = Channel([[1, 0], [0, 1]], inputs=[True, 1], outputs=[1, True])
    result = utility(channel, [0.5, 0.5])
    assert result.value == 1
    assert result.direct == 0
    assert result.remap == (True, 1)
    assert result.remap[0] is True


def test_refusals():
    channel = randomized_response(3, 1)
    prior = [0.2, 0.3, 0.5]
    with pytest.raises(NumberError, match="not both"):
        utility(channel, prior, "identity", loss="zero-one")
    with pytest.raises(NumberError, match="unknown"):
        utility(channel, prior, "accuracy")
    with pytest.raises(NumberError, match="NaN"):
        utility(channel, prior, np.full((3, 3), np.nan))
    with pytest.raises(ShapeError, match="3 columns"):
        utility(channel, prior, np.eye(2))
    with pytest.raises(ShapeError):
        utility(channel, [0.5, 0.5])
    with pytest.raises(ProbabilityError):
        utility(channel, [0.5, 0.5, 0.5])
    with pytest.raises(LabelError, match="prior names"):
        utility(channel, {7: 1.0})
    with pytest.raises(ShapeError, match="answers"):
        utility(channel, prior, query=[1, 2])
    with pytest.raises(LabelError, match="no answer"):
        utility(channel, prior, query={0: 1})
    with pytest.raises(LabelError, match="remap"):
        utility(channel, prior, remap=[0, 1])
    with pytest.raises(LabelError, match="not a guess"):
        utility(channel, prior, remap=[0, 1, 9])
    with pytest.raises(LabelError, match="does not work"):
        utility(Channel([[1, 0], [0, 1]], inputs=["a", "b"]), [0.5, 0.5], loss="absolute")
    with pytest.raises(LabelError, match="outputs"):
        utility(channel, prior).guess(9)

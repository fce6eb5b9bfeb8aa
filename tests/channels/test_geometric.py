"""The truncated geometric mechanism and the exponential mechanism on their own adjacency."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from deniable import exact
from deniable.channels import Channel, exponential, line, min_capacity, truncated_geometric
from deniable.channels.geometric_law import decay_ceil
from deniable.channels.noise import clamped_geometric
from deniable.errors import ChannelError, EpsilonError, LabelError, NumberError, ShapeError
from deniable.randomness import IntegerWeights, Simulation
from tests.channels.small import exactly, exp_between, largest_ratio

# -- truncated geometric -------------------------------------------------------------------------------


def by_formula(n: int, a: Fraction) -> list[list[Fraction]]:
    """a^|z - y| (1 - a) / (1 + a) inside, a^|z - y| / (1 + a) at the ends."""
    inside = (1 - a) / (1 + a)
    ends = 1 / (1 + a)
    return [[a ** abs(z - y) * (ends if z in (0, n) else inside) for z in range(n + 1)] for y in range(n + 1)]


@pytest.fixture(scope="module")
def hundred() -> Channel:
    return truncated_geometric(100, epsilon=1)


def test_hundred_counts(hundred):
    assert hundred.shape == (101, 101)
    assert all(sum(row) == hundred.denominator for row in hundred.numerators)
    assert (hundred.numerators > 0).all()
    assert hundred.satisfies(1, "line")
    assert 1 - 1e-11 < hundred.epsilon_under("line") <= 1
    assert not hundred.satisfies("0.99999999999", "line")
    assert hundred.epsilon == pytest.approx(100, rel=1e-11)
    smallest = float(Fraction(int(hundred.numerators.min()), hundred.denominator))
    assert smallest == pytest.approx(2.72e-44, rel=1e-3)
    assert smallest == pytest.approx(math.exp(-100) / (1 + math.exp(-1)), rel=1e-9)


def test_the_published_utility(hundred):
    """A uniform prior and the reported count itself as the guess."""
    a = math.exp(-1)
    diagonal = sum(hundred.probability(y, y) for y in range(101)) / 101
    assert float(diagonal) == pytest.approx(0.46744, abs=5e-6)
    assert float(diagonal) == pytest.approx((2 + 99 * (1 - a)) / (101 * (1 + a)), rel=1e-9)


@given(st.integers(1, 8), st.sampled_from(["1e-6", "0.01", "1/3", 1, "2.5", 10, 64]), st.integers(1, 4))
@settings(max_examples=60)
def test_law_and_level_at_any_size(n, epsilon, sensitivity):
    channel = truncated_geometric(n, epsilon, sensitivity)
    level = exact.as_epsilon(epsilon)
    assert exactly(channel) == by_formula(n, decay_ceil(level / sensitivity))
    assert channel.adjacency == line(sensitivity)
    assert channel.satisfies(epsilon, channel.adjacency)
    reached = float(level) * min(n, sensitivity) / sensitivity
    assert channel.epsilon_under(channel.adjacency) == pytest.approx(reached, rel=1e-11)
    pairs = [(i, j) for i in range(n + 1) for j in range(i) if i - j <= sensitivity]
    assert channel.witness(channel.adjacency).ratio == largest_ratio(exactly(channel), pairs)


@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 10**6), Fraction(1, 10**12), Fraction(1, 3), Fraction(1), Fraction(64)]
)
def test_the_decay_is_rounded_up_and_hardly(epsilon):
    decay = decay_ceil(epsilon)
    low, high = exp_between(-epsilon, 600)
    assert decay > high
    assert decay <= low * (1 + Fraction(1, 10**12) * min(epsilon, 1)) * (1 + Fraction(1, 10**30))


def test_a_rounded_down_decay_would_be_noticed():
    decay = decay_ceil(Fraction(1)) - Fraction(1, 10**11)
    assert not Channel(by_formula(3, decay)).satisfies(1, "line")


@pytest.mark.parametrize(
    ("arguments", "kind", "reason"),
    [
        ((0, 1), ShapeError, "n >= 1"),
        ((5, 1, 0), ShapeError, "sensitivity of at least 1"),
        ((5, 1, 1.5), NumberError, "the sensitivity is 1.5, not a whole number"),
        ((2.7, 1), NumberError, "n is 2.7, not a whole number"),
        ((True, 1), NumberError, "truth value"),
        ((5, 0), EpsilonError, "positive"),
        ((5000, 1), ChannelError, "5001 counts has 25010001 probabilities, .* use DiscreteLaplace"),
        ((10**30, 1), ChannelError, "2048 counts are the most"),
    ],
    ids=range(8),
)
def test_counts_that_are_none(arguments, kind, reason):
    """A sensitivity of 1.5 that was cut to 1 would break the promise."""
    with pytest.raises(kind, match=reason):
        truncated_geometric(*arguments)


def test_sizes_may_come_from_numpy():
    assert (
        truncated_geometric(np.int64(3), 1, np.uint8(2))
        == truncated_geometric(3, 1, 2)
        == truncated_geometric(3.0, 1, 2.0)
    )


def dense(channel: Channel) -> Channel:
    """The same law as a matrix of its own, for the code that knows nothing of its structure."""
    found = exactly(channel)
    return Channel(found, channel.inputs, channel.outputs, channel.adjacency)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("epsilon", ["0.01", "1/3", 1, "2.5"])
def test_the_structure_says_what_the_matrix_says(n, epsilon):
    channel = truncated_geometric(n, epsilon, 2)
    matrix = dense(channel)
    assert type(matrix) is Channel
    assert channel == matrix
    assert hash(channel) == hash(matrix)
    assert channel.denominator == matrix.denominator
    assert (channel.numerators == matrix.numerators).all()
    assert (channel.rows == matrix.rows).all()
    for relation in ("all", "line", line(2), lambda x, y: abs(x - y), [(n, 0), (0, 1)]):
        assert channel.witness(relation) == matrix.witness(relation)
        assert channel.satisfies("3/4", relation) == matrix.satisfies("3/4", relation)
    for odds in (0, "0.1", 1, "2.6", 9):
        assert channel.delta(odds) == matrix.delta(odds)
    assert min_capacity(channel) == min_capacity(matrix)
    assert pickle.loads(pickle.dumps(channel)) == channel
    assert Channel.load(channel.spec()) == channel


@pytest.mark.parametrize("alpha", [Fraction(1, 3), Fraction(3, 5), decay_ceil(Fraction(1)), decay_ceil(Fraction(9))])
def test_outputs_are_drawn_as_the_matrix_draws_them(alpha):
    channel = clamped_geometric(alpha, 0, 6, 1)
    for place, row in enumerate(channel.numerators):
        mine, plain = channel._law(place), IntegerWeights(row)
        assert (mine.weights, mine.total, len(mine)) == (plain.weights, plain.total, len(plain))
        # Every word at which the outcome changes, and its neighbours; ties are settled by further words.
        words = {w for word in plain._words for w in (word - 1, word, word + 1) if 0 <= w < 2**64} | {0, 2**64 - 1}
        for word in sorted(words):
            for more in (0, 2**63, 2**64 - 1):
                assert mine.choose(word, lambda more=more: more) == plain.choose(word, lambda more=more: more)
        array = np.array(sorted(words), dtype=np.uint64)
        assert (mine.choose_many(array, lambda: 5) == plain.choose_many(array, lambda: 5)).all()
    inputs = np.arange(7).repeat(50)
    assert (channel.sample_indices(inputs, Simulation(1)) == dense(channel).sample_indices(inputs, Simulation(1))).all()


def test_two_thousand_counts():
    channel = truncated_geometric(2000, epsilon=1)
    assert channel.satisfies(1, "line")
    assert not channel.satisfies("0.99999999999", "line")
    assert channel.ratio == (1 / decay_ceil(Fraction(1))) ** 2000
    assert channel.epsilon == pytest.approx(2000, rel=1e-11)
    assert channel.probability(0, 0) + channel.probability(0, 2000) < 1
    assert channel.probability(3, 1) / channel.probability(4, 1) == 1 / decay_ceil(Fraction(1))
    assert channel.rows.sum(axis=1) == pytest.approx(np.ones(2001), rel=1e-12)
    prior = np.full(2001, 1 / 2001)
    assert channel.push(prior).sum() == pytest.approx(1, rel=1e-12)
    assert channel.posterior(prior)[1000, 1000] == pytest.approx(math.tanh(0.5), rel=1e-9)
    assert np.ptp(channel.sample_indices(np.arange(2001), Simulation(2)) - np.arange(2001)) < 60
    assert channel == truncated_geometric(2000, 1)
    assert channel != truncated_geometric(2000, "1.5")
    with pytest.raises(ChannelError, match=r"2001 counts would take 21\.0 gigabytes: use probability, rows"):
        channel.spec()


# -- exponential ---------------------------------------------------------------------------------------


def softmax(scores: np.ndarray, rate: float) -> np.ndarray:
    weights = np.exp(rate * (scores - scores.max(axis=1, keepdims=True)))
    return weights / weights.sum(axis=1, keepdims=True)


MATRIX = [[0, 0, 1], [1, 1, 0], [0, 2, 0]]


@pytest.mark.parametrize("epsilon", ["0.01", 1, 6])
def test_the_exponential_law(epsilon):
    channel = exponential(MATRIX, epsilon, list("xyz"), range(3))
    assert channel.satisfies(epsilon)
    assert channel.rows == pytest.approx(softmax(np.array(MATRIX), float(epsilon) / 4), abs=1e-12)
    assert channel.inputs == ("x", "y", "z")


def test_twice_the_rate_would_break_the_promise():
    """The normalizing sum moves too: without the factor 2 the level is exceeded."""
    scores = np.array([[0, 0, 1], [1, 1, 0]])
    naive = Channel.from_floats(softmax(scores, 1.0))
    assert not naive.satisfies(1)
    assert exponential(scores, 1, ["x", "y"], range(3)).satisfies(1)


@given(
    st.lists(st.lists(st.integers(-5, 5), min_size=3, max_size=3), min_size=3, max_size=3),
    st.sampled_from(["all", "line", [(0, 2)], lambda a, b: abs(a - b)]),
    st.sampled_from(["0.1", 1, 20]),
)
@settings(max_examples=80)
def test_the_exponential_mechanism_holds_its_level(scores, adjacency, epsilon):
    try:
        channel = exponential(scores, epsilon, range(3), range(3), adjacency)
    except ChannelError as refused:
        assert "do not depend on the input" in str(refused)  # noqa: PT017
        return
    assert channel.satisfies(epsilon, adjacency)
    assert (channel.numerators > 0).all()
    assert channel.adjacency.kind in ("all", "line", "graph", "metric")


def test_sensitivity_is_computed_over_neighbours_only():
    def score(x, y):
        return -abs(x - y)

    near = exponential(score, 1, range(6), range(6), "line")
    far = exponential(score, 1, range(6), range(6))
    assert near.rows == pytest.approx(softmax(-np.abs(np.subtract.outer(np.arange(6), np.arange(6))), 0.5), abs=1e-12)
    assert far.rows == pytest.approx(softmax(-np.abs(np.subtract.outer(np.arange(6), np.arange(6))), 0.1), abs=1e-12)


def test_a_larger_sensitivity_may_be_claimed_and_a_smaller_one_not():
    claimed = exponential(MATRIX, 1, range(3), range(3), sensitivity=4)
    assert claimed.rows == pytest.approx(softmax(np.array(MATRIX), 1 / 8), abs=1e-12)
    with pytest.raises(ChannelError, match="move by 2 between neighbours, more than 1"):
        exponential(MATRIX, 1, range(3), range(3), sensitivity=1)


def test_scores_far_below_the_best():
    """A penalty that means "never" is no reason to fail."""
    channel = exponential(lambda x, y: -(10**9) if y == 4 else -abs(x - y), 1, range(5), range(5), "line")
    assert channel.satisfies(1, "line")
    assert channel.rows[:, 4].max() == 0  # as floats; the integers are positive
    assert (channel.numerators[:, 4] > 0).all()


@pytest.mark.parametrize(
    ("scores", "inputs", "outputs", "kind", "reason"),
    [
        ([[1, 2], [1, 2]], "ab", "xy", ChannelError, "do not depend on the input"),
        ([[1, 2]], "ab", "xy", ShapeError, "row for each input"),
        ([[1, 2, 3], [1, 2, 3]], "ab", "xy", ShapeError, "column for each output"),
        ([[1, 2], [1]], "ab", "xy", ShapeError, "column for each output"),
        ([], "", "", ShapeError, "at least one input"),
        ([[], []], "ab", "", ShapeError, "at least one"),
        ([[1, math.nan], [1, 2]], "ab", "xy", NumberError, "a score is NaN"),
        ([[1, None], [1, 2]], "ab", "xy", NumberError, "a score is a NoneType"),
        ([[1, 2], [2, 1]], "aa", "xy", LabelError, "stands twice"),
    ],
    ids=range(9),
)
def test_scores_that_are_none(scores, inputs, outputs, kind, reason):
    with pytest.raises(kind, match=reason):
        exponential(scores, 1, list(inputs), list(outputs))

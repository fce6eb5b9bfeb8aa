"""Repair: what a solver returns becomes an exact channel that holds its level and stays close."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from deniable.channels import Channel, line, randomized_response, truncated_geometric
from deniable.errors import EpsilonError, LabelError, NumberError, ProbabilityError, ShapeError

pytestmark = pytest.mark.floats


def moved(channel: Channel, rows) -> float:
    """Largest total variation between a row before and after."""
    before = np.clip(np.asarray(rows, dtype=float), 0, None)
    before = before[:, before.any(axis=0)]
    before /= before.sum(axis=1, keepdims=True)
    return float(np.abs(channel.rows - before).sum(axis=1).max() / 2)


# -- what solvers do -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["1e-6", "0.1", 1, 8, 64])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_identity_becomes_randomized_response(k, epsilon):
    channel = Channel.from_floats(np.eye(k), epsilon=epsilon)
    assert channel.satisfies(epsilon)
    assert channel.rows == pytest.approx(randomized_response(k, epsilon).rows, abs=1e-12)


def with_holes(law: np.ndarray, seed: int) -> np.ndarray:
    """Like a solver's answer to the plain program: off by 1e-10, with tiny negatives and zeros beside non-zeros."""
    rows = law + np.random.default_rng(seed).normal(0, 1e-10, law.shape)
    rows[np.abs(rows) < 1e-8] = 0
    rows[rows == 0] -= 1e-17 * (np.arange((rows == 0).sum()) % 2)
    return rows


def slightly_off(law: np.ndarray, seed: int) -> np.ndarray:
    """Like a solver's answer to the scaled program: every entry off by 2e-9 of itself."""
    return law * (1 + 2e-9 * np.random.default_rng(seed).uniform(-1, 1, law.shape))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "epsilon"), [(20, 1), (50, 1), (30, "0.3")])
def test_a_line_with_holes_is_repaired_at_little_cost(n, epsilon, seed):
    rows = with_holes(truncated_geometric(n, epsilon).rows, seed)
    before = Channel.from_floats(rows)
    assert not before.satisfies(epsilon, "line")
    assert (before.epsilon_under("line") == math.inf) == (epsilon == 1)  # what the solver really returned
    channel = Channel.from_floats(rows, epsilon=epsilon, adjacency="line")
    assert channel.satisfies(epsilon, "line")
    assert moved(channel, rows) < 1e-6
    assert channel.adjacency.kind == "line"


def test_on_a_line_the_geometric_channel_is_the_cheaper_filling(monkeypatch):
    rows = slightly_off(truncated_geometric(50, 1).rows, 1)
    cheap = Channel.from_floats(rows, epsilon=1, adjacency="line")
    monkeypatch.setattr("deniable.channels.channel.fits", lambda decay, n: False)
    uniform = Channel.from_floats(rows, epsilon=1, adjacency="line")
    assert cheap.satisfies(1, "line")
    assert uniform.satisfies(1, "line")
    assert moved(cheap, rows) < moved(uniform, rows) / 5
    assert moved(cheap, rows) < 2e-8


def test_the_least_noise_is_added():
    """What was broken holds its level with next to nothing to spare."""
    rows = np.array([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.0, 0.1, 0.9]])
    channel = Channel.from_floats(rows, epsilon=1)
    assert channel.satisfies(1)
    assert not channel.satisfies("0.9999999999")


def test_what_already_holds_is_left_alone():
    channel = Channel.from_floats([[0.6, 0.4], [0.5, 0.5]], epsilon=1)
    assert channel.rows.tolist() == [[0.6, 0.4], [0.5, 0.5]]
    assert channel.ratio == pytest.approx(1.25, rel=1e-15)


@given(
    st.integers(2, 4),
    st.integers(2, 4),
    st.data(),
    st.sampled_from(["all", "line", line(2), [(0, 1)], lambda a, b: Fraction(1, 3) + abs(a - b)]),
    st.sampled_from(["0.01", "0.5", 2, 20]),
)
@settings(max_examples=70)
def test_anything_is_repaired(k, m, data, adjacency, epsilon):
    entry = st.one_of(
        st.just(0.0), st.floats(1e-300, 1), st.floats(-1e-9, 0), st.sampled_from([1e-17, -1e-17, 1.0, 1e-5])
    )
    rows = [data.draw(st.lists(entry, min_size=m, max_size=m).filter(lambda row: max(row) > 0)) for _ in range(k)]
    channel = Channel.from_floats(rows, epsilon=epsilon, adjacency=adjacency)
    assert channel.satisfies(epsilon, adjacency)
    assert all(sum(row) == channel.denominator for row in channel.numerators)
    assert (channel.numerators >= 0).all()
    used = [y for y in range(m) if any(row[y] > 0 for row in rows)]
    assert channel.outputs == tuple(used)


# -- columns and labels --------------------------------------------------------------------------------


def test_unused_outputs_are_dropped_and_the_others_keep_their_names():
    rows = [[0.5, 0.0, 0.5], [0.25, -1e-18, 0.75]]
    assert Channel.from_floats(rows, epsilon=2).outputs == (0, 2)
    named = Channel.from_floats(rows, epsilon=2, inputs=["x", "y"], outputs=["a", "b", "c"])
    assert named.outputs == ("a", "c")
    assert named.inputs == ("x", "y")
    assert named.satisfies(2)


def test_without_a_level_only_the_numbers_are_cleaned():
    channel = Channel.from_floats([[1.0, -1e-12], [0.3, 0.7000001]])
    assert channel.ratio == math.inf
    assert all(sum(row) == channel.denominator for row in channel.numerators)
    assert channel.rows[1] == pytest.approx([0.3, 0.7], abs=1e-6)


def test_rows_are_divided_by_their_sums():
    assert Channel.from_floats([[2, 2], [1, 3]]).rows.tolist() == [[0.5, 0.5], [0.25, 0.75]]


def test_small_probabilities_keep_their_digits():
    channel = Channel.from_floats([[1.0, 1e-250], [1.0, 3e-250]])
    assert channel.ratio == pytest.approx(3, rel=1e-15)


def test_large_float_matrices_stay_short():
    """The rows of `Channel(rows)` share the product of all their sums; repaired rows share 2^96."""
    rows = np.random.default_rng(5).dirichlet(np.ones(30), 30)
    assert Channel.from_floats(rows).denominator.bit_length() < 130
    assert Channel(rows).denominator.bit_length() > 1000


# -- refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "kind", "reason"),
    [
        ([[math.nan, 1], [0, 1]], NumberError, "entry 0 of row 0 is NaN"),
        ([[1, 0], [0, math.inf]], NumberError, "entry 1 of row 1 is infinite"),
        ([[1, 0], [0, None]], NumberError, "entry 1 of row 1 is a NoneType"),
        ([[1, 0], [-0.01, 1]], ProbabilityError, "row 1 has an entry of -0.01: too negative"),
        ([[1, 0], [0, 0]], ProbabilityError, "row 1 has no positive entry"),
        ([[1, 0], [0, -1e-9]], ProbabilityError, "row 1 has no positive entry"),
        ([[1, 0], [1]], ShapeError, "rows of one length"),
        ([1, 0], ShapeError, "matrix"),
        ([], ShapeError, "matrix"),
        ([[]], ShapeError, "matrix"),
    ],
)
def test_what_cannot_be_repaired(rows, kind, reason):
    with pytest.raises(kind, match=reason):
        Channel.from_floats(rows, epsilon=1)


def test_labels_and_levels_are_checked():
    with pytest.raises(ShapeError, match="3 output labels for 2 outputs"):
        Channel.from_floats(np.eye(2), epsilon=1, outputs=["a", "b", "c"])
    with pytest.raises(ShapeError, match="1 input labels for 2 inputs"):
        Channel.from_floats(np.eye(2), epsilon=1, inputs=["a"])
    with pytest.raises(EpsilonError, match="positive"):
        Channel.from_floats(np.eye(2), epsilon=0)
    with pytest.raises(LabelError, match="no adjacency"):
        Channel.from_floats(np.eye(2), epsilon=1, adjacency="circle")

"""Noise on integers and on a grid: level, variance, law, and what floats must not leak."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from deniable.channels import DiscreteLaplace, GridLaplace, line, truncated_geometric, two_sided_geometric
from deniable.conformance.checks import accepts, draws_needed, tabulate
from deniable.errors import EpsilonError, NumberError, ShapeError
from deniable.randomness import Simulation

# -- discrete Laplace ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "sensitivity"), [("0.05", 1), (1, 1), (1, 3), (5, 2), (64, 1)])
def test_variance_and_probability_by_summing_the_law(epsilon, sensitivity):
    noise = DiscreteLaplace(epsilon, sensitivity)
    a = math.exp(-float(noise.epsilon) / sensitivity)
    z = np.arange(-4000, 4001)
    law = (1 - a) / (1 + a) * a ** np.abs(z)
    assert noise.probability(z) == pytest.approx(law, rel=1e-12, abs=1e-300)
    assert law.sum() == pytest.approx(1, rel=1e-12)
    assert noise.variance == pytest.approx(math.fsum(law * z**2), rel=1e-9)
    assert noise.variance < 2 * (sensitivity / float(noise.epsilon)) ** 2


@given(st.integers(-50, 50), st.integers(0, 30), st.integers(1, 5), st.sampled_from(["0.1", 1, "7/3"]))
def test_the_level_is_exact_at_every_distance(z, distance, sensitivity, epsilon):
    """P(z - d) / P(z) = e^(epsilon d / sensitivity) at worst."""
    noise = DiscreteLaplace(epsilon, sensitivity)
    level = noise.epsilon_at(distance)
    assert level == noise.epsilon * distance / sensitivity == noise.epsilon_at(-distance)
    ratio = noise.probability([z - distance])[0] / noise.probability([z])[0]
    assert abs(math.log(ratio)) <= float(level) * (1 + 1e-9) + 1e-12
    if z >= distance:
        assert math.log(ratio) == pytest.approx(float(level), abs=1e-9)


def test_small_scales_keep_their_digits():
    assert DiscreteLaplace("1e-6").variance == pytest.approx(2e12, rel=1e-9)
    assert DiscreteLaplace("1e-6").probability(0) == pytest.approx(5e-7, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "sensitivity", "low", "high"), [(1, 1, 0, 6), ("0.3", 2, -3, 4), (8, 1, 5, 6)])
def test_clamped_noise_is_a_channel(epsilon, sensitivity, low, high):
    noise = DiscreteLaplace(epsilon, sensitivity)
    channel = noise.clamp(low, high)
    assert channel.inputs == channel.outputs == tuple(range(low, high + 1))
    assert channel.adjacency == line(sensitivity)
    assert channel.satisfies(epsilon, channel.adjacency)
    reached = float(noise.epsilon) * min(high - low, sensitivity) / sensitivity
    assert channel.epsilon_under(channel.adjacency) == pytest.approx(reached, abs=1e-9)
    z = np.arange(-3000, 3001)
    law = noise.probability(z)
    for y in range(low, high + 1):
        clamped = np.bincount(np.clip(y + z, low, high) - low, weights=law)
        assert channel.rows[y - low] == pytest.approx(clamped, abs=1e-9)


def test_clamped_noise_is_the_truncated_geometric_mechanism():
    assert DiscreteLaplace(1).clamp(0, 5) == truncated_geometric(5, 1)
    assert DiscreteLaplace(1, 2).clamp(0, 5) == truncated_geometric(5, 1, sensitivity=2)


@pytest.mark.parametrize(
    ("low", "high", "kind", "reason"),
    [
        (3, 3, ShapeError, "nothing between 3 and 3"),
        (4, 3, ShapeError, "nothing between"),
        (0.5, 3, NumberError, "lower end is 0.5, not a whole number"),
        (0, None, NumberError, "upper end is a NoneType"),
    ],
)
def test_ranges_that_are_none(low, high, kind, reason):
    with pytest.raises(kind, match=reason):
        DiscreteLaplace(1).clamp(low, high)


@pytest.mark.parametrize(
    ("sensitivity", "reason"),
    [
        (0, "at least 1, not 0"),
        (-2, "at least 1"),
        (1.5, "1.5, not a whole number"),
        (True, "truth value"),
        (None, "NoneType"),
        (math.nan, "NaN"),
        (math.inf, "infinite"),
        (10**30, "64-bit"),
    ],
)
def test_sensitivities_that_are_none(sensitivity, reason):
    with pytest.raises(NumberError, match=reason):
        DiscreteLaplace(1, sensitivity)


def test_epsilon_is_checked():
    with pytest.raises(EpsilonError, match="positive"):
        DiscreteLaplace(0)


def test_integer_noise_on_integers_of_every_type():
    noise = DiscreteLaplace(1)
    for dtype in (np.uint8, np.int16, np.int64, np.uint64):
        values = np.full((2, 3), 200 if dtype == np.uint8 else 7, dtype=dtype)
        noisy = noise.sample(values, Simulation(1))
        assert noisy.dtype == np.int64  # numpy would add uint64 and int64 as floats
        assert noisy.shape == (2, 3)
    assert isinstance(noise.sample(5), int)
    assert isinstance(noise.sample(np.int64(5)), int)
    large = np.array([2**60 + 1], dtype=np.uint64)
    assert {int(noise.sample(large, Simulation(s))[0]) - 2**60 for s in range(40)} >= {0, 1, 2}  # odd and even


@pytest.mark.parametrize(
    ("values", "kind", "reason"),
    [
        (0.5, ShapeError, "integer noise goes on integers"),
        (np.array([1.0]), ShapeError, "GridLaplace"),
        (True, ShapeError, "integers"),
        ("5", ShapeError, "integers"),
        (2**70, ShapeError, "integers"),
        (2**62, NumberError, "2\\^62"),
        (np.array([2**63], dtype=np.uint64), NumberError, "2\\^62"),
        (np.array([-(2**63)]), NumberError, "2\\^62"),
    ],
    ids=range(8),
)
def test_values_that_take_no_integer_noise(values, kind, reason):
    with pytest.raises(kind, match=reason):
        DiscreteLaplace(1).sample(values)


@pytest.mark.parametrize("noise", [DiscreteLaplace("0.3", 2), GridLaplace("0.3", "0.1", "0.01")], ids=repr)
def test_noise_is_a_value(noise):
    for twin in (pickle.loads(pickle.dumps(noise)), copy.deepcopy(noise)):
        assert twin == noise
        assert hash(twin) == hash(noise)
        assert twin.sample(3, Simulation(1)) == noise.sample(3, Simulation(1))
    with pytest.raises(AttributeError):
        noise.epsilon = Fraction(64)
    assert "Fraction(3, 10)" in repr(noise)
    assert two_sided_geometric("0.3", 2) == DiscreteLaplace(0.3, 2.0)


# -- Laplace on a grid ---------------------------------------------------------------------------------


@given(
    st.fractions(-3, 3, max_denominator=40),
    st.fractions(0, 2, max_denominator=40),
    st.fractions(Fraction(1, 20), 1, max_denominator=20),
    st.fractions(Fraction(1, 20), 2, max_denominator=20),
)
def test_rounding_never_widens_beyond_the_claim(value, share, grid, sensitivity):
    """Values up to D apart are at most ceil(D / g) steps apart after rounding: all of it in fractions."""
    other = value + min(share, 1) * sensitivity
    steps = [math.floor(v / grid + Fraction(1, 2)) for v in (value, other)]
    noise = GridLaplace(1, sensitivity, grid)
    assert noise.steps == math.ceil(sensitivity / grid)
    assert abs(steps[1] - steps[0]) <= noise.steps
    assert noise.epsilon_at(other - value) <= 1
    assert noise.epsilon_at(sensitivity) == 1


def test_the_claim_cannot_be_sharper():
    """With floor(D / g) in place of the ceiling two values D apart would be further apart than claimed."""
    grid, reach = Fraction(1), Fraction(3, 2)
    low, high = Fraction(49, 100), Fraction(49, 100) + reach
    steps = [math.floor(v / grid + Fraction(1, 2)) for v in (low, high)]
    assert steps[1] - steps[0] == 2 > math.floor(reach / grid)


@pytest.mark.parametrize("half", range(-61, 61, 2))
def test_decimals_a_sensitivity_apart_are_one_step_apart(half):
    """0.45 and 0.35 are 0.1 apart, although their binary values are a little more: two steps would be two epsilons."""
    noise = GridLaplace(1, "0.1", "0.1")
    low, high = half / 20, (half + 2) / 20
    first, second = noise._to_steps(np.array([low, high]))
    assert second - first == noise.steps == 1


def test_binary_values_would_be_two_steps_apart():
    steps = [math.floor(Fraction(v) * 10 + Fraction(1, 2)) for v in (0.35, 0.45)]
    assert steps[1] - steps[0] == 2


@pytest.mark.parametrize("grid", ["0.1", "1/3", "0.001", 2, None])
def test_outputs_are_multiples_of_the_grid(grid):
    noise = GridLaplace(1, 1, grid)
    values = np.random.default_rng(1).normal(0, 5, 300)
    noisy = noise.sample(values, Simulation(2))
    multiples = {float(k * noise.grid) for k in range(-40_000, 40_001)}
    assert set(noisy.tolist()) <= multiples
    assert float(noise.sample(0.3, Simulation(2))) in multiples


def test_the_low_bits_do_not_depend_on_the_value():
    """The leak through floats: with naive Laplace noise two inputs have different sets of possible outputs."""
    noise = GridLaplace(1, 1, "1/8")
    outputs = [set(noise.sample(np.full(4000, v), Simulation(3)).tolist()) for v in (0.0, 0.1 + 0.2)]
    assert all(value * 8 == int(value * 8) for seen in outputs for value in seen)
    naive = [set((v + np.random.default_rng(3).laplace(0, 1, 4000)).tolist()) for v in (0.0, 0.1 + 0.2)]
    assert not naive[0] & naive[1]
    assert len(outputs[0] & outputs[1]) > 20


def test_the_law_on_the_grid():
    """Chi-square with false-positive rate 1e-6, and it rejects the same noise at another level."""
    noise, wrong = GridLaplace(1, 1, "1/2"), GridLaplace("1.1", 1, "1/2")
    cells = np.arange(-12, 13)

    def law(of):
        point = of.noise.probability(cells)
        point[[0, -1]] += (1 - point.sum()) / 2
        return point

    size = draws_needed(law(noise), law(wrong))
    counts = {}
    for name, of in (("right", noise), ("wrong", wrong)):
        steps = np.rint(of.sample(np.full(size, 0.24), Simulation(4)) * 2).astype(int)
        counts[name] = tabulate(np.clip(steps, -12, 12) + 12, 25)
    assert accepts(counts["right"], law(noise))
    assert not accepts(counts["wrong"], law(noise))


def test_percentages():
    """A percentage over at least 1000 records moves by at most 0.1 points: density 5 epsilon e^(-10 epsilon |z|)."""
    noise = GridLaplace(2, "0.1")
    assert noise.density(np.array([0.0, 0.3])) == pytest.approx([10, 10 * math.exp(-6)])
    assert noise.grid == Fraction(1, 10_000)
    assert noise.variance == pytest.approx(2 * (0.1 / 2) ** 2, rel=1e-5)
    assert noise.epsilon_at("0.05") == 1


def test_shapes_in_shapes_out():
    noise = GridLaplace(1, 1)
    assert isinstance(noise.sample(1.5), float)
    assert noise.sample([[1.0, 2.0], [3.0, 4.0]]).shape == (2, 2)
    assert noise.sample([]).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "kind", "reason"),
    [
        ((0, 1), EpsilonError, "positive"),
        ((1, 0), NumberError, "sensitivity and the grid must be positive"),
        ((1, -1), NumberError, "must be positive"),
        ((1, 1, 0), NumberError, "must be positive"),
        ((1, math.nan), NumberError, "sensitivity is NaN"),
        ((1, 1, "x"), NumberError, "grid 'x' is not a number"),
        ((1, 10**12, "1e-12"), NumberError, "coarser steps"),
    ],
)
def test_grids_that_are_none(arguments, kind, reason):
    with pytest.raises(kind, match=reason):
        GridLaplace(*arguments)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (math.nan, "NaN"),
        ([1.0, math.inf], "NaN or infinite"),
        ("secret", "not numbers"),
        ([1, None], "NaN|not numbers"),
        (10**400, "not numbers that fit"),
        (1e300, "2\\^62 grid steps"),
    ],
)
def test_values_that_take_no_noise(values, reason):
    with pytest.raises(NumberError, match=reason) as refused:
        GridLaplace(1, 1).sample(values)
    assert "secret" not in str(refused.value)

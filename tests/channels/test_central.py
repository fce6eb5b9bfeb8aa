"""The trusted curator's mechanisms: their law by enumeration, and their privacy between neighbouring histograms."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from deniable.channels import DiscreteLaplace, noisy_count, noisy_max_law, report_noisy_max
from deniable.conformance.checks import accepts, draws_needed, tabulate
from deniable.errors import ChannelError, EpsilonError, LabelError, NumberError, ShapeError
from deniable.randomness import Simulation


def enumerated(counts: list[int], rate: float, reach: int = 60) -> list[float]:
    """P(each position wins), by running through every vector of noisy counts."""
    a = math.exp(-rate)
    span = range(-reach, reach + 1)
    point = {z: (1 - a) / (1 + a) * a ** abs(z) for z in span}
    wins = [0.0] * len(counts)
    for noise in product(span, repeat=len(counts)):
        noisy = [c + z for c, z in zip(counts, noise, strict=True)]
        wins[noisy.index(max(noisy))] += math.prod(point[z] for z in noise)
    return wins


@pytest.mark.parametrize("neighbours", ["substitute", "add-remove"])
@pytest.mark.parametrize("counts", [[0, 0], [3, 1], [0, 4], [7]])
def test_the_law_by_enumeration(counts, neighbours):
    rate = 1 / (2 if neighbours == "substitute" else 1)
    assert noisy_max_law(counts, 1, neighbours) == pytest.approx(enumerated(counts, rate, 90), abs=1e-12)


def test_the_law_of_three_by_enumeration():
    assert noisy_max_law([1, 0, 2], 4) == pytest.approx(enumerated([1, 0, 2], 2, 22), abs=1e-12)


def test_ties_go_to_the_first():
    law = noisy_max_law([5, 5, 5], 1)
    assert law[0] > law[1] > law[2]


@pytest.mark.parametrize("epsilon", ["0.1", 1, 8, 64])
@pytest.mark.parametrize("counts", [[0], [2, 2, 2, 2], [0, 9, 3], [50, 0]])
def test_the_law_sums_to_one(counts, epsilon):
    law = noisy_max_law(counts, epsilon)
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert (law >= 0).all()


def test_the_law_keeps_its_digits_at_large_epsilon():
    """Two counts, one apart, a = e^-32: the smaller wins with probability (2 a + ...), not with rounding noise."""
    a = math.exp(-32)
    exact = sum(
        (1 - a) / (1 + a) * a ** abs(v) * (a ** (2 - v) if v < 1 else 1 + a - a**v) / (1 + a) for v in range(-40, 60)
    )  # P(the second, with count 0, is strictly above the first, with count 1)
    assert noisy_max_law([1, 0], 64)[1] == pytest.approx(exact, rel=1e-9)


# -- privacy -------------------------------------------------------------------------------------------


def substitutes(people: int, cells: int):
    """Pairs of histograms in which one person gave another answer."""
    for counts in product(range(people + 1), repeat=cells):
        if sum(counts) == people:
            for i, j in product(range(cells), repeat=2):
                if i != j and counts[i]:
                    other = list(counts)
                    other[i] -= 1
                    other[j] += 1
                    yield list(counts), other


def removals(people: int, cells: int):
    """Pairs of histograms of which the second has one person less."""
    for counts in product(range(people + 1), repeat=cells):
        for i in range(cells):
            if counts[i]:
                other = list(counts)
                other[i] -= 1
                yield list(counts), other


def worst(pairs, noise_level, neighbours) -> float:
    """The largest log ratio of the law over the pairs, both ways, with noise for `noise_level`."""
    return max(
        float(
            np.abs(np.log(noisy_max_law(a, noise_level, neighbours) / noisy_max_law(b, noise_level, neighbours))).max()
        )
        for a, b in pairs
    )


PAIRS = {"substitute": substitutes, "add-remove": removals}


@pytest.mark.parametrize("neighbours", PAIRS)
@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_no_neighbour_is_given_away(neighbours, epsilon):
    pairs = list(PAIRS[neighbours](4, 3))
    assert worst(pairs, epsilon, neighbours) <= epsilon + 1e-10


@pytest.mark.parametrize("neighbours", PAIRS)
def test_less_noise_would_give_them_away(neighbours):
    """The noise for 1.3 epsilon exceeds epsilon: the test above could fail."""
    pairs = list(PAIRS[neighbours](4, 3))
    assert worst(pairs, 1.3, neighbours) > 1.02


def test_the_noise_for_removal_does_not_cover_substitution():
    assert worst(substitutes(6, 2), 1, "add-remove") > 1.3


# -- the sampler ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", PAIRS)
def test_the_sampler_follows_the_law(neighbours):
    """Chi-square with false-positive rate 1e-6, and it rejects the noise of another level."""
    counts = [3, 0, 2]
    law, wrong = noisy_max_law(counts, 1, neighbours), noisy_max_law(counts, "1.15", neighbours)
    size = draws_needed(law, wrong)
    drawn = report_noisy_max(counts, 1, neighbours, Simulation(11), size=size)
    assert accepts(tabulate(drawn, 3), law)
    other = report_noisy_max(counts, "1.15", neighbours, Simulation(11), size=size)
    assert not accepts(tabulate(other, 3), law)


def test_one_run_is_an_int():
    assert isinstance(report_noisy_max([1, 2], 1), int)
    assert report_noisy_max(np.array([0, 10**6], dtype=np.uint64), 1) == 1
    assert report_noisy_max([4], 1) == 0


def test_counting():
    drawn = noisy_count(np.full(4000, 10), 1, Simulation(5))
    # sd of the mean .021: wrong for fewer than one seed in a million
    assert abs(drawn.mean() - 10) < 0.11
    assert isinstance(noisy_count(10, Fraction(1)), int)


@pytest.mark.parametrize("function", [report_noisy_max, noisy_max_law])
@pytest.mark.parametrize(
    ("counts", "epsilon", "neighbours", "kind", "reason"),
    [
        ([], 1, "substitute", ShapeError, "flat list of integer counts"),
        ([[1]], 1, "substitute", ShapeError, "flat list"),
        ([1.9, 2.0], 1, "substitute", ShapeError, "integer counts"),
        (["a"], 1, "substitute", ShapeError, "integer counts"),
        ([True], 1, "substitute", ShapeError, "integer counts"),
        ([2**62], 1, "substitute", NumberError, "2\\^62"),
        ([1, 2], 0, "substitute", EpsilonError, "positive"),
        ([1, 2], 1, "swap", LabelError, "'substitute' or 'add-remove'"),
    ],
    ids=range(8),
)
def test_histograms_that_are_none(function, counts, epsilon, neighbours, kind, reason):
    with pytest.raises(kind, match=reason):
        function(counts, epsilon, neighbours)


@pytest.mark.parametrize(("counts", "epsilon"), [([1, 2], "1e-6"), ([0, 10**9], 1)])
def test_a_sum_too_long_is_refused(counts, epsilon):
    with pytest.raises(ChannelError, match="simulate report_noisy_max"):
        noisy_max_law(counts, epsilon)


def test_many_counts_in_blocks(monkeypatch):
    counts = np.random.default_rng(3).integers(0, 40, 30).tolist()
    law = noisy_max_law(counts, "1/2")
    monkeypatch.setattr("deniable.channels.noise._BLOCK_CELLS", 100)
    assert noisy_max_law(counts, "1/2") == pytest.approx(law, rel=1e-12)
    # The winner by its definition, one noisy count at a time.
    noise = DiscreteLaplace("1/4")
    z = np.arange(-400, 450)
    point = np.array([noise.probability(z - count) for count in counts])
    below = np.cumsum(point, axis=1)
    strictly = below - point
    direct = [
        (point[i] * np.prod(strictly[:i], axis=0) * np.prod(below[i + 1 :], axis=0)).sum() for i in range(len(counts))
    ]
    assert law == pytest.approx(np.array(direct), rel=1e-9)

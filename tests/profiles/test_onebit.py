"""One-bit mechanisms: the closed form, the program and the verifier agree; never more noise than LDP."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from deniable.errors import DeniableError
from deniable.exact import WORD
from deniable.protocols import load
from deniable.protocols.profiles import (
    OneBitCluster,
    ProfileGraph,
    ProfileMechanism,
    SmoothOneBit,
    Warner,
    pair_flip,
    pair_program,
    verify,
)

GRID = [Fraction(i, 8) for i in range(9)]
LEVELS = ["1/100", "0.2", "1", "3"]


def flip_channel(top):
    return [[Fraction(WORD - top, WORD), Fraction(top, WORD)], [Fraction(top, WORD), Fraction(WORD - top, WORD)]]


@pytest.mark.parametrize("epsilon", LEVELS)
def test_closed_form_and_program_agree_on_a_grid(epsilon):
    for p in GRID:
        for q in GRID:
            assert abs(float(pair_flip(p, q, epsilon)) - pair_program(float(p), float(q), epsilon)) <= 1e-12


@pytest.mark.parametrize("epsilon", LEVELS)
def test_the_closed_form_is_the_smallest_that_the_verifier_accepts(epsilon):
    for p in GRID:
        for q in GRID:
            graph = ProfileGraph([p, q], [(0, 1)])
            top = int(pair_flip(p, q, epsilon) * WORD)
            assert verify(graph, [flip_channel(top)] * 2, epsilon)
            assert top == 0 or not verify(graph, [flip_channel(top - 1)] * 2, epsilon)


def test_observation_10_as_printed_is_wrong_and_ours_is_not():
    p, odds = 0.9, 2.0
    printed = (p - odds * p + odds - 1) / (2 * (p - odds * p) + odds - 1)
    printed = max(printed, (p - odds * p) / (2 * (p - odds * p) - (1 - odds)))
    assert printed == pytest.approx(1.125)
    assert pair_flip(0.9, 0.9, math.log(2)) == 0


def test_flipping_more_hides_more():
    ratios = []
    graph = ProfileGraph([0.15, 0.6], [(0, 1)])
    for top in range(0, 65, 4):
        ratios.append(verify(graph, [flip_channel(top * WORD // 128)] * 2, 1).ratio)
    assert all(a > b for a, b in pairwise(ratios))
    assert ratios[-1] == 1


@pytest.mark.parametrize("epsilon", LEVELS)
@pytest.mark.parametrize("shape", ["chain", "complete"])
def test_smooth_is_at_most_the_cluster_which_is_at_most_ldp(epsilon, shape):
    random = np.random.default_rng(11)
    for size in (2, 5, 9):
        graph = getattr(ProfileGraph, shape)([Fraction(int(t), 100) for t in random.integers(0, 101, size)])
        smooth, cluster, ldp = (kind(graph, epsilon) for kind in (SmoothOneBit, OneBitCluster, Warner))
        assert smooth.largest <= cluster.largest <= ldp.largest
        for mechanism in (smooth, cluster, ldp):
            assert mechanism.verdict
            assert verify(graph, mechanism, epsilon).ratio == mechanism.ratio


def test_smooth_beats_the_cluster_on_the_papers_chain_and_a_little_less_noise_is_refused():
    graph = ProfileGraph.chain([0, 0.2, 0.4, 0.6, 0.8, 1])
    smooth, cluster = SmoothOneBit(graph, 0.5), OneBitCluster(graph, 0.5)
    assert smooth.flip.max() < 0.8 * cluster.flip.max()
    assert smooth.epsilon == pytest.approx(0.5, abs=1e-9)
    for flips in (smooth.exact_flip, cluster.exact_flip):
        less = [max(flip - Fraction(1, 10**6), Fraction(0)) for flip in flips]
        channels = [[[1 - flip, flip], [flip, 1 - flip]] for flip in less]
        assert not verify(graph, channels, 0.5)


def test_the_optimum_is_the_programs():
    # Two profiles above 1/2: only the upper one needs to move, to 1 - q = (1 - 0.6) / e.
    graph = ProfileGraph([0.6, 0.95], [(0, 1)])
    flip = SmoothOneBit(graph, 1).flip
    best = (0.95 - (1 - 0.4 / math.e)) / (2 * 0.95 - 1)
    assert flip[1] == pytest.approx(best, abs=1e-9)
    assert flip[0] == pytest.approx(0, abs=1e-9)


def test_equal_to_ldp_only_at_difference_one():
    assert (
        SmoothOneBit(ProfileGraph([0, 1], [(0, 1)]), "1/2").largest
        == Warner(ProfileGraph([0, 1], [(0, 1)]), "1/2").largest
    )
    nearly = ProfileGraph([0, "99/100"], [(0, 1)])
    assert SmoothOneBit(nearly, "1/2").largest < Warner(nearly, "1/2").largest


@pytest.mark.parametrize("p", [0, 0.3, 1])
@pytest.mark.parametrize("kind", [SmoothOneBit, OneBitCluster])
def test_an_edge_between_equal_profiles_costs_nothing(kind, p):
    mechanism = kind(ProfileGraph([p, p], [(0, 1)]), "1/1000000")
    assert mechanism.flip.tolist() == [0, 0]
    assert mechanism.ratio == 1
    assert mechanism.in_the_clear == (0, 1)


def test_an_edge_between_equal_profiles_costs_nothing_beside_others():
    with_twin = ProfileGraph({"z": 0, "a": 0, "b": 0.5}, [("a", "b"), ("z", "a")])
    without = ProfileGraph({"a": 0, "b": 0.5}, [("a", "b")])
    twin, alone = SmoothOneBit(with_twin, 1), SmoothOneBit(without, 1)
    np.testing.assert_allclose(twin.flip[1:], alone.flip, atol=1e-12)


@pytest.mark.parametrize("kind", [SmoothOneBit, OneBitCluster])
def test_components_are_independent(kind):
    first, second = {"a": 0.1, "b": 0.5, "c": 0.6}, {"x": 0.3, "y": 0.9}
    edges = [("a", "b"), ("b", "c")]
    both = kind(ProfileGraph(first | second | {"lonely": 0.4}, [*edges, ("x", "y")]), 0.3)
    np.testing.assert_array_equal(both.table[:3], kind(ProfileGraph(first, edges), 0.3).table)
    np.testing.assert_array_equal(both.table[3:5], kind(ProfileGraph(second, [("x", "y")]), 0.3).table)
    assert both.in_the_clear == ("lonely",)


def test_a_prior_moves_the_noise_to_rare_profiles():
    graph = ProfileGraph([0.1, 0.4, 0.7], [(0, 1), (1, 2)])
    plain = SmoothOneBit(graph, 0.3)
    for prior in ([100, 1, 1], [1, 1, 100], [0, 0, 1]):
        weighed = SmoothOneBit(graph, 0.3, prior=prior)
        assert weighed.flip @ prior <= plain.flip @ prior + 1e-12
        assert weighed.verdict
    assert SmoothOneBit(graph, 0.3, prior=[100, 1, 1]).flip[0] < plain.flip[0]


@pytest.mark.parametrize("size", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_the_programs_of_many_profiles_grow_with_their_edges(size):
    graph = ProfileGraph.chain([Fraction(i, size - 1) for i in range(size)])
    mechanism = SmoothOneBit(graph, 0.01)
    assert all(step.rows <= 5 * size and step.nonzeros <= 10 * size for step in mechanism.trace)
    assert mechanism.verdict
    assert mechanism.largest <= OneBitCluster(graph, 0.01).largest


def test_many_small_components():
    edges = [(2 * i, 2 * i + 1) for i in range(40)]
    graph = ProfileGraph([Fraction(i % 7, 8) for i in range(80)], edges)
    assert SmoothOneBit(graph, 0.5).verdict


def test_specs_keep_the_integers():
    mechanism = SmoothOneBit(ProfileGraph.chain([0.1, 0.5, 0.7]), 0.4)
    again = ProfileMechanism.of(load(mechanism.spec()))
    assert type(again) is SmoothOneBit
    assert again == mechanism
    np.testing.assert_array_equal(again.table, mechanism.table)


@pytest.mark.parametrize("kind", [SmoothOneBit, OneBitCluster, Warner])
def test_refusals(kind):
    with pytest.raises(DeniableError, match="profiles of 2 values, not 3"):
        kind(ProfileGraph([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], [(0, 1)]), 1)
    with pytest.raises(DeniableError, match="must be positive"):
        kind(ProfileGraph([0.1, 0.2], [(0, 1)]), 0)
    with pytest.raises(DeniableError, match="needs a ProfileGraph, not a list"):
        kind([0.1, 0.2], 1)
    with pytest.raises(DeniableError, match="2 weights for 3 profiles"):
        SmoothOneBit(ProfileGraph.chain([0.1, 0.2, 0.3]), 1, prior=[1, 2])
    with pytest.raises(DeniableError, match="between 0 and 1"):
        pair_flip(0.1, 1.1, 1)

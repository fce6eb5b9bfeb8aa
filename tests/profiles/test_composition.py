"""The four cases of the paper's figure 1, in numbers: two that compose, two that do not."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from deniable.channels import Channel
from deniable.errors import DeniableError
from deniable.protocols.profiles import (
    OneBitCluster,
    ProfileGraph,
    SmoothCategorical,
    SmoothOneBit,
    compose,
    independent_profiles,
    independent_samples,
    linked_profiles,
    post_process,
    same_sample,
)

GRAPH = ProfileGraph({"i": 0, "j": 0.5, "k": 1}, [("i", "j")])
FIRST, SECOND = OneBitCluster(GRAPH, "1/2"), SmoothOneBit(GRAPH, 1)


def test_observation_3_post_processing():
    graph = ProfileGraph.chain([[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]])
    mechanism = SmoothCategorical(graph, 0.4)
    merge = Channel([[1, 0], [1, 0], ["1/3", "2/3"]])
    after = post_process(mechanism, merge)
    assert after.ratio <= mechanism.ratio
    assert after
    same = post_process(mechanism, Channel([[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    assert same.ratio == mechanism.ratio
    with pytest.raises(DeniableError, match="takes 2 inputs"):
        post_process(mechanism, Channel([[1, 0], [0, 1]]))


def test_observation_4_independent_samples_add():
    both = compose(FIRST, SECOND)
    assert both.holds
    assert both.bound == FIRST.ratio * SECOND.ratio
    assert both.epsilon <= both.epsilon_bound <= 1.5 + 1e-15
    twice = independent_samples(FIRST, FIRST)
    assert twice.ratio == FIRST.ratio**2  # the worst output, twice: the bound is reached


def test_observation_5_independent_profiles_take_the_maximum():
    both = compose(FIRST, SECOND, profiles="independent")
    assert both.ratio == both.bound == max(FIRST.ratio, SECOND.ratio)
    # Computed rather than argued: whatever the second choice, if it does not depend on the first.
    for mix in (["1/3", "1/3", "1/3"], [0, "1/4", "3/4"]):
        assert linked_profiles(FIRST, SECOND, [mix] * 3).ratio == FIRST.ratio
        assert linked_profiles(SECOND, FIRST, [mix] * 3).ratio == SECOND.ratio
    assert independent_profiles(SECOND, FIRST).ratio == both.ratio


def test_one_sample_twice_exceeds_the_sum():
    twice = same_sample(FIRST, FIRST)
    assert twice.ratio > FIRST.ratio**2
    assert twice.epsilon_bound == math.inf
    with pytest.raises(DeniableError, match="release once, and reuse the output"):
        compose(FIRST, FIRST, samples="same")
    with pytest.raises(DeniableError, match="do not compose"):
        compose(FIRST, FIRST, samples="dependent")


def test_one_sample_twice_by_hand():
    (flip, *_), half = FIRST.exact_flip, Fraction(1, 2)
    expected = half * ((1 - flip) ** 2 + flip**2) / flip**2
    assert same_sample(FIRST, FIRST).ratio == expected


def test_linked_profiles_can_give_everything_away():
    # After i always comes i, after j always k, whose bit is not protected at all.
    linked = linked_profiles(FIRST, FIRST, [[1, 0, 0], [0, 0, 1], [0, 0, 1]])
    assert linked.ratio > FIRST.ratio * FIRST.ratio
    sure = ProfileGraph({"i": 0.4, "j": 0.5, "off": 0, "on": 1}, [("i", "j")])
    clear = OneBitCluster(sure, 1)
    following = [[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert linked_profiles(clear, clear, following).ratio == math.inf
    with pytest.raises(DeniableError, match="learns about one choice from the other"):
        compose(FIRST, SECOND, profiles="dependent")


def test_refusals():
    with pytest.raises(DeniableError, match="samples are one of"):
        compose(FIRST, SECOND, samples="maybe")
    other = OneBitCluster(ProfileGraph([0.1, 0.2], [(0, 1)]), 1)
    with pytest.raises(DeniableError, match="over one graph"):
        compose(FIRST, other)
    with pytest.raises(DeniableError, match="3 x 3 matrix"):
        linked_profiles(FIRST, FIRST, [[1]])
    with pytest.raises(DeniableError, match="sums to 1"):
        linked_profiles(FIRST, FIRST, [[1, 1, 0]] * 3)


def test_any_number_of_releases_composes():
    graph = ProfileGraph.chain([[0.2, 0.3, 0.5], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]])
    releases = [SmoothCategorical(graph, epsilon) for epsilon in ("0.4", "0.2", "0.7")]
    three = compose(*releases)
    # The joint law, multiplied out, over every edge.
    laws = [
        [[Fraction(int(top), int(bottom)) for top in law] for law, bottom in zip(r._laws, r._bottoms, strict=True)]
        for r in releases
    ]
    joint = [[a * b * c for a in laws[0][i] for b in laws[1][i] for c in laws[2][i]] for i in range(graph.size)]
    worst = max(
        max(p / q, q / p) for i, j in graph.whole.edges.tolist() for p, q in zip(joint[i], joint[j], strict=True)
    )
    assert three.ratio == worst
    assert three.bound == releases[0].ratio * releases[1].ratio * releases[2].ratio
    assert three.holds
    assert compose(*[FIRST] * 50).ratio == FIRST.ratio**50
    assert compose(FIRST).ratio == FIRST.ratio
    assert compose(FIRST, SECOND, FIRST, profiles="independent").ratio == max(FIRST.ratio, SECOND.ratio)


def test_one_sample_many_times():
    once, twice, often = (same_sample(*[FIRST] * count).epsilon for count in (1, 2, 6))
    assert same_sample(FIRST).ratio == FIRST.ratio
    assert once < twice < often
    with pytest.raises(DeniableError, match=r"1,073,741,824 joint outputs, .* compose fewer"):
        same_sample(*[FIRST] * 30)
    for function in (compose, independent_profiles, independent_samples, same_sample):
        with pytest.raises(DeniableError, match="nothing to compose"):
            function()

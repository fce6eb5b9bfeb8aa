"""Products, mixtures, whole collections and groups, against the enumerated joint channel."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product as tuples

import pytest
from hypothesis import given, settings, strategies as st

from deniable.channels import (
    Channel,
    coin_response,
    collection,
    group_ratio,
    hamming,
    mixture,
    product,
    randomized_response,
)
from deniable.errors import ChannelError, LabelError, NumberError, ProbabilityError
from tests.channels.small import channels, exactly, largest_ratio, rows

# -- products ------------------------------------------------------------------------------------------


@given(rows(), rows())
def test_product_by_enumeration(first, second):
    both = product(Channel(first), Channel(second))
    expected = [[a * b for a in p for b in q] for p in first for q in second]
    assert exactly(both) == expected
    assert both.inputs == tuple(tuples(range(len(first)), range(len(second))))


@given(st.lists(channels(positive=True), min_size=1, max_size=3))
def test_the_ratio_of_a_product_is_the_product_of_ratios(factors):
    assert product(*factors).ratio == math.prod(channel.ratio for channel in factors)


def test_products_refuse_nothing_and_too_much():
    with pytest.raises(ChannelError, match="at least one"):
        product()
    with pytest.raises(ChannelError, match="cells, more than"):
        product(*[randomized_response(16, 1)] * 3)


def test_a_product_of_one_has_tuples_as_labels():
    assert product(coin_response()).inputs == (("yes",), ("no",))


# -- mixtures ------------------------------------------------------------------------------------------


@given(rows(inputs=2, outputs=3), rows(inputs=2, outputs=3), st.fractions(0, 1, max_denominator=50))
def test_mixture_by_enumeration(first, second, share):
    mixed = mixture([Channel(first), Channel(second)], [share, 1 - share])
    expected = [
        [share * a + (1 - share) * b for a, b in zip(p, q, strict=True)] for p, q in zip(first, second, strict=True)
    ]
    assert exactly(mixed) == expected
    assert mixed.ratio <= max(Channel(first).ratio, Channel(second).ratio)


def test_mixture_weights_are_read_as_decimals():
    coin = coin_response()
    assert mixture([coin] * 10, [0.1] * 10) == coin


@pytest.mark.parametrize(
    ("weights", "kind", "reason"),
    [
        ([1], ChannelError, "1 weights for 2 channels"),
        (["1/2", "1/3"], ProbabilityError, "exactly 1"),
        ([-1, 2], ProbabilityError, "non-negative"),
        ([math.nan, 1], NumberError, "a weight is NaN"),
    ],
)
def test_weights_that_are_none(weights, kind, reason):
    with pytest.raises(kind, match=reason):
        mixture([coin_response()] * 2, weights)


def test_mixtures_need_the_same_labels():
    half = ["1/2", "1/2"]
    law = [[1, 0], [0, 1]]
    with pytest.raises(LabelError, match="same inputs and outputs"):
        mixture([Channel(law), Channel(law, outputs=["a", "b"])], half)
    with pytest.raises(LabelError, match="same inputs and outputs"):
        mixture([Channel(law, [0, 1]), Channel(law, [False, True])], half)
    with pytest.raises(ChannelError, match="0 weights for 0"):
        mixture([], [])


# -- collections ---------------------------------------------------------------------------------------


@given(st.lists(channels(inputs=2, outputs=2), min_size=1, max_size=4))
@settings(max_examples=60)
def test_a_collection_is_as_private_as_its_joint_channel(members):
    """All inputs of all people at once; neighbours differ in one person's answer."""
    joint = product(*members)
    law = exactly(joint)
    neighbours = [
        (i, j) for i, a in enumerate(joint.inputs) for j, b in enumerate(joint.inputs) if i < j and hamming(a, b) == 1
    ]
    promise = collection(members)
    assert promise.ratio == largest_ratio(law, neighbours) == group_ratio(joint, 1)
    assert promise.members == len(members)
    assert members[promise.worst].ratio == promise.ratio
    assert promise.epsilon == pytest.approx(joint.epsilon_under("hamming"), abs=1e-15)


def test_the_sum_of_levels_would_overstate_a_collection():
    members = [randomized_response(2, 1)] * 3
    assert collection(members).epsilon == pytest.approx(1)
    assert product(*members).epsilon == pytest.approx(3)


def test_members_may_have_names():
    promise = collection({"Ada": randomized_response(3, "0.5"), "Bob": randomized_response(2, 2)})
    assert promise.worst == "Bob"
    assert "(the channel of member Bob)" in str(promise)
    assert "2 people" in str(promise)
    with pytest.raises(ChannelError, match="at least one member"):
        collection([])


def test_one_member_without_protection_decides():
    promise = collection([coin_response(), Channel([[1, 0], [0, 1]])])
    assert promise.ratio == math.inf
    assert promise.epsilon == math.inf


# -- groups --------------------------------------------------------------------------------------------


@given(rows(inputs=8, outputs=3, positive=True), st.integers(1, 3))
def test_group_privacy_of_any_mechanism(law, distance):
    """Between databases h records apart the ratio is at most the h-th power of the ratio between neighbours."""
    channel = Channel(law, list(tuples((0, 1), repeat=3)))
    ratio = group_ratio(channel, distance)
    pairs = [(i, j) for i in range(8) for j in range(i) if hamming(channel.inputs[i], channel.inputs[j]) == distance]
    assert ratio == largest_ratio(law, pairs)
    assert ratio <= group_ratio(channel, 1) ** distance


@pytest.mark.parametrize("distance", [1, 2, 3])
@pytest.mark.parametrize(("k", "epsilon"), [(2, 1), (3, "0.25"), (2, 5)])
def test_group_privacy_is_sharp_for_randomized_response(k, epsilon, distance):
    each = randomized_response(k, epsilon)
    joint = product(*[each] * 3)
    assert group_ratio(joint, distance) == each.ratio**distance


def test_group_ratio_reads_its_distance():
    channel = Channel([["1/2", "1/2"], ["1/4", "3/4"]])
    assert group_ratio(channel, 0.1, lambda a, b: "1/10") == 2
    assert group_ratio(channel, 1, "line") == 2
    assert group_ratio(channel, 2, "line") == Fraction(1)
    with pytest.raises(NumberError, match="the distance"):
        group_ratio(channel, "far", "line")


def test_a_member_without_noise_leaves_no_promise():
    identity = Channel([[1, 0], [0, 1]])
    promise = collection({"Ann": coin_response(), "Bob": identity})
    assert math.isinf(promise.epsilon)
    assert "no finite epsilon" in str(promise)
    assert "Bob" in str(promise)
    assert "infinite" not in str(promise)

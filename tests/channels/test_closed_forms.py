"""Randomized response, the coin, the binary mechanism, subset selection: exact laws, never above the level."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from deniable import exact
from deniable.channels import (
    Channel,
    RandomizedResponse,
    binary,
    coin_response,
    product_response,
    randomized_response,
    subset_selection,
    warner,
)
from deniable.channels.closed_forms import best_subset_size
from deniable.errors import ChannelError, EpsilonError, LabelError, NumberError, ProbabilityError, ShapeError
from deniable.exact import WORD, Dyadic
from deniable.randomness import Simulation
from tests.channels.small import exactly

# -- randomized response -------------------------------------------------------------------------------


def ten_thousand():
    """Sizes and levels spread over their magnitudes, with the corners."""
    generator = np.random.default_rng(20)
    sizes = np.floor(np.exp(generator.uniform(math.log(2), math.log(10**6 + 1), 10_000))).astype(int)
    levels = np.exp(generator.uniform(math.log(1e-6), math.log(16), 10_000))
    # Every third level is a number that a person would write.
    levels[::3] = np.round(levels[::3], 2) + 0.01
    cases = list(zip(sizes.tolist(), np.minimum(levels, 16).tolist(), strict=True))
    return [(2, 1e-6), (10**6, 1e-6), (2, 16), (10**6, 16), *cases[4:]]


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def test_ten_thousand_levels_are_never_exceeded_and_nearly_reached(step):
    """ln of the ratio lies in (epsilon - 1e-12, epsilon]; one step more, or floats, would exceed it."""
    floats_exceed = 0
    close = 1 - Fraction(1, 10**12) + Fraction(1, 10**24)  # above e^-1e-12
    for size, level in ten_thousand()[::step]:
        epsilon = exact.as_epsilon(level)
        law = RandomizedResponse.at(size, epsilon)
        assert exact.exp_at_least(epsilon, law.ratio)
        assert law.ratio >= exact.exp_ceil(epsilon) * close
        one_more = RandomizedResponse(size, Dyadic(law.keep.numerator + 1))
        assert not exact.exp_at_least(epsilon, one_more.ratio)
        odds = math.exp(level)
        naive = RandomizedResponse(size, Dyadic(int(2.0**64 * ((odds - 1) / (odds + size - 1)))))
        floats_exceed += naive.keep.numerator > law.keep.numerator
    assert floats_exceed > 1000 // step


def test_a_thousand_of_them_against_mpmath():
    with mpmath.workprec(400):
        for size, level in ten_thousand()[::10]:
            ratio = RandomizedResponse.at(size, level).ratio
            epsilon = mpmath.mpf(repr(level))
            gap = epsilon - mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
            assert 0 <= gap < 1e-12


@given(st.integers(2, 6), st.fractions(Fraction(1, 1000), 16, max_denominator=1000))
def test_randomized_response_matrix_is_its_law(k, epsilon):
    law = RandomizedResponse.at(k, epsilon)
    channel = law.channel()
    assert exactly(channel) == [[law.true if x == y else law.false for y in range(k)] for x in range(k)]
    assert channel.ratio == law.ratio
    assert channel == randomized_response(k, epsilon)
    assert channel.satisfies(epsilon)
    assert law.epsilon == channel.epsilon


@pytest.mark.parametrize(
    ("k", "keep"),
    [
        (2, 8524556932045589908),
        (4, 5543047035272007536),
        (10, 2704893567170488823),
        (1024, 30901959824277224),
        (3.0, 6717849057872324379),
        (np.int64(1024), 30901959824277224),
        (np.uint8(10), 2704893567170488823),
    ],
)
def test_golden_thresholds_whatever_the_type_of_k(k, keep):
    law = RandomizedResponse.at(k, 1)
    assert law.keep.numerator == keep
    assert type(law.size) is int


@pytest.mark.parametrize(
    ("k", "epsilon", "kind", "reason"),
    [
        (1, 1, ShapeError, "at least 2 possible answers, not 1"),
        (0, 1, ShapeError, "at least 2"),
        (-5, 1, ShapeError, "at least 2"),
        (2.5, 1, NumberError, "not a whole number"),
        (None, 1, NumberError, "NoneType"),
        (True, 1, NumberError, "truth value"),
        ("yes", 1, LabelError, "one text"),
        (["a"], 1, ShapeError, "at least 2"),
        ([], 1, ShapeError, "at least 2"),
        (["a", "a"], 1, LabelError, "stands twice"),
        (2, 0, EpsilonError, "positive"),
        (10**19, "1e-6", ChannelError, "would never be kept"),
        (5000, 1, ChannelError, "use RandomizedResponse"),
    ],
    ids=range(13),
)
def test_randomized_response_refuses(k, epsilon, kind, reason):
    with pytest.raises(kind, match=reason):
        randomized_response(k, epsilon)


def test_randomized_response_takes_labels_from_anywhere():
    assert randomized_response(("a", "b", "c"), 1).inputs == ("a", "b", "c")
    assert randomized_response(np.array(["a", "b"]), 1).outputs == ("a", "b")
    assert randomized_response(range(3), 1) == randomized_response(3, 1)


def test_warner():
    channel = warner("1.0986122886681096")  # just below ln 3
    assert channel.inputs == channel.outputs == ("yes", "no")
    assert channel.rows == pytest.approx(np.array([[0.75, 0.25], [0.25, 0.75]]))
    assert channel.ratio < 3
    with pytest.raises(ShapeError, match="two answers, not 3"):
        warner(1, labels=["a", "b", "c"])


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64, np.int64])
def test_sampling_without_the_matrix(dtype):
    law = RandomizedResponse.at(100, 2)
    values = np.arange(100, dtype=dtype).repeat(200)
    reports = law.sample_indices(values, Simulation(1))
    assert reports.dtype == dtype
    # 20,000 draws, sd of the share .0018: five sigmas, wrong for fewer than one seed in a million
    assert abs((reports == values).mean() - float(law.true)) < 0.009
    assert reports.min() >= 0
    assert reports.max() <= 99


def test_sampling_without_the_matrix_takes_lists_and_nothing():
    law = RandomizedResponse.at(3, 1)
    assert law.sample_indices([0, 1, 2]).shape == (3,)
    assert law.sample_indices([]).size == 0


@pytest.mark.parametrize(
    ("values", "kind", "reason"),
    [
        (np.array([0.5, 1.0]), ShapeError, "integers"),
        (np.array([math.nan]), ShapeError, "integers"),
        (np.array([True, False]), ShapeError, "integers"),
        (["a"], ShapeError, "integers"),
        (np.array([1000]), LabelError, "between 0 and 999"),
        (np.array([-1]), LabelError, "between 0 and 999"),
        (np.array([7], dtype=np.uint8), ShapeError, "uint8 does not hold"),
        (np.zeros(5, dtype=np.int8), ShapeError, "int8 does not hold"),
    ],
    ids=range(8),
)
def test_answers_that_are_none(values, kind, reason):
    """A type too narrow for the lies would tell them apart from the truth."""
    with pytest.raises(kind, match=reason):
        RandomizedResponse.at(1000, 1).sample_indices(values)


# -- the coin ------------------------------------------------------------------------------------------


@given(st.fractions(0, 1, max_denominator=20), st.fractions(0, 1, max_denominator=20))
def test_the_coin_for_any_bias(truth, yes):
    channel = coin_response(truth, yes)
    lie_yes, lie_no = (1 - truth) * yes, (1 - truth) * (1 - yes)
    assert exactly(channel) == [[truth + lie_yes, lie_no], [lie_yes, truth + lie_no]]
    if truth == 0:
        assert channel.ratio == 1
    elif 0 in (lie_yes, lie_no):
        assert channel.ratio == math.inf
    else:
        assert channel.ratio == max((truth + lie_yes) / lie_yes, (truth + lie_no) / lie_no)


def test_the_coin_at_its_ends():
    assert coin_response().ratio == 3
    assert coin_response(truth=1).epsilon == math.inf
    assert coin_response(truth=1).rows.tolist() == [[1, 0], [0, 1]]
    assert coin_response(truth=0).epsilon == 0
    assert coin_response(truth=0.1).probability("yes", "yes") == Fraction(11, 20)


@pytest.mark.parametrize(("truth", "yes"), [(-0.1, 0.5), (0.5, 1.1), (10**400, 0)])
def test_a_bias_is_a_probability(truth, yes):
    with pytest.raises(ProbabilityError, match="bias of a coin is a probability"):
        coin_response(truth, yes)
    with pytest.raises(NumberError, match="second coin's bias is NaN"):
        coin_response("1/2", math.nan)


# -- records of several attributes ---------------------------------------------------------------------


@pytest.mark.parametrize("domains", [[2, 3], [["a", "b"], 2, 2], [np.int64(4)], [(0, 1), ("x", "y", "z")]], ids=repr)
@pytest.mark.parametrize("epsilon", ["0.5", 3])
def test_records_both_ways(domains, epsilon):
    split = product_response(domains, epsilon)
    whole = product_response(domains, epsilon, split=False)
    assert split.inputs == whole.inputs
    assert split.satisfies(epsilon)
    assert whole.satisfies(epsilon)
    assert split.epsilon == pytest.approx(float(epsilon), abs=1e-11)
    assert whole.epsilon == pytest.approx(float(epsilon), abs=1e-11)
    sizes = [int(d) if np.ndim(d) == 0 and not isinstance(d, str) else len(d) for d in domains]
    share = exact.as_epsilon(epsilon) / len(domains)
    assert split.ratio == math.prod(RandomizedResponse.at(size, share).ratio for size in sizes)
    assert whole.ratio == RandomizedResponse.at(math.prod(sizes), epsilon).ratio


def test_records_need_attributes_and_a_share_of_epsilon():
    with pytest.raises(ShapeError, match="at least one attribute"):
        product_response([], 1)
    with pytest.raises(ShapeError, match="at least 2"):
        product_response([2, 1], 1)
    with pytest.raises(EpsilonError, match="below 1e-6"):
        product_response([2, 2], "1e-6")


# -- the binary mechanism ------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", [0, 1])
def test_ties_go_where_they_are_told(ties):
    p0, p1 = [0.3, 0.6, 0.1], [0.3, 0.2, 0.5]
    first, second = np.array(p0) / sum(p0), np.array(p1) / sum(p1)
    assert first[0] != second[0]  # in floats the tie is lost
    coin = warner(1, labels=(0, 1))
    channel = binary(p0, p1, 1, ties=ties)
    assert exactly(channel) == [exactly(coin)[side] for side in (ties, 0, 1)]
    assert channel.satisfies(1)
    assert channel.outputs == (0, 1)


def test_thirds_tie_as_well():
    channel = binary([1 / 3, 1 / 3, 1 / 3], [1 / 3, 2 / 3, 0], 1, ties=1)
    assert (channel.rows[0] == channel.rows[1]).all()
    assert channel.rows[2, 0] > 0.5


@given(st.lists(st.integers(1, 5), min_size=2, max_size=6), st.data())
def test_the_binary_mechanism_reports_the_likelier_side(weights, data):
    others = data.draw(st.lists(st.integers(1, 5), min_size=len(weights), max_size=len(weights)))
    p0, p1 = ([Fraction(w, sum(side)) for w in side] for side in (weights, others))
    channel = binary(p0, p1, 2)
    high = RandomizedResponse.at(2, 2).true
    assert [row[0] == high for row in exactly(channel)] == [a >= b for a, b in zip(p0, p1, strict=True)]


@pytest.mark.parametrize(
    ("p0", "p1", "ties", "kind", "reason"),
    [
        ([0.5, 0.5], [1], 0, ShapeError, "second hypothesis has 1 entries where 2"),
        ([0.5, 0.6], [0.5, 0.5], 0, ProbabilityError, "first hypothesis sums to 1.1"),
        ([0.5, 0.5], [1.5, -0.5], 0, ProbabilityError, "second hypothesis contains a negative"),
        ([0.5, 0.5], [math.nan, 1], 0, ProbabilityError, "NaN"),
        ([0.5, 0.5], [0.5, 0.5], 2, LabelError, "output 0 or to output 1"),
    ],
)
def test_hypotheses_that_are_none(p0, p1, ties, kind, reason):
    with pytest.raises(kind, match=reason):
        binary(p0, p1, 1, ties=ties)


def test_binary_inputs_may_have_names():
    assert binary([0.5, 0.5], [0.4, 0.6], 1, inputs=["a", "b"]).inputs == ("a", "b")


# -- subset selection ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "w"), [(2, 1), (4, 1), (4, 2), (5, 4), (6, 3)])
@pytest.mark.parametrize("epsilon", ["1e-6", "0.5", 1, 5])
def test_subset_selection_against_its_law(k, w, epsilon):
    channel = subset_selection(k, epsilon, w)
    with mpmath.workprec(400):
        odds = mpmath.exp(mpmath.mpf(exact.as_epsilon(epsilon).numerator) / exact.as_epsilon(epsilon).denominator)
        holds = int(mpmath.floor(mpmath.mpf(2) ** 64 * w * odds / (w * odds + k - w)))
    p = Fraction(holds, WORD)
    subsets = list(combinations(range(k), w))
    assert channel.outputs == tuple(subsets)
    inside, outside = p / math.comb(k - 1, w - 1), (1 - p) / math.comb(k - 1, w)
    assert exactly(channel) == [[inside if x in subset else outside for subset in subsets] for x in range(k)]
    assert channel.satisfies(epsilon)
    assert channel.epsilon == pytest.approx(float(epsilon), abs=1e-12)


def test_one_answer_of_a_subset_is_randomized_response():
    pair = subset_selection(5, 1, 1), randomized_response(5, 1)
    assert pair[0].rows == pytest.approx(pair[1].rows, abs=1e-15)


@given(st.integers(2, 200), st.floats(0.001, 12))
def test_the_best_size_is_the_best_of_all(k, epsilon):
    odds = math.exp(epsilon)

    def error(w):
        return (w * odds + k - w) ** 2 / (w * (k - w))

    assert error(best_subset_size(k, epsilon)) <= min(error(w) for w in range(1, k)) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("k", "w", "kind", "reason"),
    [
        (1, None, ShapeError, "at least 2"),
        (4, 0, ShapeError, "between 1 and 3"),
        (4, 4, ShapeError, "between 1 and 3 of the 4 answers, not 4"),
        (4, 1.5, NumberError, "not a whole number"),
        (2.5, None, NumberError, "not a whole number"),
        (40, 20, ChannelError, "too many subsets"),
        (10**6, None, ChannelError, "too many subsets of 268941"),
        (10**30, None, ChannelError, "too many subsets"),
    ],
)
def test_subsets_that_are_none(k, w, kind, reason):
    with pytest.raises(kind, match=reason):
        subset_selection(k, 1, w)


def test_closed_forms_are_channels():
    made = [randomized_response(2, 1), warner(1), coin_response(), binary([1, 0], [0, 1], 1), subset_selection(3, 1)]
    assert all(type(channel) is Channel for channel in made)

"""A channel's numbers against enumeration, its refusals, and its behaviour as a value."""

from __future__ import annotations

import copy
import math
import pickle
import re
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

import deniable as dn
from deniable.channels import Channel, line, randomized_response, truncated_geometric
from deniable.errors import ChannelError, EpsilonError, LabelError, NumberError, ProbabilityError, ShapeError, SpecError
from deniable.protocols import OLH, OUE, SubsetSelection
from deniable.randomness import Simulation
from tests.channels.small import (
    all_pairs,
    channels,
    exactly,
    exp_between,
    largest_ratio,
    log_between,
    rows,
    smallest_delta,
)

COIN = [[3 / 4, 1 / 4], [1 / 4, 3 / 4]]
epsilons = st.fractions(Fraction(1, 1000), 6, max_denominator=1000)

# -- the level -----------------------------------------------------------------------------------------


def test_the_coin():
    coin = dn.Channel(COIN)
    assert coin.ratio == 3
    assert coin.epsilon == pytest.approx(math.log(3), rel=1e-15)
    assert coin.satisfies("1.0986122886681097")
    assert not coin.satisfies("1.0986122886681096")


@given(rows())
def test_ratio_and_epsilon_by_enumeration(law):
    channel = Channel(law)
    ratio = largest_ratio(law, all_pairs(law))
    assert channel.ratio == ratio
    assert channel.epsilon == pytest.approx(math.log(ratio) if ratio < math.inf else math.inf, rel=1e-14, abs=1e-15)
    assert exactly(channel) == law


@given(rows())
def test_witness_is_where_the_ratio_is(law):
    channel = Channel(law, inputs=[f"in {i}" for i in range(len(law))])
    witness = channel.witness()
    high, low = (channel.probability(x, witness.output) for x in witness.inputs)
    assert high > 0
    assert (high / low if low else math.inf) == witness.ratio == channel.ratio


@given(channels(positive=True))
def test_satisfies_on_both_sides_of_the_threshold(channel):
    assume(channel.ratio > 1)
    below, above = log_between(channel.ratio)
    assert channel.satisfies(above)
    assert not channel.satisfies(below)
    assert channel.satisfies(above, "all")
    assert not channel.satisfies(below, "all")


@given(rows(), epsilons)
def test_satisfies_agrees_with_enumeration(law, epsilon):
    ratio = largest_ratio(law, all_pairs(law))
    low, high = exp_between(epsilon)
    assert not low < ratio < high
    assert Channel(law).satisfies(epsilon) == (ratio <= low)


def test_zeros_everywhere_in_a_column_do_not_count():
    channel = Channel([["1/2", "1/2", 0], ["1/4", "3/4", 0]])
    assert channel.ratio == 2
    assert channel.witness().output == 0


def test_a_zero_beside_a_nonzero_is_infinite():
    channel = Channel([[1, 0], ["999/1000", "1/1000"]])
    assert channel.ratio == math.inf
    assert channel.epsilon == math.inf
    assert not channel.satisfies(64)
    assert not channel.satisfies(64, "line")


def test_a_single_row_protects_perfectly():
    channel = Channel([[0.2, 0.3, 0.5]])
    assert channel.ratio == 1
    assert channel.epsilon == 0
    assert channel.satisfies("1e-6")
    assert channel.delta(0) == 0


def test_the_display_never_exceeds_what_was_asked():
    for epsilon in np.arange(1, 300) / 100:
        assert randomized_response(3, epsilon).epsilon <= epsilon


@pytest.mark.parametrize(
    ("epsilon", "reason"), [(0, "positive"), (-1, "positive"), (65, "above 64"), ("x", "not a number")]
)
def test_a_level_that_is_none(epsilon, reason):
    with pytest.raises(EpsilonError, match=reason):
        Channel(COIN).satisfies(epsilon)


# -- delta ---------------------------------------------------------------------------------------------


@given(rows(), st.just(Fraction(0)) | epsilons)
def test_delta_is_never_below_and_hardly_above(law, epsilon):
    low, _ = (Fraction(1), Fraction(1)) if epsilon == 0 else exp_between(epsilon)
    truth = smallest_delta(law, low)
    delta = Channel(law).delta(epsilon)
    assert Fraction(delta) >= truth - Fraction(1, 2**380)
    assert delta <= math.nextafter(float(truth), 2) + 2.0**-120


@given(rows(positive=True))
def test_delta_at_zero_is_total_variation_and_falls(law):
    channel = Channel(law)
    variation = max((sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2 for p in law for q in law), default=0)
    assert channel.delta(0) == pytest.approx(float(variation), abs=1e-15)
    deltas = [channel.delta(level) for level in ("0", "0.1", "0.5", "1", "3")]
    assert deltas == sorted(deltas, reverse=True)


@given(channels(positive=True))
def test_delta_is_zero_exactly_from_epsilon_on(channel):
    assume(channel.ratio > 1)
    below, above = log_between(channel.ratio, 30)
    assert channel.delta(above) == 0
    assert channel.delta(below) > 0


def test_delta_of_the_coin():
    assert Channel(COIN).delta(0) == 0.5
    assert Channel(COIN).delta(2) == 0
    assert Channel([[1, 0], [0, 1]]).delta(5) == 1


def test_delta_rounds_up():
    channel = Channel([["2/3", "1/3"], ["1/3", "2/3"]])
    assert float(Fraction(1, 3)) < Fraction(1, 3)  # the nearest float would be too small
    assert Fraction(channel.delta(0)) > Fraction(1, 3)


def test_delta_sees_what_satisfies_sees():
    """A ratio above e by less than the working precision still has a delta."""
    ratio = exp_between(Fraction(1), 200)[1]
    channel = Channel([[ratio / (1 + ratio), 1 / (1 + ratio)], [1 / (1 + ratio), ratio / (1 + ratio)]])
    assert not channel.satisfies(1)
    assert 0 < channel.delta(1) < 1e-30


def test_delta_refuses_a_negative_epsilon():
    with pytest.raises(ChannelError, match="0 or more"):
        Channel(COIN).delta(-1)
    with pytest.raises(NumberError, match="NaN"):
        Channel(COIN).delta(math.nan)


# -- using it ------------------------------------------------------------------------------------------


@given(channels(outputs=3), rows(inputs=3))
def test_post_processing_never_helps_the_observer(channel, after):
    composed = channel >> Channel(after)
    assert composed.ratio <= channel.ratio
    first = exactly(channel)
    expected = [[sum(p * after[z][y] for z, p in enumerate(row)) for y in range(len(after[0]))] for row in first]
    assert exactly(composed) == expected


def test_post_processing_must_fit():
    with pytest.raises(LabelError, match="outputs of a to be the inputs of b"):
        Channel(COIN) >> Channel(COIN, inputs=["yes", "no"])
    with pytest.raises(LabelError, match="outputs of a"):
        Channel(COIN) >> Channel(COIN, inputs=[False, True])
    with pytest.raises(TypeError):
        Channel(COIN) >> np.eye(2)


def test_post_processing_keeps_labels_and_adjacency():
    merged = truncated_geometric(2, 1) >> Channel([[1, 0], [0, 1], [0, 1]], outputs=["none", "some"])
    assert merged.inputs == (0, 1, 2)
    assert merged.outputs == ("none", "some")
    assert merged.adjacency == truncated_geometric(2, 1).adjacency


@given(rows(inputs=3, positive=True), rows(inputs=1, outputs=3, positive=True))
def test_posterior_odds_move_by_at_most_the_ratio(law, prior):
    channel, weights = Channel(law), prior[0]
    posterior = channel.posterior([float(w) for w in weights])
    for y in range(channel.shape[1]):
        for a in range(3):
            for b in range(3):
                odds = posterior[y, a] / posterior[y, b]
                prior_odds = float(weights[a] / weights[b])
                assert odds <= prior_odds * float(channel.ratio) * (1 + 1e-12)
                assert odds == pytest.approx(prior_odds * float(law[a][y] / law[b][y]))


def test_push_joint_and_posterior():
    channel = Channel([[1, 0, 0], ["1/2", "1/2", 0]])
    assert channel.push([0.5, 0.5]).tolist() == [0.75, 0.25, 0.0]
    assert channel.joint([0.5, 0.5]).tolist() == [[0.5, 0, 0], [0.25, 0.25, 0]]
    posterior = channel.posterior([0.5, 0.5])
    assert posterior[:2].tolist() == [[2 / 3, 1 / 3], [0, 1]]
    assert np.isnan(posterior[2]).all()


@pytest.mark.parametrize(
    ("prior", "kind", "reason"),
    [
        ([0.5], ShapeError, "1 entries where 2"),
        ([0.5, 0.6], ProbabilityError, "sums to 1.1"),
        ([-0.5, 1.5], ProbabilityError, "negative"),
        ([math.nan, 1], ProbabilityError, "NaN"),
        ([1e308, 1e308], ProbabilityError, "inf, not to 1"),
        ([[0.5, 0.5]], ShapeError, "flat"),
        ("ab", ShapeError, "flat list of numbers"),
        ([], ShapeError, "non-empty"),
    ],
)
@pytest.mark.parametrize("method", ["push", "joint", "posterior"])
def test_a_prior_that_is_none(method, prior, kind, reason):
    with pytest.raises(kind, match=reason):
        getattr(Channel(COIN), method)(prior)


def test_the_float_view_is_the_nearest_float():
    channel = Channel([["1/3", "2/3"]])
    assert channel.rows.tolist() == [[1 / 3, 2 / 3]]
    assert channel.rows.dtype == np.float64
    assert truncated_geometric(100, 64).rows[0, 100] == 0.0  # e^-6400 is no float; the integer is there
    assert truncated_geometric(100, 64).numerators[0, 100] > 0


# -- reading rows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        [[0.1, 0.9], [0.25, 0.75]],
        [["0.1", "0.9"], ["1/4", "3/4"]],
        [[Fraction(1, 10), Fraction(9, 10)], [Fraction(1, 4), Fraction(3, 4)]],
        [[Decimal("0.1"), Decimal("0.9")], [0.25, "3/4"]],
        np.array([[0.1, 0.9], [0.25, 0.75]]),
        np.array([[0.1, 0.9], [0.25, 0.75]], dtype=np.float32),
        np.array([["0.1", "0.9"], ["1/4", "3/4"]], dtype=object),
        (row for row in ((0.1, 0.9), (0.25, 0.75))),
    ],
    ids=["floats", "texts", "fractions", "mixed", "float64", "float32", "objects", "generator"],
)
def test_one_law_from_every_notation(rows):
    channel = Channel(rows)
    assert exactly(channel) == [[Fraction(1, 10), Fraction(9, 10)], [Fraction(1, 4), Fraction(3, 4)]]
    assert channel.denominator == 20


def test_floats_within_rounding_are_divided_by_their_sum():
    assert exactly(Channel([[1 / 3, 1 / 3, 1 / 3]])) == [[Fraction(1, 3)] * 3]
    channel = Channel([[0.5 + 5e-10, 0.5]])
    assert sum(channel.numerators[0]) == channel.denominator
    with pytest.raises(ProbabilityError, match=r"row 0 sums to 1 \+ 2e-09.*from_floats"):
        Channel([[0.5 + 2e-9, 0.5]])


@pytest.mark.parametrize(
    ("rows", "kind", "reason"),
    [
        (
            [[0.5, 0.6]],
            ProbabilityError,
            r"row 0 sums to 1\.1, not to 1: divide it by its sum, or let",
        ),
        ([[1, 0], [0.3, 0.3]], ProbabilityError, r"row 1 sums to 0\.6,"),
        ([[3, 4]], ProbabilityError, "row 0 sums to 7"),
        ([["1/3", "1/3", "333333333333/1000000000000"]], ProbabilityError, "row 0 sums to 1 - 3.33333e-13"),
        ([[0, 0]], ProbabilityError, "row 0 sums to 0"),
        ([[1.5, -0.5]], ProbabilityError, r"entry 1 of row 0 is negative \(-0.5\)"),
        ([[1, 0], [math.nan, 1]], ProbabilityError, "entry 0 of row 1 is NaN"),
        ([[math.inf, 1]], ProbabilityError, "entry 0 of row 0 is infinite"),
        ([[None, 1]], ProbabilityError, "entry 0 of row 0 is a NoneType"),
        ([[True, False]], ProbabilityError, "entry 0 of row 0 is a truth value"),
        ([["a", "b"]], ProbabilityError, "entry 0 of row 0 'a' is not a number"),
        ([[10**400, 1]], ProbabilityError, r"sums to 1e\+400 or so"),
        ([[-(10**400), 1]], ProbabilityError, "negative"),
        ([[0.5, 0.5], [1]], ShapeError, "row 1 has 1 entries, row 0 has 2"),
        ([], ShapeError, "at least one input"),
        ([[]], ShapeError, "at least one input"),
        ([0.5, 0.5], ShapeError, "list of rows"),
        (None, ShapeError, "list of rows"),
        (np.array([0.5, 0.5]), ShapeError, "1 dimensions"),
        (np.ones((1, 1, 1)), ShapeError, "3 dimensions"),
        (np.empty((0, 2)), ShapeError, "at least one input"),
    ],
)
def test_rows_that_are_no_law(rows, kind, reason):
    with pytest.raises(kind, match=reason) as refused:
        Channel(rows)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("numerators", "denominator", "kind", "reason"),
    [
        ([[1.9, 0.1]], 2, ProbabilityError, "are integers"),
        ([[Fraction(1), Fraction(1)]], 2, ProbabilityError, "are integers"),
        ([[1, 1]], 2.0, ProbabilityError, "are integers"),
        ([1, 1], 2, ProbabilityError, "are integers"),
        ([[0, 0]], 0, ProbabilityError, "at least 1"),
        ([[1, -2]], -1, ProbabilityError, "at least 1"),
        ([[3, -1]], 2, ProbabilityError, "row 0 has a negative"),
        ([[1, 1], [1, 2]], 2, ProbabilityError, "row 1 sums to 1.5 times the denominator"),
        ([[10**5000, 0]], 10**5001, ProbabilityError, "0.1 times"),
        ([[1, 1], [2]], 2, ShapeError, "equally long"),
        ([], 1, ShapeError, "not empty"),
        ([[]], 1, ShapeError, "not empty"),
    ],
    ids=range(12),
)
def test_integers_that_are_no_law(numerators, denominator, kind, reason):
    with pytest.raises(kind, match=reason):
        Channel.from_integers(numerators, denominator)


def test_integers_are_reduced():
    assert Channel.from_integers([[6, 2], [4, 4]], 8) == Channel.from_integers(np.array([[3, 1], [2, 2]]), np.int64(4))
    assert Channel.from_integers([[6, 2], [4, 4]], 8).denominator == 4


def test_a_law_too_large_for_memory_is_refused_in_time(monkeypatch):
    monkeypatch.setattr("deniable.channels.laws._MOST_BITS", 10_000)
    generator = np.random.default_rng(7)
    with pytest.raises(ChannelError, match="from_floats"):
        Channel(generator.dirichlet(np.ones(12), 12))


# -- labels --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "kind", "reason"),
    [
        (["a"], ShapeError, "1 input labels for 2 inputs"),
        (["a", "b", "c"], ShapeError, "3 input labels for 2 inputs"),
        (["a", "a"], LabelError, "'a' stands twice"),
        (["é", "e\u0301"], LabelError, "stands twice"),
        (["a", None], LabelError, "NoneType"),
        (["a", {}], LabelError, "dict"),
        ([math.nan, 1], LabelError, "NaN"),
        ("ab", LabelError, "one text"),
        (5, LabelError, "give a list of labels"),
        (["a", "\ud800"], LabelError, "surrogate"),
    ],
)
def test_labels_that_are_none(labels, kind, reason):
    with pytest.raises(kind, match=reason):
        Channel(COIN, inputs=labels)
    with pytest.raises(kind, match=reason.replace("input", "output")):
        Channel(COIN, outputs=labels)


def test_true_and_one_are_different_labels():
    channel = Channel([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [1, True, 1.0], [1, True, 1.0])
    assert [channel.input_index(label) for label in (1, True, 1.0)] == [0, 1, 2]
    assert channel.probability(True, True) == 1
    assert channel.probability(True, 1) == 0
    assert [type(channel.sample(label)) for label in (1, True, 1.0)] == [int, bool, float]
    assert Channel(COIN, [0, 1]) != Channel(COIN, [False, True])


def test_composed_and_decomposed_text_are_one_label():
    channel = Channel(COIN, ["é", "b"])
    assert channel.inputs == ("é", "b")
    assert channel.input_index("e\u0301") == 0


# -- sampling ------------------------------------------------------------------------------------------

IDENTITY = Channel([[1, 0], [0, 1]], ["yes", "no"], ["YES", "NO"])


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ("yes", "YES"),
        (["yes", "no"], ["YES", "NO"]),
        (("no",), ["NO"]),
        ([], []),
        (np.array(["no", "yes"]), ["NO", "YES"]),
        (np.array("no"), "NO"),
        (np.str_("no"), "NO"),
        ((x for x in ["no", "no"]), ["NO", "NO"]),
        (np.array(["no"], dtype=object), ["NO"]),
    ],
    ids=range(9),
)
def test_sampling_one_and_many(given_, expected):
    assert IDENTITY.sample(given_) == expected


def test_tuples_are_labels_where_they_are():
    channel = Channel([[1, 0], [0, 1]], [(0, 1), (1, 0)], ["a", "b"])
    assert channel.sample((0, 1)) == "a"
    assert channel.sample([(0, 1), (1, 0)]) == ["a", "b"]
    assert channel.sample(np.array([[1, 0], [0, 1]])) == ["b", "a"]


@pytest.mark.parametrize(
    "secret",
    [
        "hunter2-medical",
        31415926535,
        2.718281828,
        ("hunter2-medical", 31415926535),
        True,
        None,
        b"hunter2-medical",
        {"hunter2-medical": 1},
        Fraction(31415926535, 27),
        np.str_("hunter2-medical"),
        np.int64(31415926535),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_message_about_an_unknown_answer_does_not_contain_it(secret):
    for attempt in (secret, [secret], ["yes", secret]):
        with pytest.raises(LabelError) as refused:
            IDENTITY.sample(attempt)
        message = str(refused.value)
        for trace in ("hunter2", "medical", "31415926535", "2.718", "True", "None,"):
            assert trace not in message
        assert refused.value.__cause__ is None


def test_an_unknown_label_names_the_known_ones():
    with pytest.raises(LabelError, match=r"this str is not one of the 2 inputs \('yes', 'no'\)"):
        IDENTITY.sample("maybe")
    many = Channel(np.eye(20, dtype=int))
    with pytest.raises(LabelError, match=r"20 outputs \(0, 1, 2, 3, 4, 5, 6, 7, ...\)"):
        many.probability(0, 20)


@pytest.mark.parametrize("position", [-1, 2, 10**30])
def test_positions_outside(position):
    with pytest.raises(LabelError, match="from 0 to 1"):
        IDENTITY.sample_index(position)


@pytest.mark.parametrize(
    ("positions", "kind"),
    [
        ([-1], LabelError),
        ([2], LabelError),
        ([0.0], ShapeError),
        (0, ShapeError),
        ([[0]], ShapeError),
        ([True], ShapeError),
    ],
)
def test_arrays_of_positions_outside(positions, kind):
    with pytest.raises(kind, match="positions"):
        IDENTITY.sample_indices(positions)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64])
def test_positions_of_any_integer_type(dtype):
    assert IDENTITY.sample_indices(np.array([1, 0, 1], dtype=dtype)).tolist() == [1, 0, 1]
    assert IDENTITY.sample_indices([]).tolist() == []


def test_simulation_repeats_and_zero_cells_never_come():
    channel = Channel([["1/3", 0, "2/3"], [0, 1, 0]])
    first = channel.sample_indices(np.zeros(3000, dtype=int), Simulation(3))
    assert (first == channel.sample_indices(np.zeros(3000, dtype=int), Simulation(3))).all()
    assert set(first) == {0, 2}
    # 3000 draws, sd of the share .0086: five sigmas are wrong once in two million seeds, and this one is fixed
    assert abs((first == 0).mean() - 1 / 3) < 0.043


# -- identity ------------------------------------------------------------------------------------------


@given(channels())
def test_spec_load_spec_is_the_identity(channel):
    spec = channel.spec()
    loaded = Channel.load(spec)
    assert loaded == channel
    assert loaded.spec() == spec
    assert loaded.fingerprint == channel.fingerprint
    for twin in (copy.copy(channel), copy.deepcopy(channel), pickle.loads(pickle.dumps(channel))):
        assert twin == channel
        assert hash(twin) == hash(channel)
        assert twin.fingerprint == channel.fingerprint


def test_what_makes_channels_different():
    base = Channel(COIN, ["a", "b"], ["a", "b"])
    others = [
        Channel([[0.75, 0.25], [0.3, 0.7]], ["a", "b"], ["a", "b"]),
        Channel(COIN, ["a", "c"], ["a", "b"]),
        Channel(COIN, ["a", "b"], ["b", "a"]),
        Channel(COIN, ["a", "b"], ["a", "b"], adjacency="line"),
        Channel(COIN, ["a", "b"], ["a", "b"], adjacency=[("a", "b")]),
    ]
    assert all(base != other and base.fingerprint != other.fingerprint for other in others)
    assert len({base, *others, Channel(COIN, ["a", "b"], ["a", "b"])}) == 6
    assert base != "a channel"


def test_graphs_on_true_and_on_one_are_different():
    labels = [0, 1, True]
    rows_ = [[1, 0], [1, 0], [0, 1]]
    on_one = Channel(rows_, labels, adjacency=[(0, 1)])
    on_true = Channel(rows_, labels, adjacency=[(0, True)])
    assert on_one != on_true
    assert on_one.fingerprint != on_true.fingerprint


def test_zero_has_one_sign():
    assert Channel([[1]], [0.0]).fingerprint == Channel([[1]], [-0.0]).fingerprint


def test_laws_longer_than_python_prints():
    """`str` refuses integers of more than 4300 digits, and a geometric channel on 200 counts has them."""
    scale = 10**9000 + 1
    channel = Channel.from_integers([[3**15000, scale - 3**15000], [1, scale - 1]], scale)
    assert Channel.load(channel.spec()) == channel
    assert "epsilon 16479.2" in repr(channel)
    assert channel.satisfies(64, lambda a, b: 258)


SPEC = Channel(COIN, ["yes", "no"]).spec()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": "protocol"}, "kind"),
        ({"version": 2}, "version 2"),
        ({"version": None}, "version None"),
        ({"rows": [[0.75, 0.25], [0.25, 0.75]]}, "float"),
        ({"rows": [[3, 1], [1, 3]]}, "decimal digits in a string"),
        ({"rows": [["3", "1"], ["1", "+3"]]}, "decimal digits"),
        ({"rows": [["3", "1"], "13"]}, "lists"),
        ({"rows": "31"}, "lists"),
        ({"rows": 31}, "lists"),
        ({"denominator": "0x4"}, "decimal digits"),
        ({"denominator": 4}, "decimal digits"),
        ({"inputs": "ab"}, "lists"),
        ({"inputs": ["e\u0301", "b"]}, "NFC"),
        ({"inputs": [None, "b"]}, "label"),
        ({"inputs": [{"fraction": "1e999999999"}, "b"]}, "label"),
        ({"inputs": [{"fraction": "1/0"}, "b"]}, "label"),
        ({"inputs": [{"integer": "007"}, "b"]}, "label"),
        ({"inputs": [{"date": "2020"}, "b"]}, "label"),
        ({"adjacency": {"graph": [1]}}, "adjacency"),
        ({"adjacency": {"circle": 1}}, "adjacency"),
        ({"comment": "hello"}, "nothing else"),
    ],
    ids=range(21),
)
def test_specs_that_cannot_be_read(change, reason):
    with pytest.raises(SpecError, match=reason):
        Channel.load({**SPEC, **change})


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"denominator": "5"}, ProbabilityError),
        ({"denominator": "0"}, ProbabilityError),
        ({"inputs": ["yes"]}, ShapeError),
        ({"inputs": ["yes", "yes"]}, LabelError),
        ({"adjacency": "circle"}, LabelError),
    ],
)
def test_specs_of_no_channel(change, kind):
    with pytest.raises(kind):
        Channel.load({**SPEC, **change})


@pytest.mark.parametrize("key", sorted(SPEC))
def test_specs_that_miss_something(key):
    spec = {k: v for k, v in SPEC.items() if k != key}
    with pytest.raises(SpecError, match=key):
        Channel.load(spec)


@pytest.mark.parametrize("spec", [None, [], "channel", {}])
def test_what_is_no_spec(spec):
    with pytest.raises(SpecError, match="not the spec of a channel"):
        Channel.load(spec)


def test_a_metric_has_no_spec():
    channel = Channel(COIN, adjacency=lambda a, b: 1)
    with pytest.raises(SpecError, match="function"):
        channel.spec()


@pytest.mark.parametrize("adjacency", ["all", "line", "hamming", line(3), [("yes", "no")]])
def test_adjacency_survives_the_spec(adjacency):
    channel = Channel(COIN, ["yes", "no"], adjacency=adjacency)
    assert Channel.load(channel.spec()).adjacency == channel.adjacency


def test_channels_do_not_change():
    channel = Channel(COIN)
    with pytest.raises(AttributeError, match="does not change"):
        channel.denominator = 5
    with pytest.raises(AttributeError, match="does not change"):
        del channel.inputs
    with pytest.raises(AttributeError, match="does not change"):
        channel.note = "hello"
    with pytest.raises(ValueError, match="read-only"):
        channel.numerators[0, 0] = 5
    with pytest.raises(ValueError, match="read-only"):
        channel.rows[0, 0] = 5
    before = np.array(COIN)
    copied = Channel(before)
    before[0, 0] = 0
    assert copied == channel


def test_repr_says_what_matters():
    assert repr(Channel(COIN)) == "<Channel 2 x 2, epsilon 1.09862, 3-bit law>"
    assert "epsilon infinite" in repr(IDENTITY)


@pytest.mark.parametrize("protocol", [OUE(1000, 1), SubsetSelection(40, 1), OLH(5000, 1)], ids=lambda p: p.name)
def test_a_protocol_counts_its_cells_before_it_runs_any_branch(protocol, monkeypatch):
    def ran(*_):
        raise AssertionError("a branch was run")

    monkeypatch.setattr(type(protocol), "draw", ran)
    forms = protocol.law().forms
    number = f"{forms:,}" if forms < 10**12 else f"at least 2^{forms.bit_length() - 1}"
    with pytest.raises(ChannelError, match=f"has {re.escape(number)} forms .* list fewer answers or raise max_cells"):
        protocol.channel()


def test_the_cells_of_a_protocol_are_counted_exactly():
    assert OUE(3, 1).channel(max_cells=24).shape == (3, 8)
    with pytest.raises(ChannelError, match="8 forms of a report for each of 3 answers, more than 23 cells"):
        OUE(3, 1).channel(max_cells=23)


def test_hypothesis_is_there_without_an_import_of_its_own():
    code = (
        "import sys, deniable as dn; dn.channels; assert 'deniable.channels.hypothesis' not in sys.modules;"
        "print(dn.channels.hypothesis.sample_size([0.75, 0.25], [0.25, 0.75], 0.05, 0.05).n)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "9"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = dn.channels.nothing

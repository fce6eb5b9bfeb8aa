"""Queries: the induced graph, and that the level of K = H after f is decided on it."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from deniable.channels import (
    Channel,
    DiscreteLaplace,
    GridLaplace,
    Query,
    capacity,
    collection,
    exponential,
    group_ratio,
    hamming,
    leakage,
    line,
    marginal_divergence,
    min_capacity,
    mixture,
    mutual_information,
    product as product_of,
    randomized_response,
    truncated_geometric,
    two_sided_geometric,
    utility,
)
from deniable.errors import ChannelError, LabelError, ShapeError
from tests.channels.small import exactly, largest_ratio, rows


def average(records):
    return Fraction(sum(records), len(records))


QUERIES = {
    "count": Query.on_records(3, [0, 1], sum),
    "sum": Query.on_records(2, [0, 1, 5], sum),
    "average": Query.on_records(2, [1, 2, 5], average),
    "maximum": Query.on_records(3, [0, 1, 2], max),
    "parity": Query.on_records(3, [0, 1], lambda records: ("even", "odd")[sum(records) % 2]),
}


def neighbours(query: Query) -> list[tuple[int, int]]:
    bases = query.databases
    return [(i, j) for i in range(len(bases)) for j in range(i) if hamming(bases[i], bases[j]) == 1]


@pytest.mark.parametrize("name", QUERIES)
def test_the_induced_graph_by_hand(name):
    query = QUERIES[name]
    function = dict(zip(query.databases, query.values, strict=True))
    expected = set()
    for a, b in product(query.databases, repeat=2):
        if hamming(a, b) == 1 and function[a] != function[b]:
            expected.add(frozenset((function[a], function[b])))
    assert {frozenset(edge) for edge in query.edges} == expected
    assert len(query.edges) == len(expected)
    assert set(query.answers) == set(function.values())


@pytest.mark.parametrize("name", QUERIES)
@given(data=st.data())
@settings(max_examples=25)
def test_the_level_on_databases_is_the_level_on_the_graph(name, data):
    query = QUERIES[name]
    law = data.draw(rows(inputs=len(query.answers), outputs=3))
    noise = Channel(law, query.answers)
    whole = query.oblivious(noise)
    assert exactly(whole) == [law[noise.input_index(value)] for value in query.values]
    expected = largest_ratio(exactly(whole), neighbours(query))
    assert query.witness(noise).ratio == expected
    assert query.epsilon(noise) == pytest.approx(math.log(expected) if expected < math.inf else math.inf, abs=1e-15)
    # The cube of databases is connected by single changes, so Hamming distance asks for the same.
    assert query.epsilon(noise) == pytest.approx(whole.epsilon_under("hamming"), abs=1e-12)
    for level in ("0.5", 1, 3):
        assert query.satisfies(noise, level) == whole.satisfies(level, "hamming")


def test_a_mechanism_that_looks_past_the_answer_is_not_covered():
    """The same graph, but K tells two databases with the same answer apart."""
    query = QUERIES["count"]
    noise = truncated_geometric(3, 1)
    whole = exactly(query.oblivious(noise))
    leaky = [row if database[0] == 0 else row[::-1] for database, row in zip(query.databases, whole, strict=True)]
    assert largest_ratio(leaky, neighbours(query)) > query.witness(noise).ratio


def test_counting_is_a_line_and_the_geometric_mechanism_fits_it():
    count = QUERIES["count"]
    assert count.answers == (0, 1, 2, 3)
    assert count.edges == ((0, 1), (1, 2), (2, 3))
    assert count.sensitivity == 1
    assert not count.has_cycle
    assert count.satisfies(truncated_geometric(3, 1), 1)
    assert not count.satisfies(truncated_geometric(3, 1), "0.999")


def test_sums_of_larger_values():
    total = QUERIES["sum"]
    assert total.sensitivity == 5
    assert total.has_cycle
    assert total.answers == (0, 1, 2, 5, 6, 10)
    noise = exponential(lambda x, y: -abs(x - y), 1, total.answers, range(11), total.graph)
    assert total.satisfies(noise, 1)


@pytest.mark.parametrize("ages", [[18, 20, 30], [1, 2, 5]])
def test_the_average_of_ages_has_cycles(ages):
    query = Query.on_records(2, ages, average)
    assert query.has_cycle
    assert query.sensitivity == Fraction(max(ages) - min(ages), 2)


def test_cycles():
    assert QUERIES["maximum"].has_cycle
    assert not QUERIES["parity"].has_cycle
    assert not Query.on_records(4, [0, 1], max).has_cycle
    assert not Query.on_records(2, [0, 1], lambda records: 7).has_cycle


def test_randomized_response_on_the_answers_serves_every_graph():
    for query in QUERIES.values():
        noise = randomized_response(query.answers, 1)
        assert query.satisfies(noise, 1)


def test_a_constant_query_needs_no_noise():
    query = Query.on_records(2, [0, 1], lambda records: "same")
    assert query.edges == ()
    assert query.sensitivity == 0
    assert query.epsilon(Channel([[1, 0]], ["same"])) == 0


def test_other_databases_and_neighbours():
    query = Query.of(["a", "b", "c"], {"a": 1, "b": 2, "c": 9}.__getitem__, adjacency=[("a", "b"), ("b", "c")])
    assert query.edges == ((1, 2), (2, 9))
    assert query.sensitivity == 7
    line = Query.of(range(4), lambda x: x % 3, adjacency="line")
    assert line.edges == ((0, 1), (0, 2), (1, 2))
    assert line.has_cycle


def test_answers_without_an_order_keep_theirs():
    query = Query.on_records(1, [0, 1, 2], lambda records: ["x", 1, True][records[0]])
    assert query.answers == ("x", 1, True)
    assert len(query.edges) == 3
    with pytest.raises(LabelError, match="numeric"):
        _ = query.sensitivity
    with pytest.raises(LabelError, match="numeric"):
        _ = QUERIES["parity"].sensitivity


def test_refusals():
    count = QUERIES["count"]
    with pytest.raises(LabelError, match="edge at 3, which is not an input"):
        count.epsilon(truncated_geometric(2, 1))
    with pytest.raises(LabelError, match="not one of the 3 inputs"):
        count.oblivious(truncated_geometric(2, 1))
    with pytest.raises(ShapeError, match="at least one database"):
        Query.of([], sum)
    with pytest.raises(LabelError, match="stands twice"):
        Query.of([(0,), (0,)], sum)
    with pytest.raises(ShapeError, match="one length"):
        _ = Query.of([(0,), (0, 1)], sum).edges
    with pytest.raises(LabelError, match="a label is"):
        Query.on_records(1, [0, 1], lambda records: None)


# -- sizes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUERIES)
def test_edges_are_those_of_all_pairs(name):
    query = QUERIES[name]
    every = {
        frozenset((a, b))
        for (x, a), (y, b) in product(zip(query.databases, query.values, strict=True), repeat=2)
        if hamming(x, y) == 1 and a != b
    }
    assert {frozenset(edge) for edge in query.edges} == every


def test_edges_do_not_look_at_all_pairs():
    # 2^13 databases: all pairs would be 34 million.
    count = Query.on_records(13, [0, 1], sum)
    assert count.edges == tuple((i, i + 1) for i in range(13))
    assert not count.has_cycle


def test_edges_of_texts():
    assert Query.of(["00", "01", "11"], lambda text: text, "hamming").edges == (("00", "01"), ("01", "11"))


@pytest.mark.parametrize(
    ("size", "values", "number"), [(30, 2, "1,073,741,824"), (17, 2, "131,072"), (10**9, 3, "3^1000000000")]
)
def test_databases_are_counted_before_they_are_listed(size, values, number):
    with pytest.raises(ShapeError, match=f"are {re.escape(number)} databases, more than 65,536") as refused:
        Query.on_records(size, range(values), sum)
    # The way out that the message names works.
    assert f"Query.of(range({size + 1}), int, 'line')" in str(refused.value)
    assert Query.of(range(31), int, "line").sensitivity == 1


# -- noise on numbers ----------------------------------------------------------------------------------


def test_noise_on_numbers_has_an_epsilon_on_a_query():
    total = QUERIES["sum"]  # sensitivity 5
    assert total.epsilon(DiscreteLaplace("1/2", sensitivity=5)) == 0.5
    assert total.epsilon(two_sided_geometric(1)) == 5
    assert total.satisfies(DiscreteLaplace("1/2", 5), "1/2")
    assert not total.satisfies(DiscreteLaplace("1/2", 4), "1/2")
    grid = GridLaplace(1, "1.5", grid="0.5")
    assert QUERIES["average"].sensitivity == 2
    assert QUERIES["average"].epsilon(grid) == float(grid.epsilon_at(2))
    # The clamped noise, a channel, comes to the same but for the rounding of its decay.
    clamped = DiscreteLaplace("1/2", 5).clamp(0, 10)
    assert total.epsilon(clamped) == pytest.approx(0.5, rel=1e-11)
    assert total.epsilon(clamped) <= 0.5


@pytest.mark.parametrize("noise", [DiscreteLaplace(1), GridLaplace(1, 1, 1)], ids=["integers", "grid"])
def test_what_needs_a_matrix_says_how_to_get_one(noise):
    count = QUERIES["count"]
    for use in (count.oblivious, count.witness, lambda noise: utility(noise, [1 / 8] * 8, query=count)):
        with pytest.raises(ChannelError, match=r"outputs without end .* give noise\.clamp\(0, 3\), a channel"):
            use(noise)
    flat = [1 / 4] * 4
    for use in (
        lambda noise: utility(noise, flat),
        lambda noise: leakage(noise, flat),
        lambda noise: mutual_information(noise, flat),
        lambda noise: marginal_divergence(noise, flat, flat),
        min_capacity,
        capacity,
        lambda noise: collection([noise]),
        product_of,
        lambda noise: mixture([noise], [1]),
        lambda noise: group_ratio(noise, 1),
    ):
        with pytest.raises(ChannelError, match=r"give noise\.clamp\(low, high\), a channel"):
            use(noise)
    channel = noise.clamp(0, 3)
    assert leakage(channel, flat).multiplicative > 1
    assert marginal_divergence(channel, [1, 0, 0, 0], [0, 0, 0, 1]) > 0
    assert utility(channel, flat).value > 1 / 4


def test_what_is_no_mechanism_at_all_is_refused_too():
    with pytest.raises(ChannelError, match="needs a channel, not a int"):
        QUERIES["count"].epsilon(3)


def test_clamping_loses_nothing_for_inputs_in_the_range():
    # Outputs beyond the ends have the ratios of the ends: the information is that of a much wider clamp.
    noise, prior = DiscreteLaplace(1), [0.5, 0.2, 0.3]
    wide = noise.clamp(-60, 62)
    padded = [0.0] * 60 + prior + [0.0] * 60
    assert mutual_information(noise.clamp(0, 2), prior) == pytest.approx(mutual_information(wide, padded), rel=1e-9)


def test_a_grid_is_clamped_to_its_multiples():
    noise = GridLaplace(epsilon=1, sensitivity="0.5", grid="0.25")
    channel = noise.clamp("-0.3", 1)
    assert channel.inputs == channel.outputs == (-0.25, 0.0, 0.25, 0.5, 0.75, 1.0)
    assert channel.adjacency == line(2)
    assert channel.satisfies(1, channel.adjacency)
    assert channel.numerators.tolist() == DiscreteLaplace(1, 2).clamp(-1, 4).numerators.tolist()
    with pytest.raises(ShapeError, match="fewer than two multiples"):
        noise.clamp(0, "0.2")
    with pytest.raises(ChannelError, match="2048 counts are the most"):
        noise.clamp(0, 10**9)

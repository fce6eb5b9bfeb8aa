"""Queries: the induced graph, and that the level of K = H after f is decided on it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.channels import Channel, Query, exponential, hamming, randomized_response, truncated_geometric
from deniable.errors import LabelError, ShapeError
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

"""Levels on a line, on graphs, under Hamming distance and metrics, against enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from deniable.channels import ALL, HAMMING, LINE, Channel, hamming, line, truncated_geometric
from deniable.channels.adjacency import as_adjacency
from deniable.errors import LabelError, NumberError, ShapeError, SpecError
from tests.channels.small import exp_between, largest_ratio, log_between, rows

NAMES = ["a", "b", "c", "d"]
WORDS = ["00", "01", "10", "11"]
pairs_of_four = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6)


class Networkx:
    """What as_adjacency needs of a networkx graph: `edges` is a view that can be iterated and called."""

    class View(list):
        def __call__(self, data=False):
            raise AssertionError("the view is iterated, not called")

    def __init__(self, edges):
        self.edges = self.View(edges)


# -- against enumeration -------------------------------------------------------------------------------


@given(rows(inputs=4), pairs_of_four)
def test_graph_by_enumeration(law, pairs):
    channel = Channel(law, NAMES)
    edges = [(NAMES[i], NAMES[j]) for i, j in pairs]
    expected = largest_ratio(law, pairs)
    assert channel.witness(edges).ratio == expected
    assert channel.witness(Networkx(edges)).ratio == expected
    assert channel.epsilon_under(edges) == pytest.approx(math.log(expected) if expected < math.inf else math.inf)


@given(rows() | rows(inputs=4), st.integers(1, 4))
def test_line_by_enumeration(law, reach):
    pairs = [(i, j) for i in range(len(law)) for j in range(i) if i - j <= reach]
    assert Channel(law).witness(line(reach)).ratio == largest_ratio(law, pairs)
    if reach == 1:
        assert Channel(law).witness("line") == Channel(law).witness(line(1))


@given(rows(inputs=4, positive=True), st.lists(st.fractions(Fraction(1, 5), 5), min_size=6, max_size=6))
def test_metric_by_enumeration(law, distances):
    pairs = [(i, j) for i in range(4) for j in range(i)]
    table = {frozenset((NAMES[i], NAMES[j])): d for (i, j), d in zip(pairs, distances, strict=True)}
    channel = Channel(law, NAMES)

    def metric(a, b):
        return table[frozenset((a, b))]

    expected = max(
        math.log(largest_ratio(law, [(i, j)])) / float(d) for (i, j), d in zip(pairs, distances, strict=True)
    )
    assert channel.epsilon_under(metric) == pytest.approx(expected, rel=1e-12)
    for level in (Fraction(1, 10), Fraction(1, 2), Fraction(2)):
        holds = all(
            largest_ratio(law, [(i, j)]) <= exp_between(level * d)[0]
            for (i, j), d in zip(pairs, distances, strict=True)
        )
        assert channel.satisfies(level, metric) == holds


@given(rows(inputs=4, positive=True))
def test_hamming_is_the_metric_of_that_name(law):
    channel = Channel(law, WORDS)
    assert channel.epsilon_under("hamming") == channel.epsilon_under(hamming)
    one_step = [(0, 1), (0, 2), (1, 3), (2, 3)]
    two_steps = [(0, 3), (1, 2)]
    expected = max(
        math.log(largest_ratio(law, one_step)),
        math.log(largest_ratio(law, two_steps)) / 2,
    )
    assert channel.epsilon_under("hamming") == pytest.approx(expected, rel=1e-12, abs=1e-15)
    # The cube is connected by single steps, so two of them never ask for more.
    assert channel.witness("hamming").distance == 1 or channel.epsilon == 0


@given(rows(inputs=3, positive=True), st.fractions(Fraction(1, 3), 3))
def test_satisfies_under_a_metric_on_both_sides_of_the_threshold(law, distance):
    channel = Channel(law)
    ratio = largest_ratio(law, [(0, 1), (0, 2), (1, 2)])
    if ratio == 1:
        return
    below, above = log_between(ratio)
    assert channel.satisfies(above / distance, lambda a, b: distance)
    assert not channel.satisfies(below / distance, lambda a, b: distance)


def test_the_worst_pair_under_a_metric_is_not_the_largest_ratio():
    channel = Channel([["1/2", "1/2"], ["1/4", "3/4"], ["1/10", "9/10"]])
    witness = channel.witness(lambda a, b: 10 if 2 in (a, b) else 1)
    assert witness.inputs == (0, 1)
    assert witness.ratio == 2
    assert channel.witness().ratio == 5


def test_the_geometric_mechanism_is_private_for_the_distance_between_counts():
    channel = truncated_geometric(12, 64)
    assert channel.satisfies(64, lambda a, b: abs(a - b))  # exponents up to 768
    assert not channel.satisfies("63.99999", lambda a, b: abs(a - b))
    assert channel.epsilon_under(lambda a, b: abs(a - b)) == pytest.approx(64, rel=1e-11)


def test_no_pairs_no_risk():
    channel = Channel([[1, 0], [0, 1]])
    assert channel.epsilon_under([]) == 0
    assert channel.epsilon_under([(0, 0)]) == 0
    assert channel.satisfies(1, [])


# -- reading -------------------------------------------------------------------------------------------


def test_names_are_constants():
    assert as_adjacency("all") is ALL
    assert as_adjacency("line") is LINE
    assert as_adjacency("hamming") is HAMMING
    assert as_adjacency(line(2)) == line(2)


@pytest.mark.parametrize(
    ("value", "kind", "reason"),
    [
        ("Line", LabelError, "no adjacency 'Line'"),
        (5, ShapeError, "list of edges"),
        (None, ShapeError, "list of edges"),
        ([1, 2], ShapeError, "pair of labels"),
        ([(1, 2, 3)], ShapeError, "pair of labels"),
        ([(1,)], ShapeError, "pair of labels"),
        ([("a", None)], LabelError, "NoneType"),
        ({"line": 0}, NumberError, "at least 1 step"),
        ({"line": True}, NumberError, "truth value"),
        ({"graph": [1]}, SpecError, "adjacency"),
        ({"graph": [[0.5, 1]]}, SpecError, "label"),
        ({"graph": [], "line": 1}, SpecError, "adjacency"),
        ({}, SpecError, "adjacency"),
    ],
    ids=repr,
)
def test_what_is_no_adjacency(value, kind, reason):
    with pytest.raises(kind, match=reason):
        as_adjacency(value)


@pytest.mark.parametrize("reach", [0, -1, 1.5, None, "x"])
def test_a_line_reaches_at_least_one_whole_step(reach):
    with pytest.raises(NumberError):
        line(reach)


def test_an_edge_to_nowhere_is_named():
    with pytest.raises(LabelError, match="edge at 'z', which is not an input"):
        Channel([[1], [1]], ["a", "b"]).epsilon_under([("a", "z")])
    with pytest.raises(LabelError, match="edge at True"):
        Channel([[1], [1]]).epsilon_under([(0, True)])


def test_edges_are_normalized_like_labels():
    channel = Channel([["1/2", "1/2"], ["1/4", "3/4"]], ["é", "b"])
    assert channel.witness([("e\u0301", "b")]).ratio == 2


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (lambda a, b: 0, "between 0 and 1 must be positive"),
        (lambda a, b: -1, "must be positive"),
        (lambda a, b: math.nan, "a distance is NaN"),
        (lambda a, b: math.inf, "a distance is infinite"),
        (lambda a, b: "far", "a distance 'far' is not a number"),
        (lambda a, b: None, "a distance is a NoneType"),
    ],
)
def test_distances_that_are_none(metric, reason):
    with pytest.raises(NumberError, match=reason):
        Channel([[1], [1]]).epsilon_under(metric)


def test_a_float_distance_is_the_decimal_that_prints_it():
    channel = Channel([["1/2", "1/2"], ["1/4", "3/4"]])
    assert channel.witness(lambda a, b: 0.1).distance == Fraction(1, 10)


@pytest.mark.parametrize(
    ("a", "b", "distance"), [("0110", "0011", 2), ((1, 2), (1, 2), 0), ((True, 0), (1, 0), 1), ("", "", 0)]
)
def test_hamming_distance(a, b, distance):
    assert hamming(a, b) == distance


@pytest.mark.parametrize(("a", "b"), [("01", "0"), (0, 1), ("ab", 2)])
def test_hamming_distance_needs_one_length(a, b):
    with pytest.raises(ShapeError, match="one length"):
        hamming(a, b)
    with pytest.raises(ShapeError, match="one length"):
        Channel([[1], [1]], [a, b]).epsilon_under("hamming")


@pytest.mark.parametrize("value", ["all", "line", "hamming", line(4), [("a", (1, True)), (0.5, "b")]])
def test_adjacency_specs_read_back(value):
    adjacency = as_adjacency(value)
    assert as_adjacency(adjacency.spec()).key() == adjacency.key()


def test_adjacency_for_people():
    assert str(ALL) == "all pairs"
    assert str(line(3)) == "up to 3 steps on the line"
    assert str(as_adjacency([("a", "b")])) == "a graph of 1 edges"
    assert str(as_adjacency(hamming)) == "a metric"

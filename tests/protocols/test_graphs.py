"""Graphs: every figure is unbiased by enumeration, and epsilon about one edge is exact."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import networkx as nx
import numpy as np
import pytest

import deniable as dn
from deniable import exact
from deniable.errors import DeniableError, EpsilonError, LabelError, NumberError, ShapeError
from deniable.protocols.graphs import Graph, collect, estimators
from deniable.protocols.graphs.estimators import ListLaw, binomial
from deniable.protocols.graphs.messages import (
    UNIT,
    ClosedPairs,
    NoisyCounts,
    NoisyDegrees,
    NoisyLists,
    NoisyStars,
    Peeling,
    Transcript,
)
from deniable.randomness import Simulation, exhaust


class Quiet(Simulation):
    """Bits under which discrete Laplace noise is zero: what is left is the exact statistic."""

    def discrete_laplace(self, scale: Fraction, size: int | None = None) -> Any:
        return 0 if size is None else np.zeros(size, dtype=np.int64)


KITE = Graph([(0, 1), (1, 2), (0, 2), (2, 3)], 4)
HOUSE = Graph([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (1, 3)], 5)
SMALL = {
    "kite": KITE,
    "house": HOUSE,
    "empty": Graph([], 4),
    "star": Graph([(0, i) for i in range(1, 4)], 4),
    "complete": Graph(list(combinations(range(4), 2)), 4),
    "isolated": Graph([(1, 2)], 4),
}


def pairs_of(size: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(size) for j in range(i)]


def rows_of(size: int, bits: Any) -> np.ndarray:
    rows = np.zeros((size, size), dtype=np.uint8)
    for (i, j), bit in zip(pairs_of(size), bits, strict=True):
        rows[i, j] = bit
    return np.packbits(rows, axis=1, bitorder="little")


def lists_of(graph: Graph, step: NoisyLists) -> list[tuple[Fraction, np.ndarray]]:
    """Every outcome of the noisy lists with its exact weight."""
    known = {tuple(edge) for edge in graph.edges.tolist()}
    chance = [
        Fraction(step.set_for_edge if (j, i) in known else step.set_for_others, UNIT) for i, j in pairs_of(graph.size)
    ]
    return [
        (math.prod(p if bit else 1 - p for p, bit in zip(chance, bits, strict=True)), rows_of(graph.size, bits))
        for bits in product((0, 1), repeat=len(chance))
    ]


# -- messages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [1, "1/3"])
def test_the_whole_transcript_of_lists_keeps_epsilon_about_every_edge(share: Any) -> None:
    step = NoisyLists(Fraction(1), share)
    laws = {}
    for bits in product((0, 1), repeat=3):
        graph = Graph([pair for pair, bit in zip(pairs_of(3), bits, strict=True) if bit], 3)
        laws[bits] = exhaust(
            lambda source, graph=graph: b"".join(
                step.message(node, own, Transcript(3), source).tobytes() for node, own in graph.lists()
            )
        ).law
    ratios = []
    for one, other in combinations(laws, 2):
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1:
            assert laws[one].keys() == laws[other].keys()
            ratios += [max(p / laws[other][y], laws[other][y] / p) for y, p in laws[one].items()]
    assert max(ratios) == step.ratio
    assert exact.exp_at_least(step.epsilon, step.ratio)
    assert exact.log(step.ratio) > 0.9999 if share == 1 else exact.log(step.ratio) > 0.999


def test_a_batch_of_lists_has_the_law_of_single_messages() -> None:
    graph, step = Graph([(0, 2), (1, 2)], 3), NoisyLists(Fraction(1))
    alone = exhaust(
        lambda source: b"".join(
            np.pad(sent, (0, 1 - sent.size)).tobytes()
            for sent in (step.message(node, own, Transcript(3), source) for node, own in graph.lists())
        )
    ).law
    batch = exhaust(lambda source: step.messages(graph, Transcript(3), source).tobytes()).law
    assert batch == alone
    weights = {rows.tobytes(): weight for weight, rows in lists_of(graph, step)}
    assert batch == weights


def test_each_list_is_heard_from_one_end_only() -> None:
    for step in (NoisyLists(Fraction(1)), NoisyCounts(Fraction(1))):
        assert step.ends == 1
        for edge in combinations(range(4), 2):
            graph = Graph([edge], 4)
            empty = np.zeros(0, dtype=np.int64)

            def said(node: int, own: Any, step: Any = step) -> Any:
                return exhaust(
                    lambda source: bytes(np.atleast_1d(step.message(node, own, Transcript(4), source)).tobytes()),
                    Fraction(1, 50),
                ).law

            changed = [node for node, own in graph.lists() if said(node, own) != said(node, empty)]
            assert changed == [max(edge)]


def test_noise_on_counts_and_degrees_costs_exactly_epsilon() -> None:
    epsilon = Fraction(1, 3)
    for step, change in ((NoisyDegrees(epsilon), 1), (NoisyCounts(epsilon), 1)):
        assert step.ends * step.noise.epsilon_at(change) == epsilon
    for most in range(1, 8):
        step = NoisyStars(epsilon, 3, most)
        changes = [math.comb(min(d + 1, most), 3) - math.comb(min(d, most), 3) for d in range(10)]
        assert step.ends * step.noise.epsilon_at(max(changes)) <= epsilon


@pytest.mark.parametrize("most", [2, 3])
def test_pairs_change_in_one_message_by_no_more_than_the_noise_allows(most: int) -> None:
    """All graphs of four nodes, all noisy lists, all edges: also where nodes have more neighbours than they look at."""
    lists, step, bits = NoisyLists(Fraction(1)), ClosedPairs(Fraction(1), most), Quiet(0)
    pairs = pairs_of(4)
    graphs = {
        sent: Graph([pair for pair, bit in zip(pairs, sent, strict=True) if bit], 4)
        for sent in product((0, 1), repeat=6)
    }
    largest = 0
    for noisy in list(product((0, 1), repeat=6))[::3]:
        heard = Transcript(4).after(lists, rows_of(4, noisy))
        exactly = {sent: step.messages(graph, heard, bits) for sent, graph in graphs.items()}
        for sent, messages in exactly.items():
            for place, (i, _) in enumerate(pairs):
                other = exactly[tuple(bit ^ (at == place) for at, bit in enumerate(sent))]
                changed = messages - other
                assert not np.delete(changed, i).any()  # the later end alone speaks of the edge
                bound = int(step.bounds(heard)[i])
                assert abs(int(changed[i])) <= max(0, bound - 1) * UNIT
                largest = max(largest, abs(int(changed[i])))
    assert largest > 0.6 * UNIT * (most - 1)
    noise = step.noise(most)
    assert noise is not None
    assert noise.epsilon_at((most - 1) * UNIT) == step.epsilon


def peeling_law(has_edge: bool, epsilon: float, passes: int = 4) -> dict[Any, float]:
    """P(pass in which each of two nodes leaves), by sums over both threshold noises."""
    rate = epsilon / 4
    z = np.arange(-400, 401)
    mass = math.tanh(rate / 2) * np.exp(-rate * np.abs(z))

    def at_most(x: np.ndarray) -> np.ndarray:
        tail = np.exp(-rate * np.where(x < 0, -x, x + 1)) / (1 + math.exp(-rate))
        return np.where(x < 0, tail, 1 - tail)

    law = {}
    for first in range(passes):
        for second in range(passes):
            chance = []
            for mine, others in ((first, second), (second, first)):
                weight = mass.copy()
                for t in range(mine + 1):
                    count = int(has_edge and others >= t)
                    leaves = at_most(t + z - count)
                    weight = weight * (leaves if t == mine else 1 - leaves)
                chance.append(weight.sum())
            law[first, second] = chance[0] * chance[1]
    return law


def test_peeling_keeps_epsilon_about_an_edge() -> None:
    for epsilon in (0.5, 2.0):
        with_edge, without = peeling_law(True, epsilon), peeling_law(False, epsilon)
        worst = max(abs(math.log(with_edge[key] / without[key])) for key in without)
        assert epsilon / 4 < worst <= epsilon + 1e-9
        # Twice as much is at least seen to be more: the test could fail.
        louder, loud = peeling_law(True, 4 * epsilon), peeling_law(False, 4 * epsilon)
        assert max(abs(math.log(louder[key] / loud[key])) for key in loud) > epsilon


def test_peeling_of_all_nodes_is_what_each_node_says() -> None:
    graph = Graph(nx.karate_club_graph())
    step = Peeling(Fraction(4), 1, 2)
    record = step.messages(graph, Transcript(graph.size), Quiet(0))
    remaining, left, threshold = np.ones(graph.size, dtype=np.bool_), np.zeros(graph.size, dtype=np.int64), 0
    bits = Quiet(0)
    while remaining.any():
        for _ in range(2):
            says = [step.stays(own, remaining, threshold, 0, bits) for _, own in graph.lists()]
            leaving = remaining & ~np.array(says)
            left[leaving], remaining = threshold, remaining & ~leaving
        threshold += 1
    assert (left == record.left).all()


def test_noiseless_peeling_finds_the_cores() -> None:
    graph = nx.les_miserables_graph()
    step = Peeling(Fraction(4), 1, 50)
    record = step.messages(Graph(graph), Transcript(len(graph)), Quiet(0))
    assert record.left.tolist() == [nx.core_number(graph)[node] for node in graph.nodes]


# -- estimators ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_figures_from_lists_are_unbiased(name: str) -> None:
    graph = SMALL[name]
    share = Fraction(1, 2) if name == "kite" else Fraction(1)
    step = NoisyLists(Fraction(2), share)
    truth = [graph.edge_count, dn.graphs.true_stars(graph, 2), dn.graphs.true_triangles(graph)]
    total, square, degrees = np.zeros(3), np.zeros(3), np.zeros(graph.size)
    for weight, rows in lists_of(graph, step):
        law = ListLaw(step, rows, graph.size)
        values = np.array([law.edges()[0], law.stars(2), law.triangles()[0]])
        total += float(weight) * values
        square += float(weight) * values**2
        degrees += float(weight) * law.scaled(law.degrees(), graph.size - 1)
    assert total == pytest.approx(truth, abs=1e-9)
    assert degrees == pytest.approx(graph.true_degrees, abs=1e-9)
    variance = square - total**2
    assert variance[0] == pytest.approx(
        math.comb(graph.size, 2) * law.zero + graph.edge_count * (law.one - law.zero), rel=1e-9
    )
    joint = np.zeros((graph.size, graph.size))
    joint[tuple(graph.edges.T)] = 1
    joint += joint.T
    common = joint @ joint
    often = float(np.triu(common * (common - 1), 1).sum())
    formula = law.triple_variance(*truth, often)
    # Exact where edges and others vary alike; else the last term is an upper bound.
    assert variance[2] <= formula * (1 + 1e-9)
    assert variance[2] > 0.9 * formula
    assert law.wedge_variance() >= 0


@pytest.mark.parametrize("name", SMALL)
def test_two_rounds_of_triangles_are_unbiased(name: str) -> None:
    graph, bits = SMALL[name], Quiet(0)
    step, second = NoisyLists(Fraction(1)), ClosedPairs(Fraction(1), graph.size)
    value = 0.0
    for weight, rows in lists_of(graph, step):
        heard = Transcript(graph.size).after(step, rows)
        messages = second.messages(graph, heard, bits)
        value += float(weight) * float(sum(messages.tolist())) / (step.set_for_edge - step.set_for_others)
    assert value == pytest.approx(dn.graphs.true_triangles(graph), abs=1e-9)


def test_functions_of_noisy_degrees_are_unbiased_and_so_is_their_variance() -> None:
    step = NoisyDegrees(Fraction(2))
    z = np.arange(-90, 91)
    mass = step.noise.probability(z)
    heard = Transcript(z.size).after(step, z + 3)
    for function in (lambda y: y, lambda y: binomial(y, 2), lambda y: binomial(y, 3), lambda y: (y == 3) * 1.0):
        values, variances = estimators.undone(heard, function)
        assert mass @ values == pytest.approx(float(function(np.array([3.0]))[0]), rel=1e-9)
        assert mass @ variances == pytest.approx(mass @ values**2 - (mass @ values) ** 2, rel=1e-9)


def test_the_distribution_adds_up() -> None:
    heard = Transcript(40).after(NoisyDegrees(Fraction(2)), np.arange(-5, 35) // 3)
    shares = estimators.distribution(heard, largest=20).values
    sums = estimators.distribution(heard, cumulative=True, largest=20)
    below = float((heard.rounds[0][1] < 0).mean())
    assert sums.values[-1] == pytest.approx(1)
    assert np.diff(sums.values) == pytest.approx(shares[1:])
    assert sums.values[0] - shares[0] == pytest.approx(below, abs=0.4)
    assert (sums.errors[:15] > 0).all()


@pytest.mark.parametrize("graph", [nx.karate_club_graph(), nx.les_miserables_graph()], ids=["karate", "miserables"])
def test_figures_of_real_graphs_agree_with_networkx(graph: Any) -> None:
    """Each figure within five standard errors: false alarms once in a million."""
    given = Graph(graph)
    triangles = sum(nx.triangles(graph).values()) // 3
    assert dn.graphs.true_triangles(graph) == triangles
    wanted = {
        "edges": (dn.graphs.edges, graph.number_of_edges(), {}),
        "edges from lists": (dn.graphs.edges, graph.number_of_edges(), {"method": "lists"}),
        "2-stars": (dn.graphs.stars, dn.graphs.true_stars(given, 2), {}),
        "2-stars from lists": (dn.graphs.stars, dn.graphs.true_stars(given, 2), {"method": "lists"}),
        "4-stars": (dn.graphs.stars, dn.graphs.true_stars(given, 4), {"k": 4}),
        "one round": (dn.graphs.triangles, triangles, {"rounds": 1}),
        "two rounds": (dn.graphs.triangles, triangles, {"most": 40}),
        "three rounds": (dn.graphs.triangles, triangles, {"rounds": 3}),
        "clustering": (dn.graphs.clustering, nx.transitivity(graph), {}),
    }
    for name, (function, truth, settings) in wanted.items():
        found = function(graph, 4, bits=Simulation(7), **settings)
        assert abs(found.value - truth) < 5 * found.stderr, name
        assert found.epsilon == 4
        assert found.stderr > 0


def test_errors_are_those_of_repeated_collections() -> None:
    """Standard errors within a third of the spread of 60 runs: false alarms below 1 in 1,000 for each."""
    graph = Graph(nx.karate_club_graph())
    for find in (
        lambda bits: dn.graphs.edges(graph, 2, bits=bits),
        lambda bits: dn.graphs.stars(graph, 2, bits=bits),
        lambda bits: dn.graphs.stars(graph, 2, method="lists", bits=bits),
        lambda bits: dn.graphs.triangles(graph, 2, 1, bits=bits),
        lambda bits: dn.graphs.triangles(graph, 4, most=17, bits=bits),
    ):
        found = [find(Simulation(seed)) for seed in range(60)]
        spread = np.std([one.value for one in found])
        assert 0.67 < np.sqrt(np.mean([one.stderr**2 for one in found])) / spread < 1.5


def test_counts_beat_lists_and_degrees_beat_noise_on_stars() -> None:
    errors = {(one.figure, one.way): one.error for one in dn.graphs.compare(nx.karate_club_graph(), 1, runs=6)}
    assert errors["edges", "curator"] < errors["edges", "noisy counts"] < errors["edges", "randomized lists"]
    assert errors["3-stars", "noisy degrees"] < errors["3-stars", "noise on stars"]


def test_the_number_of_rounds_follows_what_is_public() -> None:
    names = [[type(step).name for step in dn.graphs.triangle_rounds(n, 1)] for n in (100, 100_000)]
    assert names == [["lists"], ["degrees", "lists", "pairs"]]
    for n in (100, 100_000):
        for rounds in (1, 2, 3, None):
            assert sum(step.epsilon for step in dn.graphs.triangle_rounds(n, "0.7", rounds)) == Fraction(7, 10)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_tiny_graphs_have_figures(size: int) -> None:
    graph = Graph([], size)
    bits = Simulation(1)
    found = [
        dn.graphs.edges(graph, 1, bits=bits),
        dn.graphs.edges(graph, 1, "lists", bits),
        dn.graphs.degrees(graph, 1, bits=bits),
        dn.graphs.degrees(graph, 1, "lists", bits),
        dn.graphs.distribution(graph, 1, bits=bits),
        dn.graphs.stars(graph, 1, bits=bits),
        *(dn.graphs.triangles(graph, 1, rounds, bits=bits) for rounds in (None, 1, 2, 3)),
        dn.graphs.clustering(graph, 1, bits=bits),
        dn.graphs.core(graph, 1, bits=bits),
    ]
    for one in found:
        assert str(one)
        assert one.to_dict()["facts"]["transcript"]["relation"] == "edge"
        assert ("nothing is known" in str(one)) == (size == 0)
    assert dn.graphs.synthetic(graph, 1, bits=bits).size == size
    assert dn.graphs.clustering(graph, 1, bits=Simulation(1)).interval() == (
        0.0,
        1.0,
    )  # a coefficient, whatever is known


def test_a_published_graph_has_about_the_density_and_degrees() -> None:
    graph = Graph(nx.barabasi_albert_graph(300, 6, seed=1))
    made = dn.graphs.synthetic(graph, 4, bits=Simulation(1))
    assert made.nodes == graph.nodes
    assert 0.85 < made.edge_count / graph.edge_count < 1.15
    assert np.corrcoef(made.true_degrees, graph.true_degrees)[0, 1] > 0.8
    shared = {tuple(edge) for edge in made.edges.tolist()} & {tuple(edge) for edge in graph.edges.tolist()}
    assert 0.1 < len(shared) / graph.edge_count < 0.9


# -- reading ------------------------------------------------------------------------------------------


def test_graphs_are_read_from_pairs_arrays_networkx_and_text() -> None:
    pairs = [("a", "b"), ("b", "c"), ("b", "a")]
    assert Graph(pairs).edge_count == 2
    assert Graph(np.array([[0, 1], [1, 2]]), 5).true_degrees.tolist() == [1, 2, 1, 0, 0]
    graph = nx.path_graph(["x", "y", "z"])
    graph.add_node("alone")
    read = Graph(graph)
    assert read.nodes == ("x", "y", "z", "alone")
    assert nx.utils.graphs_equal(read.to_networkx(), graph)
    assert Graph(read).edge_count == 2
    assert Graph(nx.MultiGraph([(1, 2), (1, 2)])).edge_count == 1
    for text in ("a,b\nb,c\n", "source,target\na,b\nb,c\n", "# comment\na b\nb c", "a\tb\nb\tc\n", "a;b\nb;c"):
        assert dn.graphs.read_edges(text, "the text").edge_count == 2, text
    assert dn.graphs.read_edges("0 1\n1 2\n", "the text", nodes=4).size == 4


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Graph([("a", "a")]), LabelError, "edge to itself"),
        (lambda: Graph([("a", "b")], ["a"]), LabelError, "'b'"),
        (lambda: Graph([(0, 7)], 3), LabelError, "0 to 2"),
        (lambda: Graph(nx.DiGraph([(1, 2)])), ShapeError, "to_undirected"),
        (lambda: Graph([1, 2, 3]), ShapeError, "pairs"),
        (lambda: Graph([(0.5, 1)], 3), ShapeError, "whole numbers"),
        (lambda: dn.graphs.read_edges("a,b,c\n", "the text"), ShapeError, "line 1"),
        (lambda: dn.graphs.read_edges("a,b\n", "the text", 5), ShapeError, "words"),
        (lambda: dn.graphs.triangles(KITE, 1, rounds=4), NumberError, "1, 2 or 3"),
        (lambda: dn.graphs.triangles(KITE, 1, rounds=3, most=5), NumberError, "leave out"),
        (lambda: dn.graphs.triangles(KITE, 1, share=2), NumberError, "share"),
        (lambda: dn.graphs.stars(KITE, 1, method="laplace"), NumberError, "most"),
        (lambda: dn.graphs.stars(KITE, 1, k=0), NumberError, "at least one"),
        (lambda: dn.graphs.stars(KITE, 1, k=3, method="lists"), NumberError, "degrees"),
        (lambda: dn.graphs.edges(KITE, 1, method="magic"), NumberError, "counts, lists"),
        (lambda: dn.graphs.edges(KITE, 1e-6, method="lists"), EpsilonError, "too small"),
        (lambda: dn.graphs.edges(KITE, 1, bits=3), NumberError, "Simulation"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_way_out(make: Any, error: type[DeniableError], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_the_spec_names_the_relation_and_what_each_round_costs() -> None:
    spec = dn.graphs.triangles(KITE, 1, rounds=3, bits=Simulation(1)).transcript.spec()
    assert spec["relation"] == "edge"
    assert spec["epsilon"] == "1"
    assert [(one["message"], one["ends"], one["epsilon"]) for one in spec["rounds"]] == [
        ("degrees", 2, "1/5"),
        ("lists", 1, "2/5"),
        ("pairs", 1, "2/5"),
    ]
    assert sum(Fraction(one["epsilon"]) for one in spec["rounds"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 3])
def test_intervals_cover_on_a_random_graph_of_a_thousand_nodes(rounds: int) -> None:
    """40 runs at 95 %: fewer than 33 would come up once in 2,000 times."""
    graph = Graph(nx.powerlaw_cluster_graph(1000, 10, 0.5, seed=2))
    truth, epsilon = dn.graphs.true_triangles(graph), 2
    covered = 0
    for seed in range(40):
        low, high = dn.graphs.triangles(graph, epsilon, rounds, bits=Simulation(seed)).interval()
        covered += low <= truth <= high
    assert covered >= 33


def test_collecting_runs_rounds_in_order() -> None:
    heard = collect(KITE, dn.graphs.triangle_rounds(4, 1, 3), Simulation(1))
    assert [step.name for step, _ in heard.rounds] == ["degrees", "lists", "pairs"]
    assert sorted(heard.rank.tolist()) == [0, 1, 2, 3]
    degrees = heard.heard(NoisyDegrees)[1]
    assert (np.diff(degrees[np.argsort(heard.rank)]) <= 0).all()

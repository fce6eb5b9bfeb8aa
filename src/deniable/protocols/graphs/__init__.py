"""Graphs under local edge privacy: nobody hands in a list of friends, and figures of the graph come out with errors.

Every node holds the list of its neighbours. It sends messages that depend on this list, on what was sent to everybody
before, and on random bits. `epsilon` bounds what all messages of all nodes say about one edge, which is in two lists.
The functions take a whole graph and act for all nodes: for studies, and for owners of a graph who want to publish
figures about it. `Graph` reads pairs, arrays and networkx graphs, `load_edges` files.

>>> import deniable as dn
>>> ring = dn.graphs.Graph([(i, (i + 1) % 100) for i in range(100)], nodes=100)
>>> found = dn.graphs.edges(ring, epsilon=1, bits=dn.Simulation(1))
>>> round(found.value), round(found.stderr, 1), found.epsilon
(77, 13.6, Fraction(1, 1))
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from deniable import exact
from deniable.channels import DiscreteLaplace
from deniable.errors import NumberError
from deniable.protocols.graphs import estimators
from deniable.protocols.graphs.estimators import Floats, GraphFigures
from deniable.protocols.graphs.messages import (
    UNIT,
    ClosedPairs,
    NoisyCounts,
    NoisyDegrees,
    NoisyLists,
    NoisyStars,
    Peeling,
    Round,
    Transcript,
    collect,
)
from deniable.protocols.graphs.network import Graph, as_graph, load_edges, read_edges
from deniable.randomness import Bits, Simulation, source_of

__all__ = [
    "ClosedPairs",
    "Compared",
    "Graph",
    "GraphFigures",
    "NoisyCounts",
    "NoisyDegrees",
    "NoisyLists",
    "NoisyStars",
    "Peeling",
    "Round",
    "Transcript",
    "clustering",
    "collect",
    "compare",
    "core",
    "degrees",
    "distribution",
    "edges",
    "load_edges",
    "read_edges",
    "stars",
    "synthetic",
    "triangles",
    "true_stars",
    "true_triangles",
]

_MISSED = 0.05
"""How often a node has more neighbours than its noisy degree and the margin allow, at most."""
_TYPICAL = 20
"""The degree for which the number of rounds is chosen, before anybody has said anything."""


def degrees(
    graph: Any, epsilon: Any, method: Literal["degrees", "lists"] = "degrees", bits: Bits | None = None
) -> GraphFigures:
    """Each node's degree: noisy degrees (of scale 2 / epsilon), or sums over randomized lists.

    Args:
        graph: A `Graph`, or anything that one can be made from.
        epsilon: Epsilon of one edge.
        method: "degrees" for noisy degrees, "lists" for randomized lists.
        bits: Source of randomness; secure if None.

    Returns:
        One figure per node.
    """
    given, level = as_graph(graph), exact.as_epsilon(epsilon)
    step: Round = NoisyDegrees(level) if _known(method, "degrees", "lists") == "degrees" else NoisyLists(level)
    return estimators.degree_figures(collect(given, [step], source_of(bits)), given.nodes)


def distribution(
    graph: Any, epsilon: Any, cumulative: bool = False, largest: int | None = None, bits: Bits | None = None
) -> GraphFigures:
    """Shares of nodes by their degree, from noisy degrees.

    Args:
        graph: A `Graph`, or anything that one can be made from.
        epsilon: Epsilon of one edge.
        cumulative: Whether shares are those of nodes with at most that degree.
        largest: Largest degree that is listed; the largest noisy one if None.
        bits: Source of randomness; secure if None.

    Returns:
        One figure per degree.
    """
    given = as_graph(graph)
    heard = collect(given, [NoisyDegrees(exact.as_epsilon(epsilon))], source_of(bits))
    return estimators.distribution(heard, cumulative, largest)


def edges(
    graph: Any, epsilon: Any, method: Literal["counts", "lists"] = "counts", bits: Bits | None = None
) -> GraphFigures:
    """The number of edges: every node adds noise to the number of its earlier neighbours, or randomizes its list.

    Args:
        graph: A `Graph`, or anything that one can be made from.
        epsilon: Epsilon of one edge.
        method: "counts" for noisy counts, "lists" for randomized lists.
        bits: Source of randomness; secure if None.

    Returns:
        The estimate.
    """
    given, level = as_graph(graph), exact.as_epsilon(epsilon)
    step: Round = NoisyCounts(level) if _known(method, "counts", "lists") == "counts" else NoisyLists(level)
    return estimators.edges(collect(given, [step], source_of(bits)))


def stars(
    graph: Any,
    epsilon: Any,
    k: int = 2,
    method: Literal["degrees", "laplace", "lists"] = "degrees",
    most: int | None = None,
    bits: Bits | None = None,
) -> GraphFigures:
    """The number of k-stars: choices of k neighbours of one node.

    From noisy degrees, without any bound on them. `laplace`: every node adds noise to its number of stars, where no
    degree is above `most` (neighbours beyond are not counted). `lists`: from randomized lists, for k = 2.

    Args:
        graph: A `Graph`, or anything that one can be made from.
        epsilon: Epsilon of one edge.
        k: Number of neighbours of a star.
        method: "degrees", "laplace" or "lists".
        most: Largest degree, for "laplace"; further neighbours are not counted.
        bits: Source of randomness; secure if None.

    Returns:
        The estimate.

    Raises:
        NumberError: `k` is below 1, or `most` is missing.
    """
    given, level = as_graph(graph), exact.as_epsilon(epsilon)
    if exact.whole(k, "k") < 1:
        raise NumberError(f"a star has at least one neighbour, not {k}")
    step: Round = NoisyDegrees(level)
    if _known(method, "degrees", "laplace", "lists") == "laplace":
        if most is None:
            raise NumberError("noise on numbers of stars needs the largest degree: give most, or the method 'degrees'")
        step = NoisyStars(level, k, estimators.largest_degree(most))
    elif method == "lists":
        if k != 2:
            raise NumberError("randomized lists give 2-stars: for others take the method 'degrees'")
        step = NoisyLists(level)
    return estimators.stars(collect(given, [step], source_of(bits)), int(k))


def triangles(
    graph: Any,
    epsilon: Any,
    rounds: int | None = None,
    most: int | None = None,
    share: Any = 1,
    bits: Bits | None = None,
) -> GraphFigures:
    """The number of triangles.

    One round: randomized lists. Two: noisy degrees and lists, and then the lists are sent back, so that each node says
    how many pairs of its neighbours they join. Three: degrees first, so that nodes answer for their neighbours of
    higher degree, and these are few. Without `rounds`, the better one for this number of nodes, by public facts.
    With a public `most` two rounds have epsilon for themselves.

    Args:
        graph: A `Graph`, or anything that one can be made from.
        epsilon: Epsilon of one edge.
        rounds: 1, 2 or 3 rounds; the best number if None.
        most: A public largest degree; then no degrees are sent.
        share: Share of the noisy edges that is published.
        bits: Source of randomness; secure if None.

    Returns:
        The estimate.
    """
    given = as_graph(graph)
    heard = collect(given, triangle_rounds(given.size, epsilon, rounds, most, share), source_of(bits))
    return estimators.triangles(heard)


def clustering(graph: Any, epsilon: Any, rounds: int | None = None, bits: Bits | None = None) -> GraphFigures:
    """The clustering coefficient: three times the triangles over the 2-stars, both from the messages for triangles.

    Args:
        graph: A `Graph`, or anything that one can be made from.
        epsilon: Epsilon of one edge.
        rounds: 1, 2 or 3 rounds; the best number if None.
        bits: Source of randomness; secure if None.

    Returns:
        The estimate.
    """
    given = as_graph(graph)
    return estimators.clustering(collect(given, triangle_rounds(given.size, epsilon, rounds), source_of(bits)))


def core(graph: Any, epsilon: Any, step: int | None = None, passes: int = 3, bits: Bits | None = None) -> GraphFigures:
    """The core number of each node: the largest k such that it has k neighbours that have k neighbours that ...

    Interactive: nodes with too few remaining neighbours leave, pass after pass, while the threshold rises by `step`
    (by default the scale of the noise), asked `passes` times each.

    Args:
        graph: A `Graph`, or anything that one can be made from.
        epsilon: Epsilon of one edge.
        step: How far the threshold rises; the scale of the noise if None.
        passes: How often each threshold is asked.
        bits: Source of randomness; secure if None.

    Returns:
        One figure per node.
    """
    given, level = as_graph(graph), exact.as_epsilon(epsilon)
    rise = max(1, round(4 / level)) if step is None else step
    return estimators.cores(collect(given, [Peeling(level, rise, passes)], source_of(bits)), given.nodes)


def synthetic(graph: Any, epsilon: Any, bits: Bits | None = None) -> Graph:
    """A graph to publish: one draw from what the published lists and degrees make likely.

    Half of epsilon goes to noisy degrees and half to randomized lists. Each pair becomes an edge with its probability
    given its noisy bit, where degrees say how likely it was before; so density and degrees are about those of the
    graph, and an edge of the result may or may not be one of the graph.

    Args:
        graph: A `Graph`, or anything that one can be made from.
        epsilon: Epsilon of one edge.
        bits: Source of randomness; secure if None.

    Returns:
        A random graph on the same nodes.
    """
    given, level, source = as_graph(graph), exact.as_epsilon(epsilon), source_of(bits)
    heard = collect(given, [NoisyDegrees(level / 2), NoisyLists(level / 2)], source)
    return Graph([(given.nodes[i], given.nodes[j]) for i, j in _drawn(heard, source).tolist()], given.nodes)


def _drawn(heard: Transcript, bits: Bits) -> np.ndarray[Any, Any]:
    law = estimators.ListLaw.of(heard)
    p, q = law.step.set_for_edge, law.step.set_for_others
    # Below zero a degree is noise; a node of degree 0 could never get an edge.
    expected: Floats = np.maximum(np.asarray(heard.heard(NoisyDegrees)[1], dtype=np.float64), 0.5)
    total = max(1.0, expected.sum())
    found = []
    for node in range(1, heard.size):
        before = np.minimum(expected[:node] * expected[node] / total, 1.0)
        said = np.unpackbits(law.rows[node], bitorder="little", count=node).astype(np.bool_)
        edge, other = np.where(said, p, UNIT - p) * before, np.where(said, q, UNIT - q) * (1 - before)
        chosen = np.flatnonzero(bits.uniform(node, np.uint32) < edge / (edge + other) * 2.0**32)
        found.append(np.column_stack([chosen, np.full(chosen.size, node)]))
    return np.concatenate(found) if found else np.empty((0, 2), dtype=np.int64)


def triangle_rounds(
    size: int, epsilon: Any, rounds: int | None = None, most: int | None = None, share: Any = 1
) -> list[Round]:
    """The rounds for triangles, with their parts of epsilon."""
    level = exact.as_epsilon(epsilon)
    if rounds is None:
        rounds = 2 if most is not None else _better(size, level)
    if rounds == 1:
        return [NoisyLists(level, share)]
    if rounds not in (2, 3):
        raise NumberError(f"triangles are counted in 1, 2 or 3 rounds, not {rounds!r}")
    if most is not None:
        if rounds == 3:
            raise NumberError("with a largest degree that is public there is no round of degrees: leave out rounds")
        return [NoisyLists(level / 2, share), ClosedPairs(level / 2, estimators.largest_degree(most))]
    ask, answer = level / 5, 2 * level / 5
    degree_round, pairs = NoisyDegrees(ask), ClosedPairs(answer, margin=_margin(ask))
    return [degree_round, NoisyLists(answer, share, by_degree=rounds == 3), pairs]


def _margin(level: Fraction) -> int:
    """So much more than a noisy degree that hardly any degree is larger: the tail of the noise."""
    return max(0, math.ceil(-2 / float(level) * math.log(2 * _MISSED)))


def _better(size: int, level: Fraction) -> int:
    """One round or three: by the errors for a sparse graph of `size` nodes."""
    if size < 3:
        return 1

    def spread(part: Fraction) -> float:
        return 1 / (2 * math.sinh(float(part) / 2)) ** 2

    alone = math.sqrt(math.comb(size, 3) * spread(level) ** 3)
    part = 2 * level / 5
    noise = math.sqrt(2 * size) * (_TYPICAL + _margin(level / 5)) / float(part) / math.tanh(float(part) / 2)
    return 1 if alone <= noise else 3


def _known(method: str, *methods: str) -> str:
    if method not in methods:
        raise NumberError(f"the method is one of {', '.join(methods)}, not {method!r}")
    return method


# -- what it costs to trust nobody --------------------------------------------------------------------


def true_triangles(graph: Any) -> int:
    """The triangles of a graph that is known.

    Args:
        graph: A `Graph`, or anything that one can be made from.

    Returns:
        The number.
    """
    from scipy.sparse import csr_array

    given = as_graph(graph)
    if not given.edge_count:
        return 0
    low, high = given.edges.T
    matrix = csr_array((np.ones(low.size, dtype=np.int64), (high, low)), shape=(given.size, given.size))
    return int((matrix @ matrix).multiply(matrix).sum())


def true_stars(graph: Any, k: int) -> int:
    """The k-stars of a graph that is known.

    Args:
        graph: A `Graph`, or anything that one can be made from.
        k: Number of neighbours of a star.

    Returns:
        The number.
    """
    return sum(math.comb(d, k) for d in as_graph(graph).true_degrees.tolist())


@dataclass(frozen=True, slots=True)
class Compared:
    """The error of one way to learn one figure of a graph.

    Args:
        figure: The figure.
        way: Name of the method.
        truth: The true figure.
        error: The root of the mean squared error: of the runs, or exact for a curator.
    """

    figure: str
    way: str
    truth: float
    error: float

    @property
    def relative(self) -> float:
        """The error as a part of the truth."""
        return self.error / self.truth if self.truth else math.inf


def compare(graph: Any, epsilon: Any, runs: int = 20, seed: int = 0) -> list[Compared]:
    """Errors of all ways to learn edges, degrees, stars and triangles of a graph that is known, at one epsilon.

    "curator" is a trusted party that holds all lists and adds noise to the figure itself. A curator, and nodes that add
    noise to numbers of stars, know the largest degree; nobody else does.

    Args:
        graph: A `Graph`, or anything that one can be made from.
        epsilon: Epsilon of one edge.
        runs: Number of simulated collections.
        seed: Seed of the simulation.

    Returns:
        One row per figure and method.
    """
    given, level = as_graph(graph), exact.as_epsilon(epsilon)
    most = max(1, int(given.true_degrees.max(initial=0)))
    known = given.true_degrees

    def curator(sensitivity: int) -> float:
        return math.sqrt(DiscreteLaplace(level, max(1, sensitivity)).variance)

    ways: list[tuple[str, str, float, Any]] = [
        ("edges", "curator", given.edge_count, curator(1)),
        ("edges", "noisy counts", given.edge_count, lambda bits: edges(given, level, bits=bits)),
        ("edges", "randomized lists", given.edge_count, lambda bits: edges(given, level, "lists", bits)),
        ("degree", "curator", known.mean(), curator(2)),
        ("degree", "noisy degrees", known.mean(), lambda bits: degrees(given, level, bits=bits)),
        ("degree", "randomized lists", known.mean(), lambda bits: degrees(given, level, "lists", bits)),
    ]
    for k in (2, 3):
        truth, what = true_stars(given, k), f"{k}-stars"
        ways += [
            (what, "curator", truth, curator(2 * math.comb(most - 1, k - 1))),
            (what, "noisy degrees", truth, lambda bits, k=k: stars(given, level, k, bits=bits)),
            (what, "noise on stars", truth, lambda bits, k=k: stars(given, level, k, "laplace", most, bits)),
        ]
        if k == 2:
            ways += [(what, "randomized lists", truth, lambda bits: stars(given, level, 2, "lists", bits=bits))]
    truth = true_triangles(given)
    ways.append(("triangles", "curator", truth, curator(most - 1)))
    for rounds, way in ((1, "one round"), (2, "two rounds"), (3, "three rounds, by degree")):
        ways.append(("triangles", way, truth, lambda bits, rounds=rounds: triangles(given, level, rounds, bits=bits)))
    found = []
    for place, (figure, way, right, error) in enumerate(ways):
        if callable(error):
            each = known if figure == "degree" else right
            tries = [error(Simulation(1000 * seed + 50 * place + run)).values - each for run in range(runs)]
            error = math.sqrt(float(np.mean(np.square(tries))))
        found.append(Compared(figure, way, float(right), float(error)))
    return found

"""Graphs under local edge privacy: errors of one round, of several, and of a curator."""

from __future__ import annotations

import math
import time

import networkx as nx
import numpy as np

import deniable as dn
from benchmarks.registry import Case, Size, at_most, benchmark, seconds, work

GROUP = "graphs"


def _relative(figure: str, way: str, rows: list[dn.graphs.Compared]) -> str:
    return next(f"{100 * one.relative:.3g}%" for one in rows if (one.figure, one.way) == (figure, way))


@benchmark("graph-errors", "edges, stars and triangles of graphs that networkx ships, in all ways", group=GROUP)
def real_graphs(size: Size) -> Case:
    facts = {}
    for name, graph in (("karate club", nx.karate_club_graph()), ("les miserables", nx.les_miserables_graph())):
        for epsilon in (1, 4):
            rows = dn.graphs.compare(graph, epsilon, runs=size(100, 2))
            for figure in ("edges", "2-stars", "triangles"):
                ways = [one.way for one in rows if one.figure == figure]
                facts[f"{name}, epsilon {epsilon}, {figure}"] = ", ".join(
                    f"{way} {_relative(figure, way, rows)}" for way in ways
                )
    return Case({}, [], facts)


@benchmark("graph-cost", "processor time per edge of figures that nodes count by themselves", group=GROUP)
def per_edge(size: Size) -> Case:
    """Near-linear in edges: the time per edge hardly grows with the graph."""
    figures = {
        "edges": lambda graph: dn.graphs.edges(graph, 1),
        "degrees": lambda graph: dn.graphs.degrees(graph, 1),
        "2-stars": lambda graph: dn.graphs.stars(graph, 1, k=2),
        "cores": lambda graph: dn.graphs.core(graph, 1),
    }
    sizes = (1_000, 10_000, size(100_000, 10_000))
    graphs = [dn.graphs.Graph(nx.barabasi_albert_graph(nodes, 10, seed=3)) for nodes in sizes]
    facts: dict[str, str | int | float] = {"nodes": ", ".join(map(str, sizes)), "edges per node": 10}
    for name, figure in figures.items():
        figure(graphs[0])
        spent = []
        for graph in graphs:
            begun = time.process_time()
            figure(graph)
            spent.append(f"{1e6 * (time.process_time() - begun) / graph.edges.shape[0]:.3g}")
        facts[f"{name}: microseconds per edge"] = ", ".join(spent)
    return Case({}, [], facts)


@benchmark("graph-rounds", "triangles of random graphs: one round against three", group=GROUP, rounds=1)
def growing(size: Size) -> Case:
    facts, tasks = {}, {}
    for nodes in (1_000, size(10_000, 2_000)):
        graph = dn.graphs.Graph(nx.powerlaw_cluster_graph(nodes, 10, 0.5, seed=2))
        truth = dn.graphs.true_triangles(graph)
        for epsilon in (1, 2, 4):
            told = []
            for rounds, way in ((1, "one round"), (2, "two"), (3, "three")):
                found = [
                    dn.graphs.triangles(graph, epsilon, rounds, bits=dn.Simulation(seed)) for seed in range(size(5, 1))
                ]
                error = math.sqrt(np.mean([(one.value - truth) ** 2 for one in found]))
                covered = sum(one.interval()[0] <= truth <= one.interval()[1] for one in found)
                told.append(f"{way} {100 * error / truth:.3g}%, covered {covered} of {len(found)}")
            facts[f"{nodes} nodes, {truth} triangles, epsilon {epsilon}"] = "; ".join(told)
        tasks |= {
            f"degrees of {nodes} nodes": work(lambda graph=graph: dn.graphs.degrees(graph, 1)),
            f"cores of {nodes} nodes": work(lambda graph=graph: dn.graphs.core(graph, 1)),
            f"triangles of {nodes} nodes": work(lambda graph=graph: dn.graphs.triangles(graph, 1, 3)),
        }
    largest = list(tasks)[-1]
    return Case(tasks, [seconds(largest, at_most(30.0, full_only=True))], facts)

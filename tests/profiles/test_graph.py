"""Profile graphs: however they are given, they are the same; whatever is wrong is named in one sentence."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from pathlib import Path

import networkx
import numpy as np
import pytest

from deniable.errors import DeniableError, ShapeError
from deniable.protocols import profiles
from deniable.protocols.profiles import ProfileGraph

CHAIN = ProfileGraph({"a": 0.1, "b": 0.4, "c": "1/3"}, [("a", "b"), ("c", "b")])
TABLE = {"x": {"lo": 0.2, "hi": 0.8}, "y": {"hi": 0.5, "lo": 0.5}}


def test_numbers_are_read_exactly():
    assert CHAIN.profile("a") == (Fraction(9, 10), Fraction(1, 10))
    assert CHAIN.profile("c") == (Fraction(2, 3), Fraction(1, 3))
    assert CHAIN.profiles[:, 1].tolist() == [0.1, 0.4, 1 / 3]


def test_all_roads_lead_to_one_graph(tmp_path):
    (tmp_path / "p.csv").write_text("profile,p\na,0.1\nb,0.4\nc,1/3\n")
    (tmp_path / "e.csv").write_text("from,to\na,b\nc,b\n")
    (tmp_path / "g.json").write_text(
        '{"profiles": {"a": 0.1, "b": 0.4, "c": "1/3"}, "edges": [["a", "b"], ["c", "b"]]}'
    )
    drawn = networkx.Graph()
    drawn.add_nodes_from([("a", {"profile": 0.1}), ("b", {"profile": 0.4}), ("c", {"profile": Fraction(1, 3)})])
    drawn.add_edges_from([("a", "b"), ("b", "c")])
    for graph in (
        ProfileGraph.chain({"a": 0.1, "b": 0.4, "c": "1/3"}),
        ProfileGraph({"a": [0.9, 0.1], "b": np.array([0.6, 0.4]), "c": ["2/3", "1/3"]}, [("b", "a"), ("b", "c")]),
        profiles.from_csv(tmp_path / "p.csv", tmp_path / "e.csv"),
        profiles.from_json(tmp_path / "g.json"),
        profiles.from_json(json.dumps(CHAIN.spec())),
        profiles.from_networkx(drawn),
        ProfileGraph.load(CHAIN.spec()),
        pickle.loads(pickle.dumps(CHAIN)),
    ):
        assert graph == CHAIN
        assert hash(graph) == hash(CHAIN)
    assert ProfileGraph({"a": 0.1, "b": 0.4, "c": "1/3"}, [("a", "b")]) != CHAIN


def test_arrays_and_named_values():
    graph = ProfileGraph(np.array([[0.2, 0.8], [0.5, 0.5], [0.7, 0.3]]), [(0, 1)])
    assert graph.labels == (0, 1, 2)
    assert ProfileGraph(np.array([0.8, 0.5, 0.3]), [(0, 1)]) == graph
    named = ProfileGraph(TABLE, [("x", "y")])
    assert named.values == ("lo", "hi")
    assert named.profile("y") == (Fraction(1, 2), Fraction(1, 2))
    assert named.profile("x")[1] == Fraction(4, 5)


def test_csv_with_named_values(tmp_path):
    (tmp_path / "p.csv").write_text("profile,bus,train\nnorth,0.25,0.75\nsouth,0.5,0.5\n")
    (tmp_path / "e.csv").write_text("a,b\nnorth,south\n")
    graph = profiles.from_csv(tmp_path / "p.csv", tmp_path / "e.csv")
    assert graph.values == ("bus", "train")
    assert graph.profile("north") == (Fraction(1, 4), Fraction(3, 4))


def test_shapes():
    assert len(ProfileGraph.complete([0.1, 0.2, 0.3, 0.4]).edges) == 6
    groups = ProfileGraph.clusters({"n": {"A": 0.1, "B": 0.2}, "s": {"C": 0.7, "D": 0.9, "E": 1}})
    assert groups.edges == (("A", "B"), ("C", "D"), ("C", "E"), ("D", "E"))
    assert [part.members.tolist() for part in groups.parts] == [[0, 1], [2, 3, 4]]


def test_parts_are_the_connected_components():
    graph = ProfileGraph([0, 0.1, 0.2, 0.3, 0.4, 0.5], [(5, 0), (3, 1), (0, 4), (1, 3)])
    assert [part.members.tolist() for part in graph.parts] == [[0, 4, 5], [1, 3], [2]]
    assert [part.edges.tolist() for part in graph.parts] == [[[0, 2], [0, 1]], [[0, 1]], []]
    for part in graph.parts:
        np.testing.assert_array_equal(part.profiles, graph.profiles[part.members])


def test_from_data_smooths_and_insists_on_public():
    data = {"a": ["x", "x", "y"], "b": []}
    with pytest.raises(DeniableError, match="public=True"):
        profiles.from_data(data, [("a", "b")], ["x", "y", "z"])
    graph = profiles.from_data(data, [("a", "b")], ["x", "y", "z"], smoothing="1/2", public=True)
    assert graph.profile("a") == (Fraction(5, 9), Fraction(3, 9), Fraction(1, 9))
    assert graph.profile("b") == (Fraction(1, 3),) * 3
    with pytest.raises(DeniableError, match="no data"):
        profiles.from_data(data, [("a", "b")], ["x", "y", "z"], smoothing=0, public=True)


@pytest.mark.parametrize(
    ("given", "edges", "message"),
    [
        ({}, [], "at least 2 profiles, not 0"),
        ({"a": 0.5}, [], "at least 2 profiles, not 1"),
        ([0.1, 0.2], [], "no edges, so it protects nobody"),
        ([0.1, 1.2], [(0, 1)], "between 0 and 1"),
        ([[0.5, 0.6], [0.5, 0.5]], [(0, 1)], "sums to 1.1, not to 1"),
        ([[1.5, -0.5], [0.5, 0.5]], [(0, 1)], "negative"),
        ([[0.5, 0.5], [0.2, 0.3, 0.5]], [(0, 1)], "all need the same"),
        ([[1], [1]], [(0, 1)], "at least 2 values"),
        ([0.1, 0.2], [(0, 0)], "edge to itself"),
        ([0.1, 0.2], [(0, 7)], "not one of the 2 profiles"),
        ([0.1, 0.2], [(0, 1, 2)], "list of pairs"),
        ([0.1, float("nan")], [(0, 1)], "NaN"),
        ("ab", [(0, 1)], "a dictionary, a list or an array"),
        (TABLE | {"z": {"lo": 1, "mid": 0}}, [("x", "y")], "other values than the first"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(given, edges, message):
    with pytest.raises(DeniableError, match=message) as caught:
        ProfileGraph(given, edges)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    empty, short = tmp_path / "empty.csv", tmp_path / "short.csv"
    empty.write_text("")
    short.write_text("profile,a,b\nx,0.5\n")
    with pytest.raises(DeniableError, match="is empty"):
        profiles.from_csv(empty, empty)
    with pytest.raises(DeniableError, match=r"line 2 of .* has 2 cells"):
        profiles.from_csv(short, empty)
    with pytest.raises(DeniableError, match='"profiles" and "edges"'):
        profiles.from_json("{}")
    with pytest.raises(DeniableError, match="attribute 'profile'"):
        profiles.from_networkx(networkx.path_graph(3))


def test_networkx_graphs_of_every_kind():
    laws = {0: [0.2, 0.8], 1: [0.5, 0.5], 2: [0.7, 0.3], 3: [0.9, 0.1]}
    expected = ProfileGraph(laws, [(0, 1), (1, 2), (2, 3), (3, 0)])
    for kind in (networkx.Graph, networkx.DiGraph, networkx.MultiGraph, networkx.MultiDiGraph):
        ring = networkx.cycle_graph(4, create_using=kind)
        networkx.set_node_attributes(ring, laws, "law")
        # The other direction, or a second edge, asks for nothing more.
        ring.add_edge(1, 0)
        assert set(map(frozenset, profiles.from_networkx(ring, profile="law").edges)) == set(
            map(frozenset, expected.edges)
        )
    path = networkx.path_graph(4)
    networkx.set_node_attributes(path, laws, "profile")
    assert profiles.SmoothOneBit(profiles.from_networkx(path), 0.5) == profiles.SmoothOneBit(
        ProfileGraph.chain(laws), 0.5
    )
    # Edges may come as a graph, with the profiles beside it.
    assert ProfileGraph(laws, path) == ProfileGraph.chain(laws)
    assert len(ProfileGraph(laws, networkx.complete_graph(4)).edges) == 6
    path.add_edge(2, 2)
    with pytest.raises(DeniableError, match="edge to itself"):
        profiles.from_networkx(path)
    with pytest.raises(DeniableError, match="no edges"):
        profiles.from_networkx(networkx.create_empty_copy(networkx.Graph(path)))


def test_a_graph_does_not_change():
    with pytest.raises(AttributeError, match="does not change"):
        CHAIN.labels = ()


def test_edges_without_a_header_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("profile,p\na,0.2\nb,0.6\nc,0.9\n")
    (tmp_path / "e.csv").write_text("a,b\nb,c\n")
    # Taken as a header, "a,b" would leave a and b unprotected.
    with pytest.raises(ShapeError, match="names the profiles a and b"):
        profiles.from_csv(tmp_path / "p.csv", tmp_path / "e.csv")

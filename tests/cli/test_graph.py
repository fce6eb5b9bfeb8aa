"""`deniable graph`: figures from an edge list, in every form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import deniable as dn
from deniable import graphs
from deniable.protocols.graphs.network import load_edges, read_edges
from tests.documents import rows_of


@pytest.fixture
def friends(tmp_path: Path) -> str:
    path = tmp_path / "friends.csv"
    path.write_text("source,target\nAnn,Bob\nBob,Cem\nAnn,Cem\nCem,Dee\nEve\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["edges"], "edges, between"),
        (["edges", "--lists"], "randomized lists"),
        (["degrees"], "Eve"),
        (["degrees", "--distribution", "--largest", "3"], "share of nodes with this degree"),
        (["degrees", "--cumulative"], "at most this degree"),
        (["stars", "--k", "3"], "3-stars, between"),
        (["triangles"], "triangles, between"),
        (["triangles", "--rounds", "3"], "= 0.8 (degrees) + 1.6 (lists) + 1.6 (pairs)"),
        (["triangles", "--most", "3", "--share", "1/2"], "noisy lists sent back"),
        (["clustering"], "clustering coefficient"),
        (["core"], "noisy peeling"),
        (["compare", "--runs", "2"], "curator"),
    ],
)
def test_figures_in_words(run: Any, friends: str, command: list[str], words: str) -> None:
    name, *more = command
    done = run("graph", name, friends, "--epsilon", "4", "--seed", "1", *more)
    assert words in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("edges", lambda g, b: graphs.edges(g, 2, bits=b)),
        ("edges --lists", lambda g, b: graphs.edges(g, 2, "lists", b)),
        ("degrees", lambda g, b: graphs.degrees(g, 2, bits=b)),
        ("degrees --distribution", lambda g, b: graphs.distribution(g, 2, bits=b)),
        ("degrees --cumulative --largest 2", lambda g, b: graphs.distribution(g, 2, True, 2, b)),
        ("stars --k 3", lambda g, b: graphs.stars(g, 2, 3, bits=b)),
        ("triangles", lambda g, b: graphs.triangles(g, 2, bits=b)),
        ("triangles --rounds 2 --most 3", lambda g, b: graphs.triangles(g, 2, 2, 3, bits=b)),
        ("triangles --rounds 3 --share 1/2", lambda g, b: graphs.triangles(g, 2, 3, share="1/2", bits=b)),
        ("clustering --rounds 3", lambda g, b: graphs.clustering(g, 2, 3, b)),
        ("core", lambda g, b: graphs.core(g, 2, bits=b)),
    ],
)
def test_every_option_reaches_the_figure(run: Any, friends: str, command: str, found: Any) -> None:
    """The same figures as from Python with the same bits, to the last digit, and as CSV; the graph to publish, too."""
    name, *more = command.split()
    given = load_edges(friends)
    expected = found(given, dn.Simulation(7))
    arguments = ("graph", name, friends, "--epsilon", "2", "--seed", "7", *more)
    assert run(*arguments, "--json").json == json.loads(json.dumps(expected.to_dict()))
    assert run(*arguments, "--csv").out.splitlines() == expected.to_csv().splitlines()
    assert expected.headline in " ".join(run(*arguments).out.split())


def test_the_graph_to_publish_is_the_one_of_the_library(run: Any, friends: str) -> None:
    drawn = ((seed, graphs.synthetic(load_edges(friends), 2, dn.Simulation(seed))) for seed in range(100))
    seed, made = next((seed, made) for seed, made in drawn if made.true_degrees.min() == 0)
    told = read_edges(run("graph", "synthetic", friends, "--epsilon", "2", "--seed", str(seed)).out, "this")
    edges = [{frozenset((one.nodes[i], one.nodes[j])) for i, j in one.edges.tolist()} for one in (made, told)]
    assert edges[0] == edges[1]
    assert set(made.nodes) == set(told.nodes)
    errors = run("graph", "compare", friends, "--epsilon", "2", "--runs", "2", "--seed", "7", "--json").json
    compared = graphs.compare(load_edges(friends), 2, 2, 7)
    assert [(one["figure"], one["way"], one["truth"], one["error"]) for one in errors] == [
        (one.figure, one.way, one.truth, one.error) for one in compared
    ]


def test_json_csv_pictures_and_graphs(run: Any, friends: str, tmp_path: Path) -> None:
    found = run("graph", "triangles", friends, "--epsilon", "1", "--json").json
    assert found["facts"]["transcript"]["relation"] == "edge"
    assert rows_of(found)[0]["label"] == "triangles"
    lines = run("graph", "core", friends, "--epsilon", "1", "--csv").out.splitlines()
    assert lines[0].startswith("section,label,value,stderr")
    assert len(lines) == 6
    picture = tmp_path / "degrees.png"
    run("graph", "degrees", friends, "--epsilon", "1", "--plot", picture)
    assert picture.stat().st_size > 1000
    made = tmp_path / "made.csv"
    run("graph", "synthetic", friends, "--epsilon", "8", "-o", made)
    assert made.read_text(encoding="utf-8").startswith("source,target\n")
    assert run("graph", "edges", made, "--epsilon", "1", "--json").json["n"] == 5


def test_what_is_wrong_is_one_line(run: Any, friends: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\na,b,c\n", encoding="utf-8")
    for arguments, words in (
        (["edges", str(bad), "--epsilon", "1"], "line 2"),
        (["edges", friends, "--epsilon", "nine"], "epsilon"),
        (["triangles", friends, "--epsilon", "1", "--rounds", "9"], "1, 2 or 3"),
        (["edges", friends, "--epsilon", "1", "--nodes", "4"], "words"),
    ):
        assert words in run("graph", *arguments, code=2).err

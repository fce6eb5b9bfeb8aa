"""`deniable graph`: figures from an edge list, in every form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


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


def test_json_csv_pictures_and_graphs(run: Any, friends: str, tmp_path: Path) -> None:
    found = run("graph", "triangles", friends, "--epsilon", "1", "--json").json
    assert found["transcript"]["relation"] == "edge"
    assert found["rows"][0]["label"] == "triangles"
    lines = run("graph", "core", friends, "--epsilon", "1", "--csv").out.splitlines()
    assert lines[0].startswith("label,value,stderr")
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

"""`deniable channel epsilon`: levels, adjacencies and claims."""

from __future__ import annotations

import json
import math
import re
from decimal import Context, Decimal
from fractions import Fraction

import pytest

from deniable.channels import coin_response, truncated_geometric


def test_the_level_of_all_pairs(run):
    found = run("channel", "epsilon", "coin", "--json").json
    assert (found["ratio"], found["epsilon"]) == ("3", pytest.approx(math.log(3)))
    assert "under" not in found
    assert "epsilon 1.098612289" in run("channel", "epsilon", "coin").out


# ln 3 = 1.098612288668109691..., so that only exact arithmetic tells the last two apart.
@pytest.mark.parametrize(
    ("claim", "true"),
    [("1.1", True), ("1", False), ("11/10", True), ("1.0986122886681096914", True), ("1.0986122886681096913", False)],
)
def test_a_claim_decides_the_exit_code(run, claim, true):
    ran = run("channel", "epsilon", "coin", "--at-most", claim, code=0 if true else 1)
    assert ("does not hold: output yes is 3 times as likely" in ran.out) is not true
    found = run("channel", "epsilon", "coin", "--at-most", claim, "--json", code=0 if true else 1).json
    assert found["at_most"]["holds"] is true


@pytest.mark.parametrize("odds", [Fraction(n, d) for n, d in ((3, 1), (7, 2), (27182818285, 10**10), (10001, 10000))])
def test_a_printed_level_is_one_that_holds(run, write, odds):
    truth = odds / (1 + odds)
    source = write(f",a,b,c\na,{truth},{1 - truth},0\nb,{1 - truth},{truth},0\n", "matrix.csv")
    printed = re.search(r"epsilon (.*)", run("channel", "epsilon", source).out)[1]
    assert run("channel", "epsilon", source, "--at-most", printed).out.endswith("holds\n")
    less = Decimal(printed).next_minus(Context(prec=10))
    run("channel", "epsilon", source, "--at-most", less, code=1)
    assert f"epsilon      {printed} over all pairs" in run("channel", "show", source).out


def test_adjacency(run, write):
    source = "truncated-geometric:n=3,epsilon=1"
    law = truncated_geometric(3, 1)
    assert run("channel", "epsilon", source, "--at-most", "1", code=1).err.startswith("note: this channel was made for")
    for relation in ("line", "own", "line:1"):
        ran = run("channel", "epsilon", source, "--at-most", "1", "--adjacency", relation, "--json").json
        assert ran["at_most"]["holds"]
        assert ran["under"]["epsilon"] == law.epsilon_under("line")
    assert run("channel", "epsilon", source, "--at-most", "2", "--adjacency", "line:2").out.endswith("holds\n")
    edges = write("0,1\n1,3\n", "edges.csv")
    found = run("channel", "epsilon", source, "--adjacency", edges, "--json").json["under"]
    assert found["epsilon"] == law.epsilon_under([(0, 1), (1, 3)])
    assert sorted(found["witness"]["inputs"]) == [1, 3]
    assert "a graph of 2 edges" in run("channel", "epsilon", source, "--adjacency", edges).out


def test_hamming(run, write):
    rows = [("00", "0.6,0.2,0.2"), ("01", "0.4,0.4,0.2"), ("11", "0.2,0.4,0.4")]
    path = write(",a,b,c\n" + "".join(f"{label},{row}\n" for label, row in rows))
    found = run("channel", "epsilon", path, "--adjacency", "hamming", "--json").json["under"]
    assert found["epsilon"] == pytest.approx(math.log(2))
    assert run("channel", "epsilon", "coin", "--adjacency", "hamming", code=2).err.count("one length") == 1


def test_delta(run):
    found = run("channel", "epsilon", "coin", "--delta", "1/2", "--json").json["delta"]
    assert found == {"epsilon": "1/2", "delta": coin_response().delta("1/2")}


def test_a_misspelt_edge_is_not_taken_for_a_header(run, write):
    edges = write("from,to\n0,1\n")
    err = run("channel", "epsilon", "truncated-geometric:n=3,epsilon=1", "--adjacency", edges, code=2).err
    assert "line 1" in err
    assert "'from' is not one of the 4 inputs" in err


def test_delta_at_zero_is_the_total_variation(run):
    assert run("channel", "epsilon", "coin", "--delta", "0").out.splitlines()[-1].split() == ["delta", "at", "0", "0.5"]


# Rounded to nearest, as six or ten digits, this level would be printed lower than it is.
def test_every_command_prints_a_level_that_holds(run, write, tmp_path):
    asked = "1.2345641232"
    draft = {"name": "one", "epsilon": asked, "questions": [{"id": "q", "text": "?", "answers": ["a", "b", "c"]}]}
    made = tmp_path / "survey.json"
    run("survey", "new", write(json.dumps({**draft, "people": 1000}), "draft.json"), "-o", made)
    design = ("design", "extremal", "--p0", "a=0.5,b=0.5", "--p1", "a=0.4,b=0.6", "--epsilon", asked)
    plan = ("plan", "--categories", "4", "--epsilon", asked, "--people", "1000")
    printed = {
        "plan": re.search(r"epsilon (\S+),", run(*plan).out)[1],
        "design": re.search(r"^epsilon +(\S+), at most (\S+) as asked", run(*design).out, re.MULTILINE),
        "show": re.search(r"^epsilon +(\S+) \((\S+) realized\)", run("survey", "show", made).out, re.MULTILINE),
    }
    exact = run("survey", "show", made, "--json").json
    assert printed["plan"] == "1.234564124"
    assert printed["design"].groups() == printed["show"].groups() == ("1.234564124", "1.234564124")
    assert Fraction(exact["epsilon"]) == Fraction(asked)
    assert exact["realized_epsilon"] == pytest.approx(float(asked), rel=1e-15)

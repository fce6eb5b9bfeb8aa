"""`deniable design regimes`, `several`, `compromise` and `information`, and `extremal` with a radius."""

from __future__ import annotations

import json

import pytest

from deniable import design

LAWS = "hour,early,noon,late\nbefore 8,0.5,0.2,0.25\n8 to 12,0.3,0.5,0.25\nlater,0.2,0.3,0.5\n"
ROWS = {"early": [0.5, 0.3, 0.2], "noon": [0.2, 0.5, 0.3], "late": [0.25, 0.25, 0.5]}
PAIR = ("--p0", "0.5,0.3,0.2", "--p1", "0.82,0.03,0.15")


# -- regimes ----------------------------------------------------------------------------------------------


def test_regimes_are_brackets_with_a_scan(run):
    given = ("design", "regimes", "--p0", "0.5,0.3,0.2", "--p1", "0.2,0.2,0.6", "--epsilons", "1,3,4")
    out = run(*given).out
    assert "binary mechanism     optimal up to epsilon 3.1735" in out
    assert "none in the scan" in out
    found = run(*given, "--json").json
    assert found["binary"][1] - found["binary"][0] <= 1e-4
    assert [at["epsilon"] for at in found["scan"]] == [1, 3, 4]
    assert found["divergence"] == "kl"
    always = run(*given, "--divergence", "tv").out
    assert "optimal up to epsilon 4, where the scan ends" in always


def test_regimes_refuse_what_is_no_scan(run):
    assert "two different" in run("design", "regimes", *PAIR, "--epsilons", "1", code=2).err
    assert "epsilon" in run("design", "regimes", *PAIR, "--epsilons", "1,two", code=2).err
    assert "hypotheses" in run("design", "regimes", code=2).err


# -- several ----------------------------------------------------------------------------------------------


def test_several_laws_from_a_table_from_json_and_inline(run, write):
    out = run("design", "several", write(LAWS, "laws.csv"), "--epsilon", "1").out
    assert "right guesses  0.3940292212" in out
    assert "before 8  0.5761  0.2119  0.2119" in out
    table = run("design", "several", write(LAWS, "laws.csv"), "--epsilon", "1", "--json").json
    listed = json.dumps({"laws": ROWS, "inputs": ["before 8", "8 to 12", "later"]})
    parsed = run("design", "several", "-", "--epsilon", "1", "--json", stdin=listed).json
    options = [part for law in ROWS.values() for part in ("--law", ",".join(map(str, law)))]
    inline = run("design", "several", *options, "--epsilon", "1", "--json").json
    assert table["value"] == parsed["value"] == inline["value"] == design.several(ROWS, 1).value
    assert table["channel"] == parsed["channel"]
    assert table["laws"] == ["early", "noon", "late"]


def test_several_laws_with_a_prior_and_for_many_reports(run, write, tmp_path):
    laws, proof = write(LAWS, "laws.csv"), str(tmp_path / "proof.json")
    strong = run("design", "several", laws, "--epsilon", "1", "--prior", "early=0.8,noon=0.1,late=0.1", "--json").json
    assert strong["value"] == pytest.approx(0.8, rel=1e-12)
    for goal in ("guess", "stein", "chernoff"):
        given = ("design", "several", laws, "--epsilon", "2", "--goal", goal, "--save", proof)
        assert run(*given, "--json").json["value"] == design.several(ROWS, 2, goal=goal).value
        assert run("design", "verify", proof).out.endswith("verified (proved)\n")


def test_several_laws_refuse_with_a_reason(run, write):
    laws = write(LAWS, "laws.csv")
    assert "--epsilon 1" in run("design", "several", laws, code=2).err
    assert "once per law" in run("design", "several", "--epsilon", "1", code=2).err
    assert "guess, stein, chernoff" in run("design", "several", laws, "--epsilon", "1", "--goal", "best", code=2).err
    assert "at least two laws" in run("design", "several", "--law", "0.5,0.5", "--epsilon", "1", code=2).err
    assert "laws" in run("design", "several", write('{"laws": [1]}', "x.json"), "--epsilon", "1", code=2).err
    assert "do not depend" in run(
        "design", "several", laws, "--epsilon", "1", "--goal", "stein", "--prior", "1,0,0", code=2
    ).err  # fmt: skip


# -- extremal with a radius -------------------------------------------------------------------------------


def test_a_radius_makes_the_robust_mechanism(run, tmp_path):
    proof = str(tmp_path / "proof.json")
    out = run("design", "extremal", *PAIR, "--epsilon", "2", "--radius", "0.1", "--save", proof).out
    assert "mechanism  robust extremal (kl)" in out
    assert "value      0.01810968229" in out
    assert "worst pair" in run("design", "verify", proof).out
    two = run("design", "extremal", *PAIR, "--epsilon", "2", "--radius", "0.1,0", "--json").json
    assert two["value"] == design.robust([0.5, 0.3, 0.2], [0.82, 0.03, 0.15], 2, ("0.1", 0)).value
    gone = run("design", "extremal", *PAIR, "--epsilon", "2", "--radius", "0.2").out
    assert "nothing tells the hypotheses apart" in gone
    assert "from 0 to 1" in run("design", "extremal", *PAIR, "--epsilon", "2", "--radius", "3", code=2).err


# -- compromise -------------------------------------------------------------------------------------------


def test_a_compromise_costs_on_a_ring_and_not_on_a_line(run, write, tmp_path):
    users = ("--user", "0.5,0,0.5,0", "--user", "0,0.5,0,0.5", "--epsilon", "1")
    ring, proof = write("0,1\n1,2\n2,3\n3,0\n", "ring.csv"), str(tmp_path / "proof.json")
    out = run("design", "compromise", *users, "--adjacency", ring, "--save", proof).out
    assert "compromise of 2 users for a graph of 4 edges" in out
    assert "sharing costs  between 0.17 and 0.17" in out
    assert run("design", "verify", proof).out.endswith("verified (proved)\n")
    line = run("design", "compromise", *users, "--adjacency", "line", "--json").json
    assert line["sharing"]["least"] == 0
    assert line["sharing"]["most"] < 1e-9
    assert len(line["alone"]) == 2


def test_a_compromise_refuses_with_a_reason(run):
    assert "--user" in run("design", "compromise", "--epsilon", "1", code=2).err
    two = ("design", "compromise", "--user", "a=0.5,b=0.5", "--epsilon", "1")
    assert "same inputs" in run(*two, "--user", "a=0.5,c=0.5", code=2).err
    assert "one per user" in run(*two, *("--loss", "zero-one") * 3, code=2).err


# -- information ------------------------------------------------------------------------------------------


def test_information_of_every_protocol(run):
    out = run("design", "information", "--answers", "3", "--epsilon", "1").out
    assert "GRR                   0.12328   0.12328" in out
    assert "no mechanism at epsilon 1 tells more than 0.12328 nats" in out
    given = ("design", "information", "--answers", "3", "--epsilon", "1", "--prior", "0.8,0.1,0.1", "--json")
    found = run(*given).json
    assert found["protocols"][0]["information"] < found["optimum"]["bound"] < 0.1
    assert found["left_out"] == []


def test_information_refuses_with_a_reason(run):
    assert "--answers 6" in run("design", "information", "--epsilon", "1", code=2).err
    assert "--epsilon 1" in run("design", "information", "--answers", "3", code=2).err
    assert "the prior" in run(
        "design", "information", "--answers", "3", "--epsilon", "1", "--prior", "1,2", code=2
    ).err  # fmt: skip

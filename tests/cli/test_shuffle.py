"""`deniable relay epsilon`: the sentence for people, JSON for programs, and refusals."""

from __future__ import annotations

import json

import pytest

import deniable as dn


@pytest.fixture
def protocol(tmp_path):
    path = tmp_path / "coin.json"
    path.write_text(json.dumps(dn.GRR(["yes", "no"], 2).spec()), encoding="utf-8")
    return str(path)


def test_a_level_for_people_and_for_programs(run, protocol):
    told = run("relay", "epsilon", protocol, "--people", "10000", "--delta", "1e-6").out
    assert "With 10,000 honest reports in random order, epsilon 2 of one report becomes a central" in told
    assert "does not work with the shuffler" in " ".join(told.split())
    found = json.loads(run("relay", "epsilon", "--epsilon", "2", "--people", "10000", "--delta", "1e-6", "--json").out)
    assert found["epsilon"] == pytest.approx(0.155045, abs=2e-6)
    assert found["method"] == "clones"


def test_the_epsilon_and_the_people_that_it_takes(run, protocol):
    told = " ".join(run("relay", "epsilon", "--people", "1000", "--central", "1").out.split())
    assert "With a shuffler and 1,000 people you may use epsilon_0 = " in told
    assert " for a central (1, 1e-08)." in told
    assert "honest people" in run("relay", "epsilon", protocol, "--central", "1").out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give a survey or --epsilon"),
        (["--epsilon", "1"], "give --people"),
        (["--epsilon", "1", "--people", "0"], "between 1 and"),
        (["--epsilon", "1", "--people", "10", "--delta", "2"], "a probability between 0 and 1"),
        (["--epsilon", "1", "--people", "10", "--central", "1", "--epochs", "2"], "--epochs goes with"),
    ],
)
def test_refusals(run, arguments, says):
    assert says in run("relay", "epsilon", *arguments, code=2).err

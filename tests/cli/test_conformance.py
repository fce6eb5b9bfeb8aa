"""`deniable conformance`: passes what is right, and says of what is wrong which instance, which check and why."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from deniable.protocols import protocol

MINE = """
from collections.abc import Iterator

import numpy as np

from deniable import GRR


class Good(GRR):
    name = "Good"


class Nameless(GRR):
    pass


class Lenient(GRR):
    name = "Lenient"

    def valid(self, reports):
        return np.ones(len(reports), dtype=bool)


class Raising(GRR):
    name = "Raising"

    def spec(self):
        raise RuntimeError("out of ink")


class Silent(GRR):
    name = "Silent"

    @classmethod
    def examples(cls):
        return iter(())


class Wrong(GRR):
    name = "Wrong"

    @classmethod
    def examples(cls):
        raise KeyError("examples")


not_a_class = 3
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of somebody else's, in the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    monkeypatch.setattr(
        protocol, "_KINDS", dict(protocol._KINDS)
    )  # what the module registers is forgotten after the test
    monkeypatch.delitem(sys.modules, "conformance_of_mine", raising=False)
    Path("conformance_of_mine.py").write_text(MINE)
    Path("conformance_broken.py").write_text("raise SystemExit('no')")
    return "conformance_of_mine"


def test_registered_protocols_by_name(run):
    out = run("conformance", "--quick", "GRR", "THE").out
    assert "GRR 2     passed" in out
    assert "THE 1, tight: one threshold" in out
    assert "checks, 0 failed, statistical checks left out" in out


def test_json(run, mine):
    found = run("conformance", "--json", f"{mine}:Good").json
    assert found["passed"] is True
    assert {row["check"] for row in found["findings"]} >= {"level", "law", "unbiased", "refusals"}
    assert {row["status"] for row in found["findings"]} == {"passed"}
    failed = run("conformance", "--json", "--quick", f"{mine}:Lenient", code=1).json
    assert failed["passed"] is False
    assert [(row["subject"], row["check"]) for row in failed["findings"] if row["status"] == "failed"] == [
        ("Lenient 1", "refusals"),
        ("Lenient 2", "refusals"),
    ]


def test_a_failing_check_is_named_with_the_instance_and_the_reason(run, mine):
    ran = run("conformance", "--quick", f"{mine}:Lenient", code=1)
    assert "Lenient 1, refusals: valid() is wrong about a report" in ran.out
    assert " checks, 2 failed" in ran.out
    ran = run("conformance", "--quick", f"{mine}:Raising", code=1)
    assert "Raising 1, identity: it raised RuntimeError: out of ink" in ran.out


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("GRX", "there is no protocol 'GRX'; there are Attributes, BLH"),
        ("no_such_module:Class", "'no_such_module' cannot be imported: ModuleNotFoundError"),
        ("conformance_broken:Class", "'conformance_broken' cannot be imported: SystemExit"),
        ("conformance_of_mine:Missing", "module 'conformance_of_mine' has no class 'Missing'"),
        ("conformance_of_mine:not_a_class", "is no protocol: it has to derive from deniable.Protocol"),
        ("conformance_of_mine:Nameless", "has no name of its own"),
        ("conformance_of_mine:Silent", "Silent has no examples() to check"),
        ("conformance_of_mine:Wrong", "Wrong.examples() raised KeyError"),
        ("deniable:Protocol", "is not finished: it has to write count, draw_many, infer"),
    ],
)
def test_refusals(run, mine, target, message):
    assert message in run("conformance", target, code=2).err

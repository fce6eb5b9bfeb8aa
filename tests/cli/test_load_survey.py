"""Which published survey is meant, and what is said of one."""

from __future__ import annotations

import json

import pytest

from deniable.channels import Channel
from deniable.cli.load_survey import choose
from deniable.errors import LabelError, SpecError
from deniable.protocols import GRR, Table
from deniable.protocols.profiles import ProfileGraph, Warner
from deniable.surveys import Survey

HABITS, OLDER, MOODS = "ab12cd" + "0" * 58, "ab12cd" + "1" * 58, "ffffff" + "0" * 58
PUBLISHED = {HABITS: "habits", OLDER: "habits", MOODS: "moods"}


@pytest.mark.parametrize("given", ["moods", "ffffff", "FFFFFF0", MOODS])
def test_a_name_or_a_beginning(given):
    assert choose(given, PUBLISHED, "choose") == MOODS


def test_the_only_one_need_not_be_named():
    assert choose(None, {MOODS: "moods"}, "choose") == MOODS


@pytest.mark.parametrize(
    ("given", "listed"),
    [("fffff", "moods"), ("mood", "moods"), ("", "moods"), (None, "moods")],
)
def test_what_is_not_clear_is_listed(given, listed):
    """A beginning that is too short, and half a name."""
    with pytest.raises(LabelError, match=f"choose .*{listed}"):
        choose(given, PUBLISHED, "choose")


def test_of_several_the_fingerprint_tells_which():
    with pytest.raises(LabelError) as refused:
        choose("habits", PUBLISHED, "there is no such file either; give a file or one of")
    assert str(refused.value) == (
        "'habits' stands for several surveys: give (more of) the fingerprint of the one that is meant: "
        "habits (ab12cd000000), habits (ab12cd111111)"
    )


def test_nothing_is_published():
    with pytest.raises(SpecError, match="no survey is published"):
        choose("moods", {}, "choose")


def test_a_channel_in_a_file_asks_a_question(run, tmp_path):
    """A closed form as it is, and a channel whose epsilon holds with a delta only; the browser's spec is a table's."""
    run("channel", "show", "coin", "--save", tmp_path / "coin.json")
    draft = {"name": "coin", "questions": [{"id": "q", "text": "Did you?"}]}
    (tmp_path / "draft.json").write_text(json.dumps(draft))
    run("survey", "new", tmp_path / "draft.json", "--table", tmp_path / "coin.json", "-o", tmp_path / "survey.json")
    made = Survey.load(tmp_path / "survey.json")["q"].protocol
    assert (made.name, made.ratio, made.domain.labels) == ("Table", 3, ("yes", "no"))
    cut = Channel([["3/4", "1/4", 0], ["1/4", "37/50", "1/100"]], inputs=["yes", "no"], outputs=["a", "b", "c"])
    (tmp_path / "cut.json").write_text(json.dumps(cut.spec()))
    for delta, code in (("1/100", 0), ("1/200", 2)):
        answers = {"table": "cut.json", "delta": delta}
        asked = {"id": "q", "text": "Did you?", "answers": answers, "epsilon": "1.1"}
        (tmp_path / "draft.json").write_text(json.dumps(draft | {"questions": [asked]}))
        ran = run("survey", "new", tmp_path / "draft.json", "-o", tmp_path / "cut-survey.json", code=code)
        assert code or Survey.load(tmp_path / "cut-survey.json")["q"].protocol == Table(cut, "1.1", delta=delta)
        assert not code or "delta" in ran.err


def test_privatize_says_all_of_what_a_row_promises(run, tmp_path):
    """Of a table with a delta also the delta, of a profile mechanism between whom the level holds; else neither."""
    cut = Channel([["3/4", "1/4", 0], ["1/4", "37/50", "1/100"]], inputs=["yes", "no"], outputs=["a", "b", "c"])
    joined = Warner(ProfileGraph.chain({"north": 0, "south": 1}), 1)
    rows = {"delta": "answer\nyes\n", "profiles": "profile,value\nnorth,0\n", "plain": "answer\nyes\n"}
    tables = {"delta": Table(cut, "1.1", delta="1/100"), "profiles": Table(joined), "plain": GRR(["yes", "no"], 1)}
    said = {}
    for name, protocol in tables.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(protocol.spec()))
        (tmp_path / f"{name}.csv").write_text(rows[name])
        done = run("privatize", tmp_path / f"{name}.json", tmp_path / f"{name}.csv", "-o", tmp_path / f"{name}.parquet")
        (said[name],) = (line for line in done.out.splitlines() if line.startswith("epsilon"))
        assert "1 row of 1 byte\n" in done.out
    assert said["delta"].endswith(", with delta 1/100 per row")
    assert said["profiles"].endswith("per row, between two joined profiles: north and south")
    assert said["plain"].endswith("realized) per row")

"""Texts of respondents neither drive a terminal nor run in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable._plain import csv_cell, escaped, plain_cell
from deniable.cli import output
from deniable.labels import shown
from deniable.protocols import GRR, HeavyHitters
from tests.documents import rows_of

DRIVES = "tea\x1b[2J\x07"
TURNS = "cof\u202efee\u2066"
FORMULA = "=HYPERLINK(1)"


def bad(text: str) -> set[str]:
    return {c for c in text if c != escaped(c, keep="\n")}


@pytest.fixture(scope="module")
def told(tmp_path_factory: Any) -> Path:
    """Protocols whose answers are hostile, with tallies: listed answers, and texts that are found."""
    folder = tmp_path_factory.mktemp("told")
    listed = GRR([DRIVES, TURNS, FORMULA, "-3", "'=x", "plain"], 4)
    random = np.random.default_rng(1)
    answers = random.choice([DRIVES, TURNS, FORMULA], 3000, p=[0.5, 0.3, 0.2]).tolist()
    words = HeavyHitters(dn.ShortText(4), 8, people=4000)
    texts = ["\x1b[2J", "a\u202eb", "=1+2"] * 1100 + [f"{one:x}" for one in random.integers(0, 1 << 16, 700)]
    for name, protocol, given in (("listed", listed, answers), ("words", words, texts)):
        (folder / f"{name}.json").write_text(json.dumps(protocol.spec()))
        protocol.tally(protocol.privatize(given, dn.Simulation(2))).save(folder / f"{name}-tally.json")
    return folder


@pytest.mark.parametrize(("command", "name"), [("estimate", "listed"), ("estimate", "words")])
def test_what_is_printed_has_no_characters_that_drive_a_terminal(run: Any, told: Path, command: str, name: str) -> None:
    files = told / f"{name}.json", told / f"{name}-tally.json"
    for more in ((), ("--json",)):
        ran = run(command, *files, *more)
        assert "1b[2J" in ran.out
        assert not bad(ran.out) | bad(ran.err)
    if name == "listed":
        said = " ".join(run(command, *files).out.split())
        assert r": tea\x1b[2J\x07" in said
        assert r"points ahead of cof\u202efee\u2066 " in said


def test_a_document_of_json_says_the_same(run: Any, told: Path) -> None:
    found = run("estimate", told / "listed.json", told / "listed-tally.json", "--json").json
    assert {DRIVES, TURNS} <= {row["label"] for row in rows_of(found["questions"][0])}


def test_terminals_get_no_such_characters_either(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    output.heading(DRIVES)
    output.styled(TURNS, "")
    output.facts([(DRIVES, TURNS)])
    output.table([DRIVES, TURNS], [[DRIVES, TURNS]])
    output.prose(f"{DRIVES} {TURNS}")
    output.csv_table([[DRIVES, TURNS]])
    output.note("note", DRIVES)
    seen = capsys.readouterr()
    assert not bad(seen.out) | bad(seen.err)
    assert seen.out.count(r"\x07") == 6


def test_errors_are_escaped(run: Any, tmp_path: Path) -> None:
    ran = run("estimate", tmp_path / "survey\x1b[2J\u202e.json", "tally.json", code=2)
    assert not bad(ran.err)
    assert r"x1b[2J" in ran.err


def test_results_are_escaped_in_python(told: Path) -> None:
    protocol = dn.load(json.loads((told / "listed.json").read_text()))
    result = protocol.estimate(dn.Tally.load(told / "listed-tally.json"))
    for said in (
        str(result),
        str(result.winner()),
        str(result - result),
        result.plot().get_xticklabels()[0].get_text(),
    ):
        assert not bad(said)
        assert r"tea\x1b[2J" in said
    assert DRIVES in result.labels  # the data stay as they are
    from rich.console import Console

    console = Console(file=io.StringIO(), width=200)
    console.print(result)
    drawn = console.file.getvalue()
    assert not bad(drawn)
    assert "[2J" in drawn  # what looks like markup is not read as such


def test_cells_that_a_spreadsheet_would_run_are_quoted(run: Any, told: Path) -> None:
    files = told / "listed.json", told / "listed-tally.json"
    clean = dn.load(json.loads(files[0].read_text()))

    def labels(text: str) -> list[str]:
        return [row["label"] for row in csv.DictReader(io.StringIO(text))]

    result = clean.estimate(dn.Tally.load(files[1]))
    assert labels(result.to_csv())[2:] == [f"'{FORMULA}", "'-3", "''=x", "plain"]
    assert labels(result.to_csv(formulas=True))[2:] == [FORMULA, "-3", "'=x", "plain"]
    assert any(float(row["low"]) < 0 for row in csv.DictReader(io.StringIO(result.to_csv())))  # numbers stay
    plain = GRR(["=1", "+1", "-1", "@a", "\ta", "no"], 4)
    tally = plain.tally(plain.privatize(["=1"] * 100, dn.Simulation(1)))
    (told / "plain.json").write_text(json.dumps(plain.spec()))
    tally.save(told / "plain-tally.json")
    asked = ("estimate", told / "plain.json", told / "plain-tally.json", "--csv")
    assert labels(run(*asked).out) == ["'=1", "'+1", "'-1", "'@a", "'\ta", "no"]
    assert labels(run(*asked, "--formulas").out) == ["=1", "+1", "-1", "@a", "\ta", "no"]
    assert all(float(row["value"]) <= 1.2 for row in csv.DictReader(io.StringIO(run(*asked).out)))


def test_labels_that_are_numbers_stay_numbers() -> None:
    below = GRR(dn.Integers(-3, -1), 4)
    result = below.estimate(below.tally(below.privatize([-3] * 50, dn.Simulation(1))))
    assert [row["label"] for row in csv.DictReader(io.StringIO(result.to_csv()))] == ["-3", "-2", "-1"]


def test_what_is_written_is_read_again(run: Any, tmp_path: Path) -> None:
    """A channel whose labels begin like formulas, through a file of CSV."""
    law = dn.Channel([["3/4", "1/4"], ["1/4", "3/4"]], ["=yes", "'-no"], ["+a", "@b"])
    (tmp_path / "law.json").write_text(json.dumps(law.spec()))
    written = run("channel", "show", tmp_path / "law.json", "--csv", "--exact").out
    assert "'=yes" in written
    (tmp_path / "law.csv").write_text(written)
    again = run("channel", "show", tmp_path / "law.csv", "--json").json
    assert (again["inputs"], again["outputs"]) == (["=yes", "'-no"], ["+a", "@b"])


def test_quoted_answers_are_read_as_answers(run: Any, tmp_path: Path) -> None:
    protocol = GRR(["=yes", "no"], 20)
    (tmp_path / "protocol.json").write_text(json.dumps(protocol.spec()))
    (tmp_path / "answers.csv").write_text("answer\n" + "'=yes\n" * 30 + "=yes\n" * 5 + "no\n" * 15)
    run("privatize", tmp_path / "protocol.json", tmp_path / "answers.csv", "-o", tmp_path / "reports.parquet")
    run("tally", tmp_path / "protocol.json", tmp_path / "reports.parquet", "-o", tmp_path / "tally.json")
    assert dn.Tally.load(tmp_path / "tally.json").counts.tolist() == [35, 15]


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\ta", "\ra", "'=1", "''=1", "'a", "a", "", "'", "a=1"])
def test_quoting_is_undone(text: str) -> None:
    assert plain_cell(csv_cell(text)) == text
    assert csv_cell(text, formulas=True) == text


def test_escapes_keep_what_people_read() -> None:
    kept = "naïve 食パン 🥖 5 % a\u202f000"
    assert escaped(kept) == kept
    assert escaped(escaped(DRIVES)) == escaped(DRIVES)
    assert shown(("a\x00", 1)) == r"(a\x00, 1)"

"""Commands load kinds of protocols from a file, and say which columns they ignore."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import deniable as dn
from deniable.errors import DomainError, IgnoredColumns

STRANGER = Path(__file__).parents[1] / "strangers" / "stranger.py"
BREAD = {"id": "bread", "text": "Which bread?", "answers": ["rye", "spelt"], "epsilon": 1, "protocol": "Teller"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(STRANGER, tmp_path / "my.py")
    (tmp_path / "draft.json").write_text(json.dumps({"name": "bread", "questions": [BREAD]}))
    (tmp_path / "answers.csv").write_text("who,bread\n" + "1,rye\n2,spelt\n" * 200)
    return tmp_path


def run(folder: Path, *arguments: str, kinds: str = "") -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if name != "DENIABLE_KINDS"}
    command = [sys.executable, "-m", "deniable", *arguments]
    more = {"DENIABLE_KINDS": kinds} if kinds else {}
    return subprocess.run(command, cwd=folder, env=known | more, capture_output=True, text=True, timeout=300)


def test_a_kind_in_a_file_goes_from_draft_to_estimate(folder: Path) -> None:
    kinds = ("--kinds", "my.py")
    made = run(folder, *kinds, "survey", "new", "draft.json", "-o", "survey.json")
    assert made.returncode == 0, made.stderr
    made = run(folder, "privatize", "survey.json", "answers.csv", "-o", "reports.parquet", *kinds)
    assert made.returncode == 0, made.stderr
    assert "another column, which is ignored: 'who'" in made.stderr
    made = run(folder, "tally", "survey.json", "reports.parquet", "-o", "tally.json", *kinds, "--workers", "2")
    assert made.returncode == 0, made.stderr
    made = run(folder, "estimate", "survey.json", "tally.json", "--json", kinds=str(folder / "my.py"))
    assert json.loads(made.stdout)["questions"][0]["protocol"] == "Teller", made.stderr
    made = run(folder, "audit", "survey.json", *kinds)
    assert "cleared: the exact epsilon is 1" in made.stdout, made.stderr
    made = run(folder, "conformance", "Teller", "--quick", *kinds)
    assert "0 failed" in made.stdout, made.stderr
    made = run(folder, "plan", "--categories", "4", "--epsilon", "1", "--people", "1000", "--json", *kinds)
    assert made.returncode == 0, made.stderr
    assert "there is no protocol 'Teller'" in run(folder, "audit", "survey.json").stderr


def test_a_file_of_kinds_that_cannot_be_used_is_named(folder: Path) -> None:
    (folder / "broken.py").write_text("1 / 0\n")
    (folder / "kinds").mkdir()
    (folder / "kinds" / "json.py").write_text("")
    for name, complaint in (
        ("nothing.py", "is no file of kinds"),
        ("draft.json", "is no file of kinds"),
        ("broken.py", "cannot be imported: ZeroDivisionError"),
        ("kinds/json.py", "another module has the name"),
    ):
        made = run(folder, "plan", "--categories", "4", "--epsilon", "1", "--people", "1000", "--kinds", name)
        assert (made.returncode, complaint in made.stderr, "Traceback" in made.stderr) == (2, True, False), made.stderr


def test_other_columns_are_ignored_with_a_warning() -> None:
    records = dn.Records({"smoke": ["yes", "no"], "age": 3})
    plain = {"smoke": ["yes", "no"], "age": [1, 2]}
    rows = [{"smoke": "yes", "age": 1, "who": "a"}, {"smoke": "no", "age": 2, "who": "b"}]
    expected = records.encode(plain).columns
    for table in (plain | {"who": ["a", "b"]}, pl.DataFrame(plain | {"who": ["a", "b"]}), rows):
        with pytest.warns(IgnoredColumns, match="another column, which is ignored: 'who'"):
            found = records.encode(table).columns
        assert [list(column) for column in found] == [list(column) for column in expected]
    with pytest.raises(DomainError, match="not one of smoke, age"):
        records.encode_one(rows[0])
    survey = dn.Survey("habits", [dn.Question("smoke", "Do you smoke?", dn.GRR(["yes", "no"], epsilon=1))])
    with pytest.warns(IgnoredColumns, match="2 other columns, which are ignored: 'who', 'when'"):
        survey.privatize({"smoke": ["yes"], "who": ["a"], "when": [1]})

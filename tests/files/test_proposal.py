"""Proposed drafts: what becomes of each kind of column, and what is kept back because a survey is public."""

from __future__ import annotations

import csv
import gzip
import json
import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.domains import Categories
from deniable.errors import NumberError, ReportError
from deniable.files import privatize_file, tally_files
from deniable.files.proposal import propose
from deniable.surveys import Survey

ROWS = 400
SHUFFLED = random.Random(5)


def some(*values: Any) -> list[Any]:
    return [SHUFFLED.choice(values) for _ in range(ROWS)]


COLUMNS: dict[str, list[Any]] = {
    "id": list(range(5000, 5000 + ROWS)),
    "no": list(range(1, 1 + ROWS)),
    "E-Mail": [f"user{i}@example.org" for i in range(ROWS)],
    "Full name": [f"Anna {i // 2}" for i in range(ROWS)],
    "Do you smoke?": some("yes", "no", None),
    "age": [18 + i % 63 for i in range(ROWS)],
    "rating": some(1, 2, 3, 4, 5),
    "cups": some(0, 3, 17, None),
    "Town": ["Bern", "Basel", "genf"] * 130 + ["Hamlet"] * 9 + ["Zug"],
    "zip": [f"0{1000 + i % 7}" for i in range(ROWS)],
    "visit": [(date(2026, 1, 1) + timedelta(days=i % 90)).isoformat() for i in range(ROWS)],
    "weight": [60 + i / 7 for i in range(ROWS)],
    "income": [1000 * (i % 37) for i in range(ROWS)],
    "word": [f"word {i % 120}" for i in range(ROWS)],
    "same": ["x"] * ROWS,
    "nothing": [None] * ROWS,
    "Mémber": some(True, False),
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "do-you-smoke": {"answers": ["no", "yes"], "missing": "no answer"},
    "age": {"answers": {"low": 10, "high": 80}},
    "rating": {"answers": {"low": 1, "high": 5}},
    "cups": {"answers": {"low": 0, "high": 17}, "missing": "no answer"},
    "town": {"answers": ["Basel", "Bern", "genf"], "other": "other"},
    "zip": {"answers": [f"0{1000 + i}" for i in range(7)]},
    "word": {"answers": "text"},
    "member": {"answers": ["False", "True"]},
}
LEFT_OUT = {
    "id": "a name or an id",
    "no": "nearly every row has another number, like an id",
    "E-Mail": "a name or an id",
    "Full name": "a name or an id",
    "visit": "a date",
    "weight": 'decimals: for their mean, add a question with "answers": {"number"',
    "income": "group them into bands",
    "same": "always says the same",
    "nothing": "is empty",
}


def write(path: Path, columns: dict[str, list[Any]], delimiter: str = ",", encoding: str = "utf-8") -> Path:
    with open(path, "w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.fixture(params=["csv", "semicolons with a mark", "parquet"])
def answers(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    if request.param == "csv":
        return write(tmp_path / "people.csv", COLUMNS)
    if request.param == "parquet":
        pq.write_table(pa.table(COLUMNS), tmp_path / "people.parquet")
        return tmp_path / "people.parquet"
    return write(tmp_path / "people.csv", COLUMNS, ";", "utf-8-sig")


def test_every_kind_of_column(answers: Path, tmp_path: Path) -> None:
    found = propose(answers)
    truth: list[Any] = [False, True] if answers.suffix == ".parquet" else ["False", "True"]
    expected = QUESTIONS | {"member": {"answers": truth}}
    questions = {one["id"]: one for one in found.draft["questions"]}
    names = {"do-you-smoke": "Do you smoke?", "town": "Town", "member": "Mémber"}
    assert questions == {id: {"id": id, "text": names.get(id, id), **rest} for id, rest in expected.items()}
    assert found.columns == {id: names.get(id, id) for id in expected}
    assert list(found.left_out) == list(LEFT_OUT)
    for name, reason in LEFT_OUT.items():
        assert reason in found.left_out[name], name
    assert found.folded == ("town",)
    assert (found.draft["name"], found.draft["epsilon"], found.draft["people"]) == ("people", "1", 400)
    survey = Survey.from_draft(json.loads(json.dumps(found.draft)))
    privatize_file(survey, answers, tmp_path / "reports.parquet", found.columns)
    assert tally_files(survey, tmp_path / "reports.parquet")["town"].n == ROWS
    assert survey["cups"].protocol.domain == Categories([*range(18), "no answer"], missing="no answer")


def test_rare_answers_are_not_listed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", {"town": ["a"] * 30 + ["b"] * 12 + ["only one lives here"]})
    for at_least, listed in ((1, ["a", "b", "only one lives here"]), (10, ["a", "b"]), (13, ["a"])):
        (question,) = propose(path, at_least=at_least).draft["questions"]
        assert question["answers"] == listed
        assert question.get("other") == (None if at_least == 1 else "other")
    assert "at least 31 people" in propose(path, at_least=31).left_out["town"]
    with pytest.raises(NumberError, match="at least 1, not 0"):
        propose(path, at_least=0)


def test_names_that_are_no_ids(tmp_path: Path) -> None:
    columns = {name: ["a", "b"] * 20 for name in ("Größe!", "grosse", "GRÖSSE", "???", " padded ", "q_1")}
    found = propose(write(tmp_path / "a.csv", columns))
    assert list(found.columns) == ["groe", "grosse", "grosse-2", "question", "padded", "q_1"]
    assert found.columns["padded"] == "padded"


def test_lists_and_columns_without_a_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"tags": [["a"], ["b"]] * 20, "smoke": ["yes", "no"] * 20}), tmp_path / "a.parquet")
    found = propose(tmp_path / "a.parquet")
    assert list(found.columns) == ["smoke"]
    assert found.left_out == {"tags": "it holds lists or structures"}
    (tmp_path / "index.csv").write_text(",smoke\n" + "1,yes\n2,no\n" * 20)
    assert list(propose(tmp_path / "index.csv").columns) == ["smoke"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for content, message in (
        (b"", "is empty"),
        (b"smoke\n", "no row below the header"),
        ("größe\nja\n".encode("latin-1"), "iconv -f WINDOWS-1252"),
        (gzip.compress(b"smoke\nyes\n", mtime=0), "gunzip -c"),
        (b"PK\x03\x04", "Excel workbook"),
        (b"a,a\n1,2\n", "'a' twice"),
        (b"yes,town\nno,a\nyes,b\n", "looks like answers, not like a header"),
        (b"smoke,42\nno,41\nyes,43\n", "looks like answers, not like a header"),
    ):
        (tmp_path / "a.csv").write_bytes(content)
        with pytest.raises(ReportError, match=message):
            propose(tmp_path / "a.csv")

"""Tables of answers: the same reports from every package, missing cells, and messages that name the fix."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deniable.domains import Categories, Integers, Interval, Strings
from deniable.errors import DeniableError, DomainError, MissingExtra
from deniable.files import privatize_file, tally_files, write_reports
from deniable.protocols import GRR, HCMS, Attributes, OneBitMean
from deniable.randomness import Simulation
from deniable.surveys import Question, Survey

SURVEY = Survey(
    "habits",
    [
        Question("smoke", "Do you smoke?", GRR(Categories(["yes", "no"], missing="no answer"), 1)),
        Question("age", "How old?", GRR(Categories([*range(18, 100), "no answer"], missing="no answer"), 1)),
        Question("cups", "How many cups?", GRR(Integers(0, 9), 1)),
        Question("fit", "Fit?", GRR(Categories([True, False], other="else", missing="no answer"), 1)),
        Question("word", "A word?", HCMS(Strings(cells=64, cohorts=4, missing="nothing"), 1)),
    ],
)
ROWS: dict[str, list[Any]] = {
    "smoke": ["yes", None, "no"],
    "age": [18, None, 99],
    "cups": [0, 9, 3],
    "fit": [True, None, False],
    "word": ["rye", None, "sour dough"],
}
COMPLETE = {
    "smoke": ["yes", "no answer", "no"],
    "age": [18, "no answer", 99],
    "cups": [0, 9, 3],
    "fit": [True, "no answer", False],
    "word": ["rye", "nothing", "sour dough"],
}


class Streaming:
    """A relation of DuckDB as we see it: an object with Arrow's C stream and nothing else."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(schema)


class Exporting:
    """An older one, with an export of its own."""

    def __init__(self, table: Any) -> None:
        self.arrow = lambda: table


FRAME = pd.DataFrame(ROWS)
TABLES = [
    ROWS,
    FRAME,
    FRAME.convert_dtypes(),
    FRAME.astype({"smoke": "category", "word": "category"}),
    FRAME.assign(cups=["0", "9", "3.0"], age=["18", "", "99.0"], fit=["true", np.nan, "FALSE"]),
    FRAME.assign(cups=[Decimal(0), Decimal("9.0"), Decimal(3)]),
    pl.DataFrame(ROWS),
    pl.DataFrame(ROWS).with_columns(pl.col("smoke").cast(pl.Categorical)),
    pa.table(ROWS),
    pa.table(ROWS).to_batches()[0],
    pa.concat_tables([pa.table(ROWS).slice(0, 1), pa.table(ROWS).slice(1)]),
    Streaming(pa.table(ROWS)),
    Exporting(pa.table(ROWS)),
    {id: (value for value in values) for id, values in ROWS.items()},
    {id: np.array(values, dtype=object) for id, values in ROWS.items()},
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: type(table).__name__)
def test_the_same_reports_from_every_package(table: Any) -> None:
    bits = Simulation(7)
    expected = {q.id: q.protocol.privatize(COMPLETE[q.id], bits).to_bytes() for q in SURVEY}
    found = SURVEY.privatize(table, bits=Simulation(7))
    assert {id: reports.to_bytes() for id, reports in found.items()} == expected


def test_a_relation_of_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select 'yes' as smoke, 3 as cups union all select null, 4")
    assert {id: len(found) for id, found in SURVEY.privatize(relation, {"smoke": "smoke", "cups": "cups"}).items()} == {
        "smoke": 2,
        "cups": 2,
    }


def test_tallies_and_files_of_what_a_table_gave(tmp_path: Path) -> None:
    reports = SURVEY.privatize(FRAME, bits=Simulation(1))
    tally = SURVEY.tally(reports)
    write_reports(tmp_path / "reports.parquet", SURVEY, [reports])
    assert tally == tally_files(SURVEY, [tmp_path / "reports.parquet"])
    FRAME.to_csv(tmp_path / "answers.csv", index=False)
    privatize_file(SURVEY, tmp_path / "answers.csv", tmp_path / "same.parquet", bits=Simulation(1))
    assert tally_files(SURVEY, tmp_path / "same.parquet") == tally
    FRAME.to_parquet(tmp_path / "answers.parquet", index=False)
    privatize_file(SURVEY, tmp_path / "answers.parquet", tmp_path / "same.parquet", bits=Simulation(1))
    assert tally_files(SURVEY, tmp_path / "same.parquet") == tally
    some = SURVEY.tally(SURVEY.privatize({"Cups?": [1, 2]}, {"cups": "Cups?"}))
    assert [some[id].n for id in ROWS] == [0, 0, 2, 0, 0]


def test_one_person() -> None:
    reports = SURVEY.privatize({"smoke": "yes", "age": 42, "cups": 1, "fit": True, "word": "rye"})
    assert {len(found) for found in reports.values()} == {1}


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        (FRAME.rename(columns={"smoke": "Smoke"}), None, r"did you mean 'Smoke'\? .*columns=\{'smoke': 'Smoke'\}"),
        (FRAME.rename(columns={"smoke": "smokes "}), None, r"no column 'smoke'; it has .*did you mean 'smokes'\?"),
        (FRAME.rename(columns={"smoke": "x"}), None, r"no column 'smoke'; it has 'x', 'age', 'cups', 'fit', 'word'$"),
        (FRAME, {"Do you smoke?": "smoke"}, r"there is no question .*columns=\{'smoke': 'Do you smoke\?'\}"),
        (FRAME, {"smok": "smoke!"}, r"there is no question 'smok'; there are smoke, age, cups, fit, word$"),
        (FRAME, ["smoke"], r"columns are given as \{id of the question: name of the column\}, not as a list"),
        (pd.concat([FRAME, FRAME[["smoke"]]], axis=1), None, r"has the column 'smoke' twice"),
        (FRAME["smoke"], None, "this is one column"),
        (FRAME.to_dict("records"), None, "a table or a dictionary of columns"),
        (pl.DataFrame(ROWS).lazy(), None, r"give frame\.collect\(\)"),
        ("answers.csv", None, r"privatize_file\(survey, answers, output\)"),
        (np.zeros((3, 3)), None, r"an? ndarray is no table: give a frame of pandas"),
        (None, None, r"a NoneType is no table"),
        (ROWS | {"cups": [1, 2]}, None, "different lengths: 2, 3"),
        (
            FRAME.assign(cups=[1, None, 2]),
            None,
            r"row 2 of the table, column 'cups'.* is missing.*\"missing\": \"no answer\"",
        ),
        (FRAME.assign(cups=[1, 2, 10]), None, r"row 3 of the table, column 'cups' is not one of the whole numbers"),
        (FRAME.assign(smoke=["yes", " no", "no"]), None, r"row 2 .*without the blanks around it, it would be one"),
        (FRAME.assign(smoke=["yes", "NO", "no"]), None, r"row 2 .*but for upper and lower case, it would be one"),
        (pa.table(ROWS | {"cups": [[1], [2], [3]]}), None, r"row 1 of the table, column 'cups', an? ndarray"),
    ],
)
def test_what_is_wrong_is_named_with_the_fix(table: Any, columns: Any, message: str) -> None:
    with pytest.raises(DeniableError, match=message):
        SURVEY.privatize(table, columns)


def test_a_row_is_named_in_the_order_of_the_rows() -> None:
    """A dictionary may hold its entries in any order."""
    codes = pa.array([1, 2, 0, 0], pa.int8())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["x", "yes", "y"]))
    with pytest.raises(DomainError, match="row 2 of the table"):
        SURVEY.privatize({"smoke": column}, {"smoke": "smoke"})


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists, pandas and polars need none; what needs it says which extra brings it."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    table = Streaming(pa.table(ROWS))
    for frame in (ROWS, FRAME, pl.DataFrame(ROWS)):
        assert len(SURVEY.privatize(frame)["smoke"]) == 3
    with pytest.raises(MissingExtra, match=r"pip install 'deniable\[files\]'"):
        SURVEY.privatize(table)


RECORDS = Survey(
    "records",
    [
        Question(
            "habits",
            "Your habits",
            Attributes.of(
                {
                    "smoke": GRR(Categories(["yes", "no"], missing="no answer"), 1),
                    "cups": GRR(Integers(0, 9), 1),
                    "sleep": OneBitMean(Interval(0, 24), 1),
                }
            ),
        ),
        Question("nap", "Do you nap?", GRR(["yes", "no"], 1)),
    ],
)
PARTS: dict[str, list[Any]] = {"smoke": ["yes", None, "no"], "cups": [0, 9, 3], "sleep": [7.5, 30.0, 8.0]}
NAP = {"nap": ["no", "yes", "no"]}
LISTED = [{name: column[i] for name, column in PARTS.items()} for i in range(3)]


@pytest.mark.parametrize(
    "table",
    [
        {**PARTS, **NAP},
        {"habits": LISTED, **NAP},
        {"habits": [LISTED[0], {"cups": 9, "sleep": 30.0}, LISTED[2]], **NAP},
        pd.DataFrame({**PARTS, **NAP}),
        pd.DataFrame({"habits": LISTED, **NAP}),
        pl.DataFrame({**PARTS, **NAP}),
        pl.DataFrame({"habits": LISTED, **NAP}),
        pa.table({**PARTS, **NAP}),
        pa.table({"habits": LISTED, **NAP}),
        {"smoke": ["yes", "", "no"], "cups": ["0", "9.0", "3"], "sleep": ["7.5", "30", "8"], **NAP},
    ],
    ids=["parts", "dictionaries", "keys", "pandas", "objects", "polars", "structs", "arrow", "arrow-structs",
         "text"],
)  # fmt: skip
def test_a_record_is_read_from_its_parts_or_from_one_column(table: Any) -> None:
    protocol = RECORDS["habits"].protocol
    expected = [protocol.privatize(LISTED, Simulation(seed)).to_bytes() for seed in range(3)]
    assert [RECORDS.privatize(table, bits=Simulation(seed))["habits"].to_bytes() for seed in range(3)] == expected


def test_the_columns_of_a_record_can_be_chosen_and_are_checked() -> None:
    renamed = {"Smoke?": PARTS["smoke"], "cups": PARTS["cups"], "sleep": PARTS["sleep"]}
    assert len(RECORDS.privatize(renamed, {"habits.smoke": "Smoke?"})["habits"]) == 3
    with pytest.raises(DeniableError, match="no part"):
        RECORDS.privatize(renamed, {"habits.teeth": "Smoke?"})
    with pytest.raises(DeniableError, match="it has none"):
        RECORDS.privatize(NAP, {"nap.x": "nap"})
    with pytest.raises(DeniableError, match="no column 'smoke'"):
        RECORDS.privatize({"cups": [1], "sleep": [2], "nap": ["no"]})
    with pytest.raises(DomainError, match="row 2 of the table, column 'cups'") as refused:
        RECORDS.privatize({**PARTS, "cups": [0, "S3CRET", 1], **NAP})
    assert "S3CRET" not in str(refused.value)
    for bad in ({"habits": [LISTED[0], None], "nap": ["no", "no"]}, {"habits": ["x"], "nap": ["no"]}):
        with pytest.raises(DomainError):
            RECORDS.privatize(bad)

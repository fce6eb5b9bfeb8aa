"""A survey, its answers, and ways to write them down."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.domains import Categories, Integers, Strings
from deniable.protocols import GRR, HCMS, OLH, OUE
from deniable.surveys import Question, Survey

SURVEY = Survey(
    "habits",
    [
        Question("smoke", "Do you smoke?", GRR(["yes", "no", "prefer not to say"], epsilon=1)),
        Question("age", "How old are you?", OLH(Integers(18, 99), epsilon=2)),
        Question("kind", "Which?", OUE(Categories([1, 2, True, "three, four", "fünf"]), epsilon=1)),
        Question("word", "A word?", HCMS(Strings(cells=256, cohorts=4), epsilon=4)),
    ],
)
COLUMNS: dict[str, list[Any]] = {
    "smoke": ["yes", "no", "prefer not to say", "no"],
    "age": [18, 99, 50, 18],
    "kind": [1, True, "three, four", "fünf"],
    "word": ["rye", "sour dough", 'a "quoted" one', "two\nlines"],
}


def answers(rows: int) -> dict[str, list[Any]]:
    return {id: [values[i * (i + 3) % 7 % 4] for i in range(rows)] for id, values in COLUMNS.items()}


def write_csv(path: Path, columns: dict[str, list[Any]], delimiter: str = ",") -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def write_parquet(path: Path, columns: dict[str, list[Any]]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path

"""Documents for programs: CSV and Arrow, every number in full.

One line per row, all sections one below the other, under the names of `COLUMNS`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from deniable._extras import require
from deniable._plain import csv_cell
from deniable.labels import cell, load_label, text
from deniable.results.document import CONSISTENT, Document

NUMBERS = ("value", "stderr", "low", "high")
OF_ROWS = (
    *("group", "label", *NUMBERS, "unit", "count", "p_value", "begin", "end", "second_begin", "second_end"),
    *("lift", "lift_stderr", "guess", "posterior", "anytime", "rejected", *CONSISTENT, "assumed"),
)
"""Columns that differ from row to row."""
OF_DOCUMENTS = (
    *("n", "level", "population", "simultaneous", "method", "protocol", "unlisted", "epsilon", "noise_floor"),
    "poisoning",
)
"""Columns that are the same for all rows of a document."""
COLUMNS = ("question", "section", *OF_ROWS, *OF_DOCUMENTS)


def question_name(document: Document) -> str:
    """The name of a question, or of a part of it: "habits.age"."""
    return f"{document.id}.{document.part}" if document.part else document.id


def columns_of(documents: Iterable[Document]) -> list[str]:
    """The names of `COLUMNS` that these documents have, with those that only their kinds know."""
    known: set[str] = {"section", "n", "level", "population", "simultaneous", "method", "protocol"}
    others: dict[str, None] = {}
    for document in documents:
        known |= {"question"} if document.id else set()
        known |= {"unlisted"} if "unlisted" in document.facts else set()
        known |= {"epsilon", "noise_floor", "poisoning"} if document.trust.epsilon else set()
        for section in document.sections:
            known.update(section.columns)
            others |= dict.fromkeys(column for column in section.columns if column not in OF_ROWS)
    return [*(name for name in COLUMNS if name in known), *others]


def lines_of(document: Document, columns: Sequence[str]) -> Iterable[list[Any]]:
    """One list per row of all sections, under these columns; labels are Python's."""
    trust = document.trust
    same: dict[str, Any] = {"question": question_name(document), "n": document.n, "level": document.level}
    same |= {"population": document.population, "method": document.method, "protocol": document.protocol}
    same |= {"unlisted": document.facts.get("unlisted"), "epsilon": decimal_epsilon(trust.epsilon)}
    same |= {"noise_floor": trust.noise_floor, "poisoning": trust.poisoning}
    for section in document.sections:
        own = same | {"section": section.id, "simultaneous": section.simultaneous}
        for row in section.rows:
            found = own | row | {"label": load_label(row["label"])}
            yield [found.get(column) for column in columns]
    if not document.sections:
        own = same | {"simultaneous": document.simultaneous}
        yield [own.get(column) for column in columns]


def decimal_epsilon(epsilon: str | None) -> float | None:
    """Epsilon as a decimal number: a spreadsheet would read 1/2 as a date."""
    if epsilon is None:
        return None
    top, _, bottom = epsilon.partition("/")
    return float(f"{float(top) / float(bottom or 1):.15g}")


def as_csv(documents: Sequence[Document], formulas: bool = False, columns: Sequence[str] | None = None) -> str:
    """CSV with one line per row, after a line with the names of the columns.

    Text that a spreadsheet would run as a formula gets a leading ', unless `formulas` is set.
    """
    out = io.StringIO()
    names = columns_of(documents) if columns is None else columns
    csv.writer(out, lineterminator="\n").writerow(names)
    return out.getvalue() + csv_lines(documents, names, formulas)


def csv_lines(
    documents: Iterable[Document], columns: Sequence[str], formulas: bool = False, first: Sequence[Any] = ()
) -> str:
    """The lines of `as_csv`, each after the cells of `first`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    place = columns.index("label") if "label" in columns else None
    for document in documents:
        for line in lines_of(document, columns):
            if place is not None and line[place] is not None:
                line[place] = cell(line[place])
            writer.writerow([*first, *("" if one is None else csv_cell(one, formulas) for one in line)])
    return out.getvalue()


_TEXTS = ("question", "section", "group", "unit", "method", "protocol", "assumed")
_TRUTHS = ("population", "simultaneous")


def as_arrow(documents: Sequence[Document]) -> Any:
    """A pyarrow table with the same columns; an unknown number is null."""
    pa = require("pyarrow", "files")
    names = columns_of(documents)
    lines = [line for document in documents if document.sections for line in lines_of(document, names)]
    columns = dict(zip(names, zip(*lines, strict=True), strict=True)) if lines else dict.fromkeys(names, ())
    found = {}
    for name, column in columns.items():
        if name == "label":
            alike = len({type(label) for label in column}) == 1
            found[name] = pa.array(list(column) if alike else [text(label) for label in column])
        elif name in _TEXTS:
            found[name] = pa.array(column, pa.string())
        else:
            whole = name == "n" and all(isinstance(one, int) for one in column)
            found[name] = pa.array(column, pa.bool_() if name in _TRUTHS else pa.int64() if whole else pa.float64())
    return pa.table(found)

"""Answers in batches, from CSV, Parquet or standard input, in bounded memory.

CSV        UTF-8, with a header; comma, semicolon or tab, whichever is most frequent in the header; blank lines do
           not count
Parquet    one column a question, of text, numbers or truth values, not of lists
Alike      text is matched with how the answers are written, 1 or "1", true or "True", and stands for a whole number
           that is written so, 3 or 3.0; decimals that are whole are whole numbers. Where one answer is 1 and another
           "1", text of Parquet is the text, and a CSV is refused
Missing    an empty cell, a null, and empty text in a question of open text are refused; empty text may be a category
Rows       count from 1, without the header
Messages   name row, column and kind of a bad answer, never the answer; the parser's own messages quote it and are
           not passed on
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from deniable._extras import require
from deniable.columns import absent
from deniable.domains import Categories, Domain, Integers, Strings
from deniable.engines.parquet import opened
from deniable.engines.source import Source
from deniable.errors import DomainError, ReportError
from deniable.labels import Label, whole_number, written

Columns = Mapping[str, str]
"""Which column of the input answers which question: question id -> column name."""

BLOCK_BYTES = 1 << 20
BATCH_ROWS = 1 << 16

_CELLS = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")


def read_answers(source: Source, columns: Columns, domains: Mapping[str, Domain]) -> Iterator[dict[str, Any]]:
    """Batches of Arrow arrays by question id, as the file has them."""
    if source.is_empty:
        raise ReportError(f"{source.name} is empty")
    if not source.is_parquet:
        yield from _from_csv(source, columns, domains)
    else:
        yield from _from_parquet(source, columns)


def as_answers(domain: Domain, column: Any, typed: bool) -> Any:
    """A column of Arrow as the domain takes it; text becomes the labels that are written so.

    A `typed` column can tell 1 and "1" apart.
    """
    types = require("pyarrow", "files").types
    kind = getattr(column.type, "value_type", column.type)
    if types.is_decimal(kind) and not isinstance(domain, Strings):
        return _translate(column, lambda entry: int(entry) if entry == int(entry) else float(entry))
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
        return column
    if isinstance(domain, Strings):
        return _not_empty(column)
    if isinstance(domain, Integers):
        return _translate(column, lambda entry: entry if (number := whole_number(entry)) is None else number)
    if all(isinstance(label, str) for label in domain.labels):
        return column
    labels = _by_writing(domain, typed)
    return _translate(column, lambda entry: labels.get(entry, entry))


def check_types(schema: Any, names: Iterable[str], where: str) -> None:
    """Refuse columns that hold several values a row."""
    types = require("pyarrow", "files").types
    for name in names:
        kind = schema.field(name).type
        if types.is_nested(kind):
            what = "structures" if types.is_struct(kind) else "maps" if types.is_map(kind) else "lists"
            raise ReportError(f"column {name!r} of {where} holds {what}, not text or numbers")


def _not_empty(column: Any) -> Any:
    """Empty text is no answer where any text may be one: a CSV has the same for a missing answer."""
    column = column if hasattr(column, "dictionary") else column.dictionary_encode()
    entries = column.dictionary.to_pylist()
    if "" in entries and not column.null_count:
        empty = column.indices.to_numpy() == entries.index("")
        if empty.any():
            raise absent(int(np.argmax(empty)))
    return column


def _translate(column: Any, meaning: Any) -> Any:
    """Labels for a column, looked up once an entry."""
    if column.null_count:
        return column
    column = column if hasattr(column, "dictionary") else column.dictionary_encode()
    entries = [meaning(entry) for entry in column.dictionary.to_pylist()]
    codes = column.indices.to_numpy()
    if {type(entry) for entry in entries} == {int}:
        return np.array(entries, dtype=np.int64)[codes]
    return [entries[code] for code in codes.tolist()]


def _by_writing(domain: Categories, typed: bool) -> dict[str, Label]:
    """Labels by how they are written as text."""
    texts = {label for label in domain.labels if isinstance(label, str)} if typed else set()
    table: dict[str, Label] = {}
    for label in domain.labels:
        for form in written(label):
            if form in texts and not isinstance(label, str):
                continue
            if form in table:
                raise DomainError(f"two answers are written {form!r}: a CSV cannot tell them apart, but Parquet can")
            table[form] = label
    return table


# -- CSV ---------------------------------------------------------------------------------------------


def _from_csv(source: Source, columns: Columns, domains: Mapping[str, Domain]) -> Iterator[dict[str, Any]]:
    pa, reader = require("pyarrow", "files"), require("pyarrow.csv", "files")
    names, delimiter = csv_header(source)
    chosen = {id: _column(names, column, source.name) for id, column in columns.items()}
    exact = [names[place] for place in chosen.values()]
    # An empty cell is a missing answer, unless it is the name of one.
    empty = [] if any("" in domains[id].labels for id in columns if isinstance(domains[id], Categories)) else [""]
    texts = pa.dictionary(pa.int32(), pa.string())
    try:
        batches = reader.open_csv(
            source.stream(),
            # In one thread rows are numbered, and it is no slower.
            read_options=reader.ReadOptions(block_size=BLOCK_BYTES, use_threads=False),
            parse_options=reader.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=reader.ConvertOptions(
                include_columns=exact,
                column_types=dict.fromkeys(exact, texts),
                null_values=empty,
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
        for batch in batches:
            yield {id: batch.column(place) for place, id in enumerate(chosen)}
    except pa.ArrowInvalid as wrong:
        raise ReportError(_csv_complaint(source.name, str(wrong))) from None


def _csv_complaint(where: str, wrong: str) -> str:
    """What may be told of the parser's message, which ends with the row."""
    cells = _CELLS.search(wrong)
    if cells is not None:
        row, expected, found = map(int, cells.groups())
        return f"row {row - 1} of {where} has {found} cells, the header has {expected}"
    return f"{where} is not a CSV file in UTF-8: it has broken quotes, a row of more than 1 MiB, or other bytes"


def csv_header(source: Source) -> tuple[list[str], str]:
    """The names in the first line, and the delimiter."""
    try:
        line = source.head.decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError:
        raise ReportError(f"{source.name} is neither Parquet nor text in UTF-8") from None
    delimiter = max(",;\t", key=line.count)
    try:
        return next(csv.reader([line], delimiter=delimiter)), delimiter
    except csv.Error:
        raise ReportError(f"the first line of {source.name} is not the header of a CSV file") from None


def _column(names: list[str], wanted: str, where: str) -> int:
    places = [place for place, name in enumerate(names) if name.strip() == wanted]
    if len(places) == 1:
        return places[0]
    if places:
        raise ReportError(f"{where} has the column {wanted!r} twice: rename one")
    shown = ", ".join(repr(name) for name in names[:8]) + (", ..." if len(names) > 8 else "")
    raise ReportError(f"{where} has no column {wanted!r}; it has {shown}")


# -- Parquet -----------------------------------------------------------------------------------------


def _from_parquet(source: Source, columns: Columns) -> Iterator[dict[str, Any]]:
    with opened(source) as file:
        names = file.schema_arrow.names
        exact = {id: names[_column(names, column, source.name)] for id, column in columns.items()}
        check_types(file.schema_arrow, exact.values(), source.name)
    # Text comes out as a dictionary and codes where it was stored so.
    with opened(source, read_dictionary=list(exact.values())) as file:
        for batch in file.iter_batches(BATCH_ROWS, columns=list(dict.fromkeys(exact.values())), use_threads=False):
            source.taken += batch.num_rows
            yield {id: batch.column(name) for id, name in exact.items()}

"""Files of answers: read in batches, and randomized into files of reports in one pass and bounded memory.

CSV        UTF-8, with a header; comma, semicolon or tab, whichever is most frequent in the header; blank lines do
           not count, except in a file of one column where an empty text is an answer, such as a set without items
Parquet    one column per question, of text, numbers or truth values; sets of items may be lists, numbers by key maps
           or structures
JSON       one object per line, {"smoke": "yes", "age": 44}, in UTF-8; a key that is not there is a missing answer
Records    a column of structures (Parquet) or of objects (JSON, also as text in a CSV) called like the question; else
           one column per part, called like the part
Equal      as in every table (`surveys.tables`). If one answer is 1 and another "1", text in Parquet is the text, and
           a CSV cell that could be either is refused
Missing    an empty cell, a null, and empty text that is not a category: refused, unless the question defines an
           answer for them
Rows       count from 1, without the header
Messages   name row, column and type of a bad answer, never the answer; the parser's own messages quote it and are
           not passed on
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from deniable._extras import require
from deniable._files import parse_json
from deniable._plain import QUOTED
from deniable.columns import Coded, coded, ignore, kind
from deniable.domains import Domain
from deniable.errors import DomainError, ReportError, SpecError
from deniable.files.places import Progress, Source, opened
from deniable.files.reports import ID, ID_BYTES, Layout, report_writer, rows_at_once
from deniable.protocols.reports import Bytes
from deniable.randomness import Bits, source_of
from deniable.surveys import Panel, Survey, tables
from deniable.surveys.panel import Session
from deniable.surveys.tables import Columns, chosen_columns, column_places, joined, questions_of, refusal, spread

WORKING_BYTES = 1 << 23


BLOCK_BYTES = 1 << 20
BATCH_ROWS, JSON_ROWS = 1 << 16, 1 << 13

NOT_UTF8 = (
    'is not in UTF-8 but perhaps in Latin-1, as Excel writes it: save it as "CSV UTF-8", or convert it with '
    "iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW"
)
_AS_CSV = "save the sheet as CSV (UTF-8), or as Parquet"
_UNPACK = "unpack it first, or pipe it in: {} | deniable privatize SURVEY - -o REPORTS"
_OTHER_FORMATS = {
    b"\x1f\x8b": f"compressed with gzip: {_UNPACK.format('gunzip -c FILE')}",
    b"\x28\xb5\x2f\xfd": f"compressed with zstd: {_UNPACK.format('zstd -dc FILE')}",
    b"BZh": f"compressed with bzip2: {_UNPACK.format('bunzip2 -c FILE')}",
    b"\xfd7zXZ": f"compressed with xz: {_UNPACK.format('xz -dc FILE')}",
    b"PK\x03\x04": f"an Excel workbook, or another zip archive: {_AS_CSV}",
    b"\xd0\xcf\x11\xe0": f"an Excel workbook: {_AS_CSV}",
    b"\xff\xfe": "text in UTF-16: convert it with iconv -f UTF-16 -t UTF-8 FILE > NEW",
    b"\xfe\xff": "text in UTF-16: convert it with iconv -f UTF-16 -t UTF-8 FILE > NEW",
    b"ARROW1": "an Arrow file: write the table as Parquet, or give it to survey.privatize(table)",
    b"\xff\xff\xff\xff": "an Arrow stream: write the table as Parquet, or give it to survey.privatize(table)",
    b"SQLite format 3": "a database of SQLite: export the table as CSV",
    b"{": "JSON: write the answers as CSV with a header, or as Parquet",
    b"[{": "JSON in one piece: write one object per line, or the answers as CSV with a header, or as Parquet",
}

_CELLS = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")


def read_answers(source: Source, columns: Columns, domains: Mapping[str, Domain]) -> Iterator[dict[str, Any]]:
    """Batches of columns by question id, as in the file; the parts of a record are one structure."""
    if source.is_empty:
        raise ReportError(f"{source.name} is empty")
    if source.head.startswith(b"{"):
        yield from _from_json_lines(source, columns, domains)
        return
    pa = require("pyarrow", "files")
    for batch in (_from_parquet if source.is_parquet else _from_csv)(source, columns, domains):
        found = joined(batch)
        yield {
            id: pa.StructArray.from_arrays(list(one.values()), list(one)) if isinstance(one, dict) else one
            for id, one in found.items()
        }


def column_names(source: Source) -> tuple[list[str], list[str]]:
    """The names of the columns with one value per row, and of the others."""
    if source.is_empty:
        raise ReportError(f"{source.name} is empty")
    if not source.is_parquet:
        return csv_header(source)[0], []
    is_nested = require("pyarrow", "files").types.is_nested
    with opened(source) as file:
        fields = list(file.schema_arrow)
    flat, nested = ([one.name for one in fields if is_nested(one.type) == deep] for deep in (False, True))
    return flat, nested


def as_answers(domain: Domain, column: Any, typed: bool) -> Any:
    """A column as the domain takes it; numbers and truth values of Arrow are unchanged."""
    if isinstance(column, Coded):
        return tables.as_answers(domain, column)
    types = require("pyarrow", "files").types
    kind = getattr(column.type, "value_type", column.type)
    if domain.columns or domain.nested:
        return tables.as_answers(domain, column, typed)
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return tables.as_answers(domain, column, typed) if text or types.is_decimal(kind) else column


def without_quotes(column: Any) -> Any:
    """A CSV column without the ' that keeps a spreadsheet from running text, as written by `csv_cell`."""
    pa, compute = require("pyarrow", "files"), require("pyarrow.compute", "files")
    if isinstance(column, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(column.indices, without_quotes(column.dictionary))
    return compute.replace_substring_regex(column, QUOTED, r"\1") if pa.types.is_string(column.type) else column


def check_types(schema: Any, names: Mapping[str, str], domains: Mapping[str, Domain], where: str) -> None:
    """Refuse columns that hold several values per row, unless the answers have that form."""
    types = require("pyarrow", "files").types
    for key, name in names.items():
        kind = schema.field(name).type
        what = "structures" if types.is_struct(kind) else "maps" if types.is_map(kind) else "lists"
        if types.is_nested(kind) and what not in (domains[key].nested if key in domains else ()):
            raise ReportError(f"column {name!r} of {where} holds {what}, not text or numbers")


# -- CSV ------------------------------------------------------------------------------------------------


def _from_csv(source: Source, columns: Columns, domains: Mapping[str, Domain]) -> Iterator[dict[str, Any]]:
    pa, reader = require("pyarrow", "files"), require("pyarrow.csv", "files")
    names, delimiter = csv_header(source)
    chosen = column_places(names, spread(columns, domains, names), source.name, typed=False)
    ignore(names, (names[place] for place in chosen.values()), source.name)
    exact = [names[place] for place in chosen.values()]
    # An empty cell is a missing answer, unless it is a label.
    single = [one for id in questions_of(columns) for one in (domains[id], *dict(domains[id].columns).values())]
    empty = [] if any(domain.empty_is_an_answer for domain in single) else [""]
    texts = pa.dictionary(pa.int32(), pa.string())
    try:
        batches = reader.open_csv(
            source.stream(),
            # With one thread rows are numbered, and it is no slower.
            read_options=reader.ReadOptions(block_size=BLOCK_BYTES, use_threads=False),
            # If an empty text is an answer, a blank line of a single column is one.
            parse_options=reader.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=bool(empty) or len(names) > 1
            ),
            convert_options=reader.ConvertOptions(
                include_columns=exact,
                column_types=dict.fromkeys(exact, texts),
                null_values=empty,
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
        for batch in batches:
            yield {id: without_quotes(batch.column(place)) for place, id in enumerate(chosen)}
        return
    except pa.ArrowInvalid as wrong:
        complaint = _csv_complaint(source.name, str(wrong))
    raise ReportError(complaint)


def _csv_complaint(where: str, wrong: str) -> str:
    """The safe part of the parser's message, which ends with the row."""
    cells = _CELLS.search(wrong)
    if cells is not None:
        row, expected, found = map(int, cells.groups())
        return f"row {row - 1} of {where} has {found} cells, the header has {expected}"
    if "UTF8" in wrong:
        return f"{where} {NOT_UTF8}"
    return f"{where} is not a CSV file: it has broken quotes, or a row of more than 1 MiB"


def csv_header(source: Source) -> tuple[list[str], str]:
    """The names in the first line, and the delimiter."""
    refuse_format(source)
    if b"\0" in source.head:
        raise ReportError(f"{source.name} is neither Parquet nor text")
    # Exceptions of the codec and the parser contain the line, which may be an answer: none is re-raised or chained.
    with suppress(UnicodeDecodeError):
        line = source.head.decode("utf-8-sig").strip("\r\n")
        delimiter = max(",;\t", key=line.count)
        with suppress(csv.Error):
            return next(csv.reader([line], delimiter=delimiter)), delimiter
        raise ReportError(f"the first line of {source.name} is not the header of a CSV file")
    raise ReportError(f"{source.name} {NOT_UTF8}")


def refuse_format(source: Source) -> None:
    """Refuse files that are neither CSV nor Parquet, with instructions to convert them."""
    for start, what in _OTHER_FORMATS.items():
        if source.head.startswith(start):
            raise ReportError(f"{source.name} is {what}")


# -- JSON -----------------------------------------------------------------------------------------------


def _from_json_lines(source: Source, columns: Columns, domains: Mapping[str, Domain]) -> Iterator[dict[str, Any]]:
    lines = (line for line in source.stream() if line.strip())
    row = 0
    while batch := [_object(line, row + 1 + i, source.name) for i, line in enumerate(islice(lines, JSON_ROWS))]:
        names = list(dict.fromkeys(name for one in batch for name in one))
        found: dict[str, list[Any]] = {}
        for key, name in spread(columns, domains, names).items():
            id, dot, part = key.partition(".")
            held = [one.get(name) for one in batch]
            if not dot:
                found[id] = held
                continue
            records = found.setdefault(id, [{} for _ in batch])
            for record, value in zip(records, held, strict=True):
                record[part] = value
        yield {id: coded(values) for id, values in found.items()}
        row += len(batch)


def _object(line: bytes, row: int, where: str) -> dict[str, Any]:
    """The object in a line; messages do not quote it."""
    with suppress(SpecError):
        found = parse_json(line, where)
        if isinstance(found, dict):
            return found
    raise ReportError(f"row {row} of {where} is no JSON object: one per line is wanted, with the answers by name")


# -- Parquet --------------------------------------------------------------------------------------------


def _from_parquet(source: Source, columns: Columns, domains: Mapping[str, Domain]) -> Iterator[dict[str, Any]]:
    types = require("pyarrow", "files").types
    with opened(source) as file:
        names = file.schema_arrow.names
        wanted = spread(columns, domains, names)
        exact = {id: names[place] for id, place in column_places(names, wanted, source.name).items()}
        ignore(names, exact.values(), source.name)
        check_types(file.schema_arrow, exact, domains, source.name)
        leaves = [
            leaf
            for key, name in exact.items()
            if domains[key.partition(".")[0]].columns or not types.is_nested(file.schema_arrow.field(name).type)
            for leaf in ([f"{name}.{one.name}" for one in _fields(file.schema_arrow.field(name).type)] or [name])
        ]
    # Text is read as a dictionary and codes if it was stored that way.
    with opened(source, read_dictionary=leaves) as file:
        for batch in file.iter_batches(BATCH_ROWS, columns=list(dict.fromkeys(exact.values())), use_threads=False):
            source.taken += batch.num_rows
            yield {id: batch.column(name) for id, name in exact.items()}


def _fields(kind: Any) -> list[Any]:
    """The columns inside a column of structures."""
    return list(kind) if require("pyarrow", "files").types.is_struct(kind) else []


# -- from answers to reports ----------------------------------------------------------------------------


def privatize_file(
    target: Survey,
    answers: str | Path,
    output: str | Path | BinaryIO,
    columns: Columns | None = None,
    bits: Bits | None = None,
    format: str = "parquet",
    progress: Progress | None = None,
    ids: bool = False,
    panel: Panel | None = None,
) -> int:
    """Randomize every row of `answers` and write the reports.

    The first bad answer raises an error, and no file is written.

    Args:
        target: The survey; `Survey.of(protocol)` for a protocol alone.
        answers: The file of answers.
        output: The file of reports: a path or an open binary file.
        columns: Column of each question: {"smoke": "Do you smoke?"}; if None, columns have the ids of the questions.
        bits: Source of randomness; secure if None.
        format: "parquet", "arrow" or "text".
        progress: Called with the rows done and, if known, the completed share of the input.
        ids: Whether each row gets 16 random bytes, which identify a row that is delivered twice.
        panel: Who answered each row, in which epoch; needed if people answer in several epochs by a rule that keeps
            state.

    Returns:
        The number of rows.
    """
    _check_types(target, answers, output)
    layout = Layout(target)
    layout.refuse_shares()
    chosen = chosen_columns(layout.protocols, columns)
    names = tuple(questions_of(chosen))
    if panel is None:
        layout.refuse_without_panel()
    source, rows = Source.open(answers), 0
    try:
        if source.path is not None and isinstance(output, str | Path) and _same(source.path, output):
            raise ReportError(f"{source.name} holds the answers: the reports would take their place, name another file")
        with report_writer(output, target, names, format, ids) as writer, _session(layout, panel, names) as session:
            for batch in _randomized(source, layout, chosen, source_of(bits), panel, session):
                if ids:
                    batch = {**batch, ID: _fresh_ids(source_of(bits), len(batch[names[0]]))}
                writer.write(batch)
                rows += len(batch[names[0]])
                if progress is not None:
                    progress(rows, source.taken / source.size if source.size else None)
            if rows == 0:
                raise ReportError(f"{source.name} has no answers: there is no row below the header")
            if panel is not None:
                writer.close()  # before the state: if the end cannot be written, nothing is recorded
    finally:
        source.close()
    return rows


def _check_types(target: Any, answers: Any, output: Any) -> None:
    """Check these first: another library's message about a wrong argument would quote it, with its rows."""
    if not isinstance(target, Survey) and isinstance(answers, Survey):
        raise SpecError("the survey comes first: privatize_file(survey, answers, output)")
    if not isinstance(answers, str | Path):
        raise SpecError(
            f"answers are given by the name of their file, not as {kind(answers)}: survey.privatize(table) takes "
            "frames of pandas and polars, Arrow tables and DuckDB relations"
        )
    if not isinstance(output, str | Path) and not hasattr(output, "write"):
        raise SpecError(f"the reports go to a file, by its name or open for writing in binary, not to {kind(output)}")


def _fresh_ids(bits: Bits, rows: int) -> Bytes:
    return np.frombuffer(bits.take(ID_BYTES * rows), dtype=np.uint8).reshape(rows, ID_BYTES)


def _same(first: str | Path, second: str | Path) -> bool:
    return os.path.isfile(second) and os.path.samefile(first, second)


def _session(layout: Layout, panel: Panel | None, names: Sequence[str]) -> AbstractContextManager[Session | None]:
    """The session that draws for a panel; None without one."""
    if panel is None:
        return nullcontext()
    if layout.kind == "protocol":
        raise SpecError("a panel answers a survey: a single protocol has no epochs")
    panel.check_questions(layout.target, names)
    return panel.opened(layout.target)


def _randomized(
    source: Source, layout: Layout, columns: Columns, bits: Bits, panel: Panel | None, session: Session | None
) -> Iterator[Mapping[str, Bytes]]:
    ids = questions_of(columns)
    more = {} if panel is None else panel.columns
    domains = {id: layout.protocols[id].domain for id in ids} | ({} if panel is None else panel.domains)
    most = rows_at_once(layout, ids, WORKING_BYTES)
    row = 0
    for batch in read_answers(source, {**columns, **more}, domains):
        rows = len(next(iter(batch.values())))
        for start in range(0, rows, most):
            piece = {id: column.slice(start, most) for id, column in batch.items()}
            made = {}
            for id in ids:
                with _placed(columns.get(id, id), source, row + start):
                    answers = as_answers(domains[id], piece[id], typed=source.is_parquet)
                    protocol = layout.protocols[id]
                    made[id] = (
                        protocol.privatize(answers, bits).array if session is None else domains[id].encode(answers)
                    )
            if session is not None and panel is not None:
                with _placed(panel.person, source, row + start):
                    made = session.draw({key: piece[key] for key in more}, made, bits)
            yield made
        row += rows


@contextmanager
def _placed(column: str, source: Source, row: int) -> Iterator[None]:
    """Errors about a value with row and column of the file."""
    try:
        yield
    except DomainError as wrong:
        raise refusal(wrong, column, source.name, row) from None

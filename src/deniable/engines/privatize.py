"""From a file of answers to a file of reports, in one pass and bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from deniable.columns import kind
from deniable.engines.answers import as_answers, read_answers
from deniable.engines.layout import ID, ID_BYTES, Layout
from deniable.engines.local import Progress
from deniable.engines.reports import report_writer, rows_at_once
from deniable.engines.source import Source
from deniable.errors import DomainError, ReportError, SpecError
from deniable.protocols import Protocol
from deniable.protocols.reports import Bytes
from deniable.randomness import Bits, source_of
from deniable.surveys import Survey
from deniable.surveys.tables import Columns, chosen_columns, refusal

WORKING_BYTES = 1 << 23


def privatize_file(
    target: Survey | Protocol,
    answers: str | Path,
    output: str | Path | BinaryIO,
    columns: Columns | None = None,
    bits: Bits | None = None,
    format: str = "parquet",
    progress: Progress | None = None,
    ids: bool = False,
) -> int:
    """Randomize every row of `answers` and write the reports; returns the number of rows.

    `columns` says which column answers which question, {"smoke": "Do you smoke?"}; without it each question is
    answered by the column of its id. The first bad answer ends it, and then there is no file. With `ids` each row gets
    16 random bytes, by which a row that is delivered twice is known.
    """
    _check_types(target, answers, output)
    layout = Layout(target)
    chosen = chosen_columns(layout.protocols, columns)
    names = tuple(chosen)
    source, rows = Source.open(answers), 0
    try:
        if source.path is not None and isinstance(output, str | Path) and _same(source.path, output):
            raise ReportError(f"{source.name} holds the answers: the reports would take their place, name another file")
        with report_writer(output, target, names, format, ids) as writer:
            for batch in _randomized(source, layout, chosen, source_of(bits)):
                if ids:
                    batch = {**batch, ID: _fresh_ids(source_of(bits), len(batch[names[0]]))}
                writer.write(batch)
                rows += len(batch[names[0]])
                if progress is not None:
                    progress(rows, source.taken / source.size if source.size else None)
            if rows == 0:
                raise ReportError(f"{source.name} has no answers: there is no row below the header")
    finally:
        source.close()
    return rows


def _check_types(target: Any, answers: Any, output: Any) -> None:
    """Before anything is done with them: what others say of a wrong argument quotes it, rows and all."""
    if not isinstance(target, Survey | Protocol) and isinstance(answers, Survey | Protocol):
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


def _randomized(source: Source, layout: Layout, columns: Columns, bits: Bits) -> Iterator[Mapping[str, Bytes]]:
    domains = {id: layout.protocols[id].domain for id in columns}
    most = rows_at_once(layout, columns, WORKING_BYTES)
    row = 0
    for batch in read_answers(source, columns, domains):
        rows = len(next(iter(batch.values())))
        for start in range(0, rows, most):
            piece = {id: column.slice(start, most) for id, column in batch.items()}
            yield {
                id: _reports(layout.protocols[id], piece[id], columns[id], row + start, source, bits) for id in columns
            }
        row += rows


def _reports(protocol: Protocol, column: Any, name: str, row: int, source: Source, bits: Bits) -> Bytes:
    try:
        return protocol.privatize(as_answers(protocol.domain, column, typed=source.is_parquet), bits).array
    except DomainError as wrong:
        raise refusal(wrong, name, source.name, row) from None

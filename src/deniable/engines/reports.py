"""Files of reports, written and read in batches, in bounded memory.

Form       Parquet with one column of fixed-size binary a question, compressed, pages with checksums; an Arrow stream;
           or text
Whole      a file appears under its name when its last row is written, or not at all
Identity   the file names its survey or protocol (`layout`); a reader refuses any other
"""

from __future__ import annotations

import io
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from deniable._extras import require
from deniable.engines.columns import as_arrow, as_bytes, check_columns
from deniable.engines.layout import ID, ID_BYTES, Layout
from deniable.engines.parquet import opened
from deniable.engines.source import Source
from deniable.engines.streams import ArrowWriter, read_stream
from deniable.engines.text import TextWriter, read_text
from deniable.engines.urls import written
from deniable.errors import ReportError, SpecError
from deniable.protocols import Protocol, Reports
from deniable.protocols.reports import Bytes
from deniable.surveys import Survey

ROW_GROUP_BYTES = 1 << 24
BATCH_BYTES, MOST_BATCH_BYTES = 1 << 21, 1 << 23
MOST_ROWS = 1 << 20


class Writer(typing.Protocol):
    """What takes batches of reports."""

    def write(self, batch: Mapping[str, Bytes]) -> None: ...

    def close(self) -> None:
        """Write what waits, and the end."""

    def abandon(self) -> None:
        """Let go of the file without an end."""


class ParquetWriter:
    """Gathers batches into row groups of about 16 MiB, and cuts larger ones."""

    def __init__(self, file: BinaryIO, layout: Layout, columns: tuple[str, ...], ids: bool = False) -> None:
        self._pa = require("pyarrow", "files")
        self._schema = layout.schema(columns, ids)
        self._width = sum(field.type.byte_width for field in self._schema)
        self._waiting: list[Any] = []
        self._bytes = 0
        self._sink = _Sink(file)
        # Noise has no repetitions, so a dictionary is of no use; entropy coding is.
        self._writer = require("pyarrow.parquet", "files").ParquetWriter(
            self._sink, self._schema, compression="zstd", use_dictionary=False, write_page_checksum=True
        )

    def write(self, batch: Mapping[str, Bytes]) -> None:
        arrays = [as_arrow(self._pa, batch[name]) for name in self._schema.names]
        self._waiting.append(self._pa.record_batch(arrays, schema=self._schema))
        self._bytes += sum(batch[name].nbytes for name in self._schema.names)
        if self._bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            table = self._pa.Table.from_batches(self._waiting)
            self._writer.write_table(table, row_group_size=max(1, ROW_GROUP_BYTES // self._width))
        self._waiting, self._bytes = [], 0

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        # Arrow's writer insists on an end when it is collected, and complains if it cannot write one.
        self._sink.deaf = True
        with suppress(Exception):
            self._writer.close()
        self._writer.is_open = False


class _Sink(io.RawIOBase):
    """Passes bytes on, until it is told to drop them."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self.deaf = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data) if self.deaf else self._file.write(data)


FORMATS: dict[str, Any] = {"parquet": ParquetWriter, "arrow": ArrowWriter, "text": TextWriter}
_SUFFIXES = {".csv": "text", ".txt": "text", ".arrow": "arrow", ".arrows": "arrow"}


def format_of(path: str | Path) -> str:
    """The format that a name promises."""
    return _SUFFIXES.get(Path(str(path)).suffix.lower(), "parquet")


@contextmanager
def report_writer(
    path: str | Path | BinaryIO,
    target: Survey | Protocol,
    columns: Iterable[str] | None = None,
    format: str = "parquet",
    ids: bool = False,
) -> Iterator[Writer]:
    """Something to write batches of reports with; the file appears when the block ends without an error.

    `format` is "parquet", "arrow" (a stream) or "text". With `ids` each batch has a column "id" of 16 bytes as well.
    """
    layout = Layout(target)
    if format not in FORMATS:
        raise SpecError(f"reports are written as {', '.join(FORMATS)}, not as {format!r}")
    output: AbstractContextManager[BinaryIO] = written(path) if isinstance(path, str | Path) else nullcontext(path)
    with output as file:
        writer: Writer = FORMATS[format](file, layout, layout.some(columns), ids)
        try:
            yield writer
            writer.close()
        except BaseException:
            writer.abandon()
            raise


def write_reports(
    path: str | Path | BinaryIO,
    target: Survey | Protocol,
    batches: Iterable[Mapping[str, Reports | Bytes]],
    columns: Iterable[str] | None = None,
    format: str = "parquet",
    ids: bool = False,
) -> int:
    """Write batches of reports by question id ("report" for a single protocol); returns the number of rows."""
    layout, rows = Layout(target), 0
    chosen = layout.some(columns)
    with report_writer(path, target, chosen, format, ids) as writer:
        for batch in batches:
            checked = {name: layout.protocols[name]._rows(batch[name]) for name in chosen}
            if ids:
                checked[ID] = _ids(batch)
            lengths = {len(array) for array in checked.values()}
            if len(lengths) > 1:
                raise ReportError(f"the columns of a batch have different lengths: {sorted(lengths)}")
            writer.write(checked)
            rows += lengths.pop()
    return rows


def _ids(batch: Mapping[str, Any]) -> Bytes:
    array = np.ascontiguousarray(batch[ID], dtype=np.uint8) if ID in batch else np.empty(0, dtype=np.uint8)
    if array.ndim != 2 or array.shape[1] != ID_BYTES:
        raise ReportError(f"the column {ID!r} of a batch holds rows of {ID_BYTES} bytes")
    return array


def read_batches(
    source: Source | str | Path,
    target: Survey | Protocol,
    columns: Iterable[str] | None = None,
    ids: bool = False,
    part: tuple[int, int] = (0, 1),
) -> Iterator[dict[str, Bytes]]:
    """Batches of reports by question id, from a file that `write_reports` or `Reports.save` wrote.

    With `ids` the column "id" comes along. `part` (i, k) is the i-th of k parts of a Parquet file, cut between row
    groups; anything else has one part, the first.
    """
    layout = Layout(target)
    chosen = layout.some(columns)
    given = source if isinstance(source, Source) else Source.open(source)
    if given.is_empty:
        raise ReportError(f"{given.name} is empty")
    try:
        if given.is_parquet:
            yield from _from_parquet(given, layout, chosen, ids, part)
        elif part[0] == 0:
            yield from (read_stream if given.is_arrow else read_text)(given, layout, chosen, ids)
    finally:
        given.close()


def _from_parquet(
    source: Source, layout: Layout, columns: tuple[str, ...], ids: bool, part: tuple[int, int]
) -> Iterator[dict[str, Bytes]]:
    with opened(source) as file:
        schema, facts = file.schema_arrow, file.metadata
        layout.check(schema.metadata, source.name)
        held = check_columns(schema, layout, columns, ids, source.name)
        groups = range(facts.num_row_groups * part[0] // part[1], facts.num_row_groups * (part[0] + 1) // part[1])
        source.taken = sum(facts.row_group(i).num_rows for i in range(groups.start))
        if not held or not groups:
            return
        wanted = ((ID,) if ids else ()) + held
        # Small enough for the cache, but the counters of a column are gone through once a batch as well.
        counters = 8 * max(layout.protocols[name].tally_size for name in held)
        most = rows_at_once(layout, held, max(BATCH_BYTES, min(MOST_BATCH_BYTES, counters)))
        for batch in file.iter_batches(most, row_groups=list(groups), columns=list(wanted), use_threads=False):
            arrays = {name: as_bytes(batch.column(name), name, source.taken, source.name) for name in wanted}
            source.taken += batch.num_rows
            yield arrays


def rows_at_once(layout: Layout, columns: Iterable[str], most_bytes: int) -> int:
    """How many rows of reports fit in that much memory."""
    width = sum(layout.protocols[name].report_bytes for name in columns)
    return min(MOST_ROWS, max(1, most_bytes // width))

"""Files of reports, written and read in batches, in bounded memory.

Form       Parquet with one column of fixed-size binary a question, compressed, pages with checksums; or text
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
from deniable.engines.layout import Layout
from deniable.engines.parquet import opened
from deniable.engines.source import Source
from deniable.engines.text import TextWriter, read_text
from deniable.errors import ReportError
from deniable.protocols import Protocol, Reports
from deniable.protocols.reports import Bytes
from deniable.surveys import Survey
from deniable.surveys.whole import whole

ROW_GROUP_BYTES = 1 << 24
BATCH_BYTES = 1 << 25
MOST_ROWS = 1 << 20


class Writer(typing.Protocol):
    """What takes batches of reports."""

    def write(self, batch: Mapping[str, Bytes]) -> None: ...

    def close(self) -> None:
        """Write what waits, and the end."""

    def abandon(self) -> None:
        """Let go of the file without an end."""


class ParquetWriter:
    """Gathers batches into row groups of about 16 MiB."""

    def __init__(self, file: BinaryIO, layout: Layout, columns: tuple[str, ...]) -> None:
        self._pa = require("pyarrow", "files")
        types = {column: self._pa.binary(layout.protocols[column].report_bytes) for column in columns}
        self._schema = self._pa.schema(list(types.items()), metadata=layout.metadata())
        self._waiting: list[Any] = []
        self._bytes = 0
        self._sink = _Sink(file)
        # Noise has no repetitions, so a dictionary is of no use; entropy coding is.
        self._writer = require("pyarrow.parquet", "files").ParquetWriter(
            self._sink, self._schema, compression="zstd", use_dictionary=False, write_page_checksum=True
        )

    def write(self, batch: Mapping[str, Bytes]) -> None:
        arrays = [_as_arrow(self._pa, batch[name]) for name in self._schema.names]
        self._waiting.append(self._pa.record_batch(arrays, schema=self._schema))
        self._bytes += sum(batch[name].nbytes for name in self._schema.names)
        if self._bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            table = self._pa.Table.from_batches(self._waiting)
            self._writer.write_table(table, row_group_size=max(1, len(table)))
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


@contextmanager
def report_writer(
    path: str | Path | BinaryIO, target: Survey | Protocol, columns: Iterable[str] | None = None, text: bool = False
) -> Iterator[Writer]:
    """Something to write batches of reports with; the file appears when the block ends without an error."""
    layout = Layout(target)
    kind = TextWriter if text else ParquetWriter
    output: AbstractContextManager[BinaryIO] = whole(path) if isinstance(path, str | Path) else nullcontext(path)
    with output as file:
        writer = kind(file, layout, layout.some(columns))
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
    text: bool = False,
) -> int:
    """Write batches of reports by question id ("report" for a single protocol); returns the number of rows."""
    layout, rows = Layout(target), 0
    chosen = layout.some(columns)
    with report_writer(path, target, chosen, text) as writer:
        for batch in batches:
            checked = {name: layout.protocols[name]._rows(batch[name]) for name in chosen}
            lengths = {len(array) for array in checked.values()}
            if len(lengths) > 1:
                raise ReportError(f"the columns of a batch have different lengths: {sorted(lengths)}")
            writer.write(checked)
            rows += lengths.pop()
    return rows


def read_batches(
    source: Source | str | Path, target: Survey | Protocol, columns: Iterable[str] | None = None
) -> Iterator[dict[str, Bytes]]:
    """Batches of reports by question id, from a file that `write_reports` or `Reports.save` wrote."""
    layout = Layout(target)
    chosen = layout.some(columns)
    given = source if isinstance(source, Source) else Source.open(source)
    if given.is_empty:
        raise ReportError(f"{given.name} is empty")
    try:
        yield from _from_parquet(given, layout, chosen) if given.is_parquet else read_text(given, layout, chosen)
    finally:
        given.close()


def _from_parquet(source: Source, layout: Layout, columns: tuple[str, ...]) -> Iterator[dict[str, Bytes]]:
    pa = require("pyarrow", "files")
    with opened(source) as file:
        schema = file.schema_arrow
        layout.check(schema.metadata, source.name)
        held = layout.held(schema.names, columns, source.name)
        for name in held:
            kind, width = schema.field(name).type, layout.protocols[name].report_bytes
            if not pa.types.is_fixed_size_binary(kind):
                raise ReportError(f"column {name!r} of {source.name} holds {kind}, not reports of {width} bytes")
            if kind.byte_width != width:
                raise ReportError(
                    f"column {name!r} of {source.name} holds reports of {kind.byte_width} bytes, not {width}"
                )
        if not held:
            return
        for batch in file.iter_batches(rows_at_once(layout, held, BATCH_BYTES), columns=list(held), use_threads=False):
            arrays = {name: _as_bytes(batch.column(name), name, source) for name in held}
            source.taken += batch.num_rows
            yield arrays


def rows_at_once(layout: Layout, columns: Iterable[str], most_bytes: int) -> int:
    """How many rows of reports fit in that much memory."""
    width = sum(layout.protocols[name].report_bytes for name in columns)
    return min(MOST_ROWS, max(1, most_bytes // width))


def _as_arrow(pa: Any, reports: Bytes) -> Any:
    n, width = reports.shape
    return pa.Array.from_buffers(pa.binary(width), n, [None, pa.py_buffer(np.ascontiguousarray(reports))])


def _as_bytes(column: Any, name: str, source: Source) -> Bytes:
    if column.null_count:
        place = source.taken + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))) + 1
        raise ReportError(f"row {place} of {source.name} has no report in column {name!r}")
    width, n = column.type.byte_width, len(column)
    if n == 0:
        return np.empty((0, width), dtype=np.uint8)
    flat = np.frombuffer(column.buffers()[1], dtype=np.uint8)
    return flat[column.offset * width : (column.offset + n) * width].reshape(n, width)

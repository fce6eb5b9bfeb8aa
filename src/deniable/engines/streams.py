"""Reports as an Arrow IPC stream: the layout of the Parquet file for pipes, where nobody can seek.

A stream ends with a mark of its own. One that stops without it was cut off, and is refused: the reader underneath takes
the end of the input for the end of the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import BinaryIO

from deniable._extras import require
from deniable.engines.columns import as_arrow, as_bytes, check_columns
from deniable.engines.layout import ID, Layout
from deniable.engines.source import Source
from deniable.errors import ReportError
from deniable.protocols.reports import Bytes

_END = b"\xff\xff\xff\xff\0\0\0\0"


class ArrowWriter:
    """Writes batches of reports as they come."""

    def __init__(self, file: BinaryIO, layout: Layout, columns: tuple[str, ...], ids: bool = False) -> None:
        self._pa = require("pyarrow", "files")
        self._file = file
        self._schema = layout.schema(columns, ids)
        self._writer = self._pa.ipc.new_stream(file, self._schema)

    def write(self, batch: Mapping[str, Bytes]) -> None:
        arrays = [as_arrow(self._pa, batch[name]) for name in self._schema.names]
        self._writer.write_batch(self._pa.record_batch(arrays, schema=self._schema))

    def close(self) -> None:
        self._writer.close()
        self._file.flush()

    def abandon(self) -> None:
        # Without its mark the stream is known to be cut off.
        with suppress(Exception):
            self._file.flush()


def read_stream(source: Source, layout: Layout, columns: tuple[str, ...], ids: bool) -> Iterator[dict[str, Bytes]]:
    """Batches of reports, by column."""
    pa = require("pyarrow", "files")
    stream, row = source.stream(), 0
    try:
        with pa.ipc.open_stream(stream) as batches:
            layout.check(batches.schema.metadata, source.name)
            held = check_columns(batches.schema, layout, columns, ids, source.name)
            wanted = ((ID,) if ids else ()) + held
            for batch in batches:
                batch.validate()
                yield {name: as_bytes(batch.column(name), name, row, source.name) for name in wanted}
                row += batch.num_rows
            rest = stream.read(1)
    except (pa.ArrowException, OSError, MemoryError, OverflowError) as wrong:
        # A damaged length asks for any amount of memory; an error of the operating system has a number.
        if isinstance(wrong, OSError) and wrong.errno is not None:
            raise
        raise ReportError(f"{source.name} is damaged: below row {row} it is no stream of reports") from None
    if rest or source.tail != _END:
        problem = "goes on after its end" if rest else "is cut off"
        raise ReportError(f"the stream in {source.name} {problem}, after row {row}")

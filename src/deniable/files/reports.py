"""Files of reports, written and read in batches, in bounded memory.

Parquet    one column of fixed-size binary per question, compressed, pages with checksums
Arrow      an IPC stream of the same columns, for pipes, which cannot seek. It ends with its own mark; a stream
           without it was cut off and is refused, because the underlying reader takes the end of the input for the end
           of the stream
Text       base64url without padding, one column per question, one line per person, all reports of a column of the
           same length, so that whole columns are translated at once:

               # deniable reports, survey 5f0c...      (or: protocol 5f0c...)
               smoke,age
               AQ,wA4
Whole      a file appears under its name when its last row is written, or not at all
Identity   the file names its survey or protocol; a reader refuses any other

The layout: one column per question, and metadata that identify the survey or protocol.

Survey     columns named by question id, some or all of them; `deniable.survey` is its fingerprint and
           `deniable.survey.spec` its canonical JSON
Protocol   one column "report"; `deniable.fingerprint` and `deniable.spec`, as `Reports.save` writes them
Ids        if they are kept, a first column "id": 16 random bytes per row, which identify a repeated row
Epoch      `deniable.epoch`, if all rows are of one epoch of a collection: ids are then those of that epoch
Version    `deniable.version` is the version of this layout; a file without it is of version 1
Columns    are converted between Arrow and rows of bytes without copying
"""

from __future__ import annotations

import base64
import io
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from deniable._extras import require
from deniable.errors import LabelError, MismatchError, ReportError, SpecError
from deniable.files.places import Source, opened, written
from deniable.protocols import Protocol, Reports
from deniable.protocols.reports import Bytes
from deniable.surveys import Survey
from deniable.surveys.panel import refuse_without_panel

ID = "id"
ID_BYTES = 16
SURVEY, SURVEY_SPEC = b"deniable.survey", b"deniable.survey.spec"
PROTOCOL, PROTOCOL_SPEC = b"deniable.fingerprint", b"deniable.spec"
_KEYS = {"survey": (SURVEY, SURVEY_SPEC), "protocol": (PROTOCOL, PROTOCOL_SPEC)}
VERSION_KEY, VERSION = b"deniable.version", b"1"
EPOCH = b"deniable.epoch"


class UnnamedError(ReportError):
    """A file that does not name its survey or protocol."""


@dataclass(frozen=True)
class Layout:
    """A survey as columns of reports.

    Args:
        target: The survey; `Survey.of(protocol)` for a protocol alone.

    Raises:
        SpecError: It is something else.
    """

    target: Survey

    def __post_init__(self) -> None:
        if not isinstance(self.target, Survey):
            raise SpecError(
                f"a survey is wanted, not an object of type {type(self.target).__name__}: check the order, and give a "
                "protocol as Survey.of(protocol)"
            )

    @cached_property
    def protocols(self) -> dict[str, Protocol]:
        """The protocol of each column."""
        return {question.id: question.protocol for question in self.target}

    def refuse_shares(self) -> None:
        """Raise SpecError if a report by itself does not satisfy epsilon: it is not written."""
        for protocol in self.protocols.values():
            if not protocol.traits.local:
                raise SpecError(
                    f"a report of {protocol.name} tells the answer by itself: it is sent in shares to several "
                    "collectors, and never stands in a file"
                )

    def refuse_without_panel(self) -> None:
        """Raise SpecError if the reports of a person depend on a state from earlier epochs."""
        refuse_without_panel(self.target.terms, self.protocols.values())

    @property
    def kind(self) -> str:
        """Whose fingerprint the files name: "survey" or "protocol"."""
        return self.target.kind

    @property
    def fingerprint(self) -> str:
        return self.target.fingerprint

    def source(self, column: str) -> str | None:
        """The identity that the tally of a column carries."""
        return self.target.source(column)

    def some(self, columns: Iterable[str] | None) -> tuple[str, ...]:
        """The requested columns, in the order of the questions; all if none are named."""
        if columns is None:
            return tuple(self.protocols)
        wanted = list(columns)
        for name in wanted:
            if name not in self.protocols:
                raise LabelError(f"there is no question {name!r}; there are {', '.join(self.protocols)}")
        return tuple(name for name in self.protocols if name in wanted)

    def metadata(self) -> dict[bytes, bytes]:
        name, spec = _KEYS[self.kind]
        return {VERSION_KEY: VERSION, name: self.fingerprint.encode(), spec: self.target.canonical}

    def schema(self, columns: Iterable[str], ids: bool = False) -> Any:
        """The Arrow schema of a file with these columns: fixed-size binary, none missing."""
        pa = require("pyarrow", "files")
        if ids:
            self.check_ids()
        widths = ({ID: ID_BYTES} if ids else {}) | {name: self.protocols[name].report_bytes for name in columns}
        fields = [pa.field(name, pa.binary(width), nullable=False) for name, width in widths.items()]
        return pa.schema(fields, metadata=self.metadata())

    def check_ids(self) -> None:
        if ID in self.protocols:
            raise SpecError('this survey has a question "id", so that its reports cannot have ids beside it')

    def check(self, metadata: Mapping[bytes, bytes] | None, where: str) -> None:
        """Refuse a file whose metadata names another survey or protocol, or no survey or protocol."""
        found = metadata or {}
        version = found.get(VERSION_KEY, VERSION)
        if version != VERSION:
            raise ReportError(f"{where} is of version {version.decode(errors='replace')[:20]!r}: try a newer deniable")
        for kind, (key, _) in _KEYS.items():
            if key in found:
                self.check_identity(kind, found[key].decode(errors="replace"), where)
                return
        raise UnnamedError(f"{where} has no fingerprint in its metadata: it was not written as reports")

    def check_identity(self, kind: str, fingerprint: str, where: str) -> None:
        if (kind, fingerprint) != (self.kind, self.fingerprint):
            raise MismatchError(f"{where} belongs to {kind} {fingerprint}, not to {self.kind} {self.fingerprint}")

    def held(self, names: Iterable[str], wanted: tuple[str, ...], where: str) -> tuple[str, ...]:
        """The wanted columns that a file has; refuses columns that do not belong to a question."""
        found = list(names)
        for name in found:
            if name not in self.protocols and name != ID:
                raise ReportError(f"{where} has the column {name!r}, which is not a question of this {self.kind}")
            if found.count(name) > 1:
                raise ReportError(f"{where} has the column {name!r} twice")
        return tuple(name for name in wanted if name in found)


# -- columns of Arrow -----------------------------------------------------------------------------------


def as_arrow(pa: Any, reports: Bytes) -> Any:
    """Rows of bytes as a column of fixed-size binary."""
    n, width = reports.shape
    return pa.Array.from_buffers(pa.binary(width), n, [None, pa.py_buffer(np.ascontiguousarray(reports))])


def as_bytes(column: Any, name: str, row: int, where: str) -> Bytes:
    """A view of the column's own memory; `row` is the number of rows before it, for the message."""
    if column.null_count:
        place = row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))) + 1
        raise ReportError(f"row {place} of {where} has no report in column {name!r}")
    width, n = column.type.byte_width, len(column)
    if n == 0:
        return np.empty((0, width), dtype=np.uint8)
    flat = np.frombuffer(column.buffers()[1], dtype=np.uint8)
    return flat[column.offset * width : (column.offset + n) * width].reshape(n, width)


def check_columns(schema: Any, layout: Layout, columns: tuple[str, ...], ids: bool, where: str) -> tuple[str, ...]:
    """The wanted columns that a schema has; refuses unknown names, types and widths, and missing ids."""
    pa = require("pyarrow", "files")
    held = layout.held(schema.names, columns, where)
    widths = {name: layout.protocols[name].report_bytes for name in held}
    if ids:
        layout.check_ids()
        if ID not in schema.names:
            raise ReportError(f"{where} has no column {ID!r}: without ids nobody can tell which of its rows came twice")
        widths[ID] = ID_BYTES
    for name, width in widths.items():
        kind = schema.field(name).type
        if not pa.types.is_fixed_size_binary(kind):
            raise ReportError(f"column {name!r} of {where} holds {kind}, not reports of {width} bytes")
        if kind.byte_width != width:
            raise ReportError(f"column {name!r} of {where} holds reports of {kind.byte_width} bytes, not {width}")
    return held


_FIRST_LINE = re.compile(rb"# deniable reports, (survey|protocol) ([0-9a-f]{64})\s*")
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_BLOCK_BYTES = 1 << 20

_END = b"\xff\xff\xff\xff\0\0\0\0"

ROW_GROUP_BYTES = 1 << 24
BATCH_BYTES, MOST_BATCH_BYTES = 1 << 21, 1 << 23
MOST_ROWS = 1 << 20


# -- text -----------------------------------------------------------------------------------------------


class TextWriter:
    """Writes batches of reports as text."""

    def __init__(self, file: BinaryIO, layout: Layout, columns: tuple[str, ...], ids: bool = False) -> None:
        if ids:
            layout.check_ids()
        self._file, self._columns = file, ((ID,) if ids else ()) + columns
        file.write(f"# deniable reports, {layout.kind} {layout.fingerprint}\n{','.join(self._columns)}\n".encode())

    def write(self, batch: Mapping[str, Bytes]) -> None:
        parts = []
        for column in self._columns:
            letters = to_base64(batch[column])
            parts += [letters, np.full((len(letters), 1), ord(","), dtype=np.uint8)]
        parts[-1][:] = ord("\n")
        self._file.write(np.hstack(parts).tobytes())

    def close(self) -> None:
        self._file.flush()

    def abandon(self) -> None:
        """Nothing to release."""


def to_base64(reports: Bytes) -> Bytes:
    """The letters of each report, one row per report.

    >>> to_base64(np.array([[1], [2]], dtype=np.uint8)).tobytes()
    b'AQAg'
    """
    n, width = reports.shape
    padded = np.zeros((n, -(-width // 3) * 3), dtype=np.uint8)
    padded[:, :width] = reports
    letters = np.frombuffer(base64.urlsafe_b64encode(padded.tobytes()), dtype=np.uint8)
    return letters.reshape(n, padded.shape[1] // 3 * 4)[:, : letters_of(width)]


def letters_of(width: int) -> int:
    """Number of letters of a report of that many bytes."""
    return -(-width * 4 // 3)


def read_text(
    source: Source, layout: Layout, columns: tuple[str, ...], ids: bool = False
) -> Iterator[dict[str, Bytes]]:
    """Batches of reports, by column."""
    first = _FIRST_LINE.fullmatch(source.head)
    if first is None:
        raise ReportError(
            f"{source.name} is no file of reports: it is neither Parquet, an Arrow stream, nor reports as text"
        )
    layout.check_identity(first[1].decode(), first[2].decode(), source.name)
    pa, reader = require("pyarrow", "files"), require("pyarrow.csv", "files")
    row = 0
    try:
        batches = reader.open_csv(
            _after_head(source),
            read_options=reader.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
            convert_options=reader.ConvertOptions(column_types=dict.fromkeys((ID, *layout.protocols), pa.binary())),
        )
        widths = {
            name: layout.protocols[name].report_bytes
            for name in layout.held(batches.schema.names, columns, source.name)
        }
        if ids:
            layout.check_ids()
            if ID not in batches.schema.names:
                raise ReportError(f"{source.name} has no column {ID!r}: nobody can tell which of its rows came twice")
            widths[ID] = ID_BYTES
        for batch in batches:
            yield {name: _from_base64(batch.column(name), width, row, name, source) for name, width in widths.items()}
            row += batch.num_rows
    except pa.ArrowInvalid:
        raise ReportError(f"{source.name} is damaged: below row {row} it is no table of reports") from None


def _after_head(source: Source) -> BinaryIO:
    stream = source.stream()
    stream.read(len(source.head))
    return stream


def _from_base64(column: Any, width: int, row: int, name: str, source: Source) -> Bytes:
    """The bytes of each report; refuses letters that no report would contain."""
    pc = require("pyarrow.compute", "files")
    n, length = len(column), letters_of(width)
    right = pc.equal(pc.binary_length(column), length).to_numpy(zero_copy_only=False).astype(bool)
    if not right.all():
        raise ReportError(
            f"row {row + int(np.argmin(right)) + 1} of {source.name}, column {name!r}: "
            f"a report of {width} bytes has {length} letters"
        )
    start = column.offset * length
    letters = np.frombuffer(column.buffers()[2], dtype=np.uint8)[start : start + n * length].reshape(n, length)
    padded = np.full((n, -(-length // 4) * 4), ord("A"), dtype=np.uint8)
    padded[:, :length] = letters
    known = np.zeros(256, dtype=np.bool_)
    known[list(_ALPHABET)] = True
    good = known[letters].all(axis=1)
    if good.all():
        data = np.frombuffer(base64.urlsafe_b64decode(padded.tobytes()), dtype=np.uint8).reshape(n, -1)
        good = (data[:, width:] == 0).all(axis=1)
    if not good.all():
        raise ReportError(
            f"row {row + int(np.argmin(good)) + 1} of {source.name}, column {name!r}: this is not base64url text"
        )
    return np.ascontiguousarray(data[:, :width])


# -- Arrow streams --------------------------------------------------------------------------------------


class ArrowWriter:
    """Writes batches of reports as they arrive."""

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
        # A stream without its mark is recognized as cut off.
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
        # A damaged length requests any amount of memory; an error of the operating system has a number.
        if isinstance(wrong, OSError) and wrong.errno is not None:
            raise
        raise ReportError(f"{source.name} is damaged: below row {row} it is no stream of reports") from None
    if rest or source.tail != _END:
        problem = "goes on after its end" if rest else "is cut off"
        raise ReportError(f"the stream in {source.name} {problem}, after row {row}")


# -- Parquet, and all three by name ---------------------------------------------------------------------


class ReportWriter(typing.Protocol):
    """Takes batches of reports."""

    def write(self, batch: Mapping[str, Bytes]) -> None: ...

    def close(self) -> None:
        """Write pending data, and the end."""

    def abandon(self) -> None:
        """Release the file without an end."""


class ParquetWriter:
    """Collects batches into row groups of about 16 MiB, and splits larger ones."""

    def __init__(
        self, file: BinaryIO, layout: Layout, columns: tuple[str, ...], ids: bool = False, epoch: int | None = None
    ) -> None:
        self._pa = require("pyarrow", "files")
        self._schema = layout.schema(columns, ids)
        if epoch is not None:
            self._schema = self._schema.with_metadata({**self._schema.metadata, EPOCH: str(epoch).encode()})
        self._width = sum(field.type.byte_width for field in self._schema)
        self._waiting: list[Any] = []
        self._bytes = 0
        self._sink = _Sink(file)
        # Noise has no repetitions, so a dictionary is useless; entropy coding is not.
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
        # Arrow's writer writes an end when it is garbage-collected, and raises an error if it cannot.
        self._sink.deaf = True
        with suppress(Exception):
            self._writer.close()
        self._writer.is_open = False


class _Sink(io.RawIOBase):
    """Passes bytes on, until it is set to drop them."""

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
    """The format for a file name."""
    return _SUFFIXES.get(Path(str(path)).suffix.lower(), "parquet")


@contextmanager
def report_writer(
    path: str | Path | BinaryIO,
    target: Survey,
    columns: Iterable[str] | None = None,
    format: str = "parquet",
    ids: bool = False,
    epoch: int | None = None,
) -> Iterator[ReportWriter]:
    """A writer for batches of reports; the file appears when the block ends without an error.

    Args:
        path: The file: a path or an open binary file.
        target: The survey of the reports; `Survey.of(protocol)` for a protocol alone.
        columns: Ids of the questions to write; all if None.
        format: "parquet", "arrow" (a stream) or "text".
        ids: Whether each batch has a column "id" of 16 bytes as well.
        epoch: Epoch of all rows, for a Parquet file of a collection.

    Yields:
        The writer.

    Raises:
        SpecError: The format is unknown.
    """
    layout = Layout(target)
    if format not in FORMATS:
        raise SpecError(f"reports are written as {', '.join(FORMATS)}, not as {format!r}")
    output: AbstractContextManager[BinaryIO] = written(path) if isinstance(path, str | Path) else nullcontext(path)
    with output as file:
        more = {} if epoch is None else {"epoch": epoch}
        writer: ReportWriter = FORMATS[format](file, layout, layout.some(columns), ids, **more)
        try:
            yield writer
            writer.close()
        except BaseException:
            writer.abandon()
            raise


def write_reports(
    path: str | Path | BinaryIO,
    target: Survey,
    batches: Iterable[Mapping[str, Reports | Bytes]],
    columns: Iterable[str] | None = None,
    format: str = "parquet",
    ids: bool = False,
) -> int:
    """Write batches of reports by question id to a file.

    Args:
        path: The file: a path or an open binary file.
        target: The survey of the reports; `Survey.of(protocol)` for a protocol alone.
        batches: Reports by question id; "report" for a single protocol.
        columns: Ids of the questions to write; all if None.
        format: "parquet", "arrow" (a stream) or "text".
        ids: Whether each batch has a column "id" of 16 bytes as well.

    Returns:
        The number of rows.
    """
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
    target: Survey,
    columns: Iterable[str] | None = None,
    ids: bool = False,
    part: tuple[int, int] = (0, 1),
) -> Iterator[dict[str, Bytes]]:
    """Batches of reports by question id, from a file that `write_reports` or `Reports.save` wrote.

    Args:
        source: The file.
        target: The survey of the reports; `Survey.of(protocol)` for a protocol alone.
        columns: Ids of the questions to read; all if None.
        ids: Whether the column "id" is included.
        part: (i, k) is the i-th of k parts of a Parquet file, cut between row groups; other formats have one part.

    Yields:
        Reports by question id.

    Raises:
        ReportError: The file is empty, damaged, or has other reports.
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
        source.epoch = _epoch(schema.metadata, source.name)
        groups = range(facts.num_row_groups * part[0] // part[1], facts.num_row_groups * (part[0] + 1) // part[1])
        source.taken = sum(facts.row_group(i).num_rows for i in range(groups.start))
        if not held or not groups:
            return
        wanted = ((ID,) if ids else ()) + held
        # Small enough for the cache, but large enough, because each batch also passes once over a column's counters.
        counters = 8 * max(layout.protocols[name].tally_size for name in held)
        most = rows_at_once(layout, held, max(BATCH_BYTES, min(MOST_BATCH_BYTES, counters)))
        for batch in file.iter_batches(most, row_groups=list(groups), columns=list(wanted), use_threads=False):
            arrays = {name: as_bytes(batch.column(name), name, source.taken, source.name) for name in wanted}
            source.taken += batch.num_rows
            yield arrays


def _epoch(metadata: Mapping[bytes, bytes], where: str) -> int | None:
    if EPOCH not in metadata:
        return None
    if not metadata[EPOCH].isdigit() or len(metadata[EPOCH]) > 10:
        raise ReportError(f"{where} has an invalid epoch: the file is damaged")
    return int(metadata[EPOCH])


def rows_at_once(layout: Layout, columns: Iterable[str], most_bytes: int) -> int:
    """Number of rows of reports that fit in that much memory."""
    width = sum(layout.protocols[name].report_bytes for name in columns)
    return min(MOST_ROWS, max(1, most_bytes // width))

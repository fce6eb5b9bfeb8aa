"""Reports as text: base64url without padding, one column a question, one line a person.

    # deniable reports, survey 5f0c...      (or: protocol 5f0c...)
    smoke,age
    AQ,wA4

All reports of a column have one length, so whole columns are translated at once.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from deniable._extras import require
from deniable.engines.layout import ID, ID_BYTES, Layout
from deniable.engines.source import Source
from deniable.errors import ReportError
from deniable.protocols.reports import Bytes

_FIRST_LINE = re.compile(rb"# deniable reports, (survey|protocol) ([0-9a-f]{64})\s*")
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_BLOCK_BYTES = 1 << 20


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
        """Nothing is left to let go of."""


def to_base64(reports: Bytes) -> Bytes:
    """The letters of each report, one row a report.

    >>> to_base64(np.array([[1], [2]], dtype=np.uint8)).tobytes()
    b'AQAg'
    """
    n, width = reports.shape
    padded = np.zeros((n, -(-width // 3) * 3), dtype=np.uint8)
    padded[:, :width] = reports
    letters = np.frombuffer(base64.urlsafe_b64encode(padded.tobytes()), dtype=np.uint8)
    return letters.reshape(n, padded.shape[1] // 3 * 4)[:, : letters_of(width)]


def letters_of(width: int) -> int:
    """How many letters a report of that many bytes has."""
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
    """The bytes of each report; refuses letters that no report would be written with."""
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

"""Reports: what left the devices, w bytes each, with the fingerprint of the protocol that made them.

Source     reports of a survey say which question they answer, and another survey refuses them

Bytes      the reports one after the other, nothing between them
Arrow      a column "report" of fixed-size binary; fingerprint, spec and source in the schema's metadata
Text       base64url without padding, one string per report
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable._extras import require
from deniable._files import atomic_write, parse_json
from deniable.errors import ReportError

Bytes = NDArray[np.uint8]

_FINGERPRINT = b"deniable.fingerprint"
_SPEC = b"deniable.spec"
_SOURCE = b"deniable.source"


@dataclass(frozen=True, eq=False)
class Reports:
    """Any number of reports of one protocol.

    Args:
        fingerprint: Fingerprint of the protocol.
        array: One row of bytes per report.
        spec: Spec of the protocol, if it is known.
        source: What the reports answer, if it is known: the fingerprint of a survey, a slash, and the question's id.

    Raises:
        ReportError: The array is not a table of bytes.

    >>> reports = Reports("f" * 64, [[1], [2]])
    >>> len(reports), reports.to_bytes(), reports.to_text()
    (2, b'\\x01\\x02', ['AQ', 'Ag'])
    """

    fingerprint: str
    array: Bytes
    spec: dict[str, Any] | None = None
    source: str | None = None

    def __init__(
        self, fingerprint: str, array: ArrayLike, spec: dict[str, Any] | None = None, source: str | None = None
    ) -> None:
        data = np.ascontiguousarray(array, dtype=np.uint8)
        if data.ndim != 2:
            raise ReportError(f"reports are rows of bytes, not an array of {data.ndim} dimensions")
        view = data.view()
        view.flags.writeable = False
        object.__setattr__(self, "fingerprint", fingerprint)
        object.__setattr__(self, "array", view)
        object.__setattr__(self, "spec", spec)
        object.__setattr__(self, "source", source)

    def __len__(self) -> int:
        return len(self.array)

    @property
    def width(self) -> int:
        return int(self.array.shape[1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array, dtype=dtype, copy=copy)

    def __getitem__(self, which: slice | NDArray[Any]) -> Reports:
        return Reports(self.fingerprint, np.atleast_2d(self.array[which]), self.spec, self.source)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reports):
            return NotImplemented
        same = (self.fingerprint, self.source) == (other.fingerprint, other.source)
        return same and np.array_equal(self.array, other.array)

    def __add__(self, other: Reports) -> Reports:
        if not isinstance(other, Reports):
            return NotImplemented
        if other.fingerprint != self.fingerprint:
            raise ReportError("these reports come from different protocols")
        if other.source != self.source:
            raise ReportError(f"these reports come from different sources: {self.source} and {other.source}")
        return Reports(self.fingerprint, np.concatenate([self.array, other.array]), self.spec, self.source)

    def __repr__(self) -> str:
        return f"<{len(self)} reports of {self.width} bytes, protocol {self.fingerprint[:12]}>"

    def to_bytes(self) -> bytes:
        return self.array.tobytes()

    @classmethod
    def from_bytes(cls, fingerprint: str, data: bytes, width: int, spec: dict[str, Any] | None = None) -> Reports:
        if width < 1 or len(data) % width:
            raise ReportError(f"{len(data)} bytes are not a whole number of reports of {width} bytes")
        return cls(fingerprint, np.frombuffer(data, dtype=np.uint8).reshape(-1, width), spec)

    def to_text(self) -> list[str]:
        return [base64.urlsafe_b64encode(row.tobytes()).rstrip(b"=").decode() for row in self.array]

    @classmethod
    def from_text(cls, fingerprint: str, lines: list[str], width: int, spec: dict[str, Any] | None = None) -> Reports:
        rows = []
        for place, line in enumerate(lines):
            try:
                row = base64.b64decode(line + "=" * (-len(line) % 4), altchars=b"-_", validate=True)
            except ValueError:
                raise ReportError(f"report {place} is not base64url text") from None
            if len(row) != width:
                raise ReportError(f"report {place} has {len(row)} bytes, not {width}")
            rows.append(row)
        return cls.from_bytes(fingerprint, b"".join(rows), width, spec)

    def to_arrow(self) -> Any:
        """A pyarrow table with one column, "report"."""
        pa = require("pyarrow", "files")
        kind = pa.binary(self.width)
        column = pa.Array.from_buffers(kind, len(self), [None, pa.py_buffer(self.array.tobytes())])
        notes = {_FINGERPRINT: self.fingerprint.encode()}
        if self.spec is not None:
            notes[_SPEC] = json.dumps(self.spec).encode()
        if self.source is not None:
            notes[_SOURCE] = self.source.encode()
        return pa.table({"report": column}).replace_schema_metadata(notes)

    @classmethod
    def from_arrow(cls, table: Any, column: str = "report") -> Reports:
        """Reports from a pyarrow table that `to_arrow` could have made."""
        pa = require("pyarrow", "files")
        notes = table.schema.metadata or {}
        if _FINGERPRINT not in notes:
            raise ReportError("this table has no fingerprint in its metadata: it was not written as reports")
        if column not in table.column_names:
            raise ReportError(f"this table has no column {column!r}; it has {', '.join(table.column_names)}")
        data = table.column(column).combine_chunks()
        if not pa.types.is_fixed_size_binary(data.type) or data.null_count:
            raise ReportError(f"the column {column!r} does not hold reports of one width without gaps")
        width = data.type.byte_width
        raw = data.buffers()[1]
        start = data.offset * width
        flat = np.frombuffer(raw, dtype=np.uint8) if len(data) else np.empty(0, dtype=np.uint8)
        rows = flat[start : start + len(data) * width].reshape(-1, width)
        spec = parse_json(notes[_SPEC], "the spec in the table's metadata") if _SPEC in notes else None
        source = notes[_SOURCE].decode(errors="replace") if _SOURCE in notes else None
        return cls(notes[_FINGERPRINT].decode(), rows, spec, source)

    def save(self, path: str | Path) -> None:
        """Write a Parquet file, which appears whole or not at all."""
        with atomic_write(path) as file:
            require("pyarrow.parquet", "files").write_table(self.to_arrow(), file, compression="none")

    @classmethod
    def load(cls, path: str | Path) -> Reports:
        """Read a Parquet file that `save` wrote."""
        pa, parquet = require("pyarrow", "files"), require("pyarrow.parquet", "files")
        try:
            return cls.from_arrow(parquet.read_table(path))
        except pa.ArrowInvalid as broken:
            raise ReportError(f"{path} is not a readable Parquet file: {broken}") from None


# -- whole numbers in as few little-endian bytes as they need -----------------------------------------


def width_of(size: int) -> int:
    """Bytes that hold the numbers below `size`."""
    return max(1, -(-(size - 1).bit_length() // 8))


def narrow_type(width: int) -> np.dtype[Any]:
    """The smallest unsigned type of at least that many bytes."""
    return np.dtype(f"<u{next(size for size in (1, 2, 4, 8) if size >= width)}")


def to_bytes(numbers: NDArray[Any], width: int) -> Bytes:
    """One row of `width` bytes per number."""
    whole = np.ascontiguousarray(numbers, dtype=narrow_type(width))[:, None].view(np.uint8)
    if whole.shape[1] == width:
        return whole
    rows = np.empty((len(whole), width), dtype=np.uint8)
    for column in range(width):  # along the columns: rows are short, and numpy goes along them one by one
        rows[:, column] = whole[:, column]
    return rows


def from_bytes(rows: Bytes) -> NDArray[Any]:
    """The numbers in rows of bytes."""
    count, width = rows.shape
    kind = narrow_type(width)
    if kind.itemsize == width:
        return np.ascontiguousarray(rows).view(kind)[:, 0]
    numbers = np.empty(count, dtype=kind)
    # Words that reach into the next row; the last ones have none to reach into.
    rest = min(count, 1)
    flat = np.ascontiguousarray(rows).reshape(-1)
    numbers[: count - rest] = np.ndarray((count - rest,), kind, flat, 0, (width,))
    numbers &= kind.type((1 << 8 * width) - 1)
    numbers[count - rest :] = [int.from_bytes(row.tobytes(), "little") for row in rows[count - rest :]]
    return numbers


_BLOCK = 1 << 16
_PAIRS = 1 << 18
_FEW = 8


def histogram(numbers: NDArray[Any], size: int) -> NDArray[np.int64]:
    """How often each number below `size` comes; all of them are.

    `bincount` makes 64-bit numbers of what it is given, so it gets as much as then stays in the cache, and single
    bytes two at a time, as if they were one number. It waits for itself where few counters take turns: then it is
    faster to look for one number after the other.
    """
    if numbers.itemsize == 1 and size <= _FEW:
        return _one_by_one(numbers, size)
    if numbers.itemsize == 1 and numbers.size >= _PAIRS and numbers.flags.c_contiguous:
        even = numbers.size // 2 * 2
        table = histogram(numbers[:even].view("<u2"), 1 << 16).reshape(256, 256)
        both: NDArray[np.int64] = (table.sum(axis=0) + table.sum(axis=1))[:size]
        return both + np.bincount(numbers[even:], minlength=size)
    block = max(_BLOCK, 4 * size)
    total = np.bincount(numbers[:block], minlength=size)
    for start in range(block, numbers.size, block):
        total += np.bincount(numbers[start : start + block], minlength=size)
    return total


def _one_by_one(numbers: NDArray[Any], size: int) -> NDArray[np.int64]:
    total = np.zeros(size, dtype=np.int64)
    for start in range(0, numbers.size, _BLOCK):
        block = numbers[start : start + _BLOCK]
        total += [np.count_nonzero(block == number) for number in range(size)]
    return total

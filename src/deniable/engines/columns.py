"""Between columns of Arrow and rows of bytes, without copying either way."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable._extras import require
from deniable.engines.layout import ID, ID_BYTES, Layout
from deniable.errors import ReportError
from deniable.protocols.reports import Bytes


def as_arrow(pa: Any, reports: Bytes) -> Any:
    """Rows of bytes as a column of fixed-size binary."""
    n, width = reports.shape
    return pa.Array.from_buffers(pa.binary(width), n, [None, pa.py_buffer(np.ascontiguousarray(reports))])


def as_bytes(column: Any, name: str, row: int, where: str) -> Bytes:
    """A view of the column's own memory; `row` is how many rows came before, for the message."""
    if column.null_count:
        place = row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))) + 1
        raise ReportError(f"row {place} of {where} has no report in column {name!r}")
    width, n = column.type.byte_width, len(column)
    if n == 0:
        return np.empty((0, width), dtype=np.uint8)
    flat = np.frombuffer(column.buffers()[1], dtype=np.uint8)
    return flat[column.offset * width : (column.offset + n) * width].reshape(n, width)


def check_columns(schema: Any, layout: Layout, columns: tuple[str, ...], ids: bool, where: str) -> tuple[str, ...]:
    """The wanted columns that a schema has; refuses strange names, types and widths, and ids that are missing."""
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

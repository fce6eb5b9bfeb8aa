"""What an executor does with the Arrow batches of a partition: count reports, or randomize answers.

Nothing here knows of Spark: batches come and batches, or one object a partition, go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from deniable._extras import require
from deniable.engines.answers import as_answers, check_types
from deniable.engines.columns import as_arrow, as_bytes
from deniable.engines.layout import ID, ID_BYTES, Layout
from deniable.engines.places import Refused
from deniable.engines.reports import report_writer
from deniable.engines.units import Counters, Gathered
from deniable.engines.urls import below
from deniable.errors import DeniableError, DomainError, LabelError, ReportError
from deniable.protocols.reports import Bytes
from deniable.randomness import SYSTEM

Columns = dict[str, str]
_WHERE = "a partition"


def check_names(held: Iterable[str], wanted: Iterable[str]) -> None:
    """Refuse a frame without a wanted column, before Spark does so at length. Like Spark, whatever the case."""
    names = list(held)
    known = {name.lower() for name in names}
    for name in wanted:
        if name.lower() not in known:
            raise LabelError(f"the frame has no column {name!r}; it has {', '.join(map(repr, names)) or 'none'}")


def counted_batches(layout: Layout, columns: Columns, batches: Iterator[Any]) -> Iterator[Gathered]:
    """The tallies of a partition, as if it were a file: whole, or refused."""
    done, counters = Gathered(files=1), Counters(layout, _WHERE)
    try:
        for batch in batches:
            for id, column in columns.items():
                rows = fixed_rows(batch.column(column), layout.protocols[id].report_bytes, column, done.rows)
                counters.add(id, rows, done.rows)
            done.rows += batch.num_rows
        done.tallies = counters.tallies()
    except DeniableError as wrong:
        done = Gathered(refused={_WHERE: Refused(_WHERE, wrong)})
        for _ in batches:
            pass  # whoever sends them wants to be heard out
    yield done


def fixed_rows(column: Any, width: int, name: str, row: int) -> Bytes:
    """Rows of bytes from binary values, which must all have one length; a view where it can be."""
    pa, pc = require("pyarrow", "files"), require("pyarrow.compute", "files")
    if pa.types.is_fixed_size_binary(column.type) and column.type.byte_width == width:
        return as_bytes(column, name, row, _WHERE)
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        raise ReportError(f"column {name!r} holds {column.type}, not reports of {width} bytes")
    right = pc.fill_null(pc.equal(pc.binary_length(column), width), False).to_numpy(zero_copy_only=False)
    if not right.all():
        place = row + int(np.argmin(right)) + 1
        raise ReportError(f"row {place} of {_WHERE}, column {name!r}: a report has {width} bytes")
    if not len(column):
        return np.empty((0, width), dtype=np.uint8)
    kind = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    start = int(np.frombuffer(column.buffers()[1], dtype=kind)[column.offset])
    flat = np.frombuffer(column.buffers()[2], dtype=np.uint8)
    return flat[start : start + len(column) * width].reshape(len(column), width)


def privatized_batches(layout: Layout, columns: Columns, keep: list[str], batches: Iterator[Any]) -> Iterator[Any]:
    """Reports for the answers of each batch, beside the columns that are kept."""
    pa = require("pyarrow", "files")
    for batch in batches:
        arrays = {name: batch.column(name) for name in keep}
        for id, reports in _randomized(layout, columns, batch).items():
            arrays[id] = as_arrow(pa, reports).cast(pa.binary())
        yield pa.record_batch(arrays)


def written_batches(
    layout: Layout, columns: Columns, folder: str, run: str, ids: bool, batches: Iterator[Any]
) -> Iterator[tuple[str, int] | DeniableError]:
    """Reports for the answers of a partition, in a file of its own, hidden by `run`; gives its name and rows."""
    name = f"part-{require('pyspark', 'spark').TaskContext.get().partitionId():05d}.parquet"
    rows = 0
    try:
        with report_writer(below(folder, run + name), layout.target, columns, ids=ids) as writer:
            for batch in batches:
                reports = _randomized(layout, columns, batch)
                if ids:
                    drawn = np.frombuffer(SYSTEM.take(ID_BYTES * batch.num_rows), dtype=np.uint8)
                    reports[ID] = drawn.reshape(-1, ID_BYTES)
                writer.write(reports)
                rows += batch.num_rows
        yield name, rows
    except DeniableError as wrong:
        for _ in batches:
            pass
        yield wrong


def _randomized(layout: Layout, columns: Columns, batch: Any) -> dict[str, Bytes]:
    reports = {}
    for id, column in columns.items():
        try:
            check_types(batch.schema, [column], "the frame")
            protocol = layout.protocols[id]
            reports[id] = protocol.privatize(as_answers(protocol.domain, batch.column(column), True), SYSTEM).array
        except DomainError as wrong:
            # Which row it is would be of no use in a partition, and the answer itself is nobody's business.
            raise DomainError(f"column {column!r}: {wrong}") from None
    return reports

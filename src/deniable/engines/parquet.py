"""Parquet files, opened with one sentence for everything that may be wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from deniable._extras import require
from deniable.engines.source import Source
from deniable.errors import ReportError


@contextmanager
def opened(source: Source, **options: Any) -> Iterator[Any]:
    """The file for reading in batches; what a damaged one makes the reader say becomes a `ReportError`."""
    pa, parquet = require("pyarrow", "files"), require("pyarrow.parquet", "files")
    where = source.seekable()
    if where is None:
        raise ReportError("Parquet cannot be read from standard input: give the file's name")
    try:
        with parquet.ParquetFile(
            where, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True, **options
        ) as file:
            # From here on the source counts rows.
            source.size, source.taken = file.metadata.num_rows, 0
            yield file
    except pa.ArrowException:
        raise _damaged(source) from None
    except OSError as error:
        # The operating system's own errors have a number, the reader's have none.
        if error.errno is not None:
            raise
        raise _damaged(source) from None


def _damaged(source: Source) -> ReportError:
    return ReportError(f"{source.name} is not a whole Parquet file: it is truncated or damaged")

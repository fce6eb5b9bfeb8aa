"""Copies of a store: one SQLite file of the newest schema, verified, that appears whole or not at all."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from deniable.collect.stores import schema
from deniable.collect.stores.base import StorageFull, StoreError

Row = tuple[Any, ...]


@contextmanager
def new_copy(path: Path) -> Iterator[sqlite3.Connection]:
    """A database to fill, which takes the place of `path` once it is complete, sound and on the disk."""
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(partial, isolation_level=None)) as target:
            target.execute("PRAGMA journal_mode = OFF")
            target.execute("PRAGMA synchronous = OFF")
            yield target
            _check(target, path)
        _sync(partial)
        os.replace(partial, path)
        _sync(path.parent)
    except (OSError, sqlite3.Error) as error:
        kind = StorageFull if _is_full(error) else StoreError
        raise kind(f"the copy {str(path)!r} could not be written: {_reason(error)}") from None
    finally:
        for leftover in (partial, partial.with_name(partial.name + "-journal")):
            leftover.unlink(missing_ok=True)


def write_copy(path: Path, tables: Mapping[str, Iterable[Row]]) -> None:
    """A copy of these rows, table by table."""
    with new_copy(path) as target:
        target.execute("BEGIN")
        schema.make("sqlite", 0, target.execute)
        for table, content in tables.items():
            _fill(target, table, content)
        target.execute("COMMIT")


def _fill(target: sqlite3.Connection, table: str, content: Iterable[Row]) -> None:
    width = len(target.execute(f"SELECT * FROM {table} LIMIT 0").description)
    target.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * width)})", content)


def _check(target: sqlite3.Connection, path: Path) -> None:
    # A copy of a file in WAL mode would need its log beside it.
    target.execute("PRAGMA journal_mode = DELETE")
    found = target.execute("PRAGMA integrity_check").fetchall()
    if found != [("ok",)]:
        raise StoreError(f"the copy {str(path)!r} was damaged while it was written: {found[0][0]}")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_full(error: Exception) -> bool:
    import errno

    return getattr(error, "errno", None) == errno.ENOSPC or getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)

"""Stores: where submissions are counted, each exactly once.

sqlite:///name.db             a file, relative to the working directory; sqlite:////var/lib/name.db is absolute
postgresql://user@host/name   a PostgreSQL server, for several workers; takes every URL that libpq takes
files:///name                 a directory of files, absolute like that of SQLite, for many nodes that share nothing:
                              reports are counted by `deniable tally`. With ?to=s3://bucket/path, or another place,
                              finished files move there
"""

from __future__ import annotations

from pathlib import Path

from deniable.collect.stores.base import (
    Added,
    Batch,
    CountedElsewhere,
    Epoch,
    InUse,
    Published,
    Rejections,
    StorageFull,
    Store,
    StoreError,
    SurveyDeleted,
    Token,
    VersionError,
)

__all__ = [
    "Added",
    "Batch",
    "CountedElsewhere",
    "Epoch",
    "InUse",
    "Published",
    "Rejections",
    "StorageFull",
    "Store",
    "StoreError",
    "SurveyDeleted",
    "Token",
    "VersionError",
    "open_store",
    "restore_store",
]

_FORMS = "sqlite:///name.db, sqlite:////absolute/name.db, postgresql://user@host/name or files:///directory"


def open_store(url: str, shard: int = 0, read_only: bool = False) -> Store:
    """The store at a URL; created if it is new.

    Args:
        url: "sqlite:///path", "postgresql://...", or "files:///directory".
        shard: Number of the worker; workers that share a PostgreSQL store each use their own, so that none waits for
            another's tally.
        read_only: Whether the store is neither created nor changed.

    Returns:
        The store; created if it is new.

    Raises:
        VersionError: The tables have another version.
        StoreError: The URL is not that of a store, or the store cannot be used.

    >>> open_store("mysql://host/name")
    Traceback (most recent call last):
        ...
    deniable.collect.stores.base.StoreError: "mysql:..." is not the URL of a store: write sqlite:///name.db, ...
    """
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite" and rest.startswith("///") and len(rest) > 3 and not rest.endswith("/"):
        from deniable.collect.stores.sqlite import SqliteStore

        return SqliteStore(rest[3:], shard, read_only)
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        from deniable.collect.stores.postgres import PostgresStore

        return PostgresStore(url, shard, read_only)
    if scheme == "files" and rest.startswith("///") and rest[3:].partition("?")[0].strip("/"):
        from deniable.collect.stores.segments import SegmentStore

        directory, _, to = rest[3:].partition("?to=")
        return SegmentStore(directory, to or None, shard, read_only)
    raise _not_a_store(url)


def restore_store(copy: Path, url: str) -> None:
    """Create a store at a URL, where no store exists, from a copy made by `Store.backup`: all of it or nothing.

    Everything is as it was when the copy was made, except that no clock counts as confirmed by an operator, and that
    this version of deniable writes.

    Args:
        copy: File made by `Store.backup`.
        url: Where the store is created.

    Raises:
        StoreError: The copy is damaged, or the store already exists.
    """
    from deniable.collect.stores.sqlite import SqliteStore, restore_file

    scheme, _, rest = url.partition(":")
    with SqliteStore(copy, read_only=True) as source:
        wrong = source.check()
        if wrong:
            raise StoreError(f"{str(copy)!r} is damaged, use another copy: {wrong[0]}")
        if scheme == "sqlite" and rest.startswith("///") and len(rest) > 3:
            restore_file(source, Path(rest[3:]))
        elif scheme in ("postgresql", "postgres") and rest.startswith("//"):
            from deniable.collect.stores.postgres import PostgresStore

            PostgresStore(url, content=source).close()
        elif scheme == "files":
            raise StoreError("a store of files is restored by copying its directory: name sqlite:/// or postgresql://")
        else:
            raise _not_a_store(url)


def _not_a_store(url: str) -> StoreError:
    scheme, colon, _ = url.partition(":")
    kind = f'"{scheme}:..."' if colon and scheme.isalnum() else "this"
    # Not the URL itself: it may hold a password.
    return StoreError(f"{kind} is not the URL of a store: write {_FORMS}")

"""Stores: where submissions are counted, each exactly once.

memory:                       nothing outlives the process; for demonstrations and as the model of the others
sqlite:///name.db             a file, relative to the working directory; sqlite:////var/lib/name.db is absolute
postgresql://user@host/name   a PostgreSQL server, for several workers; what libpq understands is understood
files:///name                 a directory of files, absolute like that of SQLite, for many nodes that share nothing:
                              reports are counted by `deniable tally`. With ?to=s3://bucket/path, or another place,
                              finished files move there
"""

from __future__ import annotations

from deniable.collect.stores.base import (
    Added,
    Batch,
    CountedElsewhere,
    Epoch,
    Published,
    Rejections,
    StorageFull,
    Store,
    StoreError,
    Token,
)

__all__ = [
    "Added",
    "Batch",
    "CountedElsewhere",
    "Epoch",
    "Published",
    "Rejections",
    "StorageFull",
    "Store",
    "StoreError",
    "Token",
    "open_store",
]

_FORMS = "sqlite:///name.db, sqlite:////absolute/name.db, postgresql://user@host/name, files:///directory or memory:"


def open_store(url: str, shard: int = 0) -> Store:
    """The store at a URL; made if it is new. Raises StoreError for a store of another schema version.

    Workers that share a PostgreSQL store give each its own `shard`, so that none waits for another's tally.

    >>> with open_store("memory:") as store:
    ...     store.surveys()
    []
    """
    scheme, colon, rest = url.partition(":")
    if scheme == "memory" and colon and not rest.strip("/"):
        from deniable.collect.stores.memory import MemoryStore

        return MemoryStore()
    if scheme == "sqlite" and rest.startswith("///") and len(rest) > 3 and not rest.endswith("/"):
        from deniable.collect.stores.sqlite import SqliteStore

        return SqliteStore(rest[3:], shard)
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        from deniable.collect.stores.postgres import PostgresStore

        return PostgresStore(url, shard)
    if scheme == "files" and rest.startswith("///") and rest[3:].partition("?")[0].strip("/"):
        from deniable.collect.stores.segments import SegmentStore

        directory, _, to = rest[3:].partition("?to=")
        return SegmentStore(directory, to or None, shard)
    kind = f'"{scheme}:..."' if colon and scheme.isalnum() else "this"
    # Not the URL itself: it may hold a password.
    raise StoreError(f"{kind} is not the URL of a store: write {_FORMS}")

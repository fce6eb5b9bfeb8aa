"""Stores: where submissions are counted, each exactly once.

memory:                       nothing outlives the process; for demonstrations and as the model of the others
sqlite:///name.db             a file, relative to the working directory; sqlite:////var/lib/name.db is absolute
postgresql://user@host/name   a PostgreSQL server, for several workers; what libpq understands is understood
"""

from __future__ import annotations

from deniable.collect.stores.base import (
    Added,
    Batch,
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
    "Epoch",
    "Published",
    "Rejections",
    "StorageFull",
    "Store",
    "StoreError",
    "Token",
    "open_store",
]

_FORMS = "sqlite:///name.db, sqlite:////absolute/name.db, postgresql://user@host/name or memory:"


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
    kind = f'"{scheme}:..."' if colon and scheme.isalnum() else "this"
    # Not the URL itself: it may hold a password.
    raise StoreError(f"{kind} is not the URL of a store: write {_FORMS}")

"""A store in PostgreSQL, for several workers.

Ids         see `postgres_ids`
Closing     whoever adds holds the rows of survey and epoch (FOR SHARE), whoever closes waits for them (FOR UPDATE)
Shards      each worker adds to rows of its own; readers add up the shards
Lost        after a lost connection one call fails with `StoreError`, and the next connects anew. Whether a commit that
            was under way took place is not known then: sending the same ids again is safe either way
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from deniable._extras import require
from deniable.collect.stores import schema
from deniable.collect.stores.base import StorageFull, StoreError
from deniable.collect.stores.copying import Row, write_copy
from deniable.collect.stores.postgres_ids import PostgresIds, TakenError
from deniable.collect.stores.sql import Place

CONNECT_SECONDS = 10
_LOCK = 0x64656E69
"""Held while tables are made."""
BACKUPS = 5
"""How often a copy is begun anew because an epoch closed meanwhile."""
_DISK_FULL, _NO_TABLE, _TAKEN = "53100", "42P01", "55P03"


class MissingTableError(StoreError):
    """A table that is not there, or not any more."""


class PostgresStore(PostgresIds):
    """The store in a PostgreSQL database; tables are made if it has none."""

    locking = "FOR UPDATE"

    def __init__(self, url: str, shard: int = 0) -> None:
        super().__init__(shard)
        self._url = url
        self._psycopg = require("psycopg", "postgres")
        self._open: Any = None
        try:
            with self._locked():
                known = self._query("SELECT to_regclass('schema_version') IS NOT NULL") == [(True,)]
                version = self._query("SELECT version FROM schema_version")[0][0] if known else 0
                schema.make("postgres", version, self._query)
            self._sweep()
        except BaseException:
            self.close()
            raise

    # -- statements --------------------------------------------------------------------------------

    @property
    def _connection(self) -> Any:
        if self._open is None or self._open.closed:
            self._open = self._psycopg.connect(
                self._url, autocommit=True, connect_timeout=CONNECT_SECONDS, application_name="deniable"
            )
        return self._open

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._psycopg.Error as error:
            if self._open is not None and self._open.broken:
                self.close()
            raise self._translated(error) from None

    def _translated(self, error: Any) -> StoreError:
        if error.sqlstate == _DISK_FULL:
            return StorageFull("the PostgreSQL store is full: nothing of this was written; make room on its disk")
        if error.sqlstate == _NO_TABLE:
            return MissingTableError("the PostgreSQL store misses a table: restore a backup")
        if error.sqlstate == _TAKEN:
            return TakenError("the PostgreSQL store is in use by others: try again")
        reason = without_password(self._url, " ".join(str(error).split()))
        return StoreError(f"the PostgreSQL store cannot be used: {reason or type(error).__name__}")

    def _query(self, sql: str, *parameters: Any) -> list[Row]:
        with self._errors():
            cursor = self._connection.execute(_percent(sql), parameters or None, binary=True)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self._query(begin)
        begun = self._open
        try:
            yield
            if self._open is not begun:
                raise StoreError("the connection to PostgreSQL was lost in a transaction: nothing is known of it")
            self._query("COMMIT")
        except BaseException:
            if self._open is begun:
                with suppress(StoreError):
                    self._query("ROLLBACK")
            raise

    def _writing(self) -> Any:
        return self._transaction("BEGIN")

    def _reading(self) -> Any:
        return self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._writing():
            self._query(f"SELECT pg_advisory_xact_lock({_LOCK})")
            yield

    # -- sums --------------------------------------------------------------------------------------

    def _blocks(self, place: Place, blocks: list[int]) -> list[Row]:
        where = "FROM tally WHERE survey = ? AND epoch = ? AND shard = ?"
        # Whoever holds block 0 holds them all; others of the same shard wait here.
        while not (found := self._query(f"SELECT block, n, deleted, counts {where} AND block = 0 FOR UPDATE", *place)):
            insert = "INSERT INTO tally VALUES (?, ?, ?, 0, 0, 0, '') ON CONFLICT DO NOTHING RETURNING 0"
            if self._query(insert, *place):
                return []
        if len(blocks) > 1:
            rest = f"SELECT block, n, deleted, counts {where} AND block > 0 AND block = ANY(?)"
            found += self._query(rest, *place, blocks)
        return found

    def _put(self, place: Place, blocks: Sequence[Row]) -> None:
        insert = "INSERT INTO tally SELECT ?, ?, ?, * FROM unnest(?::int[], ?::bigint[], ?::bigint[], ?b)"
        change = "SET n = excluded.n, deleted = excluded.deleted, counts = excluded.counts"
        columns = [list(column) for column in zip(*blocks, strict=True)]
        self._query(f"{insert} ON CONFLICT (survey, epoch, shard, block) DO UPDATE {change}", *place, *columns)

    # -- care --------------------------------------------------------------------------------------

    def _damage(self, deep: bool) -> list[str]:
        """PostgreSQL has no check of its own that everyone may run; reading everything is the next best."""
        return []

    def backup(self, path: Path) -> None:
        for _ in range(BACKUPS):
            # An epoch that closes meanwhile takes its table along.
            with suppress(MissingTableError), self._reading():
                write_copy(Path(path), {table: self._rows(table) for table in schema.TABLES})
                return
        raise StoreError("epochs were closed during each attempt to copy the store: try again")

    def _rows(self, table: str) -> Iterator[Row]:
        if table == "tally":
            places = "SELECT survey, epoch, shard FROM tally WHERE block = 0 ORDER BY survey, epoch, shard"
            for place in self._query(places):
                yield from self._query("SELECT * FROM tally WHERE survey = ? AND epoch = ? AND shard = ?", *place)
        elif table == "seen":
            for published in self.surveys():
                entry = self._entry(published.fingerprint)
                for (epoch,) in self._query("SELECT epoch FROM epoch WHERE survey = ? ORDER BY epoch", entry.key):
                    after = b""
                    while page := self._page(entry, epoch, after):
                        after = page[-1][0]
                        yield from ((entry.key, epoch, *row) for row in page)
        else:
            yield from self._query(f"SELECT * FROM {table} ORDER BY 1, 2")

    def ping(self) -> None:
        select = "SELECT version, current_setting('transaction_read_only') FROM schema_version"
        if self._query(select)[0][1] != "off":
            raise StoreError("the PostgreSQL store takes no changes now: it is a standby, or read-only")

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


@cache
def _percent(sql: str) -> str:
    """Parameters as psycopg has them: `?` is any, `?b` an array of bytes."""
    return sql.replace("?b", "%b::bytea[]").replace("?", "%s")


def without_password(url: str, text: str) -> str:
    """A message that shows nothing of the URL's password; where that cannot be told, no message."""
    user, _, _ = url.partition("://")[2].rpartition("@")
    secret = user.partition(":")[2]
    words = {secret, unquote(secret), *re.split(r"[:/@?#]", secret)}
    words |= {value for key, value in parse_qsl(urlsplit(url).query) if "password" in key}
    for word in sorted(words - {""}, key=len, reverse=True):
        if word in text and len(word) < 4:
            return "the reason is not shown, because it repeats a part of the password"
        text = text.replace(word, "***")
    return text

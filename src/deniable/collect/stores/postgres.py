"""A store in PostgreSQL, for several workers.

Once        INSERT ... ON CONFLICT DO NOTHING RETURNING id, ids ascending: two workers with the same ids wait for each
            other in one direction only
Closing     whoever adds holds the rows of survey and epoch (FOR SHARE), whoever closes waits for them (FOR UPDATE)
Shards      each worker adds to rows of its own; readers add up the shards
Tables      an epoch's ids have a table of their own, which is dropped when the epoch closes
Lost        after a lost connection one call fails with `StoreError`, and the next connects anew. Whether a commit that
            was under way took place is not known then: sending the same ids again is safe either way
Order       within a transaction ids are ascending, but PostgreSQL's own row numbers (ctid, xmin) tell in what order
            transactions came, for as long as the rows are there: ids until the epoch closes, answers until they are
            added up. Reports that are kept are written anew, by id, when their epoch closes
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np

from deniable._extras import require
from deniable.collect.stores import schema
from deniable.collect.stores.base import CLOSED, OPEN, StorageFull, StoreError
from deniable.collect.stores.copying import Row, write_copy
from deniable.collect.stores.entry import Entry
from deniable.collect.stores.grouping import Flags, Group, rows
from deniable.collect.stores.sql import SqlStore

CONNECT_SECONDS = 10
_LOCK = 0x64656E69
"""Held while tables are made."""
BACKUPS = 5
"""How often a copy is begun anew because an epoch closed meanwhile."""
PATIENCE = 1000
"""Milliseconds to wait for readers of a table that is to be dropped."""
_DISK_FULL, _NO_TABLE, _TAKEN = "53100", "42P01", "55P03"


class MissingTableError(StoreError):
    """A table that is not there, or not any more."""


class TakenError(StoreError):
    """Something that others hold."""


class PostgresStore(SqlStore):
    """The store in a PostgreSQL database; tables are made if it has none."""

    locking = "FOR UPDATE"

    def __init__(self, url: str, shard: int = 0) -> None:
        super().__init__(shard)
        self._url = url
        self._psycopg = require("psycopg", "postgres")
        self._open: Any = None
        self._ready_epochs: set[tuple[int, int]] = set()
        try:
            with self._locked():
                known = self._query("SELECT to_regclass('schema_version') IS NOT NULL") == [(True,)]
                version = self._query("SELECT version FROM schema_version")[0][0] if known else 0
                schema.upgrade("postgres", version, self._query)
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
        """A transaction in which nobody else makes tables."""
        with self._writing():
            self._query(f"SELECT pg_advisory_xact_lock({_LOCK})")
            yield

    # -- ids ---------------------------------------------------------------------------------------

    def _ready(self, entry: Entry, epoch: int) -> None:
        """The epoch's row and its table of ids. Made apart, for whoever makes a table must not wait for others' ids."""
        if (entry.key, epoch) in self._ready_epochs:
            return
        with self._locked():
            if self._query("SELECT state FROM survey WHERE key = ? FOR SHARE", entry.key) == [(CLOSED,)]:
                return
            insert = "INSERT INTO epoch VALUES (?, ?, ?, NULL) ON CONFLICT DO NOTHING RETURNING epoch"
            if self._query(insert, entry.key, epoch, OPEN):
                self._query(f"CREATE TABLE {_seen(entry, epoch)} (id BYTEA PRIMARY KEY, answers BYTEA)")
        self._ready_epochs.add((entry.key, epoch))

    def _state(self, entry: Entry, epoch: int) -> str:
        join = "survey s JOIN epoch e ON e.survey = s.key"
        select = f"SELECT s.state, e.state FROM {join} WHERE s.key = ? AND e.epoch = ? FOR SHARE"
        return OPEN if self._query(select, entry.key, epoch) == [(OPEN, OPEN)] else CLOSED

    def _claim(self, entry: Entry, group: Group, careful: bool) -> Flags:
        columns, values = ("id, answers", "?b, ?b") if entry.keeps else ("id", "?b")
        given = [group.ids, rows(group.answers)] if entry.keeps else [group.ids]
        insert = f"INSERT INTO {_seen(entry, group.epoch)} ({columns}) SELECT * FROM unnest({values})"
        new = self._query(f"{insert} ON CONFLICT DO NOTHING RETURNING id", *given)
        if len(new) == len(group):
            return np.ones(len(group), dtype=np.bool_)
        fresh = {id for (id,) in new}
        return np.array([id in fresh for id in group.ids], dtype=np.bool_)

    def _set_aside(self, entry: Entry, epoch: int, ids: list[bytes], answers: list[bytes]) -> None:
        self._query("INSERT INTO pending SELECT ?, ?, * FROM unnest(?b, ?b)", entry.key, epoch, ids, answers)

    def _sweep(self) -> None:
        table = "to_regclass('seen_' || e.survey || '_' || e.epoch)"
        left = f"FROM epoch e JOIN survey s ON s.key = e.survey WHERE e.state = ? AND {table} IS NOT NULL"
        for fingerprint, epoch in self._query(f"SELECT fingerprint, epoch {left}", CLOSED):
            # A table that is being read, as by a backup, is dropped by a later sweep.
            with suppress(TakenError):
                self._forget(self._entry(fingerprint), epoch)

    def _forget(self, entry: Entry, epoch: int) -> None:
        table = _seen(entry, epoch)
        with self._writing():
            self._query(f"SET LOCAL lock_timeout = {PATIENCE}")
            self._query(f"SELECT pg_advisory_xact_lock({entry.key}, {epoch - (1 << 31)})")
            if not self._has_table(entry, epoch):
                return
            if entry.keeps:
                self._query(f"INSERT INTO report SELECT {entry.key}, {epoch}, id, answers FROM {table} ORDER BY id")
            self._query(f"DROP TABLE {table}")

    def _drop(self, entry: Entry, epoch: int) -> int:
        where, dropped = "WHERE survey = ? AND epoch = ?", self._remembered(entry, epoch)
        self._query(f"DELETE FROM report {where}", entry.key, epoch)
        if self._has_table(entry, epoch):
            self._query(f"TRUNCATE {_seen(entry, epoch)}")
        return dropped

    def _has_table(self, entry: Entry, epoch: int) -> bool:
        return self._query("SELECT to_regclass(?) IS NOT NULL", _seen(entry, epoch)) == [(True,)]

    def _page(self, entry: Entry, epoch: int, after: bytes) -> list[Row]:
        if self._has_table(entry, epoch):
            table = _seen(entry, epoch)
            return self._query(f"SELECT id, answers FROM {table} WHERE id > ? ORDER BY id LIMIT ?", after, entry.page)
        select = "SELECT id, answers FROM report WHERE survey = ? AND epoch = ? AND id > ? ORDER BY id LIMIT ?"
        return self._query(select, entry.key, epoch, after, entry.page)

    def _remembered(self, entry: Entry, epoch: int) -> int:
        select = "SELECT COUNT(*) FROM report WHERE survey = ? AND epoch = ?"
        n = int(self._query(select, entry.key, epoch)[0][0])
        if self._has_table(entry, epoch):
            n += int(self._query(f"SELECT COUNT(*) FROM {_seen(entry, epoch)}")[0][0])
        return n

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
            for place in self._query("SELECT survey, epoch, shard FROM tally ORDER BY survey, epoch, shard"):
                yield from self._query("SELECT * FROM tally WHERE survey = ? AND epoch = ? AND shard = ?", *place)
        elif table in ("seen", "pending"):
            for published in self.surveys():
                entry = self._entry(published.fingerprint)
                for (epoch,) in self._query("SELECT epoch FROM epoch WHERE survey = ? ORDER BY epoch", entry.key):
                    pages = self._page if table == "seen" else self._pending_page
                    after = b""
                    while page := pages(entry, epoch, after):
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


def _seen(entry: Entry, epoch: int) -> str:
    return f"seen_{entry.key}_{epoch}"


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

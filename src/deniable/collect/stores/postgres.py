"""A store in PostgreSQL, for several workers.

Closing     whoever adds holds the rows of survey and epoch (FOR SHARE), whoever closes waits for them (FOR UPDATE)
Shards      each worker adds to rows of its own; readers add up the shards
Lost        after a lost connection one call fails with `StoreError`, and the next connects anew. Whether a commit that
            was under way took place is not known then: sending the same ids again is safe either way

How the ids of an epoch are kept, and how the order in which they came is lost:

Tables      an epoch has two: `fresh_<survey>_<epoch>` takes new ids, `seen_<survey>_<epoch>` has those that were mixed.
            Both are dropped when the epoch closes; kept reports then move to `report`, by id
Once        INSERT ... ON CONFLICT DO NOTHING RETURNING id, ids ascending: two workers with the same ids wait for each
            other in one direction only. An id that was mixed is looked up
Order       PostgreSQL numbers rows by place (ctid) and by transaction (xmin), and both follow the arrivals. Mixing
            writes the new ids again, in the order of the ids and many per transaction, and clears their old places:
            what can be told afterwards is in which period between two mixings an id may have come, not where in it
Locks       whoever adds or closes holds the epoch's row and whoever mixes takes it alone, so nobody looks for an id
            while it moves
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np

from deniable._extras import require
from deniable.collect.stores.base import CLOSED, OPEN, StorageFull, StoreError
from deniable.collect.stores.batches import EpochGroup, Flags, StoredSurvey, rows
from deniable.collect.stores.sql import TABLES, Place, Row, SqlStore, make_tables
from deniable.collect.stores.sqlite import write_copy

CONNECT_SECONDS = 10
_LOCK = 0x64656E69
"""Held while tables are made."""
BACKUPS = 5
"""How often a copy is begun anew because an epoch closed meanwhile."""
PATIENCE = 1000
"""Milliseconds to wait for readers of a table that is to be dropped."""
MIXED = 20_000
"""Ids that move in one transaction, so that ingest goes on between; taken by id, of the whole period."""
_DISK_FULL, _NO_TABLE, _TAKEN = "53100", "42P01", "55P03"

_TABLES = """
    CREATE TABLE survey (
        key INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE,
        canonical BYTEA NOT NULL, state TEXT NOT NULL
    );
    CREATE TABLE epoch (
        survey INTEGER NOT NULL, epoch BIGINT NOT NULL, state TEXT NOT NULL, sha256 TEXT,
        PRIMARY KEY (survey, epoch)
    );
    CREATE TABLE report (
        survey INTEGER NOT NULL, epoch BIGINT NOT NULL, id BYTEA NOT NULL, answers BYTEA NOT NULL,
        PRIMARY KEY (survey, epoch, id)
    );
    CREATE TABLE tally (
        survey INTEGER NOT NULL, epoch BIGINT NOT NULL, shard INTEGER NOT NULL, block INTEGER NOT NULL,
        n BIGINT NOT NULL, deleted BIGINT NOT NULL, counts BYTEA NOT NULL, PRIMARY KEY (survey, epoch, shard, block)
    ) WITH (fillfactor = 50);
    ALTER TABLE tally ALTER counts SET STORAGE EXTERNAL;
    CREATE TABLE duplicate (
        survey INTEGER NOT NULL, shard INTEGER NOT NULL, n BIGINT NOT NULL, PRIMARY KEY (survey, shard)
    );
    CREATE TABLE rejected (
        survey INTEGER NOT NULL, day INTEGER NOT NULL, reason TEXT NOT NULL, shard INTEGER NOT NULL,
        n BIGINT NOT NULL, PRIMARY KEY (survey, day, reason, shard)
    );
    CREATE TABLE token (sha256 TEXT PRIMARY KEY, role TEXT NOT NULL, label TEXT NOT NULL)
"""
STATEMENTS = _TABLES.split(";")


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
        self._ready_epochs: set[tuple[int, int]] = set()
        self._psycopg = require("psycopg", "postgres")
        self._open: Any = None
        try:
            with self._locked():
                known = self._query("SELECT to_regclass('schema_version') IS NOT NULL") == [(True,)]
                version = self._query("SELECT version FROM schema_version")[0][0] if known else 0
                make_tables(STATEMENTS, version, self._query)
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

    # -- ids ------------------------------------------------------------------------------------

    def _ready(self, entry: StoredSurvey, epoch: int) -> None:
        """The epoch's row and its tables. Made apart, for whoever makes a table must not wait for others' ids."""
        if (entry.key, epoch) in self._ready_epochs:
            return
        with self._locked():
            if self._query("SELECT state FROM survey WHERE key = ? FOR SHARE", entry.key) == [(CLOSED,)]:
                return
            insert = "INSERT INTO epoch VALUES (?, ?, ?, NULL) ON CONFLICT DO NOTHING RETURNING epoch"
            if self._query(insert, entry.key, epoch, OPEN):
                for table in _tables(entry.key, epoch):
                    self._query(f"CREATE TABLE {table} (id BYTEA PRIMARY KEY, answers BYTEA)")
        self._ready_epochs.add((entry.key, epoch))

    def _state(self, entry: StoredSurvey, epoch: int) -> str:
        join = "survey s JOIN epoch e ON e.survey = s.key"
        select = f"SELECT s.state, e.state FROM {join} WHERE s.key = ? AND e.epoch = ? FOR SHARE"
        return OPEN if self._query(select, entry.key, epoch) == [(OPEN, OPEN)] else CLOSED

    def _claim(self, entry: StoredSurvey, group: EpochGroup, careful: bool) -> Flags:
        fresh, seen = _tables(entry.key, group.epoch)
        columns, values = ("id, answers", "?b, ?b") if entry.keeps else ("id", "?b")
        given = [group.ids, rows(group.answers)] if entry.keeps else [group.ids]
        # LIMIT keeps the planner from reading all of `seen` to join it with a few ids.
        known = f"LEFT JOIN LATERAL (SELECT 1 AS one FROM {seen} s WHERE s.id = given.id LIMIT 1) known ON true"
        new = f"SELECT given.* FROM unnest({values}) given ({columns}) {known} WHERE known.one IS NULL"
        found = self._query(f"INSERT INTO {fresh} ({columns}) {new} ON CONFLICT DO NOTHING RETURNING id", *given)
        if len(found) == len(group):
            return np.ones(len(group), dtype=np.bool_)
        counted = {id for (id,) in found}
        return np.array([id in counted for id in group.ids], dtype=np.bool_)

    def _bury(self, entry: StoredSurvey, epoch: int, id: bytes) -> bytes | None:
        fresh, seen = _tables(entry.key, epoch)
        for table in (fresh, seen):
            found = self._query(f"DELETE FROM {table} WHERE id = ? AND answers IS NOT NULL RETURNING answers", id)
            if found:
                # Among the new ones in either case: there it tells the next mixing that something was deleted.
                self._query(f"INSERT INTO {fresh} VALUES (?, NULL)", id)
                return bytes(found[0][0])
        return None

    def _forget_buried(self, entry: StoredSurvey, epoch: int) -> None:
        for table in _tables(entry.key, epoch):
            self._query(f"DELETE FROM {table} WHERE answers IS NULL")

    # -- mixing ------------------------------------------------------------------------------------

    def mix(self) -> None:
        for fingerprint, epoch in self._query(
            "SELECT fingerprint, epoch FROM epoch e JOIN survey s ON s.key = e.survey WHERE e.state = ?", OPEN
        ):
            entry = self._entry(fingerprint)
            fresh, seen = _tables(entry.key, epoch)
            deleted = self._any_buried(entry, epoch)
            moved = False
            while self._mix_some(entry, epoch):
                moved = True
            if moved:
                # Rows that were deleted stay in their old places until this, and earlier sums too. It waits for nobody.
                self._query(f"VACUUM (SKIP_LOCKED) {fresh}, tally{f', {seen}' if deleted else ''}")

    def _any_buried(self, entry: StoredSurvey, epoch: int) -> bool:
        """Whether reports were deleted since the last mixing."""
        with self._writing():
            if not entry.keeps or self._hold(entry, epoch) != OPEN:
                return False
            fresh, _ = _tables(entry.key, epoch)
            return self._query(f"SELECT EXISTS (SELECT 1 FROM {fresh} WHERE answers IS NULL)") == [(True,)]

    def _mix_some(self, entry: StoredSurvey, epoch: int) -> bool:
        """Move some ids; returns whether any moved."""
        fresh, seen = _tables(entry.key, epoch)
        with self._writing():
            if self._hold(entry, epoch) != OPEN:
                return False
            last = f"SELECT MAX(id) FROM (SELECT id FROM {fresh} ORDER BY id LIMIT {MIXED}) chosen"
            moved = f"WITH moved AS (DELETE FROM {fresh} WHERE id <= ({last}) RETURNING id, answers)"
            insert = f"INSERT INTO {seen} SELECT * FROM moved ORDER BY id RETURNING 1"
            return self._query(f"{moved}, written AS ({insert}) SELECT COUNT(*) FROM written") != [(0,)]

    # -- forgetting --------------------------------------------------------------------------------

    def _sweep(self) -> None:
        table = "to_regclass('seen_' || e.survey || '_' || e.epoch)"
        left = f"FROM epoch e JOIN survey s ON s.key = e.survey WHERE e.state = ? AND {table} IS NOT NULL"
        for fingerprint, epoch in self._query(f"SELECT fingerprint, epoch {left}", CLOSED):
            # Tables that are being read, as by a backup, are dropped by a later sweep.
            with suppress(TakenError):
                self._forget(self._entry(fingerprint), epoch)

    def _forget(self, entry: StoredSurvey, epoch: int) -> None:
        with self._writing():
            self._query(f"SET LOCAL lock_timeout = {PATIENCE}")
            self._query(f"SELECT pg_advisory_xact_lock({entry.key}, {epoch - (1 << 31)})")
            if not self._has_tables(entry, epoch):
                return
            if entry.keeps:
                both = _both(entry, epoch)
                self._query(f"INSERT INTO report SELECT {entry.key}, {epoch}, id, answers FROM {both} ORDER BY id")
            self._query(f"DROP TABLE {', '.join(_tables(entry.key, epoch))}")

    def _drop(self, entry: StoredSurvey, epoch: int) -> int:
        where, dropped = "WHERE survey = ? AND epoch = ?", self._remembered(entry, epoch)
        self._query(f"DELETE FROM report {where}", entry.key, epoch)
        if self._has_tables(entry, epoch):
            self._query(f"TRUNCATE {', '.join(_tables(entry.key, epoch))}")
        return dropped

    # -- reading -----------------------------------------------------------------------------------

    def _has_tables(self, entry: StoredSurvey, epoch: int) -> bool:
        return self._query("SELECT to_regclass(?) IS NOT NULL", _tables(entry.key, epoch)[1]) == [(True,)]

    def _page(self, entry: StoredSurvey, epoch: int, after: bytes) -> list[Row]:
        if self._has_tables(entry, epoch):
            both = _both(entry, epoch)
            return self._query(f"SELECT id, answers FROM {both} WHERE id > ? ORDER BY id LIMIT ?", after, entry.page)
        select = "SELECT id, answers FROM report WHERE survey = ? AND epoch = ? AND id > ? ORDER BY id LIMIT ?"
        return self._query(select, entry.key, epoch, after, entry.page)

    def _remembered(self, entry: StoredSurvey, epoch: int) -> int:
        select = "SELECT COUNT(*) FROM report WHERE survey = ? AND epoch = ?"
        n = int(self._query(select, entry.key, epoch)[0][0])
        if self._has_tables(entry, epoch):
            n += int(self._query(f"SELECT COUNT(*) FROM {_both(entry, epoch)}")[0][0])
        return n

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
                write_copy(Path(path), {table: self._rows(table) for table in TABLES})
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


def _tables(survey: int, epoch: int) -> tuple[str, str]:
    """Of new ids, and of mixed ones."""
    return f"fresh_{survey}_{epoch}", f"seen_{survey}_{epoch}"


def _both(entry: StoredSurvey, epoch: int) -> str:
    fresh, seen = _tables(entry.key, epoch)
    return f"(SELECT * FROM {fresh} UNION ALL SELECT * FROM {seen}) ids"


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

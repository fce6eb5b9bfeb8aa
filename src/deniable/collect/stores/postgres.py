"""A store in PostgreSQL, for several workers.

Closing     adding holds the row of the survey (FOR SHARE) and that of the epoch (FOR UPDATE), and so does closing
Shards      each worker adds to its own rows; readers sum the shards
Waiting     a statement takes at most `ANSWER_SECONDS` and waits for a lock at most `LOCK_SECONDS`: the server ensures
            it. A silent connection is cut by this side a little later, whatever the server does
Sent        a commit of submissions waits for the server twice: for what it reads, once it has its locks, and for the
            commit of what it writes. Other statements are sent without waiting for their answers (pipeline mode)
Lost        after a lost connection one call fails with `StoreError`, and the next reconnects. It is then unknown
            whether a commit in progress took place: sending the same ids again is safe either way

How the ids of an epoch are stored without a trace of the order in which they came:

Tables      `seen_<survey>_<epoch>` has the ids in sorted runs (`batches.py`), until the epoch closes;
            `report_<survey>_<epoch>` has id and answers of kept reports, until they are dropped
Numbers     PostgreSQL numbers the last change of a row (xmin). A row holds many submissions, and the number does not
            say which of them came then
Once        adding holds the epoch's row, so nobody else looks for ids meanwhile; workers take turns
Earlier     PostgreSQL keeps a row's earlier state until it is vacuumed, which `tidy` does, and its bytes in the page
            until the space is used again. The pool, which each commit changes, is its own partition, and `tidy`
            rewrites it; kept reports are rewritten when their epoch has closed
"""

from __future__ import annotations

import os
import re
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from deniable._extras import require
from deniable.collect.stores.base import (
    CLOSED,
    OPEN,
    Added,
    Batch,
    Rejections,
    StorageFull,
    StoreError,
    TakenError,
    VersionError,
)
from deniable.collect.stores.batches import (
    POOL,
    EpochGroup,
    Flags,
    RunTable,
    SortedRuns,
    StoredSurvey,
    keys,
    rows,
    select_runs,
)
from deniable.collect.stores.sql import TABLES, Place, Row, SqlStore, check_software, check_tables, make_tables
from deniable.collect.stores.sqlite import SqliteStore, write_copy
from deniable.collect.wire import ID_BYTES
from deniable.protocols.reports import Bytes

CONNECT_SECONDS = 10
ANSWER_SECONDS, LOCK_SECONDS = 20.0, 10.0
SILENT_SECONDS = 3.0
"""Extra seconds to wait for an answer before the connection is cut."""
VACUUM_SECONDS = 600.0
_LOCK = 0x64656E69
"""Advisory lock, held while tables are created; with 1 while a worker vacuums, and with 2 while somebody writes."""
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
"""Each statement sees what was committed before it: the holder of an epoch sees the ids of the previous holder."""
_SHARE, _VERSIONS = f"SELECT pg_advisory_xact_lock_shared({_LOCK}, 2)", "SELECT * FROM schema_version"
_WRITE = f"{_BEGIN}; {_SHARE}; {_VERSIONS}"
_EXCLUSIVE = f"{_BEGIN}; SELECT pg_advisory_xact_lock({_LOCK}, 2)"
BACKUPS = 5
"""How often a copy is restarted because an epoch closed meanwhile."""
PATIENCE = 1000
"""Milliseconds to wait for readers of a table that is to be dropped or rewritten."""
SHORTLY = 0.1
"""Seconds to wait for users of a table that is to be rewritten: later users queue behind."""
REWRITTEN = 1 << 28
"""Maximum size, in bytes, of a table that is rewritten: everybody waits meanwhile."""
_OWN_VERSION = "SELECT pg_current_xact_id()::xid::text"
"""The number of this transaction; the rows that it writes have this number."""
_BLOCKS = "SELECT block, n, deleted, counts FROM tally WHERE survey = ? AND epoch = ? AND shard = ?"
_FIRST_BLOCK = f"{_BLOCKS} AND block = 0"
_DISK_FULL, _NO_TABLE, _TAKEN = "53100", "42P01", "55P03"

_TABLES = """
    CREATE TABLE survey (
        key INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE,
        canonical BYTEA NOT NULL, state TEXT NOT NULL
    );
    CREATE TABLE epoch (
        survey INTEGER NOT NULL, epoch BIGINT NOT NULL, state TEXT NOT NULL, sha256 TEXT,
        forget BIGINT, reopened INTEGER NOT NULL, dropped INTEGER NOT NULL, PRIMARY KEY (survey, epoch)
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
    CREATE TABLE token (
        sha256 TEXT PRIMARY KEY, role TEXT NOT NULL, label TEXT NOT NULL, survey TEXT, expires BIGINT
    );
    CREATE TABLE clock (name TEXT PRIMARY KEY, moment BIGINT NOT NULL)
"""
STATEMENTS = _TABLES.split(";")
_KNOWN = f"state = '{OPEN}' OR forget IS NOT NULL"
"""The epochs whose ids are stored."""
OF_SURVEYS = ("survey", "epoch", "duplicate", "rejected")


class MissingTableError(StoreError):
    """The table does not exist, or no longer exists."""


class PostgresStore(SqlStore):
    """The store in a PostgreSQL database; tables are created if it has none.

    A read-only store is never created or changed. `content` is a copy that a new store is filled with.
    """

    locking, sharing = "FOR UPDATE", "FOR SHARE"
    reconnects = True

    def __init__(self, url: str, shard: int = 0, read_only: bool = False, content: SqliteStore | None = None) -> None:
        super().__init__(shard)
        self._url, self._read_only = url, read_only
        self._psycopg = require("psycopg", "postgres")
        self._open: Any = None
        self._pipeline: Any = None
        """While submissions are added."""
        self._ahead: dict[str, tuple[tuple[Any, ...], list[Row]]] = {}
        """Prefetched answers: statements with their parameters and rows."""
        self._anew: dict[str, int | None] = {}
        """Tables that were rewritten, and their last change before that."""
        self._seconds = ANSWER_SECONDS + SILENT_SECONDS
        try:
            if not read_only:
                self._make_store(content)
            check_tables(self._versions())
            if not read_only:
                # Work that another version has begun is left for that version to finish.
                with suppress(VersionError):
                    self._sweep()
        except BaseException:
            self.close()
            raise

    def _make_store(self, content: SqliteStore | None) -> None:
        """Create the tables unless they exist; with content, all or nothing of it."""
        with self._transaction(_BEGIN):
            self._query(f"SELECT pg_advisory_xact_lock({_LOCK})")
            if not self._has("schema_version"):
                make_tables(STATEMENTS, self._query)
                if content is not None:
                    self._fill(content)
            elif content is not None:
                raise StoreError("there is a store in this PostgreSQL database already: name another database")

    # -- statements --------------------------------------------------------------------------------

    @property
    def _connection(self) -> Any:
        if self._open is None or self._open.closed:
            self._open = self._psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=CONNECT_SECONDS,
                application_name="deniable",
                keepalives_idle=10,
                keepalives_interval=5,
                keepalives_count=3,
                tcp_user_timeout=int(1000 * (ANSWER_SECONDS + SILENT_SECONDS)),
            )
            self._limit(ANSWER_SECONDS)
        return self._open

    def _limit(self, seconds: float, lock: float | None = None) -> None:
        """How long a statement may take from now on, and how long it may wait for others."""
        limits = {"statement_timeout": seconds, "lock_timeout": LOCK_SECONDS if lock is None else lock}
        limits["idle_in_transaction_session_timeout"] = seconds
        self._seconds = seconds + SILENT_SECONDS
        changes = [f"set_config('{name}', '{1000 * value:.0f}', false)" for name, value in limits.items()]
        if self._read_only:
            changes.append("set_config('default_transaction_read_only', 'on', false)")
        self._query(f"SELECT {', '.join(changes)}")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._psycopg.Error as error:
            if self._open is not None and self._open.broken:
                self.close()
            raise self._translated(error) from None

    def _translated(self, error: Any) -> StoreError:
        return _coded(self._named(error), error.sqlstate)

    def _named(self, error: Any) -> StoreError:
        if error.sqlstate == _DISK_FULL:
            return StorageFull("the PostgreSQL store is full: nothing of this was written; make room on its disk")
        if error.sqlstate == _NO_TABLE:
            self._runs.clear()
            return MissingTableError("the PostgreSQL store misses a table: restore a backup")
        if error.sqlstate == _TAKEN:
            return TakenError("the PostgreSQL store is in use by others: try again")
        reason = without_password(self._url, " ".join(str(error).split()))
        return StoreError(f"the PostgreSQL store cannot be used: {reason or type(error).__name__}")

    def _query(self, sql: str, *parameters: Any) -> list[Row]:
        given, known = self._ahead.pop(sql, ((), None))
        if known is not None and given == parameters:
            return known
        cursor = self._execute(sql, *parameters)
        self._wait()
        return cursor.fetchall() if cursor.description else []

    def _execute(self, sql: str, *parameters: Any) -> Any:
        """The cursor of a statement; in pipeline mode it has no answer before `_wait`."""
        with self._errors():
            connection = self._connection
            with DEADLINES.set(connection, self._seconds):
                cursor = connection.execute(_percent(sql), parameters or None, binary=True)
                if self._pipeline is not None:
                    _flush(connection)
                return cursor

    def _send(self, sql: str, *parameters: Any) -> None:
        self._execute(sql, *parameters)

    def _wait(self) -> None:
        """Wait until everything that was sent is answered."""
        if self._pipeline is not None:
            with self._errors(), DEADLINES.set(self._open, self._seconds):
                self._pipeline.sync()

    def _look_ahead(self, select: str, entry: StoredSurvey, epoch: int) -> None:
        """Ask for the state, which waits for locks, and then for what `_query` will be asked for next."""
        place = entry.key, epoch, self._shard
        version = _select_version(f"{entry.key}_{epoch}")
        sums = "LEFT JOIN tally t ON t.survey = ? AND t.epoch = ? AND t.shard = ? AND t.block = 0"
        state = self._execute(select, entry.key, epoch)
        rest = self._execute(
            f"SELECT ({version}), ({_OWN_VERSION}), block, n, deleted, counts FROM (SELECT) one {sums}", *place
        )
        self._wait()
        ((known, own, *block),) = rest.fetchall()
        self._ahead[select] = (entry.key, epoch), state.fetchall()
        self._ahead[version] = (), [] if known is None else [(known,)]
        self._ahead[_OWN_VERSION] = (), [(own,)]
        self._ahead[_FIRST_BLOCK] = place, [] if block[0] is None else [tuple(block)]

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[list[Row]]:
        """Begin with statements that are sent in one message; yields the rows of the last of them."""
        with self._errors():
            begun = self._connection
        try:
            with self._errors(), DEADLINES.set(begun, self._seconds):
                cursor = begun.execute(begin, prepare=False)
                while cursor.nextset():
                    pass
                found = cursor.fetchall() if cursor.description else []
            yield found
            if self._open is not begun:
                raise StoreError("the connection to PostgreSQL was lost in a transaction: nothing is known of it")
            self._query("COMMIT")
        except BaseException:
            self._undo(begun)
            raise

    def _undo(self, begun: Any) -> None:
        """Abandon the transaction of this connection."""
        for runs in self._runs.values():
            runs.undone()
        if self._open is begun:
            with suppress(StoreError):
                self._query("ROLLBACK")

    @contextmanager
    def _adding(self) -> Iterator[None]:
        with self._errors():
            begun, last_wait = self._connection, ExitStack()
            try:
                with last_wait, begun.pipeline() as self._pipeline:
                    try:
                        self._send(_BEGIN)
                        self._send(_SHARE)
                        versions = self._execute(_VERSIONS)
                        yield
                        with DEADLINES.set(begun, self._seconds):
                            found = versions.fetchall()
                        check_software(found[0])
                        self._send("COMMIT")
                    finally:
                        # Leaving the context waits for all answers.
                        last_wait.enter_context(DEADLINES.set(begun, self._seconds))
            except BaseException:
                self._pipeline = None
                self._undo(begun)
                raise
            finally:
                self._pipeline = None
                self._ahead.clear()

    def add(self, batches: Sequence[Batch], rejected: Rejections | None = None) -> list[Added]:
        try:
            return super().add(batches, rejected)
        except MissingTableError:
            # Another process closed an epoch and dropped its table: what was known of it is forgotten now.
            return super().add(batches, rejected)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._transaction(_WRITE) as found:
            check_software(found[0])
            yield

    def _exclusive(self) -> Any:
        return self._transaction(_EXCLUSIVE)

    def _reading(self) -> Any:
        return self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """A transaction in which nobody else creates tables."""
        with self._writing():
            self._query(f"SELECT pg_advisory_xact_lock({_LOCK})")
            yield

    # -- ids ------------------------------------------------------------------------------------

    def _ready(self, entry: StoredSurvey, epoch: int) -> None:
        """Create the epoch's row and tables in their own transaction: creating tables must not wait for others' ids."""
        if (entry.key, epoch) in self._runs:
            return
        with self._locked():
            if self._query("SELECT state FROM survey WHERE key = ? FOR SHARE", entry.key) != [(OPEN,)]:
                return
            insert = "INSERT INTO epoch VALUES (?, ?, ?, NULL, NULL, 0, 0) ON CONFLICT DO NOTHING RETURNING epoch"
            if self._query(insert, entry.key, epoch, OPEN):
                self._make_tables_of(entry, epoch)
        table = ServerRuns(self._query, self._send, f"{entry.key}_{epoch}")
        runs = self._begin_runs((entry.key, epoch), table)
        known = self._runs.copy()
        try:
            with self._reading():
                runs.catch_up()  # before anybody has to wait
        except MissingTableError:
            # The epoch is closed, and there is nothing to read. What is known of other epochs stays.
            del known[entry.key, epoch]
            self._runs.update(known)

    def _make_tables_of(self, entry: StoredSurvey, epoch: int) -> None:
        seen, place = _seen(entry, epoch), f"{entry.key}_{epoch}"
        columns = "run BIGINT NOT NULL, first BYTEA NOT NULL, ids BYTEA NOT NULL, PRIMARY KEY (run, first)"
        self._query(f"CREATE TABLE {seen} ({columns}) PARTITION BY LIST (run)")
        self._make(f"pool_{place}", f"PARTITION OF {seen} FOR VALUES IN ({POOL})", "ids")
        self._make(f"run_{place}", f"PARTITION OF {seen} DEFAULT", "ids")
        if entry.keeps:
            columns = "(first BYTEA PRIMARY KEY, bits INTEGER NOT NULL, records BYTEA NOT NULL)"
            self._make(_report(entry, epoch), columns, "records")
            self._query(f"INSERT INTO {_report(entry, epoch)} VALUES (?, 0, '')", bytes(ID_BYTES))

    def _reopened(self, entry: StoredSurvey, epoch: int) -> None:
        if not self._has(_seen(entry, epoch)):
            self._make_tables_of(entry, epoch)
        elif entry.keeps:
            self._query(f"COMMENT ON TABLE {_report(entry, epoch)} IS NULL")

    def _make(self, table: str, columns: str, content: str) -> None:
        # Never compressed, and outside of the row only if it does not fit into a page.
        self._query(f"CREATE TABLE {table} {columns} WITH (toast_tuple_target = 8160)")
        self._query(f"ALTER TABLE {table} ALTER {content} SET STORAGE EXTERNAL")

    def _state(self, entry: StoredSurvey, epoch: int) -> str:
        join = "survey s JOIN epoch e ON e.survey = s.key"
        locks = "FOR SHARE OF s FOR UPDATE OF e"
        select = f"SELECT s.state, e.state FROM {join} WHERE s.key = ? AND e.epoch = ? {locks}"
        if self._pipeline is not None and (entry.key, epoch) in self._runs:
            self._look_ahead(select, entry, epoch)
        return OPEN if self._query(select, entry.key, epoch) == [(OPEN, OPEN)] else CLOSED

    def _claim(self, entry: StoredSurvey, group: EpochGroup) -> Flags:
        runs = self._runs.get((entry.key, group.epoch))
        if runs is None:  # reopened since `_ready`
            raise MissingTableError("the ids of an epoch are not known yet: try again")
        return runs.claim(keys(group.ids))

    def _report_rows(self, entry: StoredSurvey, epoch: int, ids: Bytes) -> list[Row]:
        table = _report(entry, epoch)
        row_of = f"SELECT t.first FROM {table} t WHERE t.first <= given.id ORDER BY t.first DESC LIMIT 1"
        wanted = f"ARRAY(SELECT DISTINCT ({row_of}) FROM unnest(?b) given (id))"
        select = f"SELECT first, bits, records FROM {table} WHERE first = ANY({wanted}) ORDER BY first"
        return self._query(select, rows(ids))

    def _put_report_rows(self, entry: StoredSurvey, epoch: int, content: Sequence[Row]) -> None:
        insert = f"INSERT INTO {_report(entry, epoch)} SELECT * FROM unnest(?b, ?::int[], ?b)"
        change = "ON CONFLICT (first) DO UPDATE SET bits = excluded.bits, records = excluded.records"
        self._send(f"{insert} {change}", *(list(column) for column in zip(*content, strict=True)))

    def tidy(self) -> bool:
        """Vacuum the earlier states of rows of ids and sums. One worker at a time."""
        if self._query(f"SELECT pg_try_advisory_lock({_LOCK}, 1)") != [(True,)]:
            return True  # another worker is doing it
        skipped: list[tuple[str, str]] = []

        def note(notice: Any) -> None:
            skipped.append((notice.sqlstate, notice.message_primary))

        # PostgreSQL raises no error for a table that may not be vacuumed.
        connection = self._connection
        connection.add_notice_handler(note)
        try:
            self._limit(VACUUM_SECONDS)
            self._query("SET vacuum_cost_delay = 1")  # milliseconds of rest between some pages
            for table in self._open_tables():
                # A table may be gone by now.
                with suppress(MissingTableError):
                    self._query(f"VACUUM (TRUNCATE FALSE) {table}")
            for table in self._tables_of("pool", _KNOWN):
                self._write_anew(table)
        finally:
            if self._open is connection:
                connection.remove_notice_handler(note)
                self._limit(ANSWER_SECONDS)
                self._query(f"SELECT pg_advisory_unlock({_LOCK}, 1)")
        for code, message in skipped:
            raise _coded(StoreError(f"PostgreSQL does not vacuum the store: {message}"), code)
        return True

    def _open_tables(self) -> list[str]:
        """The tables that submissions and deletions change, and the clock's.

        Old times next to transaction numbers would show when others came.
        """
        of_epochs = [table for kind in ("run", "pool", "report") for table in self._tables_of(kind, _KNOWN)]
        return ["tally", "clock", *OF_SURVEYS, *of_epochs]

    def _tables_of(self, kind: str, which: str) -> list[str]:
        """The tables of one kind that belong to certain epochs."""
        table = f"to_regclass('{kind}_' || survey || '_' || epoch)"
        select = f"SELECT {table}::text FROM epoch WHERE ({which}) AND {table} IS NOT NULL"
        return [name for (name,) in self._query(select)]

    def _write_anew(self, table: str) -> None:
        """Leave none of the bytes that its rows had before; if others use it, try again later."""
        with suppress(MissingTableError, TakenError):
            ((version,),) = self._query(f"SELECT MAX(xmin::text::bigint) FROM {table}")
            if self._anew.get(table) != version:
                self._limit(VACUUM_SECONDS, lock=SHORTLY)
                self._query(f"VACUUM (FULL) {table}")
                self._anew[table] = version

    def _sweep(self) -> None:
        super()._sweep()
        # Only once: a comment on the table records it.
        table = "to_regclass('report_' || survey || '_' || epoch)"
        for kept in self._tables_of("report", f"state = '{CLOSED}' AND obj_description({table}, 'pg_class') IS NULL"):
            self._write_anew(kept)
            self._limit(ANSWER_SECONDS)
            if kept in self._anew:
                with suppress(MissingTableError):
                    self._query(f"COMMENT ON TABLE {kept} IS 'written anew'")

    # -- forgetting --------------------------------------------------------------------------------

    def _left(self, table: str) -> str:
        return f"(to_regclass('{table}_' || e.survey || '_' || e.epoch) IS NOT NULL)"

    def _drop(self, table: str, key: int, epoch: int) -> None:
        # A table that is being read, for example by a backup, is dropped by a later sweep.
        with suppress(TakenError), self._writing():
            self._query(f"SET LOCAL lock_timeout = {PATIENCE}")
            self._query(f"DROP TABLE IF EXISTS {table}_{key}_{epoch}")

    def delete_survey(self, fingerprint: str) -> None:
        super().delete_survey(fingerprint)
        self._limit(ANSWER_SECONDS, lock=PATIENCE / 1000)
        try:
            for table in ("tally", *OF_SURVEYS):
                # PostgreSQL leaves the bytes of a deleted row in its page. A rewritten table has none of them.
                ((size,),) = self._query("SELECT pg_total_relation_size(?::regclass)", table)
                with suppress(TakenError):
                    self._query(f"VACUUM {'(FULL)' if size < REWRITTEN else ''} {table}")
        finally:
            self._limit(ANSWER_SECONDS)

    # -- reading -----------------------------------------------------------------------------------

    def _has(self, table: str) -> bool:
        return self._query("SELECT to_regclass(?) IS NOT NULL", table) == [(True,)]

    def _reports_in(self, entry: StoredSurvey, epoch: int) -> str | None:
        table = _report(entry, epoch)
        return f"{table} WHERE TRUE" if self._has(table) else None

    def _remembered(self, entry: StoredSurvey, epoch: int) -> int:
        return self._bytes(_seen(entry, epoch), "ids") // ID_BYTES

    def _kept(self, entry: StoredSurvey, epoch: int) -> int:
        return self._bytes(_report(entry, epoch), "records") // (ID_BYTES + entry.counter.width)

    def _bytes(self, table: str, column: str) -> int:
        if not self._has(table):
            return 0
        return int(self._query(f"SELECT COALESCE(SUM(length({column})), 0) FROM {table}")[0][0])

    # -- sums --------------------------------------------------------------------------------------

    def _blocks(self, place: Place, blocks: list[int]) -> list[Row]:
        # Adding and deleting hold the epoch, so nobody else changes its sums.
        found = self._query(_FIRST_BLOCK, *place)
        if len(blocks) > 1:
            found += self._query(f"{_BLOCKS} AND block > 0 AND block = ANY(?)", *place, blocks)
        return found

    def _put(self, place: Place, blocks: Sequence[Row]) -> None:
        insert = "INSERT INTO tally SELECT ?, ?, ?, * FROM unnest(?::int[], ?::bigint[], ?::bigint[], ?b)"
        change = "SET n = excluded.n, deleted = excluded.deleted, counts = excluded.counts"
        columns = [list(column) for column in zip(*blocks, strict=True)]
        self._send(f"{insert} ON CONFLICT (survey, epoch, shard, block) DO UPDATE {change}", *place, *columns)

    # -- care --------------------------------------------------------------------------------------

    def _clock(self) -> float:
        return float(self._query("SELECT extract(epoch FROM clock_timestamp())::float8")[0][0])

    def _damage(self, deep: bool) -> list[str]:
        """PostgreSQL has no check of its own that everyone may run; reading everything is the next best."""
        found = []
        if self._query("SELECT current_setting('track_commit_timestamp')") != [("off",)]:
            found.append("PostgreSQL notes the time of every commit: turn track_commit_timestamp off")
        try:
            self.tidy()
        except StoreError as error:
            found.append(f"what is gone cannot be removed from its files ({error.code}): {error}")
        return found

    def backup(self, path: Path) -> None:
        for _ in range(BACKUPS):
            # An epoch that closes meanwhile takes its table along.
            with suppress(MissingTableError), self._reading():
                write_copy(Path(path), {table: self._rows(table) for table in TABLES})
                return
        raise StoreError("epochs were closed during each attempt to copy the store: try again")

    def _fill(self, copy: SqliteStore) -> None:
        """Take over the contents of a copy, in the transaction that has created the tables."""
        with copy._reading():
            for table in TABLES:
                if table not in ("seen", "report"):
                    self._fill_table(table, copy)
            # The operator confirmed the clock of another machine, or at another time.
            self._query("DELETE FROM clock WHERE name = 'confirmed'")
            self._query("SELECT setval(pg_get_serial_sequence('survey', 'key'), MAX(key)) FROM survey")
            epochs = "SELECT epoch, state = ? OR forget IS NOT NULL FROM epoch WHERE survey = ?"
            for published in copy.surveys():
                entry = self._entry(published.fingerprint)
                for epoch, has_ids in self._query(epochs, OPEN, entry.key):
                    if has_ids or copy._kept(entry, epoch):
                        self._make_tables_of(entry, epoch)
                        self._fill_epoch(copy, entry, epoch, has_ids)

    def _fill_table(self, table: str, copy: SqliteStore) -> None:
        for some in copy.rows_of(table):
            into = f"{table} OVERRIDING SYSTEM VALUE" if table == "survey" else table
            with self._errors(), DEADLINES.set(self._connection, self._seconds), self._connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {into} VALUES ({', '.join(['%s'] * len(some[0]))})", some)

    def _fill_epoch(self, copy: SqliteStore, entry: StoredSurvey, epoch: int, has_ids: bool) -> None:
        runs = SortedRuns(ServerRuns(self._query, self._send, f"{entry.key}_{epoch}"))
        for ids in copy.ids_of(entry, epoch) if has_ids else ():
            if not runs.claim(ids).all():
                raise StoreError(f"the copy has ids of epoch {epoch} twice: it is damaged, use another")
        for batch in copy.reports(entry.survey.fingerprint, epoch, epoch):
            self._keep(entry, epoch, batch.ids, batch.answers)

    def _rows(self, table: str) -> Iterator[Row]:
        if table == "tally":
            places = "SELECT survey, epoch, shard FROM tally WHERE block = 0 ORDER BY survey, epoch, shard"
            for place in self._query(places):
                yield from self._query("SELECT * FROM tally WHERE survey = ? AND epoch = ? AND shard = ?", *place)
        elif table in ("seen", "report"):
            for published in self.surveys():
                entry = self._entry(published.fingerprint)
                kept = "" if table == "seen" else "AND dropped = 0"
                select = f"SELECT epoch FROM epoch WHERE survey = ? {kept} ORDER BY epoch"
                for (epoch,) in self._query(select, entry.key):
                    content = self._seen_rows if table == "seen" else self._report_table
                    yield from ((entry.key, epoch, *row) for row in content(entry, epoch))
        else:
            yield from self._query(f"SELECT * FROM {table} ORDER BY 1, 2")

    def _seen_rows(self, entry: StoredSurvey, epoch: int) -> Iterator[Row]:
        table = _seen(entry, epoch)
        runs = self._query(f"SELECT DISTINCT run FROM {table} ORDER BY run") if self._has(table) else []
        for (run,) in runs:
            yield from self._query(f"SELECT run, first, ids FROM {table} WHERE run = ? ORDER BY first", run)

    def _report_table(self, entry: StoredSurvey, epoch: int) -> Iterator[Row]:
        place, after = self._reports_in(entry, epoch), b""
        while place and (some := self._query(f"SELECT * FROM {place} AND first >= ? ORDER BY 1 LIMIT 1000", after)):
            yield from some
            after = some[-1][0] + b"\0"

    def size(self) -> int:
        return int(self._query("SELECT pg_database_size(current_database())")[0][0])

    def ping(self) -> None:
        select = "SELECT current_setting('transaction_read_only'), * FROM schema_version"
        ((read_only, *versions),) = self._query(select)
        if read_only != "off":
            raise StoreError("the PostgreSQL store takes no changes now: it is a standby, or read-only")
        check_software(tuple(versions))

    def close(self) -> None:
        for runs in self._runs.values():
            runs.undone()
        if self._open is not None:
            self._open.close()
            self._open = None


def _flush(connection: Any) -> None:
    """Hand over everything that was sent. In pipeline mode psycopg keeps what the system does not accept at once, for
    example megabytes of sums, and would then wait for the answer to bytes that were never sent."""
    server = connection.pgconn
    if not server.flush():
        return
    with selectors.DefaultSelector() as ready:
        ready.register(connection.fileno(), selectors.EVENT_READ | selectors.EVENT_WRITE)
        while server.flush():
            for _, events in ready.select():
                if events & selectors.EVENT_READ:
                    server.consume_input()


class Deadlines:
    """Cuts connections with an overdue answer: a silent one would keep its thread waiting for ever."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due: dict[object, tuple[float, Any]] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def set(self, connection: Any, seconds: float) -> Iterator[None]:
        """Inside this context, cut the connection after `seconds`."""
        key = object()
        with self._lock:
            self._due[key] = time.monotonic() + seconds, connection
            if self._thread is None or not self._thread.is_alive():  # also after a fork
                self._thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                del self._due[key]

    def _run(self) -> None:
        while True:
            time.sleep(0.2)
            with self._lock:  # so that nobody closes the connection meanwhile
                for due, connection in self._due.values():
                    if due < time.monotonic():
                        # The waiting thread sees that the other side has left.
                        with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as own:
                            own.shutdown(socket.SHUT_RDWR)


DEADLINES = Deadlines()


class ServerRuns(RunTable):
    """Runs in a table: rows of about a page, and a pool that fits on one page together with its earlier state.

    Partitions are used by their own names, which is faster.
    """

    pool, chunk, split, largest = 120, 480, 1 << 14, 1 << 13

    def __init__(self, query: Callable[..., list[Row]], send: Callable[..., None], place: str) -> None:
        self._query, self._send = query, send
        self._place, self._pool, self._runs = place, f"pool_{place}", f"run_{place}"

    def version(self) -> object:
        return self._query(_select_version(self._place))

    def runs(self) -> set[int]:
        return {run for (run,) in self._query(select_runs(self._runs))}

    def read(self, run: int) -> list[bytes]:
        table = self._pool if run == POOL else self._runs
        return [raw for (raw,) in self._query(f"SELECT ids FROM {table} WHERE run = ? ORDER BY first", run)]

    def known(self, pairs: Sequence[tuple[bytes, int]]) -> set[bytes]:
        select = f"SELECT ids FROM {self._runs} t WHERE t.run = given.run AND first <= given.id"
        row = f"LATERAL ({select} ORDER BY first DESC LIMIT 1) row"
        held = f"FROM unnest(?b, ?::bigint[]) given (id, run), {row} WHERE position(given.id IN row.ids) > 0"
        ids, runs = [id for id, _ in pairs], [run for _, run in pairs]
        return {id for (id,) in self._query(f"SELECT given.id {held}", ids, runs)}

    def drop(self, run: int) -> None:
        self._send(f"DELETE FROM {self._runs} WHERE run = ?", run)

    def write(self, run: int, chunks: Iterable[tuple[bytes, bytes]]) -> None:
        columns = [list(column) for column in zip(*chunks, strict=True)]
        self._send(f"INSERT INTO {self._runs} SELECT ?, * FROM unnest(?b, ?b)", run, *columns)

    def write_pool(self, ids: bytes) -> object:
        change = "ON CONFLICT (run, first) DO UPDATE SET ids = excluded.ids"
        self._send(f"INSERT INTO {self._pool} VALUES ({POOL}, '', ?) {change}", ids)
        return self._query(_OWN_VERSION)


def _coded(failure: StoreError, code: str | None) -> StoreError:
    failure.code = code
    return failure


def _seen(entry: StoredSurvey, epoch: int) -> str:
    return f"seen_{entry.key}_{epoch}"


def _select_version(place: str) -> str:
    # Every change writes the pool, and a row has the number of the transaction that wrote it.
    return f"SELECT xmin::text FROM pool_{place} WHERE run = {POOL}"


def _report(entry: StoredSurvey, epoch: int) -> str:
    return f"report_{entry.key}_{epoch}"


@cache
def _percent(sql: str) -> str:
    """Parameters in psycopg's form: `?` is any, `?b` an array of bytes."""
    return sql.replace("?b", "%b::bytea[]").replace("?", "%s")


def without_password(url: str, text: str) -> str:
    """The message without the URL's password; no message if that cannot be ensured."""
    user, _, _ = url.partition("://")[2].rpartition("@")
    secret = user.partition(":")[2]
    words = {secret, unquote(secret), *re.split(r"[:/@?#]", secret)}
    words |= {value for key, value in parse_qsl(urlsplit(url).query) if "password" in key}
    for word in sorted(words - {""}, key=len, reverse=True):
        if word in text and len(word) < 4:
            return "the reason is not shown, because it repeats a part of the password"
        text = text.replace(word, "***")
    return text

"""A store in one SQLite file: the embedded default.

Durable     write-ahead log, synchronous FULL: a commit is on the disk before `add` returns
Writers     one at a time (BEGIN IMMEDIATE); others wait up to half a minute. Readers wait for nobody
Ids         lie in sorted runs (`batches.py`), kept reports among those whose ids begin alike
Forgetting  dropped ids and answers are overwritten (secure_delete)
Order       the log holds recent commits in their order until `tidy` empties it, as far as readers allow
Private     the file is readable by its owner only
Full        a service keeps a reserve on the disk (`reserve.py`), which is released when there is no room: the store can
            still be opened, its log written back and an epoch closed. Nothing is added until the reserve is back
Copies      a copy of any store is a SQLite file of this form, verified, that appears whole or not at all
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from deniable import __version__
from deniable._files import atomic_path
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
    MERGED,
    POOL,
    EpochGroup,
    Flags,
    Keys,
    RunTable,
    StoredSurvey,
    chunks,
    joined,
    keys,
    rows,
    select_runs,
)
from deniable.collect.stores.reserve import Reserve
from deniable.collect.stores.sql import Place, Row, SqlStore, check_software, check_tables, make_tables
from deniable.collect.wire import ID_BYTES
from deniable.protocols.reports import Bytes

BUSY_SECONDS = 30.0
LONGEST = 1 << 12
"""Maximum number of rows per statement."""
PATIENCE = 250
"""Milliseconds to wait for others if the work can be done next time."""
RESERVE = 1 << 20
"""Free bytes that the disk of a writable store must have."""
FORGOTTEN = 64
"""Rows of ids or reports dropped in one transaction, so that ingest can go on in between."""

_SETTINGS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -65536",
    # Random ids touch many pages; a longer log writes each back less often.
    "PRAGMA wal_autocheckpoint = 8192",
)
_EPOCH = "survey = ? AND epoch = ?"

_TABLES = """
    CREATE TABLE survey (
        key INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, canonical BLOB NOT NULL, state TEXT NOT NULL
    );
    CREATE TABLE epoch (
        survey INTEGER NOT NULL, epoch INTEGER NOT NULL, state TEXT NOT NULL, sha256 TEXT,
        forget INTEGER, reopened INTEGER NOT NULL, dropped INTEGER NOT NULL, PRIMARY KEY (survey, epoch)
    ) WITHOUT ROWID;
    CREATE TABLE seen (
        survey INTEGER NOT NULL, epoch INTEGER NOT NULL, run INTEGER NOT NULL, first BLOB NOT NULL, ids BLOB NOT NULL,
        PRIMARY KEY (survey, epoch, run, first)
    ) WITHOUT ROWID;
    CREATE TABLE report (
        survey INTEGER NOT NULL, epoch INTEGER NOT NULL, first BLOB NOT NULL, bits INTEGER NOT NULL,
        records BLOB NOT NULL, PRIMARY KEY (survey, epoch, first)
    ) WITHOUT ROWID;
    CREATE TABLE tally (
        survey INTEGER NOT NULL, epoch INTEGER NOT NULL, shard INTEGER NOT NULL, block INTEGER NOT NULL,
        n INTEGER NOT NULL, deleted INTEGER NOT NULL, counts BLOB NOT NULL, PRIMARY KEY (survey, epoch, shard, block)
    ) WITHOUT ROWID;
    CREATE TABLE duplicate (
        survey INTEGER NOT NULL, shard INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (survey, shard)
    ) WITHOUT ROWID;
    CREATE TABLE rejected (
        survey INTEGER NOT NULL, day INTEGER NOT NULL, reason TEXT NOT NULL, shard INTEGER NOT NULL,
        n INTEGER NOT NULL, PRIMARY KEY (survey, day, reason, shard)
    ) WITHOUT ROWID;
    CREATE TABLE token (
        sha256 TEXT PRIMARY KEY, role TEXT NOT NULL, label TEXT NOT NULL, survey TEXT, expires INTEGER
    ) WITHOUT ROWID;
    CREATE TABLE clock (name TEXT PRIMARY KEY, moment INTEGER NOT NULL) WITHOUT ROWID
"""
STATEMENTS = _TABLES.split(";")


class SqliteStore(SqlStore):
    """The store in a file, which is created if it is new; with `read_only` it is never created or changed."""

    def __init__(self, path: str | Path, shard: int = 0, read_only: bool = False) -> None:
        super().__init__(shard)
        self._path = Path(path)
        self._reserve, self._reserving = Reserve(self._path), False
        held = self._reserve.held
        try:
            self._open_file(read_only)
        except StorageFull:
            if not held:
                raise
            self._open_file(read_only)  # the reserve was released, and there is room for the log now

    def _open_file(self, read_only: bool) -> None:
        with self._errors():
            if read_only:
                self._file = os.stat(self._path).st_ino
                self._connect(f"{self._path.absolute().as_uri()}?mode=ro", self._check_tables)
                return
            # Created here, because SQLite would let everyone read it; its log takes the mode of the file. Only a new
            # file is touched: closing a descriptor of a file drops the locks that this process has on it, those of its
            # other connections too, and the next process to leave would then delete the log under them.
            with suppress(FileExistsError):
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._file = os.stat(self._path).st_ino
            self._connect(self._path.absolute().as_uri(), self._prepare)

    def _connect(self, uri: str, prepare: Callable[[], None]) -> None:
        self._connection = sqlite3.connect(
            uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        if self._tables():
            self._check_tables()
        self._wal()
        for setting in _SETTINGS:
            self._connection.execute(setting)
        # An existing store is not written: readers open it while another process holds the lock.
        if not self._tables():
            with self._exclusive():
                if not self._tables():
                    make_tables(STATEMENTS, self._query)
        self._check_tables()
        # Work that another version has begun is left for that version to finish.
        with suppress(VersionError):
            super()._sweep()

    def _check_tables(self) -> None:
        if not self._tables():
            raise StoreError(f"there is no store in {str(self._path)!r}")
        check_tables(self._versions())

    def _tables(self) -> set[str]:
        """The names of the tables; raises StoreError for another program's database, before it is changed."""
        tables = {name for (name,) in self._query("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if tables and "schema_version" not in tables:
            raise StoreError(f"{str(self._path)!r} is the database of something else: name another file")
        return tables

    def _wal(self) -> None:
        """Switch to a write-ahead log; SQLite may report "busy" to two processes that open a new file at once."""
        give_up = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                if self._connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal":
                    return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                    raise
            else:
                raise StoreError(f"{str(self._path)!r} lies where SQLite cannot keep its log: use a local disk")
            time.sleep(0.01)

    # -- statements --------------------------------------------------------------------------------

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            failure = self._translated(error)
            failure.code = getattr(error, "sqlite_errorname", None)
            raise failure from None
        except OSError as error:
            raise StoreError(f"{str(self._path)!r} cannot be opened as a store: {error.strerror}") from None

    def _translated(self, error: sqlite3.Error) -> StoreError:
        name = repr(str(self._path))
        # The low byte of a code is its kind.
        kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if kind == sqlite3.SQLITE_FULL or (kind in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and self._no_room()):
            self._reserve.give_up()
            return StorageFull(f"the store {name} is full: nothing of this was written; make room on its disk")
        if kind == sqlite3.SQLITE_BUSY:
            return TakenError(f"the store {name} is held by another process: try again")
        if kind in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return StoreError(f"{name} is damaged or not a database ({error}): restore a backup")
        return StoreError(f"the store {name} cannot be used: {error}")

    def _no_room(self, wanted: int = 1 << 16) -> bool:
        with suppress(OSError):
            disk = os.statvfs(self._path.parent)
            return disk.f_bavail * disk.f_frsize < wanted
        return False

    def _query(self, sql: str, *parameters: Any) -> list[Row]:
        with self._errors():
            return self._connection.execute(sql, parameters).fetchall()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self._query(begin)
        try:
            yield
            self._query("COMMIT")
        except BaseException:
            for runs in self._runs.values():
                runs.undone()
            # Some errors have already rolled it back.
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._exclusive():
            check_software(self._versions())
            yield

    def _exclusive(self) -> Any:
        return self._transaction("BEGIN IMMEDIATE")

    def _reading(self) -> Any:
        return self._transaction("BEGIN")

    # -- ids ---------------------------------------------------------------------------------------

    def _state(self, entry: StoredSurvey, epoch: int) -> str:
        join = "survey s LEFT JOIN epoch e ON e.survey = s.key AND e.epoch = ?"
        ((survey, state),) = self._query(f"SELECT s.state, e.state FROM {join} WHERE s.key = ?", epoch, entry.key)
        if survey == OPEN and state is None:
            self._query("INSERT INTO epoch VALUES (?, ?, ?, NULL, NULL, 0, 0)", entry.key, epoch, OPEN)
            return OPEN
        return CLOSED if survey != OPEN else str(state)

    def _claim(self, entry: StoredSurvey, group: EpochGroup) -> Flags:
        place = entry.key, group.epoch
        if place not in self._runs:
            self._begin_runs(place, FileRuns(self._query, place))
        return self._runs[place].claim(keys(group.ids))

    def _reports_in(self, entry: StoredSurvey, epoch: int) -> str:
        return f"report WHERE survey = {entry.key} AND epoch = {epoch}"

    def _report_rows(self, entry: StoredSurvey, epoch: int, ids: Bytes) -> list[Row]:
        place, found, end = self._reports_in(entry, epoch), list[Row](), 0
        select = f"SELECT first, bits, records FROM {place} AND first <= ? ORDER BY first DESC LIMIT 1"
        with self._errors():
            for id in rows(ids):
                if int.from_bytes(id, "big") >= end:
                    row = self._connection.execute(select, (id,)).fetchone() or (bytes(ID_BYTES), 0, b"")
                    end = int.from_bytes(row[0], "big") + (1 << 8 * ID_BYTES - row[1])
                    found.append(row)
        return found

    def _put_report_rows(self, entry: StoredSurvey, epoch: int, content: Sequence[Row]) -> None:
        self._insert("INSERT OR REPLACE INTO report", (entry.key, epoch), content)

    def _insert(self, into: str, place: tuple[int, ...], content: Sequence[Row]) -> None:
        """Insert rows that begin with a place.

        Many rows per statement: between two statements other threads of a service take their turn, and a group would
        wait for them once per row. Sizes are powers of four, so that few statements have to be compiled.
        """
        at = 0
        with self._errors():
            while at < len(content):
                size = min(LONGEST, 4 ** ((len(content) - at).bit_length() - 1 >> 1))
                some = content[at : at + size]
                width = len(some[0])
                values = ", ".join([f"({', '.join('?' * width)})"] * size)
                numbered = [f"?{i + 1}" for i in range(len(place))] + [f"column{i + 1}" for i in range(width)]
                statement = f"{into} SELECT {', '.join(numbered)} FROM (VALUES {values})"
                flat = [part for row in some for part in row]
                self._connection.execute(statement, [*place, *flat])
                at += size

    def _blocks(self, place: Place, blocks: list[int]) -> list[Row]:
        select = "SELECT block, n, deleted, counts FROM tally WHERE survey = ? AND epoch = ? AND shard = ?"
        if blocks == [0]:
            return self._query(f"{select} AND block = 0", *place)
        return self._query(f"{select} AND block IN (SELECT value FROM json_each(?))", *place, json.dumps(blocks))

    def _put(self, place: Place, blocks: Sequence[Row]) -> None:
        self._insert("INSERT OR REPLACE INTO tally", place, blocks)

    def _sweep(self) -> None:
        with suppress(TakenError):
            super()._sweep()
        self.tidy()

    def keep_reserve(self) -> None:
        self._reserving = True
        self._reserve.keep()

    def add(self, batches: Sequence[Batch], rejected: Rejections | None = None) -> list[Added]:
        if self._reserving and not self._reserve.held and not self._reserve.keep():
            raise self._full()
        return super().add(batches, rejected)

    def _full(self) -> StorageFull:
        return StorageFull(f"the disk of {str(self._path)!r} is full, and its reserve is given up: make room on it")

    def tidy(self) -> bool:
        if self._reserve.held:
            self._reserve.keep(self._log_size())
        # Not worth a long wait for readers: the log is emptied some time anyway.
        with self._waiting_shortly(), suppress(StoreError):
            ((busy, _, _),) = self._query("PRAGMA wal_checkpoint(TRUNCATE)")
            return not busy
        return False

    def impatient(self) -> AbstractContextManager[None]:
        return self._waiting_shortly()

    @contextmanager
    def _waiting_shortly(self) -> Iterator[None]:
        ((before,),) = self._query("PRAGMA busy_timeout")
        self._query(f"PRAGMA busy_timeout = {PATIENCE}")
        try:
            yield
        finally:
            self._query(f"PRAGMA busy_timeout = {before}")

    def _left(self, table: str) -> str:
        return f"EXISTS (SELECT 1 FROM {table} t WHERE t.survey = e.survey AND t.epoch = e.epoch)"

    def _drop(self, table: str, key: int, epoch: int) -> None:
        columns = {"seen": "(run, first)", "report": "first"}[table]
        some = f"SELECT {columns.strip('()')} FROM {table} WHERE {_EPOCH} LIMIT {FORGOTTEN}"
        delete = f"DELETE FROM {table} WHERE {_EPOCH} AND {columns} IN ({some})"
        more = True
        while more:
            with self._writing(), self._errors():
                more = self._connection.execute(delete, (key, epoch) * 2).rowcount == FORGOTTEN

    def _remembered(self, entry: StoredSurvey, epoch: int) -> int:
        select = f"SELECT COALESCE(SUM(LENGTH(ids)), 0) FROM seen WHERE {_EPOCH}"
        return int(self._query(select, entry.key, epoch)[0][0]) // ID_BYTES

    def _kept(self, entry: StoredSurvey, epoch: int) -> int:
        select = f"SELECT COALESCE(SUM(LENGTH(records)), 0) FROM {self._reports_in(entry, epoch)}"
        return int(self._query(select)[0][0]) // (ID_BYTES + entry.counter.width)

    # -- care --------------------------------------------------------------------------------------

    def _damage(self, deep: bool) -> list[str]:
        test = "integrity_check" if deep else "quick_check"
        found = [str(problem) for (problem,) in self._query(f"PRAGMA {test}")]
        return [] if found == ["ok"] else [f"SQLite reports: {problem}" for problem in found]

    def backup(self, path: Path) -> None:
        path = Path(path)
        if path.exists() and os.path.samefile(path, self._path):
            raise StoreError(f"{str(path)!r} is the store itself: name another file")
        with new_copy(path) as target, self._errors():
            self._connection.backup(target)

    def rows_of(self, table: str) -> Iterator[list[Row]]:
        """The rows of a table, some at a time."""
        with self._errors():
            cursor = self._connection.execute(f"SELECT * FROM {table}")
            while some := cursor.fetchmany(LONGEST):
                yield some

    def ids_of(self, entry: StoredSurvey, epoch: int) -> Iterator[Keys]:
        """The ids of an epoch in bounded parts, each ascending."""
        runs = self._query(f"SELECT DISTINCT run FROM seen WHERE {_EPOCH}", entry.key, epoch)
        for (run,) in runs:
            ids = keys(joined(FileRuns(self._query, (entry.key, epoch)).read(run), ID_BYTES))
            yield from (ids[at : at + MERGED] for at in range(0, len(ids), MERGED))

    def size(self) -> int:
        return self._path.stat().st_size + self._log_size()

    def _log_size(self) -> int:
        log = self._path.with_name(f"{self._path.name}-wal")
        return log.stat().st_size if log.exists() else 0

    def ping(self) -> None:
        with self._errors():
            if os.stat(self._path).st_ino != self._file:
                raise StoreError(f"{str(self._path)!r} was replaced while it was in use: restart the service")
        if self._reserving and not self._reserve.held and not self._reserve.keep():
            raise self._full()
        # One row may still fit when there is no room for a transaction of submissions.
        if self._no_room(RESERVE):
            raise StorageFull(
                f"the disk of {str(self._path)!r} has less than {RESERVE >> 20} MiB left: make room on it"
            )
        with self._writing():
            self._query("UPDATE schema_version SET version = version")

    def close(self) -> None:
        self._connection.close()


class FileRuns(RunTable):
    """Runs in a file: rows of some pages."""

    pool, chunk, split, largest = 1024, 1024, 1 << 14, 1 << 13

    def __init__(self, query: Callable[..., list[Row]], place: tuple[int, int]) -> None:
        self._query, self._place = query, place

    def version(self) -> object:
        return self._query("PRAGMA data_version")[0][0]

    def runs(self) -> set[int]:
        of_epoch = "survey = {} AND epoch = {}".format(*self._place)
        return {run for (run,) in self._query(select_runs("seen", of_epoch))}

    def read(self, run: int) -> list[bytes]:
        select = f"SELECT ids FROM seen WHERE {_EPOCH} AND run = ? ORDER BY first"
        return [raw for (raw,) in self._query(select, *self._place, run)]

    def known(self, pairs: Sequence[tuple[bytes, int]]) -> set[bytes]:
        return {id for id, run in pairs if self._holds(run, id)}

    def _holds(self, run: int, id: bytes) -> bool:
        select = f"SELECT ids FROM seen WHERE {_EPOCH} AND run = ? AND first <= ? ORDER BY first DESC LIMIT 1"
        for (raw,) in self._query(select, *self._place, run, id):
            at = raw.find(id)
            while at > 0 and at % ID_BYTES:
                at = raw.find(id, at + 1)
            return bool(at >= 0)
        return False

    def drop(self, run: int) -> None:
        self._query(f"DELETE FROM seen WHERE {_EPOCH} AND run = ?", *self._place, run)

    def write(self, run: int, chunks: Iterable[tuple[bytes, bytes]]) -> None:
        for first, raw in chunks:
            self._query("INSERT INTO seen VALUES (?, ?, ?, ?, ?)", *self._place, run, first, raw)

    def write_pool(self, ids: bytes) -> object:
        self.drop(POOL)
        self.write(POOL, chunks(np.frombuffer(ids, dtype=f"S{ID_BYTES}"), self.chunk))
        return self.version()


@contextmanager
def new_copy(path: Path) -> Iterator[sqlite3.Connection]:
    """A database to fill, which replaces `path` once it is complete, sound and on the disk.

    Raises StorageFull or StoreError if it cannot be written; then `path` is as it was.
    """
    try:
        with atomic_path(path, private=True) as partial:
            try:
                with closing(sqlite3.connect(partial, isolation_level=None)) as target:
                    target.execute("PRAGMA journal_mode = OFF")
                    target.execute("PRAGMA synchronous = OFF")
                    yield target
                    _check(target, path)
            finally:
                partial.with_name(partial.name + "-journal").unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as error:
        kind = StorageFull if _is_full(error) else StoreError
        raise kind(f"the copy {str(path)!r} could not be written: {_reason(error)}") from None


def restore_file(copy: SqliteStore, path: Path) -> None:
    """Make a store from a copy; it appears whole or not at all."""
    Reserve(path).give_up()
    for end in ("", "-wal", "-shm", "-journal"):
        # The log of another store would be read into this one.
        if os.path.lexists(f"{path}{end}"):
            raise StoreError(f"{f'{path}{end}'!r} is there already: name another file, or move it away")
    with new_copy(path) as target:
        copy._connection.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")
        # The operator confirmed the clock of another machine, or at another time.
        target.execute("DELETE FROM clock WHERE name = 'confirmed'")
        target.execute("UPDATE schema_version SET software = ?", (__version__,))


def write_copy(path: Path, tables: Mapping[str, Iterable[Row]]) -> None:
    """Write a copy that holds these rows, table by table."""
    with new_copy(path) as target:
        target.execute("BEGIN")
        make_tables(STATEMENTS, target.execute)
        for table, content in tables.items():
            _fill(target, table, content)
        target.execute("COMMIT")


def _fill(target: sqlite3.Connection, table: str, content: Iterable[Row]) -> None:
    width = len(target.execute(f"SELECT * FROM {table} LIMIT 0").description)
    target.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * width)})", content)


def _check(target: sqlite3.Connection, path: Path) -> None:
    # A copy of a file in WAL mode would need its log next to it.
    target.execute("PRAGMA journal_mode = DELETE")
    found = target.execute("PRAGMA integrity_check").fetchall()
    if found != [("ok",)]:
        raise StoreError(f"the copy {str(path)!r} was damaged while it was written: {found[0][0]}")


def _is_full(error: Exception) -> bool:
    return getattr(error, "errno", None) == errno.ENOSPC or getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)

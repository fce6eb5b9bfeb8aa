"""The ledger's file: SQLite, with one connection for each operation of a client, and none in between.

Durable    the journal is a separate file that is deleted at commit, synchronous EXTRA (FULL, and the directory is
           synced as well): what was committed survives power loss. One file to copy, nothing else between transactions
Erased     secure_delete: deleted data is overwritten with zeros in the file, and the journal is gone at commit.
           Leaving also rewrites the file, since the gaps would show how much was there. A file system that copies on
           write, or a backup, may still have the old bytes
Threads    transactions of a process take turns. A connection serves one transaction, or all of those made while
           somebody keeps it open (`kept_open`); between them it holds no lock, so a request may go out meanwhile
Processes  BEGIN IMMEDIATE: one writer at a time, the others wait
Forks      no connection is ever inherited: a fork waits until the running transaction of any thread has ended, and
           closes what is open
Replaced   a file that was deleted or restored from a copy meanwhile is reopened
Closed     anything that is not a sound ledger is refused in one sentence, and then nothing is drawn or sent
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deniable._files import sync_directory
from deniable.collect.client.records import LedgerError

APPLICATION = 0x444E4C31  # "DNL1"
VERSION = 1
PATIENCE = 30.0

SCHEMA = """
CREATE TABLE survey (
    fingerprint TEXT PRIMARY KEY, name TEXT NOT NULL, canonical BLOB, campaign TEXT, round INTEGER
) WITHOUT ROWID;
CREATE TABLE id_key (survey TEXT PRIMARY KEY, epoch INTEGER NOT NULL, key BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE submission (
    survey TEXT NOT NULL, epoch INTEGER NOT NULL, id BLOB, body BLOB, due REAL NOT NULL, id_until REAL NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'sent', 'dropped', 'withdrawn')), reason TEXT NOT NULL DEFAULT '',
    repeats INTEGER NOT NULL DEFAULT 1, PRIMARY KEY (survey, epoch)
) WITHOUT ROWID;
CREATE TABLE memo (
    survey TEXT NOT NULL, question TEXT NOT NULL, place INTEGER NOT NULL, value BLOB NOT NULL, drawn BLOB NOT NULL,
    PRIMARY KEY (survey, question, place), UNIQUE (survey, question, value)
) WITHOUT ROWID;
CREATE TABLE spending (
    survey TEXT NOT NULL, epoch INTEGER NOT NULL, owner TEXT NOT NULL, budget TEXT NOT NULL, epsilon TEXT NOT NULL,
    delta TEXT NOT NULL, PRIMARY KEY (survey, epoch)
) WITHOUT ROWID;
CREATE TABLE budget (
    owner TEXT NOT NULL, name TEXT NOT NULL, cap TEXT NOT NULL, delta TEXT NOT NULL, relation TEXT NOT NULL,
    PRIMARY KEY (owner, name)
) WITHOUT ROWID;
CREATE TABLE opt_out (survey TEXT PRIMARY KEY, chosen INTEGER NOT NULL) WITHOUT ROWID;
"""
RECORDED = """
CREATE TABLE IF NOT EXISTS recorded (
    survey TEXT NOT NULL, epoch INTEGER NOT NULL, question TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (survey, epoch, question)
) WITHOUT ROWID
"""
"""Created by the first recorded value: most ledgers never need it."""

_turn = threading.RLock()


class LedgerFile:
    """The file at a path, and at most one connection to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._keepers = 0
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        """Identity of the file that was opened last."""
        self._sound = False
        """Whether every page of it was read once."""
        _files.add(self)

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Let the transactions until the end of this block share one connection."""
        with _turn:
            self._keepers += 1
        try:
            yield
        finally:
            with _turn:
                self._keepers = max(0, self._keepers - 1)  # a fork has reset it to 0
                if not self._keepers:
                    self._close()

    @contextmanager
    def transaction(self, compact: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction that holds the write lock from its first statement: all of it is done, or nothing.

        Creates the file if it does not exist. `compact` rewrites the file after the commit. Raises LedgerError if the
        file is not a sound ledger or cannot be used.
        """
        with _turn, _explained(self.path):
            try:
                connection = self._begun()
                yield connection
                connection.execute("COMMIT")
                if compact:
                    with suppress(sqlite3.OperationalError):  # a full disk: the transaction is committed all the same
                        connection.execute("VACUUM")
            except BaseException:
                # After a failure nothing is assumed: the next transaction checks the file again.
                self._close()
                raise
            finally:
                if not self._keepers:
                    self._close()

    def _begun(self) -> sqlite3.Connection:
        """A connection to the file that the path names now, in a transaction."""
        if not os.path.lexists(self.path):
            _make(self.path)
        identity = _identity(self.path)
        if identity != self._identity:
            self._close()
            self._sound = False
        if self._connection is not None:
            self._connection.execute("BEGIN IMMEDIATE")
            return self._connection
        self._connection, self._identity = _connect(self.path), identity
        self._connection.execute("BEGIN IMMEDIATE")
        # Reading every page finds damage that a single statement would not meet.
        _prepare(self._connection, self.path, check=not self._sound)
        self._sound = True
        return self._connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            if connection.in_transaction:
                with suppress(sqlite3.Error):  # closing rolls it back as well
                    connection.execute("ROLLBACK")
            connection.close()

    @staticmethod
    def before_fork() -> None:
        """Close every connection, so that no child inherits one; except that of a thread that forks in the middle."""
        _turn.acquire()
        for file in list(_files):
            if file._connection is not None and not file._connection.in_transaction:
                file._close()

    @staticmethod
    def after_fork_in_child() -> None:
        """The threads that kept connections open stayed behind in the parent."""
        for file in list(_files):
            file._keepers = 0
        _turn.release()


_files: weakref.WeakSet[LedgerFile] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=LedgerFile.before_fork, after_in_parent=_turn.release, after_in_child=LedgerFile.after_fork_in_child
    )


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and number of the file at a path; None if there is no file."""
    try:
        known = os.stat(path)
    except OSError:
        return None
    return known.st_dev, known.st_ino


def _make(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return  # another process was first
    sync_directory(path.parent)


def _connect(path: Path) -> sqlite3.Connection:
    # Threads take turns, and a fork closes connections of other threads: `_turn` ensures it.
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
            # A store has such a journal, a ledger never: another mode would change the store, or wait for its users.
            raise LedgerError(_foreign(path))
        connection.execute("PRAGMA journal_mode = DELETE")
        for setting in (
            "synchronous = EXTRA",
            "secure_delete = ON",
            "temp_store = MEMORY",
            "trusted_schema = OFF",
            "cell_size_check = ON",
        ):
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, check: bool) -> None:
    """Write the tables into an empty file; any other file must be a sound ledger already, or raises LedgerError."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if tables == application == version == 0:
        for statement in filter(str.strip, SCHEMA.split(";")):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
        connection.execute("BEGIN IMMEDIATE")
        return
    if application != APPLICATION:
        raise LedgerError(_foreign(path))
    if version != VERSION:
        raise LedgerError(f"the ledger {str(path)!r} is of version {version}, unknown here: try a newer deniable")
    if os.name == "posix" and stat.S_IMODE(os.stat(path).st_mode) & 0o077:
        raise LedgerError(f"the ledger {str(path)!r} can be read by others: chmod 600 it")
    if check and connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise LedgerError(_damaged(path))


def _foreign(path: Path) -> str:
    return (
        f"{str(path)!r} is a database of something else (such as the store of a service), not a ledger: "
        "name another file"
    )


def _damaged(path: Path) -> str:
    return f"the ledger {str(path)!r} is damaged, or no ledger: restore a copy of it; until then nothing is answered"


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Errors of SQLite and of the system as one sentence."""
    try:
        yield
    except sqlite3.OperationalError as wrong:
        if "locked" in str(wrong):
            raise LedgerError(f"the ledger {str(path)!r} is in use by another process: try again later") from None
        raise LedgerError(f"the ledger {str(path)!r} cannot be used ({wrong}): nothing was recorded or sent") from None
    except sqlite3.DatabaseError:
        raise LedgerError(_damaged(path)) from None
    except FileNotFoundError:
        raise LedgerError(f"there is no ledger {str(path)!r}") from None

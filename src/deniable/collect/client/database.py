"""The ledger's file: SQLite, opened for each operation and closed after it.

Durable    journal in a file of its own that is deleted at commit, synchronous EXTRA (FULL, and the directory is synced
           as well): what was committed survives power loss. One file to copy, nothing beside it between operations
Erased     secure_delete: what is deleted is overwritten with zeros in the file, and the journal is gone at commit.
           Leaving also writes the file anew, since the gaps would tell how much was there. A file system that copies
           on write, or a backup, may still have the old bytes
Threads    a connection lives for one operation, in one thread; operations of a process take turns
Processes  BEGIN IMMEDIATE: one writer at a time, the others wait
Forks      no connection is ever inherited: a fork waits until the running operation of any thread has ended
Closed     whatever is not a sound ledger is refused in one sentence, and then nothing is drawn or sent
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from deniable.collect.client.errors import LedgerError

APPLICATION = 0x444E4C31  # "DNL1"
VERSION = 1
PATIENCE = 30.0

SCHEMA = """
CREATE TABLE survey (fingerprint TEXT PRIMARY KEY, name TEXT NOT NULL, canonical BLOB) WITHOUT ROWID;
CREATE TABLE id_key (survey TEXT PRIMARY KEY, epoch INTEGER NOT NULL, key BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE submission (
    survey TEXT NOT NULL, epoch INTEGER NOT NULL, id BLOB, body BLOB, due REAL NOT NULL, id_until REAL NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'sent', 'dropped', 'withdrawn')), reason TEXT NOT NULL DEFAULT '',
    repeats INTEGER NOT NULL DEFAULT 1, PRIMARY KEY (survey, epoch)
) WITHOUT ROWID;
CREATE TABLE memo (
    survey TEXT NOT NULL, question TEXT NOT NULL, place INTEGER NOT NULL, value BLOB NOT NULL, report BLOB NOT NULL,
    PRIMARY KEY (survey, question, place), UNIQUE (survey, question, value)
) WITHOUT ROWID;
CREATE TABLE spending (
    survey TEXT NOT NULL, epoch INTEGER NOT NULL, owner TEXT NOT NULL, budget TEXT NOT NULL, epsilon TEXT NOT NULL,
    PRIMARY KEY (survey, epoch)
) WITHOUT ROWID;
CREATE TABLE budget (owner TEXT NOT NULL, name TEXT NOT NULL, cap TEXT NOT NULL, PRIMARY KEY (owner, name))
    WITHOUT ROWID;
CREATE TABLE opt_out (survey TEXT PRIMARY KEY, chosen INTEGER NOT NULL) WITHOUT ROWID;
"""

_turn = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_turn.acquire, after_in_parent=_turn.release, after_in_child=_turn.release)


@contextmanager
def transaction(path: Path, check: bool = True, compact: bool = False) -> Iterator[sqlite3.Connection]:
    """One transaction that holds the write lock from its first statement: all of it is done, or nothing.

    `check` reads every page, to find damage that a single statement would not meet; `compact` writes the file anew
    after the commit.
    """
    with _turn, _explained(path):
        if not os.path.lexists(path):
            _make(path)
        with closing(_connect(path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                _prepare(connection, path, check)
                yield connection
                connection.execute("COMMIT")
                if compact:
                    with suppress(sqlite3.OperationalError):  # a full disk: what was asked for is committed
                        connection.execute("VACUUM")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise


def _make(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return  # another process was first
    _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    """Make a new name durable, where directories can be synced."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=PATIENCE, isolation_level=None)
    try:
        if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
            # A store has such a journal and a ledger never: to set another would change it, or wait for who uses it.
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
    """Write the tables into an empty file; anything else must be a sound ledger already."""
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
    """SQLite's and the system's complaints as one sentence."""
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

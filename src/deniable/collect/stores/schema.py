"""Tables of a store, with a version: a store of another version is refused.

survey      fingerprint, the published bytes, state; other tables use its short key
epoch       state, and the hash of the final tally once closed; it has a row from its first report on
seen        ids that were counted, with the answers where reports are kept. In PostgreSQL each epoch has tables of its
            own (`postgres_ids`), so that forgetting is dropping them; kept reports then move to `report`
            An id without answers in a survey that keeps them is of a report that was deleted
tally       counters of each survey, epoch and shard, in blocks; those of zeros have no row. Block 0 has one always, and
            in it how many submissions are in the sum and how many were deleted
duplicate   how many submissions came again, by survey and shard
rejected    how many were refused, by survey, day, reason and shard
token       SHA-256, role and label

No row of a submission has a number, a time or a place in a queue: each is found by its random id.
"""

from __future__ import annotations

from collections.abc import Callable

from deniable.collect.stores.base import StoreError

TABLES = ("survey", "epoch", "seen", "tally", "duplicate", "rejected", "token")

_SQLITE = """
    CREATE TABLE survey (
        key INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, canonical BLOB NOT NULL, state TEXT NOT NULL
    );
    CREATE TABLE epoch (
        survey INTEGER NOT NULL, epoch INTEGER NOT NULL, state TEXT NOT NULL, sha256 TEXT,
        PRIMARY KEY (survey, epoch)
    ) WITHOUT ROWID;
    CREATE TABLE seen (
        survey INTEGER NOT NULL, epoch INTEGER NOT NULL, id BLOB NOT NULL, answers BLOB,
        PRIMARY KEY (survey, epoch, id)
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
    CREATE TABLE token (sha256 TEXT PRIMARY KEY, role TEXT NOT NULL, label TEXT NOT NULL) WITHOUT ROWID
"""

_POSTGRES = """
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

VERSION = 3
STATEMENTS = {"sqlite": _SQLITE.split(";"), "postgres": _POSTGRES.split(";")}


def make(dialect: str, version: int, run: Callable[[str], object]) -> None:
    """Make the tables where there are none (`version` 0); the caller holds a lock and a transaction."""
    if version not in (0, VERSION):
        raise StoreError(
            f"this store has schema version {version}, and this deniable reads version {VERSION} only: "
            f"use the {'newer' if version > VERSION else 'older'} deniable that wrote it"
        )
    if version == 0:
        run("CREATE TABLE schema_version (version INTEGER NOT NULL)")
        run(f"INSERT INTO schema_version VALUES ({VERSION})")
        for statement in STATEMENTS[dialect]:
            run(statement)

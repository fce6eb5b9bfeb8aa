"""Tables of a store and how they came to be: numbered migrations, each in one transaction.

survey      fingerprint, the published bytes, state; other tables use its short key
epoch       state, and the hash of the final tally once closed; it has a row from its first report on
seen        ids that were counted, with the answers where reports are kept. In PostgreSQL each epoch has tables of its
            own (`postgres_ids`), so that forgetting is dropping them; kept reports then move to `report`
tally       n and the counters (int64, little-endian) for each survey, epoch and shard
pending     answers that are counted by id but not yet added up, where adding up each time would be too dear
duplicate   how many submissions came again, by survey and shard
rejected    how many were refused, by survey, day, reason and shard
token       SHA-256, role and label

No row of a submission has a number, a time or a place in a queue: each is found by its random id.
"""

from __future__ import annotations

from collections.abc import Callable

from deniable.collect.stores.base import StoreError

TABLES = ("survey", "epoch", "seen", "tally", "pending", "duplicate", "rejected", "token")

_SQLITE_1 = """
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
        survey INTEGER NOT NULL, epoch INTEGER NOT NULL, shard INTEGER NOT NULL, n INTEGER NOT NULL,
        counts BLOB NOT NULL, PRIMARY KEY (survey, epoch, shard)
    ) WITHOUT ROWID;
    CREATE TABLE pending (
        survey INTEGER NOT NULL, epoch INTEGER NOT NULL, id BLOB NOT NULL, answers BLOB NOT NULL,
        PRIMARY KEY (survey, epoch, id)
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

_POSTGRES_1 = """
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
        survey INTEGER NOT NULL, epoch BIGINT NOT NULL, shard INTEGER NOT NULL, n BIGINT NOT NULL,
        counts BYTEA NOT NULL, PRIMARY KEY (survey, epoch, shard)
    ) WITH (fillfactor = 50);
    ALTER TABLE tally ALTER counts SET STORAGE EXTERNAL;
    CREATE TABLE pending (
        survey INTEGER NOT NULL, epoch BIGINT NOT NULL, id BYTEA NOT NULL, answers BYTEA NOT NULL,
        PRIMARY KEY (survey, epoch, id)
    );
    ALTER TABLE pending ALTER answers SET STORAGE EXTERNAL;
    CREATE TABLE duplicate (
        survey INTEGER NOT NULL, shard INTEGER NOT NULL, n BIGINT NOT NULL, PRIMARY KEY (survey, shard)
    );
    CREATE TABLE rejected (
        survey INTEGER NOT NULL, day INTEGER NOT NULL, reason TEXT NOT NULL, shard INTEGER NOT NULL,
        n BIGINT NOT NULL, PRIMARY KEY (survey, day, reason, shard)
    );
    CREATE TABLE token (sha256 TEXT PRIMARY KEY, role TEXT NOT NULL, label TEXT NOT NULL)
"""

# Before, an open epoch had one table of ids; now another takes the new ones.
_POSTGRES_2 = """
    DO $$ DECLARE which RECORD; BEGIN
        FOR which IN SELECT survey, epoch FROM epoch WHERE state = 'open' LOOP
            EXECUTE format('CREATE TABLE fresh_%s_%s (id BYTEA PRIMARY KEY, answers BYTEA)', which.survey, which.epoch);
        END LOOP;
    END $$
"""

MIGRATIONS: dict[str, list[list[str]]] = {
    "sqlite": [_SQLITE_1.split(";"), []],
    "postgres": [_POSTGRES_1.split(";"), [_POSTGRES_2]],
}
"""Statements of each step, by dialect; a step may concern one of them only."""
VERSION = len(MIGRATIONS["sqlite"])


def upgrade(dialect: str, version: int, run: Callable[[str], object]) -> None:
    """Bring tables of `version` (0: there are none) to the newest; the caller holds a lock and a transaction."""
    if version > VERSION:
        raise StoreError(
            f"this store has schema version {version} and this deniable knows versions up to {VERSION}: "
            "use the newer deniable that wrote it"
        )
    if version == 0:
        run("CREATE TABLE schema_version (version INTEGER NOT NULL)")
        run("INSERT INTO schema_version VALUES (0)")
    for step in range(version, VERSION):
        for statement in MIGRATIONS[dialect][step]:
            run(statement)
    if version < VERSION:
        run(f"UPDATE schema_version SET version = {VERSION}")

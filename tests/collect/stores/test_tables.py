"""The tables of the present version are those of its golden dump, and stores of other versions are refused.

`python -m tests.collect.stores.test_tables` writes the dump: after a change of the tables, with a new version.
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deniable.collect.stores import Added, Store, StoreError, Token, open_store, postgres, sqlite
from deniable.collect.stores.sql import VERSION
from deniable.collect.stores.sqlite import SqliteStore
from tests.collect.stores.memory import MemoryStore
from tests.collect.surveys import crowd, current, daily, mixed, text

GOLDEN = Path(__file__).parent / "golden" / f"store-{VERSION}.sql"
NOW = 1_790_000_000
KEPT, BIG, GONE = mixed(NOW, retention="reports"), text(NOW), daily(NOW)
EPOCH = current(KEPT, NOW)


def fill(store: Store) -> None:
    """What each golden store holds."""
    for survey in (KEPT, BIG):
        store.publish(survey)
        people = crowd(survey, 12)
        store.add([people.batch(survey, EPOCH)], {(survey.fingerprint, 20_717, "badPayload"): 3})
        store.add([people[:5].batch(survey, EPOCH), people[:7].batch(survey, EPOCH + 1)])
    store.close_epoch(KEPT.fingerprint, EPOCH + 1)
    store.delete(KEPT.fingerprint, crowd(KEPT, 12).ids[3].tobytes())
    store.publish(GONE)
    store.add([crowd(GONE, 12).batch(GONE, EPOCH)])
    store.delete_survey(GONE.fingerprint)
    store.add_token(Token("ab" * 32, "analyst", "Ada"))
    store.add_token(Token("cd" * 32, "ingest", "relay", KEPT.fingerprint, NOW))


def restored(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(GOLDEN.read_text(encoding="utf-8"))
    return path


def readings(store: Store) -> list[Any]:
    names = [published.fingerprint for published in store.surveys()]
    known = [[store.epochs(n), store.tally(n).spec(), store.duplicates(n), store.rejections(n)] for n in names]
    kept = [(b.epoch, b.ids.tolist(), b.answers.tolist()) for n in names for b in store.reports(n)]
    return [store.surveys(), store.deleted(), known, kept, store.tokens()]


def test_the_golden_store_opens(tmp_path: Path) -> None:
    with SqliteStore(restored(tmp_path / "old.db")) as old, MemoryStore() as model:
        fill(model)
        old.upgrade()
        same = readings(old) == readings(model)
        assert same
        assert old.check() == []
        people = crowd(KEPT, 12)
        assert old.add([people.batch(KEPT, EPOCH), people.batch(KEPT, EPOCH + 1)]) == [Added(0, 12), Added(closed=True)]
        assert old._query("SELECT version FROM schema_version") == [(VERSION,)]


def test_the_present_schema_is_the_golden_one(tmp_path: Path) -> None:
    """A table that changes needs a new version."""
    present, old = tmp_path / "present.db", restored(tmp_path / "old.db")
    SqliteStore(present).close()
    select = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
    with closing(sqlite3.connect(present)) as a, closing(sqlite3.connect(old)) as b:
        squeezed = [[(name, " ".join(sql.split())) for name, sql in one.execute(select)] for one in (a, b)]
    assert squeezed[0] == squeezed[1]


@pytest.mark.parametrize(("version", "which"), [(99, "newer"), (3, "older")])
def test_stores_of_other_versions_are_refused(durable_url: str, version: int, which: str) -> None:
    with open_store(durable_url) as opened:
        store: Any = opened
        with store._writing():
            store._query(f"UPDATE schema_version SET version = {version}")
    with pytest.raises(StoreError, match=rf"of version {version}, .* version {VERSION} only: use the {which}"):
        open_store(durable_url)


def test_tables_that_cannot_be_made_leave_nothing(durable_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        for module in (sqlite, postgres):
            patch.setattr(module, "STATEMENTS", [*module.STATEMENTS, "CREATE TABLE"])
        with pytest.raises(StoreError, match="cannot be used"):
            open_store(durable_url)
    with open_store(durable_url) as opened:
        assert opened.surveys() == []


def test_megabytes_that_the_server_does_not_take_at_once_are_sent_all_the_same(postgres_url: str) -> None:
    """The driver keeps what does not fit; nobody may wait for the answer to what never left."""
    with open_store(postgres_url) as opened:
        store: Any = opened
        store._seconds = 2.0
        with store._adding():
            store._send("SELECT pg_sleep(0.05)")
            store._send("SELECT length(?::bytea)", bytes(1 << 24))
            assert store._query("SELECT 7") == [(7,)]


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        with SqliteStore(Path(name) / "store.db") as store:
            fill(store)
            store.backup(Path(name) / "copy.db")
        with closing(sqlite3.connect(Path(name) / "copy.db")) as copy:
            GOLDEN.write_text("\n".join(copy.iterdump()) + "\n", encoding="utf-8")

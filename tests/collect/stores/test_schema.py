"""Old stores keep opening, newer ones are refused, and a migration happens whole or not at all.

`python -m tests.collect.stores.test_schema` writes the golden dump of the present version, if it has none. What is
there must open for ever.
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deniable.collect.stores import Added, Store, StoreError, Token, open_store, schema
from deniable.collect.stores.postgres import PostgresStore
from deniable.collect.stores.sqlite import SqliteStore
from tests.collect.surveys import crowd, current, mixed, text

GOLDEN = Path(__file__).parent / "golden"
NOW = 1_790_000_000
KEPT, BIG = mixed(NOW, retention="reports"), text(NOW)
EPOCH = current(KEPT, NOW)


def fill(store: Store) -> None:
    """What each golden store holds."""
    for survey in (KEPT, BIG):
        store.publish(survey)
        people = crowd(survey, 12)
        store.add([people.batch(survey, EPOCH)], {(survey.fingerprint, 20_717, "badPayload"): 3})
        store.add([people[:5].batch(survey, EPOCH), people[:7].batch(survey, EPOCH + 1)])
    # Not the large one: its counters would fill the dump.
    store.close_epoch(KEPT.fingerprint, EPOCH + 1)
    store.add_token(Token("ab" * 32, "analyst", "Ada"))


def golden() -> list[Path]:
    return sorted(GOLDEN.glob("store-*.sql"))


def restored(dump: Path, path: Path) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(dump.read_text(encoding="utf-8"))
    return path


def readings(store: Store) -> list[Any]:
    names = [published.fingerprint for published in store.surveys()]
    known = [[store.epochs(n), store.tally(n).spec(), store.duplicates(n), store.rejections(n)] for n in names]
    kept = [(b.epoch, b.ids.tolist(), b.answers.tolist()) for n in names for b in store.reports(n)]
    return [store.surveys(), known, kept, store.tokens()]


@pytest.mark.parametrize("dump", golden(), ids=lambda path: path.stem)
def test_old_stores_open_for_ever(tmp_path: Path, dump: Path) -> None:
    with SqliteStore(restored(dump, tmp_path / "old.db")) as old, open_store("memory:") as model:
        fill(model)
        same = readings(old) == readings(model)
        assert same
        assert old.check() == []
        people = crowd(KEPT, 12)
        assert old.add([people.batch(KEPT, EPOCH), people.batch(KEPT, EPOCH + 1)]) == [Added(0, 12), Added(closed=True)]
        assert old._query("SELECT version FROM schema_version") == [(schema.VERSION,)]


def test_each_version_has_a_dump() -> None:
    assert [path.stem for path in golden()] == [f"store-{version}" for version in range(1, schema.VERSION + 1)]
    assert len(schema.MIGRATIONS["sqlite"]) == len(schema.MIGRATIONS["postgres"]) == schema.VERSION


def test_the_present_schema_is_the_golden_one(tmp_path: Path) -> None:
    """A table that changes needs a migration."""
    present, old = tmp_path / "present.db", restored(golden()[-1], tmp_path / "old.db")
    SqliteStore(present).close()
    select = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
    with closing(sqlite3.connect(present)) as a, closing(sqlite3.connect(old)) as b:
        squeezed = [[(name, " ".join(sql.split())) for name, sql in one.execute(select)] for one in (a, b)]
    assert squeezed[0] == squeezed[1]


def test_newer_stores_are_refused(durable_url: str) -> None:
    with open_store(durable_url) as opened:
        store: Any = opened
        with store._writing():
            store._query("UPDATE schema_version SET version = 99")
    with pytest.raises(StoreError, match=rf"version 99 .* up to {schema.VERSION}: use the newer deniable"):
        open_store(durable_url)


def test_a_migration_that_fails_leaves_the_old_version(durable_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(durable_url).close()
    step = ["CREATE TABLE extra (x INTEGER)", "CREATE TABLE"]
    newer = schema.VERSION + 1
    with monkeypatch.context() as patch:
        patch.setattr(schema, "VERSION", newer)
        patch.setattr(schema, "MIGRATIONS", {kind: [*steps, step] for kind, steps in schema.MIGRATIONS.items()})
        with pytest.raises(StoreError, match="cannot be used"):
            open_store(durable_url)
        patch.setattr(schema, "MIGRATIONS", {kind: [*s[:-1], step[:1]] for kind, s in schema.MIGRATIONS.items()})
        with open_store(durable_url) as opened:
            store: Any = opened
            assert isinstance(store, SqliteStore | PostgresStore)
            assert store._query("SELECT version FROM schema_version") == [(newer,)]
            assert store._query("SELECT * FROM extra") == []


def test_an_open_epoch_of_the_first_version(postgres_url: str) -> None:
    """It had one table of ids."""
    survey = mixed(NOW)
    people = crowd(survey, 12)
    with open_store(postgres_url) as opened:
        store: Any = opened
        store.publish(survey)
        store.add([people[:5].batch(survey, EPOCH)])
        store.mix()
        with store._writing():
            store._query(f"DROP TABLE fresh_1_{EPOCH}")
            store._query("UPDATE schema_version SET version = 1")
    with open_store(postgres_url) as opened:
        assert opened.add([people.batch(survey, EPOCH)]) == [Added(7, 5)]
        assert opened.check() == []


if __name__ == "__main__":
    target = GOLDEN / f"store-{schema.VERSION}.sql"
    if not target.exists():
        GOLDEN.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as name:
            with SqliteStore(Path(name) / "store.db") as store:
                fill(store)
                store.backup(Path(name) / "copy.db")
            with closing(sqlite3.connect(Path(name) / "copy.db")) as copy:
                target.write_text("\n".join(copy.iterdump()) + "\n", encoding="utf-8")

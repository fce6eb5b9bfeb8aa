"""A copy becomes a store again, of either kind: the same sums, the same ids, the same refusals; or nothing at all."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable import __version__
from deniable.collect.stores import Added, Store, StoreError, Token, VersionError, open_store, postgres, restore_store
from deniable.collect.stores.postgres import PostgresStore
from tests.collect.postgres import PostgresServer
from tests.collect.stores.memory import MemoryStore
from tests.collect.surveys import crowd, daily, memoized, mixed, plain, text

KEPT, SUMS, WORDS = mixed(retention="reports"), daily(), text()
PEOPLE = {survey.fingerprint: crowd(survey, 3000, seed) for seed, survey in enumerate((KEPT, SUMS, WORDS))}


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a copy is restored: a new place of either kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'restored.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    url = server.new_database()
    yield url
    server.drop_database(url)


def fill(store: Store) -> None:
    """Every state that an epoch can be in: open, closed for now, closed for good, with reports kept and dropped."""
    for survey in (KEPT, SUMS, WORDS):
        store.publish(survey)
        people, name = PEOPLE[survey.fingerprint], survey.fingerprint
        for epoch in (8, 9, 10, 11):
            # Several calls, so that there are runs and a pool.
            store.add([people[:2500].batch(survey, epoch)], {(name, 20_000, "badPayload"): 2})
            store.add([people[2400:2600].batch(survey, epoch)])
        store.close_epoch(name, 8)
        store.close_epoch(name, 9, 3e9)
    store.close_epoch(KEPT.fingerprint, 7)
    store.drop_reports(KEPT.fingerprint, 8, 8)
    store.delete(KEPT.fingerprint, PEOPLE[KEPT.fingerprint].ids[3].tobytes())
    store.publish(plain())
    store.close_survey(plain().fingerprint)
    store.publish(memoized())
    store.add([crowd(memoized(), 10).batch(memoized(), 10)])
    store.delete_survey(memoized().fingerprint)
    store.add_token(Token("ab" * 32, "analyst", "Ada"))
    store.add_token(Token("cd" * 32, "ingest", "relay", KEPT.fingerprint, 2_000_000_000))
    store.confirm_time(1_790_000_000)


def readings(store: Store) -> list[Any]:
    names = [published.fingerprint for published in store.surveys()]
    known = [[store.epochs(n), store.tally(n).spec(), store.duplicates(n), store.rejections(n)] for n in names]
    kept = [np.concatenate([b.ids, b.answers], axis=1).tobytes() for n in names for b in store.reports(n)]
    return [store.surveys(), store.deleted(), known, b"".join(kept), store.tokens()]


@pytest.fixture(scope="module")
def model() -> MemoryStore:
    store = MemoryStore()
    fill(store)
    return store


def test_a_restored_store_is_as_the_copied_one_was(durable_url: str, target: str, tmp_path: Path, model: Store) -> None:
    with open_store(durable_url) as store:
        fill(store)
        store.backup(tmp_path / "copy.db")
        # What comes after the copy is not in it.
        store.add([crowd(SUMS, 50, seed=9).batch(SUMS, 10)])
    before = (tmp_path / "copy.db").read_bytes()
    restore_store(tmp_path / "copy.db", target)
    assert (tmp_path / "copy.db").read_bytes() == before
    with open_store(target) as store:
        same = readings(store) == readings(model)
        assert same
        assert store.check() == []
        # The time is known, and nobody has confirmed it.
        assert (store.time().trusted, store.time().confirmed) == (1_790_000_000, None)
        for survey in (KEPT, SUMS, WORDS):
            people, name = PEOPLE[survey.fingerprint], survey.fingerprint
            again = [people.batch(survey, epoch) for epoch in (8, 9, 10)]
            assert store.add(again) == [Added(closed=True), Added(closed=True), Added(400, 2600)]
            assert store.reopen_epoch(name, 9).reopened == 1
            assert store.add([people.batch(survey, 9)]) == [Added(400, 2600)]
            with pytest.raises(StoreError, match=r"are forgotten|reports were deleted"):
                store.reopen_epoch(name, 8)
            # An epoch of which the copy knows nothing.
            assert store.add([people.batch(survey, 12)]) == [Added(3000, 0)]
            assert store.close_epoch(name, 10).n == 3000 - (survey is KEPT)
        assert store.publish(daily(retention="reports"))
        assert store.check() == []


class ForgetsIds(PostgresStore):
    """Restores the sums alone."""

    def _fill_epoch(self, copy: Any, entry: Any, epoch: int, has_ids: bool) -> None:
        super()._fill_epoch(copy, entry, epoch, False)


class KeepsNumbers(PostgresStore):
    """Gives the next survey the number of one that was restored."""

    def _query(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return [] if "setval" in sql else super()._query(sql, *parameters)


@pytest.mark.parametrize("kind", [ForgetsIds, KeepsNumbers])
def test_a_broken_restore_is_caught(
    postgres_url: str, tmp_path: Path, model: Store, kind: type[PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "PostgresStore", kind)
    with pytest.raises((AssertionError, StoreError)):
        test_a_restored_store_is_as_the_copied_one_was(
            f"sqlite:///{tmp_path / 'kept.db'}", postgres_url, tmp_path, model
        )


def test_a_store_that_is_there_is_not_replaced(durable_url: str, tmp_path: Path) -> None:
    with open_store(durable_url) as store:
        store.publish(SUMS)
        store.add([PEOPLE[SUMS.fingerprint].batch(SUMS, 10)])
        store.backup(tmp_path / "copy.db")
        store.publish(KEPT)
        with pytest.raises(StoreError, match="already"):
            restore_store(tmp_path / "copy.db", durable_url)
        assert len(store.surveys()) == 2
        assert store.check() == []


def test_a_log_that_was_left_is_not_read_into_another_store(tmp_path: Path) -> None:
    MemoryStore().backup(tmp_path / "copy.db")
    (tmp_path / "new.db-wal").write_bytes(b"left")
    with pytest.raises(StoreError, match=r"new\.db-wal"):
        restore_store(tmp_path / "copy.db", f"sqlite:///{tmp_path / 'new.db'}")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE seen SET ids = SUBSTR(ids, 17)", "is damaged"),
        ("UPDATE schema_version SET version = 3, software = '0.0.3'", "written by deniable 0.0.3 .* version 3"),
        ("DROP TABLE schema_version", "something else"),
    ],
)
def test_a_copy_that_cannot_be_restored_leaves_nothing(target: str, tmp_path: Path, damage: str, said: str) -> None:
    with MemoryStore() as store:
        store.publish(SUMS)
        store.add([PEOPLE[SUMS.fingerprint].batch(SUMS, 10)])
        store.backup(tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        copy.execute(damage)
        copy.commit()
    with pytest.raises(StoreError, match=said):
        restore_store(tmp_path / "copy.db", target)
    assert not (tmp_path / "restored.db").exists()
    with open_store(target) as store:
        assert store.surveys() == []


def test_a_restore_that_fails_leaves_nothing(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryStore() as store:
        fill(store)
        store.backup(tmp_path / "copy.db")

    def lost(self: PostgresStore, *_: Any) -> None:
        self._query("SELECT 1 / 0")

    with monkeypatch.context() as patch:
        patch.setattr(PostgresStore, "_keep", lost)
        with pytest.raises(StoreError, match="division"):
            restore_store(tmp_path / "copy.db", postgres_url)
    restore_store(tmp_path / "copy.db", postgres_url)
    with open_store(postgres_url) as store:
        assert store.check() == []


# -- versions --------------------------------------------------------------------------------------------


def state(url: str) -> list[Any]:
    """All that a look could have changed: the bytes of a file; in PostgreSQL the tables and the numbers of changes."""
    if url.startswith("sqlite"):
        return [Path(url.removeprefix("sqlite:///")).read_bytes()]
    import psycopg

    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
        content = [connection.execute(f"SELECT xmin::text, * FROM {table}").fetchall() for (table,) in tables]
        return [tables, content]


def change(url: str, *statements: str) -> None:
    with open_store(url) as opened:
        store: Any = opened
        with store._exclusive():
            for statement in statements:
                store._query(statement)


def test_a_store_that_is_only_read_is_not_changed(durable_url: str, tmp_path: Path) -> None:
    with open_store(durable_url) as store:
        fill(store)
    # An epoch that was closed, and whose ids were not dropped any more: whoever writes next does that.
    change(durable_url, "UPDATE epoch SET forget = NULL")
    before = state(durable_url)
    with open_store(durable_url, read_only=True) as store:
        wrong = store.check()
        store.backup(tmp_path / "copy.db")
        with pytest.raises(StoreError, match=r"read-?only"):
            store.publish(mixed())
    assert len(wrong) == 3, "three epochs have ids that they should not have"
    same = state(durable_url) == before
    assert same
    with open_store(durable_url) as store:
        assert store.check() == []


@pytest.mark.parametrize("version", [99, 3])
def test_tables_of_another_version_are_named_and_not_touched(durable_url: str, version: int) -> None:
    with open_store(durable_url) as store:
        store.publish(SUMS)
    change(durable_url, f"UPDATE schema_version SET version = {version}, software = '9.9.9'")
    before = state(durable_url)
    for read_only in (False, True):
        with pytest.raises(VersionError, match=rf"deniable 9\.9\.9 .* {version}, .* deniable {__version__}"):
            open_store(durable_url, read_only=read_only)
    same = state(durable_url) == before
    assert same


def test_one_version_writes(durable_url: str) -> None:
    """Others read, and are told which one writes; a running one stops when another takes over."""
    people, survey = PEOPLE[SUMS.fingerprint], SUMS
    with open_store(durable_url) as running:
        running.publish(survey)
        running.add([people[:10].batch(survey, 10)])
        change(durable_url, "UPDATE schema_version SET software = '9.9.9'")
        for write in (
            lambda: running.add([people[:20].batch(survey, 10)]),
            lambda: running.publish(KEPT),
            lambda: running.close_epoch(survey.fingerprint, 10),
            lambda: running.close_survey(survey.fingerprint),
            lambda: running.add_token(Token("ab" * 32, "admin", "Ada")),
            lambda: running.note_time(5),
            running.ping,
        ):
            with pytest.raises(VersionError, match=rf"deniable 9\.9\.9, .* deniable {__version__}: .* store upgrade"):
                write()
        assert running.tally(survey.fingerprint)["smoke"].n == 10
        assert running.software() == "9.9.9"
        running.upgrade()
        assert running.software() == __version__
        running.ping()
        assert running.add([people[:20].batch(survey, 10)]) == [Added(10, 10)]
        assert running.check() == []


def test_a_node_of_files_has_one_version(tmp_path: Path) -> None:
    url, batch = f"files:///{tmp_path / 'node'}", PEOPLE[KEPT.fingerprint].batch(KEPT, 10)
    with open_store(url) as running:
        running.publish(KEPT)
        running.add([batch])
        change(url, "UPDATE schema_version SET software = '9.9.9'")
        logs = {path: path.read_bytes() for path in (tmp_path / "node/segments").iterdir()}
        with pytest.raises(VersionError, match=r"deniable 9\.9\.9"):
            running.add([batch])
        with open_store(url, read_only=True) as reader:
            assert reader.check() == []
        assert {path: path.read_bytes() for path in (tmp_path / "node/segments").iterdir()} == logs
        running.upgrade()
        running.add([batch])
    MemoryStore().backup(tmp_path / "copy.db")
    with pytest.raises(StoreError, match="copying its directory"):
        restore_store(tmp_path / "copy.db", f"files:///{tmp_path / 'x'}")


def test_an_upgrade_waits_for_what_is_being_written(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a worker that has looked at the version a moment ago would commit after another has taken over."""
    with open_store(postgres_url) as opened:
        store: Any = opened
        with store._writing():
            monkeypatch.setattr(postgres, "LOCK_SECONDS", 0.2)
            with open_store(postgres_url) as other, pytest.raises(postgres.TakenError):
                other.upgrade()
        monkeypatch.undo()
        # A worker that comes while the other takes over waits, and then sees it.
        with open_store(postgres_url) as other_opened:
            other: Any = other_opened
            seen: list[Exception] = []

            def late() -> None:
                try:
                    store.publish(SUMS)
                except VersionError as error:
                    seen.append(error)

            thread = threading.Thread(target=late)
            with other._exclusive():
                other._query("UPDATE schema_version SET software = '9.9.9'")
                thread.start()
                waits = "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
                while other._query(waits) != [(1,)]:
                    pass
            thread.join(30)
            assert len(seen) == 1
            assert other.surveys() == []

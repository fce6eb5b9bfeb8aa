"""The order in which submissions came cannot be read from a store: another order leaves the same rows."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deniable.collect.stores import Added, Batch, Store, open_store
from deniable.collect.stores.batches import EpochGroup, Flags
from deniable.collect.stores.sqlite import SqliteStore
from deniable.surveys import Survey
from tests.collect.postgres import PostgresServer
from tests.collect.surveys import crowd, daily, mixed, text

SURVEYS = [daily(), mixed(retention="reports"), text()]
POOLS = [crowd(survey, 60, seed) for seed, survey in enumerate(SURVEYS)]


def arrivals(seed: int) -> list[list[Batch]]:
    """The same submissions in an order, and in groups, of their own."""
    chance = random.Random(seed)
    sent = [(which, epoch, place) for which in range(3) for epoch in (10, 11) for place in range(60)]
    chance.shuffle(sent)
    calls = []
    while sent:
        size = chance.randint(1, 40)
        group, sent = sent[:size], sent[size:]
        calls.append([POOLS[which][[place]].batch(SURVEYS[which], epoch) for which, epoch, place in group])
    return calls


def content(store: Store, path: Path) -> dict[str, list[Any]]:
    """All rows of all tables, as they lie in a copy."""
    store.backup(path)
    with closing(sqlite3.connect(path)) as copy:
        names = [name for (name,) in copy.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: copy.execute(f"SELECT * FROM {name}").fetchall() for name in sorted(names)}


def collected(make: Callable[[int], Store], directory: Path, seed: int) -> list[dict[str, list[Any]]]:
    with make(seed) as store:
        for survey in SURVEYS:
            store.publish(survey)
        for batches in arrivals(seed):
            store.add(batches)
        before = content(store, directory / f"{seed}.before")
        for survey in SURVEYS:
            store.close_epoch(survey.fingerprint, 10)
        return [before, content(store, directory / f"{seed}.after")]


def test_sqlite(tmp_path: Path) -> None:
    first, second = (collected(lambda seed: SqliteStore(tmp_path / f"{seed}.db"), tmp_path, seed) for seed in (1, 2))
    assert len(first[0]["seen"]) == 360
    same = first == second
    assert same


def test_postgres(tmp_path: Path, postgres_server: PostgresServer) -> None:
    first, second = (collected(lambda _: open_store(postgres_server.new_database()), tmp_path, seed) for seed in (1, 2))
    same = first == second
    assert same


class Numbered(SqliteStore):
    """Keeps ids in a table with row numbers as well."""

    def _claim(self, entry: Any, group: EpochGroup, careful: bool) -> Flags:
        self._query("CREATE TABLE IF NOT EXISTS log (id BLOB)")
        for id in group.ids:
            self._query("INSERT INTO log VALUES (?)", id)
        return super()._claim(entry, group, careful)


def test_a_table_in_order_of_arrival_is_found(tmp_path: Path) -> None:
    first, second = (collected(lambda seed: Numbered(tmp_path / f"{seed}.db"), tmp_path, seed) for seed in (1, 2))
    assert [name for name in first[0] if first[0][name] != second[0][name]] == ["log"]


@pytest.mark.parametrize("table", ["seen", "tally"])
def test_rows_of_submissions_have_no_number(tmp_path: Path, table: str) -> None:
    with SqliteStore(tmp_path / "store.db") as store, pytest.raises(Exception, match="no such column: rowid"):
        store._query(f"SELECT rowid FROM {table}")


def places(store: Any, table: str) -> list[bytes]:
    """Ids by the place of their rows: what PostgreSQL betrays to everyone who may read."""
    return [id for (id,) in store._query(f"SELECT id FROM {table} ORDER BY ctid")]


def transactions(store: Any, table: str) -> int:
    return len(store._query(f"SELECT DISTINCT xmin::text FROM {table}"))


@pytest.fixture
def one_by_one(postgres_url: str) -> Iterator[tuple[Any, Survey, list[bytes]]]:
    """A store whose submissions came each for itself, and their ids in that order."""
    survey, people = SURVEYS[1], POOLS[1]
    with open_store(postgres_url) as store:
        store.publish(survey)
        for place in range(60):
            store.add([people[[place]].batch(survey, 10)])
        yield store, survey, [bytes(id) for id in people.ids]


def test_mixing_leaves_no_order_in_postgres(one_by_one: tuple[Any, Survey, list[bytes]]) -> None:
    store, survey, arrived = one_by_one
    # What is to be removed is there, or this would show nothing.
    assert places(store, "fresh_1_10") == arrived
    assert transactions(store, "fresh_1_10") == 60
    store.mix()
    assert places(store, "seen_1_10") == sorted(arrived)
    assert transactions(store, "seen_1_10") == 1
    # Not even dead rows: their places are free again.
    assert store._query("SELECT pg_relation_size('fresh_1_10')") == [(0,)]
    assert store.add([POOLS[1].batch(survey, 10)]) == [Added(0, 60)]


def test_some_ids_are_taken_from_the_whole_period(
    one_by_one: tuple[Any, Survey, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids move in several transactions, by id: which of them tells nothing either."""
    monkeypatch.setattr("deniable.collect.stores.postgres.MIXED", 7)
    store, _, arrived = one_by_one
    store.mix()
    assert places(store, "seen_1_10") == sorted(arrived)
    assert transactions(store, "seen_1_10") == 9


def test_postgres_writes_kept_reports_anew(one_by_one: tuple[Any, Survey, list[bytes]]) -> None:
    store, survey, arrived = one_by_one
    store.close_epoch(survey.fingerprint, 10)
    assert places(store, "report") == sorted(arrived)
    assert transactions(store, "report") == 1


def test_mixing_empties_the_log_of_sqlite(tmp_path: Path) -> None:
    survey, people = SURVEYS[1], POOLS[1]
    with SqliteStore(tmp_path / "store.db") as store:
        store.publish(survey)
        store.add([people.batch(survey, 10)])
        log = tmp_path / "store.db-wal"
        assert people.ids[0].tobytes() in log.read_bytes()
        store.mix()
        assert log.stat().st_size == 0

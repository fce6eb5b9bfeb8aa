"""The order in which submissions came cannot be read from a store: another order leaves the same rows."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deniable.collect.stores import Batch, Store, open_store
from deniable.collect.stores.grouping import Flags, Group
from deniable.collect.stores.sqlite import SqliteStore
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
    assert [len(first[0]["seen"]), len(first[0]["pending"])] == [360, 120]
    same = first == second
    assert same


def test_postgres(tmp_path: Path, postgres_server: PostgresServer) -> None:
    first, second = (collected(lambda _: open_store(postgres_server.new_database()), tmp_path, seed) for seed in (1, 2))
    same = first == second
    assert same


class Numbered(SqliteStore):
    """Keeps ids in a table with row numbers as well."""

    def _claim(self, entry: Any, group: Group, careful: bool) -> Flags:
        self._query("CREATE TABLE IF NOT EXISTS log (id BLOB)")
        for id in group.ids:
            self._query("INSERT INTO log VALUES (?)", id)
        return super()._claim(entry, group, careful)


def test_a_table_in_order_of_arrival_is_found(tmp_path: Path) -> None:
    first, second = (collected(lambda seed: Numbered(tmp_path / f"{seed}.db"), tmp_path, seed) for seed in (1, 2))
    assert [name for name in first[0] if first[0][name] != second[0][name]] == ["log"]


@pytest.mark.parametrize("table", ["seen", "pending"])
def test_rows_of_submissions_have_no_number(tmp_path: Path, table: str) -> None:
    with SqliteStore(tmp_path / "store.db") as store, pytest.raises(Exception, match="no such column: rowid"):
        store._query(f"SELECT rowid FROM {table}")


def test_postgres_writes_kept_reports_anew(postgres_url: str) -> None:
    survey, people = SURVEYS[1], POOLS[1]
    with open_store(postgres_url) as opened:
        store: Any = opened
        store.publish(survey)
        for place in range(60):
            store.add([people[[place]].batch(survey, 10)])
        order = "SELECT id FROM {} ORDER BY ctid"
        assert [id for (id,) in store._query(order.format("seen_1_10"))] == [bytes(id) for id in people.ids]
        store.close_epoch(survey.fingerprint, 10)
        assert [id for (id,) in store._query(order.format("report"))] == sorted(bytes(id) for id in people.ids)
        assert len(store._query("SELECT DISTINCT xmin::text FROM report")) == 1

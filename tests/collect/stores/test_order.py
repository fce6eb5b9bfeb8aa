"""The order in which submissions came cannot be read from a store: another order leaves the same rows."""

from __future__ import annotations

import itertools
import random
import re
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from deniable.collect.server import service
from deniable.collect.stores import Batch, Store, postgres, segments, sqlite
from deniable.collect.stores.batches import EpochGroup, Flags, joined, rows
from deniable.collect.stores.sqlite import SqliteStore
from tests.collect.postgres import in_memory
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
    assert sum(len(ids) for *_, ids in first[0]["seen"]) == 360 * 16
    same = first == second
    assert same


class Numbered(SqliteStore):
    """Keeps ids in a table with row numbers as well."""

    def _claim(self, entry: Any, group: EpochGroup) -> Flags:
        self._query("CREATE TABLE IF NOT EXISTS log (id BLOB)")
        for id in rows(group.ids):
            self._query("INSERT INTO log VALUES (?)", id)
        return super()._claim(entry, group)


def test_a_table_in_order_of_arrival_is_found(tmp_path: Path) -> None:
    first, second = (collected(lambda seed: Numbered(tmp_path / f"{seed}.db"), tmp_path, seed) for seed in (1, 2))
    assert [name for name in first[0] if first[0][name] != second[0][name]] == ["log"]


@pytest.mark.parametrize("table", ["seen", "report", "tally"])
def test_rows_of_submissions_have_no_number(tmp_path: Path, table: str) -> None:
    with SqliteStore(tmp_path / "store.db") as store, pytest.raises(Exception, match="no such column: rowid"):
        store._query(f"SELECT rowid FROM {table}")


def test_tidying_empties_the_log_of_sqlite(tmp_path: Path) -> None:
    survey, people = SURVEYS[1], POOLS[1]
    with SqliteStore(tmp_path / "store.db") as store:
        store.publish(survey)
        store.add([people.batch(survey, 10)])
        log = tmp_path / "store.db-wal"
        assert people.ids[0].tobytes() in log.read_bytes()
        store.tidy()
        assert log.stat().st_size == 0


@pytest.mark.parametrize("overwrites", [True, False])
def test_free_pages_of_sqlite_hold_no_earlier_state(monkeypatch: pytest.MonkeyPatch, overwrites: bool) -> None:
    """Each id lies in the file as often as in its rows. Power: unless what is freed is overwritten."""
    settings = sqlite._SETTINGS if overwrites else [one for one in sqlite._SETTINGS if "secure_delete" not in one]
    monkeypatch.setattr(sqlite, "_SETTINGS", (*settings, *(() if overwrites else ("PRAGMA secure_delete = OFF",))))
    monkeypatch.setattr(sqlite.FileRuns, "pool", 24)
    monkeypatch.setattr("deniable.collect.stores.batches.RATIO", 3)
    survey = SURVEYS[1]
    people = crowd(survey, 200, seed=7)
    with tempfile.TemporaryDirectory(dir=in_memory()) as name, SqliteStore(Path(name, "store.db")) as store:
        store.publish(survey)
        for place in range(200):
            store.add([people[[place]].batch(survey, 10)])
        store.tidy()
        rows_of = [b"".join(row) for row in store._query("SELECT first, ids FROM seen")]
        rows_of += [first + records for first, records in store._query("SELECT first, records FROM report")]
        content = Path(name, "store.db").read_bytes()
    kept = b"\n".join(rows_of)
    left = [content.count(id.tobytes()) - kept.count(id.tobytes()) for id in people.ids]
    # An id may lie across two pages, and is then not found.
    assert (max(left) <= 0) == overwrites
    assert sum(left) >= -20


def share_ascending(arrived: list[int]) -> float:
    """Of neighbours, how many are in the order of arrival: about a half if there is none."""
    pairs = list(itertools.pairwise(arrived))
    return sum(first < second for first, second in pairs) / len(pairs)


class RowPerReport(SqliteStore):
    """Keeps each report in a row of its own."""

    def _keep(self, entry: Any, epoch: int, ids: Any, answers: Any) -> None:
        found = zip(rows(ids), rows(answers), strict=True)
        self._insert("INSERT INTO report", (entry.key, epoch), [(id, 128, id + raw) for id, raw in found])


@pytest.mark.parametrize(("kind", "hides"), [(SqliteStore, True), (RowPerReport, False)])
def test_places_in_a_file_tell_no_order_of_reports(kind: type[SqliteStore], hides: bool) -> None:
    """Where reports lie in the file. Power: SQLite writes a new row of a page before the one that came before it.

    In a random order the share has a standard deviation of 1 / sqrt(12 n), .03: .35 and .65 are five of them away.
    """
    survey = SURVEYS[1]
    people = crowd(survey, 100, seed=7)
    with tempfile.TemporaryDirectory(dir=in_memory()) as name:
        with kind(Path(name, "store.db")) as store:
            store.publish(survey)
            for place in range(100):
                store.add([people[[place]].batch(survey, 10)])
            store.tidy()
        content = Path(name, "store.db").read_bytes()
    records = [id.tobytes() + raw.tobytes() for id, raw in zip(people.ids, people.answers, strict=True)]
    places = {content.find(record): arrived for arrived, record in enumerate(records) if record in content}
    assert len(places) > 90
    share = share_ascending([places[place] for place in sorted(places)])
    assert (0.35 < share < 0.65) == hides


def kept_together(path: Path) -> list[list[bytes]]:
    """The ids of each run."""
    with closing(sqlite3.connect(path)) as file:
        found = file.execute("SELECT run, ids FROM seen ORDER BY run, first").fetchall()
    return [rows(joined([raw for own, raw in found if own == run], 16)) for run in {run for run, _ in found}]


@pytest.mark.parametrize(("pool", "mixed_well"), [(24, True), (1, False)])
def test_runs_of_sqlite_tell_no_order(monkeypatch: pytest.MonkeyPatch, pool: int, mixed_well: bool) -> None:
    """A run says in which period an id came, and nothing within it. Power: without a pool the runs are the commits."""
    monkeypatch.setattr("deniable.collect.stores.sqlite.FileRuns.pool", pool)
    monkeypatch.setattr("deniable.collect.stores.batches.RATIO", 1000)
    people = crowd(SURVEYS[0], 200, seed=7)
    with tempfile.TemporaryDirectory(dir=in_memory()) as name:
        with SqliteStore(Path(name, "store.db")) as store:
            store.publish(SURVEYS[0])
            for place in range(200):
                store.add([people[[place]].batch(SURVEYS[0], 10)])
            store.tidy()
        runs = kept_together(Path(name, "store.db"))
    arrived = {bytes(id): place for place, id in enumerate(people.ids)}
    assert all(run == sorted(run) for run in runs)
    assert sum(map(len, runs)) == 200
    assert (min(map(len, runs)) >= 24) == mixed_well
    # Chosen at random, some stay in the pool for several runs: no run holds a period without gaps.
    periods = [(min(arrived[id] for id in run), max(arrived[id] for id in run), len(run)) for run in runs]
    assert any(last - first < size for first, last, size in periods) != mixed_well


# -- the stated times ------------------------------------------------------------------------------------


def test_the_threat_model_states_the_times_of_the_code() -> None:
    root = Path(__file__).parents[3]
    page = (root / "docs" / "collect" / "threat-model.md").read_text(encoding="utf-8")
    stated = re.findall(r"^\| (SQLite|PostgreSQL|files) \| ([^|]+) \| (\d+) (seconds|minutes)", page, re.MULTILINE)
    times = {(store, what): int(n) * {"seconds": 1, "minutes": 60}[unit] for store, what, n, unit in stated}
    assert times == {
        ("SQLite", "its log"): service.TIDY_FILE,
        ("PostgreSQL", "earlier versions of rows, and their bytes in free space"): service.TIDY_SERVER,
        ("PostgreSQL", "its log"): 1200,
        ("files", "the log of a node"): service.TIDY_SERVER,
    }
    # A part of PostgreSQL's log ends, the service writes the next time, and a checkpoint removes what is before it.
    compose = yaml.safe_load((root / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
    settings = dict(word.removeprefix("-c").split("=") for word in compose["services"]["db"]["command"][1:])
    assert settings["wal_recycle"] == "off"
    until = int(settings["archive_timeout"]) + service.NOTE_SECONDS + int(settings["checkpoint_timeout"])
    assert until <= times["PostgreSQL", "its log"]
    deployment = (root / "docs" / "collect" / "deployment.md").read_text(encoding="utf-8")
    shown = dict(
        re.findall(r"^(\w+) = (\w+) +#", deployment.partition("```ini\n")[2].partition("```")[0], re.MULTILINE)
    )
    assert {name: settings[name] for name in shown} == shown
    (among,) = re.findall(r"at least ([\d,]+) \(SQLite\), ([\d,]+) \(PostgreSQL\) or ([\d,]+) \(files\)", page)
    smallest = (sqlite.FileRuns.pool, postgres.ServerRuns.pool, segments.PART_ROWS)
    assert tuple(int(n.replace(",", "")) for n in among) == smallest

"""Kept reports and whole surveys that are deleted are gone: from what can be read, and from the files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deniable.collect.stores import Added, Store, StoreError, SurveyDeleted, open_store
from deniable.collect.stores.sqlite import SqliteStore
from deniable.surveys import Question, Survey
from deniable.surveys.campaign import next_round
from tests.collect.postgres import PostgresServer
from tests.collect.stores.test_stores import together
from tests.collect.surveys import DAY, TODAY, crowd, daily, plain, terms, text
from tests.surveys.rounds import COUNTS, first_round, tally_of

ASKED, OWNER = "Which bread is gone by now?", "An institute that leaves no trace"
TERMS = replace(terms(retention="reports"), owner=OWNER)
KEPT = Survey("gone", [Question("bread", ASKED, text()["bread"].protocol)], TERMS)
OTHER = plain()
NAME = KEPT.fingerprint
PEOPLE = crowd(KEPT, 30, seed=5)


def collect(store: Store) -> None:
    """Reports of three epochs, of which two are closed, and those of another survey."""
    for survey in (OTHER, KEPT):
        store.publish(survey)
    store.add([PEOPLE.batch(KEPT, epoch) for epoch in (8, 9, 10)], {(NAME, 20_000, "badPayload"): 2})
    store.add([PEOPLE[:3].batch(KEPT, 10), crowd(OTHER, 20).batch(OTHER, 0)])
    for epoch in (8, 9):
        store.close_epoch(NAME, epoch, forget=1e10)


def kept(store: Store) -> dict[int, int]:
    return {batch.epoch: len(batch.ids) for batch in store.reports(NAME)}


def test_kept_reports_go_and_sums_stay(store: Store) -> None:
    collect(store)
    sums, hashes = store.tally(NAME).spec(), [one.sha256 for one in store.epochs(NAME)]
    with pytest.raises(StoreError, match="epoch 10 is open and its reports are needed: close it first"):
        store.drop_reports(NAME)
    assert kept(store) == {8: 30, 9: 30, 10: 30}
    assert store.drop_reports(NAME, 0, 8) == 30
    assert store.drop_reports(NAME, 8, 8) == 0
    assert kept(store) == {9: 30, 10: 30}
    assert store.drop_reports(NAME, 7, 9) == 30
    assert kept(store) == {10: 30}
    assert store.tally(NAME).spec() == sums
    assert [one.sha256 for one in store.epochs(NAME)] == hashes
    assert [one.dropped for one in store.epochs(NAME)] == [True, True, False]
    # Its ids are gone as well, so nothing of it is ever taken again.
    assert store.add([PEOPLE.batch(KEPT, 8), PEOPLE.batch(KEPT, 10)]) == [Added(closed=True), Added(0, 30)]
    with pytest.raises(StoreError, match="its kept reports were deleted"):
        store.reopen_epoch(NAME, 8)
    assert store.drop_reports(OTHER.fingerprint) == 0
    assert store.check() == []


def test_a_survey_goes_with_all_that_was_collected(store: Store, tmp_path: Path) -> None:
    collect(store)
    others = store.tally(OTHER.fingerprint).spec()
    store.delete_survey(NAME)
    assert [one.fingerprint for one in store.surveys()] == [OTHER.fingerprint]
    assert store.deleted() == [NAME]
    assert store.tally(OTHER.fingerprint).spec() == others
    late = {(NAME, 20_000, "badPayload"): 2, (OTHER.fingerprint, 20_000, "badPayload"): 1}
    assert store.add([PEOPLE.batch(KEPT, 10), crowd(OTHER, 21).batch(OTHER, 0)], late) == [
        Added(closed=True),
        Added(1, 20),
    ]
    assert store.rejections(OTHER.fingerprint) == [(20_000, "badPayload", 1)]
    reading: list[Callable[[], Any]] = [
        lambda: store.tally(NAME),
        lambda: list(store.reports(NAME)),
        lambda: store.rejections(NAME),
        lambda: store.close_epoch(NAME, 10),
        lambda: store.delete_survey(NAME),
        lambda: store.publish(KEPT),
    ]
    for read in reading:
        with pytest.raises(SurveyDeleted, match="was deleted with all that was collected"):
            read()
    assert store.check() == []
    store.backup(tmp_path / "copy.db")
    with SqliteStore(tmp_path / "copy.db") as copy:
        assert (copy.deleted(), len(copy.surveys()), copy.check()) == ([NAME], 1, [])
        with pytest.raises(SurveyDeleted):
            copy.publish(KEPT)
    store.publish(daily())
    assert store.add([crowd(daily(), 5).batch(daily(), 10)]) == [Added(5, 0)]


def rows_of(store: Any, key: int) -> dict[str, int]:
    """What is left of a survey, by table."""
    tables = ["epoch", "tally", "duplicate", "rejected"]
    tables += ["seen", "report"] if isinstance(store, SqliteStore) else []
    found = {table: store._query(f"SELECT COUNT(*) FROM {table} WHERE survey = ?", key)[0][0] for table in tables}
    if not isinstance(store, SqliteStore):
        names = "SELECT COUNT(*) FROM pg_class WHERE relname ~ '^(seen|run|pool|report)_[0-9]+_[0-9]+$'"
        found["tables"] = store._query(names)[0][0]
    return {table: n for table, n in found.items() if n}


def test_deleting_while_others_add(durable_url: str) -> None:
    """Workers that know the survey go on, are told that it is closed, and leave nothing behind."""
    small = daily(retention="reports")
    with open_store(durable_url) as store:
        store.publish(small)
        store.add([crowd(small, 30).batch(small, 10)])
        assert rows_of(store, 1)
    counted = []

    def add(shard: int) -> Callable[[], None]:
        def run() -> None:
            with open_store(durable_url, shard) as store:
                for seed in range(10_000):
                    people = crowd(small, 5, 10_000 * shard + seed)
                    added = store.add(
                        [people.batch(small, 10), people.batch(small, seed % 200)], {(small.fingerprint, 1, "late"): 1}
                    )
                    counted.append(added)
                    if len(counted) >= 6:
                        time.sleep(0.002)  # SQLite has no queue: whoever adds without a pause lets nobody delete
                    if added[0].closed:
                        with pytest.raises(SurveyDeleted):
                            store.close_epoch(small.fingerprint, 10)
                        return
                raise AssertionError("nobody deleted it")

        return run

    def delete() -> None:
        with open_store(durable_url, 9) as store:
            while len(counted) < 6:
                time.sleep(0.001)
            store.delete_survey(small.fingerprint)

    together(add(1), add(2), delete)
    with open_store(durable_url) as store:
        assert rows_of(store, 1) == {}
        assert store.check() == []


class Interrupted(SqliteStore):
    """Ends after the mark, before anything is removed."""

    def _drop(self, table: str, key: int, epoch: int) -> None:
        pass


def test_an_interrupted_deletion_is_read_by_nobody_and_ended_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Interrupted(path) as store:
        collect(store)
        assert store.drop_reports(NAME, 8, 8) == 30
        assert kept(store) == {9: 30, 10: 30}
        assert any("its reports were deleted, but 30 are still there" in problem for problem in store.check())
    with SqliteStore(path) as store:
        assert store.check() == []
        assert rows_of(store, 2)["report"] == 2
        assert kept(store) == {9: 30, 10: 30}
    with Interrupted(path) as store, SqliteStore(path) as other:
        assert other.add([PEOPLE.batch(KEPT, 10)]) == [Added(0, 30)]
        store.delete_survey(NAME)
        # A worker that knows the survey counts nothing any more.
        assert other.add([PEOPLE.batch(KEPT, 10), PEOPLE.batch(KEPT, 11)]) == [Added(closed=True)] * 2
        assert [problem.partition(NAME)[2] for problem in store.check()] == [
            " was deleted, but not all of it is gone: try again"
        ]
    with SqliteStore(path) as store:
        assert (rows_of(store, 2), store.check()) == ({}, [])


def test_a_round_that_another_was_made_from_stays(store: Store) -> None:
    first = first_round(epsilon=3, start=TODAY - DAY)
    second = next_round(first, tally_of(first, *COUNTS), TODAY, TODAY + DAY)
    for survey in (first, second):
        store.publish(survey)
    with pytest.raises(StoreError, match=f"round 2 of its campaign, {second.fingerprint}, .* delete the later round"):
        store.delete_survey(first.fingerprint)
    assert store.deleted() == []
    store.delete_survey(second.fingerprint)
    store.delete_survey(first.fingerprint)
    assert store.deleted() == sorted([first.fingerprint, second.fingerprint])


# -- files -----------------------------------------------------------------------------------------


def traces(directory: Path) -> set[str]:
    """What of the survey and of what was collected is in some file."""
    files = [Path(folder) / name for folder, _, names in os.walk(directory) for name in names]
    content = b"\n".join(file.read_bytes() for file in files)
    looked_for = {
        "the survey": [ASKED.encode(), OWNER.encode()],
        "ids": [id.tobytes() for id in PEOPLE.ids],
        "reports": [raw[1:].tobytes() for raw in PEOPLE.answers],
        "its fingerprint": [NAME.encode()],
    }
    return {what for what, some in looked_for.items() if any(one in content for one in some)}


def test_files_of_sqlite_hold_nothing_that_was_deleted(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'store.db'}") as store:
        collect(store)
        assert traces(tmp_path) == {"the survey", "ids", "reports", "its fingerprint"}
        store.close_epoch(NAME, 10)
        store.drop_reports(NAME)
        assert traces(tmp_path) == {"the survey", "its fingerprint"}
        store.delete_survey(NAME)
        assert traces(tmp_path) == {"its fingerprint"}


def test_files_of_postgres_hold_nothing_that_was_deleted(postgres_server: PostgresServer, postgres_url: str) -> None:
    """Except its own log, until the server uses it again."""
    with open_store(postgres_url) as opened:
        store: Any = opened
        ((number,),) = store._query("SELECT oid::text FROM pg_database WHERE datname = current_database()")

        def left() -> set[str]:
            store._query("CHECKPOINT")
            return traces(postgres_server._data / "base" / number)

        store.publish(text())  # what lies beside it keeps its page
        collect(store)
        assert left() == {"the survey", "ids", "reports", "its fingerprint"}
        store.close_epoch(NAME, 10)
        store.drop_reports(NAME)
        assert left() == {"the survey", "its fingerprint"}
        store.delete_survey(NAME)
        assert left() == {"its fingerprint"}

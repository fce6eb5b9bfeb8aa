"""What breaks under a store: a full disk, a server that restarts, damage, an interrupted closing."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from deniable.collect.stores import Added, StorageFull, StoreError, open_store
from deniable.collect.stores.postgres import PostgresStore
from deniable.collect.stores.sql import complaints
from deniable.collect.stores.sqlite import SqliteStore
from tests.collect.postgres import PostgresServer
from tests.collect.surveys import crowd, daily, mixed, text
from tests.faults.places import small_disk

DAILY, KEPT, BIG = daily(), mixed(retention="reports"), text()
NAME = DAILY.fingerprint
PEOPLE = crowd(DAILY, 400)


# -- no room ---------------------------------------------------------------------------------------------


def test_a_full_file_takes_nothing_and_loses_nothing(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store.db") as store:
        store.publish(DAILY)
        store.add([PEOPLE[:100].batch(DAILY, 10)])
        pages = store._query("PRAGMA page_count")[0][0]
        store._query(f"PRAGMA max_page_count = {pages + 1}")
        many = crowd(DAILY, 20_000, seed=5)
        with pytest.raises(StorageFull, match="make room"):
            store.add([PEOPLE[100:110].batch(DAILY, 11), many.batch(DAILY, 10)])
        assert [(epoch.epoch, epoch.n) for epoch in store.epochs(NAME)] == [(10, 100)]
        store._query("PRAGMA max_page_count = 1000000")
        assert store.add([many.batch(DAILY, 10)]) == [Added(20_000, 0)]
        assert store.check() == []


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    call = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(call, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_takes_nothing_and_loses_nothing(tiny_disk: Path) -> None:
    counted = 0
    with SqliteStore(tiny_disk / "store.db") as store:
        store.publish(DAILY)
        try:
            for seed in range(1000):
                counted += store.add([crowd(DAILY, 1000, seed).batch(DAILY, 10)])[0].fresh
        except StorageFull:
            pass
        assert 0 < counted < 1_000_000
        assert [epoch.n for epoch in store.epochs(NAME)] == [counted]
    with SqliteStore(tiny_disk / "store.db") as store:
        assert [epoch.n for epoch in store.epochs(NAME)] == [counted]
        with pytest.raises(StorageFull):
            store.backup(tiny_disk / "copy.db")


def test_a_file_that_another_process_holds_can_be_opened_and_read(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store.db") as store:
        store.publish(DAILY)
        store.add([PEOPLE.batch(DAILY, 10)])
        with store._writing(), SqliteStore(tmp_path / "store.db") as other:
            assert [epoch.n for epoch in other.epochs(NAME)] == [400]


def test_a_full_disk_gives_up_its_reserve_and_frees_itself() -> None:
    """With a long log and no byte left, the log is written back; more is taken once there is room."""
    one = crowd(DAILY, 1, 3000).batch(DAILY, 10)
    with small_disk(16) as disk:
        path = disk.path / "store.db"
        with SqliteStore(path) as store:
            store.publish(DAILY)
            store.keep_reserve()
            with SqliteStore(path) as reader, reader._reading():
                reader._query("SELECT * FROM epoch")  # nothing is written back meanwhile: the log grows
                for seed in range(40):
                    store.add([crowd(DAILY, 2000, seed).batch(DAILY, 10)])
                store.tidy()
                assert store._log_size() > 1 << 21
                disk.fill()
        with SqliteStore(path) as again:
            again._reserving = True
            # The first attempt finds that there is no room, and gives the reserve up.
            assert again.tidy() or again.tidy()
            disk.fill()
            with pytest.raises(StorageFull, match="reserve is given up"):
                again.add([one])
            with pytest.raises(StorageFull, match="reserve is given up"):
                again.ping()
            assert again.epochs(NAME)[0].n == 80_000
            disk.make_room()
            assert again.add([one]) == [Added(1, 0)]
            again.ping()
            assert again.check() == []


def test_a_full_server_takes_nothing_and_loses_nothing(postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store:
        store.publish(DAILY)
        store.add([PEOPLE[:100].batch(DAILY, 10)])
        store._query(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"
        )
        store._query("CREATE TRIGGER full_disk BEFORE UPDATE ON tally EXECUTE FUNCTION full_disk()")
        with pytest.raises(StorageFull, match="make room"):
            store.add([PEOPLE.batch(DAILY, 10)])
        store._query("DROP TRIGGER full_disk ON tally")
        assert store.add([PEOPLE.batch(DAILY, 10)]) == [Added(300, 100)]
        assert store.check() == []


# -- a server that goes away -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [pytest.param("fast", marks=pytest.mark.faults), "immediate"])
def test_after_a_restart_one_call_fails(postgres_server: PostgresServer, mode: str) -> None:
    del postgres_server  # only to skip where there is none
    with PostgresServer() as server, open_store(server.new_database()) as store:
        store.publish(DAILY)
        store.add([PEOPLE[:100].batch(DAILY, 10)])
        server.restart(mode)
        with pytest.raises(StoreError, match="cannot be used"):
            store.add([PEOPLE.batch(DAILY, 10)])
        assert store.add([PEOPLE.batch(DAILY, 10)]) == [Added(300, 100)]
        server.stop()
        for call in (store.ping, store.surveys):
            with pytest.raises(StoreError, match="cannot be used"):
                call()
        server.start()
        store.ping()
        assert store.add([PEOPLE.batch(DAILY, 11)]) == [Added(400, 0)]
        assert store.check() == []


def test_a_connection_lost_in_a_transaction_commits_nothing(postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store, PostgresStore(postgres_url) as other:
        store.publish(DAILY)
        (pid,) = store._query("SELECT pg_backend_pid()")[0]

        def torn() -> None:
            with store._writing():
                store._query("INSERT INTO token VALUES ('a', 'admin', 'x')")
                other._query(f"SELECT pg_terminate_backend({pid})")
                for _ in range(2):  # the second would be on a new connection, outside of the transaction
                    try:
                        store._query("INSERT INTO token VALUES ('b', 'admin', 'x')")
                    except StoreError:
                        continue

        with pytest.raises(StoreError, match="nothing is known"):
            torn()
        assert all(token.sha256 != "a" for token in store.tokens())


def test_a_standby_is_not_ready(postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store:
        store._query("SET default_transaction_read_only = on")
        with pytest.raises(StoreError, match="read-only"):
            store.ping()


def test_a_file_that_was_replaced_is_not_ready(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store.db") as store:
        store.ping()
        (tmp_path / "store.db").rename(tmp_path / "moved.db")
        with pytest.raises(StoreError, match="No such file"):
            store.ping()
        (tmp_path / "store.db").touch()
        with pytest.raises(StoreError, match="replaced"):
            store.ping()


# -- damage ----------------------------------------------------------------------------------------------


def test_check_finds_what_was_changed(durable_url: str) -> None:
    with open_store(durable_url) as opened:
        store: SqliteStore | PostgresStore = opened  # type: ignore[assignment]
        for survey in (DAILY, KEPT, BIG):
            store.publish(survey)
            store.add([crowd(survey, 50).batch(survey, epoch) for epoch in (10, 11)])
            store.close_epoch(survey.fingerprint, 11)
        assert store.check() == []
        keys = dict(store._query("SELECT fingerprint, key FROM survey"))
        changes = {
            f"UPDATE tally SET n = n + 1 WHERE survey = {keys[NAME]} AND epoch = 10": "51 submissions.*50 ids",
            f"DELETE FROM tally WHERE survey = {keys[NAME]} AND epoch = 10": "0 submissions.*50 ids",
            f"UPDATE tally SET n = n + 1 WHERE survey = {keys[NAME]} AND epoch = 11": "not the one that was closed",
            f"DELETE FROM tally WHERE survey = {keys[BIG.fingerprint]} AND epoch = 10": "0 submissions.*50 ids",
            f"UPDATE tally SET counts = ? WHERE survey = {keys[BIG.fingerprint]} AND epoch = 10 AND block = 0": "size",
            f"UPDATE survey SET canonical = ? WHERE key = {keys[NAME]}": "have the fingerprint",
        }
        for change, complaint in changes.items():
            with suppress(UndoneError), store._writing():
                store._query(change, *[KEPT.canonical] * change.count("?"))
                found = [*_complaints(store)]
                raise UndoneError
            assert len(found) == 1, found
            assert re.search(complaint, found[0])
        counts = store._query("SELECT counts FROM tally WHERE survey = ? AND epoch = 10", keys[KEPT.fingerprint])
        with store._writing():
            changed = bytes(counts[0][0])[::-1]
            store._query("UPDATE tally SET counts = ? WHERE survey = ? AND epoch = 10", changed, keys[KEPT.fingerprint])
        assert [problem for problem in store.check(deep=True) if "do not give the tally" in problem]
        assert store.check(deep=False) == []


class UndoneError(Exception):
    """Leave a transaction without its changes."""


def _complaints(store: SqliteStore | PostgresStore) -> Iterator[str]:
    """The checks inside a transaction that is open already."""
    reading, store._reading = store._reading, nullcontext  # type: ignore[method-assign]
    store._entries.clear()
    try:
        yield from complaints(store, deep=True)
    finally:
        store._reading = reading  # type: ignore[method-assign]


# -- forgetting ------------------------------------------------------------------------------------------


def contents(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.iterdir()))


def test_closed_epochs_leave_no_id_in_the_file(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store.db") as store:
        for survey in (DAILY, BIG):
            people = crowd(survey, 400)
            store.publish(survey)
            store.add([people.batch(survey, 10)])
            # All but those that lie across the end of a page.
            assert sum(bytes(id) in contents(tmp_path) for id in people.ids) > 390
            store.close_epoch(survey.fingerprint, 10)
            assert sum(bytes(id) in contents(tmp_path) for id in people.ids) == 0
        assert not any(bytes(raw) in contents(tmp_path) for raw in crowd(BIG, 400).answers)


@pytest.mark.parametrize("by", ["the next process", "housekeeping"])
def test_an_interrupted_closing_is_finished(durable_url: str, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    for kind in (SqliteStore, PostgresStore):
        monkeypatch.setattr(kind, "_sweep", lambda _: None)
    with open_store(durable_url) as store:
        for survey in (DAILY, KEPT):
            store.publish(survey)
            store.add([crowd(survey, 50).batch(survey, 10)])
            store.close_epoch(survey.fingerprint, 10)
        assert ["still there" in problem for problem in store.check()] == [True, True]
        monkeypatch.undo()
        if by == "housekeeping":
            store.forget_ids(0)
            assert store.check() == []
    with open_store(durable_url) as store:
        assert store.check() == []
        assert sum(len(batch.ids) for batch in store.reports(KEPT.fingerprint)) == 50


def test_a_reader_does_not_hold_up_closing(postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store, PostgresStore(postgres_url) as reader:
        store.publish(DAILY)
        store.add([PEOPLE.batch(DAILY, 10)])
        with reader._reading():
            assert reader._remembered(reader._entry(NAME), 10) == 400
            assert store.close_epoch(NAME, 10).n == 400
            assert store.add([PEOPLE.batch(DAILY, 10)]) == [Added(closed=True)]
        store.close_epoch(NAME, 10)
        assert store.check() == []

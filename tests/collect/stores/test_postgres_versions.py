"""Every supported PostgreSQL: it counts once, and neither rows nor their numbers nor dead ones tell an order."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deniable.collect.stores import Added, Store, StoreError, open_store, restore_store
from deniable.collect.stores.batches import rows
from deniable.collect.stores.postgres import PostgresStore
from tests.collect.postgres import OLDEST, VERSIONS, MissingPostgres, PostgresServer, programs
from tests.collect.server.live import eventually, in_thread
from tests.collect.stores.test_machine import told
from tests.collect.stores.test_order import POOLS, collected, share_ascending
from tests.collect.surveys import crowd, current, daily, mixed, text

DAILY = daily()
PEOPLE = crowd(DAILY, 300, seed=3)


def test_a_version_that_is_missing_is_named() -> None:
    with pytest.raises(MissingPostgres, match="no PostgreSQL 9 here"):
        programs(9)
    assert min(VERSIONS) == OLDEST


def test_the_version_is_the_one_asked_for(each_postgres: PostgresServer, request: pytest.FixtureRequest) -> None:
    with open_store(each_postgres.new_database()) as opened:
        store: Any = opened
        ((number,),) = store._query("SELECT current_setting('server_version_num')::int / 10000")
    assert number in VERSIONS
    assert f"[{number}]" in request.node.name


def test_a_short_story(each_postgres: PostgresServer) -> None:
    def fresh() -> Any:
        url = each_postgres.new_database()
        return lambda shard: open_store(url, shard)

    told(fresh)


def test_reports_are_kept_deleted_and_dropped(each_postgres: PostgresServer, tmp_path: Path) -> None:
    survey = text(retention="reports")
    people = crowd(survey, 90, seed=2)
    with open_store(each_postgres.new_database()) as store:
        store.publish(survey)
        assert store.add([people.batch(survey, 10)]) == [Added(90, 0)]
        assert store.delete(survey.fingerprint, people.ids[7].tobytes())
        assert not store.delete(survey.fingerprint, people.ids[7].tobytes())
        assert store.add([people.batch(survey, 10)]) == [Added(0, 90)]
        store.tidy()
        assert store.check() == []
        store.backup(tmp_path / "copy.db")
        assert store.close_epoch(survey.fingerprint, 10).n == 89
        assert sum(len(batch.ids) for batch in store.reports(survey.fingerprint)) == 89
        assert store.drop_reports(survey.fingerprint, 10, 10) == 89
        assert store.check() == []
        store.delete_survey(survey.fingerprint)
        assert (store.deleted(), store.check()) == ([survey.fingerprint], [])
    with open_store(f"sqlite:///{tmp_path / 'copy.db'}") as copy:
        assert copy.add([people.batch(survey, 10)]) == [Added(0, 90)]
        assert copy.check() == []
    restored = each_postgres.new_database()
    restore_store(tmp_path / "copy.db", restored)
    with open_store(restored, read_only=True) as reader:
        assert reader.check() == []
        with pytest.raises(StoreError, match="read-only"):
            reader.close_epoch(survey.fingerprint, 10)
    with open_store(restored) as store:
        assert store.add([people.batch(survey, 10)]) == [Added(0, 90)]
        assert sum(len(batch.ids) for batch in store.reports(survey.fingerprint)) == 89


# -- order -----------------------------------------------------------------------------------------


def test_another_order_leaves_the_same_rows(each_postgres: PostgresServer, tmp_path: Path) -> None:
    """Of all tables, before and after closing, and the rows that ids are kept in."""
    assert [len(pool) for pool in POOLS] == [60, 60, 60]
    first, second = (collected(lambda _: open_store(each_postgres.new_database()), tmp_path, seed) for seed in (1, 2))
    same = first == second
    assert same


@pytest.fixture(scope="module")
def one_by_one(each_postgres: PostgresServer) -> Iterator[Any]:
    """A store whose submissions came each for itself."""
    with open_store(each_postgres.new_database()) as store:
        add_one_by_one(store)
        yield store


def add_one_by_one(store: Store) -> None:
    store.publish(DAILY)
    for place in range(len(PEOPLE)):
        store.add([PEOPLE[[place]].batch(DAILY, 10)])


def rows_of_ids(store: Any, order: str) -> list[list[int]]:
    """For each row, in this order of rows, when each of its ids came."""
    arrived = {bytes(id): place for place, id in enumerate(PEOPLE.ids)}
    found = store._query(f"SELECT ids FROM seen_1_10 ORDER BY {order}")
    return [[arrived[ids[at : at + 16]] for at in range(0, len(ids), 16)] for (ids,) in found]


@pytest.mark.parametrize("order", ["ctid", "xmin::text::bigint", "cmin::text::bigint", "xmax::text::bigint"])
def test_rows_and_their_numbers_tell_no_order(one_by_one: Any, order: str) -> None:
    """A row holds many ids, sorted by their bytes, of a period in which others came as well.

    Half of a pool being the first or the last that came has a chance of 2 in 240! / 120!^2.
    """
    rows = rows_of_ids(one_by_one, order)
    assert sorted(place for row in rows for place in row) == list(range(300))
    ids = [bytes(id) for id in PEOPLE.ids]
    for row in rows:
        assert len(row) >= 120
        assert [ids[place] for place in row] == sorted(ids[place] for place in row)
        assert max(row) - min(row) >= len(row)


def test_a_row_per_commit_would_tell_the_order(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The power of the test above: with no pool to speak of, the numbers of transactions tell who came when."""
    monkeypatch.setattr("deniable.collect.stores.postgres.ServerRuns.pool", 1)
    monkeypatch.setattr("deniable.collect.stores.batches.RATIO", 1000)
    with open_store(postgres_server.new_database()) as store:
        add_one_by_one(store)
        (*places,) = (place for row in rows_of_ids(store, "xmin::text::bigint") for place in row)
        assert sum(abs(place - arrived) for arrived, place in enumerate(places)) / 300 < 5


class RowPerReport(PostgresStore):
    """Keeps each report in a row of its own."""

    def _keep(self, entry: Any, epoch: int, ids: Any, answers: Any) -> None:
        found = zip(rows(ids), rows(answers), strict=True)
        self._put_report_rows(entry, epoch, [(id, 128, id + raw) for id, raw in found])


def shares_of_reports(store: Any, *orders: str) -> list[float]:
    """Of neighbours among 200 kept reports, in each of these orders of rows, how many are in the order of arrival.

    In a random order that has a standard deviation of 1 / sqrt(12 n), .02.
    """
    survey = mixed(retention="reports")
    people = crowd(survey, 200, seed=4)
    arrived, width = {bytes(id): place for place, id in enumerate(people.ids)}, 16 + survey.report_bytes
    store.publish(survey)
    for place in range(200):
        store.add([people[[place]].batch(survey, 10)])
    store.tidy()
    shares = []
    for order in orders:
        found = b"".join(raw for (raw,) in store._query(f"SELECT records FROM report_1_10 ORDER BY {order}"))
        shares.append(share_ascending([arrived[found[at : at + 16]] for at in range(0, len(found), width)]))
    return shares


def test_rows_of_reports_tell_no_order(each_postgres: PostgresServer) -> None:
    with open_store(each_postgres.new_database()) as store:
        physical, of_transactions = shares_of_reports(store, "ctid", "xmin::text::bigint")
    assert 0.35 < physical < 0.65
    assert 0.35 < of_transactions < 0.65


def test_a_row_per_report_would_tell_the_order(postgres_server: PostgresServer) -> None:
    with RowPerReport(postgres_server.new_database()) as store:
        (share,) = shares_of_reports(store, "xmin::text::bigint")
    assert share > 0.9


def versions_on_disk(store: Any, server: PostgresServer, table: str) -> int:
    """How many versions of rows lie in the pages of a table, dead or alive; -1 if it is being written anew."""
    store._query("CHECKPOINT")
    ((path,),) = store._query("SELECT pg_relation_filepath(?)", table)
    try:
        content, found = (server._data / path).read_bytes(), 0
    except FileNotFoundError:
        return -1
    for page in range(0, len(content), 8192):
        (end,) = struct.unpack_from("<H", content, page + 12)
        items = struct.unpack_from(f"<{(end - 24) // 4}I", content, page + 24) if end > 24 else ()
        found += sum(item >> 15 & 3 == 1 for item in items)
    return found


def test_tidying_leaves_no_earlier_version_of_a_row(one_by_one: Any, each_postgres: PostgresServer) -> None:
    # What is to be removed is there, or this would show nothing.
    one_by_one._query("UPDATE seen_1_10 SET ids = ids WHERE run = 0")
    assert versions_on_disk(one_by_one, each_postgres, "pool_1_10") > 1
    one_by_one.tidy()
    for table in ("pool_1_10", "run_1_10", "tally"):
        assert versions_on_disk(one_by_one, each_postgres, table) == 1
    assert one_by_one.add([PEOPLE.batch(DAILY, 10)]) == [Added(0, 300)]


# -- free space ------------------------------------------------------------------------------------


def copies_on_disk(store: Any, server: PostgresServer, tables: str, ids: Any) -> list[int]:
    """How often each id lies in the files of tables and of what belongs to them, in use or not."""
    store._query("CHECKPOINT")
    found = f"SELECT oid FROM pg_class WHERE relname ~ '{tables}'"
    parts = f"SELECT indexrelid FROM pg_index WHERE indrelid IN ({found})"
    toast = f"SELECT reltoastrelid FROM pg_class WHERE oid IN ({found})"
    paths = store._query(
        f"SELECT pg_relation_filepath(oid) FROM pg_class WHERE oid IN ({found} UNION {parts} UNION {toast})"
    )
    content = b"\n".join((server._data / path).read_bytes() for (path,) in paths if path is not None)
    return [content.count(id.tobytes()) for id in ids]


@pytest.fixture
def keeps_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written anew."""
    monkeypatch.setattr(PostgresStore, "_write_anew", lambda self, table: None)


def left_of_ids(store: Any, server: PostgresServer) -> int:
    """Most copies of an id after tidying; one is right. The first of a run is in its row and in the index as well."""
    store.tidy()
    first = {bytes(id) for (id,) in store._query("SELECT first FROM seen_1_10")}
    others = [id for id in PEOPLE.ids if bytes(id) not in first]
    counts = copies_on_disk(store, server, "^(seen|pool|run)_1_10$", others)
    assert min(counts) >= 1
    assert store.add([PEOPLE.batch(DAILY, 10)]) == [Added(0, 300)]
    return max(counts)


def test_free_space_holds_no_earlier_pool(one_by_one: Any, each_postgres: PostgresServer) -> None:
    assert left_of_ids(one_by_one, each_postgres) == 1


@pytest.mark.usefixtures("keeps_bytes")
def test_free_space_would_hold_earlier_pools(postgres_server: PostgresServer) -> None:
    with open_store(postgres_server.new_database()) as store:
        add_one_by_one(store)
        assert left_of_ids(store, postgres_server) > 1


def left_of_reports(server: PostgresServer) -> list[int]:
    """Most copies of a kept report's id, before and after closing; afterwards it is also opened again."""
    survey = mixed(retention="reports")
    people = crowd(survey, 100, seed=4)
    with open_store(server.new_database()) as opened:
        store: Any = opened
        store.publish(survey)
        for place in range(99):
            store.add([people[[place]].batch(survey, 10)])
        store.tidy()
        found = [max(copies_on_disk(store, server, "^report_1_10$", people.ids[:99]))]
        for _ in range(2):
            store.close_epoch(survey.fingerprint, 10, forget=2e9)
            found.append(max(copies_on_disk(store, server, "^report_1_10$", people.ids[:99])))
            store.reopen_epoch(survey.fingerprint, 10)
            store.add([people[[99]].batch(survey, 10)])
        assert store.check() == []
    return found


def test_free_space_holds_no_earlier_reports_once_the_epoch_has_closed(each_postgres: PostgresServer) -> None:
    before, closed, closed_again = left_of_reports(each_postgres)
    assert before > 1
    assert (closed, closed_again) == (1, 1)


@pytest.mark.usefixtures("keeps_bytes")
def test_free_space_would_hold_earlier_reports(postgres_server: PostgresServer) -> None:
    assert min(left_of_reports(postgres_server)) > 1


# -- the log ---------------------------------------------------------------------------------------


def in_log(server: PostgresServer) -> int:
    """How many of ten ids are found in the log."""
    log = server.log
    return sum(id.tobytes() in log for id in PEOPLE.ids[::30])


def test_the_log_is_gone_after_a_switch_and_a_checkpoint(one_by_one: Any, each_postgres: PostgresServer) -> None:
    """Which the server does by itself: `archive_timeout` and `checkpoint_timeout` in deploy/compose.yaml."""
    one_by_one.add([PEOPLE.batch(DAILY, 11)])
    assert in_log(each_postgres) == 10
    one_by_one._query("SELECT pg_switch_wal()")
    one_by_one._query("CHECKPOINT")
    assert in_log(each_postgres) == 0


def test_a_log_that_is_used_again_would_tell(postgres_server: PostgresServer) -> None:
    del postgres_server  # only to skip where there is none
    with PostgresServer(wal_recycle="on") as server, open_store(server.new_database()) as opened:
        store: Any = opened
        store.publish(DAILY)
        store.add([PEOPLE.batch(DAILY, 10)])
        store._query("SELECT pg_switch_wal()")
        store._query("CHECKPOINT")
        assert in_log(server) == 10


@pytest.mark.faults
def test_the_log_goes_by_itself(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a service that notes the time, as it does every ten minutes: the last commits are not there for ever."""
    del postgres_server
    monkeypatch.setattr("deniable.collect.server.service.NOTE_SECONDS", 5.0)
    with (
        PostgresServer(archive_timeout=1, checkpoint_timeout=30) as server,
        in_thread(server.new_database(), DAILY, tidy_seconds=1.0) as live,
    ):
        assert live.send(DAILY, current(DAILY), PEOPLE).json["accepted"] == 300
        assert in_log(server) == 10
        eventually(lambda: in_log(server) == 0, 100)


def test_tidying_that_fails_is_told(one_by_one: Any) -> None:
    """PostgreSQL itself only warns of a table that it may not vacuum."""
    one_by_one._query("CREATE ROLE reader")
    one_by_one._query("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    one_by_one._query("SET ROLE reader")
    try:
        with pytest.raises(StoreError, match=r"does not vacuum.*tally") as failed:
            one_by_one.tidy()
        assert failed.value.code == "01000"
        assert any("01000" in problem for problem in one_by_one.check())
    finally:
        one_by_one._query("RESET ROLE")
        one_by_one.tidy()
        one_by_one._query("DROP OWNED BY reader")
        one_by_one._query("DROP ROLE reader")

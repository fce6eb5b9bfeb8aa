"""Ids in sorted runs: each is new once, whoever sends it, however runs are merged."""

from __future__ import annotations

import random
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable.collect.stores import Added, Batch, Store, batches, open_store
from deniable.collect.stores.postgres import ServerRuns
from deniable.collect.stores.sqlite import FileRuns, SqliteStore
from tests.collect.postgres import in_memory
from tests.collect.server.live import eventually
from tests.collect.surveys import crowd, daily

DAILY = daily()
NAME = DAILY.fingerprint


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many merges within some hundred ids, and connections that have more to read than one commit may."""
    monkeypatch.setattr(batches, "RATIO", 3)
    monkeypatch.setattr(batches, "READ", 40)
    for table in (FileRuns, ServerRuns):
        for name, value in {"pool": 8, "chunk": 5, "split": 60, "largest": 12}.items():
            monkeypatch.setattr(table, name, value)


def strange_ids() -> list[bytes]:
    """Ids that somebody made up: neighbours, and with zeros at either end."""
    ends = [bytes(16), bytes(15) + b"\1", b"\1" + bytes(15), b"\xff" * 16, b"\xff" * 15 + b"\0"]
    return [*ends, *(b"same beginning" + place.to_bytes(2, "big") for place in range(0, 600, 7))]


def collect(stores: list[Store], seed: int) -> None:
    """Submissions by several connections, half of them known: as a set would have it."""
    chance, known = random.Random(seed), set[bytes]()
    pool = [*strange_ids(), *(chance.randbytes(16) for _ in range(700))]
    for _ in range(60):
        chosen = chance.sample(pool, chance.choice([1, 3, 40]))
        ids = np.frombuffer(b"".join(chosen), dtype=np.uint8).reshape(-1, 16)
        batch = Batch(NAME, 10, ids, np.zeros((len(ids), 1), dtype=np.uint8))
        fresh = set(chosen) - known
        assert chance.choice(stores).add([batch]) == [Added(len(fresh), len(chosen) - len(fresh))]
        known |= fresh
    assert len(known) > 400
    assert stores[0].check() == []


@pytest.fixture
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[[int], Store]]:
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        yield lambda shard: open_store(url, shard)
        return
    with tempfile.TemporaryDirectory(dir=in_memory()) as name:
        yield lambda shard: SqliteStore(Path(name, "store.db"), shard)


@pytest.mark.parametrize("connect", ["sqlite", "postgres"], indirect=True)
def test_each_id_is_new_once(connect: Callable[[int], Store]) -> None:
    with connect(0) as one, connect(1) as two:
        one.publish(DAILY)
        collect([one, two], seed=5)


class ForgetsOthers(batches.SortedRuns):
    """Never reads what another connection wrote."""

    def catch_up(self, most: int | None = None) -> int:
        return super().catch_up(most) if self._version is None else 0


class ForgetsRuns(batches.SortedRuns):
    """Takes what is in no pool for new."""

    def _known(self, ids: Any) -> Any:
        return batches.found(self._pool, ids)


class LooksInOneRun(batches.SortedRuns):
    """Of runs that share a filter, asks the table for the last one only."""

    def _remember(self, run: int, ids: Any) -> None:
        super()._remember(run, ids)
        for filter in self._filters:
            filter.runs = {run} if run in filter.runs else filter.runs


@pytest.mark.parametrize("broken", [ForgetsOthers, ForgetsRuns, LooksInOneRun])
@pytest.mark.parametrize("connect", ["sqlite"], indirect=True)
def test_broken_runs_are_caught(
    connect: Callable[[int], Store], monkeypatch: pytest.MonkeyPatch, broken: type[batches.SortedRuns]
) -> None:
    monkeypatch.setattr("deniable.collect.stores.sql.SortedRuns", broken)
    with connect(0) as one, connect(1) as two:
        one.publish(DAILY)
        with pytest.raises(AssertionError):
            collect([one, two], seed=5)


@pytest.mark.parametrize("connect", ["sqlite", "postgres"], indirect=True)
def test_a_commit_reads_few_ids_of_others(connect: Callable[[int], Store], monkeypatch: pytest.MonkeyPatch) -> None:
    """However many another connection has stored meanwhile: everybody waits for a commit, nobody for reading."""
    read = dict.fromkeys(("in all", "in one commit"), 0)
    people = crowd(DAILY, 3_000)
    with connect(0) as one, connect(1) as two:
        own: Any = two
        table = FileRuns if isinstance(two, SqliteStore) else ServerRuns
        plainly, claim = table.read, own._claim

        def counted(self: Any, run: int) -> list[bytes]:
            rows: list[bytes] = plainly(self, run)
            read["in all"] += sum(map(len, rows)) // 16
            return rows

        def measured(*arguments: Any) -> Any:
            before = read["in all"]
            try:
                return claim(*arguments)
            finally:
                read["in one commit"] = max(read["in one commit"], read["in all"] - before)

        one.publish(DAILY)
        two.add([people[:10].batch(DAILY, 10)])
        for at in range(10, 2_900, 170):
            one.add([people[at : at + 170].batch(DAILY, 10)])
        monkeypatch.setattr(table, "read", counted)
        monkeypatch.setattr(two, "_claim", measured)
        assert two.add([people[2_800:].batch(DAILY, 10)]) == [Added(100, 100)]
        assert read["in all"] > 1_500
        # As many as `READ`, the run that goes beyond, the pool, and the runs that the commit itself merges.
        assert read["in one commit"] < 400
        assert two.check() == []


def test_a_connection_that_is_always_behind_gets_its_turn() -> None:
    table, numbers = InMemory(), np.random.default_rng(3)
    runs = batches.SortedRuns(table)

    def ids(n: int) -> Any:
        return np.sort(np.frombuffer(numbers.bytes(16 * n), dtype="S16"))

    for turn in range(batches.TURNS + 1):
        for _ in range(5):  # what others write
            table.write(numbers.integers(1, 1 << 60), batches.chunks(ids(30), 64))
        runs.undone()
        if turn < batches.TURNS:
            with pytest.raises(batches.BehindError):
                runs.claim(ids(3))
    assert runs.claim(ids(3)).all()


def test_workers_that_wait_for_each_other_see_each_others_ids(postgres_url: str) -> None:
    """Whatever isolation the database has by default: what the first commits, the second must know."""
    people = crowd(DAILY, 50)
    with open_store(postgres_url) as opened:
        store: Any = opened
        store.publish(DAILY)
        store.add([people[:1].batch(DAILY, 10)])
        name = postgres_url.partition("@/")[2].partition("?")[0]
        store._query(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
        found: list[Added] = []

        def work(shard: int) -> None:
            with open_store(postgres_url, shard) as own:
                found.extend(own.add([people.batch(DAILY, 10)]))

        waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = ?"
        threads = [threading.Thread(target=work, args=(shard,)) for shard in (1, 2)]
        with store._writing():
            store._hold(store._entry(NAME), 10)
            for thread in threads:
                thread.start()
            with open_store(postgres_url) as watching:
                other: Any = watching
                eventually(lambda: other._query(waiting, name) == [(2,)])
        for thread in threads:
            thread.join()
        assert sorted(one.fresh for one in found) == [0, 49]
        assert store.check() == []


class InMemory(batches.RunTable):
    """A table of runs that notes how many ids one commit moves."""

    pool, chunk, split, largest = 64, 64, 1024, 512

    def __init__(self) -> None:
        self.kept: dict[int, list[bytes]] = {}
        self.moved = 0

    def version(self) -> object:
        return 0

    def runs(self) -> set[int]:
        return set(self.kept) - {batches.POOL}

    def read(self, run: int) -> list[bytes]:
        return self.kept.get(run, [])

    def known(self, pairs: Any) -> set[bytes]:
        return {id for id, run in pairs if any(id in raw for raw in self.kept[run])}

    def drop(self, run: int) -> None:
        del self.kept[run]

    def write(self, run: int, chunks: Any) -> None:
        self.kept[run] = [raw for _, raw in chunks]
        self.moved += sum(map(len, self.kept[run])) // 16

    def write_pool(self, ids: bytes) -> object:
        self.kept[batches.POOL] = [ids]
        return 0


def test_a_commit_waits_for_a_short_merge_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """60,000 ids of which one commit never moves more than some 2,000: the sizes are a 16th of those of a store."""
    monkeypatch.undo()
    monkeypatch.setattr(batches, "MERGED", 4096)
    table, most, numbers = InMemory(), 0, np.random.default_rng(2)
    runs = batches.SortedRuns(table)
    for _ in range(600):
        table.moved = 0
        assert runs.claim(np.sort(np.frombuffer(numbers.bytes(1600), dtype="S16"))).all()
        most = max(most, table.moved)
    assert sum(len(raw) for kept in table.kept.values() for raw in kept) == 600 * 1600
    assert most <= 2 * 4096
    assert len(table.kept) < 300

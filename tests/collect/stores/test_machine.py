"""Both databases against the store in memory, step by step: the same answers, the same integers.

A machine draws batches with new and repeated ids, two connections, closings, reopenings, deletions and copies, and
compares everything that can be read after each step.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from deniable.collect.stores import Added, Store, StoreError, open_store
from deniable.collect.stores.batches import EpochGroup, Flags
from deniable.collect.stores.sqlite import SqliteStore
from deniable.surveys import Survey
from tests.collect.postgres import PostgresServer, in_memory
from tests.collect.stores.memory import MemoryStore
from tests.collect.surveys import crowd, daily, mixed, text

SURVEYS = [daily(), mixed(retention="reports"), text(cells=256, cohorts=33)]
POOLS = [crowd(survey, 24, seed) for seed, survey in enumerate(SURVEYS)]

which = st.integers(0, len(SURVEYS) - 1)
epochs = st.integers(9, 11)
parts = st.tuples(which, epochs, st.lists(st.integers(0, 23), max_size=12))
refusals = st.dictionaries(
    st.tuples(which, st.integers(0, 2), st.sampled_from(["a", "b"])), st.integers(1, 5), max_size=2
)

Part = tuple[int, int, list[int]]


def seen_of(store: Store, survey: Survey) -> list[object]:
    """Everything that can be read of a survey."""
    name = survey.fingerprint
    kept = [
        (b.epoch, bytes(id), bytes(raw)) for b in store.reports(name) for id, raw in zip(b.ids, b.answers, strict=True)
    ]
    known = [store.epochs(name), store.duplicates(name), store.rejections(name)]
    return [*known, store.tally(name).spec(), store.tally(name, 10, 10).spec(), kept]


class Machine(RuleBasedStateMachine):
    """`fresh()` makes a store and says how a worker opens it, given its shard."""

    def __init__(self, fresh: Callable[[], Callable[[int], Store]]) -> None:
        super().__init__()
        self.make = fresh()
        self.stores = [self.make(0), self.make(1)]
        self.model = MemoryStore()
        self.accepted: set[tuple[int, int, int]] = set()
        self.deleted = 0
        self.last: list[Part] = []
        self.directory = Path(tempfile.mkdtemp())

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        shutil.rmtree(self.directory)

    @initialize()
    def published(self) -> None:
        for survey in SURVEYS:
            assert self.stores[0].publish(survey)
            assert self.model.publish(survey)

    @rule(survey=which, by=st.integers(0, 1))
    def publish_again(self, survey: int, by: int) -> None:
        assert not self.stores[by].publish(SURVEYS[survey])

    @rule(content=st.lists(parts, max_size=4), by=st.integers(0, 1), refused=refusals)
    def add(self, content: list[Part], by: int, refused: dict[tuple[int, int, str], int]) -> None:
        batches = [POOLS[survey][ids].batch(SURVEYS[survey], epoch) for survey, epoch, ids in content]
        rejected = {(SURVEYS[survey].fingerprint, day, why): n for (survey, day, why), n in refused.items()}
        answer = self.stores[by].add(batches, rejected)
        assert answer == self.model.add(batches, rejected)
        for (survey, epoch, ids), added in zip(content, answer, strict=True):
            assert added == Added(closed=True) or added.fresh + added.duplicates == len(ids)
            if not added.closed:
                self.accepted |= {(survey, epoch, id) for id in ids}
        self.last = content

    @rule(by=st.integers(0, 1))
    def replay(self, by: int) -> None:
        self.add(self.last, by, {})

    @rule(survey=which, place=st.integers(0, 5), by=st.integers(0, 1))
    def delete(self, survey: int, place: int, by: int) -> None:
        """One of the first that were counted, perhaps for the second time, or one that never was."""
        known = sorted({person for one, _, person in self.accepted if one == survey})
        person = known[place % len(known)] if known else place
        id = POOLS[survey].ids[person].tobytes()
        deleted = self.stores[by].delete(SURVEYS[survey].fingerprint, id)
        assert deleted == self.model.delete(SURVEYS[survey].fingerprint, id)
        self.deleted += deleted

    @rule(survey=which, epoch=epochs, by=st.integers(0, 1))
    def close_epoch(self, survey: int, epoch: int, by: int) -> None:
        name = SURVEYS[survey].fingerprint
        assert self.stores[by].close_epoch(name, epoch) == self.model.close_epoch(name, epoch)

    @rule(survey=which, epoch=epochs, by=st.integers(0, 1), days=st.integers(1, 3))
    def close_for_now(self, survey: int, epoch: int, by: int, days: int) -> None:
        name = SURVEYS[survey].fingerprint
        assert self.stores[by].close_epoch(name, epoch, days) == self.model.close_epoch(name, epoch, days)

    @rule(survey=which, epoch=epochs, by=st.integers(0, 1))
    def reopen_epoch(self, survey: int, epoch: int, by: int) -> None:
        name = SURVEYS[survey].fingerprint
        try:
            expected = self.model.reopen_epoch(name, epoch)
        except StoreError as error:
            with pytest.raises(StoreError, match=str(error)):
                self.stores[by].reopen_epoch(name, epoch)
        else:
            assert self.stores[by].reopen_epoch(name, epoch) == expected

    @rule(survey=which, span=st.tuples(epochs, epochs), by=st.integers(0, 1))
    def drop_reports(self, survey: int, span: tuple[int, int], by: int) -> None:
        name = SURVEYS[survey].fingerprint
        try:
            expected = self.model.drop_reports(name, *span)
        except StoreError as error:
            with pytest.raises(StoreError, match=str(error)):
                self.stores[by].drop_reports(name, *span)
        else:
            assert self.stores[by].drop_reports(name, *span) == expected

    @rule(days=st.integers(0, 3), by=st.integers(0, 1))
    def forget_ids(self, days: int, by: int) -> None:
        self.stores[by].forget_ids(days)
        self.model.forget_ids(days)

    @rule(survey=which, by=st.integers(0, 1))
    def close_survey(self, survey: int, by: int) -> None:
        self.stores[by].close_survey(SURVEYS[survey].fingerprint)
        self.model.close_survey(SURVEYS[survey].fingerprint)

    @rule(by=st.integers(0, 1))
    def tidy(self, by: int) -> None:
        self.stores[by].tidy()

    @rule(by=st.integers(0, 1))
    def reopen(self, by: int) -> None:
        self.stores[by].close()
        self.stores[by] = self.make(by)

    @rule()
    def copy(self) -> None:
        self.stores[0].backup(self.directory / "copy.db")
        with SqliteStore(self.directory / "copy.db") as copy:
            self.compare(copy)

    @invariant()
    def same_as_the_model(self) -> None:
        if self.model.surveys():
            for store in self.stores:
                self.compare(store)
            counted = [epoch.n for survey in SURVEYS for epoch in self.stores[0].epochs(survey.fingerprint)]
            assert sum(counted) + self.deleted == len(self.accepted)

    def compare(self, store: Store) -> None:
        assert store.surveys() == self.model.surveys()
        for survey in SURVEYS:
            for what, (ours, theirs) in enumerate(
                zip(seen_of(store, survey), seen_of(self.model, survey), strict=True)
            ):
                same = ours == theirs  # not in the assertion: pytest would explain thousands of counters
                assert same, f"survey {survey.name}, reading {what}"
        assert store.check() == []


def run(fresh: Callable[[], Callable[[int], Store]], **changes: Any) -> None:
    chosen = settings(**{"stateful_step_count": 15, "deadline": None} | changes)
    run_state_machine_as_test(lambda: Machine(fresh), settings=chosen)


@pytest.fixture(autouse=True)
def _few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are read five at a time, and rows and runs are small, so that all of it happens in a short run."""
    for name, value in {
        "batches.MOST": 5,
        "sql.ROW_RECORDS": 3,
        "sql.ROW_BYTES": 50,
        "batches.RATIO": 2,
        **{
            f"{table}.{name}": value
            for table in ("sqlite.FileRuns", "postgres.ServerRuns")
            for name, value in {"pool": 2, "chunk": 2, "largest": 16}.items()
        },
    }.items():
        monkeypatch.setattr(f"deniable.collect.stores.{name}", value)


def files(directory: Path, kind: type[SqliteStore]) -> Callable[[], Callable[[int], Store]]:
    def fresh() -> Callable[[int], Store]:
        path = Path(tempfile.mkdtemp(dir=directory)) / "store.db"
        return lambda shard: kind(path, shard)

    return fresh


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: thousands of commits here, and no power cut."""
    with tempfile.TemporaryDirectory(dir=in_memory() or tmp_path) as name:
        yield Path(name)


MANY = pytest.param(16, marks=pytest.mark.slow)


@pytest.mark.parametrize("examples", [8, MANY])
def test_sqlite(directory: Path, examples: int) -> None:
    run(files(directory, SqliteStore), max_examples=examples)


@pytest.mark.parametrize("examples", [3, MANY])
def test_postgres(postgres_server: PostgresServer, examples: int) -> None:
    def fresh() -> Callable[[int], Store]:
        for url in used:
            postgres_server.drop_database(url)
        used[:] = [postgres_server.new_database()]
        return lambda shard: open_store(used[0], shard)

    used: list[str] = []
    run(fresh, max_examples=examples)


def test_a_closed_epoch_without_ids_takes_nothing_from_others(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_database()
    machine = Machine(lambda: lambda shard: open_store(url, shard))
    machine.published()
    machine.close_for_now(survey=0, epoch=9, by=0, days=1)
    machine.add(content=[(0, 9, [1]), (1, 9, [2, 3])], by=0, refused={})
    machine.same_as_the_model()
    machine.teardown()


class CountsTwice(SqliteStore):
    """Takes every submission for new."""

    def _claim(self, entry: Any, group: EpochGroup) -> Flags:
        known = super()._claim(entry, group)
        return known | True


class ForgetsTooEarly(SqliteStore):
    """Closes an epoch without refusing what comes later."""

    def _state(self, entry: Any, epoch: int) -> str:
        super()._state(entry, epoch)
        return "open"


class OneShard(SqliteStore):
    """Reads the tally of the first shard only."""

    def _query(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return super()._query(
            sql.replace("SELECT epoch, shard FROM tally WHERE", "SELECT epoch, shard FROM tally WHERE shard = 0 AND"),
            *parameters,
        )


def told(fresh: Callable[[], Callable[[int], Store]]) -> None:
    """A short story with two workers, a repeat and a closed epoch."""
    machine = Machine(fresh)
    try:
        machine.published()
        for step in (
            lambda: machine.add([(0, 10, [1, 2, 3]), (1, 10, [4, 5])], 0, {}),
            lambda: machine.add([(0, 10, [3, 7]), (1, 11, [6])], 1, {}),
            lambda: machine.replay(0),
            lambda: machine.close_epoch(0, 10, 0),
            lambda: machine.add([(0, 10, [8])], 1, {}),
        ):
            step()
            machine.same_as_the_model()
    finally:
        machine.teardown()


@pytest.mark.parametrize("kind", [CountsTwice, ForgetsTooEarly, OneShard])
def test_broken_stores_are_caught(directory: Path, kind: type[SqliteStore]) -> None:
    told(files(directory, SqliteStore))
    with pytest.raises(AssertionError):
        told(files(directory, kind))

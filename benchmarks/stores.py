"""Ingest into the stores: submissions a second that are counted once and on the disk, in batches of 1,000.

SQLite      a new epoch each round, and one that holds a million ids already, where new ids touch more pages
PostgreSQL  one process, two that share the same work, and one that tidies in the end; fsync is on
Files       appended to a log, then made into parts, then tallied once per id
Memory      the same counting with nothing kept, for comparison
"""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.registry import Case, Size, Task, UnavailableError, at_least, at_most, benchmark, cost, faster, seconds
from deniable.collect.stores import Batch, Store, open_store
from deniable.files import count_files
from tests.collect.postgres import MissingPostgres, PostgresServer
from tests.collect.stores.memory import MemoryStore
from tests.collect.surveys import crowd, plain

PER_BATCH = 1000
SURVEY = plain()
ANSWERS = crowd(SURVEY, PER_BATCH).answers


def add(store: Store, epoch: int, batches: int) -> None:
    """Batches with new ids, one commit each."""
    for _ in range(batches):
        ids = np.frombuffer(os.urandom(16 * PER_BATCH), dtype=np.uint8).reshape(-1, 16)
        store.add([Batch(SURVEY.fingerprint, epoch, ids, ANSWERS)])


def opened(url: str, shard: int = 0) -> Store:
    store = open_store(url, shard)
    store.publish(SURVEY)
    return store


@benchmark("ingest-sqlite", "Durable ingest into SQLite in batches of 1,000 submissions", group="service")
def sqlite(size: Size) -> Case:
    directory = Path(tempfile.mkdtemp(prefix="deniable-bench-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    batches, before = size(50, 10), size(1000, 50)
    stores: dict[str, Store] = {name: opened(f"sqlite:///{directory / name}.db") for name in ("new", "full")}
    stores["memory"] = MemoryStore()
    stores["memory"].publish(SURVEY)
    add(stores["full"], 0, before)
    epochs = itertools.count(1)

    def into(name: str, epoch: int | None = None) -> Task:
        def once() -> float:
            place = next(epochs) if epoch is None else epoch
            start = time.perf_counter()
            add(stores[name], place, batches)
            return time.perf_counter() - start

        return Task(once, batches * PER_BATCH, "submission")

    full = f"SQLite, {before * PER_BATCH:,} ids before"
    tasks = {"SQLite, new epoch": into("new"), full: into("full", 0), "memory": into("memory")}
    return Case(
        tasks,
        [
            seconds("SQLite, new epoch", at_most(1 / 50_000)),
            cost(full, of="SQLite, new epoch"),
            cost("SQLite, new epoch", of="memory"),
        ],
    )


@benchmark("ingest-files", "Durable ingest into files in batches of 1,000, parts, and their tally", group="service")
def files(size: Size) -> Case:
    directory = Path(tempfile.mkdtemp(prefix="deniable-bench-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    survey, batches, epochs = plain(retention="reports"), size(1000, 20), itertools.count(1)
    store = open_store(f"files:///{directory}")
    store.publish(survey)

    def append() -> float:
        epoch = next(epochs)
        start = time.perf_counter()
        for _ in range(batches):
            ids = np.frombuffer(os.urandom(16 * PER_BATCH), dtype=np.uint8).reshape(-1, 16)
            store.add([Batch(survey.fingerprint, epoch, ids, ANSWERS)])
        return time.perf_counter() - start

    def finish() -> float:
        append()
        start = time.perf_counter()
        store.close_epoch(survey.fingerprint, next(epochs) - 1)
        return time.perf_counter() - start

    append()
    store.close_epoch(survey.fingerprint, 1)
    reports = directory / "parts" / survey.fingerprint / "reports" / "epoch-1"
    held = sum(part.stat().st_size for part in reports.iterdir())

    def tally() -> float:
        start = time.perf_counter()
        found = count_files(survey, [reports], None, dedupe=True)
        assert found.rows == batches * PER_BATCH
        return time.perf_counter() - start

    n = batches * PER_BATCH
    tasks = {name: Task(once, n, "submission") for name, once in (("log", append), ("parts", finish), ("tally", tally))}
    ratios = [cost("parts", of="log"), cost("tally", of="log")]
    return Case(tasks, ratios, {"bytes per submission in parts": round(held / n, 1)})


class Worker:
    """A process with a connection and a shard of its own."""

    def __init__(self, url: str, shard: int) -> None:
        call = [sys.executable, "-m", "benchmarks.stores", url, str(shard)]
        self._process = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self._process.kill)
        self.wait()

    @property
    def process(self) -> int:
        return self._process.pid

    def begin(self, epoch: int, batches: int, tidy: bool) -> None:
        assert self._process.stdin is not None
        print(epoch, batches, int(tidy), file=self._process.stdin, flush=True)

    def wait(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError("a worker has ended")


@benchmark("ingest-postgres", "Durable ingest into PostgreSQL in batches of 1,000 submissions", group="service")
def postgres(size: Size) -> Case:
    try:
        server = PostgresServer(durable=True)
    except MissingPostgres as missing:
        raise UnavailableError(str(missing)) from None
    atexit.register(server.close)
    url, batches, epochs = server.new_database(), size(60, 10), itertools.count(1)
    workers = [Worker(url, shard) for shard in (0, 1)]

    def by(chosen: list[Worker], tidy: bool = False) -> Task:
        def once() -> float:
            epoch = next(epochs)
            start = time.perf_counter()
            for worker in chosen:
                worker.begin(epoch, batches // len(chosen), tidy)
            for worker in chosen:
                worker.wait()
            return time.perf_counter() - start

        return Task(once, batches * PER_BATCH, "submission")

    one, two, tidied = "PostgreSQL, one worker", "PostgreSQL, two workers", "PostgreSQL, one worker, and tidying"
    # Two processes have nothing to gain on one core, and little with few batches.
    goal = None if (os.cpu_count() or 1) < 2 else at_least(1, full_only=True)
    tasks = {one: by(workers[:1]), two: by(workers), tidied: by(workers[:1], tidy=True)}
    return Case(tasks, [faster(two, than=one, goal=goal), cost(tidied, of=one)])


def main(url: str, shard: str) -> None:
    """A worker: for each line with an epoch, a number of batches and whether to tidy, that many are added."""
    with opened(url, int(shard)) as store:
        print("ready", flush=True)
        for line in sys.stdin:
            epoch, batches, tidy = map(int, line.split())
            add(store, epoch, batches)
            if tidy:
                store.tidy()
            print("ready", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

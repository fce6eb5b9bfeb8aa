"""How long one commit of submissions keeps the others waiting, and whether a second worker on PostgreSQL is of use.

Time       of a processor: in the process that commits, and in PostgreSQL's process for its connection. Waiting for a
           disk or for a processor is not counted, so that a busy machine gives the same figures
Garbage    what this process has loaded besides is not searched for it meanwhile
Commit     from the lock on the epoch to the end of the transaction: so long everybody else waits
Away       another connection commits for the first time, and again after many ids were stored by the first
Workers    one process adds all batches, or two add half of them each, into the same new epoch; in turns
"""

from __future__ import annotations

import atexit
import gc
import itertools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.registry import Case, Ratio, Size, Task, UnavailableError, at_most, benchmark, cost, faster
from benchmarks.stores import PER_BATCH, Worker, add, opened
from tests.collect.postgres import MissingPostgres, PostgresServer

GROUP = "commits"
LONGEST = at_most(0.1, full_only=True)
EPOCH = 0
TURNS = 7


def processor_seconds(process: int | str) -> float:
    """Of all threads of a process until now."""
    threads = list(Path(f"/proc/{process}/task").iterdir())
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


class Commits:
    """A connection whose transactions of submissions are timed."""

    def __init__(self, url: str, shard: int = 0) -> None:
        self.store: Any = opened(url, shard)
        self.seconds: list[float] = []
        own = ["self"] if url.startswith("sqlite") else ["self", self.store._query("SELECT pg_backend_pid()")[0][0]]
        plain: Callable[[], Any] = self.store._adding

        @contextmanager
        def timed() -> Iterator[None]:
            begun = sum(map(processor_seconds, own))
            try:
                with plain():
                    yield
            finally:
                self.seconds.append(sum(map(processor_seconds, own)) - begun)

        self.store._adding = timed

    def add(self, submissions: int) -> None:
        add(self.store, EPOCH, submissions // PER_BATCH)


def _server() -> PostgresServer:
    try:
        server = PostgresServer(durable=True)
    except MissingPostgres as missing:
        raise UnavailableError(str(missing)) from None
    atexit.register(server.close)
    return server


@benchmark("commits", "the longest of many commits of 1,000 submissions each", group=GROUP, rounds=1)
def commits(size: Size) -> Case:
    folder = Path(tempfile.mkdtemp(prefix="deniable-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    ids, meanwhile = size(2_500_000, 50_000), size(1_000_000, 20_000)
    urls = {"SQLite": f"sqlite:///{folder / 'store.db'}", "PostgreSQL": _server().new_database()}
    found: dict[str, list[float]] = {}
    gc.collect()
    gc.freeze()
    for name, url in urls.items():
        one = Commits(url)
        one.add(ids)
        found[f"{name}, {ids:,} ids"] = one.seconds
        two = Commits(url, shard=1)
        two.add(PER_BATCH)
        one.add(meanwhile)
        two.add(PER_BATCH)
        found[f"{name}, a connection that was away for {meanwhile:,} ids"] = two.seconds
        one.store.close()
        two.store.close()
    gc.unfreeze()
    worst = {name: max(times) for name, times in found.items()}
    tasks = {name: Task(lambda longest=longest: longest, 1, "commit") for name, longest in worst.items()}
    ratios = [Ratio(f"{name}: processor seconds of the longest commit", name, None, LONGEST, False) for name in found]
    filling = {name: times for name, times in found.items() if len(times) > 10}
    facts = {f"{name}: milliseconds of the median commit": _milliseconds(times) for name, times in filling.items()}
    return Case(tasks, ratios, facts)


def _milliseconds(times: list[float]) -> float:
    return round(1000 * median(times), 2)


@benchmark("second-worker", "PostgreSQL: two workers against one, batches of 1,000", group=GROUP, rounds=1)
def second_worker(size: Size) -> Case:
    server, batches, epochs = _server(), size(300, 20), itertools.count(1)
    url = server.new_database()
    workers = [Worker(url, shard) for shard in (0, 1)]
    found: dict[str, list[tuple[float, float, float]]] = {"one worker": [], "two workers": []}
    for _ in range(size(TURNS, 1) + 1):
        for count, turns in enumerate(found.values(), start=1):
            epoch, before, begun = next(epochs), _worked(server, workers), time.perf_counter()
            for worker in workers[:count]:
                worker.begin(epoch, batches // count, False)
            for worker in workers[:count]:
                worker.wait()
            wall = time.perf_counter() - begun
            own, database = (b - a for a, b in zip(before, _worked(server, workers), strict=True))
            turns.append((wall, own, database))
    tasks, facts = dict[str, Task](), dict[str, str | int | float]()
    for name, turns in found.items():
        # The first turn loads what is loaded once.
        wall, own, database = (median(one) / batches / PER_BATCH for one in zip(*turns[1:], strict=True))
        tasks[f"{name}, wall"] = Task(lambda wall=wall: wall, 1, "submission")
        tasks[f"{name}, processor"] = Task(lambda both=own + database: both, 1, "submission")
        facts |= {f"{name}: microseconds in workers": round(1e6 * own, 2)}
        facts |= {f"{name}: microseconds in the database": round(1e6 * database, 2)}
    ratios = [
        cost("two workers, processor", of="one worker, processor", label="two workers: processor time / that of one"),
        faster("two workers, wall", than="one worker, wall", label="two workers: rate / rate of one"),
    ]
    return Case(tasks, ratios, facts)


def _worked(server: PostgresServer, workers: list[Worker]) -> tuple[float, float]:
    """Processor seconds of the workers, and of all of PostgreSQL's processes."""
    first = server.process
    children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    of_server = sum(processor_seconds(one) for one in (first, *children))
    return sum(processor_seconds(worker.process) for worker in workers), of_server

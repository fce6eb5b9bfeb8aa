"""What a service takes on each store: rates, waiting times and memory, with no ids and with ten million of them.

Stack      one process of the service and one of the load generator, over loopback; all stores in turn in each round
No store   the same service whose writer answers without a store; with "memory" it counts, and writes nothing
Alone      one connection: every submission is a commit of its own
Single     128 connections with one submission per request, which share commits
Batched    4 connections with 1,000 submissions per request
Ids        an epoch that held none before, and one that held ten million
Care       the same while earlier states are removed twice per second and the ids of another epoch are forgotten
Windows    of ten minutes: requests answered in each ten seconds, the slowest of them against the median
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.registry import Case, Ratio, Size, Task, UnavailableError, at_least, at_most, benchmark, cost, faster
from benchmarks.report import Run, ratio_text
from benchmarks.service import BATCH, CONNECTIONS, IN_MEMORY, WITHOUT_STORE, Service
from deniable.collect.stores import Batch, open_store
from tests.collect.postgres import NEWEST, OLDEST, MissingPostgres, PostgresServer

NO_STORE, MEMORY, SQLITE, FILES = "no store", "memory", "SQLite", "files"
KINDS = {"alone": (100, 1, 1), "single": (5_000, 1, CONNECTIONS), "batched": (200, BATCH, 4)}
"""Requests, submissions per request, connections."""
BEFORE = 10_000_000
"""Ids of the epoch that is not empty."""
FILL = 10_000
"""Submissions per request while an epoch is filled."""
PAUSE = 0.5
"""Seconds between two rounds of housekeeping; a service pauses for 5 (SQLite) or 60 (PostgreSQL)."""


def postgres_name(version: int) -> str:
    return f"PostgreSQL {version}"


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="deniable-capacity-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _sqlite_url() -> str:
    return f"sqlite:///{_folder() / 'store.db'}"


def _postgres_url(version: int) -> str:
    try:
        server = PostgresServer(durable=True, version=version)
    except MissingPostgres as missing:
        raise UnavailableError(str(missing)) from None
    atexit.register(server.close)
    return server.new_database()


DURABLE: dict[str, Callable[[], str]] = {
    SQLITE: _sqlite_url,
    postgres_name(OLDEST): lambda: _postgres_url(OLDEST),
    postgres_name(NEWEST): lambda: _postgres_url(NEWEST),
    FILES: lambda: f"files:///{_folder()}",
}
"""How to make an empty store of each kind; its URL."""


class Filled:
    """A service on a store, with an epoch that holds many ids."""

    def __init__(self, url: str, ids: int, before: str = "") -> None:
        self.url, self.service = url, Service(url, before=before)
        self.full = self.service.new_epoch()
        self.growth = dict[str, float]()
        """What so many ids take."""
        self.service.load(8, FILL, 4)  # what is loaded or made once is not counted
        if before == WITHOUT_STORE:
            return
        empty, begun = self.service.memory, self._size()
        self.service.load(ids // FILL, FILL, 4, self.full)
        self.growth["bytes of memory per id"] = (self.service.memory - empty) / ids
        if not before:
            self.growth["bytes in the store per id"] = (self._size() - begun) / ids
            self.growth["seconds of the first commit after a start"] = self._first_commit()

    def _size(self) -> int:
        with open_store(self.url) as store:
            store.tidy()
            return store.size()

    def _first_commit(self) -> float:
        """Seconds until somebody who is new has learned of the ids and added one."""
        with open_store(self.url, 1) as store:
            start = time.perf_counter()
            store.add([_batch(self.service.survey.fingerprint, self.full, 1)])
            return time.perf_counter() - start


def _batch(survey: str, epoch: int, size: int) -> Batch:
    ids = np.frombuffer(np.random.default_rng().bytes(16 * size), dtype=np.uint8).reshape(-1, 16)
    return Batch(survey, epoch, ids, np.zeros((size, 1), dtype=np.uint8))


_FILLED: dict[tuple[str, int], Filled] = {}


def filled(name: str, ids: int) -> Filled:
    """The same service for all benchmarks of a run: filling takes longest."""
    if (name, ids) not in _FILLED:
        before = {NO_STORE: WITHOUT_STORE, MEMORY: IN_MEMORY}.get(name, "")
        _FILLED[name, ids] = Filled(DURABLE.get(name, _sqlite_url)(), ids, before)
    return _FILLED[name, ids]


class Latencies:
    """What a task's rounds took, for the facts beside its rate."""

    def __init__(self, facts: dict[str, str | int | float], task: str) -> None:
        self._facts, self._task, self._seen = facts, task, list[dict[str, float]]()

    def note(self, answer: dict[str, Any]) -> float:
        self._seen.append(answer["latency"])
        middle = {p: 1000 * median(one[p] for one in self._seen) for p in ("50", "99")}
        self._facts[f"{self._task}: milliseconds"] = _waits(middle["50"], middle["99"])
        return float(answer["seconds"])


@benchmark("load", "each store under load over HTTP, with no ids and with ten million", group="load", rounds=5)
def load(size: Size) -> Case:
    before, facts = size(BEFORE, 100_000), dict[str, str | int | float]()
    stores = {name: filled(name, before) for name in (NO_STORE, MEMORY, *DURABLE)}
    for name, one in stores.items():
        facts |= {f"{name}: {what}": round(value, 2) for what, value in one.growth.items()}
    tasks, ratios = dict[str, Task](), list[Ratio]()
    for kind, (many, batch, connections) in KINDS.items():
        requests = size(many, max(many // 10, connections))
        for name, one in stores.items():
            for ids in (0,) if name == NO_STORE else (0, before):
                task = task_name(name, kind, ids)
                epoch, noted = one.full if ids else None, Latencies(facts, task)

                def once(
                    name: str = name,
                    load: tuple[int, int, int, int | None] = (requests, batch, connections, epoch),
                    noted: Latencies = noted,
                ) -> float:
                    service = stores[name].service
                    taken = noted.note(service.load(*load))
                    facts[f"{name}: memory of the service"] = f"{service.memory >> 20:,} MiB"
                    return taken

                tasks[task] = Task(once, requests * batch, "submission")
                if name != NO_STORE:
                    label = f"{task}: rate / rate of {NO_STORE}"
                    ratios.append(faster(task, than=task_name(NO_STORE, kind, 0), label=label))
    goal = at_most(1 / 60_000, full_only=True)
    task = task_name(SQLITE, "batched", before)
    ratios.append(Ratio(f"{task}: seconds", task, None, goal, speedup=False))
    return Case(tasks, ratios, facts)


def _waits(middle: float, most: float) -> str:
    return f"{ratio_text(middle)} (median), {ratio_text(most)} (99 %)"


def task_name(store: str, kind: str, ids: int) -> str:
    return f"{store}, {kind}" + (f", {ids:,} ids before" if ids else "")


@benchmark("load-care", "batches into an epoch of ten million ids during housekeeping", group="load", rounds=5)
def care(size: Size) -> Case:
    before, requests, forgotten = size(BEFORE, 100_000), size(200, 20), size(500_000, 20_000)
    tasks, ratios = dict[str, Task](), list[Ratio]()
    for name in DURABLE:
        one = filled(name, before)

        def plain(one: Filled = one) -> float:
            return float(one.service.load(requests, BATCH, 4, one.full)["seconds"])

        def disturbed(one: Filled = one) -> float:
            with housekeeping(one, forgotten):
                return plain(one)

        during = f"{name}, batched, during housekeeping"
        tasks |= {f"{name}, batched": Task(plain, requests * BATCH, "submission")}
        tasks |= {during: Task(disturbed, requests * BATCH, "submission")}
        ratios.append(cost(during, of=f"{name}, batched", goal=at_most(2, full_only=True)))
    return Case(tasks, ratios)


@contextmanager
def housekeeping(one: Filled, forgotten: int) -> Iterator[None]:
    """Meanwhile an epoch with so many ids is closed, they are forgotten, and earlier states are removed."""
    survey, epoch, done = one.service.survey, one.service.new_epoch(), threading.Event()
    failed: list[BaseException] = []
    with open_store(one.url, 1) as store:
        store.add([_batch(survey.fingerprint, epoch, forgotten)])

    def keep_house() -> None:
        try:
            with open_store(one.url, 1) as store:
                store.close_epoch(survey.fingerprint, epoch)
                while not done.wait(PAUSE):
                    store.tidy()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=keep_house)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    for error in failed:
        raise error


@benchmark("ten-minutes", "PostgreSQL over ten minutes of batches, with single submissions beside", group="ten-minutes")
def ten_minutes(size: Size) -> Case:
    url, length = DURABLE[postgres_name(NEWEST)](), size(600, 40)
    service = Service(url)
    epoch, found = service.new_epoch(), dict[str, dict[str, Any]]()

    def run(kind: str, batch: int, connections: int) -> None:
        found[kind] = service.load(10**12, batch, connections, epoch, float(length))

    threads = [threading.Thread(target=run, args=case) for case in (("batched", BATCH, 4), ("single", 1, 8))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tasks, ratios, facts = dict[str, Task](), list[Ratio](), dict[str, str | int | float]()
    for kind, batch in (("batched", BATCH), ("single", 1)):
        windows = [batch * n for n in found[kind]["windows"][: length // 10]]
        middle, least = median(windows), min(windows)
        # Figures are of times; here rates take their place.
        tasks |= {f"{kind}, median": Task(lambda middle=middle: 10 / middle, 1, "submission")}
        tasks |= {f"{kind}, slowest": Task(lambda least=least: 10 / max(least, 1e-9), 1, "submission")}
        label = f"{kind}: rate of the slowest ten seconds / median"
        ratios.append(
            faster(f"{kind}, slowest", than=f"{kind}, median", goal=at_least(0.5, full_only=True), label=label)
        )
        latency = found[kind]["latency"]
        facts[f"{kind}: milliseconds"] = _waits(1000 * latency["50"], 1000 * latency["99"])
        facts[f"{kind}: submissions"] = f"{sum(windows):,}"
        facts[f"{kind}: per second, in each ten seconds"] = " ".join(f"{n / 10:.0f}" for n in windows)
    facts["memory of the service"] = f"{service.memory >> 20:,} MiB"
    with open_store(url) as store:
        n = sum(one.n for one in store.epochs(service.survey.fingerprint))
        facts["bytes in the database per submission"] = round(store.size() / n, 1)
    service.close()
    return Case(tasks, ratios, facts)


def rates(run: Run) -> str:
    """The table of the docs: what one process took on each store, in the median of the rounds."""
    (result,) = [one for one in run.results if one.name == "load"]
    medians = {timing.task: timing.median for timing in result.timings}
    columns = [(kind, ids) for kind in KINDS for ids in (0, BEFORE)]
    heads = {"alone": "one connection", "single": f"{CONNECTIONS} connections", "batched": f"batches of {BATCH:,}"}
    lines = [
        f"Measured on {run.date[:10]} ({run.machine['cpu']}, {run.machine['cores']} cores, load "
        f"{run.machine.get('load at the start', 'unknown')} at the start), the load generator beside it: "
        "submissions per second, and milliseconds until the answer (median / 99 %).",
        "",
        f"| store | {' | '.join(heads[kind] + (f', {ids:,} ids' if ids else '') for kind, ids in columns)} | memory |",
        f"|---|{'---:|' * (len(columns) + 1)}",
    ]
    for name in (NO_STORE, MEMORY, *DURABLE):
        cells = [name]
        for kind, ids in columns:
            task = task_name(name, kind, ids)
            if task not in medians:
                cells.append("")
                continue
            waits = str(result.facts[f"{task}: milliseconds"]).replace(" (median),", " /").replace(" (99 %)", "")
            cells.append(f"{float(f'{1 / medians[task]:.2g}'):,.0f} ({waits})")
        lines.append(f"| {' | '.join(cells)} | {result.facts[f'{name}: memory of the service']} |")
    return "\n".join(lines) + "\n"

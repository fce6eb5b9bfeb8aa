"""The collection service under load, over loopback: what durability costs, batches, workers, memory.

Stack      one process of the service, one of the load generator; on two cores they disturb each other little
No store   the same service whose writer acknowledges without a store: everything but durability
Latency    of requests on 128 connections that are always busy, so it is mostly waiting in line
Memory     of the service's process after each quarter of a million reports, once SQLite's page cache of 64 MiB is full
"""

from __future__ import annotations

import atexit
import json
import re
import secrets
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.registry import Case, Size, Task, UnavailableError, at_least, at_most, benchmark, cost, faster, seconds
from deniable.collect.stores import open_store
from deniable.protocols import GRR
from deniable.surveys import Budget, Epochs, Longitudinal, Question, Survey, Terms

GROUP = "service"
CONNECTIONS = 128
BATCH = 1_000
FILLING = 10
"""Quarters of a million reports until the page cache is full."""
RATIO = at_least(0.5, full_only=True)
BATCHED = at_most(1 / 50_000, full_only=True)

WITHOUT_STORE = """
from deniable.collect.server import writer
from deniable.collect.stores.base import Added
writer.Writer._add = lambda self, group: group.settle([Added(len(batch.ids)) for batch in group.batches])
"""
IN_MEMORY = """
from deniable.collect.server import writer
from deniable.collect.stores import open_store
from deniable.collect.stores.batches import StoredSurvey
from tests.collect.stores.memory import MemoryStore
memory = MemoryStore()
with open_store({store!r}) as opened:
    for published in opened.surveys():
        memory.publish(StoredSurvey.read(0, published.canonical).survey)
writer.Writer._connected = lambda self: memory
"""
_SERVE = """
from deniable.collect.server import Settings, serve
serve(Settings(store={store!r}, port=0), {workers}, lambda address, _: print(address, flush=True))
"""


def survey(retention: str = "tally") -> Survey:
    """One question with two answers, open for as many epochs as rounds are measured."""
    now = int(time.time())
    terms = Terms(
        owner="Benchmark",
        purpose="To measure the service.",
        epochs=Epochs(now - 500_000, 1_000, early=1_000, late=1_000),
        longitudinal=Longitudinal(),
        budget=Budget("benchmark", Fraction(1)),
        opens=now - 400_000,
        expires=now + 400_000,
        retention=retention,
    )
    return Survey(f"benchmark {secrets.token_hex(4)}", [Question("q", "Yes?", GRR(["yes", "no"], epsilon=1))], terms)


class Service:
    """A running service, and load for it."""

    def __init__(self, store: str, workers: int = 1, before: str = "") -> None:
        self.survey = survey("reports" if store.startswith("files:") else "tally")
        with open_store(store) as opened:
            opened.publish(self.survey)
        # A file, because workers begin by running the file that the first process ran.
        self._file = Path(tempfile.mkstemp(suffix=".py")[1])
        content = (before + _SERVE).format(store=store, workers=workers)
        self._file.write_text("if __name__ == '__main__':\n" + re.sub("(?m)^", "    ", content))
        self.process = subprocess.Popen(
            [sys.executable, str(self._file)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        atexit.register(self.close)
        assert self.process.stdout is not None
        self._port = self.process.stdout.readline().strip().rpartition(":")[2]
        assert self.survey.terms is not None
        self._epoch = self.survey.terms.epochs.at(time.time()) - 300

    def new_epoch(self) -> int:
        self._epoch += 1
        return self._epoch

    def load(
        self, requests: int, batch: int, connections: int, epoch: int | None = None, seconds: float = 0.0
    ) -> dict[str, Any]:
        """Send so many requests, or for so long; into a new epoch unless one is named."""
        chosen = self.new_epoch() if epoch is None else epoch
        arguments = {"port": self._port, "epoch": chosen, "requests": requests, "batch": batch, "seconds": seconds}
        arguments |= {"connections": connections, "survey": self.survey.fingerprint, "answers": "00"}
        options = [f"--{name}={value}" for name, value in arguments.items()]
        call = [sys.executable, "-m", "benchmarks.load", *options]
        done = subprocess.run(call, capture_output=True, text=True, check=True)
        answer: dict[str, Any] = json.loads(done.stdout)
        if answer["refused"]:
            raise RuntimeError(f"{answer['refused']} requests were refused")
        return answer

    def task(self, requests: int, batch: int = 1, connections: int = CONNECTIONS) -> Task:
        """Seconds a submission."""
        return Task(lambda: self.load(requests, batch, connections)["seconds"], requests * batch, "submission")

    @property
    def memory(self) -> int:
        """Resident bytes of the first process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) << 10

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._file.unlink(missing_ok=True)


def _sqlite() -> str:
    return f"sqlite:///{tempfile.mkdtemp(prefix='deniable-benchmark-')}/store.db"


def _percentiles(answer: dict[str, Any]) -> str:
    return ", ".join(f"{name} %: {1000 * value:.1f} ms" for name, value in answer["latency"].items())


@benchmark("service-single", "durable single submissions over HTTP, SQLite, 128 connections", group=GROUP)
def single(size: Size) -> Case:
    requests = size(10_000, 2_000)
    durable, plain = Service(_sqlite()), Service(_sqlite(), before=WITHOUT_STORE)
    warm = durable.load(requests, 1, CONNECTIONS)
    return Case(
        tasks={"durable": durable.task(requests), "without a store": plain.task(requests)},
        ratios=[
            faster("durable", than="without a store", goal=RATIO, label="durable / no store"),
        ],
        facts={"latency": _percentiles(warm)},
    )


@benchmark("service-batched", "batches of 1,000 over HTTP into a fresh epoch, SQLite", group=GROUP)
def batched(size: Size) -> Case:
    requests = size(100, 20)
    service = Service(_sqlite())
    return Case(
        tasks={"batched": service.task(requests, BATCH, connections=4)},
        ratios=[seconds("batched", BATCHED)],
    )


@benchmark("service-files", "durable submissions over HTTP into files, against SQLite", group=GROUP)
def files(size: Size) -> Case:
    single, batches = size(10_000, 1_000), size(300, 20)
    stores = {
        "files": Service(f"files:///{tempfile.mkdtemp(prefix='deniable-benchmark-')}"),
        "SQLite": Service(_sqlite()),
    }
    tasks = {f"{name}, single": store.task(single) for name, store in stores.items()}
    tasks |= {f"{name}, batched": store.task(batches, BATCH, connections=4) for name, store in stores.items()}
    return Case(tasks, [faster(f"files, {kind}", than=f"SQLite, {kind}") for kind in ("single", "batched")])


@benchmark("service-workers", "PostgreSQL: two workers against one, single submissions", group=GROUP)
def workers(size: Size) -> Case:
    requests = size(10_000, 1_000)
    try:
        from tests.collect.postgres import MissingPostgres, PostgresServer

        server = PostgresServer(durable=True)
    except (ImportError, MissingPostgres) as missing:
        raise UnavailableError(str(missing)) from None
    atexit.register(server.close)
    one, two = Service(server.new_database()), Service(server.new_database(), workers=2)
    return Case(
        tasks={
            "one worker": one.task(requests),
            "two workers": two.task(requests),
        },
        ratios=[faster("two workers", than="one worker", goal=at_least(1.0, full_only=True))],
    )


@benchmark("service-memory", "memory of the service over a million reports", group=GROUP)
def memory(size: Size) -> Case:
    quarter = size(250, 10)
    service = Service(_sqlite())
    for _ in range(FILLING):
        service.load(quarter, BATCH, 4)
    marks = [service.memory]
    for _ in range(4):
        service.load(quarter, BATCH, 4)
        marks.append(service.memory)
    growth = marks[-1] / marks[0]
    # Figures are of times; here the ratio of two sizes takes their place.
    tasks = {"after a million": Task(lambda: growth, 1, "size"), "at the start": Task(lambda: 1.0, 1, "size")}
    goal = at_most(1.05, full_only=True)
    reports = [(FILLING + i) * quarter * BATCH for i in range(len(marks))]
    facts = {f"{n:,} reports": f"{mark >> 20} MiB" for n, mark in zip(reports, marks, strict=True)}
    ratio = cost("after a million", of="at the start", goal=goal, label="memory after a million reports / before")
    return Case(tasks, [ratio], facts)

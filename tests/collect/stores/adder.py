"""A process that adds submissions until it is killed, and one that keeps killing such processes.

    python -m tests.collect.stores.adder <url> <directory> <kills> [--torn]

Each round has two workers with shards of their own, which add from one pool of submissions, so that both meet
what the other or a killed one has added. A worker appends to its file what was acknowledged. With `--torn` ids and
tally are written in two transactions, or what goes to a log is written later: what the stores must not do.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from deniable.collect.stores import Store, open_store
from deniable.collect.stores.segments import SegmentStore
from deniable.surveys import Survey
from tests.collect.surveys import Crowd, crowd, current, mixed, text

POOL = 5_000
KEPT = mixed(retention="reports")


def surveys(url: str) -> tuple[Survey, Survey]:
    """One whose reports are kept, and one with a large tally; a store of files keeps the reports of both."""
    return KEPT, text(retention="reports" if url.startswith("files:") else "tally")


def pools(url: str) -> dict[str, Crowd]:
    return {survey.fingerprint: crowd(survey, POOL, seed) for seed, survey in enumerate(surveys(url), start=1)}


def work(store: Store, both: tuple[Survey, Survey], acknowledged: Path, seed: int, pool: dict[str, Crowd]) -> None:
    """Add for ever."""
    chance = random.Random(seed)
    file = os.open(acknowledged, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    while True:
        chosen = sorted(chance.sample(range(POOL), 100))
        store.add([pool[survey.fingerprint][chosen].batch(survey, current(survey)) for survey in both])
        if chance.random() < 0.1:
            store.tidy()
        os.write(file, "".join(f"{place}\n" for place in chosen).encode())
        time.sleep(0.002)  # SQLite's lock is unfair: without a pause the other worker may wait for seconds


def torn(store: Any) -> None:
    """Let the ids of a group be one transaction and its tally another; or let a log be written now and then."""
    if isinstance(store, SegmentStore):
        append, waiting = store._append, list[bytes]()

        def later(content: bytes) -> None:
            waiting.append(content)
            if len(waiting) > 3:
                append(b"".join(waiting))
                waiting.clear()

        store._append = later  # type: ignore[method-assign]
        return
    claim = store._claim

    def claimed(*arguments: Any) -> Any:
        fresh = claim(*arguments)
        store._query("COMMIT")
        time.sleep(0.02)  # long enough that some of twelve kills fall here
        store._query("BEGIN IMMEDIATE")
        return fresh

    store._claim = claimed


def main(url: str, directory: str, kills: str, *flags: str) -> None:
    pool, chance = pools(url), random.Random(int(kills))
    for round in range(int(kills)):
        files = [Path(directory, f"{round}-{shard}") for shard in (0, 1)]
        workers = []
        for shard, file in enumerate(files):
            child = os.fork()
            if child == 0:
                store = open_store(url, shard)
                if flags:
                    torn(store)
                work(store, surveys(url), file, seed=2 * round + shard, pool=pool)
            workers.append(child)
        give_up = time.monotonic() + 90
        while not all(file.exists() and file.stat().st_size for file in files) and time.monotonic() < give_up:
            time.sleep(0.001)
        time.sleep(chance.random() * 0.05)
        for child in workers:
            os.kill(child, signal.SIGKILL)
        for child in workers:
            os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])

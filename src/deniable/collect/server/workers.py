"""Several processes on one port: started, watched, started again, and stopped together."""

from __future__ import annotations

import multiprocessing
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from deniable.collect.server.log import log
from deniable.collect.server.run import Announce, address_of, bound, make_server
from deniable.collect.server.settings import Settings

SHORT_LIFE = 2.0
GRACE_SECONDS = 5.0

_context = multiprocessing.get_context("spawn")


def supervise(settings: Settings, workers: int, reserved: socket.socket, announce: Announce | None = None) -> None:
    """Run workers until a signal.

    `reserved` keeps the port, so that it stays the same when one is started again; it is bound but never listens: the
    system gives connections only to the workers.
    """
    settings = replace(settings, port=reserved.getsockname()[1])
    stopping = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    staff = [Worker(settings, shard) for shard in range(workers)]
    try:
        for worker in staff:
            worker.wait_ready(stopping)
        if announce is not None and not stopping.is_set():
            announce(address_of(reserved))
        while not stopping.is_set():
            for worker in staff:
                worker.revive()
            wait([worker.process.sentinel for worker in staff], timeout=0.5)
    finally:
        _end(staff, settings.stop_seconds + GRACE_SECONDS)
        for number, handler in before.items():
            signal.signal(number, handler)


class Worker:
    """One worker process, under the same shard however often it is started."""

    def __init__(self, settings: Settings, shard: int) -> None:
        self._settings, self._shard = replace(settings, shard=shard), shard
        self.start()

    def start(self) -> None:
        self._born = time.monotonic()
        self.ours, theirs = _context.Pipe()
        self.process: SpawnProcess = _context.Process(target=work, args=(self._settings, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def wait_ready(self, stopping: threading.Event) -> None:
        while not stopping.is_set() and not self.ours.poll(0.1):
            if not self.process.is_alive():
                raise ChildProcessError(f"worker {self._shard} ended with code {self.process.exitcode} as it started")

    def revive(self) -> None:
        if self.process.is_alive():
            return
        log("worker ended", shard=self._shard, code=self.process.exitcode)
        time.sleep(max(0.0, SHORT_LIFE - (time.monotonic() - self._born)))
        self.ours.close()
        self.start()


def work(settings: Settings, parent: Connection) -> None:
    """A worker's life: it ends with a signal, or when its parent is gone."""
    with bound(settings, shared=True) as listening:
        server = make_server(settings, lambda: parent.send("ready"))
        threading.Thread(target=_watch, args=(parent, server.leave), daemon=True).start()
        server.run([listening])


def _watch(parent: Connection, leave: Callable[[], Any]) -> None:
    """The pipe ends when the parent does, even by kill -9."""
    try:
        parent.recv()
    except (EOFError, OSError):
        leave()


def _end(staff: list[Worker], seconds: float) -> None:
    for worker in staff:
        worker.process.terminate()
    deadline = time.monotonic() + seconds
    for worker in staff:
        worker.process.join(max(0.1, deadline - time.monotonic()))
        if worker.process.is_alive():
            log("worker killed", shard=worker._shard)
            worker.process.kill()
            worker.process.join()
        worker.ours.close()

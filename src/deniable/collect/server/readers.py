"""Threads that read the store, each with its own connection, and threads that compute; neither holds up the event loop.

Bounded    more than `max_reads` questions at once are told to come back later
Repair     a connection that fails is closed and the question asked again over a new one, once: reading changes nothing
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from deniable.collect.server.problems import overloaded
from deniable.collect.stores.base import Store, StoreError

T = TypeVar("T")


class Readers:
    """Runs functions of a store."""

    def __init__(self, open_store: Callable[[], Store], threads: int, most: int) -> None:
        self._open, self._most, self._waiting = open_store, most, 0
        self._queue: queue.SimpleQueue[tuple[Callable[[Store], Any], asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._run, name=f"reader-{i}", daemon=True) for i in range(threads)]
        self._computing = ThreadPoolExecutor(threads, thread_name_prefix="computing")

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        for thread in self._threads:
            thread.start()

    async def run(self, job: Callable[[Store], T]) -> T:
        """The job's answer, from a thread with a store."""
        self._enter()
        try:
            future: asyncio.Future[T] = self._loop.create_future()
            self._queue.put((job, future))
            return await future
        finally:
            self._waiting -= 1

    async def compute(self, job: Callable[[], T]) -> T:
        """The job's answer, from a thread without one."""
        self._enter()
        try:
            return await self._loop.run_in_executor(self._computing, job)
        finally:
            self._waiting -= 1

    def _enter(self) -> None:
        if self._waiting >= self._most:
            raise overloaded("too many questions wait for an answer")
        self._waiting += 1

    def _run(self) -> None:
        store: Store | None = None
        while (item := self._queue.get()) is not None:
            job, future = item
            answer, error = None, None
            try:
                store, answer = self._answered(store, job)
            except BaseException as raised:
                error = raised
                store = None if isinstance(raised, StoreError) else store
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(deliver, future, answer, error)
            del item, job, future, answer, error
        if store is not None:
            store.close()

    def _answered(self, store: Store | None, job: Callable[[Store], T]) -> tuple[Store, T]:
        """Ask the store that is open; if that has failed since it was used last, a new one."""
        if store is not None:
            try:
                return store, job(store)
            except StoreError:
                _closed(store)
        store = self._open()
        try:
            return store, job(store)
        except StoreError:
            _closed(store)
            raise

    def stop(self) -> None:
        """Answer what waits, close the stores."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._computing.shutdown()


def _closed(store: Store) -> None:
    with suppress(Exception):
        store.close()


def deliver(future: asyncio.Future[Any], answer: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(answer)
    else:
        future.set_exception(error)

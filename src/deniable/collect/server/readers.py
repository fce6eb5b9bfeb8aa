"""Off the event loop: threads that read the store, each with its own connection, and threads that compute.

Bounded    more than `max_reads` questions at once are told to come back later
Repair     a connection that fails is closed and the question asked again over a new one, once: reading changes nothing
Version    how far a survey's sums have come, as one number: the submissions ever counted plus those deleted plus the
           epochs closed. All only grow, and a tally changes only when one of them does, so equal versions mean equal
           sums, in whichever process or worker they are read
Polling    the store is asked for a version at most once in `seconds` per survey, however many listen
Kept       answers to analysts are kept until something newer needs the room
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from deniable.collect.server.problems import overloaded
from deniable.collect.stores.base import CLOSED, Epoch, Store, StoreError

WAITING = 8
"""Questions of side work that wait, at most."""
REST = 4.0
SIDE_BYTES = 4 << 20

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


@dataclass(frozen=True)
class Progress:
    """The epochs of a survey at one moment."""

    epochs: tuple[Epoch, ...]

    @property
    def version(self) -> int:
        # A deleted submission is out of n: twice, so that the version grows by one.
        return sum(one.n + 2 * one.deleted for one in self.epochs) + len(self.closed)

    @property
    def closed(self) -> set[int]:
        return {one.epoch for one in self.epochs if one.state == CLOSED}


class Versions:
    """The latest known progress of each survey."""

    def __init__(self, readers: Readers, seconds: float) -> None:
        self._readers, self._seconds = readers, seconds
        self._known: dict[str, tuple[float, Progress]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def read(self, fingerprint: str) -> Progress:
        """As of now."""
        found = await self._readers.run(lambda store: store.epochs(fingerprint))
        progress = Progress(tuple(found))
        self._known[fingerprint] = time.monotonic(), progress
        return progress

    async def recent(self, fingerprint: str) -> Progress:
        """As of at most `seconds` ago."""
        async with self._locks.setdefault(fingerprint, asyncio.Lock()):
            read, progress = self._known.get(fingerprint, (-1e9, None))
            if progress is not None and time.monotonic() - read < self._seconds:
                return progress
            return await self.read(fingerprint)


class Cache:
    """Bytes by key, the least recently used forgotten first.

    >>> cache = Cache(10)
    >>> cache.put("a", b"12345"), cache.put("b", b"12345"), cache.get("a"), cache.put("c", b"1")
    (None, None, b'12345', None)
    >>> cache.get("b") is None, cache.get("a"), cache.get("c")
    (True, b'12345', b'1')
    """

    def __init__(self, most_bytes: int) -> None:
        self._most, self._size = most_bytes, 0
        self._held: OrderedDict[Hashable, bytes] = OrderedDict()

    def get(self, key: Hashable) -> bytes | None:
        found = self._held.get(key)
        if found is not None:
            self._held.move_to_end(key)
        return found

    def put(self, key: Hashable, value: bytes) -> None:
        if len(value) > self._most // 2:
            return
        self._size += len(value) - len(self._held.pop(key, b""))
        self._held[key] = value
        while self._size > self._most:
            _, gone = self._held.popitem(last=False)
            self._size -= len(gone)


class SideWork:
    """Work for anybody who asks, which must not hold up the collection: the planner's. Answers are bytes.

    One thread     which rests between two pieces of work, four times as long as the first took: a flood of questions
                   takes a fifth of a processor at most
    Short queue    who finds it full is told to come back
    Kept answers   the same question again costs nothing; asked by several at once it is worked out once
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="aside")
        self._rested = 0.0
        self._cache = Cache(SIDE_BYTES)
        self._asked: dict[Hashable, asyncio.Future[bytes]] = {}

    async def answer(self, question: Hashable, job: Callable[[], bytes]) -> bytes:
        found = self._cache.get(question)
        if found is not None:
            return found
        asked = self._asked.get(question)
        if asked is None:
            if len(self._asked) >= WAITING:
                raise overloaded("too many plans are asked for", 2.0)
            asked = asyncio.get_running_loop().run_in_executor(self._thread, self._work, job)
            self._asked[question] = asked
            asked.add_done_callback(lambda done: self._done(question, done))
        # One who leaves does not end the work for the others.
        return await asyncio.shield(asked)

    def _work(self, job: Callable[[], bytes]) -> bytes:
        time.sleep(max(0.0, self._rested - time.monotonic()))
        begun = time.thread_time()
        try:
            return job()
        finally:
            self._rested = time.monotonic() + REST * (time.thread_time() - begun)

    def _done(self, question: Hashable, done: asyncio.Future[bytes]) -> None:
        self._asked.pop(question, None)
        if not done.cancelled() and done.exception() is None:
            self._cache.put(question, done.result())

    def stop(self) -> None:
        self._thread.shutdown(cancel_futures=True)

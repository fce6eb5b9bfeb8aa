"""Group commit: one thread, one connection, and one durable transaction for all requests that wait.

Ack        a request is answered after the commit that holds its submissions, never before
Bounds     requests and bytes that wait are limited; the next one is told to come back before its body is read
Failure    a store that fails gets nothing counted: everybody of the group is told to send the same bytes again, which
           is safe whether or not the commit went through, because ids are counted once. The connection is then renewed
Stopping   what waits is committed, then the store is closed
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from deniable.collect.server.group import Group, Parcel, Reply
from deniable.collect.server.log import log
from deniable.collect.server.metrics import Metrics
from deniable.collect.server.problems import Problem, overloaded
from deniable.collect.server.readers import deliver
from deniable.collect.server.registry import Entry
from deniable.collect.server.settings import Settings
from deniable.collect.stores.base import StorageFull, Store, StoreError

T = TypeVar("T")
_Job = tuple[Callable[[Store], Any], "asyncio.Future[Any]"]

REPAIR_SECONDS = 0.5
"""After a failure the store is not opened again sooner than this."""


class Writer:
    """The only one in this process that writes. Its methods are for the event loop."""

    def __init__(self, open_store: Callable[[], Store], settings: Settings, metrics: Metrics) -> None:
        self._open, self._settings, self._metrics = open_store, settings, metrics
        self._queue: queue.SimpleQueue[Parcel | _Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._store: Store | None = None
        self._failed = -1e9
        self._late: Counter[tuple[str, int, str]] = Counter()
        self._busy_since: float | None = None
        self._unlogged: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.items = 0
        self.bytes = 0
        self.commits = 0
        """Transactions that changed the store."""
        self.stopping = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    # -- the event loop's side ---------------------------------------------------------------------

    def room(self, size: int = 0) -> None:
        """Refuse if a body of this size cannot be taken now."""
        if self.stopping:
            raise overloaded("the service is being restarted")
        if self.items >= self._settings.queue_items or self.bytes + size > self._settings.queue_bytes:
            raise overloaded("more waits to be stored than fits: send the same bytes again later", self._settings_wait)

    @property
    def _settings_wait(self) -> float:
        return min(30.0, 1.0 + self.lag)

    def submit(self, entry: Entry, binary: bool, body: bytes) -> asyncio.Future[Reply | Problem]:
        """Hand over a body for which there is room; it is taken until the answer comes."""
        future: asyncio.Future[Reply | Problem] = self._loop.create_future()
        self.items += 1
        self.bytes += len(body)
        self._queue.put(Parcel(entry, binary, body, future))
        return future

    async def run(self, job: Callable[[Store], T]) -> T:
        """Another change to the store, in its turn."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put((job, future))
        return await future

    @property
    def lag(self) -> float:
        """For how many seconds the transaction of this moment has been running."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _deliver(self, parcels: list[Parcel]) -> None:
        for parcel in parcels:
            self.items -= 1
            self.bytes -= len(parcel.body)
            if not parcel.future.done():
                parcel.future.set_result(parcel.outcome or overloaded("the store did not answer"))

    def report(self) -> None:
        """Log what was committed since the last time, if it is enough that it says nothing about anybody."""
        with self._lock:
            if self._unlogged["counted"] < self._settings.log_minimum:
                return
            done, self._unlogged = self._unlogged, Counter()
        log("committed", **done)

    async def stop(self) -> None:
        """Commit what waits, then close the store."""
        self.stopping = True
        self._queue.put(None)
        await self._loop.run_in_executor(None, self._thread.join)
        self.report()

    # -- the thread's side -------------------------------------------------------------------------

    def _run(self) -> None:
        going, begun = True, 0.0
        while going:
            self._busy_since = None
            if self._late and self._queue.empty():
                self._note_late()
            item = self._queue.get()
            time.sleep(max(0.0, begun + self._settings.gather_seconds - time.monotonic()))
            begun = self._busy_since = time.monotonic()
            parcels: list[Parcel] = []
            size = 0
            while isinstance(item, Parcel):
                parcels.append(item)
                size += len(item.body)
                if len(parcels) >= self._settings.group_items or size >= self._settings.group_bytes:
                    break
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
            if parcels:
                self._commit(parcels)
            if item is None:
                going = False
            elif not isinstance(item, Parcel):
                self._do(item)
            del parcels, item  # or the last group would stay in memory until the next
        self._finish()

    def _commit(self, parcels: list[Parcel]) -> None:
        begun = time.perf_counter()
        try:
            group = Group(parcels, self._settings.clock(), self._settings.max_submissions)
            self._add(group)
            self._metrics.commit(time.perf_counter() - begun)
        except Exception as error:  # a bug must not stop the thread: everybody would wait for ever
            log("error", where="writer", kind=type(error).__name__)
            self._metrics.count("deniable_groups_total", outcome="error")
            for parcel in parcels:
                parcel.outcome = overloaded("the submissions could not be stored: send the same bytes again later")
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._deliver, parcels)

    def _add(self, group: Group) -> None:
        rejected = group.rejected + self._late
        if not group.batches and not rejected:
            return
        try:
            added = self._connected().add(group.batches, rejected)
        except StorageFull:
            self._broken("storage full")
            group.fail(Problem("storageFull", "nothing was stored: send the same bytes again when there is room"))
            return
        except StoreError as error:
            self._broken(type(error).__name__)
            group.fail(overloaded("the store cannot be written: send the same bytes again later", 2.0))
            return
        self._late.clear()
        group.settle(added)
        self._late.update(group.late)
        self._metrics.count("deniable_groups_total", outcome="committed")
        done = Counter(counted=sum(one.fresh for one in added), duplicate=sum(one.duplicates for one in added))
        for (_, _, reason), n in (group.rejected + group.late).items():
            done[reason] += n
        for outcome, n in done.items():
            self._metrics.count("deniable_submissions_total", n, outcome=outcome)
        with self._lock:
            self._unlogged += done + Counter(groups=1)
            self.commits += 1

    def _note_late(self) -> None:
        """Write what the store refused now that nobody waits; otherwise it goes with the next transaction."""
        try:
            self._connected().add([], self._late)
            self._late.clear()
        except Exception as error:  # as in _commit: the thread goes on, and tries again later
            self._broken(type(error).__name__)

    def _do(self, job: _Job) -> None:
        function, future = job
        answer, error = None, None
        try:
            answer = function(self._connected())
            self.commits += 1
        except BaseException as raised:
            error = raised
            if isinstance(raised, StoreError):
                self._broken(type(raised).__name__)
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(deliver, future, answer, error)

    def _connected(self) -> Store:
        if self._store is None:
            if time.monotonic() - self._failed < REPAIR_SECONDS:
                raise StoreError("the store failed a moment ago")
            try:
                self._store = self._open()
            except StoreError:
                self._failed = time.monotonic()
                raise
        return self._store

    def _broken(self, kind: str) -> None:
        log("error", where="store", kind=kind)
        self._metrics.count("deniable_groups_total", outcome="failed")
        store, self._store = self._store, None
        if store is not None:
            with suppress(Exception):
                store.close()

    def _finish(self) -> None:
        if self._late:
            self._note_late()
        if self._store is not None:
            self._store.close()

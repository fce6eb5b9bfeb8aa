"""Group commit: one thread, one connection, and one durable transaction for all waiting requests.

Ack        a request is answered after the commit that holds its submissions, never before
Cost       per request only its header is looked at; submissions are grouped by survey and epoch, plausibility is
           checked and sums are made over whole groups, and results are split by request when the store has answered
Verdicts   a submission is rejected by its epoch, or as implausible, or because its epoch is closed; all others are
           accepted, duplicates included, because a device cannot know that its first attempt was counted
Bounds     waiting requests and bytes are limited; the next request is refused with Retry-After before its body is read
Failure    if the store fails, nothing is counted: every request of the group is asked to send the same bytes again,
           which is safe whether or not the commit went through, because ids are counted once. Then the connection is
           renewed
Stopping   what waits is committed, then the store is closed; a store that does not answer is left as it is
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.collect import wire
from deniable.collect.server.problems import Problem, overloaded
from deniable.collect.server.registry import Entry, deliver
from deniable.collect.server.telemetry import Metrics, log
from deniable.collect.stores.base import Added, Batch, StorageFull, Store, StoreError
from deniable.collect.wire import BAD_PAYLOAD, CONFLICT, EPOCH_CLOSED, HEADER_BYTES, ID_BYTES, MAGIC
from deniable.protocols.reports import Bytes

if TYPE_CHECKING:
    from deniable.collect.server.service import Bounds, Settings, TrustedClock
DAY = 86_400
REPAIR_SECONDS = 0.5
"""Seconds after a failure before the store is opened again."""

T = TypeVar("T")
_Job = tuple[Callable[[Store], Any], "asyncio.Future[Any]"]


class Taken(msgspec.Struct):
    """How many submissions are counted, now or before, and the others as [place, id, reason]."""

    accepted: int
    rejected: list[tuple[int, str, str]]


@dataclass(slots=True)
class Parcel:
    """The body of one request, and the future of its answer."""

    entry: Entry
    binary: bool
    body: bytes
    future: asyncio.Future[Taken | Problem]
    outcome: Taken | Problem | None = None


@dataclass(slots=True)
class _Rows:
    """Rows of a pile that belong to one request."""

    reply: Taken
    start: int
    n: int
    places: NDArray[np.int64] | None


class _Pile:
    """Submissions of one survey and epoch."""

    __slots__ = ("entry", "epoch", "good", "rows", "shares", "size", "taken")

    def __init__(self, entry: Entry, epoch: int) -> None:
        self.entry, self.epoch = entry, epoch
        self.rows: list[bytes] = []
        self.shares: list[_Rows] = []
        self.size = 0
        self.taken: Bytes = np.empty((0, ID_BYTES + entry.width), dtype=np.uint8)
        self.good: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)

    def put(self, reply: Taken, rows: bytes, n: int, places: NDArray[np.int64] | None) -> None:
        self.rows.append(rows)
        self.shares.append(_Rows(reply, self.size, n, places))
        self.size += n

    def batch(self) -> Batch:
        """The plausible submissions; `good` says which those are."""
        self.taken = np.frombuffer(b"".join(self.rows), dtype=np.uint8).reshape(self.size, -1)
        ids, answers = (np.ascontiguousarray(part) for part in np.split(self.taken, [ID_BYTES], axis=1))
        self.good = self.entry.counter.plausible(answers, ids)
        if not self.good.all():
            ids, answers = ids[self.good], answers[self.good]
        return Batch(self.entry.fingerprint, self.epoch, ids, answers)

    def accept(self) -> None:
        """Tell each request how many of its submissions were counted now or before."""
        if self.good.all():
            for share in self.shares:
                share.reply.accepted += share.n
            return
        for share in self.shares:
            good = self.good[share.start : share.start + share.n]
            share.reply.accepted += int(good.sum())
            self._reject(share, np.flatnonzero(~good), BAD_PAYLOAD)

    def reject(self, reason: str) -> None:
        """Tell each request that none of these was accepted: implausible ones as such, the others for this reason."""
        if not self.taken.size:
            self.taken = np.frombuffer(b"".join(self.rows), dtype=np.uint8).reshape(self.size, -1)
            self.good = np.ones(self.size, dtype=np.bool_)
        for share in self.shares:
            good = self.good[share.start : share.start + share.n]
            self._reject(share, np.flatnonzero(~good), BAD_PAYLOAD)
            self._reject(share, np.flatnonzero(good), reason)

    def _reject(self, share: _Rows, which: NDArray[Any], reason: str) -> None:
        for i in which.tolist():
            id = wire.to_text(self.taken[share.start + i, :ID_BYTES].tobytes())
            place = i if share.places is None else int(share.places[i])
            share.reply.rejected.append((place, id, reason))


class Transaction:
    """The requests of one transaction."""

    def __init__(self, parcels: Sequence[Parcel], now: Bounds, most: int) -> None:
        self.parcels = parcels
        self._day = int(now.guess // DAY)
        self._piles: dict[tuple[str, int], _Pile] = {}
        self.rejected: Counter[tuple[str, int, str]] = Counter()
        """For the store: by survey, day and reason."""
        self.late: Counter[tuple[str, int, str]] = Counter()
        """The same for rejections by the store itself, for the next transaction."""
        for parcel in parcels:
            try:
                parcel.outcome = self._sort(parcel, most)
            except wire.TooMany as wrong:
                parcel.outcome = Problem("tooLarge", str(wrong))
            except wire.MalformedBody as wrong:
                parcel.outcome = Problem("malformed", str(wrong))
        self._open: list[_Pile] = []
        self.batches: list[Batch] = []
        for pile in self._piles.values():
            reason = pile.entry.refusal(pile.epoch, now)
            if reason is not None:
                pile.reject(reason)
                self._count(self.rejected, pile, reason, pile.size)
                continue
            batch = pile.batch()
            self._count(self.rejected, pile, BAD_PAYLOAD, pile.size - len(batch.ids))
            self._open.append(pile)
            self.batches.append(batch)

    def _sort(self, parcel: Parcel, most: int) -> Taken:
        entry, body, reply = parcel.entry, parcel.body, Taken(0, [])
        if parcel.binary:
            size = ID_BYTES + entry.width
            n, rest = divmod(len(body) - HEADER_BYTES, size)
            if rest or not 0 < n <= most or not body.startswith(MAGIC):
                wire.decode(body, entry.width, most)  # raises an error that says what is wrong
            epoch = int.from_bytes(body[4:HEADER_BYTES], "little")
            self._pile(entry, epoch).put(reply, body[HEADER_BYTES:], n, None)
            return reply
        found = wire.decode_json(body, entry.width, most)
        reply.rejected.extend(found.rejected)
        self.rejected[entry.fingerprint, self._day, BAD_PAYLOAD] += len(found.rejected)
        for epoch, some in found.by_epoch():
            rows = np.concatenate([some.ids, some.answers], axis=1)
            self._pile(entry, epoch).put(reply, rows.tobytes(), len(some), some.places)
        return reply

    def _pile(self, entry: Entry, epoch: int) -> _Pile:
        key = entry.fingerprint, epoch
        pile = self._piles.get(key)
        if pile is None:
            pile = self._piles[key] = _Pile(entry, epoch)
        return pile

    def _count(self, where: Counter[tuple[str, int, str]], pile: _Pile, reason: str, n: int) -> None:
        if n:
            where[pile.entry.fingerprint, self._day, reason] += n

    def settle(self, added: Sequence[Added]) -> None:
        """Fill in the replies, given the store's result for each batch."""
        for pile, batch, one in zip(self._open, self.batches, added, strict=True):
            if one.closed:
                pile.reject(EPOCH_CLOSED)
                self._count(self.late, pile, EPOCH_CLOSED, len(batch.ids))
            else:
                pile.accept()
                # A device cannot repair it, so it gets the same answer as for any duplicate.
                self._count(self.late, pile, CONFLICT, one.conflicts)
        for parcel in self.parcels:
            if isinstance(parcel.outcome, Taken):
                parcel.outcome.rejected.sort()

    def fail(self, problem: Problem) -> None:
        """Nothing was counted; requests that cannot be parsed keep their own error."""
        for parcel in self.parcels:
            if isinstance(parcel.outcome, Taken):
                parcel.outcome = problem


class Writer:
    """The only writer in this process. Its methods are for the event loop."""

    def __init__(
        self, open_store: Callable[[], Store], settings: Settings, metrics: Metrics, clock: TrustedClock
    ) -> None:
        self._open, self._settings, self._metrics, self._clock = open_store, settings, metrics, clock
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
        """Number of transactions that changed the store."""
        self.full = -1e9
        """When a transaction last found no room, on the monotonic clock."""
        self.stopping = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    # -- the event loop's side ---------------------------------------------------------------------

    def room(self, size: int = 0) -> None:
        """Refuse if there is no room for a body of this size now."""
        if self.stopping:
            raise overloaded("the service is being restarted")
        if self.items >= self._settings.queue_items or self.bytes + size > self._settings.queue_bytes:
            raise overloaded("more waits to be stored than fits: send the same bytes again later", self._retry_seconds)

    @property
    def _retry_seconds(self) -> float:
        return min(30.0, 1.0 + self.lag)

    def submit(self, entry: Entry, binary: bool, body: bytes) -> asyncio.Future[Taken | Problem]:
        """Hand over a body that there is room for; the answer comes after the commit."""
        future: asyncio.Future[Taken | Problem] = self._loop.create_future()
        self.items += 1
        self.bytes += len(body)
        self._queue.put(Parcel(entry, binary, body, future))
        return future

    async def run(self, job: Callable[[Store], T]) -> T:
        """Run another change to the store, in its turn."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put((job, future))
        return await future

    @property
    def lag(self) -> float:
        """For how many seconds the current transaction has been running."""
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
        """Log what was committed since the last time, if it is enough to say nothing about anybody."""
        with self._lock:
            if self._unlogged["counted"] < self._settings.log_minimum:
                return
            done, self._unlogged = self._unlogged, Counter()
        log("committed", **done)

    async def stop(self, seconds: float) -> None:
        """Commit what waits, then close the store; give up after `seconds`."""
        self.stopping = True
        self._queue.put(None)
        await self._loop.run_in_executor(None, self._thread.join, seconds)
        if self._thread.is_alive():
            # These requests were never acknowledged: their senders send them again.
            log("error", where="writer", kind="store does not answer", requests=self.items)
        self.report()

    # -- the thread's side -------------------------------------------------------------------------

    def _run(self) -> None:
        going, begun = True, 0.0
        while going:
            self._busy_since = None
            if self._late and self._queue.empty():
                self._note_late()
            item = self._queue.get()
            time.sleep(max(0.0, begun + self._settings.batch_seconds - time.monotonic()))
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
            del parcels, item  # otherwise the last group would stay in memory until the next
        self._finish()

    def _commit(self, parcels: list[Parcel]) -> None:
        begun = time.perf_counter()
        try:
            group = Transaction(parcels, self._clock.bounds(), self._settings.max_submissions)
            self._add(group)
            self._metrics.commit(time.perf_counter() - begun)
        except Exception as error:  # a bug must not stop the thread: every request would wait for ever
            log("error", where="writer", kind=type(error).__name__)
            self._metrics.count("deniable_groups_total", outcome="error")
            for parcel in parcels:
                parcel.outcome = overloaded("the submissions could not be stored: send the same bytes again later")
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._deliver, parcels)

    def _add(self, group: Transaction) -> None:
        rejected = group.rejected + self._late
        if not group.batches and not rejected:
            return
        try:
            added = self._connected().add(group.batches, rejected)
        except StorageFull as error:
            self.full = time.monotonic()
            self._broken("storage full", error.code)
            group.fail(Problem("storageFull", "nothing was stored: send the same bytes again when there is room"))
            return
        except StoreError as error:
            self._broken(type(error).__name__, error.code)
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
        """Write the rejections by the store now that nobody waits; otherwise they go with the next transaction."""
        try:
            self._connected().add([], self._late)
            self._late.clear()
        except Exception as error:  # as in _commit: the thread goes on, and retries later
            self._broken(type(error).__name__, getattr(error, "code", None))

    def _do(self, job: _Job) -> None:
        function, future = job
        answer, error = None, None
        try:
            answer = function(self._connected())
            self.commits += 1
        except BaseException as raised:
            error = raised
            if isinstance(raised, StoreError):
                self._broken(type(raised).__name__, raised.code)
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(deliver, future, answer, error)

    def _connected(self) -> Store:
        if self._store is None:
            if time.monotonic() - self._failed < REPAIR_SECONDS:
                raise StoreError("the store failed a moment ago")
            try:
                self._store = self._open()
                self._store.keep_reserve()
            except StoreError:
                self._failed = time.monotonic()
                raise
        return self._store

    def _broken(self, kind: str, code: str | None) -> None:
        log("error", where="store", kind=kind, code=code)
        self._metrics.count("deniable_groups_total", outcome="failed")
        store, self._store = self._store, None
        if store is not None:
            with suppress(Exception):
                store.close()
            if store.reconnects:
                self._store = store

    def _finish(self) -> None:
        if self._late:
            self._note_late()
        if self._store is not None:
            self._store.close()

"""What the parts of one process share, from its start to its end: settings, threads, limits and kept answers."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from deniable.collect.server.clock import TrustedClock
from deniable.collect.server.limits import Bucket, Receiving
from deniable.collect.server.problems import Problem, overloaded, wait
from deniable.collect.server.registry import Entry, Readers, Registry, Versions, bearer, check_token, unauthorized
from deniable.collect.server.settings import Settings
from deniable.collect.server.telemetry import Metrics, log
from deniable.collect.server.writer import Writer
from deniable.collect.stores import Store, open_store
from deniable.collect.stores.base import OPEN, Epoch

LAST_SECONDS = 3.0
"""What the writer and the readers have to end when all requests have ended."""
WAITING = 8
"""Questions of side work that wait, at most."""
REST = 4.0
SIDE_BYTES = 4 << 20
TIDY_FILE, TIDY_SERVER = 5.0, 60.0
"""How often earlier states are removed from a store: a file has its log emptied, a server has tables vacuumed."""
NOTE_SECONDS = 600.0
"""How often the store notes the time, for a restart."""


T = TypeVar("T")


class Service:
    """Settings, threads, and what is known of the store."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.readers = Readers(self._open, settings.readers, settings.max_reads)
        self.clock = TrustedClock(settings.clock, settings.monotonic, settings.steady_seconds)
        self.writer = Writer(self._open, settings, self.metrics, self.clock)
        self.registry = Registry(settings, self.readers)
        self.versions = Versions(self.readers, settings.refresh_seconds)
        self.receiving = Receiving(settings)
        self.side_work = SideWork()
        self.cache = Cache(settings.cache_bytes)
        self.bucket = (
            None if settings.rate is None else Bucket(settings.rate, max(settings.rate, settings.max_submissions))
        )
        self.listeners = 0
        self.connections: Callable[[], int] = lambda: 0
        """How many there are."""
        self.pinged = -1e9
        """When the store could be written, as far as somebody asked."""
        self.pinging: asyncio.Future[None] | None = None
        """The attempt that is under way."""
        self.stopping = False
        self.failing: dict[str, str] = {}
        """Steps of housekeeping that failed the last time, and what the database calls it."""
        self._tidied, self._tidied_commits = time.monotonic(), 0
        self._note_due = time.monotonic()

    @property
    def untidied(self) -> float:
        """For how many seconds there may be earlier states in the store's files."""
        return 0.0 if self.writer.commits == self._tidied_commits else time.monotonic() - self._tidied

    @property
    def _tidy_seconds(self) -> float:
        return self.settings.tidy_seconds or (TIDY_FILE if self.settings.store.startswith("sqlite:") else TIDY_SERVER)

    def _open(self) -> Store:
        return open_store(self.settings.store, self.settings.shard)

    def now(self) -> float:
        """The time, as far as it is known; `clock.bounds` says how far."""
        return self.clock.bounds().guess

    @property
    def clock_doubt(self) -> str | None:
        """For people: why no epoch is closed at this time; None if the clock is trusted."""
        why = self.clock.bounds().doubt
        if why is None:
            return None
        minutes = max(1, round(self.settings.steady_seconds / 60))
        return (
            f"{why}: epochs stay open until the clock was steady for {minutes} minutes, or an operator confirms it "
            "with deniable store trust-clock"
        )

    # -- who asks, and about what ------------------------------------------------------------------

    async def authorize(self, role: str, headers: list[tuple[bytes, bytes]], survey: str | None) -> None:
        """Refuse whoever has no token of this role or a stronger one for this survey; None is all surveys."""
        given = bearer(headers)
        token = await self.registry.token(given)
        if token is None:
            raise unauthorized(role, given)
        check_token(token, role, survey, self.now())

    def only_survey(self, headers: list[tuple[bytes, bytes]]) -> str | None:
        """The only survey that the token of a request is good for; None if it has no such limit, or there is none."""
        token = self.registry.keys.find(bearer(headers))
        return None if token is None else token.survey

    def allow(self, entry: Entry, n: int) -> None:
        """Charge n submissions, or refuse if they come faster than they may; 0 only asks."""
        buckets = [bucket for bucket in (entry.bucket, self.bucket) if bucket is not None]
        seconds = max((bucket.wait() for bucket in buckets), default=0.0)
        if seconds:
            raise Problem("rateLimited", "send the same bytes again later", {"Retry-After": wait(seconds)})
        for bucket in buckets:
            bucket.take(n)

    def refund(self, entry: Entry, n: int) -> None:
        """Give back what was charged too much."""
        for bucket in (entry.bucket, self.bucket):
            if bucket is not None:
                bucket.give_back(n)

    # -- life --------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.readers.start()
        self.writer.start()
        try:
            await self.writer.run(lambda store: store.ping())
            await self._check_clock()
            await self.registry.refresh()
            log("started", shard=self.settings.shard, surveys=len(self.registry.entries))
            if self.clock_doubt is not None:
                log("clock", news=self.clock_doubt)
            keeper = asyncio.create_task(self._keep_house())
            try:
                yield
            finally:
                keeper.cancel()
                with suppress(asyncio.CancelledError):
                    await keeper
        finally:
            self.stopping = True
            await self.writer.stop(LAST_SECONDS)
            await asyncio.get_running_loop().run_in_executor(None, self.readers.stop, LAST_SECONDS / 2)
            self.side_work.stop()
            log("stopped", shard=self.settings.shard)

    async def _keep_house(self) -> None:
        """Learn what other processes changed, close epochs whose time is over, and remove traces of order."""
        due = time.monotonic()
        tidying, logging = due + self._tidy_seconds, due + self.settings.log_seconds
        while True:
            await self._step("refresh", self.registry.refresh())
            await self._step("clock", self._check_clock())
            if time.monotonic() >= due:
                due = time.monotonic() + self.settings.housekeeping_seconds
                await self._step("close", self._close_all_past())
            if time.monotonic() >= logging:
                logging += self.settings.log_seconds
                self.writer.report()
            if time.monotonic() >= tidying:
                await self._step("tidy", self._tidy())
                tidying = time.monotonic() + self._tidy_seconds
            await asyncio.sleep(self.settings.refresh_seconds)

    async def _step(self, step: str, work: Awaitable[None]) -> None:
        """One step, whose failure is told and ends nothing."""
        try:
            await work
            self.failing.pop(step, None)
        except Exception as error:  # a bug as well: it must not end the loop silently
            code = getattr(error, "code", None)
            log("error", where="housekeeping", step=step, kind=type(error).__name__, code=code)
            self.metrics.count("deniable_housekeeping_failures_total", step=step)
            self.failing[step] = code or type(error).__name__

    async def _check_clock(self) -> None:
        for news in self.clock.check(await self.readers.run(lambda store: store.time())):
            log("clock", news=news)
        if time.monotonic() >= self._note_due:
            now = self.clock.bounds()
            await self.change(lambda store: store.note_time(now.guess, first=now.doubt is not None))
            self._note_due = time.monotonic() + NOTE_SECONDS

    def untidy(self) -> None:
        """Something went that is to leave the store's files as well."""
        self._tidied_commits = -1

    async def _tidy(self) -> None:
        commits = self.writer.commits
        if commits != self._tidied_commits and await self.readers.run(lambda store: store.tidy()):
            self._tidied, self._tidied_commits = time.monotonic(), commits

    async def _close_all_past(self) -> None:
        for entry in list(self.registry.entries.values()):
            await self._close_past(entry)
        now = self.clock.bounds()
        until = now.earliest if now.doubt is None else 0.0
        await self.change(lambda store: store.forget_ids(until))

    async def _close_past(self, entry: Entry) -> None:
        """Close the epochs that take no report any more."""
        now = self.clock.bounds()
        if now.doubt is not None:
            return
        oldest = entry.terms.epochs.at(now.earliest) - entry.terms.epochs.late
        known = await self.readers.run(lambda store: store.epochs(entry.fingerprint))
        for one in known:
            if one.state == OPEN and one.epoch < oldest:
                await self.close_epoch(entry, one.epoch)
                self.metrics.count("deniable_epochs_closed_total")

    async def change(self, job: Callable[[Store], T]) -> T:
        """Change the store beside the writer, for a change that may take long; it may be tried several times."""
        return await self.readers.change(job, self.settings.request_seconds)

    async def close_epoch(self, entry: Entry, epoch: int) -> Epoch:
        """Close an epoch; its ids are kept for some time."""
        forget = self.now() + self.settings.reopen_seconds
        closed = await self.change(lambda store: store.close_epoch(entry.fingerprint, epoch, forget))
        log("closed epoch", survey=entry.fingerprint, epoch=epoch, n=closed.n)
        return closed


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
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="side-work")
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

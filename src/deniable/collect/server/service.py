"""What the parts of one process share: settings, a trusted clock, threads and cached answers.

Trusted time: the wall clock is trusted only after it has kept step with the monotonic clock. A clock that jumps must
not end a survey: an epoch that closes too early refuses honest reports for good.

Steady     the wall clock is within `TOLERANCE` seconds of the time extrapolated by the monotonic clock and, if the
           store has its own clock (PostgreSQL), of that clock
Settled    it was steady for `steady_seconds`, or an operator has confirmed it. Only then are epochs closed
In doubt   after a start and after a jump. The time may then be any that one of the clocks shows: the wall clock, the
           time before the jump extrapolated, the store's clock. A report is refused because of its epoch only if all
           of them refuse it; that is safe, because an epoch that is not closed remembers its ids
Restart    the store records the time while it is settled, so that a start during a jump does not forget it. A new
           store records the first time that it sees
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from deniable.collect.sealing import CollectorKey
from deniable.collect.server.problems import Bucket, Problem, Rates, Receiving, overloaded
from deniable.collect.server.registry import Entry, Readers, Registry, Versions, bearer, check_token, unauthorized
from deniable.collect.server.telemetry import Metrics, log
from deniable.collect.server.writer import Writer
from deniable.collect.stores import Store, open_store
from deniable.collect.stores.base import OPEN, REOPEN_SECONDS, TOLERANCE, Epoch, StorageFull, StoredTime, StoreError
from deniable.errors import NumberError

# -- the clock ----------------------------------------------------------------------------------------


STARTED = "the service has started"
JUMPED = "the clock has jumped"
DISAGREES = "the clock and that of the database disagree"
SETTLED = "the time is trusted"


@dataclass(frozen=True)
class Bounds:
    """The current time: between these two moments, with a best guess."""

    earliest: float
    guess: float
    latest: float
    doubt: str | None
    """Why the time is not settled, for an operator; None if it is, and then all three are the wall clock's."""


@dataclass(frozen=True)
class _Known:
    """What is known of the clocks. An offset plus the monotonic clock is a time."""

    trusted: float
    """Offset of the last trusted time."""
    wall: float
    """Offset of the wall clock since `since`."""
    since: float
    """When the wall clock became steady, by the monotonic clock."""
    settled: bool
    why: str
    """Why the time is not settled, or was not."""
    store: float | None = None
    """Offset of the store's clock."""


class TrustedClock:
    """The time for a service. Any thread may ask; one of them calls `check` about every second.

    >>> wall, monotonic = [1000.0], [0.0]
    >>> clock = TrustedClock(lambda: wall[0], lambda: monotonic[0], steady_seconds=3600)
    >>> clock.bounds().doubt
    'the service has started'
    >>> wall[0], monotonic[0] = 4700.0, 3700.0
    >>> clock.check(), clock.bounds().doubt
    (['the time is trusted'], None)
    >>> wall[0] += 40 * 86_400
    >>> clock.bounds()
    Bounds(earliest=4700.0, guess=4700.0, latest=3460700.0, doubt='the clock has jumped')
    """

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float], steady_seconds: float) -> None:
        self._wall, self._monotonic, self._steady = wall, monotonic, steady_seconds
        self._confirmed: int | None = None
        self._asked_store = False
        now = monotonic()
        offset = wall() - now
        self._known = _Known(offset, offset, now, False, STARTED)

    def bounds(self) -> Bounds:
        known, now, wall = self._known, self._monotonic(), self._wall()
        jumped = abs(wall - (known.wall + now)) > TOLERANCE
        if known.settled and not jumped:
            return Bounds(wall, wall, wall, None)
        trusted = known.trusted + now
        times = sorted([wall, trusted] + ([] if known.store is None else [known.store + now]))
        if len(times) == 3:
            guess = times[1]
        else:
            # The length of the stop is unknown, but no clock goes back.
            guess = wall if known.why == STARTED and not jumped and wall > trusted - TOLERANCE else trusted
        return Bounds(times[0], guess, times[-1], JUMPED if jumped else known.why)

    def check(self, stored: StoredTime | None = None) -> list[str]:
        """Update from the clocks, given the time in the store. Returns the changes, for the log."""
        known, now, wall = self._known, self._monotonic(), self._wall()
        news = []
        if stored is not None:
            if stored.trusted is not None and not self._asked_store:
                known = replace(known, trusted=stored.trusted - now)
            if stored.clock is not None:
                known = replace(known, store=stored.clock - now)
            self._asked_store = True
        if abs(wall - (known.wall + now)) > TOLERANCE:
            known = replace(known, wall=wall - now, since=now, settled=False, why=JUMPED)
            news.append(JUMPED)
        if known.store is not None and abs(wall - (known.store + now)) > TOLERANCE:
            if known.why != DISAGREES or known.settled:
                news.append(DISAGREES)
            known = replace(known, since=now, settled=False, why=DISAGREES)
        elif now - known.since >= self._steady or self._is_confirmed(stored, wall):
            if not known.settled:
                news.append(SETTLED)
            # A clock that is slowly corrected is followed.
            known = replace(known, trusted=wall - now, wall=wall - now, since=now, settled=True)
        self._known = known
        return news

    def _is_confirmed(self, stored: StoredTime | None, wall: float) -> bool:
        """Whether an operator has confirmed, a moment ago, that the time is what this clock shows."""
        if stored is None or stored.confirmed is None or stored.confirmed == self._confirmed:
            return False
        self._confirmed = stored.confirmed
        return abs(wall - stored.confirmed) <= TOLERANCE


# -- what an operator decides -------------------------------------------------------------------------


MEBIBYTE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one process of the service.

    Args:
        store: URL of the store, in the form that `open_store` takes.
        host: Address to listen at.
        port: Port to listen at; 0 for any free one.
        origin: The public address, such as https://answers.example.org; shown on the front page.
        operator_host: Address for probes and metrics.
        operator_port: Where probes and metrics are answered without a token; None: only at `port`.
        otel: Whether metrics are also pushed by OpenTelemetry; needs the operator's port.
        shard: The number of this worker: it has its own part of each tally.
        needs_token: Whether reports need an ingest key.
        relay_key: The file with the collector's key, for surveys whose submissions arrive sealed through a relay.
        plans: Whether everyone may request plans here.
        max_body: Maximum size of a body in bytes; longer ones are refused before they are read.
        max_submissions: Maximum number of submissions in one body.
        queue_items: Maximum number of requests that wait for a commit; more get a refusal with Retry-After.
        queue_bytes: Maximum number of bytes of bodies that wait for a commit.
        arriving: Maximum number of bodies that arrive at once; beyond that, the oldest is dropped.
        arriving_bytes: Maximum number of bytes of bodies that are still arriving; beyond that, the oldest is dropped.
        group_items: Maximum number of requests per transaction.
        group_bytes: Maximum number of bytes per transaction.
        batch_seconds: Minimum seconds between the starts of two transactions: fewer and larger ones cost less.
        rate: Submissions per second that this process accepts, per ingest key if keys are required; None: no limit.
        survey_rate: The same per survey.
        body_seconds: Maximum seconds for a body to arrive.
        stall_seconds: Maximum seconds that an arriving body may pause.
        head_seconds: Maximum seconds for the headers of a request.
        head_bytes: Maximum size of the headers of a request.
        idle_seconds: Seconds that a connection without a request is kept.
        request_seconds: Maximum seconds until the answer to a request begins; then the request is refused with
            Retry-After.
        stop_seconds: Seconds that requests may take to end after SIGTERM; the process ends at most five seconds after
            that.
        connections: Maximum number of open connections.
        listeners: Maximum number of simultaneous event streams.
        heartbeat_seconds: Seconds between signs of life in an event stream.
        readers: Threads that read the store, or close an epoch, which may take long.
        max_reads: Maximum number of waiting reads and estimates; more get a refusal with Retry-After.
        refresh_seconds: Maximum age, in seconds, of what a process knows of surveys, tokens and sums that other
            processes change.
        housekeeping_seconds: How often epochs that are over are closed, in seconds.
        tidy_seconds: How often earlier states are removed from the store's files; None: 5 in a file, 60 in PostgreSQL.
        log_level: Lines below "error", "warning" or "info" are left out.
        log_seconds: Seconds between totals in the log.
        log_minimum: Minimum number of submissions in a total; smaller totals wait for the next time.
        cache_bytes: Bytes of cached answers to analysts, for repeated requests.
        reopen_seconds: How long ids are kept after their epoch was closed, so that it can be reopened.
        steady_seconds: How long the clock is watched after a start or a jump before epochs are closed by it.
        clock: The time of day, in seconds since 1970.
        monotonic: A clock that never jumps, in seconds.

    >>> Settings(store="sqlite:///collection.db").max_submissions
    10000
    """

    store: str
    host: str = "127.0.0.1"
    port: int = 8377
    origin: str | None = None
    operator_host: str = "127.0.0.1"
    operator_port: int | None = None
    otel: bool = False
    shard: int = 0

    needs_token: bool = False
    relay_key: str | None = None
    plans: bool = True

    max_body: int = 4 * MEBIBYTE
    max_submissions: int = 10_000
    queue_items: int = 10_000
    queue_bytes: int = 64 * MEBIBYTE
    arriving: int = 1_024
    arriving_bytes: int = 32 * MEBIBYTE
    group_items: int = 4_096
    group_bytes: int = 8 * MEBIBYTE
    batch_seconds: float = 0.002
    rate: float | None = None
    survey_rate: float | None = None

    body_seconds: float = 20.0
    stall_seconds: float = 5.0
    head_seconds: float = 10.0
    head_bytes: int = 65_536
    idle_seconds: int = 15
    request_seconds: float = 30.0
    stop_seconds: int = 30
    connections: int = 4_096
    listeners: int = 100
    heartbeat_seconds: float = 15.0

    readers: int = 3
    max_reads: int = 64
    refresh_seconds: float = 1.0
    housekeeping_seconds: float = 10.0
    tidy_seconds: float | None = None
    log_level: str = "info"
    log_seconds: float = 3600.0
    log_minimum: int = 100
    cache_bytes: int = 32 * MEBIBYTE

    reopen_seconds: float = REOPEN_SECONDS
    steady_seconds: float = 3600.0
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        positive = (
            "max_body max_submissions queue_items queue_bytes group_items group_bytes body_seconds head_seconds "
            "head_bytes connections request_seconds readers max_reads refresh_seconds arriving arriving_bytes "
            "stall_seconds log_seconds"
        )
        for name in positive.split():
            if getattr(self, name) <= 0:
                raise NumberError(f"{name} is above zero, not {getattr(self, name)}")
        for name in ("rate", "survey_rate", "tidy_seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise NumberError(f"{name} is above zero, not {value}")
        for name in ("steady_seconds", "reopen_seconds"):
            if not getattr(self, name) >= 0:
                raise NumberError(f"{name} is zero or more, not {getattr(self, name)}")
        for name in ("queue_bytes", "arriving_bytes"):
            if getattr(self, name) < self.max_body:
                raise NumberError(f"{name} is at least max_body, or the largest body could never be taken")


# -- the service --------------------------------------------------------------------------------------


LAST_SECONDS = 3.0
"""Seconds that the writer and the readers have to finish after all requests have ended."""
SOON_SECONDS, OLD_SECONDS = 0.35, 8.0
"""How long a probe waits for an answer, and the maximum age of a cached answer that it gives instead."""
WAITING = 8
"""Maximum number of waiting side-work questions."""
REST, CREDIT = 4.0, 3.0
"""Side work rests this many times as long as it worked, once it has worked for this many seconds."""
SIDE_BYTES = 4 << 20
TIDY_FILE, TIDY_SERVER = 5.0, 60.0
"""How often earlier states are removed from a store: a file's log is emptied, a server's tables are vacuumed."""
NOTE_SECONDS = 600.0
"""How often the store records the time, for a restart."""


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
        self.side_work, self.audits = SideWork(), SideWork()
        self.cache = Cache(settings.cache_bytes)
        self._bucket = self._new_bucket()
        self._sources: dict[str, Bucket] = {}
        """Rate limits of clients that send with their own token."""
        self.key = None if settings.relay_key is None else CollectorKey.load(settings.relay_key)
        self.opener = ThreadPoolExecutor(1, thread_name_prefix="opener")
        """Opens sealed records, outside the event loop."""
        self.listeners = 0
        self.connections: Callable[[], int] = lambda: 0
        """Returns the number of open connections."""
        self.pinged = -1e9
        """When the store was last written successfully, as far as a probe asked."""
        self.pinging: asyncio.Future[None] | None = None
        """The attempt that is in progress."""
        self._latest: dict[str, Latest] = {}
        self.stopping = False
        self.failing: dict[str, str] = {}
        """Housekeeping steps that failed the last time, with the database's name for the error."""
        self._tidied, self._tidied_commits = time.monotonic(), 0
        self._note_due = time.monotonic()

    async def latest(self, name: str, ask: Callable[[], Awaitable[T]]) -> T | None:
        """The answer to a question that is asked repeatedly, at once; None if there is no answer."""
        found: T | None = await self._latest.setdefault(name, Latest(ask)).get()
        return found

    @property
    def untidied(self) -> float:
        """For how many seconds the store's files may have held earlier states."""
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
        """For people: why no epoch is closed now; None if the clock is trusted."""
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
        """Refuse requests without a token of this role or a stronger one for this survey; None means all surveys."""
        given = bearer(headers)
        token = await self.registry.token(given)
        if token is None:
            raise unauthorized(role, given)
        check_token(token, role, survey, self.now())

    def only_survey(self, headers: list[tuple[bytes, bytes]]) -> str | None:
        """The only survey that the request's token is valid for; None if it has no such limit, or there is no token."""
        token = self.registry.keys.find(bearer(headers))
        return None if token is None else token.survey

    def rates(self, entry: Entry, headers: list[tuple[bytes, bytes]]) -> Rates:
        """What a request is charged to: its survey's bucket, and its token's or, without a token, the common one."""
        bucket = self._bucket
        if bucket is not None and self.settings.needs_token:
            token = self.registry.keys.find(bearer(headers))
            if token is not None:
                bucket = self._sources.get(token.sha256) or self._new_bucket()
                self._sources[token.sha256] = cast(Bucket, bucket)
        return Rates(entry.bucket, bucket)

    def _new_bucket(self) -> Bucket | None:
        rate = self.settings.rate
        return None if rate is None else Bucket.of(rate, self.settings.max_submissions)

    # -- life --------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.readers.start()
        self.writer.start()
        try:
            with suppress(StorageFull):  # existing data can be read and closed; readiness says that the store is full
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
            self.audits.stop()
            self.opener.shutdown(cancel_futures=True)
            log("stopped", shard=self.settings.shard)

    async def _keep_house(self) -> None:
        """Learn what other processes changed, close epochs that are over, and remove traces of order."""
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
        """One step. If it fails, log it and go on."""
        try:
            await work
            self.failing.pop(step, None)
        except Exception as error:  # bugs too: they must not end the loop silently
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
        """Something was deleted that must leave the store's files as well."""
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
        """Close the epochs that accept no more reports."""
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
        """Change the store outside the writer, for a change that may take long; it may be tried several times."""
        return await self.readers.change(job, self.settings.request_seconds)

    async def close_epoch(self, entry: Entry, epoch: int) -> Epoch:
        """Close an epoch; its ids are kept for some time."""
        forget = self.now() + self.settings.reopen_seconds
        closed = await self.change(lambda store: store.close_epoch(entry.fingerprint, epoch, forget))
        log("closed epoch", survey=entry.fingerprint, epoch=epoch, n=closed.n)
        return closed


class Cache:
    """Bytes by key; the least recently used are dropped first.

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


class Latest:
    """The answer to a question that may take long: current, or some seconds old, but always soon.

    Simultaneous callers share one question; an answer that comes late is kept for the next caller.
    """

    def __init__(self, ask: Callable[[], Awaitable[Any]]) -> None:
        self._ask = ask
        self._asking: asyncio.Future[Any] | None = None
        self._when, self._last = -1e9, None

    async def get(self) -> Any:
        """None if there is no answer, or only an old one."""
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask())
            self._asking.add_done_callback(self._answered)
        with suppress(TimeoutError, StoreError, Problem):
            async with asyncio.timeout(SOON_SECONDS):
                return await asyncio.shield(self._asking)
        return self._last if time.monotonic() - self._when < OLD_SECONDS else None

    def _answered(self, done: asyncio.Future[Any]) -> None:
        self._asking = None
        if not done.cancelled() and done.exception() is None:
            self._when, self._last = time.monotonic(), done.result()


class SideWork:
    """Work open to everyone that must not hold up the collection: plans, and audits. Answers are bytes.

    One thread     which rests four times as long as it worked: a flood of questions takes at most a fifth of a
                   processor. Rest is required only beyond a credit of some seconds of work, which idle time restores: a
                   few questions one after the other do not wait
    Short queue    questions beyond it are refused with Retry-After
    Kept answers   the same question again costs nothing; simultaneous callers share one computation
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="side-work")
        self._rested = time.monotonic()
        self._cache = Cache(SIDE_BYTES)
        self._asked: dict[Hashable, asyncio.Future[bytes]] = {}

    async def answer(self, question: Hashable, job: Callable[[], bytes]) -> bytes:
        found = self._cache.get(question)
        if found is not None:
            return found
        asked = self._asked.get(question)
        if asked is None:
            if len(self._asked) >= WAITING:
                raise overloaded("too many ask for such work at once", 2.0)
            asked = asyncio.get_running_loop().run_in_executor(self._thread, self._work, job)
            self._asked[question] = asked
            asked.add_done_callback(lambda done: self._done(question, done))
        # A caller who leaves does not cancel the work for the others.
        return await asyncio.shield(asked)

    def _work(self, job: Callable[[], bytes]) -> bytes:
        now = time.monotonic()
        time.sleep(max(0.0, self._rested - now - (1 + REST) * CREDIT))
        begun = time.thread_time()
        try:
            return job()
        finally:
            self._rested = max(self._rested, now) + (1 + REST) * (time.thread_time() - begun)

    def _done(self, question: Hashable, done: asyncio.Future[bytes]) -> None:
        self._asked.pop(question, None)
        if not done.cancelled() and done.exception() is None:
            self._cache.put(question, done.result())

    def stop(self) -> None:
        self._thread.shutdown(cancel_futures=True)

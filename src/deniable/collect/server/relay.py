"""The relay: takes sealed submissions, forgets who sent them, and passes them on in random order, in large batches.

Sees       addresses while a request lasts, the survey and the epoch; never an answer or an id, which are sealed
Keeps      sealed records, keyed by their hash: neither address nor time nor order of arrival. A record is overwritten
           once the collector has it; its hash stays until the epoch has ended, so that a record counts once
Batches    of one survey and one epoch. Once twice the smallest batch size is waiting, one batch of that size is drawn
           at random and passed on; so one whole batch always waits for the end of the epoch, and leaves with the
           rest. An epoch with fewer submissions in total than a batch is discarded and counted; the survey says so
           beforehand
End        a relay accepts submissions of an epoch for one epoch less than the collector does. That time is left for
           the last batch to arrive
Clock      the relay ends an epoch, and discards a batch that is too small, only by a trusted clock (`TrustedClock`):
           a clock that has jumped is watched first. Until then submissions are accepted if one of the possible times
           allows it, and a whole batch that is due by the best guess leaves. The queue records the hour while the
           clock is trusted, so that a start during a jump does not forget it
Once       the records of a batch are fixed on the disk before the first of them leaves. A batch whose acknowledgement
           was lost is sent again, whole; the collector counts each id, which is inside the seal, once
Ack        a device is answered after the commit that holds its record; all waiting requests share one commit
Pressure   what does not fit is refused with 503, and devices retry; the collector's refusals make the relay wait
Surveys    are independent. One that the collector refuses (unknown, ended, no key, a token that is not valid for it)
           is set aside: named in /readyz and in the metrics, and retried from time to time, while the others go on.
           No more of its submissions are accepted meanwhile, because they could not be delivered: devices keep what
           they have, or drop it if the survey has ended. Waiting records of an ended survey are discarded and counted
           at the epoch's end
Full       a reserve on the disk is released first; nothing is accepted until it is there again, and waiting batches
           still leave
Disk       SQLite with a write-ahead log, synchronous FULL and secure_delete; the log is emptied every few seconds
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import sqlite3
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from deniable.collect.client.client import pause, retry_after
from deniable.collect.http import Transport, Unreachable
from deniable.collect.sealing import SEALED, joined, record_bytes, split
from deniable.collect.server import admin, run
from deniable.collect.server.api import Answer, Call, Operation, Resource, resources
from deniable.collect.server.ingest import SURVEY
from deniable.collect.server.problems import Problem, Receiving, announced, media_type, overloaded, problem_kind
from deniable.collect.server.service import NOTE_SECONDS, Settings, TrustedClock
from deniable.collect.server.telemetry import Family, Labels, Metrics, gauge, log, own_the_process, shared_gauge
from deniable.collect.server.writer import Taken
from deniable.collect.stores.base import StorageFull, StoredTime, StoreError
from deniable.collect.stores.reserve import Reserve
from deniable.collect.wire import EPOCH_CLOSED, JSON, MalformedBody
from deniable.errors import SpecError
from deniable.surveys import Survey
from deniable.surveys.terms import Relay as RelayTerms, Terms

CHUNK_RECORDS, CHUNK_BYTES = 1_000, 1 << 19
"""Records of a batch per request to the collector, at most: half of what proxies accept by default."""
RETRIED = (408, 429)
"""Refusals with a status from 400 to 499 that are temporary, and not about the survey."""
ASIDE_SECONDS = 60.0
"""Seconds after which a device may ask again whether a survey that was set aside is carried."""
TIDY_SECONDS = 5.0
HOUR = 3600.0
LOOK_SECONDS = 1.0

T = TypeVar("T")

_secure = random.SystemRandom()

_TABLES = """
    CREATE TABLE IF NOT EXISTS sealed (
        survey TEXT NOT NULL, epoch INTEGER NOT NULL, mark BLOB NOT NULL, batch INTEGER, record BLOB,
        PRIMARY KEY (survey, epoch, mark)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS batch (
        survey TEXT NOT NULL, epoch INTEGER NOT NULL, number INTEGER NOT NULL, size INTEGER NOT NULL,
        sent INTEGER NOT NULL, PRIMARY KEY (survey, epoch, number)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS ended (
        survey TEXT NOT NULL, epoch INTEGER NOT NULL, discarded INTEGER NOT NULL, PRIMARY KEY (survey, epoch)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS clock (name TEXT PRIMARY KEY, moment INTEGER NOT NULL) WITHOUT ROWID
"""
_EPOCH = "survey = ? AND epoch = ?"


@dataclass(frozen=True, kw_only=True)
class RelaySettings(Settings):
    """Settings of one relay: `store` is its queue, a SQLite file."""

    collector: str
    """Where batches go: https://host."""
    surveys: tuple[Survey, ...] = ()
    token: str | None = None
    """An ingest key of the collector, if it requires one."""
    most_waiting: int = 5_000_000
    """Maximum number of sealed records on the disk; more are refused until the collector has taken some."""
    insecure: bool = False
    """Whether to allow a collector on another machine without TLS."""


class Batch(NamedTuple):
    """Records of one survey and epoch that leave together."""

    survey: str
    epoch: int
    number: int


class Refusal(NamedTuple):
    """The collector's answer if it refused the records."""

    status: int
    """0 if it cannot be reached."""
    kind: str
    """The kind of problem, if it is a known one."""
    wait: float
    """Seconds that the relay should wait before the next request."""

    @property
    def for_good(self) -> bool:
        """Whether the refusal is about the survey, so that the same bytes would be refused again."""
        return self.status == 501 or (400 <= self.status < 500 and self.status not in RETRIED)

    @property
    def ended(self) -> bool:
        return self.status == 410

    def __str__(self) -> str:
        return f"the collector answers {self.status} {self.kind}".rstrip()


@dataclass
class Course:
    """How the forwarding of one survey goes."""

    held: int = 0
    """Records that the collector does not have yet."""
    refused: Refusal | None = None
    """Why the survey is set aside."""
    failures: int = 0
    not_before: float = 0.0
    chunk: int = CHUNK_RECORDS
    """Maximum number of records per request."""


# -- the queue on the disk ----------------------------------------------------------------------------


class Queue:
    """Sealed records until the collector has them. One thread at a time."""

    def __init__(self, path: Path) -> None:
        self._reserve = Reserve(path)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        self._connection = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
        for setting in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "temp_store = MEMORY"):
            self._connection.execute(f"PRAGMA {setting}")
        for statement in _TABLES.split(";"):
            self._connection.execute(statement)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                raise StoreError("the queue cannot be written") from error
            # The space is for batches that leave, which make room in the file.
            self._reserve.give_up()
            raise StorageFull("the disk of the queue is full") from error

    def add(self, parcels: Sequence[tuple[str, int, list[bytes]]]) -> list[int | None]:
        """The number of new records in each parcel; None for an epoch that has ended here."""
        found: list[int | None] = []
        if not self._reserve.keep():
            raise StorageFull("the disk of the queue is full, and its reserve is given up")
        with self._transaction() as connection:
            for survey, epoch, records in parcels:
                if connection.execute(f"SELECT 1 FROM ended WHERE {_EPOCH}", (survey, epoch)).fetchone():
                    found.append(None)
                    continue
                rows = [(survey, epoch, hashlib.sha256(record).digest()[:16], record) for record in records]
                before = connection.total_changes
                connection.executemany("INSERT OR IGNORE INTO sealed VALUES (?, ?, ?, NULL, ?)", rows)
                found.append(connection.total_changes - before)
        return found

    def waiting(self) -> dict[tuple[str, int], int]:
        """The number of records of each survey and epoch that are not in a batch yet."""
        query = "SELECT survey, epoch, count(*) FROM sealed WHERE batch IS NULL GROUP BY survey, epoch"
        return {(survey, epoch): n for survey, epoch, n in self._connection.execute(query)}

    def epochs(self) -> list[tuple[str, int]]:
        """The surveys and epochs that have anything here."""
        return list(self._connection.execute("SELECT DISTINCT survey, epoch FROM sealed"))

    def held(self) -> dict[str, int]:
        """The number of records of each survey that the collector does not have yet."""
        query = "SELECT survey, count(*) FROM sealed WHERE record IS NOT NULL GROUP BY survey"
        return dict(self._connection.execute(query).fetchall())

    def draw(self, survey: str, epoch: int, size: int | None = None) -> Batch:
        """Make a batch of `size` waiting records, each equally likely; without a size, of all of them."""
        with self._transaction() as connection:
            query = f"SELECT mark FROM sealed WHERE {_EPOCH} AND batch IS NULL"
            marks = [mark for (mark,) in connection.execute(query, (survey, epoch))]
            drawn = marks if size is None else _secure.sample(marks, size)
            row = connection.execute(f"SELECT count(*) FROM batch WHERE {_EPOCH}", (survey, epoch)).fetchone()
            made = Batch(survey, epoch, int(row[0]))
            connection.execute("INSERT INTO batch VALUES (?, ?, ?, ?, 0)", (*made, len(drawn)))
            rows = [(made.number, survey, epoch, mark) for mark in drawn]
            connection.executemany(f"UPDATE sealed SET batch = ? WHERE {_EPOCH} AND mark = ?", rows)
        return made

    def unsent(self) -> list[Batch]:
        """Unsent batches, taking the surveys in turn."""
        query = "SELECT survey, epoch, number FROM batch WHERE sent = 0 ORDER BY number, survey, epoch"
        return [Batch(*row) for row in self._connection.execute(query)]

    def records(self, batch: Batch) -> list[bytes]:
        """The records of a batch, in random order."""
        query = f"SELECT record FROM sealed WHERE {_EPOCH} AND batch = ?"
        found = [record for (record,) in self._connection.execute(query, batch)]
        _secure.shuffle(found)
        return found

    def sent(self, batch: Batch) -> None:
        """Overwrite the records that the collector has."""
        with self._transaction() as connection:
            connection.execute(f"UPDATE sealed SET record = NULL WHERE {_EPOCH} AND batch = ?", batch)
            connection.execute(f"UPDATE batch SET sent = 1 WHERE {_EPOCH} AND number = ?", batch)

    def end(self, survey: str, epoch: int) -> int:
        """Forget an epoch; returns how many records were discarded: too few for a batch, or the survey has ended."""
        with self._transaction() as connection:
            query = f"SELECT count(*) FROM sealed WHERE {_EPOCH} AND record IS NOT NULL"
            discarded = int(connection.execute(query, (survey, epoch)).fetchone()[0])
            connection.execute("INSERT OR IGNORE INTO ended VALUES (?, ?, ?)", (survey, epoch, discarded))
            for table in ("sealed", "batch"):
                connection.execute(f"DELETE FROM {table} WHERE {_EPOCH}", (survey, epoch))
        return discarded

    def time(self) -> StoredTime:
        """The last trusted hour."""
        row = self._connection.execute("SELECT moment FROM clock WHERE name = 'trusted'").fetchone()
        return StoredTime(None if row is None else int(row[0]), None)

    def note_time(self, trusted: float, first: bool) -> None:
        """Record a time, rounded to the hour, so that it does not show when somebody sent. `first` never overwrites."""
        change = "NOTHING" if first else "UPDATE SET moment = excluded.moment"
        with self._transaction() as connection:
            hour = int(trusted // HOUR * HOUR)
            connection.execute(f"INSERT INTO clock VALUES ('trusted', ?) ON CONFLICT (name) DO {change}", (hour,))

    def tidy(self) -> None:
        """Empty the log, which holds recent commits in their order."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def close(self) -> None:
        self.tidy()
        self._connection.close()


# -- the process --------------------------------------------------------------------------------------


@dataclass
class _Parcel:
    survey: str
    epoch: int
    records: list[bytes]
    done: asyncio.Future[int | None] = field(repr=False)


class Relay:
    """Takes, batches and forwards. Also offers what the HTTP parts of the collection service expect of a service."""

    def __init__(self, settings: RelaySettings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.receiving = Receiving(settings)
        self.stopping = False
        self.clock = TrustedClock(settings.clock, settings.monotonic, settings.steady_seconds)
        self.connections: Callable[[], int] = lambda: 0
        self.surveys = {survey.fingerprint: survey for survey in settings.surveys}
        for survey in settings.surveys:
            if survey.terms is None or survey.terms.relay is None:
                raise SpecError(f"the survey {survey.name!r} names no relay: its submissions go to the collector")
        self.courses: defaultdict[str, Course] = defaultdict(Course)
        self.bytes = 0
        self.full = -1e9
        """When the disk was full, on the monotonic clock."""
        self.unreachable = False
        self._parcels: list[_Parcel] = []
        self._committing: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._not_before = 0.0
        self._failures = 0

    @property
    def held(self) -> int:
        """Records that the collector does not have yet."""
        return sum(course.held for course in self.courses.values())

    def aside(self) -> dict[str, str]:
        """Why surveys are set aside, by fingerprint."""
        found = {}
        for survey, course in sorted(self.courses.items()):
            if course.refused is not None:
                found[survey] = str(course.refused)
            elif survey not in self.surveys and course.held:
                found[survey] = "this relay was started without the survey"
        return found

    def named(self, fingerprint: str) -> tuple[Survey, Terms, RelayTerms]:
        survey = self.surveys.get(fingerprint)
        if survey is None or survey.terms is None or survey.terms.relay is None:
            raise Problem("unknownSurvey", "this relay does not carry submissions of that survey")
        return survey, survey.terms, survey.terms.relay

    # -- life --------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="queue")
        self._sender = ThreadPoolExecutor(1, thread_name_prefix="sender")
        self._transport = Transport(self.settings.collector, insecure=self.settings.insecure)
        path = Path(self.settings.store.removeprefix("sqlite:///"))
        self._queue = await asyncio.get_running_loop().run_in_executor(self._thread, Queue, path)
        for survey, held in (await self._do(self._queue.held)).items():
            self.courses[survey].held = held
        self.clock.check(await self._do(self._queue.time))
        log("started", surveys=len(self.surveys), held=self.held)
        for survey, why in self.aside().items():
            log("set aside", "warning", survey=survey, why=why, held=self.courses[survey].held)
        keeper = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            self.stopping = True
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper
            if self._committing is not None:
                await self._committing
            await self._do(self._queue.close)
            self._thread.shutdown()
            self._sender.shutdown(cancel_futures=True)
            self._transport.close()
            log("stopped")

    async def _do(self, job: Callable[..., T], *given: Any) -> T:
        """Run a job on the queue, in its turn."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: job(*given))

    # -- taking ------------------------------------------------------------------------------------

    def room(self, survey: str, records: int = 1, size: int = 0) -> None:
        if self.stopping:
            raise overloaded("the relay is being restarted")
        refused = self.courses[survey].refused
        if refused is not None and refused.ended:
            raise Problem("surveyClosed", "the survey has ended: the collector counts nothing more of it")
        if refused is not None:
            raise overloaded(f"this survey cannot be delivered: {refused}", ASIDE_SECONDS)
        # Records that are set aside do not count: they take no room from the others.
        held = sum(course.held for course in self.courses.values() if course.refused is None)
        if held + records > self.settings.most_waiting or self.bytes + size > self.settings.queue_bytes:
            raise overloaded("more waits for the collector than fits: send the same bytes again later", 10.0)

    async def take(self, survey: str, epoch: int, records: list[bytes]) -> int | None:
        """The number of new records, once they are on the disk."""
        done: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        size = sum(map(len, records))
        self.bytes += size
        try:
            self._parcels.append(_Parcel(survey, epoch, records, done))
            if self._committing is None:
                self._committing = asyncio.create_task(self._commit())
            return await done
        finally:
            self.bytes -= size

    async def _commit(self) -> None:
        """One transaction for all waiting parcels, then the next for those that arrived meanwhile."""
        try:
            while self._parcels:
                parcels, self._parcels = self._parcels, []
                begun = time.perf_counter()
                try:
                    found = await self._do(self._queue.add, [(one.survey, one.epoch, one.records) for one in parcels])
                except Exception as error:  # waiting clients get a refusal with Retry-After
                    if isinstance(error, StorageFull):
                        self.full = time.monotonic()
                    for one in parcels:
                        if not one.done.done():
                            one.done.set_exception(error)
                    continue
                self.metrics.commit(time.perf_counter() - begun)
                for one, fresh in zip(parcels, found, strict=True):
                    self.courses[one.survey].held += fresh or 0
                    outcomes = {"counted": fresh or 0, "duplicate": len(one.records) - (fresh or 0)}
                    for outcome, n in outcomes.items() if fresh is not None else ():
                        self.metrics.count("deniable_submissions_total", n, outcome=outcome)
                    if not one.done.done():
                        one.done.set_result(fresh)
        finally:
            self._committing = None
            self._wake.set()

    # -- forwarding --------------------------------------------------------------------------------

    async def _keep(self) -> None:
        tidying = noting = 0.0
        while True:
            self._wake.clear()
            for news in self.clock.check():
                log("clock", news=news)
            try:
                await self._forward()
                if time.monotonic() >= noting:
                    now = self.clock.bounds()
                    await self._do(self._queue.note_time, now.guess, now.doubt is not None)
                    noting = time.monotonic() + NOTE_SECONDS
                if time.monotonic() >= tidying:
                    await self._do(self._queue.tidy)
                    tidying = time.monotonic() + TIDY_SECONDS
            except Exception as error:  # bugs too: they must not end the loop
                log("error", where="relay", kind=type(error).__name__)
                self.metrics.count("deniable_housekeeping_failures_total", step="forward")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), LOOK_SECONDS)
            await asyncio.sleep(0.01)

    async def _forward(self) -> None:
        """Make the batches that are due, and send all unsent ones."""
        waiting, now = await self._do(self._queue.waiting), self.clock.bounds()
        ending = []
        for survey, epoch in await self._do(self._queue.epochs):
            if survey not in self.surveys:
                continue
            _, terms, relay = self.named(survey)
            there = waiting.get((survey, epoch), 0)
            if now.guess >= terms.relay_ends(epoch):
                if there >= relay.batch:
                    await self._do(self._queue.draw, survey, epoch)
                if now.doubt is None:
                    ending.append((survey, epoch))
                continue
            while there >= 2 * relay.batch:
                await self._do(self._queue.draw, survey, epoch, relay.batch)
                there -= relay.batch
        for batch in await self._do(self._queue.unsent):
            await self._send(batch)
        left = {(batch.survey, batch.epoch) for batch in await self._do(self._queue.unsent)}
        for survey, epoch in ending:
            course = self.courses[survey]
            if (survey, epoch) not in left or (course.refused is not None and course.refused.ended):
                discarded = await self._do(self._queue.end, survey, epoch)
                course.held -= discarded
                log("ended epoch", survey=survey, epoch=epoch, discarded=discarded)
                self.metrics.count("deniable_epochs_closed_total")
                if discarded:
                    self.metrics.count("deniable_submissions_total", discarded, outcome="discarded")

    async def _send(self, batch: Batch) -> None:
        """Send a batch, in requests of some records each, unless the collector asked to wait."""
        course = self.courses[batch.survey]
        if time.monotonic() < max(self._not_before, course.not_before):
            return
        records = await self._do(self._queue.records, batch)
        start = 0
        while start < len(records):
            size = max(1, min(course.chunk, CHUNK_BYTES // max(1, len(records[0])), len(records) - start))
            body = joined(batch.epoch, records[start : start + size])
            refusal = await asyncio.get_running_loop().run_in_executor(self._sender, self._post, batch.survey, body)
            self.unreachable = refusal is not None and not refusal.status
            if refusal is not None and refusal.status == 413 and size > 1:
                course.chunk = size // 2  # a proxy or a rate limit with less room
                continue
            if refusal is not None:
                self._refused(batch.survey, course, refusal)
                return
            start += size
        self._failures = course.failures = 0
        await self._do(self._queue.sent, batch)
        course.held -= len(records)
        if course.refused is not None:
            course.refused = None
            log("resumed", survey=batch.survey)
        self.metrics.count("deniable_groups_total", outcome="committed")
        log("forwarded", survey=batch.survey, epoch=batch.epoch, n=len(records))

    def _refused(self, survey: str, course: Course, refusal: Refusal) -> None:
        """Pause sending: for this survey, or for all if the collector cannot be reached."""
        self.metrics.count("deniable_groups_total", outcome="failed")
        if not refusal.status:
            self._failures += 1
            self._not_before = time.monotonic() + pause(self._failures)
            return
        course.failures += 1
        course.not_before = time.monotonic() + max(refusal.wait, pause(course.failures))
        if refusal.for_good and (course.refused is None or course.refused.status != refusal.status):
            log("set aside", "warning", survey=survey, why=str(refusal), held=course.held)
        if refusal.for_good:
            course.refused = refusal

    def _post(self, survey: str, body: bytes) -> Refusal | None:
        """None if the collector has accepted all of it."""
        headers = {"Content-Type": SEALED}
        if self.settings.token is not None:
            headers["Authorization"] = f"Bearer {self.settings.token}"
        try:
            reply = self._transport.post(f"/v1/surveys/{survey}/reports", body, headers)
        except Unreachable:
            log("error", where="collector", kind="cannot be reached")
            return Refusal(0, "", 0.0)
        if reply.status == 200:
            with suppress(msgspec.MsgspecError):
                taken = msgspec.json.decode(reply.body, type=Taken)
                if taken.rejected:
                    # Nobody can repair a record that the collector cannot open or does not accept.
                    self.metrics.count("deniable_submissions_total", len(taken.rejected), outcome="refused")
                return None
        kind = problem_kind(reply.body)
        log("error", where="collector", kind=f"status {reply.status} {kind}".rstrip(), survey=survey)
        return Refusal(reply.status, kind, retry_after(reply.headers.get("Retry-After"), time.time()))

    # -- figures -----------------------------------------------------------------------------------

    async def look(self) -> admin.Look:
        """For the operator: whether submissions can be accepted, and what is stuck."""
        ready, aside = True, self.aside()
        notes = [f"survey {one} is set aside, {self.courses[one].held} held: {why}" for one, why in aside.items()]
        if self.unreachable:
            notes.append("the collector cannot be reached")
        if self.stopping:
            ready, notes = False, ["the relay is being restarted"]
        elif time.monotonic() - self.full < admin.FULL_SECONDS:
            ready, notes = (
                False,
                ["the queue has no room left, and its reserve is given up: make room on its disk", *notes],
            )
        elif all(survey in aside for survey in self.surveys):
            ready = False
        return admin.Look(ready, "; ".join(["ok", *notes] if ready else notes), self._figures(ready, aside))

    def _figures(self, ready: bool, aside: dict[str, str]) -> list[Family]:
        samples: dict[Labels, float] = {
            (("survey", one), ("reason", self._reason(one))): float(self.courses[one].held) for one in sorted(aside)
        }
        return [
            gauge("deniable_ready", "Whether submissions can be taken.", ready),
            gauge("deniable_relay_held", "Sealed submissions that the collector does not have yet.", self.held),
            gauge(
                "deniable_relay_unreachable", "Whether the collector did not answer the last time.", self.unreachable
            ),
            shared_gauge("deniable_relay_set_aside", "Held submissions of surveys that are set aside.", samples),
            *self.metrics.families(),
        ]

    def _reason(self, survey: str) -> str:
        refused = self.courses[survey].refused
        return "notCarried" if refused is None else refused.kind or str(refused.status)

    async def authorize(self, role: str, headers: Any, survey: str | None) -> None:
        """Nobody has a token here: operations that need one are not offered."""
        raise Problem("forbidden", "a relay has no tokens")


async def take(call: Call) -> Response:
    """Take sealed submissions of one epoch."""
    relay = cast(Relay, call.service)
    survey, terms, _ = relay.named(call.path["fingerprint"])
    fingerprint = survey.fingerprint
    if media_type(call.headers) != SEALED:
        raise Problem("unsupportedMediaType", f"a relay takes sealed submissions: send {SEALED}", close=True)
    announced(call.headers, relay.settings.max_body)
    relay.room(fingerprint)
    body = await relay.receiving.read(call.receive)
    try:
        epoch, records = split(body, record_bytes(survey), relay.settings.max_submissions)
    except MalformedBody as wrong:
        raise Problem("malformed", str(wrong)) from None
    relay.room(fingerprint, len(records), len(body))
    now = relay.clock.bounds()
    first, last = (_refusal(terms, epoch, moment) for moment in (now.earliest, now.latest))
    reason = first if first == last else None
    if reason is None and await relay.take(fingerprint, epoch, records) is None:
        reason = EPOCH_CLOSED
    if reason is not None:
        relay.metrics.count("deniable_submissions_total", len(records), outcome=reason)
        taken = Taken(0, [(place, "", reason) for place in range(len(records))])
    else:
        taken = Taken(len(records), [])
    return Response(msgspec.json.encode(taken), 200, None, JSON)


def _refusal(terms: Terms, epoch: int, moment: float) -> str | None:
    """Why a submission of this epoch is refused at a moment; None if it is accepted."""
    reason = terms.refusal(epoch, moment)
    return EPOCH_CLOSED if reason is None and moment >= terms.relay_ends(epoch) else reason


async def show(call: Call) -> Response:
    """The survey, so that a device need not ask the collector for it."""
    survey, _, _ = cast(Relay, call.service).named(call.path["fingerprint"])
    headers = {"ETag": f'"{survey.fingerprint}"', "Cache-Control": "public, max-age=31536000, immutable"}
    return Response(survey.canonical, 200, headers, JSON)


async def alive(call: Call) -> Response:
    relay = cast(Relay, call.service)
    return Response(json.dumps({"status": "ok", "surveys": len(relay.surveys)}).encode(), 200, None, JSON)


OPERATIONS = (
    Operation(
        "POST",
        "/v1/surveys/{fingerprint}/reports",
        "relayReports",
        "Take sealed submissions, each once; the answer comes after they are on disk.",
        take,
        {200: Answer("What was taken; duplicates are counted as accepted.", {JSON: Taken})},
        problems=("overloaded", "storageFull", "surveyClosed"),
        parameters=(SURVEY,),
        bodies={SEALED: {"type": "string", "format": "binary"}},
        public=True,
    ),
    Operation(
        "GET",
        "/v1/surveys/{fingerprint}",
        "showSurvey",
        "The survey, byte for byte.",
        show,
        {200: Answer("The survey.", {JSON: {"type": "object"}})},
        parameters=(SURVEY,),
        public=True,
    ),
    Operation("GET", "/healthz", "isAlive", "The process lives.", alive, {200: Answer("It does.", {})}),
)


class _Lost(Resource):
    """Every other path."""

    async def _answer(self, operation: Operation | None, scope: Any, receive: Any) -> Response:
        raise Problem("notFound", "a relay takes sealed submissions, and nothing else")


def create_app(settings: RelaySettings) -> Starlette:
    """The relay as an ASGI application."""
    relay = Relay(settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with relay.running():
            yield

    routes = [Route(path, Resource(cast(Any, relay), some)) for path, some in resources(OPERATIONS).items()]
    app = Starlette(routes=[*routes, Route("/{rest:path}", _Lost(cast(Any, relay), ()))], lifespan=lifespan)
    app.state.service = relay
    return app


def serve(settings: RelaySettings, announce: run.Announce) -> None:
    """Relay until a signal arrives; calls `announce` with the addresses once they answer."""
    own_the_process(settings.log_level)
    app = create_app(settings)
    relay: Relay = app.state.service
    with run.bound(settings) as listening, run.bound_operator(settings) as operator:
        watching: list[admin.OperatorListener] = []

        def ready() -> None:
            if operator is not None:
                looks = {0: lambda: run.look(server, relay.look)}
                watching.append(admin.OperatorListener(operator, looks))
            announce(run.address_of(listening), None if operator is None else run.address_of(operator))

        server = run.make_server(settings, ready, app)
        try:
            server.run([listening])
        finally:
            for one in watching:
                one.close()

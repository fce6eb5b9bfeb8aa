"""What a process knows of its store: surveys, tokens and the progress of the sums, read by threads.

Threads    each has its own connection, so that nothing blocks the event loop; other threads compute. Beyond
           `max_reads` waiting questions, clients get a refusal with Retry-After
Changes    a long change, such as closing an epoch, is made here too. While another process holds the store, no thread
           waits for it: the change is retried
Repair     a connection that fails is closed and the question asked again over a new one, once: reading changes nothing
Version    the progress of a survey's sums, as one number: the submissions ever counted plus those deleted plus the
           epochs closed. All only grow, and a tally changes only when one of them does, so equal versions mean equal
           sums, in whichever process or worker they are read
Polling    the store is asked for a version at most once in `seconds` per survey, however many clients listen
Token      "dn_" and 32 random bytes in base64url; shown once, when it is created. Only the SHA-256 is stored
Roles      admin may do everything; analyst reads; ingest sends reports where that needs a key
Scope      a token may be valid for one survey only: requests for another survey, or for none, are refused
Expiry     by the service's best guess of the time: a jump forward does not end a token, a jump back does not revive it
Answer     a malformed, unknown or revoked token: the same bytes after the same work, which is one hash and one
           constant-time comparison with every existing token. No token: the same work, and bytes that say so
"""

from __future__ import annotations

import asyncio
import hmac
import json
import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from deniable.collect.server.problems import Bucket, Problem, deleted, overloaded
from deniable.collect.server.telemetry import log
from deniable.collect.stores.base import CLOSED, Epoch, Published, Store, StoreError, TakenError, Token
from deniable.collect.stores.batches import SurveyCounter
from deniable.collect.wire import hashed
from deniable.errors import DeniableError
from deniable.surveys import Survey, Terms
from deniable.surveys.terms import write_time

if TYPE_CHECKING:
    from deniable.collect.server.service import Bounds, Settings
FRESH_SECONDS = 0.05
"""An unknown survey or token is looked up in the store before it is refused, at most this often."""
RETRY_SECONDS = 0.2
"""Seconds until a change is retried that other processes blocked."""
RANK = {"ingest": 1, "analyst": 2, "admin": 3}

T = TypeVar("T")


class Readers:
    """Runs functions of a store in threads."""

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
        """The job's result, from a thread with a store."""
        self._enter()
        try:
            future: asyncio.Future[T] = self._loop.create_future()
            self._queue.put((job, future))
            return await future
        finally:
            self._waiting -= 1

    async def change(self, job: Callable[[Store], T], seconds: float) -> T:
        """The result of a job that writes and may be retried; TakenError if others hold the store for `seconds`."""
        end = time.monotonic() + seconds
        while True:
            try:
                return await self.run(lambda store: _at_once(store, job))
            except TakenError:
                if time.monotonic() >= end:
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    async def compute(self, job: Callable[[], T]) -> T:
        """The job's result, from a thread without a store."""
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
            if future.done():  # the caller has gone
                continue
            answer, error = None, None
            try:
                store, answer = self._answered(store, job)
            except BaseException as raised:
                error = raised
                if isinstance(raised, StoreError) and not isinstance(raised, TakenError):
                    store = None
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(deliver, future, answer, error)
            del item, job, future, answer, error
        if store is not None:
            store.close()

    def _answered(self, store: Store | None, job: Callable[[Store], T]) -> tuple[Store, T]:
        """Ask the open store; if that fails, ask a new one. Returns the store to ask next, and the answer."""
        if store is not None:
            try:
                return store, job(store)
            except TakenError:  # by other processes: the connection is good
                raise
            except StoreError:
                _close_quietly(store)
        store = self._open()
        try:
            return store, job(store)
        except StoreError:
            _close_quietly(store)
            raise

    def stop(self, seconds: float) -> None:
        """Answer what waits and close the stores; stores that do not answer within `seconds` are left as they are."""
        for _ in self._threads:
            self._queue.put(None)
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        self._computing.shutdown(wait=False, cancel_futures=True)


def _at_once(store: Store, job: Callable[[Store], T]) -> T:
    with store.impatient():
        return job(store)


def _close_quietly(store: Store) -> None:
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
class Keys:
    """The tokens of a service."""

    known: tuple[Token, ...] = ()

    def find(self, token: bytes) -> Token | None:
        """The stored token that matches this text; None if there is no match.

        >>> keys = Keys((Token(hashed("dn_secret"), "analyst", "Ada"),))
        >>> keys.find(b"dn_secret").label, keys.find(b"dn_guess"), keys.find(b"")
        ('Ada', None, None)
        """
        given, found = hashed(token), 0
        for place, one in enumerate(self.known, start=1):
            # No early exit: the time must not show which token came close.
            found += place * hmac.compare_digest(given, one.sha256)
        return self.known[found - 1] if found else None


def bearer(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The token of a request; empty if it has no token."""
    for name, value in headers:
        if name == b"authorization":
            scheme, _, token = value.partition(b" ")
            return token.strip() if scheme.lower() == b"bearer" else b""
    return b""


def unauthorized(role: str, token: bytes) -> Problem:
    """Says whether a token was sent, which its sender knows, and nothing about which tokens exist."""
    wrong = "this token is not accepted here: it is mistyped, or was revoked" if token else "this needs a token"
    return _without_token("unauthorized", wrong, role)


def _without_token(kind: str, wrong: str, role: str) -> Problem:
    how = f"the operator of the service makes one with deniable store token create --role {role}"
    return Problem(kind, f"{wrong}; {how}", {"WWW-Authenticate": "Bearer"})


def check_token(token: Token, role: str, survey: str | None, now: float) -> None:
    """Refuse a token that has expired, is too weak, or is not valid for this survey; None means all surveys."""
    if token.expires is not None and now >= token.expires:
        raise _without_token("expiredToken", f"this token was good until {write_time(token.expires)}", role)
    if RANK[token.role] < RANK[role]:
        raise Problem("forbidden", f"this needs a token with the role {role}")
    if token.survey is not None and token.survey != survey:
        needed = "of all surveys" if survey is None else "of this survey or of all"
        raise Problem("forbidden", f"this token is good for one survey only, {token.survey}: this needs one {needed}")


@dataclass(frozen=True)
class Entry:
    """A published survey, ready for use."""

    survey: Survey
    canonical: bytes
    state: str
    bucket: Bucket | None = None

    @property
    def fingerprint(self) -> str:
        return self.survey.fingerprint

    @cached_property
    def counter(self) -> SurveyCounter:
        return SurveyCounter(self.survey)

    @cached_property
    def width(self) -> int:
        return self.counter.width

    @cached_property
    def terms(self) -> Terms:
        if self.survey.terms is None:
            raise DeniableError("a survey without terms is not collected over the network")
        return self.survey.terms

    def refusal(self, epoch: int, now: Bounds) -> str | None:
        """Why a report of this epoch is refused; None if it is accepted at one of the times that it may be now."""
        first, last = self.terms.refusal(epoch, now.earliest), self.terms.refusal(epoch, now.latest)
        return first if first == last else None

    def phase(self, now: float) -> str:
        """The state of the survey at this moment."""
        if self.state == CLOSED:
            return "closed"
        if self.terms.over(now):
            return "over"
        return "collecting" if now >= self.terms.opens else "waiting"


class Registry:
    """The known surveys, ordered by fingerprint, and the tokens."""

    def __init__(self, settings: Settings, readers: Readers) -> None:
        self._settings, self._readers = settings, readers
        self._read = -1e9
        self._lock = asyncio.Lock()
        self.entries: dict[str, Entry] = {}
        self.successors: dict[str, str] = {}
        """The survey that replaces another, by the other's fingerprint; of several, the one that opens last."""
        self.followers: dict[str, str] = {}
        """The next round of a campaign, by the fingerprint of the round before."""
        self.deleted: frozenset[str] = frozenset()
        """Fingerprints of surveys that were deleted here."""
        self.keys = Keys()
        self._unreadable: set[str] = set()

    def get(self, fingerprint: str) -> Entry | None:
        return self.entries.get(fingerprint)

    async def find(self, fingerprint: str) -> Entry:
        """A survey, looked up in the store if it is new; a problem if the survey does not exist."""
        entry = self.entries.get(fingerprint)
        if entry is None and fingerprint not in self.deleted:
            await self.refresh(FRESH_SECONDS)
            entry = self.entries.get(fingerprint)
        if fingerprint in self.deleted:
            raise deleted()
        if entry is None:
            raise Problem("unknownSurvey", "look at /v1/surveys for those that are collected here")
        return entry

    async def token(self, token: bytes) -> Token | None:
        """The stored token, looked up in the store if it is new; None if there is no such token."""
        found = self.keys.find(token)
        if found is None:
            await self.refresh(FRESH_SECONDS)
            found = self.keys.find(token)
        return found

    async def refresh(self, pause: float = 0.0) -> None:
        """Read the store, at least `pause` seconds after the last time; all callers share one reading."""
        asked = time.monotonic()
        async with self._lock:
            if self._read >= asked:
                return
            await asyncio.sleep(max(0.0, self._read + pause - time.monotonic()))
            begun = time.monotonic()
            published, gone, tokens, parsed = await self._readers.run(self._load)
            self._take(published, parsed)
            self.deleted = frozenset(gone)
            self.keys = Keys(tuple(tokens))
            self._read = begun

    def _load(self, store: Store) -> tuple[list[Published], list[str], list[Token], dict[str, Survey]]:
        published, parsed = store.surveys(), {}
        for one in published:
            if one.fingerprint not in self.entries and one.fingerprint not in self._unreadable:
                try:
                    survey = Survey.from_spec(json.loads(one.canonical))
                except (DeniableError, ValueError):
                    log("unreadable survey", survey=one.fingerprint)
                    self._unreadable.add(one.fingerprint)
                else:
                    if survey.terms is not None:
                        parsed[one.fingerprint] = survey
        return published, store.deleted(), store.tokens(), parsed

    def _take(self, published: list[Published], parsed: dict[str, Survey]) -> None:
        entries: dict[str, Entry] = {}
        for one in sorted(published, key=lambda one: one.fingerprint):
            known = self.entries.get(one.fingerprint)
            survey = known.survey if known is not None else parsed.get(one.fingerprint)
            if known is not None and known.state == one.state:
                entries[one.fingerprint] = known
            elif survey is not None:
                bucket = known.bucket if known is not None else self._bucket()
                entries[one.fingerprint] = Entry(survey, one.canonical, one.state, bucket)
        self.entries = entries
        later = sorted(entries.values(), key=lambda entry: entry.terms.opens)
        self.successors = {one.terms.replaces: one.fingerprint for one in later if one.terms.replaces is not None}
        rounds = [(one.terms.campaign, one.fingerprint) for one in later]
        self.followers = {place.before: after for place, after in rounds if place is not None and place.before}

    def _bucket(self) -> Bucket | None:
        rate = self._settings.survey_rate
        return None if rate is None else Bucket.of(rate, self._settings.max_submissions)


@dataclass(frozen=True)
class Progress:
    """The epochs of a survey at one moment."""

    epochs: tuple[Epoch, ...]

    @property
    def version(self) -> int:
        # A deletion lowers n, and a reopened epoch is no longer closed: twice, so that the version still grows by one.
        # Shares enter the tally when they are settled, which drops what was kept.
        return sum(one.n + 2 * one.deleted + 2 * one.reopened + one.dropped for one in self.epochs) + len(self.closed)

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
        """Progress as of now."""
        found = await self._readers.run(lambda store: store.epochs(fingerprint))
        progress = Progress(tuple(found))
        self._known[fingerprint] = time.monotonic(), progress
        return progress

    async def recent(self, fingerprint: str) -> Progress:
        """Progress as of at most `seconds` ago."""
        async with self._locks.setdefault(fingerprint, asyncio.Lock()):
            read, progress = self._known.get(fingerprint, (-1e9, None))
            if progress is not None and time.monotonic() - read < self._seconds:
                return progress
            return await self.read(fingerprint)

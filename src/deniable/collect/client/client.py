"""The device's side of a collection: answer a pinned survey with a report that was randomized here.

Pinned     a client is built for one fingerprint. The server is only where the bytes come from: other bytes are refused
Local      answers are randomized here; what leaves is in the ledger first, and is erased there once it has arrived
Refused    before anything leaves: other bytes than the pinned survey, a survey without terms, not open yet or expired,
           unknown or missing answers, a spent budget, an opted-out device (which makes no request at all), a survey
           that replaces a pinned one until somebody has agreed to the differences
Messages   never contain an answer, and nothing is logged
Shares     if the survey names several collectors, each gets its share and no more. A submission counts as sent when
           all of them have accepted theirs; until then the ledger has all shares, which together reveal the answer
Relay      if the survey names one, submissions are sealed for the collector and sent there, and nowhere else
Metadata   a request carries the survey's fingerprint, the submission and nothing else (`collect.http`); the server
           still sees the address that it comes from, unless there is a relay in between

What a reply means for the bytes that were sent; the same bytes are sent until the server has answered for them:

200        sent; or, if the reply lists it as rejected, dropped with the server's reason
4xx        dropped with the status, if it is about the report: the same bytes would be refused again. A refusal of
           the key, the address or the moment (`ABOUT_THE_WAY`) is retried
5xx        retried; like 429, not before the time in Retry-After
No reply   retried: the server may have counted it, and then counts the id only once
Other      a redirect, or a page of some captive portal, is not an answer of this service: retried
Deleting   200 with "deleted" true or false, 409 of a service that keeps no reports, or 410 of one that has deleted the
           survey is an answer; after any other reply the id is kept
Pauses     1 s, doubled up to 30 s, each times a random factor from 1/2 to 1
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from deniable._files import parse_json
from deniable.collect import wire
from deniable.collect.client.ledger import Ledger
from deniable.collect.client.records import (
    DELETED,
    DROPPED,
    NOT_HELD,
    QUEUED,
    SENT,
    BudgetSpent,
    Deleted,
    NotOpen,
    OptedOut,
    OtherRelation,
    Receipt,
    Spending,
    Submission,
    SuccessorDiffers,
    TookPart,
    Untrusted,
    check_fingerprint,
    listed,
)
from deniable.collect.http import TIMEOUT, Reply, Transport, Turn, Unreachable
from deniable.collect.sealing import SEALED, sealed
from deniable.errors import DeniableError, LabelError
from deniable.surveys import Survey
from deniable.surveys.diff import WEAKER, Edit, diff
from deniable.surveys.terms import Terms, write_time

SHORTEST, LONGEST = 1.0, 30.0
MOST_PATIENCE = 86_400.0

ABOUT_THE_WAY = (401, 403, 404, 405, 407, 408, 429)
"""Refusals of a key, an address or a moment, not of the report: once that is fixed, the same bytes are accepted."""

_chance = random.SystemRandom()
LARGEST_SURVEY = 16 << 20


@dataclass(frozen=True)
class Flushed:
    """The state of the outbox: how many submissions were sent and dropped, and how many are still queued.

    Args:
        sent: Number of submissions that the service accepted.
        dropped: Number of submissions that the service refused.
        queued: Number of submissions that still wait.
        reason: Why the last attempt failed, if something is still queued.
    """

    sent: int = 0
    dropped: int = 0
    queued: int = 0
    reason: str = ""


class Client:
    """Answers one survey from this device; safe to use from several threads, processes and forks.

    Args:
        server: Where reports go: https://host, with a port or a path if needed.
        fingerprint: The survey, by the 64 hexadecimal digits that its owner has published.
        ledger: A file in an existing directory, or a `Ledger`: one for all surveys of the device, by default where the
            system keeps a user's data. Another file is another device.
        clock: Seconds since 1970, which determine the epoch.
        timeout: Seconds within which the whole reply must have come.
        spread: Seconds over which sending is delayed at random, so that the moment of an answer does not distinguish
            devices: then `answer` only queues, and `flush` sends what is due.
        token: For services that accept reports only with an ingest key; a token that not all devices share would
            distinguish them.
        idle: What `settle` reports, by question, for an epoch in which nothing was recorded: {"minutes": 0}.
        published: The fingerprints that the survey's owner has published, from another source than the link: any other
            is refused, because a survey that was made for one person would reveal who answers it.
        insecure: Allows http:// to another machine, where everybody on the way can read who answers, and change it.
        context: Your own TLS settings, such as the certificate of a private authority.

    Nobody listens at this address, so the answer waits in the ledger:

    >>> import tempfile
    >>> from deniable.surveys import Survey
    >>> question = {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"]}
    >>> draft = {"name": "habits", "owner": "Example Institute", "purpose": "To show a client.", "days": 7,
    ...          "epsilon": "1", "people": 1000, "questions": [question]}
    >>> survey = Survey.from_draft(draft)
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(Path(folder.name) / "ledger.sqlite")
    >>> ledger.pin(survey)  # or else it is fetched from the server, once
    >>> with Client("http://127.0.0.1:9", survey.fingerprint, ledger) as client:
    ...     receipt = client.answer({"smoke": "no"})
    ...     receipt.state, len(receipt.body), client.budget().left
    ('queued', 25, Fraction(0, 1))
    >>> folder.cleanup()
    """

    def __init__(
        self,
        server: str,
        fingerprint: str,
        ledger: str | Path | Ledger | None = None,
        *,
        clock: Callable[[], float] = time.time,
        timeout: float = TIMEOUT,
        spread: float = 0.0,
        token: str | None = None,
        idle: Mapping[str, Any] | None = None,
        published: Iterable[str] | None = None,
        insecure: bool = False,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.fingerprint = check_fingerprint(fingerprint)
        if published is not None and self.fingerprint not in set(published):
            raise Untrusted(
                "this survey is not on the published list, so it may have been made for you alone: nothing was fetched "
                "and nothing was sent"
            )
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self._transport = Transport(server, timeout, insecure, context)
        self._to = partial(Transport, timeout=timeout, insecure=insecure, context=context)
        self._clock, self._sleep, self._timer = clock, time.sleep, time.monotonic
        self._step: Callable[[str], None] = lambda step: None
        self._spread = spread
        self._token = token
        self._idle = dict(idle or {})
        self._survey: Survey | None = None
        self._not_before = 0.0
        self._sending = Turn()

    # -- the survey --------------------------------------------------------------------------------

    def survey(self, record: bool = True) -> Survey:
        """The pinned survey: from the ledger, or fetched once, checked against the fingerprint, and recorded there.

        With `record=False` a fetched survey is not written to the ledger; the same holds for `terms` and `epoch`.
        """
        if self._survey is None:
            known = self.ledger.pinned(self.fingerprint)
            if known is not None:
                self._survey = verified(known, self.fingerprint)
            else:
                self._refuse_opted_out()
                self._survey = self._fetch()
                if record:
                    self.ledger.pin(self._survey)
        return self._survey

    def _fetch(self) -> Survey:
        try:
            reply = self._transport.get(f"/v1/surveys/{self.fingerprint}", most=LARGEST_SURVEY)
        finally:
            self._transport.close()
        if reply.status == 410:
            raise Untrusted(f"{self._transport.server} has deleted this survey, and collects it no more")
        if 400 <= reply.status < 500 and reply.status != 429:
            raise Untrusted(f"{self._transport.server} has no such survey (status {reply.status})")
        if reply.status != 200:
            raise Unreachable(f"{self._transport.server} does not give out surveys now (status {reply.status})")
        return verified(reply.body, self.fingerprint)

    def terms(self, record: bool = True) -> Terms:
        """The terms of the survey: who asks, when, how often, and what it may cost."""
        terms = self.survey(record).terms
        if terms is None:
            raise Untrusted("this survey is for files: it has no terms, so nothing is sent")
        return terms

    def epoch(self, record: bool = True) -> int:
        """The epoch that is answered now; raises an error if the survey is not open."""
        terms, now = self.terms(record), self._clock()
        if now < terms.opens:
            raise NotOpen(f"the survey is not open yet: it opens at {write_time(terms.opens)}")
        if now >= terms.expires:
            raise NotOpen(f"the survey is over: it expired at {write_time(terms.expires)}")
        return terms.epochs.at(now)

    # -- answering ---------------------------------------------------------------------------------

    def changes(self, record: bool = True) -> list[Edit]:
        """How this survey differs from the one that it replaces, as far as that matters here.

        Empty if it replaces none that this device has pinned, and once it was answered here: then somebody has agreed.
        Each change has its effect on privacy: "weaker", "stronger" or "neutral".
        """
        survey, before = self.survey(record), self.terms(record).replaces
        known = None if before is None else self.ledger.pinned(before)
        if before is None or known is None or self.history():
            return []
        try:
            return diff(verified(known, before), survey)
        except Untrusted:  # a newer version may refuse what an older one accepted
            return [Edit("survey", "one that cannot be read here any more", survey.name, WEAKER)]

    def answer(self, answers: Mapping[str, Any], *, wait: float | None = 0.0, accept_changes: bool = False) -> Receipt:
        """Randomize, debit and queue the answers of this epoch, and try to send them.

        `answers` has an answer for each question, by its id. Sends once by default; with `wait` tries for that many
        seconds, and with None until it is done. What could not be sent stays queued, for `flush` or the next `answer`.
        An epoch is answered once: for a second call the receipt is that of the first, and the new answers are ignored,
        except that they must be to the right questions.

        A survey that replaces one that this device has pinned is answered only with `accept_changes=True`; otherwise
        `SuccessorDiffers` is raised, which carries the `changes`.
        """
        with self.ledger.kept_open():
            self._refuse_opted_out()
            survey, epoch = self.survey(), self.epoch()
            changes = [] if accept_changes else self.changes()
            if changes:
                raise SuccessorDiffers(self.terms().replaces or "", changes)
            due = self._clock() + some_of(self._spread) if self._spread else 0.0
            submission, fresh = self.ledger.submit(survey, epoch, answers, due)
            reason, body = "", submission.body
            if submission.state == QUEUED:
                reason = self.flush(wait).reason
                submission = self.ledger.submissions(self.fingerprint, since=epoch)[0]
            return Receipt.of(submission, fresh, reason, body)

    # -- recording ---------------------------------------------------------------------------------

    def record(self, question: str, value: Any, *, add: bool = False) -> bool:
        """Record a value of this epoch, as often as an application likes; nothing is sent for it.

        The last value of an epoch counts, or with `add` the sum of them. The epoch has one submission, made once it is
        over (`settle`, which the next epoch's first record calls), whether or not anything was recorded in it. So what
        is sent, how often and when says nothing about events. Returns whether the value was recorded: not outside the
        survey's time, nor on a device that has opted out. Raises DomainError for an invalid answer.
        """
        try:
            with self.ledger.kept_open():
                waiting = self.ledger.record(self.survey(), self.epoch(), question, value, add)
        except (NotOpen, OptedOut):
            return False
        if waiting:
            self.settle()
        return True

    def settle(self, wait: float | None = 0.0) -> list[Receipt]:
        """Make one submission for each epoch that is over, from what was recorded in it or else from `idle`, and send.

        Call it when the application starts and from time to time, whether or not there is anything to record: a device
        that is silent in epochs without events reveals them. Epochs that the service no longer accepts are left out,
        and so are those before this device's first call. Nothing is made, and nothing raised, beyond the budget, on a
        device that has opted out, or for a survey whose successor nobody has agreed to.
        """
        try:
            with self.ledger.kept_open():
                return self._settled(self.survey(), self.terms(), wait)
        except OptedOut:
            return []

    def _settled(self, survey: Survey, terms: Terms, wait: float | None) -> list[Receipt]:
        missing = [question.id for question in survey if question.id not in self._idle]
        if missing:
            raise LabelError(
                f"say what an epoch without an event is for {listed(missing)}: Client(..., idle={{id: answer}})"
            )
        current = terms.epochs.at(self._clock())
        begun = self.ledger.recorded_from(self.fingerprint, max(current, terms.first))
        if current <= begun or self.changes():
            return []
        made = []
        with suppress(BudgetSpent, OtherRelation, TookPart):
            for epoch in range(max(begun, current - terms.epochs.late), min(current, terms.last + 1)):
                made.append(self._submit_recorded(survey, epoch))
        self.ledger.record_from(self.fingerprint, current)
        reason = self.flush(wait).reason if made else ""
        known = {one.epoch: one for one in self.ledger.submissions(self.fingerprint, made[0][0].epoch)} if made else {}
        return [Receipt.of(known[one.epoch], fresh, reason, one.body) for one, fresh in made]

    def _submit_recorded(self, survey: Survey, epoch: int) -> tuple[Submission, bool]:
        due = self._clock() + some_of(self._spread) if self._spread else 0.0
        recorded = self.ledger.recorded(self.fingerprint, epoch)
        return self.ledger.submit(survey, epoch, self._idle | recorded, due)

    def flush(self, timeout: float | None = None) -> Flushed:
        """Send what is queued, the same bytes again until they are answered for, for at most `timeout` seconds.

        A timeout of 0 sends what is due and stops at the first failure; None waits until the outbox is empty.
        """
        with self._sending, self.ledger.kept_open():
            end = None if timeout is None else self._timer() + timeout
            self.ledger.forget_ids(self._clock())
            try:
                return self._flush(end)
            finally:
                self._transport.close()

    def _flush(self, end: float | None) -> Flushed:
        counted = {SENT: 0, DROPPED: 0}
        failures, reason = 0, ""
        while waiting := self.ledger.queued(self.fingerprint):
            # Wait until the first submission is due, and as long as a server asked for.
            first = min(waiting, key=self._delay)
            rest = max(self._delay(first), self._not_before - self._timer())
            if rest <= 0:
                attempt = self._attempt(first)
                if attempt.state != QUEUED:
                    self.ledger.mark(first, attempt.state, attempt.reason)
                    self._step("marked")
                    counted[attempt.state] += 1
                    failures = 0
                    continue
                failures, reason = failures + 1, attempt.reason
                if attempt.wait:
                    self._not_before = self._timer() + attempt.wait
                rest = max(attempt.wait, pause(failures))
            if end is not None and self._timer() + rest > end:
                break
            self._sleep(rest)
        return Flushed(counted[SENT], counted[DROPPED], len(waiting), reason if waiting else "")

    def _attempt(self, submission: Submission) -> Attempt:
        self._step("sending")
        attempt = self._sent(submission)
        self._step("replied")
        return attempt

    def _sent(self, submission: Submission) -> Attempt:
        """Send to the collector; or sealed to the relay, or in shares to the collectors, that the survey names."""
        relay, collectors = self.terms().relay, self.terms().collectors
        if collectors:
            bodies = wire.shares_of(submission.body, len(collectors))
            return all_of([self._share(*one, submission) for one in zip(collectors, bodies, strict=True)])
        if relay is None:
            return send(self._transport, submission, self._clock, self._token)
        with self._to(relay.address) as transport:
            body = sealed(self.survey(), submission.body)
            return send(transport, replace(submission, body=body), self._clock, media_type=SEALED)

    def _share(self, address: str, body: bytes, submission: Submission) -> Attempt:
        """Send one collector's share, to it alone."""
        with self._to(address) as transport:
            return send(transport, replace(submission, body=body), self._clock, self._token)

    def _delay(self, submission: Submission) -> float:
        """Seconds until a submission is due; a clock that was set back does not delay it for longer than `spread`."""
        rest = submission.due - self._clock()
        return rest if 0 < rest <= self._spread else 0.0

    # -- looking -----------------------------------------------------------------------------------

    def history(self) -> list[Submission]:
        """Every submission of this survey, with every byte of those that wait; the bytes of sent ones are erased."""
        return self.ledger.submissions(self.fingerprint)

    def budget(self) -> Spending:
        """The lifetime budget of the survey's owner and group on this device."""
        return self.ledger.spending(self.terms())

    # -- leaving -----------------------------------------------------------------------------------

    def delete_sent(self) -> Deleted:
        """Ask a service that keeps reports to delete those of this device, by their ids, and erase the ids here.

        The service deletes a report while its epoch is open; after that, and for a survey that keeps counts only, no
        id is left and no request is made. A submission that waits here may have arrived without a reply, so its
        deletion is requested as well, and it is not sent any more. The request shows the service which address these
        reports came from.
        """
        with self._sending, self.ledger.kept_open():
            self.ledger.forget_ids(self._clock())
            count, reason = {DELETED: 0, NOT_HELD: 0, QUEUED: 0}, ""
            try:
                for submission in self.history():
                    if submission.id_until:
                        attempt = delete(self._transport, submission)
                        count[attempt.state] += 1
                        if attempt.state == QUEUED:
                            reason = attempt.reason
                        else:
                            self.ledger.mark_deleted(submission, attempt.state)
            finally:
                self._transport.close()
            return Deleted(count[DELETED], count[NOT_HELD], count[QUEUED], reason)

    def opt_out(self) -> None:
        """Leave this survey: what waits and what only this survey needs is deleted here.

        No request is made until `opt_in`, except by `delete_sent`.
        """
        self.ledger.opt_out(self.fingerprint)

    def opt_in(self) -> None:
        """Take part in this survey again; dropped submissions stay dropped, and the survey is fetched again."""
        self.ledger.opt_in(self.fingerprint)

    def withdraw(self) -> None:
        """Leave every survey of this device: memos, keys, what waits and the ids are deleted.

        The debits stay, and so does the list of answered epochs: sent reports cannot be called back, so a device that
        returns must not begin with a full budget. Deleting the ledger's file as well makes a new device. To have
        reports deleted at a service that keeps them, call `delete_sent` first.
        """
        self.ledger.withdraw()

    def close(self) -> None:
        """Close the connection. The ledger has nothing open between calls, and the client may still be used."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refuse_opted_out(self) -> None:
        if self.ledger.opted_out(self.fingerprint):
            raise OptedOut


def verified(content: bytes, fingerprint: str) -> Survey:
    """The survey of these bytes, if they match the fingerprint and every field is understood."""
    if hashlib.sha256(b"deniable-survey-v1\0" + content).hexdigest() != fingerprint:
        raise Untrusted("this is not the pinned survey: its bytes have another fingerprint, and nothing was sent")
    try:
        survey = Survey.from_spec(parse_json(content, "the survey"))
    except DeniableError as wrong:
        raise Untrusted(f"the survey is not usable here: {wrong}") from None
    if survey.fingerprint != fingerprint:
        raise Untrusted("the survey is not in canonical form, so its meaning is not what its fingerprint names")
    if survey.terms is None:
        raise Untrusted("this survey is for files: it has no terms, so nothing is sent")
    return survey


class AsyncClient:
    """`Client` for asyncio: each method runs in a thread, so that no file or socket blocks the loop.

    Every argument and method means the same as there. A cancelled call still runs to its end in its thread.

    >>> async def history():
    ...     async with AsyncClient("https://collect.example.org", "ab" * 32, "no-such-ledger.sqlite") as client:
    ...         return await client.history()
    >>> asyncio.run(history())
    []
    """

    def __init__(
        self,
        server: str,
        fingerprint: str,
        ledger: str | Path | Ledger | None = None,
        *,
        clock: Callable[[], float] = time.time,
        timeout: float = TIMEOUT,
        spread: float = 0.0,
        token: str | None = None,
        idle: Mapping[str, Any] | None = None,
        published: Iterable[str] | None = None,
        insecure: bool = False,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.client = Client(
            server,
            fingerprint,
            ledger,
            clock=clock,
            timeout=timeout,
            spread=spread,
            token=token,
            idle=idle,
            published=published,
            insecure=insecure,
            context=context,
        )

    @property
    def fingerprint(self) -> str:
        return self.client.fingerprint

    @property
    def ledger(self) -> Ledger:
        return self.client.ledger

    async def survey(self, record: bool = True) -> Survey:
        return await asyncio.to_thread(self.client.survey, record)

    async def terms(self, record: bool = True) -> Terms:
        return await asyncio.to_thread(self.client.terms, record)

    async def epoch(self, record: bool = True) -> int:
        return await asyncio.to_thread(self.client.epoch, record)

    async def changes(self, record: bool = True) -> list[Edit]:
        return await asyncio.to_thread(self.client.changes, record)

    async def answer(
        self, answers: Mapping[str, Any], *, wait: float | None = 0.0, accept_changes: bool = False
    ) -> Receipt:
        return await asyncio.to_thread(self.client.answer, answers, wait=wait, accept_changes=accept_changes)

    async def record(self, question: str, value: Any, *, add: bool = False) -> bool:
        return await asyncio.to_thread(self.client.record, question, value, add=add)

    async def settle(self, wait: float | None = 0.0) -> list[Receipt]:
        return await asyncio.to_thread(self.client.settle, wait)

    async def flush(self, timeout: float | None = None) -> Flushed:
        return await asyncio.to_thread(self.client.flush, timeout)

    async def history(self) -> list[Submission]:
        return await asyncio.to_thread(self.client.history)

    async def budget(self) -> Spending:
        return await asyncio.to_thread(self.client.budget)

    async def delete_sent(self) -> Deleted:
        return await asyncio.to_thread(self.client.delete_sent)

    async def opt_out(self) -> None:
        await asyncio.to_thread(self.client.opt_out)

    async def opt_in(self) -> None:
        await asyncio.to_thread(self.client.opt_in)

    async def withdraw(self) -> None:
        await asyncio.to_thread(self.client.withdraw)

    async def close(self) -> None:
        await asyncio.to_thread(self.client.close)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


# -- sending ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attempt:
    """The outcome of one attempt."""

    state: str
    reason: str = ""
    wait: float = 0.0
    """Seconds that the server asked to wait."""


def send(
    transport: Transport,
    submission: Submission,
    now: Callable[[], float] = time.time,
    token: str | None = None,
    media_type: str = wire.BINARY,
) -> Attempt:
    """One attempt."""
    headers = {"Content-Type": media_type} | ({} if token is None else {"Authorization": f"Bearer {token}"})
    path = f"/v1/surveys/{submission.survey}/reports"
    try:
        reply = transport.post(path, submission.body, headers)
    except Unreachable as wrong:
        return Attempt(QUEUED, str(wrong))
    return judged(reply, now)


def judged(reply: Reply, now: Callable[[], float] = time.time) -> Attempt:
    """What a reply means for the submission that was sent."""
    if reply.status == 200:
        return _counted(reply.body)
    reason = f"status {reply.status}{_problem(reply.body)}"
    if 400 <= reply.status < 500 and reply.status not in ABOUT_THE_WAY:
        return Attempt(DROPPED, reason)
    return Attempt(QUEUED, reason, retry_after(reply.headers.get("Retry-After"), now()))


def all_of(attempts: Sequence[Attempt]) -> Attempt:
    """The outcome of several attempts that count only together: if one must wait, all are retried."""
    for state in (DROPPED, QUEUED):
        wrong = [attempt for attempt in attempts if attempt.state == state]
        if wrong:
            return replace(wrong[0], wait=max(attempt.wait for attempt in wrong))
    return Attempt(SENT)


def delete(transport: Transport, submission: Submission) -> Attempt:
    """Ask once for a report to be deleted: DELETED, NOT_HELD, or QUEUED with the reason why there was no answer."""
    path = f"/v1/surveys/{submission.survey}/reports/{wire.to_text(submission.id)}"
    try:
        reply = transport.request("DELETE", path)
    except Unreachable as wrong:
        return Attempt(QUEUED, str(wrong))
    if reply.status in (409, 410):
        return Attempt(NOT_HELD)
    if reply.status != 200:
        return Attempt(QUEUED, f"status {reply.status}{_problem(reply.body)}")
    try:
        return Attempt(DELETED if msgspec.json.decode(reply.body, type=_Deletion).deleted else NOT_HELD)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Attempt(QUEUED, "the reply is not one of this service")


class _Deletion(msgspec.Struct):
    deleted: bool


class _Counted(msgspec.Struct):
    accepted: int
    rejected: list[tuple[int, str, str]] = []


class _Problem(msgspec.Struct):
    type: str


def _counted(body: bytes) -> Attempt:
    try:
        answer = msgspec.json.decode(body, type=_Counted)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Attempt(QUEUED, "the reply is not one of this service")
    if answer.rejected:
        # A body holds one submission, so the rejected one is this.
        return Attempt(DROPPED, _word(answer.rejected[0][2]))
    return Attempt(SENT) if answer.accepted >= 1 else Attempt(QUEUED, "the reply accounts for nothing")


def _problem(body: bytes) -> str:
    """The type of a problem document, if it is a plain word."""
    try:
        kind = msgspec.json.decode(body, type=_Problem).type
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    return f" {_word(kind.rsplit(':', 1)[-1].rsplit('/', 1)[-1])}"


def _word(text: str) -> str:
    """A server's word for the ledger, made short and printable for any server."""
    return text if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", text) else "unreadable"


def retry_after(value: str | None, now: float) -> float:
    """Seconds to wait, from a header in seconds or as a date; 0 without a usable header.

    >>> retry_after("120", 0), retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 30), retry_after("soon", 0)
    (120.0, 30.0, 0.0)
    """
    if value is None:
        return 0.0
    if re.fullmatch(r"[0-9]{1,9}", value.strip()):
        return min(float(value), MOST_PATIENCE)
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return 0.0
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return min(max((moment - datetime.fromtimestamp(now, UTC)).total_seconds(), 0.0), MOST_PATIENCE)


def pause(attempt: int) -> float:
    """Seconds before the next attempt, after this many failed ones.

    >>> all(SHORTEST / 2 <= pause(n) <= LONGEST for n in range(1, 100))
    True
    """
    return min(SHORTEST * 2.0 ** min(attempt - 1, 10), LONGEST) * _chance.uniform(0.5, 1.0)


def some_of(spread: float) -> float:
    """A random fraction of a time."""
    return _chance.uniform(0.0, spread)

"""Sending what the ledger holds: the same bytes until the server has answered for them.

200         sent; or, where the reply lists it as rejected, dropped with the server's reason
4xx         dropped with the status, where it is about the report: the same bytes would be refused again. A refusal of
            the key, the address or the moment (`ABOUT_THE_WAY`) is tried again
5xx         tried again; like 429, not before the time that Retry-After names
no reply    tried again: the server may have counted it, and then counts the id only once
anything    else (a redirect, a page of some captive portal) is no answer of this service: tried again
Deleting    200 with "deleted" true or false, or 409 of a service that keeps no reports, is an answer; anything else is
            none, and the id is kept
Pauses      1 s, doubled up to 30 s, each times a random factor from 1/2 to 1
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec

from deniable.collect import wire
from deniable.collect.client.records import DELETED, DROPPED, NOT_HELD, QUEUED, SENT, Submission
from deniable.collect.http import Reply, Transport, Unreachable

SHORTEST, LONGEST = 1.0, 30.0
MOST_PATIENCE = 86_400.0

ABOUT_THE_WAY = (401, 403, 404, 405, 407, 408, 429)
"""Refusals of a key, an address or a moment, not of the report: put right, the same bytes are taken later."""

_chance = random.SystemRandom()


@dataclass(frozen=True)
class Outcome:
    """What one attempt came to."""

    state: str
    reason: str = ""
    wait: float = 0.0
    """Seconds that the server asked for."""


def send(
    transport: Transport, submission: Submission, now: Callable[[], float] = time.time, token: str | None = None
) -> Outcome:
    """One attempt."""
    headers = {"Content-Type": wire.BINARY} | ({} if token is None else {"Authorization": f"Bearer {token}"})
    path = f"/v1/surveys/{submission.survey}/reports"
    try:
        reply = transport.post(path, submission.body, headers)
    except Unreachable as wrong:
        return Outcome(QUEUED, str(wrong))
    return judged(reply, now)


def judged(reply: Reply, now: Callable[[], float] = time.time) -> Outcome:
    """What a reply says about the submission that was sent."""
    if reply.status == 200:
        return _counted(reply.body)
    reason = f"status {reply.status}{_problem(reply.body)}"
    if 400 <= reply.status < 500 and reply.status not in ABOUT_THE_WAY:
        return Outcome(DROPPED, reason)
    return Outcome(QUEUED, reason, retry_after(reply.headers.get("Retry-After"), now()))


def delete(transport: Transport, submission: Submission) -> Outcome:
    """Ask once for a report to be deleted: DELETED, NOT_HELD, or QUEUED with the reason why nobody has answered."""
    path = f"/v1/surveys/{submission.survey}/reports/{wire.to_text(submission.id)}"
    try:
        reply = transport.request("DELETE", path)
    except Unreachable as wrong:
        return Outcome(QUEUED, str(wrong))
    if reply.status == 409:
        return Outcome(NOT_HELD)
    if reply.status != 200:
        return Outcome(QUEUED, f"status {reply.status}{_problem(reply.body)}")
    try:
        return Outcome(DELETED if msgspec.json.decode(reply.body, type=_Deletion).deleted else NOT_HELD)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Outcome(QUEUED, "the reply is not one of this service")


class _Deletion(msgspec.Struct):
    deleted: bool


class _Answer(msgspec.Struct):
    accepted: int
    rejected: list[tuple[int, str, str]] = []


class _Problem(msgspec.Struct):
    type: str


def _counted(body: bytes) -> Outcome:
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Outcome(QUEUED, "the reply is not one of this service")
    if answer.rejected:
        # A body holds one submission, so the rejected one is this.
        return Outcome(DROPPED, _word(answer.rejected[0][2]))
    return Outcome(SENT) if answer.accepted >= 1 else Outcome(QUEUED, "the reply accounts for nothing")


def _problem(body: bytes) -> str:
    """The type of a problem document, as far as it is a plain word."""
    try:
        kind = msgspec.json.decode(body, type=_Problem).type
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    return f" {_word(kind.rsplit(':', 1)[-1].rsplit('/', 1)[-1])}"


def _word(text: str) -> str:
    """A server's word for the ledger: short and printable, whoever the server is."""
    return text if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", text) else "unreadable"


def retry_after(value: str | None, now: float) -> float:
    """Seconds to wait, from a header in seconds or as a date; 0 without a usable one.

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
    """Seconds before the next attempt, after so many failed ones.

    >>> all(SHORTEST / 2 <= pause(n) <= LONGEST for n in range(1, 100))
    True
    """
    return min(SHORTEST * 2.0 ** min(attempt - 1, 10), LONGEST) * _chance.uniform(0.5, 1.0)


def some_of(spread: float) -> float:
    """A random part of a time."""
    return _chance.uniform(0.0, spread)

"""Refusals: how a problem is reported to the client, and the limits on bodies and rates for unknown clients.

Document   RFC 9457: a type, a title, the status, and a sentence that says what to do

Retry      statuses 429 and 5xx: the same bytes may be sent again, after Retry-After seconds; every other is final
Time       a body must arrive within a time limit, and must never pause for longer than a few seconds
Memory     bodies that are still arriving have their own room, so that they cannot take it from complete ones. When
           it is full, or when too many arrive at once, the oldest is dropped: a body that stalls loses its place to
           one that does not
Rate       a bucket that fills steadily; each accepted request takes its size out. A request is accepted once the
           bucket holds all of it, so that a large batch waits for its turn and never blocks single submissions; one
           larger than the bucket is refused. A charge for submissions that were not counted is refunded
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

if TYPE_CHECKING:
    from deniable.collect.server.service import Settings

MEDIA_TYPE = "application/problem+json"
PREFIX = "urn:deniable:problem:"


@dataclass(frozen=True)
class Kind:
    """One type of problem."""

    status: int
    title: str


KINDS: dict[str, Kind] = {
    "malformed": Kind(400, "The request cannot be read."),
    "unauthorized": Kind(401, "A valid token is needed."),
    "expiredToken": Kind(401, "The token has expired."),
    "forbidden": Kind(403, "The token does not allow this."),
    "notPublic": Kind(403, "The results of this survey are not public."),
    "notFound": Kind(404, "There is nothing here."),
    "unknownSurvey": Kind(404, "There is no such survey here."),
    "unknownEpoch": Kind(404, "The survey has no such epoch."),
    "unknownToken": Kind(404, "There is no such token."),
    "noCampaign": Kind(404, "The survey belongs to no campaign."),
    "methodNotAllowed": Kind(405, "This cannot be done here."),
    "tooSlow": Kind(408, "The body took too long to arrive."),
    "countedElsewhere": Kind(409, "This node has no sums of the survey."),
    "inUse": Kind(409, "This is still needed."),
    "noShares": Kind(409, "There are no such shares here, or not yet."),
    "notKept": Kind(409, "The survey keeps no reports."),
    "weakerPrivacy": Kind(409, "The survey has less privacy than the one that it replaces."),
    "wrongRound": Kind(409, "The round does not follow from the one before."),
    "surveyClosed": Kind(410, "The survey takes no more reports."),
    "surveyDeleted": Kind(410, "The survey was deleted."),
    "tooLarge": Kind(413, "The body is larger than is taken at once."),
    "unsupportedMediaType": Kind(415, "The body is of a type that is not read here."),
    "rateLimited": Kind(429, "Too many submissions at once."),
    "internal": Kind(500, "Something went wrong here."),
    "notInstalled": Kind(501, "This service lacks what this needs."),
    "overloaded": Kind(503, "The service cannot take this now."),
    "storageFull": Kind(507, "There is no room left."),
}


class ProblemDetails(msgspec.Struct, rename={"kind": "type"}):
    """A problem as it is sent."""

    kind: str
    title: str
    status: int
    detail: str


class Problem(Exception):
    """A refusal. Wherever it is raised, it is sent to the client."""

    def __init__(self, kind: str, detail: str, headers: Mapping[str, str] | None = None, close: bool = False) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})
        self.close = close
        """Whether to skip the rest of the request and close the connection."""

    @property
    def status(self) -> int:
        return KINDS[self.kind].status

    def response(self) -> Response:
        return Response(document(self.kind, self.detail), self.status, self.headers, MEDIA_TYPE)


def document(kind: str, detail: str) -> bytes:
    given = KINDS[kind]
    return msgspec.json.encode(ProblemDetails(PREFIX + kind, given.title, given.status, detail))


def problem_kind(body: bytes) -> str:
    """The kind of a problem document sent by another service; "" if the document is not one of ours.

    >>> problem_kind(document("surveyClosed", "the survey has ended")), problem_kind(b"<html>")
    ('surveyClosed', '')
    """
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        name = msgspec.json.decode(body, type=ProblemDetails).kind.removeprefix(PREFIX)
        return name if name in KINDS else ""
    return ""


def deleted() -> Problem:
    return Problem("surveyDeleted", "the survey was deleted with all that was collected: nothing more of it is counted")


def overloaded(detail: str, seconds: float = 1.0, close: bool = False) -> Problem:
    return Problem("overloaded", detail, {"Retry-After": wait(seconds)}, close)


def wait(seconds: float) -> str:
    """The value of Retry-After: whole seconds, at least one."""
    return str(max(1, math.ceil(seconds)))


# -- how much a stranger may use ----------------------------------------------------------------------


Headers = list[tuple[bytes, bytes]]

LINGER_SECONDS = 2.0
LINGER_BYTES = 16 << 20
BURST_SECONDS, SMALLEST_BURST = 10.0, 100
"""Capacity of a bucket: this many seconds at its rate, but at least this many submissions."""


class Gone(Exception):
    """The client has left: nobody waits for an answer."""


class _Arriving:
    """One body that is not complete yet."""

    __slots__ = ("deadline", "size", "yielded")

    def __init__(self, deadline: asyncio.Timeout) -> None:
        self.deadline, self.size, self.yielded = deadline, 0, False


class Receiving:
    """All bodies that are arriving at this process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._arriving: dict[_Arriving, None] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._arriving)

    async def read(self, receive: Receive) -> bytes:
        """The whole body, or a problem that says why not."""
        settings, loop = self._settings, asyncio.get_running_loop()
        end = loop.time() + settings.body_seconds
        pieces: list[bytes] = []
        size, more = 0, True
        own: _Arriving | None = None
        try:
            async with asyncio.timeout_at(min(end, loop.time() + settings.stall_seconds)) as deadline:
                own = self._enter(deadline)
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    piece: bytes = message.get("body", b"")
                    size += len(piece)
                    if size > settings.max_body:
                        raise too_large(settings.max_body)
                    self._keep(own, len(piece))
                    pieces.append(piece)
                    more = message.get("more_body", False)
                    if more and not own.yielded:
                        deadline.reschedule(min(end, loop.time() + settings.stall_seconds))
        except TimeoutError:
            if own is not None and own.yielded:
                raise overloaded("too many bodies arrive at once, and this one is the oldest", close=True) from None
            limits = f"within {settings.body_seconds:g} seconds, without a pause of {settings.stall_seconds:g}"
            raise Problem("tooSlow", f"a body arrives {limits}", close=True) from None
        finally:
            if own is not None:
                self._leave(own)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _enter(self, deadline: asyncio.Timeout) -> _Arriving:
        own = _Arriving(deadline)
        if len(self._arriving) >= self._settings.arriving:
            self._yield(next(iter(self._arriving)))
        self._arriving[own] = None
        return own

    def _keep(self, own: _Arriving, size: int) -> None:
        """Count a piece; drop other bodies until there is room. A single body always has room."""
        while self.bytes + size > self._settings.arriving_bytes:
            oldest = next((other for other in self._arriving if other is not own and other.size), None)
            if oldest is None:
                break
            self._yield(oldest)
        if not own.yielded:
            own.size += size
            self.bytes += size

    def _yield(self, other: _Arriving) -> None:
        """Its bytes count as freed at once; its reader drops them as soon as it runs."""
        self._leave(other)
        other.yielded = True
        other.deadline.reschedule(asyncio.get_running_loop().time())

    def _leave(self, own: _Arriving) -> None:
        self._arriving.pop(own, None)
        self.bytes -= own.size
        own.size = 0


def header(headers: Headers, name: bytes) -> bytes:
    for key, value in headers:
        if key == name:
            return value
    return b""


def media_type(headers: Headers) -> str:
    return header(headers, b"content-type").partition(b";")[0].strip().lower().decode("latin-1")


def announced(headers: Headers, most: int) -> int | None:
    """The length in the headers, None if the body comes in chunks; a problem if it is too large."""
    text = header(headers, b"content-length")
    if not text:
        return None if header(headers, b"transfer-encoding") else 0
    if not text.isdigit():
        raise Problem("malformed", "Content-Length is a number", close=True)
    length = int(text) if len(text) < 20 else most + 1
    if length > most:
        raise too_large(most)
    return length


def too_large(most: int) -> Problem:
    return Problem("tooLarge", f"a body has at most {most} bytes: send fewer submissions at once", close=True)


async def answer_and_close(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer without reading the body, then close the connection.

    Closing a connection while data arrives resets it, and the client may never see the answer. So the whole answer is
    sent first, and incoming data is discarded for a moment before the connection is closed.
    """
    response.headers["Connection"] = "close"
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            await _drain(receive)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _drain(receive: Callable[[], Awaitable[Message]]) -> None:
    left = LINGER_BYTES
    while left > 0:
        message = await receive()
        left -= len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            return


class Bucket:
    """Fills steadily up to `burst`; a request is accepted once the bucket holds as much as it needs.

    >>> now = [0.0]
    >>> bucket = Bucket(10, burst=20, clock=lambda: now[0])
    >>> bucket.take(18), round(bucket.wait(5), 3), bucket.wait(1)
    (None, 0.3, 0.0)
    >>> now[0] = 0.3
    >>> bucket.wait(5), round(bucket.wait(20), 3)
    (0.0, 1.5)
    """

    __slots__ = ("_clock", "_held", "_rate", "_seen", "burst")

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self.burst, self._clock = rate, burst, clock
        self._held, self._seen = burst, clock()

    @classmethod
    def of(cls, rate: float, most: int) -> Bucket:
        """A bucket for bodies of at most `most` submissions: room for some seconds at this rate.

        >>> [Bucket.of(rate, 10_000).burst for rate in (0.5, 20, 2_000, 50_000)]
        [100, 200.0, 10000, 50000]
        """
        return cls(rate, max(rate, min(most, max(SMALLEST_BURST, BURST_SECONDS * rate))))

    def wait(self, n: int) -> float:
        """Seconds until n can be taken; 0 if now."""
        now = self._clock()
        self._held = min(self.burst, self._held + (now - self._seen) * self._rate)
        self._seen = now
        # A thousandth less, so that rounding does not make a client wait a moment longer.
        return max(0.0, n - 1e-3 - self._held) / self._rate

    def take(self, n: int) -> None:
        self._held -= n

    def give_back(self, n: int) -> None:
        self._held = min(self.burst, self._held + n)


class Rates:
    """The buckets that a request is charged to."""

    __slots__ = ("_buckets",)

    def __init__(self, *buckets: Bucket | None) -> None:
        self._buckets = [bucket for bucket in buckets if bucket is not None]

    def ask(self, n: int = 1) -> None:
        """Refuse n submissions if they come too fast, or could never be taken at once."""
        most = min((bucket.burst for bucket in self._buckets), default=math.inf)
        if n > most:
            raise Problem("tooLarge", f"at the rate of this service a body has at most {math.floor(most)} submissions")
        seconds = max((bucket.wait(n) for bucket in self._buckets), default=0.0)
        if seconds:
            raise Problem("rateLimited", "send the same bytes again later", {"Retry-After": wait(seconds)})

    def charge(self, n: int) -> None:
        """Check that n submissions are allowed, then charge them."""
        self.ask(n)
        for bucket in self._buckets:
            bucket.take(n)

    def refund(self, n: int) -> None:
        """Refund what was charged too much."""
        for bucket in self._buckets:
            bucket.give_back(n)

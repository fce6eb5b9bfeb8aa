"""Taking reports: the one route that matters for speed.

Before the body   survey, media type, announced length, rate and room are checked first, so that a refusal costs nothing
After it          the writer decodes, checks and counts it together with all others that wait
"""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from deniable.collect.server import body as bodies
from deniable.collect.server.api import FINGERPRINT, Answer, Call, Operation, Parameter
from deniable.collect.server.group import Reply
from deniable.collect.server.problems import Problem
from deniable.collect.wire import BINARY, HEADER_BYTES, ID_BYTES, JSON

SURVEY = Parameter(
    "fingerprint", {"type": "string", "pattern": FINGERPRINT}, "the survey's fingerprint", missing="unknownSurvey"
)


class Taken(msgspec.Struct):
    """How many submissions are counted, now or before, and the others as [place, id, reason]."""

    accepted: int
    rejected: list[tuple[int, str, str]]


class Reports(msgspec.Struct):
    """Submissions, each [id, epoch, answers]: 16 random bytes and the answers in base64url, the epoch between them."""

    reports: list[tuple[str, int, str]]


_ONE = msgspec.json.encode(Taken(1, []))


async def take(call: Call) -> Response:
    """Count submissions, each once."""
    service, headers = call.service, call.headers
    writer, settings = service.writer, service.settings
    entry = service.registry.get(call.path["fingerprint"]) or await call.entry()
    if entry.phase(service.now()) in ("closed", "over"):
        raise Problem("surveyClosed", "the survey has ended: nothing more of it is counted")
    kind = bodies.media_type(headers)
    if kind != BINARY and kind != JSON:
        raise Problem("unsupportedMediaType", f"send {BINARY} or {JSON}", close=True)
    length = bodies.announced(headers, settings.max_body)
    writer.room(length or 0)
    record = ID_BYTES + entry.width
    if length is not None:
        service.allow(entry, _about(length, record, kind))
    held = 0

    def room(size: int) -> None:
        nonlocal held
        writer.room(size)
        writer.bytes += size
        held += size

    try:
        body = await bodies.read(call.receive, settings.max_body, settings.body_seconds, room)
        if length is None:
            service.allow(entry, _about(len(body), record, kind))
    except BaseException:
        writer.bytes -= held
        raise
    outcome = await writer.submit(entry, kind == BINARY, body)
    if isinstance(outcome, Problem):
        raise outcome
    return Response(_encoded(outcome), 200, None, JSON)


def _about(length: int, record: int, kind: str) -> int:
    """How many submissions a body of this length holds, before it is read; of JSON at most so many."""
    if kind == BINARY:
        return max(1, (length - HEADER_BYTES) // record)
    return max(1, length // (record * 4 // 3 + 8))


def _encoded(reply: Reply) -> bytes:
    if reply.accepted == 1 and not reply.rejected:
        return _ONE
    return msgspec.json.encode(Taken(reply.accepted, reply.rejected))


OPERATIONS = (
    Operation(
        "POST",
        "/v1/surveys/{fingerprint}/reports",
        "sendReports",
        "Send 1 to 10,000 submissions. They are counted once, however often they are sent; the answer comes after they "
        "are on disk.",
        take,
        {200: Answer("What was counted; duplicates are counted as accepted.", {JSON: Taken})},
        problems=("surveyClosed", "rateLimited", "overloaded", "storageFull"),
        parameters=(SURVEY,),
        bodies={JSON: Reports, BINARY: {"type": "string", "format": "binary"}},
        public=True,
        keyed=True,
    ),
)

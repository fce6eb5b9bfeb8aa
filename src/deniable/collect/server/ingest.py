"""Taking reports, the one route where speed matters, and deleting one.

Before the body   survey, media type, announced length, rate and room are checked first, so that a refusal is cheap
After it          the writer decodes, checks and counts it together with all other waiting bodies
Rate              charged by the bytes that arrived, never by those that were announced; bytes that are not a
                  submission, or that could not be stored, are refunded
Deleting          the 16 random bytes of an id are known only to its sender and to those who got them from the
                  operator: no token is required
"""

from __future__ import annotations

import asyncio

import msgspec
from starlette.responses import Response

from deniable.collect.sealing import SEALED, record_bytes, split
from deniable.collect.server.api import FINGERPRINT, Answer, Call, Operation, Parameter, json_response
from deniable.collect.server.problems import Problem, announced, media_type
from deniable.collect.server.registry import Entry
from deniable.collect.server.service import Service
from deniable.collect.server.writer import Taken
from deniable.collect.wire import BAD_PAYLOAD, BINARY, HEADER_BYTES, ID_BYTES, JSON, MAGIC, MalformedBody, from_text

SURVEY = Parameter(
    "fingerprint", {"type": "string", "pattern": FINGERPRINT}, "the survey's fingerprint", missing="unknownSurvey"
)


REPORT = Parameter(
    "id",
    {"type": "string", "pattern": "^[A-Za-z0-9_-]{21}[AQgw]$"},
    "the submission's id, 16 bytes in base64url: 22 characters",
    missing="malformed",
)


class Deletion(msgspec.Struct):
    """Whether a report existed and is now deleted."""

    deleted: bool


class ReportsBody(msgspec.Struct):
    """Submissions, each [id, epoch, answers]: id (16 random bytes) and answers in base64url, the epoch between them."""

    reports: list[tuple[str, int, str]]


_ONE = msgspec.json.encode(Taken(1, []))


async def take(call: Call) -> Response:
    """Count submissions, each once."""
    service, headers = call.service, call.headers
    writer, settings = service.writer, service.settings
    entry = service.registry.get(call.path["fingerprint"]) or await call.entry()
    if entry.phase(service.clock.bounds().earliest) in ("closed", "over"):
        raise Problem("surveyClosed", "the survey has ended: nothing more of it is counted")
    kind = media_type(headers)
    relayed = entry.terms.relay is not None
    if relayed and kind != SEALED:
        raise Problem("unsupportedMediaType", "this survey takes sealed submissions through its relay only", close=True)
    if not relayed and kind != BINARY and kind != JSON:
        raise Problem("unsupportedMediaType", f"send {BINARY} or {JSON}", close=True)
    announced(headers, settings.max_body)
    writer.room()
    rates = service.rates(entry, headers)
    rates.ask()
    body = await service.receiving.read(call.receive)
    writer.room(len(body))
    charged = min(settings.max_submissions, _about(len(body), ID_BYTES + entry.width, kind))
    rates.charge(charged)
    outcome = await (_relayed(service, entry, body) if relayed else writer.submit(entry, kind == BINARY, body))
    rates.refund(charged - _counted(outcome))
    if isinstance(outcome, Problem):
        raise outcome
    return Response(_encoded(outcome), 200, None, JSON)


async def _relayed(service: Service, entry: Entry, body: bytes) -> Taken | Problem:
    """Open a relay's records outside the event loop and count them; records that do not open are rejected by index."""
    key = service.key
    if key is None or entry.terms.relay is None or key.public != entry.terms.relay.key:
        return Problem("notInstalled", "this service does not have the key that the survey names: --relay-key FILE")
    try:
        epoch, records = split(body, record_bytes(entry.survey), service.settings.max_submissions)
    except MalformedBody as wrong:
        return Problem("malformed", str(wrong))
    loop = asyncio.get_running_loop()
    opened = await loop.run_in_executor(service.opener, lambda: list(key.open(entry.fingerprint, epoch, records)))
    places = [place for place, one in enumerate(opened) if one is not None]
    outcome: Taken | Problem = Taken(0, [])
    if places:
        plain = MAGIC + epoch.to_bytes(4, "little") + b"".join(one for one in opened if one is not None)
        outcome = await service.writer.submit(entry, True, plain)
    if isinstance(outcome, Taken):
        counted = [(places[place], id, reason) for place, id, reason in outcome.rejected]
        lost = [(place, "", BAD_PAYLOAD) for place, one in enumerate(opened) if one is None]
        outcome.rejected = sorted([*counted, *lost])
    return outcome


def _about(length: int, record: int, kind: str) -> int:
    """Number of submissions in a body of this length, before it is decoded; for JSON an upper bound."""
    if kind == BINARY:
        return max(1, (length - HEADER_BYTES) // record)
    return max(1, length // (record * 4 // 3 + 8))


def _counted(outcome: Taken | Problem) -> int:
    """What a request is charged for in the end: its submissions; one if it has none; nothing if the fault is ours."""
    if isinstance(outcome, Problem):
        return 0 if outcome.status >= 500 else 1
    return outcome.accepted + len(outcome.rejected)


async def delete(call: Call) -> Response:
    """Delete one report."""
    service, entry = call.service, await call.entry()
    if entry.terms.retention != "reports":
        raise Problem("notKept", "this survey keeps sums only: there is no report that could be taken out of them")
    service.writer.room()
    service.rates(entry, call.headers).charge(1)
    id = from_text(call.path["id"], ID_BYTES) or b""
    # Outside the writer: a store of files searches all of them for the id.
    deleted = await service.change(lambda store: store.delete(entry.fingerprint, id))
    return json_response(Deletion(deleted))


def _encoded(taken: Taken) -> bytes:
    if taken.accepted == 1 and not taken.rejected:
        return _ONE
    return msgspec.json.encode(taken)


OPERATIONS = (
    Operation(
        "POST",
        "/v1/surveys/{fingerprint}/reports",
        "sendReports",
        "Send 1 to 10,000 submissions. They are counted once, however often they are sent; the answer comes after they "
        "are on disk.",
        take,
        {200: Answer("What was counted; duplicates are counted as accepted.", {JSON: Taken})},
        problems=("surveyClosed", "rateLimited", "overloaded", "storageFull", "notInstalled"),
        parameters=(SURVEY,),
        bodies={
            JSON: ReportsBody,
            BINARY: {"type": "string", "format": "binary"},
            SEALED: {"type": "string", "format": "binary"},
        },
        public=True,
        needs_token=True,
    ),
    Operation(
        "DELETE",
        "/v1/surveys/{fingerprint}/reports/{id}",
        "deleteReport",
        "Delete one report of a survey that keeps them: the report is erased and taken out of the sums, and the same "
        "submission sent again is not counted again. Only while its epoch is open: a closed epoch's sums are final. "
        "Knowing the id is enough, no token is needed. The service sees the address that this request comes from.",
        delete,
        {
            200: Answer(
                "Whether it was there: false also for an id that never was, was deleted, or is of a closed epoch.",
                {JSON: Deletion},
            )
        },
        problems=("notKept", "rateLimited", "overloaded", "storageFull"),
        parameters=(SURVEY, REPORT),
        public=True,
    ),
)

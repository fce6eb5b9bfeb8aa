"""Refusals, as RFC 9457 problem documents: a type, a title, the status, and a sentence that says what to do.

Retry      statuses 429 and 5xx: the same bytes may be sent again, after Retry-After seconds; every other is final
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from starlette.responses import Response

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
    "notFound": Kind(404, "There is nothing here."),
    "unknownSurvey": Kind(404, "There is no such survey here."),
    "unknownEpoch": Kind(404, "The survey has no such epoch."),
    "unknownToken": Kind(404, "There is no such token."),
    "noCampaign": Kind(404, "The survey belongs to no campaign."),
    "methodNotAllowed": Kind(405, "This cannot be done here."),
    "tooSlow": Kind(408, "The body took too long to arrive."),
    "countedElsewhere": Kind(409, "This node has no sums of the survey."),
    "inUse": Kind(409, "This is still needed."),
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


class Document(msgspec.Struct, rename={"kind": "type"}):
    """A problem as it is sent."""

    kind: str
    title: str
    status: int
    detail: str


class Problem(Exception):
    """A refusal; what is raised anywhere is sent to whoever asked."""

    def __init__(self, kind: str, detail: str, headers: Mapping[str, str] | None = None, close: bool = False) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})
        self.close = close
        """Whether the rest of the request is not worth reading."""

    @property
    def status(self) -> int:
        return KINDS[self.kind].status

    def response(self) -> Response:
        return Response(document(self.kind, self.detail), self.status, self.headers, MEDIA_TYPE)


def document(kind: str, detail: str) -> bytes:
    given = KINDS[kind]
    return msgspec.json.encode(Document(PREFIX + kind, given.title, given.status, detail))


def deleted() -> Problem:
    return Problem("surveyDeleted", "the survey was deleted with all that was collected: nothing more of it is counted")


def overloaded(detail: str, seconds: float = 1.0, close: bool = False) -> Problem:
    return Problem("overloaded", detail, {"Retry-After": wait(seconds)}, close)


def wait(seconds: float) -> str:
    """The value of Retry-After: whole seconds, at least one."""
    return str(max(1, math.ceil(seconds)))

"""What the crowd thinks, with everything that says how sure that is.

Hidden     fewer answers than the survey's `show_from` are "not enough answers yet", in place of shares that are noise
Off loop   tallies are read and estimates computed in threads; a finished answer is kept until the sums change
Series     one reading over all epochs asked for, or one an epoch (per=epoch), sent while the next is computed
"""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from starlette.responses import Response, StreamingResponse

from deniable.collect.server.api import Answer, Call, Operation, Parameter
from deniable.collect.server.epochs import RANGE, epoch_range, inside
from deniable.collect.server.ingest import SURVEY
from deniable.collect.server.problems import Problem
from deniable.collect.server.registry import Entry
from deniable.collect.server.service import Service
from deniable.collect.wire import JSON
from deniable.domains import Strings
from deniable.postprocess import METHODS
from deniable.surveys import Question, SurveyTally
from deniable.surveys.results import NUMBERS, notes, result, trust

CSV = "text/csv"
NOT_ENOUGH = "not enough answers yet"
OPEN_TEXT = "open text: name the texts to look for with candidates=..."
HEAD = ("first", "last", "question", "label", *NUMBERS, "n", "level", "epsilon", "noise_floor", "poisoning")


class Share(msgspec.Struct):
    """One answer: estimated count and share, the standard error of the share, and its interval."""

    label: Any
    count: float | None
    frequency: float | None
    stderr: float | None
    low: float | None
    high: float | None


class QuestionReading(msgspec.Struct, kw_only=True):
    """Everything about one question."""

    id: str
    text: str
    protocol: str
    method: str
    n: int
    level: float
    enough: bool
    message: str | None = None
    """Why there are no answers here, if there are none."""
    epsilon: str
    realized_epsilon: float
    noise_floor: float | None
    """The smallest share that can be told from none."""
    poisoning: float | None
    """Forged reports of a share s move a frequency by at most s times this."""
    answers: list[Share]
    unlisted: float | None = None
    """The share of texts that are none of the candidates."""
    unlisted_stderr: float | None = None


class Reading(msgspec.Struct):
    """Estimates over the epochs from first to last; notes say in sentences what the errors beside them leave out."""

    first: int
    last: int | None
    n: int
    questions: list[QuestionReading]
    notes: list[str]
    """Noise that memoized answers repeat from epoch to epoch; empty where nothing is left out."""


class Estimates(msgspec.Struct):
    """Readings of a survey."""

    survey: str
    version: int
    series: list[Reading]


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    first: int
    last: int | None
    level: float
    post: str
    questions: tuple[str, ...]
    candidates: tuple[str, ...]
    top: int | None

    @classmethod
    def of(cls, call: Call, entry: Entry) -> Request:
        query = call.query
        known = [question.id for question in entry.survey]
        for id in query["question"]:
            if id not in known:
                raise Problem("malformed", f"the questions of this survey are {', '.join(known)}")
        candidates = tuple(dict.fromkeys(text for text in query["candidates"] if text))
        first, last = epoch_range(query["epochs"])
        return cls(first, last, query["level"], query["post"], tuple(query["question"]), candidates, query["top"])

    def asked(self, entry: Entry) -> list[Question]:
        return [question for question in entry.survey if not self.questions or question.id in self.questions]


def reading(entry: Entry, tally: SurveyTally, request: Request, first: int, last: int | None) -> Reading:
    """The estimates of one tally."""
    questions = [_question(entry, question, tally, request) for question in request.asked(entry)]
    n = next(iter(tally.tallies.values())).n
    return Reading(first, last, n, questions, notes(entry.terms, one_epoch=first == last))


def _question(entry: Entry, question: Question, tally: SurveyTally, request: Request) -> QuestionReading:
    protocol, own = question.protocol, tally[question.id]
    text = isinstance(protocol.domain, Strings)
    enough = own.n >= max(1, entry.terms.show_from)
    head: dict[str, Any] = {"id": question.id, "text": question.text, "protocol": protocol.name, "n": own.n}
    head |= {"level": request.level, "enough": enough} | trust(protocol, own.n, request.level)
    if not enough or (text and not request.candidates):
        message = OPEN_TEXT if enough else NOT_ENOUGH
        return QuestionReading(**head, method=request.post, message=message, answers=[])
    method = None if request.post == "none" else request.post
    found = result(protocol, own, request.level, method, request.candidates if text else None)
    content = found.description(question.id, question.text)
    answers = content["answers"]
    if request.top is not None and request.top < len(answers):
        order = np.argsort(-found.estimate.counts, kind="stable")[: request.top]
        answers = [answers[i] for i in order]
    rest = {key: content[key] for key in ("unlisted", "unlisted_stderr") if key in content}
    return QuestionReading(**head, **rest, method=content["method"], answers=[Share(**row) for row in answers])


# -- forms --------------------------------------------------------------------------------------------


def as_json(one: Reading) -> bytes:
    return msgspec.json.encode(one)


def as_csv(one: Reading) -> bytes:
    """One line an answer; a question without answers has one line without a label."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for question in one.questions:
        tail = [question.n, question.level, question.epsilon, question.noise_floor, question.poisoning]
        head = [one.first, one.last, question.id]
        if not question.answers:
            writer.writerow([*head, "", *[""] * len(NUMBERS), *tail])
        for share in question.answers:
            label = share.label if isinstance(share.label, str) else msgspec.json.encode(share.label).decode()
            writer.writerow([*head, label, *(getattr(share, name) for name in NUMBERS), *tail])
    return out.getvalue().encode()


async def estimates(call: Call) -> Response:
    return await _respond(call, JSON)


async def estimates_csv(call: Call) -> Response:
    return await _respond(call, CSV)


async def _respond(call: Call, kind: str) -> Response:
    service, entry = call.service, await call.entry()
    request = Request.of(call, entry)
    progress = await service.versions.read(entry.fingerprint)
    ranges: Iterator[tuple[int, int | None]] = iter([(request.first, request.last)])
    if call.query["per"] == "epoch":
        ranges = iter([(one.epoch, one.epoch) for one in inside(progress.epochs, request.first, request.last)])
    pieces = _pieces(service, entry, request, ranges, progress.version, kind)
    # What cannot be computed is said before the first byte goes out.
    begin = [await anext(pieces), await anext(pieces)]

    async def stream() -> AsyncIterator[bytes]:
        for piece in begin:
            yield piece
        async for piece in pieces:
            yield piece

    return StreamingResponse(stream(), 200, media_type=kind)


async def _pieces(
    service: Service,
    entry: Entry,
    request: Request,
    ranges: Iterator[tuple[int, int | None]],
    version: int,
    kind: str,
) -> AsyncIterator[bytes]:
    if kind == CSV:
        opening, between, end, write = (",".join(HEAD) + "\n").encode(), b"", b"", as_csv
    else:
        head = msgspec.json.encode({"survey": entry.fingerprint, "version": version})
        opening, between, end, write = head[:-1] + b',"series":[', b",", b"]}", as_json
    yield opening
    for place, (first, last) in enumerate(ranges):
        key = entry.fingerprint, version, request, first, last, kind
        body = service.cache.get(key)
        if body is None:
            body = await _computed(service, entry, request, first, last, write)
            service.cache.put(key, body)
        yield (between if place else b"") + body
    yield end


async def _computed(
    service: Service, entry: Entry, request: Request, first: int, last: int | None, write: Callable[[Reading], bytes]
) -> bytes:
    tally = await service.readers.run(lambda store: store.tally(entry.fingerprint, first, last))
    return await service.readers.compute(lambda: write(reading(entry, tally, request, first, last)))


QUERY = (
    SURVEY,
    RANGE,
    Parameter(
        "level",
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.95},
        "the confidence of the intervals, between 0 and 1",
    ),
    Parameter(
        "post",
        {"type": "string", "enum": sorted(METHODS), "default": "none"},
        "how the shares are made consistent; all but none and norm are biased",
    ),
    Parameter(
        "per",
        {"type": "string", "enum": ["all", "epoch"], "default": "all"},
        "one reading over all epochs, or one an epoch",
    ),
    Parameter(
        "question", {"type": "string", "minLength": 1, "maxLength": 64}, "only these questions, by id", many=True
    ),
    Parameter(
        "candidates",
        {"type": "string", "maxLength": 4096},
        "texts to look for in answers of open text; repeat it for several",
        many=True,
    ),
    Parameter(
        "top",
        {"type": "integer", "minimum": 1, "maximum": 1_000_000},
        "only so many of the most common answers, most common first",
    ),
)

OPERATIONS = (
    Operation(
        "GET",
        "/v1/surveys/{fingerprint}/estimates",
        "getEstimates",
        "Estimated shares with standard errors, intervals and what they can be trusted with.",
        estimates,
        {200: Answer("The estimates.", {JSON: Estimates})},
        role="analyst",
        parameters=QUERY,
    ),
    Operation(
        "GET",
        "/v1/surveys/{fingerprint}/estimates.csv",
        "getEstimatesCsv",
        "The same as a table.",
        estimates_csv,
        {200: Answer(f"Columns {', '.join(HEAD)}.", {CSV: {"type": "string"}})},
        role="analyst",
        parameters=QUERY,
    ),
)

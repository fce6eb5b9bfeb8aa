"""Estimates over HTTP, with everything that says how certain they are.

Hidden     with fewer answers than the survey's `min_reports` the reply says "not enough answers yet" and gives no
           noisy shares; without any answer the rows have no value, and their intervals are the whole range
Off loop   tallies are read and estimates computed in threads; a finished answer is cached until the sums change
Series     one reading over all requested epochs, or one per epoch (per=epoch), sent while the next is computed. Where
           answers evolve, a share needs the reports of all earlier epochs: then there is one reading, starting at the
           first epoch, with one row per epoch
Several    over several epochs the errors allow for devices that report in each of them (`Repeats`)
Found      answers that nobody listed are searched for over all requested epochs together, and counted in each: one
           search per epoch would multiply the time by the number of epochs, and find less
Changes    differences of two ranges of epochs are computed here as well, so that no page repeats the arithmetic
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from starlette.responses import Response, StreamingResponse

from deniable.collect.server.api import Answer, Call, Operation, Parameter, json_response
from deniable.collect.server.ingest import SURVEY
from deniable.collect.server.problems import Problem
from deniable.collect.server.progress import CSV, RANGE, Status, epoch_range, inside, status_of
from deniable.collect.server.registry import Entry, Progress
from deniable.collect.server.service import Service
from deniable.collect.stores.base import Epoch
from deniable.collect.wire import JSON
from deniable.errors import DeniableError
from deniable.labels import label_spec
from deniable.postprocess import METHODS
from deniable.protocols.traits import needs_candidates
from deniable.results import Difference, Document, Result, View, finite
from deniable.results.distribution import MOST_BINS, read_numbers
from deniable.results.document import Phrase, kept, sentences
from deniable.results.render.csv import COLUMNS, csv_lines
from deniable.results.smooth import SMOOTH, read_assumption
from deniable.surveys import Question, SurveyTally
from deniable.surveys.results import Repeats, documents, find, trust
from deniable.surveys.terms import write_time

SIMULTANEOUS, POPULATION, RESPONDENTS, KEPT = "simultaneous", "population", "respondents", "kept"
NOT_ENOUGH = "not enough answers yet"
OPEN_TEXT = "open text: name the texts to look for with candidates=..."
OF_READINGS = ("first", "last", "from_utc", "until_utc")
HEAD = (*OF_READINGS, *COLUMNS)


class Reading(msgspec.Struct):
    """Estimates over the epochs from first to last; the notes say in sentences what the errors allow for."""

    first: int
    last: int | None
    starts: str | None
    """When the first epoch that has reports began; null if there are no reports."""
    ends: str | None
    """When the last epoch that has reports ends."""
    n: int
    questions: list[Document]
    notes: list[str]
    """How devices that report in several epochs affect the errors; empty for one epoch."""
    sentences: list[Phrase]
    """The same with the ids and parameters of the catalogue of words."""


class Change(msgspec.Struct):
    """One answer: its share in both ranges, and after minus before with standard error and interval."""

    label: Any
    before: float | None
    after: float | None
    difference: float | None
    stderr: float | None
    low: float | None
    high: float | None


class QuestionChange(msgspec.Struct, kw_only=True):
    """How the answers to one question have changed in the population."""

    id: str
    part: str = ""
    text: str
    n_before: int
    n_after: int
    level: float
    simultaneous: bool
    enough: bool
    message: str | None = None
    """The reason if there are no answers here."""
    rows: list[Change]
    p_value: float | None = None
    """How often differences as clear as these appear if nothing has changed."""


class Differences(msgspec.Struct):
    """Unbiased shares in one range of epochs minus those in another.

    The errors of the two are treated as independent. Reports that a device repeats in both ranges correlate them
    positively; then the intervals are too wide, never too narrow.
    """

    survey: str
    version: int
    questions: list[QuestionChange]
    notes: list[str]


class Estimates(msgspec.Struct):
    """Readings of a survey."""

    survey: str
    version: int
    series: list[Reading]
    status: Status | msgspec.UnsetType = msgspec.UNSET
    """Only if the query asks for it."""


def _ranges(written: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    try:
        return tuple(map(read_numbers, written))
    except DeniableError as wrong:
        raise Problem("malformed", str(wrong)) from None


def _assumption(written: str | None) -> str:
    try:
        return f"{SMOOTH}:{read_assumption(written):g}" if written else ""
    except DeniableError as wrong:
        raise Problem("malformed", str(wrong)) from None


@dataclass(frozen=True)
class Request:
    """What the query asks for."""

    first: int
    last: int | None
    level: float
    simultaneous: bool
    population: bool
    post: str
    questions: tuple[str, ...]
    candidates: tuple[str, ...]
    top: int | None
    bins: int | None = None
    ranges: tuple[tuple[float, ...], ...] = ()
    values: tuple[str, ...] | None = None
    followed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The answers to follow from epoch to epoch, by question."""
    formulas: bool = False
    """Whether a table leaves text unchanged that a spreadsheet would run as a formula."""
    assume: str = ""
    """What the intervals of distributions assume."""
    consistent: str = ""
    """The method that makes shares consistent, in columns next to the unbiased ones; empty: none."""

    @property
    def view(self) -> View:
        return View(self.level, self.simultaneous, self.population, self.ranges, self.consistent)

    @classmethod
    def of(cls, call: Call, entry: Entry, epochs: str = "epochs") -> Request:
        query = call.query
        known = [question.id for question in entry.survey]
        for id in query["question"]:
            if id not in known:
                raise Problem("malformed", f"the questions of this survey are {', '.join(known)}")
        candidates = tuple(dict.fromkeys(text for text in query["candidates"] if text))
        first, last = epoch_range(query[epochs])
        return cls(
            first,
            last,
            query["level"],
            query["intervals"] == SIMULTANEOUS,
            query.get("about", POPULATION) == POPULATION,
            query.get("post", "none"),
            tuple(query["question"]),
            candidates,
            query.get("top"),
            query.get("bins"),
            _ranges(query.get("range", ())),
            tuple(dict.fromkeys(query.get("values", ()))) or None,
            formulas=query.get("formulas") == KEPT,
            assume=_assumption(query.get("assume")),
            consistent=query.get("consistent") or "",
        )

    def asked(self, entry: Entry) -> list[Question]:
        return [question for question in entry.survey if not self.questions or question.id in self.questions]


@dataclass(frozen=True)
class Summed:
    """A tally over the epochs from first to last, and the number of reports of each epoch that has any."""

    tally: SurveyTally
    epochs: Sequence[Epoch]
    first: int
    last: int | None

    def repeats(self, entry: Entry) -> Repeats:
        return Repeats.of(entry.terms, [one.n for one in self.epochs])

    def span(self, entry: Entry) -> tuple[str | None, str | None]:
        """When the epochs that have reports began and ended."""
        known = [one.epoch for one in self.epochs if one.n]
        if not known:
            return None, None
        calendar = entry.terms.epochs
        return write_time(calendar.start(min(known))), write_time(calendar.start(max(known) + 1))


def reading(entry: Entry, summed: Summed, request: Request) -> Reading:
    """The estimates of one tally."""
    repeats = summed.repeats(entry)
    questions = [
        one for asked in request.asked(entry) for one in _documents(entry, asked, summed.tally, repeats, request)
    ]
    n = next(iter(summed.tally.tallies.values())).n
    return Reading(
        summed.first,
        summed.last,
        *summed.span(entry),
        n,
        questions,
        list(map(str, repeats.notes)),
        sentences(repeats.notes),
    )


def _missing(entry: Entry, question: Question, n: int, request: Request) -> str | None:
    """The reason if there is nothing to show."""
    if n < max(1, entry.terms.min_reports):
        return NOT_ENOUGH
    return OPEN_TEXT if needs_candidates(question.protocol) and not request.candidates else None


def _readable(entry: Entry, question: Question, n: int, request: Request) -> bool:
    """Whether n reports are read at all: enough of them, or zero; with candidate texts where those are needed."""
    if needs_candidates(question.protocol) and not request.candidates:
        return False
    return n == 0 or _missing(entry, question, n, request) is None


def _found(question: Question, tally: SurveyTally, repeats: Repeats, request: Request) -> Result:
    return find(
        question.protocol,
        tally[question.id],
        consistent=None if request.post == "none" else request.post,
        candidates=request.candidates or None if question.protocol.traits.answers != "all" else None,
        repeats=repeats,
        bins=request.bins,
        values=dict(request.followed).get(question.id, request.values),
        assume=request.assume,
    )


def found_values(entry: Entry, summed: Summed, request: Request) -> dict[str, list[str]]:
    """The answers that were found although nobody listed them, by question."""
    repeats, values = summed.repeats(entry), {}
    for question in request.asked(entry):
        if question.protocol.traits.answers == "found":
            n = summed.tally[question.id].n
            is_shown = n > 0 and _readable(entry, question, n, request)
            unbiased = replace(request, post="none")
            found = _found(question, summed.tally, repeats, unbiased).table().labels if is_shown else []
            values[question.id] = [str(one) for one in found]
    return values


def _documents(
    entry: Entry, question: Question, tally: SurveyTally, repeats: Repeats, request: Request
) -> Iterator[Document]:
    """The document of a question, or of each part of its answers."""
    protocol, own = question.protocol, tally[question.id]
    found, count = {}, len(request.candidates) if needs_candidates(protocol) else protocol.worth().tests
    if _readable(entry, question, own.n, request):
        result = _found(question, tally, repeats, request)
        found = documents(protocol, own, result, request.view, repeats, question.id, question.text, count)
    for part, (inner, _) in protocol.worth(own.n).parts.items():
        n = int(found[part].n) if found else own.n
        message = _missing(entry, question, n, request)
        if found and (message is None or n == 0):
            document = found[part]
        else:
            tests = max(1, count) if request.simultaneous else 1
            document = Document(
                id=question.id,
                part=part,
                text=question.text,
                kind=found[part].kind if found else inner.worth().read,
                protocol=inner.name,
                method=request.post,
                n=n,
                level=request.level,
                simultaneous=request.simultaneous,
                population=request.population,
                trust=trust(inner, n, request.level, repeats, tests, protocol.worth().leverage),
                sections=[],
            )
            if message != NOT_ENOUGH and own.n:
                misfit = protocol.misfit(own, repeats.noise)
                document.trust.misfit, document.trust.warning = misfit.p_value, misfit.message
            kept(document)
        document.protocol, document.message, document.enough = inner.name, message, message != NOT_ENOUGH
        if not own.n or not document.enough:
            document.trust.misfit = document.trust.warning = None
        yield _top(document, request.top)


def _top(document: Document, top: int | None) -> Document:
    """A document with the most common answers only, if a number of them is asked for."""
    if top is not None:
        for section in document.sections:
            if not section.further and not section.ordered and top < len(section.rows):
                value = np.array([math.nan if row["value"] is None else row["value"] for row in section.rows])
                section.rows = [section.rows[i] for i in np.argsort(-value, kind="stable")[:top]]
    return document


def changes(entry: Entry, version: int, before: Summed, after: Summed, request: Request) -> Differences:
    """What has changed from one range of epochs to another."""
    sides = [(one.tally, one.repeats(entry)) for one in (before, after)]
    questions = []
    for question in request.asked(entry):
        found = []
        if all(_readable(entry, question, tally[question.id].n, request) for tally, _ in sides):
            wanted = request
            if question.protocol.traits.answers == "found":  # compare what was found on either side
                each = [_found(question, *side, request).table().labels for side in sides]
                wanted = replace(request, values=tuple(dict.fromkeys(str(one) for labels in each for one in labels)))
            found = [_found(question, *side, wanted).parts for side in sides]
        for part in question.protocol.worth(1).parts:
            counts = [int(one[part].n) for one in found] or [tally[question.id].n for tally, _ in sides]
            messages = [_missing(entry, question, n, request) for n in counts]
            message = next(filter(None, messages), None)
            change = None if message else found[1][part] - found[0][part]
            questions.append(
                QuestionChange(
                    id=question.id,
                    part=part,
                    text=question.text,
                    level=request.level,
                    simultaneous=request.simultaneous,
                    n_before=counts[0],
                    n_after=counts[1],
                    enough=NOT_ENOUGH not in messages,
                    message=message,
                    rows=[] if change is None else list(_changed(change, request)),
                    p_value=None if change is None else finite(change.p_value),
                )
            )
    notes = [note for _, repeats in sides for note in repeats.notes]
    return Differences(entry.fingerprint, version, questions, list(dict.fromkeys(map(str, notes))))


def _changed(change: Difference, request: Request) -> Iterator[Change]:
    rows = [change.second, change.first, change.value, change.stderr]
    numbers = np.column_stack([*rows, change.interval(request.level, request.simultaneous)]).tolist()
    for label, row in zip(map(label_spec, change.labels), numbers, strict=True):
        yield Change(label, *map(finite, row))


# -- forms --------------------------------------------------------------------------------------------


def as_json(one: Reading) -> bytes:
    return msgspec.json.encode(one)


def read_json(content: bytes) -> Reading:
    """What `as_json` wrote."""
    return msgspec.json.decode(content, type=Reading)


def as_csv(one: Reading, formulas: bool = False) -> bytes:
    """One line per row; a question without rows has one line without a label.

    The format suits spreadsheets: times without letters, and epsilon as a decimal number, because 1/2 would be read as
    a date. Text that would be run as a formula gets a ' in front, unless `formulas` is set.
    """
    times = (_spreadsheet(time) for time in (one.starts, one.ends))
    first = ["" if end is None else end for end in (one.first, one.last, *times)]
    return csv_lines(one.questions, COLUMNS, formulas, first).encode()


def _spreadsheet(time: str | None) -> str:
    """
    >>> _spreadsheet("2026-11-01T00:00:00Z")
    '2026-11-01 00:00:00'
    """
    return "" if time is None else time.replace("T", " ").removesuffix("Z")


async def estimates(call: Call) -> Response:
    return await _respond(call, JSON)


async def estimates_csv(call: Call) -> Response:
    return await _respond(call, CSV)


@dataclass(frozen=True)
class _Series:
    """Readings of one request, range by range, as one list in the reply."""

    request: Request
    ranges: list[tuple[int, int | None]]

    async def pieces(
        self, service: Service, entry: Entry, progress: Progress, kind: str, between: bytes
    ) -> AsyncIterator[bytes]:
        for place, (first, last) in enumerate(self.ranges):
            body = await self._read(service, entry, progress, first, last)
            if kind == CSV:
                body = await service.readers.compute(lambda: as_csv(read_json(body), self.request.formulas))  # noqa: B023
            yield (between if place else b"") + body

    async def _read(self, service: Service, entry: Entry, progress: Progress, first: int, last: int | None) -> bytes:
        """The documents of one range, computed once for all forms and viewers."""
        # Keyed by the tally of this range alone: an answer stays cached while other epochs change.
        version = Progress(tuple(inside(progress.epochs, first, last))).version
        key = entry.fingerprint, version, replace(self.request, first=first, last=last, formulas=False)
        body = service.cache.get(key)
        if body is None:
            summed = await sum_epochs(service, entry, progress, first, last)
            body = await service.readers.compute(lambda: as_json(reading(entry, summed, self.request)))
            service.cache.put(key, body)
        return body


async def _respond(call: Call, kind: str) -> Response:
    service, entry = call.service, await call.entry()
    request = Request.of(call, entry)
    progress = await service.versions.read(entry.fingerprint)
    evolving = entry.terms.longitudinal.is_evolving
    first = entry.terms.first if evolving else request.first
    ranges: list[tuple[int, int | None]] = [(first, request.last)]
    if call.query["per"] == "epoch" and not evolving:
        ranges = [(one.epoch, one.epoch) for one in inside(progress.epochs, request.first, request.last)]
        request = await _following(service, entry, request, progress)
    pieces = _pieces(service, entry, progress, kind, _Series(request, ranges))
    told = None
    if call.query.get("status"):
        told = await status_of(service, entry, progress, *epoch_range(call.query.get("status_epochs")))
    # Errors must be raised before the first byte is sent.
    begin = [await anext(pieces), await anext(pieces)]

    async def stream() -> AsyncIterator[bytes]:
        for piece in begin:
            yield piece
        async for piece in pieces:
            yield piece
        if kind == JSON:
            yield b"}" if told is None else b',"status":' + msgspec.json.encode(told) + b"}"

    return StreamingResponse(stream(), 200, media_type=kind)


async def _following(service: Service, entry: Entry, request: Request, progress: Progress) -> Request:
    """The same request, restricted to what is found over all of its epochs, for protocols that search for answers."""
    if request.values is not None or not any(
        question.protocol.traits.answers == "found" for question in request.asked(entry)
    ):
        return request
    key = entry.fingerprint, progress.version, request, "found"
    kept = service.cache.get(key)
    if kept is None:
        summed = await sum_epochs(service, entry, progress, request.first, request.last)
        kept = await service.readers.compute(lambda: msgspec.json.encode(found_values(entry, summed, request)))
        service.cache.put(key, kept)
    followed = msgspec.json.decode(kept, type=dict[str, list[str]])
    return replace(request, followed=tuple((id, tuple(values)) for id, values in followed.items()))


async def _pieces(
    service: Service, entry: Entry, progress: Progress, kind: str, series: _Series
) -> AsyncIterator[bytes]:
    """The whole reply; for JSON, without its last brace."""
    if kind == CSV:
        opening, between, end = (",".join(HEAD) + "\n").encode(), b"", b""
    else:
        head = msgspec.json.encode({"survey": entry.fingerprint, "version": progress.version})
        opening, between, end = head[:-1] + b',"series":[', b",", b"]"
    yield opening
    async for piece in series.pieces(service, entry, progress, kind, between):
        yield piece
    yield end


async def sum_epochs(service: Service, entry: Entry, progress: Progress, first: int, last: int | None) -> Summed:
    """The sums of the epochs from first to last."""
    tally = await service.readers.run(lambda store: store.tally(entry.fingerprint, first, last))
    return Summed(tally, inside(progress.epochs, first, last), first, last)


async def differences(call: Call) -> Response:
    service, entry = call.service, await call.entry()
    if call.query["before"] is None or call.query["after"] is None:
        raise Problem("malformed", "give two ranges of epochs, before and after")
    if entry.terms.longitudinal.is_evolving:
        raise Problem("malformed", "where answers evolve, the estimates are one series: compare its epochs")
    request, later = (Request.of(call, entry, name) for name in ("before", "after"))
    progress = await service.versions.read(entry.fingerprint)
    before = await sum_epochs(service, entry, progress, request.first, request.last)
    after = await sum_epochs(service, entry, progress, later.first, later.last)
    made = await service.readers.compute(lambda: changes(entry, progress.version, before, after, request))
    return json_response(made)


LEVEL = Parameter(
    "level",
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.95},
    "the confidence level of the intervals, between 0 and 1",
)
INTERVALS = Parameter(
    "intervals",
    {"type": "string", "enum": ["each", SIMULTANEOUS], "default": "each"},
    "whether intervals hold for each answer by itself, or for all answers of a question at once (Bonferroni)",
)
QUESTIONS = Parameter(
    "question", {"type": "string", "minLength": 1, "maxLength": 64}, "only these questions, by id", many=True
)
CANDIDATES = Parameter(
    "candidates",
    {"type": "string", "maxLength": 4096},
    "texts to look for in answers of open text; repeat it for several",
    many=True,
)
FORMULAS = Parameter(
    "formulas",
    {"type": "string", "enum": ["quoted", KEPT], "default": "quoted"},
    "whether text that begins with =, +, - or @, which a spreadsheet would run, gets a ' in front",
)
QUERY = (
    SURVEY,
    RANGE,
    LEVEL,
    INTERVALS,
    Parameter(
        "about",
        {"type": "string", "enum": [POPULATION, RESPONDENTS], "default": POPULATION},
        "errors and intervals for everybody whom the respondents were drawn from, or for those who answered",
    ),
    Parameter(
        "post",
        {"type": "string", "enum": sorted(METHODS), "default": "none"},
        "how the shares are made consistent; all but none and norm are biased",
    ),
    Parameter(
        "per",
        {"type": "string", "enum": ["all", "epoch"], "default": "all"},
        "one reading over all epochs, or one per epoch; answers that nobody listed are searched for over all of them, "
        "and counted in each",
    ),
    QUESTIONS,
    CANDIDATES,
    Parameter(
        "top",
        {"type": "integer", "minimum": 1, "maximum": 1_000_000},
        "maximum number of answers that are listed, most common first",
    ),
    Parameter(
        "bins",
        {"type": "integer", "minimum": 1, "maximum": MOST_BINS},
        "of a distribution: about how many bins; by default as many as stand out of the noise",
    ),
    Parameter(
        "range",
        {"type": "string", "maxLength": 128},
        "of a distribution: the share of the numbers from one to another, such as 25..45; of two numbers, the share of "
        "a rectangle, such as 25..45,30..40; repeat it for several",
        many=True,
    ),
    Parameter(
        "assume",
        {"type": "string", "maxLength": 32},
        "of a distribution: smooth, or smooth:0.05 with the least standard deviation of a hump as a part of the range, "
        "gives shorter intervals of quantiles, ranges and bins, which hold if the distribution is smooth; by default "
        "they hold for any distribution",
    ),
    Parameter(
        "values",
        {"type": "string", "maxLength": 4096},
        "where answers are found although nobody listed them: the shares of these and no others; repeat it for several",
        many=True,
    ),
)

CONSISTENT = Parameter(
    "consistent",
    {"type": "string", "enum": sorted(METHODS)},
    "shares made consistent by this method, in columns next to the unbiased ones: consistent, consistent_low, ...",
)
STATUS = Parameter(
    "status", {"type": "boolean", "default": False}, "true: the reply has the survey's status as well, in one request"
)
STATUS_EPOCHS = replace(RANGE, name="status_epochs", help=f"the epochs that this status lists: {RANGE.help}")

OPERATIONS = (
    Operation(
        "GET",
        "/v1/surveys/{fingerprint}/estimates",
        "getEstimates",
        "Estimated shares with standard errors, intervals and what they can be trusted with.",
        estimates,
        {200: Answer("The estimates.", {JSON: Estimates})},
        role="analyst",
        problems=("countedElsewhere",),
        parameters=(*QUERY, CONSISTENT, STATUS, STATUS_EPOCHS),
    ),
    Operation(
        "GET",
        "/v1/surveys/{fingerprint}/estimates.csv",
        "getEstimatesCsv",
        "The same as a table.",
        estimates_csv,
        {200: Answer(f"Columns {', '.join(HEAD)}.", {CSV: {"type": "string"}})},
        role="analyst",
        problems=("countedElsewhere",),
        parameters=(*QUERY, FORMULAS),
    ),
    Operation(
        "GET",
        "/v1/surveys/{fingerprint}/differences",
        "getDifferences",
        "How much shares differ between two ranges of epochs, with standard errors and intervals.",
        differences,
        {200: Answer("The differences.", {JSON: Differences})},
        role="analyst",
        problems=("countedElsewhere",),
        parameters=(
            SURVEY,
            replace(RANGE, name="before", help=f"what is compared with: {RANGE.help}"),
            replace(RANGE, name="after", help=RANGE.help),
            LEVEL,
            INTERVALS,
            QUESTIONS,
            CANDIDATES,
        ),
    ),
)

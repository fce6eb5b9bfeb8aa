"""What the crowd thinks, with everything that says how sure that is.

Hidden     fewer answers than the survey's `show_from` are "not enough answers yet", in place of shares that are noise;
           without any answer the rows have no value, and their intervals are the whole range
Off loop   tallies are read and estimates computed in threads; a finished answer is kept until the sums change
Series     one reading over all epochs asked for, or one per epoch (per=epoch), sent while the next is computed. Where
           answers evolve, a share needs the reports of all epochs before it: then there is one reading, from the first
           epoch on, whose rows are the epochs
Several    over several epochs the errors allow for one device standing in each of them (`Repeats`)
Found      answers that nobody listed are searched for over all epochs asked for, and counted in each: one search per
           epoch would take as many times as long, and find less
Changes    differences of two ranges of epochs are computed here as well, so that no page repeats the arithmetic
"""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import msgspec
import numpy as np
from starlette.responses import Response, StreamingResponse

from deniable._plain import csv_cell
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
from deniable.results import Difference, finite
from deniable.results.distribution import MOST_BINS, read_numbers
from deniable.surveys import Question, SurveyTally
from deniable.surveys.results import NUMBERS, Finding, Repeats, find, outweighs, part_id, trust
from deniable.surveys.terms import write_time

SIMULTANEOUS, POPULATION, RESPONDENTS, KEPT = "simultaneous", "population", "respondents", "kept"
_FACTS = ("unlisted", "unlisted_stderr", "smallest", "false_finds", "headline")
NOT_ENOUGH = "not enough answers yet"
OPEN_TEXT = "open text: name the texts to look for with candidates=..."
HEAD = (
    "first",
    "last",
    "from_utc",
    "until_utc",
    "question",
    "label",
    *NUMBERS,
    "unit",
    "count",
    "n",
    "level",
    "epsilon",
    "noise_floor",
    "poisoning",
    "p_value",
)


class Row(msgspec.Struct):
    """One figure, the share of an answer say: its value, standard error and interval, in a unit."""

    label: Any
    value: float | None
    stderr: float | None
    low: float | None
    high: float | None
    unit: str = ""
    count: float | None = None
    """Of a share: the estimated number of people."""
    begin: float | None = None
    """Of a bin of a distribution: where it begins."""
    end: float | None = None
    """Where it ends; of whole numbers, the first one of the next bin."""
    second_begin: float | None = None
    """Of a rectangle of two numbers: the same of the second number."""
    second_end: float | None = None
    group: str = ""
    """Of a series: which answer the row is about; its label is the epoch, counted from 1."""
    p_value: float | None = None
    """Of an answer that was found although nobody listed it: how likely its reports would be if nobody had given it."""


class SetRow(Row):
    """One figure beside the items of sets: the share of a size, or of items that occur together."""

    lift: float | None = None
    """How many times as common the items are together as if they had nothing to do with each other."""
    lift_stderr: float | None = None
    guess: float | None = None
    """A best guess of the share, from those of single items as well; biased, and what the rows are ranked by."""


class Hypothesis(msgspec.Struct):
    """One hypothesis of a decision."""

    label: Any
    p_value: float
    """How often, if it were true, another hypothesis would be so many times likelier; an upper bound."""
    posterior: float
    """Its probability, if one of them is true and all were equally likely beforehand."""
    anytime: float
    """A p-value that holds however often one looks."""
    rejected: bool


class Choice(msgspec.Struct):
    """Which hypothesis the reports favour; wrong with probability `level` at most, if one of them is true."""

    outcome: str
    """ "favours", "undecided" or "none"."""
    favoured: Any
    """The one hypothesis that is left; null if there is not exactly one."""
    level: float
    verdict: str
    """The decision in one sentence."""
    doubt: str | None
    """Why none of the hypotheses may be true, if there is a reason."""
    hypotheses: list[Hypothesis]


class Axis(msgspec.Struct):
    """One column of a table of several columns."""

    name: str
    labels: list[str]


class MostCommon(msgspec.Struct):
    """The answer that looks most common."""

    label: Any
    runner_up: Any
    share: float
    margin: float
    """Its lead over the runner-up, in shares."""
    error: float
    """The standard error of that lead."""
    confidence: float
    """The highest confidence level at which no other answer is more common."""
    level: float
    certain: bool
    """Whether that reaches the level; if not, there is no clear leader."""
    population: bool


class QuestionReading(msgspec.Struct, kw_only=True):
    """Everything about one question."""

    id: str
    part: str = ""
    """Which part of the answers it is about; empty where an answer has no parts."""
    text: str
    kind: str
    """What is estimated: "shares" of answers, a "mean", ..."""
    protocol: str
    method: str
    n: int
    level: float
    simultaneous: bool
    """Whether the intervals hold for all answers of the question at once."""
    population: bool
    """Whether errors and intervals are about everybody whom the respondents were drawn from, or them alone."""
    enough: bool
    message: str | None = None
    """Why there are no answers here, if there are none."""
    epsilon: str
    realized_epsilon: float
    noise_floor: float | None
    """The smallest share that can be told from none."""
    poisoning: float | None
    """Forged reports of a share s move a frequency by at most s times this."""
    leverage: float | None
    """How many honest reports of the question one forged report outweighs at most; null where nothing bounds it."""
    forgery: str
    """The same in a sentence."""
    misfit: float | None = None
    """At most so often would honest reports look so unlike the protocol's; null where they were not tested."""
    warning: str | None = None
    """What to ask oneself if that is below 0.001."""
    rows: list[Row]
    axes: list[Axis] | None = None
    """Of a table of several columns: the rows are the combinations of their answers, row by row."""
    headline: str | None = None
    """Of a distribution: the finding in words."""
    cumulative: list[Row] | None = None
    """Of a distribution: the shares of the numbers up to some numbers, with intervals that hold for all at once."""
    ranges: list[Row] | None = None
    """Of a distribution: the shares of the ranges that were asked for."""
    further: dict[str, list[SetRow]] | None = None
    """Of sets: the shares of their "sizes", and of sets of items, "together"."""
    notes: list[str] = []
    """What to say beside the figures."""
    decision: Choice | None = None
    """Of a question that was designed for hypotheses, within one epoch or where no device answers twice."""
    winner: MostCommon | None = None
    """Of shares: the most common answer, and how sure that is."""
    unlisted: float | None = None
    """The share of texts that are none of the candidates."""
    unlisted_stderr: float | None = None
    smallest: float | None = None
    """Of answers that were found although nobody listed them: the share that is found nine times out of ten."""
    false_finds: float | None = None
    """How many are found on average, at most, if nothing is common."""


class Reading(msgspec.Struct):
    """Estimates over the epochs from first to last; notes say in sentences what the errors beside them allow for."""

    first: int
    last: int | None
    starts: str | None
    """When the first epoch that has reports began; null where there are none."""
    ends: str | None
    """When the last one ends."""
    n: int
    questions: list[QuestionReading]
    notes: list[str]
    """What one device that stands in several epochs does to the errors; empty for one epoch."""


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
    """How the answers to one question have changed, as populations."""

    id: str
    part: str = ""
    text: str
    n_before: int
    n_after: int
    level: float
    simultaneous: bool
    enough: bool
    message: str | None = None
    """Why there are no answers here, if there are none."""
    rows: list[Change]
    p_value: float | None = None
    """How often differences as clear as these show up where there are none at all."""


class Differences(msgspec.Struct):
    """Unbiased shares in one range of epochs minus those in another.

    Errors of the two are taken as independent. Reports that a device repeats in both make them positively related, and
    then the intervals are too wide, never too narrow.
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
    consistent: list[Reading] | msgspec.UnsetType = msgspec.UNSET
    """The same made consistent, where the query names a method for that."""
    status: Status | msgspec.UnsetType = msgspec.UNSET
    """Where the query asks for it."""


def _ranges(written: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    try:
        return tuple(map(read_numbers, written))
    except DeniableError as wrong:
        raise Problem("malformed", str(wrong)) from None


@dataclass(frozen=True)
class Request:
    """What is asked for."""

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
    """Whether a table leaves text as it is that a spreadsheet would run."""

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
        )

    def asked(self, entry: Entry) -> list[Question]:
        return [question for question in entry.survey if not self.questions or question.id in self.questions]


@dataclass(frozen=True)
class Summed:
    """A tally over the epochs from first to last, and how many reports each of those that have any brought."""

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
        reading for asked in request.asked(entry) for reading in _readings(entry, asked, summed.tally, repeats, request)
    ]
    n = next(iter(summed.tally.tallies.values())).n
    return Reading(summed.first, summed.last, *summed.span(entry), n, questions, repeats.notes)


def _missing(entry: Entry, question: Question, n: int, request: Request) -> str | None:
    """Why there is nothing to show, if there is nothing."""
    if n < max(1, entry.terms.show_from):
        return NOT_ENOUGH
    return OPEN_TEXT if question.protocol.needs_candidates and not request.candidates else None


def _readable(entry: Entry, question: Question, n: int, request: Request) -> bool:
    """Whether n reports are read at all: enough of them, or none, with texts to look for where those are needed."""
    if question.protocol.needs_candidates and not request.candidates:
        return False
    return n == 0 or _missing(entry, question, n, request) is None


def _found(question: Question, tally: SurveyTally, repeats: Repeats, request: Request, method: str | None) -> Finding:
    return find(
        question.protocol,
        tally[question.id],
        request.level,
        method,
        request.candidates or None if question.protocol.takes_candidates else None,
        request.simultaneous,
        request.population,
        repeats,
        request.bins,
        request.ranges,
        dict(request.followed).get(question.id, request.values),
    )


def found_values(entry: Entry, summed: Summed, request: Request) -> dict[str, list[str]]:
    """The answers that are found where nobody listed them, by question."""
    repeats, values = summed.repeats(entry), {}
    for question in request.asked(entry):
        if question.protocol.finds:
            n = summed.tally[question.id].n
            is_shown = n > 0 and _readable(entry, question, n, request)
            found = _found(question, summed.tally, repeats, request, None).table.labels if is_shown else []
            values[question.id] = [str(one) for one in found]
    return values


def _readings(
    entry: Entry, question: Question, tally: SurveyTally, repeats: Repeats, request: Request
) -> Iterator[QuestionReading]:
    """One reading of a question, or of each part of its answers."""
    protocol, own = question.protocol, tally[question.id]
    misfit = protocol.misfit(own, repeats.noise) if own.n else None
    method = None if request.post == "none" else request.post
    found = {}
    if _readable(entry, question, own.n, request):
        found = _found(question, tally, repeats, request, method).parts
    for part, (inner, _) in protocol.parts(own.n).items():
        n = int(found[part].result.n) if found else own.n
        message = _missing(entry, question, n, request)
        tests = len(request.candidates) if protocol.needs_candidates else protocol.tests
        head: dict[str, Any] = {"id": question.id, "part": part, "text": question.text, "protocol": inner.name, "n": n}
        head |= {"kind": found[part].result.kind if found else inner.reads}
        head |= {"level": request.level, "simultaneous": request.simultaneous, "population": request.population}
        head |= {"enough": message != NOT_ENOUGH}
        head |= trust(inner, n, request.level, repeats, max(1, tests) if request.simultaneous else 1)
        head |= {"leverage": protocol.leverage, "forgery": outweighs(protocol.leverage)}
        if message != NOT_ENOUGH and misfit is not None:
            head |= {"misfit": misfit.p_value, "warning": misfit.message}
        if message is not None and not (n == 0 and found):
            yield QuestionReading(**head, method=request.post, message=message, rows=[])
            continue
        content = found[part].description(question.id, question.text)
        rows = content["rows"]
        if request.top is not None and request.top < len(rows) and not found[part].table.is_ordered:
            order = np.argsort(-found[part].table.value, kind="stable")[: request.top]
            rows = [rows[i] for i in order]
        rest: dict[str, Any] = {key: content[key] for key in _FACTS if key in content}
        if "winner" in content:
            rest["winner"] = MostCommon(**content["winner"])
        if "axes" in content:
            rest["axes"] = [Axis(**axis) for axis in content["axes"]]
        if "cumulative" in content:
            rest["cumulative"] = [Row(**row) for row in content["cumulative"]]
        if "further" in content:
            rest["further"] = {
                name: [SetRow(**row) for row in found_rows] for name, found_rows in content["further"].items()
            }
        if "ranges" in content:
            rest["ranges"] = [Row(**row) for row in content["ranges"]]
        yield QuestionReading(
            **head,
            **rest,
            method=content["method"],
            message=message,
            notes=content["notes"],
            decision=_choice(content.get("decision")),
            rows=[Row(**row) for row in rows],
        )


def _choice(decision: dict[str, Any] | None) -> Choice | None:
    if decision is None:
        return None
    hypotheses = [
        Hypothesis(row["label"], row["value"], row["posterior"], row["anytime"], bool(row["rejected"]))
        for row in decision["rows"]
    ]
    head = {key: decision[key] for key in ("outcome", "favoured", "level", "verdict", "doubt")}
    return Choice(**head, hypotheses=hypotheses)


def changes(entry: Entry, version: int, before: Summed, after: Summed, request: Request) -> Differences:
    """What has changed from one range of epochs to another."""
    sides = [(one.tally, one.repeats(entry)) for one in (before, after)]
    questions = []
    for question in request.asked(entry):
        found = []
        if all(_readable(entry, question, tally[question.id].n, request) for tally, _ in sides):
            wanted = request
            if question.protocol.finds:  # what was found on either side is compared
                each = [_found(question, *side, request, None).table.labels for side in sides]
                wanted = replace(request, values=tuple(dict.fromkeys(str(one) for labels in each for one in labels)))
            found = [_found(question, *side, wanted, None).result.parts for side in sides]
        for part in question.protocol.parts(1):
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
    return Differences(entry.fingerprint, version, questions, list(dict.fromkeys(notes)))


def _changed(change: Difference, request: Request) -> Iterator[Change]:
    rows = [change.second, change.first, change.value, change.stderr]
    numbers = np.column_stack([*rows, change.interval(request.level, request.simultaneous)]).tolist()
    for label, row in zip(map(label_spec, change.labels), numbers, strict=True):
        yield Change(label, *map(finite, row))


# -- forms --------------------------------------------------------------------------------------------


def as_json(one: Reading) -> bytes:
    return msgspec.json.encode(one)


def as_csv(one: Reading, formulas: bool = False) -> bytes:
    """One line per answer; a question without answers has one line without a label.

    Written for spreadsheets: times without letters, and epsilon as a decimal number, for 1/2 would be read as a date.
    Text that would be run gets a ' in front, unless `formulas` are left.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for question in one.questions:
        epsilon = f"{float(Fraction(question.epsilon)):.15g}"
        tail = [question.n, question.level, epsilon, question.noise_floor, question.poisoning]
        times = (_spreadsheet(time) for time in (one.starts, one.ends))
        head = [one.first, one.last, *times, csv_cell(part_id(question.id, question.part), formulas)]
        if not question.rows:
            writer.writerow([*head, "", *[""] * (len(NUMBERS) + 2), *tail, ""])
        for row in question.rows:
            label = row.label if isinstance(row.label, str) else msgspec.json.encode(row.label).decode()
            label = f"{row.group}: {label}" if row.group else label
            label = csv_cell(label, formulas or not (row.group or isinstance(row.label, str)))
            numbers = [getattr(row, name) for name in NUMBERS]
            writer.writerow([*head, label, *numbers, csv_cell(row.unit, formulas), row.count, *tail, row.p_value])
    return out.getvalue().encode()


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
    """Readings of one request, range by range, as one list of a reply."""

    request: Request
    ranges: list[tuple[int, int | None]]

    async def pieces(
        self, service: Service, entry: Entry, progress: Progress, kind: str, between: bytes
    ) -> AsyncIterator[bytes]:
        for place, (first, last) in enumerate(self.ranges):
            # By the tally of this range alone: an answer stays while other epochs change.
            version = Progress(tuple(inside(progress.epochs, first, last))).version
            key = entry.fingerprint, version, replace(self.request, first=first, last=last), kind
            body = service.cache.get(key)
            if body is None:
                write = partial(as_csv, formulas=self.request.formulas) if kind == CSV else as_json
                summed = await _summed(service, entry, progress, first, last)
                body = await service.readers.compute(lambda: write(reading(entry, summed, self.request)))  # noqa: B023
                service.cache.put(key, body)
            yield (between if place else b"") + body


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
    also = call.query.get("consistent")
    consistent = None if also is None else _Series(replace(request, post=also), ranges)
    pieces = _pieces(service, entry, progress, kind, _Series(request, ranges), consistent)
    told = await status_of(service, entry, progress) if call.query.get("status") else None
    # What cannot be computed is said before the first byte goes out.
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
    """The same request about what is found over all of its epochs, where answers are searched for."""
    if request.values is not None or not any(question.protocol.finds for question in request.asked(entry)):
        return request
    key = entry.fingerprint, progress.version, request, "found"
    kept = service.cache.get(key)
    if kept is None:
        summed = await _summed(service, entry, progress, request.first, request.last)
        kept = await service.readers.compute(lambda: msgspec.json.encode(found_values(entry, summed, request)))
        service.cache.put(key, kept)
    followed = msgspec.json.decode(kept, type=dict[str, list[str]])
    return replace(request, followed=tuple((id, tuple(values)) for id, values in followed.items()))


async def _pieces(
    service: Service, entry: Entry, progress: Progress, kind: str, series: _Series, consistent: _Series | None
) -> AsyncIterator[bytes]:
    """All of a reply; of JSON, all but its last brace."""
    if kind == CSV:
        opening, between, end = (",".join(HEAD) + "\n").encode(), b"", b""
    else:
        head = msgspec.json.encode({"survey": entry.fingerprint, "version": progress.version})
        opening, between, end = head[:-1] + b',"series":[', b",", b"]"
    yield opening
    async for piece in series.pieces(service, entry, progress, kind, between):
        yield piece
    yield end
    if consistent is not None:
        yield b',"consistent":['
        async for piece in consistent.pieces(service, entry, progress, kind, between):
            yield piece
        yield end


async def _summed(service: Service, entry: Entry, progress: Progress, first: int, last: int | None) -> Summed:
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
    before = await _summed(service, entry, progress, request.first, request.last)
    after = await _summed(service, entry, progress, later.first, later.last)
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
        "only so many of the most common answers, most common first",
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
        "values",
        {"type": "string", "maxLength": 4096},
        "where answers are found although nobody listed them: the shares of these and no others; repeat it for several",
        many=True,
    ),
)

CONSISTENT = Parameter(
    "consistent",
    {"type": "string", "enum": sorted(METHODS)},
    "the same once more, made consistent by this method, in the reply's consistent",
)
STATUS = Parameter(
    "status", {"type": "boolean", "default": False}, "true: the reply has the survey's status as well, in one request"
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
        problems=("countedElsewhere",),
        parameters=(*QUERY, CONSISTENT, STATUS),
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

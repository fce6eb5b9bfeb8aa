"""Results for everybody: what a survey whose terms say "results": "public" shows without a token.

Terms      without that term there is nothing to read here, whoever asks
Minimum    below the survey's `min_reports` the reply has neither figures nor the number of answers; a part of a
           question that has fewer is left out and named
Document   the same as on the dashboard at first: all epochs, 95 % intervals that hold for all answers of a question at
           once. Where devices repeat their noise, it is the latest epoch with enough answers
Held       a reading is kept for `HELD` seconds, so that many readers cost as much as one, and nobody can look after
           every single report
Sheet      what the figures are and how they were made; it stands in the JSON, and in the metadata of the Arrow file
"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from deniable._extras import require
from deniable.collect.server.api import Answer, Call, Operation
from deniable.collect.server.estimates import Request, Summed, reading, sum_epochs
from deniable.collect.server.ingest import SURVEY
from deniable.collect.server.problems import Problem
from deniable.collect.server.progress import CSV
from deniable.collect.server.registry import Entry, Progress
from deniable.collect.wire import JSON
from deniable.exact import canonical
from deniable.results import Document
from deniable.results.document import Phrase
from deniable.results.render.csv import as_arrow, as_csv, columns_of, question_name
from deniable.surveys.terms import PUBLIC, write_time

HELD = 60
"""Seconds for which a reading is kept."""
LEVEL = 0.95
ARROW = "application/vnd.apache.arrow.stream"
SHEET = b"deniable.sheet"
"""The key of the data sheet in the metadata of an Arrow file."""
MEANINGS = {
    "question": "the question, or a part of it, by id",
    "section": "what the rows are: shares, figures, bins, ...",
    "label": "the answer, or the figure",
    "group": "the part of the answers that the row belongs to",
    "value": "the estimate",
    "stderr": "its standard error, from the noise and from sampling",
    "low": "lower end of its interval",
    "high": "upper end of its interval",
    "count": "estimated number of respondents",
    "unit": "the unit of the value; empty for shares",
    "p_value": "how often an answer that nobody gave would look this common",
    "begin": "lower end of the bin or rectangle",
    "end": "upper end of the bin or rectangle, or the number up to which a share is counted",
    "second_begin": "lower end of the rectangle in the second number",
    "second_end": "upper end of the rectangle in the second number",
    "lift": "how many times more often two items occur together than if they were independent",
    "lift_stderr": "standard error of the lift",
    "guess": "the best guess of the share, which is biased",
    "posterior": "probability of the hypothesis, if all were equally likely before",
    "anytime": "p-value that stays valid however often one looks",
    "rejected": "whether the hypothesis is rejected",
    "assumed": "what the interval assumes about the population; empty: nothing",
    "consistent": "the estimate, made consistent: shares between 0 and 1 that add up to 1",
    "consistent_low": "lower end of its interval",
    "consistent_high": "upper end of its interval",
    "n": "number of counted reports",
    "level": "confidence level of the intervals",
    "population": "whether the intervals are about the population that the respondents were drawn from",
    "simultaneous": "whether the intervals hold for all rows of the section at once",
    "unlisted": "estimated share of answers that are not listed",
    "method": "how the values were estimated",
    "protocol": "how devices randomize the answer",
    "epsilon": "epsilon of the question",
    "noise_floor": "the smallest share that can be distinguished from zero",
    "poisoning": "if a share s of the reports is forged, a value moves by at most s times this",
}


class Asked(msgspec.Struct):
    """A question of the sheet."""

    id: str
    text: str
    protocol: str
    epsilon: str


class Sheet(msgspec.Struct):
    """What the figures are, and how they were made."""

    survey: str
    """The fingerprint; the survey itself is at /v1/surveys/{fingerprint}."""
    name: str
    owner: str
    purpose: str
    opens: str
    expires: str
    min_reports: int
    """Fewer reports than this are not shown."""
    epsilon: str
    """Epsilon of one submission."""
    lifetime_epsilon: str | None
    """Epsilon of everything that a device may send; null if no number holds."""
    questions: list[Asked]
    languages: list[str]
    """The languages of its texts, its own first; empty if it does not name one. These results have its own texts."""
    columns: dict[str, str]
    """What the columns of the tables mean."""


class PublicResults(msgspec.Struct):
    """What everybody may read."""

    sheet: Sheet
    state: str
    """waiting, collecting, over, or closed by its owner."""
    enough: bool
    """Whether enough answers are counted to show anything."""
    n: int | None
    """Number of counted reports; null if there are not enough."""
    starts: str | None
    """When the first epoch that is counted here began."""
    ends: str | None
    questions: list[Document]
    withheld: list[str]
    """Questions, or parts of them, with too few answers of their own."""
    notes: list[str]
    sentences: list[Phrase]
    """The notes with the ids and parameters of the catalogue of words."""


def sheet(entry: Entry, columns: list[str]) -> Sheet:
    survey, terms = entry.survey, entry.terms
    return Sheet(
        entry.fingerprint,
        survey.name,
        terms.owner,
        terms.purpose,
        write_time(terms.opens),
        write_time(terms.expires),
        terms.min_reports,
        canonical(survey.epsilon),
        None if survey.lifetime_epsilon is None else canonical(survey.lifetime_epsilon),
        [Asked(one.id, one.text, one.protocol.name, canonical(one.protocol.epsilon)) for one in survey],
        list(survey.languages),
        {name: MEANINGS.get(name, "") for name in columns},
    )


def epochs_shown(entry: Entry, progress: Progress) -> tuple[int, int | None]:
    """All epochs; the latest with enough answers, where the reports of several repeat the same noise."""
    rule = entry.terms.longitudinal
    if not rule.keeps or rule.is_evolving or rule.epochs == 1:
        return (entry.terms.first if rule.is_evolving else 0), None
    enough = [one.epoch for one in progress.epochs if one.n >= entry.terms.min_reports]
    return (enough[-1], enough[-1]) if enough else (0, None)


def public_results(entry: Entry, summed: Summed, state: str) -> PublicResults:
    """What everybody may read of these sums."""
    n = sum(one.n for one in summed.epochs)
    if n < max(1, entry.terms.min_reports):
        return PublicResults(sheet(entry, []), state, False, None, None, None, [], [], [], [])
    request = Request(summed.first, summed.last, LEVEL, True, True, "none", (), (), None, consistent="norm-sub")
    found = reading(entry, summed, request)
    shown = [one for one in found.questions if one.enough]
    withheld = [question_name(one) for one in found.questions if not one.enough]
    columns = columns_of(shown)
    return PublicResults(
        sheet(entry, columns),
        state,
        True,
        found.n,
        found.starts,
        found.ends,
        shown,
        withheld,
        found.notes,
        found.sentences,
    )


async def held(call: Call) -> bytes:
    """The reading of this minute as JSON; refused unless the survey's terms allow it."""
    service, entry = call.service, await call.entry()
    if entry.terms.results != PUBLIC:
        raise Problem("notPublic", 'its terms do not say "results": "public": ask its owner')
    now = service.now()
    key = entry.fingerprint, PUBLIC, int(now // HELD)
    body = service.cache.get(key)
    if body is None:
        progress = await service.versions.read(entry.fingerprint)
        summed = await sum_epochs(service, entry, progress, *epochs_shown(entry, progress))
        body = await service.readers.compute(
            lambda: msgspec.json.encode(public_results(entry, summed, entry.phase(now)))
        )
        service.cache.put(key, body)
    return body


def _read(content: bytes) -> PublicResults:
    return msgspec.json.decode(content, type=PublicResults)


def as_stream(found: PublicResults) -> bytes:
    """An Arrow stream with the sheet in its metadata."""
    ipc = require("pyarrow.ipc", "files")
    table = as_arrow(found.questions).replace_schema_metadata({SHEET: msgspec.json.encode(found.sheet)})
    sink = require("pyarrow", "files").BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _sent(call: Call, body: bytes, kind: str, suffix: str) -> Response:
    headers = {"Cache-Control": f"public, max-age={HELD}"}
    if suffix:
        headers["Content-Disposition"] = f'attachment; filename="{call.path["fingerprint"][:12]}.{suffix}"'
    return Response(body, 200, headers, kind)


async def results(call: Call) -> Response:
    return _sent(call, await held(call), JSON, "")


async def results_csv(call: Call) -> Response:
    found = _read(await held(call))
    return _sent(call, await call.service.readers.compute(lambda: as_csv(found.questions).encode()), CSV, "csv")


async def results_arrow(call: Call) -> Response:
    found = _read(await held(call))
    return _sent(call, await call.service.readers.compute(lambda: as_stream(found)), ARROW, "arrow")


def _operation(suffix: str, name: str, help: str, handler: Any, answer: Answer, *problems: str) -> Operation:
    return Operation(
        "GET",
        f"/v1/surveys/{{fingerprint}}/results{suffix}",
        name,
        help,
        handler,
        {200: answer},
        problems=("notPublic", "countedElsewhere", "noShares", *problems),
        parameters=(SURVEY,),
        public=True,
    )


OPERATIONS = (
    _operation(
        "",
        "getResults",
        "The results of a survey whose terms make them public, with a data sheet. "
        f"They are computed at most once in {HELD} seconds.",
        results,
        Answer("The results.", {JSON: PublicResults}),
    ),
    _operation(
        ".csv",
        "getResultsCsv",
        "The same as a table.",
        results_csv,
        Answer("The results; the data sheet names the columns.", {CSV: {"type": "string"}}),
    ),
    _operation(
        ".arrow",
        "getResultsArrow",
        f"The same as an Arrow stream, with the data sheet in the metadata under {SHEET.decode()}.",
        results_arrow,
        Answer("The results.", {ARROW: {"type": "string", "format": "binary"}}),
        "notInstalled",
    ),
)

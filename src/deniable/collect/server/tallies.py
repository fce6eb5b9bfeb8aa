"""The sufficient statistic itself, as JSON, CSV or Arrow, streamed: what `deniable estimate` takes as a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse

from deniable._extras import require
from deniable.collect.server.api import Answer, Call, Operation
from deniable.collect.server.epochs import RANGE, epoch_range
from deniable.collect.server.estimates import CSV
from deniable.collect.server.ingest import SURVEY
from deniable.collect.wire import JSON
from deniable.surveys import SurveyTally

ARROW = "application/vnd.apache.arrow.stream"
AT_ONCE = 65_536
"""Counters in one piece."""

Form = Callable[[SurveyTally], Iterator[bytes]]


def as_json(tally: SurveyTally) -> Iterator[bytes]:
    """The very bytes of `SurveyTally.to_json`, in pieces."""
    head = tally.spec() | {"tallies": {}}
    yield json.dumps(head, separators=(",", ":"), ensure_ascii=False)[:-2].encode()
    for place, (id, own) in enumerate(tally.tallies.items()):
        small = {key: value for key, value in own.spec().items() if key != "counts"} | {"counts": []}
        opening = json.dumps({id: small}, separators=(",", ":"), ensure_ascii=False)[1:-3]
        yield ("," if place else "").encode() + opening.encode()
        for at in range(0, own.counts.size, AT_ONCE):
            piece = json.dumps(own.counts[at : at + AT_ONCE].tolist(), separators=(",", ":"))[1:-1]
            yield ("," if at else "").encode() + piece.encode()
        yield b"]}"
    yield b"}}\n"


def as_csv(tally: SurveyTally) -> Iterator[bytes]:
    """question, n, counter, count."""
    yield b"question,n,counter,count\n"
    for id, own in tally.tallies.items():
        for at in range(0, own.counts.size, AT_ONCE):
            counts = own.counts[at : at + AT_ONCE].tolist()
            yield "".join(f"{id},{own.n},{at + i},{count}\n" for i, count in enumerate(counts)).encode()


def as_arrow(tally: SurveyTally) -> Iterator[bytes]:
    """An Arrow stream of question, counter and count; the schema's metadata has the rest, without the counts."""
    pa = require("pyarrow", "files")
    heads = {
        id: {key: value for key, value in own.spec().items() if key != "counts"} for id, own in tally.tallies.items()
    }
    note = json.dumps(tally.spec() | {"tallies": heads}).encode()
    fields = [("question", pa.string()), ("counter", pa.int64()), ("count", pa.int64())]
    schema = pa.schema(fields, metadata={b"deniable.survey-tally": note})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for id, own in tally.tallies.items():
            for at in range(0, own.counts.size, AT_ONCE):
                counts = own.counts[at : at + AT_ONCE]
                places = pa.array(range(at, at + counts.size), pa.int64())
                columns = [pa.array([id] * counts.size, pa.string()), places, pa.array(counts, pa.int64())]
                writer.write_batch(pa.record_batch(columns, schema))
    yield sink.getvalue().to_pybytes()


def _handler(form: Form, kind: str) -> Callable[[Call], object]:
    async def handle(call: Call) -> Response:
        entry = await call.entry()
        first, last = epoch_range(call.query["epochs"])
        tally = await call.service.readers.run(lambda store: store.tally(entry.fingerprint, first, last))
        pieces = form(tally)
        begin = await call.service.readers.compute(lambda: next(pieces))

        async def stream() -> object:
            yield begin
            async for piece in iterate_in_threadpool(pieces):
                yield piece

        return StreamingResponse(stream(), 200, media_type=kind)  # type: ignore[arg-type]

    return handle


def _operation(suffix: str, form: Form, kind: str, help: str, problems: tuple[str, ...] = ()) -> Operation:
    return Operation(
        "GET",
        f"/v1/surveys/{{fingerprint}}/tally.{suffix}",
        f"getTally{suffix.capitalize()}",
        f"The counters, {help}.",
        _handler(form, kind),  # type: ignore[arg-type]
        {200: Answer("The tally.", {kind: {"type": "object"} if kind == JSON else {"type": "string"}})},
        role="analyst",
        problems=problems,
        parameters=(SURVEY, RANGE),
    )


OPERATIONS = (
    _operation("json", as_json, JSON, "in the form of a tally file"),
    _operation("csv", as_csv, CSV, "one a line"),
    _operation("arrow", as_arrow, ARROW, "as an Arrow stream", ("notInstalled",)),
)

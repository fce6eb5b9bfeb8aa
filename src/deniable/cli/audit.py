"""`deniable audit`: does a survey, a protocol or somebody's program keep the epsilon that it claims?"""

from __future__ import annotations

import secrets
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import deniable
from deniable.audit.verdict import Audit, audit as judge, command_words
from deniable.cli import output
from deniable.cli.load_survey import questions, read_target
from deniable.cli.options import Json, argument, new_app, option, read_text
from deniable.cli.output import examples, shown
from deniable.errors import SpecError
from deniable.files import Source, read_batches
from deniable.files.places import said_of
from deniable.privacy.poisoning import inspect
from deniable.protocols import Protocol
from deniable.protocols.reports import Bytes
from deniable.surveys import Survey
from deniable.surveys.audit_report import report_html, reviewed
from deniable.surveys.promises import promises, summary

app = new_app()


@app.command(
    epilog=examples(
        "deniable audit survey.json                                          exactly, question by question",
        "deniable audit survey.json --report audit.html                      a page that a reviewer can sign",
        "deniable audit --client './client --quiet' --values yes,no --epsilon 1   a program in any language",
        "deniable audit protocol.json --client 'node client.js'              a program that says it follows a spec",
        "deniable audit --client ./client --streams streams.txt --epsilon 2  devices that answer again and again",
        "deniable audit survey.json --reports reports.parquet                look for forged reports among some",
    )
)
def audit(
    survey: Annotated[str | None, argument("[SURVEY]", "A survey or a protocol.")] = None,
    client: Annotated[
        str | None,
        option(
            "COMMAND", "A program that reads one value per line and writes one report in hexadecimal digits per line."
        ),
    ] = None,
    values: Annotated[str | None, option("A,B,...", "The values that the program is given.")] = None,
    streams: Annotated[
        str | None,
        option(
            "FILE",
            "Instead of values: the answers of one device over the epochs per line, with commas between them. "
            "The program gets one answer per line, and an empty line before the next device, which it answers by one.",
        ),
    ] = None,
    epsilon: Annotated[str | None, option("EPSILON", "The claim of the program.")] = None,
    samples: Annotated[int, option("N", "Samples of each input, where it takes samples.", default=True)] = 20_000,
    level: Annotated[float, option("P", "Confidence of bounds from samples.", default=True)] = 0.95,
    seed: Annotated[
        int | None,
        option(
            "N",
            "Draw the samples of a survey or protocol from this seed, to see the same figures again.",
            default="a new one, which the report names",
        ),
    ] = None,
    report: Annotated[Path | None, option("FILE", "Write the audit of a survey as one HTML page.")] = None,
    reports: Annotated[
        list[str] | None,
        option(
            "FILE",
            "Look for forged reports in this file of reports (Parquet, Arrow stream or text), instead of checking "
            "an epsilon; may be repeated.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the epsilon of a survey, a protocol or a program.

    What this package can follow is judged exactly: the real code is run along every branch, or on symbols where a
    report is too large to list. A program is judged by its reports: the event that tells two inputs apart best is
    chosen on one half of the samples and bounded on the other. The exit code is 0 if the claim is cleared, 1 if it is
    violated, 3 if it is undecided, and 2 if the call is wrong.

    With --reports the reports are judged, and not the epsilon: implausible ones, sums that no population explains,
    answers that are supported together too often, and reports that agree too well. Each of the tests is wrong in one of
    a thousand honest collections. The exit code is 0 without an alarm, and 1 with one.
    """
    target = None if survey is None else read_target(survey)
    # A protocol alone has no name and no text, so that no page can be written about it.
    named = target if target is not None and target.kind == "survey" else None
    if reports:
        if target is None or any(one is not None for one in (client, values, streams, epsilon, seed, report)):
            raise SpecError("--reports goes with a survey or a protocol, and with --json, and nothing else")
        raise typer.Exit(_inspected(target, reports, as_json))
    if client is None:
        if target is None:
            raise SpecError("give a survey or a protocol, or a program with --client")
        if values is not None or streams is not None or epsilon is not None:
            raise SpecError("--values, --streams and --epsilon go with --client")
        seed = secrets.randbits(32) if seed is None else seed
        with output.solving() as progress:
            found = judge(target, samples=samples, level=level, seed=seed, progress=progress)
    else:
        if seed is not None:
            raise SpecError("--seed is for a survey or a protocol: a program draws for itself")
        if named is not None:
            raise SpecError("a program follows one protocol: give the spec of a protocol, or none")
        if report is not None:
            raise SpecError("--report is for a survey")
        protocol = None if target is None else target.questions[0].protocol
        found = _of_client(client, protocol, values, streams, epsilon, samples, level)
    content = None
    if named is not None and client is None and (report is not None or as_json):
        content = reviewed(named, found, deniable.__version__, seed, samples=samples, level=level)
    if report is not None:
        if content is None:
            raise SpecError("--report is for a survey")
        report.write_text(report_html(content), encoding="utf-8")
    if as_json:
        output.document(found.to_dict() | {"seed": seed} if content is None else content)
    else:
        _print(found, seed, named)
        output.files(written=report)
    raise typer.Exit(found.exit_code)


def _inspected(target: Survey, files: list[str], as_json: bool) -> int:
    """Look for evidence of forged reports in some files, question by question; returns the exit code."""
    rows: dict[str, list[Bytes]] = {}
    for name in files:
        with said_of(name), closing(Source.open(name)) as source:
            if source.is_json:
                raise SpecError("this is a tally: an alarm needs the reports themselves")
            for batch in read_batches(source, target):
                for id, some in batch.items():
                    rows.setdefault(id, []).append(some)
    known = questions(target)
    found = {id: inspect(known[id][1], np.vstack(some)) for id, some in rows.items()}
    if as_json:
        output.document({"kind": "inspection", "questions": {id: one.to_dict() for id, one in found.items()}})
    else:
        for place, (id, one) in enumerate(found.items()):
            if place:
                output.write("\n")
            output.heading(shown(id))
            output.prose(one.words)
    return int(any(one.alarm for one in found.values()))


def _of_client(
    client: str,
    protocol: Protocol | None,
    values: str | None,
    streams: str | None,
    epsilon: str | None,
    samples: int,
    level: float,
) -> Audit:
    if values is not None and streams is not None:
        raise SpecError("--values and --streams exclude each other: choose one")
    inputs: list[Any] | None = None
    if values is not None:
        inputs = list(values.split(","))
    if streams is not None:
        inputs = [[one.strip() for one in line.split(",")] for line in read_text(streams).splitlines() if line.strip()]
        odd = next((stream for stream in inputs if len(stream) != len(inputs[0])), None)
        if odd is not None:
            raise SpecError(
                f"{streams!r}: streams of {len(inputs[0])} and of {len(odd)} answers are told apart by their length: "
                "give all of them the same one"
            )
    if inputs is None and protocol is None:
        raise SpecError("a program is given values: say which with --values or --streams, or give the spec it follows")
    if inputs is not None and any(one in inputs[:place] for place, one in enumerate(inputs)):
        raise SpecError("an audit compares different inputs, and one of these stands twice")
    if epsilon is None and protocol is None:
        raise SpecError("say with --epsilon what the program claims")
    with output.solving() as progress:
        return judge(
            command_words(client),
            epsilon,
            samples,
            inputs=inputs,
            protocol=protocol,
            stream=streams is not None,
            level=level,
            progress=progress,
        )


def _print(found: Audit, seed: int | None, survey: Survey | None) -> None:
    output.heading(shown(found.subject))
    output.prose(found.words if survey is None else f"{found.words}. {summary(survey)}")
    if survey is not None:
        said = promises(survey)
        for name in ("line", "guess", "sure"):
            output.prose(shown(said[name]))
    if found.parts:
        output.write("\n")
        rows = [
            [
                shown(part.subject),
                part.verdict,
                part.method,
                f"{part.epsilon:.6g}",
                "-" if part.exact is None else output.number(part.exact, 6),
                output.number(part.lower, 6),
            ]
            for part in found.parts
        ]
        output.table(["question", "verdict", "by", "claim", "exact", "at least"], rows, left=3)
    for one in (found, *found.parts):
        output.write("\n")
        if one is not found:
            output.heading(shown(one.subject))
        pairs = [] if one.pair is None else [f"told apart best: {shown(one.pair[0])} | {shown(one.pair[1])}"]
        pairs += [f"by: {shown(one.event)}"] if one.event else []
        for note in (*pairs, *one.notes):
            output.prose(f"- {note}")
    if seed is not None:
        output.write("\n")
        output.prose(f"Samples are those of --seed {seed}.")

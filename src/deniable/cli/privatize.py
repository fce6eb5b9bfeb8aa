"""`deniable privatize`: turn a file of answers into a file of reports."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import PurePath
from typing import Annotated, Any

import typer

from deniable.cli import output
from deniable.cli.load_survey import between_words, epsilon_words, questions, read_first
from deniable.cli.options import STDIN, About, Seed, bits_from, new_app, only_one_stdin, refuse_keyboard
from deniable.cli.output import examples, progress
from deniable.errors import LabelError, SpecError
from deniable.exact import epsilon_text
from deniable.files import privatize_file
from deniable.files.places import Refused, expand, is_url, plain, shown
from deniable.files.reports import format_of
from deniable.surveys import Panel, Survey
from deniable.surveys.tables import questions_of

app = new_app()

ANSWER = "answer"
_DIGITS = re.compile("([0-9]+)")


class Format(StrEnum):
    parquet = "parquet"
    arrow = "arrow"
    text = "text"


@app.command(
    epilog=examples(
        "deniable privatize survey.json answers.csv -o reports.parquet",
        "deniable privatize survey.json - -o reports.parquet < answers.csv",
        "deniable privatize survey.json answers.parquet --question smoke --column 'Do you smoke?' -o smoke.parquet",
        "deniable privatize survey.json 'days/*.csv' --ids -o reports/                          a file of reports each",
        "deniable privatize survey.json 'weeks/*.csv' --person id --epoch 1 --state panel.sqlite -o reports/   a panel",
        "deniable privatize survey.json answers.csv --format text -o - | head",
        "deniable privatize survey.json answers.csv -o - | deniable tally survey.json -       an Arrow stream",
    )
)
def privatize(
    survey: About,
    answers: Annotated[
        list[str],
        typer.Argument(
            metavar="ANSWERS...",
            help="CSV with a header, JSON lines, or Parquet; '-' for the first two on standard input. One row per "
            "person, one column per question. Several files, a pattern or a directory go with an output directory.",
            show_default=False,
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where the reports go: a path, a URL (s3://...), or '-' for standard output; a directory, with a "
            "slash at the end, for one file of reports per file of answers.",
            show_default=False,
        ),
    ],
    question: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Only this question; may be repeated.", show_default="all questions"),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ID=]NAME",
            help="The column that answers a question, ID.PART=NAME for a part of a record; may be repeated.",
            show_default="the question's id, or 'answer' for a single protocol",
        ),
    ] = None,
    format: Annotated[
        Format | None,
        typer.Option(
            metavar="FORMAT",
            help="parquet, arrow (a stream) or text (base64url in CSV).",
            show_default="what the name ends in, else Parquet; for '-' an Arrow stream",
        ),
    ] = None,
    as_text: Annotated[bool, typer.Option("--text", help="The same as --format text.")] = False,
    ids: Annotated[
        bool, typer.Option("--ids", help="Give each row 16 random bytes, so that tally --dedupe counts it once.")
    ] = False,
    person: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Who answered. Needed where the survey's people answer in several epochs by a rule that keeps "
            "something (memoize, two-stage, evolving).",
            show_default=False,
        ),
    ] = None,
    epoch: Annotated[
        str | None,
        typer.Option(
            metavar="N|COLUMN",
            help="With --person: the epoch of the first file, from 1; each further file, by the numbers in "
            "the names, is of the next epoch. Or the column that holds the epoch.",
            show_default=False,
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --person: where the state of these people is kept between epochs. It may hold answers: keep it "
            "with them, and do not lose it.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = None,
) -> None:
    """Randomize files of answers: one report per question.

    Reports are drawn from the exact law with cryptographic bits. Rows are streamed, so the file may be larger than the
    memory. A bad answer ends the command: the error names its row and column but not the answer, and no file is left
    behind. Files before it are finished.

    A panel (--person, --epoch, --state) draws as the devices of these people would: once per person where the survey
    says so, from the state that is kept between epochs.
    """
    only_one_stdin(survey, *answers)
    if STDIN in answers:
        refuse_keyboard("name a file of answers, or pipe one in")
    if as_text and format not in (None, Format.text):
        raise SpecError(f"--text and --format {format} exclude each other: choose one")
    chosen = _format(to, Format.text if as_text else format)
    target = read_first(survey, answers, "privatize")
    columns = _columns(target, question, column)
    jobs = _jobs(answers, to, chosen)
    panels = _panels(jobs, person, epoch, state)
    if any(os.path.exists(where) and os.path.exists(survey) and os.path.samefile(where, survey) for _, where in jobs):
        raise SpecError(f"{survey!r} holds the survey: the reports would take its place, name another file")
    bits, rows = bits_from(seed), 0
    try:
        for (source, where), panel in panels:
            place: Any = sys.stdout.buffer if where == STDIN else where
            with progress("randomizing") as advance:
                rows += privatize_file(target, source, place, columns, bits, chosen, advance, ids, panel)
    except BrokenPipeError:
        output.hush()
        raise typer.Exit(output.PIPE_CLOSED) from None
    if to != STDIN:
        place = jobs[0][1] if len(jobs) == 1 else f"{len(jobs)} files in {to}"
        _print(target, questions_of(columns), rows, place, [(source, panel) for (source, _), panel in panels])


def _jobs(answers: list[str], to: str, format: str) -> list[tuple[str, str]]:
    """Each file of answers, with the path of its reports."""
    found = expand(answers)
    for entry in found:
        if isinstance(entry, Refused):
            raise entry.error
    sources = [entry.name for entry in found if not isinstance(entry, Refused)]
    if not to.endswith("/") and not (os.path.isdir(to) and len(sources) > 1):
        if len(sources) > 1:
            raise SpecError(f"{len(sources)} files of answers need a directory for their reports: -o reports/")
        return [(sources[0], to)]
    suffix = {"parquet": ".parquet", "arrow": ".arrow", "text": ".csv"}[format]
    jobs: dict[str, str] = {}
    for source in sources:
        where = f"{to.rstrip('/')}/{'answers' if source == STDIN else PurePath(plain(shown(source))).stem}{suffix}"
        if where in jobs:
            raise SpecError(f"the reports of {jobs[where]!r} and {source!r} would both be {where!r}: rename one")
        jobs[where] = source
    if not is_url(to):
        os.makedirs(to, exist_ok=True)
    return [(source, where) for where, source in jobs.items()]


def _panels(
    jobs: list[tuple[str, str]], person: str | None, epoch: str | None, state: str | None
) -> list[tuple[tuple[str, str], Panel | None]]:
    """Each file with its panel: none, or one epoch after the other."""
    if person is None and epoch is None and state is None:
        return [(job, None) for job in jobs]
    if person is None or epoch is None or state is None:
        raise SpecError("a panel needs --person COLUMN, --epoch N (or a column) and --state FILE, all three")
    if not epoch.isdigit():
        return [(job, Panel(person, state, epoch)) for job in jobs]
    ordered = sorted(jobs, key=lambda job: [int(part) if part.isdigit() else part for part in _DIGITS.split(job[0])])
    return [(job, Panel(person, state, int(epoch) + place)) for place, job in enumerate(ordered)]


def _format(to: str, asked: Format | None) -> str:
    """The requested format, else the one that the file's name implies."""
    if asked is not None:
        return asked.value
    if to != STDIN:
        return format_of(to)
    if sys.stdout.isatty():
        raise SpecError("reports are no text for a terminal: add --format text, name a file, or pipe them on")
    return "arrow"


def _columns(target: Survey, wanted: list[str] | None, given: list[str] | None) -> dict[str, str]:
    """The column that answers each question."""
    known = questions(target)
    for id in wanted or []:
        if id not in known:
            raise LabelError(f"there is no question {id!r}; there are {', '.join(known)}")
    chosen = [id for id in known if not wanted or id in wanted]
    columns = {id: id if target.kind == "survey" else ANSWER for id in chosen}
    for entry in given or []:
        id, equals, name = entry.partition("=")
        whole, dot, _ = id.partition(".")
        if equals and id in columns:
            columns[id] = name
        elif equals and dot and whole in chosen:  # a part of a record, checked when the file is read
            columns.pop(whole, None)
            columns[id] = name
        elif len(chosen) == 1:
            columns[chosen[0]] = entry
        else:
            raise SpecError(
                f"--column {entry!r} does not say for which question: write ID=NAME, or choose a --question"
            )
    return columns


def _print(target: Survey, chosen: list[str], rows: int, to: str, panels: Sequence[tuple[str, Panel | None]]) -> None:
    known = questions(target)
    size = sum(known[id][1].report_bytes for id in chosen)
    facts = [("reports", f"{to}, {output.many(rows, 'row')} of {output.many(size, 'byte')}")]
    panel = panels[0][1]
    if target.terms is not None and panel is not None:
        facts.append(("epsilon", f"{epsilon_text(target.budget_epsilon)} per person, all epochs together"))
        facts.append(("between", target.terms.longitudinal.promise[1]))
        facts.append(("state", str(panel.state)))
        if isinstance(panel.epoch, int):
            facts += [(f"epoch {one.epoch}", shown(source)) for source, one in panels if one is not None]
    else:
        part = target if len(chosen) == len(target) else Survey(target.name, [target[id] for id in chosen])
        facts.append(("epsilon", f"{epsilon_words(part)} per row{between_words(part)}"))
    facts.append((target.kind, target.fingerprint))
    output.facts(facts)

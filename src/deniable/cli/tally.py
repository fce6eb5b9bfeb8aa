"""`deniable tally`: reports and earlier tallies become one tally, on all cores or on a Spark cluster."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deniable.cli import output
from deniable.cli.files import STDIN, only_one_stdin
from deniable.cli.options import examples
from deniable.cli.targets import About, Output, Target, many, progress, read_first, refuse_keyboard
from deniable.errors import ReportError, SpecError
from deniable.protocols import Tally
from deniable.surveys import SurveyTally
from deniable.surveys.whole import whole

if TYPE_CHECKING:
    from deniable.engines import Outcome

EXAMPLES = examples(
    "deniable tally survey.json reports/ -o tally.json                         all files of a directory, all cores",
    "deniable tally survey.json monday.json tuesday.json -o week.json          tallies add up",
    "deniable tally survey.json 's3://bucket/reports/*.parquet' -o tally.json  any filesystem of pyarrow or fsspec",
    "deniable tally survey.json reports/ --resume done.json -o tally.json      go on where a run stopped",
    "deniable tally survey.json reports/ --dedupe -o tally.json                each id once (privatize --ids)",
    "deniable tally survey.json reports/ --engine spark --master spark://host:7077 -o tally.json",
)

SOME_REFUSED = 1

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUTS...",
        help="Files of reports (Parquet, Arrow streams or text) and of tallies (JSON), directories, patterns and URLs, "
        "in any mixture; '-' for standard input.",
        show_default=False,
    ),
]


Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Of the Spark cluster: local[*], spark://host:7077, yarn, or sc://host:15002 for Spark Connect.",
        show_default="what the environment says",
    ),
]
Wheel = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The wheel of deniable, for executors that lack it.", show_default=False),
]


class Engine(StrEnum):
    local = "local"
    spark = "spark"


def tally(
    survey: About,
    inputs: Inputs,
    to: Output = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Processes on this machine.", show_default="one a core")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="MANIFEST",
            help="Keep account of the files that are done in this file, and go on from what it says.",
            show_default=False,
        ),
    ] = None,
    dedupe: Annotated[
        bool,
        typer.Option(
            "--dedupe",
            help="Count one report an id and question, the first. Not with --resume: whether a row counts depends on "
            "the ids in all other files, so all are read again.",
        ),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Write nothing if a file is refused.")] = False,
    engine: Annotated[
        Engine,
        typer.Option(
            metavar="ENGINE",
            help="local, or spark for a cluster, which has no --dedupe and no --resume: count day by day, and add the "
            "tallies.",
        ),
    ] = Engine.local,
    master: Master = None,
    wheel: Wheel = None,
) -> None:
    """Add reports up: what remains is one vector of counts a question, and the reports need not be kept.

    In a directory the survey itself is passed over, and so are tallies beside reports, which they may be the sums of:
    what deniable store export has written is counted once. A tally does not say of which epochs it is: add one of all
    epochs and one of a single epoch, and that epoch counts twice.

    A file that is damaged, or of another survey, is listed with the reason and not counted at all; the others are, and
    the exit code is 1. With --strict, or when no file is left, nothing is written.
    """
    if to is not None and to.suffix == ".parquet":
        raise SpecError(f"a tally is written as JSON: call it {to.with_suffix('.json').name!r}")
    if engine is Engine.local and (master is not None or wheel is not None):
        raise SpecError("--master and --wheel are for a cluster: add --engine spark")
    target = read_first(survey, inputs, "tally")
    inputs = _chosen(target, survey, inputs)
    if engine is Engine.local:
        from deniable.engines import count_files

        try:
            with progress("counting") as advance:
                result = count_files(target, inputs, workers, False, dedupe, resume, advance)
        except (KeyboardInterrupt, SystemExit) as stop:
            for sentence in getattr(stop, "__notes__", []):
                output.note("interrupted", sentence)
            raise
    else:
        if dedupe or resume is not None or workers is not None:
            raise SpecError(
                "--workers, --dedupe and --resume are for the local engine; with Spark, count day by day and add the "
                "tallies, or drop duplicates in a DataFrame (see docs/scale.md)"
            )
        from deniable.engines.spark import connect, count_files_on

        with progress("counting") as advance, connect(master, wheel=wheel) as session:
            result = count_files_on(session, target, inputs)
    _refuse_nothing(result)
    if strict:
        _refuse_some(result, "nothing was written (--strict)")
    _write(result, to)
    _tell(result)
    if result.refused:
        raise typer.Exit(SOME_REFUSED)


def counted(target: Target, survey: str, inputs: list[str]) -> SurveyTally | Tally:
    """The sum of all inputs; one that is refused refuses all, and all that are refused are named."""
    inputs = _chosen(target, survey, inputs)
    from deniable.engines import count_files

    with progress("counting") as advance:
        result = count_files(target, inputs, None, progress=advance)
    _refuse_some(result, "nothing is estimated: deniable tally adds up the others")
    return result.tally


def _chosen(target: Target, survey: str, inputs: list[str]) -> list[str]:
    """The inputs, with what is to be counted instead of directories that hold more than that."""
    only_one_stdin(survey, *inputs)
    if STDIN in inputs:
        refuse_keyboard("name files of reports, or pipe reports or a tally in")
    from deniable.cli.directories import note_mixture, note_twins, within

    note_mixture(inputs)
    chosen = [name for given in inputs for name in (within(target, given) if os.path.isdir(given) else [given])]
    note_twins(chosen)
    return chosen


def _refuse_nothing(result: Outcome) -> None:
    """Where no file was counted there is nothing to write: the first reason is the error."""
    if result.files or not result.refused:
        return
    first, *others = result.refused
    if not others:
        raise first.error
    raise ReportError(f"none of the {len(result.refused)} inputs could be counted; the first, {first.complaint}")


def _refuse_some(result: Outcome, consequence: str) -> None:
    """One bad file is enough, but all are named."""
    if len(result.refused) == 1:
        raise result.refused[0].error
    if result.refused:
        for refusal in result.refused:
            output.note("refused", refusal.complaint)
        raise ReportError(f"{_share(result)} were refused, so that {consequence}")


def _share(result: Outcome) -> str:
    return f"{len(result.refused)} of {result.files + len(result.refused)} inputs"


def _write(result: Outcome, to: Path | None) -> None:
    if to is None:
        output.write(_json(result.tally))
        return
    with whole(to) as file:
        file.write(_json(result.tally).encode())
    tallies = result.tally.tallies if isinstance(result.tally, SurveyTally) else {"report": result.tally}
    output.table(["question", "reports"], [[id, str(tally.n)] for id, tally in tallies.items()])
    if result.resumed:
        output.write(f"\nknown from before: {result.resumed} of {result.files} files")
    output.write(f"\nsaved: {to}\n")


def _tell(result: Outcome) -> None:
    twice = result.duplicates
    if twice is not None and twice.rows:
        output.note("note", f"{many(twice.rows, 'row')} came again under an id that was counted: left out")
    if twice is not None and twice.conflicts:
        output.note(
            "warning",
            f"{many(twice.conflicts, 'id')} came with different reports, of which the first was counted: "
            + ", ".join(twice.examples),
        )
    for refusal in result.refused:
        output.note("not counted", refusal.complaint)
    if result.refused:
        output.note("warning", f"{_share(result)} were not counted")


def _json(result: SurveyTally | Tally) -> str:
    return (
        result.to_json() if isinstance(result, SurveyTally) else json.dumps(result.spec(), separators=(",", ":")) + "\n"
    )

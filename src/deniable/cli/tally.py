"""`deniable tally`: combine reports and earlier tallies into one tally, on all cores or on a Spark cluster."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import output
from deniable.cli.load_survey import read_first
from deniable.cli.options import STDIN, About, Engine, Master, Output, Wheel, new_app, only_one_stdin, refuse_keyboard
from deniable.cli.output import examples, many, progress
from deniable.errors import DeniableError, ReportError, SpecError
from deniable.files import Outcome, count_files
from deniable.files.places import Place, expand
from deniable.files.spark import connect, count_files_on
from deniable.surveys import Survey, SurveyTally

app = new_app()

SOME_REFUSED = 1

# Every document of this project begins with its kind.
_SURVEY = re.compile(rb'\s*\{\s*"kind"\s*:\s*"survey"')

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUTS...",
        help="Files of reports (Parquet, Arrow streams or text) and of tallies (JSON), directories, patterns and URLs, "
        "in any mixture; '-' for standard input.",
        show_default=False,
    ),
]


@app.command(
    epilog=examples(
        "deniable tally survey.json reports/ -o tally.json                         all files of a directory, all cores",
        "deniable tally survey.json monday.json tuesday.json -o week.json          tallies add up",
        "deniable tally survey.json 's3://bucket/reports/*.parquet' -o tally.json  any filesystem of pyarrow or fsspec",
        "deniable tally survey.json reports/ --resume done.json -o tally.json      go on where a run stopped",
        "deniable tally survey.json reports/ --dedupe -o tally.json                each id once (privatize --ids)",
        "deniable tally survey.json reports/ --engine spark --master spark://host:7077 -o tally.json",
    )
)
def tally(
    survey: About,
    inputs: Inputs,
    to: Output = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Processes on this machine.", show_default="one per core")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="MANIFEST",
            help="Note finished files in this file, and skip those that it notes.",
            show_default=False,
        ),
    ] = None,
    dedupe: Annotated[
        bool,
        typer.Option(
            "--dedupe",
            help="Count one report per id and question; of different ones, the smallest. Not with --resume: whether a "
            "row counts depends on the ids in all other files, so all are read again.",
        ),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Write nothing if a file is refused.")] = False,
    engine: Annotated[
        Engine,
        typer.Option(
            metavar="ENGINE",
            help="local, or spark for a cluster, which has no --resume: count day by day, and add the tallies.",
        ),
    ] = Engine.local,
    master: Master = None,
    wheel: Wheel = None,
) -> None:
    """Add up reports and tallies, on all cores or on a cluster.

    What remains is one vector of counts per question; the reports need not be kept. Every file that is named is
    counted, and so is every file of a directory, but for the survey itself. A tally does not say which reports it is
    the sum of: counted beside these reports, it counts them a second time.

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
        try:
            with progress("counting") as advance:
                result = count_files(target, inputs, workers, False, dedupe, resume, advance)
        except (KeyboardInterrupt, SystemExit) as stop:
            for sentence in getattr(stop, "__notes__", []):
                output.note("interrupted", sentence)
            raise
    else:
        if resume is not None or workers is not None:
            raise SpecError(
                "--workers and --resume are for the local engine; with Spark, count day by day and add the tallies"
            )
        with progress("counting") as advance, connect(master, wheel=wheel) as session:
            result = count_files_on(session, target, inputs, dedupe=dedupe)
    _refuse_nothing(result)
    if strict:
        _refuse_some(result, "nothing was written (--strict)")
    _write(result, to)
    _tell(result)
    if result.refused:
        raise typer.Exit(SOME_REFUSED)


def counted(target: Survey, survey: str, inputs: list[str]) -> SurveyTally:
    """The sum of all inputs. Raises an error that names every refused input."""
    inputs = _chosen(target, survey, inputs)
    with progress("counting") as advance:
        result = count_files(target, inputs, None, progress=advance)
    _refuse_some(result, "nothing is estimated: deniable tally adds up the others")
    return result.tally


def _chosen(target: Survey, survey: str, inputs: list[str]) -> list[str]:
    """The inputs; a directory that contains the survey is replaced by its other files."""
    only_one_stdin(survey, *inputs)
    if STDIN in inputs:
        refuse_keyboard("name files of reports, or pipe reports or a tally in")
    return [name for given in inputs for name in (_within(target, given) if os.path.isdir(given) else [given])]


def _refuse_nothing(result: Outcome) -> None:
    """Raise an error if no file was counted, with the first reason."""
    if result.files or not result.refused:
        return
    first, *others = result.refused
    if not others:
        raise first.error
    raise ReportError(f"none of the {len(result.refused)} inputs could be counted; the first, {first.complaint}")


def _refuse_some(result: Outcome, consequence: str) -> None:
    """Raise an error if a file was refused, and name all of them."""
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
        output.write(result.tally.to_json())
        return
    result.tally.save(to)
    output.table(["question", "reports"], [[id, str(tally.n)] for id, tally in result.tally.tallies.items()])
    output.write(f"\ncounted: {_contents(result)}")
    if result.resumed:
        output.write(f"\nknown from before: {result.resumed} of {result.files} files")
    output.write(f"\nsaved: {to}\n")


def _contents(result: Outcome) -> str:
    """What was counted: "2 files of reports (600 rows) and 1 tally (of 300 reports)"."""
    reports, parts = result.files - result.tallies, []
    if reports or not result.tallies:
        parts.append(f"{many(reports, 'file')} of reports ({many(result.rows - result.summed, 'row')})")
    if result.tallies:
        name = "1 tally" if result.tallies == 1 else f"{result.tallies} tallies"
        parts.append(f"{name} (of {many(result.summed, 'report')})")
    return " and ".join(parts)


def _tell(result: Outcome) -> None:
    twice = result.duplicates
    if twice is not None and twice.rows:
        output.note("note", f"{many(twice.rows, 'row')} came again under an id that was counted: left out")
    if twice is not None and twice.conflicts:
        output.note(
            "warning",
            f"{many(twice.conflicts, 'id')} came with different reports, of which the smallest was counted: "
            + ", ".join(twice.examples),
        )
    for refusal in result.refused:
        output.note("not counted", refusal.complaint)
    if result.refused:
        output.note("warning", f"{_share(result)} were not counted")


# -- directories ---------------------------------------------------------------------------------------


def _within(target: Survey, directory: str) -> list[str]:
    """The files of a directory without the survey that is counted; the directory itself if the survey is not in it."""
    names = [place.name for place in expand([directory]) if isinstance(place, Place)]
    chosen = [name for name in names if not _is_survey(target, name)]
    return chosen if chosen and len(chosen) < len(names) else [directory]


def _is_survey(target: Survey, name: str) -> bool:
    # A pipe can be read only once, by the reader that counts it.
    if not name.endswith(".json") or not os.path.isfile(name):
        return False
    try:
        with open(name, "rb") as file:
            if not _SURVEY.match(file.read(256)):
                return False
        return Survey.load(name).fingerprint == target.fingerprint
    except (OSError, DeniableError):
        return False  # counting raises the error with the reason

"""`deniable tally`: reports and earlier tallies become one tally, on all cores or on a Spark cluster.

A directory may be an export, with the survey and sums of the reports beside the reports:

Passed over   the survey that is counted, in silence; tallies beside reports, with a note, because they may be sums of
              the same reports. A tally that is named is added
Noted         a tally that is named beside reports, or given twice. That one is the sum of others cannot be seen: a
              tally does not say of which epochs it is
Left in       everything else, to be counted or refused with a reason
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from deniable._files import atomic_write
from deniable.cli import output
from deniable.cli.load_survey import Target, read_first
from deniable.cli.options import About, Engine, Master, Output, Wheel, new_app
from deniable.cli.output import examples, many
from deniable.cli.progress import progress
from deniable.cli.read_files import STDIN, only_one_stdin, refuse_keyboard
from deniable.errors import DeniableError, ReportError, SpecError
from deniable.files import Outcome, count_files
from deniable.files.places import Place, expand, is_url
from deniable.files.spark import connect, count_files_on
from deniable.protocols import Tally
from deniable.surveys import Survey, SurveyTally

app = new_app()

SOME_REFUSED = 1

# Every document of this project begins with its kind.
_KIND = re.compile(rb'\s*\{\s*"kind"\s*:\s*"([a-z-]+)"')
_TALLIES = (b"tally", b"survey-tally")
_REPORTS = (b"PAR1", b"\xff\xff\xff\xff", b"# deniable reports")

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
            help="Keep account of the files that are done in this file, and go on from what it says.",
            show_default=False,
        ),
    ] = None,
    dedupe: Annotated[
        bool,
        typer.Option(
            "--dedupe",
            help="Count one report per id and question, the first. Not with --resume: whether a row counts depends on "
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
    """Add reports up: what remains is one vector of counts per question, and the reports need not be kept.

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
    with progress("counting") as advance:
        result = count_files(target, inputs, None, progress=advance)
    _refuse_some(result, "nothing is estimated: deniable tally adds up the others")
    return result.tally


def _chosen(target: Target, survey: str, inputs: list[str]) -> list[str]:
    """The inputs, with what is to be counted instead of directories that hold more than that."""
    only_one_stdin(survey, *inputs)
    if STDIN in inputs:
        refuse_keyboard("name files of reports, or pipe reports or a tally in")
    _note_mixture(inputs)
    chosen = [name for given in inputs for name in (_within(target, given) if os.path.isdir(given) else [given])]
    _note_twins(chosen)
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
    with atomic_write(to) as file:
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


# -- directories ---------------------------------------------------------------------------------------


def _within(target: Target, directory: str) -> list[str]:
    """The files of a directory that are to be counted; the directory itself if it is as good."""
    places = [place for place in expand([directory]) if isinstance(place, Place)]
    names = [place.name for place in places]
    # A pipe can be read only once, and by whoever counts.
    files = [place.name for place in places if not place.once]
    kinds = {name: _kind(name) for name in files if name.endswith(".json")}
    tallies = [name for name, kind in kinds.items() if kind in _TALLIES]
    if tallies and any(_head(name).startswith(_REPORTS) for name in files if name not in kinds):
        some = repr(tallies[0]) if len(tallies) == 1 else f"{tallies[0]!r} and {len(tallies) - 1} more"
        output.note("note", f"not added, because beside reports a tally may be their sum: {some} (name it to add it)")
    else:
        tallies = []
    passed = {*tallies, *(name for name, kind in kinds.items() if kind == b"survey" and _same(target, name))}
    chosen = [name for name in names if name not in passed]
    return chosen if passed and chosen else [directory]


def _note_twins(inputs: list[str]) -> None:
    """Point out tallies of the same content: most likely one that was given twice. What is remote is not looked at."""
    seen: dict[tuple[int | None, bytes], str] = {}
    named = [place for place in expand(filter(os.path.exists, inputs)) if isinstance(place, Place)]
    places = [place for place in named if place.name.endswith(".json") and not place.once]
    sizes = Counter(place.size for place in places)
    for place in places:
        if sizes[place.size] > 1 and _kind(place.name) in _TALLIES:
            content = Path(place.name).read_bytes()
            key = place.size, hashlib.sha256(content).digest()
            # Tallies of nothing are all the same.
            if key in seen and re.search(rb'"n"\s*:\s*[1-9]', content):
                output.note("note", f"{place.name!r} is the same tally as {seen[key]!r}, and counted as well")
            seen.setdefault(key, place.name)


def _note_mixture(inputs: list[str]) -> None:
    """Whoever names a tally beside reports may mean to add it, or may have forgotten what it is the sum of."""
    named = [name for name in inputs if name != STDIN and os.path.isfile(name)]
    tallies = [name for name in named if _kind(name) in _TALLIES]
    if not tallies:
        return
    reports = any(
        is_url(place.name) or _head(place.name).startswith(_REPORTS)
        for given in inputs
        if given not in tallies and given != STDIN
        for place in ([Place(given)] if is_url(given) else expand([given]))
        if isinstance(place, Place)
    )
    if reports:
        some = ", ".join(map(repr, tallies[:3])) + (", ..." if len(tallies) > 3 else "")
        output.note("note", f"tallies are added to reports ({some}): reports that such a sum holds are counted twice")


def _head(name: str) -> bytes:
    try:
        with open(name, "rb") as file:
            return file.read(256)
    except OSError:
        return b""  # counting will say what is wrong


def _kind(name: str) -> bytes:
    found = _KIND.match(_head(name))
    return found[1] if found else b""


def _same(target: Target, name: str) -> bool:
    try:
        return isinstance(target, Survey) and Survey.load(name).fingerprint == target.fingerprint
    except (OSError, DeniableError):
        return False

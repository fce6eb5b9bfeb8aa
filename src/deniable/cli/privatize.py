"""`deniable privatize`: a file of answers becomes a file of reports."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.cli import output
from deniable.cli.files import STDIN, only_one_stdin
from deniable.cli.options import Seed, examples
from deniable.cli.reports import bits_from
from deniable.cli.targets import About, Target, level, progress, questions, read_target, refuse_keyboard
from deniable.errors import LabelError, SpecError
from deniable.surveys import Survey

EXAMPLES = examples(
    "deniable privatize survey.json answers.csv -o reports.parquet",
    "deniable privatize survey.json - -o reports.parquet < answers.csv",
    "deniable privatize survey.json answers.parquet --question smoke --column 'Do you smoke?' -o smoke.parquet",
    "deniable privatize survey.json answers.csv --text -o - | head",
)

ANSWER = "answer"


def privatize(
    survey: About,
    answers: Annotated[
        str,
        typer.Argument(
            metavar="ANSWERS",
            help="CSV with a header, or Parquet; '-' for CSV on standard input. One row a person, a column a question.",
            show_default=False,
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where the reports go; '-' for standard output, with --text.",
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
            help="The column that answers a question; may be repeated.",
            show_default="the question's id, or 'answer' for a single protocol",
        ),
    ] = None,
    as_text: Annotated[bool, typer.Option("--text", help="Write text (base64url in CSV) instead of Parquet.")] = False,
    seed: Seed = None,
) -> None:
    """Randomize answers: one report a person and question, drawn from the exact law with cryptographic bits.

    Rows are streamed, so the file may be larger than the memory. A bad answer ends the command; its row and column are
    named, the answer is not, and no file is left behind.
    """
    only_one_stdin(survey, answers)
    if answers == STDIN:
        refuse_keyboard("name a file of answers, or pipe one in")
    # A name that promises text gets text.
    as_text = as_text or Path(to).suffix.lower() in (".csv", ".txt")
    if to == STDIN and not as_text:
        raise SpecError("reports go to standard output as text only: add --text, or name a file")
    target = read_target(survey)
    columns = _columns(target, question, column)
    from deniable.engines import privatize_file

    bits = bits_from(seed)
    where: Any = sys.stdout.buffer if to == STDIN else Path(to)
    try:
        with progress("randomizing") as advance:
            rows = privatize_file(target, answers, where, columns, bits, as_text, advance)
    except BrokenPipeError:
        output.hush()
        raise typer.Exit(output.PIPE_CLOSED) from None
    if to != STDIN:
        _print(target, list(columns), rows, to)


def _columns(target: Target, wanted: list[str] | None, given: list[str] | None) -> dict[str, str]:
    """Which column answers which question."""
    known = questions(target)
    for id in wanted or []:
        if id not in known:
            raise LabelError(f"there is no question {id!r}; there are {', '.join(known)}")
    chosen = [id for id in known if not wanted or id in wanted]
    columns = {id: id if isinstance(target, Survey) else ANSWER for id in chosen}
    for entry in given or []:
        id, equals, name = entry.partition("=")
        if equals and id in columns:
            columns[id] = name
        elif len(chosen) == 1:
            columns[chosen[0]] = entry
        else:
            raise SpecError(
                f"--column {entry!r} does not say for which question: write ID=NAME, or choose a --question"
            )
    return columns


def _print(target: Target, chosen: list[str], rows: int, to: str) -> None:
    known = questions(target)
    size = sum(known[id][1].report_bytes for id in chosen)
    facts = [("reports", f"{to}, {rows} rows of {size} bytes")]
    if isinstance(target, Survey):
        part = Survey(target.name, [target[id] for id in chosen])
        facts.append(("epsilon", f"{level(part.epsilon, part.realized_epsilon)} a row"))
        facts.append(("survey", target.fingerprint))
    else:
        facts.append(("epsilon", f"{level(target.epsilon, target.realized_epsilon)} a row"))
        facts.append(("protocol", target.fingerprint))
    output.facts(facts)

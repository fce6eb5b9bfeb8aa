"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable.errors import SpecError

Source = Annotated[
    str,
    typer.Argument(
        metavar="CHANNEL",
        help="A file (JSON or CSV), '-' for standard input, or a closed form such as coin or warner:epsilon=1.",
        show_default=False,
    ),
]
All = Annotated[bool, typer.Option("--all", help="Show every row and column of a large matrix.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw a picture (.png, .svg, .pdf).", show_default=False),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", metavar="N", help="Repeatable bits, for simulations only: they protect nobody.", show_default=False
    ),
]
AdminToken = Annotated[
    str | None,
    typer.Option(
        "--token", metavar="TOKEN", envvar="DENIABLE_TOKEN", help="An admin's token.", show_default="$DENIABLE_TOKEN"
    ),
]
AnalystToken = Annotated[
    str | None,
    typer.Option(
        "--token", metavar="TOKEN", envvar="DENIABLE_TOKEN", help="An analyst's token.", show_default="$DENIABLE_TOKEN"
    ),
]


def examples(*lines: str) -> str:
    """The end of a command's help. The backspace tells the formatter to keep the lines as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def one_format(as_json: bool, as_csv: bool) -> None:
    if as_json and as_csv:
        raise SpecError("--json and --csv exclude each other: choose one")

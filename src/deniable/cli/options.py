"""What several commands take: arguments, options, and the text of files.

Text       a whole file or standard input ("-"), UTF-8, at most 256 MiB, with one clear sentence for what may be wrong
Format     JSON if the text begins with { or [, else CSV
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.cli import output
from deniable.errors import SpecError
from deniable.randomness import Bits, Secure, Simulation


def new_app() -> typer.Typer:
    """What the module of a command calls `app`: one command, or a callback and the commands of a group."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, invoke_without_command=True)


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
Formulas = Annotated[
    bool,
    typer.Option(
        "--formulas",
        help="In CSV, put no ' before text that a spreadsheet would run: that begins with =, +, - or @.",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw a picture (.png, .svg, .pdf).", show_default=False),
]
Record = Annotated[
    str | None,
    typer.Option(
        "--record",
        metavar="FILE|JSON",
        help='The parts of a record, as in a draft: {"smoke": ["yes", "no"], "age": {"low": 18, "high": 99}}.',
        show_default=False,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", metavar="N", help="Repeatable bits, for simulations only: they protect nobody.", show_default=False
    ),
]
About = Annotated[
    str,
    typer.Argument(
        metavar="SURVEY", help="A survey file (or the spec of a single protocol), in JSON.", show_default=False
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="Where the result goes.", show_default="standard output"),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        metavar="FILE",
        envvar="DENIABLE_LEDGER",
        help="This device's ledger, one for all surveys.",
        show_default="in the user's data directory",
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


def _token(ctx: typer.Context, param: typer.CallbackParam, value: str | None) -> str | None:
    """A token from the environment, or from the file that the option names."""
    source = ctx.get_parameter_source(param.name or "")
    if value is None or source is None or source.name != "COMMANDLINE":
        return value
    if value.startswith("dn_"):
        raise SpecError(
            "--token-file takes a file that holds the token, not the token itself: everybody on this machine can read "
            "a command line. Put the token in a file, or in the variable DENIABLE_TOKEN"
        )
    return read_text(value).strip()


def _token_of(whom: str, variable: str = "DENIABLE_TOKEN") -> Any:
    return typer.Option(
        "--token-file",
        metavar="FILE",
        envvar=variable,
        callback=_token,
        show_envvar=False,
        help=f"A file that holds {whom} token; '-' is standard input.",
        show_default=f"the token in ${variable}",
    )


AdminToken = Annotated[str | None, _token_of("an admin's")]
AnalystToken = Annotated[str | None, _token_of("an analyst's")]
IngestToken = Annotated[str | None, _token_of("an ingest", "DENIABLE_INGEST_TOKEN")]
"""Tokens are never arguments, because other users of a machine can read its command lines. A device does not send the
token of an analyst who happens to answer on the same machine."""


def one_format(as_json: bool, as_csv: bool) -> None:
    if as_json and as_csv:
        raise SpecError("--json and --csv exclude each other: choose one")


def bits_from(seed: int | None) -> Bits:
    """Secure bits, or a simulation's with a warning."""
    if seed is None:
        return Secure()
    output.note("warning", "--seed makes a simulation: whoever knows the seed can undo the noise")
    return Simulation(seed)


# -- the text of a file or of standard input ----------------------------------------------------------


MOST_BYTES = 1 << 28
STDIN = "-"


def read_text(source: str) -> str:
    """A whole file, or standard input for "-"."""
    where = named(source)
    if source == STDIN:
        stream = getattr(sys.stdin, "buffer", None)
        raw = sys.stdin.read(MOST_BYTES + 1).encode() if stream is None else stream.read(MOST_BYTES + 1)
    else:
        with open(source, "rb") as file:
            raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise SpecError(f"{where} holds more than {MOST_BYTES >> 20} MiB: that is too much to read at once")
    try:
        content = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(f"{where} is not UTF-8 text: save it as UTF-8, or give another file") from None
    if "\0" in content:
        raise SpecError(f"{where} is not text: it holds zero bytes")
    if not content.strip():
        raise SpecError(f"{where} is empty")
    return content


def named(source: str) -> str:
    """What messages call a source."""
    return "standard input" if source == STDIN else repr(source)


def only_one_stdin(*sources: str | None) -> None:
    """Refuse standard input in two places."""
    if sources.count(STDIN) > 1:
        raise SpecError('standard input can be read once only: give "-" in one place and a file in the other')


def refuse_keyboard(instead: str) -> None:
    """Standard input that is a keyboard is not waited for; `instead` says what to do."""
    if sys.stdin.isatty():
        raise SpecError(f"there is nothing to read: {instead}")


def is_json(content: str) -> bool:
    """Whether a text is to be read as JSON, by how it begins."""
    return content.lstrip()[:1] in ("{", "[")


VARIABLES = (
    "DENIABLE_DEBUG",
    "DENIABLE_LEDGER",
    "DENIABLE_RELAY_TOKEN",
    "DENIABLE_STORE",
    "DENIABLE_STORE_PASSWORD_FILE",
    "DENIABLE_TOKEN",
)
"""What commands read from the environment, beside the settings of `deniable serve`."""


def refuse_unknown_variables(settings: Iterable[str]) -> None:
    """Refuse variables that are meant for deniable and that it does not read: a service would run without them."""
    known = {*VARIABLES, *settings}
    for name in sorted(os.environ):
        if name.startswith("DENIABLE_") and name not in known:
            near = difflib.get_close_matches(name, known, 1)
            meant = f"; is {near[0]} meant?" if near else ""
            raise SpecError(f"the environment has {name}, which is no setting of deniable{meant}")

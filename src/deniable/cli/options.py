"""What several commands share: arguments, options, and reading text from files.

Text       a whole file or standard input ("-"), UTF-8, at most 256 MiB, with one clear sentence per possible error
Format     JSON if the text begins with { or [, else CSV
"""

from __future__ import annotations

import difflib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.cli import output
from deniable.errors import DeniableError, SpecError
from deniable.randomness import Bits, Secure, Simulation
from deniable.words import LANGUAGES


def new_app() -> typer.Typer:
    """The `app` of a command's module: one command, or a callback and the commands of a group."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, invoke_without_command=True)


def with_options(
    run: Callable[..., None],
    own: Callable[..., Any],
    before: dict[str, Any] | None = None,
    after: dict[str, tuple[Any, Any]] | None = None,
) -> Callable[..., None]:
    """A command that calls `run` with the parameters of `own`, arguments before them and options after them.

    Args:
        run: Called with all of them by name.
        own: The function that declares parameters of its own.
        before: Types of the arguments before these.
        after: Type and default of each option after these.
    """

    def command(**given: Any) -> None:
        run(**given)

    signature = inspect.signature(own, eval_str=True)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    first = [inspect.Parameter(name, kind, annotation=type_) for name, type_ in (before or {}).items()]
    last = [
        inspect.Parameter(name, kind, annotation=type_, default=default)
        for name, (type_, default) in (after or {}).items()
    ]
    parameters = [*first, *signature.parameters.values(), *last]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return command


def option(metavar: str, words: str, *names: str, default: str | bool = False, **more: Any) -> Any:
    """An option that takes a value. The help shows the `default`; True means that of the function."""
    return typer.Option(*names, metavar=metavar, help=words, show_default=default, **more)


def argument(metavar: str, words: str, default: str | bool = False, **more: Any) -> Any:
    """The same for an argument."""
    return typer.Argument(metavar=metavar, help=words, show_default=default, **more)


Source = Annotated[
    str,
    argument(
        "CHANNEL", "A file (JSON or CSV), '-' for standard input, or a closed form such as coin or warner:epsilon=1."
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
Plot = Annotated[Path | None, option("FILE", "Draw a picture (.png, .svg, .pdf).", "--plot")]
Record = Annotated[
    str | None,
    option(
        "FILE|JSON",
        'The parts of a record, as in a draft: {"smoke": ["yes", "no"], "age": {"low": 18, "high": 99}}.',
        "--record",
    ),
]
Seed = Annotated[int | None, option("N", "Repeatable bits, for simulations only: they protect nobody.", "--seed")]
About = Annotated[str, argument("SURVEY", "A survey file (or the spec of a single protocol), in JSON.")]
Language = Annotated[
    str,
    option(
        "LANGUAGE",
        f"What respondents read is in this language: {', '.join(LANGUAGES)}.",
        default=True,
        callback=lambda given: _language(given),
    ),
]
Output = Annotated[Path | None, option("FILE", "Where the result goes.", "-o", "--output", default="standard output")]
LedgerFile = Annotated[
    Path | None,
    option(
        "FILE",
        "This device's ledger, one for all surveys.",
        "--ledger",
        default="in the user's data directory",
        envvar="DENIABLE_LEDGER",
    ),
]
Master = Annotated[
    str | None,
    option(
        "URL",
        "Address of the Spark cluster: local[*], spark://host:7077, yarn, or sc://host:15002 for Spark Connect.",
        default="what the environment says",
    ),
]
Wheel = Annotated[Path | None, option("FILE", "The wheel of deniable, for executors that lack it.")]


def _language(given: str) -> str:
    if given not in LANGUAGES:
        raise SpecError(f"there are no texts in {given!r}: choose {' or '.join(LANGUAGES)}")
    return given


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
    """Secure bits, or those of a simulation with a warning."""
    if seed is None:
        return Secure()
    output.note("warning", "--seed makes a simulation: anyone who knows the seed can undo the noise")
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
    """The name of a source in messages."""
    return "standard input" if source == STDIN else repr(source)


@contextmanager
def errors_in(where: str) -> Iterator[None]:
    """Begin the message of every error with where it was found."""
    try:
        yield
    except DeniableError as wrong:
        raise type(wrong)(f"{where}: {wrong}") from None


def only_one_stdin(*sources: str | None) -> None:
    """Refuse standard input in two places."""
    if sources.count(STDIN) > 1:
        raise SpecError('standard input can be read once only: give "-" in one place and a file in the other')


def refuse_keyboard(instead: str) -> None:
    """Refuse to wait for standard input from a keyboard; `instead` says what to do."""
    if sys.stdin.isatty():
        raise SpecError(f"there is nothing to read: {instead}")


def is_json(content: str) -> bool:
    """Whether to read a text as JSON, by its beginning."""
    return content.lstrip()[:1] in ("{", "[")


VARIABLES = (
    "DENIABLE_DEBUG",
    "DENIABLE_LEDGER",
    "DENIABLE_RELAY_TOKEN",
    "DENIABLE_STORE",
    "DENIABLE_STORE_PASSWORD_FILE",
    "DENIABLE_TOKEN",
)
"""Environment variables that commands read, besides the settings of `deniable serve`."""


def refuse_unknown_variables(settings: Iterable[str]) -> None:
    """Refuse variables for deniable that it does not read: a service would run without these settings."""
    known = {*VARIABLES, *settings}
    for name in sorted(os.environ):
        if name.startswith("DENIABLE_") and name not in known:
            near = difflib.get_close_matches(name, known, 1)
            meant = f"; is {near[0]} meant?" if near else ""
            raise SpecError(f"the environment has {name}, which is not a setting of deniable{meant}")

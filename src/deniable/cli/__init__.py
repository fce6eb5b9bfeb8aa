"""The `deniable` command.

Commands   in five panels; one module per command, named like it, with its Typer `app`, loaded when it is called
Output     tables on a terminal, plain text in a pipe, one JSON document with --json
Errors     one line on standard error, never a traceback; DENIABLE_DEBUG=1 adds it
Exit code  0 done, 1 the claim is false or the work incomplete, 2 bad input or usage, 3 an audit that cannot decide,
           70 a bug, 75 waits to be sent,
           130 and 143 interrupted, 141 pipe closed
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast
from warnings import catch_warnings, simplefilter

import typer
from typer.core import TyperGroup
from typer.main import get_command

import deniable
from deniable._extras import KINDS, load_plugins
from deniable.cli import output
from deniable.errors import DeniableError, IgnoredColumns, InternalError

__all__ = ["app", "main"]

BAD_INPUT, BUG, INTERRUPTED = 2, 70, 130
KINDS_OPTION = "--kinds"

# In the order of --help, each with the first sentence of its own help, which fits into 80 columns there.
PANELS = {
    "plan": {
        "plan": "Compare the protocols for a question, and choose one.",
        "survey": "Make, check, compare and publish surveys and their rounds.",
        "risk": "Show what attackers, forgers and the analyst gain.",
        "simulate": "Repeat collections with made-up people; measure errors.",
    },
    "collect": {
        "demo": "Collect a real survey on this machine, as an example.",
        "answer": "Answer a survey: randomize, record, and only then send.",
        "ledger": "Show what this device sent and spent; opt out, withdraw.",
        "telemetry": "Explain what an application collects, and whether it would.",
        "privatize": "Randomize files of answers: one report per question.",
        "tally": "Add up reports and tallies, on all cores or on a cluster.",
        "serve": "Collect reports over HTTP, add them up, answer analysts.",
        "relay": "Mix sealed submissions on their way to the collector.",
        "store": "Check, copy, export and delete what the service keeps.",
    },
    "analyse": {
        "estimate": "Estimate how common each answer is, with error bars.",
        "test": "Test hypotheses, shares, a mean or groups, with p-values.",
        "synthesize": "Draw synthetic records from a model of the reports.",
    },
    "verify": {
        "audit": "Check the epsilon of a survey, a protocol or a program.",
        "dossier": "Write one page about a survey that a reviewer can sign.",
        "conformance": "Check that the code of protocols keeps their promises.",
    },
    "research": {
        "channel": "Show, check, sample and invert mechanisms as matrices.",
        "design": "Compute optimal mechanisms, each with a certificate.",
        "graph": "Estimate figures of a graph under local edge privacy.",
    },
}
COMMANDS = {name: sentence for panel in PANELS.values() for name, sentence in panel.items()}

# Modules whose commands join those of a group. One with a callback is a group within it.
PARTS = {
    "survey": ("rounds", "shares", "cells"),
    "relay": ("shuffle",),
    "store": ("token",),
}


@cache
def _load(name: str) -> Any:
    """The command of this name, from its module."""
    command: Any = get_command(import_module(f"deniable.cli.{name}").app)
    for module in PARTS.get(name, ()):
        part = import_module(f"deniable.cli.{module}").app
        made: Any = get_command(part)
        if part.registered_callback is not None:
            command.commands[module] = made
        else:
            command.commands |= getattr(made, "commands", {made.name: made})
    if not gc.isenabled():
        gc.freeze()  # loaded objects stay: later collections skip them, which saves about a sixth of a start
        gc.enable()
    return command


class _Modules(Mapping[str, Any]):
    """The commands by name, each loaded when it is needed."""

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            raise KeyError(name)
        return _load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Guarded(TyperGroup):
    """The group of all commands: loads the one that is called, and turns exceptions into one line and an exit code."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = cast(Any, _Modules())

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The panels in --help, from the table: no command is loaded for it."""
        width = max(map(len, COMMANDS))
        for panel, listed in PANELS.items():
            with formatter.section(panel.capitalize()):
                formatter.write_dl([(name.ljust(width), sentence) for name, sentence in listed.items()])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Options of all commands come first, wherever they stand: a command does not know them."""
        rest, kinds = list(args), []
        while KINDS_OPTION in rest[:-1]:
            place = rest.index(KINDS_OPTION)
            kinds += rest[place : place + 2]
            del rest[place : place + 2]
        return super().parse_args(ctx, [*kinds, *rest])

    def main(self, *args: Any, **extra: Any) -> Any:
        extra["standalone_mode"] = False
        sys.exit(_guard(lambda: super(_Guarded, self).main(*args, **extra)))


def _guard(command: Callable[[], Any]) -> int:
    """Run a command and return its exit code."""
    try:
        with output.long_integers(), catch_warnings():
            simplefilter("always", IgnoredColumns)
            warnings.showwarning = _noted
            result = command()
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except BrokenPipeError:
        output.hush()
        return output.PIPE_CLOSED
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("DENIABLE_DEBUG") == "1":
            traceback.print_exc()
        message, code = _explained(error)
        output.note("error", message)
        _flush_or_hush()
        return code


def _noted(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
    """A warning as a note, without the place in the code."""
    output.note("note", str(message))


def _flush_or_hush() -> None:
    """Flush standard output. Drop what a full disk refuses: Python would try again at exit, with a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        output.hush()


def _explained(error: Exception) -> tuple[str, int]:
    """The message and the exit code for an exception."""
    if isinstance(error, DeniableError) and not isinstance(error, InternalError):
        return str(error), BAD_INPUT
    if isinstance(error, OSError):
        where = f"{error.filename!r}: " if error.filename else ""
        return f"{where}{error.strerror or error}", BAD_INPUT
    if isinstance(error, MemoryError):
        return "there is not enough memory for this", BAD_INPUT
    # Typer's own usage errors; their class lives in different places in different versions.
    explain, context = getattr(error, "format_message", None), getattr(error, "ctx", None)
    if explain is not None:
        path = context.command_path if context is not None else "deniable"
        return f"{explain().rstrip('.')} (see {path} --help)", BAD_INPUT
    kind = f"{type(error).__name__}: {error}" if isinstance(error, InternalError) else type(error).__name__
    return (
        f"unexpected {kind}, which is a bug: please report it with the command that you ran; "
        "DENIABLE_DEBUG=1 shows where it happened"
    ), BUG


app = typer.Typer(
    name="deniable",
    cls=_Guarded,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        output.write(f"deniable {deniable.__version__}\n")
        raise typer.Exit


@app.callback(
    epilog=output.examples(
        "deniable demo                                          the whole path, on a real survey",
        "deniable plan --categories 9 --epsilon 1 --people 5000 which protocol, and how exact it will be",
        "deniable survey new draft.json -o survey.json          questions with their protocols",
        "deniable privatize survey.json answers.csv -o reports.parquet",
        "deniable tally survey.json reports.parquet -o tally.json",
        "deniable estimate survey.json tally.json               what the crowd thinks, with error bars",
        "deniable serve --store sqlite:///collect.db            collect answers over HTTP",
        "deniable channel show coin                             a mechanism, its law and its level",
        "deniable channel epsilon matrix.csv --at-most 1        check a claim exactly",
        "deniable channel infer coin yes=620,no=380             the same from counts of noisy answers",
    )
)
def _command(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    kinds: Annotated[
        list[Path] | None,
        typer.Option(
            KINDS_OPTION,
            metavar="FILE",
            help="A Python file that defines protocols; for any command, may be repeated. The variable DENIABLE_KINDS "
            "does the same.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Learn what a crowd thinks without learning what anyone said."""
    if kinds:
        known = filter(None, os.environ.get(KINDS, "").split(os.pathsep))
        os.environ[KINDS] = os.pathsep.join(dict.fromkeys([*known, *(str(one.absolute()) for one in kinds)]))
        load_plugins.cache_clear()
        load_plugins()
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


def main() -> None:
    """The entry point of the installed command."""
    # Matrices here are small: the threads of a linear algebra library would wait for each other, on a busy machine for
    # tens of times as long as the work takes.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()  # nothing becomes garbage while modules are loaded, and searching for it takes a twentieth of a start
    for stream in (sys.stdout, sys.stderr):
        # A label that the terminal's encoding lacks is written as an escape instead of ending the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="deniable")

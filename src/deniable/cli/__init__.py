"""The `deniable` command.

Output     tables on a terminal, plain text in a pipe, one JSON document with --json
Errors     one line on standard error, never a traceback; DENIABLE_DEBUG=1 adds it
Exit code  0 done, 1 what was asked is false or not whole, 2 bad input or usage, 70 a bug, 75 waits to be sent,
           130 and 143 interrupted, 141 pipe closed
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import deniable
from deniable.cli import (
    answer,
    channel,
    demo,
    design,
    estimate,
    ledger,
    output,
    plan,
    privatize,
    serve,
    simulate,
    store,
    story,
    survey,
    tally,
    token,
)
from deniable.cli.options import examples
from deniable.errors import DeniableError, InternalError

__all__ = ["app", "main"]

BAD_INPUT, BUG, INTERRUPTED = 2, 70, 130


class _Guarded(TyperGroup):
    """A command group that turns every exception into one line and an exit code."""

    def main(self, *args: Any, **extra: Any) -> Any:
        extra["standalone_mode"] = False
        sys.exit(_guard(lambda: super(_Guarded, self).main(*args, **extra)))


def _guard(command: Callable[[], Any]) -> int:
    try:
        with output.long_integers():
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


def _flush_or_hush() -> None:
    """What a full disk refused once it would refuse again when Python exits, with a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        output.hush()


def _explained(error: Exception) -> tuple[str, int]:
    if isinstance(error, DeniableError) and not isinstance(error, InternalError):
        return str(error), BAD_INPUT
    if isinstance(error, OSError):
        where = f"{error.filename!r}: " if error.filename else ""
        return f"{where}{error.strerror or error}", BAD_INPUT
    if isinstance(error, MemoryError):
        return "there is not enough memory for this", BAD_INPUT
    # Typer's own complaints about usage; their class lives in different places in different versions.
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
app.add_typer(channel.app, name="channel")
app.add_typer(design.app, name="design")
app.add_typer(survey.app, name="survey")
app.command(epilog=plan.EXAMPLES)(plan.plan)
app.command(epilog=privatize.EXAMPLES)(privatize.privatize)
app.command(epilog=tally.EXAMPLES)(tally.tally)
app.command(epilog=estimate.EXAMPLES)(estimate.estimate)
app.command(epilog=simulate.EXAMPLES)(simulate.simulate)
app.command(epilog=serve.EXAMPLES)(serve.serve)
app.command(epilog=answer.EXAMPLES)(answer.answer)
app.add_typer(ledger.app, name="ledger")
app.add_typer(token.app, name="token")
app.add_typer(store.app, name="store")
app.command(epilog=demo.EXAMPLES)(demo.demo)
app.command(epilog=story.EXAMPLES)(story.story)


def _version(wanted: bool) -> None:
    if wanted:
        output.write(f"deniable {deniable.__version__}\n")
        raise typer.Exit


@app.callback(
    epilog=examples(
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
) -> None:
    """Learn what a crowd thinks without learning what anyone said."""
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


def main() -> None:
    """The entry point of the installed command."""
    for stream in (sys.stdout, sys.stderr):
        # A label that the terminal's encoding lacks is written as an escape instead of ending the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="deniable")

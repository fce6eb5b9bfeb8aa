"""`deniable ledger`: what this device has sent, what that has cost, and how to leave."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from deniable.cli import output
from deniable.cli.answer import LedgerFile
from deniable.cli.answer_view import state
from deniable.cli.options import Json, examples
from deniable.cli.output import shown
from deniable.errors import SpecError

if TYPE_CHECKING:
    from deniable.collect.client import Ledger

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)

Which = Annotated[
    str | None,
    typer.Argument(metavar="[FINGERPRINT]", help="One survey.", show_default="every survey"),
]


@app.callback(
    epilog=examples(
        "deniable ledger show",
        "deniable ledger budget --json",
        "deniable ledger optout",
        "deniable ledger withdraw --yes",
    )
)
def ledger(ctx: typer.Context) -> None:
    """This device's ledger: every byte that was sent, the lifetime budget, opting out and withdrawing."""
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


@app.command()
def show(survey: Which = None, ledger: LedgerFile = None, as_json: Json = False) -> None:
    """Show every submission, with every byte that has left this device or is waiting to.

    A body is a header of 8 bytes, an id of 16, and the randomized answers.
    """
    book = _existing(ledger)
    found = book.submissions(survey)
    if as_json:
        output.document({"ledger": str(book.path), "submissions": [known.spec() for known in found]})
        return
    output.facts([("ledger", str(book.path)), ("submissions", str(len(found)))])
    for known in found:
        output.write("\n")
        output.facts(
            [
                ("survey", f"{_name(book, known.survey)}, {known.survey}"),
                ("epoch", str(known.epoch)),
                ("state", state(known)),
                ("epsilon", str(known.epsilon)),
                ("body", f"{known.body.hex()} ({len(known.body)} bytes)" if known.body else "deleted"),
            ]
        )


@app.command()
def budget(ledger: LedgerFile = None, as_json: Json = False) -> None:
    """Show what was spent and what is left of each lifetime budget."""
    book = _existing(ledger)
    found = book.budgets()
    if as_json:
        output.document({"ledger": str(book.path), "budgets": [known.spec() for known in found]})
        return
    output.facts([("ledger", str(book.path)), ("budgets", str(len(found)))])
    if not found:
        return
    output.write("\n")
    rows = [[known.group, "", str(known.spent), str(known.cap), str(known.left)] for known in found]
    for known in found:
        place = next(i for i, row in enumerate(rows) if row[0] == known.group) + 1
        rows[place:place] = [["", _name(book, survey), str(spent), "", ""] for survey, spent in known.surveys]
    output.table(["group", "survey", "spent", "cap", "left"], rows, left=2)


@app.command()
def optout(
    survey: Which = None,
    ledger: LedgerFile = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take part again.")] = False,
) -> None:
    """Take no part any more, in one survey or in any: nothing is sent, not even a request."""
    from deniable.collect.client import Ledger

    which = "every survey" if survey is None else survey
    if undo:
        _existing(ledger).opt_in(survey)
        output.write(f"taking part again: {which}\n")
        return
    book = Ledger(ledger)
    new = not book.exists
    book.opt_out(survey)
    if new:
        output.note("note", f"a new device ledger was made: {book.path}")
    output.write(f"opted out: {which}\n")


@app.command()
def withdraw(
    ledger: LedgerFile = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete this device's secret, memos, outbox and sent bytes, and opt out of everything.

    What was spent stays in the ledger: what has been sent cannot be called back, so coming back does not begin with a
    full budget.
    """
    book = _existing(ledger)
    if not yes:
        if not sys.stdin.isatty():
            raise SpecError("this deletes what cannot be restored: add --yes")
        typer.confirm(f"Delete the answers and the secret of {book.path}?", abort=True, err=True)
    book.withdraw()
    output.write(f"withdrawn: {book.path} keeps what was spent, and nothing else\n")


def _existing(path: LedgerFile) -> Ledger:
    """A ledger that is there: a mistyped name must not look like a device that has sent nothing."""
    from deniable.collect.client import Ledger, LedgerError

    book = Ledger(path)
    if not book.exists:
        raise LedgerError(f"there is no ledger {str(book.path)!r}: name another with --ledger; answering makes one")
    return book


def _name(book: Ledger, fingerprint: str) -> str:
    """A survey by its name, where its bytes are known."""
    import json

    known = book.pinned(fingerprint)
    return shown(json.loads(known)["name"]) if known is not None else fingerprint[:16]

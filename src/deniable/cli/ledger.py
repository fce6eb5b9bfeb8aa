"""`deniable ledger`: what this device has sent, what that has cost, and how to leave."""

from __future__ import annotations

import sys
import time
from fractions import Fraction
from typing import Annotated

import typer

from deniable.cli import output
from deniable.cli.answer import state
from deniable.cli.load_survey import SHORTEST, choose
from deniable.cli.options import Json, LedgerFile, argument, new_app, option
from deniable.cli.output import examples, shown
from deniable.collect.client import Client, Ledger, LedgerError, Spending, Submission
from deniable.collect.client.client import verified
from deniable.errors import LabelError, SpecError
from deniable.exact import canonical, epsilon_text
from deniable.privacy import compose
from deniable.specs import is_fingerprint
from deniable.surveys import Survey
from deniable.surveys.promises import promises, sure
from deniable.surveys.terms import write_time
from deniable.words import catalogue

app = new_app()

_DIGITS = 12
"""Digits of a fingerprint that are shown with a name, because surveys may share a name."""

Which = Annotated[
    str | None,
    argument(
        "[SURVEY]", f"Its name, or the beginning of its fingerprint, {SHORTEST} digits or more.", default="every survey"
    ),
]


@app.callback(
    epilog=examples(
        "deniable ledger show",
        "deniable ledger budget --json",
        "deniable ledger optout habits",
        "deniable ledger withdraw --yes",
    )
)
def ledger(ctx: typer.Context) -> None:
    """Show what this device sent and spent; opt out, withdraw.

    The ledger also has what waits to be sent, and what is left of the lifetime budget.
    """
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


@app.command()
def show(survey: Which = None, ledger: LedgerFile = None, as_json: Json = False) -> None:
    """Show every submission, and what is remembered.

    Of those that wait, every byte is shown. Opting out is listed, too. A body is a header of 8 bytes, an id of 16, and
    the randomized answers. It is erased once the service has taken it; where the service keeps reports, the id stays
    until the report cannot be deleted there any more. If a survey memoizes or has two stages, the answers themselves
    are in the ledger until the device leaves: their number is shown, not the answers.
    """
    book = _existing(ledger)
    book.forget_ids(time.time())
    which = None if survey is None else _known(book, survey)
    found = book.submissions(which)
    if as_json:
        memos = [{"survey": fp, "question": id, "answers": number} for fp, id, number in book.remembered(which)]
        document = {"ledger": str(book.path), "opted_out": book.opt_outs().spec(), "remembered": memos}
        output.document(document | {"submissions": [known.spec() for known in found]})
        return
    out = _opted_out(book) if which is None else "yes" if book.opted_out(which) else "no"
    kept = "; ".join(
        f"{number} answer{'' if number == 1 else 's'} to {id} of {_name(book, fp)}, to report from again"
        for fp, id, number in book.remembered(which)
    )
    facts = [("opted out", out), ("remembered", kept or "no answers"), ("submissions", str(len(found)))]
    output.facts([("ledger", str(book.path)), *facts])
    for known in found:
        output.write("\n")
        output.facts(
            [
                ("survey", f"{_name(book, known.survey)}, {known.survey}"),
                ("epoch", str(known.epoch)),
                ("state", state(known)),
                ("epsilon", epsilon_text(known.epsilon)),
                *([("delta", canonical(known.delta))] if known.delta else []),
                ("body", f"{known.body.hex()} ({len(known.body)} bytes)" if known.body else _erased(known)),
                *([("id", _kept(known))] if known.erased and known.id else []),
            ]
        )


@app.command()
def budget(ledger: LedgerFile = None, as_json: Json = False) -> None:
    """Show what was spent and what is left of each budget.

    For each survey: the epsilon of one report, and that of all that the device may ever send for it.
    """
    book = _existing(ledger)
    found = book.budgets()
    if as_json:
        budgets = [known.spec() | {"words": _spent_words(book, known)} for known in found]
        output.document({"ledger": str(book.path), "opted_out": book.opt_outs().spec(), "budgets": budgets})
        return
    output.facts([("ledger", str(book.path)), ("opted out", _opted_out(book)), ("budgets", str(len(found)))])
    if not found:
        return
    output.write("\n")
    rows = []
    for known in found:
        amounts = [epsilon_text(amount) for amount in (known.spent, known.cap, known.left)]
        about = shown(known.group) + ("" if known.relation == "any" else f" ({known.relation})")
        rows.append([shown(known.owner), about, "", "", *amounts])
        if known.delta_cap:
            left = max(known.delta_cap - known.delta_spent, Fraction(0))
            deltas = [canonical(amount) for amount in (known.delta_spent, known.delta_cap, left)]
            rows.append(["", "", "delta", "", *deltas])
        for survey, spent in known.surveys:
            rows.append(["", "", _name(book, survey), survey[:_DIGITS], epsilon_text(spent), "", ""])
    output.table(["owner", "group", "survey", "fingerprint", "spent", "cap", "left"], rows, left=4)
    for known in found:
        for sentence in _spent_words(book, known):
            output.write("\n")
            output.prose(sentence)


def _spent_words(book: Ledger, known: Spending) -> list[str]:
    """What a group has spent and may still spend, then one paragraph per survey: its epsilon per report and in all."""
    contents = {fingerprint: book.pinned(fingerprint) for fingerprint, _ in known.surveys}
    met = {fp: verified(content, fp) for fp, content in contents.items() if content is not None}
    said = [
        f"{shown(known.owner)}, {shown(known.group)}: epsilon {epsilon_text(known.spent)} of {epsilon_text(known.cap)} "
        f"is spent, {epsilon_text(known.left)} is left."
    ]
    if len(met) == len(known.surveys) and all(_bounds(survey) for survey in met.values()):
        said[0] += (
            f" Somebody who found two cases equally likely can be at most {_sure(known.spent)} sure of one of them "
            f"now, and at most {_sure(max(known.cap, known.spent))} once all is spent."
        )
    for fingerprint, spent in known.surveys:
        if fingerprint in met:
            answered = len(book.submissions(fingerprint))
            said.append(_survey_words(met[fingerprint], answered, spent, known))
    return said


def _bounds(survey: Survey) -> bool:
    """Whether the debits bound all that linked reports reveal."""
    return survey.lifetime_epsilon is not None and survey.lifetime_epsilon <= survey.budget_epsilon


def _survey_words(survey: Survey, answered: int, spent: Fraction, group: Spending) -> str:
    assert survey.terms is not None
    rule = survey.terms.longitudinal
    left = min(group.left, max(survey.budget_epsilon - spent, Fraction(0)))
    said = [
        f"{shown(survey.name)}: {answered} of at most {rule.epochs} reports made, for epsilon {epsilon_text(spent)}.",
        f"{max(rule.epochs - answered, 0)} more may follow, for epsilon {epsilon_text(left)} at most.",
        f"One report has epsilon {epsilon_text(survey.epsilon)}.",
    ]
    if rule.epochs > 1:
        said.append(f"The debited epsilon holds between {rule.promise[1]}.")
    if survey.lifetime_epsilon is None:
        said.append("For all reports together no epsilon holds: repeated reports show when an answer changed.")
    elif not _bounds(survey):
        levels = (survey.epsilon, survey.debit, survey.budget_epsilon, survey.lifetime_epsilon)
        first, never, pattern, anything = map(epsilon_text, levels)
        said.append(
            f"All reports together have epsilon {pattern} for somebody who knows when your answers were the same, and "
            f"{anything} otherwise. These are the third and the fourth of four levels: one report, {first}; answers "
            f"that never change, {never}; states that recur in the same pattern, {pattern}; any two streams of answers,"
            f" {anything} at most."
        )
    else:
        said.append(f"All reports together have epsilon {epsilon_text(survey.lifetime_epsilon)} at most.")
    if not rule.keeps and answered > 1:
        # What independent reports reveal, except with a negligible probability.
        made = compose(*(question.protocol for question in survey), times=answered)
        said.append(f"Those made so far: {made.words()}")
    return " ".join(said)


@app.command()
def optout(
    survey: Which = None,
    ledger: LedgerFile = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take part again.")] = False,
    new: Annotated[bool, typer.Option("--new", help="Make the ledger, on a device that has none.")] = False,
) -> None:
    """Stop taking part, in one survey or in all.

    Nothing more is sent, not even a request. What only that survey needs is deleted: remembered answers, its key, what
    waits, and its bytes. The ledger keeps which epochs were answered and what that has cost.

    A survey that this device has not met is named by all 64 digits of its fingerprint.
    """
    if new and undo:
        raise SpecError("--new and --undo exclude each other: choose one")
    first = "answering makes one" if undo else "to opt out before anything was answered, add --new"
    book = Ledger(ledger) if new else _existing(ledger, first)
    made = not book.exists
    fingerprint = None if survey is None else _meant(book, survey)
    (book.opt_in if undo else book.opt_out)(fingerprint)
    if made:
        output.note("note", f"a new device ledger was made: {book.path}")
    which = "every survey" if fingerprint is None else f"{_name(book, fingerprint)}, {fingerprint}"
    output.write(f"{'taking part again' if undo else 'opted out'}: {which}\n")


@app.command()
def withdraw(
    ledger: LedgerFile = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    delete_at: Annotated[
        list[str] | None,
        option(
            "SERVER",
            "First ask this service to delete the reports that it keeps. It sees the address behind them.",
            "--delete-at",
        ),
    ] = None,
) -> None:
    """Delete what this device remembers, and opt out of everything.

    Remembered answers, keys, ids and what waits are deleted. The ledger keeps which surveys and epochs were answered
    and what that has cost: what has been sent cannot be called back, so a device that comes back does not begin with a
    full budget. A service that keeps sums has no report to delete; one that keeps reports deletes those of open epochs,
    if it is asked before the ids are gone.
    """
    book = _existing(ledger)
    book.forget_ids(time.time())
    for sentence in _stays(book):
        output.note("note", sentence)
    if _deletable(book) and not delete_at:
        names = ", ".join(_name(book, survey) for survey in _deletable(book))
        output.note("note", f"to ask the service to delete the reports of {names}, add --delete-at SERVER")
    if not yes:
        if not sys.stdin.isatty():
            raise SpecError("this deletes what cannot be restored: add --yes")
        typer.confirm(f"Delete remembered answers, keys and all that waits in {book.path}?", abort=True, err=True)
    if delete_at:
        _delete(book, delete_at)
    book.withdraw()
    output.write(
        f"withdrawn: {book.path} has opted out of every survey, and keeps which surveys and epochs were answered and "
        "what was spent, but no byte of an answer\n"
    )


def _deletable(book: Ledger) -> list[str]:
    """The surveys whose reports a service may still be asked to delete."""
    return list(dict.fromkeys(known.survey for known in book.submissions() if known.id and known.id_until))


def _stays(book: Ledger) -> list[str]:
    """What the services of answered surveys can still do for a person who leaves, one sentence each."""
    said = []
    for survey in dict.fromkeys(known.survey for known in book.submissions()):
        content = book.pinned(survey)
        if content is not None:
            said.append(promises(verified(content, survey))["leaving"])
    return list(dict.fromkeys(said))


def _delete(book: Ledger, servers: list[str]) -> None:
    """Ask the services to delete the reports that they keep. Raises `LedgerError` while one could not be asked."""
    deleted = gone = 0
    reason = ""
    for server in servers:
        for survey in _deletable(book):
            with Client(server, survey, book) as client:
                found = client.delete_sent()
            deleted, gone, reason = deleted + found.deleted, gone + found.not_held, found.reason or reason
    output.write(f"deleted by the service: {deleted}; not held any more: {gone}\n")
    if left := _deletable(book):
        names = ", ".join(_name(book, survey) for survey in left)
        raise LedgerError(
            f"the reports of {names} could not be asked for ({reason}), so nothing was withdrawn: try again"
        )


def _sure(spent: Fraction) -> str:
    return catalogue().text(sure(spent))


def _erased(submission: Submission) -> str:
    return "sent, erased" if submission.state == "sent" else "erased"


def _kept(submission: Submission) -> str:
    until = write_time(int(submission.id_until))
    return f"{submission.id.hex()} (kept until {until}, to have the report deleted at the service)"


def _existing(path: LedgerFile, otherwise: str = "answering makes one") -> Ledger:
    """The ledger, which must exist: a mistyped name must not look like a new device. Raises `LedgerError`."""
    book = Ledger(path)
    if not book.exists:
        raise LedgerError(f"there is no ledger {str(book.path)!r}: name another with --ledger; {otherwise}")
    return book


def _known(book: Ledger, given: str) -> str:
    """The fingerprint of a survey that this device has met."""
    met = {fingerprint: name or fingerprint[:_DIGITS] for fingerprint, name in book.surveys().items()}
    if not met:
        raise LabelError(f"no survey is called {given!r} here: {str(book.path)!r} knows none yet")
    # A survey's name may look like the digits of another one's fingerprint.
    return given.lower() if given.lower() in met else choose(given, met, "this ledger knows")


def _meant(book: Ledger, given: str) -> str:
    """The fingerprint of a survey that this device has met, or any complete fingerprint."""
    whole = given.lower()
    if not is_fingerprint(whole):
        return _known(book, given)
    if not book.surveys().get(whole):
        output.note("note", f"this device has never met the survey {whole}: compare the digits")
    return whole


def _opted_out(book: Ledger) -> str:
    """What this device has opted out of, in words."""
    out = book.opt_outs()
    some = ", ".join(
        f"{_name(book, survey)} ({survey[:_DIGITS]})" for survey in (out.but if out.everything else out.surveys)
    )
    if out.everything:
        return f"every survey but {some}" if some else "every survey"
    return some or "no"


def _name(book: Ledger, fingerprint: str) -> str:
    """The name of a survey, if the device knows it."""
    return shown(book.surveys().get(fingerprint) or "(unknown)")

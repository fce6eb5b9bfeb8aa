"""`deniable answer`: take part in a survey from this machine."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.cli import answer_view as view
from deniable.cli import output
from deniable.cli.options import Json, examples
from deniable.cli.output import shown
from deniable.errors import DeniableError, LabelError, SpecError

if TYPE_CHECKING:
    from deniable.collect.client import Client, Receipt, Submission
    from deniable.domains import Domain
    from deniable.surveys import Question, Survey

EXAMPLES = examples(
    "deniable answer https://collect.example.org FINGERPRINT                (asks)",
    "deniable answer https://collect.example.org FINGERPRINT smoke=no age=42",
    "deniable answer https://collect.example.org FINGERPRINT --dry-run",
)
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

NOT_SENT, WAITING = 1, 75  # 75 is "try again later" to mailers and schedulers

_MOST_LABELS = 20


def answer(
    server: Annotated[str, typer.Argument(metavar="SERVER", help="Where reports go: https://...", show_default=False)],
    fingerprint: Annotated[
        str,
        typer.Argument(metavar="FINGERPRINT", help="The survey, by its 64 hexadecimal digits.", show_default=False),
    ],
    answers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID=ANSWER]...", help="Answers; what is missing is asked for on a terminal.", show_default=False
        ),
    ] = None,
    ledger: LedgerFile = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the law and an example; ask, record and send nothing.")
    ] = False,
    wait: Annotated[float, typer.Option(metavar="SECONDS", help="Keep trying to send for so long.")] = 0.0,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN", help="For a service that takes reports with an ingest key only.", show_default=False
        ),
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Allow http:// to another machine.")] = False,
    as_json: Json = False,
) -> None:
    """Answer a survey: the answers are randomized here, written to the ledger, and only then sent.

    What is typed at the prompt is in no shell history. An epoch is answered once: after that the command asks nothing
    and draws nothing, and only sends what is still waiting, the same bytes.

    The exit code is 0 if the submission was sent, now or before; 75 while it waits in the ledger: run the command again
    to send it; 1 if it was refused, dropped or withdrawn; and 2 if the answers were not taken.
    """
    from deniable.collect.client import Client, OptedOut

    with Client(server, fingerprint, ledger, token=token, insecure=insecure) as client:
        if dry_run:
            _rehearse(client, answers or [], as_json)
            return
        if client.ledger.opted_out(fingerprint):
            where = "" if ledger is None else f" --ledger {shlex.quote(str(ledger))}"
            raise OptedOut(f"`deniable ledger optout {fingerprint} --undo{where}` takes part again")
        earlier = _submission(client, client.epoch(record=False))
        receipt = _answered(client, answers or [], wait, as_json) if earlier is None else _again(client, earlier, wait)
        if as_json:
            view.document(client, receipt)
        else:
            view.report(client, receipt, earlier)
    if receipt.state == "queued":
        output.note("note", "it waits in the ledger: run the same command again to send the same bytes")
        raise typer.Exit(WAITING)
    if receipt.state != "sent":
        raise typer.Exit(NOT_SENT)


def _answered(client: Client, given: list[str], wait: float, as_json: bool) -> Receipt:
    """Ask, record and send. Nothing is recorded before the answers are known to be answers."""
    new = not client.ledger.exists
    answers, introduced = _collect(client.survey(record=False), given, as_json)
    receipt = client.answer(answers, wait=wait)
    if new:
        output.note("note", f"a new device ledger was made: {client.ledger.path}")
    if not introduced and not as_json:
        view.introduce(client.survey())
    return receipt


def _again(client: Client, earlier: Submission, wait: float) -> Receipt:
    """Send what is waiting; what this epoch's submission has come to."""
    from deniable.collect.client import Receipt

    waiting = client.flush(wait).reason
    return Receipt.of(_submission(client, earlier.epoch) or earlier, False, waiting)


def _submission(client: Client, epoch: int) -> Submission | None:
    return next((known for known in client.history() if known.epoch == epoch), None)


def _rehearse(client: Client, given: list[str], as_json: bool) -> None:
    from deniable.collect.client.answers import listed
    from deniable.collect.client.preview import preview

    survey, epoch = client.survey(record=False), client.epoch(record=False)
    texts = _parsed(survey, given)
    answers = {
        question.id: _read(question, texts[question.id]) if question.id in texts else _some_answer(question)
        for question in survey
    }
    body = preview(survey, epoch, answers)
    if as_json:
        output.document({"survey": survey.fingerprint, "epoch": epoch, "example": body.hex(), "sent": False})
        return
    view.introduce(survey, numbers=True)
    for question in survey:
        view.law(question)
    output.write("\n")
    if len(texts) < len(survey):
        some = listed(f"{id}={shown(answer)}" for id, answer in answers.items() if id not in texts)
        output.prose(f"An example of what would leave, for {some}:")
    output.facts(view.fields(body))
    output.prose(
        "This was a rehearsal: the bytes above were drawn with throw-away randomness, and a real submission will have "
        "others. Nothing was recorded or sent."
    )


def _collect(survey: Survey, given: list[str], as_json: bool) -> tuple[dict[str, Any], bool]:
    """Answers from the command line, and from the person for the rest; and whether the survey was introduced."""
    texts = _parsed(survey, given)
    asked = [question for question in survey if question.id not in texts]
    if asked and (as_json or not sys.stdin.isatty()):
        missing = " ".join(f"{question.id}=..." for question in asked)
        where = "on a terminal" + (" without --json" if as_json else "")
        raise LabelError(f"every question needs an answer: add {missing}, or run this {where} to be asked")
    answers = {id: _read(survey[id], entry) for id, entry in texts.items()}
    if asked:
        view.introduce(survey)
    return answers | {question.id: _ask(question) for question in asked}, bool(asked)


def _parsed(survey: Survey, given: list[str]) -> Mapping[str, str]:
    from deniable.collect.client.answers import check_id, listed

    texts: dict[str, str] = {}
    for entry in given:
        id, equals, value = entry.partition("=")
        if not equals:
            ids = listed(question.id for question in survey)
            raise SpecError(f"{entry!r} is not written ID=ANSWER, where ID is a question of the survey ({ids})")
        check_id(survey, id)
        if id in texts:
            raise SpecError(f"question {id!r} is answered twice")
        texts[id] = value
    return texts


def _some_answer(question: Question) -> Any:
    """The first answer there is; of open text, some."""
    from deniable.domains import Strings

    domain = question.protocol.domain
    return "example" if isinstance(domain, Strings) else domain.labels[0]


def _ask(question: Question) -> Any:
    """Ask until it is an answer."""
    choices = _choices(question.protocol.domain)
    while True:
        entry = typer.prompt(f"{shown(question.text)}\n  {choices}", err=True, prompt_suffix=": ")
        try:
            return _read(question, entry)
        except DeniableError as wrong:
            output.note("please", str(wrong))


def _read(question: Question, entry: str) -> Any:
    """What was typed as an answer of the question, or a refusal that repeats it to the person who typed it."""
    from deniable.collect.client.answers import check_answer, from_text

    value = from_text(question.protocol.domain, entry)
    check_answer(question, value, said=repr(entry))
    return value


def _choices(domain: Domain) -> str:
    from deniable.domains import Categories, Strings

    if isinstance(domain, Strings):
        return "any text"
    if not isinstance(domain, Categories) or domain.size > _MOST_LABELS:
        return shown(str(domain))
    return ", ".join(shown(label) for label in domain.labels)

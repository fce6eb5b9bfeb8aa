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
from deniable.cli.files import is_json, named, only_one_stdin, parse_json, read_text
from deniable.cli.options import IngestToken, Json, examples
from deniable.cli.output import shown
from deniable.errors import DeniableError, LabelError, SpecError

if TYPE_CHECKING:
    from deniable.collect.client import Client, Receipt, Submission
    from deniable.domains import Domain
    from deniable.surveys import Question, Survey

EXAMPLES = examples(
    "deniable answer https://collect.example.org FINGERPRINT                (asks)",
    "deniable answer https://collect.example.org FINGERPRINT --answers answers.json",
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
            metavar="[ID=ANSWER]...",
            help="Answers for a rehearsal or a test: other users of this machine can read them. Better leave them out.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--answers",
            metavar="FILE",
            help="Answers from a file ('-' is standard input): {\"ID\": answer, ...} or a line ID=ANSWER for each.",
            show_default="asks on a terminal",
        ),
    ] = None,
    no_echo: Annotated[bool, typer.Option("--no-echo", help="Do not show on the terminal what is typed.")] = False,
    fingerprints: Annotated[
        str | None,
        typer.Option(
            "--fingerprints",
            metavar="FILE",
            help="The fingerprints that the survey's owner has published, one on each line: any other is refused.",
            show_default=False,
        ),
    ] = None,
    ledger: LedgerFile = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the law and an example; ask, record and send nothing.")
    ] = False,
    wait: Annotated[float, typer.Option(metavar="SECONDS", help="Keep trying to send for so long.")] = 0.0,
    token: IngestToken = None,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="Answer a survey although it differs from the one it replaces.")
    ] = False,
    insecure: Annotated[bool, typer.Option("--insecure", help="Allow http:// to another machine.")] = False,
    as_json: Json = False,
) -> None:
    """Answer a survey: the answers are randomized here, written to the ledger, and only then sent.

    What is typed at the prompt is in no shell history and in no list of processes. An epoch is answered once: after
    that the command asks nothing and draws nothing, and only sends what is still waiting, the same bytes.

    The exit code is 0 if the submission was sent, now or before; 75 while it waits in the ledger: run the command again
    to send it; 1 if it was refused, dropped or withdrawn; and 2 if the answers were not taken.
    """
    from deniable.collect.client import Client, OptedOut

    only_one_stdin(file, fingerprints)
    published = None if fingerprints is None else _listed(fingerprints)
    if answers and not dry_run:
        output.note(
            "warning",
            "other users of this machine can read the answers in the list of processes, and the shell keeps them: "
            "leave them out to be asked, or use --answers FILE",
        )
    with Client(server, fingerprint, ledger, token=token, insecure=insecure, published=published) as client:
        if dry_run:
            _rehearse(client, _given(client, answers or [], file), as_json)
            return
        if client.ledger.opted_out(fingerprint):
            where = "" if ledger is None else f" --ledger {shlex.quote(str(ledger))}"
            raise OptedOut(f"`deniable ledger optout {fingerprint} --undo{where}` takes part again")
        earlier = _submission(client, client.epoch(record=False))
        if earlier is None:
            _agree(client, accept_changes)
            receipt = _answered(client, _given(client, answers or [], file), wait, as_json, no_echo)
        else:
            receipt = _again(client, earlier, wait)
        if as_json:
            view.document(client, receipt)
        else:
            view.report(client, receipt, earlier)
    if receipt.state == "queued":
        output.note("note", "it waits in the ledger: run the same command again to send the same bytes")
        raise typer.Exit(WAITING)
    if receipt.state != "sent":
        raise typer.Exit(NOT_SENT)


def _agree(client: Client, accepted: bool) -> None:
    """Show how the survey differs from the one that it replaces and this device knows, before anything is asked."""
    changes = client.changes(record=False)
    if not changes:
        return
    view.changes(changes)
    if accepted:
        return
    if not sys.stdin.isatty():
        raise SpecError(
            "this survey replaces one that this device knows: read what is different and add --accept-changes"
        )
    typer.confirm("Answer it nevertheless?", abort=True, err=True)


def _answered(client: Client, given: Mapping[str, Any], wait: float, as_json: bool, no_echo: bool) -> Receipt:
    """Ask, record and send. Nothing is recorded before the answers are known to be answers."""
    new = not client.ledger.exists
    answers, introduced = _collect(client.survey(record=False), given, as_json, no_echo)
    receipt = client.answer(answers, wait=wait, accept_changes=True)  # `_agree` has shown them
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


def _rehearse(client: Client, texts: Mapping[str, Any], as_json: bool) -> None:
    from deniable.collect.client.answers import listed
    from deniable.collect.client.preview import preview

    survey, epoch = client.survey(record=False), client.epoch(record=False)
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


def _collect(survey: Survey, texts: Mapping[str, Any], as_json: bool, no_echo: bool) -> tuple[dict[str, Any], bool]:
    """What was given, and what the person says for the rest; and whether the survey was introduced."""
    asked = [question for question in survey if question.id not in texts]
    if asked and (as_json or not sys.stdin.isatty()):
        missing = ", ".join(question.id for question in asked)
        where = "on a terminal" + (" without --json" if as_json else "")
        raise LabelError(
            f"every question needs an answer: {missing} has none. Give it with --answers FILE ('-' is standard input), "
            f"or run this {where} to be asked"
        )
    answers = {id: _read(survey[id], entry) for id, entry in texts.items()}
    if asked:
        view.introduce(survey)
    return answers | {question.id: _ask(question, no_echo) for question in asked}, bool(asked)


def _given(client: Client, arguments: list[str], file: str | None) -> Mapping[str, Any]:
    """Answers from the file and from the command line, by question; text is still to be read."""
    survey = client.survey(record=False)
    if file is None:
        return _parsed(survey, arguments)
    from deniable.collect.client.answers import check_id

    content = read_text(file)
    if not is_json(content):
        lines = [line.rstrip("\r") for line in content.split("\n")]
        return _parsed(survey, arguments + [line for line in lines if line.strip()], of=f"a line of {named(file)}")
    found = parse_json(content, named(file))
    if not isinstance(found, Mapping):
        raise SpecError(f'{named(file)} holds no answers: write {{"ID": answer, ...}}')
    texts = dict(_parsed(survey, arguments))
    for id, value in found.items():
        check_id(survey, id)
        if id in texts:
            raise SpecError(f"question {id!r} is answered twice")
        texts[id] = value
    return texts


def _listed(file: str) -> list[str]:
    """Published fingerprints: one on each line, and what follows it, or a # and a remark."""
    from deniable.specs import is_fingerprint

    found = []
    for number, line in enumerate(read_text(file).splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if not is_fingerprint(words[0].lower()):
            raise SpecError(f"line {number} of {named(file)} does not begin with a fingerprint, 64 hexadecimal digits")
        found.append(words[0].lower())
    return found


def _parsed(survey: Survey, given: list[str], of: str = "an argument") -> Mapping[str, Any]:
    from deniable.collect.client.answers import check_id, listed

    texts: dict[str, Any] = {}
    for entry in given:
        id, equals, value = entry.partition("=")
        if not equals:
            ids = listed(question.id for question in survey)
            raise SpecError(f"{of} is not written ID=ANSWER, where ID is a question of the survey ({ids})")
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


def _ask(question: Question, no_echo: bool) -> Any:
    """Ask until it is an answer."""
    choices = _choices(question.protocol.domain)
    while True:
        text = f"{shown(question.text)}\n  {choices}"
        entry = typer.prompt(text, err=True, prompt_suffix=": ", hide_input=no_echo)
        try:
            return _read(question, entry)
        except DeniableError as wrong:
            output.note("please", str(wrong))


def _read(question: Question, entry: Any) -> Any:
    """An answer of the question, or a refusal, which does not repeat it: standard error may end in a log."""
    from deniable.collect.client.answers import check_answer, from_text

    value = from_text(question.protocol.domain, entry) if isinstance(entry, str) else entry
    check_answer(question, value, typed=isinstance(entry, str))
    return value


def _choices(domain: Domain) -> str:
    from deniable.domains import Categories, Strings

    if isinstance(domain, Strings):
        return "any text"
    if not isinstance(domain, Categories) or domain.size > _MOST_LABELS:
        return shown(str(domain))
    return ", ".join(shown(label) for label in domain.labels)

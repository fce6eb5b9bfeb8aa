"""`deniable answer`: take part in a survey from this machine."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.cli import output
from deniable.cli.options import Json, examples
from deniable.cli.output import shown
from deniable.errors import DeniableError, LabelError, SpecError

if TYPE_CHECKING:
    from deniable.collect.client import Client, Submission
    from deniable.surveys import Question, Survey

EXAMPLES = examples(
    "deniable answer https://collect.example.org FINGERPRINT                (asks)",
    "deniable answer https://collect.example.org FINGERPRINT smoke=no age=42",
    "deniable answer https://collect.example.org FINGERPRINT smoke=no age=42 --dry-run",
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

_MOST_FORMS = 16
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
        bool, typer.Option("--dry-run", help="Show the law and an example; record and send nothing.")
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

    What is typed at the prompt is in no shell history. An epoch is answered once: after that the command sends what is
    still waiting, the same bytes, and asks nothing.
    """
    from deniable.collect.client import Client

    with Client(server, fingerprint, ledger, token=token, insecure=insecure) as client:
        if dry_run:
            _rehearse(client, answers or [], as_json)
            return
        epoch = client.epoch()
        earlier = next((known for known in client.history() if known.epoch == epoch), None)
        if earlier is not None:
            client.flush(wait)
            submission = next(known for known in client.history() if known.epoch == epoch)
            fresh = False
        else:
            given, introduced = _collect(client.survey(), answers or [], as_json)
            receipt = client.answer(given, wait=wait)
            submission, fresh = receipt.submission, receipt.fresh
            if not introduced and not as_json:
                _introduce(client.survey())
        _report(client, submission, fresh, as_json)


def _rehearse(client: Client, given: list[str], as_json: bool) -> None:
    from deniable.collect.client.preview import preview

    survey, epoch = client.survey(record=False), client.epoch(record=False)
    answers, introduced = _collect(survey, given, as_json)
    body = preview(survey, epoch, answers)
    if as_json:
        output.document({"survey": survey.fingerprint, "epoch": epoch, "example": body.hex(), "sent": False})
        return
    if not introduced:
        _introduce(survey)
    for question in survey:
        _law(question)
    output.write("\n")
    _bytes(body)
    output.prose(
        "This was a rehearsal: the bytes above were drawn with throw-away randomness, and a real submission will have "
        "others. Nothing was recorded or sent."
    )


def _collect(survey: Survey, given: list[str], as_json: bool) -> tuple[dict[str, Any], bool]:
    """Answers from the command line, and from the person for the rest; and whether the survey was introduced."""
    from deniable.collect.client.answers import check_answer, from_text

    texts = _parsed(survey, given)
    asked = [question for question in survey if question.id not in texts]
    if asked and (as_json or not sys.stdin.isatty()):
        missing = ", ".join(f"{question.id}=..." for question in asked)
        raise LabelError(f"every question needs an answer: add {missing}, or run this on a terminal without --json")
    answers = {id: from_text(survey[id].protocol.domain, entry) for id, entry in texts.items()}
    for id, value in answers.items():
        check_answer(survey[id], value)
    if asked:
        _introduce(survey)
    return answers | {question.id: _ask(question) for question in asked}, bool(asked)


def _parsed(survey: Survey, given: list[str]) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    ids = [question.id for question in survey]
    for entry in given:
        id, equals, value = entry.partition("=")
        # The entry itself is not repeated: without the sign it may well be the answer.
        if not equals or id not in ids:
            raise SpecError(f"an answer is written ID=ANSWER, and the questions are {', '.join(ids)}")
        if id in texts:
            raise SpecError(f"question {id!r} is answered twice")
        texts[id] = value
    return texts


def _ask(question: Question) -> Any:
    """Ask until it is an answer."""
    from deniable.collect.client.answers import check_answer, from_text

    domain = question.protocol.domain
    while True:
        entry = typer.prompt(f"{shown(question.text)}\n  {_choices(domain)}", err=True, prompt_suffix=": ")
        value = from_text(domain, entry)
        try:
            check_answer(question, value)
        except DeniableError as wrong:
            output.note("please", str(wrong))
        else:
            return value


def _choices(domain: Any) -> str:
    from deniable.domains import Categories

    if not isinstance(domain, Categories) or domain.size > _MOST_LABELS:
        return str(domain)
    return ", ".join(shown(label) for label in domain.labels)


# -- what a person sees --------------------------------------------------------------------------------


def _introduce(survey: Survey) -> None:
    terms = survey.terms
    if terms is None:  # a client refuses such a survey
        return
    output.facts(
        [
            ("survey", shown(survey.name)),
            ("asked by", shown(terms.owner)),
            ("purpose", shown(terms.purpose)),
            ("kept", "counts only" if terms.retention == "tally" else "every randomized report"),
            ("fingerprint", survey.fingerprint),
        ]
    )
    output.write("\n")
    output.prose(promise(survey))
    output.write("\n")


def promise(survey: Survey) -> str:
    """What the survey guarantees, in a sentence, rounded up."""
    once = f"Whatever you answer, anyone's odds about it change by at most a factor of {at_most(survey.ratio)}"
    if survey.draws == 1:
        return f"{once}."
    return f"{once} each time, and {at_most(survey.ratio**survey.draws)} in all, however often you take part."


def at_most(ratio: Fraction) -> str:
    """Three digits, never less than the number.

    >>> at_most(Fraction(2718, 1000)), at_most(Fraction(20001, 100)), at_most(Fraction(2))
    ('2.72', '201', '2')
    """
    if ratio > 10**9:
        from deniable import exact

        return f"e^{math.ceil(exact.log(ratio) * 10) / 10:g}"
    digits = max(0, 3 - len(str(math.floor(ratio))))
    scaled = Fraction(math.ceil(ratio * 10**digits), 10**digits)
    return f"{float(scaled):.10g}"


def _law(question: Question) -> None:
    """How likely each report is under each answer, where that is a small table."""
    from deniable.domains import Strings

    protocol, channel = question.protocol, None
    output.heading(f"{question.id}: {protocol.name}, epsilon {protocol.epsilon}")
    if protocol.report_forms <= _MOST_FORMS and not isinstance(protocol.domain, Strings):
        with suppress(DeniableError):  # too many branches to follow them all
            channel = protocol.channel()
    if channel is None:
        output.prose(f"No report is more than {at_most(protocol.ratio)} times as likely under one answer as another.")
        return
    rows = [
        [shown(label), *(output.number(p, 4) for p in row)]
        for label, row in zip(channel.inputs, channel.rows, strict=True)
    ]
    output.table(["your answer", *(f"sends {label}" for label in channel.outputs)], rows)


def _bytes(body: bytes) -> None:
    """What leaves, field by field."""
    from deniable.collect.wire import HEADER_BYTES, ID_BYTES

    start = HEADER_BYTES + ID_BYTES
    output.facts(
        [
            ("leaves", f"{len(body)} bytes, over HTTP without cookies or user agent"),
            ("header", f"{body[:4].hex()} {body[4:HEADER_BYTES].hex()} (format, epoch)"),
            ("id", f"{body[HEADER_BYTES:start].hex()} (random, so that a repeat counts once)"),
            ("reports", f"{body[start:].hex()} (randomized)"),
        ]
    )


def _report(client: Client, submission: Submission, fresh: bool, as_json: bool) -> None:
    spending = client.budget()
    if as_json:
        output.document(submission.spec() | {"fresh": fresh, "budget": spending.spec()})
    else:
        if not fresh:
            output.write("This epoch was answered before; that submission stands.\n")
        if submission.body:
            _bytes(submission.body)
        output.facts(
            [
                ("state", submission.state + (f": {submission.reason}" if submission.reason else "")),
                ("budget", f"{spending.spent} of {spending.cap} spent in the group {spending.group}"),
            ]
        )
    if submission.state == "queued":
        output.note("note", "it is not sent yet: run the command again to send the same bytes")
    elif submission.state == "dropped":
        raise typer.Exit(1)

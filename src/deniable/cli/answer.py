"""`deniable answer`: take part in a survey from this machine."""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import typer

from deniable import exact
from deniable._files import parse_json
from deniable.cli import output
from deniable.cli.options import (
    IngestToken,
    Json,
    LedgerFile,
    argument,
    is_json,
    named,
    new_app,
    only_one_stdin,
    option,
    read_text,
)
from deniable.cli.output import examples, shown
from deniable.collect.client import Client, OptedOut, Receipt, Submission, TookPart
from deniable.collect.client.records import OPTED_OUT, check_id, encoded, from_text, listed, preview
from deniable.collect.sealing import POINT_BYTES, TAG_BYTES
from deniable.collect.wire import HEADER_BYTES, ID_BYTES, shares_of, unshared
from deniable.domains import Domain, Interval, KeyNumbers
from deniable.errors import DeniableError, DomainError, LabelError, SpecError
from deniable.exact import epsilon_text
from deniable.specs import is_fingerprint
from deniable.surveys import Question, Survey
from deniable.surveys.campaign import round_of
from deniable.surveys.diff import Edit
from deniable.surveys.promises import paragraphs, promises
from deniable.surveys.terms import Terms, host, write_time
from deniable.surveys.translations import as_original, best_language
from deniable.words import DEFAULT, LANGUAGES, without_marks

app = new_app()

NOT_SENT, WAITING = 1, 75  # mailers and schedulers read 75 as "try again later"

_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
_MOST_FORMS = 16


@app.command(
    epilog=examples(
        "deniable answer https://collect.example.org FINGERPRINT                (asks)",
        "deniable answer https://collect.example.org FINGERPRINT --answers answers.json",
        "deniable answer https://collect.example.org FINGERPRINT --dry-run",
    )
)
def answer(
    server: Annotated[str, argument("SERVER", "Where reports go: https://...")],
    fingerprint: Annotated[str, argument("FINGERPRINT", "The survey, by its 64 hexadecimal digits.")],
    answers: Annotated[
        list[str] | None,
        argument(
            "[ID=ANSWER]...",
            "Answers for a rehearsal or a test: other users of this machine can read them. Better leave them out.",
        ),
    ] = None,
    file: Annotated[
        str | None,
        option(
            "FILE",
            "Answers from a file ('-' is standard input): {\"ID\": answer, ...} or a line ID=ANSWER for each.",
            "--answers",
            default="asks on a terminal",
        ),
    ] = None,
    no_echo: Annotated[bool, typer.Option("--no-echo", help="Do not show on the terminal what is typed.")] = False,
    fingerprints: Annotated[
        str | None,
        option(
            "FILE",
            "The fingerprints that the survey's owner has published, one on each line: any other is refused.",
            "--fingerprints",
        ),
    ] = None,
    ledger: LedgerFile = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the law and an example; ask, record and send nothing.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Say step by step what chance does to the answers; record and send nothing."),
    ] = False,
    wait: Annotated[float, option("SECONDS", "Keep trying to send for so long.", default=True)] = 0.0,
    token: IngestToken = None,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="Answer a survey although it differs from the one it replaces.")
    ] = False,
    insecure: Annotated[bool, typer.Option("--insecure", help="Allow http:// to another machine.")] = False,
    language: Annotated[
        str | None,
        option(
            "CODE",
            "Ask, promise and read answers in this language, such as de, if the survey or this program has it.",
            "--language",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer a survey: randomize, record, and only then send.

    The answers are randomized on this device and written to its ledger before anything is sent. What is typed at the
    prompt is in no shell history and in no list of processes. An epoch is answered once, and a survey as often as it
    says: after that the command asks nothing and draws nothing, and only sends what is still waiting, the same bytes.

    The exit code is 0 if the submission was sent, now or before; 75 while it waits in the ledger: run the command again
    to send it; 1 if it was refused, dropped or withdrawn; and 2 if the answers were not taken.
    """
    only_one_stdin(file, fingerprints)
    published = None if fingerprints is None else _listed(fingerprints)
    dry_run = dry_run or explain
    if answers and not dry_run:
        output.note(
            "warning",
            "other users of this machine can read the answers in the list of processes, and the shell keeps them: "
            "leave them out to be asked, or use --answers FILE",
        )
    with Client(server, fingerprint, ledger, token=token, insecure=insecure, published=published) as client:
        if dry_run:
            spoken = Spoken.of(client.survey(record=False), language)
            _rehearse(client, _given(client, answers or [], file), as_json, explain, spoken)
            return
        if client.ledger.opted_out(fingerprint):
            where = "" if ledger is None else f" --ledger {shlex.quote(str(ledger))}"
            raise OptedOut(f"`deniable ledger optout {fingerprint} --undo{where}` takes part again")
        earlier = _submission(client, client.epoch(record=False)) or _last(client)
        if earlier is None:
            _refuse_another_round(client)
            _agree(client, accept_changes)
            spoken = Spoken.of(client.survey(record=False), language)
            receipt = _answered(client, _given(client, answers or [], file), wait, as_json, no_echo, spoken)
        else:
            receipt = _again(client, earlier, wait)
        if as_json:
            _document(client, receipt)
        else:
            _report(client, receipt, earlier)
    if receipt.state == "queued":
        output.note("note", "it waits in the ledger: run the same command again to send the same bytes")
        raise typer.Exit(WAITING)
    if receipt.state != "sent":
        raise typer.Exit(NOT_SENT)


@dataclass(frozen=True)
class Spoken:
    """A survey in the language of the person who answers it."""

    survey: Survey
    texts: Mapping[str, Any]
    words: str
    """The language of the sentences of this program."""

    @classmethod
    def of(cls, survey: Survey, wanted: str | None) -> Spoken:
        if wanted is None:
            return cls(survey, survey.texts(), DEFAULT)
        own, words = best_language(survey.languages, wanted), best_language(LANGUAGES, wanted)
        if own is None and words is None:
            known = ", ".join(sorted({*survey.languages, *LANGUAGES}))
            raise LabelError(f"neither the survey nor this program has the language {wanted!r}; there are {known}")
        return cls(survey, survey.texts(own), words or DEFAULT)

    def text(self, question: Question) -> str:
        return str(self.texts["questions"][question.id]["text"])

    def domain(self, question: Question) -> Domain:
        return question.protocol.domain.translated(self.texts["questions"][question.id])

    def read(self, question: Question, entry: Any) -> Any:
        """An answer, typed in this language or from a file, as the survey's own."""
        value = from_text(self.domain(question), entry) if isinstance(entry, str) else entry
        return self.original(question, value)

    def original(self, question: Question, value: Any) -> Any:
        own = self.survey.texts()["questions"][question.id]
        return as_original(value, self.texts["questions"][question.id], own)


def _refuse_another_round(client: Client) -> None:
    """Refuse before asking anything if this device has answered another round of the campaign."""
    survey = client.survey(record=False)
    answered = client.ledger.other_round(survey)
    if answered is not None:
        raise TookPart(answered, round_of(survey).number)


def _agree(client: Client, accepted: bool) -> None:
    """Before asking anything, show how the survey differs from the known one that it replaces."""
    changes = client.changes(record=False)
    if not changes:
        return
    _show_changes(changes)
    if accepted:
        return
    if not sys.stdin.isatty():
        raise SpecError(
            "this survey replaces one that this device knows: read what is different and add --accept-changes"
        )
    typer.confirm("Answer it nevertheless?", abort=True, err=True)


def _answered(
    client: Client, given: Mapping[str, Any], wait: float, as_json: bool, no_echo: bool, spoken: Spoken
) -> Receipt:
    """Ask, record and send. Nothing is recorded before every answer is read and valid."""
    new = not client.ledger.exists
    answers, introduced = _collect(spoken, given, as_json, no_echo)
    receipt = client.answer(answers, wait=wait, accept_changes=True)  # `_agree` has shown them
    if new:
        output.note("note", f"a new device ledger was made: {client.ledger.path}")
    if not introduced and not as_json:
        _introduce(spoken)
    return receipt


def _again(client: Client, earlier: Submission, wait: float) -> Receipt:
    """Send what is waiting, and return the receipt of the earlier submission."""
    waiting = client.flush(wait).reason
    return Receipt.of(_submission(client, earlier.epoch) or earlier, False, waiting)


def _submission(client: Client, epoch: int) -> Submission | None:
    """This device's submission in an epoch, if there is one."""
    return next((known for known in client.history() if known.epoch == epoch), None)


def _last(client: Client) -> Submission | None:
    """This device's last submission, if it has answered as often as the survey allows."""
    made = client.history()
    often = client.terms(record=False).longitudinal.epochs
    return max(made, key=lambda one: one.epoch) if len(made) >= often else None


def _rehearse(client: Client, texts: Mapping[str, Any], as_json: bool, explain: bool, spoken: Spoken) -> None:
    """Show what would be sent, for the answers in `texts` and examples for the others. Nothing is recorded."""
    survey, epoch = client.survey(record=False), client.epoch(record=False)
    answers = {
        question.id: _read(spoken, question, texts[question.id]) if question.id in texts else _some_answer(question)
        for question in survey
    }
    body = preview(survey, epoch, answers)
    if as_json:
        output.document({"survey": survey.fingerprint, "epoch": epoch, "example": body.hex(), "sent": False})
        return
    _introduce(spoken, numbers=True)
    for question in survey:
        _law(question)
    if explain:
        _explain(survey, answers, body, spoken.words)
    output.write("\n")
    if len(texts) < len(survey):
        typed = {
            id: json.dumps(one, ensure_ascii=False) if isinstance(one, dict) else one for id, one in answers.items()
        }
        some = listed(f"{id}={shown(one)}" for id, one in typed.items() if id not in texts)
        output.prose(f"An example of what would leave, for {some}:")
    output.facts(fields(body, survey.terms))
    output.prose(
        "This was a rehearsal: the bytes above were drawn with throw-away randomness, and a real submission will have "
        "others. Nothing was recorded or sent."
    )


def _explain(survey: Survey, answers: Mapping[str, Any], body: bytes, language: str) -> None:
    """The life of the report of each question, step by step."""
    place, collectors = HEADER_BYTES + ID_BYTES, 0 if survey.terms is None else len(survey.terms.collectors)
    body = unshared(body, collectors) if collectors else body
    for question in survey:
        report = body[place : place + question.protocol.report_bytes]
        place += question.protocol.report_bytes
        output.write("\n")
        output.heading(f"{question.id}: the life of this report")
        for number, step in enumerate(question.protocol.explain(answers[question.id], report, language), start=1):
            told = f"{number}. {step.text} {shown(without_marks(step.outcome))}"
            output.prose(without_marks(told).rstrip())


def _collect(spoken: Spoken, texts: Mapping[str, Any], as_json: bool, no_echo: bool) -> tuple[dict[str, Any], bool]:
    """The answers by question; missing ones are asked for. Also whether the survey was introduced."""
    survey = spoken.survey
    asked = [question for question in survey if question.id not in texts]
    if asked and (as_json or not sys.stdin.isatty()):
        missing = ", ".join(question.id for question in asked)
        where = "on a terminal" + (" without --json" if as_json else "")
        raise LabelError(
            f"every question needs an answer: {missing} has none. Give it with --answers FILE ('-' is standard input), "
            f"or run this {where} to be asked"
        )
    answers = {id: _read(spoken, survey[id], entry) for id, entry in texts.items()}
    if asked:
        _introduce(spoken)
    known: dict[str, Any] = {}  # strata are the same in all questions, and asked for once
    return answers | {question.id: _ask(spoken, question, no_echo, known) for question in asked}, bool(asked)


def _given(client: Client, arguments: list[str], file: str | None) -> Mapping[str, Any]:
    """Answers from the file and from the command line, by question; texts are not parsed yet."""
    survey = client.survey(record=False)
    if file is None:
        return _parsed(survey, arguments)
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
    """The published fingerprints in a file: the first word of each line; # begins a comment."""
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
    """Texts by question, from entries that are written ID=ANSWER; `of` is what errors call an entry."""
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
    """An answer for the example."""
    return question.protocol.domain.example


def _ask(spoken: Spoken, question: Question, no_echo: bool, known: dict[str, Any]) -> Any:
    """Ask until the entry is an answer to the question; for a record, part by part.

    `known` has the strata that were already asked for; new ones are added.
    """
    domain, text = spoken.domain(question), spoken.text(question)
    if not domain.parts:
        return _prompted(text, domain, partial(_read, spoken, question), no_echo)

    def ask(own: str, name: str, part: Domain) -> Any:
        def read(entry: str) -> Any:
            value = spoken.original(question, {name: from_text(part, entry)})[own]
            return _checked_part(question, question.protocol.domain.parts[own], value)

        if own not in question.protocol.worth().strata:
            return _prompted(f"{text}: {domain.titles_of.get(name, name)}", part, read, no_echo)
        if own not in known:
            clear = own in question.protocol.law().clear
            known[own] = _prompted(f"{name} (sent in clear)" if clear else name, part, read, no_echo and not clear)
        return known[own]

    own_names = question.protocol.domain.parts
    return {own: ask(own, *shown_as) for own, shown_as in zip(own_names, domain.parts.items(), strict=True)}


def _prompted(asked: str, domain: Domain, read: Callable[[str], Any], no_echo: bool) -> Any:
    choices = shown(domain.choices)
    while True:
        text = f"{shown(asked)}\n  {choices}"
        entry = typer.prompt(text, err=True, prompt_suffix=": ", hide_input=no_echo)
        try:
            return read(entry)
        except DeniableError as wrong:
            output.note("please", str(wrong))


def _checked_part(question: Question, part: Domain, value: Any) -> Any:
    _check_numbers(question, part, value)
    encoded(question, value, typed=True, part=part)  # raises an error if it is not an answer
    return value


def _read(spoken: Spoken, question: Question, entry: Any) -> Any:
    """Read an answer. Errors do not repeat it, because standard error may end in a log."""
    value = spoken.read(question, entry)
    _check_numbers(question, question.protocol.domain, value)
    encoded(question, value, typed=isinstance(entry, str))  # raises an error if it is not an answer
    return value


def _check_numbers(question: Question, domain: Domain, value: Any) -> None:
    """Refuse numbers that a domain would clip, and those with a comma: no answer is changed silently."""
    for interval, number in _numbers(domain, value):
        if isinstance(number, str) and _COMMA.fullmatch(number):
            raise DomainError(f"question {question.id!r}: write decimals with a point, such as 38.5")
        if isinstance(number, int | float) and not interval.low <= number <= interval.high and math.isfinite(number):
            raise DomainError(
                f"question {question.id!r} asks for {interval}: for a number outside give the nearest end"
            )


def _numbers(domain: Domain, value: Any) -> Iterator[tuple[Interval, Any]]:
    """The numbers in an answer, each with its interval."""
    if isinstance(domain, Interval):
        yield domain, value
    elif isinstance(value, Mapping):
        inside = domain.interval if isinstance(domain, KeyNumbers) else None
        for name, one in value.items():
            part = domain.parts.get(name, inside)
            if part is not None:
                yield from _numbers(part, one)


# -- what a person is shown: the promise, the law, the bytes, and what became of them ------------------


def _introduce(spoken: Spoken, numbers: bool = False) -> None:
    """Show who asks and what is promised; with `numbers`, also the worst case."""
    survey, terms = spoken.survey, spoken.survey.terms
    if terms is None:  # a client refuses such a survey
        return
    promised = promises(survey, language=spoken.words)
    output.facts(
        [
            ("survey", shown(spoken.texts["name"])),
            ("asked by", shown(terms.owner)),
            ("purpose", shown(spoken.texts["purpose"])),
            ("kept there", promised["kept"]),
            ("fingerprint", survey.fingerprint),
        ]
    )
    output.write("\n")
    for paragraph in paragraphs(promised, worst_case=numbers):
        output.prose(without_marks(paragraph))
    output.write("\n")


def _show_changes(found: Sequence[Edit]) -> None:
    """Say on standard error how a survey differs from the one that it replaces."""
    for change in found:
        if change.what == "replaces":  # the reason for the comparison
            continue
        before, after = (
            epsilon_text(value) if isinstance(value, Fraction) else value for value in (change.before, change.after)
        )
        output.note("changed", f"{shown(change.what)}: {shown(before)} -> {shown(after)} ({change.privacy})")
    worse = any(change.privacy == "weaker" for change in found)
    output.note(
        "warning" if worse else "note",
        f"this survey protects you {'less' if worse else 'no less'} than the one it replaces",
    )


def at_most(ratio: Fraction) -> str:
    """Three digits, never less than the number.

    >>> at_most(Fraction(2718, 1000)), at_most(Fraction(20001, 100)), at_most(Fraction(2))
    ('2.72', '201', '2')
    """
    if ratio > 10**9:
        return f"e^{math.ceil(exact.log(ratio) * 10) / 10:g}"
    digits = max(0, 3 - len(str(math.floor(ratio))))
    scaled = Fraction(math.ceil(ratio * 10**digits), 10**digits)
    return f"{float(scaled):.10g}"


def _law(question: Question) -> None:
    """Show how likely each report is under each answer: as a table if that is small, else as a sentence."""
    protocol, channel = question.protocol, None
    output.heading(f"{question.id}: {protocol.name}, epsilon {epsilon_text(protocol.epsilon)}")
    if protocol.law().forms <= _MOST_FORMS:
        with suppress(DeniableError):  # too many branches to follow them all
            channel = protocol.channel()
    if channel is None:
        related = protocol.guarantee.relation == "any"
        which = "one answer as another" if related else f"one as under the other of {protocol.guarantee.over}"
        sentence = f"No report is more than {at_most(protocol.ratio)} times as likely under {which}."
        support = protocol.law().support
        if support is not None:
            p, q = output.number(float(support.p), 4), output.number(float(support.q), 4)
            sentence += f" It speaks for your answer with probability {p}, and for each other one with {q}."
        output.prose(sentence)
        return
    rows = [
        [shown(label), *(output.number(p, 4) for p in row)]
        for label, row in zip(channel.inputs, channel.rows, strict=True)
    ]
    output.table(["your answer", *(f"sends {label}" for label in channel.outputs)], rows)


def fields(body: bytes, terms: Terms | None = None) -> list[tuple[str, str]]:
    """What is sent, field by field, each with its size: the answers are a small part of it.

    >>> fields(bytes(27))[-1]
    ('answers', '000000 (3 bytes, randomized)')
    """
    if terms is not None and terms.collectors:
        return _share_fields(body, terms.collectors)
    start = HEADER_BYTES + ID_BYTES
    header, id, answers = body[:HEADER_BYTES], body[HEADER_BYTES:start], body[start:]
    size = f"{len(answers)} byte{'' if len(answers) == 1 else 's'}"
    relay = None if terms is None else terms.relay
    size_sent = len(body) if relay is None else len(body) + POINT_BYTES + TAG_BYTES
    where = "" if relay is None else f", id and answers sealed, to the relay {relay.host}"
    return [
        ("leaves", f"{size_sent} bytes in all{where}, over HTTP without cookies or user agent"),
        ("header", f"{header[:4].hex()} {header[4:].hex()} ({HEADER_BYTES} bytes: format, epoch)"),
        ("id", f"{id.hex()} ({ID_BYTES} bytes, random, so that a repeat counts once)"),
        ("answers", f"{answers.hex()} ({size}, randomized)"),
    ]


def _share_fields(body: bytes, collectors: Sequence[str]) -> list[tuple[str, str]]:
    """The same if each collector gets a share: the id is the same for all of them."""
    start, bodies = HEADER_BYTES + ID_BYTES, shares_of(body, len(collectors))
    whole = f"{len(body)} bytes in all, {len(bodies[0])} to each of {len(collectors)} collectors"
    id = bodies[0][HEADER_BYTES:start].hex()
    return [
        ("leaves", f"{whole}, over HTTP without cookies or user agent"),
        ("header", f"{bodies[0][:4].hex()} {bodies[0][4:HEADER_BYTES].hex()} ({HEADER_BYTES} bytes: format, epoch)"),
        ("id", f"{id} ({ID_BYTES} bytes, random, the same for all collectors)"),
        *(
            (f"to {host(address)}", f"{one[start:].hex()} ({len(one) - start} bytes, random numbers by themselves)")
            for address, one in zip(collectors, bodies, strict=True)
        ),
    ]


def state(submission: Submission, reason: str = "") -> str:
    """What happened to a submission, in words; `reason` is why it still waits."""
    if submission.state == "queued":
        return "waiting to be sent" + (f" ({reason})" if reason else "")
    if submission.state == "dropped":
        mine = submission.reason == OPTED_OUT
        return "dropped, because this device opted out" if mine else f"refused by the service: {submission.words}"
    return submission.state


def _report(client: Client, receipt: Receipt, earlier: Submission | None) -> None:
    """Show what was done now, or in an earlier run."""
    spending = client.budget()
    spent, cap = epsilon_text(spending.spent), epsilon_text(spending.cap)
    least = spending.delta_spent, spending.delta_cap
    deltas = f", and delta {exact.canonical(least[0])} of {exact.canonical(least[1])}," if spending.delta_cap else ""
    facts = [
        ("state", state(receipt.submission, receipt.reason)),
        ("budget", f"{spent} of {cap}{deltas} spent in the group {shown(spending.group)} of {shown(spending.owner)}"),
    ]
    if receipt.fresh:
        output.facts(fields(receipt.body, client.terms()) + facts)
        return
    begins = _next_epoch(client, receipt.epoch)
    waited = earlier is not None and earlier.state == "queued"
    what = "This epoch" if begins else "The survey"
    output.prose(
        f"{what} was answered already, and nothing new was drawn"
        + ("; what was waiting was sent now. " if waited and receipt.state == "sent" else " or sent. ")
        + (f"The next epoch begins at {begins}." if begins else "The survey takes no more answers from this device.")
    )
    output.facts([("earlier submission", facts[0][1]), facts[1]])


def _document(client: Client, receipt: Receipt) -> None:
    """Print the same as JSON."""
    more = {"next_epoch": _next_epoch(client, receipt.epoch), "budget": client.budget().spec()}
    reason = receipt.submission.reason or receipt.reason
    output.document(receipt.spec() | {"reason": reason} | more)


def _next_epoch(client: Client, epoch: int) -> str | None:
    """When this device may answer again, by the calendar and by the number of answers; None for never."""
    terms = client.terms()
    begins = terms.epochs.start(epoch + 1)
    over = begins >= terms.expires or len(client.history()) >= terms.longitudinal.epochs
    return None if over else write_time(begins)

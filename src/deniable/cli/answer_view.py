"""What `deniable answer` shows a person: the promise, the law, the bytes, and what became of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING

from deniable.channels.levels import epsilon_text
from deniable.cli import output
from deniable.cli.output import shown
from deniable.errors import DeniableError
from deniable.surveys.promises import promises

if TYPE_CHECKING:
    from deniable.collect.client import Client, Receipt, Submission
    from deniable.surveys import Question, Survey
    from deniable.surveys.diff import Change

_MOST_FORMS = 16


def introduce(survey: Survey, numbers: bool = False) -> None:
    """Who asks and what is promised; with `numbers` also by which factor odds change."""
    terms = survey.terms
    if terms is None:  # a client refuses such a survey
        return
    promised = promises(survey)
    output.facts(
        [
            ("survey", shown(survey.name)),
            ("asked by", shown(terms.owner)),
            ("purpose", shown(terms.purpose)),
            ("kept there", promised["kept"]),
            ("fingerprint", survey.fingerprint),
        ]
    )
    output.write("\n")
    rest = ("factor", "questions") if numbers else ()
    for names in (("band", "sure"), ("people",), ("seen",), ("often",), ("device",), ("address",), rest):
        said = " ".join(promised[name] for name in names if name in promised)
        if said:
            output.prose(said)
    output.write("\n")


def changes(found: Sequence[Change]) -> None:
    """How a survey differs from the one that it replaces, on the error stream: it comes before a question."""
    for change in found:
        if change.what == "replaces":  # which is why they are compared
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
        from deniable import exact

        return f"e^{math.ceil(exact.log(ratio) * 10) / 10:g}"
    digits = max(0, 3 - len(str(math.floor(ratio))))
    scaled = Fraction(math.ceil(ratio * 10**digits), 10**digits)
    return f"{float(scaled):.10g}"


def law(question: Question) -> None:
    """How likely each report is under each answer: a table where that is small, or else a sentence."""
    from deniable.domains import Strings
    from deniable.protocols import PureProtocol

    protocol, channel = question.protocol, None
    output.heading(f"{question.id}: {protocol.name}, epsilon {epsilon_text(protocol.epsilon)}")
    if protocol.report_forms <= _MOST_FORMS and not isinstance(protocol.domain, Strings):
        with suppress(DeniableError):  # too many branches to follow them all
            channel = protocol.channel()
    if channel is None:
        sentence = f"No report is more than {at_most(protocol.ratio)} times as likely under one answer as another."
        if isinstance(protocol, PureProtocol):
            p, q = output.number(float(protocol.p), 4), output.number(float(protocol.q), 4)
            sentence += f" It speaks for your answer with probability {p}, and for each other one with {q}."
        output.prose(sentence)
        return
    rows = [
        [shown(label), *(output.number(p, 4) for p in row)]
        for label, row in zip(channel.inputs, channel.rows, strict=True)
    ]
    output.table(["your answer", *(f"sends {label}" for label in channel.outputs)], rows)


def fields(body: bytes) -> list[tuple[str, str]]:
    """What leaves, field by field, each with its size: the answers are a small part of it.

    >>> fields(bytes(27))[-1]
    ('answers', '000000 (3 bytes, randomized)')
    """
    from deniable.collect.wire import HEADER_BYTES, ID_BYTES

    start = HEADER_BYTES + ID_BYTES
    header, id, answers = body[:HEADER_BYTES], body[HEADER_BYTES:start], body[start:]
    size = f"{len(answers)} byte{'' if len(answers) == 1 else 's'}"
    return [
        ("leaves", f"{len(body)} bytes in all, over HTTP without cookies or user agent"),
        ("header", f"{header[:4].hex()} {header[4:].hex()} ({HEADER_BYTES} bytes: format, epoch)"),
        ("id", f"{id.hex()} ({ID_BYTES} bytes, random, so that a repeat counts once)"),
        ("answers", f"{answers.hex()} ({size}, randomized)"),
    ]


def state(submission: Submission, reason: str = "") -> str:
    """What became of a submission, in words; `reason` is why it still waits."""
    from deniable.collect.client.records import OPTED_OUT

    if submission.state == "queued":
        return "waiting to be sent" + (f" ({reason})" if reason else "")
    if submission.state == "dropped":
        mine = submission.reason == OPTED_OUT
        return "dropped, because this device opted out" if mine else f"refused by the service: {submission.words}"
    return submission.state


def report(client: Client, receipt: Receipt, earlier: Submission | None) -> None:
    """What was done now, or before."""
    spending = client.budget()
    spent, cap = epsilon_text(spending.spent), epsilon_text(spending.cap)
    facts = [
        ("state", state(receipt.submission, receipt.reason)),
        ("budget", f"{spent} of {cap} spent in the group {shown(spending.group)} of {shown(spending.owner)}"),
    ]
    if receipt.fresh:
        output.facts(fields(receipt.body) + facts)
        return
    begins = next_epoch(client, receipt.epoch)
    waited = earlier is not None and earlier.state == "queued"
    output.prose(
        "This epoch was answered already, and nothing new was drawn"
        + ("; what was waiting was sent now. " if waited and receipt.state == "sent" else " or sent. ")
        + (f"The next epoch begins at {begins}." if begins else "The survey takes no more answers from this device.")
    )
    output.facts([("earlier submission", facts[0][1]), facts[1]])


def document(client: Client, receipt: Receipt) -> None:
    """The same as JSON."""
    more = {"next_epoch": next_epoch(client, receipt.epoch), "budget": client.budget().spec()}
    reason = receipt.submission.reason or receipt.reason
    output.document(receipt.spec() | {"reason": reason} | more)


def next_epoch(client: Client, epoch: int) -> str | None:
    """When this device may answer again, as far as the calendar and the number of answers go."""
    from deniable.surveys.terms import write_time

    terms = client.terms()
    begins = terms.epochs.start(epoch + 1)
    over = begins >= terms.expires or len(client.history()) >= terms.longitudinal.epochs
    return None if over else write_time(begins)

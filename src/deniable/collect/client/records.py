"""The device's plain data: submissions, receipts and budgets, and its refusals.

No message contains an answer.

Also turns an answer of a person or a program into the bytes of its report.

Once       drawing a report reads the answer once: an invalid answer is refused there, before anything is recorded
Messages   name questions and choices, never the answer: messages may be logged or sent anywhere
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable import exact
from deniable.collect import wire
from deniable.domains import Domain
from deniable.errors import DeniableError, DomainError, LabelError, ValueRefused
from deniable.privacy import Account
from deniable.randomness import SYSTEM, Tied
from deniable.specs import is_fingerprint, short
from deniable.surveys import Question, Survey
from deniable.surveys.diff import Edit, weaker
from deniable.surveys.terms import write_time

QUEUED, SENT, DROPPED, WITHDRAWN = "queued", "sent", "dropped", "withdrawn"
OPTED_OUT = "optedOut"
DELETED, NOT_HELD = "deleted", "notHeld"
"""A service's answers to the request to delete a report."""

_WORDS = {
    OPTED_OUT: "this device has opted out",
    NOT_HELD: "it was taken back before it had arrived",
    wire.BAD_PAYLOAD: "the service does not take it for an answer to this survey",
    wire.EPOCH_CLOSED: "its epoch is closed",
    wire.EPOCH_TOO_EARLY: "its epoch has not begun at the service, so look at this device's clock",
    wire.EPOCH_TOO_OLD: "its epoch is over",
    wire.NOT_STARTED: "the survey has not begun at the service",
    "surveyClosed": "the survey takes no more answers",
}


@dataclass(frozen=True)
class Submission:
    """One epoch's answers as they leave the device: the exact bytes while they wait, and their outcome.

    The state is "queued" (waiting to be sent), "sent" (the service has accepted it), "dropped" (the service has refused
    it, or the device has opted out) or "withdrawn" (the device has left). Only queued submissions have bytes: they are
    erased as soon as the outcome is known.

    Args:
        survey: Fingerprint of the survey.
        epoch: The epoch.
        id: Empty once erased: with the bytes, or if the service keeps reports, when `id_until` has passed.
        body: All that is sent: header, id and randomized answers. Empty once erased.
        state: "queued", "sent", "dropped" or "withdrawn".
        reason: Why it was dropped: the server's word, or "optedOut". For a sent one, "deleted" or "notHeld" after
            `delete_sent`.
        epsilon: What was debited for it; nothing if every value was paid for before.
        delta: What was debited of the budget's delta.
        due: Not sent before this moment.
        id_until: Until when the id is kept, so that the report can be deleted at a service that keeps reports; 0 if it
            is not kept longer than the bytes.
    """

    survey: str
    epoch: int
    id: bytes
    body: bytes
    state: str
    reason: str = ""
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    due: float = 0.0
    id_until: float = 0.0

    @property
    def erased(self) -> bool:
        """Whether nothing of what was drawn is left here."""
        return not self.body

    @property
    def words(self) -> str:
        """Why it was dropped, for a person; an unknown word stays as it is.

        >>> Submission("ab" * 32, 3, b"", b"", DROPPED, "epochClosed").words
        'its epoch is closed (epochClosed)'
        """
        known = _WORDS.get(self.reason.rpartition(" ")[2])
        return self.reason if known is None else f"{known} ({self.reason})"

    def spec(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "survey": self.survey,
            "epoch": self.epoch,
            "id": self.id.hex(),
            "bytes": self.body.hex(),
            "state": self.state,
            "reason": self.reason,
            "epsilon": exact.canonical(self.epsilon),
            "delta": exact.canonical(self.delta),
            "id_until": write_time(int(self.id_until)) if self.id_until else None,
        }


@dataclass(frozen=True)
class Receipt:
    """What `answer` did.

    Args:
        submission: The submission of this epoch.
        fresh: False if this epoch was answered before: then the submission is that earlier one, and nothing was drawn.
        reason: Why it is still queued or was dropped, in words.
        body: Every byte that is waiting or has just left the device: header, id and randomized answers. The ledger does
            not keep what was sent, so this is empty if that was earlier.
    """

    submission: Submission
    fresh: bool
    reason: str = ""
    body: bytes = b""

    @classmethod
    def of(cls, submission: Submission, fresh: bool, waiting: str, body: bytes = b"") -> Receipt:
        """With the reason that belongs to its state; `waiting` is why it could not be sent."""
        reasons = {QUEUED: waiting, DROPPED: submission.words}
        return cls(submission, fresh, reasons.get(submission.state, ""), body or submission.body)

    @property
    def epoch(self) -> int:
        return self.submission.epoch

    @property
    def state(self) -> str:
        return self.submission.state

    def spec(self) -> dict[str, Any]:
        """For JSON."""
        id = self.body[wire.HEADER_BYTES : wire.HEADER_BYTES + wire.ID_BYTES] or self.submission.id
        return self.submission.spec() | {"id": id.hex(), "bytes": self.body.hex(), "fresh": self.fresh}


@dataclass(frozen=True)
class Deleted:
    """The outcome of `delete_sent`, as numbers of reports.

    Args:
        deleted: The service held them and has deleted them.
        not_held: The service does not hold them, or no longer holds them.
        failed: The service could not be asked; their ids are kept to try again.
        reason: Why the last one failed.
    """

    deleted: int = 0
    not_held: int = 0
    failed: int = 0
    reason: str = ""


@dataclass(frozen=True)
class OptOuts:
    """What a device has opted out of.

    Args:
        everything: Whether it has opted out of all surveys.
        surveys: Fingerprints of single surveys that it has opted out of, if it has not opted out of everything.
        but: Fingerprints of surveys that it takes part in although it has opted out of everything.
    """

    everything: bool = False
    surveys: tuple[str, ...] = ()
    but: tuple[str, ...] = ()

    def spec(self) -> dict[str, Any]:
        """For JSON."""
        return {"everything": self.everything, "surveys": list(self.surveys), "but": list(self.but)}


@dataclass(frozen=True)
class Spending:
    """The lifetime budget of one owner's group on this device.

    Args:
        owner: Owner of the surveys.
        group: Name of the budget group.
        cap: The smallest cap that any answered survey of the group has named.
        surveys: Fingerprint and spending for each survey.
        relation: The pairs of inputs for which epsilon holds; a group has one relation.
        delta_cap: The smallest delta that any answered survey of the group has named.
        delta_spent: What is spent of the delta.
    """

    owner: str
    group: str
    cap: Fraction
    surveys: tuple[tuple[str, Fraction], ...] = ()
    relation: str = "any"
    delta_cap: Fraction = Fraction(0)
    delta_spent: Fraction = Fraction(0)

    @property
    def account(self) -> Account:
        return Account(self.cap, self.spent)

    @property
    def spent(self) -> Fraction:
        return sum((epsilon for _, epsilon in self.surveys), Fraction(0))

    @property
    def left(self) -> Fraction:
        return self.account.left

    def spec(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "owner": self.owner,
            "group": self.group,
            "cap": exact.canonical(self.cap),
            "spent": exact.canonical(self.spent),
            "left": exact.canonical(self.left),
            "relation": self.relation,
            "delta_cap": exact.canonical(self.delta_cap),
            "delta_spent": exact.canonical(self.delta_spent),
            "surveys": {survey: exact.canonical(epsilon) for survey, epsilon in self.surveys},
        }


# -- refusals -----------------------------------------------------------------------------------------


class LedgerError(DeniableError, RuntimeError):
    """The ledger cannot be used: damaged, foreign, busy, or open to others. Nothing is drawn or sent."""


class Refused(DeniableError, RuntimeError):
    """An answer is not accepted. This depends on the calendar and on past participation, never on the answer."""


class NotOpen(Refused):
    """The survey is not open yet, or has ended."""


class OptedOut(Refused):
    """The person does not take part.

    Args:
        way_back: How to take part again, for the message.
    """

    def __init__(self, way_back: str = "opt_in() takes part again") -> None:
        super().__init__(f"this device has opted out, so nothing was recorded or sent: {way_back}")


class BudgetSpent(Refused):
    """No more may be revealed: the lifetime epsilon or the number of answers is used up."""


class TookPart(Refused):
    """This device has answered another round of the same campaign, and may answer only one.

    Args:
        answered: Number of the round that was answered.
        asked: Number of the round that was refused.
    """

    def __init__(self, answered: int, asked: int) -> None:
        self.answered, self.asked = answered, asked
        super().__init__(
            f"you took part in round {answered}, and this is round {asked} of the same collection: one device answers "
            "one round, so nothing was drawn or sent"
        )


class OtherRelation(Refused):
    """The survey's epsilon holds for another relation than its budget group's: the two cannot be added."""


class SuccessorDiffers(Refused):
    """The survey replaces one that this device has pinned, and nobody has agreed to the differences yet.

    Args:
        predecessor: Fingerprint of the pinned survey.
        changes: The differences, each with its effect on privacy: "weaker", "stronger" or "neutral".
    """

    def __init__(self, predecessor: str, changes: Sequence[Edit]) -> None:
        self.predecessor = predecessor
        """The fingerprint of the pinned survey."""
        self.changes = tuple(changes)
        """The differences, each with its effect on privacy: "weaker", "stronger" or "neutral"."""
        worse = "; ".join(change.what for change in weaker(list(changes)))
        how = f"with weaker privacy in: {worse}" if worse else "with privacy no weaker"
        super().__init__(
            f"this survey replaces {predecessor[:12]}, which this device knows, and differs from it, {how}. Nothing "
            "was drawn or sent: look at `changes`, then answer with accept_changes=True"
        )


class Untrusted(DeniableError, ValueError):
    """The survey is not the one that was pinned, or the server must not be contacted."""


def check_fingerprint(given: Any) -> str:
    """The fingerprint; raises Untrusted for anything else."""
    if not is_fingerprint(given):
        raise Untrusted("a survey is named by its fingerprint, 64 hexadecimal digits in lower case")
    return given


# -- what a device keeps of its answers ---------------------------------------------------------------


_MOST_IDS = 8


def check_questions(survey: Survey, answers: Mapping[str, Any]) -> None:
    """Refuse answers that leave out a question or name another one: an omission would reveal something."""
    if not isinstance(answers, Mapping):
        raise LabelError("answers are given by question: {id: answer, ...}")
    ids = [question.id for question in survey]
    for id in answers:
        check_id(survey, id)
    missing = [id for id in ids if id not in answers]
    if missing:
        raise LabelError(
            f"there is no answer to {listed(missing)}: every question of the survey ({listed(ids)}) needs one, since "
            "silence would tell something"
        )


def check_id(survey: Survey, id: Any) -> None:
    """Refuse an id that no question of the survey has."""
    ids = [question.id for question in survey]
    if id not in ids:
        raise LabelError(f"the survey has no question {short(id)}: its questions are {listed(ids)}")


def listed(names: Iterable[str]) -> str:
    """Names with commas, the first few of many.

    >>> listed("abc"), listed("abcdefghijk")
    ('a, b, c', 'a, b, c, d, e, f, g, h, ...')
    """
    first = list(names)
    return ", ".join(first[:_MOST_IDS] + (["..."] if len(first) > _MOST_IDS else []))


def drawn(survey: Survey, answers: Mapping[str, Any], id: bytes) -> bytes:
    """The reports of all questions, concatenated, from the system's generator; `id` is the submission's.

    Raises DomainError for an invalid answer.
    """
    reports = []
    for question in survey:
        with _named(question):
            protocol, bits = question.protocol, Tied(SYSTEM, wire.public_number(survey.fingerprint, question.id, id))
            encoded = protocol.domain.encode_one(answers[question.id])
            reports.append(protocol.report_encoded(encoded, bits if protocol.law().public is not None else None))
    return b"".join(reports)


def encoded(question: Question, answer: Any, typed: bool = False, part: Domain | None = None) -> Any:
    """An answer in the form of its protocol; raises DomainError for an invalid answer.

    The message has the choices, never the answer; with `typed` it does not mention that the answer is text. `part` is
    the domain of a part of the answer, if only that is given.
    """
    with _named(question, typed):
        return (part or question.protocol.domain).encode_one(answer)


@contextmanager
def _named(question: Question, typed: bool = False) -> Iterator[None]:
    """Errors about an answer as errors about the answer to this question."""
    try:
        yield
    except DomainError as wrong:
        complaint = wrong.about("the answer") if isinstance(wrong, ValueRefused) else str(wrong)
        if typed:
            complaint = re.sub(r"^the answer, an? \w+,", "the answer", complaint)
        raise DomainError(f"question {question.id!r}: {complaint}") from None


def from_text(domain: Domain, entry: str) -> Any:
    """The answer that a person has typed, as it is written in a CSV: 1 or "1", true or "True"."""
    return domain.reader(typed=False)(entry)


def preview(survey: Survey, epoch: int, answers: Mapping[str, Any]) -> bytes:
    """A body like the one that `Client.answer` would send, without a ledger: it is not recorded or sent."""
    check_questions(survey, answers)
    id = secrets.token_bytes(wire.ID_BYTES)
    return body_of(survey, epoch, id, drawn(survey, answers, id))


def body_of(survey: Survey, epoch: int, id: bytes, reports: bytes) -> bytes:
    """The bytes that wait to be sent: one body, or one with a share for each collector that the survey names."""
    body = wire.encode(epoch, id, reports, survey.report_bytes)
    collectors = 0 if survey.terms is None else len(survey.terms.collectors)
    return wire.shared(body, collectors) if collectors else body

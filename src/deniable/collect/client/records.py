"""What a ledger tells: submissions and budgets, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable import exact
from deniable.collect import wire
from deniable.privacy import Account

QUEUED, SENT, DROPPED, WITHDRAWN = "queued", "sent", "dropped", "withdrawn"
OPTED_OUT = "optedOut"

_WORDS = {
    OPTED_OUT: "this device has opted out",
    wire.BAD_PAYLOAD: "the service does not take it for an answer to this survey",
    wire.EPOCH_CLOSED: "its epoch is closed",
    wire.EPOCH_TOO_EARLY: "its epoch has not begun at the service, so look at this device's clock",
    wire.EPOCH_TOO_OLD: "its epoch is over",
    wire.NOT_STARTED: "the survey has not begun at the service",
    "surveyClosed": "the survey takes no more answers",
}


@dataclass(frozen=True)
class Submission:
    """One epoch's answers as they leave the device: the very bytes, and what became of them.

    The state is "queued" (waiting to be sent), "sent" (the service has taken it), "dropped" (the service has refused
    it, or the device has opted out) or "withdrawn" (its bytes are deleted here, whether they were sent or not).
    """

    survey: str
    epoch: int
    id: bytes
    body: bytes
    """All that is sent: header, id and randomized answers. Empty once withdrawn."""
    state: str
    reason: str = ""
    """Why it was dropped: the server's word, or "optedOut"."""
    epsilon: Fraction = Fraction(0)
    """What was debited for it; nothing where every value was paid for before."""
    due: float = 0.0
    """Not sent before this moment."""

    @property
    def words(self) -> str:
        """Why it was dropped, for a person; a word that is not known here stays as it is.

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
        }


@dataclass(frozen=True)
class Receipt:
    """What `answer` did."""

    submission: Submission
    fresh: bool
    """False where this epoch was answered before: then the submission is that earlier one, and nothing was drawn."""
    reason: str = ""
    """Why it is still queued or was dropped, in words."""

    @classmethod
    def of(cls, submission: Submission, fresh: bool, waiting: str) -> Receipt:
        """With the reason that belongs to its state; `waiting` is why it could not be sent."""
        reasons = {QUEUED: waiting, DROPPED: submission.words}
        return cls(submission, fresh, reasons.get(submission.state, ""))

    @property
    def epoch(self) -> int:
        return self.submission.epoch

    @property
    def state(self) -> str:
        return self.submission.state

    @property
    def body(self) -> bytes:
        """Every byte that leaves, or has left, the device for it: header, id and randomized answers."""
        return self.submission.body


@dataclass(frozen=True)
class OptOuts:
    """What a device takes no part in."""

    everything: bool = False
    surveys: tuple[str, ...] = ()
    """Fingerprints of single surveys that it has opted out of, where it has not opted out of everything."""
    but: tuple[str, ...] = ()
    """Fingerprints of surveys that it takes part in although it has opted out of everything."""

    def spec(self) -> dict[str, Any]:
        """For JSON."""
        return {"everything": self.everything, "surveys": list(self.surveys), "but": list(self.but)}


@dataclass(frozen=True)
class Spending:
    """A group's lifetime budget on this device."""

    group: str
    cap: Fraction
    """The smallest cap that any answered survey of the group has named."""
    surveys: tuple[tuple[str, Fraction], ...] = ()
    """Fingerprint and what was spent on it, for each survey."""

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
            "group": self.group,
            "cap": exact.canonical(self.cap),
            "spent": exact.canonical(self.spent),
            "left": exact.canonical(self.left),
            "surveys": {survey: exact.canonical(epsilon) for survey, epsilon in self.surveys},
        }

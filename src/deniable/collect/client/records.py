"""What a ledger tells: submissions and budgets, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable import exact
from deniable.privacy import Account

QUEUED, SENT, DROPPED, WITHDRAWN = "queued", "sent", "dropped", "withdrawn"


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
    """Why it is still queued, if it is."""

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

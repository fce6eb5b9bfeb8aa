"""What a device refuses, and why. No message contains an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable.errors import DeniableError
from deniable.specs import is_fingerprint
from deniable.surveys.diff import Change, weaker


class LedgerError(DeniableError, RuntimeError):
    """A ledger that cannot be used: damaged, foreign, busy, or open to others. Nothing is drawn or sent."""


class Refused(DeniableError, RuntimeError):
    """An answer that is not taken. It depends on the calendar and on past participation, never on the answer."""


class NotOpen(Refused):
    """A survey that is not open yet, or not any more."""


class OptedOut(Refused):
    """The person does not take part."""

    def __init__(self, way_back: str = "opt_in() takes part again") -> None:
        super().__init__(f"this device has opted out, so nothing was recorded or sent: {way_back}")


class BudgetSpent(Refused):
    """Nothing may be given away any more: the lifetime epsilon or the number of answers is used up."""


class SuccessorDiffers(Refused):
    """A survey that replaces one that this device has pinned, and nobody has agreed to the differences yet."""

    def __init__(self, predecessor: str, changes: Sequence[Change]) -> None:
        self.predecessor = predecessor
        """The fingerprint of the pinned survey."""
        self.changes = tuple(changes)
        """What is different, each with what it does to privacy: "weaker", "stronger" or "neutral"."""
        worse = "; ".join(change.what for change in weaker(list(changes)))
        how = f"with weaker privacy in: {worse}" if worse else "with privacy no weaker"
        super().__init__(
            f"this survey replaces {predecessor[:12]}, which this device knows, and differs from it, {how}. Nothing "
            "was drawn or sent: look at `changes`, then answer with accept_changes=True"
        )


class Untrusted(DeniableError, ValueError):
    """A survey that is not the one that was pinned, or a server that must not be talked to."""


def check_fingerprint(given: Any) -> str:
    """The fingerprint, or a refusal of what is none."""
    if not is_fingerprint(given):
        raise Untrusted("a survey is named by its fingerprint, 64 hexadecimal digits in lower case")
    return given

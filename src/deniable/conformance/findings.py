"""What a check finds: passed, failed with a reason, or waived with a reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from deniable.errors import DeniableError

Status = Literal["passed", "failed", "waived"]


class ConformanceError(DeniableError, AssertionError):
    """A mechanism that does not do what it promises."""


def require(holds: Any, finding: str) -> None:
    """Raise ConformanceError with the finding unless it holds. Not an assert: `python -O` must not drop a check."""
    if not holds:
        raise ConformanceError(finding)


def raises(kind: type[Exception], function: Callable[..., Any], *given: Any) -> bool:
    """Whether a call raises this kind of exception."""
    try:
        function(*given)
    except kind:
        return True
    return False


def refuses(function: Callable[..., Any], *given: Any, secrets: tuple[str, ...] = ("s3cret", "987654321")) -> None:
    """Raise ConformanceError unless a call refuses what it is given, in words that do not repeat a secret."""
    try:
        function(*given)
    except DeniableError as refusal:
        told = any(secret in str(refusal) for secret in secrets)
        require(not told, "the message repeats the answer")
        return
    raise ConformanceError("an answer outside the domain was accepted")


@dataclass(frozen=True)
class Finding:
    """What one check found about one instance."""

    subject: str
    check: str
    status: Status
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Duty:
    """One check of one instance, to be run."""

    subject: str
    check: str
    call: Callable[[], None]
    waived: str = ""
    """Why the check does not apply, if it does not."""

    def __str__(self) -> str:
        return f"{self.check}-{self.subject}"

    def run(self) -> Finding:
        """Run the check; whatever it raises is a finding, for a protocol of somebody else's may raise anything."""
        if self.waived:
            return Finding(self.subject, self.check, "waived", self.waived)
        begun = time.perf_counter()
        reason = ""
        try:
            self.call()
        except ConformanceError as found:
            reason = str(found)
        except Exception as wrong:
            reason = f"it raised {type(wrong).__name__}: {wrong}"
        spent = time.perf_counter() - begun
        return Finding(self.subject, self.check, "failed" if reason else "passed", reason, spent)


def run(duties: Iterable[Duty]) -> Iterator[Finding]:
    """The findings, one after the other."""
    return (duty.run() for duty in duties)


def listed(
    subjects: Iterable[tuple[str, Any]],
    checks: Iterable[Callable[[Any], None]],
    waived: Callable[[Any], Any],
) -> Iterator[Duty]:
    """Every check of every subject, given with its name."""
    checks = list(checks)
    for name, subject in subjects:
        reasons = waived(subject)
        for check in checks:
            short = check.__name__.removeprefix("check_")
            yield Duty(name, short, lambda check=check, subject=subject: check(subject), reasons.get(short, ""))  # type: ignore[misc]

"""The parts of a check: its finding (passed, failed or waived with a reason), and chi-square tests.

The tests state how often they are wrong, and how many draws they need to detect a wrong law. ALPHA is the
false-positive rate of one test: with a thousand tests, one run in a thousand fails by chance (and seeds are fixed, so a
run that passes keeps passing).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

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
    """What one check found about one instance.

    Args:
        subject: The instance.
        check: Name of the check.
        status: "passed", "failed" or "waived".
        reason: Why it failed or does not apply.
        seconds: Duration.
    """

    subject: str
    check: str
    status: Status
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Duty:
    """One check of one instance, to be run.

    Args:
        subject: The instance.
        check: Name of the check.
        call: Runs the check; raises an error if it fails.
        waived: Why the check does not apply, if it does not.
    """

    subject: str
    check: str
    call: Callable[[], None]
    waived: str = ""

    def __str__(self) -> str:
        return f"{self.check}-{self.subject}"

    def run(self) -> Finding:
        """Run the check; any exception is a finding, because a protocol of another package may raise anything."""
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
    """The findings, one after the other.

    Args:
        duties: The checks to run.

    Returns:
        The findings, in the same order, each computed when it is requested.
    """
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


ALPHA = 1e-6
MISS = 1e-6  # how often the test may overlook the wrong law that it was sized for


def p_value(counts: ArrayLike, law: ArrayLike) -> float:
    """Pearson's chi-square; cells that expect fewer than 10 are pooled, an impossible outcome is fatal."""
    observed, expected = np.asarray(counts, dtype=float), np.asarray(law, dtype=float)
    if (observed[expected == 0] > 0).any():
        return 0.0
    expected = expected / expected.sum() * observed.sum()
    order = np.argsort(expected)
    small = int((np.cumsum(expected[order]) < 10).sum())
    if small:
        pooled = order[: small + 1]
        rest = order[small + 1 :]
        observed = np.append(observed[rest], observed[pooled].sum())
        expected = np.append(expected[rest], expected[pooled].sum())
    if observed.size < 2:
        return 1.0
    keep = expected > 0
    statistic = float(((observed[keep] - expected[keep]) ** 2 / expected[keep]).sum())
    return float(stats.chi2.sf(statistic, keep.sum() - 1))


def accepts(counts: ArrayLike, law: ArrayLike) -> bool:
    return p_value(counts, law) >= ALPHA


def follows(batches: Iterable[NDArray[np.int64]], law: ArrayLike, early: bool = False) -> bool:
    """Whether draws, whose outcomes are counted batch by batch, follow the law.

    With `early` the answer is no at the first batch that shows it: a wrong law, for which a test was sized to overlook
    it once in a million, is nearly always seen in the first half.
    """
    counts = np.zeros(np.size(law), dtype=np.int64)
    for batch in batches:
        counts += batch
        if early and not accepts(counts, law):
            return False
    return accepts(counts, law)


def eighths(n: int) -> list[int]:
    """Sizes of the batches of n draws.

    >>> eighths(20)
    [3, 3, 3, 3, 3, 3, 2]
    """
    return [min(-(-n // 8), n - start) for start in range(0, n, -(-n // 8))]


def draws_needed(law: ArrayLike, wrong: ArrayLike) -> int:
    """How many draws from `wrong` make the test of `law` fail, except once in a million."""
    p, q = np.asarray(law, dtype=float), np.asarray(wrong, dtype=float)
    cells = p > 0
    distance = float(((p - q)[cells] ** 2 / p[cells]).sum())
    freedom = int(cells.sum()) - 1
    critical = stats.chi2.isf(ALPHA, freedom)
    shift = optimize.brentq(lambda s: stats.ncx2.cdf(critical, freedom, s) - MISS, 1.0, 1e5)
    return int(np.ceil(1.1 * shift / distance))


def tabulate(outcomes: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return np.bincount(outcomes, minlength=size)

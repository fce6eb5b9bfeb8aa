"""An estimate with everything that belongs beside it: errors, intervals, and how far both can be trusted.

noise floor   the half-width of the interval of an answer that nobody gave, in the worst case over what the others gave:
              the smallest share that can be told from none
notes         memoized answers repeat their noise, so that epochs added up have the noise of one of them, and not the
              smaller one that the formulas of independent reports give
poisoning     m forged reports among n move a share by at most (m / n) / (p - q), for protocols that have p and q
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable import exact
from deniable.domains import Strings
from deniable.errors import SpecError
from deniable.labels import label_spec, text
from deniable.protocols import Estimate, Protocol, Tally
from deniable.protocols.estimate import Floats, quantile
from deniable.protocols.frequency.open_text import TextEstimate, TextProtocol
from deniable.protocols.pure import PureProtocol
from deniable.surveys.terms import Longitudinal, Terms

REPEATED = (
    "answers are memoized and repeat their noise: over several epochs the errors are larger than shown, so read one "
    "epoch at a time"
)
NUMBERS = ("count", "frequency", "stderr", "low", "high")
COLUMNS = ("question", "label", *NUMBERS, "n", "level", "simultaneous", "method", "protocol", "unlisted")


@dataclass(frozen=True)
class Result:
    """An estimate with the errors and intervals that were asked for."""

    estimate: Estimate
    level: float
    stderr: Floats
    ends: Floats
    simultaneous: bool = False
    """Whether the intervals hold for all answers at once."""

    @property
    def numbers(self) -> list[list[float]]:
        """One row an answer, under the names of `NUMBERS`."""
        estimate = self.estimate
        return np.column_stack([estimate.counts, estimate.frequencies, self.stderr, self.ends]).tolist()  # type: ignore[no-any-return]

    def rows(self, id: str) -> list[list[Any]]:
        """One row an answer, under the names of `COLUMNS`."""
        estimate = self.estimate
        unlisted = estimate.unlisted if isinstance(estimate, TextEstimate) else None
        same = [estimate.n, self.level, self.simultaneous, estimate.method, estimate.protocol, unlisted]
        labels = map(text, estimate.labels)
        return [[id, label, *row, *same] for label, row in zip(labels, self.numbers, strict=True)]

    def description(self, id: str, question: str) -> dict[str, Any]:
        """The result as JSON values."""
        estimate = self.estimate
        answers = [
            {"label": label_spec(label)} | {name: finite(value) for name, value in zip(NUMBERS, row, strict=True)}
            for label, row in zip(estimate.labels, self.numbers, strict=True)
        ]
        content: dict[str, Any] = {"id": id, "text": question, "protocol": estimate.protocol}
        content |= {"method": estimate.method, "n": estimate.n, "level": self.level, "answers": answers}
        if isinstance(estimate, TextEstimate):
            content |= {"unlisted": estimate.unlisted, "unlisted_stderr": estimate.unlisted_stderr}
        return content


def result(
    protocol: Protocol,
    tally: Tally,
    level: float = 0.95,
    consistent: str | None = None,
    candidates: Sequence[str] | None = None,
    simultaneous: bool = False,
    population: bool = False,
) -> Result:
    """Estimate from a tally; open text needs the candidates to look for.

    >>> from deniable.protocols import GRR
    >>> smoke = GRR(["yes", "no"], epsilon=1)
    >>> found = result(smoke, Tally(smoke.fingerprint, 1000, [600, 400]))
    >>> [round(number, 2) for number in found.numbers[0]], round(noise_floor(smoke, 1000, 0.95), 2)
    ([716.4, 0.72, 0.03, 0.66, 0.78], 0.06)
    """
    if isinstance(protocol, TextProtocol) and candidates is not None:
        estimated: Estimate = protocol.estimate(tally, candidates)
    elif isinstance(protocol.domain, Strings):
        raise SpecError("the answers are open text: name the texts to look for")
    else:
        estimated = protocol.estimate(tally)
    if consistent is not None:
        estimated = estimated.consistent(consistent)
    ends = estimated.interval(level, simultaneous, population)
    return Result(estimated, level, estimated.errors(population), ends, simultaneous)


def noise_floor(protocol: Protocol, n: int, level: float) -> float:
    """The smallest share that can be told from none among n people."""
    return quantile(level) * math.sqrt(protocol.worst_variance(n)) / n


def poisoning(protocol: Protocol) -> float | None:
    """By how many times its share of all reports a forger moves a share at most: 1 / (p - q)."""
    return float(1 / (protocol.p - protocol.q)) if isinstance(protocol, PureProtocol) else None


def trust(protocol: Protocol, n: int, level: float) -> dict[str, Any]:
    """What stands beside an estimate: its level of privacy, what the noise hides, and what forgers can do."""
    return {
        "epsilon": exact.canonical(protocol.epsilon),
        "realized_epsilon": protocol.realized_epsilon,
        "noise_floor": finite(noise_floor(protocol, n, level)) if n else None,
        "poisoning": poisoning(protocol),
    }


def notes(terms: Terms | None, one_epoch: bool) -> list[str]:
    """What the errors beside an estimate leave out, in sentences."""
    rule = Longitudinal() if terms is None else terms.longitudinal
    return [REPEATED] if rule.rule == "memoize" and rule.epochs > 1 and not one_epoch else []


def finite(value: float) -> float | None:
    """A float for JSON."""
    return float(value) if math.isfinite(value) else None

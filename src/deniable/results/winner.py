"""The most common answer, and the posterior probability that it is.

Estimate     the answer with the largest unbiased share; the margin is its lead over the runner-up
Posterior    1 - the sum over all other answers v of Phi(-lead over v / error of that lead): with normal errors and
             every lead equally plausible beforehand (a flat prior), at least this is the posterior probability that no
             other answer is more common. It is no confidence level, though close to one: of two answers that nearly
             tie, the less common one reaches 95 % in one survey of twenty. Answers far behind cost nothing, near ties
             a half each
Whom         the population that the respondents were drawn from; `population=False`: those who answered
Error        of a difference of two shares. Reports that always support equally many answers (GRR, subset selection)
             make the counts repel each other, which is accounted for; unary reports and linear hashes leave
             them uncorrelated. Where the correlation is not known, the two errors are added, the worst case
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import NumberError
from deniable.labels import Label, label_spec, text

if TYPE_CHECKING:
    from deniable.results.shares import Estimate

Floats = NDArray[np.float64]

_NUMBERS = ("share", "margin", "error", "posterior", "level", "certain", "population")


@dataclass(frozen=True, slots=True)
class Winner:
    """The answer that looks most common."""

    label: Label
    share: float
    runner_up: Label
    margin: float
    """Its lead over the runner-up, in shares."""
    error: float
    """The standard error of that lead."""
    posterior: float
    """At least this is the posterior probability, from a flat prior, that no other answer is more common."""
    level: float
    population: bool = True

    @property
    def certain(self) -> bool:
        """Whether the posterior probability reaches the level that was asked for."""
        return self.posterior >= self.level

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        return {"label": label_spec(self.label), "runner_up": label_spec(self.runner_up)} | numbers

    def __str__(self) -> str:
        lead = f"{100 * self.margin:.2f} points ahead of {text(self.runner_up)} (standard error {100 * self.error:.2f})"
        verdict = "" if self.certain else f"; not enough for {self.level:.0%}"
        sure = f"the most common with posterior probability {self.posterior:.1%}"
        whom = "" if self.population else ", among those who answered"
        return f"{text(self.label)}, {lead}, {sure}{verdict}{whom}"


def find(estimate: Estimate, level: float, population: bool) -> Winner:
    """The winner of the unbiased estimate behind `estimate`."""
    if not 0 < level < 1:
        raise NumberError(f"the confidence level lies between 0 and 1, not at {level!r}")
    raw = estimate.raw or estimate
    if not raw.n:
        raise NumberError("there are no reports yet: no answer is known to be the most common")
    shares = raw.frequencies
    best = int(np.argmax(shares))
    others = np.delete(np.arange(shares.size), best)
    errors = _lead_errors(raw, best, population)[others]
    leads = shares[best] - shares[others]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(errors > 0, leads / errors, np.where(leads > 0, np.inf, 0.0))
    doubt = math.fsum(0.5 * math.erfc(value / math.sqrt(2)) for value in z.tolist())
    second = int(np.argmin(leads))
    return Winner(
        label=raw.labels[best],
        share=float(shares[best]),
        runner_up=raw.labels[int(others[second])],
        margin=float(leads[second]),
        error=float(errors[second]),
        posterior=max(0.0, 1 - doubt),
        level=level,
        population=population,
    )


def _lead_errors(raw: Estimate, best: int, population: bool) -> Floats:
    """Standard errors of share[best] - share[v], for each v."""
    spread, n = raw.noise, raw.n
    if raw.support is None:
        squares = (np.sqrt(spread[best]) + np.sqrt(spread)) ** 2
    else:
        squares = spread[best] + spread - 2 * raw.support.covariance(raw.counts, best)
    if population:
        shares = np.clip(raw.frequencies, 0.0, 1.0)
        drawn = shares[best] + shares - (shares[best] - shares) ** 2
        people = np.broadcast_to(raw.people, shares.shape)
        squares = squares + np.maximum(people, people[best]) * n * drawn
    errors: Floats = np.sqrt(np.maximum(squares, 0.0)) / n
    return errors

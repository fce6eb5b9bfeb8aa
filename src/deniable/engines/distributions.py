"""What made-up people hold: distributions by name, and whole numbers of people."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.errors import DeniableError, SpecError

Shares = NDArray[np.float64]


def shares(distribution: str, answers: int) -> Shares:
    """A distribution by name, over so many answers, the most common first.

    uniform     all the same
    zipf:s      the k-th has a weight of k^-s (s = 1.1)
    geometric:r each has r times the weight of the one before (r = 0.9)
    spike:a     the first has the share a (0.5), the others the rest

    >>> shares("spike:0.4", 4).round(3).tolist()
    [0.4, 0.2, 0.2, 0.2]
    """
    name, _, given = distribution.partition(":")
    rank = np.arange(answers, dtype=np.float64)
    try:
        match name:
            case "uniform":
                weights = np.ones(answers)
            case "zipf":
                weights = (rank + 1) ** -_within(given or "1.1", 0.0, 50.0)
            case "geometric":
                weights = _within(given or "0.9", 0.0, 1.0) ** rank
            case "spike":
                top = _within(given or "0.5", 0.0, 1.0)
                weights = np.full(answers, (1 - top) / max(1, answers - 1))
                weights[0] = top
            case _:
                raise SpecError(f"there is no distribution {name!r}; there are uniform, zipf, geometric and spike")
    except ValueError as wrong:
        if isinstance(wrong, DeniableError):
            raise
        raise SpecError(f"{given!r} is no parameter of {name}: write it like zipf:1.1") from None
    if name == "uniform" and given:
        raise SpecError("uniform has no parameter")
    found: Shares = weights / weights.sum()
    return found


def _within(text: str, low: float, high: float) -> float:
    value = float(text)
    if not low <= value <= high:
        raise SpecError(f"the parameter of a distribution lies here between {low:g} and {high:g}, not at {text}")
    return value


def people_of(distribution: str, answers: int, people: int) -> NDArray[np.int64]:
    """How many hold each answer: shares times people, rounded so that the sum is right."""
    wanted = shares(distribution, answers) * people
    counts = np.floor(wanted).astype(np.int64)
    missing = people - int(counts.sum())
    counts[np.argsort(counts - wanted, kind="stable")[:missing]] += 1
    return counts

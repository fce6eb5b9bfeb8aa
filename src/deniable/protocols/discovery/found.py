"""What was found: answers that nobody listed, with shares, intervals and p-values.

Values       chosen by the search groups alone, so that shares and intervals, which come from other people, are not
             biased by the choice. A value without evidence that these other people gave it is left out
p-values     of "nobody gave this answer": how often at least as many reports would then support its cell
False finds  if nothing is common, the expected number of values is at most `false_finds`, e^-3 = 0.05
significant  the values with small p-values. They were chosen for their shares now: intervals and p-values are corrected
             for it (given that the share came out above the limit, as a truncated normal)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from deniable.errors import NumberError
from deniable.labels import Label
from deniable.protocols.discovery.search import ACCEPT
from deniable.protocols.frequency.open_text import TextEstimate
from deniable.results import Rows, no_reports
from deniable.results.base import quantile
from deniable.results.rows import Floats
from deniable.words import Figure, said, word

_STEPS = 80
_FAR = 12.0


@dataclass(frozen=True, eq=False, repr=False)
class Found(TextEstimate):
    """The common answers, the most common first.

    Args:
        collisions: The variance of each share that comes from other answers in its cell.
        cell_count: Number of cells that answers are counted in.
        smallest: The share at which words, and any bit strings, are found nine times out of ten.
        unlike: The share at which any answer is found nine times out of ten, also a text that is unlike words.
        limit: The share above which values were kept.
        given: Whether somebody asked for these values, so that nothing was searched for.
        false_finds: If nothing is common, at most this many values are found on average.
    """

    kind: ClassVar[str] = "found"

    collisions: Floats | float = 0.0
    cell_count: int = 1
    smallest: float = 1.0
    unlike: float = 1.0
    limit: float | None = None
    given: bool = False
    false_finds: float = math.exp(-ACCEPT)

    @property
    def facts(self) -> dict[str, float]:
        return super().facts | {"smallest": self.smallest, "false_finds": self.false_finds}

    @property
    def values(self) -> Sequence[Label]:
        return self.labels

    @property
    def p_values(self) -> Floats:
        """For each value: the probability of its reports if nobody had given it."""
        if self.support is None:
            return np.full(len(self.labels), np.nan)
        from scipy.special import betainc, ndtr

        worth = np.broadcast_to(self.support.worth, (len(self.labels),))
        chance = self.support.q + (self.support.p - self.support.q) / self.cell_count
        counts, n = np.maximum(self.support.counts * worth, 1e-9), self.support.n * worth
        by_reports = betainc(counts, n - counts + 1, chance)  # the binomial's upper tail
        by_normal = ndtr(-np.maximum(self.frequencies, 0.0) / self._null_errors)
        return np.where(self.frequencies > 0, np.maximum(by_reports, by_normal), 1.0)

    @property
    def _null_errors(self) -> Floats:
        """The standard errors of shares of answers that nobody gave."""
        assert self.support is not None
        p, q, n = self.support.p, self.support.q, self.support.n * np.asarray(self.support.worth)
        return np.sqrt(q * (1 - q) / (n * (p - q) ** 2) + self.collisions)

    def significant(self, level: float = 0.05) -> Found:
        """The values with a p-value of at most `level`, divided by the number of values.

        So a list with a value that nobody gave comes up with probability `level` at most, whatever the search did.
        """
        if not 0 < level < 1:
            raise NumberError(f"the level of a test lies between 0 and 1, not at {level!r}")
        if not len(self.labels) or self.support is None:
            return self
        kept = np.flatnonzero(self.p_values <= level / len(self.labels))
        limit = float(quantile(1 - 2 * level / len(self.labels)) * np.max(self._null_errors))
        limit = min([limit, *self.frequencies[kept].tolist()])
        return replace(self._some(kept), limit=limit, method=f"{self.method}, p-values up to {level:g}")

    def _some(self, kept: Any) -> Found:
        support = self.support
        if support is not None:
            worth = support.worth if np.ndim(support.worth) == 0 else np.asarray(support.worth)[kept]
            support = replace(support, counts=support.counts[kept], worth=worth)
        people = self.people if np.ndim(self.people) == 0 else np.asarray(self.people)[kept]
        return replace(
            self,
            labels=[self.labels[int(place)] for place in kept],
            counts=self.counts[kept],
            noise=self.noise[kept],
            support=support,
            people=people,
            collisions=np.broadcast_to(self.collisions, self.counts.shape)[kept],
            unlisted_noise=math.sqrt(float(self.noise[kept].sum())) / max(1, self.n),
        )

    def interval(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Floats:
        """Intervals of the shares, one row of two ends each."""
        reach = quantile(level, max(1, len(self.labels)) if simultaneous else 1)
        if not self.n or not len(self.labels) or self.support is None:
            return np.tile([0.0, 1.0], (len(self.labels), 1))
        if self.raw is not None:
            return np.clip(self.raw.interval(level, simultaneous, population), 0.0, 1.0)
        shares = self.frequencies
        if self.limit is not None:
            tail = math.erfc(reach / math.sqrt(2)) / 2
            return self._widened(_truncated(shares, self.errors(population), self.limit, tail), shares)
        if not population:
            half = reach * self.errors(population)
            return self._widened(np.stack([shares - half, shares + half], axis=1), shares)
        # Clopper-Pearson for the reports of the cell, without the others in it on average; collisions widen both sides.
        ends = self.support.interval(math.erf(reach / math.sqrt(2)))
        ends = (ends - 1 / self.cell_count) / (1 - 1 / self.cell_count)
        more = reach * np.sqrt(np.broadcast_to(self.collisions, shares.shape))
        low = shares - np.hypot(shares - ends[:, 0], more)
        ends = np.stack([low, shares + np.hypot(ends[:, 1] - shares, more)], axis=1)
        return self._widened(ends, shares)

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        rows = super().table(level, simultaneous, population)
        return replace(rows, more={"count": self.counts, "p_value": self.p_values})

    @property
    def verdict(self) -> str:
        if not self.n:
            return no_reports()
        size = len(self.labels)
        if self.given:
            return said("result.found.given", n=size)
        least, unlike, wrong = (
            Figure(f"{100 * share:.2g}", False) for share in (self.smallest, self.unlike, self.false_finds)
        )
        if self.smallest > 1:
            hidden = word("result.hidden.all")
        elif self.unlike > 1:
            hidden = word("result.hidden.unlike", share=least)
        elif self.unlike > self.smallest:
            hidden = word("result.hidden.both", share=least, unlike=unlike)
        else:
            hidden = word("result.hidden.some", share=least)
        found = word("result.found.some", n=size) if size else word("result.found.none")
        return said("result.found", found=found, hidden=hidden, wrong=wrong)

    @property
    def notes(self) -> list[str]:
        return [*super().notes, self.verdict] if self.n else super().notes

    @property
    def remark(self) -> str:
        return ""  # the verdict is one of the notes


def _truncated(shares: Floats, errors: Floats, limit: float, tail: float) -> Floats:
    """The true shares under which a share above the limit would come out smaller, or larger, with probability `tail`.

    >>> _truncated(np.array([5.0, 2.1]), np.ones(2), 2.0, 0.025).round(2).tolist()
    [[2.96, 6.96], [-34.81, 3.15]]
    """
    from scipy.special import log_ndtr

    x, least = shares / errors, np.minimum(limit, shares) / errors
    ends = []
    for wanted in (math.log(tail), math.log1p(-tail)):
        low, high = least - 40 * _FAR, x + _FAR
        for _ in range(_STEPS):
            middle = (low + high) / 2
            # P(above x | above the limit) grows with the true share.
            more = log_ndtr(middle - x) - log_ndtr(middle - least) > wanted
            low, high = np.where(more, low, middle), np.where(more, middle, high)
        ends.append((low + high) / 2 * errors)
    return np.stack(ends, axis=1)

"""Shares of answers over the epochs: a line with a band per answer, and the mean over all epochs.

Bands      from the covariance matrix of the epochs, which are not independent; `interval` holds for each epoch by
           itself, and with `simultaneous` for all of them at once
Total      the mean share over the epochs that are known, with its own (smaller) error
Unknown    epochs from which nothing was heard have no value, and the whole range as interval
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from deniable._extras import require
from deniable.errors import LabelError
from deniable.labels import Label
from deniable.results.base import Floats, Result, Rows, quantile

ALL_EPOCHS = "all epochs"


@dataclass(frozen=True, eq=False, repr=False)
class Series(Result):
    """Shares over the epochs, one row of `frequencies` per answer."""

    kind: ClassVar[str] = "series"
    heading: ClassVar[str] = "share"

    answers: Sequence[str]
    frequencies: Floats
    covariance: Floats
    """Of the epochs, one matrix per answer."""
    n: int
    protocol: str
    method: str = "unbiased"

    @property
    def epochs(self) -> int:
        return int(self.frequencies.shape[1])

    @cached_property
    def stderr(self) -> Floats:
        """Of each share, in the form of `frequencies`; infinite where nothing is known."""
        spread = np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2))
        return np.where(np.isnan(spread), math.inf, spread)

    @cached_property
    def total(self) -> tuple[Floats, Floats]:
        """The mean share of each answer over the known epochs, and its standard error."""
        known = ~np.isnan(self.frequencies)
        count = known.sum(axis=1)
        value = np.where(known, self.frequencies, 0.0).sum(axis=1) / np.maximum(count, 1)
        spread = np.nan_to_num(self.covariance).sum(axis=(1, 2)) / np.maximum(count, 1) ** 2
        nothing = count == 0
        return np.where(nothing, math.nan, value), np.where(nothing, math.inf, np.sqrt(spread))

    def of(self, answer: Any) -> int:
        """The place of an answer; raises LabelError for an unknown one."""
        if str(answer) not in self.answers:
            raise LabelError(f"there is no answer {answer!r}; there are {', '.join(self.answers)}")
        return list(self.answers).index(str(answer))

    def interval(self, level: float = 0.95, simultaneous: bool = False) -> Floats:
        """Ends of the band, one row per answer and epoch."""
        reach = quantile(level, self.frequencies.size if simultaneous else 1)
        return _ends(self.frequencies, self.stderr, reach)

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        reach = quantile(level, self.frequencies.size + len(self.answers) if simultaneous else 1)
        value = np.column_stack([self.frequencies, self.total[0]]).ravel()
        stderr = np.column_stack([self.stderr, self.total[1]]).ravel()
        ends = _ends(value, stderr, reach)
        labels: list[Label] = [*range(1, self.epochs + 1), ALL_EPOCHS]
        return Rows(
            labels * len(self.answers),
            value,
            stderr,
            ends[:, 0],
            ends[:, 1],
            level=level,
            simultaneous=simultaneous,
            population=population,
            groups=[answer for answer in self.answers for _ in labels],
            is_ordered=True,
        )

    def repeated(self, noise: float, people: float) -> Series:
        return self  # the same people stand in all epochs anyway

    def plot(
        self, ax: Any = None, level: float = 0.95, most: int = 40, simultaneous: bool = False, population: bool = True
    ) -> Any:
        """A line in its band per answer; returns the axes."""
        if ax is None:
            ax = require("matplotlib.pyplot", "plot").subplots(figsize=(7.5, 3.6))[1]
        ends = self.interval(level, simultaneous)
        shown = [1] if len(self.answers) == 2 else range(min(most, len(self.answers)))
        for place in shown:
            epochs = np.arange(1, self.epochs + 1)
            (line,) = ax.plot(epochs, self.frequencies[place], label=self.answers[place])
            ax.fill_between(epochs, *ends[place].T, color=line.get_color(), alpha=0.2, linewidth=0)
        ax.set(xlabel="epoch", ylabel=self.heading)
        ax.set_title(f"{self.title}: {100 * level:g} % intervals", fontsize="medium")
        ax.legend(frameon=False, fontsize="small")
        return ax


def _ends(value: Floats, stderr: Floats, reach: float) -> Floats:
    """Intervals around the values; the whole range where there is none."""
    unknown = np.isnan(value)
    reached = reach * np.where(unknown, 0.0, stderr)
    return np.stack([np.where(unknown, 0.0, value - reached), np.where(unknown, 1.0, value + reached)], axis=-1)

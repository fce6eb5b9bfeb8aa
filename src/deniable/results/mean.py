"""The mean of a number, in the question's own unit.

Estimate   unbiased for the mean of the respondents' clipped numbers; it may fall outside the interval by its noise
Error      stderr: the spread of the reports' contributions divided by sqrt(n), noise and sampling error together;
           `population=False` leaves the sampling error out, as far as it is known: then the worst case of the noise
Interval   from how often each report came, without assuming a normal law: `bounds`; it is not cut, because an estimate
           beyond an end says how much noise there is. Normal where the reports are not known one by one
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from deniable._extras import require
from deniable.errors import NumberError
from deniable.results.base import Result, no_reports, quantile
from deniable.results.bounds import Bounds
from deniable.results.render.plot import INK, SEEN
from deniable.results.rows import Floats, Rows
from deniable.results.significance import Measured


@dataclass(frozen=True, eq=False, repr=False)
class Mean(Result):
    """An estimated mean.

    Args:
        value: The estimate.
        n: Number of reports.
        stderr: Standard error as an estimate of the population's mean: noise and sampling error.
        noise: The part of it due to the protocol.
        ends: The ends of the domain.
        protocol: Name of the protocol.
        method: Name of the estimator.
        unit: Unit of the number.
        figure: What the value is: the mean, or another figure that is estimated in the same way, such as a variance.
        bounds: Computes the interval, if that is not normal.
        is_within: Whether intervals stay between the ends, as for a standard deviation, which is not unbiased anyway.

    >>> mean = Mean(7.25, 100, 0.5, 0.4, (0.0, 24.0), "Window", unit="hours")
    >>> mean.stderr, [round(end, 2) for end in mean.interval()]
    (0.5, [6.27, 8.23])
    """

    kind: ClassVar[str] = "mean"
    heading: ClassVar[str] = "mean"
    family: ClassVar[str] = "mean"

    value: float = field()
    n: int
    stderr: float = field()
    noise: float
    ends: tuple[float, float]
    protocol: str
    method: str = "unbiased"
    unit: str = ""
    figure: str = "mean"
    bounds: Bounds | None = None
    is_within: bool = False

    @classmethod
    def nothing(cls, ends: tuple[float, float], protocol: str, unit: str = "") -> Mean:
        """The result before the first report."""
        return cls(math.nan, 0, math.nan, math.nan, ends, protocol, unit=unit)

    def _limits(self) -> tuple[float, float]:
        return self.ends

    def error(self, population: bool = True) -> float:
        return self.stderr if population else self.noise

    def interval(self, level: float = 0.95, population: bool = True) -> tuple[float, float]:
        """A confidence interval of the mean; without reports the whole domain."""
        reach = quantile(level) * self.error(population)
        if not self.n or self.fakes >= self.n:
            return self.ends
        value = np.array([self.value])
        ends = np.stack([value - reach, value + reach], axis=1)
        if self.bounds is not None:
            ends = self.bounds.interval(level, self.error(population))
        ((low, high),) = self._widened(ends, value)
        if self.is_within:
            low, high = np.clip([low, high], *self.ends)
        return float(low), float(high)

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        low, high = self.interval(level, population)
        value, stderr = np.array([self.value]), np.array([self.error(population)])
        ends = np.array([low]), np.array([high])
        return Rows([self.figure], value, stderr, *ends, self.unit, level, simultaneous, population)

    def measured(self) -> Measured:
        spread = np.array([[self.stderr**2]])
        figure = f"{self.figure}, {self.unit}" if self.unit else self.figure
        return Measured([figure], np.array([self.value]), lambda _: spread, self.n, np.ones((1, 1)))

    def as_given(self, given: Any) -> Floats:
        if isinstance(given, bool) or not isinstance(given, int | float | Fraction) or not math.isfinite(given):
            raise NumberError(f"a {self.figure} is tested against a number, not {given!r}")
        return np.array([float(given)])

    def plot(
        self,
        ax: Any = None,
        level: float = 0.95,
        most: int = 40,
        simultaneous: bool = False,
        population: bool = True,
    ) -> Any:
        """A point with its interval, on the scale of the possible answers; returns the axes."""
        rows = self.table(level, simultaneous, population)
        if ax is None:
            ax = require("matplotlib.pyplot", "plot").subplots(figsize=(5.0, 3.6))[1]
        ((low, high),) = rows.ends
        ax.vlines([0], [low], [high], color=INK, linewidth=1)
        if self.n:
            ax.plot([0], [self.value], "o", color=SEEN)
        bottom, top = min(low, self.ends[0]), max(high, self.ends[1])
        ax.set_ylim(bottom - 0.02 * (top - bottom), top + 0.02 * (top - bottom))
        ax.set_xticks([0], rows.names)
        ax.set_ylabel(f"{self.heading}, {self.unit}" if self.unit else self.heading)
        ax.set_title(f"{self.title}: {rows.interval_name}", fontsize="medium")
        return ax

    def repeated(self, noise: float, people: float) -> Mean:
        sampling = max(0.0, self.stderr**2 - self.noise**2)
        spread = math.sqrt(noise * self.noise**2 + people * sampling)
        return replace(self, stderr=spread, noise=math.sqrt(noise) * self.noise, check=self._check_of(noise))

    def sampled(self, part: Fraction) -> Mean:
        drawn = max(0.0, self.stderr**2 - self.noise**2)
        return replace(self, noise=math.sqrt(self.noise**2 + float(1 - part) * drawn))

    def __repr__(self) -> str:
        if not self.n:
            return f"<Mean: {no_reports()}>"
        unit = f" {self.unit}" if self.unit else ""
        return f"<{self.figure.capitalize()} {self.value:.4g} +- {self.stderr:.2g}{unit} from {self.n} reports>"

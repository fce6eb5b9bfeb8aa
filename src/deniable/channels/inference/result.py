"""The result of inference: a distribution over true answers, with its error bars and how it was found.

Model      respondents are drawn independently from a population with the true frequencies, and each answer
           goes through the channel: the noisy counts are multinomial. Error bars are for the population
Error      `stderr` holds standard errors; infinite where the channel cannot tell an entry from the others
Interval   Clopper-Pearson, mapped through the channel, where each count is binomial by itself; percentiles where there
           are bootstrap replicates; the score interval elsewhere, which holds next to zero too. Estimates confined
           to the simplex have their intervals cut to [0, 1], and the estimate itself is always inside; raw inversion
           is never cut
Score      the shares that the estimate does not contradict, each judged by the error that it would have:
           (|r - t| - s)^2 <= z^2 V(t), with r an unbiased estimate that is linear in the counts (inversion, or the
           efficient one at the maximum of the likelihood), V(t) its variance if the share is t and the others are as
           estimated, and s half of what one report moves at most (counts are whole numbers). V is quadratic in t, so
           the ends are the roots of quadratic equations. A Wald interval takes the error at the estimate, which next
           to zero is far too small, or zero, where an output never came; here zero counts leave shares up to about
           z^2 / n. For one count of n this is Wilson's interval with the correction for continuity
Source     Clopper and Pearson 1934; Rao 1948; Wilson 1927
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable._extras import require
from deniable.channels.laws import Floats, probability_vector
from deniable.errors import ChannelError, NumberError
from deniable.labels import Label, shown, text
from deniable.results import Result, Rows, no_reports
from deniable.results.rows import Picture
from deniable.results.shares import clopper_pearson

# -- score intervals ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ScoreView:
    """The quantities that the intervals of all entries need."""

    centre: Floats
    """The unbiased estimate r."""
    without: Floats
    """n times the variance of r at t = 0."""
    alone: Floats
    """n times the variance at t = 1, plus 1."""
    step: Floats
    """Half of the largest change of r by one report."""
    n: float
    determined: NDArray[np.bool_]

    @classmethod
    def of(
        cls, rows: Floats, observed: Floats, frequencies: Floats, influence: Floats, determined: NDArray[np.bool_]
    ) -> ScoreView:
        """`influence[y, v]`: the mean of column v over the reports estimates entry v without bias."""
        n = float(observed.sum())
        shares = np.maximum(frequencies, 0.0)
        shares = shares / shares.sum()
        squares = influence**2
        alone = (rows * squares.T).sum(axis=1)
        mixed = shares @ rows @ squares - shares * alone
        rest = 1 - shares
        # If everybody gives the one answer, the others are arbitrary: use the mean over all of them.
        even = (rows.sum(axis=0) @ squares - alone) / max(1, shares.size - 1)
        without = np.where(rest > 1e-12, mixed / np.maximum(rest, 1e-12), even)
        step = np.ptp(influence, axis=0) / (2 * n)
        return cls(observed @ influence / n, np.maximum(without, 0.0), alone, step, n, determined)

    def interval(self, level: float) -> Floats:
        z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2 / self.n
        low, high = (self._root(self.centre + side * self.step, z2, side) for side in (-1, 1))
        ends = np.stack([low, high], axis=1)
        ends[~self.determined] = [-np.inf, np.inf]
        return ends

    def _root(self, centre: Floats, z2: float, side: int) -> Floats:
        """A root of (1 + z2) t^2 - (2 r + z2 (b - a)) t + r^2 - z2 a = 0, on one side."""
        half = centre + z2 * (self.alone - self.without) / 2
        inside = half**2 - (1 + z2) * (centre**2 - z2 * self.without)
        root = (half + side * np.sqrt(np.maximum(inside, 0.0))) / (1 + z2)
        # Values within one step of the estimate are never excluded, even beyond [0, 1], where no variance is known.
        end: Floats = np.minimum(root, centre) if side < 0 else np.maximum(root, centre)
        return end


IntervalMethod = Literal["auto", "wald", "score", "clopper-pearson", "percentile"]


@dataclass(frozen=True, slots=True, eq=False)
class BinomialView:
    """counts[v] ~ Binomial(n, f_v hit[v] + (1 - f_v) miss[v])."""

    counts: Floats
    hit: Floats
    miss: Floats

    def interval(self, level: float) -> Floats:
        """Clopper-Pearson for each count, solved for f."""
        shares = clopper_pearson(self.counts, self.counts.sum(), level)
        ends = (shares - self.miss[:, None]) / (self.hit - self.miss)[:, None]
        return np.sort(ends, axis=1)


@dataclass(frozen=True, eq=False, repr=False)
class Inference(Result):
    """An estimate of the distribution of true answers.

    Args:
        frequencies: Estimated share of each input.
        stderr: Standard error of each share.
        method: Name of the estimator.
        observed: Count of each output.
        inputs: Labels of the inputs.
        outputs: Labels of the outputs.
        log_likelihood: Total log-likelihood of the estimate.
        gap: No distribution has a log-likelihood per person higher by more than this (NaN outside the simplex).
        iterations: Number of Bayesian updates; 0 for closed forms.
        trace: The total log-likelihood at each update.
        converged: Whether the iteration reached its tolerance.
        identifiable: Whether different distributions of answers always give different distributions of outputs.
        constrained: Whether the method confines the estimate to the simplex.
        raw: The unbiased estimate behind a projected one; `stderr` and `interval` belong to it.
        binomial: Counts behind exact intervals, if each share is a function of one binomial count.
        score: What score intervals are computed from, if the method has them.
        replicates: Estimates from resampled counts, one row per replicate, if the bootstrap made them.
    """

    kind: ClassVar[str] = "shares"
    heading: ClassVar[str] = "share"
    picture: ClassVar[Picture] = "bars"
    protocol: ClassVar[str] = "channel"

    frequencies: Floats
    stderr: Floats = field()
    method: str
    observed: Floats
    inputs: tuple[Label, ...]
    outputs: tuple[Label, ...]
    log_likelihood: float
    gap: float
    iterations: int = 0
    trace: Floats = field(default_factory=lambda: np.empty(0))
    converged: bool = True
    identifiable: bool = True
    constrained: bool = True
    raw: Floats | None = None
    binomial: BinomialView | None = None
    score: ScoreView | None = None
    replicates: Floats | None = None

    def __post_init__(self) -> None:
        for array in (self.frequencies, self.stderr, self.observed, self.trace, self.raw, self.replicates):
            if array is not None:
                array.flags.writeable = False

    @classmethod
    def nothing(cls, inputs: tuple[Label, ...], outputs: tuple[Label, ...], method: str) -> Inference:
        """The result before the first report."""
        unknown = np.full(len(inputs), np.nan)
        return cls(unknown, unknown, method, np.zeros(len(outputs)), inputs, outputs, math.nan, math.nan)

    @property
    def n(self) -> float:
        """Number of reports."""
        total = float(self.observed.sum())
        return int(total) if total.is_integer() else total

    @property
    def counts(self) -> Floats:
        """Estimated number of people behind each true answer."""
        return self.frequencies * self.n

    @property
    def labels(self) -> tuple[Label, ...]:
        return self.inputs

    def interval(self, level: float = 0.95, simultaneous: bool = False, method: IntervalMethod = "auto") -> Floats:
        """A (k, 2) array of confidence intervals, one per frequency.

        `simultaneous` makes all k hold at once with the stated confidence (Bonferroni). The interval of a
        projected estimate is the raw estimate's, cut to [0, 1]: it may not contain the projected value. Without reports
        every interval is [0, 1].
        """
        if not 0 < level < 1:
            raise NumberError(f"the confidence level lies between 0 and 1, not at {level!r}")
        if not self.n:
            return np.tile([0.0, 1.0], (len(self.inputs), 1))
        if simultaneous:
            level = 1 - (1 - level) / len(self.inputs)
        ends = self._ends(level, method)
        if not self.constrained:
            return ends
        ends = np.clip(ends, 0.0, 1.0)
        if self.raw is None:
            ends = np.stack(
                [np.minimum(ends[:, 0], self.frequencies), np.maximum(ends[:, 1], self.frequencies)], axis=1
            )
        return ends

    def _ends(self, level: float, method: IntervalMethod) -> Floats:
        if method == "auto":
            if self.replicates is not None:
                method = "percentile"
            elif self.binomial is not None:
                method = "clopper-pearson"
            else:
                method = "wald" if self.score is None else "score"
        if method == "percentile":
            if self.replicates is None:
                raise ChannelError("percentile intervals need replicates: call bootstrap(channel, counts)")
            tail = (1 - level) / 2
            ends: Floats = np.quantile(self.replicates, [tail, 1 - tail], axis=0).T
            return ends
        if method == "clopper-pearson":
            if self.binomial is None:
                raise ChannelError(
                    "Clopper-Pearson needs a channel in which each count is binomial by itself "
                    "(2 x 2, or randomized response): use method='score' or bootstrap(channel, counts)"
                )
            return self.binomial.interval(level)
        if method == "score":
            if self.score is None:
                raise ChannelError("score intervals belong to invert, ibu and mle_randomized_response")
            return self.score.interval(level)
        if method == "wald":
            centre = self.frequencies if self.raw is None else self.raw
            reach = NormalDist().inv_cdf((1 + level) / 2) * self.stderr
            return np.stack([centre - reach, centre + reach], axis=1)
        raise NumberError(f"unknown interval method {method!r}: auto, wald, score, clopper-pearson or percentile")

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        if not population:
            raise NumberError("counts of outputs are read for the population, not for the respondents alone")
        low, high = self.interval(level, simultaneous).T
        more = {"count": self.counts}
        return Rows(self.inputs, self.frequencies, self.stderr, low, high, "", level, simultaneous, population, more)

    def repeated(self, noise: float, people: float) -> Inference:
        """The larger factor for both: the noise part of an error is not known here."""
        most = max(noise, people)
        score, binomial = self.score, self.binomial
        if score is not None:
            score = replace(score, n=score.n / most, step=score.step * most)
        if binomial is not None:
            binomial = replace(binomial, counts=binomial.counts / most)
        stderr = self.stderr * math.sqrt(most)
        return replace(self, stderr=stderr, score=score, binomial=binomial, replicates=None, check=None)

    @property
    def notes(self) -> list[str]:
        said: list[str] = [] if self.n else [no_reports()]
        if not self.converged:
            said.append(
                f"the iteration stopped early: another distribution may fit better by {self.gap:.1e} nats per report"
            )
        if not self.identifiable:
            said.append("different crowds look the same through this channel: this is one of many solutions")
        if self.misfit is not None and self.misfit.suspicious:
            said.append(self.misfit.about("channel"))
        return said

    @property
    def facts(self) -> dict[str, Any]:
        """How the estimate was found, and how often each output came."""
        own: dict[str, Any] = {"log_likelihood": self.log_likelihood, "gap": self.gap, "iterations": self.iterations}
        own |= {"converged": self.converged, "identifiable": self.identifiable}
        return own | {"observed": dict(zip(map(text, self.outputs), self.observed.tolist(), strict=True))}

    @property
    def title(self) -> str:
        steps = f"; {self.iterations} updates, within {self.gap:.1e} nats per report of the maximum"
        return f"{self.method}, n = {self.n:,}{steps if self.iterations else ''}"

    def plot(
        self,
        ax: Any = None,
        level: float = 0.95,
        most: int = 40,
        simultaneous: bool = False,
        population: bool = True,
        truth: ArrayLike | None = None,
    ) -> Any:
        """Bars of the truth (if known), the noisy shares and the estimate with whiskers; returns the axes."""
        return _draw(self, truth, self.table(level, simultaneous, population), ax)

    def __repr__(self) -> str:
        return f"<Inference by {self.method}: {len(self.inputs)} frequencies from {self.n:g} reports>"


# -- a picture ------------------------------------------------------------------------------------------


def _draw(result: Inference, truth: ArrayLike | None, rows: Rows, ax: Any) -> Any:
    """Bars side by side, the estimate with whiskers; the noisy shares only if outputs equal inputs."""
    k = len(result.inputs)
    known = None if truth is None else probability_vector(truth, k, "truth")
    if ax is None:
        ax = require("matplotlib.pyplot", "plot").subplots(figsize=(max(5.0, min(0.5 * k + 2, 14)), 3.6))[1]
    bars: list[tuple[str, Any, str]] = []
    if known is not None:
        bars.append(("true", known, "#9aa5b1"))
    if result.outputs == result.inputs:
        bars.append(("noisy", result.observed / (result.n or math.nan), "#e3b778"))
    bars.append(("reconstructed", result.frequencies, "#2f6f9f"))
    places, width = np.arange(k), 0.84 / len(bars)
    for i, (name, heights, color) in enumerate(bars):
        ax.bar(places + (i - (len(bars) - 1) / 2) * width, heights, width, label=name, color=color)
    bounded = np.isfinite(rows.ends).all(axis=1)
    ax.vlines(places[bounded] + (len(bars) - 1) / 2 * width, *rows.ends[bounded].T, color="#1b2733", linewidth=1)
    ax.axhline(0, color="#1b2733", linewidth=0.6)
    some = places if k <= 40 else places[:: -(-k // 20)]
    names = [shown(result.inputs[i]) for i in some]
    ax.set_xticks(some, names, rotation=60 if sum(map(len, names)) > 60 else 0)
    ax.set_ylabel("frequency")
    ax.set_title(f"{result.method}, n = {result.n:g}, {rows.level:.0%} intervals", fontsize="medium")
    ax.legend(frameon=False)
    return ax

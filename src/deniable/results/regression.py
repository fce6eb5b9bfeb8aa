"""Coefficients of a regression: Newton steps at published coefficients, combined, with their errors.

Evidence   from each batch of people: the mean gradient and the mean curvature at the batch's published
           coefficients, each entry with the variance of its own reports. The entries come from different people
Estimate   the coefficients where sum_r w_r (g_r - M (theta - at_r)) vanishes; w_r is inverse to the variance of the
           gradient of batch r, and M is the mean of the curvatures, with weights m_r inverse to theirs. One batch is
           one step of Newton's method
Start      a logistic regression asked at 0 has the means of products of all columns, and so Fisher's linear
           discriminant (`discriminant`), which is near its coefficients. It determines where to ask next, and is the
           estimate if later batches have a larger error, or if there are no later batches
Error      noise, by the delta method: M^-1 Var(sum_r w_r (g_r - M (theta - at_r))) M^-1. Reports vary by noise and by
           who was asked, so that errors are about the population
Remainder  the curvature of a logistic regression changes on the way from at_r to theta, by at most the third
           derivative, E l'' (x'Kx) x with K = sum_r w_r (v_r / 2 - sum_s m_s v_s) v_r' and v_r = theta - at_r. As |l''|
           <= l', by Cauchy and Schwarz it moves a coefficient by at most b (M^-1)_jj^(1/2) with b^2 = E l' (x'Kx)^2,
           which is (2 tr (KM)^2 + (tr KM)^2) / E l' if forms x'v are spread like a normal law. An unknown shift within
           this bound adds b^2 / 3 M^-1 to the covariance. For the discriminant, b is half of its distance from one
           step of Newton's method, which it corrects. That is not a bound, as nobody was asked there: of 300 simulated
           populations, with correlated, skewed, rare and curved columns, 95 percent were within it
Ridge      if the smallest eigenvalue of the curvature is less than 3 times its own standard error, as with nearly
           redundant columns, l is added to the diagonal, except for the constant, to reach that size (ridge
           regression), and the method says so. That moves coefficients by l (M + l)^-1 (theta - at), which the reports
           do not determine. The assumption is that no coefficient exceeds twice the largest one found, L: uniform
           between -L and L, this adds l^2 L^2 / 3 (M + l)^-2 to the covariance
Unknown    if ridge regression may move all coefficients by as much as the largest one found, nothing is estimated,
           and a note explains it
Forged     up to m reports may be forged: each figure of gradient and curvature is set to the largest and to the
           smallest value that the honest reports may have, and the equations are solved again. The hull of all these
           intervals holds if one figure has all the forged reports; to the first order of m / n, as the step is linear
           in every figure given the others, no division among several figures moves a coefficient further
Units      coefficients are per unit of a column, in the unit of the target or in log odds
Source     Newton-Raphson; one-step estimators: Le Cam 1956; over disjoint batches: Smith, Thakurta and Upadhyay 2017;
           the discriminant as a start: Haggstrom 1983; third derivatives of logistic regression: Bach 2010
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from deniable._threads import one_thread
from deniable.errors import LabelError, ShapeError
from deniable.results.base import Result, Weights, no_reports, quantile
from deniable.results.rows import Floats, Rows
from deniable.results.significance import Measured

_SURE = 3.0
"""Minimum ratio of the smallest eigenvalue of the curvature to its own standard error."""


_GROWTH, _TRIES = 1.25, 60
"""Factor by which a ridge grows until it is large enough, and the maximum number of tries."""

_SEEN = 0.4
"""From this fraction of the standard error on, a note states what has not converged yet."""
_HALF, _RARE = Fraction(1, 2), Fraction(1, 100)


class Entry(NamedTuple):
    """One figure of the curvature: its mean, the variance of that mean, and its position in the matrix."""

    mean: float
    variance: float
    places: tuple[tuple[int, int], ...]
    weights: Weights | None = None
    """Possible contributions of one report; None if nobody is asked."""


class Batch(NamedTuple):
    """The evidence from one batch of people."""

    at: Floats
    """The coefficients at which it was asked."""
    gradient: Floats
    variances: Floats
    """The variance of the gradient."""
    curvature: tuple[Entry, ...]
    n: int
    weights: tuple[Weights, ...] = ()
    """Possible contributions of one report to each entry of the gradient."""

    def honest(self, fakes: int) -> Iterator[Batch]:
        """The extreme values of the honest reports if `fakes` reports are forged, all of them about one figure."""
        for place, weights in enumerate(self.weights):
            for mean, grown in _extremes(float(self.gradient[place]), weights, fakes):
                gradient, variances = self.gradient.copy(), self.variances.copy()
                gradient[place], variances[place] = mean, grown * variances[place]
                yield self._replace(gradient=gradient, variances=variances)
        for place, entry in enumerate(self.curvature):
            if entry.weights is not None:
                for mean, grown in _extremes(entry.mean, entry.weights, fakes):
                    moved = entry._replace(mean=mean, variance=grown * entry.variance)
                    entries = (*self.curvature[:place], moved, *self.curvature[place + 1 :])
                    known = self.variances if math.isfinite(mean) else np.full(self.at.size, math.nan)
                    yield self._replace(curvature=entries, variances=known)

    @property
    def matrix(self) -> Floats:
        found = np.zeros((self.at.size, self.at.size))
        for entry in self.curvature:
            found += entry.mean * _pattern(entry, self.at.size)
        return found


def _extremes(mean: float, weights: Weights, fakes: int) -> Iterator[tuple[float, float]]:
    """The largest and the smallest mean of the honest reports, and the factor by which its variance grows."""
    left = weights.reports - fakes
    for said in (weights.lowest, weights.highest):
        known = left > 0
        yield (mean - fakes * (said - mean) / left, weights.reports / left) if known else (math.nan, math.nan)


def _pattern(entry: Entry, size: int) -> Floats:
    found = np.zeros((size, size))
    for i, j in entry.places:
        found[i, j] = found[j, i] = 1.0
    return found


class Scale(NamedTuple):
    """Converts coefficients of features on a scale from -1 to 1 to coefficients of columns in their units."""

    matrix: Floats
    shift: Floats
    units: tuple[str, ...]
    largest: float
    """Coefficients of features lie between this and its negative."""

    @property
    def ends(self) -> Floats:
        """The ends between which each coefficient of a column lies."""
        reach = self.largest * np.abs(self.matrix).sum(axis=1)
        return np.stack([self.shift - reach, self.shift + reach], axis=1)


class Solved(NamedTuple):
    """Coefficients, with the covariance of their noise and of the remaining distance to the solution."""

    value: Floats
    noise: Floats
    remainder: Floats
    ridge: float = 0.0
    """The ridge added to the curvature."""


@one_thread
def solved(batches: Sequence[Batch], link: str) -> Solved | None:
    """Coefficients with their errors, by ridge regression if the noise could make the curvature singular.

    None if even that gives no estimate.
    """
    known = [one for one in batches if np.isfinite(one.variances).all() and (one.variances > 0).all()]
    start, later = ([one for one in known if bool(one.at.any()) == moved] for moved in (False, True))
    for ridge in (False, True):
        if link == "linear":
            each = [_newton(_Pool.of(known, ridge), link)]
        else:
            each = [_start(_Pool.of(start, ridge)), _newton(_Pool.of(later, ridge), link)]
        found = [one for one in each if one is not None]
        if found:
            return min(found, key=lambda one: float(np.trace(one.noise + one.remainder)))
    return None


class _Pool(NamedTuple):
    """Gradients and curvatures of batches, each with its weight."""

    batches: Sequence[Batch]
    weights: Floats
    parts: Floats
    curvature: Floats
    """The curvature including the ridge."""
    ridge: float = 0.0

    @classmethod
    def of(cls, batches: Sequence[Batch], ridge: bool) -> _Pool | None:
        """None if noise could make the curvature singular, unless a ridge may be added."""
        if not batches:
            return None
        weights = _shares([float(one.variances.mean()) for one in batches])
        parts = _shares([max(1e-300, _mean_variance(one)) for one in batches])
        found = cls(batches, weights, parts, np.tensordot(parts, [one.matrix for one in batches], 1))
        least, directions = np.linalg.eigh(found.curvature)
        weakest = directions[:, 0]
        noise = sum(variance * float(weakest @ pattern @ weakest) ** 2 for variance, pattern in found.entries())
        missing = _SURE * math.sqrt(noise) - float(least[0])
        if missing < 0:
            return found
        slopes = np.diag([0.0, *np.ones(len(least) - 1)])
        for times in _GROWTH ** np.arange(_TRIES) if ridge else ():
            curvature = np.asarray(found.curvature + float(times) * missing * slopes, dtype=np.float64)
            if float(np.linalg.eigvalsh(curvature)[0]) > _SURE * math.sqrt(noise):
                return found._replace(curvature=curvature, ridge=float(times * missing))._if_known()
        return None

    def _if_known(self) -> _Pool | None:
        """The pool itself, unless the ridge alone may move every slope by as much as the largest one found."""
        largest, moved = float(np.abs(self.step[1:]).max()), np.sqrt(np.diagonal(self.pulled)[1:])
        return self if (moved < largest).any() else None

    @property
    def step(self) -> Floats:
        return np.asarray(np.linalg.solve(self.curvature, self.gradient), dtype=np.float64)

    @property
    def pulled(self) -> Floats:
        """The ridge's addition to the covariance, if no slope is more than twice as large as the largest one found."""
        slopes = np.diag([0.0, *np.ones(len(self.curvature) - 1)])
        largest = 2 * float(np.abs(self.step[1:]).max(initial=0.0)) if self.ridge else 0.0
        moves = self.ridge * largest * np.linalg.solve(self.curvature, slopes)
        found: Floats = moves @ moves.T / 3
        return found

    @property
    def gradient(self) -> Floats:
        return self._mean([one.gradient for one in self.batches])

    @property
    def variances(self) -> Floats:
        found: Floats = self.weights**2 @ np.array([one.variances for one in self.batches])
        return found

    @property
    def at(self) -> Floats:
        return self._mean([one.at for one in self.batches])

    def _mean(self, values: Sequence[Floats]) -> Floats:
        found: Floats = self.weights @ np.array(values)
        return found

    def entries(self) -> Iterator[tuple[float, Floats]]:
        """For each figure of the curvatures its variance, times its weight squared, and its positions in the matrix."""
        for part, one in zip(self.parts, self.batches, strict=True):
            for entry in one.curvature:
                yield float(part) ** 2 * entry.variance, _pattern(entry, self.curvature.shape[0])


def _newton(pool: _Pool | None, link: str) -> Solved | None:
    if pool is None:
        return None
    inverse, step = np.linalg.inv(pool.curvature), pool.step
    spread = np.diag(pool.variances)
    for variance, pattern in pool.entries():
        spread += variance * np.outer(pattern @ step, pattern @ step)
    value, noise = pool.at + step, inverse @ spread @ inverse.T
    if link == "linear":
        return Solved(value, noise, pool.pulled, pool.ridge)
    away = np.array([value - one.at for one in pool.batches])
    turned = np.einsum("r,ri,rj->ij", pool.weights, away / 2 - pool.parts @ away, away)
    product = (turned + turned.T) / 2 @ pool.curvature
    bound = (2 * np.trace(product @ product) + np.trace(product) ** 2) / pool.curvature[0, 0]
    return Solved(value, noise, bound / 3 * inverse + pool.pulled, pool.ridge)


def _start(pool: _Pool | None) -> Solved | None:
    if pool is None:
        return None

    def read(gradient: Floats, curvature: Floats) -> tuple[Floats, Floats]:
        step: Floats = np.linalg.inv(curvature) @ gradient
        return step, np.array(discriminant(step.tolist(), gradient.tolist(), (4 * curvature[0]).tolist(), math.log))

    gradient, curvature = pool.gradient, pool.curvature
    step, value = read(gradient, curvature)
    noise = np.zeros_like(curvature)
    moves: list[tuple[float, Any, Any]] = [
        (variance, unit, 0) for variance, unit in zip(pool.variances.tolist(), np.eye(value.size), strict=True)
    ]
    moves += [(variance, 0, pattern) for variance, pattern in pool.entries()]
    for variance, first, second in moves:
        error = math.sqrt(variance)
        ends = [read(gradient + h * first, curvature + h * second)[1] for h in (-error / 2, error / 2)]
        noise += np.outer(ends[1] - ends[0], ends[1] - ends[0])
    bound = (value - step) @ curvature @ (value - step) / 4
    return Solved(value, noise, bound / 3 * np.linalg.inv(curvature) + pool.pulled, pool.ridge)


def discriminant(
    step: Sequence[Any], gradient: Sequence[Any], means: Sequence[Any], log: Callable[[Any], Any]
) -> list[Any]:
    """Coefficients of Fisher's linear discriminant, from one step of Newton's method at 0; numbers of any kind.

    `gradient` has the means of (y - 1/2) x, `means` those of x, both after that of the constant. The slopes are those
    of the linear regression of y on x, a fourth of the step, divided by the variance of its residuals. This is exact
    for normal columns whose covariance does not depend on y. The variance is taken as a fourth of that of y at least.
    """
    share = min(max(gradient[0] + _HALF, _RARE), 1 - _RARE)
    variance = share * (1 - share)
    places = range(1, len(step))
    with_target = {k: gradient[k] - gradient[0] * means[k] for k in places}
    left = variance - sum(with_target[k] * step[k] for k in places) / 4
    scale = 4 * max(left, variance / 4)
    slopes = [step[k] / scale for k in places]
    middles = [means[k] + with_target[k] * (_HALF - share) / variance for k in places]
    return [log(share / (1 - share)) - sum(a * b for a, b in zip(slopes, middles, strict=True)), *slopes]


def _shares(variances: Sequence[float]) -> Floats:
    inverse = 1 / np.array(variances)
    found: Floats = inverse / inverse.sum()
    return found


def _mean_variance(batch: Batch) -> float:
    """Mean variance of an entry of the curvature, over the whole matrix."""
    size = batch.at.size
    return sum(entry.variance * float(_pattern(entry, size).sum()) for entry in batch.curvature) / size**2


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Result):
    """The coefficients of a linear or logistic regression.

    Args:
        labels: Names of the coefficients.
        value: The coefficients.
        covariance: Their covariance matrix.
        n: Number of reports.
        protocol: Name of the protocol.
        method: How the steps were made.
        link: "linear" or "logistic".
        target: Name of the column that is explained.
        units: Unit of each coefficient.
        ends: The ends between which each coefficient lies, whatever the reports are.
        unconverged: The part of the standard errors due to the remaining distance of the steps from the solution.
        honest: The extreme results of the honest reports if a given number of reports is forged.

    >>> found = Regression(("intercept", "age"), np.array([1.0, 0.5]), np.diag([0.04, 0.01]), 1000, "Queries")
    >>> found.coefficients["age"], [round(end, 2) for end in found.interval()[1].tolist()]
    (0.5, [0.3, 0.7])
    """

    kind: ClassVar[str] = "regression"
    heading: ClassVar[str] = "coefficient"

    labels: tuple[str, ...]
    value: Floats = field()
    covariance: Floats
    n: int
    protocol: str
    method: str = "one batch"
    link: str = "linear"
    target: str = ""
    units: tuple[str, ...] = ()
    ends: Floats | None = None
    unconverged: Floats | None = None
    honest: Callable[[int], list[Regression]] | None = None

    @classmethod
    def of(
        cls, batches: Sequence[Batch], labels: Sequence[str], link: str, target: str, scale: Scale, protocol: str
    ) -> Regression:
        """From the batches that have reports, in the units of the columns."""
        found = solved(batches, link) if batches else None
        size, n = len(labels), sum(one.n for one in batches)
        how = "one batch" if len(batches) == 1 else f"{len(batches)} batches"
        head = {"labels": tuple(labels), "n": n, "protocol": protocol, "method": how, "link": link, "target": target}
        head |= {"units": scale.units, "ends": scale.ends}
        if found is None:
            said = (TOO_FEW,) if n else ()
            empty = np.full(size, math.nan), np.full((size, size), math.nan)
            return cls(**head, value=empty[0], covariance=empty[1], said=said)  # type: ignore[arg-type]
        if found.ridge:
            head |= {"method": f"ridge regression, {how}", "said": (RIDGE,)}
        left = scale.matrix @ found.remainder @ scale.matrix.T

        def honest(fakes: int) -> list[Regression]:
            each = ((place, other) for place, one in enumerate(batches) for other in one.honest(fakes))
            return [
                cls.of([*batches[:place], other, *batches[place + 1 :]], labels, link, target, scale, protocol)
                for place, other in each
            ]

        return cls(
            **head,  # type: ignore[arg-type]
            value=scale.matrix @ found.value + scale.shift,
            covariance=scale.matrix @ found.noise @ scale.matrix.T + left,
            unconverged=np.sqrt(np.diagonal(left)),
            honest=honest if all(one.weights for one in batches) else None,
        )

    @property
    def coefficients(self) -> dict[str, float]:
        return dict(zip(self.labels, self.value.tolist(), strict=True))

    @property
    def is_known(self) -> bool:
        return bool(np.isfinite(self.value).all())

    @property
    def stderr(self) -> Floats:
        found: Floats = np.sqrt(np.diagonal(self.covariance))
        return found

    def interval(self, level: float = 0.95, simultaneous: bool = False) -> Floats:
        """A confidence interval per coefficient, (p, 2); the whole range if nothing is known."""
        if not self.is_known:
            return np.tile([-math.inf, math.inf], (len(self.labels), 1)) if self.ends is None else self.ends
        reach = quantile(level, len(self.labels) if simultaneous else 1) * self.stderr
        ends = np.stack([self.value - reach, self.value + reach], axis=1)
        if self.fakes and self.honest is not None:
            for one in self.honest(self.fakes):
                other = one.interval(level, simultaneous)
                ends = np.stack([np.minimum(ends[:, 0], other[:, 0]), np.maximum(ends[:, 1], other[:, 1])], axis=1)
        return ends

    def _robust(self, fakes: int) -> Regression:
        return replace(self, fakes=fakes) if self.honest is not None or not self.is_known else super()._robust(fakes)

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        ends = self.interval(level, simultaneous)
        stderr = np.where(np.isnan(self.stderr), math.inf, self.stderr)
        units = self.units or ("",) * len(self.labels)
        return Rows(
            self.labels,
            self.value,
            stderr,
            ends[:, 0],
            ends[:, 1],
            level=level,
            simultaneous=simultaneous,
            population=population,
            units=units,
            is_ordered=True,
        )

    def measured(self) -> Measured | None:
        if not self.is_known:
            return None
        return Measured(list(self.labels), self.value, lambda _: self.covariance, self.n, np.eye(len(self.labels)))

    def as_given(self, given: Any) -> Floats:
        """Coefficients by name or in order."""
        if isinstance(given, Mapping):
            for name in given:
                if name not in self.labels:
                    raise LabelError(f"there is no coefficient {name!r}; there are {', '.join(self.labels)}")
            missing = [name for name in self.labels if name not in given]
            if missing:
                raise LabelError(f"the coefficient {missing[0]!r} is missing")
            given = [given[name] for name in self.labels]
        found = np.asarray(given, dtype=np.float64)
        if found.shape != self.value.shape:
            raise ShapeError(f"there are {len(self.labels)} coefficients, not {found.size}")
        return found

    @property
    def notes(self) -> list[str]:
        what = "log odds of " if self.link == "logistic" else ""
        about = [f"coefficients of {what}{self.target}: {self.link} regression"] if self.target and self.n else []
        return [*about, *self._not_yet, *super().notes]

    @property
    def _not_yet(self) -> list[str]:
        """How much of the errors is not noise, if it makes intervals a tenth wider."""
        if self.unconverged is None or not self.is_known or RIDGE in self.said:
            return []
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = self.unconverged / self.stderr
        worst = int(np.argmax(np.nan_to_num(shares)))
        if not float(shares[worst]) > _SEEN:
            return []
        return [
            f"of the standard error of {self.labels[worst]}, {self.stderr[worst]:.3g}, "
            f"{self.unconverged[worst]:.3g} is not noise: the steps have not yet converged. Another batch lowers it"
        ]

    def repeated(self, noise: float, people: float) -> Regression:
        times, honest = max(noise, people), self.honest
        left = None if self.unconverged is None else self.unconverged * math.sqrt(times)
        repeated = None if honest is None else lambda fakes: [one.repeated(noise, people) for one in honest(fakes)]
        how: dict[str, Any] = {"unconverged": left, "honest": repeated, "check": self._check_of(noise)}
        return replace(self, covariance=self.covariance * times, **how)

    def __repr__(self) -> str:
        if not self.n:
            return f"<Regression: {no_reports()}>"
        words = ", ".join(f"{name} {value:.4g}" for name, value in self.coefficients.items())
        return f"<Regression of {self.target}: {words}, from {self.n} reports>"


RIDGE = (
    "the reports do not tell some columns apart: by ridge regression their coefficients are pulled towards those that "
    "the question was asked at, and the errors have what that may have moved them by, if none is more than twice as "
    "large as the largest one here"
)
TOO_FEW = "too few reports: the noise hides how the columns are associated, so that no coefficient is known"

"""Coefficients of a regression: steps of Newton's method at published coefficients, put together, with their errors.

Evidence   of each batch of people: the mean gradient and the mean curvature at the coefficients that the batch was
           asked at, each entry with the variance of its own reports. The entries come from different people
Estimate   the coefficients where sum_r w_r (g_r - M_r (theta - at_r)) vanishes; w_r is inverse to the variance of the
           gradient of batch r. The curvature of a linear regression is the same everywhere: M_r is the mean of all
           batches. Of a logistic one M_r is the mean of the curvatures of batch r and of the last batch, between which
           the gradient has fallen to zero (the trapezoid rule: what is left is of third order); its first batch, asked
           far away, counts only where it is the only one. One batch is one step of Newton's method
Error      by the delta method: J^-1 Var(sum_r w_r (g_r - M_r (theta - at_r))) J^-1, where J is the weighted curvature.
           Reports vary by noise and by who was asked, so that errors are about the population
Unknown    where the smallest eigenvalue of the curvature is less than 4 times its own standard error, nothing is
           estimated, and a note says so
Units      coefficients are per unit of a column, in the unit of the target or in log odds
Source     Newton-Raphson; one-step estimators: Le Cam 1956; over disjoint batches: Smith, Thakurta and Upadhyay 2017
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from deniable.errors import LabelError, ShapeError
from deniable.results.base import NOTHING, Floats, Result, Rows, quantile
from deniable.results.significance import Measured

_SURE = 4.0
"""How many times its own standard error the smallest eigenvalue of the curvature must be."""


class Entry(NamedTuple):
    """One figure of the curvature: its mean, the variance of that mean, and where it stands in the matrix."""

    mean: float
    variance: float
    places: tuple[tuple[int, int], ...]


class Batch(NamedTuple):
    """What one batch of people says."""

    at: Floats
    """The coefficients that it was asked at."""
    gradient: Floats
    variances: Floats
    """Of the gradient."""
    curvature: tuple[Entry, ...]
    n: int

    @property
    def matrix(self) -> Floats:
        found = np.zeros((self.at.size, self.at.size))
        for entry in self.curvature:
            found += entry.mean * _pattern(entry, self.at.size)
        return found


def _pattern(entry: Entry, size: int) -> Floats:
    found = np.zeros((size, size))
    for i, j in entry.places:
        found[i, j] = found[j, i] = 1.0
    return found


class Scale(NamedTuple):
    """How coefficients of features on a scale from -1 to 1 become coefficients of columns in their units."""

    matrix: Floats
    shift: Floats
    units: tuple[str, ...]
    largest: float
    """Coefficients of features lie between this and its negative."""

    @property
    def ends(self) -> Floats:
        """Between which ends each coefficient of a column lies."""
        reach = self.largest * np.abs(self.matrix).sum(axis=1)
        return np.stack([self.shift - reach, self.shift + reach], axis=1)


def solved(batches: Sequence[Batch], link: str) -> tuple[Floats, Floats] | None:
    """Coefficients and their covariance; None where the noise could make the curvature singular."""
    known = [one for one in batches if np.isfinite(one.variances).all() and (one.variances > 0).all()]
    if link != "linear" and len(known) > 1:
        known = known[1:]
    if not known:
        return None
    size, last = known[0].at.size, len(known) - 1
    weights = _shares([1 / float(one.variances.mean()) for one in known])
    # Of each batch's curvature, how much there is in the one that each batch is read with.
    parts = np.full((len(known), len(known)), 0.0)
    if link == "linear":
        parts[:] = _shares([1 / max(1e-300, _mean_variance(one)) for one in known])
    else:
        parts[:, last] = 0.5
        parts += np.eye(len(known)) / 2
    matrices = [np.tensordot(row, [one.matrix for one in known], 1) for row in parts]
    curvature = np.tensordot(weights, matrices, 1)
    total = np.array(weights) @ parts
    least, directions = np.linalg.eigh(curvature)
    weakest, noise = directions[:, 0], 0.0
    for share, one in zip(total, known, strict=True):
        for entry in one.curvature:
            noise += share**2 * entry.variance * float(weakest @ _pattern(entry, size) @ weakest) ** 2
    if float(least[0]) <= _SURE * math.sqrt(noise):
        return None
    each = zip(weights, matrices, known, strict=True)
    value = np.linalg.solve(curvature, sum(share * (one.gradient + own @ one.at) for share, own, one in each))
    away = [share * (value - one.at) for share, one in zip(weights, known, strict=True)]
    spread = np.zeros((size, size))
    for place, (share, one) in enumerate(zip(weights, known, strict=True)):
        spread += share**2 * np.diag(one.variances)
        lever = parts[:, place] @ away
        for entry in one.curvature:
            moved = _pattern(entry, size) @ lever
            spread += entry.variance * np.outer(moved, moved)
    inverse = np.linalg.inv(curvature)
    found: Floats = inverse @ spread @ inverse.T
    return value, found


def _shares(values: Sequence[float]) -> list[float]:
    return [one / sum(values) for one in values]


def _mean_variance(batch: Batch) -> float:
    """Of an entry of the curvature, over the whole matrix."""
    size = batch.at.size
    return sum(entry.variance * float(_pattern(entry, size).sum()) for entry in batch.curvature) / size**2


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Result):
    """The coefficients of a linear or logistic regression.

    >>> found = Regression(("intercept", "age"), np.array([1.0, 0.5]), np.diag([0.04, 0.01]), 1000, "Queries")
    >>> found.coefficients["age"], [round(end, 2) for end in found.interval()[1].tolist()]
    (0.5, [0.3, 0.7])
    """

    kind: ClassVar[str] = "regression"
    heading: ClassVar[str] = "coefficient"

    labels: tuple[str, ...]
    value: Floats
    covariance: Floats
    n: int
    protocol: str
    method: str = "one batch"
    link: str = "linear"
    target: str = ""
    units: tuple[str, ...] = ()
    ends: Floats | None = None
    """Between which ends each coefficient lies, whatever the reports say."""

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
        value, spread = found
        return cls(
            **head,  # type: ignore[arg-type]
            value=scale.matrix @ value + scale.shift,
            covariance=scale.matrix @ spread @ scale.matrix.T,
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
        """A confidence interval per coefficient, (p, 2); the whole range where nothing is known."""
        if not self.is_known:
            return np.tile([-math.inf, math.inf], (len(self.labels), 1)) if self.ends is None else self.ends
        reach = quantile(level, len(self.labels) if simultaneous else 1) * self.stderr
        return np.stack([self.value - reach, self.value + reach], axis=1)

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
        return [*about, *super().notes]

    def repeated(self, noise: float, people: float) -> Regression:
        return replace(self, covariance=self.covariance * max(noise, people), check=self._check_of(noise))

    def __repr__(self) -> str:
        if not self.n:
            return f"<Regression: {NOTHING}>"
        words = ", ".join(f"{name} {value:.4g}" for name, value in self.coefficients.items())
        return f"<Regression of {self.target}: {words}, from {self.n} reports>"


TOO_FEW = "too few reports: the noise hides how the columns hang together, so that no coefficient is known"

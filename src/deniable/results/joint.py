"""Tables of several columns: the unbiased shares of all combinations of answers, and models of whole records.

Crosstab   the shares of the combinations of some columns, with the exact covariance of one group of people; its sums
           over columns are crosstabs again, with their own exact errors
Joint      the crosstabs of one record: `table(*names)` from every group that was asked for all of these columns,
           weighted by inverse variance; `model(method)` for the others, which makes an assumption and states it
Model      one distribution of whole records. Standard errors of its tables by a parametric bootstrap: tables are drawn
           again around the model with the covariance of the reports, and the model is fitted to each. Wrong assumptions
           of the model are not included; intervals are those of the tables that were asked for, and so hold anyway
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deniable._extras import require
from deniable._plain import escaped
from deniable._sheets import Sheet
from deniable.errors import LabelError, MismatchError, NumberError
from deniable.results.base import Quantity, Span, Weights, quantile
from deniable.results.bounds import Numbers
from deniable.results.models import (
    METHODS,
    MOST_CLASSES,
    Axes,
    Classes,
    Core,
    Evidence,
    Seen,
    core_like,
    core_of,
    given_last,
    simplex,
)
from deniable.results.render.plot import INK
from deniable.results.rows import Drawing, Floats, Picture, Rows, View, decimals, number
from deniable.results.several import Several
from deniable.results.shares import Estimate, combine
from deniable.results.significance import Measured, SignificanceTest, beyond_independence, independence

_FEW = 8
BETWEEN = " & "
"""Separates the names of columns, and the answers of a combination."""


@dataclass(frozen=True, eq=False, repr=False)
class Crosstab(Estimate):
    """The shares of the combinations of the answers of some columns, row by row.

    Args:
        axes: The columns, each with its answers.
        heard: This group's fraction of those who answered.
    """

    kind: ClassVar[str] = "table"
    picture: ClassVar[Picture] = "matrix"

    axes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    heard: Fraction = Fraction(1)

    @classmethod
    def of(cls, shares: Estimate, axes: Mapping[str, Sequence[str]]) -> Crosstab:
        """From the shares of the numbered combinations."""
        named = tuple((name, tuple(labels)) for name, labels in axes.items())
        known = {one.name: getattr(shares, one.name) for one in fields(shares)}
        return cls(**known | {"labels": combined(named), "axes": named})

    @property
    def unbiased(self) -> Crosstab:
        return self.raw if isinstance(self.raw, Crosstab) else self

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(labels) for _, labels in self.axes)

    @property
    def array(self) -> Floats:
        """The shares, one axis per column."""
        return self.frequencies.reshape(self.shape)

    def sampled(self, part: Fraction) -> Self:
        return replace(super().sampled(part), heard=part * self.heard)

    def over(self, *names: str) -> Crosstab:
        """The shares of the combinations of some of the columns, in this order.

        >>> from deniable.protocols import Attributes
        >>> both = Attributes({"a": ["x", "y"], "b": 3}, epsilon=2, ask="pairs")
        >>> found = both.estimate(both.tally(both.privatize([{"a": "x", "b": 1}] * 1000)))
        >>> found.table("a", "b").over("a").labels
        ['x', 'y']
        """
        places = [self.names.index(name) for name in self._known(names)]
        if places == list(range(len(self.axes))):
            return self
        rest = tuple(place for place in range(len(self.axes)) if place not in places)
        order = np.argsort(np.argsort(places))

        def summed(values: Floats) -> Floats:
            whole = np.broadcast_to(values, math.prod(self.shape)).reshape(self.shape)
            kept: Floats = np.transpose(whole.sum(axis=rest), order) if rest else np.transpose(whole, places)
            return kept.reshape(-1)

        axes = tuple(self.axes[place] for place in places)
        if not rest:
            return self._turned(np.transpose(np.arange(len(self.labels)).reshape(self.shape), places).reshape(-1), axes)
        raw = self.raw or self
        counts = summed(self.counts)
        if not self.n:
            return Crosstab(combined(axes), 0, counts, counts, self.protocol, axes=axes)
        heard = float(self.heard)
        drawn = float(np.max(raw.people)) / heard if heard else 0.0
        shares = np.clip(summed(raw.counts) / self.n, 0.0, 1.0)
        spread = self.n * shares * (1 - shares) * drawn
        noise = self.growth[0] * self.n * _noise_of_sums(raw, shares, len(self.labels) // counts.size)
        total = noise + (1 - heard) * spread
        how: dict[str, Any] = {"method": self.method, "people": heard * drawn, "axes": axes, "heard": self.heard}
        if raw.support is not None:
            many, gap = len(self.labels) // counts.size, raw.support.p - raw.support.q
            together = many if raw.support.size is None else min(many, raw.support.size)
            ends = (-many * raw.support.q / gap, (together - many * raw.support.q) / gap)
            bounds = Numbers.between(*ends, counts / self.n, heard * self.n if heard else self.n)
            how |= {"weights": Weights(*ends), "fakes": self.fakes, "bounds": bounds}
        return Crosstab(combined(axes), self.n, counts, total, self.protocol, **how)

    def _turned(self, cells: NDArray[np.intp], axes: tuple[tuple[str, tuple[str, ...]], ...]) -> Crosstab:
        """The same table with its cells in another order."""
        back, law, support, raw = np.argsort(cells), self.law, self.support, self.raw

        def turned_law(shares: Floats) -> Floats:
            assert law is not None
            found: Floats = law(shares[back])[np.ix_(cells, cells)]
            return found

        if support is not None:
            worth = support.worth[cells] if isinstance(support.worth, np.ndarray) else support.worth
            support = replace(support, counts=support.counts[cells], worth=worth)
        return replace(
            self,
            labels=combined(axes),
            axes=axes,
            counts=self.counts[cells],
            noise=self.noise[cells],
            people=self.people[cells] if isinstance(self.people, np.ndarray) else self.people,
            support=support,
            bounds=self.bounds and self.bounds.of(cells),
            law=None if law is None else turned_law,
            raw=raw._turned(cells, axes) if isinstance(raw, Crosstab) else None,
        )

    def _known(self, names: Sequence[str]) -> Sequence[str]:
        for name in names:
            if name not in self.names:
                raise LabelError(f"there is no column {name!r} here; there are {', '.join(self.names)}")
        if not names or len(set(names)) < len(names):
            raise LabelError("name different columns, at least one")
        return names

    def independent(self, test: str = "chi-square") -> SignificanceTest:
        """Test whether the two columns are independent, with the exact covariance of the reports.

        "chi-square" divides by that covariance. "G" is the likelihood ratio of the shares, whose law under noise is a
        weighted sum of chi-squares; its p-value is that of the one with the same mean and variance (Rao and Scott).
        Raises MismatchError unless there are two columns, and if several groups were combined.
        """
        if len(self.axes) != 2:
            raise MismatchError(f"independence is about two columns, not about {BETWEEN.join(self.names)}")
        if test not in ("chi-square", "G"):
            raise LabelError(f"there is no test {test!r}; there are chi-square and G")
        whole = independence(self, (self.shape[0], self.shape[1]))
        return whole if test == "chi-square" or not self.n else self._likelihood_ratio(whole)

    def _likelihood_ratio(self, other: SignificanceTest) -> SignificanceTest:
        from scipy.special import chdtrc

        found, rows, columns = self._two()
        _, spread, expected = beyond_independence(found, np.arange(rows * columns), rows, columns)
        kept = expected > 0
        scale = np.sqrt(expected[kept])
        squares = spread[np.ix_(kept, kept)] / np.outer(scale, scale)
        mean, second = float(np.trace(squares)), float((squares**2).sum())
        shares = simplex(found.value).reshape(rows, columns)
        product = np.outer(shares.sum(axis=1), shares.sum(axis=0))
        inside = shares > 0
        ratio = 2 * float((shares[inside] * np.log(shares[inside] / product[inside])).sum())
        freedom = mean**2 / second
        p_value = float(chdtrc(freedom, ratio * mean / second))
        return replace(other, p_value=p_value, statistic=ratio * mean / second, freedom=round(freedom), method="G")

    def _two(self) -> tuple[Measured, int, int]:
        """The shares of two columns with their covariance; raises MismatchError if that is not known."""
        found = self.unbiased.measured()
        if len(self.axes) != 2 or found is None:
            raise MismatchError("associations are those of two columns that one group was asked for together")
        return found, self.shape[0], self.shape[1]

    def association(self) -> Association:
        """The strength of association of the two columns, corrected for the noise, with errors by the delta method."""
        found, rows, columns = self._two()
        order = np.arange(rows * columns)
        excess, spread, expected = beyond_independence(found, order, rows, columns)
        kept = expected > 0
        squares = (excess**2 - np.diagonal(spread))[kept] / expected[kept]
        strength = math.sqrt(max(0.0, float(squares.sum())) / (min(rows, columns) - 1))
        # Slopes are taken at shares without negative cells.
        shares = simplex(found.value).reshape(rows, columns)
        cover = found.spread(shares.reshape(-1))
        first, second = shares.sum(axis=1), shares.sum(axis=0)
        correlation, slope = _correlation(shares, first, second)
        return Association(
            independence(self, (rows, columns)),
            strength,
            correlation,
            math.sqrt(max(0.0, float(slope @ cover @ slope))),
            *_information(shares, excess, spread, cover),
        )

    def odds_ratio(self, rows: tuple[str, str], columns: tuple[str, str], level: float = 0.95) -> Quantity:
        """The odds of the first column answer against the second in the first row answer, over those in the second.

        With an interval from the logarithm; if a cell may be empty it reaches from 0 to infinity.
        """
        found, _, width = self._two()
        (_, down), (_, along) = self.axes
        for label, known in [*((one, down) for one in rows), *((one, along) for one in columns)]:
            if label not in known:
                raise LabelError(f"there is no answer {label!r}; there are {', '.join(known)}")
        places = [down.index(row) * width + along.index(column) for row in rows for column in columns]
        signs, shares = np.array([1.0, -1.0, -1.0, 1.0]), found.value[places]
        if (shares <= 0).any():
            return Quantity(math.nan, lambda level, population: (0.0, math.inf), math.nan)
        spread = found.spread(found.value)[np.ix_(places, places)]
        slope = signs / shares
        value, error = math.exp(float(signs @ np.log(shares))), math.sqrt(float(slope @ spread @ slope))

        def interval(level: float, population: bool) -> tuple[float, float]:
            reach = math.exp(quantile(level) * error)
            return value / reach, value * reach

        return Quantity(value, interval, value * error)

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        return replace(super().table(level, simultaneous, population), is_ordered=True)

    def __getitem__(self, label: Any) -> Any:
        """The share of one combination: `table["x & 1"]`, or `table["x", "1"]`."""
        return super().__getitem__(BETWEEN.join(map(str, label)) if isinstance(label, tuple) else label)

    def pivot(self, figure: str = "value", level: float = 0.95, population: bool = True) -> Any:
        """A pandas frame with the answers of the last column side by side and those of the others as rows.

        `figure` is "value", "stderr", "low", "high" or "count".
        """
        columns = self.table(level, population=population).columns
        known = [name for name in columns if name not in ("label", "unit", "assumed")]
        if figure not in known:
            raise LabelError(f"there is no figure {figure!r}; there are {', '.join(known)}")
        pandas, (*down, (across, names)) = require("pandas", "frames"), self.axes
        many = down or [("", (figure,))]
        index = pandas.MultiIndex.from_product([labels for _, labels in many], names=[name for name, _ in many])
        index = index.get_level_values(0) if len(many) == 1 else index
        cells = np.asarray(columns[figure]).reshape(-1, len(names))
        return pandas.DataFrame(cells, index, pandas.Index(names, name=across))

    def sheet(self, level: float = 0.95, population: bool = True) -> Sheet:
        """Two columns as a table of rows and columns; more of them row by row."""
        made = super().sheet(level, population)
        if len(self.axes) != 2:
            return made
        (first, down), (second, along) = self.axes
        rows = self.table(level, population=population)

        def cell(i: int, j: int) -> str:
            place = i * len(along) + j
            digits = decimals(rows.stderr[place])
            low, high = number(rows.low[place], digits), number(rows.high[place], digits)
            return f"{number(rows.value[place], digits)} ({low} .. {high})"

        above = [*made.above, f"share ({rows.interval_name})"]
        crossed = Sheet.matrix(above, f"{first} / {second}", (down, along), cell)
        return replace(crossed, below=[*crossed.below, *made.below])

    def drawings(self, view: View, rows: Rows, further: bool = True) -> list[Drawing]:
        return [replace(one, axes=self.axes) for one in super().drawings(view, rows, further)]

    def plot(
        self,
        ax: Any = None,
        level: float = 0.95,
        most: int = 40,
        simultaneous: bool = False,
        population: bool = True,
    ) -> Any:
        """A map of two columns, darker where more people are, a dot where the interval contains zero; else bars."""
        if len(self.axes) != 2:
            return super().plot(ax, level, most, simultaneous, population)
        rows = self.table(level, simultaneous, population)
        title = f"{BETWEEN.join(self.names)}, n = {self.n:,}: dots may be zero"
        return heat_map(self.axes, rows.value, title, ax, ~(rows.low > 0))

    def __repr__(self) -> str:
        return f"<Crosstab of {BETWEEN.join(self.names)} from {self.n} reports, {self.protocol}, {self.method}>"


def combined(axes: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """The labels of the combinations, row by row.

    >>> combined([("a", ["x", "y"]), ("b", ["1", "2"])])
    ['x & 1', 'x & 2', 'y & 1', 'y & 2']
    """
    found = [""]
    for place, (_, labels) in enumerate(axes):
        found = [f"{one}{BETWEEN if place else ''}{label}" for one in found for label in labels]
    return found


def _noise_of_sums(raw: Estimate, shares: Floats, size: int) -> Floats:
    """The variance that one report adds to a count that is the sum of `size` cells, for people with these shares of it.

    Reports that support a fixed number of cells make the counts negatively correlated; other counts are uncorrelated.
    """
    support, cells = raw.support, len(raw.labels)
    if support is None:
        raise MismatchError(f"the covariance of the shares that {raw.protocol} estimates is not known")
    own, other = support.p * (1 - support.p), support.q * (1 - support.q)
    mixed = pair = 0.0
    if support.size is not None and cells > 1:
        mixed = -own / (cells - 1)
        pair = -(other + mixed) / (cells - 2) if cells > 2 else 0.0
    inside = own + (size - 1) * (other + 2 * mixed + (size - 2) * pair)
    outside = size * (other + (size - 1) * pair)
    found: Floats = (shares * inside + (1 - shares) * outside) / (support.p - support.q) ** 2
    return np.maximum(found, 0.0)


class Association(NamedTuple):
    """The association of two columns."""

    test: SignificanceTest
    """Whether they are independent."""
    strength: float
    """Cramér's V, from 0 to 1, corrected for what the noise adds to its square."""
    correlation: float
    """Correlation of the positions of the answers, meaningful if both columns are ordered."""
    correlation_stderr: float
    information: float
    """Mutual information of the columns, in nats, corrected for what the noise adds on average."""
    information_stderr: float


def _correlation(shares: Floats, first: Floats, second: Floats) -> tuple[float, Floats]:
    """The correlation of the positions, and its derivative in the share of each cell."""
    scores = []
    for own in (first, second):
        places = np.arange(own.size) - own @ np.arange(own.size)
        spread = math.sqrt(float(own @ places**2))
        scores.append(places / spread if spread > 0 else np.zeros(own.size))
    down, along = scores
    value = float(down @ shares @ along)
    slope: Floats = np.outer(down, along) - value / 2 * (down[:, None] ** 2 + along[None, :] ** 2)
    return value, slope.reshape(-1)


def _information(shares: Floats, excess: Floats, spread: Floats, cover: Floats) -> tuple[float, float]:
    """Mutual information in nats, less half of what the noise adds to the squares, and its standard error."""
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    kept = (shares > 0) & (expected > 0)
    logs = np.zeros(shares.shape)
    logs[kept] = np.log(shares[kept] / expected[kept])
    inside = expected.reshape(-1) > 0
    added = float((np.diagonal(spread)[inside] / expected.reshape(-1)[inside]).sum()) / 2
    error = math.sqrt(max(0.0, float(logs.reshape(-1) @ cover @ logs.reshape(-1))))
    return max(0.0, float((shares * logs).sum()) - added), error


@dataclass(frozen=True, eq=False, repr=False)
class Joint(Several):
    """The tables of a record whose columns were asked together.

    Args:
        axes: The columns, each with the answers, or cells of numbers, that tables use.
        answers: The meaning of the cells of each column in a record: an answer, or a `Span` of numbers.
    """

    kind: ClassVar[str] = "joint"

    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    answers: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def shares(self, name: str) -> Any:
        """The result of one part ("age & sex"), or of one column from all parts that contain it."""
        return self.parts[name] if name in self.parts else self.crosstab(name)

    @property
    def crosstabs(self) -> dict[tuple[str, ...], Crosstab]:
        """The tables that were asked for, by their columns."""
        return {part.names: part for part in self.parts.values() if isinstance(part, Crosstab)}

    def table(self, *names: Any, **how: Any) -> Any:
        """`table("age", "sex")` is the crosstab of these columns; without names the rows of all parts.

        Raises LabelError if no group was asked for all of them.
        """
        if names and isinstance(names[0], str):
            return self.crosstab(*names)
        return super().table(*names, **how)

    def _rows(self, name: str, level: float, simultaneous: bool, population: bool) -> Rows:
        return self.parts[name].table(level, simultaneous, population)

    def crosstab(self, *names: str) -> Crosstab:
        """The unbiased shares of the combinations of these columns, from every group that was asked for all of them."""
        for name in names:
            if name not in self.axes:
                raise LabelError(f"there is no column {name!r}; there are {', '.join(self.axes)}")
        found = _asked(self.crosstabs.values(), names)
        if found is None:
            together = BETWEEN.join(names)
            raise LabelError(f"no group was asked for {together} together: model() has them, under assumptions")
        return found

    def model(self, method: str = "blend", classes: int | None = None, draws: int = 30) -> Model:
        """One distribution of whole records behind all tables, by one of the methods of `deniable.results.models`.

        `classes` fixes the number of latent classes; `draws` is how often the bootstrap fits the model.
        """
        if method not in METHODS:
            raise LabelError(f"there is no model {method!r}; there are {', '.join(METHODS)}")
        if classes is not None and (method != "latent" or not 1 <= classes <= MOST_CLASSES):
            raise NumberError(f"classes are for the latent model, 1 to {MOST_CLASSES}, not {classes!r}")
        places = {name: place for place, name in enumerate(self.axes)}
        heard = tuple(part.unbiased for part in self.crosstabs.values() if part.n)
        seen = [
            Seen(tuple(places[name] for name in one.names), one.array, float(np.mean(one.stderr**2)), one.n)
            for one in heard
        ]
        evidence = Evidence(tuple(len(labels) for labels in self.axes.values()), tuple(seen))
        core = core_of(evidence, method, classes)
        return Model(self.axes, method, self.n, evidence, heard, core, draws, self.answers)

    def associations(self) -> dict[tuple[str, str], Association]:
        """The association of each pair of columns that was asked for together."""
        pairs = {one.names: one for one in self.crosstabs.values() if len(one.names) == 2 and one.n}
        return {(names[0], names[1]): one.association() for names, one in pairs.items()}

    def plot_associations(self, ax: Any = None) -> Any:
        """A map of all columns: darker if two are more strongly associated (Cramér's V), a dot if that may be
        chance at level 0.05."""
        names = list(self.axes)
        value, unsure = np.zeros((len(names), len(names))), np.zeros((len(names), len(names)), dtype=bool)
        for (one, other), found in self.associations().items():
            for i, j in ((names.index(one), names.index(other)), (names.index(other), names.index(one))):
                value[i, j], unsure[i, j] = found.strength, not found.test.rejected()
        title = f"Cramér's V, n = {self.n:,}: dots may be chance"
        return heat_map([("", names), ("", names)], value.reshape(-1), title, ax, unsure, "strength")

    def synthesize(self, n: int, method: str = "latent", seed: int | None = None) -> dict[str, list[Any]]:
        """Synthetic records from a model, column by column: they describe no person, and keep what the model keeps.

        They have the form of the requested answers. Within a cell all numbers are equally likely.
        """
        return self.model(method).sample(n, seed)

    def __repr__(self) -> str:
        return f"<Joint: {len(self.parts)} tables of {', '.join(self.axes)} from {self.n} reports, {self.protocol}>"


def _asked(tables: Iterable[Crosstab], names: Sequence[str]) -> Crosstab | None:
    """The unbiased shares of the combinations of some columns, from all tables that have them; None if none does."""
    found = [one.over(*names) for one in tables if set(names) <= set(one.names)]
    heard = [one for one in found if one.n] or found[:1]
    if len(heard) < 2:
        return heard[0] if heard else None
    both = combine(*heard)
    known = ("labels", "n", "counts", "noise", "protocol", "people", "bounds")
    return Crosstab(**{name: getattr(both, name) for name in known}, method="combined", axes=heard[0].axes)


# -- models --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Asked:
    """Intervals of a model's cells that hold whatever the model assumes.

    Columns that were asked together have the intervals of their unbiased table. The share of another combination is
    between zero and the share of each of its parts that was asked. Shares among people with an answer
    are ratios of two such intervals.
    """

    tables: tuple[Crosstab, ...]
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    first: int
    """Number of columns that are not given."""
    value: Floats
    places: NDArray[np.intp] | None = None
    """The cells in order, if these are not all."""

    def of(self, places: Any) -> _Asked:
        return replace(self, places=(np.arange(self.value.size) if self.places is None else self.places)[places])

    def interval(self, level: float, errors: Any) -> Floats:
        names = [name for name, _ in self.axes]
        if self.first == len(names):
            ends = self._ends(names, level)
        else:
            level = (1 + level) / 2
            (low, high), (least, most) = self._ends(names, level).T, self._ends(names[self.first :], level).T
            times = high.size // most.size
            with np.errstate(divide="ignore", invalid="ignore"):
                low, high = low / np.tile(most, times), high / np.tile(least, times)
            ends = np.stack([np.nan_to_num(low), np.where(np.isnan(high), 1.0, high)], axis=1)
        low, high = np.clip(ends, 0.0, 1.0).T
        found: Floats = np.stack([np.minimum(low, self.value), np.maximum(high, self.value)], axis=1)
        return found if self.places is None else found[self.places]

    def _ends(self, names: Sequence[str], level: float) -> Floats:
        whole = _asked(self.tables, names)
        if whole is not None:
            return np.clip(whole.interval(level), 0.0, 1.0)
        sizes = {name: len(labels) for name, labels in self.axes}
        shared = {tuple(name for name in names if name in one.names) for one in self.tables}
        largest = [one for one in shared if one and not any(set(one) < set(other) for other in shared)]
        high = np.ones([sizes[name] for name in names])
        for one in largest:
            part = _asked(self.tables, one)
            assert part is not None
            own = part.interval(max(0.0, 1 - 2 * (1 - level) / len(largest)))[:, 1]
            high = np.minimum(high, own.reshape([sizes[name] if name in one else 1 for name in names]))
        return np.stack([np.zeros(high.size), high.reshape(-1)], axis=1)


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """One distribution of whole records; `table` gives any table of it, `sample` synthetic records."""

    axes: Mapping[str, tuple[str, ...]]
    method: str
    n: int
    evidence: Evidence
    tables: tuple[Crosstab, ...]
    """The unbiased tables behind it."""
    core: Core
    draws: int = 30
    """How often the model is fitted again for its errors."""
    answers: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """The meaning of cells in a record, if it differs from their names."""

    @property
    def assumed(self) -> tuple[tuple[str, str], ...]:
        """Pairs of columns that no group was asked for together: their association is an assumption of the model."""
        known = {pair for one in self.tables for pair in combinations(sorted(one.names), 2)}
        return tuple(pair for pair in combinations(self.axes, 2) if tuple(sorted(pair)) not in known)

    def marginal(self, *names: str) -> Floats:
        """The shares of the combinations of some columns, one axis each: non-negative, with sum one."""
        return self.core.marginal(self._view(names))

    def _view(self, names: Sequence[str]) -> Axes:
        places = {name: place for place, name in enumerate(self.axes)}
        for name in names:
            if name not in places:
                raise LabelError(f"there is no column {name!r}; there are {', '.join(places)}")
        if not names or len(set(names)) < len(names):
            raise LabelError("name different columns, at least one")
        return tuple(places[name] for name in names)

    def table(self, *names: str, given: Sequence[str] = ()) -> Crosstab:
        """The shares of the combinations of some columns, or those among the people with each answer of `given`.

        Standard errors come from the bootstrap: they measure how much the noise moves the model, and not the error of
        the model itself. Intervals hold whatever the model assumes: they are those of the tables that were asked for.
        `said` lists the assumptions.
        """
        view = self._view([*names, *given])
        value = given_last(self.core.marginal(view), len(names))
        axes = tuple((name, tuple(self.axes[name])) for name in (*names, *given))
        labels, n = combined(axes), max(1, self.n)
        again = [given_last(core.marginal(view), len(names)) for core in self._again] if self.n else []
        spread = np.var(again, axis=0, ddof=1).reshape(-1) if again else np.zeros(value.size)
        assumed = [pair for pair in self.assumed if set(pair) <= {*names, *given}]
        said = [f"{one} and {other} were not asked together: what they share is assumed" for one, other in assumed]
        return Crosstab(
            labels,
            self.n,
            value.reshape(-1) * n if self.n else np.zeros(value.size),
            spread * n**2,
            self.tables[0].protocol if self.tables else "",
            f"{self.method} model",
            people=0.0,
            bounded=True,
            axes=axes,
            said=said,
            bounds=_Asked(self.tables, axes, len(names), value.reshape(-1)) if self.n else None,
        )

    @cached_property
    def _again(self) -> list[Core]:
        """The model fitted to tables that are drawn again around it."""
        random, found = np.random.default_rng(0), []
        centres = [self.core.marginal(seen.view) for seen in self.evidence.tables]
        spreads = [_root(one, centre.reshape(-1)) for one, centre in zip(self.tables, centres, strict=True)]
        for _ in range(self.draws):
            tables = []
            for seen, centre, root in zip(self.evidence.tables, centres, spreads, strict=True):
                moved = centre.reshape(-1) + root @ random.standard_normal(root.shape[1])
                tables.append(replace(seen, shares=moved.reshape(seen.shares.shape)))
            found.append(core_like(self.core, self.method, Evidence(self.evidence.sizes, tuple(tables))))
        return found

    def sample(self, n: int, seed: int | None = None) -> dict[str, list[Any]]:
        """Synthetic records, column by column: drawn from the model, and about no person.

        A listed answer stays that answer; in a cell of numbers all numbers are equally likely.
        """
        random = np.random.default_rng(seed)
        return self.records(self.places(n, random), random)

    def places(self, n: int, random: np.random.Generator) -> dict[str, NDArray[np.intp]]:
        """Synthetic records as cell indices."""
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
            raise NumberError(f"the number of records is a whole number, not {n!r}")
        return dict(zip(self.axes, self.core.sample(int(n), random), strict=True))

    def records(self, places: Mapping[str, NDArray[np.intp]], random: np.random.Generator) -> dict[str, list[Any]]:
        """Records with these cells; numbers are drawn within them."""
        found = {}
        for name, at in places.items():
            own = np.empty(len(at), dtype=object)
            for cell, answer in enumerate(self.answers.get(name, self.axes[name])):
                rows = np.flatnonzero(at == cell)
                own[rows] = answer.drawn(rows.size, random) if isinstance(answer, Span) else [answer] * rows.size
            found[name] = own.tolist()
        return found

    def __repr__(self) -> str:
        classes = f" of {self.core.weights.size} classes" if isinstance(self.core, Classes) else ""
        names = ", ".join(self.axes) if len(self.axes) <= _FEW else f"{len(self.axes)} columns"
        return f"<{self.method} model{classes} of {names} from {self.n} reports>"


def _root(table: Crosstab, shares: Floats) -> Floats:
    """A square root of the covariance of a table's shares, if these are the true ones."""
    found = table.measured()
    if found is None:
        return np.diag(table.stderr)
    sizes, directions = np.linalg.eigh(found.spread(shares))
    kept: Floats = directions * np.sqrt(np.maximum(sizes, 0.0))
    return kept


# -- pictures ------------------------------------------------------------------------------------------


def heat_map(
    axes: Sequence[tuple[str, Sequence[str]]],
    value: Floats,
    title: str,
    ax: Any = None,
    unsure: Any = None,
    unit: str = "share",
) -> Any:
    """A map of two columns."""
    (first, rows), (second, columns) = axes
    if ax is None:
        size = (max(4.0, 1.8 + 0.62 * len(columns)), max(3.0, 1.6 + 0.42 * len(rows)))
        ax = require("matplotlib.pyplot", "plot").subplots(figsize=size, layout="constrained")[1]
    shown = np.maximum(0.0, np.nan_to_num(value)).reshape(len(rows), len(columns))
    mesh = ax.imshow(shown, cmap="Blues", vmin=0.0, aspect="auto")
    ax.figure.colorbar(mesh, ax=ax, label=unit)
    if unsure is not None:
        down, along = np.nonzero(np.reshape(unsure, shown.shape))
        ax.plot(along, down, ".", color=INK, markersize=3)
    ax.set_xticks(
        range(len(columns)), [escaped(name) for name in columns], rotation=45, ha="right", rotation_mode="anchor"
    )
    ax.set_yticks(range(len(rows)), [escaped(name) for name in rows])
    ax.set(xlabel=escaped(second), ylabel=escaped(first))
    ax.set_title(title, fontsize="medium")
    return ax

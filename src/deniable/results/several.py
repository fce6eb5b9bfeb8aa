"""Several results of one question as one table: for the parts of an answer, for strata, or for epochs.

Parts      each is a result by itself, with its own people, unit and method: `shares(name)`, `parts`
Table      the rows of all parts in sequence; the column "group" names the part of a row
Together   with `simultaneous` each part's intervals hold at once for all rows of all parts
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from deniable._extras import require
from deniable._plain import escaped
from deniable.errors import LabelError, MismatchError
from deniable.labels import Label
from deniable.results.base import Result, quantile
from deniable.results.rows import Drawing, Floats, Picture, Rows, View
from deniable.results.shares import Estimate
from deniable.results.significance import SAME, Misfit, SignificanceTest, associated, compare, nothing, p_text
from deniable.words import Fact, Joined, said, word


@dataclass(frozen=True, eq=False, repr=False)
class Several(Result):
    """Results by the name of their part.

    Args:
        by_name: The results of the parts.
        n: Number of reports.
        protocol: Name of the protocol.
        method: Name of the estimator.
    """

    kind: ClassVar[str] = "attributes"

    by_name: Mapping[str, Result]
    n: int
    protocol: str
    method: str = "unbiased"

    @property
    def parts(self) -> Mapping[str, Result]:
        return self.by_name

    def shares(self, name: str) -> Any:
        """The result of one part: an `Estimate` of shares, a `Mean`, ...; raises LabelError for an unknown name."""
        if name not in self.parts:
            raise LabelError(f"there is no part {name!r}; there are {', '.join(self.parts)}")
        return self.parts[name]

    def __getitem__(self, name: Any) -> Any:
        """The result of one part, or the figure of (part, label)."""
        return self.shares(name) if isinstance(name, str) else super().__getitem__(name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.by_name)

    @property
    def notes(self) -> list[str]:
        missing = [said("result.part.nothing", name=name) for name, part in self.parts.items() if not part.n]
        return [*super().notes, *(missing if self.n else [])]

    def table(self, level: float | str = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        """The rows of all parts; `table("age")` is the table of one part."""
        if isinstance(level, str):
            return self._rows(level, 0.95, simultaneous, population)
        tables = self.tables(level, simultaneous, population)

        def joined(column: Callable[[Rows], Any]) -> Any:
            return np.concatenate([column(rows) for rows in tables.values()])

        further = {column: None for rows in tables.values() for column in rows.more}
        more = {
            column: joined(lambda rows, column=column: rows.more.get(column, np.full(len(rows), math.nan)))  # type: ignore[misc]
            for column in further
        }
        return Rows(
            [label for rows in tables.values() for label in rows.labels],
            joined(lambda rows: rows.value),
            joined(lambda rows: rows.stderr),
            joined(lambda rows: rows.low),
            joined(lambda rows: rows.high),
            level=level,
            simultaneous=simultaneous,
            population=population,
            more=more,
            groups=[name for name, rows in tables.items() for _ in range(len(rows))],
            units=[unit for rows in tables.values() for unit in rows.row_units],
            assumed=[name for rows in tables.values() for name in rows.assumed or [""] * len(rows)],
        )

    def tables(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> dict[str, Rows]:
        # The parts share the error probability, so that the rows of all of them hold at once.
        own = 1 - (1 - level) / len(self.parts) if simultaneous else level
        each = {name: self._rows(name, own, simultaneous, population) for name in self.parts}
        return {name: replace(rows, level=level) for name, rows in each.items()}

    def _rows(self, name: str, level: float, simultaneous: bool, population: bool) -> Rows:
        return self.shares(name).table(level, simultaneous, population)  # type: ignore[no-any-return]

    def repeated(self, noise: float, people: float) -> Several:
        return self._each(lambda part: part.repeated(noise, people), self._check_of(noise))

    def consistent(self, method: str = "norm-sub") -> Several:
        """Parts that are shares become distributions, each separately; the others are unchanged."""
        return replace(self._each(lambda part: part.consistent(method), self.check), method=method)

    def assuming(self, what: str = "smooth") -> Several:
        """Parts that are distributions get shorter intervals, which hold if they are smooth."""
        return self._each(lambda part: part.assuming(what), self.check)

    @property
    def unbiased(self) -> Several:
        return replace(self._each(lambda part: part.unbiased, self.check), method="unbiased")

    def _each(self, change: Callable[[Any], Result], check: Callable[..., Misfit] | None) -> Several:
        return replace(self, by_name={name: change(part) for name, part in self.parts.items()}, check=check)

    def _robust(self, fakes: int) -> Any:
        return replace(self._each(lambda part: part.robust(fakes), self.check), fakes=fakes)

    def plot(
        self,
        ax: Any = None,
        level: float = 0.95,
        most: int = 40,
        simultaneous: bool = False,
        population: bool = True,
    ) -> Any:
        """One picture per part, side by side; returns the first one's axes. With `ax` all values in that one."""
        if ax is not None:
            return super().plot(ax, level, most, simultaneous, population)
        lines: list[list[tuple[str, Result, float]]] = []
        for name, part in self.parts.items():
            width = max(2.4, min(0.32 * len(part.table()) + 1.5, _WIDEST))
            if not lines or sum(other for *_, other in lines[-1]) + width > _WIDEST:
                lines.append([])
            lines[-1].append((name, part, width))
        widest = max(sum(width for *_, width in line) for line in lines)
        plt = require("matplotlib.pyplot", "plot")
        figure = plt.figure(figsize=(widest + 1.0, 3.6 * len(lines)), layout="constrained")
        axes = []
        for line, row in zip(lines, figure.add_gridspec(len(lines), 1), strict=True):
            for (name, part, _), place in zip(
                line, row.subgridspec(1, len(line), width_ratios=[w for *_, w in line]), strict=True
            ):
                axes.append(part.plot(figure.add_subplot(place), level, most, simultaneous, population))
                if axes[-1].get_legend() is not None:
                    axes[-1].get_legend().remove()
                axes[-1].set_title(f"{escaped(name)}, n = {part.n:,}", fontsize="medium")
        figure.suptitle(self.title, fontsize="medium")
        return axes[0]

    def __repr__(self) -> str:
        return f"<Several: {', '.join(self.parts)} from {self.n} reports, {self.protocol}>"


@dataclass(frozen=True, eq=False, repr=False)
class MomentFigures(Several):
    """Several figures of one answer, such as mean and variance: rows of one table, each with its own unit.

    Args:
        honest: The extreme results of the honest reports if a given number of reports is forged.
    """

    kind: ClassVar[str] = "moments"

    honest: Callable[[int], Sequence[Mapping[str, Result]]] | None = field(default=None, kw_only=True)

    @property
    def parts(self) -> Mapping[str, Result]:
        return {"": self}

    def shares(self, name: str) -> Any:
        """One of the figures; raises LabelError for an unknown name."""
        if name not in self.by_name:
            raise LabelError(f"there is no figure {name!r}; there are {', '.join(self.by_name)}")
        return self.by_name[name]

    @property
    def notes(self) -> list[str]:
        missing = [said("result.part.few", name=name) for name, part in self.by_name.items() if not part.n]
        return [*Result.notes.fget(self), *(missing if self.n else [])]  # type: ignore[attr-defined]

    def table(self, level: float | str = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        if isinstance(level, str):
            return self._rows(level, 0.95, simultaneous, population)
        own = 1 - (1 - level) / len(self.by_name) if simultaneous else level
        each = [self._rows(name, own, simultaneous, population) for name in self.by_name]
        return Rows(
            list(self.by_name),
            np.concatenate([rows.value for rows in each]),
            np.concatenate([rows.stderr for rows in each]),
            np.concatenate([rows.low for rows in each]),
            np.concatenate([rows.high for rows in each]),
            level=level,
            simultaneous=simultaneous,
            population=population,
            units=[unit for rows in each for unit in rows.row_units],
        )

    def tables(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> dict[str, Rows]:
        return {"": self.table(level, simultaneous, population)}

    def _rows(self, name: str, level: float, simultaneous: bool, population: bool) -> Rows:
        rows = super()._rows(name, level, simultaneous, population)
        if not self.fakes or self.honest is None:
            return rows
        return _hull(rows, [found[name].table(level, simultaneous, population) for found in self.honest(self.fakes)])

    def _robust(self, fakes: int) -> Any:
        return super()._robust(fakes) if self.honest is None else replace(self, fakes=fakes)

    def _each(self, change: Callable[[Any], Result], check: Callable[..., Misfit] | None) -> MomentFigures:
        return replace(self, by_name={name: change(part) for name, part in self.by_name.items()}, check=check)

    def plot(
        self,
        ax: Any = None,
        level: float = 0.95,
        most: int = 40,
        simultaneous: bool = False,
        population: bool = True,
    ) -> Any:
        """One picture per figure, side by side, because their units differ; returns the first one's axes."""
        if ax is not None:
            return Result.plot(self, ax, level, most, simultaneous, population)
        return Several(self.by_name, self.n, self.protocol, self.method).plot(
            None, level, most, simultaneous, population
        )


def _hull(rows: Rows, others: Sequence[Rows]) -> Rows:
    """The same rows with intervals that contain those of the others."""
    low, high = (np.array([one.ends[:, side] for one in (rows, *others)]) for side in (0, 1))
    return replace(rows, low=low.min(axis=0), high=high.max(axis=0))


_WIDEST = 13.0
"""Maximum width of a line of pictures, in inches."""

ALL = "all"
"""The name of all strata together."""

_NAMED = 5

LEAST = 20
"""Strata with fewer reports are left out of the test, which is valid for large samples."""


@dataclass(frozen=True, eq=False, repr=False)
class Strata(Several):
    """Results of the strata of one question: each separately, all together, and whether they differ.

    The part "all" comes first, then the strata in order. The test covers the strata with at least 20 reports, and
    its finding is among the notes of "all". If the strata are private, they are estimated from the same reports: then
    the test uses the combinations of stratum and answer, with their exact covariance.

    Args:
        overall: The result for everybody.
        joint: For private strata: the combinations of stratum and answer, stratum by stratum.
        scores: The numbers assigned to the answers, if means are compared and not shares.
        honest: For private strata: the extreme results of the honest reports if a given number of reports is forged.
    """

    kind: ClassVar[str] = "strata"

    overall: Result | None = field(default=None, kw_only=True)
    joint: Estimate | None = field(default=None, kw_only=True)
    scores: Floats | None = field(default=None, kw_only=True)
    honest: Callable[[int], Sequence[Strata]] | None = field(default=None, kw_only=True)

    @property
    def parts(self) -> Mapping[str, Result]:
        if self.overall is None:
            return self.by_name
        heard = [one for one in self.by_name.values() if one.n >= LEAST]
        differ = (self._differing(),) if len(heard) > 1 else ()
        return {ALL: replace(self.overall, said=differ), **self.by_name}

    def _differing(self) -> str:
        """Whether the strata differ, in a sentence."""
        test = self.differ()
        if not any(test.n) or not test.freedom:
            return test.sentence().replace("groups", "strata")
        people = Joined(test.n) if len(test.n) < 3 else sum(test.n)
        kind = "result.strata.differ" if test.rejected() else "result.strata.alike"
        return said(kind, p=p_text(test.p_value), people=people)

    @property
    def notes(self) -> list[str]:
        if self.joint is None or not self.n:
            return super().notes
        few = [name for name, part in self.by_name.items() if not part.n]
        named: Fact = Joined(few[:_NAMED], ", ")
        if len(few) > _NAMED:
            named = word("list.more", first=named, n=len(few) - _NAMED)
        about = [said("result.few.about", names=named)] if few else []
        return [*Result.notes.fget(self), *about]  # type: ignore[attr-defined]

    def _rows(self, name: str, level: float, simultaneous: bool, population: bool) -> Rows:
        rows = super()._rows(name, level, simultaneous, population)
        if not self.fakes or self.honest is None:
            return rows
        parts = [one.overall if name == ALL else one.by_name[name] for one in self._extremes]
        return _hull(rows, [part.table(level, simultaneous, population) for part in parts if part is not None])

    @cached_property
    def _extremes(self) -> Sequence[Strata]:
        return () if self.honest is None else self.honest(self.fakes)

    def _robust(self, fakes: int) -> Any:
        return super()._robust(fakes) if self.honest is None else replace(self, fakes=fakes)

    def differ(self) -> SignificanceTest:
        """Test whether the strata differ."""
        if self.joint is not None:
            return associated(self.joint, len(self.by_name) - 1, self.scores)
        heard = [one for one in self.by_name.values() if one.n >= LEAST]
        return compare(*heard) if len(heard) > 1 else nothing(SAME, [int(one.n) for one in self.by_name.values()])

    def test(self, given: Any) -> SignificanceTest:
        """Test whether the figures of everybody are the given ones."""
        if self.overall is None:
            raise MismatchError("there is no result of everybody here: test one stratum")
        return self.overall.test(given)

    def _each(self, change: Callable[[Any], Result], check: Callable[..., Misfit] | None) -> Strata:
        overall, joint = (None if one is None else change(one) for one in (self.overall, self.joint))
        assert joint is None or isinstance(joint, Estimate)
        each = {name: change(part) for name, part in self.by_name.items()}
        return replace(self, by_name=each, check=check, overall=overall, joint=joint)

    def __repr__(self) -> str:
        return f"<Strata: {', '.join(self.by_name)} from {self.n} reports, {self.protocol}>"


ALL_EPOCHS = "all epochs"


@dataclass(frozen=True, eq=False, repr=False)
class Series(Result):
    """Shares over the epochs, one row of `frequencies` per answer: a line with a band per answer, and the mean.

    The bands come from the covariance matrix of the epochs, which are not independent; `interval` holds for each epoch
    separately, and with `simultaneous` for all of them at once. The mean is over the known epochs. Epochs without
    reports have no value, and the whole range as interval.

    Args:
        answers: The answers.
        frequencies: Estimated shares: one row per answer, one column per epoch.
        covariance: Covariance of the epochs, one matrix per answer.
        n: Number of reports.
        protocol: Name of the protocol.
        method: Name of the estimator.
        moved: How much a given number of forged reports may have raised and lowered each share, the mean of the epochs
            last; and the factor by which the variances grow without them. Infinite if no honest report is left.
    """

    kind: ClassVar[str] = "series"
    heading: ClassVar[str] = "share"
    picture: ClassVar[Picture] = "lines"

    answers: Sequence[str]
    frequencies: Floats
    covariance: Floats
    n: int
    protocol: str
    method: str = "unbiased"
    moved: Callable[[int], Floats] | None = None

    def _limits(self) -> tuple[float, float]:
        return 0.0, 1.0

    @property
    def epochs(self) -> int:
        return int(self.frequencies.shape[1])

    @property
    def value(self) -> Floats:
        """The `frequencies`: one row per answer, one column per epoch."""
        return self.frequencies

    @cached_property
    def stderr(self) -> Floats:
        """Standard error of each share, in the form of `frequencies`; infinite if nothing is known."""
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
        """The index of an answer; raises LabelError for an unknown one."""
        if str(answer) not in self.answers:
            raise LabelError(f"there is no answer {answer!r}; there are {', '.join(self.answers)}")
        return list(self.answers).index(str(answer))

    def interval(self, level: float = 0.95, simultaneous: bool = False) -> Floats:
        """Ends of the band, one row per answer and epoch."""
        reach = quantile(level, self.frequencies.size if simultaneous else 1)
        down, up, grown = self._moved
        return _ends(self.frequencies, self.stderr, reach, down[:, :-1], up[:, :-1], grown[:, :-1])

    @property
    def _moved(self) -> Floats:
        if not self.fakes or self.moved is None:
            nothing = np.zeros((3, len(self.answers), self.epochs + 1))
            nothing[2] = 1.0
            return nothing
        return self.moved(self.fakes)

    def _robust(self, fakes: int) -> Self:
        return replace(self, fakes=fakes)

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        reach = quantile(level, self.frequencies.size + len(self.answers) if simultaneous else 1)
        value = np.column_stack([self.frequencies, self.total[0]]).ravel()
        stderr = np.column_stack([self.stderr, self.total[1]]).ravel()
        ends = _ends(value, stderr, reach, *(one.ravel() for one in self._moved))
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

    def drawings(self, view: View, rows: Rows, further: bool = True) -> list[Drawing]:
        totals = [{"row": place, "figure": "total"} for place, label in enumerate(rows.labels) if label == ALL_EPOCHS]
        return [replace(one, marks=totals) for one in super().drawings(view, rows, further)]

    def repeated(self, noise: float, people: float) -> Series:
        return self  # the same people are in all epochs anyway

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
            (line,) = ax.plot(epochs, self.frequencies[place], label=escaped(self.answers[place]))
            ax.fill_between(epochs, *ends[place].T, color=line.get_color(), alpha=0.2, linewidth=0)
        ax.set(xlabel="epoch", ylabel=self.heading)
        ax.set_title(f"{self.title}: {100 * level:g} % intervals", fontsize="medium")
        ax.legend(frameon=False, fontsize="small")
        return ax


def _ends(value: Floats, stderr: Floats, reach: float, down: Floats, up: Floats, grown: Floats) -> Floats:
    """Intervals around the values; the whole range where a value is missing."""
    unknown = np.isnan(value) | np.isinf(grown)
    known = (np.where(unknown, 0.0, one) for one in (value, reach * np.sqrt(grown) * stderr, down, up))
    middle, reached, less, more = known
    low, high = middle - reached - less, middle + reached + more
    return np.stack([np.where(unknown, 0.0, low), np.where(unknown, 1.0, high)], axis=-1)

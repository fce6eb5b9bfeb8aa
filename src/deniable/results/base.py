"""The base of all results: one table, shown as the same document by every output form.

Rows       one row per figure: label, value, standard error and the ends of its interval, in one unit
Document   the table with its picture, its notes and how far to trust it (`deniable.results.document`). Text, rich
           tables, HTML for notebooks, JSON, CSV, Arrow and pandas are written from it (`deniable.results.render`)
Kinds      shares of answers (`Estimate`), a mean (`Mean`), ...: each defines only how its rows are computed
Empty      without reports a value is None in JSON, NaN in arrays; its interval is the whole range, and a note says so
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property, partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from deniable._sheets import Sheet, Shown, as_pandas, as_polars
from deniable.errors import MismatchError, NumberError
from deniable.labels import Label, shown
from deniable.results.rows import ROWS_SHOWN, Drawing, Floats, Picture, Rows, View, number
from deniable.results.significance import (
    FIT as FIT_TEST,
    Measured,
    Misfit,
    SignificanceTest,
    compare,
    fit,
    nothing,
    smallest,
)
from deniable.words import Figure, Said, said

if TYPE_CHECKING:
    from deniable.results.document import Document

FEW = 10_000
"""With more reports no interval is the whole range, so this is not checked."""
"""For a part estimated from reports about several parts: it is unknown how many of the reports concern it."""


@cache
def no_reports() -> Said:
    """The sentence for a question without reports; the catalogue is read when it is needed.

    Returns:
        The sentence.
    """
    return said("result.nothing")


@cache
def few_people() -> Said:
    """The sentence for too few people to say anything.

    Returns:
        The sentence.
    """
    return said("result.few")


def quantile(level: float, tests: int = 1) -> float:
    """Number of standard errors that a two-sided interval reaches, shared among several tests.

    Args:
        level: Confidence level, between 0 and 1.
        tests: Number of intervals that hold together.

    Returns:
        The number of standard errors.

    Raises:
        NumberError: The level is out of range.
    """
    if not 0 < level < 1:
        raise NumberError(f"the confidence level lies between 0 and 1, not at {level!r}")
    return NormalDist().inv_cdf(1 - (1 - level) / (2 * tests))


class Quantity(float):
    """A number with its error: an ordinary float that also has `value`, `stderr` and `interval(level)`.

    Args:
        value: The number.
        interval: Computes the interval at a level, for the population or for those who answered.
        stderr: Noise and sampling error; half the 95 % interval divided by 1.96 if that is not symmetric.
    """

    stderr: float

    def __new__(
        cls, value: float, interval: Callable[[float, bool], tuple[float, float]], stderr: float | None
    ) -> Quantity:
        made = super().__new__(cls, value)
        made._interval = cache(interval)  # type: ignore[attr-defined]
        if stderr is None:
            low, high = made.interval()
            stderr = (high - low) / (2 * quantile(0.95))
        made.stderr = stderr
        return made

    @property
    def value(self) -> float:
        return float(self)

    def interval(self, level: float = 0.95, population: bool = True) -> tuple[float, float]:
        """A confidence interval for the population, or with `population=False` for those who answered."""
        ends: tuple[float, float] = self._interval(level, population)  # type: ignore[attr-defined]
        return ends

    def p_value(self, given: float) -> float:
        """One minus the confidence level of the shortest interval that holds the given number."""
        outside, inside = 0.0, 1.0
        for _ in range(40):
            level = (outside + inside) / 2
            low, high = self.interval(level)
            if low <= given <= high:
                inside = level
            else:
                outside = level
        return 1 - outside


class Span(NamedTuple):
    """A cell of numbers, from one to another: integers with both ends, or any number."""

    low: Any
    high: Any
    whole: bool = False

    def drawn(self, n: int, random: np.random.Generator) -> list[Any]:
        """Numbers from it, all equally likely."""
        if self.whole:
            found: list[Any] = random.integers(self.low, self.high, n, endpoint=True).tolist()
            return found
        return (self.low + (self.high - self.low) * random.random(n)).tolist()  # type: ignore[no-any-return]


class Weights(NamedTuple):
    """The possible influence of single reports on the rows of a table, if each row is a mean over reports.

    A report that supports a row as much as possible has the weight `highest` in that mean, one that opposes it as
    much as possible `lowest`; one entry per row, or one for all of them.

    Args:
        lowest: Weight of a report that opposes a row as much as possible.
        highest: Weight of a report that supports a row as much as possible.
        reports: Number of reports in the mean, if it is not n: those of a group.
    """

    lowest: Any
    highest: Any
    reports: Any = None

    def widened(self, ends: Floats, value: Floats, n: float, fakes: int) -> Floats:
        """Intervals that hold for the honest reports alone, if up to `fakes` of all reports are forged.

        Without the forged reports the mean is (n v - the sum of the forged weights) / (n - fakes). Exact
        for the mean; its error grows with n / (n - fakes).
        """
        if not fakes:
            return ends
        reports = np.broadcast_to(np.float64(n) if self.reports is None else self.reports, value.shape)
        left = np.maximum(reports - fakes, 1.0)
        grown = np.sqrt(reports / left)
        low = value - fakes * (self.highest - value) / left - grown * (value - ends[:, 0])
        high = value + fakes * (value - self.lowest) / left + grown * (ends[:, 1] - value)
        known = reports > fakes
        return np.stack([np.where(known, low, -np.inf), np.where(known, high, np.inf)], axis=1)

    def of(self, places: Any) -> Weights:
        """The weights of some of the rows."""
        return Weights(*(one if one is None or np.ndim(one) == 0 else np.asarray(one)[places] for one in self))


@dataclass(frozen=True, eq=False, repr=False)
class Result(Shown, ABC):
    """An estimate from reports, with error bars: `result[label]` is one figure of its table.

    Args:
        check: Tests the tally behind the result against its protocol.
        weights: The possible influence of forged reports on the rows, if these are means and no other field has it.
        unbounded: Why the influence of forged reports on the rows is unbounded, if it is.
        fakes: Number of reports that may be forged: intervals hold for the honest ones.
        said: Further notes on the figures.
    """

    check: Callable[..., Misfit] | None = field(default=None, kw_only=True)
    weights: Weights | None = field(default=None, kw_only=True)
    unbounded: str = field(default="", kw_only=True)
    fakes: int = field(default=0, kw_only=True)
    said: Sequence[str] = field(default=(), kw_only=True)

    kind: ClassVar[str]
    heading: ClassVar[str] = "value"
    """The heading of the value column."""
    family: ClassVar[str] = ""
    """What the figures are in any kind of this sort: "shares", a "mean" or a "distribution"; empty: something else."""
    picture: ClassVar[Picture] = "points"
    """What shows the table."""
    pictured: ClassVar[bool] = True

    if TYPE_CHECKING:

        @property
        def n(self) -> float:
            """Number of reports: an integer, except if counts were weighted."""

        @property
        def protocol(self) -> str: ...

        @property
        def method(self) -> str: ...

    @abstractmethod
    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        """The rows with intervals at a confidence level.

        `simultaneous` makes all intervals hold at once; `population=False` leaves the sampling error out.
        """

    @cached_property
    def value(self) -> Any:
        """The figures, in the order of the table; a single number for a mean."""
        return self.table().value

    @cached_property
    def stderr(self) -> Any:
        """Their standard errors, as estimates of the population's."""
        return self.table().stderr

    def interval(self, level: float = 0.95, *args: Any, **how: Any) -> Any:
        """Their confidence intervals, one row of two ends each; takes what `table` takes."""
        return self.table(level, *args, **how).ends

    def __getitem__(self, label: Any) -> Any:
        """One figure of the table, with `value`, `stderr` and `interval(level)`; of several parts (part, label)."""
        rows = self.table()
        place = rows.place(label)

        def interval(level: float, population: bool) -> tuple[float, float]:
            found = self.table(level, population=population)
            return float(found.low[place]), float(found.high[place])

        return Quantity(float(rows.value[place]), interval, float(rows.stderr[place]))

    def __iter__(self) -> Iterator[Any]:
        """What `result[...]` takes."""
        return iter(self.table().keys)

    @cached_property
    def misfit(self) -> Misfit | None:
        """Whether any population could have produced these reports; None if the tally is no longer known."""
        return None if self.check is None else self.check()

    def _check_of(self, noise: float) -> Callable[..., Misfit] | None:
        """The same test if the noise of each report occurs `noise` times."""
        return None if self.check is None else partial(self.check, repeats=noise)

    @property
    def notes(self) -> list[str]:
        """Notes on the figures, in sentences."""
        misfit = self.misfit
        found = [*self.said, *([misfit.message] if misfit is not None and misfit.message else []), *self._wide()]
        if self.fakes:
            found.append(self.robust_note)
        return found if self.n or any(few_people() in one for one in found) else [no_reports(), *found]

    def _limits(self) -> tuple[float, float] | None:
        """The ends between which all figures lie, whatever the reports are; None if there are no such ends."""
        return None

    def _wide(self) -> list[str]:
        """Why an interval is missing, if it would be the whole range."""
        if self._limits() is None or not 0 < self.n <= FEW:
            return []
        rows = self.table()
        whole = rows.whole(self._limits())
        if not whole.any():
            return []
        n = self.n if isinstance(self.n, int) else Figure(f"{self.n:g}")
        if whole.all():
            return [said("result.wide.all", n=n)]
        return [said("result.wide.some", n=n, wide=int(whole.sum()), of=len(rows))]

    @property
    def robust_note(self) -> str:
        """The guarantee of `robust`, in a sentence."""
        return said("result.robust", n=self.fakes)

    def finding(self) -> tuple[str, Mapping[str, Any], str] | None:
        """The finding in words, if there is one: the id of a sentence, its parameters and its text."""
        return None

    @property
    def headline(self) -> str:
        """The text of the `finding`, or empty."""
        found = self.finding()
        return "" if found is None else found[2]

    @property
    def facts(self) -> Mapping[str, Any]:
        """Single numbers next to the table, by name: for texts, the share of texts that are not listed."""
        return {}

    @property
    def remark(self) -> str:
        """What the table leaves out, in a sentence."""
        return ""

    @property
    def is_biased(self) -> bool:
        """Whether the values were made consistent."""
        return False

    def leader(self, rows: Rows) -> Any:
        """The most common answer (`Winner`), if the rows are shares of answers other than numbers."""
        return None

    def choice(self) -> Mapping[str, Any] | None:
        """For a decision between hypotheses: its outcome, as the fields of `deniable.results.document.Choice`."""
        return None

    def binned(self, bins: int) -> Result:
        """A distribution with about `bins` bins; other results are unchanged."""
        return self

    def assuming(self, what: str = "smooth") -> Result:
        """A distribution with shorter intervals, which hold if it is smooth; other results are unchanged."""
        return self

    def drawings(self, view: View, rows: Rows, further: bool = True) -> list[Drawing]:
        """What is drawn: the table `rows`, and with `further` additional figures, such as the sizes of sets."""
        return [Drawing(self.kind, self.picture, rows, self.heading, limits=self._limits())]

    @property
    def parts(self) -> Mapping[str, Result]:
        """The results that this one consists of, by part; a result without parts is its only part, without a name."""
        return {"": self}

    def tables(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Mapping[str, Rows]:
        """The table of each of the `parts`."""
        return {"": self.table(level, simultaneous, population)}

    @abstractmethod
    def repeated(self, noise: float, people: float) -> Any:
        """The same from n reports of fewer people: noise and sampling error grow by these factors in variance."""

    def sampled(self, part: Fraction) -> Result:
        """The same if these respondents are a random part of those who answered.

        Errors about the population stay; those about the people who answered grow. A kind that cannot separate them
        keeps its own.
        """
        return self

    def robust(self, fakes: int) -> Self:
        """Intervals that stay valid if up to `fakes` reports are forged, whatever they contain.

        Values stay; if there are groups, all forged reports may be in one of them. Raises MismatchError if the
        influence of a report on these figures is not known.
        """
        if isinstance(fakes, bool) or not isinstance(fakes, int | np.integer) or fakes < 0:
            raise NumberError(f"the number of forged reports is a whole number from 0 on, not {fakes!r}")
        return self._robust(int(fakes))

    def _robust(self, fakes: int) -> Self:
        if fakes and self.n and self.weights is None:
            if self.unbounded:
                raise MismatchError(f"no interval holds if reports may be forged: {self.unbounded}")
            raise MismatchError(
                f"what forged reports can do to these figures ({self.kind}, {self.method}) is not known: call robust "
                "on what the protocol estimated"
            )
        return replace(self, fakes=fakes)

    def _widened(self, ends: Floats, value: Floats) -> Floats:
        """Intervals for the honest reports alone."""
        return ends if self.weights is None else self.weights.widened(ends, value, self.n, self.fakes)

    def consistent(self, method: str = "norm-sub") -> Result:
        """Shares become a distribution; other results are unchanged."""
        return self

    @property
    def unbiased(self) -> Result:
        """The unbiased result behind this one."""
        return self

    def measured(self) -> Measured | None:
        """The figures for tests, with their joint covariance; None if that is not known."""
        return None

    def measured_with(self, groups: Sequence[Result]) -> list[Measured] | None:
        """The same figures of several results of this kind."""
        found = [group.measured() for group in groups]
        return [one for one in found if one is not None] if None not in found else None

    def test(self, given: Any) -> SignificanceTest:
        """Test whether the population's figures are the given ones: shares (by answer or in order), a mean, ...

        Raises LabelError, ShapeError or NumberError if the given figures do not fit this kind.
        """
        raw, wanted = self.unbiased, self.as_given(given)
        if not self.n:
            return nothing(FIT_TEST, (0,))
        found = raw.measured()
        if found is not None:
            return fit(found, wanted)
        rows, known = raw.table(), ~np.isnan(wanted)
        return smallest(FIT_TEST, ((rows.value - wanted) / rows.stderr)[known], (int(self.n),))

    def as_given(self, given: Any) -> Floats:
        """Figures to test against, in the order of the table; NaN for one that is not tested."""
        raise MismatchError(f"there is no test of fit for {self.kind}: test one of its parts")

    def __sub__(self, other: Result) -> Difference:
        """The differences of the figures between two independent groups, as populations; from the unbiased results."""
        if not isinstance(other, Result):
            return NotImplemented
        first, second = self.unbiased.table(), other.unbiased.table()
        if first.labels != second.labels or first.names != second.names or first.row_units != second.row_units:
            raise MismatchError("these estimates are about different answers")
        whole = np.stack([first.low - second.high, first.high - second.low], axis=1)
        names = first.names if first.groups else first.labels
        error = np.hypot(first.stderr, second.stderr)
        value, test = first.value - second.value, compare(self, other)
        return Difference(names, value, error, whole, first.value, second.value, test)

    # -- forms -------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        return f"{self.protocol}, {self.method}, n = {self.n:,}"

    def rows(self, level: float = 0.95, population: bool = True) -> list[dict[str, Any]]:
        """One dictionary per row: label, value, stderr, low, high, unit, and the columns of the kind."""
        return self.table(level, population=population).records()

    def document(self, view: View | None = None, further: bool = True) -> Document:
        """The result as one document; without `further` only its table."""
        from deniable.results.document import documented

        how = View() if view is None else view
        rows = self.table(how.level, how.simultaneous, how.population)
        return documented(self, how, rows, further=further, winner=further)

    def documents(self, view: View) -> dict[str, Document]:
        """One document per part; a result without parts has one document, without a name."""
        from deniable.results.document import documented

        asked = view.level, view.simultaneous, view.population
        tables, found = self.tables(*asked), {}
        other = self.consistent(view.consistent) if view.consistent and self.n else self
        others = other.parts if other is not self else {}
        beside = other.tables(*asked) if any(one.is_biased for one in others.values()) else {}
        for name, part in self.parts.items():
            rows = beside[name] if name in beside and others[name].is_biased else None
            found[name] = documented(part, view, tables[name], rows)
        return found

    def to_dict(self, level: float = 0.95, population: bool = True, simultaneous: bool = False) -> dict[str, Any]:
        """The document as JSON values."""
        from deniable.results.document import plain

        return plain(self.document(View(level, simultaneous, population)))

    def to_csv(self, level: float = 0.95, population: bool = True, formulas: bool = False) -> str:
        """CSV with one line per row of all sections, after a line with the names of the columns.

        Text that a spreadsheet would run as a formula gets a leading ', unless `formulas` is set.
        """
        from deniable.results.render.csv import as_csv

        return as_csv([self.document(View(level, population=population))], formulas)

    def to_arrow(self, level: float = 0.95, population: bool = True) -> Any:
        """A pyarrow table; `pyarrow.table(result)` and `polars.DataFrame(result)` work as well."""
        from deniable.results.render.csv import as_arrow

        return as_arrow([self.document(View(level, population=population))])

    def to_pandas(self, level: float = 0.95, population: bool = True) -> Any:
        """A pandas data frame, one line per row."""
        return as_pandas(self.to_arrow(level, population))

    def to_polars(self, level: float = 0.95, population: bool = True) -> Any:
        """A polars data frame, one line per row."""
        return as_polars(self.to_arrow(level, population))

    def to_latex(self, level: float = 0.95, population: bool = True) -> str:
        """A LaTeX tabular of the rounded table; it needs the package booktabs."""
        return self.sheet(level, population).latex()

    def sheet(self, level: float = 0.95, population: bool = True) -> Sheet:
        """The table for people."""
        from deniable.results.render.text import sheet

        return sheet(self.document(View(level, population=population), further=False))

    def __str__(self) -> str:
        from deniable.results.render.text import as_text

        return as_text(self.document(further=False))

    def __rich__(self) -> Any:
        from deniable.results.render.text import as_rich

        return as_rich(self.document(further=False))

    def plot(
        self,
        ax: Any = None,
        level: float = 0.95,
        most: int = 40,
        simultaneous: bool = False,
        population: bool = True,
    ) -> Any:
        """Values with whiskers, grey where the interval covers zero; returns the axes.

        With many rows the `most` largest; numbers are all drawn in order, many of them as a line in a band.
        """
        from deniable.results.render.plot import bars

        return bars(self, self.table(level, simultaneous, population), ax, most)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} from {self.n} reports, {self.protocol}, {self.method}>"


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Shown):
    """The figures of one group minus those of another, as populations.

    Args:
        labels: Name of each figure.
        value: Difference of each figure.
        stderr: Its standard error.
        whole: The interval of each figure if one of the groups has no reports.
        first: The figures of the first group.
        second: The figures of the second group.
        test: Whether there is any difference at all.
    """

    labels: Sequence[Label]
    value: Floats
    stderr: Floats
    whole: Floats
    first: Floats
    second: Floats
    test: SignificanceTest

    def interval(self, level: float = 0.95, simultaneous: bool = False) -> Floats:
        reach = quantile(level, len(self.labels) if simultaneous else 1) * self.stderr
        ends = np.stack([self.value - reach, self.value + reach], axis=1)
        return np.where(np.isnan(self.value)[:, None], self.whole, ends)

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One dictionary per row: label, difference, stderr, low, high, p_value."""
        numbers = np.column_stack([self.value, self.stderr, self.interval(level), self.p_values]).tolist()
        names = ("difference", "stderr", "low", "high", "p_value")
        named = (dict(zip(names, row, strict=True)) for row in numbers)
        return [{"label": label} | row for label, row in zip(self.labels, named, strict=True)]

    def sheet(self) -> Sheet:
        order = np.argsort(-np.abs(self.value / self.stderr), kind="stable")[:ROWS_SHOWN]
        ends, p_values = self.interval(), self.p_values
        body = []
        for i in order:
            span = f"{ends[i, 0]:8.4f} ..{ends[i, 1]:8.4f}"
            body.append([shown(self.labels[i]), number(self.value[i], 4), span, f"{p_values[i]:.2g}"])
        some = [f"... the {ROWS_SHOWN} clearest of {len(self.labels)}"] if len(self.labels) > ROWS_SHOWN else []
        rows = self.rows()
        columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
        columns["label"] = [shown(label) for label in self.labels]
        head = ["answer", "difference", "95 % interval", "p-value"]
        return Sheet([], head, body, [*some, self.test.sentence()], columns)

    def __str__(self) -> str:
        made = self.sheet()
        width = max([6, *(len(line[0]) for line in made.body)])
        lines = [f"{a:<{width}}  {b:>10}  {c:>18}  {d:>8}" for a, b, c, d in (made.head, *made.body)]
        return "\n".join([*lines, *made.below])

    def __repr__(self) -> str:
        return f"<Difference of {len(self.labels)} figures, p = {self.p_value:.2g}>"

    @property
    def p_values(self) -> Floats:
        """Two-sided, one per row: the probability of a difference this large by chance alone; 1 without reports."""
        z = np.nan_to_num(np.abs(self.value) / self.stderr)
        return np.array([math.erfc(value / math.sqrt(2)) for value in z])

    @property
    def p_value(self) -> float:
        """The p-value of `test`, for any difference at all."""
        return self.test.p_value

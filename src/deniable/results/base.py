"""What an estimate can be: one table, from which every form that people and programs read is written.

Rows       one row per figure: label, value, standard error and the ends of its interval, in one unit
Forms      text, rich tables, HTML for notebooks, JSON, CSV, Arrow, pandas and a picture, each written once, here
Kinds      shares of answers (`Estimate`), a mean (`Mean`), ...: each says only how its rows come about
Empty      without reports a value is None in JSON, NaN in arrays; its interval is the whole range, and a note says so
"""

from __future__ import annotations

import csv
import io
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from html import escape
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deniable._extras import require
from deniable._plain import csv_cell, escaped
from deniable.errors import MismatchError, NumberError
from deniable.labels import Label, cell, label_spec, numbers_first, shown, text
from deniable.results.significance import FIT as FIT_TEST
from deniable.results.significance import Measured, Misfit, SignificanceTest, compare, fit, nothing, smallest

Floats = NDArray[np.float64]

ROWS_SHOWN = 20

RESPONDENTS = "among those who answered"
"""Said wherever figures leave out sampling error."""

FEW = 10_000
"""With more reports no interval is the whole range, and nobody looks for one that is."""
NONE = "none"
"""What stands in place of an interval that would be the whole range."""

NOTHING = "there are no reports yet: nothing is known"
TOO_FEW = "too few people to tell anything"
"""Of a part that is read from reports about several: there are some, and it cannot be told how many are about it."""


def quantile(level: float, tests: int = 1) -> float:
    """How many standard errors a two-sided interval reaches, shared among several tests."""
    if not 0 < level < 1:
        raise NumberError(f"the confidence level lies between 0 and 1, not at {level!r}")
    return NormalDist().inv_cdf(1 - (1 - level) / (2 * tests))


def finite(value: float) -> float | None:
    """A float for JSON."""
    return float(value) if math.isfinite(value) else None


class Span(NamedTuple):
    """A cell of numbers, from one to another: whole numbers with both ends, or any number."""

    low: Any
    high: Any
    whole: bool = False

    def drawn(self, n: int, random: np.random.Generator) -> list[Any]:
        """Numbers of it, all equally likely."""
        if self.whole:
            found: list[Any] = random.integers(self.low, self.high, n, endpoint=True).tolist()
            return found
        return (self.low + (self.high - self.low) * random.random(n)).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Rows:
    """The table of a result, with the intervals that were asked for."""

    labels: Sequence[Label]
    value: Floats
    stderr: Floats
    low: Floats
    high: Floats
    unit: str = ""
    level: float = 0.95
    simultaneous: bool = False
    """Whether the intervals hold for all rows at once."""
    population: bool = True
    """Whether errors and intervals are about the population, or only about those who answered."""
    more: Mapping[str, Floats] = field(default_factory=dict)
    """Further columns of a kind, such as the count of a share."""
    groups: Sequence[str] = ()
    """What each row is about, where a result has several parts."""
    units: Sequence[str] = ()
    """The unit of each row, where they differ."""
    is_ordered: bool = False
    """Whether the rows are always shown whole and in their own order."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def ends(self) -> Floats:
        """The intervals, one row of two ends each."""
        return np.stack([self.low, self.high], axis=1)

    def whole(self, limits: tuple[float, float] | None) -> NDArray[np.bool_]:
        """Which intervals are the whole range of a figure, and so say nothing."""
        if limits is None:
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray((self.low <= limits[0]) & (self.high >= limits[1]))

    @property
    def columns(self) -> dict[str, Any]:
        """The columns by name: label, value, stderr, low, high, unit, and those of the kind."""
        numbers = {"value": self.value, "stderr": self.stderr, "low": self.low, "high": self.high}
        head = {"group": list(self.groups)} if self.groups else {}
        return head | {"label": self.labels, **numbers, "unit": self.row_units, **self.more}

    @property
    def row_units(self) -> list[str]:
        return list(self.units) or [self.unit] * len(self)

    @property
    def names(self) -> list[str]:
        """The labels for people, each with what it is about."""
        names = [shown(label) for label in self.labels]
        return (
            [f"{escaped(group)}: {name}" for group, name in zip(self.groups, names, strict=True)]
            if self.groups
            else names
        )

    def records(self, json: bool = False) -> list[dict[str, Any]]:
        """One dictionary per row; with `json` labels as a spec writes them, and no NaN or infinity."""
        names = [name for name in self.columns if name not in ("group", "label", "unit")]
        numbers = np.column_stack([self.columns[name] for name in names]).tolist() if len(self) else []
        rows = []
        for place, (label, row) in enumerate(zip(self.labels, numbers, strict=True)):
            own = dict(zip(names, map(finite, row) if json else row, strict=True))
            head: dict[str, Any] = {"group": self.groups[place]} if self.groups else {}
            head |= {"label": label_spec(label) if json else label}
            head |= {name: own.pop(name) for name in ("value", "stderr", "low", "high")}
            rows.append(head | {"unit": self.units[place] if self.units else self.unit} | own)
        return rows

    def order(self, most: int) -> NDArray[np.intp]:
        """Which rows to show: the largest first, except that few rows, and numbers, keep their own order.

        Of several parts, so many of each.
        """
        if self.is_ordered:
            return np.arange(len(self))
        if self.groups:
            groups = np.array(self.groups)
            places = [np.flatnonzero(groups == group) for group in dict.fromkeys(self.groups)]
            return np.concatenate(
                [at[_order([self.labels[int(i)] for i in at], self.value[at], most)] for at in places]
            )
        return _order(self.labels, self.value, most)

    @property
    def qualifiers(self) -> str:
        """What else to say of the intervals."""
        at_once = ", all answers at once" if self.simultaneous else ""
        return at_once if self.population else f"{at_once}, {RESPONDENTS}"

    @property
    def interval_name(self) -> str:
        return f"{100 * self.level:g} % interval{'s' if self.simultaneous else ''}{self.qualifiers}"


def _order(labels: Sequence[Label], value: Floats, most: int) -> NDArray[np.intp]:
    if len(labels) <= most:
        return np.arange(len(labels))
    largest = np.argsort(-value, kind="stable")[:most]
    return np.sort(largest) if numbers_first(labels) else largest


class Weights(NamedTuple):
    """What single reports can do to the rows of a table, each of which is a mean over reports.

    A report that says as much as possible for a row has the weight `highest` in that mean, one that says as much as
    possible against it `lowest`; one entry per row, or one for all of them.
    """

    lowest: Any
    highest: Any
    reports: Any = None
    """Over how many reports the mean is, where that is not n: those of a group."""

    def widened(self, ends: Floats, value: Floats, n: float, fakes: int) -> Floats:
        """Intervals that hold for the honest reports alone, if up to `fakes` of all reports are forged.

        Without them the mean is that of fewer reports: (n v - the sum of the forged weights) / (n - fakes). Exact
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
        """Of some of the rows."""
        return Weights(*(one if one is None or np.ndim(one) == 0 else np.asarray(one)[places] for one in self))


@dataclass(frozen=True, eq=False, repr=False)
class Result(ABC):
    """What reports say, with error bars."""

    check: Callable[..., Misfit] | None = field(default=None, kw_only=True)
    """Tests the tally behind the result against its protocol."""
    weights: Weights | None = field(default=None, kw_only=True)
    """What forged reports can do to the rows, where these are means over reports and no other field says it."""
    unbounded: str = field(default="", kw_only=True)
    """Why nothing bounds what forged reports do to the rows, where nothing does."""
    fakes: int = field(default=0, kw_only=True)
    """Up to so many of the reports may be forged: intervals hold for the honest ones."""
    said: Sequence[str] = field(default=(), kw_only=True)
    """What else to say beside the figures."""

    kind: ClassVar[str]
    heading: ClassVar[str] = "value"
    """What a value is called at the head of a column."""

    if TYPE_CHECKING:

        @property
        def n(self) -> float:
            """How many reports there are: a whole number, except where counts were weighted."""

        @property
        def protocol(self) -> str: ...

        @property
        def method(self) -> str: ...

    @abstractmethod
    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        """The rows with intervals at a confidence level.

        `simultaneous` makes all intervals hold at once; `population=False` leaves the sampling error out.
        """

    @property
    def misfit(self) -> Misfit | None:
        """Whether any population could have produced these reports; None where the tally is not known any more."""
        return None if self.check is None else self.check()

    def _check_of(self, noise: float) -> Callable[..., Misfit] | None:
        """The same test where the noise of a report comes so many times."""
        return None if self.check is None else partial(self.check, repeats=noise)

    @property
    def notes(self) -> list[str]:
        """What to say beside the figures, in sentences."""
        misfit = self.misfit
        said = [*self.said, *([misfit.message] if misfit is not None and misfit.message else []), *self._wide()]
        if self.fakes:
            said.append(self.robust_note)
        return said if self.n or any(TOO_FEW in one for one in said) else [NOTHING, *said]

    def _limits(self) -> tuple[float, float] | None:
        """Between which ends all figures lie, whatever the reports say; None where there are none."""
        return None

    def _wide(self) -> list[str]:
        """Why there is no interval, where it would be the whole range."""
        if self._limits() is None or not 0 < self.n <= FEW:
            return []
        rows = self.table()
        whole = rows.whole(self._limits())
        if not whole.any():
            return []
        which = "there is no interval" if whole.all() else f"{int(whole.sum())} of {len(rows)} figures have no interval"
        return [f"{which}: with {self.n:,} reports it would be the whole range"]

    @property
    def robust_note(self) -> str:
        """What `robust` promises, in a sentence."""
        are = "1 of the reports is" if self.fakes == 1 else f"{self.fakes:,} of the reports are"
        return f"The intervals hold for the honest reports even if up to {are} forged."

    @property
    def headline(self) -> str:
        """The finding in words, where there is one."""
        return ""

    @property
    def facts(self) -> Mapping[str, float]:
        """Single numbers beside the table, by name: of texts, the share of those that are none of the listed ones."""
        return {}

    def binned(self, bins: int) -> Result:
        """A distribution with about so many bins; other figures stay as they are."""
        return self

    def cumulative(self, level: float = 0.95, population: bool = True) -> Rows | None:
        """Of a distribution: the shares of the numbers up to some numbers, with intervals that hold for all at once."""
        return None

    def of_ranges(
        self, asked: Sequence[tuple[float, ...]], level: float = 0.95, population: bool = True
    ) -> Rows | None:
        """Of a distribution: the shares of the numbers from one to another, both included; of two numbers, those of
        rectangles. What is asked for the other kind is left out."""
        return None

    def further(self, level: float = 0.95, population: bool = True) -> Mapping[str, Rows]:
        """Tables that stand beside the first one, by name: of sets, their sizes and the items that occur together."""
        return {}

    @property
    def crossed(self) -> Sequence[tuple[str, Sequence[str]]]:
        """Of a table of several columns: each with its answers; the rows are their combinations, row by row."""
        return ()

    @property
    def parts(self) -> Mapping[str, Result]:
        """The results that this one is made of, by what they are about; without parts itself, under no name."""
        return {"": self}

    def tables(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Mapping[str, Rows]:
        """The table of each of the `parts`."""
        return {"": self.table(level, simultaneous, population)}

    @abstractmethod
    def repeated(self, noise: float, people: float) -> Any:
        """The same from n reports of fewer people: noise and sampling error grow by these factors in variance."""

    def sampled(self, part: Fraction) -> Result:
        """The same where these respondents are a random part of those who answered.

        Errors about the population stay; those among the ones who answered grow. A kind that cannot tell them apart
        keeps its own.
        """
        return self

    def robust(self, fakes: int) -> Self:
        """The same with intervals that also hold if up to so many of the reports are forged, whatever they say.

        Values stay; where there are groups, all forged reports may be in one of them. Raises MismatchError where it
        is not known what a report can do to these figures.
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
        """Shares become a distribution; other figures stay as they are."""
        return self

    @property
    def unbiased(self) -> Result:
        """The unbiased result behind this one."""
        return self

    def measured(self) -> Measured | None:
        """The figures that tests are about, with their joint covariance; None where that is not known."""
        return None

    def measured_with(self, groups: Sequence[Result]) -> list[Measured] | None:
        """The same figures of several results of this kind."""
        found = [group.measured() for group in groups]
        return [one for one in found if one is not None] if None not in found else None

    def test(self, given: Any) -> SignificanceTest:
        """Whether the population's figures are the given ones: shares (by answer or in order), a mean, ...

        Raises LabelError, ShapeError or NumberError where they are not of this kind.
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
        """How the figures differ between two independent groups, as populations; from the unbiased results."""
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
        """One dictionary per row: label, value, stderr, low, high, unit, and what the kind adds."""
        return self.table(level, population=population).records()

    def to_dict(self, level: float = 0.95, population: bool = True, simultaneous: bool = False) -> dict[str, Any]:
        """The result as JSON values."""
        misfit = self.misfit
        return {
            "kind": self.kind,
            "protocol": self.protocol,
            "method": self.method,
            "n": self.n,
            "level": level,
            "population": population,
            "simultaneous": simultaneous,
            "rows": self.table(level, simultaneous, population).records(json=True),
            "notes": self.notes,
            "misfit": None if misfit is None else misfit.p_value,
        } | ({"fakes": self.fakes} if self.fakes else {})

    def to_csv(self, level: float = 0.95, population: bool = True, formulas: bool = False) -> str:
        """One line per row, after a line with the names of the columns.

        Text that a spreadsheet would run as a formula gets a ' in front, unless `formulas` are left.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        columns = self.table(level, population=population).columns
        writer.writerow(columns)
        columns["label"] = list(map(cell, columns["label"]))
        writer.writerows([csv_cell(one, formulas) for one in row] for row in zip(*columns.values(), strict=True))
        return out.getvalue()

    def to_arrow(self, level: float = 0.95, population: bool = True) -> Any:
        """A pyarrow table; `pyarrow.table(result)` and `polars.DataFrame(result)` work as well."""
        pa = require("pyarrow", "files")
        columns = self.table(level, population=population).columns
        labels = list(columns["label"])
        alike = len({type(label) for label in labels}) == 1
        return pa.table(columns | {"label": labels if alike else [text(label) for label in labels]})

    def to_pandas(self, level: float = 0.95, population: bool = True) -> Any:
        """A pandas data frame, one line per row."""
        return self.to_arrow(level, population).to_pandas()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def cells(self, rows: Rows, most: int = ROWS_SHOWN) -> tuple[list[str], list[list[str]]]:
        """Heads and cells of the table for people; a kind may choose other digits."""
        unit = f", {rows.unit}" if rows.unit else ""
        head = ["answer", self.heading + unit, "stderr", rows.interval_name]
        body, names, whole = [], rows.names, rows.whole(self._limits() if self.n else None)
        for i in rows.order(most):
            digits = decimals(rows.stderr[i])
            error = "unknown" if math.isinf(rows.stderr[i]) else number(rows.stderr[i], digits)
            span = NONE if whole[i] else f"{number(rows.low[i], digits)} .. {number(rows.high[i], digits)}"
            own = f" {rows.units[i]}" if rows.units and rows.units[i] else ""
            body.append([names[i], number(rows.value[i], digits), error, span + own])
        return head, body

    def _remarks(self, rows: Rows) -> list[str]:
        shown = len(rows.order(ROWS_SHOWN))
        some = [f"the {shown} largest of {len(rows)}"] if len(rows) > shown else []
        return [*some, *self.notes]

    def __str__(self) -> str:
        rows = self.table()
        head, body = self.cells(rows)
        widths = [max(len(line[i]) for line in [head, *body]) for i in range(len(head))]
        lines = [
            "  ".join(
                f"{cell:<{width}}" if i == 0 else f"{cell:>{width}}"
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in [head, *body]
        ]
        said = [*filter(None, [self.headline]), self.title, *lines, *self._remarks(rows)]
        return "\n".join(escaped(one) for one in said)

    def __rich__(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        rows = self.table()
        head, body = self.cells(rows)
        above, below = filter(None, [self.headline, self.title]), self._remarks(rows)
        title, caption = (Text("\n".join(map(escaped, lines))) for lines in (above, below))
        table = Table(title=title, caption=caption if below else None)
        for i, name in enumerate(head):
            table.add_column(Text(escaped(name)), justify="left" if i == 0 else "right")
        for line in body:
            table.add_row(*(Text(escaped(cell)) for cell in line))
        return table

    def _repr_html_(self) -> str:
        """The table in a notebook."""
        rows = self.table()
        head, body = self.cells(rows)
        cells = "".join(f"<th>{escape(name)}</th>" for name in head)
        lines = ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in body]
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._remarks(rows))
        title = "<br>".join(escape(line) for line in (self.headline, self.title) if line)
        return f"<table><caption>{title}</caption><tr>{cells}</tr>{''.join(lines)}</table>{notes}"

    def plot(
        self,
        ax: Any = None,
        level: float = 0.95,
        most: int = 40,
        simultaneous: bool = False,
        population: bool = True,
    ) -> Any:
        """Values with whiskers, grey where the interval covers zero; returns the axes.

        Of many rows the `most` largest; numbers are all drawn in their order, many of them as a line in a band.
        """

        return bars(self, self.table(level, simultaneous, population), ax, most)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} from {self.n} reports, {self.protocol}, {self.method}>"


@dataclass(frozen=True, eq=False, repr=False)
class Difference:
    """The figures of one group minus those of another, as populations."""

    labels: Sequence[Label]
    value: Floats
    stderr: Floats
    whole: Floats
    """The interval of each figure where one of the groups has no reports."""
    first: Floats
    """The figures of the one group."""
    second: Floats
    """The figures of the other."""
    test: SignificanceTest
    """Whether there is any difference at all."""

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

    def __str__(self) -> str:
        order = np.argsort(-np.abs(self.value / self.stderr), kind="stable")[:ROWS_SHOWN]
        names = [shown(self.labels[i]) for i in order]
        width = max([6, *(len(name) for name in names)])
        ends = self.interval()
        lines = [f"{'answer':<{width}}  {'difference':>10}  {'95 % interval':>18}  {'p-value':>8}"]
        for name, i in zip(names, order, strict=True):
            span = f"{ends[i, 0]:8.4f} ..{ends[i, 1]:8.4f}"
            lines.append(f"{name:<{width}}  {number(self.value[i], 4):>10}  {span:>18}  {self.p_values[i]:>8.2g}")
        if len(self.labels) > ROWS_SHOWN:
            lines.append(f"... the {ROWS_SHOWN} clearest of {len(self.labels)}")
        return "\n".join([*lines, self.test.sentence()])

    def __repr__(self) -> str:
        return f"<Difference of {len(self.labels)} figures, p = {self.p_value:.2g}>"

    @property
    def p_values(self) -> Floats:
        """Two-sided, one per row: how often a difference this large shows up when there is none; 1 without reports."""
        z = np.nan_to_num(np.abs(self.value) / self.stderr)
        return np.array([math.erfc(value / math.sqrt(2)) for value in z])

    @property
    def p_value(self) -> float:
        """For any difference at all: that of `test`."""
        return self.test.p_value


def decimals(error: float) -> int:
    """Enough decimals for two digits of an error."""
    if not math.isfinite(error) or error <= 0:
        return 4
    return min(12, max(0, 1 - math.floor(math.log10(error))))


def number(value: float, digits: int) -> str:
    """A figure for people."""
    return "-" if math.isnan(value) else f"{value:,.{digits}f}"


# -- the picture: one bar per row, with its interval --------------------------------------------------


SEEN, UNSEEN, INK = "#2f6f9f", "#b9c2cb", "#1b2733"
LONGEST_NAME = 24
MOST_BARS = 60
_WIDEST = 60.0  # inches
_LETTER = 0.09  # inches, of a letter below a bar


def bars(result: Result, rows: Rows, ax: Any = None, most: int = 40) -> Any:
    """Values as bars, the largest `most` of them; grey where the interval covers zero. Returns the axes."""
    size = len(rows)
    numbers = numbers_first(rows.labels)
    order = np.arange(size) if numbers else rows.order(most)
    some = f"the {order.size} largest of {size} answers, " if order.size < size else ""
    title = f"{result.title}: {some}{100 * rows.level:g} % intervals{rows.qualifiers}"
    unit = f", {rows.unit}" if rows.unit else ""
    name_of_value = result.heading + unit
    if numbers > MOST_BARS:
        words = "".join(f", {shown(rows.labels[i])} {rows.value[i]:.1%}" for i in range(numbers, size))
        return _band(rows, numbers, ax, title + words, name_of_value)
    shares, ends = rows.value[order], rows.ends[order]
    seen = (ends[:, 0] > 0) | (ends[:, 1] < 0)
    if ax is None:
        width = max(5.0, min(0.32 * order.size + 1.5, _WIDEST))
        ax = require("matplotlib.pyplot", "plot").subplots(figsize=(width, 3.6))[1]
    places = np.arange(order.size)
    for which, color, name in ((seen, SEEN, "clear of zero"), (~seen, UNSEEN, "may be zero")):
        if which.any():
            ax.bar(places[which], shares[which], 0.72, color=color, label=name)
    finite = np.isfinite(ends).all(axis=1)
    ax.vlines(places[finite], *ends[finite].T, color=INK, linewidth=1)
    ax.axhline(0, color=INK, linewidth=0.6)
    known = rows.names
    names = [_short(known[i]) for i in order]
    room = ax.get_position().width * ax.figure.get_figwidth() / max(1, order.size)
    crowded = max(map(len, names), default=0) * _LETTER > room
    turned = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    ax.set_xticks(places, names, **turned)
    ax.margins(x=0.02)
    ax.set_ylabel(name_of_value)
    ax.set_title(title, fontsize="medium")
    if seen.any() and not seen.all():
        # Beside the bars: inside it would hide an interval sooner or later.
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    return ax


def _band(rows: Rows, numbers: int, ax: Any, title: str, name_of_value: str) -> Any:
    if ax is None:
        ax = require("matplotlib.pyplot", "plot").subplots(figsize=(9.0, 3.6))[1]
    values = np.array(list(rows.labels)[:numbers])
    band = rows.low[:numbers], rows.high[:numbers]
    ax.fill_between(values, *band, color=UNSEEN, alpha=0.6, linewidth=0, label="intervals")
    ax.plot(values, rows.value[:numbers], color=SEEN, linewidth=1.2, label=name_of_value)
    ax.axhline(0, color=INK, linewidth=0.6)
    ax.margins(x=0.02)
    ax.set(xlabel="answer", ylabel=name_of_value)
    ax.set_title(title, fontsize="medium")
    return ax


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 3] + "..."

"""The table of a result, what is drawn of it, and how its numbers are rounded.

Rows       one row per figure: label, value, standard error and the ends of its interval, in one unit
Drawing    rows with the picture that shows them; a kind gives one or more of them
Rounding   a figure has as many decimals as show two digits of its error, and halves are rounded away from zero: the
           only rule, which pages in a browser follow as well (`web/test/rounding.json`)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deniable._plain import escaped
from deniable.errors import LabelError
from deniable.labels import Label, as_label, label_key, label_spec, numbers_first, shown

Floats = NDArray[np.float64]

ROWS_SHOWN = 20

RESPONDENTS = "among those who answered"
"""Added wherever figures leave out the sampling error."""

Picture = Literal["bars", "points", "histogram", "curve", "map", "matrix", "lines"]


def finite(value: float) -> float | None:
    """A float for JSON.

    Args:
        value: Any float.

    Returns:
        The float, or None if it is infinite or not a number.
    """
    return float(value) if math.isfinite(value) else None


def decimals(error: float) -> int:
    """Enough decimals for two digits of an error.

    >>> decimals(0.0123), decimals(0.001), decimals(250.0), decimals(0.0)
    (3, 4, 0, 4)
    """
    if not math.isfinite(error) or error <= 0:
        return 4
    return min(12, max(0, 1 - Decimal(repr(float(error))).adjusted()))


def number(value: float, digits: int) -> str:
    """A figure for people; halves are rounded away from zero.

    Args:
        value: The figure.
        digits: Number of decimals.

    Returns:
        Its text, or "-" if it is not a number.

    >>> number(1234.5678, 2), number(0.125, 2), number(-0.125, 2), number(float("nan"), 2)
    ('1,234.57', '0.13', '-0.13', '-')
    """
    if not math.isfinite(value):
        return "-" if math.isnan(value) else f"{value:,}"
    exact = Decimal(float(value))
    if exact.adjusted() + digits > _WIDEST_NUMBER:
        return f"{value:,.{digits}f}"
    return f"{exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):,f}"


_WIDEST_NUMBER = 25
"""Digits up to which halves are looked at: larger floats are whole numbers."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The table of a result, with the requested intervals."""

    labels: Sequence[Label]
    """Name of each row."""
    value: Floats
    """The figure of each row."""
    stderr: Floats
    """Its standard error."""
    low: Floats
    """Lower end of its interval."""
    high: Floats
    """Upper end of its interval."""
    unit: str = ""
    """Unit of the figures."""
    level: float = 0.95
    """Confidence level of the intervals."""
    simultaneous: bool = False
    """Whether the intervals hold for all rows at once."""
    population: bool = True
    """Whether errors and intervals refer to the population, or only to those who answered."""
    more: Mapping[str, Floats] = field(default_factory=dict)
    """Further columns of a kind, such as the count of a share."""
    groups: Sequence[str] = ()
    """The part that each row belongs to, if a result has several parts."""
    units: Sequence[str] = ()
    """The unit of each row, if they differ."""
    is_ordered: bool = False
    """Whether the rows are always shown in full and in their own order."""
    assumed: Sequence[str] = ()
    """The assumption about the population behind the interval of each row, if any row has one."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def ends(self) -> Floats:
        """The intervals, one row of two ends each."""
        return np.stack([self.low, self.high], axis=1)

    def whole(self, limits: tuple[float, float] | None) -> NDArray[np.bool_]:
        """Which intervals cover the whole range of a figure, and so carry no information."""
        if limits is None:
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray((self.low <= limits[0]) & (self.high >= limits[1]))

    @property
    def columns(self) -> dict[str, Any]:
        """The columns by name: label, value, stderr, low, high, unit, and those of the kind."""
        numbers = {"value": self.value, "stderr": self.stderr, "low": self.low, "high": self.high}
        head = {"group": list(self.groups)} if self.groups else {}
        tail = {"assumed": list(self.assumed)} if self.assumption else {}
        return head | {"label": self.labels, **numbers, "unit": self.row_units, **self.more} | tail

    @property
    def row_units(self) -> list[str]:
        return list(self.units) or [self.unit] * len(self)

    @property
    def names(self) -> list[str]:
        """The labels for people, each with its part."""
        names = [shown(label) for label in self.labels]
        return (
            [f"{escaped(group)}: {name}" for group, name in zip(self.groups, names, strict=True)]
            if self.groups
            else names
        )

    @property
    def keys(self) -> list[Any]:
        """What names each row: its label, or (part, label)."""
        return list(zip(self.groups, self.labels, strict=True)) if self.groups else list(self.labels)

    def place(self, key: Any) -> int:
        """The position of the row with this label, or (part, label); raises LabelError."""
        keys, wanted = self.keys, label_key(as_label(key))
        found = [place for place, known in enumerate(keys) if label_key(known) == wanted]
        if len(found) != 1:
            names = ", ".join(map(repr, keys[:ROWS_SHOWN])) + (", ..." if len(keys) > ROWS_SHOWN else "")
            which = "has several rows" if found else "has no row"
            raise LabelError(f"the table {which} {key!r}; there are {names}")
        return found[0]

    def records(self, json: bool = False) -> list[dict[str, Any]]:
        """One dictionary per row; with `json` labels in the form of a spec, and no NaN or infinity."""
        size = len(self)
        numbers = {"value": self.value, "stderr": self.stderr, "low": self.low, "high": self.high}
        own = {name: _plain(column, json) for name, column in (numbers | dict(self.more)).items()}
        columns: dict[str, Sequence[Any]] = {"group": self.groups} if self.groups else {}
        columns["label"] = [label_spec(label) for label in self.labels] if json else list(self.labels)
        columns |= {name: own.pop(name) for name in numbers}
        columns["unit"] = self.units or [self.unit] * size
        columns |= own
        if self.assumption:
            columns["assumed"] = self.assumed
        names = list(columns)
        return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def some(self, which: NDArray[np.bool_]) -> Rows:
        """Some of the rows."""
        places = np.flatnonzero(which).tolist()

        def chosen(column: Sequence[Any]) -> list[Any]:
            return [column[place] for place in places] if column else []

        return replace(
            self,
            labels=[self.labels[place] for place in places],
            value=self.value[which],
            stderr=self.stderr[which],
            low=self.low[which],
            high=self.high[which],
            more={name: column[which] for name, column in self.more.items()},
            groups=chosen(self.groups),
            units=chosen(self.units),
            assumed=chosen(self.assumed),
        )

    def order(self, most: float) -> NDArray[np.intp]:
        """Which rows to show: the largest first, except that few rows, and numbers, keep their own order.

        With several parts, up to `most` rows of each.
        """
        return order(self.labels, self.value, self.groups, self.is_ordered, most)

    @property
    def qualifiers(self) -> str:
        """Further qualifications of the intervals."""
        said = ", all answers at once" if self.simultaneous else ""
        said += "" if self.population else f", {RESPONDENTS}"
        return f"{said}, assuming {self.assumption}" if self.assumption else said

    @property
    def assumption(self) -> str:
        """The name of the assumption behind some of the intervals, or an empty text."""
        return next(filter(None, self.assumed), "")

    @property
    def interval_name(self) -> str:
        return f"{100 * self.level:g} % interval{'s' if self.simultaneous else ''}{self.qualifiers}"


def order(
    labels: Sequence[Label], value: Floats, groups: Sequence[str], is_ordered: bool, most: float
) -> NDArray[np.intp]:
    """Which rows to show, as `Rows.order`."""
    if is_ordered:
        return np.arange(len(labels))
    if groups:
        known = np.array(groups)
        places = [np.flatnonzero(known == group) for group in dict.fromkeys(groups)]
        return np.concatenate([at[_order([labels[int(i)] for i in at], value[at], most)] for at in places])
    return _order(labels, value, most)


def _order(labels: Sequence[Label], value: Floats, most: float) -> NDArray[np.intp]:
    if len(labels) <= most:
        return np.arange(len(labels))
    largest = np.argsort(-value, kind="stable")[: int(most)]
    return np.sort(largest) if numbers_first(labels) else largest


def _plain(column: Floats, json: bool) -> list[Any]:
    """A column as Python's numbers; for JSON without NaN and infinity."""
    known = np.asarray(column, dtype=np.float64)
    listed: list[Any] = known.tolist()
    if json and not np.isfinite(known).all():
        return [one if math.isfinite(one) else None for one in listed]
    return listed


@dataclass(frozen=True)
class View:
    """What a reader of a result wants to see."""

    level: float = 0.95
    """The confidence level of the intervals."""
    simultaneous: bool = False
    """Whether intervals hold for all rows at once."""
    population: bool = True
    """Whether errors and intervals refer to the population, or only to those who answered."""
    ranges: tuple[tuple[float, ...], ...] = ()
    """Distributions: the ranges, or rectangles, whose shares are wanted, too."""
    consistent: str = ""
    """The method that makes shares consistent, in columns next to the unbiased ones; empty: none."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """Rows with the picture that shows them."""

    id: str
    """What the rows are: "shares", "figures", "bins", ..."""
    picture: Picture
    """What shows them."""
    rows: Rows
    """The figures."""
    heading: str = "value"
    """The heading of the value column."""
    is_further: bool = False
    """Whether these figures come in addition to the table of the result."""
    marks: Sequence[Mapping[str, Any]] = ()
    """Rows, or points of the picture, with a meaning: {"row": 2, "quantile": 0.5}."""
    axes: Sequence[tuple[str, Sequence[str]]] = ()
    """For a table of several columns: each column with its answers; the rows are their combinations, row by row."""
    limits: tuple[float, float] | None = None
    """The ends between which all figures lie, whatever the reports are."""

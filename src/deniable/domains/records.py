"""A record: one answer for each of several named columns, each with its own domain; and places on a grid.

Missing    a record that lacks a column has a missing answer there: refused, unless the column's domain defines an
           answer for missing ones. A table without a column is refused: that is a mistake, not a missing answer
Unknown    a column that is not part of the record is refused
Grid       a place is a record of two integers: how many cells to the north and to the east
Box        from latitude and longitude, or from any two coordinates, to a cell of a grid
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable._extras import require
from deniable.columns import Coded, absent, ignore, is_absent, kind
from deniable.domains.base import Domain, load_domain, wrong_spec
from deniable.domains.listed import DomainLike, Integers, as_domain
from deniable.errors import DomainError, LabelError, ValueRefused
from deniable.labels import as_label

MOST_COLUMNS = 64

RECORDS_ARE_READ_AS = ("attributes", "rectangles", "pairs", "triples", "strata")
"""Each column by itself, two numbers together, all pairs or triples of columns, or the last one given the others."""

_CELL = re.compile(r"[0-9][0-9.,/]{0,20} [^\W\d_][^\W_]{0,20}")


@dataclass(frozen=True, slots=True, eq=False)
class RecordColumns:
    """Encoded records, column by column.

    Args:
        columns: The encoded answers of each column.
        count: Number of records.
    """

    columns: tuple[Any, ...]
    count: int

    def __len__(self) -> int:
        return self.count

    def repeat(self, times: int) -> RecordColumns:
        """Each record `times` times."""
        return RecordColumns(tuple(np.repeat(column, times) for column in self.columns), self.count * times)

    def __getitem__(self, place: Any) -> Any:
        """One record, or with a slice or an array the records of several rows."""
        if not isinstance(place, int | np.integer):
            columns = tuple(column[place] for column in self.columns)
            return RecordColumns(columns, len(columns[0]))
        found = (column[place] for column in self.columns)
        return tuple(one.item() if isinstance(one, np.generic) else one for one in found)


@dataclass(frozen=True)
class Records(Domain):
    """Several answers of one person: {"age": Integers(18, 99), "smoke": ["yes", "no"]}.

    An encoded record is a tuple of encoded answers. Every column is checked, even if it is not reported.

    Args:
        columns: The domain of each column, by name; in the order of the record.
        titles: The question text for each column, by name; the names of the columns if None.

    Raises:
        DomainError: The columns are not domains by name, or there are too many.

    >>> people = Records({"smoke": ["yes", "no"], "children": 10})
    >>> people.encode_one({"smoke": "no", "children": 2}), people.names
    ((1, 2), ('smoke', 'children'))
    """

    kind: ClassVar[str] = "records"

    reads: ClassVar[str] = "attributes"

    is_column: ClassVar[bool] = False

    nested: ClassVar[tuple[str, ...]] = ("structures",)

    columns: tuple[tuple[str, Domain], ...]
    titles: tuple[str, ...] = ()

    def __init__(self, columns: Mapping[str, DomainLike], titles: Mapping[str, str] | None = None) -> None:
        if not isinstance(columns, Mapping):
            raise DomainError(f"the columns of a record are a dictionary of domains by name, not {kind(columns)}")
        if not 1 <= len(columns) <= MOST_COLUMNS:
            raise DomainError(f"a record has 1 to {MOST_COLUMNS} columns, not {len(columns)}")
        listed = []
        for name, value in columns.items():
            try:
                label = as_label(name)
            except LabelError as wrong:
                raise DomainError(str(wrong)) from None
            if not isinstance(label, str) or not label:
                raise DomainError(f"the name of a column is text, not {kind(name)}")
            domain = as_domain(value)
            if not domain.is_column:
                raise DomainError(f"column {label!r} cannot hold {domain}: a column is a list of answers or a number")
            listed.append((label, domain))
        if len({name for name, _ in listed}) < len(listed):
            raise DomainError("two columns have one name in Unicode form NFC: rename one")
        object.__setattr__(self, "columns", tuple(listed))
        object.__setattr__(self, "titles", self._titles(titles or {}))

    def _titles(self, given: Mapping[str, str]) -> tuple[str, ...]:
        self._check_names(given)
        if not all(isinstance(title, str) and title for title in given.values()):
            raise DomainError("the title of a column is text")
        found = tuple(given.get(name, name) for name in self.names)
        return () if found == self.names else found

    @property
    def titles_of(self) -> Mapping[str, str]:
        return dict(zip(self.names, self.titles or self.names, strict=True))

    @property
    def parts(self) -> Mapping[str, Domain]:
        return dict(self.columns)

    @property
    def texts(self) -> dict[str, Any]:
        titles = {name: {"text": title} for name, title in self.titles_of.items()} if self.titles else {}
        return {"parts": {name: {"name": name} | titles.get(name, {}) | one.texts for name, one in self.columns}}

    def translated(self, texts: Mapping[str, Any]) -> Records:
        parts = {name: texts["parts"][name] for name in self.names}
        columns = {part["name"]: self[name].translated(part) for name, part in parts.items()}
        return Records(columns, {part["name"]: part["text"] for part in parts.values() if "text" in part})

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    def __getitem__(self, name: str) -> Domain:
        for known, domain in self.columns:
            if known == name:
                return domain
        raise DomainError(f"there is no column {name!r}; there are {', '.join(self.names)}")

    def encode(self, values: Any) -> RecordColumns:
        """Records from a table (pandas, polars, Arrow), a dictionary of columns, or a list of dictionaries."""
        columns = self.split(values)
        encoded = []
        for name, domain in self.columns:
            try:
                encoded.append(domain.encode(columns[name]))
            except DomainError as wrong:
                raise _in_column(name, wrong) from None
        counts = {len(column) for column in encoded}
        if len(counts) > 1:
            raise DomainError("the columns of these records have different lengths")
        return RecordColumns(tuple(encoded), counts.pop())

    def split(self, values: Any) -> Mapping[str, Any]:
        """Records in any of these forms as columns by name; names are checked, answers are not."""
        if isinstance(values, Mapping):
            if not any(hasattr(column, "__len__") and not isinstance(column, str) for column in values.values()):
                values = [values]
            else:
                self._check_table(list(values))
                return values
        if isinstance(values, Coded):
            values = [None if code < 0 else values.entries[code] for code in values.codes.tolist()]
        if hasattr(values, "columns") and hasattr(values, "to_numpy"):  # frames of pandas and polars
            self._check_table(list(values.columns))
            return {name: values[name] for name in self.names}
        if hasattr(values, "type") and hasattr(values, "flatten"):  # Arrow structures
            array = values.combine_chunks() if hasattr(values, "combine_chunks") else values
            if array.null_count:
                raise absent(int(np.argmax(array.is_null())))
            names = [field.name for field in array.type]
            self._check_table(names)
            return {name: array.field(names.index(name)) for name in self.names}
        if isinstance(values, np.ndarray | Iterator) or hasattr(values, "to_list"):  # series of pandas and polars, too
            values = list(values)
        if isinstance(values, list | tuple):
            for place, record in enumerate(values):
                self._check_record(record, place)
            ignore(dict.fromkeys(name for record in values for name in record), self.names, "the list of records")
            return {name: [record.get(name) for record in values] for name in self.names}
        if not hasattr(values, "column") and hasattr(values, "__arrow_c_stream__"):
            values = require("pyarrow", "files").table(values)
        if hasattr(values, "column_names"):  # Arrow
            names = list(values.column_names)
            self._check_table(names)
            return {name: values.column(names.index(name)) for name in self.names}
        raise _no_record(values, 0)

    def _check_table(self, names: list[Any]) -> None:
        ignore(names, self.names, "the table of records")
        missing = [name for name in self.names if name not in names]
        if missing:
            raise DomainError(f"these records have no column {missing[0]!r}: every column needs answers")

    def _check_record(self, record: Any, place: int) -> None:
        if is_absent(record):
            raise absent(place)
        if not isinstance(record, Mapping):
            raise _no_record(record, place)

    def _check_names(self, found: Iterable[Any]) -> None:
        if any(name not in self.names for name in found):
            raise DomainError(f"a record has a column that is not one of {', '.join(self.names)}")

    def encode_one(self, value: Any) -> tuple[Any, ...]:
        self._check_record(value, 0)
        self._check_names(value)  # on a device a name may be a slip, so nothing is ignored
        encoded = []
        for name, domain in self.columns:
            try:
                encoded.append(domain.encode_one(value.get(name)))
            except DomainError as wrong:
                raise _in_column(name, wrong) from None
        return tuple(encoded)

    def answer(self, label: Any) -> dict[str, Any]:
        return dict(zip(self.names, label, strict=True))

    def reader(self, typed: bool = True) -> Callable[[str], Any]:
        """A record as JSON text: {"smoke": "yes", "age": 44}."""
        import json

        def meaning(entry: str) -> Any:
            try:
                return json.loads(entry)
            except ValueError:
                return entry

        return meaning

    def answer_key(self, encoded: Any) -> bytes:
        """03, then the key of each column after its length in 4 bytes, little-endian."""
        keys = [domain.answer_key(one) for (_, domain), one in zip(self.columns, encoded, strict=True)]
        return b"\3" + b"".join(struct.pack("<I", len(key)) + key for key in keys)

    @property
    def example(self) -> dict[str, Any]:
        return {name: domain.example for name, domain in self.columns}

    @property
    def least_forms(self) -> int:
        return sum(domain.least_forms for _, domain in self.columns)

    @property
    def choices(self) -> str:
        return "; ".join(f"{name}: {domain.choices}" for name, domain in self.columns)

    def spec(self) -> dict[str, Any]:
        return {
            "kind": "records",
            "columns": [
                {"name": name, "domain": domain.spec()} | ({"title": self.titles_of[name]} if self.titles else {})
                for name, domain in self.columns
            ],
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Records:
        match spec:
            case {"kind": "records", "columns": list(columns), **rest} if not rest:
                named = {"name", "domain"} | ({"title"} if any("title" in column for column in columns) else set())
                if all(isinstance(column, Mapping) and set(column) == named for column in columns):
                    found = {column["name"]: load_domain(column["domain"]) for column in columns}
                    titles = {column["name"]: column["title"] for column in columns if "title" in column}
                    if len(found) == len(columns):
                        return cls(found, titles)
        raise wrong_spec("records", "columns, a list of different names with domains, perhaps with titles")

    @property
    def short(self) -> str:
        return f"records of {len(self.columns)} columns"

    def __repr__(self) -> str:
        titles = f", titles={dict(zip(self.names, self.titles, strict=True))!r}" if self.titles else ""
        return f"Records({dict(self.columns)!r}{titles})"

    def __str__(self) -> str:
        return f"records of {len(self.columns)} columns ({', '.join(self.names)})"


MOST_PLACES = 4096
PLACES_ARE_READ_AS = ("places", "rectangles")
"""A guarantee that fades with distance, or the same guarantee between any two places."""


@dataclass(frozen=True, repr=False)
class Grid(Records):
    """Places, as cells of a grid: {"north": 3, "east": 5} is the third cell from the south and the fifth from the west.

    Args:
        columns: Number of cells from west to east, at least 2.
        rows: Number of cells from south to north, at least 2.
        cell: Size of a cell, such as "500 m"; cells are squares.

    Raises:
        DomainError: The grid is too small or too large, or `cell` is not a number and a unit.

    >>> town = Grid(16, 12, cell="500 m")
    >>> town.encode_one({"north": 3, "east": 5}), town.shape, town.cells
    ((2, 4), (12, 16), 192)
    """

    kind: ClassVar[str] = "grid"

    reads: ClassVar[str] = PLACES_ARE_READ_AS[0]

    cell: str = ""

    def __init__(self, columns: int, rows: int, cell: str = "") -> None:
        for value in (columns, rows):
            if isinstance(value, bool) or not isinstance(value, int) or value < 2:
                raise DomainError("a grid has at least 2 columns and 2 rows, both whole numbers")
        if columns * rows > MOST_PLACES:
            raise DomainError(f"a grid has at most {MOST_PLACES:,} cells, not {columns * rows:,}: use larger cells")
        if not isinstance(cell, str) or (cell and (cell != cell.strip() or not _CELL.fullmatch(cell))):
            raise DomainError('the size of a cell is a number and a unit, such as "500 m"')
        super().__init__({"north": Integers(1, rows), "east": Integers(1, columns)})
        object.__setattr__(self, "cell", cell)

    @classmethod
    def parse(cls, text: str) -> Grid:
        """The grid of a text such as "16x12": 16 columns and 12 rows."""
        columns, _, rows = text.partition("x")
        if not (columns.isdecimal() and rows.isdecimal()):
            raise DomainError('a grid is written as columns and rows, "16x12"')
        return cls(int(columns), int(rows))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        (_, north), (_, east) = self.columns
        assert isinstance(north, Integers)
        assert isinstance(east, Integers)
        return north.size, east.size

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    @property
    def texts(self) -> dict[str, Any]:
        return {}

    def translated(self, texts: Mapping[str, Any]) -> Grid:
        return self

    @property
    def side(self) -> str:
        """The side length of a cell, in words."""
        return f"one cell side ({self.cell})" if self.cell else "one cell side"

    def spec(self) -> dict[str, Any]:
        rows, columns = self.shape
        return {"kind": "grid", "columns": columns, "rows": rows, "cell": self.cell}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Grid:
        match spec:
            case {"kind": "grid", "columns": int(columns), "rows": int(rows), "cell": str(cell), **rest} if not rest:
                return cls(columns, rows, cell)
        raise wrong_spec("a grid", "columns and rows, whole numbers, and the size of a cell as text")

    @property
    def short(self) -> str:
        rows, columns = self.shape
        return f"a grid of {columns} x {rows} places"

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"Grid({columns}, {rows}" + (f", cell={self.cell!r})" if self.cell else ")")

    def __str__(self) -> str:
        return self.short + (f", cells of {self.cell}" if self.cell else "")


_EARTH = 6_371_008.8
"""The mean radius of the earth in metres."""


@dataclass(frozen=True)
class Box:
    """A bounding box of coordinates, and the cells of a grid that divides it.

    Latitude and longitude in degrees; with `degrees=False` any y and x, in one unit. Row 1 is in the south, column 1 in
    the west. Places outside the box belong to the nearest cell at its edge, so that a device never refuses a place.

    Args:
        south: Lower end of the latitude, or of y.
        west: Lower end of the longitude, or of x.
        north: Upper end of the latitude, or of y.
        east: Upper end of the longitude, or of x.
        degrees: Whether the coordinates are latitudes and longitudes.

    Raises:
        DomainError: The ends are not finite numbers in order, or not degrees.

    >>> berlin = Box(south=52.34, west=13.09, north=52.68, east=13.76)
    >>> town = berlin.grid(columns=24)
    >>> town, berlin.cell(town, 52.52, 13.405)
    (Grid(24, 20, cell='1889 m'), {'north': 11, 'east': 12})
    >>> {name: cells.tolist() for name, cells in berlin.cells(town, [52.52, 40.0], [13.405, 13.76]).items()}
    {'north': [11, 1], 'east': [12, 24]}
    """

    south: float
    west: float
    north: float
    east: float
    degrees: bool = True

    def __post_init__(self) -> None:
        ends = (self.south, self.west, self.north, self.east)
        numbers = all(
            isinstance(end, int | float | np.number) and not isinstance(end, bool) and math.isfinite(end)
            for end in ends
        )
        if not numbers or not (self.south < self.north and self.west < self.east):
            raise DomainError("a box has four finite numbers, south below north and west below east")
        if self.degrees and not (self.south >= -90 and self.north <= 90 and self.east - self.west <= 360):
            raise DomainError("latitudes lie between -90 and 90 degrees; for other coordinates give degrees=False")

    @classmethod
    def parse(cls, text: str, degrees: bool = True) -> Box:
        """The box of a text such as "52.34,13.09,52.68,13.76": south, west, north, east."""
        try:
            south, west, north, east = (float(end) for end in text.split(","))
        except ValueError:
            raise DomainError('a box is written as south, west, north and east, "52.34,13.09,52.68,13.76"') from None
        return cls(south, west, north, east, degrees)

    @property
    def sides(self) -> tuple[float, float]:
        """Its height and width: in metres, measured half-way from south to north; without degrees in the given unit."""
        height, width = self.north - self.south, self.east - self.west
        if not self.degrees:
            return height, width
        degree = _EARTH * math.pi / 180
        return height * degree, width * degree * math.cos(math.radians((self.south + self.north) / 2))

    def grid(self, columns: int, unit: str = "m") -> Grid:
        """A grid with `columns` columns, and as many rows as make its cells as square as whole numbers allow."""
        if isinstance(columns, bool) or not isinstance(columns, int) or columns < 2:
            raise DomainError("a grid has at least 2 columns and 2 rows, both whole numbers")
        height, width = self.sides
        side = width / columns
        return Grid(columns, max(2, round(height / side)), f"{side:.0f} {unit}" if side >= 10 else f"{side:.3f} {unit}")

    def cell(self, grid: Grid, latitude: Any, longitude: Any) -> dict[str, int]:
        """The cell of one place, in the form that `grid` takes."""
        return {name: int(found[0]) for name, found in self.cells(grid, [latitude], [longitude]).items()}

    def cells(self, grid: Grid, latitudes: Any, longitudes: Any) -> dict[str, NDArray[np.int64]]:
        """The cells of places, column by column, in the form that `grid` takes; raises DomainError if not numbers."""
        rows, columns = grid.shape
        ends = (("north", latitudes, self.south, self.north, rows), ("east", longitudes, self.west, self.east, columns))
        found = {}
        for name, given, low, high, count in ends:
            numbers = _coordinates(given)
            place = np.floor((numbers - low) * count / (high - low))
            found[name] = 1 + np.clip(place, 0, count - 1).astype(np.int64)
        if len({len(places) for places in found.values()}) > 1:
            raise DomainError("there are not as many latitudes as longitudes")
        return found


def _coordinates(given: Any) -> NDArray[np.float64]:
    """Finite numbers; errors give the index of the first bad value, never the value."""
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array([_float(one) for one in given])
    if numbers.ndim != 1:
        raise DomainError("coordinates are two columns of numbers, of one length")
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if wrong.size:
        raise ValueRefused(" is no coordinate: latitude and longitude are finite numbers", int(wrong[0]))
    return numbers


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _in_column(name: str, wrong: DomainError) -> DomainError:
    """The error of a column's domain, with the column's name after the index of the value."""
    if not isinstance(wrong, ValueRefused) or wrong.place is None:
        return DomainError(f"column {name!r}: {wrong}")
    return ValueRefused(f", column {name!r}{wrong.complaint}", wrong.place)


def _no_record(value: Any, place: int) -> DomainError:
    return ValueRefused(f", {kind(value)}, is not a record, a dictionary of answers by name", place)

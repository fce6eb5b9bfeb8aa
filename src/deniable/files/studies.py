"""Studies: the error of estimates, over protocols x epsilon x people x answers x distributions.

Cell       one combination; `runs` collections from the same people, by the exact law of the tally where it is known
Figures    of a share, or of a mean in its unit. variance: mean squared error, over figures and runs, next to the
           formula's for these very people (or for the people that the protocol's `formula_for` describes); mae and
           max_error: the mean over figures and the largest, averaged over runs; coverage: of the 95% intervals for
           those who answered, because the same people are asked in every run
Seed       of a cell: SHA-256 of the study's seed and the cell, so that results depend neither on the order of the cells
           nor on the engine; a repeated study gives the same numbers (seconds excepted)
Resume     the results file is its own manifest: cells in it are not repeated
Picture    the standard error against the number that was varied most; points measured, lines by the formula,
           one colour per protocol; columns of panels for the next varied parameter, rows for the second, line styles
           and marks for a third; axes logarithmic, shared by all panels and labelled with plain numbers
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable._extras import require
from deniable._files import atomic_write, parse_json
from deniable.answers import from_options, read_answers
from deniable.domains import Domain, Interval, ListedDomain, as_listed
from deniable.errors import DeniableError, LabelError, NumberError, SpecError
from deniable.files.units import run_all, worker_count
from deniable.planning import COLORS, GRID, INK, STYLES
from deniable.protocols import Protocol, registered

Shares = NDArray[np.float64]

LEVEL = 0.95
SECONDS_BETWEEN = 2.0

_NOTE, _VERSION = b"deniable.study", b"1"

_AXES = {"epsilon": "epsilon", "people": "people", "answers": "possible answers"}
_MARKS = "osD^vP*X"
# The minimum ratio of the ends of the vertical axis, so that small differences look small.
_SPREAD = 2.0
# Labels on the horizontal axis are this fraction of its length apart.
_APART, _APART_IN_PANELS = 0.06, 0.16


# -- the answers of simulated people --------------------------------------------------------------------


def shares(distribution: str, answers: int) -> Shares:
    """A distribution by name, over `answers` answers, the most common first.

    uniform     all the same
    zipf:s      the k-th has a weight of k^-s (s = 1.1)
    geometric:r each has r times the weight of the one before (r = 0.9)
    spike:a     the first has the share a (0.5), the others the rest

    >>> shares("spike:0.4", 4).round(3).tolist()
    [0.4, 0.2, 0.2, 0.2]
    """
    name, _, given = distribution.partition(":")
    rank = np.arange(answers, dtype=np.float64)
    try:
        match name:
            case "uniform":
                weights = np.ones(answers)
            case "zipf":
                weights = (rank + 1) ** -_within(given or "1.1", 0.0, 50.0)
            case "geometric":
                weights = _within(given or "0.9", 0.0, 1.0) ** rank
            case "spike":
                top = _within(given or "0.5", 0.0, 1.0)
                weights = np.full(answers, (1 - top) / max(1, answers - 1))
                weights[0] = top
            case _:
                raise SpecError(f"there is no distribution {name!r}; there are uniform, zipf, geometric and spike")
    except ValueError as wrong:
        if isinstance(wrong, DeniableError):
            raise
        raise SpecError(f"{given!r} is no parameter of {name}: write it like zipf:1.1") from None
    if name == "uniform" and given:
        raise SpecError("uniform has no parameter")
    found: Shares = weights / weights.sum()
    return found


def _within(text: str, low: float, high: float) -> float:
    value = float(text)
    if not low <= value <= high:
        raise SpecError(f"the parameter of a distribution lies here between {low:g} and {high:g}, not at {text}")
    return value


def people_of(distribution: str, answers: int, people: int) -> NDArray[np.int64]:
    """Number of people with each answer: shares times people, rounded so that the sum is right."""
    return rounded(shares(distribution, answers), people)


def rounded(shares: Shares, people: int) -> NDArray[np.int64]:
    """Shares of people as whole numbers whose sum is right."""
    wanted = shares * people
    counts = np.floor(wanted).astype(np.int64)
    missing = people - int(counts.sum())
    counts[np.argsort(counts - wanted, kind="stable")[:missing]] += 1
    return counts


USUAL = "usual"
"""Default for a record: zipf for listed answers, bell for numbers."""

_BELL = 0.15
"""The standard deviation of a bell, as a part of the interval's width."""


def numbers_of(distribution: str, interval: Interval, people: int) -> Shares:
    """The numbers of `people` people, by name; places are fractions of the interval, 0 its low end and 1 its high end.

    uniform      spread evenly
    bell:c       a normal distribution around the place c (0.5), 0.15 wide, clipped
    ends:a       the share a (0.5) at the high end, the others at the low end: the worst case of many protocols
    spike:c      everybody at the place c (0.5)
    values:a/b/c the given numbers, in turn

    >>> numbers_of("ends:0.25", Interval(0, 24), 4).tolist(), numbers_of("values:7/8.5", Interval(0, 24), 3).tolist()
    ([0.0, 0.0, 0.0, 24.0], [7.0, 8.5, 7.0])
    """
    name, _, given = distribution.partition(":")
    quantile = (np.arange(people) + 0.5) / people
    try:
        match name:
            case "uniform":
                if given:
                    raise SpecError("uniform has no parameter")
                places = quantile
            case "bell":
                special = require("scipy.special", "files")
                places = np.clip(_within(given or "0.5", 0.0, 1.0) + _BELL * special.ndtri(quantile), 0.0, 1.0)
            case "ends":
                places = (quantile > 1 - _within(given or "0.5", 0.0, 1.0)).astype(np.float64)
            case "spike":
                places = np.full(people, _within(given or "0.5", 0.0, 1.0))
            case "values":
                return interval.encode(np.resize([float(part) for part in given.split("/")], people))
            case _:
                raise SpecError(
                    f"there is no distribution of numbers {name!r}; there are uniform, bell, ends, spike and values"
                )
    except ValueError as wrong:
        if isinstance(wrong, DeniableError):
            raise
        raise SpecError(f"{given!r} is no parameter of {name}: write it like bell:0.5 or values:7/8.5") from None
    low, high = interval.ends
    numbers: Shares = low + places * (high - low)
    return numbers


# -- cells ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of a study."""

    protocol: str
    epsilon: str
    people: int
    answers: int
    distribution: str
    runs: int
    seed: int
    interval: str = ""
    """For numbers: "0..24 hours"; then there are no listed answers."""
    record: str = ""
    """For records: their parts in JSON, as in a draft."""

    @property
    def domain(self) -> Domain:
        if self.record:
            return read_answers(from_options(record=parse_json(self.record, "the record")))
        if self.interval:
            ends, _, unit = self.interval.partition(" ")
            return read_answers(from_options(number=ends, unit=unit))
        return read_answers(from_options(categories=self.answers))

    def build(self) -> Protocol:
        known = registered()
        if self.protocol not in known:
            raise LabelError(f"there is no protocol {self.protocol!r}; there are {', '.join(sorted(known))}")
        return known[self.protocol](self.domain, self.epsilon)

    def crowd(self) -> tuple[Any, Any]:
        """Answers, and the number of people with each of them; None for one each."""
        domain = self.domain
        if self.record:
            random = np.random.default_rng(self.own_seed)
            return {name: self._column(part, random) for name, part in domain.columns}, None
        if isinstance(domain, Interval):
            return numbers_of(self.distribution, domain, self.people), None
        counts = people_of(self.distribution, self.answers, self.people)
        return domain.labels if isinstance(domain, ListedDomain) else (), counts

    def _column(self, part: Domain, random: np.random.Generator) -> Any:
        """The answers of all people to one part of a record; the parts are independent."""
        if isinstance(part, Interval):
            held = "bell" if self.distribution == USUAL else self.distribution
            return random.permutation(numbers_of(held, part, self.people))
        listed = as_listed(part)
        held = "zipf" if self.distribution == USUAL else self.distribution
        places = np.repeat(np.arange(listed.size), people_of(held, listed.size, self.people))
        return [listed.labels[place] for place in random.permutation(places).tolist()]

    @property
    def own_seed(self) -> int:
        text = json.dumps(asdict(self), sort_keys=True)
        return int.from_bytes(hashlib.sha256(f"deniable-study-v1\0{text}".encode()).digest()[:7], "little")


@dataclass(frozen=True, slots=True)
class Row:
    """A cell and its results."""

    protocol: str
    epsilon: float
    epsilon_exact: str
    people: int
    answers: int
    distribution: str
    runs: int
    seed: int
    exact: bool
    """Whether the tallies were drawn from their law, without reports."""
    variance: float
    variance_theory: float
    mae: float
    max_error: float
    coverage: float
    seconds: float
    interval: str = ""
    record: str = ""

    @property
    def unit(self) -> str:
        """The unit of the mean; a share has none."""
        return self.interval.partition(" ")[2]

    @property
    def cell(self) -> Cell:
        settings = (self.people, self.answers, self.distribution, self.runs, self.seed, self.interval, self.record)
        return Cell(self.protocol, self.epsilon_exact, *settings)


# -- running them ---------------------------------------------------------------------------------------


def grid(
    protocols: Sequence[str],
    epsilons: Sequence[Any],
    people: Sequence[int],
    answers: Sequence[int] = (),
    distributions: Sequence[str] = (),
    runs: int = 100,
    seed: int = 0,
    intervals: Sequence[str] = (),
    records: Sequence[str] = (),
) -> list[Cell]:
    """All combinations, each checked before anything runs: numbers of listed answers, intervals, or records.

    An interval is text such as "0..24 hours", a record its parts in JSON. By default people hold answers by
    "zipf" and numbers by "bell", which for records is called "usual".
    """
    if [bool(answers), bool(intervals), bool(records)].count(True) != 1:
        raise SpecError("a study is about listed answers, intervals of numbers or records: give one of the three")
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise NumberError(f"the number of runs is a positive whole number, not {runs!r}")
    levels = [exact.canonical(exact.as_epsilon(epsilon)) for epsilon in epsilons]
    kinds = [(size, "", "") for size in answers]
    kinds += [(0, interval, "") for interval in intervals] + [(0, "", record) for record in records]
    held = distributions or [USUAL if records else "bell" if intervals else "zipf"]
    cells = [
        Cell(protocol, level, number, size, distribution, runs, seed, interval, record)
        for protocol, level, number, (size, interval, record), distribution in itertools.product(
            protocols, levels, people, kinds, held
        )
    ]
    cells = list(dict.fromkeys(cells))
    for number in people:
        if isinstance(number, bool) or number < 1:
            raise NumberError(f"the number of people is a positive whole number, not {number!r}")
    for cell in cells:
        about = cell.interval or (f"{cell.answers} answers" if cell.answers else "a record")
        try:
            replace(cell, people=1).crowd()
            cell.build()
        except DeniableError as wrong:
            raise type(wrong)(f"{cell.protocol}, epsilon {cell.epsilon}, {about}: {wrong}") from None
    return cells


def run_cell(shared: Any, cell: Cell) -> Row:
    """Everything about one combination."""
    start = time.perf_counter()
    protocol = cell.build()
    answers, people = cell.crowd()
    study = protocol.simulate(answers if people is None else None, cell.runs, cell.own_seed, counts=people)
    squared = absolute = largest = covered = 0.0
    scales = protocol.worth().scales
    for run in range(cell.runs):
        found = protocol.estimate(study.tally(run)).table(LEVEL, population=False)
        error = (found.value - study.truth) / scales
        squared += float(np.mean(error**2))
        absolute += float(np.mean(np.abs(error)))
        largest += float(np.max(np.abs(error)))
        covered += float(np.mean((found.low <= study.truth) & (study.truth <= found.high)))
    levels = {"epsilon": float(Fraction(cell.epsilon)), "epsilon_exact": cell.epsilon}
    return Row(
        **(asdict(cell) | levels),
        exact=study.exact,
        variance=squared / cell.runs,
        variance_theory=float(np.mean(protocol.worth().variances(answers, people) / scales**2)),
        mae=absolute / cell.runs,
        max_error=largest / cell.runs,
        coverage=covered / cell.runs,
        seconds=time.perf_counter() - start,
    )


Engine = Callable[[list[Cell]], Iterator[Row]]


def by_processes(workers: int | None = None) -> Engine:
    """Cells on the cores of this machine."""
    count = worker_count(workers)

    def engine(cells: list[Cell]) -> Iterator[Row]:
        if count == 1 or len(cells) == 1:
            yield from (run_cell(None, cell) for cell in cells)
        else:
            yield from (row for _, row in run_all(run_cell, None, cells, count))

    return engine


def by_spark(session: Any) -> Engine:
    """Cells on the executors of a Spark session, in several rounds, so that an interruption loses one round."""
    from deniable.files.spark import run_on, width

    def engine(cells: list[Cell]) -> Iterator[Row]:
        at_once = 4 * width(session)
        for start in range(0, len(cells), at_once):
            yield from run_on(session, partial(_rows, None), cells[start : start + at_once], _joined)

    return engine


def _rows(shared: Any, cell: Cell) -> list[Row]:
    return [run_cell(shared, cell)]


def _joined(first: list[Row], second: list[Row]) -> list[Row]:
    return first + second


def run_study(
    cells: Iterable[Cell],
    path: str | Path | None = None,
    engine: Engine | None = None,
    progress: Callable[[int, float | None], None] | None = None,
) -> list[Row]:
    """The rows of all cells, in their order.

    With a path they are saved there as they come, and existing rows are not computed again.
    """
    wanted = list(cells)
    known = {} if path is None else {row.cell: row for row in load_study(path, missing_is_empty=True)}
    todo = [cell for cell in wanted if cell not in known]
    due = time.monotonic() + SECONDS_BETWEEN

    def save() -> None:
        if path is not None:
            # In the order of the cells, not of completion; rows of other studies in the file come first.
            ours = [known[cell] for cell in wanted if cell in known]
            save_study(path, [row for cell, row in known.items() if cell not in asked] + ours)

    asked = set(wanted)
    if not known:
        save()  # find out before the work if the place cannot be written
    try:
        for done, row in enumerate((engine or by_processes(1))(todo), start=1):
            known[row.cell] = row
            if progress is not None:
                progress(done, done / len(todo))
            if time.monotonic() >= due:
                save()
                due = time.monotonic() + SECONDS_BETWEEN
    finally:
        if todo:
            save()
    return [known[cell] for cell in wanted]


# -- files ----------------------------------------------------------------------------------------------


def save_study(path: str | Path, rows: Iterable[Row]) -> None:
    """Write Parquet, one row per cell; the file appears whole or not at all."""
    pa, parquet = require("pyarrow", "files"), require("pyarrow.parquet", "files")
    kinds = {"str": pa.string(), "int": pa.int64(), "bool": pa.bool_(), "float": pa.float64()}
    fields = [pa.field(name, kinds[kind], nullable=False) for name, kind in Row.__annotations__.items()]
    table = pa.Table.from_pylist([asdict(row) for row in rows], pa.schema(fields, {_NOTE: _VERSION}))
    with atomic_write(path) as file:
        parquet.write_table(table, file)


def load_study(path: str | Path, missing_is_empty: bool = False) -> list[Row]:
    """The rows of a results file."""
    if missing_is_empty and not Path(path).exists():
        return []
    pa, parquet = require("pyarrow", "files"), require("pyarrow.parquet", "files")
    try:
        table = parquet.read_table(path)
    except pa.ArrowInvalid:
        raise SpecError(f"{str(path)!r} is no file of results: give another name") from None
    version = (table.schema.metadata or {}).get(_NOTE)
    if version is not None and version != _VERSION:
        raise SpecError(f"{str(path)!r} holds the results of another version of deniable: give another name")
    if version is None or table.column_names != list(Row.__slots__):
        raise SpecError(f"{str(path)!r} does not hold the results of a study: give another name")
    return [Row(**row) for row in table.to_pylist()]


def relative_error(row: Row) -> float:
    """The empirical variance over the formula's."""
    return row.variance / row.variance_theory if row.variance_theory else math.nan


# -- a picture ------------------------------------------------------------------------------------------


def draw(rows: Sequence[Row]) -> Any:
    """Draw one panel per combination of what else varies; returns the axes of the first panel."""
    if not rows:
        raise SpecError("there is nothing to draw: the study has no cells")
    plt = require("matplotlib.pyplot", "plot")
    axis = max(_AXES, key=lambda name: len(_values(rows, name)))
    others = [
        name for name in (*_AXES, "interval", "record", "distribution") if name != axis and len(_values(rows, name)) > 1
    ]
    across, down, third = [*others, None, None, None][:3]
    columns, lines = _values(rows, across), _values(rows, down)
    size = (7.2, 4.4) if not others else (2.9 * len(columns) + 2.2, 2.7 * len(lines) + 0.7)
    figure, panels = plt.subplots(
        len(lines), len(columns), figsize=size, squeeze=False, sharex=True, sharey=True, layout="constrained"
    )
    for i, line in enumerate(lines):
        for j, column in enumerate(columns):
            panel = [row for row in rows if _value(row, across) == column and _value(row, down) == line]
            _panel(panels[i, j], panel, rows, axis, third)
            named = [_named(name, value) for name, value in ((across, column), (down, line)) if name is not None]
            panels[i, j].set_title(", ".join(named), fontsize="medium")
    errors = [math.sqrt(variance) for row in rows for variance in (row.variance, row.variance_theory)]
    log_scales(panels, [float(_value(row, axis)) for row in rows], errors)
    for ax in panels[-1]:
        ax.set_xlabel(_AXES[axis])
    for ax in panels[:, 0]:
        ax.set_ylabel(f"standard error{_of(rows[0])}")
    _legend(figure, rows, third)
    return panels[0, 0]


def _panel(ax: Any, panel: Sequence[Row], rows: Sequence[Row], axis: str, third: str | None) -> None:
    protocols, kinds = _values(rows, "protocol"), _values(rows, third)
    curves: dict[tuple[int, int], list[Row]] = {}
    for row in panel:
        curves.setdefault((protocols.index(row.protocol), kinds.index(_value(row, third))), []).append(row)
    for (number, kind), points in curves.items():
        color = COLORS[number % len(COLORS)]
        points.sort(key=lambda row: float(_value(row, axis)))
        x = [_value(row, axis) for row in points]
        # A single point has no line, only a dash.
        dash = {"marker": "_", "markersize": 14} if len(points) == 1 else {"linestyle": STYLES[kind % len(STYLES)]}
        ax.plot(x, [math.sqrt(row.variance_theory) for row in points], color=color, linewidth=1.2, **dash)
        mark = _MARKS[(number if third is None else kind) % len(_MARKS)]
        ax.plot(x, [math.sqrt(row.variance) for row in points], mark, color=color, markersize=5)


def log_scales(panels: Any, values: Iterable[float], errors: Sequence[float]) -> None:
    """Logarithmic axes with plain numbers: these values horizontally, and vertically what holds these errors."""
    values = sorted(set(values))
    ends = _ends(errors)
    ticks = _ticks(*ends)
    for ax in panels.flat:
        ax.set(xscale="log", yscale="log")
        ax.minorticks_off()
        ax.margins(x=0.05 if panels.size == 1 else 0.12)
        ax.grid(True, which="major", color=GRID, linewidth=0.6)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    # Shared by all panels.
    panels[0, 0].set_xticks(values, _labels(values, _APART if panels.size == 1 else _APART_IN_PANELS))
    panels[0, 0].set_yticks(ticks, [f"{tick:.10g}" for tick in ticks])
    panels[0, 0].set_ylim(*ends)


def formula_for(name: str) -> str:
    """What the formula of a kind refers to, if not to the very people of a study."""
    return next(iter(registered()[name].examples())).worth().formula_for


def _legend(figure: Any, rows: Sequence[Row], third: str | None) -> None:
    """Next to the panels, where it hides nothing."""
    lines = require("matplotlib.lines", "plot")
    entries = []
    for number, name in enumerate(_values(rows, "protocol")):
        mark = _MARKS[number % len(_MARKS)] if third is None else ""
        alone = formula_for(name)
        label = f"{name} (line: {alone})" if alone else name
        entries.append(lines.Line2D([], [], color=COLORS[number % len(COLORS)], marker=mark, markersize=5, label=label))
    for kind, value in enumerate(_values(rows, third) if third is not None else []):
        style = {"linestyle": STYLES[kind % len(STYLES)], "marker": _MARKS[kind % len(_MARKS)]}
        entries.append(lines.Line2D([], [], color=INK, markersize=5, label=_named(third, value), **style))
    figure.legend(
        handles=entries,
        loc="outside right upper",
        frameon=False,
        fontsize="small",
        title="points: measured\nlines: formula",
        title_fontsize="small",
        alignment="left",
    )


def _values(rows: Sequence[Row], name: str | None) -> list[Any]:
    """The distinct values, in order; a single None for nothing."""
    return list(dict.fromkeys(_value(row, name) for row in rows))


def _value(row: Row, name: str | None) -> Any:
    return None if name is None else getattr(row, name)


def _of(row: Row) -> str:
    unit = f", {row.unit}" if row.unit else ""
    if row.record:
        return " of a part's figure, in parts of its range"
    return f" of a mean{unit}" if row.interval else " of a share"


def _labels(values: Sequence[float], share: float) -> list[str]:
    """The numbers themselves; if they are crowded, only some of them, and always the first and the last."""
    places = [math.log(value) for value in values]
    apart = share * (places[-1] - places[0])
    shown = [0]
    for i in range(1, len(values) - 1):
        if places[i] - places[shown[-1]] >= apart and places[-1] - places[i] >= apart:
            shown.append(i)
    shown.append(len(values) - 1)
    return [f"{value:,.10g}" if i in shown else "" for i, value in enumerate(values)]


def _ends(errors: Sequence[float]) -> tuple[float, float]:
    """The ends of the vertical axis. Errors of zero, from a protocol that never lies, are not on it."""
    positive = [error for error in errors if error > 0] or [1.0]
    low, high = min(positive), max(positive)
    wider = max((high / low) ** 0.05, math.sqrt(_SPREAD * low / high))
    return low / wider, high * wider


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between the ends: at least two if the ends are a factor of 2 apart.

    >>> _ticks(0.013, 0.09), _ticks(0.0011, 0.0022), _ticks(0.003, 40)
    ([0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08], [0.0015, 0.002], [0.01, 0.1, 1.0, 10.0])
    """
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)))
    for digits in ((10,), (10, 20, 50), (10, 15, 20, 30, 40, 50, 60, 80)):
        ticks = [float(f"{digit}e{decade}") for decade in decades for digit in digits]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 3:
            break
    return ticks


def _named(name: str | None, value: Any) -> str:
    if name in ("distribution", "interval", "record"):
        return str(value)
    return f"{value:,} {name}" if isinstance(value, int) else f"{name} {value:g}"

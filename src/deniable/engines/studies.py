"""Studies: how far estimates are from the truth, over protocols x epsilon x people x answers x distributions.

Cell       one combination; `runs` collections from the same people, by the exact law of the tally where it is known
Figures    variance: mean squared error of a count, over answers and runs, beside the formula's for these very people
           (of another estimator for those in `ALONE`); mae and max_error: of a share, the mean over answers and the
           largest, averaged over runs; coverage: of the 95% intervals for those who
           answered, because the same people are asked in every run
Seed       of a cell: SHA-256 of the study's seed and the cell, so that results depend neither on the order of the cells
           nor on the engine; a repeated study gives the same numbers (seconds excepted)
Resume     the results file is its own manifest: cells that it has are not repeated
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable._extras import require
from deniable._files import atomic_write
from deniable.domains import as_domain
from deniable.engines.distributions import people_of, shares
from deniable.engines.pool import run_all, worker_count
from deniable.errors import DeniableError, LabelError, NumberError, SpecError
from deniable.protocols import PROTOCOLS, Protocol
from deniable.protocols.frequency.hadamard_response import HadamardResponse
from deniable.protocols.frequency.rappor import RAPPOR
from deniable.protocols.frequency.sketch import SketchProtocol

LEVEL = 0.95
SECONDS_BETWEEN = 2.0
ALONE = frozenset({"RAPPOR"})
"""Whose formula is for a candidate that is looked for alone: what is measured is the fit of all together."""

# Version 1 had epsilon as text only, and for HadamardResponse the formula of evenly filled blocks.
_NOTE, _VERSION = b"deniable.study", b"2"


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

    def build(self) -> Protocol:
        if self.protocol not in PROTOCOLS:
            raise LabelError(f"there is no protocol {self.protocol!r}; there are {', '.join(sorted(PROTOCOLS))}")
        return PROTOCOLS[self.protocol](as_domain(self.answers), self.epsilon)

    @property
    def own_seed(self) -> int:
        text = json.dumps(asdict(self), sort_keys=True)
        return int.from_bytes(hashlib.sha256(f"deniable-study-v1\0{text}".encode()).digest()[:7], "little")


@dataclass(frozen=True, slots=True)
class Row:
    """A cell and what was found."""

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

    @property
    def cell(self) -> Cell:
        settings = (self.people, self.answers, self.distribution, self.runs, self.seed)
        return Cell(self.protocol, self.epsilon_exact, *settings)


# -- the cells -----------------------------------------------------------------------------------------


def grid(
    protocols: Sequence[str],
    epsilons: Sequence[Any],
    people: Sequence[int],
    answers: Sequence[int],
    distributions: Sequence[str] = ("zipf",),
    runs: int = 100,
    seed: int = 0,
) -> list[Cell]:
    """All combinations, each checked before anything runs."""
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise NumberError(f"the number of runs is a positive whole number, not {runs!r}")
    levels = [exact.canonical(exact.as_epsilon(epsilon)) for epsilon in epsilons]
    cells = [
        Cell(*combination, runs, seed)
        for combination in itertools.product(protocols, levels, people, answers, distributions)
    ]
    cells = list(dict.fromkeys(cells))
    for number in people:
        if isinstance(number, bool) or number < 1:
            raise NumberError(f"the number of people is a positive whole number, not {number!r}")
    for cell in cells:
        shares(cell.distribution, cell.answers)
        try:
            cell.build()
        except DeniableError as wrong:
            raise type(wrong)(f"{cell.protocol}, epsilon {cell.epsilon}, {cell.answers} answers: {wrong}") from None
    return cells


def run_cell(shared: Any, cell: Cell) -> Row:
    """Everything about one combination."""
    start = time.perf_counter()
    protocol = cell.build()
    truth = people_of(cell.distribution, cell.answers, cell.people)
    study = protocol.simulate(truth, cell.runs, cell.own_seed)
    squared = absolute = largest = covered = 0.0
    for run in range(cell.runs):
        estimate = protocol.estimate(study.tally(run))
        error = estimate.counts - truth
        ends = estimate.interval(LEVEL, population=False) * cell.people
        squared += float(np.mean(error**2))
        absolute += float(np.mean(np.abs(error))) / cell.people
        largest += float(np.max(np.abs(error))) / cell.people
        covered += float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])))
    levels = {"epsilon": float(Fraction(cell.epsilon)), "epsilon_exact": cell.epsilon}
    return Row(
        **(asdict(cell) | levels),
        exact=study.exact,
        variance=squared / cell.runs,
        variance_theory=float(np.mean(formula(protocol, truth))),
        mae=absolute / cell.runs,
        max_error=largest / cell.runs,
        coverage=covered / cell.runs,
        seconds=time.perf_counter() - start,
    )


def formula(protocol: Protocol, truth: NDArray[np.int64]) -> Any:
    """The variance of each estimated count when so many people hold each answer."""
    n = int(truth.sum())
    shares = truth / n
    if isinstance(protocol, HadamardResponse):
        # Answers v, v + B, ... are in one block, and its people weigh more than the others.
        block = np.arange(truth.size) % protocol.blocks
        inside = np.bincount(block, truth)[block]
        keep = float(protocol.response.keep)
        return (inside * keep + n * (1 - keep) / protocol.blocks - truth * keep**2) / keep**2
    if isinstance(protocol, SketchProtocol | RAPPOR):
        others = np.square(shares).sum() - np.square(shares)
        return protocol.variance(n, shares, population=False, others=others)
    return protocol.variance(n, shares, population=False)


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
    """Cells on the executors of a Spark session, some rounds of them, so that an interruption loses one round."""
    from deniable.engines.spark import run_on, width

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
    """The rows of all cells, in their order; with a path they are kept there as they come, and taken from there."""
    wanted = list(cells)
    known = {} if path is None else {row.cell: row for row in load_study(path, missing_is_empty=True)}
    todo = [cell for cell in wanted if cell not in known]
    due = time.monotonic() + SECONDS_BETWEEN

    def save() -> None:
        if path is not None:
            # In the order of the cells, whoever was first; rows of other studies in the file come before.
            ours = [known[cell] for cell in wanted if cell in known]
            save_study(path, [row for cell, row in known.items() if cell not in asked] + ours)

    asked = set(wanted)
    if not known:
        save()  # a place that cannot be written is better known before the work than after
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


# -- files ---------------------------------------------------------------------------------------------


def save_study(path: str | Path, rows: Iterable[Row]) -> None:
    """Write Parquet, one row a cell; it appears whole or not at all."""
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

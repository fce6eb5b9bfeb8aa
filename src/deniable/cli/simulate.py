"""`deniable simulate`: sweeps of protocols and settings, measured against the formulas."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable._files import parse_json
from deniable.cli import output
from deniable.cli.options import (
    Csv,
    Engine,
    Json,
    Master,
    Plot,
    Record,
    Wheel,
    is_json,
    named,
    new_app,
    one_format,
    option,
    read_text,
)
from deniable.cli.output import examples, progress, save_figure
from deniable.errors import SpecError
from deniable.files.spark import connect
from deniable.files.studies import (
    by_processes,
    by_spark,
    draw,
    formula_for,
    grid,
    load_study,
    relative_error,
    run_study,
)

app = new_app()


def _list(help: str, metavar: str) -> Any:
    return typer.Option(metavar=metavar, help=help + " Comma-separated, may be repeated.", show_default=False)


@app.command(
    epilog=examples(
        "deniable simulate --protocol GRR,OUE,OLH --epsilon 0.5,1,2,4 --categories 64 --people 10000",
        "deniable simulate --protocol OUE --epsilon 1 --categories 16,256,4096 --people 1000000000 -o study.parquet",
        "deniable simulate --protocol OLH,OUE --epsilon 1,2 --categories 128 --people 1000,10000 "
        "--distribution zipf,uniform,spike:0.8 --plot study.png",
        "deniable simulate --protocol Window,OneBitMean --epsilon 1,4 --number 0..24 --unit hours --people 10000",
        "deniable simulate --protocol Window --epsilon 2 --number 0..24 --people 1000 --distribution values:6/7.5/9",
        "deniable simulate --protocol Attributes --epsilon 1,2 --record parts.json --people 10000",
    )
)
def simulate(
    protocol: Annotated[list[str], _list("Names of protocols.", "NAME,...")],
    epsilon: Annotated[list[str], _list("Privacy levels.", "EPSILON,...")],
    people: Annotated[list[str], _list("Numbers of people.", "N,...")],
    categories: Annotated[list[str] | None, _list("Numbers of possible answers.", "N,...")] = None,
    number: Annotated[list[str] | None, _list("The mean of a number between these.", "LOW..HIGH,...")] = None,
    record: Record = None,
    unit: Annotated[str, option("UNIT", "The unit of the number.")] = "",
    distribution: Annotated[
        list[str] | None,
        option(
            "NAME[:X],...",
            "What people hold: uniform, zipf:1.1, geometric:0.9, spike:0.5; of numbers uniform, bell:0.5, "
            "ends:0.5, spike:0.5, values:6/7.5/9. Comma-separated, may be repeated.",
            default="zipf; bell for numbers",
        ),
    ] = None,
    runs: Annotated[int, option("N", "Collections in each cell.", default=True)] = 100,
    seed: Annotated[int, option("N", "The same seed gives the same figures, on any engine.", default=True)] = 0,
    to: Annotated[
        Path | None,
        option(
            "FILE",
            "Parquet, one row per cell. Cells that the file has are not repeated, so a study can be interrupted.",
            "-o",
            "--output",
        ),
    ] = None,
    workers: Annotated[int | None, option("N", "Processes on this machine.", default="one per core")] = None,
    engine: Annotated[Engine, option("ENGINE", "local, or spark for a cluster.", default=True)] = Engine.local,
    master: Master = None,
    wheel: Wheel = None,
    plot: Plot = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Repeat collections with made-up people; measure errors.

    Compares measured errors with those of the formulas. GRR, LGRR, SUE, OUE, THE and HadamardResponse are drawn from
    the law of their tally, whatever the number of people; the others draw every report. stderr, mae, max error and
    coverage are those of a share, or of the mean in its unit; coverage is about 95% intervals among those who answered,
    who are the same in every run. The column "of theory" is the measured variance divided by the formula's for these
    people. Of numbers, bell:c is a normal distribution around c, where 0 is the low end and 1 the high one; ends:a has
    the share a at the high end and the others at the low one; values:a/b/c are the given numbers in turn. The parts of
    a record are independent, and errors are parts of the range of each figure.
    """
    one_format(as_json, as_csv)
    if [bool(categories), bool(number), record is not None].count(True) != 1:
        raise SpecError("give one of --categories N,..., --number LOW..HIGH,... and --record FILE")
    if unit and not number:
        raise SpecError("--unit goes with --number")
    if engine is Engine.local and (master is not None or wheel is not None):
        raise SpecError("--master and --wheel are for a cluster: add --engine spark")
    cells = grid(
        _split(protocol),
        _split(epsilon),
        [_whole(text, "--people") for text in _split(people)],
        [_whole(text, "--categories") for text in _split(categories or [])],
        _split(distribution or []),
        runs,
        seed,
        [" ".join(filter(None, (text, unit))) for text in _split(number or [])],
        [] if record is None else [json.dumps(parse_json(*_json(record)), separators=(",", ":"), ensure_ascii=False)],
    )
    known = {row.cell for row in load_study(to, missing_is_empty=True)} if to is not None else set()
    reused = sum(cell in known for cell in cells)
    if reused:
        output.note("note", f"{reused} of {len(cells)} cells are taken from {str(to)!r}: the same settings and seed")
    with progress("simulating", "cells") as advance, _engine(engine, workers, master, wheel) as chosen:
        rows = run_study(cells, to, chosen, advance)
    if plot is not None:
        save_figure(plot, lambda: draw(rows))
    if as_json:
        output.document([asdict(row) for row in rows])
    elif as_csv:
        output.csv_table([list(asdict(rows[0])), *(list(asdict(row).values()) for row in rows)])
    else:
        _print(rows)
        output.files(saved=to, drawn=plot)


@contextmanager
def _engine(engine: Engine, workers: int | None, master: str | None, wheel: Path | None) -> Iterator[Any]:
    if engine is Engine.local:
        yield by_processes(workers)
        return
    with connect(master, wheel=wheel) as session:
        yield by_spark(session)


def _json(record: str) -> tuple[str, str]:
    """The text of a record, and its name in messages."""
    return (record, "--record") if is_json(record) else (read_text(record), named(record))


def _split(given: list[str]) -> list[str]:
    return [part.strip() for entry in given for part in entry.split(",") if part.strip()]


def _whole(text: str, option: str) -> int:
    try:
        value = float(text) if "e" in text.lower() else int(text.replace("_", ""))
    except ValueError:
        value = -1
    if value != int(value) or value < 1:
        raise SpecError(f"{option} takes positive whole numbers like 1000 or 1e6, not {text!r}")
    return int(value)


def _print(rows: list[Any]) -> None:
    head = ["protocol", "distribution", "epsilon", "answers", "people", "stderr", "of theory", "mae", "max error"]
    body = [
        [
            row.protocol,
            row.distribution,
            f"{row.epsilon:g}",
            row.interval or (f"{row.answers}" if row.answers else "record"),
            f"{row.people}",
            f"{math.sqrt(row.variance):.4g}",
            f"{relative_error(row):.3f}",
            f"{row.mae:.3g}",
            f"{row.max_error:.3g}",
            f"{100 * row.coverage:.1f}%",
            f"{row.seconds:.2f}",
        ]
        for row in rows
    ]
    output.table([*head, "coverage", "seconds"], body, left=2)
    for name in sorted({row.protocol for row in rows if formula_for(row.protocol)}):
        output.prose(f'The formula of {name} is for {formula_for(name)}: "of theory" need not be 1.')

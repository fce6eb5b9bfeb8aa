"""`deniable survey cells`: convert coordinates in a CSV file to cells of a grid."""

from __future__ import annotations

import csv
import io
import sys
from itertools import islice
from typing import Annotated, TextIO

import typer

from deniable._files import atomic_path
from deniable.cli import output
from deniable.cli.options import STDIN, argument, new_app, option, refuse_keyboard
from deniable.cli.output import examples
from deniable.domains import Box, Grid
from deniable.errors import DomainError, LabelError, SpecError, ValueRefused

app = new_app()

_ROWS = 1 << 16


@app.command(
    epilog=examples(
        "deniable survey cells homes.csv --box 52.34,13.09,52.68,13.76 --grid 24x20 -o cells.csv",
        "deniable survey cells homes.csv --box 52.34,13.09,52.68,13.76 --columns 24 -o cells.csv    square cells",
        "deniable survey cells homes.csv --box 0,0,800,600 --plane --grid 8x6 --latitude y --longitude x -o -",
        "deniable survey cells homes.csv --box 52.34,13.09,52.68,13.76 --grid 24x20 -o - "
        "| deniable privatize survey.json - -o reports.parquet",
    )
)
def cells(
    coordinates: Annotated[
        str, argument("COORDINATES", "CSV with a header, one row per person; '-' for standard input.")
    ],
    box: Annotated[str, option("S,W,N,E", "The bounding box of the grid: south, west, north, east.")],
    to: Annotated[str, option("FILE", "A CSV file, or '-' for standard output.", "-o", "--output")],
    grid: Annotated[str | None, option("COLUMNSxROWS", "The grid, as the question has it.")] = None,
    columns: Annotated[int | None, option("N", "So many columns, and as many rows as make square cells.")] = None,
    latitude: Annotated[str, option("NAME", "The column of the latitude, or of y.", default=True)] = "latitude",
    longitude: Annotated[str, option("NAME", "The column of the longitude, or of x.", default=True)] = "longitude",
    plane: Annotated[
        bool, typer.Option("--plane", help="The coordinates are no degrees, but y and x in one unit.")
    ] = False,
) -> None:
    """Turn coordinates into the cells of a grid.

    A question about places asks for cells. The two columns become north and east, counted from 1 in the south-west;
    other columns stay. Places outside of the box are in the nearest cell at its edge. The cells are answers: nothing is
    randomized here, that is what deniable privatize does next.
    """
    if (grid is None) == (columns is None):
        raise SpecError("give either --grid COLUMNSxROWS or --columns N")
    if coordinates == STDIN:
        refuse_keyboard("name a file of coordinates, or pipe one in")
    area = Box.parse(box, degrees=not plane)
    chosen = Grid.parse(grid) if grid is not None else area.grid(columns or 0, unit="m")
    source = io.TextIOWrapper(sys.stdin.buffer, "utf-8-sig") if coordinates == STDIN else _opened(coordinates)
    with source:
        if to == STDIN:
            _convert(source, sys.stdout, area, chosen, latitude, longitude)
            return
        with atomic_path(to) as path, path.open("w", encoding="utf-8", newline="") as target:
            rows = _convert(source, target, area, chosen, latitude, longitude)
    height, width = (side / count for side, count in zip(area.sides, chosen.shape, strict=True))
    unit = "" if plane else " m"
    size = f"{width:,.4g} x {height:,.4g}{unit}, from west to east and from south to north"
    output.facts(
        [("cells", f"{to}, {output.many(rows, 'row')}"), ("grid", str(chosen).partition(",")[0]), ("a cell", size)]
    )


def _opened(path: str) -> TextIO:
    return open(path, encoding="utf-8-sig", newline="")


def _convert(source: TextIO, target: TextIO, area: Box, grid: Grid, latitude: str, longitude: str) -> int:
    """Copy the rows with cells in place of coordinates; returns how many there are."""
    reader = csv.reader(source)
    header = next(reader, [])
    for name in (latitude, longitude):
        if header.count(name) != 1:
            raise LabelError(f"there is no column {name!r}, or two; there are {', '.join(header) or 'none'}")
    places = [header.index(latitude), header.index(longitude)]
    kept = [at for at in range(len(header)) if at not in places]
    if {"north", "east"} & {header[at] for at in kept}:
        raise LabelError("there is a column 'north' or 'east' already: rename it")
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(["north", "east", *(header[at] for at in kept)])
    count = 0
    while rows := [row for row in islice(reader, _ROWS) if row]:
        short = next((at for at, row in enumerate(rows) if len(row) != len(header)), None)
        if short is not None:
            raise DomainError(f"row {count + short + 1} has {len(rows[short])} columns, and the header {len(header)}")
        try:
            found = area.cells(grid, *([row[at] for row in rows] for at in places))
        except ValueRefused as wrong:
            at = count + (wrong.place or 0) + 1
            raise DomainError(f"row {at}: latitude and longitude are finite numbers") from None
        each = zip(found["north"].tolist(), found["east"].tolist(), rows, strict=True)
        writer.writerows([north, east, *(row[at] for at in kept)] for north, east, row in each)
        count += len(rows)
    return count

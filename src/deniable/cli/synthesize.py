"""`deniable synthesize`: records drawn from a model of randomized reports, and a report of what they keep."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from deniable._extras import require
from deniable._files import atomic_write
from deniable.cli import output
from deniable.cli.estimate import EpochRange, Few, FromService, Summed, Surveyed, sums
from deniable.cli.marginals import Question, joint
from deniable.cli.options import AnalystToken, Json, new_app
from deniable.cli.output import examples, shown
from deniable.errors import SpecError
from deniable.results import Floats, Joint
from deniable.results.joint import Model
from deniable.results.models import METHODS

app = new_app()

_FORMATS = (".parquet", ".csv", ".arrow")


@app.command(
    epilog=examples(
        "deniable synthesize survey.json tally.json --records 10000 -o people.parquet",
        "deniable synthesize survey.json reports/*.parquet --records 1000 -o people.csv --model shrink --seed 1",
    )
)
def synthesize(
    survey: Surveyed,
    inputs: Summed = None,
    records: Annotated[int, typer.Option(metavar="N", help="How many records.")] = 1000,
    save: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="A .parquet, .csv or .arrow file.", show_default=False),
    ] = None,
    model: Annotated[str, typer.Option(metavar="METHOD", help=f"The model: {', '.join(METHODS)}.")] = "latent",
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Draw the same records again.", show_default=False)
    ] = None,
    question: Question = None,
    service: FromService = None,
    token: AnalystToken = None,
    epochs: EpochRange = None,
    few: Few = False,
    as_json: Json = False,
) -> None:
    """Draw synthetic records from a model of the reports, and say what they keep and what they do not.

    The records are about no person: everything in them comes from the randomized reports. They keep the tables of
    columns that were asked together, up to the noise, and nothing that is only in more columns.
    """
    if save is None or save.suffix not in _FORMATS:
        raise SpecError(f"name the file with -o: it ends in {', '.join(_FORMATS)}")
    target, total, repeats = sums(survey, inputs, service, token, epochs)
    id, found = joint(target, total, question, repeats, few)
    if not found.n:
        raise SpecError("there are no reports yet: nothing is known to draw records from")
    fitted = found.model(model)
    drawn = fitted.sample(records, seed)
    _write(save, drawn)
    kept = keeps(found, fitted, drawn)
    if as_json:
        output.document({"question": id, "model": model, "records": records, "reports": found.n, "keeps": kept})
        return
    output.heading(f"{shown(id)}: {records:,} records from {fitted!r}")
    body = [
        [shown(row["columns"]), f"{row['distance']:.3f}", "-" if row["noise"] is None else f"{row['noise']:.3f}"]
        for row in kept
    ]
    output.table(["columns", "distance", "noise"], sorted(body, key=lambda row: -float(row[1])))
    output.prose(
        "distance is the total variation between the records and the unbiased table of two columns; noise is what the "
        "noise of that table alone makes of it on average. The records keep nothing that is only in more columns, and "
        "no answer that is rarer than the noise."
    )
    for one, other in fitted.assumed:
        output.prose(f"{shown(one)} and {shown(other)} were not asked together: what they share is assumed.")
    output.files(saved=save)


def keeps(found: Joint, model: Model, drawn: dict[str, list[str]]) -> list[dict[str, Any]]:
    """How far the records are from each table of two columns: the unbiased one where it was asked for, else the
    model's."""
    places = {name: {label: i for i, label in enumerate(labels)} for name, labels in found.axes.items()}
    coded = {name: np.array([places[name][label] for label in column]) for name, column in drawn.items()}
    rows = []
    for first, second in combinations(found.axes, 2):
        shape = len(found.axes[first]), len(found.axes[second])
        counted = np.bincount(coded[first] * shape[1] + coded[second], minlength=shape[0] * shape[1])
        own = counted.reshape(shape) / max(1, counted.sum())
        asked = (first, second) not in model.assumed
        table = found.crosstab(first, second) if asked else None
        other: Floats = model.marginal(first, second) if table is None else table.array
        # The mean of |x| of a normal x is sqrt(2 / pi) times its standard error.
        noise = None if table is None else float(np.sqrt(2 / np.pi) * table.stderr.sum() / 2)
        distance = float(np.abs(own - other).sum() / 2)
        rows.append({"columns": f"{first} & {second}", "distance": distance, "noise": noise, "asked": asked})
    return rows


def _write(path: Path, drawn: dict[str, list[str]]) -> None:
    pa = require("pyarrow", "files")
    table = pa.table(drawn)
    with atomic_write(path) as file:
        if path.suffix == ".parquet":
            require("pyarrow.parquet", "files").write_table(table, file)
        elif path.suffix == ".csv":
            require("pyarrow.csv", "files").write_csv(table, file)
        else:
            with pa.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table)

"""`deniable synthesize`: records drawn from a model of randomized reports, and a report on what they preserve."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from deniable._extras import require
from deniable._files import atomic_write
from deniable._plain import csv_cell
from deniable.cli import output
from deniable.cli.crosstabs import Question, joint
from deniable.cli.estimate import EpochRange, Few, FromService, Summed, Surveyed, sums
from deniable.cli.load_survey import questions
from deniable.cli.options import AnalystToken, Json, new_app, option
from deniable.cli.output import examples, shown
from deniable.domains import Integers, ListedDomain, Records
from deniable.errors import SpecError
from deniable.files.answers import without_quotes
from deniable.labels import text
from deniable.results import Floats, Joint
from deniable.results.joint import Model
from deniable.results.models import METHODS
from deniable.surveys import Survey
from deniable.surveys.tables import as_answers

app = new_app()

_FORMATS = (".parquet", ".csv", ".arrow")


@app.command(
    epilog=examples(
        "deniable synthesize survey.json tally.json --records 10000 -o people.parquet",
        "deniable synthesize survey.json reports/*.parquet --records 1000 -o people.csv --model shrink --seed 1",
        "deniable synthesize survey.json tally.json -o people.csv --compare true.csv --target income",
    )
)
def synthesize(
    survey: Surveyed,
    inputs: Summed = None,
    records: Annotated[int, option("N", "How many records.", default=True)] = 1000,
    save: Annotated[Path | None, option("FILE", "A .parquet, .csv or .arrow file.", "-o", "--output")] = None,
    model: Annotated[str, option("METHOD", f"The model: {', '.join(METHODS)}.", default=True)] = "latent",
    seed: Annotated[int | None, option("N", "Draw the same records again.")] = None,
    compare: Annotated[
        Path | None,
        option(
            "FILE", "True records (.csv or .parquet), for a test: how well a regression learns from the synthetic ones."
        ),
    ] = None,
    learnt: Annotated[str | None, option("COLUMN", "With --compare: what is to be predicted.", "--target")] = None,
    question: Question = None,
    service: FromService = None,
    token: AnalystToken = None,
    epochs: EpochRange = None,
    few: Few = False,
    as_json: Json = False,
) -> None:
    """Draw synthetic records from a model of the reports.

    The output says what they keep and what they do not. The records are about no person: everything in them comes from
    the randomized reports. They keep the tables of columns that were asked together, up to the noise, and nothing that
    is only in more columns. They look like the answers that were asked for; numbers are drawn within their cell, all of
    it equally likely.
    """
    if save is None or save.suffix not in _FORMATS:
        raise SpecError(f"name the file with -o: it ends in {', '.join(_FORMATS)}")
    if (compare is None) != (learnt is None):
        raise SpecError("--compare names a file of true records, and --target the column that is predicted: give both")
    target, total, repeats = sums(survey, inputs, service, token, epochs)
    id, found = joint(target, total, question, repeats, few)
    if not found.n:
        raise SpecError("there are no reports yet: nothing is known to draw records from")
    fitted = found.model(model)
    random = np.random.default_rng(seed)
    places = fitted.places(records, random)
    drawn = fitted.records(places, random)
    domain = _domain(target, id)
    judged = (
        learns(domain, drawn, _read(compare, domain), learnt) if compare is not None and learnt is not None else None
    )
    _write(save, drawn)
    kept = keeps(found, fitted, places)
    if as_json:
        head = {"question": id, "model": model, "records": records, "reports": found.n, "keeps": kept}
        output.document(head if judged is None else head | {"learns": judged})
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
    if judged is not None:
        named = [("synthetic records", "synthetic"), ("true records", "raw"), ("a guess", "guess")]
        output.write("\n")
        output.table(["learnt from", judged["figure"]], [[words, f"{judged[key]:.3f}"] for words, key in named])
        output.prose(
            f"how well {shown(str(learnt))} is predicted for half of the true records, by a {judged['method']} on "
            "the synthetic records, or on the other half of the true ones."
        )
    output.files(saved=save)


def _domain(target: Survey, id: str) -> Records:
    domain = questions(target)[id][1].domain
    assert isinstance(domain, Records)
    return domain


def _read(path: Path, domain: Records) -> dict[str, Any]:
    """True records as columns for the domain."""
    if path.suffix not in (".csv", ".parquet"):
        raise SpecError("--compare reads a .csv or a .parquet file, with one column per part of a record")
    try:
        if path.suffix == ".csv":
            table = require("pyarrow.csv", "files").read_csv(path)
        else:
            table = require("pyarrow.parquet", "files").read_table(path)
    except (OSError, require("pyarrow", "files").ArrowInvalid) as wrong:
        raise SpecError(f"{path} cannot be read as a table: {type(wrong).__name__}") from None
    missing = [name for name in domain.names if name not in table.column_names]
    if missing:
        raise SpecError(f"{path} has no column {missing[0]!r}")
    if path.suffix != ".csv":
        return {name: as_answers(domain[name], table.column(name), typed=True) for name in domain.names}
    return {name: as_answers(domain[name], without_quotes(table.column(name)), typed=False) for name in domain.names}


def learns(domain: Records, drawn: Mapping[str, Any], true: Mapping[str, Any], target: str) -> dict[str, Any]:
    """How well a regression on synthetic records predicts true ones, compared with one on true records and a guess.

    Logistic for a list of answers: AUC for two, accuracy for more. Linear for numbers: R^2. Each number is a feature,
    and so is each answer of a list.
    """
    linear = require("sklearn.linear_model", "learn")
    metrics = require("sklearn.metrics", "learn")
    own = domain[target]  # raises an error if there is no such column
    made, given = domain.encode(drawn), domain.encode(true)
    order = np.random.default_rng(0).permutation(len(given))
    train, test = given[order[: len(given) // 2]], given[order[len(given) // 2 :]]
    place = domain.names.index(target)
    listed = isinstance(own, ListedDomain) and not isinstance(own, Integers)

    def design(records: Any) -> Floats:
        columns = []
        for at, (_, column) in enumerate(domain.columns):
            values = np.asarray(records.columns[at])
            if at == place:
                continue
            if isinstance(column, ListedDomain) and not isinstance(column, Integers):
                columns.append(np.eye(column.size)[values][:, 1:])
            else:
                scale = float(column.high - column.low)  # type: ignore[attr-defined]
                columns.append(np.asarray(values, dtype=np.float64)[:, None] / scale)
        return np.hstack(columns)

    def score(records: Any) -> float:
        answers, truth = np.asarray(records.columns[place]), np.asarray(test.columns[place])
        if len(set(answers.tolist())) < 2:
            return guess
        fit = (linear.LogisticRegression(max_iter=1000) if listed else linear.LinearRegression()).fit(
            design(records), answers
        )
        if not listed:
            return float(metrics.r2_score(truth, fit.predict(design(test))))
        if own.size == 2:  # type: ignore[attr-defined]
            return float(metrics.roc_auc_score(truth, fit.decision_function(design(test))))
        return float(metrics.accuracy_score(truth, fit.predict(design(test))))

    figure, guess = "R^2", 0.0
    if listed:
        common = np.bincount(np.asarray(test.columns[place])).max() / max(1, len(test))
        figure, guess = ("AUC", 0.5) if own.size == 2 else ("accuracy", float(common))  # type: ignore[attr-defined]
    method = "logistic regression" if listed else "linear regression"
    scores = {"synthetic": score(made), "raw": score(train), "guess": guess}
    return {"target": target, "method": method, "figure": figure} | scores


def keeps(found: Joint, model: Model, coded: Mapping[str, NDArray[np.intp]]) -> list[dict[str, Any]]:
    """How far records, given as their cells, are from each table of two columns: the unbiased one if it was asked for,
    else the model's."""
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


def _write(path: Path, drawn: dict[str, list[Any]]) -> None:
    pa = require("pyarrow", "files")
    alike = {name: len({type(value) for value in column}) < 2 for name, column in drawn.items()}
    table = pa.table({name: own if alike[name] else list(map(text, own)) for name, own in drawn.items()})
    with atomic_write(path) as file:
        if path.suffix == ".parquet":
            require("pyarrow.parquet", "files").write_table(table, file)
        elif path.suffix == ".csv":
            quoted = [list(map(csv_cell, column.to_pylist())) for column in table.columns]
            require("pyarrow.csv", "files").write_csv(pa.table(quoted, schema=table.schema), file)
        else:
            with pa.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table)

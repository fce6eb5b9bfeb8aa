"""`deniable marginals`: tables of several columns of a record, which columns hang together, and what models say."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deniable.cli import output
from deniable.cli.estimate import EpochRange, Few, FromService, Summed, Surveyed, shown_enough, sums
from deniable.cli.load_survey import Target, questions
from deniable.cli.options import AnalystToken, Csv, Formulas, Json, Plot, new_app, one_format
from deniable.cli.output import examples, save_figure, shown
from deniable.errors import LabelError, SpecError
from deniable.protocols import Tally
from deniable.results import Crosstab, Joint, quantile
from deniable.results.models import METHODS
from deniable.surveys import SurveyTally
from deniable.surveys.results import ONCE, Repeats

app = new_app()

Question = Annotated[
    str | None,
    typer.Option(
        metavar="ID", help="The question whose columns were asked together.", show_default="the only one of this kind"
    ),
]
_OF_A_MODEL = (
    "Intervals of a model are those of the tables that were asked for: they hold whatever the model assumes. Where no "
    "table has all the columns, they reach from 0 to the share of the rarest part that was asked for."
)
_HEADS = ["columns", "reports", "p-value", "strength", "correlation", "stderr", "nats", "stderr"]


@app.command(
    epilog=examples(
        "deniable marginals survey.json tally.json                         which columns hang together",
        "deniable marginals survey.json tally.json --columns age,smoke     their table, unbiased",
        "deniable marginals survey.json tally.json --columns smoke --given age --model shrink",
        "deniable marginals survey.json tally.json --columns age,smoke,town --model latent --csv",
        "deniable marginals survey.json --from https://collect.example.org --plot columns.png",
    )
)
def marginals(
    survey: Surveyed,
    inputs: Summed = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,...", help="The table of these columns; may be repeated.", show_default="all associations"
        ),
    ] = None,
    given: Annotated[
        str | None,
        typer.Option(
            metavar="C,...", help="Shares among the people with each answer of these columns.", show_default=False
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            help=f"From a model of whole records ({', '.join(METHODS)}): less noise, and its assumptions.",
            show_default="none: unbiased",
        ),
    ] = None,
    question: Question = None,
    level: Annotated[float, typer.Option(metavar="P", help="Confidence of the intervals.")] = 0.95,
    service: FromService = None,
    token: AnalystToken = None,
    epochs: EpochRange = None,
    few: Few = False,
    plot: Plot = None,
    as_json: Json = False,
    as_csv: Csv = False,
    formulas: Formulas = False,
) -> None:
    """Show tables of several columns of a record, and which columns hang together.

    Without --columns every pair that was asked for together is listed: the p-value of independence, Cramér's V
    (strength, 0 to 1) and mutual information without what the noise adds, and the correlation of the answers' places.
    With --columns a table is unbiased, from every group that was asked for all of them; with --model it is that of a
    model, whose intervals hold the noise and not what the model assumes. --given needs a model.
    """
    one_format(as_json, as_csv)
    quantile(level)
    if given is not None and (model is None or not columns):
        raise SpecError("--given goes with --columns and --model: unbiased tables are not divided by each other")
    target, total, repeats = sums(survey, inputs, service, token, epochs)
    id, found = joint(target, total, question, repeats, few)
    if not columns:
        _associations(id, found, plot, as_json, as_csv, formulas)
        return
    tables = _tables(found, columns, given, model)
    if plot is not None:
        if len(tables) > 1:
            raise SpecError("--plot draws one table: give --columns once")
        save_figure(plot, lambda: next(iter(tables.values())).plot(level=level))
    if as_json:
        output.document({"question": id, "tables": [_described(name, one, level) for name, one in tables.items()]})
    elif as_csv:
        lines = [[name, *row.values()] for name, one in tables.items() for row in one.table(level).records()]
        output.csv_table([["columns", "label", "value", "stderr", "low", "high", "unit", "count"], *lines], formulas)
    else:
        for place, (name, one) in enumerate(tables.items()):
            output.write("\n" if place else "")
            output.heading(f"{shown(id)}: {shown(name)}")
            output.facts([("reports", str(one.n)), ("method", one.method)])
            rows = one.table(level)
            body = [
                [shown(label), *(f"{number:.4f}" for number in (rows.value[i], rows.stderr[i])), _span(rows, i)]
                for i, label in enumerate(rows.labels)
            ]
            output.table(["answers", "share", "stderr", f"{100 * level:g}% interval"], body)
            for sentence in one.said:
                output.prose(f"{sentence}.")
        if model is not None:
            output.prose(_OF_A_MODEL)
        output.files(drawn=plot)


def _span(rows: Any, i: int) -> str:
    return f"[{rows.low[i]:.4f}, {rows.high[i]:.4f}]"


def joint(
    target: Target, total: SurveyTally | Tally, question: str | None, repeats: Repeats, few: bool
) -> tuple[str, Joint]:
    """The question whose columns were asked together, and its result."""
    known = {id: protocol for id, (_, protocol) in questions(target).items() if protocol.combines}
    if question is not None and question not in known:
        there = ", ".join(known) or "none"
        raise LabelError(f"{question!r} is no question whose columns were asked together; there are {there}")
    if question is None and len(known) != 1:
        raise SpecError(
            f"name the question with --question: {', '.join(known)}"
            if known
            else 'no question here asks for columns together: "ask": "pairs" in a draft does'
        )
    id = question or next(iter(known))
    tally = total.tallies[id] if isinstance(total, SurveyTally) else total
    if not shown_enough(target, id, tally.n, few):
        raise SpecError("there are too few reports to estimate from")
    found: Any = known[id].estimate(tally)
    if repeats != ONCE:
        own = repeats.within(known[id])
        found = found.repeated(own.noise, own.people)
    return id, found


def _tables(found: Joint, columns: list[str], given: str | None, model: str | None) -> dict[str, Crosstab]:
    fitted = None if model is None else found.model(model)
    tables = {}
    for entry in columns:
        names = [name.strip() for name in entry.split(",")]
        behind = [name.strip() for name in given.split(",")] if given else []
        label = ", ".join(names) + (f" given {', '.join(behind)}" if behind else "")
        tables[label] = found.crosstab(*names) if fitted is None else fitted.table(*names, given=behind)
    return tables


def _described(name: str, table: Crosstab, level: float) -> dict[str, Any]:
    axes = [{"name": own, "labels": list(labels)} for own, labels in table.axes]
    return {"columns": name, "axes": axes} | table.to_dict(level) | {"assumed": list(table.said)}


def _associations(id: str, found: Joint, plot: Any, as_json: bool, as_csv: bool, formulas: bool) -> None:
    each = found.associations()
    rows = [
        [" & ".join(pair), found.parts[" & ".join(pair)].n, one.test.p_value, one.strength, *one[2:]]
        for pair, one in each.items()
    ]
    if plot is not None:
        save_figure(plot, found.plot_associations)
    names = ["columns", "n", "p_value", "strength", "correlation", "correlation_stderr"]
    names += ["information", "information_stderr"]
    if as_json:
        described = [dict(zip(names, row, strict=True)) for row in rows]
        output.document({"question": id, "n": found.n, "associations": described})
    elif as_csv:
        output.csv_table([names, *rows], formulas)
    else:
        output.heading(f"{shown(id)}: which columns hang together")
        output.facts([("reports", str(found.n))])
        body = [[shown(row[0]), f"{row[1]:,}", f"{row[2]:.2g}", *(f"{one:.3f}" for one in row[3:])] for row in rows]
        output.table(_HEADS, sorted(body, key=lambda row: -float(row[3])))
        output.files(drawn=plot)

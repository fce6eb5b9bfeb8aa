"""`deniable estimate --columns` and `--associations`: tables of several columns of a record, and models of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from deniable.cli import output
from deniable.cli.load_survey import questions, shown_enough
from deniable.cli.options import option
from deniable.cli.output import save_figure, shown
from deniable.errors import LabelError, SpecError
from deniable.results import Crosstab, Document, Joint, View
from deniable.results.document import plain
from deniable.results.render.csv import as_csv as csv_text
from deniable.results.render.text import cells
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.results import ONCE, Repeats

Question = Annotated[
    str | None, option("ID", "The question whose columns were asked together.", default="the only one of this kind")
]
_OF_A_MODEL = (
    "Intervals of a model are those of the tables that were asked for: they hold whatever the model assumes. Where no "
    "table has all the columns, they reach from 0 to the share of the rarest part that was asked for."
)
_HEADS = ["columns", "reports", "p-value", "strength", "correlation", "stderr", "nats", "stderr"]


def show(
    target: Survey,
    total: SurveyTally,
    repeats: Repeats,
    columns: list[str],
    given: str | None,
    model: str | None,
    question: str | None,
    level: float,
    few: bool,
    plot: Path | None,
    as_json: bool,
    as_csv: bool,
    formulas: bool,
) -> None:
    """Print the tables of these columns; without columns, every pair that was asked for together.

    A table is unbiased, from every group that was asked for all its columns; with a model it is that of the model.
    """
    id, found = joint(target, total, question, repeats, few)
    if not columns:
        _associations(id, found, plot, as_json, as_csv, formulas)
        return
    tables = _tables(found, columns, given, model)
    if plot is not None:
        if len(tables) > 1:
            raise SpecError("--plot draws one table: give --columns once")
        save_figure(plot, lambda: next(iter(tables.values())).plot(level=level))
    documents = {name: _documented(id, name, one, level) for name, one in tables.items()}
    if as_json:
        described = [{"columns": name} | plain(one) for name, one in documents.items()]
        output.document({"question": id, "tables": described})
    elif as_csv:
        output.data(csv_text(list(documents.values()), formulas))
    else:
        for place, (name, one) in enumerate(tables.items()):
            output.write("\n" if place else "")
            output.heading(f"{shown(id)}: {shown(name)}")
            output.facts([("reports", str(one.n)), ("method", one.method)])
            output.table(*cells(documents[name], documents[name].sections[0]))
            for sentence in one.said:
                output.prose(f"{sentence}.")
        if model is not None:
            output.prose(_OF_A_MODEL)
        output.files(drawn=plot)


def joint(target: Survey, total: SurveyTally, question: str | None, repeats: Repeats, few: bool) -> tuple[str, Joint]:
    """The question whose columns were reported together, and its result."""
    known = {id: protocol for id, (_, protocol) in questions(target).items() if protocol.law().several_parts}
    if question is not None and question not in known:
        there = ", ".join(known) or "none"
        raise LabelError(f"{question!r} is no question whose columns were asked together; there are {there}")
    if question is None and len(known) != 1:
        raise SpecError(
            f"name the question with --question: {', '.join(known)}"
            if known
            else 'no question here asks for columns together: "per_device": "pairs" in a draft does'
        )
    id = question or next(iter(known))
    tally = total[id]
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


def _documented(id: str, name: str, table: Crosstab, level: float) -> Document:
    document = table.document(View(level))
    document.id, document.part = id, name
    return document


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
        output.heading(f"{shown(id)}: which columns are associated")
        output.facts([("reports", str(found.n))])
        body = [[shown(row[0]), f"{row[1]:,}", f"{row[2]:.2g}", *(f"{one:.3f}" for one in row[3:])] for row in rows]
        output.table(_HEADS, sorted(body, key=lambda row: -float(row[3])))
        output.files(drawn=plot)

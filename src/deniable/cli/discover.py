"""`deniable discover`: which answers are common, where nobody can list them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import output
from deniable.cli.estimate import (
    EpochRange,
    Few,
    FromService,
    Robust,
    Summed,
    Surveyed,
    described,
    draw,
    print_finding,
    read_candidates,
    shown_enough,
    sums,
    write_parquet,
)
from deniable.cli.load_survey import questions
from deniable.cli.options import AnalystToken, Csv, Formulas, Json, Plot, new_app, one_format
from deniable.cli.output import examples, save_figure
from deniable.errors import LabelError, MismatchError, SpecError
from deniable.protocols import Found
from deniable.results import NOTHING, quantile
from deniable.surveys import SurveyTally
from deniable.surveys.results import COLUMNS, Finding
from deniable.surveys.results import find as find_result

app = new_app()


@app.command(
    epilog=examples(
        "deniable discover survey.json tally.json",
        "deniable discover survey.json reports/*.parquet --question word --csv",
        "deniable discover survey.json tally.json --significant 0.01      only what is surely not made up",
        "deniable discover survey.json tally.json --candidates words.txt  a list of words helps to find others",
        "deniable discover survey.json tally.json --robust 50             if up to 50 reports may be forged",
        "deniable discover words --from https://collect.example.org --epochs 3..5",
    )
)
def discover(
    survey: Surveyed,
    inputs: Summed = None,
    service: FromService = None,
    token: AnalystToken = None,
    epochs: EpochRange = None,
    question: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Only this question; may be repeated.", show_default="all that discover"),
    ] = None,
    significant: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Only values with small p-values: with probability P at most one of them was given by nobody. "
            "Intervals allow for the choice.",
            show_default=False,
        ),
    ] = None,
    candidates: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ID=]FILE",
            help="Texts that are likely, one per line: they are found at smaller shares. With 200 or more, so are "
            "texts that are spelled like them. May be repeated.",
            show_default=False,
        ),
    ] = None,
    level: Annotated[float, typer.Option(metavar="P", help="Confidence of the intervals.")] = 0.95,
    respondents: Annotated[
        bool,
        typer.Option(
            "--respondents",
            help="Errors and intervals among those who answered, not for everybody whom they were drawn from.",
        ),
    ] = False,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Intervals that hold for all values of a question at once.")
    ] = False,
    robust: Robust = 0,
    few: Few = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show and draw every value, not only the most common.")
    ] = False,
    plot: Plot = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the values as Parquet, too.", show_default=False)
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
    formulas: Formulas = False,
) -> None:
    """Find the common ones among answers that nobody listed, with shares, intervals and p-values.

    What is common is decided by some of the respondents, and how common it is by others: shares and intervals are not
    biased by the search. If nothing is common, the list is empty in 95 of 100 collections at least. How common an
    answer has to be is said beside the list; deniable plan --discover says it beforehand.
    """
    one_format(as_json, as_csv)
    quantile(level)
    target, total, repeats = sums(survey, inputs, service, token, epochs)
    known = questions(target)
    asked = [id for id, (_, protocol) in known.items() if protocol.reads == Found.kind]
    for id in question or []:
        if id not in known:
            raise LabelError(f"there is no question {id!r}; there are {', '.join(known)}")
        if id not in asked:
            raise SpecError(f"the answers to {id!r} are {known[id][1].domain}: deniable estimate has their shares")
    if not asked:
        raise SpecError('no question here discovers answers (in a draft, {"discover": {"bytes": 16}})')
    lists = read_candidates({id: known[id] for id in asked}, candidates or [])
    tallies = dict(total.tallies) if isinstance(total, SurveyTally) else {"report": total}
    found: dict[str, Finding] = {}
    for id in [id for id in asked if not question or id in question]:
        tally = tallies[id]
        if tally.n and not shown_enough(target, id, tally.n, few):
            continue
        one = find_result(known[id][1], tally, level, None, lists.get(id), simultaneous, not respondents, repeats)
        result = one.result
        if significant is not None and isinstance(result, Found):
            result = result.significant(significant)
        if result is not one.result or robust:
            result = result.robust(robust)
            one = replace(one, result=result, table=result.table(level, simultaneous, not respondents))
        if not tally.n:
            output.note("note", f"{id}: {NOTHING}")
        elif (misfit := result.misfit) is not None and misfit.message:
            output.note("warning", f"{id}: {misfit.message}")
        found[id] = one
    if not found:
        raise MismatchError("there are too few reports to discover from")
    if plot is not None:
        save_figure(plot, lambda: draw(found, level, simultaneous, not respondents, everything))
    if parquet is not None:
        write_parquet(parquet, found)
    if as_json:
        output.document(described(target, found))
    elif as_csv:
        output.csv_table([COLUMNS, *(row for id, one in found.items() for row in one.rows(id))], formulas)
    else:
        for i, (id, one) in enumerate(found.items()):
            print_finding(id, known[id][0], one, everything, first=i == 0)
        output.files(saved=parquet, drawn=plot)

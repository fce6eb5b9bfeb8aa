"""`deniable channel`: look at a channel, prove its level, push a prior through it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable import exact
from deniable.channels.levels import level_text
from deniable.cli import forms, output, reports
from deniable.cli.describe import cell_of, description, exact_rows, is_short, level, matrix, probability, summary, words
from deniable.cli.files import only_one_stdin
from deniable.cli.inputs import Names, as_floats, read_adjacency, read_channel, read_vector
from deniable.cli.options import All, Csv, Json, Plot, Source, examples, one_format
from deniable.cli.output import shown
from deniable.labels import label_spec, text

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)

_Adjacency = Annotated[
    str | None,
    typer.Option(
        metavar="RELATION",
        help="Who must be hard to tell apart: all, line, line:2, hamming, own (what the channel was made for), "
        "or a CSV file of edges, two labels a line.",
        show_default=False,
    ),
]


@app.callback(
    epilog=examples("deniable channel list", "deniable channel show coin", "deniable channel infer coin yes=620,no=380")
)
def channel(ctx: typer.Context) -> None:
    """Mechanisms as matrices: show, check, sample, infer."""
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


@app.command(
    epilog=examples(
        "deniable channel show coin",
        "deniable channel show truncated-geometric:n=10,epsilon=1 --plot geometric.png",
        "deniable channel show matrix.csv --exact --save channel.json",
        "deniable channel show randomized-response:labels=never,once,often,epsilon=1 --json",
    )
)
def show(
    source: Source,
    fractions: Annotated[bool, typer.Option("--exact", help="Write probabilities and the ratio as fractions.")] = False,
    everything: All = False,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the channel's spec, which loads anywhere.", show_default=False),
    ] = None,
    plot: Plot = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Show a channel: its matrix, its level, and the pair of inputs that it protects least."""
    one_format(as_json, as_csv)
    given = read_channel(source)
    if save is not None:
        save.write_text(json.dumps(given.spec(), ensure_ascii=False) + "\n", encoding="utf-8")
    if plot is not None:
        from deniable.cli.pictures import save_figure

        save_figure(plot, given.plot)
    if as_json:
        output.document(description(source, given))
    elif as_csv:
        entries = exact_rows(given) if fractions else given.rows.tolist()
        body = [[text(label), *row] for label, row in zip(given.inputs, entries, strict=True)]
        output.csv_table([["", *map(text, given.outputs)], *body])
    else:
        output.facts(summary(source, given, fractions))
        output.write("\n")
        rows, columns = [shown(x) for x in given.inputs], [shown(y) for y in given.outputs]
        matrix("input", rows, columns, cell_of(given, fractions), everything)
        for kind, path in (("saved", save), ("drawn", plot)):
            if path is not None:
                output.write(f"\n{kind}: {path}\n")


@app.command(
    epilog=examples(
        "deniable channel epsilon coin",
        "deniable channel epsilon matrix.csv --at-most 1          exit code 1 if the level is higher",
        "deniable channel epsilon truncated-geometric:n=10,epsilon=1 --adjacency line --at-most 1",
        "deniable channel epsilon matrix.csv --delta 0.5 --json",
    )
)
def epsilon(
    source: Source,
    adjacency: _Adjacency = None,
    at_most: Annotated[
        str | None,
        typer.Option(
            metavar="EPSILON", help="Check that the level is not higher: exactly, with integers.", show_default=False
        ),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(
            metavar="EPSILON", help="The smallest delta at this epsilon, over all pairs of inputs.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute the privacy level of a channel from its law, and check a claim about it.

    The exit code is 1 if the level is above --at-most.
    """
    only_one_stdin(source, adjacency)
    given = read_channel(source)
    relation = None if adjacency is None else read_adjacency(adjacency, given)
    overall = given.witness()
    under = overall if relation is None else given.witness(relation)
    holds = None if at_most is None else given.satisfies(at_most, "all" if relation is None else relation)
    found = None if delta is None else given.delta(delta)
    if as_json:
        content = {"channel": source, **level(overall)}
        if relation is not None:
            content["under"] = {"adjacency": relation.spec(), **level(under)}
        if at_most is not None:
            content["at_most"] = {"epsilon": str(exact.as_epsilon(at_most)), "holds": holds}
        if delta is not None:
            content["delta"] = {"epsilon": str(exact.fraction(delta)), "delta": found}
        output.document(content)
    else:
        pairs = [("all pairs", f"epsilon {level_text(overall.ratio)}"), ("", words(overall))]
        if relation is not None:
            pairs += [(str(relation), f"epsilon {level_text(under.ratio, under.distance)}"), ("", words(under))]
        if at_most is not None:
            pairs.append((f"at most {at_most}", "holds" if holds else f"does not hold: {words(under)}"))
        if delta is not None:
            pairs.append((f"delta at {delta}", f"{found:.10g}"))
        output.facts(pairs)
        if holds is False and relation is None and given.adjacency.kind != "all":
            output.note("note", f"this channel was made for {given.adjacency}: --adjacency own checks that")
    if holds is False:
        raise typer.Exit(1)


@app.command(
    epilog=examples(
        "deniable channel push coin 0.2,0.8",
        "deniable channel push coin yes=1/5,no=4/5 --posterior",
        "deniable channel push matrix.csv prior.csv --json",
        "deniable channel push truncated-geometric:n=10,epsilon=1 uniform",
    )
)
def push(
    source: Source,
    prior: Annotated[
        str,
        typer.Argument(
            metavar="PRIOR",
            help="How likely each input is: 0.2,0.8 or yes=0.2,no=0.8, a file (CSV or JSON), '-', or the word uniform.",
            show_default=False,
        ),
    ],
    posterior: Annotated[
        bool, typer.Option("--posterior", help="Show what an observer of each output believes about the input.")
    ] = False,
    everything: All = False,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Push a prior through a channel: how likely each output is, and what it says about the input."""
    one_format(as_json, as_csv)
    only_one_stdin(source, prior)
    given = read_channel(source)
    size = len(given.inputs)
    belief = (
        [Fraction(1, size)] * size
        if prior == "uniform"
        else read_vector(prior, Names.of(given.inputs, "input"), "prior")
    )
    floats = as_floats(belief, "prior")
    marginal, posteriors = given.push(floats), given.posterior(floats)
    rows, columns = [text(y) for y in given.outputs], [text(x) for x in given.inputs]
    if as_json:
        law = [entry / sum(belief) for entry in belief]
        content: dict[str, Any] = {
            "outputs": [label_spec(label) for label in given.outputs],
            "probabilities": marginal.tolist(),
            "exact": [
                str(sum(p * int(c) for p, c in zip(law, column, strict=True)) / given.denominator)
                for column in given.numerators.T
            ]
            if is_short(given)
            else None,
        }
        if posterior:
            content["inputs"] = [label_spec(label) for label in given.inputs]
            content["posterior"] = [[output.finite(p) for p in row] for row in posteriors]
        output.document(content)
    elif as_csv:
        head = ["output", "probability", *(columns if posterior else [])]
        extra = posteriors.tolist() if posterior else [[]] * len(rows)
        output.csv_table([head, *([y, p, *row] for y, p, row in zip(rows, marginal.tolist(), extra, strict=True))])
    else:
        rows, columns = [shown(y) for y in given.outputs], [shown(x) for x in given.inputs]
        output.table(
            ["output", "probability"], [[y, probability(p)] for y, p in zip(rows, marginal.tolist(), strict=True)]
        )
        if posterior:
            output.write("\nwhat an observer of the output believes about the input:\n")
            matrix("output", rows, columns, lambda y, x: _belief(float(posteriors[y, x])), everything)


def _belief(value: float) -> str:
    return "-" if math.isnan(value) else probability(value)


@app.command("list", epilog=examples("deniable channel list", "deniable channel show warner:epsilon=1"))
def list_forms(as_json: Json = False) -> None:
    """List the closed forms: channels that can be named instead of given in a file."""
    if as_json:
        listed = [asdict(form) for form in forms.FORMS.values()]
        output.document([{key: value for key, value in form.items() if key != "build"} for form in listed])
        return
    for form in forms.FORMS.values():
        output.styled(f"{form.name}: {form.summary}", "bold")
        width = max(len(parameter.name) for parameter in form.parameters)
        for parameter in form.parameters:
            output.write(f"    {parameter.name:<{width}}  {parameter.meaning} ({parameter.need})\n")
        output.write(f"    deniable channel show {form.example}\n\n")
    output.write("A value that is a list has commas: p0=0.5,0.3,0.2. Numbers may be fractions: epsilon=1/2.\n")


app.command(epilog=reports.SAMPLE_EXAMPLES)(reports.sample)
app.command(epilog=reports.INFER_EXAMPLES)(reports.infer)

"""`deniable channel`: mechanisms as matrices. Show one, check its epsilon, sample reports from it, infer answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from deniable import exact
from deniable.channels import Channel, Witness
from deniable.channels.adjacency import Adjacency
from deniable.channels.inference import Inference, ibu, invert, mle_randomized_response
from deniable.cli import output
from deniable.cli.options import (
    STDIN,
    All,
    Csv,
    Formulas,
    Json,
    Plot,
    Seed,
    Source,
    argument,
    bits_from,
    new_app,
    one_format,
    only_one_stdin,
    option,
    refuse_keyboard,
)
from deniable.cli.output import examples, ratio_text, ratio_words, save_figure, shown
from deniable.cli.read_channels import FORMS, Names, as_floats, read_adjacency, read_channel, read_lines, read_vector
from deniable.errors import ChannelError, NumberError
from deniable.exact import level_text
from deniable.labels import cell, label_spec, text
from deniable.results import Rows, finite, number
from deniable.results.rows import decimals

app = new_app()

# A larger matrix is shown by its corner, unless all of it is requested.
_MOST_ROWS = 24
_MOST_COLUMNS = 12

# An exact law that would fill more than some 20 megabytes of JSON is omitted.
_MOST_BITS = 1 << 26

# IBU on fewer cells than this finishes before a progress bar could be read.
_LONG = 200_000
_MOST_REPORTS = 10_000_000

_Adjacency = Annotated[
    str | None,
    option(
        "RELATION",
        "Who must be hard to tell apart: all, line, line:2, hamming, own (what the channel was made for), "
        "or a CSV file of edges, two labels per line.",
    ),
]


class InferenceMethod(StrEnum):
    auto = "auto"
    invert = "invert"
    clip = "clip"
    simplex = "simplex"
    ibu = "ibu"
    mle = "mle"


@app.callback(
    epilog=examples("deniable channel list", "deniable channel show coin", "deniable channel infer coin yes=620,no=380")
)
def channel(ctx: typer.Context) -> None:
    """Show, check, sample and invert mechanisms as matrices."""
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
    save: Annotated[Path | None, option("FILE", "Write the channel's spec, which loads anywhere.")] = None,
    plot: Plot = None,
    as_json: Json = False,
    as_csv: Csv = False,
    formulas: Formulas = False,
) -> None:
    """Show the matrix of a channel and its epsilon.

    Also the pair of inputs that it protects least.
    """
    one_format(as_json, as_csv)
    given = read_channel(source)
    if save is not None:
        output.save_json(save, given.spec())
    if plot is not None:
        save_figure(plot, given.plot)
    if as_json:
        output.document(_channel_document(source, given))
    elif as_csv:
        entries = _exact_rows(given) if fractions else given.rows.tolist()
        body = [[cell(label), *row] for label, row in zip(given.inputs, entries, strict=True)]
        output.csv_table([["", *map(cell, given.outputs)], *body], formulas)
    else:
        output.facts(_summary(source, given, fractions))
        output.write("\n")
        rows, columns = [shown(x) for x in given.inputs], [shown(y) for y in given.outputs]
        _print_matrix("input", rows, columns, _cell_of(given, fractions), everything)
        output.files(saved=save, drawn=plot)


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
        str | None, option("EPSILON", "Check that the level is not higher: exactly, with integers.")
    ] = None,
    delta: Annotated[
        str | None, option("EPSILON", "The smallest delta at this epsilon, over all pairs of inputs.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute the epsilon of a channel, and check a claim.

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
        content = {"channel": source, **_level_document(overall)}
        if relation is not None:
            content["under"] = {"adjacency": relation.spec(), **_level_document(under)}
        if at_most is not None:
            content["at_most"] = {"epsilon": str(exact.as_epsilon(at_most)), "holds": holds}
        if delta is not None:
            content["delta"] = {"epsilon": str(exact.fraction(delta)), "delta": found}
        output.document(content)
    else:
        pairs = [("all pairs", f"epsilon {level_text(overall.ratio)}"), ("", _witness_words(overall))]
        if relation is not None:
            pairs += [
                (str(relation), f"epsilon {level_text(under.ratio, under.distance)}"),
                ("", _witness_words(under)),
            ]
        if at_most is not None:
            pairs.append((f"at most {at_most}", "holds" if holds else f"does not hold: {_witness_words(under)}"))
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
        argument(
            "PRIOR",
            "How likely each input is: 0.2,0.8 or yes=0.2,no=0.8, a file (CSV or JSON), '-', or the word uniform.",
        ),
    ],
    posterior: Annotated[
        bool, typer.Option("--posterior", help="Show what an observer of each output believes about the input.")
    ] = False,
    everything: All = False,
    as_json: Json = False,
    as_csv: Csv = False,
    formulas: Formulas = False,
) -> None:
    """Push a prior through a channel.

    Shows how likely each output is, and what it says about the input.
    """
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
    rows, columns = [cell(y) for y in given.outputs], [cell(x) for x in given.inputs]
    if as_json:
        law = [entry / sum(belief) for entry in belief]
        content: dict[str, Any] = {
            "outputs": [label_spec(label) for label in given.outputs],
            "probabilities": marginal.tolist(),
            "exact": [
                str(sum(p * int(c) for p, c in zip(law, column, strict=True)) / given.denominator)
                for column in given.numerators.T
            ]
            if _is_short(given)
            else None,
        }
        if posterior:
            content["inputs"] = [label_spec(label) for label in given.inputs]
            content["posterior"] = [[finite(p) for p in row] for row in posteriors]
        output.document(content)
    elif as_csv:
        head = ["output", "probability", *(columns if posterior else [])]
        extra = posteriors.tolist() if posterior else [[]] * len(rows)
        output.csv_table(
            [head, *([y, p, *row] for y, p, row in zip(rows, marginal.tolist(), extra, strict=True))], formulas
        )
    else:
        rows, columns = [shown(y) for y in given.outputs], [shown(x) for x in given.inputs]
        output.table(
            ["output", "probability"], [[y, _probability(p)] for y, p in zip(rows, marginal.tolist(), strict=True)]
        )
        if posterior:
            output.write("\nwhat an observer of the output believes about the input:\n")
            _print_matrix("output", rows, columns, lambda y, x: _belief(float(posteriors[y, x])), everything)


@app.command("list", epilog=examples("deniable channel list", "deniable channel show warner:epsilon=1"))
def list_forms(as_json: Json = False) -> None:
    """List the channels that have a name.

    These closed forms can be named instead of given in a file.
    """
    if as_json:
        listed = [asdict(form) for form in FORMS.values()]
        output.document([{key: value for key, value in form.items() if key != "build"} for form in listed])
        return
    for form in FORMS.values():
        output.styled(f"{form.name}: {form.summary}", "bold")
        width = max(len(parameter.name) for parameter in form.parameters)
        for parameter in form.parameters:
            output.write(f"    {parameter.name:<{width}}  {parameter.meaning} ({parameter.need})\n")
        output.write(f"    deniable channel show {form.example}\n\n")
    output.write("A value that is a list has commas: p0=0.5,0.3,0.2. Numbers may be fractions: epsilon=1/2.\n")


@app.command(
    epilog=examples(
        "deniable channel sample coin yes no no",
        "deniable channel sample randomized-response:k=4,epsilon=1 < answers.txt > reports.txt",
        "deniable channel sample coin yes --times 1000 --seed 1 | sort | uniq -c",
    )
)
def sample(
    source: Source,
    labels: Annotated[
        list[str] | None, argument("LABELS", "True answers; from standard input, one per line, if none are given.")
    ] = None,
    times: Annotated[int, option("N", "Randomize each answer N times.", default=True)] = 1,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Randomize answers: one noisy label per line.

    Labels are drawn from the exact law with cryptographic bits.
    """
    if not labels:
        only_one_stdin(source, STDIN)
        refuse_keyboard("give labels as arguments, or pipe them in, one per line")
    given = read_channel(source)
    names = Names.of(given.inputs, "input")
    places = [names.place(label, show=False) for label in labels] if labels else read_lines(STDIN, names, show=False)
    if times < 1 or times * len(places) > _MOST_REPORTS:
        raise NumberError(f"--times must be at least 1 and make at most {_MOST_REPORTS} reports at once")
    drawn = given.sample_indices(np.repeat(np.array(places, dtype=np.int64), times), bits_from(seed))
    if as_json:
        output.document({"outputs": [label_spec(given.outputs[y]) for y in drawn]})
    else:
        written = [text(label) for label in given.outputs]
        output.write("".join(written[y] + "\n" for y in drawn))


@app.command(
    epilog=examples(
        "deniable channel infer coin 620,380",
        "deniable channel infer coin yes=620,no=380 --method ibu --level 0.99",
        "deniable channel infer channel.json counts.csv --plot estimate.png",
        "deniable channel infer coin --observations < reports.txt",
        "deniable channel infer subset-selection:k=4,epsilon=1 counts.json --json",
    )
)
def infer(
    source: Source,
    counts: Annotated[
        str,
        argument(
            "COUNTS",
            "How often each output came: 620,380 or yes=620,no=380, a file (CSV or JSON), or '-'.",
            default="standard input",
        ),
    ] = STDIN,
    observations: Annotated[
        bool, typer.Option("--observations", help="COUNTS holds observed labels, one per line, still to be counted.")
    ] = False,
    method: Annotated[
        InferenceMethod,
        option(
            "METHOD",
            "invert: unbiased, may be negative. clip, simplex: inverted, then made a distribution. "
            "ibu: most likely distribution, any channel. mle: the same in closed form, for randomized response. "
            "auto: invert where the channel has an inverse, else ibu.",
            default=True,
        ),
    ] = InferenceMethod.auto,
    level: Annotated[float, option("P", "Confidence level of the intervals.", default=True)] = 0.95,
    plot: Plot = None,
    as_json: Json = False,
    as_csv: Csv = False,
    formulas: Formulas = False,
) -> None:
    """Estimate how common each true answer is, from counts.

    The counts say how often each output came. Estimates have error bars.
    """
    one_format(as_json, as_csv)
    only_one_stdin(source, counts)
    if counts == STDIN:
        refuse_keyboard("give the counts as an argument, in a file, or pipe them in")
    given = read_channel(source)
    names = Names.of(given.outputs, "output")
    if observations:
        seen = Counter(read_lines(counts, names))
        observed = [Fraction(seen[y]) for y in range(len(given.outputs))]
    else:
        observed = read_vector(counts, names, "counts")
    result = _estimate(
        given, as_floats(observed, "counts"), method, bar=output.on_terminal() and not (as_json or as_csv)
    )
    if plot is not None:
        save_figure(plot, lambda: result.plot(level=level))
    if as_json:
        output.document(result.to_dict(level))
    elif as_csv:
        output.data(result.to_csv(level, formulas=formulas))
    else:
        _print_inference(result, result.table(level))
        output.files(drawn=plot)
    for note in result.notes:
        output.note("warning", note)


# -- a channel in words, in a table and in JSON --------------------------------------------------------


def _cell_of(given: Channel, fractions: bool) -> Callable[[int, int], str]:
    """A function that writes the entry at a row and a column."""
    if fractions:
        return lambda x, y: str(given.probability(given.inputs[x], given.outputs[y]))
    return lambda x, y: _probability(float(given.rows[x, y]))


def _exact_rows(given: Channel) -> list[list[str]]:
    """The whole law in fractions."""
    rows, columns = given.shape
    cell = _cell_of(given, fractions=True)
    return [[cell(x, y) for y in range(columns)] for x in range(rows)]


def _probability(value: float) -> str:
    """Four decimals, but never 0.0000 for something possible."""
    return f"{value:.4f}" if value == 0 or value >= 0.00005 else f"{value:.0e}"


def _summary(source: str, given: Channel, fractions: bool) -> list[tuple[str, str]]:
    """The facts above the matrix, as names and values."""
    worst = given.witness()
    ratio = ratio_text(worst.ratio) if fractions else ratio_words(worst.ratio)
    return [
        ("channel", shown(source)),
        ("size", f"{given.shape[0]} inputs, {given.shape[1]} outputs"),
        ("epsilon", f"{level_text(worst.ratio)} over all pairs of inputs"),
        ("ratio", ratio if isinstance(worst.ratio, float) or ratio == str(worst.ratio) else f"{ratio} (rounded)"),
        ("worst pair", _witness_words(worst)),
        ("adjacency", _relation(given, given.adjacency)),
        ("law", f"integers over {_denominator(given.denominator)}"),
        ("fingerprint", _fingerprint_of(given) or "none: the exact law is too large to write down"),
    ]


def _fingerprint_of(given: Channel) -> str | None:
    """The fingerprint, if the exact law fits in memory."""
    try:
        return given.fingerprint
    except ChannelError:
        return None


def _is_short(given: Channel) -> bool:
    """Whether the exact law is short enough for a document."""
    return given.rows.size * given.denominator.bit_length() <= _MOST_BITS


def _denominator(value: int) -> str:
    return str(value) if value < 10**6 else f"a denominator of {value.bit_length()} bits"


def _relation(given: Channel, relation: Adjacency) -> str:
    """The adjacency of a channel, with its epsilon."""
    if relation.kind == "all":
        return str(relation)
    worst = given.witness(relation)
    return f"{relation}: epsilon {level_text(worst.ratio, worst.distance)}"


def _witness_words(worst: Witness) -> str:
    """The pair of inputs with the largest ratio, in words."""
    first, second = map(shown, worst.inputs)
    if worst.ratio == 1:
        return "none: no output says anything about the input"
    if isinstance(worst.ratio, float):
        return f"output {shown(worst.output)} can come from input {first} and never from {second}"
    times = f"{ratio_words(worst.ratio)} times as likely from input {first} as from {second}"
    apart = "" if worst.distance == 1 else f", which are {worst.distance} apart"
    return f"output {shown(worst.output)} is {times}{apart}"


def _print_matrix(
    corner: str, rows: list[str], columns: list[str], cell: Callable[[int, int], str], everything: bool
) -> None:
    """The part of a matrix that fits, and a line that says what is missing."""
    height, width = len(rows), len(columns)
    if not everything:
        height, width = min(height, _MOST_ROWS), min(width, _MOST_COLUMNS)
    cells = [[cell(i, j) for j in range(width)] for i in range(height)]
    if not everything:
        widths = [max(map(len, column)) for column in zip(columns[:width], *cells, strict=True)]
        width = output.fitting_columns(max(map(len, rows[:height])), widths)
    output.table([corner, *columns[:width]], [[rows[i], *cells[i][:width]] for i in range(height)])
    if (height, width) != (len(rows), len(columns)):
        output.write(f"... of {len(rows)} rows and {len(columns)} columns: --all shows everything\n")


def _channel_document(source: str, given: Channel) -> dict[str, Any]:
    """A channel as JSON."""
    return {
        "channel": source,
        "inputs": [label_spec(label) for label in given.inputs],
        "outputs": [label_spec(label) for label in given.outputs],
        **_level_document(given.witness()),
        "adjacency": given.adjacency.spec(),
        "epsilon_under_adjacency": finite(given.epsilon_under(given.adjacency)),
        "fingerprint": _fingerprint_of(given),
        "rows": given.rows.tolist(),
        "exact": _exact_rows(given) if _is_short(given) else None,
    }


def _level_document(worst: Witness) -> dict[str, Any]:
    """A witness as JSON: epsilon, ratio, and where the ratio is largest."""
    return {
        "epsilon": finite(worst.epsilon),
        "ratio": ratio_text(worst.ratio),
        "witness": {
            "inputs": [label_spec(label) for label in worst.inputs],
            "output": label_spec(worst.output),
            "distance": str(worst.distance),
        },
    }


def _belief(value: float) -> str:
    return "-" if math.isnan(value) else _probability(value)


# -- an inference, made and shown ----------------------------------------------------------------------


def _estimate(given: Channel, observed: list[float], method: InferenceMethod, bar: bool) -> Inference:
    """Infer by a method. "auto" inverts if the channel is square and regular, and uses IBU otherwise."""
    try:
        match method:
            case InferenceMethod.invert:
                return invert(given, observed)
            case InferenceMethod.clip:
                return invert(given, observed, "clip")
            case InferenceMethod.simplex:
                return invert(given, observed, "simplex")
            case InferenceMethod.mle:
                return mle_randomized_response(given, observed)
            case InferenceMethod.auto if given.shape[0] == given.shape[1]:
                return invert(given, observed)
    except ChannelError as refused:
        if method is not InferenceMethod.auto:
            raise ChannelError(str(refused).replace("ibu(channel, counts)", "--method ibu")) from None
    return ibu(given, observed, progress=bar and given.rows.size > _LONG)


def _print_inference(result: Inference, rows: Rows) -> None:
    pairs = [("method", result.method), ("reports", str(result.n) if isinstance(result.n, int) else f"{result.n:.6g}")]
    if result.iterations:
        pairs.append(("updates", f"{result.iterations}, within {result.gap:.1e} nats per report of the maximum"))
    if result.raw is not None:
        pairs.append(("error bars", "of the unbiased estimate, before it was made a distribution"))
    output.facts(pairs)
    output.write("\n")
    head = ["answer", "reported", "estimate", "stderr", f"{100 * rows.level:g} % interval"]
    body = []
    for row, reported in zip(rows.records(), _reported(result), strict=True):
        digits = decimals(row["stderr"])
        error = "unknown" if math.isinf(row["stderr"]) else number(row["stderr"], digits)
        span = f"{number(row['low'], digits)} .. {number(row['high'], digits)}"
        body.append([shown(row["label"]), reported, number(row["value"], digits), error, span])
    output.table(head, body)


def _reported(result: Inference) -> list[str]:
    """The noisy shares, if outputs and inputs have the same labels."""
    if result.inputs != result.outputs or not result.n:
        return ["-"] * len(result.inputs)
    return [f"{share:.4f}" for share in result.observed / result.n]

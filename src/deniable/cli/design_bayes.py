"""`deniable design bayes`: the best mechanism for what a user believes and wants."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable import exact
from deniable.channels import Channel
from deniable.channels._gains import NAMED
from deniable.channels.levels import epsilon_text, level_text
from deniable.cli import output
from deniable.cli.files import STDIN, is_json, named, parse_csv, parse_json, read_text
from deniable.cli.inputs import Names, as_floats, is_number, read_adjacency, read_matrix
from deniable.cli.options import Json, Plot, examples
from deniable.cli.output import number, shown
from deniable.cli.waiting import solving
from deniable.errors import DeniableError, LabelError, ShapeError, SpecError
from deniable.labels import Label, as_labels, load_label

if TYPE_CHECKING:
    from deniable.design import Design

EXAMPLES = examples(
    "deniable design bayes 0.45,0.45,0.1 --epsilon 1",
    "deniable design bayes 0=0.1,1=0.2,2=0.4,3=0.2,4=0.1 --loss absolute --adjacency line --epsilon 0.5",
    "deniable design bayes prior.csv --loss loss.csv --adjacency edges.csv --epsilon 1 --save proof.json",
    "(prior.csv has lines label,probability; loss.csv a row for each guess below a row of the true labels)",
)

_MOST_SHOWN = 12


def bayes(
    prior: Annotated[str, typer.Argument(metavar="PRIOR", help="0.5,0.5 or yes=0.5,no=0.5 or a file; '-' is stdin.")],
    epsilon: Annotated[
        str | None, typer.Option(metavar="EPSILON", help="The privacy level.", show_default=False)
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(metavar="LOSS", help="zero-one (as without), absolute, squared, or a matrix.", show_default=False),
    ] = None,
    gain: Annotated[
        str | None, typer.Option(metavar="GAIN", help="A gain instead: identity, or a matrix.", show_default=False)
    ] = None,
    adjacency: Annotated[
        str, typer.Option(metavar="PAIRS", help="all, line, line:2, hamming, or a CSV of edges.")
    ] = "all",
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the certificate.", show_default=False)
    ] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Find the mechanism of least expected loss for a user who believes in a prior.

    Value and bound enclose what any mechanism at this level can reach; the channel's ratios hold exactly.
    """
    if epsilon is None:
        raise SpecError("say how private a report has to be: --epsilon 1, for example")
    labels, weights = _read_prior(prior)
    relation = read_adjacency(adjacency, Channel([[1]] * len(labels), inputs=labels))
    losses, guesses = _read_function(loss, labels)
    gains, named_gains = _read_function(gain, labels)
    from deniable import design as designs

    with solving() as progress:
        found = designs.bayes(
            as_floats(weights, "prior"), losses, epsilon=epsilon, adjacency=relation, gain=gains,
            guesses=guesses or named_gains, inputs=labels, progress=progress,
        )  # fmt: skip
    if save is not None:
        found.certificate.save(save)
    if plot is not None:
        from deniable.cli.pictures import save_figure

        save_figure(plot, found.plot)
    if as_json:
        output.document(_description(found))
        return
    _print(found)
    for kind, path in (("saved", save), ("drawn", plot)):
        if path is not None:
            output.write(f"\n{kind}: {path}\n")


# -- reading ---------------------------------------------------------------------------------------------


def _read_prior(source: str) -> tuple[tuple[Label, ...], list[Fraction]]:
    if source != STDIN and not os.path.lexists(source):
        pieces = [piece.rpartition("=") for piece in source.split(",")]
        if len(pieces) == 1 and not pieces[0][1]:
            raise SpecError(f"there is no file {source!r}: give the prior as a file, as 0.5,0.5 or as yes=0.5,no=0.5")
        return _weighed([(label if equals else None, value) for label, equals, value in pieces])
    content, where = read_text(source), named(source)
    try:
        if is_json(content):
            value = parse_json(content, where)
            pairs: list[tuple[Any, Any]] = (
                list(value.items()) if isinstance(value, dict) else [(None, entry) for entry in value]
            )
            return _weighed(pairs)
        rows = [row for _, row in parse_csv(content, where)]
        if any(len(row) != len(rows[0]) or len(row) > 2 for row in rows):
            raise ShapeError("a prior has lines label,probability, or one probability in each line")
        if len(rows) > 1 and not is_number(rows[0][-1]):
            rows = rows[1:]  # a header
        return _weighed([(row[0] if len(row) == 2 else None, row[-1]) for row in rows])
    except DeniableError as wrong:
        raise type(wrong)(f"{where}: {wrong}") from None


def _weighed(pairs: Sequence[tuple[Any, Any]]) -> tuple[tuple[Label, ...], list[Fraction]]:
    unnamed = [label is None for label, _ in pairs]
    if any(unnamed) and not all(unnamed):
        raise LabelError("give every probability of the prior a label, or none")
    weights = [exact.fraction(value, f"entry {i} of the prior") for i, (_, value) in enumerate(pairs)]
    names = None if any(unnamed) else _labels([label for label, _ in pairs])
    return as_labels(names, len(pairs), "input"), weights


def _labels(written: Sequence[str]) -> list[Label]:
    """Numbers where all are numbers, because losses compute with them; else texts."""
    texts = [piece.strip() for piece in written]
    if not all(map(is_number, texts)):
        return list(texts)
    numbers = [exact.fraction(piece) for piece in texts]
    return [int(value) if value.denominator == 1 else value for value in numbers]


def _read_function(source: str | None, labels: tuple[Label, ...]) -> tuple[Any, list[Label] | None]:
    """A name, or a matrix with the labels of its guesses."""
    if source is None or source in NAMED:
        return source, None
    if source != STDIN and not os.path.lexists(source):
        raise LabelError(f"{source!r} is none of {', '.join(NAMED)}, and there is no such file")
    content, where = read_text(source), named(source)
    if is_json(content):
        value = parse_json(content, where)
        table = value if isinstance(value, list) else value.get("rows")
        names = None if isinstance(value, list) else value.get("guesses")
        return table, None if names is None else [load_label(name) for name in names]
    matrix = read_matrix(content, where)
    places = [Names.of(labels, "input").place(truth, f"{where}: ") for truth in matrix.columns]
    if sorted(places) != list(range(len(labels))):
        raise ShapeError(f"{where}: the first row names each of the {len(labels)} inputs once")
    table = [[0.0] * len(labels) for _ in matrix.rows]
    for row, numbers in zip(table, matrix.numbers(), strict=True):
        for place, value in zip(places, as_floats(numbers, "matrix"), strict=True):
            row[place] = value
    return table, _labels(matrix.rows)


# -- showing ---------------------------------------------------------------------------------------------


def _print(found: Design) -> None:
    from deniable.design.trace import summary

    channel = found.channel
    worst = channel.witness(channel.adjacency)
    kind = "expected loss" if found.sense == "min" else "expected gain"
    output.facts(
        [
            ("mechanism", f"{found.name} for {channel.adjacency}, {found.outputs} outputs in use"),
            (kind, number(found.value)),
            ("bound", f"{number(found.bound)} ({found.certificate.rigor}; relative gap {found.relative_gap:.1e})"),
            ("epsilon", f"{level_text(worst.ratio, worst.distance)}, at most {epsilon_text(found.epsilon)} as asked"),
            ("solver", summary(found.trace)),
        ]
    )
    output.write("\n")
    rows, columns = (min(side, _MOST_SHOWN) for side in channel.shape)
    body = [[shown(channel.inputs[x]), *(f"{channel.rows[x, y]:.4f}" for y in range(columns))] for x in range(rows)]
    output.table(["input", *(shown(label) for label in channel.outputs[:columns])], body, left=1)
    if (rows, columns) != channel.shape:
        output.write(f"\n(the first of {channel.shape[0]} inputs and {channel.shape[1]} outputs; --json has all)\n")


def _description(found: Design) -> dict[str, Any]:
    return {
        "mechanism": found.name,
        "sense": found.sense,
        "epsilon": {"asked": exact.canonical(found.epsilon), "realized": found.realized_epsilon},
        **proven(found),
        "channel": found.channel.spec(),
    }


def proven(found: Design) -> dict[str, Any]:
    """What every design says of its value, for JSON."""
    return {
        "value": found.value,
        "bound": found.bound,
        "gap": found.gap,
        "relative_gap": found.relative_gap,
        "rigor": found.certificate.rigor,
        "seconds": found.seconds,
        "trace": [step.spec() for step in found.trace],
    }

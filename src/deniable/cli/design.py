"""`deniable design`: compute the best mechanism there is, and check the proof that it is.

extremal     two hypotheses, inline or in a file, become a mechanism and a certificate; with a radius, the robust one
regimes      for which epsilons the binary mechanism and randomized response are optimal
several      any number of hypotheses: a CSV with a column for each, or one option per law
bayes        a prior and a loss become a mechanism and a certificate
compromise   several users share one mechanism: what that costs them
mean         the mechanism and read-out with the smallest worst-case variance of a mean
together     parties compute a function of their bits: who is right how often
information  what a report of each protocol tells, and what no report can exceed
profiles     profiles in CSV, with a header "profile" and the values (one column "p" for Bernoulli), and edges in CSV,
             two names per line below a header; or both in JSON, which may come from standard input. The epsilon is the
             exact largest log-ratio over the graph's edges, of the integers that are saved
verify       a certificate or a saved profile mechanism is checked without the solver
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable import design as designs
from deniable import exact
from deniable._extras import require
from deniable._files import parse_csv, parse_json
from deniable.channels import Channel
from deniable.channels.divergences import DIVERGENCES
from deniable.channels.utility import NAMED
from deniable.cli import output
from deniable.cli.options import STDIN, Json, Plot, is_json, named, new_app, read_text
from deniable.cli.output import examples, number, ratio_text, ratio_words, save_figure, shown, solving
from deniable.cli.read_channels import Names, as_floats, is_number, read_adjacency, read_laws, read_matrix, read_vector
from deniable.design import BlockResponse, Bracket, Certificate, Design
from deniable.design.several import GOALS
from deniable.domains import Integers, Interval
from deniable.errors import DeniableError, InternalError, LabelError, NumberError, ShapeError, SpecError
from deniable.exact import WORD, epsilon_text, level_text
from deniable.labels import Label, as_labels, label_key, label_spec, load_label
from deniable.planning import information as report_information
from deniable.protocols import OneBitMean, Window, load
from deniable.protocols import profiles as mechanisms
from deniable.protocols.profiles import ProfileGraph, ProfileMechanism, ProfileTable, Verdict
from deniable.protocols.profiles.mechanism import off_diagonal
from deniable.protocols.profiles.table import ToldApart
from deniable.results import finite
from deniable.trace import Progress, summary

app = new_app()

NAMES = ("smooth-one-bit", "one-bit-cluster", "smooth-categorical", "warner", "kary-response")

# So much is printed; --json has all.
_MOST_LISTED = 8
_MOST_CELLS = 12
_MOST_PROFILES = 40

# Of the noise of a profile mechanism: solvers agree to many more digits.
_SOLVERS_DIFFER = 1e-6


@app.callback(
    epilog=examples(
        "deniable design extremal --p0 0.5,0.3,0.2 --p1 0.2,0.3,0.5 --epsilon 1",
        "deniable design extremal laws.csv --epsilon 1 --save proof.json",
        "deniable design several laws.csv --epsilon 1",
        "deniable design bayes 0.45,0.45,0.1 --epsilon 1",
        "deniable design mean --epsilon 3 --save proof.json",
        "deniable design information --answers 6 --epsilon 1",
        "deniable design profiles profiles.csv --edges edges.csv --epsilon 1",
        "deniable design verify proof.json",
    )
)
def design(ctx: typer.Context) -> None:
    """Optimal mechanisms, each with a certificate that anybody can check."""
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


def _proven(found: Design) -> dict[str, Any]:
    """What every design says about its value, as JSON."""
    return {
        "value": found.value,
        "bound": found.bound,
        "gap": found.gap,
        "relative_gap": found.relative_gap,
        "rigor": found.certificate.rigor,
        "seconds": found.seconds,
        "trace": [step.spec() for step in found.trace],
    }


# -- extremal: tell two hypotheses apart ---------------------------------------------------------------


Kind = Annotated[str, typer.Option("--divergence", metavar="NAME", help=f"One of {', '.join(DIVERGENCES)}.")]
TwoLaws = Annotated[
    str | None,
    typer.Argument(
        metavar="[LAWS]",
        help="Both hypotheses: CSV lines label,P0,P1, or JSON with p0, p1 and perhaps inputs; '-' is stdin.",
        show_default=False,
    ),
]
First = Annotated[str | None, typer.Option("--p0", metavar="LAW", help="0.5,0.5 or yes=0.5,no=0.5", show_default=False)]
Second = Annotated[str | None, typer.Option("--p1", metavar="LAW", help="The other hypothesis.", show_default=False)]
Epsilon = Annotated[
    str | None, typer.Option("--epsilon", metavar="EPSILON", help="The privacy level of a report.", show_default=False)
]
Save = Annotated[Path | None, typer.Option("--save", metavar="FILE", help="Write the certificate.", show_default=False)]


def _wanted(epsilon: str | None) -> str:
    if epsilon is None:
        raise SpecError("say how private a report has to be: --epsilon 1, for example")
    return epsilon


@dataclass(frozen=True, slots=True)
class _Laws:
    inputs: tuple[Any, ...] | None
    p0: list[Fraction]
    p1: list[Fraction]


@app.command(
    epilog=examples(
        "deniable design extremal --p0 0.5,0.3,0.2 --p1 0.2,0.3,0.5 --epsilon 1",
        "deniable design extremal --p0 never=0.5,once=0.3,often=0.2 --p1 never=0.2,once=0.3,often=0.5 --epsilon 1",
        "deniable design extremal laws.csv --epsilon 0.5 --divergence chi2 --save proof.json",
        "deniable design extremal laws.csv --epsilon 1 --radius 0.05",
        "(laws.csv has lines: label,P0,P1)",
    )
)
def extremal(
    source: TwoLaws = None,
    p0: First = None,
    p1: Second = None,
    epsilon: Epsilon = None,
    divergence: Kind = "kl",
    radius: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="The laws are known up to this total variation distance: 0.05, or 0.05,0.1 for P0 and P1.",
            show_default=False,
        ),
    ] = None,
    save: Save = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Find the mechanism whose reports tell two hypotheses apart best.

    No other mechanism at this level has reports of a larger divergence: value and bound enclose the optimum. With a
    radius, the value is the smallest divergence over all laws that close, and no mechanism has a larger one.
    """
    level, laws = _wanted(epsilon), _read_laws(source, p0, p1)
    with solving() as progress:
        if radius is None:
            found = designs.extremal(laws.p0, laws.p1, level, divergence, laws.inputs, progress)
        else:
            near = [exact.fraction(piece, "the radius") for piece in radius.split(",")]
            given = near[0] if len(near) == 1 else near
            found = designs.robust(laws.p0, laws.p1, level, given, divergence, laws.inputs, progress)
        certificate = found.certificate
    if save is not None:
        certificate.save(save)
    if plot is not None:
        save_figure(plot, found.plot)
    if as_json:
        output.document(_extremal_document(found, laws))
        return
    _print_extremal(found, laws)
    output.files(saved=save, drawn=plot)


def _read_laws(source: str | None, p0: str | None, p1: str | None) -> _Laws:
    """Both hypotheses, from a file or from the options."""
    if (source is None) == (p0 is None) or (p0 is None) != (p1 is None):
        raise SpecError("give the two hypotheses in one file, or as --p0 and --p1")
    if p0 is not None and p1 is not None:
        labels = _labels_of(p0)
        names = Names.of(labels, "symbol")
        named_so = "=" in p0 and not os.path.lexists(p0)
        return _Laws(labels if named_so else None, read_vector(p0, names, "P0"), read_vector(p1, names, "P1"))
    assert source is not None
    content, where = read_text(source), named(source)
    try:
        return _from_json(parse_json(content, where)) if is_json(content) else _from_csv(parse_csv(content, where))
    except DeniableError as wrong:
        raise type(wrong)(f"{where}: {wrong}") from None


def _labels_of(vector: str) -> tuple[Any, ...]:
    """The symbols of a vector that is given inline or in a file."""
    pieces = vector.split(",")
    if os.path.lexists(vector):
        pieces = [",".join(row) for _, row in parse_csv(read_text(vector), named(vector))]
        return tuple(range(len(pieces)))
    labels = [piece.rpartition("=")[0].strip() for piece in pieces]
    return as_labels(labels if all(labels) else None, len(pieces), "symbol")


def _from_json(content: Any) -> _Laws:
    if not isinstance(content, dict) or not {"p0", "p1"} <= content.keys():
        raise SpecError('the hypotheses are {"p0": [...], "p1": [...]}, and "inputs" if the symbols have names')
    laws = []
    for key in ("p0", "p1"):
        if not isinstance(content[key], list):
            raise SpecError(f'"{key}" must be a list of numbers')
        laws.append([exact.fraction(value, f"entry {i} of {key}") for i, value in enumerate(content[key])])
    inputs = content.get("inputs")
    return _Laws(None if inputs is None else as_labels(inputs, len(laws[0]), "symbol"), laws[0], laws[1])


def _from_csv(rows: Sequence[tuple[int, list[str]]]) -> _Laws:
    width = len(rows[0][1])
    if width not in (2, 3) or any(len(row) != width for _, row in rows):
        raise ShapeError("every line holds a label, P0 and P1, or P0 and P1 alone")
    body = rows
    try:
        exact.fraction(rows[0][1][-1])
    except NumberError:
        body = rows[1:]  # a header
    if not body:
        raise ShapeError("there is no line below the header")
    p0, p1 = ([exact.fraction(row[i], f"the number in line {line}") for line, row in body] for i in (-2, -1))
    inputs = as_labels([row[0] for _, row in body], len(body), "symbol") if width == 3 else None
    return _Laws(inputs, p0, p1)


def _blocks_law(found: Design) -> BlockResponse:
    """The law of an extremal mechanism."""
    if not isinstance(found.law, BlockResponse):
        raise InternalError("an extremal mechanism is a response over blocks")
    return found.law


def _blocks(law: BlockResponse) -> list[list[int]]:
    """The symbols of each output."""
    blocks: list[list[int]] = [[] for _ in range(law.outputs)]
    for x, block in enumerate(law.block):
        blocks[block].append(x)
    return blocks


def _print_extremal(found: Design, laws: _Laws) -> None:
    names = [shown(label) for label in laws.inputs or range(len(laws.p0))]
    law = _blocks_law(found)
    kind = f"randomized response over {found.outputs} blocks of symbols"
    report = f"the own block with probability {float(law.true):.6g}, each other with {float(law.false):.6g}"
    if found.outputs == 1:
        kind, report = "a constant answer, because nothing tells the hypotheses apart", "always the same"
    output.facts(
        [
            ("mechanism", f"{found.name}: {kind}"),
            ("value", number(found.value)),
            ("bound", f"{number(found.bound)} ({found.certificate.rigor}; relative gap {found.relative_gap:.1e})"),
            ("epsilon", f"{level_text(found.ratio)}, at most {epsilon_text(found.epsilon)} as asked"),
            ("report", report),
            ("solver", summary(found.trace)),
        ]
    )  # fmt: skip
    output.write("\n")
    rows = []
    for y, block in enumerate(_blocks(law)):
        listed = ", ".join(names[x] for x in block[:_MOST_LISTED])
        more = f" and {len(block) - _MOST_LISTED} more" if len(block) > _MOST_LISTED else ""
        shares = [float(sum(masses[x] for x in block) / sum(masses)) for masses in (laws.p0, laws.p1)]
        rows.append([str(y), listed + more, *(f"{share:.4f}" for share in shares)])
    output.table(["output", "symbols", "P0", "P1"], rows, left=2)


def _extremal_document(found: Design, laws: _Laws) -> dict[str, Any]:
    return {
        "mechanism": found.name,
        "epsilon": {
            "asked": exact.canonical(found.epsilon),
            "realized": found.realized_epsilon,
            "ratio": ratio_text(found.ratio),
        },
        **_proven(found),
        "inputs": None if laws.inputs is None else [label_spec(label) for label in laws.inputs],
        "law": _blocks_law(found).spec(),
    }


# -- regimes: where the classical mechanisms are optimal -----------------------------------------------


@app.command(
    epilog=examples(
        "deniable design regimes --p0 0.5,0.3,0.2 --p1 0.2,0.2,0.6",
        "deniable design regimes laws.csv --divergence chi2 --plot regimes.png",
        "(laws.csv has lines: label,P0,P1)",
    )
)
def regimes(
    source: TwoLaws = None,
    p0: First = None,
    p1: Second = None,
    divergence: Kind = "kl",
    epsilons: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="The epsilons to scan, as in 0.1,1,4.", show_default="49 from 0.01 to 16"),
    ] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Find for which epsilons the binary mechanism and randomized response are optimal.

    Each threshold is a bracket: on one side optimality is proved, on the other a better mechanism is known.
    """
    laws = _read_laws(source, p0, p1)
    grid = None if epsilons is None else [float(exact.as_epsilon(piece)) for piece in epsilons.split(",")]
    with solving() as progress:
        found = designs.regimes(laws.p0, laws.p1, divergence, grid, progress)
    if plot is not None:
        save_figure(plot, lambda: found.plot()[0])
    if as_json:
        output.document(
            {
                "divergence": found.divergence.name,
                "binary": [found.binary.low, finite(found.binary.high)],
                "response": [found.response.low, finite(found.response.high)],
                "exceptions": {"binary": found.binary_exceptions, "response": found.response_exceptions},
                "scan": [asdict(at) for at in found.scan],
            }
        )
        return
    output.facts(
        [
            ("divergence", found.divergence.name),
            ("binary mechanism", f"optimal up to epsilon {_ends(found.binary)}"),
            ("randomized response", f"optimal from epsilon {_ends(found.response)} on"),
            ("exceptions", _numbers(found.binary_exceptions + found.response_exceptions) or "none in the scan"),
        ]
    )
    output.write("\n")
    step = max(1, len(found.scan) // _MOST_CELLS)
    body = []
    for at in found.scan[::step]:
        shares = [f"{_share(value, at.best):.4f}" for value in (at.binary, at.response)]
        body.append([f"{at.epsilon:.4g}", f"{at.best:.6g}", *shares, str(at.blocks)])
    output.table(["epsilon", "best", "binary", "response", "outputs"], body, left=0)
    output.write("\n(binary and response as shares of the best)\n")
    output.files(drawn=plot)


def _ends(bracket: Bracket) -> str:
    if bracket.high == math.inf:
        return f"{bracket.low:.5g}, where the scan ends"
    return f"{bracket.low:.5g} to {bracket.high:.5g}"


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.5g}" for value in values)


def _share(value: float, best: float) -> float:
    return value / best if best > 0 else 1.0


# -- several: any number of hypotheses -----------------------------------------------------------------


@app.command(
    epilog=examples(
        "deniable design several --law 0.5,0.3,0.2 --law 0.2,0.5,0.3 --law 0.2,0.3,0.5 --epsilon 1",
        "deniable design several laws.csv --epsilon 1 --prior 0.5,0.3,0.2 --save proof.json",
        "deniable design several laws.csv --epsilon 1 --goal chernoff",
        "(laws.csv has a first row with the names of the laws, and lines label,P1,P2,P3 below it)",
    )
)
def several(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[LAWS]",
            help='CSV with a column per law, or JSON {"laws": {name: [...]}, "inputs": [...]}; \'-\' is stdin.',
            show_default=False,
        ),
    ] = None,
    law: Annotated[
        list[str] | None,
        typer.Option(metavar="LAW", help="0.5,0.5 or yes=0.5,no=0.5, once per law.", show_default=False),
    ] = None,
    epsilon: Epsilon = None,
    prior: Annotated[
        str | None,
        typer.Option(
            metavar="PRIOR", help="How likely each law is: 0.5,0.3,0.2 or name=0.5,...", show_default="all alike"
        ),
    ] = None,
    goal: Annotated[
        str, typer.Option(metavar="GOAL", help=f"One of {', '.join(GOALS)}: one report, or many.")
    ] = "guess",
    save: Save = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Find the mechanism whose reports say best which of several laws the answers follow.

    guess: the probability that the best guess from one report is right. stein, chernoff: with many reports errors fall
    like e^(-n value), for the two laws that are hardest to tell apart.
    """
    level = _wanted(epsilon)
    laws, inputs = _read_several(source, law)
    weights = None if prior is None else read_vector(prior, Names.of(tuple(laws), "law"), "the prior")
    with solving() as progress:
        found = designs.several(laws, level, weights, goal, inputs, progress)
        certificate = found.certificate
    if save is not None:
        certificate.save(save)
    if plot is not None:
        save_figure(plot, found.plot)
    if as_json:
        output.document({"goal": goal, "laws": [label_spec(name) for name in laws], **_bayes_document(found)})
        return
    words = {"guess": "right guesses", "stein": "exponent", "chernoff": "exponent"}
    _print_channel(found, words[goal])
    output.files(saved=save, drawn=plot)


def _read_several(source: str | None, given: list[str] | None) -> tuple[dict[Label, list[Fraction]], Any]:
    if (source is None) == (not given):
        raise SpecError("give the laws in one file, or as --law, once per law")
    if given:
        labels = _labels_of(given[0])
        names = Names.of(labels, "symbol")
        named_so = "=" in given[0] and not os.path.lexists(given[0])
        laws: dict[Label, list[Fraction]] = {}
        for place, piece in enumerate(given):
            laws[place] = read_vector(piece, names, f"law {place + 1}")
        return laws, labels if named_so else None
    assert source is not None
    return read_laws(source)


# -- bayes: least expected loss under a prior ----------------------------------------------------------


@app.command(
    epilog=examples(
        "deniable design bayes 0.45,0.45,0.1 --epsilon 1",
        "deniable design bayes 0=0.1,1=0.2,2=0.4,3=0.2,4=0.1 --loss absolute --adjacency line --epsilon 0.5",
        "deniable design bayes prior.csv --loss loss.csv --adjacency edges.csv --epsilon 1 --save proof.json",
        "(prior.csv has lines label,probability; loss.csv a row for each guess below a row of the true labels)",
    )
)
def bayes(
    prior: Annotated[str, typer.Argument(metavar="PRIOR", help="0.5,0.5 or yes=0.5,no=0.5 or a file; '-' is stdin.")],
    epsilon: Epsilon = None,
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
    with solving() as progress:
        found = designs.bayes(
            as_floats(weights, "prior"), losses, epsilon=epsilon, adjacency=relation, gain=gains,
            guesses=guesses or named_gains, inputs=labels, progress=progress,
        )  # fmt: skip
    if save is not None:
        found.certificate.save(save)
    if plot is not None:
        save_figure(plot, found.plot)
    if as_json:
        output.document(_bayes_document(found))
        return
    _print_bayes(found)
    output.files(saved=save, drawn=plot)


def _read_prior(source: str) -> tuple[tuple[Label, ...], list[Fraction]]:
    """Labels and weights of a prior that is given inline or in a file."""
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
    """Labels and exact weights, from pairs; labels may be None, but then all of them."""
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
    """The name of a loss or gain; or its matrix, with the labels of the guesses."""
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


def _print_bayes(found: Design) -> None:
    _print_channel(found, "expected loss" if found.sense == "min" else "expected gain")


def _print_channel(found: Design, kind: str) -> None:
    channel = found.channel
    worst = channel.witness(channel.adjacency)
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
    rows, columns = (min(side, _MOST_CELLS) for side in channel.shape)
    body = [[shown(channel.inputs[x]), *(f"{channel.rows[x, y]:.4f}" for y in range(columns))] for x in range(rows)]
    output.table(["input", *(shown(label) for label in channel.outputs[:columns])], body, left=1)
    if (rows, columns) != channel.shape:
        output.write(f"\n(the first of {channel.shape[0]} inputs and {channel.shape[1]} outputs; --json has all)\n")


def _bayes_document(found: Design) -> dict[str, Any]:
    return {
        "mechanism": found.name,
        "sense": found.sense,
        "epsilon": {"asked": exact.canonical(found.epsilon), "realized": found.realized_epsilon},
        **_proven(found),
        "channel": found.channel.spec(),
    }


# -- compromise: several users, one mechanism ----------------------------------------------------------


@app.command(
    epilog=examples(
        "deniable design compromise --user 0.5,0,0.5,0 --user 0,0.5,0,0.5 --adjacency ring.csv --epsilon 1",
        "deniable design compromise --user 0.6,0.3,0.1 --user 0.1,0.3,0.6 --loss absolute --adjacency line --epsilon 1",
        "(ring.csv has one edge per line: a,b)",
    )
)
def compromise(
    user: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PRIOR", help="What a user believes: 0.5,0.5 or a file, once per user.", show_default=False
        ),
    ] = None,
    loss: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LOSS",
            help="zero-one, absolute, squared or a matrix: for all users, or once per user.",
            show_default="zero-one",
        ),
    ] = None,
    epsilon: Epsilon = None,
    adjacency: Annotated[
        str, typer.Option(metavar="PAIRS", help="all, line, line:2, hamming, or a CSV of edges.")
    ] = "all",
    save: Save = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Find the best mechanism for several users at once, and what each loses by sharing it.

    On a line nothing is lost; on graphs with cycles there are users whom no single mechanism serves best.
    """
    level = _wanted(epsilon)
    if not user:
        raise SpecError("say what each user believes: --user 0.5,0.5 --user 0.2,0.8, for example")
    losses = loss or ["zero-one"]
    if len(losses) not in (1, len(user)):
        raise ShapeError(
            f"give one --loss for all, or one per user: there are {len(user)} users and {len(losses)} losses"
        )
    labels, first = _read_prior(user[0])
    priors = [first, *(_same_prior(piece, labels) for piece in user[1:])]
    relation = read_adjacency(adjacency, Channel([[1]] * len(labels), inputs=labels))
    functions = [_read_function(name, labels)[0] for name in losses] * (len(user) if len(losses) == 1 else 1)
    pairs = [(as_floats(weights, "prior"), function) for weights, function in zip(priors, functions, strict=True)]
    with solving() as progress:
        found = designs.compromise(pairs, epsilon=level, adjacency=relation, inputs=labels, progress=progress)
    if save is not None:
        found.shared.certificate.save(save)
    if plot is not None:
        save_figure(plot, found.shared.plot)
    costs = {"least": found.least, "most": found.most}
    if as_json:
        output.document(
            {**_bayes_document(found.shared), "alone": [one.value for one in found.alone], "sharing": costs}
        )
        return
    _print_bayes(found.shared)
    output.write("\n")
    output.facts(
        [
            ("each alone", " + ".join(number(one.value) for one in found.alone)),
            ("sharing costs", f"between {found.least:.3g} and {max(found.most, 0.0):.3g}"),
        ]
    )
    output.files(saved=save, drawn=plot)


def _same_prior(source: str, labels: tuple[Label, ...]) -> list[Fraction]:
    names, weights = _read_prior(source)
    places = {label_key(name): weight for name, weight in zip(names, weights, strict=True)}
    if len(names) != len(labels) or any(label_key(label) not in places for label in labels):
        raise LabelError("all users have a prior over the same inputs: give each the labels of the first")
    return [places[label_key(label)] for label in labels]


# -- mean: the smallest worst-case variance ------------------------------------------------------------


@app.command(
    epilog=examples(
        "deniable design mean --epsilon 3",
        "deniable design mean --epsilon 1 --positions 9 --save proof.json --plot mechanism.png",
        "deniable survey new draft.json --table hours=proof.json -o survey.json",
        '(the draft says which numbers: "answers": {"number": {"low": 0, "high": 24, "unit": "hours"}})',
    )
)
def mean(
    epsilon: Epsilon = None,
    positions: Annotated[
        int | None,
        typer.Option(metavar="D", help="Positions that numbers are rounded to at random.", show_default="by epsilon"),
    ] = None,
    outputs: Annotated[
        int | None, typer.Option(metavar="M", help="How many different reports there may be.", show_default="any")
    ] = None,
    save: Save = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Find the mechanism for the mean of a number whose variance is smallest in the worst case.

    Channel and unbiased read-out are found together. The variance is that of one report, of a number in [-1, 1]; on an
    interval of width w it is w^2 / 4 times as large. No mechanism on the same positions is below the bound.
    """
    level = _wanted(epsilon)
    with solving() as progress:
        found = designs.mean(level, positions, outputs, progress)
        certificate = found.certificate
    if save is not None:
        certificate.save(save)
    if plot is not None:
        save_figure(plot, found.plot)
    rivals = mean_rivals(found.epsilon)
    if as_json:
        output.document(
            {
                **_bayes_document(found),
                "positions": found.positions,
                "values": [str(value) for value in found.values],
                "rivals": rivals,
            }
        )
        return
    output.facts(
        [
            ("mechanism", f"{found.name}, {found.positions} positions and {found.outputs} outputs"),
            ("variance", f"{number(found.value)} at most, of one report"),
            ("bound", f"{number(found.bound)} ({certificate.rigor}; relative gap {found.relative_gap:.1e})"),
            ("epsilon", f"{level_text(found.ratio)}, at most {epsilon_text(found.epsilon)} as asked"),
            ("solver", summary(found.trace)),
        ]
    )
    output.write("\n")
    body = [[name, number(worst), f"{worst / found.value:.3f}"] for name, worst in rivals.items()]
    output.table(["in its place", "variance", "times as large"], body, left=1)
    output.files(saved=save, drawn=plot)


def mean_rivals(epsilon: Fraction) -> dict[str, float]:
    """The largest variance of other mechanisms for a mean on [-1, 1]; that of the hybrid one by its formula."""
    ends, e = Interval(-1, 1), math.exp(epsilon)
    root = math.exp(epsilon / 2)
    rivals = {kind.__name__: kind(ends, epsilon).worst_variance(1) for kind in (OneBitMean, Window)}
    hybrid = (root + 3) / (3 * root * (root - 1)) + (e + 1) ** 2 / (root * (e - 1) ** 2)
    # Below this epsilon the hybrid mechanism is the one-bit mean (Wang et al. 2019).
    return rivals | {"hybrid": rivals["OneBitMean"] if epsilon < Fraction(609352, 10**6) else hybrid}


# -- information: what a report tells ------------------------------------------------------------------


@app.command(
    epilog=examples(
        "deniable design information --answers 6 --epsilon 1",
        "deniable design information --answers 3 --epsilon 2 --prior 0.5,0.3,0.2 --json",
    )
)
def information(
    answers: Annotated[
        int | None, typer.Option(metavar="D", help="How many answers there are.", show_default=False)
    ] = None,
    epsilon: Epsilon = None,
    prior: Annotated[
        str | None, typer.Option(metavar="PRIOR", help="How the answers are distributed.", show_default="all alike")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare what one report tells, for every protocol, with what no report can exceed.

    Information and capacity are in nats per report. The spread, divided by the number of reports, is the smallest sum
    of variances that an unbiased estimate of the shares can have.
    """
    level = _wanted(epsilon)
    if answers is None or answers < 2:
        raise SpecError("say how many answers there are, at least two: --answers 6, for example")
    domain = Integers(0, answers - 1)
    weights = (
        None
        if prior is None
        else as_floats(read_vector(prior, Names.of(tuple(domain.labels), "answer"), "the prior"), "prior")
    )
    found = report_information(domain, level, weights)
    if as_json:
        output.document(
            {
                "answers": answers,
                "epsilon": exact.canonical(found.epsilon),
                "protocols": [{**asdict(told), "spread": finite(told.spread)} for told in found.rows],
                "left_out": list(found.left_out),
                "optimum": {"value": found.best.value, "bound": found.best.bound},
            }
        )
        return
    body = [
        [told.name, f"{told.information:.5f}", f"{told.capacity:.5f}", f"{told.spread:.4g}",
         f"{_share(told.information, found.best.bound):.1%}"]
        for told in found.rows
    ]  # fmt: skip
    output.table(["protocol", "information", "capacity", "spread", "of the optimum"], body, left=1)
    output.write(
        f"\nno mechanism at epsilon {epsilon_text(found.epsilon)} tells more than {found.best.bound:.5f} nats\n"
    )
    if found.left_out:
        output.write(f"left out, because their reports have too many forms: {', '.join(found.left_out)}\n")


# -- profiles: hide which profile the data come from ---------------------------------------------------


@app.command(
    epilog=examples(
        "deniable design profiles profiles.csv --edges edges.csv --epsilon 1",
        "deniable design profiles profiles.csv --edges edges.csv --epsilon 1 --mechanism one-bit-cluster",
        "deniable design profiles graph.json --epsilon 0.5 --save mechanism.json --plot noise.png",
        "deniable design verify mechanism.json",
        "(profiles.csv has lines profile,p or profile,P(a),P(b),... and edges.csv two profiles; both have a header)",
    )
)
def profiles(
    source: Annotated[
        str,
        typer.Argument(metavar="PROFILES", help="CSV, or JSON with profiles and edges; '-' reads JSON from stdin."),
    ],
    edges: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="CSV of the pairs that must look alike.", show_default=False),
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="EPSILON", help="The privacy level over the edges.", show_default=False)
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"One of {', '.join(NAMES)}; without it, the smooth one with less noise.",
            show_default=False,
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the mechanism, in integers.", show_default=False)
    ] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Find the least noise with which profiles that must look alike do.

    Only who has which profile is protected, and only between joined profiles: a profile without an edge reports in the
    clear.
    """
    if epsilon is None:
        raise SpecError("say how alike joined profiles have to look: --epsilon 1, for example")
    if mechanism is not None and mechanism not in NAMES:
        raise LabelError(f"there is no mechanism {mechanism!r}; there are {', '.join(NAMES)}")
    graph = _read_graph(source, edges)
    is_bit = graph.whole.width == 2
    with solving() as progress:
        if mechanism is None and is_bit:
            made, other = _quieter(graph, epsilon, progress)
        else:
            made, other = _made(mechanism or "smooth-categorical", graph, epsilon, progress), None
    baseline = _made("warner" if is_bit else "kary-response", graph, epsilon)
    if save is not None:
        output.save_json(save, made.spec())
    if plot is not None:
        save_figure(plot, lambda: _draw(made, baseline))
    if as_json:
        output.document(_profiles_document(made, baseline, other))
        return
    _print_profiles(made, baseline, other)
    output.files(saved=save, drawn=plot)


def _made(name: str, graph: ProfileGraph, epsilon: str, progress: Progress | None = None) -> ProfileMechanism:
    """The mechanism of this name for a graph."""
    makers: dict[str, Callable[[ProfileGraph, str], ProfileMechanism]] = {
        "smooth-one-bit": partial(mechanisms.SmoothOneBit, progress=progress),
        "one-bit-cluster": mechanisms.OneBitCluster,
        "smooth-categorical": partial(mechanisms.SmoothCategorical, progress=progress),
        "warner": mechanisms.Warner,
        "kary-response": mechanisms.KaryResponse,
    }
    return makers[name](graph, epsilon)


def _quieter(graph: ProfileGraph, epsilon: str, progress: Progress | None) -> tuple[ProfileMechanism, ProfileMechanism]:
    """Of one flip probability per profile and one channel per profile the one with less noise, and the other one."""
    flips, channels = (_made(name, graph, epsilon, progress) for name in ("smooth-one-bit", "smooth-categorical"))
    # A channel has to be better by more than solvers differ: a flip is simpler.
    return (channels, flips) if _noise(channels) < _noise(flips) * (1 - _SOLVERS_DIFFER) else (flips, channels)


def _noise(made: ProfileMechanism) -> float:
    """How often a report is not the value, on average over the profiles."""
    return math.fsum(_false(made)) / made.graph.size


def _read_graph(source: str, edges: str | None) -> ProfileGraph:
    """The profiles and edges, from one JSON file or two CSV files."""
    content, where = read_text(source), named(source)
    if is_json(content):
        if edges is not None:
            raise SpecError(f"{where} is JSON, which holds the edges itself: leave out --edges")
        found = parse_json(content, where)
        try:
            if not isinstance(found, dict) or not isinstance(found.get("values", []), list):
                raise SpecError('a profile graph in JSON is {"profiles": {...}, "edges": [...]}, perhaps with "values"')
            return mechanisms.from_json(content)
        except DeniableError as wrong:
            raise type(wrong)(f"{where}: {wrong}") from None
    if edges is None:
        raise SpecError("say which profiles must look alike: --edges edges.csv, two profiles per line below a header")
    if STDIN in (source, edges):
        raise SpecError("only JSON can come from standard input here: give the profiles and the edges as two CSV files")
    # Read once for the messages of the command line about bytes that are no text and text that is no CSV.
    parse_csv(content, where)
    parse_csv(read_text(edges), named(edges))
    return mechanisms.from_csv(source, edges)


def _false(made: ProfileMechanism) -> list[float]:
    """How often a report differs from the value, for each profile."""
    kept = (made.graph.whole.numerators * made.table.diagonal(axis1=1, axis2=2)).sum(axis=1)
    bottoms = made.graph.whole.denominators * WORD
    return [float(Fraction(int(bottom - top), int(bottom))) for top, bottom in zip(kept, bottoms, strict=True)]


def _largest(made: ProfileMechanism) -> list[float]:
    """The largest probability of one false report for one value, for each profile."""
    return [int(top) / WORD for top in off_diagonal(made.table).max(axis=1)]


def _print_profiles(made: ProfileMechanism, baseline: ProfileMechanism, other: ProfileMechanism | None) -> None:
    graph, verdict = made.graph, made.verdict
    first, second = map(shown, verdict.edge)
    facts = [
        ("mechanism", f"{made.name} for {graph.size} profiles of {graph.whole.width} values, {len(graph.edges)} edges"),
        ("epsilon", f"{level_text(verdict.ratio)} over the edges, at most {epsilon_text(made.asked)} as asked"),
        ("worst", f"output {shown(verdict.output)} of {first} and {second}: ratio {ratio_words(verdict.ratio)}"),
        ("largest", f"{float(made.largest):.6g} for a false report; {baseline.name} {float(baseline.largest):.6g}"),
        ("solver", summary(made.trace)),
    ]
    if other is not None:
        chosen = f"{made.name} has {_noise(made):.6g} false reports on average, {other.name} {_noise(other):.6g}"
        facts.insert(1, ("chosen", chosen))
    clear = [shown(label) for label in made.in_the_clear]
    if clear:
        more = f" and {len(clear) - _MOST_LISTED} more" if len(clear) > _MOST_LISTED else ""
        facts.append(("in the clear", ", ".join(clear[:_MOST_LISTED]) + more))
    output.facts(facts)
    output.write("\n")
    count = min(graph.size, _MOST_PROFILES)
    names = [shown(label) for label in graph.labels[:count]]
    false, usual = _false(made), _false(baseline)
    if graph.whole.width == 2:
        head = ["profile", f"P({shown(graph.values[1])})", "reported", "flip", baseline.name]
        if not _flips(made):
            head[3] = "false"
        columns = [graph.profiles[:, 1].tolist(), made.laws[:, 1].tolist(), false, usual]
    else:
        head = ["profile", "false", "largest", baseline.name]
        columns = [false, _largest(made), usual]
    body = [[names[i], *(f"{column[i]:.4f}" for column in columns)] for i in range(count)]
    output.table(head, body, left=1)
    if count < graph.size:
        output.write(f"\n(the first of {graph.size} profiles; --json has all)\n")


def _flips(made: ProfileMechanism) -> bool:
    """Whether both values of a bit are flipped equally often, so that there is one flip probability."""
    return made.graph.whole.width == 2 and bool((made.table[:, 0, 1] == made.table[:, 1, 0]).all())


def _draw(made: ProfileMechanism, baseline: ProfileMechanism) -> Any:
    _, axes = require("matplotlib.pyplot", "plot").subplots(layout="constrained")
    places = range(made.graph.size)
    axes.plot(places, _false(baseline), "--", color="#8a8f98", label=baseline.name)
    axes.plot(places, _false(made), "o", color="#2f6f9f", label=made.name)
    if made.graph.size <= _MOST_PROFILES:
        axes.set_xticks(places, [shown(label) for label in made.graph.labels], rotation=45, ha="right")
    axes.set_xlabel("profile")
    axes.set_ylabel("probability of a false report")
    axes.set_ylim(bottom=0)
    axes.set_title(f"epsilon {epsilon_text(made.asked)} over {len(made.graph.edges)} edges")
    axes.legend()
    return axes


def _profiles_document(
    made: ProfileMechanism, baseline: ProfileMechanism, other: ProfileMechanism | None
) -> dict[str, Any]:
    verdict, labels = made.verdict, made.graph.labels
    rows = zip(labels, _false(made), _largest(made), _false(baseline), strict=True)
    return {
        "mechanism": made.name,
        "fingerprint": made.fingerprint,
        "epsilon": _level(made.asked, verdict),
        "worst": {"profiles": [label_spec(label) for label in verdict.edge], "output": label_spec(verdict.output)},
        "largest": str(made.largest),
        "trace": [step.spec() for step in made.trace],
        "in_the_clear": [label_spec(label) for label in made.in_the_clear],
        "baseline": {"mechanism": baseline.name, "largest": str(baseline.largest)},
        "noise": _noise(made),
        "compared": None if other is None else {"mechanism": other.name, "noise": _noise(other)},
        "profiles": [
            {"profile": label_spec(label), "false": false, "largest": largest, "baseline_false": usual}
            for label, false, largest, usual in rows
        ],
    }


# -- verify: check what was saved ----------------------------------------------------------------------


# -- together: a function of everybody's bits ----------------------------------------------------------


@app.command(
    epilog=examples(
        "deniable design together xor --parties 2 --epsilon 1",
        "deniable design together majority --parties 5 --epsilon 0.5,0.5,1,1,2",
        "deniable design together 0,0,0,1 --epsilon 1                the values at 00, 01, 10 and 11",
        "deniable design together and --parties 2 --epsilon 1 --check",
    )
)
def together(
    function: Annotated[
        str, typer.Argument(metavar="FUNCTION", help="xor, and, or, majority, sum, or the values of the function.")
    ],
    epsilon: Annotated[
        str, typer.Option(metavar="EPSILON", help="For all parties, or one for each: 0.5,1.", show_default=False)
    ],
    parties: Annotated[
        int | None, typer.Option(metavar="N", help="How many there are.", show_default="by the lists that are given")
    ] = None,
    prior: Annotated[
        str, typer.Option(metavar="P", help="How likely a bit is 1, for all or one for each: 0.5,0.2.")
    ] = "1/2",
    check: Annotated[
        bool, typer.Option("--check", help="Of two parties: look for a better protocol of three messages on a grid.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compute a function of everybody's bits from randomized bits: who is right how often, exactly.

    An outsider hears all published bits, a party also knows its own, and a curator is trusted with all bits.
    """

    def each(given: str) -> Any:
        return given.split(",") if "," in given else given

    made = designs.together(each(function), each(epsilon), parties, each(prior))
    if check and made.size != 2:
        raise SpecError("--check is for two parties")
    best = designs.best_of_rounds(made.values, made.epsilons, (0, 1, 0), 8) if check else None
    if as_json:
        output.document(
            {
                "function": made.name,
                "values": [label_spec(value) for value in made.values],
                "epsilons": list(map(exact.canonical, made.epsilons)),
                "priors": list(map(exact.canonical, made.priors)),
                "blind": float(made.blind),
                "outsider": float(made.outsider),
                "parties": list(map(float, made.parties)),
                "curator": {"value": made.curator.value, "bound": made.curator.bound},
            }
            | ({} if best is None else {"three_messages": best})
        )
        return
    output.heading(str(made).split("\n")[0])
    output.table(["who guesses", "is right"], [[who, f"{value:.5f}"] for who, value in made.rows()])
    if best is not None:
        output.prose(f"The best protocol of three messages on a grid gives an outsider {best:.5f}.")


@app.command(epilog=examples("deniable design verify proof.json", "deniable design verify proof.json --json"))
def verify(
    source: Annotated[str, typer.Argument(metavar="FILE", help="A certificate or a saved mechanism, or '-'.")],
    as_json: Json = False,
) -> None:
    """Check a certificate again, without the solver: rows and ratios with integers, the bound with long decimals.

    Of a profile mechanism, rows and ratios are checked; it claims no bound. The exit code is 1 if any check fails.
    """
    content = parse_json(read_text(source), named(source))
    if isinstance(content, dict) and content.get("kind") == "protocol":
        if not _verify_profiles(content, named(source), as_json):
            raise typer.Exit(1)
        return
    try:
        certificate = Certificate.load(content if isinstance(content, dict) else {})
    except DeniableError as wrong:
        raise type(wrong)(f"{named(source)}: {wrong}") from None
    verdict = certificate.verify()
    if as_json:
        output.document(
            {
                "verified": bool(verdict),
                "rigor": verdict.rigor,
                "value": certificate.value,
                "bound": certificate.bound,
                "relative_gap": certificate.relative_gap,
                "checks": [{"name": c.name, "holds": c.holds, "detail": c.detail} for c in verdict.checks],
            }
        )
    else:
        output.facts(
            [(check.name, f"{'holds' if check.holds else 'FAILS'}: {check.detail}") for check in verdict.checks]
            + [("verdict", f"{'verified' if verdict else 'not verified'} ({verdict.rigor})")]
        )
    if not verdict:
        raise typer.Exit(1)


def _verify_profiles(content: dict[str, Any], where: str, as_json: bool) -> bool:
    """Check a saved mechanism with integers, and show the result. Returns whether it holds."""
    try:
        table = load(content)
        if not isinstance(table, ProfileTable):
            raise SpecError("a saved protocol is verified where it is loaded; only profile mechanisms are shown here")
        verdict = table.worst_edge
    except ToldApart as wrong:
        verdict = wrong.verdict
    except DeniableError as wrong:
        raise type(wrong)(f"{where}: {wrong}") from None
    asked, first, second = exact.as_epsilon(content["epsilon"]), *map(shown, verdict.edge)
    detail = (
        f"{level_text(verdict.ratio)} over the edges, {'at most' if verdict else 'more than'} {epsilon_text(asked)}; "
        f"output {shown(verdict.output)} of {first} and {second} has a ratio of {ratio_words(verdict.ratio)}"
    )
    checks = [
        {"name": "rows", "holds": True, "detail": "every row holds integers that sum to 2^64"},
        {"name": "epsilon", "holds": verdict.holds, "detail": detail},
    ]
    if as_json:
        output.document(
            {
                "verified": verdict.holds,
                "rigor": "proved",
                "mechanism": content["mechanism"],
                "epsilon": _level(asked, verdict),
                "checks": checks,
            }
        )
    else:
        output.facts(
            [(str(check["name"]), f"{'holds' if check['holds'] else 'FAILS'}: {check['detail']}") for check in checks]
            + [("verdict", f"{'verified' if verdict else 'not verified'} (proved)")]
        )
    return verdict.holds


def _level(asked: Fraction, verdict: Verdict) -> dict[str, Any]:
    return {
        "asked": exact.canonical(asked),
        "realized": finite(verdict.epsilon),
        "ratio": ratio_text(verdict.ratio),
    }

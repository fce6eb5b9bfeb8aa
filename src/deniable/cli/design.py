"""`deniable design`: compute the best mechanism there is, and check the proof that it is.

extremal   two hypotheses, inline or in a file, become a mechanism and a certificate
bayes      a prior and a loss become a mechanism and a certificate
profiles   profiles in CSV, with a header "profile" and the values (one column "p" for Bernoulli), and edges in CSV, two
           names per line below a header; or both in JSON, which may come from standard input. The epsilon is the exact
           largest log-ratio over the graph's edges, of the integers that are saved
verify     a certificate or a saved profile mechanism is checked without the solver
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from deniable.channels._gains import NAMED
from deniable.channels.divergences import DIVERGENCES
from deniable.channels.levels import epsilon_text, level_text
from deniable.cli import output
from deniable.cli.options import Json, Plot, new_app
from deniable.cli.output import examples, number, ratio_text, ratio_words, save_figure, shown
from deniable.cli.progress import solving
from deniable.cli.read_channels import Names, as_floats, is_number, read_adjacency, read_matrix, read_vector
from deniable.cli.read_files import STDIN, is_json, named, read_text
from deniable.design import BlockResponse, Certificate, Design
from deniable.design.trace import Progress, summary
from deniable.errors import DeniableError, InternalError, LabelError, NumberError, ShapeError, SpecError
from deniable.exact import WORD
from deniable.labels import Label, as_labels, label_spec, load_label
from deniable.protocols import profiles as mechanisms
from deniable.protocols.profiles import ProfileGraph, ProfileMechanism, Verdict
from deniable.protocols.profiles.mechanism import off_diagonal
from deniable.specs import read_integer
from deniable.surveys.results import finite

app = new_app()

NAMES = ("smooth-one-bit", "one-bit-cluster", "smooth-categorical", "warner", "kary-response")

# So much is printed; --json has all.
_MOST_LISTED = 8
_MOST_CELLS = 12
_MOST_PROFILES = 40


@app.callback(
    epilog=examples(
        "deniable design extremal --p0 0.5,0.3,0.2 --p1 0.2,0.3,0.5 --epsilon 1",
        "deniable design extremal laws.csv --epsilon 1 --save proof.json",
        "deniable design bayes 0.45,0.45,0.1 --epsilon 1",
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
        "(laws.csv has lines: label,P0,P1)",
    )
)
def extremal(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[LAWS]",
            help="Both hypotheses: CSV lines label,P0,P1, or JSON with p0, p1 and perhaps inputs; '-' is stdin.",
            show_default=False,
        ),
    ] = None,
    p0: Annotated[
        str | None, typer.Option("--p0", metavar="LAW", help="0.5,0.5 or yes=0.5,no=0.5", show_default=False)
    ] = None,
    p1: Annotated[
        str | None, typer.Option("--p1", metavar="LAW", help="The other hypothesis.", show_default=False)
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="EPSILON", help="The privacy level of a report.", show_default=False)
    ] = None,
    divergence: Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(DIVERGENCES)}.")] = "kl",
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the certificate.", show_default=False)
    ] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Find the mechanism whose reports tell two hypotheses apart best.

    No other mechanism at this level has reports of a larger divergence: value and bound enclose the optimum.
    """
    if epsilon is None:
        raise SpecError("say how private a report has to be: --epsilon 1, for example")
    laws = _read_laws(source, p0, p1)
    with solving() as progress:
        found = designs.extremal(laws.p0, laws.p1, epsilon, divergence, laws.inputs, progress)
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
        kind, report = "a constant answer, because the hypotheses are equal", "always the same"
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
            metavar="NAME", help=f"One of {', '.join(NAMES)}; without it, the smooth one.", show_default=False
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
        made = _made(mechanism or ("smooth-one-bit" if is_bit else "smooth-categorical"), graph, epsilon, progress)
    baseline = _made("warner" if is_bit else "kary-response", graph, epsilon)
    if save is not None:
        output.save_json(save, made.spec())
    if plot is not None:
        save_figure(plot, lambda: _draw(made, baseline))
    if as_json:
        output.document(_profiles_document(made, baseline))
        return
    _print_profiles(made, baseline)
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


def _print_profiles(made: ProfileMechanism, baseline: ProfileMechanism) -> None:
    graph, verdict = made.graph, made.verdict
    first, second = map(shown, verdict.edge)
    facts = [
        ("mechanism", f"{made.name} for {graph.size} profiles of {graph.whole.width} values, {len(graph.edges)} edges"),
        ("epsilon", f"{level_text(verdict.ratio)} over the edges, at most {epsilon_text(made.asked)} as asked"),
        ("worst", f"output {shown(verdict.output)} of {first} and {second}: ratio {ratio_words(verdict.ratio)}"),
        ("largest", f"{float(made.largest):.6g} for a false report; {baseline.name} {float(baseline.largest):.6g}"),
        ("solver", summary(made.trace)),
    ]
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


def _profiles_document(made: ProfileMechanism, baseline: ProfileMechanism) -> dict[str, Any]:
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
        "profiles": [
            {"profile": label_spec(label), "false": false, "largest": largest, "baseline_false": usual}
            for label, false, largest, usual in rows
        ],
    }


# -- verify: check what was saved ----------------------------------------------------------------------


@app.command(epilog=examples("deniable design verify proof.json", "deniable design verify proof.json --json"))
def verify(
    source: Annotated[str, typer.Argument(metavar="FILE", help="A certificate or a saved mechanism, or '-'.")],
    as_json: Json = False,
) -> None:
    """Check a certificate again, without the solver: rows and ratios with integers, the bound with long decimals.

    Of a profile mechanism, rows and ratios are checked; it claims no bound. The exit code is 1 if any check fails.
    """
    content = parse_json(read_text(source), named(source))
    if isinstance(content, dict) and content.get("kind") == "table":
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
        verdict: Verdict = mechanisms.load(content).verdict
    except DeniableError as wrong:
        told = _told_apart(content)
        if told is None or told.holds:
            raise type(wrong)(f"{where}: {wrong}") from None
        verdict = told
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


def _told_apart(content: dict[str, Any]) -> Verdict | None:
    """How well the channels of a refused file tell profiles apart; None if it holds no channels."""
    try:
        rows = [
            [[Fraction(read_integer(entry), WORD) for entry in row] for row in channel] for channel in content["table"]
        ]
        return (
            mechanisms.verify(ProfileGraph.load(content["graph"]), rows, content["epsilon"])
            if content["mechanism"]
            else None
        )
    except (DeniableError, KeyError, TypeError, ValueError):
        return None


def _level(asked: Fraction, verdict: Verdict) -> dict[str, Any]:
    return {
        "asked": exact.canonical(asked),
        "realized": finite(verdict.epsilon),
        "ratio": ratio_text(verdict.ratio),
    }

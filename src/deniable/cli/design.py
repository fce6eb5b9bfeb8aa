"""`deniable design`: compute the best mechanism there is, and check the proof that it is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable import exact
from deniable.channels.divergences import DIVERGENCES
from deniable.channels.levels import epsilon_text, level_text
from deniable.cli import design_bayes, design_profiles, output
from deniable.cli.design_bayes import proven
from deniable.cli.files import is_json, named, parse_csv, parse_json, read_text
from deniable.cli.inputs import Names, read_vector
from deniable.cli.options import Json, Plot, examples
from deniable.cli.output import number, ratio_text, shown
from deniable.cli.waiting import solving
from deniable.errors import DeniableError, InternalError, NumberError, ShapeError, SpecError
from deniable.labels import as_labels, label_spec

if TYPE_CHECKING:
    from deniable.design import BlockResponse, Design

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)

_MOST_LISTED = 8


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
    from deniable import design as designs

    with solving() as progress:
        found = designs.extremal(laws.p0, laws.p1, epsilon, divergence, laws.inputs, progress)
        certificate = found.certificate
    if save is not None:
        certificate.save(save)
    if plot is not None:
        from deniable.cli.pictures import save_figure

        save_figure(plot, found.plot)
    if as_json:
        output.document(_description(found, laws))
        return
    _print(found, laws)
    for kind, path in (("saved", save), ("drawn", plot)):
        if path is not None:
            output.write(f"\n{kind}: {path}\n")


app.command(epilog=design_bayes.EXAMPLES)(design_bayes.bayes)
app.command(epilog=design_profiles.EXAMPLES)(design_profiles.profiles)


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
        if not design_profiles.verify_saved(content, named(source), as_json):
            raise typer.Exit(1)
        return
    from deniable.design import Certificate

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


# -- reading ---------------------------------------------------------------------------------------------


def _read_laws(source: str | None, p0: str | None, p1: str | None) -> _Laws:
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


# -- showing ---------------------------------------------------------------------------------------------


def _law(found: Design) -> BlockResponse:
    from deniable.design import BlockResponse

    if not isinstance(found.law, BlockResponse):
        raise InternalError("an extremal mechanism is a response over blocks")
    return found.law


def _blocks(law: BlockResponse) -> list[list[int]]:
    blocks: list[list[int]] = [[] for _ in range(law.outputs)]
    for x, block in enumerate(law.block):
        blocks[block].append(x)
    return blocks


def _print(found: Design, laws: _Laws) -> None:
    from deniable.design.trace import summary

    names = [shown(label) for label in laws.inputs or range(len(laws.p0))]
    law = _law(found)
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


def _description(found: Design, laws: _Laws) -> dict[str, Any]:
    return {
        "mechanism": found.name,
        "epsilon": {
            "asked": exact.canonical(found.epsilon),
            "realized": found.realized_epsilon,
            "ratio": ratio_text(found.ratio),
        },
        **proven(found),
        "inputs": None if laws.inputs is None else [label_spec(label) for label in laws.inputs],
        "law": _law(found).spec(),
    }

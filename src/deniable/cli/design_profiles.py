"""`deniable design profiles`: hide which profile a person's data come from, with as little noise as that takes.

Files      profiles in CSV, with a header "profile" and the values (one column "p" for Bernoulli), and edges in CSV, two
           names a line below a header; or both in JSON, which may come from standard input
Level      the exact largest log-ratio over the graph's edges, of the integers that are saved
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable import exact
from deniable.channels.levels import epsilon_text, level_text
from deniable.cli import output
from deniable.cli.files import STDIN, is_json, named, parse_csv, parse_json, read_text
from deniable.cli.options import Json, Plot, examples
from deniable.cli.output import ratio_text, ratio_words, shown
from deniable.cli.waiting import solving
from deniable.errors import DeniableError, LabelError, SpecError
from deniable.exact import WORD
from deniable.labels import label_spec
from deniable.specs import read_integer

if TYPE_CHECKING:
    from deniable.design.trace import Progress
    from deniable.protocols.profiles import ProfileGraph, ProfileMechanism, Verdict

EXAMPLES = examples(
    "deniable design profiles profiles.csv --edges edges.csv --epsilon 1",
    "deniable design profiles profiles.csv --edges edges.csv --epsilon 1 --mechanism one-bit-cluster",
    "deniable design profiles graph.json --epsilon 0.5 --save mechanism.json --plot noise.png",
    "deniable design verify mechanism.json",
    "(profiles.csv has lines profile,p or profile,P(a),P(b),... and edges.csv two profiles; both have a header)",
)

NAMES = ("smooth-one-bit", "one-bit-cluster", "smooth-categorical", "warner", "kary-response")

_MOST_LISTED, _MOST_SHOWN = 8, 40


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
        save.write_text(json.dumps(made.spec(), ensure_ascii=False) + "\n", encoding="utf-8")
    if plot is not None:
        from deniable.cli.pictures import save_figure

        save_figure(plot, lambda: _draw(made, baseline))
    if as_json:
        output.document(_description(made, baseline))
        return
    _print(made, baseline)
    for kind, path in (("saved", save), ("drawn", plot)):
        if path is not None:
            output.write(f"\n{kind}: {path}\n")


def _made(name: str, graph: ProfileGraph, epsilon: str, progress: Progress | None = None) -> ProfileMechanism:
    from deniable.protocols import profiles as known

    makers: dict[str, Callable[[ProfileGraph, str], ProfileMechanism]] = {
        "smooth-one-bit": partial(known.SmoothOneBit, progress=progress),
        "one-bit-cluster": known.OneBitCluster,
        "smooth-categorical": partial(known.SmoothCategorical, progress=progress),
        "warner": known.Warner,
        "kary-response": known.KaryResponse,
    }
    return makers[name](graph, epsilon)


def verify_saved(content: dict[str, Any], where: str, as_json: bool) -> bool:
    """Check a saved mechanism with integers and say what was found."""
    from deniable.protocols.profiles import load

    try:
        verdict: Verdict = load(content).verdict
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
    """What the channels of a refused file give away, if it holds channels at all."""
    from deniable.protocols.profiles import ProfileGraph, verify

    try:
        rows = [
            [[Fraction(read_integer(entry), WORD) for entry in row] for row in channel] for channel in content["table"]
        ]
        return verify(ProfileGraph.load(content["graph"]), rows, content["epsilon"]) if content["mechanism"] else None
    except (DeniableError, KeyError, TypeError, ValueError):
        return None


# -- reading ---------------------------------------------------------------------------------------------


def _read_graph(source: str, edges: str | None) -> ProfileGraph:
    from deniable.protocols.profiles import from_csv, from_json

    content, where = read_text(source), named(source)
    if is_json(content):
        if edges is not None:
            raise SpecError(f"{where} is JSON, which holds the edges itself: leave out --edges")
        found = parse_json(content, where)
        try:
            if not isinstance(found, dict) or not isinstance(found.get("values", []), list):
                raise SpecError('a profile graph in JSON is {"profiles": {...}, "edges": [...]}, perhaps with "values"')
            return from_json(content)
        except DeniableError as wrong:
            raise type(wrong)(f"{where}: {wrong}") from None
    if edges is None:
        raise SpecError("say which profiles must look alike: --edges edges.csv, two profiles a line below a header")
    if STDIN in (source, edges):
        raise SpecError("only JSON can come from standard input here: give the profiles and the edges as two CSV files")
    # Read once for the messages of the command line about bytes that are no text and text that is no CSV.
    parse_csv(content, where)
    parse_csv(read_text(edges), named(edges))
    return from_csv(source, edges)


# -- showing ---------------------------------------------------------------------------------------------


def _false(made: ProfileMechanism) -> list[float]:
    """How often a report is not the value, for each profile."""
    kept = (made.graph.whole.numerators * made.table.diagonal(axis1=1, axis2=2)).sum(axis=1)
    bottoms = made.graph.whole.denominators * WORD
    return [float(Fraction(int(bottom - top), int(bottom))) for top, bottom in zip(kept, bottoms, strict=True)]


def _largest(made: ProfileMechanism) -> list[float]:
    """The largest probability of one false report for one value, for each profile."""
    from deniable.protocols.profiles.mechanism import off_diagonal

    return [int(top) / WORD for top in off_diagonal(made.table).max(axis=1)]


def _print(made: ProfileMechanism, baseline: ProfileMechanism) -> None:
    from deniable.design.trace import summary

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
    count = min(graph.size, _MOST_SHOWN)
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
    """Whether both values of a bit are turned equally often, so that there is a flip probability."""
    return made.graph.whole.width == 2 and bool((made.table[:, 0, 1] == made.table[:, 1, 0]).all())


def _draw(made: ProfileMechanism, baseline: ProfileMechanism) -> Any:
    from deniable._extras import require

    _, axes = require("matplotlib.pyplot", "plot").subplots(layout="constrained")
    places = range(made.graph.size)
    axes.plot(places, _false(baseline), "--", color="#8a8f98", label=baseline.name)
    axes.plot(places, _false(made), "o", color="#2f6f9f", label=made.name)
    if made.graph.size <= _MOST_SHOWN:
        axes.set_xticks(places, [shown(label) for label in made.graph.labels], rotation=45, ha="right")
    axes.set_xlabel("profile")
    axes.set_ylabel("probability of a false report")
    axes.set_ylim(bottom=0)
    axes.set_title(f"epsilon {epsilon_text(made.asked)} over {len(made.graph.edges)} edges")
    axes.legend()
    return axes


def _level(asked: Fraction, verdict: Verdict) -> dict[str, Any]:
    return {
        "asked": exact.canonical(asked),
        "realized": output.finite(verdict.epsilon),
        "ratio": ratio_text(verdict.ratio),
    }


def _description(made: ProfileMechanism, baseline: ProfileMechanism) -> dict[str, Any]:
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

"""`deniable graph`: figures of a graph under local edge privacy, from an edge list."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable._files import atomic_write
from deniable.cli import output
from deniable.cli.options import (
    Csv,
    Json,
    Plot,
    Seed,
    argument,
    bits_from,
    named,
    new_app,
    one_format,
    option,
    read_text,
    with_options,
)
from deniable.cli.output import examples, save_figure
from deniable.protocols import graphs
from deniable.protocols.graphs import Graph, GraphFigures, read_edges
from deniable.randomness import Bits
from deniable.results.render.text import cells

app = new_app()

_File = Annotated[
    str,
    argument(
        "EDGES",
        "An edge list: two names per line (comma, tab or blanks between them), one name for a node without "
        "edges; '-' for standard input.",
    ),
]
_Epsilon = Annotated[str, option("EPSILON", "What all messages say about one edge, at most.")]
_Nodes = Annotated[
    int | None, option("N", "The nodes are the numbers from 0 to N - 1.", default="those that the file names")
]
_Rounds = Annotated[int | None, option("1|2|3", "How often nodes speak.", default="what is better for so many nodes")]
_OF_ALL = {
    "nodes": (_Nodes, None), "seed": (Seed, None), "plot": (Plot, None), "as_json": (Json, False),
    "as_csv": (Csv, False),
}  # fmt: skip

_Find = Callable[[Graph, Bits], GraphFigures]


@app.callback(
    epilog=examples(
        "deniable graph edges friends.csv --epsilon 1",
        "deniable graph triangles friends.csv --epsilon 2 --rounds 3",
        "deniable graph compare friends.csv --epsilon 1",
    )
)
def graph(ctx: typer.Context) -> None:
    """Estimate figures of a graph under local edge privacy.

    Nodes hand in noisy messages only. Figures are edges, degrees, stars, triangles and cores. Epsilon is about one
    edge, in both lists that it stands in. The command plays all nodes: each message is made of one node's list and of
    earlier messages, and the figures are made of messages alone.
    """
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


def _read(file: str, nodes: int | None) -> Graph:
    return read_edges(read_text(file), named(file), nodes)


def _show(
    find: Callable[..., _Find],
    file: str,
    nodes: int | None,
    seed: int | None,
    plot: Path | None,
    as_json: bool,
    as_csv: bool,
    **given: Any,
) -> None:
    """Read a graph, compute figures of it and print them."""
    one_format(as_json, as_csv)
    result = find(**given)(_read(file, nodes), bits_from(seed))
    if plot is not None:
        save_figure(plot, result.plot)
    if as_json:
        output.document(result.to_dict())
    elif as_csv:
        output.data(result.to_csv())
    else:
        if result.headline:
            output.heading(result.headline)
        document = result.document(further=False)
        head, body = cells(document, document.sections[0])
        output.facts([("method", result.method), ("nodes", f"{result.n:,}")])
        output.write("\n")
        output.table(["figure", *head[1:]], body)
        for note in result.notes:
            output.prose(f"{note}.")
        output.files(drawn=plot)


def _figures(*lines: str) -> Callable[[Callable[..., _Find]], Callable[..., _Find]]:
    """Makes a command of a function that says how to compute figures; the lines are examples."""

    def register(find: Callable[..., _Find]) -> Callable[..., _Find]:
        command = with_options(partial(_show, find), find, {"file": _File}, _OF_ALL)
        app.command(find.__name__, help=find.__doc__, epilog=examples(*lines))(command)
        return find

    return register


@_figures(
    "deniable graph edges friends.csv --epsilon 1",
    "deniable graph edges friends.csv --epsilon 1 --lists --json",
)
def edges(
    epsilon: _Epsilon,
    lists: Annotated[bool, typer.Option("--lists", help="From randomized lists instead of noisy counts.")] = False,
) -> _Find:
    """The number of edges."""
    method: Any = "lists" if lists else "counts"
    return lambda given, bits: graphs.edges(given, epsilon, method, bits)


@_figures(
    "deniable graph degrees friends.csv --epsilon 1",
    "deniable graph degrees friends.csv --epsilon 2 --distribution --plot degrees.png",
)
def degrees(
    epsilon: _Epsilon,
    shares: Annotated[bool, typer.Option("--distribution", help="Shares of nodes by degree.")] = False,
    cumulative: Annotated[bool, typer.Option("--cumulative", help="Shares of nodes with at most each degree.")] = False,
    largest: Annotated[
        int | None, option("N", "The largest degree that is listed.", default="the largest noisy one")
    ] = None,
) -> _Find:
    """The degree of each node, or how degrees are distributed."""

    def found(given: Graph, bits: Bits) -> GraphFigures:
        if shares or cumulative or largest is not None:
            return graphs.distribution(given, epsilon, cumulative, largest, bits)
        return graphs.degrees(given, epsilon, bits=bits)

    return found


@_figures("deniable graph stars friends.csv --epsilon 1 --k 3")
def stars(
    epsilon: _Epsilon,
    k: Annotated[int, option("K", "Neighbours in a star.", "--k", default=True)] = 2,
) -> _Find:
    """The number of k-stars: choices of k neighbours of one node."""
    return lambda given, bits: graphs.stars(given, epsilon, k, bits=bits)


@_figures(
    "deniable graph triangles friends.csv --epsilon 2",
    "deniable graph triangles friends.csv --epsilon 2 --rounds 2 --most 50",
)
def triangles(
    epsilon: _Epsilon,
    rounds: _Rounds = None,
    most: Annotated[
        int | None, option("N", "The largest degree, if that is public.", default="from noisy degrees")
    ] = None,
    share: Annotated[
        str, option("SHARE", "Share of the noisy edges that is published: less to send, more noise.", default=True)
    ] = "1",
) -> _Find:
    """The number of triangles, in one round or in several."""
    return lambda given, bits: graphs.triangles(given, epsilon, rounds, most, share, bits)


@_figures("deniable graph clustering friends.csv --epsilon 4")
def clustering(
    epsilon: _Epsilon,
    rounds: _Rounds = None,
) -> _Find:
    """The clustering coefficient.

    That is how often two neighbours of a node are neighbours.
    """
    return lambda given, bits: graphs.clustering(given, epsilon, rounds, bits)


@_figures("deniable graph core friends.csv --epsilon 4 --csv")
def core(
    epsilon: _Epsilon,
) -> _Find:
    """The core number of each node, by an interactive protocol."""
    return lambda given, bits: graphs.core(given, epsilon, bits=bits)


@app.command(epilog=examples("deniable graph synthetic friends.csv --epsilon 2 -o published.csv"))
def synthetic(
    file: _File,
    epsilon: _Epsilon,
    to: Annotated[
        Path | None, option("FILE", "Where the graph goes.", "-o", "--output", default="standard output")
    ] = None,
    nodes: _Nodes = None,
    seed: Seed = None,
) -> None:
    """A graph to publish, as an edge list.

    It is drawn from noisy degrees and lists.
    """
    made = graphs.synthetic(_read(file, nodes), epsilon, bits_from(seed))
    alone = [str(made.nodes[i]) for i, degree in enumerate(made.true_degrees.tolist()) if not degree]
    pairs = [f"{made.nodes[i]},{made.nodes[j]}" for i, j in made.edges.tolist()]
    content = "\n".join(["source,target", *pairs, *alone]) + "\n"
    if to is None:
        output.write(content)
        return
    with atomic_write(to) as out:
        out.write(content.encode())
    output.files(saved=to)


@app.command(
    epilog=examples(
        "deniable graph compare friends.csv --epsilon 1",
        "deniable graph compare friends.csv --epsilon 4 --runs 50 --csv",
    )
)
def compare(
    file: _File,
    epsilon: _Epsilon,
    runs: Annotated[int, option("N", "Repetitions of each way.", default=True, min=1)] = 20,
    nodes: _Nodes = None,
    seed: Annotated[int, option("N", "The same seed gives the same figures.", default=True)] = 0,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Compare the errors of all ways to learn each figure.

    Compares them with those of a trusted curator. Not private.
    """
    one_format(as_json, as_csv)
    found = graphs.compare(_read(file, nodes), epsilon, runs, seed)
    rows: list[list[Any]] = [[one.figure, one.way, one.truth, one.error, one.relative] for one in found]
    head = ["figure", "way", "truth", "error", "relative"]
    if as_json:
        output.document([dict(zip(head, row, strict=True)) for row in rows])
    elif as_csv:
        output.csv_table([head, *rows])
    else:
        body = [[a, b, f"{c:,.4g}", f"{d:,.3g}", f"{100 * e:.3g}%" if c else "-"] for a, b, c, d, e in rows]
        output.table(head, body, left=2)
        output.prose(
            "The truth and the errors come from the graph itself, and are not private. A curator, and noise on stars, "
            "are told the largest degree."
        )

"""`deniable graph`: figures of a graph under local edge privacy, from an edge list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable._files import atomic_write
from deniable.cli import output
from deniable.cli.options import Csv, Json, Plot, Seed, bits_from, named, new_app, one_format, read_text
from deniable.cli.output import examples, save_figure
from deniable.protocols import graphs
from deniable.protocols.graphs import Figures, Graph, read_edges
from deniable.randomness import Bits

app = new_app()

_File = Annotated[
    str,
    typer.Argument(
        metavar="EDGES",
        help="An edge list: two names per line (comma, tab or blanks between them), one name for a node without "
        "edges; '-' for standard input.",
        show_default=False,
    ),
]
_Epsilon = Annotated[
    str, typer.Option(metavar="EPSILON", help="What all messages say about one edge, at most.", show_default=False)
]
_Nodes = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="The nodes are the numbers from 0 to N - 1.", show_default="those that the file names"
    ),
]
_Rounds = Annotated[
    int | None,
    typer.Option(metavar="1|2|3", help="How often nodes speak.", show_default="what is better for so many nodes"),
]


@app.callback(
    epilog=examples(
        "deniable graph edges friends.csv --epsilon 1",
        "deniable graph triangles friends.csv --epsilon 2 --rounds 3",
        "deniable graph compare friends.csv --epsilon 1",
    )
)
def graph(ctx: typer.Context) -> None:
    """Figures of a graph whose nodes hand in noisy messages only: edges, degrees, stars, triangles, cores.

    Epsilon is about one edge, in both lists that it stands in. The command plays all nodes: each message is made of
    one node's list and of what was said before, and the figures are made of messages alone.
    """
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


@app.command(
    epilog=examples(
        "deniable graph edges friends.csv --epsilon 1",
        "deniable graph edges friends.csv --epsilon 1 --lists --json",
    )
)
def edges(
    file: _File,
    epsilon: _Epsilon,
    lists: Annotated[bool, typer.Option("--lists", help="From randomized lists instead of noisy counts.")] = False,
    nodes: _Nodes = None,
    seed: Seed = None,
    plot: Plot = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """The number of edges."""
    method: Any = "lists" if lists else "counts"
    _show(file, nodes, seed, plot, as_json, as_csv, lambda given, bits: graphs.edges(given, epsilon, method, bits))


@app.command(
    epilog=examples(
        "deniable graph degrees friends.csv --epsilon 1",
        "deniable graph degrees friends.csv --epsilon 2 --distribution --plot degrees.png",
    )
)
def degrees(
    file: _File,
    epsilon: _Epsilon,
    shares: Annotated[bool, typer.Option("--distribution", help="Shares of nodes by degree.")] = False,
    cumulative: Annotated[bool, typer.Option("--cumulative", help="Shares of nodes with at most each degree.")] = False,
    largest: Annotated[
        int | None,
        typer.Option(metavar="N", help="The largest degree that is listed.", show_default="the largest noisy one"),
    ] = None,
    nodes: _Nodes = None,
    seed: Seed = None,
    plot: Plot = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """The degree of each node, or how degrees are distributed."""

    def found(given: Graph, bits: Bits) -> Figures:
        if shares or cumulative or largest is not None:
            return graphs.distribution(given, epsilon, cumulative, largest, bits)
        return graphs.degrees(given, epsilon, bits=bits)

    _show(file, nodes, seed, plot, as_json, as_csv, found)


@app.command(epilog=examples("deniable graph stars friends.csv --epsilon 1 --k 3"))
def stars(
    file: _File,
    epsilon: _Epsilon,
    k: Annotated[int, typer.Option("--k", metavar="K", help="Neighbours in a star.")] = 2,
    nodes: _Nodes = None,
    seed: Seed = None,
    plot: Plot = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """The number of k-stars: choices of k neighbours of one node."""
    _show(file, nodes, seed, plot, as_json, as_csv, lambda given, bits: graphs.stars(given, epsilon, k, bits=bits))


@app.command(
    epilog=examples(
        "deniable graph triangles friends.csv --epsilon 2",
        "deniable graph triangles friends.csv --epsilon 2 --rounds 2 --most 50",
    )
)
def triangles(
    file: _File,
    epsilon: _Epsilon,
    rounds: _Rounds = None,
    most: Annotated[
        int | None,
        typer.Option(metavar="N", help="The largest degree, if that is public.", show_default="from noisy degrees"),
    ] = None,
    share: Annotated[
        str, typer.Option(metavar="SHARE", help="Of the noisy edges that are published: less to send, more noise.")
    ] = "1",
    nodes: _Nodes = None,
    seed: Seed = None,
    plot: Plot = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """The number of triangles, in one round or in several."""
    _show(
        *(file, nodes, seed, plot, as_json, as_csv),
        lambda given, bits: graphs.triangles(given, epsilon, rounds, most, share, bits),
    )


@app.command(epilog=examples("deniable graph clustering friends.csv --epsilon 4"))
def clustering(
    file: _File,
    epsilon: _Epsilon,
    rounds: _Rounds = None,
    nodes: _Nodes = None,
    seed: Seed = None,
    plot: Plot = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """The clustering coefficient: how often two neighbours of a node are neighbours."""
    _show(
        *(file, nodes, seed, plot, as_json, as_csv),
        lambda given, bits: graphs.clustering(given, epsilon, rounds, bits),
    )


@app.command(epilog=examples("deniable graph core friends.csv --epsilon 4 --csv"))
def core(
    file: _File,
    epsilon: _Epsilon,
    nodes: _Nodes = None,
    seed: Seed = None,
    plot: Plot = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """The core number of each node, by an interactive protocol."""
    _show(file, nodes, seed, plot, as_json, as_csv, lambda given, bits: graphs.core(given, epsilon, bits=bits))


@app.command(epilog=examples("deniable graph synthetic friends.csv --epsilon 2 -o published.csv"))
def synthetic(
    file: _File,
    epsilon: _Epsilon,
    to: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Where the graph goes.", show_default="standard output"),
    ] = None,
    nodes: _Nodes = None,
    seed: Seed = None,
) -> None:
    """A graph to publish: drawn from noisy degrees and lists, as an edge list."""
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
    runs: Annotated[int, typer.Option(metavar="N", min=1, help="Repetitions of each way.")] = 20,
    nodes: _Nodes = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same figures.")] = 0,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Errors of the ways to learn each figure of this graph, beside those of a trusted curator. Not private."""
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


def _read(file: str, nodes: int | None) -> Graph:
    return read_edges(read_text(file), named(file), nodes)


def _show(
    file: str,
    nodes: int | None,
    seed: int | None,
    plot: Path | None,
    as_json: bool,
    as_csv: bool,
    find: Callable[[Graph, Bits], Figures],
) -> None:
    one_format(as_json, as_csv)
    result = find(_read(file, nodes), bits_from(seed))
    if plot is not None:
        save_figure(plot, result.plot)
    if as_json:
        output.document(result.to_dict())
    elif as_csv:
        output.data(result.to_csv())
    else:
        if result.headline:
            output.heading(result.headline)
        rows = result.table()
        head, body = result.cells(rows)
        output.facts([("method", result.method), ("nodes", f"{result.n:,}")])
        output.write("\n")
        output.table(["figure", *head[1:]], [[output.shown(cell) for cell in row] for row in body])
        for note in result.notes:
            output.prose(f"{note}.")
        output.files(drawn=plot)

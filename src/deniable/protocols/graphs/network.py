"""A graph as its nodes hold it: each node has the list of its own neighbours, and no more.

Nodes      public: their number and their names are known to everybody, also those without edges
Edges      secret: an edge joins two different nodes, stands in the lists of both, and has no direction
Sources    pairs of names, an array of pairs of numbers, a networkx graph, or an edge list in a text file
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable._files import parse_csv
from deniable.errors import LabelError, ShapeError
from deniable.labels import Label, as_label, as_labels, index_of, label_key

Nodes = NDArray[np.int64]


class Graph:
    """Nodes with their lists of neighbours. Immutable.

    Args:
        edges: Pairs of nodes.
        nodes: All nodes, or their number (0, 1, 2, ...); those with edges if None.

    Raises:
        ShapeError: The edges are not pairs.
        LabelError: A node is unknown, or an edge joins a node to itself.

    >>> friends = Graph([("Ann", "Bob"), ("Bob", "Cem")], nodes=["Ann", "Bob", "Cem", "Dee"])
    >>> friends.size, friends.edge_count, [friends.nodes[i] for i in friends.neighbours(1)]
    (4, 2, ['Ann', 'Cem'])
    """

    nodes: tuple[Label, ...] | range
    edges: Nodes

    def __init__(self, edges: Any = (), nodes: Iterable[Any] | int | None = None) -> None:
        named, pairs = _read(edges, nodes)
        loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
        if loops.size:
            raise LabelError(
                f"the node {named[int(pairs[loops[0], 0])]!r} has an edge to itself: an edge joins two different nodes"
            )
        self.__dict__["nodes"] = named
        self.__dict__["edges"] = np.unique(np.sort(pairs, axis=1), axis=0)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a graph does not change: build a new one instead of setting {name!r}")

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.nodes)

    @property
    def edge_count(self) -> int:
        """The true number of edges, which nobody sees who hears messages only."""
        return len(self.edges)

    @cached_property
    def _lists(self) -> tuple[Nodes, Nodes]:
        """Where each node's list begins, and the lists one after the other, each in rising order."""
        both = np.concatenate([self.edges, self.edges[:, ::-1]])
        order = np.lexsort((both[:, 1], both[:, 0]))
        starts = np.zeros(self.size + 1, dtype=np.int64)
        np.cumsum(np.bincount(both[:, 0], minlength=self.size), out=starts[1:])
        return starts, both[order, 1]

    @property
    def true_degrees(self) -> Nodes:
        """How many neighbours each node has."""
        return np.diff(self._lists[0])

    def neighbours(self, node: int) -> Nodes:
        """The list that this node holds: places of its neighbours, in rising order."""
        starts, listed = self._lists
        return listed[starts[node] : starts[node + 1]]

    def lists(self) -> Iterator[tuple[int, Nodes]]:
        """Each node's place with its own list."""
        return ((node, self.neighbours(node)) for node in range(self.size))

    def to_networkx(self) -> Any:
        """The graph for networkx, which must be installed."""
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from((self.nodes[i], self.nodes[j]) for i, j in self.edges.tolist())
        return graph

    def __repr__(self) -> str:
        return f"<Graph of {self.size} nodes and {self.edge_count} edges>"


def as_graph(graph: Any) -> Graph:
    """A `Graph` as it is; pairs and networkx graphs are read."""
    return graph if isinstance(graph, Graph) else Graph(graph)


def read_edges(content: str, where: str, nodes: int | None = None) -> Graph:
    """An edge list: two names per line, with a comma, semicolon, tab or blanks between them; one name is a node alone.

    Lines that begin with # are left out, and so is a first line "source,target".
    Errors give the number of the line.

    Args:
        content: The text.
        where: Name of the source, for error messages.
        nodes: Number of nodes, if names are numbers below it.

    Returns:
        The graph.

    Raises:
        SpecError: A line cannot be read.
        ShapeError: A line does not have one or two names.

    >>> read_edges("# friends\\nAnn Bob\\nBob Cem\\nDee\\n", "this text")
    <Graph of 4 nodes and 2 edges>
    """
    kept = "\n".join("" if line.lstrip().startswith("#") else line for line in content.splitlines())
    if not any(mark in kept for mark in ",;\t"):
        kept = "\n".join(",".join(line.split()) for line in kept.split("\n"))
    rows = parse_csv(kept, where) if kept.strip() else []
    if rows and tuple(cell.lower() for cell in rows[0][1]) in _HEADERS:
        rows = rows[1:]
    names: dict[str, None] = {}
    pairs = []
    for number, row in rows:
        cells = [cell for cell in row if cell]
        if len(cells) > 2:
            raise ShapeError(
                f"line {number} of {where} has {len(cells)} cells: an edge is two names, a node alone is one"
            )
        names.update(dict.fromkeys(cells))
        pairs += [tuple(cells)] if len(cells) == 2 else []
    if nodes is None:
        return Graph(pairs, list(names))
    try:
        return Graph([(int(a), int(b)) for a, b in pairs], nodes)
    except ValueError as wrong:
        if isinstance(wrong, LabelError):
            raise
        raise ShapeError(f"{where} names its nodes by words: leave out the number of nodes") from None


def load_edges(path: str | Path, nodes: int | None = None) -> Graph:
    """The graph of an edge list in a file (see `read_edges`).

    Args:
        path: The file.
        nodes: Number of nodes, if names are numbers below it.

    Returns:
        The graph.
    """
    return read_edges(Path(path).read_text(encoding="utf-8-sig"), repr(str(path)), nodes)


_HEADERS = {("source", "target"), ("from", "to")}


def _read(edges: Any, nodes: Any) -> tuple[tuple[Label, ...] | range, Nodes]:
    if isinstance(edges, Graph):
        edges, nodes = [(edges.nodes[i], edges.nodes[j]) for i, j in edges.edges.tolist()], nodes or edges.nodes
    if hasattr(edges, "nodes") and hasattr(edges, "edges"):  # networkx
        if edges.is_directed():
            raise ShapeError("the edges of this graph have directions: give graph.to_undirected()")
        nodes = list(edges.nodes) if nodes is None else nodes
        edges = [edge[:2] for edge in edges.edges]
    if isinstance(nodes, int | np.integer) and not isinstance(nodes, bool):
        return _numbered(edges, exact.whole(nodes, "the number of nodes"))
    try:
        pairs = [(as_label(a), as_label(b)) for a, b in edges]
    except (TypeError, ValueError) as wrong:
        if isinstance(wrong, LabelError):
            raise
        raise ShapeError("a graph is a list of pairs of nodes, a networkx graph or an edge list in a file") from None
    if nodes is None:
        found = {label_key(end): end for pair in pairs for end in pair}
        labels = tuple(found.values())
    else:
        listed = list(nodes)
        labels = as_labels(listed, len(listed), "node")
    index = index_of(labels)
    flat = [index.get(label_key(end), -1) for pair in pairs for end in pair]
    places = np.array(flat, dtype=np.int64).reshape(-1, 2)
    unknown = np.argwhere(places < 0)
    if unknown.size:
        row, side = unknown[0]
        raise LabelError(f"the end of an edge {pairs[row][side]!r} is not one of the {len(labels)} nodes")
    return labels, places


def _numbered(edges: Any, size: int) -> tuple[range, Nodes]:
    try:
        places = np.asarray(edges if hasattr(edges, "__len__") else list(edges))
        places = places.reshape(-1, 2) if places.size else np.empty((0, 2), dtype=np.int64)
    except (TypeError, ValueError):
        raise ShapeError("edges of numbered nodes are pairs of whole numbers") from None
    if size < 0 or not np.issubdtype(places.dtype, np.integer):
        raise ShapeError("edges of numbered nodes are pairs of whole numbers")
    if places.size and not (int(places.min()) >= 0 and int(places.max()) < size):
        raise LabelError(f"an edge names a node that is not one of 0 to {size - 1}")
    return range(size), places.astype(np.int64)

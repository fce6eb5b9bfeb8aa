"""Who must be hard to tell apart: all pairs, neighbours on a line, on a graph, or by a metric.

all        every pair of inputs: local differential privacy
line       input i beside input i + 1 (or up to `reach` steps away): counting queries
hamming    tuples or texts of one length, distance = number of places that differ
graph      the edges given, as pairs of labels
metric     any distance d(x, x') > 0: the ratio must stay below e^(epsilon d), called d-privacy

Each is a list of pairs with a distance; pairs that follow from others (chains on a line) are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from deniable.errors import LabelError, NumberError, ShapeError, SpecError
from deniable.exact import fraction, whole
from deniable.labels import Label, as_label, index_of, label_key, label_spec, load_label

Pair = tuple[int, int, Fraction]
Metric = Callable[[Any, Any], Any]
_ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Adjacency:
    """A named relation; `pairs(inputs)` lists unordered pairs of positions with their distances."""

    kind: str
    reach: int = 1
    edges: tuple[tuple[Label, Label], ...] = ()
    metric: Metric | None = None

    def pairs(self, inputs: Sequence[Label]) -> Iterator[Pair]:
        if self.kind == "line":
            return self._line(len(inputs))
        if self.kind == "graph":
            return self._graph(inputs)
        if self.kind == "hamming":
            return self._metric(inputs, hamming)
        if self.metric is not None:
            return self._metric(inputs, self.metric)
        return ((i, j, _ONE) for i, j in combinations(range(len(inputs)), 2))

    def neighbours(self, inputs: Sequence[Label]) -> Iterator[tuple[int, int]]:
        """The pairs at distance 1 or less, without a look at all pairs where the relation allows it."""
        if self.kind == "hamming":
            return _one_place_apart(inputs)
        return ((i, j) for i, j, distance in self.pairs(inputs) if distance <= 1)

    def _line(self, size: int) -> Iterator[Pair]:
        for i in range(size):
            for j in range(i + 1, min(i + self.reach, size - 1) + 1):
                yield i, j, _ONE

    def _graph(self, inputs: Sequence[Label]) -> Iterator[Pair]:
        index = index_of(inputs)
        for edge in self.edges:
            for end in edge:
                if label_key(end) not in index:
                    raise LabelError(f"the graph has an edge at {end!r}, which is not an input of the channel")
            i, j = (index[label_key(end)] for end in edge)
            if i != j:
                yield i, j, _ONE

    def _metric(self, inputs: Sequence[Label], metric: Metric) -> Iterator[Pair]:
        for i, j in combinations(range(len(inputs)), 2):
            distance = fraction(metric(inputs[i], inputs[j]), "a distance")
            if distance <= 0:
                raise NumberError(f"the distance between {inputs[i]!r} and {inputs[j]!r} must be positive")
            yield i, j, distance

    def key(self) -> Hashable:
        """What makes two relations the same; unlike `==` it keeps True and 1 apart."""
        return self.kind, self.reach, tuple((label_key(a), label_key(b)) for a, b in self.edges), self.metric

    def spec(self) -> Any:
        """JSON for all but a function: that one cannot be written down."""
        if self.kind == "graph":
            return {"graph": [[label_spec(a), label_spec(b)] for a, b in self.edges]}
        if self.kind == "line" and self.reach != 1:
            return {"line": self.reach}
        if self.metric is not None:
            raise SpecError("a metric given as a function has no spec: use 'line', 'hamming' or a graph")
        return self.kind

    def __str__(self) -> str:
        if self.kind == "line":
            return "neighbours on the line" if self.reach == 1 else f"up to {self.reach} steps on the line"
        if self.kind == "graph":
            return f"a graph of {len(self.edges)} edges"
        return {"all": "all pairs", "hamming": "Hamming distance"}.get(self.kind, "a metric")


ALL = Adjacency("all")
LINE = Adjacency("line")
HAMMING = Adjacency("hamming")


def line(reach: int = 1) -> Adjacency:
    """Neighbours at most `reach` steps apart."""
    steps = whole(reach, "the reach")
    if steps < 1:
        raise NumberError(f"neighbours on a line are at least 1 step apart, not {steps}")
    return Adjacency("line", reach=steps)


def hamming(a: Any, b: Any) -> int:
    """Number of places in which two tuples or texts of one length differ.

    >>> hamming("0110", "0011")
    2
    """
    _check_places(a, b)
    return sum(label_key(x) != label_key(y) for x, y in zip(a, b, strict=True))


def _check_places(a: Any, b: Any) -> None:
    if not (isinstance(a, tuple | str) and isinstance(b, tuple | str)) or len(a) != len(b):
        raise ShapeError("Hamming distance needs labels that are tuples or texts of one length")


def _one_place_apart(inputs: Sequence[Label]) -> Iterator[tuple[int, int]]:
    """Labels that are equal but for one place meet in a bucket named after that place and the rest."""
    keys: list[Any] = [label if isinstance(label, str) else label_key(label) for label in inputs]
    for label in inputs:
        _check_places(inputs[0], label)
    for place in range(len(keys[0])):
        buckets: dict[Hashable, list[int]] = {}
        for i, key in enumerate(keys):
            buckets.setdefault(key[:place] + key[place + 1 :], []).append(i)
        for members in buckets.values():
            yield from combinations(members, 2)


def as_adjacency(value: Any) -> Adjacency:
    """'all', 'line', 'hamming', a list of edges, anything with `.edges` (networkx), or a distance function."""
    if isinstance(value, Adjacency):
        return value
    if isinstance(value, str):
        named = {"all": ALL, "line": LINE, "hamming": HAMMING}
        if value not in named:
            raise LabelError(f"there is no adjacency {value!r}: use 'all', 'line', 'hamming', edges or a function")
        return named[value]
    if isinstance(value, dict):
        return _load(value)
    edges = getattr(value, "edges", value)
    if callable(edges) and not hasattr(edges, "__iter__"):
        return Adjacency("metric", metric=value)
    try:
        pairs = [(a, b) for a, b in edges]
    except (TypeError, ValueError):
        raise ShapeError("a graph is a list of edges, each a pair of labels") from None
    return Adjacency("graph", edges=tuple((as_label(a), as_label(b)) for a, b in pairs))


def _load(spec: dict[str, Any]) -> Adjacency:
    match spec:
        case {"line": int(reach), **rest} if not rest:
            return line(reach)
        case {"graph": list(edges), **rest} if not rest and all(isinstance(edge, list) for edge in edges):
            return as_adjacency([tuple(load_label(end) for end in edge) for edge in edges])
    raise SpecError("the adjacency in the spec is none of 'all', 'line', 'hamming', {line: reach}, {graph: edges}")

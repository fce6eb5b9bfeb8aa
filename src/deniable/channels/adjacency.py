"""Which inputs must be hard to distinguish, and the pair and output that determine a channel's epsilon.

all        every pair of inputs: local differential privacy
line       input i next to input i + 1 (or up to `reach` steps away): counting queries
hamming    tuples or texts of equal length, distance = number of positions that differ
graph      the edges given, as pairs of labels
metric     any distance d(x, x') > 0: the ratio must stay below e^(epsilon d), called d-privacy

Each is a list of pairs with a distance; pairs implied by others (chains on a line) are left out.
A witness is the worst pair of a channel with the output that proves it, found with integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.errors import LabelError, NumberError, ShapeError, SpecError
from deniable.exact import fraction, whole
from deniable.labels import Label, as_label, index_of, label_key, label_spec, load_label

if TYPE_CHECKING:
    from deniable.channels.channel import Channel


Pair = tuple[int, int, Fraction]
Metric = Callable[[Any, Any], Any]
_ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Adjacency:
    """A named relation; `pairs(inputs)` lists unordered pairs of positions with their distances.

    Args:
        kind: Name of the relation, such as "all", "line" or "hamming".
        reach: Largest number of steps between neighbours on a line.
        edges: The neighbouring pairs, if they are listed.
        metric: Function of two inputs that returns their distance, if the relation is a metric.
    """

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
        """The pairs at distance 1 or less, without enumerating all pairs if the relation allows it."""
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
        """Identifies the relation; unlike `==` it distinguishes True and 1."""
        return self.kind, self.reach, tuple((label_key(a), label_key(b)) for a, b in self.edges), self.metric

    def spec(self) -> Any:
        """JSON for every relation except a function, which cannot be serialized."""
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
    """Neighbours at most `reach` steps apart.

    Args:
        reach: Largest number of steps between neighbours.

    Returns:
        An adjacency for ordered inputs.

    Raises:
        NumberError: `reach` is below 1.
    """
    steps = whole(reach, "the reach")
    if steps < 1:
        raise NumberError(f"neighbours on a line are at least 1 step apart, not {steps}")
    return Adjacency("line", reach=steps)


def hamming(a: Any, b: Any) -> int:
    """Number of positions in which two tuples or texts of equal length differ.

    Args:
        a: A tuple or a text.
        b: Another one of the same length.

    Returns:
        The Hamming distance.

    >>> hamming("0110", "0011")
    2
    """
    _check_places(a, b)
    return sum(label_key(x) != label_key(y) for x, y in zip(a, b, strict=True))


def _check_places(a: Any, b: Any) -> None:
    if not (isinstance(a, tuple | str) and isinstance(b, tuple | str)) or len(a) != len(b):
        raise ShapeError("Hamming distance needs labels that are tuples or texts of one length")


def _one_place_apart(inputs: Sequence[Label]) -> Iterator[tuple[int, int]]:
    """Labels that differ in one position meet in a bucket named after that position and the rest."""
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
    raise SpecError("the adjacency in the spec is not one of 'all', 'line', 'hamming', {line: reach}, {graph: edges}")


# -- the witness: the pair of inputs that an output distinguishes best ------------------------------------


Integers = NDArray[np.object_]

_BITS = 128


@dataclass(frozen=True, slots=True)
class Witness:
    """The pair of inputs that an output distinguishes best, and the ratio.

    Args:
        inputs: The two inputs.
        output: The output that distinguishes them best.
        ratio: Ratio of the output's probabilities under the two inputs.
        distance: Distance of the inputs under the adjacency.
    """

    inputs: tuple[Label, Label]
    output: Label
    ratio: Fraction | float
    distance: Fraction = Fraction(1)

    @property
    def epsilon(self) -> float:
        return math.inf if isinstance(self.ratio, float) else exact.log(self.ratio) / float(self.distance)


def worst_of_all(channel: Channel) -> Witness:
    """Over all pairs, the worst ratio of a column is its largest entry over its smallest."""
    high, low = channel.numerators.max(axis=0), channel.numerators.min(axis=0)
    column = _largest_ratio(high, low)
    entries = list(channel.numerators[:, column])
    pair = channel.inputs[entries.index(high[column])], channel.inputs[entries.index(low[column])]
    return Witness(pair, channel.outputs[column], _ratio(high[column], low[column]))


def pair_witnesses(channel: Channel, relation: Adjacency) -> Iterator[Witness]:
    """For each adjacent pair, the output that distinguishes them best."""
    for i, j, distance in relation.pairs(channel.inputs):
        yield channel._told_apart(i, j, distance)


def told_apart(channel: Channel, i: int, j: int, distance: Fraction) -> Witness:
    """The output that distinguishes two inputs best, found by comparing their rows."""
    a, b = channel.numerators[i], channel.numerators[j]
    high, low = np.maximum(a, b), np.minimum(a, b)
    column = _largest_ratio(high, low)
    first, second = (i, j) if a[column] >= b[column] else (j, i)
    pair = channel.inputs[first], channel.inputs[second]
    return Witness(pair, channel.outputs[column], _ratio(high[column], low[column]), distance)


def worst_pairs(channel: Channel, relation: Adjacency) -> Iterable[Witness]:
    """The worst pair at each distance, found without logarithms."""
    worst: dict[Fraction, Witness] = {}
    for pair in pair_witnesses(channel, relation):
        if pair.distance not in worst or pair.ratio > worst[pair.distance].ratio:
            worst[pair.distance] = pair
        if isinstance(pair.ratio, float):
            return [pair]
    return worst.values()


def smallest_factor(p: Sequence[int], q: Sequence[int], delta: Fraction) -> Fraction | float:
    """The smallest r >= 1 with P(S) <= r Q(S) + delta for every set S of outputs; `math.inf` if no r suffices.

    The weights have one total, and delta is a fraction of it. The worst sets hold the outputs with the largest p / q.

    >>> smallest_factor([97, 2, 1], [2, 98, 0], Fraction(1, 100)), smallest_factor([3, 1], [1, 3], Fraction(0))
    (Fraction(97, 2), Fraction(3, 1))
    """
    scale = delta.denominator
    above = sum(scale * a for a, b in zip(p, q, strict=True) if not b) - delta.numerator * sum(p)
    if above > 0:
        return math.inf
    # Different quotients of such numbers differ by more than 2^-places, so these integers are in the same order.
    places = 2 * max(q).bit_length()
    shared = sorted(((a << places) // b, a, b) for a, b in zip(p, q, strict=True) if b)
    worst, bottom, below = scale, scale, 0
    for _, a, b in reversed(shared):
        above, below = above + scale * a, below + scale * b
        if above * bottom > worst * below:
            worst, bottom = above, below
    return Fraction(worst, bottom)


def largest_factor(rows: Sequence[Sequence[int]], delta: Fraction) -> Fraction | float:
    """The largest `smallest_factor` of two rows, in either order."""
    array = np.array(rows, dtype=object)
    free = delta.numerator * sum(rows[0])
    worst: Fraction | float = Fraction(1)
    for p in rows:
        # A short number no larger than the worst so far: rows within it need no exact computation.
        held = exact.floor_to_bits(Fraction(worst), _BITS)
        excess = np.maximum(np.array(p, dtype=object) * held.denominator - array * held.numerator, 0).sum(axis=1)
        for j in np.flatnonzero(excess * delta.denominator > free * held.denominator).tolist():
            worst = max(worst, smallest_factor(p, rows[j], delta))
            if isinstance(worst, float):
                return worst
    return worst


def related_factor(
    channel: Channel, pairs: Iterable[tuple[Mapping[int, Fraction], Mapping[int, Fraction]]], delta: Fraction
) -> Fraction | float:
    """The largest `smallest_factor` over these pairs of inputs, each given as weights of the channel's rows."""
    worst: Fraction | float = Fraction(1)
    for pair in pairs:
        bottom = math.lcm(*(weight.denominator for one in pair for weight in one.values()))
        laws = [sum(int(weight * bottom) * channel.numerators[i] for i, weight in one.items()) for one in pair]
        worst = max(worst, smallest_factor(list(laws[0]), list(laws[1]), delta))
    return worst


def _ratio(high: int, low: int) -> Fraction | float:
    return math.inf if low == 0 else Fraction(int(high), int(low))


def _largest_ratio(high: Integers, low: Integers) -> int:
    """The column in which high / low is largest, compared without division; columns of zeros do not count."""
    best = -1
    for column in np.flatnonzero(high > 0):
        if best < 0 or high[column] * low[best] > high[best] * low[column]:
            best = int(column)
        if low[best] == 0:
            break
    return best

"""A graph of profiles: which distributions must not be told apart, and whether channels keep that.

Profile    a Bernoulli parameter, or the probabilities of d values; held as exact fractions (0.1 is 1/10)
Edge       an unordered pair of profiles whose outputs must look alike; no edge, no protection
Part       a connected component: no edge leaves it, so mechanisms are designed for each part on its own
Public     profiles and edges are known to everybody; the secret is which profile a person's data come from
Source     Geumlek and Chaudhuri 2019, definition 2

Graphs are read from files, from networkx, and from data that are public:

CSV        profiles: a header "profile" and the values, then one profile per line (one column "p" for Bernoulli);
           edges: a header, then two profile names per line
JSON       {"profiles": {name: probabilities}, "edges": [[name, name], ...]}, or what `ProfileGraph.spec` gives
Numbers    are read as they are written: 0.1 is 1/10, and "1/3" is allowed
From data  histograms of other people's data are NOT private: they may only be made of data that are public

Whether per-profile channels keep (G, epsilon) is decided with integers, whatever made the channels:

Law        the output of profile i is P_i A^i, an exact vector
Privacy    for every edge (i, j) and output y, (P_i A^i)_y <= e^epsilon (P_j A^j)_y, and the other way round
Exact      the ratio is a fraction; e^epsilon is bracketed by rationals until the comparison is settled
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable._files import parse_csv, parse_json, read_json
from deniable.channels import Channel
from deniable.domains import Categories, ListedDomain, as_listed
from deniable.errors import LabelError, NumberError, ProbabilityError, ShapeError, SpecError
from deniable.exact import fraction, shown
from deniable.labels import Label, as_label, as_labels, index_of, label_key, label_spec, load_label

Integers = NDArray[np.object_]
Positions = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Part:
    """Some profiles of a graph, as integers: profile i is numerators[i] / denominators[i]."""

    members: Positions
    numerators: Integers
    denominators: Integers
    edges: Positions
    """Pairs of places within `members`, one pair per row."""

    @property
    def size(self) -> int:
        return len(self.members)

    @property
    def width(self) -> int:
        return int(self.numerators.shape[1])

    @cached_property
    def profiles(self) -> Floats:
        view: Floats = (self.numerators / self.denominators[:, None]).astype(np.float64)
        return view

    def law(self, place: int) -> tuple[Fraction, ...]:
        bottom = self.denominators[place]
        return tuple(Fraction(int(top), int(bottom)) for top in self.numerators[place])


class ProfileGraph:
    """Profiles with the pairs that must look alike. Immutable.

    Args:
        profiles: Distribution of the values for each profile, by name; a number is the probability of 1.
        edges: Pairs of profiles that must look alike.
        values: The values; 0, 1, 2, ... if None.

    Raises:
        ShapeError: There are fewer than two profiles, or the distributions differ in length.

    >>> graph = ProfileGraph({"north": 0.1, "south": 0.4, "harbour": 0.5}, [("north", "south")])
    >>> graph.size, graph.values, len(graph.parts)
    (3, (0, 1), 2)
    """

    labels: tuple[Label, ...]
    domain: ListedDomain
    whole: Part

    def __init__(self, profiles: Any, edges: Any, values: Iterable[Any] | ListedDomain | None = None) -> None:
        names, rows, own = _read_profiles(profiles)
        if len(rows) < 2:
            raise ShapeError(
                f"a profile graph needs at least 2 profiles, not {len(rows)}: one has nobody to hide among"
            )
        labels = as_labels(names, len(rows), "profile")
        laws = [_read_law(row, label) for row, label in zip(rows, labels, strict=True)]
        width = len(laws[0])
        for label, law in zip(labels, laws, strict=True):
            if len(law) != width:
                raise ShapeError(
                    f"profile {label!r} has {len(law)} values, profile {labels[0]!r} has {width}: all need the same"
                )
        if width < 2:
            raise ShapeError("a profile needs at least 2 values: with one there is nothing to report")
        listed = own if values is None else list(values.labels if isinstance(values, ListedDomain) else values)
        if listed is not None and len(listed) != width:
            raise ShapeError(f"there are {len(listed)} names of values for profiles of {width} values")
        self.__dict__["labels"] = labels
        named = values if isinstance(values, ListedDomain) else width if listed is None else listed
        self.__dict__["domain"] = as_listed(named)
        self.__dict__["whole"] = _integers(laws, _read_edges(edges, labels))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a profile graph does not change: build a new one instead of setting {name!r}")

    # -- common shapes -----------------------------------------------------------------------------

    @classmethod
    def chain(cls, profiles: Any, values: Iterable[Any] | None = None) -> Self:
        """Each profile beside the next one, in the order given.

        >>> ProfileGraph.chain([0, 0.5, 1]).edges
        ((0, 1), (1, 2))
        """
        return cls(profiles, pairwise(_read_profiles(profiles)[0]), values)

    @classmethod
    def complete(cls, profiles: Any, values: Iterable[Any] | None = None) -> Self:
        """Every two profiles must look alike."""
        return cls(profiles, combinations(_read_profiles(profiles)[0], 2), values)

    @classmethod
    def clusters(cls, groups: Mapping[Any, Mapping[Any, Any]], values: Iterable[Any] | None = None) -> Self:
        """Groups of named profiles: alike within a group, and free to differ between groups.

        >>> ProfileGraph.clusters({"north": {"A": 0.1, "B": 0.2}, "south": {"C": 0.7, "D": 0.9}}).edges
        (('A', 'B'), ('C', 'D'))
        """
        if not isinstance(groups, Mapping) or not all(isinstance(group, Mapping) for group in groups.values()):
            raise ShapeError("clusters are given as {group: {profile: probabilities}}")
        profiles: dict[Any, Any] = {}
        for group in groups.values():
            for name in group:
                if name in profiles:
                    raise LabelError(f"the profile {name!r} stands in two clusters")
            profiles.update(group)
        return cls(profiles, [pair for group in groups.values() for pair in combinations(group, 2)], values)

    # -- what it holds -----------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of profiles."""
        return len(self.labels)

    @property
    def values(self) -> tuple[Label, ...]:
        """What data can be; 0 and 1 for Bernoulli profiles."""
        return tuple(self.domain.labels)

    @property
    def profiles(self) -> Floats:
        """Float view: one profile a row."""
        return self.whole.profiles

    def profile(self, label: Any) -> tuple[Fraction, ...]:
        """The exact probabilities of one profile."""
        return self.whole.law(self.position(label))

    @property
    def edges(self) -> tuple[tuple[Label, Label], ...]:
        return tuple((self.labels[i], self.labels[j]) for i, j in self.whole.edges.tolist())

    def position(self, label: Any) -> int:
        return _position_of(self._index, label, "profile")

    @cached_property
    def _index(self) -> dict[Any, int]:
        return index_of(self.labels)

    @cached_property
    def names(self) -> ListedDomain:
        """The labels of the profiles, as a domain."""
        return Categories(self.labels)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The connected components; a profile without edges is one by itself."""
        roots = _components(self.size, self.whole.edges)
        order = np.argsort(roots, kind="stable")
        starts = np.flatnonzero(np.diff(roots[order], prepend=-1))
        edge_order = np.argsort(roots[self.whole.edges[:, 0]], kind="stable")
        edge_roots = roots[self.whole.edges[edge_order, 0]]
        place = np.empty(self.size, dtype=np.int64)
        parts = []
        for members in np.split(order, starts[1:]):
            place[members] = np.arange(members.size)
            root = roots[members[0]]
            first, last = np.searchsorted(edge_roots, [root, root + 1])
            edges = place[self.whole.edges[np.sort(edge_order[first:last])]]
            parts.append(Part(members, self.whole.numerators[members], self.whole.denominators[members], edges))
        return tuple(parts)

    # -- identity ----------------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        """JSON that gives this graph again: `ProfileGraph.load(spec)`."""
        return {
            "kind": "profile-graph",
            "version": 1,
            "values": [label_spec(value) for value in self.values],
            "labels": [label_spec(label) for label in self.labels],
            "profiles": [[str(entry) for entry in self.whole.law(i)] for i in range(self.size)],
            "edges": self.whole.edges.tolist(),
        }

    @classmethod
    def load(cls, spec: Any) -> Self:
        match spec:
            case {
                "kind": "profile-graph",
                "version": 1,
                "values": list(values),
                "labels": list(labels),
                "profiles": list(rows),
                "edges": list(edges),
                **rest,
            } if not rest:
                names = [load_label(label) for label in labels]
                try:
                    pairs = [(names[i], names[j]) for i, j in edges]
                    profiles = dict(zip(names, rows, strict=True))
                except (TypeError, ValueError, IndexError):
                    raise SpecError("the spec's edges are pairs of places in its list of labels") from None
                return cls(profiles, pairs, [load_label(value) for value in values])
        raise SpecError("a profile graph's spec has kind, version 1, values, labels, profiles and edges")

    def __eq__(self, other: object) -> bool:
        return self.spec() == other.spec() if isinstance(other, ProfileGraph) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.labels, self.edges))

    def __repr__(self) -> str:
        edges = len(self.whole.edges)
        return f"<ProfileGraph of {self.size} profiles on {self.whole.width} values, {edges} edges>"


def _integers(laws: list[list[Fraction]], edges: Positions) -> Part:
    bottoms = [math.lcm(*(entry.denominator for entry in law)) for law in laws]
    numerators = np.empty((len(laws), len(laws[0])), dtype=object)
    numerators[:] = [[int(entry * bottom) for entry in law] for law, bottom in zip(laws, bottoms, strict=True)]
    denominators = np.empty(len(laws), dtype=object)
    denominators[:] = bottoms
    return Part(np.arange(len(laws)), numerators, denominators, edges)


def _components(size: int, edges: Positions) -> Positions:
    """The smallest member of each profile's component."""
    parent = list(range(size))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, j in edges.tolist():
        a, b = root(i), root(j)
        parent[max(a, b)] = min(a, b)
    return np.array([root(i) for i in range(size)], dtype=np.int64)


# -- what people give for profiles and edges ------------------------------------------------------------

# A row of floats that is off by more than this was not meant to be a distribution.
_ROUNDING = Fraction(1, 10**9)


def _read_profiles(profiles: Any) -> tuple[list[Any], list[Any], list[Any] | None]:
    """Labels, rows, and the names of values where the profiles bring them."""
    if isinstance(profiles, Mapping):
        rows = list(profiles.values())
        if rows and all(isinstance(row, Mapping) for row in rows):
            values = list(rows[0])
            keys = {label_key(as_label(value)) for value in values}
            for name, row in profiles.items():
                if {label_key(as_label(value)) for value in row} != keys:
                    raise ShapeError(f"profile {name!r} has other values than the first profile: all need the same")
            return list(profiles), [[row[value] for value in values] for row in rows], values
        return list(profiles), rows, None
    if isinstance(profiles, str) or not hasattr(profiles, "__iter__"):
        raise ShapeError("profiles are a dictionary, a list or an array, one entry a profile")
    rows = list(profiles)
    return list(range(len(rows))), rows, None


def _read_law(row: Any, label: Label) -> list[Fraction]:
    """A profile read exactly; a lone number is a Bernoulli parameter, the probability of 1."""
    what = f"profile {label!r}"
    if isinstance(row, str) or not hasattr(row, "__iter__"):
        chance = fraction(row, what)
        if not 0 <= chance <= 1:
            raise ProbabilityError(f"{what} has the parameter {shown(chance)}: a probability lies between 0 and 1")
        return [1 - chance, chance]
    entries = [fraction(entry, f"an entry of {what}") for entry in row]
    if entries and min(entries) < 0:
        raise ProbabilityError(f"{what} has a negative entry ({shown(min(entries))})")
    total = sum(entries, Fraction(0))
    if abs(total - 1) > _ROUNDING:
        raise ProbabilityError(f"{what} sums to {shown(total)}, not to 1: divide it by its sum")
    return [entry / total for entry in entries]


def _read_edges(edges: Any, labels: tuple[Label, ...]) -> NDArray[np.int64]:
    index = index_of(labels)
    try:
        listed = [(a, b) for a, b in getattr(edges, "edges", edges)]
    except (TypeError, ValueError):
        raise ShapeError("edges are a list of pairs of profile labels") from None
    found: dict[tuple[int, int], None] = {}
    for a, b in listed:
        i, j = (_position_of(index, end, "end of an edge") for end in (a, b))
        if i == j:
            raise LabelError(f"the profile {a!r} has an edge to itself: an edge joins two different profiles")
        found[min(i, j), max(i, j)] = None
    if not found:
        raise ShapeError("the graph has no edges, so it protects nobody: join the profiles that must look alike")
    return np.array(list(found), dtype=np.int64)


def _position_of(index: dict[Any, int], label: Any, what: str) -> int:
    place = index.get(label_key(as_label(label)))
    if place is None:
        raise LabelError(f"the {what} {label!r} is not one of the {len(index)} profiles")
    return place


def from_networkx(graph: Any, profile: str = "profile") -> ProfileGraph:
    """From any object with networkx's `nodes` and `edges`; each node's attribute `profile` is its distribution.

    Args:
        graph: A graph of networkx.
        profile: Name of the node attribute that holds the distribution.

    Returns:
        The graph.

    Raises:
        LabelError: A node has no such attribute.
    """
    profiles: dict[Any, Any] = {}
    for node in graph.nodes:
        attributes = graph.nodes[node]
        if profile not in attributes:
            raise LabelError(f"the node {node!r} has no attribute {profile!r} with its distribution")
        profiles[node] = attributes[profile]
    return ProfileGraph(profiles, [(edge[0], edge[1]) for edge in graph.edges])


def from_csv(profiles: str | Path, edges: str | Path) -> ProfileGraph:
    """From two CSV files, one with the profiles and one with the pairs that must look alike.

    Args:
        profiles: File with a column of names and columns of probabilities.
        edges: File with pairs of names.

    Returns:
        The graph.

    Raises:
        ShapeError: A file does not have this form.
    """
    (_, header), *body = _lines(profiles)
    if len(header) < 2:
        raise ShapeError(f"{profiles} needs a column of names and at least one of probabilities")
    laws: dict[str, Any] = {}
    for number, line in body:
        if len(line) != len(header):
            raise ShapeError(f"line {number} of {profiles} has {len(line)} cells, its header has {len(header)}")
        if line[0] in laws:
            raise LabelError(f"the profile {line[0]!r} stands twice in {profiles}")
        laws[line[0]] = line[1] if len(header) == 2 else line[1:]
    (_, first), *pairs = _lines(edges)
    if set(first) <= laws.keys():
        # Taken as a header, the pair would silently go unprotected.
        raise ShapeError(
            f"the first line of {str(edges)!r} is a header, but it names the profiles {' and '.join(first)}: "
            "put a line such as one,other above it"
        )
    for number, line in pairs:
        if len(line) != 2:
            raise ShapeError(f"line {number} of {edges} has {len(line)} cells: an edge has two")
    return ProfileGraph(laws, [line for _, line in pairs], None if len(header) == 2 else header[1:])


def _lines(path: str | Path) -> list[tuple[int, list[str]]]:
    return parse_csv(Path(path).read_bytes(), repr(str(path)))


def from_json(source: str | Path) -> ProfileGraph:
    """From a JSON file, or from JSON text that starts with a brace.

    Args:
        source: A path, or JSON text.

    Returns:
        The graph.

    Raises:
        SpecError: The JSON is not a profile graph.
    """
    found = parse_json(str(source), "this text") if str(source).lstrip().startswith("{") else read_json(source)
    if isinstance(found, dict) and found.get("kind") == "profile-graph":
        return ProfileGraph.load(found)
    if not isinstance(found, dict) or not {"profiles", "edges"} <= found.keys():
        raise SpecError('a profile graph in JSON has "profiles" and "edges"')
    return ProfileGraph(found["profiles"], found["edges"], found.get("values"))


def from_data(
    samples: Mapping[Any, Any],
    edges: Any,
    values: Iterable[Any],
    smoothing: Any = 1,
    public: bool = False,
) -> ProfileGraph:
    """Profiles as smoothed histograms of data that are public already: (count + smoothing) / (n + d smoothing).

    Args:
        samples: Observed values for each profile.
        edges: Pairs of profiles that must look alike.
        values: The possible values.
        smoothing: Added to each count.
        public: Must be True: confirms that the data are public.

    Returns:
        The graph.

    Raises:
        ShapeError: `public` is not True.

    >>> from_data({"a": [0, 1, 1], "b": [0, 0]}, [("a", "b")], [0, 1], public=True).profile("a")
    (Fraction(2, 5), Fraction(3, 5))
    """
    if public is not True:
        raise ShapeError(
            "profiles are published, and histograms of people's data are not private: "
            "pass public=True only if these data are public already"
        )
    weight = fraction(smoothing, "the smoothing")
    if weight < 0:
        raise NumberError("the smoothing must not be negative")
    domain = as_listed(list(values))
    laws: dict[Any, list[Fraction]] = {}
    for name, column in samples.items():
        counts = np.bincount(domain.index(column), minlength=domain.size).tolist()
        total = sum(counts) + domain.size * weight
        if total == 0:
            raise ShapeError(f"the profile {name!r} has no data, and without smoothing no distribution")
        laws[name] = [(count + weight) / total for count in counts]
    return ProfileGraph(laws, edges, domain.labels)


# -- whether channels keep (G, epsilon) ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """The edge that an output tells apart best, and whether that is within the epsilon asked for.

    Args:
        holds: Whether the ratio is within the requested epsilon.
        ratio: The exact largest ratio over all edges and outputs; `math.inf` when an output gives a profile away.
        edge: The profile under which the output is likelier comes first.
        output: The output with the largest ratio.
    """

    holds: bool
    ratio: Fraction | float
    edge: tuple[Label, Label]
    output: Label

    @property
    def epsilon(self) -> float:
        return math.inf if isinstance(self.ratio, float) else exact.log(self.ratio)

    def __bool__(self) -> bool:
        return self.holds


def verify(graph: ProfileGraph, channels: Any, epsilon: Any) -> Verdict:
    """Check one channel for each profile, in the graph's order or by label.

    Args:
        graph: The profiles and the pairs that must look alike.
        channels: One channel per profile, in the graph's order or by label.
        epsilon: The requested epsilon.

    Returns:
        The largest ratio, and whether it holds.

    >>> graph = ProfileGraph({"a": 0, "b": 1}, [("a", "b")])
    >>> coin = Channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> verdict = verify(graph, {"a": coin, "b": coin}, 1.1)
    >>> verdict.holds, verdict.ratio
    (True, Fraction(3, 1))
    >>> bool(verify(graph, [coin, coin], 1.09))
    False
    """
    level = exact.as_epsilon(epsilon)
    listed = _listed(graph, channels)
    width = listed[0].shape[1]
    laws = np.empty((graph.size, width), dtype=object)
    bottoms = np.empty(graph.size, dtype=object)
    for i, channel in enumerate(listed):
        if channel.shape != (graph.whole.width, width):
            raise ShapeError(
                f"the channel of profile {graph.labels[i]!r} is {channel.shape[0]} x {channel.shape[1]}, "
                f"but this graph and the first channel need {graph.whole.width} x {width}"
            )
        laws[i] = graph.whole.numerators[i].dot(channel.numerators)
        bottoms[i] = graph.whole.denominators[i] * channel.denominator
    ratio, (i, j), y = worst(laws, bottoms, graph.whole.edges)
    holds = not isinstance(ratio, float) and exact.exp_at_least(level, ratio)
    return Verdict(holds, ratio, (graph.labels[i], graph.labels[j]), listed[0].outputs[y])


def _listed(graph: ProfileGraph, channels: Any) -> list[Channel]:
    if isinstance(channels, Mapping):
        placed = {graph.position(label): channel for label, channel in channels.items()}
        missing = [label for i, label in enumerate(graph.labels) if i not in placed]
        if missing:
            raise ShapeError(f"there is no channel for profile {missing[0]!r}: every profile needs one")
        rows: Sequence[Any] = [placed[i] for i in range(graph.size)]
    else:
        rows = list(getattr(channels, "channels", channels))
    if len(rows) != graph.size:
        raise ShapeError(f"there are {len(rows)} channels for {graph.size} profiles: every profile needs one")
    return [row if isinstance(row, Channel) else Channel(row) for row in rows]


def output_laws(part: Part, table: Integers) -> Integers:
    """Row i is P_i A^i times the profile's denominator and the table's, for channels stacked as (k, d, m)."""
    laws: Integers = (part.numerators[:, :, None] * table).sum(axis=1)
    return laws


def worst(laws: Integers, bottoms: Integers, edges: Positions) -> tuple[Fraction | float, tuple[int, int], int]:
    """The largest ratio over edges and outputs, with its edge (likelier end first) and output."""
    i, j = edges[:, 0], edges[:, 1]
    first, second = laws[i] * bottoms[j][:, None], laws[j] * bottoms[i][:, None]
    high, low = np.maximum(first, second), np.minimum(first, second)
    hidden = np.argwhere((low == 0) & (high > 0))
    if hidden.size:
        edge, y = (int(place) for place in hidden[0])
        return math.inf, _ends(edges[edge], first[edge, y] > 0), y
    # Floats only choose where to look: every place near the largest quotient is then compared exactly.
    try:
        rough = (high / np.where(low == 0, 1, low)).astype(np.float64)
        near = np.argwhere(rough >= rough.max() * (1 - 1e-12))
    except OverflowError:
        near = np.argwhere(low > 0)
    best, found = Fraction(0), (0, 0)
    seen: set[tuple[int, int]] = set()
    for edge, y in near.tolist():
        pair = int(high[edge, y]), int(low[edge, y])
        if pair in seen or pair[1] == 0:
            continue
        seen.add(pair)
        if Fraction(*pair) > best:
            best, found = Fraction(*pair), (edge, y)
    edge, y = found
    return best, _ends(edges[edge], first[edge, y] >= second[edge, y]), y


def _ends(edge: Positions, in_order: bool) -> tuple[int, int]:
    i, j = (int(end) for end in edge)
    return (i, j) if in_order else (j, i)


def edge_ratios(laws: Integers, bottoms: Integers, edges: Positions) -> list[tuple[Fraction | float, Fraction | float]]:
    """For each edge (i, j) the largest P_i(y) / P_j(y) over outputs, and the largest P_j(y) / P_i(y)."""
    return [(_largest(laws, bottoms, i, j), _largest(laws, bottoms, j, i)) for i, j in edges.tolist()]


def _largest(laws: Integers, bottoms: Integers, i: int, j: int) -> Fraction | float:
    top, low = 0, 1
    for high, other in zip(laws[i], laws[j], strict=True):
        if high > 0 and other == 0:
            return math.inf
        if high * low > top * other:
            top, low = int(high), int(other)
    return Fraction(top * int(bottoms[j]), low * int(bottoms[i]))

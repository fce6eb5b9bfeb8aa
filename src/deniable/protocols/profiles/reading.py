"""Profile graphs from files, from networkx, and from data that are public.

CSV        profiles: a header "profile" and the values, then one profile a line (one column "p" for Bernoulli);
           edges: a header, then two profile names a line
JSON       {"profiles": {name: probabilities}, "edges": [[name, name], ...]}, or what `ProfileGraph.spec` gives
Numbers    are read as they are written: 0.1 is 1/10, and "1/3" is allowed
From data  histograms of other people's data are NOT private: they may only be made of data that are public
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from deniable._files import parse_csv, parse_json, read_json
from deniable.domains import as_listed
from deniable.errors import LabelError, NumberError, ShapeError, SpecError
from deniable.exact import fraction
from deniable.protocols.profiles.graph import ProfileGraph


def from_networkx(graph: Any, profile: str = "profile") -> ProfileGraph:
    """From any object with networkx's `nodes` and `edges`; each node's attribute `profile` is its distribution."""
    profiles: dict[Any, Any] = {}
    for node in graph.nodes:
        attributes = graph.nodes[node]
        if profile not in attributes:
            raise LabelError(f"the node {node!r} has no attribute {profile!r} with its distribution")
        profiles[node] = attributes[profile]
    return ProfileGraph(profiles, [(edge[0], edge[1]) for edge in graph.edges])


def from_csv(profiles: str | Path, edges: str | Path) -> ProfileGraph:
    """From two CSV files, one with the profiles and one with the pairs that must look alike."""
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
    """From a JSON file, or from JSON text that starts with a brace."""
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

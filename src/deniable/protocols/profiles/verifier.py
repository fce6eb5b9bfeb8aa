"""Whether per-profile channels keep (G, epsilon): decided with integers, whatever made the channels.

Law        the output of profile i is P_i A^i, an exact vector
Privacy    for every edge (i, j) and output y, (P_i A^i)_y <= e^epsilon (P_j A^j)_y, and the other way round
Exact      the ratio is a fraction; e^epsilon is bracketed by rationals until the comparison is settled
Source     Geumlek and Chaudhuri 2019, definition 2
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable import exact
from deniable.channels import Channel
from deniable.errors import ShapeError
from deniable.labels import Label
from deniable.protocols.profiles.graph import Integers, Part, Positions, ProfileGraph


@dataclass(frozen=True, slots=True)
class Verdict:
    """The edge that an output tells apart best, and whether that is within the epsilon asked for."""

    holds: bool
    ratio: Fraction | float
    """The exact largest ratio over all edges and outputs; `math.inf` when an output gives a profile away."""
    edge: tuple[Label, Label]
    """The profile under which the output is likelier comes first."""
    output: Label

    @property
    def epsilon(self) -> float:
        return math.inf if isinstance(self.ratio, float) else exact.log(self.ratio)

    def __bool__(self) -> bool:
        return self.holds


def verify(graph: ProfileGraph, channels: Any, epsilon: Any) -> Verdict:
    """Check one channel for each profile, in the graph's order or by label.

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

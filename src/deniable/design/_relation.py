"""Who must be hard to tell apart, as a linear program and a proof need it: all pairs, or a list of edges.

Whole      all pairs: a column is fine iff its largest entry is at most e^epsilon times its smallest
Edges      a graph or a metric: ratios on the edges, at most e^(epsilon d); the rest follows along paths
Reduced    a pair of a metric that follows from two shorter ones is left out: |x - y| becomes a line
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from deniable import exact
from deniable.channels import Channel
from deniable.channels._vectors import Floats
from deniable.channels.adjacency import Adjacency, Pair
from deniable.errors import SpecError
from deniable.labels import Label

Branch = tuple[int, int, Fraction]
"""Child, parent and their distance."""


@dataclass(frozen=True)
class Relation:
    """Pairs of positions 0 .. size - 1 with distances; `edges` is None for all pairs at distance 1."""

    size: int
    edges: tuple[Pair, ...] | None

    @classmethod
    def of(cls, adjacency: Adjacency, inputs: tuple[Label, ...]) -> Relation:
        if adjacency.kind == "all":
            return cls(len(inputs), None)
        shortest: dict[tuple[int, int], Fraction] = {}
        for i, j, distance in adjacency.pairs(inputs):
            ends = (min(i, j), max(i, j))
            shortest[ends] = min(distance, shortest.get(ends, distance))
        kept = _reduced(shortest, len(inputs)) if adjacency.kind in ("metric", "hamming") else shortest
        return cls(len(inputs), tuple((i, j, kept[i, j]) for i, j in sorted(kept)))

    @cached_property
    def distances(self) -> Floats:
        """The length of the shortest path between any two positions; infinite where there is none."""
        if self.edges is None:
            return np.asarray(1.0 - np.eye(self.size))
        table = np.full((self.size, self.size), np.inf)
        np.fill_diagonal(table, 0.0)
        for i, j, distance in self.edges:
            table[i, j] = table[j, i] = float(distance)
        for via in range(self.size):
            np.minimum(table, table[:, via, None] + table[via], out=table)
        return table

    @cached_property
    def components(self) -> tuple[tuple[int, ...], ...]:
        """Positions that hang together."""
        label = list(range(self.size))

        def root(x: int) -> int:
            while label[x] != x:
                x = label[x]
            return x

        for i, j, _ in self.edges or ():
            label[max(root(i), root(j))] = min(root(i), root(j))
        groups: dict[int, list[int]] = {}
        for x in range(self.size):
            groups.setdefault(root(x), []).append(x)
        return tuple(map(tuple, groups.values()))

    @property
    def has_cycle(self) -> bool:
        return len(self.edges or ()) > self.size - len(self.components)

    @cached_property
    def neighbours(self) -> list[list[tuple[int, Fraction]]]:
        near: list[list[tuple[int, Fraction]]] = [[] for _ in range(self.size)]
        for i, j, distance in self.edges or ():
            near[i].append((j, distance))
            near[j].append((i, distance))
        return near

    def tree(self, root: int) -> list[Branch]:
        """The branches of a spanning tree of the root's component, leaves before their parents."""
        seen, found, queue = {root}, [], [root]
        for parent in queue:
            for child, distance in self.neighbours[parent]:
                if child not in seen:
                    seen.add(child)
                    queue.append(child)
                    found.append((child, parent, distance))
        return found[::-1]

    def holds(self, channel: Channel, epsilon: Fraction) -> bool:
        """Whether every ratio stays within its limit: decided with integers."""
        if self.edges is None:
            return channel.satisfies(epsilon)
        law = channel.numerators
        for i, j, distance in self.edges:
            odds = exact.exp_floor(epsilon * distance)
            for x, z in ((i, j), (j, i)):
                over = law[x] * odds.denominator > law[z] * odds.numerator
                for y in np.flatnonzero(over):
                    # Within the width of the rational bound the question is settled by more digits.
                    ratio = Fraction(int(law[x, y]), int(law[z, y])) if law[z, y] else None
                    if ratio is None or not exact.exp_at_least(epsilon * distance, ratio):
                        return False
        return True

    def content(self) -> Any:
        return None if self.edges is None else [[i, j, exact.canonical(d)] for i, j, d in self.edges]

    @classmethod
    def read(cls, size: int, content: Any) -> Relation:
        if content is None:
            return cls(size, None)
        edges = tuple((int(i), int(j), exact.fraction(d, "a distance")) for i, j, d in content)
        if any(not (0 <= i < size and 0 <= j < size) or i == j or d <= 0 for i, j, d in edges):
            raise SpecError("an edge joins two different positions of inputs at a positive distance")
        return cls(size, edges)


def _reduced(pairs: dict[tuple[int, int], Fraction], size: int) -> dict[tuple[int, int], Fraction]:
    """Without the pairs that follow from two others, both shorter."""

    def between(i: int, j: int) -> Fraction:
        return pairs[min(i, j), max(i, j)]

    return {
        (i, j): distance
        for (i, j), distance in pairs.items()
        if not any(between(i, w) + between(w, j) <= distance for w in range(size) if w not in (i, j))
    }

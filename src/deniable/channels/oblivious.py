"""Queries on databases, and mechanisms that only look at the answer.

A query f sends databases to answers. Two answers are neighbours when some two neighbouring databases have
them: the *induced graph*. A mechanism K is oblivious when K = H after f: first the answer, then noise that
depends on the answer alone. Then the epsilon of K on neighbouring databases is the epsilon of H on the edges of
the induced graph, whatever the databases were.

Noise      H is a channel on the answers, or noise that is added to numbers (`DiscreteLaplace`, `GridLaplace`). Noise
           has an epsilon, but its outputs have no end: what needs a matrix takes `noise.clamp(low, high)`
Source     Alvim et al. 2011; Brenner and Nissim 2010
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

from deniable import exact
from deniable.channels.adjacency import HAMMING, Adjacency, as_adjacency
from deniable.channels.channel import Channel
from deniable.channels.noise import Noise, as_channel, is_noise
from deniable.channels.witness import Witness
from deniable.errors import LabelError, ShapeError
from deniable.labels import Label, as_label, as_labels, index_of, label_key

MOST_DATABASES = 1 << 16


@dataclass(frozen=True)
class Query:
    """A function on an explicit list of databases, with who is whose neighbour.

    >>> count = Query.on_records(3, [0, 1], sum)
    >>> count.answers, count.sensitivity, count.edges
    ((0, 1, 2, 3), Fraction(1, 1), ((0, 1), (1, 2), (2, 3)))
    """

    databases: tuple[Label, ...]
    values: tuple[Label, ...]
    adjacency: Adjacency

    @classmethod
    def of(cls, databases: Iterable[Any], function: Callable[[Any], Any], adjacency: Any = HAMMING) -> Query:
        """A query on given databases (tuples of records, unless another adjacency is named)."""
        listed = list(databases)
        if not listed:
            raise ShapeError("a query needs at least one database")
        names = as_labels(listed, len(listed), "database")
        return cls(names, tuple(as_label(function(database)) for database in names), as_adjacency(adjacency))

    @classmethod
    def on_records(cls, size: int, values: Iterable[Any], function: Callable[[Any], Any]) -> Query:
        """A query on every database of `size` records with the given values; neighbours differ in one record."""
        records, listed = exact.whole(size, "the number of records"), list(values)
        if records < 1:
            raise ShapeError(f"a database has at least one record, not {records}")
        # In logarithms first: the power itself may be a number of gigabytes.
        if len(listed) > 1 and (records > 64 or len(listed) ** records > MOST_DATABASES):
            number = f"{len(listed) ** records:,}" if records <= 64 else f"{len(listed)}^{records}"
            raise ShapeError(
                f"{records} records of {len(listed)} values are {number} databases, more than {MOST_DATABASES:,}: list "
                "one database for each answer instead, with its neighbours, as in "
                f"Query.of(range({records + 1}), int, 'line') for a count"
            )
        return cls.of(product(listed, repeat=records), function)

    @cached_property
    def answers(self) -> tuple[Label, ...]:
        """The different answers, in ascending order where they have one."""
        unique = {label_key(value): value for value in self.values}
        try:
            return tuple(sorted(unique.values()))  # type: ignore[type-var]
        except TypeError:
            return tuple(unique.values())

    @cached_property
    def edges(self) -> tuple[tuple[Label, Label], ...]:
        """The induced graph: pairs of different answers that one record can change into each other."""
        answers = self.answers
        order = index_of(answers)
        positions = [order[label_key(value)] for value in self.values]
        found = {
            (min(positions[i], positions[j]), max(positions[i], positions[j]))
            for i, j in self.adjacency.neighbours(self.databases)
            if positions[i] != positions[j]
        }
        return tuple((answers[a], answers[b]) for a, b in sorted(found))

    @property
    def graph(self) -> Adjacency:
        """The induced graph as an adjacency, for `Channel.epsilon_under`."""
        return Adjacency("graph", edges=self.edges)

    @property
    def sensitivity(self) -> Fraction:
        """The most that one record can move a numeric answer."""
        try:
            ends = [(exact.fraction(a), exact.fraction(b)) for a, b in self.edges]
        except ValueError:
            raise LabelError("only numeric answers have a sensitivity") from None
        return max((abs(a - b) for a, b in ends), default=Fraction(0))

    @property
    def has_cycle(self) -> bool:
        """Whether the induced graph has a cycle; if so, no mechanism is optimal for everybody."""
        parent = {label_key(answer): label_key(answer) for answer in self.answers}

        def root(node: Any) -> Any:
            while parent[node] != node:
                parent[node] = node = parent[parent[node]]
            return node

        for a, b in self.edges:
            first, second = root(label_key(a)), root(label_key(b))
            if first == second:
                return True
            parent[first] = second
        return False

    def oblivious(self, noise: Channel | Noise) -> Channel:
        """K = H after f, as a channel on databases."""
        channel = as_channel(noise, self.values)
        rows = [channel.numerators[channel.input_index(value)] for value in self.values]
        return Channel.from_integers(rows, channel.denominator, self.databases, channel.outputs, self.adjacency)

    def witness(self, noise: Channel | Noise) -> Witness:
        """The worst pair of neighbouring answers: it decides the epsilon of K, computed on the graph alone."""
        return as_channel(noise, self.values).witness(self.graph)

    def epsilon(self, noise: Channel | Noise) -> float:
        """The epsilon of K = H after f on neighbouring databases.

        >>> from deniable.channels import DiscreteLaplace
        >>> Query.on_records(3, [0, 1], sum).epsilon(DiscreteLaplace(epsilon="1/2"))
        0.5
        """
        return float(noise.epsilon_at(self.sensitivity)) if is_noise(noise) else self.witness(noise).epsilon

    def satisfies(self, noise: Channel | Noise, epsilon: Any) -> bool:
        """Whether K is epsilon-differentially private: decided exactly."""
        if is_noise(noise):
            return noise.epsilon_at(self.sensitivity) <= exact.as_epsilon(epsilon)
        return as_channel(noise, self.values).satisfies(epsilon, self.graph)

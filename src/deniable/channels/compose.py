"""Channels built from channels, and the guarantee of a whole collection.

product    independent answers to several questions: probabilities multiply, epsilons add
mixture    one of several channels, chosen at random before answering and not revealed
collection everybody answers through their own channel: epsilon is the largest of theirs
group      epsilon between inputs that are h steps apart

Queries on databases, and mechanisms that depend only on the answer.

A query f maps databases to answers. Two answers are neighbours if two neighbouring databases have
them: the *induced graph*. A mechanism K is oblivious if K = H after f: first the answer, then noise that
depends on the answer alone. Then the epsilon of K on neighbouring databases is the epsilon of H on the edges of
the induced graph, for any databases.

Noise      H is a channel on the answers, or additive noise on numbers (`DiscreteLaplace`, `GridLaplace`). Noise has
           an epsilon, but infinitely many outputs: functions that need a matrix take `noise.clamp(low, high)`
Source     Alvim et al. 2011; Brenner and Nissim 2010
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product as pairs_of
from typing import Any

import numpy as np

from deniable import exact
from deniable.channels.adjacency import HAMMING, Adjacency, Witness, as_adjacency, pair_witnesses
from deniable.channels.channel import Channel
from deniable.channels.noise import Noise, as_channel, is_noise
from deniable.errors import ChannelError, LabelError, ProbabilityError, ShapeError
from deniable.exact import level_text
from deniable.labels import Label, as_label, as_labels, index_of, label_key

# The cells of a product are the product of its factors' cells; this many integers are still fast.
MOST_CELLS = 1 << 22


def product(*channels: Channel) -> Channel:
    """Independent channels side by side; labels become tuples.

    Args:
        *channels: The channels, one per component.

    Returns:
        The joint channel.

    Raises:
        ChannelError: There are no channels, or the product is too large.

    >>> from deniable.channels import coin_response
    >>> both = product(coin_response(), coin_response())
    >>> both.shape, both.ratio
    ((4, 4), Fraction(9, 1))
    """
    if not channels:
        raise ChannelError("a product needs at least one channel")
    cells = math.prod(math.prod(as_channel(channel).shape) for channel in channels)
    if cells > MOST_CELLS:
        raise ChannelError(f"the product has {cells} cells, more than {MOST_CELLS}: keep the questions apart")
    numerators = np.array([[1]], dtype=object)
    denominator = 1
    for channel in channels:
        numerators = np.kron(numerators, channel.numerators)
        denominator *= channel.denominator
    inputs = list(pairs_of(*(channel.inputs for channel in channels)))
    outputs = list(pairs_of(*(channel.outputs for channel in channels)))
    return Channel.from_integers(numerators, denominator, inputs, outputs)


def mixture(channels: Sequence[Channel], weights: Iterable[Any]) -> Channel:
    """Use channel i with probability weights[i], without revealing which.

    Args:
        channels: Channels with the same inputs and outputs.
        weights: A probability per channel; they sum to exactly 1.

    Returns:
        The mixed channel.

    Raises:
        ChannelError: The number of weights is not the number of channels.
        ProbabilityError: The weights are not a distribution.
        LabelError: The channels have different inputs or outputs.
    """
    shares = [exact.fraction(weight, "a weight") for weight in weights]
    if not channels or len(shares) != len(channels):
        raise ChannelError(f"there are {len(shares)} weights for {len(channels)} channels")
    if min(shares) < 0 or sum(shares) != 1:
        raise ProbabilityError("the weights of a mixture must be non-negative and sum to exactly 1")
    first = as_channel(channels[0])
    names = first._input_index, first._output_index
    if any((as_channel(channel)._input_index, channel._output_index) != names for channel in channels):
        raise LabelError("the channels of a mixture must have the same inputs and outputs, in the same order")
    scale = math.lcm(*(s.denominator * c.denominator for s, c in zip(shares, channels, strict=True)))
    total = np.zeros(first.shape, dtype=object)
    for share, channel in zip(shares, channels, strict=True):
        total = total + channel.numerators * int(share * scale / channel.denominator)
    return Channel.from_integers(total, scale, first.inputs, first.outputs, first.adjacency)


@dataclass(frozen=True, slots=True)
class Collection:
    """The guarantee of a collection as a whole, computed from its members' channels.

    Args:
        ratio: The largest likelihood ratio, e^epsilon.
        members: Number of channels.
        worst: Name of the member with the largest ratio.
    """

    ratio: Fraction | float
    members: int
    worst: Label

    @property
    def epsilon(self) -> float:
        return math.inf if isinstance(self.ratio, float) else exact.log(self.ratio)

    def __str__(self) -> str:
        head = f"{self.members} people, each with a channel of their own: "
        if isinstance(self.ratio, float):
            return (
                f"{head}the channel of member {self.worst} can give an input away for certain, so the collection "
                "has no finite epsilon and is not differentially private."
            )
        return (
            f"{head}if any one of them is replaced, no set of reports becomes more than "
            f"e^{level_text(self.ratio, digits=6)} times as likely (the channel of member {self.worst}). "
            "The collection is differentially private at that epsilon for every query."
        )


def collection(channels: Sequence[Channel] | dict[Any, Channel]) -> Collection:
    """The epsilon of the joint reports when one person's answer changes: the members' maximum.

    Reports are independent, so in the ratio of two joint probabilities every factor but one cancels.

    Args:
        channels: The members' channels: a list, or a mapping by name.

    Returns:
        The guarantee of all members' reports together.

    Raises:
        ChannelError: There are no channels.
    """
    listed = channels.items() if isinstance(channels, dict) else enumerate(channels)
    members = {name: as_channel(channel) for name, channel in listed}
    if not members:
        raise ChannelError("a collection needs at least one member")
    worst = max(members, key=lambda name: members[name].ratio)
    return Collection(members[worst].ratio, len(members), worst)


def group_ratio(channel: Channel, distance: Any, metric: Any = HAMMING) -> Fraction | float:
    """The largest ratio between inputs exactly `distance` apart (1 if no inputs are).

    Args:
        channel: The channel.
        distance: Distance of the inputs that are compared.
        metric: The distance between two inputs.

    Returns:
        The ratio; infinite if some output rules one of the inputs out.
    """
    relation, steps = as_adjacency(metric), exact.fraction(distance, "the distance")
    worst: Fraction | float = Fraction(1)
    for pair in pair_witnesses(as_channel(channel), relation):
        if pair.distance == steps:
            worst = max(worst, pair.ratio)
    return worst


# -- a query first, then a channel --------------------------------------------------------------------


MOST_DATABASES = 1 << 16


@dataclass(frozen=True)
class Query:
    """A function on an explicit list of databases, with their adjacency.

    Args:
        databases: The possible databases.
        values: The query's answer for each database.
        adjacency: Which databases are neighbours.

    >>> count = Query.on_records(3, [0, 1], sum)
    >>> count.answers, count.sensitivity, count.edges
    ((0, 1, 2, 3), Fraction(1, 1), ((0, 1), (1, 2), (2, 3)))
    """

    databases: tuple[Label, ...]
    values: tuple[Label, ...]
    adjacency: Adjacency

    @classmethod
    def of(cls, databases: Iterable[Any], function: Callable[[Any], Any], adjacency: Any = HAMMING) -> Query:
        """A query on given databases (tuples of records, unless another adjacency is given)."""
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
        # Logarithms first: the power itself may take gigabytes.
        if len(listed) > 1 and (records > 64 or len(listed) ** records > MOST_DATABASES):
            number = f"{len(listed) ** records:,}" if records <= 64 else f"{len(listed)}^{records}"
            raise ShapeError(
                f"{records} records of {len(listed)} values are {number} databases, more than {MOST_DATABASES:,}: list "
                "one database for each answer instead, with its neighbours, as in "
                f"Query.of(range({records + 1}), int, 'line') for a count"
            )
        return cls.of(pairs_of(listed, repeat=records), function)

    @cached_property
    def answers(self) -> tuple[Label, ...]:
        """The distinct answers, in ascending order if they can be ordered."""
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
        """The largest change of a numeric answer by one record."""
        try:
            ends = [(exact.fraction(a), exact.fraction(b)) for a, b in self.edges]
        except ValueError:
            raise LabelError("only numeric answers have a sensitivity") from None
        return max((abs(a - b) for a, b in ends), default=Fraction(0))

    @property
    def has_cycle(self) -> bool:
        """Whether the induced graph has a cycle; if so, no mechanism is universally optimal."""
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
        """The worst pair of neighbouring answers: it determines the epsilon of K, computed on the graph alone."""
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

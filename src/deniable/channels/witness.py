"""Which inputs an output tells apart best: the pairs that decide a channel's epsilon, found with integers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels.adjacency import Adjacency
from deniable.labels import Label

if TYPE_CHECKING:
    from deniable.channels.channel import Channel

Integers = NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class Witness:
    """The pair of inputs that an output tells apart best, and by how much."""

    inputs: tuple[Label, Label]
    output: Label
    ratio: Fraction | float
    distance: Fraction = Fraction(1)

    @property
    def epsilon(self) -> float:
        return math.inf if isinstance(self.ratio, float) else exact.log(self.ratio) / float(self.distance)


def worst_of_all(channel: Channel) -> Witness:
    """Over all pairs the worst ratio of a column is its largest entry over its smallest."""
    high, low = channel.numerators.max(axis=0), channel.numerators.min(axis=0)
    column = _largest_ratio(high, low)
    entries = list(channel.numerators[:, column])
    pair = channel.inputs[entries.index(high[column])], channel.inputs[entries.index(low[column])]
    return Witness(pair, channel.outputs[column], _ratio(high[column], low[column]))


def pair_witnesses(channel: Channel, relation: Adjacency) -> Iterator[Witness]:
    """For each adjacent pair the output that tells them apart best."""
    for i, j, distance in relation.pairs(channel.inputs):
        yield channel._told_apart(i, j, distance)


def told_apart(channel: Channel, i: int, j: int, distance: Fraction) -> Witness:
    """The output that tells two inputs apart best, found by comparing their rows."""
    a, b = channel.numerators[i], channel.numerators[j]
    high, low = np.maximum(a, b), np.minimum(a, b)
    column = _largest_ratio(high, low)
    first, second = (i, j) if a[column] >= b[column] else (j, i)
    pair = channel.inputs[first], channel.inputs[second]
    return Witness(pair, channel.outputs[column], _ratio(high[column], low[column]), distance)


def worst_pairs(channel: Channel, relation: Adjacency) -> Iterable[Witness]:
    """The worst pair at each distance, found without a logarithm."""
    worst: dict[Fraction, Witness] = {}
    for pair in pair_witnesses(channel, relation):
        if pair.distance not in worst or pair.ratio > worst[pair.distance].ratio:
            worst[pair.distance] = pair
        if isinstance(pair.ratio, float):
            return [pair]
    return worst.values()


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

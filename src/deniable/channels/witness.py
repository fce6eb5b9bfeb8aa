"""Which inputs an output tells apart best: the pairs that decide a channel's epsilon, found with integers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

_BITS = 128


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


def smallest_factor(p: Sequence[int], q: Sequence[int], delta: Fraction) -> Fraction | float:
    """The smallest r >= 1 with P(S) <= r Q(S) + delta for every set S of outputs; `math.inf` where there is none.

    Weights with one total, of which delta is a part. The worst sets hold the outputs of the largest p / q.

    >>> smallest_factor([97, 2, 1], [2, 98, 0], Fraction(1, 100)), smallest_factor([3, 1], [1, 3], Fraction(0))
    (Fraction(97, 2), Fraction(3, 1))
    """
    scale = delta.denominator
    above = sum(scale * a for a, b in zip(p, q, strict=True) if not b) - delta.numerator * sum(p)
    if above > 0:
        return math.inf
    # Different quotients of such numbers differ by more than 2^-places, so these integers have their order.
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
        # A short number at most as large as the worst so far: rows that hold it need no closer look.
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
    """The largest `smallest_factor` of these pairs of inputs, each given as weights of the channel's rows."""
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

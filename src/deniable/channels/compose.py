"""Channels made of channels, and what a whole collection promises.

product    independent answers to several questions: probabilities multiply, epsilons add
mixture    one of several channels, picked at random before answering and not revealed
collection everybody answers through a channel of their own: epsilon is the largest of theirs
group      what epsilon becomes between inputs that are h steps apart
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product as pairs_of
from typing import Any

import numpy as np

from deniable import exact
from deniable.channels.adjacency import HAMMING, as_adjacency
from deniable.channels.channel import Channel
from deniable.channels.noise import as_channel
from deniable.channels.witness import pair_witnesses
from deniable.errors import ChannelError, LabelError, ProbabilityError
from deniable.exact import level_text
from deniable.labels import Label

# A product has as many cells as its factors' cells multiplied; this many integers are still comfortable.
MOST_CELLS = 1 << 22


def product(*channels: Channel) -> Channel:
    """Independent channels side by side; labels become tuples.

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
    """Use channel i with probability weights[i], without telling which."""
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
    """What a collection promises as a whole, computed from its members' channels."""

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
            f"{head}whoever is replaced, no set of reports becomes more than "
            f"e^{level_text(self.ratio, digits=6)} times as likely (the channel of member {self.worst}). "
            "The collection is differentially private at that epsilon for every query."
        )


def collection(channels: Sequence[Channel] | dict[Any, Channel]) -> Collection:
    """The epsilon of the joint reports when one person's answer changes: the members' maximum.

    Reports are independent, so in the ratio of two joint probabilities every factor but one cancels.
    """
    listed = channels.items() if isinstance(channels, dict) else enumerate(channels)
    members = {name: as_channel(channel) for name, channel in listed}
    if not members:
        raise ChannelError("a collection needs at least one member")
    worst = max(members, key=lambda name: members[name].ratio)
    return Collection(members[worst].ratio, len(members), worst)


def group_ratio(channel: Channel, distance: Any, metric: Any = HAMMING) -> Fraction | float:
    """The largest ratio between inputs that are exactly `distance` apart (1 when there are none)."""
    relation, steps = as_adjacency(metric), exact.fraction(distance, "the distance")
    worst: Fraction | float = Fraction(1)
    for pair in pair_witnesses(as_channel(channel), relation):
        if pair.distance == steps:
            worst = max(worst, pair.ratio)
    return worst

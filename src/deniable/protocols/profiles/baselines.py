"""Local differential privacy as a profile mechanism: one channel for everybody, whatever the graph.

Law        the value is kept with probability p, else each other one has q = ceil(2^64 / (E + d - 1)) / 2^64
Privacy    p / q <= E = e^epsilon for all pairs of values, so every graph of profiles is protected (Theorem 9)
Source     Warner 1965; Kairouz, Oh and Viswanath 2014; Geumlek and Chaudhuri 2019, theorem 9
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from deniable import exact
from deniable.errors import ChannelError
from deniable.exact import WORD
from deniable.protocols.profiles.graph import Integers, Part, ProfileGraph
from deniable.protocols.profiles.mechanism import ProfileMechanism, identity
from deniable.protocols.profiles.onebit import _OneBit, check_bits


@dataclass(frozen=True, eq=False, repr=False, init=False)
class KaryResponse(ProfileMechanism):
    """k-ary randomized response, the baseline of the categorical setting."""

    name: ClassVar[str] = "KaryResponse"

    def __init__(self, graph: ProfileGraph, epsilon: Any) -> None:
        level = exact.as_epsilon(epsilon)
        self._design(graph, level, lambda part, _: response(part, level))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Warner(_OneBit):
    """Warner's response, the baseline of the one-bit setting: flip with probability 1 / (1 + e^epsilon).

    >>> Warner(ProfileGraph.chain([0.2, 0.3]), epsilon=1).flip.round(4).tolist()
    [0.2689, 0.2689]
    """

    name: ClassVar[str] = "Warner"

    def __init__(self, graph: ProfileGraph, epsilon: Any) -> None:
        level = exact.as_epsilon(epsilon)
        check_bits(graph)
        self._design(graph, level, lambda part, _: response(part, level))


def response(part: Part, epsilon: Fraction) -> Integers:
    """Randomized response on the part's values, the same for every profile."""
    width = part.width
    lie = exact.ceil_of(lambda odds: WORD / (odds + width - 1), epsilon)
    truth = WORD - (width - 1) * lie
    if truth < lie:
        raise ChannelError(f"at this epsilon a value among {width} would never be kept: raise epsilon")
    table = np.full((part.size, width, width), lie, dtype=object)
    table[identity(part) > 0] = truth
    return table

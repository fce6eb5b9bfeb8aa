"""The binary mechanism: one bit that says which of two hypotheses an answer speaks for.

Law        reports 0 with probability e^epsilon / (1 + e^epsilon) if P0(x) >= P1(x), else with 1 / (1 + e^epsilon)
Privacy    exactly Warner's response to the question "is P0(x) >= P1(x)?"
Use        optimal among all mechanisms for total variation, and for every f-divergence at small epsilon
Ties       where P0(x) = P1(x) the side may be chosen: `ties` (for some divergences the other one is better)
Source     Kairouz, Oh and Viswanath 2014
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable import exact
from deniable.channels._vectors import probability_vector
from deniable.channels.channel import Channel
from deniable.channels.randomized_response import warner
from deniable.errors import LabelError


def binary(p0: ArrayLike, p1: ArrayLike, epsilon: Any, ties: int = 0, inputs: Iterable[Any] | None = None) -> Channel:
    """The binary mechanism for two known hypotheses.

    >>> binary([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], epsilon="1.0986122886681098").rows.round(4).tolist()
    [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75]]
    """
    first = probability_vector(p0, what="first hypothesis")
    probability_vector(p1, first.size, what="second hypothesis")
    if ties not in (0, 1):
        raise LabelError("ties go to output 0 or to output 1")
    # Compared as the decimals that were typed: a division by the sum could break a tie.
    mine, theirs = ([exact.fraction(value) for value in np.asarray(p).tolist()] for p in (p0, p1))
    gaps = [a * sum(theirs) - b * sum(mine) for a, b in zip(mine, theirs, strict=True)]
    side = np.array([ties if gap == 0 else int(gap < 0) for gap in gaps])
    coin = warner(epsilon, labels=(0, 1))
    return Channel.from_integers(coin.numerators[side], coin.denominator, inputs, (0, 1))

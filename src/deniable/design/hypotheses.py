"""Two hypotheses: which symbols carry the same evidence, and their order by likelihood ratio.

Merging    symbols of equal P0/P1 become one group and symbols with P0 = P1 = 0 join any: both are lossless,
           because a column's utility is convex in the weights and depends on the group's total only
Order      groups ascend by P0/P1; prefix sums are exact before they become floats
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.channels._vectors import Floats, probability_vector
from deniable.channels.laws import integer_weights
from deniable.errors import ProbabilityError, ShapeError


@dataclass(frozen=True)
class Pair:
    """P0 and P1 as integers over their sums, symbol by symbol.

    >>> pair = Pair.read([0.5, 0.3, 0.2, 0], [0.25, 0.15, 0.6, 0])
    >>> pair.groups, pair.group.tolist()
    (2, [1, 1, 0, 0])
    """

    weights0: tuple[int, ...]
    weights1: tuple[int, ...]

    @classmethod
    def read(cls, p0: ArrayLike | Sequence[Any], p1: ArrayLike | Sequence[Any]) -> Pair:
        first = probability_vector(p0, what="first hypothesis")
        probability_vector(p1, first.size, what="second hypothesis")
        return cls(integer_weights(p0), integer_weights(p1))

    def __post_init__(self) -> None:
        if len(self.weights0) != len(self.weights1) or not self.weights0:
            raise ShapeError("the two hypotheses need the same number of symbols, at least one")
        for weights in (self.weights0, self.weights1):
            if min(weights) < 0 or sum(weights) == 0:
                raise ProbabilityError("the weights of a hypothesis are not negative and not all zero")

    @property
    def size(self) -> int:
        return len(self.weights0)

    @cached_property
    def totals(self) -> tuple[int, int]:
        return sum(self.weights0), sum(self.weights1)

    @cached_property
    def _grouping(self) -> tuple[NDArray[np.int64], list[int], list[int]]:
        sums: dict[tuple[int, int], list[int]] = {}
        keys: list[tuple[int, int] | None] = []
        for a, b in zip(self.weights0, self.weights1, strict=True):
            common = math.gcd(a, b)
            if common == 0:
                keys.append(None)
                continue
            key = (a // common, b // common)
            keys.append(key)
            entry = sums.setdefault(key, [0, 0])
            entry[0] += a
            entry[1] += b
        n0, n1 = self.totals
        ordered = sorted(sums, key=lambda key: (key[0] * n1) / (key[0] * n1 + key[1] * n0))
        place = {key: i for i, key in enumerate(ordered)}
        group = np.array([0 if key is None else place[key] for key in keys], dtype=np.int64)
        return group, [sums[key][0] for key in ordered], [sums[key][1] for key in ordered]

    @property
    def group(self) -> NDArray[np.int64]:
        """The group of each symbol; a symbol of probability zero is put into the first."""
        return self._grouping[0]

    @property
    def groups(self) -> int:
        return len(self._grouping[1])

    @cached_property
    def merged(self) -> tuple[Floats, Floats, Floats]:
        """P0, P1 and P0 - P1 of the groups, each rounded once."""
        n0, n1 = self.totals
        _, tops, bottoms = self._grouping
        return (
            np.array([a / n0 for a in tops]),
            np.array([b / n1 for b in bottoms]),
            np.array([(a * n1 - b * n0) / (n0 * n1) for a, b in zip(tops, bottoms, strict=True)]),
        )

    @cached_property
    def prefixes(self) -> tuple[Floats, Floats]:
        """P1 and P0 - P1 of the first i groups, for i = 0 .. groups."""
        n0, n1 = self.totals
        _, tops, bottoms = self._grouping
        upper = list(accumulate(tops, initial=0))
        lower = list(accumulate(bottoms, initial=0))
        return (
            np.array([b / n1 for b in lower]),
            np.array([(a * n1 - b * n0) / (n0 * n1) for a, b in zip(upper, lower, strict=True)]),
        )

    def shares(self) -> Floats:
        """What part of its group's mass each symbol has."""
        group, tops, bottoms = self._grouping
        return np.array(
            [
                (a + b) / (tops[g] + bottoms[g])
                for a, b, g in zip(self.weights0, self.weights1, group.tolist(), strict=True)
            ]
        )

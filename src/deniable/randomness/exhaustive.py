"""Bits for proofs: the real code is run once along every branch, with exact weights.

A sampler asks for one of several outcomes. `Exhaustive` gives it each of them in turn and remembers the
probability; the probabilities of equal results are added as fractions. Code that may loop without end
(rejection) is followed until a branch weighs less than `smallest`; what was not followed is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import NumberError
from deniable.exact import Dyadic
from deniable.randomness.kernels import Law
from deniable.randomness.source import Bits

T = TypeVar("T", bound=Hashable)


class _Abandoned(Exception):
    """The branch has become lighter than the smallest weight that is followed."""


@dataclass(frozen=True, slots=True)
class Enumeration:
    """The exact law of a function's result, and the mass of the branches that were not followed."""

    law: dict[Any, Fraction]
    missing: Fraction
    runs: int


class Exhaustive(Bits):
    """One branch of the exploration; made by `exhaust`, handed to the code under test."""

    __slots__ = ("_depth", "_path", "_smallest", "weight")

    def __init__(self, path: list[tuple[int, int]], smallest: Fraction) -> None:
        self._path = path  # (outcome taken, number of outcomes) at each choice
        self._smallest = smallest
        self._depth = 0
        self.weight = Fraction(1)

    def _branch(self, weights: Sequence[Fraction]) -> int:
        """Take the outcome that this run is to explore; the first possible one where the path is new."""
        if self._depth == len(self._path):
            self._path.append((0, len(weights)))
        outcome, options = self._path[self._depth]
        if options != len(weights):
            raise NumberError("the code does not depend on its random bits alone: a replay took another turn")
        self._depth += 1
        self.weight *= weights[outcome]
        # `<=` so that impossible outcomes are never followed, whatever the smallest weight.
        if self.weight <= self._smallest:
            raise _Abandoned
        return outcome

    def _uniform(self, below: int) -> int:
        if below == 1:
            return 0
        return self._branch([Fraction(1, below)] * below)

    def fill(self, out: NDArray[np.uint8]) -> None:
        for i in range(out.size):
            out[i] = self._uniform(256)

    def take(self, count: int) -> bytes:
        return bytes(self._uniform(256) for _ in range(count))

    def bernoulli(self, probability: Dyadic, size: int | None = None) -> Any:
        p = probability.value
        if size is None:
            return self._branch([1 - p, p]) == 1
        return np.array([self._branch([1 - p, p]) == 1 for _ in range(size)], dtype=np.bool_)

    def integers(self, below: int, size: int | None = None) -> Any:
        if below < 1:
            raise NumberError(f"there is no integer from 0 up to, but not including, {below}")
        if size is None:
            return self._uniform(below)
        return np.array([self._uniform(below) for _ in range(size)], dtype=np.int64)

    def integer_list(self, below: int, count: int) -> list[int]:
        return [self._uniform(below) for _ in range(count)]

    def kept_and_drawn(self, keep: Dyadic, below: int) -> tuple[bool, int]:
        return self.bernoulli(keep), self._uniform(below)

    def lanes(self, probability: Dyadic, count: int) -> int:
        p = probability.value
        return sum((self._branch([1 - p, p])) << lane for lane in range(count))

    def packed(self, probability: Dyadic, lanes: int, size: int | None = None) -> NDArray[np.uint8]:
        rows = [self.bernoulli(probability, lanes) for _ in range(1 if size is None else size)]
        packed = np.packbits(np.array(rows, dtype=np.bool_).reshape(len(rows), lanes), axis=1, bitorder="little")
        return packed[0] if size is None else packed

    def draw(self, law: Law, size: int | None = None) -> Any:
        weights = [Fraction(w, law.total) for w in law.weights]
        if size is None:
            return self._branch(weights)
        return np.array([self._branch(weights) for _ in range(size)], dtype=np.int64)

    def keep_or_uniform(self, values: NDArray[Any], keep: Dyadic, below: int) -> NDArray[Any]:
        kept = self.bernoulli(keep, values.size).reshape(values.shape)
        drawn = self.integers(below, values.size).reshape(values.shape)
        return np.where(kept, values, drawn).astype(values.dtype)


def exhaust(function: Callable[[Bits], T], smallest: Fraction = Fraction(0), most_runs: int = 1_000_000) -> Enumeration:
    """The exact law of `function(bits)`.

    >>> exhaust(lambda bits: bits.integers(2) + bits.integers(2)).law
    {0: Fraction(1, 4), 1: Fraction(1, 2), 2: Fraction(1, 4)}
    """
    law: dict[T, Fraction] = {}
    missing = Fraction(0)
    path: list[tuple[int, int]] = []
    for run in range(1, most_runs + 1):
        bits = Exhaustive(path, smallest)
        try:
            result = function(bits)
        except _Abandoned:
            missing += bits.weight
        else:
            if bits._depth != len(path):
                raise NumberError("the code does not depend on its random bits alone: a replay ended early")
            law[result] = law.get(result, Fraction(0)) + bits.weight
        while path and path[-1][0] + 1 == path[-1][1]:
            path.pop()
        if not path:
            return Enumeration(law, missing, run)
        outcome, options = path[-1]
        path[-1] = (outcome + 1, options)
    raise NumberError(f"more than {most_runs} branches: enumerate something smaller, or set `smallest`")

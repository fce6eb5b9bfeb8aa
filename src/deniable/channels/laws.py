"""Hypotheses as laws of answers, read exactly.

Numbers    a float counts as the decimal that prints it, so 0.1/0.2 and 0.3/0.6 are one ratio; each law over its sum
Names      {name: law} names the hypotheses, {symbol: probability} the symbols; all laws are put into one order
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable import exact
from deniable.channels._vectors import probability_vector
from deniable.errors import ProbabilityError, ShapeError, SpecError
from deniable.labels import Label, as_label, as_labels, label_key, label_spec, load_label
from deniable.specs import integer_text, read_integer


def read_hypotheses(p0: Any, p1: Any, inputs: Iterable[Any] | None = None) -> tuple[Any, Any, Iterable[Any] | None]:
    """Two laws in one order and the names of their symbols; mappings {label: probability} bring the names along.

    >>> read_hypotheses({"yes": 0.5, "no": 0.5}, {"no": 0.25, "yes": 0.75})
    ([0.5, 0.5], [0.75, 0.25], ('yes', 'no'))
    """
    (first, second), names = _aligned([p0, p1], ["first", "second"], inputs)
    return first, second, names


def _aligned(laws: list[Any], called: Sequence[str], inputs: Iterable[Any] | None) -> tuple[list[Any], Any]:
    """Laws over the same symbols in one order, and the names of the symbols if they have any."""
    if not any(isinstance(law, Mapping) for law in laws):
        return laws, inputs
    if not all(isinstance(law, Mapping) for law in laws):
        raise ShapeError("one hypothesis has names and the other has none: give all as {label: probability}")
    names = as_labels(list(laws[0]) if inputs is None else inputs, len(laws[0]), "input")
    keyed = [{label_key(as_label(name)): share for name, share in law.items()} for law in laws]
    for law, what in zip(keyed, called, strict=True):
        missing = [name for name in names if label_key(name) not in law]
        if missing or len(law) != len(names):
            odd = f"misses {missing[0]!r}" if missing else f"has {len(law)} symbols, not {len(names)}"
            raise ShapeError(f"the {what} hypothesis {odd}: all need a probability for each of the same symbols")
    return [[law[label_key(name)] for name in names] for law in keyed], names


@dataclass(frozen=True)
class Laws:
    """Several hypotheses over the same symbols, each as integers over their sum, with their names."""

    weights: tuple[tuple[int, ...], ...]
    names: tuple[Label, ...]
    inputs: tuple[Label, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.weights) < 2 or len({len(law) for law in self.weights}) != 1 or not self.weights[0]:
            raise ShapeError("give at least two laws, all over the same symbols")
        if any(min(law) < 0 or sum(law) == 0 for law in self.weights):
            raise ProbabilityError("the weights of a hypothesis are not negative and not all zero")

    @classmethod
    def numbered(cls, weights: Sequence[Sequence[int]], inputs: tuple[Label, ...] | None = None) -> Laws:
        """Laws without names are H0, H1, ..."""
        return cls(tuple(map(tuple, weights)), tuple(f"H{place}" for place in range(len(weights))), inputs)

    def renamed(self, names: Sequence[Any]) -> Laws:
        return Laws(self.weights, as_labels(names, self.count, "hypothesis"), self.inputs)

    def spec(self) -> list[dict[str, Any]]:
        """Names and weights as JSON; the names of the symbols are not in it."""
        return [
            {"name": label_spec(name), "weights": [integer_text(weight) for weight in plain_weights(law)]}
            for name, law in zip(self.names, self.weights, strict=True)
        ]

    @classmethod
    def load(cls, written: Any) -> Laws:
        """From JSON."""
        names, weights = [], []
        for law in written if isinstance(written, list) else [None]:
            match law:
                case {"name": name, "weights": list(listed), **rest} if not rest:
                    names.append(load_label(name))
                    weights.append(tuple(read_integer(weight) for weight in listed))
                case _:
                    raise SpecError("laws are a list of objects, each with a name and weights")
        return cls(tuple(weights), as_labels(names, len(names), "hypothesis"))

    @property
    def count(self) -> int:
        return len(self.weights)

    @property
    def size(self) -> int:
        return len(self.weights[0])

    def fractions(self, place: int) -> list[Fraction]:
        total = sum(self.weights[place])
        return [Fraction(w, total) for w in self.weights[place]]


def read_laws(laws: Mapping[Any, Any] | Sequence[Any], inputs: Iterable[Any] | None = None) -> Laws:
    """Laws from {name: law} or a list of laws; a law is a list of probabilities or {symbol: probability}.

    A probability may be text, such as "1/3".

    >>> read_laws({"fair": [0.5, 0.5], "biased": [0.75, 0.25]})
    Laws(weights=((1, 1), (3, 1)), names=('fair', 'biased'), inputs=None)
    """
    named = isinstance(laws, Mapping)
    listed = list(laws.values()) if isinstance(laws, Mapping) else list(laws)
    names = as_labels(list(laws) if named else None, len(listed), "hypothesis")
    if len(listed) < 2:
        raise ShapeError("give at least two laws, all over the same symbols")
    called = [repr(name) if named else f"number {place}" for place, name in enumerate(names, start=1)]
    aligned, symbols = _aligned(listed, called, inputs)
    aligned = [[exact.fraction(p, "a probability") if isinstance(p, str) else p for p in law] for law in aligned]
    size = len(aligned[0])
    for law, what in zip(aligned, called, strict=True):
        probability_vector(law, size, f"hypothesis {what}")
    given = None if symbols is None else as_labels(symbols, size, "input")
    return Laws(tuple(integer_weights(law) for law in aligned), names, given)


def integer_weights(values: ArrayLike | Sequence[Any]) -> tuple[int, ...]:
    """Non-negative integers in the proportions of the numbers as they were typed."""
    listed = values if isinstance(values, list | tuple) else np.asarray(values).tolist()
    fractions: list[Fraction] = [exact.fraction(value, "a probability") for value in listed]
    scale = math.lcm(*{value.denominator for value in fractions})
    weights = [value.numerator * (scale // value.denominator) for value in fractions]
    return plain_weights(weights)


def plain_weights(weights: Sequence[int]) -> tuple[int, ...]:
    """The same proportions in the smallest integers."""
    common = math.gcd(*weights) or 1
    return tuple(weight // common for weight in weights)

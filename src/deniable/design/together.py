"""Computing together: parties with a private bit each learn a function of all bits from randomized bits.

Law        each party publishes its bit, kept with probability p = floor(2^64 e^epsilon / (e^epsilon + 1)) / 2^64;
           nobody speaks twice, and nobody waits for anybody
Privacy    p / (1 - p) <= e^epsilon about the party's bit, whatever the others do; parties may have different epsilons
Accuracy   how often the best guess of the function's value is right: by an outsider who sees all published bits, by a
           party that also knows its own, and by somebody who sees nothing; exact fractions, by enumeration
Curator    the best release by a curator trusted with all bits, under the same epsilons: a linear program,
           with a proof from both sides (see `bayes`)
Optimal    no other protocol gives an outsider or a party more, with any number of rounds: a message about one bit is
           randomized response with post-processing. `best_of_rounds` searches for a better one on a grid
Cost       k 2^k steps per value of the function; up to 12 parties
Source     Kairouz, Oh and Viswanath 2014 (non-interactive randomized response is optimal)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels.laws import Floats
from deniable.design.base import Design
from deniable.design.bayes import bayes
from deniable.errors import LabelError, NumberError, ShapeError
from deniable.exact import WORD, Dyadic
from deniable.labels import Label, as_label, label_key
from deniable.randomness import Bits, source_of

MOST_PARTIES = 12
_LARGE_PROGRAM = 7

Function = str | Callable[[tuple[int, ...]], Any] | Sequence[Any]

KNOWN: dict[str, Callable[[tuple[int, ...]], Label]] = {
    "xor": lambda bits: sum(bits) % 2,
    "and": lambda bits: int(all(bits)),
    "or": lambda bits: int(any(bits)),
    "majority": lambda bits: int(2 * sum(bits) > len(bits)),
    "sum": lambda bits: sum(bits),
}


@dataclass(frozen=True, eq=False)
class Together:
    """What each listener can learn about a function of everybody's bits.

    Args:
        name: Name of the function.
        values: Values of the function at 00..0, 00..1, ..., 11..1; the first party's bit is the leftmost.
        epsilons: The guarantee of each party.
        priors: The probability that each party's bit is 1.

    >>> xor = together("xor", epsilon=1, parties=2)
    >>> round(float(xor.outsider), 5), round(float(xor.parties[0]), 5), round(xor.curator.value, 5)
    (0.60678, 0.73106, 0.73106)
    """

    name: str
    values: tuple[Label, ...]
    epsilons: tuple[Fraction, ...]
    priors: tuple[Fraction, ...]

    @property
    def size(self) -> int:
        return len(self.epsilons)

    @cached_property
    def keep(self) -> tuple[Dyadic, ...]:
        """The probability that each party publishes its own bit."""
        return tuple(Dyadic.floor_of(lambda e: e / (e + 1), epsilon) for epsilon in self.epsilons)

    @property
    def ratios(self) -> tuple[Fraction, ...]:
        """The exact likelihood ratio of each party's published bit, at most e^epsilon."""
        return tuple(keep.value / (1 - keep.value) for keep in self.keep)

    @cached_property
    def _outcomes(self) -> tuple[Label, ...]:
        return tuple({label_key(value): value for value in self.values}.values())

    @cached_property
    def _weights(self) -> dict[Any, NDArray[np.object_]]:
        """For each value of the function, the prior weights of the inputs that have it, over `_total`."""
        prior = np.array([1], dtype=object)
        for one in self.priors:
            odds = np.array([one.denominator - one.numerator, one.numerator], dtype=object)
            prior = np.outer(prior, odds).reshape(-1)
        keys = [label_key(value) for value in self.values]
        return {
            label_key(value): np.where([key == label_key(value) for key in keys], prior, 0) for value in self._outcomes
        }

    @property
    def _total(self) -> int:
        return math.prod(one.denominator for one in self.priors)

    def _heard(self, clear: int | None) -> dict[Any, NDArray[np.object_]]:
        """P(value, observed bits) in integers, where one party's bit is observed without noise."""
        found = {}
        for value, weights in self._weights.items():
            table = weights.reshape((2,) * self.size)
            for place, keep in enumerate(self.keep):
                if place != clear:
                    zero, one = np.split(table, 2, axis=place)
                    kept, lost = keep.numerator, WORD - keep.numerator
                    table = np.concatenate([kept * zero + lost * one, lost * zero + kept * one], axis=place)
            found[value] = table.reshape(-1)
        return found

    def _right(self, clear: int | None) -> Fraction:
        best: Any = np.max(np.stack(list(self._heard(clear).values())), axis=0).sum()
        return Fraction(int(best), self._total * WORD ** (self.size - (clear is not None)))

    @cached_property
    def blind(self) -> Fraction:
        """Probability that the best guess is right for somebody who sees nothing."""
        return max(Fraction(int(weights.sum()), self._total) for weights in self._weights.values())

    @cached_property
    def outsider(self) -> Fraction:
        """Probability that the best guess is right for somebody who sees all published bits."""
        return self._right(None)

    @cached_property
    def parties(self) -> tuple[Fraction, ...]:
        """Probability that the best guess is right for each party, which also knows its own bit."""
        known: dict[Any, Fraction] = {}
        alike = self.is_symmetric
        for place in range(self.size):
            key = (self.epsilons[place], self.priors[place]) if alike else place
            if key not in known:
                known[key] = self._right(place)
        return tuple(known[(self.epsilons[i], self.priors[i]) if alike else i] for i in range(self.size))

    @property
    def is_symmetric(self) -> bool:
        """Whether the function depends only on how many bits are 1."""
        seen: dict[int, Any] = {}
        return all(
            seen.setdefault(index.bit_count(), label_key(value)) == label_key(value)
            for index, value in enumerate(self.values)
        )

    @cached_property
    def curator(self) -> Design:
        """The best release by a curator trusted with all bits: `.value` is attained, `.bound` cannot be exceeded."""
        alike = self.is_symmetric and len(set(self.epsilons)) == 1 and len(set(self.priors)) == 1
        if alike:
            # Averaged over the order of the parties a release is as private and as good: it may depend on the sum only.
            one, n = self.priors[0], self.size
            prior = [math.comb(n, k) * one**k * (1 - one) ** (n - k) for k in range(n + 1)]
            values = [self.values[(1 << k) - 1] for k in range(n + 1)]
            return self._release(list(range(n + 1)), prior, values, self.epsilons[0], "line")
        if self.size > _LARGE_PROGRAM:
            raise ShapeError(f"the curator's program is solved for up to {_LARGE_PROGRAM} parties that differ")
        names = ["".join(map(str, bits)) for bits in product((0, 1), repeat=self.size)]
        weights = [Fraction(w, self._total) for w in np.sum(np.stack(list(self._weights.values())), axis=0).tolist()]

        def distance(x: str, y: str) -> Fraction:
            return sum((e for a, b, e in zip(x, y, self.epsilons, strict=True) if a != b), Fraction(0))

        return self._release(names, weights, list(self.values), Fraction(1), distance)

    def _release(
        self, names: list[Any], prior: list[Fraction], values: list[Label], level: Fraction, by: Any
    ) -> Design:
        keys = [label_key(value) for value in values]
        gain = [[int(label_key(guess) == key) for key in keys] for guess in self._outcomes]
        given: Any = prior
        return bayes(given, gain=gain, epsilon=level, adjacency=by, inputs=names, guesses=list(self._outcomes))

    def publish(self, bits: Sequence[int], source: Bits | None = None) -> tuple[int, ...]:
        """The bits that the parties publish: each from its own bit and its own randomness."""
        self._check(bits)
        random = source_of(source)
        return tuple(bit if random.bernoulli(keep) else 1 - bit for bit, keep in zip(bits, self.keep, strict=True))

    def guess(self, published: Sequence[int], own: Mapping[int, int] | None = None) -> Label:
        """The likeliest value of the function, for an outsider, or for parties whose bits are known (`own`)."""
        self._check(published)
        chances: dict[Any, int] = {}
        for value, weights in self._weights.items():
            table = weights
            for place in range(self.size):
                heard, kept = published[place], self.keep[place].numerator
                if own and place in own:
                    heard, kept = own[place], WORD
                zero, one = table.reshape(2, -1)
                table = (kept * zero + (WORD - kept) * one) if heard == 0 else ((WORD - kept) * zero + kept * one)
            chances[value] = int(table.item())
        best = max(chances.values())
        return next(value for value in self._outcomes if chances[label_key(value)] == best)

    def _check(self, bits: Sequence[int]) -> None:
        if len(bits) != self.size or any(bit not in (0, 1) for bit in bits):
            raise ShapeError(f"{self.size} parties have {self.size} bits, each 0 or 1")

    def rows(self) -> list[tuple[str, float]]:
        """How often each listener is right."""
        each = [(f"party {i + 1}", float(value)) for i, value in enumerate(self.parties)]
        if len(set(self.parties)) == 1:
            each = [("a party", float(self.parties[0]))]
        first = [("nobody's word", float(self.blind)), ("an outsider", float(self.outsider))]
        return [*first, *each, ("a curator", self.curator.value)]

    def __str__(self) -> str:
        levels = ", ".join(dict.fromkeys(exact.shown(epsilon) for epsilon in self.epsilons))
        lines = [f"{self.name} of {self.size} bits at epsilon {levels}: how often the best guess is right"]
        return "\n".join([*lines, *(f"{who:<14}  {value:.5f}" for who, value in self.rows())])

    def __repr__(self) -> str:
        return f"<Together: {self.name} of {self.size} bits, outsider {float(self.outsider):.5f}>"


def together(function: Function, epsilon: Any, parties: int | None = None, prior: Any = "1/2") -> Together:
    """How well parties compute a function of their bits by publishing randomized ones.

    Args:
        function: "xor", "and", "or", "majority", "sum", a list of 2^k values, or a function of a tuple of bits.
        epsilon: One number for all parties, or one for each.
        parties: Number of parties, if nothing else gives it.
        prior: Probability that a bit is 1: one number for all parties, or one for each.

    Returns:
        The accuracy for each listener.

    Raises:
        ShapeError: The numbers of epsilons, priors and parties differ.
    """
    several = isinstance(epsilon, Sequence) and not isinstance(epsilon, str)
    count = parties
    if several:
        if count not in (None, len(epsilon)):
            raise ShapeError(f"there are {len(epsilon)} epsilons for {count} parties")
        count = len(epsilon)
    if count is None and not isinstance(function, str) and not callable(function):
        count = (len(function) - 1).bit_length()
    if count is None:
        raise ShapeError("say how many parties there are: parties=2, for example")
    if not 1 <= exact.whole(count, "the number of parties") <= MOST_PARTIES:
        raise ShapeError(f"1 to {MOST_PARTIES} parties compute together, not {count}")
    levels = tuple(exact.as_epsilon(one) for one in (epsilon if several else [epsilon] * count))
    ones = prior if isinstance(prior, Sequence) and not isinstance(prior, str) else [prior] * count
    priors = tuple(exact.fraction(one, "a prior") for one in ones)
    if len(priors) != count or any(not 0 <= one <= 1 for one in priors):
        raise NumberError(f"a prior is a probability, one for all parties or one for each of the {count}")
    name, values = _values(function, count)
    return Together(name, values, levels, priors)


def _values(function: Function, count: int) -> tuple[str, tuple[Label, ...]]:
    if isinstance(function, str):
        if function not in KNOWN:
            raise LabelError(
                f"the function is one of {', '.join(KNOWN)}, a list or a Python function, not {function!r}"
            )
        return function, tuple(KNOWN[function](bits) for bits in product((0, 1), repeat=count))
    if callable(function):
        name = getattr(function, "__name__", "function").strip("<>")
        return name, tuple(as_label(function(bits)) for bits in product((0, 1), repeat=count))
    if len(function) != 1 << count:
        raise ShapeError(f"a function of {count} bits has {1 << count} values, and {len(function)} are given")
    return "table", tuple(as_label(value) for value in function)


# -- whether more rounds help -------------------------------------------------------------------------


def best_of_rounds(
    function: Function,
    epsilon: Any,
    speakers: Sequence[int] = (0, 1, 0, 1),
    points: int = 5,
    listener: int | None = None,
) -> float:
    """The best accuracy of two parties that speak in turn, over all binary messages with probabilities on a grid.

    Every message may depend on the speaker's bit and on all previous messages; all messages of a party together satisfy
    epsilon for its bit. The grid also has the probabilities of randomized response.

    Args:
        function: As for `together`.
        epsilon: One number, or one for each party.
        speakers: Who speaks in each round.
        points: Number of steps of the grid from 0 to 1.
        listener: Position of the party that guesses; None for an outsider.

    Returns:
        The largest probability of a right guess.
    """
    pair = together(function, epsilon, 2)
    odds = math.exp(float(pair.epsilons[0])), math.exp(float(pair.epsilons[1]))
    ends = {odd / (odd + 1) for odd in odds} | {1 / (odd + 1) for odd in odds}
    grid = np.array(sorted({*np.linspace(0, 1, points + 1).tolist(), *ends}))
    zero, one = (axis.reshape(-1) for axis in np.meshgrid(grid, grid, indexing="ij"))
    masks = [np.asarray(weights, dtype=np.float64).reshape(2, 2) / pair._total for weights in pair._weights.values()]

    def leaf(states: Floats) -> Floats:
        """`states` holds the likelihoods of the messages so far, for the bits 0 and 1 of both parties."""
        joint = states[:, :2, None] * states[:, None, 2:]
        if listener is None:
            right: Floats = np.max([(joint * mask).sum(axis=(1, 2)) for mask in masks], axis=0)
        else:
            right = np.max([(joint * mask).sum(axis=2 - listener) for mask in masks], axis=0).sum(axis=1)
        return right

    def value(states: Floats, left: Sequence[int]) -> Floats:
        """The best accuracy reachable from here. Only the two ratios matter: each pair of them is solved once."""
        first, second = states[:, :2].max(axis=1), states[:, 2:].max(axis=1)
        scale = first * second
        live = scale > 0
        shape = np.zeros_like(states)
        shape[live] = states[live] / np.stack([first, first, second, second], axis=1)[live]
        different, where = np.unique(shape.round(12), axis=0, return_inverse=True)
        solved = np.array([best(state, left) for state in different]) if left else leaf(different)
        return np.where(live, scale * solved[where.reshape(-1)], 0.0)

    def best(state: Floats, left: Sequence[int]) -> float:
        speaker, rest = left[0], left[1:]
        own = slice(2 * speaker, 2 * speaker + 2)
        said = np.stack([np.stack([zero, one], axis=1), np.stack([1 - zero, 1 - one], axis=1)])
        after = np.tile(state, (2, zero.size, 1))
        after[:, :, own] *= said
        ends, room = after[:, :, own], odds[speaker] * (1 + 1e-9)
        allowed = (ends[..., 0] <= room * ends[..., 1]) & (ends[..., 1] <= room * ends[..., 0])
        after = after[:, allowed.all(axis=0)]
        return float(value(after.reshape(-1, 4), rest).reshape(2, -1).sum(axis=0).max())

    return float(value(np.ones((1, 4)), list(speakers))[0])

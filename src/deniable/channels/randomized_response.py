"""Randomized response: tell the truth with some probability, else say anything.

Also called the flat mechanism, k-RR, direct encoding; Warner's response for two answers.

Law        kept with probability t, else uniform over all k: p = t + (1 - t) / k, q = (1 - t) / k
Privacy    p / q <= e^epsilon; t = floor(2^64 (e^epsilon - 1) / (e^epsilon + k - 1)) / 2^64, so never exceeded
Cost       one word to decide, one to draw; k is limited by nothing here, the matrix form by memory
Source     Warner 1965; Kairouz, Oh and Viswanath 2014

The binary mechanism: one bit that says which of two hypotheses an answer speaks for.

Law        reports 0 with probability e^epsilon / (1 + e^epsilon) if P0(x) >= P1(x), else with 1 / (1 + e^epsilon)
Privacy    exactly Warner's response to the question "is P0(x) >= P1(x)?"
Use        optimal among all mechanisms for total variation, and for every f-divergence at small epsilon
Ties       where P0(x) = P1(x) the side may be chosen: `ties` (for some divergences the other one is better)
Source     Kairouz, Oh and Viswanath 2014
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable import exact
from deniable.channels._vectors import probability_vector
from deniable.channels.channel import Channel
from deniable.channels.compose import MOST_CELLS, product
from deniable.errors import ChannelError, LabelError, ProbabilityError, ShapeError
from deniable.exact import WORD, Dyadic
from deniable.labels import in_order
from deniable.randomness import Bits, source_of


@dataclass(frozen=True)
class RandomizedResponse:
    """The law of k-ary randomized response without its matrix: any k, exact ratio, fast sampling.

    >>> law = RandomizedResponse.at(1000, epsilon=1)
    >>> law.keep.numerator, law.ratio < exact.exp_ceil(Fraction(1))
    (31642334687386349, True)
    """

    size: int
    keep: Dyadic

    @classmethod
    def at(cls, size: int, epsilon: Any) -> RandomizedResponse:
        """The law at an epsilon."""
        # A float here would make the threshold a float as well.
        count = exact.whole(size, "the number of possible answers")
        if count < 2:
            raise ShapeError(f"randomized response needs at least 2 possible answers, not {count}")
        keep = Dyadic.floor_of(lambda e: (e - 1) / (e + count - 1), exact.as_epsilon(epsilon))
        if keep.numerator == 0:
            raise ChannelError(f"at this epsilon an answer among {count} would never be kept: raise epsilon")
        return cls(count, keep)

    @property
    def true(self) -> Fraction:
        """Probability that the true answer is reported."""
        return self.keep.value + self.false

    @property
    def false(self) -> Fraction:
        """Probability of each other answer."""
        return (1 - self.keep.value) / self.size

    @cached_property
    def ratio(self) -> Fraction:
        return self.true / self.false

    @property
    def epsilon(self) -> float:
        return exact.log(self.ratio)

    def sample_indices(self, values: ArrayLike, bits: Bits | None = None) -> NDArray[Any]:
        """Randomize answers given as positions 0 .. size - 1, in an array of any integer type that holds them all."""
        array = np.asarray(values)
        if array.size == 0 and array.dtype == np.float64:  # an empty list
            array = array.astype(np.int64)
        if not np.issubdtype(array.dtype, np.integer):
            raise ShapeError("positions of answers are integers")
        if array.size and not (array.min() >= 0 and array.max() < self.size):
            raise LabelError(f"an answer's position must lie between 0 and {self.size - 1}")
        # In a type that cannot hold the other answers the law would be another one.
        if self.size - 1 > np.iinfo(array.dtype).max:
            raise ShapeError(
                f"{array.dtype} does not hold the positions up to {self.size - 1}: use a wider integer type"
            )
        return source_of(bits).keep_or_uniform(array, self.keep, self.size)

    def channel(self, labels: Iterable[Any] | None = None) -> Channel:
        """The exact matrix: (T k + M - T) and (M - T), over M k."""
        if self.size**2 > MOST_CELLS:
            raise ChannelError(f"the matrix would have {self.size**2} cells: use RandomizedResponse for large k")
        lie = WORD - self.keep.numerator
        numerators = np.full((self.size, self.size), lie, dtype=object)
        numerators[np.diag_indices(self.size)] = self.keep.numerator * self.size + lie
        names = None if labels is None else in_order(labels, "the labels")
        return Channel.from_integers(numerators, WORD * self.size, names, names)


def randomized_response(k: int | Iterable[Any], epsilon: Any) -> Channel:
    """k-ary randomized response, over 0 .. k - 1 or over given labels.

    >>> randomized_response(["yes", "no"], "1.0986122886681098").rows.round(4).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    if isinstance(k, str):
        raise LabelError("the answers are one text: give a list of labels, or their number")
    if not isinstance(k, Iterable):
        return RandomizedResponse.at(k, epsilon).channel()
    labels = in_order(k, "the answers")
    return RandomizedResponse.at(len(labels), epsilon).channel(labels)


def warner(epsilon: Any, labels: Sequence[Any] = ("yes", "no")) -> Channel:
    """Warner's response to a yes-or-no question: the truth with probability e^epsilon / (e^epsilon + 1)."""
    if len(labels) != 2:
        raise ShapeError(f"Warner's response has two answers, not {len(labels)}")
    return randomized_response(labels, epsilon)


def coin_response(truth: Any = "1/2", yes: Any = "1/2") -> Channel:
    """The embarrassing question: flip a coin; heads, tell the truth; tails, flip again for yes or no.

    `truth` is the probability of heads the first time, `yes` the second time.

    >>> coin_response().ratio
    Fraction(3, 1)
    """
    heads, second = (
        exact.fraction(truth, "the first coin's bias"),
        exact.fraction(yes, "the second coin's bias"),
    )
    for bias in (heads, second):
        if not 0 <= bias <= 1:
            raise ProbabilityError(f"the bias of a coin is a probability, not {exact.shown(bias)}")
    lie = (1 - heads) * second
    rows = [[heads + lie, 1 - heads - lie], [lie, 1 - lie]]
    return Channel(rows, ["yes", "no"], ["yes", "no"])


def product_response(domains: Sequence[int | Sequence[Any]], epsilon: Any, split: bool = True) -> Channel:
    """Randomized response over a record of several attributes.

    Split: each attribute is randomized by itself with an equal share of epsilon, and the shares add up.
    Otherwise the whole record is one answer among all combinations, at the full epsilon.
    """
    if not domains:
        raise ShapeError("a record needs at least one attribute")
    level = exact.as_epsilon(epsilon)
    labels = [
        in_order(d, "the answers") if isinstance(d, Iterable) else [*range(exact.whole(d, "the size of an attribute"))]
        for d in domains
    ]
    if split:
        return product(*(randomized_response(names, level / len(domains)) for names in labels))
    from itertools import product as combinations

    return randomized_response(list(combinations(*labels)), level)


# -- one bit that says which of two hypotheses an answer speaks for -----------------------------------


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

"""Channels in closed form: randomized response, the binary mechanism, subset selection and the exponential mechanism.

Randomized response: tell the truth with some probability, else say anything.

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

Subset selection: report w answers, the true one more often among them than not.

Law        the subset contains the truth with probability p = T / 2^64, T = floor(2^64 w e / (w e + k - w));
           given that, it is uniform among the subsets of size w that do (or do not)
Privacy    P(S | x in S) / P(S | x not in S) = p (k - w) / (w (1 - p)) <= e = e^epsilon
Use        the smallest variance of all for w near k / (e + 1); the matrix form is for analysis at small k
Source     Ye and Barg 2018; Wang et al. 2016

The exponential mechanism: the better an output fits the input, the likelier it is.

Law        P(y | x) proportional to e^(epsilon score(x, y) / (2 sensitivity))
Privacy    a score moves by at most the sensitivity between neighbours, once in the weight and once in the sum;
           exponentials are irrational, so the rows are computed between rational bounds and then repaired,
           and epsilon is verified with integers
Source     McSherry and Talwar 2007
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable import exact
from deniable.channels.adjacency import ALL, as_adjacency
from deniable.channels.channel import Channel
from deniable.channels.compose import MOST_CELLS, product
from deniable.channels.laws import probability_vector
from deniable.errors import ChannelError, LabelError, ProbabilityError, ShapeError
from deniable.exact import WORD, Dyadic
from deniable.labels import as_labels, in_order
from deniable.randomness import Bits, source_of


@dataclass(frozen=True)
class RandomizedResponse:
    """The law of k-ary randomized response without its matrix: any k, exact ratio, fast sampling.

    Args:
        size: Number of possible answers.
        keep: Probability of keeping the answer.

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

    Args:
        k: The possible answers, or their number.
        epsilon: The guarantee.

    Returns:
        A square channel.

    Raises:
        LabelError: The answers are one text.

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
    """Warner's response to a yes-or-no question: the truth with probability e^epsilon / (e^epsilon + 1).

    Args:
        epsilon: The guarantee.
        labels: The two answers.

    Returns:
        A channel with two inputs and two outputs.

    Raises:
        ShapeError: There are not exactly two labels.
    """
    if len(labels) != 2:
        raise ShapeError(f"Warner's response has two answers, not {len(labels)}")
    return randomized_response(labels, epsilon)


def coin_response(truth: Any = "1/2", yes: Any = "1/2") -> Channel:
    """The embarrassing question: flip a coin; heads, tell the truth; tails, flip again for yes or no.

    Args:
        truth: Probability of heads the first time.
        yes: Probability of heads the second time.

    Returns:
        A channel over yes and no.

    Raises:
        ProbabilityError: A bias is not a probability.

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

    Args:
        domains: The answers of each attribute: a list, or their number.
        epsilon: The guarantee for the whole record.
        split: Whether each attribute is randomized by itself.

    Returns:
        A channel over tuples.

    Raises:
        ShapeError: There are no attributes.
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


# -- one bit that indicates which of two hypotheses an answer supports --------------------------------


def binary(p0: ArrayLike, p1: ArrayLike, epsilon: Any, ties: int = 0, inputs: Iterable[Any] | None = None) -> Channel:
    """The binary mechanism for two known hypotheses.

    Args:
        p0: Distribution of the answers under the first hypothesis.
        p1: Distribution of the answers under the second hypothesis.
        epsilon: The guarantee.
        ties: Output for answers that are equally likely under both: 0 or 1.
        inputs: Labels of the answers; 0, 1, 2, ... if None.

    Returns:
        A channel with two outputs.

    Raises:
        LabelError: `ties` is neither 0 nor 1.

    >>> binary([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], epsilon="1.0986122886681098").rows.round(4).tolist()
    [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75]]
    """
    first = probability_vector(p0, what="first hypothesis")
    probability_vector(p1, first.size, what="second hypothesis")
    if ties not in (0, 1):
        raise LabelError("ties go to output 0 or to output 1")
    # Compared as typed decimals: a division by the sum could break a tie.
    mine, theirs = ([exact.fraction(value) for value in np.asarray(p).tolist()] for p in (p0, p1))
    gaps = [a * sum(theirs) - b * sum(mine) for a, b in zip(mine, theirs, strict=True)]
    side = np.array([ties if gap == 0 else int(gap < 0) for gap in gaps])
    coin = warner(epsilon, labels=(0, 1))
    return Channel.from_integers(coin.numerators[side], coin.denominator, inputs, (0, 1))


# -- subset selection ---------------------------------------------------------------------------------


def subset_selection(k: int, epsilon: Any, w: int | None = None) -> Channel:
    """The channel of subset selection over 0 .. k - 1; outputs are tuples of w answers in ascending order.

    Args:
        k: Number of possible answers.
        epsilon: The guarantee.
        w: Size of a reported subset; the best one if None.

    Returns:
        A channel whose outputs are subsets.

    Raises:
        ShapeError: `k` is below 2, or `w` is not between 1 and k - 1.

    >>> subset_selection(4, epsilon=1).shape
    (4, 4)
    """
    level, k = exact.as_epsilon(epsilon), exact.whole(k, "the number of possible answers")
    if k < 2:
        raise ShapeError(f"subset selection needs at least 2 possible answers, not {k}")
    size = best_subset_size(k, float(level)) if w is None else exact.whole(w, "the size of a subset")
    if not 1 <= size < k:
        raise ShapeError(f"a subset has between 1 and {k - 1} of the {k} answers, not {size}")
    # C(k, size) >= k, so the first test avoids counting subsets when that would take minutes.
    if k * k > MOST_CELLS or math.comb(k, size) * k > MOST_CELLS:
        raise ChannelError(f"there are too many subsets of {size} among {k} answers for a matrix")
    holds = Dyadic.floor_of(lambda e: size * e / (size * e + k - size), level).numerator
    inside, outside = math.comb(k - 1, size - 1), math.comb(k - 1, size)
    subsets = list(combinations(range(k), size))
    weight = {True: holds * outside, False: (WORD - holds) * inside}
    numerators = [[weight[x in subset] for subset in subsets] for x in range(k)]
    return Channel.from_integers(numerators, WORD * inside * outside, None, subsets)


def best_subset_size(k: int, epsilon: float) -> int:
    """The size with the smallest mean squared error: one of the two integers around k / (e^epsilon + 1)."""
    odds = math.exp(epsilon)
    ideal = k / (odds + 1)
    sizes = {min(max(1, s), k - 1) for s in (math.floor(ideal), math.ceil(ideal))}
    return min(sizes, key=lambda w: (w * odds + k - w) ** 2 / (w * (k - w)))


# -- the exponential mechanism ------------------------------------------------------------------------


_WORST = Fraction(-4096)

Score = Callable[[Any, Any], Any] | Sequence[Sequence[Any]]


def exponential(
    scores: Score,
    epsilon: Any,
    inputs: Iterable[Any],
    outputs: Iterable[Any],
    adjacency: Any = ALL,
    sensitivity: Any = None,
) -> Channel:
    """The exponential mechanism for a score matrix or a function score(input, output).

    The sensitivity is computed over the adjacent pairs unless a larger one is given.

    Args:
        scores: Matrix `[input][output]` or function (input, output).
        epsilon: The guarantee.
        inputs: Labels of the inputs.
        outputs: Labels of the outputs.
        adjacency: Which inputs are neighbours.
        sensitivity: Largest change of a score between neighbours; computed if None.

    Returns:
        The channel.

    Raises:
        ShapeError: There are no inputs or outputs, or the score matrix does not fit them.

    >>> channel = exponential(lambda x, y: -abs(x - y), 1, range(5), range(5), adjacency="line")
    >>> channel.satisfies(1, "line")
    True
    """
    level, relation = exact.as_epsilon(epsilon), as_adjacency(adjacency)
    given, returned = in_order(inputs, "the inputs"), in_order(outputs, "the outputs")
    if not given or not returned:
        raise ShapeError("the exponential mechanism needs at least one input and one output")
    if not callable(scores) and (len(scores) != len(given) or any(len(row) != len(returned) for row in scores)):
        raise ShapeError("the score matrix needs a row for each input and a column for each output")
    table = [[_score(scores, i, j, x, y) for j, y in enumerate(returned)] for i, x in enumerate(given)]
    moved = _sensitivity(table, as_labels(given, len(given), "input"), relation)
    if sensitivity is not None:
        claimed = exact.fraction(sensitivity, "the sensitivity")
        if claimed < moved:
            raise ChannelError(
                f"the scores move by {exact.shown(moved)} between neighbours, more than {exact.shown(claimed)}"
            )
        moved = claimed
    if moved == 0:
        raise ChannelError("the scores do not depend on the input: there is nothing to protect or to learn")
    rate = level / (2 * moved)
    rows = []
    for row in table:
        best = max(row)
        # No score counts as worse than e^-4096: like any cap, this moves scores closer together, never apart.
        weights = [exact.exp_floor(max(rate * (score - best), _WORST), 160) for score in row]
        # Over powers of two the sums stay short; repair divides each row by its own sum.
        rows.append([exact.floor_to_bits(weight, 160) for weight in weights])
    return Channel.from_floats(rows, level, relation, given, returned)


def _score(scores: Score, i: int, j: int, x: Any, y: Any) -> Fraction:
    if callable(scores):
        return exact.fraction(scores(x, y), "a score")
    return exact.fraction(scores[i][j], "a score")


def _sensitivity(table: list[list[Fraction]], inputs: tuple[Any, ...], relation: Any) -> Fraction:
    return max(
        (abs(a - b) / d for i, j, d in relation.pairs(inputs) for a, b in zip(table[i], table[j], strict=True)),
        default=Fraction(0),
    )

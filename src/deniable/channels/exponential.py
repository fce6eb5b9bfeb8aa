"""The exponential mechanism: the better an output fits the input, the likelier it is.

Law        P(y | x) proportional to e^(epsilon score(x, y) / (2 sensitivity))
Privacy    a score moves by at most the sensitivity between neighbours, once in the weight and once in the sum;
           exponentials are irrational, so the rows are computed between rational bounds and then repaired,
           and epsilon is verified with integers
Source     McSherry and Talwar 2007
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from deniable import exact
from deniable.channels.adjacency import ALL, as_adjacency
from deniable.channels.channel import Channel
from deniable.errors import ChannelError, ShapeError
from deniable.labels import as_labels, in_order

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
        # Over powers of two the sums stay short; repair divides each row by its own.
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

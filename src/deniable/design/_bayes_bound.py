"""The proof that no mechanism costs less: prices of the inputs, checked with decimals that are rounded down.

Bound      for any prices p: cost of a channel = sum of p + sum over guesses y of r_y . c_y, with r_y = cost_y - p,
           because every row sums to one. If r_y . c >= 0 for every column c whose ratios hold, the sum of p is a bound
All pairs  entries lie between m and E m, so r . c >= m * sum of min(r_x, E r_x), and the m of all outputs sum to
           at most 1
Edges      on a tree the least r . c with entry 1 at the root is found from the leaves: V = r + sum of min(E V', V' / E)
Cycles     multipliers f >= 0 of the edges that a spanning tree leaves out: r . c >= (r - f (E e_z - e_x)) . c
Rounding   50 digits, each step down; E rounded up, which admits more channels and so can only lower the bound
Slack      a negative least value is charged: outputs with one root share its row, whose entries sum to one
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction

from deniable import exact
from deniable.design._relation import Branch, Relation

_DIGITS = 50

Costs = Sequence[Sequence[Decimal]]
"""[guess][input], each at most the true cost."""

Flows = Sequence[tuple[int, int, float]]
"""(direction of an edge, guess, multiplier)."""


def context(rounding: str = ROUND_FLOOR) -> Context:
    return Context(prec=_DIGITS, rounding=rounding, Emin=-(10**9), Emax=10**9)


def decimal(value: Fraction, rounding: str) -> Decimal:
    """A fraction as a decimal, rounded in the given direction."""
    with localcontext(context(rounding)):
        return Decimal(value.numerator) / Decimal(value.denominator)


def proven_bound(
    costs: Costs,
    prices: Sequence[float],
    relation: Relation,
    epsilon: Fraction,
    flows: Flows = (),
    roots: Sequence[Sequence[int]] = (),
) -> Decimal:
    """What the prices prove: no channel within the relation costs less. `roots[component][guess]` is a position."""
    with localcontext(context()):
        rests = [[cost - Decimal(price) for cost, price in zip(row, prices, strict=True)] for row in costs]
        total = sum((Decimal(price) for price in prices), Decimal(0))
        if relation.edges is None:
            odds = decimal(exact.exp_ceil(epsilon), ROUND_CEILING)
            least = min(sum((min(r, r * odds) for r in row), Decimal(0)) for row in rests)
            return total + min(least, Decimal(0))
        limits = {d: decimal(exact.exp_ceil(epsilon * d), ROUND_CEILING) for _, _, d in relation.edges}
        for direction, guess, size in flows:
            i, j, distance = relation.edges[direction // 2]
            source, target = (i, j) if direction % 2 == 0 else (j, i)
            amount = Decimal(size)
            rests[guess][source] += amount
            # Minus first: the product has to be rounded down after the sign.
            rests[guess][target] += -amount * limits[distance]
        trees: dict[int, list[Branch]] = {}
        for component in roots:
            charged: dict[int, Decimal] = {}
            for row, root in zip(rests, component, strict=True):
                if root not in trees:
                    trees[root] = relation.tree(root)
                least = _least(row, root, trees[root], limits)
                charged[root] = min(charged.get(root, Decimal(0)), least)
            total += sum(charged.values(), Decimal(0))
        return total


def _least(row: Sequence[Decimal], root: int, tree: list[Branch], limits: dict[Fraction, Decimal]) -> Decimal:
    """The least row . c over columns with entry 1 at the root, using the ratios on a spanning tree."""
    value = list(row)
    for child, parent, distance in tree:
        below, odds = value[child], limits[distance]
        value[parent] += below / odds if below > 0 else below * odds
    return value[root]

"""The certificate of a Bayes-optimal mechanism: users, pairs, an exact channel and prices, checked without a solver.

Users      each user's prior and the cost of a wrong guess: cost[y, x] = sum over users of prior(x) loss(guess of this
           user in y, x); minus the gain instead of a loss. An output is one guess for each user; floats count as the
           numbers that they are, and sums are exact
Relation   which inputs must be hard to distinguish. All pairs: a column is valid iff its largest entry is at most
           e^epsilon times its smallest. Edges of a graph or a metric: ratios on the edges, at most e^(epsilon d); other
           pairs follow along paths, and a pair of a metric implied by two shorter ones is left out: |x - y| becomes a
           line
Rows       integers over one denominator; every output is a guess (of each user)
Ratios     on every edge, or over all pairs, compared with e^(epsilon d) exactly
Value      the expected loss or gain with each output used as the guess, as an exact fraction
Bound      for any prices p: cost of a channel = sum of p + sum over guesses y of r_y . c_y, with r_y = cost_y - p,
           because every row sums to one. If r_y . c >= 0 for every column c whose ratios hold, the sum of p is a bound.
           All pairs: entries lie between m and E m, so r . c >= m * sum of min(r_x, E r_x), and the m of all outputs
           sum to at most 1. On a tree the least r . c with entry 1 at the root is found from the leaves:
           V = r + sum of min(E V', V' / E). On cycles: multipliers f >= 0 of the edges that a spanning tree leaves out,
           r . c >= (r - f (E e_z - e_x)) . c
Rounding   50 digits, each step down; E rounded up, which admits more channels and so can only lower the bound
Slack      a negative least value is charged: outputs with one root share its row, whose entries sum to one
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from deniable import exact
from deniable.channels import Channel
from deniable.channels.adjacency import Adjacency, Pair
from deniable.channels.laws import Floats
from deniable.channels.utilities import Distribution, Function, read_function, read_prior
from deniable.design.base import Certificate, Check, Verdict, read_number
from deniable.errors import DeniableError, NumberError, ProbabilityError, ShapeError, SpecError
from deniable.labels import Label, as_labels, index_of, label_key, label_spec, load_label

_MOST_OUTPUTS = 100_000
_DIGITS = 50

Costs = Sequence[Sequence[Decimal]]
"""[guess][input], each at most the true cost."""

Flows = Sequence[tuple[int, int, float]]
"""(direction of an edge, guess, multiplier)."""

Branch = tuple[int, int, Fraction]
"""Child, parent and their distance."""


# -- the users ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class User:
    """A prior over the inputs and a table [guess][input]: losses, or gains with a minus."""

    prior: tuple[float, ...]
    table: tuple[tuple[float, ...], ...]
    guesses: tuple[Label, ...]

    @classmethod
    def of(
        cls,
        prior: Distribution,
        loss: Function | None,
        gain: Function | None,
        inputs: tuple[Label, ...],
        guesses: Iterable[Any] | None,
    ) -> User:
        if loss is not None and gain is not None:
            raise NumberError("give a gain or a loss, not both")
        weights = read_prior(prior, inputs)
        matrix, named = read_function(
            "zero-one" if loss is None and gain is None else _given(loss, gain), inputs, guesses
        )
        as_labels(named, len(named), "guess")
        signed = matrix if gain is None else -matrix
        return cls(tuple(weights.tolist()), tuple(map(tuple, (signed + 0.0).tolist())), named)

    def __post_init__(self) -> None:
        rows = {len(row) for row in self.table}
        if rows != {len(self.prior)} or len(self.table) != len(self.guesses):
            raise ShapeError("a user has a prior over the inputs and, for each guess, a number for each input")
        if not all(math.isfinite(v) for row in (self.prior, *self.table) for v in row):
            raise NumberError("a prior, a gain or a loss is NaN or infinite")
        if min(self.prior) < 0 or abs(math.fsum(self.prior) - 1) > 1e-9:
            raise ProbabilityError("a prior is made of numbers that are not negative and sum to 1")

    @cached_property
    def cost(self) -> Floats:
        return np.asarray(np.array(self.prior) * np.array(self.table))

    def content(self) -> dict[str, Any]:
        return {
            "prior": [repr(p) for p in self.prior],
            "table": [[repr(v) for v in row] for row in self.table],
            "guesses": [label_spec(guess) for guess in self.guesses],
        }

    @classmethod
    def read(cls, content: dict[str, Any]) -> User:
        prior = tuple(float(p) for p in content["prior"])
        table = tuple(tuple(float(v) for v in row) for row in content["table"])
        return cls(prior, table, tuple(load_label(guess) for guess in content["guesses"]))


def _given(loss: Function | None, gain: Function | None) -> Function:
    if loss is not None:
        return loss
    assert gain is not None
    return gain


@dataclass(frozen=True)
class Users:
    """All users of one channel; an output is a guess for each of them."""

    members: tuple[User, ...]

    def __post_init__(self) -> None:
        if not self.members or len({len(user.prior) for user in self.members}) != 1:
            raise ShapeError("the users of one mechanism have priors over the same inputs")
        if (outputs := math.prod(len(user.guesses) for user in self.members)) > _MOST_OUTPUTS:
            raise ShapeError(
                f"there are {outputs} combinations of guesses, and {_MOST_OUTPUTS} are the most: fewer users or guesses"
            )

    @property
    def size(self) -> int:
        return len(self.members[0].prior)

    @cached_property
    def choices(self) -> tuple[tuple[int, ...], ...]:
        """Every combination of guesses, as positions."""
        return tuple(product(*(range(len(user.guesses)) for user in self.members)))

    def label(self, choice: Sequence[int]) -> Label:
        guesses = tuple(user.guesses[i] for user, i in zip(self.members, choice, strict=True))
        return guesses[0] if len(guesses) == 1 else guesses

    @cached_property
    def cost(self) -> Floats:
        """[choice, input], in floats, for the solver."""
        picked = np.array(self.choices)
        return np.asarray(np.sum([user.cost[picked[:, i]] for i, user in enumerate(self.members)], axis=0))

    @cached_property
    def centres(self) -> list[int]:
        """For each choice, the input at which it costs least: the probable truth."""
        picked = np.array(self.choices)
        plain = sum(np.array(user.table)[picked[:, i]] for i, user in enumerate(self.members))
        return [int(x) for x in np.argmin(plain, axis=1)]

    def costs_below(self) -> list[list[Decimal]]:
        """[choice][input], rounded down."""
        with localcontext(context()):
            parts = [
                [[Decimal(p) * Decimal(v) for p, v in zip(user.prior, row, strict=True)] for row in user.table]
                for user in self.members
            ]
            return [
                [
                    sum(column, Decimal(0))
                    for column in zip(*(part[i] for part, i in zip(parts, c, strict=True)), strict=True)
                ]
                for c in self.choices
            ]

    def exact_cost(self, channel: Channel, chosen: Sequence[Sequence[int]]) -> Fraction:
        """The exact cost of the channel when each output is read as its guesses."""
        total = Fraction(0)
        for place, user in enumerate(self.members):
            rows = [[Fraction(v) for v in user.table[choice[place]]] for choice in chosen]
            for x, p in enumerate(user.prior):
                law = channel.numerators[x]
                total += Fraction(p) * sum((int(law[y]) * row[x] for y, row in enumerate(rows)), Fraction(0))
        return total / channel.denominator


# -- the relation ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Relation:
    """Pairs of positions 0 .. size - 1 with distances; `edges` is None for all pairs at distance 1."""

    size: int
    edges: tuple[Pair, ...] | None

    @classmethod
    def of(cls, adjacency: Adjacency, inputs: tuple[Label, ...]) -> Relation:
        if adjacency.kind == "all":
            return cls(len(inputs), None)
        shortest: dict[tuple[int, int], Fraction] = {}
        for i, j, distance in adjacency.pairs(inputs):
            ends = (min(i, j), max(i, j))
            shortest[ends] = min(distance, shortest.get(ends, distance))
        kept = _reduced(shortest, len(inputs)) if adjacency.kind in ("metric", "hamming") else shortest
        return cls(len(inputs), tuple((i, j, kept[i, j]) for i, j in sorted(kept)))

    @cached_property
    def distances(self) -> Floats:
        """The length of the shortest path between any two positions; infinite if they are not connected."""
        if self.edges is None:
            return np.asarray(1.0 - np.eye(self.size))
        table = np.full((self.size, self.size), np.inf)
        np.fill_diagonal(table, 0.0)
        for i, j, distance in self.edges:
            table[i, j] = table[j, i] = float(distance)
        for via in range(self.size):
            np.minimum(table, table[:, via, None] + table[via], out=table)
        return table

    @cached_property
    def components(self) -> tuple[tuple[int, ...], ...]:
        """Connected components, as tuples of positions."""
        label = list(range(self.size))

        def root(x: int) -> int:
            while label[x] != x:
                x = label[x]
            return x

        for i, j, _ in self.edges or ():
            label[max(root(i), root(j))] = min(root(i), root(j))
        groups: dict[int, list[int]] = {}
        for x in range(self.size):
            groups.setdefault(root(x), []).append(x)
        return tuple(map(tuple, groups.values()))

    @property
    def has_cycle(self) -> bool:
        return len(self.edges or ()) > self.size - len(self.components)

    @cached_property
    def neighbours(self) -> list[list[tuple[int, Fraction]]]:
        near: list[list[tuple[int, Fraction]]] = [[] for _ in range(self.size)]
        for i, j, distance in self.edges or ():
            near[i].append((j, distance))
            near[j].append((i, distance))
        return near

    def tree(self, root: int) -> list[Branch]:
        """The branches of a spanning tree of the root's component, leaves before their parents."""
        seen, found, queue = {root}, [], [root]
        for parent in queue:
            for child, distance in self.neighbours[parent]:
                if child not in seen:
                    seen.add(child)
                    queue.append(child)
                    found.append((child, parent, distance))
        return found[::-1]

    def holds(self, channel: Channel, epsilon: Fraction) -> bool:
        """Whether every ratio stays within its limit: decided with integers."""
        if self.edges is None:
            return channel.satisfies(epsilon)
        law = channel.numerators
        for i, j, distance in self.edges:
            odds = exact.exp_floor(epsilon * distance)
            for x, z in ((i, j), (j, i)):
                over = law[x] * odds.denominator > law[z] * odds.numerator
                for y in np.flatnonzero(over):
                    # Within the width of the rational bound, more digits decide.
                    ratio = Fraction(int(law[x, y]), int(law[z, y])) if law[z, y] else None
                    if ratio is None or not exact.exp_at_least(epsilon * distance, ratio):
                        return False
        return True

    def content(self) -> Any:
        return None if self.edges is None else [[i, j, exact.canonical(d)] for i, j, d in self.edges]

    @classmethod
    def read(cls, size: int, content: Any) -> Relation:
        if content is None:
            return cls(size, None)
        edges = tuple((int(i), int(j), exact.fraction(d, "a distance")) for i, j, d in content)
        if any(not (0 <= i < size and 0 <= j < size) or i == j or d <= 0 for i, j, d in edges):
            raise SpecError("an edge joins two different positions of inputs at a positive distance")
        return cls(size, edges)


def _reduced(pairs: dict[tuple[int, int], Fraction], size: int) -> dict[tuple[int, int], Fraction]:
    """Without the pairs that are implied by two others, both shorter."""

    def between(i: int, j: int) -> Fraction:
        return pairs[min(i, j), max(i, j)]

    return {
        (i, j): distance
        for (i, j), distance in pairs.items()
        if not any(between(i, w) + between(w, j) <= distance for w in range(size) if w not in (i, j))
    }


# -- the bound ---------------------------------------------------------------------------------------------


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
    """The bound that the prices prove: no valid channel costs less. `roots[component][guess]` is a position."""
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


# -- the certificate ---------------------------------------------------------------------------------------


def ceiling(value: Fraction) -> float:
    """The least float that is not below."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def floor(value: Decimal) -> float:
    """The largest float that is not above."""
    nearest = float(value)
    if math.isinf(nearest):
        return -math.inf
    return nearest if Fraction(nearest) <= Fraction(value) else math.nextafter(nearest, -math.inf)


@dataclass(frozen=True)
class BayesCertificate(Certificate):
    """Users, exact channel and prices: for losses `bound <= optimum <= value`, for gains the other way round.

    Args:
        users: Priors and losses (or gains).
        epsilon: The guarantee.
        relation: Which inputs are neighbours.
        channel: The mechanism.
        sense: "min" for losses, "max" for gains.
        prices: Dual price of each input.
        flows: Dual prices of the privacy constraints: (direction of an edge, guess, multiplier).
        roots: For each component of the graph and each guess, the input at which the flows end.
        value: What the mechanism attains.
        bound: What no mechanism can improve on.
    """

    kind = "bayes"

    users: Users
    epsilon: Fraction
    relation: Relation
    channel: Channel
    sense: str
    prices: tuple[float, ...]
    flows: Flows
    roots: tuple[tuple[int, ...], ...]
    value: float
    bound: float

    @property
    def rigor(self) -> str:
        return "proved"

    @property
    def mechanism(self) -> Channel:
        return self.channel

    def verify(self) -> Verdict:
        chosen = self._chosen()
        size = self.channel.shape[0]
        fits = size == self.users.size == self.relation.size == len(self.prices) and chosen is not None
        pairs = "all pairs" if self.relation.edges is None else f"{len(self.relation.edges)} edges"
        holds = fits and self.relation.holds(self.channel, self.epsilon)
        checks = [
            Check("rows", fits, f"{size} rows of integers, each with the sum of the denominator; outputs are guesses"),
            Check("ratios", holds, f"{pairs}, asked {exact.shown(self.epsilon)}"),
        ]
        if fits and chosen is not None:
            checks += [self._check_value(chosen), self._check_bound()]
        return Verdict(tuple(checks), self.rigor)

    def _chosen(self) -> list[tuple[int, ...]] | None:
        known = index_of([self.users.label(choice) for choice in self.users.choices])
        places = [known.get(label_key(output)) for output in self.channel.outputs]
        return [self.users.choices[place] for place in places if place is not None] if None not in places else None

    @property
    def _sign(self) -> float:
        return 1.0 if self.sense == "min" else -1.0

    def _check_value(self, chosen: Sequence[tuple[int, ...]]) -> Check:
        cost = self.users.exact_cost(self.channel, chosen)
        claimed = Fraction(self._sign * self.value)
        # A larger claim would also be true, but it would not be this mechanism's value.
        near = cost <= claimed <= cost + abs(cost) / 10**12
        return Check("value", near, f"{self._sign * float(cost):.12g} where {self.value:.12g} is claimed")

    def _check_bound(self) -> Check:
        parts = self.relation.components if self.relation.edges is not None else ()
        guesses, directions = len(self.users.choices), 2 * len(self.relation.edges or ())
        proper = len(self.roots) == len(parts) and all(
            len(roots) == guesses and set(roots) <= set(part) for roots, part in zip(self.roots, parts, strict=False)
        )
        proper = proper and all(0 <= e < directions and 0 <= y < guesses and f >= 0 for e, y, f in self.flows)
        if not proper:
            return Check("bound", False, "the roots or the multipliers do not belong to this program")
        costs = self.users.costs_below()
        least = floor(proven_bound(costs, self.prices, self.relation, self.epsilon, self.flows, self.roots))
        proved = self._sign * least
        return Check(
            "bound", self._sign * self.bound <= least, f"the prices prove {proved:.12g}, {self.bound:.12g} is claimed"
        )

    def content(self) -> dict[str, Any]:
        return {
            "users": [user.content() for user in self.users.members],
            "epsilon": exact.canonical(self.epsilon),
            "edges": self.relation.content(),
            "channel": self.channel.spec(),
            "sense": self.sense,
            "prices": [repr(p) for p in self.prices],
            "flows": [[edge, guess, repr(f)] for edge, guess, f in self.flows],
            "roots": [list(roots) for roots in self.roots],
            "value": repr(self.value),
            "bound": repr(self.bound),
        }

    @classmethod
    def read(cls, content: dict[str, Any]) -> BayesCertificate:
        try:
            return cls._read(content)
        except DeniableError:
            raise
        except ValueError as wrong:
            raise SpecError(f"the certificate is malformed ({wrong})") from None

    @classmethod
    def _read(cls, content: dict[str, Any]) -> BayesCertificate:
        channel = Channel.load(content["channel"])
        sense = content["sense"]
        if sense not in ("min", "max"):
            raise SpecError("a certificate is about the least loss (min) or the greatest gain (max)")
        return cls(
            Users(tuple(User.read(user) for user in content["users"])),
            exact.as_epsilon(content["epsilon"]),
            Relation.read(channel.shape[0], content["edges"]),
            channel,
            sense,
            tuple(read_number(p) for p in content["prices"]),
            tuple((int(edge), int(guess), read_number(f)) for edge, guess, f in content["flows"]),
            tuple(tuple(int(x) for x in roots) for roots in content["roots"]),
            read_number(content["value"]),
            read_number(content["bound"]),
        )

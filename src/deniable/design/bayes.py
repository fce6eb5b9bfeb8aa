"""The Bayes-optimal mechanism: the private mechanism whose reports are best for a given user, or for several.

Problem    minimize sum of prior(x) P(y | x) loss(y, x) over channels from inputs to guesses with valid ratios
Adjacency  all pairs (local privacy), a line (counting queries), any graph, any metric
Answer     a linear program; outputs are guesses, and guesses that are never best are left out
Program    all pairs: c_xy = m_y + d_xy with 0 <= d_xy <= (E - 1) m_y: one row per entry, not one per pair of inputs.
           Edges: c_xy = g_xy z_xy with g the geometric law around the guess, solved for z: the entries of an optimal z
           are of like size, where those of c span e^(epsilon n). g stays above e^-17, because the solver drops
           coefficients below 1e-9 and refuses those above 1e15
Privacy    what the solver returns is repaired: entries are raised to the largest c_x e^(-epsilon d) of the others; the
           rows are then short or long by a little, and a little mass, shaped so that the ratios hold, goes to the best
           blind guess. The ratios of the result hold exactly, checked with integers
Proof      a price for each input, from the program's dual, checked without the solver (see `bayes_certificate`)
Known      local privacy, uniform prior, 0/1 loss: k-ary randomized response. Line, monotone loss: the truncated
           geometric mechanism followed by its Bayes remap, for every prior
Sharing    is one mechanism best for everybody, after each user's own remap? `compromise` minimizes the users' losses
           together, over one channel whose outputs are a guess for each user. If the result exceeds the sum of each
           user's loss with their own best mechanism, no mechanism is best for all. On a line nothing is lost, for any
           priors and monotone losses; on graphs with cycles there is a loss for some users: sums and averages of more
           than two values
Source     Ghosh, Roughgarden and Sundararajan 2009; Brenner and Nissim 2010
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable import exact
from deniable.channels import Channel, Query
from deniable.channels.adjacency import Adjacency, as_adjacency
from deniable.channels.laws import Floats
from deniable.channels.utilities import Distribution, Function
from deniable.design.base import Design
from deniable.design.bayes_certificate import (
    BayesCertificate,
    Flows,
    Relation,
    User,
    Users,
    ceiling,
    floor,
    proven_bound,
)
from deniable.errors import ChannelError, ShapeError
from deniable.labels import Label, as_labels, in_order
from deniable.trace import Progress, Watch, highs

# The relative gap above which the program is solved once more, in other units.
_GOOD = 1e-8

# Rows and variables of the program grow with this product; beyond it the solver takes hours.
MOST_CELLS = 5_000_000

# Logarithms of the largest ratio that the solver gets, and of the largest scale: their sum stays below ln 1e15.
_LARGEST = 30.0
_SCALED = 17.0

# Outputs that are rarer than this for every input are the solver's noise.
_NEVER = 1e-10

# Room for the rounding of floats, so that the exact repair has nothing left to do.
_ROOM = 1e-13


def bayes(
    prior: Distribution,
    loss: Function | None = None,
    *,
    epsilon: Any,
    adjacency: Any = "all",
    gain: Function | None = None,
    guesses: Iterable[Any] | None = None,
    inputs: Iterable[Any] | None = None,
    progress: Progress | None = None,
) -> Design:
    """The mechanism with the least expected `loss`, or the largest expected `gain`, for a user with this `prior`.

    With a `Query` as adjacency the inputs are its answers, and neighbours are those of the induced graph.

    Args:
        prior: The user's belief: a probability per input.
        loss: Matrix [guess, truth], function (guess, truth), "zero-one", "absolute" or "squared"; 0/1 loss by default.
        epsilon: The guarantee.
        adjacency: Which inputs are neighbours: anything that `Channel.satisfies` takes, or a `Query`.
        gain: Maximized instead of a loss.
        guesses: The possible guesses; the inputs if None.
        inputs: Labels of the inputs; 0, 1, 2, ... if None.
        progress: Called with a description of the current work.

    Returns:
        The mechanism.

    >>> design = bayes([0.45, 0.45, 0.1], gain="identity", epsilon=1)
    >>> round(design.value, 3), design.outputs, design.relative_gap < 1e-9
    (0.658, 2, True)
    """
    names, relation = read_inputs(prior, inputs, adjacency)
    users = Users((User.of(prior, loss, gain, names, guesses),))
    sense = "min" if gain is None else "max"
    return designed(users, names, relation, epsilon, sense, "Bayes-optimal", Watch(progress))


def read_inputs(
    prior: Distribution, inputs: Iterable[Any] | None, adjacency: Any
) -> tuple[tuple[Label, ...], Adjacency]:
    """Names of the inputs, and their adjacency."""
    if isinstance(adjacency, Query):
        listed = in_order(adjacency.answers if inputs is None else inputs, "the inputs")
        return as_labels(listed, len(adjacency.answers), "input"), adjacency.graph
    if inputs is None and isinstance(prior, Mapping):
        inputs = list(prior)
    if inputs is None:
        count = np.size(np.asarray(prior, dtype=object))
        return as_labels(None, count, "input"), as_adjacency(adjacency)
    listed = in_order(inputs, "the inputs")
    return as_labels(listed, len(listed), "input"), as_adjacency(adjacency)


def designed(
    users: Users,
    names: tuple[Label, ...],
    adjacency: Adjacency,
    epsilon: Any,
    sense: str,
    name: str,
    watch: Watch | None = None,
) -> Design:
    """The best channel for all users together."""
    began = time.perf_counter()
    level = exact.as_epsilon(epsilon)
    relation = Relation.of(adjacency, names)
    work = len(users.choices) * max(relation.size, 2 * len(relation.edges or ()))
    if work > MOST_CELLS:
        raise ShapeError(f"the program would have {work} rows, and {MOST_CELLS} are the most: merge inputs or guesses")
    best: BayesCertificate | None = None
    costs = users.costs_below()
    seen = watch or Watch()
    for centres in (users.centres, None) if relation.edges is not None else (None,):
        answer = solve(users.cost, relation, level, centres, seen)
        if answer is None:
            continue
        seen.say("making the ratios exact, and the proof")
        certificate = _certified(users, names, relation, adjacency, level, sense, answer, costs)
        seen.worth(certificate.value)
        best = certificate if best is None else _better(best, certificate)
        if best.relative_gap <= _GOOD:
            break
    if best is None:
        raise ChannelError(
            "the solver gave up on this program: try an epsilon closer to 1, fewer inputs, or losses of similar size"
        )
    channel = _within(best.channel, adjacency)
    found = best
    spent = time.perf_counter() - began
    return Design(name, level, best.value, channel, lambda: found, names, tuple(seen.steps), spent, sense)


def _certified(
    users: Users,
    names: tuple[Label, ...],
    relation: Relation,
    adjacency: Adjacency,
    epsilon: Fraction,
    sense: str,
    answer: Answer,
    costs: Any,
) -> BayesCertificate:
    rows, used = settled(answer.rows, users.cost, relation, epsilon)
    chosen = tuple(users.choices[y] for y in used)
    channel = Channel.from_floats(rows, epsilon, adjacency, names, [users.label(choice) for choice in chosen])
    flows: Flows = tuple(
        (int(edge), int(guess), float(answer.flows[edge, guess])) for edge, guess in np.argwhere(answer.flows > 0)
    )
    prices = tuple(answer.prices.tolist())
    roots = _roots(users, relation, answer.rows)
    bound = floor(proven_bound(costs, prices, relation, epsilon, flows, roots))
    # The cost of the best guess if the input were known: a weak bound, but always valid.
    plain = tuple(users.cost.min(axis=0).tolist())
    if (known := floor(proven_bound(costs, plain, relation, epsilon, (), roots))) > bound:
        prices, flows, bound = plain, (), known
    cost = ceiling(users.exact_cost(channel, chosen))
    sign = 1.0 if sense == "min" else -1.0
    return BayesCertificate(
        users,
        epsilon,
        relation,
        _within(channel, as_adjacency("all")),
        sense,
        prices,
        flows,
        roots,
        sign * cost + 0.0,
        sign * bound + 0.0,
    )


def _roots(users: Users, relation: Relation, rows: Floats) -> tuple[tuple[int, ...], ...]:
    """For each component and guess the most likely input; if it is never guessed, the cheapest one."""
    if relation.edges is None:
        return ()
    tables = [np.array(user.table) for user in users.members]
    plain = sum(table[np.array(users.choices)[:, i]] for i, table in enumerate(tables))
    merit = np.where(rows.max(axis=0)[:, None] > 1e-9, rows.T, -np.asarray(plain))
    return tuple(tuple(part[int(i)] for i in np.argmax(merit[:, list(part)], axis=1)) for part in relation.components)


def _better(one: BayesCertificate, other: BayesCertificate) -> BayesCertificate:
    """The cheaper channel with the tighter bound."""
    sign = 1.0 if one.sense == "min" else -1.0
    cheap = one if sign * one.value <= sign * other.value else other
    tight = one if sign * one.bound >= sign * other.bound else other
    return BayesCertificate(
        cheap.users, cheap.epsilon, cheap.relation, cheap.channel, cheap.sense,
        tight.prices, tight.flows, tight.roots, cheap.value, tight.bound,
    )  # fmt: skip


def _within(channel: Channel, adjacency: Adjacency) -> Channel:
    return Channel.from_integers(channel.numerators, channel.denominator, channel.inputs, channel.outputs, adjacency)


# -- several users -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compromise:
    """The best shared mechanism, and the best one for each user alone.

    Args:
        shared: The mechanism that all users share.
        alone: The best mechanism of each user.
    """

    shared: Design
    alone: tuple[Design, ...]

    @property
    def least(self) -> float:
        """Lower bound on the users' total loss by sharing any mechanism at all."""
        sign = 1.0 if self.shared.sense == "min" else -1.0
        return max(sign * (self.shared.bound - sum(design.value for design in self.alone)), 0.0)

    @property
    def most(self) -> float:
        """Upper bound on their total loss with `shared`."""
        sign = 1.0 if self.shared.sense == "min" else -1.0
        return sign * (self.shared.value - sum(design.bound for design in self.alone))

    def __str__(self) -> str:
        return (
            f"{len(self.alone)} users together reach {self.shared.value:.9g}, each alone "
            f"{' + '.join(f'{design.value:.9g}' for design in self.alone)}: sharing costs between "
            f"{self.least:.3e} and {self.most:.3e}"
        )


def compromise(
    users: Sequence[tuple[Distribution, Function]],
    *,
    epsilon: Any,
    adjacency: Any = "all",
    inputs: Any = None,
    gains: bool = False,
    progress: Progress | None = None,
) -> Compromise:
    """The best mechanism for all users at once; each is a pair of a prior and a loss (with `gains=True` a gain).

    Args:
        users: A prior and a loss (or gain) for each user.
        epsilon: The guarantee.
        adjacency: Which inputs are neighbours.
        inputs: Labels of the inputs; 0, 1, 2, ... if None.
        gains: Whether users have gains instead of losses.
        progress: Called with a description of the current work.

    Returns:
        The shared mechanism, and the best one of each user.

    Raises:
        ShapeError: There are no users.

    >>> ring = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    >>> pair = [([0.5, 0, 0.5, 0], "zero-one"), ([0, 0.5, 0, 0.5], "zero-one")]
    >>> found = compromise(pair, epsilon=1, adjacency=ring, inputs=list("abcd"))
    >>> found.least > 1e-3, found.most - found.least < 1e-9
    (True, True)
    """
    if not users:
        raise ShapeError("a compromise needs at least one user: a prior and a loss")
    names, relation = read_inputs(users[0][0], inputs, adjacency)
    members = [
        User.of(prior, None if gains else function, function if gains else None, names, None)
        for prior, function in users
    ]
    sense = "max" if gains else "min"
    alone = tuple(
        designed(Users((user,)), names, relation, epsilon, sense, "Bayes-optimal", Watch(progress)) for user in members
    )
    name = f"compromise of {len(members)} users"
    together = designed(Users(tuple(members)), names, relation, epsilon, sense, name, Watch(progress))
    return Compromise(together, alone)


# -- the program -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """Float rows (inputs by guesses), a price for each input, and for edges the multiplier of each ratio."""

    rows: Floats
    prices: Floats
    flows: Floats
    """[direction of an edge, guess]: edge e from its first end is 2e, from its second 2e + 1; empty on a tree."""


def solve(
    cost: Floats, relation: Relation, epsilon: Fraction, centres: list[int] | None, watch: Watch | None = None
) -> Answer | None:
    """Minimize the sum of cost[y, x] c[x, y]; None if the solver fails. `centres` of guesses enable the scaling."""
    seen = watch or Watch()
    if relation.edges is None:
        return _solve_whole(cost, min(float(epsilon), _LARGEST), seen)
    return _solve_edges(cost, relation, float(epsilon), centres, seen)


def _solve_whole(cost: Floats, epsilon: float, watch: Watch) -> Answer | None:
    from scipy import sparse

    guesses, size = cost.shape
    odds = np.expm1(epsilon)
    # Variables d_xy / (E - 1), row by row, then m_y.
    entries = guesses * size
    limits = sparse.hstack([sparse.eye(entries), -sparse.vstack([sparse.eye(guesses)] * size)]).tocsr()
    rows = sparse.hstack([sparse.kron(sparse.eye(size), np.full((1, guesses), odds)), np.ones((size, guesses))]).tocsr()
    found = _highs(np.concatenate([(odds * cost.T).ravel(), cost.sum(axis=1)]), limits, rows, size, watch)
    if found is None:
        return None
    x, prices, _ = found
    return Answer(odds * x[:entries].reshape(size, guesses) + x[entries:], prices, np.empty((0, guesses)))


def _solve_edges(
    cost: Floats, relation: Relation, epsilon: float, centres: list[int] | None, watch: Watch
) -> Answer | None:
    from scipy import sparse

    guesses, size = cost.shape
    scale = np.ones((size, guesses))
    if centres is not None:
        scale = np.exp(-np.minimum(epsilon * relation.distances[:, centres], _SCALED))
    largest = _LARGEST if centres is None else _SCALED
    edges = relation.edges or ()
    sources = np.array([end for i, j, _ in edges for end in (i, j)], dtype=np.int64)
    targets = np.array([end for i, j, _ in edges for end in (j, i)], dtype=np.int64)
    lengths = np.repeat([min(epsilon * float(d), largest) for _, _, d in edges], 2)
    count = sources.size * guesses
    columns = np.arange(guesses)
    factor = np.exp(lengths)[:, None] * (scale[targets] / scale[sources])
    row = np.arange(count)
    limits = sparse.coo_matrix(
        (
            np.concatenate([np.ones(count), -factor.ravel()]),
            (
                np.concatenate([row, row]),
                np.concatenate([(ends[:, None] * guesses + columns).ravel() for ends in (sources, targets)]),
            ),
        ),
        shape=(count, size * guesses),
    ).tocsr()
    sums = sparse.coo_matrix((scale.ravel(), (np.repeat(np.arange(size), guesses), np.arange(size * guesses)))).tocsr()
    found = _highs((cost.T * scale).ravel(), limits, sums, size, watch)
    if found is None:
        return None
    x, prices, duals = found
    flows = np.maximum(-duals.reshape(sources.size, guesses), 0.0) / scale[sources]
    return Answer(x.reshape(size, guesses) * scale, prices, flows if relation.has_cycle else np.empty((0, guesses)))


def _highs(objective: Floats, limits: Any, sums: Any, size: int, watch: Watch) -> tuple[Floats, Floats, Floats] | None:
    # Losses in thousandths or millions would interact with the solver's absolute tolerances.
    unit = float(np.abs(objective).max()) or 1.0
    answer = highs(
        objective / unit,
        (limits, np.zeros(limits.shape[0])) if limits.shape[0] else None,
        (sums, np.ones(size)),
        (0, None),
        "highs-ds",
        {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        watch,
        "solving",
    )
    if answer.status != 0 or answer.x is None or not np.isfinite(answer.x).all():
        return None
    return answer.x, answer.eqlin.marginals * unit, answer.ineqlin.marginals * unit


def settled(rows: Floats, cost: Floats, relation: Relation, epsilon: Fraction) -> tuple[Floats, list[int]]:
    """Rows in which every ratio holds up to the last digits of a float, and the guesses in use."""
    level = float(epsilon) - min(_ROOM, 1e-6 * float(epsilon))
    used = np.flatnonzero(rows.max(axis=0) > _NEVER)
    if used.size == 0:
        raise ChannelError("the solver returned no mechanism: try a larger epsilon or fewer inputs")
    fading = np.exp(-level * relation.distances)
    law = np.stack([(fading * column).max(axis=1) for column in np.maximum(rows[:, used].T, 0.0)], axis=1)
    sums = law.sum(axis=1)
    over, under = max(float(sums.max()) - 1, 0.0), max(1 - float(sums.min()), 0.0)
    shortest = min((float(d) for _, _, d in relation.edges or ()), default=1.0)
    odds = np.expm1(min(level * shortest, _LARGEST))
    # The smallest weight that leaves every row a remainder whose ratios hold, too.
    share = min(1.1 * (under + (1 + odds) * over) / odds, 1.0)
    blind = int(np.argmin(cost[used].sum(axis=1)))
    law *= 1 - share
    law[:, blind] += np.maximum(1 - law.sum(axis=1), 0.0)
    return law, used.tolist()

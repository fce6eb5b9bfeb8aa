"""The Bayes-optimal mechanism: of all private mechanisms the one whose reports serve a given user best.

Problem    minimize sum of prior(x) P(y | x) loss(y, x) over channels from inputs to guesses whose ratios hold
Adjacency  all pairs (local privacy), a line (counting queries), any graph, any metric
Answer     a linear program; outputs are guesses, and guesses that are never best are left out
Privacy    what the solver returns is repaired: the ratios of the result hold exactly, checked with integers
Proof      a price for each input, from the program's dual, checked without the solver (see `_bayes_bound`)
Known      local privacy, uniform prior, 0/1 loss: k-ary randomized response. Line, monotone loss: the truncated
           geometric mechanism followed by its Bayes remap, for every prior
Source     Ghosh, Roughgarden and Sundararajan 2009; Brenner and Nissim 2010
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from deniable import exact
from deniable.channels import Channel, Query
from deniable.channels._gains import Distribution, Function
from deniable.channels._vectors import Floats
from deniable.channels.adjacency import Adjacency, as_adjacency
from deniable.design._bayes_bound import Flows, proven_bound
from deniable.design._bayes_program import Answer, settled, solve
from deniable.design._relation import Relation
from deniable.design._users import User, Users
from deniable.design.base import Design
from deniable.design.bayes_certificate import BayesCertificate, ceiling, floor
from deniable.design.trace import Progress, Watch
from deniable.errors import ChannelError, ShapeError
from deniable.labels import Label, as_labels, in_order

# A relative gap above which the program is solved once more, in other units.
_GOOD = 1e-8

# Rows and variables of the program grow with this product; beyond it the solver takes hours.
_LARGEST = 5_000_000


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
    """The mechanism of least expected `loss`, or of most expected `gain`, for a user who believes in `prior`.

    `loss` and `gain` are as in `channels.utility`: a matrix [guess, truth], a function (guess, truth), or "zero-one",
    "absolute", "squared", "identity"; without either it is the 0/1 loss. `adjacency` is all that `Channel.satisfies`
    takes, or a `Query`: then the inputs are its answers, and neighbours are those of the induced graph. `progress` is
    called with what is being done.

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
    """Names of the inputs, and who is whose neighbour."""
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
    if work > _LARGEST:
        raise ShapeError(f"the program would have {work} rows, and {_LARGEST} are the most: merge inputs or guesses")
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
    # What the best guess would cost if the input were known: poor, but never absurd.
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
    """For each component and guess the most likely input; where it is never guessed, the cheapest one."""
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

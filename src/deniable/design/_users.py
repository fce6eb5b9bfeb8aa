"""Users of a mechanism: what each believes and what a wrong guess costs; and what a channel costs them together.

Cost       cost[y, x] = sum over users of prior(x) loss(guess of this user in y, x); minus the gain instead of a loss
Outputs    one guess for each user; floats count as the numbers that they are, and sums are exact
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from deniable.channels import Channel
from deniable.channels._gains import Distribution, Function, read_function, read_prior
from deniable.channels._vectors import Floats
from deniable.design._bayes_bound import context
from deniable.errors import NumberError, ProbabilityError, ShapeError
from deniable.labels import Label, as_labels, label_spec, load_label

_MOST_OUTPUTS = 100_000


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
        """For each choice the input at which it costs least: where the truth probably is."""
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
        """What the channel costs when each output is read as its guesses, exactly."""
        total = Fraction(0)
        for place, user in enumerate(self.members):
            rows = [[Fraction(v) for v in user.table[choice[place]]] for choice in chosen]
            for x, p in enumerate(user.prior):
                law = channel.numerators[x]
                total += Fraction(p) * sum((int(law[y]) * row[x] for y, row in enumerate(rows)), Fraction(0))
        return total / channel.denominator

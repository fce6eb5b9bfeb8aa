"""One mechanism for several users: what they lose by sharing it, proved from both sides.

Question   is there one mechanism, optimal for everybody after each user's own remap? (universally optimal)
Criterion  minimize the users' losses together, over one channel whose outputs are a guess for each user; if that is
           more than the sum of what each would lose with the mechanism made for them, no mechanism serves both best
Line       nothing is lost, for any priors and monotone losses (Ghosh, Roughgarden and Sundararajan 2009)
Cycles     something is lost, for some users (Brenner and Nissim 2010): sums and averages of more than two values
Bounds     `least` <= what sharing costs <= `most`, from the certificates of all the programs
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deniable.channels._gains import Distribution, Function
from deniable.design._users import User, Users
from deniable.design.base import Design
from deniable.design.bayes import designed, read_inputs
from deniable.errors import ShapeError


@dataclass(frozen=True)
class Compromise:
    """The best shared mechanism, and the best one for each user alone."""

    shared: Design
    alone: tuple[Design, ...]

    @property
    def least(self) -> float:
        """The users lose at least this much by sharing any mechanism at all."""
        sign = 1.0 if self.shared.sense == "min" else -1.0
        return max(sign * (self.shared.bound - sum(design.value for design in self.alone)), 0.0)

    @property
    def most(self) -> float:
        """With `shared` they lose at most this much."""
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
) -> Compromise:
    """The best mechanism for all users at once; each is a pair of a prior and a loss (with `gains=True` a gain).

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
    alone = tuple(designed(Users((user,)), names, relation, epsilon, sense, "Bayes-optimal") for user in members)
    together = designed(Users(tuple(members)), names, relation, epsilon, sense, f"compromise of {len(members)} users")
    return Compromise(together, alone)

"""The certificate of a Bayes-optimal mechanism: everything is checked from the users, the integers and the prices.

Rows       integers over one denominator; every output is a guess (of each user)
Ratios     on every edge, or over all pairs, compared with e^(epsilon d) exactly
Value      the expected loss or gain with each output taken at its word, as an exact fraction
Bound      what the prices prove, in decimals that are rounded down (see `_bayes_bound`)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from deniable import exact
from deniable.channels import Channel
from deniable.design._bayes_bound import Flows, proven_bound
from deniable.design._relation import Relation
from deniable.design._users import User, Users
from deniable.design.base import Certificate, Check, Verdict
from deniable.errors import DeniableError, NumberError, SpecError
from deniable.labels import index_of, label_key


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
    """Users, exact channel and prices: for losses `bound <= optimum <= value`, for gains the other way round."""

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
        # A claim above the truth would be no lie, but it is not this mechanism's value either.
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
            tuple(_number(p) for p in content["prices"]),
            tuple((int(edge), int(guess), _number(f)) for edge, guess, f in content["flows"]),
            tuple(tuple(int(x) for x in roots) for roots in content["roots"]),
            _number(content["value"]),
            _number(content["bound"]),
        )


def _number(written: Any) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise NumberError("a certificate's numbers are finite")
    return number

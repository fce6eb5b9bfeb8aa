"""The certificate of a design over staircase columns: every pattern is priced again, one by one.

Bound      with members weighted by w, sum of lambda bounds sum of w_i U_i; and so the smallest of the U_i, for any w
Margin     utilities of patterns are floats with 1e-12 of the largest term added: their own error is below 1e-14
Beyond     16 symbols: certificates of the members, or for mutual information the best single column
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable import exact
from deniable.channels import Channel
from deniable.channels._vectors import Floats
from deniable.design._columns import ColumnUtility, Divergences, Information, read_utility
from deniable.design._program import bits_of
from deniable.design.base import Certificate, Check, Verdict
from deniable.design.extremal import rise

_MARGIN = 1e-12


def channel_values(utility: ColumnUtility, channel: Channel, weights: Floats | None) -> float:
    """The weighted sum or the smallest of the utilities of a channel, rounded down a little."""
    sums = np.array([math.fsum(row) for row in utility.table(np.ascontiguousarray(channel.rows.T))])
    value = float(sums.min()) if weights is None else float(weights @ sums)
    return value * (1 - 1e-13) if value > 0 else value


def enumerated_bound(
    utility: ColumnUtility, weights: Floats, prices: Floats, epsilon: Fraction, room: float = 1.0
) -> float:
    """What the multipliers prove, over all patterns; a claim takes twice the margin, so that others prove it too."""
    odds = rise(epsilon)
    columns = 1 + odds * bits_of(utility.size)[1:-1]
    worth, cost = weights @ utility.table(columns), columns @ prices
    margin = room * _MARGIN * (np.abs(worth) + columns @ np.abs(prices))
    over = max(float((worth - cost + margin).max(initial=0.0)), 0.0)
    total = math.fsum(prices) + over * utility.size / (utility.size + odds)
    return max(total * (1 + 1e-15), 0.0)


@dataclass(frozen=True)
class StaircaseCertificate(Certificate):
    """A utility, an exact channel, and multipliers (or certificates of the members) that bound every other channel."""

    kind = "staircase"

    utility: ColumnUtility
    epsilon: Fraction
    channel: Channel
    shares: tuple[float, ...] | None
    weights: tuple[float, ...]
    multipliers: tuple[float, ...]
    parts: tuple[Certificate, ...]
    value: float
    bound: float

    @property
    def rigor(self) -> str:
        return "proved" if self.utility.built_in else "numeric"

    def verify(self) -> Verdict:
        fits = self.channel.shape[0] == self.utility.size
        level = f"largest ratio has logarithm {self.channel.epsilon:.12g}, asked {exact.shown(self.epsilon)}"
        checks = [
            Check("rows", fits, f"{self.channel.shape[0]} rows of integers, each with the sum of the denominator"),
            Check("ratios", self.channel.satisfies(self.epsilon), level),
        ]
        if fits:
            shares = None if self.shares is None else np.array(self.shares)
            value = channel_values(self.utility, self.channel, shares)
            near = abs(self.value - value) <= 1e-11 * abs(value)
            checks.append(Check("value", near, f"{value:.12g} where {self.value:.12g} is claimed"))
            checks.append(self._check_bound())
        return Verdict(tuple(checks), self.rigor)

    def _check_bound(self) -> Check:
        least = self._provable()
        holds = least is not None and least <= self.bound * (1 + 1e-14)
        shown = "nothing" if least is None else f"{least:.12g}"
        return Check("bound", holds, f"the certificate proves {shown}, {self.bound:.12g} is claimed")

    def _provable(self) -> float | None:
        """The bound that follows from what the certificate holds, or None if it is inconsistent."""
        if self.shares is not None and (len(self.shares) != self.utility.members or not min(self.shares) >= 0):
            return None
        if self.multipliers:
            mixed = np.array(self.weights)
            proper = mixed.size == self.utility.members and (mixed >= 0).all() and abs(mixed.sum() - 1) <= 1e-12
            if not proper or len(self.multipliers) != self.utility.size or self.utility.size > 16:
                return None
            if self.shares is not None and not np.allclose(mixed, self.shares, rtol=1e-14, atol=0):
                return None
            return enumerated_bound(self.utility, mixed, np.array(self.multipliers), self.epsilon)
        if isinstance(self.utility, Information):
            return self.utility.ceiling(rise(self.epsilon))
        if not isinstance(self.utility, Divergences) or len(self.parts) != self.utility.members:
            return None
        for part, pair in zip(self.parts, self.utility.pairs, strict=True):
            same = getattr(part, "epsilon", None) == self.epsilon and _same_laws(getattr(part, "pair", None), pair)
            if not same or getattr(part, "divergence", None) is not self.utility.divergence or not part.verify():
                return None
        bounds = [part.bound for part in self.parts]
        return min(bounds) if self.shares is None else math.fsum(np.array(self.shares) * np.array(bounds))

    def content(self) -> dict[str, Any]:
        return {
            "utility": self.utility.content(),
            "epsilon": exact.canonical(self.epsilon),
            "channel": self.channel.spec(),
            "shares": None if self.shares is None else [repr(s) for s in self.shares],
            "weights": [repr(w) for w in self.weights],
            "multipliers": [repr(m) for m in self.multipliers],
            "parts": [part.spec() for part in self.parts],
            "value": repr(self.value),
            "bound": repr(self.bound),
        }

    @classmethod
    def read(cls, content: dict[str, Any]) -> StaircaseCertificate:
        shares = content["shares"]
        return cls(
            read_utility(content["utility"]),
            exact.as_epsilon(content["epsilon"]),
            Channel.load(content["channel"]),
            None if shares is None else tuple(map(float, shares)),
            tuple(map(float, content["weights"])),
            tuple(map(float, content["multipliers"])),
            tuple(Certificate.load(part) for part in content["parts"]),
            float(content["value"]),
            float(content["bound"]),
        )


def _same_laws(one: Any, other: Any) -> bool:
    """Whether two pairs hold the same laws, whatever their integers are multiples of."""
    if one is None or one.size != other.size:
        return False
    return all(
        a * total_b == b * total_a
        for ours, theirs in ((one.weights0, other.weights0), (one.weights1, other.weights1))
        for total_a, total_b in [(sum(ours), sum(theirs))]
        for a, b in zip(ours, theirs, strict=True)
    )

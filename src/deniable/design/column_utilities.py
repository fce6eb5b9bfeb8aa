"""Column utilities: what a column of a channel contributes to the usefulness of the whole.

Sublinear    U(c + d) <= U(c) + U(d) and U(r c) = r U(c): then staircase columns are enough
Divergence   b f(a/b), one for each pair of hypotheses of a family
Information  sum of pi_x c_x ln(c_x / m), m = sum of pi_x c_x: mutual information under the prior pi
Merging      symbols are merged until the 2^k program is small: what merged symbols can do, the separate ones can do too
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.channels.divergences import DIVERGENCES, FDivergence
from deniable.channels.laws import Floats, integer_weights, probability_vector
from deniable.design.tangents import Pair, curve_of
from deniable.errors import ShapeError, SpecError
from deniable.specs import integer_text, read_integer

# Merged symbols beyond the size that the program takes.
_GROUPS = 12


class ColumnUtility(Protocol):
    """One or more sublinear utilities of columns."""

    @property
    def size(self) -> int: ...

    @property
    def members(self) -> int: ...

    @property
    def built_in(self) -> bool: ...

    def table(self, columns: Floats) -> Floats:
        """Utilities, members x columns, of columns given as rows of an array (columns x symbols)."""
        ...

    def content(self) -> dict[str, Any]: ...


def _masses(weights: tuple[int, ...]) -> Floats:
    total = sum(weights)
    return np.array([w / total for w in weights])


@dataclass(frozen=True)
class Divergences:
    """The divergences of a family of pairs of hypotheses."""

    pairs: tuple[Pair, ...]
    divergence: FDivergence

    def __post_init__(self) -> None:
        if not self.pairs or len({pair.size for pair in self.pairs}) != 1:
            raise ShapeError("a family needs at least one pair of hypotheses, all over the same symbols")

    @property
    def size(self) -> int:
        return self.pairs[0].size

    @property
    def members(self) -> int:
        return len(self.pairs)

    @property
    def built_in(self) -> bool:
        return DIVERGENCES.get(self.divergence.name) is self.divergence

    def table(self, columns: Floats) -> Floats:
        curve = curve_of(self.divergence)
        # Without the flat part, which both hypotheses weigh alike, nothing cancels.
        flat = columns.min(axis=1)
        rest = columns - flat[:, None]
        rows = []
        for pair in self.pairs:
            n0, n1 = pair.totals
            gaps = [(a * n1 - b * n0) / (n0 * n1) for a, b in zip(pair.weights0, pair.weights1, strict=True)]
            b = flat + rest @ _masses(pair.weights1)
            live = b > 0
            b = np.where(live, b, 1.0)
            gap = np.where(live, rest @ np.array(gaps), 0.0)
            rows.append(curve.column(b, gap))
        return np.array(rows)

    def content(self) -> dict[str, Any]:
        return {
            "kind": "divergences",
            "divergence": self.divergence.name if self.built_in else None,
            "pairs": [[[integer_text(w) for w in law] for law in (p.weights0, p.weights1)] for p in self.pairs],
        }


@dataclass(frozen=True)
class Information:
    """Mutual information between symbol and report, for symbols that follow a prior."""

    weights: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.weights)

    members = 1
    built_in = True

    @property
    def prior(self) -> Floats:
        return _masses(self.weights)

    def table(self, columns: Floats) -> Floats:
        mean = columns @ self.prior
        with np.errstate(all="ignore"):
            gap = np.where(columns > 0, (columns - mean[:, None]) / np.where(mean > 0, mean, 1.0)[:, None], 0.0)
            # c ln(c/m) - (c - m) is not negative, and its last part averages to zero.
            terms = np.where(columns > 0, curve_of("kl").lift(gap), 1.0)
        return np.asarray((mean * (terms @ self.prior))[None, :])

    def ceiling(self, odds: float) -> float:
        """No mechanism passes max over q of E q ln E / m - ln m, m = 1 + (E-1) q: the best single column."""
        high = 1 + odds
        m = high * math.log1p(odds) / odds
        q = (m - 1) / odds
        return high * q * math.log1p(odds) / m - math.log(m)

    def content(self) -> dict[str, Any]:
        return {"kind": "information", "prior": [integer_text(w) for w in self.weights]}


@dataclass(frozen=True)
class Custom:
    """A user's own sublinear utility: takes an array with one column per row, returns a number for each."""

    size: int
    function: Callable[[Floats], Any]
    members = 1
    built_in = False

    def table(self, columns: Floats) -> Floats:
        values = np.asarray(self.function(columns), dtype=np.float64)
        if values.shape != (columns.shape[0],):
            raise ShapeError(f"the utility returned shape {values.shape} for {columns.shape[0]} columns")
        return values[None, :]

    def content(self) -> dict[str, Any]:
        return {"kind": "custom"}


def read_utility(content: Any) -> ColumnUtility:
    """A built-in utility from a certificate."""
    if content["kind"] == "information":
        return Information(tuple(read_integer(w) for w in content["prior"]))
    if content["kind"] == "divergences" and content["divergence"] in DIVERGENCES:
        pairs = tuple(Pair(*(tuple(read_integer(w) for w in law) for law in pair)) for pair in content["pairs"])
        return Divergences(pairs, DIVERGENCES[content["divergence"]])
    raise SpecError("the certificate is about a utility that is not built in: only its author can check it")


def information(prior: Any) -> Information:
    probability_vector(prior)
    return Information(integer_weights(prior))


def divergences(pairs: Sequence[tuple[Any, Any]], divergence: FDivergence) -> Divergences:
    return Divergences(tuple(Pair.read(p0, p1) for p0, p1 in pairs), divergence)


def coarse_groups(utility: ColumnUtility) -> NDArray[np.int64]:
    """A group for each symbol: of like evidence for a family, of even mass for information."""
    if isinstance(utility, Information):
        # Largest first, each to the lightest group.
        prior, load = utility.prior, np.zeros(_GROUPS)
        groups = np.zeros(utility.size, dtype=np.int64)
        for x in np.argsort(-prior, kind="stable"):
            groups[x] = int(np.argmin(load))
            load[groups[x]] += prior[x]
        return groups
    if not isinstance(utility, Divergences):
        raise ShapeError(f"a utility of your own is optimized over at most 16 symbols, not {utility.size}")
    laws = np.array([[np.array(w, dtype=np.float64) / sum(w) for w in (p.weights0, p.weights1)] for p in utility.pairs])
    total = laws[:, 0] + laws[:, 1]
    share = np.where(total > 0, laws[:, 0] / np.where(total > 0, total, 1.0), 0.5).T
    mass = total.sum(axis=0)
    # Split the group with the most spread at its mean, along its widest direction, until there are enough.
    groups = np.zeros(utility.size, dtype=np.int64)
    for new in range(1, _GROUPS):
        best, cut = 0.0, None
        for g in range(new):
            inside = np.flatnonzero(groups == g)
            weights = mass[inside] + 1e-300
            mean = np.average(share[inside], axis=0, weights=weights)
            spread = weights @ (share[inside] - mean) ** 2
            axis = int(np.argmax(spread))
            if spread[axis] > best:
                best, cut = float(spread[axis]), inside[share[inside, axis] > mean[axis]]
        if cut is None or cut.size == 0:
            break
        groups[cut] = new
    return groups


def merged(utility: ColumnUtility, groups: NDArray[np.int64]) -> ColumnUtility:
    """The same utility for the merged symbols."""
    count = int(groups.max()) + 1

    def add(weights: tuple[int, ...]) -> tuple[int, ...]:
        sums = [0] * count
        for g, weight in zip(groups.tolist(), weights, strict=True):
            sums[g] += weight
        return tuple(sums)

    if isinstance(utility, Information):
        return Information(add(utility.weights))
    if isinstance(utility, Divergences):
        return Divergences(tuple(Pair(add(p.weights0), add(p.weights1)) for p in utility.pairs), utility.divergence)
    raise ShapeError("only built-in utilities can be merged")

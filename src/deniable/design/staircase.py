"""The textbook program over all 2^k staircase columns, for every utility that is a sum of sublinear column utilities.

Program    maximize sum of mu(s) theta_s over theta >= 0 with sum of s_x theta_s = 1 for each symbol x, s in {1, E}^k
Utility    what a column contributes: b f(a/b) for each pair of hypotheses of a family, or the sum of
           pi_x c_x ln(c_x / m), m = sum of pi_x c_x: mutual information under the prior pi. Sublinear:
           U(c + d) <= U(c) + U(d) and U(r c) = r U(c), so that staircase columns are enough
Families   the smallest of several divergences ("what if P0 and P1 are not known exactly"), or their weighted sum
Merging    symbols are merged until the program is small: merged symbols can do nothing that separate ones cannot
Solver     SciPy's HiGHS, refined on its final basis. Up to 4,096 columns the program is solved as it is.
           Larger ones are solved on a few columns; columns that the multipliers price too low are added until none
           remain: each pricing covers all 2^k
Proof      multipliers lambda, and weights w of the members: lambda . s >= sum of w_i U_i(s) for all 2^k patterns, each
           priced; sum of lambda bounds sum of w_i U_i, and so the smallest of the U_i, for any w
Margin     utilities of patterns are floats with 1e-12 of the largest term added: their own error is below 1e-14
Beyond     k = 16: the program on 12 merged symbols, and a bound from the members' own optima (or, for mutual
           information, from the best single column), with the gap between them
Source     Kairouz, Oh and Viswanath 2014 (theorems 2 and 4)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable import exact
from deniable.channels import Channel
from deniable.channels.divergences import DIVERGENCES, FDivergence, find_divergence
from deniable.channels.laws import Floats, Laws, integer_weights, probability_vector, read_hypotheses
from deniable.design.base import Certificate, Check, Design, Verdict
from deniable.design.extremal import extremal, rise
from deniable.design.tangents import Pair, curve_of
from deniable.errors import ChannelError, LabelError, ShapeError, SpecError
from deniable.labels import Label, as_labels, label_spec, load_label
from deniable.specs import integer_text, read_integer
from deniable.trace import Progress, Watch, highs

# Number of merged symbols if there are more than the program takes.
_GROUPS = 12


# -- the utility of a column --------------------------------------------------------------------------


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
        # Without the flat part, which has equal weight under both hypotheses, nothing cancels.
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
            # c ln(c/m) - (c - m) is non-negative, and its last part averages to zero.
            terms = np.where(columns > 0, curve_of("kl").lift(gap), 1.0)
        return np.asarray((mean * (terms @ self.prior))[None, :])

    def ceiling(self, odds: float) -> float:
        """No mechanism exceeds max over q of E q ln E / m - ln m, m = 1 + (E-1) q: the best single column."""
        high = 1 + odds
        m = high * math.log1p(odds) / odds
        q = (m - 1) / odds
        return high * q * math.log1p(odds) / m - math.log(m)

    def content(self) -> dict[str, Any]:
        return {"kind": "information", "prior": [integer_text(w) for w in self.weights]}


@dataclass(frozen=True)
class Custom:
    """A user-defined sublinear utility: takes an array with one column per row, returns a number for each."""

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
    """A group for each symbol: of similar evidence for a family, of even mass for information."""
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


# -- the program over all columns ---------------------------------------------------------------------


MOST_SYMBOLS = 16
ALL_AT_ONCE = 1 << 12
AT_A_TIME = 256
TOLERANCE = 1e-10
_MARGIN = 1e-12


def pattern_matrix(k: int, epsilon: Any) -> Floats:
    """The k x 2^k staircase pattern matrix: entry (x, j) is e^epsilon if bit x of j is set, counted from the top.

    Args:
        k: Number of symbols.
        epsilon: The guarantee.

    Returns:
        The matrix.

    Raises:
        ShapeError: There are too many symbols.

    >>> pattern_matrix(2, epsilon="1.0986122886681098").round(6).tolist()
    [[1.0, 1.0, 3.0, 3.0], [1.0, 3.0, 1.0, 3.0]]
    """
    size = exact.whole(k, "the number of symbols")
    if not 1 <= size <= MOST_SYMBOLS:
        raise ShapeError(f"the pattern matrix has 2^k columns: k is 1 to {MOST_SYMBOLS}, not {size}")
    return np.asarray((1 + rise(exact.as_epsilon(epsilon)) * bits_of(size)).T)


def staircase(
    p0: ArrayLike,
    p1: ArrayLike,
    epsilon: Any,
    divergence: str | FDivergence = "kl",
    inputs: Iterable[Any] | None = None,
    progress: Progress | None = None,
) -> Design:
    """The extremal mechanism by the 2^k program: slow, and the reference for `extremal`.

    Args:
        p0: Law of the answers under the first hypothesis.
        p1: Law of the answers under the second hypothesis.
        epsilon: The guarantee.
        divergence: Name of the divergence, or an `FDivergence`.
        inputs: Labels of the symbols; 0, 1, 2, ... if None.
        progress: Called with a description of the current work.

    Returns:
        The mechanism.
    """
    found = find_divergence(divergence)
    first, second, names = read_hypotheses(p0, p1, inputs)
    return _design(f"staircase ({found.name})", divergences([(first, second)], found), epsilon, None, names, progress)


def best_columns(
    utility: Callable[[Floats], Any],
    k: int,
    epsilon: Any,
    inputs: Iterable[Any] | None = None,
    progress: Progress | None = None,
) -> Design:
    """The mechanism that maximizes the sum over outputs of your sublinear `utility` of the column.

    Args:
        utility: Maps an array with one column of the channel per row to a number for each.
        k: Number of symbols.
        epsilon: The guarantee.
        inputs: Labels of the symbols; 0, 1, 2, ... if None.
        progress: Called with a description of the current work.

    Returns:
        The mechanism.
    """
    custom = Custom(exact.whole(k, "the number of symbols"), utility)
    return _design("staircase (your utility)", custom, epsilon, None, inputs, progress)


def mutual_information(
    prior: ArrayLike, epsilon: Any, inputs: Iterable[Any] | None = None, progress: Progress | None = None
) -> Design:
    """The mechanism whose reports carry the most information about symbols that follow `prior`.

    Args:
        prior: A probability per symbol.
        epsilon: The guarantee.
        inputs: Labels of the symbols; 0, 1, 2, ... if None.
        progress: Called with a description of the current work.

    Returns:
        The mechanism.

    >>> design = mutual_information([0.5, 0.25, 0.25], epsilon=1)
    >>> round(design.value, 9), design.relative_gap < 1e-9
    (0.115215436, True)
    """
    return _design("mutual information", information(prior), epsilon, None, inputs, progress)


def family(
    pairs: Sequence[tuple[Any, Any]],
    epsilon: Any,
    divergence: str | FDivergence = "kl",
    goal: str = "smallest",
    weights: ArrayLike | None = None,
    inputs: Iterable[Any] | None = None,
    progress: Progress | None = None,
) -> Design:
    """One mechanism for several pairs of hypotheses: the best "smallest" or "weighted" divergence of the family.

    Args:
        pairs: Pairs of hypotheses.
        epsilon: The guarantee.
        divergence: Name of the divergence, or an `FDivergence`.
        goal: "smallest" or "weighted".
        weights: Weight of each pair, for goal "weighted".
        inputs: Labels of the symbols; 0, 1, 2, ... if None.
        progress: Called with a description of the current work.

    Returns:
        The mechanism.

    Raises:
        LabelError: The goal is unknown, or weights are given for goal "smallest".
    """
    if goal not in ("smallest", "weighted"):
        raise LabelError(f"the goal is 'smallest' or 'weighted', not {goal!r}")
    found = find_divergence(divergence)
    members = divergences(pairs, found)
    if goal == "smallest":
        if weights is not None:
            raise LabelError("weights belong to goal='weighted': the smallest divergence has none")
        return _design(f"smallest of {members.members} ({found.name})", members, epsilon, None, inputs, progress)
    even = np.full(members.members, 1 / members.members)
    shares = even if weights is None else probability_vector(weights, members.members, "weights of the family")
    return _design(f"weighted sum of {members.members} ({found.name})", members, epsilon, shares, inputs, progress)


def _design(
    name: str,
    utility: ColumnUtility,
    epsilon: Any,
    weights: Floats | None,
    inputs: Iterable[Any] | None,
    progress: Progress | None,
) -> Design:
    began = time.perf_counter()
    level = exact.as_epsilon(epsilon)
    shares = np.ones(1) if weights is None and utility.members == 1 else weights
    names = None if inputs is None else tuple(inputs)
    odds, watch = rise(level), Watch(progress)
    if utility.size <= MOST_SYMBOLS:
        solution = solve(utility, odds, shares, watch)
        rows = solution.rows
        certify_with: Solution | None = solution
    else:
        groups = coarse_groups(utility)
        rows = solve(merged(utility, groups), odds, shares, watch).rows[groups]
        certify_with = None
    channel = Channel.from_floats(rows, level, inputs=names)
    value = channel_values(utility, channel, shares)
    watch.worth(value)
    certify = partial(_certify, utility, channel, level, shares, certify_with, value, progress)
    spent = time.perf_counter() - began
    return Design(name, level, value, channel, certify, names, tuple(watch.steps), spent, hypotheses=_laws(utility))


def _certify(
    utility: ColumnUtility,
    channel: Channel,
    epsilon: Fraction,
    weights: Floats | None,
    solution: Solution | None,
    value: float,
    progress: Progress | None,
) -> StaircaseCertificate:
    Watch(progress).say(f"proof: all columns of {utility.size} symbols")
    shares = None if weights is None else tuple(weights.tolist())
    if solution is not None:
        mixed, prices = tuple(solution.weights.tolist()), tuple(solution.multipliers.tolist())
        bound = enumerated_bound(utility, np.array(mixed), np.array(prices), epsilon, room=2)
        return StaircaseCertificate(utility, epsilon, channel, shares, mixed, prices, (), value, bound)
    if isinstance(utility, Divergences):
        parts = tuple(
            extremal(_law(pair.weights0), _law(pair.weights1), epsilon, utility.divergence).certificate
            for pair in utility.pairs
        )
        bounds = [part.bound for part in parts]
        bound = min(bounds) if weights is None else math.fsum(w * b for w, b in zip(weights, bounds, strict=True))
        # One rounding per product and one for the sum.
        bound *= 1 + 1e-14
        return StaircaseCertificate(utility, epsilon, channel, shares, (), (), parts, value, bound)
    ceiling = getattr(utility, "ceiling", None)
    if ceiling is None:
        raise ShapeError(f"a utility of your own is optimized over at most {MOST_SYMBOLS} symbols, not {utility.size}")
    bound = float(ceiling(rise(epsilon))) * (1 + 1e-12)
    return StaircaseCertificate(utility, epsilon, channel, shares, (), (), (), value, bound)


def _laws(utility: ColumnUtility) -> Laws | None:
    """The laws that a family distinguishes, if it holds all pairs of them, in one direction or in both."""
    if not isinstance(utility, Divergences):
        return None
    pairs = [(pair.weights0, pair.weights1) for pair in utility.pairs]
    laws = list(dict.fromkeys(law for pair in pairs for law in pair))
    complete = len(laws) > 1 and pairs in (list(combinations(laws, 2)), list(permutations(laws, 2)))
    return Laws.numbered(laws) if complete else None


def _law(weights: tuple[int, ...]) -> list[Fraction]:
    total = sum(weights)
    return [Fraction(w, total) for w in weights]


# -- the program -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Solution:
    """Channel rows in floats, the dual weights of the members, and a multiplier for each symbol."""

    rows: Floats
    weights: Floats
    multipliers: Floats


def bits_of(size: int) -> Floats:
    """Row j holds the binary digits of j, the most significant first."""
    return ((np.arange(1 << size)[:, None] >> np.arange(size - 1, -1, -1)) & 1).astype(np.float64)


def solve(utility: ColumnUtility, odds: float, weights: Floats | None, watch: Watch | None = None) -> Solution:
    """The best staircase mechanism for the weighted sum of the members, or (no weights) for their smallest."""
    seen, what = watch or Watch(), f"staircase columns of {utility.size} symbols"
    # The last pattern is the first one times E.
    columns = 1 + odds * bits_of(utility.size)[:-1]
    table = utility.table(columns)
    scale = float(table.max()) or 1.0
    norm = columns.mean(axis=1)
    height, size = columns.shape
    scaled, worth = columns / norm[:, None], table / norm / scale
    # The flat column alone is feasible; those of one symbol are the columns of randomized response.
    active = np.arange(height) if height <= ALL_AT_ONCE else np.concatenate([[0], 1 << np.arange(size)])
    while True:
        answer = _run(scaled[active], worth[:, active], weights, seen, what)
        if not answer.success:
            break
        mixed = weights if weights is not None else _shares(answer)
        if active.size == height:
            break
        surplus = mixed @ worth + scaled @ answer.eqlin.marginals
        surplus[active] = 0.0
        missing = np.flatnonzero(surplus > TOLERANCE)
        if not missing.size:
            break
        best = missing[np.argsort(-surplus[missing], kind="stable")[:AT_A_TIME]]
        seen.say(f"{what}: {active.size:,} of {height:,} columns, {float(surplus.max()):.1e} above the prices")
        active = np.sort(np.concatenate([active, best]))
    if not answer.success:
        raise ChannelError(
            f"the solver did not finish ({answer.message.strip()}): merge rare symbols, or move epsilon a little"
        )
    found = np.zeros(height)
    found[active] = answer.x[: active.size]
    theta = found / norm
    used = np.flatnonzero(found > 1e-9)
    prices = -answer.eqlin.marginals * scale
    basis = columns[used]
    if used.size == size and np.linalg.matrix_rank(basis) == size:
        # The solver stops at its tolerance; its basis gives all digits.
        sharper = np.linalg.solve(basis.T, np.ones(size))
        if (sharper >= 0).all() and weights is not None:
            theta = np.zeros(height)
            theta[used] = sharper
            prices = np.linalg.solve(basis, (mixed @ table)[used])
    total = mixed @ table - columns @ prices
    # The remaining excess is added: only the flat column has fewer than k + E - 1, and its utility is zero.
    prices = prices + max(float(total[1:].max(initial=0.0)), 0.0) / (size + odds)
    return Solution(np.asarray((columns[used] * theta[used, None]).T), mixed, prices)


def _run(columns: Floats, table: Floats, weights: Floats | None, watch: Watch, what: str) -> Any:
    """max of the weighted sum, or of the smallest, over mixtures of these columns that sum to one everywhere."""
    height, size = columns.shape
    tolerance = {"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE}
    if weights is not None:
        sums = columns.T, np.ones(size)
        return highs(-(weights @ table), None, sums, (0, None), "highs", tolerance, watch, what)
    return highs(
        np.concatenate([np.zeros(height), [-1.0]]),
        (np.hstack([-table, np.ones((len(table), 1))]), np.zeros(len(table))),
        (np.hstack([columns.T, np.zeros((size, 1))]), np.ones(size)),
        [(0, None)] * height + [(None, None)],
        "highs",
        tolerance,
        watch,
        what,
    )


def _shares(answer: Any) -> Floats:
    """The dual weights of the members, when the smallest is maximized."""
    mixed: Floats = np.maximum(-answer.ineqlin.marginals, 0.0)
    mixed /= mixed.sum()
    return mixed


# -- the certificate ---------------------------------------------------------------------------------------


def channel_values(utility: ColumnUtility, channel: Channel, weights: Floats | None) -> float:
    """The weighted sum or the smallest of the utilities of a channel, rounded down a little."""
    sums = np.array([math.fsum(row) for row in utility.table(np.ascontiguousarray(channel.rows.T))])
    value = float(sums.min()) if weights is None else float(weights @ sums)
    return value * (1 - 1e-13) if value > 0 else value


def enumerated_bound(
    utility: ColumnUtility, weights: Floats, prices: Floats, epsilon: Fraction, room: float = 1.0
) -> float:
    """The bound that the multipliers prove over all patterns; twice the `room` lets other processors prove it, too."""
    odds = rise(epsilon)
    columns = 1 + odds * bits_of(utility.size)[1:-1]
    worth, cost = weights @ utility.table(columns), columns @ prices
    margin = room * _MARGIN * (np.abs(worth) + columns @ np.abs(prices))
    over = max(float((worth - cost + margin).max(initial=0.0)), 0.0)
    total = math.fsum(prices) + over * utility.size / (utility.size + odds)
    return max(total * (1 + 1e-15), 0.0)


@dataclass(frozen=True)
class StaircaseCertificate(Certificate):
    """A utility, an exact channel, and multipliers (or certificates of the members) that bound every other channel.

    Args:
        utility: The objective.
        epsilon: The guarantee.
        channel: The mechanism.
        shares: Weights of the members in the objective; None for the smallest member.
        weights: Weights of the members in the proof.
        multipliers: Dual multipliers, one per symbol.
        parts: Certificates of the members, if these prove the bound.
        value: What the mechanism attains.
        bound: Upper bound for every mechanism.
        names: Names of the hypotheses, if they have any.
    """

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
    names: tuple[Label, ...] | None = None

    @property
    def rigor(self) -> str:
        return "proved" if self.utility.built_in else "numeric"

    @property
    def mechanism(self) -> Channel:
        return self.channel

    @property
    def hypotheses(self) -> Laws | None:
        found = _laws(self.utility)
        if found is None:
            return None
        named = found if self.names is None else found.renamed(self.names)
        return replace(named, inputs=self.channel.inputs)

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
        """The bound that follows from the content of the certificate, or None if it is inconsistent."""
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
        named = {} if self.names is None else {"hypotheses": [label_spec(name) for name in self.names]}
        return named | {
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
        shares, utility, names = content["shares"], read_utility(content["utility"]), content.get("hypotheses")
        laws = _laws(utility)
        if names is not None:
            names = as_labels([load_label(name) for name in names], 0 if laws is None else laws.count, "hypothesis")
        return cls(
            utility,
            exact.as_epsilon(content["epsilon"]),
            Channel.load(content["channel"]),
            None if shares is None else tuple(map(float, shares)),
            tuple(map(float, content["weights"])),
            tuple(map(float, content["multipliers"])),
            tuple(Certificate.load(part) for part in content["parts"]),
            float(content["value"]),
            float(content["bound"]),
            names,
        )


def _same_laws(one: Any, other: Any) -> bool:
    """Whether two pairs hold the same laws, up to multiples of their integers."""
    if one is None or one.size != other.size:
        return False
    return all(
        a * total_b == b * total_a
        for ours, theirs in ((one.weights0, other.weights0), (one.weights1, other.weights1))
        for total_a, total_b in [(sum(ours), sum(theirs))]
        for a, b in zip(ours, theirs, strict=True)
    )

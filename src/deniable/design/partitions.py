"""Partitions of symbols into blocks: randomized response on the blocks, the best cut, and its proof.

Law        symbol x belongs to block B(x); the report is B(x) with probability t + (1 - t) / j, any other block with
           (1 - t) / j each; a single block is the constant answer
Privacy    that of j-ary randomized response: t is rounded down, every ratio is 1 or the same number <= e^epsilon
Best cut   V = max over cuts 0 = c_0 < ... < c_j = k of  sum of mu(c_{i-1}, c_i) / (j + E - 1), by the iteration of
           Dinkelbach (1967): at a guess V, the path that maximizes the sum of (mu - V); its own value is the next
           guess, and no guess falls; when the value stays the same, it is the maximum
Cost       one table of k block numbers; the matrix, k x j integers, is built only when asked for. The search takes
           O(k^2) per step and about three steps; beyond 1,500 groups the table is recomputed in strips of 2 MiB

Multipliers prove a partition optimal; checking their bound needs no solver and no trust in floats:

Theorem    if sum of lambda_x s_x >= mu(s) for every pattern s in {1, E}^k, no epsilon-LDP channel has a divergence
           above sum of lambda_x (E = e^epsilon)
First try  lambda_x = hi_x - rho (hi_x - lo_x): hi and lo are the best and second-best tangents of the optimal blocks
           at x, and rho is fixed for each block by making its own column tight; the sum is then exactly the value
Repair     if some other column is above: the rho_x of least total variation that keep the blocks' columns tight
           and all columns found so far below, a small linear program; the sweep adds columns until none is above.
           rho may step at evenly spaced knots only, at more of them if these do not suffice
Rest       the remaining excess of a column is covered by raising all multipliers in proportion to the mass
Decimals   Python's `decimal` rounds every operation, ln, exp and sqrt included, correctly to the given digits; all
           quantities stay below E^2, so with 60 + 2 epsilon digits all rounding errors of a check together are below
           k 10^-50 times the sum of |lambda| (at least 1): subtracted from the value, added to the bound
Value      D_f of the exact marginals
Bound      sum of lambda, plus what the worst column is above it. With w_x = t P0(x) + h P1(x) - lambda_x, symbol x is
           on for z in [low_x, high_x], floats found by bisection. They need not be roots: w_x is concave in t and
           peaks at z = ln(P0/P1), inside, so on the wrong side |w_x| is at most its value at an end, and the sum of
           these values times E - 1 is added to the largest excess of the patterns that the intervals define. Any column
           s with excess B over lambda is below lambda + B / (k + E - 1), except the flat one, whose utility is 0
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels import Channel, RandomizedResponse
from deniable.channels.compose import MOST_CELLS
from deniable.channels.laws import Floats
from deniable.design.tangents import LEAST, Curve, Pair, Switches, curve_of, quick_columns, sweep, switches
from deniable.errors import ChannelError, InternalError, ShapeError, SpecError
from deniable.exact import WORD, Dyadic
from deniable.randomness import Bits, source_of
from deniable.specs import integer_text, read_integer
from deniable.trace import Step, Watch, highs

Cuts = NDArray[np.int64]
Column = Callable[[Floats, Floats], Floats]

_STRIP = 1 << 18
_KEPT = 1500
_MOST_STEPS = 100
# Above this e^epsilon - 1 the cancellation of the quick formulas is harmless: it can only miss a tie.
_QUICK_FROM = 1e-3


@dataclass(frozen=True)
class BlockResponse:
    """The block of each symbol, and the randomized response over the blocks.

    Args:
        block: The block of each symbol, numbered from 0.
        outputs: Number of blocks.
        keep: Probability that the block is kept.

    Raises:
        ShapeError: A block is empty, or the numbers do not start at 0.

    >>> law = BlockResponse.at([0, 0, 1], epsilon=1)
    >>> law.channel().rows.round(4).tolist()
    [[0.7311, 0.2689], [0.7311, 0.2689], [0.2689, 0.7311]]
    """

    block: tuple[int, ...]
    outputs: int
    keep: Dyadic

    def __post_init__(self) -> None:
        if not self.block or sorted(set(self.block)) != list(range(self.outputs)):
            raise ShapeError("blocks are numbered from 0 and none is empty")

    @classmethod
    def at(cls, block: Iterable[int], epsilon: Any) -> BlockResponse:
        places = tuple(int(b) for b in block)
        count = max(places, default=-1) + 1
        keep = RandomizedResponse.at(count, epsilon).keep if count > 1 else Dyadic(0)
        return cls(places, count, keep)

    @property
    def true(self) -> Fraction:
        """Probability that the own block is reported."""
        return self.keep.value + self.false

    @property
    def false(self) -> Fraction:
        """Probability of each other block."""
        return (1 - self.keep.value) / self.outputs

    @property
    def ratio(self) -> Fraction | float:
        """The largest column ratio, exactly."""
        if self.outputs == 1:
            return Fraction(1)
        return self.true / self.false if self.false else float("inf")

    @property
    def epsilon(self) -> float:
        ratio = self.ratio
        return float("inf") if isinstance(ratio, float) else exact.log(ratio)

    def satisfies(self, epsilon: Any) -> bool:
        """Whether no ratio exceeds e^epsilon: decided with integers."""
        ratio = self.ratio
        return not isinstance(ratio, float) and exact.exp_at_least(exact.as_epsilon(epsilon), ratio)

    def push(self, weights: Iterable[int]) -> list[Fraction]:
        """The exact law of reports when symbols have these integer weights."""
        sums = [0] * self.outputs
        for place, weight in zip(self.block, weights, strict=True):
            sums[place] += weight
        total = sum(sums)
        return [self.keep.value * Fraction(own, total) + self.false for own in sums]

    def sample_indices(self, symbols: Any, bits: Bits | None = None) -> NDArray[np.int64]:
        """Randomize symbols given as positions."""
        blocks = np.array(self.block, dtype=np.int64)[np.asarray(symbols, dtype=np.int64)]
        return blocks if self.outputs == 1 else source_of(bits).keep_or_uniform(blocks, self.keep, self.outputs)

    def channel(self, inputs: Iterable[Any] | None = None) -> Channel:
        """The exact matrix."""
        if len(self.block) * self.outputs > MOST_CELLS:
            raise ChannelError(
                f"the matrix would have {len(self.block) * self.outputs} cells: use the blocks, which say the same"
            )
        lie = WORD - self.keep.numerator
        rows = np.full((self.outputs, self.outputs), lie, dtype=object)
        rows[np.diag_indices(self.outputs)] = self.keep.numerator * self.outputs + lie
        return Channel.from_integers(rows[list(self.block)], WORD * self.outputs, inputs)

    def spec(self) -> dict[str, Any]:
        return {
            "kind": "blocks",
            "block": list(self.block),
            "outputs": self.outputs,
            "keep": integer_text(self.keep.numerator),
        }

    @classmethod
    def load(cls, spec: Any) -> BlockResponse:
        try:
            block, outputs = [int(b) for b in spec["block"]], int(spec["outputs"])
            return cls(tuple(block), outputs, Dyadic(read_integer(spec["keep"])))
        except (KeyError, TypeError):
            raise SpecError("a block response needs block, outputs and keep") from None


# -- the best cut -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Partition:
    """Cut positions 0 = c_0 < ... < c_j = k, their value, and the values of the iteration."""

    cuts: Cuts
    value: float
    steps: tuple[float, ...]

    @property
    def blocks(self) -> int:
        return len(self.cuts) - 1


def best_partition(lower: Floats, gaps: Floats, odds: float, curve: Curve, watch: Watch | None = None) -> Partition:
    """The optimum for prefix sums of P1 and of P0 - P1 (with the leading zero), e^epsilon - 1 = `odds`."""
    groups, seen = len(lower) - 1, watch or Watch()
    if groups == 1:
        return Partition(np.array([0, 1]), 0.0, (0.0,))
    quick = quick_columns(curve.divergence.name) if curve.built_in and odds > _QUICK_FROM else None
    column = quick or curve.column
    if groups > _KEPT:
        coarse = np.unique(np.linspace(0, groups, _KEPT // 3).astype(np.int64))
        cuts = coarse[best_partition(lower[coarse], gaps[coarse], odds, curve, seen).cuts]
        strips: list[Floats] | None = None
    else:
        # Prefix sums of P0 - P1 fall while P0 < P1: the binary mechanism is a good start.
        middle = min(max(int(np.argmin(gaps)), 1), groups - 1)
        cuts = np.array([0, middle, groups])
        strips = list(_strips(lower, gaps, odds, column))
    steps = [partition_value(cuts, lower, gaps, odds, curve)]
    for _ in range(_MOST_STEPS):
        began = time.perf_counter()
        table = _strips(lower, gaps, odds, column) if strips is None else iter(strips)
        following = _longest_path(table, groups, steps[-1], seen, f"step {len(steps)} of the search, {groups:,} groups")
        value = partition_value(following, lower, gaps, odds, curve)
        settled = value <= steps[-1] * (1 + 4e-16)
        seen.add(_step(groups, time.perf_counter() - began, settled, max(value, steps[-1])))
        if settled:
            return Partition(cuts, steps[-1], tuple(steps))
        cuts = following
        steps.append(value)
    raise InternalError("the search for the best partition did not settle")


def _step(groups: int, seconds: float, settled: bool, value: float) -> Step:
    arcs = groups * (groups + 1) // 2
    return Step("longest path", "optimal" if settled else "better", 1, seconds, groups + 1, arcs, 2 * arcs, value)


def partition_value(cuts: Cuts, lower: Floats, gaps: Floats, odds: float, curve: Curve) -> float:
    b, gap = 1 + odds * np.diff(lower[cuts]), odds * np.diff(gaps[cuts])
    return math.fsum(curve.column(b, gap)) / (len(cuts) - 1 + odds)


def _strips(lower: Floats, gaps: Floats, odds: float, column: Column) -> Iterator[Floats]:
    """mu(l, i) in strips of consecutive i, for all l below the strip's last i; entries beyond l = i are unused."""
    groups = len(lower) - 1
    height = max(1, min(groups, _STRIP // (groups + 1)))
    for first in range(1, groups + 1, height):
        last = min(first + height, groups + 1)
        b = np.maximum(1 + odds * (lower[first:last, None] - lower[None, : last - 1]), 1.0)
        gap = odds * (gaps[first:last, None] - gaps[None, : last - 1])
        # The unused corner has negative masses; any number is fine there.
        np.maximum(gap, LEAST * b, out=gap)
        with np.errstate(all="ignore"):
            yield column(b, gap)


def _longest_path(strips: Iterator[Floats], groups: int, toll: float, watch: Watch, what: str) -> Cuts:
    best = np.zeros(groups + 1)
    back = np.zeros(groups + 1, dtype=np.int64)
    i = 1
    for strip in strips:
        for row in strip:
            through = row[:i] + best[:i]
            back[i] = place = int(through.argmax())
            best[i] = through[place] - toll
            i += 1
        # The triangle of arcs grows with the square of its height.
        watch.say(what, ((i - 1) / groups) ** 2)
    cuts = [groups]
    while cuts[-1] > 0:
        cuts.append(int(back[cuts[-1]]))
    return np.array(cuts[::-1])


_GOOD = 1e-12
_ROUNDS = 60
_ADDED = 40
_KNOTS = 300

_ONE = Decimal(1)
# Maximum loss of floats in the check of a user-defined divergence, relative to the largest terms.
_NUMERIC = 1e-13


# -- finding the multipliers --------------------------------------------------------------------------------


def multipliers(
    pair: Pair, partition: Partition, odds: float, curve: Curve, seconds: float = 20.0, watch: Watch | None = None
) -> Floats:
    """One multiplier for each symbol (not group), nearly feasible: a sweep measures the violation."""
    if partition.value <= 0:
        return np.zeros(pair.size)
    deadline = time.monotonic() + seconds
    best, least, seen = np.zeros(0), np.inf, watch or Watch()
    for number, found in enumerate(_drafts(pair, partition, odds, curve, seen, deadline), start=1):
        raised = _raise(found, pair, odds, curve)
        if raised.sum() < least:
            best, least = raised, float(raised.sum())
        seen.say(f"proof: draft {number}, relative gap {max(least / partition.value - 1, 0.0):.0e}")
        if least <= partition.value * (1 + _GOOD) or time.monotonic() > deadline:
            break
    return np.asarray(best[pair.group] * pair.shares())


def _drafts(
    pair: Pair, partition: Partition, odds: float, curve: Curve, watch: Watch, deadline: float
) -> Iterator[Floats]:
    """Successively better multipliers for the groups, all with the value as their sum."""
    _, lower, gaps = pair.merged
    prefix, differences = pair.prefixes
    starts, stops = partition.cuts[:-1], partition.cuts[1:]
    b = 1 + odds * (prefix[stops] - prefix[starts])
    z = curve.tangent_to(b, odds * (differences[stops] - differences[starts]))
    slope, sag = curve.slope(z), curve.sag(z)
    block = np.repeat(np.arange(partition.blocks), stops - starts)
    high = slope[block] * gaps + sag[block] * lower
    # Tangents of a convex function are ordered, so the second best belongs to a neighbouring block.
    low = np.full(high.size, -np.inf)
    for step in (-1, 1):
        valid = (block + step >= 0) & (block + step < partition.blocks)
        near = np.where(valid, block + step, 0)
        low = np.where(valid, np.maximum(low, slope[near] * gaps + sag[near] * lower), low)
    spread = np.maximum(high - low, 0.0)
    room = np.add.reduceat(spread, starts)
    tight = np.where(room > 0, (partition.value - sag) / (odds * np.where(room > 0, room, 1.0)), 0.0)
    found = np.asarray(high - tight[block] * spread)
    yield found

    own = 1 + odds * (block[None, :] == np.arange(partition.blocks)[:, None])
    columns: list[Floats] = []
    utilities: list[float] = []
    knots = min(_KNOTS, found.size)
    for _ in range(_ROUNDS):
        worst = sweep(lower, gaps, found, odds, curve)
        for event in worst.peaks(_ADDED):
            if worst.excess[event] > max(1e-14 * partition.value, 1e-3 * worst.largest):
                columns.append(1 + odds * worst.pattern(int(event), found.size))
                utilities.append(float(worst.utility[event]))
        if not columns:
            return
        above = np.array(columns)
        share = None
        while share is None and time.monotonic() < deadline:
            share = _smoothest(
                above * (spread / partition.value),
                (above @ high - np.array(utilities)) / partition.value,
                own * (spread / partition.value),
                own @ (tight[block] * spread) / partition.value,
                starts,
                block,
                np.linspace(0, found.size - 1, knots).astype(np.int64),
                deadline,
                watch,
            )
            if share is None and knots == found.size:
                return
            knots = knots if share is not None else min(4 * knots, found.size)
        if share is None:
            return
        found = np.asarray(high - share * spread)
        yield found


def _smoothest(
    above: Floats,
    room: Floats,
    own: Floats,
    level: Floats,
    starts: np.ndarray,
    block: np.ndarray,
    knots: np.ndarray,
    deadline: float,
    watch: Watch,
) -> Floats | None:
    """The rho with above @ rho <= room and own @ rho = level whose steps, all at knots, have the smallest sum."""
    ends = np.append(starts[1:], block.size)[block]
    inner = np.setdiff1d(knots, starts)

    def by_steps(rows: Floats) -> Floats:
        # A step at i changes every rho from i to the end of its block.
        tails = np.zeros((rows.shape[0], block.size + 1))
        tails[:, :-1] = np.cumsum(rows[:, ::-1], axis=1)[:, ::-1]
        moved = tails[:, :-1] - tails[:, ends]
        return np.hstack([moved[:, starts], moved[:, inner], -moved[:, inner]])

    answer = highs(
        np.concatenate([np.zeros(starts.size), np.ones(2 * inner.size)]),
        (by_steps(above), room),
        (by_steps(own), level),
        [(None, None)] * starts.size + [(0, None)] * (2 * inner.size),
        "highs",
        {
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
            "time_limit": max(deadline - time.monotonic(), 0.1),
        },
        watch,
        "proof",
    )
    if not answer.success:
        return None
    steps = np.zeros(block.size)
    steps[inner] = answer.x[starts.size : starts.size + inner.size] - answer.x[starts.size + inner.size :]
    total = np.cumsum(steps)
    return np.asarray(total - (total[starts] - answer.x[: starts.size])[block])


def _raise(found: Floats, pair: Pair, odds: float, curve: Curve) -> Floats:
    """Raise all multipliers in proportion to the mass until no column is above them."""
    _, lower, gaps = pair.merged
    mass = lower + gaps / 2
    for _ in range(6):
        worst = sweep(lower, gaps, found, odds, curve)
        if worst.largest <= 0:
            return found
        gain = 1 + odds * float(worst.pattern(int(np.argmax(worst.excess)), found.size) @ mass)
        found = found + mass * (worst.largest / gain * (1 + 1e-9))
    return found


# -- long decimals ------------------------------------------------------------------------------------------


def context(epsilon: Fraction) -> Context:
    return Context(prec=60 + math.ceil(2 * epsilon), Emin=-(10**6), Emax=10**6)


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def float_below(value: Decimal) -> float:
    nearest = float(value)
    return nearest if Decimal(nearest) <= value else math.nextafter(nearest, -math.inf)


def float_above(value: Decimal) -> float:
    return -float_below(-value)


# -- the function f, in decimals -------------------------------------------------------------------------


def _column(name: str, a: Decimal, b: Decimal) -> Decimal:
    """b f(a/b) with f(1) = f'(1) = 0."""
    if name == "kl":
        return a * (a / b).ln() - (a - b)
    if name == "reverse-kl":
        return a - b - b * (a / b).ln()
    if name == "tv":
        return abs(a - b) / 2
    if name == "chi2":
        return (a - b) ** 2 / b
    if name == "hellinger2":
        return (a.sqrt() - b.sqrt()) ** 2 / 2
    if name == "js":
        middle = (a + b) / 2
        return (a * (a / middle).ln() + b * (b / middle).ln()) / 2
    raise InternalError(f"no decimal form of {name!r}")


def _tangent(name: str, z: Decimal) -> tuple[Decimal, Decimal]:
    """t and h of the tangent at z."""
    if name == "tv":
        return z, -z
    if name == "hellinger2":
        root = (z / 2).exp()
        return (1 - 1 / root) / 2, (1 - root) / 2
    u = z.exp()
    if name == "kl":
        return z, 1 - u
    if name == "reverse-kl":
        return 1 - 1 / u, -z
    if name == "chi2":
        return 2 * (u - 1), 1 - u * u
    if name == "js":
        half = ((1 + u) / 2).ln()
        return (z - half) / 2, -half / 2
    raise InternalError(f"no decimal form of {name!r}")


# -- value and bound -------------------------------------------------------------------------------------


def proven_value(name: str, m0: list[Fraction], m1: list[Fraction], epsilon: Fraction) -> tuple[float, float]:
    """Floats just below and just above the divergence of two exact laws with positive entries."""
    with localcontext(context(epsilon)) as digits:
        total = sum((_column(name, decimal(a), decimal(b)) for a, b in zip(m0, m1, strict=True)), Decimal(0))
        margin = len(m0) * Decimal(10) ** (10 - digits.prec)
        low, high = max(total - margin, Decimal(0)), total + margin
        return float_below(low), float_above(high)


def proven_bound(name: str, pair: Pair, multipliers: Floats, epsilon: Fraction) -> float:
    """A float that no epsilon-LDP mechanism's divergence exceeds, whatever the multipliers are."""
    if pair.groups == 1:
        return 0.0  # P0 = P1, and so are the laws of reports
    odds = float(exact.exp_ceil(epsilon) - 1)
    lower, gaps = _floats(pair)
    intervals = switches(lower, gaps, multipliers, odds, curve_of(name))
    with localcontext(context(epsilon)) as digits:
        above = Context(prec=digits.prec, rounding=ROUND_CEILING)
        ceiling = exact.exp_ceil(epsilon, 4 * digits.prec)
        rise = above.subtract(above.divide(Decimal(ceiling.numerator), Decimal(ceiling.denominator)), _ONE)
        law0, law1 = (
            np.array([Decimal(w) / total for w in weights], dtype=object)
            for weights, total in zip((pair.weights0, pair.weights1), map(Decimal, pair.totals), strict=True)
        )
        price = np.array([Decimal(repr(value)) for value in multipliers.tolist()], dtype=object)
        intervals, slack = _residuals(name, law0, law1, price, intervals, rise)
        excess = _largest_excess(name, law0, law1, price, intervals, rise)
        # Multipliers from a file may be huge, and cancel: the error of their sums grows with them.
        margin = pair.size * Decimal(10) ** -50 * max(_ONE, sum(map(abs, price.tolist()), Decimal(0)))
        over = max(excess + rise * slack + margin, Decimal(0))
        total = sum(price.tolist(), Decimal(0)) + over * pair.size / (pair.size + rise)
        return float_above(max(total, Decimal(0)) + margin)


def upper_bound(curve: Curve, pair: Pair, multipliers: Floats, epsilon: Fraction) -> float:
    """Upper bound on every epsilon-LDP mechanism's divergence: proved for built-in ones, else checked in floats."""
    if curve.built_in:
        return proven_bound(curve.divergence.name, pair, multipliers, epsilon)
    return numeric_bound(curve, pair, multipliers, epsilon)


def _floats(pair: Pair) -> tuple[Floats, Floats]:
    n0, n1 = pair.totals
    return (
        np.array([b / n1 for b in pair.weights1]),
        np.array([(a * n1 - b * n0) / (n0 * n1) for a, b in zip(pair.weights0, pair.weights1, strict=True)]),
    )


def _residuals(name: str, law0: Any, law1: Any, price: Any, given: Switches, rise: Decimal) -> tuple[Switches, Decimal]:
    """Intervals that certainly contain the peaks, and the total error at their ends."""
    low, high = given.low.copy(), given.high.copy()
    end = 0.5 if name == "tv" else float_above((1 + rise).ln() * (1 + Decimal(10) ** -20))
    slack = Decimal(0)
    for x in range(low.size):
        p, q, cost = law0[x], law1[x], price[x]
        peak = _peak(name, p, q, end)
        if not given.on[x]:
            slack += max(_top(name, p, q, peak, end) - cost, Decimal(0))
            continue
        low[x], high[x] = min(low[x], math.nextafter(peak, -9e9)), max(high[x], math.nextafter(peak, 9e9))
        wrong = Decimal(0)
        for z, edge in ((low[x], -end), (high[x], end)):
            t, h = _tangent(name, Decimal(float(z)))
            w = p * t + q * h - cost
            # Beyond an end of the span there is nothing, so the only possible error there is being on where w < 0.
            beyond = z <= edge if edge < 0 else z >= edge
            wrong = max(wrong, -w, Decimal(0) if beyond else w)
        slack += wrong
    return Switches(given.on, low, high), slack


def _peak(name: str, p: Decimal, q: Decimal, end: float) -> float:
    if name == "tv":
        return math.copysign(end, p - q)
    if p == 0 or q == 0:
        return -end if p == 0 and q != 0 else end
    return min(max(float((p / q).ln()), -end), end)


def _top(name: str, p: Decimal, q: Decimal, peak: float, end: float) -> Decimal:
    """The largest t P0 + h P1 on the span: f itself if the peak is inside, else the value at the end."""
    if name != "tv" and p > 0 and q > 0 and abs((p / q).ln()) <= Decimal(end):
        return _column(name, p, q)
    t, h = _tangent(name, Decimal(peak))
    return p * t + q * h


def _largest_excess(name: str, law0: Any, law1: Any, price: Any, intervals: Switches, rise: Decimal) -> Decimal:
    symbols, signs = intervals.events()
    total = sum(price.tolist(), Decimal(0))
    a = b = _ONE
    cost, worst = total, -total
    for x, sign in zip(symbols.tolist(), signs.tolist(), strict=True):
        step = rise * sign
        a, b, cost = a + step * law0[x], b + step * law1[x], cost + step * price[x]
        worst = max(worst, _column(name, a, b) - cost)
    return worst


def numeric_bound(curve: Curve, pair: Pair, multipliers: Floats, epsilon: Fraction) -> float:
    """The same in floats, for a user-defined divergence: checked, not proved."""
    odds = float(exact.exp_ceil(epsilon) - 1)
    lower, gaps = _floats(pair)
    worst = sweep(lower, gaps, multipliers, odds, curve)
    scale = float(np.abs(multipliers).sum()) * (1 + odds) + float(worst.utility.max(initial=0.0))
    over = max(worst.largest + _NUMERIC * scale, 0.0)
    return math.nextafter(math.fsum(multipliers) + over * pair.size / (pair.size + odds), math.inf)

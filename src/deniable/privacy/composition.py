"""What several releases about one person reveal together, from the exact laws of their reports.

Loss          one release: its largest delta at every epsilon, over the pairs of inputs that its guarantee relates. That
              curve is piecewise linear and convex in e^epsilon, and it is the curve of one pair of laws, which is worse
              than every pair of inputs (the dominating pair). Exact fractions. Where the law is too large to list, that
              of randomized response at the same likelihood ratio, which is worse than any other law of that ratio
Sequential    releases about one person, each drawn afresh. Epsilons add up and ratios multiply; the delta at a smaller
              epsilon is that of the product of the dominating pairs
Order         does not matter, even if the next release of the list is chosen after seeing the earlier ones: given
              their outcomes, the rest is dominated by the same product (induction over the list). If the list itself
              is made on the way (`adaptive`), only the sum of epsilons holds, and a delta is refused
Parallel      each person in one of the releases at most: the largest
Group         several people at once, each with one release of their own: as many as one person with that many
Longitudinal  reports of one device over the epochs. Reports that share a kept state are not independent: they are never
              added as if they were, but by the protocol's own `lifetime`
Accounting    sums, maxima and products of levels that are known already, in fractions and never floats: `sequential`,
              `parallel`, `ratios`; an `Account` is a cap and what was spent of it, and refuses a release that would
              exceed the cap as a whole. For pure levels that are chosen on the way, a cap on the sum is enough
Rounding      losses lie on a grid, between whose points the curve is replaced by its chord, which is above it because
              the curve is convex; probabilities are floats, and every sum of products is enlarged by its largest
              possible rounding error. So neither a delta nor an epsilon at a delta is ever too small
Source        Kairouz, Oh and Viswanath 2015; Zhu, Dong and Wang 2022, theorem 10 (dominating pairs); Doroshenko, Ghazi,
              Kamath, Kumar and Manurangsi 2022 (chords); Rogers, Roth, Ullman and Vadhan 2016 (on the way); Dwork and
              Roth 2014, theorem 3.16; McSherry 2009, theorem 4
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels import Channel
from deniable.errors import ChannelError, DeniableError, NumberError
from deniable.protocols.law import ANY, STREAM, Guarantee
from deniable.protocols.protocol import Protocol

Floats = NDArray[np.float64]

SEQUENTIAL, PARALLEL, GROUP, LONGITUDINAL = HOW = ("sequential", "parallel", "group", "longitudinal")

_MOST_CELLS = 1 << 14
"""The largest channel whose law is listed: pairs of inputs times reports."""
_MOST_STEPS = 128
_GRID = 4096
_NO_GAIN = Fraction(99, 100)
_BITS = 96
"""To which the grid's likelihood ratios are rounded down."""
_PAD = 1e-12
"""More than the rounding of an exponential of a difference of losses, relative to the larger loss."""


class CannotCompose(DeniableError, TypeError):
    """Things whose levels cannot be added: unknown kinds, other relations, reports that share a state."""


# -- one release --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loss:
    """What one release reveals: its delta at every epsilon.

    Args:
        epsilon: The epsilon that is promised, at `unbounded`.
        points: Likelihood ratios in ascending order and the delta at each; between them it is linear in the ratio.
        relation: What the guarantee is about, such as any two answers.
        is_exact: Whether the curve is that of the law itself; else it is that of a worse one.
        fresh: Whether a second release is independent of the first.

    >>> coin = Loss.of_epsilon(1)
    >>> round(float(coin.delta(1)), 12), round(float(coin.delta(0)), 4)
    (0.0, 0.4621)
    """

    epsilon: Fraction
    points: tuple[tuple[Fraction, Fraction], ...]
    relation: str = ANY
    is_exact: bool = True
    fresh: bool = True

    @classmethod
    def of_epsilon(cls, epsilon: Any, delta: Any = 0, relation: str = ANY) -> Loss:
        """Any release of this epsilon, up to a probability: none is worse than randomized response."""
        level, rest = exact.as_epsilon(epsilon), exact.fraction(delta, "delta")
        if not 0 <= rest < 1:
            raise NumberError("delta is a probability below 1")
        return cls._of_ratio(level, exact.exp_ceil(level), rest, relation)

    @classmethod
    def of_protocol(cls, protocol: Protocol) -> Loss:
        """One report: by its exact law where that can be listed, else by its exact ratio."""
        promised = protocol.guarantee
        if (
            promised.relation == STREAM or protocol.law().kept.ratio != protocol.ratio
        ):  # promised of all reports together
            whole = cls._of_ratio(promised.epsilon, protocol.law().kept.ratio, promised.delta, promised.relation)
            return replace(whole, fresh=False)
        try:
            channel = protocol.channel(max_cells=_MOST_CELLS // max(1, protocol.law().input_count))
            if channel.shape[0] ** 2 * channel.shape[1] <= _MOST_CELLS:
                laws = (tuple(_mixed(channel, mix) for mix in pair) for pair in protocol.law().related())
                return cls(promised.epsilon, _curve(laws), promised.relation, fresh=protocol.traits.fresh)
        except ChannelError:
            pass
        found = cls._of_ratio(promised.epsilon, protocol.ratio, promised.delta, promised.relation)
        return replace(found, fresh=protocol.traits.fresh)

    @classmethod
    def of_channel(cls, channel: Channel) -> Loss:
        """One output of a channel, between any two inputs."""
        if isinstance(channel.ratio, float):
            raise CannotCompose("this channel can give an input away for certain: it has no finite epsilon to add")
        level, size = exact.log_ceil(channel.ratio, 10**9), channel.shape[0]
        if size**2 * channel.shape[1] > _MOST_CELLS:
            return cls._of_ratio(level, channel.ratio, Fraction(0), ANY)
        rows = [_mixed(channel, {x: Fraction(1)}) for x in range(size)]
        return cls(level, _curve((one, other) for one in rows for other in rows if one is not other))

    @classmethod
    def _of_ratio(cls, epsilon: Fraction, ratio: Fraction, delta: Fraction, relation: str) -> Loss:
        # With probability delta everything is revealed, else a coin keeps the answer `ratio` times as often as not.
        points = ((Fraction(0), Fraction(1)), (1 / ratio, 1 - (1 - delta) / ratio), (ratio, delta))
        return cls(epsilon, points, relation, is_exact=False)

    @property
    def ratio(self) -> Fraction:
        """The largest likelihood ratio, up to the probability `unbounded`."""
        return self.points[-1][0]

    @property
    def unbounded(self) -> Fraction:
        """The probability of what no ratio bounds."""
        return self.points[-1][1]

    def at(self, ratio: Fraction) -> Fraction:
        """The delta at e^epsilon = ratio."""
        place = bisect_left(self.points, ratio, key=lambda point: point[0])
        if place == len(self.points):
            return self.unbounded
        right, top = self.points[place]
        if right == ratio:
            return top
        left, bottom = self.points[place - 1]
        return bottom + (top - bottom) * (ratio - left) / (right - left)

    def delta(self, epsilon: Any) -> Fraction:
        """The delta at an epsilon, never rounded down."""
        return self.at(exact.exp_floor(exact.fraction(epsilon, "epsilon")))

    def masses(self, step: Fraction) -> tuple[int, list[Fraction]]:
        """The worse of the dominating laws on the grid of losses: the first place, and the probability at each.

        The place k stands for the loss k * step. The likelihood ratio at it is a fraction just below e^(k * step).
        """
        first, last = (math.floor(Fraction(exact.log(ratio)) / step) - 1 for ratio in (self.points[1][0], self.ratio))
        while exact.exp_floor(last * step, _BITS) < self.ratio:  # no loss lies beyond the last place
            last += 1
        xs = [Fraction(0), *(exact.exp_floor(place * step, _BITS) for place in range(first, last + 1))]
        ys = [self.at(ratio) for ratio in xs]
        chords = [(ys[k + 1] - ys[k]) / (xs[k + 1] - xs[k]) for k in range(len(xs) - 1)] + [Fraction(0)]
        return first, [xs[k] * (chords[k] - chords[k - 1]) for k in range(1, len(xs))]


def _mixed(channel: Channel, mixture: Any) -> tuple[int, ...]:
    """The law of an input that is a mixture of rows, as integers over a denominator that all inputs share."""
    scale = math.lcm(*(weight.denominator for weight in mixture.values()))
    rows = [int(weight * scale) * channel.numerators[row] for row, weight in mixture.items()]
    return tuple(int(each) for each in reduce(np.add, rows))


def _curve(pairs: Iterable[Sequence[tuple[int, ...]]]) -> tuple[tuple[Fraction, Fraction], ...]:
    """The largest delta over pairs of laws, at every ratio at which one of them bends."""
    atoms: set[frozenset[tuple[Fraction | None, Fraction]]] = set()
    for one, other in pairs:
        above, below = sum(one), sum(other)
        likely: dict[Fraction | None, Fraction] = {}
        for p, q in zip(one, other, strict=True):
            if p:
                ratio = Fraction(p * below, q * above) if q else None
                likely[ratio] = likely.get(ratio, Fraction(0)) + Fraction(p, above)
        atoms.add(frozenset(likely.items()))
    bends = sorted({ratio for law in atoms for ratio, _ in law if ratio is not None} | {Fraction(1)})

    def height(at: Fraction) -> Fraction:
        return max(
            sum((p if r is None else p * (1 - at / r) for r, p in law if r is None or r > at), Fraction(0))
            for law in atoms
        )

    return (Fraction(0), Fraction(1)), *((ratio, height(ratio)) for ratio in bends)


# -- several releases ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Composition:
    """What several releases tell together.

    Args:
        relation: What the guarantee is about, such as any two answers.
        options: The alternatives; each is a list of losses and how often they occur. Parallel releases have several.
        adaptive: Whether the list of releases is chosen on the way.

    Raises:
        CannotCompose: A release that shares a kept state occurs more than once.

    >>> year = compose(Loss.of_epsilon("0.1"), times=365)
    >>> year.epsilon, round(year.epsilon_at(1e-6), 4)
    (Fraction(73, 2), 10.3139)
    >>> compose("0.1", times=3) == 3 * compose("0.1") == compose("0.1") + 2 * compose("0.1")
    True
    """

    relation: str
    options: tuple[tuple[tuple[Loss, int], ...], ...]
    adaptive: bool = False

    def __post_init__(self) -> None:
        if any(times > 1 and not loss.fresh for parts in self.options for loss, times in parts):
            raise CannotCompose(
                "reports of one device that share a kept state are not independent: their levels must not be added as "
                'if they were; for its epochs give compose(protocol, times=epochs, how="longitudinal"), and compose '
                "what that gives for several questions"
            )

    @property
    def epsilon(self) -> Fraction:
        """The sum of the epsilons: what a ledger debits."""
        return max(sum((times * loss.epsilon for loss, times in parts), Fraction(0)) for parts in self.options)

    @property
    def unbounded(self) -> Fraction:
        """The probability up to which `epsilon` holds: zero, but for releases with a delta of their own."""
        whole = max(sum((times * loss.unbounded for loss, times in parts), Fraction(0)) for parts in self.options)
        return min(whole, Fraction(1))

    @property
    def ratio(self) -> Fraction:
        """The exact likelihood ratio of all of them together, or a bound where a law could not be listed."""
        products = (
            math.prod((loss.ratio**times for loss, times in parts), start=Fraction(1)) for parts in self.options
        )
        return max(products)

    @property
    def realized_epsilon(self) -> float:
        """The epsilon of the exact laws: never above `epsilon`."""
        return exact.log(self.ratio)

    @property
    def releases(self) -> int:
        return max(sum(times for _, times in parts) for parts in self.options)

    def delta(self, epsilon: Any) -> float:
        """The delta at a smaller epsilon, never too small."""
        level = exact.fraction(epsilon, "epsilon")
        if level < 0:
            raise NumberError("delta is asked for at an epsilon of 0 or more")
        if exact.exp_at_least(level, self.ratio):
            return _up(self.unbounded)
        self._refuse_adaptive()
        return max(_delta(parts, grid, level) for parts, grid in zip(self.options, self._grids, strict=True))

    def epsilon_at(self, delta: Any) -> float:
        """The smallest epsilon that holds up to this probability, never too small, to about nine digits.

        Raises NumberError for a delta that the releases cannot keep.
        """
        most = exact.fraction(delta, "delta")
        if most < self.unbounded:
            raise NumberError(f"these releases have a delta of {float(self.unbounded):.3g} of their own, which is more")
        low, high = 0.0, _up(self.epsilon)
        if not most or self.releases == 0:
            return high
        self._refuse_adaptive()
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if Fraction(self.delta(middle)) <= most else (middle, high)
        return high

    def words(self, delta: Any = Fraction(1, 10**6)) -> str:
        """For people.

        >>> compose("0.5", times=10).words().replace("\N{NO-BREAK SPACE}", " ")
        '10 releases: epsilon 5 in all. Up to a probability of 1e-06 it is 4.9999: nothing is gained by a delta.'
        """
        number = self.releases
        head = f"{number} release{'' if number == 1 else 's'}: epsilon {exact.epsilon_text(self.epsilon)} in all"
        if self.unbounded:
            head += f", up to a probability of {float(self.unbounded):.3g}"
        most = exact.fraction(delta, "delta")
        if self.adaptive or most <= self.unbounded:
            return f"{head}."
        found = exact.fraction(self.epsilon_at(most))
        shown = f"{math.ceil(found * 10_000) / 10_000:g}"
        if found > _NO_GAIN * self.epsilon:
            return f"{head}. Up to a probability of {float(most):.3g} it is {shown}: nothing is gained by a delta."
        return f"{head}. Up to a probability of {float(most):.3g} it is {shown}."

    def __add__(self, other: Composition) -> Composition:
        if not isinstance(other, Composition):
            return NotImplemented
        if not self.releases or not other.releases:
            return self if self.releases else other
        if self.relation != other.relation:
            raise CannotCompose(
                f"one level holds between inputs of the relation {self.relation!r} and the other of "
                f"{other.relation!r}: they are about different secrets, so their sum means nothing"
            )
        options = (_merged((*mine, *theirs)) for mine in self.options for theirs in other.options)
        return Composition(self.relation, tuple(dict.fromkeys(options)), self.adaptive or other.adaptive)

    def __mul__(self, times: int) -> Composition:
        if isinstance(times, bool) or not isinstance(times, int) or times < 0:
            raise NumberError(f"releases are repeated a whole number of times, not {times!r}")
        if len(self.options) > 1 and times > 1:
            raise CannotCompose(
                "a person may be in another of these parallel collections each time: compose the rounds of each first, "
                "then the collections in parallel"
            )
        parts = tuple((loss, times * number) for loss, number in self.options[0]) if times else ()
        return self if times == 1 else replace(self, options=(parts,))

    __rmul__ = __mul__

    @property
    def apart(self) -> Composition:
        """The same of another person, whose kept states are others."""
        return replace(
            self, options=tuple(_merged((replace(a, fresh=True), n) for a, n in each) for each in self.options)
        )

    @cached_property
    def _grids(self) -> list[_Grid | None]:
        return [_Grid.of(parts) if sum(times for _, times in parts) > 1 else None for parts in self.options]

    def _refuse_adaptive(self) -> None:
        if self.adaptive:
            raise CannotCompose(
                "the list of releases is made on the way, so only the sum of their epsilons holds: fix the list "
                "beforehand (any order will do), or leave delta at 0"
            )


def compose(
    *releases: Any,
    times: int = 1,
    how: str = SEQUENTIAL,
    values: int | None = None,
    adaptive: bool = False,
) -> Composition:
    """What these releases reveal together.

    Args:
        *releases: Protocols, channels, epsilons, or earlier compositions.
        times: How often each release is made: by one person, by this many people of a group, or in this many epochs.
        how: "sequential" (about one person), "parallel" (each person is in at most one), "group" (`times` people, each
            with their own releases) or "longitudinal" (one device over `times` epochs).
        values: For "longitudinal": the maximum number of different answers that a device keeps.
        adaptive: Whether the list of releases is chosen on the way; the order never matters.

    Returns:
        The composition, with its epsilon and its delta at every epsilon.

    Raises:
        CannotCompose: A kind is unknown, the relations differ, or reports share a kept state.

    >>> from deniable.protocols import GRR, LGRR
    >>> coin = GRR(["yes", "no"], epsilon="0.1")
    >>> compose(coin, times=100).words()
    '100 releases: epsilon 10 in all. Up to a probability of 1e-06 it is 4.7746.'
    >>> compose(LGRR(["yes", "no"], first="0.5", forever=1), times=365, how="longitudinal", values=1).epsilon
    Fraction(1, 1)
    """
    if how not in HOW:
        raise CannotCompose(f"releases are composed {', '.join(HOW[:-1])} or {HOW[-1]}, not {how!r}")
    if values is not None and how != LONGITUDINAL:
        raise CannotCompose(
            '`values` says how many answers a device keeps over the epochs: it goes with "longitudinal"'
        )
    if how == LONGITUDINAL:
        each = [_over_epochs(release, times, values) for release in releases]
    else:
        each = [_composition(release) for release in releases]
        each = [times * (one.apart if how == GROUP else one) for one in each]
    nothing = Composition(ANY, ((),), adaptive)
    if how == PARALLEL and each:
        if len({one.relation for one in each}) > 1:
            raise CannotCompose("collections of different relations protect different secrets: none is the larger")
        options = dict.fromkeys(parts for one in each for parts in one.options)
        return Composition(each[0].relation, tuple(options), adaptive)
    return replace(sum(each, nothing), adaptive=adaptive or any(one.adaptive for one in each))


def _composition(release: Any) -> Composition:
    """One release, as a composition of one."""
    match release:
        case Composition():
            return release
        case Protocol():
            loss = Loss.of_protocol(release)
        case Channel():
            loss = Loss.of_channel(release)
        case Loss():
            loss = release
        case Guarantee(relation, epsilon, delta):
            loss = Loss.of_epsilon(epsilon, delta, relation)
        case _:
            try:
                loss = Loss.of_epsilon(release)
            except DeniableError as wrong:
                raise CannotCompose(
                    f"the privacy loss of a {type(release).__name__} is not known here ({wrong}): give protocols, "
                    "channels, epsilons, or what compose(...) gave"
                ) from None
    return Composition(loss.relation, (((loss, 1),),))


def _over_epochs(release: Any, epochs: int, values: int | None) -> Composition:
    """The reports of one device over the epochs."""
    if not isinstance(release, Protocol):
        raise CannotCompose(f"a {type(release).__name__} has no epochs: give the protocol that a device reports by")
    one = _composition(release)
    if release.traits.fresh and values is None:
        return epochs * one
    exact.whole(epochs, "the number of epochs")
    level = release.law().kept.lifetime(epochs, values)
    if level is None:
        raise CannotCompose(
            "equal and unequal reports show when an answer changed and which one came back, so no epsilon holds over "
            "the epochs: keep one value, or use a protocol in two stages"
        )
    if level == release.epsilon:
        return one.apart
    # Whatever holds for the whole stream holds as for one release of that level, which may lie above any allowed one.
    whole = Loss._of_ratio(level, exact.exp_ceil(level), Fraction(0), release.guarantee.relation)
    return Composition(whole.relation, (((whole, 1),),))


def _merged(parts: Iterable[tuple[Loss, int]]) -> tuple[tuple[Loss, int], ...]:
    """Equal losses together, in an order of their own: compositions of the same releases are equal."""
    total: Counter[Loss] = Counter()
    for loss, times in parts:
        total[loss] += times
    return tuple(sorted(total.items(), key=lambda part: (part[0].epsilon, part[0].points, part[0].is_exact)))


# -- probabilities on a grid, rounded up --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Grid:
    """Probabilities of summed losses, each at least the true one."""

    step: Fraction
    first: int
    likely: Floats

    @classmethod
    def of(cls, parts: Sequence[tuple[Loss, int]]) -> _Grid:
        step = _step(parts)
        whole = _Grid(step, 0, np.ones(1))
        for loss, times in parts:
            first, masses = loss.masses(step)
            whole = whole * _Grid(step, first, np.array([_up(mass) for mass in masses])) ** times
        return whole

    def __mul__(self, other: _Grid) -> _Grid:
        likely = np.convolve(self.likely, other.likely)
        # A sum of k products of numbers that are not negative is off by a factor of k + 1 roundings at most, in
        # whatever order it is added up; what is too small for a float is covered by the constant.
        terms = min(self.likely.size, other.likely.size) + 4
        return _Grid(self.step, self.first + other.first, likely * (1 + terms * 2.0**-52) + 1e-300)

    def __pow__(self, times: int) -> _Grid:
        power, whole = self, _Grid(self.step, 0, np.ones(1))
        for bit in bin(times)[:1:-1]:
            whole = whole * power if bit == "1" else whole
            power = power * power if times > 1 else power
            times >>= 1
        return whole

    def excess(self, epsilon: Fraction) -> float:
        """The sum of probability times 1 - e^(epsilon - loss), over larger losses, rounded up."""
        places = self.first + np.arange(self.likely.size)
        gap = places * float(self.step) - float(epsilon)
        slack = _PAD * (1 + float(epsilon) + abs(places).max() * float(self.step))
        weight = np.clip(-np.expm1(np.minimum(-gap, 1.0)) + slack, 0.0, 1.0)  # zero from there on, without overflow
        found = float(np.dot(self.likely, weight))
        return min(1.0, found * (1 + (self.likely.size + 4) * 2.0**-52) + 1e-300)


def _step(parts: Sequence[tuple[Loss, int]]) -> Fraction:
    """The distance of the grid's points: all losses on it where that can be, else fine enough to lose little."""
    tops = {loss.ratio for loss, _ in parts}
    number = sum(times for _, times in parts)
    if len(tops) == 1:
        (top,) = tops
        plain = all({ratio for ratio, _ in loss.points[1:]} <= {1 / top, Fraction(1), top} for loss, _ in parts)
        widest = max(exact.log_ceil(top, 10**15), Fraction(1, 10**15))
        return widest if plain else widest / max(4, min(_MOST_STEPS, _GRID // number))
    whole = math.prod((loss.ratio**times for loss, times in parts), start=Fraction(1))
    return max(exact.log_ceil(whole, 10**6) / _GRID, Fraction(1, 10**9))


def _delta(parts: Sequence[tuple[Loss, int]], grid: _Grid | None, epsilon: Fraction) -> float:
    if not parts:
        return 0.0
    if grid is None:
        return _up(parts[0][0].delta(epsilon))
    return min(1.0, grid.excess(epsilon) + _up(sum((times * loss.unbounded for loss, times in parts), Fraction(0))))


def _up(value: Fraction) -> float:
    """A float that is not below."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


# -- accounting ---------------------------------------------------------------------------------------


class OverBudget(DeniableError, ValueError):
    """Something that costs more than is left."""


def sequential(levels: Iterable[Any]) -> Fraction:
    """The level of all these releases about one person.

    Args:
        levels: The epsilon of each release.

    Returns:
        The sum.

    >>> sequential(["0.1"] * 10)
    Fraction(1, 1)
    """
    return sum(map(_level, levels), Fraction(0))


def parallel(levels: Iterable[Any]) -> Fraction:
    """The level of these releases when nobody's data is in two of them.

    Args:
        levels: The epsilon of each release.

    Returns:
        The largest epsilon.

    >>> parallel([1, "1/2"])
    Fraction(1, 1)
    """
    return max(map(_level, levels), default=Fraction(0))


def ratios(factors: Iterable[Any]) -> Fraction:
    """The likelihood ratio of all these releases about one person.

    Args:
        factors: The likelihood ratio of each release, at least 1.

    Returns:
        The product.

    Raises:
        NumberError: A ratio is below 1.

    >>> ratios([3, "3/2"])
    Fraction(9, 2)
    """
    exactly = [exact.fraction(factor, "a likelihood ratio") for factor in factors]
    if any(factor < 1 for factor in exactly):
        raise NumberError("a likelihood ratio is at least 1: give the larger probability over the smaller")
    return math.prod(exactly, start=Fraction(1))


@dataclass(frozen=True)
class Account:
    """A lifetime cap and what is spent of it. Spending gives a new account, so a refused release changes nothing.

    Args:
        cap: Lifetime epsilon.
        spent: What is spent of it.

    >>> account = Account(cap="1").spend("0.4").spend("0.6")
    >>> account.left, account.allows("0.0001")
    (Fraction(0, 1), False)
    """

    cap: Fraction
    spent: Fraction = Fraction(0)

    def __init__(self, cap: Any, spent: Any = 0) -> None:
        object.__setattr__(self, "cap", _level(cap))
        object.__setattr__(self, "spent", _level(spent))

    @property
    def left(self) -> Fraction:
        """What may still be spent; zero where more was spent under an earlier, larger cap."""
        return max(self.cap - self.spent, Fraction(0))

    def allows(self, level: Any) -> bool:
        """Whether this much is left. What costs nothing is always allowed."""
        cost = _level(level)
        return cost == 0 or self.spent + cost <= self.cap

    def spend(self, level: Any) -> Account:
        """The account after this release, or a refusal that says what is left."""
        if not self.allows(level):
            raise OverBudget(
                f"this costs epsilon {exact.canonical(_level(level))} and {exact.canonical(self.left)} is left "
                f"of {exact.canonical(self.cap)}"
            )
        return Account(self.cap, self.spent + _level(level))


def _level(value: Any) -> Fraction:
    level = exact.fraction(value, "a privacy level")
    if level < 0:
        raise NumberError(f"a privacy level is not negative, and {exact.shown(level)} is")
    return level

"""What all profile mechanisms share: one channel per profile, in integers over 2^64, designed and verified.

Law        a value x of a person with profile i becomes y with probability table[i, x, y] / 2^64
Privacy    `epsilon` is the exact largest log-ratio over the graph's edges, never above what was asked for
Device     one 64-bit word w per value; the output is the number of running sums of the row that are <= w
Collected  as a `ProfileTable`, the protocol of a question: reports, tally, estimates and spec are its own. A design is
           stored with its integers, never computed again

Designs come from sparse linear programs, solved by HiGHS. Nothing that a solver returns is trusted: its floats are a
proposal, which becomes integers over 2^64 that hold their epsilon exactly.

1. entries are cut to [0, 1], rows divided by their sums and rounded to multiples of 2^-64;
2. every channel of the part is mixed with the uniform one, under which all profiles look the same, by the smallest
   share that leaves room for rounding in every constraint that needs it;
3. the result is verified with integers.

Rounding moves an output's probability by less than d 2^-64, so the room needed is (1 + e^epsilon) d 2^-64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels import Channel
from deniable.domains.records import RecordColumns
from deniable.errors import DeniableError, DomainError, InternalError, ShapeError, SpecError
from deniable.exact import WORD
from deniable.protocols.profiles.graph import (
    Floats,
    Integers,
    Part,
    Positions,
    ProfileGraph,
    Verdict,
    output_laws,
    worst,
)
from deniable.protocols.profiles.table import ProfileTable
from deniable.protocols.reports import Bytes, Reports, from_bytes, to_bytes
from deniable.protocols.tally import Tally
from deniable.randomness import Bits, source_of
from deniable.results import Estimate
from deniable.trace import Progress, Step, Watch, highs, summary

# Ten times the usual time for the number of coefficients, so that only a solver that cycles is stopped.
_SECONDS, _SECONDS_A_COEFFICIENT = 2.0, 1 / 500


class SolverError(DeniableError, RuntimeError):
    """A linear program that the solver could not finish."""


class Constraints:
    """Constraints in the making: rows of (column, coefficient) triplets with a bound each."""

    def __init__(self) -> None:
        self._places: list[tuple[Any, Any, Any]] = []
        self._bounds: list[Floats] = []
        self.count = 0

    def add(self, columns: list[Any], coefficients: list[Any], bounds: Any) -> None:
        """As many rows as there are bounds; columns[i] and coefficients[i] are arrays over these rows, or numbers."""
        limit = np.atleast_1d(np.asarray(bounds, dtype=np.float64))
        rows = self.count + np.arange(limit.size)
        for column, coefficient in zip(columns, coefficients, strict=True):
            where, weight = np.broadcast_to(column, rows.shape), np.broadcast_to(coefficient, rows.shape)
            self._places.append((rows, where, weight))
        self._bounds.append(limit)
        self.count += limit.size

    def copy(self) -> Constraints:
        other = Constraints()
        other._places, other._bounds, other.count = list(self._places), list(self._bounds), self.count
        return other

    def matrix(self, width: int) -> tuple[Any, Floats]:
        from scipy.sparse import csr_array

        if not self.count:
            return csr_array((0, width)), np.empty(0)
        rows, columns, weights = (np.concatenate(part) for part in zip(*self._places, strict=True))
        return csr_array((weights, (rows, columns)), shape=(self.count, width)), np.concatenate(self._bounds)


def minimize(
    cost: Floats, at_most: Constraints, equal: Constraints | None, upper: Floats, what: str, watch: Watch | None = None
) -> Floats:
    """min cost x  subject to  at_most rows, equal rows, 0 <= x <= upper."""
    left, right = at_most.matrix(cost.size)
    same, target = (equal or Constraints()).matrix(cost.size)
    limits = np.column_stack([np.zeros(cost.size), upper])
    tolerances = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    patience = {"time_limit": _SECONDS + _SECONDS_A_COEFFICIENT * (left.nnz + same.nnz)}
    # Tight tolerances can make the simplex method cycle on near-ties: then the interior-point method has its turn.
    for method, options in (("highs", tolerances), ("highs-ipm", {}), ("highs-ds", {})):
        seen = watch or Watch()
        found = highs(cost, (left, right), (same, target), limits, method, options | patience, seen, what)
        if found.status == 0:
            seen.worth(float(found.fun))
            solution: Floats = np.asarray(found.x)
            return solution
    raise SolverError(
        f"the solver did not finish the program of {what} ({found.message.strip()}): "
        "try a larger epsilon, profiles rounded to fewer digits, or randomized response (KaryResponse)"
    )


# -- from a solver's floats to integers that hold their epsilon exactly -------------------------------


# The share of the uniform channel is a multiple of 2^-80: fine enough to cost nothing that 2^-64 would show.
_SHARE_BITS = 80


def holds(part: Part, table: Integers, epsilon: Fraction) -> bool:
    """Whether channels (k, d, m) over one denominator keep epsilon on every edge: no ratio above e^epsilon.

    Decided against a rational just below e^epsilon, so "yes" is certain.
    """
    return not bool((_excess(part, table, exact.exp_floor(epsilon)) > 0).any())


def _excess(part: Part, table: Integers, odds: Fraction) -> Integers:
    """law_i - odds law_j for both directions of each edge, times a positive integer."""
    laws = output_laws(part, table)
    i, j = part.edges[:, 0], part.edges[:, 1]
    first = laws[i] * part.denominators[j][:, None]
    second = laws[j] * part.denominators[i][:, None]
    top, bottom = odds.numerator, odds.denominator
    return np.concatenate([first * bottom - second * top, second * bottom - first * top])


def round_rows(draft: Floats) -> Integers:
    """Floats to rows of integers that sum to 2^64; what rounding leaves goes to the row's largest entry."""
    cut = np.clip(draft, 0.0, 1.0)
    cut = cut / cut.sum(axis=-1, keepdims=True)
    flat = cut.reshape(-1, cut.shape[-1])
    table = np.empty(flat.shape, dtype=object)
    # A float in [0, 1] times 2^64 is a whole number or has its fraction in the float: nothing is lost before the floor.
    table[:] = [[math.floor(math.ldexp(entry, 64)) for entry in row] for row in flat.tolist()]
    return _settled(table, flat.argmax(axis=1)).reshape(draft.shape)


def _settled(rows: Integers, largest: NDArray[np.intp]) -> Integers:
    rows[np.arange(len(rows)), largest] += WORD - rows.sum(axis=1)
    return rows


def repaired(part: Part, draft: Floats, epsilon: Fraction) -> Integers:
    """Channels of floats (k, d, d) made exact, by as little mixing as it takes."""
    table = round_rows(draft)
    if holds(part, table, epsilon):
        return table
    share = _share(part, table, exact.exp_floor(epsilon))
    mixed = _mix(table, share)
    if not holds(part, mixed, epsilon):
        raise InternalError("the repaired channels do not hold their epsilon")
    return mixed


def _share(part: Part, table: Integers, odds: Fraction) -> Fraction:
    """The least share of the uniform channel with which every constraint holds with room for rounding."""
    width = table.shape[2]
    excess = _excess(part, table, odds)
    i, j = part.edges[:, 0], part.edges[:, 1]
    scale = np.concatenate([part.denominators[i] * part.denominators[j]] * 2) * (WORD * odds.denominator)
    slack = (odds - 1) / width
    room = (1 + odds) * width / WORD
    twins = _twins(part, table)
    near = excess > -np.floor_divide(scale * room.numerator, room.denominator)[:, None]
    near[np.concatenate([twins, twins])] = False
    best = Fraction(0)
    for row, y in np.argwhere(near).tolist():
        lack = Fraction(int(excess[row, y]), int(scale[row]))
        need = (lack + room) / (lack + slack)
        best = max(best, need)
    if best >= 1:
        raise InternalError("rounding to 2^-64 leaves no room between these profiles")
    return Fraction(math.ceil(best * (1 << _SHARE_BITS)), 1 << _SHARE_BITS)


def _twins(part: Part, table: Integers) -> NDArray[np.bool_]:
    """Edges between equal profiles with equal channels: they stay equal, whatever is mixed in."""
    i, j = part.edges[:, 0], part.edges[:, 1]
    same = (table[i] == table[j]).all(axis=(1, 2))
    same &= (part.numerators[i] == part.numerators[j]).all(axis=1)
    same &= part.denominators[i] == part.denominators[j]
    return np.asarray(same, dtype=np.bool_)


def _mix(table: Integers, share: Fraction) -> Integers:
    width = table.shape[2]
    bottom = share.denominator * width
    flat = table.reshape(-1, width)
    largest = flat.astype(np.float64).argmax(axis=1)
    tops = flat * ((share.denominator - share.numerator) * width) + WORD * share.numerator
    return _settled(tops // bottom, largest).reshape(table.shape)


Design = Callable[[Part, Watch], Integers]

MECHANISMS: dict[str, type[ProfileMechanism]] = {}
"""Every design by its name: registered by being defined."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ProfileMechanism:
    """A channel for each profile of a graph. Immutable."""

    graph: ProfileGraph
    asked: Fraction
    """The epsilon that was asked for; `epsilon` is what holds, never more."""
    table: Integers
    """Numerators over 2^64, shape (profiles, values, values)."""
    trace: tuple[Step, ...] = ()
    """What the solver did to find the table; empty where none was needed, and after loading."""

    name: ClassVar[str] = "table"
    table_kind: ClassVar[type[ProfileTable]] = ProfileTable
    """What `Table(mechanism)` makes."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "name" in cls.__dict__:
            MECHANISMS[cls.name] = cls

    @classmethod
    def of(cls, table: ProfileTable) -> ProfileMechanism:
        """The mechanism of a loaded table; raises SpecError where its design is not known here.

        >>> from deniable.protocols.profiles import OneBitCluster
        >>> mechanism = OneBitCluster(ProfileGraph.chain([0.2, 0.7]), epsilon=1)
        >>> ProfileMechanism.of(mechanism.protocol) == mechanism
        True
        """
        if not isinstance(table, ProfileTable):
            raise SpecError(f"this is no table of a profile mechanism, but a {type(table).__name__}")
        if table.mechanism not in MECHANISMS:
            known = ", ".join(sorted(MECHANISMS))
            raise SpecError(f"there is no profile mechanism {table.mechanism!r}; there are {known}")
        return MECHANISMS[table.mechanism]._stored(table.graph, table.epsilon, table.table)

    def _set(self, graph: ProfileGraph, epsilon: Fraction, table: Integers, trace: tuple[Step, ...] = ()) -> None:
        if not isinstance(graph, ProfileGraph):
            raise ShapeError(f"a profile mechanism needs a ProfileGraph, not a {type(graph).__name__}")
        table.flags.writeable = False
        for name, value in (("graph", graph), ("asked", epsilon), ("table", table), ("trace", trace)):
            object.__setattr__(self, name, value)

    def _design(self, graph: ProfileGraph, epsilon: Any, design: Design, progress: Progress | None = None) -> None:
        """Fill in the channels, one connected component at a time, and check the whole."""
        level = exact.as_epsilon(epsilon)
        if not isinstance(graph, ProfileGraph):
            raise ShapeError(f"a profile mechanism needs a ProfileGraph, not a {type(graph).__name__}")
        width = graph.whole.width
        table = np.empty((graph.size, width, width), dtype=object)
        watch, count = Watch(progress), len(graph.parts)
        for done, part in enumerate(graph.parts):
            if count > 1:
                watch.say(f"component {done + 1:,} of {count:,}", done / count)
            table[part.members] = identity(part) if not len(part.edges) else design(part, watch)
        watch.say("checking every edge with integers")
        self._set(graph, level, table, tuple(watch.steps))
        if not self.verdict:
            raise InternalError(f"{self.name} does not hold its epsilon: nothing is returned rather than a false claim")

    @classmethod
    def _stored(cls, graph: ProfileGraph, epsilon: Fraction, table: Integers) -> Self:
        made = cls.__new__(cls)
        made._set(graph, epsilon, table)
        if not made.verdict:
            raise SpecError(
                f"the stored channels do not hold epsilon {exact.shown(epsilon)}: "
                f"the profiles {made.verdict.edge!r} are distinguished by a ratio of {_shown(made.verdict.ratio)}"
            )
        return made

    # -- what it promises --------------------------------------------------------------------------

    @cached_property
    def verdict(self) -> Verdict:
        """The exact check of every edge and output."""
        ratio, (i, j), y = worst(self._laws, self._bottoms, self.graph.whole.edges)
        kept = not isinstance(ratio, float) and exact.exp_at_least(self.asked, ratio)
        return Verdict(kept, ratio, (self.graph.labels[i], self.graph.labels[j]), self.graph.values[y])

    @property
    def ratio(self) -> Fraction | float:
        """The exact largest ratio of an output's probabilities under two joined profiles."""
        return self.verdict.ratio

    @property
    def epsilon(self) -> float:
        """The epsilon over the graph's edges: ln of `ratio`."""
        return self.verdict.epsilon

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """One exact channel per profile, in the graph's order."""
        values = self.graph.values
        return tuple(Channel.from_integers(rows, WORD, values, values) for rows in self.table)

    def channel(self, profile: Any) -> Channel:
        values = self.graph.values
        return Channel.from_integers(self.table[self.graph.position(profile)], WORD, values, values)

    @property
    def laws(self) -> Floats:
        """Float view: row i is the distribution of outputs of profile i, P_i A^i."""
        return self.protocol.released

    @cached_property
    def _laws(self) -> Integers:
        return output_laws(self.graph.whole, self.table)

    @cached_property
    def _bottoms(self) -> Integers:
        bottoms: Integers = self.graph.whole.denominators * WORD
        return bottoms

    @property
    def in_the_clear(self) -> tuple[Any, ...]:
        """The profiles whose data are reported as they are: the graph asks for no noise there."""
        clear = (self.table == identity(self.graph.whole)).all(axis=(1, 2))
        return tuple(self.graph.labels[i] for i in np.flatnonzero(clear))

    @property
    def largest(self) -> Fraction:
        """The largest probability of a false report, over profiles and pairs of values."""
        return Fraction(int(off_diagonal(self.table).max()), WORD)

    @property
    def costs(self) -> Floats:
        """For each value y the largest |P_i(y) - (P_i A^i)(y)| over profiles: equation (8) of the paper."""
        moved: Floats = np.abs(self.graph.profiles - self.laws).max(axis=0)
        return moved

    # -- the device --------------------------------------------------------------------------------

    def privatize(self, values: Any, profiles: Any, bits: Bits | None = None) -> Any:
        """Randomize one value, or a column of values; `profiles` is one profile for all, or one for each value."""
        single = np.ndim(values) == 0
        outputs = self._draw(values, profiles, bits)
        labels = np.array(self.graph.values) if _plain(self.graph.values) else _objects(self.graph.values)
        found = labels[outputs]
        return found[0].item() if single and isinstance(found[0], np.generic) else found[0] if single else found

    def report(self, values: Any, profiles: Any, bits: Bits | None = None) -> Reports:
        """`privatize`, packed into reports that carry this mechanism's fingerprint."""
        outputs = self._draw(values, profiles, bits)
        return Reports(self.fingerprint, to_bytes(outputs, self.protocol.report_bytes))

    def _draw(self, values: Any, profiles: Any, bits: Bits | None) -> Positions:
        if isinstance(values, np.ndarray) and values.dtype == np.bool_ and self.graph.values == (0, 1):
            values = values.astype(np.int64)
        x = self.graph.domain.index(values)
        try:
            i = self.graph.names.index(profiles)
        except DomainError as wrong:
            raise DomainError(f"among the profiles, {wrong}") from None
        if i.size not in (1, x.size):
            raise ShapeError(f"there are {i.size} profiles for {x.size} values: give one for all, or one for each")
        given = RecordColumns((np.broadcast_to(i, x.shape), x), x.size)
        if x.size == 1:
            return from_bytes(np.frombuffer(self.protocol.draw(given[0], source_of(bits)), np.uint8)[None, :])
        return from_bytes(self.protocol.draw_many(given, source_of(bits)))

    # -- the collector -----------------------------------------------------------------------------

    @cached_property
    def protocol(self) -> ProfileTable:
        """The mechanism as the protocol of a question, whose answer is a record {profile, value}."""
        return ProfileTable(self)

    def tally(self, reports: Reports | Bytes, source: str | None = None) -> Tally:
        """How often each output came; refuses the whole batch if one report is malformed."""
        return self.protocol.tally(reports, source)

    def estimate(self, tally: Tally) -> Estimate:
        """The mix of profiles among the people who reported, unbiased, with error bars."""
        self.protocol._check_tally(tally)
        return self.protocol.mix(tally)

    def values(self, tally: Tally) -> Estimate:
        """The shares of the values among them; raises ChannelError where the outputs do not determine them."""
        self.protocol._check_tally(tally)
        return self.protocol.values(tally)

    # -- identity ----------------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        """JSON with the integers themselves: `ProfileMechanism.of(deniable.load(spec))` is this mechanism again."""
        return self.protocol.spec()

    @property
    def fingerprint(self) -> str:
        return self.protocol.fingerprint

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, ProfileMechanism) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        asked = exact.shown(self.asked)
        solved = f"; {summary(self.trace)}" if self.trace else ""
        return f"<{self.name} on {self.graph.size} profiles, epsilon {self.epsilon:.6g} (asked {asked}){solved}>"


def identity(part: Part) -> Integers:
    """Every value reported as it is."""
    table = np.zeros((part.size, part.width, part.width), dtype=object)
    table[:, np.arange(part.width), np.arange(part.width)] = WORD
    return table


def off_diagonal(table: Integers) -> Integers:
    """The probabilities of false reports, one profile a row."""
    width = table.shape[1]
    away: Integers = table[:, ~np.eye(width, dtype=np.bool_)]
    return away


def _shown(ratio: Fraction | float) -> str:
    return "infinity" if isinstance(ratio, float) else exact.shown(ratio)


def _plain(values: tuple[Any, ...]) -> bool:
    return all(type(value) is int for value in values)


def _objects(values: tuple[Any, ...]) -> NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array

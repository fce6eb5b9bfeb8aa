"""What all profile mechanisms share: one channel per profile, in integers over 2^64, designed and verified.

Law        a value x of a person with profile i becomes y with probability table[i, x, y] / 2^64
Privacy    `epsilon` is the exact largest log-ratio over the graph's edges, never above what was asked for
Device     one 64-bit word w per value; the output is the number of running sums of the row that are <= w
Collected  as a `ProfileTable`, the protocol of a question: reports, tally, estimates and spec are its own. A design is
           stored with its integers, never computed again
"""

from __future__ import annotations

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
from deniable.errors import DomainError, InternalError, ShapeError, SpecError
from deniable.exact import WORD
from deniable.protocols.profiles.graph import Floats, Integers, Part, Positions, ProfileGraph
from deniable.protocols.profiles.table import ProfileTable
from deniable.protocols.profiles.verifier import Verdict, output_laws, worst
from deniable.protocols.reports import Bytes, Reports, from_bytes, to_bytes
from deniable.protocols.tally import Tally
from deniable.randomness import Bits, source_of
from deniable.results import Estimate
from deniable.trace import Progress, Step, Watch, summary

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
                f"the profiles {made.verdict.edge!r} are told apart by a ratio of {_shown(made.verdict.ratio)}"
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
            return from_bytes(np.frombuffer(self.protocol._one(given[0], source_of(bits)), np.uint8)[None, :])
        return from_bytes(self.protocol._many(given, source_of(bits)))

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

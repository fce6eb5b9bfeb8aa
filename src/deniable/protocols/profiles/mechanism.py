"""What all profile mechanisms share: one channel a profile, in integers over 2^64, and both sides of a collection.

Law        a value x of a person with profile i becomes y with probability table[i, x, y] / 2^64
Privacy    `epsilon` is the exact largest log-ratio over the graph's edges, never above what was asked for
Device     one 64-bit word w a value; the output is the number of running sums of the row that are <= w
Report     the output's position, in as few bytes as hold it; the profile's identity stays on the device
Spec       kind "table": the graph, epsilon and the integers; a design is stored, never computed again
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
from deniable.errors import DomainError, InternalError, MismatchError, ReportError, ShapeError, SpecError
from deniable.exact import WORD
from deniable.protocols.profiles.graph import Floats, Integers, Part, Positions, ProfileGraph
from deniable.protocols.profiles.verifier import Verdict, output_laws, worst
from deniable.protocols.reports import Bytes, Reports, from_bytes, to_bytes, width_of
from deniable.protocols.tally import Tally
from deniable.randomness import Bits, Law, source_of
from deniable.results import Estimate
from deniable.specs import fingerprint, integer_text
from deniable.trace import Progress, Step, Watch, summary

Design = Callable[[Part, Watch], Integers]


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
        """One exact channel a profile, in the graph's order."""
        values = self.graph.values
        return tuple(Channel.from_integers(rows, WORD, values, values) for rows in self.table)

    def channel(self, profile: Any) -> Channel:
        values = self.graph.values
        return Channel.from_integers(self.table[self.graph.position(profile)], WORD, values, values)

    @cached_property
    def laws(self) -> Floats:
        """Float view: row i is the distribution of outputs of profile i, P_i A^i."""
        view: Floats = (self._laws / self._bottoms[:, None]).astype(np.float64)
        return view

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
        return Reports(self.fingerprint, to_bytes(outputs, self.report_bytes))

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
        if x.size == 1:
            return np.array([source_of(bits).draw(Law(self.table[i[0], x[0]]))], dtype=np.int64)
        rows = i * self.graph.whole.width + x
        words = source_of(bits).words(x.size)
        outputs = np.zeros(x.size, dtype=np.int64)
        for before, never in self._boundaries:
            # Running sums may be 2^64 itself, which a word cannot hold: w >= s is w > s - 1, unless s = 0.
            outputs += (words > before[rows]) | never[rows]
        return outputs

    @cached_property
    def _boundaries(self) -> list[tuple[NDArray[np.uint64], NDArray[np.bool_]]]:
        sums = np.cumsum(self.table.reshape(-1, self.table.shape[2]), axis=1)[:, :-1]
        steps = []
        for column in sums.T:
            empty = np.array([entry == 0 for entry in column], dtype=np.bool_)
            before = np.array([max(int(entry) - 1, 0) for entry in column], dtype=np.uint64)
            steps.append((before, empty))
        return steps

    # -- the collector -----------------------------------------------------------------------------

    @property
    def report_bytes(self) -> int:
        return width_of(self.graph.whole.width)

    @property
    def tally_size(self) -> int:
        """The number of counters in a tally: one an output."""
        return self.graph.whole.width

    def valid(self, reports: Reports | Bytes) -> NDArray[np.bool_]:
        """Which reports could have come from this mechanism; the others must not be counted."""
        return np.asarray(from_bytes(self._rows(reports)) < self.tally_size)

    def tally(self, reports: Reports | Bytes, source: str | None = None) -> Tally:
        """How often each output came; refuses the whole batch if one report is malformed."""
        rows = self._rows(reports)
        outputs = from_bytes(rows)
        bad = int((outputs >= self.tally_size).sum())
        if bad:
            raise ReportError(f"{bad} of {len(rows)} reports are malformed: nothing was counted")
        return Tally(self.fingerprint, len(rows), np.bincount(outputs, minlength=self.tally_size), source)

    def empty(self, source: str | None = None) -> Tally:
        """The tally of no reports."""
        return Tally(self.fingerprint, 0, np.zeros(self.tally_size, dtype=np.int64), source)

    def _rows(self, reports: Reports | Bytes) -> Bytes:
        if isinstance(reports, Reports) and reports.fingerprint != self.fingerprint:
            raise MismatchError(f"these reports belong to {reports.fingerprint[:16]}, not to {self.fingerprint[:16]}")
        rows = reports.array if isinstance(reports, Reports) else np.ascontiguousarray(reports, dtype=np.uint8)
        if rows.ndim != 2 or rows.shape[1] != self.report_bytes:
            raise ReportError(f"a report of this mechanism has {self.report_bytes} bytes, not {rows.shape[-1]}")
        return rows

    def estimate(self, tally: Tally) -> Estimate:
        """The mix of profiles among the people who reported, unbiased, with error bars."""
        from deniable.protocols.profiles.mix import estimate_mix

        if tally.fingerprint != self.fingerprint:
            raise MismatchError(f"this tally belongs to {tally.fingerprint[:16]}, not to {self.fingerprint[:16]}")
        return estimate_mix(self, tally)

    # -- identity ----------------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        """JSON with the integers themselves: `deniable.load(spec)` gives the mechanism again."""
        rows = [[[integer_text(int(entry)) for entry in row] for row in channel] for channel in self.table]
        head = {"kind": "table", "version": 1, "mechanism": self.name, "graph": self.graph.spec()}
        return head | {"epsilon": exact.canonical(self.asked), "table": rows}

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint("table", self.spec())

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

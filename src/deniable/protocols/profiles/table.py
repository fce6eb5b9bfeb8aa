"""A profile mechanism as a protocol: the answer is a record {profile, value}, and the profile never leaves the device.

Law        value x of a person with profile i becomes y with probability A^i[x, y], integers over 2^64
Privacy    (P_i A^i)(y) <= e^epsilon (P_j A^j)(y) for joined profiles i and j and every output y, exact: hidden is which
           of two joined profiles a value comes from. The value itself is not hidden, nor are profiles without an edge
Error      the spread of the reports' contributions to a linear read-out
Report     the output's position, ceil(log2(d) / 8) bytes for d values
Cost       one random word per report, more only on a tie; d counters
Source     Geumlek and Chaudhuri 2019, definition 2; the read-out of values is the purpose of their section 3.1

Read-out   "values"    their shares. Where all profiles share one channel, by its inverse, whatever the profiles are.
                       Else through the mix: the shares of the profiles times their laws, true as far as people's
                       values follow the published profiles
           "profiles"  the shares of the profiles, the mix: outputs of profile i follow M_i = P_i A^i, so people with
                       shares w give output shares M^T w, and w = L f with f the shares of outputs and
                       L = (M W M^T)^-1 M W, W = diag(1 / column means of M): L M^T = 1, so it is exactly unbiased. It
                       needs linearly independent M_i, so at most as many profiles as values
           What the outputs do not determine is refused with the reason, already when a question is made
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable import exact
from deniable.channels import Channel
from deniable.domains import Domain, ListedDomain, Records
from deniable.domains.records import RecordColumns
from deniable.errors import ChannelError, DeniableError, SpecError
from deniable.exact import WORD
from deniable.labels import Label, text
from deniable.protocols.law import PAIRS_NAMED, Guarantee, Law, Mixture
from deniable.protocols.profiles.graph import Floats, Integers, ProfileGraph, Verdict, output_laws, worst
from deniable.protocols.protocol import Protocol
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, to_bytes
from deniable.protocols.table import Table, epsilon_above, rank
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Traits
from deniable.protocols.worth import Worth
from deniable.randomness import Bits
from deniable.results import Estimate, Weights
from deniable.specs import integer_text, read_integer
from deniable.words import Fact

PROFILE, VALUE = "profile", "value"
"""The columns of an answer."""
READS = ("values", "profiles")

MOST_CELLS = 1 << 23

# Beyond this the error bars would be wider than any crowd, and the floats that compute them no longer correct.
_LARGEST_CONDITION = 1e7


class ToldApart(ChannelError):
    """Channels that do not hold their epsilon; `verdict` says which two profiles they tell apart, and by how much."""

    def __init__(self, verdict: Verdict, epsilon: Fraction | None) -> None:
        self.verdict = verdict
        ratio = "infinity" if isinstance(verdict.ratio, float) else exact.shown(verdict.ratio)
        stated = "" if epsilon is None else f" {exact.shown(epsilon)}"
        one, other = verdict.edge
        super().__init__(
            f"the channels do not hold epsilon{stated}: the profiles {text(one)!r} and {text(other)!r} are "
            f"distinguished by a ratio of {ratio}"
        )


@dataclass(frozen=True, init=False, repr=False)
class ProfileTable(Table):
    """A profile mechanism, asked in a survey.

    Args:
        mechanism: A `ProfileMechanism`.
        epsilon: Epsilon between joined profiles; that of the mechanism if None.
        read: What the reports are read for: "values" or "profiles".

    Raises:
        ChannelError: The mechanism reveals more than epsilon allows.

    >>> from deniable.protocols.profiles import KaryResponse
    >>> graph = ProfileGraph.chain({"early": [0.7, 0.2, 0.1], "late": [0.1, 0.2, 0.7]}, ["6", "7", "8"])
    >>> hours = ProfileTable(KaryResponse(graph, epsilon=1))
    >>> hours.guarantee.relation, hours.report_bytes
    ('profiles', 1)
    >>> reports = hours.privatize([{"profile": "early", "value": "6"}, {"profile": "late", "value": "8"}] * 20)
    >>> hours.estimate(hours.tally(reports)).labels
    ('6', '7', '8')
    """

    name: ClassVar[str] = "ProfileTable"
    traits: ClassVar[Traits] = Traits(
        takes=(Records,),
        at_epsilon=lambda protocol, factor: protocol._scaled(factor),
        waived=lambda protocol: protocol._waived(),
    )

    domain: Records  # type: ignore[assignment]
    graph: ProfileGraph = None  # type: ignore[assignment]
    mechanism: str = "table"
    read: str = "values"

    def __init__(self, mechanism: Any, epsilon: exact.Number | None = None, read: str = "values") -> None:
        graph = getattr(mechanism, "graph", None)
        if not isinstance(graph, ProfileGraph):
            raise ChannelError(f"a profile table is made of a profile mechanism, not of a {type(mechanism).__name__}")
        level = mechanism.asked if epsilon is None else exact.as_epsilon(epsilon)
        self._fill(graph, level, mechanism.table, mechanism.name, read)

    def _fill(self, graph: ProfileGraph, epsilon: Fraction | None, table: Integers, mechanism: str, read: str) -> None:
        if read not in READS:
            raise SpecError(f"a profile table is read for {' or '.join(READS)}, not for {read!r}")
        if table.size > MOST_CELLS:
            raise ChannelError(f"a table has at most {MOST_CELLS:,} cells, not {table.size:,}")
        fields = {
            "domain": Records({PROFILE: graph.names, VALUE: graph.domain}),
            "outputs": graph.values,
            "rows": tuple(tuple(int(entry) for entry in row) for channel in table for row in channel),
            "graph": graph,
            "mechanism": mechanism,
            "read": read,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        ratio = self.worst_edge.ratio
        if epsilon is None and isinstance(ratio, Fraction):
            epsilon = epsilon_above(ratio)
        if epsilon is None or isinstance(ratio, float) or not exact.exp_at_least(epsilon, ratio):
            raise ToldApart(replace(self.worst_edge, holds=False), epsilon)
        object.__setattr__(self, "epsilon", epsilon)

    def parameters(self) -> dict[str, Any]:
        graph = self.graph
        return {
            "mechanism": self.mechanism,
            "profiles": [[str(entry) for entry in graph.whole.law(i)] for i in range(graph.size)],
            "edges": graph.whole.edges.tolist(),
            "rows": [[integer_text(entry) for entry in row] for row in self.rows],
            "read": self.read,
        }

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> ProfileTable:
        match domain, parameters:
            case (
                Records(columns=((first, ListedDomain() as names), (second, ListedDomain() as values))),
                {
                    "mechanism": str(mechanism),
                    "profiles": list(laws),
                    "edges": list(edges),
                    "rows": list(rows),
                    "read": str(read),
                    **rest,
                },
            ) if (first, second) == (PROFILE, VALUE) and not rest:
                graph = _graph(names, values, laws, edges)
                table = np.empty((graph.size * values.size, values.size), dtype=object)
                try:
                    table[:] = [[read_integer(entry) for entry in row] for row in rows]
                except (TypeError, ValueError):
                    size = f"{graph.size} x {values.size} rows of {values.size}"
                    raise SpecError(f"the rows hold integers as text, {size}") from None
                if (table < 0).any() or (table.sum(axis=1) != WORD).any():
                    raise SpecError("each row of the table holds integers that are not negative and sum to 2^64")
                made = cls.__new__(cls)
                cube = table.reshape(graph.size, values.size, values.size)
                made._fill(graph, exact.as_epsilon(epsilon), cube, mechanism, read)
                return made
        raise SpecError(
            f"a profile table asks for records of {PROFILE} and {VALUE}, and has a mechanism, profiles, edges, rows "
            "and read, and nothing else"
        )

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        flip = [["3/4", "1/4"], ["1/4", "3/4"]]
        bits = ProfileGraph.chain({"a": "1/5", "b": "7/10"})
        yield cls._of(bits, [flip, flip])
        yield cls._of(bits, [flip, flip], read="profiles")
        yield cls._of(ProfileGraph.chain(["1/5", "4/5"]), [[["7/8", "1/8"], ["1/2", "1/2"]], flip])
        keep = [["3/5", "1/5", "1/5"], ["1/5", "3/5", "1/5"], ["1/5", "1/5", "3/5"]]
        jobs = {"cook": ["2/5", "3/10", "3/10"], "clerk": ["1/5", "3/10", "1/2"], "smith": ["1/10", "1/5", "7/10"]}
        yield cls._of(ProfileGraph(jobs, [("cook", "clerk")], ["low", "middle", "high"]), [keep] * 3)

    @classmethod
    def _of(cls, graph: ProfileGraph, channels: Any, read: str = "values") -> ProfileTable:
        """The table of channels, with entries rounded to integers over 2^64, and the smallest epsilon that holds."""
        shape = (graph.size, graph.whole.width, graph.whole.width)
        table = np.empty(shape, dtype=object)
        for i, x in np.ndindex(shape[:2]):
            row = [int(Fraction(entry) * WORD) for entry in channels[i][x]]
            row[row.index(max(row))] += WORD - sum(row)
            table[i, x] = row
        made = cls.__new__(cls)
        made._fill(graph, None, table, "table", read)
        return made

    def _waived(self) -> Mapping[str, str]:
        reasons = {}
        if float(self.epsilon) - self.realized_epsilon > 1e-9:
            reasons["tight"] = "the profiles are so alike that less epsilon is needed than was asked for"
        if not self._is_direct:
            reasons["unbiased"] = "unbiased over the values of a profile, not value by value: tests/profiles checks it"
        return reasons

    def _scaled(self, factor: Fraction) -> ProfileTable:
        """With more noise, twice as much of it above 1 as below: what is reported as it is has no noise to lose."""
        size = len(self.outputs)
        noise = abs(factor - 1) * (2 if factor > 1 else 1)
        channels = [[[(1 - noise) * Fraction(int(entry), WORD) + noise / size for entry in row] for row in channel]
                    for channel in self.table]  # fmt: skip
        return self._of(self.graph, channels, self.read)

    # -- the law -----------------------------------------------------------------------------------

    @property
    def pairs(self) -> str:
        """The joined profiles in words: the first few pairs, and how many more there are."""
        edges = self.graph.edges
        named = [f"{text(one)} and {text(other)}" for one, other in edges[:PAIRS_NAMED]]
        more = len(edges) - len(named)
        return "; ".join(named) + (f"; and {more:,} more {'pair' if more == 1 else 'pairs'}" if more else "")

    def _related(self) -> Iterator[tuple[Mixture, Mixture]]:
        whole = self.graph.whole
        laws = [
            {i * whole.width + x: chance for x, chance in enumerate(whole.law(i)) if chance} for i in range(whole.size)
        ]
        for i, j in whole.edges.tolist():
            yield laws[i], laws[j]
            yield laws[j], laws[i]

    @cached_property
    def table(self) -> Integers:
        """Numerators over 2^64, shape (profiles, values, outputs)."""
        cube = np.empty((len(self.rows), len(self.outputs)), dtype=object)
        cube[:] = self.rows
        return cube.reshape(self.graph.size, len(self.outputs), len(self.outputs))

    @cached_property
    def exact_released(self) -> Integers:
        """What the outputs of each profile follow, as integers over its denominator times 2^64."""
        return output_laws(self.graph.whole, self.table)

    @cached_property
    def released(self) -> Floats:
        """Float view: row i is the distribution of outputs of profile i, P_i A^i."""
        view: Floats = (self.exact_released / (self.graph.whole.denominators * WORD)[:, None]).astype(np.float64)
        return view

    @cached_property
    def worst_edge(self) -> Verdict:
        """The edge and the output that tell most, exactly; `holds` says whether any factor bounds it."""
        whole = self.graph.whole
        ratio, (i, j), y = worst(self.exact_released, whole.denominators * WORD, whole.edges)
        return Verdict(
            not isinstance(ratio, float), ratio, (self.graph.labels[i], self.graph.labels[j]), self.outputs[y]
        )

    @cached_property
    def _ratio(self) -> Fraction:
        return Fraction(self.worst_edge.ratio)

    @cached_property
    def matrix(self) -> Channel:
        """The exact channel from (profile, value), profile by profile, to outputs."""
        return Channel.from_integers(self.rows, WORD, range(len(self.rows)), list(self.outputs))

    def draw(self, value: tuple[int, int], bits: Bits) -> bytes:  # type: ignore[override]
        profile, own = value
        return super().draw(profile * len(self.outputs) + own, bits)

    def draw_many(self, values: RecordColumns, bits: Bits) -> Bytes:  # type: ignore[override]
        profiles, own = values.columns
        return to_bytes(self.matrix.sample_indices(profiles * len(self.outputs) + own, bits), self.report_bytes)

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        profile, own = encoded
        return super().story(value, profile * len(self.outputs) + own, report)

    def _inputs(self) -> Iterator[tuple[Any, Any]]:
        for i, profile in enumerate(self.graph.labels):
            for x, value in enumerate(self.outputs):
                yield (profile, value), (i, x)

    # -- the read-out ------------------------------------------------------------------------------

    def reading(self, read: str) -> ProfileTable:
        """The same law, read for something else: another protocol, with another fingerprint."""
        made = type(self).__new__(type(self))
        made._fill(self.graph, self.epsilon, self.table, self.mechanism, read)
        return made

    @property
    def labels(self) -> tuple[Label, ...]:
        """What an estimate has shares of."""
        return self.graph.labels if self.read == "profiles" else self.graph.values

    @cached_property
    def _is_direct(self) -> bool:
        """Whether values are read by the inverse of one channel that all profiles share."""
        table = self.table
        return self.read == "values" and bool((table == table[0]).all()) and rank(table[0].tolist()) == table.shape[1]

    @cached_property
    def _weights(self) -> Floats:
        """What turns shares of outputs into the shares that are read: outputs x labels. Raises ChannelError."""
        if self._is_direct:
            return np.asarray(np.linalg.inv(self.matrix.rows[: len(self.outputs)]), dtype=np.float64)
        try:
            mixed = self._mix_weights
        except ChannelError as why:
            if self.read == "profiles":
                raise
            raise ChannelError(
                "the reports do not determine the shares of the values: the profiles do not share one channel that can "
                f"be inverted, and the mix of the profiles is not determined either: {why}. OneBitCluster and "
                "KaryResponse share one channel among the profiles of a connected graph: ask each component of the "
                "graph in a question of its own"
            ) from None
        return mixed if self.read == "profiles" else mixed @ self.graph.profiles

    @cached_property
    def _unreadable(self) -> str:
        """Why nothing can be estimated from the reports; empty where it can."""
        try:
            self._weights  # noqa: B018
        except ChannelError as why:
            return str(why)
        return ""

    @property
    def is_invertible(self) -> bool:
        return not self.worth().unreadable

    @property
    def _inverse(self) -> Floats | None:
        return None if self.worth().unreadable else self._weights

    def _nothing(self) -> Estimate:
        return Estimate.nothing(self.labels, self.mechanism)

    def infer(self, tally: Tally) -> Estimate:
        if not tally.n:
            return self._nothing()
        return self.mix(tally) if self.read == "profiles" else self.values(tally)

    @cached_property
    def _mix_weights(self) -> Floats:
        """The matrix L^T that turns shares of outputs into shares of profiles. Raises ChannelError."""
        profiles, values = self.released.shape
        if profiles > values:
            raise ChannelError(
                f"{values} different outputs cannot tell the shares of {profiles} profiles: "
                f"merge profiles until there are at most {values}"
            )
        independent = rank(self.exact_released.tolist())
        if independent < profiles:
            raise ChannelError(
                f"the outputs of these {profiles} profiles mix to the same law in several ways (rank {independent}): "
                "merge profiles whose outputs are alike, or raise epsilon"
            )
        law = self.released
        if np.linalg.cond(law) > _LARGEST_CONDITION:
            raise ChannelError(
                "the outputs of these profiles are so alike that no crowd is large enough: raise epsilon"
            )
        means = law.mean(axis=0)
        scaled = law * np.divide(1.0, means, out=np.zeros_like(means), where=means > 0)
        solved: Floats = np.linalg.solve(scaled @ law.T, scaled).T
        return solved

    def mix(self, tally: Tally) -> Estimate:
        """The shares of the profiles among the people who reported, unbiased, with error bars.

        Raises ChannelError where the outputs do not determine them.
        """
        weights = self._mix_weights
        if not tally.n:
            return Estimate.nothing(self.graph.labels, self.mechanism)
        counts = tally.counts.astype(np.float64) @ weights
        people = np.clip(counts, 0.0, tally.n)
        people = people * (tally.n / people.sum())
        # For people as they are, n_i of profile i: of the contributions, sum of squares less n_i.
        variance = np.maximum((people @ self.released) @ weights**2 - people, 0.0)
        reach = Weights(weights.min(axis=0), weights.max(axis=0))
        return Estimate(self.graph.labels, tally.n, counts, variance, self.mechanism, weights=reach)

    def values(self, tally: Tally) -> Estimate:
        """The shares of the values; raises ChannelError where the outputs do not determine them."""
        if self.read == "profiles":
            return self.reading("values").values(tally)
        weights = self._weights
        if not tally.n:
            return Estimate.nothing(self.graph.values, self.mechanism)
        observed = tally.counts.astype(np.float64)
        counts = observed @ weights
        # The sum of squares of the contributions, less what they estimate. Through the mix a report says less about its
        # own value than about others of its profile: then this is not negative, and what is drawn is counted in full.
        noise = np.maximum(observed @ weights**2 - counts, 0.0)
        how = "unbiased" if self._is_direct else "through the mix of profiles"
        reach = Weights(weights.min(axis=0), weights.max(axis=0))
        return Estimate(self.graph.values, tally.n, counts, noise, self.mechanism, how, weights=reach)

    def _truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        profiles, own = self.domain.encode(answers).columns
        counts = np.bincount(profiles if self.read == "profiles" else own, people, minlength=self.worth().tests)
        shares: NDArray[np.float64] = counts / counts.sum()
        return shares

    @cached_property
    def _spread(self) -> Floats:
        """The variance of one report's contribution, given a value, or given a profile whose values are drawn."""
        weights = self._weights
        if self._is_direct:
            own = np.tile(np.eye(len(self.outputs)), (self.graph.size, 1))
            direct: Floats = self.matrix.rows @ weights**2 - own
            return direct
        meant = np.eye(self.graph.size) if self.read == "profiles" else self.graph.profiles
        spread: Floats = np.maximum(self.released @ weights**2 - meant, 0.0)
        return spread

    def variance(self, n: int, frequency: ArrayLike = 0.0, population: bool = True) -> Any:
        """In the worst case: whatever values and profiles the others have."""
        f = np.asarray(frequency, dtype=np.float64)
        spread = n * self._spread.max() + (n * f * (1 - f) if population else 0.0 * f)
        return float(spread) if spread.ndim == 0 else spread

    def _worst_variance(self, n: int, frequency: float = 0.0, population: bool = True) -> float:
        return float(self.variance(n, frequency, population))

    def __repr__(self) -> str:
        size = f"{self.graph.size} profiles on {len(self.outputs)} values"
        return f"ProfileTable({self.mechanism}, {size}, epsilon={self.epsilon}, read={self.read!r})"

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            tests=lambda: len(self.labels),
            unreadable=lambda: self._unreadable,
            truth=self._truth,
            variances=self._worst_variances,
            formula_for="the worst case",
            # How often the best guess of the profile is right, all profiles being equally likely beforehand.
            guess=lambda: float(self.released.max(axis=0).sum() / self.graph.size),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            guarantee=lambda: Guarantee(
                "profiles", self.epsilon, over=f"two joined profiles: {self.pairs}", joined=tuple(self.graph.edges)
            ),
            related=self._related,
            ratio=lambda: self._ratio,
            inputs=self._inputs,
        )


def _graph(names: ListedDomain, values: ListedDomain, laws: list[Any], edges: list[Any]) -> ProfileGraph:
    """The graph of a spec; its labels and values are those of the domain."""
    labels = list(names.labels)
    try:
        pairs = [(labels[i], labels[j]) for i, j in edges]
        graph = ProfileGraph(dict(zip(labels, laws, strict=True)), pairs, values)
    except (TypeError, ValueError, IndexError) as wrong:
        reason = (
            str(wrong) if isinstance(wrong, DeniableError) else "one law per profile, and edges are pairs of places"
        )
        raise SpecError(f"the profiles are no graph: {reason}") from None
    if graph.names != names:
        raise SpecError("the profiles of an answer are a plain list of categories")
    return graph

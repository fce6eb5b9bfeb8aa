"""What nodes of a graph send: each message is made of the node's own list, of public messages, and of random bits.

Relation   two graphs are neighbours if they differ in one edge, which stands in the lists of *both* its ends. The
           epsilon of a round is that of all its messages together, about one edge: where both ends speak of an edge,
           each spends half; where only the later of the two does, it spends the whole. Rounds add up
Degrees    d + discrete Laplace noise of scale 2 / epsilon: both ends count the edge
Counts     the neighbours that come before the node, + noise of scale 1 / epsilon: one end counts the edge
Lists      one bit for each node that comes before, set with probability P / 2^20 for neighbours and Q / 2^20 for
           others; P / Q <= e^epsilon. A `share` below 1 publishes fewer ones (asymmetric randomized response)
Pairs      second round: t noisy edges among s = C(D, 2) pairs of the D neighbours before the node, as the whole number
           2^20 t - Q s, which is unbiased for (P - Q) times the triangles; noise for the change of 2^20 (D - 1) at most
Stars      C(d, k) with noise for its largest change, C(D - 1, k - 1): the Laplace alternative to degrees
Peeling    interactive: in each pass a node says whether it still has more than k neighbours among those that remain
           (sparse vector technique: one secret threshold noise of scale 4 / epsilon for all passes, fresh noise of the
           same scale in each; an edge only ever adds to a count, so that epsilon / 4 + epsilon / 4 per end suffices)
Source     Imola, Murakami and Chaudhuri 2021, 2022; Lyu, Su and Li 2017; Dhulipala, Li and Liu 2023
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels import DiscreteLaplace
from deniable.errors import EpsilonError, NumberError
from deniable.exact import WORD_BITS, Dyadic
from deniable.protocols.graphs.network import Graph, Nodes
from deniable.randomness import Bits

DIGITS = 20
UNIT = 1 << DIGITS
"""Probabilities of lists are parts of 2^20, so that sums of them are whole numbers."""

_ROWS = 256
Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Round(ABC):
    """One message of each node.

    Args:
        epsilon: The epsilon of one edge, over all messages of the round.
    """

    epsilon: Fraction
    name: ClassVar[str]
    ends: ClassVar[int] = 1
    """How many of an edge's two ends speak of it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact.as_epsilon(self.epsilon))

    @abstractmethod
    def message(self, node: int, own: Nodes, heard: Transcript, bits: Bits) -> Any:
        """What a node sends: from its place, its own list and what it has heard, and from nothing else."""

    def messages(self, graph: Graph, heard: Transcript, bits: Bits) -> Any:
        """The messages of all nodes, as the estimators get them."""
        sent = [self.message(node, own, heard, bits) for node, own in graph.lists()]
        return np.array(sent, dtype=np.int64)

    def spec(self) -> dict[str, Any]:
        """What everybody has to know of the round, as JSON."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        own = {name: str(value) if isinstance(value, Fraction) else value for name, value in given.items()}
        return {"message": self.name, "ends": self.ends} | own


R = TypeVar("R", bound=Round)


@dataclass(frozen=True)
class Transcript:
    """What everybody has heard: the rounds with the messages of all nodes. Estimators see this and nothing else.

    Args:
        size: Number of nodes.
        rounds: The rounds, each with the messages of all nodes.
    """

    size: int
    rounds: tuple[tuple[Round, Any], ...] = ()

    def after(self, step: Round, messages: Any) -> Transcript:
        return Transcript(self.size, (*self.rounds, (step, messages)))

    def of(self, kind: type[R]) -> tuple[R, Any] | None:
        """The first round of this kind with its messages."""
        return next(((step, sent) for step, sent in self.rounds if isinstance(step, kind)), None)

    def heard(self, kind: type[R]) -> tuple[R, Any]:
        """The same, where there must be one."""
        found = self.of(kind)
        if found is None:
            raise NumberError(f"nobody has sent {kind.name}")
        return found

    @property
    def epsilon(self) -> Fraction:
        """What all rounds together say about one edge, at most."""
        return sum((step.epsilon for step, _ in self.rounds), Fraction(0))

    @cached_property
    def rank(self) -> Nodes:
        """The place of each node in the order of the published lists."""
        return self.ranked(self.heard(NoisyLists)[0].by_degree)

    def ranked(self, by_degree: bool) -> Nodes:
        """The place of each node in their own order, or by falling noisy degree."""
        places = np.arange(self.size)
        if not by_degree:
            return places
        rank = np.empty_like(places)
        rank[np.argsort(-self.heard(NoisyDegrees)[1], kind="stable")] = places
        return rank

    def spec(self) -> dict[str, Any]:
        """What was done, as JSON: the relation under which epsilon holds, and the rounds."""
        return {
            "kind": "graph",
            "version": 1,
            "relation": "edge",
            "nodes": self.size,
            "epsilon": exact.canonical(self.epsilon),
            "rounds": [step.spec() for step, _ in self.rounds],
        }


def collect(graph: Graph, rounds: Sequence[Round], bits: Bits) -> Transcript:
    """Run the rounds one after the other: each node hears all messages of the rounds before.

    Args:
        graph: The graph.
        rounds: The rounds, in order.
        bits: Source of randomness.

    Returns:
        The messages of all rounds.
    """
    heard = Transcript(graph.size)
    for step in rounds:
        heard = heard.after(step, step.messages(graph, heard, bits))
    return heard


@dataclass(frozen=True)
class NoisyDegrees(Round):
    """How many neighbours a node has, with noise.

    Args:
        epsilon: Epsilon of one edge.
    """

    name: ClassVar[str] = "degrees"
    ends: ClassVar[int] = 2

    @cached_property
    def noise(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.epsilon / 2)

    def message(self, node: int, own: Nodes, heard: Transcript, bits: Bits) -> int:
        return int(self.noise.sample(len(own), bits))


@dataclass(frozen=True)
class NoisyCounts(Round):
    """How many neighbours come before the node, with noise: every edge is counted by one of its ends.

    Args:
        epsilon: Epsilon of one edge.
    """

    name: ClassVar[str] = "counts"

    @cached_property
    def noise(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.epsilon)

    def message(self, node: int, own: Nodes, heard: Transcript, bits: Bits) -> int:
        return int(self.noise.sample(int(np.count_nonzero(own < node)), bits))


@dataclass(frozen=True)
class NoisyLists(Round):
    """Randomized response on the bits of a node's list, as far as nodes come before it in the public order.

    Args:
        epsilon: Epsilon of one edge.
        share: The share of the ones of plain randomized response that is published.
        by_degree: Whether the order goes by noisy degrees, which were sent before.

    Raises:
        NumberError: The share is out of range.
    """

    name: ClassVar[str] = "lists"

    share: Fraction = Fraction(1)
    by_degree: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        share = exact.fraction(self.share, "the share of noisy edges")
        if not 0 < share <= 1:
            raise NumberError(f"the share of noisy edges lies above 0 and up to 1, not at {exact.shown(share)}")
        object.__setattr__(self, "share", share)
        if self.set_for_edge <= self.set_for_others:
            raise EpsilonError(
                f"epsilon {exact.shown(self.epsilon)} is too small for lists: probabilities are parts of "
                f"2^{DIGITS}, and nothing could be learned"
            )

    @cached_property
    def set_for_edge(self) -> int:
        """P: how many of 2^20 bits for neighbours are set."""
        return exact.floor_of(lambda e: self.share * UNIT * e / (e + 1), self.epsilon)

    @cached_property
    def set_for_others(self) -> int:
        """Q: how many of 2^20 bits for others are set."""
        return exact.ceil_of(lambda e: self.set_for_edge / e, self.epsilon)

    @property
    def ratio(self) -> Fraction:
        """The exact largest likelihood ratio about one edge."""
        p, q = self.set_for_edge, self.set_for_others
        return max(Fraction(p, q), Fraction(UNIT - q, UNIT - p))

    @property
    def _laws(self) -> tuple[Dyadic, Dyadic]:
        shift = WORD_BITS - DIGITS
        return Dyadic(self.set_for_edge << shift), Dyadic(self.set_for_others << shift)

    def message(self, node: int, own: Nodes, heard: Transcript, bits: Bits) -> Bytes:
        """The bits of the nodes before it, eight to a byte."""
        rank = heard.ranked(self.by_degree)
        mine, before = int(rank[node]), rank[own]
        for_edge, for_others = self._laws
        sent = np.unpackbits(bits.packed(for_others, mine), bitorder="little", count=mine) if mine else _NONE
        known = before[before < mine]
        sent[known] = bits.bernoulli(for_edge, known.size) if known.size else 0
        return np.packbits(sent, bitorder="little")

    def messages(self, graph: Graph, heard: Transcript, bits: Bits) -> Bytes:
        """One row per node in the public order: bit j of row i speaks of the nodes i > j, all others are zero."""
        size = graph.size
        for_edge, for_others = self._laws
        sent = np.zeros((size, -(-size // 8)), dtype=np.uint8)
        for start in range(0, size, _ROWS):
            stop = min(size, start + _ROWS)
            if stop > 1:
                drawn = bits.packed(for_others, stop - 1, stop - start)
                sent[start:stop, : drawn.shape[1]] = drawn
            _clear_from(sent[start:stop], np.arange(start, stop))
        ends = np.sort(heard.ranked(self.by_degree)[graph.edges], axis=1)
        low, high = ends[:, 0], ends[:, 1]
        # Bits of edges are drawn anew: cleared, then set with their own probability.
        np.bitwise_and.at(sent, (high, low >> 3), ~(1 << (low & 7)).astype(np.uint8))
        kept = bits.bernoulli(for_edge, low.size)
        np.bitwise_or.at(sent, (high[kept], low[kept] >> 3), (1 << (low[kept] & 7)).astype(np.uint8))
        return sent


_NONE = np.zeros(0, dtype=np.uint8)


def _clear_from(rows: Bytes, lengths: Nodes) -> None:
    """Clear the bits from each row's length on."""
    whole, rest = lengths >> 3, lengths & 7
    places = np.arange(rows.shape[1])
    rows[places > whole[:, None]] = 0
    partial = np.flatnonzero(whole < rows.shape[1])
    rows[partial, whole[partial]] &= ((1 << rest[partial]) - 1).astype(np.uint8)


@dataclass(frozen=True)
class ClosedPairs(Round):
    """How many pairs of its earlier neighbours the noisy lists join, with noise: a node sees its triangles.

    Args:
        epsilon: Epsilon of one edge.
        most: Number of neighbours that a node looks at, if that is public; from its noisy degree if None.
        margin: Added to a noisy degree, so that hardly any node has more neighbours.

    Raises:
        NumberError: `most` is negative.
    """

    name: ClassVar[str] = "pairs"

    most: int | None = None
    margin: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.most is not None and self.most < 0:
            raise NumberError(f"a node cannot look at {self.most} neighbours")

    def bounds(self, heard: Transcript) -> Nodes:
        """How many earlier neighbours each node looks at, at most: public, by node."""
        if self.most is not None:
            return np.minimum(self.most, heard.rank)
        bounds: Nodes = np.clip(heard.heard(NoisyDegrees)[1] + self.margin, 0, heard.rank)
        return bounds

    def noise(self, bound: int) -> DiscreteLaplace | None:
        """The noise of a node that looks at `bound` neighbours; below two there is no pair, and nothing to hide."""
        return DiscreteLaplace(self.epsilon, (bound - 1) * UNIT) if bound > 1 else None

    def variances(self, heard: Transcript) -> NDArray[np.float64]:
        """The variance of the noise in each message."""
        each = np.maximum(self.bounds(heard) - 1, 0) * (UNIT / float(self.epsilon))
        return 2 * each**2

    def message(self, node: int, own: Nodes, heard: Transcript, bits: Bits) -> int:
        mine, bound = int(heard.rank[node]), int(self.bound_of(node, heard))
        noise = self.noise(bound)
        if noise is None:
            return 0
        before = np.sort(heard.rank[own])
        known = before[before < mine][:bound]
        lists, rows = heard.heard(NoisyLists)
        joined = (rows[known[:, None], known >> 3] >> (known & 7).astype(np.uint8)) & 1
        exactly = UNIT * int(joined.sum()) - lists.set_for_others * math.comb(known.size, 2)
        return int(noise.sample(exactly, bits))

    def bound_of(self, node: int, heard: Transcript) -> int:
        rank = int(heard.rank[node])
        if self.most is not None:
            return min(self.most, rank)
        return min(max(int(heard.heard(NoisyDegrees)[1][node]) + self.margin, 0), rank)


@dataclass(frozen=True)
class NoisyStars(Round):
    """How many k-stars have the node as centre, with noise for the most that an edge can change.

    Args:
        epsilon: Epsilon of one edge.
        k: Number of neighbours of a star.
        most: Neighbours that a node counts.
    """

    name: ClassVar[str] = "stars"
    ends: ClassVar[int] = 2

    k: int = 2
    most: int = 1

    @cached_property
    def noise(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.epsilon / 2, max(1, math.comb(max(self.most, 1) - 1, self.k - 1)))

    def message(self, node: int, own: Nodes, heard: Transcript, bits: Bits) -> int:
        return int(self.noise.sample(math.comb(min(len(own), self.most), self.k), bits))


@dataclass(frozen=True)
class Peeled:
    """The public record of a peeling: at which threshold each node left, and how many tests each pass had."""

    left: Nodes
    """The last threshold that each node failed to exceed."""
    tests: tuple[int, ...]


@dataclass(frozen=True)
class Peeling(Round):
    """Pass after pass, nodes with too few remaining neighbours leave; the threshold rises.

    Args:
        epsilon: Epsilon of one edge, over all passes.
        step: How far the threshold rises per pass.
        passes: How often each threshold is asked.

    Raises:
        NumberError: A number is below 1.
    """

    name: ClassVar[str] = "peeling"
    ends: ClassVar[int] = 2

    step: int = 1
    passes: int = 1
    noise: DiscreteLaplace = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step < 1 or self.passes < 1:
            raise NumberError("a peeling rises by at least 1 and asks each threshold at least once")
        object.__setattr__(self, "noise", DiscreteLaplace(self.epsilon / 4))

    def secret(self, bits: Bits) -> int:
        """The noise on a node's threshold, which it keeps for all passes."""
        return int(self.noise.sample(0, bits))

    def stays(self, own: Nodes, remaining: NDArray[np.bool_], threshold: int, secret: int, bits: Bits) -> bool:
        """What a remaining node says in one pass."""
        return int(self.noise.sample(int(remaining[own].sum()), bits)) > threshold + secret

    def message(self, node: int, own: Nodes, heard: Transcript, bits: Bits) -> Any:
        raise NumberError("a peeling has many messages: see stays()")

    def messages(self, graph: Graph, heard: Transcript, bits: Bits) -> Peeled:
        size = graph.size
        left = np.zeros(size, dtype=np.int64)
        remaining = np.ones(size, dtype=np.bool_)
        secrets = self.noise.sample(np.zeros(size, dtype=np.int64), bits)
        edges, tests, threshold = graph.edges, [], 0
        while remaining.any():
            for _ in range(self.passes):
                edges = edges[remaining[edges].all(axis=1)]
                counts = np.bincount(edges.reshape(-1), minlength=size)
                asked = np.flatnonzero(remaining)
                leaving = asked[self.noise.sample(counts[asked], bits) <= threshold + secrets[asked]]
                left[leaving] = threshold
                remaining[leaving] = False
                tests.append(asked.size)
                if not leaving.size:
                    break
            threshold += self.step
        return Peeled(left, tuple(tests))

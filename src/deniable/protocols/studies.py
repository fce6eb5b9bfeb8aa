"""Studies: repeat a whole collection many times, without drawing each report where the law of the tally is known.

Exact      GRR            how many of each answer are kept is binomial; the rest spread evenly: multinomial
           unary          each counter is the sum of two binomials, and the counters are independent
           Hadamard       the rest as for GRR; the kept ones are split bit by bit of the output's number
           in about as many draws as there are counters, whatever the number of people
Reports    every other protocol draws all reports in blocks, with `Simulation(seed)`, and tallies them
Caution    the exact laws are drawn with numpy's generator, whose binomials work in floats: right for studies (errors
           near 1e-16), no basis for a privacy claim. Neither is random to anyone who knows the seed
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.domains import ListedDomain
from deniable.errors import NumberError, ShapeError
from deniable.protocols.tally import Counts, Tally
from deniable.randomness import Simulation

if TYPE_CHECKING:
    from deniable.protocols.base import Protocol

_BLOCK_BYTES = 1 << 25


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Study:
    """Tallies of repeated collections from the same people."""

    protocol: Protocol
    n: int
    truth: NDArray[np.float64]
    """The figures of these people, without noise."""
    tallies: Counts
    """One run per row."""
    exact: bool
    """Whether the tallies were drawn from their joint law, without reports."""
    method: str

    def __len__(self) -> int:
        return len(self.tallies)

    def tally(self, run: int) -> Tally:
        return Tally(self.protocol.fingerprint, self.n, self.tallies[run])

    def figures(self) -> NDArray[np.float64]:
        """The estimated figures, such as shares or a mean, one run per row."""
        return np.stack([self.protocol.estimate(self.tally(run)).table().value for run in range(len(self))])

    def __repr__(self) -> str:
        return f"<{len(self)} runs of {self.protocol.name} with {self.n:,} people, {self.method}>"


def study(protocol: Protocol, people: Any, runs: int, seed: int) -> Study:
    """`runs` collections from the same people.

    `people` is how many hold each answer, where the domain lists its answers; else one answer per person.
    """
    if isinstance(runs, bool) or not isinstance(runs, int | np.integer) or runs < 1:
        raise NumberError(f"the number of runs is a positive whole number, not {runs!r}")
    if not isinstance(protocol.domain, ListedDomain):
        encoded = protocol.domain.encode(people)
        if not len(encoded):
            raise NumberError("a study needs at least one person")
        truth, n = protocol.truth(people), len(encoded)
        blocks = partial(_slices, encoded, _block(protocol))
    else:
        counts = _people(people, protocol.domain.size)
        truth, n = protocol.truth(protocol.domain.labels, counts), int(counts.sum())
        tallies = protocol._simulate(counts, int(runs), np.random.default_rng(seed))
        if tallies is not None:
            return Study(protocol, n, truth, tallies, True, "drawn from the law of the tally")
        blocks = partial(_in_order, counts, _block(protocol))
    bits = Simulation(seed)
    drawn = np.stack([_by_reports(protocol, blocks(), bits) for _ in range(runs)])
    return Study(protocol, n, truth, drawn, False, "every report drawn and tallied")


def _people(counts: ArrayLike, size: int) -> Counts:
    given = np.asarray(counts)
    if given.ndim != 1 or given.size != size:
        raise ShapeError(f"give how many people hold each of the {size} answers, not an array of shape {given.shape}")
    if given.dtype.kind not in "iu":
        raise NumberError("people are counted in whole numbers")
    if (given < 0).any() or not 1 <= int(given.sum(dtype=object)) < 1 << 62:
        raise NumberError("the numbers of people are not negative and add up to at least one, at most 2^62")
    return given.astype(np.int64)


def _block(protocol: Protocol) -> int:
    """How many people are drawn at once."""
    return max(1, _BLOCK_BYTES // (protocol.report_bytes + 16))


def _slices(encoded: Any, block: int) -> Iterator[Any]:
    return (encoded[start : start + block] for start in range(0, len(encoded), block))


def _in_order(counts: Counts, block: int) -> Iterator[Counts]:
    """People in order of their answers, a block at a time; the tally does not depend on the order."""
    ends = np.cumsum(counts)
    for start in range(0, int(ends[-1]), block):
        yield np.searchsorted(ends, np.arange(start, min(start + block, int(ends[-1]))), side="right")


def _by_reports(protocol: Protocol, blocks: Iterable[Any], bits: Simulation) -> Counts:
    total = np.zeros(protocol.tally_size, dtype=np.int64)
    for values in blocks:
        if len(values) == 1:
            one = values[0].item() if isinstance(values, np.ndarray) else values[0]
            rows = np.frombuffer(protocol._one(one, bits), dtype=np.uint8).reshape(1, -1)
        else:
            rows = protocol._many(values, bits)
        total += protocol._count(rows)
    return total


def kept_or_uniform(truth: Counts, keep: float, runs: int, random: np.random.Generator) -> tuple[Counts, Counts]:
    """How many of each answer are kept, and how many are not in all; one run per row."""
    kept: Counts = random.binomial(truth, keep, (runs, truth.size))
    return kept, truth.sum() - kept.sum(axis=1)


def spread_evenly(people: Counts, size: int, random: np.random.Generator) -> Counts:
    """People of each run among `size` equally likely places."""
    spread: Counts = random.multinomial(people, np.full(size, 1 / size))
    return spread


def independent_bits(truth: Counts, p: float, q: float, runs: int, random: np.random.Generator) -> Counts:
    """How often each bit is set: with probability p by its own people, with q by all others."""
    shape = (runs, truth.size)
    bits: Counts = random.binomial(truth, p, shape) + random.binomial(truth.sum() - truth, q, shape)
    return bits


def even_columns(people: Counts, random: np.random.Generator) -> Counts:
    """Each of people[..., i], i > 0, picks a uniform column j with even popcount(i & j); how many pick each j.

    The bits of j are settled from the top. What is left to know of a person is the rest of i and the parity that the
    rest of i & j must have: either value of a bit is then equally likely, except that when the rest of i is zero
    nothing can mend the parity any more. So each of log2(b) rounds splits 2 b groups of people by fair coins.
    """
    batch, size = people.shape[:-1], people.shape[-1]
    # Axes: batch, the bits of j so far, the parity still needed, the rest of i.
    groups: NDArray[Any] = np.stack([people, np.zeros_like(people)], axis=-2)[..., None, :, :]
    half = size // 2
    while half:
        clear, lit = groups[..., :half], groups[..., half:]
        clear_ones = random.binomial(clear, 0.5)
        lit_ones = random.binomial(lit, 0.5)
        # Rest zero and top bit of i set: the parity decides the bit.
        lit_ones[..., 0, 0] = 0
        lit_ones[..., 1, 0] = lit[..., 1, 0]
        zeros = (clear - clear_ones) + (lit - lit_ones)
        ones = clear_ones + lit_ones[..., ::-1, :]  # a one where i has a one turns the parity
        groups = np.stack([zeros, ones], axis=-3).reshape(*batch, -1, 2, half)
        half //= 2
    return groups[..., 0, 0]

"""Reading what an estimator is given, and the facts about a channel that several estimators need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.channels._vectors import Floats, counts_vector
from deniable.channels.channel import Channel
from deniable.channels.inference.result import BinomialView
from deniable.errors import ChannelError
from deniable.labels import text

# Entries that the exact law makes equal may differ in the last place of their float view.
SAME = 1e-12

# Two primes below 2^31, so that products of residues fit in 64 bits.
_PRIMES = (2_147_483_647, 2_147_483_629)
_MOST_STEPS = 4 * 10**9

Counts = ArrayLike | Mapping[Any, float]


def read(channel: Channel, counts: Counts) -> tuple[Floats, Floats]:
    """The float view of the channel, and the counts in the order of its outputs."""
    if not isinstance(channel, Channel):
        if callable(getattr(channel, "channel", None)):
            raise ChannelError(
                f"{type(channel).__name__} is a protocol: use protocol.estimate(tally) or protocol.mle(reports), or "
                "give its channel, protocol.channel(), with a count for each report"
            )
        raise ChannelError(f"a Channel is needed, not a {type(channel).__name__}: wrap the matrix in Channel(rows)")
    if isinstance(counts, Mapping):
        vector = np.zeros(len(channel.outputs))
        for label, count in counts.items():
            vector[channel.output_index(label)] = count
        counts = vector
    observed = counts_vector(counts, len(channel.outputs))
    impossible = (observed > 0) & (channel.rows.max(axis=0) <= 0)
    if impossible.any():
        name = text(channel.outputs[int(np.argmax(impossible))])
        raise ChannelError(f"output {name} was counted but no input can produce it: is this the right channel?")
    return channel.rows, observed


def log_likelihood(rows: Floats, observed: Floats, frequencies: Floats) -> float:
    """sum_y c_y log (f C)_y in nats, without the multinomial coefficient."""
    seen = observed > 0
    marginal = frequencies @ rows[:, seen]
    if (marginal <= 0).any():
        return float("-inf")
    return float(observed[seen] @ np.log(marginal))


def likelihood_gap(rows: Floats, observed: Floats, frequencies: Floats) -> float:
    """An upper bound of how far a distribution is from the maximum likelihood, in nats per person."""
    seen = observed > 0
    marginal = frequencies @ rows[:, seen]
    if (frequencies < 0).any():
        return float("nan")
    if (marginal <= 0).any():
        return float("inf")
    share = observed[seen] / observed.sum()
    return max(float(np.log((rows[:, seen] @ (share / marginal)).max())), 0.0)


def binomial_view(rows: Floats, observed: Floats) -> BinomialView | None:
    """Each count as a binomial variable of its own input's frequency, where the channel allows it.

    That is so when all *other* inputs produce output v equally often: every 2 x 2 channel and every k-ary
    randomized response.
    """
    k, m = rows.shape
    if k != m or k < 2:
        return None
    hit = np.diagonal(rows).copy()
    # Column v of `others` holds what the other inputs make of output v.
    others = rows.T[~np.eye(k, dtype=bool)].reshape(k, k - 1).T
    miss = others.mean(axis=0)
    if np.abs(others - miss).max() > SAME or np.abs(hit - miss).min() <= SAME:
        return None
    return BinomialView(observed, hit, miss)


def independent_rows(channel: Channel) -> int:
    """The rank of the channel, from its integers; from floats where elimination would take minutes.

    A rank modulo a prime is never above the true one, and below it only if the prime divides certain determinants: two
    primes agree on a wrong rank with a chance of about 1e-17.
    """
    k, m = channel.numerators.shape
    most = min(k, m)
    if k * m * most > _MOST_STEPS:
        return int(np.linalg.matrix_rank(channel.rows))
    found = 0
    for prime in _PRIMES:
        found = max(found, _rank_modulo((channel.numerators % prime).astype(np.int64), prime))
        if found == most:
            break
    return found


def _rank_modulo(table: NDArray[np.int64], prime: int) -> int:
    rank = 0
    for column in range(table.shape[1]):
        pivots = np.flatnonzero(table[rank:, column])
        if pivots.size == 0:
            continue
        pivot = rank + int(pivots[0])
        table[[rank, pivot]] = table[[pivot, rank]]
        table[rank] = table[rank] * pow(int(table[rank, column]), -1, prime) % prime
        below = table[rank + 1 :]
        below -= below[:, column : column + 1] * table[rank] % prime
        below %= prime
        rank += 1
        if rank == len(table):
            break
    return rank

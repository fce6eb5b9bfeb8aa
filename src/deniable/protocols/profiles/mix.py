"""How many people there are of each profile, from outputs alone.

Law        outputs of profile i follow M_i = P_i A^i, so n people with shares w give output shares M^T w on average
Estimate   w = L f with f the shares of outputs and L = (M W M^T)^-1 M W, W = diag(1 / column means of M): a fixed
           matrix with L M^T = 1, so the estimate is exactly unbiased, and its entries sum to one
Error      for people as they are, n_i of profile i: Var(counts) = diag(L diag(sum n_i M_i) L^T) - n_i
Needs      linearly independent rows of M, so at most as many profiles as values: the rank is checked with integers
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deniable.errors import ChannelError, MismatchError
from deniable.protocols.profiles.graph import Floats, Integers
from deniable.protocols.tally import Tally
from deniable.results import Estimate

if TYPE_CHECKING:
    from deniable.protocols.profiles.mechanism import ProfileMechanism


# Full rank modulo a prime proves full rank; the other way round it errs with a chance of about 2^-120, by refusing.
_PRIME = (1 << 127) - 1

# Beyond this the error bars would be wider than any crowd, and the floats that compute them no longer correct.
_LARGEST_CONDITION = 1e7


def rank(rows: Integers) -> int:
    """The rank of a matrix of integers, by elimination modulo a large prime."""
    left = [[int(entry) % _PRIME for entry in row] for row in rows]
    found = 0
    for column in range(rows.shape[1]):
        pivot = next((i for i in range(found, len(left)) if left[i][column]), None)
        if pivot is None:
            continue
        left[found], left[pivot] = left[pivot], left[found]
        lead = left[found]
        undo = pow(lead[column], -1, _PRIME)
        for i in range(found + 1, len(left)):
            factor = left[i][column] * undo % _PRIME
            if factor:
                left[i] = [(entry - factor * top) % _PRIME for entry, top in zip(left[i], lead, strict=True)]
        found += 1
    return found


def inverse(mechanism: ProfileMechanism) -> Floats:
    """The matrix L that turns shares of outputs into shares of profiles."""
    profiles, values = mechanism.laws.shape
    if profiles > values:
        raise ChannelError(
            f"{values} different outputs cannot tell the shares of {profiles} profiles: "
            f"merge profiles until there are at most {values}"
        )
    independent = rank(mechanism._laws)
    if independent < profiles:
        raise ChannelError(
            f"the outputs of these {profiles} profiles mix to the same law in several ways (rank {independent}): "
            "merge profiles whose outputs are alike, or raise epsilon"
        )
    law = mechanism.laws
    if np.linalg.cond(law) > _LARGEST_CONDITION:
        raise ChannelError("the outputs of these profiles are so alike that no crowd is large enough: raise epsilon")
    means = law.mean(axis=0)
    weights = np.divide(1.0, means, out=np.zeros_like(means), where=means > 0)
    scaled = law * weights
    solved: Floats = np.linalg.solve(scaled @ law.T, scaled)
    return solved


def estimate_mix(mechanism: ProfileMechanism, tally: Tally) -> Estimate:
    """Unbiased counts of profiles, with their variances."""
    if tally.n == 0:
        raise MismatchError("this tally is empty: there is nothing to estimate from")
    left = inverse(mechanism)
    counts = left @ tally.counts.astype(np.float64)
    people = np.clip(counts, 0.0, tally.n)
    people = people * (tally.n / people.sum())
    variance = np.maximum(left**2 @ (mechanism.laws.T @ people) - people, 0.0)
    return Estimate(mechanism.graph.labels, tally.n, counts, variance, mechanism.name)

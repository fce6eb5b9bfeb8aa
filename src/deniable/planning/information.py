"""What one report tells: information, capacity and Fisher information of every protocol, from its exact channel.

Information  mutual information of answer and report, in nats, when the answers follow a prior
Capacity     the largest information over all priors
Spread       n times the sum, over the answers, of the variance of the best unbiased estimate of the shares from n
             reports: the trace of the inverse Fisher information (Cramer and Rao), at the prior; infinite where reports
             do not determine the shares
Optimum      the most information of any mechanism at this epsilon: `design.mutual_information`
Channels     enumerated from the report bytes; a protocol with too many forms of a report is left out by name
Source       Kairouz, Oh and Viswanath 2014 (mutual information as a utility); Ye and Barg 2018 (Fisher information)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable import design, exact
from deniable.channels import Channel, capacity, mutual_information
from deniable.channels.inference import fisher_stderr
from deniable.channels.utility import Distribution, read_prior
from deniable.design import Design
from deniable.domains import ListedDomain
from deniable.errors import ChannelError
from deniable.planning.planner import plan
from deniable.protocols import Protocol

# Enumerating so many cells takes seconds; a channel of a thousand unary reports takes ten times as long.
MOST_CELLS = 1 << 13


@dataclass(frozen=True, slots=True)
class Told:
    """What a report of one protocol tells."""

    name: str
    information: float
    capacity: float
    spread: float

    @classmethod
    def of(cls, name: str, channel: Channel, prior: Distribution | None = None) -> Told:
        """The same figures for any channel; the prior is even if it is not given."""
        weights = _even(len(channel.inputs)) if prior is None else read_prior(prior, channel.inputs)
        errors = fisher_stderr(channel.rows, np.ones(1), weights, rank=None)
        return cls(name, mutual_information(channel, weights), capacity(channel).value, float(np.square(errors).sum()))


@dataclass(frozen=True, slots=True)
class Information:
    """Protocols by information, the most first; what no mechanism exceeds; and who has too many forms of a report."""

    epsilon: Fraction
    rows: tuple[Told, ...]
    best: Design
    left_out: tuple[str, ...]


def information(
    domain: ListedDomain,
    epsilon: Any,
    prior: Distribution | None = None,
    protocols: Iterable[Protocol] | None = None,
    max_cells: int = MOST_CELLS,
) -> Information:
    """What a report tells about an answer that follows `prior` (even if not given), for each protocol.

    `protocols` are those of the planner if they are not given. Channels of more than `max_cells` cells are left out.

    >>> from deniable import GRR, Categories
    >>> colours = Categories(["red", "green", "blue"])
    >>> found = information(colours, 1, protocols=[GRR(colours, 1)])
    >>> [(told.name, round(told.information, 4)) for told in found.rows], round(found.best.value, 4)
    ([('GRR', 0.1233)], 0.1233)
    """
    level = exact.as_epsilon(epsilon)
    if protocols is None:
        protocols = [option.protocol for option in plan(domain, epsilon=level, n=1000).table]
    rows, left_out = [], []
    for protocol in protocols:
        try:
            channel = protocol.channel(max_cells)
        except ChannelError:
            left_out.append(protocol.name)
            continue
        rows.append(Told.of(protocol.name, channel, prior))
    weights = _even(domain.size) if prior is None else read_prior(prior, tuple(domain.labels))
    best = design.mutual_information(weights, level)
    return Information(level, tuple(sorted(rows, key=lambda told: -told.information)), best, tuple(left_out))


def _even(size: int) -> Any:
    return np.full(size, 1 / size)

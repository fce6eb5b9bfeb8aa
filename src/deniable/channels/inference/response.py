"""Maximum likelihood for k-ary randomized response, in closed form.

Law        a true answer is reported with probability p, each other one with probability q < p
Estimate   f_v = max(0, (c_v / l - q) / (p - q)) with l = sum_A c / (|A| q + p - q), where A, the values
           above zero, is the longest prefix of the counts in descending order with c_v > l q throughout
Cost       one sort
Error      as for any maximum likelihood (see `fisher`)
"""

from __future__ import annotations

import numpy as np

from deniable.channels._vectors import Floats, counts_vector
from deniable.channels.channel import Channel
from deniable.channels.inference.fisher import fisher_stderr
from deniable.channels.inference.ibu import (
    SAME,
    Counts,
    binomial_view,
    likelihood_gap,
    log_likelihood,
    read,
)
from deniable.channels.inference.misfit import channel_misfit
from deniable.channels.inference.result import Inference
from deniable.errors import ChannelError, ProbabilityError


def mle_randomized_response(channel: Channel | tuple[float, float], counts: Counts) -> Inference:
    """The distribution under which the counts are most likely; `channel` may be the pair (p, q).

    >>> mle_randomized_response((0.6, 0.2), [70, 25, 5]).frequencies.round(6).tolist()
    [0.973684, 0.026316, 0.0]
    """
    if isinstance(channel, tuple):
        p, q = _pair(channel)
        observed = counts_vector(counts)  # type: ignore[arg-type]
        inputs: tuple[object, ...] = tuple(range(observed.size))
        total = p + (observed.size - 1) * q
        if abs(total - 1) > 1e-9:
            raise ProbabilityError(f"p + (k - 1) q is {total:.9g}, not 1, for k = {observed.size} counts")
        rows = np.full((observed.size, observed.size), q)
        np.fill_diagonal(rows, p)
    else:
        rows, observed = read(channel, counts)
        inputs = channel.inputs
        found = response_pair(channel)
        if found is None:
            raise ChannelError("this channel is not a k-ary randomized response: use ibu(channel, counts)")
        p, q = _pair(found)
    frequencies = response_mle(observed, p, q)
    return Inference(
        frequencies=frequencies,
        stderr=fisher_stderr(rows, observed, frequencies),
        method="closed form",
        observed=observed,
        inputs=inputs,
        outputs=inputs if isinstance(channel, tuple) else channel.outputs,
        log_likelihood=log_likelihood(rows, observed, frequencies),
        gap=likelihood_gap(rows, observed, frequencies),
        binomial=binomial_view(rows, observed),
        misfit=channel_misfit(rows, observed, frequencies @ rows),
    )


def response_pair(channel: Channel) -> tuple[float, float] | None:
    """(p, q) if the channel has one probability on its diagonal and one everywhere else, else None."""
    rows = channel.rows
    k, m = rows.shape
    if k != m or k < 2:
        return None
    diagonal = np.diagonal(rows)
    others = rows[~np.eye(k, dtype=bool)]
    if np.ptp(diagonal) > SAME or np.ptp(others) > SAME:
        return None
    return float(diagonal.mean()), float(others.mean())


def response_mle(observed: Floats, p: float, q: float) -> Floats:
    """The closed form on arrays."""
    order = np.argsort(-observed, kind="stable")
    descending = observed[order]
    size = np.arange(1, observed.size + 1)
    scale = np.cumsum(descending) / (size * q + (p - q))
    # The last value of a consistent prefix is its smallest, so it alone decides.
    longest = int(np.flatnonzero(descending > scale * q)[-1]) + 1
    frequencies = np.zeros(observed.size)
    frequencies[order[:longest]] = (descending[:longest] / scale[longest - 1] - q) / (p - q)
    normalized: Floats = frequencies / frequencies.sum()
    return normalized


def _pair(pair: tuple[float, float]) -> tuple[float, float]:
    p, q = float(pair[0]), float(pair[1])
    if not 0 <= q < p <= 1:
        raise ProbabilityError(
            f"the closed form needs 0 <= q < p <= 1, not p = {p:.6g}, q = {q:.6g}: use ibu(channel, counts)"
        )
    return p, q

"""The bootstrap: how much an estimate would vary if the same crowd were asked again.

Draws      counts from a multinomial with the observed shares, `replicates` times, and estimates from each
Returns    the estimate from the real counts, with the replicates' standard deviation as `stderr` and their
           percentiles as intervals
Caution    analysis only: numpy's generator, seeded. Entries at zero come out at zero in many replicates,
           so the percentiles of a true frequency near zero are too short
Source     Efron 1979
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from deniable.channels._vectors import Floats
from deniable.channels.channel import Channel
from deniable.channels.inference.ibu import (
    Counts,
    ibu,
    mle_randomized_response,
    read,
    response_mle,
    response_pair,
    solve,
)
from deniable.channels.inference.invert import Projection, inverse_of, invert, projected
from deniable.channels.inference.result import Inference
from deniable.errors import ChannelError, NumberError

Estimator = Literal["ibu", "inversion", "clip", "simplex", "closed form"] | Callable[[Channel, Floats], Inference]


def bootstrap(
    channel: Channel, counts: Counts, estimator: Estimator = "ibu", replicates: int = 200, seed: int = 0
) -> Inference:
    """An estimate with error bars from resampling; `estimator` may be any function (channel, counts)."""
    if replicates < 2:
        raise NumberError(f"at least 2 replicates are needed, not {replicates!r}")
    rows, observed = read(channel, counts)
    if not np.array_equal(observed, np.round(observed)):
        raise NumberError("the bootstrap redraws whole reports, so the counts must be whole numbers")
    estimate, again = _prepare(channel, rows, observed, estimator)
    if not observed.any():
        return estimate
    draws = np.random.default_rng(seed).multinomial(int(observed.sum()), observed / observed.sum(), replicates)
    sample = np.stack([again(draw.astype(np.float64)) for draw in draws])
    return replace(estimate, stderr=sample.std(axis=0, ddof=1), replicates=sample)


def _prepare(
    channel: Channel, rows: Floats, observed: Floats, estimator: Estimator
) -> tuple[Inference, Callable[[Floats], Floats]]:
    """The estimate from the real counts, and the fastest way to the same from others."""
    if callable(estimator):
        return estimator(channel, observed), lambda draw: estimator(channel, draw).frequencies
    if estimator == "ibu":
        estimate = ibu(channel, observed)
        # A start near the answer saves most of the work; a share of uniform keeps every entry alive.
        start = 0.9 * estimate.frequencies + 0.1 / len(channel.inputs)
        return estimate, lambda draw: solve(rows, draw, start).point
    if estimator == "closed form":
        estimate = mle_randomized_response(channel, observed)
        p, q = response_pair(channel) or (1.0, 0.0)
        return estimate, lambda draw: response_mle(draw, p, q)
    if estimator in ("inversion", "clip", "simplex"):
        project: Projection | None = None if estimator == "inversion" else estimator
        inverse = inverse_of(channel)
        return invert(channel, observed, project), lambda draw: projected((draw / draw.sum()) @ inverse, project)
    raise ChannelError(
        f"unknown estimator {estimator!r}: 'ibu', 'inversion', 'clip', 'simplex', 'closed form' or a function"
    )

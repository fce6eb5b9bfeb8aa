"""Matrix inversion: undo the channel, unbiased first; back into the simplex only when asked.

Estimate   r = q C^-1, with q the shares of the outputs (rows of C are true answers); exactly unbiased, and
           it may be negative
Project    None: r as it is. "clip": negatives to zero, rest rescaled. "simplex": the nearest distribution
Error      covariance B^T (diag(q) - q q^T) B / n with B = C^-1. A projected estimate keeps the raw one's
           error bars, a cautious choice; `bootstrap` gives its own
Refuses    channels that are not square or (nearly) singular: there `ibu` works
Source     Warner 1965; Agrawal, Srikant and Thomas 2005
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from deniable.channels._vectors import Floats
from deniable.channels.channel import Channel
from deniable.channels.inference.ibu import (
    Counts,
    binomial_view,
    independent_rows,
    likelihood_gap,
    log_likelihood,
    read,
    response_mle,
    response_pair,
    solve,
)
from deniable.channels.inference.result import Inference, ScoreView
from deniable.errors import ChannelError
from deniable.postprocess import clip_renormalize, project_simplex
from deniable.results.misfit import Misfit, channel_misfit

Projection = Literal["clip", "simplex"]

# Beyond this condition number rounding alone could swamp the estimate.
WORST_CONDITION = 1e12


def invert(channel: Channel, counts: Counts, project: Projection | None = None) -> Inference:
    """Frequencies of the true answers from counts of the noisy ones.

    >>> coin = Channel([["3/4", "1/4"], ["1/4", "3/4"]], inputs=["yes", "no"], outputs=["yes", "no"])
    >>> invert(coin, {"yes": 400, "no": 600}).frequencies.round(6).tolist()
    [0.3, 0.7]
    """
    rows, observed = read(channel, counts)
    inverse = inverse_of(channel)
    method = "inversion" if project is None else f"inversion, {project}"
    if not observed.any():
        return Inference.nothing(channel.inputs, channel.outputs, method)
    n = observed.sum()
    share = observed / n
    raw = share @ inverse
    # Var r_x = (sum_y q_y B_yx^2 - r_x^2) / n, written as a sum of squares so that it cannot be negative.
    stderr = np.sqrt(share @ (inverse - raw) ** 2 / n)
    frequencies = projected(raw, project)
    return Inference(
        frequencies=frequencies,
        stderr=stderr,
        method=method,
        observed=observed,
        inputs=channel.inputs,
        outputs=channel.outputs,
        log_likelihood=log_likelihood(rows, observed, frequencies),
        gap=likelihood_gap(rows, observed, frequencies),
        constrained=project is not None,
        raw=None if project is None else raw,
        binomial=binomial_view(rows, observed),
        score=ScoreView.of(rows, observed, frequencies, inverse, np.ones(frequencies.size, dtype=np.bool_)),
        check=partial(_misfit, channel, observed, raw),
    )


def _misfit(channel: Channel, observed: Floats, raw: Floats) -> Misfit:
    inside = (raw >= 0).all()
    fitted = observed / observed.sum() if inside else _likeliest(channel, observed) @ channel.rows
    return channel_misfit(channel.rows, observed, fitted)


def _likeliest(channel: Channel, observed: Floats) -> Floats:
    pair = response_pair(channel)
    if pair is not None and pair[0] > pair[1]:
        return response_mle(observed, *pair)
    return solve(channel.rows, observed, np.full(len(channel.inputs), 1 / len(channel.inputs)), tolerance=1e-6).point


def inverse_of(channel: Channel) -> Floats:
    """C^-1, or a refusal that says why there is none."""
    rows = channel.rows
    k, m = rows.shape
    if k != m:
        raise ChannelError(f"a {k} x {m} channel has no inverse because it is not square: use ibu(channel, counts)")
    sizes = np.linalg.svd(rows, compute_uv=False)
    if sizes[-1] * WORST_CONDITION <= sizes[0]:
        rank = independent_rows(channel)
        if rank < k:
            reason = f"is singular (rank {rank} of {k})"
        else:
            reason = f"is too close to singular (condition number {sizes[0] / sizes[-1]:.1e})"
        raise ChannelError(f"this channel {reason} and cannot be inverted: use ibu(channel, counts)")
    return np.asarray(np.linalg.inv(rows), dtype=np.float64)


def projected(raw: Floats, project: Projection | None) -> Floats:
    if project is None:
        return raw
    if project == "clip":
        return clip_renormalize(raw)
    if project == "simplex":
        return project_simplex(raw)
    raise ChannelError(f"unknown projection {project!r}: None (unbiased), 'clip' or 'simplex'")

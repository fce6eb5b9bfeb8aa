"""Estimators of the true answers from counts of noisy ones: matrix inversion, maximum likelihood and the bootstrap.

Matrix inversion undoes the channel: unbiased by default; projected onto the simplex only on request.

Estimate   r = q C^-1, with q the shares of the outputs (rows of C are true answers); exactly unbiased, and
           it may be negative
Project    None: r as it is. "clip": negatives to zero, rest rescaled. "simplex": the nearest distribution
Error      covariance B^T (diag(q) - q q^T) B / n with B = C^-1. A projected estimate keeps the raw one's
           error bars, a cautious choice; `bootstrap` gives its own
Refuses    channels that are not square or (nearly) singular: there `ibu` works
Source     Warner 1965; Agrawal, Srikant and Thomas 2005

Maximum likelihood gives the distribution of true answers under which the counts are most likely. The iterative Bayesian
update (IBU), also called expectation-maximization (EM), finds it for any channel; k-ary randomized response has a
closed form.

Promise    the likelihood never falls; on return no distribution is better by more than `gap` nats per person
Estimate   argmax_f sum_y c_y log (f C)_y over distributions f; equal to inversion when that is a distribution
Start      any distribution. An entry that starts at zero stays at zero, and the promise is then among
           distributions that are zero there; the default, uniform, excludes nothing
Channels   any shape, singular ones too. With fewer independent rows than inputs the maximum is shared by many
           distributions: `identifiable` is False, and the one returned depends on the start
Error      from the Fisher information at the estimate (see `fisher`), or `bootstrap`
Closed     for p on the diagonal and q < p elsewhere: f_v = max(0, (c_v / l - q) / (p - q)) with
           l = sum_A c / (|A| q + p - q), where A, the values above zero, is the longest prefix of the counts in
           descending order with c_v > l q throughout; it costs one sort
Source     Agrawal and Aggarwal 2001; ElSalamouny and Palamidessi 2020; Varadhan and Roland 2008 for SQUAREM

The bootstrap measures how much an estimate would vary if the same crowd were asked again.

Draws      counts from a multinomial with the observed shares, `replicates` times, and estimates from each
Returns    the estimate from the real counts, with the replicates' standard deviation as `stderr` and their
           percentiles as intervals
Caution    analysis only: numpy's generator, seeded. Entries at zero come out at zero in many replicates,
           so the percentiles of a true frequency near zero are too short
Source     Efron 1979
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.channels.channel import Channel
from deniable.channels.inference.em import (
    Acceleration,
    Curvature,
    MatrixModel,
    Solution,
    fisher_stderr,
    maximize,
    progress_bar,
)
from deniable.channels.inference.result import BinomialView, Inference, ScoreView
from deniable.channels.laws import Floats, counts_vector, probability_vector
from deniable.errors import ChannelError, NumberError, ProbabilityError
from deniable.labels import shown
from deniable.postprocess import clip_renormalize, project_simplex
from deniable.results.significance import Misfit, channel_misfit

# Entries that are equal in the exact law may differ in the last digit of their float view.
SAME = 1e-12

# Two primes below 2^31, so that products of residues fit in 64 bits.
_PRIMES = (2_147_483_647, 2_147_483_629)
_MOST_STEPS = 4 * 10**9

Counts = ArrayLike | Mapping[Any, float]


# -- the input of an estimator, and facts about its channel ---------------------------------------------


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
        name = shown(channel.outputs[int(np.argmax(impossible))])
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
    """An upper bound on the distance of a distribution from the maximum likelihood, in nats per person."""
    seen = observed > 0
    marginal = frequencies @ rows[:, seen]
    if (frequencies < 0).any():
        return float("nan")
    if (marginal <= 0).any():
        return float("inf")
    share = observed[seen] / observed.sum()
    return max(float(np.log((rows[:, seen] @ (share / marginal)).max())), 0.0)


def binomial_view(rows: Floats, observed: Floats) -> BinomialView | None:
    """Each count as a binomial variable of its own input's frequency, if the channel allows it.

    That holds if all *other* inputs produce output v equally often: every 2 x 2 channel and every k-ary
    randomized response.
    """
    k, m = rows.shape
    if k != m or k < 2:
        return None
    hit = np.diagonal(rows).copy()
    # Column v of `others` holds the probabilities of output v for the other inputs.
    others = rows.T[~np.eye(k, dtype=bool)].reshape(k, k - 1).T
    miss = others.mean(axis=0)
    if np.abs(others - miss).max() > SAME or np.abs(hit - miss).min() <= SAME:
        return None
    return BinomialView(observed, hit, miss)


def independent_rows(channel: Channel) -> int:
    """The rank of the channel, from its integers; from floats if elimination would take minutes.

    A rank modulo a prime is never above the true one, and below it only if the prime divides certain determinants: two
    primes agree on a wrong rank with probability about 1e-17.
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


# -- matrix inversion --------------------------------------------------------------------------------


Projection = Literal["clip", "simplex"]

# Beyond this condition number rounding alone could dominate the estimate.
WORST_CONDITION = 1e12


def invert(channel: Channel, counts: Counts, project: Projection | None = None) -> Inference:
    """Frequencies of the true answers from counts of the noisy ones.

    Args:
        channel: The channel; its matrix has to have an inverse.
        counts: Count of each output: a list in their order, or a mapping.
        project: How the estimate is made a distribution: "clip" or "simplex"; None leaves it as it is.

    Returns:
        The unbiased estimate, projected if requested.

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
    """C^-1, or an error that explains why the channel has no inverse."""
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


# -- maximum likelihood ---------------------------------------------------------------------------------


def ibu(
    channel: Channel,
    counts: Counts,
    start: ArrayLike | None = None,
    accelerate: bool | Literal["squarem", "newton"] = True,
    tolerance: float = 1e-10,
    max_iterations: int = 10_000,
    progress: bool = False,
) -> Inference:
    """Frequencies of the true answers from counts of the noisy ones.

    `accelerate=True` extrapolates (SQUAREM) and then takes Newton steps; "squarem" only extrapolates; False
    iterates plain Bayes' rule, which may need 100,000 iterations instead of a hundred. Stops when
    `gap` is at most `tolerance`, or after `max_iterations` updates with `converged` False.

    Args:
        channel: The channel.
        counts: Count of each output: a list in their order, or a mapping.
        start: First guess of the shares; uniform if None.
        accelerate: True, "squarem", "newton", or False for plain iteration.
        tolerance: Largest distance from the maximum log-likelihood per person.
        max_iterations: Number of updates after which the iteration stops.
        progress: Whether a progress bar is shown.

    Returns:
        The maximum-likelihood estimate.

    Raises:
        NumberError: The tolerance is not positive, or there are no iterations.

    >>> coin = Channel([["3/4", "1/4"], ["1/4", "3/4"]], inputs=["yes", "no"], outputs=["yes", "no"])
    >>> ibu(coin, {"yes": 400, "no": 600}).frequencies.round(6).tolist()
    [0.3, 0.7]
    >>> ibu(coin, {"yes": 100, "no": 900}).frequencies.round(6).tolist()
    [0.0, 1.0]
    """
    if not tolerance > 0:
        raise NumberError(f"the tolerance must be positive, not {tolerance!r}")
    if max_iterations < 1:
        raise NumberError(f"at least one iteration is needed, not {max_iterations!r}")
    rows, observed = read(channel, counts)
    first = np.full(len(channel.inputs), 1 / len(channel.inputs))
    if start is not None:
        first = probability_vector(start, len(channel.inputs), "start")
        _check_start(channel, first, observed)
    if not observed.any():
        return Inference.nothing(channel.inputs, channel.outputs, "IBU")
    with progress_bar(progress, "IBU", tolerance) as report:
        solution = solve(rows, observed, first, _acceleration(accelerate), tolerance, max_iterations, report)
    rank = independent_rows(channel)
    errors, score = _errors(rows, observed, solution.point, first > 0, rank)
    return Inference(
        frequencies=solution.point,
        stderr=errors,
        method="IBU",
        observed=observed,
        inputs=channel.inputs,
        outputs=channel.outputs,
        log_likelihood=log_likelihood(rows, observed, solution.point),
        gap=solution.gap,
        iterations=solution.trace.size,
        trace=solution.trace * observed.sum(),
        converged=solution.converged,
        identifiable=rank == len(channel.inputs),
        binomial=binomial_view(rows, observed),
        score=score,
        check=partial(channel_misfit, rows, observed, solution.point @ rows) if start is None else None,
    )


def solve(
    rows: Floats,
    observed: Floats,
    start: Floats,
    acceleration: Acceleration = "newton",
    tolerance: float = 1e-10,
    max_iterations: int = 10_000,
    report: Callable[[int, float], None] | None = None,
) -> Solution:
    """The iteration on arrays; outputs that were never observed do not enter the likelihood."""
    seen = observed > 0
    share = observed[seen] / observed.sum()
    return maximize(MatrixModel(rows[:, seen]), share, start, acceleration, tolerance, max_iterations, report)


def _acceleration(accelerate: bool | str) -> Acceleration:
    if accelerate is True or accelerate == "newton":
        return "newton"
    if accelerate is False:
        return "plain"
    if accelerate == "squarem":
        return "squarem"
    raise NumberError(f"accelerate is True, False, 'squarem' or 'newton', not {accelerate!r}")


def _check_start(channel: Channel, start: Floats, observed: Floats) -> None:
    lost = (observed > 0) & (start @ channel.rows <= 0)
    if lost.any():
        name = shown(channel.outputs[int(np.argmax(lost))])
        raise ProbabilityError(
            f"the start gives probability zero to every input that can produce the counted output {name}, "
            "and zero stays zero: start with something positive there"
        )


def _errors(
    rows: Floats, observed: Floats, point: Floats, support: NDArray[np.bool_], rank: int
) -> tuple[Floats, ScoreView | None]:
    """Standard errors, and the inputs of score intervals if the start excluded nothing."""
    errors = np.zeros(point.size)
    if support.sum() < 2:
        return errors, None
    known = rank if support.all() or rank == support.size else None
    if known is not None:
        known -= int((~support).sum())  # any subset of independent rows is independent
    curvature = Curvature.of(rows[support], point[support], float(observed.sum()), known)
    errors[support] = curvature.errors()
    if not support.all():
        return errors, None
    return errors, ScoreView.of(rows, observed, point, curvature.influence(rows), np.isfinite(errors))


# -- randomized response, in closed form ----------------------------------------------------------------


def mle_randomized_response(channel: Channel | tuple[float, float], counts: Counts) -> Inference:
    """The distribution under which the counts are most likely; `channel` may be the pair (p, q).

    Args:
        channel: A channel of randomized response, or the pair (p, q).
        counts: Count of each output: a list in their order, or a mapping.

    Returns:
        The maximum-likelihood estimate.

    Raises:
        ProbabilityError: (p, q) is not the law of randomized response for this many counts.

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
    outputs = inputs if isinstance(channel, tuple) else channel.outputs
    if not observed.any():
        return Inference.nothing(inputs, outputs, "closed form")
    frequencies = response_mle(observed, p, q)
    return Inference(
        frequencies=frequencies,
        stderr=fisher_stderr(rows, observed, frequencies),
        method="closed form",
        observed=observed,
        inputs=inputs,
        outputs=outputs,
        log_likelihood=log_likelihood(rows, observed, frequencies),
        gap=likelihood_gap(rows, observed, frequencies),
        binomial=binomial_view(rows, observed),
        check=partial(channel_misfit, rows, observed, frequencies @ rows),
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
    # The last value of a consistent prefix is its smallest, so it alone is decisive.
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


# -- the bootstrap -----------------------------------------------------------------------------------


Estimator = Literal["ibu", "inversion", "clip", "simplex", "closed form"] | Callable[[Channel, Floats], Inference]


def bootstrap(
    channel: Channel, counts: Counts, estimator: Estimator = "ibu", replicates: int = 200, seed: int = 0
) -> Inference:
    """An estimate with error bars from resampling; `estimator` may be any function (channel, counts).

    Args:
        channel: The channel.
        counts: Count of each output: a list in their order, or a mapping.
        estimator: Name of an estimator, or a function (channel, counts).
        replicates: Number of resamples, at least 2.
        seed: Seed of the resampling.

    Returns:
        The estimate, with standard errors and intervals from the replicates.

    Raises:
        NumberError: There are fewer than 2 replicates, or the counts are not whole numbers.
    """
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
    """The estimate from the real counts, and the fastest function for the same estimate from other counts."""
    if callable(estimator):
        return estimator(channel, observed), lambda draw: estimator(channel, draw).frequencies
    if estimator == "ibu":
        estimate = ibu(channel, observed)
        # A start near the answer saves most of the work; a fraction of uniform keeps every entry positive.
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

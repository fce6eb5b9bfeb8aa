"""Capacity of a channel: the most that one output can reveal about the input, over all priors, with proof.

Formula    C = max_r I(r), reached where D(row x || output marginal) is the same for every input in use
Promise    value <= C <= upper: the value is the information under the returned prior, the upper bound is the
           largest divergence of a row from that prior's marginal
Method     Blahut-Arimoto, r'_x ~ r_x exp D(row x || r C), then damped Newton steps on the same equations;
           a step that lowers the information is replaced by the plain update
Source     Blahut 1972; Arimoto 1972
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.channels.channel import Channel
from deniable.channels.inference.em import NewtonSystem
from deniable.channels.laws import Floats
from deniable.channels.noise import as_channel
from deniable.errors import NumberError

WARM_UP = 5
NEWTON_LIMIT = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Capacity:
    """Bounds on the capacity in nats, and the prior that attains the lower one.

    Args:
        value: Lower bound: the mutual information at `prior`.
        upper: Upper bound on the capacity.
        prior: The distribution of the inputs that attains `value`.
        iterations: Number of Blahut-Arimoto updates.
        converged: Whether the bounds are within the requested tolerance.
    """

    value: float
    upper: float
    prior: Floats
    iterations: int
    converged: bool

    @property
    def gap(self) -> float:
        return self.upper - self.value

    @property
    def bits(self) -> float:
        return float(self.value / np.log(2))


def capacity(channel: Channel, tolerance: float = 1e-12, max_iterations: int = 10_000) -> Capacity:
    """The largest mutual information, within `tolerance` nats.

    Args:
        channel: The channel.
        tolerance: Largest gap between the two bounds, in nats.
        max_iterations: Number of updates after which the search stops, converged or not.

    Returns:
        Bounds on the capacity.

    Raises:
        NumberError: The tolerance is not positive.

    >>> result = capacity(Channel([["3/4", "1/4"], ["1/4", "3/4"]]))
    >>> round(result.value, 6), result.gap <= 1e-12
    (0.130812, True)
    """
    if not tolerance > 0:
        raise NumberError(f"the tolerance must be positive, not {tolerance!r}")
    channel = as_channel(channel)
    rows = channel.rows[:, channel.rows.max(axis=0) > 0]
    logs = np.log(rows, out=np.zeros_like(rows), where=rows > 0)
    entropy = (rows * logs).sum(axis=1)
    prior = np.full(len(channel.inputs), 1 / len(channel.inputs))
    damping, wait = 1e-4, WARM_UP if len(channel.inputs) <= NEWTON_LIMIT else max_iterations + 1
    iterations = 0
    while True:
        iterations += 1
        marginal = prior @ rows
        divergence = np.maximum(entropy - rows @ np.log(marginal), 0.0)
        value, upper = float(prior @ divergence), float(divergence.max())
        if upper - value <= tolerance or iterations >= max_iterations:
            return Capacity(value, upper, prior, iterations, upper - value <= tolerance)
        if wait <= 0:
            found, damping = _newton(rows, prior, marginal, divergence, damping)
            if found is not None:
                prior = found
                continue
            wait = 1
        wait -= 1
        prior = prior * np.exp(divergence - upper)
        prior /= prior.sum()


def _newton(
    rows: Floats, prior: Floats, marginal: Floats, divergence: Floats, damping: float
) -> tuple[Floats | None, float]:
    system = NewtonSystem.at(prior, divergence, rows / np.sqrt(marginal))
    for _ in range(4):
        candidate = system.candidate(damping)
        if candidate is not None and information_gain(rows, prior, candidate, marginal, divergence) > 0:
            return candidate, max(damping / 10, 1e-13)
        damping *= 10
    return None, damping


def information_gain(rows: Floats, old: Floats, new: Floats, marginal: Floats, divergence: Floats) -> float:
    """I(new) - I(old), from the difference: I(new) = new.D_old - KL(marginal_new || marginal_old)."""
    change = ((new - old) @ rows) / marginal
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = marginal @ ((1 + change) * np.log1p(change) - change)
    return float((new - old) @ divergence - kl)

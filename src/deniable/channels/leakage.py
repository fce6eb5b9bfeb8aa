"""What an observer learns: vulnerability, leakage and information, all for an explicit adversary.

Prior      V(prior) = max_w sum_x prior(x) gain(w, x): the adversary's gain before seeing anything
Posterior  sum_y max_w sum_x prior(x) P(y | x) gain(w, x): after seeing one output, on average
Leakage    multiplicative: posterior / prior; additive: posterior - prior; min-entropy leakage: ln of the
           ratio (with gain "identity", the probability of guessing right in one try)
Worst      min-capacity, the largest min-entropy leakage over priors: ln sum_y max_x P(y | x), exact law
Unit       nats throughout; the largest mutual information over priors is `capacity`
Source     Smith 2009; Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi and Smith 2020

Capacity of a channel: the most that one output can say about the input, over all priors, with proof.

Formula    C = max_r I(r), reached where D(row x || output marginal) is the same for every input in use
Promise    value <= C <= upper: the value is the information under the returned prior, the upper bound is the
           largest divergence of a row from that prior's marginal
Method     Blahut-Arimoto, r'_x ~ r_x exp D(row x || r C), then damped Newton steps on the same equations;
           a step that lowers the information is dropped for the plain update
Source     Blahut 1972; Arimoto 1972
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from deniable import exact
from deniable.channels.channel import Channel
from deniable.channels.inference.em import NewtonSystem
from deniable.channels.laws import Floats, probability_vector
from deniable.channels.noise import as_channel
from deniable.channels.utility import Distribution, Function, read_function, read_prior
from deniable.errors import NumberError


@dataclass(frozen=True, slots=True)
class Leakage:
    """Vulnerability before and after seeing the output."""

    prior: float
    posterior: float

    @property
    def additive(self) -> float:
        return self.posterior - self.prior

    @property
    def multiplicative(self) -> float:
        """posterior / prior; NaN where the prior vulnerability is not positive and a ratio means nothing."""
        return self.posterior / self.prior if self.prior > 0 else math.nan

    @property
    def min_entropy(self) -> float:
        """ln of the multiplicative leakage, in nats."""
        return math.log(self.multiplicative) if self.prior > 0 else math.nan


def prior_vulnerability(prior: ArrayLike, gain: Function = "identity") -> float:
    """The best expected gain of a guess made blindly; inputs are numbered 0, 1, 2, ...

    >>> prior_vulnerability([0.5, 0.3, 0.2])
    0.5
    """
    weights = probability_vector(prior)
    return float((read_function(gain, range(weights.size))[0] @ weights).max())


def posterior_vulnerability(channel: Channel, prior: Distribution, gain: Function = "identity") -> float:
    """The expected gain of the best guess for each output."""
    return leakage(channel, prior, gain).posterior


def leakage(channel: Channel, prior: Distribution, gain: Function = "identity") -> Leakage:
    """How much one output helps an adversary with this prior and this gain.

    >>> coin = Channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> leakage(coin, [0.5, 0.5]).multiplicative
    1.5
    """
    channel = as_channel(channel)
    weights = read_prior(prior, channel.inputs)
    matrix, _ = read_function(gain, channel.inputs)
    worth = matrix @ (weights[:, None] * channel.rows)
    return Leakage(float((matrix @ weights).max()), float(worth.max(axis=0).sum()))


def min_capacity(channel: Channel) -> float:
    """The largest min-entropy leakage over all priors, in nats; reached by the uniform one.

    >>> round(min_capacity(Channel([["3/4", "1/4"], ["1/4", "3/4"]])), 6)
    0.405465
    """
    return exact.log(Fraction(sum(as_channel(channel)._largest_of_columns()), channel.denominator))


def mutual_information(channel: Channel, prior: Distribution) -> float:
    """I(input; output) in nats.

    >>> round(mutual_information(Channel([[1, 0], [0, 1]]), [0.5, 0.5]), 6)
    0.693147
    """
    channel = as_channel(channel)
    weights = read_prior(prior, channel.inputs)
    rows = channel.rows
    marginal = weights @ rows
    # Inputs of prior zero may lead to outputs of marginal zero; they count for nothing.
    used = (weights[:, None] > 0) & (rows > 0)
    ratio = np.divide(rows, marginal, out=np.ones_like(rows), where=used)
    return max(float(weights @ (rows * np.log(ratio)).sum(axis=1)), 0.0)


# -- capacity -----------------------------------------------------------------------------------------


WARM_UP = 5
NEWTON_LIMIT = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Capacity:
    """Bounds of the capacity in nats, and the prior that comes that close."""

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

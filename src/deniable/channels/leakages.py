"""What an observer learns: vulnerability, leakage and information, all for an explicit adversary.

Prior      V(prior) = max_w sum_x prior(x) gain(w, x): the adversary's gain before seeing anything
Posterior  sum_y max_w sum_x prior(x) P(y | x) gain(w, x): after seeing one output, on average
Leakage    multiplicative: posterior / prior; additive: posterior - prior; min-entropy leakage: ln of the
           ratio (with gain "identity", the probability of guessing right in one try)
Worst      min-capacity, the largest min-entropy leakage over priors: ln sum_y max_x P(y | x), exact law
Unit       nats throughout; the largest mutual information over priors is `capacity`
Source     Smith 2009; Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi and Smith 2020
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from deniable import exact
from deniable.channels.channel import Channel
from deniable.channels.laws import probability_vector
from deniable.channels.noise import as_channel
from deniable.channels.utilities import Distribution, Function, read_function, read_prior


@dataclass(frozen=True, slots=True)
class Leakage:
    """Vulnerability before and after seeing the output.

    Args:
        prior: The best expected gain without the output.
        posterior: The best expected gain with the output.
    """

    prior: float
    posterior: float

    @property
    def additive(self) -> float:
        return self.posterior - self.prior

    @property
    def multiplicative(self) -> float:
        """posterior / prior; NaN if the prior vulnerability is not positive and a ratio is meaningless."""
        return self.posterior / self.prior if self.prior > 0 else math.nan

    @property
    def min_entropy(self) -> float:
        """ln of the multiplicative leakage, in nats."""
        return math.log(self.multiplicative) if self.prior > 0 else math.nan


def prior_vulnerability(prior: ArrayLike, gain: Function = "identity") -> float:
    """The best expected gain of a guess without any output; inputs are numbered 0, 1, 2, ...

    Args:
        prior: A probability per input.
        gain: Matrix [guess, truth], function (guess, truth) or "identity".

    Returns:
        The prior vulnerability.

    >>> prior_vulnerability([0.5, 0.3, 0.2])
    0.5
    """
    weights = probability_vector(prior)
    return float((read_function(gain, range(weights.size))[0] @ weights).max())


def posterior_vulnerability(channel: Channel, prior: Distribution, gain: Function = "identity") -> float:
    """The expected gain of the best guess for each output.

    Args:
        channel: The channel.
        prior: A probability per input.
        gain: Matrix [guess, truth], function (guess, truth) or "identity".

    Returns:
        The posterior vulnerability.
    """
    return leakage(channel, prior, gain).posterior


def leakage(channel: Channel, prior: Distribution, gain: Function = "identity") -> Leakage:
    """How much one output helps an adversary with this prior and this gain.

    Args:
        channel: The channel.
        prior: The adversary's belief about the input: a probability per input.
        gain: Matrix [guess, truth], function (guess, truth) or "identity".

    Returns:
        The adversary's best expected gain before and after the output.

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

    Args:
        channel: The channel.

    Returns:
        The min-capacity, in nats.

    >>> round(min_capacity(Channel([["3/4", "1/4"], ["1/4", "3/4"]])), 6)
    0.405465
    """
    return exact.log(Fraction(sum(as_channel(channel)._largest_of_columns()), channel.denominator))


def mutual_information(channel: Channel, prior: Distribution) -> float:
    """I(input; output) in nats.

    Args:
        channel: The channel.
        prior: A probability per input.

    Returns:
        The mutual information, in nats.

    >>> round(mutual_information(Channel([[1, 0], [0, 1]]), [0.5, 0.5]), 6)
    0.693147
    """
    channel = as_channel(channel)
    weights = read_prior(prior, channel.inputs)
    rows = channel.rows
    marginal = weights @ rows
    # Inputs of prior zero may lead to outputs of marginal zero; they do not contribute.
    used = (weights[:, None] > 0) & (rows > 0)
    ratio = np.divide(rows, marginal, out=np.ones_like(rows), where=used)
    return max(float(weights @ (rows * np.log(ratio)).sum(axis=1)), 0.0)

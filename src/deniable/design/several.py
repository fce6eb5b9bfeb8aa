"""Several hypotheses: the mechanism whose reports best identify which of m laws the answers follow.

Guess      one report: the largest probability that the best guess is right, sum over y of max over h of
           w_h sum over x of P_h(x) Q(y | x). One output per hypothesis is enough: a linear program of k m entries,
           solved like that of a Bayes-optimal mechanism, and proved by one price per symbol
Stein      n reports, one error fixed: the other falls like e^(-n KL(M_i || M_j)). The smallest exponent over all
           ordered pairs is maximized, by the staircase program of `family`
Chernoff   n reports, all errors count: they fall like e^(-n C), C the smallest Chernoff information over pairs, for
           every prior. C = max over s of -ln(1 - D_s), D_s = 1 - sum of M_i^s M_j^(1-s), is not linear in the
           mechanism. D_1/2 (squared Hellinger) is, and reports whose ratios are within E = e^epsilon have
           D_s <= rho D_1/2 for every s. So the mechanism with the best D_1/2 has almost the best C:
           C <= -ln(1 - rho D_1/2) for every mechanism, and C >= -ln(1 - D_1/2)
Factor     rho = (s (E - 1) + 1 - E^s) / ((sqrt(E) - 1)^2 / 2) at s = ln((E - 1) / epsilon) / epsilon: 1.007 at
           epsilon 1, 1.027 at 2, 1.096 at 4. Why: with h_s(u) = s u + 1 - s - u^s, D_s = sum of M_j h_s(M_i / M_j). For
           s >= 1/2 h_s / h_1/2 rises with u, because both are 0 at u = 1 and the ratio of their slopes,
           2s (1 - u^(s-1)) / (1 - u^(-1/2)), rises; so u = E is the worst, and h_s(E) is concave in s. For s < 1/2
           exchange M_i and M_j
Source     Chernoff 1952; the question of m hypotheses is from Kairouz, Oh and Viswanath 2014
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations
from typing import Any

import numpy as np

from deniable import exact
from deniable.channels import Channel
from deniable.channels.hypothesis import least_chernoff_information
from deniable.channels.laws import Laws, integer_weights, plain_weights, probability_vector, read_laws
from deniable.design.base import Certificate, Check, Design, Verdict, read_number
from deniable.design.bayes import MOST_CELLS, settled, solve
from deniable.design.bayes_certificate import Relation, ceiling, decimal, floor, proven_bound
from deniable.design.staircase import Divergences, StaircaseCertificate, family
from deniable.errors import ChannelError, InternalError, LabelError, ShapeError, SpecError
from deniable.labels import as_label, as_labels, index_of, label_key, label_spec, load_label
from deniable.specs import integer_text, read_integer
from deniable.trace import Progress, Watch

GOALS = ("guess", "stein", "chernoff")


def several(
    laws: Mapping[Any, Any] | Sequence[Any],
    epsilon: Any,
    prior: Mapping[Any, Any] | Sequence[Any] | None = None,
    goal: str = "guess",
    inputs: Iterable[Any] | None = None,
    progress: Progress | None = None,
) -> Design:
    """The mechanism that distinguishes several hypotheses best.

    Args:
        laws: {name: law} or a list of laws; a law is a list of probabilities or {symbol: probability}.
        epsilon: The guarantee.
        prior: Probability of each hypothesis, for goal "guess"; uniform if None.
        goal: "guess" (one report: probability of a right guess), "stein" or "chernoff" (many reports: smallest error
            exponent over pairs).
        inputs: The symbols, in order; taken from the laws if None.
        progress: Called with a description of the current work.

    Returns:
        The mechanism.

    Raises:
        LabelError: The goal is unknown, or a prior is given for an error exponent.

    >>> design = several([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.25, 0.25, 0.5]], epsilon=1)
    >>> round(design.value, 9), design.channel.outputs, design.relative_gap < 1e-9
    (0.394029221, (0, 1, 2), True)
    """
    if goal not in GOALS:
        raise LabelError(f"the goal is one of {', '.join(GOALS)}, not {goal!r}")
    found = read_laws(laws, inputs)
    if goal == "guess":
        return _guess(found, epsilon, _prior(prior, found), progress)
    if prior is not None:
        raise LabelError("a prior belongs to goal='guess': error exponents do not depend on it")
    given = [found.fractions(h) for h in range(found.count)]
    if goal == "stein":
        design = family(list(permutations(given, 2)), epsilon, "kl", inputs=found.inputs, progress=progress)
        name, certify = f"smallest Stein exponent of {found.count} laws", partial(_certify_stein, found, design)
        return replace(design, name=name, certify=certify, hypotheses=found)
    return _chernoff(found, family(list(combinations(given, 2)), epsilon, "hellinger2", inputs=found.inputs,
                                   progress=progress))  # fmt: skip


def _prior(given: Any, laws: Laws) -> tuple[int, ...]:
    if given is None:
        return (1,) * laws.count
    if isinstance(given, Mapping):
        places = index_of(laws.names)
        weights: list[Any] = [0] * laws.count
        for name, share in given.items():
            place = places.get(label_key(as_label(name)))
            if place is None:
                raise LabelError(f"the prior names {name!r}, which is not one of the {laws.count} hypotheses")
            weights[place] = share
        given = weights
    probability_vector(given, laws.count)
    return integer_weights(given)


# -- one report --------------------------------------------------------------------------------------------


def _joint(laws: Laws, prior: tuple[int, ...]) -> list[list[Fraction]]:
    """[hypothesis][symbol]: the probability of both."""
    total = sum(prior)
    return [
        [Fraction(weight * w, total * sum(law)) for w in law] for weight, law in zip(prior, laws.weights, strict=True)
    ]


def _right(joint: Sequence[Sequence[Fraction]], channel: Channel, chosen: Sequence[int]) -> Fraction:
    """The probability that the guess is right when each output is read as its hypothesis."""
    law = channel.numerators
    hits = (share * int(law[x, y]) for y, h in enumerate(chosen) for x, share in enumerate(joint[h]) if share)
    return sum(hits, Fraction(0)) / channel.denominator


def _bound(joint: Sequence[Sequence[Fraction]], prices: Sequence[float], epsilon: Fraction) -> float:
    """The bound that the prices prove: no mechanism guesses right more often."""
    costs = [[-decimal(share, ROUND_CEILING) for share in row] for row in joint]
    return -floor(proven_bound(costs, prices, Relation(len(prices), None), epsilon))


def _guess(laws: Laws, epsilon: Any, prior: tuple[int, ...], progress: Progress | None) -> Design:
    began = time.perf_counter()
    level, watch = exact.as_epsilon(epsilon), Watch(progress)
    if laws.count * laws.size > MOST_CELLS:
        raise ShapeError(f"{laws.count} laws of {laws.size} symbols are more than {MOST_CELLS} numbers: merge symbols")
    joint = _joint(laws, prior)
    cost = -np.array([[float(share) for share in row] for row in joint])
    relation = Relation(laws.size, None)
    answer = solve(cost, relation, level, None, watch)
    if answer is None:
        raise ChannelError("the solver gave up on this program: try an epsilon closer to 1, or fewer symbols")
    watch.say("making the ratios exact, and the proof")
    rows, used = settled(answer.rows, cost, relation, level)
    channel = Channel.from_floats(rows, level, inputs=laws.inputs, outputs=[laws.names[h] for h in used])
    right = _right(joint, channel, used)
    value = -ceiling(-right)
    watch.worth(value)
    # In case the solver's prices are poor: the value of a guess that knows the symbol.
    tables = (tuple(answer.prices.tolist()), tuple(math.nextafter(least, -1) for least in cost.min(axis=0)))
    certify = partial(_certify_guess, laws, level, prior, channel, tables, value, joint)
    spent = time.perf_counter() - began
    name = f"best guess among {laws.count} laws"
    steps = tuple(watch.steps)
    return Design(name, level, value, channel, certify, laws.inputs, steps, spent, hypotheses=laws)


def _certify_guess(
    laws: Laws,
    epsilon: Fraction,
    prior: tuple[int, ...],
    channel: Channel,
    tables: Sequence[tuple[float, ...]],
    value: float,
    joint: Sequence[Sequence[Fraction]],
) -> GuessCertificate:
    bound, prices = min((_bound(joint, prices, epsilon), prices) for prices in tables)
    return GuessCertificate(laws, epsilon, prior, channel, prices, value, bound)


@dataclass(frozen=True)
class GuessCertificate(Certificate):
    """Laws, prior, an exact channel whose outputs are hypotheses, and one price per symbol, which prove the bound.

    Args:
        laws: The hypotheses.
        epsilon: The guarantee.
        prior: Integer weights of the hypotheses.
        channel: The mechanism.
        prices: Dual price of each symbol.
        value: Probability of a right guess.
        bound: Upper bound for every mechanism.
    """

    kind = "guess"

    laws: Laws
    epsilon: Fraction
    prior: tuple[int, ...]
    channel: Channel
    prices: tuple[float, ...]
    value: float
    bound: float

    @property
    def rigor(self) -> str:
        return "proved"

    @property
    def mechanism(self) -> Channel:
        return self.channel

    @property
    def hypotheses(self) -> Laws:
        return replace(self.laws, inputs=self.channel.inputs)

    def verify(self) -> Verdict:
        places = index_of(self.laws.names)
        chosen = [places.get(label_key(output)) for output in self.channel.outputs]
        fits = self.channel.shape[0] == self.laws.size == len(self.prices) and None not in chosen
        fits = fits and len(self.prior) == self.laws.count and min(self.prior) >= 0 and sum(self.prior) > 0
        level = f"largest ratio has logarithm {self.channel.epsilon:.12g}, asked {exact.shown(self.epsilon)}"
        checks = [
            Check("rows", fits, f"{self.channel.shape[0]} rows of integers; outputs are hypotheses"),
            Check("ratios", self.channel.satisfies(self.epsilon), level),
        ]
        if fits:
            joint = _joint(self.laws, self.prior)
            right = _right(joint, self.channel, [h for h in chosen if h is not None])
            near = right - right / 10**12 <= Fraction(self.value) <= right
            least = _bound(joint, self.prices, self.epsilon)
            checks += [
                Check("value", near, f"{float(right):.12g} where {self.value:.12g} is claimed"),
                Check("bound", least <= self.bound, f"the prices prove {least:.12g}, {self.bound:.12g} is claimed"),
            ]
        return Verdict(tuple(checks), self.rigor)

    def content(self) -> dict[str, Any]:
        return {
            "epsilon": exact.canonical(self.epsilon),
            "hypotheses": [label_spec(name) for name in self.laws.names],
            "laws": [[integer_text(w) for w in law] for law in self.laws.weights],
            "prior": [integer_text(w) for w in self.prior],
            "channel": self.channel.spec(),
            "prices": [repr(p) for p in self.prices],
            "value": repr(self.value),
            "bound": repr(self.bound),
        }

    @classmethod
    def read(cls, content: dict[str, Any]) -> GuessCertificate:
        weights = tuple(tuple(read_integer(w) for w in law) for law in content["laws"])
        names = as_labels([load_label(name) for name in content["hypotheses"]], len(weights), "hypothesis")
        return cls(
            Laws(weights, names),
            exact.as_epsilon(content["epsilon"]),
            tuple(read_integer(w) for w in content["prior"]),
            Channel.load(content["channel"]),
            tuple(read_number(p) for p in content["prices"]),
            read_number(content["value"]),
            read_number(content["bound"]),
        )


# -- many reports ------------------------------------------------------------------------------------------


def hellinger_factor(epsilon: Any) -> float:
    """The largest D_s / D_1/2 over s, for two laws whose ratios are within e^epsilon.

    Args:
        epsilon: The guarantee.

    Returns:
        The factor, slightly above 1.

    >>> [round(hellinger_factor(epsilon), 4) for epsilon in (0.1, 1, 2, 4)]
    [1.0001, 1.0069, 1.0267, 1.0963]
    """
    level = float(exact.as_epsilon(epsilon))
    if level < 1e-2:
        return 1 + level**2 / 100  # the factor is 1 + epsilon^2 / 144 to the next order
    grown = math.expm1(level)
    order = math.log(grown / level) / level
    return (order * grown + 1 - grown / level) / (math.expm1(level / 2) ** 2 / 2) * (1 + 1e-9)


def _chernoff(laws: Laws, design: Design) -> Design:
    value = _information(laws, design.channel)
    certify = partial(_certify_chernoff, laws, design, value)
    name = f"smallest Chernoff information of {laws.count} laws"
    return replace(design, name=name, value=value, certify=certify, hypotheses=laws)


def _information(laws: Laws, channel: Channel) -> float:
    """The smallest Chernoff information over pairs, rounded down a little."""
    reports = [channel.push([float(share) for share in laws.fractions(h)]) for h in range(laws.count)]
    return least_chernoff_information(reports).value * (1 - 1e-12)


def _ceiling(epsilon: Fraction, distance: float) -> float:
    """Upper bound on the Chernoff information if D_1/2 is at most `distance`: by the factor, or by concavity twice."""
    nearly = min(hellinger_factor(epsilon) * distance, 1.0)
    one = -math.log1p(-nearly) if nearly < 1 else math.inf
    two = -2 * math.log1p(-distance) if distance < 1 else math.inf
    return min(one, two) * (1 + 1e-12)


def _family_certificate(design: Design) -> StaircaseCertificate:
    found = design.certificate
    if not isinstance(found, StaircaseCertificate):
        raise InternalError("the design of a family has a staircase certificate")
    return found


def _certify_stein(laws: Laws, design: Design) -> StaircaseCertificate:
    return replace(_family_certificate(design), names=laws.names)


def _certify_chernoff(laws: Laws, design: Design, value: float) -> ChernoffCertificate:
    found = _family_certificate(design)
    return ChernoffCertificate(laws, found, value, _ceiling(design.epsilon, found.bound))


@dataclass(frozen=True)
class ChernoffCertificate(Certificate):
    """Laws, and the certificate of the mechanism with the largest smallest Hellinger distance between them.

    Args:
        laws: The hypotheses.
        hellinger: Certificate of the mechanism for the Hellinger distance.
        value: The smallest Chernoff information that the mechanism attains.
        bound: Upper bound for every mechanism.
    """

    kind = "chernoff"

    laws: Laws
    hellinger: StaircaseCertificate
    value: float
    bound: float

    @property
    def rigor(self) -> str:
        return self.hellinger.rigor

    @property
    def mechanism(self) -> Channel:
        return self.hellinger.channel

    @property
    def hypotheses(self) -> Laws:
        return replace(self.laws, inputs=self.mechanism.inputs)

    def verify(self) -> Verdict:
        inner, utility = self.hellinger.verify(), self.hellinger.utility
        listed = list(combinations(self.laws.weights, 2))
        about = (
            isinstance(utility, Divergences)
            and utility.divergence.name == "hellinger2"
            and self.hellinger.shares in (None, (1.0,))  # two laws form one pair
            and [(plain_weights(pair.weights0), plain_weights(pair.weights1)) for pair in utility.pairs]
            == [(plain_weights(one), plain_weights(other)) for one, other in listed]
        )
        checks = [*inner.checks, Check("pairs", about, f"all {len(listed)} pairs of {self.laws.count} laws")]
        if about and inner:
            value = _information(self.laws, self.hellinger.channel)
            near = abs(self.value - value) <= 1e-9 * value
            checks.append(Check("exponent", near, f"{value:.12g} where {self.value:.12g} is claimed"))
            least = _ceiling(self.hellinger.epsilon, self.hellinger.bound)
            told = f"the distance proves {least:.12g}, {self.bound:.12g} is claimed"
            checks.append(Check("largest exponent", least <= self.bound * (1 + 1e-12), told))
        return Verdict(tuple(checks), self.rigor)

    def content(self) -> dict[str, Any]:
        return {
            "hypotheses": [label_spec(name) for name in self.laws.names],
            "laws": [[integer_text(w) for w in law] for law in self.laws.weights],
            "hellinger": self.hellinger.spec(),
            "value": repr(self.value),
            "bound": repr(self.bound),
        }

    @classmethod
    def read(cls, content: dict[str, Any]) -> ChernoffCertificate:
        inner = Certificate.load(content["hellinger"])
        if not isinstance(inner, StaircaseCertificate):
            raise SpecError('"hellinger" of a Chernoff certificate is a staircase certificate')
        weights = tuple(tuple(read_integer(w) for w in law) for law in content["laws"])
        names = as_labels([load_label(name) for name in content["hypotheses"]], len(weights), "hypothesis")
        return cls(Laws(weights, names), inner, read_number(content["value"]), read_number(content["bound"]))

"""What an attacker who sees reports can guess about one person, compared with the bound from epsilon.

Guess      the Bayes-optimal one: the likeliest answer given report and prior. It is right with probability
           sum_y max_x prior(x) P(y | x): exactly, over all bytes of a report, if they can be listed, else by the
           protocol's own formula
Bound      a report of ratio r makes an answer of prior p at most r p / (r p + 1 - p) sure, so no guess is right more
           often than that for the likeliest answer; stated for guarantees between any two answers, without delta
Repeated   several fresh reports of one answer, of one person or of a household: the best guess between the two answers
           that are easiest to distinguish is right with probability m + (1 - m) delta(ln(m / (1 - m))), for the larger
           prior m, by composition of the exact laws; "at most" if a law is too large to list or pairs differ
Simulated  the same guess with real reports, as a check
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels import Channel, posterior_vulnerability
from deniable.channels.utilities import read_prior
from deniable.domains import ListedDomain
from deniable.errors import ChannelError, NumberError
from deniable.privacy.composition import GROUP, LONGITUDINAL, CannotCompose, compose
from deniable.protocols import Protocol
from deniable.protocols.law import ANY
from deniable.randomness import Bits, Simulation

_MOST_CELLS, _MOST_COMPOSED = 1 << 16, 1 << 12
"""Answers times reports up to which laws are listed, and up to which they are composed pair by pair."""

ENUMERATED, FORMULA, UNKNOWN = "enumerated", "formula", "unknown"


def surest(ratio: Any, prior: Any = Fraction(1, 2)) -> float:
    """How sure at most anybody becomes of an answer that had this prior, by a likelihood ratio.

    Args:
        ratio: The likelihood ratio.
        prior: Probability of the answer beforehand.

    Returns:
        The largest posterior probability.

    >>> surest(3), surest(3, "1/10")
    (0.75, 0.25)
    """
    odds, before = exact.fraction(ratio, "the ratio"), _chance(prior)
    return float(odds * before / (odds * before + 1 - before))


@dataclass(frozen=True)
class Attack:
    """The best guess of one person's answer from one report.

    Args:
        protocol: The protocol.
        prior: The attacker's probability of each answer beforehand; empty if the answers are not listed.
        success: How often the guess is right; None if not known, and `simulate` may find it.
        bound: Upper bound on how often any guess is right, by the exact ratio of a report; None if it bounds nothing.
        method: "enumerated" over all reports, by the protocol's own "formula", or "unknown".

    >>> from deniable.protocols import GRR
    >>> found = attack(GRR(["red", "green", "blue"], epsilon=1))
    >>> round(found.success, 4), round(found.bound, 4), round(found.blind, 4), found.method
    (0.5761, 0.5761, 0.3333, 'enumerated')
    """

    protocol: Protocol
    prior: tuple[float, ...]
    success: float | None
    bound: float | None
    method: str

    @property
    def blind(self) -> float | None:
        """How often a guess without any report is right."""
        return max(self.prior, default=None)

    @property
    def words(self) -> str:
        """The finding in a sentence or two."""
        before = (
            "" if self.blind is None else f"Without a report the best guess is right in {percent_of_cases(self.blind)}"
        )
        after = None if self.success is None else f"in {percent_of_cases(self.success)}"
        if self.bound is not None and self.success is None:
            after = f"in {percent_of_cases(self.bound)} at most"
        if after is None:
            return f"{before or 'How often a guess is right is not known'}."
        return f"{before}, with one {after}." if before else f"With one report the best guess is right {after}."

    def simulate(self, n: int = 10_000, seed: int = 0) -> float:
        """How often the guess is right for n people with answers drawn from the prior, and real reports.

        The standard error is sqrt(s (1 - s) / n) for a success s. Raises ChannelError where no guess can be computed.
        """
        if exact.whole(n, "the number of people") < 1:
            raise NumberError("a simulation needs one person at least")
        reader, prior = self._reader, np.array(self.prior)
        random = np.random.default_rng([seed, n])
        truth = random.choice(prior.size, size=n, p=prior)
        return float((self._guesses(reader.sent(truth, Simulation(seed)), prior) == truth).mean())

    def _guesses(self, rows: NDArray[np.uint8], prior: NDArray[np.float64]) -> NDArray[np.intp]:
        """The likeliest answer given each report."""
        parts = np.array_split(rows, max(1, rows.shape[0] * prior.size >> 22))
        return np.concatenate([(self._reader.likelihoods(part) * prior).argmax(axis=1) for part in parts])

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self.protocol)


class Reader:
    """How likely the reports of a protocol are for each of its answers.

    By what a report supports, where that says it all, else by its law where that is listed. Raises ChannelError where
    answers are not listed, or neither way is open.
    """

    def __init__(self, protocol: Protocol) -> None:
        if not isinstance(protocol.domain, ListedDomain):
            raise ChannelError(f"the answers of {protocol.domain} are not listed, so none is guessed here")
        self.protocol = protocol
        self.labels = list(protocol.domain.labels)
        self.size = len(self.labels)

    @cached_property
    def listed(self) -> Channel | None:
        return _listed(self.protocol)

    @property
    def channel(self) -> Channel:
        """The exact law of a report."""
        if self.listed is None:
            raise ChannelError(
                f"the reports of this {self.protocol.name} are too many to list: simulate the attack with fewer answers"
            )
        return self.listed

    def sent(self, answers: NDArray[np.intp], bits: Bits) -> NDArray[np.uint8]:
        """Real reports of these answers, given by their places."""
        return self.protocol.privatize([self.labels[place] for place in answers], bits=bits).array

    def likelihoods(self, rows: NDArray[np.uint8]) -> NDArray[np.float64]:
        """The likelihood of each answer given each report, up to a factor per report."""
        support = self.protocol.law().support
        if support is not None:
            # A report is `ratio` times as likely for every answer that it supports as for every other one.
            return np.where(support.of(rows), float(self.protocol.ratio), 1.0)
        forms, place = np.unique(rows, axis=0, return_inverse=True)
        columns = [self.channel.output_index(form.tobytes().hex()) for form in forms]
        return np.asarray(self.channel.rows.T[columns][place.reshape(-1)])


def attack(protocol: Protocol, prior: Any = None, most_cells: int = _MOST_CELLS) -> Attack:
    """The Bayes-optimal guess of an answer from one report, for any protocol and prior.

    Args:
        protocol: The protocol.
        prior: Probability of each answer, as a vector or by answer; uniform if None.
        most_cells: The law is enumerated if answers times reports are at most this many.

    Returns:
        How often the best guess is right, with its bound.

    Raises:
        ChannelError: A prior is given, but the answers are not listed.

    >>> from deniable.protocols import GRR
    >>> attack(GRR(["yes", "no"], epsilon=1), {"yes": 0.1, "no": 0.9}).words
    'Without a report the best guess is right in 90.0 % of all cases, with one in 90.0 % of all cases.'
    """
    domain = protocol.domain
    if not isinstance(domain, ListedDomain):
        if prior is not None:
            raise ChannelError(f"the answers of {domain} are not listed, so they have no prior here")
        return Attack(
            protocol, (), protocol.worth().guess, None, UNKNOWN if protocol.worth().guess is None else FORMULA
        )
    uniform = np.full(domain.size, 1 / domain.size)
    weights = uniform if prior is None else read_prior(prior, list(domain.labels))
    listed = _listed(protocol, most_cells)
    success, method = None, UNKNOWN
    if listed is not None:
        success, method = posterior_vulnerability(listed, weights), ENUMERATED
    elif protocol.worth().guess is not None and np.array_equal(weights, uniform):
        success, method = protocol.worth().guess, FORMULA
    return Attack(protocol, tuple(weights.tolist()), success, _bound(protocol, float(weights.max())), method)


def _listed(protocol: Protocol, cells: int = _MOST_CELLS) -> Channel | None:
    """The exact law of a report, one row per answer, where it can be listed."""
    domain = protocol.domain
    if not isinstance(domain, ListedDomain):
        return None
    try:
        channel = protocol.channel(max_cells=cells)
    except ChannelError:
        return None
    return channel if list(channel.inputs) == list(domain.labels) else None


def _bound(protocol: Protocol, likeliest: float) -> float | None:
    promised = protocol.guarantee
    if promised.relation != ANY or promised.delta or protocol.law().clear:
        return None
    return surest(protocol.ratio, likeliest) if likeliest < 1 else 1.0


@dataclass(frozen=True)
class Repeated:
    """The best guess between two answers from several fresh reports of the same one.

    Args:
        reports: Number of reports.
        prior: Probability of one of the two answers beforehand.
        success: How often the guess is right, for the two answers that are easiest to distinguish.
        surest: The largest posterior probability of the answer that had this prior.
        is_exact: Whether `success` is that of the law itself, to rounding; else it is that at most.
    """

    reports: int
    prior: float
    success: float
    surest: float
    is_exact: bool


def averaging(protocol: Protocol, reports: int, prior: Any = Fraction(1, 2), how: str = LONGITUDINAL) -> Repeated:
    """What averaging `reports` fresh reports of one answer reveals: one person's over time, or a household's.

    Args:
        protocol: The protocol.
        reports: Number of fresh reports.
        prior: Probability of one of the two answers beforehand.
        how: "longitudinal" (one device; a device that keeps a state keeps one) or "group" (one report each of several
            devices).

    Returns:
        How often the best guess is right.

    Raises:
        NumberError: There are no reports, or `how` is unknown.

    >>> from deniable.protocols import GRR
    >>> [round(averaging(GRR(["yes", "no"], epsilon=1), n).success, 4) for n in (1, 3, 12)]
    [0.7311, 0.8219, 0.9519]
    """
    before = _chance(prior)
    if exact.whole(reports, "the number of reports") < 1:
        raise NumberError("somebody who averages has one report at least")
    if how not in (LONGITUDINAL, GROUP):
        raise NumberError(f'reports are those of one device, "{LONGITUDINAL}", or of a "{GROUP}" of them, not {how!r}')
    if not protocol.traits.local:
        # In a sum a household's answers add up before the noise is added: the laws of single reports do not apply.
        raise CannotCompose(f"a report of {protocol.name} keeps no epsilon by itself, so several of them say nothing")
    kept = how == LONGITUDINAL and not protocol.traits.fresh
    listed = _listed(protocol, _MOST_COMPOSED)
    if protocol.traits.fresh:  # any law of this epsilon, where the own one is too large to list
        whole = compose(protocol.guarantee if listed is None else protocol, times=reports)
    else:
        whole = compose(protocol, times=reports, how=how, values=1 if kept else None)
    larger = max(before, 1 - before)
    told = whole.delta(math.log(larger / (1 - larger)))
    success = float(larger) + float(1 - larger) * told
    composed = all(loss.is_exact for parts in whole.options for loss, _ in parts)
    known = protocol.traits.fresh and composed and listed is not None and _alike(listed)
    most = 1.0 if whole.unbounded else surest(whole.ratio, before)
    return Repeated(reports, float(before), min(success, 1.0), most, known)


def _alike(channel: Channel) -> bool:
    """Whether all pairs of answers have the same laws, so that a composition's curve is that of any pair."""
    rows = channel.numerators.tolist()
    return len({tuple(sorted(zip(one, other, strict=True))) for one, other in permutations(rows, 2)}) == 1


def _chance(prior: Any) -> Fraction:
    found = exact.fraction(prior, "the prior")
    if not 0 < found < 1:
        raise NumberError("a prior is a probability between 0 and 1")
    return found


def percent_of_cases(share: float) -> str:
    return f"{100 * share:.1f} % of all cases"

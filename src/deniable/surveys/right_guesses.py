"""How often somebody who thinks all answers equally likely guesses an answer right, without and with the reports.

Secret     the answer, if answers are listed; for a number, the number within a tenth of its range; for a record, the
           part that is easiest to guess; for profiles and places, which of all of them; for sets, whether an item is
           in it, by somebody who knows the rest; for text, one of two; for courses of answers, one of two that stay
Once       from one report. Exact if a kind has a formula or a small law, else a bound
Numbers    100 numbers of the range, or all whole ones, are equally likely. A guess is the best interval: exact for one
           report, by the law of every number. For several, the mean posterior of the best interval, simulated
Always     from all that a device may send, if the answer stays the same. Reports that repeat, or are one stream, reveal
           no more than one. From a kept state no report reveals more than the state. Fresh reports: exact for
           randomized response and bitmaps; for hashes as if they were independent, which simulations confirm to one
           guess in a hundred, and simulated for numbers and tables ("about"); else a bound ("at most")
Bound      for T reports of epsilon each, among k equally likely secrets, the smallest of: 1 / (1 + (k - 1) e^(-T eps));
           for k = 2 the T-fold binary randomized response (Kairouz, Oh and Viswanath 2015); for every order a > 1
           k^(1/a - 1) M^(T/a), where M is the largest mean of (P/Q)^a for a report's law P and the mean law Q of all
           secrets (Sibson's capacity); and (k s)^T / k, for a success s from one report (leakage multiplies). A delta
           is added per report
Browser    `web/pages/guesses.js` computes the same facts by itself, and a test compares the two
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from deniable.domains import Integers, Interval, KeyNumbers, ListedDomain, Records, Sets
from deniable.protocols import Protocol
from deniable.protocols.guessing import (
    ABOUT,
    AT_MOST,
    MOST_COUNTED,
    WAYS,
    Right,
    binomial,
    bound,
    ends_of,
    interval_bound,
    known,
    laws_of,
    simulated,
)
from deniable.protocols.law import ANY, METRIC, PROFILES, STREAM, SUM
from deniable.surveys.survey import Survey
from deniable.words import Figure, Word, word

_POINTS, _MOST_POINTS = 100, 1000
"""The numbers of an interval that stand for all, and the largest number of whole numbers that stand for themselves."""
_TENTH = 10
"""A guess of a number is right within this part of the range."""


class Guessed(NamedTuple):
    """What somebody thinks beforehand, and how often the best guess is right."""

    thinks: Word
    yours: Word
    before: float
    once: Right
    always: Right


def guesses(survey: Survey) -> list[Guessed]:
    """One entry per question.

    >>> from deniable.protocols import OUE
    >>> from deniable.surveys import Question, Survey
    >>> (found,) = guesses(Survey("shop", [Question("product", "Which one?", OUE(1000, epsilon=4))]))
    >>> found.thinks, found.before, round(found.once.share, 4)
    (Word(id='thinks.answers.all', facts={'n': 1000}), 0.001, 0.0278)
    """
    rule = None if survey.terms is None else survey.terms.longitudinal
    times = 1 if rule is None or rule.keeps else rule.epochs
    return [guessed(question.protocol, times, rule is not None and rule.is_two_stage) for question in survey]


@lru_cache(maxsize=4096)
def guessed(protocol: Protocol, times: int = 1, stages: bool = False) -> Guessed:
    """One question that is answered by `times` fresh reports, or with `stages` from one kept state."""
    asked: Protocol = getattr(protocol, "inner", protocol) if protocol.law().clear else protocol
    parts = _parts(asked)
    if parts:
        return max((_part(*part, times) for part in parts), key=lambda part: part.always.share)
    if _is_number(asked):
        return _number(asked, times, stages)
    thinks, yours, size = _secret(asked)
    once = _right(asked, size, 1, None)
    kept = asked.law().stages if stages else None
    if kept is not None:
        always = Right(bound(float(kept.forever), size), AT_MOST)
    else:
        always = once if times == 1 else _right(asked, size, times, once)
    return Guessed(thinks, yours, 1 / size, once, always)


def _secret(protocol: Protocol) -> tuple[Word, Word, int]:
    """What is thought beforehand, what is guessed, and among how many."""
    relation, domain, yours = protocol.guarantee.relation, protocol.domain, word("guessed.yours")
    if relation == STREAM:
        return word("thinks.courses"), yours, 2
    if isinstance(domain, Records):
        sizes = [column.size if isinstance(column, ListedDomain) else 2 for _, column in domain.columns]
        if relation == PROFILES:
            return either("thinks.profiles", sizes[0]), yours, sizes[0]
        if relation == METRIC:
            return either("thinks.cells", math.prod(sizes)), yours, math.prod(sizes)
        return word("thinks.record"), word("guessed.easiest"), min(sizes)
    if isinstance(domain, Sets | KeyNumbers):
        return word("thinks.member"), word("guessed.member"), 2
    if isinstance(domain, ListedDomain):
        return either("thinks.answers", domain.size), yours, domain.size
    return word("thinks.two"), yours, 2


def either(id: str, n: int) -> Word:
    """The entry for two of something, which are "both", or for all of them."""
    return word(f"{id}.both") if n == 2 else word(f"{id}.all", n=n)


def _parts(protocol: Protocol) -> list[tuple[str, float, Protocol]]:
    """The columns of a record, if chance picks the column that a report is about: name, chance and protocol."""
    choice = protocol.law().choice
    if choice is None or not isinstance(protocol.domain, Records) or protocol.law().several_parts:
        return []
    asked = [(name, part.domain) for name, (part, _) in protocol.worth(1).parts.items()]
    if asked != list(protocol.domain.columns):
        return []
    each = zip(asked, choice.chances, choice.members, strict=True)
    return [(name, float(chance), member) for (name, _), chance, member in each]


def _part(name: str, chance: float, protocol: Protocol, times: int) -> Guessed:
    """A part that only some of the reports are about: the other reports reveal nothing about it."""
    each = [guessed(protocol, number) for number in range(1, min(times, MOST_COUNTED) + 1)]
    found = each[0]
    once = found.once._replace(share=chance * found.once.share + (1 - chance) * found.before)
    if times == 1:
        always = once
    elif times > MOST_COUNTED:
        always = Right(guessed(protocol, times).always.share, AT_MOST)
    else:
        rights = [Right(found.before), *(one.always for one in each)]
        weights = binomial(times, chance)
        share = sum(weight * right.share for weight, right in zip(weights, rights, strict=True))
        always = Right(share, roughest(rights))
    return Guessed(found.thinks, word("guessed.part", name=name), found.before, once, always)


def roughest(found: Iterable[Right]) -> str:
    """How precise a figure is that is computed from these."""
    return WAYS[max(WAYS.index(one.how) for one in found)]


def _right(protocol: Protocol, size: int, times: int, once: Right | None) -> Right:
    found = known(protocol, times)
    if found is not None and found.how != AT_MOST:
        return found
    promised, most = protocol.guarantee, 1.0 if found is None else found.share
    if promised.relation in (ANY, SUM, STREAM):
        most = min(most, bound(float(protocol.epsilon), size, times) + times * float(promised.delta))
    if once is not None and times * math.log(size * once.share) < math.log(size):
        most = min(most, math.exp(times * math.log(size * once.share)) / size)
    return Right(most, AT_MOST)


# -- numbers -------------------------------------------------------------------------------------------


def _is_number(protocol: Protocol) -> bool:
    if protocol.guarantee.relation == STREAM:
        return False
    domain = protocol.domain
    return isinstance(domain, Interval) or (isinstance(domain, Integers) and protocol.worth().read != "shares")


def _number(protocol: Protocol, times: int, stages: bool) -> Guessed:
    """A number within a tenth of its range: the best interval of that width."""
    low, high = ends_of(protocol.domain)
    whole = isinstance(protocol.domain, Integers) and protocol.domain.size <= _MOST_POINTS
    count = int(high - low) + 1 if whole else _POINTS
    scaled = np.arange(count) / (count - 1) if whole else (np.arange(count) + 0.5) / count
    near = (count - 1) // _TENTH if whole else (high - low) / _TENTH
    width = 2 * int(near) + 1 if whole else 2 * count // _TENTH
    unit = getattr(protocol.domain, "unit", "")
    yours = (
        word("guessed.yours")
        if not near
        else word("guessed.near", n=Figure(f"{near:g}"), unit=unit and f"\u00a0{unit}")
    )
    laws = laws_of(protocol, low + scaled * (high - low))
    kept = protocol.law().stages if stages else None
    level = times * float(protocol.epsilon) if kept is None else float(kept.forever)
    most = Right(interval_bound(level, count / width), AT_MOST)
    if laws is None:
        once = Right(interval_bound(float(protocol.epsilon), count / width), AT_MOST)
        return Guessed(word("thinks.numbers"), yours, width / count, once, most)
    sums = np.cumsum(laws, axis=0)
    inside = sums[width - 1 :] - np.concatenate([np.zeros((1, laws.shape[1])), sums[:-width]])
    once = Right(float(inside.max(axis=0).sum()) / count)
    if kept is None:
        most = once if times == 1 else Right(simulated(laws, width, times), ABOUT)
    return Guessed(word("thinks.numbers"), yours, width / count, once, most)

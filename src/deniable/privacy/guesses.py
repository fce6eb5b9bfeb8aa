"""The best guess of a secret from several reports: a person's identity, a household's answers, a returning device.

Secret       one of several rows: a person of a table, an answer, a stream of answers, a profile
Evidence     the exact law of all that is seen, in integers: observations after which the secrets are equally likely are
             one. Independent reports multiply; what is hidden beside the secret (a kept state, other people's answers)
             is a row of its own first, and rows are mixed at the end
Guess        the likeliest secrets given prior and evidence: right with probability sum_y (sum of the k largest
             prior(s) P(y | s)), exactly
Bound        if the likelihoods of any two secrets differ by at most a ratio r: k secrets with the prior p together are
             r p / (r p + 1 - p) sure at most. The ratio is that of theory: the product over independent reports, and
             over kept states that of a state. Among many secrets the leakage bounds more: a report multiplies the
             success of no guess by more than sum_y max_x P(y | x), and these multiply, too
Simulated    the same guess with real reports of the real protocols, also where the evidence is too large to list
Source       Gursoy, Liu, Chow, Truex and Wei 2022 (inference); Arcolezi, Gambs, Couchot and Palamidessi 2023
             (re-identification); Geumlek and Chaudhuri 2019 (profiles); Alvim et al. 2012 (leakage)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels import Channel
from deniable.channels.utilities import read_prior
from deniable.domains import ListedDomain
from deniable.errors import ChannelError, NumberError, ShapeError
from deniable.privacy.attacks import Reader, percent_of_cases
from deniable.protocols import Protocol
from deniable.protocols.law import ANY, STREAM
from deniable.protocols.profiles import ProfileMechanism, ProfileTable
from deniable.protocols.structures import Stages, Stream
from deniable.randomness import Bits, Simulation

Floats = NDArray[np.float64]
Ratio = Fraction | float
"""A likelihood ratio; infinite as a float."""

_MOST_CLASSES, _MOST_ROWS, _MOST_PEOPLE = 1 << 17, 1 << 10, 1 << 6
"""Limits of evidence that is listed: products of observations, rows with what is hidden, and people."""
_AT_ONCE = 1 << 22
ALL, ONE = "all", "one"


@dataclass(frozen=True, eq=False)
class Evidence:
    """The exact law of what is seen, one row per secret.

    Args:
        classes: The likelihoods of the secrets in lowest terms, and how much there is of each.
        total: What a row sums to: likelihood times amount.

    >>> coin = Evidence.of([(3, 1), (1, 3)])
    >>> (coin**3).success(), (coin**3).ratio, len((coin**3).classes)
    (Fraction(27, 32), Fraction(27, 1), 4)
    """

    classes: Mapping[tuple[int, ...], int]
    total: int

    @classmethod
    def of(cls, columns: Iterable[Sequence[int]]) -> Evidence:
        """The evidence of the columns of a matrix of integers whose rows have the same sum."""
        return cls._merged((column, 1) for column in columns)

    @classmethod
    def _merged(cls, columns: Iterable[tuple[Sequence[int], int]]) -> Evidence:
        found: dict[tuple[int, ...], int] = {}
        total = 0
        for column, amount in columns:
            common = math.gcd(*column)
            if common:
                key = tuple(each // common for each in column)
                found[key] = found.get(key, 0) + common * amount
                total += column[0] * amount
        return cls(found, total)

    @property
    def size(self) -> int:
        """How many secrets there are."""
        return len(next(iter(self.classes)))

    def __mul__(self, other: Evidence) -> Evidence:
        """Two independent observations. Raises ChannelError where they have too many outcomes."""
        if len(self.classes) * len(other.classes) > _MOST_CLASSES:
            raise ChannelError("what is seen has too many different outcomes to list: simulate the attack")
        columns = (
            (tuple(a * b for a, b in zip(one, two, strict=True)), many * more)
            for one, many in self.classes.items()
            for two, more in other.classes.items()
        )
        return self._merged(columns)

    def __pow__(self, times: int) -> Evidence:
        whole = Evidence({(1,) * self.size: 1}, 1)
        for _ in range(times):
            whole = whole * self
        return whole

    def picked(self, rows: Sequence[int]) -> Evidence:
        """The evidence about secrets, where each secret stands for one of these rows."""
        return self._merged((tuple(key[row] for row in rows), amount) for key, amount in self.classes.items())

    def mixed(self, groups: Sequence[int], weights: Sequence[Fraction]) -> Evidence:
        """The evidence about groups of rows: row h is behind its group with probability weights[h]."""
        scale = math.lcm(*(weight.denominator for weight in weights))
        parts = [int(weight * scale) for weight in weights]
        secrets = max(groups) + 1

        def column(key: tuple[int, ...]) -> list[int]:
            summed = [0] * secrets
            for group, part, each in zip(groups, parts, key, strict=True):
                summed[group] += part * each
            return summed

        return self._merged((column(key), amount) for key, amount in self.classes.items())

    @staticmethod
    def either(parts: Sequence[Evidence]) -> Evidence:
        """One of these observations, each with the same probability; it shows which one it is."""
        scale = math.lcm(*(part.total for part in parts))
        return Evidence._merged(
            (key, amount * (scale // part.total)) for part in parts for key, amount in part.classes.items()
        )

    def success(self, prior: Sequence[Fraction] | None = None, top: int = 1) -> Fraction:
        """How often the secret is among the `top` likeliest ones; all are equally likely without a prior."""
        weights = [Fraction(1, self.size)] * self.size if prior is None else list(prior)
        scale = math.lcm(*(weight.denominator for weight in weights))
        parts = [int(weight * scale) for weight in weights]
        best = 0
        for key, amount in self.classes.items():
            likely = sorted((part * each for part, each in zip(parts, key, strict=True)), reverse=True)
            best += amount * sum(likely[:top])
        return Fraction(best, self.total * scale)

    @property
    def ratio(self) -> Ratio:
        """The largest ratio of what is seen under two secrets, exactly."""
        worst = Fraction(1)
        for key in self.classes:
            low, high = min(key), max(key)
            if not low:
                return math.inf
            worst = max(worst, Fraction(high, low))
        return worst


@dataclass(frozen=True, eq=False)
class Guess:
    """The best guess of a secret, exact where the evidence can be listed, and simulated with real reports.

    Args:
        secrets: Number of possible secrets.
        prior: Probability of each secret beforehand.
        evidence: The exact law of all that is seen; None where it is too large to list.
        most: The largest likelihood ratio that theory allows; infinite where it bounds nothing.
        leakage: The largest factor by which the success of any guess is multiplied.
    """

    secrets: int
    prior: tuple[Fraction, ...] = field(repr=False)
    evidence: Evidence | None = field(repr=False)
    most: Ratio = field(repr=False)
    _play: Callable[[int, int], Floats] = field(repr=False)
    leakage: float = field(default=math.inf, repr=False)

    def blind(self, top: int = 1) -> float:
        """How often the secret is among the `top` likeliest ones before anything is seen."""
        return float(self._before(top))

    def success(self, top: int = 1) -> float | None:
        """How often it is among them afterwards, exactly; None if the evidence cannot be listed."""
        return None if self.evidence is None else float(self.evidence.success(self.prior, top))

    def bound(self, top: int = 1) -> float:
        """How often it is among them at most, by the ratio and the leakage that theory gives."""
        before = self._before(top)
        if isinstance(self.most, float) or before == 1:
            return 1.0
        return min(float(self.most * before / (self.most * before + 1 - before)), self.leakage * float(before))

    @property
    def epsilon(self) -> float | None:
        """The exact epsilon of all that is seen, between any two secrets; None where the evidence cannot be listed."""
        if self.evidence is None:
            return None
        found = self.evidence.ratio
        return math.inf if isinstance(found, float) else exact.log(found)

    def simulate(self, n: int = 10_000, seed: int = 0, top: int | Sequence[int] = 1) -> Any:
        """How often it is among the `top` for n secrets drawn from the prior, with real reports: one share per `top`.

        The standard error is sqrt(s (1 - s) / n) for a success s.
        """
        if exact.whole(n, "the number of secrets") < 1:
            raise NumberError("a simulation needs one secret at least")
        ranks = self._play(n, seed)
        if isinstance(top, int):
            return float((ranks < top).mean())
        return [float((ranks < each).mean()) for each in top]

    @property
    def words(self) -> str:
        """The finding in a sentence."""
        found = self.success()
        after = percent_of_cases(self.bound()) + " at most" if found is None else percent_of_cases(found)
        return f"Without any report the best guess is right in {percent_of_cases(self.blind())}, with all in {after}."

    def _before(self, top: int) -> Fraction:
        if exact.whole(top, "the number of guesses") < 1:
            raise NumberError("an attacker guesses one secret at least")
        return sum(sorted(self.prior, reverse=True)[:top], Fraction(0))


def _ranks(worth: Floats, truth: NDArray[np.intp], random: np.random.Generator) -> Floats:
    """The place of the true secret by its worth in each row, from 0; ties are broken by chance."""
    own = np.take_along_axis(worth, truth[:, None], axis=1)
    slack = 1e-9 * np.abs(own)
    above = (worth > own + slack).sum(axis=1)
    alike = (np.abs(worth - own) <= slack).sum(axis=1)
    return np.asarray(above + random.integers(alike), dtype=np.float64)


def _exactly(prior: Any, labels: Sequence[Any]) -> tuple[Fraction, ...]:
    """A prior in fractions that sum to one."""
    if prior is None:
        return (Fraction(1, len(labels)),) * len(labels)
    shares = [Fraction(float(share)) for share in read_prior(prior, list(labels))]
    whole = sum(shares)
    return tuple(share / whole for share in shares)


def _columns(channel: Channel) -> Evidence:
    return Evidence.of(tuple(int(each) for each in column) for column in channel.numerators.T)


def _try(made: Callable[[], Evidence]) -> Evidence | None:
    try:
        return made()
    except ChannelError:
        return None


# -- who: re-identification ----------------------------------------------------------------------------


def reidentify(
    people: Mapping[str, Sequence[Any]], asked: Any, surveys: int = 1, ask: str = ALL, repeat: bool = False
) -> Guess:
    """Who of these people sent all reports of one device, for somebody who knows what each of them would answer?

    Attributes that are asked and not in the table tell nothing here. A device draws each report afresh, or from a kept
    state if the protocol has two stages.

    Args:
        people: The attacker's table: one column of answers per attribute.
        asked: The protocol of each attribute, by name, or a survey.
        surveys: Number of surveys that are linked.
        ask: "all" if a device reports every attribute, "one" if it draws one and shows which.
        repeat: Whether a device sends the same reports in each survey.

    Returns:
        The best guess of the person.

    Raises:
        NumberError: `ask` is unknown, or there are no surveys.

    >>> from deniable.protocols import GRR
    >>> table = {"smokes": ["yes", "no", "yes", "no"], "sex": ["f", "f", "m", "m"]}
    >>> asked = {"smokes": GRR(["yes", "no"], 1), "sex": GRR(["f", "m"], 1)}
    >>> [round(reidentify(table, asked, surveys=s).success(), 4) for s in (1, 3, 12)]
    [0.5344, 0.6755, 0.9061]
    >>> [round(reidentify(table, asked, surveys=s).bound(), 4) for s in (1, 3, 12)]
    [0.5344, 0.9926, 1.0]
    """
    if ask not in (ALL, ONE):
        raise NumberError(f'a device reports "{ALL}" attributes or "{ONE}" in a survey, not {ask!r}')
    if exact.whole(surveys, "the number of surveys") < 1:
        raise NumberError("somebody who links surveys has one at least")
    protocols: dict[str, Protocol] = (
        {question.id: question.protocol for question in asked.questions} if hasattr(asked, "questions") else dict(asked)
    )
    known = {name: protocol for name, protocol in protocols.items() if name in people}
    lengths = {len(people[name]) for name in known}
    if not known or len(lengths) != 1 or not max(lengths):
        raise ShapeError("the attacker's table has a column of the same length, for some person, for what is asked")
    if ask == ONE and (repeat or any(not protocol.traits.fresh for protocol in known.values())):
        raise ChannelError("reports of one attribute per survey are followed only where each is drawn afresh")
    (count,) = lengths
    devices = {name: _Device(protocol, surveys, repeat) for name, protocol in known.items()}
    codes = {name: device.places(people[name]) for name, device in devices.items()}

    def evidence() -> Evidence:
        if count > _MOST_PEOPLE:
            raise ChannelError("there are too many people to list")
        if ask == ONE:
            each = [_columns(devices[name].channel).picked(codes[name].tolist()) for name in known]
            return Evidence.either(each) ** surveys
        whole = Evidence({(1,) * count: 1}, 1)
        for name in known:
            present = sorted(set(codes[name].tolist()))
            streams = [[place] * surveys for place in present]
            whole = whole * devices[name].evidence(streams).picked([present.index(code) for code in codes[name]])
        return whole

    def play(n: int, seed: int) -> Floats:
        random, bits = np.random.default_rng([seed, n]), Simulation(seed)
        ranks = []
        rest, step = n, max(1, _AT_ONCE // count)
        while rest:
            size = min(rest, step)
            rest -= size
            truth = random.integers(count, size=size)
            told = {name: np.zeros((size, device.reader.size)) for name, device in devices.items()}
            if ask == ONE:
                for _ in range(surveys):
                    which = random.integers(len(known), size=size)
                    for number, name in enumerate(known):
                        mine = np.flatnonzero(which == number)
                        if mine.size:
                            told[name][mine] += devices[name].simulated(codes[name][truth[mine]], bits, 1)
            else:
                for name in known:
                    told[name] += devices[name].simulated(codes[name][truth], bits, surveys)
            worth = sum((told[name][:, codes[name]] for name in known), np.zeros((size, count)))
            ranks.append(_ranks(np.exp(worth - worth.max(axis=1, keepdims=True)), truth, random))
        return np.concatenate(ranks)

    levels = [device.most(surveys) for device in devices.values()]
    most = max(levels) if ask == ONE else math.prod(levels)
    leaks = [device.leakage(1 if ask == ONE else surveys) for device in devices.values()]
    leakage = (sum(leaks) / len(leaks)) ** surveys if ask == ONE else math.prod(leaks)
    return Guess(count, (Fraction(1, count),) * count, _try(evidence), most, play, leakage)


# -- what: correlated answers --------------------------------------------------------------------------


class Case(NamedTuple):
    """A case of several answers that are independent of each other in it.

    Args:
        weight: How likely the case is.
        laws: How likely each answer is, for each of those who answer.
    """

    weight: Fraction
    laws: tuple[tuple[Fraction, ...], ...]


def household(prior: Any, people: int, agree: Any = 1) -> list[Case]:
    """People who share an answer with probability `agree`, and else answer each for themselves; for `correlated`.

    Args:
        prior: How common each answer is.
        people: Number of people.
        agree: Probability that all of them share one answer; the correlation of any two.

    Returns:
        The cases.

    Raises:
        NumberError: The shares do not sum to 1, or a number is out of range.

    >>> [float(case.weight) for case in household(["1/4", "3/4"], people=3, agree="1/2")]
    [0.125, 0.375, 0.5]
    """
    shares = tuple(exact.fraction(share, "a share") for share in prior)
    together = exact.fraction(agree, "the probability to agree")
    if not 0 <= together <= 1 or min(shares, default=-1) < 0 or sum(shares) != 1:
        raise NumberError("shares sum to 1, and people agree with a probability from 0 to 1")
    if exact.whole(people, "the number of people") < 1:
        raise NumberError("a household has one person at least")
    size = range(len(shares))
    alike = [
        Case(together * share, (tuple(Fraction(int(x == y)) for y in size),) * people) for x, share in enumerate(shares)
    ]
    apart = [Case(1 - together, (shares,) * people)] if together < 1 else []
    return [case for case in alike if case.weight] + apart


def correlated(asked: Protocol | Sequence[Protocol], joint: Any, about: int = 0) -> Guess:
    """What somebody answered, from the reports of all whose answers depend on it: a household, or further questions.

    Args:
        asked: The protocol of each answer, or one for all.
        joint: How likely answers are together: a table with one axis per protocol, or cases such as those of
            `household`.
        about: Position of the answer that is guessed.

    Returns:
        The best guess of that answer.

    Raises:
        ShapeError: The number of protocols does not fit `joint`.

    >>> from deniable.protocols import GRR
    >>> coin = GRR(["yes", "no"], epsilon=1)
    >>> found = [correlated(coin, household(["1/2", "1/2"], people=4, agree=agree)) for agree in (0, "1/2", 1)]
    >>> [(round(each.success(), 4), round(each.epsilon, 4)) for each in found]
    [(0.7311, 1.0), (0.7476, 2.2726), (0.8219, 4.0)]
    >>> smoking, cough = coin, GRR(["yes", "no"], epsilon=2)
    >>> round(correlated([smoking, cough], [[0.3, 0.1], [0.1, 0.5]]).success(), 4)
    0.7622
    """
    cases = _cases(joint)
    protocols = [asked] * len(cases[0].laws) if isinstance(asked, Protocol) else list(asked)
    if len(protocols) != len(cases[0].laws) or not 0 <= about < len(protocols):
        raise ShapeError(
            f"{len(cases[0].laws)} answers depend on each other, and there are {len(protocols)} protocols for them"
        )
    readers = [Reader(protocol) for protocol in protocols]
    for reader, law in zip(readers, cases[0].laws, strict=True):
        if reader.size != len(law):
            raise ShapeError(f"a protocol has {reader.size:,} answers, and the table {len(law):,}")
    others = [place for place in range(len(protocols)) if place != about]
    behind = [
        (answer, case.weight * share, case) for case in cases for answer, share in enumerate(case.laws[about]) if share
    ]
    size = readers[about].size
    prior = [sum((weight for x, weight, _ in behind if x == answer), Fraction(0)) for answer in range(size)]
    if min(prior) == 0:
        raise ShapeError("every answer that is guessed needs some probability: leave out those that nobody gives")

    def evidence() -> Evidence:
        if len(behind) > _MOST_ROWS:
            raise ChannelError("there are too many cases to list")
        own = [x for x, _, _ in behind]
        whole = _columns(readers[about].channel).picked(own)
        alike: dict[Any, Evidence] = {}
        for place in others:
            laws = tuple(case.laws[place] for _, _, case in behind)
            key = (id(protocols[place]), laws)
            if key not in alike:
                alike[key] = _mixtures(readers[place].channel, laws)
            whole = whole * alike[key]
        return whole.mixed(own, [weight / prior[x] for x, weight, _ in behind])

    def play(n: int, seed: int) -> Floats:
        random, bits = np.random.default_rng([seed, n]), Simulation(seed)
        which = random.choice(len(cases), size=n, p=np.array([float(case.weight) for case in cases]))
        told, truths = [], []
        for place, reader in enumerate(readers):
            answers = np.zeros(n, dtype=np.intp)
            for number, case in enumerate(cases):
                mine = np.flatnonzero(which == number)
                answers[mine] = random.choice(
                    reader.size, size=mine.size, p=np.array([float(share) for share in case.laws[place]])
                )
            truths.append(answers)
            told.append(reader.likelihoods(reader.sent(answers, bits)))
        worth = np.zeros((n, size))
        for case in cases:
            laws = [np.array([float(share) for share in law]) for law in case.laws]
            rest = math.prod((told[place] @ laws[place] for place in others), start=np.ones(n))
            worth += float(case.weight) * rest[:, None] * told[about] * laws[about]
        return _ranks(worth, truths[about], random)

    most = math.prod(_ratio(protocol) for protocol in protocols)
    return Guess(size, tuple(prior), _try(evidence), most, play)


def _cases(joint: Any) -> list[Case]:
    if isinstance(joint, list) and joint and all(isinstance(case, Case) for case in joint):
        return list(joint)
    table = np.array(joint, dtype=object)
    if table.ndim < 1 or not table.size:
        raise ShapeError("answers that depend on each other have a table of probabilities, or cases")
    cells = [(place, exact.fraction(share, "a probability")) for place, share in np.ndenumerate(table)]
    if min(share for _, share in cells) < 0 or sum(share for _, share in cells) != 1:
        raise NumberError("the probabilities of the table are not negative and sum to 1")
    sure = [[tuple(Fraction(int(x == own)) for x in range(size)) for own in range(size)] for size in table.shape]
    return [Case(share, tuple(sure[axis][own] for axis, own in enumerate(place))) for place, share in cells if share]


def _mixtures(channel: Channel, laws: Sequence[Sequence[Fraction]]) -> Evidence:
    """One report of an answer that follows one of these laws, a row for each."""
    scale = math.lcm(*(share.denominator for law in laws for share in law))
    parts = [[int(share * scale) for share in law] for law in laws]
    numerators = channel.numerators
    return Evidence.of(
        tuple(sum(part * int(each) for part, each in zip(law, column, strict=True)) for law in parts)
        for column in numerators.T
    )


# -- when: streams, and answers that come back -----------------------------------------------------------


def recurrence(
    protocol: Protocol, streams: Sequence[Sequence[Any]], values: int | None = None, repeat: bool = False
) -> Guess:
    """Which of these streams of answers a device had, from all its reports: did an answer change, did it come back?

    A protocol in two stages draws from a state per answer; other protocols draw each report afresh, unless `repeat`.

    Args:
        protocol: The protocol.
        streams: Answers of one device over the epochs, for each possible stream.
        values: Maximum number of answers whose state a device keeps.
        repeat: Whether a device draws one report per answer and sends it again.

    Returns:
        The best guess of the stream.

    Raises:
        ShapeError: There are fewer than two streams, or they differ in length.

    >>> from deniable.protocols import GRR, LGRR
    >>> same, changed = ["yes"] * 8, ["yes", "no"] * 4
    >>> round(recurrence(LGRR(["yes", "no"], first="1/2", forever=1), [same, changed]).success(), 4)
    0.6898
    >>> round(recurrence(GRR(["yes", "no"], epsilon=1), [same, changed], repeat=True).success(), 4)
    0.8034
    """
    lengths = {len(stream) for stream in streams}
    if len(streams) < 2 or len(lengths) != 1 or not max(lengths):
        raise ShapeError("an attacker tells two streams or more apart, of the same number of epochs")
    (epochs,) = lengths
    prior = (Fraction(1, len(streams)),) * len(streams)
    if protocol.guarantee.relation == STREAM:
        return _evolving(protocol, streams, prior)
    device = _Device(protocol, epochs, repeat, values)
    rows = [device.places(stream).tolist() for stream in streams]

    def play(n: int, seed: int) -> Floats:
        random, bits = np.random.default_rng([seed, n]), Simulation(seed)
        truth = random.integers(len(rows), size=n)
        seen = np.array([device.stream(rows[which], bits) for which in truth])
        worth = np.stack([device.log_likelihood(row, seen) for row in rows], axis=1)
        return _ranks(np.exp(worth - worth.max(axis=1, keepdims=True)), truth, random)

    return Guess(len(streams), prior, _try(lambda: device.evidence(rows)), device.most_between(rows), play)


def _evolving(protocol: Protocol, streams: Sequence[Sequence[Any]], prior: tuple[Fraction, ...]) -> Guess:
    """The guess for a protocol whose guarantee is about whole streams: from the laws of all its reports."""
    match protocol.law().structure:
        case Stream() as device if isinstance(protocol.domain, ListedDomain):
            size = protocol.domain.size
        case _:
            raise ChannelError("the law of this protocol does not say how a device goes from epoch to epoch")
    places = [tuple(int(place) for place in protocol.domain.encode(list(stream))) for stream in streams]
    laws = protocol.law().kept.streams() if size**device.epochs <= _MOST_ROWS else {}
    if not set(places) <= set(laws):
        raise ChannelError("the laws of these streams cannot be listed: they change too often, or there are too many")
    rows = [laws[place] for place in places]
    seen = sorted(set().union(*rows))
    scale = math.lcm(*(chance.denominator for law in rows for chance in law.values()))
    evidence = Evidence.of([int(law.get(report, Fraction(0)) * scale) for law in rows] for report in seen)
    table = np.array([[float(law.get(report, 0)) for report in seen] for law in rows])

    def play(n: int, seed: int) -> Floats:
        random, bits = np.random.default_rng([seed, n]), Simulation(seed)
        truth = random.integers(len(rows), size=n)
        number = {report: place for place, report in enumerate(seen)}
        sent = device.streams([list(streams[which]) for which in truth], bits)
        reports = np.concatenate([each.array for each in sent], axis=1)
        return _ranks(table[:, [number[row.tobytes()] for row in reports]].T, truth, random)

    return Guess(len(rows), prior, evidence, protocol.law().kept.ratio, play)


class _Device:
    """All reports of one device: the exact law of streams of answers, given by their places, and real reports."""

    def __init__(self, protocol: Protocol, epochs: int, repeat: bool, values: int | None = None) -> None:
        self.protocol, self.epochs, self.values = protocol, epochs, values
        self.repeat = repeat and protocol.traits.fresh
        self.reader = Reader(protocol)
        self.staged: Stages | None = None
        match protocol.law().structure:
            case Stages() as staged:
                self.staged = staged

    def places(self, answers: Sequence[Any]) -> NDArray[np.intp]:
        return np.asarray(self.protocol.domain.encode(list(answers)), dtype=np.intp)

    @property
    def channel(self) -> Channel:
        return self.reader.channel

    @property
    def kept(self) -> bool:
        """Whether reports share a state, or are that state."""
        return self.repeat or not self.protocol.traits.fresh

    @cached_property
    def stages(self) -> tuple[Channel, Channel]:
        """From answers to states, and from states to reports."""
        if self.staged is not None:
            if self.protocol.law().kept.state_forms * self.reader.size > _MOST_CLASSES:
                raise ChannelError("the states of this protocol are too many to list")
            return self.staged.channels()
        names = list(self.channel.outputs)
        same = [[int(a == b) for b in range(len(names))] for a in range(len(names))]
        return self.channel, Channel.from_integers(same, 1, names, names)

    @cached_property
    def heads(self) -> dict[bytes, list[int]]:
        """The states by what a device draws once, whatever it answers."""
        size = 0 if self.staged is None else self.staged.shared_bytes
        found: dict[bytes, list[int]] = {}
        for place, state in enumerate(self.stages[0].outputs):
            found.setdefault(bytes.fromhex(str(state))[:size], []).append(place)
        return found

    def stored(self, row: Sequence[int], head: Sequence[int]) -> list[int]:
        """Whose state is reported in each epoch, as the place of an answer that has the same."""
        keys: list[Any] = list(row)
        if self.staged is not None:
            state = bytes.fromhex(str(self.stages[0].outputs[head[0]]))
            keys = [self.staged.key(place, state) for place in row]
        first = dict(reversed(list(zip(keys, row, strict=True))))
        known = list(dict.fromkeys(keys))[: self.values]
        return [first[key if key in known else known[0]] for key in keys]

    def evidence(self, rows: Sequence[Sequence[int]]) -> Evidence:
        """The exact law of all reports, one row per stream."""
        if not self.kept:
            each = _columns(self.channel)
            whole = Evidence({(1,) * len(rows): 1}, 1)
            for answers in zip(*rows, strict=True):
                whole = whole * each.picked(answers)
            return whole
        first, second = self.stages
        groups: list[int] = []
        weights: list[Fraction] = []
        states: list[list[int]] = []  # of each row: the state of each epoch
        heads = list(self.heads.values())
        for number, row in enumerate(rows):
            for head in heads:
                used = self.stored(row, head)
                distinct = list(dict.fromkeys(used))
                if len(groups) + len(head) ** len(distinct) > _MOST_ROWS:
                    raise ChannelError("the states of these streams are too many to list")
                mass = Fraction(sum(int(first.numerators[used[0], s]) for s in head), first.denominator)
                for drawn in product(head, repeat=len(distinct)):
                    own = dict(zip(distinct, drawn, strict=True))
                    chances = (Fraction(int(first.numerators[v, s]), first.denominator) / mass for v, s in own.items())
                    weight = math.prod(chances, start=mass)
                    if weight:
                        groups.append(number)
                        weights.append(weight)
                        states.append([own[v] for v in used])
        whole = Evidence({(1,) * len(groups): 1}, 1)
        reports = _columns(second)
        for epoch in range(self.epochs):
            whole = whole * reports.picked([state[epoch] for state in states])
        return whole.mixed(groups, weights)

    # -- real reports ------------------------------------------------------------------------------

    def stream(self, row: Sequence[int], bits: Bits) -> list[int]:
        """The reports of one device as places among the outputs."""
        labels = self.reader.labels
        answers = [labels[place] for place in row]
        if self.staged is not None:
            sent = self.staged.device.stream(answers, self.values, bits)
        elif self.repeat:
            drawn = {place: self.protocol.report(labels[place], bits) for place in self.stored(row, [])}
            sent = [drawn[place] for place in self.stored(row, [])]
        else:
            sent = [self.protocol.report(answer, bits) for answer in answers]
        outputs = self.stages[1] if self.kept else self.channel
        return [outputs.output_index(report.hex()) for report in sent]

    def log_likelihood(self, row: Sequence[int], seen: NDArray[np.intp]) -> Floats:
        """The log likelihood of one stream, for the reports of several devices."""
        with np.errstate(divide="ignore"):
            if not self.kept:
                return np.asarray(np.log(self.channel.rows[list(row), seen]).sum(axis=1))
            first, second = self.stages
            likely, start = np.log(second.rows), np.log(first.rows)
            found = np.full(len(seen), -np.inf)
            for head in self.heads.values():
                used = np.array(self.stored(row, head))
                mass = np.log(first.rows[used[0], head].sum())
                whole = np.full(len(seen), mass)
                for place in np.unique(used):
                    reports = likely[np.array(head)[:, None, None], seen[None, :, used == place]].sum(axis=2)
                    whole = whole + np.logaddexp.reduce(start[place, head][:, None] - mass + reports, axis=0)
                found = np.logaddexp(found, whole)
            return found

    def simulated(self, answers: NDArray[np.intp], bits: Bits, epochs: int) -> Floats:
        """The logarithm of the likelihood of each answer, from real reports of devices that do not change theirs."""
        if not self.kept:
            return np.asarray(
                sum(np.log(self.reader.likelihoods(self.reader.sent(answers, bits))) for _ in range(epochs))
            )
        if self.repeat:
            return np.asarray(np.log(self.reader.likelihoods(self.reader.sent(answers, bits))))
        assert self.staged is not None
        device = self.staged.device
        first, second = self.stages
        states = device.permanents([self.reader.labels[place] for place in answers], bits)
        place = {str(output): number for number, output in enumerate(second.outputs)}
        total = np.zeros((len(answers), len(second.rows)))
        for _ in range(epochs):
            rows = device.reports(states, bits).array
            total += np.log(second.rows[:, [place[row.tobytes().hex()] for row in rows]]).T
        return np.asarray(np.logaddexp.reduce(np.log(first.rows)[None] + total[:, None, :], axis=2))

    # -- theory ------------------------------------------------------------------------------------

    def most(self, epochs: int) -> Ratio:
        """The largest ratio between two answers that never change."""
        ratio = _ratio(self.protocol)
        if isinstance(ratio, float) or (self.kept and self.staged is None):
            return ratio
        if self.staged is not None:
            any_two: Fraction = self.staged.levels(epochs).any.ratio
            return min(self.staged.ratio, any_two)
        return ratio**epochs

    def leakage(self, epochs: int) -> float:
        """The largest factor by which the reports of an answer that never changes multiply the success of a guess."""
        once = min(float(_ratio(self.protocol)), float(self.reader.size))
        if self.staged is not None:  # no more than the state itself would tell
            with suppress(ChannelError):
                return float(self.stages[0].rows.max(axis=0).sum())
            return min(float(self.staged.ratio), float(self.reader.size))
        if self.protocol.worth().guess is not None:
            once = self.protocol.worth().guess * self.reader.size
        elif self.reader.listed is not None:
            once = float(self.channel.rows.max(axis=0).sum())
        return once if self.kept else once**epochs

    def most_between(self, rows: Sequence[Sequence[int]]) -> Ratio:
        """The largest ratio of these streams: by their states if these recur in the same pattern, else by epoch."""
        ratio = _ratio(self.protocol)
        if not self.kept or isinstance(ratio, float):
            return ratio if isinstance(ratio, float) else ratio**self.epochs
        patterns, states = set(), 1
        for row in rows:
            for head in self.heads.values():
                used = self.stored(row, head)
                distinct = list(dict.fromkeys(used))
                patterns.add((head[0], tuple(distinct.index(place) for place in used)))
                states = max(states, len(distinct))
        alike = len(patterns) == len(self.heads)
        if self.staged is not None:
            apart: Fraction = self.staged.levels(self.epochs, self.values).any.ratio
            return min(self.staged.ratio**states, apart) if alike else apart
        return ratio**states if alike else math.inf


def _ratio(protocol: Protocol) -> Ratio:
    """The ratio of a report between any two answers; infinite where its guarantee is about others."""
    promised = protocol.guarantee
    return protocol.ratio if promised.relation == ANY and not promised.delta and not protocol.law().clear else math.inf


# -- which profile ---------------------------------------------------------------------------------------


def profile_inference(
    mechanism: ProfileTable | ProfileMechanism, pair: Sequence[Any] | None = None, prior: Any = None, reports: int = 1
) -> Guess:
    """Which profile somebody has, from reports of values that follow it: among all profiles, or between a pair.

    Between two profiles that are joined, a guess is right with probability e^epsilon / (1 + e^epsilon) at most; further
    apart, epsilon counts for each step on the way. Several reports are of values that are drawn anew.

    Args:
        mechanism: The mechanism, or its protocol.
        pair: The profiles to distinguish; all profiles if None.
        prior: Probability of each profile; uniform if None.
        reports: Number of reports, each of a value that is drawn anew.

    Returns:
        The best guess of the profile.

    Raises:
        ShapeError: There are fewer than two profiles, or one is not in the graph.
        NumberError: There are no reports.

    >>> from deniable.protocols.profiles import ProfileGraph, OneBitCluster
    >>> graph = ProfileGraph.chain({"early": 0.1, "day": 0.5, "late": 0.9})
    >>> found = profile_inference(OneBitCluster(graph, epsilon=1), pair=["early", "day"])
    >>> round(found.success(), 4), round(found.bound(), 4)
    (0.658, 0.7311)
    """
    table = mechanism if isinstance(mechanism, Protocol) else ProfileTable(mechanism)
    if exact.whole(reports, "the number of reports") < 1:
        raise NumberError("an attacker sees one report at least")
    labels = list(table.graph.labels)
    chosen = labels if pair is None else list(pair)
    if len(set(chosen)) < 2 or any(label not in labels for label in chosen):
        raise ShapeError("a guess is between profiles of the graph, two at least")
    rows = [labels.index(label) for label in chosen]
    weights = _exactly(prior, chosen)
    scale = math.lcm(*(int(each) for each in table.graph.whole.denominators))
    law = [
        [int(entry) * (scale // int(below)) for entry in table.exact_released[row]]
        for row, below in ((row, table.graph.whole.denominators[row]) for row in rows)
    ]
    evidence = _try(lambda: Evidence.of(zip(*law, strict=True)) ** reports)
    steps = _steps(table.graph.whole.edges.tolist(), rows)
    most: Ratio = math.inf if steps is None else table.ratio ** (steps * reports)

    def play(n: int, seed: int) -> Floats:
        random, bits = np.random.default_rng([seed, n]), Simulation(seed)
        truth = random.choice(len(rows), size=n, p=np.array([float(weight) for weight in weights]))
        worth = np.log(np.array([float(weight) for weight in weights]))[None].repeat(n, axis=0)
        values, names = list(table.graph.values), list(table.graph.labels)
        for _ in range(reports):
            drawn = np.zeros(n, dtype=np.intp)
            for number, row in enumerate(rows):
                mine = np.flatnonzero(truth == number)
                drawn[mine] = random.choice(len(values), size=mine.size, p=table.graph.profiles[row])
            records = [
                {"profile": names[rows[who]], "value": values[what]} for who, what in zip(truth, drawn, strict=True)
            ]
            sent = table.privatize(records, bits).array
            outputs = [int.from_bytes(row.tobytes(), "little") for row in sent]
            with np.errstate(divide="ignore"):
                worth += np.log(table.released[rows][:, outputs]).T
        return _ranks(np.exp(worth - worth.max(axis=1, keepdims=True)), truth, random)

    return Guess(len(rows), weights, evidence, most, play)


def _steps(edges: Iterable[Sequence[int]], rows: Sequence[int]) -> int | None:
    """The most edges on the way between two of these nodes; None if two of them are not connected."""
    near: dict[int, set[int]] = {}
    for one, other in edges:
        near.setdefault(one, set()).add(other)
        near.setdefault(other, set()).add(one)
    most = 0
    for start in rows:
        seen, edge, distance = {start}, {start}, 0
        while not set(rows) <= seen:
            edge = {other for one in edge for other in near.get(one, ())} - seen
            if not edge:
                return None
            seen |= edge
            distance += 1
        most = max(most, distance)
    return most

"""What forged reports do to an estimate, and what a collector can do about them.

Forger     runs many fake devices, knows the protocol, and sends any valid report; it also chooses its group or cohort
Attacks    random: any valid report. targeted: honest reports of the favoured answers. maximal: the report with the
           largest weight for them. selected: the best of many honest reports, which no test of single reports refuses.
           single: honest reports that support one favoured answer, so that none supports several
Gain       a read-out is a function T of the mean tally. The tally of n honest people is n h on average, with h the sum
           over the answers of their shares times the law of a report; m forged ones add m r. So the figures move by
             T((n h + m r) / (n + m)) - T(h)
           which for every read-out that is linear in the tally is exactly m / (n + m) (w(r) - w(h)): w(r) is what the
           report says about a figure, its weight, and w(h) the honest figure. The largest is that of the report with
           the largest weight: `leverage`. For others it holds on average to the first order of 1 / n. `gains` compares
           it with collections of real reports, for every kind whose reports can be listed
Weight     read off the estimator itself, by adding the report to a tally
Defences   implausible reports are refused (`Law.plausible`); the tally is tested against every population
           (`misfit`); reports that support answers together more often than each alone explains; reports that
           agree too well, byte for byte; consistent shares; and intervals that hold for the honest reports alone,
           `estimate.robust(m)`, the only one that no forger gets around
Source     Cao, Jia and Gong 2021 (the first three attacks, pairs of answers, normalization); Cheu, Smith and Ullman
           2021 (no local protocol can tell a lie from noise)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.channels import Channel
from deniable.domains import ListedDomain
from deniable.errors import DeniableError, MismatchError, NumberError
from deniable.protocols import Protocol, Reports, Tally
from deniable.protocols.structures import Choice
from deniable.protocols.traits import needs_candidates
from deniable.randomness import Bits, Simulation, source_of
from deniable.results import Floats
from deniable.results.significance import too_many

ATTACKS = ("random", "targeted", "maximal", "selected", "single")

SUSPICIOUS = 0.001
"""p-values below this are an alarm."""

_TRIES = 64
"""A forger selects one of this many honest reports."""
_CROWD = 4096
"""Honest reports of a tally to which a forged report is added to weigh it."""
_MANY = 1 << 14
"""Random reports that say what a random report says on average."""
_GROUPED = 8
"""Answers of a group that is tested for being supported together."""
_PAIRED = 512
"""Pairs of this many answers are tested: the best supported ones."""


# -- forging -------------------------------------------------------------------------------------------


def forge(protocol: Protocol, favour: Any, reports: int = 1, how: str = "maximal", bits: Bits | None = None) -> Reports:
    """Reports of fake devices that favour some answers; for studies.

    Args:
        protocol: The protocol.
        favour: The answer, or the answers, that the reports favour.
        reports: Number of reports.
        how: One of `ATTACKS`.
        bits: Source of randomness; secure if None.

    Returns:
        The forged reports.

    Raises:
        NumberError: The attack is unknown, or the number is negative.

    >>> from deniable.protocols import OUE
    >>> protocol = OUE(["never", "once", "often"], epsilon=1)
    >>> protocol.support(forge(protocol, ["once", "often"]))[0].tolist()
    [False, True, True]
    """
    if how not in ATTACKS:
        raise NumberError(f"there is no attack {how!r}; there are {', '.join(ATTACKS)}")
    if reports < 0:
        raise NumberError("the number of forged reports is not negative")
    source = source_of(bits)
    answers = list(favour) if isinstance(favour, list | tuple | np.ndarray) else [favour]
    if how == "random":
        rows = protocol.law().any_reports(reports, source)
    elif how == "maximal":
        best = _best(protocol, answers, protocol.worth().forgeries(protocol.domain.encode(answers)))
        rows = np.tile(best, (reports, 1))
    else:
        tries = {"targeted": 1, "selected": _TRIES, "single": 16}[how]
        drawn = source.integers(len(answers), reports)
        rows = np.asarray(protocol.privatize([answers[one] for one in drawn.tolist()], source))
        if tries > 1:
            score = _scores(protocol, answers, how, drawn)
            highest = score(rows)
            for _ in range(tries - 1):
                again = np.asarray(protocol.privatize([answers[one] for one in drawn.tolist()], source))
                other = score(again)
                rows, highest = np.where((other > highest)[:, None], again, rows), np.maximum(highest, other)
    return Reports(protocol.fingerprint, rows, protocol.spec())


def _scores(
    protocol: Protocol, answers: list[Any], how: str, drawn: NDArray[np.int64]
) -> Callable[[NDArray[np.uint8]], Floats]:
    """How much reports say for the favoured answers together, or each for its own alone."""
    support = protocol.law().support
    if support is not None:
        places = protocol.domain.encode(answers)

        def supported(rows: NDArray[np.uint8]) -> Floats:
            speaks = support.of(rows)
            own = speaks[np.arange(len(rows)), places[drawn]]
            return np.asarray(speaks[:, places].sum(axis=1) if how == "selected" else own, dtype=np.float64)

        return supported
    weigh = _weigher(protocol, answers)
    known: dict[bytes, float] = {}

    def weighed(rows: NDArray[np.uint8]) -> Floats:
        for row in np.unique(rows, axis=0):
            if row.tobytes() not in known:
                known[row.tobytes()] = weigh(row)
        return np.array([known[row.tobytes()] for row in rows])

    return weighed


def _best(protocol: Protocol, answers: list[Any], candidates: NDArray[np.uint8]) -> NDArray[np.uint8]:
    place = 0
    if len(candidates) > 1:
        weigh = _weigher(protocol, answers)
        place = int(np.argmax([weigh(row) for row in candidates]))
    found: NDArray[np.uint8] = candidates[place]
    return found


def _weigher(protocol: Protocol, answers: list[Any]) -> Callable[[NDArray[np.uint8]], float]:
    """What a report adds to the figures in the direction of the favoured answers."""
    crowd = Crowd(protocol, answers)
    gains = crowd.direction()
    return lambda row: float(np.nansum(gains * crowd.weights(row)))


class Crowd:
    """Honest reports of many answers, to which forged ones are added to see what they do."""

    def __init__(self, protocol: Protocol, answers: list[Any]) -> None:
        # The weights are the same for any crowd: here the favoured answers and the domain's example.
        held = [*answers, protocol.domain.example]
        values = [held[place % len(held)] for place in range(_CROWD)]
        self.protocol, self.answers = protocol, answers
        self.tally = protocol.tally(protocol.privatize(values, Simulation(1)))
        self.rows = self._read(self.tally).table()

    def _read(self, tally: Tally) -> Any:
        return read(self.protocol, tally, self.answers).unbiased

    def direction(self) -> Floats:
        """What the figures would be if everybody had the favoured answers, against what they are."""
        if self._read(self.tally).family == "shares":
            return _favoured(self.protocol, self.answers, self.rows.labels)
        people = np.full(len(self.answers), self.tally.n // len(self.answers))
        people[0] += self.tally.n - int(people.sum())
        whole = self.protocol.worth().truth(self.answers, people)
        known = self.rows.stderr > 0
        away = np.where(known, whole - self.rows.value, 0.0) / np.where(known, self.rows.stderr, 1.0)
        return np.nan_to_num(away)

    def weights(self, row: NDArray[np.uint8]) -> Floats:
        """What such a report says about each figure: exact where the figures are means over all reports.

        Of a group's figure, against a report of any group: an honest one is about the group only now and then.
        """
        often = max(1, self.tally.n // 64)
        forged = self.protocol.tally(np.repeat(row[None, :], often, axis=0))
        after = self._read(self.tally + forged).table().value
        found: Floats = self.rows.value + (after - self.rows.value) * (self.tally.n + often) / often
        return found


def read(protocol: Protocol, tally: Tally, answers: list[Any]) -> Any:
    """The estimate; of protocols that look for texts or find them, that of these answers."""
    if protocol.traits.answers == "found":
        return protocol.estimate(tally, values=answers)  # type: ignore[call-arg]
    if needs_candidates(protocol):
        return protocol.estimate(tally, answers)  # type: ignore[call-arg]
    return protocol.estimate(tally)


def _favoured(protocol: Protocol, answers: list[Any], labels: Sequence[Any]) -> Floats:
    """Which shares are those of the favoured answers."""
    if protocol.traits.answers == "found" or needs_candidates(protocol):
        return np.ones(len(labels))
    found: Floats = np.sign(protocol.worth().truth(answers))
    return found


# -- what it does --------------------------------------------------------------------------------------


class Gain(NamedTuple):
    """What forged reports did to the sum of the favoured shares, or to another figure, and what theory says.

    Args:
        measured: Mean over the runs.
        expected: m / (n + m) times the difference of the forged reports' weight and the honest figure.
        stderr: The standard error of `measured`, over the runs.
    """

    measured: float
    expected: float
    stderr: float


def gain(
    protocol: Protocol, answers: Any, favour: Any, fakes: int, how: str = "maximal", runs: int = 20, seed: int = 0
) -> Gain:
    """Forge `fakes` reports among those of these people, several times, and compare with theory.

    For shares of listed answers, the gain is in the sum of the favoured answers' shares; for means, in the mean.

    Args:
        protocol: The protocol.
        answers: Answers of the honest people.
        favour: The answer, or the answers, that the attacker favours.
        fakes: Number of forged reports.
        how: One of `ATTACKS`.
        runs: Number of simulated collections.
        seed: Seed of the simulation.

    Returns:
        The measured and the expected gain.

    >>> from deniable.protocols import GRR
    >>> found = gain(GRR(4, epsilon=1), [0, 1, 2, 3] * 2500, [3], fakes=100)
    >>> abs(found.measured - found.expected) < 5 * found.stderr
    True
    """
    picked = list(favour) if isinstance(favour, list | tuple | np.ndarray) else [favour]
    whole = protocol.worth().truth(answers)
    rows = (
        np.sign(protocol.worth().truth(picked))
        if protocol.estimate(protocol.empty()).family == "shares"
        else np.ones(1)
    )
    if whole.shape != rows.shape:
        raise MismatchError(f"the gain of {protocol.name} is not one number: see `gains`")
    n, bits = len(answers), Simulation(seed)
    crowd = Crowd(protocol, picked)
    moved, said = [], []
    for _ in range(runs):
        forged = forge(protocol, picked, fakes, how, bits)
        tally = protocol.tally(protocol.privatize(answers, bits)) + protocol.tally(forged)
        moved.append(float(rows @ (protocol.estimate(tally).unbiased.table().value - whole)))
        if how == "maximal":
            said = [float(rows @ crowd.weights(np.asarray(forged)[0]))]
        elif how == "targeted":
            said = [float(rows @ protocol.worth().truth(picked))]
        else:
            each = protocol.estimate(protocol.tally(forged)).unbiased.table().value
            said.append(float(rows @ each))
    expected = fakes / (n + fakes) * (float(np.mean(said)) - float(rows @ whole))
    return Gain(float(np.mean(moved)), expected, float(np.std(moved, ddof=1) / np.sqrt(runs)))


class Moved(NamedTuple):
    """What forged reports do to each figure of an unbiased read-out: by theory, and in simulated collections.

    Args:
        expected: T((n h + m r) / (n + m)) - T(h), from the exact law of a report.
        measured: Mean over the runs.
        stderr: The standard errors of `measured`, over the runs.
        linear: Whether the read-out is linear in the tally: then `expected` is m / (n + m) (w(r) - w(h)), exactly.
        shown: The rows of the result as it is shown, which may be fitted or made consistent: what they moved by,
            measured.
        before: T(h): what honest people show.
    """

    expected: Floats
    measured: Floats
    stderr: Floats
    linear: bool
    shown: Floats
    before: Floats

    @property
    def deviation(self) -> float:
        """The largest difference of the two, in standard errors."""
        rounding = 1e-7 * max(1e-9, float(np.nanmax(np.abs(self.expected))))
        return float(np.nanmax(np.abs(self.measured - self.expected) / np.maximum(self.stderr, rounding)))


def gains(
    protocol: Protocol,
    people: Sequence[int],
    favour: int,
    fakes: int,
    attacks: Sequence[str] = ("random", "targeted", "maximal"),
    runs: int = 8,
    seed: int = 0,
    channel: Channel | None = None,
) -> dict[str, Moved]:
    """What forged reports do to every figure of any kind of protocol, against theory; for small ones.

    Args:
        protocol: The protocol.
        people: Number of people for each input of `protocol.channel()`.
        favour: Position of the favoured input.
        fakes: Number of forged reports.
        attacks: Names of the attacks.
        runs: Number of simulated collections.
        seed: Seed of the simulation.
        channel: The protocol's channel, if it is known already.

    Returns:
        The changes of all figures, by attack.

    Raises:
        ChannelError: The reports cannot be enumerated.

    >>> from deniable.protocols import Ranges
    >>> from deniable.domains import Integers
    >>> found = gains(Ranges(Integers(0, 3), epsilon=1, fanout=2), [400, 300, 200, 100], favour=3, fakes=50)
    >>> {how: one.deviation < 12 for how, one in found.items()}
    {'random': True, 'targeted': True, 'maximal': True}
    """
    law = protocol.channel() if channel is None else channel
    answers = [protocol.domain.answer(label) for label, _ in protocol.law().inputs()]
    favoured, bits = [answers[favour]], Simulation(seed)
    exactly = _Exactly(protocol, law, answers, people)
    column = [answer for answer, many in zip(answers, people, strict=True) for _ in range(many)]
    honest = [protocol.tally(protocol.privatize(column, bits)) for _ in range(runs)]
    before = [read(protocol, tally, answers) for tally in honest]
    found = {}
    for how in attacks:
        same = forge(protocol, favoured, fakes, how, bits) if how == "maximal" else None
        if how == "targeted":
            likely = exactly.law[favour]
        else:  # what a random report says on average, many others say
            many = forge(protocol, favoured, 1 if how == "maximal" else _MANY, how, bits)
            likely = exactly.of_reports(np.asarray(many))
        moved, shown = [], []
        for tally, was in zip(honest, before, strict=True):
            forged = same or forge(protocol, favoured, fakes, how, bits)
            now = read(protocol, tally + protocol.tally(forged), answers)
            now, was = (_binned(one, exactly.result) for one in (now, was))
            moved.append(_figures(now) - _figures(was))
            shown.append(now.table().value - was.table().value)
        expected, linear = exactly.gain(likely, fakes)
        found[how] = Moved(
            expected,
            np.mean(moved, axis=0),
            np.std(moved, axis=0, ddof=1) / math.sqrt(runs),
            linear,
            np.mean(shown, axis=0),
            exactly.before,
        )
    return found


def _binned(result: Any, like: Any) -> Any:
    """A result with the bins of another, where results have bins."""
    edges = getattr(like, "edges", None)
    return result if edges is None else replace(result, edges=edges)


def _figures(result: Any) -> Floats:
    """The unbiased figures of a result, before anything is fitted or made consistent."""
    return np.asarray((result.measured() or result.unbiased.table()).value, dtype=np.float64)


class _Exactly:
    """The read-out of the tally that people have on average, and of forged reports with it, from the exact law."""

    def __init__(self, protocol: Protocol, channel: Channel, answers: list[Any], people: Sequence[int]) -> None:
        self.protocol, self.answers, self.n = protocol, answers, int(np.sum(people))
        self.law: Floats = np.asarray(channel.rows, dtype=np.float64)
        self.places: dict[bytes, int] = {}
        self.tallies: list[NDArray[np.int64]] = []
        for output in channel.outputs:
            self._place(bytes.fromhex(str(output)))
        self.honest: Floats = np.asarray(people) @ self.law
        self.result = self._read(_whole(self.honest, self.n))
        self.before = _figures(self.result)

    def _place(self, form: bytes) -> int:
        """The number of a form; those that no honest device sends are added to the others."""
        if form not in self.places:
            self.places[form] = len(self.places)
            self.tallies.append(self.protocol.tally(np.frombuffer(form, dtype=np.uint8)[None, :]).counts)
        return self.places[form]

    def _read(self, often: NDArray[np.int64]) -> Any:
        """The estimate from these counts of each form of a report."""
        counts = often @ np.array(self.tallies[: often.size])
        return read(self.protocol, Tally(self.protocol.fingerprint, int(often.sum()), counts), self.answers)

    def _figures(self, often: NDArray[np.int64]) -> Floats:
        return _figures(_binned(self._read(often), self.result))

    def of_reports(self, reports: NDArray[np.uint8]) -> Floats:
        """How often each form comes among some reports."""
        forms, often = np.unique(reports, axis=0, return_counts=True)
        places = [self._place(form.tobytes()) for form in forms]
        found = np.zeros(len(self.places))
        found[places] = often / often.sum()
        return found

    def gain(self, likely: Floats, fakes: int) -> tuple[Floats, bool]:
        """How far `fakes` reports of a law move each figure, and whether the read-out is linear."""
        size = len(self.places)
        honest, forged = (np.pad(one, (0, size - one.size)) for one in (self.honest, likely))
        together = _whole(honest, self.n) + _whole(forged, fakes)
        was, now = self.before, self._figures(together)
        weights = self._weights(size)
        if weights is not None:
            said = np.stack([_whole(honest, self.n) / self.n, together / (self.n + fakes)]) @ weights
            if np.abs(said - [was, now]).max() <= 1e-7 * max(1.0, float(np.abs(weights).max())):
                return fakes / (self.n + fakes) * (forged @ weights - honest @ weights / self.n), True
        return now - was, False

    def _weights(self, size: int) -> Floats | None:
        """What each form says by itself; None where the read-out needs many reports."""
        with suppress(DeniableError, np.linalg.LinAlgError):
            alone = np.eye(size, dtype=np.int64)
            found: Floats = np.array([self._figures(one) for one in alone])
            return found if np.isfinite(found).all() else None
        return None


def _whole(often: Floats, total: int) -> NDArray[np.int64]:
    """So many reports in these proportions, in whole numbers."""
    exact = often * total / often.sum()
    found: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    found[np.argsort(found - exact, kind="stable")[: total - int(found.sum())]] += 1
    return found


# -- defences ------------------------------------------------------------------------------------------


class Inspection(NamedTuple):
    """What speaks for forged reports among some; p-values that hold whatever honest people answered.

    Args:
        implausible: Reports that no honest device sends: a collector refuses them.
        misfit: The p-value of the tally, against every population.
        pairs: The p-value of reports that support several answers together; 1 if reports support no answers.
        agreement: The p-value of reports that are the same, byte for byte; 1 if that says nothing.
        groups: The answers that are supported together too often, where some are.
        n: How many reports were looked at.
    """

    implausible: int
    misfit: float
    pairs: float
    agreement: float
    groups: tuple[str, ...] = ()
    n: int = 0

    @property
    def words(self) -> str:
        """What was found, in sentences; the first says whether there is an alarm.

        >>> Inspection(0, 0.4, 1.0, 0.2, n=1000).words.split(".")[0]
        'No sign of forged reports among 1,000'
        """
        if not self.alarm:
            return (
                f"No sign of forged reports among {self.n:,}. An attacker who knows these tests can "
                "send reports that pass them: estimate --robust M says what M of them may have done."
            )
        found = []
        if self.implausible:
            found.append(
                f"Reports so unlikely that no honest device sends them: {self.implausible:,}. Do not count them."
            )
        if self.misfit < SUSPICIOUS:
            found.append(f"No population explains the sum of the reports (p = {self.misfit:.2g}).")
        if self.pairs < SUSPICIOUS:
            named = f": {', '.join(self.groups)}" if self.groups else ""
            found.append(f"Some answers are supported together too often (p = {self.pairs:.2g}){named}.")
        if self.agreement < SUSPICIOUS:
            found.append(f"Too many reports are the same, byte for byte (p = {self.agreement:.2g}).")
        return " ".join([f"Alarm: honest devices alone hardly ever send {self.n:,} reports like these.", *found])

    def to_dict(self) -> dict[str, Any]:
        """What was found, for JSON."""
        return self._asdict() | {"groups": list(self.groups), "alarm": self.alarm, "words": self.words}

    @property
    def alarm(self) -> bool:
        """Whether one of the tests says that reports were forged, in one of a thousand honest collections at most
        each."""
        return self.implausible > 0 or min(self.misfit, self.pairs, self.agreement) < SUSPICIOUS


def inspect(protocol: Protocol, reports: Reports | NDArray[np.uint8]) -> Inspection:
    """Look for forged reports, by everything that the reports themselves say.

    Args:
        protocol: The protocol.
        reports: The reports.

    Returns:
        P-values of the tests for forged reports.

    >>> from deniable.protocols import OUE
    >>> from deniable.randomness import Simulation
    >>> protocol = OUE(20, epsilon=1)
    >>> honest = np.asarray(protocol.privatize([1, 2, 3, 4] * 1000, Simulation(1)))
    >>> forged = np.asarray(forge(protocol, [7, 8, 9], 200))
    >>> inspect(protocol, honest).alarm, inspect(protocol, np.vstack([honest, forged])).alarm
    (False, True)
    """
    rows = np.asarray(reports)
    good = protocol.law().plausible(rows)
    kept = rows[good]
    misfit = protocol.misfit(protocol.tally(kept)).p_value if len(kept) else 1.0
    pairs, agreement, named = _tests(protocol, kept)
    return Inspection(int((~good).sum()), misfit, pairs, agreement, named, len(rows))


def _tests(protocol: Protocol, rows: NDArray[np.uint8]) -> tuple[float, float, tuple[str, ...]]:
    """The p-values of pairs and of agreement; where people report one of several groups, those of the groups."""
    match protocol.law().structure:
        case Choice() as choice:
            each = [(1.0, 1.0, ()), *(_tests(member, own) for member, own in choice.split(rows))]
            many, least = len(choice.members), min(each, key=lambda one: one[0])
            return min(1.0, many * least[0]), min(1.0, many * min(one[1] for one in each)), least[2]
    pairs, named = _pairs(protocol, rows)
    return pairs, _agreement(protocol, rows), named


def _pairs(protocol: Protocol, rows: NDArray[np.uint8]) -> tuple[float, tuple[str, ...]]:
    """The p-value of the pair of answers that is supported together most, given how often each is supported alone.

    Whatever a person answered, the product of the two supports, each less q, is a known constant on average, zero for
    bits and linear hashes: so its sum is tested against every population, by Bernstein's inequality. Where all bits are
    independent, so are the products of different pairs: then groups are tested as well, which grow from that pair.
    """
    from deniable.protocols.ranges.cells import law_of  # loads a family of protocols

    support, domain = protocol.law().support, protocol.domain
    if support is None or support.size == 1 or not isinstance(domain, ListedDomain) or domain.size < 2:
        return 1.0, ()
    size, n, p, q, law = domain.size, len(rows), float(support.p), float(support.q), law_of(protocol)
    if not n:
        return 1.0, ()
    best = np.argsort(-np.asarray(protocol.estimate(protocol.tally(rows)).counts), kind="stable")[:_PAIRED]
    together = np.zeros((best.size, best.size))
    for start in range(0, n, 1 << 14):
        beyond = support.of(rows[start : start + (1 << 14)])[:, best] - np.float32(q)
        together += beyond.T @ beyond
    np.fill_diagonal(together, -np.inf)
    squares = []
    for first, both in ((p, law.mixed + p * q), (q, law.pair + q * q)):
        one, none = first + q - 2 * both, 1 - first - q + both
        squares.append(both * (1 - q) ** 4 + one * (q * (1 - q)) ** 2 + none * q**4)
    chosen = [int(place) for place in divmod(int(np.argmax(together)), best.size)]
    excess = float(together[chosen[0], chosen[1]])
    most = min(_GROUPED, best.size) if support.independent else 2
    least: tuple[float, list[int]] = 1.0, []
    while True:
        pairs = math.comb(len(chosen), 2)
        beyond_mean = excess - pairs * n * max(law.mixed, law.pair)
        if beyond_mean > 0:
            spread = pairs * n * max(squares) + pairs * (1 - q) ** 2 * beyond_mean / 3
            tests = math.log(math.comb(size, len(chosen))) + math.log(most - 1)
            least = min(least, (math.exp(min(0.0, tests - beyond_mean**2 / (2 * spread))), list(chosen)))
        if len(chosen) >= most:
            break
        added = together[chosen].sum(axis=0)
        chosen.append(int(np.argmax(added)))
        excess += float(added[chosen[-1]])
    labels = tuple(str(domain.labels[int(best[one])]) for one in sorted(least[1]))
    return least[0], labels if least[0] < SUSPICIOUS else ()


def _agreement(protocol: Protocol, rows: NDArray[np.uint8]) -> float:
    """The p-value of the most common report: it is at most as likely as the likeliest report of any answer."""
    chance = protocol.law().likeliest
    if chance is None or not len(rows):
        return 1.0
    _, often = np.unique(rows, axis=0, return_counts=True)
    return float(too_many(float(often.max()), float(len(rows)), chance, len(often)))


# -- the table of defences -----------------------------------------------------------------------------


class Defended(NamedTuple):
    """How defences fare against one attack, over many collections."""

    attack: str
    gain: float
    """How far the sum of the favoured shares rises, without a defence."""
    implausible: float
    """The share of the forged reports that are refused."""
    misfit: float
    """How often the test of the tally raises an alarm; so of the next two."""
    pairs: float
    agreement: float
    kept: float
    """The part of the gain that is left in consistent shares, of the reports that were not refused."""
    covered: float
    """How often the interval of `robust` holds the true share of the first favoured answer."""
    plain: float
    """The same of the interval without it."""
    lost: float
    """What the defences cost: the share of honest reports that are refused."""
    error: float
    """The root mean square error of consistent shares, against that of unbiased ones."""
    wider: float
    """How many times as wide intervals of `robust` are, on average."""


def defences(
    protocol: Any,
    answers: Any,
    favour: Sequence[Any],
    fakes: int,
    attacks: Sequence[str] = ("none", *ATTACKS),
    runs: int = 100,
    seed: int = 0,
) -> list[Defended]:
    """The power of each defence against each attack, and with "none" its false alarms.

    Args:
        protocol: A protocol for shares of listed answers.
        answers: Answers of the honest people.
        favour: Answers that the attacker favours.
        fakes: Number of forged reports.
        attacks: Names of the attacks; "none" measures false alarms.
        runs: Number of simulated collections.
        seed: Seed of the simulation.

    Returns:
        One row per attack.
    """
    truth, places = protocol.worth().truth(answers), protocol.domain.encode(list(favour))
    found = []
    for attack in attacks:
        bits, figures = Simulation(seed), []
        for _ in range(runs):
            honest = np.asarray(protocol.privatize(answers, bits))
            forged = np.empty((0, honest.shape[1]), dtype=np.uint8)
            if attack != "none":
                forged = np.asarray(forge(protocol, list(favour), fakes, attack, bits))
            everything = np.vstack([honest, forged])
            seen, all_of = inspect(protocol, everything), protocol.estimate(protocol.tally(everything))
            refused = ~protocol.law().plausible(forged) if len(forged) else np.zeros(1)
            left = protocol.estimate(protocol.tally(everything[protocol.law().plausible(everything)]))
            raised = float((all_of.frequencies - truth)[places].sum())
            after = float((left.consistent().frequencies - truth)[places].sum())
            target = places[0]
            ends = [one.interval() for one in (all_of.robust(fakes), all_of)]
            inside = [bool(one[target, 0] <= truth[target] <= one[target, 1]) for one in ends]
            wider = float(np.mean(np.ptp(ends[0], axis=1) / np.ptp(ends[1], axis=1)))
            errors = [np.linalg.norm(one.frequencies - truth) for one in (left.consistent(), all_of)]
            costs = [float((~protocol.law().plausible(honest)).mean()), float(errors[0] / errors[1]), wider]
            alarms = [one < SUSPICIOUS for one in (seen.misfit, seen.pairs, seen.agreement)]
            figures.append([raised, float(refused.mean()), *alarms, after, *inside, *costs])
        gained, *tests, after_all, covered, plain, lost, error, wider = (float(x) for x in np.mean(figures, axis=0))
        kept = after_all / gained if attack != "none" and abs(gained) > 1e-9 else float("nan")
        found.append(Defended._make([attack, gained, *tests, kept, covered, plain, lost, error, wider]))
    return found

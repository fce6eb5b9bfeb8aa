"""Checks that every protocol must pass, on the bytes that leave the device.

The checks run on the instances of `examples()`, which are small enough to list all their reports. They test only what
the real code does. A protocol may waive a check of `WAIVABLE` with a reason, never one of the others.
"""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.audit.paths import disagreement
from deniable.channels import Channel
from deniable.channels.adjacency import related_factor
from deniable.conformance.checks import Duty, accepts, draws_needed, follows, listed, raises, refuses, require
from deniable.domains import Integers
from deniable.errors import DeniableError, MismatchError, ReportError, SpecError
from deniable.exact import exp_at_least
from deniable.privacy.poisoning import gains
from deniable.protocols import Protocol, Reports, Tally, load, registered
from deniable.protocols.kernel import plain
from deniable.protocols.reports import from_bytes
from deniable.protocols.structures import Stages
from deniable.protocols.tally import HalvesCounter
from deniable.protocols.traits import scaled, waived
from deniable.protocols.worth import WORD_BYTES
from deniable.protocols.wrapped import check_wrapped
from deniable.randomness import Secure, Simulation, exhaust
from deniable.results import Result

LEVELS = {"two percent less": Fraction(98, 100), "two percent more": Fraction(102, 100)}
TIGHT = 1e-9

WAIVABLE = ("tight", "support", "unbiased", "forging")
"""The checks that a protocol may waive: none of them is about what a report reveals."""

_CROWD = 10**12
_READ = 100
_SINGLES = 2000
_COLUMN, _RUNS, _FAR = 5000, 2000, 6.0
_channels: dict[tuple[type, str], Channel] = {}


def examples(kind: type[Protocol]) -> list[tuple[str, Protocol]]:
    """The instances of a kind that are checked, each with a name.

    Args:
        kind: The class.

    Returns:
        Pairs of a name and an instance.

    Raises:
        SpecError: The kind gives no examples, or its `examples()` raises an error.
    """
    if not kind.traits.local:
        raise SpecError(f"a report of {kind.__name__} keeps no epsilon by itself, so there is nothing to check here")
    try:
        made = list(kind.examples())
    except Exception as wrong:  # somebody else's code may raise anything
        raise SpecError(f"{kind.__name__}.examples() raised {type(wrong).__name__}: {wrong}") from wrong
    if not made:
        raise SpecError(
            f"{kind.__name__} has no examples() to check: yield a few small instances, whose reports can all be listed"
        )
    return [(f"{kind.name} {number}", protocol) for number, protocol in enumerate(made, 1)]


def registered_examples() -> list[tuple[str, Protocol]]:
    """The examples of every protocol that is registered, those of installed packages included."""
    kinds = [kind for _, kind in sorted(registered().items()) if kind.traits.local]
    return [example for kind in kinds for example in examples(kind)]


def protocol_duties(subjects: Iterable[tuple[str, Protocol]]) -> Iterator[Duty]:
    """Every check of the protocols, given with their names."""
    return listed(subjects, PROTOCOL_CHECKS, lambda protocol: waived(protocol))


def enumerated(protocol: Protocol) -> Channel:
    """The law of the report bytes, from running the real code along every branch; remembered, for it takes time.

    Args:
        protocol: A small instance.

    Returns:
        The exact channel.
    """
    key = (type(protocol), protocol.fingerprint)
    if key not in _channels:
        _channels[key] = protocol.channel()
    return _channels[key]


def report_rows(channel: Channel) -> NDArray[np.uint8]:
    """The reports of an enumerated channel, one per row."""
    return np.array([list(bytes.fromhex(str(output))) for output in channel.outputs], dtype=np.uint8)


def inputs(protocol: Protocol) -> list[Any]:
    """The answers whose laws are the whole channel."""
    return [protocol.domain.answer(label) for label, _ in protocol.law().inputs()]


def check_waivers(protocol: Protocol) -> None:
    """0. Only checks that are not about privacy are waived, each with a reason."""
    for name, reason in waived(protocol).items():
        require(name in WAIVABLE, f"{name} cannot be waived: only {', '.join(WAIVABLE)} can")
        require(reason, f"{name} is waived without a reason")


def check_level(protocol: Protocol) -> None:
    """1. The level of the bytes is the stated one and at most the one asked for, between all inputs it is about."""
    check_wrapped(protocol)  # what is made of others keeps what they promise
    channel, promise = enumerated(protocol), protocol.guarantee
    require(promise.epsilon == protocol.epsilon, "the guarantee states another epsilon than the protocol")
    require(next(iter(protocol.law().related()), None) is not None, "the guarantee relates no two inputs")
    found = related_factor(channel, protocol.law().related(), promise.delta)
    require(found == protocol.ratio, "the stated ratio is not that of the bytes")
    require(exp_at_least(protocol.epsilon, protocol.ratio), "the level is exceeded")
    if promise.relation == "metric":
        apart = {pair for pair in combinations(channel.inputs, 2) if protocol.law().distance(*pair) != 1}
        require(apart, "a promise that grows with the distance needs inputs at different distances")
        require(
            channel.satisfies(protocol.epsilon, protocol.law().distance),
            "inputs differ more than their distance allows",
        )


def check_tight(protocol: Protocol) -> None:
    """1. The level that was asked for is used."""
    require(float(protocol.epsilon) - protocol.realized_epsilon <= TIGHT, "the level is wasted")


def check_law(protocol: Protocol) -> None:
    """2. Batches follow the enumerated law, and the same test refuses the same code at another level."""
    channel = enumerated(protocol)
    rows = report_rows(channel)
    others = {name: scaled(protocol, factor) for name, factor in LEVELS.items()}
    laws = [enumerated(other) for other in others.values()]
    require(all(law.outputs == channel.outputs for law in laws), "at another epsilon there are other reports")
    # The last answer whose law depends on epsilon: loops that end too early miss it.
    last = [x for x in range(len(channel.inputs)) if all(_differ(channel.rows[x], law.rows[x]) for law in laws)]
    require(last, "no answer's law depends on epsilon")
    value, law = last[-1], channel.rows[last[-1]]
    n = max(draws_needed(law, other.rows[value]) for other in laws)
    require(_drawn(protocol, value, n, rows, law), "batches have another law than single reports")
    for name, other in others.items():
        require(not _drawn(other, value, n, rows, law, early=True), f"the test cannot tell {name}")
    for x in range(len(channel.inputs)):
        require(_drawn(protocol, x, 20_000, rows, channel.rows[x]), f"batches of answer {x} have another law")
    bits = Simulation(49)
    encoded = protocol.domain.encode_one(inputs(protocol)[value])
    sent = b"".join(protocol.report_encoded(encoded, bits) for _ in range(_SINGLES))
    singles = np.frombuffer(sent, dtype=np.uint8).reshape(_SINGLES, -1)
    counts = _tabulated(singles, rows)
    require(accepts(counts, np.append(law, 0.0)), "single reports have another law than the code that was followed")


def _differ(law: NDArray[Any], other: NDArray[Any]) -> bool:
    return not np.allclose(law, other, rtol=1e-6, atol=0)


def _drawn(
    protocol: Protocol, value: int, n: int, rows: NDArray[np.uint8], law: NDArray[np.float64], early: bool = False
) -> bool:
    """Whether n batched reports of one answer follow a law of these rows; a report outside the rows fits no law."""
    counted = (_tabulated(reports, rows) for reports in _batches(protocol, value, n))
    return follows(counted, np.append(law, 0.0), early)


def _tabulated(reports: NDArray[np.uint8], rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How many reports equal each of these rows, and last how many equal no row."""
    keys, drawn = _as_numbers(rows), _as_numbers(reports)
    if drawn.itemsize <= 2:
        found = np.bincount(drawn, minlength=1 << 8 * drawn.itemsize)[keys]
    else:
        drawn.sort()
        found = np.searchsorted(drawn, keys, "right") - np.searchsorted(drawn, keys, "left")
    return np.append(found, len(drawn) - found.sum())


def _batches(protocol: Protocol, value: int, n: int) -> Iterator[NDArray[np.uint8]]:
    """Reports of one answer, which is encoded once, because reading answers takes time."""
    answer = inputs(protocol)[value]
    one, most = protocol.domain.encode([answer]), min(n, max(1 << 14, min(1 << 18, n // 8)))
    column = one.repeat(most) if hasattr(one, "repeat") else protocol.domain.encode([answer] * most)
    read = protocol.privatize([answer] * _READ, Simulation(50)).array
    few = protocol.draw_many(one.repeat(_READ) if hasattr(one, "repeat") else column[:_READ], Simulation(50))
    require(np.array_equal(read, few), "a column of answers gives other reports than the same answers encoded")
    bits = Simulation(50 + value)
    for start in range(0, n, most):
        yield protocol.draw_many(column[: n - start], bits)


def _as_numbers(rows: NDArray[np.uint8]) -> NDArray[Any]:
    """Reports of up to eight bytes as whole numbers, which are looked up much faster than rows."""
    width = next(width for width in (1, 2, 4, 8) if width >= rows.shape[1])
    padded = np.zeros((len(rows), width), dtype=np.uint8)
    padded[:, : rows.shape[1]] = rows
    return padded.view(f"<u{width}")[:, 0]


def check_support(protocol: Protocol) -> None:
    """3. `support`, if there is one, says which answers a report speaks for; p and q are its exact probabilities."""
    support = getattr(protocol, "support", None)
    if support is None:
        return
    channel = enumerated(protocol)
    supported = support(report_rows(channel))
    numerators = channel.numerators
    for y in range(len(channel.outputs)):
        column = numerators[:, y]
        low = min(column)
        expected = [Fraction(int(entry), int(low)) for entry in column]
        weights = [protocol.ratio if supported[y, v] else Fraction(1) for v in range(len(column))]
        least = min(weights)
        require([w / least for w in weights] == expected, "the support is not where the likelihood is")
    pure = protocol.law().support
    if pure is not None:
        for v, w in product(range(len(channel.inputs)), repeat=2):
            chance = Fraction(sum(int(x) for x in numerators[v][supported[:, w]]), channel.denominator)
            require(chance == (pure.p if v == w else pure.q), "p or q is not what the bytes do")


def check_positions(protocol: Protocol) -> None:
    """4. Every bit of a report that is not padding and not sent in clear is random, whatever the answer."""
    channel = enumerated(protocol)
    if protocol.guarantee.delta:
        return  # with a small probability a report may tell
    bits = np.unpackbits(report_rows(channel), axis=1)
    inputs = {tuple(sorted(mixture)): None for pair in protocol.law().related() for mixture in pair}
    require(
        bool(protocol.law().clear) == (protocol.law().clear_bytes > 0), "bytes are in clear, and it is not said of what"
    )
    for position in range(bits.shape[1]):
        if len(set(bits[:, position])) == 1:
            continue  # padding, or a digit that no report uses
        if position < 8 * protocol.law().clear_bytes:
            continue  # that it says nothing about answers which are protected is a matter of the level
        for v, places in enumerate(inputs):
            possible = set(bits[(channel.rows[list(places)] > 0).any(axis=0), position])
            require(possible == {0, 1}, f"bit {position} gives answer {v} away")


def check_refusals(protocol: Protocol) -> None:
    """5. Answers outside the domain are refused without repeating them, malformed reports are not counted."""
    for secret in ("s3cret", 987654321, float("nan"), None, ["s3cret"], [None], object(), [["s3cret"]]):
        if secret == 987654321 and _clipped(protocol, secret):
            continue
        refuses(protocol.privatize, secret)
        refuses(protocol.report, secret)
    good = protocol.privatize([protocol.domain.example] * 3, Simulation(1)).array
    known = {row.tobytes() for row in report_rows(enumerated(protocol))}
    random = np.random.default_rng(1).integers(0, 256, (300, good.shape[1])).astype(np.uint8)
    right = [row.tobytes() in known for row in random]
    require(protocol.valid(random).tolist() == right, "valid() is wrong about a report")
    for place in np.flatnonzero(~np.array(right))[:30]:
        broken = good.copy()
        broken[1] = random[place]
        require(protocol.valid(broken).tolist() == [True, False, True], "valid() is wrong about a report")
        require(raises(ReportError, protocol.tally, broken), "a malformed report was counted")
    wide = np.zeros((1, protocol.report_bytes + 1), dtype=np.uint8)
    require(raises(ReportError, protocol.tally, wide), "a report with too many bytes was counted")
    foreign = Tally("0" * 64, 1, protocol.tally(good).counts)
    require(
        raises(MismatchError, lambda: protocol.tally(Reports("0" * 64, good))), "another protocol's report was counted"
    )
    require(raises(MismatchError, lambda: protocol.estimate(foreign)), "another protocol's tally was used")
    before = protocol.estimate(protocol.empty())
    require(before.n == 0 and before.notes, "nothing says that there are no reports")
    unknown = all(row["value"] is None and row["low"] < row["high"] for row in before.document().rows)
    require(unknown, "without reports there is a value")


def _clipped(protocol: Protocol, number: int) -> bool:
    """Whether a number far outside is an answer, namely the same one as every other number far outside."""
    try:
        found = protocol.domain.encode_one(number)
    except DeniableError:
        return False
    return bool(found == protocol.domain.encode_one(float(number) ** 9))


def check_order(protocol: Protocol) -> None:
    """6. Every way to a report gives the same bytes from the same random bytes, the system's too; others differ."""
    answers = inputs(protocol)
    odd = disagreement(protocol, answers)
    require(not odd, odd)
    for seed in range(20):
        label = answers[seed % len(answers)]
        single, batch, alone = Simulation(seed), Simulation(seed), Simulation(seed)
        one = protocol.privatize(label, single)
        require(one == protocol.privatize([label], batch), "a batch of one gives another report than a single answer")
        require(one.to_bytes() == protocol.report(label, alone), "report() gives other bytes than privatize()")
        words = {source.word() for source in (single, batch, alone)}
        require(len(words) == 1, "a batch of one leaves the stream elsewhere than a single answer")
    column = [protocol.domain.example] * 400
    runs = {protocol.privatize(column, Secure()).to_bytes() for _ in range(3)}
    require(len(runs) == 3, "two runs gave the same reports")


def check_unbiased(protocol: Protocol) -> None:
    """7. Over all reports, the estimate's mean is the truth; its error bars and the planner's fit the reports."""
    channel = enumerated(protocol)
    singles = [protocol.tally(row[None, :]) for row in report_rows(channel)]
    figures = np.array([_figures(protocol, tally) for tally in singles])
    pair = _figures(protocol, singles[0] + singles[-1])
    require(
        np.allclose(2 * pair, figures[0] + figures[-1], atol=1e-9), "the estimate of a sum is not the sum of estimates"
    )
    answers = inputs(protocol)
    truth = np.array([protocol.worth().truth([answer]) for answer in answers])
    scale = max(1.0, float(np.abs(truth).max()))
    mean = channel.rows @ figures
    require(np.abs(mean - truth).max() < 1e-7 * scale, "the estimate is biased")
    spread = channel.rows @ figures**2 - mean**2  # of one report, for each answer and figure
    ends = [0, len(answers) - 1]
    noise, share = spread[ends].mean(axis=0), truth[ends].mean(axis=0)
    if not protocol.worth().formula_for:
        stated = protocol.worth().variances([answers[end] for end in ends])
        require(np.allclose(2 * stated, noise, rtol=1e-7), "figure_variances() are not those of the reports")
    if protocol.law().support is not None:
        pure: Any = protocol
        formula = pure.variance(2, share, population=False)
        require(np.allclose(2 * noise, formula, rtol=1e-7), "the variance is not the formula's")
        sampled = pure.variance(2, share) - formula
        require(np.allclose(sampled, 2 * share * (1 - share)), "the sampling error is not the formula's")
    most = protocol.worth(1, population=False).error ** 2
    require(spread.max() <= most * (1 + 1e-7), "error() is smaller than the spread of the reports")
    total = noise + ((truth[ends] - share) ** 2).mean(axis=0)
    require(
        total.max() <= protocol.worth(1).error ** 2 * (1 + 1e-7), "error() is smaller than the spread of the population"
    )
    # Where the estimate is the truth, its error bar is the exact one: give it the expected tally of a large crowd.
    expected = channel.rows[ends].mean(axis=0) @ np.array([tally.counts for tally in singles])
    result = protocol.estimate(Tally(protocol.fingerprint, _CROWD, np.rint(_CROWD * expected).astype(np.int64)))
    shown = result.table().stderr ** 2 * _CROWD
    require(np.allclose(shown, total, rtol=1e-5), "the variance is not that of the reports")
    alone = result.table(population=False).stderr ** 2 * _CROWD
    require((alone >= noise * (1 - 1e-5)).all(), "the variance among those who answered is too small")


def _figures(protocol: Protocol, tally: Tally) -> NDArray[np.float64]:
    figures: NDArray[np.float64] = protocol.estimate(tally).table().value
    return figures


def check_monoid(protocol: Protocol) -> None:
    """8. Tallies and batches add up, in any order and grouping; the empty one changes nothing; overflow is refused."""
    answers = inputs(protocol)
    values = np.random.default_rng(2).integers(0, len(answers), 3000)
    reports = protocol.privatize([answers[v] for v in values], Simulation(3))
    whole = protocol.tally(reports)
    cuts = [reports[:7], reports[7:8], reports[8:2500], reports[2500:]]
    parts = [protocol.tally(part) for part in cuts]
    require(
        sum(parts) == whole == Tally.sum(reversed(parts)), "the tallies of parts do not add up to that of the whole"
    )
    counter = protocol.counter()
    for part in cuts:
        counter.add(part)
    require(counter.tally() == whole, "batches give another tally than all at once")
    taken = counter.tally()
    counter.add(reports)
    require(taken == whole, "a tally that was taken changes when more reports come")
    nested = parts[0] + (parts[1] + parts[2]) == (parts[0] + parts[1]) + parts[2]
    require(nested, "the grouping of tallies matters")
    require(whole + protocol.empty() == whole == protocol.empty() + whole, "the empty tally changes others")
    shuffled = np.random.default_rng(4).permutation(len(reports))
    require(protocol.tally(reports[shuffled]) == whole, "the order of reports matters")
    huge = Tally(whole.fingerprint, 1 << 62, np.full(protocol.tally_size, 1 << 62))
    require(raises(OverflowError, lambda: huge + huge), "an overflow went unnoticed")
    other = Tally(whole.fingerprint, 0, whole.counts, "survey/other")
    require(raises(MismatchError, lambda: whole + other), "tallies of different sources were added")


def check_identity(protocol: Protocol) -> None:
    """9. spec -> load -> spec is the identity, through JSON; other parameters have other fingerprints."""
    again = load(json.dumps(protocol.spec()))
    require(again == protocol, "the spec gives another protocol")
    require(again.spec() == protocol.spec(), "the spec of what was loaded is another")
    require(again.fingerprint == protocol.fingerprint, "what was loaded has another fingerprint")
    for name, factor in LEVELS.items():
        require(scaled(protocol, factor).fingerprint != protocol.fingerprint, f"{name} has the same fingerprint")
    numbers = Integers(7, 6 + len(inputs(protocol)))
    if isinstance(numbers, protocol.traits.takes):
        moved = load(protocol.spec() | {"domain": numbers.spec()})
        require(moved.fingerprint != protocol.fingerprint, "another domain has the same fingerprint")


def check_value_object(protocol: Protocol) -> None:
    """10. Pickle, deepcopy, equality, hash, repr; no warnings; nothing can be changed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for twin in (pickle.loads(pickle.dumps(protocol)), copy.deepcopy(protocol), load(protocol.spec())):
            require(twin == protocol, "a copy is not equal")
            require(hash(twin) == hash(protocol), "equal protocols have different hashes")
        require(repr(protocol), "there is no repr")
        frozen = raises(AttributeError, lambda: setattr(protocol, "epsilon", Fraction(9)))
        require(frozen, "its epsilon can be changed")
        reports = protocol.privatize([protocol.domain.example] * 2)
        require(not reports.array.flags.writeable, "reports can be changed")
        require(not protocol.tally(reports).counts.flags.writeable, "a tally can be changed")


def check_stages(protocol: Protocol) -> None:
    """11. With two stages, both have their levels, reports use only the kept state, and streams reveal no more."""
    stages = protocol.law().stages
    if stages is None:
        return
    device, (permanent, instant) = stages.device, stages.channels()
    require(permanent.ratio == stages.ratio, "the stated ratio of a state is not that of its bytes")
    require(
        _second_ratio(stages, instant) == device.instant_ratio,
        "the stated ratio of a report from a state is not that of its bytes",
    )
    require(exp_at_least(stages.forever, stages.ratio), "a state tells more than `forever` allows")
    require(exp_at_least(device.instant_epsilon, device.instant_ratio), "the level of the second stage is too small")
    require(permanent.shape[1] <= protocol.law().kept.state_forms, "there are more states than are stated")
    composed, whole = permanent >> instant, enumerated(protocol)
    same = [[composed.probability(x, y) for y in whole.outputs] for x in composed.inputs]
    apart = [[whole.probability(x, y) for y in whole.outputs] for x in whole.inputs]
    require(same == apart, "a report from a kept state has another law than privatize()")
    answers = inputs(protocol)[:2]
    laws = {
        stream: exhaust(lambda bits, stream=stream: b"".join(device.stream(stream, None, bits))).law  # type: ignore[misc]
        for stream in product(answers, repeat=2)
    }
    levels = stages.levels(2)
    for (one, law), (other, rival) in product(laws.items(), repeat=2):
        require(law.keys() == rival.keys(), "the reports of one stream rule out another")
        ratio = max(law[sent] / rival[sent] for sent in law)
        require(ratio <= levels.any.ratio, "two streams tell more than is stated of any two")
        if (one[0] == one[1]) == (other[0] == other[1]):
            require(ratio <= levels.same_pattern.ratio, "two streams of one pattern tell more than is stated")
    state = device.permanent(answers[0])
    runs = {b"".join(device.report_from(state) for _ in range(400)) for _ in range(3)}
    require(len(runs) == 3, "reports from one state are not drawn afresh")


def _second_ratio(stages: Stages, instant: Channel) -> Fraction:
    """The largest ratio of a report's probabilities under two states of one device, which share their head."""
    heads: dict[str, list[int]] = {}
    for row, state in enumerate(instant.inputs):
        heads.setdefault(str(state)[: 2 * stages.shared_bytes], []).append(row)
    largest = Fraction(1)
    for rows in heads.values():
        for column in instant.numerators[rows].T:
            if any(column):
                require(all(column), "a report from one state is impossible from another of the same device")
                largest = max(largest, Fraction(int(max(column)), int(min(column))))
    return largest


def check_streams(protocol: Protocol) -> None:
    """12. For streams of answers, all that a device sends over the epochs reveals no more than is promised."""
    laws = protocol.law().kept.streams()
    require(bool(laws) == (protocol.guarantee.relation == "stream"), "the laws of whole streams are missing")
    if not laws:
        require(protocol.law().kept.ratio == protocol.ratio, "only a protocol of streams promises more than one report")
        return
    sent = set().union(*laws.values())
    require(all(law.keys() == sent for law in laws.values()), "the reports of one stream rule out another")
    largest = max(max(column) / min(column) for column in ([law[reports] for law in laws.values()] for reports in sent))
    require(exp_at_least(protocol.epsilon, largest), "two streams tell more than is promised")
    require(largest <= protocol.law().kept.ratio, "the stated ratio of whole streams is too small")
    require(len({len(reports) for reports in sent}) == 1, "what a device sends has different lengths")


def check_forging(protocol: Protocol) -> None:
    """13. Intervals of `robust` hold for the honest reports, whatever the forged ones say; `leverage` is stated."""
    answers = inputs(protocol)
    crowd = [answers[place * place % len(answers)] for place in range(_HONEST)]
    honest = protocol.tally(protocol.privatize(crowd, Simulation(1)))
    try:
        plain = protocol.estimate(honest)
        plain.robust(_FAKES)
    except MismatchError:
        require(protocol.worth().leverage is None, "`robust` does not know what forged reports can do: state `weights`")
        return
    require(
        min(protocol.worth().leverage or 0, protocol.worth().moved or 0) > 0, "leverage and poisoning are not stated"
    )
    rows = report_rows(enumerated(protocol))
    for row in rows[np.unique(np.linspace(0, len(rows) - 1, _FORGERIES).astype(int))]:
        forged = protocol.tally(np.repeat(row[None, :], _FAKES, axis=0))
        seen = protocol.estimate(honest + forged).robust(_FAKES)
        outside = []
        for before, after in (
            (plain.unbiased.table(_NO_LEVEL), seen.unbiased.table(_NO_LEVEL)),
            (plain.table(), seen.table()),
        ):
            if len(after) != len(before) or not len(after):
                return  # what is found depends on the reports
            beyond = np.maximum(after.low - before.low, before.high - after.high) / np.maximum(before.stderr, 1e-12)
            outside.append(np.nan_to_num(beyond, nan=0.0))
        if plain.family in ("shares", "mean"):
            _check_widening(plain, protocol.estimate(honest + forged), seen)
        # Where weights are chosen for the reports, the values alone may be a little outside, and not the intervals;
        # where errors are, the other way round.
        require(
            float(np.minimum(*outside).max()) <= _OUTSIDE,
            "without the forged reports a figure is outside of the interval that allows for them",
        )


def _check_widening(plain: Result, moved: Result, seen: Result) -> None:
    """`robust` itself widens intervals by as much as the forged reports moved the figures.

    However wide an interval is without it: a leverage that is too small would hide in a wide one.
    """
    before, without, with_fakes = (one.unbiased.table(_NO_LEVEL) for one in (plain, moved, seen))
    shift, error = without.value - before.value, np.maximum(before.stderr, 1e-12)
    short = np.maximum(shift - (without.low - with_fakes.low), -shift - (with_fakes.high - without.high)) / error
    require(
        float(np.nan_to_num(short, nan=0.0).max()) <= _OUTSIDE,
        "forged reports move a figure outside of the interval that allows for them: it is not widened by enough",
    )


def check_gains(protocol: Protocol) -> None:
    """14. Forged reports move the figures by what theory says: random, targeted and maximal ones, real bytes of each.

    Twelve standard errors of eight collections, whose law is Student's: wrong once in 150,000 figures.
    """
    channel = enumerated(protocol)
    size = len(channel.inputs)
    people = [1 + _PEOPLE * 2 * (place + 1) // (size * (size + 1)) for place in range(size)]
    fakes = _PEOPLE // 10
    found = gains(protocol, people, size - 1, fakes, channel=channel)
    for how, moved in found.items():
        require(moved.deviation <= _APART, f"{how} reports do not move the figures by what theory says")
    targeted = found["targeted"]
    if not targeted.linear or "unbiased" in waived(protocol):
        return
    each = [protocol.worth().truth(inputs(protocol), held) for held in (np.arange(size) == size - 1, people)]
    if each[0].shape == targeted.expected.shape:
        stated = fakes / (sum(people) + fakes) * (each[0] - each[1])
        scale = max(1.0, float(np.abs(each).max()))
        require(np.abs(targeted.expected - stated).max() <= 1e-6 * scale, "honest reports have the wrong weights")


_PEOPLE, _APART = 2000, 12.0
_HONEST, _FAKES, _FORGERIES, _NO_LEVEL, _OUTSIDE = 4000, 40, 2, 1e-6, 0.15


def check_kernel(protocol: Protocol) -> None:
    """15. Each faster form of drawing, checking and counting gives what the plain form gives."""
    kernel, forms, answers = protocol.kernel(), plain(protocol), inputs(protocol)
    column = protocol.domain.encode([answers[place % len(answers)] for place in range(_COLUMN)])
    reports = protocol.draw_many(column, Simulation(5))
    drawn = np.random.default_rng(6).integers(0, 256, (_COLUMN, protocol.report_bytes)).astype(np.uint8)
    counts = protocol.count(reports)
    if protocol.report_bytes <= WORD_BYTES:
        same = kernel.draw_numbers(column, Simulation(5)) == forms.draw_numbers(column, Simulation(5))
        require(np.all(same), "kernel: draw_numbers gives other reports than draw_many")
        numbers, others = from_bytes(reports), from_bytes(drawn)
        require(np.array_equal(kernel.count_numbers(numbers), counts), "kernel: count_numbers differs from count")
        valid = np.array_equal(kernel.valid_numbers(others), protocol.valid(drawn))
        require(valid, "kernel: valid_numbers differs from valid")
        together = HalvesCounter.of([kernel.halves]) if protocol.report_bytes < 4 else None
        if together is not None:
            found = together.counts(numbers.astype(np.uint32) << np.uint32(8))
            require(found is not None and np.array_equal(found[0][1], counts), "kernel: halves differ from count")
    adder = kernel.adder()
    for part in (reports[:7], reports[7:]):
        protocol._add_checked(adder, part)
    require(np.array_equal(adder.counts(), counts), "kernel: the adder differs from count")
    malformed = drawn[~protocol.valid(drawn)][:1]
    if len(malformed):
        broken = np.vstack([reports, malformed])
        require(raises(ReportError, protocol._add_checked, adder, broken), "kernel: a malformed report was added")
        require(np.array_equal(adder.counts(), counts), "kernel: a part of a malformed batch was added")
        require(raises(ReportError, lambda: list(kernel.pieces(broken))), "kernel: pieces count a malformed report")
    pieces = np.zeros_like(counts)
    for start, piece in kernel.pieces(reports):
        pieces[start : start + len(piece)] += piece
    require(np.array_equal(pieces, counts), "kernel: the pieces differ from count")
    if kernel.simulate is not None:
        _check_simulated(protocol, kernel.simulate)


def _check_simulated(protocol: Protocol, simulate: Callable[[Any, int, np.random.Generator], Any]) -> None:
    """The mean of simulated tallies is the exact one; a right law fails for 1 of 10^8 counters."""
    channel = enumerated(protocol)
    each = np.stack([protocol.count(row[None, :]) for row in report_rows(channel)])
    people = np.arange(1, len(channel.inputs) + 1) * 50
    mean = channel.rows @ each
    spread = channel.rows @ each**2 - mean**2
    tallies = simulate(people, _RUNS, np.random.default_rng(7))
    far = np.abs(tallies.mean(axis=0) - people @ mean)
    require(
        (far <= _FAR * np.sqrt(people @ spread / _RUNS) + TIGHT).all(), "kernel: simulated tallies have another law"
    )
    ratio = tallies.var(axis=0) / np.maximum(people @ spread, TIGHT)
    require((np.abs(ratio - 1) <= _FAR * np.sqrt(2 / _RUNS)).all(), "kernel: simulated tallies vary otherwise")


PROTOCOL_CHECKS = [
    check_waivers,
    check_level,
    check_tight,
    check_law,
    check_support,
    check_positions,
    check_refusals,
    check_order,
    check_unbiased,
    check_monoid,
    check_identity,
    check_value_object,
    check_stages,
    check_streams,
    check_forging,
    check_gains,
    check_kernel,
]

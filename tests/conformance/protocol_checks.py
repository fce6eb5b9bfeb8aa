"""What every protocol passes, on the bytes that leave the device."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from deniable.channels import Channel
from deniable.channels.witness import related_factor
from deniable.domains import Integers
from deniable.errors import DeniableError, MismatchError, ReportError
from deniable.exact import exp_at_least
from deniable.protocols import Protocol, PureProtocol, Reports, Tally, load
from deniable.randomness import Secure, Simulation
from tests.conformance.checks import LEVELS, TIGHT
from tests.conformance.protocol_registry import ProtocolCase
from tests.statistics import accepts, draws_needed

_channels: dict[tuple[type, str], Channel] = {}


def enumerated(case: ProtocolCase, epsilon: Fraction | None = None) -> Channel:
    """The law of the report bytes, from running the real code along every branch; remembered, for it takes time."""
    protocol = case.build(epsilon or case.epsilon)
    key = (type(protocol), protocol.fingerprint)
    if key not in _channels:
        _channels[key] = protocol.channel()
    return _channels[key]


def report_rows(channel: Channel) -> np.ndarray:
    return np.array([list(bytes.fromhex(str(output))) for output in channel.outputs], dtype=np.uint8)


def check_level(case: ProtocolCase) -> None:
    """1. The level of the bytes is the stated one, at most the one asked for, and tight where that is claimed."""
    protocol, channel = case.build(case.epsilon), enumerated(case)
    found = related_factor(channel, protocol.related(), protocol.guarantee.delta)
    assert found == protocol.ratio, "the stated ratio is not that of the bytes"
    assert exp_at_least(protocol.epsilon, protocol.ratio), "the level is exceeded"
    if case.tight:
        assert float(protocol.epsilon) - protocol.realized_epsilon <= TIGHT, "the level is wasted"


def check_law(case: ProtocolCase) -> None:
    """2. Batches follow the enumerated law, and the same test refuses the same code at another level."""
    channel = enumerated(case)
    rows = report_rows(channel)
    others = {name: case.epsilon * factor for name, factor in LEVELS.items()}
    value = len(channel.inputs) - 1
    law = channel.rows[value]
    n = max(draws_needed(law, enumerated(case, level).rows[value]) for level in others.values())
    assert _drawn(case.build(case.epsilon), value, n, rows, law), "batches have another law than single reports"
    for name, level in others.items():
        assert not _drawn(case.build(level), value, n, rows, law), f"the test cannot tell {name}"
    for other in range(len(channel.inputs)):
        assert _drawn(case.build(case.epsilon), other, 20_000, rows, channel.rows[other]), "another law"


def _drawn(protocol: Protocol, value: int, n: int, rows: np.ndarray, law: np.ndarray) -> bool:
    keys = _as_numbers(rows)
    order = np.argsort(keys)
    counts = np.zeros(len(rows), dtype=np.int64)
    for reports in _batches(protocol, value, n):
        drawn = _as_numbers(reports)
        found = order[np.searchsorted(keys, drawn, sorter=order).clip(max=len(keys) - 1)]
        if (keys[found] != drawn).any():
            return False
        counts += np.bincount(found, minlength=len(rows))
    return accepts(counts, law)


def _batches(protocol: Protocol, value: int, n: int) -> Iterator[np.ndarray]:
    """Reports of one answer: the first as a column, the rest encoded once, because reading answers takes time."""
    bits = Simulation(50 + value)
    first, most = min(n, 1 << 14), 1 << 18
    answer = inputs(protocol)[value]
    yield protocol.privatize([answer] * first, bits).array
    encoded = protocol.domain.encode([answer] * min(n, most))
    for start in range(first, n, most):
        yield protocol._many(encoded[: n - start], bits)


def inputs(protocol: Protocol) -> list[Any]:
    """The answers whose laws are the whole channel."""
    return [protocol.domain.answer(label) for label, _ in protocol._inputs()]


def _as_numbers(rows: np.ndarray) -> np.ndarray:
    """Reports of up to eight bytes as whole numbers, which are looked up much faster than rows."""
    padded = np.zeros((len(rows), 8), dtype=np.uint8)
    padded[:, : rows.shape[1]] = rows
    return padded.view("<u8")[:, 0]


def check_support(case: ProtocolCase) -> None:
    """3. `support` says exactly which answers a report speaks for; p and q are its exact probabilities."""
    protocol, channel = case.build(case.epsilon), enumerated(case)
    supported = protocol.support(report_rows(channel))
    numerators = channel.numerators
    for y in range(len(channel.outputs)):
        column = numerators[:, y]
        low = min(column)
        expected = [Fraction(int(entry), int(low)) for entry in column]
        weights = [protocol.ratio if supported[y, v] else Fraction(1) for v in range(len(column))]
        least = min(weights)
        assert [w / least for w in weights] == expected, "the support is not where the likelihood is"
    if isinstance(protocol, PureProtocol):
        for v, w in product(range(len(channel.inputs)), repeat=2):
            chance = Fraction(sum(int(x) for x in numerators[v][supported[:, w]]), channel.denominator)
            assert chance == (protocol.p if v == w else protocol.q), "p or q is not what the bytes do"


def check_positions(case: ProtocolCase) -> None:
    """4. Every bit of a report that is not padding is random, whatever the answer."""
    channel = enumerated(case)
    bits = np.unpackbits(report_rows(channel), axis=1)
    for position in range(bits.shape[1]):
        if len(set(bits[:, position])) == 1:
            continue  # padding, or a digit that no report uses
        for v in range(len(channel.inputs)):
            possible = set(bits[channel.rows[v] > 0, position])
            assert possible == {0, 1}, f"bit {position} gives answer {v} away"


def check_refusals(case: ProtocolCase) -> None:
    """5. Answers outside the domain are refused without repeating them, malformed reports are not counted."""
    protocol = case.build(case.epsilon)
    number = [] if "check_number_is_refused" in case.waived else [987654321]
    for secret in ("s3cret", *number, float("nan"), None, ["s3cret"], [None], object(), [["s3cret"]]):
        message = None
        try:
            protocol.privatize(secret)
        except DeniableError as refusal:
            message = str(refusal)
        assert message is not None, "an answer outside the domain was accepted"
        assert "s3cret" not in message
        assert "987654321" not in message
    good = protocol.privatize([protocol.domain.example] * 3, Simulation(1)).array
    known = {row.tobytes() for row in report_rows(enumerated(case))}
    rng = np.random.default_rng(1)
    for _ in range(300):
        broken = good.copy()
        broken[1] = rng.integers(0, 256, broken.shape[1])
        assert protocol.valid(broken)[1] == (broken[1].tobytes() in known), "valid() is wrong about a report"
        if broken[1].tobytes() not in known:
            assert _raises(ReportError, lambda broken=broken: protocol.tally(broken)), "a malformed report was counted"
    assert _raises(ReportError, lambda: protocol.tally(np.zeros((1, protocol.report_bytes + 1), dtype=np.uint8)))
    assert _raises(MismatchError, lambda: protocol.tally(Reports("0" * 64, good)))
    assert _raises(MismatchError, lambda: protocol.estimate(Tally("0" * 64, 1, protocol.tally(good).counts)))
    before = protocol.estimate(protocol.empty())
    assert before.n == 0, "an empty tally has reports"
    assert all(row["value"] is None and row["low"] < row["high"] for row in before.to_dict()["rows"])
    assert before.notes, "nothing says that there are no reports"


def _raises(kind: type[Exception], call: Any) -> bool:
    try:
        call()
    except kind:
        return True
    return False


def check_order(case: ProtocolCase) -> None:
    """6. One answer and a batch of one give the same bytes from the same random bytes; secure ones differ."""
    protocol = case.build(case.epsilon)
    for seed in range(20):
        label = inputs(protocol)[seed % len(inputs(protocol))]
        single, batch = Simulation(seed), Simulation(seed)
        assert protocol.privatize(label, single) == protocol.privatize([label], batch)
        assert single.word() == batch.word()
    column = [protocol.domain.example] * 400
    assert len({protocol.privatize(column, Secure()).to_bytes() for _ in range(3)}) == 3


def check_unbiased(case: ProtocolCase) -> None:
    """7. Over all pairs of reports of two people, the estimate's mean is the truth and its variance the formula."""
    protocol, channel = case.build(case.epsilon), enumerated(case)
    rows = report_rows(channel)
    singles = [protocol.tally(row[None, :]) for row in rows]
    counts = np.array([protocol.estimate(tally).counts for tally in singles])
    pair = protocol.estimate(singles[0] + singles[-1]).counts
    assert np.allclose(pair, counts[0] + counts[-1], atol=1e-9), "the estimate of a sum is not the sum of estimates"
    people = [0, len(channel.inputs) - 1]
    mean = sum(channel.rows[x] @ counts for x in people)
    truth = np.bincount(people, minlength=len(channel.inputs))
    assert np.abs(mean - truth).max() < 1e-7, "the estimate is biased"
    # The two reports are independent: variances add.
    spread = sum(channel.rows[x] @ counts**2 - (channel.rows[x] @ counts) ** 2 for x in people)
    if isinstance(protocol, PureProtocol):
        noise = protocol.variance(2, truth / 2, population=False)
        assert np.allclose(spread, noise, rtol=1e-7), "the variance is not the formula's"
        sampled = protocol.variance(2, truth / 2) - noise
        assert np.allclose(sampled, 2 * (truth / 2) * (1 - truth / 2))


def check_monoid(case: ProtocolCase) -> None:
    """8. Tallies and batches add up, in any order and grouping; the empty one changes nothing; overflow is refused."""
    protocol = case.build(case.epsilon)
    answers = inputs(protocol)
    values = np.random.default_rng(2).integers(0, len(answers), 3000)
    reports = protocol.privatize([answers[v] for v in values], Simulation(3))
    whole = protocol.tally(reports)
    cuts = [reports[:7], reports[7:8], reports[8:2500], reports[2500:]]
    parts = [protocol.tally(part) for part in cuts]
    assert sum(parts) == whole
    assert Tally.sum(reversed(parts)) == whole
    counter = protocol.counter()
    for part in cuts:
        counter.add(part)
    assert counter.tally() == whole, "batches give another tally than all at once"
    taken = counter.tally()
    counter.add(reports)
    assert taken == whole, "a tally that was taken changes when more reports come"
    assert parts[0] + (parts[1] + parts[2]) == (parts[0] + parts[1]) + parts[2]
    assert whole + protocol.empty() == whole == protocol.empty() + whole
    shuffled = np.random.default_rng(4).permutation(len(reports))
    assert protocol.tally(reports[shuffled]) == whole
    huge = Tally(whole.fingerprint, 1 << 62, np.full(protocol.tally_size, 1 << 62))
    assert _raises(OverflowError, lambda: huge + huge), "an overflow went unnoticed"
    assert _raises(MismatchError, lambda: whole + Tally(whole.fingerprint, 0, whole.counts, "survey/other"))


def check_identity(case: ProtocolCase) -> None:
    """9. spec -> load -> spec is the identity, through JSON; other parameters have other fingerprints."""
    protocol = case.build(case.epsilon)
    again = load(json.dumps(protocol.spec()))
    assert again == protocol
    assert again.spec() == protocol.spec()
    assert again.fingerprint == protocol.fingerprint
    assert case.build(case.epsilon * 2).fingerprint != protocol.fingerprint
    if issubclass(Integers, protocol.takes):
        other = protocol.spec() | {"domain": Integers(7, 6 + len(inputs(protocol))).spec()}
        assert load(other).fingerprint != protocol.fingerprint


def check_value_object(case: ProtocolCase) -> None:
    """10. Pickle, deepcopy, equality, hash, repr; no warnings; nothing can be changed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        protocol = case.build(case.epsilon)
        for twin in (pickle.loads(pickle.dumps(protocol)), copy.deepcopy(protocol), case.build(case.epsilon)):
            assert twin == protocol
            assert hash(twin) == hash(protocol)
        assert repr(protocol)
        assert _raises(AttributeError, lambda: setattr(protocol, "epsilon", Fraction(9)))
        reports = protocol.privatize([protocol.domain.example] * 2)
        assert not reports.array.flags.writeable
        assert not protocol.tally(reports).counts.flags.writeable


PROTOCOL_CHECKS = [
    check_level,
    check_law,
    check_support,
    check_positions,
    check_refusals,
    check_order,
    check_unbiased,
    check_monoid,
    check_identity,
    check_value_object,
]

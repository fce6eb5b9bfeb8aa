"""Two stages: what each level claims holds over whole streams of reports, enumerated by running the real code."""

from __future__ import annotations

import pickle
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from deniable import exact
from deniable.domains import Interval, Strings
from deniable.errors import (
    ChannelError,
    DeniableError,
    DomainError,
    EpsilonError,
    MismatchError,
    NumberError,
    ReportError,
)
from deniable.protocols import (
    GRR,
    LGRR,
    LOLOHA,
    LOSUE,
    LSUE,
    OUE,
    RAPPOR,
    SUE,
    DBitFlip,
    LOneBitMean,
    Memoized,
    OneBitMean,
    load,
    registered,
)
from deniable.protocols.traits import scaled
from deniable.randomness import Bits, Secure, Simulation, exhaust
from deniable.surveys.results import Repeats, find

COIN = LGRR(["yes", "no"], first="1/2", forever=1)
THREE = LGRR(3, first="1/2", forever=1)
FILTER = next(iter(registered()["LRAPPOR"].examples()))
INSTANCES = [
    protocol for _, kind in sorted(registered().items()) if issubclass(kind, Memoized) for protocol in kind.examples()
]


BLOCK = partial(DBitFlip, ["a", "b"], bits=2)
ENDS = partial(LOneBitMean, Interval(0, 1), points=2)
WIDE = [("0.01", "0.02"), ("0.1", 1), (1, 8), (7, 8)]
"""First and forever, from one end of what is used to the other."""


def stream_law(protocol: Memoized, stream: tuple[Any, ...], values: int) -> dict[bytes, Fraction]:
    """The exact law of everything that a device sends: it keeps states as the ledger does, and runs the real code."""

    def device(bits: Bits) -> bytes:
        kept: dict[Any, bytes] = {}
        sent = b""
        for answer in stream:
            first = next(iter(kept.values()), None)
            key = None if first is None else protocol.kept_under(protocol.domain.encode_one(answer), first)
            if key not in kept and len(kept) < values:
                state = protocol.permanent(answer, bits, like=first)
                key = protocol.kept_under(protocol.domain.encode_one(answer), state)
                kept[key] = state
            sent += protocol.report_from(kept.get(key, next(iter(kept.values()))), bits)
        return sent

    return exhaust(device).law


def worst(one: dict[bytes, Fraction], other: dict[bytes, Fraction]) -> Fraction:
    up, down = 0, 1
    for sent, chance in one.items():
        rival = other[sent]
        above, below = chance.numerator * rival.denominator, chance.denominator * rival.numerator
        if above * down > up * below:
            up, down = above, below
    return Fraction(up, down)


def pattern(stream: tuple[Any, ...], values: int) -> tuple[int, ...]:
    """Which epochs share a state: the number of the state in each of them."""
    known: list[Any] = []
    for answer in stream:
        if answer not in known and len(known) < values:
            known.append(answer)
    return tuple(known.index(answer) if answer in known else 0 for answer in stream)


@pytest.mark.parametrize(
    ("protocol", "epochs", "values"),
    [
        *((COIN, 2, 2), (COIN, 3, 1), (COIN, 3, 2), (THREE, 2, 2), (THREE, 2, 1)),
        *((FILTER, 2, 2), (FILTER, 2, 1)),
        *(
            (kind(2, first=first, forever=forever), 2, values)
            for kind, values in ((LGRR, 2), (LSUE, 2), (LOSUE, 2), (LOSUE, 1))
            for first, forever in (("0.01", "0.02"), (1, 8), (7, 8))
        ),
        *(
            (kind(first=first, forever=forever), 2, values)
            for kind in (BLOCK, ENDS)
            for first, forever in (("0.01", "0.02"), (1, 8), (7, 8))
            for values in (1, 2)
        ),
        *(
            pytest.param(protocol, 2, values, marks=pytest.mark.slow)
            for first, forever in WIDE
            for protocol in (
                RAPPOR(["rye", "sourdough"], bloom_bits=2, hashes=1, cohorts=2, first=first, forever=forever),
                LOneBitMean(Interval(0, 2), first=first, forever=forever, steps=2, points=1),
            )
            for values in (1, 2)
        ),
    ],
)
def test_every_level_is_that_of_the_bytes_that_leave(protocol: Memoized, epochs: int, values: int) -> None:
    """All pairs of streams, by brute force; the enumeration in the library finds the same, and no bound is passed."""
    answers = [label for label, _ in protocol.law().inputs()]
    laws = {stream: stream_law(protocol, stream, values) for stream in product(answers, repeat=epochs)}
    largest = {"same_value": Fraction(1), "same_pattern": Fraction(1), "any": Fraction(1)}
    for (one, law), (other, rival) in product(laws.items(), repeat=2):
        ratio = worst(law, rival)
        largest["any"] = max(largest["any"], ratio)
        if pattern(one, values) == pattern(other, values):
            largest["same_pattern"] = max(largest["same_pattern"], ratio)
            if len(set(pattern(one, values))) == 1:
                largest["same_value"] = max(largest["same_value"], ratio)
    found, bounds = protocol.levels(epochs, values, enumerated=True), protocol.levels(epochs, values)
    for name, ratio in largest.items():
        assert getattr(found, name).ratio == ratio, "the claimed level is reached, not only bounded"
        assert getattr(found, name).is_exact
        assert ratio <= getattr(bounds, name).ratio
    assert exact.exp_at_least(protocol.law().kept.lifetime(epochs, values), largest["any"])
    assert exact.exp_at_least(protocol.law().kept.spent(min(values, epochs)), largest["same_pattern"])
    if values == 1:
        assert exact.exp_at_least(protocol.forever, largest["any"]), "one state bounds all that ever leaves"


@pytest.mark.parametrize("protocol", INSTANCES, ids=str)
def test_one_report_is_the_composition_of_both_stages(protocol: Memoized) -> None:
    first, second = protocol.stages
    composed = first >> second
    assert composed.ratio == protocol.ratio == protocol.channel().ratio
    assert composed.epsilon == protocol.realized_epsilon
    assert first.ratio == protocol.permanent_ratio
    if not protocol.shared_bytes:  # else two devices may have reports that rule each other out: see the conformance
        assert second.ratio == protocol.instant_ratio
    assert first.shape[1] <= protocol.law().kept.state_forms
    assert exact.exp_at_least(protocol.forever, first.ratio)
    assert exact.exp_at_least(protocol.first, composed.ratio)
    assert exact.exp_at_least(protocol.instant_epsilon, protocol.instant_ratio)
    part, parts = protocol.instant_power
    assert not exact.exp_at_least(protocol.instant_epsilon / parts - Fraction(1, 1000), part)


@pytest.mark.parametrize("protocol", INSTANCES, ids=str)
def test_states_are_kept_and_reports_are_fresh(protocol: Memoized) -> None:
    """One state gives different reports, and the reports in bulk follow the law of single ones."""
    answer = protocol.domain.example
    state = protocol.permanent(answer)
    assert len({b"".join(protocol.report_from(state, Secure()) for _ in range(200)) for _ in range(3)}) == 3
    states = protocol.permanents([answer] * 4000, Simulation(1))
    assert all(protocol._is_state(row.tobytes()) for row in states)
    sent = protocol.reports(states, Simulation(2))
    assert protocol.tally(sent).n == 4000
    for wrong in (answer, "yes", b"", state + b"\0", bytes([255]) * len(state), bytearray(state)):
        with pytest.raises(ReportError) as refusal:
            protocol.report_from(wrong)  # type: ignore[arg-type]
        assert "yes" not in str(refusal.value)
    with pytest.raises(ReportError):
        protocol.reports(np.zeros((3, 9), dtype=np.uint8))


def test_the_four_numbers() -> None:
    """Permanent level 1, first report 1/2: the numbers that were computed independently of this code."""
    any_two = [round(float(COIN.levels(epochs, enumerated=True).any), 3) for epochs in (1, 2, 4, 6)]
    assert any_two == [0.5, 1.0, 2.034, 3.168]
    at_eight = COIN.levels(8, enumerated=True)
    assert [round(float(level), 4) for level in at_eight] == [0.5, 0.9998, 1.9587, 4.3332]
    assert at_eight.any > 2 * COIN.forever, "neither the states"
    assert at_eight.any > 8 * COIN.first, "nor the reports as if they were independent"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "anything"),
    [
        *((protocol, 4.3332) for protocol in (COIN, LOLOHA(3, first="1/2", forever=1, hashing=Strings(2, 2, key="a")))),
        *(
            (protocol, 4.3332)
            for protocol in (ENDS(first="1/2", forever=1), DBitFlip(2, first="1/2", forever=1, bits=1))
        ),
        *((protocol, 7.0862) for protocol in (LSUE(2, first="1/2", forever=1), BLOCK(first="1/2", forever=1), FILTER)),
        (LOSUE(2, first="1/2", forever=1), 7.4542),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_four_numbers_of_every_kind(protocol: Memoized, anything: float) -> None:
    """Eight epochs, every pair of streams: below what is stated, and any two streams tell more than the states do."""
    found, bounds = protocol.levels(8, enumerated=True), protocol.levels(8)
    assert all(one.ratio <= bound.ratio for one, bound in zip(found, bounds, strict=True))
    assert found.first == pytest.approx(0.5, abs=1e-12)
    assert 0.999 < found.same_value < 1
    assert 1.95 < found.same_pattern < 2
    assert found.any == pytest.approx(anything, abs=1e-3)
    # As parts of the ledger: what is debited per state, and what is stated of any two streams.
    assert exact.exp_at_least(protocol.law().kept.spent(2), found.same_pattern.ratio)
    assert exact.exp_at_least(protocol.law().kept.lifetime(8), found.any.ratio)


def test_equal_change_times_are_not_enough() -> None:
    """a, b, a against a, b, c changes at the same times, and yet passes what three states would cost."""
    assert exact.log(THREE.between([0, 0, 0, 1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1, 2, 2, 2])) == pytest.approx(
        3.209, abs=1e-3
    )
    capped = LGRR(4, first="1/2", forever=1)
    streams = [0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 1, 1, 0, 0, 1, 1]
    assert exact.log(capped.between(*streams, values=2)) == pytest.approx(2.926, abs=1e-3), "stored a, b, a, a"
    assert exact.log(capped.between(*streams, values=1)) == 0, "one state hides every change"


def test_a_rounding_in_the_wrong_direction_is_found() -> None:
    """Power: with one unit more in the second stage the first report passes its level."""
    first, second = COIN.response.keep, COIN.instant.keep
    kept = first.value * (second.value + Fraction(1, 1 << 64))
    assert not exact.exp_at_least(COIN.first, 1 + 2 * kept / (1 - kept))
    assert exact.exp_at_least(COIN.first, COIN.ratio)
    assert COIN.realized_epsilon == pytest.approx(0.5, abs=1e-15)


@pytest.mark.parametrize(("size", "first", "forever"), [(2, "0.01", "0.02"), (4, 1, 2), (50, "0.3", 3), (300, 4, 8)])
def test_chaining_is_exact_for_any_number_of_answers(size: int, first: Any, forever: Any) -> None:
    """The report has the level that was asked for, and the error of plain GRR at that level."""
    protocol, plain = LGRR(size, first=first, forever=forever), GRR(size, first)
    assert protocol.realized_epsilon == pytest.approx(float(protocol.first), rel=1e-12)
    assert protocol.variance(1000, 0.3) == pytest.approx(plain.variance(1000, 0.3), rel=1e-9)
    published = _published(size, float(protocol.first), float(protocol.forever))
    assert published < float(protocol.first) * (1 + 1e-12)
    assert size == 2 or published < 0.98 * float(protocol.first), "the published second stage wastes level"


@pytest.mark.parametrize(("first", "forever"), [("0.01", "0.02"), ("1/2", 1), (4, 8)])
def test_one_report_of_a_bitmap_is_that_of_the_plain_protocol(first: Any, forever: Any) -> None:
    """LSUE reports as SUE at the first level does, LOSUE as OUE does: to 1e-15, and never above the level."""
    for staged, plain in ((LSUE, SUE), (LOSUE, OUE)):
        protocol, one = staged(70, first=first, forever=forever), plain(70, first)
        assert abs(protocol.p - one.p) < 1e-15
        assert abs(protocol.q - one.q) < 1e-15
        assert exact.exp_at_least(protocol.first, protocol.ratio)
        assert protocol.permanent_ratio == plain(70, forever).ratio
        # One unit less in the second stage, and the first report tells more than was asked for.
        less = protocol.other_bit.value + (1 - 2 * protocol.other_bit.value) * (
            protocol.flip.value - Fraction(2, 1 << 64)
        )
        power = 2 if staged is LSUE else 1
        assert not exact.exp_at_least(protocol.first, ((1 - less) / less) ** power)


def test_bits_are_compared_one_by_one() -> None:
    """Of many answers too, the ratio of two streams is exact: here against all 16 states of four bits, in full."""
    for kind in (LSUE, LOSUE):
        four = kind(4, first=1, forever=2)
        for one, other in (([0, 0], [0, 1]), ([0, 1], [2, 3]), ([0, 1], [1, 0])):
            table: dict[tuple[int, int], int] = {}
            for cell in zip(one, other, strict=True):
                table[cell] = table.get(cell, 0) + 1
            turned = {(w, v): count for (v, w), count in table.items()}
            for place in Memoized._places(four, range(4)):
                assert four.between(one, other) == max(place.largest(table), place.largest(turned))
    wide = LOSUE(1000, first=1, forever=2)
    assert exact.log(wide.between([0] * 4, [0, 1] * 2)) > 20, "every bit shows a little of a change"


@pytest.mark.parametrize(
    ("values", "first", "forever"),
    [
        *((values, "1/2", 1) for values in (1, 2)),
        *(pytest.param(values, *levels, marks=pytest.mark.slow) for values in (1, 2) for levels in WIDE),
    ],
)
def test_levels_of_a_hash_are_those_of_the_bytes_that_leave(values: int, first: Any, forever: Any) -> None:
    """Of all pairs of streams, given the hash function that a device keeps: cells that recur share their state."""
    protocol = LOLOHA(3, first=first, forever=forever, hashing=Strings(2, 2, key="a"))
    laws = {stream: stream_law(protocol, stream, values) for stream in product(range(3), repeat=2)}
    largest = {"same_value": Fraction(1), "same_pattern": Fraction(1), "any": Fraction(1)}
    for head in range(2):
        cells = {answer: protocol.hashing.cell(str(answer), head) for answer in range(3)}
        assert len(set(cells.values())) == 2, "some answers share a cell, and some do not"
        for (one, law), (other, rival) in product(laws.items(), repeat=2):
            ratio = max(law[sent] / rival[sent] for sent in law if sent[0] == head)
            largest["any"] = max(largest["any"], ratio)
            patterns = [pattern(tuple(cells[answer] for answer in stream), values) for stream in (one, other)]
            if patterns[0] == patterns[1]:
                largest["same_pattern"] = max(largest["same_pattern"], ratio)
                largest["same_value"] = max(largest["same_value"], ratio if len(set(patterns[0])) == 1 else 1)
    found, bounds = protocol.levels(2, values, enumerated=True), protocol.levels(2, values)
    for name, ratio in largest.items():
        assert getattr(found, name).ratio == ratio <= getattr(bounds, name).ratio


def test_answers_in_one_cell_share_their_state() -> None:
    protocol = LOLOHA(50, first=1, forever=2, hashing=Strings(4, 8))
    bits, known = Simulation(3), []
    for answer in [*range(50), *range(50)]:
        state, key = protocol.kept_state(answer, known, None, bits)
        if key is not None:
            known.append((key, state))
        assert state[0] == known[0][1][0], "the hash function stays the same"
    assert len(known) == 4 == protocol.levels(100).same_pattern / protocol.levels(100).same_value
    with pytest.raises(DomainError, match="tell devices apart"):
        LOLOHA(50, first=1, forever=2, hashing=Strings(4, 257))
    with pytest.raises(ReportError):
        protocol.permanent(3, like=b"\xff\xff")


def test_rappor_in_full_reports_like_rappor_and_keeps_its_cohort() -> None:
    """Both levels, one constructor; the decoder and its errors are those of the one-time form at the first level."""
    full, once = RAPPOR(Strings(), first=2, forever=4), RAPPOR(Strings(), 2)
    assert isinstance(full, Memoized)
    assert not isinstance(once, Memoized)
    assert abs(full.sent_flip - once.flip.value) < 1e-15
    assert full.permanent_ratio == RAPPOR(Strings(), 4).ratio
    assert full.variance(1000, 0.1) == pytest.approx(once.variance(1000, 0.1), rel=1e-12)
    assert full.law().kept.linking(1) > 1024, "a filter of 128 bits is a cookie from the first report on"
    bits = Simulation(4)
    first = full.permanent("rye", bits)
    assert full.permanent("sourdough", bits, like=first)[:1] == first[:1]
    words = ["rye"] * 6000 + ["sourdough"] * 3000 + ["naan"] * 1000
    states = full.permanents(words, bits)
    for _ in range(2):
        found = full.estimate(full.tally(full.reports(states, bits)), ["rye", "sourdough", "naan", "none"])
        assert (abs(found.frequencies - [0.6, 0.3, 0.1, 0]) < 5.5 * found.stderr).all()
    assert (found.stderr < 0.08).all()


def _published(size: int, first: float, forever: float) -> float:
    """The level of the report with the second stage of the literature, (ab - 1) / (a - b)."""
    a, b = np.exp(forever), np.exp(first)
    odds = (a * b - 1) / (a - b)
    kept = (a - 1) / (a + size - 1) * (odds - 1) / (odds + size - 1)
    return float(np.log1p(size * kept / (1 - kept)))


def test_estimates_of_an_epoch_are_unbiased_and_their_errors_right() -> None:
    """5,000 devices keep their states over two epochs: each epoch's error is as stated. False alarm below 1e-6."""
    truth = np.repeat([0, 1, 2], [3000, 1500, 500])
    shares, errors, runs = [], [], 200
    bits = Simulation(7)
    for _ in range(runs):
        states = THREE.permanents(truth, bits)
        found = [THREE.estimate(THREE.tally(THREE.reports(states, bits))) for _ in range(2)]
        shares.append([estimate.frequencies for estimate in found])
        errors.append([np.sqrt(estimate.noise) / 5000 for estimate in found])
    stated = np.mean(errors, axis=0)
    off = (np.mean(shares, axis=0) - [0.6, 0.3, 0.1]) / (stated / np.sqrt(runs))
    assert np.abs(off).max() < 5.5
    assert np.abs(np.std(shares, axis=0) / stated - 1).max() < 5.5 / np.sqrt(2 * runs)
    # The kept states are the same noise in both epochs: the two errors go together.
    apart = np.array(shares) - [0.6, 0.3, 0.1]
    together = np.mean(apart[:, 0] * apart[:, 1], axis=0) / np.var(apart, axis=(0, 1))
    assert (together > 0.15).all(), "an average over epochs is not that of fresh noise"


@pytest.mark.parametrize("protocol", [THREE, LSUE(2, first="1/2", forever=1), LOSUE(2, first=1, forever=2)], ids=str)
def test_noise_that_two_epochs_share_is_that_of_the_state(protocol: Any) -> None:
    """n Cov = q1 (1 - q1) / (p1 - q1)^2, from the exact channels; averaging over epochs leaves it as a floor."""
    first, second = protocol.stages
    supported = protocol.support(np.array([list(bytes.fromhex(str(y))) for y in second.outputs], dtype=np.uint8))
    given = second.rows @ supported[:, 1] / float(protocol.p - protocol.q)  # of a state: the mean estimate of answer 1
    for holder in (0, 1):
        shared = float(first.rows[holder] @ given**2 - (first.rows[holder] @ given) ** 2)
        p1, q1, _, _ = map(float, protocol._supports_kept)
        stored = p1 if holder == 1 else q1
        assert shared == pytest.approx(stored * (1 - stored) / (p1 - q1) ** 2, rel=1e-9)
    p1, q1, _, _ = map(float, protocol._supports_kept)
    assert protocol.floor(1000) ** 2 * 1000 == pytest.approx(q1 * (1 - q1) / (p1 - q1) ** 2, rel=1e-9)


@pytest.mark.parametrize("kind", [LGRR, pytest.param(LSUE, marks=pytest.mark.slow), LOSUE])
def test_errors_over_several_epochs_are_those_of_the_same_devices(kind: Any) -> None:
    """Four epochs of 2,000 devices that keep their answers, 150 times: sums and changes spread as their errors say.

    A standard deviation from 150 runs is off by more than 30 percent with probability below 1e-6.
    """
    protocol, bits, epochs = kind(5, first=1, forever=2), Simulation(3), 4
    answers, sums, changes = np.repeat([0, 1], [1600, 400]), [], []
    for _ in range(150):
        states = protocol.permanents(answers, bits)
        tallies = [protocol.tally(protocol.reports(states, bits)) for _ in range(epochs)]
        once = Repeats(float(epochs), float(epochs), stages=True).within(protocol)
        total = tallies[0] + tallies[1] + tallies[2] + tallies[3]
        found = find(protocol, total, repeats=Repeats(float(epochs), float(epochs), stages=True))
        sums.append(found.frequencies / found.errors(population=False))
        change = protocol.change(tallies[0], tallies[1], changed=0)
        changes.append(change.value / change.stderr)
        assert once.noise < epochs, "not all of the noise comes again"
    for ratios in (np.std(sums, axis=0), np.std(changes, axis=0)):
        assert (ratios < 1.3).all()
        assert (ratios > 0.7).all()
    plain = protocol.estimate(tallies[1]) - protocol.estimate(tallies[0])
    assert (change.stderr < 0.97 * plain.stderr).all(), "the same people differ less than two groups"
    with pytest.raises(NumberError):
        protocol.change(tallies[0], tallies[1], changed=2)
    with pytest.raises(MismatchError):
        protocol.change(tallies[0], total, changed=0)


@pytest.mark.parametrize(("size", "first", "forever"), [(4, 1, 2), (10, 2, 4)])
def test_exact_chaining_has_a_tenth_less_variance_than_the_published_second_stage(
    size: int, first: int, forever: int
) -> None:
    """Of L-GRR over so many answers, and of LOLOHA over so many cells."""
    a, b = np.exp(forever), np.exp(first)
    odds = (a * b - 1) / (a - b)
    p1, p2 = a / (a + size - 1), odds / (odds + size - 1)
    published = p1 * p2 + (1 - p1) * (1 - p2) / (size - 1)

    def variance(p: float, q: float) -> float:
        return q * (1 - q) / (p - q) ** 2

    exactly = LGRR(size, first=first, forever=forever)
    assert variance(float(exactly.p), float(exactly.q)) < 0.9 * variance(published, (1 - published) / (size - 1))
    assert variance(float(exactly.p), 1 / size) < 0.9 * variance(published, 1 / size)
    assert LOLOHA(100, first=1, forever=2, hashing=Strings(4, 16)).inner == LGRR(4, first=1, forever=2)


def test_identity() -> None:
    protocol = LGRR(["a", "b", "c"], first="1/3", forever="2")
    head = {"kind": "protocol", "version": 1, "protocol": "LGRR", "domain": protocol.domain.spec()}
    assert protocol.spec() == head | {"epsilon": "1/3", "forever": "2"}
    assert load(protocol.spec()) == protocol == LGRR(["a", "b", "c"], "1/3", 2)
    assert protocol != LGRR(["a", "b", "c"], first="1/3", forever=3)
    assert repr(protocol) == "LGRR(Categories(['a', 'b', 'c']), first='1/3', forever=2)"
    assert LGRR(5, 1).forever == 2, "twice the first level, unless somebody says otherwise"
    twice = scaled(protocol, Fraction(2))
    assert (twice.first, twice.forever) == (Fraction(2, 3), 4), "both levels, so that any factor will do"
    level = protocol.levels(5).any
    assert (pickle.loads(pickle.dumps(level)).ratio, level.words) == (level.ratio, f"{level.over}: at most {level:.4g}")


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda: LGRR(2, first=1, forever=1), "must take something away"),
        (lambda: LGRR(2, first=2, forever=1), "must take something away"),
        (lambda: LGRR(2), "give the epsilon of the first report once"),
        (lambda: LGRR(2, 1, first=1), "give the epsilon of the first report once"),
        (lambda: LGRR(2, first=50, forever=60), "too close"),
        (lambda: COIN.levels(0), "positive whole number"),
        (lambda: COIN.levels(3, values=0), "positive whole number"),
        (lambda: COIN.levels(40, enumerated=True), "too many streams"),
        (lambda: COIN.between(["yes"], ["yes", "no"]), "the same number of epochs"),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(build: Any, what: str) -> None:
    with pytest.raises(DeniableError, match=what) as refusal:
        build()
    assert isinstance(refusal.value, EpsilonError | NumberError | ChannelError)


def keys(protocol: Memoized, stream: tuple[Any, ...], shared: bytes) -> tuple[int, ...]:
    """Which epochs share a state, on a device that drew this."""
    state = shared + bytes(protocol.report_bytes)
    known = [protocol.kept_under(protocol.domain.encode_one(answer), state) for answer in stream]
    return tuple(known.index(key) for key in known)


def test_blocks_of_bits_tell_no_more_than_they_claim_over_streams() -> None:
    """d-bit flip with two blocks, all streams of two epochs: patterns are those of the states, given the block."""
    protocol = DBitFlip(["a", "b", "c"], first="1/2", forever=1, bits=2)
    laws = {
        stream: exhaust(lambda bits, s=stream: b"".join(protocol.stream(s, None, bits))).law
        for stream in product("abc", repeat=2)
    }
    found, bounds = protocol.levels(2, enumerated=True), protocol.levels(2)
    anything = patterned = Fraction(1)
    heads = {sent[:1] for sent in laws["a", "a"]}
    for (one, law), (other, rival) in product(laws.items(), repeat=2):
        for head in heads:
            ratio = worst({sent: chance for sent, chance in law.items() if sent[:1] == head}, rival)
            anything = max(anything, ratio)
            if keys(protocol, one, head) == keys(protocol, other, head):
                patterned = max(patterned, ratio)
    assert found.any.ratio == anything <= bounds.any.ratio
    assert found.same_pattern.ratio == patterned <= bounds.same_pattern.ratio
    # Answers outside the block share a state: there is nothing between a, c and a, a on a device of the second block.
    assert {sent: chance for sent, chance in laws["a", "b"].items() if sent[0] == 1} == {
        sent: chance for sent, chance in laws["a", "a"].items() if sent[0] == 1
    }


def test_bits_that_are_kept_one_by_one_would_tell_more() -> None:
    """Microsoft keeps a bit "mine" and a bit "not mine" per bucket: streams of one pattern are then told apart."""
    protocol = DBitFlip(["a", "b", "c"], first="1/2", forever=1, bits=3)
    flip, again = protocol.flip.value, protocol.second.value

    def bit(mine: str, lane: str, sent: str) -> Fraction:
        """P(a lane sends these bits), for a stream of answers; the bit of "mine" and that of "not mine" are kept."""
        total = Fraction(0)
        for own, other in product((0, 1), repeat=2):
            chance = ((1 - flip) if own else flip) * (flip if other else 1 - flip)
            for answer, seen in zip(mine, sent, strict=True):
                kept = own if answer == lane else other
                chance *= 1 - again if kept == int(seen) else again
            total += chance
        return total

    ratios = [bit("ab" * n, "a", "10" * n) / bit("cb" * n, "a", "10" * n) for n in (1, 8, 40)]
    assert ratios[-1] > exact.exp_ceil(2 * protocol.forever), "two states at `forever` each do not bound it"
    assert ratios == sorted(ratios)


@pytest.mark.parametrize("steps", [1, 2])
def test_a_number_is_rounded_without_bias_and_one_report_is_the_one_bit_mean(steps: int) -> None:
    """Over all alphas, exactly: the mean of the marks is the number, and one report has the law of OneBitMean."""
    points = 4
    protocol = LOneBitMean(Interval(0, 4), first="1/2", forever=1, steps=steps, points=points)
    channel = protocol.channel()
    once = OneBitMean(Interval(0, 4), "1/2")
    assert abs(float(protocol.kept) - float(once.kept)) < 1e-15
    for quarters in range(4 * points + 1):
        number = quarters / points
        if (number * steps / 4 * points) % 1:
            continue  # between two points alpha is not fine enough
        marks = [protocol._mark(number, alpha) for alpha in range(points)]
        assert Fraction(sum(marks), points) * 4 / steps == Fraction(number)
        law = exhaust(lambda bits, x=number: protocol.draw(x, bits)).law
        chance = sum(Fraction(int(channel.numerators[mark][1]), channel.denominator) for mark in marks) / points
        assert law[b"\1"] == chance
    assert protocol.law().kept.linking(10_000) <= 2


def test_small_changes_of_a_number_keep_its_state() -> None:
    """On one device, numbers between two of its thresholds share a mark; in bulk as one by one."""
    minutes = LOneBitMean(Interval(0, 1440), first=1, forever=2, steps=24)
    known: list[tuple[bytes, bytes]] = []
    for number in (600.0, 601.0, 599.5, 600.0, 720.0):
        state, key = minutes.kept_state(number, known, bits=Simulation(3))
        if key is not None:
            known.append((key, state))
    assert len(known) == 2
    numbers = np.random.default_rng(1).uniform(0, 1440, 500)
    alphas = np.random.default_rng(2).integers(0, minutes.points, 500)
    assert minutes.marks(numbers, alphas).tolist() == [
        minutes._mark(x, int(a)) for x, a in zip(numbers, alphas, strict=True)
    ]
    reports, marks = minutes.streams(np.stack([numbers, numbers], axis=1), Simulation(4))
    assert (marks[:, 0] == marks[:, 1]).all()
    assert (reports[0].array != reports[1].array).any()


def test_a_mean_over_epochs_has_the_floor_of_its_states() -> None:
    """500 devices that never change, 200 collections of 20 epochs each: the spread is what kept_noise says.

    The variance of 200 means is within 30 percent of the truth with probability 0.997; the seed is fixed.
    """
    hours = LOneBitMean(Interval(-1, 1), first=1, forever=2)
    numbers = np.zeros(500)
    means = []
    for seed in range(200):
        bits = Simulation(seed)
        states = hours.permanents(numbers, bits)
        total = sum(hours.tally(hours.reports(states, bits)) for _ in range(20))
        means.append(hours.estimate(total).value)
    kept = hours.law().kept.noise
    expected = hours.worth(500).noise ** 2 * (kept + (1 - kept) / 20)
    assert 0.7 < np.var(means) / expected < 1.3
    assert hours.floor(500) < np.sqrt(expected)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: DBitFlip(4, first=1, forever=2, bits=5), "1 to 4"),
        (lambda: DBitFlip(4, first=1, forever=2, bits=True), "bits"),
        (lambda: DBitFlip(Interval(0, 1), first=1, forever=2), "list of answers"),
        (lambda: LOneBitMean(Interval(0, 1), first=1, forever=2, steps=0), "steps"),
        (lambda: LOneBitMean(Interval(0, 1), first=1, forever=2, points=2**33), "points"),
        (lambda: LOneBitMean(["yes", "no"], first=1, forever=2), "numbers"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(make: Any, words: str) -> None:
    with pytest.raises(DeniableError, match=words):
        make()


def test_tallies_of_blocks_count_every_bit() -> None:
    for bits in (3, 8, 11):
        protocol = DBitFlip(20, first=1, forever=2, bits=bits)
        reports = protocol.privatize(np.arange(20).repeat(30), Simulation(bits))
        counts = np.zeros(protocol.tally_size, dtype=int)
        for row in reports.array:
            counts[row[0]] += 1
            for lane in range(bits):
                if row[1 + lane // 8] >> lane % 8 & 1 and row[0] * bits + lane < 20:
                    counts[protocol.blocks + row[0] * bits + lane] += 1
        assert protocol.tally(reports).counts.tolist() == counts.tolist()


def test_collisions_of_a_list_are_undone_exactly() -> None:
    """Over all reports of this very pool of hash functions: no bias, and the spread that is stated."""
    protocol = LOLOHA(4, first=1, forever=2, hashing=Strings(2, 8, key="b"))
    known = protocol.known
    assert known is not None
    channel = protocol.channel()
    rows = np.array([list(bytes.fromhex(str(output))) for output in channel.outputs], dtype=np.uint8)
    figures = np.array([protocol.estimate(protocol.tally(row[None])).counts for row in rows])
    assert channel.rows @ figures == pytest.approx(np.eye(4), abs=1e-9)
    spread = known.spread(float(protocol.inner.p), float(protocol.inner.q))
    alone = (channel.rows @ figures**2 - np.eye(4)).T
    assert alone == pytest.approx(spread[:-1], rel=1e-7)
    total = figures.sum(axis=1)
    assert channel.rows @ total**2 - 1 == pytest.approx(spread[-1], rel=1e-7)
    assert LOLOHA(4, first=1, forever=2, hashing=Strings(2, 1)).known is None, "one hash function tells no cell apart"
    assert LOLOHA(1000, first=1, forever=2).known is None


@pytest.mark.slow
def test_more_people_average_out_what_shares_a_cell() -> None:
    """30 collections of 20,000 people with a very common answer: errors are those stated, for all answers together.

    The mean of 24 x 30 squares of standard scores is within 0.25 of one with probability above 0.9999; fixed seed.
    """
    protocol = LOLOHA(24, first=1, forever=2)
    answers = np.repeat(np.arange(24), [8_600] + [23 * 10 + 270] * 22 + [400])
    truth = np.bincount(answers, minlength=24) / answers.size
    scores = []
    for seed in range(30):
        found = protocol.estimate(protocol.tally(protocol.privatize(answers, Simulation(seed))))
        scores.append((found.frequencies - truth) / found.errors(population=False))
    assert 0.75 < np.mean(np.square(scores)) < 1.25
    assert np.abs(np.mean(scores, axis=0)).max() < 5 / np.sqrt(30), "and no answer is off to one side"
    assert protocol.worth(10**8).noise < 0.001, "with many people nothing is left"

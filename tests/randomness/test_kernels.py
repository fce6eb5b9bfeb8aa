"""Every kernel, checked in integers: run over all words that it can meet, or at every boundary."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from deniable.conformance.checks import accepts
from deniable.errors import NumberError
from deniable.exact import WORD, Dyadic
from deniable.randomness import Bits, Exhaustive, Simulation, exhaust, kernels
from deniable.randomness.secure import Buffer
from tests.randomness.scripted import Scripted, words

ALL_SHORT = np.arange(1 << 16, dtype="<u2")
THRESHOLDS = [1, 2**48 - 1, 2**48, 2**63, 4961093570831980854, 6964396094736529935, WORD - 1]


@pytest.mark.parametrize("threshold", [0, *THRESHOLDS, WORD])
def test_one_bernoulli_compares_one_word(threshold: int) -> None:
    for word in {0, max(threshold - 1, 0), min(threshold, WORD - 1), WORD - 1}:
        bits = Scripted(*words(word))
        assert bits.bernoulli(Dyadic(threshold)) == (word < threshold)
        assert bits.items == []


@pytest.mark.parametrize("threshold", [0, *THRESHOLDS])
def test_array_bernoulli_is_the_64_bit_comparison(threshold: int) -> None:
    # All 16-bit prefixes once, in kernel-sized blocks; each tie is settled by 48 bits at both sides of the edge.
    high, rest = divmod(threshold, 1 << 48)
    for low in {0, max(rest - 1, 0), rest, (1 << 48) - 1}:
        script: list[np.ndarray] = []
        for start in range(0, ALL_SHORT.size, kernels.BLOCK):
            block = ALL_SHORT[start : start + kernels.BLOCK]
            script.append(block)
            if rest and high in block:
                script.append(np.array([low << 16], dtype="<u8"))
        bits = Scripted(*script)
        got = bits.bernoulli(Dyadic(threshold), ALL_SHORT.size)
        full = [(int(prefix) << 48) | low for prefix in ALL_SHORT]
        assert got.tolist() == [word < threshold for word in full]
        assert bits.items == []


def test_a_comparison_of_prefixes_alone_would_be_seen() -> None:
    threshold = 4961093570831980854
    prefix, rest = divmod(threshold, 1 << 48)
    assert rest > 0  # dropping it would lower the probability by rest / 2^64
    bits = Scripted(np.array([prefix], dtype="<u2"), np.array([0], dtype="<u8"))
    assert bits.bernoulli(Dyadic(threshold), 1).tolist() == [True]


@pytest.mark.parametrize("used", [0, 3, 8])
@pytest.mark.parametrize("threshold", [0, *THRESHOLDS])
def test_coins_above_other_bits_are_the_64_bit_comparison(threshold: int, used: int) -> None:
    """Over all words of 16 bits: the bits above decide, and where they tie, the rest of a further word does."""
    spare = 16 - used
    rest = threshold % (1 << 64 - spare)
    ties = 1 << used if rest else 0
    above = (ALL_SHORT.astype(np.uint64) >> np.uint64(used)) << np.uint64(64 - spare)
    for low in {0, max(rest - 1, 0), rest, (1 << 64 - spare) - 1}:
        bits = Scripted(*([np.full(ties, low << spare, dtype="<u8")] if ties else []))
        got = kernels.coins_above(bits, ALL_SHORT, used, threshold)
        assert np.array_equal(got, above | np.uint64(low) < np.uint64(threshold))
        assert bits.items == []
    assert kernels.coins_above(Scripted(), ALL_SHORT, used, WORD).all()


def test_rare_flags_are_found_wherever_they_are() -> None:
    for size in (0, 1, 7, 8, 9, 64, 1001):
        flags = np.random.default_rng(size).random(size) < 0.05
        assert kernels.rare(flags).tolist() == np.flatnonzero(flags).tolist()


@pytest.mark.parametrize("limits", [(455, 1365), (6435, 3), (1, 65_521)])
def test_uniform_below_different_limits_over_all_words(limits: tuple[int, int]) -> None:
    """Every limit meets every word of 16 bits; what is drawn again gets a word that is accepted."""
    each = np.repeat(np.array(limits, dtype=np.uint32), 1 << 16)
    rejected = sum((np.arange(1 << 16) * limit % (1 << 16) < (1 << 16) % limit).sum() for limit in limits)
    script = [np.tile(ALL_SHORT, 2)] + ([np.full(rejected, 0xFFFF, dtype="<u2")] if rejected else [])
    drawn = kernels.integers_below(Scripted(*script), each).reshape(2, -1)
    for limit, own in zip(limits, drawn, strict=True):
        seen = np.bincount(own, minlength=limit)
        extra = (1 << 16) % limit
        seen[limit - 1] -= extra  # those that were drawn again
        assert seen.size == limit
        assert set(seen.tolist()) == {(1 << 16) // limit}


@pytest.mark.parametrize("below", [2, 3, 7, 10, 256, 1000, 1024, 4095, 4096])
def test_short_uniform_is_uniform_over_all_words(below: int) -> None:
    # Rejected words are drawn again; the script answers with a word that gives `below - 1` and is accepted.
    rejected = sum((int(word) * below) % (1 << 16) < (1 << 16) % below for word in ALL_SHORT)
    script = [ALL_SHORT] + ([np.full(rejected, 0xFFFF, dtype="<u2")] if rejected else [])
    got = Counter(kernels._lemire(Scripted(*script), below, ALL_SHORT.size).tolist())
    got[below - 1] -= rejected
    assert set(got.values()) == {(1 << 16) // below}
    assert set(got) == set(range(below))


@pytest.mark.parametrize("below", [4097, 10**5, 10**6 + 3, 1 << 20, 1 << 28])
def test_middle_uniform_at_every_kind_of_boundary(below: int) -> None:
    rng = np.random.default_rng(1)
    starts = [-(-int(j) * (1 << 32) // below) for j in rng.integers(0, below, 200)]
    samples = sorted({min(max(s + step, 0), (1 << 32) - 1) for s in starts for step in (-1, 0, 1)})
    surplus = (1 << 32) % below
    for word in samples:
        rejected = (word * below) % (1 << 32) < surplus
        script = [np.array([word], dtype="<u4")] + ([np.array([0xFFFFFFFF], dtype="<u4")] if rejected else [])
        got = int(kernels._lemire(Scripted(*script), below, 1)[0])
        assert got == (below - 1 if rejected else word * below >> 32)
    # Every outcome keeps floor(2^32 / below) words: the first of each run are the ones rejected.
    for j in (0, 1, below // 2, below - 1):
        first, last = -(-j * (1 << 32) // below), -(-(j + 1) * (1 << 32) // below) - 1
        kept = last - first + 1 - sum(((w * below) % (1 << 32)) < surplus for w in (first, first + 1))
        assert kept == (1 << 32) // below


@pytest.mark.parametrize("below", [3, 10**6, (1 << 63) - 25, 2**64 - 59, 10**30])
def test_one_integer_rejects_at_the_documented_limit(below: int) -> None:
    count = -(-(below - 1).bit_length() // 64)
    span = 1 << (64 * count)
    limit = span - span % below
    for value in (0, below - 1, limit - 1):
        bits = Scripted(value.to_bytes(8 * count, "little"))
        assert bits.integers(below) == value % below
    if limit < span:
        bits = Scripted(limit.to_bytes(8 * count, "little"), (5).to_bytes(8 * count, "little"))
        assert bits.integers(below) == 5 % below


def test_one_value_draws_nothing() -> None:
    assert Scripted().integers(1) == 0
    assert Scripted().integers(1, 4).tolist() == [0, 0, 0, 0]
    with pytest.raises(NumberError, match="no integer"):
        Scripted().integers(0)


def test_large_integer_arrays_reject_at_the_limit() -> None:
    below = (1 << 62) + 12345
    limit = WORD - WORD % below
    bits = Scripted(np.array([limit - 1, limit, 7], dtype="<u8"), np.array([9], dtype="<u8"))
    assert bits.integers(below, 3).tolist() == [(limit - 1) % below, 9, 7]
    with pytest.raises(NumberError, match="one at a time"):
        bits.integers(1 << 64, 3)


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_lane_table_and_residual_make_the_product_law(threshold: int) -> None:
    table = kernels.lane_table(threshold)
    slots = np.bincount(table.slots[: table.escapes], minlength=256)
    total = WORD**8
    for outcome in range(256):
        ones = outcome.bit_count()
        law = Fraction(threshold**ones * (WORD - threshold) ** (8 - ones), total)
        built = Fraction(int(slots[outcome]), 1 << 16)
        if table.residual is not None:
            share = Fraction(table.residual.weights[outcome], table.residual.total)
            built += Fraction((1 << 16) - table.escapes, 1 << 16) * share
        assert built == law


@pytest.mark.parametrize("rows", [[[5, 3, 1, 1], [1, 1, 3, 5]], [[7] * 300 + [1], [1] + [7] * 300], [[0, 1], [1, 0]]])
def test_row_tables_and_residuals_make_the_laws(rows: list[list[int]]) -> None:
    """Slots and escapes together, in fractions, for every outcome of every row."""
    tables = kernels.row_tables(rows)
    assert tables is not None
    for row, own, residual in zip(rows, tables.slots.reshape(len(rows), -1), tables.residuals, strict=True):
        escapes = Fraction(int((own == tables.escape).sum()), own.size)
        assert (residual is None) == (escapes == 0)
        for outcome, weight in enumerate(row):
            found = Fraction(int((own == outcome).sum()), own.size)
            if residual is not None:
                found += escapes * Fraction(residual.weights[outcome], residual.total)
            assert found == Fraction(weight, sum(row))


def test_row_tables_draw_the_outcomes_of_the_given_rows() -> None:
    """100,000 draws, chi-square of 6 degrees below 40: a right law fails with probability 5e-7."""
    rows = [[5, 3, 1, 1], [1, 1, 3, 5]]
    tables = kernels.row_tables(rows)
    assert tables is not None
    given = np.arange(100_000) % 2
    drawn = tables.choose_many(Simulation(3), given)
    seen = np.bincount(4 * given + drawn, minlength=8).reshape(2, 4)
    expected = 5000 * np.array(rows)
    assert ((seen - expected) ** 2 / expected).sum() < 40
    assert kernels.row_tables([[1] * 70_000]) is None


def test_one_row_is_drawn_through_all_slots() -> None:
    """All words of 16 bits: every slot as often as every other, and escapes from the residual law."""
    tables = kernels.row_tables([[5, 3, 1, 1]])
    assert tables is not None
    assert tables.residuals[0] is not None
    escapes = int((tables.slots == tables.escape).sum())
    each = (1 << 16) // tables.slots.size
    drawn = tables.draw(Scripted(ALL_SHORT, np.zeros(each * escapes, dtype="<u8")), 1 << 16)
    first = next(i for i, weight in enumerate(tables.residuals[0].weights) if weight)
    slots = np.where(tables.slots == tables.escape, first, tables.slots)
    assert np.bincount(drawn).tolist() == (each * np.bincount(slots)).tolist()


def test_packed_arrays_read_the_table_and_escape() -> None:
    threshold = 4961093570831980854
    table = kernels.lane_table(threshold)
    assert table.residual is not None
    escapes = (1 << 16) - table.escapes
    assert 0 < escapes < 256
    half = kernels.BLOCK
    bits = Scripted(ALL_SHORT[:half], ALL_SHORT[half:], np.zeros(escapes, dtype="<u8"))
    got = bits.packed(Dyadic(threshold), 8, 1 << 16).reshape(-1)
    assert (got[: table.escapes] == table.slots[: table.escapes]).all()
    first_possible = next(i for i, w in enumerate(table.residual.weights) if w)
    assert (got[table.escapes :] == first_possible).all()


@pytest.mark.parametrize("lanes", [1, 7, 8, 13, 64, 65, 1000])
def test_packed_padding_is_zero_and_certain_bits_are_certain(lanes: int) -> None:
    bits = Simulation(3)
    for size in (None, 5):
        for probability in (0, WORD // 2, WORD):
            got = np.atleast_2d(bits.packed(Dyadic(probability), lanes, size))
            assert got.shape == (size or 1, -(-lanes // 8))
            lane_bits = np.unpackbits(got, axis=1, bitorder="little")
            assert not lane_bits[:, lanes:].any()
            if probability != WORD // 2:
                assert (lane_bits[:, :lanes] == (probability == WORD)).all()


class _TwoLanes(Bits):
    """Words of two random bits, from an exhaustive source: enough for the two lanes that are looked at."""

    def __init__(self, bits: Bits) -> None:
        self.bits = bits

    def word(self) -> int:
        return self.bits.integers(4)

    def take(self, count: int) -> bytes:
        raise AssertionError

    def fill(self, out: np.ndarray) -> None:
        raise AssertionError


@pytest.mark.parametrize("eighths", range(9))
def test_digit_by_digit_comparison_has_the_exact_law(eighths: int) -> None:
    threshold = eighths * WORD // 8
    law = exhaust(lambda bits: _TwoLanes(bits).lanes(Dyadic(threshold), 2)).law
    p = Fraction(eighths, 8)
    expected = {0: (1 - p) ** 2, 1: p * (1 - p), 2: p * (1 - p), 3: p**2}
    assert law == {outcome: weight for outcome, weight in expected.items() if weight}


def test_one_packed_report_consumes_words_as_documented() -> None:
    # Q = 0.11 in binary: the first digit decides lanes with bit 0, the second the rest; 70 lanes are two blocks.
    bits = Scripted(*words(0, (1 << 64) - 1, 0b111))
    got = bits.packed(Dyadic(3 * WORD // 4), 70)
    assert bits.items == []
    lanes = np.unpackbits(got, bitorder="little")[:70]
    assert lanes[:64].all()
    # Second block: word 1 sets lanes 0..5 to "bit 1 where Q has 1" -> undecided; word 0b111 decides.
    assert lanes[64:].tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("before", [0, 8, 4080, 3], ids=lambda count: f"after {count} bytes")
@pytest.mark.parametrize("threshold", [0, 1, WORD // 2, 3 * WORD // 4, 12345678901234567890, WORD - 1, WORD])
def test_many_lanes_are_drawn_from_the_same_words_as_one_by_one(threshold: int, before: int) -> None:
    for lanes in (1, 63, 64, 65, 1000, 5000):
        fast, slow = Simulation(lanes), Simulation(lanes)
        assert fast.take(before) == slow.take(before)
        for _ in range(3):
            assert fast.lanes(Dyadic(threshold), lanes) == Bits.lanes(slow, Dyadic(threshold), lanes)
            assert fast.word() == slow.word()


@pytest.mark.parametrize("lanes", [64, 1024, 5000])
def test_lanes_that_take_every_digit_take_their_words_and_no_more(lanes: int) -> None:
    # Words of ones against digits of ones: no lane is decided before the digits end, which chance never brings about.
    produced = 0

    def produce(out: memoryview) -> None:
        nonlocal produced
        out[:] = b"\xff" * len(out)
        produced += len(out)

    buffer = Buffer(produce)
    assert buffer.lanes((1,) * 64, lanes) == 0
    assert produced - (buffer.SIZE - buffer._at) == 8 * 64 * -(-lanes // 64)


def test_a_kept_value_and_a_drawn_one_are_two_words_and_more_only_after_a_rejection() -> None:
    keep = Dyadic(WORD // 2)
    bits = Scripted(*words(5, 8), *words(WORD // 2, WORD - 1, WORD - 2), *words(4))
    assert bits.kept_and_drawn(keep, 3) == (True, 2)
    assert bits.kept_and_drawn(keep, 3) == (False, (WORD - 2) % 3)  # 2^64 - 1 would make 0 more likely than 2
    assert bits.kept_and_drawn(keep, 1) == (True, 0)
    assert bits.items == []
    law = exhaust(lambda bits: bits.kept_and_drawn(Dyadic(WORD // 4), 2)).law
    assert law == {(kept, y): Fraction(1 if kept else 3, 8) for kept in (True, False) for y in (0, 1)}


@pytest.mark.parametrize("below", [1, 2, 6, 1024, WORD, WORD + 1])
def test_integers_one_after_the_other(below: int) -> None:
    for count in (0, 1, 2, 5):
        together, alone = Simulation(3), Simulation(3)
        assert together.integer_list(below, count) == [alone.integers(below) for _ in range(count)]
        assert together.word() == alone.word()


def test_keep_or_uniform_matches_its_parts() -> None:
    law = exhaust(lambda bits: int(bits.keep_or_uniform(np.array([2]), Dyadic(WORD // 4), 3)[0])).law
    assert law == {0: Fraction(1, 4), 1: Fraction(1, 4), 2: Fraction(1, 2)}


@pytest.mark.parametrize(("below", "dtype"), [(3, np.uint8), (1000, np.uint16), (5000, np.int64), (1 << 30, np.int64)])
def test_keep_or_uniform_arrays(below: int, dtype: type) -> None:
    values = np.full(200_000, below - 1, dtype=dtype)
    out = Simulation(5).keep_or_uniform(values, Dyadic(WORD // 2), below)
    assert out.dtype == dtype
    assert out.shape == values.shape
    changed = out != values
    # False-positive rate 1e-6: a change happens with probability (1 - 1/below) / 2.
    rate = (1 - 1 / below) / 2
    assert accepts([changed.sum(), (~changed).sum()], [rate, 1 - rate])
    tenths = (out[changed].astype(np.int64) * 10) // below
    if below >= 1000:
        assert accepts(np.bincount(tenths, minlength=10), np.full(10, 0.1))
    assert (Simulation(5).keep_or_uniform(values, Dyadic(WORD), below) == values).all()


def test_a_single_keep_or_uniform_draws_both_words_whatever_happens() -> None:
    for word in (0, WORD - 1):
        bits = Scripted(*words(word, 5))
        bits.keep_or_uniform(np.array([1]), Dyadic(WORD // 2), 3)
        assert bits.items == []


def test_exhaustive_is_what_the_tests_enumerate() -> None:
    assert exhaust(lambda bits: type(bits)).law == {Exhaustive: Fraction(1)}

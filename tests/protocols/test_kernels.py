"""The fast loops of the frequency oracles against the plain ones."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from deniable.conformance.checks import accepts
from deniable.domains import Grid, Integers, Records
from deniable.errors import ReportError
from deniable.protocols import GRR, OLH, Ranges, Rectangles, SubsetSelection
from deniable.protocols.frequency import bit_rows
from deniable.protocols.frequency.bit_rows import BitCounter, positional_popcount, random_subsets
from deniable.protocols.frequency.hadamard_response import walsh_hadamard
from deniable.protocols.kernel import FORMS_OF, Kernel, plain
from deniable.protocols.protocol import Positions
from deniable.protocols.reports import Bytes, from_bytes, histogram, narrow_type, to_bytes, width_of
from deniable.randomness import Bits, Simulation, exhaust
from tests.randomness.scripted import Scripted


@given(st.integers(0, 3000), st.integers(1, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_positional_popcount(count: int, width: int, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 256, (count, width), dtype=np.uint8)
    plain = np.unpackbits(rows, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    assert positional_popcount(rows).tolist() == plain.tolist()


@pytest.mark.parametrize(("count", "width"), [(100_000, 5), (262_145, 5), (40_000, 24), (300, 9000), (40, 70_000)])
def test_positional_popcount_through_many_planes(count: int, width: int) -> None:
    rows = np.random.default_rng(1).integers(0, 256, (count, width), dtype=np.uint8)
    rows[:, 2] = 255  # a counter that uses every plane
    plain = np.unpackbits(rows, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    assert positional_popcount(rows).tolist() == plain.tolist()


@given(st.lists(st.integers(0, 300), max_size=12), st.integers(1, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_bits_of_batches_whose_memory_is_reused(counts: list[int], width: int, seed: int) -> None:
    rng, memory = np.random.default_rng(seed), np.empty((300, width), dtype=np.uint8)
    plain = np.zeros(8 * width, dtype=np.int64)
    with mock.patch.object(bit_rows, "_SLICE_BYTES", 64):  # many slices of few rows
        counter = BitCounter(width, lanes=8 * width - 3)
        for count in counts:
            memory[:] = rng.integers(0, 256, memory.shape)
            counter.add(memory[:count])
            plain += np.unpackbits(memory[:count], axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
            assert counter.counts().tolist() == plain[:-3].tolist()


@pytest.mark.parametrize("size", [2, 8, 9, 100, 256, 257, 1024, 65536, 70_000])
@pytest.mark.parametrize("count", [0, 1, 65_537, 300_001])
def test_histogram(size: int, count: int) -> None:
    numbers = np.random.default_rng(size).integers(0, size, count).astype(narrow_type(width_of(size)))
    assert histogram(numbers, size).tolist() == np.bincount(numbers, minlength=size).tolist()
    if count:
        assert histogram(numbers[:-1], size).tolist() != np.bincount(numbers, minlength=size).tolist()


def hadamard(size: int) -> np.ndarray:
    places = np.arange(size)
    return 1 - 2 * (np.bitwise_count(places[:, None] & places) & 1).astype(np.int64)


@pytest.mark.parametrize("size", [1, 2, 8, 256])
def test_walsh_hadamard(size: int) -> None:
    vector = np.random.default_rng(2).integers(-(10**9), 10**9, size)
    assert walsh_hadamard(vector).tolist() == (hadamard(size) @ vector).tolist()
    small = vector // 1000
    assert walsh_hadamard(small << 34).tolist() == (walsh_hadamard(small) << 34).tolist()  # more than floats hold
    table = np.random.default_rng(3).integers(-99, 99, (size, 3))
    assert walsh_hadamard(table).tolist() == (hadamard(size) @ table).tolist()


@pytest.mark.parametrize("size", [1 << 13, 1 << 14, 1 << 15])
def test_walsh_hadamard_in_pieces(size: int) -> None:
    vector = np.random.default_rng(4).integers(-1000, 1000, size)
    transformed = walsh_hadamard(vector)
    assert (walsh_hadamard(transformed) == size * vector).all()
    places = np.random.default_rng(5).integers(0, size, 20)
    for u in places:
        signs = 1 - 2 * (np.bitwise_count(np.arange(size) & u) & 1).astype(np.int64)
        assert transformed[u] == signs @ vector


def test_walsh_hadamard_needs_a_power_of_two() -> None:
    with pytest.raises(ValueError, match="power of two"):
        walsh_hadamard(np.arange(6))


@pytest.mark.parametrize("size", [2, 256, 257, 65536, 65537, 1 << 24, (1 << 24) + 1])
def test_numbers_in_bytes(size: int) -> None:
    width = width_of(size)
    assert 256 ** (width - 1) < size <= 256**width or width == 1
    numbers = np.array([0, 1, size // 2, size - 1], dtype=narrow_type(width))
    assert [from_bytes(to_bytes(numbers[:count], width)).tolist() for count in (0, 1)] == [[], [0]]
    rows = to_bytes(numbers, width)
    assert rows.shape == (4, width)
    assert rows.tobytes() == b"".join(int(n).to_bytes(width, "little") for n in numbers)
    assert from_bytes(rows).tolist() == numbers.tolist()


@pytest.mark.parametrize(("domain", "bits"), [(2, 1), (5, 3), (1024, 2), (1000, 5), (1 << 20, 4), (300, 10)])
def test_local_hashing_tally_is_the_number_of_supporting_reports(domain: int, bits: int) -> None:
    protocol = OLH(domain, 2, hash_bits=bits)
    values = np.random.default_rng(6).integers(0, domain, 700)
    reports = protocol.privatize(values, Simulation(7))
    counts = protocol._support_counts(protocol.tally(reports).counts)
    if domain <= 1024:
        assert counts.tolist() == protocol.support(reports).sum(axis=0).tolist()
    assert counts.size == domain
    # A kept report supports its own answer; on the whole a share p of them does.
    own = np.array([protocol.support(reports[i : i + 1])[0, v] for i, v in enumerate(values[:50])])
    assert own.mean() > float(protocol.q)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(("size", "hash_bits"), [(4, 1), (3, 2), (16, 1), (64, 1)])
def test_a_batch_of_hashes_has_the_law_of_the_bytes(size: int, hash_bits: int, kept: bool) -> None:
    """All words of 16 bits for every answer, counted: matrix, hash and coin are read from them.

    The words whose coin ties are settled by further ones, here all as kept or none; of them a part of rest / 2^k is.
    """
    protocol = OLH(size, 1, hash_bits=hash_bits)
    used, length = protocol._fields_bits, protocol.index_bits
    coins = 1 << 16 - used
    high = protocol.response.keep.numerator >> 64 - (16 - used)
    every, half = np.arange(1 << 16, dtype="<u2"), 1 << 15
    settled = np.full(1 << used, 0 if kept else (1 << 64) - 1, dtype="<u8")
    for value in range(size):
        script = [every[:half], settled, every[half:]] if high << used < half else [every[:half], every[half:], settled]
        bits = Scripted(*script)
        found = np.bincount(protocol.kernel().draw_numbers(np.full(1 << 16, value), bits), minlength=1 << used)
        assert bits.items == []
        kept_coins = high + kept
        forms, right = np.arange(1 << used), np.ones(1 << used, dtype=bool)
        for place in range(0, used, length + 1):
            row, said = forms >> place & (1 << length) - 1, forms >> place + length & 1
            right &= np.bitwise_count(row & value) & 1 == said
        assert found.tolist() == (coins - kept_coins + right * (kept_coins << hash_bits)).tolist()


@pytest.mark.parametrize(("size", "epsilon"), [(16, 1), (64, "1/2"), (1024, 1), (300, 3), (1 << 20, 3), (5, 1)])
def test_reports_as_numbers_and_as_bytes_are_the_same(size: int, epsilon: object) -> None:
    values = np.random.default_rng(1).integers(0, size, 5000)
    for kind in (GRR, OLH, SubsetSelection):
        if kind is SubsetSelection and size > 1024:
            continue
        protocol = kind(size, epsilon)  # type: ignore[abstract]
        if protocol.report_bytes > 8:
            continue
        numbers = protocol.kernel().draw_numbers(values, Simulation(2))
        reports = to_bytes(numbers, protocol.report_bytes)
        assert (protocol.draw_many(values, Simulation(2)) == reports).all()
        assert protocol.kernel().valid_numbers(numbers).all()
        assert protocol.kernel().count_numbers(numbers).tolist() == protocol.count(reports).tolist()
        any_bytes = np.random.default_rng(3).integers(0, 256, reports.shape, dtype=np.uint8)
        assert (protocol.kernel().valid_numbers(from_bytes(any_bytes)) == protocol.valid(any_bytes)).all()


TOGETHER = [
    Ranges(Integers(0, 1023), 1),
    Ranges(Integers(0, 99), "1/4"),
    Ranges(Integers(1, 40), 1, fanout=(5, 8)),
    Rectangles({"x": Integers(0, 99), "y": Integers(5, 44)}, 1),
    Rectangles(Grid(16, 12), "1/2"),
]


@pytest.mark.parametrize("protocol", TOGETHER, ids=lambda one: f"{one.name} of {len(one.groups)}")
def test_groups_are_counted_together_as_one_by_one(protocol: Ranges | Rectangles) -> None:
    random = np.random.default_rng(1)
    columns = protocol.domain.columns if isinstance(protocol.domain, Records) else (("", protocol.domain),)
    answers = {name: random.integers(one.low, one.high + 1, 6000) for name, one in columns}
    reports = protocol.privatize(answers if len(answers) > 1 else answers[""], Simulation(1))
    together = protocol._halves
    assert together is not None
    with mock.patch.object(type(protocol), "_halves", None):
        apart = protocol.tally(reports)
    assert protocol.tally(reports) == apart
    flipped = np.repeat(reports.array[:12], 8 * protocol.report_bytes, axis=0)
    bits = np.arange(len(flipped)) % (8 * protocol.report_bytes)
    flipped[np.arange(len(flipped)), bits // 8] ^= (1 << bits % 8).astype(np.uint8)
    for row, good in zip(flipped, protocol.valid(flipped), strict=True):
        counted = together.counts(from_bytes(np.vstack([reports.array[:3], row])))
        assert (counted is not None) == good
    with pytest.raises(ReportError, match="1 of 6001 reports are malformed, the first at 6000"):
        protocol.tally(np.vstack([reports.array, flipped[~protocol.valid(flipped)][:1]]))


def test_who_changes_reports_does_not_inherit_their_numbers() -> None:
    class Turned(GRR):
        def draw_many(self, values: Positions, bits: Bits) -> Bytes:
            return super().draw_many(self.domain.size - 1 - values, bits)

    values = np.arange(5000) % 4
    numbers = Turned(4, 8).kernel().draw_numbers(values, Simulation(1))
    assert np.mean(numbers == 3 - values) > 0.9


@pytest.mark.parametrize("hook", FORMS_OF)
def test_who_changes_a_hook_loses_its_faster_forms_only(hook: str) -> None:
    kind: Any = type("Changed", (GRR,), {hook: lambda self, *given: getattr(GRR, hook)(self, *given)})
    changed, own, forms = kind(4, 1).kernel(), GRR(4, 1).kernel(), plain(GRR(4, 1))
    for field in ("draw_numbers", "count_numbers", "valid_numbers", "simulate"):
        fast, slow = (getattr(getattr(one, field), "__qualname__", None) for one in (own, forms))
        assert fast != slow
        assert getattr(getattr(changed, field), "__qualname__", None) == (slow if field in FORMS_OF[hook] else fast)
    assert (changed.halves is None) == ("halves" in FORMS_OF[hook])


def test_every_faster_form_is_of_a_hook() -> None:
    assert {field for fields in FORMS_OF.values() for field in fields} == set(Kernel.defaults)


def test_one_random_subset_is_uniform() -> None:
    law = exhaust(lambda bits: bits.subset(0b1101101, 3)).law
    assert len(law) == 10
    assert len(set(law.values())) == 1
    assert exhaust(lambda bits: bits.subset(0b111, 0)).law == {0: 1}


@pytest.mark.parametrize(("size", "count"), [(9, 3), (20, 1), (64, 40), (1000, 270), (1024, 512), (30, 29)])
def test_many_random_subsets(size: int, count: int) -> None:
    n = 20_000
    values = np.full(n, size // 3)
    held = np.arange(n) % 2 == 0
    maps = random_subsets(Simulation(8), size, count, values, held)
    bits = np.unpackbits(maps, axis=1, bitorder="little")
    assert not bits[:, size:].any()
    assert (bits.sum(axis=1) == count).all()
    assert (bits[:, size // 3] == held).all()
    # Every other member equally often, one test a case at a false-positive rate of 1e-6.
    others = np.delete(bits[:, :size], size // 3, axis=1).sum(axis=0)
    assert np.abs(others - others.mean()).max() < 6 * np.sqrt(others.mean()) + 1
    if size == 9:
        held_maps = maps[held]
        kinds, seen = np.unique(held_maps, axis=0, return_counts=True)
        assert len(kinds) == 28
        assert accepts(seen, np.full(28, 1 / 28))


def test_tables_of_subsets_hold_each_once() -> None:
    """For every answer: all subsets with it and all without, so that a uniform index gives a uniform subset."""
    protocol = SubsetSelection(10, 1, subset_size=3)
    assert protocol.subsets.few is not None
    for answer, every in enumerate(protocol.subsets.few):
        outside, inside = every[:84], every[84:]
        assert (len(set(inside.tolist())), len(set(outside.tolist()))) == (inside.size, outside.size) == (36, 84)
        assert all(one >> answer & 1 and one.bit_count() == 3 for one in inside.tolist())
        assert not any(one >> answer & 1 for one in outside.tolist())
        assert all(one.bit_count() == 3 for one in outside.tolist())
    answers = np.arange(20_000) % 10
    reports = protocol.privatize(answers, Simulation(5))
    tally = protocol.tally(reports)
    assert (tally.counts == np.unpackbits(reports.array, axis=1, bitorder="little").sum(axis=0)[:10]).all()
    held = from_bytes(reports.array) >> answers & 1
    assert abs(held.mean() - float(protocol.p)) < 6 * 0.5 / 20_000**0.5  # 2e-9 of all seeds fail


def test_subset_lists_and_bitmaps_say_the_same() -> None:
    listed = SubsetSelection(1000, 6)
    assert listed.subsets.listed
    reports = listed.privatize(np.arange(1000), Simulation(9))
    assert listed.valid(reports.array).all()
    counts = listed.tally(reports).counts
    assert counts.tolist() == listed.support(reports).sum(axis=0).tolist()
    assert counts.sum() == 1000 * listed.subset_size

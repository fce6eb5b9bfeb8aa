"""Discovery: the law of the bytes, the public maps, what is found, and shares whose intervals hold."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from deniable import BitStrings, HeavyHitters, Integers, ShortText, Simulation
from deniable.domains import BitRows
from deniable.errors import DomainError, NumberError, SpecError
from deniable.protocols import Found, load
from deniable.protocols.discovery.discovery import cell_map, settings
from deniable.protocols.discovery.found import _truncated
from deniable.protocols.discovery.search import ACCEPT, evidence

SMALL = {
    4: {"cell_bits": 2, "prefixes": [2, 4]},
    5: {"cell_bits": 3, "prefixes": [2, 3, 5]},
    6: {"cell_bits": 3, "prefixes": [3, 5, 6]},
}


def found_among(protocol: HeavyHitters, shares: dict[str, float], n: int, seed: int) -> Found:
    """What is found where these answers have these shares, and everybody else an answer of their own."""
    random = np.random.default_rng(seed)
    domain, listed = protocol.domain, list(shares)
    own = domain.encode(listed).entries if listed else np.zeros((0, domain.size_in_bytes), dtype=np.uint8)
    place = domain.encode(listed).which if listed else np.zeros(0, dtype=np.int64)
    which = np.searchsorted(np.cumsum(list(shares.values())), random.random(n), side="right")
    if isinstance(domain, BitStrings):
        others = random.integers(0, 256, (n, domain.size_in_bytes), dtype=np.uint8)
    else:
        texts = [f"{one:x}" for one in random.integers(0, 1 << 40, n).tolist()]
        others = domain.encode(texts).entries
    rows = np.concatenate([own, others])
    which = np.append(place, len(listed))[np.minimum(which, len(listed))]
    column = BitRows(np.where(which < len(listed), which, len(listed) + np.arange(n) % len(others)), rows)
    return protocol.estimate(protocol.tally(protocol.draw_many(column, Simulation(seed))))


@pytest.mark.parametrize("epsilon", ["0.01", 1, 8])
def test_two_whole_answers_differ_by_epsilon_at_most(epsilon: object) -> None:
    protocol = HeavyHitters(BitStrings(4), epsilon, hash_bits=1, **SMALL[4])  # type: ignore[arg-type]
    channel = protocol.channel()
    assert channel.shape[0] == 16
    assert channel.ratio == protocol.ratio
    assert channel.epsilon <= float(protocol.epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [5, 6])
@pytest.mark.parametrize("epsilon", ["0.01", "0.5", 1, 2, 4, 8])
def test_two_longer_answers_differ_by_epsilon_at_most(bits: int, epsilon: object) -> None:
    protocol = HeavyHitters(BitStrings(bits), epsilon, hash_bits=1, **SMALL[bits])  # type: ignore[arg-type]
    assert protocol.channel().ratio == protocol.ratio


def test_the_public_map_is_the_documented_one_and_has_full_rank() -> None:
    length, cell_bits, width = 21, 6, 4
    table = cell_map("key", 3, length, cell_bits, width)
    columns = []
    for bit in range(8 * width):
        if bit >= length:
            column = 0
        elif bit >= length - cell_bits:
            column = 1 << (length - 1 - bit)
        else:
            digest = hashlib.sha256(f"deniable-discovery-v1\0key\0{3}\0{bit // 8}".encode()).digest()
            column = int.from_bytes(digest[4 * (bit % 8) : 4 * (bit % 8) + 4], "little") % (1 << cell_bits)
        columns.append(column)
    random = np.random.default_rng(1)
    for row in random.integers(0, 256, (50, width)):
        bits = np.unpackbits(row.astype(np.uint8))
        cell = 0
        for bit, column in zip(bits, columns, strict=True):
            cell ^= column * int(bit)
        got = 0
        for place, byte in enumerate(row):
            got ^= int(table[place, byte])
        assert got == cell
    protocol = HeavyHitters(ShortText(8), 1)
    rows = random.integers(0, 256, (100, 8), dtype=np.uint8)
    for group in range(len(protocol.groups)):
        assert [protocol.project(row.tobytes(), group) for row in rows] == protocol.cells(rows, group).tolist()


def test_texts_of_any_alphabet_and_length_are_told_apart() -> None:
    domain = ShortText(12)
    for text in ("", "tea", "café", "日本語", "☕👩‍👩‍👧", "twelve bytes", "Straße"):
        encoded = domain.encode_one(text)
        assert len(encoded) == 12
        if len(text.encode()) <= 12:
            assert domain.label(encoded) == text
    assert domain.encode_one("café") == domain.encode_one("cafe\u0301")  # one text in Unicode form NFC
    first, second = domain.encode_one("the first long text"), domain.encode_one("the first long word")
    assert first != second
    assert first[:9] == second[:9]
    assert str(domain.label(first)).startswith("the first… #")
    cut = domain.encode_one("ääääääää")  # no half of a character is kept
    assert str(domain.label(cut)).startswith("ääää… #")
    assert domain.label(b"\xc3" + bytes(11)) is None
    assert domain.label(b"a\0b" + bytes(9)) is None


@pytest.mark.parametrize("value", ["secret\0", "\ud800secret", 7, None, ["secret"]])
def test_what_is_no_text_is_refused_without_repeating_it(value: object) -> None:
    with pytest.raises(DomainError) as refused:
        ShortText(8).encode([value])
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("value", ["secret", "0F", "0f000", "0fff", b"0f", 15])
def test_what_is_no_bit_string_is_refused(value: object) -> None:
    with pytest.raises(DomainError) as refused:
        BitStrings(13).encode_one(value)
    assert "secret" not in str(refused.value)
    assert BitStrings(13).encode_one("0ff8") == b"\x0f\xf8"


def test_bit_strings_come_as_rows_of_bytes_as_well() -> None:
    domain = BitStrings(12)
    rows = np.array([[0x0A, 0xF0], [0xFF, 0x10]], dtype=np.uint8)
    assert [domain.encode(rows)[i] for i in range(2)] == [domain.encode(["0af", "ff1"])[i] for i in range(2)]
    with pytest.raises(DomainError, match="are zero"):
        domain.encode(rows | 1)


def test_evidence_has_the_mean_one_where_there_is_nothing() -> None:
    """The stated number of false finds rests on it; with a cap below and above what the share would say."""
    z = np.linspace(-12, 12, 400_001)
    law = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    for theta, cap in ((4.5, 9.0), (3.0, 9.0), (6.0, 4.0), (1.0, 12.0)):
        mean = np.trapezoid(np.exp(evidence(z, 1.0, theta, cap)) * law, z)
        assert mean == pytest.approx(1, abs=1e-3)


WORDS = {"coffee": 0.16, "tea": 0.12, "日本茶": 0.1, "hot chocolate with cream": 0.14}


@pytest.fixture(scope="module")
def drinks() -> tuple[HeavyHitters, Found]:
    protocol = HeavyHitters(ShortText(12), 4, people=30_000, memory=4_200_000)
    return protocol, found_among(protocol, WORDS, 30_000, seed=3)


def test_texts_that_nobody_listed_are_found_and_counted(drinks: tuple[HeavyHitters, Found]) -> None:
    protocol, found = drinks
    assert 0.02 < protocol.worth(30_000).visible() < 0.03  # type: ignore[operator]
    truth = {protocol.domain.label(protocol.domain.encode_one(text)): share for text, share in WORDS.items()}
    assert set(found.values) == set(truth)
    for label, (low, high) in zip(found.values, found.interval(1 - 1e-6), strict=True):
        assert low < truth[str(label)] < high
    assert (found.p_values < 1e-6).all()
    assert found.unlisted == pytest.approx(0.48, abs=0.05)
    assert "4 found" in found.verdict
    assert {row["label"] for row in found.rows()} == set(truth)
    assert found.to_dict()["kind"] == "found"


UNLIKE_WORDS = ["K7#p!x", "https://x.yz", "4f9a07c3e1", "\N{HOT BEVERAGE}\N{GRINNING FACE}"]


def test_texts_unlike_words_are_found_where_the_evidence_is_strong() -> None:
    protocol = HeavyHitters(ShortText(12), 6, people=5_000, memory=2_400_000)
    share = protocol._smallest_unlike(5_000)
    assert share == 2 * float(protocol.worth(5_000).visible() or 1) < 0.2
    found = found_among(protocol, dict.fromkeys(UNLIKE_WORDS, 0.2), 5_000, seed=1)
    assert set(found.values) == set(UNLIKE_WORDS)
    assert f"texts unlike words below {100 * share:.2g} %" in found.verdict
    assert f"texts of any other kind from {100 * share:.2g} % on" in protocol.worth(5_000).remark()


def test_the_promise_is_for_words_alone_where_cells_are_too_few_for_other_texts() -> None:
    protocol = HeavyHitters(ShortText(12), 6, people=5_000, memory=500_000)
    found = found_among(protocol, {"coffee": 0.4}, 5_000, seed=1)
    assert "texts unlike words whatever their share" in found.verdict
    assert protocol.worth(5_000).remark().startswith("Words that")
    assert "any other kind" not in protocol.worth(5_000).remark()
    bits = HeavyHitters(BitStrings(24), 6, people=5_000, memory=100_000)
    assert bits._smallest_unlike(5_000) == bits.worth(5_000).visible()
    assert bits.worth(5_000).remark().startswith("Answers that")


def test_nothing_is_listed_with_a_negative_share() -> None:
    """Of answers that nobody gave, about half come out below nothing."""
    protocol = HeavyHitters(BitStrings(24), 1, people=5_000, memory=100_000)
    random = np.random.default_rng(1)
    everybody = BitRows(np.arange(5_000), random.integers(0, 256, (5_000, 3), dtype=np.uint8))
    tally = protocol.tally(protocol.draw_many(everybody, Simulation(1)))
    rows = random.integers(0, 256, (40, 3), dtype=np.uint8)
    labels = [row.tobytes().hex() for row in rows]
    given = protocol.estimate(tally, values=labels)
    assert (given.frequencies < 0).sum() > 5, "shares that were asked for are unbiased"
    listed = protocol._counted(tally, labels, rows)
    assert (listed.frequencies > 0).all()
    assert set(listed.values) == {name for name, share in zip(labels, given.frequencies, strict=True) if share > 0}


def test_nothing_common_gives_an_empty_list() -> None:
    """In 8 collections 0.4 values are expected at most, by e^-ACCEPT each; more than 4 come once in 15,000 times."""
    protocol = HeavyHitters(BitStrings(24), 3, people=5_000, memory=100_000)
    lists = [found_among(protocol, {}, 5_000, seed).values for seed in range(8)]
    assert ACCEPT >= 2.99
    assert sum(map(len, lists)) <= 4
    assert found_among(protocol, {}, 5_000, 100).verdict.startswith("nothing was found")


def test_expected_answers_are_found_at_smaller_shares() -> None:
    protocol = HeavyHitters(ShortText(8), 4, people=30_000, memory=1_500_000)
    share = 0.55 * float(protocol.worth(30_000).visible() or 1)
    words = ["northern", "southern", "eastern", "western", "central", "quantity"]
    random = np.random.default_rng(1)
    rows = protocol.domain.encode([*words, *(f"{one:x}" for one in range(500))])
    drawn = (random.random(30_000) / share).astype(int)
    which = np.where(drawn < 6, drawn, 6 + random.integers(0, 500, 30_000))
    tally = protocol.tally(protocol.draw_many(BitRows(rows.which[which], rows.entries), Simulation(1)))
    plain, known = protocol.estimate(tally).values, protocol.estimate(tally, words).values
    assert len(known) > len(plain)
    assert set(known) <= set(words)


def syllables(count: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    parts = [consonant + vowel for consonant in "kmnrst" for vowel in "aio"]
    return ["".join(random.choice(parts, 4)) for _ in range(count)]


@pytest.mark.slow
def test_texts_that_are_spelled_like_expected_ones_are_found_at_smaller_shares() -> None:
    protocol = HeavyHitters(ShortText(8), 4, people=30_000, memory=1_500_000)
    share = 0.6 * float(protocol.worth(30_000).visible() or 1)
    words = sorted(set(syllables(6, seed=1)))
    like = [word for word in syllables(400, seed=2) if word not in words]
    random = np.random.default_rng(1)
    rows = protocol.domain.encode([*words, *(f"{one:x}" for one in range(500))])
    drawn = (random.random(30_000) / share).astype(int)
    which = np.where(drawn < 6, drawn, 6 + random.integers(0, 500, 30_000))
    tally = protocol.tally(protocol.draw_many(BitRows(rows.which[which], rows.entries), Simulation(1)))
    plain, known = protocol.estimate(tally).values, protocol.estimate(tally, like).values
    assert len(known) > len(plain)
    assert set(known) <= set(words)


@pytest.mark.parametrize("texts", [["tamisoka", "日本", "a text that goes on"], syllables(300, 3)])
def test_models_of_text_are_laws_so_that_false_finds_stay_rare(texts: list[str]) -> None:
    domain = ShortText(8)
    like, others = domain.encode(syllables(300, 2)).entries, domain.encode(texts).entries
    for model in (domain.log_prior, domain.log_prior_like(like)):
        assert model is not None
        for place in range(domain.size_in_bytes):
            likely = np.exp(model(others, place))
            assert likely.min() > 0, "everything can be found"
            assert likely.sum(axis=1) == pytest.approx(np.ones(len(others)), abs=1e-6)


def test_a_list_filtered_by_p_values_carries_corrected_intervals(drinks: tuple[HeavyHitters, Found]) -> None:
    """Given that a share came out above the limit, the corrected interval holds as often as it says."""
    random = np.random.default_rng(5)
    for truth in (0.5, 2.0, 4.0):
        drawn = random.normal(truth, 1, 200_000)
        kept = drawn[drawn > 2.5][:4_000]
        ends = _truncated(kept, np.ones(kept.size), 2.5, 0.025)
        covered = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()
        plain = (np.abs(kept - truth) <= 1.96).mean()
        assert covered == pytest.approx(0.95, abs=0.02)
        assert plain < 0.93 or truth > 3  # what the correction is for
    _, found = drinks
    chosen = found.significant(0.01)
    assert list(chosen.values) == list(found.values)
    assert chosen.limit is not None
    assert (chosen.interval()[:, 0] <= found.interval()[:, 0] + 1e-3).all()
    none = replace(found, support=replace(found.support, counts=np.zeros(4, dtype=np.int64)), counts=np.zeros(4))  # type: ignore[type-var]
    assert not len(none.significant(0.01).values)


def test_the_planner_states_what_will_be_found() -> None:
    for n in (1_000, 10_000, 1_000_000):
        protocol = HeavyHitters(BitStrings(64), 4, people=n)
        share = protocol.worth(n).visible()
        assert share is not None
        assert f"{100 * share:.2g} %" in protocol.worth(n).remark()
        assert 8 * protocol.tally_size <= 34_000_000
    assert HeavyHitters(BitStrings(256), "0.1", people=100).worth(100).visible() is None
    assert "nothing would be found" in HeavyHitters(BitStrings(256), "0.1", people=100).worth(100).remark()
    assert 8 * HeavyHitters(BitStrings(64), 1, memory=200_000).tally_size <= 200_000
    with pytest.raises(NumberError, match="allow more memory"):
        settings(BitStrings(64), 1000, memory=10)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"prefixes": [2, 3]}, "all 4 bits"),
        ({"prefixes": [4, 2]}, "rising order"),
        ({"cell_bits": 3}, "OLH over its cells"),
        ({"prefixes": [4]}, "one group per prefix"),
        ({"extra": 1}, "needs cell_bits"),
    ],
)
def test_a_broken_spec_is_refused(changed: dict[str, object], reason: str) -> None:
    spec = HeavyHitters(BitStrings(4), 1, **SMALL[4]).spec()  # type: ignore[arg-type]
    with pytest.raises((SpecError, NumberError), match=reason):
        load(spec | changed)


def test_it_is_for_strings_of_bits_only() -> None:
    with pytest.raises(DomainError, match="ShortText"):
        HeavyHitters(Integers(0, 7), 1)  # type: ignore[arg-type]
    with pytest.raises(NumberError, match="together"):
        HeavyHitters(BitStrings(8), 1, cell_bits=4)


def planted(random: np.random.Generator, many: int, bits: int) -> Sequence[str]:
    return [row.tobytes().hex() for row in random.integers(0, 256, (many, bits // 8), dtype=np.uint8)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bits", "epsilon", "n", "collections"), [(64, 4, 100_000, 3), (128, 2, 200_000, 2), (32, 6, 10_000, 8)]
)
def test_the_stated_share_is_found_nine_times_out_of_ten(bits: int, epsilon: int, n: int, collections: int) -> None:
    """As many values and intervals are right as 0.9 and 0.95 give in all but one of 1,000 times."""
    hits = total = false = covered = 0
    for seed in range(collections):
        protocol = HeavyHitters(BitStrings(bits), epsilon, people=n)
        share = float(protocol.worth(n).visible() or 1)
        values = planted(np.random.default_rng(seed), min(16, int(0.8 / share)), bits)
        found = found_among(protocol, dict.fromkeys(values, share), n, seed)
        right = [value in values for value in found.values]
        ends = found.interval()
        hits, total, false = hits + sum(right), total + len(values), false + len(right) - sum(right)
        covered += sum(bool(low <= share <= high) for (low, high), one in zip(ends, right, strict=True) if one)
    assert hits >= binom.ppf(0.001, total, 0.9)
    assert false <= 0.05 * hits
    assert binom.ppf(0.001, hits, 0.95) <= covered <= binom.ppf(0.999, hits, 0.95)

"""Discovery: how many of the common answers are found that nobody listed, against prefix extending, and what it costs.

Planted    32 uniform strings of bits, each of the share s; everybody else has a string of their own
Recall     of the planted ones, those that are found; precision: of those that are found, the planted ones
Rival      prefix extending (Wang, Li and Jha 2017), idealised: each group has as many more bits as give 2^18
           candidates, of which the 32 largest are kept; local hashing at the full epsilon with the best real
           number of cells; no candidate collides; noise drawn from its normal law; all people search
Words      of a text: every word of the documentation's pages by its own share, said by so many people; those with the
           share that the planner names, or more, and whether they come back as they were written
Spelling   32 words of the pages about protocols, of the share s each, found without a list and with the words of all
           other pages as candidates, from which the planted words were taken out: what helps is how words are spelled.
           And 32 texts that no such word is like, some digits and signs of other alphabets
Any text   addresses, hex and base64 digits, telephone numbers, codes and faces, which had no part in tuning; mixed
           alphabets, any characters and any bytes, which resemble what was tuned on. In each collection four of them at
           twice the stated share, beside two words at the stated share
Cover      95 percent intervals of what was found, as it was found, with the share among everybody who was asked
Cost       processor seconds, with cells of 2^16 and 7 new bits per group, so that groups are in proportion to bits
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from benchmarks.registry import Case, Size, at_most, benchmark, seconds, work
from deniable.domains import BitRows, BitStrings
from deniable.protocols import Found, HeavyHitters
from deniable.protocols.discovery.discovery import _prefixes

Floats = NDArray[np.float64]

GROUP, TEXTS = "discovery", "texts"
PLANTED = 32
GOALS = ((128, 4, 0.0050), (128, 2, 0.0155), (64, 4, 0.0033))
"""Bits, epsilon, and the share at which nine of ten are to be found."""
COVERED = 0.95
SEEDS = 1000
"""The first one: nothing was ever tuned on seeds from here on."""


def crowd(bits: int, share: float, people: int, seed: int) -> tuple[list[str], BitRows]:
    """The planted answers, and everybody's."""
    random = np.random.default_rng(seed)
    width = -(-bits // 8)
    rows = random.integers(0, 256, (PLANTED + people, width), dtype=np.uint8)
    which = (random.random(people) / share).astype(np.int64)
    which = np.where(which < PLANTED, which, PLANTED + np.arange(people))
    return [rows[i].tobytes().hex() for i in range(PLANTED)], BitRows(which, rows)


def search(bits: int, epsilon: int, share: float, people: int, seed: int) -> tuple[Floats, HeavyHitters]:
    """Recall, precision, intervals that cover and intervals, processor seconds of tally and decoding; the protocol."""
    planted, column = crowd(bits, share, people, seed)
    protocol = HeavyHitters(BitStrings(bits), epsilon, people=people)
    reports = protocol.draw_many(column, dn.Simulation(seed))
    start = time.process_time()
    tally = protocol.tally(reports)
    middle = time.process_time()
    result: Found = protocol.estimate(tally)
    end = time.process_time()
    held = np.bincount(column.which[column.which < PLANTED], minlength=PLANTED) / people
    truth = dict(zip(planted, held.tolist(), strict=True))
    hits = [label for label in result.values if label in truth]
    ends = result.interval(COVERED, population=False)
    inside = sum(
        low <= truth.get(str(name), 0.0) <= high for name, (low, high) in zip(result.values, ends, strict=True)
    )
    found = len(result.values)
    return np.array(
        [len(hits) / PLANTED, len(hits) / max(1, found), inside, found, middle - start, end - middle]
    ), protocol


def prefix_extending(bits: int, epsilon: int, share: float, people: int, seed: int) -> float:
    """The recall of the rival."""
    random = np.random.default_rng(seed)
    more = 18 - math.ceil(math.log2(PLANTED))
    ends = [min(18, bits)]
    while ends[-1] < bits:
        ends.append(min(bits, ends[-1] + more))
    each, e = people / len(ends), math.exp(epsilon)
    noise = 2 * math.sqrt(e) / (e - 1) / math.sqrt(each)
    alive = PLANTED
    for place in range(len(ends)):
        candidates = (1 << 18) if place == 0 else PLANTED * (1 << (ends[place] - ends[place - 1]))
        own = share + math.sqrt(noise**2 + share * (1 - share) / each) * random.normal(size=alive)
        others = noise * random.normal(size=max(0, candidates - alive))
        cut = np.partition(others, -PLANTED)[-PLANTED:] if others.size >= PLANTED else others
        ranked = np.sort(np.concatenate([own, cut]))[-PLANTED:]
        alive = int((own >= ranked[0]).sum())
    return alive / PLANTED


DOCS = Path(__file__).parent.parent / "docs"
SPELLED, FOREIGN = 0.0025, 0.0040
"""The shares of words that are found by their spelling, and of texts that are unlike any word."""


def counted_words(pages: Iterable[Path]) -> Counter[str]:
    """The words of pages, of four letters and more."""
    text = " ".join(page.read_text(encoding="utf-8") for page in sorted(pages))
    return Counter(re.findall(r"[^\W\d_]{4,}", text))


@cache
def words_of_pages() -> tuple[list[str], Floats]:
    """The words of the documentation's pages, with their shares."""
    counts = counted_words(DOCS.rglob("*.md")).most_common()
    numbers = np.array([count for _, count in counts], dtype=np.float64)
    return [word for word, _ in counts], numbers / numbers.sum()


def words(epsilon: int, people: int, seed: int) -> Floats:
    """Found among the words that the planner promises, how many those are, wrong ones, intervals that cover, found."""
    listed, shares = words_of_pages()
    random = np.random.default_rng(seed)
    domain = dn.ShortText(16)
    protocol = HeavyHitters(domain, epsilon, people=people)
    drawn = random.choice(len(listed), people, p=shares)
    column = BitRows(drawn, domain.encode(listed).entries[domain.encode(listed).which])
    held = np.bincount(drawn, minlength=len(listed)) / people
    result = protocol.estimate(protocol.tally(protocol.draw_many(column, dn.Simulation(seed))))
    truth = {str(domain.label(domain.encode_one(word))): share for word, share in zip(listed, held, strict=True)}
    smallest = protocol.worth(people).visible() or 1.0
    wanted = {name for name, share in truth.items() if share >= smallest}
    named = {str(value) for value in result.values}
    ends = result.interval(COVERED, population=False)
    inside = sum(low <= truth.get(str(one), 0.0) <= high for one, (low, high) in zip(result.values, ends, strict=True))
    return np.array([len(wanted & named), len(wanted), len(named - set(truth)), inside, len(named)])


def spelled(people: int, seed: int, foreign: bool) -> Floats:
    """Recall and wrong ones without a list, then with words as candidates that have none of the planted ones."""
    random = np.random.default_rng(seed)
    own = sorted(counted_words((DOCS / "protocols").glob("*.md")))
    if foreign:
        signs = "0123456789βδεθλжлцщюßøü"
        planted = ["".join(random.choice(list(signs), 6)) for _ in range(PLANTED)]
    else:
        planted = random.choice([word for word in own if len(word.encode()) <= 16], PLANTED, replace=False).tolist()
    others = counted_words(page for page in DOCS.rglob("*.md") if page.parent.name != "protocols")
    taken = {word.lower() for word in planted}
    listed = [word for word in others if word.lower() not in taken]
    domain = dn.ShortText(16)
    protocol = HeavyHitters(domain, 4, people=people)
    which = (random.random(people) / (FOREIGN if foreign else SPELLED)).astype(np.int64)
    which = np.where(which < PLANTED, which, PLANTED + np.arange(people))
    column = domain.encode(planted)
    noise = random.integers(0, 256, (people, domain.size_in_bytes), dtype=np.uint8)
    rows = np.concatenate([column.entries[column.which], noise])
    tally = protocol.tally(protocol.draw_many(BitRows(which, rows), dn.Simulation(seed)))
    got = [{str(one) for one in protocol.estimate(tally, known).values} for known in (None, listed)]
    return np.array([figure for one in got for figure in (len(one & set(planted)) / PLANTED, len(one - set(planted)))])


@benchmark("discovery", "32 planted strings among 1,000,000 people, against prefix extending", group=GROUP, rounds=1)
def planted_strings(size: Size) -> Case:
    people, runs = size(1_000_000, 30_000), size(20, 1)
    facts, inside, found = {}, 0.0, 0.0
    for bits, epsilon, share in GOALS:
        got, rival = [], []
        for seed in range(SEEDS, SEEDS + runs):
            figures, protocol = search(bits, epsilon, share, people, seed)
            got.append(figures)
            rival.append(prefix_extending(bits, epsilon, share, people, seed))
        recall, precision, _, _, tally, decode = np.mean(got, axis=0)
        inside, found = inside + sum(one[2] for one in got), found + sum(one[3] for one in got)
        facts[f"{bits} bits, epsilon {epsilon}, share {share:.2%}"] = (
            f"recall {recall:.3f}, precision {precision:.3f}; prefix extending {np.mean(rival):.3f}; a tally of "
            f"{8 * protocol.tally_size / 1e6:.1f} MB, {tally:.1f} s to count and {decode:.1f} s to decode"
        )
    facts["intervals of what was found"] = f"cover {inside / max(1, found):.1%} of {found:.0f}"
    _, column = crowd(64, 0.0033, people, 0)
    protocol = HeavyHitters(BitStrings(64), 4, people=people)
    reports = protocol.draw_many(column, dn.Simulation(1))
    tally_of = protocol.tally(reports)
    tasks = {
        "privatize": work(lambda: protocol.draw_many(column, dn.Simulation(2)), people, "report"),
        "tally": work(lambda: protocol.tally(reports), people, "report"),
        "decode": work(lambda: protocol.estimate(tally_of), 1, "search"),
    }
    return Case(tasks, [seconds("decode", at_most(15.0, full_only=True))], facts)


@benchmark(
    "discovery of words", "words of the documentation, of up to 16 bytes, that nobody listed", group=GROUP, rounds=1
)
def words_of_a_text(size: Size) -> Case:
    people, runs = size(1_000_000, 20_000), size(20, 1)
    facts = {}
    for epsilon in (4, 2):
        got = np.sum([words(epsilon, people, seed) for seed in range(SEEDS, SEEDS + runs)], axis=0)
        facts[f"epsilon {epsilon}"] = (
            f"{got[0] / max(1, got[1]):.1%} of the {got[1] / runs:.0f} words that the planner promises, intact; "
            f"{got[4] / runs:.1f} found in all, of which {got[2] / runs:.2f} are no word of the text; intervals cover "
            f"{got[3] / max(1, got[4]):.1%}"
        )
    return Case({}, [], facts)


@benchmark(
    "discovery by spelling",
    "32 words of up to 16 bytes, with a list of other words as candidates",
    group=GROUP,
    rounds=1,
)
def words_by_spelling(size: Size) -> Case:
    people, runs = size(1_000_000, 20_000), size(20, 1)
    facts = {}
    kinds = {f"words of the pages, share {SPELLED:.2%}": False, f"texts unlike any word, share {FOREIGN:.2%}": True}
    for name, foreign in kinds.items():
        got = np.mean([spelled(people, seed, foreign) for seed in range(SEEDS, SEEDS + runs)], axis=0)
        facts[name] = (
            f"{got[0]:.1%} found without a list, {got[2]:.1%} with a list of other words; wrong ones per collection "
            f"{got[1]:.2f} and {got[3]:.2f}"
        )
    return Case({}, [], facts)


ANY = ((8, 4, 20_000), (16, 4, 20_000), (16, 1, 200_000), (16, 8, 5_000))
"""Bytes, epsilon and people, so that six texts fit beside each other."""
BESIDE = ("morning", "kitchen")


def unlike_words(random: np.random.Generator, width: int) -> list[str]:
    """One text of each kind, of up to so many bytes or longer."""

    def drawn(signs: str, least: int, most: int) -> str:
        return "".join(random.choice(list(signs), random.integers(least, most + 1)))

    letters, digits, hexes = "abcdefghijklmnopqrstuvwxyz", "0123456789", "0123456789abcdef"
    base64 = letters + letters.upper() + digits + "+/"
    faces = [chr(one) for one in random.integers(0x1F600, 0x1F64F, width // 4)]
    points = [chr(one) for one in random.integers(0x20, 0xD7FF, width // 3)]
    return [
        f"https://{drawn(letters, 2, 8)}.{drawn(letters, 2, 3)}/{drawn(base64, 0, 4)}",
        drawn(hexes, width // 2, width),
        f"+{drawn(digits, 2, 2)} {drawn(digits, 3, 11)}",
        drawn(base64, width // 2, width) + "==",
        f"{drawn(letters.upper(), 2, 3)}-{drawn(digits, 2, 4)}/{drawn(letters.upper(), 1, 1)}",
        "".join(faces),
        drawn("aeßøñжщюλθأب中文한국", 2, width // 3),
        "".join(points),
        random.integers(1, 256, width, dtype=np.uint8).tobytes().decode("latin-1"),
        drawn("!#$%&*+-/=?@^_~" + base64, 6, width),
    ]


def any_text(width: int, epsilon: int, people: int, seed: int) -> Floats:
    """Texts unlike words that were planted, and those found; words, and those found; values that nobody gave."""
    random = np.random.default_rng(seed)
    domain = dn.ShortText(width)
    protocol = HeavyHitters(domain, epsilon, people=people)
    kinds = unlike_words(random, width)
    texts = [kinds[place] for place in random.choice(len(kinds), 4, replace=False)]
    share = protocol._smallest(people)
    column = domain.encode([*texts, *BESIDE])
    shares = np.cumsum([protocol._smallest_unlike(people)] * len(texts) + [share] * len(BESIDE))
    place = np.searchsorted(shares, random.random(people), side="right")
    own = random.integers(0, 256, (people, domain.size_in_bytes), dtype=np.uint8)
    which = np.where(place < len(shares), place, len(shares) + np.arange(people))
    rows = np.concatenate([column.entries[column.which], own])
    result = protocol.estimate(protocol.tally(protocol.draw_many(BitRows(which, rows), dn.Simulation(seed))))
    named = {str(value) for value in result.values}
    wanted, words = ({str(domain.label(domain.encode_one(one))) for one in some} for some in (texts, BESIDE))
    return np.array([len(wanted), len(wanted & named), len(words), len(words & named), len(named - wanted - words)])


@benchmark("discovery of any text", "texts unlike words at twice the stated share, beside words", group=TEXTS, rounds=1)
def texts_of_any_kind(size: Size) -> Case:
    facts = {}
    for width, epsilon, people in ANY:
        seeds = range(SEEDS, SEEDS + size(20, 1))
        got = np.sum([any_text(width, epsilon, people, seed) for seed in seeds], axis=0)
        share = HeavyHitters(dn.ShortText(width), epsilon, people=people)._smallest_unlike(people)
        facts[f"{width} bytes, epsilon {epsilon}, {people:,} people"] = (
            f"{got[1] / got[0]:.1%} of {got[0]:.0f} texts with a share of {share:.2g} found, {got[3] / got[2]:.1%} of "
            f"words with half of it; wrong ones per collection {got[4] / len(seeds):.2f}"
        )
    return Case({}, [], facts)


COST_PEOPLE = (250_000, 500_000, 1_000_000, 2_000_000)
COST_BITS = (64, 128, 256, 512)
COST_CELL, COST_NEW = 16, 7
"""With cells of so many bits and so many new bits per group, the number of groups is in proportion to the bits."""


def cost(bits: int, people: int) -> tuple[int, float, float]:
    """Groups, and processor seconds to count and to search: the best of three runs."""
    _, column = crowd(bits, 0.02, people, 1)
    prefixes = _prefixes(bits, COST_CELL, COST_NEW)
    protocol = HeavyHitters(BitStrings(bits), 4, people=people, cell_bits=COST_CELL, prefixes=prefixes)
    reports = protocol.draw_many(column, dn.Simulation(1))
    taken = []
    for _ in range(3):
        start = time.process_time()
        tally = protocol.tally(reports)
        middle = time.process_time()
        protocol.estimate(tally)
        taken.append((middle - start, time.process_time() - middle))
    return len(protocol.groups), *np.min(taken, axis=0).tolist()


def power(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The x for which the times grow about as sizes^x."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(times, 1e-9)), 1)[0])


@benchmark("cost of discovery", "seconds of a tally and a search over people, bits and groups", group=GROUP, rounds=1)
def costs(size: Size) -> Case:
    facts, over_people, over_bits = {}, [], []
    for people in COST_PEOPLE:
        over_people.append(cost(64, size(people, 10_000)))
        groups, count, decode = over_people[-1]
        facts[f"64 bits, {people:,} people"] = f"{groups} groups, {count:.2f} s to count, {decode:.2f} s to decode"
    for bits in COST_BITS:
        over_bits.append(cost(bits, size(500_000, 10_000)))
        groups, count, decode = over_bits[-1]
        facts[f"{bits} bits, 500,000 people in groups"] = (
            f"{groups} groups, {count:.2f} s to count, {decode:.2f} s to decode"
        )
    by_people, by_bits = np.array(over_people).T, np.array(over_bits).T
    facts["growth"] = (
        f"counting as people^{power(COST_PEOPLE, by_people[1]):.2f} and bits^{power(COST_BITS, by_bits[1]):.2f}, "
        f"searching as people^{power(COST_PEOPLE, by_people[2]):.2f}, bits^{power(COST_BITS, by_bits[2]):.2f} and "
        f"groups^{power(by_bits[0], by_bits[2]):.2f}"
    )
    return Case({}, [], facts)

"""Shared vectors: (spec, answer, random bytes) -> report, drawn by Python and repeated by the browser.

`python -m tests.web.vectors` shows how `web/test/vectors.json` differs from what Python draws now, and `--write` writes
the file anew. Do that only for a new protocol or case: a change of the bytes that are there breaks every published
survey. Everything in the file is exact but the values of `linking`, which have 12 digits and are compared within 1e-9:
processors differ in the last bits of logarithms.

cases       a spec with its thresholds, answers, and reports: vector i of a case has the answer i mod (number of
            answers) and the seed `first` + i; its report is the i-th piece of the hexadecimal text, and `words` says
            how many 64-bit words it drew. The stream of a seed is SHA-256("deniable-vector-v1", seed, block) for
            block 0, 1, ..., both numbers as 8 bytes, little-endian
explicit    vectors with their random bytes in full, among them the rare branches: rejected words, ties, late decisions
thresholds  specs and their integers only, over the whole range of epsilon
canonical   JSON values and their canonical bytes
stages      of protocols in two stages: an answer, random bytes, the kept state, and two reports drawn from it one after
            the other; then the state that the same device keeps of another answer, and the key that it is kept under
streams     of answers that change: a device's state after each epoch, and what it sends, from its random bytes
surveys     specs, canonical bytes and fingerprints
ids         a survey's key for the epoch `start`, the key of a later epoch, and the id of that epoch's submission
tied        of reports whose hash function follows from the submission's id: fingerprint, question, ids, the public
            number of each id (decimal), and the report that its seed (`first` + i) gives for the answer
stories     a spec, an answer and a seed, and what chance does to the answer, in sentences
changes     two surveys, and what is different in the second: [what, what it does to privacy]
"""

from __future__ import annotations

import difflib
import hashlib
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.channels import Channel
from deniable.collect.client.ledger import advance, report_id
from deniable.collect.wire import public_number
from deniable.domains import BitStrings, Categories, Domain, Integers, Interval, KeyNumbers, Records, Sets, Strings
from deniable.exact import WORD, Dyadic
from deniable.labels import label_spec
from deniable.protocols import (
    Attributes,
    CollisionSets,
    ItemSets,
    Memoized,
    Protocol,
    Stratified,
    Table,
    registered,
)
from deniable.randomness import Bits, Tied
from deniable.specs import canonical_bytes
from deniable.surveys import Budget, Epochs, Longitudinal, Question, Survey, Terms
from deniable.surveys.diff import diff
from deniable.surveys.terms import read_time
from tests.surveys.rounds import rounds

FILE = Path(__file__).parents[2] / "web" / "test" / "vectors.json"
A_PROTOCOL = 1000
"""So many vectors per protocol, at least."""
LISTED = [
    "BLH",
    "CMS",
    "GRR",
    "HCMS",
    "OLH",
    "OUE",
    "RAPPOR",
    "SUE",
    "THE",
    "HadamardResponse",
    "OLHSketch",
    "SubsetSelection",
]
"""Protocols whose cases are chosen here; all others are discovered."""


class Hashed(Bits):
    """The stream of a vector's seed."""

    def __init__(self, seed: int) -> None:
        self.seed, self.block, self.rest, self.taken = seed, 0, b"", 0

    def take(self, count: int) -> bytes:
        while len(self.rest) < count:
            numbers = self.seed.to_bytes(8, "little") + self.block.to_bytes(8, "little")
            self.rest += hashlib.sha256(b"deniable-vector-v1" + numbers).digest()
            self.block += 1
        taken, self.rest = self.rest[:count], self.rest[count:]
        self.taken += count
        return taken

    def fill(self, out: NDArray[np.uint8]) -> None:
        raise AssertionError("a single report draws word by word")


class Listed(Bits):
    """Words given one by one, then those of a seed; remembers all."""

    def __init__(self, words: list[int], seed: int) -> None:
        self.words, self.tail, self.given = list(words), Hashed(seed), b""

    def take(self, count: int) -> bytes:
        data = self.words.pop(0).to_bytes(8, "little") if self.words and count == 8 else self.tail.take(count)
        self.given += data
        return data

    def fill(self, out: NDArray[np.uint8]) -> None:
        raise AssertionError("a single report draws word by word")


YES_NO = Categories(["yes", "no"])
TRUTH = Categories([True, False, "prefer not to say"])
BREAD = Categories(["Brötchen", "crêpe", "パン", "🥖 baguette", "\u1e69"])
NUMBERS = Categories([1, "1", True, -7, 2**53 - 1, 2**53 + 1, -(10**20)])
TOWNS = Categories([*(f"town {i}" for i in range(16)), "elsewhere"], other="elsewhere")
TEN = Integers(-3, 6)

CLOSED = [YES_NO, TRUTH, BREAD, TOWNS, TEN, Integers(0, 63), Integers(1, 100), Integers(0, 299)]
LEVELS = ["1", "1/3", 0.1, 5, "2.5", 0.5, "1/1000", 12]
TEXTS = ["sourdough", "", "Brötchen", "cre\u0302pe", "パン", "🥖", "a\0b", "x" * 4096, "rye"]


def cases() -> Iterator[tuple[Protocol, list[Any]]]:
    """Every protocol over its domains and levels, with the answers to draw for."""
    for name in ("GRR", "SUE", "OUE", "THE", "BLH", "OLH", "SubsetSelection", "HadamardResponse"):
        for domain, level in zip(CLOSED, LEVELS, strict=True):
            yield registered()[name](domain, level), answers(domain)
        yield registered()[name](NUMBERS, 1), answers(NUMBERS)
        yield registered()[name](TOWNS, 3), answers(TOWNS)
    yield registered()["GRR"](100_000, 9), [0, 1, 65_535, 65_536, 99_999]
    yield registered()["OLH"](1 << 20, 2), [0, 1, 3, (1 << 20) - 1]
    yield registered()["OLH"](40, 7), [0, 1, 39]
    yield registered()["SubsetSelection"](300, 5), [0, 7, 299]
    yield registered()["HadamardResponse"](300, 5), [0, 7, 299]
    yield registered()["THE"](64, 1, threshold=1), [0, 63]
    small, one = Strings(cells=64, cohorts=8, key="näme/q"), Strings(cells=2, cohorts=1)
    for name in ("CMS", "HCMS", "OLHSketch"):
        for domain, level in ((small, 1), (one, "1/3"), (Strings(cells=256, cohorts=300), 5), (small, 0.1)):
            yield registered()[name](domain, level), TEXTS
        for closed, level in ((BREAD, 1), (Categories([1, "one", False, 10**20]), 2), (TOWNS, 0.5), (TEN, 4)):
            yield registered()[name](closed, level, hashing=Strings(cells=128, cohorts=16)), answers(closed)
    for name in ("HCMS", "OLHSketch"):
        yield registered()[name](Strings(), 1), TEXTS
    for domain, level, sizes in (
        (Strings(), 4, (128, 2, 8)),
        (Strings(key="k"), 1, (32, 1, 300)),
        (Strings(), "1/3", (16, 8, 1)),
        (Strings(), 5, (65, 3, 16)),
        (Strings(), 0.1, (7, 2, 2)),
    ):
        yield registered()["RAPPOR"](domain, level, *sizes), TEXTS
    for closed, level in ((BREAD, 1), (Categories([1, "one", False]), 2), (TOWNS, 8), (TEN, 4)):
        yield registered()["RAPPOR"](closed, level, 64, 2, 4, key="ö"), answers(closed)

    for kind in discovered():
        for example in kind.examples():
            yield example, some_answers(example.domain)
    for size, level in ((2, 1), (300, 3), (1000, "1/2"), (70, 8), (60_000, 6), (1 << 20, 2), ((1 << 26) - 9, 0.1)):
        yield registered()["BlockDesign"](size, level), [0, 1, size // 3, size - 1]


def discovered() -> list[type[Protocol]]:
    """Protocols of this package that are not listed above: their vectors come from their own examples."""
    ours = [kind for _, kind in sorted(registered().items()) if kind.__module__.startswith("deniable.")]
    return [kind for kind in ours if kind.name not in LISTED]


def some_answers(domain: Domain) -> list[Any]:
    """A few answers of any domain, those at and beyond the ends of an interval among them."""
    if isinstance(domain, Interval):
        low, high = domain.ends
        inside = [low + part * (high - low) for part in (0.1, 1 / 3, 0.5, 0.999)]
        return [low, high, *inside, low - 1, high + 1000, (high - low) / 7 + low]
    if isinstance(domain, Records):
        columns = [some_answers(column) for _, column in domain.columns]
        return [
            {
                name: column[(i + j) % len(column)]
                for j, (name, column) in enumerate(zip(domain.names, columns, strict=True))
            }
            for i in range(12)
        ]
    if isinstance(domain, Sets | KeyNumbers):
        return some_sets(domain)
    if isinstance(domain, BitStrings):
        return [f"{value << 4 * domain.digits - domain.bits:0{domain.digits}x}" for value in range(1 << domain.bits)]
    return answers(domain) if domain.is_listed else TEXTS


def some_sets(domain: Sets | KeyNumbers) -> list[Any]:
    """Sets from none to all items, given twice and out of order; of keys with numbers at and beyond the ends."""
    labels = list(domain.items.labels)
    chosen = [[], labels[:1], labels[-1:], labels[:2], labels[::-1], [*labels[:2], *labels[:2]], labels]
    if isinstance(domain, Sets):
        return chosen
    low, high = domain.interval.ends
    numbers = [low, high, (low + high) / 2, low - 1, high + 1, low + (high - low) / 7, high - (high - low) / 3]
    return [{label: numbers[(i + j) % 7] for j, label in enumerate(one)} for i, one in enumerate(chosen)]


def answer_spec(answer: Any) -> Any:
    """An answer as the file writes it: a record by its columns, a number as it is, anything else like a label."""
    if isinstance(answer, list):
        return [answer_spec(value) for value in answer]
    if isinstance(answer, dict):
        return {str(name): answer_spec(value) for name, value in answer.items()}
    return answer if isinstance(answer, float) else label_spec(answer)


def answers(domain: Any) -> list[Any]:
    """Answers at both ends, in other Unicode forms, and unlisted where that is allowed."""
    labels = list(domain.labels)
    chosen = labels if len(labels) <= 20 else [*labels[:3], labels[len(labels) // 2], *labels[-3:]]
    if domain is BREAD:
        chosen = [*chosen, "Bro\u0308tchen", "s\u0323\u0307"]
    return [*chosen, "no such town", 5, False, "\ud800"] if domain is TOWNS else chosen


def thresholds(protocol: Protocol) -> dict[str, str]:
    """The integers of a law, under the browser's names."""
    law: Any = getattr(protocol, "inner", protocol)
    found: dict[str, Dyadic] = {}
    if hasattr(law, "second"):
        found = {"flip": law.flip, "second": law.second}
    elif isinstance(law, Memoized) and hasattr(law, "true_bit"):
        found = {"trueBit": law.true_bit, "otherBit": law.other_bit, "flip": law.flip}
    elif hasattr(law, "instant"):
        found = {"permanent": law.response.keep, "instant": law.instant.keep}
    elif hasattr(law, "response"):
        found = {"keep": law.response.keep}
    elif hasattr(law, "true_bit"):
        found = {"trueBit": law.true_bit, "otherBit": law.other_bit}
    elif hasattr(law, "holds"):
        found = {"holds": law.holds}
    elif hasattr(law, "own_cell"):
        found = {"ownCell": law.own_cell}
    elif hasattr(law, "meets"):
        found = {"meets": law.meets}
    elif hasattr(law, "flip"):
        found = {"flip": law.flip}
    elif hasattr(law, "keep"):
        found = {"keep": law.keep}
    return {name: str(dyadic.numerator) for name, dyadic in found.items()}


def case(protocol: Protocol, values: list[Any], first: int, count: int) -> dict[str, Any]:
    reports, words = "", []
    for i in range(count):
        bits = Hashed(first + i)
        reports += protocol.privatize([values[i % len(values)]], bits).to_bytes().hex()
        words.append(bits.taken // 8)
    return {
        "spec": protocol.spec(),
        "fingerprint": protocol.fingerprint,
        "bytes": protocol.report_bytes,
        "thresholds": thresholds(protocol),
        "answers": [answer_spec(value) for value in values],
        "first": first,
        "words": words,
        "reports": reports,
    }


def explicit() -> Iterator[dict[str, Any]]:
    """Plain vectors, and those that no seed would find."""
    top = WORD - 1
    for seed, (name, domain) in enumerate((name, domain) for name in LISTED for domain in (BREAD, TEN)):
        hashing = {"hashing": Strings(cells=64, cohorts=4)} if name in ("CMS", "HCMS", "OLHSketch") else {}
        protocol = registered()[name](domain, "1/3", **hashing)
        yield vector(protocol, domain.labels[seed % 5], [], seed)
    for domain in (TRUTH, Integers(0, 99), Integers(0, 63)):
        grr = registered()["GRR"](domain, 1)
        keep, label = int(thresholds(grr)["keep"]), domain.labels[1]
        limit = WORD - WORD % domain.size
        for decision in (0, keep - 1, keep, top):
            yield vector(grr, label, [decision, top, limit % WORD, limit - 1], 1)
    for name in ("SUE", "OUE", "THE"):
        for domain in (BREAD, Integers(0, 63), Integers(1, 100)):
            unary = registered()[name](domain, 2)
            true, other = (int(number) for number in thresholds(unary).values())
            # Each word repeats the next digit of the threshold, so that no lane is decided before the last one.
            late = [top if other >> place & 1 else 0 for place in range(63, -1, -1)]
            blocks = -(-domain.size // 64)
            ends = 64 - (other & -other).bit_length() + 1
            for decision in (true - 1, true):
                yield vector(unary, domain.labels[-1], [*late[:ends] * blocks, decision], 2)
    subset = registered()["SubsetSelection"](Integers(0, 9), 1, subset_size=3)
    holds = int(thresholds(subset)["holds"])
    for decision in (holds - 1, holds):
        yield vector(subset, 4, [decision, top, 0, top, 0], 3)
    text = registered()["RAPPOR"](Strings(), 1, 16, 2, 3)
    yield vector(text, "rye", [top, top - 1], 4)
    kinds = registered()
    often = kinds["GRR"](Categories(["never", "often"], missing="no answer"), 1)
    record = {"often": often, "age": kinds["OLH"](TEN, 1), "hours": kinds["Window"](Interval(0, 24), 1)}
    parts = Attributes.of(record, {"often": 2, "age": 3, "hours": 2})
    limit = WORD - WORD % 7
    for first in (0, 1, 2, 4, 5, 6):
        yield vector(parts, {"age": -3, "hours": 7.25}, [top, limit, 7 + first], 5)
    yield vector(parts, {"often": "often", "age": 6, "hours": 99}, [0], 6)
    public = {"country": ["de", "fr", "pl"], "beta": [True, False]}
    wide = Stratified(public, kinds["OUE"](BREAD, 1), "bread")
    yield vector(wide, {"country": "pl", "beta": False, "bread": BREAD.labels[0]}, [], 7)


def vector(protocol: Protocol, answer: Any, words: list[int], seed: int) -> dict[str, Any]:
    bits = Listed(words, seed)
    report = protocol.privatize([answer], bits).to_bytes().hex()
    return {"spec": protocol.spec(), "answer": answer_spec(answer), "random": bits.given.hex(), "report": report}


def threshold_cases() -> Iterator[dict[str, Any]]:
    """Epsilons from one end to the other, and one with as many digits as are read."""
    long = Fraction(10**99 + 1, 10**99)
    for level in ("1/1000000", 0.001, "1/7", 1, "1.0986122886681098", "22/7", 16, 40, "63.999", 64, long):
        for name in ("GRR", "SUE", "OUE", "THE", "OLH", "SubsetSelection", "HadamardResponse"):
            for size in (2, 1000):
                protocol = registered()[name](size, level)
                yield {"spec": protocol.spec(), "thresholds": thresholds(protocol)}
        protocol = registered()["RAPPOR"](Strings(), level, 64, 8, 2)
        yield {"spec": protocol.spec(), "thresholds": thresholds(protocol)}
    for level in ("1/1000000", "1/7", 1, "22/7", 40, 64, long):
        protocol = registered()["Window"](Interval(0, 1), level, positions=22, width=5)
        yield {"spec": protocol.spec(), "thresholds": thresholds(protocol)}
    for first, forever in (("1/1000000", "1/1000"), ("1/7", 1), (1, "22/7"), (long, 40), (20, 24), ("9.99", 10)):
        for size in (2, 1000):
            for name in ("LGRR", "LSUE", "LOSUE"):
                protocol = registered()[name](size, first, forever)
                yield {"spec": protocol.spec(), "thresholds": thresholds(protocol)}


def stages() -> Iterator[dict[str, Any]]:
    """Both stages apart, as a device that keeps the state draws them."""
    kinds = [kind for kind in discovered() if issubclass(kind, Memoized)]
    wide = [
        registered()["LGRR"](Integers(0, 299), 2, forever="7/2"),
        registered()["LGRR"](BREAD, "1/3", forever="0.35"),
        registered()["LOSUE"](Integers(0, 69), 2, forever="7/2"),
        registered()["LOLOHA"](TOWNS, 1, forever="7/2"),
        registered()["LRAPPOR"](Strings(), first=2, forever=4, bloom_bits=32, cohorts=300),
        registered()["LOLOHA"](Strings(8, 128, "k"), 1, forever=2),
        registered()["DBitFlip"](Integers(0, 299), 1, forever="7/2", bits=1),
        registered()["DBitFlip"](Integers(0, 69), 2, forever="7/2", bits=9),
        registered()["LOneBitMean"](Interval(0, 1440), 1, forever="7/2", steps=24),
    ]
    for protocol in (*(example for kind in kinds for example in kind.examples()), *wide):
        for seed, value in enumerate(some_answers(protocol.domain)):
            bits = Listed([], seed)
            state = protocol.permanent(value, bits)
            reports = [protocol.report_from(state, bits).hex() for _ in range(2)]
            level = str(protocol.instant_epsilon)
            second = protocol.domain.encode_one(protocol.domain.example)
            later = protocol.permanent_encoded(second, bits, like=state)
            key = protocol.kept_under(second, later).hex()
            drawn = {"random": bits.given.hex(), "state": state.hex(), "reports": reports, "later": later.hex()}
            links = [float(f"{protocol.law().kept.linking(epochs):.12g}") for epochs in (1, 7, 52)]
            drawn |= {"second": answer_spec(protocol.domain.example), "key": key, "linking": links}
            yield {"spec": protocol.spec(), "instantEpsilon": level, "answer": answer_spec(value), **drawn}


def streams() -> Iterator[dict[str, Any]]:
    """Whole streams of answers that change."""
    kind = registered()["Evolving"]
    wide = [kind(BREAD, "1/3", epochs=30, changes=4), kind(YES_NO, 5, epochs=365, changes=0)]
    for protocol in (*kind.examples(), *wide):
        labels = protocol.domain.labels
        for seed in range(6):
            bits = Listed([], seed)
            answers = [labels[(epoch * (seed + 1) // 5) % len(labels)] for epoch in range(protocol.epochs)][:40]
            state = protocol.begin(bits)
            states, reports = [state.hex()], []
            for epoch, answer in enumerate(answers, start=1):
                state, report = protocol.step(state, answer, epoch, bits)
                states.append(state.hex())
                reports.append(report.hex())
            drawn = {"random": bits.given.hex(), "states": states, "reports": reports}
            yield {"spec": protocol.spec(), "answers": [answer_spec(answer) for answer in answers], **drawn}


CANONICAL: list[Any] = [
    {"b": [1, True, None], "a": "x", "aa": {}, "": []},
    {"\U0001f956": 1, "\uff41": 2, "é": 3, "z": -4, "Z": 2**53 - 1},
    ['\0\x01\x1f \x7f\x80\u2028\u2029\\"/\b\f\n\r\t', "パン🥖", -(2**53) + 1, 0],
]


def surveys() -> list[Survey]:
    smoke = Question("smoke", "Do you smoke?", registered()["GRR"](YES_NO, 1))
    bread = Question("bread", "Which bread, “really”? One only.", registered()["OUE"](BREAD, "1/2"))
    town = Question("town_2", "Where?", registered()["OLH"](TOWNS, 2))
    word = Question("word", "Any word 🥖", registered()["HCMS"](Strings(key="habits/word"), 1))
    start = read_time("2026-11-01T00:00:00Z")
    daily = Terms(
        "Example Bäckergilde",
        "To bake what people like",
        Epochs(start, 86_400),
        Longitudinal("none", 3),
        Budget("bakery", Fraction(20)),
        start,
        read_time("2027-11-01T00:00:00Z"),
        min_reports=100,
    )
    kept = Terms(
        "Example Bäckergilde",
        "To follow habits over the months",
        Epochs(start, 30 * 86_400, 0, 2),
        Longitudinal("memoize", 12, 2),
        Budget("bakery", Fraction(9, 2)),
        start + 3600,
        read_time("2028-02-29T23:59:59Z"),
        retention="reports",
        replaces="0123456789abcdef" * 4,
    )
    return [
        Survey("habits", [smoke]),
        Survey("habits", [smoke, bread]),
        Survey("daily", [smoke, bread, town, word], daily),
        Survey("monthly", [smoke, Question("age", "How old?", registered()["GRR"](TEN, "5/4"))], kept),
        *rounds(),
        two_stages(daily, 2),
        evolving(daily),
    ]


def evolving(daily: Terms) -> Survey:
    """Answers that change, over a month."""
    rule, budget = Longitudinal("evolving", 30, changes=2), Budget("streams", Fraction(1), relation="stream")
    month = replace(daily, longitudinal=rule, budget=budget, expires=daily.opens + 30 * 86_400)
    smoke = registered()["Evolving"](YES_NO, 1, epochs=30, changes=2)
    return Survey("evolving", [Question("smoke", "Do you smoke?", smoke)], month)


def two_stages(daily: Terms, values: int, forever: str = "3/2") -> Survey:
    """Two questions, at epsilon 3/4 per report; the first keeps a state of epsilon 3/2, the second one of `forever`."""
    smoke = Question("smoke", "Do you smoke?", registered()["LGRR"](YES_NO, "1/2", forever="3/2"))
    bread = Question("bread", "Which bread?", registered()["LGRR"](BREAD, "1/4", forever=forever))
    rule = Longitudinal("two-stage", 30, values, Fraction(3, 4), Fraction(3, 2) + Fraction(forever))
    return Survey("two stages", [smoke, bread], replace(daily, longitudinal=rule))


def tied() -> Iterator[dict[str, Any]]:
    """Reports on sets as devices send them: the hash function follows from fingerprint, question and id."""
    laws = [
        (CollisionSets(Sets(30, at_most=2), 1, cells=4, cohorts=64), [3, 5]),
        (CollisionSets(Sets(300, at_most=3), 2, cells=7, cohorts=1000), [7, 299]),
        (ItemSets(Sets(20_000, at_most=3), epsilon=1, largest=2), [3, 5]),
    ]
    for place, (protocol, answer) in enumerate(laws):
        for pinned, question in (("0123456789abcdef" * 4, "apps"), (protocol.fingerprint, "äpps 🥖")):
            ids = [bytes(16), bytes([255] * 16)]
            ids += [hashlib.sha256(f"{question} {i}".encode()).digest()[:16] for i in range(10)]
            publics = [public_number(pinned, question, id) for id in ids]
            drawn = [
                protocol.report(answer, Tied(Hashed((place << 40) + i), public)) for i, public in enumerate(publics)
            ]
            yield {
                "spec": protocol.spec(),
                "fingerprint": pinned,
                "question": question,
                "answer": answer,
                "first": place << 40,
                "ids": [id.hex() for id in ids],
                "publics": list(map(str, publics)),
                "reports": [report.hex() for report in drawn],
            }


def ids() -> Iterator[dict[str, Any]]:
    """Ids of epochs from the key of an earlier one."""
    for survey in surveys()[2:4]:
        for key, start, epoch in ((bytes(32), 0, 0), (hashlib.sha256(b"a device").digest(), 3, 3 + 1000)):
            later = advance(key, epoch - start)
            yield {
                "fingerprint": survey.fingerprint,
                "key": key.hex(),
                "start": start,
                "epoch": epoch,
                "later": later.hex(),
                "id": report_id(later, survey.fingerprint, epoch).hex(),
            }
    last = 2**32 - 2
    yield {
        "fingerprint": "0123456789abcdef" * 4,
        "key": bytes(range(32)).hex(),
        "start": last,
        "epoch": last,
        "later": bytes(range(32)).hex(),
        "id": report_id(bytes(range(32)), "0123456789abcdef" * 4, last).hex(),
    }


def stories(language: str = "en") -> Iterator[dict[str, Any]]:
    """What chance does to some answers, in the words of every protocol of this package."""
    ours = [kind for _, kind in sorted(registered().items()) if kind.__module__.startswith("deniable.")]
    told = [(example, some_answers(example.domain)[:7]) for kind in ours for example in kind.examples()]
    told += [(registered()["BlockDesign"](size, 3), [0, size - 1]) for size in (300, 30_000)]
    for example, given in told:
        for seed, answer in enumerate(given):
            report = example.privatize([answer], Hashed(seed)).to_bytes()
            texts = [step.text for step in example.explain(answer, report, language)[:-1]]
            yield {"spec": example.spec(), "answer": answer_spec(answer), "seed": seed, "texts": texts}


def changes() -> Iterator[dict[str, Any]]:
    """What is different in one survey that can be collected, seen from another."""
    one, other = surveys()[2:4]
    staged = surveys()[-2]
    reordered = Survey("daily", list(reversed(one.questions)), one.terms)
    assert one.terms is not None
    grown = replace(one.terms, longitudinal=Longitudinal("memoize", 3, 1), min_reports=5, owner="Somebody else")
    for before, after in ((one, other), (other, one), (one, one), (one, reordered)):
        yield _change(before, after)
    yield _change(Survey("daily", [one.questions[0]], one.terms), Survey("daily", [one.questions[0]], grown))
    yield _change(*rounds())
    plain, leaky, profiled = guarantees(one.terms)
    for before, after in ((plain, leaky), (leaky, plain), (plain, profiled), (profiled, leaky)):
        yield _change(before, after)
    rule = Longitudinal("two-stage", 30, 1, Fraction(1), Fraction(2), linkable=True)
    cookie = Question("bread", "Which bread?", registered()["LOSUE"](Integers(0, 16), 1, forever=2))
    linked = Survey("linkable", [cookie], replace(one.terms, longitudinal=rule))
    yield _change(staged, linked)
    yield _change(linked, staged)
    for rival in (two_stages(one.terms, 1), two_stages(one.terms, 3), two_stages(one.terms, 2, "2"), one, other):
        yield _change(staged, rival)
        yield _change(rival, staged)
    streamed = surveys()[-1]
    assert streamed.terms is not None
    for rival in (one, staged):
        yield _change(streamed, rival)
        yield _change(rival, streamed)


def guarantees(terms: Terms) -> Iterator[Survey]:
    """One question between any two answers, the same up to a delta, and one between profiles."""
    leaky = Channel.from_integers([[97, 2, 1], [2, 98, 0]], 100, ["yes", "no"], ["yes", "no", "sure"])
    hidden = registered()["ProfileTable"].examples()
    for protocol in (registered()["GRR"](["yes", "no"], 1), Table(leaky, 4, delta="1/100"), next(iter(hidden))):
        promise = protocol.guarantee
        budget = Budget("bakery", Fraction(90), 10 * promise.delta, promise.relation)
        yield Survey("guarantees", [Question("q", "What?", protocol)], replace(terms, budget=budget))


def _change(before: Survey, after: Survey) -> dict[str, Any]:
    found = [[change.what, change.privacy] for change in diff(before, after)]
    return {"before": before.canonical.decode(), "after": after.canonical.decode(), "changes": found}


def document() -> dict[str, Any]:
    listed = list(cases())
    shares = Counter(protocol.name for protocol, _ in listed)
    drawn, listed_so_far = [], 0
    first = {kind.name: zlib.crc32(kind.name.encode()) << 16 for kind in discovered()}  # none moves another's
    for protocol, values in listed:
        count = -(-A_PROTOCOL // shares[protocol.name])
        seed = first.get(protocol.name, listed_so_far)
        drawn.append(case(protocol, values, seed, count))
        if protocol.name in first:
            first[protocol.name] += count
        else:
            listed_so_far += count
    published = [
        {"spec": s.spec(), "canonical": s.canonical.decode(), "fingerprint": s.fingerprint, "bytes": s.report_bytes}
        for s in surveys()
    ]
    return {
        "cases": drawn,
        "explicit": list(explicit()),
        "thresholds": list(threshold_cases()),
        "stages": list(stages()),
        "streams": list(streams()),
        "canonical": [{"value": value, "bytes": canonical_bytes(value).hex()} for value in CANONICAL],
        "surveys": published,
        "ids": list(ids()),
        "tied": list(tied()),
        "stories": list(stories()),
        "changes": list(changes()),
    }


def lines(document: dict[str, Any]) -> list[str]:
    """The file: plain ASCII, one entry per line, so that a difference shows where it is."""
    found = ["{"]
    for name, entries in document.items():
        found += [f'"{name}":[', *(json.dumps(entry, separators=(",", ":")) + "," for entry in entries)]
        found[-1] = found[-1].removesuffix(",")
        found.append("],")
    found[-1] = "]}"
    return found


def differences() -> list[str]:
    """What the file holds and what Python draws now, where the two differ by more than the rounding of floats."""
    stored, drawn = json.loads(FILE.read_text(encoding="ascii")), document()
    for old, new in zip(stored["stages"], drawn["stages"], strict=False):
        if np.allclose(old["linking"], new["linking"], rtol=1e-9, atol=0):
            new["linking"] = old["linking"]
    return list(difflib.unified_diff(lines(stored), lines(drawn), "stored", "drawn now", n=0, lineterm=""))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        FILE.write_text("\n".join(lines(document())) + "\n", encoding="ascii")
    elif sys.argv[1:]:
        sys.exit("usage: python -m tests.web.vectors [--write]")
    else:
        print("\n".join(line[:240] for line in differences()) or "no difference")

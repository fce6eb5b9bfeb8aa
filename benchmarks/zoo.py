"""How many of a zoo of leaking clients an audit finds out, by kind of leak and number of samples.

Clients    each claims epsilon 1 and is honest but for its leak; reports that nobody else sends make epsilon infinite
Found      audits that say "violated", of so many with fresh seeds, each as a black box; and how many cleared the client
Stated     a leak at just the share of reports from which on an audit says that it would have been found out
Honest     the same clients without a leak
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from benchmarks.registry import Case, Size, benchmark, work
from deniable.audit.rare import rarest_visible
from deniable.audit.samples import Client

GROUP, FIRST_SEED, EPSILON, ANSWERS = "audit-zoo", 91_000, 1.0, 4
SAMPLES = {5_000: 10, 20_000: 20}
"""Samples of each input, and with how many audits."""
EPOCHS = 8

Rows = NDArray[np.uint8]
Random = np.random.Generator
Draw = Callable[[int, int, Random], "Rows | list[bytes]"]


@dataclass
class Leaking(Client):
    """A client that draws reports of one answer by a function."""

    draw: Draw
    random: Random
    steps: int = 1

    def sample(self, value: Any, count: int) -> Rows | list[bytes]:
        return self.draw(int(value), count, self.random)


def response(value: int, count: int, random: Random, epsilon: float = EPSILON, size: int = ANSWERS) -> Rows:
    """Randomized response, a byte per report."""
    keep = math.expm1(epsilon) / (math.exp(epsilon) + size - 1)
    drawn = random.integers(0, size, count, dtype=np.uint8)
    return np.where(random.random(count) < keep, np.uint8(value), drawn)[:, None]


def unary(value: int, count: int, random: Random, size: int = 24) -> Rows:
    """Optimized unary encoding, packed."""
    bits = random.random((count, size)) < 1 / (math.exp(EPSILON) + 1)
    bits[:, value] = random.random(count) < 0.5
    return np.packbits(bits, axis=1, bitorder="little")


def members(value: int, count: int, random: Random, size: int = 8, chosen: int = 3) -> Rows:
    """Some of the answers, among them the true one more often: ascending members, a byte each."""
    keys = random.random((count, size))
    held = random.random(count) < chosen * math.e / (chosen * math.e + size - chosen)
    keys[:, value] = np.where(held, -1.0, 2.0)
    return np.sort(np.argsort(keys, axis=1)[:, :chosen], axis=1).astype(np.uint8)


def hashed(value: int, count: int, random: Random, seeds: NDArray[np.uint32] | None = None) -> Rows:
    """Local hashing: four bytes of a seed, and a response in a byte that is the hash of the answer more often."""
    seeds = random.integers(0, 1 << 32, count, dtype=np.uint32) if seeds is None else seeds
    own = (seeds * np.uint32(2654435761) >> np.uint32(7 + value)) & np.uint32(1)
    lies = random.random(count) < 1 / (math.exp(EPSILON) + 1)
    return np.column_stack([seeds.view(np.uint8).reshape(-1, 4), (own ^ lies).astype(np.uint8)])


def seldom(random: Random, count: int, share: float) -> NDArray[np.bool_]:
    return np.asarray(random.random(count) < share)


def clear_byte(share: float, only: int | None = None) -> Draw:
    def draw(value: int, count: int, random: Random) -> Rows:
        rows = response(value, count, random)
        if only is None or value == only:
            rows[seldom(random, count, share)] = 128 + value
        return rows

    return draw


def clear_bit(share: float) -> Draw:
    def draw(value: int, count: int, random: Random) -> Rows:
        rows = unary(value, count, random)
        rows[seldom(random, count, share)] = np.frombuffer((1 << value).to_bytes(3, "little"), dtype=np.uint8)
        return rows

    return draw


def spare_bits(share: float) -> Draw:
    def draw(value: int, count: int, random: Random) -> Rows:
        rows = unary(value, count, random, 20)
        rows[seldom(random, count, share), 2] |= np.uint8(16 * (value + 1))
        return rows

    return draw


def longer(share: float, only: int | None = None) -> Draw:
    def draw(value: int, count: int, random: Random) -> list[bytes]:
        rows, leaks = response(value, count, random)[:, 0].tolist(), seldom(random, count, share).tolist()
        more = 0 if only is not None and value != only else value
        return [bytes([one] + [0] * more) if leak else bytes([one]) for one, leak in zip(rows, leaks, strict=True)]

    return draw


def appended(share: float) -> Draw:
    def draw(value: int, count: int, random: Random) -> Rows:
        salt = random.integers(0, 256, (count, 7), dtype=np.uint8)
        leaks = seldom(random, count, share)
        salt[leaks, 2], salt[leaks, 3] = 77, value
        return np.hstack([response(value, count, random), salt])

    return draw


def truth_first(share: float) -> Draw:
    def draw(value: int, count: int, random: Random) -> Rows:
        rows = members(value, count, random)
        at = np.argmax(rows == value, axis=1)
        moved = np.flatnonzero((rows == value).any(axis=1) & seldom(random, count, share) & (at > 0))
        rows[moved, at[moved]], rows[moved, 0] = rows[moved, 0], value
        return rows

    return draw


def same_bits(value: int, count: int, random: Random) -> Rows:
    """The bit after the answer's repeats it."""
    rows = np.unpackbits(unary(value, count, random), axis=1, bitorder="little")
    rows[:, value + 1] = rows[:, value]
    return np.packbits(rows, axis=1, bitorder="little")


def plain_bit(value: int, count: int, random: Random) -> Rows:
    """The bit of the last answer is never randomized."""
    rows = np.unpackbits(unary(value, count, random), axis=1, bitorder="little")
    rows[:, ANSWERS - 1] = value == ANSWERS - 1
    return np.packbits(rows, axis=1, bitorder="little")


def repeated_seeds(share: float) -> Draw:
    """All randomness of a device is that of one of 64 seeds."""

    def draw(value: int, count: int, random: Random) -> Rows:
        rows = unary(value, count, random)
        leaks = np.flatnonzero(seldom(random, count, share))
        rows[leaks] = unary(value, 64, np.random.default_rng(5))[random.integers(0, 64, leaks.size)]
        return rows

    return draw


def chosen_seed(share: float) -> Draw:
    def draw(value: int, count: int, random: Random) -> Rows:
        seeds = random.integers(0, 1 << 32, count, dtype=np.uint32)
        leaks = seldom(random, count, share)
        seeds[leaks] = seeds[leaks] & np.uint32(0xFFFFFF00) | np.uint32(value)
        return hashed(value, count, random, seeds)

    return draw


def louder(value: int, count: int, random: Random) -> Rows:
    """One answer is kept as often as at epsilon 1.5."""
    return response(value, count, random, 1.5 if value == 3 else EPSILON)


def back_door(value: int, count: int, random: Random) -> Rows:
    """One answer is always sent as it is."""
    return np.full((count, 1), 3, dtype=np.uint8) if value == 3 else response(value, count, random)


def floats(value: int, count: int, random: Random) -> Rows:
    """Laplace noise of multiples of 1/1024, added to a number that is none: its last digits say which."""
    noise = np.round(random.laplace(0, 0.9 / EPSILON, count) * 1024) / 1024
    return np.ascontiguousarray(0.3 * value + noise).view(np.uint8).reshape(count, 8)


def fixed_cipher(share: float) -> Draw:
    """The answer under a fixed key, without a nonce, in place of random bytes."""
    words = np.random.default_rng(6).integers(0, 256, (ANSWERS, 8), dtype=np.uint8)

    def draw(value: int, count: int, random: Random) -> Rows:
        rows = np.hstack([response(value, count, random), random.integers(0, 256, (count, 8), dtype=np.uint8)])
        rows[seldom(random, count, share), 1:] = words[value]
        return rows

    return draw


def cipher(value: int, count: int, random: Random) -> Rows:
    """The answer in every report, under a key with a nonce: as good as random to whoever lacks the key."""
    return np.hstack([response(value, count, random), random.integers(0, 256, (count, 8), dtype=np.uint8)])


def epochs(each: Callable[[int, int, Random], Rows]) -> Draw:
    def draw(value: int, count: int, random: Random) -> Rows:
        return np.hstack([each(value, count, random) for _ in range(EPOCHS)])

    return draw


def kept(share: float) -> Draw:
    """One report for all epochs; at the last one, now and then, a byte that only this answer has."""

    def draw(value: int, count: int, random: Random) -> Rows:
        rows = np.repeat(response(value, count, random), EPOCHS, axis=1)
        rows[seldom(random, count, share), -1] = 128 + value
        return rows

    return draw


def zoo() -> dict[str, tuple[Draw, int]]:
    """The leaks by name, with the number of epochs."""
    share = rarest_visible(10_000, 10_000, 0.05, EPSILON)
    assert share is not None
    single: dict[str, Draw] = {
        **{f"a clear byte in {100 * one:g} % of reports": clear_byte(one) for one in (0.001, 0.003, 0.01, 0.03)},
        **{f"a clear byte of one answer, {100 * one:g} %": clear_byte(one, only=2) for one in (0.001, 0.003, 0.01)},
        f"a clear byte of one answer at the stated share, {100 * share:.2g} %": clear_byte(share, only=2),
        **{f"the answer's bit alone is set, {100 * one:g} %": clear_bit(one) for one in (0.003, 0.01)},
        **{f"the answer in spare bits, {100 * one:g} %": spare_bits(one) for one in (0.003, 0.01)},
        **{f"longer by the answer, {100 * one:g} %": longer(one) for one in (0.003, 0.01)},
        "longer for one answer, 0.3 %": longer(0.003, only=3),
        **{f"a mark and the answer among random bytes, {100 * one:g} %": appended(one) for one in (0.003, 0.01)},
        "the answer first in a list, always": truth_first(1.0),
        "the answer first in a list, 3 %": truth_first(0.03),
        "a bit that repeats the answer's": same_bits,
        "a bit that is never randomized": plain_bit,
        "noise from 64 seeds": repeated_seeds(1.0),
        "noise from 64 seeds, 3 %": repeated_seeds(0.03),
        "a hash seed that ends in the answer, 3 %": chosen_seed(0.03),
        "one answer of four at epsilon 1.5": louder,
        "a back door: one answer always in clear": back_door,
        "the last digits of floating-point noise": floats,
        "the answer under a fixed key, 1 %": fixed_cipher(0.01),
        "the answer under a key with a nonce, always": cipher,
    }
    streams: dict[str, Draw] = {
        f"fresh noise in each of {EPOCHS} epochs": epochs(response),
        "a clear byte in the last epoch, 0.3 %": kept(0.003),
    }
    honest: dict[str, Draw] = {
        "honest: randomized response": response,
        "honest: unary encoding of 24 answers": unary,
        "honest: some of eight answers": members,
    }
    return (
        {name: (draw, 1) for name, draw in single.items()}
        | {name: (draw, EPOCHS) for name, draw in streams.items()}
        | {name: (draw, 1) for name, draw in honest.items()}
    )


def verdicts(draw: Draw, steps: int, samples: int, seeds: Sequence[int]) -> Counter[str]:
    """What audits with these seeds say."""
    found: Counter[str] = Counter()
    for seed in seeds:
        client = Leaking(draw, np.random.default_rng(seed), steps)
        found[dn.privacy.audit(client, 1, samples, inputs=range(ANSWERS), processes=False, seed=seed).verdict] += 1
    return found


@benchmark("audit-zoo", "leaking clients that claim epsilon 1 and are found out", group=GROUP, rounds=1)
def leaks(size: Size) -> Case:
    facts: dict[str, str | int | float] = {}
    for name, (draw, steps) in zoo().items():
        said = []
        for samples, audits in SAMPLES.items():
            seeds = range(FIRST_SEED, FIRST_SEED + size(audits, 1))
            found = verdicts(draw, steps, size(samples, 1000), seeds)
            cleared = f", {found['cleared']} cleared" if found["cleared"] else ""
            said.append(f"{found['violated']} of {len(seeds)} found{cleared} with {samples:,} samples")
        facts[name] = "; ".join(said)
    quick = zoo()["a clear byte in 1 % of reports"][0]
    return Case({"audit": work(lambda: verdicts(quick, 1, 2000, [1]), 1, "audit")}, (), facts)

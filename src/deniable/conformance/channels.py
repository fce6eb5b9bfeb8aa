"""Checks that every mechanism that is a channel must pass, and every closed form with small parameters.

`Mechanism` is for a finite channel and the code that samples from it, `Sampler` for a law with unbounded outcomes,
which are put into cells. Both are given as functions of epsilon, so that the statistical check can show that it rejects
the same code at a slightly different epsilon. Each check raises ConformanceError with the reason.
"""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import channels as ch
from deniable.channels import Channel
from deniable.channels.inference import invert
from deniable.conformance.checks import (
    Duty,
    accepts,
    draws_needed,
    eighths,
    follows,
    listed,
    refuses,
    require,
    tabulate,
)
from deniable.conformance.protocols import LEVELS, TIGHT
from deniable.exact import Dyadic
from deniable.randomness import Bits, Secure, Simulation, exhaust

Indices = NDArray[Any]


@dataclass(frozen=True)
class Mechanism:
    """A way to build a channel at a level, and the code that draws from it (by default the channel's own)."""

    name: str
    build: Callable[[Fraction], Any]
    epsilon: Fraction = Fraction(1)
    adjacency: Any = "all"
    tight: bool = True
    channel: Callable[[Any], Channel] = lambda built: built
    one: Callable[[Any, int, Bits], int] = lambda built, x, bits: built.sample_index(x, bits)
    many: Callable[[Any, Indices, Bits], Indices] = lambda built, xs, bits: built.sample_indices(xs, bits)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Sampler:
    """A law on cells at a level, and the code that draws from it."""

    name: str
    law: Callable[[Fraction], NDArray[np.float64]]
    draw: Callable[[Fraction, int, Bits], Indices]
    epsilon: Fraction = Fraction(1)

    def __str__(self) -> str:
        return self.name


def check_rows(mechanism: Mechanism) -> None:
    """1. Rows are non-negative integers that sum to the denominator."""
    channel = mechanism.channel(mechanism.build(mechanism.epsilon))
    for row in channel.numerators:
        require(all(isinstance(entry, int) and entry >= 0 for entry in row), "an entry is not a natural number")
        require(sum(row) == channel.denominator, "a row does not sum to one")


def check_level(mechanism: Mechanism) -> None:
    """1. The exact level is at most the one asked for, and close to it where that is claimed."""
    channel = mechanism.channel(mechanism.build(mechanism.epsilon))
    require(channel.satisfies(mechanism.epsilon, mechanism.adjacency), "the level is exceeded")
    if mechanism.tight:
        short = float(mechanism.epsilon) - channel.epsilon_under(mechanism.adjacency)
        require(short <= TIGHT, f"the level falls short by {short:.3g}")


def check_law(mechanism: Mechanism) -> None:
    """2. Draws follow the stored law, and the same test refuses the same code at another level."""
    channel = mechanism.channel(mechanism.build(mechanism.epsilon))
    others = {name: mechanism.build(mechanism.epsilon * factor) for name, factor in LEVELS.items()}
    laws = {name: mechanism.channel(other).rows for name, other in others.items()}
    needed = {
        x: max(draws_needed(channel.rows[x], law[x]) for law in laws.values())
        for x in range(len(channel.inputs))
        if all(not np.allclose(channel.rows[x], law[x], rtol=1e-6, atol=0) for law in laws.values())
    }
    require(needed, "no input's law depends on epsilon")
    # The input that shows a wrong level soonest, and the last one (where loops end too early).
    for x in {min(needed, key=lambda i: needed[i]), max(needed)}:
        n, law = needed[x], channel.rows[x]
        require(_drawn(mechanism, mechanism.build(mechanism.epsilon), x, n, law), f"input {x} has another law")
        for name, other in others.items():
            told = not _drawn(mechanism, other, x, n, law, early=True)
            require(told, f"the test cannot tell {name} at input {x}")
    for x in range(len(channel.inputs)):
        built = mechanism.build(mechanism.epsilon)
        require(_drawn(mechanism, built, x, 20_000, channel.rows[x]), f"input {x} has another law")


def _drawn(mechanism: Mechanism, built: Any, x: int, n: int, law: np.ndarray, early: bool = False) -> bool:
    bits = Simulation(1000 + x)
    drawn = (mechanism.many(built, np.full(size, x), bits) for size in (eighths(n) if early else [n]))
    return follows((tabulate(outcomes, law.size) for outcomes in drawn), law, early)


def check_sampler(sampler: Sampler) -> None:
    """2. The same for a law without end."""
    law = sampler.law(sampler.epsilon)
    wrong = [sampler.epsilon * factor for factor in LEVELS.values()]
    n = max(draws_needed(law, sampler.law(level)) for level in wrong)
    require(accepts(tabulate(sampler.draw(sampler.epsilon, n, Simulation(1)), law.size), law), "another law")
    for level in wrong:
        bits = Simulation(2)
        drawn = (tabulate(sampler.draw(level, size, bits), law.size) for size in eighths(n))
        require(not follows(drawn, law, early=True), f"the test cannot tell epsilon {float(level)}")


def check_enumeration(mechanism: Mechanism) -> None:
    """3. The law of the real code, enumerated along every branch, is the stored one, as fractions."""
    built = mechanism.build(mechanism.epsilon)
    channel = mechanism.channel(built)
    for x in range(len(channel.inputs)):
        found = exhaust(lambda bits, x=x: mechanism.one(built, x, bits))  # type: ignore[misc]
        stored = {y: Fraction(int(w), channel.denominator) for y, w in enumerate(channel.numerators[x]) if w}
        require(found.missing == 0, "the code may loop for ever")
        require(found.law == stored, f"input {x} is drawn from another law than the stored one")


def check_fresh(mechanism: Mechanism) -> None:
    """4. Secure draws differ from run to run."""
    built = mechanism.build(mechanism.epsilon)
    inputs = np.zeros(300, dtype=np.int64)
    runs = {mechanism.many(built, inputs, Secure()).tobytes() for _ in range(4)}
    require(len(runs) == 4, "two runs gave the same reports")


def check_refusals(mechanism: Mechanism) -> None:
    """5. What is not in the domain is refused, in words that do not repeat it."""
    built = mechanism.build(mechanism.epsilon)
    size = len(mechanism.channel(built).inputs)
    for bad in (np.array([size]), np.array([-1]), np.array([987654321])):
        refuses(mechanism.many, built, bad, Simulation(1))
    sample = getattr(built, "sample", None)
    if sample is not None:
        for secret in ("s3cret", float("nan"), 987654321, None, ["s3cret"], object()):
            refuses(sample, secret)


def check_order(mechanism: Mechanism) -> None:
    """6. A batch of one consumes the random bytes of a single draw."""
    built = mechanism.build(mechanism.epsilon)
    size = len(mechanism.channel(built).inputs)
    for seed in range(60):
        single, batch = Simulation(seed), Simulation(seed)
        x = seed % size
        require(
            mechanism.one(built, x, single) == int(mechanism.many(built, np.array([x]), batch)[0]),
            "a batch of one gives another output",
        )
        require(single.word() == batch.word(), "a batch of one leaves the stream elsewhere than a single draw")


def check_unbiased(mechanism: Mechanism, estimate: Callable[..., Any] = invert) -> None:
    """7. Averaged over every possible collection of three people, the estimate and its error are right."""
    channel = mechanism.channel(mechanism.build(mechanism.epsilon))
    if not invertible(channel):
        return
    people = [0, 0, len(channel.inputs) - 1]
    truth = np.bincount(people, minlength=len(channel.inputs)) / len(people)
    mean = np.zeros(len(channel.inputs))
    for seen in product(range(len(channel.outputs)), repeat=len(people)):
        weight = np.prod([channel.rows[x, y] for x, y in zip(people, seen, strict=True)])
        counts = np.bincount(seen, minlength=len(channel.outputs))
        mean += weight * estimate(channel, counts).frequencies
    require(np.abs(mean - truth).max() < 1e-9, "the estimate is biased")


def invertible(channel: Channel) -> bool:
    rows, columns = channel.shape
    return rows == columns <= 6 and np.linalg.matrix_rank(channel.rows) == rows


def check_identity(mechanism: Mechanism) -> None:
    """9. A spec gives the same channel again, with the same spec and fingerprint."""
    channel = mechanism.channel(mechanism.build(mechanism.epsilon))
    loaded = type(channel).load(channel.spec())
    require(loaded == channel, "the loaded channel is another one")
    require(loaded.spec() == channel.spec(), "the spec of what was loaded is another")
    require(loaded.fingerprint == channel.fingerprint, "what was loaded has another fingerprint")
    other = mechanism.channel(mechanism.build(mechanism.epsilon * 2))
    require(other.fingerprint != channel.fingerprint, "two levels share a fingerprint")


def check_value_object(mechanism: Mechanism) -> None:
    """10. Pickle, deepcopy, equality, hash, repr; no warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        built = mechanism.build(mechanism.epsilon)
        again = mechanism.build(mechanism.epsilon)
        for twin in (pickle.loads(pickle.dumps(built)), copy.deepcopy(built), again):
            require(twin == built, "a copy is not equal")
            require(hash(twin) == hash(built), "equal mechanisms have different hashes")
        require(repr(built), "there is no repr")
        require(
            not hasattr(built, "__dict__") or "numerators" not in vars(built) or _immutable(built), "it can be changed"
        )


def _immutable(channel: Channel) -> bool:
    try:
        channel.denominator = 1
    except AttributeError:
        return not channel.numerators.flags.writeable and not channel.rows.flags.writeable
    return False


CHECKS = [
    check_rows,
    check_level,
    check_law,
    check_enumeration,
    check_fresh,
    check_refusals,
    check_order,
    check_unbiased,
    check_identity,
    check_value_object,
]


def _coin(epsilon: Fraction) -> Channel:
    """The coin protocol with the bias that gives a level: truth = (e - 1) / (e + 1)."""
    return ch.coin_response(truth=Dyadic.floor_of(lambda e: (e - 1) / (e + 1), epsilon).value)


def _counting(epsilon: Fraction) -> Channel:
    """A counting query on databases of three bits, through the geometric mechanism."""
    return ch.Query.on_records(3, [0, 1], sum).oblivious(ch.truncated_geometric(3, epsilon))


MECHANISMS = [
    Mechanism("coin", _coin),
    Mechanism("warner", ch.warner),
    Mechanism("randomized response, 3 values", lambda e: ch.randomized_response(3, e)),
    Mechanism("randomized response, 16 values", lambda e: ch.randomized_response(16, e)),
    Mechanism(
        "randomized response, 16 values, without its matrix",
        lambda e: ch.RandomizedResponse.at(16, e),
        channel=lambda law: law.channel(),
        one=lambda law, x, bits: int(law.sample_indices(np.array([x], dtype=np.uint8), bits)[0]),
        many=lambda law, xs, bits: law.sample_indices(xs, bits).astype(np.int64),
    ),
    Mechanism("a record of two attributes, split", lambda e: ch.product_response([2, 3], e)),
    Mechanism("a record of two attributes, whole", lambda e: ch.product_response([2, 3], e, split=False)),
    Mechanism("binary", lambda e: ch.binary([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], e)),
    Mechanism("truncated geometric", lambda e: ch.truncated_geometric(6, e), adjacency="line"),
    Mechanism(
        "truncated geometric, sensitivity 2",
        lambda e: ch.truncated_geometric(6, e, sensitivity=2),
        adjacency=ch.line(2),
    ),
    Mechanism("clamped noise", lambda e: ch.two_sided_geometric(e).clamp(-2, 2), adjacency="line"),
    Mechanism("counting query", _counting, adjacency="hamming"),
    Mechanism("subset selection", lambda e: ch.subset_selection(5, e)),
    Mechanism(
        "exponential",
        lambda e: ch.exponential(lambda x, y: -abs(x - y), e, range(4), range(4), adjacency="line"),
        adjacency="line",
        tight=False,
    ),
    Mechanism("repaired", lambda e: Channel.from_floats(np.eye(3) + 1e-17, epsilon=e)),
]


def _laplace_cells(rate: float, reach: int) -> NDArray[np.float64]:
    a = math.exp(-rate)
    inner = (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1))
    tail = a ** (reach + 1) / (1 + a)
    return np.concatenate([[tail], inner, [tail]])


def _into_cells(values: Indices, reach: int) -> Indices:
    return np.clip(values, -reach - 1, reach + 1) + reach + 1


def _draw_grid(epsilon: Fraction, n: int, bits: Bits) -> Indices:
    noisy = ch.GridLaplace(epsilon, sensitivity="0.1", grid="0.05").sample(np.full(n, 50.02), bits)
    return _into_cells(np.rint((noisy - 50) / 0.05).astype(np.int64), 20)


def _lie(epsilon: Fraction) -> Dyadic:
    return Dyadic.ceil_of(lambda e: 1 / (e + 1), epsilon)


def _byte_law(bit: Dyadic) -> NDArray[np.float64]:
    ones = np.array([byte.bit_count() for byte in range(256)])
    return float(bit) ** ones * (1 - float(bit)) ** (8 - ones)


SAMPLERS = [
    Sampler(
        "discrete Laplace",
        lambda e: _laplace_cells(float(e), 8),
        lambda e, n, bits: _into_cells(ch.DiscreteLaplace(e).sample(np.zeros(n, dtype=np.int64), bits), 8),
    ),
    Sampler(
        "discrete Laplace, sensitivity 3",
        lambda e: _laplace_cells(float(e) / 3, 20),
        lambda e, n, bits: _into_cells(ch.DiscreteLaplace(e, 3).sample(np.zeros(n, dtype=np.int64), bits), 20),
    ),
    Sampler("packed bits", lambda e: _byte_law(_lie(e)), lambda e, n, bits: bits.packed(_lie(e), 8, n)[:, 0]),
    Sampler(
        "Bernoulli",
        lambda e: np.array([1 - float(_lie(e)), float(_lie(e))]),
        lambda e, n, bits: bits.bernoulli(_lie(e), n).astype(np.int64),
    ),
    Sampler(
        "Bernoulli(exp)",
        lambda e: np.array([1 - math.exp(-e), math.exp(-e)]),
        lambda e, n, bits: bits.bernoulli_exp(e, n).astype(np.int64),
    ),
    Sampler(
        "report noisy max",
        lambda e: ch.noisy_max_law([5, 0, 2], e),
        lambda e, n, bits: ch.report_noisy_max([5, 0, 2], e, bits=bits, size=n),
    ),
    Sampler("Laplace on a grid", lambda e: _laplace_cells(float(e) / 2, 20), _draw_grid),
]


def channel_duties() -> Iterator[Duty]:
    """Every check of every closed form."""
    yield from listed(((str(mechanism), mechanism) for mechanism in MECHANISMS), CHECKS, lambda _: {})
    yield from listed(((str(sampler), sampler) for sampler in SAMPLERS), [check_sampler], lambda _: {})

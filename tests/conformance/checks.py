"""The checks that every mechanism passes. Each raises AssertionError with the reason.

They take the mechanism as registered and look only at what the real code does; `test_checks_catch.py` shows
for each of them a broken mechanism that it catches.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from deniable.channels import Channel
from deniable.channels.inference import invert
from deniable.errors import DeniableError
from deniable.randomness import Secure, Simulation, exhaust
from tests.conformance.registry import Mechanism, Sampler
from tests.statistics import accepts, draws_needed, tabulate

LEVELS = {"two percent less": Fraction(98, 100), "two percent more": Fraction(102, 100)}
TIGHT = 1e-9


def check_rows(mechanism: Mechanism) -> None:
    """1. Rows are non-negative integers that sum to the denominator."""
    channel = mechanism.channel(mechanism.build(mechanism.epsilon))
    for row in channel.numerators:
        assert all(isinstance(entry, int) and entry >= 0 for entry in row), "an entry is not a natural number"
        assert sum(row) == channel.denominator, "a row does not sum to one"


def check_level(mechanism: Mechanism) -> None:
    """1. The exact level is at most the one asked for, and close to it where that is claimed."""
    channel = mechanism.channel(mechanism.build(mechanism.epsilon))
    assert channel.satisfies(mechanism.epsilon, mechanism.adjacency), "the level is exceeded"
    if mechanism.tight:
        short = float(mechanism.epsilon) - channel.epsilon_under(mechanism.adjacency)
        assert short <= TIGHT, f"the level falls short by {short:.3g}"


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
    assert needed, "no input's law depends on epsilon"
    # The input that shows a wrong level soonest, and the last one (where loops end too early).
    for x in {min(needed, key=lambda i: needed[i]), max(needed)}:
        n, law = needed[x], channel.rows[x]
        assert _drawn(mechanism, mechanism.build(mechanism.epsilon), x, n, law), f"input {x} has another law"
        for name, other in others.items():
            assert not _drawn(mechanism, other, x, n, law), f"the test cannot tell {name} at input {x}"
    for x in range(len(channel.inputs)):
        built = mechanism.build(mechanism.epsilon)
        assert _drawn(mechanism, built, x, 20_000, channel.rows[x]), f"input {x} has another law"


def _drawn(mechanism: Mechanism, built: Any, x: int, n: int, law: np.ndarray) -> bool:
    outcomes = mechanism.many(built, np.full(n, x), Simulation(1000 + x))
    return accepts(tabulate(outcomes, law.size), law)


def check_sampler(sampler: Sampler) -> None:
    """2. The same for a law without end."""
    law = sampler.law(sampler.epsilon)
    wrong = [sampler.epsilon * factor for factor in LEVELS.values()]
    n = max(draws_needed(law, sampler.law(level)) for level in wrong)
    assert accepts(tabulate(sampler.draw(sampler.epsilon, n, Simulation(1)), law.size), law), "another law"
    for level in wrong:
        counts = tabulate(sampler.draw(level, n, Simulation(2)), law.size)
        assert not accepts(counts, law), f"the test cannot tell epsilon {float(level)}"


def check_enumeration(mechanism: Mechanism) -> None:
    """3. The law of the real code, enumerated along every branch, is the stored one, as fractions."""
    built = mechanism.build(mechanism.epsilon)
    channel = mechanism.channel(built)
    for x in range(len(channel.inputs)):
        found = exhaust(lambda bits, x=x: mechanism.one(built, x, bits))  # type: ignore[misc]
        stored = {y: Fraction(int(w), channel.denominator) for y, w in enumerate(channel.numerators[x]) if w}
        assert found.missing == 0, "the code may loop for ever"
        assert found.law == stored, f"input {x} is drawn from another law than the stored one"


def check_fresh(mechanism: Mechanism) -> None:
    """4. Secure draws differ from run to run."""
    built = mechanism.build(mechanism.epsilon)
    inputs = np.zeros(300, dtype=np.int64)
    runs = {mechanism.many(built, inputs, Secure()).tobytes() for _ in range(4)}
    assert len(runs) == 4, "two runs gave the same reports"


def check_refusals(mechanism: Mechanism) -> None:
    """5. What is not in the domain is refused, in words that do not repeat it."""
    built = mechanism.build(mechanism.epsilon)
    size = len(mechanism.channel(built).inputs)
    for bad in (np.array([size]), np.array([-1]), np.array([987654321])):
        _refused(lambda bad=bad: mechanism.many(built, bad, Simulation(1)), "987654321")
    sample = getattr(built, "sample", None)
    if sample is not None:
        for secret in ("s3cret", float("nan"), 987654321, None, ["s3cret"], object()):
            _refused(lambda secret=secret: sample(secret), "s3cret", "987654321")


def _refused(call: Callable[[], Any], *secrets: str) -> None:
    message = None
    try:
        call()
    except DeniableError as refusal:
        message = str(refusal)
    assert message is not None, "an answer outside the domain was accepted"
    assert not any(secret in message for secret in secrets), "the message repeats the answer"


def check_order(mechanism: Mechanism) -> None:
    """6. A batch of one consumes the random bytes of a single draw."""
    built = mechanism.build(mechanism.epsilon)
    size = len(mechanism.channel(built).inputs)
    for seed in range(60):
        single, batch = Simulation(seed), Simulation(seed)
        x = seed % size
        assert mechanism.one(built, x, single) == int(mechanism.many(built, np.array([x]), batch)[0])
        assert single.word() == batch.word(), "a batch of one leaves the stream elsewhere than a single draw"


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
    assert np.abs(mean - truth).max() < 1e-9, "the estimate is biased"


def invertible(channel: Channel) -> bool:
    rows, columns = channel.shape
    return rows == columns <= 6 and np.linalg.matrix_rank(channel.rows) == rows


def check_identity(mechanism: Mechanism) -> None:
    """9. A spec gives the same channel again, with the same spec and fingerprint."""
    channel = mechanism.channel(mechanism.build(mechanism.epsilon))
    loaded = type(channel).load(channel.spec())
    assert loaded == channel, "the loaded channel is another one"
    assert loaded.spec() == channel.spec()
    assert loaded.fingerprint == channel.fingerprint
    other = mechanism.channel(mechanism.build(mechanism.epsilon * 2))
    assert other.fingerprint != channel.fingerprint, "two levels share a fingerprint"


def check_value_object(mechanism: Mechanism) -> None:
    """10. Pickle, deepcopy, equality, hash, repr; no warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        built = mechanism.build(mechanism.epsilon)
        again = mechanism.build(mechanism.epsilon)
        for twin in (pickle.loads(pickle.dumps(built)), copy.deepcopy(built), again):
            assert twin == built, "a copy is not equal"
            assert hash(twin) == hash(built)
        assert repr(built)
        assert not hasattr(built, "__dict__") or "numerators" not in vars(built) or _immutable(built)


def _immutable(channel: Channel) -> bool:
    try:
        channel.denominator = 1  # type: ignore[misc]
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

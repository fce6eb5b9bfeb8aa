"""Benchmarks of the foundation: random bits, exact samplers, channels, inference, the import and the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.registry import Case, Size, Task, at_least, at_most, benchmark, cost, faster, seconds, work
from deniable.channels import RandomizedResponse, randomized_response, truncated_geometric
from deniable.exact import Dyadic
from deniable.randomness import Secure
from deniable.randomness.secure import CHUNK, Keystream

if TYPE_CHECKING:
    from deniable.channels.inference import Inference

ANSWERS = 1024
EPSILON = 1


class Counting(Secure):
    """A secure source that counts the bytes that were drawn from it."""

    __slots__ = ("drawn",)

    def __init__(self) -> None:
        super().__init__()
        self.drawn = 0

    def fill(self, out: NDArray[np.uint8]) -> None:
        self.drawn += out.size
        super().fill(out)

    def take(self, count: int) -> bytes:
        self.drawn += count
        return super().take(count)


def answers(n: int, k: int = ANSWERS, dtype: Any = np.uint16) -> NDArray[Any]:
    return np.random.default_rng(1).integers(0, k, n).astype(dtype)


def raw_keystream(count: int) -> None:
    """ChaCha20 of `count` bytes into one small buffer: nothing secure can be faster than its own bytes."""
    stream, block = Keystream(os.urandom(32)), memoryview(bytearray(CHUNK))
    for start in range(0, count, CHUNK):
        stream.into(block[: min(CHUNK, count - start)])


@benchmark("response", "secure k-ary response, k = 1024, epsilon = 1")
def response(size: Size) -> Case:
    n = size(10**7, 10**6)
    law, values, bits = RandomizedResponse.at(ANSWERS, EPSILON), answers(n), Secure()
    counting = Counting()
    law.sample_indices(values, counting)
    reports = np.empty(n, dtype=np.uint16)
    return Case(
        tasks={
            "response": work(lambda: law.sample_indices(values, bits), n, "report"),
            "raw keystream": work(lambda: raw_keystream(counting.drawn), n, "report"),
            "copy": work(lambda: np.copyto(reports, values), n, "report"),
        },
        ratios=[cost("response", of="raw keystream", goal=at_most(6)), cost("response", of="copy")],
        facts={"random bytes a report": round(counting.drawn / n, 4)},
    )


@benchmark("packed", "1024 exact packed bits, each set with probability 1 / (e + 1)")
def packed(size: Size) -> Case:
    n = size(20_000, 4_000)
    few = 128  # reports whose floats stay in the cache: numpy's best case
    bits, rng = Secure(), np.random.default_rng(1)
    probability = Dyadic.ceil_of(lambda e: 1 / (e + 1), Fraction(EPSILON))
    q = float(probability)

    def in_blocks() -> None:
        for _ in range(n // few):
            _ = rng.random((few, ANSWERS)) < q

    return Case(
        tasks={
            "packed": work(lambda: bits.packed(probability, ANSWERS, n), n, "report"),
            "numpy floats": work(lambda: rng.random((n, ANSWERS)) < q, n, "report"),
            "numpy floats in small blocks": work(in_blocks, n // few * few, "report"),
        },
        ratios=[
            faster("packed", than="numpy floats", goal=at_least(8)),
            faster("packed", than="numpy floats in small blocks"),
        ],
    )


@benchmark("keystream", "secure bytes, 64 KB at a time")
def keystream(size: Size) -> Case:
    calls, block = size(256, 64), 1 << 16  # small enough that nobody's time goes to fetching fresh memory
    bits, rng = Secure(), np.random.default_rng(1)

    def repeat(draw: Callable[[int], object]) -> Task:
        def run() -> None:
            for _ in range(calls):
                draw(block)

        return work(run, calls * block, "byte")

    return Case(
        tasks={
            "Secure": repeat(bits.take),
            "os.urandom": repeat(os.urandom),
            "numpy PCG64": repeat(rng.bytes),
        },
        ratios=[faster("Secure", than="os.urandom"), faster("Secure", than="numpy PCG64")],
    )


@benchmark("laplace", "discrete Laplace noise, scale 10")
def laplace(size: Size) -> Case:
    n = size(10**6, 10**5)
    bits, rng = Secure(), np.random.default_rng(1)
    scale, decay = Fraction(10), 1 - np.exp(-0.1)
    return Case(
        tasks={
            "discrete Laplace": work(lambda: bits.discrete_laplace(scale, n), n, "draw"),
            "numpy floats": work(lambda: rng.geometric(decay, n) - rng.geometric(decay, n), n, "draw"),
        },
        ratios=[cost("discrete Laplace", of="numpy floats")],
    )


@benchmark("channel", "sampling from an exact matrix, 64 x 64")
def channel(size: Size) -> Case:
    n, k = size(10**6, 10**5), 64
    bits, rng = Secure(), np.random.default_rng(1)
    matrix, values = randomized_response(k, EPSILON), answers(n, k, np.int64)
    matrix.sample_indices(values[:1], bits)  # builds the laws, once in the life of a channel

    def choice() -> None:
        out = np.empty_like(values)
        for x in range(k):
            places = np.flatnonzero(values == x)
            out[places] = rng.choice(k, places.size, p=matrix.rows[x])

    return Case(
        tasks={
            "Channel": work(lambda: matrix.sample_indices(values, bits), n, "report"),
            "numpy choice, input by input": work(choice, n, "report"),
        },
        ratios=[faster("Channel", than="numpy choice, input by input")],
    )


@benchmark("geometric", "building the exact truncated geometric mechanism on {0, ..., 100}")
def geometric(size: Size) -> Case:
    n = 100
    at = np.arange(n + 1)

    def floats() -> NDArray[np.float64]:
        a = np.exp(-EPSILON)
        rows: NDArray[np.float64] = a ** np.abs(at[:, None] - at) / (1 + a)
        rows[:, 1:-1] *= 1 - a
        return rows

    return Case(
        tasks={
            "exact": work(lambda: truncated_geometric(n, EPSILON)),
            "exact, and its epsilon": work(lambda: truncated_geometric(n, EPSILON).epsilon_under("line")),
            "the same matrix in floats": work(floats),
        },
        ratios=[cost("exact", of="the same matrix in floats")],
    )


@benchmark("ibu", "maximum likelihood from 200,000 reports on 64 values, epsilon = 0.7")
def ibu(size: Size) -> Case:
    from deniable.channels.inference import ibu as update

    k, n = 64, 200_000
    matrix, rng = randomized_response(k, "0.7"), np.random.default_rng(1)
    shares = 1 / np.arange(1, k + 1)
    counts = rng.multinomial(n, matrix.push(shares / shares.sum()))
    # The default tolerance, 1e-10, would take Bayes' rule as it stands more than a million maps.
    gap = 10.0 ** -size(7, 5)
    ways: dict[str, Any] = {"IBU": True, "IBU by extrapolation only": "squarem", "plain IBU": False}

    def run(way: str) -> Inference:
        return update(matrix, counts, accelerate=ways[way], tolerance=gap, max_iterations=10**7)

    return Case(
        tasks={way: work(partial(run, way)) for way in ways},
        ratios=[cost("IBU by extrapolation only", of="IBU"), cost("plain IBU", of="IBU")],
        facts={f"{way}: maps": int(run(way).iterations or 0) for way in ways},
    )


def fresh_import(statement: str) -> Task:
    """The seconds that a statement takes in a new interpreter, not counting the interpreter's own start."""
    code = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"

    def once() -> float:
        done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
        return float(done.stdout)

    return Task(once, 1, "import")


@benchmark("import", "import deniable, in a fresh interpreter")
def import_(size: Size) -> Case:
    # Names are loaded when first used, so the import alone says little.
    every_name = "import deniable as dn; [getattr(dn, name) for name in dn.__all__]"
    return Case(
        tasks={
            "import deniable": fresh_import("import deniable"),
            "import deniable, and every public name": fresh_import(every_name),
            "import numpy": fresh_import("import numpy"),
        },
        ratios=[
            seconds("import deniable", goal=at_most(0.25)),
            seconds("import deniable, and every public name", goal=at_most(0.25)),
            cost("import deniable, and every public name", of="import numpy"),
        ],
    )


def started(*arguments: str) -> Task:
    """The command as a process of its own, from its start to its end."""

    def run() -> None:
        subprocess.run([sys.executable, "-I", "-m", "deniable", *arguments], stdout=subprocess.DEVNULL, check=True)

    return work(run, 1, "command")


@benchmark("command", "the command line, from start to end")
def command(size: Size) -> Case:
    return Case(
        tasks={
            "deniable --help": started("--help"),
            "deniable plan": started("plan", "--categories", "9", "--epsilon", "1", "--people", "5000"),
        },
        ratios=[
            seconds("deniable --help", goal=at_most(0.15)),
            seconds("deniable plan", goal=at_most(0.3)),
        ],
    )

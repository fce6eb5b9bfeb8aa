"""What of opendp is timed; see the package's docstring."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import opendp.prelude as dp

dp.enable_features("contrib")

PACKAGE = "opendp"
ANSWERS = 1024


def response(count: int) -> Callable[[], object]:
    """k-ary randomized response at epsilon = 1, one call a value: there is no call for many."""
    truth = math.e / (math.e + ANSWERS - 1)
    randomize = checked(dp.m.make_randomized_response(list(range(ANSWERS)), prob=truth))
    values = [i % ANSWERS for i in range(count)]
    return lambda: [randomize(value) for value in values]


def laplace(count: int) -> Callable[[], object]:
    """Discrete Laplace noise of scale 10 on a vector: its fastest way."""
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    add_noise = dp.m.make_laplace(*space, scale=10.0)
    zeros = [0] * count
    return lambda: add_noise(zeros)


def sue() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Randomized response on a bit vector with one bit set, which is symmetric unary encoding."""
    f = 2 / (1 + math.exp(0.5))
    one_bit = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
    randomize = checked(dp.m.make_randomized_response_bitvec(*one_bit, f=f))
    encoded = [(1 << value).to_bytes(ANSWERS // 8, "little") for value in range(ANSWERS)]

    def client(values: list[int]) -> list[bytes]:
        return [randomize(encoded[value]) for value in values]

    def server() -> tuple[Callable[..., None], Callable[[], list[float]]]:
        kept: list[list[bytes]] = []

        def frequencies() -> list[float]:
            (reports,) = kept
            return [count / len(reports) for count in dp.m.debias_randomized_response_bitvec(reports, f)]

        return kept.append, frequencies

    return client, server


def checked(measurement: Any) -> Any:
    if not math.isclose(measurement.map(1), 1.0, rel_tol=1e-6):
        raise SystemExit(f"the measurement has epsilon {measurement.map(1)}, not 1")
    return measurement


TASKS = {"response": response, "laplace": laplace}
ORACLES = {"SUE": sue}

"""What of pure-ldp is timed; see the package's docstring. It randomizes one value a call: there is no call for many."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from pure_ldp.frequency_oracles.apple_cms import CMSClient, CMSServer
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

PACKAGE = "pure-ldp"
ANSWERS = 1024
COHORTS = 128
EPSILON = 1.0

Made = tuple[Callable[..., Any], Callable[..., Any]]


def response(count: int) -> Callable[[], object]:
    """Direct encoding (k-ary randomized response)."""
    client = DEClient(EPSILON, ANSWERS)
    values = [1 + i % ANSWERS for i in range(count)]  # its values start at one
    return lambda: [client.privatise(value) for value in values]


def oracle(client: Any, make_server: Callable[[], Any]) -> Made:
    def privatise(values: list[int]) -> list[Any]:
        return [client.privatise(value + 1) for value in values]

    def server() -> tuple[Callable[..., None], Callable[[], Any]]:
        made = make_server()

        def frequencies() -> Any:
            # The first call computes all estimates; the others look them up.
            made.estimate(1, suppress_warnings=True)
            return np.asarray(made.estimated_data) / made.n

        return made.aggregate_all, frequencies

    return privatise, server


def unary(optimized: bool) -> Made:
    client = UEClient(EPSILON, ANSWERS, use_oue=optimized)
    return oracle(client, lambda: UEServer(EPSILON, ANSWERS, use_oue=optimized))


def local_hashing() -> Made:
    client = LHClient(EPSILON, ANSWERS, use_olh=True)
    return oracle(client, lambda: LHServer(EPSILON, ANSWERS, use_olh=True))


def hadamard() -> Made:
    client = HadamardResponseClient(EPSILON, ANSWERS, HadamardResponseServer(EPSILON, ANSWERS).get_hash_funcs())
    return oracle(client, lambda: HadamardResponseServer(EPSILON, ANSWERS))


def sketch(is_hadamard: bool) -> Made:
    """As many cells as answers, in 128 cohorts."""

    def make() -> Any:
        return CMSServer(EPSILON, COHORTS, ANSWERS, is_hadamard=is_hadamard)

    client = CMSClient(EPSILON, make().get_hash_funcs(), ANSWERS, is_hadamard=is_hadamard)
    privatise, _ = oracle(client, make)

    def server() -> tuple[Callable[..., None], Callable[[], Any]]:
        made = make()

        def frequencies() -> list[float]:
            return [made.estimate(value, suppress_warnings=True) / made.n for value in range(1, ANSWERS + 1)]

        return made.aggregate_all, frequencies

    return privatise, server


TASKS = {"response": response}
ORACLES = {
    "GRR": lambda: oracle(DEClient(EPSILON, ANSWERS), lambda: DEServer(EPSILON, ANSWERS)),
    "SUE": partial(unary, False),
    "OUE": partial(unary, True),
    "OLH": local_hashing,
    "HadamardResponse": hadamard,
    "CMS": partial(sketch, False),
    "HCMS": partial(sketch, True),
}

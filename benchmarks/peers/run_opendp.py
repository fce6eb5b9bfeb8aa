"""Times opendp, in its own environment. Usage: run_opendp.py WHAT COUNT, see the package's docstring."""

from __future__ import annotations

import gc
import json
import math
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

ANSWERS = 1024


def response(dp: Any, count: int) -> Callable[[], object]:
    """k-ary randomized response at epsilon = 1, one call a value: there is no call for many."""
    truth = math.e / (math.e + ANSWERS - 1)
    randomize = dp.m.make_randomized_response(list(range(ANSWERS)), prob=truth)
    if not math.isclose(randomize.map(1), 1.0, rel_tol=1e-6):
        raise SystemExit(f"the measurement has epsilon {randomize.map(1)}, not 1")
    values = [i % ANSWERS for i in range(count)]
    return lambda: [randomize(value) for value in values]


def laplace(dp: Any, count: int) -> Callable[[], object]:
    """Discrete Laplace noise of scale 10 on a vector: its fastest way."""
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    add_noise = dp.m.make_laplace(*space, scale=10.0)
    zeros = [0] * count
    return lambda: add_noise(zeros)


def main(what: str, count: int) -> None:
    answer: dict[str, Any] = {"version": version("opendp")}
    if what != "version":
        import opendp.prelude as dp

        dp.enable_features("contrib")
        prepare = {"response": response, "laplace": laplace}[what]
        prepare(dp, 10)()
        run = prepare(dp, count)
        gc.disable()
        start = time.perf_counter()
        run()
        answer["seconds"] = time.perf_counter() - start
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

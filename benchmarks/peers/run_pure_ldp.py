"""Times pure-ldp, in its own environment. Usage: run_pure_ldp.py WHAT COUNT, see the package's docstring."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

ANSWERS = 1024


def response(count: int) -> Callable[[], object]:
    """Direct encoding (k-ary randomized response) at epsilon = 1, one call a value: there is no call for many."""
    from pure_ldp.frequency_oracles.direct_encoding import DEClient

    client = DEClient(1.0, ANSWERS)
    values = [1 + i % ANSWERS for i in range(count)]  # its values start at one
    return lambda: [client.privatise(value) for value in values]


def main(what: str, count: int) -> None:
    answer: dict[str, Any] = {"version": version("pure-ldp")}
    if what != "version":
        prepare = {"response": response}[what]
        prepare(10)()
        run = prepare(count)
        gc.disable()
        start = time.perf_counter()
        run()
        answer["seconds"] = time.perf_counter() - start
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

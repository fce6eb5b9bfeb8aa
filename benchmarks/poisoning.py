"""What forged reports do and what finds them: five attacks, two of them by somebody who knows the defences; every kind.

Defences   unary encoding of 64 answers at epsilon 1, 20,000 honest people and 200 fake devices that favour five rare
           answers: how often each test raises an alarm, what is left of the gain, how often intervals hold, and what
           the defences cost without an attack. "selected" and "single" know the tests of single reports and of groups
Gains      of each kind, the first example: by how much random, targeted and maximal forged reports, one in eleven, move
           the figure that they move most; by theory, in eight collections, and in the figures as they are shown
"""

from __future__ import annotations

import math
import re

import numpy as np

from benchmarks.registry import Case, Size, benchmark, work
from deniable.conformance.protocols import registered_examples
from deniable.privacy import defences, forge, gains
from deniable.protocols import OUE

GROUP = "poisoning"
ANSWERS, FAVOURED, PEOPLE, FAKES = 64, (40, 41, 42, 43, 44), 20_000, 200


@benchmark("defences", "five attacks and what finds them: 200 of 20,200 reports, epsilon 1", group=GROUP, rounds=1)
def against(size: Size) -> Case:
    protocol = OUE(ANSWERS, epsilon=1)
    answers = [min(ANSWERS - 1, int(-10 * math.log1p(-(one + 0.5) / PEOPLE))) for one in range(PEOPLE)]
    runs = size(100, 4)
    facts: dict[str, str | int | float] = {"runs": runs}
    for row in defences(protocol, answers, list(FAVOURED), FAKES, runs=runs):
        told = row._asdict().items()
        facts |= {f"{row.attack}: {name}": value for name, value in told if name != "attack" and value == value}
    return Case({"forge": work(lambda: forge(protocol, list(FAVOURED), FAKES), FAKES, "report")}, (), facts)


@benchmark("gains", "gains of forged reports against theory, every kind", group=GROUP, rounds=1)
def by_kind(size: Size) -> Case:
    people = size(4000, 1000)
    facts: dict[str, str | int | float] = {"people": people}
    for name, protocol in registered_examples():
        kind, number = name.split(" ")
        if number != "1":
            continue
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind)
        inputs = protocol.law().input_count
        held = [1 + people * 2 * (place + 1) // (inputs * (inputs + 1)) for place in range(inputs)]
        for how, moved in gains(protocol, held, inputs - 1, people // 10).items():
            most = int(np.nanargmax(np.abs(moved.expected)))
            facts |= {
                f"{kind}, {how}: expected": float(moved.expected[most]),
                f"{kind}, {how}: measured": float(moved.measured[most]),
                f"{kind}, {how}: stderr": float(moved.stderr[most]),
                f"{kind}, {how}: apart": moved.deviation,
                f"{kind}, {how}: shown": float(np.nanmax(np.abs(moved.shown))),
                f"{kind}, {how}: linear": int(moved.linear),
            }
    return Case({"kinds": work(lambda: None, 1, "run")}, (), facts)

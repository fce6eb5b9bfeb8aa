"""Tests on private data: how often each rejects what is true, in 10,000 simulated surveys, and how often it finds more.

Surveys    people are drawn anew each time, then their tally from its joint law
Size       of tests at 5 %; a figure has a standard error of 0.22 points
Power      of the test of fit, computed and simulated
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from benchmarks.registry import Case, Size, benchmark, work
from deniable.protocols import ShareProtocol

GROUP = "tests"
SHARES = np.array([0.5, 0.25, 0.15, 0.1, 0.0])
OTHER = np.array([0.47, 0.26, 0.16, 0.11, 0.0])
EVEN = np.outer([0.6, 0.4], [0.5, 0.3, 0.2]).ravel()


@benchmark("tests", "size of significance tests at 5 % in 10,000 surveys, and power", group=GROUP, rounds=5)
def tests(size: Size) -> Case:
    runs = size(10_000, 100)
    found: dict[str, list[bool]] = {}
    for name, one, other in (
        ("GRR at 1 and OUE at 2", dn.GRR(5, 1), dn.OUE(5, 2)),
        ("SUE at 1/2 and GRR at 4", dn.SUE(5, "1/2"), dn.GRR(5, 4)),
        ("Hadamard response at 2 and 1", dn.HadamardResponse(5, 2), dn.HadamardResponse(5, 1)),
    ):
        groups = zip(_surveys(one, SHARES, 3000, runs), _surveys(other, SHARES, 2000, runs), strict=True)
        kept = list(groups)
        found[f"fit of 5 shares, {one.name}"] = [a.test(SHARES).rejected() for a, _ in kept]
        found[f"two groups, {name}"] = [dn.compare(a, b).rejected() for a, b in kept]
    thrice = zip(*(_surveys(dn.GRR(5, 1), SHARES, n, runs) for n in (3000, 2000, 1500)), strict=True)
    found["three groups, GRR"] = [dn.compare(*each).rejected() for each in thrice]
    for protocol in (dn.GRR(6, 2), dn.OUE(6, 1)):
        each = _surveys(protocol, EVEN, 5000, runs)
        found[f"independence of 2 x 3 answers, {protocol.name}"] = [
            dn.independence(one, (2, 3)).rejected() for one in each
        ]
    found["two means, Window at 1"] = _means(runs)
    found["two distributions (500 surveys), Window at 2"] = _distributions(size(500, 10))
    facts = {f"size, {name}": f"{100 * float(np.mean(one)):.2f} %" for name, one in found.items()}
    for protocol in (dn.GRR(5, 1), dn.OUE(5, 1)):
        seen = np.mean([one.test(SHARES).rejected() for one in _surveys(protocol, OTHER, 20_000, runs)])
        promised = protocol.power(SHARES, OTHER, 20_000)
        facts[f"power, {protocol.name}"] = f"{100 * seen:.1f} %, computed {100 * promised:.1f} %"
    (one,) = _surveys(dn.GRR(5, 1), SHARES, 3000, 1)
    return Case({"test of fit": work(lambda: one.test(SHARES), 1, "test")}, (), facts)


def _surveys(protocol: ShareProtocol, shares: NDArray[np.float64], n: int, runs: int) -> Iterator[dn.Estimate]:
    random = np.random.default_rng([n, runs, *protocol.name.encode()])
    for people in random.multinomial(n, shares, runs):
        tallies = protocol.kernel().simulate(people, 1, random)
        assert tallies is not None
        yield protocol.estimate(dn.Tally(protocol.fingerprint, n, tallies[0]))


def _means(runs: int) -> list[bool]:
    window, bits, random = dn.Window(dn.Interval(0, 10), 1), dn.Simulation(5), np.random.default_rng(5)
    found = []
    for _ in range(runs):
        sides = [window.tally(window.privatize(random.gamma(2, 1.5, 1000).clip(0, 10), bits)) for _ in range(2)]
        found.append(dn.compare(*map(window.estimate, sides)).rejected())
    return found


def _distributions(runs: int) -> list[bool]:
    window = dn.Window(dn.Integers(0, 31), 2, read="distribution")
    bits, random = dn.Simulation(6), np.random.default_rng(6)
    found = []
    for _ in range(runs):
        sides = [window.tally(window.privatize(random.binomial(31, 0.3, 4000), bits)) for _ in range(2)]
        found.append(dn.compare(*map(window.estimate, sides)).rejected())
    return found

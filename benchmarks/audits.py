"""What an audit says: of other packages' clients as black boxes, and of our own kinds at usual sizes.

Rivals     each client as a program (`peers/audited.py`), which says epsilon 1 and has eight answers; the event is
           chosen on one half of the samples and bounded on the other. All bounds hold together with 95 % confidence:
           each has a part of the 5 %, or else one of so many honest clients would be called a liar now and then
           L-GRR   promises epsilon 1 for all reports of an answer that never changes: 20 epochs, two answers
           RS+FD   promises epsilon 1 for a record of three columns: records of one value in all columns
Kinds      which way is taken, and how long it takes
Power      clients that keep epsilon 1 exactly, as black boxes and with their spec: the lower bound, best near 1;
           clients a little above their claim with a million samples per input; and how often the bound is wrong
"""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np

import deniable as dn
from benchmarks.peers.audited import ANSWERS, EPSILON
from benchmarks.peers.environments import HERE, interpreter, version
from benchmarks.registry import Case, Size, UnavailableError, benchmark, work
from deniable.audit.samples import Batches, Found, search
from deniable.audit.verdict import _judged

GROUP, KINDS = "audits", "audit-kinds"
EPOCHS = 20
LONG = f"L-GRR, {EPOCHS} epochs"
CLIENTS = {
    "pure-ldp": ("GRR", "OUE", "OLH", "RAPPOR, 1 hash", "RAPPOR, 2 hashes"),
    "multi-freq-ldpy": ("GRR", "OUE", "subset selection", LONG, "RS+FD, 3 columns"),
    "ldp-toolbox": ("GRR", "OUE", "subset selection"),
    "opendp": ("GRR", "SUE"),
}


@benchmark("audit-rivals", "audits of other packages' clients as black boxes, epsilon 1", group=GROUP, rounds=1)
def rivals(size: Size) -> Case:
    samples = size(20_000, 2_000)
    level = round(1 - 0.05 / sum(map(len, CLIENTS.values())), 4)
    facts: dict[str, str | int | float] = {"confidence of each bound": level}
    for package, kinds in CLIENTS.items():
        try:
            python = interpreter(package)
        except UnavailableError as why:
            facts[package] = str(why)
            continue
        for kind in kinds:
            command = [str(python), "-I", str(HERE / "audited.py"), package, kind]
            stream = kind == LONG
            values = [["0"] * EPOCHS, ["1"] * EPOCHS] if stream else [str(value) for value in range(ANSWERS)]
            number = samples // 10 if stream else samples
            found = dn.privacy.audit(command, EPSILON, number, inputs=values, stream=stream, level=level)
            facts[f"{package}: {kind}"] = found.words + (f" [{found.event}]" if found.event else "")
            facts[f"{package}: version"] = version(package)
    quick = dn.GRR(ANSWERS, EPSILON)
    return Case({"ours, exactly": work(lambda: dn.privacy.audit(quick), 1, "audit")}, (), facts)


def usual() -> dict[str, dn.Protocol]:
    longitudinal = {"first": "1/2", "forever": 1}
    record = dn.Records({"smoke": ["yes", "no"], "age": dn.Integers(0, 99), "hours": dn.Interval(0, 24)})
    plane = dn.Records({"x": dn.Integers(0, 63), "y": dn.Integers(0, 63)})
    return {
        "GRR, 50 answers": dn.GRR(50, 1),
        "SUE, 50 answers": dn.SUE(50, 1),
        "OUE, 50 answers": dn.OUE(50, 1),
        "OUE, 500 answers": dn.OUE(500, 1),
        "BLH, 50 answers": dn.BLH(50, 1),
        "OLH, 50 answers": dn.OLH(50, 1),
        "OLH, 1,000 answers": dn.OLH(1000, 1),
        "Hadamard response, 1,000 answers": dn.HadamardResponse(1000, 1),
        "subset selection, 50 answers": dn.SubsetSelection(50, 1),
        "subset selection, 200 answers": dn.SubsetSelection(200, 1),
        "RAPPOR, 50 answers": dn.RAPPOR(50, 1),
        "window, 0 to 100": dn.Window(dn.Integers(0, 100), 1, read="distribution"),
        "one-bit mean": dn.OneBitMean(dn.Interval(0, 24), 1),
        "moments": dn.Moments(dn.Interval(0, 24), 1),
        "ranges, 0 to 99": dn.Ranges(dn.Integers(0, 99), 1),
        "ranges, 0 to 1,023": dn.Ranges(dn.Integers(0, 1023), 1),
        "rectangles, 64 x 64": dn.Rectangles(plane, 1),
        "records of three columns": dn.plan(record, epsilon=1, n=10**4).best,
        "strata, OUE of 50": dn.Stratified({"country": ["A", "B", "C"]}, dn.OUE(50, 1), "answer"),
        "private strata, 50 answers": dn.PrivateStrata(
            dn.Records({"sex": ["f", "m"], "answer": dn.Integers(0, 49)}), 1
        ),
        "places, 16 x 12": dn.PlanarLaplace(dn.Grid(16, 12), 1),
        "sets of 5 among 100": dn.ItemSets(dn.Sets(100, at_most=5), 1),
        "sets of 8 among 1,000": dn.ItemSets(dn.Sets(1000, at_most=8), 1),
        "keys and values, 3 of 20": dn.KeyValue(20, dn.Interval(1, 5), 1, at_most=3),
        "keys and values, 8 of 1,000": dn.KeyValue(1000, dn.Interval(1, 5), 1, at_most=8),
        "discovery, 128 bits": dn.HeavyHitters(dn.BitStrings(128), 1),
        "open text, OLH sketch": dn.OLHSketch(dn.Strings(), 1),
        "open text, HCMS": dn.HCMS(dn.Strings(), 1),
        "open text, CMS of 1,024 cells": dn.CMS(dn.Strings(cells=1024), 1),
        "open text, RAPPOR": dn.RAPPOR(dn.Strings(), 1),
        "LGRR, 50 answers": dn.LGRR(50, **longitudinal),
        "LOSUE, 50 answers": dn.LOSUE(50, **longitudinal),
        "LOLOHA, 50 answers": dn.LOLOHA(50, **longitudinal),
        "dBitFlip, 50 answers": dn.DBitFlip(50, **longitudinal, bits=4),
        "mean in two stages": dn.LOneBitMean(dn.Interval(0, 24), **longitudinal),
        "evolving, 16 epochs": dn.Evolving(["no", "yes"], 1, epochs=16),
    }


@benchmark("audit-kinds", "audits of our own kinds at usual sizes: which way, and how long", group=KINDS, rounds=1)
def kinds(size: Size) -> Case:
    facts: dict[str, str | int | float] = {}
    for name, protocol in usual().items():
        if size.quick and protocol.traits.slow:
            continue
        begun = time.perf_counter()
        found = dn.privacy.audit(protocol, samples=2_000, seed=1)
        exact = "" if found.exact is None else f", exactly {found.exact:.6g}"
        if found.exact is None and found.verdict == "cleared" and found.method == "structure":
            exact = ", exactly for 64 answers"
        seconds = time.perf_counter() - begun
        facts[name] = f"{found.verdict} by {found.method}{exact}; claim {found.epsilon:g}; {seconds:.1f} s"
    quick = dn.GRR(ANSWERS, EPSILON)
    return Case({"GRR": work(lambda: dn.privacy.audit(quick), 1, "audit")}, (), facts)


POWER, FIRST_SEED = "audit-power", 72_000
"""Seeds that no test uses."""


def _found(protocol: dn.Protocol, seed: int, samples: int, spec: bool = False) -> Found:
    inputs = range(protocol.domain.size)
    spec_at_hand = protocol if spec else None
    return search(Batches(protocol, dn.Simulation(seed)), inputs, samples, protocol=spec_at_hand, seed=seed)


@benchmark("audit-power", "lower bounds of epsilon from 20,000 samples per input, epsilon 1, 50 answers", group=POWER)
def power(size: Size) -> Case:
    seeds = range(FIRST_SEED, FIRST_SEED + size(20, 2))
    facts: dict[str, str | int | float] = {}
    for name, protocol in (("OUE", dn.OUE(50, 1)), ("subset selection", dn.SubsetSelection(50, 1))):
        for spec, goal in ((False, 0.90), (True, 0.92)):
            lower = np.array([_found(protocol, seed, 20_000, spec).lower for seed in seeds])
            facts[f"{name}, {'with the spec' if spec else 'black box'}"] = (
                f"{lower.mean():.3f} on average, {lower.min():.3f} to {lower.max():.3f}; "
                f"{(lower >= goal).sum()} of {lower.size} audits at least {goal:.2f}"
            )
    blind = [
        _judged(name, Fraction(1), _found(protocol, seed, 20_000), 20_000, 0.95, 50)
        for name, protocol in {"OLH": dn.OLH(50, 1), "BLH": dn.BLH(50, 1)}.items()
        for seed in seeds[: size(5, 1)]
    ]
    never = sum(one.verdict == "undecided" and one.more is None for one in blind)
    cleared = sum(one.verdict == "cleared" for one in blind)
    facts["linear hashing as a black box"] = (
        f"{never} of {len(blind)} audits undecided: no power; {cleared} cleared, {len(blind) - never - cleared} wrong"
    )
    quick = dn.OUE(50, 1)
    return Case({"audit": work(lambda: _found(quick, 1, 2_000, True), 1, "audit")}, (), facts)


@benchmark("audit-violations", "clients above their claim of epsilon 1, a million samples per input", group=POWER)
def violations(size: Size) -> Case:
    seeds = range(FIRST_SEED, FIRST_SEED + size(10, 1))
    facts: dict[str, str | int | float] = {}
    for answers, above in ((2, "1.05"), (16, "1.15")):
        for epsilon in (above, "1"):
            found = [_found(dn.GRR(answers, epsilon), seed, size(1_000_000, 50_000)).lower for seed in seeds]
            facts[f"{answers} answers, epsilon {epsilon}"] = (
                f"{sum(one > 1 for one in found)} of {len(found)} audits violated; "
                f"bound {min(found):.3f} to {max(found):.3f}"
            )
    quick = dn.GRR(2, 1)
    return Case({"audit": work(lambda: _found(quick, 1, 20_000), 1, "audit")}, (), facts)


@benchmark(
    "audit-null", "clients of exactly epsilon, and clients that tell nothing: how often the bound is wrong", group=POWER
)
def null(size: Size) -> Case:
    audits = size(1000, 20)
    protocols: dict[str, dn.Protocol] = {
        "GRR, 2 answers": dn.GRR(2, 1),
        "GRR, 4 answers": dn.GRR(4, 1),
        "OUE, 4 answers": dn.OUE(4, 1),
        "subset selection, 6 answers": dn.SubsetSelection(6, 1),
    }
    over: dict[str, list[bool]] = {}
    for number in range(audits):
        name, protocol = list(protocols.items())[number % len(protocols)]
        found = _found(protocol, FIRST_SEED + number, 1000)
        over.setdefault(f"of {name}", []).append(found.lower > protocol.realized_epsilon)
    wrong = [one for own in over.values() for one in own]
    facts: dict[str, str | int | float] = {
        "exactly epsilon": f"{100 * np.mean(wrong):.1f} % of {audits:,} audits above it (at most 5 % promised)"
    }
    facts |= {name: f"{sum(own)} of {len(own)}" for name, own in over.items()}
    quick = dn.GRR(2, 1)
    same = [search(_Same(FIRST_SEED + number), [0, 1, 2], 1000, seed=number).lower for number in range(audits)]
    facts["the same for all inputs"] = (
        f"{100 * np.mean([one > 0 for one in same]):.1f} % of {audits:,} audits above 0; "
        f"the largest bound is {max(same):.3f}"
    )
    return Case({"audit": work(lambda: _found(quick, 1, 1000), 1, "audit")}, (), facts)


class _Same(Batches):
    """Sends one of eight bytes, whatever the input."""

    def __init__(self, seed: int) -> None:
        super().__init__(dn.GRR(8, 1), dn.Simulation(seed))

    def sample(self, value: int, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
        return self.bits.integers(8, count).astype(np.uint8)[:, None]

"""What an audit says: of other packages' clients as black boxes, and of our own kinds at usual sizes.

Rivals     each client as a program (`peers/audited.py`), which says epsilon 1 and has eight answers; the event is
           chosen on one half of the samples and bounded on the other, with 95 % confidence
           L-GRR   promises epsilon 1 for all reports of an answer that never changes: 20 epochs, two answers
           RS+FD   promises epsilon 1 for a record of three columns: records of one value in all columns
Kinds      which way is taken, and how long it takes
"""

from __future__ import annotations

import time

import deniable as dn
from benchmarks.peers.audited import ANSWERS, EPSILON
from benchmarks.peers.environments import HERE, interpreter
from benchmarks.registry import Case, Size, UnavailableError, benchmark, work

GROUP = "audits"
EPOCHS = 20
LONG = f"L-GRR, {EPOCHS} epochs"
CLIENTS = {
    "pure-ldp": ("GRR", "OUE", "OLH"),
    "multi-freq-ldpy": ("GRR", "OUE", "subset selection", LONG, "RS+FD, 3 columns"),
    "ldp-toolbox": ("GRR", "OUE"),
    "opendp": ("GRR", "SUE"),
}


@benchmark("audit-rivals", "audits of other packages' clients as black boxes, epsilon 1", group=GROUP, rounds=1)
def rivals(size: Size) -> Case:
    samples = size(20_000, 2_000)
    facts: dict[str, str | int | float] = {}
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
            found = dn.privacy.audit(command, EPSILON, number, inputs=values, stream=stream)
            facts[f"{package}: {kind}"] = found.words + (f" [{found.event}]" if found.event else "")
    quick = dn.GRR(ANSWERS, EPSILON)
    return Case({"ours, exactly": work(lambda: dn.privacy.audit(quick), 1, "audit")}, (), facts)


def usual() -> dict[str, dn.Protocol]:
    return {
        "GRR, 100 answers": dn.GRR(100, 1),
        "OUE, 500 answers": dn.OUE(500, 1),
        "OLH, 1,000 answers": dn.OLH(1000, 1),
        "Hadamard response, 1,000 answers": dn.HadamardResponse(1000, 1),
        "window, 0 to 100": dn.Window(dn.Integers(0, 100), 1, read="distribution"),
        "ranges, 0 to 63": dn.Ranges(dn.Integers(0, 63), 1),
        "rectangles, 64 x 64": dn.Rectangles(dn.Records({"x": dn.Integers(0, 63), "y": dn.Integers(0, 63)}), 1),
        "records of three columns": dn.plan(
            dn.Records({"smoke": ["yes", "no"], "age": dn.Integers(0, 99), "hours": dn.Interval(0, 24)}),
            epsilon=1,
            n=10**4,
        ).best,
        "strata, OUE of 50": dn.Stratified({"country": ["A", "B", "C"]}, dn.OUE(50, 1), "answer"),
        "places, 16 x 12": dn.Places(dn.Grid(16, 12), 1),
        "sets of 5 among 100": dn.plan(dn.Sets(100, at_most=5), epsilon=1, n=10**4).best,
        "keys and values, 3 of 20": dn.KeyValue(20, dn.Interval(1, 5), 1, at_most=3),
        "discovery, 32 bits": dn.Discovery(dn.BitStrings(32), 1),
        "open text": dn.OLHSketch(dn.Strings(), 1),
        "LGRR, 20 answers": dn.LGRR(20, first="1/2", forever=1),
        "LOSUE, 50 answers": dn.LOSUE(50, first="1/2", forever=1),
        "LOLOHA, 50 answers": dn.LOLOHA(50, first="1/2", forever=1),
        "dBitFlip, 50 answers": dn.DBitFlip(50, first="1/2", forever=1, bits=4),
        "mean in two stages": dn.LOneBitMean(dn.Interval(0, 24), first="1/2", forever=1),
    }


@benchmark("audit-kinds", "audits of our own kinds at usual sizes: which way, and how long", group=GROUP, rounds=1)
def kinds(size: Size) -> Case:
    facts: dict[str, str | int | float] = {}
    slow = {"ranges, 0 to 63", "rectangles, 64 x 64", "places, 16 x 12", "open text"}
    for name, protocol in usual().items():
        if size.quick and name in slow:
            continue
        begun = time.perf_counter()
        found = dn.privacy.audit(protocol, samples=2_000, seed=1)
        exact = "" if found.exact is None else f", exactly {found.exact:.6g}"
        seconds = time.perf_counter() - begun
        facts[name] = f"{found.verdict} by {found.method}{exact}; claim {found.epsilon:g}; {seconds:.1f} s"
    quick = dn.GRR(ANSWERS, EPSILON)
    return Case({"GRR": work(lambda: dn.privacy.audit(quick), 1, "audit")}, (), facts)

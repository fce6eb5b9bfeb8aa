"""Frequency oracles against other packages: the device's side, the collector's, and how far off the estimates are.

Client   answers to reports, in the fastest way that each package offers; ours with secure bits, through `privatize`
Single   one answer to the bytes of one report, by `report` and with secure bits, against a call of the other package
Server   reports to estimates of all 1024 frequencies; for sketches only to the sketch, since the estimates of each
         candidate cost the same however many reports there are
Error    the mean squared error of all 1024 estimated frequencies, of each package for the same people
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from benchmarks.peers import environments
from benchmarks.peers.worker import ANSWERS, zipf
from benchmarks.registry import Case, Goal, Ratio, Size, Task, at_least, at_most, benchmark, cost, faster, work

EPSILON = 1
OURS = "deniable"
SINGLE = "deniable, one by one"
ONE_BY_ONE = "client, one by one"
CONSISTENT = "deniable, consistent"
GUESS = "a guess of 1 / 1024 for each"
RESCALED = ("multi-freq-ldpy", "ldp-toolbox")
"""Packages that return frequencies only after clipping negative ones and rescaling the rest."""

DOMAIN = dn.Integers(0, ANSWERS - 1)
SKETCH = dn.Strings(cells=ANSWERS, cohorts=128)


@dataclass(frozen=True)
class Oracle:
    """A protocol, how many answers and reports each rival is timed on, and the goals by package."""

    make: Callable[[], Any]
    rivals: Mapping[str, tuple[int, int]]
    client_goals: Mapping[str, Goal] = field(default_factory=dict)
    single_goals: Mapping[str, Goal] = field(default_factory=dict)
    server_goals: Mapping[str, Goal] = field(default_factory=dict)
    copy_goal: Goal | None = None
    people: int = 100_000
    """Whose shares are estimated to see the error."""
    is_sketch: bool = False


ORACLES = {
    "GRR": Oracle(
        lambda: dn.GRR(DOMAIN, EPSILON),
        dict.fromkeys(("pure-ldp", *RESCALED), (100_000, 100_000)),
        client_goals={"pure-ldp": at_least(50)},
        single_goals={"pure-ldp": at_least(0.5, full_only=True)},
    ),
    "SUE": Oracle(
        lambda: dn.SUE(DOMAIN, EPSILON),
        dict.fromkeys(("pure-ldp", *RESCALED), (5_000, 10_000)) | {"opendp": (500, 1_000)},
    ),
    "OUE": Oracle(
        lambda: dn.OUE(DOMAIN, EPSILON),
        dict.fromkeys(("pure-ldp", *RESCALED), (5_000, 10_000)),
        client_goals={"pure-ldp": at_least(80)},
        single_goals={"pure-ldp": at_least(1, full_only=True)},
        server_goals={"pure-ldp": at_least(25)},
        copy_goal=at_most(4),
    ),
    "OLH": Oracle(
        lambda: dn.OLH(DOMAIN, EPSILON),
        dict.fromkeys(("pure-ldp", *RESCALED), (20_000, 500)),
        client_goals={"pure-ldp": at_least(150)},
        single_goals={"pure-ldp": at_least(1, full_only=True)},
        server_goals=dict.fromkeys(("pure-ldp", "multi-freq-ldpy"), at_least(10_000)),
        people=20_000,  # ten seconds and more for each rival
    ),
    "SubsetSelection": Oracle(
        lambda: dn.SubsetSelection(DOMAIN, EPSILON),
        dict.fromkeys(RESCALED, (5_000, 5_000)),
        client_goals={"ldp-toolbox": at_least(20)},
    ),
    "HadamardResponse": Oracle(lambda: dn.HadamardResponse(DOMAIN, EPSILON), {"pure-ldp": (20_000, 100_000)}),
    "CMS": Oracle(lambda: dn.CMS(DOMAIN, EPSILON, hashing=SKETCH), {"pure-ldp": (5_000, 10_000)}, is_sketch=True),
    "HCMS": Oracle(lambda: dn.HCMS(DOMAIN, EPSILON, hashing=SKETCH), {"pure-ldp": (20_000, 20_000)}, is_sketch=True),
}


def task_name(side: str, package: str) -> str:
    return f"{side}: {package}"


def ratio_label(side: str, package: str) -> str:
    return f"{side}: times faster than {package}"


def error_label(package: str) -> str:
    return f"mean squared error: {package}"


def largest_label(package: str) -> str:
    return f"share of the most common answer: {package}"


@cache
def answers(n: int) -> NDArray[np.int64]:
    return np.array(zipf(n))


def compared(name: str, size: Size) -> Case:
    """All tasks, ratios and facts of one protocol."""
    oracle, protocol = ORACLES[name], ORACLES[name].make()
    n, one_by_one = size(10**6, 10**5), size(2_000, 200)
    values = answers(n)
    single = values[:one_by_one].tolist()
    reports = protocol.privatize(values)
    spare = np.empty_like(reports.array)
    step = "tally" if oracle.is_sketch else "server"

    def serve() -> object:
        tally = protocol.tally(reports)
        return tally if oracle.is_sketch else protocol.estimate(tally)

    tasks = {
        task_name("client", OURS): work(lambda: protocol.privatize(values), n, "report"),
        task_name("client", SINGLE): work(lambda: [protocol.report(value) for value in single], one_by_one, "report"),
        task_name("server", OURS): work(serve, n, "report"),
        "copy": work(reports.array.copy, n, "report"),
        "copy in place": work(lambda: np.copyto(spare, reports.array), n, "report"),
    }
    ratios: list[Ratio] = []
    for package, counts in oracle.rivals.items():
        sides = ("client", "client", oracle.client_goals), ("server", step, oracle.server_goals)
        for (side, what, goals), count in zip(sides, counts, strict=True):
            theirs = task_name(side, package)
            tasks[theirs] = environments.task(package, what, count // size(1, 10), "report", name)
            ours = task_name(side, OURS)
            ratios.append(faster(ours, theirs, goals.get(package), ratio_label(side, package)))
        alone, goal = ratio_label(ONE_BY_ONE, package), oracle.single_goals.get(package)
        ratios.append(faster(task_name("client", SINGLE), task_name("client", package), goal, alone))
    for copy, goal in (("copy", oracle.copy_goal), ("copy in place", None)):
        ratios.append(cost(task_name("server", OURS), copy, goal, f"server: times the time of a {copy}"))
    facts = {"bytes a report": protocol.report_bytes} | errors(name, protocol, oracle, size)
    return Case(tasks, ratios, facts)


def errors(name: str, protocol: Any, oracle: Oracle, size: Size) -> dict[str, str]:
    """How far the estimates are from the shares among the people who answered."""
    people = size(oracle.people, 1_000)
    values = answers(people)
    truth = np.bincount(values, minlength=ANSWERS) / people
    raw = protocol.estimate(protocol.tally(protocol.privatize(values)))
    estimates: dict[str, NDArray[np.float64]] = {OURS: raw.frequencies, CONSISTENT: raw.consistent().frequencies}
    for package in oracle.rivals:
        estimates[package] = np.array(environments.frequencies(package, name, people))
    # What no report at all would give: an estimate that is no better has learned nothing.
    guess = np.full(ANSWERS, 1 / ANSWERS)
    found = {"people": f"{people:,}", error_label(GUESS): _square(guess - truth)}
    found |= {error_label(who): _square(shares - truth) for who, shares in estimates.items()}
    found[largest_label("in truth")] = f"{truth[0]:.3f}"
    return found | {largest_label(who): f"{shares[0]:.3f}" for who, shares in estimates.items()}


def _square(error: NDArray[np.float64]) -> str:
    return f"{np.mean(error**2):.2e}"


def _register(name: str) -> None:
    title = f"{name} against other packages, 1024 answers, epsilon = 1"

    @benchmark(name, title, peers=tuple(ORACLES[name].rivals), group="frequency")
    def prepare(size: Size) -> Case:
        return compared(name, size)


for _name in ORACLES:
    _register(_name)


@benchmark("OLH-domain", "the server of OLH as the number of answers grows, a million reports", group="frequency")
def growing_domain(size: Size) -> Case:
    n, many = size(10**6, 10**5), size(10**7, 10**6)
    tasks: dict[str, Task] = {}
    for exponent in (10, 20):
        protocol = dn.OLH(dn.Integers(0, (1 << exponent) - 1), EPSILON)
        values = np.array(zipf(n, 1 << exponent))
        for what, run in served(protocol, protocol.privatize(values)).items():
            tasks[f"{what}, 2^{exponent} answers"] = work(run, n, "report")
    # The transform costs the same for any number of reports: few of them cannot hide it.
    small = dn.OLH(DOMAIN, EPSILON)
    tally = small.tally(small.privatize(np.resize(answers(n), many)))
    return Case(
        tasks,
        [
            growth("tally", None),
            growth("tally and transform", at_most(5, full_only=True)),
            growth("tally and estimate", at_most(5, full_only=True)),
        ],
        {f"integers in the tally of {tally.n:,} reports": int(tally.counts.size)},
    )


def two_stages(protocol: Any, plain: Any, size: Size, most: int = 10**6, values: Any = None) -> Case:
    """Both stages of a protocol, its tally, and what the same report costs where it is given once."""
    n, one_by_one = size(most, most // 10), size(2_000, 200)
    values = answers(n) if values is None else values
    states = protocol.permanents(values)
    reports, single = protocol.reports(states), [row.tobytes() for row in states[:one_by_one]]
    tasks = {
        "states": work(lambda: protocol.permanents(values), n, "state"),
        "reports of an epoch": work(lambda: protocol.reports(states), n, "report"),
        "reports, one by one": work(lambda: [protocol.report_from(state) for state in single], one_by_one, "report"),
        "tally": work(lambda: protocol.tally(reports), n, "report"),
        plain.name: work(lambda: plain.privatize(values), n, "report"),
    }
    return Case(tasks, [cost("reports of an epoch", plain.name, None, f"an epoch: times the time of {plain.name}")])


STAGED = "two stages, 1024 answers, epsilon = 1 per report and 2 for ever, "
LEVELS = {"first": EPSILON, "forever": 2 * EPSILON}


@benchmark("LGRR", f"{STAGED}a million devices", group="frequency")
def lgrr(size: Size) -> Case:
    return two_stages(dn.LGRR(DOMAIN, **LEVELS), dn.GRR(DOMAIN, EPSILON), size)


@benchmark("LSUE", f"{STAGED}100,000 devices", group="frequency")
def lsue(size: Size) -> Case:
    return two_stages(dn.LSUE(DOMAIN, **LEVELS), dn.SUE(DOMAIN, EPSILON), size, 10**5)


@benchmark("LOSUE", f"{STAGED}100,000 devices", group="frequency")
def losue(size: Size) -> Case:
    return two_stages(dn.LOSUE(DOMAIN, **LEVELS), dn.OUE(DOMAIN, EPSILON), size, 10**5)


@benchmark("LOLOHA", f"{STAGED}a million devices", group="frequency")
def loloha(size: Size) -> Case:
    return two_stages(dn.LOLOHA(DOMAIN, **LEVELS), dn.OLH(DOMAIN, EPSILON), size)


@benchmark("LRAPPOR", f"{STAGED}100,000 devices, filters of 128 bits", group="frequency")
def lrappor(size: Size) -> Case:
    return two_stages(dn.RAPPOR(DOMAIN, **LEVELS), dn.RAPPOR(DOMAIN, EPSILON), size, 10**5)


@benchmark(
    "Evolving",
    "answers that change, two answers, 30 epochs, 2 changes, epsilon = 1, 100,000 devices",
    group="frequency",
)
def evolving(size: Size) -> Case:
    n, one_by_one = size(10**5, 10**4), size(1_000, 100)
    protocol, plain = dn.Evolving(["no", "yes"], EPSILON, epochs=30, changes=2), dn.GRR(["no", "yes"], EPSILON)
    streams = np.array(["no", "yes"], dtype=object)[(np.arange(30) >= (answers(n) % 60)[:, None]).astype(int)]
    reports = protocol.streams(streams)
    tallies = [protocol.tally(each) for each in reports]
    whole = sum(tallies[1:], tallies[0])

    def devices() -> None:
        for stream in streams[:one_by_one]:
            state = protocol.begin()
            for epoch, answer in enumerate(stream, start=1):
                state, _ = protocol.step(state, answer, epoch)

    tasks = {
        "reports of all epochs": work(lambda: protocol.streams(streams), 30 * n, "report"),
        "reports, one by one": work(devices, 30 * one_by_one, "report"),
        "tally": work(lambda: [protocol.tally(each) for each in reports], 30 * n, "report"),
        "estimate": work(lambda: protocol.estimate(whole), 1, "series"),
        "GRR": work(lambda: [plain.privatize(streams[:, epoch]) for epoch in range(30)], 30 * n, "report"),
    }
    return Case(tasks, [cost("reports of all epochs", "GRR", None, "all epochs: times the time of fresh GRR")])


@benchmark(
    "Attributes",
    "one part of a record (2 answers, 1024 answers, a number), epsilon = 1, a million people, against asking each part "
    "alone of its share of them",
    group="frequency",
)
def one_part(size: Size) -> Case:
    n, one_by_one = size(10**6, 10**5), size(2_000, 200)
    protocol = dn.Attributes({"smoke": 2, "town": DOMAIN, "sleep": dn.Interval(0, 24)}, EPSILON, people=n)
    values = answers(n)
    columns = {"smoke": values % 2, "town": values, "sleep": values * (24 / ANSWERS)}
    reports = protocol.privatize(columns)
    shares = [(inner, columns[name][:people]) for name, (inner, people) in protocol.worth(n).parts.items()]
    alone = [(inner, inner.privatize(some)) for inner, some in shares]
    single = [{name: column[i].item() for name, column in columns.items()} for i in range(one_by_one)]
    tasks = {
        "client": work(lambda: protocol.privatize(columns), n, "report"),
        "client, each part alone": work(lambda: [inner.privatize(some) for inner, some in shares], n, "report"),
        "client, one by one": work(lambda: [protocol.report(record) for record in single], one_by_one, "report"),
        "tally": work(lambda: protocol.tally(reports), n, "report"),
        "tally, each part alone": work(lambda: [inner.tally(some) for inner, some in alone], n, "report"),
    }
    ratios = [
        cost("client", "client, each part alone", None, "client: times the time of each part alone"),
        cost("tally", "tally, each part alone", None, "tally: times the time of each part alone"),
    ]
    return Case(tasks, ratios, {"bytes a report": protocol.report_bytes})


def served(protocol: Any, reports: dn.Reports) -> dict[str, Callable[[], object]]:
    return {
        "tally": lambda: protocol.tally(reports),
        "tally and transform": lambda: protocol._support_counts(protocol.tally(reports).counts),
        "tally and estimate": lambda: protocol.estimate(protocol.tally(reports)),
    }


def growth(what: str, goal: Goal | None) -> Ratio:
    label = f"{what}: times as long for 2^20 answers as for 2^10"
    return cost(f"{what}, 2^20 answers", f"{what}, 2^10 answers", goal, label)


TIME = "time"
"""The group of what is asked again and again, beside the package that has such protocols, too."""

FEW = 16
"""How many answers they have: with 1024 and twenty thousand people both packages would show noise only."""

AGAIN: dict[str, tuple[Callable[[], Any], int, int]] = {
    "LGRR": (lambda: dn.LGRR(FEW, **LEVELS), 10_000, 100_000),
    "LSUE": (lambda: dn.LSUE(FEW, **LEVELS), 2_000, 5_000),
    "LOSUE": (lambda: dn.LOSUE(FEW, **LEVELS), 2_000, 5_000),
    "LOLOHA": (lambda: dn.LOLOHA(FEW, **LEVELS), 5_000, 200),
    "DBitFlip": (lambda: dn.DBitFlip(32, **LEVELS, bits=8), 20_000, 5_000),
}
"""Protocols in two stages, and how many answers and reports the other package is timed on."""


def against(name: str, size: Size) -> Case:
    """A first report, both stages together, and the server, beside those of multi-freq-ldpy; and both errors."""
    rival, (make, clients, reports_timed) = "multi-freq-ldpy", AGAIN[name]
    protocol, n = make(), size(2 * 10**5, 10**4)
    values = answers(n) * protocol.domain.size // ANSWERS
    reports = protocol.privatize(values)
    tasks = {
        task_name("client", OURS): work(lambda: protocol.privatize(values), n, "report"),
        task_name("client", rival): environments.task(rival, "client", clients // size(1, 10), "report", name),
        task_name("server", OURS): work(lambda: protocol.estimate(protocol.tally(reports)), n, "report"),
        task_name("server", rival): environments.task(rival, "server", reports_timed // size(1, 10), "report", name),
    }
    people = size(20_000, 1_000) if name != "LOLOHA" else size(2_000, 200)
    asked = answers(people) * protocol.domain.size // ANSWERS
    truth = np.bincount(asked, minlength=protocol.domain.size) / people
    found = {OURS: protocol.estimate(protocol.tally(protocol.privatize(asked))).consistent().frequencies}
    found[rival] = np.array(environments.frequencies(rival, name, people))
    facts = {"people": f"{people:,}", "states that are kept: multi-freq-ldpy": "none, every call draws a new one"}
    facts |= {error_label(who): _square(shares - truth) for who, shares in found.items()}
    facts |= {largest_label("in truth"): f"{truth[0]:.3f}"}
    facts |= {largest_label(who): f"{shares[0]:.3f}" for who, shares in found.items()}
    sides = ("client", "server")
    ratios = [faster(task_name(side, OURS), task_name(side, rival), None, ratio_label(side, rival)) for side in sides]
    return Case(tasks, ratios, facts)


def _register_again(name: str) -> None:
    title = (
        f"{name} against multi-freq-ldpy, {AGAIN[name][0]().domain.size} answers, epsilon = 1 per report and 2 for ever"
    )

    @benchmark(f"{name}-again", title, peers=("multi-freq-ldpy",), group=TIME, rounds=5)
    def prepare(size: Size) -> Case:
        return against(name, size)


for _name in AGAIN:
    _register_again(_name)


@benchmark("DBitFlip", "24 answers, epsilon = 1 per report and 2 for ever, a million devices", group=TIME, rounds=5)
def dbitflip(size: Size) -> Case:
    return two_stages(dn.DBitFlip(24, **LEVELS), dn.SUE(24, EPSILON), size, values=answers(size(10**6, 10**5)) % 24)


@benchmark("LOneBitMean", "mean, epsilon = 1 per report and 2 for ever, a million devices", group=TIME, rounds=5)
def lonebitmean(size: Size) -> Case:
    minutes = dn.Interval(0, 1440, unit="minutes")
    numbers = answers(size(10**6, 10**5)) % 1441 + 0.5
    protocol = dn.LOneBitMean(minutes, **LEVELS, steps=24)
    return two_stages(protocol, dn.OneBitMean(minutes, EPSILON), size, values=numbers)

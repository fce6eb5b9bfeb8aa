"""What every profile mechanism passes, on the bytes that leave the device; the secret is the profile, not the value."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.conformance.findings import Duty, listed, raises, refuses, require
from deniable.conformance.protocols import LEVELS, TIGHT
from deniable.conformance.statistics import accepts, draws_needed
from deniable.errors import MismatchError, ReportError
from deniable.exact import WORD, exp_at_least
from deniable.protocols import Reports, Tally
from deniable.protocols.profiles import (
    KaryResponse,
    OneBitCluster,
    ProfileGraph,
    ProfileMechanism,
    SmoothCategorical,
    SmoothOneBit,
    Warner,
    load,
)
from deniable.randomness import Secure, Simulation, exhaust

BITS = ProfileGraph.chain({"north": "1/8", "south": "7/8"})
CLUSTERS = ProfileGraph.clusters({"n": {"A": "1/8", "B": "1/2"}, "s": {"C": "5/8", "D": 1}})
JOBS = ProfileGraph.chain(
    {"clerk": ["3/4", "1/8", "1/8"], "engineer": ["1/8", "1/8", "3/4"], "guest": ["1/8", "3/4", "1/8"]},
    values=["idle", "print", "compute"],
)

SOFT = "these profiles overlap, and randomized response would hide even profiles that do not"
FAITHFUL = "what says little about the profile is reported as it is, by profiles that are `in_the_clear`"
FEW = "two outputs cannot tell the shares of four profiles, so they are refused"


@dataclass(frozen=True)
class ProfileCase:
    """How to build a mechanism at a level, on a graph whose profiles are eighths."""

    name: str
    build: Callable[[Fraction], ProfileMechanism]
    epsilon: Fraction = Fraction(1)
    waived: dict[str, str] = field(default_factory=dict)
    """Checks that do not apply, each with the reason."""

    def __str__(self) -> str:
        return self.name


def enumerated(mechanism: ProfileMechanism) -> list[list[dict[bytes, Fraction]]]:
    """The law of the report bytes for each profile and value, from running the real code along every branch."""
    graph = mechanism.graph
    return [
        [
            exhaust(lambda bits, v=value, p=profile: mechanism.report(v, p, bits).to_bytes()).law  # type: ignore[misc]
            for value in graph.values
        ]
        for profile in graph.labels
    ]


def _released(mechanism: ProfileMechanism) -> list[dict[bytes, Fraction]]:
    """The law of the bytes of each profile, whose values are drawn from it."""
    laws: list[dict[bytes, Fraction]] = []
    for label, rows in zip(mechanism.graph.labels, enumerated(mechanism), strict=True):
        total: dict[bytes, Fraction] = {}
        for chance, row in zip(mechanism.graph.profile(label), rows, strict=True):
            for report, share in row.items():
                total[report] = total.get(report, Fraction(0)) + chance * share
        laws.append(total)
    return laws


def _form(mechanism: ProfileMechanism, output: int) -> bytes:
    return output.to_bytes(mechanism.report_bytes, "little")


def check_level(case: ProfileCase) -> None:
    """1. Over the edges the level of the bytes is the stated one, and at most the one asked for."""
    mechanism = case.build(case.epsilon)
    laws, graph = _released(mechanism), mechanism.graph
    ratios = [
        laws[i][report] / laws[j][report]
        for a, b in graph.whole.edges.tolist()
        for i, j in ((a, b), (b, a))
        for report in laws[i]
    ]
    require(max(ratios) == mechanism.ratio, "the stated ratio is not that of the bytes")
    require(exp_at_least(case.epsilon, max(ratios)), "the level is exceeded")


def check_tight(case: ProfileCase) -> None:
    """1. The level that was asked for is used."""
    mechanism = case.build(case.epsilon)
    require(float(case.epsilon) - mechanism.epsilon <= TIGHT, "the level is wasted")


def check_law(case: ProfileCase) -> None:
    """2. Batches follow the stored law, and the same test refuses the same code at another level."""
    mechanism = case.build(case.epsilon)
    others = [case.build(case.epsilon * factor) for factor in LEVELS.values()]
    law, wrong = _floats(mechanism), [_floats(other) for other in others]
    needed = {
        (i, x): max(draws_needed(law[i, x], other[i, x]) for other in wrong)
        for i, x in np.ndindex(law.shape[:2])
        if all(not np.allclose(law[i, x], other[i, x], rtol=1e-6, atol=0) for other in wrong)
    }
    require(needed, "no law depends on epsilon")
    i, x = min(needed, key=lambda place: needed[place])
    require(_drawn(mechanism, i, x, needed[i, x], law[i, x]), "batches have another law")
    for name, other in zip(LEVELS, others, strict=True):
        require(not _drawn(other, i, x, needed[i, x], law[i, x]), f"the test cannot tell {name}")
    for i, x in np.ndindex(law.shape[:2]):
        require(_drawn(mechanism, i, x, 20_000, law[i, x]), "another law")


def _floats(mechanism: ProfileMechanism) -> Any:
    return (mechanism.table / WORD).astype(np.float64)


def _drawn(mechanism: ProfileMechanism, i: int, x: int, n: int, law: np.ndarray) -> bool:
    values = np.array(mechanism.graph.values)[np.full(n, x)]
    reports = mechanism.report(values, mechanism.graph.labels[i], Simulation(50 + i))
    counts = mechanism.tally(reports).counts
    possible = law > 0
    return not counts[~possible].any() and (possible.sum() == 1 or accepts(counts[possible], law[possible]))


def check_enumeration(case: ProfileCase) -> None:
    """3. The law of the real code, enumerated along every branch, is the stored one, as fractions."""
    mechanism = case.build(case.epsilon)
    for rows, stored in zip(enumerated(mechanism), mechanism.table, strict=True):
        for law, entries in zip(rows, stored, strict=True):
            expected = {_form(mechanism, y): Fraction(int(e), WORD) for y, e in enumerate(entries) if e}
            require(law == expected, "a value is drawn from another law than the stored one")


def check_positions(case: ProfileCase) -> None:
    """4. Whatever profile and value, every output can come."""
    table = case.build(case.epsilon).table
    require((table > 0).all(), "an output rules out a value")


def check_fresh(case: ProfileCase) -> None:
    """4. Secure draws differ from run to run."""
    mechanism = case.build(case.epsilon)
    noisy = next(label for label in mechanism.graph.labels if label not in mechanism.in_the_clear)
    column = list(mechanism.graph.values) * 200
    require(
        len({mechanism.report(column, noisy, Secure()).to_bytes() for _ in range(3)}) == 3,
        "two runs gave the same reports",
    )


def check_refusals(case: ProfileCase) -> None:
    """5. Values and profiles that do not exist are refused without repeating them; malformed reports do not count."""
    mechanism = case.build(case.epsilon)
    value, profile = mechanism.graph.values[0], mechanism.graph.labels[0]
    for secret in ("s3cret", 987654321, float("nan"), None, ["s3cret"], [None], object(), [["s3cret"]]):
        for values, profiles in ((secret, profile), (value, secret)):
            refuses(mechanism.report, values, profiles)
    good = mechanism.report([value] * 3, profile, Simulation(1)).array
    for byte in range(256):
        broken = good.copy()
        broken[1] = byte
        require(mechanism.valid(broken)[1] == (byte < mechanism.tally_size), "valid() is wrong about a report")
        if byte >= mechanism.tally_size:
            require(raises(ReportError, mechanism.tally, broken), "a malformed report was counted")
    require(
        raises(ReportError, lambda: mechanism.tally(np.zeros((1, mechanism.report_bytes + 1), dtype=np.uint8))),
        "a report with too many bytes was counted",
    )
    require(
        raises(MismatchError, lambda: mechanism.tally(Reports("0" * 64, good))),
        "another mechanism's report was counted",
    )
    require(
        raises(MismatchError, lambda: mechanism.estimate(Tally("0" * 64, 1, mechanism.tally(good).counts))),
        "another mechanism's tally was used",
    )


def check_order(case: ProfileCase) -> None:
    """6. One value and a batch of one give the same bytes from the same random bytes."""
    mechanism = case.build(case.epsilon)
    graph = mechanism.graph
    for seed in range(20):
        value, profile = graph.values[seed % len(graph.values)], graph.labels[seed % graph.size]
        single, batch = Simulation(seed), Simulation(seed)
        require(
            mechanism.report(value, profile, single) == mechanism.report([value], [profile], batch),
            "a batch of one gives another report",
        )
        require(single.word() == batch.word(), "a batch of one leaves the stream elsewhere")


def check_unbiased(case: ProfileCase) -> None:
    """7. Over all values and reports of three people, the mix's mean is the truth and its variance the formula's."""
    mechanism = case.build(case.epsilon)
    forms = [_form(mechanism, y) for y in range(mechanism.tally_size)]
    singles = [mechanism.tally(np.frombuffer(form, dtype=np.uint8)[None, :]) for form in forms]
    counts = np.array([mechanism.estimate(tally).counts for tally in singles])
    together = mechanism.estimate(singles[0] + singles[-1]).counts
    require(np.allclose(together, counts[0] + counts[-1], atol=1e-9), "the estimate of a sum is not the sum")
    laws = np.array([[float(law.get(form, 0)) for form in forms] for law in _released(mechanism)])
    people = np.bincount([0, 0, len(laws) - 1], minlength=len(laws))
    require(np.abs(people @ laws @ counts - people).max() < 1e-7, "the estimate is biased")
    spread = people @ (laws @ counts**2 - (laws @ counts) ** 2)
    # Where the estimate is the truth, its error bar is the exact one: give it the expected tally of a large crowd.
    crowd = 10**12
    tally = Tally(mechanism.fingerprint, 0, np.rint(crowd * people @ laws).astype(np.int64))
    shown = mechanism.estimate(Tally(tally.fingerprint, int(tally.counts.sum()), tally.counts)).noise
    require(np.allclose(shown / crowd, spread, rtol=1e-6), "the variance is not that of the reports")


def check_monoid(case: ProfileCase) -> None:
    """8. Tallies add up, in any order; the empty one changes nothing; other sources are refused."""
    mechanism = case.build(case.epsilon)
    column = list(mechanism.graph.values) * 500
    reports = mechanism.report(column, mechanism.graph.labels[0], Simulation(3))
    whole = mechanism.tally(reports)
    parts = [mechanism.tally(part) for part in (reports[:7], reports[7:8], reports[8:])]
    require(Tally.sum(reversed(parts)) == whole == sum(parts), "the tallies of parts do not add up")
    require(whole + mechanism.empty() == whole == mechanism.empty() + whole, "the empty tally changes others")
    require(
        mechanism.tally(reports[np.random.default_rng(4).permutation(len(reports))]) == whole,
        "the order of reports matters",
    )
    require(mechanism.tally(reports, "survey/question").source == "survey/question", "a tally forgets its source")
    require(
        raises(MismatchError, lambda: whole + mechanism.empty("survey/other")),
        "tallies of different sources were added",
    )


def check_identity(case: ProfileCase) -> None:
    """9. spec -> load -> spec is the identity, through JSON, integers included; other levels, other fingerprints."""
    mechanism = case.build(case.epsilon)
    again = load(json.dumps(mechanism.spec()))
    require(type(again) is type(mechanism), "the spec gives another kind")
    require(again == mechanism, "the spec gives another mechanism")
    require(again.spec() == mechanism.spec(), "the spec of what was loaded is another")
    require(again.fingerprint == mechanism.fingerprint, "what was loaded has another fingerprint")
    require(case.build(case.epsilon * 2).fingerprint != mechanism.fingerprint, "two levels share a fingerprint")
    column = list(mechanism.graph.values) * 50
    profile = mechanism.graph.labels[-1]
    require(
        again.report(column, profile, Simulation(5)) == mechanism.report(column, profile, Simulation(5)),
        "what was loaded draws other reports",
    )


def check_value_object(case: ProfileCase) -> None:
    """10. Pickle, deepcopy, equality, hash, repr; no warnings; nothing can be changed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mechanism = case.build(case.epsilon)
        for twin in (pickle.loads(pickle.dumps(mechanism)), copy.deepcopy(mechanism), case.build(case.epsilon)):
            require(twin == mechanism, "a copy is not equal")
            require(hash(twin) == hash(mechanism), "equal mechanisms have different hashes")
        require(repr(mechanism), "there is no repr")
        require(raises(AttributeError, lambda: setattr(mechanism, "asked", Fraction(9))), "its epsilon can be changed")
        require(not mechanism.table.flags.writeable, "its table can be changed")
        reports = mechanism.report(list(mechanism.graph.values), mechanism.graph.labels[0])
        require(not reports.array.flags.writeable, "reports can be changed")


PROFILE_CHECKS = [
    check_level,
    check_tight,
    check_law,
    check_enumeration,
    check_positions,
    check_fresh,
    check_refusals,
    check_order,
    check_unbiased,
    check_monoid,
    check_identity,
    check_value_object,
]


PROFILE_CASES = [
    ProfileCase("Warner", lambda e: Warner(BITS, e), waived={"tight": SOFT}),
    ProfileCase("one bit cluster", lambda e: OneBitCluster(BITS, e)),
    ProfileCase("one bit cluster, two components", lambda e: OneBitCluster(CLUSTERS, e), Fraction(1, 2),
                {"unbiased": FEW}),
    ProfileCase("smooth one bit", lambda e: SmoothOneBit(BITS, e)),
    ProfileCase("smooth one bit, two components", lambda e: SmoothOneBit(CLUSTERS, e), Fraction(1, 2),
                {"unbiased": FEW, "positions": FAITHFUL}),
    ProfileCase("k-ary response", lambda e: KaryResponse(JOBS, e), waived={"tight": SOFT}),
    ProfileCase("smooth categorical", lambda e: SmoothCategorical(JOBS, e)),
]  # fmt: skip


def profile_duties() -> Iterator[Duty]:
    """Every check of every profile mechanism."""
    return listed(((case.name, case) for case in PROFILE_CASES), PROFILE_CHECKS, lambda case: case.waived)

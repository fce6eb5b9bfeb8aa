"""What forged reports do to estimates, and what a collector can do about them."""

import math
from itertools import product

import numpy as np
import pytest

import deniable as dn
from deniable.conformance.protocols import inputs
from deniable.errors import MismatchError, NumberError
from deniable.privacy.poisoning import ATTACKS, Crowd, defences, forge, gain, inspect
from deniable.protocols import (
    GRR,
    LGRR,
    OLH,
    OUE,
    CollisionSets,
    HadamardResponse,
    Queries,
    SecureSum,
    SubsetSelection,
    Table,
    Window,
)
from deniable.protocols.protocol import registered
from deniable.randomness import Simulation
from deniable.results import Estimate, Mean

E = math.e
KINDS = {
    f"{name}-{place}": one
    for name, kind in registered().items()
    if kind.traits.local
    for place, one in enumerate(kind.examples())
}


@pytest.mark.parametrize(
    ("protocol", "leverage"),
    [
        (GRR(64, epsilon=1), 37.7),
        (OUE(64, epsilon=1), 3.16),
        (SubsetSelection(64, epsilon=1), 3.16),
        (CollisionSets(dn.Sets(1000, at_most=8), epsilon=1), 37.6),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_golden_leverage(protocol, leverage):
    assert protocol.worth().leverage == pytest.approx(leverage, rel=0.01)


BY_THE_TALLY = ("RAPPOR", "LRAPPOR", "Stratified", "ItemSets")
"""Their read-out, or the share of a group, depends on the tally; conformance checks `robust` of them."""
WEIGHED = [
    name
    for name, one in KINDS.items()
    if one.worth().read in ("shares", "mean", "items")
    and one.worth().leverage is not None
    and name.split("-")[0] not in BY_THE_TALLY
]


@pytest.mark.parametrize("name", WEIGHED)
def test_leverage_is_that_of_the_report_that_says_most(name):
    """Exact, over all reports: each is added to a tally, and the estimator says what it did."""
    protocol = KINDS[name]
    found = protocol.estimate(protocol.tally(protocol.privatize([inputs(protocol)[0]] * 50, Simulation(1))))
    bytes_of = product(range(256), repeat=protocol.report_bytes)
    rows = np.array(list(bytes_of), dtype=np.uint8) if protocol.report_bytes <= 2 else protocol.worth().forgeries([0])
    crowd = Crowd(protocol, [inputs(protocol)[-1]])
    each = np.array([crowd.weights(row) for row in rows[protocol.valid(rows)][:300]])
    if isinstance(found, Mean):
        low, high = found.ends
        each = (2 * each - low - high) / (high - low)
        assert np.abs(each).max() == pytest.approx(protocol.worth().leverage, rel=1e-6)
        assert np.ptp(each) * (high - low) / 2 == pytest.approx(protocol.worth().moved, rel=1e-6)
    else:
        assert isinstance(found, Estimate)
        assert each.max() == pytest.approx(protocol.worth().leverage, rel=1e-6)
        assert np.ptp(each, axis=0).max() == pytest.approx(protocol.worth().moved, rel=1e-6)


def weights(protocol, favour, how):
    """What forged reports say for the favoured answers together, on average."""
    forged = forge(protocol, favour, 1 if how == "maximal" else 40_000, how, Simulation(4))
    return float(protocol.estimate(protocol.tally(forged)).frequencies[favour].sum())


@pytest.mark.parametrize(
    ("kind", "how", "expected"),
    [
        (GRR, "random", lambda d, r: r / d),
        (GRR, "targeted", lambda d, r: 1.0),
        (GRR, "maximal", lambda d, r: 1 + (d - r) / (E - 1)),
        (OUE, "random", lambda d, r: r),
        (OUE, "targeted", lambda d, r: 1.0),
        (OUE, "maximal", lambda d, r: 2 * r + 2 * r / (E - 1)),
        (OLH, "random", lambda d, r: 0.0),
        (OLH, "targeted", lambda d, r: 1.0),
        (OLH, "maximal", lambda d, r: r * (E + 3) / (E - 1) * (3 / 4) / (1 - 1 / 4)),
    ],
)
def test_forged_reports_say_what_theory_says(kind, how, expected):
    """The published gains are b (w - f), with w the forged reports' weight: here w. Six standard errors."""
    d, r = 16, 3
    protocol = kind(d, epsilon=1)
    spread = 6 * math.sqrt(r * protocol.variance(40_000, 1 / r)) / 40_000 if how != "maximal" else 1e-6
    assert weights(protocol, list(range(r)), how) == pytest.approx(expected(d, r), abs=spread)


@pytest.mark.parametrize("how", ATTACKS)
@pytest.mark.parametrize(
    "protocol", [OUE(12, epsilon=1), OLH(12, epsilon=1), LGRR(4, first="1/2", forever=1)], ids=repr
)
def test_gains_are_those_of_theory(protocol, how):
    """Six standard errors of eight runs, whose law is Student's: one of the 15 is wrong in about 100 seeds."""
    answers = [place % 4 for place in range(1000)]
    found = gain(protocol, answers, [2, 3], 30, how, runs=8, seed=1)
    assert abs(found.measured - found.expected) < 6 * found.stderr


def test_the_gain_of_a_mean_is_that_of_theory():
    hours = Window(dn.Interval(0, 24), epsilon=1)
    found = gain(hours, [6.0, 8.0] * 1000, 24.0, 50, runs=12)
    assert abs(found.measured - found.expected) < 5 * found.stderr
    assert found.expected == pytest.approx(50 / 2050 * (float(hours._mean_weights[1]) - 7), rel=1e-6)


@pytest.mark.parametrize("name", [name for name, one in KINDS.items() if "Rectangles" not in name])
def test_every_kind_is_forged(name):
    protocol = KINDS[name]
    favour = [inputs(protocol)[-1]]
    for how in ("random", "targeted", "maximal"):
        forged = forge(protocol, favour, 5, how, Simulation(1))
        assert len(forged) == 5
        assert protocol.valid(forged.array).all()


def test_what_cannot_be_forged_is_said():
    with pytest.raises(NumberError, match="random, targeted, maximal, selected, single"):
        forge(GRR(3, epsilon=1), [1], how="best")
    with pytest.raises(NumberError, match="whole number from 0 on"):
        GRR(3, epsilon=1).estimate(GRR(3, epsilon=1).empty()).robust(-1)
    unclear = next(one for one in Table.examples() if one.worth().leverage is None)
    found = unclear.estimate(unclear.tally(unclear.privatize(["a"] * 9)))
    with pytest.raises(MismatchError, match="do not tell all answers apart"):
        found.robust(1)
    assert found.robust(0).fakes == 0
    for hidden in SecureSum.examples():
        found = hidden.estimate(hidden.tally(hidden.privatize([hidden.domain.example] * 9)))
        with pytest.raises(MismatchError, match="one person who cheats moves every count by any amount"):
            found.robust(1)


def outside(protocol, honest, fakes, rows, believed=None):
    """How far the honest figures are outside of the robust intervals around the values, in standard errors."""
    plain = protocol.estimate(honest).unbiased.table()
    worst = []
    for row in rows:
        forged = protocol.tally(np.repeat(row[None, :], fakes, axis=0))
        seen = protocol.estimate(honest + forged).robust(believed or fakes).unbiased.table(1e-6)
        worst.append(np.max(np.maximum(seen.low - plain.value, plain.value - seen.high) / plain.stderr))
    return max(worst)


def test_robust_coefficients_hold_without_the_forged_reports():
    """Whichever report is sent 60 times; the plain intervals are too short."""
    columns = {"x": dn.Interval(0, 1), "y": dn.Interval(0, 1)}
    protocol, numbers = Queries(columns, 4, regress={"target": "y"}), np.linspace(0, 1, 4000)
    answers = [{"x": float(x), "y": float(0.2 + 0.5 * x)} for x in numbers]
    honest = protocol.tally(protocol.privatize(answers, Simulation(1)))
    rows = protocol.worth().forgeries(protocol.domain.encode([{"x": 0.0, "y": 1.0}]))
    assert outside(protocol, honest, 60, rows) < 0.05
    assert outside(protocol, honest, 60, rows, believed=30) > 0.05
    found = protocol.estimate(honest)
    assert (np.ptp(found.robust(60).interval(), axis=1) > 1.5 * np.ptp(found.interval(), axis=1)).all()
    assert "60 of the reports are forged" in " ".join(found.robust(60).notes)
    assert np.isinf(found.robust(4000).interval()).any() or (found.robust(4000).interval() == found.ends).all()


def test_robust_sets_of_the_usual_size_hold_without_the_forged_reports():
    """With as few hash functions as the examples have, what common items add moves as well: that check is waived."""
    protocol, bits = CollisionSets(dn.Sets(20, at_most=3), epsilon=1), Simulation(1)
    honest = protocol.tally(protocol.privatize([[0, 1], [1, 2, 3], [4]] * 1400, bits))
    rows = np.vstack([protocol.worth().forgeries(protocol.domain.encode([[19]])), protocol.law().any_reports(3, bits)])
    assert outside(protocol, honest, 40, rows) < 0.15


def test_linear_hashes_support_few_targets_or_all():
    protocol, targets = OLH(1024, epsilon=1), [3, 77, 512, 513, 900, 1000, 18, 4, 640]
    few, everything = protocol.support(protocol.worth().forgeries(targets))
    assert few[targets].all()
    assert few.sum() == 256, "nine targets fit into a matrix of full rank"
    assert everything.all()


def test_robust_intervals_hold_without_the_forged_reports():
    """A forger can take a share out of the plain interval, and not out of the robust one."""
    protocol, bits = OUE(8, epsilon=1), Simulation(7)
    honest = protocol.tally(protocol.privatize([0, 1, 2, 3] * 1000, bits))
    everything = protocol.estimate(honest + protocol.tally(forge(protocol, [7], 200)))
    assert everything.interval()[7][0] > 0, "nobody gave the answer"
    robust = everything.robust(200)
    assert robust.interval()[7][0] < 0 < robust.interval()[7][1]
    exactly = protocol.estimate(honest).interval()[7]
    assert robust.interval()[7][0] == pytest.approx(exactly[0], abs=1e-9), "the forger did the most it could"
    assert (robust.frequencies == everything.frequencies).all()
    assert "200 of the reports are forged" in " ".join(robust.notes)
    assert robust.to_dict()["fakes"] == 200
    assert robust.consistent().robust(200).interval()[7][0] == 0
    assert np.isfinite(robust.robust(10**6).interval(population=False)).all()


def test_honest_reports_raise_no_alarm_and_forged_ones_do():
    protocol, bits = OUE(16, epsilon=1), Simulation(3)
    honest = np.asarray(protocol.privatize([0, 1, 2, 3] * 2000, bits))
    assert not inspect(protocol, honest).alarm
    found = inspect(protocol, np.vstack([honest, np.asarray(forge(protocol, [8, 9], 400, "selected", bits))]))
    assert found.pairs < 1e-6
    assert {"8", "9"} <= set(found.groups)
    hashed = OLH(16, epsilon=1)
    reports = np.asarray(hashed.privatize([0, 1, 2, 3] * 2000, bits))
    assert not inspect(hashed, reports).alarm
    assert inspect(hashed, np.vstack([reports, np.asarray(forge(hashed, [8, 9], 400))])).agreement < 1e-6
    assert inspect(HadamardResponse(8, epsilon=1), np.zeros((5, 1), dtype=np.uint8)).pairs == 1.0


@pytest.mark.slow
def test_defences_have_the_power_that_the_docs_state():
    """20 collections each; the page on forged reports has a table of 100."""
    protocol, favour = OUE(64, epsilon=1), [40, 41, 42, 43, 44]
    answers = [min(63, int(-10 * math.log1p(-(place + 0.5) / 20_000))) for place in range(20_000)]
    table = {row.attack: row for row in defences(protocol, answers, favour, 200, runs=20)}
    none, maximal, single = table["none"], table["maximal"], table["single"]
    assert max(none.misfit, none.pairs, none.agreement) <= 0.02
    assert maximal.agreement == 1.0
    assert maximal.pairs > 0.9
    assert max(single.misfit, single.pairs, single.agreement) <= 0.05, "whoever knows the tests gets around them"
    assert min(row.covered for row in table.values()) >= 0.93
    assert maximal.plain < 0.5
    for row in table.values():
        print(row)

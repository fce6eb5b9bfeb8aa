"""What the solver did is on record, and can be watched while it does it."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.design import bayes, compromise, extremal, family, mutual_information, regimes, several, staircase
from deniable.protocols import load
from deniable.protocols.profiles import OneBitCluster, ProfileGraph, ProfileMechanism, SmoothCategorical, SmoothOneBit
from deniable.trace import Step, Watch, highs, summary

P0, P1 = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]
CHAIN = ProfileGraph.chain([[0.2, 0.3, 0.5], [0.5, 0.3, 0.2], [0.6, 0.3, 0.1]])


@pytest.mark.parametrize(
    "design",
    [
        lambda: staircase(P0, P1, 1),
        lambda: family([(P0, P1), (P1, P0)], 1),
        lambda: several([P0, P1, [0.3, 0.4, 0.3]], 1),
        lambda: mutual_information(P0, 1),
        lambda: mutual_information(np.arange(1, 21) / 210, 1),
        lambda: bayes(P0, epsilon=1),
        lambda: bayes(P0, "absolute", epsilon=1, adjacency="line"),
        lambda: compromise([(P0, "zero-one"), (P1, "absolute")], epsilon=1, adjacency="line").shared,
    ],
)
def test_programs_leave_a_record(design):
    made = design()
    last = made.trace[-1]
    assert last.solver.startswith("HiGHS")
    assert last.status == "optimal"
    assert last.iterations >= 1
    assert 0 < last.seconds < made.seconds
    assert min(last.rows, last.columns, last.nonzeros) >= 3
    assert last.value == made.value
    assert last.solver in repr(made)
    assert f"{last.nonzeros:,} nonzeros" in repr(made)


def test_the_size_is_that_of_the_program():
    # All pairs of 4 inputs and guesses: a row an entry and one a row sum; entries and column minima are the columns.
    step = bayes([0.25] * 4, epsilon=1).trace[0]
    assert (step.rows, step.columns, step.nonzeros) == (16 + 4, 16 + 4, 2 * 16 + 4 * 4 + 4 * 4)
    # The 2^k program without its last column, all of whose entries count.
    step = staircase(P0, P1, 1).trace[0]
    assert (step.rows, step.columns, step.nonzeros) == (3, 7, 21)


def test_the_search_for_blocks_leaves_its_steps():
    design = extremal([0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.25, 0.45], 5)
    values = [step.value for step in design.trace]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(design.value, rel=1e-12)
    assert [step.status for step in design.trace] == ["better"] * (len(values) - 1) + ["optimal"]
    assert (design.trace[0].rows, design.trace[0].columns) == (5, 10)
    assert summary(design.trace).startswith(f"longest path: {len(values)} runs")


def test_profile_mechanisms_leave_a_record_that_is_no_part_of_their_identity():
    smooth = SmoothCategorical(CHAIN, 0.3)
    assert [step.status for step in smooth.trace] == ["optimal", "optimal"]
    assert "HiGHS" in repr(smooth)
    again = ProfileMechanism.of(load(smooth.spec()))
    assert again == smooth
    assert again.trace == ()
    assert "HiGHS" not in repr(again)
    assert OneBitCluster(ProfileGraph.chain([0.1, 0.9]), 1).trace == ()
    assert summary(()) == "no solver was needed"


def test_a_failure_is_on_record():
    watch = Watch()
    highs(np.ones(1), (np.ones((1, 1)), -np.ones(1)), None, (0, None), "highs", {}, watch, "nothing")
    assert watch.steps[0].status == "infeasible"
    assert watch.steps[0].value is None
    assert "infeasible after" in str(watch.steps[0])
    assert watch.steps[0].spec()["rows"] == 1
    assert Step("x", "optimal", 1, 0.5, 1, 2, 3).spec()["seconds"] == 0.5


def test_progress_says_what_is_done_and_never_goes_back():
    said = []
    design = extremal(*np.random.default_rng(1).dirichlet(np.ones(1600), 2), 1, progress=lambda *x: said.append(x))
    steps = [what for what, _ in said]
    assert any(what.startswith("step 1 of the search, 1,600 groups") for what in steps)
    for what in dict.fromkeys(steps):
        shares = [share for name, share in said if name == what]
        assert shares == sorted(shares)
    assert said[-1][1] == 1
    assert design.relative_gap < 1e-9
    assert any(what.startswith("proof: draft 1, relative gap") for what, _ in said)
    assert said[-1][0] == "proof: all columns, in long decimals"


def test_scans_and_programs_report_their_steps():
    said = []
    regimes(P0, P1, "kl", [1, 2, 4], progress=lambda *x: said.append(x))
    assert said[:3] == [(f"epsilon {i} of 3", i / 3) for i in (1, 2, 3)]
    assert any("randomized response starts" in what for what, _ in said)
    said.clear()
    bayes(P0, epsilon=1, progress=lambda *x: said.append(x))
    assert said[0] == ("solving: 12 x 12 program, 36 nonzeros", None)
    said.clear()
    pairs = ProfileGraph.clusters({"n": {"A": 0.1, "B": 0.9}, "s": {"C": 0.2, "D": 0.7}})
    SmoothOneBit(pairs, 0.5, progress=lambda *x: said.append(x))
    assert [entry for entry in said if entry[1] is not None] == [("component 1 of 2", 0), ("component 2 of 2", 0.5)]
    assert said[-1] == ("checking every edge with integers", None)

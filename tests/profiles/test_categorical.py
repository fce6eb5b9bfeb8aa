"""Smooth categorical: exact, never worse than randomized response, and what a broken channel looks like."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from deniable.errors import DeniableError
from deniable.protocols import GRR, load
from deniable.protocols.profiles import (
    KaryResponse,
    ProfileGraph,
    ProfileMechanism,
    SmoothCategorical,
    SmoothOneBit,
    mechanism,
    verify,
)
from deniable.protocols.profiles.mechanism import holds, repaired, round_rows
from deniable.protocols.profiles.smooth import _paper

pytestmark = pytest.mark.floats

TABLE_1 = {"P1": [0.2, 0.3, 0.4, 0.1], "P2": [0.3, 0.3, 0.3, 0.1], "P3": [0.4, 0.4, 0.1, 0.1]}
CHAIN = ProfileGraph.chain(TABLE_1)


def random_graph(seed, profiles, values, shape="chain", zeros=0.0):
    random = np.random.default_rng(seed)
    table = random.integers(1, 30, size=(profiles, values)) * (random.random((profiles, values)) >= zeros)
    table[:, 0] += 1
    return getattr(ProfileGraph, shape)([[Fraction(int(t), int(row.sum())) for t in row] for row in table])


@pytest.mark.parametrize("epsilon", ["1/1000000", "1/20", "1/2", "2", "10", "64"])
@pytest.mark.parametrize("shape", ["chain", "complete"])
def test_exact_and_never_worse_than_ldp(epsilon, shape):
    for seed in range(3):
        graph = random_graph(seed, 4, 4, shape, zeros=0.2)
        mechanism, ldp = SmoothCategorical(graph, epsilon), KaryResponse(graph, epsilon)
        assert mechanism.verdict
        assert ldp.verdict
        assert mechanism.largest <= ldp.largest
        assert verify(graph, mechanism.channels, epsilon).ratio == mechanism.ratio


def test_ldp_protects_every_graph_because_of_its_rows():
    ldp = KaryResponse(CHAIN, 1)
    assert all(channel.satisfies(1) for channel in ldp.channels)
    assert ldp.epsilon < 1  # these profiles overlap
    sure = ProfileGraph([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [(0, 1), (1, 2)])
    assert KaryResponse(sure, 1).epsilon == pytest.approx(1)  # these do not


def test_a_little_less_noise_is_refused():
    mechanism = SmoothCategorical(CHAIN, 0.2)
    share = Fraction(1, 10**6)
    less = [
        [[(1 - share) * Fraction(int(entry), 1 << 64) + share * (x == y) for y, entry in enumerate(row)]
         for x, row in enumerate(channel)]
        for channel in mechanism.table
    ]  # fmt: skip
    assert verify(CHAIN, mechanism, 0.2)
    assert not verify(CHAIN, less, 0.2)


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1, 5), Fraction(1)])
def test_the_solvers_floats_are_not_private_and_the_repair_costs_next_to_nothing(epsilon):
    part = CHAIN.whole
    draft = _paper(part, epsilon)
    assert not holds(part, round_rows(draft), epsilon)
    exact = repaired(part, draft, epsilon)
    assert holds(part, exact, epsilon)
    assert np.abs((exact / 2**64).astype(float) - draft).max() < 1e-9


def test_the_known_costs_of_the_papers_chain():
    # Computed independently with a general solver: category 3 costs more than the baseline at 0.05.
    assert SmoothCategorical(CHAIN, 0.05).costs[2] == pytest.approx(0.1583, abs=1e-4)
    assert KaryResponse(CHAIN, 0.05).costs == pytest.approx(0.1481, abs=1e-4)


def test_two_values_do_no_worse_than_flipping():
    graph = ProfileGraph.chain([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert SmoothCategorical(graph, 0.5).largest <= SmoothOneBit(graph, 0.5).largest + Fraction(1, 10**9)


def test_equal_profiles_cost_nothing_and_components_are_independent():
    same = ProfileGraph([[0.2, 0.3, 0.5]] * 3, [(0, 1), (1, 2)])
    mechanism = SmoothCategorical(same, "1/1000000")
    assert mechanism.largest == 0
    assert mechanism.in_the_clear == (0, 1, 2)
    extra = {"a": [0.1, 0.2, 0.3, 0.4], "b": [0.4, 0.3, 0.2, 0.1]}
    edges = [("P1", "P2"), ("P2", "P3")]
    both = SmoothCategorical(ProfileGraph(TABLE_1 | extra, [*edges, ("a", "b")]), 0.3)
    np.testing.assert_array_equal(both.table[:3], SmoothCategorical(CHAIN, 0.3).table)
    np.testing.assert_array_equal(both.table[3:], SmoothCategorical(ProfileGraph.chain(extra), 0.3).table)


def test_the_complete_form_is_the_same_program_as_its_edges():
    # A complete graph minus nothing, once as all pairs and once hidden behind a twin that makes it not complete.
    graph = random_graph(7, 4, 3, "complete")
    rows = [list(graph.profile(label)) for label in graph.labels]
    twin = ProfileGraph([*rows, rows[0]], [*graph.edges, (0, 4)])
    assert float(SmoothCategorical(graph, 0.4).largest) == pytest.approx(
        float(SmoothCategorical(twin, 0.4).largest), abs=1e-9
    )


def test_a_prior_and_a_cost_are_minimized():
    ldp, paper = KaryResponse(CHAIN, 0.2), SmoothCategorical(CHAIN, 0.2)
    cost = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))

    def price(mechanism, prior):
        chances = np.asarray(mechanism.table / 2**64, dtype=float)
        return float((np.asarray(prior)[:, None, None] * CHAIN.profiles[:, :, None] * chances * cost).sum())

    for prior in ([1, 1, 1], [10, 1, 0]):
        mechanism = SmoothCategorical(CHAIN, 0.2, prior=prior, cost=cost)
        assert mechanism.verdict
        assert price(mechanism, prior) <= min(price(ldp, prior), price(paper, prior)) + 1e-9


def test_specs_keep_the_integers_and_a_changed_one_is_refused():
    mechanism = SmoothCategorical(CHAIN, 0.2)
    assert ProfileMechanism.of(load(mechanism.spec())) == mechanism
    spec = mechanism.spec()
    one = 1 << 64
    spec["rows"] = [[str(one if x == y else 0) for y in range(4)] for x in range(4)] * 3
    with pytest.raises(DeniableError, match=r"do not hold epsilon 0\.2"):
        load(spec)
    spec["rows"] = [["1", "2", "3", "4"]] * 12
    with pytest.raises(DeniableError, match=r"sum to 2\^64"):
        load(spec)
    with pytest.raises(DeniableError, match="no profile mechanism 'Best'"):
        ProfileMechanism.of(load(mechanism.spec() | {"mechanism": "Best"}))
    with pytest.raises(DeniableError, match="no table of a profile mechanism, but a GRR"):
        ProfileMechanism.of(GRR(2, 1))
    for key, wrong in (
        ("profiles", [["1", "0", "0", "0"]]),
        ("edges", [[0, 7]]),
        ("edges", []),
        ("rows", []),
        ("read", "mean"),
        ("mechanism", 1),
        ("more", 1),
        ("domain", {"kind": "integers", "low": 0, "high": 3}),
    ):
        with pytest.raises(DeniableError):
            load(mechanism.spec() | {key: wrong})


def test_refusals():
    with pytest.raises(DeniableError, match="4 x 4 matrix"):
        SmoothCategorical(CHAIN, 1, cost=[[0, 1], [1, 0]])
    with pytest.raises(DeniableError, match="costs are not negative"):
        SmoothCategorical(CHAIN, 1, cost=-np.ones((4, 4)))
    with pytest.raises(DeniableError, match="must be positive"):
        SmoothCategorical(CHAIN, 0)
    rows = mechanism.Constraints()
    rows.add([0], [1.0], -1.0)
    with pytest.raises(mechanism.SolverError, match=r"did not finish the program of nothing .* try a larger epsilon"):
        mechanism.minimize(np.ones(1), rows, None, np.ones(1), "nothing")


def test_a_solver_that_cycles_is_stopped():
    # Found by random search: at tight tolerances the simplex method runs for ever on this one.
    twin = [
        4.737696625317853e-06,
        0.23471101309211084,
        0.7517002287788881,
        0.00034009088892866877,
        0.013243929543447087,
    ]
    third = [
        2.6181435058415946e-08,
        1.2637616795943074e-09,
        0.05145948514274963,
        0.9260846762855067,
        0.02245581112654697,
    ]
    last = [
        3.910954967267873e-10,
        0.0008131008111809435,
        0.9991864564736216,
        4.7835703334712335e-08,
        3.944883987169957e-07,
    ]
    graph = ProfileGraph.chain([twin, twin, third, last])
    mechanism = SmoothCategorical(graph, "1/10000")
    assert mechanism.largest <= KaryResponse(graph, "1/10000").largest


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["chain", "complete"])
def test_thirty_profiles_of_sixteen_values(shape):
    graph = random_graph(1, 30, 16, shape)
    mechanism = SmoothCategorical(graph, 0.5)
    # Rows that grow with the pairs of profiles would be 22,080 for the complete graph.
    assert max(step.rows for step in mechanism.trace) < 10_000
    assert mechanism.largest < KaryResponse(graph, 0.5).largest

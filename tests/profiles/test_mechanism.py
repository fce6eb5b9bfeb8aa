"""Devices draw from the stored integers, reports hold the output only, and the mix of profiles comes out right."""

from __future__ import annotations

import copy
import json
import pickle
from fractions import Fraction

import numpy as np
import pytest

from deniable.conformance.checks import accepts, draws_needed, tabulate
from deniable.errors import DeniableError
from deniable.protocols.profiles import (
    KaryResponse,
    OneBitCluster,
    ProfileGraph,
    ProfileMechanism,
    ProfileTable,
    SmoothCategorical,
    SmoothOneBit,
    Warner,
)
from deniable.protocols.tally import Tally
from deniable.randomness import Simulation, exhaust

GRAPH = ProfileGraph.chain(
    {
        "clerk": {"idle": 0.5, "print": 0.4, "compute": 0.1},
        "engineer": {"idle": 0.2, "print": 0.3, "compute": 0.5},
        "manager": {"idle": 0.6, "print": 0.15, "compute": 0.25},
    }
)
MECHANISM = SmoothCategorical(GRAPH, 1)
BITS = SmoothOneBit(ProfileGraph({"a": 0, "b": 0.5, "c": 1}, [("a", "b"), ("b", "c")]), 1)


@pytest.mark.parametrize("mechanism", [MECHANISM, BITS])
def test_one_value_follows_the_integers_exactly(mechanism):
    for i, profile in enumerate(mechanism.graph.labels):
        for x, value in enumerate(mechanism.graph.values):

            def release(bits, value=value, profile=profile, mechanism=mechanism):
                return mechanism.privatize(value, profile, bits)  # fmt: skip

            law = exhaust(release).law
            row = mechanism.table[i, x]
            assert law == {y: Fraction(int(t), 1 << 64) for y, t in zip(mechanism.graph.values, row, strict=True) if t}


def test_a_column_follows_the_same_law_and_the_test_would_see_another():
    # False-positive rate 1e-6 for each of the cells of the table.
    for i, profile in enumerate(GRAPH.labels):
        law, other = MECHANISM.laws[i], KaryResponse(GRAPH, 1).laws[i]
        n = max(20_000, draws_needed(law, other))
        values = np.random.default_rng(i).choice(3, p=GRAPH.profiles[i], size=n)
        names = np.array(GRAPH.values)[values]
        seen = MECHANISM._draw(names, profile, Simulation(i + 1))
        assert accepts(tabulate(seen, 3), law)
        assert not accepts(tabulate(seen, 3), other)
        for x in range(3):
            row = np.asarray(MECHANISM.table[i, x] / 2**64, dtype=float)
            assert accepts(tabulate(seen[values == x], 3), row)


def test_boundaries_at_zero_and_one():
    clear = SmoothCategorical(ProfileGraph([[0.2, 0.3, 0.5]] * 2, [(0, 1)]), 1)
    values = np.tile([0, 1, 2], 500)
    np.testing.assert_array_equal(clear.privatize(values, 0, Simulation(1)), values)


def test_kinds_of_input():
    assert isinstance(BITS.privatize(1, "a"), int)
    assert BITS.privatize([1, 0], "a").dtype == np.int64
    assert BITS.privatize(np.array([True, False]), ["a", "b"]).shape == (2,)
    assert MECHANISM.privatize("idle", "clerk") in GRAPH.values
    assert set(MECHANISM.privatize(["idle", "print"] * 50, "clerk")) <= set(GRAPH.values)
    assert BITS.privatize([], "a").size == 0


@pytest.mark.parametrize(
    ("values", "profiles", "message"),
    [
        (["idle", "secret"], "clerk", "value 1, a str, is not one of the 3 categories"),
        (["idle"], "intern", "among the profiles, value 0, a str, is not one of"),
        (["idle"] * 3, ["clerk"] * 2, "2 profiles for 3 values"),
        ([None], "clerk", "missing"),
    ],
)
def test_devices_refuse_without_repeating_the_value(values, profiles, message):
    with pytest.raises(DeniableError, match=message) as caught:
        MECHANISM.privatize(values, profiles)
    assert "secret" not in str(caught.value)
    assert "intern" not in str(caught.value)


def test_reports_and_tallies():
    values = ["idle", "print", "compute"] * 400
    reports = MECHANISM.report(values, "clerk", Simulation(1))
    assert np.asarray(reports).shape == (1200, 1)
    whole = MECHANISM.tally(reports)
    assert whole == MECHANISM.tally(reports[:500]) + MECHANISM.tally(reports[500:])
    assert whole.counts.sum() == whole.n == 1200
    with pytest.raises(DeniableError, match="1 of 2 reports are malformed"):
        MECHANISM.tally(np.array([[0], [3]], dtype=np.uint8))
    with pytest.raises(DeniableError, match="1 bytes, not 2"):
        MECHANISM.tally(np.zeros((1, 2), dtype=np.uint8))
    with pytest.raises(DeniableError, match="cannot be used here"):
        BITS.tally(reports)
    with pytest.raises(DeniableError, match="cannot be used here"):
        BITS.estimate(whole)


def test_the_estimate_is_unbiased_by_enumeration():
    left = MECHANISM.protocol._mix_weights.T
    np.testing.assert_allclose(left @ MECHANISM.laws.T, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(left.sum(axis=0), 1, atol=1e-10)


def test_the_estimate_and_its_error_bars_in_a_study():
    truth = np.array([3000, 5000, 2000])
    random = np.random.default_rng(8)
    profiles = np.repeat(GRAPH.labels, truth)
    names = np.array(GRAPH.values)
    found, spread = [], []
    for run in range(60):
        values = np.concatenate(
            [names[random.choice(3, p=p, size=n)] for p, n in zip(GRAPH.profiles, truth, strict=True)]
        )
        estimate = MECHANISM.estimate(MECHANISM.tally(MECHANISM.report(values, profiles, Simulation(run))))
        found.append(estimate.counts)
        spread.append(np.sqrt(estimate.noise))
    off = (np.mean(found, axis=0) - truth) / (np.mean(spread, axis=0) / np.sqrt(60))
    assert np.abs(off).max() < 5  # false positives: about 2e-6
    ratio = np.std(found, axis=0, ddof=1) / np.mean(spread, axis=0)
    assert ratio.min() > 0.6  # 60 runs: six standard errors are about 0.55
    assert ratio.max() < 1.55
    assert estimate.labels == GRAPH.labels


def test_fewer_profiles_than_values():
    graph = ProfileGraph([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.2, 0.6]], [(0, 1)])
    mechanism = SmoothCategorical(graph, 2)
    np.testing.assert_allclose(mechanism.laws @ mechanism.protocol._mix_weights, np.eye(2), atol=1e-10)


def test_what_cannot_be_told_is_refused():
    with pytest.raises(DeniableError, match="2 different outputs cannot tell the shares of 3 profiles"):
        BITS.estimate(BITS.tally(BITS.report([0, 1], "a")))
    same = OneBitCluster(ProfileGraph([0.3, 0.3], [(0, 1)]), 1)
    with pytest.raises(DeniableError, match=r"several ways \(rank 1\)"):
        same.estimate(same.tally(same.report([0, 1], 0)))
    assert MECHANISM.estimate(MECHANISM.tally(np.zeros((0, 1), dtype=np.uint8))).n == 0
    alike = OneBitCluster(ProfileGraph(["1/2", "500000001/1000000000"], [(0, 1)]), 1)
    with pytest.raises(DeniableError, match="no crowd is large enough"):
        alike.estimate(alike.tally(alike.report([0, 1], 0)))


# -- values ----------------------------------------------------------------------------------------------


def test_shares_of_values_by_the_channel_that_all_profiles_share_hold_for_any_values():
    """By enumeration, value by value: no law of the profiles is used."""
    for mechanism in (Warner(ProfileGraph.chain([0, "1/2"]), 1), KaryResponse(GRAPH, 1)):
        table = mechanism.protocol
        size = table.tally_size
        single = np.array([mechanism.values(table.tally(np.array([[y]], np.uint8))).counts for y in range(size)])
        for i in range(mechanism.graph.size):
            rows = np.asarray(mechanism.table[i] / 2**64, dtype=float)
            np.testing.assert_allclose(rows @ single, np.eye(size), atol=1e-9)
        assert mechanism.values(table.tally(np.array([[0]], np.uint8))).method == "unbiased"


def test_shares_of_values_through_the_mix_hold_if_values_follow_the_profiles():
    """By enumeration over the laws of the profiles; the variance is that of the reports, or larger."""
    table = MECHANISM.protocol
    singles = [table.values(table.tally(np.array([[y]], np.uint8))) for y in range(3)]
    single = np.array([one.counts for one in singles])
    assert singles[0].method == "through the mix of profiles"
    np.testing.assert_allclose(MECHANISM.laws @ single, GRAPH.profiles, atol=1e-9)
    shares = np.array([0.2, 0.5, 0.3])
    outputs = shares @ MECHANISM.laws
    crowd = 10**9
    found = table.values(Tally(table.fingerprint, crowd, np.rint(crowd * outputs).astype(np.int64)))
    np.testing.assert_allclose(found.frequencies, shares @ GRAPH.profiles, atol=1e-6)
    spread = outputs @ single**2 - (outputs @ single) ** 2
    shown = found.table().stderr ** 2 * crowd
    assert (shown >= spread * (1 - 1e-6)).all()
    assert table.worth(crowd).error ** 2 * crowd >= shown.max() * (1 - 1e-6)


def test_shares_of_values_in_a_study():
    """60 runs through the mix: off by 5 standard errors comes about 2e-6 often; half of the error would be seen."""
    truth = np.array([3000, 5000, 2000])
    meant = truth @ GRAPH.profiles
    random, names, found = np.random.default_rng(8), np.array(GRAPH.values), []
    for run in range(60):
        drawn = [names[random.choice(3, p=p, size=n)] for p, n in zip(GRAPH.profiles, truth, strict=True)]
        reports = MECHANISM.report(np.concatenate(drawn), np.repeat(GRAPH.labels, truth), Simulation(run))
        estimate = MECHANISM.values(MECHANISM.tally(reports))
        found.append(estimate.counts)
    shown = estimate.table().stderr * truth.sum()
    assert np.abs((np.mean(found, axis=0) - meant) / (shown / np.sqrt(60))).max() < 5
    assert (np.std(found, axis=0, ddof=1) < 1.4 * shown).all()


def test_shares_of_values_that_the_outputs_do_not_determine_are_refused():
    for graph in (
        ProfileGraph.chain([0, 0.2, 0.4, 0.6, 0.8, 1]),
        ProfileGraph.clusters({"n": {"A": 0, "B": 0.5}, "s": {"C": 0.4, "D": 1}}),
    ):
        table = ProfileTable(SmoothOneBit(graph, "1/2"))
        assert "ask each component of the graph in a question of its own" in table.worth().unreadable
        with pytest.raises(DeniableError, match="do not share one channel"):
            table.estimate(table.tally(table.privatize([{"profile": graph.labels[0], "value": 0}] * 3)))
    assert not ProfileTable(OneBitCluster(ProfileGraph.chain([0, 0.5, 1]), "1/2")).worth().unreadable


def test_closed_forms_keep_their_fingerprints():
    graph = ProfileGraph.clusters({"n": {"A": 0.1, "B": 0.2}, "s": {"C": 0.7, "D": "19/20"}})
    cluster = OneBitCluster(graph, "1/2")
    assert cluster.table[:, 0, 1].tolist() == [901273429981881058] * 2 + [3702864258578198118] * 2
    assert cluster.fingerprint == "c0a19a1974fb3a86abb72b5824b806e48cf7732cb08daed1d0ca9a1ae05ee679"
    assert OneBitCluster(graph, 0.5) == cluster
    assert OneBitCluster(graph, 0.6) != cluster


def test_identity_and_copies():
    assert pickle.loads(pickle.dumps(MECHANISM)) == MECHANISM
    assert copy.deepcopy(BITS) == BITS
    assert BITS != MECHANISM
    assert len({BITS, pickle.loads(pickle.dumps(BITS))}) == 1
    assert repr(BITS).startswith("<SmoothOneBit on 3 profiles, epsilon 1")
    assert "intern" not in repr(MECHANISM)


def test_one_load_for_every_kind_of_spec():
    import deniable as dn
    from deniable import protocols

    for spec in (MECHANISM.spec(), json.dumps(MECHANISM.spec()), json.dumps(MECHANISM.spec()).encode()):
        table = dn.load(spec)
        assert table == dn.Table(MECHANISM) == protocols.load(spec)
        assert ProfileMechanism.of(table) == MECHANISM
    assert dn.load(dn.GRR(3, 1).spec()) == dn.GRR(3, 1)
    for wrong, words in (("{", "not JSON"), ([1], "not the spec"), ({"kind": "table"}, "not the spec of a protocol")):
        with pytest.raises(DeniableError, match=words):
            dn.load(wrong)

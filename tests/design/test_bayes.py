"""Bayes-optimal mechanisms: known optima, universal optimality on the line, proofs that fail when they should."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from deniable import errors
from deniable.channels import Channel, Query, randomized_response, truncated_geometric, utility
from deniable.design import Certificate, bayes, compromise
from deniable.design.bayes import solve
from deniable.design.bayes_certificate import Relation, User, Users, proven_bound

pytestmark = pytest.mark.floats


def uniform(k):
    return np.full(k, 1 / k)


def monotone_loss(rng, k):
    """Grows with the distance from the truth, at a speed of its own for each truth and side."""
    table = np.zeros((k, k))
    for truth in range(k):
        table[truth + 1 :, truth] = np.cumsum(rng.exponential(size=k - truth - 1) * (rng.random(k - truth - 1) < 0.7))
        table[:truth, truth] = np.cumsum(rng.exponential(size=truth))[::-1]
    return table


def remapped(n, epsilon, prior, loss):
    return utility(truncated_geometric(n, epsilon), prior, loss=loss).value


# -- all pairs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.5", 1, 3])
@pytest.mark.parametrize("k", [2, 5, 12])
def test_uniform_prior_and_zero_one_loss_give_randomized_response(k, epsilon):
    design = bayes(uniform(k), epsilon=epsilon)
    response = randomized_response(k, epsilon)
    assert design.value == pytest.approx(utility(response, uniform(k), loss="zero-one").value, rel=1e-12)
    assert design.channel.rows == pytest.approx(response.rows, abs=1e-9)
    assert design.relative_gap < 1e-11
    assert design.channel.satisfies(epsilon)


def test_another_prior_is_served_better_than_by_randomized_response():
    prior = [0.45, 0.45, 0.1]
    design = bayes(prior, gain="identity", epsilon=1)
    assert round(design.value, 3) == 0.658
    assert design.bound >= design.value
    assert design.relative_gap < 1e-11
    assert round(utility(randomized_response(3, 1), prior).value, 3) == 0.614


def test_gain_and_loss_say_the_same():
    rng = np.random.default_rng(3)
    prior, gain = rng.dirichlet(np.ones(6)), rng.random((4, 6))
    won, lost = bayes(prior, gain=gain, epsilon=2), bayes(prior, 1 - gain, epsilon=2)
    assert won.value == pytest.approx(1 - lost.value, rel=1e-11)
    assert won.sense == "max"
    assert won.bound >= won.value
    assert lost.bound <= lost.value


def exact_loss(channel, user):
    """The expected loss of the best guesses; the floats of the user count as the numbers that they are."""
    prior = [Fraction(p) for p in user.prior]
    table = [[Fraction(v) for v in row] for row in user.table]
    columns = [[Fraction(int(c), channel.denominator) for c in column] for column in channel.numerators.T]
    best = (
        min(sum(p * c * v for p, c, v in zip(prior, column, row, strict=True)) for row in table) for column in columns
    )
    return sum(best)


def test_no_other_mechanism_beats_the_bound():
    rng = np.random.default_rng(4)
    for _ in range(20):
        k = int(rng.integers(2, 7))
        prior, loss = rng.dirichlet(np.ones(k)), rng.random((k, k))
        design = bayes(prior, loss, epsilon=1)
        assert design.relative_gap < 1e-9
        raw = np.exp(rng.uniform(0, 1, (k, k)) - 1)
        other = Channel.from_floats(raw / raw.sum(axis=1, keepdims=True), 1)
        # Both can be the loss of the same constant guess, so floats would decide by their last digit.
        (user,) = design.certificate.users.members
        assert exact_loss(other, user) >= Fraction(design.bound)
        assert utility(other, prior, loss=loss).value == pytest.approx(float(exact_loss(other, user)), rel=1e-12)
        assert utility(design.channel, prior, loss=loss, guesses=range(k)).value == pytest.approx(design.value)


# -- the line --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1, 3])
def test_the_geometric_mechanism_is_optimal_for_absolute_loss(epsilon):
    design = bayes(uniform(21), "absolute", epsilon=epsilon, adjacency="line")
    assert design.value == pytest.approx(remapped(20, epsilon, uniform(21), "absolute"), rel=1e-9)
    assert design.relative_gap < 1e-9
    assert design.channel.satisfies(epsilon, "line")
    assert design.realized_epsilon <= epsilon


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 100])
@pytest.mark.parametrize("epsilon", [0.1, 1])
def test_the_geometric_mechanism_is_optimal_for_large_counts(n, epsilon):
    design = bayes(uniform(n + 1), "absolute", epsilon=epsilon, adjacency="line")
    assert design.value == pytest.approx(remapped(n, epsilon, uniform(n + 1), "absolute"), rel=1e-8)
    assert design.relative_gap < 1e-8
    assert design.channel.satisfies(epsilon, "line")
    assert design.certificate.verify()


def test_universal_optimality_for_random_priors_and_monotone_losses():
    rng = np.random.default_rng(5)
    for number in range(40):
        n, epsilon = int(rng.integers(2, 12)), round(float(rng.uniform(0.1, 2)), 3)
        prior = rng.dirichlet(np.ones(n + 1) * (0.2 if number % 2 else 2))
        loss = monotone_loss(rng, n + 1)
        design = bayes(prior, loss, epsilon=epsilon, adjacency="line")
        assert design.value == pytest.approx(remapped(n, epsilon, prior, loss), rel=1e-8, abs=1e-10)
        assert design.value - design.bound <= 1e-9


def test_universal_optimality_needs_a_monotone_loss():
    rng = np.random.default_rng(6)
    worse = 0
    for _ in range(10):
        prior, loss = rng.dirichlet(np.ones(6)), rng.random((6, 6))
        design = bayes(prior, loss, epsilon=1, adjacency="line")
        assert design.relative_gap < 1e-9
        worse += remapped(5, 1, prior, loss) > design.value * (1 + 1e-4)
    assert worse >= 3


def test_an_anti_monotonic_gain():
    gain = -monotone_loss(np.random.default_rng(7), 9)
    prior = np.arange(1, 10) / 45
    design = bayes(prior, gain=gain, epsilon=0.7, adjacency="line")
    assert design.value == pytest.approx(utility(truncated_geometric(8, 0.7), prior, gain=gain).value, rel=1e-9)


def test_the_floats_of_the_solver_fail_the_verifier_that_the_repaired_channel_passes():
    inputs = tuple(range(21))
    design = bayes(uniform(21), "absolute", epsilon=1, adjacency="line")
    relation = design.certificate.relation
    user = User.of(uniform(21), "absolute", None, inputs, None)
    for centres in (list(inputs), None):
        raw = solve(Users((user,)).cost, relation, Fraction(1), centres)
        floats = Channel.from_floats(raw.rows)
        assert not floats.satisfies(1, "line")
        assert not relation.holds(floats, Fraction(1))
    assert design.channel.satisfies(1, "line")
    assert relation.holds(design.channel, Fraction(1))


# -- graphs and metrics ----------------------------------------------------------------------------------


def test_a_metric_is_reduced_to_the_pairs_that_matter():
    by_metric = bayes(uniform(8), "absolute", epsilon=0.5, adjacency=lambda a, b: abs(a - b))
    by_line = bayes(uniform(8), "absolute", epsilon=0.5, adjacency="line")
    assert by_metric.value == pytest.approx(by_line.value, rel=1e-12)
    assert len(by_metric.certificate.relation.edges) == 7
    assert by_metric.channel.satisfies("0.5", lambda a, b: abs(a - b))
    cube = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    bits = bayes(uniform(8), epsilon=1, adjacency="hamming", inputs=cube)
    assert len(bits.certificate.relation.edges) == 12
    each = np.e / (1 + np.e)
    assert bits.value == pytest.approx(1 - each**3, rel=1e-9)
    assert bits.relative_gap < 1e-9


@pytest.mark.parametrize("adjacency", [{"line": 2}, [(i, (i + 1) % 7) for i in range(7)], [(0, 1), (1, 2), (4, 5)], []])
def test_graphs_are_proved(adjacency, tmp_path):
    rng = np.random.default_rng(8)
    for _ in range(5):
        design = bayes(rng.dirichlet(np.ones(7)), rng.random((5, 7)), epsilon=1, adjacency=adjacency)
        assert design.gap < 1e-9
        assert design.channel.satisfies(1, adjacency)
        design.certificate.save(tmp_path / "proof.json")
        assert Certificate.load(tmp_path / "proof.json").verify()


def test_unconnected_answers_are_told_apart():
    design = bayes(uniform(4), epsilon="0.5", adjacency=[("a", "b")], inputs=list("abcd"))
    odds = np.exp(0.5)
    assert design.value == pytest.approx(0.5 / (1 + odds), rel=1e-9)
    assert design.channel.epsilon == np.inf
    assert design.realized_epsilon <= 0.5


# -- certificates ----------------------------------------------------------------------------------------


def failing(certificate):
    return [check.name for check in certificate.verify().checks if not check.holds]


@pytest.mark.parametrize("adjacency", ["all", "line", [(0, 1), (1, 2), (2, 3), (3, 0)]])
def test_false_claims_fail(adjacency):
    rng = np.random.default_rng(9)
    loss = 1 - np.eye(4) + 0.1 * rng.random((4, 4))
    good = bayes([0.3, 0.25, 0.25, 0.2], loss, epsilon=1, adjacency=adjacency).certificate
    assert failing(good) == []
    assert good.rigor == "proved"
    assert failing(replace(good, value=good.value * 1.0001)) == ["value"]
    assert failing(replace(good, value=good.value * (1 - 1e-9))) == ["value"]
    assert failing(replace(good, bound=good.bound + 1e-9)) == ["bound"]
    assert failing(replace(good, epsilon=Fraction(9, 10)))[:1] == ["ratios"]
    higher = tuple(p + 1e-4 for p in good.prices)
    assert failing(replace(good, prices=higher, bound=good.bound + 3e-4)) == ["bound"]
    assert "rows" in failing(replace(good, prices=good.prices[:-1]))
    renamed = Channel.from_integers(good.channel.numerators, good.channel.denominator)
    if renamed.outputs != good.channel.outputs:
        assert failing(replace(good, channel=renamed)) == ["value"]
    if good.flows:
        assert failing(replace(good, flows=((0, 0, -1.0), *good.flows[1:]))) == ["bound"]
    if good.roots:
        assert failing(replace(good, roots=())) == ["bound"]


@pytest.mark.parametrize("adjacency", ["all", "line", [(0, 1), (1, 2), (2, 3), (3, 0), (1, 3)], [(0, 1), (2, 3)]])
def test_whatever_the_prices_the_bound_is_below_the_optimum(adjacency):
    rng = np.random.default_rng(12)
    tight = 0
    for _ in range(30):
        loss = 1 - np.eye(4) + 0.1 * rng.random((4, 4))
        good = bayes(rng.dirichlet(np.full(4, 5.0)), loss, epsilon=1, adjacency=adjacency).certificate
        assert good.bound <= good.value
        scale = 10.0 ** rng.uniform(-9, -1)
        prices = np.array(good.prices) + scale * rng.normal(size=4)
        flows = [(e, y, abs(f + scale * rng.normal())) for e, y, f in good.flows]
        roots = [[int(rng.choice(part)) for _ in range(4)] for part in good.relation.components if good.roots]
        bound = proven_bound(good.users.costs_below(), prices.tolist(), good.relation, Fraction(1), flows, roots)
        assert bound <= Fraction(good.value)
        tight += float(bound) > good.value - 100 * scale
    assert tight >= 25


def test_a_tampered_file_fails_or_is_refused(tmp_path):
    path = tmp_path / "proof.json"
    bayes([0.5, 0.3, 0.2], "absolute", epsilon=1, adjacency="line").certificate.save(path)
    content = json.loads(path.read_text())
    assert Certificate.load(content).verify()
    assert not Certificate.load({**content, "value": "0.1"}).verify()
    assert not Certificate.load({**content, "edges": None}).verify()
    for key, wrong in (
        ("edges", [[0, 9, "1"]]),
        ("edges", [[0, 1]]),
        ("sense", "best"),
        ("prices", ["x", "y", "z"]),
        ("prices", ["nan", "0", "0"]),
        ("users", []),
        ("flows", [["a", 0, "1"]]),
    ):
        with pytest.raises(errors.DeniableError):
            Certificate.load({**content, key: wrong})


def test_the_verifier_is_right_about_ratios_between_its_rational_bounds():
    relation = Relation(2, ((0, 1, Fraction(1)),))
    tight = Channel([["731058578630004879/1000000000000000000", "268941421369995121/1000000000000000000"]] * 1 + [
        ["268941421369995121/1000000000000000000", "731058578630004879/1000000000000000000"]])  # fmt: skip
    assert relation.holds(tight, Fraction(1)) == tight.satisfies(1)
    assert not relation.holds(Channel([[1, 0], [0, 1]]), Fraction(1))


# -- refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"prior": [0.5, 0.6]}, "sums to 1.1"),
        ({"prior": [1.5, -0.5]}, "negative"),
        ({"prior": []}, "non-empty"),
        ({"prior": [0.5, 0.5], "epsilon": 0}, "must be positive"),
        ({"prior": [0.5, 0.5], "loss": "absolute", "gain": "identity"}, "not both"),
        ({"prior": [0.5, 0.5], "loss": [[1.0]]}, "2 columns"),
        ({"prior": [0.5, 0.5], "loss": [[1, np.nan]]}, "NaN"),
        ({"prior": [0.5, 0.5], "adjacency": [(0, 7)]}, "not an input"),
        ({"prior": [0.5, 0.5], "adjacency": "ring"}, "no adjacency"),
        ({"prior": {"a": 0.5, "b": 0.5}, "loss": "absolute"}, "does not work on these labels"),
    ],
)
def test_refusals(arguments, words):
    with pytest.raises(errors.DeniableError, match=words):
        bayes(**{"epsilon": 1, **arguments})


def test_small_cases():
    assert bayes([1.0], epsilon=1).value == 0
    assert bayes({"yes": 0.9, "no": 0.1}, epsilon=0.1).channel.outputs == ("yes",)
    far = bayes([0.5, 0.5], "absolute", epsilon=64, adjacency="line")
    assert far.gap < 1e-7
    assert far.channel.satisfies(64)
    close = bayes([0.5, 0.5], epsilon="1e-6")
    assert close.value <= 0.5
    assert close.relative_gap < 1e-9


def test_a_solver_that_fails_is_named(monkeypatch):
    import sys

    monkeypatch.setattr(sys.modules["deniable.design.bayes"], "solve", lambda *_: None)
    with pytest.raises(errors.ChannelError, match="solver gave up"):
        bayes([0.5, 0.5], epsilon=1)


# -- several users: nothing is lost on the line, something on a graph with a cycle (Brenner and Nissim) ----


def test_nothing_is_lost_by_sharing_on_the_line():
    rng = np.random.default_rng(10)
    for _ in range(15):
        k = int(rng.integers(2, 7))
        pair = [(rng.dirichlet(np.ones(k)), monotone_loss(rng, k)) for _ in range(2)]
        found = compromise(pair, epsilon=round(float(rng.uniform(0.3, 2)), 3), adjacency="line")
        assert found.most < 1e-9
        assert found.shared.certificate.verify()


@pytest.mark.parametrize("function", [sum, lambda records: Fraction(sum(records), len(records))])
def test_a_sum_or_an_average_has_cycles_and_no_mechanism_for_everybody(function):
    query = Query.on_records(2, [0, 1, 2], function)
    assert query.has_cycle
    pair = [([0.5, 0, 0, 0.5, 0], "zero-one"), ([0, 0.5, 0.5, 0, 0], "zero-one")]
    found = compromise(pair, epsilon=1, adjacency=query)
    assert found.least > 1e-3
    assert found.most - found.least < 1e-9
    for design in (found.shared, *found.alone):
        assert design.certificate.verify()
        assert design.channel.satisfies(1, query.graph)
    # Without the multipliers of the edges a spanning tree would have to do, and does not.
    assert failing(replace(found.shared.certificate, flows=())) == ["bound"]


def test_a_ring_of_four_and_its_line():
    pair = [([0.5, 0, 0.5, 0], "identity"), ([0, 0.5, 0, 0.5], "identity")]
    ring = compromise(pair, epsilon=1, adjacency=[(0, 1), (1, 2), (2, 3), (3, 0)], gains=True)
    line = compromise(pair, epsilon=1, adjacency="line", gains=True)
    assert ring.least > 1e-3
    assert ring.most - ring.least < 1e-9
    assert line.most < 1e-9
    assert line.least == 0
    assert "sharing costs between" in str(ring)


def test_refusals_of_a_compromise():
    with pytest.raises(errors.ShapeError, match="at least one user"):
        compromise([], epsilon=1)
    with pytest.raises(errors.ShapeError, match="combinations"):
        compromise([(uniform(10), "zero-one")] * 6, epsilon=1)

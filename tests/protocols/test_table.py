"""Any exact channel as a protocol: what was designed is what is drawn, and what is read out covers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable import exact
from deniable.channels import Channel
from deniable.channels.witness import related_factor
from deniable.errors import ChannelError, DomainError, SpecError
from deniable.protocols import Table, load
from deniable.randomness import Simulation
from deniable.surveys import Survey

P0, P1 = [Fraction(1, 5), Fraction(3, 10), Fraction(1, 2)], [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]


def tables() -> dict[str, Table]:
    uneven = Channel([["1/2", "1/3", "1/6"], ["1/6", "1/2", "1/3"]], ["yes", "no"], ["a", "b", "c"])
    return {
        "design": Table(dn.design.extremal(P0, P1, 1, "kl")),
        "geometric": Table(dn.channels.truncated_geometric(4, "1/4")),
        "more outputs than answers": Table(uneven),
        "response": Table(dn.channels.randomized_response(5, 1)),
    }


@pytest.mark.parametrize("name", ["design", "geometric", "more outputs than answers", "response"])
def test_the_bytes_have_the_law_of_the_channel(name: str) -> None:
    table = tables()[name]
    channel = table.channel()
    assert channel.ratio == table.ratio
    assert [list(row) for row in channel.numerators] == [list(row) for row in table.matrix.numerators]
    assert channel.epsilon <= float(table.epsilon) + 1e-11
    assert load(table.spec()) == table
    assert load(table.spec()).fingerprint == table.fingerprint


def test_unbiased_by_enumeration_and_the_variance_is_the_formula() -> None:
    for name in ("geometric", "more outputs than answers", "response"):
        table = tables()[name]
        rows = table.matrix.rows
        size = len(table.outputs)
        single = np.array([table.estimate(table.tally(np.array([[y]], dtype=np.uint8))).counts for y in range(size)])
        assert np.abs(rows @ single - np.eye(len(rows))).max() < 1e-9
        spread = rows @ single**2 - np.eye(len(rows))
        assert np.abs(spread - table._spread).max() < 1e-9
        others = spread[~np.eye(len(rows), dtype=bool)]
        assert table.worst_variance(1, population=False) == pytest.approx(others.max())


def test_randomized_response_as_a_table_is_what_it_is_as_a_protocol() -> None:
    protocol = dn.GRR(5, 1)
    table = Table(protocol.channel())
    assert table.ratio == protocol.ratio
    assert table.noise(1000) == pytest.approx(protocol.noise(1000), rel=1e-9)
    assert table.attack == pytest.approx(protocol.attack, rel=1e-9)
    assert table.poisoning == pytest.approx(protocol.poisoning, rel=1e-9)


@pytest.mark.parametrize("name", ["geometric", "more outputs than answers"])
def test_intervals_cover(name: str) -> None:
    """300 runs at 95 %: fewer than 90 % would come less than once in 10,000; at half of the error 67 % are left."""
    table = tables()[name]
    size, n, runs = len(table.rows), 1000, 300
    shares = np.arange(1, size + 1) / np.arange(1, size + 1).sum()
    random = np.random.default_rng(4)
    covered = np.zeros(size)
    for run in range(runs):
        values = [table.domain.labels[i] for i in random.choice(size, n, p=shares)]
        ends = table.estimate(table.tally(table.privatize(values, Simulation(run)))).interval()
        covered += (ends[:, 0] <= shares) & (shares <= ends[:, 1])
    assert (covered >= 0.9 * runs).all()
    assert (covered < runs).any()


def test_what_cannot_be_told_apart_has_the_whole_range() -> None:
    table = tables()["design"]
    assert not table.is_invertible
    estimate = table.estimate(table.tally(table.privatize([0, 1, 2] * 500, Simulation(2))))
    assert "several solutions" in estimate.method
    assert estimate.interval()[0].tolist() == [0, 1]
    assert estimate.frequencies.sum() == pytest.approx(1)


def test_equal_rows_cannot_be_inverted_although_the_matrix_is_square() -> None:
    rows = [["1/2", "1/4", "1/4"], ["1/2", "1/4", "1/4"], ["1/4", "1/4", "1/2"]]
    table = Table(Channel(rows, ["a", "b", "c"], ["x", "y", "z"]))
    assert not table.is_invertible
    estimate = table.estimate(table.tally(table.privatize(["a", "c"] * 500, Simulation(2))))
    assert estimate.interval()[:2].tolist() == [[0, 1], [0, 1]]


def test_more_than_epsilon_is_refused() -> None:
    coin = Channel([["3/4", "1/4"], ["1/4", "3/4"]], ["yes", "no"], ["yes", "no"])
    with pytest.raises(ChannelError, match=r"epsilon 1.09861, more than 1: state a larger one"):
        Table(coin, 1)
    with pytest.raises(ChannelError, match="tells some answers apart for certain"):
        Table(Channel([["1", "0"], ["1/2", "1/2"]], ["yes", "no"], ["a", "b"]))
    with pytest.raises(ChannelError, match="made of a channel or a design"):
        Table("coin")
    with pytest.raises(DomainError, match="cannot be answers"):
        Table(Channel([["3/4", "1/4"], ["1/4", "3/4"]], [("a", 1), ("b", 2)], ["x", "y"]))


def test_a_delta_is_decided_exactly_over_all_sets_of_outputs() -> None:
    """The factor at which delta holds is that of the worst of all sets, listed one by one; below it nothing holds."""
    rows = [[50, 30, 19, 1], [20, 50, 30, 0], [25, 25, 25, 25]]
    channel = Channel.from_integers(rows, 100, ["a", "b", "c"], [0, 1, 2, 3])
    sets = [[y for y in range(4) if chosen >> y & 1] for chosen in range(1, 16)]
    for delta in (Fraction(1, 4), Fraction(3, 10), Fraction(2, 5), Fraction(9, 10)):
        factors = [Fraction(1)]
        for p in rows:
            for q in rows:
                for chosen in sets:
                    above, below = (sum(row[y] for y in chosen) for row in (p, q))
                    assert below or above <= 100 * delta
                    if below:
                        factors.append((above - 100 * delta) / below)
        table = Table(channel, delta=delta)
        assert table.ratio == max(factors)
        assert table.guarantee == ("any", table.epsilon, delta, "any two answers")
        if table.ratio > 1:
            with pytest.raises(ChannelError, match="state a larger one"):
                Table(channel, exact.log(table.ratio) - 1e-9, delta=delta)
            assert Fraction(channel.delta(table.epsilon)) <= delta
    with pytest.raises(ChannelError, match=r"apart for certain with a probability above delta 0\.24"):
        Table(channel, 60, delta="0.24")


def test_a_table_with_a_delta_is_the_whole_protocol() -> None:
    table = Table(
        Channel.from_integers([[97, 2, 1], [2, 98, 0]], 100, ["yes", "no"], ["y", "n", "sure"]), 4, delta="1/100"
    )
    assert table.ratio == Fraction(97, 2)
    assert load(table.spec()) == table
    assert table.spec()["delta"] == "1/100"
    assert related_factor(table.channel(), table.related(), table.delta) == table.ratio
    estimate = table.estimate(table.tally(table.privatize(["yes", "no", "no"] * 400, Simulation(3))))
    assert estimate.frequencies == pytest.approx([1 / 3, 2 / 3], abs=5 * table.error(1200))
    for wrong in ("0", "1/101", "1", "2/200", 0):
        with pytest.raises(dn.errors.DeniableError):
            load(table.spec() | {"delta": wrong})
    with pytest.raises(ChannelError, match="below 1"):
        Table(table.matrix, 4, delta=1)
    with pytest.raises(ChannelError, match="compares every two rows"):
        Table(dn.channels.randomized_response(200, 1), delta="1/100")


@pytest.mark.parametrize(
    "change",
    [
        {"rows": [["3", "1"], ["1", "4"]]},
        {"rows": [["3", "1"]]},
        {"rows": [["3", "-1"], ["1", "1"]]},
        {"rows": [[3, 1], [1, 3]]},
        {"rows": [["6", "2"], ["2", "6"]]},
        {"rows": [["9", "1"], ["1", "9"]]},
        {"outputs": ["yes"]},
        {"outputs": ["yes", "yes"]},
        {"certificate": "abc"},
        {"more": 1},
    ],
    ids=lambda change: next(iter(change)) + str(len(str(change))),
)
def test_altered_specs_are_refused(change: dict[str, Any]) -> None:
    spec = Table(Channel([["3/4", "1/4"], ["1/4", "3/4"]], ["yes", "no"], ["yes", "no"]), "1.1").spec()
    assert load(spec).name == "Table"
    with pytest.raises(dn.errors.DeniableError):
        load(spec | change)


def test_a_proof_becomes_a_question() -> None:
    design = dn.design.extremal(P0, P1, 1, "kl")
    proof = design.certificate.spec()
    draft = {
        "name": "drug",
        "questions": [{"id": "effect", "text": "How do you feel?", "answers": {"table": proof}}],
    }
    survey = Survey.from_draft(draft)
    protocol = survey["effect"].protocol
    assert isinstance(protocol, Table)
    assert protocol.epsilon == 1
    assert protocol.matrix == design.channel
    assert protocol.certificate is not None
    assert Survey.from_spec(survey.spec()) == survey
    wrong = {**proof, "value": "9"}
    with pytest.raises(SpecError, match="proof"):
        Survey.from_draft({**draft, "questions": [{**draft["questions"][0], "answers": {"table": wrong}}]})
    tally = survey.tally(survey.privatize({"effect": [0, 1, 2] * 20}))
    assert tally["effect"].n == 60

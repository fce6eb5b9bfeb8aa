"""Any exact channel as a protocol: what was designed is what is drawn, and what is read out covers."""

from __future__ import annotations

import inspect
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable import exact
from deniable.channels import Channel
from deniable.channels.adjacency import related_factor
from deniable.design import Certificate
from deniable.errors import ChannelError, DeniableError, DomainError, MismatchError, SpecError
from deniable.protocols import Table, load
from deniable.protocols.law import Guarantee
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
        assert table._worst_variance(1, population=False) == pytest.approx(others.max())


def test_randomized_response_as_a_table_is_what_it_is_as_a_protocol() -> None:
    protocol = dn.GRR(5, 1)
    table = Table(protocol.channel())
    assert table.ratio == protocol.ratio
    assert table.worth(1000).noise == pytest.approx(protocol.worth(1000).noise, rel=1e-9)
    assert table.worth().guess == pytest.approx(protocol.worth().guess, rel=1e-9)
    assert table.worth().moved == pytest.approx(protocol.worth().moved, rel=1e-9)


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
        assert table.guarantee == Guarantee("any", table.epsilon, delta, "any two answers")
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
    assert related_factor(table.channel(), table.law().related(), table.delta) == table.ratio
    estimate = table.estimate(table.tally(table.privatize(["yes", "no", "no"] * 400, Simulation(3))))
    assert estimate.frequencies == pytest.approx([1 / 3, 2 / 3], abs=5 * table.worth(1200).error)
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


# -- hypotheses ------------------------------------------------------------------------------------------


P_BEFORE = {"well": "1/2", "so": 0.3, "badly": 0.2}


def test_a_designed_table_brings_its_laws_and_decides() -> None:
    design = dn.design.extremal({"well": 0.5, "so": 0.3, "badly": 0.2}, {"well": 0.2, "so": 0.3, "badly": 0.5}, 1)
    table = Table(design)
    assert table.laws is not None
    assert (table.laws.names, table.laws.weights) == (("H0", "H1"), ((5, 3, 2), (2, 3, 5)))
    assert load(table.spec()) == table
    assert load(table.spec()).fingerprint == table.fingerprint
    assert "laws" not in Table(design.channel, 1).spec()
    renamed = Table(design, laws={"as before": P_BEFORE, "worse": {"badly": 0.5, "so": 0.3, "well": 0.2}})
    assert renamed.laws == replace(table.laws, names=("as before", "worse"))
    bits = Simulation(5)
    for share, name in ((0.5, "H0"), (0.2, "H1")):
        answers = ["well"] * round(1000 * share) + ["so"] * 300 + ["badly"] * round(1000 * (0.7 - share))
        tally = table.tally(table.privatize(answers, bits))
        found = table.decide(tally)
        assert (found.favoured, found.protocol, found.n) == (name, "Table", 1000)
        assert table.worth().decide(tally, 0.05).to_dict() == found.to_dict()
        assert table.decide(tally, {"x": [0.5, 0.3, 0.2], "y": [0.5, 0.2, 0.3]}).outcome in ("none", "undecided")
    silent = Table(design.channel, 1)
    counted = silent.tally(silent.privatize(["well", "so"], bits))
    assert silent.worth().decide(counted) is None
    with pytest.raises(MismatchError, match=r"decide\(tally, laws\)"):
        silent.decide(counted)
    with pytest.raises(MismatchError):
        table.decide(counted)


@pytest.mark.parametrize("goal", ["guess", "stein", "chernoff"])
def test_proofs_bring_their_laws(goal: str) -> None:
    laws = {"a": ["1/2", "3/10", "1/5"], "b": ["1/5", "1/2", "3/10"], "c": ["1/4", "1/4", "1/2"]}
    read = {name: [Fraction(share) for share in law] for name, law in laws.items()}
    design = dn.design.several(read, 1, goal=goal)
    for found in (Table(design).laws, Certificate.load(design.certificate.spec()).hypotheses):
        assert found is not None
        assert found.weights == ((5, 3, 2), (2, 5, 3), (1, 1, 2))
    assert Table(design).laws.names == ("a", "b", "c")


def test_designs_without_hypotheses_bring_none() -> None:
    family = [([0.5, 0.5], [0.4, 0.6]), ([0.3, 0.7], [0.2, 0.8])]
    for design in (dn.design.mutual_information([0.5, 0.5], 1), dn.design.family(family, 1)):
        assert Table(design).laws is None
        assert design.certificate.hypotheses is None


@pytest.mark.parametrize(
    ("laws", "words"),
    [
        ([{"name": "a", "weights": ["1", "2"]}], "at least two laws"),
        ([{"name": "a", "weights": ["1", "2"]}, {"name": "a", "weights": ["2", "1"]}], "stands twice"),
        ([{"name": "a", "weights": ["1", "2"]}, {"name": "b", "weights": ["0", "0"]}], "not all zero"),
        ([{"name": "a", "weights": ["1", "2", "3"]}, {"name": "b", "weights": ["2", "1", "3"]}], "3 answers"),
        ([{"name": "a", "weights": ["1", "2"]}, {"name": "b", "weights": ["1", "-2"]}], "not negative"),
        ([{"name": "a", "weights": ["1", 2]}, {"name": "b", "weights": ["1", "2"]}], "decimal digits"),
        ([{"name": "a", "weights": ["1", "2"], "prior": 1}, {"name": "b", "weights": ["1", "2"]}], "name and weights"),
        ([{"name": "a", "weights": ["2", "4"]}, {"name": "b", "weights": ["2", "1"]}], "canonical|differ|form"),
        ({"a": ["1", "2"]}, "name and weights"),
        ([{"name": str(i), "weights": ["1", str(i)]} for i in range(65)], "at most 64"),
    ],
)
def test_laws_that_are_none_are_refused(laws: Any, words: str) -> None:
    spec = Table(Channel([["3/4", "1/4"], ["1/4", "3/4"]], ["yes", "no"], ["yes", "no"]), "1.1").spec()
    with pytest.raises(DeniableError, match=words):
        load({**spec, "laws": laws})


def test_a_draft_carries_the_laws_of_its_proof() -> None:
    proof = dn.design.extremal([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 1, inputs=["well", "so", "badly"]).certificate.spec()

    def made(**more: Any) -> Table:
        question = {"id": "effect", "text": "How do you feel?", "answers": {"table": proof, **more}}
        protocol = Survey.from_draft({"name": "e", "questions": [question]})["effect"].protocol
        assert isinstance(protocol, Table)
        return protocol

    assert made().laws.names == ("H0", "H1")
    assert made(hypotheses=["no effect", "effect"]).laws.names == ("no effect", "effect")
    with pytest.raises(SpecError, match="list of names"):
        made(hypotheses="effect")
    with pytest.raises(SpecError, match="unknown key"):
        made(hypothesis=["no effect", "effect"])


def test_the_signature_names_every_parameter():
    assert list(inspect.signature(Table).parameters) == ["mechanism", "epsilon", "certificate", "delta", "laws", "more"]

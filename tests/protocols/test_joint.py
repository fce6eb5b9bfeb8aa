"""Columns that are asked together: the whole record's epsilon, unbiased tables whose errors are exact, and refusals."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from deniable import Attributes, Integers, Interval, Records, Simulation, plan
from deniable.errors import DomainError, LabelError, MismatchError, NumberError, SpecError
from deniable.exact import exp_at_least
from deniable.protocols import GRR, OUE, Tally, load
from deniable.results import Crosstab
from tests.documents import rows_of

PEOPLE = Records({"smoke": ["yes", "no"], "age": Integers(1, 3), "warm": Interval(0, 1)})
SMALL = Attributes(PEOPLE, 1, ask="pairs", cells={"warm": 2})


def test_no_report_tells_more_than_epsilon_about_a_whole_record() -> None:
    asked = [
        Attributes({"a": 2, "b": 2, "c": 2}, 1, ask=ask)
        for ask in (1, "pairs", "triples", ["a", ("b", "c")], [("a", "b"), ("a", "b", "c")])
    ]
    for protocol in asked:
        channel = protocol.channel()
        assert len(channel.inputs) == 8
        assert channel.ratio == protocol.ratio
        assert exp_at_least(Fraction(1), channel.ratio)


def test_sampling_plus_fake_data_is_caught_by_the_same_comparison() -> None:
    """RS+FD reports all columns, one of them true at ln(d (e - 1) + 1) and the others made up, and claims epsilon 1.

    The enumeration of the tuple shows what it is: with two columns of two answers, 1.49.
    """
    amplified = GRR(2, str(np.log(2 * (np.e - 1) + 1))).channel()
    law = {}
    for record in product(range(2), repeat=2):
        for sent in product(range(2), repeat=2):
            law[record, sent] = sum(
                Fraction(1, 2) * amplified.probability(record[true], f"{sent[true]:02x}") * Fraction(1, 2)
                for true in range(2)
            )
    ratio = max(
        law[one, sent] / law[two, sent] for one, _ in law for two, _ in law for sent in product((0, 1), repeat=2)
    )
    assert not exp_at_least(Fraction(1), ratio)
    assert float(np.log(float(ratio))) == pytest.approx(1.49, abs=0.005)


def test_tables_are_unbiased_and_their_sums_have_exact_errors() -> None:
    """Over all reports of one group, by enumeration: the mean of every sum of cells, and its variance."""
    protocol = Attributes({"a": 2, "b": 3}, 1, ask="pairs")
    (_, inner) = protocol.groups[0]
    channel = inner.channel()
    shares = np.array([0.1, 0.2, 0.3, 0.05, 0.25, 0.1])
    tallies = [inner.tally(np.array([list(bytes.fromhex(str(output)))], dtype=np.uint8)) for output in channel.outputs]
    chances = shares @ channel.rows
    crowd = 10**12
    counts = np.rint(crowd * (chances @ np.array([tally.counts for tally in tallies]))).astype(np.int64)
    whole = protocol.estimate(Tally(protocol.fingerprint, crowd, [crowd, *counts]))
    one_by_one = [protocol.estimate(Tally(protocol.fingerprint, 1, [1, *tally.counts])) for tally in tallies]
    for names in (("a", "b"), ("b",), ("a",), ("b", "a")):
        found = whole.table(*names)
        values = np.array([one.table(*names).frequencies for one in one_by_one])
        spread = chances @ values**2 - (chances @ values) ** 2
        assert np.allclose(found.frequencies, chances @ values, atol=1e-9)
        assert np.allclose(found.stderr**2 * crowd, spread, rtol=1e-6)
    true = shares.reshape(2, 3)
    assert np.allclose(whole.table("b", "a").array, true.T)
    assert np.allclose(whole.shares("b").frequencies, true.sum(axis=0))


def test_columns_in_several_tables_are_put_together() -> None:
    random = np.random.default_rng(1)
    n = 60_000
    smoke = random.random(n) < 0.3
    table = {"smoke": np.where(smoke, "yes", "no"), "age": np.where(smoke, 1, 3), "warm": random.random(n)}
    found = SMALL.estimate(SMALL.tally(SMALL.privatize(table, Simulation(2))))
    assert found.kind == "joint"
    assert list(found.parts) == ["smoke & age", "smoke & warm", "age & warm"]
    both, alone = found.shares("smoke"), found.parts["smoke & age"].over("smoke")
    assert both.n == alone.n + found.parts["smoke & warm"].n
    assert both.stderr[0] < alone.stderr[0]
    # 4 standard errors: wrong once in 16,000 for each of six figures
    errors = np.abs(found.table("smoke", "age").array - [[0.3, 0, 0], [0, 0, 0.7]]) / 0.02
    assert errors.max() < 4
    assert abs(both.frequencies[0] - 0.3) < 4 * both.stderr[0]
    assert found.table("smoke", "age").independent().rejected(1e-6)
    assert not found.table("age", "warm").independent().rejected(1e-4)
    turned = found.table("age", "smoke")
    assert turned.independent().p_value == pytest.approx(found.table("smoke", "age").independent().p_value)
    assert np.allclose(turned.interval()[1], found.table("smoke", "age").interval()[3])
    assert np.allclose(turned.consistent().array, found.table("smoke", "age").consistent().array.T)
    assert found.table("warm").labels == ["0 to 0.5", "0.5 to 1"]
    assert len(found.table()) == 6 + 4 + 6
    assert rows_of(found.to_dict())[0]["group"] == "smoke & age"
    assert isinstance(found.consistent().parts["smoke & age"], Crosstab)


def test_numbers_are_cut_into_cells() -> None:
    protocol = Attributes({"age": Integers(17, 90), "sleep": Interval(0, 24), "sex": ["f", "m"]}, 1, ask="pairs")
    assert protocol.cells == (8, 8, 2)
    age = protocol._axes[0]
    places = np.arange(74)
    assert np.array_equal(age.of_many(places), [age.of(place) for place in range(74)])
    assert age.labels[0] == "17 to 26"
    assert age.labels[-1] == "82 to 90"
    assert [age.of(place) for _, place in age.inputs()] == list(range(8))
    finer = Attributes({"age": Integers(17, 90), "sex": ["f", "m"]}, 1, ask="pairs", cells={"age": 74})
    assert finer.groups[0].protocol.domain.size == 148  # type: ignore[attr-defined]


def test_the_choice_inside_has_the_smallest_exact_error() -> None:
    protocol = Attributes({"a": 6, "b": 6, "c": 2, "d": 2}, 1, ask="pairs")
    for name, (inner, _) in protocol.worth(1).parts.items():
        size = inner.domain.size  # type: ignore[attr-defined]
        others = [kind(size, 1).variance(1, 1 / size) for kind in (GRR, OUE)]
        assert inner.variance(1, 1 / size) <= min(others) * 1.0001, name  # type: ignore[attr-defined]


def test_the_planner_compares_sampling_and_splitting_of_pairs() -> None:
    made = plan(PEOPLE, epsilon=1, n=20_000, read="pairs")
    assert made.best.worth().read == "pairs"
    assert "1 of 3 combinations" in made.reason
    assert "split over all 3" in made.reason
    assert made.best.split_error(20_000) > made.best.worth(20_000).error  # type: ignore[attr-defined]
    assert plan(PEOPLE, epsilon=1, n=20_000, read="triples").best.worth().read == "triples"
    with pytest.raises(DomainError, match="pairs"):
        plan(Records({"a": 2}), epsilon=1, n=100, read="pairs")


def test_triples_are_asked_for_where_there_are_enough_people() -> None:
    asked = {n: Attributes({"a": 3, "b": 4, "c": 2, "d": 3}, 1, people=n, ask="best") for n in (10_000, 10**9)}
    assert [one.worth().read for one in asked.values()] == ["pairs", "triples"]
    random, n = np.random.default_rng(3), 50_000
    columns = {name: random.integers(0, size, n) for name, size in {"a": 3, "b": 4, "c": 2}.items()}
    alone = Attributes({"a": 3, "b": 4, "c": 2}, 1, ask="triples")
    far = []
    for seed in range(20):
        found = alone.estimate(alone.tally(alone.privatize(columns, Simulation(seed)))).table("a", "b", "c")
        far.append(np.abs(found.array - 1 / 24).sum() / 2)
    assert np.mean(far) == pytest.approx(alone.table_distance(n), rel=0.15)  # 24 cells, 20 times: 5 standard errors


def test_what_is_no_view_is_refused() -> None:
    for ask, cells, wrong, words in (
        ([("smoke", "hours")], None, DomainError, "no column 'hours'"),
        ([("smoke", "age"), ("age", "smoke")], None, SpecError, "same columns"),
        ([()], None, SpecError, "different columns"),
        ("pairs", {"smoke": 1}, NumberError, "cut into"),
        ("pairs", {"weight": 2}, DomainError, "no column 'weight'"),
        ("pairs", {"age": 4}, NumberError, "cut into"),
        (1, {"warm": 2}, NumberError, "asked alone"),
        (4, None, NumberError, "no 4 of them"),
    ):
        with pytest.raises(wrong, match=words):
            Attributes(PEOPLE, 1, ask=ask, cells=cells)  # type: ignore[arg-type]
    many = Records({f"q{i}": 2 for i in range(60)})
    with pytest.raises(NumberError, match="list those"):
        Attributes(many, 1, ask="triples")
    with pytest.raises(NumberError, match="fewer cells"):
        Attributes({"a": 1000, "b": 1000}, 1, ask="pairs", cells={"a": 1000, "b": 1000})
    spec = SMALL.spec()
    for change in ({"views": [[0, 1], [0, 2]]}, {"views": [[1, 0], [0, 2], [1, 2]]}, {"cells": [2, 3]}, {"views": 3}):
        with pytest.raises((SpecError, NumberError)):
            load(spec | change)
    with pytest.raises(SpecError, match="called the same"):
        Attributes({"a": 2, "b": 2, "a & b": 2}, 1, ask=["a & b", ("a", "b")])
    found = SMALL.estimate(SMALL.empty())
    assert found.n == 0
    assert found.table("age").n == 0
    assert found.notes
    with pytest.raises(LabelError, match="no group"):
        found.table("smoke", "age", "warm")
    with pytest.raises(MismatchError, match="two columns"):
        found.table("age").independent()


@pytest.mark.slow
@pytest.mark.parametrize("ask", ["pairs", "triples"])
def test_intervals_of_unbiased_cells_cover(ask: str) -> None:
    """Of 95 % intervals 93 to 97 percent hold the population's share: over cells, columns and 150 collections."""
    random = np.random.default_rng(5)
    protocol = Attributes({"a": 3, "b": 4, "c": 2}, 1, ask=ask)
    law = random.dirichlet(np.full(24, 0.5))
    held = []
    for seed in range(150):
        drawn = np.unravel_index(random.choice(24, 9000, p=law), (3, 4, 2))
        reports = protocol.privatize(dict(zip("abc", drawn, strict=True)), Simulation(seed))
        found = protocol.estimate(protocol.tally(reports))
        for names, rest in ((("a", "b"), 2), (("a",), (1, 2)), (("c", "a"), 1)):
            true = law.reshape(3, 4, 2).sum(axis=rest)
            ends = found.table(*names).interval()
            true = (true.T if names == ("c", "a") else true).reshape(-1)
            held.append(float(np.mean((ends[:, 0] <= true) & (true <= ends[:, 1]))))
    assert 0.93 < np.mean(held) < 0.97

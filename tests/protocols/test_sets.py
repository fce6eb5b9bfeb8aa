"""Sets of items and numbers by key: levels of whole sets, what breaks them, estimates and their errors."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deniable as dn
from benchmarks.sets import pckv_grr_variances
from deniable.domains import Interval, SetColumn, Sets
from deniable.errors import DomainError, MismatchError, NumberError, SpecError
from deniable.exact import exp_at_least
from deniable.files import privatize_file
from deniable.protocols import CollisionSets, ItemSets, KeyValue, SubsetSets
from deniable.protocols.sets.item_sets import best_law
from deniable.protocols.sets.key_value import _key_variances
from deniable.protocols.sets.law import SetProtocol
from deniable.randomness import Simulation, exhaust
from deniable.results import Estimate
from deniable.results.sets import TopShares

LEVELS = ["0.01", "0.5", 1, 2, 8]


def shopping(n: int, d: int, seed: int) -> SetColumn:
    """Sets in which item i has about the share 0.6 / (i + 1), and items 0 and 1 occur together more often than not."""
    rng = np.random.default_rng(seed)
    held = rng.random((n, d)) < 0.6 / np.arange(1, d + 1)
    held[:, 1] |= held[:, 0] & (rng.random(n) < 0.5)
    rows, items = np.nonzero(held)
    return SetColumn(np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]), items)


# -- what a report gives away --------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", LEVELS)
@pytest.mark.parametrize(
    "make",
    [
        lambda e: CollisionSets(dn.Sets(4, 2), e, cells=5, cohorts=2),
        lambda e: SubsetSets(dn.Sets(4, 2), e, subset_size=2),
        lambda e: ItemSets(dn.Sets(3, 2), e),
        lambda e: KeyValue(2, dn.Interval(0, 1), e, at_most=1),
    ],
)
def test_the_level_of_whole_sets_is_the_one_asked_for(make: Any, epsilon: Any) -> None:
    protocol = make(epsilon)
    channel = protocol.channel()
    columns = channel.numerators.T.tolist()
    worst = max(Fraction(int(max(column)), int(min(column))) for column in columns)
    assert exp_at_least(protocol.epsilon, worst)
    assert worst == protocol.ratio
    assert math.log(worst) > float(protocol.epsilon) * (1 - 1e-9)


@pytest.mark.parametrize("kind", [CollisionSets, SubsetSets])
def test_a_set_above_the_limit_is_a_mixture_of_smaller_ones(kind: type[SetProtocol]) -> None:
    protocol = next(iter(kind.examples()))
    size, most = protocol.domain.items.size, protocol.domain.at_most
    whole = exhaust(lambda bits: protocol.draw(tuple(range(size)), bits)).law
    parts = [exhaust(lambda bits, x=x: protocol.draw(x, bits)).law for x in combinations(range(size), most)]  # type: ignore[misc]
    for report, weight in whole.items():
        assert weight == sum(law.get(report, Fraction(0)) for law in parts) / len(parts)


def test_one_dummy_for_all_breaks_the_level() -> None:
    """Padding and sampling with a single dummy symbol, at the level that sampling is said to allow."""

    def level(dummies: int) -> float:
        e, d, most = math.e, 3, 2
        symbols = d + dummies
        inner = most * (e - 1) + 1
        rows = []
        for size in range(most + 1):
            for x in combinations(range(d), size):
                padded = [*x, *(d + min(i, dummies - 1) for i in range(most - size))]
                law = np.ones(symbols)
                for one in padded:
                    law[one] += (inner - 1) / most
                rows.append(law / law.sum())
        matrix = np.array(rows)
        return float(np.log(matrix.max(axis=0) / matrix.min(axis=0)).max())

    assert level(2) == pytest.approx(1)
    assert level(1) == pytest.approx(math.log(2 * (math.e - 1) + 1))  # 1.49, not 1
    spec = SubsetSets(dn.Sets(3, 2), 1, subset_size=1).spec()
    with pytest.raises(SpecError):
        dn.load(spec | {"dummies": 1})
    assert SubsetSets(dn.Sets(3, 2), 1, subset_size=1).elements == 5


def test_linear_hash_functions_count_sums_of_items_that_nobody_has() -> None:
    """With parities of the bits of an item for its hash, the cell of 1 xor 2 xor 4 follows from the cells of the three.

    It is among them exactly if two of them are the same: then a set has fewer cells, and q is not one over the cells.
    """
    e, cells, most = math.e, 4, 3
    b = e / (most * e + cells - most)
    supports = []
    for rows in product(range(8), repeat=2):

        def cell(item: int, rows: Any = rows) -> int:
            return sum(((row & item).bit_count() & 1) << place for place, row in enumerate(rows))

        held = {cell(1), cell(2), cell(4)}
        rest = (1 - len(held) * b) / (cells - len(held))
        supports.append(b if cell(7) in held else rest)
    assert abs(np.mean(supports) - 1 / cells) > 0.02  # item 7, which is in no set, seems to be in fewer than none
    # The hash functions used here: of two items, and of an item that is the sum of two others.
    protocol = CollisionSets(dn.Sets(64, 2), 1)
    found = protocol._places(_numbers([1, 2, 4, 7])[None, :], protocol._seeds[:, None])
    for i, j in combinations(range(4), 2):
        same = int((found[:, i] == found[:, j]).sum())
        mean = protocol.cohorts / protocol.cells
        assert abs(same - mean) < 5 * math.sqrt(mean)  # false alarm below 1e-6
    with pytest.raises(SpecError):
        dn.load(protocol.spec() | {"hash": "linear"})


def _numbers(elements: list[int]) -> Any:
    from deniable.protocols.sets.collision import _numbers as numbers

    return numbers(np.array(elements))


@pytest.mark.parametrize(("d", "most", "cells"), [(4, 2, 3), (3, 2, 4)])
def test_over_all_hash_functions_p_and_q_are_exact(d: int, most: int, cells: int) -> None:
    protocol = CollisionSets(dn.Sets(d, most), 1, cells=cells, cohorts=1)
    b = protocol.p
    functions = list(product(range(cells), repeat=d + most))
    for x in [(), (0,), (0, 1)]:
        padded = [*x, *range(d, d + most - len(x))]
        for v in range(d):
            total = Fraction(0)
            for h in functions:
                held = {h[one] for one in padded}
                total += b if h[v] in held else (1 - len(held) * b) / (cells - len(held))
            assert total / len(functions) == (protocol.p if v in x else protocol.q)


# -- estimates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "name"), [(12, "SubsetSets"), (5000, "CollisionSets")])
def test_items_sizes_and_pairs_are_within_their_errors(d: int, name: str) -> None:
    """Five standard errors, about 400 figures: false alarm below 3e-4 over all seeds, and the seed is fixed."""
    domain = dn.Sets(d, 6)
    protocol = ItemSets(domain, 3, largest=2, weights=[1, 1])
    assert protocol.groups[0].protocol.name == name
    people = shopping(30_000, min(d, 60), 1)
    found = protocol.estimate(protocol.tally(protocol.draw_many(people, Simulation(5))))
    truth = protocol.worth().truth([people[i] for i in range(len(people))])
    assert np.abs((found.frequencies - truth) / found.errors(population=False)).max() < 5
    assert found.n == 30_000
    assert found.sizes is not None
    sizes = np.bincount(np.minimum(people.sizes, 6), minlength=7) / len(people)
    assert np.abs((found.sizes.frequencies - sizes) / found.sizes.errors(population=False)).max() < 5
    pairs = found.pairs
    true = np.mean([{0, 1} <= set(people[i]) for i in range(0, len(people), 10)])
    row = pairs.of(0, 1)
    assert abs(row["value"] - true) < 5 * row["stderr"] + 0.02
    assert row["lift"] > 1
    assert pairs.matrix([0, 1, 2])[0, 1] == pytest.approx(row["value"])
    assert pairs.top(3).labels[0] == "0 & 1" == pairs.likely(3).labels[0]
    # The best guess is nearer to the truth than the unbiased shares.
    dense = np.zeros((len(people), 60), dtype=np.float32)
    dense[people.rows, people.items] = 1
    both = dense.T @ dense / len(people)
    wanted = np.array([both[i, j] if j < 60 else 0.0 for i, j in pairs.sets])  # type: ignore[operator, index]
    assert np.square(pairs.blended - wanted).sum() < np.square(pairs.frequencies - wanted).sum()


def test_what_common_items_and_dummies_add_to_a_cell_is_taken_off() -> None:
    """Nobody has items 1 to 99, all have item 0: without the correction its collisions would be in every estimate."""
    protocol = CollisionSets(dn.Sets(100, 4), 4, cohorts=16)
    column = SetColumn.of([(0,)] * 200_000)
    tally = protocol.tally(protocol.draw_many(column, Simulation(1)))
    found = protocol.estimate(tally)
    z = (found.frequencies[1:]) / found.errors(population=False)[1:]
    assert np.abs(z).max() < 5
    assert found.frequencies[0] == pytest.approx(1, abs=5 * found.errors()[0])
    table = tally.counts.reshape(protocol.cohorts, protocol.cells).astype(float)
    (plain,) = protocol._looked_up([table], np.arange(100))
    biased = (plain / tally.n - float(protocol.q)) / float(protocol.p - protocol.q)
    assert np.abs(biased[1:] / found.errors(population=False)[1:]).max() > 8  # the test can fail


def test_chosen_items_have_intervals_that_allow_for_the_choice() -> None:
    """1,000 figures that are all alike: the largest look large by chance. Of 4,000 chosen, 95 in 100 are covered."""
    rng = np.random.default_rng(3)
    inside, plain = [], []
    for _ in range(200):
        true = 0.02 * rng.random(300)
        whole = Estimate(list(range(300)), 1000, 1000 * (true + 0.01 * rng.normal(size=300)), np.full(300, 100.0), "x")
        top = TopShares.of(whole, 20)
        share = np.array([true[int(label)] for label in top.labels])
        ends = top.interval(population=False)
        inside.append((ends[:, 0] <= share) & (share <= ends[:, 1]))
        each = Estimate.interval(top, population=False)
        plain.append((each[:, 0] <= share) & (share <= each[:, 1]))
    assert 0.93 < np.mean(inside) < 0.97
    assert np.mean(plain) < 0.8


def test_the_law_is_chosen_by_its_variance() -> None:
    for d, most, epsilon in product((10, 40, 200), (2, 6), (Fraction(1, 2), Fraction(2), Fraction(4))):
        domain = dn.Sets(d, most)
        chosen = best_law(domain, epsilon)
        rivals = [CollisionSets(domain, epsilon), SubsetSets(domain, epsilon)]
        least = min(one.usual_variance for one in rivals)
        assert chosen.usual_variance <= 1.05 * least
        # Padding and sampling with GRR, the subset of size one, is never better.
        assert chosen.usual_variance <= 1.05 * SubsetSets(domain, epsilon, subset_size=1).usual_variance


def test_what_was_subsampled_is_said() -> None:
    domain = dn.Sets(["mail", "maps", "music"], at_most=1)
    protocol = ItemSets(domain, 4)
    found = protocol.estimate(protocol.tally(protocol.privatize([{"mail", "maps", "music"}] * 5000, Simulation(1))))
    assert any("come out too small" in note for note in found.notes)
    assert found.frequencies.sum() == pytest.approx(1, abs=0.1)
    with pytest.raises(MismatchError, match="largest=2"):
        _ = found.pairs
    whole = ItemSets(dn.Sets(["mail", "maps", "music"], at_most=3), 4)
    assert not any("too small" in note for note in whole.estimate(whole.tally(whole.privatize([set()] * 9))).notes)


def test_what_one_report_tells_is_said() -> None:
    protocol = ItemSets(dn.Sets(["mail", "maps", "music"], at_most=2), 1, largest=2)
    reports = [protocol.privatize([{"mail"}], Simulation(seed)) for seed in range(20)]
    tallies = [protocol.tally(one) for one in reports]
    about_items = [bool(protocol.tallies(tally)[0].n) for tally in tallies]
    items, pairs = (protocol.estimate(tallies[about_items.index(which)]).notes for which in (True, False))
    assert any("of the people (0% to 100%) have 2 items or more" in note for note in items)
    assert pairs[0] == "too few people to tell anything about single items: the reports so far (1) are all about sets"
    assert not any("no reports yet" in note for note in pairs)


def test_shares_and_means_of_keys_are_within_their_errors() -> None:
    """Five standard errors of 40 figures; Fieller's intervals hold the means of rare keys, too."""
    rng = np.random.default_rng(4)
    n, keys = 20_000, 20
    answers = [
        {key: 1 + 4 * rng.random() * (key + 1) / keys for key in range(keys) if rng.random() < 0.5 / (1 + key / 4)}
        for _ in range(n)
    ]
    protocol = KeyValue(keys, dn.Interval(1, 5, unit="stars"), 2, at_most=8)
    found = protocol.estimate(protocol.tally(protocol.privatize(answers, Simulation(2))))
    truth = protocol.worth().truth(answers)
    assert np.abs((found["share"].frequencies - truth[:keys]) / found["share"].stderr).max() < 5
    ends = found["mean"].interval(0.9999)
    assert ((ends[:, 0] <= truth[keys:]) & (truth[keys:] <= ends[:, 1])).all()
    assert found["mean"].unit == "stars"
    expected = [4 * protocol.mean_error(n, share) for share in truth[:5]]
    assert found["mean"].stderr[:5] == pytest.approx(expected, rel=0.15)
    usual, some = protocol.worth(n).parts["mean"][0], 8 / keys  # what a draft tells is of a key of the average share
    assert usual.worth(n).error == pytest.approx(4 * protocol.mean_error(n, some))
    # People have several keys: consistent shares lie between 0 and 1, and need not add up to one.
    consistent = found.consistent()["share"].frequencies
    assert consistent == pytest.approx(np.clip(found["share"].frequencies, 0, 1))
    assert consistent.sum() > 2
    nothing = protocol.estimate(protocol.empty())
    assert nothing["mean"].interval().tolist() == [[1.0, 5.0]] * keys


def test_shares_and_means_of_keys_are_never_worse_than_with_pckv_grr_variances() -> None:
    for keys, most in ((2, 1), (10, 3), (100, 2), (100, 8), (100, 16), (3000, 4), (20_000, 8)):
        for epsilon in ("0.1", "1", "2", "4", "8"):
            law = KeyValue(keys, dn.Interval(0, 1), epsilon, at_most=most).inner
            for share in (0.0, most / keys, 1.0):
                rival = pckv_grr_variances(keys, most, float(epsilon), share)
                assert all(x <= y for x, y in zip(_key_variances(law, share), rival, strict=True))
    # At a large epsilon and many keys the collision mechanism would be: the law is chosen for it.
    many = dn.Sets(dn.Integers(0, 39_999), 8)
    assert _key_variances(CollisionSets(many, 8), 0.0)[0] > 1.3 * pckv_grr_variances(20_000, 8, 8.0, 0.0)[0]


# -- answers -----------------------------------------------------------------------------------------


def test_sets_are_read_from_every_form_of_table(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    draft = {
        "name": "apps",
        "epsilon": "2",
        "questions": [
            {"id": "apps", "text": "Which?", "answers": {"multiple": ["mail", "maps", 3], "at_most": 2}},
            {"id": "stars", "text": "How good?", "answers": {"keys": ["a", "b"], "low": 1, "high": 5, "at_most": 2}},
        ],
        "people": 1000,
    }
    survey = dn.Survey.from_draft(draft)
    sets: list[Any] = [["mail", 3], [], ["maps"]]
    texts: list[Any] = [["mail"], [], ["maps"]]
    numbers: list[Any] = [{"a": 1.5}, {}, {"a": 2.0, "b": 9.0}]
    lines = [json.dumps({"apps": x, "stars": y}) for x, y in zip(sets, numbers, strict=True)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    cells = [("mail; 3", "a: 1.5"), ("", ""), ('["maps"]', '{""a"": 2, ""b"": 9}')]
    rows = ['"' + '","'.join((x.replace('["maps"]', '[""maps""]'), y)) + '"' for x, y in cells]
    (tmp_path / "a.csv").write_text("\n".join(["apps,stars", *rows]))
    maps = pa.array([list(one.items()) for one in numbers], type=pa.map_(pa.string(), pa.float64()))
    parquet.write_table(pa.table({"apps": pa.array(texts), "stars": maps}), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        assert privatize_file(survey, tmp_path / name, tmp_path / "reports.parquet") == 3
    domain = survey["apps"].protocol.domain
    assert [domain.encode(sets)[i] for i in range(3)] == [(0, 2), (), (1,)]
    assert [domain.encode(pa.array(texts))[i] for i in range(3)] == [(0,), (), (1,)]
    assert domain.reader()("mail; 3") == ["mail", 3]
    stars = survey["stars"].protocol.domain
    assert stars.encode(maps)[2] == ((0, 2.0), (1, 5.0))
    (tmp_path / "bad.csv").write_text("apps,stars\nmail,\nsecret,\n")
    with pytest.raises(DomainError, match="row 2"):
        privatize_file(survey, tmp_path / "bad.csv", tmp_path / "reports2.parquet")


def test_domains_of_sets_refuse_what_they_cannot_hold() -> None:
    for items, most in ((["a", "b"], 0), (["a", "b"], 3), (["a", "b"], True), (dn.Interval(0, 1), 1)):
        with pytest.raises(DomainError):
            dn.Sets(items, most)
    with pytest.raises(DomainError, match="two numbers"):
        dn.KeyNumbers(["a", "b"], dn.Interval(0, 1), 1).encode_one([("a", 1), ("a", 2)])
    with pytest.raises(NumberError):
        ItemSets(dn.Sets(9, 2), 1, largest=3)
    with pytest.raises(SpecError):
        dn.Survey.from_draft({"name": "x", "questions": [{"id": "q", "text": "t", "answers": {"multiple": ["a"]}}]})


def test_a_plan_and_a_simulation_know_sets() -> None:
    found = dn.plan(dn.Sets(30, 4), epsilon=1, n=5000)
    assert found.best.name == "ItemSets"
    assert "rare item" in found.reason
    study = found.best.simulate([[0, 1], [2], []] * 400, runs=3)
    assert study.figures().shape == (3, 30)


def test_shares_of_cut_sets_say_wherever_they_stand_what_they_are_of() -> None:
    """Of a larger set some items are drawn, so that no form of the table calls the shares those of the people."""
    apps = Sets(["mail", "maps", "music", "news"], at_most=2)
    everything = [["mail", "maps", "music", "news"]] * 300
    for protocol in (ItemSets(apps, 4, largest=1), ItemSets(apps, 4, largest=2)):
        found = protocol.estimate(protocol.tally(protocol.privatize(everything, Simulation(1))))
        assert found.frequencies.max() < 0.8  # the truth is 1
        for estimate in (found, found.consistent(), found.top(2)):
            forms = (str(estimate), estimate._repr_html_(), estimate.to_csv(), json.dumps(estimate.to_dict()))
            assert all("of reported items" in form for form in forms)
        assert not found.method.startswith("unbiased")
    whole = ItemSets(Sets(["mail", "maps"], at_most=2), 4, largest=1)
    found = whole.estimate(whole.tally(whole.privatize([["mail"]] * 10, Simulation(1))))
    assert "of reported items" not in str(found)
    stars = KeyValue(["mail", "maps", "music"], Interval(1, 5, unit="stars"), 4, at_most=1)
    rated = stars.estimate(stars.tally(stars.privatize([{"mail": 5, "maps": 1}] * 100, Simulation(1))))
    assert "of reported items" in rated.to_csv()
    assert "of reported items" in str(rated)

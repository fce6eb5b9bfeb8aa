"""One attribute of several: the law of the groups, and the read-out of each attribute with its error."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from deniable.domains import Categories, Integers, Interval, Records, Strings
from deniable.errors import DomainError, LabelError, MismatchError, NumberError, ReportError, SpecError
from deniable.planning import plan
from deniable.protocols import (
    CMS,
    GRR,
    OLH,
    OUE,
    Attributes,
    Guarantee,
    Law,
    OneBitMean,
    SubsetSelection,
    Tally,
    Window,
    load,
)
from deniable.protocols.traits import says
from deniable.randomness import Simulation
from deniable.results import Estimate, Mean, Several
from tests.documents import rows_of

HABITS = Records({"smoke": ["yes", "no"], "bread": 6, "sleep": Interval(0, 24, unit="hours")})


def small() -> Attributes:
    return Attributes.of({"a": GRR(["x", "y"], 1), "b": OUE(3, "1/2")}, {"a": 1, "b": 3})


def people(n: int, random: np.random.Generator) -> dict[str, Any]:
    return {
        "smoke": random.choice(["yes", "no"], n, p=[0.3, 0.7]),
        "bread": random.choice(6, n, p=[0.4, 0.25, 0.15, 0.1, 0.07, 0.03]),
        "sleep": np.clip(random.normal(7, 2, n), 0, 24),
    }


def test_a_group_comes_as_often_as_its_weight_says_and_has_its_own_law() -> None:
    protocol = small()
    channel = protocol.channel()
    assert channel.ratio == protocol.ratio == max(group.protocol.ratio for group in protocol.groups)
    answers = protocol.groups[0].protocol.channel()
    for row, (first, _) in enumerate(channel.inputs):
        for output in answers.outputs:
            chance = Fraction(int(channel.numerators[row][channel.outputs.index(f"00{output}")]), channel.denominator)
            own = answers.numerators[answers.inputs.index(first)][answers.outputs.index(output)]
            assert chance == Fraction(1, 4) * Fraction(int(own), answers.denominator)


def test_the_estimate_of_each_attribute_is_unbiased_by_enumeration() -> None:
    protocol = Attributes.of({"a": OUE(3, 1), "b": Window(Interval(0, 8), 1, positions=3, width=2)}, {"a": 2, "b": 1})
    channel = protocol.channel()
    for row, truth in enumerate(channel.inputs):
        sums = [np.zeros(3), np.zeros(1)]
        for output, weight in zip(channel.outputs, channel.numerators[row], strict=True):
            report = np.frombuffer(bytes.fromhex(output), dtype=np.uint8)[None, :]
            for place, tally in enumerate(protocol.tallies(protocol.tally(report))):
                if tally.n:
                    found = protocol.groups[place].protocol.estimate(tally)
                    value = found.frequencies if isinstance(found, Estimate) else np.array([found.value])
                    sums[place] += float(Fraction(int(weight), channel.denominator)) * value
        means = [total / float(chance) for total, chance in zip(sums, protocol.chances, strict=True)]
        assert np.allclose(means[0], np.eye(3)[truth[0]], atol=1e-9)
        assert np.allclose(means[1], float(truth[1]), atol=1e-9)


@pytest.fixture(scope="module")
def studies() -> list[tuple[Several, dict[str, Any]]]:
    """200 collections of 1,500 people, each with the truth among those who answered."""
    protocol, random = Attributes(HABITS, 4, people=1500), np.random.default_rng(7)
    found = []
    for run in range(200):
        table = people(1500, random)
        result = protocol.estimate(protocol.tally(protocol.privatize(table, Simulation(run))))
        own = {"smoke": np.mean(table["smoke"] == "yes"), "bread": np.mean(table["bread"] == 0)}
        found.append((result, own | {"sleep": np.mean(table["sleep"])}))
    return found


TRUTH = {"smoke": 0.3, "bread": 0.4, "sleep": 7.0}


def covered(studies: Any, name: str, population: bool, narrower: float = 1.0) -> int:
    hits = 0
    for result, answered in studies:
        rows = result.shares(name).table(0.95, population=population)
        truth = TRUTH[name] if population else answered[name]
        half = narrower * (rows.high[0] - rows.low[0]) / 2
        hits += abs(truth - (rows.high[0] + rows.low[0]) / 2) <= half
    return hits


@pytest.mark.parametrize("name", TRUTH)
@pytest.mark.parametrize("population", [True, False], ids=["population", "respondents"])
def test_intervals_cover(studies: Any, name: str, population: bool) -> None:
    """Of 200 intervals at 95 percent fewer than this cover with probability 1e-5 only; too narrow ones are seen."""
    least = stats.binom.ppf(1e-5, 200, 0.95)
    assert covered(studies, name, population) >= least
    if population:  # as if all 1,500 people had answered about each of the three attributes
        assert covered(studies, name, population, narrower=3**-0.5) < least


@pytest.mark.parametrize("name", ["smoke", "bread"])
def test_who_was_not_drawn_is_missing_among_those_who_answered_too(studies: Any, name: str) -> None:
    """Without this part of the error, intervals about those who answered are too narrow."""
    least, hits = stats.binom.ppf(1e-5, 200, 0.95), 0
    protocol = Attributes(HABITS, 4, people=1500)
    for result, answered in studies:
        part = result.shares(name)
        inner = protocol.groups[HABITS.names.index(name)].protocol
        noise = inner.worth(part.n).noise
        hits += abs(part.table().value[0] - answered[name]) <= 1.96 * noise
    assert hits < least


def test_repeated_collections_are_right_on_average() -> None:
    """The mean of 300 runs is within 5 of its own standard errors of the truth: all 9 fail for 5e-6 of all seeds."""
    protocol = Attributes(HABITS, 4)
    study = protocol.simulate(people(600, np.random.default_rng(3)), runs=300, seed=2)
    figures = study.figures()
    assert figures.shape == (300, 9)
    off = (figures.mean(axis=0) - study.truth) / (figures.std(axis=0) / np.sqrt(300))
    assert np.abs(off).max() < 5
    two = [{"smoke": "yes", "bread": 1, "sleep": 3.0}] * 2
    assert protocol.worth().truth(two).tolist() == [1, 0, 0, 1, 0, 0, 0, 0, 3]


def test_errors_over_epochs_know_that_people_and_groups_are_drawn_anew() -> None:
    """Of K epochs with fresh choices a person stands in a group of share f as often as a binomial number says."""
    protocol = Attributes.of({"a": GRR(2, 20), "b": GRR(2, 20)})
    table = {"a": [0, 1] * 2000, "b": [0, 1] * 2000}
    result = protocol.estimate(protocol.tally(protocol.privatize(table, Simulation(3))))
    once, often = result.shares("a"), result.repeated(1.0, 4.0).shares("a")
    assert np.allclose(often.stderr**2 / once.stderr**2, 0.5 + 0.5 * 4, rtol=0.03)
    wider = np.ptp(often.interval(), axis=1) / np.ptp(once.interval(), axis=1)
    assert np.allclose(wider, np.sqrt(2.5), rtol=0.03)
    assert np.allclose(result.repeated(4.0, 4.0).shares("a").stderr ** 2 / once.stderr**2, 4)


def test_one_table_has_the_rows_of_all_attributes() -> None:
    protocol = Attributes(HABITS, 2, people=4000)
    found = protocol.estimate(protocol.tally(protocol.privatize(people(4000, np.random.default_rng(1)), Simulation(1))))
    assert isinstance(found.shares("smoke"), Estimate)
    assert isinstance(found["sleep"], Mean)
    assert sum(part.n for part in found.parts.values()) == found.n == 4000
    rows = found.rows()
    assert [(row["group"], row["label"]) for row in rows[:3]] == [("smoke", "yes"), ("smoke", "no"), ("bread", 0)]
    assert [row["unit"] for row in rows] == [""] * 8 + ["hours"]
    assert found.table("bread").value.tolist() == [row["value"] for row in rows[2:8]]
    assert rows_of(found.to_dict())[-1]["group"] == "sleep"
    assert rows_of(found.to_dict())[-1]["count"] is None
    assert found.to_csv().startswith("section,group,label,value,stderr,low,high,unit,count,n,")
    assert found.to_arrow().column("group").to_pylist()[-1] == "sleep"
    assert "smoke: yes" in str(found)
    assert "hours" in str(found).splitlines()[-1]
    assert "smoke: yes" in found._repr_html_()
    with pytest.raises(LabelError, match="smoke, bread, sleep"):
        found.shares("age")
    change = found - found
    assert change.labels[0] == "smoke: yes"
    assert not change.value.any()


def test_intervals_of_all_attributes_at_once_are_wider() -> None:
    protocol = Attributes(HABITS, 2)
    found = protocol.estimate(protocol.tally(protocol.privatize(people(4000, np.random.default_rng(1)), Simulation(1))))
    each, at_once = found.table(), found.table(simultaneous=True)
    assert (at_once.high - at_once.low > each.high - each.low).all()
    assert at_once.ends[-1].tolist() == list(found["sleep"].interval(1 - 0.05 / 3))


def test_pictures_of_many_attributes_stand_in_several_lines_with_names_that_do_not_overlap() -> None:
    pytest.importorskip("matplotlib")
    towns = [f"a town by the river {i}" for i in range(4)]
    many = Attributes({f"part {i}": towns for i in range(6)}, 1)
    figure = many.estimate(many.tally(many.privatize([many.domain.example] * 60, Simulation(1)))).plot().figure
    assert figure.get_figwidth() < 15
    assert len({round(ax.get_position().y0, 2) for ax in figure.axes}) > 1
    assert all(name.get_rotation() for ax in figure.axes for name in ax.get_xticklabels())


def test_shares_are_made_consistent_and_means_are_left_alone() -> None:
    protocol = Attributes(HABITS, 1)
    found = protocol.estimate(protocol.tally(protocol.privatize(people(900, np.random.default_rng(2)), Simulation(2))))
    made = found.consistent()
    assert abs(made["bread"].frequencies.sum() - 1) < 1e-9
    assert made["sleep"] is found["sleep"]
    assert made.unbiased.table().value.tolist() == found.table().value.tolist()


def test_a_batch_is_taken_apart_and_counted_as_one_by_one() -> None:
    protocol = Attributes(HABITS, 1)
    table = people(200_000, np.random.default_rng(3))  # several blocks
    reports = protocol.privatize(table, Simulation(3))
    tally = protocol.tally(reports)
    assert tally.counts[:3].sum() == 200_000
    chances = np.array([float(chance) for chance in protocol.chances])
    assert stats.chisquare(tally.counts[:3], 200_000 * chances).pvalue > 1e-6
    total = np.zeros_like(tally.counts)
    for start, counts in protocol.kernel().pieces(reports.array):
        total[start : start + counts.size] += counts
    assert total.tolist() == tally.counts.tolist()
    assert protocol.law().plausible(reports).all()
    for name, group, own in zip(HABITS.names, protocol.groups, protocol.tallies(tally), strict=True):
        rows = reports.array[reports.array[:, 0] == HABITS.names.index(name), 1 : 1 + group.protocol.report_bytes]
        assert group.protocol.tally(rows) == own


@pytest.mark.parametrize("size", [1, 8, 9, 64])
@pytest.mark.parametrize("weight", [1, 1 << 25], ids=["light", "heavy"])
def test_any_number_of_groups_is_taken_apart(size: int, weight: int) -> None:
    """Few groups are looked for one by one, many are sorted; short lists of weights are looked up, others searched."""
    names = [f"c{i}" for i in range(size)]
    protocol = Attributes.of(dict.fromkeys(names, GRR(3, 30)), {name: weight + i for i, name in enumerate(names)})
    rows = np.random.default_rng(4).integers(0, 3, (5000, size))
    reports = protocol.privatize({name: rows[:, i] for i, name in enumerate(names)}, Simulation(2)).array
    assert (rows[np.arange(5000), reports[:, 0]] == reports[:, 1]).all(), "an answer stands in another row or group"
    expected = np.zeros((size, 3), dtype=np.int64)
    np.add.at(expected, (reports[:, 0], reports[:, 1]), 1)
    assert protocol.tally(reports).counts.tolist() == [*expected.sum(axis=1), *expected.ravel()]
    shares = [float(chance) for chance in protocol.chances]
    assert size == 1 or stats.chisquare(expected.sum(axis=1), 5000 * np.array(shares)).pvalue > 1e-6
    strange = reports.copy()
    strange[7, 0] = size
    assert np.flatnonzero(~protocol.valid(strange)).tolist() == [7]


@pytest.mark.parametrize("weights", [[1, 1], [1, 3, 1], [1] * 5, [9, 1], [100, 100], [5000, 1]])
def test_groups_of_several_people_are_drawn_together_exactly(weights: list[int]) -> None:
    """Every way in which they fall to groups has the product of the weights: then all are independent."""
    named = {f"p{place}": weight for place, weight in enumerate(weights)}
    made = Attributes.of(dict.fromkeys(named, GRR(2, 1)), named)
    assert made._ways is not None
    ways = made._ways[:, None].view(np.uint8)
    assert ways.shape[1] in (1, 2, 4, 8)
    assert len(ways) == sum(weights) ** ways.shape[1]
    seen, counts = np.unique(ways, axis=0, return_counts=True)
    assert counts.tolist() == np.prod(np.array(weights)[seen], axis=1).tolist()
    assert made._choose_many(np.zeros(999), Simulation(1)).size == 999


@pytest.mark.parametrize("wide", [False, True])
def test_a_counter_refuses_all_of_a_bad_batch(wide: bool) -> None:
    last = OUE(100, 1) if wide else SubsetSelection(12, 1)
    made = Attributes.of({"a": GRR(3, 1), "b": OLH(80, 1), "c": last})
    counter, reports = made.counter(), []
    for place, count in enumerate((3000, 1, 0, 70)):
        answers = {name: np.arange(count) % 3 for name in made.domain.names}
        reports.append(made.privatize(answers, Simulation(place)).array)
        counter.add(reports[-1])
        bad = np.concatenate([reports[0], reports[0][:1]])
        bad[-1, 0] = 77
        with pytest.raises(ReportError, match="1 of 3001"):
            counter.add(bad)
    assert counter.tally() == made.tally(np.concatenate(reports))


@pytest.mark.parametrize("bad", [b"\2\0", b"\0\2", b"\1\0", b"\1\x81"], ids=["group", "answer", "padding", "bits"])
def test_a_report_of_no_group_or_with_padding_is_refused(bad: bytes) -> None:
    protocol = Attributes.of({"a": OUE(2, 1), "b": OneBitMean(Interval(0, 1), 1)})
    wide = Attributes.of({"a": GRR(1000, 1), "b": OUE(5, 1)})
    rows = {b"\2\0": (protocol, b"\2\0"), b"\0\2": (protocol, b"\0\4"), b"\1\0": (wide, b"\1\0\1")}
    target, report = rows.get(bad, (wide, b"\1\x81\0"))
    array = np.frombuffer(report, dtype=np.uint8)[None, :]
    assert not target.valid(array).any()
    assert not target.law().plausible(array).any()
    with pytest.raises(ReportError):
        target.tally(array)


def test_the_weights_make_the_errors_of_the_attributes_alike() -> None:
    records = Records({"smoke": ["yes", "no"], "town": 1000, "sleep": Interval(0, 24)})
    protocol, n = Attributes(records, 1, people=30_000), 30_000
    errors = [
        group.protocol.worth(people).error / group.protocol.worth().scale
        for group, people in zip(protocol.groups, protocol.people(n), strict=True)
    ]
    assert max(errors) / min(errors) < 1.15
    even = Attributes.of({name: group.protocol for name, group in zip(records.names, protocol.groups, strict=True)})
    assert even.worth(n).error > 1.2 * protocol.worth(n).error
    assert protocol.worth(n).error < 0.6 * protocol.split_error(n)


def test_where_reports_repeat_they_have_few_forms() -> None:
    """A plan for memoized answers has the best protocols of which all reports together have so few forms."""
    records = Records({"smoke": ["yes", "no"], "town": 50, "sleep": Interval(0, 24)})
    usual = plan(records, epsilon=1, n=10_000).best
    assert usual.law().forms > 1 << 30
    few = plan(records, epsilon=1, n=10_000, forms=1024).best
    assert 52 < few.law().forms <= 1024
    least = plan(records, epsilon=1, n=10_000, forms=60).best
    assert [group.protocol.name for group in least.groups] == ["GRR", "GRR", "OneBitMean"]
    noises = [one.worth(1).parts["town"][0].worth(1000).noise for one in (usual, few, least)]
    assert noises == sorted(set(noises))
    with pytest.raises(DomainError, match="different reports"):
        plan(records, epsilon=1, n=10_000, forms=53)


def test_a_forger_chooses_the_attribute() -> None:
    protocol = small()
    first, second = (group.protocol.worth() for group in protocol.groups)
    assert protocol.worth().leverage == pytest.approx(max(4 * first.leverage, second.leverage * 4 / 3))
    assert protocol.worth().moved == pytest.approx(max(4 * first.moved, second.moved * 4 / 3))
    best = max(first.guess / 4 + 0.75 / 2, 0.75 * second.guess + 0.25 / 3)
    assert protocol.worth().guess == pytest.approx(best)
    assert Attributes(HABITS, 1).worth().guess is None


def test_groups_that_chance_did_not_choose_are_a_misfit() -> None:
    protocol = small()
    reports = protocol.privatize([{"a": "x", "b": 1}] * 4000, Simulation(1))
    tally = protocol.tally(reports)
    assert not protocol.misfit(tally).suspicious
    only = protocol.tally(reports.array[reports.array[:, 0] == 0])
    assert protocol.misfit(only + protocol.tally(reports.array[:100])).suspicious
    broken = tally.counts.copy()
    broken[0] += 1
    with pytest.raises(MismatchError, match="do not add up"):
        protocol.estimate(Tally(protocol.fingerprint, tally.n, broken))


def test_what_a_report_says_and_costs() -> None:
    protocol = small()
    assert says(protocol, b"\0\1") == "a: y"
    assert protocol.law().forms == 2 + 8
    assert protocol.guarantee.epsilon == protocol.epsilon == 1
    each = [group.protocol.worth().cost.random_bytes for group in protocol.groups]
    assert protocol.worth().cost.random_bytes == pytest.approx(
        8 + sum(float(chance) * one for chance, one in zip(protocol.chances, each, strict=True))
    )
    alone = Attributes.of({"a": GRR(2, 1)})
    assert alone.report({"a": 1}, Simulation(5))[1:] == GRR(2, 1).report(1, Simulation(5))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"groups": []}, "at least one group"),
        ({"epsilon": "2"}, "not the largest"),
        ({"groups": [{"weight": 0, "protocol": GRR(["x", "y"], 1).spec()}]}, "positive whole"),
        ({"groups": [{"weight": True, "protocol": GRR(["x", "y"], 1).spec()}]}, "positive whole"),
        ({"groups": [{"weight": 1, "protocol": GRR(["x", "y"], 1).spec()}]}, "one group per column"),
        ({"groups": [{"weight": 2**32, "protocol": GRR(["x", "y"], 1).spec()}]}, "2\\^32"),
        ({"groups": [{"weight": 1}]}, "a weight and a protocol"),
        ({"groups": [{"weight": 1, "protocol": OUE(3, 1).spec()}] * 2}, "column 'a'"),
    ],
    ids=["none", "epsilon", "zero", "truth", "few", "heavy", "keys", "domain"],
)
def test_specs_that_make_no_protocol_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        load(small().spec() | change)


def test_what_attributes_are_for() -> None:
    with pytest.raises(DomainError, match="Records"):
        Attributes(["yes", "no"], 1)
    for wrong in (0, 5, True, "fours", 1.5):
        with pytest.raises(NumberError, match="column"):
            Attributes(HABITS, 1, ask=wrong)  # type: ignore[arg-type]
    with pytest.raises(NumberError, match="positive whole"):
        Attributes(HABITS, 1, people=0)
    with pytest.raises(SpecError, match="other names"):
        Attributes.of({"a": GRR(2, 1)}, {"b": 1})
    assert Attributes({"a": 2, "b": 3}, 1).group_names == ("a", "b")
    wide = Attributes.of({"a": OLH(1000, 1), "b": CMS(["x", "y"], 1, hashing=Strings(64, 4))})
    table = {"a": [1, 2, 3] * 300, "b": ["x", "y", "x"] * 300}
    found = wide.estimate(wide.tally(wide.privatize(table, Simulation(1))))
    assert len(found.table()) == 1002


# -- records ----------------------------------------------------------------------------------------------


MISSING = Records({"smoke": Categories(["yes", "no"], missing="no answer"), "age": Integers(1, 9)})


def test_a_missing_key_is_a_missing_answer() -> None:
    """Refused, unless the column has an answer that stands for missing ones; the browser does the same."""
    assert MISSING.encode_one({"age": 3}) == (2, 2)
    assert MISSING.encode([{"age": 3}, {"smoke": None, "age": 9}]).columns[0].tolist() == [2, 2]
    for refuse in (MISSING.encode_one, lambda record: MISSING.encode([{"age": 3}, record])):
        with pytest.raises(DomainError, match="column 'age' is missing"):
            refuse({"smoke": "no"})
        with pytest.raises(DomainError, match="is missing"):
            refuse(None)
        with pytest.raises(DomainError, match="not a record"):
            refuse(("no", 3))
    with pytest.raises(DomainError, match="not one of smoke, age"):
        MISSING.encode_one({"smoke": "no", "age": 3, "town": 1})
    with pytest.raises(DomainError, match="no column 'smoke'"):
        MISSING.encode({"age": [1, 2]})


def test_a_refusal_names_row_and_column_and_never_the_answer() -> None:
    with pytest.raises(DomainError, match=r"^value 1, column 'age'") as refused:
        MISSING.encode([{"smoke": "no", "age": 3}, {"smoke": "no", "age": "s3cret"}])
    assert "s3cret" not in str(refused.value)


def test_every_column_is_read_before_a_coin_falls() -> None:
    protocol = Attributes(MISSING, 1)
    bits = Simulation(1)
    for _ in range(20):
        with pytest.raises(DomainError):
            protocol.report({"smoke": "yes", "age": 77}, bits)
    assert bits.word() == Simulation(1).word()


def test_columns_that_a_record_cannot_have() -> None:
    for bad in (Strings(), HABITS):
        with pytest.raises(DomainError, match="cannot hold"):
            Records({"a": bad})


def test_series_arrays_and_iterators_are_records_too_and_never_quote_an_answer() -> None:
    pandas = pytest.importorskip("pandas")
    good, bad = {"smoke": "no", "age": 3}, {"smoke": "no", "age": "s3cret"}
    for forms in (pandas.Series, pandas.DataFrame, iter, lambda rows: np.array(rows, dtype=object)):
        assert MISSING.encode(forms([good, good])).columns[1].tolist() == [2, 2]
        with pytest.raises(DomainError, match=r"^value 1, column 'age'") as refused:
            MISSING.encode(forms([good, bad]))
        assert "s3cret" not in str(refused.value)
    with pytest.raises(DomainError, match="value 1 is missing"):
        MISSING.encode(pandas.Series([good, None]))


def test_tables_and_structures_are_records() -> None:
    pa = pytest.importorskip("pyarrow")
    rows = [{"smoke": "no", "age": 3}, {"smoke": "yes", "age": 9}]
    expected = [column.tolist() for column in MISSING.encode(rows).columns]
    table = pa.table({"age": [3, 9], "smoke": ["no", "yes"]})
    for form in (table, table.to_pandas(), pa.array(rows), {"smoke": ["no", "yes"], "age": [3, 9]}):
        assert [column.tolist() for column in MISSING.encode(form).columns] == expected
    with pytest.raises(DomainError, match="value 1 is missing"):
        MISSING.encode(pa.array([rows[0], None]))


class ByDistance(GRR):
    """Says that its level holds between other inputs than any two answers."""

    def law(self) -> Law:
        return super().law().but(guarantee=Guarantee("metric", self.epsilon))


def test_parts_of_different_relations_are_refused() -> None:
    assert Attributes.of({"a": ByDistance(2, 1), "b": ByDistance(3, 1)}).guarantee.relation == "metric"
    with pytest.raises(SpecError, match="different relations"):
        Attributes.of({"a": GRR(2, 1), "b": ByDistance(3, 1)})

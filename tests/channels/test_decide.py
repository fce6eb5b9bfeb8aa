"""Decisions: p-values against brute force, the promised level by enumeration and simulation, power and its exponent."""

from __future__ import annotations

import csv
import importlib
import io
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from deniable.channels import Channel, randomized_response
from deniable.channels.hypothesis import chernoff_information, decide, likelihood_ratio_test
from deniable.channels.hypothesis.decide import Evidence
from deniable.design import several
from deniable.errors import MismatchError, NumberError, ShapeError
from tests.documents import rows_of

# The module: the package has the function of this name.
evidence = importlib.import_module("deniable.channels.hypothesis.decide")

# Laws of one report as integer weights with one sum, chosen for what is hard about them.
CASES = {
    "two outputs": [[3, 1], [1, 3]],
    "three ratios": [[5, 3, 2], [2, 3, 5]],
    "ties of different counts": [[4, 2, 1], [1, 2, 4]],
    "merged outputs": [[2, 4, 6], [1, 2, 9]],
    "three laws": [[4, 1, 1], [1, 4, 1], [1, 1, 4]],
    "three laws, uneven": [[6, 3, 3], [2, 9, 1], [4, 4, 4]],
    "an output that only one allows": [[0, 2, 2], [1, 1, 2]],
    "an output that only the other allows": [[1, 1, 2], [0, 2, 2], [2, 1, 1]],
    "two equal laws": [[1, 3], [1, 3], [3, 1]],
}


def likelihood(law: list[int], counts: tuple[int, ...]) -> int:
    return math.prod(weight**count for weight, count in zip(law, counts, strict=True))


def brute_force(laws: list[list[int]], counts: tuple[int, ...], place: int) -> Fraction:
    """The p-value by its definition, over all sequences of reports."""
    n, outputs = sum(counts), len(laws[0])
    rivals = [law for other, law in enumerate(laws) if other != place]
    own = likelihood(laws[place], counts)
    if own == 0:
        return Fraction(0)
    rivals.append(laws[place])
    strongest = max(likelihood(law, counts) for law in rivals)
    reached = 0
    for sequence in itertools.product(range(outputs), repeat=n):
        seen = tuple(sequence.count(y) for y in range(outputs))
        under = likelihood(laws[place], seen)
        if under and max(likelihood(law, seen) for law in rivals) * own >= strongest * under:
            reached += under
    return Fraction(reached, sum(laws[place]) ** n)


@pytest.mark.parametrize("name", CASES)
def test_p_values_are_those_of_the_definition(name: str) -> None:
    laws, n = CASES[name], 5
    for counts in evidence._compositions(n, len(laws[0])):
        found = Evidence(laws, counts)
        for place in range(len(laws)):
            exactly = brute_force(laws, counts, place)
            assert found.p_value(place) == (exactly, exactly), counts


@pytest.mark.parametrize("level", [Fraction(1, 64), Fraction(1, 20)])
@pytest.mark.parametrize("name", CASES)
def test_the_truth_is_rejected_at_most_as_often_as_the_level_says(name: str, level: Fraction) -> None:
    """Exact, over all counts of 9 reports; a sharper statistic that forgot ties would pass the level at 1/64."""
    laws, n = CASES[name], 9
    rejected = [Fraction(0)] * len(laws)
    for counts in evidence._compositions(n, len(laws[0])):
        found = Evidence(laws, counts)
        ways = math.factorial(n) // math.prod(map(math.factorial, counts))
        for place, law in enumerate(laws):
            if likelihood(law, counts) and found.p_value(place)[1] <= level:
                rejected[place] += Fraction(ways * likelihood(law, counts), sum(law) ** n)
    assert max(rejected) <= level


def bounds_of(laws: list[list[int]], counts: list[int], place: int, way: str) -> tuple[float, float]:
    """One p-value by one of the computations, whatever the size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "FEW_TYPES", 10**9 if way == "exact" else 0)
        patch.setattr(evidence, "FEW_REPORTS", 10**9)
        patch.setattr(evidence, "MANY_TYPES", 10**9 if way == "types" else 0)
        low, high = Evidence(laws, counts).p_value(place)
    assert low <= high
    return float(low), float(high)


@pytest.mark.parametrize(
    "name",
    [
        "ties of different counts",
        "three laws",
        pytest.param("three ratios", marks=pytest.mark.slow),
        pytest.param("three laws, uneven", marks=pytest.mark.slow),
    ],
)
def test_the_ways_to_a_p_value_agree(name: str) -> None:
    """Exact fractions lie in what floats and brackets claim; floats are within 1e-9 of them even where counts tie."""
    laws = CASES[name]
    draws = np.random.default_rng(5)
    for n in (1, 25):
        counts = draws.multinomial(n, np.array(laws[1]) / sum(laws[1])).tolist()
        for place in range(len(laws)):
            exactly = bounds_of(laws, counts, place, "exact")[0]
            low, high = bounds_of(laws, counts, place, "types")
            assert low * (1 - 1e-15) <= exactly <= high * (1 + 1e-15)
            assert high - low <= 3e-8 * high
            low, high = bounds_of(laws, counts, place, "pairs")
            assert low * (1 - 1e-15) <= exactly <= high * (1 + 1e-15), (n, place)


@pytest.mark.parametrize("way", ["types", "pairs"])
def test_another_processor_finds_the_same_numbers(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Floats that differ in the last bits, as those of another processor do, give the same bounds."""
    laws, cases = CASES["three ratios"], ([9, 8, 8], [7, 10, 13], [14, 3, 11])
    here = [bounds_of(laws, list(counts), place, way) for counts in cases for place in (0, 1)]
    nudged = iter(itertools.cycle((1 + 3e-15, 1 - 2e-15)))
    bracket, widened = evidence.tail_bracket, evidence._outwards
    monkeypatch.setattr(evidence, "tail_bracket", lambda *given: tuple(end * next(nudged) for end in bracket(*given)))
    monkeypatch.setattr(
        evidence, "_outwards", lambda low, high, digits: widened(low * next(nudged), high * next(nudged), digits)
    )
    assert [bounds_of(laws, list(counts), place, way) for counts in cases for place in (0, 1)] == here


def test_brackets_are_narrow_for_many_reports() -> None:
    laws = CASES["three ratios"]
    for counts in ([240, 150, 130], [2400, 1600, 1300], [5200, 3000, 2300]):
        low, high = Evidence(laws, counts).p_value(0)
        wide = bounds_of(laws, counts, 0, "pairs")
        assert max(wide[0], float(low)) <= min(wide[1], float(high))
        assert wide[1] - wide[0] <= 0.2 * wide[1]


@pytest.mark.parametrize("n", [7, 300, 900])
def test_binomial_tails_are_between_their_bounds(n: int) -> None:
    a, b = 5, 9
    for k in {0, 1, n * a // (a + b), n * a // (a + b) + math.isqrt(n), n, n + 1}:
        exactly = Fraction(sum(math.comb(n, j) * a**j * b ** (n - j) for j in range(k, n + 1)), (a + b) ** n)
        low, high = evidence._upper_tail(n, a, b, k)
        assert low <= exactly <= high
        assert high - low <= Fraction(1, 10**50)


@pytest.mark.parametrize(("n", "answers", "epsilon"), [(2500, 2, 0.5), (80, 3, 4)], ids=["binomial", "types"])
def test_the_level_holds_and_power_is_there_with_many_reports(n: int, answers: int, epsilon: float) -> None:
    """50 studies under each law: errors above the limit come by chance once in 10^6, and most studies decide."""
    laws = {"a": [0.5, 0.3, 0.2], "b": [0.3, 0.5, 0.2], "c": [0.25, 0.25, 0.5]}
    if answers == 2:
        laws = {"a": [0.5, 0.5], "b": [0.3, 0.7]}
    channel, studies, level = randomized_response(answers, epsilon), 50, 0.1
    draws = np.random.default_rng(11)
    for name, law in laws.items():
        counts = draws.multinomial(n, channel.push(law), size=studies)
        listed, often = np.unique(counts, axis=0, return_counts=True)
        found = [decide(channel, laws, one.tolist(), level) for one in listed]
        wrong = sum(times for times, one in zip(often, found, strict=True) if name not in one.remaining)
        right = sum(times for times, one in zip(often, found, strict=True) if one.favoured == name)
        assert wrong <= stats.binom.isf(1e-6, studies, level)
        assert right >= 0.6 * studies


def test_the_truth_is_missed_as_rarely_as_the_best_test_misses_it() -> None:
    """With enough reports the level does not bind: a study errs or stays undecided as often as the best guess errs.

    So that probability falls like e^(-n C), C the Chernoff information.
    """
    m0, m1 = [0.7, 0.3], [0.4, 0.6]
    limit = chernoff_information(m0, m1).value
    before = math.inf
    for n in (100, 400, 1600):
        # H0 is favoured up to some count of the second output, H1 from some count on.
        switches = []
        for place in (0, 1):
            low, high = 0, n
            while high - low > 1:
                middle = (low + high) // 2
                rejected = Evidence([[7, 3], [4, 6]], [n - middle, middle]).p_value(place)[1] <= Fraction(1, 20)
                low, high = (low, middle) if rejected == (place == 0) else (middle, high)
            switches.append(high)
        missed = stats.binom.sf(switches[1] - 1, n, 0.3) + stats.binom.cdf(switches[0] - 1, n, 0.6)
        assert missed / 2 == pytest.approx(likelihood_ratio_test(m0, m1, n).bayes, rel=1e-6)
        exponent = -math.log(missed) / n
        assert limit < exponent < before
        before = exponent
    assert before < 1.1 * limit


def test_the_number_of_people_that_an_undecided_study_names_decides_nine_times_in_ten() -> None:
    channel, laws = randomized_response(2, 2), {"rare": [0.9, 0.1], "common": [0.6, 0.4]}
    first = decide(channel, laws, [5, 2])
    assert first.outcome == "undecided"
    assert f"about {first.more:,} more people" in first.verdict

    def decided(n: int) -> float:
        """How often one of the two is favoured, in the worse case."""
        shares = []
        for name, law in laws.items():
            push = channel.push(law)
            chances = [math.comb(n, k) * push[0] ** (n - k) * push[1] ** k for k in range(n + 1)]
            right = [decide(channel, laws, [n - k, k]).favoured == name for k in range(n + 1)]
            shares.append(math.fsum(itertools.compress(chances, right)))
        return min(shares)

    assert first.people is not None
    assert 0.83 <= decided(first.people) <= 0.96
    assert decided(first.people // 3) < 0.6


def test_verdicts_in_words() -> None:
    coin, laws = randomized_response(2, "1.1"), {"rare": [0.9, 0.1], "common": [0.5, 0.5]}
    said = {
        (66, 34): "the reports favour rare: common has a p-value of at most 0.0009 (level 0.05)",
        (250, 250): "the reports favour common: rare has a p-value of less than 1e-15 (level 0.05)",
        (293, 207): "the reports favour common: rare has a p-value of at most 4e-08 (level 0.05)",
        (0, 0): "undecided: rare and common are both possible at level 0.05; about 51 more people",
    }
    for counts, sentence in said.items():
        assert decide(coin, laws, counts).verdict.startswith(sentence)
    poor = decide(coin, laws, [293, 207])
    assert poor.notes[1].startswith(
        "perhaps none of the hypotheses is true: if common, the likeliest, were, it would be"
    )
    assert not any("perhaps none" in note for note in decide(coin, laws, [250, 250]).notes)
    words = decide(coin, {"no effect": [0.9, 0.1], "H1": [0.5, 0.5]}, [66, 34]).verdict
    assert words.startswith('the reports favour "no effect": H1 has')
    same = decide(coin, [[0.5, 0.5], [0.5, 0.5]], [10, 10])
    assert "the same law of reports" in same.verdict
    three = decide(several(THREE, 1).channel, THREE, [400, 30, 30])
    assert three.verdict.startswith("the reports favour a: every other hypothesis has a p-value of less than 1e-15")


THREE = {"a": [0.5, 0.3, 0.2], "b": [0.2, 0.5, 0.3], "c": [0.25, 0.25, 0.5]}


def test_a_decision_has_all_forms_of_a_result() -> None:
    found = decide(randomized_response(3, 1), THREE, [200, 120, 80])
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (content["kind"], content["decision"]["favoured"]) == ("decision", "a")
    assert [row["label"] for row in rows_of(content)] == ["a", "b", "c"]
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [float(row["rejected"]) for row in rows] == [0.0, 1.0, 1.0]
    assert all(float(row["low"]) <= float(row["value"]) == float(row["high"]) for row in rows)
    assert math.isclose(sum(float(row["posterior"]) for row in rows), 1)
    for shown in (str(found), found._repr_html_()):
        assert "the reports favour a" in shown
        assert "one look" in shown
    with pytest.raises(MismatchError, match="different people"):
        found.repeated(2.0, 2.0)


def test_the_p_value_for_any_number_of_looks_holds() -> None:
    """Exactly, over all paths of 40 reports under H0, looked at after each; the p-value for one look does not hold."""
    laws, level = CASES["two outputs"], Fraction(1, 20)
    ever = {"anytime": Fraction(0), "one look": Fraction(0)}
    for kind in ever:
        paths = {0: Fraction(1)}
        for n in range(1, 41):
            onward: dict[int, Fraction] = {}
            for k, chance in paths.items():
                onward[k] = onward.get(k, Fraction(0)) + chance * Fraction(3, 4)
                onward[k + 1] = onward.get(k + 1, Fraction(0)) + chance * Fraction(1, 4)
            paths = {}
            for k, chance in onward.items():
                found = Evidence(laws, [n - k, k])
                if (found.anytime(0) if kind == "anytime" else found.p_value(0)[1]) <= level:
                    ever[kind] += chance
                else:
                    paths[k] = chance
    assert ever["anytime"] <= level < ever["one look"]


def test_what_does_not_fit_is_refused() -> None:
    coin = randomized_response(2, 1)
    with pytest.raises(ShapeError, match="3 answers, the channel 2"):
        decide(coin, [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]], [1, 2])
    with pytest.raises(ShapeError, match="3 counts for the 2 outputs"):
        decide(coin, [[0.5, 0.5], [0.1, 0.9]], [1, 2, 3])
    with pytest.raises(NumberError, match="not a whole number"):
        decide(coin, [[0.5, 0.5], [0.1, 0.9]], [1.5, 2])
    with pytest.raises(NumberError, match="not negative"):
        decide(coin, [[0.5, 0.5], [0.1, 0.9]], [-1, 2])
    for level in (0, 1, -0.5):
        with pytest.raises(NumberError, match="strictly between 0 and 1"):
            decide(coin, [[0.5, 0.5], [0.1, 0.9]], [1, 2], level)
    with pytest.raises(ShapeError, match="at least two laws"):
        decide(coin, [[0.5, 0.5]], [1, 2])
    impossible = decide(Channel([[1, 0], [0.5, 0.5]]), [[1, 0], [0, 1]], [3, 1])
    assert impossible.favoured == 1


def test_the_fit_is_how_often_the_likeliest_would_be_so_little_ahead() -> None:
    """By its definition for two laws; under either law a note of a poor fit comes once in a thousand at most."""
    laws, n = CASES["three ratios"], 12
    alarms = [Fraction(0), Fraction(0)]
    for counts in evidence._compositions(n, 3):
        found = Evidence(laws, counts)
        ways = math.factorial(n) // math.prod(map(math.factorial, counts))
        for place, law in enumerate(laws):
            own, other = likelihood(law, counts), likelihood(laws[1 - place], counts)
            if own >= other and found.fit(place)[1] < Fraction(1, 1000):
                alarms[place] += Fraction(ways * own, sum(law) ** n)
            if own == other:
                assert found.p_value(place) == (1, 1)
    assert max(alarms) <= Fraction(1, 1000)
    exactly = Fraction(sum(math.comb(9, k) for k in range(4, 10)), 2**9)
    assert Evidence([[1, 1], [1, 3]], [5, 4]).fit(0) == (exactly, exactly)

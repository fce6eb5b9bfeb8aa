"""Statistical queries and regression: values, the law of the bytes, coefficients with their errors, and the rule."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from benchmarks.queries import Crowd, campaign, drawn
from deniable.domains import Integers, Interval, Records
from deniable.errors import DomainError, NumberError, SpecError
from deniable.exact import exp_at_least
from deniable.protocols import OneBitMean, Queries, Tally, load
from deniable.protocols.records import queries
from deniable.protocols.records.query_forms import logistic
from deniable.protocols.traits import scaled
from deniable.randomness import Simulation
from deniable.results import Regression, regression
from deniable.results.regression import TOO_FEW, Batch, Entry, discriminant, solved
from tests.documents import rows_of

PEOPLE = Records(
    {
        "age": Interval(20, 70, unit="years"),
        "smoke": ["no", "yes"],
        "edu": Integers(1, 5),
        "hours": Interval(0, 80, unit="hours"),
    }
)
ILL = Records({"age": Interval(20, 70), "smoke": ["no", "yes"], "edu": Integers(1, 5), "ill": ["no", "yes"]})


def crowd(n: int, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    age, edu = random.uniform(20, 70, n), random.choice(5, n, p=[0.1, 0.2, 0.4, 0.2, 0.1]) + 1
    smoke = random.random(n) < 0.3 + 0.004 * (age - 45)
    score = 0.02 * (age - 45) + 0.8 * smoke - 0.5 * (edu - 3)
    hours = 40 + 5 * score + random.normal(0, 5, n)
    ill = random.random(n) < 1 / (1 + np.exp(-score))
    yes = np.array(["no", "yes"])
    return {"age": age, "smoke": yes[smoke.astype(int)], "edu": edu, "hours": hours, "ill": yes[ill.astype(int)]}


TRUE = {"logistic": np.array([0.6, 0.02, 0.8, -0.5]), "linear": np.array([43.0, 0.1, 4.0, -2.5])}


def asked(link: str, epsilon: float, people: int | None = None) -> Queries:
    if link == "linear":
        return Queries(PEOPLE, epsilon, people, regress={"target": "hours"})
    return Queries(ILL, epsilon, people, regress={"target": "ill", "link": link, "answer": "yes"})


def of(protocol: Queries, table: dict[str, Any]) -> dict[str, Any]:
    return {name: table[name] for name in protocol.domain.names}


def test_queries_are_products_and_forms_of_numbers_on_a_scale_and_of_answers() -> None:
    record = {"age": 57.5, "smoke": "yes", "edu": 2, "hours": 20}
    given: dict[str, Any] = {
        "age": {"times": ["age"]},
        "squared": {"times": ["age", "age"]},
        "smoker's hours": {"times": [("smoke", "yes"), "hours"]},
        "nobody": {"times": [("smoke", "no")]},
        "score": {"weights": [[None, "1/4"], ["edu", 1], [("smoke", "yes"), "1/2"]], "bound": 2},
        "clipped": {"weights": [[None, 3]]},
        "left": {"times": ["age"], "weights": [["edu", 2]], "link": "logistic", "of": ("smoke", "yes")},
        "slope": {"weights": [["edu", 2]], "link": "slope"},
    }
    made = Queries(PEOPLE, 1, queries=given)
    encoded = PEOPLE.encode_one(record)
    share = 1 / (1 + math.exp(1))
    wanted = [0.5, 0.25, -0.5, 0.0, (0.25 - 0.5 + 0.5) / 2, 1.0, 0.5 * (1 - share), 4 * share * (1 - share)]
    assert np.allclose([made.project(encoded, group) for group in range(8)], wanted, atol=1e-12)
    low = [group.protocol.domain.low for group in made.groups]
    assert low == [-1, 0, -1, 0, -1, -1, -1, 0]
    many = PEOPLE.encode([record] * 3)
    for group in range(8):
        rows = made.project_many(many, group, np.arange(3))
        assert rows.tolist() == [made.project(encoded, group)] * 3, "one formula, bit for bit"


@pytest.mark.floats
def test_the_logistic_function_is_exact_enough() -> None:
    t = np.linspace(-29, 29, 1001)
    assert np.abs(logistic(t) - 1 / (1 + np.exp(-t))).max() < 1e-12
    assert (logistic(np.array([-1e9, 1e9])) >= 0).all()


def test_no_query_tells_more_about_a_whole_record_than_epsilon() -> None:
    """Enumerated from the bytes, for every pair of some records; a law at a larger epsilon is seen to exceed it."""
    for protocol in Queries.examples():
        channel = protocol.channel()
        assert exp_at_least(protocol.epsilon, channel.ratio)
        assert channel.ratio > 1
        assert not exp_at_least(protocol.epsilon * Fraction(9, 10), scaled(protocol, Fraction(3, 2)).channel().ratio)


def test_means_of_queries_are_those_of_the_people() -> None:
    """An error of 6 standard errors happens once in 10^8 times; the seed is fixed."""
    made = Queries(PEOPLE, 3, queries={"both": {"times": [("smoke", "yes"), "hours"]}, "age": {"times": ["age"]}})
    table = of(made, crowd(20_000, 1))
    found = made.estimate(made.tally(made.privatize(table, Simulation(1))))
    truth = made.worth().truth(table)
    for part, true in zip(found.by_name.values(), truth, strict=True):
        assert abs(part.value - true) < 6 * part.stderr < 0.3
    assert [row["label"] for row in found.rows()] == ["both", "age"]


def test_a_regression_asks_for_each_different_product_once() -> None:
    made = asked("linear", 1)
    assert made.labels == ("intercept", "age", "smoke: yes", "edu")
    assert made.names == (
        *("residual", "residual times age", "residual times smoke: yes", "residual times edu"),
        *("age", "smoke: yes", "edu", "age times age", "age times smoke: yes", "age times edu"),
        *("smoke: yes times edu", "edu times edu", "residual squared"),
    )
    three = Queries({"y": Interval(0, 1), "town": ["a", "b", "c"]}, 1, regress={"target": "y"})
    assert not any("times town: b times town: c" in name or name == "town: b times town: c" for name in three.names)


@pytest.mark.parametrize("link", ["linear", "logistic"])
def test_coefficients_of_batches_are_those_of_the_population(link: str) -> None:
    """Each within 5 standard errors (once in 2 million), the batches closer than one; the seeds are fixed."""
    first = asked(link, 4, 300_000)
    alone = first.estimate(first.tally(first.privatize(of(first, crowd(300_000, 1)), Simulation(1))))
    batches, made = [], first
    for number in (1, 2, 3):
        tally = made.tally(made.privatize(of(made, crowd(100_000, number)), Simulation(number)))
        batches.append(made.batch(tally))
        last, made = made, made.following(tally, number)
    found = last.regression(batches)
    assert isinstance(found, Regression)
    assert (np.abs(found.value - TRUE[link]) < 5 * found.stderr).all()
    assert np.abs(last.at).max() > 0.1
    if link == "linear":
        assert (found.stderr < 0.75 * alone.stderr).all()
        assert last.bound < first.bound
        assert (np.abs(alone.value - TRUE[link]) < 5 * alone.stderr).all()
        assert found.units == ("hours", "hours per years", "hours", "hours")
    given = dict(zip(found.labels, TRUE[link], strict=True))
    assert found.test(given).p_value > 1e-6
    assert found.test([5 * one for one in TRUE[link]]).rejected()


def test_one_batch_without_noise_is_least_squares() -> None:
    made = asked("linear", 1)
    table = crowd(5_000, 3)
    table["hours"] = np.clip(table["hours"], 0, 80)
    design = np.column_stack([np.ones(5_000), table["age"], table["smoke"] == "yes", table["edu"]])
    exactly = np.linalg.lstsq(design, table["hours"], rcond=None)[0]
    assert np.allclose(made.worth().truth(of(made, table)), exactly, rtol=1e-6)


def test_the_next_coefficients_are_fractions_of_the_counts_alone() -> None:
    made = asked("logistic", 2)
    tally = made.tally(made.privatize(of(made, crowd(50_000, 5)), Simulation(5)))
    after = made.following(tally)
    again = load(made.spec()).following(Tally(made.fingerprint, tally.n, tally.counts))  # type: ignore[attr-defined]
    assert again.fingerprint == after.fingerprint
    assert load(after.spec()) == after
    assert after.epsilon == made.epsilon
    assert np.sign(after.at[1:]).tolist() == [1, 1, -1]
    assert made.following(made.empty()).forms == made.forms, "who knows nothing asks again"
    few = made.tally(made.privatize(of(made, crowd(300, 5)), Simulation(5)))
    assert np.abs(made.following(few).at).max() < 32, "noise does not lead to infinity"


@pytest.mark.parametrize("draws", [1_000, pytest.param(4_000, marks=pytest.mark.slow)])
def test_errors_are_those_of_the_gradient_and_of_the_curvature(draws: int) -> None:
    """By drawing means from their normal law: at 4,000 draws a variance is within 11 percent (5 standard errors).

    At 1,000 it is within 22 percent: without the errors of the curvature the second would be 40 percent less.
    """
    random = np.random.default_rng(2)
    curvature, true = np.array([[1.0, 0.2], [0.2, 0.5]]), np.array([0.3, -0.7])
    places = {(0, 0): 0.0, (0, 1): 1e-4, (1, 1): 4e-4}

    def batch(at: np.ndarray, noise: bool) -> Batch:
        entries = tuple(
            Entry(curvature[place] + noise * random.normal(0, math.sqrt(variance)), variance, (place,))
            for place, variance in places.items()
        )
        variances = np.array([2e-4, 3e-4])
        gradient = curvature @ (true - at) + noise * random.normal(0, np.sqrt(variances))
        return Batch(at, gradient, variances, entries, 100)

    for points in ([np.zeros(2)], [np.zeros(2), np.array([0.2, -0.5])]):
        expected = solved([batch(at, False) for at in points], "linear")
        assert expected is not None
        assert np.allclose(expected.value, true)
        found = [solved([batch(at, True) for at in points], "linear") for _ in range(draws)]
        spread = np.cov(np.array([one.value for one in found if one is not None]).T)
        assert np.diag(spread) == pytest.approx(np.diag(expected.noise), rel=5 * math.sqrt(2 / draws))


def test_columns_that_say_nearly_the_same_get_a_ridge_with_errors_that_hold() -> None:
    """Four columns with correlations of .9 at epsilon 2, of which mostly nothing was told before."""
    n, names, held = 30_000, "abcd", []
    made = Queries({name: Interval(0, 10) for name in names} | {"y": Interval(0, 24)}, 2, n, regress={"target": "y"})
    for seed in range(4):
        random = np.random.default_rng(seed)
        own = math.sqrt(0.9) * random.standard_normal((n, 1)) + math.sqrt(0.1) * random.standard_normal((n, 4))
        columns = np.clip(5 + 1.8 * own, 0, 10)
        target = np.clip(8 + columns @ [0.5, -0.3, 0.2, 0.0] + random.standard_normal(n), 0, 24)
        table = dict(zip(names, columns.T, strict=True)) | {"y": target}
        found = made.estimate(made.tally(made.privatize(table, Simulation(seed))))
        assert found.is_known
        assert "ridge regression" in found.method
        assert any("ridge regression" in note for note in found.notes)
        truth = np.linalg.lstsq(np.column_stack([np.ones(n), columns]), target, rcond=None)[0]
        ends = found.interval()
        held.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        assert (np.abs(found.value[1:] - truth[1:]) < 2).all()
    assert np.mean(held) >= 0.8


def test_too_few_reports_say_so_and_none_are_no_error() -> None:
    made = asked("linear", 1)
    for found in (made.estimate(made.empty()), made.estimate(made.tally(made.privatize(of(made, crowd(50, 1)))))):
        assert not found.is_known
        assert (found.interval()[:, 0] < -50).all()
        assert found.rows()[0]["label"] == "intercept"
        assert rows_of(found.to_dict())[0]["value"] is None
    assert TOO_FEW in found.notes
    assert found.measured() is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "either queries or regress"),
        ({"queries": {}}, "queries are an object"),
        ({"queries": {"a": {"times": ["weight"]}}}, "there is no column 'weight'"),
        ({"queries": {"a": {"times": ["smoke"]}}}, "name one of them"),
        ({"queries": {"a": {"times": [("age", 3)]}}}, "name it alone"),
        ({"queries": {"a": {"times": [], "bound": 2}}}, "go with weights"),
        ({"queries": {"a": {"weights": [[None, 1]], "link": "probit"}}}, "a link"),
        ({"queries": {"a": {"weights": [[None, 100]]}}}, "up to 32"),
        ({"queries": {"a": {"weights": [[None, 1]], "bound": 0}}}, "positive bound"),
        ({"regress": {"target": "weight"}}, "there is no column"),
        ({"regress": {"target": "hours", "link": "logistic"}}, "explains an answer of a list"),
        ({"regress": {"target": "hours", "link": "probit"}}, "the link of a regression"),
        ({"regress": {"target": "hours"}, "at": [1]}, "has 4 coefficients"),
        ({"regress": {"target": "hours"}, "people": 0}, "number of people"),
    ],
)
def test_what_is_no_query_is_refused_with_the_reason(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises((SpecError, DomainError, NumberError), match=said):
        Queries(PEOPLE, 1, **wrong)


def test_a_spec_whose_queries_are_not_those_of_its_regression_is_refused() -> None:
    spec = asked("linear", 1).spec()
    spec["queries"][4], spec["queries"][6] = spec["queries"][6], spec["queries"][4]
    with pytest.raises(SpecError, match="not those of the regression"):
        load(spec)
    mixed = asked("linear", 1).spec()
    mixed["groups"][0]["protocol"] = OneBitMean(Interval(0, 1), 1).spec()
    with pytest.raises(SpecError, match="a protocol for a mean on"):
        load(mixed)


@pytest.mark.floats
def test_the_start_of_a_logistic_regression_is_fishers_discriminant() -> None:
    """Of two normal crowds with one covariance it is the truth; in fractions and in floats it is the same."""
    means, apart, share = np.array([0.1, -0.2]), np.array([0.5, -0.3]), 0.3
    within = np.array([[0.2, 0.05], [0.05, 0.1]])
    slopes = np.linalg.solve(within, apart)
    centre = means + share * apart
    inner = within + share * (1 - share) * np.outer(apart, apart) + np.outer(centre, centre)
    moments = np.block([[np.ones((1, 1)), centre[None]], [centre[:, None], inner]])
    gradient = share * np.array([1.0, *(means + apart)]) - moments[0] / 2
    step = np.linalg.solve(moments / 4, gradient)
    found = discriminant(step.tolist(), gradient.tolist(), moments[0].tolist(), math.log)
    assert np.allclose(found, [math.log(3 / 7) - (means + apart / 2) @ slopes, *slopes])
    exactly = [[Fraction(one) for one in row] for row in (step.tolist(), gradient.tolist(), moments[0].tolist())]
    again = discriminant(*exactly, log=lambda ratio: Fraction(math.log(ratio)))  # type: ignore[misc]
    assert np.allclose([float(one) for one in again], found, atol=1e-12)
    assert all(map(math.isfinite, discriminant([9.0, 9.0], [0.5, 3.0], [1.0, 0.2], math.log))), "noise is no error"


def test_what_is_not_converged_is_in_the_error_and_in_a_note() -> None:
    made = asked("logistic", 4, 300_000)
    random, people = np.random.default_rng(1), Crowd.of(made, crowd(500, 1))
    once, often = (campaign(made, people, rounds, 300_000, random) for rounds in (1, 4))
    assert once.unconverged is not None
    assert often.unconverged is not None
    assert (often.unconverged < 0.3 * once.unconverged).all()
    assert (once.unconverged < once.stderr).all()
    assert any("have not yet converged" in note for note in once.notes)
    assert not any("converged" in note for note in often.notes)
    linear = asked("linear", 4, 300_000)
    assert not campaign(linear, Crowd.of(linear, crowd(500, 1)), 2, 300_000, random).unconverged.any()  # type: ignore[union-attr]


def strong(n: int, seed: int) -> dict[str, Any]:
    """Effects as large as those of a census: odds times ten."""
    random = np.random.default_rng(seed)
    age, edu = random.uniform(20, 70, n), random.choice(5, n, p=[0.1, 0.2, 0.4, 0.2, 0.1]) + 1
    smoke = random.random(n) < 0.3 + 0.008 * (age - 45)
    ill = random.random(n) < 1 / (1 + np.exp(2.7 - 0.05 * (age - 45) - 2.3 * smoke - 0.8 * (edu - 3)))
    yes = np.array(["no", "yes"])
    return {"age": age, "smoke": yes[smoke.astype(int)], "edu": edu, "ill": yes[ill.astype(int)]}


def held(link: str, table: dict[str, Any], rounds: int, campaigns: int = 150) -> float:
    """How often the 95 % intervals of such campaigns hold the coefficients of the population."""
    made = asked(link, 4, 60_000)
    people, random = Crowd.of(made, of(made, table)), np.random.default_rng(rounds)
    numbers = np.column_stack([np.ones(len(table["age"])), table["age"], table["smoke"] == "yes", table["edu"]])
    if link == "linear":
        truth = np.linalg.lstsq(numbers, np.clip(table["hours"], 0, 80), rcond=None)[0]
    else:
        truth = np.zeros(4)
        for _ in range(12):
            p = 1 / (1 + np.exp(-numbers @ truth))
            slope = (numbers * (p * (1 - p))[:, None]).T @ numbers
            truth = truth + np.linalg.solve(slope, numbers.T @ ((table["ill"] == "yes") - p))
    found = [campaign(made, people, rounds, 60_000, random) for _ in range(campaigns)]
    ends = np.array([one.interval() for one in found])
    return float(np.mean((ends[:, :, 0] <= truth) & (truth <= ends[:, :, 1])))


@pytest.mark.slow
@pytest.mark.parametrize(("of_people", "rounds"), [("linear", 1), ("linear", 3), ("logistic", 2), ("strong", 5)])
def test_intervals_hold_whatever_the_number_of_rounds(of_people: str, rounds: int) -> None:
    """95 % intervals of 4 coefficients in 150 campaigns: at least 92 percent hold (by chance less, 1 in 100)."""
    table = strong(1_500, 1) if of_people == "strong" else crowd(1_500, 1)
    assert held("linear" if of_people == "linear" else "logistic", table, rounds) >= 0.92


@pytest.mark.slow
def test_intervals_would_not_hold_without_the_remainder_and_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same campaigns from a step at 0, with noise alone in the errors; and a noise that is said to be half."""
    plain = regression._newton

    def alone(batches: Any, link: str) -> Any:
        found = plain(batches, link)
        return None if found is None else found._replace(remainder=np.zeros_like(found.remainder))

    with monkeypatch.context() as patched:
        patched.setattr(queries, "discriminant", lambda step, *_: step)
        patched.setattr(regression, "_newton", alone)
        assert held("logistic", strong(1_500, 1), 3, 100) < 0.9
    half = Batch._replace

    def quieter(self: Queries, measured: Any, n: int) -> Batch:
        found = batch(self, measured, n)
        return half(found, variances=found.variances / 4)

    batch = Queries._batch
    monkeypatch.setattr(Queries, "_batch", quieter)
    assert held("linear", crowd(1_500, 1), 3, 100) < 0.9


def test_campaigns_are_drawn_from_the_law_of_real_ones() -> None:
    """Each mean of 40,000 reports is within 5 standard errors of that of the drawn tally (once in 10^5 times)."""
    made = asked("logistic", 2, 40_000)
    table = of(made, crowd(40_000, 3))
    real = made._measured(made.tally(made.privatize(table, Simulation(3))))
    other = made._measured(drawn(made, Crowd.of(made, table), 40_000, np.random.default_rng(3)))
    for (a, first, _), (b, second, _) in zip(real, other, strict=True):
        assert abs(a - b) < 5 * math.sqrt(first + second)
        assert 0.8 < first / second < 1.25

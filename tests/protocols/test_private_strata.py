"""Private strata: one epsilon for stratum and answer, ratios with errors that hold, and nothing told of tiny strata."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable.protocols import PrivateStrata, private_strata
from deniable.protocols.private_strata import _covariance
from deniable.randomness import exhaust
from deniable.surveys import Survey
from deniable.surveys.diff import diff, weaker
from deniable.surveys.promises import promises

SMOKE = {"sex": ["f", "m"], "smoke": ["yes", "no"]}
SLEEP = {"sex": ["f", "m", "x"], "sleep": dn.Interval(0, 24, unit="hours")}


def largest_ratio(protocol: PrivateStrata, answers: list[Any]) -> Fraction:
    """Over all pairs of whole answers, from the bytes of reports, rounding of numbers included."""
    encoded = [protocol.domain.encode_one(one) for one in answers]
    laws = [exhaust(lambda bits, one=one: protocol.draw(one, bits)).law for one in encoded]
    assert all(set(law) == set(laws[0]) for law in laws)
    return max(one[report] / other[report] for one in laws for other in laws for report in one)


@pytest.mark.parametrize("epsilon", ["1/100", "1", "8"])
def test_epsilon_holds_between_any_two_pairs_of_stratum_and_answer(epsilon: str) -> None:
    listed, number = PrivateStrata(SMOKE, epsilon), PrivateStrata(SLEEP, epsilon, positions=2)
    pairs = [{"sex": sex, "smoke": smoke} for sex in "fm" for smoke in ("yes", "no")]
    assert largest_ratio(listed, pairs) == listed.ratio
    for place, pair in enumerate(pairs):
        own = exhaust(lambda bits, pair=pair: listed.draw(listed.domain.encode_one(pair), bits)).law
        assert own == exhaust(lambda bits, place=place: listed.inner.draw(place, bits)).law
    some = [{"sex": sex, "sleep": x} for sex in "fmx" for x in (-1, 0, 7.3, 24, 1e9)]
    assert largest_ratio(number, some) == number.ratio
    for protocol in (listed, number):
        assert protocol.channel().ratio == protocol.ratio
        assert protocol.realized_epsilon <= float(Fraction(epsilon))
        assert not protocol.law().clear
        assert protocol.guarantee.over == "any two answers"


def people(n: int, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    sex = random.choice(["f", "m", "x"], n, p=[0.4, 0.5, 0.1])
    sleep = np.where(sex == "f", 8.0, 7.0) + random.normal(size=n)
    smoke = np.where(random.random(n) < np.where(sex == "f", 0.2, 0.35), "yes", "no")
    return {"sex": sex.tolist(), "sleep": sleep.tolist(), "smoke": smoke.tolist()}


def test_each_stratum_and_all_together_and_whether_they_differ() -> None:
    everybody = people(20_000, 1)
    for columns, unit in (({**SMOKE, "sex": SLEEP["sex"]}, ""), (SLEEP, "hours")):
        protocol = PrivateStrata(columns, 3)
        answers = {name: everybody[name] for name in protocol.domain.names}
        found = protocol.estimate(protocol.tally(protocol.privatize(answers, dn.Simulation(2))))
        rows = found.table()
        assert list(found.parts) == ["all", "sex", "f", "m", "x"]
        assert (np.abs(rows.value - protocol.worth().truth(answers)) < 5 * rows.stderr).all()
        assert np.sqrt(protocol.worth().variances(answers)) == pytest.approx(
            found.table(population=False).stderr, rel=0.3
        )
        assert found["f"].n == pytest.approx(8_000, rel=0.05)
        assert set(rows.row_units) == {"", unit}
        assert found.differ().rejected(1e-4)
        assert found.parts["all"].notes[0].startswith("The strata differ")
        again = found.repeated(4.0, 4.0)
        assert again["f"].table().stderr == pytest.approx(2 * found["f"].table().stderr)
        assert again.differ().statistic == pytest.approx(found.differ().statistic / 4, rel=0.01)


def test_errors_are_those_of_the_exact_covariance_of_the_cells() -> None:
    """The closed form is that of the report's bytes: listed for every answer, for any weights of the cells."""
    protocol = PrivateStrata({"sex": ["f", "m"], "smoke": 3}, 1)
    law, size = protocol.inner, 6
    channel = law.channel()
    reports = np.array([list(bytes.fromhex(output)) for output in channel.outputs], dtype=np.uint8)
    scores = (law.support(reports) - float(law.q)) / float(law.p - law.q)
    rows, shares = np.asarray(channel.rows, dtype=float), np.array([0.1, 0.2, 0.3, 0.1, 0.25, 0.05])
    weights = np.random.default_rng(3).normal(size=(2, size))
    sums = scores @ weights.T
    exact = sum(
        share * (np.einsum("r,ra,rb->ab", row, sums, sums) - np.outer(row @ sums, row @ sums))
        for share, row in zip(shares, rows, strict=True)
    )
    assert _covariance(law, weights, shares) == pytest.approx(exact)
    assert rows @ scores == pytest.approx(np.eye(size)), "the cells are unbiased"


@pytest.mark.parametrize(
    ("columns", "runs"),
    [(SMOKE, 100), *(pytest.param(one, 400, marks=pytest.mark.slow) for one in (SMOKE, SLEEP))],
    ids=["shares", "shares in many surveys", "mean in many surveys"],
)
def test_intervals_hold_and_the_test_has_its_size(columns: dict[str, Any], runs: int) -> None:
    """Surveys of 3,000 people whose answer has nothing to do with their stratum.

    Shares of surveys are allowed 4.5 standard errors from 95 % and 5 %, and standard errors 4 from the spread of the
    estimates: below 1e-4 each. Of 400 surveys, intervals that are a quarter too short are seen.
    """
    protocol, random, bits = PrivateStrata(columns, 2), np.random.default_rng(5), dn.Simulation(8)
    names, last, n = list(protocol.stratum_names), protocol.domain.names[-1], 3_000
    sizes = [1 / len(names)] * len(names)
    own = [0.5, 0.5] if last == "smoke" else [12.0]
    truth, held, rejected, each = np.array([*own, *sizes, *own * len(names)]), [], [], []
    for _ in range(runs):
        answers = random.choice(["yes", "no"], n) if last == "smoke" else random.uniform(0, 24, n)
        drawn = {"sex": random.choice(names, n), last: answers}
        found = protocol.estimate(protocol.tally(protocol.privatize(drawn, bits)))
        table = found.table()
        held.append((table.low <= truth) & (truth <= table.high))
        rejected.append(found.differ().rejected())
        each.append((table.value, table.stderr))
    spread, stated = np.std([value for value, _ in each], axis=0), np.mean([error for _, error in each], axis=0)
    assert stated == pytest.approx(spread, rel=4 / math.sqrt(2 * runs))
    off = 4.5 * math.sqrt(0.05 * 0.95 / runs)
    assert np.mean(held, axis=0).min() >= 0.95 - off, np.mean(held, axis=0)
    assert np.mean(rejected) <= 0.05 + off


def test_nothing_is_told_about_strata_of_a_few_people() -> None:
    protocol = PrivateStrata({"sex": ["f", "m", "x"], "smoke": ["yes", "no"]}, 1)
    answers = {"sex": ["f", "m"] * 1_500 + ["x"] * 150, "smoke": ["yes", "no", "no", "no", "no"] * 630}
    found = protocol.estimate(protocol.tally(protocol.privatize(answers, dn.Simulation(4))))
    assert 20 < found["sex"].counts[2] < 4 * 3_150 * found["sex"].stderr[2], "more than a few, and not clear of none"
    assert found["x"].n == 0
    assert found["x"].interval().tolist() == [[0.0, 1.0]] * 2
    assert found.notes == ["too few people to tell anything about x"]
    assert found["x"].notes == ["too few people to tell anything"], "there are reports, and maybe some about x"
    nobody = protocol.estimate(protocol.empty())
    assert np.isnan(nobody.table().value).all()
    assert nobody.differ().p_value == 1.0
    one = protocol.estimate(protocol.tally(protocol.privatize([{"sex": "f", "smoke": "yes"}])))
    assert [part.n for part in one.parts.values()] == [1, 1, 0, 0, 0]


def test_one_law_for_both_beats_a_part_of_epsilon_for_each() -> None:
    """The rival: stratum by randomized response at half of epsilon, answer at the other half, the product inverted."""
    for strata, epsilon in ((2, 1.0), (10, 1.0), (2, 4.0)):
        joint = PrivateStrata({"s": strata, "x": 2}, epsilon).worth(1_000).noise
        seconds = []
        for size in (strata, 2):
            p = np.exp(epsilon / 2) / (np.exp(epsilon / 2) + size - 1)
            q = (1 - p) / (size - 1)
            own, other = p * (1 - q) ** 2 + (1 - p) * q**2, q * (1 - q)
            seconds.append(np.array([own, other]) / (p - q) ** 2)
        # Nobody in the stratum gave the answer; a report is about the stratum with probability 1 / strata.
        variance = (seconds[0][0] + (strata - 1) * seconds[0][1]) / strata * seconds[1][1] * strata**2
        assert joint < np.sqrt(variance / 1_000), (strata, epsilon)


def test_what_is_no_private_stratum_is_refused() -> None:
    for columns, why in (
        ({"smoke": ["yes", "no"]}, "at least two columns"),
        ({"age": dn.Interval(0, 1), "smoke": ["yes", "no"]}, "known beforehand"),
        ({"sex": ["all", "m"], "smoke": ["yes", "no"]}, "is called"),
        ({"sex": ["sex", "m"], "smoke": ["yes", "no"]}, "is called"),
        ({"a": 100, "x": 25}, "combinations"),
    ):
        with pytest.raises(dn.errors.DeniableError, match=why):
            PrivateStrata(columns, 1)
    for positions in (1, True, 2.0, 5_000):
        with pytest.raises(dn.errors.DeniableError, match="positions"):
            PrivateStrata(SLEEP, 1, positions=positions)
    with pytest.raises(dn.errors.DeniableError, match="positions"):
        PrivateStrata(SMOKE, 1, positions=2)
    protocol = PrivateStrata(SMOKE, 1)
    for wrong in ({"sex": "maybe", "smoke": "yes"}, {"smoke": "yes"}, "maybe", {"sex": "f", "smoke": float("nan")}):
        with pytest.raises(dn.errors.DomainError) as caught:
            protocol.report(wrong)
        assert "maybe" not in str(caught.value)
    with pytest.raises(dn.errors.SpecError, match="one of"):
        dn.load(protocol.spec() | {"law": dn.OUE(4, 1).spec()})
    with pytest.raises(dn.errors.SpecError, match="one of"):
        dn.load(protocol.spec() | {"law": dn.GRR(4, 2).spec()})


def draft(**more: Any) -> dict[str, Any]:
    smoke = {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"]}
    sleep = {"id": "sleep", "text": "How long?", "answers": {"number": {"low": 0, "high": 24, "unit": "hours"}}}
    head = {"name": "habits", "epsilon": "2", "people": 9000, "strata": {"sex": {"private": ["f", "m", "x"]}}}
    return {**head, "questions": [smoke, sleep], **more}


def test_a_draft_says_what_is_private() -> None:
    survey = Survey.from_draft(draft())
    assert [question.protocol.name for question in survey] == ["PrivateStrata"] * 2
    assert survey.epsilon == 4
    assert Survey.from_spec(json.loads(survey.to_json())) == survey
    said = " ".join(promises(survey, "device").values())
    assert "in clear" not in said
    assert "chooses" not in said
    public = Survey.from_draft(draft(strata={"sex": ["f", "m", "x"]}))
    assert "question smoke: sent in clear" in {edit.what for edit in weaker(diff(survey, public))}
    for strata, why in (
        ({"sex": {"private": ["f", "m"]}, "country": ["de", "fr"]}, "'country' would be sent in clear"),
        ({"sex": {"hidden": ["f", "m"]}}, "is written"),
        ({"smoke": {"private": ["f", "m"]}}, "called like a stratum"),
    ):
        with pytest.raises(dn.errors.SpecError, match=why):
            Survey.from_draft(draft(strata=strata))
    with pytest.raises(dn.errors.SpecError, match="leave it out"):
        Survey.from_draft(draft(protocol="GRR"))
    alone = {"record": SMOKE, "read": "strata"}
    one = draft(questions=[{"id": "habits", "text": "?", "answers": alone}])
    assert Survey.from_draft({key: value for key, value in one.items() if key != "strata"})[
        "habits"
    ].protocol.worth().strata == ("sex",)


def test_files_and_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from deniable.cli import app

    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> str:
        result = CliRunner().invoke(app, list(args))
        assert result.exit_code == 0, result.output
        return result.stdout

    Path("draft.json").write_text(json.dumps(draft()))
    made = run("survey", "new", "draft.json", "-o", "survey.json")
    assert "there are 6 combinations" in " ".join(made.split())
    table = people(6000, 2)
    rows = zip(*(table[name] for name in ("sex", "smoke", "sleep")), strict=True)
    Path("answers.csv").write_text("sex,smoke,sleep\n" + "\n".join(f"{a},{b},{c:.2f}" for a, b, c in rows) + "\n")
    run("privatize", "survey.json", "answers.csv", "-o", "reports.parquet", "--seed", "1")
    shown = run("estimate", "survey.json", "reports.parquet")
    assert all(part in shown for part in ("smoke.all", "smoke.sex", "sleep.f"))
    tested = json.loads(run("test", "survey.json", "reports.parquet", "--strata", "--json"))
    assert [one["id"] for one in tested["questions"]] == ["smoke", "sleep"]


def test_the_best_positions_are_never_worse_than_two() -> None:
    for epsilon in (1, 3, 5):
        found = PrivateStrata(SLEEP, epsilon)
        assert found.worth(1000).noise <= PrivateStrata(SLEEP, epsilon, positions=2).worth(1000).noise
    assert found.positions > 2
    assert private_strata._best_positions(1000, Fraction(1)) == 2

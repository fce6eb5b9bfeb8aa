"""Strata: sent in clear, counted by themselves, refused where they are not public; everything else is the answer's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable.channels.adjacency import related_factor
from deniable.protocols import GRR, OUE, Ranges, Stratified, Window
from deniable.surveys import Question, Survey
from deniable.surveys.diff import diff, weaker

COUNTRIES = {"country": ["de", "fr", "pl"]}


def people(n: int = 9000) -> dict[str, Any]:
    """In fr twice as many smoke; hardly anybody is from pl."""
    random = np.random.default_rng(4)
    country = np.where(np.arange(n) < 15, "pl", np.where(np.arange(n) % 3 == 0, "fr", "de"))
    smoke = np.where(random.random(n) < np.where(country == "fr", 0.6, 0.3), "yes", "no")
    return {"country": country.tolist(), "smoke": smoke.tolist()}


def test_each_stratum_and_all_together_and_whether_they_differ() -> None:
    protocol = Stratified(COUNTRIES, GRR(["yes", "no"], 2), "smoke")
    answers = people()
    found = protocol.estimate(protocol.tally(protocol.privatize(answers, dn.Simulation(1))))
    assert list(found.parts) == ["all", "de", "fr", "pl"]
    assert [part.n for part in found.parts.values()] == [9000, 5990, 2995, 15]
    truth = protocol.worth().truth(answers).reshape(4, 2)
    for (name, part), shares in zip(found.parts.items(), truth, strict=True):
        assert (np.abs(part.frequencies - shares) < 6 * part.stderr).all(), name
    assert found.differ().p_value < 1e-9
    assert len(found.differ().n) == 2, "too few people are from pl"
    assert found.parts["all"].notes[-1].startswith("The strata differ (p < 0.0001")
    assert not found.test(truth[0]).rejected(1e-6)
    again = found.repeated(2.0, 2.0)
    assert again.differ().statistic < found.differ().statistic
    nobody = protocol.estimate(protocol.empty())
    assert nobody.differ().p_value == 1.0
    assert np.isnan(nobody.table().value).all()


@pytest.mark.parametrize("epsilon", ["1/100", "1", "8"])
def test_the_answer_keeps_its_epsilon_and_the_stratum_has_none(epsilon: str) -> None:
    protocol = Stratified({"version": 2}, OUE(3, epsilon))
    channel = protocol.channel()
    assert related_factor(channel, protocol.law().related(), protocol.guarantee.delta) == protocol.ratio
    assert channel.epsilon == float("inf")
    assert protocol.guarantee.over == "any two answers with the same version, sent in clear"
    assert protocol.law().clear == ("version",)


def test_numbers_and_ranges_are_counted_in_strata() -> None:
    bits = dn.Simulation(5)
    hours = Stratified({"beta": [True, False]}, Window(dn.Interval(0, 24, unit="hours"), 2), "hours")
    answers = {"beta": [True, False] * 2000, "hours": [9.0, 6.0] * 2000}
    found = hours.estimate(hours.tally(hours.privatize(answers, bits)))
    assert [abs(part.value - x) < 6 * part.stderr for part, x in zip(found.parts.values(), (7.5, 9, 6), strict=True)]
    assert found.differ().rejected(1e-6)
    ages = Stratified({"beta": [True, False]}, Ranges(64, 2), "age")
    some = {"beta": [True, False] * 2000, "age": [10, 50] * 2000}
    assert ages.estimate(ages.tally(ages.privatize(some, bits))).differ().rejected(1e-6)


def test_what_is_no_stratum_is_refused() -> None:
    coin = GRR(["yes", "no"], 1)
    for strata, why in (
        ({}, "public attributes"),
        ({"country": ["de"]}, "at least 2"),
        ({"answer": ["a", "b"]}, "stratum and the answer"),
        ({"age": dn.Interval(0, 1)}, "list of at least two"),
        ({"country": ["all", "de"]}, "called 'all'"),
        ({"a": 64, "b": 64}, "combinations"),
    ):
        with pytest.raises(dn.errors.DeniableError, match=why):
            Stratified(strata, coin)
    with pytest.raises(dn.errors.DeniableError, match="cannot be counted"):
        Stratified(COUNTRIES, dn.CMS(dn.Strings(64, 4, "k"), 1))
    protocol = Stratified(COUNTRIES, coin, "smoke")
    for wrong in ({"country": "at", "smoke": "yes"}, {"smoke": "yes"}, "yes"):
        with pytest.raises(dn.errors.DomainError) as caught:
            protocol.report(wrong)
        assert "at" not in str(caught.value).split()
    broken = protocol.privatize(people(3), dn.Simulation(1)).array.copy()
    broken[0, 0] = 3
    assert protocol.valid(broken).tolist() == [False, True, True]


def draft(**more: Any) -> dict[str, Any]:
    smoke = {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"], "protocol": "GRR"}
    sleep = {"id": "sleep", "text": "How long?", "answers": {"number": {"low": 0, "high": 24, "unit": "hours"}}}
    return {"name": "habits", "epsilon": "1", "people": 9000, "questions": [smoke, sleep], **more}


def test_a_draft_says_what_is_public() -> None:
    survey = Survey.from_draft(draft(strata=COUNTRIES))
    assert [question.protocol.name for question in survey] == ["Stratified", "Stratified"]
    assert survey.epsilon == 2
    assert Survey.from_spec(json.loads(survey.to_json())) == survey
    table = {**people(300), "sleep": [7.0] * 300}
    tally = survey.tally(survey.privatize(table, bits=dn.Simulation(2)))
    found = survey["sleep"].protocol.estimate(tally["sleep"])
    assert found.parts["de"].n == 190
    for strata, why in (
        ({"sex": {"hidden": ["f", "m"]}}, "must be hidden"),
        ({"sex": "f"}, "must be hidden"),
        ([], "attributes with their values"),
    ):
        with pytest.raises(dn.errors.SpecError, match=why):
            Survey.from_draft(draft(strata=strata))


def test_a_successor_with_strata_is_weaker() -> None:
    before, after = Survey.from_draft(draft()), Survey.from_draft(draft(strata=COUNTRIES))
    assert "question smoke: sent in clear" in {edit.what for edit in weaker(diff(before, after))}
    assert not any("sent in clear" in edit.what for edit in weaker(diff(after, before)))


def test_a_report_explains_what_is_in_clear() -> None:
    protocol = Stratified(COUNTRIES, GRR(["yes", "no"], 1), "smoke")
    answer = {"country": "fr", "smoke": "yes"}
    steps = protocol.explain(answer, protocol.report(answer, dn.Simulation(3)))
    assert steps[0].text == "Your country (“fr”) goes along as it is."
    assert steps[-1].outcome.startswith("fr: ")


def test_files_and_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from deniable.cli import app

    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> str:
        result = CliRunner().invoke(app, list(args))
        assert result.exit_code == 0, result.output
        return result.stdout

    Path("draft.json").write_text(json.dumps(draft(strata=COUNTRIES)))
    run("survey", "new", "draft.json", "-o", "survey.json")
    table = people(3000)
    rows = [f"{c},{s},7" for c, s in zip(table["country"], table["smoke"], strict=True)]
    Path("answers.csv").write_text("country,smoke,sleep\n" + "\n".join(rows) + "\n")
    run("privatize", "survey.json", "answers.csv", "-o", "reports.parquet", "--seed", "1")
    shown = run("estimate", "survey.json", "reports.parquet", "--question", "smoke")
    assert "smoke.all" in shown
    assert "smoke.fr" in shown
    assert "The strata differ (p < 0.0001" in " ".join(shown.split())
    tested = json.loads(run("test", "survey.json", "reports.parquet", "--strata", "--json"))
    assert [one["test"]["p_value"] < 1e-6 for one in tested["questions"]] == [True, False]
    Survey("plain", [Question("smoke", "?", GRR(["yes", "no"], 1))]).save("plain.json")
    refused = CliRunner().invoke(app, ["test", "plain.json", "reports.parquet", "--strata"])
    assert refused.exit_code != 0

"""A protocol alone is a survey of one question, whose identity, reports and tallies are the protocol's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deniable.audit.verdict import audit
from deniable.errors import MismatchError, SpecError
from deniable.files import tally_files, write_reports
from deniable.protocols import GRR, OUE, Reports
from deniable.protocols.numeric.secure_sum import SecureSum
from deniable.randomness import Simulation
from deniable.specs import canonical_bytes
from deniable.surveys import Question, Survey, SurveyTally

COIN = GRR(["yes", "no"], 1)
ALONE = Survey.of(COIN)


def test_the_identity_is_the_protocols() -> None:
    assert (ALONE.kind, ALONE.fingerprint, ALONE.spec()) == ("protocol", COIN.fingerprint, COIN.spec())
    assert ALONE.canonical == canonical_bytes(COIN.spec())
    assert ALONE.source("report") is None
    assert (ALONE.epsilon, ALONE.ratio, ALONE.terms, len(ALONE)) == (COIN.epsilon, COIN.ratio, None, 1)
    named = Survey("coin", [Question("report", "Heads?", COIN)])
    assert named.kind == "survey"
    assert named.fingerprint != ALONE.fingerprint


def test_only_a_protocol_makes_one() -> None:
    for thing in (ALONE, COIN.spec(), None):
        with pytest.raises(SpecError, match="a protocol is wanted"):
            Survey.of(thing)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="not a survey"):
        Survey.from_spec(ALONE.spec())


def test_a_sum_in_shares_alone_names_no_collectors() -> None:
    (shared, *_) = SecureSum.examples()
    assert Survey.of(shared).fingerprint == shared.fingerprint


def test_reports_and_tallies_are_written_as_the_protocols(tmp_path: Path) -> None:
    answers = ["yes", "no", "no"]
    made = ALONE.privatize({"report": answers}, bits=Simulation(1))
    expected = COIN.privatize(answers, Simulation(1))
    assert made["report"].to_bytes() == expected.to_bytes()
    tally = ALONE.tally(made)
    assert tally["report"] == COIN.tally(expected)
    assert tally.spec() == COIN.tally(expected).spec()
    tally.save(tmp_path / "tally.json")
    assert json.loads((tmp_path / "tally.json").read_text())["kind"] == "tally"
    write_reports(tmp_path / "reports.parquet", ALONE, [made])
    assert Reports.load(tmp_path / "reports.parquet").to_bytes() == expected.to_bytes()
    assert tally_files(ALONE, [tmp_path]) == tally + tally
    other = SurveyTally.empty(Survey.of(OUE(["yes", "no"], 1)))
    with pytest.raises(MismatchError):
        tally + other


def test_the_question_may_have_another_id() -> None:
    coin = Survey.of(COIN, "coin")
    assert coin.tally(coin.privatize({"coin": ["yes"] * 9}))["coin"].n == 9
    assert coin.fingerprint == ALONE.fingerprint


def test_a_named_survey_of_one_question_keeps_its_own_tally() -> None:
    named = SurveyTally.empty(Survey("coin", [Question("report", "Heads?", COIN)]))
    assert named.spec()["kind"] == "survey-tally"
    assert SurveyTally.from_spec(named.spec()) == named


def test_an_audit_is_that_of_the_protocol() -> None:
    assert audit(ALONE, seed=1) == audit(COIN, seed=1)


def test_files_say_how_a_protocol_is_given(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"Survey\.of\(protocol\)"):
        tally_files(COIN, [tmp_path])  # type: ignore[arg-type]

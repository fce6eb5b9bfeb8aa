"""The analyst's client against a real service: sums, live changes, refusals in one sentence."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from deniable.cli.demo import DemoService, running
from deniable.collect.analyst import Analyst, EpochChange, ServiceRefused, read_range
from deniable.collect.crowd import CrowdError, send_crowd
from deniable.collect.http import ForbiddenAddress, Unreachable
from deniable.errors import SpecError
from deniable.randomness import Simulation
from deniable.surveys import Survey
from tests.collect import surveys

PEOPLE = {"smoke": ["yes"] * 30 + ["no"] * 70}


def the_survey() -> Survey:
    return Survey.from_draft(
        {
            "name": "smoking",
            "owner": "tests",
            "purpose": "to test",
            "epsilon": 1,
            "days": 1,
            "questions": [{"id": "smoke", "text": "?", "answers": ["yes", "no"], "protocol": "GRR"}],
        }
    )


@pytest.fixture(scope="module")
def survey() -> Survey:
    return the_survey()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, survey: Survey) -> Iterator[DemoService]:
    with running(tmp_path_factory.mktemp("service"), survey) as found:
        yield found


@pytest.fixture
def analyst(service: DemoService) -> Iterator[Analyst]:
    with Analyst(service.address, service.analyst) as found:
        yield found


def test_what_a_crowd_sends_is_what_the_analyst_sums(service: DemoService, analyst: Analyst, survey: Survey) -> None:
    before = analyst.tally(survey)["smoke"]
    sent = send_crowd(service.address, survey, PEOPLE, Simulation(7))
    after = analyst.tally(survey)["smoke"]
    protocol = survey["smoke"].protocol
    reports = np.frombuffer(b"".join(one.body[24:] for one in sent), dtype=np.uint8).reshape(-1, 1)
    assert after == before + protocol.tally(reports, survey.source("smoke"))
    assert analyst.status(survey.fingerprint)["accepted"] == after.n


def test_the_survey_comes_as_it_was_published(analyst: Analyst, survey: Survey) -> None:
    assert analyst.survey(survey.fingerprint) == survey
    assert survey.fingerprint in [listed.fingerprint for listed in analyst.surveys()]


def test_live_changes(service: DemoService, survey: Survey) -> None:
    seen: list[EpochChange] = []
    ready, enough = threading.Event(), threading.Event()

    def watch() -> None:
        with Analyst(service.address, service.analyst) as listener:
            for change in listener.changes(survey.fingerprint):
                seen.append(change)
                ready.set()
                if len(seen) >= 2:
                    enough.set()
                    return

    send_crowd(service.address, survey, {"smoke": ["yes"]})
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    assert ready.wait(20)
    send_crowd(service.address, survey, {"smoke": ["no"] * 5})
    assert enough.wait(20)
    assert seen[-1].n > seen[0].n


def test_epochs_are_chosen(service: DemoService, analyst: Analyst, survey: Survey) -> None:
    send_crowd(service.address, survey, {"smoke": ["yes"]})
    assert analyst.tally(survey, 0, 0) == analyst.tally(survey)
    assert analyst.tally(survey, 1)["smoke"].n == 0


@pytest.mark.parametrize("text", ["5..3", "-1", "a..b", "1...2", "", "3..-1", "\u0663"])
def test_what_is_no_range_of_epochs(text: str) -> None:
    with pytest.raises(SpecError, match="epochs"):
        read_range(text)


def test_refusals_are_one_sentence(service: DemoService, survey: Survey) -> None:
    with Analyst(service.address) as nobody, pytest.raises(ServiceRefused, match="401"):
        nobody.tally(survey)
    with Analyst(service.address, "dn_wrong") as stranger, pytest.raises(ServiceRefused, match="401"):
        stranger.tally(survey)
    with Analyst(service.address, service.analyst) as analyst:
        with pytest.raises(ServiceRefused, match="403"):
            analyst.publish(surveys.plain())
        with pytest.raises(ServiceRefused, match="404"):
            analyst.survey("0" * 64)
        with pytest.raises(SpecError, match="64 hexadecimal"):
            analyst.status("../x")
    with Analyst("http://127.0.0.1:9") as gone, pytest.raises(Unreachable):
        gone.tally(survey)
    with pytest.raises(ForbiddenAddress):
        Analyst("http://example.org")


def test_publishing_twice_is_once(service: DemoService, tmp_path: Path) -> None:
    other = surveys.plain()
    with Analyst(service.address, service.admin) as admin:
        assert admin.publish(other)
        assert not admin.publish(other)
        admin.close_survey(other.fingerprint)
        assert {listed.state for listed in admin.surveys() if listed.fingerprint == other.fingerprint} == {"closed"}


def test_a_crowd_notices_that_it_is_refused(service: DemoService) -> None:
    with pytest.raises(CrowdError, match="404"):
        send_crowd(service.address, surveys.mixed(), surveys_people())


def test_a_crowd_takes_tables_of_records_and_reports_changes_in_its_own_epoch(service: DemoService) -> None:
    """Records may have columns of their own; what the crowd of an evolving survey sends is about the first epoch."""
    now = time.time()
    rule = {"rule": "evolving", "changes": 1, "epochs": 4}
    shape = {"owner": "Ann", "purpose": "a test", "days": 4, "epochs": {"days": 1}, "epsilon": 4, "people": 99}
    parts = {"smoke": ["yes", "no"], "age": {"low": 1, "high": 9}}
    drafts = [
        {"id": "you", "text": "You?", "answers": {"record": parts, "per_device": 1}},
        {"id": "ill", "text": "Ill?", "answers": ["yes", "no"]},
    ]
    whole, evolving = (
        Survey.from_draft({**shape, **more, "name": one["id"], "questions": [one]}, now=now)
        for one, more in zip(drafts, ({}, {"longitudinal": rule}), strict=True)
    )
    with Analyst(service.address, service.admin) as admin:
        admin.publish(whole)
        admin.publish(evolving)
    columns = {"smoke": np.array(["yes", "no", "no"]), "age": [1, 2, 3]}
    assert [one.answers["you"]["age"] for one in send_crowd(service.address, whole, {"you": columns})] == [1, 2, 3]
    with pytest.raises(CrowdError, match="different lengths"):
        send_crowd(service.address, whole, {"you": columns | {"age": [1]}})
    send_crowd(service.address, evolving, {"ill": ["yes"] * 60})
    with Analyst(service.address, service.analyst) as analyst:
        found = evolving["ill"].protocol.estimate(analyst.tally(evolving)["ill"])
    assert np.isnan(found.frequencies[0]).tolist() == [False, True, True, True]


def surveys_people() -> dict[str, list[object]]:
    mixed = surveys.mixed()
    return {question.id: [question.protocol.domain.labels[0]] for question in mixed}

"""Reports and surveys deleted through the service: who may, what is refused, and what devices are told afterwards."""

from __future__ import annotations

import http.client
from contextlib import closing

import pytest

from deniable.collect.analyst import Analyst, ServiceRefused
from deniable.surveys.campaign import next_round
from deniable.surveys.terms import write_time
from tests.collect.server.live import TOKENS, eventually, in_thread
from tests.collect.server.test_rounds import people
from tests.collect.surveys import TODAY, crowd, current, daily, plain
from tests.surveys.rounds import DAY, first_round

KEPT = daily(retention="reports")
NAME, NOW = KEPT.fingerprint, current(KEPT)
PEOPLE = crowd(KEPT, 40)


@pytest.fixture
def live(tmp_path):
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", KEPT, plain()) as service:
        for epoch in (NOW - 1, NOW):
            service.send(KEPT, epoch, PEOPLE)
        yield service


def delete(live, rest=""):
    return live.ask("DELETE", f"/v1/surveys/{NAME}{rest}", role="admin")


def test_kept_reports(live):
    path = f"/v1/surveys/{NAME}/tally.json"
    sums = live.get(path, "analyst").body
    opened = delete(live, f"/reports?epochs={NOW - 1}")
    assert (opened.status, opened.problem) == (409, "inUse")
    assert f"epoch {NOW - 1} is open and its reports are needed: close it first" in opened.json["detail"]
    live.ask("POST", f"/v1/surveys/{NAME}/epochs/{NOW - 1}/close", role="admin")
    assert delete(live, "/reports").problem == "malformed"
    assert delete(live, "/reports?epochs=..").problem == "inUse"
    today = KEPT.terms.epochs.start(NOW)
    assert delete(live, f"/reports?epochs=..&before={write_time(today - 1)}").json == {"deleted": 0}
    assert delete(live, f"/reports?before={write_time(today)}").json == {"deleted": 40}
    assert live.get(path, "analyst").body == sums
    with live.store() as store:
        assert {batch.epoch for batch in store.reports(NAME)} == {NOW}
    # The same again is refused, and what is open is as before.
    assert live.send(KEPT, NOW - 1, PEOPLE).json["rejected"][0][2] == "epochClosed"
    assert live.send(KEPT, NOW, PEOPLE).json == {"accepted": 40, "rejected": []}
    assert live.ask("DELETE", f"/v1/surveys/{plain().fingerprint}/reports?epochs=..", role="admin").problem == "notKept"


def test_a_survey(live):
    refused = delete(live)
    assert (refused.problem, refused.json["detail"]) == ("inUse", "the survey still takes reports: close it first")
    listening = http.client.HTTPConnection("127.0.0.1", live.port, timeout=5)
    listening.request("GET", f"/v1/surveys/{NAME}/stream", headers={"Authorization": f"Bearer {TOKENS['analyst']}"})
    news = listening.getresponse()
    with closing(listening), Analyst(f"http://127.0.0.1:{live.port}", TOKENS["admin"]) as admin:
        admin.close_survey(NAME)
        assert admin.delete_reports(NAME) == 80
        admin.delete_survey(NAME)
        # Whoever listens is not kept waiting: the stream ends before its heart beats.
        assert b"event: tally" in news.read()
        with pytest.raises(ServiceRefused, match="the survey was deleted with all that was collected") as gone:
            admin.tally(KEPT)
        assert gone.value.status == 410
        with pytest.raises(ServiceRefused, match="is not collected here again: make a new survey"):
            admin.publish(KEPT)
        assert [one.fingerprint for one in admin.surveys()] == [plain().fingerprint]
    sent = live.send(KEPT, NOW, PEOPLE)
    assert (sent.status, sent.problem) == (410, "surveyDeleted")
    assert live.get(f"/v1/surveys/{NAME}").status == 410
    assert delete(live).problem == "surveyDeleted"
    assert live.send(plain(), 0, crowd(plain(), 3)).json["accepted"] == 3


def test_a_survey_deleted_by_another_process(live):
    """Nothing that others send is held up, and what is sent meanwhile is refused and leaves nothing."""
    with live.store() as store:
        store.delete_survey(NAME)
        answered = live.send(KEPT, NOW, PEOPLE)
        assert answered.status == 410 or {why for _, _, why in answered.json["rejected"]} == {"epochClosed"}
        assert live.send(plain(), 0, crowd(plain(), 3)).json["accepted"] == 3
        eventually(lambda: live.send(KEPT, NOW, PEOPLE).status == 410)
        eventually(lambda: live.get("/readyz").json == {"status": "ok"})
        assert store.check() == []
        assert store._query("SELECT COUNT(*) FROM rejected WHERE survey = 1") == [(0,)]


def test_rounds_are_deleted_from_the_last_to_the_first(tmp_path):
    first = first_round(epsilon=3, start=TODAY - DAY)
    with (
        in_thread(f"sqlite:///{tmp_path / 'store.db'}", first) as live,
        Analyst(f"http://127.0.0.1:{live.port}", TOKENS["admin"]) as admin,
    ):
        live.send(first, 0, people(first, 100, 1))
        admin.close_survey(first.fingerprint)
        second = next_round(first, admin.tally(first), TODAY - DAY, TODAY + 6 * DAY)
        admin.publish(second)
        with pytest.raises(ServiceRefused, match="round 2 of its campaign") as refused:
            admin.delete_survey(first.fingerprint)
        assert refused.value.status == 409
        admin.close_survey(second.fingerprint)
        for survey in (second, first):
            admin.delete_survey(survey.fingerprint)

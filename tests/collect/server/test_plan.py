"""Plans for anybody, beside a collection that they must not hold up."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from deniable import planning
from deniable.collect.server import service
from deniable.collect.server.pages import AUDIT_SECONDS
from deniable.collect.server.plan import POINTS, SLOW_STEP, curve
from deniable.collect.server.service import CREDIT, REST, WAITING, SideWork
from deniable.domains import Interval
from deniable.surveys.audit_report import POLICY as AUDIT_POLICY
from tests.collect.server.live import Process, eventually, in_thread
from tests.collect.surveys import crowd, plain


def test_a_flood_of_plans_holds_up_nothing_else(tmp_path, monkeypatch):
    """While plans take for ever, analysts and devices are answered, and planners beyond a few are told to wait."""
    survey, release, real = plain(), threading.Event(), planning.plan

    def slow(*arguments, **options):
        release.wait(30)
        return real(*arguments, **options)

    monkeypatch.setattr(planning, "plan", slow)
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey) as live, ThreadPoolExecutor(30) as people:
        asked = [people.submit(live.get, f"/v1/plan?categories={n}&epsilon=1&people=100") for n in range(2, 32)]
        eventually(lambda: sum(plan.done() for plan in asked) == 30 - WAITING)
        assert live.send(survey, 0, crowd(survey, 50)).status == 200
        assert live.get(f"/v1/surveys/{survey.fingerprint}/estimates", "analyst").status == 200
        release.set()
        answered = [plan.result(30) for plan in asked]
        statuses = [one.status for one in answered]
        assert statuses.count(200) == WAITING
        assert statuses.count(503) == 30 - WAITING
        assert all(int(one.headers["retry-after"]) >= 1 for one in answered if one.status == 503)


class Clock:
    """A clock whose time passes while somebody works or sleeps."""

    def __init__(self):
        self.now = self.worked = 0.0

    def monotonic(self):
        return self.now

    def thread_time(self):
        return self.worked

    def sleep(self, seconds):
        self.now += seconds

    def work(self, seconds):
        self.now += seconds
        self.worked += seconds


def test_a_few_plans_do_not_wait_and_a_flood_does(monkeypatch):
    """One after the other for a person at the page; of a flood a fifth of a processor, after a credit."""
    clock = Clock()
    monkeypatch.setattr(service, "time", clock)
    side = SideWork()
    for _ in range(3):
        side._work(lambda: clock.work(0.9))
    assert clock.now == pytest.approx(2.7), "three plans of a second each wait for nothing"
    for _ in range(100):
        side._work(lambda: clock.work(0.9))
    assert clock.worked <= clock.now / (1 + REST) + CREDIT + 0.9
    clock.sleep(60)
    begun = clock.now
    side._work(lambda: clock.work(0.9))
    assert clock.now == pytest.approx(begun + 0.9), "who was idle has credit again"
    side.stop()


def test_the_same_plan_is_made_once(tmp_path, monkeypatch):
    made, real = [], planning.plan

    def counted(*arguments, **options):
        made.append(options)
        return real(*arguments, **options)

    monkeypatch.setattr(planning, "plan", counted)
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", plain()) as live, ThreadPoolExecutor(8) as people:
        path = "/v1/plan?categories=10&epsilon=1&people=100"
        answers = {one.body for one in people.map(live.get, [path] * 20)}
        assert len(answers) == len(made) == 1
        assert live.get(path + "&level=0.9").body not in answers
        assert len(made) == 2
        # A refusal is not kept, and costs the others nothing.
        assert live.get("/v1/plan?categories=10&epsilon=65&people=100").problem == "malformed"
        assert live.get(path).status == 200


def test_the_audit_of_a_survey_is_a_page_of_the_service(tmp_path):
    survey = plain()
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey) as live:
        path, patience = f"/audit/{survey.fingerprint}", AUDIT_SECONDS
        eventually(lambda: live.get(path).status == 200, patience)  # a busy service answers 503 and goes on with it
        page = live.get(path)
        text = page.body.decode()
        assert "Cleared: the exact epsilon is" in text
        assert survey.fingerprint in text
        assert "made by the service that collects the reports" in text
        assert 'id="risk"' in text
        assert page.headers["content-security-policy"] == AUDIT_POLICY
        assert live.get(f"/audit/{survey.fingerprint}").body == page.body
        assert live.get("/audit/" + "0" * 64).status == 404
        assert live.get("/audit/none").status == 404


def test_plans_can_be_turned_off(tmp_path):
    path = "/v1/plan?categories=10&epsilon=1&people=100"
    with Process(f"sqlite:///{tmp_path / 'store.db'}", "--no-plans") as service:
        refused = service.get(path)
        assert service.get("/audit/" + "0" * 64).status == 404
        assert refused.problem == "notFound"
        assert "deniable plan" in refused.json["detail"]
        assert service.get("/v1/surveys").status == 200


def test_a_curve_has_few_points_of_a_protocol_that_is_slow_to_build():
    """A designed mean takes a tenth of a second: one at each of 25 points would keep everybody waiting."""
    points = curve(planning.plan(Interval(0, 24), epsilon=2, n=1000))
    assert all("Window" in point.half_widths for point in points)
    designed = sum("MeanTable" in point.half_widths for point in points)
    assert 2 <= designed <= POINTS // SLOW_STEP + 2

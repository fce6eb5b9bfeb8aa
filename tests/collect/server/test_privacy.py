"""Nothing about respondents is kept: not in the store, not in the log, not in the figures."""

from __future__ import annotations

import time

import pytest

from deniable.collect.wire import BINARY
from tests.collect.server.live import Process, body, eventually, in_thread, prepare
from tests.collect.surveys import crowd, plain, text

ADDRESS, AGENT = "203.0.113.77", "Sentinel/6.6 (planted)"


def test_a_planted_address_and_agent_are_found_nowhere(tmp_path):
    from deniable.collect.stores import open_store

    survey, people = plain(retention="reports"), crowd(plain(), 40)
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with open_store(url) as store:
        prepare(store, survey)
    planted = {
        "X-Forwarded-For": ADDRESS,
        "X-Real-IP": ADDRESS,
        "Forwarded": f"for={ADDRESS}",
        "User-Agent": AGENT,
        "Cookie": "sentinel-cookie=1",
        "Referer": "https://sentinel.example/page",
        "Content-Type": BINARY,
    }
    path = f"/v1/surveys/{survey.fingerprint}/reports"
    with Process(url) as service:
        for at in range(0, 40, 10):
            content = body(survey, 0, people[at : at + 10])
            assert service.ask("POST", path, content, headers=planted).status == 200
        service.ask("POST", path, b"broken sentinel-body", headers=planted)
        service.ask("GET", f"/sentinel-path?{AGENT.split('/')[0]}=1", headers=planted)
        service.ask(
            "GET", f"/v1/surveys/{survey.fingerprint}/status", headers=planted | {"Authorization": "Bearer sentinel"}
        )
        figures = service.get("/metrics", "analyst").body
        answered = service.ask("GET", "/", headers=planted).body
        assert service.stop() == 0
        log = service.log.read_bytes()
    assert log
    kept = {"log": log, "figures": figures, "page": answered}
    kept |= {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert any(name.startswith("store.db") for name in kept)
    for name, content in kept.items():
        for sentinel in (ADDRESS, "203.0.113", "127.0.0.1", "entinel"):
            assert sentinel.encode() not in content, (name, sentinel)
    # Power: the search finds what was kept, which are the ids.
    assert any(people.ids[0].tobytes() in content for content in kept.values())


def test_the_log_is_lines_of_json(tmp_path):
    import json

    from deniable.collect.stores import open_store

    survey = plain()
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with open_store(url) as store:
        prepare(store, survey)
    with Process(url) as service:
        service.send(survey, 0, crowd(survey, 5))
        service.ask("POST", f"/v1/surveys/{survey.fingerprint}/close", role="admin")
        service.stop()
        lines = [json.loads(line) for line in service.log.read_text().splitlines()]
    events = [line["event"] for line in lines]
    assert events == ["started", "clock", "closed survey", "stopped"]
    assert all("time" in line for line in lines)


def test_few_submissions_leave_no_time_in_the_log(tmp_path, capfd):
    """Two runs that differ only in whether and when somebody sent something have the same lines but for the clock."""
    import json

    survey = plain()

    def lines(name: str, moments: tuple[int, ...]) -> list[dict]:
        with in_thread(f"sqlite:///{tmp_path / name}", survey, housekeeping_seconds=0.05, log_seconds=0.05) as live:
            for moment in range(6):
                if moment in moments:
                    assert live.send(survey, 0, crowd(survey, 5, seed=moment)).status == 200
                time.sleep(0.08)
        found = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
        return [{key: value for key, value in line.items() if key != "time"} for line in found]

    quiet = lines("quiet.db", ())
    assert [line["event"] for line in quiet] == ["clock", "started", "stopped"]
    assert lines("early.db", (0,)) == lines("late.db", (3, 5)) == quiet


def test_totals_are_logged_from_a_minimum_on(tmp_path, capfd):
    import json

    survey = plain()
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with in_thread(url, survey, log_seconds=0.05, log_minimum=30) as live:
        for seed in range(3):
            assert live.send(survey, 0, crowd(survey, 10, seed)).status == 200
        eventually(lambda: not live.service.writer._unlogged)
        assert live.send(survey, 0, crowd(survey, 10, seed=3)).status == 200
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    # Those of three sendings, and what is left of the fourth never.
    assert [line["counted"] for line in lines if line["event"] == "committed"] == [30]


def test_figures_that_tell_when_somebody_sent_need_a_token(shared):
    assert shared.get("/metrics").problem == "unauthorized"
    assert shared.get("/metrics", "ingest").problem == "forbidden"
    assert b"deniable_submissions_total" in shared.get("/metrics", "analyst").body
    assert "access-control-allow-origin" not in shared.get("/metrics", "analyst").headers


def test_the_log_of_a_file_is_emptied_within_seconds(tmp_path):
    """What SQLite notes of each commit, ids beside sums, is gone soon after, while the service runs."""
    survey, people = text(), crowd(text(), 5)
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, tidy_seconds=0.2) as live:
        for place in range(5):
            assert live.send(survey, 10, people[[place]]).status == 200
        eventually(lambda: (tmp_path / "store.db-wal").stat().st_size == 0)
        content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert not any(raw[1:].tobytes() in content for raw in people.answers)
        assert people.ids[0].tobytes() in content


def test_a_service_removes_what_postgres_keeps_of_earlier_states(postgres_server, postgres_url):
    from deniable.collect.stores import open_store
    from tests.collect.stores.test_postgres_versions import versions_on_disk

    survey, people = plain(), crowd(plain(), 40)
    with open_store(postgres_url) as store:
        with in_thread(postgres_url, survey, tidy_seconds=0.2) as service:
            for at in range(0, 40, 10):
                assert service.send(survey, 0, people[at : at + 10]).status == 200
            eventually(lambda: versions_on_disk(store, postgres_server, "pool_1_0") == 1)
        assert store.check() == []
        assert [epoch.n for epoch in store.epochs(survey.fingerprint)] == [40]


@pytest.mark.parametrize("name", ["x-forwarded-for", "user-agent"])
def test_no_code_reads_these_headers(name):
    """The service's own files name no header that says who somebody is."""
    from importlib.resources import files

    for file in files("deniable.collect.server").iterdir():
        if file.name.endswith(".py"):
            assert name not in file.read_text().lower(), file.name

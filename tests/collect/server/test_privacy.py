"""Nothing about respondents is kept: not in the store, not in the log, not in the figures."""

from __future__ import annotations

import pytest

from deniable.collect.wire import BINARY
from tests.collect.server.live import Process, body, eventually, in_thread, prepare
from tests.collect.surveys import crowd, plain

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
        figures = service.get("/metrics").body
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
    # The commit log is written once in a while, before or after the survey is closed.
    assert (events[0], events[-1]) == ("started", "stopped")
    assert sorted(events[1:-1]) == ["closed survey", "committed"]
    committed = lines[events.index("committed")]
    assert (committed["groups"], committed["counted"]) == (1, 5)
    assert all("time" in line for line in lines)


@pytest.mark.parametrize("seconds", [0.2, 3600])
def test_a_service_mixes_what_came(seconds, postgres_url):
    """While it runs, and at last when it stops."""
    from deniable.collect.stores import open_store

    def unmixed():
        return store._query("SELECT COUNT(*) FROM fresh_1_0")[0][0]

    survey, people = plain(), crowd(plain(), 40)
    with open_store(postgres_url) as store:
        with in_thread(postgres_url, survey, mix_seconds=seconds) as service:
            for at in range(0, 40, 10):
                assert service.send(survey, 0, people[at : at + 10]).status == 200
            if seconds < 1:
                eventually(lambda: unmixed() == 0)
            else:
                assert unmixed() == 40
        assert unmixed() == 0
        assert store.check() == []
        assert [epoch.n for epoch in store.epochs(survey.fingerprint)] == [40]


@pytest.mark.parametrize("name", ["x-forwarded-for", "user-agent"])
def test_no_code_reads_these_headers(name):
    """The service's own files name no header that says who somebody is."""
    from importlib.resources import files

    for file in files("deniable.collect.server").iterdir():
        if file.name.endswith(".py"):
            assert name not in file.read_text().lower(), file.name

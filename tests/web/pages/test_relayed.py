"""A survey with a relay, answered in a browser: sealed, sent to the relay alone, and counted by the collector."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from deniable.collect.sealing import CollectorKey
from deniable.surveys.promises import promises
from tests.collect.server.live import Live, eventually, free_port, in_thread
from tests.collect.server.test_relay import SEALED, counted, relay_thread, sealed_bodies
from tests.collect.surveys import DAY, current
from tests.collect.test_sealing import relayed
from tests.web.pages.browser import Log


@pytest.fixture
def mixed(tmp_path: Any) -> Iterator[tuple[Any, Live, Any, list[float], str]]:
    key = CollectorKey.make(tmp_path / "collector.pem")
    survey = relayed(key, batch=3, address=f"http://127.0.0.1:{free_port()}")
    url, moment = f"sqlite:///{tmp_path / 'collector.db'}", [time.time()]
    with in_thread(url, survey, relay_key=str(tmp_path / "collector.pem")) as collector:
        here = f"http://127.0.0.1:{collector.port}"
        with relay_thread(survey, here, tmp_path / "relay.db", lambda: moment[0]) as relay:
            yield survey, collector, relay, moment, url


def test_a_browser_seals_and_sends_to_the_relay_alone(mixed: Any, open_tab: Callable[[str], Any], log: Log) -> None:
    survey, collector, relay, moment, url = mixed
    tab = open_tab(f"http://127.0.0.1:{collector.port}/s/{survey.fingerprint}")
    posted: list[tuple[str, bytes]] = []
    tab.on("request", lambda request: posted.append((request.url, request.post_data_buffer or b"")))
    tab.wait_for_selector("form")
    shown = " ".join(tab.locator("main").text_content().replace("\u00a0", " ").split())
    assert promises(survey, "browser", lasting=False)["relay"] in shown
    tab.get_by_label("yes", exact=True).check()
    tab.click("form >> text=Scramble and send")
    tab.wait_for_selector("text=the relay has taken your sealed report")
    sent = [(address, body) for address, body in posted if body]
    assert [address for address, _ in sent] == [
        f"http://127.0.0.1:{relay.port}/v1/surveys/{survey.fingerprint}/reports"
    ]
    assert sent[0][1].startswith(b"DNS1")
    for body in sealed_bodies(survey, 3)[0]:
        relay.post(survey, body, SEALED)
    moment[0] += 2 * DAY
    eventually(lambda: counted(url, survey).get(current(survey)) == 4)

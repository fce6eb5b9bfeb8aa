"""A survey with two collectors, answered in a browser: each gets its part, and both together add it up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deniable.collect import wire
from deniable.surveys.promises import promises
from tests.collect.server.test_secure import added_up, bodies_of, counts, two  # noqa: F401  # a fixture
from tests.web.pages.browser import Log


def test_a_browser_sends_each_collector_its_part(two: Any, open_tab: Callable[[str], Any], log: Log) -> None:  # noqa: F811
    survey, collectors = two
    tab = open_tab(f"http://127.0.0.1:{collectors[0].port}/s/{survey.fingerprint}")
    posted: list[tuple[str, bytes]] = []
    tab.on("request", lambda request: posted.append((request.url, request.post_data_buffer or b"")))
    tab.wait_for_selector("form")
    shown = " ".join(tab.locator("main").text_content().replace("\u00a0", " ").split())
    for name in ("line", "collectors", "band", "sure", "device", "kept"):
        assert promises(survey, "browser", lasting=False)[name] in shown, name
    tab.get_by_label("no", exact=True).check()
    tab.locator("form input.number").fill("7")
    tab.click("form >> text=Scramble and send")
    tab.wait_for_selector("text=all collectors have taken their parts")
    sent = [(address, body) for address, body in posted if body]
    assert [address for address, _ in sent] == [
        f"http://127.0.0.1:{one.port}/v1/surveys/{survey.fingerprint}/reports" for one in collectors
    ]
    (_, first), (_, second) = sent
    assert first[:24] == second[:24]
    own = np.frombuffer(wire.unshared(first + second, 2)[24:], dtype="<i8")
    # One person's noise: more than 40 in a cell has probability below 1e-9 at this epsilon, and 500 for the number.
    assert (abs(own - [0, 1, 0, 7]) <= [40, 40, 40, 500]).all()
    bodies, plain = bodies_of(survey, 8)
    for parts in bodies:
        for collector, part in zip(collectors, parts, strict=True):
            collector.post(survey, part)
    tally = added_up(survey)
    assert tally["smoke"].n == 9
    assert (counts(tally) == sum(plain) + own).all()

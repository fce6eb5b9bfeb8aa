"""What one viewer of a dashboard costs while answers come in: bytes that a browser gets, and the service's time.

Survey     ten questions of ten answers, one period per day for a year, all periods but the last closed
Viewer     Chromium on the dashboard, with one question drawn over time
Answers    a group of ten each second, added to the store by another process, so that the service's time is the viewer's
Start      everything up to the drawn page: the year is loaded once
Watching   what comes after it, as bytes on the wire and processor seconds of the service in ten minutes
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.registry import Case, Ratio, Size, Task, UnavailableError, at_most, benchmark
from deniable.collect.stores import open_store
from deniable.protocols import OUE
from deniable.surveys import Budget, Epochs, Longitudinal, Question, Survey, Terms

GROUP = "viewer"
DAYS, DAY, QUESTIONS, PEOPLE = 365, 86_400, 10, 200
TEN_MINUTES = 600.0
SECONDS, QUICK_SECONDS = 120, 20
MEGABYTES, SHARE = 2.0, 0.05
"""What a viewer may take in ten minutes: megabytes, and a share of a core."""


def survey() -> Survey:
    """A year of days, the last of which is today."""
    start = (int(time.time()) // DAY - DAYS + 1) * DAY
    terms = Terms(
        owner="Benchmark",
        purpose="To measure what a viewer costs.",
        epochs=Epochs(start, DAY, early=1, late=1),
        longitudinal=Longitudinal(),
        budget=Budget("viewer", Fraction(QUESTIONS)),
        opens=start,
        expires=start + (DAYS + 1) * DAY,
        retention="tally",
        min_reports=1,
    )
    answers = [f"answer {place}" for place in range(10)]
    questions = [Question(f"q{i}", f"What about subject {i}?", OUE(answers, epsilon=1)) for i in range(QUESTIONS)]
    return Survey("viewer", questions, terms)


class Meter:
    """Bytes that a tab has got, compressed as they came, and processor seconds of a process."""

    def __init__(self, tab: Any, process: int) -> None:
        self._bytes, self._process, self.requests = 0, process, 0
        session = tab.context.new_cdp_session(tab)
        session.send("Network.enable")
        session.on("Network.dataReceived", self._data)
        session.on("Network.requestWillBeSent", self._request)

    def _data(self, event: dict[str, Any]) -> None:
        self._bytes += event["encodedDataLength"]

    def _request(self, event: dict[str, Any]) -> None:
        self.requests += 1

    def read(self) -> tuple[float, float, int]:
        """Bytes, processor seconds and requests until now."""
        fields = Path(f"/proc/{self._process}/stat").read_text().rpartition(")")[2].split()
        return float(self._bytes), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), self.requests


@contextmanager
def watched(made: Survey) -> Iterator[tuple[Any, Meter, str]]:
    """A tab before it opens the dashboard of a service that has a year of answers, its meter, and the store's URL."""
    try:
        from tests.collect.surveys import crowd
        from tests.web.pages.browser import chromium, new_context
        from tests.web.pages.service import serving
    except ImportError as missing:
        raise UnavailableError(f"the page is opened with playwright: {missing}") from None
    with tempfile.TemporaryDirectory() as folder, chromium() as browser, serving(Path(folder), made) as service:
        with open_store(service.store) as store:
            for day in range(DAYS):
                store.add([crowd(made, PEOPLE, seed=day).batch(made, day)])
            for day in range(DAYS - 1):
                store.close_epoch(made.fingerprint, day)
        context = new_context(browser)
        tab = context.new_page()
        assert service.process is not None
        meter = Meter(tab, service.process.pid)
        tab.goto(service.dashboard(made))
        tab.wait_for_selector("input[type=password]").fill(service.analyst)
        yield tab, meter, service.store
        context.close()


@benchmark("viewer", "one viewer of 365 periods and ten questions while answers come in", group=GROUP, rounds=1)
def viewer(size: Size) -> Case:
    from tests.collect.surveys import crowd

    made, seconds = survey(), size(SECONDS, QUICK_SECONDS)
    groups = [crowd(made, 10, seed=1000 + place).batch(made, DAYS - 1) for place in range(seconds)]
    with watched(made) as (tab, meter, url), open_store(url) as store:
        before = meter.read()
        tab.get_by_role("button", name="Sign in").click()
        tab.wait_for_selector(".chart")
        tab.locator("summary", has_text="Over time").first.click()
        tab.wait_for_selector(".uplot canvas")
        tab.wait_for_timeout(6000)  # what came before is loaded
        start = meter.read()
        begun = time.monotonic()
        for place, group in enumerate(groups):
            store.add([group])
            tab.wait_for_timeout(max(0.0, 1000 * (begun + place + 1 - time.monotonic())))
        end, taken = meter.read(), time.monotonic() - begun
        shown = tab.locator(".tile b").first.inner_text()
    got, worked, asked = ((b - a) * TEN_MINUTES / taken for a, b in zip(start, end, strict=True))
    if asked == 0:
        raise RuntimeError(f"the page did not follow: it shows {shown}")
    facts: dict[str, str | int | float] = {
        "start: kilobytes": round((start[0] - before[0]) / 1e3, 1),
        "start: processor seconds": round(start[1] - before[1], 2),
        "ten minutes: megabytes": round(got / 1e6, 2),
        "ten minutes: processor seconds": round(worked, 1),
        "ten minutes: requests": round(asked),
        "seconds measured": round(taken),
    }
    # Figures are of times; here sizes and shares take their place.
    tasks = {
        "megabytes in ten minutes": Task(lambda: got / 1e6, 1, "size"),
        "share of a core": Task(lambda: worked / TEN_MINUTES, 1, "share"),
    }
    ratios = [
        Ratio("megabytes in ten minutes", "megabytes in ten minutes", None, at_most(MEGABYTES, full_only=True), False),
        Ratio("share of a core", "share of a core", None, at_most(SHARE, full_only=True), False),
    ]
    return Case(tasks, ratios, facts)

"""The web pages: what is served in all, and how soon an analyst sees the first chart in a real browser."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.registry import Case, Size, Task, UnavailableError, at_most, benchmark, cost, seconds

GROUP = "pages"


@benchmark("first-chart", "from sign-in to the first chart, in Chromium with an empty cache", group=GROUP)
def first_chart(size: Size) -> Case:
    try:
        from tests.collect.surveys import current
        from tests.web import figures
        from tests.web.pages.browser import chromium
        from tests.web.pages.service import serving
        from tests.web.pages.surveys import ten, thousand
    except ImportError as missing:
        raise UnavailableError(f"the pages are opened with playwright: {missing}") from None

    stack = ExitStack()
    atexit.register(stack.close)
    folder = Path(stack.enter_context(TemporaryDirectory()))
    browser = stack.enter_context(chromium())
    surveys = {"10 answers": ten(), "1,000 answers": thousand()}
    service = stack.enter_context(serving(folder, *surveys.values()))
    for survey in surveys.values():
        service.fill(survey, current(survey), figures.PEOPLE)
    tasks = {
        name: Task(lambda survey=survey: figures.first_chart(browser, service, survey)[1], 1, "chart")
        for name, survey in surveys.items()
    }
    plain, packed = figures.size()
    return Case(
        tasks,
        [seconds("1,000 answers", at_most(1.0)), cost("1,000 answers", of="10 answers")],
        {"bytes served in all": f"{plain:,}", "compressed": f"{packed:,}", "people": figures.PEOPLE},
    )

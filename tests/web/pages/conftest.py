from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.web.pages.browser import Log, Profile, chromium
from tests.web.pages.service import Service, serving
from tests.web.pages.surveys import every


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """One browser for this folder: the loop that drives it must not outlive the tests that know of it."""
    with chromium() as running:
        yield running


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that tests may add to; those that count answers publish a survey of their own."""
    with serving(tmp_path_factory.mktemp("service"), *every()) as running:
        yield running


@pytest.fixture
def own_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that a test has for itself."""
    with serving(tmp_path_factory.mktemp("own")) as running:
        yield running


@pytest.fixture
def stopped_service(service: Service) -> Iterator[Service]:
    """The service of all, for a test that stops it: afterwards it runs again."""
    yield service
    if service.process is None:
        service.start()


@pytest.fixture(scope="package")
def forgetful(browser: Any) -> Iterator[Profile]:
    made = Profile(browser)
    yield made
    made.context.close()


@pytest.fixture
def profile(forgetful: Profile) -> Iterator[Any]:
    """A browser profile without a past."""
    yield forgetful.context
    forgetful.forget()


@pytest.fixture
def complaints() -> Iterator[Log]:
    """Watches every tab of the test; nothing may have gone wrong in the pages."""
    watching = Log(network=False)
    yield watching
    assert watching.complaints == []


@pytest.fixture
def log(complaints: Log) -> Log:
    """The same, with every request: only for tests that look at them, because it costs a tenth of a page's time."""
    complaints.network = True
    return complaints


@pytest.fixture
def open_tab(profile: Any, complaints: Log) -> Callable[[str], Any]:
    def opened(address: str) -> Any:
        tab = profile.new_page()
        complaints.watch(tab)
        tab.goto(address)
        return tab

    return opened

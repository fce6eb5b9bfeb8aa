from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collect.server.live import Live, in_thread
from tests.collect.surveys import daily, mixed, plain, text


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """A service on a new SQLite file, with surveys of several shapes."""
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", plain(), mixed(), daily(), text()) as service:
        yield service


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """The same for tests that change nothing in it."""
    directory = tmp_path_factory.mktemp("shared")
    with in_thread(f"sqlite:///{directory / 'store.db'}", plain(), mixed(), daily(), text()) as service:
        yield service

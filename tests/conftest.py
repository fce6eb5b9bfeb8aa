"""Settings that all tests share."""

from __future__ import annotations

import functools
import gc
import importlib
import os
import random
from collections.abc import Generator
from typing import Any

import pytest
import typer.testing
from _pytest.doctest import DoctestModule
from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")
# The matrices of the tests are small: threads that wait for each other take three times the time of one. Read by numpy
# when it is imported, here and in the commands and services that tests start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# While tests are collected next to nothing becomes garbage, and looking for it takes a good part of the time.
gc.disable()

# A busy machine is no reason to fail, and a failure must come back on the next run.
settings.register_profile("deniable", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("deniable")

# A package of somebody else, for fresh processes only: an import, also to look for doctests, registers its kinds.
collect_ignore = ["strangers/stranger.py"]

LONG = (
    "tests/web",
    "tests/files/test_spark.py",
    "tests/docs",
    "tests/test_install.py",
    "tests/test_release.py",
    "tests/collect",
    "tests/cli",
    "tests/protocols/test_mle.py",
    "tests/test_planning.py",
    "tests/conformance",
    "tests/audit/test_audit.py",
    "tests/protocols/test_memoized.py",
    "tests/strangers",
    "tests/surveys",
)

SERVED = (
    "tests/web/pages",
    "tests/web/test_sdk_browser.py",
    "tests/strangers",
    "tests/docs/test_quick_start.py",
    "tests/test_install.py",
    "tests/test_release.py",
    "tests/test_leaks.py",
    "tests/cli/test_demo.py",
    "tests/cli/test_dossier.py",
    "tests/cli/test_kinds.py",
    "tests/files/test_pool.py",
    "tests/collect/test_system_machine.py",
    "tests/collect/client/test_processes.py",
    "tests/collect/client/test_properties.py",
    "tests/collect/server/test_clock.py",
    "tests/collect/server/test_commands.py",
    "tests/collect/server/test_limits.py",
    "tests/collect/server/test_nodes.py",
    "tests/collect/server/test_openapi.py",
    "tests/collect/server/test_operator.py",
    "tests/collect/server/test_plan.py",
    "tests/collect/server/test_recovery.py",
    "tests/collect/server/test_workers.py",
    "tests/collect/stores/test_deleting.py",
    "tests/collect/stores/test_kill.py",
    "tests/collect/stores/test_machine.py",
    "tests/collect/stores/test_order.py",
    "tests/collect/stores/test_postgres_versions.py",
    "tests/collect/stores/test_restore.py",
    "tests/collect/stores/test_sqlite_processes.py",
    "tests/collect/stores/test_sums_only.py",
)
"""Whole services, browsers and processes, marked `served`: `make test` leaves them to `make test-all`."""
FIRST = (
    "tests/web/pages/test_dashboard.py::test_answers_change_the_dashboard_live",
    "tests/web/test_sdk_browser.py::test_the_browser_draws_what_python_draws",
)
"""What `make test` runs of them: an answer on its way from a browser to the dashboard, and the browser's own draws."""
BUSY = ("tests/web", "tests/collect/client", "tests/collect/server", "tests/strangers")
"""Pages, browser and service, marked `busy` unless slow: `make test-elsewhere` runs them beside busy processes."""


def _must_import(name: str, *_: Any, **__: Any) -> Any:
    return importlib.import_module(name)


# Where a change is judged, a package that is missing is a failure and no reason to skip.
if os.environ.get("CI") == "true":
    pytest.importorskip = _must_import

# Typer's runner builds the tree of all commands for each call, which takes longer than most commands do.
if hasattr(typer.testing, "_get_command"):
    typer.testing._get_command = functools.cache(typer.testing._get_command)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Examples in docstrings are looked for in the package alone."""
    found = yield
    return [collector for collector in found if not isinstance(collector, DoctestModule)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files of few, long tests come first, so that no process is left alone with one of them at the end.

    ORDER names a seed: files then come in an order of chance, in which none may need what another one left.
    """
    for item in items:
        if item.nodeid.startswith(SERVED) and not item.nodeid.startswith(FIRST):
            item.add_marker("served")
        if item.nodeid.startswith(BUSY) and item.get_closest_marker("slow") is None:
            item.add_marker("busy")
    order, files = os.environ.get("ORDER"), sorted({item.nodeid.split("::")[0] for item in items})
    if order:
        random.Random(order).shuffle(files)
        places = {file: place for place, file in enumerate(files)}
    else:
        places = {file: next((place for place, name in enumerate(LONG) if file.startswith(name)), 99) for file in files}
    items.sort(key=lambda item: places[item.nodeid.split("::")[0]])


def pytest_collection_finish() -> None:
    """What was loaded until now stays to the end: the garbage collector need not look at it again and again.

    Nor need it look as often as by default: Hypothesis calls two functions each time.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()

"""Settings that all tests share."""

from __future__ import annotations

import functools
import gc
import importlib
import os
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
    "tests/collect",
    "tests/cli",
    "tests/protocols/test_mle.py",
    "tests/test_planning.py",
    "tests/conformance",
    "tests/privacy/test_audit.py",
    "tests/protocols/test_memoized.py",
    "tests/strangers",
    "tests/surveys",
)


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files of few, long tests come first, so that no process is left alone with one of them at the end."""
    items.sort(
        key=lambda item: next((place for place, name in enumerate(LONG) if item.nodeid.startswith(name)), len(LONG))
    )


def pytest_collection_finish() -> None:
    """What was loaded until now stays to the end: the garbage collector need not look at it again and again.

    Nor need it look as often as by default: Hypothesis calls two functions each time.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()

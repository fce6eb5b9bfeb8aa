"""The table of a whole trial: printed at the end, and kept for the docs."""

from __future__ import annotations

import platform
import sqlite3
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.machine import machine
from tests.faults.trial import Result, table

TABLE = Path(__file__).parents[2] / "benchmarks" / "results" / "faults.md"
Tell = Callable[[Result], None]

_results: list[tuple[str, Result]] = []
"""Of this run of the tests, with the name of the test, from all its processes."""


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """Enter a result in the table; it travels with the report of the test to the process that prints the table."""
    return lambda result: record_property("fault", asdict(result))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call":
        _results.extend((report.nodeid, Result(**found)) for name, found in report.user_properties if name == "fault")


def pytest_terminal_summary(terminalreporter: object) -> None:
    if not _results:
        return
    from tests.faults.test_faults import CELLS
    from tests.faults.test_relay import FAULTS

    order = [f"[{fault}, {name}]" for fault, name in CELLS] + [f"[{fault}]" for fault in FAULTS]
    results = [result for _, result in sorted(_results, key=lambda one: order.index(one[0][one[0].index("[") :]))]
    write = terminalreporter.write_line  # type: ignore[attr-defined]
    write("")
    for line in table(results).splitlines():
        write(line)
    if len(results) == len(order):
        facts, whole = machine(), sum(result.acknowledged for result in results)
        where = f"{facts['cpu']}, {facts['cores']} cores, {facts['system']}; python {platform.python_version()}"
        said = f"Run on {time.strftime('%Y-%m-%d')}: {where}, SQLite {sqlite3.sqlite_version}."
        counted = sum(result.injected for result in results)
        total = f"In all {counted} faults and {whole:,} acknowledged submissions."
        TABLE.write_text(f"{said}\n{total}\n\n{table(results)}\n")
        write(f"written to {TABLE.relative_to(TABLE.parents[2])}")

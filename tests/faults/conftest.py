"""The table of a whole trial: printed at the end, and kept for the docs."""

from __future__ import annotations

import platform
import sqlite3
import time
from pathlib import Path

from benchmarks.machine import machine
from tests.faults.trial import RESULTS, table

TABLE = Path(__file__).parents[2] / "benchmarks" / "results" / "faults.md"


def pytest_terminal_summary(terminalreporter: object) -> None:
    if not RESULTS:
        return
    from tests.faults.test_faults import CELLS
    from tests.faults.test_relay import FAULTS

    write = terminalreporter.write_line  # type: ignore[attr-defined]
    write("")
    for line in table(RESULTS).splitlines():
        write(line)
    if len(RESULTS) == len(CELLS) + len(FAULTS):
        facts, whole = machine(), sum(result.acknowledged for result in RESULTS)
        where = f"{facts['cpu']}, {facts['cores']} cores, {facts['system']}; python {platform.python_version()}"
        said = f"Run on {time.strftime('%Y-%m-%d')}: {where}, SQLite {sqlite3.sqlite_version}."
        counted = sum(result.injected for result in RESULTS)
        total = f"In all {counted} faults and {whole:,} acknowledged submissions."
        TABLE.write_text(f"{said}\n{total}\n\n{table(RESULTS)}\n")
        write(f"written to {TABLE.relative_to(TABLE.parents[2])}")

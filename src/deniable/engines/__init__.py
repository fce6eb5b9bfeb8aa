"""Whole files at a time: answers to reports, reports to tallies, streamed in bounded memory, by one core or many."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deniable.engines.layout import Layout
    from deniable.engines.local import Outcome, count_files
    from deniable.engines.privatize import privatize_file
    from deniable.engines.reports import read_batches, report_writer, write_reports
    from deniable.engines.source import Source
    from deniable.engines.tally import tally_files

__all__ = [
    "Layout",
    "Outcome",
    "Source",
    "count_files",
    "privatize_file",
    "read_batches",
    "report_writer",
    "tally_files",
    "write_reports",
]

# Who reads a file needs no pool of processes, and who counts no writer: each loads what it uses.
_HOMES = {
    "Layout": "layout",
    "Outcome": "local",
    "Source": "source",
    "count_files": "local",
    "privatize_file": "privatize",
    "tally_files": "tally",
    **dict.fromkeys(("read_batches", "report_writer", "write_reports"), "reports"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'deniable.engines' has no attribute {name!r}")
    return getattr(import_module(f"deniable.engines.{_HOMES[name]}"), name)

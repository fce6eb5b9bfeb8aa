"""Whole files at a time: answers to reports, reports to tallies, streamed in bounded memory, by one core or many."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deniable.files.answers import privatize_file
    from deniable.files.local import Outcome, count_files, tally_files
    from deniable.files.places import Source
    from deniable.files.reports import Layout, read_batches, report_writer, write_reports

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

# A reader of files needs no pool of processes, and a counter no writer: each loads what it uses.
_HOMES = {
    "Source": "places",
    "privatize_file": "answers",
    **dict.fromkeys(("Outcome", "count_files", "tally_files"), "local"),
    **dict.fromkeys(("Layout", "read_batches", "report_writer", "write_reports"), "reports"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'deniable.files' has no attribute {name!r}")
    return getattr(import_module(f"deniable.files.{_HOMES[name]}"), name)

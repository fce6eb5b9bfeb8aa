"""Whole files at a time: answers to reports, reports to tallies, streamed in bounded memory, on one core or many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deniable._extras import late

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

# Reading files needs no process pool, and counting no writer: each loads only what it uses.
__getattr__ = late(
    __name__,
    {
        "answers": ("privatize_file",),
        "local": ("Outcome", "count_files", "tally_files"),
        "places": ("Source",),
        "reports": ("Layout", "read_batches", "report_writer", "write_reports"),
    },
)

"""Whole files at a time: answers to reports, reports to tallies, streamed in bounded memory, by one core or many."""

from __future__ import annotations

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

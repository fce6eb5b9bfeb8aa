from deniable.files.answers import privatize_file as privatize_file
from deniable.files.comparison import Comparison as Comparison, StudyRow as StudyRow, study as study
from deniable.files.local import Outcome as Outcome, count_files as count_files, tally_files as tally_files
from deniable.files.places import Source as Source
from deniable.files.reports import (
    Layout as Layout,
    read_batches as read_batches,
    report_writer as report_writer,
    write_reports as write_reports,
)

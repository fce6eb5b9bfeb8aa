"""A collection as files that the other commands take.

survey.json       the survey
tally.json        the sum over the epochs; or tally-3.json, tally-4.json, ...: one for each, never both, so that whoever
                  adds up the tallies of the directory counts each submission once
reports.parquet   the randomized reports, where the survey says that they are kept
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from deniable.collect.stores import Store
from deniable.errors import SpecError
from deniable.protocols.reports import Bytes
from deniable.surveys import Survey

SURVEY, TALLY, REPORTS = "survey.json", "tally.json", "reports.parquet"

_OURS = re.compile(r"survey\.json|tally(-[0-9]+)?\.json|reports\.parquet")


def write_export(
    store: Store, survey: Survey, epochs: Sequence[int], per_epoch: bool, to: Path, force: bool
) -> list[str]:
    """Write these epochs, which ascend; the names of the files. What is there already is replaced only by force."""
    before = sorted(path.name for path in to.iterdir() if _OURS.fullmatch(path.name)) if to.is_dir() else []
    if before and not force:
        raise SpecError(
            f"{str(to)!r} holds {', '.join(before[:4])}{', ...' if len(before) > 4 else ''} already: name another "
            "directory, or replace them with --force"
        )
    to.mkdir(parents=True, exist_ok=True)
    survey.save(to / SURVEY)
    saved, fingerprint = [SURVEY], survey.fingerprint
    first, last = (epochs[0], epochs[-1]) if epochs else (0, 0)
    if per_epoch:
        for epoch in epochs:
            saved.append(f"tally-{epoch}.json")
            store.tally(fingerprint, epoch, epoch).save(to / saved[-1])
    else:
        saved.append(TALLY)
        store.tally(fingerprint, first, last).save(to / TALLY)
    if survey.terms is not None and survey.terms.retention == "reports":
        saved.append(REPORTS)
        _save_reports(store, survey, first, last, to / REPORTS)
    for name in set(before) - set(saved):
        (to / name).unlink()
    return saved


def _save_reports(store: Store, survey: Survey, first: int, last: int, path: Path) -> None:
    from deniable.engines import report_writer

    with report_writer(path, survey) as writer:
        for batch in _columns(store, survey, first, last):
            writer.write(batch)


def _columns(store: Store, survey: Survey, first: int, last: int) -> Iterator[dict[str, Bytes]]:
    from deniable.collect.counting import SurveyCounter

    parts = SurveyCounter(survey).parts
    for batch in store.reports(survey.fingerprint, first, last):
        yield {part.id: batch.answers[:, part.bytes] for part in parts}

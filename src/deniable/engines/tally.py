"""From files of reports, and tallies made before, to one tally: streamed, exact, the same in any order.

Nothing is counted twice by naming a file twice, and nothing is counted at all if one file is refused, in which case all
that are refused are named; `count_files` goes on without them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import overload

from deniable.engines.local import Progress, count_files
from deniable.protocols import Protocol, Tally
from deniable.surveys import Survey, SurveyTally


@overload
def tally_files(
    target: Survey, inputs: Iterable[str | Path], progress: Progress | None = None, workers: int | None = 1
) -> SurveyTally: ...
@overload
def tally_files(
    target: Protocol, inputs: Iterable[str | Path], progress: Progress | None = None, workers: int | None = 1
) -> Tally: ...
def tally_files(
    target: Survey | Protocol,
    inputs: Iterable[str | Path],
    progress: Progress | None = None,
    workers: int | None = 1,
) -> SurveyTally | Tally:
    """Add up files of reports and of tallies, in any mixture; "-" is standard input.

    `workers` is the number of processes; None means one for each core.
    """
    return count_files(target, inputs, workers, strict=True, progress=progress).tally

"""The Spark engine: the same integers from a cluster.

Files      a list of units goes to the executors; each reads its files with pyarrow and returns tallies, which are
           merged in a tree. Rows never pass through the JVM. All executors must reach the files by the same names
Frames     reports in a DataFrame that is not files pass as Arrow batches, and each partition returns one tally
Sessions   any of `sessions.connect`: local, a cluster, Spark Connect
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Any

from deniable._extras import require
from deniable.engines.folders import new_files
from deniable.engines.frames import check_names, counted_batches, privatized_batches, written_batches
from deniable.engines.layout import Layout
from deniable.engines.local import Outcome, outcome, whole_tally
from deniable.engines.places import Place, Refused, expand
from deniable.engines.sessions import ClusterError, collected, connect, hushed, run_on, ship, width
from deniable.engines.units import Gathered, Unit, count_unit, cut
from deniable.errors import DeniableError, LabelError, ReportError
from deniable.protocols import Protocol, Tally
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.tables import chosen_columns

# -- files ---------------------------------------------------------------------------------------------


def count_files_on(
    session: Any,
    target: Survey | Protocol,
    inputs: Iterable[str | Path],
    strict: bool = False,
    partitions: int | None = None,
) -> Outcome:
    """What `count_files` gives, counted by the executors of a session."""
    layout, found = Layout(target), expand(inputs)
    found = [_refuse_once(entry) for entry in found]
    places = [_absolute(entry) for entry in found if isinstance(entry, Place)]
    wide = partitions or width(session)
    units = cut(places, max(2, wide))
    split = {unit.place.name: unit.parts for unit in units if unit.parts > 1}
    tasks = _dealt(units, max(1, min(len(units), 4 * wide)))
    done = Gathered()
    if units:
        done = run_on(session, partial(_gather, layout, split), tasks, partial(_merge, split))
    found = [_absolute(entry) if isinstance(entry, Place) else entry for entry in found]
    return outcome(layout, done, found, strict)


def tally_files_on(session: Any, target: Survey | Protocol, inputs: Iterable[str | Path]) -> SurveyTally | Tally:
    """What `tally_files` gives, counted by the executors of a session."""
    return count_files_on(session, target, inputs, strict=True).tally


def _gather(layout: Layout, split: dict[str, int], units: list[Unit]) -> Gathered:
    done = Gathered()
    for unit in units:
        done.add(count_unit(layout, unit))
    return done


def _merge(split: dict[str, int], first: Gathered, second: Gathered) -> Gathered:
    return first.merge(second, split)


def _refuse_once(entry: Place | Refused) -> Place | Refused:
    if isinstance(entry, Place) and entry.once:
        return Refused(entry.name, ReportError(f"{entry.name!r} can be read once and only here: use the local engine"))
    return entry


def _absolute(place: Place) -> Place:
    """Executors have another working directory."""
    local = "://" not in place.name
    return Place(os.path.abspath(place.name) if local else place.name, place.size, place.modified)


def _dealt(units: Sequence[Unit], hands: int) -> list[list[Unit]]:
    """Like cards, from the largest down, so that every task has about the same amount of work."""
    return [list(units[hand::hands]) for hand in range(hands)]


# -- frames --------------------------------------------------------------------------------------------


def tally_frame(frame: Any, target: Survey | Protocol, columns: Mapping[str, str] | None = None) -> SurveyTally | Tally:
    """The tally of reports in the binary columns of a DataFrame.

    `columns` says which column holds the reports of which question, {"smoke": "smoke_report"}; without it each is
    called like its question ("report" for a single protocol).
    """
    layout = Layout(target)
    chosen = _chosen(layout, columns, frame)
    batches = frame.select(*dict.fromkeys(chosen.values()))
    found = collected(batches, partial(counted_batches, layout, chosen))
    done = reduce(partial(_merge, {}), found, Gathered())
    for refusal in done.refused.values():
        raise refusal.error
    return whole_tally(layout, done.tallies)


def privatize_frame(
    frame: Any,
    target: Survey | Protocol,
    columns: Mapping[str, str] | None = None,
    keep: Iterable[str] = (),
) -> Any:
    """A DataFrame of reports, one binary column a question, for each row of answers; `keep` passes columns on.

    Every evaluation draws anew: write the result once and read it from there, because two evaluations of one answer
    give away twice its epsilon. `write_frame` does that in one step.
    """
    layout, kept = Layout(target), list(keep)
    chosen = _chosen(layout, columns, frame)
    check_names(frame.columns, kept)
    schema = require("pyspark.sql.types", "spark")
    both = sorted(set(kept) & set(chosen))
    if both:
        raise LabelError(f"the reports would be called like the kept column {both[0]!r}: rename that one first")
    fields = [frame.schema[name] for name in kept]
    fields += [schema.StructField(id, schema.BinaryType(), False) for id in chosen]
    narrowed = frame.select(*dict.fromkeys([*kept, *chosen.values()]))
    with hushed():
        return narrowed.mapInArrow(partial(privatized_batches, layout, chosen, kept), schema.StructType(fields))


def write_frame(
    frame: Any,
    target: Survey | Protocol,
    folder: str,
    columns: Mapping[str, str] | None = None,
    ids: bool = False,
) -> int:
    """Randomize every row of a DataFrame of answers into files of reports, one a partition; returns the rows.

    `folder` is a path or URL that every executor can write, new or empty. All files appear when the last is written, or
    none: until then their names begin with a dot. What a repeated task writes takes the place of what its first
    attempt wrote, so that no answer leaves two reports.
    """
    layout = Layout(target)
    chosen = _chosen(layout, columns, frame)
    narrowed = frame.select(*dict.fromkeys(chosen.values()))
    with new_files(folder) as (place, run, show):
        written = collected(narrowed, partial(written_batches, layout, chosen, place, run, ids))
        for entry in written:
            if isinstance(entry, DeniableError):
                raise entry
        show([name for name, _ in written])
    return sum(rows for _, rows in written)


def _chosen(layout: Layout, columns: Mapping[str, str] | None, frame: Any) -> dict[str, str]:
    chosen = chosen_columns(layout.protocols, columns)
    check_names(frame.columns, chosen.values())
    return chosen


__all__ = [
    "ClusterError",
    "connect",
    "count_files_on",
    "privatize_frame",
    "run_on",
    "ship",
    "tally_files_on",
    "tally_frame",
    "width",
    "write_frame",
]

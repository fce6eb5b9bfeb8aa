"""From files of reports, and tallies made before, to one tally: streamed, exact, the same in any order.

Nothing is counted twice by naming a file twice, and nothing is counted at all if one file is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, overload

import numpy as np

from deniable.engines.layout import Layout
from deniable.engines.parquet import opened
from deniable.engines.privatize import Progress
from deniable.engines.reports import read_batches
from deniable.engines.source import STDIN, Source
from deniable.errors import DeniableError, MismatchError, NumberError, ReportError, SpecError
from deniable.protocols import Protocol, Tally
from deniable.protocols.reports import Bytes
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.strict import parse_json
from deniable.surveys.tally import read_tally

_TALLY = b"deniable.tally"


@overload
def tally_files(target: Survey, inputs: Iterable[str | Path], progress: Progress | None = None) -> SurveyTally: ...
@overload
def tally_files(target: Protocol, inputs: Iterable[str | Path], progress: Progress | None = None) -> Tally: ...
def tally_files(
    target: Survey | Protocol, inputs: Iterable[str | Path], progress: Progress | None = None
) -> SurveyTally | Tally:
    """Add up files of reports and of tallies, in any mixture; "-" is standard input."""
    layout = Layout(target)
    total = {name: protocol.empty(layout.source(name)) for name, protocol in layout.protocols.items()}
    listed = list(inputs)
    _refuse_twice(listed)
    for given in listed:
        source = Source.open(given)
        try:
            _add(total, source, layout, progress)
        finally:
            source.close()
    if isinstance(target, Survey):
        return SurveyTally(target.fingerprint, total)
    (only,) = total.values()
    return only


def _refuse_twice(inputs: list[str | Path]) -> None:
    seen: dict[str, str] = {}
    for given in inputs:
        real = STDIN if str(given) == STDIN else os.path.realpath(given)
        if real in seen:
            raise MismatchError(f"{str(given)!r} is the same file as {seen[real]!r}: it would be counted twice")
        seen[real] = str(given)


def _add(total: dict[str, Tally], source: Source, layout: Layout, progress: Progress | None) -> None:
    """Add one input; `total` changes with every batch, and is thrown away by whoever gets an error."""
    known = _known_tallies(source, layout)
    if known is not None:
        for name, tally in known.items():
            total[name] = _sum(total[name], tally, source)
        return
    rows = 0
    for batch in read_batches(source, layout.target):
        for name, reports in batch.items():
            tally = _count(layout.protocols[name], reports, layout.source(name), rows, name, source)
            total[name] = _sum(total[name], tally, source)
        rows += len(next(iter(batch.values()), ()))
        if progress is not None:
            progress(rows, source.taken / source.size if source.size else None)


def _sum(total: Tally, part: Tally, source: Source) -> Tally:
    try:
        return total + part
    except OverflowError:
        raise NumberError(
            f"with {source.name} the sum no longer fits in 64 bits: a tally is broken or forged"
        ) from None


def _count(protocol: Protocol, reports: Bytes, origin: str | None, row: int, name: str, source: Source) -> Tally:
    try:
        return protocol.tally(reports, origin)
    except ReportError:
        valid = protocol.valid(reports)
        raise ReportError(
            f"row {row + int(np.argmin(valid)) + 1} of {source.name}, column {name!r}: these bytes are no report of "
            f"{protocol.name} (out of range, or padding that is not zero); nothing was counted"
        ) from None


# -- tallies made before -------------------------------------------------------------------------------


def _known_tallies(source: Source, layout: Layout) -> dict[str, Tally] | None:
    """The tallies in an input, by column; None if it holds reports."""
    if source.is_json:
        content = parse_json(source.stream().read(), source.name)
        try:
            return _from_json(content, layout)
        except DeniableError as wrong:
            raise type(wrong)(f"{source.name}: {wrong}") from None
    if source.is_parquet and source.path is not None:
        with opened(source) as file:
            if _TALLY in (file.schema_arrow.metadata or {}):
                return _placed(Tally.from_arrow(file.read()), layout)
    return None


def _from_json(content: Any, layout: Layout) -> dict[str, Tally]:
    kind = content.get("kind") if isinstance(content, dict) else None
    if kind == "tally":
        return _placed(read_tally(content), layout)
    if kind != "survey-tally":
        raise SpecError(f"this is a {kind}, not reports or a tally" if isinstance(kind, str) else "this is no tally")
    found = SurveyTally.from_spec(content)
    if not isinstance(layout.target, Survey):
        raise MismatchError(f"this is a tally of survey {found.survey}, not of protocol {layout.fingerprint}")
    found.check(layout.target)
    return dict(found.tallies)


def _placed(tally: Tally, layout: Layout) -> dict[str, Tally]:
    """A single tally, with the column that it belongs to."""
    for name, protocol in layout.protocols.items():
        if tally.source == layout.source(name) and tally.fingerprint == protocol.fingerprint:
            if tally.counts.size != protocol.tally_size:
                raise MismatchError(f"this tally has {tally.counts.size} counters, not {protocol.tally_size}")
            return {name: tally}
    origin = tally.source or f"protocol {tally.fingerprint}, of no survey"
    raise MismatchError(f"this is a tally of {origin}, which does not belong to {layout.kind} {layout.fingerprint}")

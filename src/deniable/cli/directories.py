"""What is counted of a directory: it may be an export, with the survey and sums of the reports beside them.

Passed over   the survey that is counted, in silence; tallies beside reports, with a note, because they may be sums of
              the same reports. Whoever names a tally has it added
Noted         a tally that is named beside reports, or given twice. That one is the sum of others cannot be seen: no
              tally says of which epochs
Left in       everything else, to be counted or refused with a reason
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from pathlib import Path

from deniable.cli import output
from deniable.cli.targets import Target
from deniable.engines.places import STDIN, Place, expand
from deniable.engines.urls import is_url
from deniable.errors import DeniableError
from deniable.surveys import Survey

# Every document of this project begins with its kind.
_KIND = re.compile(rb'\s*\{\s*"kind"\s*:\s*"([a-z-]+)"')
_TALLIES = (b"tally", b"survey-tally")
_REPORTS = (b"PAR1", b"\xff\xff\xff\xff", b"# deniable reports")


def within(target: Target, directory: str) -> list[str]:
    """The files of a directory that are to be counted; the directory itself if it is as good."""
    places = [place for place in expand([directory]) if isinstance(place, Place)]
    names = [place.name for place in places]
    # A pipe can be read only once, and by whoever counts.
    files = [place.name for place in places if not place.once]
    kinds = {name: _kind(name) for name in files if name.endswith(".json")}
    tallies = [name for name, kind in kinds.items() if kind in _TALLIES]
    if tallies and any(_head(name).startswith(_REPORTS) for name in files if name not in kinds):
        some = repr(tallies[0]) if len(tallies) == 1 else f"{tallies[0]!r} and {len(tallies) - 1} more"
        output.note("note", f"not added, because beside reports a tally may be their sum: {some} (name it to add it)")
    else:
        tallies = []
    passed = {*tallies, *(name for name, kind in kinds.items() if kind == b"survey" and _same(target, name))}
    chosen = [name for name in names if name not in passed]
    return chosen if passed and chosen else [directory]


def note_twins(inputs: list[str]) -> None:
    """Point out tallies of the same content: most likely one that was given twice. What is remote is not looked at."""
    seen: dict[tuple[int | None, bytes], str] = {}
    named = [place for place in expand(filter(os.path.exists, inputs)) if isinstance(place, Place)]
    places = [place for place in named if place.name.endswith(".json") and not place.once]
    sizes = Counter(place.size for place in places)
    for place in places:
        if sizes[place.size] > 1 and _kind(place.name) in _TALLIES:
            content = Path(place.name).read_bytes()
            key = place.size, hashlib.sha256(content).digest()
            # Tallies of nothing are all the same.
            if key in seen and re.search(rb'"n"\s*:\s*[1-9]', content):
                output.note("note", f"{place.name!r} is the same tally as {seen[key]!r}, and counted as well")
            seen.setdefault(key, place.name)


def note_mixture(inputs: list[str]) -> None:
    """Whoever names a tally beside reports may mean to add it, or may have forgotten what it is the sum of."""
    named = [name for name in inputs if name != STDIN and os.path.isfile(name)]
    tallies = [name for name in named if _kind(name) in _TALLIES]
    if not tallies:
        return
    reports = any(
        is_url(place.name) or _head(place.name).startswith(_REPORTS)
        for given in inputs
        if given not in tallies and given != STDIN
        for place in ([Place(given)] if is_url(given) else expand([given]))
        if isinstance(place, Place)
    )
    if reports:
        some = ", ".join(map(repr, tallies[:3])) + (", ..." if len(tallies) > 3 else "")
        output.note("note", f"tallies are added to reports ({some}): reports that such a sum holds are counted twice")


def _head(name: str) -> bytes:
    try:
        with open(name, "rb") as file:
            return file.read(256)
    except OSError:
        return b""  # counting will say what is wrong


def _kind(name: str) -> bytes:
    found = _KIND.match(_head(name))
    return found[1] if found else b""


def _same(target: Target, name: str) -> bool:
    try:
        return isinstance(target, Survey) and Survey.load(name).fingerprint == target.fingerprint
    except (OSError, DeniableError):
        return False

"""What is counted of a directory: it may be an export, with the survey and sums of the reports beside them.

Passed over   the survey that is counted, in silence; tallies beside reports, with a note, because they may be sums of
              the same reports. Whoever names a tally has it added
Left in       everything else, to be counted or refused with a reason
"""

from __future__ import annotations

import re

from deniable.cli import output
from deniable.cli.targets import Target
from deniable.engines.places import Place, expand
from deniable.errors import DeniableError
from deniable.surveys import Survey

# Every document of this project begins with its kind.
_KIND = re.compile(rb'\s*\{\s*"kind"\s*:\s*"([a-z-]+)"')
_REPORTS = (b"PAR1", b"\xff\xff\xff\xff", b"# deniable reports")


def within(target: Target, directory: str) -> list[str]:
    """The files of a directory that are to be counted; the directory itself if it is as good."""
    places = [place for place in expand([directory]) if isinstance(place, Place)]
    names = [place.name for place in places]
    # A pipe can be read only once, and by whoever counts.
    files = [place.name for place in places if not place.once]
    kinds = {name: _kind(name) for name in files if name.endswith(".json")}
    tallies = [name for name, kind in kinds.items() if kind in (b"tally", b"survey-tally")]
    if tallies and any(_head(name).startswith(_REPORTS) for name in files if name not in kinds):
        some = repr(tallies[0]) if len(tallies) == 1 else f"{tallies[0]!r} and {len(tallies) - 1} more"
        output.note("note", f"not added, because beside reports a tally may be their sum: {some} (name it to add it)")
    else:
        tallies = []
    passed = {*tallies, *(name for name, kind in kinds.items() if kind == b"survey" and _same(target, name))}
    chosen = [name for name in names if name not in passed]
    return chosen if passed and chosen else [directory]


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

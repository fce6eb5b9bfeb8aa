"""Which of the published surveys is meant: by its name, or by the beginning of its fingerprint."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from deniable.cli.files import STDIN
from deniable.cli.output import shown
from deniable.cli.targets import Target, read_target
from deniable.errors import LabelError, MismatchError, SpecError
from deniable.specs import is_fingerprint

if TYPE_CHECKING:
    from deniable.collect.analyst import Analyst

SHORTEST = 6
_MOST_LISTED = 10
_BEGINNING = re.compile(rf"[0-9a-f]{{{SHORTEST},64}}")


def meant(given: str, fingerprint: str, name: str) -> bool:
    """
    >>> meant("habits", "ab12" * 16, "habits"), meant("AB12ab", "ab12" * 16, "habits"), meant("ab12", "ab12" * 16, "")
    (True, True, False)
    """
    beginning = given.lower()
    return given == name or (_BEGINNING.fullmatch(beginning) is not None and fingerprint.startswith(beginning))


def choose(given: str | None, published: Mapping[str, str], how: str) -> str:
    """The fingerprint of the one that is meant, of fingerprints with their names; None means the only one there is.

    `how` ends the sentence that lists them all; of several that are meant, more digits tell which.
    """
    if not published:
        raise SpecError("no survey is published there")
    found = [one for one, name in published.items() if given is None or meant(given, one, name)]
    if len(found) == 1:
        return found[0]
    if given is None:
        problem = "there are several surveys"
    elif found:
        problem, how = (
            f"{given!r} stands for several surveys",
            "give (more of) the fingerprint of the one that is meant:",
        )
    else:
        problem = f"no survey there is called {given!r} or has a fingerprint that begins so ({SHORTEST} digits or more)"
    some = sorted(found or published)[:_MOST_LISTED]
    listed = ", ".join(f"{shown(published[one])} ({one[:12]})" for one in some)
    more = ", ..." if len(found or published) > len(some) else ""
    raise LabelError(f"{problem}: {how} {listed}{more}")


def find(analyst: Analyst, given: str) -> Target:
    """The survey in a file, or the one of this name or fingerprint that the service has."""
    if is_fingerprint(given.lower()):
        return analyst.survey(given.lower())
    if given == STDIN or os.path.exists(given):
        return read_target(given)
    listed = {one.fingerprint: one.name for one in analyst.surveys()}
    found = analyst.survey(choose(given, listed, "there is no such file either; give a file or one of"))
    if not meant(given, found.fingerprint, found.name):
        raise MismatchError(f"the service says that {found.fingerprint} is {given!r}, which it is not")
    return found

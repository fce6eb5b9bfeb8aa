"""Which of the published surveys is meant: by its name, or by the beginning of its fingerprint."""

from __future__ import annotations

import re
from collections.abc import Mapping

from deniable.cli.output import shown
from deniable.errors import LabelError, SpecError

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

    `how` ends the sentence that lists them.
    """
    if not published:
        raise SpecError("no survey is published there")
    found = [one for one, name in published.items() if given is None or meant(given, one, name)]
    if len(found) == 1:
        return found[0]
    if found:
        problem = "there are several surveys" if given is None else f"{given!r} stands for several surveys"
    else:
        problem = f"no survey there is called {given!r} or has a fingerprint that begins so ({SHORTEST} digits or more)"
    some = sorted(found or published)[:_MOST_LISTED]
    listed = ", ".join(f"{shown(published[one])} ({one[:12]})" for one in some)
    more = ", ..." if len(found or published) > len(some) else ""
    raise LabelError(f"{problem}: {how} {listed}{more}")

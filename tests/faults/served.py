"""`deniable serve` as the trial runs it: settings, patience and a clock that can be turned, and mistakes on request.

    FAULTS='{"settings": {...}, "postgres": {...}, "clock": "file", "mistake": "name"}'
    python -m tests.faults.served serve --store ...

Workers import this module as well, so they are changed in the same way.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

ASKED: dict[str, Any] = json.loads(os.environ.get("FAULTS", "{}"))
_wall = time.time


def turned() -> float:
    """The wall clock, plus what stands in the file."""
    try:
        return _wall() + float(Path(ASKED["clock"]).read_text())
    except (OSError, ValueError):
        return _wall()


if "clock" in ASKED:
    time.time = turned  # before anything remembers the other one

from deniable.cli import main  # noqa: E402
from deniable.collect.server.service import (  # noqa: E402
    Bounds,
    Settings,
    TrustedClock,
)
from deniable.collect.server.writer import Transaction, Writer  # noqa: E402
from deniable.collect.stores import postgres  # noqa: E402
from deniable.collect.stores.base import Added  # noqa: E402
from deniable.collect.stores.sqlite import SqliteStore  # noqa: E402

for name, value in ASKED.get("postgres", {}).items():
    setattr(postgres, name, value)

_init = Settings.__init__


def _changed(self: Settings, **given: Any) -> None:
    _init(self, **ASKED["settings"] | given)


if "settings" in ASKED:
    Settings.__init__ = _changed  # type: ignore[method-assign]


# -- mistakes that the trial must find -----------------------------------------------------------------


def acknowledge_first() -> None:
    """A group is acknowledged when it has come, and committed when the next one comes."""
    add = Writer._add
    waiting: list[Transaction] = []

    def early(self: Writer, group: Transaction) -> None:
        if waiting:
            add(self, waiting.pop())
        waiting.append(group)
        group.settle([Added(len(batch.ids)) for batch in group.batches])

    Writer._add = early  # type: ignore[method-assign]


def forget_ids() -> None:
    """Who opens the store forgets which submissions were counted."""
    prepare = SqliteStore._prepare

    def forgetful(self: SqliteStore) -> None:
        prepare(self)
        self._query("DELETE FROM seen")

    SqliteStore._prepare = forgetful  # type: ignore[method-assign]


def believe_the_clock() -> None:
    """The time is what the wall clock shows."""

    def believed(self: TrustedClock) -> Bounds:
        now = self._wall()
        return Bounds(now, now, now, None)

    TrustedClock.bounds = believed  # type: ignore[method-assign]


MISTAKES = {one.__name__: one for one in (acknowledge_first, forget_ids, believe_the_clock)}

if "mistake" in ASKED:
    MISTAKES[ASKED["mistake"]]()

if __name__ == "__main__":
    main()

"""Two connections and another process on one SQLite file, as when `deniable store token` meets a service."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from deniable.collect.stores import open_store
from tests.collect.surveys import crowd, plain

LOOK = """
from deniable.collect.stores import open_store
with open_store({url!r}) as store:
    print(sum(epoch.n for epoch in store.epochs({fingerprint!r})))
"""


def test_what_was_committed_is_there_for_other_processes(tmp_path: Path) -> None:
    url, survey = f"sqlite:///{tmp_path / 'store.db'}", plain()
    look = [sys.executable, "-c", LOOK.format(url=url, fingerprint=survey.fingerprint)]
    with open_store(url) as writer, open_store(url):
        writer.publish(survey)
        # A process that leaves must notice that others are still there, and let them keep their log.
        assert subprocess.run(look, check=True, capture_output=True).stdout == b"0\n"
        writer.add([crowd(survey, 5).batch(survey, 0)])
        assert subprocess.run(look, check=True, capture_output=True).stdout == b"5\n"

"""Workers in fresh interpreters, for programs that have threads of their own."""

from __future__ import annotations

import threading
from pathlib import Path

from deniable.engines import tally_files, write_reports
from deniable.engines.pool import _start_method
from deniable.protocols import GRR
from deniable.randomness import Simulation


def test_a_program_with_threads_is_not_forked(tmp_path: Path) -> None:
    protocol = GRR(5, 1)
    made = protocol.privatize([0, 1, 2] * 100, Simulation(1))
    for i in range(2):
        write_reports(tmp_path / f"{i}.parquet", protocol, [{"report": made}])
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert _start_method() in ("forkserver", "spawn")
        assert tally_files(protocol, [tmp_path], workers=2) == protocol.tally(made) + protocol.tally(made)
    finally:
        stop.set()
        thread.join()


def test_nor_one_whose_caller_knows_of_hidden_threads() -> None:
    assert _start_method(fork=False) in ("forkserver", "spawn")

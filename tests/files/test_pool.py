"""Workers in fresh interpreters, for programs that have threads of their own, and how workers end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from deniable.files import tally_files, write_reports
from deniable.files.units import _start_method
from deniable.protocols import GRR
from deniable.randomness import Simulation
from deniable.surveys import Survey


def test_a_program_with_threads_is_not_forked(tmp_path: Path) -> None:
    protocol = GRR(5, 1)
    made = protocol.privatize([0, 1, 2] * 100, Simulation(1))
    for i in range(2):
        write_reports(tmp_path / f"{i}.parquet", Survey.of(protocol), [{"report": made}])
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert _start_method() in ("forkserver", "spawn")
        found = tally_files(Survey.of(protocol), [tmp_path], workers=2)["report"]
        assert found == protocol.tally(made) + protocol.tally(made)
    finally:
        stop.set()
        thread.join()


def test_nor_one_whose_caller_knows_of_hidden_threads() -> None:
    assert _start_method(fork=False) in ("forkserver", "spawn")


SLOW = """
import os, sys, time
from pathlib import Path
from deniable.files.units import run_all


def work(folder, number):
    (folder / str(os.getpid())).touch()
    time.sleep(600)


if __name__ == "__main__":
    list(run_all(work, Path(sys.argv[1]), range(8), 2, fork=sys.argv[2] == "fork"))
"""


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet has ended all the same."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="sends signals, and looks into /proc")
@pytest.mark.parametrize("how", ["fork", "fresh"])
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_their_parent(tmp_path: Path, how: str, sent: signal.Signals) -> None:
    script, folder = tmp_path / "slow.py", tmp_path / "pids"
    script.write_text(SLOW)
    folder.mkdir()
    process = subprocess.Popen([sys.executable, str(script), str(folder), how], stdout=-1, stderr=-1)
    end = time.monotonic() + 60
    while len(os.listdir(folder)) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(sent)
    # Whoever reads what they write hears of the end, because nobody holds the pipe any more.
    process.communicate(timeout=20)
    assert process.returncode == -sent
    workers = [int(name) for name in os.listdir(folder)]
    while any(map(alive, workers)):
        assert time.monotonic() < end
        time.sleep(0.02)

"""Fits have one BLAS thread, also where numpy was loaded before with several, as in a notebook."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from deniable._threads import _OneThread, one_thread

_NOTEBOOK = """
import numpy as np
from deniable._threads import one_thread
from deniable.protocols import GRR
import deniable.protocols.protocol as base

libraries = one_thread._libraries()
assert libraries, "no OpenBLAS of numpy's was found"
for _, put in libraries:
    put(2)
threads = lambda: [get() for get, _ in one_thread._libraries()]
before, seen = threads(), []
protocol = GRR(["yes", "no"], 1)
GRR.infer, plain = lambda self, tally: seen.append(threads()) or plain(self, tally), GRR.infer
protocol.estimate(protocol.tally(protocol.privatize(["yes", "no"])))
assert seen == [[1] * len(libraries)], seen
assert threads() == before == [2] * len(libraries), (before, threads())
"""


def test_an_estimate_has_one_thread_and_gives_the_others_back() -> None:
    if not any(one_thread._libraries()):
        pytest.skip("linear algebra here is not by an OpenBLAS that can be asked")
    settings = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", _NOTEBOOK], env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_blocks_of_several_threads_end_with_what_was_before(monkeypatch: pytest.MonkeyPatch) -> None:
    number = [8]
    block = _OneThread()
    monkeypatch.setattr(
        block, "_libraries", lambda: [(lambda: number[0], lambda threads: number.__setitem__(0, threads))]
    )
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with block:
            inside.set()
            leave.wait(60)

    helper = threading.Thread(target=other)
    with block:
        helper.start()
        assert inside.wait(60)
        assert number == [1]
    assert number == [1]
    leave.set()
    helper.join(60)
    assert number == [8]

"""Pools of processes in tests start as they do in a program of its own."""

from __future__ import annotations

import threading

import pytest


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle threads that tests of other files have left are no reason for fresh interpreters, which start slowly."""
    all_threads = threading.enumerate
    left = {thread for thread in all_threads() if thread is not threading.current_thread()}
    monkeypatch.setattr(threading, "enumerate", lambda: [thread for thread in all_threads() if thread not in left])

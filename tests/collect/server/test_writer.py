"""The store stalls, fails or is full: nobody is told that something is stored which is not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from deniable.collect.server import service as service_module, writer as writer_module
from deniable.collect.stores import StorageFull, StoreError, open_store
from deniable.collect.stores.sqlite import SqliteStore
from tests.collect.server.live import Live, body, eventually, in_thread
from tests.collect.surveys import crowd, plain


class Faults:
    """What goes wrong in `add`, in front of a real store."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.after = False
        self.flowing = threading.Event()
        self.flowing.set()
        self.calls = 0


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    wanted = Faults()
    real = SqliteStore.add

    def add(self: SqliteStore, *arguments: Any) -> Any:
        wanted.calls += 1
        wanted.flowing.wait(30)
        if wanted.error is not None and not wanted.after:
            raise wanted.error
        added = real(self, *arguments)
        if wanted.error is not None:
            raise wanted.error
        return added

    monkeypatch.setattr(SqliteStore, "add", add)
    return wanted


@pytest.fixture
def small(tmp_path, faults: Faults) -> Iterator[Live]:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with in_thread(url, plain(), queue_items=20, queue_bytes=40_000, max_body=10_000) as live:
        yield live
        faults.flowing.set()


def n(live: Live) -> int:
    with live.store() as store:
        return store.tally(plain().fingerprint)["smoke"].n


def test_a_stalled_store_gives_503_before_memory_grows(small, faults):
    survey = plain()
    faults.flowing.clear()
    with ThreadPoolExecutor(30) as pool:
        sent = [pool.submit(small.send, survey, 0, crowd(survey, 10, seed=i)) for i in range(30)]
        eventually(lambda: sum(future.done() for future in sent) >= 10)
        refused = [future.result() for future in sent if future.done()]
        assert {answered.problem for answered in refused} == {"overloaded"}
        assert all(int(answered.headers["retry-after"]) >= 1 for answered in refused)
        assert small.service.writer.items == 20
        assert small.service.writer.bytes <= 40_000
        # Readers and health are not held up.
        assert small.get("/healthz").status == 200
        assert small.get(f"/v1/surveys/{survey.fingerprint}/estimates", "analyst").status == 200
        faults.flowing.set()
        statuses = [future.result().status for future in sent]
    assert (statuses.count(200), statuses.count(503)) == (20, 10)
    assert n(small) == 200
    assert (small.service.writer.items, small.service.writer.bytes) == (0, 0)


def test_room_in_bytes(small, faults):
    """Four bodies of 8,500 bytes fill 40,000; the next is refused by its length, before it is sent."""
    survey = plain()
    faults.flowing.clear()
    with ThreadPoolExecutor(10) as pool:
        sent = [pool.submit(small.send, survey, 0, crowd(survey, 500, seed=i)) for i in range(8)]
        eventually(lambda: sum(future.done() for future in sent) == 4)
        faults.flowing.set()
        statuses = sorted(future.result().status for future in sent)
    assert statuses == [200] * 4 + [503] * 4
    assert n(small) == 2000


def test_a_full_disk(small, faults):
    survey, people = plain(), crowd(plain(), 10)
    faults.error = StorageFull("full")
    assert small.send(survey, 0, people).problem == "storageFull"
    faults.error = None
    assert small.send(survey, 0, people).json["accepted"] == 10
    assert n(small) == 10


@pytest.mark.parametrize("after", [False, True], ids=["before the commit", "after the commit"])
def test_a_failing_store(small, faults, monkeypatch, after):
    """The same bytes sent again are counted once, whether or not the commit had gone through."""
    monkeypatch.setattr(writer_module, "REPAIR_SECONDS", 0.0)
    survey, people = plain(), crowd(plain(), 10)
    faults.error, faults.after = StoreError("gone"), after
    for _ in range(3):
        answered = small.send(survey, 0, people)
        assert answered.problem == "overloaded"
        assert "retry-after" in answered.headers
    assert n(small) == (10 if after else 0)
    faults.error = None
    assert small.send(survey, 0, people).json == {"accepted": 10, "rejected": []}
    assert n(small) == 10


def test_a_bug_in_the_store_stops_nobody(small, faults):
    survey = plain()
    faults.error = ZeroDivisionError()
    assert small.send(survey, 0, crowd(survey, 3)).problem == "overloaded"
    faults.error = None
    assert small.send(survey, 0, crowd(survey, 3)).status == 200


def test_what_waits_is_committed_before_the_end(tmp_path, faults):
    survey = plain()
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with ThreadPoolExecutor(8) as pool:
        with in_thread(url, survey) as live:
            faults.flowing.clear()
            sent = [pool.submit(live.send, survey, 0, crowd(survey, 10, seed=i)) for i in range(8)]
            eventually(lambda: live.service.writer.items == 8)
            threading.Timer(0.3, faults.flowing.set).start()
        statuses = [future.result().status for future in sent]
    assert statuses == [200] * 8
    with open_store(url) as store:
        assert store.tally(survey.fingerprint)["smoke"].n == 80


def test_requests_that_wait_share_a_transaction(small, faults):
    survey = plain()
    small.send(survey, 0, crowd(survey, 1, seed=99))
    faults.flowing.clear()
    before = faults.calls
    with ThreadPoolExecutor(15) as pool:
        sent = [pool.submit(small.send, survey, 0, crowd(survey, 1, seed=i)) for i in range(15)]
        eventually(lambda: small.service.writer.items == 15)
        faults.flowing.set()
        assert all(future.result().status == 200 for future in sent)
    assert faults.calls - before <= 3


def test_an_answer_before_the_commit_is_caught(tmp_path, monkeypatch):
    """Power: a writer that answers first, as it must not, loses what it acknowledged; the right one does not."""
    survey = plain()
    content = body(survey, 0, crowd(survey, 5))

    def hasty(self: Any, group: Any) -> None:
        from deniable.collect.stores import Added

        group.settle([Added(fresh=len(batch.ids)) for batch in group.batches])

    counts = {}
    for name in ("right", "hasty"):
        if name == "hasty":
            monkeypatch.setattr(service_module.Writer, "_add", hasty)
        url = f"sqlite:///{tmp_path / name}.db"
        with in_thread(url, survey) as live:
            assert live.post(survey, content).json["accepted"] == 5
        with open_store(url) as store:
            counts[name] = store.tally(survey.fingerprint)["smoke"].n
    assert counts == {"right": 5, "hasty": 0}

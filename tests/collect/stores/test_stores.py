"""What every store promises, one promise at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable.collect.stores import Added, Batch, Store, StoreError, Token, open_store
from deniable.collect.stores.base import NoShares
from deniable.collect.stores.batches import Blocks, SurveyCounter, share_digest
from deniable.collect.stores.sqlite import SqliteStore
from deniable.errors import ReportError, SpecError
from deniable.protocols.reports import Bytes
from deniable.surveys import Survey
from tests.collect.surveys import SMOKE, all_surveys, crowd, current, daily, mixed, text

DAILY = daily()
NAME = DAILY.fingerprint
PEOPLE = crowd(DAILY, 300)


@pytest.fixture
def open_daily(store: Store) -> Store:
    store.publish(DAILY)
    return store


def test_published_surveys_come_back_byte_for_byte(store: Store) -> None:
    surveys = all_surveys()
    assert [store.publish(survey) for survey in [*surveys, surveys[0]]] == [True] * len(surveys) + [False]
    found = store.surveys()
    assert [(p.fingerprint, p.canonical, p.state) for p in found] == [
        (s.fingerprint, s.canonical, "open") for s in surveys
    ]


def test_what_cannot_be_published_or_is_not(store: Store) -> None:
    with pytest.raises(SpecError, match="for files only"):
        store.publish(Survey("files", [SMOKE]))
    for call in (store.tally, store.epochs, store.duplicates, store.close_survey):
        with pytest.raises(StoreError, match="publish it first"):
            call(NAME)
    with pytest.raises(StoreError, match="publish it first"):
        store.add([], {(NAME, 0, "badPayload"): 1})


@pytest.mark.parametrize("survey", all_surveys(), ids=lambda survey: survey.name)
def test_counts_are_those_of_the_reports(store: Store, survey: Survey) -> None:
    store.publish(survey)
    people, epoch = crowd(survey, 1200), current(survey)
    first = [people[:500].batch(survey, epoch), people[400:700].batch(survey, epoch)]
    assert store.add(first) == [Added(500, 0), Added(200, 100)]
    assert store.add([people.batch(survey, epoch)]) == [Added(500, 700)]
    expected = SurveyCounter(survey).tally(1200, SurveyCounter(survey).count(people.answers))
    assert store.tally(survey.fingerprint).spec() == expected.spec()
    assert store.duplicates(survey.fingerprint) == 800
    assert store.check() == []


def test_shares_are_kept_by_id_added_up_once_and_erased(store: Store) -> None:
    addresses = ["https://one.example.org", "https://two.example.org"]
    draft = {"name": "sums", "owner": "Example Institute", "purpose": "To test shares.", "days": 7, "epsilon": "1"}
    question = {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"]}
    collectors = {"addresses": addresses, "missing": 2}
    survey = Survey.from_draft(draft | {"people": 100, "collectors": collectors, "questions": [question]})
    name, random = survey.fingerprint, np.random.default_rng(1)
    store.publish(survey)
    ids, answers = (random.integers(0, 256, (100, width), dtype=np.uint8) for width in (16, 16))
    assert store.add([Batch(name, 0, ids, answers), Batch(name, 0, ids[:5], answers[:5])]) == [
        Added(100, 0),
        Added(0, 5),
    ]
    assert (store.shares(name, 0).state, store.tally(name)["smoke"].n) == ("open", 0)
    store.close_epoch(name, 0, 1e10)
    assert store.leave_out(name, 0, ids[:1]) == 1
    left = store.shares(name, 0)
    assert (left.state, left.n, len(left.ids)) == ("closed", 99, 99)
    people, total = share_digest(left.ids), answers[1:].view("<u8").sum(axis=0).view("<i8")
    with pytest.raises(NoShares, match="noise does not suffice"):
        store.sum_shares(name, 0, people, 100)
    for _ in range(2):
        assert (store.sum_shares(name, 0, people, 98) == total).all()
    assert (store.shares(name, 0).state, store.check()) == ("summed", [])
    assert store.settle_shares(name, 0, 99, np.array([60, 39])).n == 99
    assert store.tally(name)["smoke"].counts.tolist() == [60, 39]
    assert (store.shares(name, 0).state, store.check(), list(store.reports(name))) == ("settled", [], [])
    with pytest.raises(NoShares, match="erased"):
        store.sum_shares(name, 0, people, 98)


def test_repeats_within_one_call_are_told_by_batch(open_daily: Store) -> None:
    a, b = PEOPLE[[0, 1, 1]].batch(DAILY, 10), PEOPLE[[1, 2]].batch(DAILY, 10)
    other_epoch, nothing = PEOPLE[[0, 1]].batch(DAILY, 11), PEOPLE[[]].batch(DAILY, 10)
    expected = [Added(2, 1), Added(1, 1), Added(2, 0), Added(0, 0)]
    assert open_daily.add([a, b, other_epoch, nothing]) == expected
    assert [(epoch.epoch, epoch.n) for epoch in open_daily.epochs(NAME)] == [(10, 3), (11, 2)]


def test_all_or_nothing(open_daily: Store) -> None:
    good = PEOPLE[:10].batch(DAILY, 10)
    impossible = Batch(NAME, 11, PEOPLE.ids[:1], np.array([[7]], dtype=np.uint8))
    for bad, error in [(impossible, ReportError), (Batch("0" * 64, 0, good.ids, good.answers), StoreError)]:
        with pytest.raises(error):
            open_daily.add([good, bad], {(NAME, 0, "badPayload"): 1})
    with pytest.raises(ReportError, match="an id of 16 bytes"):
        open_daily.add([Batch(NAME, 10, good.ids[:, :8], good.answers)])
    assert open_daily.epochs(NAME) == []
    assert open_daily.rejections(NAME) == []
    assert open_daily.add([good]) == [Added(10, 0)]


def test_a_closed_epoch_takes_nothing_and_keeps_its_hash(open_daily: Store) -> None:
    open_daily.add([PEOPLE.batch(DAILY, 10)])
    before = open_daily.tally(NAME)
    closed = open_daily.close_epoch(NAME, 10)
    assert (closed.state, closed.n, len(closed.sha256 or "")) == ("closed", 300, 64)
    assert open_daily.add([PEOPLE.batch(DAILY, 10)]) == [Added(closed=True)]
    assert open_daily.close_epoch(NAME, 10) == closed
    assert open_daily.tally(NAME).spec() == before.spec()
    assert open_daily.add([PEOPLE.batch(DAILY, 11)]) == [Added(300, 0)]
    assert open_daily.close_epoch(NAME, 2**32 - 1).n == 0
    assert [epoch.state for epoch in open_daily.epochs(NAME)] == ["closed", "open", "closed"]
    assert open_daily.check() == []


def test_a_closed_survey_takes_nothing(open_daily: Store) -> None:
    open_daily.add([PEOPLE.batch(DAILY, 10)])
    open_daily.close_survey(NAME)
    open_daily.close_survey(NAME)
    assert open_daily.add([PEOPLE.batch(DAILY, 10), PEOPLE.batch(DAILY, 11)]) == [Added(closed=True)] * 2
    assert [(epoch.epoch, epoch.state) for epoch in open_daily.epochs(NAME)] == [(10, "closed")]
    assert [published.state for published in open_daily.surveys()] == ["closed"]


def test_a_range_of_epochs(open_daily: Store) -> None:
    for epoch in (9, 10, 12):
        open_daily.add([PEOPLE[:epoch].batch(DAILY, epoch)])
    sizes = [open_daily.tally(NAME, *span)["smoke"].n for span in [(0, None), (10, None), (9, 10), (11, 11), (12, 12)]]
    assert sizes == [31, 22, 19, 0, 12]


def test_kept_reports_outlive_the_epoch_until_they_are_dropped(store: Store) -> None:
    survey = mixed(retention="reports")
    people = crowd(survey, 400)
    store.publish(survey)
    store.add([people.batch(survey, 10)])

    def kept() -> list[tuple[bytes, bytes]]:
        found = [(b.ids, b.answers) for b in store.reports(survey.fingerprint)]
        return [(bytes(id), bytes(raw)) for ids, answers in found for id, raw in zip(ids, answers, strict=True)]

    expected = sorted((bytes(id), bytes(raw)) for id, raw in zip(people.ids, people.answers, strict=True))
    assert kept() == expected
    with pytest.raises(StoreError, match="close it first"):
        store.drop_reports(survey.fingerprint, 10, 10)
    store.close_epoch(survey.fingerprint, 10)
    assert kept() == expected
    assert store.check() == []
    assert store.drop_reports(survey.fingerprint, 10, 10) == 400
    assert kept() == []
    assert store.tally(survey.fingerprint)["smoke"].n == 400
    assert store.check() == []


def test_a_deleted_report_is_out_of_the_sum_and_not_counted_again(store: Store) -> None:
    survey = mixed(retention="reports")
    name, people = survey.fingerprint, crowd(survey, 40)
    store.publish(survey)
    store.add([people[:30].batch(survey, 10), people.batch(survey, 11)])
    gone = [people.ids[place].tobytes() for place in (3, 35)]
    assert [store.delete(name, id) for id in gone] == [True, True]
    assert [(epoch.epoch, epoch.n, epoch.deleted) for epoch in store.epochs(name)] == [(10, 29, 1), (11, 39, 1)]
    # The same id of another epoch is another submission; a deleted one stays deleted.
    assert [store.delete(name, id) for id in (*gone, b"never seen it...")] == [True, False, False]
    assert store.add([people.batch(survey, 10), people.batch(survey, 11)]) == [Added(10, 30), Added(0, 40)]
    left = [np.delete(np.arange(40), [3]), np.delete(np.arange(40), [3, 35])]
    counted = sum(SurveyCounter(survey).count(people.answers[some]) for some in left)
    assert store.tally(name).spec() == SurveyCounter(survey).tally(77, counted).spec()
    assert sum(len(batch.ids) for batch in store.reports(name)) == 77
    assert store.check() == []
    store.tidy()
    assert store.add([people.batch(survey, 11)]) == [Added(0, 40)]
    closed = store.close_epoch(name, 11)
    assert (closed.n, closed.deleted) == (38, 2)
    assert store.delete(name, people.ids[0].tobytes())  # of epoch 10
    assert not store.delete(name, people.ids[0].tobytes())  # epoch 11 is closed
    assert sum(len(batch.ids) for batch in store.reports(name)) == 76
    assert store.check() == []


class ForgetsTheId(SqliteStore):
    """Deletes a report together with its id."""

    def _erase(self, entry: Any, epoch: int, id: bytes) -> bytes | None:
        for run, ids in self._query("SELECT run, ids FROM seen WHERE survey = ? AND epoch = ?", entry.key, epoch):
            self._query("UPDATE seen SET ids = ? WHERE run = ? AND ids = ?", ids.replace(id, b""), run, ids)
        self._runs.clear()
        return super()._erase(entry, epoch, id)


class DeletesTheRowOnly(SqliteStore):
    """Leaves a deleted report in the sum."""

    def _increase(self, entry: Any, epoch: int, sums: Any, n: int, deleted: int = 0) -> None:
        super()._increase(entry, epoch, sums if n > 0 else Blocks.of(entry.zero()), n, deleted)


@pytest.mark.parametrize("kind", [ForgetsTheId, DeletesTheRowOnly])
def test_a_broken_deletion_is_caught(tmp_path: Path, kind: type[SqliteStore]) -> None:
    with kind(tmp_path / "store.db") as store, pytest.raises(AssertionError):
        test_a_deleted_report_is_out_of_the_sum_and_not_counted_again(store)


def test_nothing_to_delete_where_only_the_tally_is_kept(open_daily: Store) -> None:
    open_daily.add([PEOPLE.batch(DAILY, 10)])
    assert not open_daily.delete(NAME, PEOPLE.ids[0].tobytes())
    assert open_daily.tally(NAME)["smoke"].n == 300


def test_a_report_is_deleted_once_by_several(durable_url: str) -> None:
    survey = mixed(retention="reports")
    people, done = crowd(survey, 40), []
    with open_store(durable_url) as store:
        store.publish(survey)
        store.add([people.batch(survey, 10)])

    def worker(shard: int) -> Callable[[], None]:
        def run() -> None:
            with open_store(durable_url, shard) as own:
                done.extend(own.delete(survey.fingerprint, id.tobytes()) for id in people.ids[:30])
                own.add([people.batch(survey, 10)])

        return run

    together(worker(0), worker(1), worker(2))
    assert sum(done) == 30
    with open_store(durable_url) as store:
        expected = SurveyCounter(survey).tally(10, SurveyCounter(survey).count(people.answers[30:]))
        assert store.tally(survey.fingerprint).spec() == expected.spec()
        assert store.check() == []


def test_nothing_is_kept_where_only_the_tally_is(open_daily: Store) -> None:
    open_daily.add([PEOPLE.batch(DAILY, 10)])
    assert list(open_daily.reports(NAME)) == []


def test_rejections_add_up_by_day_and_reason(open_daily: Store) -> None:
    open_daily.add([], {(NAME, 20_000, "badPayload"): 2, (NAME, 20_001, "epochTooOld"): 1})
    open_daily.add([PEOPLE.batch(DAILY, 10)], {(NAME, 20_000, "badPayload"): 3})
    assert open_daily.rejections(NAME) == [(20_000, "badPayload", 5), (20_001, "epochTooOld", 1)]


def test_tokens(store: Store) -> None:
    store.add_token(Token("b" * 64, "analyst", "Ada"))
    store.add_token(Token("a" * 64, "admin", "Bob"))
    store.add_token(Token("a" * 64, "ingest", "Bob's relay"))
    assert store.tokens() == [Token("a" * 64, "ingest", "Bob's relay"), Token("b" * 64, "analyst", "Ada")]
    assert [store.remove_token("a" * 64), store.remove_token("a" * 64)] == [True, False]
    assert len(store.tokens()) == 1


def test_a_copy_is_a_store_of_its_own(store: Store, tmp_path: Path) -> None:
    survey = text()
    for published in (DAILY, survey):
        store.publish(published)
        store.add([crowd(published, 100).batch(published, 10)])
    store.close_epoch(NAME, 10)
    store.backup(tmp_path / "copy.db")
    store.add([crowd(survey, 100, seed=9).batch(survey, 10)])
    with open_store(f"sqlite:///{tmp_path / 'copy.db'}") as copy:
        assert copy.epochs(NAME) == store.epochs(NAME)
        assert copy.tally(survey.fingerprint)["bread"].n == 100
        assert copy.add([crowd(survey, 100).batch(survey, 10)]) == [Added(0, 100)]
        assert copy.check() == []
    assert not list(tmp_path.glob(".*.partial*"))
    with pytest.raises(StoreError, match="could not be written"):
        store.backup(tmp_path / "missing" / "copy.db")


def test_a_store_is_ready(store: Store) -> None:
    store.ping()


# -- several at once -------------------------------------------------------------------------------------


def together(*jobs: Callable[[], None]) -> None:
    """Run jobs in threads that begin at once; a failure of one is raised."""
    barrier, failures = threading.Barrier(len(jobs)), []

    def run(job: Callable[[], None]) -> None:
        barrier.wait()
        try:
            job()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "they wait for each other"
    if failures:
        raise failures[0]


def test_a_new_store_may_be_opened_by_several_at_once(durable_url: str) -> None:
    def first() -> None:
        with open_store(durable_url) as store:
            store.publish(DAILY)

    together(*[first] * 5)
    with open_store(durable_url) as store:
        assert len(store.surveys()) == 1


@pytest.mark.parametrize("shards", [(0, 1), (0, 0)], ids=["own shards", "one shard"])
def test_two_workers_with_the_same_ids(durable_url: str, shards: tuple[int, int]) -> None:
    survey = text()
    pools = {DAILY.fingerprint: crowd(DAILY, 2000), survey.fingerprint: crowd(survey, 2000)}
    with open_store(durable_url) as store:
        store.publish(DAILY)
        store.publish(survey)

    def worker(shard: int, step: int) -> Callable[[], None]:
        def add() -> None:
            with open_store(durable_url, shard) as store:
                for at in list(range(0, 2000, 100))[::step]:
                    batches = [
                        pools[s.fingerprint][at : at + 100].batch(s, e) for s in (DAILY, survey) for e in (10, 11)
                    ]
                    store.add(batches[::step])

        return add

    together(worker(shards[0], 1), worker(shards[1], -1))
    with open_store(durable_url) as store:
        for s in (DAILY, survey):
            whole = SurveyCounter(s).tally(4000, 2 * SurveyCounter(s).count(pools[s.fingerprint].answers))
            assert store.tally(s.fingerprint).spec() == whole.spec()
            assert store.duplicates(s.fingerprint) == 4000
        assert store.check() == []


def test_closing_while_others_add(durable_url: str) -> None:
    with open_store(durable_url) as store:
        store.publish(DAILY)
        store.add([PEOPLE[:1].batch(DAILY, 10)])
    counted = []

    def add(shard: int) -> Callable[[], None]:
        def run() -> None:
            with open_store(durable_url, shard) as store:
                for seed in range(1, 1000):
                    (added,) = store.add([crowd(DAILY, 50, 1000 * shard + seed).batch(DAILY, 10)])
                    if added.closed:
                        return
                    counted.append(added.fresh)

        return run

    def close() -> None:
        with open_store(durable_url, 9) as store:
            while len(counted) < 10:
                pass
            store.close_epoch(NAME, 10)

    together(add(1), add(2), close)
    with open_store(durable_url) as store:
        (epoch,) = store.epochs(NAME)
        assert epoch.n == 1 + sum(counted)
        assert store.check() == []


@pytest.mark.parametrize("retention", ["tally", "reports"])
def test_other_answers_under_a_known_id_are_not_counted(store: Store, retention: str) -> None:
    """In one call the smallest answers stand, in whatever order they come; later the first ones do."""
    survey = daily(retention=retention)
    store.publish(survey)
    ids, (small, large) = PEOPLE.ids[:3], np.array([[[0]], [[1]]], dtype=np.uint8)

    def batch(place: int, answers: Bytes) -> Batch:
        return Batch(survey.fingerprint, 10, ids[place : place + 1], answers)

    both = [(batch(0, large), batch(0, small)), (batch(1, small), batch(1, large))]
    assert store.add(both[0]) == [Added(0, 1, 1), Added(1, 0)]
    assert store.add(both[1]) == [Added(1, 0), Added(0, 1, 1)]
    assert store.add([batch(0, large), batch(1, small)]) == [Added(0, 1, int(retention == "reports")), Added(0, 1)]
    counts = SurveyCounter(survey).count(np.concatenate([small, small]))
    assert store.tally(survey.fingerprint).spec() == SurveyCounter(survey).tally(2, counts).spec()
    assert store.duplicates(survey.fingerprint) == 4
    assert store.check() == []

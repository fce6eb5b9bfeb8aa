"""A store of files: what is acknowledged is in a log, what is finished is in parts, and the engines count it once."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from deniable.cli import app
from deniable.collect.stores import (
    Added,
    CountedElsewhere,
    Store,
    StoreError,
    SurveyDeleted,
    Token,
    open_store,
    segments,
)
from deniable.collect.stores.base import CLOSED
from deniable.collect.stores.batches import SurveyCounter
from deniable.errors import ReportError, SpecError
from deniable.files import count_files, read_batches
from deniable.files.places import filesystem
from deniable.surveys import Survey
from deniable.surveys.promises import promises
from tests.collect.surveys import Crowd, crowd, daily, mixed

SURVEY = mixed(retention="reports")
NAME = SURVEY.fingerprint
PEOPLE = crowd(SURVEY, 300)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "node"


def store_at(folder: Path, to: str = "") -> Store:
    store = open_store(f"files:///{folder}" + (f"?to={to}" if to else ""))
    store.publish(SURVEY)
    return store


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    with store_at(folder) as store:
        yield store


def reports(folder: Path, survey: Survey = SURVEY) -> Path:
    return folder / "parts" / survey.fingerprint / "reports"


def parts(folder: Path) -> list[Path]:
    return sorted(reports(folder).rglob("*.parquet")) if reports(folder).exists() else []


def counted(*folders: Path) -> Any:
    return count_files(SURVEY, [reports(folder) for folder in folders], dedupe=True)


def expected(people: Crowd) -> Any:
    counter = SurveyCounter(SURVEY)
    return counter.tally(len(people), counter.count(people.answers)).spec()


def test_what_was_taken_is_in_parts_when_the_store_is_closed(folder: Path) -> None:
    with store_at(folder) as store:
        assert store.add([PEOPLE[:200].batch(SURVEY, 10), PEOPLE[100:150].batch(SURVEY, 10)]) == [
            Added(200),
            Added(0, 50),
        ]
        assert store.add([PEOPLE[150:].batch(SURVEY, 10), PEOPLE[:10].batch(SURVEY, 11)]) == [Added(150), Added(10)]
        assert parts(folder) == []
    assert [path.parent.name for path in parts(folder)] == ["epoch-10", "epoch-11"]
    assert os.listdir(folder / "segments") == []
    assert count_files(SURVEY, [reports(folder) / "epoch-10"]).tally.spec() == expected(PEOPLE)
    with store_at(folder) as store:
        assert [(one.epoch, one.state, one.n) for one in store.epochs(NAME)] == [(10, "open", 350), (11, "open", 10)]
        assert store.duplicates(NAME) == 50
        assert store.check() == []


def test_nodes_that_share_nothing_are_counted_once_together(tmp_path: Path) -> None:
    for node, some in (("a", PEOPLE[:200]), ("b", PEOPLE[100:])):
        with store_at(tmp_path / node) as store:
            store.add([some.batch(SURVEY, 10)])
    outcome = counted(tmp_path / "a", tmp_path / "b")
    assert outcome.tally.spec() == expected(PEOPLE)
    assert (outcome.rows, outcome.duplicates.rows, outcome.duplicates.conflicts) == (400, 100, 0)


def test_epochs_are_counted_apart(folder: Path) -> None:
    """The same ids in two epochs are two submissions each, as in every other store."""
    with store_at(folder) as store:
        store.add([PEOPLE.batch(SURVEY, 10), PEOPLE[:20].batch(SURVEY, 11)])
    counter, answers = SurveyCounter(SURVEY), np.concatenate([PEOPLE.answers, PEOPLE.answers[:20]])
    assert counted(folder).tally.spec() == counter.tally(320, counter.count(answers)).spec()


def test_the_command_that_a_refusal_names(folder: Path, store: Store, tmp_path: Path) -> None:
    store.add([PEOPLE.batch(SURVEY, 10)])
    with pytest.raises(CountedElsewhere, match="deniable tally") as refused:
        store.tally(NAME)
    with pytest.raises(CountedElsewhere):
        store.reports(NAME)
    store.close()
    words = str(refused.value).partition("run deniable ")[2].partition(" over ")[0].split()
    words[-1] = str(tmp_path / words[-1])
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.output
    import json

    assert json.loads((tmp_path / "tally.json").read_text()) == expected(PEOPLE)


# -- after a crash ----------------------------------------------------------------------------------------


def only_log(folder: Path) -> Path:
    (log,) = (folder / "segments").glob("*.log")
    return log


@pytest.mark.parametrize("left", [1, 8, 100, -1])
def test_a_torn_tail_is_cut_off_and_all_before_it_kept(folder: Path, store: Store, left: int) -> None:
    store.add([PEOPLE[:200].batch(SURVEY, 10)])
    log = only_log(folder)
    whole = log.stat().st_size
    store.add([PEOPLE[200:].batch(SURVEY, 10)])
    raw = log.read_bytes()
    torn = raw[: whole + left] if left > 0 else raw[:-1] + bytes([raw[-1] ^ 1])
    log.write_bytes(torn)
    with store_at(folder) as other:
        other.close_epoch(NAME, 10)
        assert other.check() == []
    assert counted(folder).tally.spec() == expected(PEOPLE[:200])


def test_a_log_that_is_damaged_before_its_last_frame_is_set_aside_and_told_of(folder: Path, store: Store) -> None:
    store.add([PEOPLE[:200].batch(SURVEY, 10)])
    store.add([PEOPLE[200:].batch(SURVEY, 10)])
    log = only_log(folder)
    raw = bytearray(log.read_bytes())
    raw[100] ^= 1
    log.write_bytes(raw)
    with store_at(folder) as other:
        other.add([PEOPLE[:100].batch(SURVEY, 11)])
        with pytest.raises(StoreError, match="damaged at byte 15"):
            other.tidy()
        assert len(other.check()) == 1
        other.tidy()
    (kept,) = (folder / "segments").iterdir()
    assert (kept.suffix, kept.read_bytes()) == (".damaged", raw)
    (part,) = parts(folder)
    assert part.parent.name == "epoch-11"


class Killed(BaseException):
    """Stands for kill -9: nothing that the code does afterwards has an effect."""


STEPS = [("_record", 1), ("_complete", 2), ("_make_part", 1), ("_deliver", 1), ("_copy_to_place", 2), ("_complete", 3)]
"""And at which call of it."""


@pytest.mark.parametrize(("step", "call"), STEPS)
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_step_loses_and_doubles_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, call: int, after: bool
) -> None:
    elsewhere = tmp_path / "elsewhere"
    store = store_at(folder, str(elsewhere))
    store.add([PEOPLE.batch(SURVEY, 10)])
    real = getattr(segments.SegmentStore, step)
    calls = []

    def dies(self: Any, *arguments: Any) -> None:
        calls.append(step)
        if after:
            real(self, *arguments)
        if len(calls) == call:
            raise Killed
        if not after:
            real(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(segments.SegmentStore, step, dies)
        with pytest.raises(Killed):
            store.close_epoch(NAME, 10)
    with store_at(folder, str(elsewhere)) as other:
        other.tidy()
        assert other.check() == []
        assert [(one.epoch, one.state, one.n) for one in other.epochs(NAME)] == [(10, "closed", 300)]
    assert parts(folder) == []
    outcome = count_files(SURVEY, [elsewhere / NAME / "reports"])
    assert (outcome.rows, outcome.tally.spec()) == (300, expected(PEOPLE))


def test_a_database_that_fails_while_logs_are_finished_costs_nothing(
    folder: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add([PEOPLE.batch(SURVEY, 10)])

    def busy(*_: Any) -> None:
        raise StoreError("the database was held by another process")

    with monkeypatch.context() as patched:
        patched.setattr(segments.SegmentStore, "_entry", busy)
        with pytest.raises(StoreError, match="held by another"):
            store.tidy()
    store.close()
    assert counted(folder).tally.spec() == expected(PEOPLE)


def test_a_full_disk_is_told_and_the_log_after_it_is_read(
    folder: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add([PEOPLE[:100].batch(SURVEY, 10)])
    real = os.write

    def full(file: int, content: Any) -> int:
        real(file, content[:50])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(StoreError, match="full"):
            store.add([PEOPLE[100:200].batch(SURVEY, 10)])
    assert store.add([PEOPLE[200:].batch(SURVEY, 10)]) == [Added(100)]
    store.close()
    kept = Crowd(np.delete(PEOPLE.ids, np.s_[100:200], 0), np.delete(PEOPLE.answers, np.s_[100:200], 0))
    assert counted(folder).tally.spec() == expected(kept)


# -- what a part tells ------------------------------------------------------------------------------------


def test_parts_and_what_waits_are_in_the_order_of_ids(
    folder: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(0, 300, 10):
        store.add([PEOPLE[at : at + 10].batch(SURVEY, 10)])
    arrived = b"".join(id.tobytes() for id in PEOPLE.ids)
    log = only_log(folder)
    content = b"".join(rows[:, :16].tobytes() for frame in segments.frames(log) for _, _, rows in segments.runs(frame))
    assert content != b"".join(sorted(id.tobytes() for id in PEOPLE.ids)), "a log has the order of commits"
    store.tidy()
    (rest,) = (folder / "segments").iterdir()
    content = b"".join(rows[:, :16].tobytes() for frame in segments.frames(rest) for _, _, rows in segments.runs(frame))
    assert content == b"".join(sorted(id.tobytes() for id in PEOPLE.ids)) != arrived
    monkeypatch.setattr(segments, "PART_ROWS", 100)
    store.tidy()
    assert os.listdir(folder / "segments") == []
    (part,) = parts(folder)
    ids = [id.tobytes() for batch in read_batches(part, SURVEY, ids=True) for id in batch["id"]]
    assert ids == sorted(ids)
    # The next part comes later, however many rows there are.
    store.add([crowd(SURVEY, 200, seed=5).batch(SURVEY, 10)])
    store.tidy()
    assert parts(folder) == [part]
    monkeypatch.setattr(segments, "PART_SECONDS", 0)
    store.tidy()
    assert len(parts(folder)) == 2


def test_a_part_that_is_large_enough_does_not_wait(folder: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "LOG_BYTES", 2000)
    monkeypatch.setattr(segments, "PART_BYTES", 5000)
    for at in range(0, 300, 50):
        store.add([PEOPLE[at : at + 50].batch(SURVEY, 10)])
    assert len(list((folder / "segments").glob("*.sealed"))) >= 2
    store.tidy()
    assert len(parts(folder)) == 1
    assert counted(folder).tally.spec() == expected(PEOPLE)


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_only_finished_parts_are_elsewhere(folder: Path, tmp_path: Path, kind: str) -> None:
    if kind == "memory":
        pytest.importorskip("fsspec")
    place = f"file://{tmp_path / 'bucket'}" if kind == "file" else f"memory://{tmp_path.name}"
    with store_at(folder, place) as store:
        store.add([PEOPLE.batch(SURVEY, 10)])
        store.tidy()
        assert there(place) == []
    assert parts(folder) == []
    assert [name.rpartition("/")[0] for name in there(place)] == [f"{NAME}/reports/epoch-10", NAME]
    assert count_files(SURVEY, [f"{place}/{NAME}/reports"]).tally.spec() == expected(PEOPLE)
    with store_at(folder, place) as store:
        assert store.check() == []
        assert store.delete(NAME, PEOPLE.ids[7].tobytes())
        assert count_files(SURVEY, [f"{place}/{NAME}/reports"]).rows == 299
        store.close_epoch(NAME, 10)
        assert store.drop_reports(NAME, 10) == 299
    assert there(place) == [f"{NAME}/survey.json"]


def there(place: str) -> list[str]:
    """The files of a place, by their names below it; hidden ones as well."""
    from pyarrow.fs import FileSelector, FileType

    files, path = filesystem(place)
    found = files.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
    return sorted(one.path[len(path) :].strip("/") for one in found if one.type == FileType.File)


# -- what else a store does -------------------------------------------------------------------------------


def test_other_answers_under_an_id_are_conflicts_and_the_smallest_count(folder: Path, store: Store) -> None:
    other = crowd(SURVEY, 300, seed=9).answers
    first, second = Crowd(PEOPLE.ids, PEOPLE.answers), Crowd(PEOPLE.ids[:40], other[:40])
    third = Crowd(PEOPLE.ids[40:60], other[40:60])
    assert store.add([first.batch(SURVEY, 10), second.batch(SURVEY, 10)])[1].conflicts <= 40
    assert store.add([third.batch(SURVEY, 10)]) == [Added(20)]
    store.close_epoch(NAME, 10)
    assert [(reason, n) for _, reason, n in store.rejections(NAME)] == [("conflict", 20)]
    least = [min(a.tobytes(), b.tobytes()) for a, b in zip(PEOPLE.answers[:60], other[:60], strict=True)]
    answers = np.concatenate([np.frombuffer(b"".join(least), np.uint8).reshape(60, -1), PEOPLE.answers[60:]])
    assert counted(folder).tally.spec() == expected(Crowd(PEOPLE.ids, answers))


def test_a_closed_epoch_takes_nothing(folder: Path, store: Store) -> None:
    store.add([PEOPLE[:100].batch(SURVEY, 10)])
    closed = store.close_epoch(NAME, 10, 2e9)
    assert (closed.state, closed.n, closed.sha256) == ("closed", 100, None)
    assert len(parts(folder)) == 1, "the end of an epoch makes its last part"
    assert store.add([PEOPLE.batch(SURVEY, 10), PEOPLE.batch(SURVEY, 11)]) == [Added(closed=True), Added(300)]
    assert store.reopen_epoch(NAME, 10).state == "open"
    assert store.add([PEOPLE.batch(SURVEY, 10)]) == [Added(300)]
    store.close()
    assert count_files(SURVEY, [reports(folder) / "epoch-10"], dedupe=True).tally.spec() == expected(PEOPLE)


def test_a_deleted_report_is_gone_and_is_not_taken_again(folder: Path, tmp_path: Path) -> None:
    """Wherever it lies: in a log, in what waits, in a part, in a part elsewhere."""
    elsewhere = tmp_path / "bucket"
    with store_at(folder, str(elsewhere)) as store:
        store.add([PEOPLE[:100].batch(SURVEY, 10)])
    with store_at(folder, str(elsewhere)) as store:
        store.add([PEOPLE[100:200].batch(SURVEY, 10)])
        store.tidy()
        store.add([PEOPLE[200:].batch(SURVEY, 10)])
        gone = [PEOPLE.ids[place].tobytes() for place in (3, 150, 250)]
        assert [store.delete(NAME, id) for id in (*gone, gone[0], b"never seen it...")] == [True] * 3 + [False] * 2
        assert [(one.n, one.deleted) for one in store.epochs(NAME)] == [(297, 3)]
        assert store.check() == []
        found = [batch["id"] for part in elsewhere.rglob("*.parquet") for batch in read_batches(part, SURVEY, ids=True)]
        for rest in (folder / "segments").glob("*.rest"):
            found += [rows[:, :16] for frame in segments.frames(rest) for _, _, rows in segments.runs(frame)]
        left = [id.tobytes() for ids in found for id in ids]
        assert (len(left), set(left) & set(gone)) == (297, set())
        store.add([PEOPLE.batch(SURVEY, 10)])
        store.close_epoch(NAME, 10)
        assert not store.delete(NAME, PEOPLE.ids[0].tobytes()), "its epoch is closed"
        assert store.check() == []
    kept = np.delete(np.arange(300), [3, 150, 250])
    outcome = count_files(SURVEY, [elsewhere / NAME / "reports"], dedupe=True)
    assert outcome.tally.spec() == expected(PEOPLE[kept])


def test_kept_reports_of_a_closed_epoch_are_dropped(folder: Path, store: Store) -> None:
    store.add([PEOPLE.batch(SURVEY, 10), PEOPLE[:7].batch(SURVEY, 11)])
    with pytest.raises(StoreError, match="close it first"):
        store.drop_reports(NAME, 10, 10)
    store.close_epoch(NAME, 10)
    assert store.drop_reports(NAME, 10, 10) == 300
    assert parts(folder) == []
    store.close_survey(NAME)
    assert [part.parent.name for part in parts(folder)] == ["epoch-11"]


def test_reports_are_deleted_when_the_survey_says(folder: Path) -> None:
    """A day is read from the sentence that respondents see; what was not tallied by then is gone as well."""
    plain = daily()
    assert plain.terms is not None
    survey = replace(plain, terms=replace(plain.terms, delete_days=7))
    said = promises(survey)
    (days,) = re.findall(
        r"wait in files .* deleted at most (\d+) days after the last report of their period can", said["kept"]
    )
    assert "does not take single reports out" in said["leaving"]
    people = crowd(survey, 50)
    with open_store(f"files:///{folder}") as store:
        store.publish(survey)
        store.add([people.batch(survey, 10), people.batch(survey, 11)])
        store.close_epoch(survey.fingerprint, 10)
        assert len(list(folder.rglob("*.parquet"))) == 1, "they wait in files"
        assert not store.delete(survey.fingerprint, people.ids[0].tobytes())
        ends = survey.terms.epochs.start(10 + survey.terms.epochs.late + 1)
        store.forget_ids(ends + (int(days) - 1) * 86_400)
        assert len(list(folder.rglob("*.parquet"))) == 1
        store.forget_ids(ends + int(days) * 86_400 - 3600)
        assert list(folder.rglob("*.parquet")) == []
        assert store.check() == []
        store.close_epoch(survey.fingerprint, 11)
        assert len(list(folder.rglob("*.parquet"))) == 1
    # Once they are tallied, an operator need not wait.
    command = ["store", "delete-reports", "--epochs", "11", "--yes", "--store", f"files:///{folder}"]
    assert "deleted: 50 reports" in CliRunner().invoke(app, command).output
    assert list(folder.rglob("*.parquet")) == []


def test_a_deleted_survey_leaves_no_file(folder: Path, tmp_path: Path) -> None:
    """Neither of what is in a log, nor of what waits, nor a part, here or elsewhere; others stay."""
    elsewhere, other = tmp_path / "bucket", daily(retention="reports")

    def files() -> bytes:
        return b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())

    with store_at(folder, str(elsewhere)) as store:
        store.publish(other)
        store.add([PEOPLE[:100].batch(SURVEY, 10)])
    with store_at(folder, str(elsewhere)) as store:
        store.add([PEOPLE[100:200].batch(SURVEY, 10), crowd(other, 7, seed=8).batch(other, 10)])
        store.tidy()
        store.add([PEOPLE[200:].batch(SURVEY, 10)])
        assert list(elsewhere.rglob(f"{NAME}/**/*.parquet"))
        assert all(PEOPLE.ids[place].tobytes() in files() for place in (150, 250))
        assert store.delete(NAME, PEOPLE.ids[3].tobytes())
        store.delete_survey(NAME)
        assert store.add([PEOPLE.batch(SURVEY, 10), PEOPLE[:0].batch(SURVEY, 11)]) == [Added(closed=True)] * 2
        assert not [path for path in tmp_path.rglob("*") if NAME in str(path) and path.is_file()]
        assert not any(id.tobytes() in files() for id in PEOPLE.ids)
        assert store.check() == []
    with open_store(f"files:///{folder}?to={elsewhere}") as store:
        assert store.deleted() == [NAME]
        with pytest.raises(SurveyDeleted):
            store.publish(SURVEY)
    assert count_files(other, [elsewhere / other.fingerprint / "reports"]).tally["smoke"].n == 7


def test_surveys_and_tokens_outlive_the_process(folder: Path) -> None:
    with store_at(folder) as store:
        store.add_token(Token("0" * 64, "analyst", "Ada"))
        store.add([], {(NAME, 5, "badPayload"): 3})
    with open_store(f"files:///{folder}") as store:
        assert [one.canonical for one in store.surveys()] == [SURVEY.canonical]
        assert [token.label for token in store.tokens()] == ["Ada"]
        assert store.rejections(NAME) == [(5, "badPayload", 3)]
        with pytest.raises(StoreError, match="copy of its directory"):
            store.backup(folder / "copy")
    assert folder.stat().st_mode & 0o077 == 0
    assert Survey.load(folder / "parts" / NAME / "survey.json") == SURVEY


def test_what_is_refused(folder: Path, store: Store) -> None:
    with pytest.raises(SpecError, match='retention "tally"'):
        store.publish(daily())
    bad = Crowd(PEOPLE.ids[9:10], np.full_like(PEOPLE.answers[:1], 255))
    with pytest.raises(ReportError, match="not a report of question 'smoke'"):
        store.add([PEOPLE[:5].batch(SURVEY, 10), bad.batch(SURVEY, 10)])
    with pytest.raises(StoreError, match="publish it first"):
        store.add([PEOPLE[:5].batch(daily(), 10)])
    store.close()
    assert parts(folder) == []


# -- object stores that do not do what they should ------------------------------------------------------


class NoBucket(BaseHTTPRequestHandler):
    """An object store without the bucket that is asked for; or one that never answers."""

    silent, over = threading.Event(), threading.Event()

    def answer(self) -> None:
        if self.silent.is_set():
            self.over.wait(20)
            return  # whoever asked has gone
        content = b"<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message></Error>"
        self.send_response(404)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "application/xml")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    server = ThreadingHTTPServer(("127.0.0.1", 0), NoBucket)
    server.daemon_threads, server.block_on_close = True, False
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"s3://me:hunter2@bucket/reports?scheme=http&region=x&endpoint_override=127.0.0.1:{server.server_port}"
    NoBucket.over.set()
    server.shutdown()
    NoBucket.silent.clear()
    NoBucket.over.clear()
    server.server_close()


def test_a_missing_bucket_is_named(folder: Path, bucket: str) -> None:
    """The epoch closes; what cannot be moved is said with the cause, by closing, tidying and checking."""
    with store_at(folder, bucket) as store:
        store.add([PEOPLE.batch(SURVEY, 10)])
        assert store.close_epoch(NAME, 10).state == CLOSED
        assert store.trouble is not None
        assert "bucket" in store.trouble
        assert "None" not in store.trouble
        with pytest.raises(StoreError, match=r"cannot be written: .*bucket") as failed:
            store.tidy()
        assert failed.value.code == "NO_SUCH_BUCKET"
        assert "hunter2" not in f"{failed.value} {store.trouble}"
        (wrong,) = store.check()
        assert wrong == "1 parts wait to be moved to 's3://bucket/reports', which cannot be used: it is not there"


def test_an_object_store_that_does_not_answer_is_given_up(
    folder: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "ELSEWHERE_SECONDS", 0.2)
    NoBucket.silent.set()
    with store_at(folder, bucket) as store:
        store.add([PEOPLE.batch(SURVEY, 10)])
        store.close_epoch(NAME, 10)
        with pytest.raises(StoreError, match=r"does not answer within 0\.2 seconds") as failed:
            store.tidy()
        assert failed.value.code == "ETIMEDOUT"
        assert "does not answer" in store.check()[0]

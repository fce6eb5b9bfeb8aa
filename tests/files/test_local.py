"""The local engine: the same integers by one process or two, interrupted or not, without what is damaged."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable.conformance.protocols import registered_examples
from deniable.errors import MismatchError, NumberError, ReportError, SpecError
from deniable.files import (
    count_files,
    dedupe as deduping,
    local,
    reports as reporting,
    tally_files,
    units as counting,
    write_reports,
)
from deniable.files.dedupe import Duplicates
from deniable.files.units import WorkerError, run_all, worker_count
from deniable.protocols import GRR, OUE, Protocol, Tally
from deniable.randomness import Simulation
from deniable.surveys import Question, Survey, SurveyTally
from tests.files.files import SURVEY, answers

PROTOCOL = OUE(40, 1)
ALONE = Survey.of(PROTOCOL)
ROWS = 3000


def reports(protocol: Protocol, rows: int, seed: int) -> Any:
    labels = [protocol.domain.answer(label) for label, _ in protocol.law().inputs()]
    return protocol.privatize([labels[i * i % len(labels)] for i in range(rows)], Simulation(seed))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six good files of 1000 to 1005 reports."""
    path = tmp_path / "reports"
    path.mkdir()
    for i in range(6):
        write_reports(path / f"{i}.parquet", ALONE, [{"report": reports(PROTOCOL, 1000 + i, i)}])
    return path


def everything(folder: Path) -> Any:
    return sum(PROTOCOL.tally(reports(PROTOCOL, 1000 + i, i)) for i in range(6))


# -- the same integers ---------------------------------------------------------------------------------


RELATIONS = sorted({protocol.guarantee.relation for _, protocol in registered_examples()})


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_protocol_from_memory_one_and_two_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relation: str
) -> None:
    """A column for each: a survey and two processes for each would take ten times as long."""
    asked = [(name, made) for name, made in registered_examples() if made.guarantee.relation == relation]
    survey = Survey("all", [Question(f"q{place}", name, made) for place, (name, made) in enumerate(asked)])
    monkeypatch.setattr(reporting, "ROW_GROUP_BYTES", 50 * survey.report_bytes)
    made = {question.id: reports(question.protocol, 600, 3) for question in survey}
    for start in range(0, 600, 200):
        pieces = ({id: rows[i : i + 50] for id, rows in made.items()} for i in range(start, start + 200, 50))
        write_reports(tmp_path / f"{start}.parquet", survey, pieces)
    expected = {one.id: one.protocol.tally(made[one.id], survey.source(one.id)) for one in survey}
    found = tally_files(survey, [tmp_path])
    assert different(found, expected) == []
    # Few bytes a unit, so that files are cut into parts.
    monkeypatch.setattr(counting.cut, "__defaults__", (100 * survey.report_bytes, 100 * survey.report_bytes))
    assert different(tally_files(survey, [tmp_path], workers=2), expected) == []
    first = survey.questions[0].id
    assert different(found, {**expected, first: expected[first] + expected[first]}) == [first]


def different(found: SurveyTally, expected: dict[str, Tally]) -> list[str]:
    """The questions whose sums are not those that are expected."""
    return [id for id, tally in expected.items() if found[id] != tally]


def test_files_are_cut_between_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "ROW_GROUP_BYTES", 100)
    path = tmp_path / "reports.parquet"
    made = reports(PROTOCOL, ROWS, 1)
    write_reports(path, ALONE, ({"report": made[i : i + 100]} for i in range(0, ROWS, 100)))
    from deniable.files.places import Place
    from deniable.files.reports import Layout

    place = Place(str(path), path.stat().st_size)
    for parts in (1, 2, 7, 100):
        found = [counting.count_unit(Layout(ALONE), counting.Unit(place, i, parts)) for i in range(parts)]
        assert all(isinstance(one, counting.Counted) for one in found)
        assert sum(one.rows for one in found) == ROWS  # type: ignore[union-attr]
    bad = np.array(made.array)
    bad[1234, -1] = 255
    bad[1234, 0] = 255
    narrow = OUE(39, 1)
    write_reports(path, Survey.of(narrow), ({"report": bad[i : i + 100]} for i in range(0, ROWS, 100)))
    place = Place(str(path), path.stat().st_size)
    found = [counting.count_unit(Layout(Survey.of(narrow)), counting.Unit(place, i, 7)) for i in range(7)]
    assert any("row 1" in refusal.reason for refusal in found if hasattr(refusal, "reason"))
    gathered = counting.Gathered()
    for one in found:
        gathered.add(one)
    assert (gathered.files, gathered.rows, gathered.tallies, gathered.waiting) == (0, 0, {}, {})


def test_parts_are_merged_in_any_order_and_grouping(tmp_path: Path) -> None:
    from deniable.files.places import Place, Refused
    from deniable.files.reports import Layout

    layout = Layout(ALONE)
    parts = {"a": 2, "b": 3}
    tally = PROTOCOL.tally(reports(PROTOCOL, 10, 1))
    found: list[Any] = [
        counting.Counted(counting.Unit(Place(name, 1), part, count), 10, {"report": tally}, is_tally=name == "b")
        for name, count in parts.items()
        for part in range(count)
    ][:-1]
    found += [
        counting.Counted(counting.Unit(Place("c", 1)), 10, {"report": tally}, is_tally=True),
        Refused("b", ReportError("x")),
    ]
    random = np.random.default_rng(1)
    for _ in range(50):
        piles = [counting.Gathered() for _ in range(3)]
        for index in random.permutation(len(found)):
            piles[random.integers(3)].add(found[index])
        total = piles[0].merge(piles[1], parts).merge(piles[2], parts)
        assert (total.rows, total.files, list(total.refused), total.waiting) == (30, 2, ["b"], {})
        assert total.tallies["report"] == tally + tally + tally
        assert total.sums == {"c": 10}  # a file that was refused is no tally that was counted
    assert layout.kind == "protocol"


def test_progress_reaches_the_end(folder: Path) -> None:
    seen: list[tuple[int, float | None]] = []
    for workers in (1, 2):
        seen.clear()
        count_files(ALONE, [folder], workers, progress=lambda *done: seen.append(done))
        assert seen[-1] == (6015, 1.0)
        assert seen == sorted(seen)


def test_the_number_of_workers() -> None:
    assert worker_count(None) >= 1
    for wrong in (0, -1, True, 1.5):
        with pytest.raises(NumberError):
            worker_count(wrong)  # type: ignore[arg-type]


# -- what is refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_files_are_listed_and_the_others_counted(folder: Path, workers: int) -> None:
    raw = (folder / "3.parquet").read_bytes()
    (folder / "3.parquet").write_bytes(raw[: len(raw) // 2])
    (folder / "4.parquet").write_bytes(b"")
    other = GRR(5, 1)
    write_reports(folder / "5.parquet", Survey.of(other), [{"report": reports(other, 10, 1)}])
    (folder / "readme.md").write_text("hello")
    outcome = count_files(ALONE, [folder], workers)
    assert outcome.tally["report"] == sum(PROTOCOL.tally(reports(PROTOCOL, 1000 + i, i)) for i in range(3))
    assert (outcome.files, outcome.rows) == (3, 3003)
    reasons = {Path(refusal.name).name: refusal.reason for refusal in outcome.refused}
    assert list(reasons) == ["3.parquet", "4.parquet", "5.parquet", "readme.md"]
    assert "truncated or damaged" in reasons["3.parquet"]
    assert "is empty" in reasons["4.parquet"]
    assert other.fingerprint in reasons["5.parquet"]
    assert PROTOCOL.fingerprint in reasons["5.parquet"]
    assert "nor reports as text" in reasons["readme.md"]
    with pytest.raises(ReportError, match=r"3\.parquet"):
        tally_files(ALONE, [folder], workers=workers)


def test_a_bad_report_at_the_end_takes_the_whole_file_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "BATCH_BYTES", 500)
    narrow = OUE(39, 1)
    array = np.array(reports(narrow, 1000, 1).array)
    write_reports(folder / "good.parquet", Survey.of(narrow), [{"report": array}])
    array[999, 4] |= 0x80
    write_reports(folder / "late.parquet", Survey.of(narrow), [{"report": array}])
    for workers in (1, 2):
        outcome = count_files(Survey.of(narrow), [folder / "late.parquet", folder / "good.parquet"], workers)
        assert outcome.rows == 1000
        assert "row 1000" in outcome.refused[0].reason


# -- killed and interrupted ----------------------------------------------------------------------------


def die_once(folder: Path, number: int) -> int:
    """A worker that is killed the first time that it meets number 3."""
    mark = folder / "died"
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def die_always(folder: Path, number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
def test_a_killed_worker_costs_time_and_nothing_else(tmp_path: Path) -> None:
    found = dict(run_all(die_once, tmp_path, range(20), 2))
    assert found == {number: number * number for number in range(20)}
    with pytest.raises(WorkerError, match="killed"):
        list(run_all(die_always, tmp_path, range(5), 2))


def test_an_interrupted_and_resumed_run_equals_the_uninterrupted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = tmp_path / "manifest.json"

    def interrupt(rows: int, share: float | None) -> None:
        if rows > 2500:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count_files(ALONE, [folder], resume=manifest, progress=interrupt)
    done = json.loads(manifest.read_text())["files"]
    assert 1 <= len(done) < 6
    opened: list[str] = []
    plain = counting.Source.open
    monkeypatch.setattr(counting.Source, "open", lambda name: opened.append(name) or plain(name))
    outcome = count_files(ALONE, [folder], resume=manifest)
    assert outcome.tally["report"] == everything(folder)
    assert (outcome.files, outcome.resumed, outcome.rows) == (6, len(done), 6015)
    assert len(opened) == 6 - len(done)
    again = count_files(ALONE, [folder], workers=2, resume=manifest)
    assert (again.tally, again.resumed) == (outcome.tally, 6)


def test_changed_files_are_counted_anew_and_refused_ones_tried_again(folder: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    raw = (folder / "1.parquet").read_bytes()
    (folder / "1.parquet").write_bytes(raw[:-9])
    assert count_files(ALONE, [folder], resume=manifest).files == 5
    (folder / "1.parquet").write_bytes(raw)
    write_reports(folder / "2.parquet", ALONE, [{"report": reports(PROTOCOL, 7, 9)}])
    outcome = count_files(ALONE, [folder], resume=manifest)
    assert (outcome.files, outcome.resumed) == (6, 4)
    assert outcome.tally == tally_files(ALONE, [folder])
    # The same size and time, and other content: the footer tells.
    entry = os.stat(folder / "0.parquet")
    write_reports(folder / "0.parquet", ALONE, [{"report": reports(PROTOCOL, 1000, 99)}])
    if (folder / "0.parquet").stat().st_size == entry.st_size:
        os.utime(folder / "0.parquet", ns=(entry.st_atime_ns, entry.st_mtime_ns))
    outcome = count_files(ALONE, [folder], resume=manifest)
    assert outcome.tally == tally_files(ALONE, [folder])
    os.unlink(folder / "0.parquet")
    assert count_files(ALONE, [folder], resume=manifest).tally == tally_files(ALONE, [folder])


def test_manifests_that_do_not_fit(folder: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    count_files(ALONE, [folder], resume=manifest)
    with pytest.raises(MismatchError, match="does not belong to"):
        count_files(Survey.of(GRR(5, 1)), [folder], resume=manifest)
    content = json.loads(manifest.read_text())
    for change, kind in (
        ({"version": 3}, "version 3"),
        ({"kind": "x"}, "no manifest"),
        ({"files": {"a": 1}}, "damaged"),
    ):
        manifest.write_text(json.dumps(content | change))
        with pytest.raises(SpecError, match=kind):
            count_files(ALONE, [folder], resume=manifest)
    for packed in content["sums"]:
        packed["report"]["counts"] = "i8:AAAA"
    manifest.write_text(json.dumps(content))
    with pytest.raises(SpecError, match="damaged"):
        count_files(ALONE, [folder], resume=manifest)


@pytest.mark.parametrize("most", [1, 120])
def test_long_tallies_share_sums_and_a_changed_file_is_never_half_counted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Of tallies of 40 counters one, or three, are kept."""
    monkeypatch.setattr(local, "MOST_COUNTERS", most)
    manifest = tmp_path / "manifest.json"
    count_files(ALONE, [folder / "0.parquet", folder / "1.parquet"], resume=manifest)
    outcome = count_files(ALONE, [folder], workers=2, resume=manifest)
    assert (outcome.tally["report"], outcome.resumed) == (everything(folder), 2)
    assert len(json.loads(manifest.read_text())["sums"]) == max(1, most // 40)
    assert count_files(ALONE, [folder], resume=manifest).resumed == 6
    write_reports(folder / "2.parquet", ALONE, [{"report": reports(PROTOCOL, 7, 9)}])
    outcome = count_files(ALONE, [folder], resume=manifest)
    assert outcome.tally == tally_files(ALONE, [folder])
    assert outcome.resumed == (0 if most == 1 else 4)
    os.unlink(folder / "0.parquet")
    outcome = count_files(ALONE, [folder], resume=manifest)
    assert outcome.tally == tally_files(ALONE, [folder])
    assert count_files(ALONE, [folder], resume=manifest).resumed == 5


def test_a_full_disk_keeps_the_last_manifest(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = tmp_path / "manifest.json"
    count_files(ALONE, [folder / "0.parquet"], resume=manifest)
    before = manifest.read_bytes()

    def full(path: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(local, "atomic_write", full)
    with pytest.raises(OSError, match=r"No space left.*manifest\.json"):
        count_files(ALONE, [folder], resume=manifest)
    assert manifest.read_bytes() == before


SLOW_RUN = """
import sys, time
from deniable.files import count_files
from deniable.files import local
from deniable.protocols import OUE
from deniable.surveys import Survey
local.SECONDS_BETWEEN = 0.0
count_files(Survey.of(OUE(40, 1)), [sys.argv[1]], workers=2, resume=sys.argv[2], progress=lambda *_: time.sleep(0.3))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="sends SIGKILL")
def test_kill_9_of_a_whole_run_is_resumed(folder: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    process = subprocess.Popen([sys.executable, "-c", SLOW_RUN, str(folder), str(manifest)], start_new_session=True)
    end = time.monotonic() + 60
    while not manifest.exists() or not json.loads(manifest.read_text())["files"]:
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    outcome = count_files(ALONE, [folder], resume=manifest)
    assert outcome.tally["report"] == everything(folder)
    assert 1 <= outcome.resumed < 6


# -- each report once ----------------------------------------------------------------------------------


def with_ids(path: Path, ids: np.ndarray, seed: int, target: Any = SURVEY) -> dict[str, Any]:
    bits = Simulation(seed)
    batch: dict[str, Any] = {q.id: np.array(q.protocol.privatize(answers(len(ids))[q.id], bits)) for q in target}
    batch["id"] = ids
    write_reports(path, target, [batch], ids=True)
    return batch


def some_ids(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 16), dtype=np.uint8)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("partition", [1 << 26, 2000])
def test_dedupe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int, partition: int) -> None:
    monkeypatch.setattr(deduping, "PARTITION_BYTES", partition)
    monkeypatch.setattr(deduping, "CHUNK_BYTES", 3000)
    first = with_ids(tmp_path / "a.parquet", some_ids(400, 1), 1)
    # The same file again under another name, and one with half of its rows, in another order, and 100 new ones.
    write_reports(tmp_path / "b.parquet", SURVEY, [first], ids=True)
    fresh = with_ids(tmp_path / "c.parquet", some_ids(100, 2), 2)
    order = np.random.default_rng(3).permutation(400)[:200]
    mixed = {name: np.concatenate([np.asarray(first[name])[order], fresh[name]]) for name in first}
    write_reports(tmp_path / "c.parquet", SURVEY, [mixed], ids=True)
    outcome = count_files(SURVEY, [tmp_path], workers, dedupe=True)
    assert isinstance(SURVEY, Survey)
    for question in SURVEY:
        expected = np.concatenate([first[question.id], fresh[question.id]])
        assert outcome.tally[question.id] == question.protocol.tally(expected, SURVEY.source(question.id))
    assert outcome.duplicates == Duplicates(600)  # rows, in however many questions they came again
    assert outcome.rows == 400 + 400 + 300
    assert tally_files(SURVEY, [tmp_path])["smoke"].n == 1100


def test_conflicts_are_told_and_the_smallest_counts(tmp_path: Path) -> None:
    ids = some_ids(50, 1)
    first = with_ids(tmp_path / "a.parquet", ids, 1)
    changed = {name: np.array(rows) for name, rows in first.items()}
    changed["smoke"][7] = (changed["smoke"][7] + 1) % 3
    changed["smoke"][9] = (changed["smoke"][9] + 1) % 3
    write_reports(tmp_path / "b.parquet", SURVEY, [changed], ids=True)
    # The first question decides; the others are the same in both.
    least = np.minimum(first["smoke"], changed["smoke"])
    assert (least != first["smoke"]).any() or (least != changed["smoke"]).any()
    for inputs in (["a", "b"], ["b", "a"]):
        outcome = count_files(SURVEY, [tmp_path / f"{name}.parquet" for name in inputs], dedupe=True)
        expected = SURVEY["smoke"].protocol.tally(least, SURVEY.source("smoke"))
        assert outcome.tally["smoke"] == expected
        assert outcome.duplicates is not None
        assert outcome.duplicates.conflicts == 2
        assert set(outcome.duplicates.examples) == {ids[7].tobytes().hex(), ids[9].tobytes().hex()}


def test_ids_that_differ_in_one_bit_are_different(tmp_path: Path) -> None:
    ids = np.zeros((129, 16), dtype=np.uint8)
    for bit in range(128):
        ids[bit + 1, bit // 8] = 1 << bit % 8
    with_ids(tmp_path / "a.parquet", ids, 1)
    outcome = count_files(SURVEY, [tmp_path / "a.parquet"], dedupe=True)
    assert outcome.duplicates == Duplicates()
    assert outcome.tally["age"].n == 129


def test_a_refused_file_decides_nothing(tmp_path: Path) -> None:
    """Its rows come first, but it is bad at the end: the rows of the good file count."""
    ids = some_ids(300, 1)
    first = with_ids(tmp_path / "a.parquet", ids, 1)
    first["smoke"][299] = 9
    write_reports(tmp_path / "a.parquet", SURVEY, [first], ids=True)
    second = with_ids(tmp_path / "b.parquet", ids, 2)
    outcome = count_files(SURVEY, [tmp_path], dedupe=True)
    assert "row 300" in outcome.refused[0].reason
    assert outcome.tally["age"] == SURVEY["age"].protocol.tally(second["age"], SURVEY.source("age"))
    assert outcome.duplicates == Duplicates()


def test_one_id_a_million_times_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deduping, "CHUNK_BYTES", 1 << 16)
    protocol = GRR(4, 1)
    batch = {"report": reports(protocol, 1, 1).array.repeat(50_000, axis=0), "id": np.zeros((50_000, 16), np.uint8)}
    write_reports(tmp_path / "a.parquet", Survey.of(protocol), [batch], ids=True)
    sizes: list[int] = []
    plain = deduping._least_of_each
    monkeypatch.setattr(deduping, "_least_of_each", lambda rows, torn: sizes.append(len(rows)) or plain(rows, torn))
    outcome = count_files(Survey.of(protocol), [tmp_path / "a.parquet"], dedupe=True)
    assert (outcome.tally["report"].n, outcome.duplicates) == (1, Duplicates(49_999))
    assert max(sizes) < 4000


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_for_temporary_files_is_no_fault_of_the_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_ids(tmp_path / "a.parquet", some_ids(50, 1), 1)

    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(deduping, "_append", full)
    with pytest.raises(OSError, match="No space left"):
        count_files(SURVEY, [tmp_path / "a.parquet"], dedupe=True)

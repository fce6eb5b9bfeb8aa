"""Files of reports in every form and place: Parquet, Arrow streams and text, ids, versions, URLs, directories."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.errors import DeniableError, MismatchError, ReportError, SpecError
from deniable.files import count_files, privatize_file, read_batches, report_writer, tally_files, write_reports
from deniable.files.places import Place, expand
from deniable.files.reports import Layout
from deniable.files.spark import new_files
from deniable.protocols import GRR
from deniable.randomness import Simulation
from deniable.surveys import Question, Survey, SurveyTally
from tests.files.files import SURVEY, answers, write_csv

ROWS = 300
BITS = Simulation(9)
BATCH: dict[str, Any] = {q.id: q.protocol.privatize(answers(ROWS)[q.id], BITS) for q in SURVEY}
BATCH["id"] = np.frombuffer(BITS.take(16 * ROWS), dtype=np.uint8).reshape(ROWS, 16)
TALLY = SurveyTally(SURVEY.fingerprint, {q.id: q.protocol.tally(BATCH[q.id], SURVEY.source(q.id)) for q in SURVEY})
FORMATS = ["parquet", "arrow", "text"]
GOLDEN = Path(__file__).parents[1] / "golden" / "reports"


def written(path: Path, format: str = "parquet", ids: bool = False, target: Any = SURVEY) -> Path:
    write_reports(path, target, [BATCH], format=format, ids=ids)
    return path


# -- forms ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("ids", [True, False])
def test_every_form_gives_the_same_bytes(tmp_path: Path, format: str, ids: bool) -> None:
    path = written(tmp_path / "reports", format, ids)
    assert tally_files(SURVEY, [path]) == TALLY
    (batch,) = read_batches(path, SURVEY, ids=ids)
    assert set(batch) == {q.id for q in SURVEY} | ({"id"} if ids else set())
    for name, rows in batch.items():
        assert np.array_equal(rows, np.asarray(BATCH[name])), name
    if not ids:
        with pytest.raises(ReportError, match="has no column 'id'"):
            list(read_batches(path, SURVEY, ids=True))


@pytest.mark.parametrize("format", ["arrow", "text"])
def test_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    raw = written(tmp_path / "reports", format).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    assert tally_files(SURVEY, ["-"]) == TALLY


def test_every_cut_of_a_stream_is_noticed(tmp_path: Path) -> None:
    """Also between two messages, which the reader underneath takes for the end."""
    path = tmp_path / "reports.arrow"
    with report_writer(path, SURVEY, format="arrow") as writer:
        for start in (0, 100, 200):
            writer.write({name: np.asarray(BATCH[name])[start : start + 100] for name in Layout(SURVEY).protocols})
    raw = path.read_bytes()
    assert tally_files(SURVEY, [path]) == TALLY
    for length in range(0, len(raw), 8):
        path.write_bytes(raw[:length])
        with pytest.raises(DeniableError):
            tally_files(SURVEY, [path])
    path.write_bytes(raw + b"more")
    with pytest.raises(ReportError, match="goes on after its end"):
        tally_files(SURVEY, [path])


def test_damaged_streams_are_refused_or_read_never_worse(tmp_path: Path) -> None:
    raw = written(tmp_path / "reports.arrow", "arrow").read_bytes()
    for place in range(0, len(raw), 13):
        damaged = bytearray(raw)
        damaged[place] ^= 0x41
        (tmp_path / "reports.arrow").write_bytes(damaged)
        outcome = count_files(SURVEY, [tmp_path / "reports.arrow"])
        assert outcome.files + len(outcome.refused) == 1


def test_fresh_ids_differ_and_a_question_called_id_keeps_its_name(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "answers.csv", answers(500))
    privatize_file(SURVEY, source, tmp_path / "reports.parquet", ids=True)
    ids = pq.read_table(tmp_path / "reports.parquet").column("id").to_pylist()
    assert len(set(ids)) == 500
    odd = Survey("odd", [Question("id", "?", GRR(2, 1))])
    write_reports(tmp_path / "odd.parquet", odd, [{"id": GRR(2, 1).privatize([0, 1])}])
    assert tally_files(odd, [tmp_path / "odd.parquet"])["id"].n == 2
    with pytest.raises(SpecError, match='a question "id"'):
        write_reports(tmp_path / "odd.parquet", odd, [], ids=True)
    with pytest.raises(ReportError, match="rows of 16 bytes"):
        write_reports(tmp_path / "x", SURVEY, [{**BATCH, "id": np.zeros((ROWS, 3), dtype=np.uint8)}], ids=True)


# -- versions ------------------------------------------------------------------------------------------


def described(schema: pa.Schema) -> tuple[list[tuple[str, str, bool]], dict[bytes, bytes]]:
    return [(field.name, str(field.type), field.nullable) for field in schema], dict(schema.metadata)


@pytest.mark.parametrize("name", ["v1.parquet", "v1.arrow", "v1.csv"])
def test_golden_files_are_still_read(name: str) -> None:
    survey = Survey.load(GOLDEN / "survey.json")
    assert survey == SURVEY
    assert tally_files(survey, [GOLDEN / name]) == SurveyTally.load(GOLDEN / "v1.tally.json")
    ids = [batch["id"] for batch in read_batches(GOLDEN / name, survey, ids=True)]
    assert len({row.tobytes() for row in np.concatenate(ids)}) == 20


def test_the_schema_is_still_that_of_the_golden_files(tmp_path: Path) -> None:
    now = described(pq.read_schema(written(tmp_path / "now.parquet", ids=True)))
    assert now == described(pq.read_schema(GOLDEN / "v1.parquet"))
    assert now[1][b"deniable.version"] == b"1"
    written(tmp_path / "now.arrow", "arrow", ids=True)
    with pa.ipc.open_stream(tmp_path / "now.arrow") as ours, pa.ipc.open_stream(GOLDEN / "v1.arrow") as golden:
        assert described(ours.schema) == described(golden.schema) == now
    lines = (GOLDEN / "v1.csv").read_text().splitlines()
    assert written(tmp_path / "now.csv", "text", ids=True).read_text().splitlines()[:2] == lines[:2]


def test_a_newer_version_is_named(tmp_path: Path) -> None:
    table = pq.read_table(written(tmp_path / "reports.parquet"))
    notes = {**table.schema.metadata, b"deniable.version": b"2"}
    pq.write_table(table.replace_schema_metadata(notes), tmp_path / "reports.parquet")
    with pytest.raises(ReportError, match="of version '2': try a newer deniable"):
        tally_files(SURVEY, [tmp_path / "reports.parquet"])


# -- places --------------------------------------------------------------------------------------------


@pytest.fixture
def memory() -> Any:
    files = fsspec.filesystem("memory")
    files.rm("/", recursive=True)  # what other tests of this process left
    yield files
    files.rm("/", recursive=True)


@pytest.mark.parametrize("format", FORMATS)
def test_urls(tmp_path: Path, memory: Any, format: str) -> None:
    for url in ("memory://box/a.reports", f"file://{tmp_path}/a%20b.reports"):
        write_reports(url, SURVEY, [BATCH], format=format)
        assert tally_files(SURVEY, [url]) == TALLY
    assert os.listdir(tmp_path) == ["a b.reports"]
    assert memory.find("/") == ["/box/a.reports"]


def test_directories_and_patterns_anywhere(tmp_path: Path, memory: Any) -> None:
    for base in (str(tmp_path / "here"), "memory://there"):
        if base.startswith("/"):
            for folder in ("a", "b/c", "_temporary"):
                os.makedirs(f"{base}/{folder}")
        for name in ("a/1.parquet", "b/c/2.parquet", "b/c/3.csv", "_temporary/4.parquet", "b/.5.parquet"):
            write_reports(f"{base}/{name}", SURVEY, [BATCH])
        assert count_files(SURVEY, [base]).files == 3
        assert count_files(SURVEY, [f"{base}/b/c/*.parquet"]).files == 1
        assert count_files(SURVEY, [f"{base}/*/*.parquet", f"{base}/b/c"]).files == 3
        assert count_files(SURVEY, [f"{base}/**/*.parquet"]).files == 2
    with pytest.raises(MismatchError, match="counted twice"):
        expand([tmp_path / "here", tmp_path / "here" / "a"])


def test_a_write_that_fails_leaves_nothing_there(memory: Any) -> None:
    def batches() -> Any:
        yield BATCH
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_reports("memory://box/a.parquet", SURVEY, batches())
    assert memory.find("/") == []


def test_a_folder_fills_at_once_or_not_at_all(tmp_path: Path, memory: Any) -> None:
    for folder in (str(tmp_path / "new"), "memory://new"):

        def visible(folder: str = folder) -> int:
            return sum(isinstance(entry, Place) for entry in expand([folder]))

        def write(folder: str, names: list[str]) -> None:
            with new_files(folder) as (place, run, show):
                for name in names:
                    write_reports(f"{place}/{run}{name}", SURVEY, [BATCH])
                assert visible() == 0  # a run that is killed here leaves nothing that would be counted
                show([*names, "lost"] if "bad" in names else names)

        with pytest.raises((OSError, ReportError)):
            write(folder, ["good", "bad"])
        assert visible() == 0
        write(folder, ["part-0", "part-1"])
        assert visible() == 2
        assert tally_files(SURVEY, [folder]) == TALLY + TALLY
        with pytest.raises(ReportError, match=r"new.* is not empty"):
            write(folder, ["part-0"])
        assert visible() == 2
    assert len(os.listdir(tmp_path / "new")) == len(memory.find("/")) == 2


def test_what_is_nowhere_is_named(tmp_path: Path, memory: Any) -> None:
    (tmp_path / "hollow").mkdir()
    wanted = {
        str(tmp_path / "hollow"): "holds no files",
        str(tmp_path / "*.parquet"): "no file matches",
        str(tmp_path / "nowhere"): "No such file",
        "memory://nowhere": "No such file",
        "memory://nowhere/*.parquet": "no file matches",
        "quux://nowhere": "cannot be reached",
    }
    outcome = count_files(SURVEY, list(wanted))
    assert [refusal.name for refusal in outcome.refused] == list(wanted)
    for refusal, reason in zip(outcome.refused, wanted.values(), strict=True):
        assert reason in refusal.reason
    assert outcome.files == 0

"""From reports to tallies: the same integers from files, text, streams and memory, in any grouping and order."""

from __future__ import annotations

import io
import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from deniable.errors import DeniableError, LabelError, MismatchError, NumberError, ReportError, SpecError
from deniable.files import read_batches, reports as engine, tally_files, write_reports
from deniable.files.reports import Layout, letters_of, to_base64
from deniable.protocols import GRR, OUE, Reports, Tally
from deniable.randomness import Simulation
from deniable.surveys import Survey, SurveyTally
from tests.files.files import SURVEY, answers

ROWS = 400
BITS = Simulation(5)
REPORTS = {q.id: q.protocol.privatize(answers(ROWS)[q.id], BITS) for q in SURVEY}
IN_MEMORY = SurveyTally(
    SURVEY.fingerprint, {q.id: q.protocol.tally(REPORTS[q.id], SURVEY.source(q.id)) for q in SURVEY}
)


def part(start: int, stop: int) -> dict[str, Reports]:
    return {id: reports[start:stop] for id, reports in REPORTS.items()}


@pytest.fixture
def whole_file(tmp_path: Path) -> Path:
    path = tmp_path / "reports.parquet"
    assert write_reports(path, SURVEY, [part(0, ROWS)]) == ROWS
    return path


def parquet(path: Path, columns: dict[str, Any], metadata: dict[bytes, bytes] | None = None) -> Path:
    notes = Layout(SURVEY).metadata() if metadata is None else metadata
    pq.write_table(pa.table(columns).replace_schema_metadata(notes), path)
    return path


# -- the same integers ---------------------------------------------------------------------------------


def test_files_text_and_memory_agree(tmp_path: Path, whole_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tally_files(SURVEY, [whole_file]) == IN_MEMORY
    text = tmp_path / "reports.csv"
    write_reports(text, SURVEY, [part(0, 1), part(1, ROWS)], format="text")
    assert tally_files(SURVEY, [text]) == IN_MEMORY
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.read_bytes())))
    assert tally_files(SURVEY, ["-"]) == IN_MEMORY


@given(st.lists(st.integers(0, ROWS), max_size=4), st.randoms())
def test_any_grouping_and_order_gives_the_same_sum(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], random: Any
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    ends = [0, *sorted(cuts), ROWS]
    inputs: list[str | Path] = []
    for i, (start, stop) in enumerate(pairwise(ends)):
        path = folder / f"{i}"
        kind = random.choice(["parquet", "text", "tally", "single"])
        if kind == "tally":
            SurveyTally(
                SURVEY.fingerprint,
                {q.id: q.protocol.tally(REPORTS[q.id][start:stop], SURVEY.source(q.id)) for q in SURVEY},
            ).save(path)
        elif kind == "single":
            for q in SURVEY:
                q.protocol.tally(REPORTS[q.id][start:stop], SURVEY.source(q.id)).save(f"{path}-{q.id}")
                inputs.append(f"{path}-{q.id}")
            continue
        else:
            write_reports(path, SURVEY, [part(start, stop)], format="text" if kind == "text" else "parquet")
        inputs.append(path)
    random.shuffle(inputs)
    assert tally_files(SURVEY, inputs) == IN_MEMORY


def test_nothing_is_the_identity(tmp_path: Path, whole_file: Path) -> None:
    assert tally_files(SURVEY, []) == SurveyTally.empty(SURVEY)
    empty = tmp_path / "empty.parquet"
    assert write_reports(empty, SURVEY, []) == 0
    assert tally_files(SURVEY, [empty]) == SurveyTally.empty(SURVEY)
    assert tally_files(SURVEY, [empty, whole_file]) == IN_MEMORY
    write_reports(empty, SURVEY, [], format="text")
    assert tally_files(SURVEY, [empty]) == SurveyTally.empty(SURVEY)


def test_small_batches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(engine, "ROW_GROUP_BYTES", 500)
    monkeypatch.setattr(engine, "BATCH_BYTES", 100)
    monkeypatch.setattr(engine, "MOST_BATCH_BYTES", 100)
    path = tmp_path / "reports.parquet"
    write_reports(path, SURVEY, (part(i, i + 7) for i in range(0, ROWS, 7)))
    assert pq.ParquetFile(path).metadata.num_row_groups > 3
    seen: list[tuple[int, float | None]] = []
    assert tally_files(SURVEY, [path], progress=lambda *done: seen.append(done)) == IN_MEMORY
    assert len(seen) > 20
    assert seen[-1] == (ROWS, 1.0)


def test_some_questions_only(tmp_path: Path, whole_file: Path) -> None:
    path = tmp_path / "age.parquet"
    write_reports(path, SURVEY, [part(0, ROWS)], columns=["age"])
    tally = tally_files(SURVEY, [path])
    assert tally["age"] == IN_MEMORY["age"]
    assert tally["smoke"].n == 0
    assert [list(batch) for batch in read_batches(whole_file, SURVEY, ["kind", "smoke"])] == [["smoke", "kind"]]
    assert list(read_batches(path, SURVEY, ["smoke"])) == []
    with pytest.raises(LabelError, match="no question 'weight'"):
        list(read_batches(path, SURVEY, ["weight"]))


def test_a_single_protocol(tmp_path: Path) -> None:
    protocol = GRR(["a", "b"], 1)
    reports = protocol.privatize(["a"] * 100, Simulation(1))
    reports.save(tmp_path / "reports.parquet")
    write_reports(tmp_path / "reports.csv", Survey.of(protocol), [{"report": reports}], format="text")
    tally = protocol.tally(reports)
    tally.save(tmp_path / "tally.json")
    tally.save(tmp_path / "tally.parquet")
    inputs = [tmp_path / name for name in ("reports.parquet", "reports.csv", "tally.json", "tally.parquet")]
    assert tally_files(Survey.of(protocol), inputs)["report"] == tally + tally + tally + tally


def test_writing_checks_what_it_is_given(tmp_path: Path) -> None:
    path = tmp_path / "reports.parquet"
    with pytest.raises(ReportError, match="different lengths"):
        write_reports(path, SURVEY, [{**part(0, 5), "age": REPORTS["age"]}])
    with pytest.raises(MismatchError, match="cannot be used here"):
        write_reports(path, SURVEY, [{**part(0, 5), "smoke": GRR(3, 2).privatize([0])}])
    with pytest.raises(ReportError, match="has 3 bytes, not 2"):
        write_reports(path, SURVEY, [{**part(0, 5), "age": np.zeros((5, 2), dtype=np.uint8)}])
    assert os.listdir(tmp_path) == []


def test_metadata_tells_whose_reports_they_are(whole_file: Path) -> None:
    metadata = pq.read_schema(whole_file).metadata
    assert metadata[b"deniable.survey"].decode() == SURVEY.fingerprint
    assert Survey.from_spec(json.loads(metadata[b"deniable.survey.spec"])) == SURVEY
    assert [str(field.type) for field in pq.read_schema(whole_file)] == [
        f"fixed_size_binary[{q.protocol.report_bytes}]" for q in SURVEY
    ]


# -- what is refused -----------------------------------------------------------------------------------


def refused(inputs: list[str | Path], kind: type[DeniableError], target: Any = SURVEY) -> str:
    with pytest.raises(kind) as found:
        tally_files(target, inputs)
    return str(found.value)


def test_another_survey_is_refused_with_both_fingerprints(tmp_path: Path, whole_file: Path) -> None:
    other = Survey("other", SURVEY.questions)
    paths = [tmp_path / "other.parquet", tmp_path / "other.csv", tmp_path / "other.json", tmp_path / "single.json"]
    write_reports(paths[0], other, [part(0, 5)])
    write_reports(paths[1], other, [part(0, 5)], format="text")
    SurveyTally.empty(other).save(paths[2])
    SurveyTally.empty(other)["smoke"].save(paths[3])
    for path in paths:
        message = refused([whole_file, path], MismatchError)
        assert path.name in message
        assert SURVEY.fingerprint in message
        assert other.fingerprint in message


def test_reports_of_a_protocol_are_not_those_of_a_survey(tmp_path: Path, whole_file: Path) -> None:
    protocol = SURVEY["smoke"].protocol
    REPORTS["smoke"].save(tmp_path / "bare.parquet")
    message = refused([tmp_path / "bare.parquet"], MismatchError)
    assert f"belongs to protocol {protocol.fingerprint}, not to survey {SURVEY.fingerprint}" in message
    assert "not to protocol" in refused([whole_file], MismatchError, Survey.of(protocol))
    SurveyTally.empty(SURVEY).save(tmp_path / "tally.json")
    assert "not of protocol" in refused([tmp_path / "tally.json"], MismatchError, Survey.of(protocol))
    protocol.empty().save(tmp_path / "bare.json")
    assert "of no survey" in refused([tmp_path / "bare.json"], MismatchError)


def test_a_file_that_is_named_twice(tmp_path: Path, whole_file: Path) -> None:
    link = tmp_path / "link.parquet"
    link.symlink_to(whole_file)
    for again in (whole_file, f"{tmp_path}/./reports.parquet", link):
        assert "counted twice" in refused([whole_file, again], MismatchError)


def test_reports_of_the_wrong_width_or_kind(tmp_path: Path) -> None:
    path = tmp_path / "reports.parquet"
    wide = pa.array([b"12"], pa.binary(2))
    assert "holds reports of 2 bytes, not 1" in refused([parquet(path, {"smoke": wide})], ReportError)
    assert "holds binary, not reports of 1 bytes" in refused([parquet(path, {"smoke": [b"1"]})], ReportError)
    gaps = pa.array([b"\0", None], pa.binary(1))
    assert "row 2" in refused([parquet(path, {"smoke": gaps})], ReportError)
    good = pa.array([b"\0"], pa.binary(1))
    assert "the column 'smok'" in refused([parquet(path, {"smok": good})], ReportError)
    assert "no fingerprint" in refused([parquet(path, {"smoke": good}, {})], ReportError)


@pytest.mark.parametrize("text", [True, False])
def test_padding_that_is_not_zero_and_values_out_of_range(tmp_path: Path, text: bool) -> None:
    path = tmp_path / "reports"
    for id, bad in (("kind", 0b00100000), ("smoke", 3)):
        arrays = {name: np.array(reports) for name, reports in part(0, ROWS).items()}
        arrays[id][123, 0] = bad
        write_reports(path, SURVEY, [arrays], format="text" if text else "parquet")
        message = refused([path], ReportError)
        assert f"row 124 of '{path}', column '{id}'" in message
        assert "nothing was counted" in message
    arrays[id][123, 0] = 2
    write_reports(path, SURVEY, [arrays], format="text" if text else "parquet")
    assert tally_files(SURVEY, [path])["smoke"].n == ROWS


def test_every_truncation_and_damage_is_noticed(whole_file: Path) -> None:
    raw = whole_file.read_bytes()
    for length in range(0, len(raw), max(1, len(raw) // 60)):
        whole_file.write_bytes(raw[:length])
        assert refused([whole_file], ReportError)
    # A flipped bit in the data is caught by the pages' checksums; in the footer it may also be in an unused field.
    caught = 0
    for place in range(4, len(raw) - 8, max(1, len(raw) // 150)):
        damaged = bytearray(raw)
        damaged[place] ^= 0x10
        whole_file.write_bytes(damaged)
        try:
            assert tally_files(SURVEY, [whole_file]) == IN_MEMORY
        except DeniableError:
            caught += 1
    assert caught > 50


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["smoke", "AA"], "nor reports as text"),
        (
            ["# deniable reports, survey {}", "smoke", "AA", "AAA"],
            "row 2 of .*, column 'smoke': a report of 1 bytes has 2",
        ),
        (["# deniable reports, survey {}", "smoke", "AA", "A!"], "row 2 of .* not base64url"),
        (["# deniable reports, survey {}", "smoke", "AA", "A="], "row 2 of .* not base64url"),
        (["# deniable reports, survey {}", "smoke", "AA", "AB"], "row 2 of .* not base64url"),
        (["# deniable reports, survey {}", "smoke,age", "AA,AAAA", "AA"], "is damaged"),
        (["# deniable reports, survey {}", "weight", "AA"], "the column 'weight', which is not a question"),
        (["# deniable reports, survey {}", "smoke,smoke", "AA,AA"], "'smoke' twice"),
        (["# deniable reports, survey {}"], "is damaged"),
        (["# deniable reports, survey " + "0" * 64, "smoke", "AA"], "belongs to survey 0000"),
        (["# deniable reports, protocol {}", "smoke", "AA"], "belongs to protocol"),
    ],
)
def test_text_that_is_no_report(tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "reports.csv"
    path.write_text("\n".join(lines).format(SURVEY.fingerprint) + "\n", encoding="utf-8")
    with pytest.raises(DeniableError, match=message):
        tally_files(SURVEY, [path])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"{", "not JSON"),
        (b"[]", "this is no tally"),
        (b"{}", "this is no tally"),
        (b'{"kind": "survey"}', "this is a survey, not reports or a tally"),
        (b'{"kind": "tally", "version": 3}', "version 3"),
        (b'{"kind": "survey-tally", "version": 3}', "version 3"),
        (b'{"kind": "tally", "kind": "tally"}', "twice"),
        (b"PAR1", "truncated or damaged"),
        (b"\x00\x01\x02", "nor reports"),
    ],
)
def test_inputs_that_are_nothing(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "input"
    path.write_bytes(content)
    assert message in refused([path], DeniableError)
    assert "input" in refused([path], DeniableError)


def test_sums_beyond_64_bits(tmp_path: Path) -> None:
    smoke = IN_MEMORY["smoke"]
    for name in "ab":
        Tally(smoke.fingerprint, 1, [2**62, 0, 0], smoke.source).save(tmp_path / name)
    assert "no longer fits in 64 bits" in refused([tmp_path / "a", tmp_path / "b"], NumberError)
    content = smoke.spec() | {"counts": [2**64, 0, 0]}
    (tmp_path / "a").write_text(json.dumps(content), encoding="utf-8")
    assert "64 bits" in refused([tmp_path / "a"], SpecError)
    Tally(smoke.fingerprint, 1, [1, 0], smoke.source).save(tmp_path / "a")
    assert "has 2 counters, not 3" in refused([tmp_path / "a"], MismatchError)


def test_standard_input_cannot_be_parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"PAR1....PAR1")))
    assert "standard input" in refused(["-"], ReportError)


# -- text ----------------------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(0, 20), st.integers(0, 2**32))
def test_text_is_the_base64_of_each_report(width: int, n: int, seed: int) -> None:
    array = np.random.default_rng(seed).integers(0, 256, (n, width), dtype=np.uint8)
    rows = [row.tobytes().decode() for row in to_base64(array)]
    assert rows == Reports("f", array).to_text()
    assert all(len(row) == letters_of(width) for row in rows)


@pytest.mark.parametrize("size", range(9, 80, 8))
def test_text_of_every_width_is_read_back(tmp_path: Path, size: int) -> None:
    protocol = OUE(size, 1)
    reports = protocol.privatize(np.arange(300) % size, Simulation(size))
    path = tmp_path / "reports.csv"
    write_reports(path, Survey.of(protocol), [{"report": reports}], format="text")
    (batch,) = read_batches(path, Survey.of(protocol))
    assert np.array_equal(batch["report"], reports.array)

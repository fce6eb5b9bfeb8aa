"""From answers to reports: every way to write an answer down, errors without the answer, and no half-written file."""

from __future__ import annotations

import gc
import gzip
import io
import os
import sys
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.domains import Categories, Integers, Sets
from deniable.errors import DeniableError, DomainError, LabelError, ReportError
from deniable.files import answers as reading, privatize_file, read_batches, tally_files
from deniable.files.spark import check_names, privatize_frame, tally_frame, write_frame
from deniable.protocols import GRR, OUE, ItemSets, Reports
from deniable.randomness import Simulation
from deniable.surveys import Question, Survey
from tests.files.files import COLUMNS, SURVEY, answers, write_csv, write_parquet

ROWS = 700


def collected(path: Path, target: Any = SURVEY) -> dict[str, bytes]:
    """All reports of a file, by column."""
    found: dict[str, bytes] = {}
    for batch in read_batches(path, target):
        for name, reports in batch.items():
            found[name] = found.get(name, b"") + reports.tobytes()
    return found


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "reports.parquet"


def nothing_left(out: Path) -> bool:
    return os.listdir(out.parent) == []


def test_answers_in_a_file_give_the_reports_of_answers_in_memory(tmp_path: Path, out: Path) -> None:
    """The same bits, drawn in the same order, so the bytes are the same."""
    given = answers(ROWS)
    source = write_csv(tmp_path / "answers.csv", given)
    assert privatize_file(SURVEY, source, out, bits=Simulation(1)) == ROWS
    bits = Simulation(1)
    expected = {q.id: q.protocol.privatize(given[q.id], bits).to_bytes() for q in SURVEY}
    assert collected(out) == expected
    privatize_file(SURVEY, source, out, bits=Simulation(2))
    assert collected(out) != expected


def test_bits_are_secure_unless_told_otherwise(tmp_path: Path, out: Path) -> None:
    source = write_csv(tmp_path / "answers.csv", answers(ROWS))
    runs = set()
    for _ in range(3):
        privatize_file(SURVEY, source, out)
        runs.add(collected(out)["age"])
    assert len(runs) == 3


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_kinds_of_csv(tmp_path: Path, out: Path, delimiter: str, ending: str) -> None:
    given = answers(ROWS)
    source = write_csv(tmp_path / "answers.csv", {"id": list(range(ROWS)), **given}, delimiter)
    raw = source.read_bytes().replace(b"\r\n", ending.encode())
    source.write_bytes(b"\xef\xbb\xbf" + raw + ending.encode() * 2)
    privatize_file(SURVEY, source, out, bits=Simulation(1))
    plain = write_csv(tmp_path / "plain.csv", given)
    privatize_file(SURVEY, plain, out.with_name("plain.parquet"), bits=Simulation(1))
    assert collected(out) == collected(out.with_name("plain.parquet"))


def test_whole_numbers_of_a_column_of_floats(tmp_path: Path, out: Path) -> None:
    """Spreadsheets and data frames write 18.0 where a column once had a gap."""
    given = answers(ROWS)
    floats = write_csv(tmp_path / "floats.csv", given | {"age": [f"{age}.0" for age in given["age"]]})
    plain = write_csv(tmp_path / "plain.csv", given)
    for source in (floats, plain):
        privatize_file(SURVEY, source, out.with_name(source.name), bits=Simulation(1))
    assert collected(out.with_name("floats.csv")) == collected(out.with_name("plain.csv"))
    halves = write_csv(tmp_path / "halves.csv", given | {"age": [f"{age}.5" for age in given["age"]]})
    with pytest.raises(DeniableError, match="whole numbers from 18 to 99"):
        privatize_file(SURVEY, halves, out)


def test_standard_input(tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_csv(tmp_path / "answers.csv", answers(ROWS))
    privatize_file(SURVEY, source, out, bits=Simulation(1))
    expected = collected(out)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n\n" + source.read_bytes())))
    assert privatize_file(SURVEY, "-", out, bits=Simulation(1)) == ROWS
    assert collected(out) == expected


@pytest.mark.parametrize("dictionary", [True, False])
def test_parquet_is_typed(tmp_path: Path, out: Path, dictionary: bool) -> None:
    survey = Survey("typed", SURVEY.questions[:2])
    given = {"smoke": answers(ROWS)["smoke"], "age": answers(ROWS)["age"]}
    source = tmp_path / "answers.parquet"
    pq.write_table(pa.table(given), source, use_dictionary=dictionary)
    assert privatize_file(survey, source, out, bits=Simulation(1)) == ROWS
    bits = Simulation(1)
    assert collected(out, survey) == {q.id: q.protocol.privatize(given[q.id], bits).to_bytes() for q in survey}
    write_parquet(source, {**given, "age": ["eighteen"] * ROWS})
    with pytest.raises(DomainError, match=r"row 1 of .*, column 'age', a str, is not one of the whole numbers"):
        privatize_file(survey, source, out)


def test_csv_and_parquet_take_the_same_answers(tmp_path: Path, out: Path) -> None:
    """Whole numbers as text and as decimals, truth values as text; at this epsilon reports are the answers."""
    whole, mixed = GRR(Integers(1, 3), 40), GRR(Categories([1, True, "x"]), 40)

    def counts(protocol: Any, column: Any) -> list[int]:
        pq.write_table(pa.table({"a": column}), tmp_path / "a.parquet")
        privatize_file(Survey.of(protocol), tmp_path / "a.parquet", out, {"report": "a"})
        return tally_files(Survey.of(protocol), [out])["report"].counts.tolist()

    for column in (
        ["1", "3.0", " 3"],
        pa.array(["1", "3", "3"], pa.large_string()),
        [Decimal(1), Decimal(3), Decimal(3)],
        pa.array([Decimal("1.00"), Decimal(3), Decimal(3)], pa.decimal128(5, 2)),
    ):
        assert counts(whole, column) == [1, 0, 2]
    assert counts(mixed, ["1", "true", "x", "TRUE"]) == [1, 2, 1]
    assert counts(mixed, [Decimal(1)]) == [1, 0, 0]
    assert counts(GRR(Categories([1, "1"]), 40), ["1", "1"]) == [0, 2]
    for column in ([Decimal("1.5")], ["1.5"], [True], [Decimal(4)]):
        with pytest.raises(DomainError):
            counts(whole, column)
    source = write_csv(tmp_path / "a.csv", {"a": ["1", "3.0", " 3"]})
    privatize_file(Survey.of(whole), source, out, {"report": "a"})
    assert tally_files(Survey.of(whole), [out])["report"].counts.tolist() == [1, 0, 2]


def test_empty_text_is_missing_where_any_text_may_be_an_answer(tmp_path: Path, out: Path) -> None:
    given = {"word": ["rye", "", "rye"]}
    for source in (write_csv(tmp_path / "a.csv", given), write_parquet(tmp_path / "a.parquet", given)):
        with pytest.raises(DomainError, match=r"row 2 of .*, column 'word' is missing"):
            privatize_file(SURVEY, source, out, {"word": "word"})


def test_lists_are_no_answers(tmp_path: Path, out: Path) -> None:
    for id in ("word", "age", "smoke"):
        source = write_parquet(tmp_path / "a.parquet", {id: [["a"], ["b"]]})
        with pytest.raises(ReportError, match=f"column '{id}' of .* holds lists, not text or numbers"):
            privatize_file(SURVEY, source, out, {id: id})
    source = write_parquet(tmp_path / "a.parquet", {"word": [{"a": 1}]})
    with pytest.raises(ReportError, match="holds structures"):
        privatize_file(SURVEY, source, out, {"word": "word"})


def test_columns_may_have_other_names_and_some_questions_may_be_left_out(tmp_path: Path, out: Path) -> None:
    source = write_csv(tmp_path / "answers.csv", {"Do you smoke?": COLUMNS["smoke"], "x": [1, 2, 3, 4]})
    privatize_file(SURVEY, source, out, {"smoke": "Do you smoke?"})
    assert list(collected(out)) == ["smoke"]
    with pytest.raises(LabelError, match="there is no question 'weight'"):
        privatize_file(SURVEY, source, out, {"weight": "x"})


def test_a_single_protocol_writes_what_reports_load(tmp_path: Path, out: Path) -> None:
    protocol = OUE(["a", "b"], 1)
    source = write_csv(tmp_path / "answers.csv", {"answer": ["a", "b", "b"]})
    privatize_file(Survey.of(protocol), source, out, {"report": "answer"}, bits=Simulation(3))
    loaded = Reports.load(out)
    assert loaded.spec == protocol.spec()
    assert loaded == protocol.privatize(["a", "b", "b"], Simulation(3))
    loaded.save(out)
    assert tally_files(Survey.of(protocol), [out])["report"] == protocol.tally(loaded)


def test_small_batches_change_nothing_but_the_order_of_bits(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BLOCK_BYTES", 512)
    monkeypatch.setattr(reading, "WORKING_BYTES", 64)
    seen: list[tuple[int, float | None]] = []
    source = write_csv(tmp_path / "answers.csv", answers(ROWS))
    rows = privatize_file(SURVEY, source, out, progress=lambda *done: seen.append(done))
    assert rows == ROWS
    assert len(seen) > 20
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (ROWS, 1.0)
    tally = tally_files(SURVEY, [out])
    assert all(tally[question.id].n == ROWS for question in SURVEY)


@pytest.mark.parametrize("row", [1, 2, 350, 699, 700])
@pytest.mark.parametrize("block", [256, 1 << 20])
@pytest.mark.parametrize(("column", "kind"), [("smoke", "3 categories"), ("age", "whole numbers"), ("kind", "5 categ")])
def test_a_bad_answer_is_located_and_not_told(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch, row: int, block: int, column: str, kind: str
) -> None:
    monkeypatch.setattr(reading, "BLOCK_BYTES", block)
    given = answers(ROWS)
    given[column][row - 1] = "SECRET"
    given[column][ROWS - 1] = "SECRET"
    source = write_csv(tmp_path / "answers.csv", given)
    with pytest.raises(DomainError) as refused:
        privatize_file(SURVEY, source, out)
    message = str(refused.value)
    assert message.startswith(f"row {row} of '{source}', column '{column}', a str, is not one of")
    assert kind in message
    assert "SECRET" not in message
    assert nothing_left(out)


def test_a_number_out_of_range_and_a_missing_answer(tmp_path: Path, out: Path) -> None:
    given = answers(10)
    given["age"][6] = 17
    with pytest.raises(DomainError, match=r"row 7 of .*, column 'age' is not one of the whole numbers from 18 to 99"):
        privatize_file(SURVEY, write_csv(tmp_path / "a.csv", given), out)
    given = answers(10)
    given["smoke"][3] = ""
    with pytest.raises(
        DomainError, match=r"row 4 of .*, column 'smoke' is missing, and nothing stands for missing answers"
    ):
        privatize_file(SURVEY, write_csv(tmp_path / "a.csv", given), out)
    pq.write_table(pa.table({"age": [18, None]}), tmp_path / "a.parquet")
    with pytest.raises(DomainError, match=r"row 2 of .*, column 'age' is missing"):
        privatize_file(SURVEY, tmp_path / "a.parquet", out, {"age": "age"})
    assert nothing_left(out)


def test_an_empty_cell_may_be_an_answer(tmp_path: Path, out: Path) -> None:
    protocol = GRR(["", "a"], 1)
    source = write_csv(tmp_path / "a.csv", {"id": [1, 2], "answer": ["", "a"]})
    assert privatize_file(Survey.of(protocol), source, out, {"report": "answer"}) == 2


def test_truth_values_and_numbers_as_text(tmp_path: Path, out: Path) -> None:
    protocol = GRR(Categories([True, False, 7]), 20)
    source = write_csv(tmp_path / "a.csv", {"answer": ["True", "true", "TRUE", "False", "false", "7"]})
    privatize_file(Survey.of(protocol), source, out, {"report": "answer"})
    assert tally_files(Survey.of(protocol), [out])["report"].counts.tolist() == [3, 2, 1]
    both = write_csv(tmp_path / "both.csv", {"answer": ["1"]})
    with pytest.raises(DomainError, match="two answers of this question are written alike"):
        privatize_file(Survey.of(GRR(Categories([1, "1"]), 1)), both, out, {"report": "answer"})
    protocol = GRR(Integers(-3, 9), 30)
    source.write_text("answer\n -3\n+9\n007\n")
    privatize_file(Survey.of(protocol), source, out, {"report": "answer"})
    assert np.flatnonzero(tally_files(Survey.of(protocol), [out])["report"].counts).tolist() == [0, 10, 12]


def test_an_answer_that_is_not_listed_counts_as_other(tmp_path: Path, out: Path) -> None:
    protocol = GRR(Categories(["a", "b"], other="else"), 30)
    source = write_csv(tmp_path / "a.csv", {"answer": ["a", "z", "q", "b"]})
    privatize_file(Survey.of(protocol), source, out, {"report": "answer"})
    assert tally_files(Survey.of(protocol), [out])["report"].counts.tolist() == [1, 1, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"smoke\n", "there is no row below the header"),
        (b"smoke,x\nyes\n", "row 1 of .* has 1 cells, the header has 2"),
        (b"smoke,x\nyes,1\nSECRET,2,3\n", "row 2 of .* has 3 cells, the header has 2"),
        (b"Smoke\nyes\n", r"has no column 'smoke' \(did you mean 'Smoke'\?"),
        (b"SECRET,1\nyes,2\n", r"has no column 'smoke': in its first line.*2 other names, separated by commas"),
        (b"smoke,smoke\nyes,yes\n", "has the column 'smoke' twice"),
        (b"smoke\nyes\nf\xfcnf\n", r"is not in UTF-8 but perhaps in Latin-1.*iconv -f WINDOWS-1252 -t UTF-8"),
        ("smoke;größe\nyes;1\n".encode("latin-1"), r"is not in UTF-8 but perhaps in Latin-1.*iconv"),
        (b"\xff\xfes\x00m\x00", r"in UTF-16: .*iconv -f UTF-16 -t UTF-8"),
        (gzip.compress(b"smoke\nSECRET\n", mtime=0), r"compressed with gzip: .*gunzip -c FILE \| deniable privatize"),
        (b"PK\x03\x04 SECRET", r"an Excel workbook.*save the sheet as CSV"),
        (b"\xd0\xcf\x11\xe0 SECRET", r"an Excel workbook.*save the sheet as CSV"),
        (b"ARROW1\0\0 SECRET", r"an Arrow file: .*survey.privatize\(table\)"),
        (b'[{"smoke": "SECRET"}]', r"is JSON in one piece: write one object per line"),
        (b"\x7fELF\0 SECRET", "neither Parquet nor text"),
        (
            b"Smoker,age\nSECRET,1\n",
            r"did you mean 'Smoker'\? .*columns=\{'smoke': 'Smoker'\}, or --column smoke=Smoker",
        ),
        (b"smoke,x\nSECRET, y\n", r"row 1 of .*column 'smoke', a str, is not one of"),
        (b"x,smoke\n1, yes\n", r"row 1 of .*column 'smoke'.*without the blanks around it, it would be one"),
        (b'smoke,x\n"SECRET,1\nno,2\n', "is not a CSV|has 1 cells"),
        (b"PAR1 SECRET", "truncated or damaged"),
    ],
)
def test_files_that_hold_no_answers(tmp_path: Path, out: Path, content: bytes, message: str) -> None:
    source = tmp_path / "answers.csv"
    source.write_bytes(content)
    with pytest.raises((ReportError, DomainError), match=message) as refused:
        privatize_file(SURVEY, source, out, {"smoke": "smoke"})
    assert "SECRET" not in str(refused.value)
    assert nothing_left(out)


def test_parquet_needs_a_file(monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"PAR1....")))
    with pytest.raises(ReportError, match="give the file's name"):
        privatize_file(SURVEY, "-", out)


def test_a_failure_keeps_the_old_reports(tmp_path: Path, out: Path) -> None:
    good = write_csv(tmp_path / "good.csv", answers(10))
    privatize_file(SURVEY, good, out)
    before = out.read_bytes()
    bad = answers(10)
    bad["smoke"][9] = "perhaps"
    with pytest.raises(DomainError):
        privatize_file(SURVEY, write_csv(tmp_path / "bad.csv", bad), out)
    assert out.read_bytes() == before
    assert os.listdir(out.parent) == [out.name]


def test_reports_do_not_replace_their_answers(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "answers.csv", answers(10))
    before = source.read_bytes()
    (tmp_path / "link").symlink_to(source)
    for output in (source, tmp_path / "link", f"{tmp_path}/./answers.csv"):
        with pytest.raises(ReportError, match="name another file"):
            privatize_file(SURVEY, source, output)
    assert source.read_bytes() == before


def test_errors_of_the_system_pass(tmp_path: Path, out: Path) -> None:
    with pytest.raises(FileNotFoundError):
        privatize_file(SURVEY, tmp_path / "nowhere.csv", out)
    good = write_csv(tmp_path / "good.csv", answers(10))
    with pytest.raises(FileNotFoundError):
        privatize_file(SURVEY, good, tmp_path / "nowhere" / "reports.parquet")
    with pytest.raises(IsADirectoryError):
        privatize_file(SURVEY, tmp_path, out)
    assert nothing_left(out)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("text", [True, False])
def test_a_full_disk(tmp_path: Path, text: bool) -> None:
    good = write_csv(tmp_path / "good.csv", answers(5000))
    with pytest.raises(OSError, match="No space left"):
        privatize_file(SURVEY, good, "/dev/full", format="text" if text else "parquet")
    gc.collect()


def test_every_refusal_is_ours(tmp_path: Path, out: Path) -> None:
    """Whatever single byte of a small file is damaged, it is read or refused, never anything else."""
    source = write_csv(tmp_path / "a.csv", {"smoke": ["yes", "no"], "x": ['q"', "b"]})
    raw = source.read_bytes()
    for place in range(len(raw)):
        for byte in b'\x00",\n\xff':
            source.write_bytes(raw[:place] + bytes([byte]) + raw[place + 1 :])
            with suppress(DeniableError):
                privatize_file(SURVEY, source, out, {"smoke": "smoke"})
    gc.collect()
    assert set(os.listdir(out.parent)) <= {out.name}


def test_questions_of_a_survey_of_one(tmp_path: Path, out: Path) -> None:
    survey = Survey("one", [Question("q", "?", GRR(2, 1))])
    privatize_file(survey, write_csv(tmp_path / "a.csv", {"q": [0, 1]}), out)
    assert tally_files(survey, [out])["q"].n == 2


def test_a_frame_without_a_column_is_refused_in_a_sentence() -> None:
    check_names(["Smoke", "age"], ["smoke", "age"])
    part, frame = Survey("part", SURVEY.questions[:2]), SimpleNamespace(columns=["smoke", "trip"])
    for work in (privatize_frame, tally_frame, lambda frame, part: write_frame(frame, part, "nowhere")):
        with pytest.raises(LabelError, match=r"^the frame has no column 'age'; it has 'smoke', 'trip'$"):
            work(frame, part)
    with pytest.raises(LabelError, match="no column 'name'; it has 'smoke', 'age'"):
        privatize_frame(SimpleNamespace(columns=["smoke", "age"]), part, keep=["name"])


def test_a_column_of_sets_keeps_its_empty_rows(tmp_path: Path, out: Path) -> None:
    """In a file of one column a blank line is a set without items; with two columns it is no row."""
    sets = Survey.of(ItemSets(Sets(["mail", "maps"], at_most=2), 4))
    source = tmp_path / "apps.csv"
    source.write_text("apps\nmail\n\nmail; maps\n\n\nmaps\n", encoding="utf-8")
    assert privatize_file(sets, source, out, {"report": "apps"}) == 6
    assert tally_files(sets, [out])["report"].n == 6
    source.write_text("apps,more\nmail,1\n\nmaps,2\n", encoding="utf-8")
    assert privatize_file(sets, source, out, {"report": "apps"}) == 2
    source.write_text("answer\nyes\n\nno\n", encoding="utf-8")
    assert privatize_file(Survey.of(GRR(["yes", "no"], 1)), source, out, {"report": "answer"}) == 2

"""Files at the bottom: written whole or not at all, JSON and CSV read strictly."""

from __future__ import annotations

import os
import stat
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from deniable._files import atomic_path, atomic_write, load_json, parse_csv, parse_json
from deniable.errors import SpecError
from deniable.protocols import GRR, Reports, Tally

TALLY = Tally("f", 2, [1, 1])

# -- writing -------------------------------------------------------------------------------------------


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with atomic_write(target) as file:
        file.write(b"new")
        assert not target.exists()
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")

    def fail() -> None:
        with atomic_write(target) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        fail()
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_mode_and_links_stay(tmp_path: Path) -> None:
    target, link = tmp_path / "file", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_errors_name_the_file_that_was_asked_for(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere" / "tally.json"
    with pytest.raises(FileNotFoundError) as refused:
        TALLY.save(missing)
    assert refused.value.filename == str(missing)
    with pytest.raises(IsADirectoryError):
        TALLY.save(tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_device_is_written_and_not_replaced() -> None:
    with pytest.raises(OSError, match="No space left"):
        TALLY.save("/dev/full")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_a_private_file_stays_private(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    target.chmod(0o644)
    with atomic_path(target, private=True) as partial:
        assert stat.S_IMODE(partial.stat().st_mode) == 0o600
        partial.write_bytes(b"new")
    assert (target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (b"new", 0o600)


class Broken(Exception):
    pass


def broken(tally: Tally) -> Any:
    raise Broken


@pytest.mark.parametrize("name", ["tally.json", "tally.parquet"])
def test_a_tally_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / name
    TALLY.save(target)
    before = target.read_bytes()
    monkeypatch.setattr(Tally, "spec", broken)
    with pytest.raises(Broken):
        TALLY.save(target)
    assert target.read_bytes() == before
    assert os.listdir(tmp_path) == [name]


def test_reports_and_tallies_keep_a_link_and_its_mode(tmp_path: Path) -> None:
    target, link = tmp_path / "file.parquet", tmp_path / "link.parquet"
    protocol = GRR(2, 1)
    reports = protocol.privatize([0, 1, 1])
    for made in (reports, protocol.tally(reports)):
        target.write_bytes(b"old")
        target.chmod(0o640)
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        made.save(link)
        assert link.is_symlink()
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert Tally.load(link) == protocol.tally(reports)
    reports.save(link)
    assert Reports.load(target) == reports


# -- reading -------------------------------------------------------------------------------------------


def test_json_is_read_as_it_is_written() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": [1, 0.10, "x", true, null]}', "it") == {
        "a": [1, Decimal("0.10"), "x", True, None]
    }
    assert isinstance(parse_json("[1e0]", "it")[0], Decimal)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "it has the key 'c' twice"),
        ("[NaN]", "it holds NaN, which is not a number"),
        ("[-Infinity]", "it holds -Infinity, which is not a number"),
        ("[1e999999999]", "it holds a number that is out of any sensible range"),
        ('{"a": 1,\n }', "it is not JSON: "),
        ("[" * 100_000, "it is not usable JSON: its numbers are too long or its lists too deep"),
        ("1" * 5000, "it is not usable JSON: its numbers are too long or its lists too deep"),
        (" \n", "it is empty"),
        (b"\xff", "it is not UTF-8 text"),
    ],
    ids=["repeated", "nan", "infinity", "exponent", "broken", "deep", "long", "empty", "bytes"],
)
def test_what_is_no_strict_json_is_refused(content: str | bytes, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_json(content, "it")
    assert str(refused.value).startswith(message)


def test_a_refusal_of_what_a_file_holds_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "tally.json").write_text("{}")
    with pytest.raises(SpecError, match=r"tally.json': this is not a tally"):
        load_json(tmp_path / "tally.json", Tally.from_spec)


def test_rows_of_csv_have_their_line_numbers() -> None:
    assert parse_csv('\n a; "b\nc"\n\n;;\nd;e\n', "it") == [(3, ["a", "b\nc"]), (6, ["d", "e"])]
    assert parse_csv("a\tb,c\t\n", "it") == [(1, ["a", "b,c", ""])]


@pytest.mark.parametrize(
    ("content", "message"),
    [('a,b\n"c,d\n', "it is not CSV: "), (",\n", "it is empty"), ("", "it is empty"), (b"\xff", "it is not UTF-8")],
)
def test_what_is_no_csv_is_refused(content: str | bytes, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_csv(content, "it")
    assert str(refused.value).startswith(message)

"""Tallies: saved, loaded, and refused when they are not what they seem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable.errors import MismatchError, SpecError
from deniable.protocols import GRR, Tally
from deniable.randomness import Simulation

PROTOCOL = GRR(["yes", "no"], 1)
TALLY = PROTOCOL.tally(PROTOCOL.privatize(["yes"] * 100, Simulation(1)), source="survey/cheating")


@pytest.mark.parametrize("name", ["tally.json", "tally.parquet"])
def test_save_and_load(tmp_path: Path, name: str) -> None:
    TALLY.save(tmp_path / name)
    assert Tally.load(tmp_path / name) == TALLY
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_spec_and_arrow() -> None:
    assert Tally.from_spec(TALLY.spec()) == TALLY
    assert Tally.from_arrow(TALLY.to_arrow()) == TALLY
    assert TALLY.source == "survey/cheating"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "x"},
        {"version": 2},
        {"n": "3"},
        {"n": -1},
        {"counts": [1.5, 2]},
        {"counts": "x"},
        {"counts": [True, 1]},
    ],
)
def test_what_is_not_a_tally(change: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        Tally.from_spec(TALLY.spec() | change)


def test_unreadable_files(tmp_path: Path) -> None:
    broken = tmp_path / "tally.json"
    for content in ("", "{", "[]", "null"):
        broken.write_text(content)
        with pytest.raises(SpecError):
            Tally.load(broken)
    binary = tmp_path / "tally.parquet"
    binary.write_bytes(b"not parquet")
    with pytest.raises(SpecError, match="not a readable Parquet"):
        Tally.load(binary)


@pytest.mark.parametrize("note", [b"{", b"[]", b'{"n": 1, "n": 2}', None], ids=["broken", "list", "repeated", "none"])
def test_tables_with_damaged_metadata_are_refused(tmp_path: Path, note: bytes | None) -> None:
    from pyarrow import parquet

    notes = {} if note is None else {b"deniable.tally": note}
    parquet.write_table(TALLY.to_arrow().replace_schema_metadata(notes), tmp_path / "tally.parquet")
    with pytest.raises(SpecError, match="metadata"):
        Tally.load(tmp_path / "tally.parquet")
    with pytest.raises(SpecError, match="metadata"):
        Tally.from_arrow(TALLY.to_arrow().rename_columns(["other"]))


def test_different_things_do_not_add() -> None:
    other = GRR(["yes", "no"], 2).empty("survey/cheating")
    with pytest.raises(MismatchError, match="different protocols") as refused:
        TALLY + other
    assert TALLY.fingerprint[:16] in str(refused.value)
    assert other.fingerprint[:16] in str(refused.value)
    with pytest.raises(MismatchError, match="sources"):
        TALLY + PROTOCOL.empty()
    with pytest.raises(MismatchError, match="counters"):
        TALLY + Tally(TALLY.fingerprint, 1, [1, 2, 3], TALLY.source)
    with pytest.raises(MismatchError, match="no tally"):
        Tally.sum([])
    with pytest.raises(TypeError):
        TALLY + 5


def test_overflow_is_refused_in_both_directions() -> None:
    large = np.array([1 << 62, -(1 << 62)])
    first = Tally("f", 1, large)
    assert (first + Tally("f", 1, -large)).counts.tolist() == [0, 0]
    with pytest.raises(OverflowError):
        first + Tally("f", 1, [1 << 62, 0])
    with pytest.raises(OverflowError):
        first + Tally("f", 1, [0, -(1 << 62) - 1])


def test_counts_are_copied_and_frozen() -> None:
    source = np.array([1, 2])
    tally = Tally("f", 3, source)
    source[0] = 9
    assert tally.counts.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        tally.counts[0] = 5

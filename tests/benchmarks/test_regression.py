"""The regression check names what got slower, in the right direction, and nothing else."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.regression import slower, stored_runs
from benchmarks.report import Run, document
from benchmarks.timing import Figure, Result


def a_run(speedup: float, cost: float, seconds: float = 1.0, quick: bool = False) -> Run:
    figures = (
        Figure("ours: times faster than theirs", speedup, None, None, True),
        Figure("ours: times the time of a copy", cost, None, None, False),
        Figure("ours: seconds", seconds, None, None, False),
    )
    return Run("2020-02-02", quick, {"cpu": "abacus"}, {}, [Result("name", "title", (), figures)])


def test_only_what_is_worse_is_named() -> None:
    before = [asdict(a_run(10.0, 2.0))]
    assert slower(a_run(10.0, 2.0), before) == []
    assert slower(a_run(100.0, 0.1), before) == []
    assert slower(a_run(6.0, 3.5, seconds=50.0), before) == []
    (line,) = slower(a_run(4.0, 2.0), before)
    assert line == "name: ours: times faster than theirs: 4, was 10 (2.5 times worse)"
    (line,) = slower(a_run(10.0, 5.0), before)
    assert "ours: times the time of a copy: 5, was 2" in line
    assert len(slower(a_run(float("nan"), 2.0), before)) == 1


def test_runs_of_another_size_or_unknown_figures_are_not_compared() -> None:
    assert slower(a_run(1.0, 99.0, quick=True), [asdict(a_run(10.0, 2.0))]) == []
    assert slower(a_run(1.0, 99.0), []) == []


def test_stored_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "files.json").write_text(json.dumps(document(a_run(10.0, 2.0))), encoding="utf-8")
    assert len(slower(a_run(1.0, 9.0), stored_runs(tmp_path))) == 2

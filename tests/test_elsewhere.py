"""The tests themselves: what `make test` leaves out, and how `make test-elsewhere` changes the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FIRST, SERVED
from tools import elsewhere

ROOT = Path(__file__).parents[1]


def test_what_is_left_out_of_make_test_exists() -> None:
    assert [place for place in SERVED if not (ROOT / place).exists()] == []
    for test in FIRST:
        file, name = test.split("::")
        assert file.startswith(SERVED)
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


def collected(folder: Path, **variables: str) -> list[str]:
    """The order in which pytest would run two files beside the conftest of these tests."""
    for name in ("a", "b", "c", "d", "e"):
        (folder / f"test_{name}.py").write_text("def test_it(): pass")
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables}, cwd=folder)
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_a_seed_changes_the_order_of_files(tmp_path: Path) -> None:
    plain, drawn = collected(tmp_path, ORDER=""), collected(tmp_path, ORDER="3")
    assert len(plain) == 5
    assert sorted(drawn) == plain != drawn


def test_numpy_without_avx512_is_another_one() -> None:
    variables = elsewhere.other_processor()
    assert variables["OPENBLAS_CORETYPE"] == "Haswell"
    assert elsewhere.printed(elsewhere.WITH_AVX512, **variables) == ""
    exact = "import numpy as np; print(np.exp(np.linspace(-20, 20, 10_001)).tobytes().hex())"
    if "NPY_DISABLE_CPU_FEATURES" in variables:
        assert elsewhere.printed(exact) != elsewhere.printed(exact, **variables)


def test_the_calendar_is_moved_and_time_runs_as_ever(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    variables = elsewhere.other_date(str(tmp_path))
    if not variables:
        pytest.skip("there is no C compiler")
    code = "import time, datetime; print(time.time(), datetime.datetime.now().timestamp(), time.monotonic())"
    clocks = [elsewhere.printed(code, **given).split() for given in (elsewhere.HERE, variables)]
    days = [(float(there) - float(here)) / 86_400 for here, there in zip(*clocks, strict=True)]
    assert days == pytest.approx([elsewhere.AHEAD_DAYS, elsewhere.AHEAD_DAYS, 0], abs=0.01)


def test_a_tool_that_is_missing_fails_where_a_change_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "")
    elsewhere.missing("a locale")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(SystemExit, match="a locale is missing"):
        elsewhere.missing("a locale")

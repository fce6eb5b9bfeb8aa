"""The runner of `make test-floats`: kernels that differ, the oldest versions, and no green without a test."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from tools import float_kernels
from tools.float_kernels import Run, oldest, outcome, probe

ROOT = Path(__file__).parents[1]
HERE = Path(sys.executable)


def test_the_oldest_versions_are_those_of_the_project_file() -> None:
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    pins = dict(pin.removesuffix(".*").split("==") for pin in oldest() if "==" in pin)
    assert set(pins) == {text.split(">=")[0] for text in asked}
    assert all(f"{name}>={version}" in {text.split(";")[0] for text in asked} for name, version in pins.items())


def test_a_kernel_that_does_not_exist_is_not_used() -> None:
    assert probe(HERE, "Abacus") is None


@pytest.mark.parametrize(
    ("content", "passed"),
    [
        ("import pytest\n@pytest.mark.floats\ndef test_it(): assert {} == {}\n", True),
        ("import pytest\n@pytest.mark.floats\ndef test_it(): assert 0.1 + 0.2 == 0.3\n", False),
        ("def test_without_the_mark(): pass\n", False),
        ("import pytest\n@pytest.mark.floats\ndef test_it(): pytest.skip('not here')\n", False),
    ],
    ids=["passes", "fails", "no test", "skipped"],
)
def test_only_tests_that_ran_and_passed_are_green(
    content: str, passed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "test_one.py"
    file.write_text(content)
    monkeypatch.setattr(float_kernels, "marked", lambda: [str(file)])
    _, green, printed = outcome(Run(HERE, "this one", {}))
    assert green is passed, printed


def test_the_marked_files_are_found() -> None:
    assert "tests/protocols/test_mle.py" in float_kernels.marked()

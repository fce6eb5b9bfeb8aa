"""What CONTRIBUTING says about the tests holds: the tests of every module are found by the tool that it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs._hooks.modules import read_modules
from tools import tests_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def found() -> dict[str, set[Path]]:
    return tests_of.tests_by_module(read_modules(), ROOT / "tests")


def test_every_module_has_tests(found: dict[str, set[Path]]) -> None:
    assert [name for name, tests in found.items() if not tests] == []


def test_the_tests_of_a_module_are_found(found: dict[str, set[Path]]) -> None:
    tests = {name: {path.relative_to(ROOT / "tests").as_posix() for path in paths} for name, paths in found.items()}
    assert "channels/test_utility.py" in tests["deniable.channels.utilities"]
    assert "collect/stores/test_segments.py" in tests["deniable.collect.stores.segments"]
    assert any(name.startswith("cli/") for name in tests["deniable.cli.estimate"])
    assert "audit/test_audit.py" in tests["deniable.audit.verdict"]


def test_a_module_without_tests_is_noticed(tmp_path: Path) -> None:
    files = {
        "src/deniable/__init__.py": "from deniable.one import first",
        "src/deniable/one.py": "from deniable.inner import x\ndef first(): ...",
        "src/deniable/inner.py": "x = 1",
        "src/deniable/alone.py": "def forgotten(): ...",
        "src/deniable/cli/__init__.py": "",
        "src/deniable/cli/count.py": "",
        "tests/test_one.py": 'import deniable as dn\nfrom deniable import cli\ndn.first()\nrun("count file.csv")',
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    tests = tests_of.tests_by_module(read_modules(tmp_path / "src" / "deniable"), tmp_path / "tests")
    one = {tmp_path / "tests" / "test_one.py"}
    assert tests == {
        "deniable": one,
        "deniable.one": one,
        "deniable.inner": one,  # through the module that imports it
        "deniable.alone": set(),
        "deniable.cli": one,
        "deniable.cli.count": one,
    }


def test_the_document_names_the_tool() -> None:
    assert "tools/tests_of.py" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

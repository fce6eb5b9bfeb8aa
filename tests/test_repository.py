"""What the repository says about itself in several places is the same everywhere."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import deniable as dn
from deniable.protocols import registered
from deniable.results import Result

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_citation_names_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [PROJECT["version"]]
    assert re.findall(r"^license: (.+)$", citation, re.MULTILINE) == [PROJECT["license"]]


def test_every_file_names_the_same_version():
    package = (ROOT / "src" / "deniable" / "__init__.py").read_text(encoding="utf-8")
    assert re.findall(r'^__version__ = "(.+)"$', package, re.MULTILINE) == [PROJECT["version"]]
    assert json.loads((ROOT / "web" / "package.json").read_text(encoding="utf-8"))["version"] == PROJECT["version"]


def test_the_changelog_is_open_for_entries():
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"


def test_make_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (declared,) = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)) == set(declared.split())


def test_ci_can_be_run():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def naming(word: str) -> list[str]:
    """The files of the package, the pages, the benchmarks and the docs, results and pictures too, that hold a word."""
    listed = subprocess.run(
        ["git", "ls-files", "src", "web", "benchmarks", "docs"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    bounded = re.compile(rf"\b{word}\b".encode())
    return [name for name in listed if (ROOT / name).is_file() and bounded.search((ROOT / name).read_bytes())]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a checkout knows which files are its own")
def test_a_protocol_is_named_in_few_files():
    """What asks the registry, or the loaded protocol in a browser, need not name its kinds."""
    files = [name for name in naming("SubsetSelection") if not name.startswith("src/deniable/schemas/")]  # made from it
    assert "src/deniable/protocols/frequency/subset_selection.py" in files
    assert len(files) <= 16, files
    assert len(naming("Protocol")) > 16


WIDEST = 160


def test_no_line_of_javascript_is_wide() -> None:
    """A line that does several things is hard to review; the vendored library is minified."""
    web = ROOT / "web"
    sources = [path for folder in (web, web / "pages", web / "test") for path in sorted(folder.glob("*.js"))]
    assert {"deniable.js", "planner.js", "kinds.test.js"} <= {path.name for path in sources}
    wide = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1)
        if len(line) > WIDEST
    ]
    assert wide == []


ROOMS = ("deniable.protocols", "deniable.results")


def test_nobody_asks_a_protocol_or_result_for_its_class() -> None:
    """What other modules need to know is in the records: a kind of another package is treated as our own."""

    def names(kind: type) -> set[str]:
        below = [one for one in kind.__subclasses__() if one.__module__.startswith(ROOMS)]
        return {kind.__name__, *(name for one in below for name in names(one))}

    assert registered()
    kinds = (names(dn.Protocol) | names(Result)) - {"Protocol", "Result"}
    assert {"GRR", "Groups", "Memoized", "Estimate"} <= kinds
    found: dict[str, int] = {}
    source = Path(dn.__file__).parent
    for path in sorted(source.rglob("*.py")):
        where = path.relative_to(source)
        if where.parts[0] in ("protocols", "results"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
                asked = {getattr(one, "id", getattr(one, "attr", "")) for one in ast.walk(node.args[1])}
                found[where.as_posix()] = found.get(where.as_posix(), 0) + len(asked & kinds)
    found = {where: count for where, count in found.items() if count}
    assert found == {}

"""What the repository says about itself in several places is the same everywhere."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_citation_names_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [PROJECT["version"]]
    assert re.findall(r"^license: (.+)$", citation, re.MULTILINE) == [PROJECT["license"]]


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
    files = naming("SubsetSelection")
    assert "src/deniable/protocols/frequency/subset_selection.py" in files
    assert len(files) <= 16, files
    assert len(naming("Protocol")) > 16

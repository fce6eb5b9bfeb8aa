"""What the repository says about itself in several places is the same everywhere."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

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

"""The reference describes every public name: what a package says it exports can be looked up."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import griffe
import pytest
import yaml

import deniable
from deniable.protocols import registered
from docs._hooks import reference

ROOT = Path(__file__).parents[2]
COMMANDS = "deniable.cli"  # has a page of its own
INNER = {f"deniable.protocols.{family}" for family in ("discovery", "ranges", "records", "sets")}
"""Packages whose names are described on the page of the package above."""

PACKAGES = [
    found.name
    for found in pkgutil.walk_packages(deniable.__path__, "deniable.")
    if found.ispkg and found.name != COMMANDS and hasattr(importlib.import_module(found.name), "__all__")
]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {page: reference.page_text(page) for page in reference.PAGES}


def missing(names: dict[str, Any], pages: dict[str, str]) -> list[str]:
    """Names that are neither described nor listed on any page."""

    def listed(name: str, thing: Any) -> bool:
        if reference.is_described(thing):
            return any(f"::: {reference.path_of(thing)}\n" in text for text in pages.values())
        return isinstance(thing, ModuleType) or any(f"\n- `{name}`: " in text for text in pages.values())

    return [name for name, thing in names.items() if not listed(name, thing)]


def test_every_package_has_a_page() -> None:
    assert {"deniable.channels", "deniable.surveys", "deniable.files", "deniable.design"} <= set(PACKAGES)
    assert set(PACKAGES) - INNER <= {f"deniable.{page}" for page in reference.PAGES}


@pytest.mark.parametrize("package", ["deniable", "deniable.planning", "deniable.files.spark", *PACKAGES])
def test_every_public_name_can_be_looked_up(package: str, pages: dict[str, str]) -> None:
    assert missing(reference.exports(package.removeprefix("deniable").removeprefix(".")), pages) == []


def test_a_name_that_is_left_out_is_caught(pages: dict[str, str]) -> None:
    path = "deniable.planning.plan"
    broken = {**pages, "planning": pages["planning"].replace(f"::: {path}\n", "")}
    assert missing(reference.exports("planning"), broken) == ["plan"]
    broken = {**pages, "channels": pages["channels"].replace("- `HAMMING`", "- `HAMMER`")}
    assert missing(reference.exports("channels"), broken) == ["HAMMING"]


def test_the_navigation_lists_the_pages() -> None:
    loader = type("Loader", (yaml.SafeLoader,), {})
    loader.add_constructor("!relative", lambda loader, node: node.value)
    config = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), loader)
    listed = next(entry["Reference"] for entry in config["nav"] if "Reference" in entry)
    files = [file for entry in listed for file in entry.values()]
    assert files == ["reference/index.md", *(f"reference/{page}.md" for page in reference.PAGES)]


@pytest.fixture(scope="module")
def source() -> griffe.Module:
    extensions = griffe.load_extensions(str(ROOT / "docs" / "_hooks" / "reference.py"))
    package = griffe.load("deniable", search_paths=[ROOT / "src"], extensions=extensions, docstring_parser="google")
    assert isinstance(package, griffe.Module)
    return package


def test_every_entry_is_found_with_its_parameters_and_its_source(pages: dict[str, str], source: griffe.Module) -> None:
    """The tool that reads the source for the site finds the same names and the same parameters."""
    entries = [path for text in pages.values() for path in re.findall(r"^::: deniable\.(\S+)$", text, re.MULTILINE)]
    assert len(entries) > 400
    for path in set(entries) - set(reference.PAGES):
        found = source[path]
        text = found.docstring.value
        parsed = {part.kind.value: part.value for part in found.docstring.parse("google", warnings=False)}
        assert ("Args:\n" in text) == ("parameters" in parsed), path
        assert not re.search("^ *>>>", re.sub(r"```pycon\n.*?```\n", "", text, flags=re.DOTALL), re.MULTILINE), path
        link = re.search(r'href="source/(.+)\.html#L-(\d+)"', text)
        assert link, path
        line = (ROOT / "src" / f"{link[1]}.py").read_text("utf-8").splitlines()[int(link[2]) - 1]
        assert found.name in line or line.startswith("@"), path


def test_docstrings_become_markdown() -> None:
    text = "Do it.\n\nArgs:\n    x: A number.\n\n>>> 1 + 1\n2\n>>> [1,\n...  2]\n[1, 2]\n\nThat is all."
    example = "```pycon\n>>> 1 + 1\n2\n>>> [1,\n...  2]\n[1, 2]\n```\n"
    assert reference.prepared(text) == f"Do it.\n\nArgs:\n    x: A number.\n\n{example}\nThat is all.\n"
    sheet = "Law        p < q\n           for all `x`\nPrivacy    e^epsilon\nCollisions few\n"
    shown = (
        '<dl class="sheet"><dt>Law</dt><dd>p &lt; q for all <code>x</code></dd><dt>Privacy</dt><dd>e^epsilon</dd>'
        "<dt>Collisions</dt><dd>few</dd></dl>\n"
    )
    assert reference.prepared(f"Head.\n\n{sheet}\nEnd.") == f"Head.\n\n{shown}\nEnd.\n"
    prose = "Privacy is a word at the head of this line.\nOther lines follow.\nThree of them do.\n"
    assert reference.prepared(prose) == prose + "\n"


def test_every_kind_of_protocol_is_in_the_wire_specification() -> None:
    text = (ROOT / "docs" / "protocol.md").read_text("utf-8")
    assert [name for name in registered() if f"`{name}`" not in text] == []

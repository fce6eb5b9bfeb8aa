"""The reference lists every public name: what a package says it exports can be looked up."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import deniable
from deniable.protocols import registered
from docs._hooks.execute import run_page

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"
COMMANDS = "deniable.cli"  # has a page of its own
SHORT = {"deniable.infer": "deniable.channels.inference"}

PACKAGES = [
    found.name
    for found in pkgutil.walk_packages(deniable.__path__, "deniable.")
    if found.ispkg and found.name != COMMANDS and hasattr(importlib.import_module(found.name), "__all__")
]


@pytest.fixture(scope="module")
def entries() -> dict[str, set[str]]:
    """The names under each heading of the page, as it is built."""
    page = run_page(PAGE.read_text(encoding="utf-8"), PAGE.name, lambda name, image: name)
    sections = re.split(r"^## `(.+)`$", page, flags=re.MULTILINE)[1:]
    pattern = re.compile(r"^(?:\| )?`(?:dn\.)?(\w+)[^`]*`", re.MULTILINE)
    return {name: set(pattern.findall(text)) for name, text in zip(sections[::2], sections[1::2], strict=True)}


def missing(module: Any, names: list[str], entries: dict[str, set[str]]) -> list[str]:
    """Names of a module that stand, as the same thing, under no heading of the page."""

    def listed(name: str) -> bool:
        thing = getattr(module, name)
        return isinstance(thing, ModuleType) or any(
            name in known and getattr(importlib.import_module(SHORT.get(section, section)), name, None) is thing
            for section, known in entries.items()
        )

    return [name for name in names if not name.startswith("__") and not listed(name)]


def test_the_packages_are_found() -> None:
    assert {"deniable.channels", "deniable.surveys", "deniable.files", "deniable.design"} <= set(PACKAGES)


@pytest.mark.parametrize("package", ["deniable", "deniable.planning", "deniable.files.spark", *PACKAGES])
def test_every_public_name_can_be_looked_up(package: str, entries: dict[str, set[str]]) -> None:
    module = importlib.import_module(package)
    assert missing(module, module.__all__, entries) == []


def test_a_name_that_is_left_out_is_caught(entries: dict[str, set[str]]) -> None:
    module = importlib.import_module("deniable.planning")
    assert missing(module, ["plan", "Plan"], {**entries, "deniable": set(), "deniable.planning": {"plan"}}) == ["Plan"]
    # Another thing of the same name is no entry.
    other = importlib.import_module("deniable.protocols.profiles")
    assert missing(other, ["compose"], {"deniable.channels": {"compose"}, "deniable.protocols": set()}) == ["compose"]


def test_every_kind_of_protocol_is_in_the_wire_specification() -> None:
    text = PAGE.with_name("protocol.md").read_text("utf-8")
    assert [name for name in registered() if f"`{name}`" not in text] == []

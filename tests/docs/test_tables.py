"""Tables of measured figures come from stored results, by a block that runs while the site is built."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
MOST_TYPED = 5
"""Decimal fractions that a table of words may have as examples."""


def typed_tables(page: str) -> list[str]:
    """The tables of a page that are written out, without code in them."""
    outside = re.sub(r"^( *)(`{3,}|~{3,}).*?^ *\2`*$", "", page, flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"(?:^ *\|.*\n)+", outside + "\n", flags=re.MULTILINE)
    return [re.sub(r"`[^`]*`", "", table) for table in found]


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda path: path.relative_to(DOCS).as_posix())
def test_no_table_of_measured_figures_is_typed(page: Path) -> None:
    for table in typed_tables(page.read_text(encoding="utf-8")):
        assert len(re.findall(r"\d\.\d", table)) <= MOST_TYPED, table


def test_a_typed_table_is_noticed() -> None:
    table = "| truth | ours |\n|---|---|\n" + "| normal | 3.0, 5.2, 7.2 |\n" * 2
    assert typed_tables(f"text\n\n{table}\ntext\n") == [table]
    assert typed_tables(f"```text\n{table}```\n") == []

"""Documents of results as JSON values: their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def rows_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of the table, of all sections but the further ones."""
    return [row for section in document["sections"] if not section.get("further") for row in section["rows"]]


def section(document: Mapping[str, Any], id: str) -> list[dict[str, Any]]:
    """The rows of one section."""
    found: list[list[dict[str, Any]]] = [one["rows"] for one in document["sections"] if one["id"] == id]
    return found[0]

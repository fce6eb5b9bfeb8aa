"""Untrusted text made safe to show: nothing that controls a terminal, reorders a line or starts a formula."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
QUOTED = r"^'('*[=+\-@\t\r])"
"""The pattern that `plain_cell` looks for, valid in any regular expression dialect; the group is the part to keep."""


def escaped(text: str, keep: str = "") -> str:
    r"""Text with control, bidirectional and other invisible characters escaped; spaces of all kinds stay.

    Escaping twice has the same result as escaping once. Characters in `keep` stay, too.

    >>> escaped("tea\x1b[2J"), escaped("a\u202eb"), escaped("a\nb"), escaped("a\nb", keep="\n")
    ('tea\\x1b[2J', 'a\\u202eb', 'a\\nb', 'a\nb')
    """
    if text.isprintable():
        return text
    return "".join(
        c
        if c.isprintable() or c in keep or unicodedata.category(c) == "Zs"
        else c.encode("unicode_escape", "surrogatepass").decode()
        for c in text
    )


def csv_cell(cell: Any, formulas: bool = False) -> Any:
    """A CSV cell: empty for an unknown number; text that a spreadsheet would execute gets a leading '.

    Such text begins with =, +, -, @, tab or carriage return. `formulas=True` leaves it unchanged. Numbers are
    never changed. `plain_cell` reverses this.

    >>> csv_cell("=1+1"), csv_cell("=1+1", formulas=True), csv_cell("tea"), csv_cell(-0.3), csv_cell(float("nan"))
    ("'=1+1", '=1+1', 'tea', -0.3, '')
    """
    if isinstance(cell, float) and math.isnan(cell):
        return ""
    return f"'{cell}" if isinstance(cell, str) and not formulas and _FORMULA.match(cell) else cell


def plain_cell(cell: str) -> str:
    """The text that `csv_cell` wrote; other cells stay as they are.

    >>> plain_cell("'=1+1"), plain_cell(csv_cell("'=1")), plain_cell("'quoted'"), plain_cell("-3")
    ('=1+1', "'=1", "'quoted'", '-3')
    """
    return re.sub(QUOTED, r"\1", cell)

"""Text of strangers on its way to people: nothing that drives a terminal, reorders a line or starts a formula."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
QUOTED = r"^'('*[=+\-@\t\r])"
"""What `plain_cell` looks for, as a regular expression of any kind; the group is what stays."""


def escaped(text: str, keep: str = "") -> str:
    r"""Text with control, bidirectional and other invisible characters as escapes; spaces of all kinds stay.

    Escaping twice is escaping once. Characters in `keep` stay, too.

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
    """A cell of CSV: empty where a number is not known; text that a spreadsheet would run gets a ' in front.

    That is text which begins with =, +, -, @, tab or carriage return. `formulas=True` leaves it as it is. Numbers are
    never changed. `plain_cell` undoes it.

    >>> csv_cell("=1+1"), csv_cell("=1+1", formulas=True), csv_cell("tea"), csv_cell(-0.3), csv_cell(float("nan"))
    ("'=1+1", '=1+1', 'tea', -0.3, '')
    """
    if isinstance(cell, float) and math.isnan(cell):
        return ""
    return f"'{cell}" if isinstance(cell, str) and not formulas and _FORMULA.match(cell) else cell


def plain_cell(cell: str) -> str:
    """The text that `csv_cell` wrote; what begins otherwise stays as it is.

    >>> plain_cell("'=1+1"), plain_cell(csv_cell("'=1")), plain_cell("'quoted'"), plain_cell("-3")
    ('=1+1', "'=1", "'quoted'", '-3')
    """
    return re.sub(QUOTED, r"\1", cell)

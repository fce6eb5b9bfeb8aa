"""Bar charts made of characters: solid up to where the interval begins, shaded where the truth may lie."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from deniable.cli import output

Inks = tuple[str, str, str]
BLOCKS: Inks = ("█", "▓", "░")
LETTERS: Inks = ("#", "=", "-")

_NARROWEST, _WIDEST = 10, 40


@dataclass(frozen=True, slots=True)
class Bar:
    """A share to draw, with the ends of its interval if it has one."""

    name: str
    value: float
    style: str
    ends: tuple[float, float] | None = None


def chart(groups: Sequence[tuple[str, Sequence[Bar]]]) -> None:
    """One group of bars a label, all on one scale."""
    top = max(max(bar.value, bar.ends[1] if bar.ends else 0.0) for _, bars in groups for bar in bars)
    left = max(len(label) for label, _ in groups)
    middle = max(len(bar.name) for _, bars in groups for bar in bars)
    width = min(max(output.width() - left - middle - 13, _NARROWEST), _WIDEST)
    for label, bars in groups:
        for i, bar in enumerate(bars):
            head = label if i == 0 else ""
            drawn = draw(bar, top, width, _inks())
            output.styled(f"  {head:<{left}}  {bar.name:<{middle}}  {drawn:<{width}}  {bar.value:6.1%}", bar.style)


def draw(bar: Bar, top: float, width: int, inks: Inks = BLOCKS) -> str:
    """The bar itself: `inks` are solid, before the value and after it.

    >>> draw(Bar("estimate", 0.5, "", ends=(0.25, 0.75)), top=1.0, width=8, inks=("#", "=", "-"))
    '##==--'
    """
    solid, before, after = inks

    def cells(value: float) -> int:
        return round(min(max(value / top, 0.0), 1.0) * width)

    value = cells(bar.value)
    low, high = (value, value) if bar.ends is None else map(cells, bar.ends)
    return solid * min(low, value) + before * max(0, value - low) + after * max(0, high - value)


def _inks() -> Inks:
    try:
        "".join(BLOCKS).encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return LETTERS
    return BLOCKS

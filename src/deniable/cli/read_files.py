"""Files as text, JSON and CSV, with one clear sentence for everything that may be wrong with them.

Files      JSON if the text begins with { or [, else CSV (comma, semicolon or tab); UTF-8, at most 256 MiB; "-" is stdin
"""

from __future__ import annotations

import csv
import io
import json
import sys
from decimal import Decimal
from typing import Any

from deniable.errors import SpecError

MOST_BYTES = 1 << 28
_LARGEST_EXPONENT = 2000
STDIN = "-"


def read_text(source: str) -> str:
    """A whole file, or standard input for "-"."""
    where = named(source)
    if source == STDIN:
        stream = getattr(sys.stdin, "buffer", None)
        raw = sys.stdin.read(MOST_BYTES + 1).encode() if stream is None else stream.read(MOST_BYTES + 1)
    else:
        with open(source, "rb") as file:
            raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise SpecError(f"{where} holds more than {MOST_BYTES >> 20} MiB: that is too much to read at once")
    try:
        content = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(f"{where} is not UTF-8 text: save it as UTF-8, or give another file") from None
    if "\0" in content:
        raise SpecError(f"{where} is not text: it holds zero bytes")
    if not content.strip():
        raise SpecError(f"{where} is empty")
    return content


def named(source: str) -> str:
    return "standard input" if source == STDIN else repr(source)


def only_one_stdin(*sources: str | None) -> None:
    if sources.count(STDIN) > 1:
        raise SpecError('standard input can be read once only: give "-" in one place and a file in the other')


def refuse_keyboard(instead: str) -> None:
    """Standard input that is a keyboard is not waited for; `instead` says what to do."""
    if sys.stdin.isatty():
        raise SpecError(f"there is nothing to read: {instead}")


def parse_json(content: str, where: str) -> Any:
    """JSON with exact decimals, and without what JSON leaves open: repeated keys, NaN, infinities."""

    def refuse(constant: str) -> Any:
        raise SpecError(f"{where} holds {constant}, which is not a number")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise SpecError(f"{where} has the key {key!r} twice")
            found[key] = value
        return found

    def decimal(written: str) -> Decimal:
        value = Decimal(written)
        # Turned into an integer, 1e999999999 would fill the memory.
        if value and abs(value.adjusted()) > _LARGEST_EXPONENT:
            raise SpecError(f"{where} holds a number that is out of any sensible range")
        return value

    try:
        return json.loads(content, parse_float=decimal, parse_constant=refuse, object_pairs_hook=unique)
    except json.JSONDecodeError as wrong:
        raise SpecError(f"{where} is not JSON: {wrong.msg} in line {wrong.lineno}, column {wrong.colno}") from None
    except SpecError:
        raise
    except (ValueError, ArithmeticError, RecursionError):
        raise SpecError(f"{where} is not usable JSON: its numbers are too long or its lists too deep") from None


def is_json(content: str) -> bool:
    return content.lstrip()[:1] in ("{", "[")


def parse_csv(content: str, where: str) -> list[tuple[int, list[str]]]:
    """The rows that are not blank, each with its line number; cells without surrounding spaces."""
    first = content.lstrip("\r\n").partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]
    except csv.Error as wrong:
        raise SpecError(f"{where} is not CSV: {wrong} in line {reader.line_num}") from None
    if not rows:
        raise SpecError(f"{where} is empty")
    return rows

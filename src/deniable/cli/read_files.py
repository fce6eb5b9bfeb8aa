"""The text of a file or of standard input, with one clear sentence for everything that may be wrong with it.

Text       UTF-8, at most 256 MiB; "-" is standard input
Format     JSON if the text begins with { or [, else CSV
"""

from __future__ import annotations

import sys

from deniable.errors import SpecError

MOST_BYTES = 1 << 28
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
    """What messages call a source."""
    return "standard input" if source == STDIN else repr(source)


def only_one_stdin(*sources: str | None) -> None:
    """Refuse standard input in two places."""
    if sources.count(STDIN) > 1:
        raise SpecError('standard input can be read once only: give "-" in one place and a file in the other')


def refuse_keyboard(instead: str) -> None:
    """Standard input that is a keyboard is not waited for; `instead` says what to do."""
    if sys.stdin.isatty():
        raise SpecError(f"there is nothing to read: {instead}")


def is_json(content: str) -> bool:
    """Whether a text is to be read as JSON, by how it begins."""
    return content.lstrip()[:1] in ("{", "[")

"""Open text: any text is an answer, hashed into cells, so that nobody has to list the answers beforehand."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.columns import absent, dictionary, flat, is_absent, kind
from deniable.domains.base import Domain, wrong_spec
from deniable.errors import DomainError, ValueRefused
from deniable.labels import is_utf8, load_label

# -- what text is and how it is hashed ----------------------------------------------------------------


LONGEST_TEXT = 4096


def text_digest(use: str, key: str, cohort: int, text: str) -> bytes:
    """SHA-256 of a text for one cohort, separate for each use and key."""
    return hashlib.sha256(f"deniable-{use}-v1\0{key}\0{cohort}\0{text}".encode()).digest()


def as_key(key: Any) -> str:
    """Validate the name of a family of hash functions."""
    if not isinstance(key, str) or "\0" in key:
        raise DomainError("the key of a hash is text without the character NUL")
    return unicodedata.normalize("NFC", str.__str__(key))


def as_text(value: Any, place: int) -> str:
    if is_absent(value):
        raise absent(place)
    if not isinstance(value, str):
        raise ValueRefused(f", {kind(value)}, is not text", place)
    text = unicodedata.normalize("NFC", str.__str__(value))
    if not is_utf8(text):
        raise ValueRefused(" is text that UTF-8 cannot write: half a surrogate pair", place)
    if len(text.encode()) > LONGEST_TEXT:
        raise ValueRefused(f" is text of more than {LONGEST_TEXT} bytes: shorten it on the device", place)
    return text


Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """A column of texts in NFC: the distinct texts, and the index of the text in each row.

    Args:
        which: For each row, the index of its text.
        entries: The distinct texts.
    """

    which: Positions
    entries: Sequence[str]

    def __len__(self) -> int:
        return len(self.which)

    def __getitem__(self, place: int) -> str:
        return self.entries[int(self.which[place])]


@dataclass(frozen=True)
class Strings(Domain):
    """Any text of up to 4096 bytes, seen through `cohorts` public hash functions into `cells` cells.

    digest = SHA-256("deniable-strings-v1" NUL key NUL cohort NUL text), all in UTF-8, the cohort in decimal digits
    and the text in Unicode form NFC. The cell is the digest's first 8 bytes, little-endian, modulo `cells`, a power
    of two: in a browser, `crypto.subtle.digest` and a mask. The key is public; it gives each survey its own hashes.

    Two strings share a cell in one cohort with probability 1 / cells, so the n_x people with another string add
    n_x^2 / (cohorts (cells - 1)) to the variance of a count. At 2^16 cells and 64 cohorts that is a standard error of
    at most n / 2048, when all others hold one and the same string, and of n / 19000 when they spread like the words
    of a language. The noise of a one-bit report at epsilon 1 is 4.4 n / 2048 with a million people, and falls below
    the worst case only beyond 19 million. More cells cost memory: a tally has cells x cohorts counters, 32 MiB here.

    Args:
        cells: Number of cells of each hash function, a power of two.
        cohorts: Number of public hash functions.
        key: Public text that selects the hash functions.
        missing: The text for missing answers; without it they are refused.

    Raises:
        DomainError: The number of cells or cohorts is out of range.

    >>> Strings().cell("sourdough", cohort=0)
    9847
    """

    kind: ClassVar[str] = "strings"

    takes_numbers: ClassVar[bool] = False

    is_column: ClassVar[bool] = False

    cells: int = 1 << 16
    cohorts: int = 64
    key: str = ""
    missing: str | None = None

    def __post_init__(self) -> None:
        for name, number, most in (("cells", self.cells, 1 << 28), ("cohorts", self.cohorts, 1 << 16)):
            if isinstance(number, bool) or not isinstance(number, int | np.integer):
                raise DomainError(f"the number of {name} is a whole number, not {kind(number)}")
            if not 1 <= number <= most:
                raise DomainError(f"the number of {name} lies between 1 and {most}, not at {number}")
            object.__setattr__(self, name, int(number))
        if self.cells < 2 or self.cells & (self.cells - 1):
            raise DomainError(f"the number of cells is a power of two, at least 2, not {self.cells}")
        object.__setattr__(self, "key", as_key(self.key))
        if self.missing is not None:
            if not isinstance(self.missing, str):
                raise DomainError(f"what stands for missing answers is text, not {kind(self.missing)}")
            object.__setattr__(self, "missing", as_text(self.missing, 0))

    def cell(self, text: str, cohort: int) -> int:
        """The cell of a text (NFC) in one cohort."""
        return int.from_bytes(text_digest("strings", self.key, cohort, text)[:8], "little") % self.cells

    def encode(self, values: Any) -> Texts:
        encoded = dictionary(values)
        if encoded is None:
            listed = list(values) if isinstance(values, list | tuple) else flat(values).tolist()
            if not set(map(type, listed)) <= {str}:
                listed = [self.text(value, place) for place, value in enumerate(listed)]
            table: dict[str, int] = {}
            encoded = np.array([table.setdefault(text, len(table)) for text in listed], dtype=np.int64), list(table)
        codes, entries = encoded
        used, places, within = np.unique(codes, return_index=True, return_inverse=True)
        texts = [""] * used.size
        for which in np.argsort(places).tolist():  # the error names the first bad row
            code = int(used[which])
            texts[which] = self.text(None if code < 0 else entries[code], int(places[which]))
        return Texts(within, texts)

    def encode_one(self, value: Any) -> str:
        return self.text(value, 0)

    def reader(self, typed: bool = True) -> Callable[[str], Any]:
        return str

    def answer_key(self, encoded: Any) -> bytes:
        """01 and the text in Unicode form NFC as UTF-8."""
        return b"\1" + str(encoded).encode()

    @property
    def least_forms(self) -> int:
        return self.cells

    @property
    def short(self) -> str:
        return "open text"

    @property
    def choices(self) -> str:
        return "any text"

    @property
    def example(self) -> str:
        return "example"

    def text(self, value: Any, place: int) -> str:
        """An answer in NFC; refuses invalid answers."""
        return self.missing if self.missing is not None and is_absent(value) else as_text(value, place)

    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"kind": "strings", "cells": self.cells, "cohorts": self.cohorts, "key": self.key}
        return spec if self.missing is None else spec | {"missing": self.missing}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Strings:
        match spec:
            case {"kind": "strings", "cells": int(cells), "cohorts": int(cohorts), "key": str(key), **rest} if set(
                rest
            ) <= {"missing"}:
                return cls(cells, cohorts, key, None if "missing" not in rest else str(load_label(rest["missing"])))
        raise wrong_spec("strings", "cells, cohorts and key, and perhaps missing")

    def __str__(self) -> str:
        return f"any text, hashed into {self.cells} cells in {self.cohorts} cohorts"

"""Answers that cannot be listed, as strings of bits: identifiers of a fixed length, and short texts.

BitStrings   a fixed number of bits, as hexadecimal digits; an array of bytes with one row per answer also works
ShortText    any text: in Unicode form NFC and UTF-8, padded with zeros to `bytes`. For a longer text these bytes hold
             its beginning (whole characters, padded with zeros to `bytes` - 3), FF, which UTF-8 never uses, and the
             first 2 bytes of SHA-256("deniable-text-v1" NUL text)

Bit i of a string is bit 7 - i % 8 of byte i // 8: the first bits are the beginning of a text.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.columns import absent, coded, is_absent, kind
from deniable.domains import text_model
from deniable.domains.base import Domain, wrong_spec
from deniable.domains.text import as_key, as_text
from deniable.errors import DomainError, ValueRefused

Rows = NDArray[np.uint8]
Positions = NDArray[np.int64]
Prior = Callable[[Rows, int], NDArray[np.float64]]
"""Rows and the index of a byte -> the log-probabilities of its 256 values, one row each."""

MOST_BITS = 1024
LEAST_BYTES, MOST_BYTES = 4, MOST_BITS // 8
MARK = 0xFF
"""Precedes the hash of a text that is too long."""
HASH_BYTES = 2
_HASH_FOLLOWS = "… #"
_LONG, _NOT_LONG = float(np.log(0.02)), float(np.log(0.98))
"""Log-probability that a text is longer than the part that is reported, and that it is not."""


@dataclass(frozen=True, slots=True, eq=False)
class BitRows:
    """A column of bit strings: the distinct strings as rows of bytes, and the index of the string in each row.

    Args:
        which: For each row, the index of its string.
        entries: The distinct strings, as rows of bytes.
    """

    which: Positions
    entries: Rows

    def __len__(self) -> int:
        return len(self.which)

    def repeat(self, times: int) -> BitRows:
        """Each answer `times` times."""
        return BitRows(np.repeat(self.which, times), self.entries)

    def __getitem__(self, place: Any) -> Any:
        """The bytes of one answer, or a part of the column."""
        if isinstance(place, slice):
            return BitRows(self.which[place], self.entries)
        return self.entries[int(self.which[place])].tobytes()


class BitDomain(Domain):
    """Answers that are strings of a fixed number of bits; an encoded answer is their bytes."""

    takes_numbers: ClassVar[bool] = False

    is_column: ClassVar[bool] = False

    reads: ClassVar[str] = "found"

    key: str
    """Selects the public maps to cells, so that each question has its own."""

    ends: tuple[int, ...] = ()
    """The relevant prefix lengths, if the answers have a fixed form; else any length."""

    @property
    @abstractmethod
    def size_in_bits(self) -> int: ...

    @property
    def size_in_bytes(self) -> int:
        return -(-self.size_in_bits // 8)

    @abstractmethod
    def _bytes(self, value: Any, place: int) -> bytes:
        """One answer as bytes; refuses invalid answers."""

    @abstractmethod
    def label(self, row: bytes) -> str | None:
        """The answer with these bytes, for people; None if no answer has them."""

    def row(self, label: str) -> bytes:
        """The bytes of an answer, given in the form of `label`."""
        return self._bytes(label, 0)

    @property
    def information(self) -> float:
        """The natural logarithm of the number of ordinary answers: the more answers, the harder to find one."""
        return self.size_in_bits * float(np.log(2))

    @property
    def log_prior(self) -> Prior | None:
        """Probabilities of each value of a byte given the bytes before it; None if all bits are equally likely."""
        return None

    @property
    def log_prior_unlike(self) -> Prior | None:
        """The same for answers unlike ordinary ones; None if there is no such model."""
        return None

    def log_prior_like(self, rows: Rows) -> Prior | None:
        """The same for answers like these; None if other answers carry no information about an answer."""
        return None

    def encode(self, values: Any) -> BitRows:
        column = coded(values)
        used, places, within = np.unique(column.codes, return_index=True, return_inverse=True)
        rows = np.zeros((used.size, self.size_in_bytes), dtype=np.uint8)
        for which in np.argsort(places).tolist():  # the error names the first bad row
            code = int(used[which])
            value = None if code < 0 else column.entries[code]
            rows[which] = np.frombuffer(self._bytes(value, int(places[which])), dtype=np.uint8)
        return BitRows(within, rows)

    def encode_one(self, value: Any) -> bytes:
        return self._bytes(value, 0)

    def reader(self, typed: bool = True) -> Callable[[str], Any]:
        return str

    def answer_key(self, encoded: Any) -> bytes:
        """03 and the bytes."""
        return b"\3" + bytes(encoded)


@dataclass(frozen=True)
class BitStrings(BitDomain):
    """A fixed number of bits, in hexadecimal digits; unused bits of the last byte are zero.

    Args:
        bits: Number of bits.
        key: Selects the public maps to cells, so that each question has its own.

    Raises:
        DomainError: The number of bits is out of range.

    >>> tags = BitStrings(12)
    >>> tags.encode_one("0af").hex(), tags.label(bytes.fromhex("0af0"))
    ('0af0', '0af')
    """

    kind: ClassVar[str] = "bit strings"

    bits: int
    key: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", _whole(self.bits, 1, MOST_BITS, "bit strings have", "bits"))
        object.__setattr__(self, "key", as_key(self.key))

    @property
    def size_in_bits(self) -> int:
        return self.bits

    @property
    def digits(self) -> int:
        """Number of hexadecimal digits of an answer."""
        return -(-self.bits // 4)

    def encode(self, values: Any) -> BitRows:
        if isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype == np.uint8:
            if values.shape[1] != self.size_in_bytes:
                raise DomainError(f"answers of {self.bits} bits are rows of {self.size_in_bytes} bytes")
            if self.bits % 8 and (values[:, -1] & 0xFF >> self.bits % 8).any():
                raise DomainError(f"the bits behind the first {self.bits} of an answer are zero")
            return BitRows(np.arange(len(values)), np.ascontiguousarray(values))
        return super().encode(values)

    def _bytes(self, value: Any, place: int) -> bytes:
        if is_absent(value):
            raise absent(place)
        if not isinstance(value, str):
            raise ValueRefused(f", {kind(value)}, is not text of hexadecimal digits", place)
        digits = str.__str__(value)
        if len(digits) != self.digits or not set(digits.lower()) <= set("0123456789abcdef"):
            raise ValueRefused(f" is not text of {self.digits} hexadecimal digits", place)
        row = bytes.fromhex(digits + "0" * (len(digits) % 2))
        if self.bits % 8 and row[-1] & 0xFF >> self.bits % 8:
            raise ValueRefused(f" has more than {self.bits} bits: those behind the last are zero", place)
        return row

    def label(self, row: bytes) -> str | None:
        return row.hex()[: self.digits]

    @property
    def least_forms(self) -> int:
        return 1 << min(self.bits, 64)

    @property
    def choices(self) -> str:
        return f"{self.digits} hexadecimal digits"

    @property
    def short(self) -> str:
        return f"{self.bits} bits"

    @property
    def example(self) -> str:
        return "0" * self.digits

    def spec(self) -> dict[str, Any]:
        return {"kind": "bit strings", "bits": self.bits, "key": self.key}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> BitStrings:
        match spec:
            case {"kind": "bit strings", "bits": int(bits), "key": str(key), **rest} if not rest:
                return cls(bits, key)
        raise wrong_spec("bit strings", "bits, a whole number, and key, a text")

    def __str__(self) -> str:
        return f"strings of {self.bits} bits"


@dataclass(frozen=True)
class ShortText(BitDomain):
    """Any text, reported by its first `bytes` bytes; longer texts are distinguished by a hash.

    Args:
        bytes: Number of bytes that a report is about.
        key: Selects the public maps to cells, so that each question has its own.

    Raises:
        DomainError: The number of bytes is out of range.

    >>> words = ShortText(16)
    >>> words.encode_one("café").hex()
    '636166c3a90000000000000000000000'
    >>> words.label(words.encode_one("a sentence that goes on")), words.label(words.encode_one("☕"))
    ('a sentence th… #03c4', '☕')
    """

    kind: ClassVar[str] = "short text"

    bytes: int = 16
    key: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes", _whole(self.bytes, LEAST_BYTES, MOST_BYTES, "short text has", "bytes"))
        object.__setattr__(self, "key", as_key(self.key))

    @property
    def size_in_bits(self) -> int:
        return 8 * self.bytes

    @property
    def ends(self) -> tuple[int, ...]:  # type: ignore[override]
        """Every two bytes, but each byte of a hash by itself, because it can be anything."""
        pairs = range(16, self.size_in_bits - 8 * HASH_BYTES, 16)
        return (*pairs, *range(self.size_in_bits - 8 * HASH_BYTES, self.size_in_bits + 1, 8))

    @property
    def _head(self) -> int:
        """Number of bytes of a longer text that are reported."""
        return self.bytes - 1 - HASH_BYTES

    def _bytes(self, value: Any, place: int) -> Any:
        text = as_text(value, place)
        if "\0" in text:
            raise ValueRefused(" is text with the character NUL: leave it out", place)
        written = text.encode()
        if len(written) <= self.bytes:
            return written.ljust(self.bytes, b"\0")
        start = written[: self._head].decode(errors="ignore").encode()
        digest = hashlib.sha256(b"deniable-text-v1\0" + written).digest()
        return start.ljust(self._head, b"\0") + b"\xff" + digest[:HASH_BYTES]

    def label(self, row: Any) -> str | None:
        hashed = row[self._head] == MARK
        written = row[: self._head] if hashed else row
        text = written.rstrip(b"\0")
        try:
            shown: str = text.decode()
        except UnicodeDecodeError:
            return None
        if "\0" in shown:
            return None
        return f"{shown}{_HASH_FOLLOWS}{row[-HASH_BYTES:].hex()}" if hashed else shown

    def row(self, label: str) -> Any:
        """The bytes of a text, or of a longer text given by its beginning and its hash.

        >>> words = ShortText(16)
        >>> words.row("a sentence th… #03c4") == words.encode_one("a sentence that goes on")
        True
        """
        start, mark, digest = label.rpartition(_HASH_FOLLOWS)
        if mark and len(label.encode()) > self.bytes and len(digest) == 2 * HASH_BYTES and _is_hex(digest):
            return start.encode()[: self._head].ljust(self._head, b"\0") + bytes([MARK]) + bytes.fromhex(digest)
        return self._bytes(label, 0)

    @property
    def information(self) -> float:
        """For a text of up to twelve letters, by the model of text below."""
        return 3.2 * min(self.bytes, 12)

    @property
    def log_prior(self) -> Prior | None:
        return partial(self._log_prior, text_model.letters)

    @property
    def log_prior_unlike(self) -> Prior | None:
        return partial(self._log_prior, text_model.anything)

    def log_prior_like(self, rows: Rows) -> Prior | None:
        lengths = np.where(rows[:, self._head] == MARK, self._head, self.bytes)
        return partial(self._log_prior, text_model.Learned(rows, lengths))

    def _log_prior(self, model: Prior, rows: Rows, place: int) -> NDArray[np.float64]:
        found = model(rows, place)
        if place == self._head:
            found = found + np.where(np.arange(256) == MARK, 0.0, _NOT_LONG)
            found[:, MARK] = _LONG
        elif place > self._head:
            found[rows[:, self._head] == MARK] = -8 * np.log(2)
        return found

    @property
    def least_forms(self) -> int:
        return 1 << 64

    @property
    def choices(self) -> str:
        return "any text"

    @property
    def short(self) -> str:
        return "any text"

    @property
    def example(self) -> str:
        return "example"

    def spec(self) -> dict[str, Any]:
        return {"kind": "short text", "bytes": self.bytes, "key": self.key}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> ShortText:
        match spec:
            case {"kind": "short text", "bytes": int(size), "key": str(key), **rest} if not rest:
                return cls(size, key)
        raise wrong_spec("short text", "bytes, a whole number, and key, a text")

    def __str__(self) -> str:
        return f"any text, of which {self.bytes} bytes are told"


def _is_hex(text: str) -> bool:
    return set(text) <= set("0123456789abcdef")


def _whole(number: Any, least: int, most: int, what: str, unit: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not least <= number <= most:
        raise DomainError(f"{what} {least} to {most:,} {unit}, not {number!r}")
    return int(number)

"""Bits for proofs about large reports: the real code runs on draws that stay symbolic until their value is needed.

`Exhaustive` runs the code once for each outcome of each draw, which is impossible for a report of a thousand bits. Here
a draw is a symbol. Code that only moves, adds or writes the symbol keeps it; code that needs its value (a condition,
an index, a product) decides it, and the code is run along every outcome of that decision, with exact weights. So each
run ends with a report whose bits are independent coins, sums of coins or numbers in a range. The structure of a report
is found by running the code: nobody states it.

Coins      a bit is a sum modulo 2 of coins, stored as an integer: bit 0 is the constant, bit k + 1 is coin k
Decisions  a sum with a fair coin in it is fair; once it is decided, that coin is replaced by the sum of the others
Ranges     a comparison with a number decides the comparison only, and leaves a smaller range
Subsets    a random subset of given size of the bits of a number stays together; in the report it is a `Choice`
Unknown    an answer that is a set can be unknown except for its size: code that reads its members is given up
Hidden     the number of an answer can be hidden: code may set or flip the bit at that position among identically
           distributed lanes, or take the parity of its overlap with a row of fair coins; other code is given up
Fallback   every operation that a symbol does not support decides it, so that every result is exact; with too many
           runs `follow` gives up
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from deniable.errors import NumberError
from deniable.exact import Dyadic
from deniable.randomness.source import Exhaustive, Impossible, floyd, listed_bits, total_weight, with_ranks

HALF = Fraction(1, 2)
_BITS = [tuple(byte >> place & 1 for place in range(8)) for byte in range(256)]


class TooManyRuns(NumberError):
    """The code depends on the values of too many draws, or uses them in ways that symbols do not support."""


@dataclass(frozen=True, slots=True)
class Span:
    """An integer in the bytes of a report, little-endian: each of low .. high - 1 is equally likely."""

    byte: int
    width: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Choice:
    """A subset in the bytes of a report: a fixed number of members from each of several disjoint sets, uniformly."""

    byte: int
    width: int
    listed: int
    """Bytes per position in a list; 0 for a bitmap."""
    members: int
    """The known members."""
    blocks: tuple[tuple[Any, int], ...]
    """Sets as integers with a bit per member, or `Unknown`; each with its number of chosen members."""


@dataclass(frozen=True, slots=True)
class Run:
    """One path through the code: its probability, and the report that it sends."""

    weight: Fraction
    forms: tuple[int, ...]
    """A sum of coins for each bit of the report; 0 and 1 are constants. Bits of a span are 0 here."""
    spans: tuple[Span, ...]
    coins: tuple[Fraction, ...]
    """The probability that each coin is 1."""
    choices: tuple[Choice, ...] = ()
    """Subsets; their bits are 0 in `forms`."""
    hidden: tuple[str, tuple[tuple[int, ...], ...]] | None = None
    """Where a hidden number was used: bits of the report that are "rows" combined with it, or "lanes" that hold it.

    For another number the report is the same up to a change of basis of the rows, or a permutation of the lanes."""

    def chance(self, form: int) -> Fraction:
        """The probability that a sum of coins is 1."""
        first = next(_coins(form))
        if form & ~1 == 1 << first + 1:
            return 1 - self.coins[first] if form & 1 else self.coins[first]
        tilt = Fraction(1)
        for coin in _coins(form):
            tilt *= 1 - 2 * self.coins[coin]
        return (1 - tilt) / 2 if not form & 1 else (1 + tilt) / 2


def _coins(form: int) -> Iterator[int]:
    """The coins of a sum."""
    form >>= 1
    while form:
        low = form & -form
        yield low.bit_length() - 1
        form ^= low


class _Symbol:
    """A symbol for an integer that is not known yet; every operation without its own rule decides it."""

    __slots__ = ()

    def __index__(self) -> int:
        raise NotImplementedError

    def __int__(self) -> int:
        return self.__index__()

    def __bool__(self) -> bool:
        return bool(int(self))

    def __hash__(self) -> int:
        return hash(int(self))

    def __str__(self) -> str:
        return str(int(self))

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(int(self), spec)

    def __float__(self) -> float:
        return float(int(self))


def _decided(name: str) -> Callable[..., Any]:
    def operation(self: _Symbol, *others: Any) -> Any:
        return getattr(int(self), name)(*(int(one) if isinstance(one, _Symbol) else one for one in others))

    return operation


def _part_of(name: str, self: _Symbol) -> Any:
    return getattr(int(self), name)


for _name in (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "rfloordiv", "truediv", "rtruediv", "mod", "rmod"),
    *("divmod", "rdivmod", "pow", "rpow", "lshift", "rlshift", "rshift", "rrshift", "and", "rand", "or", "ror", "xor"),
    *("rxor", "neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne"),
):
    setattr(_Symbol, f"__{_name}__", _decided(f"__{_name}__"))
for _name in ("bit_length", "bit_count", "to_bytes", "conjugate", "as_integer_ratio"):
    setattr(_Symbol, _name, _decided(_name))
for _name in ("real", "imag", "numerator", "denominator"):
    setattr(_Symbol, _name, property(partial(_part_of, _name)))


class _Word(_Symbol):
    """An integer whose bits are sums of coins, the lowest first."""

    __slots__ = ("forms", "source")
    __hash__ = _Symbol.__hash__

    def __init__(self, source: Symbolic, forms: list[int]) -> None:
        self.source, self.forms = source, forms

    def __index__(self) -> int:
        return sum(self.source.decide(form) << place for place, form in enumerate(self.forms))

    def _made(self, forms: list[int]) -> Any:
        """The number with these bits, as a plain integer if all are known."""
        if self.source._known:
            forms = [self.source.reduced(form) for form in forms]
        if all(form < 2 for form in forms):
            return sum(form << place for place, form in enumerate(forms))
        return _Word(self.source, forms)

    def _bitwise(self, other: Any, rule: Callable[[int, int], int | None], plain: Callable[[int, int], int]) -> Any:
        if type(other) is _Mark:
            return _Lanes.of(self)._set(other, rule)
        if isinstance(other, _Number):
            other = other.word()
        if isinstance(other, _Word):
            forms = other.forms
        elif isinstance(other, int) and other >= 0:
            forms = [other >> place & 1 for place in range(max(other.bit_length(), len(self.forms)))]
        else:
            return plain(int(self), int(other))
        size, forms = max(len(forms), len(self.forms)), list(forms)
        pairs = zip(self.forms + [0] * (size - len(self.forms)), forms + [0] * (size - len(forms)), strict=True)
        found = [rule(self.source.reduced(a), self.source.reduced(b)) for a, b in pairs]
        if any(form is None for form in found):
            return plain(int(self), int(other))
        return self._made([form for form in found if form is not None])

    def __xor__(self, other: Any) -> Any:
        return self._bitwise(other, lambda a, b: a ^ b, lambda a, b: a ^ b)

    def __and__(self, other: Any) -> Any:
        if type(other) is Hidden:
            return _Common(self, other)
        if type(other) is not _Mark and isinstance(other, int) and other < 0:
            return self._made([form if other >> place & 1 else 0 for place, form in enumerate(self.forms)])
        return self._bitwise(other, _both, lambda a, b: a & b)

    def __or__(self, other: Any) -> Any:
        return self._bitwise(other, _either, lambda a, b: a | b)

    __rxor__, __rand__, __ror__ = __xor__, __and__, __or__

    def __lshift__(self, by: Any) -> Any:
        return self._made([0] * int(by) + self.forms)

    def __rshift__(self, by: Any) -> Any:
        return self._made(self.forms[int(by) :])

    def __mod__(self, by: Any) -> Any:
        by = int(by)
        return self & (by - 1) if by > 0 and by & (by - 1) == 0 else int(self) % by

    def __add__(self, other: Any) -> Any:
        free = isinstance(other, int) and other >= 0 and other % (1 << len(self.forms)) == 0
        return self | other if free else int(self) + int(other)

    __radd__ = __add__

    def bit_count(self) -> Any:
        return _Count(self)

    def to_bytes(self, length: int = 1, byteorder: str = "big", *, signed: bool = False) -> Any:
        width = 8 * length
        if signed or any(self.source.reduced(form) for form in self.forms[width:]):
            return int(self).to_bytes(length, byteorder, signed=signed)  # type: ignore[arg-type]
        forms = self.forms[:width] + [0] * (width - len(self.forms))
        rows: list[Any] = [tuple(forms[place : place + 8]) for place in range(0, width, 8)]
        return _Sent(self.source, rows if byteorder == "little" else rows[::-1])


def _both(a: int, b: int) -> int | None:
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    return 0 if a == 0 or b == 0 else None


def _either(a: int, b: int) -> int | None:
    if a == b or b == 0:
        return a
    if a == 0:
        return b
    return 1 if a == 1 or b == 1 else None


class _Count(_Symbol):
    """The number of set bits of a word; its parity is a sum of coins."""

    __slots__ = ("word",)
    __hash__ = _Symbol.__hash__

    def __init__(self, word: _Word) -> None:
        self.word = word

    def __index__(self) -> int:
        return int(self.word).bit_count()

    def __and__(self, other: Any) -> Any:
        if other == 1:
            parity = 0
            for form in self.word.forms:
                parity ^= form
            return self.word._made([parity])
        return int(self) & int(other)

    def __mod__(self, by: Any) -> Any:
        return self & 1 if by == 2 else int(self) % int(by)

    __rand__ = __and__


class _Range:
    """One draw of an integer: what is known about it so far."""

    __slots__ = ("high", "low", "parts", "size", "source", "word")

    def __init__(self, source: Symbolic, size: int) -> None:
        self.source, self.size, self.low, self.high = source, size, 0, size
        self.word: _Word | None = None
        self.parts: tuple[_Range, _Range] | None = None

    @property
    def whole_bits(self) -> bool:
        """Whether it is equivalent to a row of fair coins."""
        return self.parts is None and self.high - self.low == self.size and self.size & (self.size - 1) == 0

    def divided(self, by: int) -> tuple[_Range, _Range] | None:
        """Quotient and remainder as separate draws, if they are independent and nothing is known about the draw yet."""
        if self.parts is None:
            known = self.word is not None or self.high - self.low < self.size
            if known or not 1 < by < self.size or self.size % by:
                return None
            self.parts = _Range(self.source, self.size // by), _Range(self.source, by)
        return self.parts if self.parts[1].size == by else None

    def as_word(self) -> _Word:
        if self.word is None:
            self.word = _Word(self.source, self.source._row(HALF, self.size.bit_length() - 1))
        return self.word

    def value(self) -> int:
        if self.word is not None:
            return int(self.word)
        if self.parts is not None:
            return self.parts[0].value() * self.parts[1].size + self.parts[1].value()
        if self.high - self.low > 1:
            self.low += self.source._uniform(self.high - self.low)
            self.high = self.low + 1
        return self.low


class _Number(_Symbol):
    """A draw of an integer plus a known constant."""

    __slots__ = ("drawn", "offset")
    __hash__ = _Symbol.__hash__

    def __init__(self, drawn: _Range, offset: int = 0) -> None:
        self.drawn, self.offset = drawn, offset

    def __index__(self) -> int:
        return self.drawn.value() + self.offset

    def word(self) -> Any:
        """The same as bits, if its bits are fair coins; else the number itself."""
        whole = self.offset == 0 and (self.drawn.word is not None or self.drawn.whole_bits)
        return self.drawn.as_word() if whole else int(self)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int):
            return _Number(self.drawn, self.offset + other)
        return int(self) + int(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, int) else int(self) - int(other)

    def __divmod__(self, by: Any) -> Any:
        parts = self.drawn.divided(by) if type(by) is int and self.offset == 0 else None
        return divmod(int(self), int(by)) if parts is None else (_Number(parts[0]), _Number(parts[1]))

    def __lt__(self, other: Any) -> bool:
        drawn = self.drawn
        if not isinstance(other, int) or drawn.word is not None or drawn.parts is not None:
            return bool(int(self) < other)
        bound = other - self.offset
        if drawn.low < bound < drawn.high:
            if drawn.source._branch((drawn.high - bound, bound - drawn.low), drawn.high - drawn.low):
                drawn.high = bound
            else:
                drawn.low = bound
        return drawn.low < bound

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __le__(self, other: Any) -> bool:
        return self < other + 1 if isinstance(other, int) else int(self) <= other

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def to_bytes(self, length: int = 1, byteorder: str = "big", *, signed: bool = False) -> Any:
        drawn = self.drawn
        whole = byteorder == "little" and not signed and self.offset + drawn.low >= 0 and drawn.parts is None
        if not whole or self.offset + drawn.high > 1 << 8 * length or drawn.high - drawn.low == 1:
            return int(self).to_bytes(length, byteorder, signed=signed)  # type: ignore[arg-type]
        return _Sent(drawn.source, [(drawn, self.offset, place, length) for place in range(length)])


def _as_bits(name: str) -> Callable[..., Any]:
    def operation(self: _Number, *others: Any) -> Any:
        word = self.word()
        return getattr(word, name)(*(int(one) if isinstance(one, _Symbol) and isinstance(word, int) else one
                                     for one in others))  # fmt: skip

    return operation


for _name in ("and", "rand", "or", "ror", "xor", "rxor", "lshift", "rshift", "mod"):
    setattr(_Number, f"__{_name}__", _as_bits(f"__{_name}__"))
_Number.bit_count = _as_bits("bit_count")  # type: ignore[attr-defined]


class Unknown(_Symbol):
    """A number with a known count of set bits; which bits are set is unknown, and may not matter to the code."""

    __slots__ = ("count", "inside", "universe")
    __hash__ = _Symbol.__hash__

    def __init__(self, count: int, universe: int, inside: bool = True) -> None:
        self.count, self.universe, self.inside = count, universe, inside

    def __index__(self) -> int:
        raise TooManyRuns("the code looks at an answer that was to be unknown")

    def bit_count(self) -> int:
        return self.count if self.inside else self.universe - self.count

    def __xor__(self, other: Any) -> Any:
        if other != (1 << self.universe) - 1:
            return int(self)
        return Unknown(self.count, self.universe, not self.inside)

    __rxor__ = __xor__

    def among(self, own: int) -> int:
        """The same number, once the answer's own bits are known."""
        return own if self.inside else (1 << self.universe) - 1 ^ own


class Sealed(_Symbol):
    """An answer that must not be inspected, not even for its type."""

    __slots__ = ()
    __hash__ = _Symbol.__hash__

    def __index__(self) -> int:
        raise TooManyRuns("the code looks at an answer that was to be hidden")

    @property
    def __class__(self) -> Any:  # used by `isinstance`
        raise TooManyRuns("the code asks what kind of answer it has")

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        raise TooManyRuns("the code changes what kind of answer it has")


class Hidden(Sealed):
    """One of the numbers below `below`; `value` represents all of them, if the code uses allowed operations only."""

    __slots__ = ("below", "value")
    __hash__ = _Symbol.__hash__

    def __init__(self, value: int, below: int) -> None:
        self.value, self.below = value, below

    def __rlshift__(self, one: Any) -> Any:
        return _Mark(1 << self.value, self.below, True) if one == 1 else super().__index__()


class _Mark:
    """The number with one set bit at a hidden position; or its complement."""

    __slots__ = ("below", "bit", "one")

    def __init__(self, bit: int, below: int, one: bool) -> None:
        self.bit, self.below, self.one = bit, below, one

    def __invert__(self) -> _Mark:
        return _Mark(self.bit, self.below, not self.one)


class _Lanes(_Symbol):
    """Identically distributed coins with hidden positions set: the only allowed operation is to send them."""

    __slots__ = ("forms", "source")
    __hash__ = _Symbol.__hash__

    def __init__(self, source: Symbolic, forms: list[int]) -> None:
        self.source, self.forms = source, forms

    def __index__(self) -> int:
        raise TooManyRuns("the code looks at a row with a hidden place")

    @classmethod
    def of(cls, word: _Word) -> _Lanes:
        coins = [form.bit_length() - 2 for form in word.forms]
        alike = all(form > 1 and form == 1 << coin + 1 for form, coin in zip(word.forms, coins, strict=True))
        if not alike or len(set(coins)) < len(coins) or len({word.source.coins[coin] for coin in coins}) != 1:
            raise TooManyRuns("a hidden place is set among bits that are not alike")
        word.source.lanes_used.append(tuple(word.forms))
        return cls(word.source, list(word.forms))

    def _set(self, mark: _Mark, rule: Callable[[int, int], int | None]) -> _Lanes:
        if mark.below != len(self.forms):
            raise TooManyRuns("a hidden place is set in a row of another length")
        forms = list(self.forms)
        place = mark.bit.bit_length() - 1
        found = rule(self.source.reduced(forms[place]), int(mark.one))
        others = rule(2, int(not mark.one))
        if found is None or others != 2:
            raise TooManyRuns("the code changes all places but a hidden one")
        forms[place] = found
        self.source.places_used |= mark.bit
        return _Lanes(self.source, forms)

    def __or__(self, other: Any) -> Any:
        return self._set(other, _either) if type(other) is _Mark else int(self)

    def __xor__(self, other: Any) -> Any:
        return self._set(other, lambda a, b: a ^ b) if type(other) is _Mark else int(self)

    def __and__(self, other: Any) -> Any:
        return self._set(other, _both) if type(other) is _Mark else int(self)

    def to_bytes(self, length: int = 1, byteorder: str = "big", *, signed: bool = False) -> Any:
        if byteorder != "little" or signed or len(self.forms) > 8 * length:
            return int(self)
        return _Word(self.source, self.forms).to_bytes(length, "little")


class _Common(_Symbol):
    """The overlap of a word with a hidden number; only the parity of its number of bits may be used."""

    __slots__ = ("number", "word")
    __hash__ = _Symbol.__hash__

    def __init__(self, word: _Word, number: Hidden) -> None:
        self.word, self.number = word, number

    def __index__(self) -> int:
        raise TooManyRuns("the code looks at what a draw has in common with a hidden number")

    def bit_count(self) -> Any:
        return _Parity(self)


class _Parity(_Symbol):
    __slots__ = ("common",)
    __hash__ = _Symbol.__hash__

    def __init__(self, common: _Common) -> None:
        self.common = common

    def __index__(self) -> int:
        return int(self.common)

    def __and__(self, other: Any) -> Any:
        if type(other) is not int or other != 1:
            return int(self)
        word, number = self.common.word, self.common.number
        return _Word(word.source, [word.source.parity(word.forms, number)])

    def __mod__(self, by: Any) -> Any:
        return self & 1 if type(by) is int and by == 2 else int(self)


class _Block:
    """One draw of a subset: None until its value is needed."""

    __slots__ = ("among", "count", "found", "source")

    def __init__(self, source: Symbolic, among: Any, count: int) -> None:
        self.source, self.among, self.count = source, among, count
        self.found: int | None = None

    def value(self) -> int:
        if self.found is None:
            self.found = with_ranks(int(self.among), floyd(self.source._uniform, self.among.bit_count(), self.count))
        return self.found

    def meets(self, other: _Block) -> bool:
        """Whether the two may overlap."""
        a, b = self.among, other.among
        if isinstance(a, Unknown) and isinstance(b, Unknown):
            return a.inside == b.inside
        return isinstance(a, Unknown) or isinstance(b, Unknown) or bool(a & b)


class _Chosen(_Symbol):
    """A number whose set bits are subsets of disjoint blocks, plus known bits."""

    __slots__ = ("blocks", "known")
    __hash__ = _Symbol.__hash__

    def __init__(self, blocks: list[_Block], known: int = 0) -> None:
        self.blocks, self.known = blocks, known

    def __index__(self) -> int:
        found = self.known
        for block in self.blocks:
            found |= block.value()
        return found

    def __or__(self, other: Any) -> Any:
        blocks, known = (other.blocks, other.known) if isinstance(other, _Chosen) else ([], other)
        if not isinstance(known, int):
            return int(self) | int(other)
        apart = not any(a.meets(b) for a in self.blocks for b in blocks)
        for block, held in [*((a, known) for a in self.blocks), *((b, self.known) for b in blocks)]:
            apart = apart and (not held or (isinstance(block.among, int) and not block.among & held))
        return _Chosen([*self.blocks, *blocks], self.known | known) if apart else int(self) | int(other)

    __ror__ = __or__

    def to_bytes(self, length: int = 1, byteorder: str = "big", *, signed: bool = False) -> Any:
        tops = [b.among.universe if isinstance(b.among, Unknown) else b.among.bit_length() for b in self.blocks]
        if signed or byteorder != "little" or max(tops) > 8 * length:
            return int(self).to_bytes(length, byteorder, signed=signed)  # type: ignore[arg-type]
        return _Sent(self.blocks[0].source, [(self, 0, place, length) for place in range(length)])

    def listed(self, width: int) -> Any:
        """The positions of the set bits, ascending, each in `width` bytes."""
        length = width * (self.known.bit_count() + sum(block.count for block in self.blocks))
        return _Sent(self.blocks[0].source, [(self, width, place, length) for place in range(length)])

    def byte(self, listed: int, place: int, length: int) -> int:
        whole = listed_bits(int(self), listed) if listed else int(self).to_bytes(length, "little")
        return whole[place]


class _Sent:
    """Bytes, some of them unknown: each is a number, eight sums of coins, or a position in a range's bytes."""

    __slots__ = ("rows", "source")

    def __init__(self, source: Symbolic, rows: list[Any]) -> None:
        self.source, self.rows = source, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __add__(self, other: Any) -> _Sent:
        return _Sent(self.source, self.rows + _rows(other))

    def __radd__(self, other: Any) -> _Sent:
        return _Sent(self.source, _rows(other) + self.rows)

    def number(self) -> Any:
        """The number in these bytes, little-endian; a draw that is here as a whole stays a draw."""
        first = self.rows[0] if self.rows else 0
        if isinstance(first, tuple) and isinstance(first[0], _Range) and first[3] == len(self.rows):
            drawn, offset = first[:2]
            if all(row == (drawn, offset, place, len(self.rows)) for place, row in enumerate(self.rows)):
                return _Number(drawn, offset)
        return int.from_bytes(bytes(self), "little")

    def ljust(self, width: int, fill: bytes = b" ") -> _Sent:
        return _Sent(self.source, self.rows + list(fill) * (width - len(self.rows)))

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            part = self.rows[place]
            return bytes(part) if all(isinstance(row, int) for row in part) else _Sent(self.source, part)
        return self._byte(self.rows[place])

    def _byte(self, row: Any) -> int:
        if isinstance(row, int):
            return row
        if isinstance(row[0], _Range):
            drawn, offset, place, _ = row
            byte: int = drawn.value() + offset >> 8 * place & 255
            return byte
        if isinstance(row[0], _Chosen):
            return row[0].byte(*row[1:])
        found: int = sum(self.source.decide(form) << place for place, form in enumerate(row))
        return found

    def __bytes__(self) -> bytes:
        return bytes(self._byte(row) for row in self.rows)

    def __iter__(self) -> Iterator[int]:
        return iter(bytes(self))

    def hex(self) -> str:
        return bytes(self).hex()

    def __hash__(self) -> int:
        return hash(bytes(self))

    def __eq__(self, other: Any) -> bool:
        return bytes(self) == (bytes(other) if isinstance(other, _Sent) else other)


def _rows(sent: Any) -> list[Any]:
    return sent.rows if isinstance(sent, _Sent) else list(sent)


class Symbolic(Exhaustive):
    """One run of the code; created by `follow` and passed to the code under test."""

    __slots__ = ("_known", "coins", "lanes_used", "parities", "places_used")

    def __init__(self, path: list[tuple[int, int]]) -> None:
        super().__init__(path, Fraction(0))
        self.coins: list[Fraction] = []
        self._known: dict[int, int] = {}  # the known value of a coin: a sum of other coins
        self.lanes_used: list[tuple[int, ...]] = []  # rows of coins in which a hidden position was set
        self.places_used = 0
        self.parities: dict[int, tuple[tuple[int, ...], int]] = {}  # coins that stand for parities: row, hidden number

    def parity(self, forms: list[int], number: Hidden) -> int:
        """A coin for the parity of the overlap of a row of coins with a hidden number."""
        if number.below > 1 << len(forms):
            raise TooManyRuns("a hidden number is longer than the row")
        (form,) = self._row(HALF, 1)
        self.parities[form.bit_length() - 2] = tuple(forms), number.value
        return form

    def reduced(self, form: int) -> int:
        """A sum with known coins replaced by their values."""
        if form < 2 or not self._known:
            return form
        for coin, known in self._known.items():
            if form >> coin + 1 & 1:
                form ^= 1 << coin + 1 ^ known
        return form

    def decide(self, form: int) -> int:
        """Whether a sum of coins is 1, in this run."""
        while (form := self.reduced(form)) > 1:
            coins = list(_coins(form))
            if not self.parities.keys().isdisjoint(coins):
                raise TooManyRuns("the code looks at a parity of a hidden number")
            fair = next((coin for coin in coins if self.coins[coin] == HALF), None)
            if fair is not None:
                found = self._branch((1, 1), 2)
                self._learn(fair, form ^ 1 << fair + 1 ^ found)
                return found
            first = coins[0]
            up, down = self.coins[first].as_integer_ratio()
            self._learn(first, self._branch((down - up, up), down))
        return form

    def _learn(self, coin: int, known: int) -> None:
        for other, sum_ in self._known.items():
            if sum_ >> coin + 1 & 1:
                self._known[other] = sum_ ^ 1 << coin + 1 ^ known
        self._known[coin] = known

    def integers(self, below: int, size: int | None = None) -> Any:
        if size is not None or below < 2:
            return super().integers(below, size)
        return _Number(_Range(self, below))

    def integer_list(self, below: int, count: int) -> list[int]:
        return [self.integers(below) for _ in range(count)]

    def kept_and_drawn(self, keep: Dyadic, below: int) -> tuple[bool, int]:
        return self.bernoulli(keep), self.integers(below)

    def word(self) -> Any:
        return self.integers(1 << 64)

    def lanes(self, probability: Dyadic, count: int) -> Any:
        word = _Word(self, self._row(probability.value, count))
        return word._made(word.forms)

    def _row(self, chance: Fraction, count: int) -> list[int]:
        """`count` new coins."""
        if chance in (0, 1):
            return [int(chance)] * count
        first = len(self.coins) + 1
        self.coins += [chance] * count
        return [1 << place for place in range(first, first + count)]

    def subset(self, among: Any, count: int) -> Any:
        size = among.bit_count()
        if not 0 <= count <= size:
            raise NumberError(f"of {size} bits, {count} cannot be chosen")
        if count in (0, size) and (not count or isinstance(among, int)):
            return among if count else 0
        return _Chosen([_Block(self, among, count)])

    def flipped(self, row: Any, probability: Dyadic, lanes: int) -> Any:
        if not isinstance(row, _Sent):
            return super().flipped(row, probability, lanes)
        forms: list[int] = []
        for one in row.rows:
            whole = isinstance(one, tuple) and not isinstance(one[0], _Range | _Chosen)
            byte = one if isinstance(one, int) or whole else row._byte(one)
            forms += list(byte) if isinstance(byte, tuple) else [byte >> place & 1 for place in range(8)]
        noise = self._row(probability.value, lanes) + [0] * (len(forms) - lanes)
        return _Word(self, [a ^ b for a, b in zip(forms, noise, strict=True)]).to_bytes(len(row), "little")

    def settle(self, sent: Any) -> tuple[tuple[int, ...], tuple[Span, ...], tuple[Choice, ...]]:
        """The bits, spans and subsets of a report; other dependencies between two parts are decided first."""
        if type(sent) is bytes:
            return tuple(bit for byte in sent for bit in _BITS[byte]), (), ()
        rows = _rows(sent)
        forms: list[int] = []
        spans: list[Span] = []
        choices: list[Choice] = []
        self._decide_split(rows)
        uses = Counter(id(row[0]) for row in rows if isinstance(row, tuple) and isinstance(row[0], _Range))
        for place, row in enumerate(rows):
            if isinstance(row, int):
                forms += [row >> bit & 1 for bit in range(8)]
            elif isinstance(row[0], _Chosen):
                chosen, listed, byte, width = row
                open_blocks = [block for block in chosen.blocks if block.found is None]
                if not open_blocks:
                    forms += [chosen.byte(listed, byte, width) >> bit & 1 for bit in range(8)]
                    continue
                forms += [0] * 8
                if byte == 0:
                    known = chosen.known
                    for block in chosen.blocks:
                        known |= block.found or 0
                    blocks = tuple((block.among, block.count) for block in open_blocks)
                    choices.append(Choice(place, width, listed, known, blocks))
            elif not isinstance(row[0], _Range):
                forms += row
            else:
                drawn, offset, byte, width = row
                together = rows[place - byte : place - byte + width]
                split = uses[id(drawn)] != width or place < byte or len(together) != width or any(
                    not isinstance(one, tuple) or one != (drawn, offset, at, width) for at, one in enumerate(together)
                )  # fmt: skip
                bits = drawn.word is not None or drawn.whole_bits
                if bits and offset == 0:
                    whole = drawn.as_word().forms
                    part = whole[8 * byte : 8 * byte + 8]
                    forms += part + [0] * (8 - len(part))
                elif split or bits or drawn.parts is not None or drawn.high - drawn.low == 1:
                    value = drawn.value() + offset
                    forms += [value >> 8 * byte + bit & 1 for bit in range(8)]
                else:
                    forms += [0] * 8
                    if byte == 0:
                        spans.append(Span(place, width, offset + drawn.low, offset + drawn.high))
        self._part(forms)
        # A range that was narrowed after its bytes were written counts with its narrower limits.
        return tuple(self.reduced(form) for form in forms), tuple(spans), tuple(choices)

    def uncover(self, forms: tuple[int, ...]) -> tuple[tuple[int, ...], Any]:
        """The report for the current value of a hidden number, and where the number was used, as in `Run.hidden`.

        Rows: each of their coins is in the report once, by itself, and otherwise only in parities. Lanes: their coins
        are in the report once, in order, each with coins of its own that are distributed alike for all lanes; and no
        coin of a position that was set is elsewhere.
        """
        if not self.parities and not self.lanes_used:
            return forms, None
        if self.parities and self.lanes_used:
            raise TooManyRuns("a hidden number is used in two ways")
        uses = Counter(coin for form in forms for coin in _coins(form))
        if self.lanes_used:
            return forms, ("lanes", (self._lanes_sent(forms, uses),))
        rows = [[self.reduced(form) for form in row] for row, _ in self.parities.values()]
        every = [form for row in rows for form in row]
        places = {form: place for place, form in enumerate(forms)}
        alone = all(form > 1 and form & form - 1 == 0 and form in places for form in every)
        if not alone or len(set(every)) < len(every) or any(not self._is_free(form, uses) for form in every):
            raise TooManyRuns("a row that meets a hidden number is not sent as it is")
        for (coin, (_, value)), row in zip(self.parities.items(), rows, strict=True):
            parity = 1 << coin + 1
            for place, form in enumerate(row):
                parity ^= form if value >> place & 1 else 0
            forms = tuple(form ^ parity if form >> coin + 1 & 1 else form for form in forms)
        return forms, ("rows", tuple(tuple(places[form] for form in row) for row in rows))

    def _is_free(self, form: int, uses: Counter[int]) -> bool:
        coin = form.bit_length() - 2
        return uses[coin] == 1 and self.coins[coin] == HALF

    def _lanes_sent(self, forms: tuple[int, ...], uses: Counter[int]) -> tuple[int, ...]:
        if len(self.lanes_used) > 1:
            raise TooManyRuns("a hidden place is set in two rows")
        (lanes,) = self.lanes_used
        held = {coin: place for place, form in enumerate(forms) for coin in _coins(form)}
        own = [form.bit_length() - 2 for form in lanes]
        others = {lane: coin for lane, coin in enumerate(own) if not self.places_used >> lane & 1}
        starts = {held[coin] - lane for lane, coin in others.items() if coin in held}
        if len(starts) != 1 or not all(coin in held for coin in others.values()):
            raise TooManyRuns("lanes beside a hidden place are not all sent in their order")
        (start,) = starts
        sent = tuple(range(start, start + len(own)))
        if any(uses[coin] != 1 for place in sent for coin in _coins(forms[place])):
            raise TooManyRuns("lanes beside a hidden place share a coin")
        if len({self.kind_of(forms[start + lane]) for lane in others}) != 1:
            raise TooManyRuns("lanes beside a hidden place are not alike")
        return sent

    def kind_of(self, form: int) -> tuple[Any, ...]:
        """The constant of a sum and the probabilities of its coins."""
        return form & 1, *sorted(self.coins[coin] for coin in _coins(form))

    @staticmethod
    def _decide_split(rows: list[Any]) -> None:
        """Decide subsets that are only partly in the report, or that occur twice in it."""
        places: dict[int, list[int]] = {}
        for place, row in enumerate(rows):
            if isinstance(row, tuple) and isinstance(row[0], _Chosen):
                for block in row[0].blocks:
                    places.setdefault(id(block), []).append(place)
        for place, row in enumerate(rows):
            if isinstance(row, tuple) and isinstance(row[0], _Chosen):
                chosen, listed, byte, width = row
                first = place - byte
                whole = list(range(first, first + width))
                here = [rows[at] if 0 <= at < len(rows) else 0 for at in whole]
                alike = all(
                    isinstance(one, tuple) and one[0] is chosen and one[1:] == (listed, at, width)
                    for at, one in enumerate(here)
                )
                for block in chosen.blocks:
                    if not alike or places[id(block)] != whole:
                        block.value()

    def _part(self, forms: list[int]) -> None:
        """Decide every unfair coin that two bits share."""
        while True:
            seen = shared = 0
            for form in forms:
                form = self.reduced(form) & ~1
                shared |= seen & form
                seen |= form
            loaded = [coin for coin in _coins(shared) if self.coins[coin] != HALF]
            if not loaded:
                return
            self.decide(1 << loaded[0] + 1)


def follow(function: Callable[[Any], Any], most_runs: int = 1 << 16) -> list[Run]:
    """Every path through `function(bits)`, which returns bytes; raises `TooManyRuns`.

    >>> runs = follow(lambda bits: (bits.lanes(Dyadic(1 << 62), 100) | 1).to_bytes(13, "little"))
    >>> len(runs), runs[0].forms[0], float(runs[0].chance(runs[0].forms[1]))
    (1, 1, 0.25)
    """
    runs: list[Run] = []
    path: list[tuple[int, int]] = []
    sums: dict[int, int] = {}
    for _ in range(most_runs):
        bits = Symbolic(path)
        try:
            forms, spans, choices = bits.settle(_result(function, bits))
        except Impossible:
            pass
        else:
            if bits._depth != len(path):
                raise NumberError("the code does not depend on its random bits alone: a replay ended early")
            forms, hidden = bits.uncover(forms)
            sums[bits.down] = sums.get(bits.down, 0) + bits.up
            runs.append(Run(bits.weight, forms, spans, tuple(bits.coins), choices, hidden))
        while path and path[-1][0] + 1 == path[-1][1]:
            path.pop()
        if not path:
            if total_weight(sums) != 1:
                raise NumberError("the runs of the code do not add up to one")
            return runs
        outcome, options = path[-1]
        path[-1] = (outcome + 1, options)
    raise TooManyRuns(f"the code has more than {most_runs:,} ways through it")


def _result(function: Callable[[Any], Any], bits: Symbolic) -> Any:
    try:
        return function(bits)
    except (TypeError, AttributeError, NotImplementedError, OverflowError) as wrong:
        raise TooManyRuns(f"the code does something with a draw that cannot be followed: {wrong}") from wrong

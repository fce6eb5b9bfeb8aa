"""Specs: one canonical form with a fingerprint, and strict reading without unknown keys or hidden characters.

Fingerprint  two parties hold the same object if, and only if, their hashes are equal

Form         keys sorted, no white space, UTF-8 without escapes beyond JSON's own, no floats
Numbers      integers that may exceed 2^53 are decimal strings, so that every language reads them alike
Hash         SHA-256("deniable-<kind>-v1" + NUL + canonical bytes), as lower-case hex

The texts of a survey may hold only visible characters, each in a single encoding.
A survey is identified by its fingerprint. An invisible character would give one person a separate survey that
looks like everybody's, with reports that point to that person. The following are refused:

- control, format and private characters, surrogates, line and paragraph separators, every other default-ignorable
  code point (variation selectors, tags, fillers), and five that are drawn as nothing or as a replacement mark;
- code points without a character in Unicode 14.0, the oldest version in a supported Python: later versions
  may write them in two forms. Python and JavaScript use the same table, so that they agree on every platform;
- blanks other than U+0020, two blanks in a row, and blanks at either end.

An emoji of one code point, with or without a skin tone, and a flag of two letters are accepted like other characters.
An emoji joined from several (a family), or one that requests colour with U+FE0F, is refused: without the joiner it
looks the same on some devices. Joiners are accepted where spelling needs them and they change the shape of letters:

- U+200C between two Arabic letters that would join;
- U+200C or U+200D after the virama of an Indic script with conjuncts, before a consonant of that script.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any, TypeGuard

from deniable._files import parse_json
from deniable.errors import SpecError

_SAFE_INTEGER = 2**53
_SHORT_BITS = 14_000  # under 4300 digits
_MOST_DIGITS = 1_000_000
_DEEPEST = 64
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


def canonical_bytes(spec: Any) -> bytes:
    """The unique byte string of this spec.

    >>> canonical_bytes({"b": [1, True], "a": "x"})
    b'{"a":"x","b":[1,true]}'
    """
    _check(spec)
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def is_fingerprint(value: Any) -> TypeGuard[str]:
    """Whether this has the form of a fingerprint: 64 lower-case hex digits."""
    return isinstance(value, str) and _FINGERPRINT.fullmatch(value) is not None


def fingerprint(kind: str, spec: Any) -> str:
    """SHA-256 of the canonical bytes, separate for each kind of object."""
    return hashlib.sha256(f"deniable-{kind}-v1\0".encode() + canonical_bytes(spec)).hexdigest()


def parsed(spec: Any) -> Any:
    """The spec as a dictionary; JSON text is parsed first."""
    return parse_json(spec, "the spec") if isinstance(spec, str | bytes) else spec


def integer_text(number: int) -> str:
    """An integer in decimal digits, however long (`str` stops at 4300 digits)."""
    return str(number) if number.bit_length() < _SHORT_BITS else format(Decimal(number), "f")


def read_integer(text: Any) -> int:
    """The integer that `integer_text` wrote; any other text is refused.

    >>> read_integer("-12")
    -12
    """
    if not isinstance(text, str) or len(text) > _MOST_DIGITS or not _INTEGER.fullmatch(text):
        raise SpecError("a spec writes large integers as decimal digits in a string, without leading zeros")
    return int(Decimal(text))


def _check(value: Any, depth: int = 0) -> None:
    if depth > _DEEPEST:
        raise SpecError(f"a spec is nested at most {_DEEPEST} deep")
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise SpecError("a spec holds text that UTF-8 can write, and half a surrogate pair is not") from None
        if unicodedata.normalize("NFC", value) != value:
            raise SpecError("a spec holds text in Unicode form NFC only")
        return
    if isinstance(value, int):
        if abs(value) >= _SAFE_INTEGER:
            raise SpecError("a spec writes integers of 2^53 and beyond as strings")
        return
    if isinstance(value, list):
        for item in value:
            _check(item, depth + 1)
        return
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise SpecError("a spec has text keys only")
            _check(key)
            _check(item, depth + 1)
        return
    raise SpecError(f"a spec cannot hold a {type(value).__name__}")


# -- which characters the texts of a survey may hold --------------------------------------------------


# Ranges in ascending order, in base 36: the distance from the end of the previous range and, after a point, the
# number of further code points.
REFUSED = (
    "0.v 2o.x d iq 15.1 7.3 8 2 l b2 13.1 1f.1 4 1k.7 s.3 7.g n 5d 1d.1 1o.1 2u.d 1o.1 1e.1 g t.1 2 c.4 w.8 23 4i 9.1 "
    "3.1 n 8 2.2 5.1 a.1 3.1 5.7 2.3 3 6.1 q.1 4 7.3 3.1 n 8 3 3 3.1 2 6.3 3.1 4.2 2.6 5 2.6 i.9 4 a 4 n 8 3 6.1 b 4 "
    "4.1 2.e 5.1 d.6 8 4 9.1 3.1 n 8 3 6.1 a.1 3.1 4.6 4.3 3 6.1 j.9 3 7.2 4 5.2 3 2 3.2 3.2 4.2 d.3 6.2 4 5.1 2.5 "
    "2.d m.4 e 4 o h.1 a 4 5.6 3 4.1 2.1 5.1 b.6 n 4 o b 6.1 a 4 5.6 3.5 3 5.1 b 3.c e 4 1g 4 7.3 h.1 r 4 j.2 p a 2.1 "
    "8.2 2.3 7 2 9.5 b.1 4.b 1n.3 u.10 3 2 6 p 2 o.1 6 2 7.1 b.1 5.v 21 11.3 14 11 g e.10 5j 2.4 2.1 40.1 6h 5.1 8 2 "
    "5.1 16 5.1 y 5.1 8 2 5.1 g 1m 5.1 1w.1 x.2 r.5 2f.1 7.1 ht t.2 2i.6 n.8 p.8 l.b e 4 3.b 1h.1 15.1 b.5 b.5 c.4 "
    "b.5 2i.6 18.4 1z.9 w d.3 d.3 2.2 17.1 6.a 19.3 r.5 c.2 1r.1 1u u.1 c.5 b.5 f.1 w.1c 26.2 1c 39.7 1p.2 g.2 1p.6 "
    "18.1 c.7 18.4 ev.1 7.1 13.1 7.1 9 2 2 2 w.1 1i g f.1 7 k.1 4 a.g p.7 1c.g 3.1 s e.2 y.e y.e 3x.3 ig.o c.k pt "
    "ok.1 x 9q.4 1a 2.4 2.1 1l.6 3.d p.8 8 8 8 8 8 8 8 8 3j.x r 2i.b 5z.p d.4 1s 2f.1 2w.4 18 1g 17 2d.b 1c mlq.2 "
    "1k.8 9p.j 55.7 5o.4 3 2 6.n 1o.2 b.5 1l.7 1z.7 d.5 39.a v.2 27 c.3 y 1k.8 f.1 b.1 2w.n t.9 7.1 7.1 7.8 8 8 1p.3 "
    "3j.1 b.5 8md.b o.3 1e.6ir a7.1 2z.11 8.b 6.4 r 6 2 3 3 3i.f ce.1 1j.6 2.v h.f b.5 1g k 5.3 6 3s.3 4g v.2 7.1 7.1 "
    "7.1 4.2 8 8.g d r k 3 g.1 f.x 3g.4 4.3 1a.2 2h e.2 2.1a 1b.3l u.2 1e.e t.3 11.8 v.4 18.4 v 12.3 f.15 4f.1 b.5 "
    "11.3 11.3 15.7 1h.a d g 8 3 c g 8 3.1u 8o.8 n.9 9.n 7 17 a.1w 7.1 2 19 3.2 2.1 o 21.7 a.1b k 3.4 y.2 s.4 2.1r "
    "1l.3 l.1 1f 3.4 9 4 u.1 4.3 b.6 a.6 1t.v 14.3 d.8 1j.2 u.1 s.4 r.6 5.b 8.27 22.1i 1g.c 1g.6 1b.7 b.85 w 17 4.1 "
    "3.25 15.7 17.l r.11 t.j o.8 27.3 11.8 1r 6.c q.6 b.5 1i j.7 14.8 2p l.a j 19.1s 8 2 5 g c.5 1o.4 b.5 5 9.1 3.1 n "
    "8 3 6 b.1 3.1 4.1 2.5 2.4 8.1 8.2 6.3u 2l 6.t 21.7 b.4l 1j.1 13.x 1y.a b.5 e.i 1n.5 b.1h s.1 g.3 o.54 1p.2r 2c.b "
    "9.1 2.1 9 3 v 3.1 d.8 b.1x 9.1 1b.1 c.q 21.7 2c.c 22.7a a 1a f.9 u.2 x.1 n f.20 8 3 19.2 2 3 a.7 b.5 7 3 12 3 "
    "7.6 b.8l q.52 2.e 1f.c po.2t 34 6.a 5h.217 2s.c ts.34g g8.6ns fu.6 w b.3 2a b.5 v.1 7.9 1z.9 b 8 m.4 k.j3 2k.2s "
    "24.3 1m.6 i.1r 5.b 3.d 4qh.7 yf.15 a.6w6 5 8 3 84.18 4.g 5.7 b1.1s3 30.4 e.2 a.6 b.1 5.3mn 1b.1 o.8 39.1n 6v.9 "
    "14.1 1d q.7 35.k 1z.49 l.b 2g.8 q.3q 2e 20 3.1 2.1 3.1 5 d 2 8 1u 5.1 9 8 t 5 6 2.2 8 9h.1 85.1 jj.e 6 g.un w.68 "
    "8 i.1 8 3 6.5w 1a.2 f.1 b.3 3.8v w.g 1n.4 2.yn 8 5 3 g 5i.1 h.14 25.3 b.3 3.ls 1x.23 1q.5d 5 s 3 2.1 2 b 5 2 2.5 "
    "2.3 2 2 2 4 3 2.1 2 2 2 2 2 3 2.1 5 8 5 5 2 b i.4 4 6 i.1f 3.7h 19.3 2t.b g.1 g g 12.9 4v.1j u.c 19.3 a.6 3.d "
    "7.49 rd.4 h.2 e.2 39.b 2i.6 d.3 2.e d.3 1l.7 b.5 15.7 v.1 3.25 9h.b f.1 6.2 6.2 8.8 u.2 c.4 7.9 b.5 9.7 8.8 44 "
    "1k.10 b.sl wyp.v 37e.6 67.1 4g3.d 5rm.2e6 f3.15t 3t8.jk50"
)

_JOINERS = ("\u200c", "\u200d")

# The characters before and after a joiner. Arabic letters that join the next one, then those that can be joined.
_DUAL = (
    "\u0620\u0626\u0628\u062a-\u062e\u0633-\u063f\u0641-\u0647\u0649\u064a\u066e\u066f\u0678-\u0687"
    "\u069a-\u06bf\u06c1\u06c2\u06cc\u06ce\u06d0\u06d1\u06fa-\u06fc\u06ff"
)
_RIGHT = (
    "\u0622-\u0625\u0627\u0629\u062f-\u0632\u0648\u0671-\u0673\u0675-\u0677\u0688-\u0699\u06c0\u06c3-\u06cb"
    "\u06cd\u06cf\u06d2\u06d3\u06d5\u06ee\u06ef"
)
# Devanagari, Bengali, Gujarati; Sinhala joins only; Oriya, Telugu, Kannada and Malayalam are only kept apart.
_HALF = "\u094d[\u0915-\u0939]|\u09cd[\u0995-\u09b9]|\u0acd[\u0a95-\u0ab9]"
_APART = "\u0b4d[\u0b15-\u0b39]|\u0c4d[\u0c15-\u0c39]|\u0ccd[\u0c95-\u0cb9]|\u0d4d[\u0d15-\u0d39]"
_SPELLED = {
    "\u200c": re.compile(f"[{_DUAL}][{_DUAL}{_RIGHT}]|{_HALF}|{_APART}"),
    "\u200d": re.compile(f"{_HALF}|\u0dca[\u0d9a-\u0dc6]"),
}


@cache
def _ends() -> list[int]:
    """Where acceptance changes: refused ranges begin at even positions and end at odd positions."""
    ends, last = [], 0
    for entry in REFUSED.split():
        start, _, more = entry.partition(".")
        first = last + int(start, 36)
        last = first + int(more or "0", 36)
        ends += [first, last + 1]
    return ends


def is_refused(character: str) -> bool:
    """Whether a character by itself is refused; a joiner may be needed for spelling."""
    return bisect_right(_ends(), ord(character)) % 2 == 1


def text_problem(text: str) -> str | None:
    """What is wrong with a text and how to fix it, to follow the name of the text; None if nothing is wrong.

    >>> text_problem("Do you smoke?"), text_problem("Do you\u200b smoke?")
    (None, 'has the invisible or unknown character U+200B at place 7: remove it')
    """
    doubtful = {character for character in set(text) if is_refused(character)}
    for place, character in enumerate(text) if doubtful else ():
        if character in doubtful and not _is_spelling(text, place):
            code = f"U+{ord(character):04X} at place {place + 1}"
            if character in "\u00a0\u1680\u202f\u205f\u3000" or "\u2000" <= character <= "\u200a":
                return f"has the blank {code}: write an ordinary blank"
            return f"has the invisible or unknown character {code}: remove it"
    if text != text.strip(" "):
        return "begins or ends with a blank: remove it"
    if "  " in text:
        return f"has two blanks in a row at place {text.index('  ') + 1}: one is enough"
    return None


def _is_spelling(text: str, place: int) -> bool:
    return text[place] in _JOINERS and bool(
        _SPELLED[text[place]].fullmatch(text[max(0, place - 1) : place] + text[place + 1 : place + 2])
    )


def keys(entry: Mapping[Any, Any], known: Iterable[str], where: str, optional: Iterable[str] = ()) -> None:
    """Refuse keys that are missing or unknown, by name."""
    needed = list(known)
    allowed = [*needed, *optional]
    unknown = [key for key in entry if key not in allowed]
    if unknown:
        raise SpecError(f"{where} has the unknown key {short(unknown[0])}: it may have {', '.join(allowed)}")
    missing = [key for key in needed if key not in entry]
    if missing:
        raise SpecError(f"{where} misses {', '.join(missing)}")


def as_text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise SpecError(f"{what} is text, not a {type(value).__name__}")
    if not value.strip():
        raise SpecError(f"{what} is empty")
    text = unicodedata.normalize("NFC", str.__str__(value))
    check_texts(text, what)
    return text


def check_texts(spec: Any, what: str) -> None:
    """Refuse hidden characters in every text that a spec holds."""
    if isinstance(spec, str):
        problem = text_problem(spec)
        if problem:
            raise SpecError(f"{what} {problem}")
    elif isinstance(spec, list | dict):
        for part in spec.values() if isinstance(spec, dict) else spec:
            check_texts(part, what)


def short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."

"""Public models of text: the probability of each byte of a text in UTF-8 given the bytes before it.

Letters    words: letters are likely, nothing follows the end, and UTF-8 stays valid. The transition frequencies of byte
           classes are about as in lists of words in many languages
Anything   texts unlike words: printable characters are about equally likely, and so are those of each script
Learned    text like a given list: each byte given the three before it, as often as in the list, which has every text
           once. Rare contexts carry little information, so a part of each law comes from shorter ones, down to
           "Letters": p_k = (max(count - 3/4, 0) + 3/4 kinds p_(k-1)) / total (absolute discounting, Ney, Essen and
           Kneser 1994)
Use        they determine how many people it takes to find a text, never what a device sends: only the server uses them
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.uint8]
Logs = NDArray[np.float64]

_END, _LETTER, _CAPITAL, _DIGIT, _SPACE, _SIGN, _TAIL, _LEAD2, _LEAD3, _LEAD4, _NEVER = range(11)
_START, _AFTER2, _AFTER3, _AFTER4 = range(11, 15)
"""Before the first byte, and after the last byte of a multi-byte character."""


def _classes() -> NDArray[np.int64]:
    found = np.full(256, _NEVER)
    found[0] = _END
    for place in range(1, 128):
        char = chr(place)
        found[place] = (
            _LETTER if char.islower() else _CAPITAL if char.isupper() else _DIGIT if char.isdigit() else _SIGN
        )
    found[ord(" ")] = _SPACE
    found[0x80:0xC0], found[0xC2:0xE0], found[0xE0:0xF0], found[0xF0:0xF5] = _TAIL, _LEAD2, _LEAD3, _LEAD4
    return found


_CLASS = _classes()
_SHARES = (120, 85, 81, 77, 73, 70, 65, 62, 50, 42, 40, 32, 28, 26, 22, 21, 20, 20, 19, 15, 11, 9, 3, 2, 2, 2)
_LETTERS = dict(zip("etaoinsrhldcumfpgwybvkxjqz", _SHARES, strict=True))
_LEADS = {  # widely used scripts
    _LEAD2: (0xC3, 0xC4, 0xC5, 0xCE, 0xCF, 0xD0, 0xD1, 0xD7, 0xD8, 0xD9),
    _LEAD3: (0xE0, 0xE2, *range(0xE3, 0xEA), 0xEA, 0xEB, 0xEC, 0xED),
    _LEAD4: (0xF0,),
}
_OFTEN = 20.0
"""Factor by which these are likelier than others."""
# After a state: a letter, capital, digit, space, sign, a character of two, three or four bytes, the end.
_FOLLOWS = {
    _START: (0.62, 0.16, 0.06, 0.005, 0.025, 0.07, 0.04, 0.01, 0.01),
    _LETTER: (0.76, 0.01, 0.01, 0.03, 0.025, 0.03, 0.003, 0.002, 0.13),
    _CAPITAL: (0.60, 0.18, 0.02, 0.02, 0.03, 0.03, 0.003, 0.002, 0.115),
    _DIGIT: (0.05, 0.03, 0.52, 0.04, 0.06, 0.003, 0.004, 0.003, 0.29),
    _SPACE: (0.62, 0.15, 0.07, 0.01, 0.04, 0.05, 0.03, 0.02, 0.01),
    _SIGN: (0.45, 0.12, 0.12, 0.07, 0.08, 0.02, 0.01, 0.01, 0.12),
    _AFTER2: (0.25, 0.01, 0.01, 0.06, 0.03, 0.45, 0.01, 0.01, 0.17),
    _AFTER3: (0.02, 0.01, 0.02, 0.03, 0.02, 0.01, 0.72, 0.02, 0.15),
    _AFTER4: (0.05, 0.02, 0.02, 0.05, 0.05, 0.02, 0.10, 0.30, 0.39),
}
_RARELY = 0.05
"""Factor by which control characters are less likely than other signs."""
_PLAIN = (0.28, 0.20, 0.18, 0.02, 0.16, 0.05, 0.03, 0.02, 0.06)
_ANY_FOLLOWS = dict.fromkeys((_START, _LETTER, _CAPITAL, _DIGIT, _SPACE, _SIGN), _PLAIN) | {
    _AFTER2: (0.09, 0.06, 0.06, 0.02, 0.05, 0.50, 0.06, 0.06, 0.10),
    _AFTER3: (0.09, 0.06, 0.06, 0.02, 0.05, 0.06, 0.50, 0.06, 0.10),
    _AFTER4: (0.09, 0.06, 0.06, 0.02, 0.05, 0.06, 0.06, 0.50, 0.10),
}


def _after(follows: Mapping[int, Sequence[float]], often: float) -> NDArray[np.float64]:
    """The log-probability of each byte after a byte of each class.

    Common letters and scripts are `often` times as likely as others; with 1 all are equally likely.
    """
    within = np.zeros((9, 256))
    kinds = (_LETTER, _CAPITAL, _DIGIT, _SPACE, _SIGN, _LEAD2, _LEAD3, _LEAD4, _END)
    for row, name in enumerate(kinds):
        within[row] = np.isin(_CLASS, name)
        within[row, list(_LEADS.get(name, ()))] = often
        within[row, [*range(1, 32), 127]] *= _RARELY
    if often > 1:
        within[0] = [_LETTERS.get(chr(place), 0) for place in range(256)]
    within /= within.sum(axis=1, keepdims=True)
    chances = np.full((15, 256), 1e-9)
    for name, shares in follows.items():
        chances[name] += np.asarray(shares) @ within
    for name in (_LEAD2, _LEAD3, _LEAD4, _TAIL):  # within a character
        chances[name] += np.isin(_CLASS, _TAIL)
    if often > 1:
        chances[_LEAD4, 0x9F] += often * 64  # signs and faces
    chances[_END, 0] = 1.0
    chances[_NEVER] = 1 / 256
    found: NDArray[np.float64] = np.log(chances / chances.sum(axis=1, keepdims=True))
    return found


def _states(rows: Rows, place: int) -> NDArray[np.int64]:
    """The state before byte `place`: the class of the last byte, or the kind of character that it ends."""
    state = _CLASS[rows[:, place - 1]]
    for back, lead, after in ((2, _LEAD2, _AFTER2), (3, _LEAD3, _AFTER3), (4, _LEAD4, _AFTER4)):
        if place >= back:
            ends = _CLASS[rows[:, place - back]] == lead
            for between in range(1, back):
                ends &= _CLASS[rows[:, place - between]] == _TAIL
            state = np.where(ends, after, state)
    return state


_AFTER, _AFTER_ANY = _after(_FOLLOWS, _OFTEN), _after(_ANY_FOLLOWS, 1.0)


def letters(rows: Rows, place: int) -> Logs:
    """The log-probabilities of byte `place` of a word given the bytes before it: 256 per row."""
    return _follow(_AFTER, rows, place)


def anything(rows: Rows, place: int) -> Logs:
    """The same for texts unlike words, such as passwords and addresses."""
    return _follow(_AFTER_ANY, rows, place)


def _follow(after: Logs, rows: Rows, place: int) -> Logs:
    if place == 0:
        return np.tile(after[_START], (len(rows), 1))
    found: Logs = after[_states(rows, place)]
    return found


_BACK = 3
"""Number of previous bytes that a learned byte depends on."""
_DISCOUNT = 0.75


class Learned:
    """The same for text like that of a list, given as rows of bytes and the number of text bytes in each row.

    >>> rows = np.frombuffer(b"tea\\0" b"tee\\0" b"sea\\0", dtype=np.uint8).reshape(3, 4)
    >>> model = Learned(rows, np.full(3, 4))
    >>> "".join(chr(model(rows[:1], place).argmax()) for place in range(3))
    'tea'
    """

    def __init__(self, rows: Rows, lengths: NDArray[np.int64]) -> None:
        pairs = [
            (rows[known, :place], rows[known, place])
            for place in range(rows.shape[1])
            if (known := (lengths > place) & ((rows[:, place - 1] != 0) | (place == 0))).any()
        ]
        self.tables: list[tuple[NDArray[np.int64], Logs]] = []
        for back in range(_BACK + 1):
            keys = np.concatenate([_contexts(before, back) for before, _ in pairs] or [np.empty(0, dtype=np.int64)])
            known, which = np.unique(keys, return_inverse=True)
            counts = np.zeros((known.size + 1, 256))  # the last row is for contexts that are not in the list
            np.add.at(counts, (which, np.concatenate([after for _, after in pairs] or [which])), 1)
            self.tables.append((known, counts))

    def __call__(self, rows: Rows, place: int) -> Logs:
        recent, which = np.unique(rows[:, max(0, place - _BACK - 1) : place], axis=0, return_inverse=True)
        # The law of a byte depends only on the four before it, and few of them differ.
        likely = np.exp(letters(recent, recent.shape[1]))
        ended = recent[:, -1] == 0 if place else np.zeros(len(recent), dtype=np.bool_)
        for back, (known, counts) in enumerate(self.tables):
            keys = _contexts(recent, back)
            at = np.searchsorted(known, keys)
            at = np.where(np.append(known, -1)[at] == keys, at, known.size)
            often = counts[at]
            total = often.sum(axis=1, keepdims=True)
            left = _DISCOUNT * np.count_nonzero(often, axis=1)[:, None]
            more = (np.maximum(often - _DISCOUNT, 0.0) + left * likely) / np.maximum(total, 1.0)
            likely = np.where((total > 0) & ~ended[:, None], more, likely)
        return np.log(likely)[which.reshape(-1)]


def _contexts(rows: Rows, back: int) -> NDArray[np.int64]:
    """A number for the last bytes of each row; the beginning of a text is one of the contexts."""
    found = np.zeros(len(rows), dtype=np.int64)
    for place in range(1, back + 1):
        found = 257 * found + (rows[:, -place].astype(np.int64) + 1 if place <= rows.shape[1] else 0)
    return found

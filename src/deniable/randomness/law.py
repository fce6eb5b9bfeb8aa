"""A distribution given by integers, from which one random number in [0, 1) chooses an outcome.

Outcome j of weights w_0 .. w_(m-1) is chosen when U lies in [C_j, C_(j+1)) / D, with C the running sums
and D their total. U is never rounded: its first 64 bits decide unless they hit the very word in which a
boundary falls (at most m - 1 words in 2^64), and then further words are drawn until they do. So the law
is exact for integers of any size, and one word is nearly always enough.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from deniable.errors import ProbabilityError
from deniable.exact import WORD, WORD_BITS


class Law:
    """Integer weights of the outcomes 0 .. m - 1.

    >>> law = Law([3, 0, 1])
    >>> law.total, len(law)
    (4, 3)
    """

    __slots__ = ("_sums", "_thresholds", "_unsettled", "_words", "total", "weights")

    def __init__(self, weights: Sequence[int]) -> None:
        self.weights = tuple(int(w) for w in weights)
        if any(w < 0 for w in self.weights):
            raise ProbabilityError("a law has a negative weight")
        sums = list(accumulate(self.weights))
        if not sums or sums[-1] == 0:
            raise ProbabilityError("a law needs at least one positive weight")
        self.total = sums[-1]
        # The last boundary is 1 itself, which no U reaches.
        self._sums = sums[:-1]
        scaled = [divmod(s * WORD, self.total) for s in self._sums]
        # A boundary at 1 (trailing outcomes of weight zero) lies beyond every word.
        self._words = [min(word, WORD - 1) for word, _ in scaled]
        self._unsettled = [rest != 0 or word == WORD for word, rest in scaled]
        self._thresholds: NDArray[np.uint64] = np.array(self._words, dtype=np.uint64)

    def __len__(self) -> int:
        return len(self.weights)

    def choose(self, word: int, more: Callable[[], int]) -> int:
        """The outcome for a number that starts with `word`; `more` gives further words on a tie."""
        outcome = bisect_right(self._words, word)
        if outcome and self._words[outcome - 1] == word and self._unsettled[outcome - 1]:
            return self._settle(word, more)
        return outcome

    def choose_many(self, words: NDArray[np.uint64], more: Callable[[], int]) -> NDArray[np.int64]:
        """`choose` for an array of first words."""
        outcomes = np.searchsorted(self._thresholds, words, side="right").astype(np.int64)
        if self._thresholds.size:
            before = np.maximum(outcomes - 1, 0)
            ties = np.flatnonzero((self._thresholds[before] == words) & (outcomes > 0))
            for i in ties:
                outcomes[i] = self.choose(int(words[i]), more)
        return outcomes

    def _settle(self, word: int, more: Callable[[], int]) -> int:
        digits, scale = word, WORD
        while True:
            # U lies in [digits, digits + 1) / scale: the outcome is known when no boundary is inside.
            low = digits * self.total // scale
            high = -(-(digits + 1) * self.total // scale)
            first, last = bisect_right(self._sums, low), bisect_left(self._sums, high)
            if first >= last:
                return first
            digits = (digits << WORD_BITS) | more()
            scale <<= WORD_BITS


class KnownBoundaries(Law):
    """A law whose boundaries are known by their first words; its weights are built only when a tie needs them.

    `words` holds floor(2^64 C_j / D) for j = 1 .. m - 1, `unsettled` whether something was cut off.
    """

    __slots__ = ("_flags", "_make", "_whole")

    def __init__(
        self, words: NDArray[np.uint64], unsettled: NDArray[np.bool_], make: Callable[[], Sequence[int]]
    ) -> None:
        self._thresholds = words
        self._flags = unsettled
        self._make = make
        self._whole: Law | None = None

    def _exact(self) -> Law:
        if self._whole is None:
            self._whole = Law(self._make())
        return self._whole

    @property
    def weights(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._exact().weights

    @property
    def total(self) -> int:  # type: ignore[override]
        return self._exact().total

    def __len__(self) -> int:
        return self._thresholds.size + 1

    def choose(self, word: int, more: Callable[[], int]) -> int:
        outcome = int(np.searchsorted(self._thresholds, np.uint64(word), side="right"))
        if outcome and int(self._thresholds[outcome - 1]) == word and self._flags[outcome - 1]:
            return self._exact()._settle(word, more)
        return outcome

"""Every type of n observations, in blocks: the exact error of any test that ignores their order.

A type says how often each output occurred; n observations over r outputs have C(n + r - 1, r - 1) types against r^n
sequences. For laws given by their logarithms (one row a law), `types` yields the log-probabilities of the types.
Partial types that have used up their n observations leave at once, so the work is at most twice the number of types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from deniable.channels._vectors import Floats
from deniable.channels.hypothesis._pair import Pair

MOST_TYPES = 10**7
_BLOCK = 2**19

Progress = Callable[[float], object]


def count_types(n: int, outputs: int) -> int:
    """C(n + outputs - 1, outputs - 1)."""
    return math.comb(n + outputs - 1, outputs - 1) if outputs else 0


def types(n: int, logs: Floats, progress: Progress | None = None) -> Iterator[Floats]:
    """Blocks of shape (laws, types): log-probabilities under each law of all types of n observations."""
    from scipy.special import gammaln

    laws, outputs = logs.shape
    total, done = count_types(n, outputs), 0
    log_factorial = gammaln(np.arange(n + 1) + 1.0)
    stack = [(0, np.array([n]), np.full((laws, 1), log_factorial[n]))]
    while stack:
        output, left, sums = stack.pop()
        last = output == outputs - 1
        if not last and left.size > 1 and int(left.sum()) + left.size > _BLOCK:
            half = left.size // 2
            stack.append((output, left[half:], sums[:, half:]))
            stack.append((output, left[:half], sums[:, :half]))
            continue
        if last:
            counts, parent = left, np.arange(left.size)
        else:
            parent = np.repeat(np.arange(left.size), left + 1)
            starts = np.cumsum(left + 1) - (left + 1)
            counts = np.arange(parent.size) - starts[parent]
        sums = sums[:, parent] - log_factorial[counts]
        for law, log in zip(sums, logs[:, output], strict=True):
            if log == -math.inf:
                law[counts > 0] = -math.inf
            else:
                law += counts * log
        rest = left[parent] - counts
        ended = rest == 0
        block = sums[:, ended]
        if block.size:
            done += block.shape[1]
            if progress is not None:
                progress(done / total)
            yield block
        if not ended.all():
            stack.append((output + 1, rest[~ended], sums[:, ~ended]))


def bayes_by_types(pair: Pair, n: int, prior: float, progress: Progress | None = None) -> tuple[float, float]:
    """Type-I and type-II error of the Bayes test; ties go to the first hypothesis."""
    threshold = math.log1p(-prior) - math.log(prior)
    one: list[float] = []
    two: list[float] = []
    for log0, log1 in types(n, np.log(np.stack([pair.p, pair.q])), progress):
        says_one = log0 - log1 < threshold
        one.append(float(np.exp(log0[says_one]).sum()))
        two.append(float(np.exp(log1[~says_one]).sum()))
    return math.fsum(one), math.fsum(two)


def level_by_types(pair: Pair, n: int, level: float, progress: Progress | None = None) -> tuple[float, float]:
    """Type-I and type-II error of the most powerful randomized test of that type-I error."""
    blocks = [*types(n, np.log(np.stack([pair.p, pair.q])), progress)]
    log0, log1 = np.concatenate(blocks, axis=1)
    order = np.argsort(log0 - log1, kind="stable")
    used = np.cumsum(np.exp(log0[order]))
    cut = int(np.searchsorted(used, level))
    if cut == used.size:
        return float(used[-1]), 0.0
    before = float(used[cut - 1]) if cut else 0.0
    kept = (float(used[cut]) - level) / (float(used[cut]) - before)
    missed = np.exp(log1[order[cut:]])
    return level, float(missed[1:].sum() + kept * missed[0])

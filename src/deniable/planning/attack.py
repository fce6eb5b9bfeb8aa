"""How often the best guess of one person's answer is right, given the report and nothing else.

Model      every answer equally likely beforehand, so that guessing without a report is right with 1 / d; the
           attacker knows the protocol and guesses an answer that is most likely given the report
Formula    sum over reports y of max_v P(y | v) / d. A report that supports at least one answer counts with its larger
           probability, one that supports none with its smaller one: so what is needed is how many support none
Exact      from the realized probabilities, for every protocol here; the linear hashes of `OLH` and `BLH` do a few
           percent better for the respondent than random ones, and the count below is theirs
Source     the general formula is Bayes' rule; Gursoy et al. 2022 has approximations for several protocols
"""

from __future__ import annotations

import math

from deniable.protocols import GRR, HadamardResponse, SubsetSelection
from deniable.protocols.frequency.local_hashing import LocalHashing
from deniable.protocols.frequency.unary import UnaryProtocol


def response(protocol: GRR) -> float:
    """The report is the best guess."""
    return float(protocol.p)


def unary(protocol: UnaryProtocol) -> float:
    """Any answer whose bit is set; all bits are clear with probability (1 - p) (1 - q)^(d - 1)."""
    d, p, q = protocol.domain.size, float(protocol.p), float(protocol.q)
    some = -math.expm1(d * math.log1p(-q))
    return p * some / (d * q) + (1 - p) * math.exp((d - 1) * math.log1p(-q)) / d


def subset(protocol: SubsetSelection) -> float:
    """Any member of the subset."""
    return float(protocol.p / protocol.subset_size)


def linear_hash(protocol: LocalHashing) -> float:
    """Any answer with the reported hash; of the 2^r hashes, those of no answer are a smaller number."""
    g, lie = 1 << protocol.hash_bits, float(protocol.response.false)
    used = mean_image(protocol.domain.size, protocol.hash_bits)
    return (float(protocol.p) * used + lie * (g - used)) / protocol.domain.size


def mean_image(size: int, rows: int) -> float:
    """The mean number of different hashes A v of v = 0 .. size - 1, A a uniform bit matrix with so many rows.

    One bit of v at a time, from the lowest: `chance[m]` is the probability that the columns so far span m dimensions,
    `image[m]` the mean number of hashes of 0 .. (size mod 2^k) - 1 in that case. Where bit k of the size is set, all
    2^m values of the span are hashes, and the next column adds a shifted copy of those so far if it leaves the span.

    >>> mean_image(2, 1), mean_image(16, 2), mean_image(5, 2)
    (1.5, 3.63671875, 3.015625)
    """
    chance, image = [1.0] + [0.0] * rows, [0.0] * (rows + 1)
    for k in range(size.bit_length()):
        lit = size >> k & 1
        next_chance, next_image = [0.0] * (rows + 1), [0.0] * (rows + 1)
        for m in range(rows + 1):
            inside = 2.0 ** (m - rows)
            spanned = 2.0**m * chance[m]
            next_chance[m] += inside * chance[m]
            next_image[m] += inside * (spanned if lit else image[m])
            if m < rows:
                next_chance[m + 1] += (1 - inside) * chance[m]
                next_image[m + 1] += (1 - inside) * (spanned * lit + image[m])
        chance, image = next_chance, next_image
    return math.fsum(image)


def hadamard(protocol: HadamardResponse) -> float:
    """Any answer that the output supports; in a block of one or two answers some columns support none."""
    blocks, width, keep = protocol.blocks, protocol.block_size, float(protocol.response.keep)
    lie = (1 - keep) / (blocks * width)
    full, longer = divmod(protocol.domain.size, blocks)
    # With one answer (row 1) half of the columns are odd, with two (rows 1 and 2) a quarter is odd for both, and
    # with three no column is odd for all, because row 3 is the sum of the other two.
    empty = {1: width / 2, 2: width / 4}
    without = longer * empty.get(full + 1, 0.0) + (blocks - longer) * empty.get(full, 0.0)
    return ((blocks * width - without) * (2 * keep / width + lie) + without * lie) / protocol.domain.size

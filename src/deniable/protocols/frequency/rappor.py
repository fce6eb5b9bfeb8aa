"""RAPPOR, reported once: a Bloom filter of the text, every bit flipped with the same probability.

The device draws a cohort, marks the h positions of its text in a filter of B bits, and flips each bit with
probability f. Two filters differ in up to 2 h bits, when they have no position in common, and epsilon counts them
all: a filter with more hashes needs more noise.

Law        bits are independent: set with probability 1 - f at the text's h positions, with f elsewhere;
           f = ceil(2^64 / (s + 1)) / 2^64, s = e^(epsilon / (2 h))
Privacy    ((1 - f) / f)^(2 h) <= e^epsilon, for two filters without a common position; 2 h <= B, so there are such
Positions  digest = SHA-256("deniable-bloom-v1" NUL key NUL cohort NUL text), text and key as for `Strings`. Position
           i = 0 .. h - 1 is the free position of number (bytes 4 i .. 4 i + 3, little-endian) mod (B - i), so that they
           are different by construction, and the device's work does not depend on its text
Error      of a count, by itself: n w / (h (1 - h / B)) + sum over x != v of [n_x^2 / k + n_x (1 - 1 / k)] / (B - 1),
           with w = f (1 - f) / (1 - 2 f)^2; candidates that are fitted together leave the sum
Report     the cohort in 1 or 2 bytes, then the bitmap: bit b is bit b % 8 of byte b // 8, padding zero
Draws      the cohort, packed(f) over the B bits, then one bernoulli(1 - f) for each position in ascending order
Tally      reports of each cohort, then how often each bit was set: k (B + 1) counters
Source     Erlingsson, Pihur and Korolova 2014. With `first` and `forever` it is RAPPOR in full, whose second,
           instantaneous randomization protects repeated reports: `longitudinal.unary`

From counted filters to counts of strings: regression on the candidates' filters.

Model      of the N_j people in cohort j, y_jb = (N_j / n) sum over x of n_x X_jbx have bit b in their filter, on
           average; X is 1 at the h positions of string x. Every filter has h bits, so the mean over the B bits says
           nothing, and both sides are centred. Strings that are not listed then add h / B - h / B = 0 on average over
           the keys: an incomplete dictionary does not bias the estimate
Fit        G = sum of N_j (X_j^T X_j - h^2 / B), r = X^T y, counts = n G^-1 r: least squares with weights 1 / N_j
Error      noise      n^2 w G^-1, w the variance that flipping adds to one bit of one person; larger where the
                      residuals show more than flipping (unlisted strings that share bits)
           cohorts    who is in which cohort is chance as well: with P_j = n G^-1 (X_j^T X_j - h^2 / B),
                      sum of N_j / n [sum_x n_x P_jvx^2 - (sum_x n_x P_jvx)^2 / n] - (n_v - n_v^2 / n)
Lasso      with more candidates than the filters can tell apart, a non-negative lasso with the universal penalty
           sqrt(2 ln d) standard errors chooses which are fitted together; each other one is then estimated as if it
           alone were added to those. Choosing and estimating from the same data favours the chosen slightly
Source     Erlingsson, Pihur and Korolova 2014; Tibshirani 1996; Beck and Teboulle 2009 (the iteration)
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.channels.inference.em import MatrixModel, Model
from deniable.domains import Categories, DomainLike, Strings
from deniable.domains.text import as_key, text_digest
from deniable.errors import DomainError, NumberError
from deniable.exact import WORD, Dyadic, Number
from deniable.labels import Label
from deniable.protocols.blanket import Blanket, power, supporting
from deniable.protocols.frequency.bit_rows import positional_popcount, row_weights, usual_weights
from deniable.protocols.frequency.open_text import (
    COLLIDES,
    MOST_COUNTERS,
    TextEstimate,
    TextProtocol,
    as_text,
    cohort_step,
)
from deniable.protocols.frequency.unary import bitmap_operations, packed_bytes, padding_is_zero, set_bits
from deniable.protocols.law import Law
from deniable.protocols.protocol import Positions, Protocol, kind_named, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, Reports
from deniable.protocols.structures import Hashed
from deniable.protocols.tally import Counts, Tally
from deniable.protocols.traits import Traits
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits
from deniable.results import Weights
from deniable.results.bounds import Numbers
from deniable.words import Fact, word

Method = Literal["auto", "least-squares", "non-negative", "lasso"]

_MOST = {"bloom_bits": 1 << 16, "hashes": 8, "cohorts": 1 << 16}


@dataclass(frozen=True)
class RAPPOR(TextProtocol):
    """One-time RAPPOR. One hash has the smallest error; two is what the first deployment used.

    With `first` and `forever`, the epsilons of one report and of a kept state, it is `LRAPPOR`.

    Args:
        domain: `Strings` for any text, or a list of answers.
        epsilon: Largest epsilon of a report; not together with `first`.
        bloom_bits: Size of the Bloom filter.
        hashes: Number of hash functions.
        cohorts: Number of sets of hash functions.
        key: Selects the hash functions for a list of answers; open text brings its own.

    >>> protocol = RAPPOR(Strings(), epsilon=4)
    >>> protocol.report_bytes, protocol.tally_size, round(float(protocol.flip), 4)
    (17, 1032, 0.2689)
    """

    name: ClassVar[str] = "RAPPOR"
    traits: ClassVar[Traits] = Traits(waived=lambda protocol: protocol._waived())

    bloom_bits: int = 128
    hashes: int = 2
    cohorts: int = 8
    key: Any = field(default=None, kw_only=True)

    if TYPE_CHECKING:

        def __init__(
            self,
            domain: DomainLike,
            epsilon: Number | None = None,
            bloom_bits: int = 128,
            hashes: int = 2,
            cohorts: int = 8,
            *,
            first: Number | None = None,
            forever: Number | None = None,
            key: str | None = None,
        ) -> None: ...

    def __new__(cls, *args: Any, **given: Any) -> Self:
        """With `first` and `forever` it is RAPPOR in full: a filter that is kept, and flipped again for each report."""
        if cls is RAPPOR and not {"first", "forever"}.isdisjoint(given):
            return object.__new__(kind_named("LRAPPOR"))  # type: ignore[return-value]
        return object.__new__(cls)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, most in _MOST.items():
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
                raise NumberError(f"{name} is a whole number between 1 and {most}")
        if 2 * self.hashes > self.bloom_bits:
            raise NumberError(f"{self.hashes} hashes need a filter of at least {2 * self.hashes} bits")
        if self.tally_size > MOST_COUNTERS:
            raise NumberError(f"these are {self.tally_size} counters, more than 2^28: take fewer bits or cohorts")
        key = as_key("" if self.key is None else self.key)
        if isinstance(self.domain, Strings):
            if self.key is not None and key != self.domain.key:
                raise DomainError("open text brings its own key: give it to dn.Strings")
            key = self.domain.key
        object.__setattr__(self, "key", key)

    @cached_property
    def flip(self) -> Dyadic:
        """P(a bit is flipped)."""
        return Dyadic.ceil_of(lambda s: 1 / (s + 1), self.epsilon / (2 * self.hashes))

    @property
    def sent_flip(self) -> Fraction:
        """P(a bit of a report is another than that of the filter)."""
        return self.flip.value

    def _blankets(self) -> tuple[Blanket, ...]:
        """One pair of bits for each hash function: filters without a common position are the worst."""
        flip = self.sent_flip
        odds = (1 - flip) / flip
        return (power(supporting(1 / odds, odds**2, flip**2 / odds), self.hashes),)

    def parameters(self) -> dict[str, Any]:
        sizes = {"bloom_bits": self.bloom_bits, "hashes": self.hashes, "cohorts": self.cohorts}
        return sizes if self.is_open else sizes | {"key": self.key}

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(["rye", "sourdough", "naïve"], 1, 4, 1, 2)
        yield cls(["rye", "sourdough", "naïve", "baguette", "食パン", ""], 1, 4, 2, 2)

    def _waived(self) -> Mapping[str, str]:
        if self.hashes == 1:
            return COLLIDES
        return {
            **COLLIDES,
            "support": "Bloom filters overlap in part: there are more than two likelihoods",
        }

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        return [cohort_step(self.cohorts, self.bloom_bits), self._filter_step()]

    def _filter_step(self) -> Fact:
        chance = percent(float(self.flip))
        return word("story.filter", hashes=str(self.hashes), width=self.bloom_bits, chance=chance)

    @property
    def cohort_count(self) -> int:
        return self.cohorts

    @property
    def _block(self) -> int:
        return self.bloom_bits

    def _closed(self, labels: Sequence[Label]) -> Self:
        return replace(self, domain=Categories(labels), key=self.key)

    def positions(self, text: str, cohort: int) -> list[int]:
        """The bits of a text (NFC) in one cohort, ascending."""
        digest = text_digest("bloom", self.key, cohort, text)
        chosen: list[int] = []
        for i in range(self.hashes):
            place = int.from_bytes(digest[4 * i : 4 * i + 4], "little") % (self.bloom_bits - i)
            for taken in chosen:
                place += place >= taken
            insort(chosen, place)
        return chosen

    # -- the device --------------------------------------------------------------------------------

    def _one_text(self, text: str, cohort: int, bits: Bits) -> bytes:
        row = bits.lanes(self.flip, self.bloom_bits)
        for place in self.positions(text, cohort):
            row |= 1 << place
            if not bits.bernoulli(self.flip.complement):
                row ^= 1 << place
        return row.to_bytes(-(-self.bloom_bits // 8), "little")

    def _many_texts(self, labels: Sequence[Label], which: Positions, cohorts: Positions, bits: Bits) -> Bytes:
        pairs, where = np.unique(which * self.cohorts + cohorts, return_inverse=True)
        filters = [
            self.positions(as_text(labels[pair // self.cohorts]), pair % self.cohorts) for pair in pairs.tolist()
        ]
        places = np.array(filters, dtype=np.int64).reshape(-1, self.hashes)[where]
        rows = bits.packed(self.flip, self.bloom_bits, which.size)
        for i in range(self.hashes):
            set_bits(rows, places[:, i], bits.bernoulli(self.flip.complement, which.size))
        return rows

    # -- the collector -----------------------------------------------------------------------------

    def _plausible(self, reports: Reports | Bytes) -> NDArray[np.bool_]:
        rows = self._rows(reports)
        others = self.bloom_bits - self.hashes
        low, high = usual_weights(others, float(self.sent_flip), more=self.hashes)
        weights = row_weights(np.ascontiguousarray(self._split(rows)[1]))
        return self.valid(rows) & (weights >= low) & (weights <= high)

    def _valid_rest(self, reports: Bytes) -> NDArray[np.bool_]:
        return padding_is_zero(reports, self.bloom_bits)

    @property
    def _has_lanes(self) -> bool:
        return True

    def _forged_rest(self, texts: Sequence[str], cohort: int) -> Bytes:
        flags = np.zeros((1, self.bloom_bits), dtype=np.uint8)
        for text in texts:
            flags[0, self.positions(text, cohort)] = 1
        return np.packbits(flags, axis=1, bitorder="little")

    def _any_rest(self, count: int, bits: Bits) -> Bytes:
        return bits.packed(Dyadic(WORD // 2), self.bloom_bits, count)

    def _count_rest(self, reports: Bytes) -> Counts:
        return positional_popcount(reports)[: self.bloom_bits]

    def _filters(self, labels: Sequence[Label]) -> Positions:
        """The positions of each label in each cohort: labels x cohorts x hashes."""
        texts = [as_text(label) for label in labels]
        return np.array([[self.positions(text, j) for j in range(self.cohorts)] for text in texts], dtype=np.int64)

    def _hits(self, reports: Bytes, cohorts: Positions, labels: Sequence[Label]) -> NDArray[np.int64]:
        """How many of each label's positions are set in each report."""
        lanes = np.unpackbits(reports, axis=1, count=self.bloom_bits, bitorder="little")
        filters = self._filters(labels)
        hits = [np.take_along_axis(lanes, filters[v, cohorts], axis=1).sum(axis=1) for v in range(len(labels))]
        return np.array(hits, dtype=np.int64).T

    def _supports(self, reports: Bytes, cohorts: Positions, labels: Sequence[Label]) -> NDArray[np.bool_]:
        # The filter's own question: are all positions set? With one hash that is where the likelihood is larger.
        supported: NDArray[np.bool_] = self._hits(reports, cohorts, labels) == self.hashes
        return supported

    def _likelihoods(self, reports: Bytes) -> Model:
        cohorts, rest = self._split(reports)
        odds = float((1 - self.sent_flip) / self.sent_flip) ** 2
        hits = self._hits(rest, cohorts, self.domain.labels).T.astype(np.float64)
        return MatrixModel(np.power(odds, hits - self.hashes))

    # -- the analyst -------------------------------------------------------------------------------

    def estimate(self, tally: Tally, candidates: Any = None, method: Method = "auto") -> TextEstimate:
        """Counts of the candidates, with error bars.

        "least-squares" fits all candidates together and is unbiased; "lasso" chooses which to fit together, for more
        candidates than the filters can tell apart; "auto" takes the one or the other. "non-negative" is the least
        squares fit without negative counts: biased, with the error bars of the unbiased one.
        """
        if method not in get_args(Method):
            raise NumberError(f"there is no decoder {method!r}: use one of {', '.join(get_args(Method))}")
        self._check_tally(tally)
        return replace(self.infer(tally, candidates, method), check=partial(self.misfit, tally))

    def infer(self, tally: Tally, candidates: Any = None, method: Method = "auto") -> TextEstimate:
        labels = self._candidates(candidates)
        return self._decode(tally, labels, method) if tally.n else TextEstimate.nothing(labels, self.name)

    @property
    def _extremes(self) -> tuple[float, float]:
        return float(self.sent_flip), 1 - float(self.sent_flip)

    def _binomials(self, block: Counts) -> Counts:
        return block

    def _decode(self, tally: Tally, labels: Sequence[Label], method: Method = "auto") -> TextEstimate:
        sizes, blocks = self._parts(tally.counts)
        flip = float(self.sent_flip)
        shifted = (blocks - flip * sizes[:, None]) / (1 - 2 * flip)
        data = Cohorts.of(self._filters(labels), sizes, shifted, self._noise)
        few = len(labels) <= data.capacity
        if method == "lasso" or (method == "auto" and not few):
            found, name = fit(data, select(data)), "lasso, then least squares"
        elif few:
            found, name = fit(data, np.arange(len(labels))), "least squares"
        else:
            raise NumberError(
                f"{len(labels)} candidates are more than the {data.capacity} that these filters tell apart: "
                'use method="lasso", or more bits or cohorts in the next collection'
            )
        reach = found.moved / (1 - 2 * flip)
        unbiased = TextEstimate(
            labels,
            tally.n,
            found.counts,
            found.variance,
            self.name,
            name,
            unlisted_noise=found.unlisted_stderr,
            weights=Weights(-reach, reach),
            bounds=Numbers.between(-reach, reach, found.counts / tally.n, tally.n),
        )
        if method != "non-negative":
            return unbiased
        counts = non_negative(data)
        return replace(unbiased, counts=counts, method="non-negative least squares", raw=unbiased)

    @property
    def _noise(self) -> float:
        """The variance that flipping adds to a bit of one person."""
        flip = float(self.sent_flip)
        return flip * (1 - flip) / (1 - 2 * flip) ** 2

    def variance(
        self, n: int, frequency: ArrayLike = 0.0, population: bool = True, others: ArrayLike | None = None
    ) -> Any:
        """The variance of the estimated count of a single candidate, over noise, cohorts and keys.

        `others` is the sum of the squared frequencies of the other strings; without it, the worst case (1 - f)^2, in
        which all others hold one string.
        """
        f = np.asarray(frequency, dtype=np.float64)
        squares = (1 - f) ** 2 if others is None else np.asarray(others, dtype=np.float64)
        k, width, h = self.cohorts, self.bloom_bits, self.hashes
        noise = n * self._noise / (h * (1 - h / width))
        spread = noise + (float(n) ** 2 * squares / k + n * (1 - f) * (1 - 1 / k)) / (width - 1)
        if population:
            spread = spread + n * f * (1 - f)
        return float(spread) if np.ndim(spread) == 0 else spread

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            formula_for="one answer alone",
            cost=lambda: Cost(
                WORD_BYTES * (1 + self.hashes) + packed_bytes(self.bloom_bits), 1 + bitmap_operations(self.bloom_bits)
            ),
            # For a single candidate: all bits of its filter in a cohort are set, and no others.
            leverage=lambda: 1 / (1 - 2 * float(self.sent_flip)),
            moved=lambda: 2 * self.worth().leverage,
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            structure=lambda: Hashed("positions", self.bloom_bits, self.hashes),
            ratio=lambda: ((1 - self.sent_flip) / self.sent_flip) ** (2 * self.hashes),
            blankets=self._blankets,
            width=lambda: self._cohort_bytes + -(-self.bloom_bits // 8),
            plausible=self._plausible,
        )


Floats = NDArray[np.float64]

LARGEST_FIT = 1500
_SHARE = 0.8  # of the dimensions, as in the published decoder: beyond, errors explode
_STEPS = 500
_SINGULAR = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Cohorts:
    """The candidates' filters and what was seen."""

    design: Any
    """Sparse, (cohorts * bits) x candidates."""
    sizes: Floats
    seen: Floats
    """Centred number of people with each bit, cohorts x bits."""
    hashes: int
    noise: float

    @classmethod
    def of(cls, filters: NDArray[np.int64], sizes: Counts, shifted: Floats, noise: float) -> Cohorts:
        from scipy.sparse import csc_array

        candidates, cohorts, hashes = filters.shape
        bits = shifted.shape[1]
        rows = (filters + bits * np.arange(cohorts)[:, None]).reshape(-1)
        starts = np.arange(candidates + 1) * cohorts * hashes
        design = csc_array((np.ones(rows.size), rows, starts), shape=(cohorts * bits, candidates))
        return cls(design, sizes.astype(np.float64), shifted - shifted.mean(axis=1, keepdims=True), hashes, noise)

    @property
    def n(self) -> float:
        return float(self.sizes.sum())

    @property
    def bits(self) -> int:
        return int(self.seen.shape[1])

    @property
    def dimensions(self) -> int:
        return int((self.sizes > 0).sum()) * (self.bits - 1)

    @property
    def capacity(self) -> int:
        """How many candidates can be fitted together."""
        return max(1, min(LARGEST_FIT, int(_SHARE * self.dimensions)))

    @property
    def moments(self) -> Floats:
        """r = X^T y."""
        moments: Floats = self.design.T @ self.seen.reshape(-1)
        return moments

    @property
    def diagonal(self) -> float:
        """Every G_vv."""
        return self.n * self.hashes * (1 - self.hashes / self.bits)

    def gram(self, left: Any, right: Any, weights: Floats) -> Floats:
        """X_left^T X_right, cohorts weighted, with the centring."""
        per_row = np.repeat(weights, self.bits)
        product = (left.T @ (right.multiply(per_row[:, None]))).toarray()
        gram: Floats = product - weights.sum() * self.hashes**2 / self.bits
        return gram

    def times_gram(self, point: Floats) -> Floats:
        """G @ point, without G."""
        image = np.repeat(self.sizes, self.bits) * (self.design @ point)
        product: Floats = self.design.T @ image - self.n * self.hashes**2 / self.bits * point.sum()
        return product


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    counts: Floats
    variance: Floats
    unlisted_stderr: float
    moved: Floats
    """How far the bits of one report can move each share, times n; before they are enlarged for the flips."""


def fit(data: Cohorts, chosen: NDArray[np.int64]) -> Fitted:
    """Least squares of the chosen candidates together, and of each other one added alone."""
    n, total, moments = data.n, data.design.shape[1], data.moments
    others = np.setdiff1d(np.arange(total), chosen)
    active, rest = data.design[:, chosen], data.design[:, others]
    inverse, unknown = _inverse(data.gram(active, active, data.sizes))
    shared = data.gram(rest, active, data.sizes)
    across = shared @ inverse
    # What is left of each other candidate once the chosen ones have explained their part of its filters.
    left = data.diagonal - np.einsum("ij,ij->i", across, shared)
    left[left < _SINGULAR * data.diagonal] = np.inf

    counts, scale = np.empty(total), np.empty(total)
    counts[chosen] = n * inverse @ moments[chosen]
    counts[others] = n * (moments[others] - across @ moments[chosen]) / left
    scale[chosen] = np.where(unknown, np.inf, np.diag(inverse))
    scale[others] = np.where(np.isinf(left), np.inf, 1 / left)
    noise = n**2 * data.noise * _excess(data, active, counts[chosen])

    held = np.clip(counts[chosen], 0, n)
    chance = [np.zeros(len(chosen)), np.zeros(len(others)), np.zeros(1)]  # for the chosen, the others, the sum
    moved = np.zeros(total)
    for j in np.flatnonzero(data.sizes):
        cohort = np.zeros(data.sizes.size)
        cohort[j] = 1.0
        own = data.gram(active, active, cohort)
        together = inverse @ own
        alone = (data.gram(rest, active, cohort) - across @ own) / left[:, None]
        bits = slice(j * data.bits, (j + 1) * data.bits)
        seen, hidden = active[bits].T, rest[bits].T
        each = ((chosen, n * (inverse @ seen)), (others, n * (hidden.toarray() - across @ seen) / left[:, None]))
        for places, weights in each:
            centred = weights - weights.mean(axis=1, keepdims=True)
            moved[places] = np.maximum(moved[places], np.abs(centred).sum(axis=1) / 2)
        for spread, mixing in zip(chance, (together, alone, together.sum(axis=0, keepdims=True)), strict=True):
            spread += n * data.sizes[j] * (mixing**2 @ held - (mixing @ held) ** 2 / n)

    variance = noise * scale
    variance[chosen] += np.maximum(chance[0] - held + held**2 / n, 0)
    variance[others] += chance[1]
    sum_variance = noise * float(inverse.sum()) + max(0.0, float(chance[2][0]) - held.sum() + held.sum() ** 2 / n)
    return Fitted(counts, variance, math.sqrt(sum_variance + float(variance[others].sum())) / n, moved)


def _inverse(gram: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The (pseudo-)inverse, and which candidates it says nothing about."""
    try:
        pivots = np.diag(np.linalg.cholesky(gram)) ** 2
        if pivots.size == 0 or pivots.min() > _SINGULAR * pivots.max():
            return np.asarray(np.linalg.inv(gram), dtype=np.float64), np.zeros(len(gram), dtype=np.bool_)
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(gram)
    good = values > _SINGULAR * max(1.0, float(values[-1]))
    inverse = vectors[:, good] / values[good] @ vectors[:, good].T
    unknown: NDArray[np.bool_] = np.square(vectors[:, ~good]).sum(axis=1) > _SINGULAR
    return inverse, unknown


def _excess(data: Cohorts, active: Any, counts: Floats) -> float:
    """How much larger the residuals are than flipping explains, at least 1."""
    image = (active @ counts).reshape(data.seen.shape)
    image = (image - image.mean(axis=1, keepdims=True)) * (data.sizes / data.n)[:, None]
    there = data.sizes > 0
    squares = float((np.square(data.seen - image)[there].sum(axis=1) / data.sizes[there]).sum())
    freedom = data.dimensions - counts.size
    return max(1.0, squares / (freedom * data.noise)) if freedom > 0 else 1.0


def select(data: Cohorts) -> NDArray[np.int64]:
    """The candidates that the lasso keeps, at most half as many as there are dimensions."""
    shares = lasso(data)
    order = np.argsort(-shares, kind="stable")[: min(data.capacity, max(1, data.dimensions // 2))]
    kept: NDArray[np.int64] = np.sort(order[shares[order] > 0])
    return kept


def penalty(data: Cohorts) -> float:
    """The largest of d correlations that noise alone reaches, about."""
    return math.sqrt(2 * math.log(max(2, data.design.shape[1])) * data.noise * data.diagonal)


def lasso(data: Cohorts) -> Floats:
    """The shares b >= 0 that minimize b^T G b / 2 - b^T r + penalty * sum of b, by accelerated proximal steps."""
    moments, price, largest = data.moments, penalty(data), _largest_eigenvalue(data)
    point = np.zeros(moments.size)
    ahead, momentum = point, 1.0
    for _ in range(_STEPS):
        slope = data.times_gram(ahead) - moments + price
        moved = np.maximum(0.0, ahead - slope / largest)
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        step = moved - point
        # Restart where the momentum points uphill.
        if float(slope @ step) > 0:
            following = momentum = 1.0
        ahead = moved + (momentum - 1) / following * step
        settled = float(np.abs(step).max()) < 1e-7 * max(1e-9, float(moved.max()))
        point, momentum = moved, following
        if settled:
            break
    return point


def _largest_eigenvalue(data: Cohorts) -> float:
    """An upper estimate, by the power iteration."""
    vector = np.random.default_rng(0).random(data.design.shape[1]) + 0.5
    value = data.diagonal
    for _ in range(30):
        vector = data.times_gram(vector / np.linalg.norm(vector))
        value = float(np.linalg.norm(vector))
        if value == 0:
            return data.diagonal
    return 1.2 * max(value, data.diagonal)


def non_negative(data: Cohorts) -> Floats:
    """Least squares counts without negative ones."""
    from scipy.optimize import nnls

    values, vectors = np.linalg.eigh(data.gram(data.design, data.design, data.sizes))
    good = values > _SINGULAR * max(1.0, float(values[-1]))
    root = np.sqrt(values[good])
    shares, _ = nnls(root[:, None] * vectors[:, good].T, (vectors[:, good].T @ data.moments) / root)
    counts: Floats = data.n * shares
    return counts

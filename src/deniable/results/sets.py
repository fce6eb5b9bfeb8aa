"""Shares of the items of sets, with set sizes, and sets of items that occur together.

Items      each share refers to the people who have the item: the shares do not sum to one
Cut        if sets may be larger than what a device reports, a share refers to the reported items: an item of a large
           set is drawn with reduced probability, and the sizes of the large sets are unknown. Every form of the
           table shows this: as the unit of its rows, and in its method
Top        the k items with the largest estimates were selected because they are large, and their intervals allow for
           it: given that a count lies above that of the best item left out, it has a truncated binomial law (if only
           errors are known, a truncated normal one), and the interval contains the shares under which it would not be
           extreme. So on average 95 of 100 selected items have their share in their interval; for an item that was
           just selected it reaches far down
Sizes      how many people have no item, one, two, ...; the last size includes all larger ones
Together   sets of items that were scored in another group of the respondents, so that selecting candidates by the
           shares of items does not affect their errors. lift = share of the set / product of the shares of its items.
           They are ranked by a best guess, between the unbiased share and the product, weighted by their errors
Means      of the numbers of keys: a ratio of two estimates, with the ratios that the reports do not exclude
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from deniable._extras import require
from deniable.errors import LabelError, MismatchError, NumberError
from deniable.labels import Label, shown, text
from deniable.results.base import Result, quantile
from deniable.results.bounds import Numbers, PairLaw, crossings, cut_ends, mean_ends
from deniable.results.rows import Drawing, Floats, Rows, View
from deniable.results.shares import Estimate
from deniable.words import Fact, Figure, Joined, said, word


@dataclass(frozen=True, eq=False, repr=False)
class ItemShares(Estimate):
    """Estimated shares of items, with those of set sizes and of sets of items.

    Args:
        sizes: How many people have each number of items.
        together: Sets of two items or more; None if they were not asked for.
        at_most: Number of items to which larger sets are cut at random; 0 if no set can be larger.
    """

    kind: ClassVar[str] = "items"
    is_whole: ClassVar[bool] = False

    sizes: Estimate | None = None
    together: TogetherShares | None = None
    at_most: int = 0

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        rows = super().table(level, simultaneous, population)
        return replace(rows, unit=OF_REPORTED) if self.at_most else rows

    def with_sizes(self, sizes: Estimate) -> ItemShares:
        return replace(self, sizes=sizes)

    @property
    def pairs(self) -> TogetherShares:
        """Sets of two items or more; raises MismatchError if no group of respondents was asked for them."""
        if self.together is None:
            raise MismatchError(
                "only single items were asked for: dn.ItemSets(domain, epsilon, largest=2) asks a group of the "
                "respondents for pairs"
            )
        return self.together

    def top(self, k: int) -> TopShares:
        """The k items with the largest estimates, with intervals that allow for the selection."""
        return TopShares.of(self, k)

    @property
    def notes(self) -> list[str]:
        found = super().notes
        if self.n and self.together is not None:
            found = [*found, said("result.guess")]
        if not self.n or not self.at_most:
            return found
        if self.sizes is None:
            return [*found, said("result.reported", n=self.at_most)]
        shares = np.clip([self.sizes.frequencies[-1], *self.sizes.interval()[-1]], 0.0, 1.0)
        share, low, high = (Figure(f"{100 * one:.0f}") for one in shares)
        return [*found, said("result.reported.share", n=self.at_most, share=share, low=low, high=high)]

    def consistent(self, method: str = "norm-sub") -> ItemShares:
        """Shares between 0 and 1; items do not exclude each other, so they need not sum to one."""
        from deniable.postprocess import named

        raw = self.raw or self
        named(method)
        counts = np.clip(raw.counts, 0.0, raw.n) if raw.n else raw.counts
        sizes = None if self.sizes is None else self.sizes.consistent(method)
        how = f"{OF_REPORTED}, between 0 and 1" if self.at_most else "between 0 and 1"
        return replace(self, counts=counts, method=how, raw=raw, sizes=sizes)

    def repeated(self, noise: float, people: float) -> ItemShares:
        sizes = None if self.sizes is None else self.sizes.repeated(noise, people)
        together = None if self.together is None else self.together.repeated(noise, people)
        return replace(super().repeated(noise, people), sizes=sizes, together=together)

    def _robust(self, fakes: int) -> Self:
        sizes = None if self.sizes is None else self.sizes.robust(fakes)
        together = None if self.together is None else self.together.robust(fakes)
        return replace(super()._robust(fakes), sizes=sizes, together=together)

    def drawings(self, view: View, rows: Rows, further: bool = True) -> list[Drawing]:
        found = super().drawings(view, rows, further)
        if further and self.sizes is not None:
            sizes = self.sizes.table(view.level, population=view.population)
            found.append(Drawing("sizes", "bars", sizes, "share", True))
        if further and self.together is not None:
            together = self.together.shown.table(view.level, population=view.population)
            found.append(Drawing("together", "matrix", together, "share", True))
        return found

    def __repr__(self) -> str:
        return f"<ItemShares of {len(self.labels)} items from {self.n} reports, {self.protocol}, {self.method}>"


@dataclass(frozen=True, eq=False, repr=False)
class TopShares(Estimate):
    """The figures with the largest estimates, the largest first; intervals allow for the selection.

    Args:
        cut: The largest estimated share that was left out.
        unit: What the figures are shares of.
    """

    kind: ClassVar[str] = "items"
    is_whole: ClassVar[bool] = False

    cut: float = -math.inf
    unit: str = ""

    @classmethod
    def of(cls, whole: Estimate, k: int) -> TopShares:
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= len(whole.labels):
            raise NumberError(f"the number of items to choose is between 1 and {len(whole.labels)}, not {k!r}")
        raw = whole.unbiased
        order = np.argsort(-raw.counts, kind="stable") if raw.n else np.arange(len(raw.labels))
        chosen = order[:k]
        cut = float(raw.counts[order[k]] / raw.n) if raw.n and k < order.size else -math.inf
        labels = [raw.labels[place] for place in chosen.tolist()]
        people = raw.people if np.ndim(raw.people) == 0 else np.asarray(raw.people)[chosen]
        known = raw.weights or (None if raw.support is None else raw.support.weights)
        unit = raw.table().unit
        more: dict[str, Any] = {"weights": known and known.of(chosen), "fakes": raw.fakes, "unit": unit}
        more |= {"bounds": raw.bounds and raw.bounds.of(chosen)}
        head = labels, raw.n, raw.counts[chosen], raw.noise[chosen], raw.protocol, f"{k} largest"
        return cls(*head, people=people, cut=cut, **more)

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        return replace(super().table(level, simultaneous, population), unit=self.unit)

    def interval(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Floats:
        if not self.n or math.isinf(self.cut):
            return super().interval(level, simultaneous, population)
        wrong = (1 - level) / (len(self.labels) if simultaneous else 1)
        errors = self.errors(population)
        if population and isinstance(self.bounds, Numbers) and self.bounds.values.shape[-1] == 2:
            ends = self.bounds.above(self.cut, 1 - wrong, errors)
        else:
            each = [cut_ends(x, s, self.cut, wrong) for x, s in zip(self.frequencies, errors, strict=True)]
            ends = np.array(each).reshape(-1, 2)
        found: Floats = np.clip(self._widened(ends, self.frequencies), 0.0, 1.0)
        return found


@dataclass(frozen=True, eq=False, repr=False)
class TogetherShares(Estimate):
    """Estimated shares of the people who have all items of a set, for candidate sets of two items or more.

    Args:
        sets: The items of each candidate.
        lift: How many times as common the set is as if its items were independent.
        lift_stderr: Standard error of the lift.
        guess: Shares by `best_guess`: biased, and without intervals.
    """

    kind: ClassVar[str] = "together"
    is_whole: ClassVar[bool] = False

    sets: Sequence[tuple[Label, ...]] = ()
    lift: Floats | None = None
    lift_stderr: Floats | None = None
    guess: Floats | None = None

    @property
    def blended(self) -> Floats:
        """The best guess of each share, which ranks better than the unbiased share; it is biased, without interval."""
        return self.unbiased.frequencies if self.guess is None else self.guess

    def likely(self, k: int) -> TogetherShares:
        """The k candidates that are most common by the best guess, `blended`, with their unbiased shares."""
        order = np.argsort(-np.nan_to_num(self.blended, nan=-1.0), kind="stable")[:k]
        return replace(self._take(order), method="unbiased, ranked by a best guess")

    @property
    def shown(self) -> TogetherShares:
        """The candidates that appear most common."""
        return self.likely(MOST_SHOWN)

    def top(self, k: int) -> TogetherShares:
        """The k candidates with the largest estimates; their intervals are those of all candidates."""
        order = np.argsort(-self.unbiased.counts, kind="stable")[:k] if self.n else np.arange(min(k, len(self.labels)))
        return replace(self._take(order), method="unbiased, ranked by the unbiased shares")

    def chosen(self, k: int) -> TopShares:
        """The k candidates with the largest estimates, with intervals that allow for the selection."""
        return TopShares.of(self, k)

    def _take(self, places: Any) -> TogetherShares:
        listed = places.tolist()
        return replace(
            self,
            labels=[self.labels[place] for place in listed],
            sets=[self.sets[place] for place in listed],
            counts=self.counts[places],
            noise=self.noise[places],
            weights=self.weights and self.weights.of(places),
            bounds=self.bounds and self.bounds.of(places),
            lift=None if self.lift is None else self.lift[places],
            lift_stderr=None if self.lift_stderr is None else self.lift_stderr[places],
            guess=None if self.guess is None else self.guess[places],
            raw=None if self.raw is None else self.raw._take(places),  # type: ignore[attr-defined]
        )

    def of(self, *items: Label) -> dict[str, Any]:
        """The row of one set, with its items in any order; raises LabelError if it is not a candidate."""
        wanted = set(items)
        for place, one in enumerate(self.sets):
            if set(one) == wanted:
                return self.table().records()[place]
        raise LabelError("this set is no candidate: its items are too rare, or it has another number of items")

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        rows = super().table(level, simultaneous, population)
        unknown = np.full(len(self.labels), math.nan)
        lift = unknown if self.lift is None else self.lift
        errors = unknown if self.lift_stderr is None else self.lift_stderr
        return replace(rows, more={**rows.more, "lift": lift, "lift_stderr": errors, "guess": self.blended})

    def consistent(self, method: str = "norm-sub") -> TogetherShares:
        raw = self.raw or self
        return replace(self, counts=np.clip(raw.counts, 0.0, max(raw.n, 0)), method="between 0 and 1", raw=raw)

    def matrix(self, items: Sequence[Label]) -> Floats:
        """Estimated shares of pairs as a matrix over these items; NaN if a pair is not a candidate."""
        place = {item: i for i, item in enumerate(items)}
        out = np.full((len(place), len(place)), math.nan)
        for one, share in zip(self.sets, self.frequencies, strict=True):
            if len(one) == 2 and one[0] in place and one[1] in place:
                i, j = place[one[0]], place[one[1]]
                out[i, j] = out[j, i] = share
        return out

    def plot_matrix(self, items: Sequence[Label], ax: Any = None) -> Any:
        """The matrix as a picture; returns the axes."""
        plt = require("matplotlib.pyplot", "plot")
        axes = ax if ax is not None else plt.subplots(layout="constrained")[1]
        shown = axes.imshow(np.clip(self.matrix(items), 0.0, 1.0), cmap="viridis", vmin=0.0)
        names = [text(item) for item in items]
        axes.set_xticks(range(len(names)), names, rotation=60, ha="right")
        axes.set_yticks(range(len(names)), names)
        axes.figure.colorbar(shown, ax=axes, label="share of the people who have both")
        return axes


MOST_SHOWN = 100

OF_REPORTED = "of reported items"
"""What shares refer to if sets are cut."""


_RATIOS = np.linspace(-1.0, 1.0, 65)
"""Means of keys to try, on the scale from -1 to 1."""
_SURE, _LEAST = 4.0, 0.05
"""Prior weight of a factor of one for pairs (one, give or take about a half); and the smallest factor."""
_CLEAR, _FINE, _PASSES = 6.0, 4, 200
"""Standard errors above which a share is not shrunk; steps of the prior per standard error; passes of its fit."""


def shrunk(shares: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """The mean and the mean square of each true share, given all estimates: among many, most of the largest are luck.

    By empirical Bayes: the prior of the true shares is fitted to the estimates by EM (nonparametric maximum
    likelihood, on a grid). Shares far above the noise are unchanged.

    >>> shares = np.append(np.random.default_rng(1).normal(size=999), 20.0)
    >>> means, _ = shrunk(shares, np.ones(1000))
    >>> bool(means[:999].max() < 2), float(means[999])
    (True, 20.0)
    """
    z = shares / errors
    clear = z > _CLEAR
    means, squares = np.where(clear, shares, 0.0), np.where(clear, shares**2 + errors**2, 0.0)
    if clear.all():
        return means, squares
    atoms = np.arange(_FINE * (_CLEAR + 2) + 1) / _FINE
    places, often = np.unique(np.round(np.maximum(z[~clear], -_CLEAR) * 2 * _FINE), return_counts=True)
    likely = np.exp(-np.square(places[:, None] / (2 * _FINE) - atoms) / 2)
    prior = np.full(atoms.size, 1 / atoms.size)
    for _ in range(_PASSES):
        prior *= (often / (likely @ prior)) @ likely / often.sum()
    after = np.exp(-np.square(np.maximum(z[~clear], -_CLEAR)[:, None] - atoms) / 2) * prior
    after /= after.sum(axis=1, keepdims=True)
    means[~clear], squares[~clear] = errors[~clear] * (after @ atoms), errors[~clear] ** 2 * (after @ atoms**2)
    return means, squares


def best_guess(shares: Floats, noise: Floats, products: Floats, squares: Floats) -> Floats:
    """Shares of sets, shrunk from the unbiased ones towards the products of the shares of their items.

    Products have little noise, but they are wrong by the association of the items. Both errors are estimated:
    `products` and `squares` are the mean and the mean square of each product given the evidence on the items
    (`shrunk`), and the association of items is estimated from all sets.
    """
    weight = 1 / np.maximum(noise, 1e-300)
    # Subsampling shrinks pairs more than items: one factor for all of them.
    factor = (float((weight * products * shares).sum()) + _SURE) / (float((weight * products**2).sum()) + _SURE)
    prior, square = max(_LEAST, factor) * products, max(_LEAST, factor) ** 2 * squares
    unknown = np.maximum(square - prior**2, 0.0)
    # The association of items is taken at its lower end: what may be noise is left to the products.
    worth = weight**2 * square
    apart, doubt = (shares - prior) ** 2 - noise - unknown, 2 * np.square(worth * (noise + unknown)).sum()
    spread = max(0.0, float((worth * apart).sum()) - math.sqrt(float(doubt))) / max(
        float((worth * square).sum()), 1e-300
    )
    own = unknown + spread * square
    found: Floats = prior + own / (own + noise) * (shares - prior)
    return found


def set_label(items: Sequence[Label]) -> str:
    """The items of a set, as one label."""
    return " & ".join(text(item) for item in items)


@dataclass(frozen=True, eq=False, repr=False)
class KeyShares(ItemShares):
    """Estimated shares of the people who have each key; like items, keys do not exclude each other."""

    kind: ClassVar[str] = "shares"


@dataclass(frozen=True, eq=False, repr=False)
class KeyMeans(Result):
    """The mean of the numbers of each key, among the people who have it: a ratio of two estimates.

    On the scale from -1 to 1: the numbers of a key sum to `sums`, per person, and `shares` of the people have it.

    Args:
        labels: The keys.
        n: Number of reports.
        shares: Estimated share of people who have each key.
        sums: Estimated sum of the numbers of each key, per person.
        share_noise: Variance of each share due to the protocol.
        sum_noise: Variance of each sum due to the protocol.
        noise_between: Covariance of share and sum due to the protocol.
        ends: Ends of the interval of numbers.
        protocol: Name of the protocol.
        method: Name of the estimator.
        unit: Unit of the numbers.
        people: Factor by which the sampling variance exceeds that of n different people.
        law: Probabilities that reports support the two ends of a key.
        worth: Number of independent reports that one report equals, for each key.
    """

    kind: ClassVar[str] = "means"
    heading: ClassVar[str] = "mean"

    labels: Sequence[Label]
    n: int
    shares: Floats
    sums: Floats
    share_noise: Floats
    sum_noise: Floats
    noise_between: Floats
    ends: tuple[float, float]
    protocol: str
    method: str = "ratio"
    unit: str = ""
    people: float = 1.0
    law: PairLaw | None = None
    worth: Floats | float = 1.0

    @classmethod
    def nothing(cls, labels: Sequence[Label], ends: tuple[float, float], protocol: str, unit: str = "") -> KeyMeans:
        """The result before the first report."""
        none = np.full(len(labels), math.nan)
        return cls(labels, 0, none, none, none, none, none, ends, protocol, unit=unit)

    def _variances(self) -> tuple[Floats, Floats, Floats]:
        """Variances of shares and sums, and their covariance. Rounding is part of the sampling: always included."""
        share = np.clip(self.shares, 0.0, 1.0)
        sums = np.clip(self.sums, -share, share)
        each = self.people / max(1, self.n)
        return (
            self.share_noise + each * share * (1 - share),
            self.sum_noise + each * (share - sums**2),
            self.noise_between + each * (sums - share * sums),
        )

    def _scaled(self, ratio: Floats) -> Floats:
        low, high = self.ends
        return low + (ratio + 1) / 2 * (high - low)

    @property
    def value(self) -> Floats:
        """The means, in the unit of the question; inside the interval."""
        if not self.n:
            return np.full(len(self.labels), math.nan)
        return self._scaled(self._ratio)

    @property
    def _ratio(self) -> Floats:
        """The ratio; if a share is estimated at zero, nothing is known: the middle."""
        known = np.maximum(self.shares, 1e-300)
        return np.where(self.shares > 0, np.clip(self.sums / known, -1.0, 1.0), 0.0)

    @property
    def stderr(self) -> Floats:
        """By the delta method; infinite if a share is estimated at zero."""
        if not self.n:
            return np.full(len(self.labels), math.nan)
        share, total, between = self._variances()
        ratio = self._ratio
        spread = np.maximum(total + ratio**2 * share - 2 * ratio * between, 0.0)
        low, high = self.ends
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.shares > 0, np.sqrt(spread) / self.shares * (high - low) / 2, np.inf)

    def _honest(self) -> list[KeyMeans]:
        """The extreme results of the honest reports: the forged ones all support both ends of a key, one end or
        none. A ratio has its extremes there."""
        assert self.weights is not None
        lowest, highest, left = self.weights.lowest, self.weights.highest, self.n - self.fakes
        found = []
        for low, high in ((lowest, lowest), (lowest, highest), (highest, lowest), (highest, highest)):
            shares = (self.n * self.shares - self.fakes * (low + high)) / left
            sums = (self.n * self.sums - self.fakes * (high - low)) / left
            grown = replace(self.repeated(self.n / left, self.n / left), shares=shares, sums=sums, fakes=0)
            found.append(grown)
        return found

    def interval(self, level: float = 0.95, simultaneous: bool = False) -> Floats:
        """The ratios r for which sum - r share may have mean zero, cut to the interval of the numbers.

        By the bounds of means if the number of reports for each end of a key is known, else by Fieller's theorem.
        """
        if not self.n or self.fakes >= self.n:
            return np.tile(np.array(self.ends, dtype=np.float64), (len(self.labels), 1))
        if self.fakes:
            each = np.array([one.interval(level, simultaneous) for one in self._honest()])
            return np.stack([each[..., 0].min(axis=0), each[..., 1].max(axis=0)], axis=1)
        if self.law is not None:
            wrong = (1 - level) / (len(self.labels) if simultaneous else 1)
            return self._scaled(self._ratio_ends(self.law, 1 - wrong))
        z = quantile(level, len(self.labels) if simultaneous else 1) ** 2
        share, total, between = self._variances()
        # The ratios r with (sum - r share)^2 <= z (total + r^2 share variance - 2 r between).
        a = self.shares**2 - z * share
        b = self.shares * self.sums - z * between
        c = self.sums**2 - z * total
        clear = (a > 0) & (self.shares > 0)
        root = np.sqrt(np.maximum(b * b - a * c, 0.0))
        safe = np.where(clear, a, 1.0)
        low = np.where(clear, (b - root) / safe, -1.0)
        high = np.where(clear, (b + root) / safe, 1.0)
        ends = np.clip(np.stack([low, high], axis=1), -1.0, 1.0)
        return self._scaled(ends)

    def _ratio_ends(self, law: PairLaw, level: float) -> Floats:
        # Contributions to sums and shares of a report that supports neither end of a key, the low, the high or both.
        sums = np.array([0.0, -1.0, 1.0, 0.0]) / (law.p - law.q)
        shares = (np.array([0.0, 1.0, 1.0, 2.0]) - 2 * law.q) / (law.p - law.q)
        low, high = (law.supports((self.shares + sign * self.sums) / 2, self.n) for sign in (-1, 1))
        said = law.counted(self.n, low, high, 0.0, np.clip(self.shares, 0.0, 1.0))
        said = said * np.broadcast_to(self.worth, self.shares.shape)[:, None]
        ratios = np.sort(np.column_stack([np.tile(_RATIOS, (len(said), 1)), self._ratio]), axis=1)
        values = sums - ratios[..., None] * shares
        tried = mean_ends(values.reshape(-1, 4), np.repeat(said, ratios.shape[1], axis=0), level)
        ends = tried.reshape(*ratios.shape, 2)
        # One if an end is zero, less inside.
        over = 1 + np.maximum(ends[..., 0], -ends[..., 1])
        return np.array([crossings(at, row) for at, row in zip(ratios, over, strict=True)]).reshape(-1, 2)

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        ends = self.interval(level, simultaneous)
        return Rows(
            self.labels, self.value, self.stderr, ends[:, 0], ends[:, 1], self.unit, level, simultaneous, population
        )

    @property
    def notes(self) -> list[str]:
        if not self.n:
            return super().notes
        ends = self.interval()
        low, high = self.ends
        unknown = [shown(label) for label, (a, b) in zip(self.labels, ends, strict=True) if a <= low and b >= high]
        if not unknown:
            return super().notes
        named: Fact = Joined(unknown[:5], ", ")
        if len(unknown) > 5:
            named = word("list.more", first=named, n=len(unknown) - 5)
        return [*super().notes, said("result.few.have", names=named)]

    def repeated(self, noise: float, people: float) -> KeyMeans:
        return replace(
            self,
            share_noise=noise * self.share_noise,
            sum_noise=noise * self.sum_noise,
            noise_between=noise * self.noise_between,
            people=people * self.people,
            worth=self.worth / max(noise, people),
            check=self._check_of(noise),
        )

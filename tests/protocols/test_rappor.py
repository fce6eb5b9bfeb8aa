"""One-time RAPPOR: positions, the level with its hashes, and the regression that reads the filters."""

from __future__ import annotations

import hashlib
import json
import pickle
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from deniable.conformance.checks import accepts
from deniable.conformance.protocols import report_rows
from deniable.domains import Strings
from deniable.errors import DomainError, LabelError, NumberError, ReportError, SpecError
from deniable.exact import Dyadic, exp_at_least
from deniable.protocols import RAPPOR, SUE, Tally, load
from deniable.protocols.frequency.rappor import Cohorts, fit, lasso, penalty, select
from deniable.randomness import Simulation

BREADS = ["rye", "sourdough", "baguette", "naïve", "食パン", ""]


# -- positions and the law of the bytes ------------------------------------------------------------

GOLDEN = [
    ("sourdough", 0, "", 2, 128, [1, 39]),
    ("sourdough", 7, "", 2, 128, [65, 72]),
    ("naïve", 1, "survey-7", 4, 32, [1, 3, 5, 13]),
    ("", 0, "", 8, 16, [0, 1, 6, 7, 8, 9, 13, 15]),
]


@pytest.mark.parametrize(("text", "cohort", "key", "hashes", "bits", "places"), GOLDEN)
def test_positions_are_pinned(text: str, cohort: int, key: str, hashes: int, bits: int, places: list[int]) -> None:
    assert RAPPOR(Strings(key=key), 1, bits, hashes).positions(text, cohort) == places
    # As another language would write it, from the docstring.
    message = b"\0".join([b"deniable-bloom-v1", key.encode(), str(cohort).encode(), text.encode()])
    words = np.frombuffer(hashlib.sha256(message).digest(), dtype="<u4")
    free = list(range(bits))
    assert sorted(free.pop(int(words[i]) % len(free)) for i in range(hashes)) == places


def test_every_set_of_positions_is_as_likely() -> None:
    # A chi-square test, wrong once in a million.
    protocol = RAPPOR(Strings(), 1, bloom_bits=6, hashes=3)
    sets = {chosen: i for i, chosen in enumerate(combinations(range(6), 3))}
    seen = [sets[tuple(protocol.positions(f"text {i}", 0))] for i in range(10_000)]
    assert accepts(np.bincount(seen, minlength=20), np.full(20, 1 / 20))


class _Careless(RAPPOR):
    """Forgets the hashes: right for one, and what an existing library does for any number."""

    @cached_property
    def flip(self) -> Dyadic:
        return Dyadic.ceil_of(lambda s: 1 / (s + 1), self.epsilon / 2)


@pytest.mark.parametrize("hashes", [1, 2])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(4)])
def test_the_level_counts_the_hashes(hashes: int, epsilon: Fraction) -> None:
    channel = RAPPOR(Strings(), epsilon, 4, hashes, 2).channel(candidates=BREADS)
    assert channel.ratio == RAPPOR(Strings(), epsilon, 4, hashes, 2).ratio
    assert exp_at_least(epsilon, channel.ratio)
    assert channel.epsilon > float(epsilon) - 1e-9
    careless = _Careless(Strings(), epsilon, 4, hashes, 2).channel(candidates=BREADS)
    assert careless.satisfies(epsilon) == (hashes == 1)
    assert careless.epsilon == pytest.approx(hashes * float(epsilon))


def test_with_one_hash_it_is_symmetric_unary_encoding_of_the_cell() -> None:
    assert RAPPOR(Strings(), 1, hashes=1).flip == SUE(2, 1).other_bit
    assert float(RAPPOR(Strings(), 4, hashes=2).flip) == pytest.approx(1 / (np.e + 1))


def test_batches_have_the_law_of_single_reports() -> None:
    # Wrong once in a million; the same test refuses a tenth more or less epsilon.
    levels = {factor: RAPPOR(Strings(), 6 * Fraction(factor), 4, 2, 2) for factor in ("1", "0.9", "1.1")}
    channel = levels["1"].channel(candidates=BREADS)
    known = {row.tobytes(): i for i, row in enumerate(report_rows(channel))}
    for factor, protocol in levels.items():
        drawn = protocol.privatize(["rye"] * 100_000, Simulation(7)).array
        rows, often = np.unique(drawn, axis=0, return_counts=True)
        counts = np.zeros(len(known), dtype=np.int64)
        counts[[known[row.tobytes()] for row in rows]] = often
        assert accepts(counts, channel.rows[BREADS.index("rye")]) == (factor == "1"), factor


def test_the_order_of_the_draws() -> None:
    """Cohort, flipped zeros, then the positions in ascending order: what another client does."""
    protocol = RAPPOR(Strings(), 2, bloom_bits=70, hashes=3, cohorts=300)
    for seed in range(20):
        bits = Simulation(seed)
        cohort = bits.integers(300)
        lanes = np.unpackbits(bits.packed(protocol.flip, 70), bitorder="little")
        for place in protocol.positions("rye", cohort):
            lanes[place] = bits.word() < 2**64 - protocol.flip.numerator
        expected = cohort.to_bytes(2, "little") + np.packbits(lanes, bitorder="little").tobytes()
        source = Simulation(seed)
        assert protocol.privatize("rye", source).to_bytes() == expected
        assert source.word() == bits.word()


def test_a_batch_marks_the_positions_of_each_text() -> None:
    protocol = RAPPOR(Strings(), 64, bloom_bits=70, hashes=1, cohorts=3)
    texts = [f"text {i % 20}" for i in range(500)]
    reports = protocol.privatize(texts, Simulation(2))
    supported = protocol.support(reports, candidates=[f"text {i}" for i in range(20)])
    assert supported[np.arange(500), np.arange(500) % 20].all()


# -- decoding --------------------------------------------------------------------------------------

TEXTS = [f"listed {i}" for i in range(8)] + [f"unlisted {i}" for i in range(40)]
TRUTH = np.array([600, 300, 150, 80, 40, 0, 0, 0, *([30] * 39), 200])
PEOPLE = np.random.default_rng(1).permutation(np.repeat(TEXTS, TRUTH)).tolist()


@cache
def collected(run: int, epsilon: Any, **sizes: Any) -> tuple[RAPPOR, Tally]:
    """A new key and new noise each run; tests that look at the same run share it."""
    protocol = RAPPOR(Strings(key=f"key {run}"), epsilon, **sizes)
    return protocol, protocol.tally(protocol.privatize(PEOPLE, Simulation(run)))


def decoded(run: int, candidates: list[str], method: Any = "auto", epsilon: Any = 6, **sizes: Any) -> Any:
    protocol, tally = collected(run, epsilon, **sizes)
    return protocol.estimate(tally, candidates, method)


SMALL = {"bloom_bits": 32, "hashes": 2, "cohorts": 4}


@pytest.mark.parametrize("listed", [8, pytest.param(48, marks=pytest.mark.slow)])
def test_least_squares_is_unbiased_with_right_error_bars(listed: int) -> None:
    """With the whole dictionary, and when half of the people hold strings outside it.

    Over redrawn keys; each assertion fails by chance less than once in a million (five standard errors).
    """
    runs, n = 120, len(PEOPLE)
    found = [decoded(run, TEXTS[:listed], **SMALL) for run in range(runs)]
    errors = np.array([estimate.counts - TRUTH[:listed] for estimate in found])
    scores = errors / np.sqrt([estimate.noise for estimate in found])
    assert found[0].method == "least squares"
    assert np.abs(errors.mean(axis=0) / (errors.std(axis=0) / np.sqrt(runs))).max() < 5
    assert 0.85 < scores.std() < 1.15
    assert 0.68 < scores[:, 0].std() < 1.32, "the most frequent string"
    rest = np.array([estimate.unlisted - TRUTH[listed:].sum() / n for estimate in found])
    assert abs(rest.mean()) < 5 * rest.std() / np.sqrt(runs)
    ratio = rest.std() / np.mean([estimate.unlisted_noise for estimate in found])
    assert 0.68 < ratio < 1.32


def test_error_bars_need_all_three_parts() -> None:
    """Flipping alone, at a level where it is small, explains little of the error."""
    runs = 40
    narrow, right = [], []
    for run in range(runs):
        protocol, tally = collected(run, 20, **SMALL)
        estimate = protocol.estimate(tally, TEXTS[:8])
        error = estimate.counts - TRUTH[:8]
        right.append(error / np.sqrt(estimate.noise))
        narrow.append(error / np.sqrt(len(PEOPLE) * protocol._noise / (2 * (1 - 2 / 32))))
    assert 0.75 < np.std(right) < 1.3
    assert np.std(narrow) > 3


def test_without_centring_an_incomplete_dictionary_would_mislead() -> None:
    protocol = RAPPOR(Strings(), 20, **SMALL)
    tally = protocol.tally(protocol.privatize(PEOPLE, Simulation(1)))
    sizes, blocks = protocol._parts(tally.counts)
    seen = (blocks - float(protocol.flip) * sizes[:, None]) / (1 - 2 * float(protocol.flip))
    design = Cohorts.of(protocol._filters(TEXTS[:8]), sizes, seen, 1.0).design.toarray()
    naive = 4 * np.linalg.lstsq(design, seen.reshape(-1), rcond=None)[0]
    good = protocol.estimate(tally, TEXTS[:8])
    score = (naive - TRUTH[:8]) / np.sqrt(good.noise)
    assert score.mean() > 2
    assert abs(((good.counts - TRUTH[:8]) / np.sqrt(good.noise)).mean()) < 2


@pytest.mark.slow
def test_the_variance_of_a_single_candidate() -> None:
    """Five standard errors of a variance from 100 runs are a factor of 0.29 to 1.71."""
    runs, n = 100, len(PEOPLE)
    protocol = RAPPOR(Strings(), 6, **SMALL)
    found: dict[str, list[float]] = {TEXTS[2]: [], "absent": []}
    for run in range(runs):
        keyed, tally = collected(run, 6, **SMALL)
        for candidate, counted in found.items():
            counted.append(keyed.estimate(tally, [candidate]).counts[0])
    for candidate, count in ((TEXTS[2], TRUTH[2]), ("absent", 0)):
        counts = np.array(found[candidate])
        others = (np.sum(TRUTH**2) - count**2) / n**2
        expected = protocol.variance(n, count / n, population=False, others=others)
        assert 0.29 < counts.var() / expected < 1.71
        assert abs(counts.mean() - count) < 5 * np.sqrt(expected / runs)
        assert expected < protocol.variance(n, count / n, population=False)
    assert protocol.variance(n, others=0.0) < expected / 2, "collisions matter here"
    sampled = protocol.variance(n, 0.1) - protocol.variance(n, 0.1, population=False)
    assert sampled == pytest.approx(n * 0.09)


def test_more_candidates_than_the_filters_can_tell_apart() -> None:
    """800 candidates for 4 x 31 dimensions: the frequent ones are found, the absent ones have right error bars."""
    candidates = TEXTS + [f"absent {i}" for i in range(752)]
    runs = [decoded(run, candidates, epsilon=8, **SMALL) for run in range(6)]
    assert {estimate.method for estimate in runs} == {"lasso, then least squares"}
    for estimate in runs:
        assert estimate.enough[:2].all()
        assert np.argmax(estimate.counts) == 0
    absent = np.array([(estimate.counts / np.sqrt(estimate.noise))[48:] for estimate in runs])
    assert 0.85 < absent.std() < 1.15
    assert abs(absent.mean()) < 0.1
    listed = np.array(
        [((estimate.counts - np.pad(TRUTH, (0, 752))) / np.sqrt(estimate.noise))[:48] for estimate in runs]
    )
    assert 0.75 < listed.std() < 1.35
    with pytest.raises(NumberError, match=r'more than the 99 .* use method="lasso"'):
        decoded(0, candidates, "least-squares", **SMALL)


def test_the_lasso_solves_its_problem() -> None:
    """The slope of its objective: zero where a candidate is chosen, not negative where it is not."""
    rng = np.random.default_rng(0)
    filters = np.sort(rng.permuted(np.tile(np.arange(16), (60, 3, 1)), axis=2)[:, :, :2], axis=2)
    sizes = np.array([400, 300, 300])
    truth = np.zeros(60)
    truth[:3] = [500, 300, 200]
    clean = Cohorts.of(filters, sizes, np.zeros((3, 16)), 0.5)
    seen = (clean.design @ truth).reshape(3, 16) * (sizes / 1000)[:, None] + rng.normal(0, 12, (3, 16))
    data = Cohorts.of(filters, sizes, seen, 0.5)
    gram = data.gram(data.design, data.design, data.sizes)
    shares = lasso(data)
    slope = gram @ shares - data.moments + penalty(data)
    assert np.abs(slope[shares > 0]).max() < 1e-3 * penalty(data)
    assert slope.min() > -1e-3 * penalty(data)
    assert np.abs((gram @ (truth / 1000) - data.moments + penalty(data))[:3]).min() > 0.1 * penalty(data)
    chosen = select(data)
    assert {0, 1} <= set(chosen.tolist())
    assert len(chosen) < 20
    assert np.allclose(gram @ truth, data.times_gram(truth))
    assert np.allclose(np.diag(gram), data.diagonal)
    # Chosen together, the candidates get the plain weighted least squares solution.
    columns = data.design.toarray()[:, chosen].reshape(3, 16, -1)
    columns = (columns - columns.mean(axis=1, keepdims=True)) * np.sqrt(sizes / 1e6)[:, None, None]
    target = data.seen / np.sqrt(sizes)[:, None]
    plain = np.linalg.lstsq(columns.reshape(48, -1), target.reshape(-1), rcond=None)[0]
    assert np.allclose(fit(data, chosen).counts[chosen], plain)


def test_non_negative_counts_keep_the_unbiased_ones_behind_them() -> None:
    unbiased, positive = decoded(3, TEXTS, **SMALL), decoded(3, TEXTS, "non-negative", **SMALL)
    assert unbiased.counts.min() < 0 <= positive.counts.min()
    assert positive.method == "non-negative least squares"
    assert np.array_equal(positive.raw.counts, unbiased.counts)
    assert np.array_equal(positive.variance, unbiased.variance)
    assert positive.unlisted == unbiased.unlisted
    assert (positive.enough == unbiased.enough).all()
    assert np.abs(positive.counts - TRUTH).mean() < np.abs(unbiased.counts - TRUTH).mean()


def test_not_enough_data_is_said() -> None:
    protocol = RAPPOR(Strings(), 1)
    for seed in range(20):  # whatever the noise: 30 people at this level cannot be told from nobody
        tally = protocol.tally(protocol.privatize(["rye"] * 20 + ["sourdough"] * 10, Simulation(seed)))
        estimate = protocol.estimate(tally, BREADS)
        assert not estimate.enough.any()
        assert "not enough data: none of the 6 candidates" in str(estimate)
        assert "even an answer that everybody gave" in estimate.verdict
    plenty = RAPPOR(Strings(), 8)
    tally = plenty.tally(plenty.privatize(["rye"] * 3000 + ["sourdough"] * 2000, Simulation(4)))
    estimate = plenty.estimate(tally, BREADS)
    assert estimate.enough[:2].all()
    assert "candidates stand out" in str(estimate)


@pytest.mark.slow
def test_absent_strings_rarely_stand_out() -> None:
    """One in 44 by chance: of 4000, 91, and five standard errors are 47.

    While the popular strings are not listed, the errors lean to the right, because collisions only add: the rate is
    larger than for a normal law, and the documentation says by how much.
    """
    absent, popular = [f"absent {i}" for i in range(40)], [*TEXTS[:5], TEXTS[-1]]
    listed = [decoded(run, popular + absent).enough[len(popular) :].sum() for run in range(100)]
    assert 44 < np.sum(listed) < 138
    unlisted = [decoded(run, absent).enough.sum() for run in range(100)]
    assert 91 < np.sum(unlisted) < 4000 / 25


def test_candidates_with_one_filter_cannot_be_told_apart() -> None:
    """Two bits and one cohort: three strings, two of which must share their bit."""
    protocol = RAPPOR(Strings(), 6, bloom_bits=4, hashes=1, cohorts=1)
    words = [f"word {i}" for i in range(30)]
    twins = [w for w in words if protocol.positions(w, 0) == protocol.positions(words[0], 0)][:2]
    other = next(w for w in words if protocol.positions(w, 0) != protocol.positions(words[0], 0))
    tally = protocol.tally(protocol.privatize([twins[0]] * 500 + [other] * 500, Simulation(5)))
    estimate = protocol.estimate(tally, [twins[0], other])
    assert np.isfinite(estimate.stderr).all()
    filters = protocol._filters([*twins, other])
    sizes, blocks = protocol._parts(tally.counts)
    found = fit(Cohorts.of(filters, sizes, blocks.astype(float), protocol._noise), np.arange(3))
    assert np.isinf(found.variance).tolist() == [True, True, False]
    alone = fit(Cohorts.of(filters, sizes, blocks.astype(float), protocol._noise), np.array([0, 2]))
    assert np.isinf(alone.variance).tolist() == [False, True, False]


@pytest.mark.slow
def test_a_closed_domain_and_its_likelihood() -> None:
    protocol = RAPPOR(BREADS, 3, 8, 2, 2, key="k")
    channel = protocol.channel()
    model: Any = protocol._likelihoods(report_rows(channel))
    scaled = model.matrix / model.matrix[0]
    assert np.allclose(scaled, channel.rows / channel.rows[0], rtol=1e-9)
    counts = [800, 600, 300, 200, 100, 0]
    reports = protocol.privatize(np.repeat(BREADS, counts), Simulation(1))
    likely = protocol.mle(reports)
    assert np.abs(likely.counts - counts).max() < 200
    assert protocol.estimate(protocol.tally(reports)).labels == tuple(BREADS)


# -- identity and refusals -------------------------------------------------------------------------


def test_specs() -> None:
    for protocol in (RAPPOR(Strings(key="clé"), "0.1", cohorts=300), RAPPOR(BREADS, 2, 64, 1, 4, key="k")):
        spec = json.loads(json.dumps(protocol.spec()))
        assert load(spec) == protocol == pickle.loads(pickle.dumps(protocol))
        assert load(spec).fingerprint == protocol.fingerprint
        assert spec["hashes"] == protocol.hashes
    assert RAPPOR(BREADS, 1).fingerprint != RAPPOR(BREADS, 1, key="k").fingerprint
    with pytest.raises(SpecError, match="canonical"):
        load(RAPPOR(Strings(), 1).spec() | {"key": ""})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"hashes": 0}, NumberError, "hashes is a whole number"),
        ({"hashes": 9}, NumberError, "hashes is a whole number"),
        ({"hashes": True}, NumberError, "hashes is a whole number"),
        ({"bloom_bits": 3}, NumberError, "at least 4 bits"),
        ({"bloom_bits": 1 << 17}, NumberError, "bloom_bits"),
        ({"cohorts": 1.5}, NumberError, "cohorts"),
        ({"bloom_bits": 1 << 16, "cohorts": 1 << 13}, NumberError, "2\\^28"),
        ({"key": "other"}, DomainError, "brings its own key"),
        ({"key": 7}, DomainError, "key"),
    ],
)
def test_unusable_parameters(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        RAPPOR(Strings(), 1, **arguments)


def test_refusals() -> None:
    protocol = RAPPOR(Strings(), 1, bloom_bits=12, cohorts=3)
    good = protocol.privatize(["a", "b", "c"], Simulation(1)).array
    cohort, padding = good.copy(), good.copy()
    cohort[1, 0] = 3
    padding[2, -1] |= 0x10
    assert protocol.valid(good).all()
    assert protocol.valid(cohort).tolist() == [True, False, True]
    assert protocol.valid(padding).tolist() == [True, True, False]
    with pytest.raises(ReportError, match="malformed"):
        protocol.tally(padding)
    with pytest.raises(DomainError, match="value 0, an int, is not text"):
        protocol.privatize(987654321)
    tally = protocol.tally(good)
    for candidates, error in ((None, DomainError), ("ab", DomainError), ([], DomainError), (["a", "a"], LabelError)):
        with pytest.raises(error):
            protocol.estimate(tally, candidates)
    with pytest.raises(NumberError, match="no decoder 'magic'"):
        protocol.estimate(tally, ["a"], "magic")  # type: ignore[arg-type]

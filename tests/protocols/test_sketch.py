"""Open text and its sketches: the hash, the law of the bytes, the estimate over all hashes, the error bars."""

from __future__ import annotations

import hashlib
import json
import pickle
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deniable.conformance.checks import accepts
from deniable.conformance.protocols import report_rows
from deniable.domains import Categories, Integers, Strings, as_domain, load_domain
from deniable.errors import DomainError, LabelError, MismatchError, NumberError, ReportError, SpecError
from deniable.exact import exp_at_least
from deniable.protocols import CMS, GRR, HCMS, OUE, RAPPOR, Estimate, OLHSketch, TextEstimate, TextProtocol, load
from deniable.protocols.frequency import open_text
from deniable.randomness import Simulation

SKETCHES = [CMS, HCMS, OLHSketch]
THREE = ["never", "once", "often"]
BREADS = ["rye", "sourdough", "baguette", "naïve", "食パン", ""]


def sketch(kind: type[TextProtocol], domain: Any, epsilon: Any, **more: Any) -> Any:
    """With two hash bits where there is a choice, so that all reports can be listed at any level."""
    return kind(domain, epsilon, **more | ({"hash_bits": 2} if kind is OLHSketch else {}))


# -- the hash --------------------------------------------------------------------------------------

GOLDEN = [
    ("sourdough", 0, "", 9847),
    ("sourdough", 63, "", 64407),
    ("sourdough", 0, "survey-7", 59981),
    ("", 0, "", 4960),
    ("naïve", 1, "", 2006),
    ("食パン", 10, "clé", 32247),
]


@pytest.mark.parametrize(("text", "cohort", "key", "cell"), GOLDEN)
def test_the_hash_is_pinned(text: str, cohort: int, key: str, cell: int) -> None:
    assert Strings(key=key).cell(text, cohort) == cell
    # As another language would write it, from the docstring.
    message = b"\0".join([b"deniable-strings-v1", key.encode(), str(cohort).encode(), text.encode()])
    low = int.from_bytes(hashlib.sha256(message).digest()[:4], "little")
    assert low & 0xFFFF == cell
    assert Strings(cells=1 << 10, key=key).cell(text, cohort) == cell % 1024


def test_cells_are_even_and_cohorts_are_independent() -> None:
    # Two chi-square tests, each wrong once in a million.
    texts = [f"text {i}" for i in range(20_000)]
    domain = Strings(cells=8, cohorts=2)
    first = np.array([domain.cell(text, 0) for text in texts])
    second = np.array([domain.cell(text, 1) for text in texts])
    assert accepts(np.bincount(first, minlength=8), np.full(8, 1 / 8))
    assert accepts(np.bincount(8 * first + second, minlength=64), np.full(64, 1 / 64))
    assert not accepts(np.bincount(8 * first + first, minlength=64), np.full(64, 1 / 64))


def test_text_in_another_unicode_form_is_the_same_text() -> None:
    column = Strings().encode(["naïve", "nai\u0308ve"])
    which, texts = column.which, column.entries
    assert {texts[i] for i in which} == {"naïve"}
    protocol = HCMS(Strings(), 1)
    once = protocol.privatize("naïve", Simulation(1))
    assert once == protocol.privatize("nai\u0308ve", Simulation(1))


@pytest.mark.parametrize(
    "column",
    [
        ["a", "b", "a"],
        ("a", "b", "a"),
        np.array(["a", "b", "a"]),
        np.array(["a", "b", "a"], dtype=object),
        pd.Series(["a", "b", "a"]),
        pd.Series(["a", "b", "a"], dtype="category"),
        pl.Series(["a", "b", "a"]),
        pa.array(["a", "b", "a"]),
        pa.chunked_array([["a", "b"], ["a"]]),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        iter(["a", "b", "a"]),
    ],
    ids=lambda column: type(column).__name__,
)
def test_columns_of_every_kind(column: Any) -> None:
    encoded = Strings().encode(column)
    which, texts = encoded.which, encoded.entries
    assert [texts[i] for i in which] == ["a", "b", "a"]


SECRET = "s3cret"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([SECRET, 7], "value 1, an int, is not text"),
        ([SECRET, None], "value 1 is missing"),
        ([SECRET, float("nan")], "value 1 is missing"),
        ([SECRET.encode()], "value 0, a bytes, is not text"),
        ([[SECRET]], "value 0, a list, is not text"),
        ([SECRET + "\ud800"], "value 0 is text that UTF-8 cannot write"),
        (["a", SECRET * 1000], "value 1 is text of more than 4096 bytes"),
        (np.array([1, 2]), "value 0, an int, is not text"),
        (pa.array([SECRET, None]), "value 1 is missing"),
        (pl.Series([SECRET, None]), "value 1 is missing"),
        (pd.Series([SECRET, None]), "value 1 is missing"),
        (pd.Series([SECRET, None], dtype="category"), "value 1 is missing"),
        (object(), "value 0, an object, is not text"),
    ],
)
@pytest.mark.parametrize("kind", SKETCHES)
def test_what_is_not_text_is_refused_without_repeating_it(kind: type[TextProtocol], value: Any, message: str) -> None:
    with pytest.raises(DomainError, match=message) as refused:
        kind(Strings(cells=16), 1).privatize(value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1000,), "power of two"),
        ((1,), "at least 2"),
        ((0,), "between 1"),
        ((1 << 30,), "between 1"),
        ((16, 0), "cohorts lies"),
        ((16, 1 << 20), "cohorts lies"),
        ((16.0,), "a float"),
        ((True,), "a bool"),
        ((16, 4, 7), "key"),
        ((16, 4, "a\0b"), "NUL"),
    ],
)
def test_unusable_strings(arguments: Any, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        Strings(*arguments)


def test_strings_as_a_domain() -> None:
    domain = Strings(1 << 10, 8, "cle\u0301")
    assert domain.key == "clé"
    assert load_domain(json.loads(json.dumps(domain.spec()))) == domain
    assert as_domain(domain) is domain
    assert pickle.loads(pickle.dumps(domain)) == domain
    assert "1024 cells in 8 cohorts" in str(domain)
    assert not domain.is_listed
    assert not hasattr(domain, "size")
    assert not hasattr(domain, "labels")
    for spec in ({"kind": "strings", "cells": 16}, domain.spec() | {"more": 1}):
        with pytest.raises(SpecError):
            load_domain(spec)
    for closed in (GRR, OUE):
        with pytest.raises(DomainError, match=f"{closed.name} cannot ask for any text.*needs a list of answers"):
            closed(domain, 1)


# -- the law of the bytes --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SKETCHES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(4)])
def test_no_two_texts_exceed_the_level(kind: type[TextProtocol], epsilon: Fraction) -> None:
    protocol = sketch(kind, Strings(cells=4, cohorts=2), epsilon)
    channel = protocol.channel(candidates=BREADS)
    assert channel.inputs == tuple(BREADS)
    assert channel.ratio == protocol.ratio
    assert exp_at_least(epsilon, channel.ratio)
    # A cohort that depends on the text gives it away, and the same comparison sees it.
    revealing = sketch(kind, Categories(BREADS), epsilon, hashing=protocol.domain)
    object.__setattr__(revealing, "_report", lambda text, bits: bytes([len(text) % 2]) + b"\0")
    assert revealing.channel().ratio == float("inf")


@pytest.mark.parametrize("kind", SKETCHES)
def test_batches_have_the_law_of_single_reports(kind: type[TextProtocol]) -> None:
    # Wrong once in a million; the same test refuses a tenth more or less epsilon.
    levels = {factor: sketch(kind, Strings(2, 2, "key"), 3 * Fraction(factor)) for factor in ("1", "0.9", "1.1")}
    channel = levels["1"].channel(candidates=BREADS)
    known = {row.tobytes(): i for i, row in enumerate(report_rows(channel))}
    for factor, protocol in levels.items():
        drawn = protocol.privatize(["rye"] * 150_000, Simulation(7)).array
        rows, often = np.unique(drawn.view(f"V{drawn.shape[1]}"), return_counts=True)
        counts = np.zeros(len(known), dtype=np.int64)
        counts[[known[row.tobytes()] for row in rows]] = often
        assert accepts(counts, channel.rows[BREADS.index("rye")]) == (factor == "1"), factor


@pytest.mark.parametrize("kind", SKETCHES)
def test_a_batch_of_many_texts_is_hashed_like_single_ones(kind: type[TextProtocol]) -> None:
    """At a level so high that nothing is flipped, each report supports the cell of its own text in its own cohort."""
    protocol = kind(Strings(1 << 10, 300), 60)
    texts = [f"text {i % 50}" for i in range(2000)]
    reports = protocol.privatize(texts, Simulation(3))
    supported = protocol.support(reports, candidates=[f"text {i}" for i in range(50)])
    assert supported[np.arange(2000), np.arange(2000) % 50].all()
    assert protocol.report_bytes == 2 + protocol.inner.report_bytes
    cohorts = reports.array[:, 0] + 256 * reports.array[:, 1].astype(int)
    assert cohorts.max() < 300
    assert len(set(cohorts)) > 280


def test_hcms_is_apples() -> None:
    """A row j of the Hadamard matrix and one bit; z = c (+-1) H[j, cell] has mean 1 or 0 and variance c^2 - mean."""
    protocol = HCMS(Strings(cells=8, cohorts=1), 1)
    channel = protocol.channel(candidates=BREADS)
    codes = report_rows(channel)[:, 1].astype(int)
    rows, signs = codes & 7, 1 - 2 * (codes >> 3)
    keep = float(protocol.inner.response.keep)
    for v, w in product(range(len(BREADS)), repeat=2):
        cell = protocol.domain.cell(BREADS[w], 0)
        z = signs * (-1.0) ** np.bitwise_count(rows & cell) / keep
        same = float(protocol.domain.cell(BREADS[v], 0) == cell)
        assert channel.rows[v] @ z == pytest.approx(same, abs=1e-12)
        assert channel.rows[v] @ z**2 - same == pytest.approx(1 / keep**2 - same)
    assert 1 / keep == pytest.approx((np.e + 1) / (np.e - 1))
    tally = protocol.tally(protocol.privatize(["rye"] * 10, Simulation(1)))
    assert protocol.tally_size == 1 + 8 == tally.counts.size


# -- the estimate ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SKETCHES)
def test_mean_and_variance_over_all_hashes(kind: type[TextProtocol], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table of hashes in turn, every report: the mean is the truth and the variance the formula, exactly."""
    cells = cohorts = 2
    truth = np.array([3, 1, 2])
    n = int(truth.sum())
    tables = list(product(range(cells), repeat=3 * cohorts))
    means, spreads, plain = [], [], []
    protocol = sketch(kind, THREE, Fraction(3, 2), hashing=Strings(cells, cohorts))
    rows = report_rows(protocol.channel())
    singles = [protocol.tally(row[None, :]) for row in rows]
    for table in tables:
        monkeypatch.setattr(
            Strings, "cell", lambda self, text, cohort, table=table: table[cohorts * THREE.index(text) + cohort]
        )
        channel = protocol.channel()
        assert channel.outputs == tuple(row.tobytes().hex() for row in rows)
        counts = np.array([protocol.estimate(tally).counts for tally in singles])
        mean = channel.rows @ counts
        means.append(truth @ mean)
        spreads.append(truth @ (channel.rows @ counts**2 - mean**2))
        plain.append(means[-1] * (cells - 1) / cells + n / cells)
    assert np.allclose(np.mean(means, axis=0), truth, atol=1e-9)
    assert not np.allclose(np.mean(plain, axis=0), truth, atol=0.1), "the sum of cells alone would be biased"
    spread = np.mean(spreads, axis=0) + np.var(means, axis=0)
    others = (np.sum(truth**2) - truth**2) / n**2
    assert np.allclose(spread, protocol.variance(n, truth / n, population=False, others=others), rtol=1e-9)
    assert (spread <= protocol.variance(n, truth / n, population=False) + 1e-9).all(), "the default is the worst case"
    assert np.var(means, axis=0).min() > 0.1, "for one given hash the estimate is biased"


def test_the_variance_of_cms_is_the_published_one() -> None:
    protocol = CMS(Strings(64, 4), 2)
    n, m, k, s = 1000, 64, 4, np.exp(1)
    own, other = 300, np.array([400, 200, 100])
    expected = n * (m / (m - 1)) ** 2 * s / (s - 1) ** 2 + np.sum(other**2 / k + other * (1 - 1 / k)) / (m - 1)
    found = protocol.variance(n, own / n, population=False, others=np.sum(other**2) / n**2)
    assert found == pytest.approx(expected, rel=1e-12)
    sampled = protocol.variance(n, own / n) - protocol.variance(n, own / n, population=False)
    assert sampled == pytest.approx(n * 0.3 * 0.7)


@pytest.mark.parametrize("kind", SKETCHES)
def test_error_bars_hold_over_redrawn_keys(kind: type[TextProtocol]) -> None:
    """Collisions dominate here: few cells and cohorts, little noise. Half of the people hold unlisted strings.

    Each assertion fails by chance less than once in a million: the bounds are five standard errors.
    """
    rng = np.random.default_rng(5)
    texts = [f"listed {i}" for i in range(5)] + [f"unlisted {i}" for i in range(3)]
    truth = np.array([300, 200, 100, 50, 0, 400, 200, 50])
    people = rng.permutation(np.repeat(texts, truth)).tolist()
    n, runs = len(people), 150
    scores, without, squares, rest = [], [], [], []
    for run in range(runs):
        protocol = sketch(kind, Strings(16, 4, key=f"key {run}"), 6)
        tally = protocol.tally(protocol.privatize(people, Simulation(run)))
        estimate = protocol.estimate(tally, candidates=texts[:5])
        error = estimate.counts - truth[:5]
        scores.append(error / np.sqrt(estimate.noise))
        noise = protocol.variance(n, np.clip(estimate.frequencies, 0, 1), population=False, others=0.0)
        without.append(error / np.sqrt(noise))
        free = (np.sum(truth**2) - truth[:5] ** 2) / n**2
        squares.append(
            np.mean(estimate.noise) / np.mean(protocol.variance(n, truth[:5] / n, population=False, others=free))
        )
        rest.append((estimate.unlisted - truth[5:].sum() / n) / estimate.unlisted_noise)
    z = np.array(scores)
    assert np.abs(z.mean(axis=0)).max() < 5 * z.std() / np.sqrt(runs)
    assert 0.8 < z.std() < 1.2
    assert np.std(without) > 2, "without the collision term the error bars would be far too short"
    assert abs(np.mean(squares) - 1) < 0.1, "the collision term is estimated from the sketch"
    assert abs(np.mean(rest)) < 5 * np.std(rest) / np.sqrt(runs)
    assert 0.7 < np.std(rest) < 1.3


def test_candidates_that_share_cells_share_their_errors() -> None:
    """600 candidates in 16 cells: the error of what they leave over is far above that of independent ones."""
    people = ["listed 0"] * 300 + ["somebody else"] * 200
    listed = [f"listed {i}" for i in range(600)]
    protocol = CMS(Strings(16, 4), 2)
    found = [protocol.estimate(protocol.tally(protocol.privatize(people, Simulation(i))), listed) for i in range(60)]
    spread = np.std([estimate.unlisted for estimate in found])
    independent = np.sqrt(np.mean([estimate.noise.sum() for estimate in found])) / 500
    stated = np.mean([estimate.unlisted_noise for estimate in found])
    assert stated > 2.5 * independent
    assert 0.5 < spread / stated < 1.5  # five standard errors of a spread from 60 runs


def test_privacy_noise_dominates_at_the_default_size() -> None:
    """The numbers in the docstring of `Strings`."""
    protocol, n = HCMS(Strings(), 1), 10**6
    collisions = n / np.sqrt(64 * 65535)
    assert collisions == pytest.approx(n / 2048, rel=1e-4)
    noise = np.sqrt(protocol.variance(n, others=0.0))
    assert noise / collisions == pytest.approx(4.4, abs=0.05)
    assert protocol.variance(19 * 10**6) < 2 * protocol.variance(19 * 10**6, others=0.0)
    assert protocol.variance(20 * 10**6) > 2 * protocol.variance(20 * 10**6, others=0.0)
    words = 1 / np.arange(1, 100_001)
    assert np.sqrt(np.sum((words / words.sum()) ** 2)) / 2048 == pytest.approx(1 / 19_000, rel=0.1)


@pytest.mark.parametrize("kind", [CMS, HCMS])
def test_what_stands_out_has_an_interval_above_zero(kind: Any) -> None:
    """With few reports two standard errors alone would contradict the interval beside the sentence."""
    protocol, contradicted = kind(Strings(8), 4), 0
    for seed in range(40):
        tally = protocol.tally(protocol.privatize(["a"] * 10 + ["b"] * 10, Simulation(seed)))
        estimate = protocol.estimate(tally, candidates=["a", "b", "c"])
        low = estimate.interval()[:, 0]
        assert (low[estimate.enough] > 0).all()
        two_errors = estimate.frequencies >= open_text.ENOUGH * estimate.errors(population=False)
        contradicted += bool((two_errors & ~(low > 0)).any())
    assert contradicted, "otherwise this test could not fail"


def test_what_an_estimate_says() -> None:
    protocol = HCMS(Strings(1 << 10, 8), 4)
    people = ["rye"] * 3000 + ["sourdough"] * 1000 + ["something else"] * 1000
    tally = protocol.tally(protocol.privatize(people, Simulation(2)))
    estimate = protocol.estimate(tally, candidates=["rye", "sourdough", "baguette"])
    assert isinstance(estimate, TextEstimate)
    assert estimate.labels == ("rye", "sourdough", "baguette")
    assert estimate.enough.tolist() == [True, True, False]
    assert estimate.verdict == "2 of 3 candidates stand out of the noise, not enough data for the others"
    every = protocol.estimate(tally, candidates=["rye", "sourdough"])
    assert every.verdict == "2 of 2 candidates stand out of the noise"
    assert abs(estimate.unlisted - 0.2) < 5 * estimate.unlisted_stderr
    assert "unlisted: 0." in str(estimate)
    shares = estimate.consistent()
    assert shares.frequencies.min() >= 0
    assert shares.unlisted == estimate.unlisted
    assert shares.enough.tolist() == [True, True, False]
    nothing = protocol.estimate(tally, candidates=["croissant"])
    assert "not enough data: none of the 1 candidates" in str(nothing)


def test_a_closed_domain_brings_its_candidates() -> None:
    protocol = OLHSketch(Categories([1, True, "x"], other="?"), 3, hashing=Strings(256, 16))
    tally = protocol.tally(protocol.privatize([1] * 800 + [True] * 100 + ["new"] * 100, Simulation(3)))
    estimate = protocol.estimate(tally)
    assert estimate.labels == (1, True, "x", "?")
    assert np.abs(estimate.counts - [800, 100, 0, 100]).max() < 5 * np.sqrt(estimate.noise).max()
    assert protocol.estimate(tally, candidates=["x", 1]).counts.tolist() == estimate.counts[[2, 0]].tolist()
    assert CMS(Integers(5, 9), 1).hashing == Strings()
    with pytest.raises(DomainError, match="same text"):
        CMS([1, "1"], 1)


# -- identity and refusals -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SKETCHES)
def test_open_protocols_load_from_their_spec(kind: type[TextProtocol]) -> None:
    protocol = kind(Strings(1 << 10, 300, "clé"), "0.1")
    spec = json.loads(json.dumps(protocol.spec()))
    assert load(spec) == protocol == pickle.loads(pickle.dumps(protocol))
    assert load(spec).fingerprint == protocol.fingerprint
    assert "hashing" not in spec
    other = kind(Strings(1 << 10, 300, "key"), "0.1")
    assert other.fingerprint != protocol.fingerprint
    with pytest.raises(MismatchError):
        other.tally(protocol.privatize(["a", "b"]))
    with pytest.raises(SpecError, match="canonical"):
        load(spec | {"hashing": protocol.domain.spec()})


@pytest.mark.parametrize("kind", SKETCHES)
def test_malformed_reports(kind: type[TextProtocol]) -> None:
    protocol = kind(Strings(4, 3), 1)
    good = protocol.privatize(["a", "b", "c"], Simulation(1)).array
    assert protocol.valid(good).all()
    cohort, padding = good.copy(), good.copy()
    cohort[1, 0] = 3
    padding[2, -1] |= 0x80
    assert protocol.valid(cohort).tolist() == [True, False, True]
    assert protocol.valid(padding).tolist() == [True, True, False]
    with pytest.raises(ReportError, match="1 of 3 reports are malformed"):
        protocol.tally(cohort)


def test_refusals() -> None:
    protocol = CMS(Strings(16, 2), 1)
    tally = protocol.tally(protocol.privatize(["a", "b"], Simulation(1)))
    for candidates, error, message in [
        (None, DomainError, "dictionary"),
        ("ab", DomainError, "one text"),
        ([], DomainError, "empty"),
        ([1], DomainError, "not text"),
        (["a", "a"], LabelError, "'a' stands twice"),
        (["naïve", "nai\u0308ve"], LabelError, "stands twice"),
    ]:
        with pytest.raises(error, match=message):
            protocol.estimate(tally, candidates=candidates)
    with pytest.raises(DomainError, match="dictionary"):
        protocol.channel()
    with pytest.raises(DomainError, match="2\\^28"):
        HCMS(Strings(1 << 22, 128), 1)
    with pytest.raises(DomainError, match="brings its own"):
        CMS(Strings(16, 2), 1, hashing=Strings(16, 4))
    with pytest.raises(DomainError, match=r"dn\.Strings"):
        CMS(["a", "b"], 1, hashing=7)
    with pytest.raises(NumberError, match="bits"):
        OLHSketch(Strings(16, 2), 1, 40)


def test_one_report_and_none() -> None:
    protocol = OLHSketch(Strings(16, 2), 1)
    assert len(protocol.privatize([])) == 0
    assert protocol.tally(protocol.privatize([])) == protocol.empty()
    estimate = protocol.estimate(protocol.tally(protocol.privatize("a")), candidates=["a"])
    assert np.isfinite(estimate.stderr).all()


def test_consistent_shares_leave_room_for_unlisted_text() -> None:
    protocol = OLHSketch(Strings(1 << 10, 4), 4)
    texts = ["rye"] * 5000 + ["toast"] * 3000 + ["something else"] * 2000
    tally = protocol.tally(protocol.privatize(texts, Simulation(3)))
    estimate = protocol.estimate(tally, candidates=["rye", "toast", "absent"])
    consistent = estimate.consistent()
    assert consistent.frequencies.min() >= 0
    assert 1 - consistent.frequencies.sum() == pytest.approx(0.2, abs=0.05)
    assert np.abs(consistent.frequencies - estimate.frequencies).max() < 0.02
    # Without the rest as an answer of its own, a fifth of the crowd would be spread over the candidates.
    assert np.abs(Estimate.consistent(estimate).frequencies - estimate.frequencies).max() > 0.05


@pytest.mark.parametrize("lanes", [1 << 22, 300])
@pytest.mark.parametrize("n", [1, 7, 60, 400])
def test_few_reports_a_cohort_are_counted_like_many(n, lanes, monkeypatch):
    """Cohorts are counted together or each by itself: the same integers."""
    monkeypatch.setattr(open_text, "_LANES", lanes)
    hashing = Strings(cells=128, cohorts=40, key="few")
    for protocol in (CMS(hashing, epsilon=2), RAPPOR(Strings(), epsilon=2)):
        reports = protocol.privatize(["rye", "spelt"] * n, Simulation(n))
        monkeypatch.setattr(open_text, "_FEW", 1000)
        together = protocol.tally(reports)
        monkeypatch.setattr(open_text, "_FEW", 0)
        assert together == protocol.tally(reports)
        assert together == sum(protocol.tally(row[None, :]) for row in reports.array)

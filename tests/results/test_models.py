"""Models of whole records: consistency, entropy, shrinkage, latent classes, and what they say was assumed."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.optimize import check_grad

from deniable import Attributes, Simulation
from deniable.errors import LabelError, MismatchError, NumberError
from deniable.results import Joint
from deniable.results.joint import Model
from deniable.results.models import (
    METHODS,
    Classes,
    Evidence,
    Seen,
    _Squares,
    consistent,
    effects,
    fitted,
    latent,
    outer,
    shrunk,
    simplex,
)

SHAPE = {"a": 3, "b": 4, "c": 2, "d": 3}


def mixture(seed: int, classes: int = 2) -> Classes:
    random = np.random.default_rng(seed)
    answers = tuple(random.dirichlet(np.full(size, 0.5), classes).T for size in SHAPE.values())
    return Classes(random.dirichlet(np.full(classes, 3.0)), answers)


def collected(epsilon: float, n: int = 20_000, seed: int = 0, ask: object = "pairs") -> Joint:
    columns = mixture(1).sample(n, np.random.default_rng(seed))
    protocol = Attributes(SHAPE, epsilon, ask=ask)  # type: ignore[arg-type]
    reports = protocol.privatize(dict(zip(SHAPE, columns, strict=True)), Simulation(seed))
    found: Joint = protocol.estimate(protocol.tally(reports))
    return found


@pytest.fixture(scope="module")
def found() -> Joint:
    return collected(1)


@pytest.fixture(scope="module")
def models(found: Joint) -> dict[str, Model]:
    return {method: found.model(method) for method in METHODS}


@pytest.mark.parametrize("method", METHODS)
def test_tables_of_a_model_agree_are_not_negative_and_add_up(models: dict[str, Model], method: str) -> None:
    model = models[method]
    whole = model.marginal(*SHAPE)
    assert whole.min() >= 0
    assert abs(whole.sum() - 1) < 1e-9
    for size in (1, 2, 3):
        for names in combinations(SHAPE, size):
            rest = tuple(place for place, name in enumerate(SHAPE) if name not in names)
            assert np.abs(model.marginal(*names) - whole.sum(axis=rest)).max() < 1e-9
            for other in permutations(names):
                order = [names.index(name) for name in other]
                assert np.abs(model.marginal(*other) - np.transpose(model.marginal(*names), order)).max() < 1e-9


def test_consistency_makes_overlaps_agree_and_keeps_what_agrees() -> None:
    random = np.random.default_rng(3)
    joint = random.dirichlet(np.ones(3 * 4 * 2 * 2)).reshape(3, 4, 2, 2)
    views = [(0, 1, 2), (1, 2, 3), (0, 3), (0, 1, 3)]
    true = [joint.sum(axis=tuple(axis for axis in range(4) if axis not in view)) for view in views]
    same = consistent([(view, own, 1.0) for view, own in zip(views, true, strict=True)])
    assert all(np.allclose(one, other) for one, other in zip(same, true, strict=True))
    noisy = [
        (view, own + random.normal(0, 0.05, own.shape), 0.1 + place)
        for place, (view, own) in enumerate(zip(views, true, strict=True))
    ]
    found = consistent(noisy)
    for (one, first), (two, second) in combinations(list(zip(views, found, strict=True)), 2):
        common = set(one) & set(two)
        sums = [
            own.sum(axis=tuple(axis for axis, column in enumerate(view) if column not in common))
            for view, own in ((one, first), (two, second))
        ]
        assert np.abs(sums[0] - sums[1]).max() < 1e-9


def test_the_largest_entropy_of_a_chain_is_its_junction_tree() -> None:
    random = np.random.default_rng(4)
    joint = random.dirichlet(np.ones(12)).reshape(2, 3, 2)
    first, second = joint.sum(axis=2), joint.sum(axis=0)
    found = fitted(np.ones((2, 3, 2)), [((0, 1), first), ((1, 2), second)])
    assert np.allclose(found, first[:, :, None] * second[None] / second.sum(axis=1)[None, :, None])


def test_shrinkage_removes_noise_and_keeps_what_is_there() -> None:
    random = np.random.default_rng(5)
    base = outer([np.full(4, 0.25), np.full(5, 0.2)])
    near = [
        np.abs(shrunk(Seen((0, 1), base + random.normal(0, 0.01, (4, 5)), 1e-4, 1), base) - base).sum()
        for _ in range(200)
    ]
    raw = 20 * 0.01 * np.sqrt(2 / np.pi)
    assert np.mean(near) < raw / 2.5  # a third of it on average, by the law of the noise
    strong = base + np.outer([1, -1, 1, -1], [1, 1, 0, -1, -1]) * 0.02
    kept = shrunk(Seen((0, 1), strong, 1e-8, 1), base)
    assert np.allclose(kept, strong, atol=1e-6)
    parts = dict(effects(random.normal(size=(3, 4, 2))))
    assert set(parts) == {(0, 1), (0, 2), (1, 2), (0, 1, 2)}
    for one, other in combinations(parts.values(), 2):
        assert abs(float((one * other).sum())) < 1e-9


def test_latent_classes_are_found_where_there_is_no_noise() -> None:
    true = mixture(1)
    sizes = tuple(SHAPE.values())
    for views in (list(combinations(range(4), 2)), list(combinations(range(4), 3))):
        seen = tuple(Seen(view, true.marginal(view), 1e-7, 1) for view in views)
        evidence = Evidence(sizes, seen)
        best = latent(evidence, classes=2)
        for view in views:  # pairs alone do not tell what is in more columns
            assert np.abs(best.marginal(view) - true.marginal(view)).sum() < 0.02
        squares, x = _Squares(evidence), np.random.default_rng(6).normal(size=2 + 2 * sum(sizes))
        slope = squares(x, 2)[1]
        wrong = check_grad(lambda y, own=squares: own(y, 2)[0], lambda y, own=squares: own(y, 2)[1], x)
        assert wrong < 1e-4 * np.linalg.norm(slope)


def test_models_are_nearer_to_the_truth_than_the_tables() -> None:
    true = mixture(1).marginal((0, 1, 2))

    def far(found: Joint, method: str) -> float:
        return float(np.abs(found.model(method).marginal("a", "b", "c") - true).sum() / 2)

    clear = collected(3, 10_000, seed=1)
    assert far(clear, "latent") < min(far(clear, "max-entropy"), far(clear, "independent"))
    noisy = [collected(1, seed=seed) for seed in range(8)]  # one collection may favour either
    assert sum(far(own, "shrink") for own in noisy) < sum(far(own, "max-entropy") for own in noisy)


def test_a_model_says_what_it_assumed_and_how_sure_it_is() -> None:
    chain = collected(2, ask=[("a", "b"), ("b", "c")])
    model = chain.model("shrink", draws=10)
    assert ("a", "c") in model.assumed
    assert ("a", "b") not in model.assumed
    table = model.table("a", "c")
    assert table.said == ["a and c were not asked together: what they share is assumed"]
    assert (table.stderr > 0).all()
    assert not model.table("a", "b").said
    given = model.table("a", given=["b"])
    assert np.allclose(given.array.sum(axis=0), 1)
    ends = given.interval()
    assert ends.min() >= 0
    assert ends.max() <= 1


def test_synthetic_records_follow_the_model(found: Joint, models: dict[str, Model]) -> None:
    model = models["latent"]
    drawn = model.sample(20_000, seed=7)
    assert list(drawn) == list(SHAPE)
    counts = np.zeros((3, 4))
    np.add.at(counts, (np.array(drawn["a"]).astype(int), np.array(drawn["b"]).astype(int)), 1)
    assert np.abs(counts / 20_000 - model.marginal("a", "b")).max() < 0.02  # 5.6 standard errors
    assert found.synthesize(5, "shrink", seed=1) == found.synthesize(5, "shrink", seed=1)
    assert len(models["shrink"].sample(7)["a"]) == 7
    assert models["shrink"].sample(0) == {name: [] for name in SHAPE}


def test_what_no_model_can_do_is_refused(found: Joint) -> None:
    with pytest.raises(LabelError, match="no model"):
        found.model("guess")
    with pytest.raises(NumberError, match="latent"):
        found.model("shrink", classes=2)
    with pytest.raises(LabelError, match="no column"):
        found.model("independent").marginal("z")
    with pytest.raises(NumberError, match="number of records"):
        found.model("independent").sample(-1)
    protocol = Attributes({f"q{i}": 8 for i in range(8)}, 1, ask=[("q0", "q1"), ("q2", "q3")])
    wide = protocol.estimate(protocol.tally(protocol.privatize([{f"q{i}": 0 for i in range(8)}] * 50)))
    assert abs(wide.model("shrink").marginal("q0", "q1", "q5").sum() - 1) < 1e-9
    with pytest.raises(MismatchError, match="latent"):
        wide.model("shrink").sample(3)
    empty = protocol.estimate(protocol.empty()).model()
    assert np.allclose(empty.marginal("q0"), 1 / 8)


def test_negative_shares_become_the_nearest_ones() -> None:
    assert np.allclose(simplex(np.array([[0.5, 0.7], [-0.2, 0.0]])), [[0.4, 0.6], [0, 0]])


@pytest.mark.slow
def test_associations_have_the_right_size_and_errors() -> None:
    """Of 400 collections of independent columns 2 to 8 percent are rejected at 0.05 (wrong once in 180 times)."""
    random = np.random.default_rng(8)
    protocol = Attributes({"a": 3, "b": 4}, 1, ask="pairs")
    rejected, ratio, right = 0, 0, []
    for seed in range(400):
        columns = {"a": random.choice(3, 3000, p=[0.5, 0.3, 0.2]), "b": random.choice(4, 3000, p=[0.4, 0.3, 0.2, 0.1])}
        found = protocol.estimate(protocol.tally(protocol.privatize(columns, Simulation(seed))))
        own = found.table("a", "b").association()
        rejected += own.test.rejected()
        ratio += found.table("a", "b").independent("G").rejected()
        right.append(abs(own.correlation) < 1.96 * own.correlation_stderr)
    assert 9 <= rejected <= 32
    assert 4 <= ratio <= 32  # on the safe side where there are few people
    assert 0.91 < np.mean(right) < 0.99

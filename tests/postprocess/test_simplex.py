"""The projection is the nearest point; clipping and the published loop are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from deniable.errors import NumberError, ProbabilityError, ShapeError
from deniable.postprocess import clip_renormalize, project_simplex

pytestmark = pytest.mark.floats

vectors = arrays(np.float64, array_shapes(min_dims=1, max_dims=1, max_side=30), elements=st.floats(-5, 5, width=32))


def is_nearest(v, x, total=1.0, slack=1e-9):
    """The optimality conditions: x = max(v - t, 0) for one t, and the right sum."""
    threshold = (v - x)[x > 0]
    return bool(
        (x >= 0).all()
        and abs(x.sum() - total) < slack * max(total, 1)
        and np.ptp(threshold) < slack
        and (v[x == 0] <= threshold.max() + slack).all()
    )


@given(vectors, st.sampled_from([1.0, 0.25, 40.0]))
def test_projection_satisfies_the_optimality_conditions(v, total):
    assert is_nearest(v, project_simplex(v, total), total)


def test_the_conditions_catch_clipping():
    v = np.array([0.9, 0.4, -0.1])
    assert is_nearest(v, project_simplex(v))
    assert not is_nearest(v, clip_renormalize(v))


@given(vectors, st.integers(0, 2**32 - 1))
def test_no_other_distribution_is_nearer(v, seed):
    others = np.random.default_rng(seed).dirichlet(np.full(v.size, 0.5), size=50)
    nearest = ((project_simplex(v) - v) ** 2).sum()
    assert (((others - v) ** 2).sum(axis=1) >= nearest - 1e-12).all()


def test_a_distribution_stays_and_a_batch_is_row_by_row():
    rng = np.random.default_rng(1)
    inside = rng.dirichlet(np.ones(7), size=(3, 4))
    np.testing.assert_allclose(project_simplex(inside), inside, atol=1e-15)
    np.testing.assert_allclose(clip_renormalize(inside), inside, atol=1e-15)
    batch = rng.normal(size=(3, 4, 7))
    for function in (project_simplex, clip_renormalize):
        whole = function(batch, 2.0)
        assert whole.shape == batch.shape
        for i in np.ndindex(3, 4):
            np.testing.assert_array_equal(whole[i], function(batch[i], 2.0))


def published_loop(v, rounds=10_000):
    estimate = v.copy()
    for _ in range(rounds):
        if abs(estimate.sum() - 1) < 1e-12 and (estimate >= 0).all():
            break
        estimate[estimate < 0] = 0
        positive = estimate > 0
        estimate[positive] += (1 - estimate.sum()) / positive.sum()
    return estimate


def test_the_published_norm_sub_loop_differs_below_total_one():
    above = np.array([0.8, 0.5, -0.2, 0.1])
    np.testing.assert_allclose(published_loop(above), project_simplex(above), atol=1e-9)
    below = np.array([0.5, 0.1, -0.01, -0.6])  # the positive entries sum to 0.6
    loop = published_loop(below)
    assert not is_nearest(below, loop, slack=1e-6)
    assert ((loop - below) ** 2).sum() > ((project_simplex(below) - below) ** 2).sum() + 1e-3


@pytest.mark.parametrize("v", [[-1.0, -2.0, -1.5], [0.0, 0.0], [-3.0]])
def test_nothing_positive(v):
    assert is_nearest(np.array(v), project_simplex(v))
    with pytest.raises(ProbabilityError, match="project_simplex"):
        clip_renormalize(v)


def test_one_bad_row_of_a_batch_is_refused_by_clipping():
    with pytest.raises(ProbabilityError):
        clip_renormalize([[0.5, 0.5], [-1.0, 0.0]])


def test_extreme_sizes():
    np.testing.assert_allclose(project_simplex([1e20, 1e20, 0.0]), [0.5, 0.5, 0.0])
    np.testing.assert_allclose(project_simplex([1.7e308, -1.7e308]), [1.0, 0.0])
    np.testing.assert_allclose(clip_renormalize([1e308, 1e308]), [0.5, 0.5])
    np.testing.assert_allclose(clip_renormalize([3e-320, 3e-320]), [0.5, 0.5])


@pytest.mark.parametrize("function", [project_simplex, clip_renormalize])
def test_refusals(function):
    with pytest.raises(NumberError, match="NaN"):
        function([0.1, np.nan])
    with pytest.raises(NumberError, match="total"):
        function([0.1, 0.2], total=0.0)
    with pytest.raises(ShapeError):
        function([])
    with pytest.raises(ShapeError):
        function(3.0)
    with pytest.raises(ShapeError):
        function([[1.0, 2.0], [1.0]])

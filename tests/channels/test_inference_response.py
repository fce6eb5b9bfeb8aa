"""Maximum likelihood for randomized response in closed form: the same as the iteration's limit."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.channels.channel import Channel
from deniable.channels.closed_forms import randomized_response
from deniable.channels.inference import ibu, mle_randomized_response
from deniable.channels.inference.estimators import response_pair
from deniable.channels.noise import truncated_geometric
from deniable.errors import ChannelError, ProbabilityError

pytestmark = pytest.mark.floats


@pytest.mark.parametrize(("k", "epsilon", "n"), [(2, 1, 50), (5, 0.5, 300), (20, 1, 500), (64, 0.2, 5000)])
def test_closed_form_equals_ibu(k, epsilon, n):
    rng = np.random.default_rng(k)
    channel = randomized_response(k, epsilon)
    for _ in range(5):
        counts = rng.multinomial(n, channel.push(rng.dirichlet(np.full(k, 0.5)))).astype(float)
        closed = mle_randomized_response(channel, counts)
        iterated = ibu(channel, counts, tolerance=1e-13)
        np.testing.assert_allclose(closed.frequencies, iterated.frequencies, atol=1e-6)
        np.testing.assert_array_equal(closed.frequencies == 0, iterated.frequencies == 0)
        np.testing.assert_allclose(closed.stderr, iterated.stderr, rtol=1e-5)
        assert closed.gap < 1e-12


def test_the_shortest_prefix_is_not_the_closed_form():
    channel = randomized_response(4, 1)
    counts = np.array([700.0, 300, 250, 40])
    closed = mle_randomized_response(channel, counts)
    p, q = response_pair(channel)
    shorter = np.zeros(4)
    scale = counts[:1].sum() / (q + p - q)
    shorter[:1] = (counts[:1] / scale - q) / (p - q)
    assert np.count_nonzero(closed.frequencies) > 1
    assert float(counts @ np.log(shorter @ channel.rows)) < closed.log_likelihood - 1


def test_closed_form_from_a_pair_and_its_refusals():
    channel = randomized_response(3, 1)
    p, q = response_pair(channel)
    counts = [50, 30, 20]
    np.testing.assert_allclose(
        mle_randomized_response((p, q), counts).frequencies, mle_randomized_response(channel, counts).frequencies
    )
    with pytest.raises(ChannelError, match="ibu"):
        mle_randomized_response(truncated_geometric(3, 1), [1, 2, 3, 4])
    with pytest.raises(ProbabilityError, match="ibu"):
        mle_randomized_response(Channel([["1/4", "3/4"], ["3/4", "1/4"]]), [1, 2])
    with pytest.raises(ProbabilityError, match="not 1"):
        mle_randomized_response((0.6, 0.2), [1, 2])

"""Channels: mechanisms as exact matrices, their privacy, their utility, and inference through them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deniable._extras import late
from deniable.channels.adjacency import ALL, HAMMING, LINE, Adjacency, Witness, hamming, line
from deniable.channels.capacity import Capacity, capacity
from deniable.channels.channel import Channel
from deniable.channels.closed_forms import (
    RandomizedResponse,
    binary,
    coin_response,
    exponential,
    product_response,
    randomized_response,
    subset_selection,
    warner,
)
from deniable.channels.leakage import (
    Leakage,
    leakage,
    min_capacity,
    mutual_information,
    posterior_vulnerability,
    prior_vulnerability,
)
from deniable.channels.utility import Utility, utility

if TYPE_CHECKING:
    from deniable.channels import hypothesis, inference
    from deniable.channels.compose import Collection, Query, collection, group_ratio, mixture, product
    from deniable.channels.divergences import DIVERGENCES, FDivergence, divergence, marginal_divergence
    from deniable.channels.noise import (
        DiscreteLaplace,
        GridLaplace,
        Noise,
        noisy_count,
        noisy_max_law,
        report_noisy_max,
        truncated_geometric,
        two_sided_geometric,
    )

__all__ = [
    "ALL",
    "DIVERGENCES",
    "HAMMING",
    "LINE",
    "Adjacency",
    "Capacity",
    "Channel",
    "Collection",
    "DiscreteLaplace",
    "FDivergence",
    "GridLaplace",
    "Leakage",
    "Noise",
    "Query",
    "RandomizedResponse",
    "Utility",
    "Witness",
    "binary",
    "capacity",
    "coin_response",
    "collection",
    "divergence",
    "exponential",
    "group_ratio",
    "hamming",
    "hypothesis",
    "inference",
    "leakage",
    "line",
    "marginal_divergence",
    "min_capacity",
    "mixture",
    "mutual_information",
    "noisy_count",
    "noisy_max_law",
    "posterior_vulnerability",
    "prior_vulnerability",
    "product",
    "product_response",
    "randomized_response",
    "report_noisy_max",
    "subset_selection",
    "truncated_geometric",
    "two_sided_geometric",
    "utility",
    "warner",
]

# Loaded on first use: a client that randomizes needs only the laws above. (`utility` is a function and a module.)
__getattr__ = late(
    __name__,
    {
        "": ("hypothesis", "inference"),
        "compose": ("Collection", "Query", "collection", "group_ratio", "mixture", "product"),
        "divergences": ("DIVERGENCES", "FDivergence", "divergence", "marginal_divergence"),
        "noise": (
            "DiscreteLaplace",
            "GridLaplace",
            "Noise",
            "noisy_count",
            "noisy_max_law",
            "report_noisy_max",
            "truncated_geometric",
            "two_sided_geometric",
        ),
    },
)

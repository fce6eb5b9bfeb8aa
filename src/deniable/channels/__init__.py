"""Channels: mechanisms as exact matrices, their privacy, their usefulness, and what can be inferred through them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deniable.channels import inference
from deniable.channels.adjacency import ALL, HAMMING, LINE, Adjacency, Witness, hamming, line
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
from deniable.channels.utility import (
    Capacity,
    Leakage,
    Utility,
    capacity,
    leakage,
    min_capacity,
    mutual_information,
    posterior_vulnerability,
    prior_vulnerability,
    utility,
)

if TYPE_CHECKING:
    from deniable.channels import hypothesis

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


def __getattr__(name: str) -> Any:
    # Loaded when first used: most programs do without it.
    if name == "hypothesis":
        return import_module("deniable.channels.hypothesis")
    raise AttributeError(f"module 'deniable.channels' has no attribute {name!r}")

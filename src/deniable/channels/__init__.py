"""Channels: mechanisms as exact matrices, their privacy, their usefulness, and what can be inferred from them."""

from __future__ import annotations

from deniable.channels.adjacency import ALL, HAMMING, LINE, Adjacency, hamming, line
from deniable.channels.binary import binary
from deniable.channels.central import noisy_count, noisy_max_law, report_noisy_max
from deniable.channels.channel import Channel, Witness
from deniable.channels.compose import Collection, collection, group_ratio, mixture, product
from deniable.channels.exponential import exponential
from deniable.channels.geometric import truncated_geometric
from deniable.channels.noise import DiscreteLaplace, GridLaplace, Noise, two_sided_geometric
from deniable.channels.oblivious import Query
from deniable.channels.randomized_response import (
    RandomizedResponse,
    coin_response,
    product_response,
    randomized_response,
    warner,
)
from deniable.channels.subset_selection import subset_selection

__all__ = [
    "ALL",
    "HAMMING",
    "LINE",
    "Adjacency",
    "Channel",
    "Collection",
    "DiscreteLaplace",
    "GridLaplace",
    "Noise",
    "Query",
    "RandomizedResponse",
    "Witness",
    "binary",
    "coin_response",
    "collection",
    "exponential",
    "group_ratio",
    "hamming",
    "line",
    "mixture",
    "noisy_count",
    "noisy_max_law",
    "product",
    "product_response",
    "randomized_response",
    "report_noisy_max",
    "subset_selection",
    "truncated_geometric",
    "two_sided_geometric",
    "warner",
]

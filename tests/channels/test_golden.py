"""Fingerprints that must not change: other people have stored them.

A difference here means that channels built by this version are not the ones that earlier versions published.
If that is intended, say so in the changelog and write the file anew, deliberately:

    DENIABLE_WRITE_GOLDEN=yes python -m pytest tests/channels/test_golden.py
"""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path

import pytest

from deniable.channels import (
    Channel,
    DiscreteLaplace,
    Query,
    binary,
    coin_response,
    exponential,
    line,
    mixture,
    product,
    product_response,
    randomized_response,
    subset_selection,
    truncated_geometric,
    warner,
)
from deniable.specs import canonical_bytes

FILE = Path(__file__).parents[1] / "golden" / "channels.json"

LABELS = ["é", 1, True, 1.0, Fraction(1, 3), 2**60, ("a", (0, False))]

CHANNELS = {
    "coin": lambda: coin_response(),
    "coin of floats": lambda: Channel([[3 / 4, 1 / 4], [1 / 4, 3 / 4]], ["yes", "no"], ["yes", "no"]),
    "warner 0.1": lambda: warner(0.1),
    "randomized response 10": lambda: randomized_response(10, 1),
    "every kind of label": lambda: randomized_response(LABELS, "2.5"),
    "split record": lambda: product_response([2, ["a", "b", "c"]], "1/3"),
    "binary": lambda: binary([0.3, 0.6, 0.1], [0.3, 0.2, 0.5], 1, ties=1),
    "subset selection 5 of 2": lambda: subset_selection(5, 1, 2),
    "truncated geometric 20": lambda: truncated_geometric(20, 1),
    "truncated geometric, sensitivity 3": lambda: truncated_geometric(8, "0.1", 3),
    "clamped noise": lambda: DiscreteLaplace(64).clamp(-2, 2),
    "exponential": lambda: exponential(lambda x, y: -abs(x - y), 1, range(4), range(4), "line"),
    "repaired identity": lambda: Channel.from_floats([[1, 0, 0], [0, 1, 0], [0, 0, 1]], 1, line(2)),
    "divided by its sum": lambda: Channel([[1 / 3, 1 / 3, 1 / 3], [0.1, 0.2, 0.7]], adjacency=[(0, 1)]),
    "after a query": lambda: Query.on_records(2, [0, 1], sum).oblivious(truncated_geometric(2, 1)),
    "mixture": lambda: mixture([coin_response(), coin_response(truth=0)], [0.9, 0.1]),
    "product and remap": lambda: (
        product(warner(1), warner(2))
        >> Channel([[1, 0], [0, 1], [0, 1], [1, 0]], product(warner(1), warner(1)).outputs, ["same", "different"])
    ),
}


def current() -> dict[str, str]:
    return {name: build().fingerprint for name, build in CHANNELS.items()}


def test_fingerprints_are_what_they_were():
    if os.environ.get("DENIABLE_WRITE_GOLDEN") == "yes":
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(json.dumps(current(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    golden = json.loads(FILE.read_text(encoding="utf-8"))
    assert current() == golden
    assert len(set(golden.values())) == len(golden) - 1  # the two coins are one channel


@pytest.mark.parametrize("name", CHANNELS)
def test_golden_channels_travel(name):
    channel = CHANNELS[name]()
    text = canonical_bytes(channel.spec())
    again = Channel.load(json.loads(text))
    assert again == channel
    assert canonical_bytes(again.spec()) == text


def test_one_spec_in_full():
    assert canonical_bytes(coin_response().spec()) == (
        b'{"adjacency":"all","denominator":"4","inputs":["yes","no"],"kind":"channel",'
        b'"outputs":["yes","no"],"rows":[["3","1"],["1","3"]],"version":1}'
    )

"""The wire does not change by accident: fingerprints and report bytes are pinned.

`python -m tests.protocols.test_golden` writes the file anew. Do that only for a change that is meant to break
every published survey, and say so in the changelog. New protocols are added by the same command.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.channels import Channel
from deniable.domains import BitStrings, Grid, Integers, Interval, Sets, ShortText
from deniable.protocols import (
    BLH,
    GRR,
    LGRR,
    LOLOHA,
    LOSUE,
    LSUE,
    OLH,
    OUE,
    RAPPOR,
    SUE,
    THE,
    Attributes,
    BlockDesign,
    DBitFlip,
    Evolving,
    HadamardResponse,
    HeavyHitters,
    ItemSets,
    KeyValue,
    LOneBitMean,
    MeanTable,
    PlanarLaplace,
    PrivateStrata,
    Protocol,
    Queries,
    Ranges,
    Rectangles,
    SecureSum,
    Stratified,
    SubsetSelection,
    Table,
    Window,
    load,
)
from deniable.protocols.profiles import KaryResponse, OneBitCluster, ProfileGraph, ProfileTable
from deniable.randomness import Bits, Simulation

FILE = Path(__file__).parents[1] / "golden" / "protocols.json"

PINNED: list[Protocol] = [
    GRR(["yes", "no"], 1),
    GRR(["never", "once", "often", "prefer not to say"], "0.1"),
    GRR(1024, 2),
    GRR(100_000, "1/3"),
    SUE(["a", "b", "c"], 1),
    SUE(100, 4),
    OUE(["ä", "ö", "ü"], 1),
    OUE(70, "0.5"),
    THE(12, 1),
    BLH(1000, 1),
    OLH(1024, 1),
    OLH(5, 3),
    OLH(1 << 20, 2),
    SubsetSelection(6, 1, subset_size=2),
    SubsetSelection(1024, 1),
    SubsetSelection(1000, 4, subset_size=18),
    HadamardResponse(10, 1),
    HadamardResponse(1000, 4),
    LGRR(["yes", "no"], first="1/2", forever=1),
    LGRR(1000, first=2, forever="7/2"),
    LOLOHA(1000, first=1, forever="5/2"),
    RAPPOR(["rye", "sourdough"], first=2, forever=4, bloom_bits=16, cohorts=4),
    LSUE(["ä", "ö", "ü"], first="1/2", forever=1),
    LOSUE(70, first=2, forever="7/2"),
    DBitFlip(24, first=1, forever=2),
    DBitFlip(700, first="1/2", forever=2, bits=1),
    LOneBitMean(Interval(0, 1440, unit="minutes"), first=1, forever=2, steps=24),
    Evolving(["no", "yes"], 1, epochs=30, changes=2),
    Evolving(["ä", "ö", "ü"], "1/2", epochs=8, changes=0),
    Window(Interval(0, 24, unit="hours"), 3),
    MeanTable(
        Channel.from_integers([[5, 3, 1, 1], [3, 2, 2, 3], [1, 1, 3, 5]], 10, range(3), range(4)),
        Interval(0, 24, unit="hours"),
        values=[-2, -1, 1, 2],
    ),
    Attributes.of({"smoke": GRR(["yes", "no"], 1), "age": OLH(80, 1), "sleep": Window(Interval(0, 24), 1)}),
    Attributes({"smoke": ["yes", "no"], "age": Integers(17, 90), "sleep": Interval(0, 24)}, 1, ask="pairs"),
    Attributes({"a": 3, "b": 12, "c": ["ä", "ö"]}, 2, ask=["a", ("b", "c"), ("a", "b", "c")]),
    Stratified({"country": ["de", "fr"], "beta": [True, False]}, OLH(80, 1), "age"),
    SecureSum(["ä", "ö", "ü"], 1, people=1000, missing=50),
    SecureSum(Integers(17, 90), "1/2", people=400, collectors=3, read="mean", delta="1/1000000"),
    PrivateStrata({"sex": ["f", "m"], "beta": [True, False], "smoke": ["yes", "no", "rarely"]}, 1),
    PrivateStrata({"team": 7, "sleep": Interval(0, 24, unit="hours")}, 3),
    Ranges(100, 1),
    Ranges(Interval(0, 24), 2, fanout=4, cells=96),
    Queries({"age": Integers(17, 90), "smoke": ["yes", "no"]}, 1, regress={"target": "smoke", "link": "logistic"}),
    Queries({"age": 9, "y": Interval(0, 1)}, 2, regress={"target": "y"}, at=["1/2", -1]),
    Rectangles({"age": Integers(17, 90), "hours": Interval(0, 80)}, 1, grids=[(4, 4), (8, 8), (80, 1), (1, 64)]),
    PlanarLaplace(Grid(16, 12, cell="500 m"), 1),
    PlanarLaplace(Grid(5, 7), "1/3", reach=4),
    ItemSets(Sets(["mail", "maps", "music", "news"], at_most=3), 1),
    ItemSets(Sets(1000, at_most=4), 2, largest=3),
    KeyValue(["mail", "maps"], Interval(1, 5, unit="stars"), 1, at_most=2),
    KeyValue(300, Interval(-1, 1), 4, at_most=3),
    HeavyHitters(ShortText(16, "habits/drink"), 4, people=1000, hash_bits=6, weights=[10] * 8 + [13, 6]),
    HeavyHitters(BitStrings(20), 1, cell_bits=6, prefixes=[6, 13, 20], hash_bits=2, weights=[10, 10, 13, 6]),
    Table(Channel.from_integers([[3, 1], [1, 3]], 4, ["yes", "no"], ["heads", "tails"]), "1.1"),
    Table(Channel.from_integers([[97, 2, 1], [2, 98, 0]], 100, ["yes", "no"], ["y", "n", "sure"]), 4, delta="1/100"),
    ProfileTable(OneBitCluster(ProfileGraph.chain({"north": "1/8", "south": "7/8"}), 1)),
    ProfileTable(KaryResponse(ProfileGraph.chain([["1/2", "1/3", "1/6"], [0, 0, 1]]), "1/2"), read="profiles"),
    BlockDesign(1024, 1),
    BlockDesign(300, 3),
    BlockDesign(1 << 20, 2, cells=16, window=3),
]


def answer(protocol: Protocol, position: int | None) -> Any:
    """A listed answer by its position; of other domains their example."""
    return protocol.domain.example if position is None else protocol.domain.labels[position]


class Recorder(Bits):
    """A simulation that remembers the bytes it gave."""

    def __init__(self, seed: int) -> None:
        self.inner = Simulation(seed)
        self.given = b""

    def take(self, count: int) -> bytes:
        data = self.inner.take(count)
        self.given += data
        return data

    def fill(self, out: NDArray[np.uint8]) -> None:
        raise AssertionError("a single report draws word by word")


class Player(Bits):
    """Plays recorded bytes back."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, count: int) -> bytes:
        taken, self.data = self.data[:count], self.data[count:]
        assert len(taken) == count, "more random bytes are consumed than were recorded"
        return taken

    def fill(self, out: NDArray[np.uint8]) -> None:
        raise AssertionError("a single report draws word by word")


def entry(protocol: Protocol) -> dict[str, Any]:
    vectors = []
    for seed in range(8):
        listed = protocol.domain.is_listed
        value = (seed * 7919) % protocol.domain.size if listed else None
        bits = Recorder(seed)
        report = protocol.privatize([answer(protocol, value)], bits).to_bytes()
        vectors.append({"position": value, "random": bits.given.hex(), "report": report.hex()})
    return {"spec": protocol.spec(), "fingerprint": protocol.fingerprint, "vectors": vectors}


def stored() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return entries


@pytest.mark.parametrize("golden", stored() if FILE.exists() else [], ids=lambda g: g["fingerprint"][:12])
def test_pinned_protocols_still_give_the_same_bytes(golden: dict[str, Any]) -> None:
    protocol = load(golden["spec"])
    assert protocol.fingerprint == golden["fingerprint"]
    assert protocol.spec() == golden["spec"]
    for vector in golden["vectors"]:
        bits = Player(bytes.fromhex(vector["random"]))
        assert protocol.privatize([answer(protocol, vector["position"])], bits).to_bytes().hex() == vector["report"]
        assert bits.data == b"", "fewer random bytes are consumed than were recorded"


def test_every_pinned_protocol_is_stored() -> None:
    known = {golden["fingerprint"] for golden in stored()}
    assert {protocol.fingerprint for protocol in PINNED} <= known


def test_the_same_level_written_differently_is_the_same_protocol() -> None:
    names = {GRR(["a", "b"], level).fingerprint for level in (0.1, "0.1", "1/10", "1e-1")}
    assert len(names) == 1
    assert GRR(["a", "b"], 0.1).fingerprint != GRR(["b", "a"], 0.1).fingerprint
    assert GRR([1, 0], 1).fingerprint != GRR([True, False], 1).fingerprint


if __name__ == "__main__":
    kept = {golden["fingerprint"]: golden for golden in (stored() if FILE.exists() else [])}
    kept |= {protocol.fingerprint: entry(protocol) for protocol in PINNED}
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(list(kept.values()), indent=1) + "\n", encoding="utf-8")

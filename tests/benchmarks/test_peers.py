"""How other packages are asked, and how their answers are laid side by side. No package is installed for this."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import comparison, frequency
from benchmarks.peers import environments, worker
from benchmarks.registry import UnavailableError, at_least
from benchmarks.timing import Figure, Result, Timing

PEER = """
import time

PACKAGE = "pip"
print("packages may print")


def oracle():
    def client(values):
        time.sleep(0.001 * len(values))
        return values

    def server():
        kept = []

        def frequencies():
            time.sleep(0.05)
            return [sum(report == value for report in kept) / len(kept) for value in range(1024)]

        return kept.extend, frequencies

    return client, server


TASKS = {"nap": lambda count: lambda: time.sleep(0.001 * count)}
ORACLES = {"plain": oracle}
"""


@pytest.fixture
def peer(monkeypatch, tmp_path):
    (tmp_path / "run_a_peer.py").write_text(PEER)
    monkeypatch.setattr(environments, "HERE", tmp_path)
    monkeypatch.setattr(environments, "_attempt", lambda package: Path(sys.executable))
    environments.close_workers()
    yield "a-peer"
    environments.close_workers()


def test_a_worker_times_what_it_is_asked_and_stays(peer):
    nap = environments.task(peer, "nap", 20, "call")
    assert 0.02 <= nap.once() < 2
    assert 0.02 <= environments.task(peer, "client", 20, "report", "plain").once() < 2
    tally = environments.task(peer, "tally", 20, "report", "plain").once()
    server = environments.task(peer, "server", 20, "report", "plain").once()
    assert tally < 0.05 <= server  # neither randomizing nor, for a tally, estimating is timed
    assert len(environments._workers) == 1


def test_estimates_are_of_the_same_people(peer):
    found = environments.frequencies(peer, "plain", 1000)
    truth = Counter(worker.zipf(1000))
    assert found == [truth[value] / 1000 for value in range(1024)]


def test_a_worker_that_fails_says_why_every_time(peer):
    for _ in range(2):
        with pytest.raises(UnavailableError, match="a-peer does not run: KeyError: 'absent'"):
            environments.call(peer, Path(sys.executable), "client", 10, "absent")


def test_answers_follow_the_law():
    assert sum(worker.shares()) == pytest.approx(1)
    counts = Counter(worker.zipf(100_000))
    # Evenly spread numbers are off by a few people, where random ones would be off by hundreds.
    assert all(abs(counts[value] - 100_000 * share) < 20 for value, share in enumerate(worker.shares()))
    assert max(worker.zipf(1000, size=4)) == 3


def a_result(name="OUE", client=100.0, goal=None):
    timings = [
        Timing(frequency.task_name(side, "deniable"), "report", 1, 1, 1e-7, 1e-7) for side in ("client", "server")
    ]
    values = {"client": client, "server": 30.0}
    figures = [
        Figure(frequency.ratio_label(side, "pure-ldp"), value, goal, None, True) for side, value in values.items()
    ]
    facts = {"people": "1,000", frequency.error_label(frequency.GUESS): "4e-05"}
    facts |= {frequency.error_label(who): "1e-05" for who in ("deniable", "deniable, consistent", "ldp-toolbox")}
    tops = ("in truth", "deniable", "deniable, consistent", "ldp-toolbox")
    facts |= {frequency.largest_label(who): "0.179" for who in tops}
    return Result(name, name, tuple(timings), tuple(figures), facts, group="frequency")


def test_the_table_has_a_ratio_where_a_package_has_the_protocol():
    table = comparison.markdown([a_result(), Result("OLH-domain", "another kind of figure")])
    assert "| OUE | client | 100 ns | 100x |  |  |  |" in table
    assert "| OUE | server | 100 ns | 30x |  |  |  |" in table
    assert "| OUE | 1,000 | 1e-05 (0.179) | 1e-05 (0.179) |  |  | 1e-05 (0.179) |  |" in table
    assert "ldp-toolbox (rescaled)" in table
    assert "OLH-domain" not in table


def test_the_chart_moves_with_the_figures_only(tmp_path):
    pytest.importorskip("matplotlib")
    drawn = []
    for client in (100.0, 100.0, 200.0):
        comparison.draw([a_result(client=client, goal=at_least(80))], tmp_path / "chart.svg")
        drawn.append((tmp_path / "chart.svg").read_bytes())
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize("name", frequency.ORACLES)
def test_every_oracle_is_served_by_its_rivals_scripts(name):
    oracle = frequency.ORACLES[name]
    assert oracle.make().name == name
    for package in oracle.rivals:
        script = environments.HERE / f"run_{package.replace('-', '_')}.py"
        assert f'"{name}":' in script.read_text(encoding="utf-8")
    assert {*oracle.client_goals, *oracle.single_goals, *oracle.server_goals} <= {*oracle.rivals}

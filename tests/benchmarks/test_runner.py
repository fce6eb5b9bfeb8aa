"""The benchmark runner: how ratios and goals are judged, and what is stored. Nothing here depends on speed."""

from __future__ import annotations

import doctest
import gc
import io
import json
import math
import subprocess
import sys
from itertools import cycle

import pytest
from rich.console import Console

from benchmarks import chart, cost_chart, goals_chart, report, run, storage, timing
from benchmarks.design import STAGES, task_name
from benchmarks.peers import environments
from benchmarks.registry import (
    Benchmark,
    Case,
    Size,
    Task,
    UnavailableError,
    at_least,
    at_most,
    benchmark,
    cost,
    faster,
    registered,
    seconds,
    work,
)
from benchmarks.timing import Figure

DESIGN = "design"


@pytest.fixture(scope="module", autouse=True)
def what_other_tests_left_is_not_searched():
    """The runner collects garbage before each round: in a process full of other tests' objects that takes long."""
    gc.freeze()


@pytest.fixture
def no_pictures(monkeypatch):
    for module in (chart, goals_chart):
        monkeypatch.setattr(module, "draw", lambda *arguments: None)


def scripted(*times, count=1):
    """A task that claims to take the given times, one after the other."""
    clock = cycle(times)
    return Task(lambda: next(clock), count, "report")


def measured(case, rounds=3):
    return timing.measure(Benchmark("name", "title", lambda size: case), Size(quick=True), rounds)


def a_run(*results, quick=False):
    machine = {"cpu": "abacus", "cores": 1, "system": "wood"}
    return report.Run("2020-02-02T00:00:00+00:00", quick, machine, {"python": "3.11"}, results)


TWO_TASKS = {"ours": scripted(9.0, 2.0, 3.0, 4.0, count=2), "theirs": scripted(9.0, 60.0, 50.0, 70.0, count=5)}


def test_the_best_round_counts_and_the_warm_up_does_not():
    ours, theirs = measured(Case(TWO_TASKS)).timings
    assert (ours.best, ours.median, ours.rounds, ours.count) == (1.0, 1.5, 3, 2)
    assert (theirs.best, theirs.median) == (10.0, 12.0)


def test_ratios_are_per_unit_and_their_direction_is_named():
    tasks = {"ours": scripted(1.0), "theirs": scripted(50.0, count=5)}
    speed, price, wait = measured(
        Case(tasks, [faster("ours", than="theirs"), cost("ours", of="theirs"), seconds("ours", at_most(2))])
    ).figures
    assert (speed.value, speed.met, speed.speedup) == (10.0, None, True)
    assert (price.value, price.met, price.speedup) == (0.1, None, False)
    assert (wait.value, wait.met) == (1.0, True)


@pytest.mark.parametrize(
    ("goal", "met"),
    [
        (at_least(10), True),
        (at_least(10.001), False),
        (at_most(10), True),
        (at_most(9.999), False),
    ],
)
def test_a_goal_is_judged(goal, met):
    result = measured(Case({"a": scripted(1.0), "b": scripted(10.0)}, [faster("a", than="b", goal=goal)]))
    assert result.figures[0].met is met
    outcome = a_run(result)
    assert outcome.passed is met
    assert ("MISSED" in report.markdown(outcome)) is not met
    assert not goal.met(math.nan)


def test_what_cannot_be_run_is_reported_and_the_rest_still_runs():
    def unavailable(size):
        raise UnavailableError("opendp cannot be installed: no network")

    def broken(size):
        raise ZeroDivisionError("division by zero")

    shown = io.StringIO()
    chosen = [
        Benchmark("first", "first", unavailable),
        Benchmark("second", "second", broken),
        Benchmark("third", "third", lambda size: Case({"task": work(lambda: None)})),
    ]
    outcome = run.execute(chosen, quick=True, console=Console(file=shown), facts={})
    assert [line.partition(": ")[2] for line in shown.getvalue().splitlines()] == ["first", "second", "third"]
    assert [result.problem for result in outcome.results] == [
        "not available: opendp cannot be installed: no network",
        "failed: ZeroDivisionError: division by zero",
        None,
    ]
    assert not outcome.passed


def test_garbage_collection_is_off_while_timing_and_on_again_after():
    seen = []
    measured(Case({"task": work(lambda: seen.append(gc.isenabled()))}), rounds=2)
    assert seen == [True, False, False]  # the warm-up is not timed
    assert gc.isenabled()


def test_the_registry_refuses_a_name_twice(monkeypatch):
    monkeypatch.setattr("benchmarks.registry._registered", {})
    benchmark("one", "the first")(lambda size: Case({}))
    with pytest.raises(ValueError, match="'one'"):
        benchmark("one", "the second")(lambda size: Case({}))
    assert list(registered()) == ["one"]


@pytest.fixture
def stage(monkeypatch, tmp_path):
    """The runner with one benchmark of its own, storing under a temporary folder."""
    monkeypatch.setattr("benchmarks.registry._registered", {})
    monkeypatch.setattr(run, "MODULES", ())
    monkeypatch.setattr(run, "ROUNDS", 2)
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(run, "ASSETS", tmp_path / "assets")

    def register(goal):
        tasks = {"ours": scripted(1.0), "theirs": scripted(10.0)}
        case = Case(tasks, [faster("ours", than="theirs", goal=goal)], {"bytes": 4})
        benchmark("speed", "speed | of things")(lambda size: case)

    return register


def test_a_full_run_is_stored(stage, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    stage(at_least(10))
    assert run.main([]) == 0
    stored = json.loads((tmp_path / "results" / "core.json").read_text())
    assert set(stored) == {"format", "date", "quick", "machine", "versions", "results", "passed"}
    assert {"cpu", "cores", "system"} <= set(stored["machine"])
    assert {"python", "numpy", "deniable"} <= set(stored["versions"])
    (result,) = stored["results"]
    assert result["figures"] == [
        {
            "label": "ours: times faster than theirs",
            "value": 10.0,
            "goal": {"kind": "at least", "limit": 10, "full_only": False},
            "met": True,
            "speedup": True,
        }
    ]
    assert result["timings"][0] == {
        "task": "ours", "unit": "report", "count": 1, "rounds": run.ROUNDS, "best": 1.0, "median": 1.0,
    }  # fmt: skip
    assert "| speed \\| of things | ours: times faster than theirs | 10 | at least 10 | met |" in (
        tmp_path / "results" / "core.md"
    ).read_text(encoding="utf-8")
    assert "10x" in (tmp_path / "assets" / "benchmarks.svg").read_text(encoding="utf-8")
    assert "10 (at least 10)" in (tmp_path / "assets" / "benchmarks-goals.svg").read_text(encoding="utf-8")
    assert "met" in capsys.readouterr().out


def test_a_missed_goal_is_stored_and_fails(no_pictures, stage, tmp_path, capsys):
    stage(at_least(11))
    assert run.main([]) == 1
    assert json.loads((tmp_path / "results" / "core.json").read_text())["passed"] is False
    assert "missed: ours: times faster than theirs" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--quick"], ["--only", "speed"]])
def test_a_partial_run_replaces_nothing(stage, tmp_path, options):
    stage(at_least(10))
    benchmark("another", "of the same group")(lambda size: Case({"task": scripted(1.0)}))
    benchmark("elsewhere", "of another group", group=DESIGN)(lambda size: Case({"task": scripted(1.0)}))
    assert run.main([*options, "--json", str(tmp_path / "mine.json")]) == 0
    assert json.loads((tmp_path / "mine.json").read_text())["results"][0]["name"] == "speed"
    assert not (tmp_path / "results").exists()


def test_goals_that_are_meant_for_full_size_are_not_judged_at_another(stage, tmp_path, capsys):
    stage(at_least(11, full_only=True))
    assert run.main(["--quick"]) == 0
    shown = capsys.readouterr().out
    assert "not judged at this size: ours: times faster than theirs (speed)" in shown
    assert "missed" not in shown
    benchmark("another", "of the same group")(lambda size: Case({"task": scripted(1.0)}))
    assert run.main(["--only", "speed"]) == 1
    shown = capsys.readouterr().out
    assert "missed: ours: times faster than theirs (speed)" in shown
    assert "not judged" not in shown


def test_one_group_fails_and_the_others_are_stored(no_pictures, stage, tmp_path, capsys, monkeypatch):
    @benchmark("broken", "broken", group="files")
    def broken(size):
        raise ZeroDivisionError("division by zero")

    def undrawn(*arguments):
        raise ValueError("no ink")

    monkeypatch.setitem(storage.CHARTS, DESIGN, undrawn)
    benchmark("plain", "without a chart", group=DESIGN)(lambda size: Case({"task": scripted(1.0)}))
    stage(at_least(10))
    assert run.main([]) == 1
    shown = capsys.readouterr().out
    assert "broken: failed: ZeroDivisionError: division by zero" in shown
    assert "not stored: files" in shown
    assert "not stored: design: ValueError: no ink" in shown
    assert (tmp_path / "results" / "core.json").exists()
    assert not (tmp_path / "results" / "files.json").exists()


def test_an_interruption_costs_one_group(no_pictures, stage, tmp_path):
    stage(at_least(10))

    @benchmark("long", "too long", group=DESIGN)
    def long(size):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.main([])
    assert (tmp_path / "results" / "core.json").exists()


def test_a_run_with_a_failure_replaces_nothing(stage, tmp_path):
    stage(at_least(10))

    @benchmark("broken", "broken")
    def broken(size):
        raise UnavailableError("not here")

    assert run.main([]) == 1
    assert not (tmp_path / "results").exists()


def test_a_group_that_runs_apart_is_run_when_it_is_named(no_pictures, stage, tmp_path):
    stage(at_least(10))
    seen = []
    apart, long = run.APART[-1], work(lambda: seen.append(1))
    benchmark("long", "takes long", group=apart, rounds=1)(lambda size: Case({"task": long}))
    assert run.main([]) == 0
    assert (tmp_path / "results" / "core.json").exists()
    assert seen == []
    (tmp_path / "results" / "core.json").unlink()
    assert run.main(["--group", apart]) == 0
    assert len(seen) == 2, "the warm-up, and one round"
    assert [path.name for path in sorted((tmp_path / "results").glob("*.json"))] == [f"{apart}.json"]


def test_the_table_of_rates_is_made_from_the_results():
    """Rates are those of the median round; what was not measured is empty."""
    from benchmarks import capacity

    tasks, facts = [], {}
    for store in (capacity.NO_STORE, capacity.MEMORY, *capacity.DURABLE):
        for kind in capacity.KINDS:
            for ids in (0,) if store == capacity.NO_STORE else (0, capacity.BEFORE):
                name = capacity.task_name(store, kind, ids)
                tasks.append(timing.Timing(name, "submission", 1, 5, best=1e-6, median=1 / 61_234))
                facts[f"{name}: milliseconds"] = "1.5 (median), 20 (99 %)"
        facts[f"{store}: memory of the service"] = "70 MiB"
    table = capacity.rates(a_run(timing.Result("load", "load", tuple(tasks), facts=facts, group="load"))).splitlines()
    assert "10,000,000 ids" in table[2]
    assert table[4] == "| no store | 61,000 (1.5 / 20) |  | 61,000 (1.5 / 20) |  | 61,000 (1.5 / 20) |  | 70 MiB |"
    assert table[-2].startswith("| PostgreSQL 18 | 61,000 (1.5 / 20) | 61,000 (1.5 / 20) |")
    assert len({line.count("|") for line in table[2:]}) == 1


def test_an_unknown_name_is_refused(stage, capsys):
    stage(at_least(10))
    with pytest.raises(SystemExit):
        run.main(["--only", "sped"])
    assert "speed" in capsys.readouterr().err


def test_the_chart_does_not_depend_on_the_day(tmp_path):
    pytest.importorskip("matplotlib")
    tasks = {"a": scripted(1.0), "b": scripted(0.5)}
    result = measured(Case(tasks, [faster("a", than="b", goal=at_least(8)), cost("a", of="b")]))
    for name in ("one.svg", "two.svg"):
        chart.draw(a_run(result), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_a_peer_that_cannot_be_installed_says_why(monkeypatch, tmp_path):
    def refuse(step, **options):
        return subprocess.CompletedProcess(step, int("pip" in step), "", "collecting\nERROR: no network\n")

    (tmp_path / "absent.txt").write_text("absent==1\n")
    monkeypatch.setattr(environments, "HERE", tmp_path)
    monkeypatch.setattr(environments, "ENVIRONMENTS", tmp_path / "peers")
    monkeypatch.setattr(environments.subprocess, "run", refuse)
    with pytest.raises(UnavailableError, match="absent cannot be installed: ERROR: no network"):
        environments.task("absent", "response", 1, "report")


def test_a_peer_that_does_not_run_says_why(monkeypatch, tmp_path):
    from pathlib import Path

    (tmp_path / "run_half_broken.py").write_text("raise RuntimeError('old numpy needed')\n")
    monkeypatch.setattr(environments, "HERE", tmp_path)
    with pytest.raises(UnavailableError, match="half-broken does not run: RuntimeError: old numpy needed"):
        environments.call("half-broken", Path(sys.executable), "response", 1)


def test_the_examples_in_docstrings():
    assert doctest.testmod(report) == (0, 2)


@pytest.mark.slow
def test_a_whole_group_with_a_file_of_its_own_is_stored(stage, tmp_path):
    pytest.importorskip("matplotlib")
    stage(at_least(10))
    times = {task_name(part, k): scripted(k * 1e-3) for part in STAGES for k in (10, 100)}
    benchmark("extremal-cost", "cost", group=DESIGN)(lambda size: Case(times))
    benchmark("other", "the other of the group", group=DESIGN)(lambda size: Case({"task": scripted(1.0)}))
    assert run.main(["--only", "extremal-cost"]) == 0
    assert run.main(["--quick", "--only", "extremal-cost", "--only", "other"]) == 0
    assert not (tmp_path / "results").exists()
    assert run.main(["--only", "extremal-cost", "--only", "other"]) == 0
    stored = json.loads((tmp_path / "results" / "design.json").read_text())
    assert [result["name"] for result in stored["results"]] == ["extremal-cost", "other"]
    assert "the other of the group" in (tmp_path / "results" / "design.md").read_text(encoding="utf-8")
    drawn = (tmp_path / "assets" / "benchmarks-design.svg").read_text(encoding="utf-8")
    assert all(label in drawn for label in cost_chart.LABELS.values())
    assert not (tmp_path / "results" / "core.json").exists()
    (tmp_path / "results" / "design.json").unlink()
    assert run.main([]) == 0
    assert (tmp_path / "results" / "design.json").exists()
    assert (tmp_path / "results" / "core.json").exists()


def test_a_group_with_a_failure_keeps_what_is_stored(stage, tmp_path):
    @benchmark("broken", "broken", group=DESIGN)
    def broken(size):
        raise UnavailableError("not here")

    assert run.main(["--only", "broken"]) == 1
    assert not (tmp_path / "results").exists()


def test_the_margin_to_a_goal():
    below, above = at_most(6), at_least(2)
    assert goals_chart.margin(Figure("cost", 3.0, below, True, False)) == 2.0
    assert goals_chart.margin(Figure("speed", 1.0, above, False, True)) == 0.5

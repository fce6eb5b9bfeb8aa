"""The runner: choose, time, show, and store.

A run of everything at full size replaces the stored results, the docs' tables and the charts, unless a benchmark
could not be run; `--quick` stores nothing. `--only` stores nothing but whole groups that have a file of their own: with
all benchmarks of the group "design" or "engines", its numbers, table and chart are replaced, with the date of that
run. `--check` stores nothing and names what got slower than the stored runs. The exit status is 1 when a goal was
missed, a benchmark could not be run, or a check found something.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.machine import machine, versions
from benchmarks.registry import Benchmark, Size, registered
from benchmarks.regression import slower, stored_runs
from benchmarks.report import Run, document, markdown, terminal_table
from benchmarks.timing import Result, measure

MODULES = (
    "benchmarks.core",
    "benchmarks.peers.compare",
    "benchmarks.frequency",
    "benchmarks.design",
    "benchmarks.engines",
    "benchmarks.service",
    "benchmarks.stores",
)
"""Where benchmarks are; importing one registers those in it."""

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
CHART = ROOT / "docs" / "assets" / "benchmarks.svg"

ROUNDS, QUICK_ROUNDS = 11, 3
DESIGN, ENGINES = "design", "engines"


def main(arguments: Sequence[str] | None = None) -> int:
    for module in MODULES:
        importlib.import_module(module)
    known = registered()
    options = _parser(known).parse_args(arguments)
    chosen = [known[name] for name in options.only or known]
    console = Console()
    run = execute(chosen, options.quick, console)
    console.print(terminal_table(run.results))
    if options.json is not None:
        _write(options.json, run)
    worse = slower(run, stored_runs(RESULTS)) if options.check else []
    if options.check:
        pass  # what is compared with stays
    elif not options.quick and not options.only:
        _store(run, console)
    elif not options.quick:
        for name, store in ((DESIGN, _store_design), (ENGINES, _store_engines)):
            group = {benchmark.name for benchmark in known.values() if benchmark.group == name}
            if group and group <= set(options.only):
                store(run, console)
    for result in run.results:
        for figure in result.missed:
            console.print(f"missed: {figure.label} ({result.name})", style="bold red", markup=False)
    for line in worse:
        console.print(f"slower: {line}", style="bold red", markup=False)
    return 0 if run.passed and not worse else 1


def execute(chosen: Sequence[Benchmark], quick: bool, console: Console) -> Run:
    """Run benchmarks one after the other, with a progress bar where somebody watches."""
    size, rounds = Size(quick), QUICK_ROUNDS if quick else ROUNDS
    facts = machine()
    columns = TextColumn("{task.description:<18}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    results: list[Result] = []
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=len(chosen) * (rounds + 1))
        for done, benchmark in enumerate(chosen):
            progress.update(bar, description=benchmark.name, completed=done * (rounds + 1))
            results.append(measure(benchmark, size, rounds, lambda: progress.advance(bar)))
    peers = sorted({peer for benchmark in chosen for peer in benchmark.peers})
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return Run(date, quick, facts, versions(peers), results)


def _store(run: Run, console: Console) -> None:
    if run.problems:
        console.print("not stored, because not every benchmark could be run", style="yellow")
        return
    from benchmarks import chart, comparison

    _write(RESULTS / "results.json", run)
    core, frequency = run.only("core"), run.only("frequency")
    if run.only(DESIGN).results:
        _store_design(run, console)
    if run.only(ENGINES).results:
        _store_engines(run, console)
    (RESULTS / "results.md").write_text(markdown(core), encoding="utf-8")
    chart.draw(core, CHART)
    if frequency.results:
        (RESULTS / "frequency.md").write_text(markdown(frequency), encoding="utf-8")
        (RESULTS / "comparison.md").write_text(comparison.markdown(frequency.results), encoding="utf-8")
        comparison.draw(frequency.results, CHART.with_name("benchmarks-frequency.svg"))
    console.print("stored in benchmarks/results and docs/assets")


def _store_design(run: Run, console: Console) -> None:
    design = run.only(DESIGN)
    if design.problems or not design.results:
        console.print("the group is not stored: not every benchmark could be run", style="yellow")
        return
    from benchmarks import cost_chart

    _write(RESULTS / "design.json", design)
    (RESULTS / "design.md").write_text(markdown(design), encoding="utf-8")
    cost_chart.draw(design.results, CHART.with_name("benchmarks-design.svg"))
    console.print("stored in benchmarks/results/design.json, design.md and docs/assets/benchmarks-design.svg")


def _store_engines(run: Run, console: Console) -> None:
    engines = run.only(ENGINES)
    if engines.problems or not engines.results:
        console.print("the group is not stored: not every benchmark could be run", style="yellow")
        return
    _write(RESULTS / "engines.json", engines)
    (RESULTS / "engines.md").write_text(markdown(engines), encoding="utf-8")
    console.print("stored in benchmarks/results/engines.json and engines.md")


def _write(path: Path, run: Run) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document(run), indent=1) + "\n", encoding="utf-8")


def _parser(known: dict[str, Benchmark]) -> argparse.ArgumentParser:
    names = "\n".join(f"  {benchmark.name:<20} {benchmark.title}" for benchmark in known.values())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Time deniable against bounds and other packages, as ratios.",
        epilog=f"benchmarks:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds; goals are for full size")
    parser.add_argument(
        "--only", action="append", choices=list(known), metavar="NAME", help="one benchmark (may be repeated)"
    )
    parser.add_argument(
        "--check", action="store_true", help="name the ratios that got worse than the stored ones; store nothing"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the results there")
    return parser

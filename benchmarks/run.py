"""The runner: choose, time, show, and store.

A run at full size replaces the stored numbers, table and chart of every group of which all benchmarks were run: of all
groups, or of those that `--only` names in full. `--quick` stores nothing. `--check` stores nothing and names what got
slower than the stored runs. The exit status is 1 when a goal was missed, a benchmark could not be run, or a check found
something.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import storage
from benchmarks.machine import machine, versions
from benchmarks.registry import Benchmark, Size, registered
from benchmarks.regression import slower, stored_runs
from benchmarks.report import Run, terminal_table
from benchmarks.timing import Result, measure

MODULES = (
    "benchmarks.core",
    "benchmarks.peers.compare",
    "benchmarks.frequency",
    "benchmarks.design",
    "benchmarks.engines",
    "benchmarks.service",
    "benchmarks.stores",
    "benchmarks.pages",
)
"""Where benchmarks are; importing one registers those in it."""

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
ASSETS = ROOT / "docs" / "assets"

ROUNDS, QUICK_ROUNDS = 11, 3


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
        storage.write_json(options.json, run)
    worse = slower(run, stored_runs(RESULTS)) if options.check else []
    if options.check:
        pass  # what is compared with stays
    elif not options.quick:
        _store(run, _whole(known, chosen), console)
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


def _store(run: Run, groups: Sequence[str], console: Console) -> None:
    for group in groups:
        if run.only(group).problems:
            console.print(f"{group} is not stored, because not every benchmark of it could be run", style="yellow")
            continue
        written = storage.store_group(run, group, RESULTS, ASSETS)
        console.print(f"stored: {', '.join(written)}", markup=False)
    storage.store_goals(RESULTS, ASSETS)


def _whole(known: dict[str, Benchmark], chosen: Sequence[Benchmark]) -> list[str]:
    """Groups of which every benchmark was chosen."""
    names = {benchmark.name for benchmark in chosen}
    groups = dict.fromkeys(benchmark.group for benchmark in chosen)
    return [group for group in groups if {b.name for b in known.values() if b.group == group} <= names]


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

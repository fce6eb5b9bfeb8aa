"""The runner: choose, time, show, and store, one group of benchmarks after the other.

A group of which every benchmark was run at full size replaces its stored numbers, table and chart as soon as it is
done, so that an interruption costs one group. A benchmark that fails stops no other. `--quick` stores nothing, and does
not judge the goals that are meant for full size. `--check` stores nothing and names what got slower than before. The
exit status is 1 when a goal was missed, a benchmark failed, or a check found something.
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
from benchmarks.machine import Facts, machine, versions
from benchmarks.registry import Benchmark, Size, registered
from benchmarks.regression import slower, stored_runs
from benchmarks.report import Run, joined, terminal_table
from benchmarks.timing import Result, measure

MODULES = (
    "benchmarks.core",
    "benchmarks.peers.compare",
    "benchmarks.frequency",
    "benchmarks.block_designs",
    "benchmarks.design",
    "benchmarks.distributions",
    "benchmarks.significance",
    "benchmarks.intervals",
    "benchmarks.smoothness",
    "benchmarks.census",
    "benchmarks.joint",
    "benchmarks.queries",
    "benchmarks.discovery",
    "benchmarks.sets",
    "benchmarks.shuffle",
    "benchmarks.graphs",
    "benchmarks.files",
    "benchmarks.service",
    "benchmarks.stores",
    "benchmarks.commits",
    "benchmarks.capacity",
    "benchmarks.pages",
    "benchmarks.viewer",
    "benchmarks.refresh",
    "benchmarks.audits",
    "benchmarks.zoo",
    "benchmarks.poisoning",
)
"""Where benchmarks are; importing one registers those in it."""
APART = (
    "load",
    "ten-minutes",
    "viewer",
    "commits",
    "census",
    "joint",
    "joint-uses",
    "joint-wide",
    "joint-others",
    "intervals",
    "intervals-epochs",
    "intervals-graphs",
    "intervals-sets",
    "intervals-text",
    "independence",
    "ridge",
    "smoothness",
    "block-designs",
    "queries",
    "regressions",
    "graphs",
    "discovery",
    "texts",
    "shapes",
    "census-who",
    "audits",
    "poisoning",
    "audit-kinds",
    "audit-power",
    "audit-zoo",
)
"""Groups that are run only when they are named: they take long, or need a machine to themselves or data."""

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
ASSETS = ROOT / "docs" / "assets"

ROUNDS, QUICK_ROUNDS = 11, 3


def main(arguments: Sequence[str] | None = None) -> int:
    for module in MODULES:
        importlib.import_module(module)
    known = registered()
    options = _parser(known).parse_args(arguments)
    chosen = _chosen(known, options.only or [], options.group or [])
    stored = [] if options.quick or options.check else _whole(known, chosen)
    console, before = Console(), list(stored_runs(RESULTS)) if options.check else []
    facts, parts, problems = machine(), [], []
    for group in dict.fromkeys(benchmark.group for benchmark in chosen):
        part = execute([benchmark for benchmark in chosen if benchmark.group == group], options.quick, console, facts)
        parts.append(part)
        console.print(terminal_table(part.results, group))
        if group in stored:
            problems += _store(part, group, console)
    run = joined(parts)
    if options.json is not None:
        storage.write_json(options.json, run)
    problems += [f"slower: {line}" for line in slower(run, before)]
    return _conclude(run, problems, console)


def execute(chosen: Sequence[Benchmark], quick: bool, console: Console, facts: Facts) -> Run:
    """Run benchmarks one after the other: with a progress bar where somebody watches, else with a line for each."""
    size, rounds = Size(quick), [_rounds(benchmark, quick) for benchmark in chosen]
    columns = TextColumn("{task.description:<18}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    results: list[Result] = []
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=sum(rounds) + len(rounds))
        for done, benchmark in enumerate(chosen):
            progress.update(bar, description=benchmark.name, completed=sum(rounds[:done]) + done)
            if not console.is_terminal:
                console.print(f"{benchmark.group}, {done + 1} of {len(chosen)}: {benchmark.name}", markup=False)
            results.append(measure(benchmark, size, rounds[done], lambda: progress.advance(bar)))
    peers = sorted({peer for benchmark in chosen for peer in benchmark.peers})
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return Run(date, quick, facts, versions(peers), results)


def _rounds(benchmark: Benchmark, quick: bool) -> int:
    return QUICK_ROUNDS if quick else benchmark.rounds or ROUNDS


def _chosen(known: dict[str, Benchmark], names: Sequence[str], groups: Sequence[str]) -> list[Benchmark]:
    """Those that were named, by themselves or by their group; all that do not run apart if none were."""
    if names or groups:
        return [one for one in known.values() if one.name in names or one.group in groups]
    return [one for one in known.values() if one.group not in APART]


def _store(run: Run, group: str, console: Console) -> list[str]:
    """What kept the group from being stored, if anything."""
    if run.problems:
        return [f"not stored: {group}, because not every benchmark of it could be run"]
    try:
        written = storage.store_group(run, group, RESULTS, ASSETS)
        storage.store_goals(RESULTS, ASSETS)
    except Exception as error:  # a chart that cannot be drawn, say: the other groups still have theirs
        return [f"not stored: {group}: {type(error).__name__}: {error}"]
    console.print(f"stored: {', '.join(written)}", markup=False)
    return []


def _conclude(run: Run, problems: Sequence[str], console: Console) -> int:
    """Everything that somebody has to know, once more at the end; returns the exit status."""
    for result in run.results:
        for figure in result.not_judged:
            _line(console, f"not judged at this size: {figure.label} ({result.name})", "yellow")
    wrong = [f"{result.name}: {result.problem}" for result in run.problems]
    wrong += [f"missed: {figure.label} ({result.name})" for result in run.results for figure in result.missed]
    for line in (*wrong, *problems):
        _line(console, line, "bold red")
    return 1 if wrong or problems else 0


def _line(console: Console, text: str, style: str) -> None:
    console.print(text, style=style, markup=False, soft_wrap=True)


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
    parser.add_argument(
        "--quick", action="store_true", help="small sizes and few rounds, and only the goals that they can show"
    )
    parser.add_argument(
        "--only", action="append", choices=list(known), metavar="NAME", help="one benchmark (may be repeated)"
    )
    groups = list(dict.fromkeys(benchmark.group for benchmark in known.values()))
    alone = ", ".join(APART)
    parser.add_argument(
        "--group",
        action="append",
        choices=groups,
        metavar="GROUP",
        help=f"one of the groups {', '.join(groups)} (may be repeated); only so are run: {alone}",
    )
    parser.add_argument(
        "--check", action="store_true", help="name the ratios that got worse than the stored ones; store nothing"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the results there")
    return parser

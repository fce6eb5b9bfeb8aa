"""Runs the tests marked `floats` as an old processor would, with the newest and the oldest numpy and SciPy.

Processors differ in the kernels that numpy's linear algebra chooses on them, and kernels differ in rounding. OpenBLAS
can be told which kernel to use, so that one machine finds what would fail on another. `make test-elsewhere` runs all
tests under one other kernel; `make test-floats` runs this:

    python tools/float_kernels.py .venv .venv-oldest     one kernel with the first, another one with the second
    python tools/float_kernels.py --oldest               what to install to have the oldest supported versions
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
KERNELS = ("Prescott", "Nehalem", "Sandybridge", "Zen", "SkylakeX")
"""Oldest first; a kernel that the processor lacks is left out."""
NEEDED = ("pytest>=8", "hypothesis>=6.100", "mpmath>=1.3", "matplotlib>=3.8")
PATIENCE = 600.0

PROBE = """
import numpy as np, scipy, scipy.linalg
from numpy._core._multiarray_umath import __cpu_dispatch__ as dispatched, __cpu_features__ as features
square = np.random.default_rng(0).random((150, 150))
for linalg in (np.linalg, scipy.linalg):
    linalg.eigh(square @ square.T), linalg.solve(square, square)
print(np.__version__, scipy.__version__, *(name for name in dispatched if features[name]))
"""


@dataclass(frozen=True)
class Run:
    """One run of the tests: an environment and the variables that choose its arithmetic."""

    python: Path
    name: str
    variables: dict[str, str]


def lowest(extra: str | None = None, **python: str) -> dict[str, str]:
    """The lowest versions that pyproject.toml allows; `python_version` names another Python than this one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, str] = {}
    for text in project["dependencies"] + project["optional-dependencies"].get(extra, []):
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate(python):
            found[requirement.name] = str(requirement.specifier).removeprefix(">=")
    return found


def oldest() -> list[str]:
    """The lowest versions that pyproject.toml allows on this Python, and what the tests themselves need."""
    return [*(f"{name}=={version}.*" for name, version in lowest().items()), *NEEDED]


def probe(python: Path, kernel: str) -> tuple[str, list[str]] | None:
    """The kernel that is really used when this one is asked for, and what the probe printed; None: it cannot run."""
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernel, "OPENBLAS_VERBOSE": "2"}
    done = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, env=environment, timeout=PATIENCE)
    core = re.search(r"^Core: (.+)$", done.stderr, re.MULTILINE)
    if done.returncode != 0 or core is None or "Core not found" in done.stderr:
        return None
    return core[1], done.stdout.split()


def runs(python: Path, number: int) -> list[Run]:
    """Up to `number` kernels that differ, with one and two threads in turn; the first without numpy's vector code."""
    found: dict[str, Run] = {}
    for kernel in KERNELS:
        seen = probe(python, kernel) if len(found) < number else None
        if seen is None or seen[0] in found:
            continue
        core, (numpy, scipy, *features) = seen
        variables = {"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": str(1 + len(found) % 2)}
        name = f"numpy {numpy}, SciPy {scipy}, kernel {kernel}, threads {variables['OPENBLAS_NUM_THREADS']}"
        if not found and features:
            variables["NPY_DISABLE_CPU_FEATURES"] = " ".join(features)
            name += ", no vector code in numpy"
        found[core] = Run(python, name, variables)
    if not found:  # another processor, or another BLAS: its own kernel, with one and two threads
        names = {"1": "own kernel, one thread", "2": "own kernel, two threads"}
        return [Run(python, name, {"OPENBLAS_NUM_THREADS": threads}) for threads, name in names.items()][:number]
    return list(found.values())


def marked() -> list[str]:
    """The test files with the mark: the others may import what the small environment does not have."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(file.relative_to(ROOT)) for file in files if "mark.floats" in file.read_text(encoding="utf-8")]


def outcome(run: Run) -> tuple[Run, bool, str]:
    """Whether the tests passed, and what pytest printed."""
    options = ["-q", "-m", "floats and not slow", "-p", "no:cacheprovider"]
    own = {"PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [run.python, "-m", "pytest", *options, *marked()],
        cwd=ROOT,
        env={**os.environ, **own, **run.variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
    )
    return run, done.returncode == 0 and re.search(r"\d+ passed", done.stdout) is not None, done.stdout


def main(newest: str, old: str) -> int:
    chosen = [*runs(python_of(newest), 1), *runs(python_of(old), 2)[1:]]
    good = True
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for run, passed, printed in pool.map(outcome, chosen):
            settings = " ".join(f"{name}={value!r}" for name, value in run.variables.items())
            if not passed:
                print(f"{printed}\nto repeat: {settings} {run.python} -m pytest TEST")
            print(f"{run.name}: {printed.strip().splitlines()[-1]}", flush=True)
            good &= passed
    return 0 if good else 1


def python_of(environment: str) -> Path:
    return Path(environment) / "bin" / "python"


if __name__ == "__main__":
    if sys.argv[1:] == ["--oldest"]:
        print("\n".join(oldest()))
    else:
        sys.exit(main(*sys.argv[1:]))

"""A user's installation: the wheel of this tree in an environment that has only what the wheel asks for."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("hatchling") is None:
        if os.environ.get("CI") == "true":
            raise ModuleNotFoundError("hatchling, which builds the wheel, is not installed: run make test")
        pytest.skip("hatchling, which builds the wheel, is not installed: run make test")
    directory = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (built,) = directory.glob("*.whl")
    return built


def needed(requirements: Iterable[str], extras: frozenset[str], seen: set[str]) -> set[str]:
    """The names of all distributions that these requirements bring, at any depth."""
    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in extras | {""}):
            continue
        if name in seen or name == "deniable":
            continue
        seen.add(name)
        needed(importlib.metadata.requires(name) or [], frozenset(requirement.extras), seen)
    return seen


def install(wheel: Path, directory: Path, *extras: str) -> Path:
    """The installed command, in a new environment with the wheel and what these extras need of our own packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True, timeout=60)
    python = directory / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq", "--python", str(python)]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", str(wheel)], check=True, timeout=60)
    (site,) = directory.glob("lib/python*/site-packages")
    (ours,) = (found for found in importlib.metadata.distributions(path=[str(site)]) if found.name == "deniable")
    for name in needed(ours.requires or [], frozenset(extras), set()):
        distribution = importlib.metadata.distribution(name)
        tops = {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}
        for top in tops - {"__pycache__", "bin"}:
            link = site / top
            if not link.exists():
                link.symlink_to(Path(str(distribution.locate_file(top))))
    return directory / "bin" / "deniable"


def run(command: Path, *args: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run([command, *args], capture_output=True, text=True, env=clean, cwd=command.parent, timeout=120)


def test_without_extras_the_demo_says_the_line_that_makes_it_work(wheel: Path, tmp_path: Path) -> None:
    command = install(wheel, tmp_path / "bare")
    done = run(command, "demo")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: this needs starlette, which is not installed: pip install 'deniable[serve]'\n"
    assert run(command, "plan", "--categories", "10", "--epsilon", "1", "--people", "1000").returncode == 0


@pytest.mark.slow  # CI runs `make demo` in a pipe each time
def test_with_serve_the_demo_runs_and_in_a_pipe_it_ends_by_itself(wheel: Path, tmp_path: Path) -> None:
    done = run(install(wheel, tmp_path / "serve", "serve"), "demo", "--people", "300")
    assert (done.returncode, done.stderr) == (0, "")
    assert "300 simulated devices answered" in done.stdout
    assert "epsilon in all    2 (2 realized)" in done.stdout
    (captured,) = re.findall(r"26 bytes: ([0-9a-f]+)", done.stdout)
    assert bytes.fromhex(captured).startswith(b"DNR1")
    assert len(re.findall(r" to .*%$", done.stdout, re.MULTILINE)) == 7

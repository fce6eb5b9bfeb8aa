"""The SDK's own tests, run by Node: the shared vectors, the ledger, the refusals."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} is missing, and the SDK must be tested before a release")
        pytest.skip(f"{name} is not installed: the SDK is not tested here")
    return found


def run(*command: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
    options = {"cwd": WEB, "capture_output": True, "text": True, "encoding": "utf-8", "timeout": 300}
    return subprocess.run(command, input=input, check=False, **options)  # type: ignore[call-overload,no-any-return]


def test_the_sdk_passes_its_tests():
    done = run(tool("node"), "--test", "--test-reporter=tap")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    counts = {name: int(count) for name, count in re.findall(r"^# (tests|pass|fail|skipped) (\d+)$", done.stdout, re.M)}
    assert counts["fail"] == counts["skipped"] == 0
    assert counts["pass"] == counts["tests"] >= 60


def test_a_failing_test_of_the_sdk_would_be_noticed(tmp_path: Path):
    shutil.copytree(WEB, tmp_path / "web")
    source = tmp_path / "web" / "deniable.js"
    text = source.read_text(encoding="utf-8")
    assert text.count("this.low < low") == 1
    source.write_text(text.replace("this.low < low", "this.low <= low"), encoding="utf-8")
    broken = tmp_path / "web" / "test" / "vectors.test.js"
    some = "--test-name-pattern=rare branches"
    done = subprocess.run([tool("node"), "--test", some, str(broken)], capture_output=True, timeout=300, check=False)
    assert done.returncode != 0


def test_the_package_holds_what_it_exports():
    done = run(tool("npm"), "pack", "--dry-run", "--json", "--offline")
    assert done.returncode == 0, done.stderr
    (packed,) = json.loads(done.stdout)
    manifest = json.loads((WEB / "package.json").read_text(encoding="utf-8"))
    files = {entry["path"] for entry in packed["files"]}
    assert files == {*manifest["files"], "package.json", "LICENSE"}
    exported = [path.removeprefix("./") for entry in manifest["exports"].values() for path in entry.values()]
    assert set(exported) <= files
    assert "dependencies" not in manifest


def test_package_and_library_have_one_version():
    project = tomllib.loads((WEB.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    manifest = json.loads((WEB / "package.json").read_text(encoding="utf-8"))
    assert (manifest["version"], manifest["license"]) == (project["version"], project["license"])

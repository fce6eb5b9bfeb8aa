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


REACT = """
export declare function useEffect(effect: () => void | (() => void), watched: readonly unknown[]): void;
export declare function useRef<T>(value: T | null): { readonly current: T | null };
"""


def compiled(folder: Path, types: Path) -> subprocess.CompletedProcess[str]:
    """The examples under `tsc --strict`, with these types of the SDK."""
    (folder / "react.d.ts").write_text(REACT, encoding="utf-8")
    paths = {
        "deniable": types / "deniable.d.ts",
        "deniable/embed": types / "embed.d.ts",
        "react": folder / "react.d.ts",
    }
    options = {
        "strict": True,
        "noEmit": True,
        "target": "es2022",
        "module": "esnext",
        "moduleResolution": "node",
        "lib": ["es2022", "dom", "dom.iterable"],
        "jsx": "preserve",
        "types": [],
        "baseUrl": str(folder),
        "paths": {name: [str(path)] for name, path in paths.items()},
    }
    examples = [str(WEB.parent / "examples" / name) for name in ("typed.ts", "survey.tsx")]
    settings = {"compilerOptions": options, "files": examples}
    (folder / "tsconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    return run(tool("tsc"), "-p", str(folder / "tsconfig.json"))


def test_the_types_of_every_kind_pass_tsc(tmp_path: Path):
    done = compiled(tmp_path, WEB)
    assert done.returncode == 0, done.stdout
    script = f"import {{ KINDS }} from '{(WEB / 'deniable.js').as_uri()}'; console.log(JSON.stringify(KINDS.domains))"
    kinds = set(json.loads(run(tool("node"), "--input-type=module", "--eval", script).stdout))
    asked = set(re.findall(r'case "([a-z -]+)":', (WEB.parent / "examples" / "typed.ts").read_text(encoding="utf-8")))
    assert asked == kinds, "every kind of answers is in the example"
    # A kind that the example does not know is an error.
    for name in ("deniable.d.ts", "embed.d.ts"):
        text = (WEB / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace('"short text" |', '"pictures" | "short text" |'), encoding="utf-8")
    assert "never" in compiled(tmp_path, tmp_path).stdout


def test_the_package_holds_what_it_exports():
    done = run(tool("npm"), "pack", "--dry-run", "--json", "--offline")
    assert done.returncode == 0, done.stderr
    (packed,) = json.loads(done.stdout)
    manifest = json.loads((WEB / "package.json").read_text(encoding="utf-8"))
    files = {entry["path"] for entry in packed["files"]}
    assert files == {*manifest["files"], "package.json", "LICENSE"}
    entries = [{"default": entry} if isinstance(entry, str) else entry for entry in manifest["exports"].values()]
    assert {path.removeprefix("./") for entry in entries for path in entry.values()} <= files
    assert "dependencies" not in manifest


def test_package_and_library_have_one_version():
    project = tomllib.loads((WEB.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    manifest = json.loads((WEB / "package.json").read_text(encoding="utf-8"))
    assert (manifest["version"], manifest["license"]) == (project["version"], project["license"])

"""What is uploaded: the same bytes at each build, complete, and working in environments that have nothing else.

Tests that download packages into a new environment are slow; they are skipped where nothing can be downloaded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import docs_versions, sbom
from tools.float_kernels import lowest

ROOT = Path(__file__).parents[1]
PATIENCE = 900
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=CLEAN, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def absent(what: str) -> None:
    """Skip, but not where everything must be tested."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(what)


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        absent(f"{name} is not installed")
    return str(found)


def environment(folder: Path, python: str | Path, *packages: str) -> Path:
    """The Python of a new environment with these packages."""
    run(python, "-m", "venv", "--without-pip", folder)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "-qq",
        "--python",
        str(folder / "bin" / "python"),
    ]
    command = [*pip, "install", "--no-compile", "--only-binary", ":all:", *packages]
    done = subprocess.run(command, capture_output=True, text=True, env=CLEAN, timeout=PATIENCE)
    if done.returncode:
        absent(f"these packages cannot be installed here: {done.stderr.strip()[-600:]}")
    return folder / "bin" / "python"


def copied(folder: Path, mode: int) -> Path:
    """The files of the project, as a checkout elsewhere has them: other dates, rights and order."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    for name in sorted(listed, reverse=mode != 0o644):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            target.symlink_to((ROOT / name).readlink())
        elif (ROOT / name).is_file():
            shutil.copyfile(ROOT / name, target)
            target.chmod(mode)
    return folder


def build(source: Path, folder: Path) -> dict[str, Path]:
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=source)
    return {path.name.rpartition(".")[2]: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("only a checkout knows which files are its own")
    folder = tmp_path_factory.mktemp("first")
    return build(copied(folder / "source", 0o644), folder / "dist")


def test_two_builds_have_the_same_bytes(built: dict[str, Path], tmp_path: Path) -> None:
    other = copied(tmp_path / "elsewhere" / "source", 0o600)
    again = build(other, tmp_path / "dist")
    assert set(built) == set(again) == {"whl", "gz"}
    assert {kind: path.read_bytes() == again[kind].read_bytes() for kind, path in built.items()} == dict.fromkeys(
        built, True
    )
    changed = other / "src" / "deniable" / "__main__.py"
    changed.write_text(changed.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert build(other, tmp_path / "changed")["whl"].read_bytes() != built["whl"].read_bytes()


def test_the_source_archive_builds_the_same_wheel(built: dict[str, Path], tmp_path: Path) -> None:
    with tarfile.open(built["gz"]) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert build(source, tmp_path / "dist")["whl"].read_bytes() == built["whl"].read_bytes()


def test_the_wheel_has_every_file_that_is_read_when_it_runs(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["whl"]) as wheel:
        held = set(wheel.namelist())
        metadata = wheel.read("deniable-0.1.0.dist-info/METADATA").decode()
        listed = wheel.read("deniable-0.1.0.dist-info/sboms/sbom.cdx.json").decode()
    package = ROOT / "src"
    needed = {
        path.relative_to(package).as_posix()
        for path in (package / "deniable").rglob("*")
        if path.is_file() and path.suffix in (".py", ".pyi", ".json", ".typed")
    }
    web = {
        f"deniable/web/{path.parent.name}/{path.name}"
        for part in ("pages", "vendor")
        for path in (ROOT / "web" / part).iterdir()
    }
    assert needed | web | {"deniable/web/deniable.js"} <= held
    assert {"deniable/surveys/__init__.pyi", "deniable/words/de.json", "deniable/py.typed"} <= needed
    assert not [name for name in held if re.match(r"tests/|tools/|docs/", name) or "__pycache__" in name]
    assert listed == sbom.text()
    for line in ("Project-URL: Repository, https://", "License-Expression: Apache-2.0", "Provides-Extra: serve"):
        assert line in metadata


def test_the_bill_of_materials_is_that_of_this_source() -> None:
    assert sbom.FILE.read_text(encoding="utf-8") == sbom.text(), "run python tools/sbom.py"
    bill = sbom.document()
    refs = [part["bom-ref"] for part in bill["components"]]
    assert len(set(refs)) == len(refs)
    assert bill["dependencies"][0]["dependsOn"] == refs
    scopes = {part["name"]: part["scope"] for part in bill["components"]}
    assert (scopes["numpy"], scopes["starlette"], scopes["uplot"]) == ("required", "optional", "required")
    assert "pytest" not in scopes
    files = {part["name"].rpartition("/")[2] for part in bill["components"][0]["components"]}
    assert files == {path.name for path in (ROOT / "web" / "vendor").iterdir()}


def pythons() -> dict[str, Path]:
    """Every supported Python of this machine, by its version."""
    found: dict[str, Path] = {}
    for minor in range(11, 15):
        name = f"python3.{minor}"
        places = [shutil.which(name), *sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/{name}"))]
        for place in filter(None, places):
            done = subprocess.run([place, "-c", "import venv, ssl"], capture_output=True, timeout=PATIENCE)
            if done.returncode == 0:
                found[f"3.{minor}"] = Path(place)
                break
    return found


@pytest.mark.slow
@pytest.mark.parametrize("age", ["oldest", "newest"])
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_the_wheel_works_with_every_python(version: str, age: str, built: dict[str, Path], tmp_path: Path) -> None:
    known = pythons()
    if version not in known:
        pytest.skip(f"there is no Python {version} here")
    pins = lowest("serve", python_version=version) if age == "oldest" else {}
    wheel = f"deniable[serve] @ {built['whl'].as_uri()}"
    python = environment(tmp_path / "new", known[version], wheel, *(f"{name}=={pin}.*" for name, pin in pins.items()))
    command = python.parent / "deniable"
    printed = run(command, "demo", "--people", "300", cwd=tmp_path)
    assert "300 simulated devices answered" in printed
    assert "epsilon in all    2 (2 realized)" in printed
    run(command, "plan", "--categories", "10", "--epsilon", "1", "--people", "1000", cwd=tmp_path)


@pytest.mark.slow
def test_the_bill_of_materials_follows_the_schema_of_cyclonedx(tmp_path: Path) -> None:
    python = environment(tmp_path / "new", sys.executable, "cyclonedx-python-lib[json-validation]>=8")
    check = """if True:
        import json, pathlib, sys
        from cyclonedx.schema import SchemaVersion
        from cyclonedx.validation.json import JsonStrictValidator
        valid, text = JsonStrictValidator(SchemaVersion.V1_6), pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
        wrong = valid.validate_str(text)
        assert wrong is None, wrong
        assert valid.validate_str(text.replace('"library"', '"book"')) is not None
    """
    run(python, "-c", check, sbom.FILE)


TYPED = """
import { Client, loadProtocol } from "deniable";
import { MemoryStore } from "deniable/memory.js";
const protocol = loadProtocol({ kind: "protocol", version: 1, protocol: "GRR",
  domain: { kind: "categories", values: ["yes", "no"] }, epsilon: "1" });
const report: Uint8Array = protocol.privatize("yes");
const client = new Client({ server: "https://collect.example.org", fingerprint: "0".repeat(64) });
const spent = client.budget();
console.log(report.length, new MemoryStore(), client instanceof Client, spent);
"""


def pack(folder: Path) -> Path:
    folder.mkdir()
    run(tool("npm"), "pack", str(ROOT / "web"), "--pack-destination", str(folder), "--silent", "--offline")
    (packed,) = folder.iterdir()
    return packed


def test_the_npm_package_has_the_same_bytes_twice_and_says_where_it_is_from(tmp_path: Path) -> None:
    first, second = pack(tmp_path / "one"), pack(tmp_path / "two")
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        member = archive.extractfile("package/package.json")
        assert member is not None
        manifest = json.load(member)
    assert manifest["publishConfig"] == {"access": "public", "provenance": True}
    assert manifest["repository"]["directory"] == "web"
    assert (manifest["sideEffects"], manifest["types"], manifest["license"]) == (False, "./deniable.d.ts", "Apache-2.0")


@pytest.mark.slow
def test_the_npm_package_is_typed_and_runs_in_a_new_project(tmp_path: Path) -> None:
    packed, project = pack(tmp_path / "packed"), tmp_path / "project"
    project.mkdir()
    (project / "package.json").write_text('{"name": "new", "private": true, "type": "module"}')
    npm = [tool("npm"), "install", "--no-audit", "--no-fund", "--silent", str(packed), "typescript@5"]
    done = subprocess.run(npm, cwd=project, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        absent(f"npm cannot fetch typescript here: {done.stderr.strip()[-300:]}")
    strict = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom"]
    compiler = project / "node_modules" / "typescript" / "bin" / "tsc"
    (project / "use.ts").write_text(TYPED)
    run(tool("node"), compiler, *strict, "use.ts", cwd=project)
    (project / "wrong.ts").write_text(TYPED.replace("const report: Uint8Array", "const report: number"))
    wrong = subprocess.run([tool("node"), compiler, *strict, "wrong.ts"], cwd=project, capture_output=True, text=True)
    assert wrong.returncode != 0
    assert "number" in wrong.stdout
    script = 'import { KINDS } from "deniable"; console.log(KINDS.protocols.includes("GRR"))'
    assert run(tool("node"), "--input-type=module", "-e", script, cwd=project).strip() == "true"


# -- the workflows of a public forge, and the docs of several versions ---------------------------------

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
KNOWN = {"make", "timeout", "git", "npm", "grep", "mkdir", "mv", "cat", "cd"}
PINNED = re.compile(r"[a-z-]+/[a-z-]+@(v\d+|release/v\d+)")


def workflow(name: str) -> dict[str, Any]:
    content = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))
    # YAML 1.1 reads the key `on` as true.
    return {"on" if key is True else key: value for key, value in content.items()}


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in workflow(name)["jobs"].values() for step in job["steps"]]


def test_the_workflows_run_commands_and_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert [path.stem for path in WORKFLOWS] == ["ci", "release"]
    for path in WORKFLOWS:
        assert all(PINNED.fullmatch(step["uses"]) for step in steps(path.stem) if "uses" in step)
        for line in (step["run"] for step in steps(path.stem) if "run" in step):
            subprocess.run(["sh", "-n", "-c", line], check=True)
            assert set(re.findall(r"\bmake ([a-z-]+)", line)) <= targets
            for command in re.split(r"&&|\|", line):
                program = command.split()[0]
                if program == ".ci/run":
                    assert os.access(ROOT / program, os.X_OK)
                else:
                    assert program in KNOWN or program.startswith(".venv/bin/"), program
            assert all((ROOT / name).exists() for name in re.findall(r"\b(?:tests|tools)/\S+", line))
    assert ".ci/run" in [step.get("run") for step in steps("ci")]
    claimed = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    assert workflow("ci")["jobs"]["pythons"]["strategy"]["matrix"]["python"] == claimed


def test_a_release_is_uploaded_without_a_stored_password() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "secrets." not in text
    jobs = workflow("release")["jobs"]
    assert workflow("release")["permissions"] == {"contents": "read"}
    assert "permissions" not in jobs["build"], "what builds may not sign"
    for name in ("pypi", "npm"):
        assert jobs[name]["permissions"]["id-token"] == "write"
        assert (jobs[name]["environment"], jobs[name]["needs"]) == (name, "build")
    assert workflow("release")["on"] == {"push": {"tags": ["v[0-9]*"]}}
    (compared,) = [step["run"] for step in steps("release") if "GITHUB_REF_NAME" in step.get("run", "")]
    for tag, code in ((f"v{docs_versions.current()}", 0), ("v9.9.9", 1)):
        done = subprocess.run(["bash", "-c", compared], cwd=ROOT, env=CLEAN | {"GITHUB_REF_NAME": tag})
        assert done.returncode == code


def test_addresses_that_lead_nowhere_are_not_released() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (check,) = re.findall(r"^dist-check: dist .*\n\t@(.+)$", makefile, re.MULTILINE)
    named = "deniable.example" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert subprocess.run(["sh", "-c", check], cwd=ROOT, capture_output=True).returncode == int(named)


def test_the_first_page_lists_the_versions_of_the_docs(tmp_path: Path) -> None:
    for name in ("0.1.0", "0.10.0", "0.9.0", "0.11.0rc1", "assets"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("docs")
    (tmp_path / "0.12.0").mkdir()  # a build that failed
    assert docs_versions.write(tmp_path) == ["0.10.0", "0.9.0", "0.1.0", "0.11.0rc1"]
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'href="([^"]+)/index.html"', page) == json.loads((tmp_path / "versions.json").read_text())
    assert all((tmp_path / link).is_file() for link in re.findall(r'href="([^"]+)"', page))
    with pytest.raises(SystemExit, match="make docs-version"):
        docs_versions.write(tmp_path / "assets")

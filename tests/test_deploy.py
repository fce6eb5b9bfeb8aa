"""The container files name things that exist, and two workers with a database that keeps its word.

Without a container engine the image is put together by hand (slow): its base is a list of Debian's packages, and the
rest is what its file says. The service then runs in it, as its user, and sees nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from deniable.cli import app
from deniable.collect.server.run import GRACE_SECONDS, SPARE_FILES
from deniable.collect.server.service import Settings
from tests.collect.server.live import free_port
from tests.test_release import environment

ROOT = Path(__file__).parents[1]
CONTAINER = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))


def serve_options() -> set[str]:
    return set(re.findall(r"--[a-z-]+", CliRunner().invoke(app, ["serve", "--help"]).stdout))


def test_what_is_copied_is_there():
    copied = [
        name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINER, re.MULTILINE) for name in line.split()
    ]
    assert {"src", "web", "pyproject.toml"} <= set(copied)
    assert all((ROOT / name).exists() for name in copied)


def test_the_service_is_started_with_options_that_it_has():
    (command,) = re.findall(r"^CMD \[(.+)\]$", CONTAINER, re.MULTILINE)
    words = re.findall(r'"([^"]*)"', command) + COMPOSE["services"]["collect"]["command"]
    assert {word for word in words if word.startswith("--")} <= serve_options()
    assert re.findall(r"^USER (.+)$", CONTAINER, re.MULTILINE) == ["10001:10001"]


def test_the_service_has_a_database_that_is_durable():
    collect, database = COMPOSE["services"]["collect"], COMPOSE["services"]["db"]
    assert "--workers" not in collect["command"], "a second worker is slower where batches come"
    assert "-csynchronous_commit=on" in database["command"]
    assert all(port.startswith("127.0.0.1:") for port in collect["ports"])
    assert (ROOT / "deploy" / collect["build"]["context"]).resolve() == ROOT


def asks_the_operator(service, check):
    """The operator's port is open on the machine, and it is the one that the health check asks."""
    at = service["command"].index("--operator-port")
    port = service["command"][at + 1]
    assert f"127.0.0.1:{port}:{port}" in service["ports"]
    assert re.findall(r"127\.0\.0\.1:(\d+)/readyz", check) == [port]


def test_the_health_check_asks_the_operator_s_port():
    (check,) = re.findall(r"^HEALTHCHECK .*\\\n(.+)$", CONTAINER, re.MULTILINE)
    asks_the_operator(COMPOSE["services"]["collect"], check)
    (command,) = re.findall(r"^CMD \[(.+)\]$", CONTAINER, re.MULTILINE)
    assert '"--operator-port", "9377"' in command


def test_no_password_is_on_a_command_line_or_in_the_file():
    for service in COMPOSE["services"].values():
        words = " ".join(service["command"])
        assert "password" not in words.lower()
        assert "$" not in words
        settings = service["environment"]
        assert not any("PASSWORD" in name and not name.endswith("_FILE") for name in settings)
        assert settings.get("DENIABLE_STORE", "").count(":") <= 1
        (file,) = [value for name, value in settings.items() if name.endswith("PASSWORD_FILE")]
        assert file == f"/run/secrets/{service['secrets'][0]}"
    assert [*COMPOSE["secrets"]] == ["database_password"]


def test_the_unit_starts_what_there_is_and_waits_for_its_end():
    unit = (ROOT / "deploy" / "deniable.service").read_text(encoding="utf-8")
    (command,) = re.findall(r"^ExecStart=(.+)$", unit, re.MULTILINE)
    program, name, *_ = command.split()
    assert (program.rpartition("/")[2], name) == ("deniable", "serve")
    # Nobody else on the machine reads the store, and the service gains no rights.
    hardened = (
        *("DynamicUser=yes", "StateDirectory=deniable", "StateDirectoryMode=0700", "UMask=0077", "NoNewPrivileges=yes"),
        *("ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes", "PrivateDevices=yes", "LockPersonality=yes"),
        "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
    )
    assert [line for line in hardened if line not in unit.splitlines()] == []
    assert set(re.findall(r"--[a-z-]+", command)) <= serve_options()
    settings = Settings(store="sqlite:///x.db")
    (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert int(seconds) >= settings.stop_seconds + GRACE_SECONDS
    (files,) = re.findall(r"^LimitNOFILE=(\d+)$", unit, re.MULTILINE)
    assert int(files) >= settings.connections + SPARE_FILES


# -- the image ---------------------------------------------------------------------------------------

MOST_BYTES = 300e6
BASE = """
    base-files ca-certificates gcc-12-base libbz2-1.0 libc6 libcom-err2 libcrypt1 libdb5.3 libexpat1 libffi8 libgcc-s1
    libgomp1 libgssapi-krb5-2 libk5crypto3 libkeyutils1 libkrb5-3 libkrb5support0 liblzma5 libncursesw6 libnsl2
    libpython3.11-minimal libpython3.11-stdlib libreadline8 libsqlite3-0 libssl3 libstdc++6 libtinfo6 libtirpc3 libuuid1
    netbase python3-distutils python3.11-minimal tzdata zlib1g
"""
"""The Debian packages that gcr.io/distroless/python3-debian12 consists of."""


def run(*command: str, **options: object) -> None:
    done = subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr[-2000:]


def instructions(kind: str) -> list[str]:
    """The arguments of all instructions of a kind, with continued lines joined."""
    return re.findall(rf"^{kind} (.+)$", CONTAINER.replace("\\\n", " "), re.MULTILINE)


def base_image(root: Path, scratch: Path) -> None:
    scratch.mkdir()
    fetched = subprocess.run(["apt-get", "download", "-q", *BASE.split()], cwd=scratch, capture_output=True, text=True)
    if fetched.returncode:
        pytest.skip(f"Debian 12's packages cannot be had here: {fetched.stderr.strip()[-200:]}")
    for package in scratch.glob("*.deb"):
        run("dpkg", "-x", str(package), str(root))
    for unused in ("usr/share/doc", "usr/share/man"):
        shutil.rmtree(root / unused)
    (root / "tmp").mkdir(mode=0o1777, exist_ok=True)


def build(root: Path, scratch: Path) -> None:
    """Do what the file says: copy, run, copy; paths of the first stage are below `scratch`."""
    source = scratch / "src"
    source.mkdir()
    for names in [one for one in instructions("COPY") if not one.startswith("--from")]:
        *given, target = names.split()
        for name in given:
            place = source / target / ("" if (ROOT / name).is_dir() else name)
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, place)
    (command,) = instructions("RUN")
    for path in ("/app", "/data"):
        command = command.replace(f" {path}", f" {scratch}{path}").replace(f"={path}", f"={scratch}{path}")
    python = shlex.quote(sys.executable)
    shell = f'set -e; pip() {{ {python} -m pip "$@"; }}; python() {{ {python} "$@"; }}; {command}'
    ((_, extras),) = [one.split("=") for one in instructions("ARG")]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    run("sh", "-c", shell, cwd=source, env=clean | {"EXTRAS": extras})
    for path in ("app", "data"):
        shutil.copytree(scratch / path, root / path)
    os.chown(root / "data", 10001, 10001)


def size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())


@pytest.mark.slow
def test_the_image_is_small_and_serves(tmp_path):
    if os.geteuid() or not shutil.which("apt-get") or sys.version_info[:2] != (3, 11):
        pytest.skip("the image is put together by root, on Debian, with Python 3.11")
    root, port = tmp_path / "root", free_port()
    root.mkdir()
    base_image(root, tmp_path / "packages")
    (tmp_path / "build").mkdir()
    build(root, tmp_path / "build")
    total = size(root)
    print(f"{total / 1e6:.0f} MB, of which the base is {(total - size(root / 'app')) / 1e6:.0f}")
    assert total < MOST_BYTES
    assert list(root.rglob("app/deniable/collect/server/__pycache__/run.*.pyc"))

    (entry,), (given,) = instructions("ENTRYPOINT"), instructions("CMD")
    words = [*json.loads(entry), *json.loads(given), "--port", str(port)]
    settings = dict(line.split("=", 1) for line in instructions("ENV"))
    (user,) = instructions("USER")
    command = ["/usr/sbin/chroot", f"--userspec={user}", str(root), *words]
    with subprocess.Popen(command, env=settings, stdout=subprocess.PIPE) as served:
        try:
            assert served.stdout is not None
            assert any(b"serving:" in line for line in iter(served.stdout.readline, b""))
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=30) as reply:
                assert json.load(reply)["status"].startswith("ok")
            assert (root / "data" / "deniable.db").stat().st_uid == 10001
        finally:
            served.terminate()
    assert served.returncode == 0


def test_the_relay_is_started_with_options_that_it_has():
    """By the unit and by the container, and neither of them has a secret."""
    unit = (ROOT / "deploy" / "deniable-relay.service").read_text(encoding="utf-8")
    started = unit.partition("ExecStart=")[2].partition("#")[0]
    relay = yaml.safe_load((ROOT / "deploy" / "compose.relay.yaml").read_text(encoding="utf-8"))["services"]["relay"]
    known = set(re.findall(r"--[a-z-]+", CliRunner().invoke(app, ["relay", "serve", "--help"]).stdout))
    for words in (started.split(), relay["command"]):
        assert {word for word in words if word.startswith("--")} <= known
    assert all(port.startswith("127.0.0.1:") for port in relay["ports"])
    asks_the_operator(relay, " ".join(relay["healthcheck"]["test"]))
    assert "environment" not in relay


# -- Kubernetes --------------------------------------------------------------------------------------

MANIFEST = ROOT / "deploy" / "kubernetes" / "collect.yaml"
KUBERNETES = ("1.29", "1.33")
"""Versions of the API that the manifests are checked against, besides the newest known."""


def test_the_manifests_start_what_there_is_without_rights():
    deployment, service, policy = yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["args"] == COMPOSE["services"]["collect"]["command"]
    assert {word for word in container["args"] if word.startswith("--")} <= serve_options()
    assert f"{spec['securityContext']['runAsUser']}:{spec['securityContext']['runAsGroup']}" in instructions("USER")
    assert container["securityContext"]["readOnlyRootFilesystem"]
    settings = {entry["name"]: entry["value"] for entry in container["env"]}
    assert set(settings) == set(COMPOSE["services"]["collect"]["environment"])
    assert settings["DENIABLE_STORE"].count(":") == 1, "no password in the manifest"
    (mounted,) = [one["mountPath"] for one in container["volumeMounts"] if one["name"] == "secrets"]
    assert settings["DENIABLE_STORE_PASSWORD_FILE"].startswith(mounted)
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    wanted = Settings(store="sqlite:///x.db")
    assert spec["terminationGracePeriodSeconds"] >= wanted.stop_seconds + GRACE_SECONDS
    # The operator's port is not in the service, and the policy opens it for the monitoring alone.
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert ports == {"reports": wanted.port, "operator": 9377}
    assert [one["targetPort"] for one in service["spec"]["ports"]] == ["reports"]
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    reached = {rule["ports"][0]["port"]: "from" in rule for rule in policy["spec"]["ingress"]}
    assert reached == {"reports": False, "operator": True}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == "operator"


@pytest.mark.slow
def test_the_manifests_follow_the_schemas_of_the_api(tmp_path):
    python = environment(tmp_path / "new", sys.executable, "kubernetes-validate>=1.31", "setuptools")
    check = [str(python.parent / "kubernetes-validate"), "--strict"]
    for version in KUBERNETES:
        run(*check, "-k", version, str(MANIFEST))
    run(*check, str(MANIFEST))
    broken = tmp_path / "broken.yaml"
    broken.write_text(MANIFEST.read_text(encoding="utf-8").replace("failureThreshold", "failureTreshold"))
    assert subprocess.run([*check, str(broken)], capture_output=True).returncode != 0

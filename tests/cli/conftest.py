"""Running the command inside the test process, and as a real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deniable.cli import app

COMMAND = Path(sys.executable).with_name("deniable")


class Ran:
    """What a command did."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))


def sane(ran):
    """What holds for every command: no traceback, no colour codes in a pipe, one line of error for bad input."""
    for stream in (ran.out, ran.err):
        assert "Traceback" not in stream
        assert "\x1b" not in stream
    errors = [line for line in ran.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == (1 if ran.code == 2 else 0), ran.err
    if ran.code == 2:
        assert ran.out == ""
    return ran


@pytest.fixture
def run():
    def invoke(*args, stdin=None, code=0):
        result = CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)
        ran = sane(Ran(result.exit_code, result.stdout, result.stderr))
        assert ran.code == code, (ran.code, ran.out, ran.err)
        return ran

    return invoke


@pytest.fixture
def process(tmp_path):
    """The installed command, in a directory of its own."""

    def start(*args, stdin="", code=0, command=(COMMAND,), **environment):
        done = subprocess.run(
            [*command, *args],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **environment},
            timeout=60,
        )
        ran = sane(Ran(done.returncode, done.stdout, done.stderr))
        assert ran.code == code, (ran.code, ran.out, ran.err)
        return ran

    return start


@pytest.fixture
def write(tmp_path):
    def put(content, name="file.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return put

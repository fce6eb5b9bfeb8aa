"""The quick start of a collection, followed to the letter."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "collect" / "index.md"


def script() -> str:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    (install, *rest) = blocks
    assert install.startswith("pip install")  # done already
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    commands = "".join(rest)
    assert commands.count("127.0.0.1:8377") >= 4
    commands = commands.replace("127.0.0.1:8377", f"127.0.0.1:{port}").replace(
        "deniable serve ", f"deniable serve --port {port} "
    )
    return f"set -euo pipefail\ntrap 'kill $(jobs -p)' EXIT\n{commands}"


def test_the_quick_start_works_as_written(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script()],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    estimates = json.loads((tmp_path / "estimates.json").read_text())
    assert [question["id"] for question in estimates["series"][0]["questions"]] == ["tired", "mood"]
    yes, no = re.findall(r"^tired,shares,(?:yes|no),([^,]+),", done.stdout, re.MULTILINE)[:2]
    # 1,301 of 2,001 people are tired; six standard errors of 2.1 %.
    assert abs(float(yes) - 0.65) < 0.13
    assert abs(float(yes) + float(no) - 1) < 1e-6
    assert (tmp_path / "backup.db").exists()

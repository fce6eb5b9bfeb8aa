"""What the tests need beyond Python: a browser, Node.js, Java and PostgreSQL 15; fetched where that is possible.

`make test` runs this. Debian's packages are installed when we may (as root); elsewhere one line says what is missing,
and the tests that need it are skipped, or fail when CI=true.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NEEDED = {
    "chromium": (("chromium", "chromium-browser", "google-chrome"), "chromium"),
    "node": (("node",), "nodejs"),
    "npm": (("npm",), "npm"),
    "java": (("java",), "openjdk-17-jre-headless"),
    "PostgreSQL 15": (("/usr/lib/postgresql/15/bin/initdb",), "postgresql-15"),
}
FASTER = {
    # The same browser without a window: it takes two thirds of the time.
    "chromium-headless-shell": (("chromium-headless-shell",), "chromium-headless-shell"),
}


def missing(tools: dict[str, tuple[tuple[str, ...], str]]) -> dict[str, str]:
    """Tools that are not there, with the Debian package that has them."""
    return {name: package for name, (commands, package) in tools.items() if not any(map(shutil.which, commands))}


def main() -> None:
    wanted = missing(NEEDED | FASTER)
    if not wanted:
        return
    if shutil.which("apt-get") and os.geteuid() == 0:
        print(f"installing {', '.join(wanted.values())} (system packages for the tests)")
        quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "stdout": subprocess.DEVNULL}
        subprocess.run(["apt-get", "update", "-qq"], check=False, **quiet)
        for package in wanted.values():
            subprocess.run(
                ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], check=False, **quiet
            )
    wanted = missing(NEEDED)
    if wanted:
        print(f"not installed: {', '.join(wanted)}; the tests that need them are skipped", file=sys.stderr)


if __name__ == "__main__":
    main()

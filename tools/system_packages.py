"""What the tests need beyond Python: a browser, Node.js, TypeScript, Java, PostgreSQL 15, a C compiler and a locale.

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
    "tsc": (("tsc",), "node-typescript"),
    "java": (("java",), "openjdk-17-jre-headless"),
    "PostgreSQL 15": (("/usr/lib/postgresql/15/bin/initdb",), "postgresql-15"),
    "a C compiler": (("cc",), "gcc"),
    "the headers of C": (("/usr/include/stdlib.h",), "libc6-dev"),
    "localedef with its sources": (("/usr/share/i18n/locales/de_DE",), "locales"),
}
LOCALE = "de_DE.UTF-8"
FASTER = {
    # The same browser without a window: it takes two thirds of the time.
    "chromium-headless-shell": (("chromium-headless-shell",), "chromium-headless-shell"),
}


def missing(tools: dict[str, tuple[tuple[str, ...], str]]) -> dict[str, str]:
    """Tools that are not there, with the Debian package that has them."""
    return {name: package for name, (places, package) in tools.items() if not any(map(_is_there, places))}


def _is_there(place: str) -> bool:
    return os.path.exists(place) if place.startswith("/") else shutil.which(place) is not None


def make_locale() -> None:
    """The locale of `make test-elsewhere`, which Debian leaves to the machine's owner to make."""
    known = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout.split()
    if LOCALE.replace("UTF-8", "utf8") not in known and os.geteuid() == 0:
        language, _, encoding = LOCALE.partition(".")
        subprocess.run(["localedef", "-i", language, "-f", encoding, LOCALE], check=False)


def main() -> None:
    wanted = missing(NEEDED | FASTER)
    if wanted and shutil.which("apt-get") and os.geteuid() == 0:
        print(f"installing {', '.join(wanted.values())} (system packages for the tests)")
        quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "stdout": subprocess.DEVNULL}
        subprocess.run(["apt-get", "update", "-qq"], check=False, **quiet)
        for package in wanted.values():
            subprocess.run(
                ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], check=False, **quiet
            )
    if shutil.which("localedef"):
        make_locale()
    wanted = missing(NEEDED)
    if wanted:
        print(f"not installed: {', '.join(wanted)}; the tests that need them are skipped", file=sys.stderr)


if __name__ == "__main__":
    main()

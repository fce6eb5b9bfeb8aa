"""Facts about the machine and the software, without which no figure means anything."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from importlib.metadata import version

from benchmarks.peers import environments
from benchmarks.registry import UnavailableError

Facts = dict[str, str | int | float]


def machine() -> Facts:
    facts: Facts = {
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 0,
        "system": f"{platform.system()} {platform.machine()}",
    }
    if hasattr(os, "getloadavg"):
        facts["load at the start"] = round(os.getloadavg()[0], 2)
    return facts


def versions(peers: Iterable[str] = ()) -> dict[str, str]:
    found = {"python": platform.python_version()}
    found |= {name: version(name) for name in ("deniable", "numpy", "cryptography")}
    for name in peers:
        try:
            found[name] = environments.version(name)
        except UnavailableError:
            found[name] = "not available"
    return found


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"

"""Run the tests as on another machine: other arithmetic, time zone, locale, date, order of files and load.

    python tools/elsewhere.py [quiet] [busy]     both, or the one that is named
    python tools/elsewhere.py first              as quiet, but only the tests of `make test`

quiet  all tests that `busy` leaves out, but the faults
busy   the tests of pages, browser and service beside four busy processes, without the slow ones

Both run with the BLAS kernel and numpy's code of a processor without AVX-512, two BLAS threads, a time zone in which it
is tomorrow already, a German locale, a calendar that is 40 days ahead, a random hash seed, and files in random order.
What is missing here (a kernel, a locale, a compiler) is a failure if CI=true, and otherwise left out with a line.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCALE, ZONE, AHEAD_DAYS = "de_DE.UTF-8", "Pacific/Kiritimati", 40
WITH_AVX512 = """
from numpy._core._multiarray_umath import __cpu_dispatch__ as dispatched, __cpu_features__ as features
print(*(name for name in dispatched if features[name] and ("AVX512" in name or name == "X86_V4")))
"""
HERE = {"LD_PRELOAD": ""}
"""For a process whose calendar is not moved."""
NOW = "import time, datetime; print(int(time.time()), datetime.datetime.now().timestamp())"


def missing(what: str) -> None:
    if os.environ.get("CI") == "true":
        sys.exit(f"{what} is missing: the tests cannot run as elsewhere")
    print(f"left out: {what} is missing", file=sys.stderr)


def printed(code: str, **variables: str) -> str:
    command, environment = [sys.executable, "-c", code], {**os.environ, **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def other_processor() -> dict[str, str]:
    """A processor without AVX-512, for BLAS and for numpy's own loops."""
    variables = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "2"}
    if features := printed(WITH_AVX512):
        variables["NPY_DISABLE_CPU_FEATURES"] = features
    return variables


def other_place() -> dict[str, str]:
    """Time zone and locale; both must be there, or nothing would be tested."""
    variables = {"TZ": ZONE}
    if printed("import time; print(time.timezone)", **variables) != str(-14 * 3600):
        missing(f"the time zone {ZONE}")
    check = "import locale; locale.setlocale(locale.LC_ALL, ''); print(locale.localeconv()['decimal_point'])"
    german = {"LC_ALL": LOCALE, "LANG": LOCALE, "LANGUAGE": "de"}
    try:
        if printed(check, **german) == ",":
            return variables | german
    except subprocess.CalledProcessError:
        pass
    missing(f"the locale {LOCALE}")
    return variables


def pytest(mark: str, variables: dict[str, str]) -> bool:
    workers = str(min(4, (os.cpu_count() or 1) + 2))
    command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "--dist", "loadfile", "--no-loadscope-reorder"]
    command += ["-m", mark]
    print(" ".join(f"{name}={value!r}" for name, value in variables.items()), *command[1:], flush=True)
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}).returncode == 0


def other_date(folder: str) -> dict[str, str]:
    """A calendar that is ahead, in every process that the tests start; the library for it is built in the folder."""
    seconds, library = AHEAD_DAYS * 86_400, str(Path(folder, "later.so"))
    build = ["cc", "-O1", "-shared", "-fPIC", "-o", library, str(ROOT / "tools" / "later.c")]
    try:
        subprocess.run(build, check=True)
    except (OSError, subprocess.CalledProcessError):
        missing("a C compiler")
        return {}
    variables = {"LD_PRELOAD": library, "AHEAD_SECONDS": str(seconds)}
    clocks = [printed(NOW, **given).split() for given in (HERE, variables)]
    if any(abs(float(there) - float(here) - seconds) > 60 for here, there in zip(*clocks, strict=True)):
        missing("a clock that can be moved")
        return {}
    return variables


def on_another_machine(mark: str) -> bool:
    chance = str(random.SystemRandom().randrange(2**32))
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # PostgreSQL runs as somebody else
        variables = other_processor() | other_place() | {"PYTHONHASHSEED": chance, "ORDER": chance}
        return pytest(mark, variables | other_date(folder))


def first() -> bool:
    return on_another_machine("not slow and not served and not faults")


def quiet() -> bool:
    return on_another_machine("not faults and not busy")


@contextmanager
def busy_processes(number: int = 4) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(number):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def busy() -> bool:
    with busy_processes():
        return on_another_machine("busy")


RUNS: dict[str, Callable[[], bool]] = {"quiet": quiet, "busy": busy, "first": first}
USUAL = ["quiet", "busy"]


def main(names: list[str]) -> int:
    if unknown := set(names) - set(RUNS):
        sys.exit(f"there is no run {min(unknown)!r}: name some of {', '.join(RUNS)}")
    passed = {}
    for name in names or USUAL:
        begun = time.monotonic()
        passed[name] = RUNS[name]()
        print(
            f"elsewhere, {name}: {'passed' if passed[name] else 'FAILED'} in {time.monotonic() - begun:.0f} s",
            flush=True,
        )
    return 0 if all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

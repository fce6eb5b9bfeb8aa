"""The installed command as a process of its own: pipes, terminals, encodings and start-up."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from typer.main import get_command

from deniable.cli import COMMANDS, app
from tests.cli.conftest import COMMAND

unix = pytest.mark.skipif(os.name == "nt", reason="pipes and terminals as on Unix")


def test_both_ways_in(process):
    assert process("--version").out == process("--version", command=(sys.executable, "-m", "deniable")).out


LOADED = (
    "import sys\nfrom deniable.cli import app\n"
    "try: app(sys.argv[1:])\nexcept SystemExit: pass\n"
    "print('LOADED', *sorted(m for m in sys.modules if m.startswith('deniable.cli.') or '.' not in m))"
)


@pytest.mark.parametrize("args", [["--help"], ["--version"], []], ids=["help", "version", "nothing"])
def test_help_loads_no_command_and_nothing_heavy(process, args):
    """The list of commands comes from a table."""
    loaded = set(process("-c", LOADED, *args, command=(sys.executable,)).out.rpartition("LOADED")[2].split())
    assert {name for name in loaded if name.startswith("deniable.cli.")} == {"deniable.cli.output"}
    assert loaded & {"numpy", "scipy", "matplotlib", "rich", "pyarrow"} == set()


def test_a_command_loads_itself_and_no_other(process):
    args = ["plan", "--categories", "9", "--epsilon", "1", "--people", "5000"]
    loaded = set(process("-c", LOADED, *args, command=(sys.executable,)).out.rpartition("LOADED")[2].split())
    assert {f"deniable.cli.{name}" for name in COMMANDS} & loaded == {"deniable.cli.plan"}
    assert loaded & {"scipy", "matplotlib", "rich", "pyarrow"} == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_says_what_their_own_help_says(name):
    root = get_command(app)
    assert COMMANDS[name].rstrip(".") == root.commands[name].get_short_help_str(1000).rstrip(".")
    assert root.commands[name].help.startswith(COMMANDS[name])


def test_commands_in_a_pipe(process, tmp_path):
    process("channel", "show", "coin", "--save", "coin.json")
    reports = process("channel", "sample", "coin.json", stdin="yes\n" * 50 + "no\n" * 50).out
    estimate = json.loads(process("channel", "infer", "coin.json", "--observations", "--json", stdin=reports).out)
    assert estimate["n"] == 100


def test_exit_codes(run, process):
    process("channel", "epsilon", "coin", "--at-most", "1", code=1)
    process("channel", "epsilon", "nowhere", code=2)
    run("channel", "epsilon", "coin", "--at-most", "2", code=0)
    run("channel", code=0)


def test_colour_is_not_forced_into_a_pipe(process):
    process("channel", "show", "coin", FORCE_COLOR="1", CLICOLOR_FORCE="1", PY_COLORS="1")


def test_a_label_that_the_encoding_lacks(process, tmp_path):
    (tmp_path / "law.csv").write_text(",né,ø\nà,1/2,1/2\nß,1/4,3/4\n", encoding="utf-8")
    assert "n\\xe9" in process("channel", "show", "law.csv", PYTHONIOENCODING="ascii").out
    assert "né" in process("channel", "show", "law.csv", PYTHONIOENCODING="utf-8").out


@unix
@pytest.mark.parametrize("args", [["sample", "coin", "yes", "--times", "200000"], ["list"]])
def test_a_reader_that_leaves_is_no_error(args, tmp_path):
    """The reader closes its end before anything is written."""
    read, written = os.pipe()
    os.close(read)
    with os.fdopen(written, "wb") as closed:
        done = subprocess.run(
            [COMMAND, "channel", *args], stdout=closed, stderr=subprocess.PIPE, cwd=tmp_path, timeout=60
        )
    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_one_line(tmp_path):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([COMMAND, "channel", "list"], stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.startswith(b"error: ")
    assert done.returncode == 2


def on_terminal(*args, columns=80):
    """What the command writes to a terminal of that width."""
    import fcntl
    import pty
    import struct
    import termios

    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [COMMAND, *args], stdin=side, stdout=side, stderr=side, env={**environment, "TERM": "xterm-256color"}
    )
    os.close(side)
    chunks = []
    while True:
        try:
            chunks.append(os.read(main, 65536))
        except OSError:
            break
        if not chunks[-1]:
            break
    os.close(main)
    return process.wait(timeout=60), b"".join(chunks).decode().replace("\r\n", "\n")


@unix
def test_a_terminal_gets_colour_and_whole_numbers():
    code, out = on_terminal("channel", "show", "truncated-geometric:n=11,epsilon=1")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
    assert code == 0
    assert plain != out
    assert "…" not in plain
    assert max(map(len, plain.splitlines())) <= 80
    # As many whole columns as fit, each number in one piece.
    assert re.search(r"^0 +0\.7311 +0\.1700 +0\.0625 ", plain, re.MULTILINE)
    assert "of 12 rows and 12 columns: --all shows everything" in plain
    _, wide = on_terminal("channel", "show", "warner:epsilon=1", "--exact", columns=200)
    assert "6742825251438785381/9223372036854775808" in wide


@unix
@pytest.mark.parametrize("args", [["sample", "coin"], ["infer", "coin"]])
def test_the_keyboard_is_not_waited_for(args):
    code, out = on_terminal("channel", *args)
    assert code == 2
    assert "error: there is nothing to read" in out

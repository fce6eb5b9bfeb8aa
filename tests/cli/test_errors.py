"""Bad input ends in one line on standard error and exit code 2; `sane` in conftest checks that for every run."""

from __future__ import annotations

import sys

import pytest

import deniable
from deniable import cli
from deniable.cli import channel as commands
from deniable.errors import InternalError

COMMANDS = ("show", "epsilon", "push", "infer", "sample", "list")


def test_without_a_command_there_is_help(run):
    assert run().out == run("--help").out
    assert run("channel").out == run("channel", "--help").out
    assert run("--version").out == f"deniable {deniable.__version__}\n"


@pytest.mark.parametrize("command", ["", "demo", "channel", *(f"channel {name}" for name in COMMANDS)])
def test_help_has_examples(run, command):
    out = run(*command.split(), "--help").out
    assert f"deniable {command}".strip() in out.partition("Examples:\n")[2]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["channel", "show"], "Missing argument"),
        (["channel", "show", "coin", "--bogus"], "No such option: --bogus"),
        (["channel", "infer", "coin", "1,2", "--method", "magic"], "magic"),
        (["channel", "infer", "coin", "1,2", "--level", "high"], "'--level'"),
        (["channel", "infer", "coin", "1,2", "--level", "1.5"], "between 0 and 1"),
        (["channel", "infer", "coin", "1,2", "--level", "nan"], "between 0 and 1"),
        (["channel", "show", "coin", "--json", "--csv"], "exclude each other"),
        (["channel", "push", "-", "-"], "once only"),
        (["channel", "sample", "-"], "once only"),
        (["channel", "sample", "coin", "yes", "--times", "0"], "--times"),
        (["channel", "sample", "coin", "yes", "--times", "10000000000"], "--times"),
        (["channel", "sample", "coin", "yes", "--seed", "x"], "'--seed'"),
        (["demo", "--people", "3"], "--people"),
    ],
)
def test_usage(run, args, message):
    assert message in run(*args, code=2).err


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("no-such-file.json", "there is no file 'no-such-file.json'"),
        ("warnr:epsilon=1", "did you mean 'warner'"),
        (".", "Is a directory"),
        ("warner", "warner needs epsilon"),
        ("warner:1", "needs the name of a parameter"),
        ("warner:epsilon=", "empty value"),
        ("warner:epsilon=1,", "empty value"),
        ("warner:epsilon=1,epsilon=2", "twice"),
        ("warner:epsilon=1,2", "one value"),
        ("warner:epsilon=1,k=2", "no parameter 'k'"),
        ("warner:epsilon=1,labels=a,b,c", "two answers"),
        ("warner:epsilon=0", "must be positive"),
        ("warner:epsilon=-1", "must be positive"),
        ("warner:epsilon=nan", "NaN"),
        ("warner:epsilon=inf", "infinite"),
        ("warner:epsilon=1000", "above 64"),
        ("warner:epsilon=1e-9", "below 1e-6"),
        ("warner:epsilon=1e999999999", "range"),
        ("warner:epsilon=one", "not a number"),
        ("warner:epsilon=1/0", "zero"),
        ("coin:truth=2", "probability"),
        ("randomized-response:epsilon=1", "either k or labels"),
        ("randomized-response:k=3,labels=a,b,epsilon=1", "either k or labels"),
        ("randomized-response:k=1,epsilon=1", "at least 2"),
        ("randomized-response:k=2.5,epsilon=1", "whole number"),
        ("randomized-response:k=9999,epsilon=1", "cells"),
        ("randomized-response:k=1e9,epsilon=1", "at most"),
        ("randomized-response:labels=a,a,epsilon=1", "twice"),
        ("truncated-geometric:n=0,epsilon=1", "n >= 1"),
        ("truncated-geometric:n=9999,epsilon=1", "2048 counts"),
        ("subset-selection:k=9999,epsilon=1", "subsets"),
        ("subset-selection:k=4,epsilon=1,w=4", "subset"),
        ("binary:p0=0.5,0.5,p1=1,epsilon=1", "entries"),
        ("binary:p0=0.5,0.4,p1=1,0,epsilon=1", "sums to"),
        ("binary:p0=1e400,p1=1,epsilon=1", "above 1"),
        ("exponential:epsilon=1", "either scores or n"),
        ("exponential:scores=nowhere.csv,epsilon=1", "No such file"),
        ("exponential:n=4,epsilon=1,adjacency=circle", "all or line or hamming"),
        ("product-response:sizes=2,3,epsilon=1,split=maybe", "yes or no"),
    ],
)
def test_channels_that_cannot_be_named(run, source, message):
    assert message in run("channel", "show", source, code=2).err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"  \n\n", "is empty"),
        (b",,,\n", "is empty"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe\x00", "not UTF-8"),
        (b"\xff\xfe,\x00a\x00", "not UTF-8"),
        (b"a\x00b", "zero bytes"),
        (b",a,b\nx,1/2,1/2\ny,1\n", "line 3 of"),
        (b",a,b\nx,1/2,1/2,0\n", "4 cells"),
        (b",a,b\n", "no matrix with labels"),
        (b"just words", "no matrix"),
        (b'"never closed,a\nx,1\n', "not CSV"),
        (b",a,b\nx,1/2,1/3\n", "row 'x' sums to 0.833333, not to 1"),
        (b",a,b\nx,nan,1\n", "NaN"),
        (b",a,b\nx,inf,1\n", "infinite"),
        (b",a,b\nx,,1\n", "not a number"),
        (b",a,b\nx,-0.5,1.5\n", "negative"),
        (b",a,a\nx,1/2,1/2\n", "stands twice"),
        (b",a,b\nx,1/2,1/2\nx,1/2,1/2\n", "stands twice"),
        (b"0.75,0.25\n0.25,0.75\n", "output labels"),
        (b"{", "not JSON"),
        (b"[[0.5, 0.5],]", "not JSON"),
        (b"[" * 100_000, "JSON"),
        (b"[[NaN, 1]]", "NaN"),
        (b"[[1e99999, 0]]", "range"),
        (b"[[1e99999999999999999999999, 0]]", "JSON"),
        (b"[[" + b"9" * 300_000 + b", 0]]", "JSON"),
        (b"[[0.5, 0.5], [1]]", "equally long"),
        (b"[1, 2]", "list of rows"),
        (b"[]", "at least one"),
        (b"{}", '"kind": "channel"'),
        (b'{"rows": [[1]], "rows": [[1]]}', "twice"),
        (b'{"rows": [[1]], "inputs": 5}', "list of labels"),
        (b'{"rows": [[1]], "inputs": [null]}', "label"),
        (b'{"kind": "channel"}', "version"),
        (b'{"kind": "channel", "version": 1}', "misses"),
        (b'{"kind": "channel", "version": 1, "rows": 5, "inputs": [], "outputs": [], "denominator": "1"}', "spec"),
        (b'{"kind": "survey", "version": 1, "rows": [[1]]}', "kind"),
    ],
)
def test_files_that_hold_no_channel(run, write, content, message):
    path = write(content)
    assert message in run("channel", "show", path, code=2).err
    run("channel", "epsilon", "-", stdin=content, code=2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("no,abc,3/4", "row 'no', column 'yes': the entry 'abc' is not a number"),
        ("no,1/4,", "row 'no', column 'maybe': the entry '' is not a number"),
        ("no,-1/4,5/4", "row 'no', column 'yes': the entry is negative (-0.25)"),
    ],
)
def test_a_bad_cell_is_named_as_a_spreadsheet_shows_it(run, write, rows, message):
    # The blank line counts: the message gives the line that an editor gives.
    path = write(f",yes,maybe\nyes,3/4,1/4\n\n{rows}\n", "law.csv")
    assert f"line 4 of '{path}', {message}" in run("channel", "show", path, code=2).err
    if "negative" not in message:
        assert (
            f"line 4 of '{path}', {message}"
            in run("channel", "show", f"exponential:scores={path},epsilon=1", code=2).err
        )
        assert (
            f"line 4 of '{path}', {message}"
            in run(*("design", "bayes", "yes=0.5,maybe=0.5", "--epsilon", "1", "--loss", path), code=2).err
        )


def test_a_row_that_is_no_distribution_is_named_by_line_and_label(run, write):
    path = write(",yes,maybe\nyes,3/4,1/4\n\nno,1/2,3/4\n", "law.csv")
    assert run("channel", "show", path, code=2).err == (
        f"error: line 4 of '{path}': row 'no' sums to 1.25, not to 1: divide it by its sum\n"
    )


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ("1,2,3", "3 numbers are given as counts, but there are 2 outputs"),
        ("5", "1 numbers"),
        ("1,-2", "negative"),
        ("1,nan", "NaN"),
        ("1,inf", "infinite"),
        ("1,1e400", "too large"),
        ("1,x", "not a number"),
        ("yes=1,maybe=2", "'maybe' is not one of the 2 outputs"),
        ("yes=1,yes=2", "stands twice"),
        ("yes=1,2", "not a number"),
        ("missing.csv", "there is no file 'missing.csv'"),
        (".", "Is a directory"),
    ],
)
def test_counts_that_cannot_be_used(run, counts, message):
    assert message in run("channel", "infer", "coin", counts, code=2).err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("yes,1,2\n", "cells"),
        ("yes,1\nno\n", "cells"),
        ("maybe,1\nno,2\n", "'maybe'"),
        ("[1, [2]]", "list"),
        ('{"yes": null}', "NoneType"),
        ('{"yes": true}', "truth value"),
    ],
)
def test_count_files_that_cannot_be_used(run, write, content, message):
    assert message in run("channel", "infer", "coin", write(content), code=2).err
    run("channel", "infer", "coin", stdin=content, code=2)


def test_observations_name_the_line(run):
    assert (
        "line 2 of standard input: 'maybe'"
        in run("channel", "infer", "coin", "--observations", stdin="yes\nmaybe\n", code=2).err
    )
    assert "line 2" in run("channel", "infer", "coin", "--observations", stdin="yes\n\nno\n", code=2).err


@pytest.mark.parametrize("claim", ["0", "-1", "nan", "65", "x", "1/0"])
def test_claims_that_make_no_sense(run, claim):
    assert "epsilon" in run("channel", "epsilon", "coin", "--at-most", claim, code=2).err


@pytest.mark.parametrize("level", ["-1", "nan", "x"])
def test_levels_that_have_no_delta(run, level):
    run("channel", "epsilon", "coin", "--delta", level, code=2)


@pytest.mark.parametrize("relation", ["circle", "line:0", "line:x", "."])
def test_adjacencies_that_do_not_exist(run, relation):
    run("channel", "epsilon", "coin", "--adjacency", relation, code=2)


@pytest.mark.parametrize("prior", ["0.5,0.6", "1,-0", "2,-1", "0.5", "nan,1", "nowhere"])
def test_priors(run, prior):
    run("channel", "push", "coin", prior, code=0 if prior == "1,-0" else 2)


def test_files_that_cannot_be_written(run, tmp_path):
    run("channel", "show", "coin", "--save", tmp_path / "no" / "where.json", code=2)
    for name in ("no/where.png", "x.docx", "x"):
        run("channel", "show", "coin", "--plot", tmp_path / name, code=2)
    assert not list(tmp_path.iterdir())


def test_a_missing_extra_is_named(run, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for args in (["show", "coin"], ["infer", "coin", "1,2"]):
        assert "pip install 'deniable[plot]'" in run("channel", *args, "--plot", tmp_path / "x.png", code=2).err


def test_labels_that_are_written_alike(run, write):
    path = write('{"rows": [[0.5, 0.5]], "outputs": [1, "1"]}')
    assert "two outputs are written '1'" in run("channel", "infer", path, "1=3", code=2).err


@pytest.mark.parametrize(("error", "shown"), [(ZeroDivisionError("secret"), False), (InternalError("no slack"), True)])
def test_a_bug_is_reported_as_one(monkeypatch, capsys, error, shown):
    def broken(source):
        raise error

    monkeypatch.setattr(commands, "read_channel", broken)
    for debug in ("0", "1"):
        monkeypatch.setenv("DENIABLE_DEBUG", debug)
        with pytest.raises(SystemExit) as ended:
            cli.app(["channel", "show", "coin"])
        assert ended.value.code == cli.BUG
        err = capsys.readouterr().err
        assert ("Traceback" in err) is (debug == "1")
        message = err.splitlines()[-1]
        assert message.startswith(f"error: unexpected {type(error).__name__}")
        assert "report" in message
        assert (str(error) in message) is shown


def test_an_interrupt_is_quiet(monkeypatch, capsys):
    def interrupted(source):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "read_channel", interrupted)
    with pytest.raises(SystemExit) as ended:
        cli.app(["channel", "show", "coin"])
    assert ended.value.code == cli.INTERRUPTED
    assert capsys.readouterr().err == ""

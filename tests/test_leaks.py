"""No answer appears in any message: a sentinel is planted in every entry point that takes answers.

Looked at are messages, arguments and attributes of exceptions and of all that are chained to them, formatted
tracebacks, log records, standard output and standard error.
"""

from __future__ import annotations

import gzip
import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import deniable as dn
from deniable.cli import app
from deniable.domains import Categories, Integers, Strings
from deniable.errors import DeniableError, DomainError
from deniable.files import privatize_file, tally_files, write_reports
from deniable.files.reports import Layout
from deniable.files.spark import privatize_frame, privatized_batches, write_frame
from deniable.protocols import GRR, HCMS, OLH, RAPPOR, FrequencyProtocol, TextProtocol, registered
from deniable.surveys import Question, Survey
from tests.leaks import ANSWERS, NUMBER, SECRET, leaks, told

YES_NO, MIXED = Categories(["yes", "no"]), Categories([1, True, "one", "1"])
DOMAINS = [YES_NO, MIXED, Integers(18, 99)]
SURVEY = Survey(
    "leaks",
    [
        Question("smoke", "?", GRR(YES_NO, 1)),
        Question("age", "?", OLH(Integers(18, 99), 1)),
        Question("kind", "?", GRR(Categories([1, True, "one"]), 1)),
        Question("word", "?", HCMS(Strings(cells=64, cohorts=4), 1)),
    ],
)
GOOD: dict[str, Any] = {"smoke": "yes", "age": 42, "kind": "one", "word": "rye"}


@pytest.fixture
def silent(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Iterator[Callable[..., None]]:
    """Runs something that may refuse; nothing that it raises, logs or prints holds the sentinel."""
    caplog.set_level(logging.DEBUG)

    def refuse(work: Callable[..., Any], *args: Any, must: bool = True) -> None:
        found = None
        try:
            work(*args)
        except DeniableError as wrong:
            found = leaks(wrong)
        assert not found
        assert found is not None or not must, "nothing was refused, so that nothing was tried"

    yield refuse
    out, err = capfd.readouterr()
    assert not told(out + err)
    assert not any(told(record.getMessage() + str(record.exc_text or "")) for record in caplog.records)


def columns(bad: Any, good: Any) -> Iterator[Any]:
    """A bad answer alone, and among good ones in all kinds of columns."""
    yield bad
    yield [good, bad, good]
    array = np.empty(3, dtype=object)
    array[:] = [good, bad, good]
    yield array
    yield pd.Series([good, bad, good], dtype=object)
    if isinstance(good, str) and isinstance(bad, str) and "\ud800" not in bad:
        yield from (np.array([good, bad]), pa.array([good, bad]), pl.Series([good, bad]))
        yield pd.Series([good, bad], dtype="category")
        yield pa.array([good, bad]).dictionary_encode()
    if isinstance(bad, int | float) and abs(bad) < 2**60:
        yield from (np.array([20, bad]), pa.array([20.0, float(bad)]), pl.Series([20.0, float(bad)]))


@pytest.mark.parametrize(
    "name", sorted(name for name, kind in registered().items() if issubclass(kind, FrequencyProtocol))
)
def test_protocols(name: str, silent: Any) -> None:
    for domain in DOMAINS:
        if domain is MIXED and issubclass(registered()[name], TextProtocol):
            continue
        protocol = registered()[name](domain, 1)
        good = domain.labels[0]
        for bad in ANSWERS:
            for column in columns(bad, good):
                silent(protocol.privatize, column)
                silent(protocol.tally, column)
                silent(protocol.estimate, column)
    with_others = registered()[name](Categories(["a", "b"], other="else", missing="none"), 1)
    for bad in ANSWERS:
        silent(with_others.privatize, [bad, None], must=False)


@pytest.mark.parametrize("family", [HCMS, RAPPOR])
def test_open_text(family: Any, silent: Any) -> None:
    protocol = family(Strings(cells=64, cohorts=4), 1)
    for bad in ANSWERS:
        for column in columns(bad, "rye"):
            silent(protocol.privatize, column, must=False)


def test_channels(silent: Any) -> None:
    channel = dn.channels.randomized_response(["yes", "no"], 1)
    for bad in ANSWERS:
        silent(channel.sample, bad)
        silent(channel.sample, ["yes", bad])


def tables(id: str, bad: Any) -> Iterator[Any]:
    """A table with one bad answer, in every package."""
    rows = {name: [good, bad, good] if name == id else [good] * 3 for name, good in GOOD.items()}
    yield rows
    yield {**GOOD, id: bad}
    yield pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in rows.items()})
    if isinstance(bad, str) and "\ud800" not in bad:
        texts = {name: [str(value) for value in values] for name, values in rows.items()}
        yield from (pa.table(texts), pl.DataFrame(texts), pa.table(texts).to_batches()[0])
        yield pd.DataFrame(texts).astype("category")


@pytest.mark.parametrize("id", GOOD)
def test_surveys(id: str, silent: Any) -> None:
    SURVEY.privatize({name: [good] * 3 for name, good in GOOD.items()})
    for bad in ANSWERS:
        for table in tables(id, bad):
            silent(SURVEY.privatize, table, must=id != "word")
            silent(SURVEY.privatize, table, {id: "elsewhere"})
    for thing in (SECRET, Path(SECRET), [SECRET], [{"smoke": SECRET}], pd.Series([SECRET]), pl.Series([SECRET])):
        silent(SURVEY.privatize, thing)
    silent(SURVEY.privatize, pl.DataFrame({"smoke": [SECRET]}).lazy())
    silent(SURVEY.tally, {"smoke": [SECRET]})
    silent(SURVEY.tally, {"smoke": pd.Series([SECRET])})


CSV = [
    f"{SECRET},1\n{SECRET},2\n",  # without a header
    f"{SECRET}|1\nyes|2\n",
    f"smoke,x\n{SECRET},1\n",
    f"smoke,x\nyes,1\n{SECRET},2,3\n",
    f'smoke,x\n"{SECRET},1\nno,2\n',
    f"smoke\n{SECRET}\xff\n".encode("latin-1"),
    f"smoke\n{SECRET}\n".encode("utf-16"),
    gzip.compress(f"smoke\n{SECRET}\n".encode(), mtime=0),
    b"PK\x03\x04" + SECRET.encode(),
    f"PAR1{SECRET}",
    f'[{{"smoke": "{SECRET}"}}]',
    f'{{"smoke": "{SECRET}"}}',
    f"smoke\n{SECRET}\0\n",
    f"smoke\r\n{' ' * 3}{SECRET}\r\n",
    "smoke\n" + SECRET * 200_000,
]


def test_files(tmp_path: Path, silent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "reports.parquet"
    for place, content in enumerate(CSV):
        path = tmp_path / f"{place}.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        silent(privatize_file, SURVEY, path, out, {"smoke": "smoke"})
        silent(tally_files, SURVEY, [path])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        silent(privatize_file, SURVEY, "-", out, {"smoke": "smoke"})
    for column in (
        pa.array([SECRET]),
        pa.array([[SECRET]]),
        pa.array([{"a": SECRET}]),
        pa.array([SECRET.encode()]),
        pa.array([Decimal(NUMBER)]),
        pa.array([NUMBER]),
        pa.array([NUMBER + 0.5]),
        pa.array([SECRET]).dictionary_encode(),
    ):
        for id in ("smoke", "age", "kind"):
            pq.write_table(pa.table({id: column}), tmp_path / "a.parquet")
            silent(privatize_file, SURVEY, tmp_path / "a.parquet", out, {id: id})
    assert not out.exists()


def test_wrong_arguments(tmp_path: Path, silent: Any) -> None:
    """What others say of an argument of the wrong type quotes it, with all its rows."""
    table = {"smoke": [SECRET, "yes"]}
    reports, protocol = tmp_path / "reports.parquet", SURVEY["smoke"].protocol
    for thing in (pd.DataFrame(table), pl.DataFrame(table), pa.table(table), table, [SECRET], pd.Series([SECRET])):
        silent(privatize_file, SURVEY, thing, reports)
        silent(privatize_file, thing, SURVEY, reports)
        silent(privatize_file, SURVEY, "answers.csv", thing)
        silent(privatize_file, SURVEY, __file__, reports, {"smoke": thing})
        silent(tally_files, SURVEY, [thing])
        silent(tally_files, thing, [SURVEY])
        silent(write_reports, reports, thing, [])
        silent(write_reports, reports, Survey.of(protocol), [{"report": thing}])
        silent(write_frame, SURVEY, thing, "folder")
        silent(protocol.tally, thing)
    assert not reports.exists()


@pytest.mark.parametrize("id", GOOD)
def test_frames_of_spark(id: str, silent: Any, tmp_path: Path) -> None:
    """What an executor does with a batch; `test_spark` has the same with a session."""
    layout, same = Layout(SURVEY), {name: name for name in GOOD}
    for bad in ANSWERS:
        if not isinstance(bad, str | float) or "\ud800" in str(bad):
            continue
        batch = pa.record_batch({name: [bad if name == id else str(good)] for name, good in GOOD.items()})
        silent(lambda: list(privatized_batches(layout, same, [], iter([batch]))), must=id != "word")  # noqa: B023
    frame = SimpleNamespace(columns=[SECRET])
    for work in (privatize_frame, lambda frame, survey: write_frame(frame, survey, str(tmp_path))):
        with pytest.raises(DeniableError, match="no column"):  # names of columns are told, answers are not
            work(frame, SURVEY)


COMMANDS = [
    ("privatize survey.json {}.csv -o out.parquet", None),
    ("privatize survey.json {}.csv --question smoke -o out.parquet", None),
    ("privatize survey.json - --question smoke -o out.parquet", "smoke\n" + SECRET),
    ("privatize {}.csv survey.json -o out.parquet", None),
    ("tally survey.json {}.csv", None),
    ("tally {}.csv survey.json", None),
    ("estimate survey.json {}.csv", None),
    ("survey show {}.csv", None),
    ("channel sample coin " + SECRET, None),
    ("channel sample coin", f"yes\n{SECRET}\n"),
    ("channel sample ambiguous.json 1", None),
]


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the traceback that DENIABLE_DEBUG=1 asks for."""
    monkeypatch.chdir(tmp_path)
    SURVEY.save("survey.json")
    rows = [[0.5, 0.5], [0.5, 0.5]]
    Path("ambiguous.json").write_text(json.dumps({"rows": rows, "inputs": [1, "1"], "outputs": ["a", "b"]}))
    for place, content in enumerate(CSV):
        Path(f"{place}.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    for command, stdin in COMMANDS:
        for place in range((len(CSV) if "smoke" in command else 2) if "{}" in command else 1):
            line = command.format(place).split()
            ran = CliRunner(env={"DENIABLE_DEBUG": "1"}).invoke(app, line, input=stdin)
            assert ran.exit_code == 2, (line, ran.output)
            assert "error: " in ran.stderr
            assert "Traceback" in ran.stderr
            assert not told(ran.output), line
            assert "written '1'" not in ran.stderr
    assert not Path("out.parquet").exists()


def test_the_sentinel_would_be_found() -> None:
    """Each place where an answer could hide is looked at."""

    def behind() -> None:
        try:
            {}[SECRET]
        except KeyError:
            raise DomainError("this is not an answer") from None

    def codec() -> None:
        try:
            f"{SECRET}\ud800".encode()
        except UnicodeEncodeError:
            raise DomainError("this is not text") from None

    def noted() -> None:
        error = DomainError("this is not an answer")
        error.add_note(SECRET)
        raise error

    def plain() -> None:
        raise DomainError(f"{SECRET} is not an answer")

    for work in (behind, codec, noted, plain):
        with pytest.raises(DomainError) as wrong:
            work()
        assert leaks(wrong.value)
    with pytest.raises(DomainError) as wrong:
        YES_NO.index([SECRET])
    assert leaks(wrong.value) == []

"""Reports survive every road: bytes, text, Arrow, Parquet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.errors import MismatchError, ReportError, SpecError
from deniable.protocols import GRR, OLH, OUE, Reports
from deniable.randomness import Simulation

PROTOCOL = OLH(1024, 1)
REPORTS = PROTOCOL.privatize(np.arange(500), Simulation(1))


def test_round_trips(tmp_path: Path) -> None:
    width = PROTOCOL.report_bytes
    assert Reports.from_bytes(REPORTS.fingerprint, REPORTS.to_bytes(), width) == REPORTS
    assert Reports.from_text(REPORTS.fingerprint, REPORTS.to_text(), width) == REPORTS
    assert Reports.from_arrow(REPORTS.to_arrow()) == REPORTS
    assert Reports.from_arrow(REPORTS.to_arrow().slice(3, 10)) == REPORTS[3:13]
    REPORTS.save(tmp_path / "reports.parquet")
    loaded = Reports.load(tmp_path / "reports.parquet")
    assert loaded == REPORTS
    assert loaded.spec == PROTOCOL.spec()
    assert PROTOCOL.tally(loaded) == PROTOCOL.tally(REPORTS)


def test_no_reports_at_all(tmp_path: Path) -> None:
    empty = PROTOCOL.privatize([])
    assert len(empty) == 0
    assert PROTOCOL.tally(empty) == PROTOCOL.empty()
    empty.save(tmp_path / "empty.parquet")
    assert Reports.load(tmp_path / "empty.parquet") == empty


def test_as_an_array() -> None:
    assert np.asarray(REPORTS).shape == (500, 3)
    assert np.asarray(REPORTS).dtype == np.uint8
    assert len(REPORTS[:7]) == 7
    assert REPORTS[:7] + REPORTS[7:] == REPORTS
    assert "500 reports of 3 bytes" in repr(REPORTS)
    with pytest.raises(ValueError, match="read-only"):
        REPORTS.array[0, 0] = 1


def test_what_is_not_a_report(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="whole number"):
        Reports.from_bytes("f", b"12345", 2)
    with pytest.raises(ReportError, match="report 1 is not base64url"):
        Reports.from_text("f", ["AQ", "A!"], 1)
    with pytest.raises(ReportError, match="report 0 has 1 bytes"):
        Reports.from_text("f", ["AQ"], 2)
    with pytest.raises(ReportError, match="no fingerprint"):
        Reports.from_arrow(pa.table({"report": [b"1"]}))
    with pytest.raises(ReportError, match="no column 'answer'"):
        Reports.from_arrow(REPORTS.to_arrow(), "answer")
    with pytest.raises(ReportError, match="dimensions"):
        Reports("f", [1, 2])
    with pytest.raises(ReportError, match="different protocols"):
        REPORTS + OUE(1024, 1).privatize([1, 2])
    gaps = pa.table({"report": pa.array([b"1", None], pa.binary(1))}).replace_schema_metadata(
        {b"deniable.fingerprint": b"f"}
    )
    with pytest.raises(ReportError, match="without gaps"):
        Reports.from_arrow(gaps)
    table = REPORTS.to_arrow()
    damaged = table.replace_schema_metadata(dict(table.schema.metadata) | {b"deniable.spec": b"{"})
    with pytest.raises(SpecError, match="the spec in the table's metadata is not JSON"):
        Reports.from_arrow(damaged)


def test_a_truncated_file(tmp_path: Path) -> None:
    whole = tmp_path / "reports.parquet"
    REPORTS.save(whole)
    part = tmp_path / "part.parquet"
    part.write_bytes(whole.read_bytes()[:-40])
    with pytest.raises(ReportError, match="not a readable Parquet file"):
        Reports.load(part)
    pq.write_table(pa.table({"x": [1]}), part)
    with pytest.raises(ReportError, match="no fingerprint"):
        Reports.load(part)


def test_reports_of_another_protocol_are_refused_with_the_difference() -> None:
    other = OLH(1024, 2)
    with pytest.raises(ValueError, match="epsilon: '2' here, '1' there") as refused:
        other.tally(REPORTS)
    assert PROTOCOL.fingerprint[:16] in str(refused.value)
    assert other.fingerprint[:16] in str(refused.value)


def test_a_list_of_single_reports_is_tallied() -> None:
    protocol = OUE(20, 1)
    sent = [protocol.report(value, Simulation(value)) for value in range(20)]
    assert protocol.tally(sent) == protocol.tally(np.frombuffer(b"".join(sent), dtype=np.uint8).reshape(20, -1))
    with pytest.raises(ReportError, match="report 1 has 2 bytes, and those before it 3"):
        protocol.tally([sent[0], sent[1][:2]])
    with pytest.raises(ReportError, match="a single report: give a list"):
        protocol.tally(sent[0])  # type: ignore[arg-type]


def test_reports_carry_their_source(tmp_path: Path) -> None:
    protocol = GRR(["yes", "no"], 1)
    reports = Reports(protocol.fingerprint, [[0], [1]], protocol.spec(), "survey/smoke")
    assert protocol.tally(reports).source == "survey/smoke"
    assert (reports + reports)[:3].source == "survey/smoke"
    reports.save(tmp_path / "r.parquet")
    assert Reports.load(tmp_path / "r.parquet") == reports
    with pytest.raises(MismatchError, match="are of survey/smoke, not of survey/drink"):
        protocol.tally(reports, "survey/drink")
    with pytest.raises(ReportError, match="different sources"):
        reports + Reports(protocol.fingerprint, [[0]])

"""A panel: the same people in several files draw once where the survey says so, as their ledgers would.

Estimates  twelve weeks, share from .10 to .25, epsilon 8 so that few people are enough; the seed is fixed, and the
           bound of five standard errors per week fails once in 10^5 for a right law
Ledger     the panel and a real ledger draw from the same bits: the reports are the same bytes in every epoch
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from deniable.cli import app
from deniable.collect.client import Ledger
from deniable.errors import DomainError, MismatchError, ReportError, SpecError
from deniable.files import privatize_file, read_batches, tally_files
from deniable.files.spark import privatize_frame, write_frame
from deniable.protocols import Evolving, Memoized
from deniable.randomness import Simulation
from deniable.surveys import Panel, Question, Survey

RULES: dict[str, dict[str, Any]] = {
    "memoize": {"rule": "memoize", "epochs": 12, "values": 2},
    "two-stage": {"rule": "two-stage", "first": "2", "forever": "4", "values": 2, "epochs": 12},
    "evolving": {"rule": "evolving", "changes": 1, "epochs": 12},
}


def survey_of(rule: str, **more: Any) -> Survey:
    draft = {
        "name": "weekly health",
        "owner": "Example Institute",
        "purpose": "To follow an illness.",
        "opens": "2026-11-02T00:00:00Z",
        "days": 84,
        "epochs": {"days": 7},
        "people": 1000,
        "longitudinal": RULES[rule],
        "questions": [{"id": "ill", "text": "Are you ill?", "answers": ["well", "ill"]}],
    }
    return Survey.from_draft(draft | ({} if rule == "two-stage" else {"epsilon": "8"}) | more)


def week_file(path: Path, who: Any, ill: Any) -> Path:
    rows = [f"p{person},{'ill' if state else 'well'}" for person, state in zip(who, ill, strict=True)]
    path.write_text("\n".join(["who,ill", *rows]) + "\n", encoding="utf-8")
    return path


def streams(people: int, weeks: int) -> Any:
    """One row per person: somebody falls ill once, and stays so; the share goes from .10 to .25."""
    levels = np.random.default_rng(1).permutation((np.arange(people) + 0.5) / people)
    return levels[:, None] < np.linspace(0.10, 0.25, weeks)


@pytest.mark.parametrize("rule", RULES)
def test_a_longitudinal_survey_without_people_is_refused(rule: str, tmp_path: Path) -> None:
    survey = survey_of(rule)
    source = week_file(tmp_path / "w.csv", range(3), [True, False, False])
    with pytest.raises(SpecError, match=rf'the rule "{rule}".*--person COLUMN --epoch 1 --state'):
        privatize_file(survey, source, tmp_path / "r.parquet")
    with pytest.raises(SpecError, match=r"dn\.Panel"):
        survey.privatize({"ill": ["ill", "well"]})
    for way in (lambda: privatize_frame(None, survey), lambda: write_frame(None, survey, "x")):
        with pytest.raises(SpecError, match=r"executors.*--person"):
            way()
    assert sorted(os.listdir(tmp_path)) == ["w.csv"]


def test_a_protocol_of_streams_by_itself_is_refused(tmp_path: Path) -> None:
    source = week_file(tmp_path / "w.csv", range(3), [True, False, False])
    alone = Evolving(["well", "ill"], 1, epochs=4)
    with pytest.raises(SpecError, match="over 4 epochs"):
        privatize_file(Survey.of(alone), source, tmp_path / "r.parquet", {"report": "ill"})
    with pytest.raises(SpecError, match="over 4 epochs"):
        Survey("bare", [Question("ill", "Ill?", alone)]).privatize({"ill": ["ill"]})


def test_twelve_weekly_files_follow_a_share_that_rises(tmp_path: Path) -> None:
    """Each person draws once: one level of the tree for ever, and at most one bit of a stream is not a fair coin."""
    people, weeks, survey = 500, 12, survey_of("evolving")
    ill, random = streams(people, weeks), np.random.default_rng(2)
    orders = [random.permutation(people) for _ in range(weeks)]
    bits = Simulation(5)
    for week, order in enumerate(orders):
        source = week_file(tmp_path / f"w{week + 1}.csv", order, ill[order, week])
        panel = Panel("who", tmp_path / "panel.sqlite", epoch=week + 1)
        assert privatize_file(survey, source, tmp_path / f"r{week + 1}.parquet", bits=bits, panel=panel) == people
    paths = [tmp_path / f"r{week + 1}.parquet" for week in range(weeks)]
    found = survey["ill"].protocol.estimate(tally_files(survey, paths)["ill"])
    rows = [row for row in found.rows() if row["label"] == "ill" or row["group"] == "ill"][:weeks]
    errors = np.array(
        [(row["value"] - share) / row["stderr"] for row, share in zip(rows, ill.mean(axis=0), strict=True)]
    )
    assert np.abs(errors).max() < 5
    protocol = survey["ill"].protocol
    assert isinstance(protocol, Evolving)
    sent = np.zeros((people, weeks), dtype=np.int64)
    for week, (order, path) in enumerate(zip(orders, paths, strict=True)):
        sent[order, week] = np.concatenate([batch["ill"][:, 0] for batch in read_batches(path, survey)])
    nothing = protocol.tally_size - 1
    parts = np.where(sent == nothing, -1, np.searchsorted(protocol.offsets, sent // 2, side="right") - 1)
    assert all(len({level for level in row.tolist() if level >= 0}) <= 1 for row in parts)


@pytest.mark.parametrize("rule", RULES)
def test_a_panel_draws_what_a_ledger_draws(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """People in turn, epochs left out, and more answers than are kept: the bytes are the same."""
    survey = survey_of(rule)
    assert survey.terms is not None
    weeks = {1: "01", 2: "11", 5: "10", 6: "1", 9: "00", 12: "01"}
    bits, sent = Simulation(3), {}
    for week, answers in weeks.items():
        table = {"ill": ["ill" if one == "1" else "well" for one in answers], "who": list(range(len(answers)))}
        sent[week] = survey.privatize(table, panel=Panel("who", tmp_path / "p.sqlite", week), bits=bits)["ill"].array
    again = Simulation(3)
    for module in ("protocol", "memoized", "longitudinal.evolving"):
        monkeypatch.setattr(f"deniable.protocols.{module}.source_of", lambda bits: again)
    monkeypatch.setattr("deniable.protocols.protocol.SYSTEM", again)
    ledgers = [Ledger(tmp_path / f"{person}.sqlite") for person in range(2)]
    for week, answers in weeks.items():
        for person, one in enumerate(answers):
            given = {"ill": "ill" if one == "1" else "well"}
            made, _ = ledgers[person].submit(survey, survey.terms.first + week - 1, given)
            assert made.body.endswith(sent[week][person].tobytes())


def test_a_memoized_report_is_repeated_and_a_state_drawn_once(tmp_path: Path) -> None:
    survey = survey_of("memoize")
    table = pd.DataFrame({"who": [1.0, 2.0, 3.0], "ill": ["ill", "well", "ill"]})
    first, second = (
        survey.privatize(table[order], panel=Panel("who", tmp_path / "p.sqlite", week))["ill"].array
        for week, order in ((1, slice(None)), (2, slice(None, None, -1)))
    )
    assert (first == second[::-1]).all()
    stages = survey_of("two-stage")
    assert isinstance(stages["ill"].protocol, Memoized)
    column = {"who": ["a", "b", "a"], "ill": ["ill", "well", "well"], "week": ["1", "1", "2"]}
    assert len(stages.privatize(column, panel=Panel("who", tmp_path / "q.sqlite", "week"))["ill"]) == 3


def test_what_is_refused_leaves_no_trace(tmp_path: Path) -> None:
    survey, state = survey_of("evolving"), tmp_path / "p.sqlite"

    def week(number: Any, rows: list[str], people: Survey = survey) -> None:
        (tmp_path / "a.csv").write_text("\n".join(["who,ill,week", *rows]), encoding="utf-8")
        privatize_file(people, tmp_path / "a.csv", tmp_path / "r.parquet", panel=Panel("who", state, number))

    for rows, complaint in (
        (["secret,ill,1", ",well,1"], r"row 2 .*does not name a person"),
        (["secret,ill,1", "secret,well,1"], r"row 2 .*has answered in epoch 1 already"),
        (["secret,ill,1", "x,maybe,1"], r"row 2 .*column 'ill'"),
    ):
        with pytest.raises(DomainError, match=complaint) as caught:
            week(1, rows)
        assert "secret" not in str(caught.value)
        assert not state.exists()
    week(1, ["a,ill,1", "b,well,1"])
    assert not stat.S_IMODE(state.stat().st_mode) & 0o077
    before = state.read_bytes()
    with pytest.raises(DomainError, match=r"row 2 .*answered in epoch 1 already"):
        week(1, ["c,ill,1", "a,ill,1"])
    with pytest.raises(DomainError, match=r"row 1 .*it has 1 to 12"):
        week(13, ["c,ill,1"])
    with pytest.raises(DomainError, match=r"row 1 .*does not name an epoch"):
        week("week", ["c,ill,soon"])
    with pytest.raises(ReportError, match="no column 'whom'"):
        privatize_file(survey, tmp_path / "a.csv", tmp_path / "s.parquet", panel=Panel("whom", state, 2))
    with pytest.raises(MismatchError, match="belongs to survey"):
        week(2, ["a,ill,1"], survey_of("evolving", name="another"))
    assert state.read_bytes() == before
    Ledger(tmp_path / "l.sqlite").opt_out()
    with pytest.raises(ReportError, match="not the state of a panel"):
        privatize_file(survey, tmp_path / "a.csv", tmp_path / "s", panel=Panel("who", tmp_path / "l.sqlite", 2))
    plain = Survey("plain", [Question("ill", "Ill?", Evolving(["well", "ill"], 1, epochs=1))])
    with pytest.raises(SpecError, match="needs no panel"):
        plain.privatize({"ill": ["ill"], "who": ["a"]}, panel=Panel("who", state, 1))


def test_nothing_is_recorded_when_reports_cannot_be_written(tmp_path: Path) -> None:
    source, state = week_file(tmp_path / "w.csv", range(3), [True, False, False]), tmp_path / "p.sqlite"
    with pytest.raises(OSError, match="No space"):
        privatize_file(survey_of("memoize"), source, "/dev/full", format="text", panel=Panel("who", state, 1))
    assert not state.exists()


def test_the_command_numbers_the_files_by_their_names(tmp_path: Path) -> None:
    survey, run = survey_of("evolving"), CliRunner()
    survey.save(tmp_path / "survey.json")
    files = [str(week_file(tmp_path / f"w{week}.csv", range(3), [True] * 3)) for week in (1, 2, 10)]
    arguments = ["privatize", str(tmp_path / "survey.json"), *sorted(files), "-o", f"{tmp_path}/reports/"]
    refused = run.invoke(app, arguments)
    assert refused.exit_code != 0
    refused = run.invoke(app, [*arguments, "--person", "who"])
    assert refused.exit_code != 0
    done = run.invoke(app, [*arguments, "--person", "who", "--epoch", "1", "--state", str(tmp_path / "p.sqlite")])
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "epsilon 8 per person, all epochs together" in said
    assert f"epoch 2 {files[1]} epoch 3 {files[2]}" in said

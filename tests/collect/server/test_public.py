"""Results for everybody: only where the terms allow it, only from enough answers on, as an analyst sees them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable.collect.server.estimates import Summed
from deniable.collect.server.public import HELD, MEANINGS, SHEET, public_results
from deniable.collect.server.registry import Entry
from deniable.collect.stores.base import OPEN
from deniable.protocols import GRR, Stratified
from deniable.randomness import Simulation
from deniable.results.render.csv import COLUMNS
from deniable.surveys import Question, Survey, SurveyTally
from deniable.surveys.promises import promises
from tests.collect.server.live import Live, in_thread, moving
from tests.collect.surveys import TODAY, Crowd, crowd, current, memoized, mixed, plain, terms, text

KINDS = ("", ".csv", ".arrow")


def public(survey: Survey, min_reports: int = 50) -> Survey:
    assert survey.terms is not None
    own = replace(survey.terms, results="public", min_reports=min_reports)
    return replace(survey, name=f"public {survey.name}", terms=own)


def strata() -> Survey:
    protocol = Stratified({"country": ["de", "fr"]}, GRR(["yes", "no"], 1), "smoke")
    return public(Survey("strata", [Question("smoke", "Do you smoke?", protocol)], terms()))


@pytest.fixture
def moment() -> list[float]:
    return [TODAY + 3600.0]


@pytest.fixture
def live(tmp_path: Path, moment: list[float]) -> Iterator[Live]:
    surveys = [public(mixed()), public(memoized()), public(text()), plain(), strata()]
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", *surveys, **moving(moment)) as service:
        yield service


def path(survey: Survey, suffix: str = "") -> str:
    return f"/v1/surveys/{survey.fingerprint}/results{suffix}"


def results(live: Live, survey: Survey) -> Any:
    """What anybody reads: nobody sends a token here."""
    found = live.get(path(survey))
    assert found.status == 200
    return found.json


def test_nothing_is_shown_unless_the_terms_allow_it(live: Live) -> None:
    live.send(plain(), 0, crowd(plain(), 100))
    for role in (None, "analyst", "admin"):
        for kind in KINDS:
            refused = live.get(path(plain(), kind), role)
            assert (refused.status, refused.problem) == (403, "notPublic")
            assert b"smoke" not in refused.body
    assert live.get(path(public(plain()))).problem == "unknownSurvey"


def test_below_the_minimum_not_even_the_number_of_answers_is_shown(live: Live, moment: list[float]) -> None:
    survey = public(mixed())
    nobody = live.get(path(survey)).body
    people = crowd(survey, 50)
    assert live.send(survey, current(survey), people[:49]).status == 200
    moment[0] += HELD
    few = live.get(path(survey))
    assert few.body == nobody, "49 answers look as none"
    assert (few.json["enough"], few.json["n"], few.json["questions"]) == (False, None, [])
    live.send(survey, current(survey), people[49:])
    moment[0] += HELD
    enough = results(live, survey)
    assert (enough["enough"], enough["n"]) == (True, 50)
    assert [one["id"] for one in enough["questions"]] == [question.id for question in survey]
    assert f"from {survey.terms.min_reports} answers on" in promises(survey)["published"]  # type: ignore[union-attr]
    assert "published" not in promises(mixed())


def test_a_stratum_with_too_few_answers_is_left_out_and_named(live: Live) -> None:
    survey = strata()
    people = [{"country": "fr" if i < 20 else "de", "smoke": "no"} for i in range(80)]
    reports = np.asarray(survey["smoke"].protocol.privatize(people, Simulation(1)))
    live.send(survey, current(survey), Crowd(crowd(plain(), 80).ids, reports))
    found = results(live, survey)
    assert sorted(one["n"] for one in found["questions"]) == [60, 80]
    (withheld,) = found["withheld"]
    assert withheld.startswith("smoke.")
    assert "fr" in withheld


def test_it_is_the_document_that_an_analyst_sees(live: Live) -> None:
    survey = public(mixed())
    live.send(survey, current(survey), crowd(survey, 300))
    query = "intervals=simultaneous&consistent=norm-sub"
    (seen,) = live.get(f"/v1/surveys/{survey.fingerprint}/estimates?{query}", "analyst").json["series"]
    found = results(live, survey)
    assert found["questions"] == seen["questions"]
    assert (found["n"], found["starts"], found["ends"]) == (seen["n"], seen["starts"], seen["ends"])


def test_repeated_noise_is_read_once(live: Live) -> None:
    """Of memoized answers the latest epoch with enough of them is shown: more epochs repeat the same noise."""
    survey = public(memoized())
    now = current(survey)
    for epoch, n in ((now - 1, 60), (now, 49)):
        live.send(survey, epoch, crowd(survey, n, seed=epoch))
    assert results(live, survey)["n"] == 60


def test_texts_that_nobody_listed_are_not_shown(live: Live) -> None:
    survey = public(text())
    live.send(survey, current(survey), crowd(survey, 60))
    (question,) = results(live, survey)["questions"]
    assert question["message"]
    assert question["sections"] == []


def test_a_reading_is_held_for_a_minute_and_may_be_cached(live: Live, moment: list[float]) -> None:
    survey = public(mixed())
    people = crowd(survey, 80)
    live.send(survey, current(survey), people[:60])
    first = live.get(path(survey))
    assert first.headers["cache-control"] == f"public, max-age={HELD}"
    assert first.headers["access-control-allow-origin"] == "*"
    live.send(survey, current(survey), people[60:])
    assert live.get(path(survey)).body == first.body, "who asks again sees no single report"
    moment[0] += HELD
    assert results(live, survey)["n"] == 80


def test_files_have_the_same_figures_and_a_data_sheet(live: Live) -> None:
    pa = pytest.importorskip("pyarrow")
    survey = public(mixed())
    live.send(survey, current(survey), crowd(survey, 300))
    found = results(live, survey)
    rows = [row for one in found["questions"] for part in one["sections"] for row in part["rows"]]
    lines = list(csv.DictReader(io.StringIO(live.get(path(survey, ".csv")).body.decode())))
    sent = live.get(path(survey, ".arrow"))
    assert "attachment" in sent.headers["content-disposition"]
    table = pa.ipc.open_stream(sent.body).read_all()
    wanted = [row["value"] for row in rows]
    assert table["value"].to_pylist() == pytest.approx(wanted)
    assert [float(line["value"]) for line in lines] == pytest.approx(wanted)
    sheet = json.loads(table.schema.metadata[SHEET])
    assert sheet == found["sheet"]
    assert sheet["survey"] == survey.fingerprint
    assert set(sheet["columns"]) == set(table.column_names)
    assert all(sheet["columns"].values())


def test_every_column_has_a_meaning() -> None:
    assert set(COLUMNS) == set(MEANINGS)


def test_the_page_may_be_framed_only_if_the_results_are_public(live: Live) -> None:
    for survey, framed in ((public(mixed()), "frame-ancestors *;"), (plain(), "frame-ancestors 'none';")):
        page = live.get(f"/r/{survey.fingerprint}")
        assert page.status == 200
        assert framed in page.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in live.get(f"/s/{survey.fingerprint}").headers["content-security-policy"]
        listed = {one["fingerprint"]: one for one in live.get("/v1/surveys").json["surveys"]}[survey.fingerprint]
        assert (listed["results"] == "public") == (f'href="r/{survey.fingerprint}"' in live.get("/").body.decode())


def test_no_answers_at_all_are_not_enough_even_if_one_is(live: Live) -> None:
    survey = public(plain(), min_reports=1)
    entry = Entry(survey, survey.canonical, OPEN)
    found = public_results(entry, Summed(SurveyTally.empty(survey), [], 0, None), "collecting")
    assert (found.enough, found.questions) == (False, [])

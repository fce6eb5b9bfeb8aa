"""`deniable demo`: a real service, real HTTP, and intervals that contain the truth as often as they say.

What it prints in a pipe is tested in `tests/test_install.py`, where it runs as a user has it.
"""

from __future__ import annotations

import json
from pathlib import Path

from deniable.cli.demo import Bar, demo_answers, demo_survey, draw, running
from deniable.collect.analyst import Analyst
from deniable.collect.crowd import send_crowd
from deniable.randomness import Bits, Simulation
from deniable.surveys import Survey, SurveyTally


def test_json_and_too_few_people(process):
    found = json.loads(process("demo", "--people", "200", "--json").out)
    assert [question["n"] for question in found["questions"]] == [200, 200]
    assert abs(sum(found["questions"][1]["estimate"]) - 1) < 1e-9
    assert "--people" in process("demo", "--people", "5", code=2).err


def test_bars():
    inks = ("#", "=", "-")
    assert draw(Bar("x", 0.5, ""), top=1.0, width=10, inks=inks) == "#####"
    assert draw(Bar("x", 0.5, "", (0.3, 0.8)), top=1.0, width=10, inks=inks) == "###==---"
    assert draw(Bar("x", -0.1, "", (-0.3, 0.2)), top=1.0, width=10, inks=inks) == "--"


def test_the_data_are_the_published_ones():
    answers = demo_answers()
    assert {id: len(column) for id, column in answers.items()} == {"affair": 6366, "marriage": 6366}
    assert answers["affair"].count("yes") == 2053
    assert answers["marriage"].count("very good") == 2684
    assert sum(both == ("yes", "very poor") for both in zip(*answers.values(), strict=True)) == 74


def test_the_first_few_have_the_shares_of_all():
    answers = demo_answers(100)
    assert [len(column) for column in answers.values()] == [100, 100]
    assert abs(answers["affair"].count("yes") - 100 * 2053 / 6366) < 5
    assert abs(answers["marriage"].count("very good") - 100 * 2684 / 6366) < 5


def over_http(directory: Path, survey: Survey, answers: dict[str, list[str]], bits: Bits) -> SurveyTally:
    with running(directory, survey) as service:
        send_crowd(service.address, survey, answers, bits)
        with Analyst(service.address, service.analyst) as analyst:
            return analyst.tally(survey)


def test_coverage_over_twenty_crowds(tmp_path: Path) -> None:
    """Pooled over 20 collections of 7 answers each: the 95 % intervals contain the truth in .90 to .99 of 140 cases.

    The first crowd answers over HTTP.

    With the nominal coverage the pooled share has a standard error of about .026 (answers of one question hang
    together), so that a false alarm takes two of them; the seeds are fixed, hence it happens always or never.
    """
    answers = demo_answers()
    inside, narrow, total = 0, 0, 0
    survey = demo_survey()
    for seed in range(20):
        bits = Simulation(seed)
        if seed:
            tally = survey.tally(survey.privatize(answers, bits=bits))
        else:
            tally = over_http(tmp_path, survey, answers, bits)
        for question in survey:
            estimate = question.protocol.estimate(tally[question.id])
            assert estimate.n == 6366
            ends, half = estimate.interval(0.95), estimate.interval(0.5)
            for i, label in enumerate(estimate.labels):
                truth = answers[question.id].count(str(label)) / 6366
                inside += ends[i, 0] <= truth <= ends[i, 1]
                narrow += half[i, 0] <= truth <= half[i, 1]
                total += 1
    assert total == 140
    assert 0.90 <= inside / total <= 0.99
    assert narrow / total < 0.75  # intervals that are too narrow would be noticed

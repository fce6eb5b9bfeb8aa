"""`deniable story`: it ends by itself, says what is true, and draws."""

from __future__ import annotations

import re
import sys

import pytest

from deniable.channels import coin_response
from deniable.cli.bars import Bar, draw
from deniable.cli.story_studies import carry_out, exam, habits, toss
from deniable.randomness import Simulation
from deniable.randomness.exhaustive import exhaust


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_story(process, tmp_path):
    ran = process("story", "--seed", "1")
    assert "anyone's odds about your answer change by at most a factor of 3." in " ".join(ran.out.split())
    for heading in ("1. On the device", "2. The promise", "3. What the collector sees", "4. What the crowd did"):
        assert heading in ran.out
    assert "out/story.png" in ran.out
    assert (tmp_path / "out" / "story.png").read_bytes().startswith(b"\x89PNG")
    assert max(map(len, ran.out.splitlines())) <= 100
    assert ran.err.startswith("warning: --seed")
    assert process("story", "--seed", "1").out == ran.out


def test_secure_bits_are_the_default(run):
    first, second = run("story", "--no-plot"), run("story", "--no-plot")
    assert first.out != second.out
    assert first.err == ""


def test_the_next_step_gives_the_same_estimate(run):
    out = run("story", "--no-plot", "--seed", "2").out
    (command,) = re.findall(r"deniable (channel infer coin \S+)", out)
    (estimate,) = re.findall(r"^yes +\S+ +\S+ +(\S+)% ", out, re.MULTILINE)
    again = run(*command.split(), "--json").json
    assert again["frequencies"][0] == pytest.approx(float(estimate) / 100, abs=0.0005)


def test_json(run):
    first, second = run("story", "--json", "--seed", "3", "--people", "1000").json["studies"]
    assert first["ratio"] == "3"
    assert sum(first["reports"]) == sum(second["reports"]) == 1000
    assert len(second["labels"]) >= 5
    assert sum(second["truth"]) == pytest.approx(1)


def test_pictures(run, tmp_path):
    run("story", "--plot", tmp_path / "mine.svg", "--people", "200")
    assert (tmp_path / "mine.svg").stat().st_size > 1000
    assert not (tmp_path / "out").exists()
    run("story", "--plot", tmp_path / "no" / "mine.svg", code=2)


def test_without_matplotlib_it_says_how_to_get_the_picture(run, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "No picture was drawn: this needs matplotlib" in run("story").out
    assert "deniable[plot]" in run("story", "--plot", "x.png", code=2).err


def test_where_nothing_can_be_written_the_story_is_still_told(run, tmp_path):
    (tmp_path / "out").write_text("a file where the directory would be")
    assert "No picture was drawn, because out/story.png cannot be written" in run("story").out


@pytest.mark.parametrize("survey", [exam, habits])
def test_estimates_are_near_the_truth(survey):
    """Every estimate within 5.5 standard errors (false alarm below 1e-6 in all); the reports themselves are not."""
    study = carry_out(survey(20_000), Simulation(4))
    gap = abs(study.inverted.frequencies - study.truth) / study.inverted.stderr
    assert gap.max() < 5.5
    assert (abs(study.reports / 20_000 - study.truth) / study.inverted.stderr).max() > 5.5
    assert study.likeliest.converged


def test_the_coins_on_the_screen_have_the_law_of_the_channel():
    law = coin_response()
    for truth in ("yes", "no"):
        found = exhaust(lambda bits, truth=truth: toss(truth, bits).said).law
        assert found == {said: law.probability(truth, said) for said in ("yes", "no")}


def test_bars():
    inks = ("#", "=", "-")
    assert draw(Bar("x", 0.5, ""), top=1.0, width=10, inks=inks) == "#####"
    assert draw(Bar("x", 0.5, "", (0.3, 0.8)), top=1.0, width=10, inks=inks) == "###==---"
    assert draw(Bar("x", -0.1, "", (-0.3, 0.2)), top=1.0, width=10, inks=inks) == "--"

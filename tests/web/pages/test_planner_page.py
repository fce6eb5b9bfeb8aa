"""The planner page has the numbers of `deniable plan`."""

from __future__ import annotations

import json
import re
import shlex
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote

import pytest
from playwright.sync_api import expect
from typer.testing import CliRunner

from deniable.cli import app
from tests.web.pages.browser import eventually
from tests.web.pages.service import Service

Open = Callable[[str], Any]

RECORD = '{"smoke":["yes","no"],"town":{"low":1,"high":50},"sleep":{"number":{"low":0,"high":24,"unit":"hours"}}}'
ASKED = [
    "categories=10&epsilon=1&people=10000",
    "categories=1024&epsilon=1/2&people=100000",
    "categories=50&people=20000&within=0.025",
    "categories=3&epsilon=1&within=0.01",
    "epsilon=4&people=1000000",
    "categories=2&epsilon=4&within=0.01&about=respondents",
    "categories=16&epsilon=2&within=0.01&objective=0.1",
    "categories=16&epsilon=2&people=5000&objective=total",
    "number=0..24&unit=hours&epsilon=1&within=0.5",
    pytest.param("number=-5..10.5&epsilon=2&people=1000", marks=pytest.mark.slow),
    f"record={quote(RECORD)}&epsilon=1&people=20000",
    f"record={quote(RECORD)}&read=strata&epsilon=1&people=20000",
    "discover=12&epsilon=4&people=20000",
    "categories=30&at_most=4&epsilon=1&people=20000",
    "categories=6&at_most=2&number=1..5&unit=stars&people=9000&within=0.05",
    "answers=%5B%22a%22,%22b%22,%22c%22%5D&epsilon=1&people=9000",
    "answers=%7B%22low%22:0,%22high%22:99,%22read%22:%22ranges%22%7D&epsilon=1&people=9000",
]


def command(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.mark.parametrize("query", ASKED)
def test_the_service_plans_as_the_command_does(service: Service, query: str) -> None:
    options = {name: unquote(value) for name, value in (pair.split("=") for pair in query.split("&"))}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if name != "about"]
    flags += ["--respondents"] if options.get("about") == "respondents" else []
    flags += [] if {"answers", "categories", "number", "record", "discover"} & set(options) else ["--text"]
    wanted = command("plan", *flags)
    with urllib.request.urlopen(f"{service.address}/v1/plan?{query}") as reply:
        found = json.load(reply)
    assert {name: found[name] for name in wanted} == wanted
    assert found["choice"] == wanted["best"]["protocol"]
    here = next(point for point in found["curve"] if str(point["epsilon"]) == str(eval_fraction(found["epsilon"])))
    assert here["half_widths"] == {row["name"]: row["half_width"] for row in found["table"]}


def eval_fraction(text: str) -> float:
    top, _, bottom = text.partition("/")
    return int(top) / int(bottom or 1)


@pytest.mark.parametrize(
    "query",
    [
        *("categories=10&epsilon=1&within=5", "categories=10&epsilon=1&people=10&objective=rare"),
        "number=0..24&epsilon=1&people=10&objective=0.5",
        *("categories=10", "categories=10&epsilon=1&people=10&within=0.1", "categories=1&epsilon=1&people=10", "x=1"),
        *(f"{asked}&epsilon=1&people=10" for asked in ("number=24", "number=24..0", "categories=3&number=0..1")),
        *(
            f"{asked}&epsilon=1&people=10"
            for asked in ("unit=h", "record=3", "record=%7B%7D", "record=%7B%22a%22:1%7D")
        ),
        *(
            f"{asked}&epsilon=1&people=10"
            for asked in ("at_most=2", "categories=3&at_most=4", "discover=3", "discover=12&categories=3")
        ),
        "discover=12&read=mean&epsilon=1&people=10",
        *(
            f"epsilon=1&people=10&answers={quote(json.dumps(answers))}"
            for answers in (
                ["one"],
                {"low": 0, "high": 1 << 40},
                {"multiple": 1 << 40, "at_most": 2},
                {"record": {"a": ["x", "y"], "b": {"low": 0, "high": 1 << 40}}},
                {"kind": "strings", "cells": 1 << 50, "cohorts": 1, "key": ""},
            )
        ),
        "epsilon=1&people=10&categories=3&answers=" + quote('["a", "b"]'),
        "epsilon=1&people=10&record=" + quote(json.dumps({f"q{i}": ["a", "b"] for i in range(17)})),
    ],
)
def test_what_cannot_be_planned_is_refused(service: Service, query: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{service.address}/v1/plan?{query}")
    assert caught.value.code == 400
    caught.value.close()


def test_no_label_of_the_chart_is_cut_off(service: Service, open_tab: Open) -> None:
    tab = open_tab(f"{service.address}/plan")
    for width in (390, 1080):
        tab.set_viewport_size({"width": width, "height": 800})
        tab.reload()
        tab.wait_for_selector(".lines")
        assert cut_off(tab) == []


def cut_off(tab: Any) -> list[str]:
    """The labels that reach out of the chart."""
    outside = tab.evaluate(
        """() => {
            const room = document.querySelector(".lines").parentElement.getBoundingClientRect();
            const out = (box) => box.left < room.left || box.right > room.right || box.bottom > room.bottom;
            const texts = [...document.querySelectorAll(".lines text")];
            return [texts.length, texts.filter((text) => out(text.getBoundingClientRect())).map((t) => t.textContent)];
        }"""
    )
    assert outside[0] > 8
    found: list[str] = outside[1]
    return found


def test_the_table_fits_a_window_of_usual_width(service: Service, open_tab: Open) -> None:
    tab = open_tab(f"{service.address}/plan")
    tab.set_viewport_size({"width": 1080, "height": 800})
    # The table is replaced when the plan is made again: what was taken out of the page has no width.
    room = """table => {
        const texts = [...table.querySelectorAll("td:last-child, th:last-child")].map((cell) => {
            const range = document.createRange();
            range.selectNodeContents(cell);
            return range.getBoundingClientRect().right;
        });
        return table.isConnected && table.parentElement.getBoundingClientRect().right - Math.max(...texts) > 10;
    }"""
    for answers in (2, 10, 1024):
        tab.get_by_label("Possible answers").fill(str(answers))
        tab.wait_for_selector(f".command >> text=--categories {answers} ")
        eventually(tab, lambda: bool(tab.locator("table.plan").evaluate(room)))


def test_the_page_answers_all_three_questions(service: Service, open_tab: Open) -> None:
    tab = open_tab(f"{service.address}/plan")
    tab.wait_for_selector(".lines")
    assert tab.inner_text("section h2 >> nth=0") == "Use SubsetSelection"
    widths = [float(text.split()[0]) for text in tab.locator("table.plan tbody td:nth-child(2)").all_inner_texts()]
    assert widths == sorted(widths)
    assert len(widths) == 8
    tab.get_by_label("Possible answers").fill("1024")
    tab.wait_for_selector("text=Use BlockDesign")
    tab.get_by_label("How many people do I need?").check()
    tab.wait_for_selector("text=--within 0.01")
    assert not tab.get_by_label("People", exact=True).is_visible()
    shown = tab.inner_text(".big b")
    assert shown == f"{ran(tab)['n']:,} people"
    # What is spoken is the answer, and not the whole table again.
    spoken = re.compile(rf"^Use BlockDesign\. {shown} for intervals of ± 1\.00.% around any share at 95")
    expect(tab.locator("p[role=status]")).to_have_text(spoken)
    # Another figure needs fewer people, and another protocol.
    tab.get_by_label("Best for").select_option("share")
    tab.get_by_label("Share (percent)").fill("5")
    tab.wait_for_selector("text=--objective 0.05")
    assert "around an answer of 5.00" in tab.inner_text(".big")
    fewer = tab.inner_text(".big b")
    assert fewer == f"{ran(tab)['n']:,} people"
    assert int(fewer.split()[0].replace(",", "")) < int(shown.split()[0].replace(",", ""))
    tab.get_by_label("Best for").select_option("")
    eventually(tab, lambda: "--objective" not in tab.inner_text(".command"))
    assert not tab.get_by_label("Share (percent)").is_visible()
    tab.get_by_label("Intervals are about").select_option("respondents")
    tab.wait_for_selector("text=--respondents")
    assert "95\u00a0% confidence, among those who answer." in tab.inner_text(".big")
    tab.get_by_label("Intervals are about").select_option("population")
    tab.get_by_label("Which epsilon do I need?").check()
    eventually(tab, lambda: tab.inner_text(".big").startswith("Epsilon"))
    tab.get_by_label("An answer is").select_option("text")
    tab.wait_for_selector("text=--text")
    tab.get_by_label("How exact will it be?").check()
    tab.get_by_label("Epsilon", exact=True).fill("a lot")
    tab.wait_for_selector("[role=alert]")


def test_the_page_plans_means_and_records(service: Service, open_tab: Open) -> None:
    """In their own units, with the command that gives the same."""
    tab = open_tab(f"{service.address}/plan")
    tab.wait_for_selector(".lines")
    tab.get_by_label("An answer is").select_option("number")
    tab.get_by_label("How many people do I need?").check()
    tab.get_by_label("Interval ±").fill("0.5")
    tab.wait_for_selector("text=--within 0.5")
    assert not tab.get_by_label("Possible answers").is_visible()
    assert "Visible" not in tab.inner_text(".tiles")
    labels = tab.locator(".lines text").all_text_contents()
    assert "interval ±, hours" in labels
    assert not any("%" in label for label in labels)
    assert "intervals of ± 0.5\u00a0hours" in tab.inner_text(".big")
    check_command(tab)
    tab.get_by_label("An answer is").select_option("record")
    tab.get_by_label("How exact will it be?").check()
    tab.wait_for_selector("text=Use Attributes")
    assert "epsilon split over all 3 columns" in tab.inner_text("section.promise")
    assert not tab.get_by_label("Unit").is_visible()
    check_command(tab)
    tab.get_by_label("An answer is").select_option("discover")
    tab.wait_for_selector("text=Use HeavyHitters")
    tile = tab.locator(".tile", has_text="smallest share that is found, nine times out of ten")
    share = float(tile.locator("b").inner_text().split()[0])
    assert f"that at least {share:.2g} % of" in tab.inner_text("section.promise").replace("\u00a0", " ")
    check_command(tab)
    tab.get_by_label("An answer is").select_option("keys")
    tab.wait_for_selector("text=--at-most 3")
    assert "Use KeyValue" in tab.inner_text("section.promise")
    check_command(tab)
    tab.get_by_label("An answer is").select_option("strata")
    tab.get_by_label("Parts").fill("sex: f, m\nsmoke: yes, no")
    tab.wait_for_selector(".command >> text=sex")
    assert "Use PrivateStrata" in tab.inner_text("section.promise")
    check_command(tab)
    tab.get_by_label("How many people do I need?").check()
    tab.get_by_label("Parts").fill("sex: f, m\nsleep: 0..24 hours")
    tab.wait_for_selector("text=intervals of ± 0.5\u00a0hours")
    check_command(tab)
    tab.get_by_label("An answer is").select_option("record")
    tab.get_by_label("Parts").fill("smoke yes no")
    tab.wait_for_selector("[role=alert] >> text=one part per line")


def ran(tab: Any) -> dict[str, Any]:
    """What the command that is shown says."""
    program, *words = shlex.split(tab.locator(".command code").inner_text())
    assert program == "deniable"
    return command(*words)


def check_command(tab: Any) -> None:
    plan, shown = ran(tab), tab.inner_text(".big b")
    if plan["solved"] == "n":
        assert shown == f"{plan['n']:,} people"
    else:
        assert shown == f"± {100 * plan['within']:.2f}\u00a0%"

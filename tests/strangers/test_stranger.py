"""The stranger's test: one file of another package adds two protocols, and everything works with them.

The package is installed without a network: its file and the metadata with its entry point stand on the path of fresh
processes. Nothing in this repository knows its names, except for the tests. The service, the commands and the dashboard
are real.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable.collect.stores import Token, open_store
from deniable.collect.wire import hashed, new_token
from tests.documents import rows_of
from tests.web.pages.browser import chromium, eventually, new_context
from tests.web.test_node import tool

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("stranger.py")
MOST_LINES = 120
PEOPLE = 600

DRAFT = {
    "name": "weather",
    "owner": "A stranger",
    "purpose": "to try two protocols",
    "epsilon": 2,
    "people": PEOPLE,
    "days": 7,
    "questions": [
        {"id": "bread", "text": "Which bread?", "answers": ["rye", "spelt", "white"], "protocol": "Teller"},
        {
            "id": "warm",
            "text": "How warm is it?",
            "answers": {"number": {"low": -20, "high": 40, "unit": "degrees"}},
            "protocol": "Thermometer",
        },
    ],
}

# What a notebook would do, in a process that has the package installed.
NOTEBOOK = """
import json
import numpy as np
import deniable as dn
from deniable.protocols import registered

bread = registered()["Teller"](["rye", "spelt", "white"], 1)
warm = registered()["Thermometer"](dn.Interval(-20, 40, unit="degrees"), 1)
made = {}
for protocol, answers in ((bread, ["rye"] * 600 + ["white"] * 400), (warm, np.linspace(0, 20, 1000))):
    assert dn.load(json.dumps(protocol.spec())) == protocol
    reports = protocol.privatize(answers, dn.Simulation(1))
    half = protocol.tally(reports[:500]) + protocol.tally(reports[500:])
    assert half == protocol.tally(reports)
    rows = protocol.estimate(half).table()
    truth = protocol.worth().truth(answers)
    made[protocol.name] = {
        "z": ((rows.value - truth) / rows.stderr).tolist(),
        "wide": (rows.high - rows.low).tolist(),
        "html": protocol.estimate(half)._repr_html_(),
        "report": len(protocol.report(answers[0])),
        "runs": protocol.simulate(answers, 5).figures().shape,
    }
print(json.dumps(made))
"""

CROWD = """
import json, sys
from deniable.collect.crowd import send_crowd
from deniable.surveys import Survey

survey = Survey.load("survey.json")
people = json.load(open("people.json"))
send_crowd(sys.argv[1], survey, people, connections=4)
"""

COMMANDS = """
import contextlib, io, json, shlex, sys
from deniable.cli import main

told = []
for line in json.load(sys.stdin):
    sys.argv = ["deniable", *shlex.split(line)]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            main()
        except SystemExit as ended:
            assert not ended.code, (line, ended.code)
    told.append(out.getvalue())
print(json.dumps(told))
"""

REFUSED = """
import { loadProtocol, Survey } from "./deniable.js";
import { readFileSync } from "node:fs";

const survey = JSON.parse(readFileSync(0, "utf-8"));
for (const { protocol } of survey.questions) {
  try {
    loadProtocol(protocol);
    console.log("taken");
  } catch (error) {
    console.log(`${error.kind}: ${error.message}`);
  }
}
"""


class Stranger:
    """A directory to work in, and processes that have the package installed."""

    def __init__(self, place: Path) -> None:
        self.folder, site = place / "work", place / "site"
        self.folder.mkdir()
        metadata = site / "stranger-1.0.dist-info"
        metadata.mkdir(parents=True)
        shutil.copy(FILE, site)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text("[deniable.kinds]\nstranger = stranger\n")
        path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.environment = os.environ | {"PYTHONPATH": path}
        (self.folder / "draft.json").write_text(json.dumps(DRAFT))
        rng = np.random.default_rng(7)
        self.bread = rng.choice(["rye", "spelt", "white"], PEOPLE, p=[0.6, 0.3, 0.1]).tolist()
        self.warm = rng.normal(12, 8, PEOPLE).round(2).tolist()
        rows = [f"{bread},{warm}" for bread, warm in zip(self.bread, self.warm, strict=True)]
        (self.folder / "answers.csv").write_text("\n".join(["bread,warm", *rows]) + "\n")
        (self.folder / "people.json").write_text(json.dumps({"bread": self.bread, "warm": self.warm}))

    @property
    def truth(self) -> list[float]:
        return [self.bread.count("rye") / PEOPLE, float(np.mean(self.warm))]

    def python(self, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            input=stdin,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def commands(self, *lines: str) -> list[str]:
        """What each command prints; all of them in one process, because starting one takes most of the time."""
        return json.loads(self.python("-c", COMMANDS, stdin=json.dumps(lines)))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    made = Stranger(tmp_path_factory.mktemp("stranger"))
    made.commands("survey new draft.json -o survey.json")
    return made


def test_it_is_one_short_file() -> None:
    assert len(FILE.read_text().splitlines()) <= MOST_LINES
    names = ("Teller", "Thermometer")
    for folder in ("src", "web", "docs"):
        for path in (ROOT / folder).rglob("*.[pjm]*"):
            if path.suffix in (".py", ".js", ".mjs") and path.is_file():
                assert not any(name in path.read_text(encoding="utf-8") for name in names), f"{path} knows the stranger"


def test_the_commands(stranger: Stranger) -> None:
    """Estimates are within 6 standard errors of the truth: false alarms 1e-8."""
    few = "--epsilon 1 --people 300 --runs 40 --workers 1 --json"
    with ThreadPoolExecutor(2) as pool:
        notebook = pool.submit(stranger.python, "-c", NOTEBOOK)
        others = pool.submit(
            stranger.commands,
            "plan --categories 3 --epsilon 1 --people 1000 --json",
            "plan --number=-20..40 --unit degrees --epsilon 1 --within 1 --json",
            f"simulate --protocol Teller --categories 4 {few}",
            f"simulate --protocol Thermometer --number 0..9 {few}",
            "conformance --quick --json Teller Thermometer",
        )
        *_, found, shown = stranger.commands(
            "privatize survey.json answers.csv -o reports.parquet",
            "tally survey.json reports.parquet -o tally.json",
            "estimate survey.json tally.json --json",
            "survey show survey.json",
        )
    listed, number, shares, means, checked = map(json.loads, others.result())
    assert "Teller" in [row["name"] for row in listed["table"]]
    assert "Thermometer" in [row["name"] for row in number["table"]]
    assert checked["passed"] is True
    for (row,) in (shares, means):
        assert 0.75 <= row["coverage"] <= 1  # of 40 independent runs: fewer than 30 come once in 10^6 times
    made = json.loads(notebook.result())
    assert made["Teller"]["runs"] == [5, 3]
    assert made["Thermometer"]["runs"] == [5, 1]
    for one in made.values():
        assert max(map(abs, one["z"])) < 6
        assert min(one["wide"]) > 0
        assert one["report"] == 1
        assert "<table>" in one["html"]
    assert "Thermometer" in shown
    close_to_the_truth(stranger, [rows_of(question) for question in json.loads(found)["questions"]])


def close_to_the_truth(stranger: Stranger, results: list[list[dict[str, Any]]]) -> None:
    for truth, rows in zip(stranger.truth, results, strict=True):
        assert rows[0]["low"] < rows[0]["value"] < rows[0]["high"]
        assert abs(rows[0]["value"] - truth) < 6 * rows[0]["stderr"]
    assert [rows[0]["unit"] for rows in results] == ["", "degrees"]


@pytest.fixture(scope="module")
def service(stranger: Stranger) -> Iterator[tuple[str, str]]:
    """The address of a service that has the package, with answers, and an analyst's token."""
    store, analyst = f"sqlite:///{stranger.folder / 'store.db'}", new_token()
    with open_store(store) as opened:
        opened.add_token(Token(hashed(analyst), "analyst", "tests"))
    command = [sys.executable, "-m", "deniable", "serve", "--store", store, "--port", "0", "--publish", "survey.json"]
    with (stranger.folder / "service.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=stranger.folder, env=stranger.environment, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert process.stdout is not None
        address = next((line.split()[1] for line in process.stdout if line.startswith("serving: http")), "")
        assert address, (stranger.folder / "service.log").read_text()
        stranger.python("-c", CROWD, address)
        yield address.rstrip("/"), analyst
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(90)
        process.stdout.close()  # type: ignore[union-attr]


def test_the_service_the_dashboard_and_the_browser(stranger: Stranger, service: tuple[str, str]) -> None:
    address, analyst = service
    survey = json.loads((stranger.folder / "survey.json").read_text())
    with urllib.request.urlopen(f"{address}/v1/surveys", timeout=90) as reply:
        fingerprint = json.load(reply)["surveys"][0]["fingerprint"]
    head = {"Authorization": f"Bearer {analyst}"}
    request = urllib.request.Request(f"{address}/v1/surveys/{fingerprint}/estimates", headers=head)
    with urllib.request.urlopen(request, timeout=90) as reply:
        found = json.load(reply)
    close_to_the_truth(stranger, [rows_of(question) for question in found["series"][0]["questions"]])
    with urllib.request.urlopen(f"{address}/v1/plan?categories=3&epsilon=1&people=1000", timeout=90) as reply:
        assert "Teller" in reply.read().decode()
    device, given = f"answer {address} {fingerprint} --ledger ledger.db", "bread=rye warm=21.5"
    rehearsed, explained, sent = stranger.commands(
        f"{device} --dry-run", f"{device} {given} --explain", f"{device} {given}"
    )
    assert "Thermometer" in rehearsed
    assert "Teller changes the answer by chance" in explained
    assert "sent" in sent
    with chromium() as browser:
        tab = new_context(browser).new_page()
        tab.goto(f"{address}/dashboard/{fingerprint}")
        tab.get_by_label("Analyst's token").fill(analyst)
        tab.get_by_role("button", name="Sign in").click()
        eventually(tab, lambda: "degrees" in tab.inner_text("main"))
        for method in tab.locator("section .tabs").get_by_role("button", name="Method").all():
            method.click()
        told = tab.inner_text("main")
        assert "Which bread?" in told
        assert "How warm is it?" in told
        assert "Teller" in told
        tab.goto(f"{address}/s/{fingerprint}")
        eventually(tab, lambda: "Teller" in tab.inner_text("main"))
        assert 'he protocol "Teller" is unknown to this page, which knows GRR' in tab.inner_text("main")
        assert "Nothing was sent" in tab.inner_text("main")
        assert tab.locator("form").count() == 0
    node = subprocess.run(
        [tool("node"), "--input-type=module", "-e", REFUSED],
        input=json.dumps(survey),
        cwd=ROOT / "web",
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = node.stdout.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        'unknown: the protocol "Teller" is unknown to this page',
        'unknown: the protocol "Thermometer" is unknown to this page',
    ], node.stderr
    assert all(line.endswith("it cannot be answered in a browser") for line in lines)


def test_without_the_package_it_is_refused_by_name(stranger: Stranger) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deniable", "survey", "show", "survey.json"],
        cwd=stranger.folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert "there is no protocol 'Teller'" in done.stderr

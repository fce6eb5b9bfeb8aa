"""From a design on the command line to a decision on the dashboard, with a hundred respondents in a real browser."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner
from playwright.sync_api import expect
from typer.main import get_command

from deniable.cli import app
from deniable.collect.stores import open_store
from deniable.collect.wire import ID_BYTES
from deniable.protocols import Table, Tally, load
from deniable.randomness import Simulation
from deniable.surveys import Survey
from tests.collect.surveys import Crowd, current
from tests.web.pages.service import Service
from tests.web.pages.test_answers_of_every_kind import COUNTED, SEND
from tests.web.pages.test_dashboard import Open, sign_in

MEMORY = (Path(__file__).parents[3] / "web" / "memory.js").read_text(encoding="utf-8").replace("export class", "class")
P0, P1 = {"well": 0.6, "so-so": 0.3, "badly": 0.1}, {"well": 0.1, "so-so": 0.3, "badly": 0.6}
RESPONDENTS = 1500
IN_BROWSER = 100

# Every respondent is a device of its own, with a ledger in memory; all of them answer at once.
ANSWER = f"""async ([fingerprint, answers]) => {{
  {MEMORY}
  const page = document.querySelector('script[type="module"]').src;
  const {{ Client }} = await import(new URL("../deniable.js", page));
  return Promise.all(answers.map(async (effect) => {{
    const client = new Client({{ server: location.origin, fingerprint, store: new MemoryStore() }});
    return (await client.answer({{ effect }})).state;
  }}));
}}"""


def deniable(*words: Any) -> str:
    """A command, and what it prints."""
    ran = CliRunner().invoke(get_command(app), [str(word) for word in words])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def designed(folder: Path, service: Service) -> Survey:
    """The extremal mechanism for the two laws as a published survey: all on the command line."""
    laws = [",".join(f"{answer}={share}" for answer, share in law.items()) for law in (P0, P1)]
    proof, draft, file, token = (folder / name for name in ("proof.json", "draft.json", "survey.json", "token"))
    deniable("design", "extremal", "--p0", laws[0], "--p1", laws[1], "--epsilon", 2, "--save", proof)
    content = {
        "name": "effect",
        "owner": "Example Institute",
        "purpose": "To learn whether the remedy helps.",
        "days": 30,
        "questions": [{"id": "effect", "text": "How do you feel?"}],
    }
    draft.write_text(json.dumps(content))
    deniable("survey", "new", draft, "--table", proof, "-o", file)
    token.write_text(service.admin)
    deniable("survey", "publish", file, "--to", service.address, "--token-file", token)
    return Survey.from_spec(json.loads(file.read_text()))


def fill(service: Service, survey: Survey, n: int) -> None:
    """Reports of more people, drawn here: a browser takes a hundred times as long."""
    bits = Simulation(1)
    answers = [answer for answer, share in P1.items() for _ in range(round(share * n))]
    reports = survey["effect"].protocol.privatize(answers, bits)
    ids = bits.words(2 * n).view(np.uint8).reshape(n, ID_BYTES).copy()
    service.fill_with(survey, current(survey, time.time()), Crowd(ids, np.asarray(reports)))


def test_a_design_is_asked_by_a_browser_and_decided_on_the_dashboard(
    tmp_path: Path, service: Service, open_tab: Open
) -> None:
    """The answers follow P1. Coins of the browser are not seeded: fewer than one run in 10^15 decides otherwise."""
    survey = designed(tmp_path, service)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    verdict = board.locator("[data-question=effect] .verdict")
    expect(verdict).to_have_attribute("data-outcome", "undecided")
    said = board.locator("[data-question=effect] .headline")
    expect(said).to_have_text(re.compile(r"^Undecided: .*; about \d+ more people would decide between them\.$"))
    # First those that the service does not see arrive: it reads anew what it counts itself.
    fill(service, survey, RESPONDENTS - IN_BROWSER)
    tab = open_tab(service.survey_page(survey))
    tab.get_by_label("badly", exact=True).check()
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    answers = [answer for answer, share in P1.items() for _ in range(round(share * IN_BROWSER))]
    answers.remove("badly")
    states = tab.evaluate(ANSWER, [survey.fingerprint, answers])
    assert states == ["sent"] * (IN_BROWSER - 1)
    assert service.count(survey) == RESPONDENTS
    board.reload()
    sign_in(board, service)
    expect(board.locator(".answers")).to_contain_text(f"{RESPONDENTS:,}")
    expect(verdict).to_have_attribute("data-outcome", "favours")
    expect(said).to_have_text(
        re.compile(r"^The reports favour H1: H0 has a p-value of less than 1e-15 \(level 0\.05\)\.$")
    )
    verdict.locator("summary").click()
    rows = verdict.locator("tbody tr")
    assert [row.split("\t")[0] + row.split("\t")[-1] for row in rows.all_inner_texts()] == ["H0rejected", "H1possible"]
    # The same counts with the laws exchanged favour the other one: the verdict comes from the laws in the survey.
    protocol = survey["effect"].protocol
    assert isinstance(protocol, Table)
    spec = protocol.spec()
    first, second = (law["weights"] for law in spec["laws"])
    exchanged = load({**spec, "laws": [{"name": "H0", "weights": second}, {"name": "H1", "weights": first}]})
    with open_store(service.store) as store:
        counts = store.tally(survey.fingerprint)["effect"].counts
    assert exchanged.worth().decide(Tally(exchanged.fingerprint, RESPONDENTS, counts)).favoured == "H0"

"""A trial: two thousand people type words that nobody listed and tick several boxes, in a real browser.

Each of them is a device of its own, a client of the SDK with its own ledger in the browser, over HTTP to a real
service; the first one types and clicks on the page. The words have the share that the planner names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deniable.domains import Sets, ShortText
from deniable.planning import plan
from deniable.surveys import Question, Survey
from tests.collect.surveys import terms
from tests.web.pages.service import Service
from tests.web.pages.test_dashboard import sign_in
from tests.web.pages.test_survey_page import COUNTED, SEND

Open = Callable[[str], Any]

PEOPLE, EPSILON = 2_000, 6
WORDS = ("tea", "日本茶", "hot chocolate", "Kaffee")
APPS = ("mail", "maps", "music", "news", "notes", "sports")
LIKED = (0.7, 0.5, 0.3, 0.2, 0.1, 0.05)

DEVICES = """
async ([fingerprint, people]) => {
  const { Client } = await import(new URL("../deniable.js", document.querySelector("script[type=module]").src));
  class Memory { // a ledger that is gone with the page
    kept = undefined; last = Promise.resolve();
    async read() { return structuredClone(this.kept); }
    async update(change) { this.kept = structuredClone(change(structuredClone(this.kept))); }
    exclusive(task) { const run = this.last.then(task); this.last = run.catch(() => undefined); return run; }
  }
  const survey = await fetch(`/v1/surveys/${fingerprint}`).then((reply) => reply.arrayBuffer());
  const known = (url, ...rest) =>
    String(url).endsWith(fingerprint) ? Promise.resolve(new Response(survey)) : fetch(url, ...rest);
  let counted = 0;
  for (const answers of people) {
    const client = new Client({ server: location.origin, fingerprint, store: new Memory(), fetch: known });
    counted += (await client.answer(answers)).state === "sent";
  }
  return counted;
}
"""


@pytest.mark.slow
def test_a_trial_with_two_thousand_people_in_a_browser(own_service: Service, open_tab: Open) -> None:
    """Each word is found with probability 0.9: fewer than two of four in 4 of 1,000 runs."""
    words, apps = (plan(domain, EPSILON, PEOPLE) for domain in (ShortText(8), Sets(APPS, at_most=3)))
    share = words.choice.visible
    assert share is not None
    questions = [
        Question("word", "What do you drink?", words.best),
        Question("apps", "Which of these do you use?", apps.best),
    ]
    survey = Survey("trial", questions, terms(budget=2 * EPSILON))
    own_service.publish(survey)
    random = np.random.default_rng(5)
    planted = [word for word in WORDS for _ in range(math.ceil(share * PEOPLE))]
    said = planted + [f"{one:x}" for one in random.integers(1 << 20, 1 << 30, PEOPLE - len(planted))]
    likes = random.random((PEOPLE, len(APPS))) < LIKED
    used = [[app for app, has in zip(APPS, row, strict=True) if has][:3] for row in likes]
    order = random.permutation(PEOPLE)
    people = [{"word": said[i], "apps": used[i]} for i in order]

    tab = open_tab(own_service.survey_page(survey))
    tab.get_by_label("What do you drink?", exact=True).fill(people[0]["word"])
    for app in people[0]["apps"]:
        tab.get_by_label(app, exact=True).check()
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    for start in range(1, PEOPLE, 200):
        part = people[start : start + 200]
        assert tab.evaluate(DEVICES, [survey.fingerprint, part]) == len(part)
    assert own_service.count(survey) == PEOPLE

    board = open_tab(own_service.dashboard(survey))
    sign_in(board, own_service)
    board.wait_for_selector("[data-question=word] .chart")
    shown = board.locator("[data-question=word]").inner_text()
    labels = {word: str(ShortText(8).label(ShortText(8).encode_one(word))) for word in WORDS}
    found = [word for word, label in labels.items() if label in shown]
    print(f"epsilon {EPSILON}, share {share:.2%}: found {found}")
    assert len(found) >= 2
    word, items = own_service.ask(survey, "estimates?level=0.999")["series"][0]["questions"]
    assert {row["label"] for row in word["rows"]} <= set(labels.values()), "nothing else is found"
    held = {app: sum(app in one for one in used) / PEOPLE for app in APPS}
    for row in items["rows"]:
        assert row["low"] <= held[row["label"]] <= row["high"]
    board.screenshot(path=str(own_service.directory / "trial.png"), full_page=True)

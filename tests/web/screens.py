"""Pictures of the pages for README and docs: light, dark and phone.

`python -m tests.web.screens` starts a service, answers and looks around in a real browser, and writes
docs/assets/screens/*.png; `python -m tests.web.screens new results` takes only these. The answers are made up; what a
crowd said is fixed by seeds, coins are not.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import deniable
from deniable.audit.verdict import audit
from deniable.collect.stores import open_store
from deniable.collect.stores.base import Batch
from deniable.design import extremal
from deniable.domains import Interval
from deniable.protocols import GRR, OUE, Attributes, Table
from deniable.randomness import Simulation
from deniable.surveys import Question, Survey
from deniable.surveys.dossier import dossier, dossier_html
from deniable.surveys.terms import Longitudinal
from tests.collect.surveys import current, terms
from tests.surveys.translated import translated
from tests.web.pages.browser import chromium, new_context
from tests.web.pages.service import Service, serving

TARGET = Path(__file__).parents[2] / "docs" / "assets" / "screens"
MODES: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1080, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1080, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 780}, "color_scheme": "light", "is_mobile": True, "has_touch": True},
}
BREADS = ("sourdough", "rye", "spelt", "ciabatta", "pita", "pumpernickel", "brioche", "none of these")
BROTE = ("Sauerteig", "Roggen", "Dinkel", "Ciabatta", "Pita", "Pumpernickel", "Brioche", "keines davon")
TOWNS = ("Aachen", "Bonn", "Cologne", "Düren", "elsewhere")
SHARES = (0.30, 0.22, 0.15, 0.12, 0.08, 0.06, 0.045, 0.025)


def bakery() -> Survey:
    questions = [
        Question("diet", "Do you follow a diet for medical reasons?", GRR(["yes", "no"], epsilon=1)),
        Question("bread", "Which bread do you eat most?", OUE(BREADS, epsilon=1)),
    ]
    return guild("Bread and health", questions, "The Bakers' Guild", "to bake what people can and like to eat")


def bakery_in_german() -> Survey:
    questions = [
        Question("diet", "Halten Sie aus medizinischen Gründen Diät?", GRR(["ja", "nein"], epsilon=1)),
        Question("bread", "Welches Brot essen Sie am meisten?", OUE(BROTE, epsilon=1)),
    ]
    return guild(
        "Brot und Gesundheit", questions, "Die Bäckerzunft", "um zu backen, was Menschen essen können und mögen"
    )


def guild(name: str, questions: list[Question], owner: str, purpose: str) -> Survey:
    rule = Longitudinal(epochs=2)
    usual = terms(longitudinal=rule, budget=8, min_reports=100, late=30)
    return Survey(name, questions, replace(usual, owner=owner, purpose=purpose))


def remedy() -> Survey:
    """The best mechanism for two hypotheses, asked in a survey."""
    feelings = ["well", "so-so", "badly"]
    best = extremal([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 1, inputs=feelings)
    laws = {"no effect": [0.5, 0.3, 0.2], "side effects": [0.2, 0.3, 0.5]}
    usual = terms(longitudinal=Longitudinal(), budget=1)
    own = replace(usual, owner="Example Institute", purpose="to learn whether a remedy has side effects")
    return Survey("Side effects", [Question("effect", "How do you feel today?", Table(best, laws=laws))], own)


def fill_remedy(service: Service) -> None:
    """150 people who follow the second hypothesis."""
    survey, bits = remedy(), Simulation(4)
    answers = ["well"] * 30 + ["so-so"] * 45 + ["badly"] * 75
    ids = bits.words(300).view(np.uint8).reshape(150, 16).copy()
    reports = np.asarray(survey["effect"].protocol.privatize(answers, bits))
    with open_store(service.store) as store:
        store.add([Batch(survey.fingerprint, current(survey), ids, reports)])


def habits() -> Survey:
    """A record of three parts, of which each person reports one."""
    parts = {"smoke": ["yes", "no"], "town": list(TOWNS), "sleep": Interval(0, 24, unit="hours")}
    protocol = Attributes(parts, epsilon=1, people=30_000)
    return Survey("Habits", [Question("habits", "Your habits", protocol)], terms())


def fill_habits(service: Service) -> None:
    survey, bits, random, n = habits(), Simulation(6), np.random.default_rng(6), 30_000
    people = {
        "smoke": random.choice(["yes", "no"], n, p=[0.2, 0.8]),
        "town": random.choice(TOWNS, n, p=[0.1, 0.3, 0.4, 0.05, 0.15]),
        "sleep": random.normal(7, 1.5, n),
    }
    ids = bits.words(2 * n).view(np.uint8).reshape(n, 16).copy()
    reports = np.asarray(survey["habits"].protocol.privatize(people, bits))
    with open_store(service.store) as store:
        store.add([Batch(survey.fingerprint, current(survey), ids, reports)])


def fill(service: Service, survey: Survey) -> None:
    """A crowd that grows, and comes to like rye."""
    last = current(survey)
    (yes, no), breads = (question.protocol.domain.labels for question in survey)
    with open_store(service.store) as store:
        for step, epoch in enumerate(range(last - 7, last + 1)):
            n, bits = 2500 + 400 * step, Simulation(step)
            uniform = (bits.words(2 * n) >> np.uint64(11)).astype(float).reshape(2, n) / 2.0**53
            shares = np.array(SHARES)
            shares[1] += 0.012 * step
            shares[0] -= 0.012 * step
            diets = np.where(uniform[0] < 0.18, yes, no).tolist()
            eaten = np.array(breads)[np.searchsorted(np.cumsum(shares), uniform[1]).clip(0, 7)].tolist()
            reports = [
                np.asarray(q.protocol.privatize(given, bits)) for q, given in zip(survey, (diets, eaten), strict=True)
            ]
            ids = bits.words(2 * n).view(np.uint8).reshape(n, 16).copy()
            store.add([Batch(survey.fingerprint, epoch, ids, np.concatenate(reports, axis=1))])


def survey_page(tab: Any, service: Service, survey: Survey) -> None:
    tab.goto(service.survey_page(survey))
    tab.get_by_label("yes", exact=True).check()
    following = tab.get_by_role("button", name="Next")
    if following.count():  # one question at a time
        following.click()
    tab.get_by_label("rye", exact=True).check()


def life(tab: Any, service: Service, survey: Survey) -> None:
    survey_page(tab, service, survey)
    tab.click("text=Show me what leaves")
    tab.locator("section[aria-label='Life of a report']").evaluate("section => section.scrollIntoView()")


def dashboard(tab: Any, service: Service, survey: Survey) -> None:
    board(tab, service, survey)
    tab.locator("[data-question=diet] .tabs button").nth(2).click()
    tab.locator("[data-question=diet] [data-tab=fakes] input").fill("12")
    tab.locator("[data-question=bread] .tabs button").nth(1).click()
    tab.locator("[data-question=bread] .uplot canvas").wait_for()
    tab.wait_for_timeout(1500)
    tab.evaluate("scrollTo(0, 0)")


def board(tab: Any, service: Service, survey: Survey, query: str = "") -> None:
    """The dashboard of a survey, signed in."""
    tab.goto(service.dashboard(survey) + query)
    tab.locator("input[type=password]").fill(service.analyst)
    tab.locator("form button").click()
    tab.wait_for_selector(".chart")
    tab.wait_for_selector(".live.on")


def german(tab: Any, service: Service, survey: Survey) -> None:
    board(tab, service, bakery_in_german(), "?lang=de")


def designed(tab: Any, service: Service, survey: Survey) -> None:
    tab.goto(service.survey_page(remedy()))
    tab.get_by_label("so-so", exact=True).check()


def decided(tab: Any, service: Service, survey: Survey) -> None:
    board(tab, service, remedy())
    tab.locator(".verdict summary").click()


def parts(tab: Any, service: Service, survey: Survey) -> None:
    tab.goto(service.survey_page(habits()))
    tab.get_by_label("no", exact=True).check()
    tab.get_by_label("Bonn", exact=True).check()
    tab.get_by_label("sleep", exact=True).fill("7.5")


def panels(tab: Any, service: Service, survey: Survey) -> None:
    board(tab, service, habits())


def planner(tab: Any, service: Service, survey: Survey) -> None:
    tab.goto(f"{service.address}/plan")
    tab.wait_for_selector(".lines")


def sent(tab: Any, service: Service, survey: Survey) -> None:
    survey_page(tab, service, survey)
    tab.click("form >> text=Scramble and send")
    tab.wait_for_selector("text=your report is counted")
    tab.click("summary >> text=bytes")


DRAFT: dict[str, Any] = {
    "name": "Sleep and coffee",
    "owner": "City Health Institute",
    "purpose": "To plan help where it is needed",
    "days": 30,
    "people": 5000,
    "epsilon": "1",
    "results": "public",
    "questions": [
        {"id": "pills", "text": "Do you take pills to sleep?", "answers": ["yes", "no", "prefer not to say"]},
        {"id": "drink", "text": "What do you drink most?", "answers": ["coffee", "tea", "water", "something else"]},
        {
            "id": "sleep",
            "text": "How long do you sleep?",
            "answers": {"number": {"low": 0, "high": 24, "unit": "hours"}, "read": "mean"},
        },
    ],
}


def new(tab: Any, service: Service, survey: Survey) -> None:
    tab.goto(f"{service.address}/new?lang=en")
    file = {"name": "draft.json", "mimeType": "application/json", "buffer": json.dumps(DRAFT).encode()}
    tab.locator("input[type=file]").set_input_files(file)
    tab.wait_for_selector("section.promise")


def published(tab: Any, service: Service, survey: Survey) -> None:
    new(tab, service, survey)
    tab.get_by_label("Administrator's token").fill(service.admin)
    tab.get_by_role("button", name="Publish now").click()
    tab.wait_for_selector("svg.qr")


def opened() -> Survey:
    """A survey whose results everybody may read."""
    made = bakery()
    assert made.terms is not None
    return replace(made, name="Bread and health, in public", terms=replace(made.terms, results="public"))


def results(tab: Any, service: Service, survey: Survey) -> None:
    tab.goto(f"{service.address}/r/{opened().fingerprint}?lang=en")
    tab.wait_for_selector(".chart")


def reviewed(tab: Any, service: Service, survey: Survey) -> None:
    tab.set_content(dossier_html(dossier(survey, audit(survey, seed=1), deniable.__version__, seed=1)))


def index(tab: Any, service: Service, survey: Survey) -> None:
    tab.goto(f"{service.address}/")


def arabic(tab: Any, service: Service, survey: Survey) -> None:
    tab.goto(f"{service.survey_page(translated())}?lang=ar")
    tab.wait_for_selector("form")
    tab.locator("form input[type=radio]").first.check()
    tab.evaluate("scrollTo(0, 0)")


SHOTS: dict[str, Callable[[Any, Service, Survey], None]] = {
    "index": index,
    "survey": survey_page,
    "life": life,
    "sent": sent,
    "dashboard": dashboard,
    "german": german,
    "planner": planner,
    "new": new,
    "published": published,
    "results": results,
    "designed": designed,
    "decided": decided,
    "parts": parts,
    "panels": panels,
    "arabic": arabic,
    "dossier": reviewed,
}
WHOLE = {
    "life": "section[aria-label='Life of a report']",
    "decided": "[data-question=effect]",
    "designed": "form",
    "parts": "form",
}
"""Of these an element is shown, of the others the page, cut where it gets long."""
LONGEST = 2300
LIGHT = ("german", "designed", "decided", "parts", "panels", "published", "dossier")
ONCE = {**dict.fromkeys(LIGHT, "light"), "arabic": "phone"}
"""Of these one picture is enough."""


def pictures() -> Iterator[tuple[str, str]]:
    """Each name with its mode."""
    for mode in MODES:
        for name in SHOTS:
            if ONCE.get(name, mode) == mode:
                yield name, mode


def _served(directory: str, *surveys: Survey) -> AbstractContextManager[Service]:
    return serving(Path(directory), *surveys, opened(), remedy(), habits(), translated())


@contextmanager
def stage() -> Iterator[tuple[Service, Survey]]:
    survey, other = bakery(), bakery_in_german()
    with tempfile.TemporaryDirectory() as directory, _served(directory, survey, other) as service:
        fill(service, survey)
        fill(service, other)
        fill(service, opened())
        fill_habits(service)
        fill_remedy(service)
        yield service, survey


def shoot(target: Path = TARGET, only: Sequence[str] = ()) -> list[Path]:
    """Take all pictures, or only those of these names."""
    target.mkdir(parents=True, exist_ok=True)
    written = []
    with stage() as (service, survey), chromium() as browser:
        for name, mode in ((name, mode) for name, mode in pictures() if not only or name in only):
            settings = MODES[mode]
            context = new_context(browser, **settings, reduced_motion="reduce")
            tab = context.new_page()
            SHOTS[name](tab, service, survey)
            file = target / f"{name}-{mode}.png"
            tab.wait_for_timeout(300)
            if name in WHOLE:
                tab.locator(WHOLE[name]).screenshot(path=file)
            else:
                height = min(LONGEST, tab.evaluate("document.documentElement.scrollHeight"))
                tab.set_viewport_size({"width": settings["viewport"]["width"], "height": height})
                tab.wait_for_timeout(300)
                tab.screenshot(path=file)
            context.close()
            written.append(file)
    return written


if __name__ == "__main__":
    for path in shoot(only=sys.argv[1:]):
        print(path.relative_to(TARGET.parents[2]))

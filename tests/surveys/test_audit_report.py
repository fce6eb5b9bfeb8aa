"""The page of an audit: what it says of every registered kind, and whether somebody mixes reports on their way."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import deniable as dn
from deniable import exact
from deniable.audit.verdict import Audit
from deniable.protocols import registered
from deniable.results import quantile
from deniable.surveys.audit_report import POLICY, STYLE, report_html, reviewed
from deniable.surveys.promises import amplified, band, promises, summary
from deniable.surveys.risk import percent, percent_up
from tests.collect.surveys import terms

LOCAL = {name: kind for name, kind in registered().items() if kind.traits.local}
KINDS = [(name, number, one) for name, kind in LOCAL.items() for number, one in enumerate(kind.examples())]


def audited(survey: dn.Survey) -> Audit:
    """An audit that has found what each protocol says of itself; `tests/privacy` runs the real ones."""
    parts = tuple(
        Audit(one.id, float(one.protocol.epsilon), "cleared", "enumeration", 0.0, one.protocol.realized_epsilon)
        for one in survey
    )
    whole = sum(part.exact for part in parts)
    return Audit(survey.name, float(survey.epsilon), "cleared", "enumeration", whole, whole, parts=parts)


@pytest.mark.floats
@pytest.mark.parametrize(("name", "number", "protocol"), KINDS, ids=[f"{name}-{number}" for name, number, _ in KINDS])
def test_every_kind_has_its_sentences(name, number, protocol):
    if protocol.worth().unreadable:  # nothing could be estimated, so it is no question
        return
    survey = dn.Survey("study", [dn.Question("asked", "What is asked?", protocol)])
    content = reviewed(survey, audited(survey), "1.2.3", seed=7, levels=())
    (asked,) = content["questions"]
    page = report_html(content)
    text = " ".join(html.unescape(re.sub(r"<script.*|<[^>]+>", " ", page, flags=re.DOTALL)).split())
    assert f"exact epsilon is {protocol.realized_epsilon:.6g}, the claim is" in text
    assert survey.fingerprint in text
    assert "deniable 1.2.3" in text
    assert "--samples 20000 --level 0.95 --seed 7 --report audit.html" in text
    known = asked["guess"] is not None
    assert (f"{percent(asked['guess'])}" if known else f"at most {percent_up(asked['sure_from_half'])} (50 %)") in text
    if protocol.worth().leverage is None:
        assert "any number" in text
    else:
        said = [float(one.replace(",", "")) for one in re.findall(r"up to ([\d.,]+) honest ones", text)]
        assert said
        assert all(0.999999 * protocol.worth().leverage <= one <= 1.011 * protocol.worth().leverage for one in said)
    assert all(f"sent in clear: {', '.join(protocol.law().clear)}" in text for _ in protocol.law().clear)
    assert " ".join(asked["risk"]["words"]) in text
    assert "No shuffler is assumed" in text
    stored = json.loads(page.split('id="audit">')[1].split("</script>")[0])
    assert stored["questions"][0]["risk"] == json.loads(json.dumps(asked["risk"]))


def test_the_first_line_says_the_lifetime_and_the_band():
    """Not only the epsilon of one report: two stages that keep two answers have 1 of each, and far more in all."""
    protocol = dn.LGRR(["yes", "no"], first=1, forever=2)
    rule = dn.surveys.Longitudinal("two-stage", 52, 2, Fraction(1), Fraction(2))
    survey = dn.Survey("mood", [dn.Question("mood", "Mood?", protocol)], terms(longitudinal=rule, budget=4))
    page = html.unescape(report_html(reviewed(survey, audited(survey), "1", levels=())))
    (first,) = re.findall(r'<p class="verdict cleared">(.*?)</p>', page)
    level = exact.epsilon_text(survey.lifetime_epsilon)
    assert float(level) > 50
    assert first.endswith(f"All that a device may send: epsilon {level} at most. Protection: {band(survey)}.")
    for name in ("line", "guess", "sure"):
        assert promises(survey)[name] in page
    files = dn.Survey("once", [dn.Question("mood", "Mood?", dn.GRR(2, 1))])
    assert summary(files) == "A survey for files that is answered once: epsilon 1 at most. Protection: strong."
    german = "Eine Umfrage für Dateien, die einmal beantwortet wird: höchstens Epsilon 1. Schutz: stark."
    assert summary(files, language="de") == german


def test_what_a_relay_proves_is_said(collected):
    relayed = replace(collected, terms=replace(collected.terms, relay=RELAY))
    said = reviewed(relayed, audited(relayed), "1", levels=())["shuffler"]
    assert amplified(relayed)
    assert amplified(relayed) in said
    assert amplified(relayed).startswith(
        "A batch of 1,000 honest submissions in random order has a central epsilon of 0."
    )
    assert amplified(relayed, language="de").startswith("Ein Stapel von 1.000 ehrlichen Meldungen in zufälliger ")
    assert "Epsilon von 0," in amplified(relayed, language="de")
    assert "batches of 1,000" in said
    assert "No shuffler" in reviewed(collected, audited(collected), "1", levels=())["shuffler"]


RELAY = dn.surveys.terms.Relay("https://relay.example.org", "B" + 85 * "a" + "A", 1000)


@pytest.fixture
def collected():
    question = {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"], "epsilon": 1, "protocol": "GRR"}
    draft = {"name": "habits", "owner": "Institute", "purpose": "a study", "days": 30, "questions": [question]}
    return dn.Survey.from_draft(draft)


def test_the_policy_allows_the_style_of_the_page_and_nothing_else(collected):
    page = report_html(reviewed(collected, audited(collected), "1"), "Made here.")
    assert page.count("<style>") == 1
    assert f"<style>{STYLE}</style>" in page
    assert not re.search(r"style=|src=|href=|\son\w+=", page)
    assert "unsafe" not in POLICY
    assert "Made here." in page
    assert page.count("<polyline") == 5  # the picture: five curves
    assert "class=own" in page


def test_the_documentation_names_every_field(collected):
    content = json.loads(json.dumps(reviewed(collected, audited(collected), "1", levels=())))
    (asked,) = content["questions"]
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`([a-z_]+)`", page.split("### The JSON")[1].split("\n## ")[0]))
    fields = {*content, *asked, *asked["audit"], *asked["risk"], *asked["risk"]["rows"][0], *content["versions"]}
    assert fields - told == set()


def test_what_an_audit_leaves_open_is_listed(collected):
    found = audited(collected)
    part = replace(found.parts[0], exact=None)
    some = reviewed(collected, replace(found, exact=None, parts=(part,)), "1", levels=())["not_tested"]
    assert "smoke: other answers than those that were looked at" in some
    unsure = replace(found, parts=(replace(part, verdict="undecided"),))
    assert any("the audit is undecided" in one for one in reviewed(collected, unsure, "1", levels=())["not_tested"])
    whole = reviewed(collected, found, "1", levels=())["not_tested"]
    assert not any("smoke" in one for one in whole)
    files = replace(collected, terms=None)
    assert any("no terms" in one for one in reviewed(files, audited(files), "1", levels=())["not_tested"])


@pytest.mark.floats
@pytest.mark.parametrize(("name", "number", "protocol"), KINDS, ids=[f"{name}-{number}" for name, number, _ in KINDS])
def test_what_a_plan_says_of_every_kind_is_its_error(name, number, protocol):
    """Each half-width in the remark is that of an error or a noise of the protocol, or of one of its parts."""
    n = 1000
    said = re.findall(r"\+-([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)", protocol.worth(n).remark())
    owners = [(protocol, n), *protocol.worth(n).parts.values(), *((g.protocol, p) for g, p in groups(protocol, n))]
    worths = [one.worth(people) for one, people in owners]
    figures = [figure for worth in worths for figure in (worth.error, worth.noise)]
    if hasattr(protocol, "mean_error"):  # of a key that half or a tenth of the people have
        figures += [protocol.mean_error(n, share) for share in (0.5, 0.1)]
    allowed = [quantile(0.95) * figure * scale for figure in figures for scale in (1, 100, 0.5)]
    for number_said in said:
        assert any(float(number_said) == pytest.approx(one, rel=0.06) for one in allowed), protocol.worth(n).remark()
    for count in re.findall(r"reports (?:one|1) of ([0-9]+)", protocol.worth(n).remark()):
        assert int(count) == len(protocol.groups)


def groups(protocol, n):
    found = getattr(protocol, "groups", ())
    return zip(found, protocol.people(n), strict=True) if found else ()

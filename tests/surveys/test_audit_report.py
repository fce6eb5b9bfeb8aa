"""The page of an audit: what it says of every registered kind, and whether somebody mixes reports on their way."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import pytest

import deniable as dn
from deniable.privacy.audit import Audit
from deniable.protocols import registered
from deniable.results import quantile
from deniable.surveys.audit_report import _STYLE, POLICY, report_html, reviewed
from deniable.surveys.promises import amplified

LOCAL = {name: kind for name, kind in registered().items() if kind.local}
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
    if protocol.unreadable:  # nothing could be estimated, so it is no question
        return
    survey = dn.Survey("study", [dn.Question("asked", "What is asked?", protocol)])
    content = reviewed(survey, audited(survey), "1.2.3", seed=7, levels=())
    (asked,) = content["questions"]
    page = report_html(content)
    text = " ".join(html.unescape(re.sub(r"<script.*|<[^>]+>", " ", page, flags=re.DOTALL)).split())
    assert f"epsilon {protocol.realized_epsilon:.6g}" in text
    assert survey.fingerprint in text
    assert "deniable 1.2.3" in text
    assert "seed 7" in text
    assert (f"{protocol.attack:.1%}" in text) if protocol.attack is not None else "not computed" in text
    assert (f"{protocol.leverage:.3g} honest ones" in text) if protocol.leverage is not None else "not computed" in text
    assert all(f"sent in clear: {', '.join(protocol.clear)}" in text for _ in protocol.clear)
    assert " ".join(asked["risk"]["words"]) in text
    assert "No shuffler is assumed" in text
    stored = json.loads(page.split('id="audit">')[1].split("</script>")[0])
    assert stored["questions"][0]["risk"] == json.loads(json.dumps(asked["risk"]))


def test_what_a_relay_proves_is_said(collected):
    relayed = replace(collected, terms=replace(collected.terms, relay=RELAY))
    said = reviewed(relayed, audited(relayed), "1", levels=())["shuffler"]
    assert amplified(relayed)
    assert amplified(relayed) in said
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
    assert f"<style>{_STYLE}</style>" in page
    assert not re.search(r"style=|src=|href=|\son\w+=", page)
    assert "unsafe" not in POLICY
    assert "Made here." in page
    assert page.count("<polyline") == 5  # the picture: five curves
    assert "class=own" in page


@pytest.mark.floats
@pytest.mark.parametrize(("name", "number", "protocol"), KINDS, ids=[f"{name}-{number}" for name, number, _ in KINDS])
def test_what_a_plan_says_of_every_kind_is_its_error(name, number, protocol):
    """Each half-width in the remark is that of an error or a noise of the protocol, or of one of its parts."""
    n = 1000
    said = re.findall(r"\+-([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)", protocol.remark(n))
    owners = [(protocol, n), *protocol.parts(n).values(), *((g.protocol, p) for g, p in groups(protocol, n))]
    figures = [figure(people) for one, people in owners for figure in (one.error, one.noise)]
    allowed = [quantile(0.95) * figure * scale for figure in figures for scale in (1, 100, 0.5)]
    for number_said in said:
        assert any(float(number_said) == pytest.approx(one, rel=0.06) for one in allowed), protocol.remark(n)
    for count in re.findall(r"reports (?:one|1) of ([0-9]+)", protocol.remark(n)):
        assert int(count) == len(protocol.groups)


def groups(protocol, n):
    found = getattr(protocol, "groups", ())
    return zip(found, protocol.people(n), strict=True) if found else ()

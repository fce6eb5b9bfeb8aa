"""The dossier: it builds for every kind, loads nothing, and has the numbers of audit, risk and promises."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

import deniable as dn
from deniable.audit.verdict import audit
from deniable.collect.stores.base import REOPEN_SECONDS
from deniable.exact import epsilon_text
from deniable.protocols import registered
from deniable.protocols.law import SUM
from deniable.surveys.audit_report import reviewed
from deniable.surveys.diff import diff
from deniable.surveys.dossier import SECTIONS, dossier, dossier_html, right_of_100
from deniable.surveys.open_points import POINTS, open_points
from deniable.surveys.promises import band, lifetime, paragraphs, promises
from deniable.surveys.registry_record import UNKNOWN, registry_record, registry_yaml, unknown_fields
from deniable.surveys.results import three_digits
from deniable.surveys.right_guesses import guesses
from deniable.surveys.risk import of_survey, percent, percent_up
from deniable.surveys.terms import Longitudinal, Relay
from tests.collect.surveys import terms
from tests.surveys.test_audit_report import audited
from tests.surveys.test_promises import asked as of_terms

DOCS = Path(__file__).parents[2] / "docs"
VOID = {"meta", "link", "br", "img", "input", "line", "rect", "path"}
LOADS = {"src", "srcset", "data", "action", "poster", "background", "xlink:href", "ping", "manifest"}
FIRST = {name: next(iter(kind.examples())) for name, kind in registered().items()}
KINDS = {name: one for name, one in FIRST.items() if not one.worth().unreadable}


class Balanced(HTMLParser):
    """Checks that tags are closed in order, ids are unique and internal links lead somewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.faults: list[str] = []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        named = dict(attributes)
        self.ids += [named["id"]] if "id" in named else []
        self.links += [named["href"]] if "href" in named else []
        self.faults += [f"{tag} loads {name}" for name in named if name in LOADS or name.startswith("on")]
        self.faults += ["an inline style" for name in named if name == "style"]

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")


def faults(page: str) -> list[str]:
    """What is wrong with a page."""
    found = Balanced()
    found.feed(page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    return [
        *found.faults,
        *(f"<{tag}> stays open" for tag in found.open),
        *(f"id {one} twice" for one in found.ids if found.ids.count(one) > 1),
        *(f"{one} leaves the page" for one in found.links if one[0] != "#" or one[1:] not in found.ids),
        *("the style loads" for word in ("url(", "@import") if word in style),
    ]


def text_of(page: str) -> str:
    plain = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(plain).split())


def ask(text: str, protocol: dn.Protocol) -> dn.Question:
    return dn.Question("asked", text, protocol)


def asked(**more) -> dn.Survey:
    one = dn.Question("smoke", "Do you smoke? <b>&", dn.GRR(["yes", "no"], epsilon=1))
    other = dn.Question("age", "How old are you?", dn.OUE(range(5), epsilon=Fraction(1, 2)))
    return dn.Survey("habits", [one, other], terms(longitudinal=Longitudinal(epochs=3), **more))


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_a_page(name):
    summed = KINDS[name].guarantee.relation == SUM
    survey = of_terms([KINDS[name]], Longitudinal()) if summed else dn.Survey("study", [ask("What?", KINDS[name])])
    content = dossier(survey, audited(survey), "1.2.3")
    page = dossier_html(content)
    assert (content["registry"]["deployment"]["deployment_model"]["model_name"] == "Federated") == summed
    assert faults(page) == []
    text = text_of(page)
    assert f"{lifetime(survey)} at most" in text
    assert f"Protection: {band(survey)}" in text
    assert survey.fingerprint in text


def test_the_check_of_pages_can_fail():
    page = dossier_html(dossier(asked(), audited(asked()), "1"))
    assert faults(page) == []
    for broken in (
        page.replace("</table>", "", 1),
        page.replace("<h1>", '<img src="https://example.org/a.png"><h1>'),
        page.replace("<h1>", '<a href="https://example.org">x</a><h1>'),
        page.replace("<style>", "<style>@import 'x';"),
        page.replace('href="#kept"', 'href="#nowhere"'),
        page.replace("<h1>", "<h1 onclick='x'>"),
    ):
        assert broken != page
        assert faults(broken) != []


def test_numbers_are_those_of_audit_risk_and_promises():
    survey = asked()
    found = audit(survey, seed=7)
    content = dossier(survey, found, "1", seed=7)
    mine, theirs = content["audit"], reviewed(survey, found, "1", 7, levels=())
    assert {**mine, "written": ""} == {**theirs, "written": ""}
    risks, nist = of_survey(survey, levels=()), {one["topic"]: one["answer"] for one in content["nist"]}
    for entry, guess, question in zip(content["learned"], guesses(survey), survey, strict=True):
        shown = [row["after"] for row in entry["rows"]]
        own = risks[question.id].own
        assert shown[0] == percent(guess.once.share)
        assert guess.always.how == "exact"
        assert shown[1] == percent(guess.always.share)
        assert shown[2:4] == [f"≤ {percent_up(own.sure_from_half)}", f"≤ {percent_up(own.sure_from_tenth)}"]
        assert shown[4] == (percent(own.household) if own.exact else f"≤ {percent_up(own.household)}")
        assert entry["words"] == risks[question.id].words
        assert f"{question.id}: standard error {three_digits(own.error)} with 10,000 people" in nist["Accuracy"]
    whole = content["composition"]
    assert whole["lifetime"] == epsilon_text(survey.lifetime_epsilon) == "4.5"
    assert (whole["band"], whole["right_of_100"]) == (band(survey), right_of_100(survey))
    assert [one["epsilon"] for one in whole["debits"]] == ["1.5", "4.5"]
    text = text_of(dossier_html(content))
    assert all(row["after"] in text for entry in content["learned"] for row in entry["rows"])
    assert "--seed 7" in text
    assert "Do you smoke? <b>&" in text


@pytest.mark.parametrize("language", ["en", "de"])
def test_promises_are_those_that_respondents_read(language):
    survey = asked()
    content = dossier(survey, audited(survey), "1", language=language)
    assert content["promises"] == paragraphs(promises(survey, language=language), worst_case=True)
    page = dossier_html(content)
    assert f'<blockquote lang="{language}">' in page
    assert all(sentence in text_of(page) for sentence in content["promises"])


def test_the_page_holds_its_own_json():
    content = dossier(asked(), audited(asked()), "1")
    page = dossier_html(content)
    assert json.loads(page.split('id="dossier">')[1].split("</script>")[0]) == json.loads(json.dumps(content))


def test_differences_name_their_effect():
    before, after = asked(), asked()
    stronger = dn.Survey("habits", after.questions[:1], after.terms)
    content = dossier(after, audited(after), "1", previous=stronger)
    found = content["previous"]
    assert found["weaker"]
    assert [one["what"] for one in found["changes"]] == [one.what for one in diff(stronger, after)]
    assert found["effect"]["before"]["lifetime"] == lifetime(stronger)
    assert found["effect"]["after"]["right_of_100"] == right_of_100(after)
    assert "Privacy gets weaker." in text_of(dossier_html(content))
    other = text_of(dossier_html(dossier(stronger, audited(stronger), "1", previous=after)))
    assert "Nothing gets weaker." in other
    assert "the same survey" in text_of(dossier_html(dossier(after, audited(after), "1", previous=before)))


RELAY = Relay("https://relay.example.org", "B" + 85 * "a" + "A", 1000)
VARIANTS = {
    "sums": terms(),
    "reports": terms(retention="reports"),
    "files": replace(terms(), delete_days=3),
    "relay": replace(terms(), relay=RELAY),
    "memoized": terms(longitudinal=Longitudinal("memoize", 5, 2)),
    "fresh": terms(longitudinal=Longitudinal(epochs=4)),
    "no terms": None,
}


def variant(name: str) -> dn.Survey:
    return dn.Survey(
        "habits", [dn.Question("smoke", "Do you smoke?", dn.GRR(["yes", "no"], epsilon=1))], VARIANTS[name]
    )


@pytest.mark.parametrize("name", VARIANTS)
def test_what_is_kept_and_seen_follows_the_terms(name):
    survey = variant(name)
    content = dossier(survey, audited(survey), "1")
    page = dossier_html(content)
    assert faults(page) == []
    kept = {(one["where"], one["what"]) for one in content["kept"]}
    assert (("Service", "randomized reports under random ids") in kept) == (name == "reports")
    assert (("Service", "randomized reports in files") in kept) == (name == "files")
    assert (("Relay", "sealed submissions") in kept) == (name == "relay")
    assert (("Device", "memoized answers and their reports, in the clear") in kept) == (name == "memoized")
    assert (("Service", "sums per epoch") in kept) == (name != "no terms")
    assert any("relay.example.org" in one["party"] for one in content["flow"]) == (name == "relay")
    assert all(one["section"] in SECTIONS for one in content["nist"])
    if name == "memoized":
        assert content["composition"]["lifetime"] is None
        assert "privacy_parameters: {}" in registry_yaml(content["registry"])
    if name != "no terms":
        (ids,) = (one["until"] for one in content["kept"] if one["what"].startswith("random ids"))
        assert ids == "until three days after the epoch closes"
        assert REOPEN_SECONDS == 3 * 86_400


def test_the_picture_names_every_party():
    for name in VARIANTS:
        content = dossier(variant(name), audited(variant(name)), "1")
        svg = re.search(r"<svg.*?</svg>", dossier_html(content), re.DOTALL)[0]
        assert all(html.escape(one["party"]) in svg for one in content["flow"])


# -- open points --------------------------------------------------------------------------------------------


def titles(section: str) -> list[str]:
    page = (DOCS / "known-vulnerabilities.md").read_text(encoding="utf-8")
    part = page.split(f"## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"^(\S.*)\n:   ", part, re.MULTILINE)


def test_open_points_are_those_of_the_docs():
    listed = [title for title, _, _ in POINTS]
    about_people = [*titles("On the device"), *titles("Over time and across people"), *titles("About the software")]
    assert [one for one in about_people if one != "`Simulation` is predictable"] == [
        one for one in listed if one != "Fake respondents"
    ]
    assert "Fake respondents" in titles("On the side that counts")
    assert all(words.endswith(".") for _, _, words in POINTS)


def test_open_points_apply_where_they_should():
    found = {name: {one.title for one in open_points(variant(name))} for name in VARIANTS}
    assert [name for name in VARIANTS if "Repeated answers show changes" in found[name]] == ["memoized"]
    assert [name for name in VARIANTS if any("relay and a collector" in one for one in found[name])] == ["relay"]
    assert [name for name in VARIANTS if "Traces of order in files" in found[name]] == ["files"]
    assert [name for name in VARIANTS if "Networks see who takes part" not in found[name]] == ["no terms"]


# -- the registry --------------------------------------------------------------------------------------------

FIELDS = {
    "basic": {
        *("name", "data_curators", "intended_use", "data_product_type", "data_product_region", "description"),
        *("publication_date",),
    },
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details"},
    "deployment_model": {
        *("model_name", "model_name_details", "actors", "release_type", "release_type_details", "data_source_type"),
        "access_type",
    },
    "accounting": {"post_processing", "composition"},
    "implementation": {"preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"},
    "administrative": {"notes", "registry_authors"},
}
"""The fields of the registry's schema that a record here has; those of `basic` are required there."""
CHOICES = {
    ("dp_variant", "variant_name"): {"Pure DP", "Approximate DP", "Custom"},
    ("deployment_model", "model_name"): {"Local", "Shuffle", "Federated"},
    ("deployment_model", "release_type"): {"One release", "Many releases"},
    ("deployment_model", "data_source_type"): {"Static", "Dynamic"},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_the_record_has_the_fields_of_the_registry(name):
    survey = variant(name)
    record = registry_record(survey, "1.2.3")
    assert yaml.safe_load(registry_yaml(record)) == record
    assert {"url_slug", "status", "tier", "deployment"} == set(record)
    assert {part: set(fields) for part, fields in record["deployment"].items()} == FIELDS
    for (part, field), choices in CHOICES.items():
        assert record["deployment"][part][field] in choices
    loss = record["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"].get("epsilon") == (
        None if survey.lifetime_epsilon is None else float(survey.lifetime_epsilon)
    )
    assert band(survey) in loss["privacy_parameters_details"]
    model = {"relay": "Shuffle"}.get(name, "Local")
    assert record["deployment"]["deployment_model"]["model_name"] == model
    assert ("deployment.basic.publication_date" in unknown_fields(record)) == (name == "no terms")
    assert "deployment.basic.data_product_region" in unknown_fields(record)
    assert UNKNOWN in registry_yaml(record)


def test_yaml_survives_strange_texts():
    record = {"a": {"b": 'x: "y" # é\t', "c": "one\n  two\n\n- three", "d": [": -", "\\"], "e": {}}, "f": 1e-9}
    assert yaml.safe_load(registry_yaml(record)) == record

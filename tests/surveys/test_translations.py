"""Texts in several languages: one fingerprint, complete or refused by position, and answers by position."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

import deniable as dn
from deniable.errors import LabelError, SpecError
from deniable.randomness import Simulation
from deniable.surveys import Survey
from deniable.surveys.diff import NEUTRAL, diff
from deniable.surveys.translations import best_language, own_texts, positions, translation_schema
from tests.surveys.translated import ANSWERS, DRAFT, GERMAN, translated
from tests.test_answers import allows


def changed(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """The draft with a change of its German translation."""
    draft = deepcopy(DRAFT)
    change(draft["translations"]["de"])
    return draft


def test_all_languages_are_inside_the_fingerprint() -> None:
    survey = translated()
    assert survey.languages == ("en", "de", "ar")
    assert Survey.from_spec(json.loads(survey.canonical)) == survey
    other = changed(lambda german: german["questions"]["smoke"]["answers"].reverse())
    assert Survey.from_draft(other).fingerprint != survey.fingerprint
    assert Survey.from_draft(changed(lambda _: None)).fingerprint == survey.fingerprint


def test_a_survey_without_translations_has_the_spec_that_it_had() -> None:
    plain = replace(translated(), language=None, translations={})
    assert not {"language", "translations"} & set(plain.spec())
    assert plain.languages == ()
    assert [question.protocol for question in plain] == [question.protocol for question in translated()]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda de: de.pop("name"), r"translations\.de misses name"),
        (lambda de: de.pop("purpose"), r"translations\.de misses purpose"),
        (lambda de: de["questions"].pop("smoke"), r"translations\.de\.questions misses smoke"),
        (lambda de: de["questions"].update(more={}), r"translations\.de\.questions has the unknown key 'more'"),
        (lambda de: de["questions"]["smoke"]["answers"].pop(), r"smoke\.answers is a list of 2 texts.* not 1 texts"),
        (lambda de: de["questions"]["smoke"]["answers"].append("vielleicht"), "not 3 texts"),
        (lambda de: de["questions"]["smoke"].update(answers="ja"), "not a str"),
        (lambda de: de["questions"]["drink"]["answers"].insert(2, "7"), r"list of 3 texts.* not 4"),
        (lambda de: de["questions"]["smoke"].update(answers=["ja", "ja"]), r"smoke\.answers has one text twice, at 0"),
        (lambda de: de["questions"]["smoke"].update(answers=["ja", 5]), r"smoke\.answers\[1\] is text, not a int"),
        (lambda de: de["questions"]["smoke"].update(answers=["ja", " "]), r"smoke\.answers\[1\] is empty"),
        (lambda de: de["questions"]["smoke"].update(answers=["ja", "ne\u200bin"]), r"answers\[1\] has the invisible"),
        (lambda de: de["questions"]["smoke"].update(unit="x"), r"questions\.smoke has the unknown key 'unit'"),
        (lambda de: de["questions"]["sleep"].pop("unit"), r"questions\.sleep misses unit"),
        (lambda de: de["questions"]["you"]["parts"].pop("age"), r"you\.parts misses age"),
        (lambda de: de["questions"]["you"]["parts"]["age"].pop("text"), r"you\.parts\.age misses text"),
        (lambda de: de["questions"]["you"]["parts"]["age"].update(name="Wohnort"), r"parts has one text twice"),
        (lambda de: de.update(questions=[]), r"translations\.de\.questions is an object with smoke, drink"),
    ],
)
def test_a_translation_that_is_not_complete_is_refused_by_its_position(
    change: Callable[[dict[str, Any]], Any], told: str
) -> None:
    with pytest.raises(SpecError, match=told):
        Survey.from_draft(changed(change))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"language": "deutsch"}, "a language is a code"),
        ({"language": None}, "a language is a code"),
        ({"language": "de"}, "own texts are in 'de'"),
        ({"translations": []}, "is an object"),
        ({"translations": {"Deutsch": {}}}, "not 'Deutsch'"),
    ],
)
def test_languages_have_codes(more: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError, match=told):
        Survey.from_draft({**DRAFT, **more})


def test_an_answer_in_another_language_is_the_answer_at_the_same_position() -> None:
    survey = translated()
    for question in survey:
        own = question.protocol.domain
        german = own.translated(survey.texts("de")["questions"][question.id])
        answer, said = ANSWERS[question.id], GERMAN[question.id]
        assert german.encode_one(said) == own.encode_one(answer)
        assert survey.original(question.id, said, "de") == answer
        assert own.translated(survey.texts()["questions"][question.id]) == own, "its own texts change nothing"
        shown = survey.texts("de")["questions"][question.id]
        assert "parts" in shown or {"text": shown["text"]} | german.texts == shown
    with pytest.raises(LabelError, match="no texts in 'fr'; it has en, de, ar"):
        survey.original("smoke", "oui", "fr")


def test_words_may_mean_another_answer_in_another_language() -> None:
    """German "Gift" is poison; a position decides, not the letters."""
    question = dn.Question("what", "What is it?", dn.GRR(["Gift", "poison"], epsilon=1))
    german = {"name": "n", "questions": {"what": {"text": "Was ist es?", "answers": ["Geschenk", "Gift"]}}}
    survey = Survey("n", [question], language="en", translations={"de": german})
    assert [survey.original("what", one, "de") for one in ("Geschenk", "Gift")] == ["Gift", "poison"]
    assert survey.original("what", "Gift", "en") == "Gift"


def test_law_reports_and_tallies_do_not_depend_on_the_language() -> None:
    survey = translated()
    plain = replace(survey, language=None, translations={})
    for question in survey:
        said = survey.original(question.id, GERMAN[question.id], "de")
        reports = [
            one[question.id].protocol.privatize([answer] * 50, Simulation(3)).to_bytes()
            for one, answer in ((survey, said), (plain, ANSWERS[question.id]))
        ]
        assert reports[0] == reports[1]
        assert question.protocol.fingerprint == plain[question.id].protocol.fingerprint
    assert survey.epsilon == plain.epsilon


def test_a_changed_translation_is_said() -> None:
    survey = translated()
    assert diff(survey, survey) == []
    other = Survey.from_draft(changed(lambda de: de["questions"]["smoke"].update(answers=["jawohl", "nein"])))
    (only,) = diff(survey, other)
    where = "translation de: questions.smoke.answers[0]"
    assert (only.what, only.before, only.after, only.privacy) == (where, "ja", "jawohl", NEUTRAL)
    fewer = replace(survey, translations={"de": survey.translations["de"]})
    assert [(one.what, one.before, one.after) for one in diff(survey, fewer)] == [
        ("translation ar", "translated", "none")
    ]
    none = replace(survey, language=None, translations={})
    assert {one.what for one in diff(none, survey)} == {"language", "translation ar", "translation de"}


def test_questions_of_a_draft_that_become_parts_are_translated() -> None:
    questions = {
        "smoke": {"name": "Rauchen", "text": "Rauchen Sie?", "answers": ["ja", "nein"]},
        "cups": {"text": "Wie viele Tassen?"},
    }
    draft = {
        "name": "habits",
        "epsilon": 1,
        "people": 500,
        "language": "en",
        "per_device": 1,
        "questions": [
            {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"]},
            {"id": "cups", "text": "How many cups?", "answers": {"low": 0, "high": 9}},
        ],
        "translations": {"de": {"name": "Gewohnheiten", "questions": questions}},
    }
    texts = Survey.from_draft(draft).texts("de")["questions"]["answers"]
    assert texts["parts"]["smoke"] == {"name": "Rauchen", "text": "Rauchen Sie?", "answers": ["ja", "nein"]}
    assert (texts["text"], texts["parts"]["cups"]["name"]) == ("Gewohnheiten", "cups")


@pytest.mark.parametrize("attribute", [["de", "fr"], {"private": ["de", "fr"]}])
def test_strata_are_translated_once(attribute: Any) -> None:
    german = {
        "name": "Gewohnheiten",
        "strata": {"land": {"name": "Land", "answers": ["Deutschland", "Frankreich"]}},
        "questions": {"smoke": {"text": "Rauchen Sie?", "answers": ["ja", "nein"]}},
    }
    draft = {
        "name": "habits",
        "epsilon": 1,
        "people": 500,
        "language": "en",
        "strata": {"land": attribute},
        "questions": [{"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"]}],
        "translations": {"de": german},
    }
    survey = Survey.from_draft(draft)
    answer = survey.original("smoke", {"Land": "Frankreich", "smoke": "nein"}, "de")
    assert answer == {"land": "fr", "smoke": "no"}
    del german["strata"]
    with pytest.raises(SpecError, match=r"translations\.de misses strata"):
        Survey.from_draft(draft)


def test_every_text_of_a_survey_has_a_position() -> None:
    own, german = (dict(positions(texts)) for texts in (own_texts(translated()), DRAFT["translations"]["de"]))
    assert set(own) == set(german)
    assert own["questions.you.parts.home.answers[1]"] == "country"


def test_the_schema_describes_translations() -> None:
    schema = translation_schema()
    for translation in DRAFT["translations"].values():
        assert allows(schema, translation, schema)
    for wrong in ({"name": 1}, {"name": "x", "more": "y"}, {"name": "x", "questions": {"a": {"answers": ["ja"]}}}):
        assert not allows(schema, wrong, schema)


def test_the_nearest_language_is_taken() -> None:
    assert best_language(["zh-Hant", "zh"], "zh") == "zh"
    assert best_language([], "de") is None


def test_rounds_of_a_campaign_keep_their_languages() -> None:
    asked = {"id": "sleep", "text": "How long?", "answers": {"number": {"low": 0, "high": 24, "unit": "hours"}}}
    draft = {
        **{
            key: DRAFT[key] for key in ("name", "owner", "purpose", "opens", "expires", "epsilon", "people", "language")
        },
        "questions": [asked],
        "campaign": {"kind": "narrowing"},
        "translations": {
            "de": {"name": "Schlaf", "purpose": "Wozu?", "questions": {"sleep": {"text": "Wie?", "unit": "Stunden"}}}
        },
    }
    assert Survey.from_draft(draft).texts("de")["questions"]["sleep"]["unit"] == "Stunden"

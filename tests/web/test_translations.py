"""Translations in the browser: one fingerprint, the same reports whatever the language, and the same differences."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from deniable.protocols import registered
from deniable.surveys import Question, Survey
from deniable.surveys.diff import diff
from deniable.surveys.translations import own_texts, positions
from tests.surveys.translated import ANSWERS, DRAFT, GERMAN, translated
from tests.web.test_node import WEB, run, tool


def node(script: str) -> Any:
    """What a script prints that has the SDK, the words of the page and surveys by their canonical bytes."""
    head = f"""
      import {{ Survey, fingerprint, surveyChanges }} from "{(WEB / "deniable.js").as_uri()}";
      import {{ documentIn, inLanguage }} from "{(WEB / "pages" / "translated.js").as_uri()}";
      import {{ Recorder }} from "{(WEB / "pages" / "rehearsal.js").as_uri()}";
      import {{ steps }} from "{(WEB / "pages" / "story.js").as_uri()}";
      import {{ device, hashed }} from "{(WEB / "test" / "support.js").as_uri()}";
      import * as words from "{(WEB / "pages" / "words.js").as_uri()}";
      const read = async (text, pinned) => {{
        const bytes = new TextEncoder().encode(text);
        return Survey.fromBytes(bytes, pinned ?? (await fingerprint("survey", bytes)));
      }};
      const seeded = (seed) => {{
        let block = 0;
        return new Recorder((bytes) => bytes.set(hashed(seed, block++)), 32);
      }};
      /** The report of an answer with the coins of a seed, and what is told of it. */
      const told = ({{ protocol }}, spec, value, seed) => {{
        const bits = seeded(seed);
        const report = protocol.privatize(value, bits);
        const lines = steps({{ protocol }}, spec, value, report, bits.draws);
        return [[...report], lines.map(({{ text, outcome }}) => `${{text}} ${{outcome}}`)];
      }};
    """
    done = run(tool("node"), "--input-type=module", "--eval", head + script)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def literal(survey: Survey) -> str:
    return json.dumps(survey.canonical.decode())


def test_reports_do_not_depend_on_the_language() -> None:
    survey = translated()
    found = node(f"""
      const survey = await read({literal(survey)}, "{survey.fingerprint}");
      const german = survey.in("de-AT");
      const report = (values) => ({{ id, protocol }}) => [...protocol.privatize(values[id], seeded(7))];
      const reports = (one, values) => one.questions.map(report(values));
      console.log(JSON.stringify({{
        languages: survey.languages,
        spoken: [survey.spoken, german.spoken, german.in("en").spoken, survey.in("fr").spoken],
        own: reports(survey, {json.dumps(ANSWERS)}),
        german: reports(german, {json.dumps(GERMAN)}),
        original: survey.original({json.dumps(GERMAN)}, "de"),
        same: [german.fingerprint, german.epsilon, german.reportBytes],
        texts: [german.name, german.terms.purpose, ...german.questions.map(({{ text }}) => text)],
      }}));
    """)
    texts = survey.texts("de")
    assert found["languages"] == ["en", "ar", "de"], "as canonical JSON has them, its own first"
    assert found["spoken"][:2] == ["en", "de"]
    assert found["spoken"][3] == "en"
    assert found["own"] == found["german"]
    assert found["original"] == ANSWERS
    assert found["same"] == [survey.fingerprint, "6", survey.report_bytes]
    asked = [texts["questions"][question.id]["text"] for question in survey]
    assert found["texts"] == [texts["name"], texts["purpose"], *asked]


def test_a_client_takes_answers_in_a_language_of_the_survey() -> None:
    found = node(f"""
      const german = {json.dumps(GERMAN)};
      const tried = async (language) => {{
        const {{ client, server }} = await device(JSON.parse({literal(translated())}));
        const answered = client.answer(german, {{ language }});
        const said = await answered.then(({{ state }}) => state, ({{ message }}) => message);
        return [said, server.bodies.length];
      }};
      console.log(JSON.stringify([await tried("de"), await tried(null)]));
    """)
    assert found[0] == ["sent", 1]
    assert found[1][1] == 0
    assert 'question "smoke"' in found[1][0]
    assert "nein" not in found[1][0], "a refusal does not repeat the answer"


def examples() -> list[Survey]:
    """A translated survey of every kind of protocol that has texts: each text with a mark before it."""

    def marked(texts: Any) -> Any:
        if isinstance(texts, str):
            return f"de {texts}"
        return (
            [marked(one) for one in texts]
            if isinstance(texts, list)
            else {key: marked(one) for key, one in texts.items()}
        )

    made = []
    for name, kind in sorted(registered().items()):
        example = next((one for one in kind.examples() if one.domain.texts and one.traits.local), None)
        if not kind.__module__.startswith("deniable.") or example is None:
            continue
        try:
            survey = Survey(name, [Question("it", "What?", example)])
        except ValueError:
            continue
        made.append(replace(survey, language="en", translations={"de": marked(own_texts(survey))}))
    return made


def test_every_kind_is_told_in_the_language_of_the_reader() -> None:
    """The same steps for the same coins, and no text of the survey is left as it was."""
    surveys, answers = examples(), []
    for survey in surveys:
        answers.append(survey["it"].protocol.domain.example)
    assert len(surveys) > 20
    given = json.dumps([[survey.canonical.decode(), answer] for survey, answer in zip(surveys, answers, strict=True)])
    found = node(f"""
      /** The answer in the other texts: every text of it with its mark. */
      const shown = (value) => {{
        if (typeof value === "string") return `de ${{value}}`;
        if (Array.isArray(value)) return value.map(shown);
        if (typeof value !== "object") return value;
        return Object.fromEntries(Object.entries(value).map(([key, one]) => [`de ${{key}}`, shown(one)]));
      }};
      const all = [];
      for (const [text, answer] of {given}) {{
        const survey = await read(text);
        const spec = JSON.parse(text).questions[0].protocol;
        const [own, german] = [survey, survey.in("de")].map(({{ questions }}) => questions[0]);
        all.push([told(own, spec, answer, 3), told(german, spec, shown(answer), 3)]);
      }}
      console.log(JSON.stringify(all));
    """)
    for survey, ((report, steps), (other, german)) in zip(surveys, found, strict=True):
        assert report == other, survey.name
        assert len(steps) == len(german), survey.name
        quoted = set(re.findall("“([^”]*)”", " ".join(german)))
        left = quoted & {text for _, text in positions(own_texts(survey))}
        assert left == set(), survey.name


@pytest.mark.parametrize(
    "path",
    [
        ("name",),
        ("questions", "smoke", "text"),
        ("questions", "smoke", "answers", 1),
        ("questions", "sleep", "unit"),
        ("questions", "you", "parts", "age", "name"),
        ("questions", "you", "parts", "home", "answers"),
    ],
)
def test_an_incomplete_translation_is_refused_by_the_browser(path: tuple[Any, ...]) -> None:
    """Python would not write it, so it is written past Python."""
    spec = json.loads(translated().canonical)
    place = spec["translations"]["de"]
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    text = json.dumps(json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
    (kind, message) = node(f"""
      const refused = ({{ kind, message }}) => [kind, message];
      console.log(JSON.stringify(await read({text}).then(() => ["read", ""], refused)));
    """)
    assert kind == "spec"
    assert "translations.de" in message


def test_python_and_the_browser_see_the_same_differences() -> None:
    one = translated()
    draft = deepcopy(DRAFT)
    draft["translations"]["de"]["questions"]["smoke"]["answers"] = ["jawohl", "nein"]
    draft["translations"]["de"]["questions"]["you"]["parts"]["age"]["name"] = "Jahre"
    two = Survey.from_draft(draft)
    none = replace(one, language=None, translations={})
    fewer = replace(one, translations={"de": one.translations["de"]})
    pairs = [(one, two), (none, one), (one, fewer), (one, one)]
    given = json.dumps([[before.canonical.decode(), after.canonical.decode()] for before, after in pairs])
    found = node(f"""
      const all = [];
      for (const [before, after] of {given}) all.push(surveyChanges(await read(before), await read(after)));
      console.log(JSON.stringify(all));
    """)
    assert len(found[0]) == 2
    for (before, after), changes in zip(pairs, found, strict=True):
        said = [[change.what, str(change.before), str(change.after), change.privacy] for change in diff(before, after)]
        assert [[change["what"], change["before"], change["after"], change["privacy"]] for change in changes] == said


def test_results_are_named_in_the_language_of_the_reader() -> None:
    """By the question that a document is about, and by the part of a record."""
    survey = translated()
    rows = {
        "smoke": ("", ["yes", "no"], ["ja", "nein"]),
        "drink": ("", ["never", 7, "no answer"], ["nie", 7, "keine Angabe"]),
        "apps": ("", ["mail", "mail & maps"], ["Post", "Post & Karten"]),
        "you": ("home", ["town", "country"], ["Stadt", "Land"]),
    }
    documents = [
        {"id": id, "part": part, "sections": [{"rows": [{"label": label} for label in labels]}], "winner": None}
        for id, (part, labels, _) in rows.items()
    ]
    found = node(f"""
      const survey = await read({literal(survey)});
      await words.speak("de");
      const labels = (one) => documentIn(survey, one).sections[0].rows.map(({{ label }}) => label);
      const named = {json.dumps(documents)}.map(labels);
      await words.speak("en");
      console.log(JSON.stringify([named, inLanguage(survey).spoken]));
    """)
    assert found[0] == [labels for _, _, labels in rows.values()]
    assert found[1] == "en"


def test_strata_are_named_in_the_language_of_the_reader() -> None:
    texts = {
        "name": "n",
        "purpose": "p",
        "strata": {"land": {"name": "Land", "answers": ["Deutschland", "Frankreich"]}},
        "questions": {"smoke": {"name": "Rauchen", "text": "Rauchen Sie?", "answers": ["ja", "nein"]}},
    }
    keys = ("name", "owner", "purpose", "opens", "expires", "epochs", "epsilon", "people", "language")
    draft = {key: DRAFT[key] for key in keys} | {
        "strata": {"land": ["de", "fr"]},
        "questions": [DRAFT["questions"][0]],
        "translations": {"de": texts},
    }
    survey = Survey.from_draft(draft)
    found = node(f"""
      const {{ protocol }} = (await read({literal(survey)})).in("de").questions[0];
      const value = {{ Land: "Frankreich", Rauchen: "nein" }};
      const spec = JSON.parse({literal(survey)}).questions[0].protocol;
      const [[stratum], lines] = told({{ protocol }}, spec, value, 1);
      const names = protocol.strata.map(({{ name }}) => name);
      console.log(JSON.stringify([protocol.clear, names, stratum, lines.join(" ")]));
    """)
    assert found[:3] == [["Land"], ["Deutschland", "Frankreich"], 1]
    assert "Frankreich" in found[3]

"""Every language has every sentence with the same facts, each is used, and Python and the browser fill them alike."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from deniable.words import HERE, LANGUAGES, Entry, Figure, Joined, Words, catalogue, duration, plain, word
from tests.web.test_node import WEB, run, tool
from tests.web.vectors import stories

ROOT = Path(__file__).parents[2]
ENGLISH = catalogue("en").entries
PLACE = re.compile(r"\{([A-Za-z][a-z]*)(?::([a-z]+))?\}")
SIGNS = ("number.group", "number.decimal", "language.direction", "language.name", "language.plural", "list.comma")
"""What a language says about itself: Python reads these, and the browser mostly asks `Intl`."""


def texts(entry: Entry) -> list[str]:
    return [entry] if isinstance(entry, str) else list(entry.values())


def names(text: str) -> set[str]:
    return {name[0].lower() + name[1:] for name, _ in PLACE.findall(text)}


def faults(entries: Mapping[str, Entry]) -> Iterator[str]:
    """What is wrong with a language, compared with English."""
    yield from (f"{id} is missing" for id in ENGLISH.keys() - entries.keys())
    yield from (f"{id} is unknown" for id in entries.keys() - ENGLISH.keys())
    for id in ENGLISH.keys() & entries.keys():
        wanted = set[str]().union(*map(names, texts(ENGLISH[id])))
        if set[str]().union(*map(names, texts(entries[id]))) != wanted:
            yield f"{id} has other parameters"
        if any(set("{}") & set(PLACE.sub("", text)) for text in texts(entries[id])):
            yield f"{id} has a brace that is no parameter"
        if not isinstance(entries[id], str) and "other" not in entries[id]:
            yield f"{id} has no form for other numbers"
        if not all(text.strip() for text in texts(entries[id])):
            yield f"{id} is empty"


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_is_missing_and_the_parameters_agree(language: str) -> None:
    assert list(faults(catalogue(language).entries)) == []


def test_a_language_with_a_fault_is_found() -> None:
    german = dict(catalogue("de").entries)
    german.pop("page.send")
    german["page.look"] = "{what}"
    german["page.throw"] = "{Münze}"
    german["page.new"] = "neu"
    found = {"page.send is missing", "page.look has other parameters", "page.new is unknown"}
    assert set(faults(german)) == found | {"page.throw has a brace that is no parameter"}


def test_ids_stand_in_each_file_once_and_in_the_same_order() -> None:
    for language in LANGUAGES:
        written = json.loads((HERE / f"{language}.json").read_text(encoding="utf-8"), object_pairs_hook=list)
        assert [id for id, _ in written] == list(ENGLISH), "a translator finds what is next to what"


# -- what the code asks for ------------------------------------------------------------------------------


def sources() -> Iterator[str]:
    for path in (*(WEB / "pages").glob("*.js"), *(WEB / "pages").glob("*.html")):
        yield path.read_text(encoding="utf-8")
    for path in (ROOT / "src" / "deniable").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "deniable.words" in text:
            yield text


def patterns() -> list[re.Pattern[str]]:
    """Every text of the code that could be an id, with anything where it is put together."""
    found = set()
    for text in sources():
        found |= set(re.findall(r'"([a-z][A-Za-z0-9.]*)"', text))
        found |= {re.sub(r"\$\{.*\}", "*", one) for one in re.findall(r"`([a-z][^`\s]*\$\{[^`]*)`", text)}
        found |= {re.sub(r"\{.*\}", "*", one) for one in re.findall(r'f"([a-z][^"\s]*\{[^"]*)"', text)}
    return [
        re.compile(re.escape(one).replace(r"\*", ".*")) for one in found if "*" not in one or "." in one.split("*")[0]
    ]


def test_every_sentence_is_used() -> None:
    known = [*patterns(), *completed()]
    used = {id for id in ENGLISH if any(pattern.fullmatch(id) for pattern in known)}
    assert set(ENGLISH) - used - set(SIGNS) == set()
    assert not any(pattern.fullmatch("page.nothere") for pattern in known), "the check can fail"


def completed() -> list[re.Pattern[str]]:
    """Ids that a function completes: both or all of something, and what the numbers of a survey are about."""
    text = "".join(sources())
    found = [f"{re.escape(id)}[.](both|all)" for id in re.findall(r'either\("([a-z.]+)"', text)]
    return [re.compile(one) for one in (*found, *(f"{id}[.].+" for id in re.findall(r'about\("([a-z]+)"', text)))]


def test_every_sentence_that_the_code_asks_for_exists() -> None:
    asked = {
        id for text in sources() for id in re.findall(r'\b(?:say|word|rich|coinStep)\("([a-z][A-Za-z0-9.]*)"', text)
    }
    asked |= {id for text in sources() for id in re.findall(r'data-(?:word|label)="([a-z.]+)"', text)}
    assert len(asked) > 300
    assert asked - set(ENGLISH) == set()


# -- filling ---------------------------------------------------------------------------------------------

FACTS = [
    *(word("duration.day", n=n) for n in (0, 1, 2, 1000)),
    *(duration(seconds) for seconds in (1, 60, 5400, 7200, 86_400, 7 * 86_400)),
    *(word("right.bound", n=Figure(digits)) for digits in ("0.1", "1", "99", "1234567.25")),
    word("terms.shown", n=Figure("1")),
    word("terms.shown", n=Figure("1.5")),
    word("changes", epsilon=Figure("1234.5", grouped=False)),
    word("device.repeats", here=word("here.device")),
    word("storage", here=word("here.browser"), n=12_345),
    word("line.clear", names=Joined(["a"]), owner="x"),
    word("line.clear", names=Joined(["a", "b"]), owner="x"),
    word("line.clear", names=Joined([word("often.once"), "b", "c"], "; "), owner="x"),
    word("terms.often", n=3, length=duration(7 * 86_400)),
    word("report.node", name=word("level.ranges", n=4), report="x"),
    *(word("quoted", text=text) for text in ("yes", "3 km", "نعم", "שלום", "42", "🙂", "\u2068yes\u2069 x", "ok نعم")),
]
NUMBERS = [
    *map(str, (*range(1001), 1_000_000, 10_003, 123_456_789)),
    *(
        "-1",
        "-3",
        "0.0",
        "0.1",
        "1.0",
        "1.5",
        "2.0",
        "2.00",
        "3.0",
        "3.5",
        "10.25",
        "11.0",
        "99.9",
        "103.0",
        "1e9",
        "x",
    ),
]
MOMENTS = (0, 1_793_491_200, 1_793_525_400, 1_798_761_599)


@pytest.mark.parametrize("language", LANGUAGES)
def test_python_and_the_browser_fill_alike(language: str) -> None:
    script = f"""
      import * as words from "{(WEB / "pages" / "words.js").as_uri()}";
      import {{ moment }} from "{(WEB / "pages" / "format.js").as_uri()}";
      await words.speak("{language}");
      const digits = {{ year: "numeric", month: "2-digit", day: "2-digit" }};
      const intl = new Intl.DateTimeFormat("{language}-u-nu-latn", {{ timeZone: "UTC", ...digits }});
      console.log(JSON.stringify({{
        texts: {json.dumps([plain(fact) for fact in FACTS])}.map((fact) => words.text(fact)),
        dates: {list(MOMENTS)}.map(moment),
        intl: {list(MOMENTS)}.map((seconds) => intl.format(1000 * seconds)),
        signs: [new Intl.NumberFormat("{language}-u-nu-latn").format(1234567.5), words.text(words.figure("1234567.5"))],
        plurals: {json.dumps(NUMBERS)}.map(words.plural),
        names: words.LANGUAGES,
      }}));
    """
    done = run(tool("node"), "--input-type=module", "--eval", script)
    assert done.returncode == 0, done.stderr
    found, words = json.loads(done.stdout), catalogue(language)
    assert found["texts"] == [words.text(fact) for fact in FACTS]
    assert found["dates"] == [words.date(seconds) for seconds in MOMENTS]
    assert found["signs"] == [words.text(Figure("1234567.5"))] * 2, "Python writes numbers as the browser's Intl does"
    assert found["plurals"] == [words.plural(digits) for digits in NUMBERS], "the rule of the file is that of Intl"
    assert found["names"] == {one: catalogue(one).entries["language.name"] for one in LANGUAGES}
    if language != "en":  # English dates are those of ISO 8601, in every country
        assert [date.split(" ")[0].rstrip(",") for date in found["dates"]] == found["intl"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_python_and_the_browser_tell_the_same_stories(language: str) -> None:
    script = f"""
      import {{ loadProtocol }} from "{(WEB / "deniable.js").as_uri()}";
      import {{ Recorder }} from "{(WEB / "pages" / "rehearsal.js").as_uri()}";
      import {{ steps }} from "{(WEB / "pages" / "story.js").as_uri()}";
      import * as words from "{(WEB / "pages" / "words.js").as_uri()}";
      import {{ answer, hashed, vectors }} from "{(WEB / "test" / "support.js").as_uri()}";
      await words.speak("{language}");
      const told = vectors.stories.map(({{ spec, answer: written, seed }}) => {{
        const [protocol, value] = [loadProtocol(spec), answer(written)];
        let block = 0;
        const bits = new Recorder((bytes) => bytes.set(hashed(seed, block++)), 32);
        const report = protocol.privatize(value, bits);
        return steps({{ protocol }}, spec, value, report, bits.draws).map(({{ text }}) => text);
      }});
      console.log(JSON.stringify(told));
    """
    done = run(tool("node"), "--input-type=module", "--eval", script)
    assert done.returncode == 0, done.stderr
    last = catalogue(language).say("story.says")
    found = [[text for text in texts if text != last] for texts in json.loads(done.stdout)]
    assert len(found) > 100
    assert found == [story["texts"] for story in stories(language)]


def test_a_sentence_without_its_facts_is_an_error() -> None:
    with pytest.raises(KeyError):
        catalogue().say("survey.by", owner="x")
    with pytest.raises(KeyError):
        catalogue().say("page.nothere")
    with pytest.raises(KeyError):
        catalogue("xx")


@pytest.mark.parametrize(
    ("language", "rule"),
    [
        ("fr", "one: i = 0,1; many: i != 0 and i % 1000000 = 0 and v = 0"),
        ("pl", "one: i = 1 and v = 0; few: v = 0 and i % 10 = 2..4 and i % 100 != 12..14; many: v = 0"),
        ("is", "one: t = 0 and i % 10 = 1 and i % 100 != 11 or t % 10 = 1 and t % 100 != 11"),
    ],
)
def test_a_language_brings_its_plural_rule_in_the_syntax_of_cldr(language: str, rule: str) -> None:
    numbers = [digits for digits in NUMBERS if "e" not in digits]
    select = "(text) => new Intl.PluralRules(language, decimals(text)).select(Number(text))"
    script = f"""
      const language = "{language}";
      const decimals = (text) => ({{ minimumFractionDigits: text.split(".")[1]?.length ?? 0 }});
      console.log(JSON.stringify({json.dumps(numbers[:-1])}.map({select})));
    """
    done = run(tool("node"), "--input-type=module", "--eval", script)
    words = Words(language, {"language.plural": rule})
    assert json.loads(done.stdout) == [words.plural(digits) for digits in numbers[:-1]]
    with pytest.raises(ValueError, match="as in CLDR"):
        Words(language, {"language.plural": "one: n is 1"}).plural("1")


def test_forms_and_capitals() -> None:
    entries: dict[str, Entry] = {
        "who": {"other": "die Katze", "other:dat": "der Katze"},
        "many": {"one": "{n} Katze", "other": "{n} Katzen", "one:dat": "einer Katze"},
        "said": "{Who} schläft bei {who:dat}, {cats:dat}, {who:gen}.",
        "number.group": ".",
        "language.plural": "one: i = 1 and v = 0",
    }
    said = Words("de", entries).say("said", who=word("who"), cats=word("many", n=1))
    assert said == "Die Katze schläft bei der Katze, einer Katze, die Katze."

"""The life of a report in words: its probabilities are those of the law. Shared vectors bind the browser's words."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deniable import protocols
from deniable.domains import Integers, Interval
from deniable.errors import DomainError, ReportError
from deniable.protocols import GRR, LGRR, OUE, Protocol, Ranges, SubsetSelection, Window, registered
from deniable.protocols.traits import says
from deniable.randomness import Simulation, exhaust
from deniable.words import catalogue, sentence, word

OURS = {name: kind for name, kind in registered().items() if kind.__module__.startswith("deniable.")}


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_protocol_tells_its_own_steps(name):
    assert OURS[name].story is not Protocol.story
    for example in OURS[name].examples():
        answer = example.domain.example
        *steps, said = example.explain(answer, example.privatize([answer]).to_bytes())
        assert steps
        assert said.text == "What the report says:"
        assert said.outcome


def stated(protocol, answer):
    """The probabilities in the steps, as shares."""
    text = " ".join(step.text for step in protocol.explain(answer, protocol.privatize([answer]).to_bytes()))
    return [float(number) / 100 for number in re.findall(r"([0-9.]+)\N{NO-BREAK SPACE}%", text)]


def test_the_stated_probabilities_are_those_of_the_bytes():
    # Of GRR a kept answer comes once more by chance, of a bitmap each bit is what it is: from the enumerated law.
    grr = GRR(["a", "b", "c"], epsilon=1)
    (keep,) = stated(grr, "a")
    law = grr.channel()
    assert keep + (1 - keep) / 3 == pytest.approx(float(law.probability("a", "00")), abs=1e-4)
    oue = OUE(["a", "b", "c"], epsilon=1)
    other, own = stated(oue, "a")
    bits = {output: int(str(output), 16) for output in oue.channel().outputs}
    chances = [
        sum(float(oue.channel().probability("a", output)) for output, byte in bits.items() if byte >> place & 1)
        for place in range(3)
    ]
    assert chances == pytest.approx([own, other, other], abs=1e-4)
    subset = SubsetSelection(5, epsilon=1, subset_size=2)
    assert stated(subset, 0) == pytest.approx([float(subset.p)], abs=1e-4)
    window = Window(Interval(0, 10), 1, 3, 1)
    assert stated(window, 6.0) == pytest.approx([0.2, float(window.keep)], abs=1e-4)


def test_each_stage_has_its_own_probability():
    lgrr = LGRR(["a", "b", "c"], first=1, forever=2)
    kept, sent = stated(lgrr, "a")
    states = exhaust(lambda bits: lgrr.permanent("a", bits)).law
    assert kept + (1 - kept) / 3 == pytest.approx(float(states[bytes([0])]), abs=1e-4)
    reports = exhaust(lambda bits: lgrr.report_from(bytes([0]), bits)).law
    assert sent + (1 - sent) / 3 == pytest.approx(float(reports[bytes([0])]), abs=1e-4)


def test_the_range_that_is_named_holds_the_number():
    ranges = Ranges(Integers(0, 3), 1, fanout=2)
    said = {ranges.explain(2, ranges.privatize([2]).to_bytes())[1].text for _ in range(40)}  # one level: 2e-12
    assert {re.search(r"Of (\d) ranges.* lies in range (\d)\.", text).groups() for text in said} == {
        ("2", "1"),
        ("4", "2"),
    }


def test_what_is_no_answer_or_no_report_is_refused():
    grr = GRR(["a", "b", "c"], epsilon=1)
    with pytest.raises(ReportError, match="no report of this protocol"):
        grr.explain("a", bytes([7]))
    with pytest.raises(ReportError, match="1 bytes"):
        grr.explain("a", bytes(2))
    with pytest.raises(DomainError):
        grr.explain("z", bytes(1))


def test_a_report_that_speaks_for_several_answers_names_them():
    assert says(OUE(["a", "b", "c"], epsilon=1), bytes([5])) == "it speaks for a, c"
    assert says(OUE(["a", "b", "c"], epsilon=1), bytes([0])) == "it speaks for no answer"
    assert says(OUE(40, epsilon=1), bytes([255] * 5)).endswith("and 28 more")


# -- languages -------------------------------------------------------------------------------------------

MOST_WORDS = 6
PLACES = sorted(Path(inspect.getfile(protocols)).parent.rglob("*.py"))


def sentences(source: str) -> Iterator[str]:
    """Texts of more than six words in the code that tells stories: `story`, and what returns facts of the catalogue."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        returned = "" if function.returns is None else ast.unparse(function.returns)
        if function.name == "story" or re.search(r"\b(Fact|Word|Joined)\b", returned):
            about = ast.get_docstring(function, clean=False)
            for part in ast.walk(function):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value != about:
                    yield from [part.value] if len(part.value.split()) > MOST_WORDS else []


def test_sentences_of_stories_stand_in_the_catalogue_only():
    texts = [path.read_text(encoding="utf-8") for path in PLACES]
    assert sum("def story(" in text for text in texts) > 25
    assert [said for text in texts for said in sentences(text)] == []


def test_a_sentence_in_a_story_is_found():
    said = "One of them is drawn, each with the same probability"
    told = f'def story(self):\n    """About what it is that chance does here."""\n    return [f"{said} {{1}}."]'
    helper = f"class A:\n    def _told(self) -> Sequence[Fact]:\n        return ['{said}']"
    assert [one.strip() for one in sentences(told)] == [said]
    assert list(sentences(helper)) == [said]
    assert list(sentences(helper.replace("Sequence[Fact]", "str"))) == []


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_step_is_told_in_german(name):
    for example in OURS[name].examples():
        answer = example.domain.example
        report = example.report(answer, Simulation(1))
        english, german = (example.explain(answer, report, language=language) for language in ("en", "de"))
        assert len(english) == len(german)
        assert not {step.text for step in english} & {step.text for step in german}


def test_a_language_writes_its_own_numbers():
    keep, replace, said = GRR(12_345, epsilon=1).explain(0, bytes(2), language="de")
    assert "0,01\N{NO-BREAK SPACE}%" in keep.text
    assert "12.345 Antworten" in replace.text
    assert said.text == catalogue("de").say("story.says")
    with pytest.raises(KeyError):
        GRR(2, epsilon=1).explain(0, bytes(1), language="xx")


def test_what_a_report_says_is_told_in_german():
    assert says(OUE(["a", "b", "c"], epsilon=1), bytes([5]), "de") == "sie spricht für a, c"
    assert says(OUE(["a", "b", "c"], epsilon=1), bytes([0]), "de") == "sie spricht für keine Antwort"
    assert says(OUE(40_000, epsilon=1), bytes([255] * 5000), "de") == "ff" * 5000
    assert says(OUE(4_000, epsilon=1), bytes([255] * 500), "de").endswith("und 3.988 weitere")
    ranges = Ranges(Integers(0, 3), 1, fanout=2)
    said = ranges.explain(2, ranges.report(2, Simulation(1)), language="de")[-1]
    assert re.match("[24] Bereiche: ", said.outcome)


class Plain(GRR):
    """A kind of another package, which has its sentences in one language only."""

    def story(self, value, encoded, report):
        return ["A die is thrown.", *super().story(value, encoded, report)]


class Polyglot(GRR):
    """One that brings its sentences along in several languages."""

    def story(self, value, encoded, report):
        texts = {"en": {"one": "{n} die is thrown.", "other": "{n} dice are thrown."}, "de": "{n} Würfel: {what}."}
        return [sentence(texts, n=1200, what=word("coin.keep")), sentence({"fr": "Un dé."})]


def test_a_stranger_may_tell_in_plain_texts_or_in_languages_of_its_own():
    def told(kind, language):
        return [step.text for step in kind(["a", "b"], 1).explain("a", bytes(1), language=language)]

    for language in ("en", "de"):
        first, keep, _, _ = told(Plain, language)
        assert first == "A die is thrown."
        assert keep == told(GRR, language)[0]
    assert told(Polyglot, "en")[:2] == ["1,200 dice are thrown.", "Un dé."]
    assert told(Polyglot, "de")[:2] == [f"1.200 Würfel: {catalogue('de').say('coin.keep')}.", "Un dé."]


def test_a_kind_without_a_story_is_told_in_each_language():
    (step,) = Protocol.story(GRR(["a", "b"], 1), None, None, b"")
    assert catalogue("en").text(step) == (
        "GRR changes the answer by chance: no report is more than 2.718 times as likely under one answer as under "
        "another."
    )
    assert "2,718-mal" in catalogue("de").text(step)


def test_the_catalogue_is_read_when_it_is_needed():
    code = """
from deniable import GRR
from deniable.words import catalogue
protocol = GRR(["a", "b"], 1)
report = protocol.report("a")
before = catalogue.cache_info().currsize
protocol.explain("a", report)
print(before, catalogue.cache_info().currsize)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1"]

"""Texts of surveys: what people cannot see is refused, and both languages refuse the same."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import unicodedata
from collections.abc import Iterator

import pytest

from deniable.domains import Strings
from deniable.errors import SpecError
from deniable.protocols import CMS, GRR
from deniable.specs import REFUSED, is_refused, text_problem
from deniable.surveys import Question, Survey
from tests.web.test_node import WEB, tool


def every() -> Iterator[str]:
    return map(chr, range(sys.maxunicode + 1))


# Default_Ignorable_Code_Point, which Python's unicodedata does not have, and five more that are drawn as nothing or as
# a mark of damage.
IGNORABLE = (
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010), 0x3164),
    *(*range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0, *range(0xFFF0, 0xFFF9)),
    *(*range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)),
)
EMPTY = (0x2800, 0xFFFC, 0xFFFD, 0x16FE4, 0x1D159)
HIDDEN = {chr(code) for code in (*IGNORABLE, *EMPTY)}


def hidden(character: str) -> bool:
    return (unicodedata.category(character)[0] in "CZ" and character != " ") or character in HIDDEN


def test_the_table_is_the_rule() -> None:
    allowed = {character for character in every() if not is_refused(character)}
    seen = {character for character in every() if not hidden(character)}
    # A newer Python knows more characters; they stay refused, for older ones cannot tell their forms.
    assert allowed <= seen
    if unicodedata.unidata_version == "14.0.0":
        assert allowed == seen
    assert len(allowed) > 140_000


NODE = """
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
const { textProblem } = await import(process.argv[1]);
const problems = JSON.parse(readFileSync(0, "utf8")).map((text) => textProblem(text));
const forms = [];
const ends = [];
let before = false;
for (let code = 0; code <= 0x10ffff; code++) {
  const character = String.fromCodePoint(code);
  const refused = textProblem(`a${character}b`) !== null;
  if (refused !== before) ends.push(code);
  before = refused;
  if (!refused) forms.push(`${character}\\0a${character}\\u0301\\u0323`.normalize("NFC"));
}
console.log(JSON.stringify({ ends, problems, forms: createHash("sha256").update(forms.join()).digest("hex") }));
"""


def drawn_texts() -> list[str]:
    chance = random.Random(5)
    letters = "\u06cc\u062e\u0627\u0631\u094d\u0915\u0937\u0dca\u0dbb\u00e9\U0001f600\U0001f3fd"
    alphabet = "a?  \u200c\u200d\ufe0f\u00a0\u0378" + letters
    return ["", *("".join(chance.choices(alphabet, k=chance.randint(1, 6))) for _ in range(5000))]


def test_javascript_refuses_the_same_of_all_code_points_and_says_the_same() -> None:
    texts = drawn_texts()
    script = (WEB / "deniable.js").as_uri()
    done = subprocess.run(
        [tool("node"), "--input-type=module", "-e", NODE, script],
        input=json.dumps(texts), capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    got = json.loads(done.stdout)
    ends, before, forms = [], False, []
    for code, character in enumerate(every()):
        refused = is_refused(character)
        if refused != before:
            ends.append(code)
        before = refused
        if not refused:
            forms.append(unicodedata.normalize("NFC", f"{character}\0a{character}\u0301\u0323"))
    assert got["ends"] == ends
    mine = [text_problem(text) for text in texts]
    assert got["problems"] == mine
    assert 100 < mine.count(None) < 4900
    # Whatever the versions of Unicode, what is allowed has one form: Node is newer than the oldest Python.
    assert got["forms"] == hashlib.sha256(",".join(forms).encode()).hexdigest()


def test_both_tables_are_one_text() -> None:
    source = (WEB / "deniable.js").read_text(encoding="utf-8")
    table = source.split("const REFUSED =")[1].split(";")[0]
    assert "".join(part for part in table.split('"')[1::2]) == REFUSED


@pytest.mark.parametrize(
    "text",
    [
        "Do you smoke?",
        "¿Fumas? Où ça? Straße 5 «ja»",
        "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian, as it is spelled
        "क्\u200dष, क्\u200cष",
        "ශ්\u200dරී ලංකා",
        "כן לא",
        "はい いいえ",
        "😀 👍🏽 🇩🇪 ❤ 1⃣",
    ],
)
def test_what_people_write_is_taken(text: str) -> None:
    assert text_problem(text) is None
    assert Question("q", text, GRR([text, "no"], 1)).text == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Do you\u200b smoke?", "U+200B at place 7: remove it"),
        ("Do you \u202esmoke?", "U+202E at place 8: remove it"),
        ("Do you \u2067smoke?", "U+2067"),
        ("smoke\ufe0f", "U+FE0F"),
        ("👨\u200d👩", "U+200D"),
        ("\U000e0067", "U+E0067"),
        ("line\nline", "U+000A"),
        ("tab\ttab", "U+0009"),
        ("a\u00a0b", "has the blank U+00A0 at place 2: write an ordinary blank"),
        ("a\u3000b", "ordinary blank"),
        ("a  b", "two blanks in a row at place 2"),
        (" a", "begins or ends with a blank"),
        ("a ", "begins or ends with a blank"),
        ("\ue000", "U+E000"),
        ("\u2028", "U+2028"),
        ("a\u3164b", "U+3164"),
        (
            "\u06a9\u0627\u0631\u200c\u0647\u0627",
            "U+200C",
        ),  # the letter before does not join
        ("ab\u200ccd", "U+200C"),
    ],
)
def test_what_people_do_not_see_is_refused_everywhere(text: str, why: str) -> None:
    problem = text_problem(text)
    assert problem is not None
    assert why in problem
    visible = GRR(["yes", "no"], 1)
    with pytest.raises(SpecError, match="the text of question 'q'"):
        Question("q", text, visible)
    with pytest.raises(SpecError, match="an answer or key of question 'q'"):
        Question("q", "Do you?", GRR(["yes", text], 1))
    with pytest.raises(SpecError, match="the name of a survey"):
        Survey(text, [Question("q", "Do you?", visible)])


def test_the_key_of_a_hash_hides_nothing_either() -> None:
    with pytest.raises(SpecError, match=r"an answer or key of question 'q' has .* U\+200B"):
        Question("q", "Which word?", CMS(Strings(64, 2, key="a\u200bb"), 1))

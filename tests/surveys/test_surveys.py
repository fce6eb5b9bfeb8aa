"""Surveys: identity, promises, strict reading, drafts and tallies.

`python -m tests.surveys.test_surveys` adds new surveys to the golden file. What stands in it must load for ever: a
changed entry breaks published surveys.
"""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable import exact
from deniable.domains import Categories, Integers, Strings
from deniable.errors import DeniableError, LabelError, MismatchError, NumberError, SpecError
from deniable.protocols import GRR, HCMS, LGRR, OLH, OUE, THE, SubsetSelection, Tally, registered
from deniable.randomness import Simulation
from deniable.surveys import Budget, Epochs, Longitudinal, Question, Survey, SurveyTally, Terms
from tests.surveys.rounds import rounds

GOLDEN = Path(__file__).parents[1] / "golden" / "surveys.json"

SMOKE = Question("smoke", "Do you smoke?", GRR(["yes", "no", "prefer not to say"], epsilon=1))
AGE = Question("age", "How old are you?", OLH(Integers(18, 99), epsilon="0.5"))
SURVEY = Survey("habits", [SMOKE, AGE])

PINNED = [
    SURVEY,
    Survey("Ümfrage №1", [Question("a-b_1", "Größe? (in cm)", OUE(Integers(100, 250), "1/3"))]),
    Survey("kinds", [Question("x", "?", GRR(Categories([1, "1", True], other="rest"), 2))]),
    Survey("words", [Question("w", "A word?", HCMS(Strings(cells=1024, key="words/w"), 4))]),
    Survey(
        "canteen",
        [Question("meat", "Do you eat meat?", GRR(["yes", "no"], epsilon=1))],
        Terms(
            "Acme",
            "to plan the canteen",
            Epochs(1_793_491_200, 86_400, early=1, late=2),
            Longitudinal("memoize", epochs=30, values=2),
            Budget("acme", Fraction(9, 2)),
            opens=1_793_491_200,
            expires=1_796_083_200,
            retention="reports",
            min_reports=50,
            replaces="0123456789abcdef" * 4,
        ),
    ),
    Survey(
        "two stages",
        [Question("meat", "Do you eat meat?", LGRR(["yes", "no"], first="1/2", forever=1))],
        Terms(
            "Acme",
            "to plan the canteen",
            Epochs(1_793_491_200, 86_400, early=1, late=2),
            Longitudinal("two-stage", 30, 2, Fraction(1, 2), Fraction(1)),
            Budget("acme", Fraction(2)),
            opens=1_793_491_200,
            expires=1_796_083_200,
        ),
    ),
    *rounds(),
    Survey("several", [Question("the", "?", THE(4, 1)), Question("subset", "?", SubsetSelection(100, 1))]),
]


def broken(**changes: Any) -> dict[str, Any]:
    return {**SURVEY.spec(), **changes}


def question(**changes: Any) -> dict[str, Any]:
    entry = {**SMOKE.spec(), **changes}
    return broken(questions=[{key: value for key, value in entry.items() if value is not ...}])


# -- identity ------------------------------------------------------------------------------------------


def golden() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return entries


@pytest.mark.parametrize("entry", golden() if GOLDEN.exists() else [], ids=lambda entry: entry["spec"]["name"])
def test_published_surveys_load_for_ever(entry: dict[str, Any]) -> None:
    survey = Survey.from_spec(entry["spec"])
    assert survey.fingerprint == entry["fingerprint"]
    assert survey.spec() == entry["spec"]
    assert str(survey.epsilon) == entry["epsilon"]


def test_every_pinned_survey_is_stored() -> None:
    assert {survey.fingerprint for survey in PINNED} <= {entry["fingerprint"] for entry in golden()}


def test_the_fingerprint_is_of_the_canonical_bytes() -> None:
    import hashlib

    assert hashlib.sha256(b"deniable-survey-v1\0" + SURVEY.canonical).hexdigest() == SURVEY.fingerprint
    assert json.loads(SURVEY.canonical) == SURVEY.spec()
    assert b" " not in SURVEY.canonical.replace(b"prefer not to say", b"").replace(b"Do you smoke?", b"").replace(
        b"How old are you?", b""
    )


@pytest.mark.parametrize(
    "other",
    [
        Survey("habits", [AGE, SMOKE]),
        Survey("Habits", [SMOKE, AGE]),
        Survey("habits", [SMOKE]),
        Survey("habits", [Question("smoke", "Do you smoke", SMOKE.protocol), AGE]),
        Survey("habits", [Question("smokes", SMOKE.text, SMOKE.protocol), AGE]),
        Survey("habits", [Question("smoke", SMOKE.text, GRR(SMOKE.protocol.domain, "1.01")), AGE]),
    ],
)
def test_whatever_changes_is_another_survey(other: Survey) -> None:
    assert other.fingerprint != SURVEY.fingerprint
    assert other != SURVEY


def test_the_same_survey_is_equal_and_can_be_copied() -> None:
    again = Survey("habits", (question for question in (SMOKE, AGE)))
    assert again == SURVEY
    assert hash(again) == hash(SURVEY)
    assert pickle.loads(pickle.dumps(SURVEY)) == copy.deepcopy(SURVEY) == SURVEY
    decomposed = Survey("Cafe\u0301", [SMOKE])
    assert decomposed.name == "Caf\u00e9"
    assert decomposed == Survey("Caf\u00e9", [SMOKE])


def test_white_space_and_order_of_keys_do_not_count(tmp_path: Path) -> None:
    turned = json.loads(json.dumps(SURVEY.spec(), sort_keys=True), object_pairs_hook=lambda p: dict(reversed(p)))
    path = tmp_path / "survey.json"
    path.write_text("\ufeff" + json.dumps(turned, indent=7), encoding="utf-8")
    assert Survey.load(path) == SURVEY


def test_access() -> None:
    assert SURVEY["age"] is AGE
    assert list(SURVEY) == [SMOKE, AGE]
    assert len(SURVEY) == 2
    assert SURVEY.source("age") == f"{SURVEY.fingerprint}/age"
    with pytest.raises(LabelError, match="there are smoke, age"):
        SURVEY["weight"]


# -- what it promises ----------------------------------------------------------------------------------


def test_levels_add_and_ratios_multiply_exactly() -> None:
    assert SURVEY.epsilon == Fraction(3, 2)
    assert SURVEY.ratio == SMOKE.protocol.ratio * AGE.protocol.ratio
    assert exact.exp_at_least(SURVEY.epsilon, SURVEY.ratio)
    assert not exact.exp_at_least(SURVEY.epsilon - Fraction(1, 10**9), SURVEY.ratio)
    assert SURVEY.realized_epsilon == pytest.approx(1.5, abs=1e-12)


# -- reading -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ([], 'it needs "kind": "survey"'),
        (SMOKE.protocol.spec(), 'it needs "kind": "survey"'),
        (broken(version=3), "surveys of version 3 are unknown here, only 1 and 2 are"),
        (broken(version=True), "surveys of version True"),
        (broken(version="1"), "surveys of version '1'"),
        (broken(owner="me"), "the survey has the unknown key 'owner'"),
        ({key: value for key, value in SURVEY.spec().items() if key != "name"}, "the survey misses name"),
        (broken(name="  "), "the name of a survey is empty"),
        (broken(name=3), "the name of a survey is text, not a int"),
        (broken(name="Cafe\u0301"), "form NFC"),
        (broken(questions=[]), "at least one question"),
        (broken(questions={}), '"questions" is not a list'),
        (broken(questions=[SMOKE.spec(), SMOKE.spec()]), "two questions have the id 'smoke'"),
        (broken(questions=["smoke"]), "question 1 is not an object"),
        (question(id="Smoke"), "a-z, 0-9, _ and -, not 'Smoke'"),
        (question(id=""), "not ''"),
        (question(id="a" * 65), "1 to 64 characters"),
        (question(id="a\n"), "a-z, 0-9"),
        (question(id=None), "not None"),
        (question(id=...), "question 1 misses id"),
        (question(text=""), "the text of question 'smoke' is empty"),
        (question(text=["?"]), "is text, not a list"),
        (question(protocol=...), "question 'smoke' misses protocol"),
        (question(epsilon="1"), "question 'smoke' has the unknown key 'epsilon'"),
        (question(protocol="GRR"), "question 'smoke': "),
        (question(protocol={**SMOKE.protocol.spec(), "protocol": "XYZ"}), "there is no protocol 'XYZ'"),
        (question(protocol={**SMOKE.protocol.spec(), "version": 9}), "version 9"),
        (question(protocol={**SMOKE.protocol.spec(), "epsilon": "2/2"}), "canonical form"),
        (question(protocol={**SMOKE.protocol.spec(), "epsilon": 1}), "epsilon stands in a spec as text"),
    ],
)
def test_what_is_not_a_survey(spec: Any, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        Survey.from_spec(spec)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\xff\xfe", "not UTF-8"),
        (b"{", "not JSON"),
        (b'{"kind": "survey", "kind": "survey"}', "the key 'kind' twice"),
        (b'{"kind": NaN}', "NaN"),
        (b"[" * 100_000, "too deep"),
        (b'{"kind": ' + b"1" * 10_000 + b"}", "too long"),
        (b'{"kind": "tally"}', 'it needs "kind": "survey"'),
    ],
)
def test_files_that_are_no_survey(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "survey.json"
    path.write_bytes(content)
    with pytest.raises(SpecError) as refused:
        Survey.load(path)
    assert message in str(refused.value)
    assert "survey.json" in str(refused.value)


VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    2**53,
    2**70,
    1.5,
    float("nan"),
    "",
    "x",
    "1/0",
    "\ud800",
    [],
    [[]],
    {},
    {"a": 1},
]


def everywhere(document: Any, value: Any) -> Iterator[Any]:
    """The document with one value, anywhere inside, replaced."""
    yield value
    if isinstance(document, dict | list):
        for place in document if isinstance(document, dict) else range(len(document)):
            for inner in everywhere(document[place], value):
                changed = copy.copy(document)
                changed[place] = inner
                yield changed


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_whatever_is_damaged_is_refused_or_harmless(value: Any) -> None:
    documents: list[tuple[Any, Callable[[Any], Any]]] = [
        *((survey.spec(), Survey.from_spec) for survey in PINNED),
        (draft(parameters={}, other="else", people=5), Survey.from_draft),
        (tallies(1, n=4).spec(), SurveyTally.from_spec),
    ]
    for document, read in documents:
        refused = 0
        for changed in everywhere(document, value):
            try:
                read(changed)
            except DeniableError:
                refused += 1
        assert refused > 5


def test_what_cannot_be_built() -> None:
    with pytest.raises(SpecError, match="needs a protocol, not a str"):
        Question("a", "b", "GRR")  # type: ignore[arg-type]


# -- drafts --------------------------------------------------------------------------------------------


def draft(**changes: Any) -> dict[str, Any]:
    entry = {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"], "epsilon": "1", "protocol": "GRR"}
    kept = {key: value for key, value in {**entry, **changes}.items() if value is not ...}
    return {"name": "habits", "questions": [kept]}


def test_drafts_are_filled_in() -> None:
    made = Survey.from_draft(
        {
            "name": "habits",
            "epsilon": 0.5,
            "protocol": "OUE",
            "questions": [
                {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"]},
                {"id": "age", "text": "Age?", "answers": {"low": 18, "high": 99}, "protocol": "OLH", "epsilon": "1"},
                {"id": "pet", "text": "Pet?", "answers": ["cat", "dog"], "other": "another"},
                {"id": "word", "text": "Word?", "answers": "text", "protocol": "HCMS", "epsilon": 4},
                {"id": "set", "text": "?", "answers": [1, True], "protocol": "OLH", "parameters": {"hash_bits": 1}},
                {"id": "spec", "text": "?", "protocol": THE(4, 1).spec()},
                {"id": "domain", "text": "?", "answers": {"kind": "integers", "low": 0, "high": 9}},
            ],
        }
    )
    assert [question.protocol for question in made] == [
        OUE(["yes", "no"], "1/2"),
        OLH(Integers(18, 99), 1),
        OUE(Categories(["cat", "dog"], other="another"), "1/2"),
        HCMS(Strings(key="habits/word"), 4),
        OLH([1, True], "1/2", hash_bits=1),
        THE(4, 1),
        OUE(10, "1/2"),
    ]
    assert Survey.from_spec(made.spec()) == made


def test_the_planner_chooses() -> None:
    from deniable import planning

    made = Survey.from_draft(draft(protocol=..., people=10_000))
    assert made["smoke"].protocol == planning.plan(Categories(["yes", "no"]), epsilon=1, n=10_000).best
    assert made["smoke"].protocol.name in registered()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ([], "a draft is an object"),
        (SURVEY.spec(), "is a survey already"),
        ({"name": "x"}, "the draft misses questions"),
        ({"name": "x", "questions": [], "color": 1}, "unknown key 'color'"),
        ({"name": "x", "questions": [1]}, "question 1 is not an object"),
        (draft(answers=...), "question 'smoke': it misses answers"),
        (draft(answers="yes"), "the answers are a list"),
        (draft(answers={"sets": ["a", "b"]}), '{"multiple": [...], "at_most": ...}, {"keys"'),
        (draft(answers=["yes"]), "at least 2"),
        (draft(answers=["yes", "yes"]), "twice"),
        (draft(answers={"low": 5, "high": 1}), "low < high"),
        (draft(answers="text", other="x"), '"other" goes with a list'),
        (draft(epsilon=...), "epsilon is missing"),
        (draft(epsilon=-1), "question 'smoke': "),
        (draft(protocol="GRRR"), "there is no protocol 'GRRR'; there are best"),
        (draft(parameters={"size": 3}), "does not have these parameters: size"),
        (draft(parameters=[3]), "the parameters are an object"),
        (draft(protocol="best", parameters={"size": 3}), "need a protocol by name"),
        (draft(colour="red"), "unknown key 'colour'"),
        (draft(id="S"), "a-z"),
        (draft(protocol=GRR(2, 1).spec()), "unknown key 'answers'"),
    ],
)
def test_drafts_that_are_refused(changed: Any, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        Survey.from_draft(changed)
    assert message in str(refused.value)


# -- tallies -------------------------------------------------------------------------------------------


def tallies(seed: int, n: int = 500) -> SurveyTally:
    bits = Simulation(seed)
    answers: dict[str, Any] = {"smoke": ["yes", "no"] * (n // 2), "age": np.arange(n) % 82 + 18}
    return SurveyTally(
        SURVEY.fingerprint,
        {q.id: q.protocol.tally(q.protocol.privatize(answers[q.id], bits), SURVEY.source(q.id)) for q in SURVEY},
    )


def test_tallies_of_a_survey_add(tmp_path: Path) -> None:
    a, b = tallies(1), tallies(2)
    total = a + b
    assert total == b + a
    assert total != a + a
    assert total["smoke"] == a["smoke"] + b["smoke"]
    assert SurveyTally.empty(SURVEY) + a == a
    total.check(SURVEY)
    total.save(tmp_path / "tally.json")
    assert SurveyTally.load(tmp_path / "tally.json") == total
    assert pickle.loads(pickle.dumps(total)) == total


def test_tallies_of_another_survey_are_refused() -> None:
    other = Survey("other", SURVEY.questions)
    for refuse in (lambda: tallies(1) + SurveyTally.empty(other), lambda: tallies(1).check(other)):
        with pytest.raises(MismatchError) as refused:
            refuse()
        assert other.fingerprint in str(refused.value)
        assert SURVEY.fingerprint in str(refused.value)


def test_tallies_that_do_not_fit_their_survey() -> None:
    whole_tally = tallies(1)
    smoke = whole_tally["smoke"]

    def check(**changed: Any) -> str:
        entry = {"fingerprint": smoke.fingerprint, "n": smoke.n, "counts": smoke.counts, "source": smoke.source}
        changed_one = Tally(**{**entry, **changed})
        with pytest.raises((MismatchError, SpecError)) as refused:
            SurveyTally(SURVEY.fingerprint, {**whole_tally.tallies, "smoke": changed_one}).check(SURVEY)
        return str(refused.value)

    assert "of protocol" in check(fingerprint=AGE.protocol.fingerprint)
    assert "has the source" in check(source=SURVEY.source("age"))
    assert "has 2 counters, not 3" in check(counts=[1, 2])
    with pytest.raises(SpecError, match="misses age"):
        SurveyTally(SURVEY.fingerprint, {"smoke": smoke}).check(SURVEY)
    with pytest.raises(TypeError):
        whole_tally + 1  # type: ignore[operator]


def test_a_sum_beyond_64_bits_is_refused() -> None:
    smoke = tallies(1)["smoke"]
    huge = Tally(smoke.fingerprint, smoke.n, [2**62, 0, 0], smoke.source)
    tally = SurveyTally(SURVEY.fingerprint, {**tallies(1).tallies, "smoke": huge})
    with pytest.raises(NumberError, match="64 bits"):
        tally + tally
    spec = tally.spec()
    spec["tallies"]["smoke"]["counts"][0] = 2**80
    with pytest.raises(SpecError, match="64 bits"):
        SurveyTally.from_spec(spec)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kind": "tally"}, "survey-tally"),
        ({"version": 2}, "version 2"),
        ({"extra": 1}, "unknown key 'extra'"),
        ({"survey": 1}, "fingerprint"),
        ({"tallies": {"smoke": {}}}, "not a tally"),
    ],
)
def test_what_is_no_tally_of_a_survey(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as refused:
        SurveyTally.from_spec({**tallies(1).spec(), **changed})
    assert message in str(refused.value)


if __name__ == "__main__":
    kept = {entry["fingerprint"]: entry for entry in (golden() if GOLDEN.exists() else [])}
    for survey in PINNED:
        fresh = {"fingerprint": survey.fingerprint, "epsilon": str(survey.epsilon), "spec": survey.spec()}
        kept.setdefault(survey.fingerprint, fresh)
    GOLDEN.write_text(json.dumps(list(kept.values()), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("question", "domain"),
    [
        ({"answers": ["a", "b"], "missing": "none"}, Categories(["a", "b"], missing="none")),
        ({"answers": ["a", "none"], "missing": "none"}, Categories(["a", "none"], missing="none")),
        ({"answers": ["a"], "other": "o", "missing": "none"}, Categories(["a"], other="o", missing="none")),
        ({"answers": {"low": 1, "high": 3}, "missing": "none"}, Categories([1, 2, 3, "none"], missing="none")),
        ({"answers": {"low": 1, "high": 3}}, Integers(1, 3)),
        ({"answers": "text", "missing": "none"}, Strings(key="s/q", missing="none")),
    ],
)
def test_a_draft_says_what_stands_for_missing_answers(question: Any, domain: Any) -> None:
    head = {"name": "s", "epsilon": 1, "protocol": "HCMS" if question["answers"] == "text" else "GRR"}
    entry = {"id": "q", "text": "?", **question}
    survey = Survey.from_draft(head | {"questions": [entry]})
    assert survey["q"].protocol.domain == domain
    assert Survey.from_spec(survey.spec()) == survey
    if "missing" in entry:
        once = {key: value for key, value in entry.items() if key != "missing"}
        assert Survey.from_draft(head | {"missing": "none", "questions": [once]}) == survey


def test_what_cannot_stand_for_missing_answers() -> None:
    for question, message in (
        ({"answers": "text", "missing": 7}, "what stands for missing answers is text"),
        ({"answers": {"low": 0, "high": 10_000}, "missing": "none"}, "too long to list beside 'none'"),
    ):
        with pytest.raises(SpecError, match=message):
            Survey.from_draft(
                {"name": "s", "epsilon": 4, "people": 9, "questions": [{"id": "q", "text": "?", **question}]}
            )


def test_reports_of_another_survey_are_refused() -> None:
    """Also where both ask by the same protocol, and where a question of the same survey does."""
    one, other = (
        Survey(name, [Question(id, "Do you?", GRR(["yes", "no"], 1)) for id in ("smoke", "drink")]) for name in "ab"
    )
    reports = one.privatize({"smoke": ["yes"], "drink": ["no"]})
    assert one.tally(reports)["smoke"].n == 1
    with pytest.raises(MismatchError, match=f"are of {one.source('smoke')}, not of {other.source('smoke')}"):
        other.tally(reports)
    with pytest.raises(MismatchError, match="are of"):
        one.tally({"smoke": reports["drink"]})

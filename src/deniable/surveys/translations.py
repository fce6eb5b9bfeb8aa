"""The texts of a survey in several languages: one fingerprint, and answers by position.

    {"language": "en", "translations": {"de": {"name": "Gewohnheiten", "purpose": "...", "questions": {
        "smoke": {"text": "Rauchen Sie?", "answers": ["ja", "nein"]},
        "sleep": {"text": "Wie lange schlafen Sie?", "unit": "Stunden"},
        "you": {"text": "Über Sie", "parts": {"age": {"name": "Alter", "text": "Wie alt sind Sie?"}}}}}}}

language      of the survey's own texts
name, purpose of the survey; a purpose if it has terms
text          of a question, or of a part of a record that has titles
answers       one text for each answer, item or key that is a text, in the order of the survey; numbers and truth values
              are not translated
unit          of numbers
parts         of a record, by their names in the survey; "name" is what sentences call the part
Complete      a translation has exactly the texts that the survey has; errors give the position of any other
Answers       an answer in another language is the answer at the same position, so that the law, the reports and the
              tallies do not depend on the language
Draft         the same; the texts of "strata" are given once, as "strata", and "name" may name the part that a question
              becomes
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deniable.errors import LabelError, SpecError
from deniable.specs import as_text, keys, short

if TYPE_CHECKING:
    from deniable.surveys.survey import Survey

Texts = Mapping[str, Any]
"""The texts of a survey, a question or a part, by what they are for."""

_CODE = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-[A-Z]{2})?")


def own_texts(survey: Survey) -> dict[str, Any]:
    """The texts that a survey was written with, in the form of a translation."""
    questions = {question.id: {"text": question.text} | question.protocol.domain.texts for question in survey}
    purpose = {} if survey.terms is None else {"purpose": survey.terms.purpose}
    return {"name": survey.name} | purpose | {"questions": questions}


def read_translations(language: Any, translations: Any, own: Texts) -> dict[str, dict[str, Any]]:
    """The translations of a survey whose texts are `own`, in Unicode form NFC; incomplete ones are refused."""
    if not isinstance(translations, Mapping):
        raise SpecError('"translations" is an object with one translation per language, {"de": {...}}')
    for code in [*([] if language is None and not translations else [language]), *translations]:
        if not isinstance(code, str) or not _CODE.fullmatch(code):
            raise SpecError(f'a language is a code such as "de", "pt-BR" or "zh-Hant", not {short(code)}')
    if language in translations:
        raise SpecError(f"the survey's own texts are in {language!r}: leave that translation out")
    return {code: _read(own, given, f"translations.{code}") for code, given in translations.items()}


def _read(own: Any, given: Any, where: str) -> Any:
    """The texts that stand at this position; it has the form of the survey's own."""
    if isinstance(own, str):
        return as_text(given, where)
    if isinstance(own, list):
        if not isinstance(given, list) or len(given) != len(own):
            found = f"{len(given)} texts" if isinstance(given, list) else f"a {type(given).__name__}"
            raise SpecError(
                f"{where} is a list of {len(own)} texts, one per answer in the order of the survey, not {found}"
            )
        return _different([as_text(text, f"{where}[{place}]") for place, text in enumerate(given)], where)
    if not isinstance(given, Mapping):
        raise SpecError(f"{where} is an object with {', '.join(own)}")
    keys(given, own, where)
    read = {key: _read(one, given[key], f"{where}.{key}") for key, one in own.items()}
    if "parts" in read and isinstance(read.get("text"), str):  # a question, and no question called so
        _different([part["name"] for part in read["parts"].values()], f"{where}.parts")
    return read


def _different(texts: list[str], where: str) -> list[str]:
    for place, text in enumerate(texts):
        if text in texts[:place]:
            raise SpecError(f"{where} has one text twice, at {texts.index(text)} and {place}: each needs its own")
    return texts


def best_language(languages: Sequence[str], wanted: str) -> str | None:
    """The language of a survey for a reader: the same code, or else the same language of another place.

    >>> best_language(["en", "de", "pt-BR"], "de-AT"), best_language(["en", "pt-BR"], "pt"), best_language(["en"], "ar")
    ('de', 'pt-BR', None)
    """
    same = [one for one in languages if one.partition("-")[0] == wanted.partition("-")[0]]
    return wanted if wanted in languages else next(iter(same), None)


def as_original(answer: Any, shown: Texts, own: Texts) -> Any:
    """An answer in the texts `shown` as the survey's own answer at the same position.

    >>> german, english = {"answers": ["ja", "nein"]}, {"answers": ["yes", "no"]}
    >>> as_original("nein", german, english), as_original(["ja"], german, english), as_original(7, german, english)
    ('no', ['yes'], 7)
    """
    if isinstance(answer, Mapping) and "parts" in own:
        names = {part["name"]: name for name, part in shown["parts"].items()}
        named = {names.get(name, name): one for name, one in answer.items()}
        parts = {name: (shown["parts"].get(name, {}), own["parts"].get(name, {})) for name in named}
        return {name: as_original(one, *parts[name]) for name, one in named.items()}
    answers = dict(zip(shown.get("answers", ()), own.get("answers", ()), strict=True))
    if isinstance(answer, Mapping):
        return {answers.get(key, key): number for key, number in answer.items()}
    if isinstance(answer, list | tuple | set | frozenset):
        return [answers.get(one, one) for one in answer]
    return answers.get(answer, answer) if isinstance(answer, str) else answer


def positions(texts: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Every text with its position, such as "questions.smoke.answers[0]"."""
    if isinstance(texts, str):
        yield where, texts
    elif isinstance(texts, list):
        for place, text in enumerate(texts):
            yield f"{where}[{place}]", text
    else:
        for key, one in texts.items():
            yield from positions(one, f"{where}.{key}" if where else key)


def of_draft(draft: Mapping[str, Any], whole: str) -> Any:
    """The translations of a draft, in the form of the survey that it becomes; `whole` is the id of its one record."""
    given = draft.get("translations", {})
    if not isinstance(given, Mapping) or not {"strata", "per_device"} & set(draft):
        return given

    def named(id: str, entry: Any, text: bool) -> Any:
        if not isinstance(entry, Mapping):
            return entry
        return {"name": id} | {key: one for key, one in entry.items() if key != "text" or text}

    def made(code: str, block: Any) -> Any:
        if not isinstance(block, Mapping) or not isinstance(block.get("questions"), Mapping):
            return block
        rest = {key: one for key, one in block.items() if key not in ("questions", "strata")}
        questions = dict(block["questions"])
        if "per_device" in draft:
            parts = {id: named(id, entry, True) for id, entry in questions.items()}
            questions = {whole: {"text": block.get("name"), "parts": parts}}
        if "strata" in draft:
            strata = block.get("strata")
            if not isinstance(strata, Mapping):
                raise SpecError(f'translations.{code} misses strata: {{"country": {{"name": ..., "answers": [...]}}}}')
            questions = {
                id: {"text": entry.get("text"), "parts": {**strata, id: named(id, entry, False)}}
                for id, entry in questions.items()
                if isinstance(entry, Mapping)
            }
        return {**rest, "questions": questions}

    return {code: made(code, block) for code, block in given.items()}


def check_known(languages: Sequence[str], wanted: str) -> None:
    """Refuse a language that a survey does not have."""
    if wanted not in languages:
        known = ", ".join(languages) or "no language by name"
        raise LabelError(f"the survey has no texts in {wanted!r}; it has {known}")


def translation_schema() -> dict[str, Any]:
    """A JSON Schema of a translation; which texts it needs depends on the survey."""
    text, texts = {"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string", "minLength": 1}}
    parts = {"type": "object", "additionalProperties": {"$ref": "#/$defs/part"}}
    common = {"text": text, "answers": texts, "unit": text}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_object({"name": text, "purpose": text, "questions": _by_id("question"), "strata": _by_id("part")}, "name"),
        "$defs": {
            "question": _object(common | {"name": text, "parts": parts}, "text"),
            "part": _object(common | {"name": text}, "name"),
        },
    }


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def _by_id(kind: str) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": {"$ref": f"#/$defs/{kind}"}}

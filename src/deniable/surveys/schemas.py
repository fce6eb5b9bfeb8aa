"""JSON Schemas of the files that people and programs exchange: draft, survey, tally, document and audit.

Files      `deniable/schemas/*.json` has them, for editors and other languages; `python -m deniable.surveys.schemas`
           writes them, and a test compares
Scope      a schema says which keys and types there are. Which values go together is checked by the reader, and the
           parameters of a protocol by the protocol
Editors    a draft may name its schema, {"$schema": "draft.schema.json", ...}; `deniable survey schema draft` writes it
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import deniable
from deniable.answers import answers_schema
from deniable.protocols import registered
from deniable.results.document import schema as document_schema
from deniable.surveys.draft import BEST
from deniable.surveys.terms import PUBLIC, RESULTS, RETENTION, RULES
from deniable.surveys.translations import translation_schema

HERE = Path(deniable.__file__).parent / "schemas"
KINDS = ("draft", "survey", "tally", "document", "audit")

_TEXT = {"type": "string", "minLength": 1}
_WHOLE = {"type": "integer"}
_HASH = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", "examples": ["2026-11-01T00:00:00Z"]}
_EXACT = {"type": "string", "description": "an exact number: digits, a decimal or a fraction, such as 1/3"}
_LEVEL = {"type": ["number", "string"], "description": "a number, or text that is exact, such as 1/3"}


def _said(schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {**schema, "description": description}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _object(needed: Mapping[str, Any], optional: Mapping[str, Any] | None = None, rest: Any = False) -> dict[str, Any]:
    properties = {**needed, **(optional or {})}
    return {"type": "object", "properties": properties, "required": list(needed), "additionalProperties": rest}


def _list(items: Any, **limits: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **limits}


def _maybe(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _map(values: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


def _titled(title: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


_ID = {"type": "string", "pattern": "^[a-z0-9_-]{1,64}$", "description": "the name of the question in files"}
_PROTOCOL = _object({"kind": {"const": "protocol"}, "version": _WHOLE, "protocol": _TEXT}, rest=True)
_RELAY = _object({"address": _TEXT, "key": _TEXT, "batch": _WHOLE})
_RULE = {"enum": list(RULES)}


def _spoken() -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys of a survey in several languages, and the definitions that they need."""
    whole = json.loads(json.dumps(translation_schema()).replace("#/$defs/", "#/$defs/translated_"))
    parts = {f"translated_{name}": part for name, part in whole.pop("$defs").items()}
    del whole["$schema"]
    keys = {
        "language": _said(_TEXT, "the language of the texts, such as en"),
        "translations": _said(_map(_ref("translation")), "the same texts in other languages, by language"),
    }
    return keys, {"translation": whole, **parts}


def _names() -> list[str]:
    """Our own protocols: those of other packages are names, too, but not of everybody."""
    return sorted(name for name, kind in registered().items() if kind.__module__.startswith("deniable."))


def draft() -> dict[str, Any]:
    """The schema of what an author writes by hand."""
    grammar = answers_schema()["$defs"]
    named = {"anyOf": [{"enum": [BEST, *_names()]}, {"type": "string"}]}
    shared = {
        "epsilon": _said(_LEVEL, "the privacy of one answer; once for all questions, or in a question"),
        "protocol": _said(named, "the planner's choice (best, the default), or a protocol by its name"),
        "people": _said({"type": ["integer", "string", "null"], "minimum": 1}, "about how many will answer, per epoch"),
        "missing": _said(_maybe(_ref("label")), "the label for every missing answer"),
    }
    table = _object({"table": {"type": ["object", "string"]}}, rest=True)
    asked = {
        "answers": {"anyOf": [_ref("answers"), table], "description": "what can be answered"},
        "other": _said(_maybe(_ref("label")), "the label for every answer that is not listed"),
        "parameters": _said(_map({}), "of the named protocol, to override the defaults"),
        "shape": _said({"enum": ["smooth", "rough", "unknown"]}, "what is known of how the numbers are spread"),
    }
    whole = {"anyOf": [{"enum": list(_names())}, {"type": "string"}, _PROTOCOL]}
    question = _object({"id": _ID, "text": _said(_TEXT, "what people read")}, shared | asked | {"protocol": whole})
    question["anyOf"] = [{"required": ["answers"]}, {"properties": {"protocol": _PROTOCOL}, "required": ["protocol"]}]
    terms = {
        "owner": _said(_TEXT, "who asks"),
        "purpose": _said(_TEXT, "what the answers are for"),
        "opens": _said(_TIME, "when the collection opens; by default at the start of the current hour"),
        "expires": _said(_TIME, "when it ends; or give days"),
        "days": {"type": "integer", "minimum": 1, "maximum": 36_600, "description": "how long it lasts"},
        "epochs": _object({}, dict.fromkeys(("seconds", "days", "early", "late"), _WHOLE) | {"origin": _TIME}),
        "longitudinal": _object(
            {},
            {"rule": _RULE, "first": _LEVEL, "forever": _LEVEL, "linkable": {"type": "boolean"}}
            | dict.fromkeys(("epochs", "values", "changes"), _WHOLE),
        ),
        "budget": _object({}, {"group": _TEXT, "epsilon": _LEVEL, "delta": _LEVEL}),
        "retention": {"enum": list(RETENTION), "description": "whether the service keeps sums only, or reports"},
        "delete_days": _WHOLE,
        "min_reports": _said(_WHOLE, "estimates of fewer answers are not shown"),
        "replaces": _said(_HASH, "the fingerprint of the survey that this one replaces"),
        "campaign": _object({"kind": _TEXT}, rest=True),
        "relay": _RELAY,
        "collectors": _object({"addresses": _list(_TEXT)}, {"missing": _WHOLE}),
        "results": {"enum": list(RESULTS), "description": "whether everybody may read the results, or analysts only"},
    }
    strata = {"anyOf": [_ref("labels"), _object({"private": _ref("labels")})]}
    more = {
        "$schema": _said({"type": "string"}, "where this schema is, for editors; not a part of the survey"),
        "strata": _said(_map(strata), "attributes that are sent in clear with every report, or private ones"),
        "per_device": _said({"enum": [1, "pairs"]}, "each device reports one question, or two together"),
    }
    spoken, translated = _spoken()
    content = _object({"name": _TEXT, "questions": _list(_ref("question"), minItems=1)}, shared | terms | more | spoken)
    return _titled("Draft of a survey", content | {"$defs": {"question": question, **grammar, **translated}})


def survey() -> dict[str, Any]:
    """The schema of a published survey; without terms it is for files only."""
    question = _object({"id": _ID, "text": _TEXT, "protocol": _PROTOCOL})
    rule = {"rule": _RULE, "epochs": _WHOLE}
    kept = {"values": _WHOLE, "changes": _WHOLE, "first": _EXACT, "forever": _EXACT, "linkable": {"const": True}}
    terms = {
        "owner": _TEXT,
        "purpose": _TEXT,
        "epochs": _object({"origin": _TIME, "seconds": _WHOLE, "early": _WHOLE, "late": _WHOLE}),
        "longitudinal": _object(rule, kept),
        "budget": _object({"group": _TEXT, "epsilon": _EXACT}, {"delta": _EXACT, "relation": _TEXT}),
        "opens": _TIME,
        "expires": _TIME,
        "retention": {"enum": list(RETENTION)},
        "min_reports": _WHOLE,
    }
    more = {
        "replaces": _HASH,
        "campaign": _object({"kind": _TEXT, "parameters": _map({}), "round": _WHOLE, "rounds": _WHOLE}, rest=True),
        "delete_days": _WHOLE,
        "relay": _RELAY,
        "collectors": _list(_TEXT),
        "results": {"const": PUBLIC},
    }
    spoken, translated = _spoken()
    head = {"kind": {"const": "survey"}, "name": _TEXT, "questions": _list(question, minItems=1)}
    plain, collected = ({"version": {"const": version}} for version in (1, 2))
    forms = [_object(head | plain, spoken), _object(head | collected | terms, more | spoken)]
    return _titled("Survey", {"anyOf": forms, "$defs": translated})


def tally() -> dict[str, Any]:
    """The schema of the sums of a survey's reports, or of those of one protocol."""
    head = {"version": {"const": 1}}
    counted = {"fingerprint": _HASH, "n": {"type": "integer", "minimum": 0}, "counts": _list(_WHOLE)}
    one = _object({"kind": {"const": "tally"}, **head, **counted}, {"source": _TEXT})
    all_of_them = _object({"kind": {"const": "survey-tally"}, **head, "survey": _HASH, "tallies": _map(_ref("tally"))})
    return _titled("Tally", {"anyOf": [all_of_them, _ref("tally")], "$defs": {"tally": one}})


def document() -> dict[str, Any]:
    """The schema of a question's results, as `deniable estimate --json` and the service write them."""
    return _titled("Results of a question", document_schema())


def audit() -> dict[str, Any]:
    """The schema of what `deniable audit --json` writes, of a survey or of a protocol or program."""
    number = {"anyOf": [{"type": "number"}, {"enum": ["inf"]}, {"type": "null"}]}
    count = {"type": ["integer", "null"]}
    found = {
        **{name: {"type": "string"} for name in ("subject", "words", "verdict", "method")},
        **dict.fromkeys(("epsilon", "exact", "lower", "smallest_visible"), number),
        "rarest_visible": {"type": ["number", "null"]},
        "pair": {"type": ["array", "null"]},
        "event": {"type": ["string", "null"]},
        "level": {"type": ["number", "null"]},
        **dict.fromkeys(("samples", "tried", "answers", "more"), count),
        "notes": _list({"type": "string"}),
    }
    parts = {"parts": _list(_ref("verdict"))}
    question = {"id": _ID, "text": _TEXT, "protocol": _TEXT, "fingerprint": _HASH, "audit": _ref("verdict"), "risk": {}}
    review = {
        "kind": {"const": "audit"},
        "version": {"const": 1},
        "survey": _TEXT,
        "fingerprint": _HASH,
        "spec": _said({"type": "object"}, "the survey"),
        "audit": _object(found),
        "questions": _list(_object(question, rest=True)),
        "not_tested": _list({"type": "string"}),
        "written": _TIME,
        "seed": {"type": ["integer", "null"]},
        "samples": _WHOLE,
        "level": {"type": "number"},
        "versions": _map({"type": "string"}),
    }
    alone = _object(found | parts, {"seed": {"type": ["integer", "null"]}})
    return _titled(
        "Audit", {"anyOf": [_object(review, rest=True), alone], "$defs": {"verdict": _object(found | parts)}}
    )


def text(kind: str) -> str:
    """The schema of a kind of file, as it is stored."""
    made = {"draft": draft, "survey": survey, "tally": tally, "document": document, "audit": audit}[kind]()
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def stored(kind: str) -> str:
    """The schema of a kind of file, from its file."""
    return (HERE / f"{kind}.json").read_text(encoding="utf-8")


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for kind in KINDS:
        (HERE / f"{kind}.json").write_text(text(kind), encoding="utf-8")

"""The record of a survey for the public registry of differential privacy deployments.

Fields   those of the schema in github.com/opendp/deployments-registry-data, third tier
Unknown  what no survey says (a region, authors) is the text `UNKNOWN`, for a person to fill in
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from deniable.exact import epsilon_text
from deniable.protocols.law import METRIC, PROFILES
from deniable.surveys.promises import amplified, band, promises
from deniable.surveys.survey import Survey
from deniable.surveys.terms import write_time

UNKNOWN = "TO BE FILLED IN"


def registry_record(survey: Survey, version: str) -> dict[str, Any]:
    """The record as nested values; `registry_yaml` writes it."""
    terms, said = survey.terms, promises(survey)
    owner = UNKNOWN if terms is None else terms.owner
    asked = "\n".join(f"- {one.id}: {one.text}" for one in survey)
    clear = sorted({name for one in survey for name in one.protocol.law().clear})
    again = terms is not None and terms.longitudinal.epochs > 1
    mechanisms = "\n".join(
        f"- {one.id}: {one.protocol.name}, epsilon {epsilon_text(one.protocol.epsilon)} per report" for one in survey
    )
    return {
        "url_slug": _slug(f"{survey.name} {owner if terms is not None else ''}"),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": survey.name,
                "data_curators": [owner],
                "intended_use": UNKNOWN if terms is None else terms.purpose,
                "data_product_type": "Summary statistics",
                "data_product_region": UNKNOWN,
                "description": f"Estimates from randomized answers to:\n{asked}",
                "publication_date": UNKNOWN if terms is None else write_time(terms.opens)[:10],
            },
            "dp_variant": {
                "variant_name": variant(survey),
                "data_domain": "\n".join(f"- {one.id}: {one.protocol.domain}" for one in survey),
                "unprotected_quantities": (f"Sent in clear: {', '.join(clear)}. " if clear else "")
                + "The number of reports per epoch.",
            },
            "privacy_loss": {
                "privacy_unit": "All reports of one device" if again else "All answers of one person",
                "privacy_unit_details": f"Between {_over(survey)}.",
                "privacy_parameters": _parameters(survey),
                "privacy_parameters_details": f"{said['lifetime']}. Protection: {band(survey)}. {said['guess']}",
            },
            "deployment_model": {
                **_model(survey),
                "actors": " ".join(said[name] for name in ("seen", "address", "relay", "collectors") if name in said),
                "release_type": "Many releases" if again else "One release",
                "release_type_details": said.get("often", "One collection from files."),
                "data_source_type": "Dynamic" if again else "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "Estimates and everything after them are computed from sums of reports.",
                "composition": _composition(survey),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "Protocols and epsilons are fixed before the collection.",
                "mechanisms": f"{mechanisms}\n- library: deniable {version}; probabilities are integers, drawn exactly",
                "justification": UNKNOWN,
            },
            "administrative": {"notes": f"Survey {survey.fingerprint}", "registry_authors": [UNKNOWN]},
        },
    }


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "survey"


def _over(survey: Survey) -> str:
    """Between which inputs the lifetime epsilon holds."""
    if survey.terms is not None and survey.terms.longitudinal.epochs > 1:
        return survey.terms.longitudinal.promise[1]
    return " and ".join(dict.fromkeys(one.protocol.guarantee.over for one in survey))


def variant(survey: Survey) -> str:
    """The registry's name of the definition that holds for the survey."""
    if survey.relation in (METRIC, PROFILES) or survey.lifetime_epsilon is None:
        return "Custom"
    return "Approximate DP" if survey.delta else "Pure DP"


def _parameters(survey: Survey) -> dict[str, float]:
    """Of all that a device may send; without an epsilon if no number holds."""
    found = {} if survey.lifetime_epsilon is None else {"epsilon": float(survey.lifetime_epsilon)}
    return found | ({"delta": float(survey.budget_delta)} if survey.delta else {})


def _model(survey: Survey) -> dict[str, str]:
    terms = survey.terms
    if terms is not None and terms.collectors:
        return {"model_name": "Federated", "model_name_details": amplified(survey)}
    if terms is not None and terms.relay is not None:
        return {"model_name": "Shuffle", "model_name_details": amplified(survey) or promises(survey)["relay"]}
    return {"model_name": "Local", "model_name_details": "Answers are randomized before they leave the device."}


def _composition(survey: Survey) -> str:
    once = f"Sequential: one submission has epsilon {epsilon_text(survey.epsilon)}, the sum over its questions"
    if survey.terms is None:
        return f"{once}. A survey for files keeps no count of repeated answers."
    budget = survey.terms.budget
    return (
        f"{once}. A device draws at most {survey.draws:,} times; its ledger debits at most epsilon "
        f"{epsilon_text(survey.budget_epsilon)} of a lifetime budget of {epsilon_text(budget.epsilon)} that all "
        f"surveys of the group {budget.group} share."
    )


def unknown_fields(record: Any, path: str = "") -> Iterator[str]:
    """Where a person has to fill something in."""
    if isinstance(record, Mapping):
        for key, value in record.items():
            yield from unknown_fields(value, f"{path}.{key}" if path else key)
    elif record in (UNKNOWN, [UNKNOWN]):
        yield path


def registry_yaml(record: Mapping[str, Any]) -> str:
    """The record as YAML: texts are quoted as in JSON, longer ones are blocks.

    >>> print(registry_yaml({"tier": 3, "notes": ["a: b"], "text": "one\\ntwo"}), end="")
    tier: 3
    notes:
      - "a: b"
    text: |-
      one
      two
    """
    return "".join(f"{line}\n" for line in _lines(record, ""))


def _lines(values: Mapping[str, Any], margin: str) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield f"{margin}{key}:"
            yield from _lines(value, f"{margin}  ")
        elif isinstance(value, list):
            yield f"{margin}{key}:"
            yield from (f"{margin}  - {json.dumps(one, ensure_ascii=False)}" for one in value)
        elif isinstance(value, str) and "\n" in value:
            yield f"{margin}{key}: |-"
            yield from (f"{margin}  {line}" for line in value.split("\n"))
        else:
            yield f"{margin}{key}: {_scalar(value)}"


def _scalar(value: Any) -> str:
    """As in JSON; but in YAML a number without a point, such as 1e-09, would be a text."""
    written = json.dumps(value, ensure_ascii=False)
    return written.replace("e", ".0e") if isinstance(value, float) and "." not in written else written

"""A browser's answer on sets at a real service: its hash function follows from its id, and a forger's does not."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from typing import Any

from deniable.collect.wire import BINARY, HEADER_BYTES, ID_BYTES, public_number
from deniable.domains import Sets
from deniable.protocols import CollisionSets
from deniable.surveys import Question, Survey
from tests.collect.surveys import terms
from tests.web.pages.service import Service
from tests.web.pages.test_survey_page import COUNTED, SEND

APPS = [f"app {i}" for i in range(12)]
COHORTS = 60_000
"""So many that a wrong rule fits by chance in one of 60,000 runs."""
SURVEY = Survey(
    "tied", [Question("apps", "Which?", CollisionSets(Sets(APPS, at_most=2), 1, cells=4, cohorts=COHORTS))], terms()
)


def post(service: Service, body: bytes) -> Any:
    address = f"{service.address}/v1/surveys/{SURVEY.fingerprint}/reports"
    with urllib.request.urlopen(urllib.request.Request(address, body, {"Content-Type": BINARY}), timeout=90) as reply:
        return json.load(reply)


def test_the_service_counts_a_browser_s_set_and_refuses_one_with_a_chosen_hash_function(
    service: Service, open_tab: Callable[[str], Any]
) -> None:
    service.publish(SURVEY)
    tab = open_tab(service.survey_page(SURVEY))
    tab.get_by_label("app 3", exact=True).check()
    with tab.expect_request(lambda request: request.method == "POST") as sent:
        tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    assert service.count(SURVEY) == 1

    body = sent.value.post_data_buffer
    head, id, report = body[:HEADER_BYTES], body[HEADER_BYTES:][:ID_BYTES], body[HEADER_BYTES + ID_BYTES :]
    cohort = int.from_bytes(report[:2], "little")
    assert cohort == public_number(SURVEY.fingerprint, "apps", id) % COHORTS

    other = bytes([id[0] ^ 1]) + id[1:]
    chosen = head + other + report
    refused = post(service, chosen)
    assert (refused["accepted"], len(refused["rejected"])) == (0, 1)
    right = public_number(SURVEY.fingerprint, "apps", other) % COHORTS
    assert post(service, head + other + right.to_bytes(2, "little") + report[2:])["accepted"] == 1
    assert service.count(SURVEY) == 2

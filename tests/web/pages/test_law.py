"""The law of what leaves a browser, against the exact channel of the report bytes.

Network    2,000 submissions of each protocol, taken from the requests of a real page; a law at twice the epsilon is
           refused
Page       2,000,000 reports drawn in the page by the function that the client calls; laws at epsilon 2 percent up and
           down are refused
Errors     chi-square at 1e-6 a test; the browser's randomness cannot be seeded, so 1 in 10^4 runs of this file fails by
           chance
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.conformance.protocol_checks import enumerated
from tests.conformance.protocol_registry import PROTOCOL_CASES, ProtocolCase
from tests.statistics import accepts, draws_needed
from tests.web.pages.service import Service
from tests.web.pages.surveys import single, smoke

Open = Callable[[str], Any]
pytestmark = pytest.mark.slow

CAPTURED, DRAWN = 2_000, 2_000_000
LEVELS = [Fraction(x) for x in (1, 2, 3, 4, 6)]

ANSWER = """async ([address, survey, value, count]) => {
    const { Client } = await import(`${address}/web/current/deniable.js`);
    class Fresh {  // a device that begins anew each time
        #kept;
        read = async () => this.#kept;
        update = async (change) => void (this.#kept = change(this.#kept));
        exclusive = (task) => task();
    }
    const one = async () => {
        const client = new Client({ server: address, fingerprint: survey, store: new Fresh() });
        if ((await client.answer({ q: value })).state !== "sent") throw new Error("not sent");
    };
    for (let done = 0; done < count; done += 8) await Promise.all(Array.from({ length: 8 }, one));
}"""

DRAW = """async ([address, spec, value, count]) => {
    const { loadProtocol } = await import(`${address}/web/current/deniable.js`);
    const protocol = loadProtocol(spec);
    const seen = new Map();
    for (let i = 0; i < count; i++) {
        const key = String.fromCharCode(...protocol.privatize(value));
        seen.set(key, (seen.get(key) ?? 0) + 1);
    }
    return Array.from(seen, ([key, times]) => [Array.from(key, (c) => c.charCodeAt(0)), times]);
}"""


def fitting(case: ProtocolCase, factors: tuple[Fraction, ...], most: int) -> Fraction:
    """A level at which so many draws are enough to refuse the laws at these multiples of it."""
    for level in LEVELS:
        law = enumerated(case, level).rows[-1]
        if all(draws_needed(enumerated(case, level * factor).rows[-1], law) <= most for factor in factors):
            return level
    raise AssertionError(f"{case}: the test would have no power")


def follows(seen: dict[bytes, int], case: ProtocolCase, level: Fraction) -> bool:
    """Whether reports of the last answer are those of the exact law at this level."""
    channel = enumerated(case, level)
    places = {bytes.fromhex(str(output)): i for i, output in enumerate(channel.outputs)}
    if not set(seen) <= set(places):
        return False
    counts = np.zeros(len(places), dtype=np.int64)
    for report, times in seen.items():
        counts[places[report]] = times
    return accepts(counts, channel.rows[-1])


def last(case: ProtocolCase, level: Fraction) -> Any:
    value = [label for label, _ in case.build(level)._inputs()][-1]
    return float(value) if isinstance(value, Fraction) else value


@pytest.mark.parametrize("case", PROTOCOL_CASES, ids=str)
def test_what_the_network_sees_has_the_exact_law(service: Service, profile: Any, case: ProtocolCase) -> None:
    level = fitting(case, (Fraction(2),), CAPTURED)
    survey = single(case.build(level), f"law of {case}")
    service.publish(survey)
    bodies: list[bytes] = []
    profile.on("request", lambda request: bodies.append(request.post_data_buffer or b""))
    tab = profile.new_page()
    tab.goto(service.survey_page(smoke()))
    tab.evaluate(ANSWER, [service.address, survey.fingerprint, last(case, level), CAPTURED])
    sent = [body for body in bodies if body]
    assert len(sent) == len({body[8:24] for body in sent}) == CAPTURED
    assert service.count(survey) == CAPTURED
    seen = Counter(body[24:] for body in sent)
    assert follows(seen, case, level)
    assert not follows(seen, case, 2 * level), "the test cannot tell twice the epsilon"


@pytest.mark.parametrize("case", PROTOCOL_CASES, ids=str)
def test_what_the_page_draws_has_the_exact_law(service: Service, profile: Any, case: ProtocolCase) -> None:
    factors = (Fraction(49, 50), Fraction(51, 50))
    level = fitting(case, factors, DRAWN)
    tab = profile.new_page()
    tab.goto(service.survey_page(smoke()))
    drawn = tab.evaluate(DRAW, [service.address, case.build(level).spec(), last(case, level), DRAWN])
    seen = {bytes(report): times for report, times in drawn}
    assert follows(seen, case, level)
    for factor in factors:
        assert not follows(seen, case, level * factor), "the test cannot tell 2 percent of the epsilon"

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

from deniable.conformance.checks import accepts, draws_needed
from deniable.conformance.protocols import enumerated, inputs, registered_examples
from deniable.protocols import Protocol
from tests.web.pages.service import Service
from tests.web.pages.surveys import single, smoke

Open = Callable[[str], Any]
pytestmark = pytest.mark.slow

CAPTURED, DRAWN = 2_000, 2_000_000
SCALES = [Fraction(x) for x in (1, 2, 3, 4, 6)]
EXAMPLES = [pytest.param(protocol, id=name) for name, protocol in registered_examples()]
# Few reports do not show the rare outputs that a delta is about.
FREQUENT = [pytest.param(protocol, id=name) for name, protocol in registered_examples() if not protocol.guarantee.delta]

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


def fitting(example: Protocol, factors: tuple[Fraction, ...], most: int) -> Protocol:
    """The example at a level at which so many draws are enough to refuse the laws at these multiples of it."""
    for scale in SCALES:
        protocol = example.scaled(scale)
        law = enumerated(protocol).rows[-1]
        if all(draws_needed(enumerated(protocol.scaled(factor)).rows[-1], law) <= most for factor in factors):
            return protocol
    raise AssertionError(f"{example}: the test would have no power")


def follows(seen: dict[bytes, int], protocol: Protocol) -> bool:
    """Whether reports of the last answer are those of the exact law."""
    channel = enumerated(protocol)
    places = {bytes.fromhex(str(output)): i for i, output in enumerate(channel.outputs)}
    if not set(seen) <= set(places):
        return False
    counts = np.zeros(len(places), dtype=np.int64)
    for report, times in seen.items():
        counts[places[report]] = times
    return accepts(counts, channel.rows[-1])


def last(protocol: Protocol) -> Any:
    value = inputs(protocol)[-1]
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return _plain(value)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value


@pytest.mark.parametrize("example", FREQUENT)
def test_what_the_network_sees_has_the_exact_law(service: Service, profile: Any, example: Protocol) -> None:
    protocol = fitting(example, (Fraction(2),), CAPTURED)
    survey = single(protocol, f"law of {protocol.name} {protocol.fingerprint[:8]}")
    service.publish(survey)
    bodies: list[bytes] = []
    tab = profile.new_page()
    tab.on("request", lambda request: bodies.append(request.post_data_buffer or b""))
    tab.goto(service.survey_page(smoke()))
    tab.evaluate(ANSWER, [service.address, survey.fingerprint, last(protocol), CAPTURED])
    sent = [body for body in bodies if body]
    assert len(sent) == len({body[8:24] for body in sent}) == CAPTURED
    assert service.count(survey) == CAPTURED
    seen = Counter(body[24:] for body in sent)
    assert follows(seen, protocol)
    assert not follows(seen, protocol.scaled(Fraction(2))), "the test cannot tell twice the epsilon"


@pytest.mark.parametrize("example", EXAMPLES)
def test_what_the_page_draws_has_the_exact_law(service: Service, profile: Any, example: Protocol) -> None:
    factors = (Fraction(49, 50), Fraction(51, 50))
    protocol = fitting(example, factors, DRAWN)
    tab = profile.new_page()
    tab.goto(service.survey_page(smoke()))
    drawn = tab.evaluate(DRAW, [service.address, protocol.spec(), last(protocol), DRAWN])
    seen = {bytes(report): times for report, times in drawn}
    assert follows(seen, protocol)
    for factor in factors:
        assert not follows(seen, protocol.scaled(factor)), "the test cannot tell 2 percent of the epsilon"

"""The law of what leaves a browser, against the exact channel of the report bytes.

Network    800 submissions of one protocol for each way through the client, taken from the requests of a real page; a
           law at twice the epsilon is refused
Page       100,000 reports of each protocol drawn in the page by the function that the client calls; laws at epsilon one
           tenth up and down are refused. Where most of a report is not about the answer, 250,000, and a half. That the
           same bits give the bytes of the law is what the shared vectors say
Errors     chi-square at 1e-6 a test; the browser's randomness cannot be seeded, so 1 in 10^4 runs of this file fails by
           chance
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deniable.conformance.checks import accepts, draws_needed
from deniable.conformance.protocols import enumerated, inputs, registered_examples
from deniable.errors import ChannelError, EpsilonError
from deniable.protocols import Evolving, Protocol
from deniable.protocols.traits import scaled
from deniable.randomness import exhaust
from tests.web.pages.service import Service
from tests.web.pages.surveys import single, smoke

Law = Callable[[Protocol], dict[bytes, float]]
pytestmark = pytest.mark.slow

CAPTURED, DRAWN, MORE = 800, 100_000, 250_000
SCALES = [Fraction(x) for x in ("1", "2", "3", "4", "6", "1/2", "1/4")]
NETWORK = [(CAPTURED, (Fraction(2),))]
PAGE = [(draws, (1 - Fraction(off), 1 + Fraction(off))) for draws, off in ((DRAWN, "1/10"), (MORE, "1/2"))]
EXAMPLES = {protocol.name: protocol for _, protocol in reversed(list(registered_examples()))}
"""The first example of each protocol: the shared vectors have them all."""
WAYS = ["GRR", "Attributes", "CollisionSets", "LGRR"]
"""A number, columns, public coins and a kept state; what a device keeps of a stream has vectors of its own."""

ANSWER = """async ([address, survey, value, count]) => {
    const { Client } = await import(`${address}/web/current/deniable.js`);
    class Fresh {  // a device that begins anew each time
        #kept;
        read = async () => this.#kept;
        update = async (change) => void (this.#kept = change(this.#kept));
        exclusive = (task) => task();
    }
    const known = await fetch(`${address}/v1/surveys/${survey}`).then((reply) => reply.arrayBuffer());
    const ask = (url, ...rest) =>
        String(url).endsWith(survey) ? Promise.resolve(new Response(known)) : fetch(url, ...rest);
    const one = async () => {
        const client = new Client({ server: address, fingerprint: survey, store: new Fresh(), fetch: ask });
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


def one_report(protocol: Protocol) -> dict[bytes, float]:
    """The law of a report of the last answer."""
    channel = enumerated(protocol)
    return {bytes.fromhex(str(one)): float(p) for one, p in zip(channel.outputs, channel.rows[-1], strict=True)}


def first_report(protocol: Protocol) -> dict[bytes, float]:
    """The law of the first report of a device that answers so; a device that follows changes tells little at first."""
    if not isinstance(protocol, Evolving):
        return one_report(protocol)
    value = inputs(protocol)[-1]
    law = exhaust(lambda bits: protocol.step(protocol.begin(bits), value, 1, bits)[1]).law
    return {report: float(p) for report, p in law.items()}


def fitting(example: Protocol, options: Any, law_of: Law) -> tuple[Protocol, int, tuple[Fraction, ...]]:
    """The example at a level, and how many draws are enough there to refuse the laws at which multiples of it."""
    for draws, factors in options:
        for scale in SCALES:
            with suppress(ChannelError, EpsilonError):  # not everything can tell as much as is asked for
                protocol = scaled(example, scale)
                law = law_of(protocol)
                wrong = [law_of(scaled(protocol, factor)) for factor in factors]
                if all(draws_needed([one[key] for key in law], list(law.values())) <= draws for one in wrong):
                    return protocol, draws, factors
    raise AssertionError(f"{example}: the test would have no power")


def follows(seen: dict[bytes, int], law: dict[bytes, float]) -> bool:
    if not set(seen) <= set(law):
        return False
    return accepts(np.array([seen.get(report, 0) for report in law]), list(law.values()))


def last(protocol: Protocol) -> Any:
    value = inputs(protocol)[-1]
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    return float(value) if isinstance(value, Fraction) else value


@pytest.mark.parametrize("name", WAYS)
def test_what_the_network_sees_has_the_exact_law(service: Service, profile: Any, name: str) -> None:
    protocol, captured, (wrong,) = fitting(EXAMPLES[name], NETWORK, first_report)
    survey = single(protocol, f"law of {protocol.name} {protocol.fingerprint[:8]}")
    service.publish(survey)
    bodies: list[bytes] = []
    tab = profile.new_page()
    tab.on("request", lambda request: bodies.append(request.post_data_buffer or b""))
    tab.goto(service.survey_page(smoke()))
    tab.evaluate(ANSWER, [service.address, survey.fingerprint, last(protocol), captured])
    sent = [body for body in bodies if body]
    assert len(sent) == len({body[8:24] for body in sent}) == captured
    assert service.count(survey) == captured
    seen = Counter(body[24:] for body in sent)
    assert follows(seen, first_report(protocol))
    assert not follows(seen, first_report(scaled(protocol, wrong))), f"the test cannot tell {wrong} times the epsilon"


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_what_the_page_draws_has_the_exact_law(service: Service, profile: Any, name: str) -> None:
    protocol, count, factors = fitting(EXAMPLES[name], PAGE, one_report)
    tab = profile.new_page()
    tab.goto(service.survey_page(smoke()))
    drawn = tab.evaluate(DRAW, [service.address, protocol.spec(), last(protocol), count])
    seen = {bytes(report): times for report, times in drawn}
    assert follows(seen, one_report(protocol))
    for factor in factors:
        assert not follows(seen, one_report(scaled(protocol, factor))), (
            f"the test cannot tell {factor} times the epsilon"
        )

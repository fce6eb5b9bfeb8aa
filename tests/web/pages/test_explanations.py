"""What the life of a report says about its bytes is true: compared with the exact channel, report by report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deniable.conformance.protocols import enumerated, registered_examples
from deniable.protocols import Protocol, PureProtocol
from tests.web.pages.service import Service

Open = Callable[[str], Any]

DECODE = """async ([address, spec, reports]) => {
    const { decode } = await import(`${address}/web/current/pages/decode.js`);
    const { loadProtocol } = await import(`${address}/web/current/deniable.js`);
    const protocol = loadProtocol(spec);
    return reports.map((report) => decode(protocol, spec, Uint8Array.from(report)).supports);
}"""

PURE = [protocol for _, protocol in registered_examples() if isinstance(protocol, PureProtocol)]


def test_a_report_speaks_for_the_answers_that_make_it_likely(service: Service, open_tab: Open) -> None:
    tab = open_tab(f"{service.address}/plan")
    for protocol in PURE:
        reports = [list(bytes.fromhex(str(output))) for output in enumerated(protocol).outputs]
        check(protocol, tab.evaluate(DECODE, [service.address, protocol.spec(), reports]))


def check(protocol: Protocol, told: list[list[int]]) -> None:
    channel = enumerated(protocol)
    likely = channel.rows.max(axis=0)
    checked = 0
    for y, supports in enumerate(told):
        best = np.flatnonzero(channel.rows[:, y] > likely[y] * (1 - 1e-9)).tolist()
        # Where all answers are equally likely a report speaks for all of them or for none.
        if len(best) < len(channel.inputs):
            assert sorted(supports) == best, protocol
            checked += 1
        else:
            assert len(supports) in (0, len(best)), protocol
    assert checked > 0, protocol

"""The life of a report in words: its probabilities are those of the law. Shared vectors bind the browser's words."""

from __future__ import annotations

import re

import pytest

from deniable.domains import Integers, Interval
from deniable.errors import DomainError, ReportError
from deniable.protocols import GRR, LGRR, OUE, Protocol, Ranges, SubsetSelection, Window, registered
from deniable.randomness import exhaust

OURS = {name: kind for name, kind in registered().items() if kind.__module__.startswith("deniable.")}


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_protocol_tells_its_own_steps(name):
    assert OURS[name]._steps is not Protocol._steps
    for example in OURS[name].examples():
        answer = example.domain.example
        *steps, said = example.explain(answer, example.privatize([answer]).to_bytes())
        assert steps
        assert said.text == "What the report says:"
        assert said.outcome


def stated(protocol, answer):
    """The probabilities in the steps, as shares."""
    text = " ".join(step.text for step in protocol.explain(answer, protocol.privatize([answer]).to_bytes()))
    return [float(number) / 100 for number in re.findall(r"([0-9.]+)\N{NO-BREAK SPACE}%", text)]


def test_the_stated_probabilities_are_those_of_the_bytes():
    # Of GRR a kept answer comes once more by chance, of a bitmap each bit is what it is: from the enumerated law.
    grr = GRR(["a", "b", "c"], epsilon=1)
    (keep,) = stated(grr, "a")
    law = grr.channel()
    assert keep + (1 - keep) / 3 == pytest.approx(float(law.probability("a", "00")), abs=1e-4)
    oue = OUE(["a", "b", "c"], epsilon=1)
    other, own = stated(oue, "a")
    bits = {output: int(str(output), 16) for output in oue.channel().outputs}
    chances = [
        sum(float(oue.channel().probability("a", output)) for output, byte in bits.items() if byte >> place & 1)
        for place in range(3)
    ]
    assert chances == pytest.approx([own, other, other], abs=1e-4)
    subset = SubsetSelection(5, epsilon=1, subset_size=2)
    assert stated(subset, 0) == pytest.approx([float(subset.p)], abs=1e-4)
    window = Window(Interval(0, 10), 1, 3, 1)
    assert stated(window, 6.0) == pytest.approx([0.2, float(window.keep)], abs=1e-4)


def test_each_stage_has_its_own_probability():
    lgrr = LGRR(["a", "b", "c"], first=1, forever=2)
    kept, sent = stated(lgrr, "a")
    states = exhaust(lambda bits: lgrr.permanent("a", bits)).law
    assert kept + (1 - kept) / 3 == pytest.approx(float(states[bytes([0])]), abs=1e-4)
    reports = exhaust(lambda bits: lgrr.report_from(bytes([0]), bits)).law
    assert sent + (1 - sent) / 3 == pytest.approx(float(reports[bytes([0])]), abs=1e-4)


def test_the_range_that_is_named_holds_the_number():
    ranges = Ranges(Integers(0, 3), 1, fanout=2)
    said = {ranges.explain(2, ranges.privatize([2]).to_bytes())[1].text for _ in range(40)}  # one level: 2e-12
    assert {re.search(r"Of (\d) ranges.* lies in range (\d)\.", text).groups() for text in said} == {
        ("2", "1"),
        ("4", "2"),
    }


def test_what_is_no_answer_or_no_report_is_refused():
    grr = GRR(["a", "b", "c"], epsilon=1)
    with pytest.raises(ReportError, match="no report of this protocol"):
        grr.explain("a", bytes([7]))
    with pytest.raises(ReportError, match="1 bytes"):
        grr.explain("a", bytes(2))
    with pytest.raises(DomainError):
        grr.explain("z", bytes(1))


def test_a_report_that_speaks_for_several_answers_names_them():
    assert OUE(["a", "b", "c"], epsilon=1).spoken(bytes([5])) == "it speaks for a, c"
    assert OUE(["a", "b", "c"], epsilon=1).spoken(bytes([0])) == "it speaks for no answer"
    assert OUE(40, epsilon=1).spoken(bytes([255] * 5)).endswith("and 28 more")

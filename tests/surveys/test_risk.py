"""What a question risks: every figure and sentence of every registered kind against the laws of its reports."""

from __future__ import annotations

from fractions import Fraction

import pytest

import deniable as dn
from deniable.domains import ListedDomain
from deniable.privacy import Evidence, recurrence, surest
from deniable.protocols import Memoized, registered
from deniable.protocols.law import ANY, METRIC, STREAM
from deniable.protocols.traits import waived
from deniable.surveys.risk import Known, estimated, of_survey, percent, percent_up, reports_in_a_year, risks

LOCAL = {name: kind for name, kind in registered().items() if kind.traits.local}
KINDS = [(name, number, one) for name, kind in LOCAL.items() for number, one in enumerate(kind.examples())]
FEW = 1 << 12


@pytest.fixture(scope="module")
def laws():
    """Of each example: the evidence about pairs of inputs that its guarantee is about, and that about all answers."""
    found = {}
    for name, number, protocol in KINDS:
        if protocol.guarantee.relation == STREAM:
            rows = list(protocol.law().kept.streams().values())
            pairs = [(a, b) for a in rows for b in rows if a is not b]
            found[name, number] = [_of(a, b) for a, b in pairs], None
        elif protocol.law().forms * protocol.law().input_count <= FEW:
            channel = protocol.channel()
            every = Evidence.of([int(entry) for entry in column] for column in channel.numerators.T)
            pairs = list(protocol.law().related())
            if protocol.guarantee.relation == METRIC:
                one = [next(iter(mix)) for mix, _ in pairs]
                other = [next(iter(mix)) for _, mix in pairs]
                inputs = channel.inputs
                apart = [protocol.law().distance(inputs[a], inputs[b]) for a, b in zip(one, other, strict=True)]
                pairs = [pair for pair, distance in zip(pairs, apart, strict=True) if distance == 1]
            mixed = [_mixed(every, *pair) for pair in pairs]
            found[name, number] = mixed, every
    return found


def _of(one, other):
    columns = [[law.get(y, Fraction(0)) for law in (one, other)] for y in one | other]
    scale = max(entry.denominator for column in columns for entry in column)
    return Evidence.of([int(entry * scale) for entry in column] for column in columns)


def _mixed(every, one, other):
    rows = [*one, *other]
    groups = [0] * len(one) + [1] * len(other)
    return every.picked(rows).mixed(groups, [*one.values(), *other.values()])


def guessed(protocol, every):
    """How often the best guess is right: of the answer, or of the column that is easiest to guess."""
    inputs = [label if isinstance(label, tuple) else (label,) for label, _ in protocol.law().inputs()]
    if len(protocol.worth(1).parts) == 1 or not hasattr(protocol, "groups"):
        return float(every.success())
    found = []
    for column in zip(*inputs, strict=True):
        values = list(dict.fromkeys(column))
        groups = [values.index(value) for value in column]
        weights = [Fraction(1, column.count(value)) for value in column]
        found.append(float(every.mixed(groups, weights).success()))
    return max(found[len(protocol.law().clear) :])


@pytest.mark.floats
@pytest.mark.parametrize(("name", "number", "protocol"), KINDS, ids=[f"{name}-{number}" for name, number, _ in KINDS])
def test_figures_and_sentences_of_every_kind_hold(name, number, protocol, laws):
    found = risks(protocol, 1000, reports=2, household=2, levels=())
    row, told = found.own, " ".join(found.words)
    assert told.count("%") >= 2
    assert percent_up(row.sure_from_half) in told
    assert percent_up(row.sure_from_tenth) in told
    assert ("is told as" in told or "are told as" in told) == bool(protocol.law().clear)
    assert ("up to a probability" in told) == bool(protocol.guarantee.delta)
    assert (protocol.guarantee.over in told) == (protocol.guarantee.relation != ANY)
    assert ("outweighs" in told) == (row.leverage is not None)
    if (name, number) not in laws:
        return
    pairs, every = laws[name, number]
    if not protocol.guarantee.delta:
        worst = max(pair.ratio for pair in pairs)
        assert float(surest(worst)) <= row.sure_from_half + 1e-12
        assert float(surest(worst)) == pytest.approx(row.sure_from_half, abs=1e-9) or waived(protocol)
        assert float(surest(worst, "1/10")) <= row.sure_from_tenth + 1e-12
    if row.guess is not None and every is not None and protocol.guarantee.relation in (ANY, METRIC):
        assert guessed(protocol, every) == pytest.approx(row.guess, abs=1e-9)
    twice = max(float((pair * pair).success()) for pair in pairs)
    assert row.household is None or twice <= row.household + 1e-9
    assert not row.exact or twice == pytest.approx(row.household, abs=1e-6)
    if isinstance(protocol, Memoized) and isinstance(protocol.domain, ListedDomain):
        a, b = protocol.domain.labels[:2]
        kept = recurrence(protocol, [[a, a], [b, b]]).success()
        assert kept is None or kept <= row.year + 1e-9
    elif protocol.traits.fresh:
        assert twice <= row.year + 1e-9
    else:
        assert max(float(pair.success()) for pair in pairs) <= row.year + 1e-9


def test_a_figure_that_is_too_small_is_found_out(laws, monkeypatch):
    """A ratio that is too small fails the test above."""
    honest = dn.GRR.law
    monkeypatch.setattr(dn.GRR, "law", lambda self: honest(self).but(kept=honest(self).kept.but(ratio=Fraction(2))))
    with pytest.raises(AssertionError):
        test_figures_and_sentences_of_every_kind_hold("GRR", 0, next(dn.GRR.examples()), laws)


def test_what_the_survey_says_about_a_year_and_what_its_estimate_tells():
    question = {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"], "epsilon": 1, "protocol": "GRR"}
    terms = {"owner": "Institute", "purpose": "a study", "epochs": {"days": 30}, "days": 3000}
    survey = dn.Survey.from_draft(
        {"name": "habits", "questions": [question], "longitudinal": {"rule": "none", "epochs": 20}} | terms
    )
    assert reports_in_a_year(survey) == 12
    protocol = survey["smoke"].protocol
    tally = protocol.tally(protocol.privatize(["yes"] * 300 + ["no"] * 700, dn.Simulation(1)))
    known = estimated(protocol, tally)
    found = of_survey(survey, known={"smoke": known}, levels=())["smoke"]
    assert sum(known.shares) == pytest.approx(1)
    assert f"gave no {percent(known.shares[1])} before" in " ".join(found.words)
    assert found.own.sure_from_share == pytest.approx(surest(protocol.ratio, known.shares[1]))
    assert estimated(protocol, protocol.empty()) is None
    # Too many reports to list: the guess is simulated, and says so.
    wide = risks(dn.OUE(40, 3), known=Known(("a",) * 40, (0.22, *[0.02] * 39)), levels=())
    assert "in about" in " ".join(wide.words)
    assert 0.22 < wide.own.knowing < wide.own.sure_from_share

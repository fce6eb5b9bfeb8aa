"""Answers that change: whole streams by enumeration, shares of every epoch, and surveys that ask for them."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from deniable import exact
from deniable.collect.client import Ledger
from deniable.conformance.protocols import check_streams
from deniable.domains import Strings
from deniable.errors import DeniableError, DomainError, NumberError, ReportError, SpecError
from deniable.exact import Dyadic
from deniable.privacy import CannotCompose, compose
from deniable.protocols import GRR, Evolving, Tally
from deniable.randomness import Simulation
from deniable.surveys import Question, Survey
from deniable.surveys.promises import promises
from deniable.surveys.results import Repeats, find
from deniable.surveys.terms import Longitudinal
from tests.collect.surveys import terms

LEVELS = ["0.01", "1", "8"]
SIZES = [(1, 0, 2), (2, 1, 2), (3, 1, 2), (4, 0, 2), (4, 1, 2), (4, 2, 2), (2, 1, 3)]


def largest(protocol):
    laws = protocol.law().kept.streams()
    sent = set().union(*laws.values())
    assert all(law.keys() == sent for law in laws.values())
    return max(max(law[y] for law in laws.values()) / min(law[y] for law in laws.values()) for y in sent)


@pytest.mark.parametrize(("epochs", "changes", "answers"), SIZES)
@pytest.mark.parametrize("epsilon", LEVELS)
def test_a_whole_stream_has_exactly_the_level_of_one_bit(epsilon, epochs, changes, answers):
    protocol = Evolving(answers, epsilon, epochs, changes)
    found = largest(protocol)
    assert exact.exp_at_least(protocol.epsilon, found)
    # Streams that use all their changes in different parts reach it.
    assert found == protocol.law().kept.ratio
    assert float(protocol.epsilon) - exact.log(found) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("changes", [0, 1])
def test_eight_epochs_too(changes):
    protocol = Evolving(2, 1, epochs=8, changes=changes)
    assert largest(protocol) == protocol.law().kept.ratio


def test_a_law_that_tells_more_would_be_caught(monkeypatch):
    """A bit that is kept more often, and a device that reports all of its changes."""
    protocol = Evolving(2, 1, epochs=4, changes=1)
    check_streams(protocol)
    monkeypatch.setitem(protocol.__dict__, "keep", Dyadic(protocol.keep.numerator + (1 << 50)))
    with pytest.raises(AssertionError, match="more than is promised"):
        check_streams(protocol)
    monkeypatch.undo()
    stepped = Evolving._stepped

    def every(own, state, *more):
        return stepped(own, state._replace(slot=min(state.seen, own.changes) + 1), *more)

    monkeypatch.setattr(Evolving, "_stepped", every)
    with pytest.raises(AssertionError, match="more than is promised"):
        check_streams(Evolving(2, 1, epochs=4, changes=1))


@pytest.mark.parametrize(("epochs", "changes", "answers"), [(4, 2, 2), (3, 1, 3), (2, 0, 3)])
def test_every_part_of_the_tree_has_the_mean_of_its_changes(epochs, changes, answers):
    """Exactly: the mean bit of a part is the change of the followed answer in it, divided by the stretch."""
    protocol = Evolving(answers, 1, epochs, changes)
    scale = Fraction(protocol.weight, 2) / (2 * protocol.keep.value - 1)
    width, parts = protocol.report_bytes, protocol.parts_of_tree
    for stream, law in protocol.law().kept.streams().items():
        total = np.zeros((protocol.followed, parts, 2), dtype=object)
        for sent, chance in law.items():
            for at in range(0, len(sent), width):
                number = int.from_bytes(sent[at : at + width], "little")
                if number < protocol.tally_size - 1:
                    followed, rest = divmod(number, 2 * parts)
                    total[followed, rest // 2, rest % 2] += chance
        for followed, part in product(range(protocol.followed), range(parts)):
            target = 1 if answers == 2 else followed
            held = [Fraction(1, 2), *(Fraction(int(value == target)) for value in stream)]
            begin, end = protocol.edges[part]
            away, towards = total[followed, part]
            assert away + towards == Fraction(1, protocol.followed * protocol.depth)
            assert scale * (towards - away) / (away + towards) == held[end] - held[begin]


def some_people(n, epochs, changes, answers, seed=1):
    random = np.random.default_rng(seed)
    held, moments = random.integers(0, answers, n), random.integers(1, 2 * epochs, (n, changes))
    streams = np.empty((n, epochs), dtype=np.int64)
    for epoch in range(epochs):
        held = np.where((moments == epoch).any(axis=1), (held + 1) % answers, held)
        streams[:, epoch] = held
    return streams


def collected(protocol, streams, seed):
    tallies = [protocol.tally(reports) for reports in protocol.streams(streams, Simulation(seed))]
    return protocol.estimate(Tally.sum(tallies))


@pytest.mark.parametrize(("epochs", "changes", "answers"), [(8, 2, 2), (5, 1, 3)])
def test_bands_and_the_total_cover_the_truth(epochs, changes, answers):
    """100 collections: each interval covers 86 of them or more, but once in 10^4 times; 14 are looked at."""
    protocol = Evolving(answers, 1, epochs, changes)
    streams = some_people(2_000, epochs, changes, answers)
    truth = np.stack([(streams == answer).mean(axis=0) for answer in range(answers)])
    found = [collected(protocol, streams, seed) for seed in range(100)]
    inside = [(r.interval()[..., 0] <= truth) & (truth <= r.interval()[..., 1]) for r in found]
    assert np.mean(inside, axis=0).min() >= 0.86
    z = np.array([(r.frequencies - truth) / r.stderr for r in found])
    assert 0.85 < z.std() < 1.15
    totals = np.array([(r.total[0] - truth.mean(axis=1)) / r.total[1] for r in found])
    assert 0.75 < totals.std() < 1.25
    assert found[0].stderr.max() == pytest.approx(protocol.worth(2_000).noise, rel=0.1)


def test_one_device_draws_like_many():
    """The steps of single devices and the streams of many have one law: both give the same shares."""
    protocol = Evolving(2, 4, epochs=4, changes=1)
    streams = some_people(4_000, 4, 1, 2)
    bits, reports = Simulation(3), []
    for stream in streams:
        state = protocol.begin(bits)
        for epoch, value in enumerate(stream, start=1):
            state, report = protocol.step(state, int(value), epoch, bits)
            reports.append(report)
    alone = protocol.estimate(protocol.tally(np.array([list(report) for report in reports], dtype=np.uint8)))
    many = collected(protocol, streams, 4)
    gap = (alone.frequencies - many.frequencies) / np.hypot(alone.stderr, many.stderr)
    assert np.abs(gap).max() < 5  # by chance once in 10^5 times


def test_changes_beyond_the_cap_do_not_count():
    protocol = Evolving(["a", "b"], 64, epochs=4, changes=1)
    restless = np.tile(np.array(["a", "b", "a", "b"], dtype=object), (3_000, 1))
    found = collected(protocol, restless, 1)
    assert np.abs(found.frequencies[1] - [0, 1, 1, 1]).max() < 0.3


def test_epochs_of_which_nothing_is_known():
    protocol = Evolving(["no", "yes"], 1, epochs=4, changes=1)
    nothing = protocol.estimate(protocol.empty())
    assert np.isnan(nothing.frequencies).all()
    assert nothing.interval().tolist() == [[[0.0, 1.0]] * 4] * 2
    reports = protocol.streams([["no"] * 4] * 500, Simulation(1))
    first = protocol.estimate(protocol.tally(reports[0]))
    assert np.isnan(first.frequencies[0]).tolist() == [False, True, True, True]
    # The second epoch ends a part of one epoch and a part of two: both lead to the first.
    second = protocol.estimate(protocol.tally(reports[1]))
    assert np.isnan(second.frequencies[0]).tolist() == [False, False, True, True]
    json.dumps(second.to_dict())


def test_devices_may_miss_epochs():
    protocol = Evolving(["no", "yes"], 4, epochs=4, changes=1)
    bits, reports = Simulation(1), []
    for _ in range(3_000):
        state = protocol.begin(bits)
        for epoch, answer in ((1, "no"), (3, "yes"), (4, "yes")):
            state, report = protocol.step(state, answer, epoch, bits)
            reports.append(report)
    found = protocol.estimate(protocol.tally(np.array([list(report) for report in reports], dtype=np.uint8)))
    assert (np.abs(found.frequencies[1] - [0, 0, 1, 1]) / found.stderr[1])[[0, 2, 3]].max() < 5


def test_levels_and_composition():
    protocol = Evolving(["no", "yes"], 1, epochs=30, changes=2)
    assert [round(level, 3) for level in protocol.levels()] == [0.374, 0.185, 1.0, 1.0]
    assert protocol.law().kept.lifetime(30) == 1
    whole = compose(protocol)
    assert (whole.relation, whole.epsilon, whole.ratio) == ("stream", 1, protocol.law().kept.ratio)
    assert compose(protocol, times=30, how="longitudinal").epsilon == 1
    with pytest.raises(CannotCompose):
        compose(protocol, times=2)
    with pytest.raises(CannotCompose):
        compose(protocol, GRR(2, 1))


def test_what_is_refused():
    for wrong in (
        lambda: Evolving(["one"], 1, 4, 1),
        lambda: Evolving(1000, 1, 4, 1),
        lambda: Evolving(2, 1, 0, 1),
        lambda: Evolving(2, 1, 4, -1),
        lambda: Evolving(2, 1, 4.0, 1),
        lambda: Evolving(Strings(), 1, 4, 1),
    ):
        with pytest.raises((DomainError, NumberError)):
            wrong()
    protocol = Evolving(2, 1, 4, 1)
    with pytest.raises(ReportError, match="begin"):
        protocol.step(b"yes", 1, 1)
    with pytest.raises(NumberError, match="1 to 4"):
        protocol.step(protocol.begin(), 1, 5)


# -- surveys ------------------------------------------------------------------------------------------


def evolving(epochs=40, changes=2):
    rule = Longitudinal("evolving", epochs, changes=changes)
    asked = terms(longitudinal=rule, budget=1)
    protocol = Evolving(["no", "yes"], 1, epochs, changes)
    return Survey(
        "evolving", [Question("ill", "?", protocol)], replace(asked, budget=replace(asked.budget, relation="stream"))
    )


def test_a_survey_promises_the_whole_stream():
    survey = evolving()
    assert (survey.lifetime_epsilon, survey.budget_epsilon, survey.draws) == (1, 1, 1)
    assert survey.realized_lifetime_epsilon == pytest.approx(1)
    assert Survey.from_spec(json.loads(survey.to_json())) == survey
    said = promises(survey)
    assert "cannot tell whether what arrives is what you chose" in said["line"]
    assert "73.2 % sure of one of them from all your reports" in said["sure"]
    assert Repeats.of(survey.terms, [5] * 40) == Repeats()
    tally = survey["ill"].protocol.empty()
    assert find(survey["ill"].protocol, tally).kind == "series"


def test_surveys_whose_parts_do_not_fit():
    with pytest.raises(SpecError, match="epochs"):
        evolving(epochs=30)
    survey = evolving()
    for rule in (Longitudinal("none", 1), Longitudinal("evolving", 40, changes=3)):
        with pytest.raises(SpecError):
            Survey("x", survey.questions, replace(survey.terms, longitudinal=rule))
    with pytest.raises(SpecError, match="Evolving"):
        Survey("x", [Question("ill", "?", GRR(2, 1))], replace(survey.terms, budget=terms().budget))
    for wrong in (
        {"rule": "evolving"},
        {"rule": "none", "changes": 1},
        {"rule": "evolving", "changes": 1, "values": 2},
    ):
        with pytest.raises(DeniableError):
            Longitudinal(**wrong, epochs=4)


def test_a_draft_asks_for_it():
    draft = {
        "name": "weekly",
        "owner": "Example Institute",
        "purpose": "To test.",
        "opens": "2026-11-01T00:00:00Z",
        "days": 6,
        "epochs": {"days": 1},
        "people": 1000,
        "epsilon": 1,
        "longitudinal": {"rule": "evolving", "changes": 1, "epochs": 6},
        "questions": [{"id": "ill", "text": "?", "answers": ["no", "yes"]}],
    }
    survey = Survey.from_draft(draft)
    assert survey["ill"].protocol == Evolving(["no", "yes"], 1, 6, 1)
    assert survey.terms.budget.relation == "stream"


def test_a_ledger_goes_on_with_its_state(tmp_path):
    survey, path = evolving(), tmp_path / "ledger.sqlite"
    sent, first = [], survey.terms.first
    for epoch in range(first, first + 12):
        # A new process each time: what is drawn once stays.
        made, _ = Ledger(path).submit(survey, epoch, {"ill": "yes" if epoch > first + 5 else "no"})
        sent.append((made.epsilon, len(made.body), int.from_bytes(made.body[24:], "little")))
    assert [epsilon for epsilon, _, _ in sent] == [1] + [0] * 11
    assert len({length for _, length, _ in sent}) == 1
    protocol = survey["ill"].protocol
    parts = [number // 2 for _, _, number in sent if number < protocol.tally_size - 1]
    lengths = {int(np.diff(protocol.edges[part])[0]) for part in parts}
    assert len(lengths) <= 1
    assert parts == sorted(set(parts))
    assert Ledger(path).budgets()[0].spent == 1
    assert Ledger(path).remembered() == [(survey.fingerprint, "ill", 1)]

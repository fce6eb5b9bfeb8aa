"""The ledger under two stages: states are kept, reports are fresh, and a state is paid for once, in full."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
from fractions import Fraction

import pytest

from deniable.collect.client import BudgetSpent, Ledger, LedgerError
from deniable.collect.client.ledger import STEPS
from deniable.protocols import LGRR
from deniable.surveys import Question, Survey
from deniable.surveys.terms import Longitudinal
from tests.collect.surveys import terms


def staged(values: int, epochs: int = 400, budget: int = 100, first: int = 4, forever: int = 6) -> Survey:
    rule = Longitudinal("two-stage", epochs, values, Fraction(first), Fraction(forever))
    question = Question("n", "Which?", LGRR(8, first=first, forever=forever))
    return Survey("staged", [question], terms(longitudinal=rule, budget=budget))


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite")


def states(ledger: Ledger) -> list[tuple[bytes, bytes]]:
    with sqlite3.connect(ledger.path) as connection:
        rows = connection.execute("SELECT value, drawn FROM memo ORDER BY question, place").fetchall()
    connection.close()
    return [(bytes(value), bytes(state)) for value, state in rows]


def sent(ledger: Ledger, survey: Survey, answers, start: int = 0) -> list[int]:
    return [ledger.submit(survey, epoch, {"n": n})[0].body[-1] for epoch, n in enumerate(answers, start)]


def test_a_state_is_drawn_once_per_value_and_reports_come_from_it(ledger):
    """Each report is its state with probability .90: fewer than 6 of 20, or 200 of 200, have a chance below 1e-8."""
    survey = staged(values=2)
    for start in (0, 60, 120):
        reports = sent(Ledger(ledger.path), survey, [3] * 20 + [4] * 20 + [7] * 20, start)
        kept = states(ledger)
        assert len(kept) == 2
        for place, (_, state) in enumerate([*kept, kept[0]]):
            assert reports[20 * place : 20 * place + 20].count(state[0]) >= 6
        assert states(ledger) == kept, "another process repeats the states"
    whole = sent(ledger, survey, [3] * 200, 180)
    assert len(set(whole)) > 1, "reports are drawn afresh"


def test_each_state_is_debited_once_at_the_level_of_all_its_reports(ledger):
    survey = staged(values=2, budget=12)
    debits = [ledger.submit(survey, epoch, {"n": 3})[0].epsilon for epoch in range(6)]
    assert debits == [6, 6, 0, 0, 0, 0]
    assert ledger.budgets()[0].spent == survey.budget_epsilon == 12
    assert survey.epsilon == 4, "not the level of a first report"


@pytest.mark.parametrize("values", [1, 2])
def test_debits_and_refusals_do_not_depend_on_the_answers(tmp_path, values):
    survey, traces = staged(values, epochs=3), set()
    for answers in itertools.product(range(2), repeat=4):
        ledger, seen = Ledger(tmp_path / ("".join(map(str, answers)) + ".sqlite")), []
        for epoch, n in enumerate(answers):
            try:
                seen.append(str(ledger.submit(survey, epoch, {"n": n})[0].epsilon))
            except BudgetSpent as refused:
                seen.append(str(refused))
        traces.add(tuple(seen))
    assert len(traces) == 1


def test_with_one_state_nothing_after_the_first_answer_matters(ledger, tmp_path):
    """Whatever is answered later, the file holds the first answer and its state, and nothing else of them."""
    survey = staged(values=1)
    sent(ledger, survey, [4])
    kept = states(ledger)
    sent(ledger, survey, [1, 2, 3, 0, 7], start=1)
    assert states(ledger) == kept


def test_leaving_deletes_states_and_coming_back_pays_for_new_ones(ledger):
    survey = staged(values=1)
    assert ledger.submit(survey, 0, {"n": 5})[0].epsilon == 6
    assert ledger.remembered() == [(survey.fingerprint, "n", 1)]
    ledger.opt_out(survey.fingerprint)
    assert states(ledger) == []
    ledger.opt_in(survey.fingerprint)
    assert [ledger.submit(survey, epoch, {"n": 5})[0].epsilon for epoch in (1, 2)] == [6, 0]
    ledger.withdraw()
    assert states(ledger) == []


def test_a_restored_copy_has_its_states_and_gives_the_same_ids(ledger, tmp_path):
    survey, copy = staged(values=2), tmp_path / "copy.sqlite"
    sent(ledger, survey, [1, 2])
    shutil.copy(ledger.path, copy)
    kept, one = states(ledger), ledger.submit(survey, 2, {"n": 1})[0]
    shutil.copy(copy, ledger.path)
    again = Ledger(ledger.path)
    assert states(again) == kept
    assert again.submit(survey, 2, {"n": 2})[0].id == one.id, "counted once, although a second sample has left"


class Killed(BaseException):
    pass


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_draws_no_second_state_that_leaves(ledger, step):
    """Stopped at each step of the first answer, then done again: one state, one debit, and what waits is the same."""
    survey = staged(values=1)

    def stop(reached: str) -> None:
        if reached == step:
            raise Killed

    ledger._step = stop
    with pytest.raises(Killed):
        ledger.submit(survey, 0, {"n": 5})
    again = Ledger(ledger.path)
    waiting, before = again.queued(survey.fingerprint), states(again)
    assert bool(waiting) == bool(before) == (step == "committed"), "state, debit and bytes are written together"
    made, fresh = again.submit(survey, 0, {"n": 6})
    assert fresh == (step != "committed")
    assert not waiting or (waiting[0].body == made.body and states(again) == before)
    assert len(states(again)) == 1
    assert again.budgets()[0].spent == 6


def test_a_state_that_is_none_is_a_damaged_ledger(ledger):
    survey = staged(values=1)
    sent(ledger, survey, [4])
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("UPDATE memo SET drawn = x'09'")
    connection.close()
    with pytest.raises(LedgerError, match="damaged") as refused:
        sent(ledger, survey, [4], start=1)
    assert "4" not in str(refused.value)
    assert len(ledger.submissions()) == 1, "nothing was recorded"

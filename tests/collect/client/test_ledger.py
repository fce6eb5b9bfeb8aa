"""The ledger: caps hold, refusals and debits do not depend on answers, and what is not sound is not used."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
import stat
from dataclasses import replace
from fractions import Fraction

import pytest

from deniable.channels import Channel
from deniable.collect.client import (
    BudgetSpent,
    Ledger,
    LedgerError,
    OptOuts,
    OtherRelation,
    Untrusted,
    default_path,
)
from deniable.errors import DomainError
from deniable.protocols import GRR, Table
from deniable.protocols.profiles import ProfileGraph, Warner
from deniable.surveys import Question, Survey
from deniable.surveys.terms import Budget, Longitudinal
from tests.collect.surveys import SMOKE, daily, memoized, mixed, terms

unix = pytest.mark.skipif(os.name == "nt", reason="permissions as on Unix")

MOODS = ("good", "fair", "bad")
YES = {"smoke": "yes"}
MIXED = {"smoke": "yes", "drink": 1, "age": 2, "town": 3}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path):
    return Ledger(path)


def changing(values: int, epochs: int = 30, budget: int = 10) -> Survey:
    question = Question("n", "Which?", GRR(8, epsilon=1))
    return Survey("changing", [question], terms(longitudinal=Longitudinal("memoize", epochs, values), budget=budget))


def grouped(name: str, budget: int, epochs: int = 1) -> Survey:
    return Survey(name, [SMOKE], terms(longitudinal=Longitudinal(epochs=epochs), budget=budget))


# -- caps ------------------------------------------------------------------------------------------------


def test_a_budget_is_shared_by_the_surveys_of_a_group_and_the_smallest_cap_counts(ledger):
    ledger.submit(grouped("first", budget=10), 0, YES)
    ledger.submit(grouped("second", budget=2), 0, YES)
    said = (
        r"for the group 'tests' .* epsilon 2 of 2 is spent, 0 is left, and the answer would cost 1; nothing was drawn"
    )
    with pytest.raises(BudgetSpent, match=said):
        ledger.submit(grouped("third", budget=10), 0, YES)
    (spent,) = ledger.budgets()
    assert (spent.cap, spent.spent, spent.left, len(spent.surveys)) == (2, 2, 0, 2)


def test_renewing_a_survey_resets_nothing(ledger):
    for year in range(5):
        ledger.submit(grouped(f"year {year}", budget=5), 0, YES)
    with pytest.raises(BudgetSpent):
        ledger.submit(grouped("year 6", budget=5), 0, YES)


@pytest.mark.parametrize("rule", ["none", "memoize"])
def test_a_long_survey_is_answered_once_over_all_of_its_epochs(ledger, rule):
    draft = {"name": "long", "owner": "Acme", "purpose": "to plan", "days": 30, "epsilon": "1", "people": 100}
    asked = {"id": "smoke", "text": "?", "answers": ["yes", "no"]}
    survey = Survey.from_draft(draft | {"questions": [asked], "longitudinal": {"rule": rule, "epochs": 1}})
    assert survey.terms.count == 30
    first, _ = ledger.submit(survey, 3, YES)
    for epoch in (*range(3), *range(4, 30)):
        with pytest.raises(BudgetSpent, match="has answered once, as often as the survey allows"):
            ledger.submit(survey, epoch, YES)
    assert ledger.submit(survey, 3, YES) == (first, False)
    (spent,) = ledger.budgets()
    assert (spent.spent, len(ledger.submissions())) == (1, 1)


def test_levels_are_added_exactly(ledger):
    third = Question("q", "?", GRR(2, epsilon="1/3"))
    survey = Survey("thirds", [third], terms(longitudinal=Longitudinal(epochs=3), budget=1))
    for epoch in range(3):
        ledger.submit(survey, epoch, {"q": 0})
    (spent,) = ledger.budgets()
    assert (spent.spent, spent.left) == (Fraction(1), 0)


# -- memoized answers ------------------------------------------------------------------------------------


def test_a_value_repeats_its_report_and_at_the_cap_the_first_one_is_repeated(ledger):
    survey = changing(values=2)
    reports = {}
    for epoch, value in enumerate([5, 5, 6, 5, 6, 7, 0, 6]):
        reports[epoch] = ledger.submit(survey, epoch, {"n": value})[0].body[-1]
    assert reports[0] == reports[1] == reports[3] == reports[5] == reports[6]
    assert reports[2] == reports[4] == reports[7]
    with sqlite3.connect(ledger.path) as connection:
        assert connection.execute("SELECT count(*) FROM memo").fetchone() == (2,)
    connection.close()
    assert ledger.budgets()[0].spent == 2


def test_with_one_value_everything_depends_on_the_first_answer_alone(ledger, path):
    survey = changing(values=1)
    ledger.submit(survey, 0, {"n": 4})
    copy, sent = path.read_bytes(), set()
    for rest in [(1, 2, 3), (0, 0, 0), (7, 6, 5)]:
        path.write_bytes(copy)
        sent.add(tuple(Ledger(path).submit(survey, epoch, {"n": n})[0].body for epoch, n in enumerate(rest, start=1)))
    assert len(sent) == 1


def test_each_question_is_memoized_on_its_own(ledger):
    questions = [Question(id, "?", GRR(4, epsilon=1)) for id in ("a", "b")]
    survey = Survey("two", questions, terms(longitudinal=Longitudinal("memoize", 9, 2), budget=4))
    bodies = [
        ledger.submit(survey, epoch, {"a": a, "b": b})[0].body[-2:]
        for epoch, (a, b) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)])
    ]
    assert bodies[0][:1] + bodies[3][1:] == bodies[1]
    assert bodies[3][:1] + bodies[0][1:] == bodies[2]
    assert ledger.budgets()[0].spent == 4


# -- nothing depends on the answers ----------------------------------------------------------------------


def trace(folder, survey: Survey, values) -> list:
    """Debits and refusals of a device with these answers."""
    ledger, seen = Ledger(folder / ("-".join(map(str, values)) + ".sqlite")), []
    for epoch, value in enumerate(values):
        try:
            seen.append(ledger.submit(survey, epoch, {"n": value})[0].epsilon)
        except BudgetSpent as refused:
            seen.append(str(refused))
    seen.append([known.spec() for known in ledger.budgets()])
    return seen


@pytest.mark.parametrize("values", [1, 2, 3])
def test_debits_and_refusals_do_not_depend_on_the_answers(tmp_path, values):
    survey = changing(values, epochs=4, budget=3)
    traces = [trace(tmp_path, survey, answers) for answers in itertools.product(range(2), repeat=5)]
    assert all(seen == traces[0] for seen in traces)
    assert "as often as the survey allows" in traces[0][4]


def test_the_check_would_notice_a_debit_for_new_values_only(tmp_path, monkeypatch):
    from deniable.collect.client import ledger as ledger_module

    def by_value(connection, survey, terms):
        return Fraction(connection.execute("SELECT count(*) FROM memo").fetchone()[0]), Fraction(0)

    monkeypatch.setattr(ledger_module, "_debit", by_value)
    survey = changing(2, epochs=4, budget=3)
    assert trace(tmp_path, survey, [0, 0, 0]) != trace(tmp_path, survey, [0, 1, 0])


def test_a_refusal_comes_before_the_answers_are_looked_at(ledger):
    class Untouchable:
        def __getattribute__(self, name):
            raise AssertionError("the answer was looked at")

    survey = daily()
    for epoch in range(5):
        ledger.submit(survey, epoch, YES)
    with pytest.raises(BudgetSpent):
        ledger.submit(survey, 5, {"smoke": Untouchable()})
    assert ledger.submit(survey, 4, {"smoke": Untouchable()})[1] is False


def test_a_bad_answer_costs_nothing_and_leaves_nothing(ledger):
    with pytest.raises(DomainError):
        ledger.submit(daily(), 0, {"smoke": "maybe"})
    assert ledger.submissions() == []
    assert ledger.budgets() == []
    assert ledger.submit(daily(), 0, YES)[1]


# -- owners ----------------------------------------------------------------------------------------------


def owned(owner: str, group: str, budget: int, name: str = "asked") -> Survey:
    made = terms(longitudinal=Longitudinal(epochs=1), budget=budget)
    return Survey(name, [SMOKE], replace(made, owner=owner, budget=Budget(group, Fraction(budget))))


def test_a_stranger_neither_drains_nor_lowers_the_budget_of_another_s_group(ledger):
    ledger.submit(owned("Institute", "health", 2, "first"), 0, YES)
    for number in range(3):
        stranger = owned("Stranger", "health", 1, f"stranger {number}")
        if number == 0:
            ledger.submit(stranger, 0, YES)
            continue
        with pytest.raises(BudgetSpent, match="budget of 'Stranger' for the group 'health'"):
            ledger.submit(stranger, 0, YES)
    assert ledger.submit(owned("Institute", "health", 2, "second"), 0, YES)[1]
    told = [(known.owner, known.group, known.cap, known.spent) for known in ledger.budgets()]
    assert told == [("Institute", "health", 2, 2), ("Stranger", "health", 1, 1)]
    assert ledger.spending(owned("Stranger", "health", 5).terms).cap == 1
    assert ledger.spending(owned("Nobody yet", "health", 5).terms).spent == 0


def test_owner_and_group_are_two_things(ledger):
    """Not one text made of both, which two pairs could share."""
    ledger.submit(owned("a", "b.c", 1), 0, YES)
    assert ledger.submit(owned("a.b", "c", 1), 0, YES)[1]


# -- deltas ----------------------------------------------------------------------------------------------

LEAKY = Question(
    "leak",
    "Yes or no?",
    Table(Channel.from_integers([[97, 2, 1], [2, 98, 0]], 100, ["yes", "no"], ["yes", "no", "sure"]), 4, delta="1/100"),
)


def leaky(name: str, delta: str) -> Survey:
    return Survey(name, [LEAKY], replace(terms(), budget=Budget("leaks", 100, delta)))


def test_deltas_are_debited_and_the_smallest_cap_counts(ledger):
    made, _ = ledger.submit(leaky("first", "1/40"), 0, {"leak": "yes"})
    assert (made.epsilon, made.delta) == (4, Fraction(1, 100))
    assert ledger.submissions()[0].delta == Fraction(1, 100)
    ledger.submit(leaky("second", "1/10"), 0, {"leak": "no"})
    third = leaky("third", "1/10")
    with pytest.raises(BudgetSpent, match=r"cost 4 and a delta of 1/100 \(1/200 is left\)"):
        ledger.submit(third, 0, {"leak": "no such answer"})
    spent = ledger.spending(third.terms)
    assert (spent.delta_cap, spent.delta_spent, spent.spent) == (Fraction(1, 40), Fraction(1, 50), 8)
    assert ledger.budgets()[0].spec()["delta_spent"] == "1/50"


def test_a_survey_without_a_delta_promises_that_its_group_has_none(ledger):
    pure = Survey("pure", [SMOKE], replace(terms(), budget=Budget("leaks", 100)))
    ledger.submit(pure, 0, YES)
    with pytest.raises(BudgetSpent, match=r"\(0 is left\)"):
        ledger.submit(leaky("later", "1/10"), 0, {"leak": "yes"})


def test_a_group_has_one_relation(ledger):
    """Refused before the answers are looked at, in both orders; another group is free."""
    hidden = Table(Warner(ProfileGraph.chain({"north": 0, "south": 1}), 1))
    profiled = Question("where", "Where from, and yes or no?", hidden)

    def asking(question: Question, group: str) -> Survey:
        budget = Budget(group, 100, relation=question.protocol.guarantee.relation)
        return Survey("asked", [question], replace(terms(), budget=budget))

    answers = {"where": {"profile": "north", "value": 0}}
    for first, second, given in ((SMOKE, profiled, YES), (profiled, SMOKE, answers)):
        group = f"of-{first.id}"
        ledger.submit(asking(first, group), 0, given)
        with pytest.raises(OtherRelation, match=f"group '{group}' .* never added"):
            ledger.submit(asking(second, group), 0, {second.id: "no such answer"})
    assert {known.group: known.relation for known in ledger.budgets()} == {"of-smoke": "any", "of-where": "profiles"}
    assert ledger.submit(asking(profiled, "elsewhere"), 0, answers)[0].body[24:] in (b"\0", b"\1")


# -- leaving ---------------------------------------------------------------------------------------------


def test_opting_out_deletes_what_only_that_survey_needs(path, ledger):
    ledger.submit(memoized(), 0, {"mood": "good"})
    ledger.submit(changing(values=2), 0, {"n": 5})
    ledger.opt_out(memoized().fingerprint)
    assert ledger.pinned(memoized().fingerprint) is None
    assert memoized().canonical not in path.read_bytes()
    assert ledger.surveys()[memoized().fingerprint] == "memoized", "a name to come back by"
    with sqlite3.connect(path) as connection:
        tables = ("memo", "id_key")
        left = {connection.execute(f"SELECT DISTINCT survey FROM {table}").fetchone() for table in tables}
    connection.close()
    assert left == {(changing(values=2).fingerprint,)}
    (dropped,) = ledger.submissions(memoized().fingerprint)
    assert (dropped.state, dropped.reason, dropped.body, dropped.id) == ("dropped", "optedOut", b"", b"")
    assert dropped.epsilon == 1, "what was spent stays spent"


def test_coming_back_draws_anew_and_pays_anew(ledger):
    again = changing(values=1, budget=10)
    ledger.submit(again, 0, {"n": 5})
    assert ledger.submit(again, 1, {"n": 5})[0].epsilon == 0
    ledger.opt_out(again.fingerprint)
    ledger.opt_in(again.fingerprint)
    assert ledger.submit(again, 2, {"n": 5})[0].epsilon == 1
    assert ledger.submit(again, 3, {"n": 5})[0].epsilon == 0


def test_a_copy_from_before_a_withdrawal_still_has_everything(path, ledger):
    """Which is why a withdrawal cannot reach backups; the docs say so."""
    ledger.submit(daily(), 0, YES)
    copy = path.read_bytes()
    ledger.withdraw()
    path.write_bytes(copy)
    assert Ledger(path).submit(daily(), 1, YES)[1]


# -- fails closed ----------------------------------------------------------------------------------------


def closed(path, match):
    for attempt in (
        lambda ledger: ledger.submit(daily(), 1, YES),
        lambda ledger: ledger.submit(daily(), 1, {"smoke": "no"}),
    ):
        with pytest.raises(LedgerError, match=match) as caught:
            attempt(Ledger(path))
        assert "\n" not in str(caught.value)


@unix
def test_a_ledger_that_others_can_read(path, ledger):
    ledger.submit(daily(), 0, YES)
    path.chmod(0o644)
    closed(path, "can be read by others: chmod 600")
    path.chmod(0o600)
    assert Ledger(path).submit(daily(), 1, YES)[1]


@pytest.mark.parametrize("damage", ["noise", "middle", "half"])
def test_a_damaged_ledger(path, ledger, damage):
    for epoch in range(5):
        ledger.submit(daily(), epoch, YES)
    content = bytearray(path.read_bytes())
    if damage == "noise":
        content[:100] = os.urandom(100)
    elif damage == "middle":
        content[4096:] = b"\xa5" * (len(content) - 4096)
    else:
        del content[len(content) // 2 // 4096 * 4096 :]
    path.write_bytes(content)
    closed(path, "damaged")


def test_a_database_of_something_else_or_of_the_future(path, ledger):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE other (x)")
    connection.close()
    closed(path, "something else")
    path.unlink()
    ledger.submit(daily(), 0, YES)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    closed(path, "newer")


def test_a_store_in_use_is_no_ledger(path):
    with sqlite3.connect(path, isolation_level=None) as store:
        store.execute("PRAGMA journal_mode = WAL")
        store.execute("CREATE TABLE survey (x)")
        store.execute("BEGIN IMMEDIATE")
        closed(path, "something else .such as the store of a service., not a ledger")
    store.close()
    closed(path, "not a ledger")
    with sqlite3.connect(path) as store:
        assert store.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()


def test_a_text_file_and_a_directory(path):
    path.write_text("dear diary, " * 1000)
    closed(path, "damaged, or no ledger")
    path.unlink()
    path.mkdir()
    closed(path, "cannot be used")


def test_amounts_that_are_not_numbers(path, ledger):
    ledger.submit(daily(), 0, YES)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE spending SET epsilon = 'a little'")
    connection.close()
    closed(path, "not a number")


def test_a_ledger_that_another_process_holds(path, ledger, monkeypatch):
    from deniable.collect.client import ledger_file

    ledger.submit(daily(), 0, YES)
    monkeypatch.setattr(ledger_file, "PATIENCE", 0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    closed(path, "another process")
    other.close()
    assert Ledger(path).submit(daily(), 1, YES)[1]


# -- files -----------------------------------------------------------------------------------------------


@unix
def test_only_the_owner_reads_the_files(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "new"))
    path = tmp_path / "new" / "deniable" / "ledger.sqlite"
    before = os.umask(0)
    try:
        ledger = Ledger()
        ledger.submit(daily(), 0, YES)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["ledger.sqlite"]


def test_only_the_default_directory_is_made(tmp_path):
    """A mistyped directory is no new device."""
    ledger = Ledger(tmp_path / "nope" / "ledger.sqlite")
    for attempt in (ledger.submissions, ledger.opt_out, lambda: ledger.submit(daily(), 0, YES)):
        with pytest.raises(LedgerError, match=r"there is no directory '.*nope' for a ledger"):
            attempt()
    assert list(tmp_path.iterdir()) == []


def test_looking_makes_no_files(path, ledger):
    assert ledger.surveys() == {}
    assert ledger.opt_outs() == OptOuts()
    assert ledger.submissions() == ledger.budgets() == ledger.queued("ab" * 32) == []
    assert ledger.pinned("ab" * 32) is None
    assert not ledger.opted_out("ab" * 32)
    assert list(path.parent.iterdir()) == []


def test_a_program_that_changes_its_directory_keeps_its_ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("mine.sqlite")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.submit(daily(), 0, YES)
    assert (tmp_path / "mine.sqlite").exists()


def test_where_data_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path() == tmp_path / "deniable" / "ledger.sqlite"
    assert Ledger().path == tmp_path / "deniable" / "ledger.sqlite"


def test_a_copied_ledger_is_the_same_device(path, ledger, tmp_path):
    ledger.submit(daily(), 0, YES)
    moved = Ledger(tmp_path / "moved.sqlite")
    shutil.copy(path, moved.path)
    assert moved.submit(daily(), 1, YES)[0].id == ledger.submit(daily(), 1, YES)[0].id


# -- opting out ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["daily", "ab" * 6, "AB" * 32, "ab" * 31 + "xy", ""])
def test_what_is_no_fingerprint_opts_out_of_nothing(path, ledger, given):
    for choose in (ledger.opt_out, ledger.opt_in):
        with pytest.raises(Untrusted, match="64 hexadecimal digits"):
            choose(given)
    assert not path.exists()


def test_what_the_device_takes_no_part_in(ledger):
    one, other = "ab" * 32, "cd" * 32
    ledger.opt_out(one)
    assert ledger.opt_outs() == OptOuts(surveys=(one,))
    ledger.opt_out()
    assert ledger.opt_outs() == OptOuts(everything=True)
    ledger.opt_in(other)
    assert ledger.opt_outs() == OptOuts(everything=True, but=(other,))
    assert ledger.opt_outs().spec() == {"everything": True, "surveys": [], "but": [other]}
    ledger.opt_in()
    assert ledger.opt_outs() == OptOuts()


def test_the_surveys_that_a_device_has_met(ledger):
    ledger.submit(daily(), 0, YES)
    ledger.pin(mixed())
    ledger.opt_out("ab" * 32)
    ledger.opt_out()
    ledger.opt_out("cd" * 32)
    assert ledger.surveys() == {daily().fingerprint: "daily", mixed().fingerprint: "mixed", "cd" * 32: ""}
    ledger.withdraw()
    assert set(ledger.surveys().values()) == {"daily", "mixed"}


def test_a_refusal_names_levels_as_people_write_them(ledger):
    question = Question("smoke", "?", GRR(["yes", "no"], epsilon="0.8"))
    first, second = (Survey(name, [question], terms(budget=Fraction("1.5"))) for name in ("first", "second"))
    ledger.submit(first, 0, YES)
    with pytest.raises(BudgetSpent, match=r"0\.8 of 1\.5 is spent, 0\.7 is left, and the answer would cost 0\.8"):
        ledger.submit(second, 1, YES)

"""`deniable answer` and `deniable ledger`."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from deniable.cli import app
from deniable.cli.answer import Spoken, _ask
from deniable.collect.client import Ledger, OptOuts
from deniable.domains import Interval, Strings
from deniable.errors import DomainError
from deniable.protocols import GRR, Attributes, FrequencyProtocol, KeyValue, OneBitMean, registered
from deniable.surveys import Longitudinal, Question, Survey
from deniable.surveys.promises import promises
from deniable.surveys.terms import write_time
from tests.cli.conftest import Ran, sane
from tests.collect.surveys import DAY, TODAY, all_surveys, daily, memoized, mixed, plain, terms, text
from tests.surveys.translated import GERMAN, translated


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("DENIABLE_LEDGER", str(tmp_path / "ledger.sqlite"))

    def invoke(*args, stdin=None, code=0):
        result = CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)
        ran = sane(Ran(result.exit_code, result.stdout, result.stderr))
        assert ran.code == code, (ran.code, ran.out, ran.err)
        return ran

    return invoke


@pytest.fixture
def address(server):
    survey = mixed()
    server.publish(survey)
    return ["answer", server.url, survey.fingerprint]


def kinds() -> Survey:
    """A question of every protocol that people answer by a choice or a text."""
    questions = []
    for name, family in registered().items():
        if not issubclass(family, FrequencyProtocol):
            continue
        for place, domain in enumerate((3, 20, Strings(cells=256, cohorts=8, key="kinds/text"))):
            try:
                questions.append(Question(f"{name}{place}".lower(), "?", family(domain, epsilon="0.8")))
            except DomainError:
                assert isinstance(domain, Strings)
    return Survey("kinds", questions, terms())


MIXED = ["smoke=no", "drink=3", "age=42", "town=7"]


def test_the_life_of_a_report_is_told_and_nothing_is_sent(run, address, server):
    told = run(*address, *MIXED, "--explain").out
    flat = " ".join(told.split())
    assert "smoke: the life of this report" in flat
    assert "1. A coin decides whether your answer is kept." in flat
    assert "What the report says:" in flat
    assert "Nothing was recorded or sent" in flat
    assert server.posts == []


def test_a_successor_is_shown_before_anything_is_asked(run, server):
    """What is different stands there before the question, and without a word of agreement nothing is sent."""
    before = plain()
    server.publish(before)
    run("answer", server.url, before.fingerprint, "smoke=yes")
    weaker = Question("smoke", "Do you smoke?", GRR(["yes", "no"], epsilon=2))
    after = Survey("plain", [weaker], replace(before.terms, replaces=before.fingerprint, retention="reports"))
    server.publish(after)
    command = ("answer", server.url, after.fingerprint, "smoke=yes")
    refused = run(*command, code=2).err
    assert "question smoke: epsilon: 1 -> 2 (weaker)" in refused
    assert "retention: tally -> reports (weaker)" in refused
    assert "protects you less" in refused
    assert "--accept-changes" in refused
    assert len(server.posts) == 1
    assert "protects you less" in run(*command, "--accept-changes").err
    assert len(server.posts) == 2


def test_answers_on_the_command_line_are_warned_of(run, server, address):
    assert "other users of this machine can read the answers" in run(*address, *MIXED).err
    assert "warning" not in run(*address, *MIXED, "--dry-run").err, "a rehearsal tells nothing"


@pytest.mark.parametrize("form", ["json", "lines", "stdin"])
def test_answers_from_a_file(server, address, tmp_path, form, run):
    """Nothing of an answer stands in an argument, and a refusal does not repeat it."""
    answers = {"smoke": "no", "drink": 3, "age": 42, "town": 7}
    lines = "".join(f"{id}={answer}\n" for id, answer in answers.items())
    file = tmp_path / "answers"
    file.write_text(json.dumps(answers) if form == "json" else lines, encoding="utf-8")
    wrong = tmp_path / "wrong"
    wrong.write_text(lines.replace("=no", "=sentinel"), encoding="utf-8")
    refused = run(*address, "--answers", str(wrong), code=2).err
    assert "is not one of" in refused
    assert "sentinel" not in refused
    assert "every question needs an answer: drink, age, town has none" in run(*address, "smoke=no", code=2).err
    ran = run(*address, "--answers", "-", stdin=lines) if form == "stdin" else run(*address, "--answers", str(file))
    assert "warning" not in ran.err
    assert len(server.posts) == 1


def test_a_record_is_answered_whole_and_refused_by_its_part(run, server, tmp_path):
    """All parts are read, one is reported; a repeated answer repeats the report, whichever part it was about."""
    protocol = Attributes.of({"smoke": GRR(["yes", "no"], 1), "cups": GRR(9, 1)})
    rule = Longitudinal("memoize", epochs=3, values=1)
    survey = Survey("habits", [Question("habits", "Your habits", protocol)], terms(longitudinal=rule))
    server.publish(survey)
    address = ["answer", server.url, survey.fingerprint]
    file = tmp_path / "answers"
    for wrong, words in (({"smoke": "no"}, "column 'cups' is missing"), ({"smoke": "sentinel", "cups": 1}, "'smoke'")):
        file.write_text(json.dumps({"habits": wrong}), encoding="utf-8")
        refused = run(*address, "--answers", str(file), code=2).err
        assert words in refused
        assert "sentinel" not in refused
    file.write_text(json.dumps({"habits": {"smoke": "no", "cups": 8}}), encoding="utf-8")
    out = run(*address, "--answers", str(file)).out
    assert " ".join(promises(survey)["parts"].split()) in " ".join(out.split())
    (body,) = server.posts
    assert protocol.valid(np.frombuffer(body[24:], dtype=np.uint8)[None, :]).all()
    assert run(*address, """habits={"smoke": "no", "cups": 8}""", "--dry-run").code == 0
    example = " ".join(run(*address, "--dry-run").out.split()).partition("for habits=")[2].partition(": leaves")[0]
    assert run(*address, f"habits={example}", "--dry-run").code == 0, "an example can be typed"


def test_a_record_is_asked_part_by_part():
    protocol = Attributes.of({"smoke": GRR(["yes", "no"], 1), "cups": GRR(9, 1)})
    with CliRunner().isolation(input="no\nmany\n8\n") as (_, said, _):
        question = Question("habits", "Your habits", protocol)
        spoken = Spoken.of(Survey("habits", [question]), None)
        assert _ask(spoken, question, no_echo=False, known={}) == {"smoke": "no", "cups": 8}
        shown = said.getvalue().decode()
    assert (shown.count("Your habits: smoke"), shown.count("Your habits: cups")) == (1, 2)


def test_a_survey_is_asked_and_answered_in_the_language_of_the_person(run, server, tmp_path):
    survey = translated()
    server.publish(survey)
    address = ["answer", server.url, survey.fingerprint]
    file = tmp_path / "answers"
    file.write_text(json.dumps(GERMAN), encoding="utf-8")
    out = " ".join(run(*address, "--answers", str(file), "--language", "de-AT", "--explain").out.split())
    assert "Gewohnheiten" in out
    assert "Um zu erfahren, wie Menschen leben." in out
    assert " ".join(promises(survey, language="de")["guess"].split()) in out
    refused = run(*address, "--answers", str(file), code=2).err
    assert "question 'smoke'" in refused, "without the language these are no answers"
    assert "nein" not in refused
    run(*address, "--answers", str(file), "--language", "de")
    assert len(server.posts) == 1
    assert "there are ar, de, en" in run(*address, "--language", "fr", "--dry-run", code=2).err


def test_a_record_is_asked_in_the_language_of_the_person():
    spoken = Spoken.of(translated(), "de")
    with CliRunner().isolation(input="44\nLand\n") as (_, said, _):
        assert _ask(spoken, spoken.survey["you"], no_echo=False, known={}) == {"age": 44, "home": "country"}
        shown = said.getvalue().decode()
    assert "Über Sie: Wie alt sind Sie?" in shown
    assert "Stadt" in shown


def test_a_survey_that_is_not_on_the_published_list_is_refused(run, server, address, tmp_path):
    """A survey that was made for one person has a fingerprint of its own, which its owner has not published."""
    known = tmp_path / "published.txt"
    known.write_text(f"# of Example Institute\n{'ab' * 32}  another survey\n", encoding="utf-8")
    asked = len(server.requests)
    refused = run(*address, *MIXED, "--fingerprints", str(known), code=2).err
    assert "not on the published list" in refused
    assert len(server.requests) == asked, "not even the survey is fetched"
    with known.open("a", encoding="utf-8") as file:
        file.write(f"{address[-1].upper()}\n")
    run(*address, *MIXED, "--fingerprints", str(known))
    assert len(server.posts) == 1
    known.write_text("abc\n", encoding="utf-8")
    assert "line 1 of" in run(*address, "--fingerprints", str(known), code=2).err


def test_answering(run, server, address):
    ran = run(*address, *MIXED)
    out = ran.out
    (body,) = server.posts
    assert "cannot tell whether what arrives is what you chose" in " ".join(out.split()), "four questions of epsilon 1"
    assert body[:4].hex() in out
    assert body[8:24].hex() in out
    assert body[24:].hex() in out
    assert "sent" in out
    assert "4 of 100 spent in the group tests of Example Institute" in " ".join(out.split())
    assert f"{len(body)} bytes in all" in out
    assert f"{body[24:].hex()} ({len(body) - 24} bytes, randomized)" in out
    assert f"a new device ledger was made: {os.environ['DENIABLE_LEDGER']}" in ran.err
    again = run(*address)
    assert "answered already, and nothing new was drawn or sent" in again.out
    assert "earlier submission  sent" in again.out
    assert "bytes" not in again.out
    assert again.err == ""
    assert len(server.posts) == 1


def told(run, survey, code=0):
    """What a second answer in the same epoch says, on one line."""
    return " ".join(run("answer", *survey, code=code).out.split())


def test_answering_again_tells_what_became_of_the_first(run, server):
    survey = daily()
    server.publish(survey)
    address = [server.url, survey.fingerprint]
    tomorrow = f"The next epoch begins at {write_time(TODAY + DAY)}."
    server.script = [(503, {}), (503, {})]
    run("answer", *address, "smoke=yes", code=75)
    waits = told(run, address, code=75)
    assert waits.startswith("This epoch was answered already, and nothing new was drawn or sent. " + tomorrow)
    assert "earlier submission waiting to be sent (status 503)" in waits
    assert "nothing new was drawn; what was waiting was sent now. " + tomorrow in told(run, address)
    assert "earlier submission sent budget 1 of 5 spent" in told(run, address)
    document = run("answer", *address, "--json").json
    assert (document["fresh"], document["next_epoch"]) == (False, write_time(TODAY + DAY))
    run("ledger", "withdraw", "--yes")
    run("ledger", "optout", "--undo")
    assert "earlier submission withdrawn" in told(run, address, code=1)
    assert len(set(server.posts)) == 1


def test_the_last_epoch_has_no_next(run, server):
    survey = plain()
    server.publish(survey)
    run("answer", server.url, survey.fingerprint, "smoke=yes")
    assert "takes no more answers from this device" in told(run, [server.url, survey.fingerprint])
    assert run("answer", server.url, survey.fingerprint, "--json").json["next_epoch"] is None


def test_a_survey_that_was_answered_in_an_earlier_epoch_asks_nothing(run, server):
    """The next day the command sends what waits, the same bytes, and draws nothing."""
    survey = Survey("long", [daily()["smoke"]], terms(late=3))
    server.publish(survey)
    earlier, _ = Ledger(os.environ["DENIABLE_LEDGER"]).submit(
        survey, survey.terms.epochs.at(TODAY) - 1, {"smoke": "yes"}
    )
    said = told(run, [server.url, survey.fingerprint])
    assert said.startswith("The survey was answered already, and nothing new was drawn; what was waiting was sent now.")
    assert "takes no more answers from this device" in said
    assert server.posts == [earlier.body]
    assert run("answer", server.url, survey.fingerprint, "smoke=no", "--json").json["next_epoch"] is None
    assert len(server.posts) == 1


def test_answering_again_after_opting_out(run, server, tmp_path):
    survey = daily()
    server.publish(survey)
    server.script = [(503, {})]
    address = ["answer", server.url, survey.fingerprint]
    run(*address, "smoke=yes", code=75)
    run("ledger", "optout")
    requests = len(server.requests)
    err = run(*address, "--ledger", tmp_path / "ledger.sqlite", code=2).err
    command = f"deniable ledger optout {survey.fingerprint} --undo --ledger {tmp_path / 'ledger.sqlite'}"
    assert f"opted out, so nothing was recorded or sent: `{command}` takes part again" in err
    assert len(server.requests) == requests
    run(*command.split()[1:])
    assert "dropped, because this device opted out" in run(*address, code=1).out
    assert "dropped, because this device opted out" in run("ledger", "show").out


def test_json(run, server, address):
    made = run(*address, *MIXED, "--json").json
    assert (bytes.fromhex(made["bytes"]), made["state"], made["fresh"]) == (server.posts[0], "sent", True)
    assert made["budget"]["spent"] == "4"


def test_a_rehearsal_records_and_sends_nothing(run, server, address, tmp_path):
    out = run(*address, *MIXED, "--dry-run").out
    assert "throw-away randomness" in out
    assert "sends 00" in out
    assert "0.7311" in out
    first = run(*address, *MIXED, "--dry-run", "--json").json["example"]
    assert first != run(*address, *MIXED, "--dry-run", "--json").json["example"]
    assert server.posts == []
    assert list(tmp_path.iterdir()) == []
    run(*address, *MIXED)
    assert server.posts[0].hex() != first


@pytest.mark.parametrize("survey", [*all_surveys(), kinds()], ids=lambda survey: survey.name)
def test_a_rehearsal_needs_no_answers(run, server, tmp_path, survey):
    """In a pipe, of every protocol: the promise, a law for each question, and an example for some answers."""
    server.publish(survey)
    out = " ".join(run("answer", server.url, survey.fingerprint, "--dry-run").out.split())
    for name, sentence in promises(survey).items():
        elsewhere = ("leaving", "lifetime")  # where one leaves, and where one reviews
        assert sentence in out or name in elsewhere
    assert out.count("your answer sends") + out.count("No report is more than") == len(survey)
    assert "An example of what would leave, for" in out
    assert "throw-away randomness" in out
    example = run("answer", server.url, survey.fingerprint, "--dry-run", "--json").json["example"]
    assert len(bytes.fromhex(example)) == 24 + survey.report_bytes
    assert list(tmp_path.iterdir()) == []


def test_a_number_is_not_changed_without_a_word(run, server, tmp_path):
    """38,5 is neither 385 nor 38.5, and what lies outside of the range is not clipped before it is sent."""
    week, stars = Interval(0, 100, unit="hours"), Interval(1, 5, unit="stars")
    parts = Attributes.of({"week": OneBitMean(week, 1), "bread": GRR(["rye", "pita"], 1)})
    asked = {"week": OneBitMean(week, 1), "apps": KeyValue(["mail", "maps"], stars, 1, at_most=2), "both": parts}
    survey = Survey("numbers", [Question(id, "How much?", protocol) for id, protocol in asked.items()], terms())
    server.publish(survey)
    given = {"week": 38.5, "apps": {"mail": 4}, "both": {"week": 100, "bread": "rye"}}
    wrong = {
        "week": ["38,5", "385", 385, -1],
        "apps": ["mail:9", "mail:4,5", {"mail": 0}],
        "both": [{"week": 101, "bread": "rye"}],
    }
    for id, entries in wrong.items():
        for entry in entries:
            answers = json.dumps(given | {id: entry})
            err = run("answer", server.url, survey.fingerprint, "--answers", "-", stdin=answers, code=2).err
            assert f"question '{id}'" in err
            assert "write decimals with a point, such as 38.5" in err or "give the nearest end" in err
            assert "385" not in err
    assert server.posts == []
    run("answer", server.url, survey.fingerprint, "--answers", "-", stdin=json.dumps(given))
    assert len(server.posts) == 1


def test_some_answers_of_a_rehearsal(run, address):
    out = " ".join(run(*address, "smoke=no", "--dry-run").out.split())
    assert "for drink=0, age=0, town=0:" in out
    assert "It speaks for your answer with probability 0.5" in out
    assert "An example" not in run(*address, *MIXED, "--dry-run").out
    assert "is not one of" in run(*address, "smoke=maybe", "--dry-run", code=2).err


def test_open_text_in_a_rehearsal(run, server):
    survey = text()
    server.publish(survey)
    out = run("answer", server.url, survey.fingerprint, "bread=rye", "--dry-run").out
    assert "times as likely under one answer as another" in out


def test_text_becomes_the_survey_s_labels(run, server):
    questions = [Question("sure", "Sure?", GRR([True, False], epsilon=1)), Question("n", "?", GRR([1, 2], epsilon=1))]
    survey = Survey("typed", questions, terms())
    server.publish(survey)
    run("answer", server.url, survey.fingerprint, "sure=true", "n=2")
    assert len(server.posts) == 1


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            ["smoke=no"],
            "drink, age, town has none. Give it with --answers FILE ('-' is standard input), or run this on a terminal",
        ),
        (
            ["smoke=no", "--json"],
            "or run this on a terminal without --json to be asked",
        ),
        (["smoke=maybe", *MIXED[1:]], "question 'smoke': the answer is not one of the 2 categories (yes, no)"),
        (["smoke=", *MIXED[1:]], "question 'smoke': the answer is not one of the 2 categories (yes, no)"),
        ([*MIXED[:2], "age=old", "town=7"], "question 'age': the answer is not one of the whole numbers from 0 to 99"),
        ([*MIXED[:2], "age=142", "town=7"], "question 'age': the answer is not one of the whole numbers from 0 to 99"),
        (
            ["no"],
            "an argument is not written ID=ANSWER, where ID is a question of the survey (smoke, drink, age",
        ),
        (["smok=no"], "the survey has no question 'smok': its questions are smoke, drink, age, town"),
        ([*MIXED, "smoke=yes"], "question 'smoke' is answered twice"),
    ],
)
def test_what_is_no_answer_is_repeated_with_the_choices(run, server, address, tmp_path, given, complaint):
    """To the person who typed it, and to nobody else."""
    assert complaint in run(*address, *given, code=2).err
    assert server.posts == []
    assert list(tmp_path.iterdir()) == []


def test_of_many_choices_a_few_are_shown(run, server):
    survey = Survey("many", [Question("q", "?", GRR([f"c{i}" for i in range(30)], epsilon=1))], terms())
    server.publish(survey)
    err = run("answer", server.url, survey.fingerprint, "q=x", code=2).err
    assert "the answer is not one of the 30 categories (c0, c1, c2, c3, c4, c5, c6, c7, " in err
    assert ", ...)" in err


def test_not_sent_yet_and_dropped(run, server):
    survey = daily()
    server.publish(survey)
    server.script = [(503, {})]
    ran = run("answer", server.url, survey.fingerprint, "smoke=yes", code=75)
    assert "it waits in the ledger: run the same command again to send the same bytes" in ran.err
    assert "state    waiting to be sent (status 503)" in ran.out
    shown = run("ledger", "show").out
    assert "waiting to be sent" in shown
    assert f"{server.posts[0].hex()} ({len(server.posts[0])} bytes)" in shown
    server.script = [(503, {})]
    waits = run("answer", server.url, survey.fingerprint, "--json", code=75).json
    assert (waits["state"], waits["reason"]) == ("queued", "status 503")
    server.script = [(410, {}, "surveyClosed")]
    refused = run("answer", server.url, survey.fingerprint, code=1).out
    assert "refused by the service: the survey takes no more answers (status 410 surveyClosed)" in refused
    help = " ".join(run("answer", "--help").out.split())
    assert "exit code is 0 if the submission was sent, now or before; 75 while it waits in the ledger" in help


def test_the_ledger(run, server, address, tmp_path):
    run(*address, *MIXED)
    (body,) = server.posts
    shown = run("ledger", "show").out
    assert "body     sent, erased" in shown
    assert body[8:24].hex() not in shown
    assert "mixed, " in shown
    (known,) = run("ledger", "show", address[2], "--json").json["submissions"]
    assert (known["bytes"], known["id"], known["state"], known["epsilon"]) == ("", "", "sent", "4")
    (budget,) = run("ledger", "budget", "--json").json["budgets"]
    assert (budget["cap"], budget["spent"], budget["left"]) == ("100", "4", "96")
    table = run("ledger", "budget").out
    assert "Example Institute" in table
    assert "tests" in table
    assert "mixed" in table
    words = " ".join(table.split())
    assert "epsilon 4 of 100 is spent, 96 is left. Somebody who found two cases equally likely" in words
    assert "One report has epsilon 4. All reports together have epsilon" in words
    assert " ".join(budget["words"]) in words
    assert "withdraw" in run("ledger").out


@pytest.mark.parametrize(
    "command", [["show"], ["show", "--json"], ["budget"], ["withdraw", "--yes"], ["optout", "--undo"]], ids=" ".join
)
def test_a_mistyped_ledger_is_no_new_device(run, tmp_path, command):
    err = run("ledger", *command, "--ledger", tmp_path / "leger.sqlite", code=2).err
    assert f"there is no ledger '{tmp_path / 'leger.sqlite'}'" in err
    assert list(tmp_path.iterdir()) == []


def test_opting_out_before_anything_else_makes_a_ledger_when_told_to(run, tmp_path):
    err = run("ledger", "optout", code=2).err
    assert f"there is no ledger '{tmp_path / 'ledger.sqlite'}'" in err
    assert "add --new" in err
    assert "exclude each other" in run("ledger", "optout", "--new", "--undo", code=2).err
    assert "knows none yet" in run("ledger", "optout", "--new", "daily", code=2).err
    assert list(tmp_path.iterdir()) == []
    assert f"a new device ledger was made: {tmp_path / 'ledger.sqlite'}" in run("ledger", "optout", "--new").err
    assert run("ledger", "optout").err == ""
    assert Ledger(tmp_path / "ledger.sqlite").opt_outs().everything


@pytest.fixture
def book(tmp_path):
    """The ledger of a device that has answered three surveys, two of one name."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    older = Survey("daily", [Question("smoke", "Do you?", GRR(["yes", "no"], epsilon="0.8"))], daily().terms)
    for survey in (daily(), older, plain()):
        ledger.submit(survey, 0, {"smoke": "yes"})
    return ledger


@pytest.mark.parametrize(
    "given",
    ["plain", plain().fingerprint[:6], plain().fingerprint[:12].upper()],
    ids=["name", "six digits", "capitals"],
)
def test_a_survey_by_its_name_or_beginning(run, server, book, given):
    assert run("ledger", "optout", given).out == f"opted out: plain, {plain().fingerprint}\n"
    assert book.opt_outs().surveys == (plain().fingerprint,)
    server.publish(plain())
    assert "opted out" in run("answer", server.url, plain().fingerprint, "smoke=yes", code=2).err
    assert server.requests == []
    (known,) = run("ledger", "show", given, "--json").json["submissions"]
    assert known["survey"] == plain().fingerprint
    assert run("ledger", "optout", given, "--undo").out == f"taking part again: plain, {plain().fingerprint}\n"
    assert book.opt_outs().surveys == ()


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("plane", "no survey there is called 'plane'"),
        (plain().fingerprint[:5], "6 digits or more"),
        ("", "no survey there is called ''"),
        ("000000" if not plain().fingerprint.startswith("000000") else "111111", "this ledger knows"),
        (plain().fingerprint[:-1] + "x", "no survey there is called"),
        ("daily", "'daily' stands for several surveys"),
    ],
    ids=["another name", "five digits", "nothing", "other digits", "a slip", "two of one name"],
)
def test_a_survey_that_is_not_known_is_neither_shown_nor_left(run, book, given, complaint):
    for command in (["optout"], ["optout", "--undo"], ["show"], ["show", "--json"]):
        assert complaint in run("ledger", *command, given, code=2).err
    assert book.opt_outs() == OptOuts()


def test_a_whole_fingerprint_that_was_never_met(run, book):
    assert "no survey there is called" in run("ledger", "show", "ab" * 32, code=2).err
    for _ in range(2):
        ran = run("ledger", "optout", "AB" * 32)
        assert f"never met the survey {'ab' * 32}: compare the digits" in ran.err
        assert ran.out == f"opted out: (unknown), {'ab' * 32}\n"
    assert book.opted_out("ab" * 32)
    assert run("ledger", "optout", plain().fingerprint).err == ""


def test_remembered_answers_are_told_but_not_shown(run, tmp_path):
    survey, ledger = memoized(), Ledger(tmp_path / "ledger.sqlite")
    ledger.submit(daily(), 0, {"smoke": "yes"})
    assert "remembered   no answers" in run("ledger", "show").out
    for epoch, mood in enumerate(("good", "bad")):
        ledger.submit(survey, epoch, {"mood": mood})
    assert "2 answers to mood of memoized, to report from again" in " ".join(run("ledger", "show").out.split())
    document = run("ledger", "show", "--json").json
    assert document["remembered"] == [{"survey": survey.fingerprint, "question": "mood", "answers": 2}]
    assert run("ledger", "show", "daily", "--json").json["remembered"] == []
    run("ledger", "optout", "memoized")
    assert "remembered   no answers" in run("ledger", "show").out


def test_whether_a_device_takes_part_is_shown(run, book):
    def told():
        for command in ("show", "budget"):
            lines = run("ledger", command).out.splitlines()
            yield next(line for line in lines if line.startswith("opted out")).split(maxsplit=2)[2]
            yield run("ledger", command, "--json").json["opted_out"]

    nothing = {"everything": False, "surveys": [], "but": []}
    assert list(told()) == ["no", nothing] * 2
    run("ledger", "optout", "plain")
    named = f"plain ({plain().fingerprint[:12]})"
    assert list(told()) == [named, nothing | {"surveys": [plain().fingerprint]}] * 2
    assert "opted out    yes" in run("ledger", "show", "plain").out
    assert "opted out    no" in run("ledger", "show", daily().fingerprint).out
    run("ledger", "optout")
    assert list(told()) == ["every survey", nothing | {"everything": True}] * 2
    run("ledger", "optout", "plain", "--undo")
    document = nothing | {"everything": True, "but": [plain().fingerprint]}
    assert list(told()) == [f"every survey but {named}", document] * 2


def test_levels_as_people_write_them(run, server, book):
    table = run("ledger", "budget").out
    assert "2.8" in table
    assert "2.2" in table
    assert "/5" not in table
    older = next(line for line in table.splitlines() if "0.8" in line)
    assert older.split()[0] == "daily"
    assert older.split()[1] in {known.survey[:12] for known in book.submissions()} - {daily().fingerprint[:12]}
    assert "epsilon  0.8" in run("ledger", "show").out
    (group,) = run("ledger", "budget", "--json").json["budgets"]
    assert group["spent"] == "14/5"
    server.publish(daily())
    assert "3.8 of 5 spent" in run("answer", server.url, daily().fingerprint, "smoke=yes").out


STREAMS = {
    (
        "none",
        1,
    ): "The debited epsilon holds between any two streams of answers, because the levels of all reports are added.",
    (
        "two-stage",
        1,
    ): "The debited epsilon holds between any two streams of answers, because all reports come from one state.",
    ("two-stage", 2): (
        "The debited epsilon holds between two streams of answers whose states recur in the same pattern, up to 2 "
        "states. All reports together have epsilon 2 for somebody who knows when your answers were the same, and "
        "34.749 otherwise. These are the third and the fourth of four levels: one report, 0.5; answers that never "
        "change, 1; states that recur in the same pattern, 2; any two streams of answers, 34.749 at most."
    ),
    ("evolving", 2): "The debited epsilon holds between any two streams of answers with at most 2 changes.",
    ("memoize", 2): (
        "The debited epsilon holds between two answers that never change; other streams of answers are told apart "
        "without bound."
    ),
}


@pytest.mark.parametrize("case", STREAMS, ids=lambda case: f"{case[0]} {case[1]}")
def test_a_budget_says_which_level_is_promised(run, case, tmp_path):
    """In words, for every rule; the numbers are those of the survey."""
    name, number = case
    rule = {"rule": name, "epochs": 30} | {"none": {}, "evolving": {"changes": number}}.get(name, {"values": number})
    rule |= {"first": "1/2", "forever": "1"} if name == "two-stage" else {}
    levels = {} if name == "two-stage" else {"epsilon": "1/2"}
    draft = {"name": "weekly", "owner": "Institute", "purpose": "To know.", "days": 30, "epochs": {"days": 1}}
    draft |= {"opens": "2026-01-01T00:00:00Z", "longitudinal": rule, "people": 100, **levels}
    draft["questions"] = [{"id": "ill", "text": "Are you ill?", "answers": ["yes", "no"]}]
    survey = Survey.from_draft(draft)
    Ledger(tmp_path / "l.db").submit(survey, survey.terms.first, {"ill": "yes"})
    (group,) = run("ledger", "budget", "--json", "--ledger", tmp_path / "l.db").json["budgets"]
    assert STREAMS[case] in group["words"][1]


def test_a_mistyped_directory_is_not_made(run, server, address, tmp_path):
    for command in (address + MIXED, ["ledger", "show"], ["ledger", "optout", "--new"]):
        err = run(*command, "--ledger", tmp_path / "nope" / "d5.db", code=2).err
        assert f"there is no directory '{tmp_path / 'nope'}'" in err
    assert list(tmp_path.iterdir()) == []
    assert server.requests == []


def test_opting_out_and_withdrawing(run, server, address, tmp_path):
    run(*address, *MIXED)
    run("ledger", "optout")
    run("ledger", "optout", address[2])
    run("ledger", "optout", "--undo")
    assert "add --yes" in run("ledger", "withdraw", code=2).err
    assert "keeps which surveys and epochs were answered and what was spent" in run("ledger", "withdraw", "--yes").out
    assert "body     erased" in run("ledger", "show").out
    other = plain()
    server.publish(other)
    requests = len(server.requests)
    assert "opted out" in run("answer", server.url, other.fingerprint, "smoke=yes", code=2).err
    assert len(server.requests) == requests


@pytest.mark.skipif(os.name == "nt", reason="terminals as on Unix")
@pytest.mark.parametrize("options", [[], ["--no-echo"]], ids=["shown", "hidden"])
def test_at_a_terminal(server, tmp_path, options):
    """The person is asked, a wrong answer is asked for again, and the bytes are shown; hidden answers never."""
    import pty
    import subprocess
    import sys

    survey = plain()
    server.publish(survey)
    code = "from deniable.cli import app; app(prog_name='deniable')"
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code, "answer", server.url, survey.fingerprint, "--ledger", tmp_path / "l.db", *options],
        start_new_session=True,  # no terminal but this one
        stdin=child,
        stdout=child,
        stderr=child,
        cwd=os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__)))),
        env={**os.environ, "NO_COLOR": "1", "TERM": "dumb"},
    )
    os.close(child)
    seen, answers = b"", [b"maybe\n", b"yes\n"]
    deadline = time.time() + 30
    while time.time() < deadline:
        try:
            seen += os.read(parent, 4096)
        except OSError:
            break
        if answers and seen.count(b"yes, no: ") == 3 - len(answers):
            os.write(parent, answers.pop(0))
    os.close(parent)
    assert process.wait(timeout=90) == 0, seen
    shown = seen.decode()
    assert "Do you smoke?" in shown
    assert "Example Institute" in shown
    assert "is not one of the 2 categories (yes, no)" in shown
    assert "please: question 'smoke': the answer is not" in shown
    assert ("maybe" in shown) == (not options)
    assert server.posts[0][24:].hex() in shown


def test_json_is_one_document(run, address):
    assert json.loads(run(*address, *MIXED, "--dry-run", "--json").out)["sent"] is False

"""plan, survey, privatize, tally and estimate: the main path as real processes, every refusal as one line."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.errors import ReportError
from deniable.files import tally_files
from deniable.protocols import GRR, HCMS, Tally, load
from deniable.surveys import Question, Survey, SurveyTally
from deniable.surveys.promises import promises
from tests.cli.conftest import COMMAND
from tests.cli.test_process import on_terminal, unix
from tests.documents import rows_of

DRAFT = {
    "name": "habits",
    "epsilon": "1",
    "questions": [
        {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"], "protocol": "GRR"},
        {"id": "age", "text": "How old?", "answers": {"low": 18, "high": 99}, "protocol": "OLH", "epsilon": 2},
        {"id": "trip", "text": "Trips?", "answers": ["never", "once", "often"], "protocol": "OUE", "epsilon": 3},
    ],
}
SURVEY = Survey.from_draft(DRAFT)
OTHER = Survey("other", SURVEY.questions)


def answers(rows: int) -> str:
    chance = random.Random(1)
    lines = [
        f"{chance.choice(['yes', 'no', 'no'])},{chance.randint(18, 60)},{chance.choice(['never', 'once', 'often'])}"
        for _ in range(rows)
    ]
    return "\n".join(["smoke,age,trip", *lines]) + "\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A directory with a survey, answers, reports and a tally of them."""
    monkeypatch.chdir(tmp_path)
    SURVEY.save("survey.json")
    OTHER.save("other.json")
    Path("answers.csv").write_text(answers(300))
    from deniable.files import privatize_file, tally_files
    from deniable.randomness import Simulation

    privatize_file(SURVEY, "answers.csv", "reports.parquet", bits=Simulation(1))
    tally_files(SURVEY, ["reports.parquet"]).save("tally.json")
    return tmp_path


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# -- the main path -------------------------------------------------------------------------------------


def test_from_a_draft_to_the_estimate(run, process, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "draft.json").write_text(json.dumps(DRAFT))
    (tmp_path / "answers.csv").write_text(answers(20_000))
    made = run("survey", "new", "draft.json", "-o", "survey.json").out
    assert SURVEY.fingerprint in made
    assert "6 (6 realized), all questions together" in made
    done = process("privatize", "survey.json", "answers.csv", "-o", "reports.parquet")
    assert "20000 rows of 5 bytes" in done.out
    assert done.err == ""
    run("tally", "survey.json", "reports.parquet", "-o", "tally.json")
    estimate = run("estimate", "survey.json", "tally.json", "--json").json
    assert estimate == run("estimate", "survey.json", "reports.parquet", "--json").json
    smoke, age, _ = estimate["questions"]
    yes = rows_of(smoke)[0]
    # A third said yes, plus or minus 5 standard errors (false alarm: 6e-7).
    assert abs(yes["value"] - 1 / 3) < 5 * (yes["stderr"] + 0.0034)
    assert yes["low"] < yes["value"] < yes["high"]
    assert len(rows_of(age)) == 82
    table = run("estimate", "survey.json", "tally.json").out
    assert "largest of" not in table


def test_streams_give_the_same_integers(run, process, folder):
    whole = (folder / "answers.csv").read_text().splitlines()
    reports = []
    for i, part in enumerate((whole[1:100], whole[100:])):
        name = f"{i}.csv"
        run("privatize", "survey.json", "-", "--text", "-o", name, stdin="\n".join([whole[0], *part]))
        reports.append((folder / name).read_text())
        run("tally", "survey.json", name, "-o", f"{i}.json")
    together = run("tally", "survey.json", "0.csv", "1.csv").out
    assert together == run("tally", "survey.json", "0.json", "1.json").out
    assert together == run("tally", "survey.json", "0.json", "-", stdin=reports[1]).out
    assert together == run("tally", "survey.json", "1.csv", "-", stdin=(folder / "0.json").read_text()).out
    piped = run("privatize", "survey.json", "answers.csv", "--text", "-o", "-").out
    assert json.loads(process("tally", "survey.json", "-", stdin=piped).out)["tallies"]["age"]["n"] == 300


def test_a_seed_repeats_and_warns(run, folder):
    for name in ("a", "b"):
        ran = run("privatize", "survey.json", "answers.csv", "-o", name, "--seed", 7)
        assert "warning: --seed makes a simulation" in ran.err
    assert Path("a").read_bytes() == Path("b").read_bytes()
    ran = run("privatize", "survey.json", "answers.csv", "-o", "b")
    assert ran.err == ""
    assert Path("a").read_bytes() != Path("b").read_bytes()


def test_some_questions_and_other_columns(run, folder):
    Path("named.csv").write_text("Do you smoke?;n\nyes;1\nno;2\n")
    ran = run("privatize", "survey.json", "named.csv", "--question", "smoke", "--column", "Do you smoke?", "-o", "one")
    assert "1 (1 realized) per row" in ran.out
    run("privatize", "survey.json", "named.csv", "--question", "smoke", "--column", "smoke=Do you smoke?", "-o", "two")
    run("tally", "survey.json", "one", "two", "-o", "sum.json")
    tally = SurveyTally.load("sum.json")
    assert (tally["smoke"].n, tally["age"].n) == (4, 0)
    ran = run("estimate", "survey.json", "sum.json", "--json")
    smoke, age, *_ = ran.json["questions"]
    assert (smoke["n"], age["n"], age["notes"]) == (4, 0, ["there are no reports yet: nothing is known"])
    assert {(row["value"], row["stderr"], row["low"], row["high"]) for row in rows_of(age)} == {(None, None, 0, 1)}
    assert "note: age: there are no reports yet" in ran.err
    assert "0.0000 .. 1.0000" in run("estimate", "survey.json", "sum.json", "--question", "age").out
    line = run("estimate", "survey.json", "sum.json", "--question", "age", "--csv").out.splitlines()[1]
    assert line.startswith("age,shares,18,,,0.0,1.0,,0.0,0,")
    run("estimate", "survey.json", "sum.json", "--plot", "shares.png", "--parquet", "shares.parquet")


def test_a_single_protocol_will_do(run, folder):
    run("plan", "--categories", "yes,no", "--epsilon", "1", "--people", 300, "--save", "protocol.json")
    assert load(Path("protocol.json").read_text()) == GRR(["yes", "no"], 1)
    run("privatize", "protocol.json", "answers.csv", "--column", "smoke", "-o", "bare.parquet")
    run("tally", "protocol.json", "bare.parquet", "-o", "bare.json")
    assert Tally.load("bare.json").n == 300
    ran = run("estimate", "protocol.json", "bare.json", "--json").json
    assert ran["protocol"] == GRR(["yes", "no"], 1).fingerprint
    assert ran["questions"][0]["n"] == 300
    assert "reports   300" in run("estimate", "protocol.json", "bare.json").out


# -- the single commands -------------------------------------------------------------------------------


def test_plan_solves_for_what_is_missing(run):
    usual = run("plan", "--categories", 1024, "--epsilon", 1, "--people", 100_000, "--json").json
    assert (usual["best"]["protocol"], usual["objective"], usual["figure"]) == ("BlockDesign", "zero", "worst")
    worst = ("--categories", 1024, "--epsilon", 1, "--people", 100_000, "--objective", "worst")
    given = run("plan", *worst, "--json").json
    assert given["within"] < usual["within"]
    people = run("plan", "--categories", 1024, "--epsilon", 1, "--within", given["within"], "--json").json
    assert people["n"] == 100_000
    level = run("plan", "--categories", 1024, "--people", 100_000, "--within", given["within"], "--json").json
    assert level["best"]["epsilon"] in ("1", "1001/1000")
    tenth = run("plan", "--categories", 16, "--epsilon", 2, "--within", "1/100", "--objective", "0.1").out
    assert "95 % intervals within +-0.01 around an answer of share 0.1 => 27,018 people" in tenth
    assert "less than 1" in run("plan", "--categories", 16, "--epsilon", 2, "--within", "5", code=2).err
    assert "not a number" in run("plan", "--categories", 16, "--epsilon", 2, "--within", "wide", code=2).err
    assert "an objective is" in run("plan", *worst[:-1], "rare", code=2).err
    text = run("plan", "--categories", "a,b,c", "--epsilon", 1, "--people", 100).out
    assert "3 answers, epsilon 1, 100 people" in text
    assert "\n* " in text
    assert "open text" in run("plan", "--text", "--epsilon", 4, "--people", 1000).out


def test_plan_draws(run, folder):
    assert "drawn: plan.png" in run("plan", "--categories", 4, "--epsilon", 1, "--people", 9, "--plot", "plan.png").out
    assert Path("plan.png").read_bytes().startswith(b"\x89PNG")


def test_show_a_survey(run, folder):
    shown = run("survey", "show", "survey.json").out
    assert SURVEY.fingerprint in shown
    assert "Do you smoke?" in shown
    described = run("survey", "show", "survey.json", "--json").json
    assert described["epsilon"] == "6"
    assert described["questions"][0]["source"] == SURVEY.source("smoke")
    assert run("survey", "new", "-", stdin=json.dumps(DRAFT)).out == SURVEY.to_json()
    assert run("survey").out == run("survey", "--help").out


def test_show_prints_what_respondents_read(run, folder):
    shown = " ".join(run("survey", "show", "survey.json").out.split())
    said = promises(SURVEY)
    elsewhere = ("leaving", "kept", "lifetime")  # where one leaves, and in the facts above
    assert all(sentence in shown for name, sentence in said.items() if name not in elsewhere)
    assert run("survey", "show", "survey.json", "--json").json["promises"] == said


def test_the_canonical_bytes_hash_to_the_fingerprint(folder):
    import hashlib

    done = subprocess.run([COMMAND, "survey", "show", "survey.json", "--canonical"], capture_output=True, timeout=60)
    assert hashlib.sha256(done.stdout).hexdigest() == SURVEY.fingerprint


def test_an_evil_name_cannot_drive_the_terminal(run, folder):
    spec = Survey("titled", [Question("q", "Really?", GRR(["label", "x"], 1))]).spec()
    for place, hidden in (("titled", "a\x1b[31mb"), ("Really?", "\x1b[2J?"), ("label", "\x07")):
        Path("evil.json").write_text(json.dumps(spec).replace(place, json.dumps(hidden)[1:-1]))
        done = run("survey", "show", "evil.json", code=2)
        assert f"U+{ord(hidden.strip('a')[0]):04X}" in done.err
        assert not set(done.out + done.err) & {"\x1b", "\x07"}


def test_estimates_in_every_form(run, folder):
    rows = run("estimate", "survey.json", "tally.json", "--csv").out.splitlines()
    assert (
        rows[0]
        == "question,section,label,value,stderr,low,high,unit,count,n,level,population,simultaneous,method,protocol,"
        "epsilon,noise_floor,poisoning"
    )
    assert rows[1].split(",")[10:16] == ["0.95", "True", "False", "unbiased", SURVEY["smoke"].protocol.name, "1.0"]
    assert len(rows) == 1 + 2 + 82 + 3
    run("estimate", "survey.json", "tally.json", "--parquet", "estimate.parquet", "--plot", "shares.png")
    table = pq.read_table("estimate.parquet")
    assert table.num_rows == len(rows) - 1
    assert ",".join(table.column_names) == rows[0]
    assert str(table.schema.field("noise_floor").type) == "double"
    assert Path("shares.png").read_bytes().startswith(b"\x89PNG")
    assert len(run("estimate", "survey.json", "tally.json", "--question", "age", "--all").out.splitlines()) == 6 + 82


def test_numbers_keep_their_order(run, folder):
    lines = run("estimate", "survey.json", "tally.json", "--question", "age").out.splitlines()
    assert [int(line.split()[0]) for line in lines[6:]] == list(SURVEY["age"].protocol.domain.labels)


def test_options_of_estimates(run, folder):
    def widths(*options):
        (trip,) = run("estimate", "survey.json", "tally.json", "--question", "trip", "--json", *options).json[
            "questions"
        ]
        return [answer["high"] - answer["low"] for answer in rows_of(trip)], trip

    plain, unbiased = widths()
    for wider in (["--level", "0.99"], ["--simultaneous"]):
        assert all(a > b for a, b in zip(widths(*wider)[0], plain, strict=True))
    narrower, among = widths("--respondents")
    assert all(a < b for a, b in zip(narrower, plain, strict=True))
    assert (unbiased["population"], among["population"]) == (True, False)
    command = ("estimate", "survey.json", "tally.json", "--question", "trip")
    assert "among those who answered" in run(*command, "--respondents").out
    assert "among those who answered" not in run(*command).out
    _, consistent = widths("--consistent", "norm-sub")
    assert sum(answer["value"] for answer in rows_of(consistent)) == pytest.approx(1)
    assert sum(answer["value"] for answer in rows_of(unbiased)) != pytest.approx(1)
    assert consistent["method"] == "norm-sub"


def test_reports_of_another_protocol_are_noticed(run, folder):
    protocol = GRR(["yes", "no"], 1)
    Path("coin.json").write_text(json.dumps(protocol.spec()))
    for counts, suspicious in (([5, 1000], True), ([500, 505], False)):
        Tally(protocol.fingerprint, 1005, counts).save("coin-tally.json")
        ran = run("estimate", "coin.json", "coin-tally.json", "--json")
        assert ("do not look like this protocol's: p = " in ran.err) == suspicious
        trust = ran.json["questions"][0]["trust"]
        assert (trust["misfit"] < 0.001) == (trust["warning"] is not None) == suspicious


def test_open_text_is_read_with_candidates(run, folder):
    Survey("words", [Question("word", "A word?", HCMS(load_strings(), 8)), SURVEY["smoke"]]).save("words.json")
    chance = random.Random(2)
    lines = [f"{chance.choice(['rye', 'rye', 'sour dough'])},yes" for _ in range(4000)]
    Path("words.csv").write_text("\n".join(["word,smoke", *lines]) + "\n")
    run("privatize", "words.json", "words.csv", "-o", "words.parquet", "--seed", 3)
    Path("list.txt").write_text("sour dough\nrye\nspelt\nrye\n\n")
    for option in ("list.txt", "word=list.txt"):
        word, smoke = run("estimate", "words.json", "words.parquet", "--candidates", option, "--json").json["questions"]
        shares = {answer["label"]: answer["value"] for answer in rows_of(word)}
        assert list(shares) == ["sour dough", "rye", "spelt"]
        # Standard errors are about 0.02 (seed fixed).
        assert abs(shares["rye"] - 2 / 3) < 0.1
        assert abs(word["facts"]["unlisted"]) < 0.2
        assert len(rows_of(smoke)) == 2
    assert "stand out of the noise" in run("estimate", "words.json", "words.parquet", "--candidates", "list.txt").out
    err = run("estimate", "words.json", "words.parquet", "--question", "word", code=2).err
    assert "'word' are open text: give the texts to look for with --candidates" in err
    others = run("estimate", "words.json", "words.parquet", "--json")
    assert [one["id"] for one in others.json["questions"]] == ["smoke"]
    assert others.err.startswith("note: 'word' is left out, for the answers to 'word' are open text")
    rows = run("estimate", "words.json", "words.parquet", "--candidates", "list.txt", "--csv").out.splitlines()
    assert float(rows[1].split(",")[-4]) == pytest.approx(word["facts"]["unlisted"])
    err = run("estimate", "words.json", "words.parquet", "--candidates", "wrod=list.txt", code=2).err
    assert err == "error: there is no question 'wrod'; there are word, smoke\n"
    err = run("estimate", "words.json", "words.parquet", "--candidates", "smoke=list.txt", code=2).err
    assert "--candidates is for open text" in err


def load_strings():
    from deniable.domains import Strings

    return Strings(cells=256, cohorts=8, key="words/word")


@unix
def test_progress_is_shown_on_a_terminal_only(folder):
    code, out = on_terminal("privatize", str(folder / "survey.json"), str(folder / "answers.csv"), "-o", "out.parquet")
    assert code == 0
    assert "300 rows" in out


def test_all_files_of_a_directory_but_its_survey_are_counted(run, folder):
    reports = folder / "out"
    reports.mkdir()
    for name in ("survey.json", "tally.json", "reports.parquet"):
        (reports / name).write_bytes(Path(name).read_bytes())
    ran = run("tally", "survey.json", "out", "-o", "sum.json")
    assert SurveyTally.load("sum.json")["age"].n == 600
    assert ran.err == ""
    assert "counted: 1 file of reports (300 rows) and 1 tally (of 300 reports)\n" in ran.out
    # A foreign survey is listed, by its name once.
    OTHER.save(reports / "other.json")
    ran = run("tally", "survey.json", "out", "-o", "sum.json", code=1)
    assert SurveyTally.load("sum.json")["age"].n == 600
    refused = [line for line in ran.err.splitlines() if line.startswith("not counted")]
    assert refused == ["not counted: 'out/other.json': this is a survey, not reports or a tally"]


def test_a_directory_of_tallies_is_their_sum(run, folder):
    (folder / "out").mkdir()
    (folder / "out" / "readme.txt").write_text("these are tallies")
    for name in ("survey.json", "monday.json", "tuesday.json"):
        (folder / "out" / name).write_bytes(Path("survey.json" if name == "survey.json" else "tally.json").read_bytes())
    ran = run("tally", "survey.json", "out", "-o", "sum.json", code=1)
    assert SurveyTally.load("sum.json")["age"].n == 600
    assert "counted: 2 tallies (of 600 reports)\n" in ran.out
    assert "1 of 3 inputs were not counted" in ran.err
    assert ran.err.count("out/") == ran.err.count("readme.txt") == 1


def test_what_was_counted_is_said_again_when_a_run_goes_on(run, folder):
    inputs = ("tally", "survey.json", "reports.parquet", "tally.json", "--resume", "done.json", "-o", "sum.json")
    first, again = run(*inputs), run(*inputs)
    said = "counted: 1 file of reports (300 rows) and 1 tally (of 300 reports)\n"
    assert said in first.out
    assert said in again.out
    assert "known from before: 2 of 2 files" in again.out


# -- refusals ------------------------------------------------------------------------------------------


REFUSALS = [
    ("privatize survey.json bad.csv -o out", "row 2 of 'bad.csv', column 'smoke', a str, is not one of"),
    ("privatize survey.json empty -o out", "'empty' is empty"),
    ("privatize survey.json header.csv -o out", "no row below the header"),
    ("privatize survey.json wrong.csv -o out", "has no column 'smoke'; it has 'Smoke'"),
    ("privatize survey.json torn.parquet -o out", "truncated or damaged"),
    ("privatize survey.json answers.csv -o nowhere/out", "'nowhere/out': No such file or directory"),
    ("privatize survey.json answers.csv -o .", "Is a directory"),
    ("privatize survey.json answers.csv -o - --text --format arrow", "exclude each other"),
    ("privatize survey.json answers.csv -o out --format xml", "Invalid value for '--format'"),
    ("tally survey.json hollow -o out", "the directory 'hollow' holds no files of reports"),
    ("tally survey.json none-*.parquet -o out", "no file matches 'none-*.parquet'"),
    ("tally survey.json nowhere.parquet -o out", "'nowhere.parquet': No such file"),
    ("tally survey.json torn.parquet empty -o out", "none of the 2 inputs could be counted; the first, 'torn.parquet'"),
    ("tally survey.json reports.parquet empty --strict -o out", "'empty' is empty"),
    ("tally survey.json reports.parquet --dedupe -o out", "has no column 'id'"),
    ("tally survey.json reports.parquet --dedupe --resume m.json -o out", "leave out --resume, or --dedupe"),
    ("tally survey.json reports.parquet --workers 0 -o out", "positive whole number"),
    ("tally survey.json reports.parquet --resume tally.json -o out", "is no manifest"),
    ("tally survey.json reports.parquet --resume nowhere/m.json -o out", "'nowhere/m.json': No such file"),
    ("tally survey.json reports.parquet --master local -o out", "add --engine spark"),
    ("tally survey.json reports.parquet --engine spark --resume m.json -o out", "are for the local engine"),
    ("privatize survey.json answers.csv", "Missing option '-o'"),
    ("privatize survey.json nowhere.csv -o out", "'nowhere.csv': No such file"),
    ("privatize survey.json answers.csv -o out --question weight", "no question 'weight'"),
    ("privatize survey.json answers.csv -o out --column x", "write ID=NAME"),
    ("privatize - - -o out", "once only"),
    ("privatize draft.json answers.csv -o out", "this is a draft"),
    ("privatize tally.json answers.csv -o out", "this is not a survey"),
    ("privatize newer.json answers.csv -o out", "version 3 are unknown here"),
    ("tally survey.json torn.parquet -o out", "truncated or damaged"),
    ("tally survey.json empty -o out", "'empty' is empty"),
    ("tally survey.json wide.parquet -o out", "holds reports of 2 bytes, not 1"),
    ("tally survey.json padded.parquet -o out", "row 2 of 'padded.parquet', column 'trip'"),
    ("tally survey.json column.parquet -o out", "the column 'smok'"),
    ("tally survey.json plain.parquet -o out", "no fingerprint in its metadata"),
    ("tally survey.json huge-a.json huge-b.json -o out", "no longer fits in 64 bits"),
    ("tally survey.json answers.csv -o out", "nor reports as text"),
    ("tally survey.json reports.parquet reports.parquet -o out", "counted twice"),
    ("tally survey.json reports.parquet -o out.parquet", "a tally is written as JSON"),
    ("tally survey.json reports.parquet -o nowhere/out", "'nowhere/out': No such file"),
    ("tally survey.json", "Missing argument"),
    ("tally other.json reports.parquet -o out", SURVEY.fingerprint),
    ("tally other.json reports.parquet -o out", OTHER.fingerprint),
    ("tally other.json tally.json -o out", SURVEY.fingerprint),
    ("tally other.json tally.json -o out", OTHER.fingerprint),
    ("estimate other.json tally.json", SURVEY.fingerprint),
    ("estimate survey.json tally.json --question weight", "no question 'weight'"),
    ("estimate survey.json tally.json --level 1", "between 0 and 1"),
    ("estimate survey.json tally.json --consistent magic", "no method 'magic'"),
    ("estimate survey.json tally.json --json --csv", "exclude each other"),
    ("estimate survey.json tally.json --parquet nowhere/out", "'nowhere/out': No such file"),
    ("estimate survey.json tally.json --plot nowhere/out.png", "No such file"),
    ("estimate survey.json tally.json --candidates nowhere.txt", "No such file"),
    ("estimate survey.json tally.json --consistent norm_sub", "did you mean 'norm-sub'? There are 'none', 'clip', "),
    ("estimate survey.json tally.json --candidates answers.csv", "no question here takes open text"),
    ("survey show nowhere.json", "No such file"),
    ("survey new survey.json", "is a survey already"),
    ("survey new draft.json -o nowhere/out", "'nowhere/out': No such file"),
    ("survey show protocol.json", "is the spec of a protocol"),
    ("plan --epsilon 1 --people 10", "give one of --categories"),
    ("plan --categories 3 --text --epsilon 1 --people 10", "give one of --categories"),
    ("plan --categories 3 --epsilon 1", "give two of --epsilon, --people and --within"),
    ("plan --categories a,a --epsilon 1 --people 10", "twice"),
    ("plan --categories 1 --epsilon 1 --people 10", "at least 2"),
    ("plan --categories 3 --epsilon -1 --people 10", "must be positive"),
    ("plan --categories 3 --epsilon 1 --people -5", "positive whole number"),
]
"""A command, and what its one line of error says."""


@pytest.fixture
def broken(folder):
    """Beside the good files, one of each kind of bad one."""
    Path("draft.json").write_text(json.dumps(DRAFT))
    Path("protocol.json").write_text(json.dumps(SURVEY["smoke"].protocol.spec()))
    Path("newer.json").write_text(json.dumps(SURVEY.spec() | {"version": 3}))
    Path("empty").touch()
    Path("hollow").mkdir()
    Path("bad.csv").write_text("smoke,age,trip\nyes,20,once\nSECRET,20,once\n")
    Path("header.csv").write_text("smoke,age,trip\n")
    Path("wrong.csv").write_text("Smoke,age,trip\nyes,20,once\n")
    Path("torn.parquet").write_bytes(Path("reports.parquet").read_bytes()[:-50])
    metadata = pq.read_schema("reports.parquet").metadata
    one = {"wide": {"smoke": pa.array([b"12"], pa.binary(2))}, "column": {"smok": pa.array([b"1"], pa.binary(1))}}
    one["padded"] = {"trip": pa.array([b"\1", b"\x08"], pa.binary(1))}
    for name, columns in one.items():
        pq.write_table(pa.table(columns).replace_schema_metadata(metadata), f"{name}.parquet")
    pq.write_table(pa.table({"smoke": [1]}), "plain.parquet")
    smoke = SurveyTally.load("tally.json")["smoke"]
    for name in "ab":
        Tally(smoke.fingerprint, 1, [2**62, 0], smoke.source).save(f"huge-{name}.json")
    return folder


@pytest.mark.parametrize(("command", "message"), REFUSALS)
def test_one_line_and_nothing_written(run, broken, command, message):
    before = files(broken)
    ran = run(*command.split(), code=2)
    assert message in ran.err
    assert "SECRET" not in ran.err
    assert files(broken) == before


def test_a_refusal_keeps_what_was_there(run, broken):
    before = Path("tally.json").read_bytes()
    run("tally", "survey.json", "reports.parquet", "torn.parquet", "--strict", "-o", "tally.json", code=2)
    assert Path("tally.json").read_bytes() == before
    run("privatize", "survey.json", "bad.csv", "-o", "reports.parquet", code=2)
    run("tally", "survey.json", "reports.parquet", "-o", "again.json")
    assert Path("again.json").read_bytes() == before
    # A tally may be updated in place.
    run("tally", "survey.json", "tally.json", "reports.parquet", "-o", "tally.json")
    assert SurveyTally.load("tally.json")["age"].n == 600


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    "args",
    [
        ["privatize", "survey.json", "answers.csv", "-o", "/dev/full"],
        ["privatize", "survey.json", "answers.csv", "--text", "-o", "/dev/full"],
        ["tally", "survey.json", "reports.parquet", "-o", "/dev/full"],
        ["estimate", "survey.json", "tally.json", "--parquet", "/dev/full"],
        ["survey", "new", "draft.json", "-o", "/dev/full"],
    ],
)
def test_a_full_disk_is_one_line(run, process, broken, args):
    before = files(broken)
    # What writes rows may complain once more when its process ends.
    ran = (process if args[0] == "privatize" else run)(*args, code=2)
    assert "No space left" in ran.err
    assert ran.err.count("\n") == 1
    assert files(broken) == before
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@unix
def test_a_limit_on_file_size_leaves_nothing_behind(folder):
    """As when a disk fills up in the middle: the limit cuts the file after some of it was written."""
    (folder / "answers.csv").write_text(answers(60_000))
    before = files(folder)
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 100; exec {COMMAND} privatize survey.json answers.csv -o out.parquet"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "File too large" in done.stderr
    assert files(folder) == before


@unix
@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_directory_without_permission(run, folder):
    locked = folder / "locked"
    locked.mkdir(mode=0o500)
    assert "Permission denied" in run("tally", "survey.json", "reports.parquet", "-o", "locked/out", code=2).err


@unix
@pytest.mark.parametrize("args", [["privatize", "-o", "out"], ["tally"], ["estimate"]])
def test_the_keyboard_is_not_waited_for(folder, args):
    code, out = on_terminal(args[0], str(folder / "survey.json"), "-", *args[1:])
    assert code == 2
    assert "error: there is nothing to read" in out


@unix
def test_a_reader_that_leaves_is_no_error(folder):
    command = f"{COMMAND} privatize survey.json answers.csv --text -o - | head -c 10; exit ${{PIPESTATUS[0]}}"
    (folder / "answers.csv").write_text(answers(200_000))
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60)
    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.parametrize("command", ["plan", "privatize", "tally", "estimate", "survey", "survey new", "survey show"])
def test_help_has_examples(run, command):
    out = run(*command.split(), "--help").out
    assert f"deniable {command}" in out.partition("Examples:\n")[2]


# -- many files ----------------------------------------------------------------------------------------


def test_several_files_of_answers_go_into_a_directory(run, folder):
    os.mkdir("days")
    for day in ("monday", "tuesday"):
        Path(f"days/{day}.csv").write_text(answers(50))
    ran = run("privatize", "survey.json", "days/*.csv", "answers.csv", "-o", "out/")
    assert "3 files in out/, 400 rows" in ran.out
    assert sorted(os.listdir("out")) == ["answers.parquet", "monday.parquet", "tuesday.parquet"]
    assert json.loads(run("tally", "survey.json", "out").out)["tallies"]["age"]["n"] == 400
    ran = run("privatize", "survey.json", "days/*.csv", "-o", "one.parquet", code=2)
    assert "2 files of answers need a directory" in ran.err
    os.mkdir("more")
    Path("more/monday.csv").write_text(answers(50))
    assert "rename one" in run("privatize", "survey.json", "days", "more", "-o", "new/", code=2).err
    assert "no file matches" in run("privatize", "survey.json", "none/*.csv", "-o", "new/", code=2).err
    assert not os.path.exists("new")


def test_reports_do_not_replace_the_survey(run, folder):
    before = files(folder)
    ran = run("privatize", "survey.json", "answers.csv", "-o", "./survey.json", code=2)
    assert "'survey.json' holds the survey" in ran.err
    assert files(folder) == before


def test_strict_names_all_that_are_refused(run, folder):
    for name in ("a", "b"):
        Path(f"{name}.parquet").write_bytes(b"PAR1")
    ran = run("tally", "survey.json", "a.parquet", "reports.parquet", "b.parquet", "--strict", "-o", "x.json", code=2)
    assert [line.partition(":")[0] for line in ran.err.splitlines()] == ["refused", "refused", "error"]
    assert "'a.parquet'" in ran.err
    assert "'b.parquet'" in ran.err
    assert "2 of 3 inputs were refused" in ran.err
    assert not os.path.exists("x.json")


def test_estimate_names_all_that_are_refused(run, folder):
    for name in ("a", "b"):
        Path(f"{name}.parquet").write_bytes(b"PAR1")
    ran = run("estimate", "survey.json", "a.parquet", "nowhere", "reports.parquet", "b.parquet", code=2)
    assert [line.partition(":")[0] for line in ran.err.splitlines()] == ["refused", "refused", "refused", "error"]
    for name in ("'a.parquet'", "'nowhere'", "'b.parquet'", "3 of 4 inputs were refused, so that nothing is estimated"):
        assert name in ran.err
    with pytest.raises(ReportError, match=r"3 inputs are refused.*'a\.parquet'.*'nowhere'.*'b\.parquet'"):
        tally_files(Survey.load("survey.json"), ["a.parquet", "nowhere", "reports.parquet", "b.parquet"])


def test_swapped_arguments_are_pointed_out(run, folder):
    answers = next(name for name in os.listdir() if name.endswith(".csv"))
    for command, given in (("privatize", answers), ("tally", "reports.parquet")):
        err = run(command, given, "survey.json", "-o", "x.parquet" if command == "privatize" else "x.json", code=2).err
        assert f"did you mean deniable {command} survey.json {given} ...?" in err
    assert "did you mean" not in run("privatize", answers, answers, "-o", "x.parquet", code=2).err


def test_a_tally_among_reports_to_dedupe_is_refused(run, folder):
    run("privatize", "survey.json", "answers.csv", "--ids", "-o", "ids.parquet")
    os.rename("tally.json", "tally")
    for name in ("tally", "tally.json"):
        ran = run("tally", "survey.json", "ids.parquet", name, "--dedupe", "-o", "x.json", code=2)
        assert f"'{name}' is a tally: it has no ids" in ran.err
        assert not os.path.exists("x.json")
        os.rename(name, "tally.json")
    Path("again.parquet").write_bytes(Path("ids.parquet").read_bytes())
    ran = run("tally", "survey.json", "ids.parquet", "again.parquet", "--dedupe", "-o", "x.json")
    assert "note: 300 rows came again" in ran.err


@unix
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_count_with_its_manifest(folder, sent, code):
    """A pipe comes first, and nobody writes to it, so that the count waits."""
    os.mkfifo("pipe")
    command = [COMMAND, "tally", "survey.json", "reports.parquet", "pipe", "--resume", "done.json", "-o", "x.json"]
    process = subprocess.Popen(command, stdout=-1, stderr=-1, text=True)
    while not os.path.exists("done.json"):
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(sent)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code, err
    assert err == "interrupted: 0 of 2 files are in done.json, run the same again\n"
    assert out == ""
    assert not os.path.exists("x.json")

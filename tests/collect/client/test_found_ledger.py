"""What somebody learns who finds a device's ledger, all its files, and tries every answer.

While a submission waits: what its bytes tell, and no more. That holds if all else in the files is the same whatever was
answered and drawn, and if the waiting report, with all else held fixed, has the protocol's law. Once it is settled:
nothing, since the files are the same bytes whatever was answered. Memoized answers are the exception, until the device
leaves.
"""

from __future__ import annotations

import hashlib
import shutil

import pytest

from deniable.collect.client import Ledger, ledger as ledger_module, ledger_file
from deniable.collect.client.records import DROPPED, SENT
from deniable.domains import Strings
from deniable.protocols import GRR, HCMS, OLH, OUE
from deniable.randomness import Simulation
from deniable.surveys import Question, Survey
from deniable.surveys.terms import Longitudinal
from tests.collect.surveys import terms

QUESTIONS = [
    Question("job", "Your job?", GRR(["baker", "clerk", "nurse"], epsilon=1)),
    Question("age", "How old are you?", OLH(100, epsilon=1)),
    Question("word", "A word?", HCMS(Strings(cells=64, cohorts=8, key="found/word"), epsilon=1)),
]
CANDIDATES = [
    {"job": job, "age": age, "word": word}
    for job, age, word in [("baker", 20, "rye"), ("clerk", 20, "rye"), ("nurse", 99, "a longer word"), ("baker", 0, "")]
]
DRAWS = 50
"""Of each candidate."""


def fresh(retention: str = "tally") -> Survey:
    rule = Longitudinal(epochs=5)
    return Survey("fresh", QUESTIONS, terms(longitudinal=rule, retention=retention))


def kept() -> Survey:
    """Few reports, or else the validator refuses to repeat them."""
    return Survey("kept", QUESTIONS[:1], terms(longitudinal=Longitudinal("memoize", epochs=5, values=2)))


class Found:
    """A device that is put back to the same beginning again and again, and its files after something was done."""

    def __init__(self, folder, survey: Survey) -> None:
        self.folder, self.survey = folder / "device", survey
        self.folder.mkdir()
        for epoch in (1, 2):  # a device with a past; the last of it waits
            self.ledger.submit(survey, epoch, self.given(CANDIDATES[0]))
        self.start = folder / "start"
        shutil.copytree(self.folder, self.start)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.folder / "ledger.sqlite")

    def given(self, answers):
        return {question.id: answers[question.id] for question in self.survey}

    def after(self, answers, *then):
        """The submission, and every byte of every file."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.start, self.folder)
        made, _ = self.ledger.submit(self.survey, 3, self.given(answers))
        for step in then:
            step(self.ledger, made)
        return made, {path.name: path.read_bytes() for path in self.folder.rglob("*")}

    def learned(self, *then, waits: bool = False) -> list[str]:
        """What the files tell of the answers that they should not."""
        found, files, counts = [], set(), []
        for place, answers in enumerate(CANDIDATES * (DRAWS if waits else 3)):
            made, content = self.after(answers, *then)
            report = made.body[24:]
            if waits:
                blank = made.body[:24] + bytes(len(report))
                content = {name: data.replace(made.body, blank) for name, data in content.items()}
            files.add(hashlib.sha256(repr(sorted(content.items())).encode()).hexdigest())
            if place % len(CANDIDATES) == 0:
                counts.append(report[0])
        if len(files) != 1:
            found.append("the files differ with the answers")
        if not waits:
            return found
        # Of the answer "baker" to the first question, all else held fixed. False alarm 1e-6 (chi-squared with two
        # degrees of freedom above 27.7), and the seed is fixed. A report that is a function of the file has one form.
        law = [float(p) for p in QUESTIONS[0].protocol.channel().rows[0]]
        n = len(counts)
        if sum((counts.count(y) - n * p) ** 2 / (n * p) for y, p in enumerate(law)) > 27.7:
            found.append("the report does not have its law, given the files")
        return found


@pytest.fixture(autouse=True)
def simulated(monkeypatch):
    """The system's generator with a seed, for whatever draws from it."""

    bits = Simulation(20)
    from deniable.protocols import protocol

    monkeypatch.setattr(protocol, "source_of", lambda given: bits if given is None else given)


def sent(ledger, made):
    ledger.mark(made, SENT)


def refused(ledger, made):
    ledger.mark(made, DROPPED, "epochClosed")


def opted_out(ledger, made):
    ledger.opt_out(made.survey)


def left(ledger, made):
    ledger.withdraw()


@pytest.mark.parametrize("retention", ["tally", "reports"])
def test_what_waits_tells_what_its_bytes_tell(tmp_path, retention):
    assert Found(tmp_path, fresh(retention)).learned(waits=True) == []


@pytest.mark.parametrize("retention", ["tally", "reports"])
@pytest.mark.parametrize("then", [sent, refused, opted_out, left], ids=lambda step: step.__name__)
def test_what_is_settled_tells_nothing(tmp_path, then, retention):
    assert Found(tmp_path, fresh(retention)).learned(then) == []


@pytest.mark.parametrize("then", [opted_out, left], ids=lambda step: step.__name__)
def test_memoized_answers_are_there_until_the_device_leaves(tmp_path, then):
    found = Found(tmp_path, kept())
    assert found.learned(sent) == ["the files differ with the answers"]
    assert found.learned(sent, then) == []


# -- the checks can fail ---------------------------------------------------------------------------------


def test_a_report_that_a_key_gives_again_is_caught(tmp_path, monkeypatch):
    """As in the first version, where every report was a function of a secret on the device and the answer."""

    def keyed(connection, survey, terms, epoch, answers, id):
        (key,) = connection.execute("SELECT key FROM id_key").fetchone()
        seed = int.from_bytes(hashlib.sha256(key + repr(answers).encode()).digest())
        bits = Simulation(seed)
        return b"".join(asked.protocol.privatize([answers[asked.id]], bits).to_bytes() for asked in survey)

    found = Found(tmp_path, fresh())
    monkeypatch.setattr(ledger_module, "_draw", keyed)
    assert found.learned(waits=True) == ["the report does not have its law, given the files"]


def test_bytes_that_are_kept_are_caught(tmp_path, monkeypatch):
    monkeypatch.setattr(
        ledger_module,
        "_settle",
        lambda connection, state, *_: connection.execute("UPDATE submission SET state = ?", (state,)),
    )
    assert "the files differ with the answers" in Found(tmp_path, fresh()).learned(sent)


def test_bytes_in_free_space_are_caught(tmp_path, monkeypatch):
    connect = ledger_file._connect

    def careless(path):
        connection = connect(path)
        connection.execute("PRAGMA secure_delete = OFF")
        return connection

    monkeypatch.setattr(ledger_file, "_connect", careless)
    question = Question("age", "How old are you?", OUE(1000, epsilon=1))
    wide = Survey("wide", [question], terms(longitudinal=Longitudinal(epochs=5)))
    assert Found(tmp_path, wide).learned(sent) == ["the files differ with the answers"]
    monkeypatch.undo()
    (tmp_path / "careful").mkdir()
    assert Found(tmp_path / "careful", wide).learned(sent) == []


# -- ids -------------------------------------------------------------------------------------------------


def keys(path) -> set[bytes]:
    """Everything in the file that could be a key."""
    content = path.read_bytes()
    return {content[i : i + 32] for i in range(len(content) - 31)}


def test_a_ledger_found_later_gives_no_id_of_what_was_sent(tmp_path):
    """Every 32 bytes of the file are tried as the key of every epoch."""
    from deniable.collect.client.ledger import advance, report_id

    survey, ledger = fresh(), Ledger(tmp_path / "ledger.sqlite")
    ledger.pin(survey)
    start = keys(ledger.path)
    ids = []
    for epoch in (3, 5):
        made, _ = ledger.submit(survey, epoch, CANDIDATES[0])
        ledger.mark(made, SENT)
        ids.append(made.id)

    def linked(candidates) -> set[bytes]:
        made = {advance(key, steps) for key in candidates for steps in range(7)}
        return {report_id(key, survey.fingerprint, epoch) for key in made for epoch in (3, 5)} & set(ids)

    assert linked(keys(ledger.path)) == set()
    assert linked(start) == set(ids), "the key that was there before gives them, so the attack works"

"""Every sentence that a survey promises, against what the survey's law does; both languages say the same.

What the sentences claim about ledgers, servers and the wire is tested where those run: `BEHAVIOUR` says where.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable import exact
from deniable.channels import Channel, RandomizedResponse
from deniable.collect.client import BudgetSpent, Ledger
from deniable.design import mean
from deniable.domains import Grid, Integers, Interval, KeyNumbers, ListedDomain, Records, Sets, Strings
from deniable.errors import ChannelError, SpecError
from deniable.privacy.guesses import reidentify
from deniable.protocols import (
    BLH,
    CMS,
    GRR,
    LGRR,
    LOLOHA,
    LOSUE,
    OLH,
    OUE,
    RAPPOR,
    SUE,
    Attributes,
    CollisionSets,
    Evolving,
    HadamardResponse,
    KeyValue,
    LOneBitMean,
    MeanTable,
    Memoized,
    Moments,
    OLHSketch,
    OneBitMean,
    PlanarLaplace,
    Protocol,
    Queries,
    SecureSum,
    Stratified,
    SubsetSelection,
    SubsetSets,
    Table,
    Window,
    registered,
)
from deniable.protocols.guessing import ABOUT, AT_MOST, EXACT, Right, bound
from deniable.protocols.profiles import OneBitCluster, ProfileGraph, SmoothCategorical, Warner, same_sample
from deniable.protocols.structures import Choice
from deniable.randomness import Simulation, exhaust
from deniable.surveys import Longitudinal, Question, Survey
from deniable.surveys.promises import MODERATE, STRONG, WEAK, band, of_100, promises
from deniable.surveys.right_guesses import guessed, guesses
from deniable.surveys.terms import Relay
from deniable.words import catalogue
from tests.collect.surveys import terms
from tests.surveys.rounds import rounds
from tests.web.test_node import WEB, run, tool

ROOT = Path(__file__).parents[2]
RULES = {
    "once": Longitudinal(),
    "three times": Longitudinal(epochs=3),
    "forty times": Longitudinal(epochs=40),
    "first repeated": Longitudinal("memoize", epochs=30, values=1),
    "three repeated": Longitudinal("memoize", epochs=30, values=3),
    "repeated, once": Longitudinal("memoize", epochs=1, values=3),
}
LEVELS = ("1/3", "1/2", "1", "2", "3", "7/2", "5", "8")
PROTOCOLS: dict[str, Any] = {
    "GRR of 2": lambda e: GRR(["yes", "no"], e),
    "GRR of 10": lambda e: GRR(10, e),
    "OUE of 3": lambda e: OUE(3, e),
    "OLH of 4": lambda e: OLH(4, e),
    "SubsetSelection of 5": lambda e: SubsetSelection(5, e),
    "Window": lambda e: Window(Interval(0, 10, unit="hours"), e, positions=3, width=2),
    "MeanTable": lambda e: MeanTable(mean(e, positions=3), Interval(0, 10, unit="hours")),
    "Moments": lambda e: Moments.of(Interval(0, 10), [OneBitMean(Interval(-1, 1), e), OneBitMean(Interval(0, 1), e)]),
    "Queries": lambda e: Queries({"a": 2, "b": ["x", "y"]}, e, regress={"target": "a"}),
    "CMS": lambda e: CMS(Strings(cells=64, cohorts=8, key="promises"), e),
    "Table with a delta": lambda e: leaky(e),
    "ProfileTable": lambda e: Table(Warner(ProfileGraph.chain({"north": 0, "south": 1}), e)),
    "Attributes": lambda e: Attributes.of({"a": GRR(2, e), "b": GRR(["x", "y", "z"], e)}, {"a": 1, "b": 2}),
}


@functools.cache
def built(name: str, epsilon: str) -> Protocol:
    """Many surveys ask with the same protocol, and to build one takes longer than to ask."""
    made: Protocol = PROTOCOLS[name](epsilon)
    return made


def leaky(epsilon: str) -> Table:
    """Randomized response that now and then says for certain what the answer was."""
    keep = Fraction(GRR(2, epsilon).channel().probability(0, "00"))
    rare = Fraction(1, 2000 if epsilon != "1/2" else 5_000_000)
    law = [keep * (1 - rare), (1 - keep) * (1 - rare), rare, 0], [(1 - keep) * (1 - rare), keep * (1 - rare), 0, rare]
    return Table(Channel(law, ["yes", "no"], ["yes", "no", "YES", "NO"]), epsilon, delta=rare)


STAGES = (("1/4", "1/2"), ("1/2", "1"), ("1", "3"), ("2", "8"))
"""The epsilon of one report and of what is kept, of two stages."""


def staged(protocols: list[Memoized], values: int, epochs: int, retention: str = "tally") -> Survey:
    first, forever = (sum(getattr(protocol, name) for protocol in protocols) for name in ("first", "forever"))
    return asked(list(protocols), Longitudinal("two-stage", epochs, values, first, forever), retention)


def asked(protocols: list[Protocol], rule: Longitudinal, retention: str = "tally") -> Survey:
    questions = [Question(f"q{i}", f"Question {i}?", protocol) for i, protocol in enumerate(protocols)]
    made = terms(longitudinal=rule, budget=10**6, retention=retention)
    delta = sum(protocol.guarantee.delta for protocol in protocols) * rule.draws
    relation = protocols[0].guarantee.relation
    made = replace(
        made, collectors=tuple(f"https://c{i}.example.org" for i in range(getattr(protocols[0], "collectors", 0)))
    )
    return Survey("promises", questions, replace(made, budget=replace(made.budget, delta=delta, relation=relation)))


def combinations() -> list[Survey]:
    """Retention, rule, epsilon, epochs and protocol, as far as a survey may combine them."""
    found = []
    for rule, level, protocol, retention in itertools.product(RULES.values(), LEVELS, PROTOCOLS, ("tally", "reports")):
        one, other = built(protocol, level), built("GRR of 2", "1/4")
        for protocols in ([one], [one, other]):
            with suppress(SpecError):  # memoized reports of too many forms
                found.append(asked(protocols, rule, retention))
    return [*found, *calendars(), *waiting(), *rounds(), *rounds(epsilon=4)]


def calendars() -> list[Survey]:
    """Epochs of other lengths: of seconds, of hours, and longer than the collection."""
    made, lengths = asked([GRR(2, 1)], RULES["once"]), (1_234, 5_400, 7 * 86_400, 400 * 86_400)
    assert made.terms is not None
    changed = [replace(made.terms, epochs=replace(made.terms.epochs, seconds=length)) for length in lengths]
    return [replace(made, terms=terms) for terms in changed]


def waiting() -> list[Survey]:
    """Reports that wait in files to be counted, or at a relay to be mixed; and results that everybody can read."""
    made = asked([GRR(2, 1)], RULES["once"])
    assert made.terms is not None
    mixed = Relay("https://relay.example.org:8443/mix", f"B{'a' * 85}A", 1000)
    files = [replace(made, terms=replace(made.terms, delete_days=days)) for days in (1, 7)]
    public = replace(made, terms=replace(made.terms, results="public", min_reports=50))
    return [*files, replace(made, terms=replace(made.terms, relay=mixed)), public]


def two_stages() -> list[Survey]:
    return [
        staged(protocols, values, epochs, retention)
        for first, forever in STAGES
        for protocols in (
            [LGRR(["yes", "no"], first, forever)],
            [LGRR(["yes", "no"], first, forever), LGRR(3, "1/8", "1/4")],
        )
        for values, epochs in ((1, 2), (1, 30), (2, 3), (3, 30))
        for retention in ("tally", "reports")
    ] + [linkable(values) for values in (1, 2)]


def linkable(values: int) -> Survey:
    """Bitmaps of twelve bits, reported for a year of weeks."""
    rule = Longitudinal("two-stage", 52, values, Fraction(1), Fraction(2), linkable=True)
    return asked([LOSUE(12, first=1, forever=2)], rule)


def strata() -> list[Survey]:
    """Public attributes go along in clear."""
    one = Stratified({"country": ["de", "fr"]}, GRR(["yes", "no"], 1), "q0")
    both = Stratified({"country": ["de", "fr"], "version": 3}, OUE(3, 2), "q0")
    three = Stratified({"country": ["de", "fr"], "version": 3, "beta": [True, False]}, GRR(2, 8), "q0")
    rules = [RULES[name] for name in ("once", "repeated, once")]
    return [asked(ask, rule) for rule in rules for ask in ([one], [both], [three], [one, GRR(2, 1)])]


def places() -> list[Survey]:
    """Cells of a grid, whose numbers are about cells side by side."""
    sizes = (5, 4, "500 m", "1/2"), (8, 6, "", 2), (8, 6, "1/2 km", 8)
    made = [PlanarLaplace(Grid(columns, rows, cell=cell), e) for columns, rows, cell, e in sizes]
    rules = [RULES[name] for name in ("once", "three times", "first repeated")]
    return [asked(ask, rule) for rule in rules for ask in ([made[0]], [made[1]], [made[2]], made[:2])]


def sums() -> list[Survey]:
    """Answers that are split between collectors."""
    found = []
    for level, collectors, rule in itertools.product(("1/2", 2, 8), (2, 3), ("once", "three times")):
        one = SecureSum(["yes", "no"], level, people=1500, missing=300, collectors=collectors)
        other = SecureSum(Integers(0, 10), "1/4", people=900, collectors=collectors, read="mean")
        for protocols in ([one], [one, other]):
            found.append(asked(list(protocols), RULES[rule]))
    return found


def every_kind() -> list[Survey]:
    """The examples of every registered kind, asked once and as often as its rule allows."""
    found = []
    for kind in registered().values():
        for one in kind.examples():
            if one.worth().unreadable or not one.traits.local:
                continue
            rules = [RULES["once"], RULES["three times"]]
            if isinstance(one, Memoized):
                rules = [Longitudinal("two-stage", 6, values, one.first, one.forever) for values in (1, 2)]
            if one.guarantee.relation == "stream":
                rules = [Longitudinal("evolving", one.parameters()["epochs"], changes=one.parameters()["changes"])]
            for rule in rules:
                with suppress(SpecError):  # a collection that is longer than the streams, or reports that link devices
                    found.append(asked([one], rule))
    return found


@functools.cache
def all_surveys() -> list[Survey]:
    """Made when a test needs them, and not by every process that looks for tests."""
    return [*usual_surveys(), *every_kind()]


@functools.cache
def usual_surveys() -> list[Survey]:
    return [*combinations(), *two_stages(), *strata(), *places(), *sums()]


@functools.cache
def small_surveys() -> list[Survey]:
    """One in seven of the surveys whose whole law is soon enumerated."""
    made = [survey for survey in usual_surveys() if survey.terms is not None and survey.terms.retention == "tally"]
    kinds = [[question.protocol for question in survey] for survey in made]
    return [
        survey
        for survey, asked in zip(made, kinds, strict=True)
        if all(protocol.law().forms <= 64 and not protocol.law().clear for protocol in asked)
        and survey.relation != "metric"
    ][::7]


def named(survey: Survey) -> str:
    """The same on every day, unlike the fingerprint."""
    asked = "+".join(f"{q.protocol.name}{q.protocol.tally_size}" for q in survey)
    assert survey.terms is not None
    own = survey.terms.longitudinal
    kept = f"{own.values} kept over {own.epochs}"
    rule = next((name for name, rule in RULES.items() if own == rule), kept)
    return f"{asked}-{survey.questions[0].protocol.epsilon}-{rule}"


def each_small_survey(check: Callable[[Survey], None]) -> Callable[..., None]:
    """A test that runs a check on every small survey; what fails is told with the survey's name."""

    def test(surveys: Sequence[Survey] = ()) -> None:
        for survey in surveys or small_surveys():
            try:
                check(survey)
            except AssertionError as wrong:
                wrong.add_note(f"of the survey {named(survey)}")
                raise

    test.__name__, test.__doc__ = check.__name__, check.__doc__
    return test


BEHAVIOUR = {
    "band": "tests/surveys/test_promises.py::test_fear_and_comfort_are_those_of_the_guesses",
    "line": "tests/surveys/test_promises.py::test_fear_and_comfort_are_those_of_the_guesses",
    "shows": "tests/surveys/test_promises.py::test_a_return_to_an_earlier_answer_shows",
    "sure": "tests/surveys/test_promises.py::test_nobody_becomes_surer_than_the_sentence_says",
    "parts": "tests/surveys/test_promises.py::test_one_part_is_reported_and_the_answer_does_not_choose_it",
    "clear": "tests/surveys/test_promises.py::test_strata_are_in_the_report_and_the_numbers_are_about_the_rest",
    "guess": "tests/surveys/test_promises.py::test_the_guesses_are_those_of_the_law",
    "changes": "tests/surveys/test_promises.py::test_two_stages_tell_no_more_than_is_said",
    "linked": "tests/surveys/test_promises.py::test_linkable_reports_are_recognized_and_others_are_not",
    "factor": "tests/surveys/test_promises.py::test_odds_change_by_no_larger_factor",
    "distance": "tests/surveys/test_promises.py::test_of_places_near_ones_are_hidden_and_far_ones_are_not",
    "profiles": "tests/surveys/test_promises.py::test_of_profiles_the_profile_is_hidden_and_the_value_is_not",
    "rare": "tests/surveys/test_promises.py::test_a_delta_is_said_per_report_and_in_all",
    "device": "tests/collect/test_promises_kept.py::test_a_device_keeps_what_the_sentence_says",
    "kept": "tests/collect/test_promises_kept.py::test_a_service_keeps_what_the_sentence_says",
    "published": (
        "tests/collect/server/test_public.py::test_below_the_minimum_not_even_the_number_of_answers_is_shown"
    ),
    "leaving": "tests/collect/test_promises_kept.py::test_leaving_does_what_the_sentence_says",
    "address": "tests/collect/test_promises_kept.py::test_a_request_holds_what_the_sentence_says",
    "relay": "tests/collect/server/test_relay.py::test_the_relay_does_what_the_sentence_says",
    "collectors": "tests/collect/server/test_secure.py::test_the_collectors_do_what_the_sentence_says",
    "storage": "tests/surveys/test_promises.py::test_what_a_browser_may_forget_is_a_note",
    "often": "tests/surveys/test_promises.py::test_a_device_answers_as_often_and_repeats_what_the_sentence_says",
    "round": "tests/collect/client/test_rounds.py::test_the_page_says_what_the_ledger_does",
    "lifetime": "tests/surveys/test_promises.py::test_a_number_for_all_reports_is_stated_only_where_it_holds",
}


def test_every_sentence_has_a_test_of_what_it_claims() -> None:
    names = {
        name for survey in all_surveys() for lasting in (True, False) for name in promises(survey, lasting=lasting)
    }
    assert names == set(BEHAVIOUR)
    for place in BEHAVIOUR.values():
        file, _, test = place.partition("::")
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(("language", "every"), [("en", 1), ("de", 7)])
def test_python_and_the_browser_say_the_same(language: str, every: int) -> None:
    script = f"""
      import {{ Survey }} from "{(WEB / "deniable.js").as_uri()}";
      import {{ promises }} from "{(WEB / "pages" / "promises.js").as_uri()}";
      import {{ speak }} from "{(WEB / "pages" / "words.js").as_uri()}";
      let text = "";
      for await (const chunk of process.stdin) text += chunk;
      const [given, language] = JSON.parse(text);
      await speak(language);
      const said = [];
      for (const [pinned, canonical] of given) {{
        const survey = await Survey.fromBytes(new TextEncoder().encode(canonical), pinned);
        said.push([promises(survey, "device", true), promises(survey, "browser", false)]);
      }}
      console.log(JSON.stringify(said));
    """
    asked_for = all_surveys()[::every]
    given = json.dumps([[(survey.fingerprint, survey.canonical.decode()) for survey in asked_for], language])
    done = run(tool("node"), "--input-type=module", "--eval", script, input=given)
    assert done.returncode == 0, done.stderr
    for survey, other in zip(asked_for, json.loads(done.stdout), strict=True):
        device, browser = promises(survey, language=language), promises(survey, "browser", False, language)
        assert other == [device, browser]


# -- the law ---------------------------------------------------------------------------------------------


def numbers(text: str, pattern: str) -> list[float]:
    return [float(found.replace(",", "")) for found in re.findall(pattern, text)]


def law(survey: Survey) -> np.ndarray:
    """How likely each report is under each set of answers, by running the sampler along every branch."""
    rows = np.ones((1, 1))
    for question in survey:
        channel = np.asarray(question.protocol.channel().rows)
        if question.protocol.guarantee.relation == "profiles":  # all profiles of these surveys are joined
            laws = {tuple(one.items()): None for pair in question.protocol.law().related() for one in pair}
            channel = np.array([sum(float(weight) * channel[i] for i, weight in law) for law in laws])
        rows = np.kron(rows, channel)
    return rows


def everything(survey: Survey) -> float:
    """The largest likelihood ratio of all reports of a device, or a proven bound of it."""
    if survey.terms is not None and survey.terms.longitudinal.is_two_stage:
        level = survey.realized_lifetime_epsilon
        assert level is not None
        return math.exp(min(level, 700.0))
    return math.exp(min(survey.realized_epsilon * survey.draws, 700.0))


def surest(rows: np.ndarray, most: float = np.inf) -> float:
    """The largest posterior of one of two rows that were equally likely, leaving out what is beyond a ratio."""
    one, other = rows[:, None], rows[None]
    with np.errstate(invalid="ignore"):
        kept = one if np.isinf(most) else np.minimum(one, most * other)
        return float(np.nanmax(kept / (kept + other)))


def check_parts(protocol: Attributes) -> None:
    """Which part is reported has one law for all answers, and the rest of the report hangs on that part alone."""
    channel = protocol.channel()
    part = np.array([int(output[:2], 16) for output in channel.outputs])
    chances = np.array([channel.rows[:, part == group].sum(axis=1) for group in range(len(protocol.groups))])
    assert np.allclose(chances, chances[:, :1]), "the answer chooses the part"
    for group in range(len(protocol.groups)):
        laws: dict[Any, Any] = {}
        for row, answer in enumerate(channel.inputs):
            law = laws.setdefault(answer[group], channel.rows[row][part == group])
            assert np.allclose(law, channel.rows[row][part == group]), "a report tells of a part that it is not about"


def test_one_part_is_reported_and_the_answer_does_not_choose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = PROTOCOLS["Attributes"]("1")
    said = promises(asked([protocol], RULES["once"]))["parts"]
    assert "one of the 2 parts of your answer (a, b)" in said
    assert "your answer to q0 (a, b)" in promises(asked([protocol, GRR(2, 1)], RULES["once"]))["parts"]
    assert "parts" not in promises(asked([GRR(2, 1)], RULES["once"]))
    assert "parts" not in promises(asked([Attributes.of({"a": GRR(2, 1)})], RULES["once"]))
    check_parts(protocol)
    # A device that reports a part more often if its answer is a certain one, and one that mixes two parts.
    monkeypatch.setattr(Choice, "choose", _chosen_by_answer)
    with pytest.raises(AssertionError, match="chooses"):
        check_parts(PROTOCOLS["Attributes"]("1"))
    monkeypatch.undo()
    monkeypatch.setattr(Attributes, "project", lambda self, value, group: (value[0] + value[1]) % 2)
    with pytest.raises(AssertionError, match="not about"):
        check_parts(PROTOCOLS["Attributes"]("1"))


def test_strata_are_in_the_report_and_the_numbers_are_about_the_rest() -> None:
    survey = strata()[1]
    protocol = survey.questions[0].protocol
    said = promises(survey)
    assert said["clear"].startswith("Your country and version are not protected. They are sent as written")
    assert "parts" not in said
    assert "Only country and version is not scrambled: Example Institute can read it." in said["line"]
    assert "clear" not in promises(asked([GRR(2, 1)], RULES["once"]))
    channel = protocol.channel()
    place = np.array([int(output[:2], 16) for output in channel.outputs])
    for row, (country, version, _) in zip(channel.rows, channel.inputs, strict=True):
        stratum = ["de", "fr"].index(country) * 3 + version
        assert set(place[row > 0]) == {stratum}, "the stratum is in the report as it is"
    for group in range(6):
        rows = np.array(channel.rows)[3 * group : 3 * group + 3][:, place == group]
        assert (rows.max(axis=0) / rows.min(axis=0)).max() == pytest.approx(float(survey.ratio))


def _chosen_by_answer(self: Choice, value: Any, bits: Any) -> int:
    group: int = bits.integers(2) if value[0] else bits.integers(4) // 3
    return group


@each_small_survey
def test_nobody_becomes_surer_than_the_sentence_says(survey: Survey) -> None:
    rows, said = law(survey), promises(survey)["sure"]
    stated = numbers(said, r"([\d.]+) %")
    assert stated, said
    # What a delta leaves out is no more than it says: `test_a_delta_is_said_per_report_and_in_all`.
    most = 100 * surest(rows, float(survey.ratio) if survey.delta else np.inf)
    assert said.count("at most") == said.count(" %"), "a bound says that it is one"
    assert most <= stated[0] + 1e-9
    assert 100 - most > (100 - stated[0]) * 0.5, "rounded up, and no more than that"
    if survey.lifetime_epsilon is not None and survey.lifetime_epsilon > survey.epsilon:
        assert len(stated) == 2
        rest = 100 / (1 + everything(survey))
        assert (100 - stated[1]) * 0.5 - 1e-8 < rest
        assert 100 - stated[1] <= rest + 1e-9
    else:
        assert len(stated) == 1


def test_of_profiles_the_profile_is_hidden_and_the_value_is_not() -> None:
    """A value of profiles that overlap may be reported as it is, and one value reported twice tells more than two."""
    graph = ProfileGraph({"A": "1/4", "B": "3/8", "C": 1}, [("A", "B")])
    made = asked([Table(OneBitCluster(graph, 1))], RULES["once"])
    rows, said = made.questions[0].protocol.table, promises(made)
    clear = [label for i, label in enumerate(graph.labels) if (rows[i] > 0).sum() == 2]
    assert clear == ["A", "B", "C"], "values are not changed at all"
    assert "which of the joined profiles is yours; the value itself is not hidden." in said["line"]
    assert said["profiles"].startswith("Your profile does not leave this device: ")
    assert said["profiles"].endswith("The numbers are about two joined profiles: A and B.")
    for name in ("sure", "guess", "factor"):
        assert "knows no more of your value than the profiles say" in said[name]
    report = made.questions[0].protocol.report({"profile": "A", "value": 1})
    assert report == b"\1", "one byte, the value: the profile is not in it"
    again = asked([Table(OneBitCluster(graph, 1))], RULES["three times"])
    assert "independently of the others" in promises(again)["profiles"]
    # One value that is reported twice tells more than twice the epsilon: the sentence names the condition.
    once = SmoothCategorical(ProfileGraph.chain({"a": ["1/2", "1/2", 0], "b": ["1/2", "1/4", "1/4"]}), "1/10")
    assert same_sample(once, once).epsilon > 16 * once.epsilon


def test_of_places_near_ones_are_hidden_and_far_ones_are_not() -> None:
    """Of every two cells of a grid, enumerated from the bytes: nobody becomes surer than is said of their distance."""
    protocol = PlanarLaplace(Grid(6, 3, cell="1 km"), "1/2", reach=2)
    said, channel = promises(asked([protocol], RULES["once"])), protocol.channel()
    assert "can tell roughly where you are, and not exactly." in said["line"]
    assert said["distance"].startswith("One cell side is 1 km. Epsilon grows with the distance: of places 5 cell sides")
    (near,), (far,) = (numbers(said[name], r"([\d.]+) %") for name in ("sure", "distance"))
    for name in ("sure", "factor"):
        assert "one cell side apart" in said[name]
    found: dict[int, float] = {}
    for (one, p), (other, q) in itertools.permutations(zip(channel.inputs, channel.rows, strict=True), 2):
        apart = (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2
        found[apart] = max(found.get(apart, 0.0), 100 * surest(np.array([p, q])))
    assert near - 0.2 < found[1] <= near, "side by side, and it is not said of less than is so"
    assert found[25] <= far
    assert found[9] > near, "what is said of cells side by side does not hold further apart"


def test_surveys_of_two_relations_are_refused() -> None:
    profiled = PROTOCOLS["ProfileTable"]("1")
    with pytest.raises(SpecError, match=r"'q0' is about the relation 'profiles' and 'q1' is about .* separate surveys"):
        asked([profiled, GRR(2, 1)], RULES["once"])
    with pytest.raises(SpecError, match="the questions are about the relation 'profiles' and the budget about 'any'"):
        Survey("promises", [Question("q", "What?", profiled)], terms())


def test_a_delta_is_said_per_report_and_in_all() -> None:
    """The stated probabilities are at least the hockey-stick divergences of one report and of all together."""
    found = set()
    for survey in all_surveys():
        said = promises(survey)
        assert ("rare" in said) == (survey.delta > 0)
        if not survey.delta:
            assert "delta" not in said["lifetime"]
            continue
        stated = [1 / number for number in numbers(said["rare"], r"1 in ([\d,]*\d)")]
        most = 0.0  # of sums: tests/protocols/test_secure_sum.py::test_the_sum_is_as_private_as_it_says
        if survey.relation != "sum":
            rows = law(survey)
            odds = float(exact.exp_floor(survey.epsilon))
            most = max(np.maximum(p - odds * q, 0).sum() for p in rows for q in rows)
        assert stated[0] * (1 + 1e-9) >= float(survey.delta) >= most - 1e-12
        assert stated[0] <= float(survey.delta) * 1.001, "rounded up, and no more than that"
        if survey.lifetime_epsilon is not None and survey.draws > 1:
            assert stated[1] * (1 + 1e-9) >= survey.draws * float(survey.delta)
            assert said["lifetime"].endswith(f" and delta {survey.delta * survey.draws}")
        else:
            assert len(stated) == 1
        level = band(survey)
        found.add(level)
        if survey.budget_delta > Fraction(1, 10**6):
            assert level != STRONG
    assert found == {STRONG, MODERATE, WEAK}


def test_what_a_browser_may_forget_is_a_note() -> None:
    """It weakens no promise: every other sentence stays, but for what a browser that remembers does with rounds."""
    for survey in all_surveys():
        kept, forgetful = promises(survey, "browser"), promises(survey, "browser", lasting=False)
        assert "storage" not in kept
        assert ("storage" in forgetful) == (survey.terms.longitudinal.epochs > 1)  # type: ignore[union-attr]
        same = {name: sentence for name, sentence in forgetful.items() if name not in ("storage", "round")}
        assert same == {name: sentence for name, sentence in kept.items() if name != "round"}


def true_guesses(survey: Survey, place: int) -> tuple[float, float, float]:
    """How often a guess of one answer is right: blindly, from one report and from all, by the enumerated law."""
    protocol, rule = survey.questions[place].protocol, survey.terms.longitudinal  # type: ignore[union-attr]
    times = rule.epochs if rule.rule == "none" or rule.is_two_stage else 1
    if isinstance(protocol.domain, ListedDomain):
        table = {"q": list(protocol.domain.labels)}
        most = [reidentify(table, {"q": protocol}, surveys=number) for number in (1, times) if number <= 3]
        return most[0].blind(), *[success(guess) for guess in (most[0], most[-1])]  # type: ignore[return-value]
    laws = law(asked([protocol], RULES["once"]))
    if isinstance(protocol.domain, Interval):
        return near_guesses(protocol, times)
    if isinstance(protocol.domain, Records) and protocol.guarantee.relation == "any":
        right, blind = max(part_guesses(protocol.channel()))
        return blind, right, right
    right = laws.max(axis=0).sum() / len(laws)
    return 1 / len(laws), right, right


def member_guesses(protocol: Protocol) -> float:
    """Whether an item is in a set whose rest is known, by the laws of both sets along every branch."""
    domain = protocol.domain
    items = list(domain.items.labels)[: domain.at_most]  # type: ignore[attr-defined]
    answers: list[Any] = [items, items[1:]]
    if isinstance(domain, KeyNumbers):
        answers = [dict.fromkeys(one, domain.interval.ends[0]) for one in answers]
    one, other = (exhaust(lambda bits, x=x: protocol.report(x, bits=bits)).law for x in answers)  # type: ignore[misc]
    return float(sum(max(one.get(sent, 0), other.get(sent, 0)) for sent in {*one, *other})) / 2


@functools.cache
def near_guesses(protocol: Protocol, times: int) -> tuple[float, float, float]:
    """A number to within a tenth of its range: the laws of 100 numbers along every branch; up to three reports."""
    if isinstance(protocol.domain, Integers):
        grid: list[float] = list(protocol.domain.labels)
    else:
        low, high = protocol.domain.ends  # type: ignore[attr-defined]
        grid = [low + (place + 0.5) / 100 * (high - low) for place in range(100)]
    width = 2 * ((len(grid) - 1) // 10) + 1 if isinstance(protocol.domain, Integers) else 20
    found = [exhaust(lambda bits, x=x: protocol.report(x, bits=bits)).law for x in grid]  # type: ignore[misc]
    outputs = sorted(set().union(*found))
    laws = np.array([[float(one.get(output, 0)) for output in outputs] for one in found])
    shares = []
    for number in (1, times if times <= 3 else 1):
        every = laws
        for _ in range(number - 1):
            every = (every[:, :, None] * laws[:, None, :]).reshape(len(grid), -1)
        sums = np.vstack([np.zeros(every.shape[1]), np.cumsum(every, axis=0)])
        shares.append(float((sums[width:] - sums[:-width]).max(axis=0).sum()) / len(grid))
    return width / len(grid), shares[0], shares[1]


def part_guesses(channel: Channel) -> list[tuple[float, float]]:
    """How often a guess of each part of a record is right: from a report, and blindly."""
    rows, found = np.asarray(channel.rows), []
    for column in np.array([[str(part) for part in one] for one in channel.inputs]).T:
        parts = np.array([rows[column == value].mean(axis=0) for value in np.unique(column)])
        found.append((float(parts.max(axis=0).sum() / len(parts)), 1 / len(parts)))
    return found


def success(guess: Any) -> float:
    found = guess.success()
    assert found is not None
    return float(found)


def stated_right(text: str) -> tuple[str, float]:
    """ "at most 69", "about 69", "more than 99" or "69": how it is said, and the number."""
    how, number = re.fullmatch(r"(at most |about |more than |fewer than |)([\d.]+)", text).groups()  # type: ignore[union-attr]
    return how, float(number)


def holds(text: str, right: float) -> bool:
    """Whether a figure is the share of right guesses that it says: not less, and not more than it has to be."""
    how, number = stated_right(text)
    if how == "at most ":
        return 100 * right <= number + 1e-9
    if how == "more than ":
        return 100 * right >= 99.5
    if how == "fewer than ":
        return 100 * right < 0.1
    half = 1.0 if how == "about " else 0.5 if number >= 10 else 0.05
    return abs(100 * right - number) <= half + 1e-9


def shown(right: Right) -> str:
    return catalogue().text(of_100(right))


FIGURE = r"((?:at most |about |more than |fewer than |)[\d.]*\d)"


@each_small_survey
def test_the_guesses_are_those_of_the_law(survey: Survey) -> None:
    """What is said of one report, of all of them and of none: compared with enumerated laws, in both directions."""
    said, found = promises(survey), guesses(survey)
    for place, one in enumerate(found):
        blind, once, always = true_guesses(survey, place)
        assert one.before == pytest.approx(blind)
        assert holds(shown(one.once), once)
        assert one.always.share >= always - {ABOUT: 0.01, AT_MOST: 1e-9, EXACT: 1e-3}[one.always.how]
        most = bound(float(survey.questions[place].protocol.epsilon), round(1 / blind))
        delta = float(survey.questions[place].protocol.guarantee.delta)
        if survey.relation == "any":
            assert one.once.share <= most + delta + 1e-9, "no more than epsilon allows"
    told = re.findall(rf"right {FIGURE} times of 100 without .*?, (?:and )?{FIGURE} times", said["guess"])
    assert told == [(shown(Right(one.before)), shown(one.once)) for one in found]


def test_one_report_of_every_kind_is_guessed_as_often_as_is_said() -> None:
    """Over all examples whose law is soon listed: exact figures are exact, and bounds are bounds."""
    checked: dict[str, set[str]] = {}
    for name, kind in registered().items():
        for protocol in kind.examples():
            promised = protocol.guarantee
            if not protocol.traits.local or promised.relation not in ("any", "metric") or protocol.law().clear:
                continue
            try:
                channel = protocol.channel(max_cells=1 << 14)
            except ChannelError:
                continue
            rows, found = np.asarray(channel.rows), guessed(protocol)
            best = max(100 * np.maximum(a, b).sum() / 2 for a, b in itertools.combinations(rows, 2))
            if found.thinks.id == "thinks.answers.all" and not isinstance(protocol.domain, Records):
                best = 100 * rows.max(axis=0).sum() / len(rows)
            if promised.relation == "metric":
                best = 100 * rows.max(axis=0).sum() / len(rows)
            if isinstance(protocol.domain, Records) and promised.relation == "any":
                best = 100 * max(part_guesses(channel))[0]
            if found.thinks.id == "thinks.numbers" and isinstance(protocol.domain, (Integers, Interval)):
                best = 100 * near_guesses(protocol, 1)[1]
            if found.thinks.id == "thinks.member":
                best = 100 * member_guesses(protocol)
            if found.thinks.id == "thinks.two":
                best = float(np.mean([50 * np.maximum(a, b).sum() for a, b in itertools.product(rows, repeat=2)]))
            number = any(isinstance(column, Interval) for column in protocol.domain.parts.values())
            if found.once.how == ABOUT:
                few = protocol.parameters().get("cohorts", 64) < 8  # few hash functions are not like the mean of all
                assert 100 * found.once.share == pytest.approx(best, abs=5 if few else 1), protocol
            elif found.once.how != EXACT or number:  # parts that are numbers: the ends are told apart better
                assert 100 * found.once.share >= (best if found.once.how != EXACT else 100 * found.before) - 1e-9, (
                    protocol
                )
            else:
                coarse = isinstance(protocol, LOneBitMean)  # its example rounds to three points
                assert 100 * found.once.share == pytest.approx(best, abs=1 if coarse else 1e-6), protocol
            checked.setdefault(name, set()).add(found.once.how)
    assert {"GRR", "OUE", "OLH", "BLH", "SubsetSelection", "HadamardResponse", "Table", "PlanarLaplace"} <= set(checked)
    assert all(checked[name] == {EXACT} for name in ("GRR", "OUE", "OLH", "BLH", "SubsetSelection", "HadamardResponse"))
    assert len(checked) > 20


REPEATED = {
    "GRR of 2": GRR(["yes", "no"], 1),
    "GRR of 4": GRR(4, 1),
    "OUE": OUE(3, 2),
    "SUE": SUE(4, 1),
    "OLH": OLH(5, 1),
    "SubsetSelection": SubsetSelection(5, 1),
    "HadamardResponse": HadamardResponse(3, 1),
    "Table": Table(Channel([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3]], ["yes", "no"]), 2),
}


@pytest.mark.parametrize("protocol", REPEATED.values(), ids=REPEATED)
def test_several_fresh_reports_are_guessed_as_often_as_is_said(protocol: Protocol) -> None:
    for times in (2, 3):
        found = guessed(protocol, times).always
        true = success(reidentify({"q": list(protocol.domain.labels)}, {"q": protocol}, surveys=times))  # type: ignore[attr-defined]
        if found.how == AT_MOST:
            assert found.share >= true - 1e-9
        else:
            assert found.share == pytest.approx(true, abs=1e-9 if found.how == EXACT else 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("times", [4, 12])
@pytest.mark.parametrize(
    "protocol", [OLH(16, 2), OLH(100, 1), BLH(10, 1), GRR(20, 2), OUE(50, 1), SubsetSelection(30, 2)], ids=repr
)
def test_many_fresh_reports_are_guessed_as_often_as_is_said(protocol: Protocol, times: int) -> None:
    """20,000 people by the best guess from real reports; four standard errors are 0.014 at most."""
    table = {"q": list(protocol.domain.labels)}  # type: ignore[attr-defined]
    simulated = reidentify(table, {"q": protocol}, surveys=times).simulate(20_000, seed=7)
    found = guessed(protocol, times).always
    assert found.share >= simulated - (0.01 if found.how == ABOUT else 0) - 0.014
    if found.how != AT_MOST:
        assert found.share <= simulated + (0.01 if found.how == ABOUT else 0) + 0.014


NEAR = {
    "one bit": OneBitMean(Interval(0, 1), 2),
    "Window": Window(Interval(-5, 95, unit="h"), 2, positions=9, width=3),
    "MeanTable": MeanTable(mean(2, positions=5), Interval(0, 10)),
    "Moments": Moments.of(Interval(0, 10), [OneBitMean(Interval(-1, 1), 2), OneBitMean(Interval(0, 1), 2)]),
}


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("protocol", NEAR.values(), ids=NEAR)
def test_numbers_are_guessed_to_within_a_tenth_as_often_as_is_said(protocol: Protocol, times: int) -> None:
    """One report exactly, several by simulation, within one guess in a hundred of the enumerated laws."""
    found = guessed(protocol, times)
    blind, once, always = near_guesses(protocol, times)
    assert found.before == pytest.approx(blind)
    assert found.once.how == EXACT
    assert found.once.share == pytest.approx(once, abs=1e-9)
    assert found.always.share == pytest.approx(always, abs=0.01)
    assert found.always.how == (EXACT if times == 1 else ABOUT)
    louder = guessed(OneBitMean(Interval(0, 1), 3), times).always.share
    assert protocol is not NEAR["one bit"] or louder > always + 0.01, "another law is noticed"


TEXTS = {
    "CMS": lambda key: CMS(["a", "b"], 2, hashing=Strings(cells=4, cohorts=64, key=key)),
    "OLHSketch": lambda key: OLHSketch(["a", "b"], 2, hash_bits=1, hashing=Strings(cells=4, cohorts=64, key=key)),
    "RAPPOR": lambda key: RAPPOR(["a", "b"], 2, bloom_bits=4, hashes=2, cohorts=64, key=key),
}


@pytest.mark.parametrize("made", TEXTS.values(), ids=TEXTS)
def test_texts_are_guessed_as_often_as_is_said(made: Any) -> None:
    """Which of two texts, by the enumerated laws, over twelve public keys."""
    each = [np.asarray(made(f"key {number}").channel(max_cells=1 << 20).rows) for number in range(12)]
    best = np.mean([np.maximum(*rows).sum() / 2 for rows in each])
    assert guessed(made("key")).once.share == pytest.approx(best, abs=0.01)
    assert guessed(made("key")).once.how == ABOUT


@pytest.mark.parametrize("seen", ["collisions", "subset", "keys"])
def test_items_are_guessed_as_often_as_is_said(seen: str) -> None:
    sets = Sets(list("abcdefgh"), at_most=3)
    made: Protocol = {
        "collisions": lambda: CollisionSets(sets, 2, cells=9, cohorts=256, key="many"),
        "subset": lambda: SubsetSets(sets, 2, subset_size=3),
        "keys": lambda: KeyValue(list("abcd"), Interval(0, 1), 2, at_most=2),
    }[seen]()
    assert guessed(made).once.share == pytest.approx(member_guesses(made), abs=0.01)


def test_courses_and_sums_are_guessed_as_often_as_is_said() -> None:
    """Streams of one answer that stays, enumerated; and sums with as much noise as suffices, simulated."""
    for size, changes, level in ((2, 0, 1), (2, 2, 3), (3, 1, 2)):
        stream = Evolving(size, level, epochs=2, changes=changes)
        laws = [enumerate_stream(stream, answer) for answer in (0, 1)]
        best = sum(max(law.get(sent, 0) for law in laws) for sent in set(laws[0]) | set(laws[1])) / 2
        assert guessed(stream).once.share == pytest.approx(float(best), abs=1e-9)
    summed = SecureSum(["a", "b", "c"], 2, people=1500, missing=300)
    random, n, decay = np.random.default_rng(5), 200_000, float(summed.decay)
    noise = random.geometric(1 - decay, (n, 3)) - random.geometric(1 - decay, (n, 3))
    noise[:, 0] += 1
    score = decay ** np.abs(noise - 1) / decay ** np.abs(noise)
    best = score == score.max(axis=1, keepdims=True)
    assert guessed(summed).once.share == pytest.approx((best[:, 0] / best.sum(axis=1)).mean(), abs=0.01)


def enumerate_stream(protocol: Evolving, answer: int) -> dict[tuple[bytes, ...], Fraction]:
    """The law of all reports of a device that always gives one answer, along every branch."""

    def sent(bits: Any) -> tuple[bytes, ...]:
        state, reports = protocol.begin(bits), []
        for epoch in range(1, protocol.epochs + 1):
            state, report = protocol.step(state, protocol.domain.labels[answer], epoch, bits)
            reports.append(report)
        return tuple(reports)

    return exhaust(sent).law


def test_what_respondents_read_of_the_known_examples() -> None:
    """Fear that the numbers do not carry is false, too."""
    shop = promises(asked([OLH(1000, 4)], RULES["once"]))
    assert shop["line"] == (
        "Your answers are scrambled on this device before they are sent. Example Institute cannot tell whether what "
        "arrives is what you chose."
    )
    assert shop["guess"] == (
        "Somebody who thinks all 1,000 answers equally likely guesses your answer right 0.1 times of 100 without your "
        "report, and 2.9 times with it."
    )
    four = promises(asked([GRR(["yes", "no"], "4/5") for _ in range(4)], RULES["once"]))
    assert four["guess"].count("right 50 times of 100 without your report, and 69 times with it.") == 4
    assert "cannot tell whether" in four["line"]
    amber = promises(asked([GRR(["yes", "no"], 2)], RULES["once"]))["line"]
    assert amber.endswith("From what arrives, Example Institute can guess 88 of 100 answers right.")
    red = promises(asked([GRR(["yes", "no"], 4)], RULES["once"]))["line"]
    assert red.endswith("can guess 98 of 100 answers right, and so find out what you chose.")


def test_fear_and_comfort_are_those_of_the_guesses() -> None:
    """Colours from 75 and 90 right guesses of 100 with one report that adds 10; bands the same, from all reports."""
    found, lines = set(), set()
    for survey in all_surveys():
        said, level, all_guesses = promises(survey), band(survey), guesses(survey)
        found.add(level)
        about = ("", " of your profile", " of your exact place", " if the collectors do not work together")
        assert said["band"] in tuple(f"Protection{of}: {level}." for of in about)
        adding = [one.always.share for one in all_guesses if one.always.share - one.before >= 0.1 - 1e-9]
        most = max(adding, default=0.0)
        by_guesses = WEAK if most > 0.9 - 1e-9 else MODERATE if most > 0.75 - 1e-9 else STRONG
        shown = survey.shows_changes or survey.budget_delta > Fraction(1, 10**6)
        assert level == (MODERATE if shown and by_guesses == STRONG else by_guesses)
        once = max((one.once for one in all_guesses if one.once.share - one.before >= 0.1 - 1e-9), default=Right(0.0))
        assert ("of 100 answers right" in said["line"]) == (once.share > 0.75 - 1e-9), "comfort ends at 75"
        assert "cannot tell whether" not in said["line"] or once.share < 0.75
        assert ("find out" in said["line"]) == (once.share > 0.9 - 1e-9 and once.how != AT_MOST)
        assert not any("find out" in text for name, text in said.items() if name != "line")
        lines.add(re.sub(r"\d+", "#", said["line"]))
    assert found == {STRONG, MODERATE, WEAK}
    assert len(lines) > 6


@each_small_survey
def test_odds_change_by_no_larger_factor(survey: Survey) -> None:
    said, each = promises(survey), r"(?:factor of|time, and|report, and) ([\d,.]*\d)"
    stated = numbers(said["factor"], each)
    assert survey.ratio <= Fraction(stated[0])
    assert float(survey.ratio) > stated[0] * 0.98
    if "in all" in said["factor"] and len(stated) > 1 and "\u00d7" not in said["factor"]:
        assert everything(survey) <= stated[1] * (1 + 1e-12)


def streams(rows: np.ndarray, survey: Survey, answers: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """The law of all reports of a device whose answers over the epochs are these."""
    assert survey.terms is not None
    rule, states, memo = survey.terms.longitudinal, [], {}
    for epoch, answer in enumerate(answers):
        if rule.rule == "none":
            states.append((epoch, answer))
            continue
        if answer not in memo and len(memo) < rule.values:
            memo[answer] = (answer, answer)
        states.append(memo.get(answer) or next(iter(memo.values())))
    distinct = list(dict.fromkeys(states))
    found: dict[tuple[int, ...], float] = {}
    for drawn in itertools.product(range(rows.shape[1]), repeat=len(distinct)):
        chance = float(np.prod([rows[answer, y] for (_, answer), y in zip(distinct, drawn, strict=True)]))
        sent = tuple(drawn[distinct.index(state)] for state in states)
        found[sent] = found.get(sent, 0.0) + chance
    return found


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_number_for_all_reports_is_stated_only_where_it_holds(rule: Longitudinal) -> None:
    """Over all pairs of streams of three answers: the stated number bounds the ratio, and without one nothing does."""
    survey = asked([GRR(3, 1)], rule)
    rows = np.asarray(survey.questions[0].protocol.channel().rows)
    epochs = min(3, rule.epochs)
    laws = [streams(rows, survey, answers) for answers in itertools.product(range(3), repeat=epochs)]
    outcomes = set().union(*laws)
    worst = max(
        float("inf") if not other.get(y) else one.get(y, 0.0) / other[y]
        for one, other in itertools.permutations(laws, 2)
        for y in outcomes
        if one.get(y)
    )
    said = promises(survey)
    if survey.lifetime_epsilon is None:
        assert worst == float("inf")
        assert "no epsilon bounds" in said["lifetime"]
        assert "in all" not in said["factor"]
    else:
        assert worst <= np.exp(float(survey.epsilon) * min(survey.draws, epochs)) * (1 + 1e-9)
        assert said["lifetime"] == f"epsilon {survey.lifetime_epsilon}"


@pytest.mark.parametrize("values", [1, 2])
@pytest.mark.parametrize(("first", "forever"), STAGES)
def test_two_stages_tell_no_more_than_is_said(first: str, forever: str, values: int) -> None:
    """All pairs of streams of four answers, enumerated: what is said of all reports holds, and what is counted too."""
    protocol = LGRR(["yes", "no"], first, forever)
    survey = staged([protocol], values, epochs=4)
    said, found = promises(survey), protocol.levels(4, values, enumerated=True)
    assert survey.lifetime_epsilon is not None
    assert float(found.any) <= float(survey.lifetime_epsilon) + 1e-12
    assert said["lifetime"] == f"epsilon {exact.epsilon_text(survey.lifetime_epsilon)}"
    assert ("changes" in said) == (values > 1)
    assert "no number" not in " ".join(said.values())
    if values == 1:
        assert survey.lifetime_epsilon == survey.budget_epsilon == protocol.forever
        assert float(found.any) > float(protocol.first), "one report's level is not a lifetime's"
    else:
        (counted,) = numbers(said["changes"], r"epsilon ([\d.]+)")
        assert float(found.same_pattern) <= counted + 1e-12
        assert survey.lifetime_epsilon > protocol.first
        if float(protocol.first) < 1:
            assert float(found.any) > 4 * float(protocol.first), "reports from one state are not independent"


def test_a_return_to_an_earlier_answer_shows() -> None:
    """a, b, c, a against a, b, c, b: the last report differs from the first with probability 0 against .71."""
    survey = asked([GRR(3, 1)], RULES["three repeated"])
    rows = np.asarray(survey.questions[0].protocol.channel().rows)
    back, other = (streams(rows, survey, answers) for answers in ((0, 1, 2, 0), (0, 1, 2, 1)))
    differ = [sum(p for sent, p in law.items() if sent[3] != sent[0]) for law in (back, other)]
    assert differ[0] == 0
    assert differ[1] == pytest.approx(0.7109, abs=1e-4)


class Louder(GRR):
    """Keeps an answer more often than its epsilon allows."""

    @cached_property
    def response(self) -> RandomizedResponse:
        return RandomizedResponse.at(self.domain.size, self.epsilon + 1)


@pytest.mark.parametrize(
    "test",
    [
        test_nobody_becomes_surer_than_the_sentence_says,
        test_odds_change_by_no_larger_factor,
    ],
    ids=lambda test: test.__name__,
)
def test_a_law_that_breaks_its_promise_is_caught(test: Any) -> None:
    test([asked([GRR(["yes", "no"], 1)], Longitudinal())])
    with pytest.raises(AssertionError):
        test([asked([Louder(["yes", "no"], 1)], Longitudinal())])


def test_a_number_over_streams_that_show_changes_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Survey, "shows_changes", False)
    with pytest.raises(AssertionError):
        test_a_number_for_all_reports_is_stated_only_where_it_holds(RULES["three repeated"])


# -- the ledger ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_device_answers_as_often_and_repeats_what_the_sentence_says(rule: Longitudinal, tmp_path: Path) -> None:
    """Fresh reports of forty or three epochs are all equal by chance with probability below 2^-19."""
    survey = asked([GRR(32, "1/8") for _ in range(2)], rule)
    ledger, said, answers = Ledger(tmp_path / "ledger.sqlite"), promises(survey)["often"], "0123012301"
    sent: list[bytes] = []
    for epoch in range(rule.epochs):
        value = int(answers[epoch % len(answers)])
        sent.append(ledger.submit(survey, epoch, {"q0": value, "q1": value})[0].body[24:])
    with pytest.raises(BudgetSpent):
        ledger.submit(survey, rule.epochs, {"q0": 0, "q1": 0})
    assert ("once." in said) == (rule.epochs == 1)
    assert rule.epochs == 1 or f"{rule.epochs} times at most" in said
    if "afresh" in said:
        assert len(set(sent)) > 1
    if "All reports repeat the first one" in said:
        assert set(sent) == {sent[0]}
    if "The same answer repeats the same report" in said:
        assert (sent[0], sent[1], sent[2]) == (sent[4], sent[5], sent[6])
        assert sent[3] == sent[7] == sent[0], "the fourth value sends the first report"


@pytest.mark.parametrize("values", [1, 3])
def test_a_device_keeps_outcomes_and_draws_reports_from_them_as_the_sentence_says(values: int, tmp_path: Path) -> None:
    """Reports follow the kept outcome: 36 of 40 on average, below 20 with probability under 1e-9; all 40, 2 %."""
    survey = staged([LGRR(8, 4, 6)], values, epochs=200)
    ledger, said = Ledger(tmp_path / "ledger.sqlite"), promises(survey)["often"]
    assert "200 times at most" in said
    assert ("first answer is randomized once" in said) == (values == 1)
    sent: dict[int, list[int]] = {}
    for epoch in range(200):
        answer = epoch % 5
        sent.setdefault(answer, []).append(ledger.submit(survey, epoch, {"q0": answer})[0].body[24])
    with sqlite3.connect(ledger.path) as file:
        kept = [outcome[0] for (outcome,) in file.execute("SELECT drawn FROM memo ORDER BY place")]
    assert len(kept) == values
    assert any(len(set(reports)) > 1 for reports in sent.values()), "drawn afresh"
    for answer, reports in sent.items():
        outcome = kept[answer] if answer < values else kept[0]
        assert reports.count(outcome) > 20, "that of the answer, or of the first beyond the cap"
    assert "if your answer stays the same" in promises(survey)["guess"], "it is not said of changed answers"
    with pytest.raises(BudgetSpent):
        ledger.submit(survey, 200, {"q0": 0})


def test_linkable_reports_are_recognized_and_others_are_not() -> None:
    """200 devices with one answer, 52 reports each: those of one device are found by their bits among those of all.

    With states that few share nearly all are found; with LOLOHA, which is not called linkable, one in four at most. The
    search is the best guess by the number of equal bits. False alarm below 1e-9.
    """
    devices, weeks, bits = 200, 26, Simulation(5)

    def found(protocol: Memoized) -> float:
        states = protocol.permanents([protocol.domain.example] * devices, bits)
        before, after = (
            np.mean(
                [np.unpackbits(protocol.reports(states, bits).array, axis=1, bitorder="little") for _ in range(weeks)],
                axis=0,
            )
            for _ in range(2)
        )
        apart = np.square(before[:, None] - after[None]).sum(axis=2)
        return float((apart.argmin(axis=1) == np.arange(devices)).mean())

    survey = linkable(1)
    assert "linked" in promises(survey)
    assert "as by a cookie" in promises(survey)["linked"]
    wide = LOSUE(40, first=1, forever=2)
    assert found(wide) > 0.9, "a state that nobody shares is a cookie"
    few = LOLOHA(1000, first=1, forever=2)
    assert few.law().kept.linking(52) <= 1024
    assert found(LOLOHA(1000, first=1, forever=2, hashing=Strings(4, 8))) < 0.25, "many devices share each state"
    assert all("linked" not in promises(one) for one in two_stages()[:-2])

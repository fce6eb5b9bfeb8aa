"""Guesses from several reports: exact against brute force over bytes, below the bounds, simulated.

Each simulated comparison fails by chance with probability 6e-5 (four standard errors); seeds are fixed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import deniable as dn
from deniable.errors import ChannelError, NumberError, ShapeError
from deniable.privacy import Evidence, correlated, household, profile_inference, recurrence, reidentify
from deniable.protocols.profiles import OneBitCluster, ProfileGraph, ProfileTable
from deniable.randomness import exhaust

N, E2 = 4000, math.exp(2)
PEOPLE = {"smokes": ["yes", "no", "yes", "no"], "age": [0, 1, 2, 2], "sex": ["f", "f", "m", "m"]}
ASKED = {"smokes": dn.GRR(["yes", "no"], 1), "age": dn.OUE(3, 1), "sex": dn.GRR(["f", "m"], "1/2")}


def near(seen, truth, n=N):
    return abs(seen - truth) <= 4 * math.sqrt(truth * (1 - truth) / n)


def best(laws, prior=None, top=1):
    """The success of the best guess from laws of bytes, in fractions and without merging anything."""
    weights = prior or [Fraction(1, len(laws))] * len(laws)
    seen = set().union(*laws)
    likely = ([w * law.get(y, 0) for w, law in zip(weights, laws, strict=True)] for y in seen)
    return float(sum(sum(sorted(each, reverse=True)[:top]) for each in likely))


def law(protocol, value):
    return exhaust(lambda bits: protocol.report(value, bits)).law


def joined(*laws):
    """The law of independent reports, one after the other."""
    whole = {b"": Fraction(1)}
    for each in laws:
        whole = {a + b: p * q for (a, p), (b, q) in product(whole.items(), each.items())}
    return whole


# -- re-identification -----------------------------------------------------------------------------------


def test_evidence_is_the_law_itself():
    coin = Evidence.of([(3, 1), (1, 3)])
    assert (coin * coin).classes == {(9, 1): 1, (1, 1): 6, (1, 9): 1}
    assert Evidence.either([coin, coin]).success() == Fraction(3, 4)
    assert coin.mixed([0, 0], [Fraction(1, 2)] * 2).ratio == 1
    assert Evidence.of([(1, 0), (1, 2)]).ratio == math.inf
    with pytest.raises(ChannelError, match="too many"):
        Evidence.of((i, 1000 - i) for i in range(1000)) ** 2


@pytest.mark.floats
@pytest.mark.parametrize("top", [1, 2])
@pytest.mark.parametrize("names", [("smokes",), ("smokes", "sex"), ("smokes", "age", "sex")])
def test_reidentification_is_exact_and_below_its_bound(names, top):
    asked = {name: ASKED[name] for name in names}
    laws = {name: {value: law(ASKED[name], value) for value in PEOPLE[name]} for name in names}
    ratio = math.prod(ASKED[name].ratio for name in names)
    once = [joined(*(laws[name][PEOPLE[name][i]] for name in names)) for i in range(4)]
    for surveys in (1, 2) if len(names) < 3 else (1,):
        found = reidentify(PEOPLE, asked, surveys)
        brute = best([joined(*[one] * surveys) for one in once], top=top)
        assert found.success(top) == pytest.approx(brute, abs=1e-12)
        assert found.blind(top) <= found.success(top) + 1e-12
        assert found.success(top) <= found.bound(top) + 1e-12
        assert found.bound(top) <= float(top * ratio**surveys / (top * ratio**surveys + 4 - top)) + 1e-12
    if names == ("smokes", "sex"):  # everybody has a record of their own: nothing smaller is a bound
        assert reidentify(PEOPLE, asked).bound() == pytest.approx(reidentify(PEOPLE, asked).success())


@pytest.mark.floats
def test_one_attribute_per_survey():
    found = reidentify(PEOPLE, ASKED, surveys=2, ask="one")
    once = []
    for i in range(4):
        each = [(bytes([place]), law(ASKED[name], PEOPLE[name][i])) for place, name in enumerate(ASKED)]
        once.append({tag + y: p / 3 for tag, own in each for y, p in own.items()})
    assert found.success() == pytest.approx(best([joined(one, one) for one in once]), abs=1e-12)
    assert found.success() < reidentify(PEOPLE, ASKED, surveys=2).success()
    assert found.success() <= found.bound() <= E2 / (E2 + 3)
    assert near(found.simulate(N, seed=2), found.success())
    with pytest.raises(ChannelError, match="afresh"):
        reidentify(PEOPLE, ASKED, ask="one", repeat=True)


@pytest.mark.parametrize("surveys", [1, 5])
def test_simulated_reidentification_agrees(surveys):
    found = reidentify(PEOPLE, ASKED, surveys)
    for top, seen in zip((1, 2), found.simulate(N, seed=3, top=(1, 2)), strict=True):
        assert near(seen, found.success(top))


def test_states_and_repeated_reports_limit_what_time_tells():
    fresh = reidentify(PEOPLE, {"smokes": ASKED["smokes"]}, surveys=9)
    again = reidentify(PEOPLE, {"smokes": ASKED["smokes"]}, surveys=9, repeat=True)
    once = reidentify(PEOPLE, {"smokes": ASKED["smokes"]})
    assert again.success() == once.success() < fresh.success()
    state = dn.LGRR(["yes", "no"], first="1/2", forever=1)
    kept = reidentify(PEOPLE, {"smokes": state}, surveys=9)
    assert once.success() * 0.9 < kept.success() < once.success()  # a state of epsilon 1, seen through nine reports
    assert kept.success() <= kept.bound() <= once.bound() + 1e-12
    assert near(kept.simulate(N, seed=4), kept.success())


def test_many_people_are_simulated_below_the_bound():
    random = np.random.default_rng(1)
    people = {"a": random.integers(0, 8, 300), "b": random.integers(0, 8, 300)}
    found = reidentify(people, {"a": dn.OUE(8, 2), "b": dn.GRR(8, 2)})
    assert found.success() is None
    for top, seen in zip((1, 10), found.simulate(2000, seed=5, top=(1, 10)), strict=True):
        assert found.blind(top) < seen < found.bound(top) + 4 * math.sqrt(found.bound(top) / 2000)


def test_a_client_that_tells_too_much_beats_the_bound():
    claimed, real = dn.GRR(["yes", "no"], 1), dn.GRR(["yes", "no"], 3)
    found = reidentify({"smokes": ["yes", "no"]}, {"smokes": claimed})
    object.__setattr__(claimed, "privatize", real.privatize)
    assert found.simulate(N, seed=6) > found.bound() + 4 * math.sqrt(found.bound() / N)


def test_a_device_that_does_not_keep_its_state_beats_the_bound_of_a_state():
    """Longitudinal clients that draw anew each time, as one package has them: a hundred reports tell everything."""
    kept = dn.LGRR(["yes", "no"], first="1/2", forever=1)
    found = recurrence(kept, [["yes"] * 100, ["no"] * 100])
    assert found.simulate(200, seed=1) < found.bound() + 4 * math.sqrt(0.25 / 200)
    forgets = [lambda answers, values, bits: [kept.draw(kept.domain.encode_one(x), bits) for x in answers]]
    object.__setattr__(kept, "stream", forgets[0])
    assert found.simulate(200, seed=1) > 0.95 > found.bound() + 4 * math.sqrt(0.25 / 200)


# -- correlated answers ----------------------------------------------------------------------------------


@pytest.mark.floats
@pytest.mark.parametrize("agree", ["0", "1/2", "1"])
@pytest.mark.parametrize("protocol", [dn.GRR(3, 1), dn.OUE(2, 1)], ids=["GRR", "OUE"])
def test_a_household_is_what_the_reports_of_all_its_members_say(protocol, agree):
    size, people = protocol.domain.size, 3
    prior = [Fraction(1, 2)] + [Fraction(1, 2) / (size - 1)] * (size - 1)
    agree = Fraction(agree)
    laws = [law(protocol, value) for value in range(size)]
    own = [{} for _ in range(size)]
    for answers in product(range(size), repeat=people):
        alike = len(set(answers)) == 1
        chance = (1 - agree) * math.prod(prior[x] for x in answers) + (agree * prior[answers[0]] if alike else 0)
        for y, p in joined(*(laws[x] for x in answers)).items():
            own[answers[0]][y] = own[answers[0]].get(y, 0) + p * chance / prior[answers[0]]
    found = correlated(protocol, household(prior, people, agree))
    assert found.success() == pytest.approx(best(own, prior), abs=1e-12)
    ratio = max(max(one[y] for one in own) / min(one[y] for one in own) for y in own[0])
    assert found.evidence.ratio == ratio
    assert found.success() <= found.bound() + 1e-12
    assert near(found.simulate(N, seed=7), found.success())


@pytest.mark.floats
def test_nothing_is_told_by_others_who_answer_for_themselves_and_everything_by_those_who_agree():
    coin = dn.GRR(["yes", "no"], 1)
    alone = correlated(coin, household(["1/2", "1/2"], 4, 0))
    assert alone.epsilon == pytest.approx(1)
    assert alone.success() == pytest.approx(dn.privacy.attack(coin).success)
    together = correlated(coin, household(["1/2", "1/2"], 4, 1))
    assert together.epsilon == pytest.approx(4)
    assert together.success() == pytest.approx(dn.privacy.averaging(coin, 4).success, abs=1e-6)


@pytest.mark.floats
def test_attributes_that_go_together():
    table = [["0.3", "0.1", "0"], ["0.1", "0.1", "0.4"]]
    smoking, cough = dn.GRR(2, 1), dn.OUE(3, 2)
    joint = [[Fraction(cell) for cell in row] for row in table]
    own = [{}, {}]
    for x, z in product(range(2), range(3)):
        for y, p in joined(law(smoking, x), law(cough, z)).items():
            own[x][y] = own[x].get(y, 0) + p * joint[x][z] / sum(joint[x])
    found = correlated([smoking, cough], table)
    prior = [sum(row) for row in joint]
    assert found.success() == pytest.approx(best(own, prior), abs=1e-12)
    alone = dn.privacy.attack(smoking, [float(share) for share in prior])
    assert alone.success < found.success() <= found.bound()
    assert near(found.simulate(N, seed=8), found.success())
    other = correlated([smoking, cough], table, about=1)
    assert other.secrets == 3
    assert near(other.simulate(N, seed=9), other.success())
    # Too large to list: the simulation still guesses, below the bound.
    wide = correlated([smoking, dn.OUE(40, 4)], [[Fraction(1, 40)] * 20 + [0] * 20, [0] * 20 + [Fraction(1, 40)] * 20])
    assert wide.success() is None
    assert 0.74 < wide.simulate(N, seed=8) < wide.bound()
    for wrong in (lambda: correlated([smoking], table), lambda: correlated([cough, smoking], table)):
        with pytest.raises(ShapeError):
            wrong()
    with pytest.raises(NumberError):
        correlated([smoking, cough], [[1, 1], [1, 1]])


# -- streams -----------------------------------------------------------------------------------------------


def streamed(protocol, answers, values=None):
    return exhaust(lambda bits: b"".join(protocol.stream(answers, values, bits)), most_runs=1 << 20).law


@pytest.mark.floats
@pytest.mark.parametrize(
    ("protocol", "streams", "values"),
    [
        (dn.LGRR([0, 1], first="1/2", forever=1), [[0, 0, 0], [0, 1, 0], [0, 1, 1]], None),
        (dn.LGRR([0, 1, 2], first="1/2", forever=1), [[0, 1, 2], [0, 1, 0]], 2),
        (dn.LSUE([0, 1], first="1/2", forever=1), [[0, 0], [0, 1]], None),
        (dn.DBitFlip([0, 1, 2], first="1/2", forever=1, bits=2), [[0, 0], [0, 1]], None),
    ],
    ids=["LGRR", "capped", "LSUE", "DBitFlip"],
)
def test_streams_are_told_apart_as_their_bytes_are(protocol, streams, values):
    laws = [streamed(protocol, stream, values) for stream in streams]
    found = recurrence(protocol, streams, values)
    assert found.success() == pytest.approx(best(laws), abs=1e-12)
    assert found.success() <= found.bound() + 1e-12
    assert near(found.simulate(1000, seed=1), found.success(), 1000)


@pytest.mark.floats
def test_a_hash_that_a_device_keeps_is_shared_by_its_states():
    protocol = next(dn.LOLOHA.examples())
    a, b, c = protocol.domain.labels
    streams = [[a, b, a], [a, b, c]]
    laws = [streamed(protocol, stream) for stream in streams]
    assert recurrence(protocol, streams).success() == pytest.approx(best(laws), abs=1e-12)


def test_an_answer_that_comes_back_is_seen():
    """Repeated reports show it for certain in the long run; two stages less, and more with every epoch; the tree of
    differences keeps its epsilon for the whole stream."""
    repeated = recurrence(dn.GRR(3, 4), [[0, 1, 0], [0, 1, 2]], repeat=True)
    assert repeated.epsilon == math.inf
    assert repeated.success() > 0.95
    assert repeated.bound() == 1.0
    stages = dn.LGRR(3, first="1/2", forever=1)
    seen = [recurrence(stages, [[0] * m + [1] * m + [0] * m, [0] * m + [1] * m + [2] * m]) for m in (1, 2, 3)]
    assert seen[0].epsilon < seen[1].epsilon < seen[2].epsilon
    assert seen[2].epsilon == pytest.approx(3.21, abs=0.01)
    tree = next(dn.Evolving.examples())
    still = recurrence(tree, [["no"] * 4, ["no", "no", "yes", "yes"]])
    assert still.success() <= still.bound()
    assert near(still.simulate(1000, seed=2), still.success(), 1000)
    constant = recurrence(stages, [[0] * 6, [1] * 6])
    assert constant.success() <= constant.bound() == pytest.approx(float(dn.privacy.surest(stages.permanent_ratio)))
    fresh = recurrence(dn.GRR(2, 1), [[0] * 12, [1] * 12])
    assert fresh.success() == pytest.approx(dn.privacy.averaging(dn.GRR(2, 1), 12).success, abs=1e-6)
    assert near(fresh.simulate(1000, seed=2), fresh.success(), 1000)
    assert near(repeated.simulate(1000, seed=2), repeated.success(), 1000)
    with pytest.raises(ShapeError):
        recurrence(stages, [[0, 1], [0]])


# -- profiles ----------------------------------------------------------------------------------------------


def test_profiles_that_are_joined_are_told_apart_by_e_to_the_epsilon_at_most():
    for table in ProfileTable.examples():
        channel, names = table.channel(), list(table.graph.labels)
        for one, other in table.graph.edges:
            found = profile_inference(table, [one, other])
            mixes = []
            for name in (one, other):
                shares = [Fraction(share) for share in table.graph.whole.law(names.index(name))]
                start = names.index(name) * len(shares)
                rows = channel.numerators[start : start + len(shares)]
                mixes.append({y: sum(s * int(p) for s, p in zip(shares, col, strict=True)) / channel.denominator
                              for y, col in enumerate(rows.T)})  # fmt: skip
            assert found.success() == pytest.approx(best(mixes), abs=1e-12)
            assert found.success() <= found.bound() + 1e-12
            assert found.bound() == pytest.approx(float(table.ratio / (1 + table.ratio)))
            assert found.bound() <= math.exp(table.epsilon) / (1 + math.exp(table.epsilon)) + 1e-12


def test_profiles_over_several_steps_reports_and_priors():
    table = OneBitCluster(ProfileGraph.chain({"early": 0.1, "day": 0.5, "late": 0.9}), epsilon=1)
    ends = profile_inference(table, ["early", "late"])
    assert ends.bound() == pytest.approx(E2 / (1 + E2))
    assert 0.7 < ends.success() <= ends.bound()
    week = profile_inference(table, ["early", "day"], reports=7)
    assert profile_inference(table, ["early", "day"]).success() < week.success() <= week.bound()
    every = profile_inference(table, prior={"early": 0.2, "day": 0.5, "late": 0.3})
    assert every.blind() == pytest.approx(0.5)
    for found in (ends, week, every):
        assert near(found.simulate(N, seed=3), found.success())
    apart = ProfileGraph({"a": [0.1, 0.9], "b": [0.2, 0.8], "c": [0.9, 0.1]}, [("a", "b")], ["x", "y"])
    assert profile_inference(OneBitCluster(apart, epsilon=1), ["a", "c"]).bound() == 1.0
    with pytest.raises(ShapeError):
        profile_inference(table, ["early", "night"])


def test_a_profile_mechanism_without_its_noise_beats_the_bound():
    graph = ProfileGraph.chain({"early": 0.02, "late": 0.98})
    table = ProfileTable(OneBitCluster(graph, epsilon=1))
    found = profile_inference(table)
    values = {value: bytes([place]) for place, value in enumerate(graph.values)}

    class Sent:
        def __init__(self, records, bits):
            self.array = np.array([list(values[record["value"]]) for record in records], dtype=np.uint8)

    assert found.simulate(N, seed=1) < found.bound() + 4 * math.sqrt(0.25 / N)
    object.__setattr__(table, "privatize", Sent)
    assert found.simulate(N, seed=1) > 0.95 > found.bound() + 4 * math.sqrt(0.25 / N)

"""The planner's numbers are those of the protocols as built, and its order is the order of simulated errors."""

from __future__ import annotations

import io
import itertools
import json
import math
from functools import partial

import numpy as np
import pytest
from rich.console import Console

from deniable import exact
from deniable.domains import Categories, Integers, Interval, Strings
from deniable.errors import DomainError, NumberError
from deniable.planning import Plan, half_width, plan
from deniable.protocols import (
    BLH,
    GRR,
    OLH,
    OUE,
    HadamardResponse,
    Ranges,
    SubsetSelection,
    Window,
    choice,
    load,
    registered,
)
from deniable.protocols.choice import SAME, build, choose
from deniable.protocols.frequency.local_hashing import mean_image
from deniable.randomness import Bits, Simulation
from deniable.results import quantile
from tests.memory import memory_below

LISTED = sorted(build(Integers(0, 4), 1))


def by_name(found: Plan):
    return {option.name: option for option in found.table}


@pytest.mark.parametrize(
    ("size", "epsilon", "golden"),
    [
        (64, 1, {"GRR": 21.9, "SUE": 3.92, "OUE": 3.68, "OLH": 3.69, "SubsetSelection": 3.54}),
        (1024, 3, {"GRR": 2.86, "SUE": 0.370, "OUE": 0.2206, "OLH": 0.2253, "SubsetSelection": 0.2182}),
    ],
)
def test_variances_of_the_literature(size, epsilon, golden):
    # The published OLH has any number of hash values, 0.2206 in the second case; ours a power of two.
    options = by_name(plan(size, epsilon=epsilon, n=1))
    for name, variance in golden.items():
        assert options[name].variance == pytest.approx(variance, rel=3e-3)


def test_protocols_with_many_reports_are_left_out():
    free, few = plan(30, epsilon=1, n=5000), plan(30, epsilon=1, n=5000, forms=64)
    kept = {name for name, option in by_name(free).items() if option.protocol.report_forms <= 64}
    assert kept == set(by_name(few)) == {"GRR", "BLH", "HadamardResponse"}
    assert few.reason.startswith("Of the protocols with at most 64 different reports, ")
    # The two that are better have the same error to the last digit, bytes and work, and so no such reason is given.
    assert "has the least noise" in few.reason
    assert plan(30, epsilon=1, within=0.01, forms=64).n > plan(30, epsilon=1, within=0.01).n
    assert plan(30, n=5000, within=0.05, forms=64).epsilon > plan(30, n=5000, within=0.05).epsilon
    for answers in (65, 2**20, Strings()):
        with pytest.raises(DomainError, match="at most 64 different reports"):
            plan(answers, epsilon=1, n=5000, forms=64)


def enumerated_accuracy(protocol):
    channel = protocol.channel()
    return float(channel.rows.max(axis=0).sum() / len(channel.inputs))


SMALL = [
    *itertools.product((GRR, OUE, BLH, OLH, SubsetSelection, HadamardResponse), (2, 5), (0.5,), [{}]),
    *itertools.product((GRR, OUE, BLH, OLH, SubsetSelection, HadamardResponse), (3, 6), (2.0,), [{}]),
    *itertools.product((HadamardResponse,), (4, 5, 7, 9), (1.0,), [{"blocks": 1}, {"blocks": 2}, {"blocks": 4}]),
    (OLH, 16, 1.0, {"hash_bits": 2}),
    pytest.param(OLH, 7, 1.0, {"hash_bits": 3}, marks=pytest.mark.slow),
    pytest.param(OLH, 4, 1.0, {"hash_bits": 4}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("kind", "size", "epsilon", "options"), SMALL)
def test_attack_accuracy_by_enumeration(kind, size, epsilon, options):
    protocol = kind(size, epsilon, **options)
    assert protocol.attack == pytest.approx(enumerated_accuracy(protocol), rel=1e-12)


def test_linear_hashes_help_the_attacker_less_than_random_ones():
    protocol = OLH(16, 1, hash_bits=2)
    found = protocol.attack
    assert found == pytest.approx(0.1120, abs=5e-5)
    p, g = float(protocol.p), 4
    random_hashes = p * g * (1 - (1 - 1 / g) ** 16) / 16 + (1 - p) * (1 - 1 / g) ** 15 / 16
    assert random_hashes == pytest.approx(0.1181, abs=5e-5)


@pytest.mark.parametrize(("size", "rows"), [(1, 1), (2, 2), (3, 1), (5, 2), (6, 2), (7, 3), (8, 2), (11, 1)])
def test_mean_image_by_enumeration(size, rows):
    length = max(1, (size - 1).bit_length())
    images = []
    for matrix in itertools.product(range(1 << length), repeat=rows):
        images.append(len({tuple((row & v).bit_count() & 1 for row in matrix) for v in range(size)}))
    assert mean_image(size, rows) == pytest.approx(np.mean(images), rel=1e-12)


@pytest.mark.parametrize("name", LISTED)
def test_leverage_is_the_most_that_one_report_adds(name):
    protocol = build(Integers(0, 4), 1)[name]
    reports = [np.frombuffer(bytes.fromhex(form), dtype=np.uint8).reshape(1, -1) for form in protocol.channel().outputs]
    largest = max(protocol.estimate(protocol.tally(report)).counts.max() for report in reports)
    assert protocol.leverage == pytest.approx(largest, rel=1e-9)


class Counting(Bits):
    """Bits that count the bytes that are taken."""

    def __init__(self, seed):
        self.source, self.bytes = Simulation(seed), 0

    def fill(self, out):
        self.bytes += out.nbytes
        self.source.fill(out)

    def take(self, count):
        self.bytes += count
        return self.source.take(count)


@pytest.mark.parametrize("size", [5, 64, 100, 1000])
@pytest.mark.parametrize("name", LISTED)
def test_random_bytes_of_a_report(name, size):
    protocol = build(Integers(0, size - 1), 1)[name]
    bits = Counting(1)
    for value in range(200):
        protocol._one(value % size, bits)
    assert bits.bytes / 200 == pytest.approx(protocol.cost.random_bytes, rel=0.06)


def simulated_variance(protocol, n, runs, seed):
    """Of the shares of answers that nobody gave, when everybody gave answer 0."""
    truth = np.zeros(protocol.domain.size, dtype=np.int64)
    truth[0] = n
    answers = np.arange(1, protocol.domain.size)
    if isinstance(protocol, HadamardResponse) and protocol.blocks < protocol.domain.size:
        answers = answers[answers % protocol.blocks == 0]  # the worst case: the same block
    return float(np.square(protocol.simulate(None, runs, seed, counts=truth).figures()[:, answers]).mean())


SETTINGS = list(itertools.product((4, 12, 40, 100), (0.5, 1, 2, 3, 4)))


@pytest.mark.parametrize(("size", "epsilon"), SETTINGS[7::9])
def test_the_order_is_that_of_simulated_errors(size, epsilon):
    order_agrees(size, epsilon, samples=6_000)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "epsilon"), SETTINGS)
def test_the_order_is_that_of_simulated_errors_everywhere(size, epsilon):
    order_agrees(size, epsilon, samples=20_000)


def order_agrees(size, epsilon, samples):
    """Every pair of protocols whose variances differ by ten standard errors of the simulation or more."""
    n = 600
    options = plan(size, epsilon=epsilon, n=n).table
    seen = {}
    for option in options:
        answers = size - 1
        if isinstance(option.protocol, HadamardResponse):
            answers = max(1, answers // option.protocol.blocks)
        seen[option.name] = simulated_variance(option.protocol, n, max(20, samples // answers), seed=1)
        # Answers of one run are correlated where reports support fixed numbers of them, hence the wide margin.
        assert seen[option.name] == pytest.approx(option.variance, rel=12 * math.sqrt(2 / samples))
    gap = 1 + 10 * math.sqrt(2 / samples)
    pairs = [(a, b) for a, b in itertools.combinations(options, 2) if b.variance > gap * a.variance]
    assert len(pairs) >= 5
    assert all(seen[a.name] < seen[b.name] for a, b in pairs)


@pytest.mark.parametrize("size", [2, 5, 30, 1024, 10**6])
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_the_rule(size, epsilon):
    found = plan(size, epsilon=epsilon, n=5000)
    least = min(option.variance for option in found.table)
    close = [option for option in found.table if option.variance <= SAME * least]
    assert found.choice in close
    assert found.choice.report_bytes == min(option.report_bytes for option in close)
    noises = [float(f"{option.noise:.9e}") for option in found.table]
    assert noises == sorted(noises)
    assert found.best is found.choice.protocol


@pytest.mark.parametrize(
    ("size", "blocks"),
    [(16, 4), (7, 2), *(pytest.param(*given, marks=pytest.mark.slow) for given in ((16, 16), (9, 8)))],
)
def test_the_average_case_of_hadamard_response(size, blocks):
    # 4,000 runs estimate a variance to 2.2 %, so 12 % is five of its standard errors: false alarms 1e-6.
    protocol = HadamardResponse(size, 4, blocks=blocks)
    truth = np.array([0] + [60] * (size - 1))
    n = int(truth.sum())
    seen = n**2 * protocol.simulate(None, 4000, 1, counts=truth).figures()[:, 0].var()
    assert protocol.variance(n) == pytest.approx(seen, rel=0.12)
    assert protocol.variance(n) <= protocol.worst_variance(n) * (1 + 1e-12)


def test_well_known_choices():
    assert plan(["yes", "no"], epsilon=1, n=1000).best == GRR(["yes", "no"], 1)
    assert plan(1024, epsilon=1, n=1000).best == OLH(1024, 1)
    assert plan(64, epsilon=2, n=1000).best == SubsetSelection(64, 2)
    assert plan(8, epsilon=4, n=1000).best == GRR(8, 4)
    assert "3 bytes per report instead of 128" in plan(1024, epsilon=1, n=1000).reason
    # Where no small report comes within 5 percent, the reason says what a little more would save.
    assert "BLH would do with 3 for 6 % more noise variance" in plan(2**20, epsilon=0.5, n=1000).reason


def test_worst_case_of_hadamard_response():
    protocol = HadamardResponse(64, 3, blocks=4)
    assert protocol.worst_variance(1000) > protocol.variance(1000)
    e = math.exp(3)
    assert protocol.worst_variance(1) == pytest.approx((e + 7) * (e + 1) / (e - 1) ** 2)
    # With one answer a block nobody else can be in it, and the average is the worst.
    alone = HadamardResponse(4, 3, blocks=4)
    assert alone.variance(1000) == pytest.approx(alone.worst_variance(1000), rel=1e-12)
    assert alone.worst_variance(1000) == pytest.approx(1000 * 2 * (e + 7) / (e - 1) ** 2)
    assert OUE(64, 3).worst_variance(1000, 0.3) == OUE(64, 3).variance(1000, 0.3)


def test_a_plan_is_about_the_population():
    # Without any privacy +- 1 point takes 1.96^2 / 4 / 0.01^2 = 9,604 people, so nothing may promise it with fewer.
    for epsilon, people in ((1, 44_971), (4, 10_334), (12, 9_604)):
        found = plan(["yes", "no"], epsilon=epsilon, within=0.01)
        assert found.n == people
        assert found.best.name == "GRR"
        pi = (quantile(0.95) / 2) ** 2 / 0.01**2 / float(found.best.p - found.best.q) ** 2
        assert found.n == math.ceil(pi)
    among = plan(["yes", "no"], epsilon=4, within=0.01, population=False)
    assert among.n < 1000
    assert "among those who answered" in str(among).splitlines()[0]
    assert "among" not in str(found)
    assert (among.to_dict()["population"], found.to_dict()["population"]) == (False, True)


@pytest.mark.parametrize("population", [True, False])
@pytest.mark.parametrize("epsilon", [0.5, 2, 6])
def test_the_half_width_holds_for_every_share(epsilon, population):
    for option in plan(20, epsilon=epsilon, n=1000).table:
        shares = np.linspace(0, 1, 1001)
        errors = [math.sqrt(option.protocol.worst_variance(1000, share, population)) / 1000 for share in shares]
        reach = half_width(option.protocol, 1000, 0.95, population)
        assert reach == pytest.approx(quantile(0.95) * max(errors), rel=1e-6)


@pytest.mark.parametrize("population", [True, False])
@pytest.mark.parametrize(
    ("size", "epsilon", "within"), [(2, 1, 0.005), (50, 0.3, 0.05), (1024, 3, 0.001), (9, 6, 0.25)]
)
def test_solving_for_people(size, epsilon, within, population):
    found = plan(size, epsilon=epsilon, within=within, population=population)
    assert found.solved == "n"
    assert found.within <= within
    assert plan(size, epsilon=epsilon, n=found.n, population=population).within == found.within
    if found.n > 1:
        assert plan(size, epsilon=epsilon, n=found.n - 1, population=population).within > within


@pytest.mark.parametrize(
    ("size", "n", "within", "population"),
    [
        (2, 1000, 0.1, True),
        (50, 10**5, 0.005, True),
        (1024, 10**6, 0.025, True),
        (300, 10**9, 5e-5, True),
        (300, 10**9, 5e-6, False),
        (7, 10, 1e-9, False),
    ],
)
def test_solving_for_epsilon(size, n, within, population):
    found = plan(size, n=n, within=within, population=population)
    assert found.solved == "epsilon"
    assert found.within <= within
    again = plan(size, epsilon=found.epsilon, n=n, population=population)
    assert again.within == found.within
    assert again.best == found.best
    # Smaller by more than a change of protocol explains: not enough.
    less = build(Integers(0, size - 1), found.epsilon * 97 / 100)
    assert half_width(less[choose(less, n)], n, 0.95, population) > within
    assert len(str(float(found.epsilon)).replace(".", "").strip("0")) <= 4


def test_any_width_will_do_when_it_is_huge():
    assert plan(4, n=10**9, within=1e6).epsilon == exact.SMALLEST_EPSILON


def test_the_visible_share_is_its_own_half_width():
    found = plan(100, epsilon=1, n=50_000, level=0.9)
    for option in found.table:
        share = option.visible
        error = math.sqrt(option.protocol.worst_variance(50_000, share)) / 50_000
        assert share == pytest.approx(quantile(0.9, 100) * error, rel=1e-9)
        assert share > quantile(0.9) * option.noise
    assert by_name(plan(10**6, epsilon=1, n=10**6))["GRR"].visible is None


def test_a_million_answers_are_planned_with_little_memory():
    with memory_below(5_000_000):
        found = plan(10**6, epsilon=1, n=10**7)
    assert len(found.table) == len(LISTED)


def test_what_a_plan_shows():
    found = plan(Categories(["never", "once", "often"]), epsilon="1/2", n=2000)
    text = str(found)
    assert text.splitlines()[0].startswith("3 answers, epsilon 0.5, 2,000 people => 95 % intervals")
    assert sum(line.startswith("> ") for line in text.splitlines()) == 1
    assert text.splitlines()[-1] == found.reason
    assert all(option.name in text for option in found.table)
    shown = json.loads(json.dumps(found.to_dict()))
    assert load(shown["best"]) == found.best
    assert shown["table"][0]["name"] == found.table[0].name
    assert shown["within"] == found.within
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(found)
    assert "visible share" in console.export_text()
    assert "protects little" in plan(3, epsilon=12, n=100).reason


def test_the_picture():
    import matplotlib.pyplot as plt

    axes = plan(50, epsilon=1, n=1000).plot()
    assert axes.shape == (2, 2)
    names = {line.get_label() for line in axes[0, 0].lines}
    assert names >= set(LISTED)
    heights = {line.get_label(): line.get_ydata() for line in axes[1, 0].lines}
    assert all(np.nanmin(heights[name]) >= 1 - 1e-12 for name in LISTED)
    assert plan(Strings(), epsilon=1, n=1000).plot().shape == (2, 1)
    plt.close("all")


def test_people_is_another_name_of_n():
    assert plan(10, epsilon=1, people=100).to_dict() == plan(10, epsilon=1, n=100).to_dict()


def test_open_text():
    found = plan(Strings(), epsilon=1, n=10**6)
    assert found.best.name == "OLHSketch"
    assert found.choice.attack is None
    assert "open text" in str(found)
    # Collisions set a floor that more people do not lower.
    with pytest.raises(NumberError, match="no number of people"):
        plan(Strings(cells=256, cohorts=2), epsilon=1, within=0.001)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 1}, "two of epsilon, n"),
        ({}, "two of epsilon, n"),
        ({"epsilon": 1, "n": 10, "within": 1}, "two of epsilon, n"),
        ({"epsilon": 1, "n": 10, "people": 10}, "two names of one number"),
        ({"epsilon": 1, "people": 0}, "positive whole number"),
        ({"epsilon": 1, "n": 0}, "positive whole number"),
        ({"epsilon": 1, "n": 1.5}, "positive whole number"),
        ({"epsilon": 1, "n": True}, "positive whole number"),
        ({"epsilon": 1, "within": 0}, "positive"),
        ({"epsilon": 1, "within": math.nan}, "positive"),
        ({"epsilon": 0, "n": 10}, "epsilon"),
        ({"epsilon": 1, "n": 10, "level": 1.0}, "level"),
        ({"epsilon": 1e-5, "within": 1e-4}, "no number of people"),
        ({"n": 3, "within": 1e-20}, "for asking 3 alone leaves"),
    ],
)
def test_refusals(given, message):
    with pytest.raises(NumberError, match=message):
        plan(10, **given)


def test_domains_that_nothing_can_count():
    with pytest.raises(DomainError, match=r"dn\.Strings"):
        plan(2**50, epsilon=1, n=1000)
    with pytest.raises(DomainError):
        plan([], epsilon=1, n=1000)


def test_the_choice_prefers_less_server_work_last():
    protocols = {"GRR": GRR(3, 4), "SubsetSelection": SubsetSelection(3, 4)}
    assert choose(protocols, 100) == "GRR"


def test_answers_that_change_are_planned_by_the_epsilon_of_all_reports() -> None:
    """Few epochs are asked afresh, many by the tree of differences; both promise the same."""
    few, many = (plan(["yes", "no"], epsilon=2, n=50_000, epochs=epochs, changes=2) for epochs in (4, 60))
    assert (few.best.name, many.best.name) == ("GRR", "Evolving")
    assert few.best.lifetime(4) == many.best.lifetime(60) == 2
    assert "epsilon 2 for all reports of 60 epochs with at most 2 changes" in str(many)
    assert few.reason.endswith("Each report is drawn afresh, at epsilon 0.5.")
    assert many.to_dict()["changes"] == 2
    solved = plan(["yes", "no"], epsilon=2, within=many.within, epochs=60, changes=2)
    assert solved.n <= 50_000
    for wrong in ({"changes": 2}, {"changes": -1, "epochs": 3}, {"changes": 1, "epochs": 3, "forever": 4}):
        with pytest.raises(NumberError):
            plan(["yes", "no"], epsilon=2, n=100, **wrong)  # type: ignore[arg-type]


def test_two_stages_are_planned_with_what_the_epochs_add_up_to() -> None:
    found = plan(Interval(0, 24), epsilon=1, forever=2, epochs=30, n=1000)
    assert found.best.name == "LOneBitMean"
    bound = float(found.best.lifetime(30))
    assert f"tell epsilon 2 where it keeps one state, and up to {bound:.4g} between any two streams" in found.reason
    names = {option.name for option in plan(24, epsilon=1, forever=2, epochs=52, n=1000).table}
    assert names == {"LGRR", "LOLOHA", "DBitFlip"}, "bitmaps of 24 answers would be recognized"


def test_protocols_of_numbers_are_compared_by_the_figure_that_is_asked_for():
    """A window, a tree of ranges and flat oracles side by side, one over bins; what is known of the shape chooses."""
    ages = Integers(18, 99)
    ranges = plan(ages, epsilon=1, n=20_000, read="ranges")
    rows = {option.name: option for option in ranges.table}
    assert set(rows) == {"Ranges", "Window", "OLH", "SubsetSelection", "SubsetSelection of 16 bins"}
    assert (ranges.best.name, ranges.reads, ranges.unit) == ("Ranges", "ranges", "")
    assert rows["OLH"].noise > rows["SubsetSelection"].noise > rows["SubsetSelection of 16 bins"].noise
    assert "Ranges is chosen because ranges were asked for" in ranges.reason
    assert "SubsetSelection of 16 bins +-" in ranges.reason
    unknown = plan(ages, epsilon=1, n=20_000, read="ranges", shape="unknown")
    assert unknown.to_dict() == ranges.to_dict()
    smooth = plan(ages, epsilon=1, n=20_000, read="ranges", shape="smooth")
    assert (smooth.best.name, smooth.within) == ("Window", rows["Window"].half_width)
    few = [plan(Integers(0, 15), epsilon=1, n=n, read="ranges", shape="smooth") for n in (10_000, 100_000)]
    assert [one.best.name for one in few] == ["Window", "Ranges"], "each of 16 numbers stands out with 100,000 people"
    assert "each number stand out by itself" in few[1].reason
    shape = plan(ages, epsilon=1, n=20_000, read="distribution")
    assert shape.best.name == "Window"
    rough = plan(ages, epsilon=1, n=20_000, read="distribution", shape="rough")
    assert rough.best.name == "Ranges"
    assert "many people are said to give the same few numbers" in rough.reason
    hours = plan(Interval(0, 24, unit="hours"), epsilon=1, n=20_000, read="distribution")
    assert [option.name for option in hours.table] == ["Ranges", "SubsetSelection of 16 bins", "Window"]
    assert rough.within == {option.name: option.half_width for option in shape.table}["Ranges"]
    for wrong in ({"shape": "round", "read": "ranges"}, {"shape": "smooth"}):
        with pytest.raises(NumberError, match="smooth"):
            plan(ages, epsilon=1, n=20_000, **wrong)


@pytest.mark.parametrize("kind", [Ranges, partial(Window, read="distribution")], ids=["Ranges", "Window"])
def test_what_a_plan_says_of_numbers_is_how_wide_intervals_are(kind):
    protocol, n, z = kind(Integers(0, 31), 2), 32_000, 1.96
    found = protocol.estimate(protocol.tally(protocol.privatize(np.arange(n) % 32, Simulation(1))))
    low, high = found.cdf_at(15).interval()
    assert 31 * (high - low) / (2 * z) == pytest.approx(protocol.figures("distribution").error(n, True), rel=0.15)
    ends = np.sort(np.random.default_rng(2).uniform(0, 31, (40, 2)), axis=1)
    widths = [np.ptp(found.range(*map(round, pair)).interval()) for pair in ends.tolist()]
    assert np.mean(widths) / (2 * z) == pytest.approx(protocol.figures("ranges").error(n, True), rel=0.25)


def test_more_people_are_worth_more_bins():
    def bins(n):
        table = plan(Integers(0, 1023), epsilon=1, n=n, read="distribution").table
        return next(int(option.name.split()[-2]) for option in table if option.name.endswith("bins"))

    assert bins(1_000) < bins(1_000_000)


@pytest.mark.parametrize("oracle", [SubsetSelection(6, 1), GRR(5, 1), OLH(4, 2, hash_bits=1)], ids=str)
def test_answers_that_are_added_up_have_the_variance_of_the_bytes(oracle):
    channel, size = oracle.channel(), oracle.domain.size
    reports = np.array([list(bytes.fromhex(form)) for form in channel.outputs], dtype=np.uint8)
    scores = (oracle.support(reports) - float(oracle.q)) / float(oracle.p - oracle.q)
    rows = np.asarray(channel.rows, dtype=float)
    for answers in range(1, size + 1):
        sums = scores[:, :answers].sum(axis=1)
        each = rows @ sums**2 - (rows @ sums) ** 2
        exact = each.mean()  # all answers are equally common
        assert oracle.added_up(answers, answers / size) == pytest.approx(exact, abs=1e-9)


def test_the_flat_oracle_has_the_error_of_its_sums():
    """Of 200 collections: the spread of the share of a third of the numbers; 5 standard errors of it are 25 %."""
    oracle, rng = OLH(30, 1), np.random.default_rng(1)
    people = rng.integers(0, 30, 2000)
    each = [
        oracle.estimate(oracle.tally(oracle.privatize(people, Simulation(seed)))).frequencies[5:15].sum()
        for seed in range(200)
    ]
    assert np.std(each) == pytest.approx(oracle.figures("ranges").error(2000, False), rel=0.25)


@pytest.mark.parametrize("domain", [Categories(["a", "b", "c"]), Integers(0, 8), Strings()], ids=str)
@pytest.mark.parametrize("rivals", [False, True])
def test_only_frequency_oracles_are_offered_for_shares(domain, rivals, monkeypatch):
    # The planner does not load the other families for this question: they would add nothing.
    few = choice.build(domain, 1, n=1000, rivals=rivals)
    monkeypatch.setattr(choice, "registered", lambda family: registered())
    assert choice.build(domain, 1, n=1000, rivals=rivals) == few

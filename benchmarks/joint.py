"""Tables of three columns from reports about two: models against direct tables, on the census table of 1994.

Data       as in `benchmarks.census`; eight columns with the cuts (right-closed) age 25/35/45/55, years of education
           8/9/10/12/13, hours 34/40/50; work class and marital status: the three most common and the rest;
           relationship, sex and income as they are: 46,080 combinations
Figure     the mean total variation distance between a table of three columns and the truth, over all 56, then seeds
Methods    direct: tables of triples, unbiased, made shares by the nearest ones. The others from pairs: independence,
           CALM (`max-entropy`), shrink, latent, blend, each with its processor seconds
People     as many as the table has, and ten times as many, drawn with replacement
Coverage   how often a 95 % interval holds the population's share: of unbiased cells of pairs, and of modelled cells
Wide       50 made-up columns of 5 answers, a million people of four classes, all 1,225 pairs at epsilon 2: processor
           seconds of reports and tally, of the latent model, and of a million synthetic records, and the most memory
Others     the same figure on tables on which no method was chosen: eight other columns and cuts of the census table,
           and as many made-up people, of four classes and of a chain of columns
Classifier the income of the test half from the other columns, by a logistic regression on synthetic records, beside one
           on the true records; AUC, where 0.5 is a guess. By scikit-learn where it is there (`pip install
           'deniable[learn]'`), else by Newton's method
"""

from __future__ import annotations

import importlib.util
import resource
import time
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from benchmarks.census import levels, read
from benchmarks.registry import Case, Size, benchmark, work
from deniable.results.models import METHODS, simplex

Floats = NDArray[np.float64]
Codes = dict[str, NDArray[np.int64]]

GROUP, USES, WIDE, OTHERS = "joint", "joint-uses", "joint-wide", "joint-others"
SEEDS, SOME, FEWER = 20, 3, 3
EPSILONS = (1, 2, 4)
CUTS = {"age": (25, 35, 45, 55), "education_num": (8, 9, 10, 12, 13), "hours_per_week": (34, 40, 50)}
TOP = 3


def people() -> Codes:
    """The eight columns as numbers of their answers."""
    table, found = read(), {}
    for name, cuts in CUTS.items():
        found[name] = np.searchsorted(cuts, table[name].astype(int), side="left")
    for name in ("workclass", "marital_status", "relationship", "sex", "income"):
        order = levels(table, name)
        most = TOP if name in ("workclass", "marital_status") else len(order)
        places = {label: min(place, most) for place, label in enumerate(order)}
        found[name] = np.array([places[label] for label in table[name].tolist()])
    return found


def sizes(columns: Codes) -> dict[str, int]:
    return {name: int(own.max()) + 1 for name, own in columns.items()}


def distances(columns: Codes, epsilon: int, seed: int, times: int) -> tuple[dict[str, float], dict[str, float]]:
    """The mean distance of each method, and its processor seconds."""
    names, shape, n = list(columns), sizes(columns), len(next(iter(columns.values())))
    true = {triple: _shares(columns, triple, shape) for triple in combinations(names, 3)}
    rows = np.random.default_rng(seed).integers(n, size=times * n) if times > 1 else np.arange(n)
    drawn = {name: own[rows] for name, own in columns.items()}
    far, took = {}, {}

    def result(ask: str) -> dn.results.Joint:
        protocol = dn.Attributes(shape, epsilon, people=len(rows), ask=ask)
        found: dn.results.Joint = protocol.estimate(protocol.tally(protocol.privatize(drawn, dn.Simulation(seed))))
        return found

    triples, pairs = result("triples"), result("pairs")
    begun = time.process_time()
    far["direct"] = float(np.mean([_distance(simplex(triples.table(*one).array), own) for one, own in true.items()]))
    took["direct"] = time.process_time() - begun
    for method in METHODS:
        begun = time.process_time()
        model = pairs.model(method)
        far[method] = float(np.mean([_distance(model.marginal(*one), own) for one, own in true.items()]))
        took[method] = time.process_time() - begun
    return far, took


def _shares(columns: Codes, names: tuple[str, ...], shape: dict[str, int]) -> Floats:
    found = np.zeros([shape[name] for name in names])
    np.add.at(found, tuple(columns[name] for name in names), 1.0)
    shares: Floats = found / found.sum()
    return shares


def _distance(one: Floats, other: Floats) -> float:
    return float(np.abs(one - other).sum() / 2)


@benchmark("joint", "56 tables of three census columns from pairs, 20 seeds: mean total variation", group=GROUP)
def joint(size: Size) -> Case:
    columns = people()
    facts: dict[str, str | int | float] = {}
    for times in (1, 10):
        for epsilon in EPSILONS:
            runs = [distances(columns, epsilon, seed, times) for seed in range(size(SEEDS, 1))]
            for method in runs[0][0]:
                values, seconds = ([run[side][method] for run in runs] for side in (0, 1))
                facts[f"n x {times}, epsilon {epsilon}, {method}"] = (
                    f"{np.mean(values):.4f} +- {np.std(values) / np.sqrt(len(values)):.4f}, {np.mean(seconds):.2f} s"
                )
    protocol = dn.Attributes(sizes(columns), 1, ask="pairs")
    return Case({"reports": work(lambda: protocol.privatize(columns), len(columns["age"]), "report")}, (), facts)


def others() -> dict[str, Codes]:
    """Tables on which no method was chosen."""
    table, random = read(), np.random.default_rng(5)
    n = len(table["age"])

    def top(name: str, most: int) -> NDArray[np.int64]:
        places = {label: min(place, most) for place, label in enumerate(levels(table, name))}
        return np.array([places[label] for label in table[name].tolist()])

    census = {
        "age": np.searchsorted((21, 30, 40, 50, 60), table["age"].astype(int), side="left"),
        "hours": np.searchsorted((20, 39, 45), table["hours_per_week"].astype(int), side="left"),
        "gain": (table["capital_gain"].astype(int) > 0).astype(np.int64),
        **{name: top(name, most) for name, most in (("occupation", 5), ("education", 4), ("race", 2))},
        **{name: top(name, most) for name, most in (("native_country", 1), ("marital_status", 2))},
    }
    laws = np.cumsum(random.dirichlet(np.full(5, 0.7), (4, 8)), axis=2)
    whose = random.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    classes = {
        f"q{place}": (random.random(n)[:, None] > laws[:, place][whose]).sum(axis=1).clip(max=4) for place in range(8)
    }
    chain, last = {}, random.integers(4, size=n)
    for place in range(8):
        last = np.where(random.random(n) < 0.6, last, random.choice(4, n, p=[0.4, 0.3, 0.2, 0.1]))
        chain[f"q{place}"] = last
    return {"census, other columns": census, "four classes": classes, "a chain": chain}


@benchmark("joint-others", "tables of three columns on other tables, 3 seeds: mean total variation", group=OTHERS)
def elsewhere(size: Size) -> Case:
    facts: dict[str, str | int | float] = {}
    tables = others()
    for name, columns in tables.items():
        for epsilon in EPSILONS:
            runs = [distances(columns, epsilon, seed, 1)[0] for seed in range(size(SOME, 1))]
            for method in runs[0]:
                values = [run[method] for run in runs]
                error = np.std(values) / np.sqrt(len(values))
                facts[f"{name}, epsilon {epsilon}, {method}"] = f"{np.mean(values):.4f} +- {error:.4f}"
    chain = tables["a chain"]
    protocol = dn.Attributes(sizes(chain), 1, ask="pairs")
    return Case({"reports": work(lambda: protocol.privatize(chain), len(chain["q0"]), "report")}, (), facts)


@benchmark("joint-coverage", "95 % intervals of unbiased and modelled census cells", group=USES)
def coverage(size: Size) -> Case:
    columns = people()
    names, shape, n = list(columns), sizes(columns), len(columns["age"])
    facts: dict[str, str | int | float] = {}
    pairs, triples = list(combinations(names, 2)), list(combinations(names, 3))[::8]
    for epsilon in EPSILONS:
        held: dict[str, list[float]] = {"unbiased": [], "shrink": [], "latent": [], "blend": []}
        protocol = dn.Attributes(shape, epsilon, people=n, ask="pairs")
        for seed in range(size(FEWER, 1)):
            rows = np.random.default_rng(seed).integers(n, size=n)
            drawn = {name: own[rows] for name, own in columns.items()}
            found = protocol.estimate(protocol.tally(protocol.privatize(drawn, dn.Simulation(seed))))
            held["unbiased"] += [_held(found.table(*one), _shares(columns, one, shape)) for one in pairs]
            for method in ("shrink", "latent", "blend"):
                model = found.model(method)
                held[method] += [_held(model.table(*one), _shares(columns, one, shape)) for one in triples]
        for name, own in held.items():
            facts[f"epsilon {epsilon}, {name}"] = f"{100 * np.mean(own):.1f} %"
    protocol = dn.Attributes(shape, 1, ask="pairs")
    return Case({"reports": work(lambda: protocol.privatize(columns), n, "report")}, (), facts)


def _held(table: dn.results.Crosstab, truth: Floats) -> float:
    ends, own = table.interval(), truth.reshape(-1)
    return float(np.mean((ends[:, 0] <= own + 1e-12) & (own <= ends[:, 1] + 1e-12)))


@benchmark("joint-classifier", "income from synthetic records: AUC of a logistic regression", group=USES)
def classifier(size: Size) -> Case:
    columns = people()
    n, shape = len(columns["age"]), sizes(columns)
    random = np.random.default_rng(1)
    order = random.permutation(n)
    train, test = ({name: own[half] for name, own in columns.items()} for half in (order[: n // 2], order[n // 2 :]))
    facts: dict[str, str | int | float] = {"raw": f"{auc(fitted(train, shape), test, shape):.3f}", "majority": "0.500"}
    facts["fitted by"] = learner()
    most = np.bincount(test["income"]).max() / len(test["income"])
    facts["accuracy of the majority's answer"] = f"{most:.3f}"
    for epsilon in (0.5, 1, 2, 4):
        protocol = dn.Attributes(shape, epsilon, people=n // 2, ask="pairs")
        for method in ("latent", "blend"):
            found = []
            for seed in range(size(FEWER, 1)):
                result = protocol.estimate(protocol.tally(protocol.privatize(train, dn.Simulation(seed))))
                made = result.synthesize(n // 2, method, seed)
                records = {name: np.array(own) for name, own in made.items()}
                found.append(auc(fitted(records, shape), test, shape))
            error = np.std(found) / np.sqrt(len(found))
            facts[f"epsilon {epsilon}, {method}"] = f"{np.mean(found):.3f} +- {error:.3f}"
    protocol = dn.Attributes(shape, 1, ask="pairs")
    return Case({"reports": work(lambda: protocol.privatize(columns), n, "report")}, (), facts)


def _design(columns: Codes, shape: dict[str, int]) -> Floats:
    parts = [np.eye(size)[columns[name]][:, 1:] for name, size in shape.items() if name != "income"]
    return np.hstack([np.ones((len(columns["age"]), 1)), *parts])


def learner() -> str:
    """What fits the classifier here."""
    return "Newton's method" if importlib.util.find_spec("sklearn") is None else "scikit-learn"


def fitted(columns: Codes, shape: dict[str, int]) -> Floats:
    """A logistic regression with a small ridge."""
    x, y = _design(columns, shape), columns["income"].astype(float)
    if learner() == "scikit-learn":
        from sklearn.linear_model import LogisticRegression

        fit = LogisticRegression(fit_intercept=False, max_iter=1000).fit(x, y)
        return np.asarray(fit.coef_[0], dtype=np.float64)
    found = np.zeros(x.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-np.clip(x @ found, -30, 30)))
        slope = x.T @ (y - p) - found
        step = np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + np.eye(found.size), slope)
        found += step
        if np.abs(step).max() < 1e-6:
            break
    return found


def auc(weights: Floats, columns: Codes, shape: dict[str, int]) -> float:
    """The chance that a person with the answer has a higher score than one without; ties count a half."""
    score, y = _design(columns, shape) @ weights, columns["income"].astype(bool)
    _, inverse, counts = np.unique(score, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    ones = int(y.sum())
    return float((ranks[y].sum() - ones * (ones + 1) / 2) / (ones * (y.size - ones)))


@benchmark("joint-wide", "50 columns, a million people: model and synthetic records", group=WIDE)
def wide(size: Size) -> Case:
    n, count, answers = size(1_000_000, 20_000), 50, 5
    random = np.random.default_rng(1)
    classes = random.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    laws = np.cumsum(random.dirichlet(np.full(answers, 0.7), (4, count)), axis=2)
    columns = {
        f"q{place}": (random.random(n)[:, None] > laws[:, place][classes]).sum(axis=1).clip(max=answers - 1)
        for place in range(count)
    }
    shape = dict.fromkeys(columns, answers)
    protocol = dn.Attributes(shape, 2, people=n, ask="pairs")
    facts: dict[str, str | int | float] = {"people": n, "pairs": len(protocol.groups)}
    facts["bytes per report"] = protocol.report_bytes
    begun = time.process_time()
    tally = protocol.tally(protocol.privatize(columns, dn.Simulation(1)))
    facts["reports and tally"] = f"{time.process_time() - begun:.1f} s"
    begun = time.process_time()
    model = protocol.estimate(tally).model("latent")
    facts["latent model"] = f"{time.process_time() - begun:.1f} s"
    begun = time.process_time()
    model.sample(n, 1)
    facts["synthetic records"] = f"{time.process_time() - begun:.1f} s"
    triples = [(f"q{place}", f"q{(place + 10) % count}", f"q{(place + 30) % count}") for place in range(count)]
    for name, own in (("latent", model), ("independent", protocol.estimate(tally).model("independent"))):
        far = np.mean([_distance(own.marginal(*one), _shares(columns, one, shape)) for one in triples])
        facts[f"distance of 50 tables of three columns, {name}"] = f"{far:.3f}"
    facts["most memory"] = f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB"
    return Case({"reports": work(lambda: protocol.privatize(columns), n, "report")}, (), facts)

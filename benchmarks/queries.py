"""Regression by statistical queries, and sampling against splitting, on the census table of 1994.

Data       as in `benchmarks.census`; people are drawn from it with replacement, as many as it has or ten times as many,
           so that the table is the population
Linear     hours of work on age, years of education, sex and marriage; logistic: income over 50,000 on these and hours.
           Numbers are clipped to where most people are, 20 to 65 years, 7 to 14 years of education, 20 to 60 hours
Figure     the root mean square error of the coefficients but the intercept, of numbers on a scale from -1 to 1 (so that
           a coefficient is the effect of half of a column's range), over all coefficients and seeds; the median over
           the seeds where some are too noisy to be known. Then how often a 95 % interval holds, and in how many
           collections the coefficients are known
Methods    one round: everybody in one batch. Three rounds: a third of the people each; of the logistic regression a
           sixth first. Synthetic: records of the latent model of all pairs, with 8 cells per number, on which the
           regression is fitted. Raw: the same people without any privacy
Splitting  shares of three columns of several answers: everybody asked for all at a third of epsilon, or each person for
           one at the whole epsilon; root mean square error of a share, and what the planner says of the worst one
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from benchmarks.census import levels, read
from benchmarks.registry import Case, Size, benchmark, work

Floats = NDArray[np.float64]
Table = dict[str, NDArray[Any]]

GROUP, REGRESSIONS = "queries", "regressions"
SEEDS, REPEATS = 3, 100
EPSILONS = (1, 2, 4)
NUMBERS = {"age": (20, 65), "education": (7, 14), "hours": (20, 60)}
EXPLAINED = {"linear": "hours", "logistic": "income"}
PARTS = {"linear": (1 / 3, 1 / 3, 1 / 3), "logistic": (1 / 6, 5 / 12, 5 / 12)}
THREE = ("education", "occupation", "sex")


def people() -> Table:
    table = read()
    numbers = {"age": "age", "education": "education_num", "hours": "hours_per_week"}
    inside = {name: np.clip(table[column].astype(int), *NUMBERS[name]) for name, column in numbers.items()}
    return {
        "age": inside["age"].astype(float),
        "education": inside["education"],
        "sex": table["sex"],
        "married": np.where(np.char.startswith(table["marital_status"], "Married-civ"), "yes", "no"),
        "hours": inside["hours"].astype(float),
        "income": np.where(table["income"] == ">50K", "over", "under"),
    }


def domain(link: str) -> dn.Records:
    columns: dict[str, Any] = {
        "age": dn.Interval(*NUMBERS["age"], unit="years"),
        "education": dn.Integers(*NUMBERS["education"]),
        "sex": ["Female", "Male"],
        "married": ["no", "yes"],
        "hours": dn.Interval(*NUMBERS["hours"], unit="hours"),
    }
    return dn.Records(columns if link == "linear" else columns | {"income": ["under", "over"]})


def asked(link: str, epsilon: float, n: int) -> dn.Queries:
    target: dict[str, Any] = {"target": EXPLAINED[link], "link": link}
    return dn.Queries(domain(link), epsilon, n, regress=target if link == "linear" else target | {"answer": "over"})


def design(table: Table, link: str) -> tuple[Floats, Floats]:
    """The features on a scale from -1 to 1 after a column of ones, and the target."""
    columns = [np.ones(len(table["age"]))]
    for name in domain(link).names:
        if name == EXPLAINED[link]:
            continue
        if name in NUMBERS:
            low, high = NUMBERS[name]
            columns.append((2 * np.asarray(table[name], dtype=float) - low - high) / (high - low))
        else:
            columns.append((np.asarray(table[name]) == ("Male" if name == "sex" else "yes")).astype(float))
    target = np.asarray(table[EXPLAINED[link]])
    return np.column_stack(columns), (target.astype(float) if link == "linear" else (target == "over").astype(float))


def fitted(table: Table, link: str) -> Floats:
    """The coefficients of records without privacy: least squares, or Newton's method."""
    x, y = design(table, link)
    if link == "linear":
        found: Floats = np.linalg.lstsq(x, y, rcond=None)[0]
        return found
    found = np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(x @ found, -30, 30)))
        step = np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + 1e-3 * np.eye(found.size), x.T @ (y - p))
        found += step
        if np.abs(step).max() < 1e-9:
            break
    return found


def on_scale(protocol: dn.Queries, result: Any, link: str) -> tuple[Floats, Floats]:
    """Coefficients and standard errors per half of a column's range."""
    halves = [(NUMBERS[name][1] - NUMBERS[name][0]) / 2 if name in NUMBERS else 1.0 for name in protocol.labels[1:]]
    scale = np.array([1.0, *halves])
    return result.value * scale, result.stderr * scale


def batches(link: str, epsilon: float, table: Table, seed: int, parts: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Coefficients and errors of so many rounds, each with its part of the people."""
    n = len(table["age"])
    ends = [*np.cumsum([0, *(round(part * n) for part in parts[:-1])]).tolist(), n]
    made, found = asked(link, epsilon, n), []
    for number in range(len(parts)):
        own = {name: table[name][ends[number] : ends[number + 1]] for name in made.domain.names}
        tally = made.tally(made.privatize(own, dn.Simulation(100 * seed + number)))
        found.append(made.batch(tally))
        last, made = made, made.following(tally, number + 1)
    return on_scale(last, last.regression(found), link)


def synthetic(link: str, epsilon: float, table: Table, seed: int) -> Floats:
    records = domain(link)
    protocol = dn.Attributes(records, epsilon, people=len(table["age"]), ask="pairs", cells={"education": 8})
    tally = protocol.tally(protocol.privatize({name: table[name] for name in records.names}, dn.Simulation(seed)))
    made = protocol.estimate(tally).synthesize(len(table["age"]), "latent", seed)
    return fitted({name: np.array(own) for name, own in made.items()}, link)


def _words(values: list[Floats], truth: Floats) -> str:
    off = np.array([np.sqrt(np.mean((one[1:] - truth[1:]) ** 2)) for one in values])
    known = np.isfinite(off)
    if known.all():
        return f"{np.sqrt(np.mean(off**2)):.3f}"
    middle = float(np.median(np.where(known, off, np.inf)))
    said = f"median {middle:.3f}, " if np.isfinite(middle) else ""
    return f"{said}known in {int(known.sum())} of {known.size}"


@benchmark("regression", "regressions of census columns: one round, three, synthetic, raw", group=REGRESSIONS)
def regression(size: Size) -> Case:
    table, facts = people(), {}
    n = len(table["age"])
    for link in ("linear", "logistic"):
        truth = fitted(table, link)
        names = asked(link, 1, n).labels
        facts[f"{link}, coefficients"] = ", ".join(f"{a} {b:.3g}" for a, b in zip(names[1:], truth[1:], strict=True))
        for times in (1, 10):
            draws = [np.random.default_rng(seed).integers(n, size=times * n) for seed in range(size(SEEDS, 2))]
            crowds = [{name: own[rows] for name, own in table.items()} for rows in draws]
            facts[f"{link}, n x {times}, raw"] = _words([fitted(one, link) for one in crowds], truth)
            for epsilon in EPSILONS:
                head = f"{link}, n x {times}, epsilon {epsilon}"
                for name, parts in (("one round", (1.0,)), ("three rounds", PARTS[link])):
                    found = [batches(link, epsilon, one, seed, parts) for seed, one in enumerate(crowds)]
                    facts[f"{head}, {name}"] = _words([value for value, _ in found], truth)
                    inside = [np.abs(v - truth)[1:] <= 1.96 * e[1:] for v, e in found if np.isfinite(v).all()]
                    if inside:
                        facts[f"{head}, {name}, intervals hold"] = f"{100 * np.mean(inside):.0f} %"
                made = [synthetic(link, epsilon, one, seed) for seed, one in enumerate(crowds)]
                facts[f"{head}, synthetic"] = _words(made, truth)
    protocol = asked("logistic", 1, n)
    answers = {name: table[name] for name in protocol.domain.names}
    return Case({"reports": work(lambda: protocol.privatize(answers), n, "report")}, (), facts)


@benchmark("splitting", "shares of three census columns at epsilon 1: split or sampled", group=GROUP)
def splitting(size: Size) -> Case:
    table = read()
    n, columns = len(table["age"]), {name: table[name] for name in THREE}
    records = dn.Records({name: levels(table, name) for name in THREE})
    sampled = dn.Attributes(records, 1, people=n)
    split = {name: dn.plan(records[name], epsilon="1/3", n=n).best for name in THREE}
    errors: dict[str, list[Floats]] = {f"{how}, {name}": [] for name in THREE for how in ("split", "sampled")}
    for seed in range(size(REPEATS, 3)):
        bits = dn.Simulation(seed)
        found = sampled.estimate(sampled.tally(sampled.privatize(columns, bits)))
        for name in THREE:
            truth = np.array([np.mean(columns[name] == label) for label in records[name].labels])
            errors[f"sampled, {name}"].append(found.shares(name).frequencies - truth)
            own = split[name]
            alone = own.estimate(own.tally(own.privatize(columns[name], bits)))
            errors[f"split, {name}"].append(alone.frequencies - truth)
    facts: dict[str, str | int | float] = {
        name: f"{np.sqrt(np.mean(np.square(own))):.4f}" for name, own in errors.items()
    }
    facts["planner, split, worst share"] = f"{sampled.split_error(n, population=False):.4f}"
    facts["planner, sampled, worst share"] = f"{sampled.error(n, population=False):.4f}"
    return Case({"reports": work(lambda: sampled.privatize(columns), n, "report")}, (), facts)

"""Regression by statistical queries, and sampling against splitting, on the census table of 1994.

Data       as in `benchmarks.census`; people are drawn from it with replacement, as many as it has or ten times as many,
           so that the table is the population
Linear     hours of work on age, years of education, sex and marriage; logistic: income over 50,000 on these and hours.
           Numbers are clipped to where most people are, 20 to 65 years, 7 to 14 years of education, 20 to 60 hours
Campaigns  drawn from the law of their tallies, which is exact: people are drawn from the table, so that the reports of
           a query are too, from the mean of their laws (`drawn`). One to five rounds with as many people each
Figures    the root mean square error of the coefficients but the intercept, of numbers on a scale from -1 to 1 (so that
           a coefficient is the effect of half of a column's range), over all coefficients and campaigns whose
           coefficients are known. How often a 95 % interval holds them, and the median of half its width; how much of
           the standard error, by the median, is not noise but steps that have not converged
Others     synthetic: records of the latent model of all pairs, with 8 cells per number, on which the regression is
           fitted, for 3 crowds. Raw: the coefficients of as many people without any privacy
Splitting  shares of three columns of several answers: everybody asked for all at a third of epsilon, or each person for
           one at the whole epsilon; root mean square error of a share, and what the planner says of the worst one
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from benchmarks.census import levels, read
from benchmarks.registry import Case, Size, benchmark, work
from deniable.results import Regression

Floats = NDArray[np.float64]
Table = dict[str, NDArray[Any]]

GROUP, REGRESSIONS = "queries", "regressions"
SEEDS, REPEATS, CAMPAIGNS = 3, 100, 100
EPSILONS = (1, 2, 4)
NUMBERS = {"age": (20, 65), "education": (7, 14), "hours": (20, 60)}
EXPLAINED = {"linear": "hours", "logistic": "income"}
ROUNDS = {"linear": (1, 3), "logistic": (1, 2, 3, 5)}
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


class Crowd(NamedTuple):
    """Different records, encoded, and how many people have each."""

    records: Any
    people: NDArray[np.int64]

    @classmethod
    def of(cls, protocol: dn.Queries, table: Table) -> Crowd:
        columns = [np.asarray(table[name]) for name in protocol.domain.names]
        codes = np.stack([np.unique(column, return_inverse=True)[1] for column in columns])
        _, first, people = np.unique(codes, axis=1, return_index=True, return_counts=True)
        rows = {name: column[first] for name, column in zip(protocol.domain.names, columns, strict=True)}
        return cls(protocol.domain.encode(rows), people)


def drawn(protocol: dn.Queries, crowd: Crowd, n: int, random: np.random.Generator) -> dn.Tally:
    """The tally of n people who are drawn from a crowd with replacement."""
    counts: list[Any] = [random.multinomial(n, np.array(protocol.chances, dtype=float))]
    rows, people = np.arange(len(crowd.people)), crowd.people / crowd.people.sum()
    for group, (_, own) in enumerate(protocol.groups):
        place = own._grid_places(protocol.project_many(crowd.records, group, rows))
        below = np.minimum(place.astype(int), own.positions - 2)
        up, size = people * (place - below), own.positions
        shares = np.bincount(below, people - up, size) + np.bincount(below + 1, up, size)
        counts.append(random.multinomial(counts[0][group], _channel(own).push(shares / shares.sum())))
    return dn.Tally(protocol.fingerprint, n, np.concatenate(counts))


@cache
def _channel(protocol: Any) -> dn.Channel:
    found: dn.Channel = protocol.channel()
    return found


def campaign(first: dn.Queries, crowd: Crowd, rounds: int, n: int, random: np.random.Generator) -> Regression:
    """The coefficients of so many rounds, with n people in all."""
    batches, made = [], first
    for number in range(1, rounds + 1):
        tally = drawn(made, crowd, n // rounds, random)
        batches.append(made.batch(tally))
        last, made = made, made.following(tally, number) if number < rounds else made
    return last.regression(batches)


class Held(NamedTuple):
    """Of some campaigns: errors, standard errors, the part of these that is not noise, and the share that is known."""

    off: Floats
    stderr: Floats
    left: Floats
    known: float

    @classmethod
    def of(cls, found: list[Regression], truth: Floats, scale: Floats) -> Held:
        """In the units of features: the coefficients of campaigns divided by a scale, without the intercept."""
        known = [one for one in found if one.is_known]
        parts = (
            [one.value - truth for one in known],
            [one.stderr for one in known],
            [one.unconverged for one in known],
        )
        return cls(
            *((np.array(part) / scale)[:, 1:] if known else np.empty((0, 1)) for part in parts), len(known) / len(found)
        )

    @property
    def share(self) -> float:
        """How often a 95 % interval holds the true coefficient."""
        return float(np.mean(np.abs(self.off) <= 1.96 * self.stderr))

    def facts(self, head: str) -> dict[str, str]:
        also = "" if self.known == 1 else f" (known in {100 * self.known:.0f} %)"
        if not len(self.off):
            return {head: "never known"}
        return {
            head: f"{np.sqrt(np.mean(self.off**2)):.3f}{also}",
            f"{head}, half an interval": f"{1.96 * np.median(self.stderr):.2f}",
            f"{head}, intervals hold": f"{100 * self.share:.0f} %",
            f"{head}, not converged": f"{100 * np.median(self.left / self.stderr):.0f} %",
        }


def synthetic(link: str, epsilon: float, table: Table, seed: int) -> Floats:
    records = domain(link)
    protocol = dn.Attributes(records, epsilon, people=len(table["age"]), ask="pairs", cells={"education": 8})
    tally = protocol.tally(protocol.privatize({name: table[name] for name in records.names}, dn.Simulation(seed)))
    made = protocol.estimate(tally).synthesize(len(table["age"]), "latent", seed)
    return fitted({name: np.array(own) for name, own in made.items()}, link)


@benchmark("regression", "regressions of census columns: one to five rounds, synthetic, raw", group=REGRESSIONS)
def regression(size: Size) -> Case:
    table, facts = people(), {}
    n = len(table["age"])
    for link in ("linear", "logistic"):
        truth = fitted(table, link)
        first = asked(link, 1, n)
        names, scale = first.labels, first._scale
        facts[f"{link}, coefficients"] = ", ".join(f"{a} {b:.3g}" for a, b in zip(names[1:], truth[1:], strict=True))
        crowd = Crowd.of(first, table)
        by = np.diag(scale.matrix) / (scale.matrix[0, 0] if link == "linear" else 1.0)
        for times in (1, 10):
            draws = [np.random.default_rng(seed).integers(n, size=times * n) for seed in range(size(SEEDS, 2))]
            crowds = [{name: own[rows] for name, own in table.items()} for rows in draws]
            facts[f"{link}, n x {times}, raw"] = _error([fitted(one, link) for one in crowds], truth)
            facts[f"{link}, n x {times}, raw, half an interval"] = (
                f"{1.96 * np.median(raw_errors(table, link, times)):.2g}"
            )
            for epsilon in EPSILONS:
                head = f"{link}, n x {times}, epsilon {epsilon}"
                for rounds in ROUNDS[link]:
                    random, made = np.random.default_rng(rounds), asked(link, epsilon, times * n)
                    runs = [campaign(made, crowd, rounds, times * n, random) for _ in range(size(CAMPAIGNS, 3))]
                    facts |= Held.of(runs, in_units(made, truth, link), by).facts(f"{head}, {rounds} rounds")
                own = [synthetic(link, epsilon, one, seed) for seed, one in enumerate(crowds)]
                facts[f"{head}, synthetic"] = _error(own, truth)
    protocol = asked("logistic", 1, n)
    answers = {name: table[name] for name in protocol.domain.names}
    return Case({"reports": work(lambda: protocol.privatize(answers), n, "report")}, (), facts)


def _error(values: list[Floats], truth: Floats) -> str:
    return f"{np.sqrt(np.mean([(one[1:] - truth[1:]) ** 2 for one in values])):.3f}"


def in_units(protocol: dn.Queries, truth: Floats, link: str) -> Floats:
    """Coefficients of features as those of the columns in their units."""
    scale = protocol._scale
    if link == "logistic":
        return scale.matrix @ truth + scale.shift
    return scale.matrix / scale.matrix[0, 0] @ truth


def raw_errors(table: Table, link: str, times: int) -> Floats:
    """Standard errors of as many people without privacy, without the intercept's; whatever the law of the residuals."""
    x, y = design(table, link)
    t = x @ fitted(table, link)
    p = 1 / (1 + np.exp(-t))
    weight, left = (np.ones(len(y)), y - t) if link == "linear" else (p * (1 - p), y - p)
    inverse = np.linalg.inv((x * weight[:, None]).T @ x)
    spread = inverse @ (x * left[:, None] ** 2).T @ x @ inverse
    found: Floats = np.sqrt(np.diagonal(spread) / times)[1:]
    return found


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
    facts["planner, sampled, worst share"] = f"{sampled.worth(n, population=False).error:.4f}"
    return Case({"reports": work(lambda: sampled.privatize(columns), n, "report")}, (), facts)

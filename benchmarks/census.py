"""The census table of 1994: figures by stratum with the coverage of intervals, and who of the table sent some reports.

Data       UCI's "Adult" (Becker and Kohavi, CC BY 4.0), 32,561 people, as CSV with a header and perhaps gzip; its path
           is in the environment variable DENIABLE_CENSUS. The table is no part of this project
People     as many as the table has, drawn from it with replacement in every repetition: the table is the population
Strata     education and income are public here, and sent in clear; hours and age are randomized. Sex is private, and
           randomized together with hours or income
Coverage   how often the 95 % interval holds the figure of the table, over all repetitions
Who        an attacker knows ten columns of everybody and sees all reports of one device, from surveys that ask all ten
           or one of them, at an epsilon per report. The share of devices whose person is the likeliest, or among the
           ten likeliest, of everybody; beside it the bound of theory
"""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from benchmarks.registry import Case, Size, UnavailableError, benchmark, work
from deniable.privacy import reidentify

GROUP, WHO = "census", "census-who"
WHERE = "DENIABLE_CENSUS"
REPEATS = 200
KNOWN = (
    *("age", "workclass", "education", "marital_status", "occupation"),
    *("relationship", "race", "sex", "hours_per_week", "native_country"),
)
HOURS, AGES = dn.Interval(1, 99, unit="hours"), dn.Integers(17, 90)


@benchmark(
    "census",
    "census table: mean hours by education, median age by income, both by private sex, 200 repetitions",
    group=GROUP,
)
def census(size: Size) -> Case:
    table, repeats = read(), size(REPEATS, 3)
    facts: dict[str, str | int | float] = {}
    for epsilon in (1, 2):
        facts |= hours_by_education(table, epsilon, repeats)
    for epsilon in (1, 2):
        facts |= age_by_income(table, epsilon, repeats)
    for epsilon in (1, 2, 4):
        facts |= by_private_sex(table, epsilon, repeats)
    protocol = dn.Stratified({"education": levels(table, "education")}, dn.OneBitMean(HOURS, 1), "hours")
    answers = {"education": table["education"], "hours": table["hours_per_week"].astype(float)}
    return Case({"reports": work(lambda: protocol.privatize(answers), len(table["age"]), "report")}, (), facts)


@benchmark("census-who", "census table: who of 32,561 people sent the reports of a device", group=WHO)
def who(size: Size) -> Case:
    table, devices = read(), size(1000, 50)
    people = {name: table[name].tolist() for name in KNOWN}
    facts: dict[str, str | int | float] = {}
    for ask, rounds in (("all", (1, 5, 20)), ("one", (1, 20, 100))):
        for epsilon in ("0.5", 1, 2) if devices > 50 else (2,):
            asked = {name: dn.plan(levels(table, name), epsilon=epsilon, n=len(table["age"])).best for name in KNOWN}
            for surveys in rounds:
                found = reidentify(people, asked, surveys, ask)
                seen = found.simulate(devices, seed=surveys, top=(1, 10))
                words = (
                    f"top {top}: {100 * share:.1f} % (bound {100 * found.bound(top):.3g} %, blind "
                    f"{100 * found.blind(top):.3g} %)"
                    for top, share in zip((1, 10), seen, strict=True)
                )
                facts[f"epsilon {epsilon}, {ask} of ten, {surveys} surveys"] = "; ".join(words)
    return Case({"device": work(lambda: found.simulate(10, top=1), 10, "device")}, (), facts)


def read() -> dict[str, NDArray[np.str_]]:
    """The columns of the table."""
    path = Path(os.environ.get(WHERE, ""))
    if not path.is_file():
        raise UnavailableError(f"the census table is not part of this project: name its file in {WHERE}")
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        head, *rows = csv.reader(file)
    return {name: np.array(column) for name, column in zip(head, zip(*rows, strict=True), strict=True)}


def levels(table: dict[str, NDArray[np.str_]], name: str) -> list[str]:
    """The values of a column, the most common first."""
    values, often = np.unique(table[name], return_counts=True)
    return [str(value) for value in values[np.argsort(-often, kind="stable")]]


def hours_by_education(table: dict[str, NDArray[np.str_]], epsilon: float, repeats: int) -> dict[str, str]:
    strata = levels(table, "education")
    protocol = dn.Stratified({"education": strata}, dn.plan(HOURS, epsilon=epsilon, n=len(table["age"])).best, "hours")
    hours, which = table["hours_per_week"].astype(float), table["education"]
    truth = {name: float(hours[which == name].mean()) for name in strata} | {"all": float(hours.mean())}
    found = repeated(protocol, {"education": which, "hours": hours}, repeats)
    facts = {}
    for name in ("all", *strata):
        ends = [one.parts[name].interval() for one in found]
        held = np.mean([low <= truth[name] <= high for low, high in ends])
        width = np.mean([high - low for low, high in ends]) / 2
        first = found[0].parts[name]
        facts[f"epsilon {epsilon}, mean hours, {name}"] = (
            f"truth {truth[name]:.1f}; first estimate {first.value:.1f}, n = {first.n:,}; "
            f"interval +-{width:.1f}, holds in {100 * held:.1f} %"
        )
    whole = [
        low <= truth[name] <= high for one in found for name in strata for low, high in [one.parts[name].interval()]
    ]
    facts[f"epsilon {epsilon}, mean hours, coverage of all strata"] = f"{100 * float(np.mean(whole)):.1f} %"
    seen = np.mean([one.differ().rejected() for one in found])
    facts[f"epsilon {epsilon}, mean hours, strata are seen to differ"] = f"{100 * float(seen):.0f} %"
    return facts


def age_by_income(table: dict[str, NDArray[np.str_]], epsilon: float, repeats: int) -> dict[str, str]:
    strata = levels(table, "income")
    inner = dn.Window(AGES, epsilon, read="distribution")
    protocol = dn.Stratified({"income": strata}, inner, "age")
    ages, which = table["age"].astype(int), table["income"]
    truth = {name: float(np.sort(own)[(own.size - 1) // 2]) for name in strata for own in [ages[which == name]]}
    truth["all"] = float(np.sort(ages)[(ages.size - 1) // 2])
    found = repeated(protocol, {"income": which, "age": ages}, repeats)
    facts = {}
    for name in ("all", *strata):
        medians = [one.parts[name].median for one in found]
        ends = [one.interval() for one in medians]
        held = np.mean([low <= truth[name] <= high for low, high in ends])
        width = np.mean([high - low for low, high in ends]) / 2
        facts[f"epsilon {epsilon}, median age, {name}"] = (
            f"truth {truth[name]:.0f}; first estimate {float(medians[0]):.0f}, n = {found[0].parts[name].n:,}; "
            f"interval +-{width:.1f}, holds in {100 * held:.1f} %"
        )
    seen = np.mean([one.differ().rejected() for one in found])
    facts[f"epsilon {epsilon}, median age, strata are seen to differ"] = f"{100 * float(seen):.0f} %"
    return facts


def by_private_sex(table: dict[str, NDArray[np.str_]], epsilon: float, repeats: int) -> dict[str, str]:
    strata, facts = levels(table, "sex"), {}
    hours = table["hours_per_week"].astype(float)
    for column, domain, given in (("hours", HOURS, hours), ("income", levels(table, "income"), table["income"])):
        protocol = dn.PrivateStrata({"sex": strata, column: domain}, epsilon)
        people = {"sex": table["sex"], column: given}
        truth, found = protocol.worth().truth(people), repeated(protocol, people, repeats)
        rows = [one.table() for one in found]
        for place in [at for at, name in enumerate(rows[0].groups) if name in strata]:
            held = np.mean([row.low[place] <= truth[place] <= row.high[place] for row in rows])
            width = np.nanmean([row.high[place] - row.low[place] for row in rows]) / 2
            name = f"{rows[0].groups[place]}: {rows[0].labels[place]} {column if column == 'hours' else ''}".rstrip()
            facts[f"epsilon {epsilon}, private sex, {name}"] = (
                f"truth {truth[place]:.3g}; first estimate {rows[0].value[place]:.3g}; "
                f"interval +-{width:.2g}, holds in {100 * held:.1f} %"
            )
        seen = np.mean([one.differ().rejected() for one in found])
        facts[f"epsilon {epsilon}, private sex, {column}: strata are seen to differ"] = f"{100 * float(seen):.0f} %"
    return facts


def repeated(
    protocol: dn.Stratified | dn.PrivateStrata, people: dict[str, NDArray[np.generic]], repeats: int
) -> list[dn.results.Strata]:
    """Results of people who are drawn anew from the table."""
    random, bits = np.random.default_rng(7), dn.Simulation(7)
    count = len(next(iter(people.values())))
    found = []
    for _ in range(repeats):
        drawn = random.integers(count, size=count)
        answers = {name: column[drawn] for name, column in people.items()}
        found.append(protocol.estimate(protocol.tally(protocol.privatize(answers, bits))))
    return found

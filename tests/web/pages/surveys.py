"""Surveys that the pages are tested with."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from deniable.domains import Categories, Integers, Strings
from deniable.protocols import CMS, GRR, LGRR, OLH, OUE, Evolving, Protocol, SecureSum
from deniable.surveys import Question, Survey
from deniable.surveys.terms import Longitudinal
from tests.collect.surveys import terms

BREADS = ("rye", "sourdough", "spelt", "pumpernickel", "crispbread", "ciabatta", "pita", "naan", "brioche", "bagel")


def smoke(name: str = "smoke", min_reports: int = 1) -> Survey:
    """One question with two answers, at epsilon 1; tests that count answers give it a name of their own."""
    question = Question("smoke", "Do you smoke?", GRR(["yes", "no"], epsilon=1))
    return Survey(name, [question], terms(min_reports=min_reports))


def ten(name: str = "ten") -> Survey:
    """Ten categories."""
    return Survey(name, [Question("bread", "Which bread do you like best?", OUE(BREADS, epsilon=2))], terms(late=10))


def thousand(name: str = "thousand") -> Survey:
    """A thousand categories."""
    towns = [f"Town {i:04d}" for i in range(1000)]
    return Survey(name, [Question("town", "Which town do you live in?", OLH(towns, epsilon=4))], terms(late=10))


def shapes(name: str = "shapes") -> Survey:
    """Every kind of control: radio buttons, a search, a number and text."""
    questions = [
        Question("smoke", "Do you smoke?", GRR([True, False], epsilon="1/2")),
        Question("month", "In which month were you born?", OUE(Categories([f"month {i}" for i in range(1, 14)]), 1)),
        Question("age", "How old are you?", OLH(Integers(18, 99), epsilon=1)),
        Question("word", "Your word of the year?", CMS(Strings(cells=64, cohorts=8, key="shapes/word"), epsilon=3)),
    ]
    return Survey(name, questions, terms())


def often(name: str = "often") -> Survey:
    """Memoized, thirty times."""
    question = Question("mood", "How are you today?", GRR(["good", "fair", "bad"], epsilon=1))
    return Survey(name, [question], terms(longitudinal=Longitudinal("memoize", epochs=30, values=3), budget=3))


def staged(name: str = "two stages", values: int = 2) -> Survey:
    """In two stages, thirty times."""
    question = Question("mood", "How are you today?", LGRR(["good", "fair", "bad"], first="1/2", forever=1))
    rule = Longitudinal("two-stage", 30, values, Fraction(1, 2), Fraction(1))
    return Survey(name, [question], terms(longitudinal=rule, budget=values))


def single(protocol: Protocol, name: str, budget: int = 64) -> Survey:
    made, promise = terms(budget=budget), protocol.guarantee
    group = replace(made.budget, relation=promise.relation, delta=promise.delta)
    if isinstance(protocol, Evolving):
        rule = Longitudinal("evolving", protocol.epochs, changes=protocol.changes)
        today = made.opens + 10 * made.epochs.seconds
        days = replace(made.epochs, origin=today)
        expires = today + protocol.epochs * days.seconds
        made = replace(made, longitudinal=rule, epochs=days, opens=today, expires=expires)
    if isinstance(protocol, SecureSum):
        hosts = tuple(f"https://c{place}.example.org" for place in range(protocol.collectors))
        made = replace(made, collectors=hosts)
    return Survey(name, [Question("q", "What is it?", protocol)], replace(made, budget=group))


def every() -> list[Survey]:
    return [smoke(), smoke("waiting", min_reports=100), ten(), thousand(), shapes(), often()]

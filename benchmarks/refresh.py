"""What one refresh of a dashboard costs the service: processor time for the documents of ten questions.

Survey     ten questions of ten answers, as in `benchmarks.viewer`, from 20,000 people
Refresh    the documents of all questions, unbiased and consistent, as JSON, without HTTP and the store
Bare       for each question one estimate, its table, the consistent table and one misfit test: what cannot be left out
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.registry import Case, Size, Task, at_most, benchmark, cost, seconds
from benchmarks.viewer import survey

GROUP = "refresh"
PEOPLE = 20_000
TIMES, QUICK_TIMES = 20, 2


def processor(function: Callable[[], object], count: int) -> Task:
    """A task that is measured in processor time, so that other processes matter less."""

    def once() -> float:
        start = time.process_time()
        for _ in range(count):
            function()
        return time.process_time() - start

    return Task(once, count, "refresh")


@benchmark("refresh", "one refresh of a dashboard with ten questions: processor time", group=GROUP)
def refresh(size: Size) -> Case:
    from deniable.collect.server.estimates import Request, Summed, as_json, reading
    from deniable.collect.server.registry import Entry
    from deniable.collect.stores.base import Epoch
    from deniable.randomness import Simulation
    from deniable.surveys import SurveyTally

    made, times = survey(), size(TIMES, QUICK_TIMES)
    tallies = {}
    for place, question in enumerate(made):
        given = [f"answer {(i * i) % 10}" for i in range(PEOPLE)]
        reports = question.protocol.privatize(given, bits=Simulation(place))
        tallies[question.id] = question.protocol.tally(reports)
    entry = Entry(made, made.canonical, "collecting")
    summed = Summed(SurveyTally(made.fingerprint, tallies), [Epoch(0, "open", PEOPLE)], 0, None)
    request = Request(0, None, 0.95, True, True, "none", (), (), None, consistent="norm-sub")

    def bare() -> None:
        for question in made:
            found = question.protocol.estimate(tallies[question.id])
            found.table(simultaneous=True)
            found.consistent("norm-sub").table(simultaneous=True)
            question.protocol.misfit(tallies[question.id])

    def whole() -> bytes:
        return as_json(reading(entry, summed, request))

    tasks = {"refresh": processor(whole, times), "bare": processor(bare, times)}
    goals = [seconds("refresh", at_most(0.02, full_only=True)), cost("refresh", "bare", at_most(3, full_only=True))]
    return Case(tasks, goals, {"bytes": len(whole())})

"""`deniable tally`: reports and earlier tallies become one tally."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from deniable.cli import output
from deniable.cli.files import STDIN, only_one_stdin
from deniable.cli.options import examples
from deniable.cli.targets import About, Output, Target, progress, read_target, refuse_keyboard
from deniable.errors import SpecError
from deniable.protocols import Tally
from deniable.surveys import SurveyTally
from deniable.surveys.whole import whole

EXAMPLES = examples(
    "deniable tally survey.json reports/*.parquet -o tally.json",
    "deniable tally survey.json monday.json tuesday.json -o week.json          tallies add up",
    "deniable tally survey.json week.json reports/today.parquet -o week.json",
)

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUTS...",
        help="Files of reports (Parquet or text) and of tallies (JSON), in any mixture; '-' for standard input.",
        show_default=False,
    ),
]


def tally(survey: About, inputs: Inputs, to: Output = None) -> None:
    """Add reports up: what remains is one vector of counts a question, and the reports need not be kept.

    All inputs must be of this survey. If one is refused, nothing is counted and nothing is written.
    """
    if to is not None and to.suffix == ".parquet":
        raise SpecError(f"a tally is written as JSON: call it {to.with_suffix('.json').name!r}")
    target = read_target(survey)
    result = counted(target, survey, inputs)
    if to is None:
        output.write(_json(result))
        return
    with whole(to) as file:
        file.write(_json(result).encode())
    tallies = result.tallies if isinstance(result, SurveyTally) else {"report": result}
    output.table(["question", "reports"], [[id, str(tally.n)] for id, tally in tallies.items()])
    output.write(f"\nsaved: {to}\n")


def counted(target: Target, survey: str, inputs: list[str]) -> SurveyTally | Tally:
    """The sum of all inputs."""
    only_one_stdin(survey, *inputs)
    if STDIN in inputs:
        refuse_keyboard("name files of reports, or pipe reports or a tally in")
    from deniable.engines import tally_files

    with progress("counting") as advance:
        return tally_files(target, inputs, advance)


def _json(result: SurveyTally | Tally) -> str:
    return (
        result.to_json() if isinstance(result, SurveyTally) else json.dumps(result.spec(), separators=(",", ":")) + "\n"
    )

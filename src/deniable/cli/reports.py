"""`deniable channel sample` and `infer`: from answers to noisy reports, and from their counts back to the crowd."""

from __future__ import annotations

import sys
from collections import Counter
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from deniable.channels import Channel
from deniable.cli import output
from deniable.cli.files import STDIN, only_one_stdin
from deniable.cli.inputs import Names, as_floats, read_channel, read_lines, read_vector
from deniable.cli.options import Csv, Json, Plot, Seed, Source, examples, one_format
from deniable.cli.output import shown
from deniable.errors import ChannelError, NumberError, SpecError
from deniable.labels import label_spec, text
from deniable.randomness import Bits, Secure, Simulation

if TYPE_CHECKING:
    from deniable.channels.inference import Inference

# IBU on fewer cells than this is done before a progress bar could be read.
_LONG = 200_000
_MOST_REPORTS = 10_000_000


class Method(StrEnum):
    auto = "auto"
    invert = "invert"
    clip = "clip"
    simplex = "simplex"
    ibu = "ibu"
    mle = "mle"


SAMPLE_EXAMPLES = examples(
    "deniable channel sample coin yes no no",
    "deniable channel sample randomized-response:k=4,epsilon=1 < answers.txt > reports.txt",
    "deniable channel sample coin yes --times 1000 --seed 1 | sort | uniq -c",
)
INFER_EXAMPLES = examples(
    "deniable channel infer coin 620,380",
    "deniable channel infer coin yes=620,no=380 --method ibu --level 0.99",
    "deniable channel infer channel.json counts.csv --plot estimate.png",
    "deniable channel infer coin --observations < reports.txt",
    "deniable channel infer subset-selection:k=4,epsilon=1 counts.json --json",
)


def bits_from(seed: int | None) -> Bits:
    """Secure bits, or a simulation's with a warning."""
    if seed is None:
        return Secure()
    output.note("warning", "--seed makes a simulation: whoever knows the seed can undo the noise")
    return Simulation(seed)


def sample(
    source: Source,
    labels: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LABELS",
            help="True answers; from standard input, one a line, if none are given.",
            show_default=False,
        ),
    ] = None,
    times: Annotated[int, typer.Option(metavar="N", help="Randomize each answer N times.")] = 1,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Randomize answers: one noisy label a line, drawn from the exact law with cryptographic bits."""
    if not labels:
        only_one_stdin(source, STDIN)
        _refuse_keyboard("give labels as arguments, or pipe them in, one a line")
    given = read_channel(source)
    names = Names.of(given.inputs, "input")
    places = [names.place(label, show=False) for label in labels] if labels else read_lines(STDIN, names, show=False)
    if times < 1 or times * len(places) > _MOST_REPORTS:
        raise NumberError(f"--times must be at least 1 and make at most {_MOST_REPORTS} reports at once")
    drawn = given.sample_indices(np.repeat(np.array(places, dtype=np.int64), times), bits_from(seed))
    if as_json:
        output.document({"outputs": [label_spec(given.outputs[y]) for y in drawn]})
    else:
        written = [text(label) for label in given.outputs]
        output.write("".join(written[y] + "\n" for y in drawn))


def infer(
    source: Source,
    counts: Annotated[
        str,
        typer.Argument(
            metavar="COUNTS",
            help="How often each output came: 620,380 or yes=620,no=380, a file (CSV or JSON), or '-'.",
            show_default="standard input",
        ),
    ] = STDIN,
    observations: Annotated[
        bool, typer.Option("--observations", help="COUNTS holds observed labels, one a line, still to be counted.")
    ] = False,
    method: Annotated[
        Method,
        typer.Option(
            metavar="METHOD",
            help="invert: unbiased, may be negative. clip, simplex: inverted, then made a distribution. "
            "ibu: most likely distribution, any channel. mle: the same in closed form, for randomized response. "
            "auto: invert where the channel has an inverse, else ibu.",
        ),
    ] = Method.auto,
    level: Annotated[float, typer.Option(metavar="P", help="Confidence level of the intervals.")] = 0.95,
    plot: Plot = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Estimate how common each true answer is, from how often each output came, with error bars."""
    one_format(as_json, as_csv)
    only_one_stdin(source, counts)
    if counts == STDIN:
        _refuse_keyboard("give the counts as an argument, in a file, or pipe them in")
    given = read_channel(source)
    names = Names.of(given.outputs, "output")
    if observations:
        seen = Counter(read_lines(counts, names))
        observed = [Fraction(seen[y]) for y in range(len(given.outputs))]
    else:
        observed = read_vector(counts, names, "counts")
    result = _estimate(
        given, as_floats(observed, "counts"), method, bar=output.on_terminal() and not (as_json or as_csv)
    )
    ends = result.interval(level)
    if plot is not None:
        from deniable.cli.pictures import save_figure

        save_figure(plot, lambda: result.plot(level=level))
    if as_json:
        output.document(_description(result, ends, level))
    elif as_csv:
        columns = (map(text, result.inputs), result.frequencies, result.counts, result.stderr, ends[:, 0], ends[:, 1])
        output.csv_table([["label", "frequency", "count", "stderr", "low", "high"], *zip(*columns, strict=True)])
    else:
        _print(result, ends, level)
        if plot is not None:
            output.write(f"\ndrawn: {plot}\n")
    for warning in _warnings(result):
        output.note("warning", warning)


def _refuse_keyboard(instead: str) -> None:
    if sys.stdin.isatty():
        raise SpecError(f"there is nothing to read: {instead}")


def _estimate(given: Channel, observed: list[float], method: Method, bar: bool) -> Inference:
    from deniable.channels.inference import ibu, invert, mle_randomized_response

    try:
        match method:
            case Method.invert:
                return invert(given, observed)
            case Method.clip:
                return invert(given, observed, "clip")
            case Method.simplex:
                return invert(given, observed, "simplex")
            case Method.mle:
                return mle_randomized_response(given, observed)
            case Method.auto if given.shape[0] == given.shape[1]:
                return invert(given, observed)
    except ChannelError as refused:
        if method is not Method.auto:
            raise ChannelError(str(refused).replace("ibu(channel, counts)", "--method ibu")) from None
    return ibu(given, observed, progress=bar and given.rows.size > _LONG)


def _warnings(result: Inference) -> list[str]:
    warnings = []
    if not result.converged:
        warnings.append(
            f"the iteration stopped early: another distribution may fit better by {result.gap:.1e} nats a report"
        )
    if not result.identifiable:
        warnings.append("different crowds look the same through this channel: this is one of many solutions")
    if result.misfit is not None and result.misfit.suspicious:
        warnings.append(result.misfit.about("channel"))
    return warnings


def _print(result: Inference, ends: Any, level: float) -> None:
    pairs = [("method", result.method), ("reports", f"{result.n:.0f}" if result.n.is_integer() else f"{result.n:.6g}")]
    if result.iterations:
        pairs.append(("updates", f"{result.iterations}, within {result.gap:.1e} nats a report of the maximum"))
    if result.raw is not None:
        pairs.append(("error bars", "of the unbiased estimate, before it was made a distribution"))
    output.facts(pairs)
    output.write("\n")
    head = ["answer", "reported", "estimate", "stderr", f"{100 * level:g}% interval"]
    body = [
        [shown(label), reported, f"{value:.4f}", _error(error), f"[{low:.4f}, {high:.4f}]"]
        for label, reported, value, error, (low, high) in zip(
            result.inputs, _reported(result), result.frequencies, result.stderr, ends, strict=True
        )
    ]
    output.table(head, body)


def _reported(result: Inference) -> list[str]:
    """The noisy shares, where an output can be taken for an answer."""
    if result.inputs != result.outputs:
        return ["-"] * len(result.inputs)
    return [f"{share:.4f}" for share in result.observed / result.n]


def _error(value: float) -> str:
    return f"{value:.4f}" if np.isfinite(value) else "unknown"


def _description(result: Inference, ends: Any, level: float) -> dict[str, Any]:
    content = result.to_dict()
    del content["interval_95"]
    content["counts"] = [output.finite(value) for value in result.counts]
    content["level"] = level
    content["interval"] = [[output.finite(end) for end in pair] for pair in ends]
    content["observed"] = {
        text(label): count for label, count in zip(result.outputs, result.observed.tolist(), strict=True)
    }
    return content

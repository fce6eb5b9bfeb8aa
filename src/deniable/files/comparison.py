"""Comparisons of protocols and estimators on made-up people: `study`, a table with one row per combination.

Cell       protocol x epsilon x n x truth x estimator; `repeats` collections from the same people. All estimators of a
           cell read the same collections, so that their errors can be compared pair by pair
Estimators "unbiased", a method of `deniable.postprocess.METHODS` (add your own there, and every command knows it), or a
           function of a protocol and a tally that gives a result, or one number per figure
Figures    rmse: root mean square error over figures and repeats, with its standard error over the repeats; bias: the
           largest mean error of a figure; coverage: of the 95 % intervals among those who answered, if there are any
Resume     a cell is a small file in `folder`, named by the hash of everything that it depends on: the spec of the
           protocol, the people, the estimator (a function by its code), repeats and seed
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from deniable._extras import require
from deniable._files import atomic_write
from deniable._sheets import Sheet, Shown
from deniable.domains import Categories, Domain, ListedDomain, as_domain
from deniable.errors import LabelError, NumberError, SpecError
from deniable.files.studies import LEVEL, log_scales, rounded
from deniable.labels import label_spec
from deniable.planning import COLORS, STYLES
from deniable.postprocess import METHODS, named
from deniable.protocols import Protocol, Tally, registered
from deniable.results import Floats, Result

UNBIASED = "unbiased"
Estimator = Callable[[Protocol, Tally], Any]
_AXES = {"epsilon": "epsilon", "n": "people"}


@dataclass(frozen=True, slots=True)
class StudyRow:
    """One combination of a study, with the errors that were measured.

    Args:
        protocol: Name of the protocol.
        estimator: Name of the estimator.
        epsilon: Epsilon of a report.
        n: Number of people.
        truth: Name of the distribution of their answers.
        repeats: Number of collections.
        rmse: Root mean square error of a figure.
        rmse_stderr: Its standard error over the repeats.
        bias: Largest mean error of a figure.
        max_error: Largest error of a figure, averaged over the repeats.
        coverage: Share of the 95 % intervals that hold the truth; None without intervals.
    """

    protocol: str
    estimator: str
    epsilon: float
    n: int
    truth: str
    repeats: int
    rmse: float
    rmse_stderr: float
    bias: float
    max_error: float
    coverage: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """The rows of a study: a tidy frame, and a picture.

    Args:
        rows: One row per combination.
        reused: Number of rows that were read from the folder.
    """

    pictured: ClassVar[bool] = True

    rows: tuple[StudyRow, ...]
    reused: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def sheet(self) -> Sheet:
        rows = [asdict(row) for row in self.rows]
        columns = {name: [row[name] for row in rows] for name in StudyRow.__slots__}
        body = [
            ["-" if one is None else f"{one:.4g}" if isinstance(one, float) else str(one) for one in row.values()]
            for row in rows
        ]
        return Sheet([repr(self)], [name.replace("_", " ") for name in columns], body, columns=columns)

    def plot(self, ax: Any = None) -> Any:
        """The error against what was varied most, one line per protocol and estimator; returns the axes."""
        pyplot = require("matplotlib.pyplot", "plot")
        axis = max(_AXES, key=lambda name: len({getattr(row, name) for row in self.rows}))
        other = next(name for name in _AXES if name != axis)
        if ax is None:
            _, ax = pyplot.subplots(figsize=(7.2, 4.4), layout="constrained")
        names = list(dict.fromkeys(row.protocol for row in self.rows))
        styles = list(dict.fromkeys((row.estimator, row.truth, getattr(row, other)) for row in self.rows))
        for name, style in itertools.product(names, styles):
            own = [
                row
                for row in self.rows
                if (row.protocol, row.estimator, row.truth, getattr(row, other)) == (name, *style)
            ]
            own.sort(key=lambda row: getattr(row, axis))
            varied = [one for place, one in enumerate(style) if len({known[place] for known in styles}) > 1]
            look = {"color": COLORS[names.index(name) % len(COLORS)], "marker": "o", "markersize": 4}
            look["linestyle"] = STYLES[styles.index(style) % len(STYLES)]
            reach = [2 * row.rmse_stderr for row in own]
            at, height = [getattr(row, axis) for row in own], [row.rmse for row in own]
            ax.errorbar(at, height, reach, label=", ".join([name, *map(str, varied)]), **look)
        errors = [row.rmse + side * row.rmse_stderr for row in self.rows for side in (-2, 2) if row.repeats > 1]
        log_scales(np.array([[ax]]), [float(getattr(row, axis)) for row in self.rows], errors or [1.0])
        ax.set(xlabel=_AXES[axis], ylabel="root mean square error")
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
        return ax

    def __repr__(self) -> str:
        kinds = len({(row.protocol, row.estimator) for row in self.rows})
        return f"<Comparison of {kinds} protocols and estimators in {len(self)} cells>"


def study(
    protocols: Iterable[str | type[Protocol] | Protocol],
    truth: Any,
    n: int | Iterable[int],
    epsilon: Any = 1,
    estimators: str | Iterable[str | Estimator] | Mapping[str, str | Estimator] = UNBIASED,
    repeats: int = 100,
    *,
    domain: Any = None,
    seed: int = 0,
    folder: str | Path | None = None,
    progress: bool = True,
) -> Comparison:
    """Compare protocols and estimators on made-up people, over a grid.

    Args:
        protocols: Names, classes, or protocols with their own epsilon.
        truth: The share of each answer, or with `domain` a list of answers that people give in turn; several of them by
            name.
        n: Numbers of people.
        epsilon: Epsilons of a report.
        estimators: "unbiased", methods such as "norm-sub", or functions of a protocol and a tally; by name, if wanted.
        repeats: Number of collections in each cell.
        domain: The possible answers, if `truth` lists answers.
        seed: The same seed gives the same rows.
        folder: Where finished cells are kept, so that a study can be interrupted and extended.
        progress: Whether a bar is shown, in a terminal or a notebook.

    Returns:
        One row per combination.

    Raises:
        LabelError: There is no such protocol or method.
        NumberError: A number of people or of repeats is not positive.
        SpecError: The truth is not a distribution of answers.

    >>> found = study(["GRR", "OUE"], {"rye": 3, "white": 1}, n=1000, epsilon=[1, 2], repeats=20, progress=False)
    >>> [(row.protocol, row.epsilon) for row in found.rows], found.rows[1].rmse < found.rows[0].rmse
    ([('GRR', 1.0), ('GRR', 2.0), ('OUE', 1.0), ('OUE', 2.0)], True)
    """
    people = [n] if isinstance(n, int) else list(n)
    for number in (*people, repeats):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise NumberError(f"numbers of people and of repeats are positive whole numbers, not {number!r}")
    levels = list(epsilon) if isinstance(epsilon, Sequence) and not isinstance(epsilon, str) else [epsilon]
    readers = _estimators(estimators)
    crowds = [
        (name, number, one, _crowd(held, number, one))
        for name, held in _truths(truth).items()
        for one in [_domain(held, domain)]
        for number in people
    ]
    cells = [
        (name, number, protocol, crowd)
        for given in protocols
        for name, number, asked, crowd in crowds
        for protocol in _built(given, asked, levels)
    ]
    kept = None if folder is None else Path(folder)
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
    rows: list[StudyRow] = []
    reused = 0
    for name, number, protocol, crowd in _watched(cells, progress):
        known = {key: _kept(kept, _key(protocol, crowd, reader, repeats, seed)) for key, reader in readers.items()}
        reused += sum(one is not None for one in known.values())
        missing = {key: readers[key] for key, row in known.items() if row is None}
        head = {"protocol": protocol.name, "epsilon": float(protocol.epsilon), "n": number, "truth": name}
        for key, figures in _measured(protocol, crowd, missing, repeats, seed).items():
            known[key] = head | {"estimator": key, "repeats": repeats} | figures
            if kept is not None:
                with atomic_write(kept / f"{_key(protocol, crowd, readers[key], repeats, seed)}.json") as file:
                    file.write(json.dumps(known[key]).encode())
        # Names are those of this study, whatever they were when a cell was kept.
        rows += [StudyRow(**(row | head | {"estimator": key})) for key, row in known.items() if row is not None]
    return Comparison(tuple(rows), reused)


# -- what was asked ---------------------------------------------------------------------------------------


def _estimators(given: Any) -> dict[str, str | Estimator]:
    listed = [given] if isinstance(given, str) or callable(given) else given
    if not isinstance(listed, Mapping):
        listed = {one if isinstance(one, str) else getattr(one, "__name__", repr(one)): one for one in listed}
    for one in listed.values():
        if isinstance(one, str) and one != UNBIASED:
            named(one)
        elif not isinstance(one, str) and not callable(one):
            raise LabelError(f"an estimator is {UNBIASED!r}, one of {', '.join(METHODS)}, or a function, not {one!r}")
    return dict(listed)


def _truths(truth: Any) -> dict[str, Any]:
    if isinstance(truth, Mapping) and truth and all(isinstance(one, Mapping | list | tuple) for one in truth.values()):
        return {str(name): one for name, one in truth.items()}
    return {"truth": truth}


def _domain(truth: Any, given: Any) -> Domain:
    if given is not None:
        return as_domain(given)
    if not isinstance(truth, Mapping):
        raise SpecError("the truth is the share of each answer, or a list of answers: then give their domain, too")
    return Categories(list(truth))


def _crowd(truth: Any, n: int, domain: Domain) -> tuple[Any, Any]:
    """Answers, and the number of people with each of them; None for one each."""
    if not isinstance(truth, Mapping):
        if not len(truth):
            raise SpecError("the truth lists no answers")
        return [truth[place % len(truth)] for place in range(n)], None
    weights = np.array([float(one) for one in truth.values()])
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.sum() > 0:
        raise SpecError("the shares of the truth are not negative, and one of them is positive")
    return list(truth), rounded(weights / weights.sum(), n)


def _built(given: Any, domain: Domain, levels: Sequence[Any]) -> Iterator[Protocol]:
    if isinstance(given, Protocol):
        yield given
        return
    kinds = registered()
    if isinstance(given, str) and given not in kinds:
        raise LabelError(f"there is no protocol {given!r}; there are {', '.join(kinds)}")
    kind: Any = kinds[given] if isinstance(given, str) else given
    yield from (kind(domain, level) for level in levels)


def _watched(cells: list[Any], progress: bool) -> Iterable[Any]:
    """The cells with a bar, in a terminal or a notebook."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    hidden = not progress or not (console.is_terminal or console.is_jupyter)
    return track(cells, "study", console=console, disable=hidden, transient=True)


# -- one cell ---------------------------------------------------------------------------------------------


def _key(protocol: Protocol, crowd: tuple[Any, Any], estimator: str | Estimator, repeats: int, seed: int) -> str:
    """The hash of everything that a cell depends on."""
    answers, counts = crowd
    held = [label_spec(one) for one in answers] if isinstance(protocol.domain, ListedDomain) else repr(answers)
    many = None if counts is None else [int(one) for one in counts]
    content = [protocol.spec(), held, many, _code(estimator), repeats, seed]
    return hashlib.sha256(b"deniable-comparison-v1\0" + json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _code(estimator: Any) -> Any:
    """A method by its name and function, another function by its code and the values that it closes over."""
    if isinstance(estimator, str):
        return [estimator, None if estimator == UNBIASED else _code(METHODS[estimator].function)]
    code = getattr(estimator, "__code__", None)
    if code is None:
        return repr(estimator)
    inner = [_code_of(one) for one in code.co_consts]
    closed = [repr(one.cell_contents) for one in estimator.__closure__ or ()]
    return [code.co_code.hex(), inner, list(code.co_names), repr(estimator.__defaults__), closed]


def _code_of(constant: Any) -> Any:
    return [constant.co_code.hex(), list(constant.co_names)] if hasattr(constant, "co_code") else repr(constant)


def _kept(folder: Path | None, key: str) -> dict[str, Any] | None:
    if folder is None or not (folder / f"{key}.json").exists():
        return None
    try:
        found: dict[str, Any] = json.loads((folder / f"{key}.json").read_text())
    except ValueError:
        raise SpecError(f"{str(folder / f'{key}.json')!r} is not a cell of a study: delete it") from None
    return found


def _measured(
    protocol: Protocol, crowd: tuple[Any, Any], readers: Mapping[str, str | Estimator], repeats: int, seed: int
) -> dict[str, dict[str, Any]]:
    """The errors of each estimator, all from the same collections."""
    if not readers:
        return {}
    answers, counts = crowd
    own = int(_key(protocol, crowd, UNBIASED, repeats, seed)[:13], 16)
    drawn = protocol.simulate(answers, repeats, own, counts=counts)
    found: dict[str, dict[str, Any]] = {}
    for name, reader in readers.items():
        errors, covered = [], []
        for run in range(repeats):
            value, ends = _read(protocol, drawn.tally(run), reader)
            if value.shape != drawn.truth.shape:
                raise SpecError(
                    f"the estimator {name} gives {value.size} figures, and {protocol.name} has {drawn.truth.size}"
                )
            errors.append(value - drawn.truth)
            if ends is not None:
                covered.append(np.mean((ends[:, 0] <= drawn.truth) & (drawn.truth <= ends[:, 1])))
        apart = np.array(errors)
        squares = np.mean(apart**2, axis=1)
        rmse = math.sqrt(float(np.mean(squares)))
        spread = float(np.std(squares, ddof=1)) / math.sqrt(repeats) if repeats > 1 else math.nan
        found[name] = {
            "rmse": rmse,
            "rmse_stderr": spread / (2 * rmse) if rmse else 0.0,
            "bias": float(np.max(np.abs(apart.mean(axis=0)))),
            "max_error": float(np.mean(np.max(np.abs(apart), axis=1))),
            "coverage": float(np.mean(covered)) if covered else None,
        }
    return found


def _read(protocol: Protocol, tally: Tally, reader: str | Estimator) -> tuple[Floats, Floats | None]:
    """The figures of one collection, and their intervals if there are any."""
    if not isinstance(reader, str):
        made = reader(protocol, tally)
    else:
        made = protocol.estimate(tally)
        made = made if reader == UNBIASED else made.consistent(reader)
    if not isinstance(made, Result):
        return np.asarray(made, dtype=np.float64), None
    rows = made.table(LEVEL, population=False)
    return rows.value, rows.ends

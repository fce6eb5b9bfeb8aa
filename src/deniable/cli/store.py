"""`deniable store`: look after what the collection service keeps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import output
from deniable.cli.options import Json, examples
from deniable.cli.output import shown
from deniable.cli.stores import StoreUrl
from deniable.collect.stores import Store, open_store
from deniable.errors import LabelError, SpecError
from deniable.protocols.reports import Bytes
from deniable.surveys import Survey
from deniable.surveys.strict import parse_json
from deniable.surveys.terms import write_time

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)

WRONG = 1
DEFAULT = "sqlite:///deniable.db"

Which = Annotated[
    str | None,
    typer.Option("--survey", metavar="FP", help="The beginning of a fingerprint.", show_default="the only survey"),
]


@app.callback(
    epilog=examples(
        "deniable store check --store sqlite:///collection.db",
        "deniable store export out/ --store sqlite:///collection.db",
        "deniable store backup copy.db --store sqlite:///collection.db",
        "deniable store close-epoch 12 --store sqlite:///collection.db",
    )
)
def store(ctx: typer.Context) -> None:
    """Check, copy and export what the collection service keeps, also while it runs."""
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


@app.command(epilog=examples("deniable store check --store sqlite:///collection.db"))
def check(
    store: StoreUrl = DEFAULT,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out what reads every row.")] = False,
    as_json: Json = False,
) -> int:
    """Check that sums, ids, reports and hashes agree; the exit code is 1 if they do not."""
    with open_store(store) as opened:
        wrong = opened.check(deep=not quick)
        surveys = len(opened.surveys())
    if as_json:
        output.document({"surveys": surveys, "wrong": wrong})
    elif wrong:
        output.write("".join(f"wrong: {sentence}\n" for sentence in wrong))
    else:
        output.write(f"{surveys} surveys, nothing is wrong\n")
    return WRONG if wrong else 0


@app.command(epilog=examples("deniable store backup copy.db --store sqlite:///collection.db"))
def backup(
    to: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes.", show_default=False)],
    store: StoreUrl = DEFAULT,
) -> None:
    """Make a consistent copy, also while the service runs."""
    with open_store(store) as opened:
        opened.backup(to)
    output.write(f"saved: {to}\n")


@app.command("close-epoch", epilog=examples("deniable store close-epoch 12 --store sqlite:///collection.db"))
def close_epoch(
    epoch: Annotated[int, typer.Argument(min=0, help="The epoch's number.", show_default=False)],
    store: StoreUrl = DEFAULT,
    survey: Which = None,
    yes: Annotated[bool, typer.Option("--yes", help="Close an epoch whose reports are still taken.")] = False,
) -> None:
    """Refuse later reports of an epoch, hash its tally and forget the ids of its submissions."""
    with open_store(store) as opened:
        chosen = _chosen(opened, survey)
        terms = chosen.terms
        if terms is not None and not terms.first <= epoch <= terms.last:
            raise LabelError(f"the epochs of this survey are {terms.first} to {terms.last}")
        if terms is not None and not yes and epoch >= terms.epochs.at(time.time()) - terms.epochs.late:
            end = write_time(terms.epochs.start(epoch + 1 + terms.epochs.late))
            raise LabelError(
                f"reports of epoch {epoch} are taken until {end}: devices that answer after it is closed have spent "
                "their budget for nothing; if that is meant, say --yes"
            )
        closed = opened.close_epoch(chosen.fingerprint, epoch)
    output.facts([("epoch", str(closed.epoch)), ("submissions", str(closed.n)), ("sha256", closed.sha256 or "")])


@app.command(epilog=examples("deniable store export out/ --store sqlite:///collection.db --survey 3f2a91c0"))
def export(
    to: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="Where the files go.", show_default=False)],
    store: StoreUrl = DEFAULT,
    survey: Which = None,
) -> None:
    """Write a survey, its tally and, where they are kept, its reports, as files that the other commands take."""
    with open_store(store) as opened:
        chosen = _chosen(opened, survey)
        to.mkdir(parents=True, exist_ok=True)
        chosen.save(to / "survey.json")
        opened.tally(chosen.fingerprint).save(to / "tally.json")
        saved = ["survey.json", "tally.json"]
        if chosen.terms is not None and chosen.terms.retention == "reports":
            _save_reports(opened, chosen, to / "reports.parquet")
            saved.append("reports.parquet")
    output.facts([("survey", shown(chosen.name)), ("fingerprint", chosen.fingerprint)])
    output.write("\n" + "".join(f"saved: {to / name}\n" for name in saved))


def _save_reports(store: Store, survey: Survey, path: Path) -> None:
    from deniable.engines import report_writer

    with report_writer(path, survey) as writer:
        for batch in _columns(store, survey):
            writer.write(batch)


def _columns(store: Store, survey: Survey) -> Iterator[dict[str, Bytes]]:
    from deniable.collect.counting import Counter

    parts = Counter(survey).parts
    for batch in store.reports(survey.fingerprint):
        yield {part.id: batch.answers[:, part.bytes] for part in parts}


def _chosen(store: Store, prefix: str | None) -> Survey:
    """The survey that is meant."""
    published = {one.fingerprint: one for one in store.surveys()}
    found = [fingerprint for fingerprint in published if fingerprint.startswith((prefix or "").lower())]
    if not published:
        raise SpecError("no survey is published in this store")
    if len(found) != 1:
        names = ", ".join(fingerprint[:12] for fingerprint in sorted(published))
        problem = "no survey has this fingerprint" if not found else "there are several surveys"
        raise LabelError(f"{problem}: choose one of {names} with --survey")
    return Survey.from_spec(parse_json(published[found[0]].canonical, "the stored survey"))

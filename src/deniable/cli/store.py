"""`deniable store`: maintain the data of the collection service.

An export holds files that the other commands take:

survey.json       the survey
tally.json        the sum over the epochs; or tally-3.json, tally-4.json, ...: one per epoch, never both, so that
                  adding up all tallies of the directory counts each submission once
reports.parquet   the randomized reports, if the survey says that they are kept; with ids one file per epoch,
                  reports-3.parquet, ..., because a submission is identified by its epoch and its id
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qsl, quote, urlsplit

import typer

from deniable import __version__
from deniable._extras import require
from deniable.cli import output
from deniable.cli.load_survey import SHORTEST, chosen_in, read_moment
from deniable.cli.options import Json, argument, new_app, option, read_text
from deniable.cli.output import examples, many, shown
from deniable.collect.analyst import read_range
from deniable.collect.stores import Store, StoreError, open_store, restore_store
from deniable.collect.stores.base import CLOSED, OPEN, REOPEN_SECONDS, TOLERANCE
from deniable.collect.stores.batches import SurveyCounter
from deniable.errors import LabelError, SpecError
from deniable.files import Layout, report_writer
from deniable.files.reports import ID
from deniable.surveys import Survey
from deniable.surveys.terms import write_time

# -- which store: its URL, its password, and how it is opened -----------------------------------------


PASSWORD_FILE = "DENIABLE_STORE_PASSWORD_FILE"


def _whole(ctx: typer.Context, param: typer.CallbackParam, url: str) -> str:
    """The URL with the password from a file. A password on the command line is refused."""
    source = ctx.get_parameter_source(param.name or "")
    given = source is not None and source.name == "COMMANDLINE"
    if url.startswith("files:") and has_password(url) and given:
        raise SpecError(
            "everybody on this machine can read a password on a command line: give the keys of the place that parts "
            "move to in its own variables (AWS_ACCESS_KEY_ID ...), or the whole URL in DENIABLE_STORE"
        )
    if not url.startswith(("postgresql://", "postgres://")):
        return url
    if has_password(url):
        if given:
            raise SpecError(
                "everybody on this machine can read a password on a command line: leave it out of --store, and name a "
                f"file that holds it in the variable {PASSWORD_FILE}, or give the whole URL in DENIABLE_STORE"
            )
        return url
    file = os.environ.get(PASSWORD_FILE)
    if not file:
        return url
    password = read_text(file).strip("\r\n")
    return f"{url}{'&' if '?' in url else '?'}password={quote(password, safe='')}"


StoreUrl = Annotated[
    str,
    option(
        "URL",
        "sqlite:///name.db, sqlite:////absolute/name.db, postgresql://user@host/name or files:///directory.",
        "--store",
        default=True,
        envvar="DENIABLE_STORE",
        callback=_whole,
    ),
]
DEFAULT = "sqlite:///deniable.db"


def sqlite_file(url: str) -> str | None:
    """The file of an SQLite store; None for other stores.

    >>> sqlite_file("sqlite:////var/lib/collect.db"), sqlite_file("files:///var/lib/collect")
    ('/var/lib/collect.db', None)
    """
    return url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else None


def _database(url: str) -> str | None:
    """The file of a store on this machine; None for stores on a server, and in memory."""
    if url.startswith("files:///"):
        return os.path.join(url.removeprefix("files:///").partition("?to=")[0], "control.db")
    return sqlite_file(url)


def has_password(url: str) -> bool:
    """Whether a URL holds a password.

    >>> has_password("postgresql://ada:secret@host/db"), has_password("postgresql://ada@host/db?host=/run/pg")
    (True, False)
    """
    if url.startswith("files:"):
        return has_password(url.partition("?to=")[2])
    user, at, _ = url.partition("://")[2].rpartition("@")
    return bool(at and ":" in user) or any(key == "password" for key, _ in parse_qsl(urlsplit(url).query))


def without_password(url: str) -> str:
    """A URL that is safe to show.

    >>> without_password("postgresql://ada:secret@host/db"), without_password("postgresql://ada@host/db?password=x&a=1")
    ('postgresql://ada@host/db', 'postgresql://ada@host/db?a=1')
    >>> without_password("files:///node?to=s3://key:secret@bucket/reports")
    'files:///node?to=s3://bucket/reports'
    """
    if url.startswith("files:"):
        from deniable.files.places import shown

        directory, to, place = url.partition("?to=")
        return f"{directory}{to}{shown(place)}"
    kind, _, rest = url.partition("://")
    user, at, place = rest.rpartition("@")
    place, mark, query = place.partition("?")
    left = "&".join(part for part in query.split("&") if part.partition("=")[0] != "password")
    return f"{kind}://{user.partition(':')[0]}{at}{place}{mark if left else ''}{left}"


def is_made(url: str) -> bool:
    """Whether a store exists at a URL. The check does not create one."""
    file = _database(url)
    if file is not None:
        return os.path.isfile(file) and os.path.getsize(file) > 0
    return not url.startswith(("postgresql://", "postgres://")) or _has_tables(url)


def existing(url: str, read_only: bool = False) -> Store:
    """Open the store at a URL. Raises `StoreError` if it does not exist: a typo must not make an empty store."""
    if not is_made(url):
        # Not the URL of a server: it may hold a password.
        where = _database(url)
        missing = "there is no store in this PostgreSQL database" if where is None else f"there is no store {where!r}"
        raise StoreError(f"{missing}: name another with --store; a new one is made by deniable serve")
    return open_store(url, read_only=read_only)


def _has_tables(url: str) -> bool:
    psycopg = require("psycopg", "postgres")
    from deniable.collect.stores.postgres import CONNECT_SECONDS, without_password

    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS, application_name="deniable") as connection:
            return bool(connection.execute("SELECT to_regclass('schema_version') IS NOT NULL").fetchone()[0])
    except psycopg.Error as error:
        reason = without_password(url, " ".join(str(error).split()))
        raise StoreError(f"the PostgreSQL store cannot be used: {reason or type(error).__name__}") from None


app = new_app()

# -- the commands -------------------------------------------------------------------------------------


WRONG = 1
SURVEY, TALLY, REPORTS = "survey.json", "tally.json", "reports.parquet"

_OURS = re.compile(r"survey\.json|tally(-[0-9]+)?\.json|reports(-[0-9]+)?\.parquet")

Which = Annotated[
    str | None,
    option(
        "SURVEY",
        f"Its name, or the beginning of its fingerprint, {SHORTEST} digits or more.",
        "--survey",
        default="the only one",
    ),
]


@app.callback(
    epilog=examples(
        "deniable store check --store sqlite:///collect.db",
        "deniable store export out/ --store sqlite:///collect.db",
        "deniable store backup copy.db --store sqlite:///collect.db",
        "deniable store restore copy.db --store postgresql://user@host/collect",
        "deniable store upgrade --yes --store sqlite:///collect.db",
        "deniable store close-epoch 12 --store sqlite:///collect.db",
        "deniable store reopen-epoch 12 --store sqlite:///collect.db",
        "deniable store trust-clock --yes --store sqlite:///collect.db",
        "deniable store delete-reports --before 2026-10-01 --store sqlite:///collect.db",
        "deniable store delete-survey --survey after-work --store sqlite:///collect.db",
        "deniable store token create --role analyst --store sqlite:///collect.db",
    )
)
def store(ctx: typer.Context) -> None:
    """Check, copy, export and delete what the service keeps.

    Serve makes the store, or restore. Tokens say who may do what at the service.
    """
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


@app.command(epilog=examples("deniable store check --store sqlite:///collect.db"))
def check(
    store: StoreUrl = DEFAULT,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out what reads every row.")] = False,
    as_json: Json = False,
) -> int:
    """Check that sums, ids, reports and hashes agree.

    The exit code is 1 if they do not. Nothing is changed.
    """
    with existing(store, read_only=True) as opened:
        wrong = opened.check(deep=not quick)
        surveys = len(opened.surveys())
    if as_json:
        output.document({"surveys": surveys, "wrong": wrong})
    elif wrong:
        output.write("".join(f"wrong: {sentence}\n" for sentence in wrong))
    else:
        output.write(f"{many(surveys, 'survey')}, nothing is wrong\n")
    return WRONG if wrong else 0


@app.command(epilog=examples("deniable store backup copy.db --store sqlite:///collect.db"))
def backup(
    to: Annotated[Path, argument("FILE", "Where the copy goes.")],
    store: StoreUrl = DEFAULT,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there, whatever it is.")] = False,
) -> None:
    """Make a consistent copy, also while the service runs. It is an SQLite file, whatever the store is."""
    with existing(store, read_only=True) as opened:
        _refuse_loss(to, sqlite_file(store), force)
        opened.backup(to)
    output.write(f"saved: {to}\n")


@app.command(
    epilog=examples(
        "deniable store restore copy.db --store sqlite:///collect.db",
        "deniable store restore copy.db --store postgresql://user@host/collect",
    )
)
def restore(
    copy: Annotated[Path, argument("FILE", "What store backup has saved.")],
    store: StoreUrl = DEFAULT,
) -> None:
    """Make a new store from a copy, all of it or nothing.

    The store may be of either kind. A store that is there is never replaced. Everything is as it was when the copy was
    made: reports that were acknowledged later are not in it.
    """
    if not copy.is_file():
        raise SpecError(f"there is no copy {str(copy)!r}: name a file that deniable store backup has saved")
    restore_store(copy, store)
    with existing(store, read_only=True) as opened:
        known = [opened.epochs(one.fingerprint) for one in opened.surveys()]
    epochs = [epoch for some in known for epoch in some]
    output.facts(
        [
            ("surveys", str(len(known))),
            ("epochs", str(len(epochs))),
            ("submissions", str(sum(epoch.n for epoch in epochs))),
        ]
    )


@app.command(epilog=examples("deniable store upgrade --yes --store sqlite:///collect.db"))
def upgrade(
    store: StoreUrl = DEFAULT,
    yes: Annotated[bool, typer.Option("--yes", help="All processes of the other version have ended.")] = False,
) -> None:
    """Let this version write a store of another version.

    From now on no other version writes it. The same command of an older version goes back to it. Tables of another
    version are refused and not converted.
    """
    with existing(store) as opened:
        before = opened.software()
        if before != __version__ and not yes:
            raise SpecError(
                f"this store is written by deniable {before}: stop its processes and make a copy with deniable store "
                f"backup; then say --yes, and only deniable {__version__} writes it"
            )
        opened.upgrade()
    output.facts([("before", before), ("now", __version__)])


@app.command("close-epoch", epilog=examples("deniable store close-epoch 12 --store sqlite:///collect.db"))
def close_epoch(
    epoch: Annotated[int, argument("EPOCH", "Its number.", min=0)],
    store: StoreUrl = DEFAULT,
    survey: Which = None,
    yes: Annotated[bool, typer.Option("--yes", help="Close an epoch whose reports are still taken.")] = False,
) -> None:
    """Refuse later reports of an epoch and hash its tally. It can be reopened for three days.

    After that the service forgets the ids of its submissions.
    """
    with existing(store) as opened:
        chosen = chosen_in(opened, survey)
        terms = chosen.terms
        if terms is not None and not terms.first <= epoch <= terms.last:
            raise LabelError(f"the epochs of this survey are {terms.first} to {terms.last}")
        before = any(one.epoch == epoch and one.state == CLOSED for one in opened.epochs(chosen.fingerprint))
        if terms is not None and not (yes or before) and epoch >= terms.epochs.at(time.time()) - terms.epochs.late:
            end = write_time(terms.epochs.start(epoch + 1 + terms.epochs.late))
            raise LabelError(
                f"reports of epoch {epoch} are taken until {end}: devices that answer after it is closed have spent "
                "their budget for nothing; if that is meant, say --yes"
            )
        closed = opened.close_epoch(chosen.fingerprint, epoch, time.time() + REOPEN_SECONDS)
        if opened.trouble is not None:
            output.note("warning", f"the epoch is closed, but parts wait here: {opened.trouble}")
    if before:
        output.note("note", f"epoch {epoch} was closed already: nothing has changed")
    output.facts([("epoch", str(closed.epoch)), ("submissions", str(closed.n)), ("sha256", closed.sha256 or "")])


@app.command("reopen-epoch", epilog=examples("deniable store reopen-epoch 12 --store sqlite:///collect.db"))
def reopen_epoch(
    epoch: Annotated[int, argument("EPOCH", "Its number.", min=0)],
    store: StoreUrl = DEFAULT,
    survey: Which = None,
) -> None:
    """Take reports of a closed epoch again.

    For example after a wrong clock. Sums stay, and replays are still recognized.
    """
    with existing(store) as opened:
        chosen = chosen_in(opened, survey)
        terms = chosen.terms
        if terms is not None and epoch < terms.epochs.at(time.time()) - terms.epochs.late:
            end = write_time(terms.epochs.start(epoch + 1 + terms.epochs.late))
            raise LabelError(f"reports of epoch {epoch} were taken until {end}: the service would close it again")
        found = opened.reopen_epoch(chosen.fingerprint, epoch)
    output.facts([("epoch", str(found.epoch)), ("state", found.state), ("submissions", str(found.n))])


@app.command("trust-clock", epilog=examples("deniable store trust-clock --yes --store sqlite:///collect.db"))
def trust_clock(
    store: StoreUrl = DEFAULT,
    yes: Annotated[bool, typer.Option("--yes", help="The time that is shown is right.")] = False,
) -> None:
    """Tell the running service that its clock is right.

    It then closes epochs at once. Without that it watches its clock for an hour after each start and after each jump.
    """
    with existing(store) as opened:
        now, other = time.time(), opened.time().clock
        if other is not None and abs(now - other) > TOLERANCE:
            here, there = write_time(int(now)), write_time(int(other))
            raise LabelError(f"this machine says {here} and the database {there}: set the clock that is wrong first")
        if not yes:
            raise LabelError(f"this machine says {write_time(int(now))}, in UTC: if that is right, say --yes")
        opened.confirm_time(now)
    output.facts([("confirmed", write_time(int(now)))])


Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@app.command(
    "delete-reports",
    epilog=examples(
        "deniable store delete-reports --before 2026-10-01 --store sqlite:///collect.db",
        "deniable store delete-reports --epochs 3..9 --survey after-work --yes --store sqlite:///collect.db",
    ),
)
def delete_reports(
    store: StoreUrl = DEFAULT,
    survey: Which = None,
    epochs: Annotated[
        str | None, option("A..B", "Only these epochs: 3..5, 3.., ..5 or 3.", "--epochs", default="all")
    ] = None,
    before: Annotated[
        str | None, option("DATE", "Only epochs that ended by this date: 2026-10-01, in UTC.", "--before", default=True)
    ] = None,
    yes: Yes = False,
) -> None:
    """Delete the kept reports of closed epochs. Their sums stay.

    The reports of an open epoch are not deleted: a respondent may still have one taken out of the sums. An epoch
    whose reports were deleted cannot be opened again. Copies that were made before still have the reports.
    """
    first, last = (None, None) if epochs is None else read_range(epochs)
    moment = None if before is None else read_moment(before)
    with existing(store) as opened:
        chosen = chosen_in(opened, survey)
        terms = chosen.terms
        if terms is None or (opened.has_sums and terms.retention != "reports"):
            raise LabelError("this survey keeps sums only: there are no reports to delete")
        if moment is not None:
            ended = terms.epochs.at(moment) - 1
            last = ended if last is None else min(last, ended)
        found = [one for one in opened.epochs(chosen.fingerprint) if one.epoch >= (first or 0)]
        going = [one for one in found if (last is None or one.epoch <= last) and not one.dropped]
        for one in going:
            if one.state != CLOSED:
                raise LabelError(
                    f"epoch {one.epoch} is open, and respondents may still have their reports taken out of "
                    f"the sums: give other --epochs, or close it first with deniable store close-epoch {one.epoch}"
                )
        kept = sum(one.n for one in going)
        facts = [("survey", shown(chosen.name)), ("fingerprint", chosen.fingerprint)]
        output.facts([*facts, ("epochs", _listed([one.epoch for one in going])), ("reports", str(kept))])
        if not kept:
            output.write("\nthere is nothing to delete\n")
            _tidy(opened)
            return
        stay = "The sums stay." if opened.has_sums else "There are no sums here: tally them first."
        _ask(yes, f"Delete {many(kept, 'kept report')} for good? {stay}")
        opened.drop_reports(chosen.fingerprint, going[0].epoch, going[-1].epoch)
        _tidy(opened)
    output.write(f"\ndeleted: {many(kept, 'report')}\n")


@app.command(
    "delete-survey", epilog=examples("deniable store delete-survey --survey after-work --store sqlite:///collect.db")
)
def delete_survey(store: StoreUrl = DEFAULT, survey: Which = None, yes: Yes = False) -> None:
    """Delete a survey with all that was collected.

    Its specification, sums, ids and kept reports are deleted. Its fingerprint stays: senders learn that it
    was deleted, and the same survey is not published here again. Copies that were made before still have everything.
    """
    with existing(store) as opened:
        chosen = chosen_in(opened, survey)
        terms, epochs = chosen.terms, opened.epochs(chosen.fingerprint)
        (state,) = [one.state for one in opened.surveys() if one.fingerprint == chosen.fingerprint]
        keeps = terms is not None and terms.retention == "reports"
        output.facts(
            [
                ("survey", shown(chosen.name)),
                ("fingerprint", chosen.fingerprint),
                ("epochs", str(len(epochs))),
                ("submissions", str(sum(one.n for one in epochs))),
                ("reports", str(sum(one.n for one in epochs if keeps and not one.dropped))),
            ]
        )
        if state != CLOSED and terms is not None and not terms.over(time.time()):
            output.note(
                "note",
                "it still takes reports: devices that answer after it is gone have spent their budget for nothing",
            )
        _ask(yes, "Delete all of it for good?")
        opened.delete_survey(chosen.fingerprint)
        _tidy(opened)
    output.write(f"\ndeleted: {chosen.fingerprint}\n")


def _tidy(store: Store) -> None:
    """Remove what is left in the files of the store, or say that it is not removed yet."""
    if not any(store.tidy() for _ in range(8)):
        output.note(
            "note",
            "another process reads the store, so its files still hold what was deleted: they are tidied by a running "
            "service, or when this command is run again",
        )


def _ask(yes: bool, question: str) -> None:
    """Ask for confirmation; without a terminal it must be given beforehand by an option."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise SpecError("this deletes what cannot be restored: if that is meant, say --yes")
    typer.confirm(question, abort=True, err=True)


def _listed(epochs: Sequence[int]) -> str:
    """
    >>> _listed([3, 4, 5, 9]), _listed([7]), _listed([])
    ('3..9 (4)', '7', 'none')
    """
    if len(epochs) < 2:
        return str(epochs[0]) if epochs else "none"
    return f"{epochs[0]}..{epochs[-1]} ({len(epochs)})"


@app.command(
    epilog=examples(
        "deniable store export out --store sqlite:///collect.db",
        "deniable store export week --epochs 3..9 --per-epoch --survey after-work --store sqlite:///collect.db",
        "deniable estimate out/survey.json out/tally.json",
        "deniable store export here --with-ids --store sqlite:///collect.db",
        "deniable tally survey.json here/reports-3.parquet there/reports-3.parquet --dedupe -o tally-3.json",
    )
)
def export(
    to: Annotated[Path, argument("DIRECTORY", "Where the files go.")],
    store: StoreUrl = DEFAULT,
    survey: Which = None,
    epochs: Annotated[
        str | None, option("A..B", "Only these epochs: 3..5, 3.., ..5 or 3.", "--epochs", default="all")
    ] = None,
    per_epoch: Annotated[
        bool, typer.Option("--per-epoch", help="A tally for each epoch, tally-3.json and so on, not one of all.")
    ] = False,
    with_ids: Annotated[
        bool,
        typer.Option("--with-ids", help="Reports of each epoch with ids, by which tally --dedupe counts one once."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what was exported there before.")] = False,
) -> None:
    """Write a survey, its tally and its reports to files.

    The other commands take these files. Reports are written where they are kept. An epoch that is still open may grow
    between one file and the next.
    """
    first, last = (None, None) if epochs is None else read_range(epochs)
    with existing(store, read_only=True) as opened:
        chosen = chosen_in(opened, survey)
        if with_ids:
            _refuse_ids(chosen)
        known = opened.epochs(chosen.fingerprint)
        held = [one.epoch for one in known]
        wanted = [one for one in held if one >= (first or 0) and (last is None or one <= last)]
        if held and not wanted:
            raise LabelError(
                f"there is nothing of epochs {epochs}: the first with reports is {held[0]}, the last {held[-1]}"
            )
        saved = _write_export(opened, chosen, wanted, per_epoch, with_ids, to, force)
    gone = [one.epoch for one in known if one.dropped and one.epoch in wanted]
    if gone:
        output.note("note", f"the reports of epochs {_listed(gone)} were deleted: of these there are sums only")
    if with_ids and any(one.state == OPEN for one in known if one.epoch in wanted):
        output.note(
            "note",
            "anyone who knows the id of a report can delete it while its epoch is open: keep these files private",
        )
    output.facts([("survey", shown(chosen.name)), ("fingerprint", chosen.fingerprint)])
    output.write("\n" + "".join(f"saved: {to / name}\n" for name in saved))


def _refuse_loss(to: Path, store: str | None, force: bool) -> None:
    """A copy never replaces a file of the store, and replaces another file only with --force."""
    if store is not None and any(_same(to, f"{store}{end}") for end in ("", "-wal", "-shm")):
        raise SpecError(f"{str(to)!r} belongs to the store itself: name another file")
    if os.path.lexists(to) and not force:
        raise SpecError(f"{str(to)!r} is there already: name another file, or replace it with --force")


def _same(one: Path, other: str) -> bool:
    return one.exists() and os.path.exists(other) and os.path.samefile(one, other)


# -- export --------------------------------------------------------------------------------------------


def _refuse_ids(survey: Survey) -> None:
    if not _keeps_reports(survey):
        raise SpecError('this survey keeps sums alone (retention "tally"): there are no reports to export, and no ids')
    Layout(survey).check_ids()


def _keeps_reports(survey: Survey) -> bool:
    return survey.terms is not None and survey.terms.retention == "reports"


def _write_export(
    store: Store, survey: Survey, epochs: Sequence[int], per_epoch: bool, with_ids: bool, to: Path, force: bool
) -> list[str]:
    """Write these epochs, in ascending order. Returns the names of the files; only `force` replaces existing ones."""
    before = sorted(path.name for path in to.iterdir() if _OURS.fullmatch(path.name)) if to.is_dir() else []
    if before and not force:
        raise SpecError(
            f"{str(to)!r} holds {', '.join(before[:4])}{', ...' if len(before) > 4 else ''} already: name another "
            "directory, or replace them with --force"
        )
    to.mkdir(parents=True, exist_ok=True)
    survey.save(to / SURVEY)
    saved, fingerprint = [SURVEY], survey.fingerprint
    first, last = (epochs[0], epochs[-1]) if epochs else (0, 0)
    if per_epoch:
        for epoch in epochs:
            saved.append(f"tally-{epoch}.json")
            store.tally(fingerprint, epoch, epoch).save(to / saved[-1])
    else:
        saved.append(TALLY)
        store.tally(fingerprint, first, last).save(to / TALLY)
    if with_ids:
        for epoch in epochs:
            saved.append(f"reports-{epoch}.parquet")
            _save_reports(store, survey, epoch, epoch, to / saved[-1], with_ids)
    elif _keeps_reports(survey):
        saved.append(REPORTS)
        _save_reports(store, survey, first, last, to / REPORTS)
    for name in set(before) - set(saved):
        (to / name).unlink()
    return saved


def _save_reports(store: Store, survey: Survey, first: int, last: int, path: Path, ids: bool = False) -> None:
    parts = SurveyCounter(survey).parts
    with report_writer(path, survey, ids=ids, epoch=first if ids else None) as writer:
        for batch in store.reports(survey.fingerprint, first, last):
            columns = {part.id: batch.answers[:, part.bytes] for part in parts}
            writer.write({ID: batch.ids} | columns if ids else columns)

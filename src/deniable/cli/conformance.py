"""`deniable conformance`: check protocols, those of this package and of others, against what they promise."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from typing import Annotated, Any

import typer

from deniable import conformance as suite
from deniable.cli import output
from deniable.cli.options import Json, argument, new_app
from deniable.cli.output import examples, progress
from deniable.conformance import Duty, Finding
from deniable.errors import SpecError
from deniable.protocols import Protocol, registered
from deniable.surveys import Campaign
from deniable.surveys.campaign import registered_campaigns

app = new_app()

STATISTICAL = ("law", "sampler", "gains")


@app.command(
    epilog=examples(
        "deniable conformance                      everything that is registered, installed packages included",
        "deniable conformance GRR OLH              two protocols by name",
        "deniable conformance my_module:MyProtocol your own, from an installed package or from this directory",
        "deniable conformance --quick --json       without the checks that draw millions of reports",
    )
)
def conformance(
    targets: Annotated[
        list[str] | None,
        argument("TARGET", "Protocols and campaigns: module:Class, or a registered name.", default="everything"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out the checks that draw millions of reports.")] = False,
    as_json: Json = False,
) -> None:
    """Check that the code of protocols keeps their promises.

    The checks run on the small instances that examples() of a protocol gives. The law of the report bytes is enumerated
    by running the real code along every branch. Epsilon, batches, refusals, tallies, estimates, error bars and specs
    are compared with it. The exit code is 0 if everything passes, 1 if a check fails, and 2 if there is nothing to
    check.
    """
    kinds = [_kind(target) for target in targets or []]
    duties = [duty for duty in _duties(kinds) if not (quick and duty.check in STATISTICAL)]
    findings: list[Finding] = []
    with progress("checking", "checks") as advance:
        for duty in duties:
            findings.append(duty.run())
            if advance is not None:
                advance(len(findings), len(findings) / len(duties))
    failed = [finding for finding in findings if finding.status == "failed"]
    if as_json:
        output.document({"passed": not failed, "findings": [asdict(finding) for finding in findings]})
    else:
        _print(findings, quick)
    if failed:
        raise typer.Exit(1)


def _duties(kinds: list[type[Protocol] | type[Campaign]]) -> Iterator[Duty]:
    if not kinds:
        yield from suite.duties()
    for kind in kinds:
        yield from suite.duties(kind)


def _kind(target: str) -> type[Protocol] | type[Campaign]:
    """The class that a target names; raises SpecError if it does not exist, or is neither a protocol nor a campaign."""
    module, colon, name = target.partition(":")
    if not colon:
        known: dict[str, Any] = {**registered(), **registered_campaigns()}
        if target not in known:
            raise SpecError(
                f"there is no protocol {target!r}; there are {', '.join(sorted(known))}. "
                "For a class of your own, write module:Class"
            )
        return known[target]  # type: ignore[no-any-return]
    if "" not in sys.path:
        sys.path.insert(0, "")  # modules in the current directory, like python -m
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise SpecError(f"module {module!r} has no class {name!r}") from None
    except (Exception, SystemExit) as wrong:  # other people's modules may do anything
        raise SpecError(f"{module!r} cannot be imported: {type(wrong).__name__}: {wrong}") from wrong
    if inspect.isclass(found) and issubclass(found, Campaign) and not inspect.isabstract(found):
        return found
    if not (inspect.isclass(found) and issubclass(found, Protocol)):
        raise SpecError(f"{target} is no protocol: it has to derive from deniable.Protocol")
    if inspect.isabstract(found) or not hasattr(found, "name"):
        unwritten = ", ".join(sorted(getattr(found, "__abstractmethods__", ()))) or "name"
        raise SpecError(f"{target} is not finished: it has to write {unwritten}")
    if registered().get(found.name) is not found:
        raise SpecError(f"{target} has no name of its own, so its spec would give another protocol: write name = ...")
    return found


def _print(findings: list[Finding], quick: bool) -> None:
    subjects = dict.fromkeys(finding.subject for finding in findings)
    rows = []
    for subject in subjects:
        own = [finding for finding in findings if finding.subject == subject]
        counts = [sum(finding.status == status for finding in own) for status in ("passed", "waived", "failed")]
        verdict = "FAILED" if counts[2] else "passed"
        rows.append([subject, verdict, *map(str, counts), f"{sum(finding.seconds for finding in own):.1f}"])
    output.table(["instance", "verdict", "passed", "waived", "failed", "seconds"], rows, left=2)
    for status in ("waived", "failed"):
        told = [finding for finding in findings if finding.status == status]
        if told:
            output.write("\n")
            output.heading(f"{status}:")
            for finding in told:
                output.write(f"  {finding.subject}, {finding.check}: {output.shown(finding.reason)}\n")
    failed = sum(finding.status == "failed" for finding in findings)
    left_out = ", statistical checks left out" if quick else ""
    output.write("\n")
    output.write(f"{output.many(len(findings), 'check')}, {failed} failed{left_out}\n")

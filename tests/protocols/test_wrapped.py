"""Protocols that are made of others lose nothing that these say about privacy: every wrapper over every kind."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

import deniable as dn
from deniable.audit.verdict import audit
from deniable.domains import Domain, load_domain
from deniable.errors import DeniableError, SpecError
from deniable.protocols import GRR, LGRR, Attributes, Evolving, PrivateStrata, Protocol, SecureSum, load, registered
from deniable.protocols.law import ANY, Law
from deniable.protocols.traits import Ask, Traits, needs_candidates, offered
from deniable.protocols.wrapped import FACTS, OTHER_TRAITS, OTHERS, TRAITS, check_wrapped, wrapped
from deniable.surveys import Question, Survey

KINDS = sorted(registered())
EXAMPLES = [example for name in KINDS for example in registered()[name].examples()]


def slots(spec: Any) -> Iterator[tuple[dict[str, Any], str | int]]:
    """Where the spec of a protocol stands inside of another one: what holds it, and under which key."""
    entries = spec.items() if isinstance(spec, dict) else enumerate(spec) if isinstance(spec, list) else ()
    for key, value in entries:
        if isinstance(value, dict) and value.get("kind") == "protocol":
            yield spec, key
        else:
            yield from slots(value)


@cache
def of_kind(kind: str, domain: str, epsilon: str) -> tuple[Protocol, ...]:
    """Instances of a kind for these answers, one stage, two stages and streams; none where it is for others."""
    asked, level, found = load_domain(json.loads(domain)), Fraction(epsilon), []
    known = registered()[kind]
    offers = [
        lambda: (one for one in known.examples() if one.domain == asked and one.epsilon == level),
        lambda: offered(known, Ask(asked, level)),
        lambda: offered(known, Ask(asked, level, forever=3 * level)),
        lambda: offered(known, Ask(asked, level, epochs=2, changes=1)),
        lambda: [SecureSum(asked, level, people=100)] if known is SecureSum else [],
    ]
    for offer in offers:
        with suppress(DeniableError):
            found += [one for one in offer() if type(one) is known and one.epsilon == level][:2]
    return tuple(found)


def refilled(wrapper: Protocol, kind: str, all_slots: bool) -> Iterator[Protocol]:
    """The wrapper with its inner protocols replaced by ones of a kind, by its spec; where the spec is accepted."""
    spec = copy.deepcopy(wrapper.spec())
    replaced = 0
    for holder, key in list(slots(spec)):
        written = holder[key]
        made = of_kind(kind, json.dumps(written["domain"], sort_keys=True), written["epsilon"])
        if made and (all_slots or not replaced):
            holder[key], replaced = made[0].spec(), replaced + 1
    if replaced:
        with suppress(DeniableError):
            yield load(spec)


def around(inner: Protocol) -> Iterator[Protocol]:
    """The wrappers that take any protocol, over one; where they accept it."""
    builders = [
        lambda: dn.Stratified({"sex": ["f", "m"]}, inner),
        lambda: Attributes.of({"one": inner}),
        lambda: Attributes.of({"one": inner, "other": inner}, {"one": 1, "other": 2}),
    ]
    for build in builders:
        with suppress(DeniableError):
            yield build()


@cache
def accepted() -> list[Protocol]:
    """Every wrapper over every kind, where it is accepted."""
    wrappers = [one for one in EXAMPLES if any(slots(one.spec()))]
    made = [one for inner in EXAMPLES for one in around(inner)]
    for wrapper in wrappers:
        for kind in KINDS:
            for all_slots in (True, False):
                made += refilled(wrapper, kind, all_slots)
    return list({one.fingerprint: one for one in [*wrappers, *made]}.values())


def named(protocol: Protocol) -> str:
    return f"{protocol.name} of {', '.join(dict.fromkeys(sorted(one.name for one in wrapped(protocol))))}"


def test_many_pairs_are_built() -> None:
    pairs = {named(one) for one in accepted()}
    assert len(pairs) > 60
    assert {one.name for one in accepted()} == {
        *("Attributes", "HeavyHitters", "ItemSets", "KeyValue", "Moments", "PrivateStrata", "Queries", "Ranges"),
        *("Rectangles", "Stratified"),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_who_holds_protocols_in_its_spec_is_known_to_hold_them(kind: str) -> None:
    for example in registered()[kind].examples():
        inside = {one.fingerprint for one in wrapped(example)}
        assert {load(holder[key]).fingerprint for holder, key in slots(example.spec())} <= inside


def test_wrappers_say_all_that_what_they_wrap_says() -> None:
    for made in accepted():
        each, name = list(wrapped(made)), named(made)
        assert all(one.traits.local for one in each) == made.traits.local, name
        assert all(one.traits.fresh for one in each) == made.traits.fresh, name
        assert {one.guarantee.relation for one in each} == {made.guarantee.relation}, name
        assert made.epsilon == made.guarantee.epsilon == max(one.guarantee.epsilon for one in each), name
        assert made.guarantee.delta == max(one.guarantee.delta for one in each), name
        assert made.ratio == max(one.ratio for one in each), name
        assert made.law().kept.ratio == max(one.law().kept.ratio for one in each), name
        assert set(made.law().clear) >= {part for one in each for part in one.law().clear}, name
        assert made.law().clear_bytes >= max(one.law().clear_bytes for one in each), name
        assert (made.law().public is None) == all(one.law().public is None for one in each), name
        assert made.law().kept.reports == max(one.law().kept.reports for one in each), name
        assert bool(made.law().kept.streams()) == any(one.law().kept.streams() for one in each), name
        assert needs_candidates(made) == any(needs_candidates(one) for one in each), name
        assert made.law().kept.noise >= max(one.law().kept.noise for one in each), name
        assert made.law().kept.state_forms >= max(one.law().kept.state_forms for one in each), name
        for epochs in (1, 3, 30):
            assert made.law().kept.spent(epochs) >= max(one.law().kept.spent(epochs) for one in each), name
            assert made.law().kept.linking(epochs) >= max(one.law().kept.linking(epochs) for one in each), name
            for values in (None, 1, 2):
                own, inner = (
                    made.law().kept.lifetime(epochs, values),
                    [one.law().kept.lifetime(epochs, values) for one in each],
                )
                assert own is None or (None not in inner and own >= max(inner)), name  # type: ignore[type-var]


def test_no_wrapper_holds_what_is_not_plain() -> None:
    for made in accepted():
        for one in wrapped(made):
            assert (one.traits.local, one.traits.fresh) == (True, True)
            assert (one.guarantee.relation, one.law().clear) == (ANY, ())


@pytest.mark.slow
@pytest.mark.parametrize("place", range(8))
def test_the_audit_clears_every_pair(place: int) -> None:
    for made in list({named(one): one for one in accepted()}.values())[place::8]:
        found = audit(made, samples=2_000, seed=1)
        assert found.verdict == "cleared", f"{named(made)}: {found}"


def test_stratified_secure_sums_are_refused() -> None:
    """Of a single report of SecureSum the answer can be read: no wrapper may call it local."""
    asked = SecureSum(["yes", "no"], 1, people=100)
    with pytest.raises(SpecError, match="Stratified cannot be made of SecureSum: a report of it keeps no epsilon"):
        dn.Stratified({"sex": ["f", "m"]}, asked)
    with pytest.raises(SpecError, match="Attributes cannot be made of SecureSum"):
        Attributes.of({"smoke": asked})


def test_specs_cannot_hold_them_either() -> None:
    spec = dn.Stratified({"sex": ["f", "m"]}, GRR(["yes", "no"], 1)).spec()
    for inner in (
        SecureSum(["yes", "no"], 1, people=100),
        LGRR(["yes", "no"], 1, 3),
        Evolving(["yes", "no"], 1, 2),
    ):
        with pytest.raises(SpecError, match="cannot be made of"):
            load(spec | {"inner": inner.spec()})


def test_private_strata_refuse_two_stages() -> None:
    spec = PrivateStrata({"sex": ["f", "m"], "smoke": ["yes", "no"]}, 2).spec()
    with pytest.raises(SpecError, match="cannot be made of LGRR: its reports are drawn from a state"):
        load(spec | {"law": LGRR(4, 2, 4).spec()})


class Careless(GRR):
    """A wrapper that somebody wrote without a thought about what it wraps."""

    def __init__(self, inner: Protocol) -> None:
        super().__init__(inner.domain, inner.epsilon)
        object.__setattr__(self, "kept", {"inner": [inner]})


@pytest.mark.parametrize(
    "inner", [SecureSum(["yes", "no"], 1, people=100), LGRR(["yes", "no"], 1, 3), Evolving(["yes", "no"], 1, 2)]
)
def test_a_question_refuses_wrappers_that_forget(inner: Protocol) -> None:
    for lost in (Careless(inner), Careless(Careless(inner))):
        with pytest.raises(SpecError, match=f"GRR cannot be made of {inner.name}"):
            Question("smoke", "Do you smoke?", lost)
    Question("smoke", "Do you smoke?", Careless(GRR(["yes", "no"], 1)))


def test_a_wrapper_that_says_it_itself_is_accepted() -> None:
    class Careful(Careless):
        traits = Traits(local=False)

    shown = SecureSum(["yes", "no"], 1, people=100)
    with pytest.raises(SpecError, match="its guarantee has a delta"):  # the next fact
        check_wrapped(Careful(shown))


def test_a_survey_refuses_reports_that_keep_no_epsilon() -> None:
    class Bare(GRR):
        traits = Traits(local=False)

    with pytest.raises(SpecError, match="whose reports keep no epsilon by themselves"):
        Survey("habits", [Question("smoke", "Do you smoke?", Bare(["yes", "no"], 1))])


NOT_ABOUT_PRIVACY = {
    # required of each kind, or read from its records
    *("domain", "epsilon", "name", "report_bytes", "tally_size", "ratio", "guarantee", "law", "worth"),
    *("realized_epsilon", "channel", "misfit"),
    # say how answers are chosen, read or planned
    *("traits", "examples", "story", "explain", "infer", "draw", "draw_many", "count"),
    *("kernel", "simulate"),
    # transport and identity
    *("parameters", "privatize", "report", "report_encoded", "valid", "tally", "counter", "empty"),
    *("estimate", "spec", "fingerprint"),
}


def test_every_member_is_said_to_be_about_privacy_or_not() -> None:
    """A new member of `Protocol` stands in the list above, or is a field of a record.

    A new field of `Law` or `Traits` without a rule is an error when the package is imported.
    """
    public = {name for name in [*vars(Protocol), *Protocol.__annotations__] if not name.startswith("_")}
    assert public == NOT_ABOUT_PRIVACY
    assert {*FACTS, *OTHERS} == set(Law.defaults)
    assert not set(FACTS) & set(OTHERS)
    assert {*TRAITS, *OTHER_TRAITS} == set(Traits.defaults)
    assert not set(TRAITS) & set(OTHER_TRAITS)


def test_instances_are_found_for_the_answers_of_a_spec() -> None:
    """Else the tests above would be about nothing."""
    numbers: Domain = load_domain({"kind": "integers", "low": 0, "high": 3})
    for name in ("GRR", "LGRR", "Evolving", "SecureSum", "OLH"):
        assert of_kind(name, json.dumps(numbers.spec(), sort_keys=True), "1"), name

"""Terms of a collection: who asks and why, when, how often a device may answer, and what it may reveal in all.

Epochs        the calendar of a survey: epoch e covers [origin + e s, origin + (e + 1) s) seconds, in UTC. A device
              answers at most once per epoch; reports of `early` epochs ahead and `late` epochs behind are accepted,
              for clocks that are wrong and devices that were offline
Longitudinal  "none"     every answer is randomized afresh: at most `epochs` answers of the survey's epsilon each
              "memoize"  the answer to a value is drawn once and repeated: at most `values` different ones are ever
                         drawn, and a device with more changes repeats its first. With values = 1 the reports depend on
                         the first answer alone. With more, equal and unequal reports show when an answer changed and
                         which earlier one came back, so that no epsilon holds over all epochs
              "two-stage" a state of epsilon `forever` is drawn per value and kept, at most `values` of them; each
                         report is drawn afresh from the state of the answer, with epsilon `first`; both are sums over
                         the questions. Beyond the cap the first value's state is used. A device debits `forever` per
                         state, because that is what all reports from it reveal together, however many there are: the
                         epsilon of the first report says nothing about a lifetime. With values = 1 this bounds all
                         that ever leaves, whatever the answers. With more it bounds what somebody learns who knows in
                         which epochs the same state was used; when an answer changed and came back is protected only
                         by the larger `Survey.lifetime_epsilon`, which grows with the epochs. Reports from one state
                         resemble each other: a survey with enough epochs to link them to a device says "linkable"
              "evolving" a device reports one of its changes, by a tree over the epochs (`Evolving`): at most `changes`
                         of them count. It reports in every epoch; the survey's epsilon is debited once, and holds for
                         everything that is ever sent, changes included
Budget        a lifetime epsilon that all surveys of one group share on a device: renewing a survey resets nothing. It
              caps a delta as well, zero unless the survey names one, and it has one relation (`Guarantee`): epsilons
              between any two answers and epsilons between two profiles are about different secrets, so their sum means
              nothing. The spec names the relation only if it is not "any": nearly all surveys are about any two
              answers, and a reader that knows no other refuses the key instead of adding what must not be added
Campaign      the place of the survey among several rounds of one collection, if it is one of them (`campaign`)
Retention     "tally"    counts are kept, reports are not; "reports" keeps them for later analyses. With "tally",
              `delete_days` lets reports wait in files until an engine counts them; they are deleted at most that many
              days after the last report of their epoch could come
Relay         submissions travel sealed to the collector's `key` through somebody else's machine at `address`, which
              passes them on in random order, in batches of at least `batch` of one epoch. Devices send to no other
              address. What waits at the relay when an epoch ends needs one more epoch to arrive, so at least one late
              epoch is accepted, and only sums are kept
Collectors    submissions are split into shares, one for each of these addresses: each sees random numbers, and only the
              sums of all of them together are informative (`SecureSum`). Devices send to no other address. A collector
              keeps shares until the epoch has ended and all of them have summed the same people; then only sums
Results       "private" results are for people with a token of the service. "public" results are read by anybody, at
              `/r/{fingerprint}` of the collector, as soon as `min_reports` answers are counted; the spec names the key
              only then
Times         written "2026-11-01T00:00:00Z", held as seconds since 1970
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from deniable import exact
from deniable.errors import SpecError
from deniable.protocols.law import ANY, RELATIONS
from deniable.specs import as_text, is_fingerprint, keys, short
from deniable.surveys.campaign import Round
from deniable.words import catalogue, duration

FRESH, MEMOIZE, TWO_STAGE, EVOLVING = RULES = ("none", "memoize", "two-stage", "evolving")
RETENTION = ("tally", "reports")
PRIVATE, PUBLIC = RESULTS = ("private", "public")
LAST_EPOCH = 2**32 - 1
_GROUP = re.compile(r"[a-z0-9._-]{1,64}")
_POINT = re.compile(r"B[A-Za-z0-9_-]{85}[AEIMQUYcgkosw048]")
_ADDRESS = re.compile(
    r"(https://[a-z0-9.-]+|http://(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*"
)
_TERMS = ("owner", "purpose", "epochs", "longitudinal", "budget", "opens", "expires", "retention", "min_reports")
_OPTIONAL = ("replaces", "campaign", "delete_days", "relay", "collectors", "results")


@dataclass(frozen=True)
class Epochs:
    """The calendar.

    Args:
        origin: Start of epoch 0, in seconds since 1970.
        seconds: Length of an epoch.
        early: Number of future epochs whose reports are already accepted.
        late: Number of past epochs whose reports are still accepted.

    Raises:
        SpecError: A number is out of range.

    >>> days = Epochs(read_time("2026-11-01T00:00:00Z"), 86_400)
    >>> days.at(read_time("2026-11-03T12:00:00Z")), write_time(days.start(2))
    (2, '2026-11-03T00:00:00Z')
    """

    origin: int
    seconds: int
    early: int = 1
    late: int = 1

    def __post_init__(self) -> None:
        _whole(self.seconds, 1, 100 * 366 * 86_400, "the length of an epoch in seconds")
        _whole(self.early, 0, 1000, "the number of early epochs")
        _whole(self.late, 0, 1000, "the number of late epochs")

    def at(self, moment: float) -> int:
        """The epoch that contains a moment; negative before the origin."""
        return math.floor((moment - self.origin) / self.seconds)

    def start(self, epoch: int) -> int:
        return self.origin + epoch * self.seconds

    def spec(self) -> dict[str, Any]:
        return {"origin": write_time(self.origin), "seconds": self.seconds, "early": self.early, "late": self.late}


@dataclass(frozen=True)
class Longitudinal:
    """How a device's reports relate across epochs.

    Args:
        rule: How reports of different epochs are drawn: "none" for fresh ones, or another of `RULES`.
        epochs: Maximum number of epochs that a device answers.
        values: Maximum number of different values that a device memoizes.
        first: Two stages: the epsilon of one submission.
        forever: Two stages: the epsilon of all submissions that are drawn from the same states.
        linkable: Two stages: whether there are enough epochs to recognize the reports of a device as its own.
        changes: Evolving answers: maximum number of changes of an answer.

    Raises:
        SpecError: The rule is unknown, or a field does not belong to it.
    """

    rule: str = "none"
    epochs: int = 1
    values: int = 1
    first: Fraction | None = None
    forever: Fraction | None = None
    linkable: bool = False
    changes: int | None = None

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise SpecError(f"the longitudinal rule is {' or '.join(RULES)}, not {short(self.rule)}")
        self._settle_levels()
        if not isinstance(self.linkable, bool) or (self.linkable and not self.is_two_stage):
            raise SpecError(f'"linkable" is true or false, and goes with the rule "{TWO_STAGE}" only')
        _whole(self.epochs, 1, LAST_EPOCH, "the number of epochs that a device answers")
        _whole(self.values, 1, 1000, "the number of values that a device memoizes")
        if self.rule == FRESH and self.values != 1:
            raise SpecError(f'"values" goes with the rules "{MEMOIZE}" and "{TWO_STAGE}" only')
        if self.is_evolving and self.values != 1:
            raise SpecError(f'the rule "{EVOLVING}" has "changes", not "values"')
        if (self.changes is not None) != self.is_evolving:
            raise SpecError(f'"changes" goes with the rule "{EVOLVING}", and only with that')
        if self.changes is not None:
            _whole(self.changes, 0, 1000, "the number of changes of an answer")
        if self.is_two_stage and self.epochs == 1:
            raise SpecError(f'two stages are for answers that repeat: give 2 "epochs" or more, or the rule "{FRESH}"')

    def _settle_levels(self) -> None:
        for name in ("first", "forever"):
            given = getattr(self, name)
            if (given is not None) != self.is_two_stage:
                why = "needs" if self.is_two_stage else "has no"
                raise SpecError(f'the longitudinal rule "{self.rule}" {why} "{name}"')
            if given is not None:
                level = exact.fraction(given, f'"{name}"')
                object.__setattr__(self, name, exact.short_number(level, f'"{name}"'))
        if self.first is not None and self.forever is not None and not 0 < self.first < self.forever:
            raise SpecError(
                '"first", the epsilon of one report, is above zero and below "forever", that of all of them'
            )

    @property
    def is_two_stage(self) -> bool:
        return self.rule == TWO_STAGE

    @property
    def is_evolving(self) -> bool:
        return self.rule == EVOLVING

    @property
    def keeps(self) -> bool:
        """Whether a device keeps something of its answers: reports to repeat, or states to draw further ones from."""
        return self.rule != FRESH

    @property
    def repeats(self) -> bool:
        """Whether a device repeats reports exactly as drawn the first time."""
        return self.rule == MEMOIZE

    @property
    def draws(self) -> int:
        """Maximum number of times that a device randomizes an answer: a report, or a state for further reports."""
        return min(self.values, self.epochs) if self.keeps else self.epochs

    @property
    def promise(self) -> tuple[int, str]:
        """Between what the debited epsilon holds, in words; and how weak that is, from 0.

        >>> Longitudinal("two-stage", 30, 2, Fraction(1, 2), Fraction(1)).promise
        (1, 'two streams of answers whose states recur in the same pattern, up to 2 states')
        """
        if self.changes is not None:
            return 0, f"any two streams of answers with at most {self.changes} changes"
        if self.epochs == 1:
            return 0, "any two answers"
        if not self.keeps:
            return 0, "any two streams of answers, because the levels of all reports are added"
        if self.draws == 1:
            why = "all reports come from one state" if self.is_two_stage else "one report is repeated"
            return 0, f"any two streams of answers, because {why}"
        if self.is_two_stage:
            return 1, f"two streams of answers whose states recur in the same pattern, up to {self.draws} states"
        return 2, "two answers that never change; other streams of answers are told apart without bound"

    def spec(self) -> dict[str, Any]:
        content: dict[str, Any] = {"rule": self.rule, "epochs": self.epochs}
        if self.changes is not None:
            content["changes"] = self.changes
        elif self.keeps:
            content["values"] = self.values
        if self.first is not None and self.forever is not None:
            content |= {"first": exact.canonical(self.first), "forever": exact.canonical(self.forever)}
        return content | ({"linkable": True} if self.linkable else {})


@dataclass(frozen=True)
class Budget:
    """Maximum that a device reveals in its lifetime, over all surveys of the group.

    Args:
        group: Name of the group of surveys that share the budget.
        epsilon: Lifetime epsilon of the group.
        delta: The delta of all surveys of the group together.
        relation: The relation for which epsilon holds.

    Raises:
        SpecError: The group's name or a number is out of range.
    """

    group: str
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    relation: str = ANY

    def __post_init__(self) -> None:
        if not isinstance(self.group, str) or not _GROUP.fullmatch(self.group):
            raise SpecError(f"a budget group is 1 to 64 characters of a-z, 0-9, . _ and -, not {short(self.group)}")
        epsilon = exact.fraction(self.epsilon, "the lifetime epsilon")
        object.__setattr__(self, "epsilon", exact.short_number(epsilon, "the lifetime epsilon"))
        if not 0 < self.epsilon <= 10**6:
            raise SpecError("the lifetime epsilon is above zero and at most a million")
        delta = exact.fraction(self.delta, "the lifetime delta")
        object.__setattr__(self, "delta", exact.short_number(delta, "the lifetime delta"))
        if not 0 <= self.delta < 1:
            raise SpecError("the lifetime delta is a probability below 1")
        if self.relation not in RELATIONS:
            raise SpecError(f"the relation of a budget is {' or '.join(RELATIONS)}, not {short(self.relation)}")

    def spec(self) -> dict[str, Any]:
        plain = {"group": self.group, "epsilon": exact.canonical(self.epsilon)}
        named = {} if self.relation == ANY else {"relation": self.relation}
        return plain | ({"delta": exact.canonical(self.delta)} if self.delta else {}) | named


@dataclass(frozen=True)
class Relay:
    """Who mixes sealed submissions before the collector gets them.

    >>> Relay("https://relay.example.org", "B" + 85 * "a" + "A", 1000).host
    'relay.example.org'
    """

    address: str
    key: str
    """The collector's public key: 65 bytes in base64url."""
    batch: int
    """Minimum number of submissions that are passed on together."""

    def __post_init__(self) -> None:
        _address(self.address, "the relay")
        if not isinstance(self.key, str) or not _POINT.fullmatch(self.key):
            raise SpecError(
                "the collector's key is 65 bytes in base64url, 87 characters: deniable relay key writes one"
            )
        _whole(self.batch, 2, 10**7, "the smallest batch of a relay")

    @property
    def host(self) -> str:
        return host(self.address)

    def spec(self) -> dict[str, Any]:
        return {"address": self.address, "key": self.key, "batch": self.batch}


@dataclass(frozen=True)
class Terms:
    """Everything that a published survey promises beyond its questions.

    Args:
        owner: Who collects.
        purpose: Why the answers are collected.
        epochs: The calendar.
        longitudinal: How a device's reports relate across epochs.
        budget: The lifetime budget that answers are debited from.
        opens: When the survey opens, in seconds since 1970.
        expires: When it ends, in seconds since 1970.
        retention: "tally" if only sums are kept, "reports" if reports are.
        min_reports: Estimates of fewer answers than this are not shown.
        replaces: The fingerprint of the survey that this one replaces.
        campaign: The survey's round of a campaign, if it is part of one.
        delete_days: How many days reports may wait in files to be counted; None: they are counted as they come.
        relay: Who mixes submissions on their way; None: they are sent to the collector.
        collectors: Who gets a share of each submission; empty: there is one collector, who gets reports.
        results: "public" if anybody may read the results, "private" if a token is needed.

    Raises:
        SpecError: The terms contradict each other.
    """

    owner: str
    purpose: str
    epochs: Epochs
    longitudinal: Longitudinal
    budget: Budget
    opens: int
    expires: int
    retention: str = "tally"
    min_reports: int = 1
    replaces: str | None = None
    campaign: Round | None = None
    delete_days: int | None = None
    relay: Relay | None = None
    collectors: tuple[str, ...] = ()
    results: str = PRIVATE

    def __post_init__(self) -> None:
        object.__setattr__(self, "owner", as_text(self.owner, "the owner of a survey"))
        object.__setattr__(self, "purpose", as_text(self.purpose, "the purpose of a survey"))
        if not self.opens < self.expires:
            raise SpecError("the survey expires before it opens")
        if self.first < 0 or self.last > LAST_EPOCH:
            raise SpecError("the survey opens before the origin of its epochs, or has too many of them")
        if self.retention not in RETENTION:
            raise SpecError(f"retention is {' or '.join(RETENTION)}, not {short(self.retention)}")
        if self.results not in RESULTS:
            raise SpecError(f"results are {' or '.join(RESULTS)}, not {short(self.results)}")
        if self.delete_days is not None:
            _whole(self.delete_days, 1, 366, '"delete_days"')
            if self.retention != "tally":
                raise SpecError('"delete_days" goes with the retention "tally" only: "reports" are not deleted')
        if self.relay is not None and (self.epochs.late < 1 or self.retention != "tally"):
            raise SpecError(
                "a survey with a relay takes at least one late epoch, in which the last batch arrives, and keeps sums "
                'only: give "late" 1 or more and the retention "tally"'
            )
        if self.collectors:
            self._check_collectors()
        _whole(self.min_reports, 1, 10**12, "the smallest number of answers to show")
        if self.replaces is not None and not is_fingerprint(self.replaces):
            raise SpecError("the survey that this one replaces is named by its fingerprint, 64 hexadecimal digits")

    def _check_collectors(self) -> None:
        object.__setattr__(self, "collectors", read_collectors(self.collectors))
        others = (self.relay, self.campaign, self.delete_days)
        if any(one is not None for one in others) or self.retention != "tally" or self.longitudinal.rule != FRESH:
            raise SpecError(
                "a survey with several collectors adds up fresh answers and keeps sums only: it has no relay, campaign "
                f'or "delete_days", the retention "tally" and the longitudinal rule "{FRESH}"'
            )

    # -- the calendar ------------------------------------------------------------------------------

    @property
    def first(self) -> int:
        return self.epochs.at(self.opens)

    @property
    def last(self) -> int:
        return self.epochs.at(self.expires - 1)

    @property
    def count(self) -> int:
        """The number of epochs."""
        return self.last - self.first + 1

    def refusal(self, epoch: int, now: float) -> str | None:
        """Why a report of this epoch is refused at this moment, in the words of the wire; None if it is accepted."""
        current = self.epochs.at(now)
        if epoch < self.first:
            return "notStarted"
        if epoch > min(self.last, current + self.epochs.early):
            return "epochTooEarly"
        return "epochTooOld" if epoch < current - self.epochs.late else None

    def relay_ends(self, epoch: int) -> int:
        """The moment from which a relay refuses submissions of this epoch: one epoch before the collector does."""
        return self.epochs.start(epoch + self.epochs.late)

    def ends(self, epoch: int) -> int:
        """The moment from which reports of this epoch are refused."""
        return self.epochs.start(epoch + self.epochs.late + 1)

    def over(self, now: float) -> bool:
        """Whether no epoch accepts reports any more."""
        return self.epochs.at(now) - self.epochs.late > self.last

    # -- files -------------------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        return {
            "owner": self.owner,
            "purpose": self.purpose,
            "epochs": self.epochs.spec(),
            "longitudinal": self.longitudinal.spec(),
            "budget": self.budget.spec(),
            "opens": write_time(self.opens),
            "expires": write_time(self.expires),
            "retention": self.retention,
            "min_reports": self.min_reports,
            **({"replaces": self.replaces} if self.replaces else {}),
            **({"campaign": self.campaign.spec()} if self.campaign else {}),
            **({"delete_days": self.delete_days} if self.delete_days is not None else {}),
            **({"relay": self.relay.spec()} if self.relay else {}),
            **({"collectors": list(self.collectors)} if self.collectors else {}),
            **({"results": self.results} if self.results != PRIVATE else {}),
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Terms:
        """The terms of a complete spec."""
        keys(spec, _TERMS, "the survey", optional=_OPTIONAL)
        epochs, rule, budget = (_object(spec, key) for key in ("epochs", "longitudinal", "budget"))
        keys(epochs, ("origin", "seconds", "early", "late"), '"epochs"')
        more = {MEMOIZE: ("values",), TWO_STAGE: ("values", "first", "forever"), EVOLVING: ("changes",)}
        linkable = ("linkable",) if rule.get("rule") == TWO_STAGE else ()
        keys(rule, ("rule", "epochs", *more.get(str(rule.get("rule")), ())), '"longitudinal"', optional=linkable)
        if "linkable" in rule and rule["linkable"] is not True:
            raise SpecError('"linkable" stands in a survey only where it is true')
        keys(budget, ("group", "epsilon"), '"budget"', optional=("delta", "relation"))
        if spec.get("results", PUBLIC) != PUBLIC:
            raise SpecError(f'"results" stands in a survey only where it is "{PUBLIC}"')
        return cls(
            spec["owner"],
            spec["purpose"],
            Epochs(read_time(epochs["origin"]), epochs["seconds"], epochs["early"], epochs["late"]),
            Longitudinal(**rule),
            Budget(**budget),
            read_time(spec["opens"]),
            read_time(spec["expires"]),
            spec["retention"],
            spec["min_reports"],
            spec.get("replaces"),
            Round.from_spec(spec["campaign"]) if "campaign" in spec else None,
            spec.get("delete_days"),
            read_relay(spec["relay"]) if "relay" in spec else None,
            read_collectors(spec["collectors"]) if "collectors" in spec else (),
            spec.get("results", PRIVATE),
        )


def read_relay(spec: Any) -> Relay:
    """The relay of a draft or of a survey."""
    if not isinstance(spec, Mapping):
        raise SpecError('"relay" is an object with "address", "key" and "batch"')
    keys(spec, ("address", "key", "batch"), '"relay"')
    return Relay(**spec)


def read_time(text: Any) -> int:
    """Seconds since 1970 of "2026-11-01T00:00:00Z"."""
    try:
        return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp())
    except (TypeError, ValueError):
        raise SpecError(f'a time is written "2026-11-01T00:00:00Z", in UTC, not {short(text)}') from None


def write_time(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: int) -> str:
    """A duration in words: in the largest unit that divides it.

    >>> span(86_400), span(21_600), span(5400), span(7 * 86_400), span(100)
    ('1 day', '6 hours', '90 minutes', '7 days', '100 seconds')
    """
    return catalogue().text(duration(seconds))


def _object(spec: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    if not isinstance(spec[key], Mapping):
        raise SpecError(f'"{key}" is not an object')
    return spec[key]  # type: ignore[no-any-return]


def read_collectors(spec: Any) -> tuple[str, ...]:
    """The addresses of at least two collectors, each on another machine."""
    if not isinstance(spec, list | tuple) or not 2 <= len(spec) <= 16:
        raise SpecError('"collectors" is a list of 2 to 16 addresses, such as "https://one.example.org"')
    found = tuple(_address(one, "a collector") for one in spec)
    if len(set(found)) < len(found):
        raise SpecError("two collectors have the same address: their operator would see every answer")
    return found


def _address(given: Any, whose: str) -> str:
    address = as_text(given, f"the address of {whose}")
    if not _ADDRESS.fullmatch(address):
        raise SpecError(
            f"the address of {whose} is written https://host, with a port or a path if need be, not "
            f"{short(address)}; http:// is for this machine only"
        )
    return address


def host(address: str) -> str:
    """
    >>> host("https://one.example.org:8443/collect")
    'one.example.org:8443'
    """
    return address.split("/")[2]


def _whole(value: Any, low: int, high: int, what: str) -> None:
    if type(value) is not int or not low <= value <= high:
        raise SpecError(f"{what} is a whole number from {low} to {high}, not {short(value)}")

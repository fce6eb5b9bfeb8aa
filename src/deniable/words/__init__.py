"""The sentences that people read: one file per language, filled with facts by Python and by the browser.

Files       `en.json`, `de.json`, `ar.json`: every sentence by its id, with named parameters in braces. To add a
            language, add a file: its name, direction, plural rule and signs are entries of it
Filled      here, and by `web/pages/words.js` from facts that the browser computes by itself
Said        an English sentence of a result that keeps its id and facts, so that a page says it in another language
Others      a package with a kind of its own brings its texts along in a `Sentence`
Parameters  {name} is a text, a whole number, a `Figure` or a `Word`. {Name} is the same with a capital first letter,
            and {name:form} another form of a word, such as a dative; each language has the forms that it needs
Plurals     an entry with several forms ("one", "few", "other") is chosen by its parameter `n`, by the rule of the
            language's entry "language.plural" in the syntax of CLDR; the browser asks `Intl.PluralRules`
Numbers     grouped and with the decimal sign of the language; dates as the language's entry "date" says
Direction   in a language from right to left, names in other scripts are isolated, so that a line keeps its order
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
DEFAULT = "en"
LANGUAGES = tuple(sorted(path.stem for path in HERE.glob("*.json")))
OTHER = "other"
_PLACE = re.compile(r"\{([A-Za-z][a-z]*)(?::([a-z]+))?\}")
_DIGITS = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_MARKS = re.compile("[\u200e\u200f\u2066-\u2069]")
_RELATION = re.compile(r"([nivft])(?: % (\d+))? (!?=) ([\d,.]+)")
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


class Figure(NamedTuple):
    """A decimal number as a fact: its digits with a point, as it was rounded."""

    digits: str
    grouped: bool = True


class Word(NamedTuple):
    """Another entry of the catalogue, as a parameter of a sentence."""

    id: str
    facts: Mapping[str, Fact]


class Joined(NamedTuple):
    """Several facts after each other; with "and" before the last one if nothing is between them."""

    parts: Sequence[Fact]
    between: str | None = None


class Sentence(NamedTuple):
    """A sentence that is in no catalogue: its text in each language that it has, filled as an entry is."""

    texts: Mapping[str, Entry]
    facts: Mapping[str, Fact]


class Said(str):
    """An English sentence that keeps its id and facts."""

    id: str
    facts: Mapping[str, Fact]


Fact = str | int | Figure | Word | Joined | Sentence
Entry = str | Mapping[str, str]


def word(id: str, **facts: Fact) -> Word:
    return Word(id, facts)


def sentence(texts: Mapping[str, Entry], **facts: Fact) -> Sentence:
    """A sentence of a kind from another package, such as {"en": "It has {n} marks.", "de": "Es hat {n} Marken."}.

    A language that it has no text of gets the first one.
    """
    return Sentence(texts, facts)


def said(id: str, **facts: Fact) -> Said:
    """The English sentence of an id, with its facts.

    >>> sentence = said("duration.day", n=2)
    >>> sentence, sentence.id, catalogue("de").say(sentence.id, **sentence.facts)
    ('2 days', 'duration.day', '2 Tage')
    """
    text = Said(catalogue().say(id, **facts))
    text.id, text.facts = id, facts
    return text


def plain(fact: Fact) -> object:
    """A fact as JSON values, as `web/pages/words.js` takes them."""
    if isinstance(fact, Figure):
        return {"digits": fact.digits, "grouped": fact.grouped}
    if isinstance(fact, Joined):
        return {"parts": [plain(part) for part in fact.parts], "between": fact.between}
    if isinstance(fact, Word):
        return {"id": fact.id, "facts": {name: plain(one) for name, one in fact.facts.items()}}
    return catalogue().text(fact) if isinstance(fact, Sentence) else fact


@dataclass(frozen=True, eq=False)
class Words:
    """The catalogue of one language."""

    language: str
    entries: Mapping[str, Entry]

    def say(self, id: str, **facts: Fact) -> str:
        """The sentence of this id, filled with facts.

        >>> catalogue("en").say("duration.day", n=1), catalogue("en").say("duration.day", n=1000)
        ('1 day', '1,000 days')
        """
        return self._said(Word(id, facts), None)

    def _said(self, wanted: Word, form: str | None) -> str:
        return self._filled(self.entries[wanted.id], wanted.facts, form)

    def _filled(self, entry: Entry, facts: Mapping[str, Fact], form: str | None) -> str:
        def filled(place: re.Match[str]) -> str:
            name, form = place.groups()
            text = self.text(facts[name[0].lower() + name[1:]], form)
            return text[0].upper() + text[1:] if name[0].isupper() else text

        return _PLACE.sub(filled, entry if isinstance(entry, str) else self._chosen(entry, facts.get("n"), form))

    def _chosen(self, entry: Mapping[str, str], n: Fact | None, form: str | None) -> str:
        kind = self.plural(n.digits if isinstance(n, Figure) else str(n))
        keys = [key for one in (kind, OTHER) for key in ([f"{one}:{form}"] if form else []) + [one]]
        return next(entry[key] for key in keys if key in entry)

    def plural(self, digits: str) -> str:
        """The plural category of a number, as it is written; "other" for what is not a number.

        >>> [catalogue("ar").plural(digits) for digits in ("0", "2", "105", "11", "100", "3.5")]
        ['zero', 'two', 'few', 'many', 'other', 'other']
        """
        if not _DIGITS.fullmatch(digits):
            return OTHER
        operands = _operands(digits)
        return next((kind for kind, rule in self._plurals if _holds(rule, operands)), OTHER)

    @cached_property
    def _plurals(self) -> list[tuple[str, str]]:
        rules = (rule.partition(": ") for rule in self._sign("language.plural").split("; "))
        return [(kind, rule) for kind, _, rule in rules]

    def text(self, fact: Fact, form: str | None = None) -> str:
        """A fact in the words and signs of the language.

        >>> english = catalogue("en")
        >>> english.text(Figure("2981.50")), english.text(1234567), english.text(Figure("1234.5", grouped=False))
        ('2,981.50', '1,234,567', '1234.5')
        >>> english.text(Joined(["a", "b", "c"])), english.text(Joined(["a", "b"], "; "))
        ('a, b and c', 'a; b')
        """
        if isinstance(fact, str):
            return self._isolated(fact)
        if isinstance(fact, Word):
            return self._said(fact, form)
        if isinstance(fact, Sentence):
            entry = fact.texts.get(self.language) or next(iter(fact.texts.values()))
            return self._filled(entry, fact.facts, form)
        if isinstance(fact, Joined):
            if fact.between == "":  # one name or quantity
                return self._isolated(
                    "".join(part if isinstance(part, str) else self.text(part) for part in fact.parts)
                )
            return self._joined([self.text(part) for part in fact.parts], fact.between)
        return self._number(fact if isinstance(fact, Figure) else Figure(str(fact)))

    def _isolated(self, text: str) -> str:
        """A text, isolated if it would reorder a sentence from right to left: a name from left to right."""
        if self.entries.get("language.direction") != "rtl" or "\u2068" in text:
            return text
        stands_out = next((unicodedata.bidirectional(one) == "L" for one in text if one.isalpha()), False)
        return f"\u2068{text}\u2069" if stands_out else text

    def _number(self, figure: Figure) -> str:
        whole, _, rest = figure.digits.partition(".")
        if figure.grouped:
            whole = f"{int(whole):,}".replace(",", self._sign("number.group"))
        return f"{whole}{self._sign('number.decimal')}{rest}" if rest else whole

    def _sign(self, id: str) -> str:
        return str(self.entries[id])

    def _joined(self, texts: list[str], between: str | None) -> str:
        if between is not None or len(texts) < 2:
            return (between or "").join(texts)
        return self.say("list.and", first=self._sign("list.comma").join(texts[:-1]), last=texts[-1])

    def date(self, seconds: int) -> str:
        """Seconds since 1970 as a date in UTC, with the time of day unless it is midnight.

        >>> catalogue("en").date(1_793_491_200), catalogue("en").date(1_793_525_400)
        ('2026-11-01', '2026-11-01 09:30')
        """
        moment = datetime.fromtimestamp(seconds, UTC)
        day = self.say("date", year=f"{moment:%Y}", month=f"{moment:%m}", day=f"{moment:%d}")
        return day if seconds % 86_400 == 0 else self.say("date.time", date=day, time=f"{moment:%H:%M}")


def duration(seconds: int) -> Word:
    """A length of time in the largest unit that divides it."""
    size, unit = next(pair for pair in _UNITS if seconds % pair[0] == 0)
    return word(f"duration.{unit}", n=seconds // size)


def _operands(digits: str) -> dict[str, Decimal]:
    """The operands of a plural rule: the absolute value, its whole part, and number and value of its decimals."""
    number = abs(Decimal(digits))
    decimals = f"{number:f}".partition(".")[2]
    seen = {"v": len(decimals), "f": int(decimals or 0), "t": int(decimals.rstrip("0") or 0)}
    return {"n": number, "i": Decimal(int(number))} | {name: Decimal(value) for name, value in seen.items()}


def _holds(rule: str, operands: Mapping[str, Decimal]) -> bool:
    """Whether a rule such as "n % 100 = 3..10" or "i = 1 and v = 0" holds."""
    return any(all(_relates(one, operands) for one in part.split(" and ")) for part in rule.split(" or "))


def _relates(relation: str, operands: Mapping[str, Decimal]) -> bool:
    found = _RELATION.fullmatch(relation)
    if found is None:
        raise ValueError(f"a plural rule is written as in CLDR, such as n % 100 = 3..10, not {relation!r}")
    name, modulus, sign, ranges = found.groups()
    value = operands[name] % int(modulus) if modulus else operands[name]
    ends = [one.partition("..") for one in ranges.split(",")]
    within = value == int(value) and any(int(low) <= value <= int(high or low) for low, _, high in ends)
    return within == (sign == "=")


def without_marks(text: str) -> str:
    """A sentence without the marks that keep its order on a page, for terminals, which print them or ignore them."""
    return _MARKS.sub("", text)


@cache
def catalogue(language: str = DEFAULT) -> Words:
    """The catalogue of a language, by its code such as "en"."""
    if language not in LANGUAGES:
        raise KeyError(language)
    return Words(language, json.loads((HERE / f"{language}.json").read_text(encoding="utf-8")))


def with_names(path: Path) -> bytes:
    """The file of a language as pages read it, with the names of all languages, to choose from."""
    read = {one.stem: json.loads(one.read_text(encoding="utf-8")) for one in sorted(path.parent.glob("*.json"))}
    names = {language: entries["language.name"] for language, entries in read.items()}
    return json.dumps(read[path.stem] | {"languages": names}, ensure_ascii=False, separators=(",", ":")).encode()

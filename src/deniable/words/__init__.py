"""The sentences that people read: one file per language, filled with facts by Python and by the browser.

Files       `en.json`, `de.json`: every sentence by its id, with named parameters in braces
Filled      here, and by `web/pages/words.js` from facts that the browser computes by itself
Said        an English sentence of a result that keeps its id and facts, so that a page says it in another language
Others      a package with a kind of its own brings its texts along in a `Sentence`
Parameters  {name} is a text, a whole number, a `Figure` or a `Word`. {Name} is the same with a capital first letter,
            and {name:form} another form of a word, such as a dative; each language has the forms that it needs
Plurals     an entry with "one" and "other" is chosen by its parameter `n`, by the rule of English and German
Numbers     grouped and with the decimal sign of the language; dates as the language's entry "date" says
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
DEFAULT = "en"
LANGUAGES = tuple(sorted(path.stem for path in HERE.glob("*.json")))
OTHER = "other"
_PLACE = re.compile(r"\{([A-Za-z][a-z]*)(?::([a-z]+))?\}")
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

        return _PLACE.sub(filled, entry if isinstance(entry, str) else _chosen(entry, facts.get("n"), form))

    def text(self, fact: Fact, form: str | None = None) -> str:
        """A fact in the words and signs of the language.

        >>> english = catalogue("en")
        >>> english.text(Figure("2981.50")), english.text(1234567), english.text(Figure("1234.5", grouped=False))
        ('2,981.50', '1,234,567', '1234.5')
        >>> english.text(Joined(["a", "b", "c"])), english.text(Joined(["a", "b"], "; "))
        ('a, b and c', 'a; b')
        """
        if isinstance(fact, str):
            return fact
        if isinstance(fact, Word):
            return self._said(fact, form)
        if isinstance(fact, Sentence):
            entry = fact.texts.get(self.language) or next(iter(fact.texts.values()))
            return self._filled(entry, fact.facts, form)
        if isinstance(fact, Joined):
            return self._joined([self.text(part) for part in fact.parts], fact.between)
        return self._number(fact if isinstance(fact, Figure) else Figure(str(fact)))

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
        return self.say("list.and", first=", ".join(texts[:-1]), last=texts[-1])

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


def _chosen(entry: Mapping[str, str], n: Fact | None, form: str | None) -> str:
    kinds = ("one", OTHER) if (n.digits if isinstance(n, Figure) else n) in (1, "1") else (OTHER,)
    keys = [key for kind in kinds for key in ([f"{kind}:{form}"] if form else []) + [kind]]
    return next(entry[key] for key in keys if key in entry)


@cache
def catalogue(language: str = DEFAULT) -> Words:
    """The catalogue of a language, by its code such as "en"."""
    if language not in LANGUAGES:
        raise KeyError(language)
    return Words(language, json.loads((HERE / f"{language}.json").read_text(encoding="utf-8")))

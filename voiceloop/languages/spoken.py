"""Rules for saying written text in a language: its words for signs and units, and its own rules.

`tts.rules` adds the rules that all languages share. The shared rules take their words from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from voiceloop.languages.numbers import ROMAN, ROMAN_YEAR, Noun, Numbers, roman

Match = re.Match[str]

KNOWN = "–—°×÷±≈≤≥≠√€£¥₹¢₩₽₺₿²³⁻№ºª§∞‰♭→←↔⇒⇔↑↓∆∑∏∫∂∇∈∉∪∩⊂∀∃∝≡¬∧∨∠™©®⧵∣†✶¶ꜝꜜ\u202f"  # noqa: RUF001 - a dash is no minus
"""Signs outside ASCII that a rule puts into words or uses in another way."""
CODE = "\ue000"
"""Character that replaces text that nobody reads aloud, such as code, JSON or a hash."""
LETTER = rf"[^\s\d!-/:-@\[-`{{-~{re.escape(KNOWN)}{CODE}]"
"""Pattern of a character of a word."""
APART = r"(?![^\W_])"
"""Pattern that matches where no letter or digit follows."""
SIGNS = {
    "APART": APART,
    "CODE": CODE,
    "LETTER": LETTER,
    "READ_SIGN": f"[{re.escape(KNOWN[2:])}]",
}
"""Placeholders of patterns that are the same in all languages."""


class Rule(NamedTuple):
    """A pattern, and a function that returns the words for a match. The groups of the pattern are
    numbered from 1."""

    pattern: str
    say: Callable[[Match], str]


Say = Callable[["SpeakingRules", Match], str]


def placed(pattern: str, parts: Mapping[str, str]) -> str:
    """Return `pattern` with `parts` in place of its placeholders, such as {UNIT}."""
    return re.sub(r"\{([A-Z_]+)\}", lambda place: parts[place[1]], pattern)


class Rules(dict[str, tuple[str, Say]]):
    """Rules by name, in the order in which they are tried. Their patterns contain placeholders such
    as {UNIT} for the words of a language."""

    def add(self, pattern: str) -> Callable[[Say], Say]:
        """Return a decorator that adds a rule: `pattern`, and the function that puts a match into
        words."""

        def decorated(say: Say) -> Say:
            self[say.__name__] = (pattern, say)
            return say

        return decorated

    def filled(self, spoken: SpeakingRules, prefix: str = "") -> dict[str, Rule]:
        """Return the rules for a language, with the words of `spoken` in their placeholders. Their
        names begin with `prefix`."""
        parts = placeholders(spoken)
        return {
            prefix + name: Rule(placed(pattern, parts), partial(say, spoken))
            for name, (pattern, say) in self.items()
        }


@dataclass(frozen=True, slots=True, eq=False)
class SpeakingRules:
    """The words and rules for saying written text. Languages differ in exactly these fields."""

    numbers: Numbers
    own: Rules
    """The language's own rules. Of the shared rules, those for addresses and pairs of numbers are
    tried before them, and all others after them."""
    signs: Mapping[str, str]
    """Words for signs that may stand anywhere."""
    address_signs: Mapping[str, str]
    """Words for signs within a link or a mail address."""
    units: Mapping[str, Noun]
    """Units that follow a number, by the way they are written."""
    currencies: Mapping[str, tuple[Noun, Noun]]
    """Nouns for a currency and its hundredth, by sign or code."""
    magnitudes: Mapping[str, Noun]
    """Words between a number and its currency, e.g. `million`, by the way they are written."""
    dotted: Mapping[str, str]
    """Words for abbreviations that are read only with a period, e.g. `Gen`: General."""
    undotted: Mapping[str, str]
    """Words for abbreviations with or without a period, e.g. `Dr`: Doctor."""
    asides: Mapping[str, str]
    """Words for abbreviations with a period, after which a comma is dropped, e.g. `e.g`: for
    example."""
    number_signs: tuple[str, ...]
    """Abbreviations before a number that are said as `number`."""
    calendar: Mapping[str, str]
    """Full names of days and months, by name and abbreviation."""
    ends: tuple[str, ...]
    """Words and signs that may follow the first number of a range, besides units, currencies and
    scales."""
    numbered: Mapping[str, str]
    """Words for abbreviations that are read only before a number, e.g. `p.`: page."""
    near: Mapping[str, str]
    """Words right before a number that tell what it is, with `_` for spaces within: `clock`
    for a time of day, `lasting` for a duration, `part` for one of several, `verse` for a chapter
    and verse, `about` for an estimate, `date` for day and month, `rated` for points, `ratio` for a
    ratio or a score, `version` for a version."""
    after: Mapping[str, str]
    """Words right after a number or a slash, by what they show: `ratio` and `hours` as in `near`,
    `rated` for one of several, `each` for a rate."""
    books: Mapping[str, str]
    """Names of the books of the Bible, by abbreviation, and `1`, `2`, `3` before such a name."""
    functions: Mapping[str, str]
    """Names of functions of mathematics, by the way they are written, e.g. `sin`: sine."""
    dated: Mapping[str, str]
    """Words for abbreviations that are read only before a year, e.g. `b`: born."""
    dials: str
    """Pattern of words before a telephone number, such as `call`."""
    links: str
    """Pattern of words that may stand between `dials` and the number, such as `me` and `at`."""
    short_numbers: frozenset[str]
    """Short telephone numbers, mostly of three digits."""
    codes: str
    """Pattern of words for things that are typed digit by digit, such as `PIN`."""
    tells: str
    """Pattern of words such as `is` between a word of `dials` or `codes` and its number."""
    joins: str
    """Pattern of `and` and `or` between numbers."""
    percent: Noun
    degree: Noun
    scales: Mapping[str, str]
    """Names of temperature scales, by letter."""
    foot: Noun
    inch: Noun
    ampere: Noun
    determiners: str
    """Pattern of words such as `a` before a length that describes a thing: `a 6' wall`."""
    compass: Mapping[str, str]
    number: str
    """The word for `#` before a number."""
    coins: str
    """The word between the two parts of a sum of money: two dollars *and* five cents."""
    per: str
    """The word for the slash in `km/h`."""
    to: str
    """The word between the ends of a range."""
    of: str
    """The word for the slash in `page 3/10`."""
    out_of: str
    """The words for the slash in `a rating of 8/10`."""
    ratio: str
    """The word for the colon in `3:1`."""
    equals: str
    minus: str
    times: str
    by: str
    """The word for the x in `3x4`."""
    fold: str
    """The word for the x in `10x faster`."""
    sharp: str
    """The word for the sign in `C#`."""
    over: str
    """The word for the slash in `13/4`."""
    divided_by: str
    power: str
    less: str
    greater: str
    below: str
    """The words for `<` as a limit: `takes <5 minutes`."""
    above: str
    about: str
    """The word for `~` before a number."""
    point: str
    """The word for a period before a digit."""
    dot: str
    """The word for a period within a name."""
    code: str
    """The sentence that is said in place of code."""
    code_within: str
    """The words that are said in place of code within a sentence."""
    currents: str
    """Pattern of words of electricity, beside which the A of `3 A` is a unit."""
    durations: Mapping[str, str]
    """The units of durations such as `2h 15m`, with spaces between them, by `hour`, `minute` and
    `second`."""
    stage: Mapping[str, str]
    """Patterns of stage directions such as `sighs`, which are not said: `acting` for verbs,
    `sounds` for what is heard, and `acted` for verbs that need an object. With `verbs`, a pattern
    that matches without an ending."""
    patterns: Mapping[str, str]
    """Patterns of the language's own rules, by name. In capitals, the names are placeholders."""
    months: tuple[str, ...] = ()
    """Names of the months, in a language in which the 12 of `24/12` is said as one."""
    openings: tuple[str, ...] = ()
    """Words at the beginning of an answer after which people pause, e.g. `sure` or `of course`."""
    runs_on: str = r"(?!)"
    """Pattern of text that does not end a clause, although there is a mark at its end or after it,
    e.g. the German ordinal `3.`."""


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields of a template, by name."""

    spoken: Any
    match: Match

    def __getitem__(self, name: str) -> Any:
        if name == "end":
            return final(self.match)
        if name in self.match.re.groupindex:
            return _Group(self.spoken, self.match[name])
        return getattr(self.spoken, name)


@dataclass(frozen=True, slots=True)
class _Group:
    """What a group of a pattern matched. The format says how it is put into words."""

    spoken: Any
    text: str

    def __format__(self, how: str) -> str:
        if not how:
            return self.text
        if how.startswith("roman "):
            return format(_Group(self.spoken, roman(self.text)), how.removeprefix("roman "))
        if how in ("one", "many"):
            return getattr(self.spoken.units[self.text], how)
        if put := getattr(self.spoken.numbers, how, None):
            return put(self.text)
        words = getattr(self.spoken, how)
        if isinstance(words, Noun):
            return self.spoken.numbers.count(self.text, words)
        return words[written(self.text)]


def worded(template: str, spoken: SpeakingRules | None, match: Match) -> str:
    """Put `match` into the words of `template`. Its fields are those of `spoken` and the groups of
    the match; `tts/rules.toml` describes them."""
    return template.format_map(_Fields(spoken, match))


def lead(match: Match) -> str:
    """Return the text before the match, at most 100 characters, because rules search all of it."""
    return match.string[max(0, match.start() - 100) : match.start()]


def final(match: Match) -> str:
    """Return a period if the match ends with one and no text follows, because it ends the sentence
    too. Otherwise return an empty string."""
    rest = match.string[match.end() :].lstrip("\"')]")
    return "." if match[0].endswith(".") and not rest.strip() else ""


def alternatives(words: Mapping[str, object] | tuple[str, ...]) -> str:
    """Return a pattern that matches any of `words`, the longest first. A space may follow each
    period within a word."""
    longest_first = sorted(words, key=len, reverse=True)
    return "|".join(re.sub(r"\\\.(?=.)", r"\\.\\s?", re.escape(word)) for word in longest_first)


def written(found: str) -> str:
    """Return the word that a pattern of `alternatives` found in the form `found`: without the space
    after a period."""
    return re.sub(r"\.\s", ".", found)


def placeholders(spoken: SpeakingRules) -> dict[str, str]:
    """Return what stands for the placeholders of patterns in a language: its words."""
    units, per = spoken.units, re.escape(spoken.per)
    marks = [sign for sign in spoken.currencies if not sign.isalpha()]
    books = [name for name in spoken.books if name.isalpha()]
    scripture = (*spoken.near["verse"].split(), *books, *(f"{book}." for book in books))
    return {
        "NUMBER": spoken.numbers.number,
        "CURRENCY": _signs(spoken.currencies),
        "CURRENCY_CODE": _signs(sign for sign in spoken.currencies if sign.isalpha()),
        "MAGNITUDE": alternatives(spoken.magnitudes),
        "UNIT": alternatives(units),
        **{unit.upper(): alternatives(tuple(s.split())) for unit, s in spoken.durations.items()},
        "HOURS": f"{units['h'].many}|{units['h'].one}",
        "MINUTES": f"{units['min'].many}|{units['min'].one}",
        "ROMAN": ROMAN,
        "ROMAN_YEAR": ROMAN_YEAR,
        "TO": spoken.to,
        "JOINS": spoken.joins,
        "PER": rf"(?<=\b{per} )",
        "MEASURED": _behind_number(
            [*units, *marks, *spoken.ends, *(f"°{scale}" for scale in spoken.scales)]
        ),
        "NAMED": "(?:" + "|".join(rf"(?<={name})" for name in spoken.calendar) + ")",
        "CALENDAR": alternatives(spoken.calendar),
        **{kind.upper(): _after(words.split()) for kind, words in spoken.near.items()},
        **{f"{kind.upper()}_NEXT": words.replace(" ", "|") for kind, words in spoken.after.items()},
        "VERSE": _after(scripture),
        "BOOK": "|".join([*books, spoken.near["verse"].title().replace(" ", "|")]),
        "DATED": alternatives(spoken.dated),
        "FUNCTION": alternatives(spoken.functions),
        "DECIMAL": re.escape(spoken.numbers.decimal),
        "NUMBERED": alternatives(spoken.numbered),
        "SCALE": "|".join(spoken.scales),
        "NUMBER_SIGN": alternatives(spoken.number_signs),
        "ASIDE": alternatives(spoken.asides),
        "DOTTED": alternatives(spoken.dotted),
        "UNDOTTED": alternatives(spoken.undotted),
        "SIGN": f"[{re.escape(''.join(spoken.signs))}]",
        "SHARES": "|".join(f"{share}/{100 - share}" for share in range(10, 91)),
        # Shares with a hyphen are no range if the first is the larger.
        "FALLING": "|".join(f"{share}-{100 - share}" for share in range(50, 91)),
        **SIGNS,
        **{name.upper(): pattern for name, pattern in spoken.patterns.items()},
    }


def _signs(signs: Iterable[str]) -> str:
    """Return a pattern of any of `signs`. A sign that begins with a letter must not follow another
    letter, and no letter may follow a sign that ends with a letter."""
    longest_first = sorted(signs, key=len, reverse=True)
    return (
        "(?:"
        + "|".join(
            r"(?<![^\W\d_])" * sign[0].isalpha()
            + re.escape(sign)
            + r"(?![^\W\d_])" * sign[-1].isalpha()
            for sign in longest_first
        )
        + ")"
    )


def _after(words: Iterable[str]) -> str:
    """Return a pattern that matches after any of `words` and a space, in capitals or not."""
    said = (re.escape(word.replace("_", " ")) for word in words)
    return "(?i:" + "|".join(rf"(?<=\b{word} )" for word in said) + ")"


def _behind_number(words: Iterable[str]) -> str:
    """Return a pattern that matches at the end of a number and its unit, e.g. after `5 km`. `words`
    are the units."""
    return (
        "(?:"
        + "|".join(rf"(?<=\d{space}{re.escape(word)})" for word in words for space in ("", " "))
        + ")"
    )

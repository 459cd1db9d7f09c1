"""How a language says what is written: its words for signs and units, and rules of its own.

`tts.rules` adds those rules that all languages share, which take their words from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from voiceloop.languages.numbers import Noun, Numbers

Match = re.Match[str]

KNOWN = "–—°×÷±≈≤≥≠√€£¥₹¢₩₽₺₿²³⁻№ºª§∞‰♭\u202f"  # noqa: RUF001 - a dash is no minus
"""Signs outside ASCII that have words, or a meaning for the rules."""
CODE = "\ue000"
"""Stands in plain text for what was written and nobody says: code, JSON, a hash."""
LETTER = rf"[^\s\d!-/:-@\[-`{{-~{re.escape(KNOWN)}{CODE}]"
"""Pattern of a character that words are made of."""
APART = r"(?![^\W_])"
"""No letter or digit follows."""


class Rule(NamedTuple):
    """A pattern, and the words that its match is said as. Its groups count from 1."""

    pattern: str
    say: Callable[[Match], str]


class Rules(dict[str, Rule]):
    """Rules by name, in the order in which they are tried."""

    def add(self, pattern: str) -> Callable[[Callable[[Match], str]], Callable[[Match], str]]:
        """A decorator: the function that says what `pattern` matches comes after those before."""

        def decorated(say: Callable[[Match], str]) -> Callable[[Match], str]:
            self[f"own{say.__name__}"] = Rule(pattern, say)
            return say

        return decorated


@dataclass(frozen=True, slots=True, eq=False)
class SpeakingRules:
    """The words and rules of a language.

    Its fields are all in which languages differ.
    """

    numbers: Numbers
    own: Rules
    """Tried before the shared ones, but for addresses."""
    signs: Mapping[str, str]
    """Signs that stand anywhere."""
    address_signs: Mapping[str, str]
    """Signs within a link or a mail address."""
    units: Mapping[str, Noun]
    """Behind a number, by how they are written."""
    currencies: Mapping[str, tuple[Noun, Noun]]
    """The money and its hundredth, by sign or code."""
    magnitudes: Mapping[str, Noun]
    """Between a number and its currency."""
    dotted: Mapping[str, str]
    """Abbreviations only where a period follows; there may be spaces behind periods within."""
    undotted: Mapping[str, str]
    """Abbreviations with or without a period."""
    asides: Mapping[str, str]
    """Abbreviations with a period that swallow a comma behind it."""
    number_signs: tuple[str, ...]
    """What stands before a number for `number`."""
    calendar: Mapping[str, str]
    """Days and months by their names and abbreviations, where they are the ends of a range."""
    ends: tuple[str, ...]
    """What else may stand behind the first number of a range."""
    numbered: Mapping[str, str]
    """Abbreviations before a number only."""
    dials: str
    """Pattern of words before a telephone number."""
    links: str
    """Pattern of words that may stand between those and the number."""
    short_numbers: frozenset[str]
    """Telephone numbers of three digits and the like."""
    codes: str
    """Pattern of words for what is typed digit by digit."""
    tells: str
    """Pattern of `is`, where it stands between such a word and its number."""
    joins: str
    """Pattern of `and` and `or` between numbers."""
    percent: Noun
    degree: Noun
    scales: Mapping[str, str]
    """Scales of temperature, by letter."""
    foot: Noun
    inch: Noun
    determiners: str
    """Pattern of words before a length that tells what kind of thing it is: `a 6' wall`."""
    compass: Mapping[str, str]
    number: str
    """The word for `#` before a number."""
    coins: str
    """Between the whole money and its hundredths."""
    per: str
    """In `km/h`."""
    to: str
    """Between the ends of a range."""
    ratio: str
    """In `3:1`."""
    equals: str
    minus: str
    times: str
    by: str
    """In `3x4`."""
    fold: str
    """In `10x faster`."""
    sharp: str
    """In `C#`."""
    over: str
    """In `13/4`."""
    divided_by: str
    power: str
    less: str
    greater: str
    below: str
    """For `<` with nothing before it."""
    above: str
    about: str
    """For `~` before a number."""
    point: str
    """For a period before a digit."""
    dot: str
    """For a period within a name."""
    code: str
    """A sentence in the place of code, which nobody reads aloud."""
    runs_on: str = r"(?!)"
    """Pattern of what never ends a clause, though it ends with a mark."""


def final(match: Match) -> str:
    """The period of an abbreviation where it ends the text too."""
    rest = match.string[match.end() :].lstrip("\"')]")
    return "." if match[0].endswith(".") and not rest.strip() else ""


def alternatives(words: Mapping[str, object] | tuple[str, ...]) -> str:
    """A pattern of any of `words`, the longest first; a space may follow a period within one."""
    longest_first = sorted(words, key=len, reverse=True)
    return "|".join(re.sub(r"\\\.(?=.)", r"\\.\\s?", re.escape(word)) for word in longest_first)


def written(found: str) -> str:
    """The key of what a pattern of `alternatives` has found."""
    return re.sub(r"\.\s", ".", found)

"""Rules that languages share: patterns with placeholders for each language's words and signs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial

from voiceloop.languages.numbers import ROMAN, ROMAN_YEAR, Noun
from voiceloop.languages.spoken import APART, LETTER, Match, Rule, SpeakingRules, alternatives

Say = Callable[[SpeakingRules, Match], str]

_PLACEHOLDER = re.compile(r"\{([A-Z_]+)\}")


class Shared(dict[str, tuple[str, Say]]):
    """Rules by name, in the order in which they are tried. Their patterns contain placeholders such
    as {UNIT} for the words of a language."""

    def add(self, pattern: str) -> Callable[[Say], Say]:
        """Return a decorator that adds a rule: `pattern`, and the function that puts a match into
        words."""

        def decorated(say: Say) -> Say:
            self[say.__name__] = (pattern, say)
            return say

        return decorated

    def filled(self, spoken: SpeakingRules) -> dict[str, Rule]:
        """Return the rules for a language, with the words of `spoken` in their placeholders."""
        own = _placeholders(spoken)
        return {
            name: Rule(_PLACEHOLDER.sub(lambda place: own[place[1]], pattern), partial(say, spoken))
            for name, (pattern, say) in self.items()
        }


def _placeholders(spoken: SpeakingRules) -> dict[str, str]:
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
        "HOUR": _symbols(spoken, units["h"]),
        "MINUTE": _symbols(spoken, units["min"]),
        "SECOND": _symbols(spoken, units["s"]),
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
        "SIGNS": re.escape("".join(spoken.signs)),
        "APART": APART,
        "LETTER": LETTER,
    }


def _symbols(spoken: SpeakingRules, noun: Noun) -> str:
    return alternatives(tuple(unit for unit, name in spoken.units.items() if name is noun))


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

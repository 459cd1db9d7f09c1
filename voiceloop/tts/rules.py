"""The rules for saying written text: each is a pattern, and a function that puts a match into
words.

Order matters: at each place the first rule that matches is used. The last rule matches any
character and says nothing. A rule may look at the text around its match, but replaces only the
match. If a rule returns only marks, they are added to the word before. A line break adds a period,
unless the word before has a mark. This module has the rules for addresses, words and marks;
`figures` has the rules for numbers. The languages' own words and rules come from `languages`. This
module does not know where the text comes from.
"""

# ruff: noqa: RUF001 - the look-alikes among the signs are meant

from __future__ import annotations

import re
from collections.abc import Callable

from voiceloop.languages import Language
from voiceloop.languages.spoken import (
    CODE,
    KNOWN,
    LETTER,
    Match,
    Rule,
    SpeakingRules,
    final,
    lead,
    written,
)
from voiceloop.tts.figures import FIGURES, PAIRS
from voiceloop.tts.shared import Shared

MARKS = ",;:.!?"
"""Marks from the weakest to the strongest. Of several in a row, only the strongest is kept."""

_ADDRESSES = Shared()
_WORDS = Shared()
_PLAIN: dict[str, Rule] = {}
"""Rules that need no words of a language."""


def rules(language: Language) -> dict[str, Rule]:
    """Return the rules of `language` by name, in the order in which they are tried."""
    spoken = language.spoken
    if spoken is None:
        return {"_place": Rule(_LINK, _place), "_as_written": _AS_WRITTEN, **_PLAIN}
    own = spoken.own
    first, then = _ADDRESSES.filled(spoken) | PAIRS.filled(spoken), FIGURES.filled(spoken)
    return {**first, **own, **then, **_WORDS.filled(spoken), **_PLAIN}


def _plain(pattern: str) -> Callable[[Callable[[Match], str]], Callable[[Match], str]]:
    def add(say: Callable[[Match], str]) -> Callable[[Match], str]:
        _PLAIN[say.__name__] = Rule(pattern.replace("{LETTER}", LETTER), say)
        return say

    return add


# ---- addresses, the rules that are tried first


@_ADDRESSES.add(CODE)
def _code(spoken: SpeakingRules, match: Match) -> str:
    within = re.search(r"\w ?\Z", lead(match))
    return spoken.code_within if within else spoken.code


@_ADDRESSES.add(r"[^\s@<>\"(),;:\[\]]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
def _email(spoken: SpeakingRules, match: Match) -> str:
    return _spelled(spoken, match[0])


_LINK = (
    r"(?:(?i:[a-z][a-z0-9+.-]{1,20}://)|www\.)[^\s<>\"]*[^\s<>\".,;:!?)\]}'*_]"
    r"|(?<![\w.-])(?:localhost(?=:\d)|(?:[a-z0-9-]{1,63}\.){1,9}(?:com|org|net|edu|gov|io|ai|dev|app|co\.uk|eu|de|at|ch|es|mx|[a-z]{2,6}(?=/\w)))"
    r"(?![\w-])(?::\d{2,5}(?!\d))?(?:/[^\s<>\"]*[^\s<>\".,;:!?)\]}'*_])?"
)


@_ADDRESSES.add(_LINK)
def _link(spoken: SpeakingRules, match: Match) -> str:
    return _spelled(spoken, _place(match))


def _place(match: Match) -> str:
    """Return the part of a web address that is said. If the address begins with `www.` or a scheme
    such as `https://`, only its host is said; otherwise host and path."""
    scheme, _, address = match[0].rpartition("://")
    whole = not scheme and not address.startswith("www.")
    address = re.sub(r"^[^/?#]*@|^www\.|[?#].*$|/+$", "", address, flags=re.DOTALL)
    return address if whole else re.sub(r"^([^/]+?)(?:/|:\d).*", r"\1", address)


_BYTE = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"


@_ADDRESSES.add(rf"(?<![\w.])(?:{_BYTE}\.){{3}}{_BYTE}(?![\w]|\.\d)(?::\d+|/\d+)?")
def _machine(spoken: SpeakingRules, match: Match) -> str:
    return _spelled(spoken, match[0])


_HEX = "[0-9A-Fa-f]"
_GROUPS = rf"{_HEX}{{1,4}}(?::{_HEX}{{1,4}}){{0,6}}"


@_ADDRESSES.add(
    rf"(?<![\w:-])(?:{_HEX}{{2}}:){{5}}{_HEX}{{2}}(?![\w:-])"  # a network card
    rf"|(?<![\w:-])(?:{_HEX}{{2}}-){{5}}{_HEX}{{2}}(?![\w:-])"
    rf"|(?<![\w:.])(?=[A-Fa-f:]{{0,39}}\d)(?:(?:{_HEX}{{1,4}}:){{7}}{_HEX}{{1,4}}"  # IPv6
    rf"|{_GROUPS}::(?:{_GROUPS})?|::{_GROUPS})(?:/\d{{1,3}})?(?![\w:])"
    rf"|(?<!\w)#(?=\d{{0,7}}[A-Fa-f])"
    rf"(?:(?=[A-Fa-f]{{0,7}}\d)(?:{_HEX}{{6}}|{_HEX}{{3}}|{_HEX}{{8}})|[A-F]{{6}}|f{{3}}|f{{6}})(?!\w)"
    rf"|(?<!\w)0(?:x{_HEX}{{1,16}}|b[01]{{1,32}}|o[0-7]{{1,16}})(?!\w)"
    rf"|(?<![\w.,-])(?=\w{{0,10}}\d[a-f])(?!\d+e\d+\b)[\da-f]{{7,12}}(?![\w-])"
    rf"|\b[A-Z]{{2}}\d\d(?: ?[A-Z\d]{{4}}){{3,7}}(?: ?[A-Z\d]{{1,3}})?(?!\w)"  # an IBAN
    rf"|(?<![\w-])(?=\w{{0,20}}(?:\d{{4}}|[A-Z]{{3}}))(?=[A-Z]*\d+[A-Z]+\d)[A-Z\d]{{8,24}}(?![\w-])"
)
def _hexadecimal(spoken: SpeakingRules, match: Match) -> str:
    """Spell a number in hexadecimal. The pairs of a network card become a list."""
    signs = dict(spoken.address_signs) | ({} if "::" in match[0] else dict.fromkeys(":- ", ","))
    said = (
        spoken.numbers.words(int(sign)) if sign.isdecimal() else signs.get(sign, sign.upper())
        for sign in match[0].removeprefix("#")
    )
    return " ".join(said).replace(" ,", ",")


_NAME = r"[\w.+~-]{1,64}"


@_ADDRESSES.add(
    rf"(?<![\w/.)\]\[<])(?:~|\.\.?)?(?:/(?=[\w.]){_NAME}){{1,20}}(?<=[\w])/?(?!\w)"
    rf"|(?<![\w/.])(?=[A-Za-z_])(?:{_NAME}/){{1,20}}[\w-]{{1,64}}\.[a-z]\w{{0,4}}(?![\w/])"
    rf"|\b[A-Z]:(?:[⧵](?:{_NAME})?){{1,20}}(?<=[\w⧵])"
)
def _path(spoken: SpeakingRules, match: Match) -> str:
    return _spelled(spoken, match[0])


@_ADDRESSES.add(
    r"(?:(?<=[\w,]) |(?<![^\s(\"'/]))--(?=[a-z])"
    r"|(?:(?<=[^\W\d][\w,] )|(?<=-\w )|(?<=[(\"'])(?<!\w\())"
    r"-(?=(?:(?![aeouy] [a-zà-ÿ])[A-Za-z]|[b-df-hj-np-tv-xz]{2,3})(?![\w'-]))"
)
def _flag(spoken: SpeakingRules, match: Match) -> str:
    return " ".join([spoken.address_signs["-"]] * len(match[0].strip()))


def _spelled(spoken: SpeakingRules, address: str) -> str:
    numbers, said = spoken.numbers, list[str]()
    for part in re.findall(rf"{LETTER}+|\d+|.", address):
        if part.isdecimal():
            said.append(numbers.integer(part) if len(part) <= 2 else numbers.digits(part))
        else:
            said.append(spoken.address_signs.get(part, part if part.isalnum() else ""))
    return " ".join(said)


# ---- words


@_WORDS.add(r"\b({ASIDE})\.,?")
def _aside(spoken: SpeakingRules, match: Match) -> str:
    return spoken.asides[written(match[1])] + final(match)


@_WORDS.add(r"\b({DOTTED})\.|(?<!&)(?<!M and )\b({UNDOTTED}){APART}\.?")
def _abbreviation(spoken: SpeakingRules, match: Match) -> str:
    if match[1]:
        return spoken.dotted[written(match[1])] + final(match)
    return spoken.undotted[written(match[2])] + final(match)


@_WORDS.add(r"(?<![^\W_])([A-G])#(?!\w)")
def _sharp(spoken: SpeakingRules, match: Match) -> str:
    return f"{match[1]} {spoken.sharp}"


@_WORDS.add(r"[{SIGNS}]")
def _sign(spoken: SpeakingRules, match: Match) -> str:
    return spoken.signs[match[0]]


@_WORDS.add(
    r"(?<![^\W_])\.(?=[a-zA-Z])|(?<=\w)\.(?=[a-z\d])|(?<=[A-Z])\.(?=(?:NET|MD|TXT|PDF|CSV)\b)"
)
def _dot(spoken: SpeakingRules, match: Match) -> str:
    return spoken.dot


def _as_written(match: Match) -> str:
    return match[0]


_AS_WRITTEN = Rule(
    rf"[^\W_]+(?:['.,:@/_-]+[^\W_]+)*|[%&@#+=<>$*/^~{re.escape(KNOWN[2:])}]", _as_written
)
"""The rule for a language whose `spoken` is None: text stays as it is written."""


@_plain(r"(?<![\w.])(?:{LETTER}\.){2,}")
def _initialism(match: Match) -> str:
    return match[0].replace(".", " ").upper().strip() + final(match)


@_plain(r"(?<![\w.'])([A-HJ-Z])\.(?=\s+[A-Z])")
def _initial(match: Match) -> str:
    return match[1]


@_plain(r"{LETTER}+(?:['-]+{LETTER}+)*")
def _word(match: Match) -> str:
    return match[0]


# ---- marks


@_plain(r"[.,;:!?]+")
def _mark(match: Match) -> str:
    mark = max(match[0], key=MARKS.index)
    # Several dots before a small letter are a pause. Elsewhere they end the sentence.
    goes_on = re.match(r"\s+([^\W\d_])", match.string[match.end() :])
    trails = mark == "." and len(match[0]) > 1 and goes_on and goes_on[1].islower()
    return "," if trails else mark


@_plain(r"\s*(?:--+|[–—])\s*|\s+-(?=\s|$)|(?<=\s)[(\[{]|[)\]}](?=\s+\w)|\|")
def _pause(match: Match) -> str:
    return ","


@_plain(r"\s*\n\s*")
def _line(match: Match) -> str:
    return "\n"


@_plain(r"(?s:.)")
def _silent(match: Match) -> str:
    return ""

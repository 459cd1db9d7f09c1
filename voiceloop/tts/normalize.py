"""Text normalisation: puts numbers, signs, abbreviations, addresses, units and times into words.

The plain text is read once, so nothing is expanded twice. At each place the first of the `rules`
that matches replaces a piece of the text. Every spoken word records how much of the written text
has been said once the word has been said. A piece that becomes several words counts as said after
the last of them. `clauses` never cuts inside a piece, so a clause has the same spoken form alone
and within the whole reply.

Each rule is a pattern, and a function that puts a match into words. Order matters. The last rule
matches any character and says nothing. A rule may look at the text around its match, but replaces
only the match. If a rule returns only marks, they are added to the word before. A line break adds a
period, unless the word before has a mark. Here are the rules for addresses, words and marks;
`figures` has those for numbers. The languages' own words and rules come from `languages`. This
module knows nothing of tokens and synthesizers.
"""

# ruff: noqa: RUF001 - the look-alikes among the signs are meant

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from voiceloop.languages import Language
from voiceloop.languages.spoken import (
    CODE,
    KNOWN,
    LETTER,
    Match,
    Rule,
    Rules,
    SpeakingRules,
    final,
    lead,
    written,
)
from voiceloop.tts.figures import FIGURES, PAIRS
from voiceloop.tts.markup import PlainText, plain


class SaidWord(NamedTuple):
    """A spoken word with the punctuation that follows it."""

    start: int
    """Index of its first character in the spoken text."""
    end: int
    """Index of the character after its last one in the spoken text."""
    written: int
    """Number of written characters that have been said once this word has been said."""


class SpokenText(NamedTuple):
    """The spoken form of a text."""

    text: str
    """Words separated by single spaces, with marks only at the ends of words."""
    words: list[SaidWord]
    code: bool = False
    """True if the text contains code, which is mentioned but not read."""


def normalize(
    written: str, language: Language, *, before: str = "", code_said: bool = False
) -> SpokenText:
    """Return the spoken form of `written`, a clause of a reply in `language`; empty if nothing can
    be said.

    `before` is the text before the clause; some rules depend on it. The first code in the clause is
    replaced by a sentence that mentions the code, and all other code is left out. With `code_said`,
    all code is left out.
    """
    return _join(plain(before).text, plain(written), _compiled(language), code_said)


_Compiled = tuple[re.Pattern[str], dict[str, tuple[re.Pattern[str], Callable[[Match], str]]]]


@cache
def _compiled(language: Language) -> _Compiled:
    """Compile a pattern that finds the first matching rule, and the pattern of each rule alone."""
    found = rules(language)
    first = re.compile("|".join(f"(?P<{name}>{rule.pattern})" for name, rule in found.items()))
    return first, {name: (re.compile(rule.pattern), rule.say) for name, rule in found.items()}


def _join(context: str, source: PlainText, compiled: _Compiled, code_said: bool) -> SpokenText:
    first, alone = compiled
    words, written = list[str](), list[int]()
    text, skipped = context + source.text, len(context)
    for found in first.finditer(text, skipped):
        # Groups are numbered within each rule, so the rule is matched again, alone.
        pattern, say = alone[str(found.lastgroup)]
        match = pattern.match(text, found.start())
        assert match is not None
        start = found.start() - skipped
        before = source.at[start - 1] if start else 0
        end = source.at[found.end() - skipped - 1]
        silent = match[0] == CODE and code_said
        code_said = code_said or match[0] == CODE
        pieces = [] if silent else re.findall(r"\n|[^\s]+", say(match))
        for piece in pieces:
            if piece.strip(MARKS + "\n"):
                words.append(piece)
                written.append(before)
            elif words:
                _mark_word(words, piece)
        spaced = match[0].isspace() or text[found.start() - 1].isspace()
        if words and (pieces or not spaced):
            # Marks and closing quotes count with the word before them.
            written[-1] = end
    return _spoken_text(words, written, CODE in source.text)


def _spoken_text(words: list[str], written: list[int], code: bool) -> SpokenText:
    text, said = "", list[SaidWord]()
    for word, count in zip(words, written, strict=True):
        start = len(text) + bool(text)
        text = f"{text} {word}" if text else word
        said.append(SaidWord(start, len(text), count))
    return SpokenText(text, said, code)


def _mark_word(words: list[str], mark: str) -> None:
    """Add `mark` to the last word, or let it replace a weaker mark there. A line break adds a
    period if the word has no mark."""
    word = words[-1]
    if word[-1] not in MARKS:
        words[-1] += "." if mark == "\n" else mark
    elif mark != "\n" and MARKS.index(mark) > MARKS.index(word[-1]):
        words[-1] = word[:-1] + mark


MARKS = ",;:.!?"
"""Marks from the weakest to the strongest. Of several in a row, only the strongest is kept."""

_ADDRESSES = Rules()
_WORDS = Rules()
_PLAIN: dict[str, Rule] = {}
"""Rules that need no words of a language."""


def rules(language: Language) -> dict[str, Rule]:
    """Return the rules of `language` by name, in the order in which they are tried."""
    spoken = language.spoken
    if spoken is None:
        return {"_place": Rule(_LINK, _place), "_as_written": _AS_WRITTEN, **_PLAIN}
    found = _ADDRESSES.filled(spoken) | PAIRS.filled(spoken) | spoken.own.filled(spoken, "own")
    return found | FIGURES.filled(spoken) | _WORDS.filled(spoken) | _PLAIN


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

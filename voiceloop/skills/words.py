"""Words in a form that can be compared: lower case, no accents or marks, and numbers in digits.

The same words get the same form, however they were written. A number is found by comparing the
words with those that the language's `Numbers` gives for each number under a thousand.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from voiceloop.languages.numbers import Numbers

LONGEST_NUMBER = 7
"""Maximum number of words in a number under a thousand. `nine hundred and ninety nine` has five."""
_TOKEN = re.compile(
    r"\d+(?:st|nd|rd|th)\b|\d+(?:[.,:]\d+)*|\b[ap]\.\s?m\b\.?|[^\W\d_]+(?:['’][^\W\d_]+)*|[-+*/^%°√×÷·−–²³]",  # noqa: RUF001
    re.IGNORECASE,
)
_SAME = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "ß": "ss"})  # noqa: RUF001
_POWERS = {"²": "2", "³": "3"}
_MINUS = re.compile(r"[-−–]\s*[\d√]")  # noqa: RUF001


class RequestWord(NamedTuple):
    """A word, the index of its first character in the text, and the index after its last
    character."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class NumberWords:
    """The words for numbers in a language, in addition to those that `numbers` gives."""

    numbers: Numbers
    variants: Sequence[tuple[str, str]]
    """Other ways to say numbers: pairs of a regular expression and its replacement. They are
    applied to the words of a number, joined without spaces."""
    more: Mapping[str, int]
    """Further words for numbers and their values, e.g. `hundred`: 100."""
    scales: Mapping[str, int]
    """Words that multiply the number before them, and their factors, e.g. `thousand`: 1000."""
    joins: frozenset[str]
    """Words that may stand between a thousand and the rest, as in two thousand *and* five."""
    point: frozenset[str]
    """Words between a whole number and its decimals, e.g. `point`."""
    glued: bool = False
    """True if a number is written as one word with its thousands, e.g. `zweitausenddrei`."""


def plain(word: str) -> str:
    """Return a word in lower case, without accents, apostrophes and periods."""
    parts = unicodedata.normalize("NFD", word.lower().translate(_SAME))
    return "".join(char for char in parts if char not in "'’." and not unicodedata.combining(char))  # noqa: RUF001


def spelled(text: str) -> list[RequestWord]:
    """Split `text` into words, numbers and signs. A hyphen is a sign only before a number."""
    found = list[RequestWord]()
    for token in _TOKEN.finditer(text):
        if power := _POWERS.get(token[0]):
            found += [RequestWord(part, token.start(), token.end()) for part in ("^", power)]
            continue
        if token[0] in "-−–" and not _MINUS.match(text, token.start()):  # noqa: RUF001
            continue
        whole = token[0][0].isdigit()
        found.append(
            RequestWord(token[0].lower() if whole else plain(token[0]), token.start(), token.end())
        )
    return found


def parted(words: Sequence[RequestWord], seams: str) -> list[RequestWord]:
    """Take compounds apart at the places that the pattern `seams` matches."""
    found = list[RequestWord]()
    for word in words:
        cuts = [0, *(seam.start() for seam in re.finditer(seams, word.text)), len(word.text)]
        # A letter may be longer in `word.text` than in the text, never in the part after the seam.
        places = [word.start, *(word.end - len(word.text) + cut for cut in cuts[1:])]
        for (at, end), (start, stop) in zip(pairwise(cuts), pairwise(places), strict=True):
            found.append(RequestWord(word.text[at:end], start, stop))
    return found


def counted(words: Sequence[RequestWord], how: NumberWords) -> list[RequestWord]:
    """Write the numbers among words in digits: `two hundred and five point one` -> `205.1`."""
    found, at = list[RequestWord](), 0
    words = [part for word in words for part in _unglued(word, how)]
    while at < len(words):
        number, end = _number(words, at, how)
        if number is None and (digits := _digits(words[at])):
            number, end = int(digits), at + 1
        if number is None:
            found.append(words[at])
            at += 1
            continue
        said, end = _with_decimals(number, words, end, how)
        written = words[at].text if end == at + 1 and words[at].text[0].isdigit() else said
        found.append(RequestWord(written, words[at].start, words[end - 1].end))
        at = end
    return found


def value(word: str, numbers: Numbers) -> Fraction | None:
    """Return the number that `word` writes in digits, with the marks of `numbers`, e.g. `1,234.5`
    in English. Return None if `word` is no number in digits."""
    if not re.fullmatch(r"\d+(?:[.,]\d+)*", word):
        return None
    group = re.escape(numbers.group)
    if re.fullmatch(rf"\d{{1,3}}(?:{group}\d{{3}})+(?:{re.escape(numbers.decimal)}\d+)?", word):
        word = word.replace(numbers.group, "")
    word = word.replace(",", ".")
    return Fraction(word) if word.count(".") < 2 else None


def _unglued(word: RequestWord, how: NumberWords) -> list[RequestWord]:
    """Split a number that is written as one word: `zweitausenddrei` -> zwei, tausend, drei. All
    parts get the position of `word`. Any other word is returned alone."""
    if not how.glued:
        return [word]
    for scale in how.scales:
        before, found, after = word.text.partition(scale)
        known = all(not part or part in table(how) or part == "ein" for part in (before, after))
        if found and known and before + after:
            parts = ("eins" if before == "ein" else before, scale, after)
            return [word._replace(text=part) for part in parts if part]
    return [word]


def _number(words: Sequence[RequestWord], at: int, how: NumberWords) -> tuple[int | None, int]:
    """Read the number whose words begin at index `at`. Return the number and the index after its
    last word. If no number is there, return None and `at`."""
    total, end = 0, at
    while True:
        part, after = _small(words, end, how)
        scale = words[after].text if after < len(words) else ""
        if scale in how.scales and (part is not None or end == at):
            total, end = total + (1 if part is None else part) * how.scales[scale], after + 1
            if end < len(words) and words[end].text in how.joins:
                end += _small(words, end + 1, how)[0] is not None
            continue
        if part is not None:
            total, end = total + part, after
        return (None, at) if end == at else (total, end)


def _small(words: Sequence[RequestWord], at: int, how: NumberWords) -> tuple[int | None, int]:
    """Read a number under a thousand at index `at`. Return the number and the index after its last
    word. If no number is there, return None and `at`. Digits count only if a word such as
    `thousand` follows."""
    if at < len(words) and (digits := _digits(words[at])):
        scaled = at + 1 < len(words) and words[at + 1].text in how.scales
        return (int(digits), at + 1) if scaled else (None, at)
    known = table(how)
    for length in range(min(LONGEST_NUMBER, len(words) - at), 0, -1):
        joined = "".join(word.text for word in words[at : at + length])
        if joined in known:
            return known[joined], at + length
    return None, at


def _digits(word: RequestWord) -> str:
    return word.text if word.text.isdecimal() else ""


def _with_decimals(
    number: int, words: Sequence[RequestWord], at: int, how: NumberWords
) -> tuple[str, int]:
    """Read the decimals of `number`, if `words[at]` is a word such as `point`. Return the number in
    digits with its decimals, and the index after the last word that was read."""
    digits, end = "", at + 1
    while at < end < len(words) and words[at].text in how.point:
        part, after = _small(words, end, how)
        if part is None and (written := _digits(words[end])):
            part, after = int(written), end + 1
        if part is None:
            break
        digits, end = f"{digits}{part}", after
    return (f"{number}{how.numbers.decimal}{digits}", end) if digits else (str(number), at)


@cache
def table(how: NumberWords) -> Mapping[str, int]:
    """Return the numbers under a thousand by their words without spaces, e.g. `twentyone`: 21."""
    found = dict[str, int]()
    for number in range(1000):
        said = "".join(word.text for word in spelled(how.numbers.words(number)))
        found[said] = number
        for pattern, other in how.variants:
            found.setdefault(re.sub(pattern, other, said), number)
    return {**found, **how.more}

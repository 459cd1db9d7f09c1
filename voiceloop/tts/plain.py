"""Written text without its markup: the characters to say, and where each of them came from.

Markup, emoji and invisible characters are removed; a mark replaces code. The many forms of quotes,
spaces, digits and letters become one. This module does not know how anything is pronounced.
"""

# ruff: noqa: RUF001 - the look-alikes are the subject

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from voiceloop.languages.spoken import CODE, KNOWN
from voiceloop.tts.markup import MARKUP, Filler, blocks


class PlainText(NamedTuple):
    """A text without markup, and where its characters came from."""

    text: str
    at: list[int]
    """For each character of `text`, the index in the written text after the characters that it
    replaces."""


_UNIFIED = {
    **dict.fromkeys("‘’‛ʼ′", "'"),
    **dict.fromkeys("“”„‟«»‹›″", '"'),
    **dict.fromkeys("‐‑−", "-"),
    **dict.fromkeys("\u2028\u2029\n", "\n"),
    "―": "—",
    "…": "...",
    "、": ",",
    "。": ".",
    "⁄": "/",
    "♯": "#",
    **dict.fromkeys("˚∘", "°"),
}


def plain(written: str) -> PlainText:
    """Return the characters of `written` that are said, in unified forms; `CODE` replaces code."""
    text = _without_blocks(written)
    for pattern, filler in MARKUP:
        text = _rewrite(text, pattern, filler)
    return _unify(text)


def _without_blocks(written: str) -> PlainText:
    text, at, done = "", list[int](), 0
    for block in blocks(written):
        end = len(written) if block.end is None else block.end
        filler = f" {CODE} " if block.is_code else " "
        text += written[done : block.start].replace(CODE, " ") + filler
        at += [*range(done + 1, block.start + 1), *[end] * len(filler)]
        done = end
    rest = written[done:].replace(CODE, " ")
    return PlainText(text + rest, at + list(range(done + 1, len(written) + 1)))


def _rewrite(source: PlainText, pattern: re.Pattern[str], filler: Filler) -> PlainText:
    text, at, done = "", list[int](), 0
    for match in pattern.finditer(source.text):
        text += source.text[done : match.start()]
        at += source.at[done : match.start()]
        if filler == "" and "keep" in pattern.groupindex:
            start, end = match.span("keep")
            text += source.text[start:end]
            at += source.at[start:end]
        else:
            new = filler if isinstance(filler, str) else filler(match)
            text += new
            at += source.at[match.end() - 1 : match.end()] * len(new)
        done = match.end()
    return PlainText(text + source.text[done:], at + source.at[done:])


def _unify(source: PlainText) -> PlainText:
    text, at = list[str](), list[int]()
    for char, end in zip(source.text, source.at, strict=True):
        if text and unicodedata.combining(char):
            # A separate accent joins its letter if the two make one character.
            joined = unicodedata.normalize("NFC", text[-1] + char)
            if (
                "\u0300" <= char <= "\u036f"
            ):  # such accents are dropped if they make no character with the letter
                joined = joined[0]
            text[-1:] = joined
            at[-1:] = [end] * len(joined)
            continue
        new = _plain_form(char, bool(text) and text[-1].isdigit())
        if new in (" ", "\n") and text and text[-1].isspace():
            text[-1] = "\n" if "\n" in text[-1] + new else " "  # a line break is not lost
            at[-1] = end
            continue
        text += new
        at += [end] * len(new)
    return PlainText("".join(text), at)


def _plain_form(char: str, after_digit: bool) -> str:
    """Return the plain form of a character. It is empty for a character that only changes how other
    characters look, and a space for a character that is not said. `after_digit` says whether the
    character follows a digit."""
    if " " <= char <= "~" or char in KNOWN or char == CODE:
        return char
    if char in _UNIFIED:
        return _UNIFIED[char]
    kind = unicodedata.category(char)
    if kind in {"Cf", "Mn", "Me", "Sk"} and not unicodedata.combining(char):
        return ""
    if unicodedata.decomposition(char).startswith("<fraction>"):
        return " " * after_digit + unicodedata.normalize("NFKC", char).replace("⁄", "/")
    if kind[0] in "LMN":
        return "".join(c for c in unicodedata.normalize("NFKC", char) if c.isalnum() or c in " '-")
    if kind[0] == "P":  # a wide form of an ASCII mark
        form = unicodedata.normalize("NFKC", char)
        return form if form.isascii() else " "
    return unicodedata.normalize("NFKC", char) if char in "℃℉" else " "

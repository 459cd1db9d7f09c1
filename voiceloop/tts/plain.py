"""Written text without its markup: what is left to say, and where each character of it came from.

Markdown, HTML, LaTeX, emoji and invisible characters go, and code does but for a mark; the many forms of quotes, spaces, digits and
letters become one. This module does not know how anything is pronounced.
"""

# ruff: noqa: RUF001 - the look-alikes are the subject

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from html import unescape
from typing import NamedTuple

from voiceloop.brackets import JSON, JSON_MAYBE, json_end
from voiceloop.languages.spoken import CODE, KNOWN

_Filler = str | Callable[[re.Match[str]], str]


class Plain(NamedTuple):
    """A text and where it came from."""

    text: str
    at: list[int]
    """For each character, how much of the written text it stands for, counted from the start."""


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
}

_COMMANDS = {
    **dict.fromkeys(("times", "cdot", "ast"), " × "),
    "div": " ÷ ",
    "pm": " ± ",
    **dict.fromkeys(("le", "leq"), " ≤ "),
    **dict.fromkeys(("ge", "geq"), " ≥ "),
    **dict.fromkeys(("ne", "neq"), " ≠ "),
    "approx": " ≈ ",
    **dict.fromkeys(("circ", "degree"), "°"),
    **dict.fromkeys("left right big quad qquad displaystyle limits begin end".split(), " "),
}
"""What commands of LaTeX say; of others the name is said."""

_MATH_CHARS = 60
"""Longest formula between dollars, which may as well be money."""

# Each match is replaced by its group `keep`, or else by the filler.
_MARKUP = tuple(
    (re.compile(pattern, re.MULTILINE), filler)
    for pattern, filler in (
        (r"^[ \t]*\[[^\[\]^\n][^\[\]\n]*\]:[ \t]+\S+.*$", ""),
        (r"^[ \t]*\[\^[^\[\]\n]+\]:[ \t]*", ""),
        *[
            (r'!?\[(?P<keep>[^\[\]\n]*)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?: (?:"[^"\n]*"|\'[^\'\n]*\'))?\)', "")
        ]
        * 2,  # an image may be a link
        (r"\[(?:\d+|\^[^\[\]\n]+)\]", ""),
        (r"!?\[(?P<keep>[^\[\]\n]+)\]\[[^\[\]\n]*\]", ""),
        (r"<(?P<keep>https?://[^<>\s]+|[^<>\s@]+@[^<>\s@]+)>", ""),
        (r"<\|[^<>|\n]{1,40}\|?>|</?[A-Za-z][^<>\n]*>", ""),
        (r"\b(?:mailto|tel|sms):(?=\S)", ""),
        (r"\bdata:[\w/+.;=-]{1,100},[A-Za-z0-9+/=_%-]*", CODE),
        # formulas
        (r"\\[\[\]()]|\${2,}", " "),
        (
            rf"(?<![\w$\\])\$(?=[A-Za-z\\(])(?P<keep>[^$\n]{{0,{_MATH_CHARS}}}[^$\s])\$(?![\w$])",
            "",
        ),
        (r"(?<![\w$\\])\$(?P<keep>\d[^$\n,;:.!?]{0,40}[\\^=+*/_][^$\n,;:.!?]{0,40})\$(?![\w$])", ""),
        (r"([\^_])\{([^{}\n]*)\}", lambda match: match[1] + match[2]),
        (r"\^(?=\\(?:circ|degree))", ""),
        (r"\\sqrt\{([^{}\n]*)\}", lambda match: f" √ {match[1]} "),
        (r"\\(?:text|math[a-z]+|operatorname)\{(?P<keep>[^{}\n]*)\}", ""),
        (r"\\[dt]?frac\{([^{}\n]*)\}\{([^{}\n]*)\}", lambda match: f"{match[1]} ÷ {match[2]}"),
        (r"\\([A-Za-z]+)", lambda match: _COMMANDS.get(match[1], f" {match[1]} ")),
        # lines that are drawn
        (
            r"^(?![^\n]*[^\W\d_]{3})[^\n]*(?:/\\|\\/|\\_|_/|_\||\|_|/_|\+--|--\+)[^\n]*$",
            "",
        ),
        (r"^[ \t]*([*_])(?:[ \t]*\1){2,}[ \t]*$", ""),
        (r"^(?=[^\n]*-[ \t]*-[ \t]*-)[ \t|:-]+$", ""),
        (r"(?<!:)([=+&@%^#<>/\\|])\1{2,}", " "),
        (r"(?<==)=", ""),
        (r"^[ \t]*\|[ \t]*|[ \t]*\|[ \t]*$", ""),
        (r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+•][ \t]+(?:\[[ xX]\][ \t]+)?)+", ""),
        (r"(?<![^\W_])(?<!\\)_+(?=\S)|(?<=[^\s\\])_+(?![^\W_])", ""),
        (r"(?<![\w)\]\\])\*+(?=\S)|(?<=[^\s\\])\*+(?![\w(\[])", ""),
        (r"~~|`+", ""),
        (r"\\(?P<keep>[\\*_{}\[\]()#+\-.!|>~$])", ""),
        (r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,30});", lambda match: unescape(match[0])),
        # what only looks like words
        (r"(?<![\w:]):[a-z][a-z0-9_+-]{1,30}:(?![\w:])", ""),
        (r"(?<!\S)(?:[:;=]['-]?[()DPpO|\\/\[\]*]+|[xX]D|<3)(?![^\s.,!?])", ""),
        (
            r"(?<![\w+/=-])(?=[A-Za-z0-9+/=_-]{32})(?=\d*(?:[A-Za-z+/=_-]+\d+){3})"
            r"[A-Za-z0-9+/=_-]+",
            CODE,
        ),
        (r"(([^\W\d_])\2{2})\2+", lambda match: match[1]),
        (r"([A-Za-zÀ-ɏ]{40})[A-Za-zÀ-ɏ]{24,}", lambda match: match[1]),
    )
)
_BLOCK = re.compile(rf"`{{3,}}|~{{3,}}|<!--|<(script|style)\b|(?P<json>{JSON.pattern})")


class Block(NamedTuple):
    """A stretch of written text that nobody reads aloud."""

    start: int
    end: int | None
    """None while it goes on."""
    is_code: bool
    """It holds something that there was to see."""


def blocks(written: str) -> Iterator[Block]:
    """Code, JSON and comments, in order. Three backticks that are closed in their line hold code
    that is read."""
    at = 0
    while opening := _BLOCK.search(written, at):
        start, mark = opening.span()[0], opening[0]
        end: int | None
        if opening["json"]:
            end, empty = json_end(written, start), False
        else:
            closing = {"<!--": "-->"}.get(mark) or (f"</{opening[1]}>" if opening[1] else mark)
            close = written.find(closing, opening.end())
            body = written[opening.end() : None if close < 0 else close]
            end = None if close < 0 else close + len(closing)
            line, fenced = "\n" not in body, mark[0] in "`~"
            if fenced and line and end is not None and body.strip():
                at = end
                continue
            # The first line of a fence names the language.
            shown = body.partition("\n")[2] if fenced else body
            empty = mark == "<!--" or not shown.strip()
        yield Block(start, end, not empty)
        if end is None:
            return
        at = end


def inside_block(head: str) -> bool:
    """Whether `head` ends within a block, or where one may just have begun."""
    if (maybe := JSON_MAYBE.search(head)) and maybe[0]:
        return True
    return any(block.end is None for block in blocks(head))


def plain(written: str) -> Plain:
    """What of `written` is to be said, in unified characters; `CODE` stands for what cannot be."""
    text = _without_blocks(written)
    for pattern, filler in _MARKUP:
        text = _rewrite(text, pattern, filler)
    return _unify(text)


def _without_blocks(written: str) -> Plain:
    text, at, done = "", list[int](), 0
    for block in blocks(written):
        end = len(written) if block.end is None else block.end
        filler = f" {CODE} " if block.is_code else " "
        text += written[done : block.start].replace(CODE, " ") + filler
        at += [*range(done + 1, block.start + 1), *[end] * len(filler)]
        done = end
    rest = written[done:].replace(CODE, " ")
    return Plain(text + rest, at + list(range(done + 1, len(written) + 1)))


def _rewrite(source: Plain, pattern: re.Pattern[str], filler: _Filler) -> Plain:
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
    return Plain(text + source.text[done:], at + source.at[done:])


def _unify(source: Plain) -> Plain:
    text, at = list[str](), list[int]()
    for char, end in zip(source.text, source.at, strict=True):
        if text and unicodedata.combining(char):
            # An accent that comes by itself joins its letter where the two make one character.
            joined = unicodedata.normalize("NFC", text[-1] + char)
            if "\u0300" <= char <= "\u036f":  # of Latin letters no others are said
                joined = joined[0]
            text[-1:] = joined
            at[-1:] = [end] * len(joined)
            continue
        new = _said(char, bool(text) and text[-1].isdigit())
        if new in (" ", "\n") and text and text[-1].isspace():
            text[-1] = "\n" if "\n" in text[-1] + new else " "  # a line break stays one
            at[-1] = end
            continue
        text += new
        at += [end] * len(new)
    return Plain("".join(text), at)


def _said(char: str, after_digit: bool) -> str:
    """What stands for one character; nothing where it only changes how others look."""
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
    if kind[0] == "P":  # wide forms have a plain one
        form = unicodedata.normalize("NFKC", char)
        return form if form.isascii() else " "
    return unicodedata.normalize("NFKC", char) if char in "℃℉" else " "
